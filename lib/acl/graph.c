// SPDX-License-Identifier: MIT
/* Models, their lanes and recorded tasks: made, added to, freed. */
#include <stdlib.h>
#include "graph.h"

#define FIRST_ROOM	32u

pthread_mutex_t npuacl_graph_lock = PTHREAD_MUTEX_INITIALIZER;

#define SLAB(name, type, n) \
	{ .what = (name), .size = NPUEMU_SLAB_SIZE(type), .max = (n), .lock = PTHREAD_MUTEX_INITIALIZER }

struct npuemu_slab npuacl_graphs = SLAB("model", struct npuacl_graph, 65536);
struct npuemu_slab npuacl_nodes = SLAB("recorded task", struct npuacl_node, 1u << 21);
struct npuemu_slab npuacl_groups = SLAB("task group", struct npuacl_group, 1u << 20);
struct npuemu_slab npuacl_conds = SLAB("condition", struct npuacl_cond, 65536);

struct npuacl_spare {
	struct npuacl_spare *next;
	struct npuacl_task task;
};

static u32 next_id;

/* ---- Models --------------------------------------------------------------------------- */

aclError npuacl_graph(aclmdlRI handle, const char *what, struct npuacl_graph **out)
{
	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the model is NULL", what);
	if (!npuemu_slab_alive(&npuacl_graphs, handle))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not a model, or no longer", what, handle);
	*out = handle;
	return ACL_SUCCESS;
}

struct npuacl_graph *npuacl_graph_make(struct npuacl_ctx *ctx)
{
	struct npuacl_graph *g = npuemu_slab_alloc(&npuacl_graphs);

	if (!g)
		return NULL;
	g->id = next_id++;
	g->ctx = ctx;
	g->last_lane = &g->lanes;
	g->queue_end = &g->queue;
	npuemu_slab_publish(&npuacl_graphs, g);
	return g;
}

static void node_free(struct npuacl_node *node)
{
	if (node->release)
		node->release(node->arg);
	if (node->event)
		npuacl_event_put(node->event);
	if (npuemu_slab_retire(&npuacl_nodes, node))
		npuemu_slab_free(&npuacl_nodes, node);
}

static void stream_free(struct npuacl_stream *s)
{
	npuacl_stream_drop(s);
	s->plays = NULL;
	npuacl_stream_unmake(s);
}

static void lane_free(struct npuacl_lane *l)
{
	u32 i;

	if (l->stream && l->kind == NPUACL_LANE_CAPTURE)
		stream_free(l->stream);
	else if (l->stream)
		l->stream->plays = NULL;
	for (i = 0; i < l->n; i++)
		node_free(l->node[i]);
	free(l->node);
	free(l);
}

static void groups_free(struct npuacl_graph *g)
{
	struct npuacl_group *grp;

	while ((grp = g->groups)) {
		g->groups = grp->next;
		free(grp->node);
		if (npuemu_slab_retire(&npuacl_groups, grp))
			npuemu_slab_free(&npuacl_groups, grp);
	}
}

void npuacl_graph_free(struct npuacl_graph *g)
{
	struct npuacl_on_destroy *cb;
	struct npuacl_lane *l;

	if (!npuemu_slab_retire(&npuacl_graphs, g))
		return;
	npuacl_capture_over(g);
	npuacl_graph_let_go(g);
	npuacl_labels_forget(g);
	if (g->exec)
		stream_free(g->exec);
	while ((l = g->lanes)) {
		g->lanes = l->next;
		lane_free(l);
	}
	npuacl_branches_free(g);
	groups_free(g);
	npuacl_spares_free(g);
	while ((cb = g->callbacks)) {
		g->callbacks = cb->next;
		free(cb);
	}
	free(g->external);
	npuemu_slab_free(&npuacl_graphs, g);
}

void npuacl_graph_let_go(struct npuacl_graph *g)
{
	struct npuacl_lane *l;

	for (l = g->lanes; l; l = l->next) {
		if (l->from)
			smp_store_release(&l->from->lane, NULL);
		l->from = NULL;
	}
}

/* A context ends: those of its models that are branches go with the one they are of. */
void npuacl_graphs_release(struct npuacl_ctx *ctx)
{
	struct npuacl_stream *s;
	struct npuacl_graph *g;
	u32 i;

	pthread_mutex_lock(&npuacl_graph_lock);
	for (i = 0; i < npuacl_graphs.used; i++) {
		g = (void *)(npuacl_graphs.base + (size_t)i * npuacl_graphs.size);
		if (!npuemu_slab_alive(&npuacl_graphs, g) || g->ctx != ctx)
			continue;
		npuacl_capture_over(g);
		npuacl_graph_let_go(g);
	}
	for (i = 0; i < npuacl_graphs.used; i++) {
		g = (void *)(npuacl_graphs.base + (size_t)i * npuacl_graphs.size);
		if (npuemu_slab_alive(&npuacl_graphs, g) && g->ctx == ctx && !g->parent)
			npuacl_graph_free(g);
	}
	/* changes that were begun and not ended */
	for (s = ctx->streams; s; s = s->next) {
		struct npuacl_lane *l = s->lane;

		if (!l)
			continue;
		s->lane = NULL;
		free(l->change);
		free(l);
	}
	pthread_mutex_unlock(&npuacl_graph_lock);
}

void npuacl_graphs_fork(void)
{
	struct npuemu_slab *const slabs[] = { &npuacl_graphs, &npuacl_nodes, &npuacl_groups, &npuacl_conds };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(slabs); i++) {
		npuemu_slab_fork(slabs[i]);
	}
	pthread_mutex_init(&npuacl_graph_lock, NULL);
	npuacl_labels_fork();
}

/* ---- Lanes ---------------------------------------------------------------------------- */

aclError npuacl_lane_make(struct npuacl_graph *g, struct npuacl_stream *from,
			  struct npuacl_stream *stream, struct npuacl_lane **out)
{
	struct npuacl_lane *l = calloc(1, sizeof(*l));
	aclError ret = ACL_SUCCESS;

	if (!l)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "out of host memory");
	if (!stream)
		ret = npuacl_stream_make(g->ctx, 0, from->priority, true, &stream);
	if (ret) {
		free(l);
		return ret;
	}
	l->kind = g->built ? NPUACL_LANE_BUILD : NPUACL_LANE_CAPTURE;
	l->graph = g;
	l->from = from;
	l->stream = stream;
	l->head = true;
	stream->plays = l;
	*g->last_lane = l;
	g->last_lane = &l->next;
	g->nlanes++;
	smp_store_release(&from->lane, l);
	*out = l;
	return ACL_SUCCESS;
}

/* Room for one more in an array of pointers. */
static bool grow(void *array, u32 n, u32 *room)
{
	void **list = array, *more;
	u32 want = *room ? 2 * *room : FIRST_ROOM;

	if (n < *room)
		return true;
	more = realloc(*list, want * sizeof(void *));
	if (!more)
		return false;
	*list = more;
	*room = want;
	return true;
}

static bool is_external(const struct npuacl_task *t)
{
	return t->kind == NPUACL_EVENT_RECORD || t->kind == NPUACL_EVENT_WAIT;
}

/* Out of the slab, and of nothing yet. */
static void release_work(void *work)
{
	struct npuacl_work *w = work;

	w->ops->release(w);
}

static struct npuacl_node *node_make(struct npuacl_lane *l, const struct npuacl_task *t)
{
	struct npuacl_graph *g = l->graph;
	struct npuacl_node *node;

	if (!grow(&l->node, l->n, &l->room) ||
	    (is_external(t) && !grow(&g->external, g->nexternal, &g->room_external)))
		return NULL;
	node = npuemu_slab_alloc(&npuacl_nodes);
	if (!node)
		return NULL;
	node->first = *t;
	node->live = &node->first;
	node->kind = t->kind;
	node->flags = t->flags;
	node->lane = l;
	if (t->kind == NPUACL_CALL) {
		node->release = t->own.release;
		node->arg = t->own.arg;
	} else if (t->kind == NPUACL_WORK) {
		node->release = release_work;
		node->arg = t->work;
	}
	return node;
}

aclError npuacl_lane_add(struct npuacl_lane *l, const struct npuacl_task *t, struct npuacl_node **out)
{
	struct npuacl_graph *g = l->graph;
	struct npuacl_node *node = node_make(l, t);
	aclError ret;

	if (!node)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "no memory for a recorded task; model %u has %u", g->id,
				   g->nodes);
	if (l->group) {
		ret = npuacl_group_add(l, node);
		if (ret) {
			npuemu_slab_free(&npuacl_nodes, node);
			return ret;
		}
	}
	if (is_external(t))
		g->external[g->nexternal++] = node;
	node->at = l->n;
	node->seq = g->nodes++;
	node->first.id = node->seq;
	l->node[l->n++] = node;
	if (t->kind != NPUACL_EDGE_RECORD)
		l->work = l->n;
	npuemu_slab_publish(&npuacl_nodes, node);
	if (out)
		*out = node;
	return ACL_SUCCESS;
}

/* What a lane does not take. */
static aclError check_lane(struct npuacl_stream *s, struct npuacl_lane *l)
{
	if (l->kind == NPUACL_LANE_UPDATE)
		return ACL_SUCCESS;
	if (l->closed)
		return npuacl_fail(ACL_ERROR_RT_STREAM_MODEL,
				   "stream %u is bound to model %u, which is complete (aclmdlRIBuildEnd): it takes no more tasks",
				   s->id, l->graph->id);
	if (l->graph->state == NPUACL_GRAPH_INVALID)
		return npuacl_fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
				   "stream %u: an earlier error has made this capture invalid; aclmdlRICaptureEnd ends it", s->id);
	return ACL_SUCCESS;
}

aclError npuacl_record(struct npuacl_stream *s, struct npuacl_task *t, u64 *seq)
{
	struct npuacl_node *node = NULL;
	struct npuacl_lane *l;
	aclError ret;

	pthread_mutex_lock(&npuacl_graph_lock);
	l = s->lane;
	if (!l) {	/* it ended just now */
		pthread_mutex_unlock(&npuacl_graph_lock);
		return npuacl_append(s, t, seq);
	}
	ret = check_lane(s, l);
	if (!ret && l->kind == NPUACL_LANE_UPDATE)
		ret = npuacl_change_add(l, t);
	else if (!ret)
		ret = npuacl_lane_add(l, t, &node);
	if (node)
		npuacl_self.last_task = node->seq;
	pthread_mutex_unlock(&npuacl_graph_lock);
	if (seq)
		*seq = 0;	/* nothing to wait for */
	return ret;
}

/* ---- Parameters that change ------------------------------------------------------------ */

/* A runner may be reading those that it replaces: they stay until the run is over. */
void npuacl_task_spare(struct npuacl_graph *g, struct npuacl_node *node, const struct npuacl_task *t)
{
	struct npuacl_spare *spare = malloc(sizeof(*spare));

	if (!spare) {
		npuemu_log(NPUEMU_LOG_ERROR, "acl: no memory: task %u of model %u stays as it was", node->seq, g->id);
		return;
	}
	spare->task = *t;
	spare->task.id = node->seq;
	spare->next = g->spares;
	g->spares = spare;
	smp_store_release(&node->live, &spare->task);
}

/* No run goes.  Those in use become the tasks' own. */
void npuacl_spares_free(struct npuacl_graph *g)
{
	struct npuacl_spare *spare;
	struct npuacl_lane *l;
	u32 i;

	if (!g->spares)
		return;
	for (l = g->lanes; l; l = l->next)
		for (i = 0; i < l->n; i++) {
			struct npuacl_node *node = l->node[i];

			if (node->live == &node->first)
				continue;
			node->first = *node->live;
			smp_store_release(&node->live, &node->first);
		}
	while ((spare = g->spares)) {
		g->spares = spare->next;
		free(spare);
	}
}
