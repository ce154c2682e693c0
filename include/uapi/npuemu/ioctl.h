/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The ioctls of /dev/npuemuN and /dev/npuemu-ctl.
 *
 * Every open of a device makes a context: handles, addresses, segments and
 * queues of one process.  NPUEMU_IOC_JOIN makes further devices part of it.
 *
 * The structs may grow at their end.  The size in the ioctl number tells which
 * one the caller knows: what is missing is taken as 0; what is longer than the
 * driver's must be 0 beyond it, else -E2BIG.  Reserved and pad fields and
 * unknown flags must be 0, else -EINVAL.  "out" fields are ignored on input.
 *
 * Errors of all: -ENOTTY no such ioctl (or not on this kind of node), -EFAULT,
 * -E2BIG, -EINVAL, -ENODEV the device was unplugged or the context lost its
 * device to a reset, -EINTR/-ERESTARTSYS a signal, -ENOMEM.  Others are named
 * with each struct.  Handles are per context: -ENOENT is a handle that is not
 * one (of that kind), or not any more.
 */
#ifndef _UAPI_NPUEMU_IOCTL_H
#define _UAPI_NPUEMU_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define NPUEMU_UAPI_VERSION	1
#define NPUEMU_IOC_MAGIC	0xb5

/* Limits; beyond them -ENOSPC or -EINVAL. */
#define NPUEMU_CTX_BOS		16384
#define NPUEMU_CTX_SEGS		4096	/* a token id: index | generation << 12 */
#define NPUEMU_CTX_QUEUES	4096	/* likewise a queue id or RQ id; index 0 is none */
#define NPUEMU_CTX_CQS		8192
#define NPUEMU_CTX_PLACES	65536
#define NPUEMU_WAIT_ITEMS	64
#define NPUEMU_CAUSE_LEN	96

/* ---- The device and the context ------------------------------------------ */

#define NPUEMU_CAP_PAGEABLE	0x1u	/* NPUEMU_VA_PAGEABLE */
#define NPUEMU_CAP_DMABUF	0x2u
#define NPUEMU_CAP_EVENTFD	0x4u

struct npuemu_ioc_query {	/* all out */
	__u32 version;		/* NPUEMU_UAPI_VERSION */
	__u32 caps;
	__u32 device;		/* this node's; ~0: npuemu-ctl */
	__u32 devices;
	__u32 servers;
	__u32 generation;
	__u32 has_udma;
	__u32 slot;		/* of the context; ~0: npuemu-ctl */
	__u32 board_id;
	__u32 poll_us;
	__u64 hbm_bytes;	/* of one device */
	__u64 budget_bytes;	/* all devices together may back so much */
	__u64 backed_bytes;
	/* windows of the context, to be mapped through the file it was opened
	 * with; offsets for mmap.  Rings: read and write.  Doorbells: a page a
	 * queue.  Records: 64 bytes each.
	 */
	__u64 ring_offset;
	__u64 ring_bytes;
	__u64 db_offset;
	__u64 db_bytes;
	__u64 rec_offset;
	__u64 rec_bytes;
	char machine[32];
	char soc[32];
};

/* Record 0 belongs to the context, the others to CQs and RQs. */
#define NPUEMU_REC_BYTES	64
#define NPUEMU_REC_BROKEN	0	/* u32, record 0: not 0 once the context is lost */
#define NPUEMU_REC_INDEX	0	/* u32, CQ: consumer index; RQ: producer index */
#define NPUEMU_REC_CONSUMED	32	/* u32, RQ: RQEs consumed, written by the driver */

/* The file's own, still empty context gives way to that of @fd, a file of another
 * npuemu device.  -EBUSY: something was made in it already; -EBADF, -EXDEV: of
 * another user.
 */
struct npuemu_ioc_join {
	__s32 fd;
	__u32 pad;
};

/* ---- Buffers: HBM --------------------------------------------------------- */

/* Zeroed, backed when touched.  -ENOSPC: the device's capacity, or handles. */
struct npuemu_ioc_bo_create {
	__u64 bytes;		/* rounded up to 4 KiB */
	__u32 flags;		/* 0 */
	__u32 handle;		/* out */
	__u64 room;		/* out: @bytes rounded up */
	__u64 map_offset;	/* out: for mmap through this device's file */
};

/* Also removes it from the address table.  -EBUSY: a segment lies in it. */
struct npuemu_ioc_handle {
	__u32 handle;
	__u32 pad;
};

/* A dma-buf.  @flags: O_CLOEXEC, O_RDWR.  -EOPNOTSUPP: a foreign one without O_RDWR. */
struct npuemu_ioc_bo_export {
	__u32 handle;
	__u32 flags;
	__s32 fd;		/* out */
	__u32 pad;
};

/* A dma-buf, own or foreign (-EOPNOTSUPP: not in system memory).  The file's
 * device is where a foreign one appears.  -EEXIST: this context has it; -EACCES:
 * the descriptor is not open for writing.
 */
struct npuemu_ioc_bo_import {
	__s32 fd;
	__u32 flags;		/* 0 */
	__u32 handle;		/* out */
	__u32 device;		/* out: whose file mmap goes through */
	__u64 bytes;		/* out */
	__u64 room;		/* out */
	__u64 map_offset;	/* out */
};

/* A name by which processes of the same user may open the buffer. */
struct npuemu_ioc_bo_name {
	__u32 handle;
	__u32 pad;
	__u64 name[4];		/* out: not to be guessed */
};

/* -EINVAL: not a name; -ESTALE: freed by its maker, or never given; -EACCES:
 * another user; -EEXIST: this context has it.
 */
struct npuemu_ioc_bo_open {
	__u64 name[4];
	__u32 handle;		/* out */
	__u32 device;		/* out */
	__u64 bytes;		/* out */
	__u64 room;		/* out */
	__u64 map_offset;	/* out */
	__u32 owner_slot;	/* out */
	__u32 pad;
};

/* ---- The address table: what local addresses in WQEs mean ------------------ */

#define NPUEMU_VA_READONLY	0x1u	/* engines may only read */
#define NPUEMU_VA_PINNED	0x2u	/* host memory, pinned: RLIMIT_MEMLOCK */
#define NPUEMU_VA_PAGEABLE	0x4u	/* host memory, copied in the caller's context */
/* With PAGEABLE alone, everything else 0: all addresses of user space that no
 * entry covers, now or later.  It is no entry itself, and there is one at most.
 */
#define NPUEMU_VA_REST		0x8u
#define NPUEMU_VA_UNMAP_REST	(~0ull)	/* what VA_UNMAP calls it */

/* -EEXIST: overlaps; -ENOMEM: RLIMIT_MEMLOCK, or more than 256 GiB pinned at once;
 * -EFAULT: not mapped; -ENOSPC: NPUEMU_CTX_PLACES; -ENODEV: also a buffer lost to
 * a reset; -EINTR: killed.
 */
struct npuemu_ioc_va_map {
	__u64 va;		/* page aligned for buffers */
	__u64 bytes;
	__u64 offset;		/* in the buffer */
	__u32 handle;		/* 0: host memory, one of PINNED and PAGEABLE */
	__u32 flags;
};

/* Returns when no engine uses it any more.  @va: as given, or
 * NPUEMU_VA_UNMAP_REST.  -ENOENT; -EINTR: killed while a page of it was being
 * copied.
 */
struct npuemu_ioc_va_unmap {
	__u64 va;
};

/* ---- Segments ---------------------------------------------------------------- */

#define NPUEMU_SEGF_NO_TOKEN	0x1u

/* Part of a buffer made by this context.  -EPERM: an imported one; -ENOSPC:
 * NPUEMU_CTX_SEGS.
 */
struct npuemu_ioc_seg_create {
	__u32 handle;
	__u32 flags;
	__u32 access;		/* NPUEMU_ACCESS_* */
	__u32 token_value;	/* in and out; 0: chosen at random */
	__u64 offset;
	__u64 bytes;
	__u64 va;		/* what remote WQEs will call it; congruent to offset mod 4096 */
	__u32 token_id;		/* out */
	__u32 pad;
	__u32 eid[4];		/* out */
};

struct npuemu_ioc_seg_rotate {
	__u32 token_id;
	__u32 token_value;	/* in and out; 0: random */
};

/* Returns when no engine uses it any more. */
struct npuemu_ioc_seg_destroy {
	__u32 token_id;
	__u32 pad;
};

/* ---- Queues ------------------------------------------------------------------- */

#define NPUEMU_CQF_TIMED	0x1u
#define NPUEMU_CQF_SHARED	0x2u

struct npuemu_ioc_cq_create {
	__u32 depth;
	__u32 flags;
	__u32 handle;		/* out */
	__u32 record;		/* out: index; NPUEMU_REC_INDEX is the consumer index */
	__u64 ring;		/* out: where in the ring window */
	__u64 times;		/* out: likewise, u64 an entry; ~0: not NPUEMU_CQF_TIMED */
};

/* NPUEMU_IOC_CQ_DESTROY takes npuemu_ioc_handle.  -EBUSY: in use. */

#define NPUEMU_RQF_TOKEN	0x1u	/* SENDs need the token; else anybody may send */

/* -EBUSY: the CQ has a user and is not NPUEMU_CQF_SHARED. */
struct npuemu_ioc_rq_create {
	__u32 device;
	__u32 depth;		/* RQEs */
	__u32 max_sge;		/* 1, 2, 4, 8 */
	__u32 cq;
	__u64 user_data;
	__u32 id;		/* out: also its handle */
	__u32 record;		/* out */
	__u64 ring;		/* out */
	__u32 eid[4];		/* out */
	__u32 flags;
	__u32 token_value;	/* NPUEMU_RQF_TOKEN: in and out; 0: random.  Else 0 */
};

struct npuemu_ioc_rq_query {
	__u32 id;
	__u32 device;		/* out */
	__u32 depth;		/* out */
	__u32 posted;		/* out */
	__u32 consumed;		/* out */
	__u32 pad;
	__u32 eid[4];		/* out */
};

#define NPUEMU_QF_ERROR_SUSPEND	0x1u

/* -EOPNOTSUPP: the machine has no such engine. */
struct npuemu_ioc_queue_create {
	__u32 device;
	__u32 type;		/* 0 UDMA, 1 SDMA */
	__u32 depth;		/* basic blocks */
	__u32 flags;
	__u32 cq;
	__u32 rq;		/* 0: none */
	__u32 rnr_retry;
	__u32 ack_timeout_ms;	/* 0: 8000 */
	__u64 user_data;
	__u32 id;		/* out: also its handle */
	__u32 db_page;		/* out: index of its doorbell page */
	__u64 ring;		/* out */
	__u32 cq_pi;		/* out: the CQ's producer index just now */
	__u32 pad;
	__u32 eid[4];		/* out */
};

struct npuemu_ioc_queue_modify {
	__u32 id;
	__u32 state;		/* enum npuemu_queue_state */
	__u32 cq_pi;		/* out */
	__u32 was;		/* out: the state before */
};

struct npuemu_ioc_counters {
	__u64 wqes;
	__u64 cqes;
	__u64 bytes;
	__u64 doorbells;
	__u64 errors;
	__u64 flushed;
	__u64 helped;
	__u64 faults;
	__u64 rnr;
	__u64 reserved[3];
};

struct npuemu_ioc_queue_query {
	__u32 id;
	__u32 pad;
	__u32 device;		/* out, as all below */
	__u32 type;
	__u32 state;
	__u32 pi;
	__u32 ci;
	__u32 depth;
	__u32 last_status;
	__u32 reserved;
	struct npuemu_ioc_counters cnt;
	char cause[NPUEMU_CAUSE_LEN];
};

/* Completions of the CQ also signal this eventfd; -1: no longer. */
struct npuemu_ioc_cq_eventfd {
	__u32 handle;
	__s32 fd;
};

/* ---- Waiting ---------------------------------------------------------------------- */

enum {
	NPUEMU_WAIT_CQ = 1,	/* the CQ's producer index is not @ci any more */
	NPUEMU_WAIT_WORD = 2,	/* the word at @va compares true */
};

struct npuemu_ioc_wait_item {
	__u32 kind;
	__u32 handle;		/* CQ */
	__u32 ci;		/* CQ */
	__u32 cmp;		/* WORD: 0 ==, 1 !=, 2 >=, 3 >, 4 <=, 5 <, 6 has a bit of */
	__u64 va;		/* WORD: aligned, in a buffer of the address table */
	__u64 value;		/* WORD */
};

#define NPUEMU_WAITF_NO_HELP	0x1u	/* do not run queues in this thread */

/*
 * Sleep until one of the items is ready, running queues of the context
 * meanwhile.  -ETIMEDOUT, -EFAULT (word not in a buffer), -EOWNERDEAD (the
 * maker of the word's buffer is gone), -EINTR/-ERESTARTSYS.
 */
struct npuemu_ioc_wait {
	__u64 items;		/* struct npuemu_ioc_wait_item [nr] */
	__u32 nr;		/* 0: only help, once; then 0 or -EAGAIN if there was nothing */
	__u32 flags;
	__s64 deadline_ns;	/* CLOCK_MONOTONIC, absolute */
	__u32 ready;		/* out: index of the first item that is */
	__u32 pad;
};

/* ---- Looking around; also on npuemu-ctl ---------------------------------------------- */

struct npuemu_ioc_device {
	__u32 device;
	__u32 server;		/* out, as all below */
	__u32 queues;
	__u32 processes;
	__u64 hbm_bytes;
	__u64 hbm_used;
	__u64 hbm_backed;
	__u64 engine_turns;
	__u64 engine_parks;
	__u64 engine_sleeps;
	__u64 db_faults;
	__u64 db_missed;	/* stores the watchdog had to find: 0, or a bug */
	__u32 dead;		/* unplugged */
	__u32 pad;
};

struct npuemu_ioc_link {
	__u32 from;
	__u32 to;
	__u32 latency_ns;	/* out, as all below */
	__u32 mbytes_per_s;
	__u64 wqes;
	__u64 bytes;
	char name[16];
};

struct npuemu_ioc_process {	/* an element */
	__u32 slot;
	__u32 pid;
	__u32 queues;
	__u32 segments;
	__u32 buffers;
	__u32 imports;
	__u64 hbm_used;
	__u64 hbm_backed;
	struct npuemu_ioc_counters cnt;
	__u64 engine_turns;
	__u64 engine_parks;
	__u64 engine_sleeps;
	__u64 doorbell_faults;
	char comm[16];
	char waits[96];
};

/* Up to @nr elements; @total: how many there are. */
struct npuemu_ioc_list {
	__u64 list;		/* npuemu_ioc_process[] or npuemu_ioc_queue_query[] */
	__u32 nr;
	__u32 slot;		/* queues: of which context; -ESRCH */
	__u32 total;		/* out */
	__u32 pad;
};

/* ---- Disturbing; npuemu-ctl only, CAP_SYS_ADMIN ------------------------------------------ */

struct npuemu_ioc_fault {
	__u32 kind;
	__u32 slot;
	__u32 queue;
	__u32 device;
	__u32 peer_slot;
	__u32 status;
	__u32 delay_us;
	__u32 rate_ppm;
	__u32 count;
	__u32 pad;
	__u64 seed;
};

#define NPUEMU_ALL_DEVICES	0xffffffffu

/* RESET: every context that uses the device loses what it has there, mappings
 * included; the device is as new.  UNPLUG: likewise, and it stays away.
 */
struct npuemu_ioc_device_ctl {
	__u32 device;		/* or NPUEMU_ALL_DEVICES */
	__u32 pad;
};

#define NPUEMU_IOC(nr, type)		_IOWR(NPUEMU_IOC_MAGIC, nr, type)

#define NPUEMU_IOC_QUERY		NPUEMU_IOC(0x00, struct npuemu_ioc_query)
#define NPUEMU_IOC_JOIN			NPUEMU_IOC(0x01, struct npuemu_ioc_join)
#define NPUEMU_IOC_BO_CREATE		NPUEMU_IOC(0x10, struct npuemu_ioc_bo_create)
#define NPUEMU_IOC_BO_CLOSE		NPUEMU_IOC(0x11, struct npuemu_ioc_handle)
#define NPUEMU_IOC_BO_EXPORT		NPUEMU_IOC(0x12, struct npuemu_ioc_bo_export)
#define NPUEMU_IOC_BO_IMPORT		NPUEMU_IOC(0x13, struct npuemu_ioc_bo_import)
#define NPUEMU_IOC_BO_NAME		NPUEMU_IOC(0x14, struct npuemu_ioc_bo_name)
#define NPUEMU_IOC_BO_OPEN		NPUEMU_IOC(0x15, struct npuemu_ioc_bo_open)
#define NPUEMU_IOC_VA_MAP		NPUEMU_IOC(0x18, struct npuemu_ioc_va_map)
#define NPUEMU_IOC_VA_UNMAP		NPUEMU_IOC(0x19, struct npuemu_ioc_va_unmap)
#define NPUEMU_IOC_SEG_CREATE		NPUEMU_IOC(0x20, struct npuemu_ioc_seg_create)
#define NPUEMU_IOC_SEG_ROTATE		NPUEMU_IOC(0x21, struct npuemu_ioc_seg_rotate)
#define NPUEMU_IOC_SEG_DESTROY		NPUEMU_IOC(0x22, struct npuemu_ioc_seg_destroy)
#define NPUEMU_IOC_CQ_CREATE		NPUEMU_IOC(0x30, struct npuemu_ioc_cq_create)
#define NPUEMU_IOC_CQ_DESTROY		NPUEMU_IOC(0x31, struct npuemu_ioc_handle)
#define NPUEMU_IOC_CQ_EVENTFD		NPUEMU_IOC(0x32, struct npuemu_ioc_cq_eventfd)
#define NPUEMU_IOC_RQ_CREATE		NPUEMU_IOC(0x34, struct npuemu_ioc_rq_create)
#define NPUEMU_IOC_RQ_DESTROY		NPUEMU_IOC(0x35, struct npuemu_ioc_handle)
#define NPUEMU_IOC_RQ_QUERY		NPUEMU_IOC(0x36, struct npuemu_ioc_rq_query)
#define NPUEMU_IOC_QUEUE_CREATE		NPUEMU_IOC(0x38, struct npuemu_ioc_queue_create)
#define NPUEMU_IOC_QUEUE_DESTROY	NPUEMU_IOC(0x39, struct npuemu_ioc_handle)
#define NPUEMU_IOC_QUEUE_MODIFY		NPUEMU_IOC(0x3a, struct npuemu_ioc_queue_modify)
#define NPUEMU_IOC_QUEUE_QUERY		NPUEMU_IOC(0x3b, struct npuemu_ioc_queue_query)
#define NPUEMU_IOC_WAIT			NPUEMU_IOC(0x40, struct npuemu_ioc_wait)
#define NPUEMU_IOC_DEVICE		NPUEMU_IOC(0x50, struct npuemu_ioc_device)
#define NPUEMU_IOC_LINK			NPUEMU_IOC(0x51, struct npuemu_ioc_link)
#define NPUEMU_IOC_PROCESSES		NPUEMU_IOC(0x52, struct npuemu_ioc_list)
#define NPUEMU_IOC_QUEUES		NPUEMU_IOC(0x53, struct npuemu_ioc_list)
#define NPUEMU_IOC_FAULT_INJECT		NPUEMU_IOC(0x60, struct npuemu_ioc_fault)
#define NPUEMU_IOC_FAULT_CLEAR		_IO(NPUEMU_IOC_MAGIC, 0x61)
#define NPUEMU_IOC_DEVICE_RESET		NPUEMU_IOC(0x62, struct npuemu_ioc_device_ctl)
#define NPUEMU_IOC_DEVICE_UNPLUG	NPUEMU_IOC(0x63, struct npuemu_ioc_device_ctl)

#endif
