/* SPDX-License-Identifier: MIT */
/*
 * What the parts of lib/acl share.
 *
 * A stream is a queue of tasks that one thread at a time takes from: whoever
 * waits for the stream, or the scheduler's thread.  Copies, fills and reductions
 * become descriptors on SDMA queues that the streams of a device share; all else
 * is done by the runner itself.  A task that has to wait parks its stream, and
 * nobody stands there with it.
 *
 *   runtime.c    aclInit, aclFinalize, the board behind it
 *   error.c      last errors and messages, of each thread
 *   device.c     which device a thread uses; SetDevice and ResetDevice
 *   context.c    contexts
 *   stream.c     streams, and waiting for them
 *   task.c       a stream's queue of tasks
 *   scheduler.c  who runs a stream, and when; parking and waking
 *   execute.c    what a task does
 *   sdma.c       the SDMA queues of a device
 *   event.c      events
 *   notify.c     notifies, and values in memory that streams write and wait for
 *   pool.c       device memory in a stream's order
 *   tasktrace.c  the tasks in a trace; prof.c and stamp.c: what programs call for that
 *   hostfunc.c   functions of the program's, called in order with a stream's tasks
 *   check.h      NPUEMU_CHECK: mistakes of programs
 *   graph.h      models: tasks that were recorded, and run again and again
 *
 * Order of locks: npuacl.lock, the one of graph.h, stream->lock, event->lock, the scheduler's; the
 * checker's comes after them all, and under it only those of pools and of lib/core.
 */
#ifndef NPUACL_H
#define NPUACL_H

#include <acl/acl.h>
#include "core.h"

#define NPUACL_DEVICES		NPUEMU_MAX_DEVICES
#define NPUACL_STREAMS		1984u	/* of one device, implicit ones among them */
#define NPUACL_SDMA_QUEUES	8u	/* of one device and process */
#define NPUACL_SDMA_DEPTH	256u
#define NPUACL_BATCH		64u	/* tasks that one doorbell starts */

/* ---- Handles ---------------------------------------------------------------- */

extern struct npuemu_slab npuacl_ctxs, npuacl_streams, npuacl_events;

/* ---- error.c ------------------------------------------------------------------ */

void npuacl_fail_say(aclError code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Note code and message for this thread, give the code back. */
#define npuacl_fail(code, ...)							\
	__extension__ ({							\
		const aclError code__ = (code);					\
		npuacl_fail_say(code__, __VA_ARGS__);				\
		code__;								\
	})
/* A message of a layer above, which has codes of its own. */
void npuacl_message(const char *family, int code, const char *text);
/*
 * The same for what lib/core had to say (npuemu_errmsg()) to a negative errno.  Inline, so
 * that it is seen wherever it is used that a failure is never ACL_SUCCESS.
 */
aclError npuacl_fail_core_say(int err, aclError code, const char *what);
static inline aclError npuacl_fail_core(int err, aclError code, const char *what)
{
	aclError ret = npuacl_fail_core_say(err, code, what);

	return ret ? ret : ACL_ERROR_RT_INTERNAL_ERROR;
}

/* A function that npuemu does not have: says so in the log, once a name. */
aclError npuemu_acl_unsupported(const char *name, aclError code);
void npuacl_unsupported(const char *name);	/* the log alone, for layers above */
/* Cause of an asynchronous failure, from the status of a completion. */
aclError npuacl_status_code(u32 status, const char *cause);

/* ---- Devices and contexts ------------------------------------------------------- */

struct npuacl_stream;

/* An SDMA queue; whoever set @busy is the one to use it. */
struct npuacl_sdma {
	u32 busy;
	bool broken;		/* could not be made */
	struct npuemu_queue *q;
	struct npuemu_cq *cq;
	char cause[96];		/* of the error before it was recovered, in the engine's words */
} __attribute__((aligned(64)));

struct npuacl_device {
	u32 id;			/* as the program names it */
	u32 phys;		/* on the board */
	u32 sets;		/* SetDevice less ResetDevice; npuacl.lock */
	u32 contexts;		/* alive; npuacl.lock */
	u32 nstreams;		/* atomic, like the next */
	u32 nevents;
	u32 next_stream_id;
	struct npuacl_ctx *primary;
	pthread_mutex_t sdma_lock;	/* for whom no queue is free, and making one */
	pthread_cond_t sdma_free;
	u32 sdma_wanted;		/* threads that wait for one */
	struct npuacl_sdma sdma[NPUACL_SDMA_QUEUES];
	u8 peer[NPUACL_DEVICES];	/* access enabled, by logical device; atomic */
	u32 sat_mode;
	u32 res_limit[8];
};

struct npuacl_ctx {
	struct npuacl_device *dev;
	struct npuacl_stream *def;	/* default stream */
	struct npuacl_stream *streams;	/* all of them; npuacl.lock */
	bool primary;
	aclError stopped;		/* a stream in STOP mode failed with this */
	s64 sys_param[8];
	u32 sys_param_set;	/* bit mask */
};

struct npuacl_runtime {
	pthread_mutex_t lock;	/* making and unmaking; nothing fast takes it */
	u64 inits;
	bool finalized;		/* it was, ever */
	struct npuemu *board;
	struct npuemu_info info;
	u32 devices;		/* visible ones */
	struct npuacl_device *dev;
	s32 default_device;	/* from the configuration; -1: none */
	u32 wait_timeout_s;	/* aclrtSetOpWaitTimeout; 0: none */
	char soc[64];
};

extern struct npuacl_runtime npuacl;

/* What a layer above has to do, once it has begun with anything. */
extern struct npuacl_layer {
	void (*close)(void);	/* the board is about to be closed; npuacl.lock held, nothing runs */
	void (*fork)(void);	/* in the child */
} npuacl_above;

struct npuacl_thread {
	struct npuacl_ctx *ctx;
	aclError last;
	u32 last_task;
	bool told;		/* @message has not been asked for yet */
	char message[1024];
	char shown[1024];	/* what aclGetRecentErrMsg gave last */
};

extern __thread struct npuacl_thread npuacl_self;

/* The board, opened if need be. */
aclError npuacl_open(void);
bool npuacl_is_open(void);
/* A device by the program's number. */
aclError npuacl_device(s32 id, struct npuacl_device **out);
/* The calling thread's context: 107002 without one. */
aclError npuacl_current(struct npuacl_ctx **out);
aclError npuacl_ctx_make(struct npuacl_device *dev, bool primary, struct npuacl_ctx **out);
/* Waits for its streams and takes it down.  npuacl.lock held. */
void npuacl_ctx_unmake(struct npuacl_ctx *ctx);
void npuacl_contexts_release(void);	/* those of aclrtCreateContext; likewise */
void npuacl_devices_release(void);	/* all that is still set; npuacl.lock held */

/* ---- Tasks ------------------------------------------------------------------------ */

enum npuacl_kind {
	NPUACL_SDMA,		/* a descriptor: the ones before NPUACL_FIRST_OTHER go in batches */
	NPUACL_FIRST_OTHER,
	NPUACL_EVENT_RECORD = NPUACL_FIRST_OTHER,
	NPUACL_EVENT_WAIT,
	NPUACL_EVENT_RESET,
	NPUACL_VALUE_WAIT,
	NPUACL_NOTIFY_WAIT,
	NPUACL_HOST_FUNC,
	NPUACL_CALL,		/* a short function of the library's, in the runner's thread */
	NPUACL_WORK,		/* of a layer above: asked again until it is over */
	NPUACL_FIRST_GRAPH,	/* from here on: replay.c's */
	NPUACL_GRAPH = NPUACL_FIRST_GRAPH,	/* run a model */
	NPUACL_REPLAY,		/* a model's lane begins: its stream goes through recorded tasks */
	NPUACL_EDGE_RECORD,	/* recorded: a lane has come here, others may wait for that */
	NPUACL_EDGE_WAIT,
	NPUACL_NOTHING,		/* recorded: it was left out, or is a mark only */
	NPUACL_BRANCH,		/* recorded: branch.c's */
	NPUACL_KINDS,
};

#define NPUACL_NO_BLOCK	0x1u	/* HOST_FUNC: the stream goes on once it was handed over */
#define NPUACL_VALUE	0x2u	/* a value of the program's is written or waited for */
#define NPUACL_EXTERNAL	0x4u	/* recorded: an event that others than the model know of */
#define NPUACL_END	0x8u	/* NOTHING: aclmdlRIEndTask() */

struct npuacl_node;
struct npuacl_lane;
struct npuacl_exec;
struct npuacl_branch;

/*
 * Work of a layer above, such as a collective: it goes on when others, maybe of other
 * processes, have done their part, and nobody of those wakes the stream.  A thread that
 * waits for the stream asks it again and again; if there is none, the scheduler's does
 * at least every millisecond.  Whoever asks owns the stream.
 */
struct npuacl_work {
	const struct npuacl_work_ops *ops;
	bool spins;		/* each of those it waits for has a cpu: ask again before giving way */
	struct npuacl_bell *bell;	/* rung when it can get on, as its last step() left it; NULL: nobody rings */
};

/*
 * Shared by those who wait for each other, other processes among them.  Who is about to
 * sleep says so, and looks once more; who has got something done rings if anybody said so.
 * A sleeper may be gone by then, and one ring is for all: nothing has to be taken back, so
 * who sleeps does not touch the bell once the work may be over.
 */
struct npuacl_bell {
	u32 word;		/* futex */
	u32 sleeping;		/* somebody may be */
};

/* What there is to do was written before.  Wakes up to @n; all: INT32_MAX. */
static inline void npuacl_ring(struct npuacl_bell *b, s32 n)
{
	smp_mb(); /* done, before the look: pairs with work() in execute.c */
	if (likely(!READ_ONCE(b->sleeping)))
		return;
	if (n == INT32_MAX)
		WRITE_ONCE(b->sleeping, 0);
	npuemu_fetch_add(&b->word, 1);
	npuemu_futex_wake(&b->word, n);
}

/* The larger thing that a member is of. */
#ifndef container_of
#define container_of(ptr, type, member)	((type *)(void *)((char *)(ptr) - offsetof(type, member)))
#endif

struct npuacl_work_ops {
	bool (*step)(struct npuacl_work *w, struct npuacl_stream *s, u32 task);	/* true: over */
	bool (*due)(struct npuacl_work *w);	/* would step() get anything done?  cheap */
	void (*drop)(struct npuacl_work *w, struct npuacl_stream *s);	/* instead of (the rest of) it */
	void (*release)(struct npuacl_work *w);	/* it will not be asked again */
	void (*text)(struct npuacl_work *w, char *buf, size_t size);
	u64 (*about)(struct npuacl_work *w);	/* for traces, once it is over: trace.h */
};

struct npuacl_task {
	u16 kind;
	u16 flags;
	u32 id;			/* as aclrtGetThreadLastTaskId tells it */
	s64 timeout_ns;		/* of a wait; 0: none */
	union {
		struct npuemu_sdma sdma;
		struct {
			struct npuacl_event *event;
			u64 generation;
		} event;
		struct {
			volatile u64 *word;
			u64 value;
			u32 cmp;		/* enum npuemu_cmp, or NPUACL_CMP_ */
			bool clear;		/* 0 again when it was seen */
		} word;
		struct {
			void (*fn)(void *arg);
			void *arg;
			u64 thread;			/* who runs it; 0: ours */
		} call;
		/* CALL: by the stream that has come there */
		struct {
			void (*fn)(struct npuacl_stream *s, u32 task, void *arg);	/* may be NULL */
			void *arg;
			void (*release)(void *arg);	/* when it will not be called again */
		} own;
		struct npuacl_work *work;
		struct npuacl_exec *run;			/* GRAPH */
		struct npuacl_lane *lane;		/* REPLAY */
		struct npuacl_node *node;		/* EDGE_: the one that records */
		struct npuacl_branch *branch;		/* BRANCH */
	};
};

#define NPUACL_CMP_NOR		(NPUEMU_CMP_AND + 1)	/* ~(word | value) != 0 */
#define NPUACL_CMP_CYCLIC_GE	(NPUEMU_CMP_AND + 2)	/* (s64)(word - value) >= 0 */
#define NPUACL_CMP_MASK		(NPUEMU_CMP_AND + 3)	/* (word & value) == value */

#define NPUACL_CHUNK_TASKS	48

struct npuacl_chunk {
	struct npuacl_chunk *next;
	struct npuacl_task task[NPUACL_CHUNK_TASKS];
};

/* ---- Streams ----------------------------------------------------------------------- */

enum npuacl_run {
	NPUACL_IDLE,		/* nothing to do */
	NPUACL_QUEUED,		/* has tasks: the next to come by may run it */
	NPUACL_RUNNING,		/* somebody does */
	NPUACL_PARKED,		/* its first task waits */
};

enum npuacl_works {
	NPUACL_NO_WORK,
	NPUACL_WORK_YIELDS,
	NPUACL_WORK_SPINS,
};

struct npuacl_stream {
	struct npuacl_ctx *ctx;
	struct npuacl_device *dev;
	struct npuacl_stream *next;	/* of its context; npuacl.lock */
	u32 id;
	u32 flags;
	s32 priority;
	bool implicit;			/* a default stream: not for DestroyStream */
	bool mode_set;
	u32 stop_on_error;		/* ACL_STOP_ON_FAILURE; atomic */
	u32 attr_tag;
	u32 overflow_check;
	u64 report_thread;		/* aclrtSubscribeReport; 0: nobody */

	/* who submits: under @lock */
	pthread_mutex_t lock __attribute__((aligned(64)));
	struct npuacl_chunk *tail;
	u32 tail_at;
	u64 issued;			/* tasks; read by the runner */

	/* who runs it, and no lock */
	u32 run __attribute__((aligned(64)));	/* enum npuacl_run */
	bool woken;			/* while it ran or parked */
	u32 head_at;
	struct npuacl_chunk *head;
	struct npuacl_chunk *spare;	/* given back to who submits; atomic */
	u64 done;			/* tasks; read by who waits */
	u32 bell;			/* moves with @done while there are @sleepers: a futex */
	u32 sleepers;
	u64 wanted;			/* the lowest @done that a sleeper waits for; stream->lock to write */
	u32 aborting;			/* drop what is queued */
	u32 aborts;			/* how often it was; who waits is told */
	bool watched;			/* on the scheduler's watch list; its lock */
	s64 parked_since;		/* when the first task began to wait; 0: it does not */
	u32 attended;			/* threads that wait for it, and ask its work; atomic */
	u32 works;			/* its first task is work, and waits: enum npuacl_works */
	bool sleepy;			/* who asks is going to sleep if nothing comes of it */
	struct npuacl_bell *bell_of;	/* of that work; it may be gone, so not for looking at */
	u32 bell_seen;
	u32 func;			/* of its HOST_FUNC: enum npuacl_func */
	bool wants_queue;		/* all SDMA queues were busy */
	struct npuacl_sdma *in_flight;	/* a batch that is slow to complete */
	u32 in_flight_n;
	u32 in_flight_last;
	struct npuacl_traced {
		s64 ns;			/* when the first task began; 0: it is not traced */
		u64 about;
		bool failed;
	} traced;

	pthread_mutex_t error_lock;
	aclError error;			/* first one not yet reported, or for good (STOP) */
	char cause[320];

	bool listed;			/* on one of the scheduler's ready lists; its lock */
	bool listed_woken;		/* on which */
	s64 listed_ns;			/* since when */
	struct npuacl_stream *ready_next;
	struct npuacl_stream *soon_next;	/* of the thread that owns it */
	struct npuacl_stream *watch_next;
	struct npuacl_stream *wait_next;	/* of an event; the event's lock */
	bool on_event;

	/* models: graph.h */
	struct npuacl_lane *lane;	/* what is submitted is recorded there; atomic */
	struct npuacl_lane *plays;	/* it is a model's; its lock */
	void *check;			/* check_task.c's; its lock */
	bool replaying;			/* the runner's: a REPLAY is in front, and at @replay_at */
	u32 replay_at;
};

/* NULL: the current context's default stream.  Checks that it belongs to that context. */
aclError npuacl_stream(aclrtStream handle, struct npuacl_stream **out);
/* aclrtSetStreamFailureMode() on behalf of @what. */
aclError npuacl_stream_failure_mode(const char *what, aclrtStream stream, u64 mode);
aclError npuacl_stream_make(struct npuacl_ctx *ctx, u32 flags, s32 priority, bool implicit,
			    struct npuacl_stream **out);
/* Unlink and free; nothing runs it any more.  npuacl.lock held. */
void npuacl_stream_unmake(struct npuacl_stream *s);
/* Until all that was issued is done: 0, or the stream's error.  Deadline as for npuemu_wait(). */
aclError npuacl_stream_wait(struct npuacl_stream *s, u64 upto, s64 deadline);
/* Drop what is queued, wait for what runs. */
void npuacl_stream_drop(struct npuacl_stream *s);

/* task.c: append; the copy of @t in the queue is the stream's.  @seq (may be NULL): what
 * stream->done has to reach for it to be finished.
 */
aclError npuacl_submit(struct npuacl_stream *s, struct npuacl_task *t, u64 *seq);
/* The same, even if the stream records. */
aclError npuacl_append(struct npuacl_stream *s, struct npuacl_task *t, u64 *seq);
struct npuacl_task *npuacl_task_at(struct npuacl_stream *s, u32 n);	/* the runner's */
/* The same, by npuacl_pending() of before: each look at it takes a line from who submits. */
struct npuacl_task *npuacl_task_of(struct npuacl_stream *s, u32 n, u64 have);
void npuacl_task_retire(struct npuacl_stream *s, u32 n);
void npuacl_tasks_free(struct npuacl_stream *s);

static inline u64 npuacl_pending(struct npuacl_stream *s)
{
	return smp_load_acquire(&s->issued) - READ_ONCE(s->done);
}

/* ---- scheduler.c ----------------------------------------------------------------------- */

/* There is something to run (after issued moved). */
void npuacl_wake_idle(struct npuacl_stream *s);
/* What its first task waited for may have come. */
void npuacl_wake_parked(struct npuacl_stream *s);
/* The same, from within a task: the calling thread runs it when it is through with its own. */
void npuacl_wake_soon(struct npuacl_stream *s);
/* Become the runner; false: somebody is, or there is nothing to do. */
bool npuacl_try_own(struct npuacl_stream *s);
/* Run until it is out of tasks or parks; the caller owns it, and no longer does then. */
void npuacl_run(struct npuacl_stream *s);
/* Run a stream that is ready, if there is one, whosever it is. */
bool npuacl_help(void);
/* Somebody polls for what may be on the thread's list: that is not the time to doze. */
void npuacl_nudge(void);
/* Between these two the caller asks, now and again; ask: true, it got on. */
void npuacl_attend(struct npuacl_stream *s);
void npuacl_leave(struct npuacl_stream *s);
bool npuacl_ask(struct npuacl_stream *s, bool sleepy);
/* Look at words, deadlines and slow batches now and again until it is woken. */
void npuacl_watch(struct npuacl_stream *s);
void npuacl_unwatch(struct npuacl_stream *s);
void npuacl_scheduler_stop(void);

/* Look now at what is watched: a word in memory was written. */
void npuacl_look(void);
void npuacl_unlist(struct npuacl_stream *s);
void npuacl_scheduler_fork(void);

/* ---- execute.c --------------------------------------------------------------------------- */

enum npuacl_outcome {
	NPUACL_DONE,		/* out of tasks */
	NPUACL_WAIT,		/* the first one waits, and whoever will wake the stream knows of it */
	NPUACL_AGAIN,		/* of one task: look again for what is in front */
};
/* Run tasks of a stream that is owned. */
enum npuacl_outcome npuacl_progress(struct npuacl_stream *s);
/* Has what a parked stream waits for come, or its time run out? */
bool npuacl_due(struct npuacl_stream *s, s64 now);
void npuacl_stream_error(struct npuacl_stream *s, u32 task, aclError code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The first task, which waits, does so from now on; @watch: until a word changes. */
enum npuacl_outcome npuacl_wait_begin(struct npuacl_stream *s, const struct npuacl_task *t, bool watch);
void npuacl_waited(struct npuacl_stream *s);
bool npuacl_wait_expired(struct npuacl_stream *s, const struct npuacl_task *t, aclError code);
/* "copy of 4096 bytes from ... to ..." */
void npuacl_task_text(const struct npuacl_task *t, char *buf, size_t size);

/* ---- tasktrace.c, prof.c: what was executed, in a trace ------------------------------------ */

/* The first task begins (@t) while some device is traced; it is done: before it is retired. */
void npuacl_trace_begin(struct npuacl_stream *s, const struct npuacl_task *t);
void npuacl_trace_end(struct npuacl_stream *s);
/* The "profiler" of aclInit's file: what it asks for, and to begin with that; no lock held for the latter. */
struct json_object;
aclError npuacl_prof_read(const char *path, struct json_object *profiler);
aclError npuacl_prof_begin(void);
void npuacl_prof_release(void);	/* traces that are being written end; no lock held */
void npuacl_prof_fork(void);

/* ---- sdma.c ------------------------------------------------------------------------------ */

struct npuacl_sdma *npuacl_sdma_try(struct npuacl_device *dev, int *err);	/* NULL: all busy, or @err says why none can be made */
struct npuacl_sdma *npuacl_sdma_take(struct npuacl_device *dev, aclError *err);
void npuacl_sdma_put(struct npuacl_device *dev, struct npuacl_sdma *s);
void npuacl_sdma_destroy(struct npuacl_device *dev);
/*
 * Descriptors, in order, on a queue that is owned.  post: copies one in; ring: lets
 * them run and helps; poll: -EAGAIN while the last is not complete, 0, or 1 with the
 * failed one's number (0: the first posted since the last ring) and status.
 */
void npuacl_sdma_post(struct npuacl_sdma *s, const struct npuemu_sdma *d, bool last);
u32 npuacl_sdma_ring(struct npuacl_sdma *s);
int npuacl_sdma_poll(struct npuacl_sdma *s, u32 last, u32 n, s64 deadline, u32 *bad, u32 *status);
/* At once, with nothing else before it: 0 or an error of its own with a message. */
aclError npuacl_sdma_now(struct npuacl_device *dev, const struct npuemu_sdma *d, u32 n, u32 *bad);

static inline void npuacl_desc(struct npuemu_sdma *d, u32 op)
{
	memset(d, 0, sizeof(*d));
	d->dw1 = op << NPUEMU_SQE_OPCODE_SHIFT;
}

/* ---- event.c ------------------------------------------------------------------------------- */

enum npuacl_flavour {
	NPUACL_EVENT_PLAIN,	/* aclrtCreateEvent */
	NPUACL_EVENT_FLAGGED,	/* aclrtCreateEventWithFlag */
	NPUACL_EVENT_EX,	/* aclrtCreateEventExWithFlag */
};

#define NPUACL_EARLY	16u

struct npuacl_event {
	struct npuacl_device *dev;
	u32 id;
	u32 flags;
	enum npuacl_flavour flavour;
	u32 refs;		/* the handle, and each task that names it; atomic */
	pthread_mutex_t lock;
	u64 recorded;		/* records asked for */
	u64 done;		/* all up to it were executed; atomic, under lock to write */
	u64 early[NPUACL_EARLY];	/* later ones that were, too */
	u32 nearly;
	u64 latest;		/* of all that were */
	u64 done_ns;		/* when */
	bool set;		/* FLAGGED with SYNC: recorded, and not reset since */
	u64 waits;		/* asked for, and over */
	u64 waits_done;
	aclError error;		/* the record was dropped */
	u32 bell;		/* futex of who waits on the host */
	u32 sleepers;
	struct npuacl_stream *waiters;
	struct npuacl_event_ipc *ipc;	/* of several processes: eventipc.c */
	struct npuacl_node *captured;	/* its latest record is one that was recorded; atomic */
};

void npuacl_event_get(struct npuacl_event *e);
void npuacl_event_put(struct npuacl_event *e);
void npuacl_events_release(void);	/* all: no stream is left */
/* Other streams wait by its flag, which records set and ResetEvent clears. */
bool npuacl_event_has_flag(const struct npuacl_event *e);
/* What tasks do with it; the stream is owned by the caller. */
void npuacl_event_recorded(struct npuacl_event *e, u64 generation, aclError error);
bool npuacl_event_reached(struct npuacl_event *e, u64 generation);
/* That record, whatever the flavour. */
bool npuacl_event_executed(struct npuacl_event *e, u64 generation);
void npuacl_event_park(struct npuacl_event *e, struct npuacl_stream *s);
void npuacl_event_unpark(struct npuacl_event *e, struct npuacl_stream *s);
void npuacl_event_waited(struct npuacl_event *e);
void npuacl_event_reset(struct npuacl_event *e);

/* ---- hostfunc.c ------------------------------------------------------------------------------ */

enum npuacl_func {
	NPUACL_FUNC_NONE,
	NPUACL_FUNC_GIVEN,	/* to the thread that runs it */
	NPUACL_FUNC_DONE,
};

/* Hand the function of the first task over; when it is done, s->func says so and @s is woken. */
void npuacl_func_give(struct npuacl_stream *s, struct npuacl_task *t);
/* Take it back if nobody has begun; waits for its end if somebody has. */
void npuacl_func_cancel(struct npuacl_stream *s);
void npuacl_func_stop(void);
void npuacl_func_fork(void);

/* ---- notify.c ------------------------------------------------------------------------------- */

void npuacl_notifies_release(struct npuacl_device *d);	/* npuacl.lock held, nothing runs there */
void npuacl_notifies_fork(void);

/* ---- pool.c, allocator.c ----------------------------------------------------------------------- */

void npuacl_pools_release(s32 device);	/* before its memory goes; -1: all */
void npuacl_pools_fork(void);
bool npuacl_pool_keeps(const void *ptr);	/* a block that nobody uses, or not for long */
bool npuacl_allocator_drop(const struct npuacl_stream *s);
void npuacl_allocators_fork(void);

/* ---- event.c, stream.c: helpers --------------------------------------------------------- */

s64 npuacl_deadline_ms(s32 ms);		/* -1: for ever */
s64 npuacl_report_ns(void);		/* after so long a wait is reported; INT32_MAX s: never */

#endif
