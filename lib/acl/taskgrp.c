// SPDX-License-Identifier: MIT
/*
 * Recorded tasks that are changed: the tasks of a group by submitting others in
 * their place, values by their parameters.  A change of a group is a task of the
 * stream it was submitted to, so that events can put it before or behind a run.
 */
#include <stdlib.h>
#include "graph.h"

#define FIRST_ROOM	8u

/* ---- Groups, while they are captured ---------------------------------------------------- */

bool npuacl_group_takes(const struct npuacl_task *t)
{
	switch ((enum npuacl_kind)t->kind) {
	case NPUACL_SDMA:
	case NPUACL_VALUE_WAIT:
	case NPUACL_NOTIFY_WAIT:
	case NPUACL_HOST_FUNC:
		return true;
	default:
		return false;
	}
}

aclError npuacl_group_add(struct npuacl_lane *l, struct npuacl_node *node)
{
	struct npuacl_group *grp = l->group;
	struct npuacl_node **more;
	u32 want = grp->room ? 2 * grp->room : FIRST_ROOM;

	if (!npuacl_group_takes(&node->first))
		return npuacl_fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT,
				   "stream %u: a task group is open, and takes copies, reductions, values, notifies and host functions only",
				   l->from->id);
	if (grp->n == grp->room) {
		more = realloc(grp->node, want * sizeof(struct npuacl_node *));
		if (!more)
			return npuacl_fail(ACL_ERROR_BAD_ALLOC, "out of host memory");
		grp->node = more;
		grp->room = want;
	}
	grp->node[grp->n++] = node;
	node->group = grp;
	return ACL_SUCCESS;
}

static aclError begin_group(struct npuacl_stream *s)
{
	static const char what[] = "aclmdlRICaptureTaskGrpBegin";
	struct npuacl_group *grp;
	struct npuacl_lane *l;
	aclError ret = npuacl_recording(s, what, false, &l);

	if (ret)
		return ret;
	if (l->group)
		return npuacl_fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: a group of stream %u is open already", what,
				   s->id);
	grp = npuemu_slab_alloc(&npuacl_groups);
	if (!grp)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: there are %u groups, the most there can be", what,
				   npuacl_groups.max);
	grp->graph = l->graph;
	grp->next = l->graph->groups;
	l->graph->groups = grp;
	l->group = grp;
	npuemu_slab_publish(&npuacl_groups, grp);
	return ACL_SUCCESS;
}

aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream)
{
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(stream, &s);

	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = begin_group(s);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp *handle)
{
	static const char what[] = "aclmdlRICaptureTaskGrpEnd";
	struct npuacl_lane *l = NULL;
	struct npuacl_stream *s;
	aclError ret;

	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: handle is NULL", what);
	ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = npuacl_recording(s, what, false, &l);
	if (!ret && !l->group)
		ret = npuacl_fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS,
				  "%s: stream %u has no open group (aclmdlRICaptureTaskGrpBegin)", what, s->id);
	if (!ret) {
		*handle = l->group;
		l->group = NULL;
	}
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

/* ---- Changing a group ------------------------------------------------------------------------ */

/* What the stream does when it comes to the change. */
struct change {
	struct npuacl_group *group;
	u32 n;
	struct npuacl_task task[];
};

static aclError begin_change(struct npuacl_stream *s, struct npuacl_group *grp)
{
	static const char what[] = "aclmdlRICaptureTaskUpdateBegin";
	struct npuacl_lane *l = s->lane;

	if (l && l->kind == NPUACL_LANE_UPDATE)
		return npuacl_fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: stream %u changes a group already", what,
				   s->id);
	if (l && l->group)
		return npuacl_fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: stream %u records a group", what, s->id);
	if (l || s->plays)
		return npuacl_fail(l && l->kind == NPUACL_LANE_BUILD ? ACL_ERROR_RT_STREAM_MODEL :
				   ACL_ERROR_RT_STREAM_CAPTURED,
				   "%s: stream %u is part of a model; another one has to bring the change", what, s->id);
	if (grp->updating)
		return npuacl_fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: another stream changes this group already",
				   what);
	if (grp->graph->state != NPUACL_GRAPH_READY)
		return npuacl_fail(ACL_ERROR_RT_MODEL_CAPTURED,
				   "%s: model %u of this group is still being captured (aclmdlRICaptureEnd)", what,
				   grp->graph->id);
	if (grp->graph->ctx != s->ctx)
		return npuacl_fail(ACL_ERROR_RT_MODEL_CONTEXT, "%s: stream %u and model %u are of two contexts", what,
				   s->id, grp->graph->id);
	l = calloc(1, sizeof(*l));
	if (l)
		l->change = calloc(grp->n + 1, sizeof(*l->change));
	if (!l || !l->change) {
		free(l);
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	}
	l->kind = NPUACL_LANE_UPDATE;
	l->from = s;
	l->graph = grp->graph;
	l->group = grp;
	grp->updating = true;
	grp->graph->changes++;
	smp_store_release(&s->lane, l);
	return ACL_SUCCESS;
}

aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle)
{
	static const char what[] = "aclmdlRICaptureTaskUpdateBegin";
	struct npuacl_stream *s;
	aclError ret;

	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the group is NULL", what);
	ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	if (npuemu_slab_alive(&npuacl_groups, handle))
		ret = begin_change(s, handle);
	else
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not a task group, or no longer", what, handle);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

static u32 opcode(const struct npuacl_task *t)
{
	return t->kind == NPUACL_SDMA ? t->sdma.dw1 >> NPUEMU_SQE_OPCODE_SHIFT : 0;
}

aclError npuacl_change_add(struct npuacl_lane *l, const struct npuacl_task *t)
{
	struct npuacl_group *grp = l->group;
	const struct npuacl_task *old;
	char was[160], is[160];

	if (!npuacl_group_takes(t))
		return npuacl_fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT,
				   "stream %u changes a task group, which takes copies, reductions, values, notifies and host functions only",
				   l->from->id);
	if (l->changed == grp->n)
		return npuacl_fail(ACL_ERROR_RT_MODEL_UPDATE_FAILED,
				   "stream %u: the group it changes has %u tasks, and this is one more", l->from->id, grp->n);
	old = &grp->node[l->changed]->first;
	if (old->kind != t->kind || opcode(old) != opcode(t)) {
		npuacl_task_text(old, was, sizeof(was));
		npuacl_task_text(t, is, sizeof(is));
		return npuacl_fail(ACL_ERROR_RT_MODEL_UPDATE_FAILED,
				   "stream %u: task %u of the group it changes is a %s; a %s cannot take its place", l->from->id,
				   l->changed, was, is);
	}
	l->change[l->changed++] = *t;
	return ACL_SUCCESS;
}

static void apply(struct npuacl_stream *s, u32 task, void *arg)
{
	struct change *c = arg;
	struct npuacl_group *grp = c->group;
	u32 i;

	(void)s;
	(void)task;
	pthread_mutex_lock(&npuacl_graph_lock);
	for (i = 0; i < c->n; i++)
		npuacl_task_spare(grp->graph, grp->node[i], &c->task[i]);
	pthread_mutex_unlock(&npuacl_graph_lock);
}

static void change_free(void *arg)
{
	struct change *c = arg;

	pthread_mutex_lock(&npuacl_graph_lock);
	c->group->graph->changes--;
	pthread_mutex_unlock(&npuacl_graph_lock);
	free(c);
}

/* The lock held. */
static aclError end_change(struct npuacl_stream *s, struct change **out)
{
	static const char what[] = "aclmdlRICaptureTaskUpdateEnd";
	struct npuacl_lane *l = s->lane;
	struct change *c = NULL;
	aclError ret = ACL_SUCCESS;

	if (!l || l->kind != NPUACL_LANE_UPDATE)
		return npuacl_fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS,
				   "%s: stream %u changes no group (aclmdlRICaptureTaskUpdateBegin)", what, s->id);
	l->group->updating = false;
	if (l->changed != l->group->n)
		ret = npuacl_fail(ACL_ERROR_RT_MODEL_UPDATE_FAILED,
				  "%s: %u of the %u tasks of the group have come: it stays as it was", what, l->changed,
				  l->group->n);
	else
		c = malloc(sizeof(*c) + l->changed * sizeof(*c->task));
	if (!ret && !c)
		ret = npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	if (ret)
		l->graph->changes--;
	if (c) {
		c->group = l->group;
		c->n = l->changed;
		memcpy(c->task, l->change, c->n * sizeof(*c->task));
	}
	*out = c;
	smp_store_release(&s->lane, NULL);
	free(l->change);
	free(l);
	return ret;
}

aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream)
{
	struct npuacl_task t = { .kind = NPUACL_CALL };
	struct change *c = NULL;
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(stream, &s);

	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = end_change(s, &c);
	pthread_mutex_unlock(&npuacl_graph_lock);
	if (ret)
		return ret;
	t.own.fn = apply;
	t.own.release = change_free;
	t.own.arg = c;
	ret = npuacl_append(s, &t, NULL);
	if (ret)
		change_free(c);
	return ret;
}

/* ---- Parameters ------------------------------------------------------------------------------- */

/* A handle; the lock held. */
static aclError task(aclmdlRITask handle, const char *what, struct npuacl_node **out)
{
	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the task is NULL", what);
	if (!npuemu_slab_alive(&npuacl_nodes, handle))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not a task of a model, or no longer", what,
				   handle);
	*out = handle;
	return ACL_SUCCESS;
}

static aclmdlRITaskType type_of(const struct npuacl_node *node)
{
	switch ((enum npuacl_kind)node->kind) {
	case NPUACL_SDMA:
		return node->flags & NPUACL_VALUE ? ACL_MODEL_RI_TASK_VALUE_WRITE : ACL_MODEL_RI_TASK_DEFAULT;
	case NPUACL_VALUE_WAIT:
		return node->flags & NPUACL_VALUE ? ACL_MODEL_RI_TASK_VALUE_WAIT : ACL_MODEL_RI_TASK_DEFAULT;
	case NPUACL_EVENT_RECORD:
	case NPUACL_EDGE_RECORD:
		return ACL_MODEL_RI_TASK_EVENT_RECORD;
	case NPUACL_EVENT_WAIT:
	case NPUACL_EDGE_WAIT:
		return ACL_MODEL_RI_TASK_EVENT_WAIT;
	case NPUACL_EVENT_RESET:
		return ACL_MODEL_RI_TASK_EVENT_RESET;
	case NPUACL_NOTHING:
		return node->event ? ACL_MODEL_RI_TASK_EVENT_RESET : ACL_MODEL_RI_TASK_DEFAULT;
	default:
		return ACL_MODEL_RI_TASK_DEFAULT;
	}
}

static u32 wait_flag(u32 cmp)
{
	switch (cmp) {
	case NPUEMU_CMP_EQ:
		return ACL_STREAM_WAIT_VALUE_EQ;
	case NPUEMU_CMP_AND:
		return ACL_STREAM_WAIT_VALUE_AND;
	case NPUACL_CMP_NOR:
		return ACL_STREAM_WAIT_VALUE_NOR;
	default:
		return ACL_STREAM_WAIT_VALUE_GEQ;
	}
}

static void get_params(struct npuacl_node *node, aclmdlRITaskParams *p)
{
	const struct npuacl_task *t = node->has_asked ? &node->asked : npuacl_node_task(node);

	memset(p, 0, sizeof(*p));
	p->type = type_of(node);
	p->taskGrp = node->group;
	switch (p->type) {
	case ACL_MODEL_RI_TASK_VALUE_WRITE:
		p->valueWriteTaskParams.devAddr = (void *)(uintptr_t)t->sdma.dst;
		p->valueWriteTaskParams.value = t->sdma.src;
		break;
	case ACL_MODEL_RI_TASK_VALUE_WAIT:
		p->valueWaitTaskParams.devAddr = (void *)(uintptr_t)t->word.word;
		p->valueWaitTaskParams.value = t->word.value;
		p->valueWaitTaskParams.flag = wait_flag(t->word.cmp);
		break;
	case ACL_MODEL_RI_TASK_EVENT_RECORD:
	case ACL_MODEL_RI_TASK_EVENT_WAIT:
	case ACL_MODEL_RI_TASK_EVENT_RESET:
		/* the three have one layout */
		p->eventRecordTaskParams.event = node->event;
		p->eventRecordTaskParams.eventFlag = node->event->flags;
		p->eventRecordTaskParams.recordFlag = node->flags & NPUACL_EXTERNAL ?
						      ACL_EVENT_RECORD_EXTERNAL : ACL_EVENT_RECORD_DEFAULT;
		break;
	default:
		break;
	}
}

static aclError set_params(struct npuacl_node *node, const aclmdlRITaskParams *p)
{
	static const char what[] = "aclmdlRITaskSetParams";
	static const u32 cmp[] = {
		[ACL_STREAM_WAIT_VALUE_GEQ] = NPUACL_CMP_CYCLIC_GE,
		[ACL_STREAM_WAIT_VALUE_EQ] = NPUEMU_CMP_EQ,
		[ACL_STREAM_WAIT_VALUE_AND] = NPUEMU_CMP_AND,
		[ACL_STREAM_WAIT_VALUE_NOR] = NPUACL_CMP_NOR,
	};
	struct npuacl_task t = node->first;
	void *addr;

	if (p->type != type_of(node))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: task %u is of type %d, the parameters of type %d", what,
				   node->seq, (int)type_of(node), (int)p->type);
	if (p->type == ACL_MODEL_RI_TASK_VALUE_WRITE) {
		addr = p->valueWriteTaskParams.devAddr;
		t.sdma.dst = (u64)(uintptr_t)addr;
		t.sdma.src = p->valueWriteTaskParams.value;
	} else if (p->type == ACL_MODEL_RI_TASK_VALUE_WAIT) {
		addr = p->valueWaitTaskParams.devAddr;
		if (p->valueWaitTaskParams.flag >= ARRAY_SIZE(cmp))
			return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: flag %u; 0 (>=), 1 (==), 2 (and) or 3 (nor)", what,
					   p->valueWaitTaskParams.flag);
		t.word.word = addr;
		t.word.value = p->valueWaitTaskParams.value;
		t.word.cmp = cmp[p->valueWaitTaskParams.flag];
	} else {
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "%s: task %u is of type %d; only values that are written or waited for can be changed so; task groups change others",
				   what, node->seq, (int)p->type);
	}
	if (!addr || (uintptr_t)addr & 7)
		return npuacl_fail(addr ? ACL_ERROR_RT_ADDR_UNALIGNED : ACL_ERROR_INVALID_PARAM,
				   "%s: devAddr %p is not a word of device memory at a multiple of 8", what, addr);
	node->asked = t;
	node->has_asked = true;
	return ACL_SUCCESS;
}

aclError aclmdlRITaskGetType(aclmdlRITask handle, aclmdlRITaskType *type)
{
	static const char what[] = "aclmdlRITaskGetType";
	struct npuacl_node *node;
	aclError ret;

	if (!type)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: type is NULL", what);
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = task(handle, what, &node);
	if (!ret)
		*type = type_of(node);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

aclError aclmdlRITaskGetSeqId(aclmdlRITask handle, uint32_t *id)
{
	static const char what[] = "aclmdlRITaskGetSeqId";
	struct npuacl_node *node;
	aclError ret;

	if (!id)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: id is NULL", what);
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = task(handle, what, &node);
	if (!ret)
		*id = node->seq;
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

aclError aclmdlRITaskGetParams(aclmdlRITask handle, aclmdlRITaskParams *params)
{
	static const char what[] = "aclmdlRITaskGetParams";
	struct npuacl_node *node;
	aclError ret;

	if (!params)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: params is NULL", what);
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = task(handle, what, &node);
	if (!ret)
		get_params(node, params);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

aclError aclmdlRITaskSetParams(aclmdlRITask handle, aclmdlRITaskParams *params)
{
	static const char what[] = "aclmdlRITaskSetParams";
	struct npuacl_node *node;
	aclError ret;

	if (!params)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: params is NULL", what);
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = task(handle, what, &node);
	if (!ret)
		ret = set_params(node, params);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

aclError aclmdlRITaskDisable(aclmdlRITask handle)
{
	static const char what[] = "aclmdlRITaskDisable";
	struct npuacl_node *node;
	aclError ret;

	pthread_mutex_lock(&npuacl_graph_lock);
	ret = task(handle, what, &node);
	if (!ret && node->kind == NPUACL_EDGE_RECORD && node->waits) {
		ret = npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				  "%s: task %u is a record that another stream of the model waits for: it cannot be left out", what,
				  node->seq);
	} else if (!ret) {
		node->asked = (struct npuacl_task){ .kind = NPUACL_NOTHING };
		node->has_asked = true;
	}
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

aclError aclmdlRIUpdate(aclmdlRI modelRI)
{
	static const char what[] = "aclmdlRIUpdate";
	struct npuacl_graph *g;
	struct npuacl_lane *l;
	aclError ret;
	u32 i;

	ret = npuacl_graph(modelRI, what, &g);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	if (g->state != NPUACL_GRAPH_READY)
		ret = npuacl_fail(ACL_ERROR_RT_MODEL_UPDATE_FAILED, "%s: model %u is not complete yet", what, g->id);
	else if (g->asked)
		ret = npuacl_fail(ACL_ERROR_RT_MODEL_RUNNING, "%s: model %u is running", what, g->id);
	for (l = g->lanes; l && !ret; l = l->next)
		for (i = 0; i < l->n; i++) {
			struct npuacl_node *node = l->node[i];

			if (node->has_asked)
				npuacl_task_spare(g, node, &node->asked);
			node->has_asked = false;
		}
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}
