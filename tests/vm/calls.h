/* SPDX-License-Identifier: MIT */
/*
 * A table of the driver's ioctls for test_ioctl.c and test_abi.c: each with a valid
 * argument, made by a function, and a way to undo it.  What is expected of them is
 * what include/uapi/npuemu/ioctl.h says.
 */
#ifndef TESTS_VM_CALLS_H
#define TESTS_VM_CALLS_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "raw.h"

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))
#define POISON		0xa5
#define ARG_MAX		512

/* A context with one of everything. */
static struct fixture {
	struct raw r;
	int ctl;
	int event;
	struct raw_bo bo;
	struct raw_bo spare;	/* not mapped, and not in the address table */
	struct raw_seg seg;
	struct raw_cq cq;
	struct raw_cq lone;	/* not shared, in use */
	struct raw_q q;
	uint32_t rq;
	int dmabuf;		/* of another context's buffer */
	struct raw other;
	uint64_t name[4];	/* likewise */
	unsigned char *host;
	struct npuemu_ioc_wait_item item;
	union {
		struct npuemu_ioc_process p[8];
		struct npuemu_ioc_queue_query q[8];
	} list;
} f;

static uint32_t rq_make(struct raw *r, uint32_t cq)
{
	struct npuemu_ioc_rq_create a = { .depth = 64, .max_sge = 1, .cq = cq };

	raw_is(raw_ioctl(r->fd, NPUEMU_IOC_RQ_CREATE, &a), 0);
	return a.id;
}

static int drop(unsigned long cmd, uint32_t handle)
{
	struct npuemu_ioc_handle a = { .handle = handle };

	return raw_ioctl(f.r.fd, cmd, &a);
}

static void fixture_make(void)
{
	struct npuemu_ioc_bo_export ex = { .flags = O_RDWR | O_CLOEXEC };
	struct npuemu_ioc_cq_create lone = { .depth = 64 };
	struct npuemu_ioc_bo_name name = { 0 };
	struct raw_bo theirs;

	memset(&f, 0, sizeof(f));
	raw_open(&f.r, 0);
	raw_open(&f.other, 0);
	f.ctl = raw_ctl();
	f.event = eventfd(0, EFD_CLOEXEC);
	sys_true(f.event >= 0, "eventfd");
	raw_bo_make(&f.r, &f.bo, 64 * KIB);
	raw_bo_create(&f.r, &f.spare, 64 * KIB);
	raw_seg_make(&f.bo, &f.seg, SYS_RWA);
	raw_cq_make(&f.r, &f.cq, 64);
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_CQ_CREATE, &lone), 0);
	f.lone.r = &f.r;
	f.lone.handle = lone.handle;
	f.rq = rq_make(&f.r, f.lone.handle);
	raw_q_make(&f.r, &f.q, &f.cq, 0, RAW_UDMA, 64);
	raw_bo_create(&f.other, &theirs, 8 * KIB);
	ex.handle = theirs.handle;
	raw_is(raw_ioctl(f.other.fd, NPUEMU_IOC_BO_EXPORT, &ex), 0);
	f.dmabuf = ex.fd;
	name.handle = theirs.handle;
	raw_is(raw_ioctl(f.other.fd, NPUEMU_IOC_BO_NAME, &name), 0);
	memcpy(f.name, name.name, sizeof(f.name));
	f.host = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sys_true(f.host != MAP_FAILED, "mmap");
	f.item = (struct npuemu_ioc_wait_item){
		.kind = NPUEMU_WAIT_WORD, .va = (uintptr_t)f.bo.p,
	};
}

static void fixture_drop(void)
{
	munmap(f.host, 64 * KIB);
	munmap(f.bo.p, f.bo.room);
	close(f.dmabuf);
	close(f.event);
	close(f.ctl);
	raw_close(&f.other);
	raw_close(&f.r);
}

/* ---- The calls ------------------------------------------------------------------ */

#define VALID(fn, type, ...) \
	static void fn(void *arg) \
	{ \
		type a = __VA_ARGS__; \
		memcpy(arg, &a, sizeof(a)); \
	}

VALID(v_query, struct npuemu_ioc_query, { 0 })
VALID(v_create, struct npuemu_ioc_bo_create, { .bytes = 5000 })
VALID(v_export, struct npuemu_ioc_bo_export,
      { .handle = f.bo.handle, .flags = O_RDWR | O_CLOEXEC })
VALID(v_import, struct npuemu_ioc_bo_import, { .fd = f.dmabuf })
VALID(v_name, struct npuemu_ioc_bo_name, { .handle = f.bo.handle })
VALID(v_open, struct npuemu_ioc_bo_open,
      { .name = { f.name[0], f.name[1], f.name[2], f.name[3] } })
VALID(v_map, struct npuemu_ioc_va_map,
      { .va = 0x100000000000, .bytes = 8192, .offset = 4096, .handle = f.spare.handle })
VALID(v_seg, struct npuemu_ioc_seg_create,
      { .handle = f.bo.handle, .access = SYS_RWA, .offset = 4096, .bytes = 8192,
	.va = 0x7000 })
VALID(v_rotate, struct npuemu_ioc_seg_rotate, { .token_id = f.seg.token_id })
VALID(v_cq, struct npuemu_ioc_cq_create, { .depth = 64, .flags = NPUEMU_CQF_TIMED })
VALID(v_event, struct npuemu_ioc_cq_eventfd, { .handle = f.cq.handle, .fd = f.event })
VALID(v_rq, struct npuemu_ioc_rq_create, { .depth = 64, .max_sge = 2, .cq = f.cq.handle })
VALID(v_rq_query, struct npuemu_ioc_rq_query, { .id = f.rq })
VALID(v_queue, struct npuemu_ioc_queue_create,
      { .device = 1, .depth = 64, .cq = f.cq.handle, .rq = f.rq })
VALID(v_modify, struct npuemu_ioc_queue_modify,
      { .id = f.q.id, .state = NPUEMU_QS_SUSPENDED })
VALID(v_queue_query, struct npuemu_ioc_queue_query, { .id = f.q.id })
VALID(v_wait, struct npuemu_ioc_wait, { .items = (uintptr_t)&f.item, .nr = 1 })
VALID(v_device, struct npuemu_ioc_device, { .device = 1 })
VALID(v_link, struct npuemu_ioc_link, { .from = 1 })
VALID(v_procs, struct npuemu_ioc_list, { .list = (uintptr_t)&f.list, .nr = 8 })
VALID(v_queues, struct npuemu_ioc_list,
      { .list = (uintptr_t)&f.list, .nr = 8, .slot = f.r.q.slot })
/* of nobody's queue */
VALID(v_fault, struct npuemu_ioc_fault,
      { .kind = NPUEMU_FAULT_DELAY, .slot = 0x7fffffff, .queue = 0x7fffffff,
	.device = NPUEMU_ANY, .delay_us = 1, .rate_ppm = 1 })
VALID(v_reset, struct npuemu_ioc_device_ctl, { .device = 1 })

/* What another call made, to be unmade by this one. */
static void v_close(void *arg)
{
	struct npuemu_ioc_bo_create a = { .bytes = 4096 };
	struct npuemu_ioc_handle h = { 0 };

	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_BO_CREATE, &a), 0);
	h.handle = a.handle;
	memcpy(arg, &h, sizeof(h));
}

static void v_unmap(void *arg)
{
	struct npuemu_ioc_va_unmap a = { .va = 0x200000000000 };

	/* maybe left there by a call that was refused */
	raw_va_unmap(&f.r, a.va);
	raw_is(raw_va_map(&f.r, a.va, 4096, f.spare.handle, 0, 0), 0);
	memcpy(arg, &a, sizeof(a));
}

static void v_seg_destroy(void *arg)
{
	struct npuemu_ioc_seg_destroy d = { 0 };
	struct raw_seg s;

	raw_seg_make(&f.bo, &s, NPUEMU_ACCESS_READ);
	d.token_id = s.token_id;
	memcpy(arg, &d, sizeof(d));
}

static void v_cq_destroy(void *arg)
{
	struct npuemu_ioc_handle h = { 0 };
	struct raw_cq cq;

	raw_cq_make(&f.r, &cq, 64);
	h.handle = cq.handle;
	memcpy(arg, &h, sizeof(h));
}

static void v_rq_destroy(void *arg)
{
	struct npuemu_ioc_handle h = { .handle = rq_make(&f.r, f.cq.handle) };

	memcpy(arg, &h, sizeof(h));
}

static void v_queue_destroy(void *arg)
{
	struct npuemu_ioc_handle h = { 0 };
	struct raw_q q;

	raw_q_make(&f.r, &q, &f.cq, 1, RAW_SDMA, 64);
	h.handle = q.id;
	memcpy(arg, &h, sizeof(h));
}

#define UNDO(fn, type, ...) \
	static void fn(void *arg) \
	{ \
		type a; \
		memcpy(&a, arg, sizeof(a)); \
		__VA_ARGS__; \
	}

UNDO(u_create, struct npuemu_ioc_bo_create, raw_is(raw_bo_close(&f.r, a.handle), 0))
UNDO(u_export, struct npuemu_ioc_bo_export, raw_is(raw_sys(close(a.fd)), 0))
UNDO(u_import, struct npuemu_ioc_bo_import, raw_is(raw_bo_close(&f.r, a.handle), 0))
UNDO(u_open, struct npuemu_ioc_bo_open, raw_is(raw_bo_close(&f.r, a.handle), 0))
UNDO(u_map, struct npuemu_ioc_va_map, raw_is(raw_va_unmap(&f.r, a.va), 0))
UNDO(u_seg, struct npuemu_ioc_seg_create,
     struct npuemu_ioc_seg_destroy d = { .token_id = a.token_id };
     raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_SEG_DESTROY, &d), 0))
UNDO(u_cq, struct npuemu_ioc_cq_create, raw_is(drop(NPUEMU_IOC_CQ_DESTROY, a.handle), 0))
UNDO(u_rq, struct npuemu_ioc_rq_create, raw_is(drop(NPUEMU_IOC_RQ_DESTROY, a.id), 0))
UNDO(u_queue, struct npuemu_ioc_queue_create,
     raw_is(drop(NPUEMU_IOC_QUEUE_DESTROY, a.id), 0))
UNDO(u_modify, struct npuemu_ioc_queue_modify, (void)a;
     raw_is(raw_modify(&f.q, NPUEMU_QS_READY), 0))

static void u_fault(void *arg)
{
	(void)arg;
	raw_is(raw_ioctl(f.ctl, NPUEMU_IOC_FAULT_CLEAR, NULL), 0);
}

/* RESET takes what there is on device 1, which is nothing that others need. */
enum { DEV = 1, CTL = 2, ADMIN = 4, DAMAGES = 8 };

static const struct call {
	const char *name;
	unsigned long cmd;
	unsigned int on;
	void (*valid)(void *arg);
	void (*undo)(void *arg);
	/* out fields: up to two ranges of bytes */
	unsigned short out[4];
} calls[] = {
#define OUT(type, from, to) \
	offsetof(struct type, from), \
	(unsigned short)(offsetof(struct type, to) + sizeof(((struct type *)0)->to))
#define CALL(nr, where, valid, undo, ...) \
	[_IOC_NR(NPUEMU_IOC_##nr)] = { \
		#nr, NPUEMU_IOC_##nr, where, valid, undo, { __VA_ARGS__ } }
	CALL(QUERY, DEV | CTL, v_query, NULL, OUT(npuemu_ioc_query, version, soc)),
	CALL(BO_CREATE, DEV, v_create, u_create, OUT(npuemu_ioc_bo_create, handle, map_offset)),
	CALL(BO_CLOSE, DEV, v_close, NULL),
	CALL(BO_EXPORT, DEV, v_export, u_export, OUT(npuemu_ioc_bo_export, fd, fd)),
	CALL(BO_IMPORT, DEV, v_import, u_import, OUT(npuemu_ioc_bo_import, handle, map_offset)),
	CALL(BO_NAME, DEV, v_name, NULL, OUT(npuemu_ioc_bo_name, name, name)),
	CALL(BO_OPEN, DEV, v_open, u_open, OUT(npuemu_ioc_bo_open, handle, owner_slot)),
	CALL(VA_MAP, DEV, v_map, u_map),
	CALL(VA_UNMAP, DEV, v_unmap, NULL),
	CALL(SEG_CREATE, DEV, v_seg, u_seg, OUT(npuemu_ioc_seg_create, token_id, token_id),
	     OUT(npuemu_ioc_seg_create, eid, eid)),
	CALL(SEG_ROTATE, DEV, v_rotate, NULL),
	CALL(SEG_DESTROY, DEV, v_seg_destroy, NULL),
	CALL(CQ_CREATE, DEV, v_cq, u_cq, OUT(npuemu_ioc_cq_create, handle, times)),
	CALL(CQ_DESTROY, DEV, v_cq_destroy, NULL),
	CALL(CQ_EVENTFD, DEV, v_event, NULL),
	CALL(RQ_CREATE, DEV, v_rq, u_rq, OUT(npuemu_ioc_rq_create, id, eid)),
	CALL(RQ_DESTROY, DEV, v_rq_destroy, NULL),
	CALL(RQ_QUERY, DEV, v_rq_query, NULL, OUT(npuemu_ioc_rq_query, device, consumed),
	     OUT(npuemu_ioc_rq_query, eid, eid)),
	CALL(QUEUE_CREATE, DEV, v_queue, u_queue, OUT(npuemu_ioc_queue_create, id, cq_pi),
	     OUT(npuemu_ioc_queue_create, eid, eid)),
	CALL(QUEUE_DESTROY, DEV, v_queue_destroy, NULL),
	CALL(QUEUE_MODIFY, DEV, v_modify, u_modify, OUT(npuemu_ioc_queue_modify, cq_pi, was)),
	CALL(QUEUE_QUERY, DEV, v_queue_query, NULL, OUT(npuemu_ioc_queue_query, device, cause)),
	CALL(WAIT, DEV, v_wait, NULL, OUT(npuemu_ioc_wait, ready, ready)),
	CALL(DEVICE, DEV | CTL, v_device, NULL, OUT(npuemu_ioc_device, server, pad)),
	CALL(LINK, DEV | CTL, v_link, NULL, OUT(npuemu_ioc_link, latency_ns, name)),
	CALL(PROCESSES, DEV | CTL, v_procs, NULL, OUT(npuemu_ioc_list, total, total)),
	CALL(QUEUES, DEV | CTL, v_queues, NULL, OUT(npuemu_ioc_list, total, total)),
	CALL(FAULT_INJECT, CTL | ADMIN, v_fault, u_fault),
	CALL(DEVICE_RESET, CTL | ADMIN | DAMAGES, v_reset, NULL),
};

static int fd_for(const struct call *c)
{
	return c->on & DEV ? f.r.fd : f.ctl;
}

/* The call's argument, its out fields poisoned. */
static void prepare(const struct call *c, void *arg)
{
	memset(arg, 0, ARG_MAX);
	c->valid(arg);
	for (int i = 0; i < 4; i += 2)
		memset((char *)arg + c->out[i], POISON, c->out[i + 1] - c->out[i]);
}

static void undo(const struct call *c, void *arg)
{
	if (c->undo)
		c->undo(arg);
}

#define for_calls(c) \
	for (const struct call *c = calls; c < calls + COUNT(calls); c++) \
		if (c->name)

static void is(const struct call *c, const char *what, long rc, long want)
{
	if (rc != want)
		sys_fail(__FILE__, __LINE__, "%s, %s: %ld (%s), not %ld (%s)", c->name, what, rc,
			 strerror((int)-rc), want, strerror((int)-want));
}

#endif
