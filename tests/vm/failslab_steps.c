// SPDX-License-Identifier: MIT
/*
 * failslab: the calls that are made to fail, each with what it needs set up.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <npuemu/ioctl.h>
#include <npuemu/udma.h>
#include "failslab.h"

#define BYTES	(64u << 10)

/* What the steps find set up. */
static struct {
	int fd;			/* /dev/npuemu0 */
	int other;		/* /dev/npuemu1, not joined */
	int ctl;
	int event;
	int dmabuf;		/* of a buffer of ours */
	int foreign;		/* from /dev/udmabuf */
	struct npuemu_ioc_query about;
	u32 bo, spare;		/* the latter has no segment */
	u64 map_offset;
	u64 name[4];
	u32 token_id;
	u32 cq, rq, queue;
	u64 ring;
	u32 db_page;
	u64 mapped_at;		/* where engines see it */
	char *host;		/* memory of ours */
	void *map;		/* what a step mapped */
	int got;		/* descriptor that it got */
} f;

sigjmp_buf escape;

/* ---- Set up and take down ------------------------------------------------ */

static int call(int fd, u32 cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

static void must(const char *what, int rc)
{
	if (rc >= 0)
		return;
	printf("failslab: %s: %s, without an injected failure\n", what, strerror(-rc));
	exit(1);
}

static u32 bo_create(void)
{
	struct npuemu_ioc_bo_create a = { .bytes = BYTES };

	must("BO_CREATE", call(f.fd, NPUEMU_IOC_BO_CREATE, &a));
	f.map_offset = a.map_offset;
	return a.handle;
}

static void set_up_memory(void)
{
	struct npuemu_ioc_va_map va = { .bytes = BYTES };
	struct npuemu_ioc_seg_create seg = { .access = NPUEMU_ACCESS_READ, .bytes = 4096 };
	struct npuemu_ioc_bo_export out = { .flags = O_RDWR | O_CLOEXEC };
	struct npuemu_ioc_bo_name name = { 0 };
	struct udmabuf_create ud = { .size = BYTES, .flags = UDMABUF_FLAGS_CLOEXEC };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

	f.spare = bo_create();
	f.bo = bo_create();
	va.handle = f.bo;
	va.va = f.mapped_at = 0x100000000000ull;
	must("VA_MAP", call(f.fd, NPUEMU_IOC_VA_MAP, &va));
	seg.handle = f.bo;
	seg.va = va.va;
	must("SEG_CREATE", call(f.fd, NPUEMU_IOC_SEG_CREATE, &seg));
	f.token_id = seg.token_id;
	name.handle = out.handle = f.spare;
	must("BO_NAME", call(f.fd, NPUEMU_IOC_BO_NAME, &name));
	memcpy(f.name, name.name, sizeof(f.name));
	must("BO_EXPORT", call(f.fd, NPUEMU_IOC_BO_EXPORT, &out));
	f.dmabuf = out.fd;
	ud.memfd = memfd_create("failslab", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	must("ftruncate", ftruncate(ud.memfd, BYTES));
	must("seal", fcntl(ud.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	f.foreign = dev < 0 ? -1 : ioctl(dev, UDMABUF_CREATE, &ud);
	close(ud.memfd);
	close(dev);
}

static void set_up_queues(void)
{
	struct npuemu_ioc_cq_create cq = { .depth = 64, .flags = NPUEMU_CQF_SHARED };
	struct npuemu_ioc_rq_create rq = { .depth = 64, .max_sge = 1 };
	struct npuemu_ioc_queue_create q = { .depth = 64 };

	must("CQ_CREATE", call(f.fd, NPUEMU_IOC_CQ_CREATE, &cq));
	f.cq = rq.cq = q.cq = cq.handle;
	must("RQ_CREATE", call(f.fd, NPUEMU_IOC_RQ_CREATE, &rq));
	f.rq = rq.id;
	must("QUEUE_CREATE", call(f.fd, NPUEMU_IOC_QUEUE_CREATE, &q));
	f.queue = q.id;
	f.ring = q.ring;
	f.db_page = q.db_page;
}

void set_up(void)
{
	if (!f.host) {
		f.host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0);
		memset(f.host, 1, BYTES);
	}
	f.got = -1;
	f.map = MAP_FAILED;
	f.fd = open("/dev/npuemu0", O_RDWR | O_CLOEXEC);
	f.other = open("/dev/npuemu1", O_RDWR | O_CLOEXEC);
	f.ctl = open("/dev/npuemu-ctl", O_RDWR | O_CLOEXEC);
	f.event = eventfd(0, EFD_CLOEXEC);
	must("open of /dev/npuemu0, npuemu1 and npuemu-ctl", f.fd < 0 || f.other < 0 || f.ctl < 0 ?
	     -errno : 0);
	must("QUERY", call(f.fd, NPUEMU_IOC_QUERY, &f.about));
	set_up_memory();
	set_up_queues();
}

void take_down(void)
{
	const int fds[] = { f.got, f.dmabuf, f.foreign, f.event, f.other, f.ctl, f.fd };
	u32 i;

	if (f.map != MAP_FAILED)
		munmap(f.map, BYTES);
	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* ---- Steps: each returns 0 or -errno ------------------------------------- */

static int opened(const char *path)
{
	f.got = open(path, O_RDWR | O_CLOEXEC);
	return f.got < 0 ? -errno : 0;
}

static int step_open(void)
{
	return opened("/dev/npuemu0");
}

static int step_open_ctl(void)
{
	return opened("/dev/npuemu-ctl");
}

static int step_join(void)
{
	struct npuemu_ioc_join a = { .fd = f.fd };

	return call(f.other, NPUEMU_IOC_JOIN, &a);
}

static int step_query(void)
{
	struct npuemu_ioc_query a = { 0 };

	return call(f.fd, NPUEMU_IOC_QUERY, &a);
}

static int step_bo_create(void)
{
	struct npuemu_ioc_bo_create a = { .bytes = 40 << 20 };

	return call(f.fd, NPUEMU_IOC_BO_CREATE, &a);
}

static int step_bo_close(void)
{
	struct npuemu_ioc_handle a = { .handle = f.spare };

	return call(f.fd, NPUEMU_IOC_BO_CLOSE, &a);
}

static int step_bo_export(void)
{
	struct npuemu_ioc_bo_export a = { .handle = f.bo, .flags = O_RDWR | O_CLOEXEC };
	int rc = call(f.fd, NPUEMU_IOC_BO_EXPORT, &a);

	if (!rc)
		f.got = a.fd;
	return rc;
}

/* By a context that does not have it yet. */
static int step_bo_import(void)
{
	struct npuemu_ioc_bo_import a = { .fd = f.dmabuf };

	return call(f.other, NPUEMU_IOC_BO_IMPORT, &a);
}

static int step_bo_import_foreign(void)
{
	struct npuemu_ioc_bo_import a = { .fd = f.foreign };

	return f.foreign < 0 ? 0 : call(f.fd, NPUEMU_IOC_BO_IMPORT, &a);
}

static int step_bo_name(void)
{
	struct npuemu_ioc_bo_name a = { .handle = f.bo };

	return call(f.fd, NPUEMU_IOC_BO_NAME, &a);
}

static int step_bo_open(void)
{
	struct npuemu_ioc_bo_open a = { 0 };

	memcpy(a.name, f.name, sizeof(a.name));
	return call(f.other, NPUEMU_IOC_BO_OPEN, &a);
}

static int map_va(u32 handle, u64 va, u32 flags)
{
	struct npuemu_ioc_va_map a = { .handle = handle, .va = va, .bytes = BYTES, .flags = flags };

	return call(f.fd, NPUEMU_IOC_VA_MAP, &a);
}

static int step_va_map(void)
{
	return map_va(f.spare, 0x180000000000ull, 0);
}

static int step_va_map_pinned(void)
{
	return map_va(0, (u64)f.host, NPUEMU_VA_PINNED);
}

static int step_va_map_pageable(void)
{
	return map_va(0, (u64)f.host, NPUEMU_VA_PAGEABLE);
}

static int step_va_map_rest(void)
{
	struct npuemu_ioc_va_map a = { .flags = NPUEMU_VA_REST | NPUEMU_VA_PAGEABLE };

	return call(f.fd, NPUEMU_IOC_VA_MAP, &a);
}

static int step_va_unmap(void)
{
	struct npuemu_ioc_va_unmap a = { .va = f.mapped_at };

	return call(f.fd, NPUEMU_IOC_VA_UNMAP, &a);
}

static int step_seg_create(void)
{
	struct npuemu_ioc_seg_create a = {
		.handle = f.spare, .access = NPUEMU_ACCESS_READ, .bytes = 4096,
	};

	return call(f.fd, NPUEMU_IOC_SEG_CREATE, &a);
}

static int step_seg_rotate(void)
{
	struct npuemu_ioc_seg_rotate a = { .token_id = f.token_id };

	return call(f.fd, NPUEMU_IOC_SEG_ROTATE, &a);
}

static int step_seg_destroy(void)
{
	struct npuemu_ioc_seg_destroy a = { .token_id = f.token_id };

	return call(f.fd, NPUEMU_IOC_SEG_DESTROY, &a);
}

static int step_cq_create(void)
{
	struct npuemu_ioc_cq_create a = { .depth = 4096, .flags = NPUEMU_CQF_TIMED };

	return call(f.fd, NPUEMU_IOC_CQ_CREATE, &a);
}

static int step_cq_eventfd(void)
{
	struct npuemu_ioc_cq_eventfd a = { .handle = f.cq, .fd = f.event };

	return call(f.fd, NPUEMU_IOC_CQ_EVENTFD, &a);
}

static int step_rq_create(void)
{
	struct npuemu_ioc_rq_create a = { .depth = 4096, .max_sge = 8, .cq = f.cq };

	return call(f.fd, NPUEMU_IOC_RQ_CREATE, &a);
}

static int step_rq_query(void)
{
	struct npuemu_ioc_rq_query a = { .id = f.rq };

	return call(f.fd, NPUEMU_IOC_RQ_QUERY, &a);
}

static int step_rq_destroy(void)
{
	struct npuemu_ioc_handle a = { .handle = f.rq };

	return call(f.fd, NPUEMU_IOC_RQ_DESTROY, &a);
}

static int step_queue_create(void)
{
	struct npuemu_ioc_queue_create a = { .depth = 4096, .cq = f.cq, .rq = f.rq, .type = 0 };

	return call(f.fd, NPUEMU_IOC_QUEUE_CREATE, &a);
}

static int step_queue_modify(void)
{
	struct npuemu_ioc_queue_modify a = { .id = f.queue, .state = NPUEMU_QS_RESET };

	return call(f.fd, NPUEMU_IOC_QUEUE_MODIFY, &a);
}

static int step_queue_query(void)
{
	struct npuemu_ioc_queue_query a = { .id = f.queue };

	return call(f.fd, NPUEMU_IOC_QUEUE_QUERY, &a);
}

static int step_queue_destroy(void)
{
	struct npuemu_ioc_handle a = { .handle = f.queue };

	return call(f.fd, NPUEMU_IOC_QUEUE_DESTROY, &a);
}

static int step_wait(void)
{
	struct npuemu_ioc_wait_item item[2] = {
		{ .kind = NPUEMU_WAIT_CQ, .handle = f.cq, .ci = 1 },
		{ .kind = NPUEMU_WAIT_WORD, .va = f.mapped_at, .cmp = 1 },
	};
	struct npuemu_ioc_wait a = { .items = (u64)item, .nr = 2, .deadline_ns = 1 };

	return call(f.fd, NPUEMU_IOC_WAIT, &a);
}

static int step_device(void)
{
	struct npuemu_ioc_device a = { .device = 1 };

	return call(f.ctl, NPUEMU_IOC_DEVICE, &a);
}

static int step_link(void)
{
	struct npuemu_ioc_link a = { .from = 0, .to = 1 };

	return call(f.ctl, NPUEMU_IOC_LINK, &a);
}

static int step_processes(void)
{
	static struct npuemu_ioc_process room[8];
	struct npuemu_ioc_list a = { .list = (u64)room, .nr = 8 };

	return call(f.ctl, NPUEMU_IOC_PROCESSES, &a);
}

static int step_queues(void)
{
	static struct npuemu_ioc_queue_query room[8];
	struct npuemu_ioc_list a = { .list = (u64)room, .nr = 8, .slot = f.about.slot };

	return call(f.ctl, NPUEMU_IOC_QUEUES, &a);
}

/* Of nobody here: it changes nothing. */
static int step_fault_inject(void)
{
	struct npuemu_ioc_fault a = {
		.slot = 12345, .queue = ~0u, .device = ~0u, .peer_slot = ~0u, .count = 1,
	};

	return call(f.ctl, NPUEMU_IOC_FAULT_INJECT, &a);
}

static int step_fault_clear(void)
{
	return call(f.ctl, NPUEMU_IOC_FAULT_CLEAR, NULL);
}

static int step_device_reset(void)
{
	struct npuemu_ioc_device_ctl a = { .device = 1 };

	return call(f.ctl, NPUEMU_IOC_DEVICE_RESET, &a);
}

/* ---- Mappings ------------------------------------------------------------ */

static int mapped(u64 off, u64 bytes)
{
	if (f.map != MAP_FAILED)
		munmap(f.map, BYTES);
	f.map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, (off_t)off);
	return f.map == MAP_FAILED ? -errno : 0;
}

static int step_mmap(void)
{
	return mapped(f.map_offset, BYTES);
}

static int step_mmap_rings(void)
{
	return mapped(f.about.ring_offset, BYTES);
}

/* As a program does: a failure is a signal. */
static int stored(void)
{
	if (sigsetjmp(escape, 1))
		return -EFAULT;
	*(volatile char *)f.map = 1;
	return 0;
}

static int touched(u64 off)
{
	int rc = f.map == MAP_FAILED ? mapped(off, BYTES) : 0;

	return rc ? rc : stored();
}

/* Backs a chunk. */
static int step_touch(void)
{
	return touched(f.map_offset);
}

static int step_touch_ring(void)
{
	return touched(f.about.ring_offset + f.ring);
}

static int step_touch_doorbell(void)
{
	return touched(f.about.db_offset + (u64)f.db_page * 4096);
}

static int step_touch_record(void)
{
	return touched(f.about.rec_offset);
}

static int step_dmabuf_mmap(void)
{
	if (f.map != MAP_FAILED)
		munmap(f.map, BYTES);
	f.map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, f.dmabuf, 0);
	if (f.map == MAP_FAILED)
		return -errno;
	return stored();
}

/* ---- Looking by files ---------------------------------------------------- */

static int read_all(const char *path)
{
	int fd = open(path, O_RDONLY), rc = 0;
	char buf[4096];
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		;
	if (n < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static int step_fdinfo(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", f.fd);
	return read_all(path);
}

static int step_debugfs(void)
{
	return read_all(LEAKS);
}

/* ---- All of them --------------------------------------------------------- */

const struct step steps[] = {
	{ "open", step_open, 0, 0, false },
	{ "open of npuemu-ctl", step_open_ctl, 0, 0, false },
	{ "JOIN", step_join, 0, 0, true },
	{ "QUERY", step_query, 0, 0, false },
	{ "BO_CREATE", step_bo_create, 0, 0, false },
	{ "BO_CLOSE", step_bo_close, 0, 0, true },
	{ "BO_EXPORT", step_bo_export, 0, 0, false },
	{ "BO_IMPORT", step_bo_import, 0, 0, true },
	{ "BO_IMPORT of a foreign one", step_bo_import_foreign, 0, 0, true },
	{ "BO_NAME", step_bo_name, 0, 0, false },
	{ "BO_OPEN", step_bo_open, 0, 0, true },
	{ "VA_MAP", step_va_map, 0, 0, true },
	{ "VA_MAP, pinned", step_va_map_pinned, 0, 0, true },
	{ "VA_MAP, pageable", step_va_map_pageable, 0, 0, true },
	{ "VA_MAP, the rest", step_va_map_rest, 0, 0, true },
	{ "VA_UNMAP", step_va_unmap, 0, 0, true },
	{ "SEG_CREATE", step_seg_create, 0, 0, false },
	{ "SEG_ROTATE", step_seg_rotate, 0, 0, false },
	{ "SEG_DESTROY", step_seg_destroy, 0, 0, true },
	{ "CQ_CREATE", step_cq_create, 0, 0, false },
	{ "CQ_EVENTFD", step_cq_eventfd, 0, 0, false },
	{ "RQ_CREATE", step_rq_create, 0, 0, false },
	{ "RQ_QUERY", step_rq_query, 0, 0, false },
	{ "RQ_DESTROY", step_rq_destroy, 0, 0, true },
	{ "QUEUE_CREATE", step_queue_create, 0, 0, false },
	{ "QUEUE_MODIFY", step_queue_modify, 0, 0, false },
	{ "QUEUE_QUERY", step_queue_query, 0, 0, false },
	{ "QUEUE_DESTROY", step_queue_destroy, 0, 0, true },
	{ "WAIT", step_wait, -ETIMEDOUT, 0, false },
	{ "DEVICE", step_device, 0, 0, false },
	{ "LINK", step_link, 0, 0, false },
	{ "PROCESSES", step_processes, 0, 0, false },
	{ "QUEUES", step_queues, 0, 0, false },
	{ "FAULT_INJECT", step_fault_inject, 0, 0, false },
	{ "FAULT_CLEAR", step_fault_clear, 0, 0, false },
	{ "DEVICE_RESET", step_device_reset, 0, 0, false },
	{ "mmap", step_mmap, 0, 0, false },
	{ "mmap of rings", step_mmap_rings, 0, 0, false },
	{ "first touch", step_touch, 0, 0, false },
	{ "first touch of a ring", step_touch_ring, 0, 0, false },
	{ "first touch of a doorbell", step_touch_doorbell, 0, 0, false },
	{ "first touch of a record", step_touch_record, 0, 0, false },
	{ "mmap and touch of a dma-buf", step_dmabuf_mmap, 0, 0, false },
	{ "fdinfo", step_fdinfo, 0, 0, false },
	{ "debugfs", step_debugfs, 0, 0, false },
	{ NULL, NULL, 0, 0, false }
};
