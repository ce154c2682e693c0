/* SPDX-License-Identifier: MIT */
/*
 * Models (aclmdlRI): tasks that were recorded, by capture or by hand, and that run
 * as often as the program likes.
 *
 * What was submitted to one stream is a lane.  A lane has a stream of its own (of a
 * model built by hand: the one that was bound) whose runner goes through the
 * recorded tasks where it would else take them from its queue.  Edges between lanes
 * count runs, so that nothing has to be reset between two.
 *
 *   graph.c     models, lanes and recorded tasks: made, kept, freed
 *   capture.c   streams that are captured, and what they may not do meanwhile
 *   taskgrp.c   recorded tasks that are changed: groups, parameters, left out
 *   replay.c    a model runs
 *   branch.c    tasks that choose what comes next: conditions, streams
 *   label.c     labels, and the task that goes on from one
 *   modelri.c   models built by hand; names, numbers, execution, the end
 *   modelinfo.c what a model consists of
 *
 * npuacl_graph_lock is taken after npuacl.lock and before a stream's.
 */
#ifndef NPUACL_GRAPH_H
#define NPUACL_GRAPH_H

#include "npuacl.h"

struct npuacl_graph;
struct npuacl_group;

/* A recorded task; aclmdlRITask. */
struct npuacl_node {
	struct npuacl_task *live;	/* as it is run; atomic */
	struct npuacl_task first;	/* as it was recorded, or has been changed to */
	u16 kind;			/* as it was recorded */
	u16 flags;
	struct npuacl_lane *lane;
	u32 at;				/* in its lane */
	u32 seq;			/* in its model */
	struct npuacl_group *group;
	struct npuacl_event *event;	/* EVENT_ and EDGE_: kept */
	void (*release)(void *arg);	/* CALL: when the model goes */
	void *arg;
	u64 stamp;			/* EDGE_RECORD: the latest run that came here; atomic */
	struct npuacl_node *waits;	/* EDGE_RECORD: those who wait for it */
	struct npuacl_node *next_wait;
	struct npuacl_node *next_captured;	/* of the model's, while it is captured */
	struct npuacl_task asked;	/* aclmdlRITaskSetParams(), until aclmdlRIUpdate() */
	bool has_asked;
};

enum npuacl_lane_kind {
	NPUACL_LANE_CAPTURE,
	NPUACL_LANE_BUILD,
	NPUACL_LANE_UPDATE,	/* for a while: new parameters for a group */
};

struct npuacl_lane {
	enum npuacl_lane_kind kind;
	struct npuacl_graph *graph;
	struct npuacl_lane *next;	/* of the model */
	struct npuacl_stream *from;	/* recorded, while it is */
	struct npuacl_stream *stream;	/* that runs it */
	bool origin;			/* where the capture began */
	bool head;			/* runs from the beginning */
	bool closed;			/* BUILD: there will be no more */
	u32 n, room;
	u32 work;			/* after the last task that is not a record */
	struct npuacl_node **node;
	struct npuacl_group *group;	/* the one that is open, or that is changed */
	u32 changed;			/* UPDATE: how many tasks of it have come */
	struct npuacl_task *change;
};

/* Tasks that can be changed together; aclrtTaskGrp. */
struct npuacl_group {
	struct npuacl_graph *graph;
	struct npuacl_group *next;
	bool updating;
	u32 n, room;
	struct npuacl_node **node;
};

enum npuacl_run_state {
	NPUACL_RUN_FRESH,
	NPUACL_RUN_QUEUED,	/* another of the same model is not over */
	NPUACL_RUN_GOING,
	NPUACL_RUN_DONE,
};

/* One execution, asked for or under way. */
struct npuacl_exec {
	struct npuacl_graph *graph;
	u32 id;				/* of the model */
	struct npuacl_exec *next;
	struct npuacl_stream *s;	/* that waits for it */
	u32 state;
	u64 *generations;		/* of the external events; NULL: when it begins */
	aclError error;
	char cause[320];
};

/* A branch's kind and operands; its handle is the task. */
enum npuacl_branch_kind {
	NPUACL_BRANCH_COND,
	NPUACL_BRANCH_ACTIVE,
	NPUACL_BRANCH_SWITCH,
	NPUACL_BRANCH_JUMP,
};

struct npuacl_cond {
	struct npuacl_graph *graph;
	struct npuacl_cond *next;
	u64 *word;			/* device memory */
	u64 initial;
	bool assign;
	bool used;
	aclmdlRICondTaskType type;
	u32 n;
	struct npuacl_graph **sub;
	struct npuacl_exec run;
};

struct npuacl_branch {
	enum npuacl_branch_kind kind;
	struct npuacl_branch *next;	/* of the model */
	struct npuacl_cond *cond;
	struct npuacl_lane *lane, *other;	/* ACTIVE, SWITCH: that begin */
	const void *left, *right;
	u32 compare;			/* aclrtCondition */
	bool wide;			/* 64 bits */
	u32 max;			/* JUMP: of the labels */
	void **labels;
};

enum npuacl_graph_state {
	NPUACL_GRAPH_EMPTY,	/* a branch that is yet to be captured */
	NPUACL_GRAPH_CAPTURING,
	NPUACL_GRAPH_INVALID,	/* something went wrong meanwhile */
	NPUACL_GRAPH_BUILDING,
	NPUACL_GRAPH_READY,
	NPUACL_GRAPH_UNBOUND,	/* not all of its streams are there any more */
};

struct npuacl_on_destroy {
	struct npuacl_on_destroy *next;
	aclrtCallback fn;
	void *arg;
};

struct npuacl_graph {
	u32 id;
	u32 state;
	struct npuacl_ctx *ctx;
	bool built;
	struct npuacl_cond *parent;	/* it is a branch of */
	aclmdlRICaptureMode mode;
	u64 thread;			/* that began to capture */
	struct npuacl_graph *next_active;	/* being captured */
	struct npuacl_lane *lanes, **last_lane;
	u32 nlanes, nodes, ends;
	struct npuacl_node *captured;	/* that events point to */
	u32 nexternal, room_external;
	struct npuacl_node **external;	/* in the order they were recorded */
	struct npuacl_group *groups;
	struct npuacl_cond *conds;
	struct npuacl_branch *branches;
	struct npuacl_on_destroy *callbacks;
	struct npuacl_spare *spares;	/* parameters that were replaced, until a run is over */
	struct npuacl_stream *exec;	/* of aclmdlRIExecute() */
	u32 asked;			/* runs that are not over */
	u32 changes;			/* of groups, begun and not over */
	struct npuacl_exec *going, *queue, **queue_end;
	u64 turn;			/* runs begun; atomic */
	u32 lanes_left;
	bool held;			/* no next run for now */
	aclError abort;			/* why the one that goes is stopped */
	char name[513];
};

extern pthread_mutex_t npuacl_graph_lock;
extern struct npuemu_slab npuacl_graphs, npuacl_nodes, npuacl_groups, npuacl_conds;

/* ---- graph.c: the lock held, if not said otherwise ------------------------------------- */

/* A handle of the program's; the lock need not be held. */
aclError npuacl_graph(aclmdlRI handle, const char *what, struct npuacl_graph **out);
struct npuacl_graph *npuacl_graph_make(struct npuacl_ctx *ctx);
/* Not running; no stream records into it.  npuacl.lock held, too. */
void npuacl_graph_free(struct npuacl_graph *g);
/* @stream: that runs it, NULL: one of its own, for which npuacl.lock is held. */
aclError npuacl_lane_make(struct npuacl_graph *g, struct npuacl_stream *from,
			  struct npuacl_stream *stream, struct npuacl_lane **out);
aclError npuacl_lane_add(struct npuacl_lane *l, const struct npuacl_task *t, struct npuacl_node **out);
/* All streams that are recorded into it are so no longer. */
void npuacl_graph_let_go(struct npuacl_graph *g);
void npuacl_task_spare(struct npuacl_graph *g, struct npuacl_node *node, const struct npuacl_task *t);
void npuacl_spares_free(struct npuacl_graph *g);
/* A submitted task; takes the lock. */
aclError npuacl_record(struct npuacl_stream *s, struct npuacl_task *t, u64 *seq);
/* npuacl.lock held: a context ends, its streams have no tasks any more. */
void npuacl_graphs_release(struct npuacl_ctx *ctx);
void npuacl_labels_release(void);
void npuacl_graphs_fork(void);

static inline struct npuacl_task *npuacl_node_task(struct npuacl_node *n)
{
	return smp_load_acquire(&n->live);
}

static inline struct npuacl_task *npuacl_lane_task(struct npuacl_lane *l, u32 at)
{
	return at < l->n ? npuacl_node_task(l->node[at]) : NULL;
}

/* ---- capture.c --------------------------------------------------------------------------- */

extern u32 npuacl_captures;	/* that are under way; atomic */

aclError npuacl_capture_forbids(struct npuacl_stream *s, const char *what);
aclError npuacl_capture_pageable_slow(struct npuacl_stream *s, const char *what);
/*
 * A call that does things at once (@s NULL: 107030, by the modes of the captures and of
 * this thread), or that asks for the state of a stream (107027): may it, now?
 */
static inline aclError npuacl_capture_refuses(struct npuacl_stream *s, const char *what)
{
	return unlikely(READ_ONCE(npuacl_captures)) ? npuacl_capture_forbids(s, what) : ACL_SUCCESS;
}

/* Does it record?  Then a task that would have to be waited for is none of its. */
static inline bool npuacl_records(struct npuacl_stream *s)
{
	return unlikely(smp_load_acquire(&s->lane) != NULL);
}

/* Copies of memory that is not pinned are done at once then: allowed, or 107041? */
static inline aclError npuacl_capture_pageable(struct npuacl_stream *s, const char *what)
{
	return npuacl_records(s) ? npuacl_capture_pageable_slow(s, what) : ACL_SUCCESS;
}

/*
 * A record, wait or reset of @e, which was captured, or @s records: true if that is
 * all there is to do, and *@ret its result.
 */
bool npuacl_capture_event(struct npuacl_event *e, struct npuacl_stream *s, enum npuacl_kind kind,
			  s64 timeout_ns, bool external, aclError *ret);
aclError npuacl_capture_event_asked(struct npuacl_event *e, const char *what);
/* Events are no edges of @g any more, nor streams captured; the lock held. */
void npuacl_capture_over(struct npuacl_graph *g);
/* A lane of @s that may be submitted to now, of a captured model (or of either kind). */
aclError npuacl_recording(struct npuacl_stream *s, const char *what, bool built_too,
			  struct npuacl_lane **out);

/* ---- taskgrp.c ----------------------------------------------------------------------------- */

/* The lock held. */
aclError npuacl_group_add(struct npuacl_lane *l, struct npuacl_node *node);
aclError npuacl_change_add(struct npuacl_lane *l, const struct npuacl_task *t);
bool npuacl_group_takes(const struct npuacl_task *t);

/* ---- replay.c: the runner's ------------------------------------------------------------------ */

enum npuacl_outcome npuacl_replay_execute(struct npuacl_stream *s, struct npuacl_task *t);
void npuacl_replay_drop(struct npuacl_stream *s, struct npuacl_task *t);
void npuacl_replay_retire(struct npuacl_stream *s, u32 n);
void npuacl_replay_text(const struct npuacl_task *t, char *buf, size_t size);
bool npuacl_edge_reached(struct npuacl_node *record);
/* A run for ExecuteAsync, its external events asked for. */
aclError npuacl_run_make(struct npuacl_graph *g, struct npuacl_exec **out);
void npuacl_run_unmake(struct npuacl_exec *r);
/* As a task of @s, which is parked if it is not over; the caller comes again. */
bool npuacl_run_over(struct npuacl_exec *r, struct npuacl_stream *s);
/* @s drops the task: stop what goes. */
void npuacl_run_drop(struct npuacl_exec *r);
void npuacl_run_tell(struct npuacl_exec *r, struct npuacl_stream *s);
/* Another lane of the run that goes; the lock held. */
void npuacl_lane_begin(struct npuacl_lane *l);
void npuacl_graph_abort(struct npuacl_graph *g, aclError why);

/* ---- branch.c ---------------------------------------------------------------------------------- */

enum npuacl_outcome npuacl_branch_execute(struct npuacl_stream *s, struct npuacl_branch *b);
void npuacl_branch_drop(struct npuacl_branch *b);
void npuacl_branch_text(const struct npuacl_branch *b, char *buf, size_t size);
/* The lock held: before each run; with the model. */
void npuacl_conds_assign(struct npuacl_graph *g);
void npuacl_branches_free(struct npuacl_graph *g);
/* All that may follow have been captured? */
aclError npuacl_conds_ready(struct npuacl_graph *g);
/* @len bytes of device memory, aligned; read when the task runs. */
aclError npuacl_check_value(const char *what, const char *role, const void *p, u64 len);
bool npuacl_fetch(struct npuacl_stream *s, const char *what, const void *from, void *to, u64 len);
aclError npuacl_branch_add(struct npuacl_lane *l, const struct npuacl_branch *b);

/* ---- label.c -------------------------------------------------------------------------------------- */

enum npuacl_outcome npuacl_jump(struct npuacl_stream *s, const struct npuacl_branch *b);
/* The labels set in a model are no places any more; the lock held. */
void npuacl_labels_forget(struct npuacl_graph *g);
void npuacl_labels_fork(void);

#endif
