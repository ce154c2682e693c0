// SPDX-License-Identifier: MIT
/*
 * Filling memory with a byte or a 32-bit word: at once, or in a stream.  What is
 * filled is device memory or host memory that acl knows.
 */
#include <inttypes.h>
#include "graph.h"
#include "memory.h"

#define PIECES	8u

struct fill {
	const char *what;
	u64 va;
	u64 room;		/* what the caller says there is */
	u64 len;		/* bytes */
	u32 width;		/* of the pattern */
	u64 pattern;
};

static aclError check_fill(const struct fill *f)
{
	if (!f->va)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the pointer is NULL", f->what);
	if (f->len > f->room)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM,
				   "%s: %" PRIu64 " bytes to set are more than the %" PRIu64 " that there are", f->what, f->len,
				   f->room);
	return ACL_SUCCESS;
}

/* The next descriptor; how much it does. */
static u64 fill_desc(struct npuemu_sdma *d, const struct fill *f, struct npuacl_side *s, u64 done)
{
	u64 n = npuacl_piece(s, NULL, done, f->len);
	u32 turn = (u32)(done % f->width) * 8;

	npuacl_desc(d, NPUEMU_SDMA_FILL);
	d->dst = f->va + done;
	d->len = n;
	d->dst_pitch = f->width;
	d->src = f->pattern;
	/* a piece may begin inside a word */
	if (turn)
		d->src = (u32)(f->pattern >> turn | f->pattern << (f->width * 8 - turn));
	return n;
}

static aclError fill_on(const struct fill *f, struct npuacl_device *dev)
{
	struct npuemu_sdma d[PIECES];
	struct npuacl_side s;
	aclError ret = npuacl_side(f->what, "target", f->va, f->len, &s);
	u64 done = 0;
	u32 k = 0;

	while (!ret && done < f->len) {
		done += fill_desc(&d[k++], f, &s, done);
		if (k < PIECES && done < f->len)
			continue;
		ret = npuacl_now(f->what, dev, d, k);
		k = 0;
	}
	return ret;
}

static aclError fill_now(const struct fill *f)
{
	struct npuacl_ctx *ctx = NULL;
	aclError ret = check_fill(f);

	if (!ret)
		ret = npuacl_current(&ctx);
	if (!ret)
		ret = npuacl_capture_refuses(NULL, f->what);
	return ret || !f->len ? ret : fill_on(f, ctx->dev);
}

static aclError fill_async(const struct fill *f, aclrtStream stream)
{
	struct npuacl_task t = { .kind = NPUACL_SDMA };
	struct npuacl_stream *st;
	struct npuacl_side s;
	aclError ret = check_fill(f);
	u64 done = 0, seq = 0;

	if (!ret)
		ret = npuacl_stream(stream, &st);
	if (ret || !f->len)
		return ret;
	ret = npuacl_side(f->what, "target", f->va, f->len, &s);
	if (!ret && npuacl_records(st) && (s.at.kind == NPUACL_PAGEABLE || s.split)) {
		ret = npuacl_capture_pageable(st, f->what);
		return ret ? ret : fill_on(f, st->dev);
	}
	while (!ret && done < f->len) {
		done += fill_desc(&t.sdma, f, &s, done);
		ret = npuacl_submit(st, &t, &seq);
	}
	/* as of copies: pageable memory is not touched after the call */
	if (ret || (s.at.kind != NPUACL_PAGEABLE && !s.split))
		return ret;
	return npuacl_stream_wait(st, seq, NPUEMU_FOREVER);
}

static struct fill bytes(const char *what, void *p, size_t room, s32 value, size_t n)
{
	return (struct fill){
		.what = what, .va = (u64)(uintptr_t)p, .room = room, .len = n, .width = 1,
		.pattern = (u32)value & 0xff,
	};
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
	struct fill f = bytes("aclrtMemset", devPtr, maxCount, value, count);

	return fill_now(&f);
}

aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream)
{
	struct fill f = bytes("aclrtMemsetAsync", devPtr, maxCount, value, count);

	return fill_async(&f, stream);
}

static aclError words(const char *what, void *p, size_t room, u32 value, size_t n, struct fill *f)
{
	if (n > SIZE_MAX / 4)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: N (%zu) words are more than there are addresses", what,
				   n);
	*f = (struct fill){
		.what = what, .va = (u64)(uintptr_t)p, .room = room, .len = 4 * n, .width = 4, .pattern = value,
	};
	return ACL_SUCCESS;
}

aclError aclrtMemsetD32(void *ptr, size_t memSize, uint32_t value, size_t N)
{
	struct fill f = { .va = 0 };
	aclError ret = words("aclrtMemsetD32", ptr, memSize, value, N, &f);

	return ret ? ret : fill_now(&f);
}

aclError aclrtMemsetD32Async(void *ptr, size_t memSize, uint32_t value, size_t N, aclrtStream stream)
{
	struct npuacl_stream *s;
	struct npuacl_place p;
	struct fill f = { .va = 0 };
	aclError ret = words("aclrtMemsetD32Async", ptr, memSize, value, N, &f);

	if (ret)
		return ret;
	/* documented: host memory is set at once, the stream has no part in it */
	npuacl_place_of(f.va, &p);
	if (npuacl_on_device(&p))
		return fill_async(&f, stream);
	ret = npuacl_stream(stream, &s);
	return ret ? ret : fill_now(&f);
}
