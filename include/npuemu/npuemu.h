/* SPDX-License-Identifier: MIT */
/*
 * npuemu.h - open an emulated NPU and work with it: device memory, segments,
 * queues, completions.
 *
 * Conventions
 * - Functions return 0 (or a count) or a negative errno; npuemu_errmsg() then
 *   says what was wrong, where, and what to do, for the calling thread.
 * - Handles are checked: NULL, a destroyed handle or one of another kind gives
 *   -EBADF, never a crash.
 * - Structs with a first member @size are extensible: set it to sizeof().
 *   Reserved fields and unknown flags must be zero, else -EINVAL.
 * - Deadlines are absolute CLOCK_MONOTONIC nanoseconds (npuemu_deadline_ms()).
 * - Threads: every function may be called from any thread.  Posting to one
 *   queue, and polling one CQ, is for one thread at a time; different queues
 *   share no lock.
 * - fork: the child must not touch the parent's handles (calls give -EPERM); it
 *   may npuemu_open() a board of its own.  Rings are not inherited.
 *
 * The posting helpers (post.h) are inline and write straight into the ring.
 */
#ifndef NPUEMU_NPUEMU_H
#define NPUEMU_NPUEMU_H

#include <stddef.h>
#include <stdint.h>
#include <npuemu/udma.h>

#ifdef __cplusplus
extern "C" {
#endif

struct npuemu;		/* a board, opened by this process */
struct npuemu_buf;	/* a range of device memory, own or imported */
struct npuemu_mem;	/* host memory registered as a local place */
struct npuemu_seg;	/* memory others may reach, by token */
struct npuemu_cq;	/* completion queue (JFC) */
struct npuemu_rq;	/* receive queue (JFR) */
struct npuemu_queue;	/* send queue (jetty) */

/* What the calling thread's last failed call had to say; "" if none failed. */
const char *npuemu_errmsg(void);
const char *npuemu_version(void);
/* "REM_ACCESS_ABORT (3.2): ..." for the status of a completion. */
const char *npuemu_status_str(uint32_t status);

/* ---- Opening ---------------------------------------------------------- */

#define NPUEMU_OPEN_OBSERVE	0x1u	/* look only: no memory, no queues, no engine thread */
#define NPUEMU_OPEN_EXISTING	0x2u	/* -ENOENT rather than making a board */

struct npuemu_open_attr {
	uint32_t size;
	uint32_t flags;
	const char *board;	/* NULL: $NPUEMU_BOARD, else "default" */
	const char *machine;	/* NULL: $NPUEMU_MACHINE, else "950"; a name or a path */
	const char *host;	/* NULL: $NPUEMU_HOST, else "kernel" where it has devices, or "user" */
};

/*
 * Join a board, making it first if it does not exist.  @attr may be NULL.
 * A second open of the same board by the same process gives the same handle
 * with one more reference (observers each get their own).  Errors: -EINVAL (bad name or machine; the message
 * has file, line and column), -EBUSY (the board has another machine), -EUCLEAN
 * (the board is damaged: npuemu-ctl reset), -ENOSPC (all process slots taken),
 * -ENODEV (the host asked for is not there), -EACCES (somebody else's board, or
 * no right to open /dev/npuemuN).
 *
 * Host "kernel": the devices of npuemu.ko, which are one board whatever the name;
 * @machine must be the one the module was loaded with.
 */
int npuemu_open(const struct npuemu_open_attr *attr, struct npuemu **out);
/* Drop one reference.  The last one destroys what is left of this process on
 * the board: queues are flushed, segments revoked, buffers freed.
 */
int npuemu_close(struct npuemu *ctx);

struct npuemu_info {
	uint32_t size;
	uint32_t devices;
	uint32_t servers;
	uint32_t pid_slot;	/* this process's slot on the board */
	char host[16];		/* "kernel", "user" */
	char board[64];
	char machine[32];
	char soc[32];
	uint32_t has_udma;
	uint32_t generation;	/* 950, 910, ... */
	uint64_t budget_bytes;	/* physical memory the whole board may back */
	uint64_t backed_bytes;	/* backed now */
};
int npuemu_query(struct npuemu *ctx, struct npuemu_info *info);

struct npuemu_device_info {
	uint32_t size;
	uint32_t device;
	uint32_t server;
	uint32_t queues;	/* of all live processes */
	uint32_t processes;	/* with buffers or queues here */
	uint32_t reserved;
	uint64_t hbm_bytes;
	uint64_t hbm_used;	/* allocated by live processes, or kept by importers */
	uint64_t hbm_backed;	/* of that, physically backed */
};
int npuemu_device_query(struct npuemu *ctx, uint32_t device,
			struct npuemu_device_info *info);

/* ---- Device memory ---------------------------------------------------- */

/*
 * Allocate @bytes (rounded up to 4 KiB) of the device's HBM.  Zeroed, backed
 * when first touched.  -ENOMEM: capacity; the message says how much is free.
 */
int npuemu_buf_alloc(struct npuemu *ctx, uint32_t device, uint64_t bytes,
		     uint32_t flags, struct npuemu_buf **out);
/* -EBUSY while a segment of the buffer is registered.  Waits until no queue of
 * this process is working on it.  An importer's memory stays until it lets go.
 */
int npuemu_buf_free(struct npuemu_buf *buf);
/* The device VA, an ordinary pointer of this process; NULL for a bad handle. */
void *npuemu_buf_ptr(const struct npuemu_buf *buf);
/* The size that was asked for, not rounded up; 0 for a bad handle. */
uint64_t npuemu_buf_bytes(const struct npuemu_buf *buf);

/* A handle to pass to another process of the same user, by any channel. */
struct npuemu_handle {
	uint64_t w[8];
};
int npuemu_buf_export(struct npuemu_buf *buf, struct npuemu_handle *handle);
/* -ESTALE: the exporter freed it or is gone; -EINVAL: not a handle of this board,
 * or of this process's own buffer; -EEXIST: this process has imported it and not
 * yet freed it.
 */
int npuemu_buf_import(struct npuemu *ctx, const struct npuemu_handle *handle,
		      struct npuemu_buf **out);

/* Let queues of this process use host memory as local source or target.  The
 * memory must stay mapped until npuemu_mem_unregister() returned.  Host "kernel"
 * pins it; where RLIMIT_MEMLOCK does not allow that, this process copies.
 */
int npuemu_mem_register(struct npuemu *ctx, void *ptr, uint64_t bytes,
			struct npuemu_mem **out);
int npuemu_mem_unregister(struct npuemu_mem *mem);

/* Let queues of this process use, as local source or target, whatever memory it
 * has mapped: what is neither registered nor device memory is used as it is when
 * a WQE comes to it.  Memory that is not there, or a target that is read-only,
 * fails with LOC_ACCESS, maybe after some bytes have moved; so does a range that
 * begins there and reaches into registered or device memory.  It must stay mapped
 * while a WQE names it.  Slower than registered memory.  Counted: each @on needs
 * an off (0); npuemu_close() for the last time is off, too.  -EINVAL: not on;
 * -EOPNOTSUPP: host "user" on a kernel older than Linux 5.14.
 */
int npuemu_mem_any(struct npuemu *ctx, int on);

/* ---- Segments: what others may reach ---------------------------------- */

struct npuemu_eid {
	uint32_t w[4];
};

#define NPUEMU_SEG_NO_TOKEN	0x1u	/* token value not checked */

struct npuemu_seg_attr {
	uint32_t size;
	uint32_t flags;
	uint32_t access;	/* NPUEMU_ACCESS_*: LOCAL, R, R+W, R+W+A */
	uint32_t token_value;	/* 0: chosen at random */
	uint64_t offset;	/* in the buffer */
	uint64_t bytes;		/* 0: to the end of the buffer */
};

/* Plain data, meant to be sent to peers as it is. */
struct npuemu_seg_info {
	struct npuemu_eid eid;
	uint32_t token_id;
	uint32_t token_value;
	uint64_t va;		/* in the owner's address space */
	uint64_t bytes;
	uint32_t access;
	uint32_t device;
};

int npuemu_seg_register(struct npuemu_buf *buf, const struct npuemu_seg_attr *attr,
			struct npuemu_seg **out);
int npuemu_seg_query(const struct npuemu_seg *seg, struct npuemu_seg_info *info);
/* A new token value (0: random): peers with the old one get REM_ACCESS_ABORT. */
int npuemu_seg_rotate(struct npuemu_seg *seg, uint32_t token_value);
/*
 * Revoke.  When it returns 0 no engine of any process writes or reads there any
 * more.  -ETIMEDOUT: a process (named in the message) did not let go in 10 s;
 * the segment is gone all the same and its memory is kept out of use.
 */
int npuemu_seg_unregister(struct npuemu_seg *seg);

/* ---- Completion queues ------------------------------------------------ */

#define NPUEMU_CQ_TIMED		0x1u	/* keep the modelled time of each completion */
#define NPUEMU_CQ_SHARED	0x2u	/* several queues, or a queue and an RQ, will use it */

struct npuemu_cq_attr {
	uint32_t size;
	uint32_t flags;
	uint32_t depth;		/* power of two, NPUEMU_CQ_MIN..NPUEMU_CQ_MAX */
	uint32_t reserved;
};
/* Without NPUEMU_CQ_SHARED it takes one queue or RQ: creating a second one on it
 * fails with -EBUSY.
 */
int npuemu_cq_create(struct npuemu *ctx, const struct npuemu_cq_attr *attr,
		     struct npuemu_cq **out);
int npuemu_cq_destroy(struct npuemu_cq *cq);	/* -EBUSY while a queue uses it */

#define NPUEMU_WC_RECV		0x1u
#define NPUEMU_WC_FLUSH_DONE	0x2u	/* not a WQE: the queue's flush has ended */
#define NPUEMU_WC_IMM		0x4u

struct npuemu_wc {
	uint64_t user_data;	/* of the queue or RQ */
	uint32_t wqe;		/* free-running index of the WQE's last basic block;
				 * receive: index of the RQE
				 */
	uint32_t byte_cnt;
	uint32_t status;	/* enum npuemu_status */
	uint32_t queue;		/* id of the queue; receive: of the jetty or RQ sent to */
	uint32_t flags;
	uint32_t opcode;	/* receive side: NPUEMU_OP_SEND... */
	uint64_t imm;
	struct npuemu_eid rmt_eid;
	uint64_t model_ns;	/* NPUEMU_CQ_TIMED, else 0 */
};

/*
 * Take up to @n completions; how many, or a negative errno.  An entry retires
 * every WQE of its queue up to and with @wqe.  Finding nothing, it helps: it
 * lets the queues of this CQ make progress (unless NPUEMU_ASYNC=1).
 */
int npuemu_poll(struct npuemu_cq *cq, struct npuemu_wc *wc, int n);
/* Sleep (after helping) until the CQ holds an entry: 0, or -ETIMEDOUT.  A deadline
 * of 0 only looks: -ETIMEDOUT comes without a message then.
 */
int npuemu_wait(struct npuemu_cq *cq, int64_t deadline_ns);

#define NPUEMU_FOREVER		INT64_MAX
int64_t npuemu_now_ns(void);
int64_t npuemu_deadline_ms(int64_t ms);

enum npuemu_cmp {
	NPUEMU_CMP_EQ,
	NPUEMU_CMP_NE,
	NPUEMU_CMP_GE,
	NPUEMU_CMP_GT,
	NPUEMU_CMP_LE,
	NPUEMU_CMP_LT,
	NPUEMU_CMP_AND,		/* (word & value) != 0 */
};
/*
 * Sleep until the 8-byte word (in a buffer of this process, own or imported)
 * compares true with @value, unsigned.  Writes by engines wake at once, plain
 * CPU stores are seen within 1 ms.  0, -ETIMEDOUT, -EFAULT (not in a buffer),
 * -EOWNERDEAD (the owner of an imported buffer died meanwhile).  A deadline of 0
 * only looks, as in npuemu_wait().
 */
int npuemu_wait_word(struct npuemu *ctx, const volatile uint64_t *word,
		     enum npuemu_cmp cmp, uint64_t value, int64_t deadline_ns);

/* ---- Receive queues --------------------------------------------------- */

#define NPUEMU_RQ_TOKEN		0x1u	/* only for who knows the token; else for everybody */

struct npuemu_rq_attr {
	uint32_t size;
	uint32_t device;
	uint32_t depth;		/* RQEs, power of two, NPUEMU_RQ_MIN..NPUEMU_RQ_MAX */
	uint32_t max_sge;	/* SGEs of one RQE, power of two, 1..8; 0 means 1 */
	struct npuemu_cq *cq;	/* where receive completions go; NPUEMU_CQ_SHARED if a queue uses it too */
	uint64_t user_data;
	uint32_t flags;
	uint32_t token_value;	/* NPUEMU_RQ_TOKEN; 0: chosen at random */
};

/*
 * With NPUEMU_RQ_TOKEN a SEND to the RQ, or to a queue (jetty) that names it, needs
 * its token value.  One without it ends as if there were no such RQ, with
 * REM_ACCESS_ABORT, and leaves nothing behind here.
 */
int npuemu_rq_create(struct npuemu *ctx, const struct npuemu_rq_attr *attr,
		     struct npuemu_rq **out);
int npuemu_rq_destroy(struct npuemu_rq *rq);

struct npuemu_rq_info {
	uint32_t size;
	uint32_t id;		/* for SENDs to it */
	uint32_t device;
	uint32_t depth;
	uint32_t posted;	/* receive buffers given, free-running */
	uint32_t consumed;
	struct npuemu_eid eid;
	uint32_t flags;
	uint32_t token_value;	/* 0 without NPUEMU_RQ_TOKEN */
};
int npuemu_rq_query(struct npuemu_rq *rq, struct npuemu_rq_info *info);
/* Give one receive buffer of @n SGEs.  -EAGAIN: full. */
int npuemu_post_recv(struct npuemu_rq *rq, const struct npuemu_sge *sge, uint32_t n);

/* ---- Send queues ------------------------------------------------------ */

enum npuemu_queue_type {
	NPUEMU_QUEUE_UDMA = 0,
	NPUEMU_QUEUE_SDMA = 1,
};

struct npuemu_queue_attr {
	uint32_t size;
	uint32_t flags;		/* 0 */
	uint32_t device;
	uint32_t type;		/* enum npuemu_queue_type */
	uint32_t depth;		/* basic blocks, power of two, NPUEMU_SQ_MIN_BB..NPUEMU_SQ_MAX_BB */
	uint32_t rnr_retry;	/* SEND: 0..7, 7 = for ever */
	uint32_t ack_timeout_ms;	/* 0: 8000 */
	uint32_t error_suspend;	/* 1: an error suspends the queue instead */
	struct npuemu_cq *cq;	/* NULL: one of its own, with room for every WQE */
	struct npuemu_rq *rq;	/* what peers SEND to this jetty; may be NULL */
	uint64_t user_data;	/* comes back in every completion */
};
/* The queue starts READY.  -EOPNOTSUPP: the machine has no such engine. */
int npuemu_queue_create(struct npuemu *ctx, const struct npuemu_queue_attr *attr,
			struct npuemu_queue **out);
/* Unfinished WQEs are dropped; waits until no engine works on it. */
int npuemu_queue_destroy(struct npuemu_queue *q);
struct npuemu_cq *npuemu_queue_cq(struct npuemu_queue *q);

/*
 * Change the state: READY <-> SUSPENDED, any -> ERROR (flush: every outstanding
 * WQE completes with WR_FLUSH_ERR, then one flush-done entry), any -> RESET
 * (indices to zero, ring empty; the CQ keeps what it has), RESET -> READY.
 * Anything else: -EINVAL.  Posting works in every state: in RESET and SUSPENDED
 * what is posted stays in the ring until READY, in ERROR it is flushed.
 */
int npuemu_queue_modify(struct npuemu_queue *q, enum npuemu_queue_state state);

/* Everything device code needs to drive the queue itself.  Asking for it makes
 * plain stores to the doorbell page wake the engine (see npuemu_queue(7)).
 */
struct npuemu_queue_map {
	uint32_t size;
	uint32_t id;		/* 20-bit jetty id */
	struct npuemu_eid eid;
	void *sq;
	uint32_t sq_depth;	/* basic blocks */
	uint32_t cq_depth;
	void *cq;
	volatile uint32_t *db;	/* doorbell page + NPUEMU_DB_PI */
	void *db_page;
	volatile uint32_t *cq_db;	/* CQ consumer index record, 24 bits used */
};
int npuemu_queue_map(struct npuemu_queue *q, struct npuemu_queue_map *map);

struct npuemu_counters {
	uint64_t wqes;		/* executed, or failed */
	uint64_t cqes;
	uint64_t bytes;		/* moved */
	uint64_t doorbells;	/* seen by an engine or a helper */
	uint64_t errors;	/* completions with an error, flushed ones apart */
	uint64_t flushed;
	uint64_t helped;	/* WQEs executed by a thread that was not the engine */
	uint64_t faults;	/* injected */
	uint64_t rnr;		/* SENDs that found no receive buffer */
	uint64_t reserved[3];
};

struct npuemu_queue_stat {
	uint32_t size;
	uint32_t id;
	uint32_t device;
	uint32_t type;
	uint32_t state;		/* enum npuemu_queue_state */
	uint32_t pi;		/* basic blocks posted and seen */
	uint32_t ci;		/* basic blocks executed */
	uint32_t depth;
	uint32_t last_status;	/* first error since READY */
	uint32_t reserved;
	struct npuemu_counters cnt;
	char cause[96];		/* what went wrong, in words; "" if nothing did */
};
int npuemu_queue_query(struct npuemu_queue *q, struct npuemu_queue_stat *stat);

/* ---- Looking at a board, and disturbing it ---------------------------- */

struct npuemu_process_info {
	uint32_t slot;
	uint32_t pid;
	uint32_t queues;
	uint32_t segments;
	uint32_t buffers;
	uint32_t imports;
	uint64_t hbm_used;
	uint64_t hbm_backed;
	struct npuemu_counters cnt;	/* of all its queues */
	uint64_t engine_turns;	/* of queues, by its engine thread */
	uint64_t engine_parks;	/* times it stopped looking at a queue */
	uint64_t engine_sleeps;
	uint64_t doorbell_faults;	/* plain stores that woke it */
	char comm[16];
	char waits[96];		/* what it waits for, and since when; "" if it does not */
};
/* Fill up to @n entries; returns how many there are in all, dead ones not
 * counted.
 */
int npuemu_process_list(struct npuemu *ctx, struct npuemu_process_info *list, int n);
/* The queues of the process in @slot, likewise; -ESRCH: no live process there. */
int npuemu_queue_list(struct npuemu *ctx, uint32_t slot,
		      struct npuemu_queue_stat *list, int n);

enum npuemu_fault_kind {
	NPUEMU_FAULT_STATUS,	/* complete with @status, nothing moved */
	NPUEMU_FAULT_DELAY,	/* @delay_us before it executes */
	NPUEMU_FAULT_DROP,	/* lost on the way: ACK_TIMEOUT after the queue's timeout */
	NPUEMU_FAULT_POISON,	/* source data marked bad: LOC_ or REM_DATA_POISON */
	NPUEMU_FAULT_DEAD_PEER,	/* the peer in @peer_slot does not answer */
};

#define NPUEMU_ANY		0xffffffffu

struct npuemu_fault {
	uint32_t size;
	uint32_t kind;
	uint32_t slot;		/* process, or NPUEMU_ANY */
	uint32_t queue;		/* queue id, or NPUEMU_ANY */
	uint32_t device;	/* or NPUEMU_ANY */
	uint32_t peer_slot;	/* DEAD_PEER */
	uint32_t status;	/* STATUS: enum npuemu_status */
	uint32_t delay_us;	/* DELAY */
	uint32_t rate_ppm;	/* how many of a million WQEs; 1000000 = all */
	uint32_t count;		/* per queue; stop after so many; 0: never */
	uint64_t seed;
};
struct npuemu_link_info {
	uint32_t size;
	uint32_t from;
	uint32_t to;
	uint32_t latency_ns;	/* one way, as the machine is described */
	uint32_t mbytes_per_s;	/* between these two */
	uint32_t reserved;
	uint64_t wqes;		/* of all live processes */
	uint64_t bytes;
	char name[16];		/* of the class of link */
};
int npuemu_link_query(struct npuemu *ctx, uint32_t from, uint32_t to,
		      struct npuemu_link_info *info);

/* Up to 16 at a time; -ENOSPC. */
int npuemu_fault_inject(struct npuemu *ctx, const struct npuemu_fault *fault);
int npuemu_fault_clear(struct npuemu *ctx);

/* Free what dead processes left; returns how many slots were reaped. */
int npuemu_reap(struct npuemu *ctx);
/* Remove a board, damaged or not.  Live processes on it get -EUCLEAN and their
 * queues ERROR.  NULL: as npuemu_open().  -ENOENT: there is none.  Host "kernel":
 * every device is reset, whatever the name; -EPERM: only root may.
 */
int npuemu_board_reset(const char *board);

#ifdef __cplusplus
}
#endif

#include <npuemu/post.h>

#endif
