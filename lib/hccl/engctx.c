// SPDX-License-Identifier: MIT
/*
 * Memory that programs with operators of their own work with: the communicator's
 * buffer, and contexts, which an operator finds again by their names.  What is device
 * memory is known to the address map, so that copies and kernels take it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "comm.h"

struct hccl_engctx {
	struct hccl_engctx *next;
	CommEngine engine;
	u64 bytes;
	u8 *ptr;
	struct npuemu_buf *buf;		/* device memory */
	struct npuacl_range *range;
	char tag[256];
};

/* ---- Shown in the address map ---------------------------------------------------------- */

HcclResult hccl_show(struct hccl_comm *c, const char *what, struct npuemu_buf *buf, struct npuacl_range **out)
{
	struct npuacl_range *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (r) {
		r->base = (u64)(uintptr_t)npuemu_buf_ptr(buf);
		r->size = npuemu_buf_bytes(buf);
		r->room = r->size;
		/* not the program's to free; owner: this process's to offer */
		r->kind = NPUACL_IMPORTED;
		r->owner = r;
		r->device = c->dev->id;
		r->buf = buf;
		err = npuacl_range_add(r);
	}
	if (err) {
		free(r);
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: the memory cannot be noted (%s)", what, strerror(-err));
	}
	*out = r;
	return HCCL_SUCCESS;
}

void hccl_hide(struct npuacl_range *r)
{
	if (!r)
		return;
	/* what was offered of it goes */
	npuacl_export_drop_buf(r->buf);
	if (npuacl_range_take(r->base, NPUACL_BIT(NPUACL_IMPORTED)))
		npuacl_range_gone(r);
}

/* ---- The communicator's buffer ------------------------------------------------------------- */

HcclResult hccl_buffer_show(struct hccl_comm *c, const char *what)
{
	HcclResult ret = HCCL_SUCCESS;

	pthread_mutex_lock(&c->res.lock);
	if (!c->res.shown)
		ret = hccl_show(c, what, c->ccl, &c->res.shown);
	pthread_mutex_unlock(&c->res.lock);
	return ret;
}

static HcclResult buffer(const char *what, HcclComm comm, void **out, u64 *size, struct hccl_comm **c)
{
	HcclResult ret = hccl_comm(comm, what, c);

	if (ret)
		return ret;
	if (!out || !size)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, out ? "size" : "buffer");
	ret = hccl_buffer_show(*c, what);
	if (ret)
		return ret;
	*out = (*c)->ccl_ptr;
	*size = (*c)->ccl_bytes;
	return HCCL_SUCCESS;
}

HcclResult HcclGetHcclBuffer(HcclComm comm, void **buf, uint64_t *size)
{
	struct hccl_comm *c;

	return buffer("HcclGetHcclBuffer", comm, buf, size, &c);
}

static HcclResult fill(struct hccl_comm *c, const char *what, u8 *ptr, u64 bytes)
{
	struct npuemu_sdma d;
	u32 bad = 0;
	aclError err;

	npuacl_desc(&d, NPUEMU_SDMA_FILL);
	d.dst = (u64)(uintptr_t)ptr;
	d.len = bytes;
	d.dst_pitch = 1;
	err = npuacl_sdma_now(c->dev, &d, 1, &bad);
	return err ? hccl_fail_acl(err, what) : HCCL_SUCCESS;
}

HcclResult HcclGetHcclBufferCleared(HcclComm comm, void **buf, uint64_t *size)
{
	static const char what[] = "HcclGetHcclBufferCleared";
	struct hccl_comm *c;
	HcclResult ret = buffer(what, comm, buf, size, &c);

	if (!ret && READ_ONCE(c->in_flight))
		ret = hccl_fail(HCCL_E_AGAIN, "EI0003", "%s: %u operations of the communicator, which use the buffer, are not over", what,
				READ_ONCE(c->in_flight));
	return ret ? ret : fill(c, what, c->ccl_ptr, c->ccl_bytes);
}

/* ---- Contexts ---------------------------------------------------------------------------------- */

/* Whom it is for decides where it is; the CCU is fed by the host. */
static bool on_device(CommEngine e)
{
	return e == COMM_ENGINE_AICPU || e == COMM_ENGINE_AICPU_TS || e == COMM_ENGINE_AIV;
}

static HcclResult check(const char *what, HcclComm comm, const char *tag, CommEngine engine, struct hccl_comm **c)
{
	HcclResult ret = hccl_comm(comm, what, c);
	size_t n;

	if (ret)
		return ret;
	if (!tag)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: ctxTag is NULL", what);
	n = strnlen(tag, HCCL_RES_TAG_MAX_LEN + 1);
	if (!n || n > HCCL_RES_TAG_MAX_LEN)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: ctxTag has %zu%s letters; 1 to %u", what, n, n ? " or more" : "",
				 HCCL_RES_TAG_MAX_LEN);
	if (engine < COMM_ENGINE_CPU || engine > COMM_ENGINE_CCU)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no engine %d; 0 (CPU) to 5 (CCU)", what, (int)engine);
	return HCCL_SUCCESS;
}

/* res.lock held */
static struct hccl_engctx **find(struct hccl_comm *c, const char *tag, CommEngine engine)
{
	struct hccl_engctx **at = &c->res.ctxs;

	while (*at && ((*at)->engine != engine || strcmp((*at)->tag, tag)))
		at = &(*at)->next;
	return at;
}

static HcclResult absent(const char *what, const char *tag, CommEngine engine)
{
	return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: engine %d has no context \"%s\"", what, (int)engine, tag);
}

static void ctx_free(struct hccl_engctx *x)
{
	if (x->buf) {
		hccl_hide(x->range);
		npuemu_buf_free(x->buf);
	} else {
		free(x->ptr);
	}
	free(x);
}

static HcclResult memory(struct hccl_comm *c, const char *what, struct hccl_engctx *x)
{
	HcclResult ret;

	if (!on_device(x->engine)) {
		x->ptr = calloc(1, x->bytes);
		return x->ptr ? HCCL_SUCCESS : hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: no %" PRIu64 " bytes of host memory", what,
							 x->bytes);
	}
	if (npuemu_buf_alloc(npuacl.board, c->dev->phys, x->bytes, 0, &x->buf)) {
		x->buf = NULL;
		return hccl_fail(HCCL_E_OOM, "EI0011", "%s: %s", what, npuemu_errmsg());
	}
	x->ptr = npuemu_buf_ptr(x->buf);
	ret = hccl_show(c, what, x->buf, &x->range);
	return ret;
}

HcclResult HcclEngineCtxCreate(HcclComm comm, const char *ctxTag, CommEngine engine, uint64_t size, void **ctx)
{
	static const char what[] = "HcclEngineCtxCreate";
	struct hccl_engctx *x;
	struct hccl_comm *c;
	HcclResult ret = check(what, comm, ctxTag, engine, &c);

	if (ret)
		return ret;
	if (!ctx)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: ctx is NULL", what);
	if (!size)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: size is 0", what);
	x = calloc(1, sizeof(*x));
	if (!x)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	x->engine = engine;
	x->bytes = size;
	memcpy(x->tag, ctxTag, strlen(ctxTag) + 1);
	pthread_mutex_lock(&c->res.lock);
	if (*find(c, ctxTag, engine))
		ret = hccl_fail(HCCL_E_PARA, "EI0003", "%s: engine %d has a context \"%s\" already", what, (int)engine, ctxTag);
	if (!ret)
		ret = memory(c, what, x);
	if (!ret) {
		x->next = c->res.ctxs;
		c->res.ctxs = x;
		*ctx = x->ptr;
	}
	pthread_mutex_unlock(&c->res.lock);
	if (ret)
		ctx_free(x);
	return ret;
}

HcclResult HcclEngineCtxGet(HcclComm comm, const char *ctxTag, CommEngine engine, void **ctx, uint64_t *size)
{
	static const char what[] = "HcclEngineCtxGet";
	struct hccl_engctx *x;
	struct hccl_comm *c;
	HcclResult ret = check(what, comm, ctxTag, engine, &c);

	if (ret)
		return ret;
	if (!ctx || !size)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, ctx ? "size" : "ctx");
	pthread_mutex_lock(&c->res.lock);
	x = *find(c, ctxTag, engine);
	if (x) {
		*ctx = x->ptr;
		*size = x->bytes;
	} else {
		ret = absent(what, ctxTag, engine);
	}
	pthread_mutex_unlock(&c->res.lock);
	return ret;
}

static HcclResult copy(struct hccl_comm *c, const char *what, u8 *dst, const void *src, u64 bytes)
{
	aclError err;

	err = npuacl_copy_now(what, c->dev, (u64)(uintptr_t)dst, (u64)(uintptr_t)src, bytes);
	return err ? hccl_fail_acl(err, what) : HCCL_SUCCESS;
}

HcclResult HcclEngineCtxCopy(HcclComm comm, CommEngine engine, const char *ctxTag, const void *srcCtx, uint64_t size,
			     uint64_t dstCtxOffset)
{
	static const char what[] = "HcclEngineCtxCopy";
	struct hccl_engctx *x;
	struct hccl_comm *c;
	HcclResult ret = check(what, comm, ctxTag, engine, &c);

	if (ret)
		return ret;
	if (!srcCtx)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: srcCtx is NULL", what);
	pthread_mutex_lock(&c->res.lock);
	x = *find(c, ctxTag, engine);
	if (!x)
		ret = absent(what, ctxTag, engine);
	else if (dstCtxOffset > x->bytes || size > x->bytes - dstCtxOffset)
		ret = hccl_fail(HCCL_E_PARA, "EI0003", "%s: %" PRIu64 " bytes from %" PRIu64 " on; context \"%s\" has %" PRIu64, what, size,
				dstCtxOffset, ctxTag, x->bytes);
	else if (!x->buf)
		memcpy(x->ptr + dstCtxOffset, srcCtx, size);
	else if (size)
		ret = copy(c, what, x->ptr + dstCtxOffset, srcCtx, size);
	pthread_mutex_unlock(&c->res.lock);
	return ret;
}

HcclResult HcclEngineCtxDestroy(HcclComm comm, const char *ctxTag, CommEngine engine)
{
	static const char what[] = "HcclEngineCtxDestroy";
	struct hccl_engctx **at, *x;
	struct hccl_comm *c;
	HcclResult ret = check(what, comm, ctxTag, engine, &c);

	if (ret)
		return ret;
	pthread_mutex_lock(&c->res.lock);
	at = find(c, ctxTag, engine);
	x = *at;
	if (x)
		*at = x->next;
	pthread_mutex_unlock(&c->res.lock);
	if (!x)
		return absent(what, ctxTag, engine);
	ctx_free(x);
	return HCCL_SUCCESS;
}

void hccl_engctxs_free(struct hccl_comm *c)
{
	struct hccl_engctx *x;

	while ((x = c->res.ctxs)) {
		c->res.ctxs = x->next;
		ctx_free(x);
	}
}
