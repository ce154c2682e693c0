// SPDX-License-Identifier: MIT
/*
 * A model runs.
 *
 * An execution is a task of the stream it was submitted to, which waits for it like
 * for an event.  When the stream comes there, each lane that runs from the beginning
 * gets a task of its own: its stream goes through the recorded tasks until the last.
 * The run is over with the last lane.  A model's runs follow each other in the order
 * in which their streams came to them: its lanes are there once.
 */
#include <stdio.h>
#include <stdlib.h>
#include "graph.h"

/* ---- Edges ---------------------------------------------------------------------------- */

bool npuacl_edge_reached(struct npuacl_node *record)
{
	return smp_load_acquire(&record->stamp) == READ_ONCE(record->lane->graph->turn);
}

static void edge_record(struct npuacl_node *record)
{
	struct npuacl_node *w;

	smp_store_release(&record->stamp, READ_ONCE(record->lane->graph->turn));
	for (w = record->waits; w; w = w->next_wait)
		npuacl_wake_parked(w->lane->stream);
}

static enum npuacl_outcome edge_wait(struct npuacl_stream *s, struct npuacl_task *t)
{
	if (!npuacl_edge_reached(t->node) && !npuacl_wait_expired(s, t, ACL_ERROR_RT_WAIT_TIMEOUT))
		return npuacl_wait_begin(s, t, false);
	npuacl_waited(s);
	return NPUACL_DONE;
}

/* ---- Events that others know of ---------------------------------------------------------- */

/* As if each had been asked for by its own call now. */
static u64 *ask_events(struct npuacl_graph *g)
{
	u64 *gen = malloc((g->nexternal + 1) * sizeof(*gen));
	u32 i;

	for (i = 0; gen && i < g->nexternal; i++) {
		struct npuacl_task *t = npuacl_node_task(g->external[i]);
		struct npuacl_event *e;

		if (t->kind == NPUACL_NOTHING)
			continue;
		e = t->event.event;
		pthread_mutex_lock(&e->lock);
		if (t->kind == NPUACL_EVENT_RECORD)
			e->recorded++;
		gen[i] = e->recorded;
		pthread_mutex_unlock(&e->lock);
		if (t->kind == NPUACL_EVENT_WAIT)
			npuemu_fetch_add(&e->waits, 1);
	}
	return gen;
}

static void give_events(struct npuacl_graph *g, const u64 *gen)
{
	u32 i;

	for (i = 0; i < g->nexternal; i++) {
		struct npuacl_task *t = npuacl_node_task(g->external[i]);

		if (t->kind != NPUACL_NOTHING)
			t->event.generation = gen[i];
	}
}

/* The run never began: who waits for its records is told. */
static void fail_events(struct npuacl_graph *g, const u64 *gen, aclError why)
{
	u32 i;

	for (i = 0; gen && i < g->nexternal; i++) {
		struct npuacl_task *t = npuacl_node_task(g->external[i]);

		if (t->kind == NPUACL_EVENT_RECORD)
			npuacl_event_recorded(t->event.event, gen[i], why);
	}
}

/* ---- Begin and end of a run: the lock held ------------------------------------------------- */

static void finish(struct npuacl_graph *g);

void npuacl_lane_begin(struct npuacl_lane *l)
{
	struct npuacl_task t = { .kind = NPUACL_REPLAY, .lane = l };
	struct npuacl_graph *g = l->graph;

	g->lanes_left++;
	if (!npuacl_append(l->stream, &t, NULL))
		return;
	npuacl_stream_error(l->stream, 0, ACL_ERROR_BAD_ALLOC, "out of host memory: it could not begin");
	g->lanes_left--;
}

static void begin(struct npuacl_graph *g, struct npuacl_exec *r)
{
	struct npuacl_lane *l;

	if (!r->generations)
		r->generations = ask_events(g);
	if (r->generations)
		give_events(g, r->generations);
	r->state = NPUACL_RUN_GOING;
	g->going = r;
	g->abort = ACL_SUCCESS;
	WRITE_ONCE(g->turn, g->turn + 1);
	npuacl_conds_assign(g);
	g->lanes_left = 1;	/* not over before all have begun */
	for (l = g->lanes; l; l = l->next) {
		WRITE_ONCE(l->stream->stop_on_error, READ_ONCE(r->s->stop_on_error));
		if (l->head)
			npuacl_lane_begin(l);
	}
	if (!--g->lanes_left)
		finish(g);
}

static void start(struct npuacl_exec *r, struct npuacl_stream *s)
{
	struct npuacl_graph *g = r->graph;

	r->s = s;
	r->next = NULL;
	if (!g->going && !g->held) {
		begin(g, r);
		return;
	}
	r->state = NPUACL_RUN_QUEUED;
	*g->queue_end = r;
	g->queue_end = &r->next;
}

static void begin_next(struct npuacl_graph *g)
{
	struct npuacl_exec *r = g->queue;

	if (!r || g->going || g->held)
		return;
	g->queue = r->next;
	if (!g->queue)
		g->queue_end = &g->queue;
	begin(g, r);
}

/* What went wrong in the lanes is the run's. */
static void collect(struct npuacl_graph *g, struct npuacl_exec *r)
{
	struct npuacl_lane *l;

	r->error = g->abort;
	if (r->error)
		snprintf(r->cause, sizeof(r->cause), "it was stopped");
	for (l = g->lanes; l; l = l->next) {
		struct npuacl_stream *s = l->stream;

		if (!READ_ONCE(s->error))
			continue;
		pthread_mutex_lock(&s->error_lock);
		if (!r->error) {
			r->error = s->error;
			snprintf(r->cause, sizeof(r->cause), "%s", s->cause);
		}
		WRITE_ONCE(s->error, ACL_SUCCESS);
		pthread_mutex_unlock(&s->error_lock);
	}
}

static void finish(struct npuacl_graph *g)
{
	struct npuacl_exec *r = g->going;

	collect(g, r);
	npuacl_spares_free(g);
	g->going = NULL;
	g->asked--;
	r->state = NPUACL_RUN_DONE;
	/* under the lock, without which the stream does not look: it is there still */
	npuacl_wake_parked(r->s);
	begin_next(g);
}

static void lane_over(struct npuacl_lane *l)
{
	struct npuacl_graph *g = l->graph;

	pthread_mutex_lock(&npuacl_graph_lock);
	if (!--g->lanes_left)
		finish(g);
	pthread_mutex_unlock(&npuacl_graph_lock);
}

/* ---- Stopping --------------------------------------------------------------------------------- */

/* No lock held.  The lanes drop what they have left; the next run waits until all have. */
static void stop_lanes(struct npuacl_graph *g)
{
	struct npuacl_lane *l;

	for (l = g->lanes; l; l = l->next)
		npuacl_stream_drop(l->stream);
	pthread_mutex_lock(&npuacl_graph_lock);
	g->held = false;
	begin_next(g);
	pthread_mutex_unlock(&npuacl_graph_lock);
}

/* The lock held. */
static void unqueue(struct npuacl_exec *r)
{
	struct npuacl_exec **at = &r->graph->queue;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	if (!*at)
		r->graph->queue_end = at;
}

void npuacl_run_drop(struct npuacl_exec *r)
{
	struct npuacl_graph *g = r->graph;
	bool going = false;

	pthread_mutex_lock(&npuacl_graph_lock);
	switch ((enum npuacl_run_state)r->state) {
	case NPUACL_RUN_QUEUED:
		unqueue(r);
		fallthrough;
	case NPUACL_RUN_FRESH:
		g->asked--;
		fail_events(g, r->generations, ACL_ERROR_RT_STREAM_ABORT);
		break;
	case NPUACL_RUN_GOING:
		going = true;
		g->held = true;
		g->abort = ACL_ERROR_RT_STREAM_ABORT;
		break;
	case NPUACL_RUN_DONE:
		break;
	}
	pthread_mutex_unlock(&npuacl_graph_lock);
	if (going)
		stop_lanes(g);
}

void npuacl_graph_abort(struct npuacl_graph *g, aclError why)
{
	bool going;

	pthread_mutex_lock(&npuacl_graph_lock);
	going = g->going;
	if (going) {
		g->held = true;
		g->abort = why;
	}
	pthread_mutex_unlock(&npuacl_graph_lock);
	if (going)
		stop_lanes(g);
}

/* ---- The stream that waits for a run ------------------------------------------------------------- */

aclError npuacl_run_make(struct npuacl_graph *g, struct npuacl_exec **out)
{
	struct npuacl_exec *r = calloc(1, sizeof(*r));

	if (r)
		r->generations = ask_events(g);
	if (!r || !r->generations) {
		free(r);
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "out of host memory");
	}
	r->graph = g;
	r->id = g->id;
	g->asked++;
	*out = r;
	return ACL_SUCCESS;
}

void npuacl_run_unmake(struct npuacl_exec *r)
{
	free(r->generations);
	free(r);
}

bool npuacl_run_over(struct npuacl_exec *r, struct npuacl_stream *s)
{
	bool over;

	pthread_mutex_lock(&npuacl_graph_lock);
	if (r->state == NPUACL_RUN_FRESH)
		start(r, s);
	over = r->state == NPUACL_RUN_DONE;
	pthread_mutex_unlock(&npuacl_graph_lock);
	return over;
}

/* The program's functions were told of it when it happened.  The model may have gone. */
void npuacl_run_tell(struct npuacl_exec *r, struct npuacl_stream *s)
{
	if (!r->error)
		return;
	pthread_mutex_lock(&s->error_lock);
	if (!s->error) {
		snprintf(s->cause, sizeof(s->cause), "model %u: %.290s", r->id, r->cause);
		WRITE_ONCE(s->error, r->error);
	}
	pthread_mutex_unlock(&s->error_lock);
}

static enum npuacl_outcome graph(struct npuacl_stream *s, struct npuacl_task *t)
{
	struct npuacl_exec *r = t->run;

	if (!npuacl_run_over(r, s))
		return npuacl_wait_begin(s, t, false);
	npuacl_waited(s);
	npuacl_run_tell(r, s);
	npuacl_run_unmake(r);
	return NPUACL_DONE;
}

static void graph_drop(struct npuacl_stream *s, struct npuacl_task *t)
{
	struct npuacl_exec *r = t->run;

	npuacl_run_drop(r);
	if (!READ_ONCE(s->aborting))
		npuacl_run_tell(r, s);
	npuacl_run_unmake(r);
}

/* ---- What a runner does --------------------------------------------------------------------------- */

/*
 * A lane begins: from here on the tasks are the recorded ones, and the REPLAY stays
 * in front of the queue.  Of an empty one there is nothing to begin.
 */
static enum npuacl_outcome replay(struct npuacl_stream *s, struct npuacl_task *t)
{
	struct npuacl_lane *l = t->lane;

	s->replaying = true;
	s->replay_at = 0;
	if (!l->n)
		npuacl_replay_retire(s, 0);
	return NPUACL_AGAIN;
}

void npuacl_replay_retire(struct npuacl_stream *s, u32 n)
{
	struct npuacl_lane *l = s->plays;

	s->replay_at += n;
	if (s->replay_at < l->n)
		return;
	s->replaying = false;
	npuacl_task_retire(s, 1);
	lane_over(l);
}

enum npuacl_outcome npuacl_replay_execute(struct npuacl_stream *s, struct npuacl_task *t)
{
	switch ((enum npuacl_kind)t->kind) {
	case NPUACL_GRAPH:
		return graph(s, t);
	case NPUACL_REPLAY:
		return replay(s, t);
	case NPUACL_EDGE_RECORD:
		edge_record(t->node);
		return NPUACL_DONE;
	case NPUACL_EDGE_WAIT:
		return edge_wait(s, t);
	case NPUACL_BRANCH:
		return npuacl_branch_execute(s, t->branch);
	default:
		return NPUACL_DONE;
	}
}

void npuacl_replay_drop(struct npuacl_stream *s, struct npuacl_task *t)
{
	switch ((enum npuacl_kind)t->kind) {
	case NPUACL_GRAPH:
		graph_drop(s, t);
		break;
	case NPUACL_EDGE_RECORD:
		edge_record(t->node);
		break;
	case NPUACL_BRANCH:
		npuacl_branch_drop(t->branch);
		break;
	default:
		break;
	}
}

void npuacl_replay_text(const struct npuacl_task *t, char *buf, size_t size)
{
	switch ((enum npuacl_kind)t->kind) {
	case NPUACL_GRAPH:
		snprintf(buf, size, "execution of model %u", t->run->id);
		break;
	case NPUACL_REPLAY:
		snprintf(buf, size, "tasks of model %u", t->lane->graph->id);
		break;
	case NPUACL_EDGE_RECORD:
		snprintf(buf, size, "record of event %u (task %u of the model)", t->node->event->id, t->node->seq);
		break;
	case NPUACL_EDGE_WAIT:
		snprintf(buf, size, "wait for the record of event %u (task %u of the model)", t->node->event->id,
			 t->node->seq);
		break;
	case NPUACL_BRANCH:
		npuacl_branch_text(t->branch, buf, size);
		break;
	default:
		snprintf(buf, size, "mark");
		break;
	}
}
