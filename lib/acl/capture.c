// SPDX-License-Identifier: MIT
/*
 * Capture: what is submitted to a stream becomes tasks of a model.
 *
 * Other streams join by waiting for an event that was recorded in one that is
 * captured, and have to be waited for in turn before the end.  Such events are
 * edges of the model and mean nothing outside; those that others are to know of
 * (ACL_EVENT_EXTERNAL) are recorded, waited for and reset in each run.
 */
#include "graph.h"

u32 npuacl_captures;

static struct npuacl_graph *active;	/* npuacl_graph_lock */
static __thread aclmdlRICaptureMode thread_mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;

/* ---- What is refused meanwhile --------------------------------------------------------- */

/*
 * The strictest mode of the context's captures, and of those that this thread began,
 * against the mode that the thread has set for itself.
 */
static bool forbidden(const struct npuacl_ctx *ctx)
{
	u32 none = ACL_MODEL_RI_CAPTURE_MODE_RELAXED + 1, in_ctx = none, mine = none;
	const struct npuacl_graph *g;

	pthread_mutex_lock(&npuacl_graph_lock);
	for (g = active; g; g = g->next_active) {
		if (g->ctx == ctx && g->mode < in_ctx)
			in_ctx = g->mode;
		if (g->thread == (u64)pthread_self() && g->mode < mine)
			mine = g->mode;
	}
	pthread_mutex_unlock(&npuacl_graph_lock);
	if (in_ctx == none)
		return false;
	switch (thread_mode) {
	case ACL_MODEL_RI_CAPTURE_MODE_GLOBAL:
		return in_ctx == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL ||
		       mine == ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL;
	case ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL:
		return mine <= ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL;
	default:
		return false;
	}
}

static aclError check_state(struct npuacl_stream *s, const char *what)
{
	struct npuacl_lane *l;
	bool captured;

	pthread_mutex_lock(&npuacl_graph_lock);
	l = s->lane;
	captured = l && l->kind == NPUACL_LANE_CAPTURE;
	pthread_mutex_unlock(&npuacl_graph_lock);
	if (!captured)
		return ACL_SUCCESS;
	return npuacl_fail(ACL_ERROR_RT_STREAM_CAPTURED,
			   "%s: stream %u is being captured: its tasks are recorded and do not run; aclmdlRICaptureEnd comes first",
			   what, s->id);
}

aclError npuacl_capture_forbids(struct npuacl_stream *s, const char *what)
{
	if (s)
		return check_state(s, what);
	if (!npuacl_self.ctx || !forbidden(npuacl_self.ctx))
		return ACL_SUCCESS;
	return npuacl_fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
			   "%s: not while a stream is captured in this mode: it is done at once and would not be part of the model; aclmdlRICaptureThreadExchangeMode(ACL_MODEL_RI_CAPTURE_MODE_RELAXED) allows that",
			   what);
}

aclError npuacl_capture_pageable_slow(struct npuacl_stream *s, const char *what)
{
	struct npuacl_lane *l;
	bool refused;

	pthread_mutex_lock(&npuacl_graph_lock);
	l = s->lane;
	refused = l && l->kind == NPUACL_LANE_UPDATE;
	pthread_mutex_unlock(&npuacl_graph_lock);
	if (!refused && l && l->kind == NPUACL_LANE_CAPTURE)
		refused = forbidden(s->ctx);
	if (!refused)
		return ACL_SUCCESS;
	return npuacl_fail(ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC,
			   "%s: host memory that is not pinned (aclrtMallocHost, aclrtHostRegister) is copied before the call returns, which stream %u cannot record",
			   what, s->id);
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode *mode)
{
	static const char what[] = "aclmdlRICaptureThreadExchangeMode";
	aclmdlRICaptureMode was = thread_mode;

	if (!mode)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: mode is NULL", what);
	if ((u32)*mode > ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: there is no mode %d", what, (int)*mode);
	thread_mode = *mode;
	*mode = was;
	return ACL_SUCCESS;
}

/* ---- Begin ------------------------------------------------------------------------------- */

/* Both locks held. */
static aclError check_begin(struct npuacl_stream *s, const char *what)
{
	if (s->implicit)
		return npuacl_fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
				   "%s: stream %u is a default stream, which cannot be captured: aclrtCreateStream makes one that can",
				   what, s->id);
	if (s->lane && s->lane->kind == NPUACL_LANE_CAPTURE)
		return npuacl_fail(ACL_ERROR_RT_STREAM_CAPTURED, "%s: stream %u is being captured already", what, s->id);
	if (s->lane && s->lane->kind == NPUACL_LANE_UPDATE)
		return npuacl_fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS,
				   "%s: stream %u changes a task group; aclmdlRICaptureTaskUpdateEnd comes first", what, s->id);
	if (s->lane || s->plays || s->flags & ACL_STREAM_PERSISTENT)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "%s: stream %u is for models that are built by hand (ACL_STREAM_PERSISTENT), and cannot be captured",
				   what, s->id);
	return ACL_SUCCESS;
}

static aclError begin_locked(struct npuacl_stream *s, struct npuacl_graph *g, aclmdlRICaptureMode mode,
			     const char *what)
{
	bool made = !g;
	struct npuacl_lane *l;
	aclError ret = check_begin(s, what);

	if (ret)
		return ret;
	if (g && g->state != NPUACL_GRAPH_EMPTY)
		return npuacl_fail(ACL_ERROR_RT_MODEL_CAPTURED,
				   "%s: model %u has been captured, or is being: only the branches of aclmdlRIAddCondTask are empty, once",
				   what, g->id);
	if (made)
		g = npuacl_graph_make(s->ctx);
	if (!g)
		return npuacl_fail(ACL_ERROR_RT_NO_MODEL_RESOURCE, "%s: there are %u models, the most there can be", what,
				   npuacl_graphs.max);
	ret = npuacl_lane_make(g, s, NULL, &l);
	if (ret) {
		if (made)
			npuacl_graph_free(g);
		return ret;
	}
	l->origin = true;
	g->state = NPUACL_GRAPH_CAPTURING;
	g->mode = mode;
	g->thread = (u64)pthread_self();
	g->next_active = active;
	active = g;
	npuemu_fetch_add(&npuacl_captures, 1);
	return ACL_SUCCESS;
}

static aclError begin(aclrtStream stream, struct npuacl_graph *g, aclmdlRICaptureMode mode, const char *what)
{
	struct npuacl_stream *s;
	aclError ret;

	if ((u32)mode > ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: there is no mode %d", what, (int)mode);
	ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	if (g && g->ctx != s->ctx)
		return npuacl_fail(ACL_ERROR_RT_MODEL_CONTEXT, "%s: model %u and stream %u are of two contexts", what,
				   g->id, s->id);
	pthread_mutex_lock(&npuacl.lock);
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = begin_locked(s, g, mode, what);
	pthread_mutex_unlock(&npuacl_graph_lock);
	pthread_mutex_unlock(&npuacl.lock);
	return ret;
}

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode)
{
	return begin(stream, NULL, mode, "aclmdlRICaptureBegin");
}

aclError aclmdlRICaptureToModelRIBegin(aclrtStream stream, aclmdlRI modelRI, aclmdlRICaptureMode mode)
{
	struct npuacl_graph *g;
	aclError ret = npuacl_graph(modelRI, "aclmdlRICaptureToModelRIBegin", &g);

	return ret ? ret : begin(stream, g, mode, "aclmdlRICaptureToModelRIBegin");
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus *status, aclmdlRI *modelRI)
{
	static const char what[] = "aclmdlRICaptureGetInfo";
	struct npuacl_stream *s;
	struct npuacl_lane *l;
	aclError ret;

	if (!status && !modelRI)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: status and modelRI are NULL", what);
	ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	l = s->lane;
	if (l && l->kind != NPUACL_LANE_CAPTURE)
		l = NULL;
	if (status)
		*status = !l ? ACL_MODEL_RI_CAPTURE_STATUS_NONE :
			  l->graph->state == NPUACL_GRAPH_CAPTURING ? ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE :
			  ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED;
	if (modelRI)
		*modelRI = l ? l->graph : NULL;
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ACL_SUCCESS;
}

/* ---- End ----------------------------------------------------------------------------------- */

void npuacl_capture_over(struct npuacl_graph *g)
{
	struct npuacl_graph **at = &active;
	struct npuacl_node *n;

	while (*at && *at != g)
		at = &(*at)->next_active;
	if (*at) {
		*at = g->next_active;
		npuemu_fetch_add(&npuacl_captures, -1u);
	}
	while ((n = g->captured)) {
		g->captured = n->next_captured;
		if (n->event->captured == n)
			smp_store_release(&n->event->captured, NULL);
	}
	if (!g->built)
		npuacl_graph_let_go(g);
}

/* Behind its last task there is a record that another lane waits for. */
static bool has_joined(const struct npuacl_lane *l)
{
	u32 i;

	for (i = l->work; i < l->n; i++)
		if (l->node[i]->waits)
			return true;
	return l->origin;
}

static aclError check_joined(const struct npuacl_graph *g)
{
	const struct npuacl_lane *l;

	for (l = g->lanes; l; l = l->next) {
		if (l->group)
			return npuacl_fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS,
					   "aclmdlRICaptureEnd: a task group of stream %u is open: aclmdlRICaptureTaskGrpEnd comes first",
					   l->from->id);
		if (!has_joined(l))
			return npuacl_fail(ACL_ERROR_RT_STREAM_UNJOINED,
					   "aclmdlRICaptureEnd: stream %u, which joined the capture, has not joined back: record an event in it after its last task, and wait for that event in the stream where the capture began",
					   l->from->id);
	}
	return ACL_SUCCESS;
}

/* May it be ended here and now?  Else it goes on. */
static aclError check_end(struct npuacl_stream *s)
{
	struct npuacl_lane *l = s->lane;

	if (!l || l->kind != NPUACL_LANE_CAPTURE)
		return npuacl_fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED,
				   "aclmdlRICaptureEnd: stream %u is not being captured (aclmdlRICaptureBegin)", s->id);
	if (!l->origin)
		return npuacl_fail(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED,
				   "aclmdlRICaptureEnd: the capture did not begin in stream %u, which has joined it", s->id);
	if (l->graph->mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED && l->graph->thread != (u64)pthread_self())
		return npuacl_fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD,
				   "aclmdlRICaptureEnd: another thread began to capture stream %u; only in the relaxed mode may this one end it",
				   s->id);
	return l->graph->state == NPUACL_GRAPH_CAPTURING ? npuacl_conds_ready(l->graph) : ACL_SUCCESS;
}

/* Both locks held. */
static aclError end_locked(struct npuacl_stream *s, aclmdlRI *out)
{
	aclError ret = check_end(s);
	struct npuacl_graph *g;

	if (ret)
		return ret;
	g = s->lane->graph;
	if (g->state == NPUACL_GRAPH_INVALID)
		ret = npuacl_fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
				  "aclmdlRICaptureEnd: an earlier error has made the capture of stream %u invalid", s->id);
	else
		ret = check_joined(g);
	npuacl_capture_over(g);
	if (!ret) {
		g->state = NPUACL_GRAPH_READY;
		*out = g;
	} else if (g->parent) {
		g->state = NPUACL_GRAPH_INVALID;	/* it goes with the model it is of */
	} else {
		npuacl_graph_free(g);
	}
	return ret;
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI *modelRI)
{
	struct npuacl_stream *s;
	aclError ret;

	if (!modelRI)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclmdlRICaptureEnd: modelRI is NULL");
	*modelRI = NULL;
	ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl.lock);
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = end_locked(s, modelRI);
	pthread_mutex_unlock(&npuacl_graph_lock);
	pthread_mutex_unlock(&npuacl.lock);
	return ret;
}

aclError npuacl_recording(struct npuacl_stream *s, const char *what, bool built_too,
			  struct npuacl_lane **out)
{
	struct npuacl_lane *l = s->lane;

	if (!l || l->closed || l->kind == NPUACL_LANE_UPDATE || (l->kind == NPUACL_LANE_BUILD && !built_too))
		return npuacl_fail(built_too ? ACL_ERROR_RT_STREAM_MODEL : ACL_ERROR_RT_STREAM_NOT_CAPTURED,
				   "%s: stream %u is not part of a model that is being %s", what, s->id,
				   built_too ? "built (aclmdlRIBindStream) or captured" : "captured (aclmdlRICaptureBegin)");
	if (l->graph->state == NPUACL_GRAPH_INVALID)
		return npuacl_fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
				   "%s: stream %u: an earlier error has made this capture invalid", what, s->id);
	*out = l;
	return ACL_SUCCESS;
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* One that others know of, as it is: the task keeps it. */
static aclError add_external(struct npuacl_lane *l, struct npuacl_event *e, enum npuacl_kind kind, s64 timeout_ns)
{
	struct npuacl_task t = {
		.kind = (u16)kind, .flags = NPUACL_EXTERNAL, .timeout_ns = timeout_ns, .event.event = e,
	};
	struct npuacl_node *node;
	aclError ret = npuacl_lane_add(l, &t, &node);

	if (ret)
		return ret;
	npuacl_event_get(e);
	node->event = e;
	return ACL_SUCCESS;
}

static aclError add_record(struct npuacl_lane *l, struct npuacl_event *e)
{
	struct npuacl_task t = { .kind = NPUACL_EDGE_RECORD };
	struct npuacl_node *node;
	aclError ret = npuacl_lane_add(l, &t, &node);

	if (ret)
		return ret;
	npuacl_event_get(e);
	node->event = e;
	node->first.node = node;
	node->next_captured = l->graph->captured;
	l->graph->captured = node;
	smp_store_release(&e->captured, node);
	return ACL_SUCCESS;
}

static aclError add_wait(struct npuacl_lane *l, struct npuacl_event *e, s64 timeout_ns)
{
	struct npuacl_task t = { .kind = NPUACL_EDGE_WAIT, .timeout_ns = timeout_ns, .node = e->captured };
	struct npuacl_node *node;
	aclError ret = npuacl_lane_add(l, &t, &node);

	if (ret)
		return ret;
	npuacl_event_get(e);
	node->event = e;
	node->next_wait = e->captured->waits;
	e->captured->waits = node;
	return ACL_SUCCESS;
}

/* The reset of an edge: each run has its own anyway. */
static aclError add_reset(struct npuacl_lane *l, struct npuacl_event *e)
{
	struct npuacl_task t = { .kind = NPUACL_NOTHING };
	struct npuacl_node *node;
	aclError ret = npuacl_lane_add(l, &t, &node);

	if (ret)
		return ret;
	npuacl_event_get(e);
	node->event = e;
	return ACL_SUCCESS;
}

static aclError spoil(struct npuacl_graph *a, struct npuacl_graph *b, aclError ret)
{
	if (a && a->state == NPUACL_GRAPH_CAPTURING)
		a->state = NPUACL_GRAPH_INVALID;
	if (b && b->state == NPUACL_GRAPH_CAPTURING)
		b->state = NPUACL_GRAPH_INVALID;
	return ret;
}

/* An event of another capture, or of a model that is built. */
static aclError cross(struct npuacl_graph *g, struct npuacl_event *e)
{
	struct npuacl_graph *other = e->captured->lane->graph;

	return spoil(g, other, npuacl_fail(ACL_ERROR_STREAM_CAPTURE_CONFLICT,
					   "event %u was recorded in model %u, which is captured, too: it cannot be used in model %u",
					   e->id, other->id, g->id));
}

static bool never_recorded(struct npuacl_event *e)
{
	bool never;

	pthread_mutex_lock(&e->lock);
	never = !e->recorded;
	pthread_mutex_unlock(&e->lock);
	return never;
}

/* A wait for a record that is not part of the capture. */
static aclError wait_outside(struct npuacl_lane *l, struct npuacl_event *e, s64 timeout_ns)
{
	if (l->kind == NPUACL_LANE_BUILD)
		return add_external(l, e, NPUACL_EVENT_WAIT, timeout_ns);
	/* complete, as it always was */
	if (never_recorded(e) && e->flavour != NPUACL_EVENT_FLAGGED)
		return ACL_SUCCESS;
	return spoil(l->graph, NULL,
		     npuacl_fail(ACL_ERROR_RT_CAPTURE_DEPENDENCY,
				 "stream %u is being captured, event %u was %s: its record has to be part of the capture, or the wait ACL_EVENT_WAIT_EXTERNAL",
				 l->from->id, e->id, never_recorded(e) ? "not recorded" : "recorded outside of it"));
}

/* A stream joins: both locks held. */
static aclError join(struct npuacl_stream *s, struct npuacl_event *e, struct npuacl_lane **l)
{
	struct npuacl_graph *g = e->captured->lane->graph;
	aclError ret;

	if (g->ctx != s->ctx)
		return npuacl_fail(ACL_ERROR_STREAM_CAPTURE_CONFLICT,
				   "stream %u cannot join the capture of model %u, which is of another context", s->id, g->id);
	if (g->built)
		return npuacl_fail(ACL_ERROR_RT_STREAM_MODEL,
				   "event %u was recorded in model %u; stream %u is not bound to it (aclmdlRIBindStream)", e->id,
				   g->id, s->id);
	if (g->state != NPUACL_GRAPH_CAPTURING)
		return npuacl_fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
				   "event %u was recorded in a capture that has become invalid", e->id);
	ret = check_begin(s, "joining a capture");
	return ret ? ret : npuacl_lane_make(g, s, NULL, l);
}

static aclError lane_event(struct npuacl_lane *l, struct npuacl_event *e, enum npuacl_kind kind, s64 timeout_ns)
{
	if (e->captured && e->captured->lane->graph != l->graph)
		return cross(l->graph, e);
	switch (kind) {
	case NPUACL_EVENT_RECORD:
		return add_record(l, e);
	case NPUACL_EVENT_WAIT:
		return e->captured ? add_wait(l, e, timeout_ns) : wait_outside(l, e, timeout_ns);
	default:
		return e->captured ? add_reset(l, e) : add_external(l, e, kind, 0);
	}
}

/* Both locks held.  false: it has nothing to do with a capture after all. */
static bool event_locked(struct npuacl_event *e, struct npuacl_stream *s, enum npuacl_kind kind,
			 s64 timeout_ns, bool external, aclError *ret)
{
	struct npuacl_lane *l = s->lane;

	*ret = ACL_SUCCESS;
	external |= e->flavour == NPUACL_EVENT_FLAGGED && e->flags & ACL_EVENT_EXTERNAL;
	/* a flag is one in the models built by hand, too: the wait may have come first */
	external |= l && l->kind == NPUACL_LANE_BUILD && e->flavour == NPUACL_EVENT_FLAGGED;
	if (!l && (external || !e->captured))
		return false;
	if (!l && kind == NPUACL_EVENT_RECORD) {
		/* it means something outside from now on */
		smp_store_release(&e->captured, NULL);
		return false;
	}
	if (!l && kind == NPUACL_EVENT_RESET) {
		*ret = npuacl_capture_event_asked(e, "aclrtResetEvent");
		return true;
	}
	if (!l)
		*ret = join(s, e, &l);
	else if (l->kind == NPUACL_LANE_UPDATE)
		*ret = npuacl_fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT,
				   "stream %u changes a task group, which has no events", s->id);
	else
		*ret = npuacl_recording(s, "an event's task", true, &l);
	if (!*ret)
		*ret = external ? add_external(l, e, kind, timeout_ns) : lane_event(l, e, kind, timeout_ns);
	return true;
}

bool npuacl_capture_event(struct npuacl_event *e, struct npuacl_stream *s, enum npuacl_kind kind,
			  s64 timeout_ns, bool external, aclError *ret)
{
	bool all;

	pthread_mutex_lock(&npuacl.lock);
	pthread_mutex_lock(&npuacl_graph_lock);
	all = event_locked(e, s, kind, timeout_ns, external, ret);
	pthread_mutex_unlock(&npuacl_graph_lock);
	pthread_mutex_unlock(&npuacl.lock);
	return all;
}

aclError npuacl_capture_event_asked(struct npuacl_event *e, const char *what)
{
	return npuacl_fail(ACL_ERROR_RT_EVENT_CAPTURED,
			   "%s: event %u was recorded in a stream that is being captured: it is an edge of the model; aclmdlRICaptureEnd comes first",
			   what, e->id);
}
