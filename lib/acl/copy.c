// SPDX-License-Identifier: MIT
/*
 * Copies: at once or in a stream, of bytes or of rows.  What is where follows
 * from the addresses; all of it is checked before the first byte moves, and what
 * moves bytes are descriptors.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "check.h"
#include "graph.h"

#define PIECES		16u	/* of a copy that runs across ranges, handed over at a time */
#define MAX_WIDTH	5000000ull
#define MAX_HEIGHT	(5ull << 20)

/* ---- Both sides -------------------------------------------------------------------------- */

/* Ranges next to each other are as good as one if they are used in one way. */
static bool joins(const struct npuacl_place *a, const struct npuacl_place *b)
{
	if (a->kind == NPUACL_MAPPED)
		return b->kind == NPUACL_MAPPED && a->device == b->device && !((a->flags ^ b->flags) & NPUACL_PLACE_HOST);
	if (a->kind == NPUACL_IMPORTED)
		return b->kind == NPUACL_IMPORTED && a->flags & b->flags & NPUACL_PLACE_PART && a->device == b->device;
	return (a->kind == NPUACL_PAGEABLE || a->kind == NPUACL_REGISTERED) &&
	       (b->kind == NPUACL_PAGEABLE || b->kind == NPUACL_REGISTERED);
}

#define RIGHTS	(NPUACL_PLACE_READONLY | NPUACL_PLACE_NOACCESS)

/* Of a mapping that not everybody may do everything with. */
static aclError side_rights(const char *what, const char *role, u64 va, const struct npuacl_place *at)
{
	char text[192];

	if (!(at->flags & NPUACL_PLACE_NOACCESS) && strcmp(role, "target"))
		return ACL_SUCCESS;
	return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the %s, at %#" PRIx64 ", is %s, which may not be %s (aclrtMemSetAccess)",
			   what, role, va, npuacl_explain(va, text, sizeof(text)),
			   at->flags & NPUACL_PLACE_NOACCESS ? "used" : "written");
}

static aclError side_far(const char *what, u64 len, struct npuacl_side *s)
{
	struct npuacl_place at = s->at, next;
	u64 last = s->va + len - 1;
	char text[192];

	if (last < s->va)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: the %s, %" PRIu64 " bytes from %#" PRIx64 " on, goes beyond the last address",
				   what, s->role, len, s->va);
	while (at.end <= last) {
		npuacl_place_of(at.end, &next);
		if (!joins(&at, &next)) {
			u64 over = last - at.end + 1;

			if (at.kind == NPUACL_PAGEABLE)
				return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
						   "%s: the %s, %" PRIu64 " bytes from %#" PRIx64 " on, reaches %" PRIu64 " bytes into %s",
						   what, s->role, len, s->va, over, npuacl_explain(at.end, text, sizeof(text)));
			return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
					   "%s: the %s, %" PRIu64 " bytes from %#" PRIx64 " on, is %" PRIu64 " bytes too long: it begins %s%s",
					   what, s->role, len, s->va, over, s->va == s->at.base ? "at " : "",
					   npuacl_explain(s->va, text, sizeof(text)));
		}
		/* a host range may never end */
		if (next.end <= at.end)
			break;
		at = next;
		if (unlikely(at.flags & RIGHTS)) {
			aclError ret = side_rights(what, s->role, at.base, &at);

			if (ret)
				return ret;
		}
	}
	s->split = true;
	return ACL_SUCCESS;
}

static aclError find_side(const char *what, const char *role, u64 va, u64 len, struct npuacl_side *s)
{
	s->va = va;
	s->role = role;
	s->split = false;
	npuacl_place_of(va, &s->at);
	if (unlikely(s->at.flags & RIGHTS)) {
		aclError ret = side_rights(what, role, va, &s->at);

		if (ret)
			return ret;
	}
	return likely(len <= s->at.end - va) ? ACL_SUCCESS : side_far(what, len, s);
}

aclError npuacl_side(const char *what, const char *role, u64 va, u64 len, struct npuacl_side *s)
{
	aclError ret = find_side(what, role, va, len, s);

	if (unlikely(npuacl_check_on) && (ret || s->at.kind == NPUACL_PAGEABLE))
		npuacl_check_side(what, role, va, len);
	return ret;
}

static bool reaches(const struct npuacl_device *dev, const struct npuacl_place *p)
{
	return p->device == dev->id || p->flags & NPUACL_PLACE_PEER || READ_ONCE(dev->peer[p->device]);
}

aclError npuacl_sides(const char *what, const struct npuacl_device *dev, const struct npuacl_side *dst,
		      const struct npuacl_side *src)
{
	u32 peer;

	if (!npuacl_on_device(&dst->at) || !npuacl_on_device(&src->at) || dst->at.device == src->at.device)
		return ACL_SUCCESS;
	if (likely(reaches(dev, &dst->at) && reaches(dev, &src->at)))
		return ACL_SUCCESS;
	peer = reaches(dev, &dst->at) ? src->at.device : dst->at.device;
	return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
			   "%s: from device %u to device %u, by device %u, which may not access device %u: aclrtDeviceEnablePeerAccess(%u, 0) on device %u comes first",
			   what, src->at.device, dst->at.device, dev->id, peer, peer, dev->id);
}

static u64 left(struct npuacl_side *s, u64 done)
{
	u64 va = s->va + done;

	if (va - s->at.base >= s->at.end - s->at.base)
		npuacl_place_of(va, &s->at);
	return s->at.end - va;
}

u64 npuacl_piece(struct npuacl_side *dst, struct npuacl_side *src, u64 done, u64 len)
{
	u64 n = len - done, k;

	if (dst->split) {
		k = left(dst, done);
		n = k < n ? k : n;
	}
	if (src && src->split) {
		k = left(src, done);
		n = k < n ? k : n;
	}
	return n;
}

aclError npuacl_check_kind(const char *what, aclrtMemcpyKind kind)
{
	if ((u32)kind <= ACL_MEMCPY_INTER_DEVICE_TO_DEVICE)
		return ACL_SUCCESS;
	return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: there is no kind %d; ACL_MEMCPY_DEFAULT is %d", what,
			   (int)kind, ACL_MEMCPY_DEFAULT);
}

/* The addresses count, so this is a hint, for who looks for one. */
static void compare_kind(const char *what, aclrtMemcpyKind kind, const struct npuacl_side *dst,
			 const struct npuacl_side *src)
{
	bool to = npuacl_on_device(&dst->at), from = npuacl_on_device(&src->at), same;

	if (likely(npuemu_log_at < (int)NPUEMU_LOG_DEBUG) || kind == ACL_MEMCPY_DEFAULT)
		return;
	switch (kind) {
	case ACL_MEMCPY_HOST_TO_HOST:
		same = !to && !from;
		break;
	case ACL_MEMCPY_HOST_TO_DEVICE:
	case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE:
		same = to && !from;
		break;
	case ACL_MEMCPY_DEVICE_TO_HOST:
		same = !to && from;
		break;
	default:
		same = to && from;
		break;
	}
	if (!same)
		npuemu_log(NPUEMU_LOG_DEBUG, "%s: kind %d, but the addresses say %s to %s, and that is done", what,
			   (int)kind, from ? "device" : "host", to ? "device" : "host");
}

static bool overlap(u64 a, u64 b, u64 len)
{
	return a != b && (a - b < len || b - a < len);
}

/* ---- At once -------------------------------------------------------------------------------- */

/* It failed: is it that an address is none? */
static bool is_wrong(u64 va, u64 len)
{
	struct npuacl_place p;

	npuacl_place_of(va, &p);
	return p.kind == NPUACL_PAGEABLE && (npuacl_was_freed(va) || !npuacl_is_mapped(va) || !npuacl_is_mapped(va + len - 1));
}

aclError npuacl_now(const char *what, struct npuacl_device *dev, const struct npuemu_sdma *d, u32 n)
{
	char reason[512], to[192], from[192];
	bool has_source, wrong;
	u32 bad = 0;
	aclError ret = npuacl_sdma_now(dev, d, n, &bad);

	if (likely(ret != ACL_ERROR_RT_SYS_DMA))
		return ret;
	d += bad;
	has_source = d->dw1 >> NPUEMU_SQE_OPCODE_SHIFT != NPUEMU_SDMA_FILL;
	wrong = is_wrong(d->dst, d->len) || (has_source && is_wrong(d->src, d->len));
	snprintf(reason, sizeof(reason), "%.511s", strstr(npuacl_self.message, ") ") ?
		 strstr(npuacl_self.message, ") ") + 2 : npuacl_self.message);
	npuacl_explain(d->dst, to, sizeof(to));
	if (!has_source)
		return npuacl_fail(wrong ? ACL_ERROR_RT_PARAM_INVALID : ret, "%s: %s; the target is %s%s", what, reason,
				   to, wrong ? ", and not there" : "");
	return npuacl_fail(wrong ? ACL_ERROR_RT_PARAM_INVALID : ret, "%s: %s; the source is %s, the target is %s%s",
			   what, reason, npuacl_explain(d->src, from, sizeof(from)), to,
			   wrong ? ": one of them is not there" : "");
}

static aclError check_copy(const char *what, const struct npuacl_device *dev, u64 to, u64 from, u64 len,
			   struct npuacl_side *dst, struct npuacl_side *src)
{
	aclError ret = npuacl_side(what, "target", to, len, dst);

	if (!ret)
		ret = npuacl_side(what, "source", from, len, src);
	if (!ret)
		ret = npuacl_sides(what, dev, dst, src);
	if (!ret && unlikely(overlap(to, from, len)))
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				  "%s: source and target, %" PRIu64 " bytes from %#" PRIx64 " and %#" PRIx64 " on, overlap",
				  what, len, from, to);
	return ret;
}

static void copy_desc(struct npuemu_sdma *d, u64 dst, u64 src, u64 len)
{
	npuacl_desc(d, NPUEMU_SDMA_COPY);
	d->dst = dst;
	d->src = src;
	d->len = len;
}

static aclError move_now(const char *what, struct npuacl_device *dev, struct npuacl_side *dst,
			 struct npuacl_side *src, u64 len)
{
	struct npuemu_sdma d[PIECES];
	u64 done = 0, n;
	u32 k = 0;
	aclError ret;

	if (likely(!dst->split && !src->split)) {
		copy_desc(d, dst->va, src->va, len);
		return npuacl_now(what, dev, d, 1);
	}
	while (done < len) {
		n = npuacl_piece(dst, src, done, len);
		copy_desc(&d[k++], dst->va + done, src->va + done, n);
		done += n;
		if (k < PIECES && done < len)
			continue;
		ret = npuacl_now(what, dev, d, k);
		if (ret)
			return ret;
		k = 0;
	}
	return ACL_SUCCESS;
}

aclError npuacl_copy_now(const char *what, struct npuacl_device *dev, u64 to, u64 from, u64 len)
{
	struct npuacl_side dst, src;
	aclError ret = check_copy(what, dev, to, from, len, &dst, &src);

	return ret ? ret : move_now(what, dev, &dst, &src, len);
}

/* NULL and too large: what needs no look at the addresses. */
static aclError check_args(const char *what, const void *dst, size_t dest_max, const void *src, size_t count,
			   aclrtMemcpyKind kind)
{
	if (unlikely(!dst || !src))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", what, dst ? "src" : "dst");
	if (unlikely(count > dest_max))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: count (%zu) is more than destMax (%zu)", what, count,
				   dest_max);
	return npuacl_check_kind(what, kind);
}

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind)
{
	static const char what[] = "aclrtMemcpy";
	struct npuacl_side to, from;
	struct npuacl_ctx *ctx;
	aclError ret = check_args(what, dst, destMax, src, count, kind);

	if (!ret)
		ret = npuacl_current(&ctx);
	if (!ret)
		ret = npuacl_capture_refuses(NULL, what);
	if (ret || !count)
		return ret;
	ret = check_copy(what, ctx->dev, (u64)(uintptr_t)dst, (u64)(uintptr_t)src, count, &to, &from);
	if (ret)
		return ret;
	compare_kind(what, kind, &to, &from);
	return move_now(what, ctx->dev, &to, &from, count);
}

/* ---- In a stream ------------------------------------------------------------------------------- */

static bool pageable(const struct npuacl_side *s)
{
	return s->split ? !npuacl_on_device(&s->at) : s->at.kind == NPUACL_PAGEABLE;
}

aclError npuacl_copy_submit(struct npuacl_stream *s, struct npuacl_side *dst, struct npuacl_side *src,
			    u64 len, u64 *seq)
{
	struct npuacl_task t;
	u64 done, n;
	aclError ret;

	t.kind = NPUACL_SDMA;
	t.flags = 0;
	t.timeout_ns = 0;
	for (done = 0; done < len; done += n) {
		n = npuacl_piece(dst, src, done, len);
		copy_desc(&t.sdma, dst->va + done, src->va + done, n);
		ret = npuacl_submit(s, &t, seq);
		if (ret)
			return ret;
	}
	return ACL_SUCCESS;
}

/* The source may change when the call returns: copy from a copy of it. */
static aclError through_buffer(const char *what, struct npuacl_stream *s, struct npuacl_side *dst,
			       struct npuacl_side *src, u64 len)
{
	struct npuacl_task t = { .kind = NPUACL_CALL };
	void *copy = malloc(len);
	struct npuacl_side from;
	aclError ret;
	u64 seq;

	if (!copy)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory: no buffer of %" PRIu64 " bytes", what,
				   len);
	ret = npuacl_copy_now(what, s->dev, (u64)(uintptr_t)copy, src->va, len);
	if (!ret)
		ret = npuacl_side(what, "source", (u64)(uintptr_t)copy, len, &from);
	if (ret) {
		free(copy);
		return ret;
	}
	ret = npuacl_copy_submit(s, dst, &from, len, &seq);
	if (ret) {
		npuacl_stream_wait(s, smp_load_acquire(&s->issued), NPUEMU_FOREVER);
		free(copy);
		return ret;
	}
	t.own.release = free;
	t.own.arg = copy;
	ret = npuacl_submit(s, &t, &seq);
	if (!ret)
		return ACL_SUCCESS;
	npuacl_stream_wait(s, seq, NPUEMU_FOREVER);
	free(copy);
	return ret;
}

static aclError copy_async(const char *what, void *dst, size_t dest_max, const void *src, size_t count,
			   aclrtMemcpyKind kind, aclrtStream stream)
{
	struct npuacl_side to, from;
	struct npuacl_stream *s;
	aclError ret = check_args(what, dst, dest_max, src, count, kind);
	u64 seq;

	if (!ret)
		ret = npuacl_stream(stream, &s);
	if (ret || !count)
		return ret;
	ret = check_copy(what, s->dev, (u64)(uintptr_t)dst, (u64)(uintptr_t)src, count, &to, &from);
	if (ret)
		return ret;
	if (unlikely((!npuacl_on_device(&to.at) && !npuacl_on_device(&from.at)) || kind == ACL_MEMCPY_HOST_TO_HOST)) {
		char text[192], text2[192];

		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "%s: from host to host is not supported (aclrtMemcpy does that): %p is %s, %p is %s", what,
				   src, npuacl_explain(from.va, text, sizeof(text)), dst,
				   npuacl_explain(to.va, text2, sizeof(text2)));
	}
	compare_kind(what, kind, &to, &from);
	if (kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE && !npuacl_on_device(&from.at))
		return through_buffer(what, s, &to, &from, count);
	if (npuacl_records(s) && (pageable(&to) || pageable(&from))) {
		ret = npuacl_capture_pageable(s, what);
		return ret ? ret : move_now(what, s->dev, &to, &from, count);
	}
	ret = npuacl_copy_submit(s, &to, &from, count, &seq);
	if (ret || likely(!pageable(&to) && !pageable(&from)))
		return ret;
	return npuacl_stream_wait(s, seq, NPUEMU_FOREVER);
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
			  aclrtStream stream)
{
	return copy_async("aclrtMemcpyAsync", dst, destMax, src, count, kind, stream);
}

aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src, size_t count,
				       aclrtMemcpyKind kind, aclrtStream stream)
{
	return copy_async("aclrtMemcpyAsyncWithCondition", dst, destMax, src, count, kind, stream);
}

/* ---- Rows ------------------------------------------------------------------------------------- */

struct rows {
	u64 dst, dpitch, src, spitch, width, height;
};

static aclError check_rows(const char *what, const struct rows *r, aclrtMemcpyKind kind, bool async)
{
	aclError ret = npuacl_check_kind(what, kind);

	if (ret)
		return ret;
	if (!r->dst || !r->src)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", what, r->dst ? "src" : "dst");
	if (kind != ACL_MEMCPY_HOST_TO_DEVICE && kind != ACL_MEMCPY_DEVICE_TO_HOST && kind != ACL_MEMCPY_DEFAULT &&
	    !(async && (kind == ACL_MEMCPY_DEVICE_TO_DEVICE || kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE)))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: kind %d is not supported: it is for copies %s", what,
				   (int)kind, async ? "with a device" : "between host and device");
	if (r->width > r->dpitch || r->width > r->spitch)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM,
				   "%s: width (%" PRIu64 ") is more than a pitch (dpitch %" PRIu64 ", spitch %" PRIu64 ")", what,
				   r->width, r->dpitch, r->spitch);
	if (r->width > MAX_WIDTH || r->height > MAX_HEIGHT)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM,
				   "%s: width %" PRIu64 ", height %" PRIu64 "; at most %llu and %llu", what, r->width, r->height,
				   MAX_WIDTH, MAX_HEIGHT);
	if (r->dpitch >> 31 || r->spitch >> 31)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM,
				   "%s: dpitch %" PRIu64 ", spitch %" PRIu64 "; less than 2 GiB each", what, r->dpitch, r->spitch);
	return ACL_SUCCESS;
}

static aclError rows_sides(const char *what, const struct npuacl_device *dev, const struct rows *r, bool async,
			   struct npuacl_side *dst, struct npuacl_side *src)
{
	aclError ret = npuacl_side(what, "target", r->dst, (r->height - 1) * r->dpitch + r->width, dst);
	bool to, from;

	if (!ret)
		ret = npuacl_side(what, "source", r->src, (r->height - 1) * r->spitch + r->width, src);
	if (!ret)
		ret = npuacl_sides(what, dev, dst, src);
	if (ret)
		return ret;
	to = npuacl_on_device(&dst->at);
	from = npuacl_on_device(&src->at);
	if (!(async ? to || from : to != from))
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: from %s to %s is not supported", what,
				   from ? "device" : "host", to ? "device" : "host");
	return ACL_SUCCESS;
}

static void rows_desc(struct npuemu_sdma *d, const struct rows *r)
{
	npuacl_desc(d, NPUEMU_SDMA_COPY_2D);
	d->dst = r->dst;
	d->src = r->src;
	d->len = r->width;
	d->height = (u32)r->height;
	d->dst_pitch = r->dpitch;
	d->src_pitch = r->spitch;
}

static aclError rows_now(const char *what, struct npuacl_device *dev, const struct rows *r, bool split)
{
	aclError ret = ACL_SUCCESS;
	struct npuemu_sdma d;
	u64 i;

	if (!split) {
		rows_desc(&d, r);
		return npuacl_now(what, dev, &d, 1);
	}
	for (i = 0; i < r->height && !ret; i++)
		ret = npuacl_copy_now(what, dev, r->dst + i * r->dpitch, r->src + i * r->spitch, r->width);
	return ret;
}

aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
		       aclrtMemcpyKind kind)
{
	static const char what[] = "aclrtMemcpy2d";
	struct rows r = { (u64)(uintptr_t)dst, dpitch, (u64)(uintptr_t)src, spitch, width, height };
	aclError ret = check_rows(what, &r, kind, false);
	struct npuacl_side to, from;
	struct npuacl_ctx *ctx;

	if (!ret)
		ret = npuacl_current(&ctx);
	if (!ret)
		ret = npuacl_capture_refuses(NULL, what);
	if (ret || !width || !height)
		return ret;
	ret = rows_sides(what, ctx->dev, &r, false, &to, &from);
	if (ret)
		return ret;
	return rows_now(what, ctx->dev, &r, to.split || from.split);
}

aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			    size_t height, aclrtMemcpyKind kind, aclrtStream stream)
{
	static const char what[] = "aclrtMemcpy2dAsync";
	struct rows r = { (u64)(uintptr_t)dst, dpitch, (u64)(uintptr_t)src, spitch, width, height };
	struct npuacl_task t = { .kind = NPUACL_SDMA };
	aclError ret = check_rows(what, &r, kind, true);
	struct npuacl_side to, from;
	struct npuacl_stream *s;
	u64 i, seq;

	if (!ret)
		ret = npuacl_stream(stream, &s);
	if (ret || !width || !height)
		return ret;
	ret = rows_sides(what, s->dev, &r, true, &to, &from);
	if (ret)
		return ret;
	if (npuacl_records(s) && (pageable(&to) || pageable(&from))) {
		ret = npuacl_capture_pageable(s, what);
		return ret ? ret : rows_now(what, s->dev, &r, to.split || from.split);
	}
	if (!to.split && !from.split) {
		rows_desc(&t.sdma, &r);
		ret = npuacl_submit(s, &t, &seq);
	}
	for (i = 0; (to.split || from.split) && i < height && !ret; i++) {
		struct npuacl_side d, f;

		ret = check_copy(what, s->dev, r.dst + i * dpitch, r.src + i * spitch, width, &d, &f);
		if (!ret)
			ret = npuacl_copy_submit(s, &d, &f, width, &seq);
	}
	if (ret || (!pageable(&to) && !pageable(&from)))
		return ret;
	return npuacl_stream_wait(s, seq, NPUEMU_FOREVER);
}
