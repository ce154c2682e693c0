// SPDX-License-Identifier: MIT
/*
 * Contexts: a device, a default stream, and what is made in it.  Each thread
 * has a current one; any thread may make any context its own.
 */
#include "check.h"
#include "graph.h"
#include "hooks.h"

struct npuemu_slab npuacl_ctxs = {
	.what = "context", .size = NPUEMU_SLAB_SIZE(struct npuacl_ctx), .max = 65536,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

aclError npuacl_ctx_make(struct npuacl_device *dev, bool primary, struct npuacl_ctx **out)
{
	struct npuacl_ctx *ctx = npuemu_slab_alloc(&npuacl_ctxs);
	aclError ret;

	if (!ctx)
		return npuacl_fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "there are %u contexts, the most there can be",
				   npuacl_ctxs.max);
	ctx->dev = dev;
	ctx->primary = primary;
	ret = npuacl_stream_make(ctx, 0, 0, true, &ctx->def);
	if (ret) {
		npuemu_slab_free(&npuacl_ctxs, ctx);
		return ret;
	}
	WRITE_ONCE(dev->contexts, dev->contexts + 1);
	npuemu_slab_publish(&npuacl_ctxs, ctx);
	*out = ctx;
	return ACL_SUCCESS;
}

void npuacl_ctx_unmake(struct npuacl_ctx *ctx)
{
	struct npuacl_stream *s;

	if (!npuemu_slab_retire(&npuacl_ctxs, ctx))
		return;
	NPUACL_CHECK(npuacl_check_object_gone(NPUACL_OBJ_CONTEXT, ctx));
	/* first all of them: one may wait for another */
	for (s = ctx->streams; s; s = s->next)
		npuacl_stream_wait(s, smp_load_acquire(&s->issued), npuemu_deadline_ms(10000));
	for (s = ctx->streams; s; s = s->next)
		npuacl_stream_drop(s);
	npuacl_graphs_release(ctx);
	while (ctx->streams)
		npuacl_stream_unmake(ctx->streams);
	WRITE_ONCE(ctx->dev->contexts, ctx->dev->contexts - 1);
	if (npuacl_self.ctx == ctx)
		npuacl_self.ctx = NULL;
	npuemu_slab_free(&npuacl_ctxs, ctx);
}

void npuacl_contexts_release(void)
{
	struct npuacl_ctx *ctx;
	u32 i;

	for (i = 0; i < npuacl_ctxs.used; i++) {
		ctx = (void *)(npuacl_ctxs.base + (size_t)i * npuacl_ctxs.size);
		if (npuemu_slab_alive(&npuacl_ctxs, ctx) && !ctx->primary)
			npuacl_ctx_unmake(ctx);
	}
}

aclError npuacl_current(struct npuacl_ctx **out)
{
	struct npuacl_ctx *ctx = npuacl_self.ctx;

	if (!ctx && npuacl_is_open() && npuacl.default_device >= 0 && READ_ONCE(npuacl.inits)) {
		aclError ret = aclrtSetDevice(npuacl.default_device);

		if (ret)
			return ret;
		ctx = npuacl_self.ctx;
	}
	if (!ctx)
		return npuacl_fail(ACL_ERROR_RT_CONTEXT_NULL,
				   "this thread has no device: aclrtSetDevice or aclrtSetCurrentContext comes first, in each thread");
	if (!npuemu_slab_alive(&npuacl_ctxs, ctx))
		return npuacl_fail(ACL_ERROR_RT_CONTEXT_NULL,
				   "the context of this thread has been destroyed, or its device reset");
	*out = ctx;
	return ACL_SUCCESS;
}

static aclError check_ctx(aclrtContext handle, const char *what)
{
	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the context is NULL", what);
	if (!npuemu_slab_alive(&npuacl_ctxs, handle))
		return npuacl_fail(ACL_ERROR_RT_CONTEXT_NULL, "%s: %p is not a context, or no longer", what,
				   handle);
	return ACL_SUCCESS;
}

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId)
{
	struct npuacl_device *d;
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!context)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtCreateContext: context is NULL");
	ret = npuacl_device(deviceId, &d);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl.lock);
	ret = npuacl_ctx_make(d, false, &ctx);
	pthread_mutex_unlock(&npuacl.lock);
	if (ret)
		return ret;
	npuacl_self.ctx = ctx;
	*context = ctx;
	NPUACL_CHECK(npuacl_check_object(NPUACL_OBJ_CONTEXT, ctx, d->id,
					 (u32)(((u8 *)ctx - npuacl_ctxs.base) / npuacl_ctxs.size)));
	npuacl_stream_state(ctx->def, ACL_RT_STREAM_STATE_CREATE_POST);
	return ACL_SUCCESS;
}

aclError aclrtDestroyContext(aclrtContext context)
{
	struct npuacl_ctx *ctx = context;
	aclError ret = check_ctx(context, "aclrtDestroyContext");

	if (ret)
		return ret;
	if (ctx->primary)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM,
				   "aclrtDestroyContext: this is the context of aclrtSetDevice: aclrtResetDevice ends it");
	npuacl_stream_state(ctx->def, ACL_RT_STREAM_STATE_DESTROY_PRE);
	pthread_mutex_lock(&npuacl.lock);
	npuacl_ctx_unmake(ctx);
	pthread_mutex_unlock(&npuacl.lock);
	return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext context)
{
	aclError ret = check_ctx(context, "aclrtSetCurrentContext");

	if (!ret)
		npuacl_self.ctx = context;
	return ret;
}

aclError aclrtGetCurrentContext(aclrtContext *context)
{
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!context)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetCurrentContext: context is NULL");
	ret = npuacl_current(&ctx);
	if (!ret)
		*context = ctx;
	return ret;
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream)
{
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!stream)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtCtxGetCurrentDefaultStream: stream is NULL");
	ret = npuacl_current(&ctx);
	if (!ret)
		*stream = ctx->def;
	return ret;
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *active)
{
	struct npuacl_device *d;
	aclError ret = npuacl_device(deviceId, &d);

	if (ret)
		return ret;
	if (!active)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetPrimaryCtxState: active is NULL");
	if (flags)
		*flags = 0;
	pthread_mutex_lock(&npuacl.lock);
	*active = d->primary != NULL;
	pthread_mutex_unlock(&npuacl.lock);
	return ACL_SUCCESS;
}

/* ---- Parameters of a context, and of the process --------------------------------- */

static s64 process_param[ARRAY_SIZE(((struct npuacl_ctx *)0)->sys_param)];
static bool process_set[ARRAY_SIZE(process_param)];

static aclError check_param(const char *what, aclSysParamOpt opt)
{
	if ((u32)opt >= ARRAY_SIZE(process_param) || opt > ACL_OPT_ENABLE_KERNEL_EARLY_START)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: there is no system parameter %d; 0 to %d",
				   what, (int)opt, ACL_OPT_ENABLE_KERNEL_EARLY_START);
	return ACL_SUCCESS;
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value)
{
	struct npuacl_ctx *ctx;
	aclError ret = check_param(__func__, opt);

	if (!ret)
		ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	ctx->sys_param[opt] = value;
	ctx->sys_param_set |= 1u << opt;
	return ACL_SUCCESS;
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t *value)
{
	struct npuacl_ctx *ctx;
	aclError ret = check_param(__func__, opt);

	if (!ret && !value)
		ret = npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtCtxGetSysParamOpt: value is NULL");
	if (!ret)
		ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	if (!(ctx->sys_param_set & 1u << opt))
		return npuacl_fail(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, "aclrtCtxGetSysParamOpt: parameter %d is not set in this context", (int)opt);
	*value = ctx->sys_param[opt];
	return ACL_SUCCESS;
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value)
{
	aclError ret = check_param(__func__, opt);

	if (ret)
		return ret;
	WRITE_ONCE(process_param[opt], value);
	smp_store_release(&process_set[opt], true);
	return ACL_SUCCESS;
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value)
{
	aclError ret = check_param(__func__, opt);

	if (!ret && !value)
		ret = npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetSysParamOpt: value is NULL");
	if (ret)
		return ret;
	if (!smp_load_acquire(&process_set[opt]))
		return npuacl_fail(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, "aclrtGetSysParamOpt: parameter %d is not set",
				   (int)opt);
	*value = READ_ONCE(process_param[opt]);
	return ACL_SUCCESS;
}
