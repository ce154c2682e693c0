// SPDX-License-Identifier: MIT
/*
 * Pulling out a device under load.  It cannot be put back: this is the last
 * program of a VM.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "raw.h"

#define VICTIM	1u

static int unplug(uint32_t device)
{
	struct npuemu_ioc_device_ctl a = { .device = device };
	int ctl = raw_ctl(), rc;

	rc = raw_ioctl(ctl, NPUEMU_IOC_DEVICE_UNPLUG, &a);
	close(ctl);
	return rc;
}

static bool unplugged;

static void *sleep_in_wait(void *arg)
{
	struct raw_cq *cq = arg;
	struct npuemu_ioc_wait_item it = {
		.kind = NPUEMU_WAIT_CQ, .handle = cq->handle,
	};
	static int rc;

	rc = raw_wait(cq->r, &it, 1, npuemu_deadline_ms(SYS_PATIENCE_MS), NULL);
	return &rc;
}

/* The dead device, seen by those who come later. */
static void gone(void)
{
	struct npuemu_ioc_device_ctl reset = { .device = VICTIM };
	struct npuemu_ioc_device d = { .device = VICTIM };
	int ctl = raw_ctl(), fd;

	fd = open("/dev/npuemu1", O_RDWR | O_CLOEXEC);
	sys_true(fd < 0 && (errno == ENODEV || errno == ENOENT || errno == ENXIO),
		 "open of a device that is not there: %s", strerror(errno));
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_DEVICE, &d), 0);
	sys_true(d.dead, "it does not say that it is gone");
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_DEVICE_RESET, &reset), -ENODEV);
	raw_is(unplug(VICTIM), -ENODEV);
	raw_is(unplug(2), -EINVAL);
	close(ctl);
}

static void under_load(void **state)
{
	struct npuemu_ioc_bo_export ex = { .flags = O_RDWR | O_CLOEXEC };
	struct npuemu_ioc_queue_create late = { .device = VICTIM, .depth = 64 };
	struct npuemu_ioc_query query = { 0 };
	struct raw_cq cq, idle, cq0, cq1;
	struct raw_q q, q0, q1;
	struct raw_bo bo, bo0;
	struct npuemu_cqe cqe;
	struct raw r, r0;
	uint32_t flushed = 0;
	pthread_t t;
	void *rc;

	(void)state;
	raw_open(&r, VICTIM);
	raw_bo_make(&r, &bo, 4 * MIB);
	raw_cq_make(&r, &cq, 128);
	raw_cq_make(&r, &idle, 64);
	raw_q_make(&r, &q, &cq, VICTIM, RAW_SDMA, 64);
	ex.handle = bo.handle;
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_BO_EXPORT, &ex), 0);
	raw_open(&r0, 0);
	raw_bo_make(&r0, &bo0, 2 * MIB);
	raw_cq_make(&r0, &cq0, 128);
	raw_cq_make(&r0, &cq1, 128);
	raw_q_make(&r0, &q0, &cq0, 0, RAW_SDMA, 64);
	raw_q_make(&r0, &q1, &cq1, VICTIM, RAW_SDMA, 64);
	sys_true(!pthread_create(&t, NULL, sleep_in_wait, &idle), "pthread_create");
	sys_nap(100);
	for (int i = 0; i < 64; i++)
		raw_post_copy(&q, bo.p, bo.p + 2 * MIB, 2 * MIB);
	for (int i = 0; i < 64; i++)
		raw_post_copy(&q0, bo0.p, bo0.p + MIB, MIB);
	raw_ring(&q0);
	raw_ring(&q);
	raw_is(unplug(VICTIM), 0);
	unplugged = true;

	/* the owner */
	pthread_join(t, &rc);
	raw_is(*(int *)rc, -ENODEV);
	do {
		sys_true(raw_spin(&cq, &cqe, SYS_PATIENCE_MS), "no word of the end: %u", cq.ci);
		flushed += raw_status(&cqe) == NPUEMU_ST_WR_FLUSH_ERR;
	} while (!(cqe.dw0 & NPUEMU_CQE_FD));
	sys_true(flushed, "nothing was flushed");
	raw_is(raw_touch(bo.p, false), SIGBUS);
	raw_is(raw_touch(bo.p + 3 * MIB, true), SIGBUS);
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_QUERY, &query), -ENODEV);
	raw_is(raw_sys(mmap(NULL, 4096, PROT_READ, MAP_SHARED, r.fd, (off_t)bo.offset)), -ENODEV);
	raw_is(raw_sys(mmap(NULL, 4096, PROT_READ, MAP_SHARED, ex.fd, 0)), -ENODEV);
	raw_ring(&q);
	/* a neighbour with a queue there: that is gone, the rest is not */
	sys_eq(raw_query(&q1).state, NPUEMU_QS_ERROR);
	for (int i = 0; i < 64; i++) {
		sys_true(raw_spin(&cq0, &cqe, SYS_PATIENCE_MS), "no completion %d", i);
		raw_status_is(__FILE__, __LINE__, raw_status(&cqe), NPUEMU_ST_SUCCESS);
	}
	late.cq = cq0.handle;
	raw_is(raw_ioctl(r0.fd, NPUEMU_IOC_QUEUE_CREATE, &late), -ENODEV);
	raw_is(raw_q_destroy(&q1), 0);
	gone();
	close(ex.fd);
	munmap(bo.p, bo.room);
	raw_close(&r);
	munmap(bo0.p, bo0.room);
	raw_close(&r0);
}

static void afterwards(void **state)
{
	struct raw_bo bo;
	struct raw_cq cq;
	struct raw_q q;
	struct raw r;

	(void)state;
	sys_true(unplugged, "it is still there");
	gone();
	raw_open(&r, 0);
	raw_bo_make(&r, &bo, 64 * KIB);
	raw_cq_make(&r, &cq, 64);
	raw_q_make(&r, &q, &cq, 0, RAW_SDMA, 64);
	raw_post_fill(&q, bo.p, 0x4242424242424242, bo.room);
	raw_completes(&q, NPUEMU_ST_SUCCESS);
	sys_is_byte("filled", bo.p, bo.room, 0x42);
	munmap(bo.p, bo.room);
	raw_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(under_load),
		raw_test(afterwards),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
