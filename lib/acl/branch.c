// SPDX-License-Identifier: MIT
/*
 * Tasks that choose what comes next: a model of several by a condition, a stream of
 * the model's that begins.  Values are read when the task
 * runs, by a descriptor, so that an address that is none is an error of the stream.
 */
#include <stdio.h>
#include <stdlib.h>
#include "graph.h"
#include "memory.h"

/* ---- Values ----------------------------------------------------------------------------- */

/* In the runner's thread, whose own last error stays as it was. */
bool npuacl_fetch(struct npuacl_stream *s, const char *what, const void *from, void *to, u64 len)
{
	struct npuacl_thread was = npuacl_self;
	aclError ret = npuacl_copy_now(what, s->dev, (u64)(uintptr_t)to, (u64)(uintptr_t)from, len);

	if (ret)
		npuacl_stream_error(s, 0, ret, "%s", npuacl_self.message);
	npuacl_self = was;
	return !ret;
}

aclError npuacl_check_value(const char *what, const char *role, const void *p, u64 len)
{
	struct npuacl_side side;
	aclError ret;

	if (!p)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the %s is NULL", what, role);
	ret = npuacl_side(what, role, (u64)(uintptr_t)p, len, &side);
	if (ret)
		return ret;
	if ((uintptr_t)p & (len - 1))
		return npuacl_fail(ACL_ERROR_RT_ADDR_UNALIGNED, "%s: the %s at %p is not aligned to %u bytes", what, role, p,
				   (u32)len);
	if (!npuacl_on_device(&side.at))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the %s at %p is not device memory", what, role, p);
	return ACL_SUCCESS;
}

/* @b goes into the lane, with the model. */
aclError npuacl_branch_add(struct npuacl_lane *l, const struct npuacl_branch *b)
{
	struct npuacl_branch *copy = malloc(sizeof(*copy));
	struct npuacl_task t = { .kind = NPUACL_BRANCH, .branch = copy };
	aclError ret;

	if (!copy)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "out of host memory");
	*copy = *b;
	ret = npuacl_lane_add(l, &t, NULL);
	if (ret) {
		free(copy);
		return ret;
	}
	copy->next = l->graph->branches;
	l->graph->branches = copy;
	return ACL_SUCCESS;
}

/* ---- Conditions --------------------------------------------------------------------------- */

static aclError cond_make(struct npuacl_graph *g, struct npuacl_cond **out)
{
	static const char what[] = "aclmdlRICondHandleCreate";
	struct npuacl_cond *c;
	void *word = NULL;
	aclError ret;

	if (g->built)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: model %u is built by hand; conditions are for captured ones",
				   what, g->id);
	if (g->state != NPUACL_GRAPH_CAPTURING)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: model %u is not being captured (any more)", what, g->id);
	ret = aclrtMalloc(&word, sizeof(u64), ACL_MEM_MALLOC_HUGE_FIRST);
	if (ret)
		return ret;
	c = npuemu_slab_alloc(&npuacl_conds);
	if (!c) {
		aclrtFree(word);
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: there are %u conditions, the most there can be", what,
				   npuacl_conds.max);
	}
	c->word = word;
	c->graph = g;
	c->next = g->conds;
	g->conds = c;
	__atomic_store_n(c->word, 0, __ATOMIC_RELEASE);
	npuemu_slab_publish(&npuacl_conds, c);
	*out = c;
	return ACL_SUCCESS;
}

aclError aclmdlRICondHandleCreate(aclmdlRI modelRI, uint32_t defaultLaunchValue, aclmdlRICondHandleFlag flag,
				  aclmdlRICondHandle *handle)
{
	static const char what[] = "aclmdlRICondHandleCreate";
	struct npuacl_cond *c = NULL;
	struct npuacl_graph *g;
	struct npuacl_ctx *ctx;
	aclError ret = npuacl_graph(modelRI, what, &g);

	if (ret)
		return ret;
	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: handle is NULL", what);
	if ((u32)flag > ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: flag %d; 0 or ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT", what,
				   (int)flag);
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	if (g->ctx != ctx)
		return npuacl_fail(ACL_ERROR_RT_MODEL_CONTEXT, "%s: model %u is of another context than this thread's", what,
				   g->id);
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = cond_make(g, &c);
	if (!ret) {
		c->initial = defaultLaunchValue;
		c->assign = flag;
		*handle = c;
	}
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

aclError aclmdlRICondHandleGetCondPtr(aclmdlRICondHandle handle, uint64_t **ptr)
{
	static const char what[] = "aclmdlRICondHandleGetCondPtr";

	if (!handle || !ptr)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", what, handle ? "ptr" : "handle");
	if (!npuemu_slab_alive(&npuacl_conds, handle))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not a condition, or no longer", what, handle);
	*ptr = ((struct npuacl_cond *)handle)->word;
	return ACL_SUCCESS;
}

static aclError check_cond(const char *what, const aclmdlRICondTaskParams *p)
{
	u32 most = p->type == ACL_MODEL_RI_COND_TYPE_IF ? 2 : p->type == ACL_MODEL_RI_COND_TYPE_WHILE ? 1 : 128;

	if (!p->handle || !p->modelRIArray)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", what, p->handle ? "modelRIArray" : "handle");
	if ((u32)p->type > ACL_MODEL_RI_COND_TYPE_SWITCH)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: there is no type %d", what, (int)p->type);
	if (!p->size || p->size > most)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: size %u; 1 to %u for type %d", what, p->size, most,
				   (int)p->type);
	return ACL_SUCCESS;
}

static void cond_branches_free(struct npuacl_cond *c)
{
	while (c->n)
		npuacl_graph_free(c->sub[--c->n]);
	free(c->sub);
	c->sub = NULL;
}

/* Its branches, to be captured: they go with the condition. */
static aclError cond_branches(struct npuacl_cond *c, const aclmdlRICondTaskParams *p)
{
	u32 i;

	c->sub = calloc(p->size, sizeof(struct npuacl_graph *));
	for (i = 0; c->sub && i < p->size; i++) {
		c->sub[i] = npuacl_graph_make(c->graph->ctx);
		if (!c->sub[i])
			break;
		c->sub[i]->parent = c;
		c->n++;
	}
	if (c->n == p->size)
		return ACL_SUCCESS;
	cond_branches_free(c);
	return npuacl_fail(ACL_ERROR_RT_NO_MODEL_RESOURCE, "aclmdlRIAddCondTask: no memory for %u models", p->size);
}

/* Both locks held. */
static aclError add_cond(struct npuacl_stream *s, const aclmdlRICondTaskParams *p)
{
	static const char what[] = "aclmdlRIAddCondTask";
	struct npuacl_branch b = { .kind = NPUACL_BRANCH_COND };
	struct npuacl_cond *c = p->handle;
	struct npuacl_lane *l;
	aclError ret = npuacl_recording(s, what, false, &l);
	u32 i;

	if (ret)
		return ret;
	if (!npuemu_slab_alive(&npuacl_conds, c))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not a condition, or no longer", what, p->handle);
	if (c->graph != l->graph || c->used)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the condition is %s", what,
				   c->used ? "used by a task already" : "of another model than the stream's");
	ret = cond_branches(c, p);
	if (ret)
		return ret;
	c->type = p->type;
	b.cond = c;
	ret = npuacl_branch_add(l, &b);
	for (i = 0; !ret && i < c->n; i++)
		p->modelRIArray[i] = c->sub[i];
	if (ret)
		cond_branches_free(c);
	c->used = !ret;
	return ret;
}

aclError aclmdlRIAddCondTask(aclmdlRICondTaskParams params, aclrtStream stream, uint32_t flags)
{
	static const char what[] = "aclmdlRIAddCondTask";
	aclError ret = check_cond(what, &params);
	struct npuacl_stream *s;

	if (!ret && flags)
		ret = npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: flags %#x; they have to be 0", what, flags);
	if (!ret)
		ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl.lock);
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = add_cond(s, &params);
	pthread_mutex_unlock(&npuacl_graph_lock);
	pthread_mutex_unlock(&npuacl.lock);
	return ret;
}

void npuacl_conds_assign(struct npuacl_graph *g)
{
	struct npuacl_place p;
	struct npuacl_cond *c;

	for (c = g->conds; c; c = c->next)
		/* the program could have freed it */
		if (c->assign && npuacl_place_in(NPUACL_DEVICE, (u64)(uintptr_t)c->word, &p))
			__atomic_store_n(c->word, c->initial, __ATOMIC_RELEASE);
}

aclError npuacl_conds_ready(struct npuacl_graph *g)
{
	struct npuacl_cond *c;
	u32 i;

	for (c = g->conds; c; c = c->next)
		for (i = 0; i < c->n; i++) {
			if (c->sub[i]->state == NPUACL_GRAPH_INVALID)
				g->state = NPUACL_GRAPH_INVALID;
			else if (c->sub[i]->state != NPUACL_GRAPH_READY)
				return npuacl_fail(ACL_ERROR_RT_SUB_ACLGRAPH_IS_CAPTURING,
						   "aclmdlRICaptureEnd: model %u, branch %u of a condition, is not captured yet: aclmdlRICaptureToModelRIBegin and aclmdlRICaptureEnd for each come first",
						   c->sub[i]->id, i);
		}
	return ACL_SUCCESS;
}

/* Which one, now?  NULL: none. */
static struct npuacl_graph *choose(struct npuacl_stream *s, struct npuacl_cond *c)
{
	u64 value;

	if (!npuacl_fetch(s, "condition", c->word, &value, sizeof(value)))
		return NULL;
	switch (c->type) {
	case ACL_MODEL_RI_COND_TYPE_IF:
		return value ? c->sub[0] : c->n > 1 ? c->sub[1] : NULL;
	case ACL_MODEL_RI_COND_TYPE_WHILE:
		return value ? c->sub[0] : NULL;
	default:
		return value < c->n ? c->sub[value] : NULL;
	}
}

/* A branch is over: again, for a loop. */
static enum npuacl_outcome cond_over(struct npuacl_stream *s, struct npuacl_cond *c)
{
	npuacl_waited(s);
	npuacl_run_tell(&c->run, s);
	free(c->run.generations);
	memset(&c->run, 0, sizeof(c->run));
	return c->type == ACL_MODEL_RI_COND_TYPE_WHILE ? NPUACL_AGAIN : NPUACL_DONE;
}

static enum npuacl_outcome cond_execute(struct npuacl_stream *s, struct npuacl_cond *c)
{
	const struct npuacl_task t = { .kind = NPUACL_BRANCH };
	struct npuacl_exec *r = &c->run;

	if (!r->graph) {
		r->graph = choose(s, c);
		if (!r->graph)
			return NPUACL_DONE;
		r->id = r->graph->id;
		r->state = NPUACL_RUN_FRESH;
		pthread_mutex_lock(&npuacl_graph_lock);
		r->graph->asked++;
		pthread_mutex_unlock(&npuacl_graph_lock);
	}
	return npuacl_run_over(r, s) ? cond_over(s, c) : npuacl_wait_begin(s, &t, false);
}

static void cond_drop(struct npuacl_cond *c)
{
	if (!c->run.graph)
		return;
	npuacl_run_drop(&c->run);
	free(c->run.generations);
	memset(&c->run, 0, sizeof(c->run));
}

/* ---- Streams of a model that begin ------------------------------------------------------------ */

/* A stream of the same model, that does not run from the beginning. */
static aclError target(const char *what, struct npuacl_lane *from, aclrtStream handle, struct npuacl_lane **out)
{
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(handle, &s);

	if (ret)
		return ret;
	if (!s->plays || s->plays->graph != from->graph || s->plays->head || s->plays == from)
		return npuacl_fail(ACL_ERROR_RT_STREAM_MODEL,
				   "%s: stream %u is not one that was bound to model %u to begin later (flag 0x7fffffff of aclmdlRIBindStream)",
				   what, s->id, from->graph->id);
	*out = s->plays;
	return ACL_SUCCESS;
}

aclError aclrtActiveStream(aclrtStream activeStream, aclrtStream stream)
{
	static const char what[] = "aclrtActiveStream";
	struct npuacl_branch b = { .kind = NPUACL_BRANCH_ACTIVE };
	struct npuacl_stream *s;
	struct npuacl_lane *l;
	aclError ret;

	if (!activeStream || !stream)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", what, stream ? "activeStream" : "stream");
	ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = npuacl_recording(s, what, true, &l);
	if (!ret)
		ret = target(what, l, activeStream, &b.lane);
	if (!ret)
		ret = npuacl_branch_add(l, &b);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

static aclError check_switch(const char *what, const struct npuacl_branch *b, aclrtCondition cond,
			     aclrtCompareDataType type)
{
	aclError ret;

	if ((u32)cond > ACL_RT_LESS_OR_EQUAL || (u32)type > ACL_RT_SWITCH_INT64)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: condition %d, data type %d: there is no such thing", what,
				   (int)cond, (int)type);
	ret = npuacl_check_value(what, "left value", b->left, b->wide ? 8 : 4);
	return ret ? ret : npuacl_check_value(what, "right value", b->right, b->wide ? 8 : 4);
}

aclError aclrtSwitchStream(void *leftValue, aclrtCondition cond, void *rightValue, aclrtCompareDataType dataType,
			   aclrtStream trueStream, aclrtStream falseStream, aclrtStream stream)
{
	static const char what[] = "aclrtSwitchStream";
	struct npuacl_branch b = {
		.kind = NPUACL_BRANCH_SWITCH, .left = leftValue, .right = rightValue, .compare = cond,
		.wide = dataType == ACL_RT_SWITCH_INT64,
	};
	struct npuacl_stream *s;
	struct npuacl_lane *l;
	aclError ret;

	if (!trueStream || !stream)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", what, stream ? "trueStream" : "stream");
	ret = npuacl_stream(stream, &s);
	if (!ret)
		ret = check_switch(what, &b, cond, dataType);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = npuacl_recording(s, what, true, &l);
	if (!ret)
		ret = target(what, l, trueStream, &b.lane);
	if (!ret && falseStream)
		ret = target(what, l, falseStream, &b.other);
	if (!ret)
		ret = npuacl_branch_add(l, &b);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

static bool holds(u32 cond, s64 a, s64 b)
{
	switch (cond) {
	case ACL_RT_EQUAL:
		return a == b;
	case ACL_RT_NOT_EQUAL:
		return a != b;
	case ACL_RT_GREATER:
		return a > b;
	case ACL_RT_GREATER_OR_EQUAL:
		return a >= b;
	case ACL_RT_LESS:
		return a < b;
	default:
		return a <= b;
	}
}

static bool value(struct npuacl_stream *s, const void *p, bool wide, s64 *out)
{
	s32 narrow;

	if (wide)
		return npuacl_fetch(s, "aclrtSwitchStream", p, out, 8);
	if (!npuacl_fetch(s, "aclrtSwitchStream", p, &narrow, 4))
		return false;
	*out = narrow;
	return true;
}

static void activate(struct npuacl_lane *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&npuacl_graph_lock);
	npuacl_lane_begin(l);
	pthread_mutex_unlock(&npuacl_graph_lock);
}

static void switch_execute(struct npuacl_stream *s, const struct npuacl_branch *b)
{
	s64 left, right;

	if (value(s, b->left, b->wide, &left) && value(s, b->right, b->wide, &right))
		activate(holds(b->compare, left, right) ? b->lane : b->other);
}

/* ---- All of them --------------------------------------------------------------------------------- */

enum npuacl_outcome npuacl_branch_execute(struct npuacl_stream *s, struct npuacl_branch *b)
{
	switch (b->kind) {
	case NPUACL_BRANCH_COND:
		return cond_execute(s, b->cond);
	case NPUACL_BRANCH_ACTIVE:
		activate(b->lane);
		return NPUACL_DONE;
	case NPUACL_BRANCH_SWITCH:
		switch_execute(s, b);
		return NPUACL_DONE;
	default:
		return npuacl_jump(s, b);
	}
}

void npuacl_branch_drop(struct npuacl_branch *b)
{
	if (b->kind == NPUACL_BRANCH_COND)
		cond_drop(b->cond);
}

void npuacl_branch_text(const struct npuacl_branch *b, char *buf, size_t size)
{
	static const char *const text[] = {
		[NPUACL_BRANCH_COND] = "choice of a model", [NPUACL_BRANCH_ACTIVE] = "begin of a stream",
		[NPUACL_BRANCH_SWITCH] = "choice of a stream", [NPUACL_BRANCH_JUMP] = "jump to a label",
	};

	snprintf(buf, size, "%s", text[b->kind]);
}

static void cond_free(struct npuacl_cond *c)
{
	struct npuacl_place p;

	cond_branches_free(c);
	if (npuacl_place_in(NPUACL_DEVICE, (u64)(uintptr_t)c->word, &p) && p.base == (u64)(uintptr_t)c->word)
		aclrtFree(c->word);
	if (npuemu_slab_retire(&npuacl_conds, c))
		npuemu_slab_free(&npuacl_conds, c);
}

void npuacl_branches_free(struct npuacl_graph *g)
{
	struct npuacl_branch *b;
	struct npuacl_cond *c;

	while ((b = g->branches)) {
		g->branches = b->next;
		free(b->labels);
		free(b);
	}
	while ((c = g->conds)) {
		g->conds = c->next;
		cond_free(c);
	}
}
