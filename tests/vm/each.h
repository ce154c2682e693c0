/* SPDX-License-Identifier: MIT */
/*
 * For test_each.c: every call of a context on its own, as a step that may be repeated at
 * any time; and what it may answer when the device goes away meanwhile.
 */
#ifndef TESTS_VM_EACH_H
#define TESTS_VM_EACH_H

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "raw.h"

#define THREADS		2
#define NRS		0x70
#define MMAP		0x6e	/* no ioctls, but counted as such */
#define OPEN		0x6f

/* What a thread has for itself. */
struct own {
	struct party *p;
	struct raw_bo bo;	/* on the device */
	struct raw_seg seg;
	struct raw_cq cq;
	struct raw_cq idle;
	struct raw_q q;		/* on the device */
	uint32_t rq;
	int dmabuf;		/* of a buffer of another context on the device */
	uint64_t name[4];	/* likewise */
	int event;
	unsigned char *host;
	uint64_t va;
	uint32_t state;
	pthread_t thread;
	bool lost;		/* a call has said so */
	uint32_t ok[NRS];
	uint32_t gone[NRS];
};

/* One of the two contexts, in a process of its own. */
struct party {
	bool home;		/* opened through the device */
	bool unplug;		/* and not only reset */
	uint32_t device;
	unsigned int step;
	struct raw r;		/* the context */
	struct raw via;		/* it, through a file of the device */
	struct raw far;		/* another context, likewise */
	struct raw far_via;
	int ctl;
	bool stop;
	struct own own[THREADS];
};

/* ---- Calls ---------------------------------------------------------------------------- */

/*
 * It did what it should, or the device is gone, or @also, another errno documented for
 * this.  Once a context is lost it stays so.
 */
static int check(struct own *o, unsigned int nr, int rc, int also)
{
	if (!rc) {
		sys_true(!o->lost, "call %#x does something in a context that is lost", nr);
		o->ok[nr]++;
		return 0;
	}
	sys_true(rc == -ENODEV || (also && rc == also), "call %#x, %s context: %d (%s)", nr,
		 o->p->home ? "a lost" : "another", rc, strerror(-rc));
	o->gone[nr] += rc == -ENODEV;
	if (rc == -ENODEV && o->p->home)
		o->lost = true;
	return rc;
}

static int call(struct own *o, unsigned long cmd, void *arg, int also)
{
	return check(o, _IOC_NR(cmd), raw_ioctl(o->p->via.fd, cmd, arg), also);
}

/* What such a call of a context that is lost does all the same. */
static int call_anyway(struct own *o, int fd, unsigned long cmd, void *arg, int also)
{
	int rc = raw_ioctl(fd, cmd, arg);

	sys_true(!rc || (also && rc == also), "call %#x: %d (%s)", (unsigned int)_IOC_NR(cmd), rc,
		 strerror(-rc));
	o->ok[_IOC_NR(cmd)]++;
	return rc;
}

/* Undo what was made; through the other device if this one is gone. */
static void unmake(struct own *o, unsigned long cmd, void *arg)
{
	int rc = call(o, cmd, arg, 0);

	if (rc && !o->p->home)
		raw_is(raw_ioctl(o->p->r.fd, cmd, arg), 0);
}

static void unmake_handle(struct own *o, unsigned long cmd, uint32_t handle)
{
	struct npuemu_ioc_handle h = { .handle = handle };

	unmake(o, cmd, &h);
}

/* ---- Steps: a call, or one and its opposite ------------------------------------------- */

static void s_query(struct own *o)
{
	struct npuemu_ioc_query a = { 0 };

	call(o, NPUEMU_IOC_QUERY, &a, 0);
}

static void s_create(struct own *o)
{
	struct npuemu_ioc_bo_create a = { .bytes = 8192 };

	if (!call(o, NPUEMU_IOC_BO_CREATE, &a, 0))
		unmake_handle(o, NPUEMU_IOC_BO_CLOSE, a.handle);
}

static void s_export(struct own *o)
{
	struct npuemu_ioc_bo_export a = { .handle = o->bo.handle, .flags = O_RDWR | O_CLOEXEC };

	if (!call(o, NPUEMU_IOC_BO_EXPORT, &a, 0))
		close(a.fd);
}

static void s_import(struct own *o)
{
	struct npuemu_ioc_bo_import a = { .fd = o->dmabuf };

	if (!call(o, NPUEMU_IOC_BO_IMPORT, &a, 0))
		unmake_handle(o, NPUEMU_IOC_BO_CLOSE, a.handle);
}

static void s_name(struct own *o)
{
	struct npuemu_ioc_bo_name a = { .handle = o->bo.handle };

	call(o, NPUEMU_IOC_BO_NAME, &a, 0);
}

static void s_open(struct own *o)
{
	struct npuemu_ioc_bo_open a = { 0 };

	memcpy(a.name, o->name, sizeof(a.name));
	/* to others it is a name of nothing, once it is revoked */
	if (!call(o, NPUEMU_IOC_BO_OPEN, &a, o->p->home ? 0 : -ESTALE))
		unmake_handle(o, NPUEMU_IOC_BO_CLOSE, a.handle);
}

/* VA_UNMAP lets go of memory in a context that is lost as well. */
static void map_unmap(struct own *o, struct npuemu_ioc_va_map *a)
{
	struct npuemu_ioc_va_unmap u = { .va = a->va };

	if (!call(o, NPUEMU_IOC_VA_MAP, a, 0))
		call_anyway(o, o->p->via.fd, NPUEMU_IOC_VA_UNMAP, &u, 0);
}

static void s_map(struct own *o)
{
	struct npuemu_ioc_va_map a = { .va = o->va, .bytes = 8192, .handle = o->bo.handle };

	map_unmap(o, &a);
}

static void s_pin(struct own *o)
{
	struct npuemu_ioc_va_map a = {
		.va = (uintptr_t)o->host, .bytes = 8192, .flags = NPUEMU_VA_PINNED,
	};

	map_unmap(o, &a);
}

static void s_pageable(struct own *o)
{
	struct npuemu_ioc_va_map a = {
		.va = (uintptr_t)o->host, .bytes = 8192, .flags = NPUEMU_VA_PAGEABLE,
	};

	map_unmap(o, &a);
}

static void s_seg(struct own *o)
{
	struct npuemu_ioc_seg_create a = {
		.handle = o->bo.handle, .access = SYS_RWA, .bytes = 8192,
	};
	struct npuemu_ioc_seg_destroy d = { 0 };

	if (call(o, NPUEMU_IOC_SEG_CREATE, &a, 0))
		return;
	d.token_id = a.token_id;
	unmake(o, NPUEMU_IOC_SEG_DESTROY, &d);
}

static void s_rotate(struct own *o)
{
	struct npuemu_ioc_seg_rotate a = { .token_id = o->seg.token_id };

	call(o, NPUEMU_IOC_SEG_ROTATE, &a, 0);
}

static void s_cq(struct own *o)
{
	struct npuemu_ioc_cq_create a = { .depth = 64 };

	if (!call(o, NPUEMU_IOC_CQ_CREATE, &a, 0))
		unmake_handle(o, NPUEMU_IOC_CQ_DESTROY, a.handle);
}

static void s_event(struct own *o)
{
	struct npuemu_ioc_cq_eventfd a = { .handle = o->cq.handle, .fd = o->event };

	if (call(o, NPUEMU_IOC_CQ_EVENTFD, &a, 0))
		return;
	a.fd = -1;
	call(o, NPUEMU_IOC_CQ_EVENTFD, &a, 0);
}

static void s_rq(struct own *o)
{
	struct npuemu_ioc_rq_create a = {
		.device = o->p->device, .depth = 64, .max_sge = 1, .cq = o->cq.handle,
	};

	if (!call(o, NPUEMU_IOC_RQ_CREATE, &a, 0))
		unmake_handle(o, NPUEMU_IOC_RQ_DESTROY, a.id);
}

static void s_rq_query(struct own *o)
{
	struct npuemu_ioc_rq_query a = { .id = o->rq };

	call(o, NPUEMU_IOC_RQ_QUERY, &a, 0);
}

static void s_queue(struct own *o)
{
	struct npuemu_ioc_queue_create a = {
		.device = o->p->device, .type = RAW_SDMA, .depth = 64, .cq = o->cq.handle,
	};

	if (!call(o, NPUEMU_IOC_QUEUE_CREATE, &a, 0))
		unmake_handle(o, NPUEMU_IOC_QUEUE_DESTROY, a.id);
}

static void s_modify(struct own *o)
{
	struct npuemu_ioc_queue_modify a = { .id = o->q.id };

	o->state = o->state == NPUEMU_QS_READY ? NPUEMU_QS_SUSPENDED : NPUEMU_QS_READY;
	a.state = o->state;
	call(o, NPUEMU_IOC_QUEUE_MODIFY, &a, 0);
}

static void s_queue_query(struct own *o)
{
	struct npuemu_ioc_queue_query a = { .id = o->q.id };

	call(o, NPUEMU_IOC_QUEUE_QUERY, &a, 0);
}

static void wait_item(struct own *o, struct npuemu_ioc_wait_item *it, int also)
{
	struct npuemu_ioc_wait a = {
		.items = (uintptr_t)it, .nr = 1, .deadline_ns = npuemu_now_ns() + 3000000,
	};
	int rc = raw_ioctl(o->p->via.fd, NPUEMU_IOC_WAIT, &a);

	/* nothing happens, and that is as good as a success */
	check(o, _IOC_NR(NPUEMU_IOC_WAIT), rc == -ETIMEDOUT && !o->lost ? 0 : rc, also);
}

/* The flush-done entry may come, which is not another thread's loss. */
static void s_wait(struct own *o)
{
	struct npuemu_ioc_wait_item it = {
		.kind = NPUEMU_WAIT_CQ, .handle = o->cq.handle, .ci = o->cq.ci,
	};

	wait_item(o, &it, 0);
}

static void s_wait_idle(struct own *o)
{
	struct npuemu_ioc_wait_item it = {
		.kind = NPUEMU_WAIT_CQ, .handle = o->idle.handle, .ci = o->idle.ci,
	};

	wait_item(o, &it, 0);
}

/* In a context that goes on: no buffer of the table any more. */
static void s_wait_word(struct own *o)
{
	struct npuemu_ioc_wait_item it = {
		.kind = NPUEMU_WAIT_WORD, .va = (uintptr_t)o->bo.p, .value = 1,
	};

	wait_item(o, &it, o->p->home ? 0 : -EFAULT);
}

static void s_device(struct own *o)
{
	struct npuemu_ioc_device a = { .device = o->p->device };

	call(o, NPUEMU_IOC_DEVICE, &a, 0);
	call_anyway(o, o->p->ctl, NPUEMU_IOC_DEVICE, &a, 0);
}

static void s_link(struct own *o)
{
	struct npuemu_ioc_link a = { .from = o->p->device };

	call(o, NPUEMU_IOC_LINK, &a, 0);
	call_anyway(o, o->p->ctl, NPUEMU_IOC_LINK, &a, 0);
}

/* Looking around can be done by who has lost everything. */
static void s_processes(struct own *o)
{
	struct npuemu_ioc_process p[8];
	struct npuemu_ioc_list a = { .list = (uintptr_t)p, .nr = 8 };

	call_anyway(o, o->p->via.fd, NPUEMU_IOC_PROCESSES, &a, 0);
	call_anyway(o, o->p->ctl, NPUEMU_IOC_PROCESSES, &a, 0);
}

static void s_queues(struct own *o)
{
	struct npuemu_ioc_queue_query q[8];
	struct npuemu_ioc_list a = {
		.list = (uintptr_t)q, .nr = 8, .slot = o->p->r.q.slot,
	};

	call_anyway(o, o->p->via.fd, NPUEMU_IOC_QUEUES, &a, 0);
	call_anyway(o, o->p->ctl, NPUEMU_IOC_QUEUES, &a, 0);
}

/* Of nobody's queue. */
static void s_fault(struct own *o)
{
	struct npuemu_ioc_fault a = {
		.kind = NPUEMU_FAULT_DELAY, .slot = 0x7fffffff, .queue = 0x7fffffff,
		.device = o->p->device, .delay_us = 1, .rate_ppm = 1,
	};

	call_anyway(o, o->p->ctl, NPUEMU_IOC_FAULT_INJECT, &a, -ENOSPC);
	call_anyway(o, o->p->ctl, NPUEMU_IOC_FAULT_CLEAR, NULL, 0);
}

/* Against each other, and that of the test. */
static void s_reset(struct own *o)
{
	struct npuemu_ioc_device_ctl a = { .device = o->p->device };
	unsigned long cmd = o->p->unplug ? NPUEMU_IOC_DEVICE_UNPLUG : NPUEMU_IOC_DEVICE_RESET;

	call_anyway(o, o->p->ctl, cmd, &a, o->p->unplug ? -ENODEV : 0);
}

static void s_mmap(struct own *o)
{
	void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, o->p->via.fd,
		       (off_t)o->bo.offset);

	if (!check(o, MMAP, p == MAP_FAILED ? -errno : 0, 0))
		munmap(p, 8192);
}

static int node(struct own *o)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/npuemu%u", o->p->device);
	fd = open(path, O_RDWR | O_CLOEXEC);
	raw_is(fd < 0 ? -errno : -ENODEV, -ENODEV);
	if (fd < 0)
		o->gone[OPEN]++;
	else
		o->ok[OPEN]++;
	return fd;
}

/* A context that comes and goes meanwhile, with something in it. */
static void s_node(struct own *o)
{
	struct npuemu_ioc_bo_create bo = { .bytes = 3 * MIB };
	struct npuemu_ioc_cq_create cq = { .depth = 64 };
	struct npuemu_ioc_queue_create q = { .device = o->p->device, .depth = 64 };
	int fd = node(o), rc;

	if (fd < 0)
		return;
	rc = raw_ioctl(fd, NPUEMU_IOC_BO_CREATE, &bo);
	if (!rc)
		rc = raw_ioctl(fd, NPUEMU_IOC_CQ_CREATE, &cq);
	q.cq = cq.handle;
	if (!rc)
		rc = raw_ioctl(fd, NPUEMU_IOC_QUEUE_CREATE, &q);
	sys_true(!rc || rc == -ENODEV, "a new context: %d (%s)", rc, strerror(-rc));
	close(fd);
}

/* One more file of the context; the one it came with is just closing. */
static void s_join(struct own *o)
{
	struct npuemu_ioc_join j = { .fd = o->p->r.fd };
	int fd = node(o);

	if (fd < 0)
		return;
	call_anyway(o, fd, NPUEMU_IOC_JOIN, &j, -ENODEV);
	close(fd);
}

static void (*const steps[])(struct own *o) = {
	s_query, s_create, s_export, s_import, s_name, s_open, s_map, s_pin, s_pageable, s_seg,
	s_rotate, s_cq, s_event, s_rq, s_rq_query, s_queue, s_modify, s_queue_query, s_wait,
	s_wait_idle, s_wait_word, s_device, s_link, s_processes, s_queues, s_fault, s_mmap,
	s_node, s_join, s_reset,
};

#define STEPS	(sizeof(steps) / sizeof(steps[0]))
#define RESETS	(STEPS - 1)	/* the step that is s_reset() */

#endif
