// SPDX-License-Identifier: MIT
/*
 * fuzz_ioctl: ioctls of queues, waiting, looking and disturbing; and how any of
 * them is called.  Each is filled in as it should be, with what the worker has; then,
 * often enough, something of it is spoiled: a field, its size, or the place it lies at.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fuzz.h"

static u32 any_device(struct fz *z)
{
	if (z->nfd && fz_below(z, 4))
		return z->dev[fz_below(z, z->nfd)];
	return fz_below(z, z->about.devices);
}

int fz_fd(struct fz *z)
{
	return z->nfd ? z->fd[fz_one_in(z, 3) ? fz_below(z, z->nfd) : 0] : -1;
}

/* ---- The call itself ----------------------------------------------------- */

static void spoil_fields(struct fz *z, u8 *arg, u32 bytes)
{
	u32 n = 1 + fz_below(z, 3), at;
	u64 v;

	while (n-- && bytes >= 4) {
		at = fz_below(z, bytes / 4) * 4;
		v = fz_number(z);
		memcpy(arg + at, &v, at + 8 <= bytes && fz_one_in(z, 2) ? 8 : 4);
	}
}

/* Another size, as of an older or a newer program. */
static u32 spoil_size(struct fz *z, u32 cmd, u8 *arg)
{
	u32 have = _IOC_SIZE(cmd), size = have;

	if (fz_one_in(z, 2)) {
		size = fz_below(z, have + 1);
	} else {
		size = have + 1 + fz_below(z, fz_one_in(z, 8) ? 3000 : 64);
		memset(arg + have, fz_one_in(z, 4), size - have);
	}
	return (cmd & ~((u32)_IOC_SIZEMASK << _IOC_SIZESHIFT)) | size << _IOC_SIZESHIFT;
}

/* Where the argument should not be. */
static void *spoil_place(struct fz *z, u8 *arg, u32 bytes)
{
	switch (fz_below(z, 6)) {
	case 0:
		return NULL;
	case 1:
		return (void *)(0xffff800000000000ull + fz_next(&z->rng) % (1ull << 44));
	case 2:
		return arg + 4096 - bytes / 2;	/* half of it is there */
	case 3:
		memcpy(z->arg, arg, bytes);
		return z->arg + 1;
	case 4:
		return z->readonly;
	default:
		/* memory of the device, maybe taken away at any time */
		return z->map.n ? (void *)fz_any(z, &z->map)->at : NULL;
	}
}

static int call(struct fz *z, int fd, u32 cmd, void *p, const void *arg)
{
	int rc;

	fz_begin(z, cmd, arg, _IOC_SIZE(cmd));
	rc = ioctl(fd, cmd, p) < 0 ? -errno : 0;
	z->lost = rc == -ENODEV ? z->lost + 1 : 0;
	return rc;
}

int fz_plain(struct fz *z, int fd, u32 cmd, void *arg)
{
	return call(z, fd, cmd, arg, arg);
}

int fz_ioctl(struct fz *z, int fd, u32 cmd, void *arg)
{
	u32 bytes = _IOC_SIZE(cmd), as = cmd;
	u8 copy[4096] = { 0 }, *p;
	int rc;

	memcpy(copy, arg, bytes);
	if (fz_one_in(z, 4))
		spoil_fields(z, copy, bytes);
	if (fz_one_in(z, 16))
		as = spoil_size(z, cmd, copy);
	bytes = _IOC_SIZE(as);
	/* right before a page that is not there: one byte too many faults */
	p = z->arg + 4096 - bytes;
	memcpy(p, copy, bytes);
	if (fz_one_in(z, 64)) {
		call(z, fd, as, spoil_place(z, p, bytes), copy);
		return -EFAULT;	/* whatever came, it was not told */
	}
	rc = call(z, fd, as, p, copy);
	if (!rc && bytes >= _IOC_SIZE(cmd))
		memcpy(arg, p, _IOC_SIZE(cmd));
	return !rc && bytes < _IOC_SIZE(cmd) ? -EOVERFLOW : rc;
}

#define ALONE	(1ull << 32)

u8 *fz_alone(u64 bytes)
{
	u8 *p = mmap(NULL, 2 * ALONE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		_exit(4);
	p = (u8 *)(((u64)p + ALONE - 1) & ~(ALONE - 1)) + ALONE / 2;
	if (mprotect(p, bytes, PROT_READ | PROT_WRITE))
		_exit(4);
	return p;
}

/* ---- Looking ------------------------------------------------------------- */

static int op_query(struct fz *z)
{
	struct npuemu_ioc_query a = { 0 };

	return fz_ioctl(z, fz_one_in(z, 4) ? z->ctl : fz_fd(z), NPUEMU_IOC_QUERY, &a);
}

static int op_device(struct fz *z)
{
	struct npuemu_ioc_device a = { .device = any_device(z) };

	return fz_ioctl(z, fz_one_in(z, 2) ? z->ctl : fz_fd(z), NPUEMU_IOC_DEVICE, &a);
}

static int op_link(struct fz *z)
{
	struct npuemu_ioc_link a = { .from = any_device(z), .to = any_device(z) };

	return fz_ioctl(z, fz_one_in(z, 2) ? z->ctl : fz_fd(z), NPUEMU_IOC_LINK, &a);
}

static int op_list(struct fz *z)
{
	bool queues = fz_one_in(z, 2);
	struct npuemu_ioc_list a = {
		.list = (u64)z->room,
		.nr = fz_below(z, 17),
		.slot = fz_one_in(z, 3) ? fz_below(z, 16) : z->about.slot,
	};

	if (fz_one_in(z, 32))
		a.list = fz_number(z);
	if (!queues)
		a.slot = 0;
	return fz_ioctl(z, fz_one_in(z, 2) ? z->ctl : fz_fd(z),
			queues ? NPUEMU_IOC_QUEUES : NPUEMU_IOC_PROCESSES, &a);
}

static int op_no_such(struct fz *z)
{
	u32 cmd = NPUEMU_IOC(fz_below(z, 256), u64);
	u64 a[512] = { 0 };

	if (fz_one_in(z, 2))
		cmd = (u32)fz_next(&z->rng) & ~((u32)_IOC_SIZEMASK << _IOC_SIZESHIFT);
	/* what the kernel knows for all files (FIOASYNC and the like) is not meant */
	if (_IOC_TYPE(cmd) != NPUEMU_IOC_MAGIC)
		cmd = _IOC(_IOC_DIR(cmd), 0xee, _IOC_NR(cmd), 8);
	/* not one that resets or unplugs */
	if (_IOC_NR(cmd) == 0x62 || _IOC_NR(cmd) == 0x63)
		cmd ^= 0x80;
	return call(z, fz_one_in(z, 2) ? z->ctl : fz_fd(z), cmd, a, a);
}

/* ---- Queues -------------------------------------------------------------- */

static u32 any_depth(struct fz *z)
{
	return 64u << (fz_one_in(z, 16) ? fz_below(z, 11) : fz_below(z, 3));
}

/* Mostly one of its own, sometimes one of the rig. */
static u32 any_id(struct fz *z, struct fz_set *s, u32 of_rig)
{
	struct fz_thing *t = fz_one_in(z, 8) ? NULL : fz_any(z, s);

	return t ? t->id : of_rig;
}

static int handle_destroy(struct fz *z, struct fz_set *s, u32 cmd)
{
	struct fz_thing *t = fz_any(z, s);
	struct npuemu_ioc_handle a = { .handle = t ? t->id : NOBODY };
	int rc = fz_ioctl(z, fz_fd(z), cmd, &a);

	if (t && (!rc || rc == -ENOENT))
		fz_drop(s, t);
	return rc;
}

static int op_cq_create(struct fz *z)
{
	struct npuemu_ioc_cq_create a = { .depth = any_depth(z), .flags = fz_below(z, 4) };
	int rc;

	if (z->cq.n == FZ_SET)
		return handle_destroy(z, &z->cq, NPUEMU_IOC_CQ_DESTROY);
	rc = fz_ioctl(z, fz_fd(z), NPUEMU_IOC_CQ_CREATE, &a);
	if (!rc)
		fz_add(&z->cq, a.handle, 0, a.ring, a.depth);
	return rc;
}

static int op_cq_destroy(struct fz *z)
{
	return handle_destroy(z, &z->cq, NPUEMU_IOC_CQ_DESTROY);
}

static int op_cq_eventfd(struct fz *z)
{
	struct npuemu_ioc_cq_eventfd a = { .handle = any_id(z, &z->cq, z->rig.cq), .fd = -1 };
	struct fz_thing *e;
	u64 v;

	if (z->event.n < 4)
		fz_add(&z->event, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), 0, 0, 0);
	e = fz_any(z, &z->event);
	if (fz_below(z, 3))
		a.fd = (int)e->id;
	if (read((int)e->id, &v, sizeof(v)) < 0 && errno == EBADF)
		fz_drop(&z->event, e);
	return fz_ioctl(z, fz_fd(z), NPUEMU_IOC_CQ_EVENTFD, &a);
}

static int op_rq_create(struct fz *z)
{
	struct npuemu_ioc_rq_create a = {
		.device = any_device(z),
		.depth = any_depth(z),
		.max_sge = 1u << fz_below(z, 4),
		.cq = any_id(z, &z->cq, z->rig.rcq),
		.user_data = fz_next(&z->rng),
		.flags = fz_one_in(z, 32) ? (u32)fz_next(&z->rng) : fz_below(z, 2),
	};
	int rc;

	if (a.flags ? fz_below(z, 2) : fz_one_in(z, 32))
		a.token_value = (u32)fz_next(&z->rng);
	if (z->rq.n == FZ_SET)
		return handle_destroy(z, &z->rq, NPUEMU_IOC_RQ_DESTROY);
	rc = fz_ioctl(z, fz_fd(z), NPUEMU_IOC_RQ_CREATE, &a);
	if (!rc)
		fz_add(&z->rq, a.id, 0, a.ring, a.depth);
	return rc;
}

static int op_rq_destroy(struct fz *z)
{
	return handle_destroy(z, &z->rq, NPUEMU_IOC_RQ_DESTROY);
}

static int op_rq_query(struct fz *z)
{
	struct npuemu_ioc_rq_query a = { .id = any_id(z, &z->rq, z->rig.rq) };

	return fz_ioctl(z, fz_fd(z), NPUEMU_IOC_RQ_QUERY, &a);
}

static int op_queue_create(struct fz *z)
{
	struct fz_thing *rq = fz_one_in(z, 3) ? fz_any(z, &z->rq) : NULL;
	struct npuemu_ioc_queue_create a = {
		.device = any_device(z),
		.type = fz_below(z, 2),
		.depth = any_depth(z),
		.flags = fz_below(z, 2),
		.cq = any_id(z, &z->cq, z->rig.cq),
		.rq = rq ? rq->id : 0,
		.rnr_retry = fz_below(z, 3),
		.ack_timeout_ms = 1 + fz_below(z, 50),
		.user_data = fz_next(&z->rng),
	};
	int rc;

	if (z->queue.n == FZ_SET)
		return handle_destroy(z, &z->queue, NPUEMU_IOC_QUEUE_DESTROY);
	rc = fz_ioctl(z, fz_fd(z), NPUEMU_IOC_QUEUE_CREATE, &a);
	if (!rc)
		fz_add(&z->queue, a.id, a.db_page, a.ring, a.depth);
	return rc;
}

static int op_queue_destroy(struct fz *z)
{
	return handle_destroy(z, &z->queue, NPUEMU_IOC_QUEUE_DESTROY);
}

static int op_queue_modify(struct fz *z)
{
	struct npuemu_ioc_queue_modify a = {
		.id = any_id(z, &z->queue, z->rig.queue[fz_below(z, FZ_QUEUES)].id),
		.state = fz_below(z, 4),
	};

	return fz_ioctl(z, fz_fd(z), NPUEMU_IOC_QUEUE_MODIFY, &a);
}

static int op_queue_query(struct fz *z)
{
	struct npuemu_ioc_queue_query a = {
		.id = any_id(z, &z->queue, z->rig.queue[fz_below(z, FZ_QUEUES)].id),
	};

	return fz_ioctl(z, fz_fd(z), NPUEMU_IOC_QUEUE_QUERY, &a);
}

/* ---- Waiting ------------------------------------------------------------- */

static int op_wait(struct fz *z)
{
	struct npuemu_ioc_wait_item *item = (void *)z->room;
	struct npuemu_ioc_wait a = {
		.items = (u64)item,
		.nr = fz_one_in(z, 16) ? fz_below(z, NPUEMU_WAIT_ITEMS + 1) : fz_below(z, 4),
		.flags = fz_below(z, 2),
		/* mostly over already */
		.deadline_ns = fz_one_in(z, 4) ? (int64_t)(fz_ms() + fz_below(z, 20)) * 1000000 : 0,
	};
	u32 i;

	memset(item, 0, NPUEMU_WAIT_ITEMS * sizeof(*item));
	for (i = 0; i < a.nr; i++) {
		struct npuemu_ioc_wait_item *it = &item[i];

		it->kind = 1 + fz_below(z, 2);
		if (it->kind == NPUEMU_WAIT_CQ) {
			it->handle = any_id(z, &z->cq, z->rig.cq);
			it->ci = fz_one_in(z, 2) ? 0 : z->rig.cq_ci;
		} else {
			it->va = z->rig.place[fz_below(z, 2)] + fz_below(z, FZ_BYTES / 8) * 8;
			it->cmp = fz_below(z, 7);
			it->value = fz_below(z, 4);
		}
		if (fz_one_in(z, 32))
			spoil_fields(z, (u8 *)it, sizeof(*it));
	}
	if (fz_one_in(z, 64))
		a.deadline_ns = (int64_t)fz_number(z);	/* SIGALRM ends it */
	return fz_ioctl(z, fz_fd(z), NPUEMU_IOC_WAIT, &a);
}

/* ---- Disturbing ---------------------------------------------------------- */

static int op_fault(struct fz *z)
{
	struct npuemu_ioc_fault a = {
		.kind = fz_below(z, 8),
		.slot = fz_one_in(z, 2) ? z->about.slot : ~0u,
		.queue = fz_one_in(z, 2) ? z->rig.queue[0].id : ~0u,
		.device = ~0u,
		.peer_slot = ~0u,
		.status = fz_one_in(z, 2) ? NPUEMU_ST_REM_ACCESS_ABORT : 0,
		.delay_us = fz_below(z, 2000),
		.rate_ppm = fz_below(z, 200000),
		.count = fz_below(z, 20),
		.seed = fz_next(&z->rng),
	};
	u32 none[2] = { 0 };

	if (fz_one_in(z, 2))
		return call(z, z->ctl, NPUEMU_IOC_FAULT_CLEAR, none, none);
	return fz_ioctl(z, z->ctl, NPUEMU_IOC_FAULT_INJECT, &a);
}

static int op_reset(struct fz *z)
{
	struct npuemu_ioc_device_ctl a = { .device = any_device(z) };

	if (z->shared->no_reset || fz_below(z, 20))
		return -EAGAIN;
	/* not spoiled: all devices at once would be too many resets */
	return fz_plain(z, z->ctl, NPUEMU_IOC_DEVICE_RESET, &a);
}

const struct fz_op fz_call_ops[] = {
	{ "QUERY", op_query, 40, 24, false },
	{ "DEVICE", op_device, 6, 1, false },
	{ "LINK", op_link, 6, 1, false },
	{ "PROCESSES, QUEUES", op_list, 20, 4, false },
	{ "no such ioctl", op_no_such, 40, 24, true },
	{ "CQ_CREATE", op_cq_create, 12, 1, false },
	{ "CQ_DESTROY", op_cq_destroy, 5, 1, false },
	{ "CQ_EVENTFD", op_cq_eventfd, 10, 1, false },
	{ "RQ_CREATE", op_rq_create, 10, 1, false },
	{ "RQ_DESTROY", op_rq_destroy, 5, 1, false },
	{ "RQ_QUERY", op_rq_query, 40, 24, false },
	{ "QUEUE_CREATE", op_queue_create, 10, 1, false },
	{ "QUEUE_DESTROY", op_queue_destroy, 5, 1, false },
	{ "QUEUE_MODIFY", op_queue_modify, 30, 6, false },
	{ "QUEUE_QUERY", op_queue_query, 60, 24, false },
	{ "WAIT", op_wait, 40, 3, false },
	{ "FAULT_INJECT, FAULT_CLEAR", op_fault, 2, 1, false },
	{ "DEVICE_RESET", op_reset, 1, 1, true },
	{ NULL, NULL, 0, 0, false }
};
