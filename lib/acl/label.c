// SPDX-License-Identifier: MIT
/* Labels: places in a model's stream, and the task that goes on from one of several. */
#include <stdlib.h>
#include "graph.h"

struct label {
	struct npuacl_ctx *ctx;
	struct npuacl_lane *lane;	/* NULL: not set */
	u32 at;
};

struct label_list {
	u32 n;
	void **label;
};

static struct npuemu_slab labels = {
	.what = "label", .size = NPUEMU_SLAB_SIZE(struct label), .max = 65536,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static struct npuemu_slab lists = {
	.what = "label list", .size = NPUEMU_SLAB_SIZE(struct label_list), .max = 65536,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static aclError label(aclrtLabel handle, const char *what, struct label **out)
{
	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the label is NULL", what);
	if (!npuemu_slab_alive(&labels, handle))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not a label, or no longer", what, handle);
	*out = handle;
	return ACL_SUCCESS;
}

aclError aclrtCreateLabel(aclrtLabel *out)
{
	static const char what[] = "aclrtCreateLabel";
	struct npuacl_ctx *ctx;
	struct label *lb;
	aclError ret;

	if (!out)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: label is NULL", what);
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	lb = npuemu_slab_alloc(&labels);
	if (!lb)
		return npuacl_fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: there are %u labels, the most there can be", what,
				   labels.max);
	lb->ctx = ctx;
	npuemu_slab_publish(&labels, lb);
	*out = lb;
	return ACL_SUCCESS;
}

aclError aclrtDestroyLabel(aclrtLabel handle)
{
	struct label *lb;
	aclError ret;

	pthread_mutex_lock(&npuacl_graph_lock);
	ret = label(handle, "aclrtDestroyLabel", &lb);
	if (!ret && npuemu_slab_retire(&labels, lb))
		npuemu_slab_free(&labels, lb);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

/* The lock held. */
static aclError set_label(struct label *lb, struct npuacl_stream *s)
{
	static const char what[] = "aclrtSetLabel";
	struct npuacl_task t = { .kind = NPUACL_NOTHING };
	struct npuacl_lane *l;
	aclError ret = npuacl_recording(s, what, true, &l);

	if (!ret && lb->lane)
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the label is set in stream %u already", what,
				  lb->lane->stream->id);
	if (!ret && lb->ctx != s->ctx)
		ret = npuacl_fail(ACL_ERROR_RT_LABEL_CONTEXT, "%s: the label is of another context than stream %u", what,
				  s->id);
	if (!ret)
		ret = npuacl_lane_add(l, &t, NULL);
	if (!ret) {
		lb->lane = l;
		lb->at = l->n - 1;
	}
	return ret;
}

aclError aclrtSetLabel(aclrtLabel handle, aclrtStream stream)
{
	struct npuacl_stream *s;
	struct label *lb;
	aclError ret = npuacl_stream(stream, &s);

	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = label(handle, "aclrtSetLabel", &lb);
	if (!ret)
		ret = set_label(lb, s);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

aclError aclrtCreateLabelList(aclrtLabel *list, size_t num, aclrtLabelList *labelList)
{
	static const char what[] = "aclrtCreateLabelList";
	struct label_list *out;
	struct label *lb;
	aclError ret = ACL_SUCCESS;
	void **copy;
	size_t i;

	if (!list || !labelList || !num || num > labels.max)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what,
				   !list ? "labels is NULL" : !labelList ? "labelList is NULL" : "num is 0, or more than there are labels");
	for (i = 0; i < num && !ret; i++)
		ret = label(list[i], what, &lb);
	if (ret)
		return ret;
	copy = malloc(num * sizeof(*copy));
	out = copy ? npuemu_slab_alloc(&lists) : NULL;
	if (!out) {
		free(copy);
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	}
	memcpy(copy, list, num * sizeof(*copy));
	out->n = (u32)num;
	out->label = copy;
	npuemu_slab_publish(&lists, out);
	*labelList = out;
	return ACL_SUCCESS;
}

static aclError label_list(aclrtLabelList handle, const char *what, struct label_list **out)
{
	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the list is NULL", what);
	if (!npuemu_slab_alive(&lists, handle))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not a list of labels, or no longer", what, handle);
	*out = handle;
	return ACL_SUCCESS;
}

aclError aclrtDestroyLabelList(aclrtLabelList handle)
{
	struct label_list *list;
	aclError ret;

	pthread_mutex_lock(&npuacl_graph_lock);
	ret = label_list(handle, "aclrtDestroyLabelList", &list);
	if (!ret && npuemu_slab_retire(&lists, list)) {
		free(list->label);
		npuemu_slab_free(&lists, list);
	}
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

/* Those that the program has left, at aclFinalize: their models and contexts have gone. */
void npuacl_labels_release(void)
{
	struct label_list *list;
	struct label *lb;
	u32 i;

	pthread_mutex_lock(&npuacl_graph_lock);
	for (i = 0; i < lists.used; i++) {
		list = (struct label_list *)(lists.base + (size_t)i * lists.size);
		if (!npuemu_slab_alive(&lists, list) || !npuemu_slab_retire(&lists, list))
			continue;
		free(list->label);
		npuemu_slab_free(&lists, list);
	}
	for (i = 0; i < labels.used; i++) {
		lb = (struct label *)(labels.base + (size_t)i * labels.size);
		if (npuemu_slab_alive(&labels, lb) && npuemu_slab_retire(&labels, lb))
			npuemu_slab_free(&labels, lb);
	}
	pthread_mutex_unlock(&npuacl_graph_lock);
}

/* The lock held. */
static aclError add_jump(struct npuacl_stream *s, struct label_list *list, struct npuacl_branch *b)
{
	static const char what[] = "aclrtSwitchLabelByIndex";
	struct npuacl_lane *l;
	aclError ret = npuacl_recording(s, what, true, &l);

	if (ret)
		return ret;
	if (!b->max || b->max > list->n)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: maxValue %u; the list has %u labels", what, b->max, list->n);
	b->labels = malloc(b->max * sizeof(*b->labels));
	if (!b->labels)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	memcpy(b->labels, list->label, b->max * sizeof(*b->labels));
	ret = npuacl_branch_add(l, b);
	if (ret)
		free(b->labels);
	return ret;
}

aclError aclrtSwitchLabelByIndex(void *ptr, uint32_t maxValue, aclrtLabelList labelList, aclrtStream stream)
{
	static const char what[] = "aclrtSwitchLabelByIndex";
	struct npuacl_branch b = { .kind = NPUACL_BRANCH_JUMP, .left = ptr, .max = maxValue };
	struct label_list *list;
	struct npuacl_stream *s;
	aclError ret = npuacl_check_value(what, "index", ptr, 4);

	if (!ret)
		ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	ret = label_list(labelList, what, &list);
	if (!ret)
		ret = add_jump(s, list, &b);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

enum npuacl_outcome npuacl_jump(struct npuacl_stream *s, const struct npuacl_branch *b)
{
	const struct label *lb;
	bool there = false;
	u32 i;

	if (!npuacl_fetch(s, "aclrtSwitchLabelByIndex", b->left, &i, 4))
		return NPUACL_DONE;
	if (i >= b->max)
		i = b->max - 1;
	lb = b->labels[i];
	pthread_mutex_lock(&npuacl_graph_lock);
	if (npuemu_slab_alive(&labels, lb) && lb->lane == s->plays) {
		there = true;
		s->replay_at = lb->at;
	}
	pthread_mutex_unlock(&npuacl_graph_lock);
	if (there)
		return NPUACL_AGAIN;
	npuacl_stream_error(s, 0, ACL_ERROR_RT_LABEL_CONTEXT,
			    "aclrtSwitchLabelByIndex: label %u was destroyed, or is not set in this stream", i);
	return NPUACL_DONE;
}

void npuacl_labels_forget(struct npuacl_graph *g)
{
	struct label *lb;
	u32 i;

	for (i = 0; i < labels.used; i++) {
		lb = (void *)(labels.base + (size_t)i * labels.size);
		if (npuemu_slab_alive(&labels, lb) && lb->lane && lb->lane->graph == g)
			lb->lane = NULL;
	}
}

void npuacl_labels_fork(void)
{
	struct npuemu_slab *const slabs[] = { &labels, &lists };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(slabs); i++) {
		npuemu_slab_fork(slabs[i]);
	}
}
