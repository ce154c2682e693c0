// SPDX-License-Identifier: MIT
/*
 * Device memory: fresh memory is zero, capacity and the physical budget are
 * enforced, buffers cross processes and outlive their makers, host memory works
 * as a local place only while it is registered.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sys.h"

#define KIB		1024ull
#define MIB		(1024 * KIB)
#define GIB		(1024 * MIB)

static uint64_t used(struct npuemu *ctx, uint32_t device)
{
	struct npuemu_device_info d = { .size = sizeof(d) };

	sys_rc(npuemu_device_query(ctx, device, &d));
	return d.hbm_used;
}

/* ---- One process ------------------------------------------------------------ */

static void zeroed(void **state)
{
	static const uint64_t sizes[] = { 1, 4096, 12288, 1 * MIB, 5 * MIB + 4096 };
	struct npuemu *ctx = sys_open();
	struct npuemu_buf *buf[5];
	unsigned int round, i;
	uint64_t n;

	(void)state;
	/* What was freed comes back in other places and sizes: still zero. */
	for (round = 0; round < 6; round++) {
		for (i = 0; i < 5; i++) {
			sys_rc(npuemu_buf_alloc(ctx, round & 1, sizes[(i + round) % 5], 0,
						&buf[i]));
			n = npuemu_buf_bytes(buf[i]);
			sys_is_byte("fresh memory", npuemu_buf_ptr(buf[i]), n, 0);
			memset(npuemu_buf_ptr(buf[i]), 0xa5, n);
		}
		for (i = 0; i < 5; i++) {
			n = npuemu_buf_bytes(buf[i]);
			sys_is_byte("own memory", npuemu_buf_ptr(buf[i]), n, 0xa5);
			sys_rc(npuemu_buf_free(buf[i]));
		}
		sys_eq(sys_hbm_used(ctx), 0);
	}
	sys_rc(npuemu_close(ctx));
}

/* The engine's writes are gone as well, and so is what lay behind the last byte. */
static void zeroed_after_engine(void **state)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_queue_attr attr = sys_queue_attr(0, 64);
	struct npuemu_queue *q;
	struct npuemu_buf *buf;
	unsigned int i;

	(void)state;
	attr.type = NPUEMU_QUEUE_SDMA;
	sys_rc(npuemu_queue_create(ctx, &attr, &q));
	for (i = 0; i < 20; i++) {
		sys_rc(npuemu_buf_alloc(ctx, 0, 3 * MIB, 0, &buf));
		sys_is_byte("fresh memory", npuemu_buf_ptr(buf), 3 * MIB, 0);
		sys_rc(npuemu_post_fill(q, npuemu_buf_ptr(buf), 0x77, 1, 3 * MIB,
					NPUEMU_SQE_CQE));
		sys_run(q);
		sys_is_byte("filled memory", npuemu_buf_ptr(buf), 3 * MIB, 0x77);
		sys_rc(npuemu_buf_free(buf));
	}
	sys_rc(npuemu_queue_destroy(q));
	sys_rc(npuemu_close(ctx));
}

static void rounding(void **state)
{
	static const uint64_t sizes[] = { 1, 4095, 4096, 4097, 8192, 1 * MIB + 1 };
	struct npuemu *ctx = sys_open();
	struct npuemu_buf *buf;
	uint64_t up;
	unsigned int i;

	(void)state;
	for (i = 0; i < 6; i++) {
		up = (sizes[i] + 4095) / 4096 * 4096;
		sys_rc(npuemu_buf_alloc(ctx, 1, sizes[i], 0, &buf));
		sys_true(npuemu_buf_bytes(buf) >= sizes[i] && npuemu_buf_bytes(buf) <= up,
			 "%llu bytes for %llu", (unsigned long long)npuemu_buf_bytes(buf),
			 (unsigned long long)sizes[i]);
		sys_eq(used(ctx, 1), up);
		sys_eq(used(ctx, 0), 0);
		sys_eq((uintptr_t)npuemu_buf_ptr(buf) % 4096, 0);
		sys_rc(npuemu_buf_free(buf));
	}
	sys_err(npuemu_buf_alloc(ctx, 0, 0, 0, &buf), -EINVAL);
	sys_err(npuemu_buf_alloc(ctx, 2, 4096, 0, &buf), -EINVAL);
	sys_err(npuemu_buf_alloc(ctx, 0, 4096, 1, &buf), -EINVAL);
	sys_rc(npuemu_close(ctx));
}

static void capacity(void **state)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_buf *a, *b;
	const char *msg;

	(void)state;
	sys_rc(npuemu_buf_alloc(ctx, 0, 600 * MIB, 0, &a));
	sys_err(npuemu_buf_alloc(ctx, 0, 424 * MIB + 1, 0, &b), -ENOMEM);
	msg = npuemu_errmsg();
	sys_true(strstr(msg, "free"), "does not say how much is free: %s", msg);
	sys_true(strstr(msg, "424 MiB") || strstr(msg, "444596224") || strstr(msg, "424.0 MiB"),
		 "does not say that 424 MiB are free: %s", msg);
	/* The other device has a memory of its own. */
	sys_rc(npuemu_buf_alloc(ctx, 1, 1 * GIB, 0, &b));
	sys_rc(npuemu_buf_free(b));
	/* To the last byte. */
	sys_rc(npuemu_buf_alloc(ctx, 0, 424 * MIB, 0, &b));
	sys_eq(used(ctx, 0), 1 * GIB);
	sys_rc(npuemu_buf_free(a));
	sys_err(npuemu_buf_alloc(ctx, 0, 600 * MIB + 1, 0, &a), -ENOMEM);
	sys_rc(npuemu_buf_free(b));
	sys_err(npuemu_buf_alloc(ctx, 0, 1 * GIB + 1, 0, &a), -ENOMEM);
	sys_err(npuemu_buf_alloc(ctx, 0, UINT64_MAX, 0, &a), -ENOMEM);
	sys_err(npuemu_buf_alloc(ctx, 0, UINT64_MAX - 4096, 0, &a), -ENOMEM);
	sys_eq(used(ctx, 0), 0);
	sys_rc(npuemu_close(ctx));
}

/* Many small ones, freed in another order: all of it is one piece again. */
static void fragments(void **state)
{
	enum { N = 512 };
	struct npuemu *ctx = sys_open();
	struct npuemu_buf *buf[N], *all;
	uint64_t rnd = 7;
	int i, j;

	(void)state;
	for (i = 0; i < N; i++) {
		sys_rc(npuemu_buf_alloc(ctx, 0, 2 * MIB, 0, &buf[i]));
		*(uint64_t *)npuemu_buf_ptr(buf[i]) = (uint64_t)i;
	}
	sys_err(npuemu_buf_alloc(ctx, 0, 1, 0, &all), -ENOMEM);
	for (i = 0; i < N; i++)
		sys_eq(*(uint64_t *)npuemu_buf_ptr(buf[i]), i);
	for (i = N - 1; i > 0; i--) {
		struct npuemu_buf *t = buf[i];

		j = (int)(sys_rand(&rnd) % (unsigned int)(i + 1));
		buf[i] = buf[j];
		buf[j] = t;
	}
	for (i = 0; i < N; i++)
		sys_rc(npuemu_buf_free(buf[i]));
	sys_rc(npuemu_buf_alloc(ctx, 0, 1 * GIB, 0, &all));
	sys_eq(*(uint64_t *)npuemu_buf_ptr(all), 0);
	sys_rc(npuemu_buf_free(all));
	sys_rc(npuemu_close(ctx));
}

static void busy(void **state)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_seg_attr part = {
		.size = sizeof(part), .access = SYS_RWA, .offset = 4096, .bytes = 4096,
	};
	struct npuemu_seg *second;
	struct sys_mem m;

	(void)state;
	sys_mem_make(ctx, &m, 0, 16384, SYS_RWA);
	sys_rc(npuemu_seg_register(m.buf, &part, &second));
	sys_err(npuemu_buf_free(m.buf), -EBUSY);
	sys_rc(npuemu_seg_unregister(m.seg));
	sys_err(npuemu_buf_free(m.buf), -EBUSY);
	sys_true(npuemu_buf_ptr(m.buf) == m.p, "the buffer is as before");
	sys_rc(npuemu_seg_unregister(second));
	sys_rc(npuemu_buf_free(m.buf));
	sys_err(npuemu_buf_free(m.buf), -EBADF);
	sys_rc(npuemu_close(ctx));
}

/* ---- Host memory ------------------------------------------------------------ */

static void host_memory(void **state)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_queue_attr attr = sys_queue_attr(0, 64);
	struct npuemu_mem *reg;
	struct npuemu_queue *q;
	unsigned char *host;
	struct npuemu_wc wc;
	struct sys_mem m;

	(void)state;
	host = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sys_true(host != MAP_FAILED, "mmap");
	sys_mem_make(ctx, &m, 0, 65536, SYS_RWA);
	sys_rc(npuemu_queue_create(ctx, &attr, &q));
	sys_fill(host, 65536, 1);

	/* not yet */
	sys_rc(npuemu_post_write(q, host, 4096, &m.t, m.va, NPUEMU_SQE_CQE));
	sys_rc(npuemu_doorbell(q));
	sys_one(npuemu_queue_cq(q), &wc);
	sys_is_status(&wc, NPUEMU_ST_LOC_ACCESS);
	sys_is_byte("nothing moved", m.p, 65536, 0);
	sys_revive(q);

	/* an odd part of it */
	sys_rc(npuemu_mem_register(ctx, host + 101, 30000, &reg));
	sys_rc(npuemu_post_write(q, host + 101, 30000, &m.t, m.va, NPUEMU_SQE_CQE));
	sys_run(q);
	sys_same("from the host", m.p, host + 101, 30000);
	sys_is_byte("behind it", m.p + 30000, 35536, 0);
	sys_rc(npuemu_post_read(q, host + 102, 29999, &m.t, m.va, NPUEMU_SQE_CQE));
	sys_run(q);
	sys_same("to the host", host + 102, m.p, 29999);
	sys_rc(npuemu_post_write(q, host + 101, 30001, &m.t, m.va, NPUEMU_SQE_CQE));
	sys_eq(sys_finish(q), NPUEMU_ST_LOC_ACCESS);
	sys_revive(q);
	sys_rc(npuemu_post_read(q, host + 100, 8, &m.t, m.va, NPUEMU_SQE_CQE));
	sys_eq(sys_finish(q), NPUEMU_ST_LOC_ACCESS);
	sys_revive(q);

	/* no longer */
	sys_rc(npuemu_mem_unregister(reg));
	sys_err(npuemu_mem_unregister(reg), -EBADF);
	sys_rc(npuemu_post_write(q, host + 101, 8, &m.t, m.va, NPUEMU_SQE_CQE));
	sys_eq(sys_finish(q), NPUEMU_ST_LOC_ACCESS);

	sys_err(npuemu_mem_register(ctx, NULL, 4096, &reg), -EINVAL);
	sys_err(npuemu_mem_register(ctx, host, 0, &reg), -EINVAL);
	sys_err(npuemu_mem_register(ctx, host, UINT64_MAX, &reg), -EINVAL);
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
	munmap(host, 65536);
}

/* ---- Across processes ------------------------------------------------------- */

struct peer_arg {
	uint32_t device;
	uint64_t bytes;
	char no_proc;
	char closes;
};

/* Exports a buffer filled with pattern 1, expects pattern 2 at the end. */
static void exporter(int fd, const void *arg)
{
	const struct peer_arg *a = arg;
	struct npuemu_handle h;
	struct npuemu_buf *buf;
	struct npuemu *ctx;

	if (a->no_proc)
		setenv("NPUEMU_NO_PROC", "1", 1);
	ctx = sys_open();
	sys_rc(npuemu_buf_alloc(ctx, a->device, a->bytes, 0, &buf));
	sys_fill(npuemu_buf_ptr(buf), a->bytes, 1);
	sys_rc(npuemu_buf_export(buf, &h));
	sys_put(fd, &h, sizeof(h));
	sys_wait_go(fd);
	if (a->closes) {
		sys_rc(npuemu_buf_free(buf));
		sys_go(fd);
		sys_wait_go(fd);
	} else {
		sys_is_filled("what the importer wrote", npuemu_buf_ptr(buf), a->bytes, 2);
	}
	sys_rc(npuemu_close(ctx));
}

static void import_with(bool no_proc)
{
	struct peer_arg a = { .device = 1, .bytes = 3 * MIB + 4096, .no_proc = no_proc };
	struct npuemu_buf *buf, *again;
	struct npuemu_handle h, bad;
	struct sys_child c;
	struct npuemu *ctx;
	unsigned int i;

	if (no_proc)
		setenv("NPUEMU_NO_PROC", "1", 1);
	ctx = sys_open();
	sys_spawn(&c, exporter, &a, sizeof(a));
	sys_get(c.fd, &h, sizeof(h));
	sys_rc(npuemu_buf_import(ctx, &h, &buf));
	sys_eq(npuemu_buf_bytes(buf), a.bytes);
	sys_is_filled("imported", npuemu_buf_ptr(buf), a.bytes, 1);
	/* the same memory, charged once */
	sys_eq(used(ctx, 1), a.bytes);
	sys_err(npuemu_buf_import(ctx, &h, &again), -EEXIST);
	sys_eq(used(ctx, 1), a.bytes);
	sys_fill(npuemu_buf_ptr(buf), a.bytes, 2);
	/* a handle that was tampered with */
	for (i = 0; i < 8; i++) {
		int rc;

		bad = h;
		bad.w[i] ^= 1ull << (i * 7);
		rc = npuemu_buf_import(ctx, &bad, &again);
		if (!rc)
			sys_rc(npuemu_buf_free(again));
		else
			sys_true(rc == -EINVAL || rc == -ESTALE, "word %u: %d: %s", i, rc,
				 npuemu_errmsg());
	}
	memset(&bad, 0, sizeof(bad));
	sys_err(npuemu_buf_import(ctx, &bad, &again), -EINVAL);
	memset(&bad, 0xff, sizeof(bad));
	sys_err(npuemu_buf_import(ctx, &bad, &again), -EINVAL);
	sys_go(c.fd);
	sys_join(&c);
	/* gone, but this process still has it */
	sys_err(npuemu_buf_import(ctx, &h, &again), -ESTALE);
	sys_is_filled("imported", npuemu_buf_ptr(buf), a.bytes, 2);
	sys_eq(used(ctx, 1), a.bytes);
	sys_rc(npuemu_buf_free(buf));
	sys_eq(used(ctx, 1), 0);
	sys_rc(npuemu_close(ctx));
	unsetenv("NPUEMU_NO_PROC");
}

static void import(void **state)
{
	(void)state;
	import_with(false);
}

static void import_by_socket(void **state)
{
	(void)state;
	sys_user_only("buffers do not cross by socket");
	import_with(true);
}

/* The exporter is killed: memory and its charge stay until the importer lets go. */
static void importer_outlives(void **state)
{
	struct peer_arg a = { .device = 0, .bytes = 700 * MIB };
	struct npuemu *ctx = sys_open();
	struct npuemu_buf *buf, *more;
	struct npuemu_handle h;
	struct sys_child c;
	unsigned char *p;

	(void)state;
	/* a little of it is enough */
	a.bytes = 2 * MIB;
	sys_spawn(&c, exporter, &a, sizeof(a));
	sys_get(c.fd, &h, sizeof(h));
	sys_rc(npuemu_buf_import(ctx, &h, &buf));
	p = npuemu_buf_ptr(buf);
	sys_kill(&c);
	sys_rc(npuemu_reap(ctx));
	sys_is_filled("after the kill", p, a.bytes, 1);
	sys_eq(used(ctx, 0), a.bytes);
	sys_err(npuemu_buf_alloc(ctx, 0, 1 * GIB - a.bytes + 1, 0, &more), -ENOMEM);
	sys_rc(npuemu_buf_alloc(ctx, 0, 1 * GIB - a.bytes, 0, &more));
	sys_rc(npuemu_buf_free(more));
	sys_fill(p, a.bytes, 3);
	sys_is_filled("still writable", p, a.bytes, 3);
	sys_err(npuemu_buf_import(ctx, &h, &more), -ESTALE);
	sys_rc(npuemu_buf_free(buf));
	sys_eq(used(ctx, 0), 0);
	sys_rc(npuemu_buf_alloc(ctx, 0, 1 * GIB, 0, &more));
	sys_rc(npuemu_buf_free(more));
	sys_rc(npuemu_close(ctx));
}

/* The exporter frees it: not handed out again while an importer holds it. */
static void freed_but_imported(void **state)
{
	struct peer_arg a = { .device = 0, .bytes = 1 * MIB, .closes = 1 };
	struct npuemu *ctx = sys_open();
	struct npuemu_buf *buf, *other;
	struct npuemu_handle h;
	struct sys_child c;
	int64_t deadline;

	(void)state;
	sys_spawn(&c, exporter, &a, sizeof(a));
	sys_get(c.fd, &h, sizeof(h));
	sys_rc(npuemu_buf_import(ctx, &h, &buf));
	sys_go(c.fd);
	sys_wait_go(c.fd);
	sys_err(npuemu_buf_import(ctx, &h, &other), -ESTALE);
	sys_is_filled("freed by its owner", npuemu_buf_ptr(buf), a.bytes, 1);
	sys_eq(used(ctx, 0), a.bytes);
	sys_rc(npuemu_buf_free(buf));
	/* its owner gives it back once it has heard */
	deadline = sys_deadline();
	while (used(ctx, 0) && sys_retry(deadline))
		;
	sys_eq(used(ctx, 0), 0);
	sys_go(c.fd);
	sys_join(&c);
	sys_rc(npuemu_close(ctx));
}

/* ---- Large, and too much ---------------------------------------------------- */

static char machine[200];

/* One device with @gib GiB: far less address space than the default machine. */
static void use_machine(unsigned int gib)
{
	static const char rest[] =
		"soc Ascend950PR_9589\ngeneration 950\nservers 1\ndevices_per_server 1\n"
		"devices_per_module 1\nhbm_mbytes_per_s 1600000\ncube_cores 2\n"
		"vector_cores 4\nub 248 KiB\nl2 16 MiB\n"
		"engine udma count 1 submit_ns 300 mbytes_per_s 0\n"
		"engine sdma count 1 submit_ns 500 mbytes_per_s 0\n"
		"link local latency_ns 200 mbytes_per_s 800000\n"
		"path self local\npath server local\npath host local\n";
	const char *dir = getenv("TMPDIR");
	FILE *f;

	snprintf(machine, sizeof(machine), "%s/systest-%d.txt", dir ? dir : "/tmp",
		 (int)getpid());
	f = fopen(machine, "w");
	sys_true(f, "cannot write %s", machine);
	fprintf(f, "name large\nhbm %u GiB\n%s", gib, rest);
	sys_true(!fclose(f), "cannot write %s", machine);
	setenv("NPUEMU_MACHINE", machine, 1);
}

static void large(void **state)
{
	static const uint64_t places[] = {
		0, 4 * GIB - 4096, 4 * GIB, 4 * GIB + 12345, 5 * GIB - 65536,
	};
	struct npuemu_queue *q;
	struct sys_mem m, src;
	struct npuemu *ctx;
	uint64_t rem;
	unsigned int i;

	(void)state;
	sys_user_only("the module was loaded with another machine");
	use_machine(8);
	ctx = sys_open();
	sys_mem_make(ctx, &m, 0, 5 * GIB, SYS_RWA);
	sys_mem_make(ctx, &src, 0, 65536, SYS_RWA);
	sys_eq(npuemu_buf_bytes(m.buf), 5 * GIB);
	q = sys_queue(ctx, 0, 64);
	for (i = 0; i < 5; i++) {
		rem = 5 * GIB - places[i] < 60000 ? 5 * GIB - places[i] : 60000;
		sys_fill(src.p, 65536, i);
		sys_rc(npuemu_post_write(q, src.p, (uint32_t)rem, &m.t, m.va + places[i],
					 NPUEMU_SQE_CQE));
		sys_run(q);
		sys_is_filled("in the large buffer", m.p + places[i], rem, i);
		memset(src.p, 0, 65536);
		sys_rc(npuemu_post_read(q, src.p, (uint32_t)rem, &m.t, m.va + places[i],
					NPUEMU_SQE_CQE));
		sys_run(q);
		sys_is_filled("read back", src.p, rem, i);
	}
	/* the last byte, and one more */
	sys_rc(npuemu_post_write(q, src.p, 65536, &m.t, m.va + 5 * GIB - 65536,
				 NPUEMU_SQE_CQE));
	sys_run(q);
	sys_rc(npuemu_post_write(q, src.p, 65536, &m.t, m.va + 5 * GIB - 65535,
				 NPUEMU_SQE_CQE));
	sys_eq(sys_finish(q), NPUEMU_ST_REM_ACCESS_ABORT);
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&m);
	sys_mem_drop(&src);
	sys_rc(npuemu_close(ctx));
}

static void budget(void **state)
{
	struct npuemu_queue_attr attr = sys_queue_attr(0, 64);
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu_queue *q;
	struct npuemu_buf *buf;
	struct npuemu *ctx;
	uint32_t status;
	int round;

	(void)state;
	sys_user_only("the budget is a parameter of the module");
	setenv("NPUEMU_BUDGET_MB", "64", 1);
	ctx = sys_open();
	unsetenv("NPUEMU_BUDGET_MB");
	sys_rc(npuemu_query(ctx, &info));
	sys_eq(info.budget_bytes, 64 * MIB);
	attr.type = NPUEMU_QUEUE_SDMA;
	sys_rc(npuemu_queue_create(ctx, &attr, &q));
	for (round = 0; round < 3; round++) {
		/* capacity is no matter: it is lazy */
		sys_rc(npuemu_buf_alloc(ctx, 0, 512 * MIB, 0, &buf));
		sys_rc(npuemu_post_fill(q, npuemu_buf_ptr(buf), 0x11, 1, 16 * MIB,
					NPUEMU_SQE_CQE));
		sys_run(q);
		sys_rc(npuemu_post_fill(q, npuemu_buf_ptr(buf), 0x22, 1, 512 * MIB,
					NPUEMU_SQE_CQE));
		status = sys_finish(q);
		sys_true(status, "512 MiB fit into a budget of 64 MiB");
		sys_true(strstr(sys_stat(q).cause, "memory"), "%s: cause '%s' names no memory",
			 npuemu_status_str(status), sys_stat(q).cause);
		sys_rc(npuemu_query(ctx, &info));
		sys_true(info.backed_bytes <= 64 * MIB, "%llu bytes backed",
			 (unsigned long long)info.backed_bytes);
		sys_revive(q);
		sys_rc(npuemu_buf_free(buf));
		/* all of it is there again */
		sys_rc(npuemu_query(ctx, &info));
		sys_eq(info.backed_bytes, 0);
		sys_rc(npuemu_buf_alloc(ctx, 0, 48 * MIB, 0, &buf));
		sys_rc(npuemu_post_fill(q, npuemu_buf_ptr(buf), 0x33, 1, 48 * MIB,
					NPUEMU_SQE_CQE));
		sys_run(q);
		sys_is_byte("after the budget was exceeded", npuemu_buf_ptr(buf), 48 * MIB,
			    0x33);
		sys_rc(npuemu_buf_free(buf));
	}
	sys_rc(npuemu_queue_destroy(q));
	sys_rc(npuemu_close(ctx));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(zeroed),
		sys_test(zeroed_after_engine),
		sys_test(rounding),
		sys_test(capacity),
		sys_test(fragments),
		sys_test(busy),
		sys_test(host_memory),
		sys_test(import),
		sys_test(import_by_socket),
		sys_test(importer_outlives),
		sys_test(freed_but_imported),
		sys_test(large),
		sys_test(budget),
	};

	int failed;

	sys_start();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(machine);
	return failed;
}
