// SPDX-License-Identifier: MIT
/*
 * As many as there may be of everything in a context, and one more; and the time
 * it takes to get rid of them all at once.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "raw.h"

/* Getting rid of it all takes about as long as making it did, not its square. */
static void close_all(struct raw *r, int64_t begun, const char *what)
{
	int64_t start = npuemu_now_ns(), made = start - begun, took;

	raw_close(r);
	took = npuemu_now_ns() - start;
	sys_true(took <= 4 * made + 10000000000ll, "%s takes %lld ms, making it all %lld ms", what,
		 (long long)(took / 1000000), (long long)(made / 1000000));
}

static void segments(void **state)
{
	struct npuemu_ioc_seg_create a = {
		.access = NPUEMU_ACCESS_READ, .bytes = 4096,
	};
	struct npuemu_ioc_seg_destroy d = { 0 };
	struct raw_bo bo;
	int64_t begun;
	struct raw r;
	uint32_t n, last = 0;
	int rc;

	(void)state;
	begun = npuemu_now_ns();
	raw_open(&r, 0);
	raw_bo_create(&r, &bo, 8192);
	a.handle = bo.handle;
	for (n = 0;; n++) {
		a.token_value = 0;
		rc = raw_ioctl(r.fd, NPUEMU_IOC_SEG_CREATE, &a);
		if (rc)
			break;
		last = a.token_id;
	}
	raw_is(rc, -ENOSPC);
	sys_eq(n, NPUEMU_CTX_SEGS);
	d.token_id = last;
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_SEG_DESTROY, &d), 0);
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_SEG_CREATE, &a), 0);
	sys_true(a.token_id != last, "the same id at once");
	close_all(&r, begun, "closing with all segments");
}

static void buffers(void **state)
{
	struct npuemu_ioc_bo_create a = { .bytes = 1 };
	int64_t begun;
	struct raw r;
	uint32_t n, last = 0;
	int rc;

	(void)state;
	begun = npuemu_now_ns();
	raw_open(&r, 0);
	for (n = 0; !(rc = raw_ioctl(r.fd, NPUEMU_IOC_BO_CREATE, &a)); n++)
		last = a.handle;
	raw_is(rc, -ENOSPC);
	sys_eq(n, NPUEMU_CTX_BOS);
	raw_is(raw_bo_close(&r, last), 0);
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_BO_CREATE, &a), 0);
	close_all(&r, begun, "closing with all buffers");
}

static void places(void **state)
{
	struct raw_bo bo;
	int64_t begun;
	struct raw r;
	uint64_t n;
	int rc;

	(void)state;
	begun = npuemu_now_ns();
	raw_open(&r, 0);
	raw_bo_create(&r, &bo, 4096);
	for (n = 0;; n++) {
		rc = raw_va_map(&r, (n + 1) * 8192, 4096, bo.handle, 0, 0);
		if (rc)
			break;
	}
	raw_is(rc, -ENOSPC);
	sys_eq(n, NPUEMU_CTX_PLACES);
	raw_is(raw_va_unmap(&r, 8192), 0);
	raw_is(raw_va_map(&r, 4096, 8192, bo.handle, 0, 0), -EINVAL);
	raw_is(raw_va_map(&r, 4096, 4096, bo.handle, 0, 0), 0);
	/* in one go, with the buffer */
	raw_is(raw_bo_close(&r, bo.handle), 0);
	sys_eq(raw_leaks("places"), 0);
	close_all(&r, begun, "closing");
}

static void queues(void **state)
{
	struct npuemu_ioc_queue_create a = { .depth = 64 };
	struct npuemu_ioc_rq_create rq = { .depth = 64, .max_sge = 1 };
	struct raw_cq cq;
	int64_t begun;
	struct raw r;
	uint32_t n;
	int rc;

	(void)state;
	begun = npuemu_now_ns();
	raw_open(&r, 0);
	raw_cq_make(&r, &cq, 64);
	a.cq = cq.handle;
	rq.cq = cq.handle;
	for (n = 0;; n++) {
		a.device = n & 1;
		a.type = n >> 1 & 1;
		rc = raw_ioctl(r.fd, NPUEMU_IOC_QUEUE_CREATE, &a);
		if (rc)
			break;
	}
	raw_is(rc, -ENOSPC);
	sys_eq(n, NPUEMU_CTX_QUEUES - 1);
	for (n = 0; !(rc = raw_ioctl(r.fd, NPUEMU_IOC_RQ_CREATE, &rq)); n++)
		;
	raw_is(rc, -ENOSPC);
	sys_eq(n, NPUEMU_CTX_QUEUES - 1);
	close_all(&r, begun, "closing with all queues");
}

static void cqs(void **state)
{
	struct npuemu_ioc_cq_create a = { .depth = 64 };
	int64_t begun;
	struct raw r;
	uint32_t n;
	int rc;

	(void)state;
	begun = npuemu_now_ns();
	raw_open(&r, 0);
	for (n = 0; n < 70000; n++) {
		rc = raw_ioctl(r.fd, NPUEMU_IOC_CQ_CREATE, &a);
		if (rc)
			break;
	}
	raw_is(rc, -ENOSPC);
	sys_true(n >= NPUEMU_CTX_CQS, "%u are too few", n);
	close_all(&r, begun, "closing with all CQs");
}

static void contexts(void **state)
{
	int fd[300], n;

	(void)state;
	for (n = 0; n < 300; n++) {
		fd[n] = open(n & 1 ? "/dev/npuemu1" : "/dev/npuemu0", O_RDWR | O_CLOEXEC);
		if (fd[n] < 0)
			break;
	}
	raw_is(-errno, -ENOSPC);
	sys_eq(n, 256);
	/* looking needs none */
	close(raw_ctl());
	close(fd[--n]);
	fd[n++] = raw_node(0);
	while (n)
		close(fd[--n]);
}

static void faults(void **state)
{
	struct npuemu_ioc_fault a = {
		.kind = NPUEMU_FAULT_DELAY, .slot = 200, .queue = 1, .device = NPUEMU_ANY,
	};
	int ctl = raw_ctl(), n, rc;

	(void)state;
	for (n = 0; !(rc = raw_ioctl(ctl, NPUEMU_IOC_FAULT_INJECT, &a)); n++)
		;
	raw_is(rc, -ENOSPC);
	sys_eq(n, 16);
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_FAULT_CLEAR, NULL), 0);
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_FAULT_INJECT, &a), 0);
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_FAULT_CLEAR, NULL), 0);
	close(ctl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(segments),
		raw_test(buffers),
		raw_test(places),
		raw_test(queues),
		raw_test(cqs),
		raw_test(contexts),
		raw_test(faults),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
