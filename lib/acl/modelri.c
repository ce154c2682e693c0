// SPDX-License-Identifier: MIT
/* Models as programs handle them: built by hand, executed, stopped, destroyed. */
#include <sched.h>
#include <stdlib.h>
#include "graph.h"

/* Flags of aclmdlRIBindStream(). */
#define FROM_THE_BEGINNING	0u
#define WHEN_ACTIVATED		0x7fffffffu

#define SETTLE_NS		50000000ll

/* ---- Built by hand ------------------------------------------------------------------------ */

aclError aclmdlRIBuildBegin(aclmdlRI *modelRI, uint32_t flag)
{
	static const char what[] = "aclmdlRIBuildBegin";
	struct npuacl_graph *g;
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!modelRI || flag)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what,
				   modelRI ? "flag has to be 0" : "modelRI is NULL");
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	g = npuacl_graph_make(ctx);
	if (g) {
		g->built = true;
		g->state = NPUACL_GRAPH_BUILDING;
	}
	pthread_mutex_unlock(&npuacl_graph_lock);
	if (!g)
		return npuacl_fail(ACL_ERROR_RT_NO_MODEL_RESOURCE, "%s: there are %u models, the most there can be", what,
				   npuacl_graphs.max);
	*modelRI = g;
	return ACL_SUCCESS;
}

/* A model and a stream of the caller's. */
static aclError both(aclmdlRI handle, aclrtStream stream, const char *what, struct npuacl_graph **g,
		     struct npuacl_stream **s)
{
	aclError ret = npuacl_graph(handle, what, g);

	if (ret)
		return ret;
	if (!stream)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the stream is NULL", what);
	ret = npuacl_stream(stream, s);
	if (ret)
		return ret;
	if ((*g)->ctx != (*s)->ctx)
		return npuacl_fail(ACL_ERROR_RT_MODEL_CONTEXT, "%s: model %u and stream %u are of two contexts", what,
				   (*g)->id, (*s)->id);
	return ACL_SUCCESS;
}

static aclError check_building(const struct npuacl_graph *g, const char *what)
{
	if (!g->built)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: model %u is a captured one", what, g->id);
	if (g->state != NPUACL_GRAPH_BUILDING)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: model %u is complete already (aclmdlRIBuildEnd)", what,
				   g->id);
	return ACL_SUCCESS;
}

/* The lock held. */
static aclError bind(struct npuacl_graph *g, struct npuacl_stream *s, u32 flag)
{
	static const char what[] = "aclmdlRIBindStream";
	struct npuacl_lane *l;
	aclError ret = check_building(g, what);

	if (ret)
		return ret;
	if (!(s->flags & ACL_STREAM_PERSISTENT))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: stream %u was not made with ACL_STREAM_PERSISTENT (aclrtCreateStreamWithConfig)", what,
				   s->id);
	if (s->plays || s->lane)
		return npuacl_fail(ACL_ERROR_RT_STREAM_MODEL, "%s: stream %u is part of a model already", what, s->id);
	if (npuacl_pending(s))
		return npuacl_fail(ACL_ERROR_RT_STREAM_NOT_COMPLETE,
				   "%s: stream %u has tasks that are not done: aclrtSynchronizeStream comes first", what, s->id);
	ret = npuacl_lane_make(g, s, s, &l);
	if (!ret)
		l->head = flag == FROM_THE_BEGINNING;
	return ret;
}

aclError aclmdlRIBindStream(aclmdlRI modelRI, aclrtStream stream, uint32_t flag)
{
	static const char what[] = "aclmdlRIBindStream";
	struct npuacl_graph *g;
	struct npuacl_stream *s;
	aclError ret = both(modelRI, stream, what, &g, &s);

	if (ret)
		return ret;
	if (flag != FROM_THE_BEGINNING && flag != WHEN_ACTIVATED)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM,
				   "%s: flag %#x; 0 (runs from the beginning) or 0x7fffffff (when it is activated)", what, flag);
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = bind(g, s, flag);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

aclError aclmdlRIEndTask(aclmdlRI modelRI, aclrtStream stream)
{
	static const char what[] = "aclmdlRIEndTask";
	struct npuacl_task t = { .kind = NPUACL_NOTHING, .flags = NPUACL_END };
	struct npuacl_graph *g;
	struct npuacl_stream *s;
	aclError ret = both(modelRI, stream, what, &g, &s);

	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = check_building(g, what);
	if (!ret && (!s->plays || s->plays->graph != g))
		ret = npuacl_fail(ACL_ERROR_RT_STREAM_MODEL, "%s: stream %u is not bound to model %u (aclmdlRIBindStream)",
				  what, s->id, g->id);
	if (!ret)
		ret = npuacl_lane_add(s->plays, &t, NULL);
	if (!ret)
		g->ends++;
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

/* The lock held. */
static aclError build_end(struct npuacl_graph *g)
{
	static const char what[] = "aclmdlRIBuildEnd";
	aclError ret = check_building(g, what);
	struct npuacl_lane *l;

	if (ret)
		return ret;
	if (!g->ends)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: no stream of model %u has its end (aclmdlRIEndTask)", what,
				   g->id);
	for (l = g->lanes; l; l = l->next)
		l->closed = true;
	npuacl_capture_over(g);
	g->state = NPUACL_GRAPH_READY;
	return ACL_SUCCESS;
}

aclError aclmdlRIBuildEnd(aclmdlRI modelRI, void *reserve)
{
	static const char what[] = "aclmdlRIBuildEnd";
	struct npuacl_graph *g;
	aclError ret = npuacl_graph(modelRI, what, &g);

	if (ret)
		return ret;
	if (reserve)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: reserve has to be NULL", what);
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = build_end(g);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

/* Both locks held.  Its tasks are not the model's any more, which cannot run without them. */
static aclError unbind(struct npuacl_graph *g, struct npuacl_stream *s)
{
	static const char what[] = "aclmdlRIUnbindStream";
	struct npuacl_lane *l = s->plays;

	if (!g->built || !l || l->graph != g)
		return npuacl_fail(ACL_ERROR_RT_STREAM_MODEL, "%s: stream %u is not bound to model %u", what, s->id, g->id);
	if (g->asked)
		return npuacl_fail(ACL_ERROR_RT_MODEL_RUNNING, "%s: model %u is running", what, g->id);
	npuacl_capture_over(g);
	smp_store_release(&s->lane, NULL);
	s->plays = NULL;
	l->from = NULL;
	l->stream = NULL;
	g->state = NPUACL_GRAPH_UNBOUND;
	return ACL_SUCCESS;
}

aclError aclmdlRIUnbindStream(aclmdlRI modelRI, aclrtStream stream)
{
	struct npuacl_graph *g;
	struct npuacl_stream *s;
	aclError ret = both(modelRI, stream, "aclmdlRIUnbindStream", &g, &s);

	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = unbind(g, s);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

/* ---- Executed ------------------------------------------------------------------------------- */

/* The lock held. */
static aclError check_run(const struct npuacl_graph *g, const char *what)
{
	if (g->parent)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "%s: model %u is a branch of a condition: it runs as part of model %u", what, g->id,
				   g->parent->graph->id);
	if (g->state == NPUACL_GRAPH_CAPTURING || g->state == NPUACL_GRAPH_INVALID)
		return npuacl_fail(ACL_ERROR_RT_MODEL_CAPTURED, "%s: model %u is still being captured (aclmdlRICaptureEnd)",
				   what, g->id);
	if (g->state != NPUACL_GRAPH_READY)
		return npuacl_fail(ACL_ERROR_RT_MODEL_EXECUTE, "%s: model %u is %s", what, g->id,
				   g->state == NPUACL_GRAPH_UNBOUND ? "without one of its streams (aclmdlRIUnbindStream)" :
				   "not complete (aclmdlRIBuildEnd)");
	return ACL_SUCCESS;
}

static aclError submit(struct npuacl_graph *g, struct npuacl_stream *s, const char *what, u64 *seq)
{
	struct npuacl_task t = { .kind = NPUACL_GRAPH };
	aclError ret;

	pthread_mutex_lock(&npuacl_graph_lock);
	ret = check_run(g, what);
	if (!ret && (s->lane || s->plays))
		ret = npuacl_fail(s->lane && s->lane->kind == NPUACL_LANE_CAPTURE ? ACL_ERROR_RT_STREAM_CAPTURED :
				  ACL_ERROR_RT_STREAM_MODEL,
				  "%s: stream %u is part of a model itself: a model cannot run in another one", what, s->id);
	if (!ret)
		ret = npuacl_run_make(g, &t.run);
	if (!ret) {
		ret = npuacl_append(s, &t, seq);
		if (ret) {
			g->asked--;
			npuacl_run_unmake(t.run);
		}
	}
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream)
{
	static const char what[] = "aclmdlRIExecuteAsync";
	struct npuacl_graph *g;
	struct npuacl_stream *s = NULL;
	aclError ret = npuacl_graph(modelRI, what, &g);

	if (!ret)
		ret = npuacl_stream(stream, &s);
	if (!ret && g->ctx != s->ctx)
		ret = npuacl_fail(ACL_ERROR_RT_MODEL_CONTEXT, "%s: model %u and stream %u are of two contexts", what, g->id,
				  s->id);
	return ret ? ret : submit(g, s, what, NULL);
}

/* A stream for it that nobody else has. */
static aclError exec_stream(struct npuacl_graph *g, struct npuacl_stream **s)
{
	aclError ret = ACL_SUCCESS;

	pthread_mutex_lock(&npuacl.lock);
	pthread_mutex_lock(&npuacl_graph_lock);
	if (!g->exec)
		ret = npuacl_stream_make(g->ctx, 0, 0, true, &g->exec);
	*s = g->exec;
	pthread_mutex_unlock(&npuacl_graph_lock);
	pthread_mutex_unlock(&npuacl.lock);
	return ret;
}

aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout)
{
	static const char what[] = "aclmdlRIExecute";
	struct npuacl_stream *s = NULL;
	struct npuacl_graph *g;
	struct npuacl_ctx *ctx;
	aclError ret = npuacl_graph(modelRI, what, &g);
	u64 seq;

	if (ret)
		return ret;
	if (timeout < -1 || !timeout)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %d ms; more than 0, or -1, which means for ever", what,
				   timeout);
	ret = npuacl_current(&ctx);
	if (!ret && g->ctx != ctx)
		ret = npuacl_fail(ACL_ERROR_RT_MODEL_CONTEXT, "%s: model %u is of another context than this thread's", what,
				  g->id);
	if (!ret)
		ret = exec_stream(g, &s);
	if (!ret)
		ret = submit(g, s, what, &seq);
	return ret ? ret : npuacl_stream_wait(s, seq, npuacl_deadline_ms(timeout));
}

aclError aclmdlRIAbort(aclmdlRI modelRI)
{
	static const char what[] = "aclmdlRIAbort";
	struct npuacl_graph *g;
	aclError ret = npuacl_graph(modelRI, what, &g);

	if (ret)
		return ret;
	if (!g->built)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "%s: model %u was captured; aclrtStreamAbort of the stream that executes it stops it", what,
				   g->id);
	npuacl_graph_abort(g, ACL_ERROR_RT_MODEL_ABORT_NORMAL);
	return ACL_SUCCESS;
}

/* ---- Destroyed --------------------------------------------------------------------------------- */

/* The lock held.  Of aclmdlRIExecute()'s stream, the task has to be off the queue, too. */
static bool busy(const struct npuacl_graph *g)
{
	return g->asked || g->changes || (g->exec && npuacl_pending(g->exec));
}

/*
 * Who has seen the last thing that a model does (a record, a value) may come before
 * the model itself knows that it is over.
 */
static void settle(struct npuacl_graph *g)
{
	s64 until = npuemu_now_ns() + SETTLE_NS;
	bool wait;

	do {
		pthread_mutex_lock(&npuacl_graph_lock);
		wait = npuemu_slab_alive(&npuacl_graphs, g) && busy(g);
		pthread_mutex_unlock(&npuacl_graph_lock);
		if (wait && !npuacl_help())
			sched_yield();
	} while (wait && npuemu_now_ns() < until);
}

static aclError check_destroy(const struct npuacl_graph *g)
{
	static const char what[] = "aclmdlRIDestroy";

	if (g->parent)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: model %u goes with model %u, of which it is a branch",
				   what, g->id, g->parent->graph->id);
	if (g->state == NPUACL_GRAPH_CAPTURING || g->state == NPUACL_GRAPH_INVALID)
		return npuacl_fail(ACL_ERROR_RT_MODEL_CAPTURED, "%s: model %u is being captured: aclmdlRICaptureEnd comes first",
				   what, g->id);
	if (busy(g))
		return npuacl_fail(ACL_ERROR_RT_MODEL_RUNNING,
				   "%s: model %u has %u runs and %u changes that are not over: synchronize with their streams first",
				   what, g->id, g->asked, g->changes);
	return ACL_SUCCESS;
}

/* Only the one who took the list out calls them, in the order they came, without a lock. */
static void tell_end(struct npuacl_on_destroy *cb)
{
	struct npuacl_on_destroy *next;

	for (; cb; cb = next) {
		next = cb->next;
		cb->fn(cb->arg);
		free(cb);
	}
}

aclError aclmdlRIDestroy(aclmdlRI modelRI)
{
	struct npuacl_on_destroy *callbacks = NULL;
	struct npuacl_graph *g;
	aclError ret = npuacl_graph(modelRI, "aclmdlRIDestroy", &g);

	if (ret)
		return ret;
	settle(g);
	pthread_mutex_lock(&npuacl.lock);
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = npuacl_graph(modelRI, "aclmdlRIDestroy", &g);	/* another thread may have been quicker */
	if (!ret)
		ret = check_destroy(g);
	if (!ret) {
		callbacks = g->callbacks;
		g->callbacks = NULL;
		npuacl_graph_free(g);
	}
	pthread_mutex_unlock(&npuacl_graph_lock);
	pthread_mutex_unlock(&npuacl.lock);
	tell_end(callbacks);
	return ret;
}

aclError aclmdlRIDestroyRegisterCallback(aclmdlRI modelRI, aclrtCallback func, void *userData)
{
	static const char what[] = "aclmdlRIDestroyRegisterCallback";
	struct npuacl_on_destroy *cb, **at;
	struct npuacl_graph *g;
	aclError ret = npuacl_graph(modelRI, what, &g);

	if (ret)
		return ret;
	if (!func)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: func is NULL", what);
	cb = malloc(sizeof(*cb));
	if (!cb)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	*cb = (struct npuacl_on_destroy){ .fn = func, .arg = userData };
	pthread_mutex_lock(&npuacl_graph_lock);
	for (at = &g->callbacks; *at && (*at)->fn != func; at = &(*at)->next)
		;
	if (*at)
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the function is registered for model %u already", what,
				  g->id);
	else
		*at = cb;
	pthread_mutex_unlock(&npuacl_graph_lock);
	if (ret)
		free(cb);
	return ret;
}

aclError aclmdlRIDestroyUnregisterCallback(aclmdlRI modelRI, aclrtCallback func)
{
	static const char what[] = "aclmdlRIDestroyUnregisterCallback";
	struct npuacl_on_destroy *cb, **at;
	struct npuacl_graph *g;
	aclError ret = npuacl_graph(modelRI, what, &g);

	if (ret)
		return ret;
	if (!func)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: func is NULL", what);
	pthread_mutex_lock(&npuacl_graph_lock);
	for (at = &g->callbacks; *at && (*at)->fn != func; at = &(*at)->next)
		;
	cb = *at;
	if (cb)
		*at = cb->next;
	else
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the function is not registered for model %u", what, g->id);
	pthread_mutex_unlock(&npuacl_graph_lock);
	free(cb);
	return ret;
}
