/* SPDX-License-Identifier: MIT */
/*
 * What the parts of lib/core share: handles and their slabs, messages, the
 * log, the trace, and the table through which a host is reached.
 */
#ifndef NPUEMU_CORE_H
#define NPUEMU_CORE_H

#include <pthread.h>
#include <stdarg.h>
#include <sys/types.h>
#include <npuemu/npuemu.h>
#include "engine.h"

#define NPUEMU_API __attribute__((visibility("default")))

/* ---- err.c: what the last failed call of this thread had to say ---------- */

void npuemu_fail_say(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Note the message, give the errno back: return npuemu_fail(-EINVAL, "..."). */
#define npuemu_fail(err, ...)							\
	__extension__ ({							\
		const int err__ = (err);					\
		npuemu_fail_say(err__, __VA_ARGS__);				\
		err__;								\
	})

/* ---- log.c ---------------------------------------------------------------- */

enum npuemu_log_level {
	NPUEMU_LOG_ERROR,
	NPUEMU_LOG_WARN,
	NPUEMU_LOG_INFO,
	NPUEMU_LOG_DEBUG,
};

extern int npuemu_log_at;	/* levels up to this one are written */
void npuemu_log_init(void);
void npuemu_log_write(int level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
#define npuemu_log(level, ...)						\
	do {								\
		if (unlikely((int)(level) <= npuemu_log_at))		\
			npuemu_log_write((int)(level), __VA_ARGS__);	\
	} while (0)

/* ---- trace.c: per-thread binary rings, and the files that they go to ------- */

struct npuemu_trace_record;	/* trace.h */

#define NPUEMU_TRACE_TASKS	0x1u	/* of streams and of queues */
#define NPUEMU_TRACE_MARKS	0x2u	/* marks and ranges of the program's */
#define NPUEMU_TRACE_STEPS	0x4u

extern u64 npuemu_trace_tasks;	/* devices (bits) whose tasks are traced; READ_ONCE() */
extern u32 npuemu_trace_marks;	/* what else is: MARKS, STEPS; likewise */

bool npuemu_trace_init(void);	/* are a device's tasks traced? */
/*
 * A new file with what comes from now on: of these devices (bits) and of none, and of the
 * kinds in @what; @most bytes, what is more is dropped and counted.  The number to stop
 * it by, or a negative errno.
 */
int npuemu_trace_start(const char *file, u64 devices, u32 what, u64 most);
int npuemu_trace_stop(int number, u64 *lost);
/* One record, in this thread's ring; with the time of now, if its device is traced. */
void npuemu_trace_put(const struct npuemu_trace_record *r);
void npuemu_trace_add(u32 queue, u32 event, u32 index, u32 device, u64 arg);
void npuemu_trace_fork(void);	/* in the child: its own, empty */

/* tracetext.c: a number from 1 on that stands for a text, always the same; 0: no room. */
u32 npuemu_trace_text(const char *text, size_t n);
/* All of them as records, @n of them, to be freed.  NULL and 0: there are none. */
struct npuemu_trace_record *npuemu_trace_texts(u64 *n);
void npuemu_trace_texts_fork(void);

/* ---- slab.c: handles that can be checked ---------------------------------- */

/*
 * Objects of one type in one range that is never given back, so that looking
 * at a stale handle is harmless.  A handle is an object's address.
 */
struct npuemu_slab {
	const char *what;
	size_t size;
	size_t ctx_at;		/* offset of the object's struct npuemu * */
	u32 max;
	u8 *base;
	u32 *state;		/* a word each: 0 free, else alive */
	u32 used;		/* high water mark */
	u32 live;		/* taken; atomic */
	u32 most;		/* that were, at a time */
	u32 next;		/* where to look for a free one */
	pthread_mutex_t lock;
};

#define NPUEMU_SLAB_INIT(name, type, n) \
	{ .what = (name), .size = NPUEMU_SLAB_SIZE(type), .max = (n), \
	  .ctx_at = offsetof(type, ctx), .lock = PTHREAD_MUTEX_INITIALIZER }

void *npuemu_slab_alloc(struct npuemu_slab *slab);	/* zeroed; NULL: full */
void npuemu_slab_publish(struct npuemu_slab *slab, void *obj);
/* The handle is dead from here on; false if it was already. */
bool npuemu_slab_retire(struct npuemu_slab *slab, void *obj);
void npuemu_slab_free(struct npuemu_slab *slab, void *obj);
/* Every object of a context is dead and free. */
void npuemu_slab_forget(struct npuemu_slab *slab, const struct npuemu *ctx);
/* In a child: the parent's objects are not its own; its range stays where it is, and is not used. */
void npuemu_slab_fork(struct npuemu_slab *slab);

/* @size: the slab's, as a constant where the type is known (no division). */
static inline bool npuemu_slab_holds(const struct npuemu_slab *slab, const void *obj, size_t size)
{
	size_t off = (size_t)((const u8 *)obj - slab->base);

	return slab->base && off < size * slab->max && off % size == 0 &&
	       smp_load_acquire(&slab->state[off / size]) == 2;
}

static inline bool npuemu_slab_alive(const struct npuemu_slab *slab, const void *obj)
{
	return npuemu_slab_holds(slab, obj, slab->size);
}

#define NPUEMU_SLAB_SIZE(type)	((sizeof(type) + 63) & ~(size_t)63)

struct npuemu;
extern struct npuemu_slab npuemu_bufs, npuemu_mems, npuemu_segs, npuemu_cqs, npuemu_rqs,
	npuemu_queues;

/* ---- The objects behind the handles --------------------------------------- */

struct npuemu {
	const struct npuemu_host *host;
	pid_t pid;
	u32 refs;
	u32 any;		/* times npuemu_mem_any() is on */
	int broken;		/* 0, or the errno every call gives from now on */
	bool observer;
	u32 devices;
	char board[64];
	char machine[32];
};

struct user_arena;

struct npuemu_buf {
	struct npuemu *ctx;
	u32 device;
	u32 index;		/* in the owner's tables */
	u64 bytes;		/* as asked for */
	u64 room;		/* rounded up */
	u64 off;		/* in the arena; kernel host: for mmap */
	u8 *ptr;
	u32 segs;		/* registered; atomic */
	u32 maps;		/* npuemu_buf_map(); atomic */
	bool imported;
	u32 import_index;
	struct npuemu_share *share;
	struct user_arena *arena;	/* host user: what it is a range of */
	void *host;		/* imported: the peer */
	u8 *own_view;		/* host kernel, under guard: mapped a second time, for this library */
	u64 gap;		/* host kernel, under guard: behind it */
};

struct npuemu_mem {
	struct npuemu *ctx;
	u64 va;
	u64 bytes;
	u8 *alias;		/* the same memory, for engines; NULL: @va */
};

struct npuemu_seg {
	struct npuemu *ctx;
	struct npuemu_buf *buf;
	u32 index;
	struct npuemu_seg_info info;
};

/* What successes of a CQ's one queue have in common; e1 of nothing: no queue. */
struct npuemu_cq_own {
	u64 e0;
	u32 e1;
	u32 id;
	u64 user_data;
	struct npuemu_post_view *view;
};

struct npuemu_cq {
	/* the consumer's lines */
	const u64 *ring;
	u64 *times;
	u32 *ci_rec;
	u32 ci;			/* the consumer's own */
	u32 mask;
	struct npuemu_queue *only;	/* not shared: the one queue; its own CQ */
	struct npuemu *ctx;
	u32 users;		/* queues and RQs attached; atomic */
	bool shared;
	bool own;		/* made by and for its queue */
	u64 ring_off;
	size_t times_bytes;
	u32 handle;		/* kernel host: the driver's */
	u32 dry;		/* kernel host: empty polls in a row, at dry_ci */
	u32 dry_ci;
	struct npuemu_cq_own own_form;
	struct npuemu_jfc jfc __attribute__((aligned(64)));
};

struct npuemu_rq {
	struct npuemu_jfr jfr;
	struct npuemu *ctx;
	struct npuemu_sge *ring;
	u32 pi;
	u32 *pi_rec;
	const u32 *consumed;	/* RQEs that the engine has used */
	u32 device;
	u32 index;
	u32 users;		/* queues that name it; atomic */
	u64 ring_off;
	struct npuemu_cq *cq;
};

struct npuemu_queue {
	struct npuemu_post_view view;	/* first: post.h */
	u32 *db;		/* PI, through the library's own mapping */
	struct npuemu *ctx;
	u32 cold;		/* the engine does not look at it */
	bool stale;		/* CQ entries before @fresh are from before it was (re)set */
	u32 fresh;
	u32 index;
	struct npuemu_jfs jfs __attribute__((aligned(64)));
	struct npuemu_cq *cq;
	struct npuemu_rq *rq;
	u64 ring_off;
};

/* ---- A host ---------------------------------------------------------------- */

/*
 * Arguments have been checked by npuemu.c: handles alive and of this process,
 * sizes, flags, reserved fields.  0 or a negative errno with a message.
 */
struct npuemu_host {
	const char *name;
	int (*open)(const struct npuemu_open_attr *attr, struct npuemu **out);
	int (*close)(struct npuemu *ctx);
	/* cheap: is the board still sound?  sets ctx->broken */
	int (*check)(struct npuemu *ctx);
	int (*query)(struct npuemu *ctx, struct npuemu_info *info);
	int (*device_query)(struct npuemu *ctx, u32 device, struct npuemu_device_info *info);
	int (*buf_alloc)(struct npuemu *ctx, u32 device, u64 bytes, struct npuemu_buf *buf);
	int (*buf_free)(struct npuemu_buf *buf);
	int (*buf_export)(struct npuemu_buf *buf, struct npuemu_handle *handle);
	int (*buf_import)(struct npuemu *ctx, const struct npuemu_handle *handle,
			  struct npuemu_buf *buf);
	int (*buf_map)(struct npuemu_buf *buf, u64 va);
	/* when it returns no queue uses it; the addresses may still show the buffer */
	int (*buf_unmap)(struct npuemu_buf *buf, u64 va);
	/* -EOPNOTSUPP: of this buffer there is one view for all */
	int (*buf_close)(struct npuemu_buf *buf, bool closed);
	void *(*alias)(struct npuemu *ctx, u64 va, bool *device);
	int (*exports_own)(struct npuemu *ctx, u32 bytes, void **table);
	int (*exports_of)(struct npuemu *ctx, u32 slot, const void **table, u32 *bytes);
	int (*mem_register)(struct npuemu_mem *mem);
	int (*mem_unregister)(struct npuemu_mem *mem);
	int (*mem_any)(struct npuemu *ctx, bool on);
	int (*seg_register)(struct npuemu_seg *seg, u64 off, u32 flags);
	int (*seg_rotate)(struct npuemu_seg *seg, u32 token_value);
	int (*seg_unregister)(struct npuemu_seg *seg);
	int (*cq_create)(struct npuemu_cq *cq, u32 depth, bool timed);
	void (*cq_destroy)(struct npuemu_cq *cq);
	int (*rq_create)(struct npuemu_rq *rq, const struct npuemu_rq_attr *attr);
	int (*rq_destroy)(struct npuemu_rq *rq);
	int (*rq_query)(struct npuemu_rq *rq, struct npuemu_rq_info *info);
	int (*queue_create)(struct npuemu_queue *q, const struct npuemu_queue_attr *attr);
	int (*queue_destroy)(struct npuemu_queue *q);
	int (*queue_modify)(struct npuemu_queue *q, u32 state);
	int (*queue_map)(struct npuemu_queue *q, struct npuemu_queue_map *map);
	int (*queue_query)(struct npuemu_queue *q, struct npuemu_queue_stat *stat);
	/* @through: a host that helps does all of it in this thread, who waits for it next */
	int (*doorbell)(struct npuemu_queue *q, bool through);
	/* let the queues behind a CQ (NULL: all) progress in this thread; did any? */
	bool (*help)(struct npuemu *ctx, struct npuemu_cq *cq);
	/* the poller made room in a CQ that had run out of it */
	void (*unstarve)(struct npuemu_cq *cq);
	int (*wait_cq)(struct npuemu_cq *cq, s64 deadline);
	int (*wait_word)(struct npuemu *ctx, const volatile u64 *word, u32 cmp, u64 value,
			 s64 deadline);
	struct npuemu_queue *(*queue_by_id)(struct npuemu *ctx, u32 id);
	int (*link_query)(struct npuemu *ctx, u32 from, u32 to, struct npuemu_link_info *info);
	int (*process_list)(struct npuemu *ctx, struct npuemu_process_info *list, int n);
	int (*queue_list)(struct npuemu *ctx, u32 slot, struct npuemu_queue_stat *list, int n);
	int (*fault_inject)(struct npuemu *ctx, const struct npuemu_fault_rec *fault);
	int (*fault_clear)(struct npuemu *ctx);
	int (*reap)(struct npuemu *ctx);
	/* trace what queues do, or no longer; NULL: cannot */
	void (*trace)(struct npuemu *ctx, bool on);
	int (*board_reset)(const char *board);
};

extern const struct npuemu_host npuemu_user_host;
extern const struct npuemu_host npuemu_kernel_host;
bool npuemu_kernel_present(void);	/* there are devices that this user may open */

/* ---- queues.c: for libraries on top ------------------------------------------ */

/* npuemu_doorbell() for who waits next: with helping all of it, not one turn, is done here. */
int npuemu_doorbell_through(struct npuemu_queue *q);

/* ---- memory.c: for libraries on top ------------------------------------------ */

/*
 * Show a buffer, all of it, at @va, too: for the CPU, and for the queues of this
 * process.  The addresses, rounded up to pages, belong to the caller, and are mapped
 * without access (npuemu_reserve()); -EBUSY: something is there.  Until it is unmapped
 * the buffer cannot be freed.
 */
int npuemu_buf_map(struct npuemu_buf *buf, void *va);
/* Without access again; also on a board that is broken. */
int npuemu_buf_unmap(struct npuemu_buf *buf, void *va);
/* Addresses without memory; children do not get them.  @fixed: at @va, else MAP_FAILED. */
void *npuemu_reserve(void *va, u64 bytes, int flags);

#define NPUEMU_EXPORT_BYTES	(1u << 20)

/*
 * For checkers.  guarded, set before a board is opened: what the program sees of its device
 * memory can be closed to it (buf_close), freed addresses are not used again soon, and
 * behind a buffer lies a page of nobody's, unless it is so large that few fit.
 * alias: where this library reaches @va all the same, which is @va in general; is it HBM's?
 * mem_register_at: engines are to use @alias, which is the same memory.
 */
extern bool npuemu_guarded;
static inline u64 npuemu_guard_gap(u64 room)
{
	return npuemu_guarded && room < 16ull << 20 ? 4096 : 0;
}

int npuemu_buf_close(struct npuemu_buf *buf, bool closed);
void *npuemu_alias(struct npuemu *ctx, u64 va, bool *device);
int npuemu_mem_register_at(struct npuemu *ctx, void *ptr, u64 bytes, void *alias, struct npuemu_mem **out);

/*
 * A table that a process keeps for others to read, such as what a name that it gave out
 * stands for.  It is gone with its process, at the latest when its slot is used again:
 * what is in there has to tell whether it still holds.  exports_own: this process's, at
 * least @bytes of it, zeroes at first.  exports_of: of whoever is in @slot, @bytes of it;
 * 0 if there is none.
 */
int npuemu_exports_own(struct npuemu *ctx, u32 bytes, void **table);
int npuemu_exports_of(struct npuemu *ctx, u32 slot, const void **table, u32 *bytes);

/* ---- helpers ---------------------------------------------------------------- */

/* An open board of this process that may do work: 0 or a negative errno. */
int npuemu_check_worker(struct npuemu *ctx, const char *what);
void npuemu_core_fork(void);	/* in the child: its locks are free */
bool npuemu_compare(u64 word, u32 cmp, u64 value);
bool npuemu_cq_ready(const struct npuemu_cq *cq);
const char *npuemu_getenv(const char *name);	/* NULL when unset or empty */
bool npuemu_env_flag(const char *name);		/* set, and not 0 */
/* A whole number that is not negative; anything else is @otherwise, with a warning. */
s64 npuemu_env_number(const char *name, s64 otherwise);

/* futex.c: sleep while *@word is @seen, @ns at most (INT64_MAX: for ever); of this process or not. */
int npuemu_futex_wait(u32 *word, u32 seen, s64 ns);
void npuemu_futex_wake(u32 *word, int n);

/* ---- machine.c --------------------------------------------------------------- */

/* Find the description of a machine by name or path, and read it. */
int npuemu_machine_load(const char *name, struct npuemu_machine *m);
/* builtin.c: the text of one that is shipped; NULL. */
const char *npuemu_machine_builtin(const char *name, size_t *bytes);

#endif
