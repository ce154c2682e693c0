// SPDX-License-Identifier: MIT
/*
 * Every ioctl with every field wrong, one by one: the documented errno, and the
 * object as it was.  A case is one field of a valid argument with another value.
 */
#include "calls.h"

/* The valid call works, and leaves nothing of out fields as it was. */
static void valid(void **state)
{
	uint64_t arg[ARG_MAX / 8];
	uint32_t word, bad;

	(void)state;
	memset(&bad, POISON, sizeof(bad));
	fixture_make();
	for_calls(c) {
		prepare(c, arg);
		is(c, "as it should be", raw_ioctl(fd_for(c), c->cmd, arg), 0);
		for (int i = 0; i < 4; i += 2)
			for (unsigned int at = c->out[i]; at + 4 <= c->out[i + 1]; at += 4) {
				memcpy(&word, (char *)arg + at, 4);
				sys_true(word != bad, "%s: byte %u is as it was", c->name, at);
			}
		undo(c, arg);
		if (c->on & DAMAGES) {
			fixture_drop();
			fixture_make();
		}
	}
	fixture_drop();
}

struct bad {
	unsigned int nr;
	unsigned int at;
	unsigned int bytes;
	uint64_t value;
	int err;
	const char *what;
};

#define B(nr, type, field, value, err) \
	{ _IOC_NR(NPUEMU_IOC_##nr), offsetof(struct npuemu_ioc_##type, field), \
	  sizeof(((struct npuemu_ioc_##type *)0)->field), value, -(err), \
	  #field " = " #value " must be " #err }

static void refused(const struct bad *b, unsigned int n)
{
	uint64_t arg[ARG_MAX / 8];

	for (; n--; b++) {
		const struct call *c = &calls[b->nr];

		prepare(c, arg);
		memcpy((char *)arg + b->at, &b->value, b->bytes);
		is(c, b->what, raw_ioctl(fd_for(c), c->cmd, arg), b->err);
	}
}

static void buffers(void **state)
{
	(void)state;
	fixture_make();
	{
		const struct bad bads[] = {
			B(BO_CREATE, bo_create, bytes, 0, EINVAL),
			B(BO_CREATE, bo_create, bytes, 1 * GIB + 1, ENOSPC),
			B(BO_CREATE, bo_create, bytes, UINT64_MAX, ENOSPC),
			B(BO_CREATE, bo_create, bytes, UINT64_MAX - 4095, ENOSPC),
			B(BO_CREATE, bo_create, bytes, 1ull << 63, ENOSPC),
			B(BO_CREATE, bo_create, flags, 1, EINVAL),
			B(BO_CREATE, bo_create, flags, 1u << 31, EINVAL),
			B(BO_CLOSE, handle, handle, 0, ENOENT),
			B(BO_CLOSE, handle, handle, UINT32_MAX, ENOENT),
			B(BO_CLOSE, handle, handle, f.q.id + 4096, ENOENT),
			B(BO_CLOSE, handle, handle, f.bo.handle, EBUSY),
			B(BO_CLOSE, handle, pad, 1, EINVAL),
			B(BO_EXPORT, bo_export, handle, 0, ENOENT),
			B(BO_EXPORT, bo_export, handle, 1u << 30, ENOENT),
			B(BO_EXPORT, bo_export, flags, O_WRONLY, EINVAL),
			B(BO_EXPORT, bo_export, flags, O_ACCMODE, EINVAL),
			B(BO_EXPORT, bo_export, flags, O_APPEND, EINVAL),
			B(BO_EXPORT, bo_export, flags, 1u << 31, EINVAL),
			B(BO_EXPORT, bo_export, pad, 1, EINVAL),
			B(BO_IMPORT, bo_import, fd, UINT32_MAX, EBADF),
			B(BO_IMPORT, bo_import, fd, 12345, EBADF),
			B(BO_IMPORT, bo_import, fd, f.event, EINVAL),
			B(BO_IMPORT, bo_import, fd, f.r.fd, EINVAL),
			B(BO_IMPORT, bo_import, flags, 1, EINVAL),
			B(BO_NAME, bo_name, handle, 0, ENOENT),
			B(BO_NAME, bo_name, handle, UINT32_MAX, ENOENT),
			B(BO_NAME, bo_name, pad, 1, EINVAL),
			B(BO_OPEN, bo_open, name[0], f.name[0] + 1, ESTALE),
			B(BO_OPEN, bo_open, name[1], f.name[1] ^ 1, ESTALE),
			B(BO_OPEN, bo_open, name[2], f.name[2] ^ 1ull << 63, ESTALE),
			B(BO_OPEN, bo_open, name[3], f.name[3] ^ 1, EINVAL),
			B(BO_OPEN, bo_open, pad, 1, EINVAL),
		};

		refused(bads, COUNT(bads));
	}
	fixture_drop();
}

static void places(void **state)
{
	(void)state;
	fixture_make();
	{
		const struct bad bads[] = {
			B(VA_MAP, va_map, va, 0x100000000001, EINVAL),
			B(VA_MAP, va_map, va, UINT64_MAX & ~4095ull, EINVAL),
			B(VA_MAP, va_map, va, UINT64_MAX - 4095 - 4096, EINVAL),
			B(VA_MAP, va_map, va, (uintptr_t)f.bo.p, EEXIST),
			B(VA_MAP, va_map, va, (uintptr_t)f.bo.p - 4096, EEXIST),
			B(VA_MAP, va_map, bytes, 0, EINVAL),
			B(VA_MAP, va_map, bytes, 64 * KIB - 4095, EINVAL),
			B(VA_MAP, va_map, bytes, UINT64_MAX, EINVAL),
			B(VA_MAP, va_map, offset, 1, EINVAL),
			B(VA_MAP, va_map, offset, 60 * KIB, EINVAL),
			B(VA_MAP, va_map, offset, UINT64_MAX - 4095, EINVAL),
			B(VA_MAP, va_map, handle, UINT32_MAX, ENOENT),
			B(VA_MAP, va_map, handle, 0, EINVAL),
			B(VA_MAP, va_map, flags, NPUEMU_VA_REST, EINVAL),
			B(VA_MAP, va_map, flags, NPUEMU_VA_REST | NPUEMU_VA_PAGEABLE, EINVAL),
			B(VA_MAP, va_map, flags, 16, EINVAL),
			B(VA_MAP, va_map, flags, 1u << 31, EINVAL),
			B(VA_MAP, va_map, flags, NPUEMU_VA_PINNED, EINVAL),
			B(VA_MAP, va_map, flags, NPUEMU_VA_PAGEABLE, EINVAL),
			B(VA_UNMAP, va_unmap, va, 0, ENOENT),
			B(VA_UNMAP, va_unmap, va, 0x200000000001, ENOENT),
			B(VA_UNMAP, va_unmap, va, UINT64_MAX, ENOENT),
		};

		refused(bads, COUNT(bads));
	}
	fixture_drop();
}

static void segments(void **state)
{
	(void)state;
	fixture_make();
	{
		const struct bad bads[] = {
			B(SEG_CREATE, seg_create, handle, 0, ENOENT),
			B(SEG_CREATE, seg_create, handle, UINT32_MAX, ENOENT),
			B(SEG_CREATE, seg_create, flags, 2, EINVAL),
			B(SEG_CREATE, seg_create, flags, 1u << 31, EINVAL),
			B(SEG_CREATE, seg_create, access, 0, EINVAL),
			B(SEG_CREATE, seg_create, access, NPUEMU_ACCESS_WRITE, EINVAL),
			B(SEG_CREATE, seg_create, access, NPUEMU_ACCESS_ATOMIC, EINVAL),
			B(SEG_CREATE, seg_create, access, SYS_RWA & ~NPUEMU_ACCESS_WRITE, EINVAL),
			B(SEG_CREATE, seg_create, access, NPUEMU_ACCESS_LOCAL | SYS_RWA, EINVAL),
			B(SEG_CREATE, seg_create, access, 16, EINVAL),
			B(SEG_CREATE, seg_create, offset, 60 * KIB, EINVAL),
			B(SEG_CREATE, seg_create, offset, UINT64_MAX - 4095, EINVAL),
			B(SEG_CREATE, seg_create, bytes, 0, EINVAL),
			B(SEG_CREATE, seg_create, bytes, 60 * KIB + 1, EINVAL),
			B(SEG_CREATE, seg_create, bytes, UINT64_MAX, EINVAL),
			B(SEG_CREATE, seg_create, va, 0x7001, EINVAL),
			B(SEG_CREATE, seg_create, va, UINT64_MAX - 4095, EINVAL),
			B(SEG_CREATE, seg_create, pad, 1, EINVAL),
			B(SEG_ROTATE, seg_rotate, token_id, f.seg.token_id + 4096, ENOENT),
			B(SEG_ROTATE, seg_rotate, token_id, f.seg.token_id + 1, ENOENT),
			B(SEG_ROTATE, seg_rotate, token_id, UINT32_MAX, ENOENT),
			B(SEG_DESTROY, seg_destroy, token_id, f.seg.token_id + (1u << 20), ENOENT),
			B(SEG_DESTROY, seg_destroy, token_id, UINT32_MAX, ENOENT),
			B(SEG_DESTROY, seg_destroy, pad, 1, EINVAL),
		};

		refused(bads, COUNT(bads));
	}
	fixture_drop();
}

static void cqs_and_rqs(void **state)
{
	(void)state;
	fixture_make();
	{
		const struct bad bads[] = {
			B(CQ_CREATE, cq_create, depth, 0, EINVAL),
			B(CQ_CREATE, cq_create, depth, 32, EINVAL),
			B(CQ_CREATE, cq_create, depth, 65, EINVAL),
			B(CQ_CREATE, cq_create, depth, 131072, EINVAL),
			B(CQ_CREATE, cq_create, depth, UINT32_MAX, EINVAL),
			B(CQ_CREATE, cq_create, flags, 4, EINVAL),
			B(CQ_CREATE, cq_create, flags, 1u << 31, EINVAL),
			B(CQ_DESTROY, handle, handle, 0, ENOENT),
			B(CQ_DESTROY, handle, handle, UINT32_MAX, ENOENT),
			B(CQ_DESTROY, handle, handle, f.cq.handle, EBUSY),
			B(CQ_DESTROY, handle, handle, f.lone.handle, EBUSY),
			B(CQ_DESTROY, handle, pad, 1, EINVAL),
			B(CQ_EVENTFD, cq_eventfd, handle, 0, ENOENT),
			B(CQ_EVENTFD, cq_eventfd, handle, UINT32_MAX, ENOENT),
			B(CQ_EVENTFD, cq_eventfd, fd, 12345, EBADF),
			B(CQ_EVENTFD, cq_eventfd, fd, UINT32_MAX - 1, EBADF),
			B(CQ_EVENTFD, cq_eventfd, fd, f.ctl, EINVAL),
			B(RQ_CREATE, rq_create, device, 2, EINVAL),
			B(RQ_CREATE, rq_create, device, UINT32_MAX, EINVAL),
			B(RQ_CREATE, rq_create, depth, 0, EINVAL),
			B(RQ_CREATE, rq_create, depth, 96, EINVAL),
			B(RQ_CREATE, rq_create, depth, 65536, EINVAL),
			B(RQ_CREATE, rq_create, max_sge, 0, EINVAL),
			B(RQ_CREATE, rq_create, max_sge, 3, EINVAL),
			B(RQ_CREATE, rq_create, max_sge, 16, EINVAL),
			B(RQ_CREATE, rq_create, cq, 0, ENOENT),
			B(RQ_CREATE, rq_create, cq, UINT32_MAX, ENOENT),
			B(RQ_CREATE, rq_create, cq, f.lone.handle, EBUSY),
			B(RQ_CREATE, rq_create, flags, 2, EINVAL),
			B(RQ_CREATE, rq_create, flags, 1u << 31 | NPUEMU_RQF_TOKEN, EINVAL),
			B(RQ_CREATE, rq_create, token_value, 1, EINVAL),
			B(RQ_CREATE, rq_create, token_value, UINT32_MAX, EINVAL),
			B(RQ_DESTROY, handle, handle, 0, ENOENT),
			B(RQ_DESTROY, handle, handle, f.rq + 4096, ENOENT),
			B(RQ_DESTROY, handle, handle, UINT32_MAX, ENOENT),
			B(RQ_DESTROY, handle, pad, 1, EINVAL),
			B(RQ_QUERY, rq_query, id, 0, ENOENT),
			B(RQ_QUERY, rq_query, id, f.rq + 4096, ENOENT),
			B(RQ_QUERY, rq_query, id, UINT32_MAX, ENOENT),
			B(RQ_QUERY, rq_query, pad, 1, EINVAL),
		};

		refused(bads, COUNT(bads));
	}
	fixture_drop();
}

static void queues(void **state)
{
	(void)state;
	fixture_make();
	{
		const struct bad bads[] = {
			B(QUEUE_CREATE, queue_create, device, 2, EINVAL),
			B(QUEUE_CREATE, queue_create, device, UINT32_MAX, EINVAL),
			B(QUEUE_CREATE, queue_create, type, 2, EINVAL),
			B(QUEUE_CREATE, queue_create, type, UINT32_MAX, EINVAL),
			B(QUEUE_CREATE, queue_create, depth, 0, EINVAL),
			B(QUEUE_CREATE, queue_create, depth, 32, EINVAL),
			B(QUEUE_CREATE, queue_create, depth, 100, EINVAL),
			B(QUEUE_CREATE, queue_create, depth, 65536, EINVAL),
			B(QUEUE_CREATE, queue_create, flags, 2, EINVAL),
			B(QUEUE_CREATE, queue_create, flags, 1u << 31, EINVAL),
			B(QUEUE_CREATE, queue_create, cq, 0, ENOENT),
			B(QUEUE_CREATE, queue_create, cq, UINT32_MAX, ENOENT),
			B(QUEUE_CREATE, queue_create, cq, f.lone.handle, EBUSY),
			B(QUEUE_CREATE, queue_create, rq, f.rq + 4096, ENOENT),
			B(QUEUE_CREATE, queue_create, rq, UINT32_MAX, ENOENT),
			B(QUEUE_CREATE, queue_create, rnr_retry, 8, EINVAL),
			B(QUEUE_CREATE, queue_create, rnr_retry, UINT32_MAX, EINVAL),
			B(QUEUE_CREATE, queue_create, pad, 1, EINVAL),
			B(QUEUE_DESTROY, handle, handle, 0, ENOENT),
			B(QUEUE_DESTROY, handle, handle, f.q.id + 4096, ENOENT),
			B(QUEUE_DESTROY, handle, handle, f.q.id & 4095, ENOENT),
			B(QUEUE_DESTROY, handle, handle, UINT32_MAX, ENOENT),
			B(QUEUE_DESTROY, handle, pad, 1, EINVAL),
			B(QUEUE_MODIFY, queue_modify, id, 0, ENOENT),
			B(QUEUE_MODIFY, queue_modify, id, f.q.id + 4096, ENOENT),
			B(QUEUE_MODIFY, queue_modify, state, 4, EINVAL),
			B(QUEUE_MODIFY, queue_modify, state, UINT32_MAX, EINVAL),
			B(QUEUE_QUERY, queue_query, id, 0, ENOENT),
			B(QUEUE_QUERY, queue_query, id, f.q.id + 4096, ENOENT),
			B(QUEUE_QUERY, queue_query, pad, 1, EINVAL),
		};

		refused(bads, COUNT(bads));
	}
	fixture_drop();
}

static void the_rest(void **state)
{
	(void)state;
	fixture_make();
	{
		const struct bad bads[] = {
			B(WAIT, wait, items, 0, EFAULT),
			B(WAIT, wait, items, 1ull << 63, EFAULT),
			B(WAIT, wait, nr, 65, EINVAL),
			B(WAIT, wait, nr, UINT32_MAX, EINVAL),
			B(WAIT, wait, flags, 2, EINVAL),
			B(WAIT, wait, flags, 1u << 31, EINVAL),
			B(WAIT, wait, pad, 1, EINVAL),
			B(DEVICE, device, device, 2, EINVAL),
			B(DEVICE, device, device, UINT32_MAX, EINVAL),
			B(LINK, link, from, 2, EINVAL),
			B(LINK, link, from, UINT32_MAX, EINVAL),
			B(LINK, link, to, 2, EINVAL),
			B(LINK, link, to, 1u << 31, EINVAL),
			B(PROCESSES, list, list, 0, EFAULT),
			B(PROCESSES, list, list, 1ull << 63, EFAULT),
			B(PROCESSES, list, slot, 1, EINVAL),
			B(PROCESSES, list, pad, 1, EINVAL),
			B(QUEUES, list, list, 0, EFAULT),
			B(QUEUES, list, list, UINT64_MAX, EFAULT),
			B(QUEUES, list, slot, f.other.q.slot + 1, ESRCH),
			B(QUEUES, list, slot, UINT32_MAX, ESRCH),
			B(QUEUES, list, pad, 1, EINVAL),
			B(FAULT_INJECT, fault, kind, 5, EINVAL),
			B(FAULT_INJECT, fault, kind, UINT32_MAX, EINVAL),
			B(FAULT_INJECT, fault, rate_ppm, 1000001, EINVAL),
			B(FAULT_INJECT, fault, rate_ppm, UINT32_MAX, EINVAL),
			B(FAULT_INJECT, fault, pad, 1, EINVAL),
			B(DEVICE_RESET, device_ctl, device, 2, EINVAL),
			B(DEVICE_RESET, device_ctl, device, UINT32_MAX - 1, EINVAL),
			B(DEVICE_RESET, device_ctl, pad, 1, EINVAL),
		};

		refused(bads, COUNT(bads));
	}
	fixture_drop();
}

/* ---- What takes more than one field ------------------------------------------------ */

static int wait_item(struct npuemu_ioc_wait_item it)
{
	return raw_wait(&f.r, &it, 1, 0, NULL);
}

static void wait_items(void **state)
{
	struct npuemu_ioc_wait_item cq = { .kind = NPUEMU_WAIT_CQ }, it;
	struct npuemu_ioc_wait_item word = { .kind = NPUEMU_WAIT_WORD, .value = 7 };
	struct npuemu_ioc_wait_item many[NPUEMU_WAIT_ITEMS];
	uint32_t ready;

	(void)state;
	fixture_make();
	cq.handle = f.cq.handle;
	word.va = (uintptr_t)f.bo.p;
	raw_is(wait_item(cq), -ETIMEDOUT);
	raw_is(wait_item(word), -ETIMEDOUT);
	for (uint32_t kind = 0; kind < 10; kind++) {
		it = word;
		it.kind = kind == 1 ? UINT32_MAX : kind == 2 ? 1u << 31 : kind;
		raw_is(wait_item(it), -EINVAL);
	}
	it = cq;
	it.handle = 0;
	raw_is(wait_item(it), -ENOENT);
	it = cq;
	it.handle = UINT32_MAX;
	raw_is(wait_item(it), -ENOENT);
	it = cq;
	it.ci = 1;	/* the producer index is 0, so something is different */
	raw_is(wait_item(it), 0);
	it = word;
	it.cmp = 7;
	raw_is(wait_item(it), -EINVAL);
	it = word;
	it.cmp = UINT32_MAX;
	raw_is(wait_item(it), -EINVAL);
	it = word;
	it.va += 4;
	raw_is(wait_item(it), -EINVAL);
	it = word;
	it.va = 4096;
	raw_is(wait_item(it), -EFAULT);
	it = word;
	it.va = 0;
	raw_is(wait_item(it), -EFAULT);
	it = word;
	it.va = UINT64_MAX - 7;
	raw_is(wait_item(it), -EFAULT);
	it = word;
	it.va += f.bo.room;
	raw_is(wait_item(it), -EFAULT);
	/* host memory is no buffer */
	raw_is(raw_va_map(&f.r, (uintptr_t)f.host, 4096, 0, 0, NPUEMU_VA_PINNED), 0);
	it = word;
	it.va = (uintptr_t)f.host;
	raw_is(wait_item(it), -EFAULT);
	/* as many as there may be, and which of them it is */
	for (int i = 0; i < NPUEMU_WAIT_ITEMS; i++)
		many[i] = word;
	many[NPUEMU_WAIT_ITEMS - 1].cmp = 1;
	raw_is(raw_wait(&f.r, many, NPUEMU_WAIT_ITEMS, 0, &ready), 0);
	sys_eq(ready, NPUEMU_WAIT_ITEMS - 1);
	fixture_drop();
}

static void joining(void **state)
{
	struct npuemu_ioc_join a = { 0 };
	struct npuemu_ioc_query q;
	struct raw_bo b;
	struct raw r;
	int fd;

	(void)state;
	fixture_make();
	fd = raw_node(1);
	a.fd = -1;
	raw_is(raw_ioctl(fd, NPUEMU_IOC_JOIN, &a), -EBADF);
	a.fd = 12345;
	raw_is(raw_ioctl(fd, NPUEMU_IOC_JOIN, &a), -EBADF);
	a.fd = f.event;
	raw_is(raw_ioctl(fd, NPUEMU_IOC_JOIN, &a), -EBADF);
	a.fd = f.ctl;
	raw_is(raw_ioctl(fd, NPUEMU_IOC_JOIN, &a), -EBADF);
	a.fd = f.r.fd;
	a.pad = 1;
	raw_is(raw_ioctl(fd, NPUEMU_IOC_JOIN, &a), -EINVAL);
	a.pad = 0;
	raw_is(raw_ioctl(f.ctl, NPUEMU_IOC_JOIN, &a), -ENOTTY);
	/* this one has something of its own */
	a.fd = fd;
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_JOIN, &a), -EBUSY);
	a.fd = f.r.fd;
	raw_is(raw_ioctl(fd, NPUEMU_IOC_JOIN, &a), 0);
	raw_is(raw_ioctl(fd, NPUEMU_IOC_JOIN, &a), -EBUSY);
	memset(&q, 0, sizeof(q));
	raw_is(raw_ioctl(fd, NPUEMU_IOC_QUERY, &q), 0);
	sys_eq(q.device, 1);
	sys_eq(q.slot, f.r.q.slot);
	/* one table of handles, memory of the other device */
	r = f.r;
	r.fd = fd;
	raw_bo_make(&r, &b, 4096);
	b.p[0] = 1;
	munmap(b.p, b.room);
	raw_is(raw_bo_close(&f.r, b.handle), 0);
	/* the windows are mapped through the file the context was opened with */
	sys_true(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, (off_t)q.rec_offset) == MAP_FAILED,
		 "records are mapped through a file that joined");
	close(fd);
	raw_is(raw_modify(&f.q, NPUEMU_QS_SUSPENDED), 0);
	fixture_drop();
}

static void host_memory(void **state)
{
	const uint32_t kinds[] = { NPUEMU_VA_PINNED, NPUEMU_VA_PAGEABLE };
	uint64_t va, hole;

	(void)state;
	fixture_make();
	va = (uintptr_t)f.host;
	hole = va + 32 * KIB;
	munmap(f.host + 32 * KIB, 4096);
	for (int i = 0; i < 2; i++) {
		raw_is(raw_va_map(&f.r, va, 8 * KIB, 0, 4096, kinds[i]), -EINVAL);
		raw_is(raw_va_map(&f.r, va, 8 * KIB, 0, 0, kinds[i] | NPUEMU_VA_REST), -EINVAL);
		raw_is(raw_va_map(&f.r, va, 8 * KIB, 0, 0, kinds[i] | 16), -EINVAL);
		raw_is(raw_va_map(&f.r, va, 0, 0, 0, kinds[i]), -EINVAL);
		raw_is(raw_va_map(&f.r, va, UINT64_MAX, 0, 0, kinds[i]), -EINVAL);
		raw_is(raw_va_map(&f.r, va, 1ull << 60, 0, 0, kinds[i]), -EFAULT);
		raw_is(raw_va_map(&f.r, 0xffff888000000000, 4096, 0, 0, kinds[i]), -EFAULT);
		raw_is(raw_va_map(&f.r, va + 3, 5001, 0, 0, kinds[i]), 0);
		raw_is(raw_va_map(&f.r, va + 5003, 5, 0, 0, kinds[i]), -EEXIST);
		raw_is(raw_va_map(&f.r, va + 5004, 5, 0, 0, kinds[i]), 0);
		raw_is(raw_va_unmap(&f.r, va + 3), 0);
		raw_is(raw_va_unmap(&f.r, va + 5004), 0);
		raw_is(raw_va_unmap(&f.r, va + 3), -ENOENT);
	}
	raw_is(raw_va_map(&f.r, va, 4096, 0, 0, NPUEMU_VA_PINNED | NPUEMU_VA_PAGEABLE), -EINVAL);
	raw_is(raw_va_map(&f.r, va, 4096, 0, 0, NPUEMU_VA_READONLY), -EINVAL);
	raw_is(raw_va_map(&f.r, hole, 4096, 0, 0, NPUEMU_VA_PINNED), -EFAULT);
	raw_is(raw_va_map(&f.r, va, 64 * KIB, 0, 0, NPUEMU_VA_PINNED), -EFAULT);
	sys_eq(raw_leaks("pinned_pages"), 0);
	mprotect(f.host, 4096, PROT_READ);
	raw_is(raw_va_map(&f.r, va, 4096, 0, 0, NPUEMU_VA_PINNED), -EFAULT);
	raw_is(raw_va_map(&f.r, va, 4096, 0, 0, NPUEMU_VA_PINNED | NPUEMU_VA_READONLY), 0);
	/* memory of the device cannot be pinned: it goes when the device does */
	raw_is(raw_va_unmap(&f.r, (uintptr_t)f.bo.p), 0);
	f.bo.p[0] = 1;
	raw_is(raw_va_map(&f.r, (uintptr_t)f.bo.p, 4096, 0, 0, NPUEMU_VA_PINNED), -EFAULT);
	fixture_drop();
}

static void unregistered(void **state)
{
	const uint32_t rest = NPUEMU_VA_REST | NPUEMU_VA_PAGEABLE;
	const uint64_t name = NPUEMU_VA_UNMAP_REST;
	uint64_t va;

	(void)state;
	fixture_make();
	va = (uintptr_t)f.host;
	for (int i = 0; i < 3; i++) {
		raw_is(raw_va_unmap(&f.r, name), -ENOENT);
		raw_is(raw_va_map(&f.r, 4096, 0, 0, 0, rest), -EINVAL);
		raw_is(raw_va_map(&f.r, 0, 4096, 0, 0, rest), -EINVAL);
		raw_is(raw_va_map(&f.r, 0, 0, 1, 0, rest), -EINVAL);
		raw_is(raw_va_map(&f.r, 0, 0, f.bo.handle, 0, rest), -EINVAL);
		raw_is(raw_va_map(&f.r, 0, 0, 0, 4096, rest), -EINVAL);
		raw_is(raw_va_map(&f.r, 0, 0, 0, 0, NPUEMU_VA_REST), -EINVAL);
		raw_is(raw_va_map(&f.r, 0, 0, 0, 0, rest | NPUEMU_VA_READONLY), -EINVAL);
		raw_is(raw_va_map(&f.r, 0, 0, 0, 0, rest | NPUEMU_VA_PINNED), -EINVAL);
		raw_is(raw_va_map(&f.r, 0, 0, 0, 0, NPUEMU_VA_REST | NPUEMU_VA_PINNED), -EINVAL);
		raw_is(raw_va_map(&f.r, 0, 0, 0, 0, rest | 16), -EINVAL);
		/* entries come and go as before, and it is none of them */
		raw_is(raw_va_map(&f.r, 0, 0, 0, 0, rest), 0);
		raw_is(raw_va_map(&f.r, 0, 0, 0, 0, rest), -EEXIST);
		raw_is(raw_va_map(&f.r, va, 4096, 0, 0, NPUEMU_VA_PAGEABLE), 0);
		raw_is(raw_va_map(&f.r, va, 4096, 0, 0, NPUEMU_VA_PAGEABLE), -EEXIST);
		raw_is(raw_va_unmap(&f.r, 0), -ENOENT);
		raw_is(raw_va_unmap(&f.r, va + 4096), -ENOENT);
		raw_is(raw_va_unmap(&f.r, va), 0);
		raw_is(raw_va_unmap(&f.r, va), -ENOENT);
		raw_is(raw_va_unmap(&f.r, name), 0);
	}
	raw_is(raw_va_map(&f.r, 0, 0, 0, 0, rest), 0);
	fixture_drop();
}

static void imports(void **state)
{
	struct npuemu_ioc_bo_import im = { .fd = f.dmabuf };
	struct npuemu_ioc_bo_export ex = { .flags = O_CLOEXEC };
	struct npuemu_ioc_seg_create seg = {
		.access = NPUEMU_ACCESS_READ, .bytes = 4096,
	};
	struct npuemu_ioc_bo_open op = { 0 };
	struct npuemu_ioc_bo_name name = { 0 };

	(void)state;
	fixture_make();
	memcpy(op.name, f.name, sizeof(op.name));
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_BO_OPEN, &op), 0);
	sys_eq(op.bytes, 8 * KIB);
	sys_eq(op.owner_slot, f.other.q.slot);
	im.fd = f.dmabuf;
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_BO_IMPORT, &im), -EEXIST);
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_BO_OPEN, &op), -EEXIST);
	raw_is(raw_ioctl(f.other.fd, NPUEMU_IOC_BO_OPEN, &op), -EEXIST);
	seg.handle = op.handle;
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_SEG_CREATE, &seg), -EPERM);
	raw_is(raw_bo_close(&f.r, op.handle), 0);
	/* without O_RDWR it can be exported, but not imported: a handle lets one write */
	ex.handle = f.spare.handle;
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_BO_EXPORT, &ex), 0);
	im.fd = ex.fd;
	raw_is(raw_ioctl(f.other.fd, NPUEMU_IOC_BO_IMPORT, &im), -EACCES);
	close(ex.fd);
	/* freed by its maker: a name is worth nothing, although the dma-buf lives */
	name.handle = f.spare.handle;
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_BO_NAME, &name), 0);
	raw_is(raw_bo_close(&f.r, f.spare.handle), 0);
	memcpy(op.name, name.name, sizeof(op.name));
	raw_is(raw_ioctl(f.other.fd, NPUEMU_IOC_BO_OPEN, &op), -ESTALE);
	raw_close(&f.other);
	raw_open(&f.other, 1);
	memcpy(op.name, f.name, sizeof(op.name));
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_BO_OPEN, &op), -ESTALE);
	fixture_drop();
}

/* RESET -> READY <-> SUSPENDED, any -> ERROR, any -> RESET */
static void states(void **state)
{
	static const char legal[4][4] = {
		[NPUEMU_QS_RESET] = { 1, 1, 0, 1 },
		[NPUEMU_QS_READY] = { 1, 0, 1, 1 },
		[NPUEMU_QS_SUSPENDED] = { 1, 1, 0, 1 },
		[NPUEMU_QS_ERROR] = { 1, 0, 0, 1 },
	};
	struct npuemu_ioc_queue_modify a;

	(void)state;
	fixture_make();
	for (uint32_t from = 0; from < 4; from++)
		for (uint32_t to = 0; to < 4; to++) {
			if (from == to && from != NPUEMU_QS_RESET)
				continue;	/* not said */
			raw_is(raw_modify(&f.q, NPUEMU_QS_RESET), 0);
			if (from == NPUEMU_QS_SUSPENDED)
				raw_is(raw_modify(&f.q, NPUEMU_QS_READY), 0);
			if (from != NPUEMU_QS_RESET)
				raw_is(raw_modify(&f.q, from), 0);
			memset(&a, POISON, sizeof(a));
			a.id = f.q.id;
			a.state = to;
			raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_QUEUE_MODIFY, &a),
			       legal[from][to] ? 0 : -EINVAL);
			if (legal[from][to])
				sys_eq(a.was, from);
			sys_eq(raw_query(&f.q).state, legal[from][to] ? to : from);
		}
	fixture_drop();
}

static void capacity(void **state)
{
	struct npuemu_ioc_bo_create a = { .bytes = 4096 };
	struct npuemu_ioc_device d = { 0 };
	struct raw_bo all;

	(void)state;
	fixture_make();
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_DEVICE, &d), 0);
	raw_bo_create(&f.r, &all, d.hbm_bytes - d.hbm_used);
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_BO_CREATE, &a), -ENOSPC);
	raw_is(raw_ioctl(f.other.fd, NPUEMU_IOC_BO_CREATE, &a), -ENOSPC);
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_DEVICE, &d), 0);
	sys_eq(d.hbm_used, d.hbm_bytes);
	raw_is(raw_bo_close(&f.r, all.handle), 0);
	a.bytes = 1;
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_BO_CREATE, &a), 0);
	sys_eq(a.room, 4096);
	fixture_drop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(valid),
		raw_test(buffers),
		raw_test(places),
		raw_test(segments),
		raw_test(cqs_and_rqs),
		raw_test(queues),
		raw_test(the_rest),
		raw_test(wait_items),
		raw_test(joining),
		raw_test(host_memory),
		raw_test(unregistered),
		raw_test(imports),
		raw_test(states),
		raw_test(capacity),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
