// SPDX-License-Identifier: MIT
/*
 * Many copies in one call, all between host and device and all in one direction.
 * Every entry is checked before the first is copied.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "graph.h"
#include "memory.h"

struct batch {
	const char *what;
	void **dsts;
	const size_t *maxs;
	void **srcs;
	const size_t *sizes;
	size_t n;
	const aclrtMemcpyBatchAttr *attrs;
	const size_t *from;	/* the entry at which an attribute begins */
	size_t nattrs;
	size_t *fail_index;
	/* found out */
	bool known;		/* the direction */
	bool to_device;
	bool waits;		/* pageable memory is part of it */
};

static aclError check_lists(const struct batch *b)
{
	size_t i;

	if (!b->dsts || !b->maxs || !b->srcs || !b->sizes || !b->attrs || !b->from)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", b->what,
				   !b->dsts ? "dsts" : !b->maxs ? "destMaxs" : !b->srcs ? "srcs" : !b->sizes ? "sizes" :
				   !b->attrs ? "attrs" : "attrsIndexes");
	if (!b->n || !b->nattrs || b->nattrs > b->n)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM,
				   "%s: numBatches is %zu, numAttrs is %zu; at least 1, and not more attributes than copies",
				   b->what, b->n, b->nattrs);
	if (b->from[0])
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: attrsIndexes[0] has to be 0, not %zu", b->what,
				   b->from[0]);
	for (i = 1; i < b->nattrs; i++)
		if (b->from[i] <= b->from[i - 1] || b->from[i] >= b->n)
			return npuacl_fail(ACL_ERROR_INVALID_PARAM,
					   "%s: attrsIndexes[%zu] is %zu; more than the one before it (%zu), and less than numBatches (%zu)",
					   b->what, i, b->from[i], b->from[i - 1], b->n);
	return ACL_SUCCESS;
}

static bool location_is(const aclrtMemLocation *l, const struct npuacl_place *p)
{
	switch (l->type) {
	case ACL_MEM_LOCATION_TYPE_DEVICE:
		return npuacl_on_device(p) && p->device == l->id;
	case ACL_MEM_LOCATION_TYPE_HOST:
	case ACL_MEM_LOCATION_TYPE_HOST_NUMA:
		return !npuacl_on_device(p);
	case ACL_MEM_LOCATION_TYPE_UNREGISTERED:
		return p->kind == NPUACL_PAGEABLE;
	default:
		return false;
	}
}

static aclError check_location(const struct batch *b, size_t i, size_t k, const aclrtMemLocation *l,
			       const struct npuacl_side *s)
{
	char text[192];

	if (location_is(l, &s->at))
		return ACL_SUCCESS;
	return npuacl_fail(ACL_ERROR_INVALID_PARAM,
			   "%s: copy %zu: attribute %zu says its %s is of type %d, id %u, but %#" PRIx64 " is %s", b->what, i,
			   k, s->role, (int)l->type, l->id, s->va, npuacl_explain(s->va, text, sizeof(text)));
}

static aclError sides(struct batch *b, const struct npuacl_device *dev, size_t i, struct npuacl_side *dst,
		      struct npuacl_side *src)
{
	aclError ret = npuacl_side(b->what, "target", (u64)(uintptr_t)b->dsts[i], b->sizes[i], dst);

	if (!ret)
		ret = npuacl_side(b->what, "source", (u64)(uintptr_t)b->srcs[i], b->sizes[i], src);
	return ret ? ret : npuacl_sides(b->what, dev, dst, src);
}

static aclError check_entry(struct batch *b, const struct npuacl_device *dev, size_t i, size_t k)
{
	struct npuacl_side dst, src;
	aclError ret;
	bool to;

	if (!b->dsts[i] || !b->srcs[i])
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: copy %zu: its %s is NULL", b->what, i,
				   b->dsts[i] ? "source" : "target");
	if (b->sizes[i] > b->maxs[i])
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: copy %zu: its size (%zu) is more than destMaxs (%zu)",
				   b->what, i, b->sizes[i], b->maxs[i]);
	if (!b->sizes[i])
		return ACL_SUCCESS;
	ret = sides(b, dev, i, &dst, &src);
	if (!ret)
		ret = check_location(b, i, k, &b->attrs[k].dstLoc, &dst);
	if (!ret)
		ret = check_location(b, i, k, &b->attrs[k].srcLoc, &src);
	if (ret)
		return ret;
	to = npuacl_on_device(&dst.at);
	if (to == npuacl_on_device(&src.at))
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: copy %zu is from %s to %s; a batch is between host and device",
				   b->what, i, to ? "device" : "host", to ? "device" : "host");
	if (b->known && to != b->to_device)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: copy %zu is to the %s, those before it are to the %s: one direction a batch", b->what, i,
				   to ? "device" : "host", to ? "host" : "device");
	b->known = true;
	b->to_device = to;
	b->waits |= dst.at.kind == NPUACL_PAGEABLE || src.at.kind == NPUACL_PAGEABLE || dst.split || src.split;
	return ACL_SUCCESS;
}

static aclError check_batch(struct batch *b, const struct npuacl_device *dev)
{
	size_t i, k = 0;
	aclError ret;

	for (i = 0; i < b->n; i++) {
		if (k + 1 < b->nattrs && i == b->from[k + 1])
			k++;
		ret = check_entry(b, dev, i, k);
		if (ret) {
			if (b->fail_index)
				*b->fail_index = i;
			return ret;
		}
	}
	return ACL_SUCCESS;
}

/* What is wrong is nobody's in particular, unless check_batch() says so. */
static aclError begin(struct batch *b, bool wants_index)
{
	if (wants_index && !b->fail_index)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: failIndex is NULL", b->what);
	if (b->fail_index)
		*b->fail_index = SIZE_MAX;
	return check_lists(b);
}

/* All checked. */
static aclError batch_on(struct batch *b, struct npuacl_device *dev)
{
	struct npuemu_sdma d[NPUACL_BATCH];
	struct npuacl_side dst, src;
	aclError ret = ACL_SUCCESS;
	u64 done;
	u32 k = 0;
	size_t i;

	for (i = 0; i < b->n && !ret; i++) {
		if (!b->sizes[i])
			continue;
		ret = sides(b, dev, i, &dst, &src);
		for (done = 0; !ret && done < b->sizes[i]; ) {
			npuacl_desc(&d[k], NPUEMU_SDMA_COPY);
			d[k].dst = dst.va + done;
			d[k].src = src.va + done;
			d[k].len = npuacl_piece(&dst, &src, done, b->sizes[i]);
			done += d[k++].len;
			if (k < NPUACL_BATCH)
				continue;
			ret = npuacl_now(b->what, dev, d, k);
			k = 0;
		}
	}
	return ret || !k ? ret : npuacl_now(b->what, dev, d, k);
}

static aclError batch_now(struct batch *b, bool wants_index)
{
	aclError ret = begin(b, wants_index);
	struct npuacl_ctx *ctx = NULL;

	if (!ret)
		ret = npuacl_current(&ctx);
	if (!ret)
		ret = npuacl_capture_refuses(NULL, b->what);
	if (!ret)
		ret = check_batch(b, ctx->dev);
	return ret ? ret : batch_on(b, ctx->dev);
}

static aclError batch_async(struct batch *b, bool wants_index, aclrtStream stream)
{
	struct npuacl_side dst, src;
	struct npuacl_stream *s = NULL;
	aclError ret = begin(b, wants_index);
	u64 seq = 0;
	size_t i;

	if (!ret)
		ret = npuacl_stream(stream, &s);
	if (!ret)
		ret = check_batch(b, s->dev);
	if (!ret && b->waits && npuacl_records(s)) {
		ret = npuacl_capture_pageable(s, b->what);
		return ret ? ret : batch_on(b, s->dev);
	}
	for (i = 0; i < b->n && !ret; i++) {
		if (!b->sizes[i])
			continue;
		ret = sides(b, s->dev, i, &dst, &src);
		if (!ret)
			ret = npuacl_copy_submit(s, &dst, &src, b->sizes[i], &seq);
	}
	return ret || !b->waits ? ret : npuacl_stream_wait(s, seq, NPUEMU_FOREVER);
}

#define BATCH(name, index)							\
	{ .what = (name), .dsts = dsts, .maxs = destMaxs, .srcs = srcs, .sizes = sizes,	\
	  .n = numBatches, .attrs = attrs, .from = attrsIndexes, .nattrs = numAttrs,	\
	  .fail_index = (index) }

aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
			  aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs,
			  size_t *failIndex)
{
	struct batch b = BATCH("aclrtMemcpyBatch", failIndex);

	return batch_now(&b, true);
}

aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
			       aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs,
			       size_t *failIndex, aclrtStream stream)
{
	struct batch b = BATCH("aclrtMemcpyBatchAsync", failIndex);

	return batch_async(&b, true, stream);
}

aclError aclrtMemcpyBatchV2(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
			    aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs)
{
	struct batch b = BATCH("aclrtMemcpyBatchV2", NULL);

	return batch_now(&b, false);
}

aclError aclrtMemcpyBatchAsyncV2(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
				 size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
				 size_t numAttrs, aclrtStream stream)
{
	struct batch b = BATCH("aclrtMemcpyBatchAsyncV2", NULL);

	return batch_async(&b, false, stream);
}
