// SPDX-License-Identifier: MIT
/*
 * Copies whose addresses stand in device memory, and are read when the stream
 * comes to them: what an earlier task of the stream wrote there counts.
 *
 * The task is a call of the library's: it fetches the addresses, and has the copy
 * done, by descriptors both.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "memory.h"

#define DESC_MAGIC	0x6370796d65757075ull

/* What aclrtSetMemcpyDesc() leaves in device memory. */
struct copy_desc {
	u64 magic;
	u64 src;
	u64 dst;
	u64 len;
	u64 reserved[4];
};

struct indirect {
	const char *what;
	struct npuacl_stream *s;	/* who submits; then who runs it, which may be a model's */
	u64 desc;		/* of a descriptor; or else */
	u64 dst_at, dst_off;	/* where the base addresses are, and what to add */
	u64 src_at, src_off;
	u64 len;
};

static aclError fetch(const struct indirect *c, u64 from, void *to, u64 len)
{
	return npuacl_copy_now(c->what, c->s->dev, (u64)(uintptr_t)to, from, len);
}

static aclError run(const struct indirect *c)
{
	struct copy_desc d = { .len = c->len };
	aclError ret;

	if (c->desc) {
		ret = fetch(c, c->desc, &d, sizeof(d));
		if (!ret && d.magic != DESC_MAGIC)
			ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
					  "%s: there is no descriptor at %#" PRIx64 " (aclrtSetMemcpyDesc), or no longer", c->what,
					  c->desc);
	} else {
		ret = fetch(c, c->dst_at, &d.dst, 8);
		if (!ret)
			ret = fetch(c, c->src_at, &d.src, 8);
		d.dst += c->dst_off;
		d.src += c->src_off;
	}
	return ret || !d.len ? ret : npuacl_copy_now(c->what, c->s->dev, d.dst, d.src, d.len);
}

/* In the runner's thread, whose own last error and message stay as they were. */
static void call(struct npuacl_stream *s, u32 task, void *arg)
{
	struct npuacl_thread was = npuacl_self;
	struct indirect *c = arg;
	aclError ret;

	c->s = s;
	ret = run(c);
	if (ret)
		npuacl_stream_error(s, task, ret, "%s", npuacl_self.message);
	npuacl_self = was;
}

static aclError submit(const struct indirect *c)
{
	struct npuacl_task t = { .kind = NPUACL_CALL };
	struct indirect *copy = malloc(sizeof(*copy));
	aclError ret;

	if (!copy)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", c->what);
	*copy = *c;
	t.own.fn = call;
	t.own.release = free;
	t.own.arg = copy;
	ret = npuacl_submit(c->s, &t, NULL);
	if (ret)
		free(copy);
	return ret;
}

static aclError check_kind(const char *what, aclrtMemcpyKind kind)
{
	aclError ret = npuacl_check_kind(what, kind);

	if (!ret && kind != ACL_MEMCPY_INNER_DEVICE_TO_DEVICE)
		ret = npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				  "%s: kind %d is not supported; ACL_MEMCPY_INNER_DEVICE_TO_DEVICE (%d) is", what, (int)kind,
				  ACL_MEMCPY_INNER_DEVICE_TO_DEVICE);
	return ret;
}

/* @len bytes of device memory, aligned to 8. */
static aclError check_words(const char *what, const char *role, u64 va, u64 len)
{
	struct npuacl_side s;
	char text[192];
	aclError ret = npuacl_side(what, role, va, len, &s);

	if (ret)
		return ret;
	if (!npuacl_on_device(&s.at))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the %s has to be device memory, %#" PRIx64 " is %s",
				   what, role, va, npuacl_explain(va, text, sizeof(text)));
	if (va & 7)
		return npuacl_fail(ACL_ERROR_RT_ADDR_UNALIGNED, "%s: the %s at %#" PRIx64 " is not aligned to 8 bytes",
				   what, role, va);
	return ACL_SUCCESS;
}

aclError aclrtMemcpyAsyncWithOffset(void **dst, size_t destMax, size_t dstDataOffset, const void **src,
				    size_t count, size_t srcDataOffset, aclrtMemcpyKind kind,
				    aclrtStream stream)
{
	static const char what[] = "aclrtMemcpyAsyncWithOffset";
	struct indirect c = {
		.what = what, .dst_at = (u64)(uintptr_t)dst, .dst_off = dstDataOffset,
		.src_at = (u64)(uintptr_t)src, .src_off = srcDataOffset, .len = count,
	};
	aclError ret;

	if (!dst || !src)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", what, dst ? "src" : "dst");
	if (count > destMax)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: count (%zu) is more than destMax (%zu)", what, count,
				   destMax);
	ret = check_kind(what, kind);
	if (!ret)
		ret = npuacl_stream(stream, &c.s);
	if (!ret)
		ret = check_words(what, "word with the target's address", c.dst_at, 8);
	if (!ret)
		ret = check_words(what, "word with the source's address", c.src_at, 8);
	return ret || !count ? ret : submit(&c);
}

aclError aclrtGetMemcpyDescSize(aclrtMemcpyKind kind, size_t *descSize)
{
	aclError ret;

	if (!descSize)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetMemcpyDescSize: descSize is NULL");
	ret = check_kind("aclrtGetMemcpyDescSize", kind);
	if (!ret)
		*descSize = sizeof(struct copy_desc);
	return ret;
}

aclError aclrtSetMemcpyDesc(void *desc, aclrtMemcpyKind kind, void *srcAddr, void *dstAddr, size_t count,
			    void *config)
{
	static const char what[] = "aclrtSetMemcpyDesc";
	struct copy_desc d = {
		.magic = DESC_MAGIC, .src = (u64)(uintptr_t)srcAddr, .dst = (u64)(uintptr_t)dstAddr, .len = count,
	};
	struct npuacl_side s;
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!desc || !srcAddr || !dstAddr || !count || config)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what,
				   config ? "config has to be NULL" : !desc ? "desc is NULL" : !srcAddr ? "srcAddr is NULL" :
				   !dstAddr ? "dstAddr is NULL" : "count is 0");
	ret = check_kind(what, kind);
	if (!ret)
		ret = npuacl_current(&ctx);
	if (!ret)
		ret = check_words(what, "descriptor", (u64)(uintptr_t)desc, sizeof(d));
	if (!ret)
		ret = npuacl_side(what, "source", d.src, count, &s);
	if (!ret)
		ret = npuacl_side(what, "target", d.dst, count, &s);
	return ret ? ret : npuacl_copy_now(what, ctx->dev, (u64)(uintptr_t)desc, (u64)(uintptr_t)&d, sizeof(d));
}

aclError aclrtMemcpyAsyncWithDesc(void *desc, aclrtMemcpyKind kind, aclrtStream stream)
{
	static const char what[] = "aclrtMemcpyAsyncWithDesc";
	struct indirect c = { .what = what, .desc = (u64)(uintptr_t)desc };
	aclError ret;

	if (!desc)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: desc is NULL", what);
	ret = check_kind(what, kind);
	if (!ret)
		ret = npuacl_stream(stream, &c.s);
	if (!ret)
		ret = check_words(what, "descriptor", c.desc, sizeof(struct copy_desc));
	return ret ? ret : submit(&c);
}
