// SPDX-License-Identifier: MIT
/* Streams made from a configuration, and attributes of streams. */
#include "hooks.h"
#include "streamnote.h"

#define LOWEST_PRIORITY	7u	/* 0 is the highest */
#define KNOWN_FLAGS	(ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT | \
			 ACL_STREAM_HUGE | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY)

/* ---- Configurations -------------------------------------------------------------------- */

static struct npuemu_slab configs = {
	.what = "stream configuration",
	.size = NPUEMU_SLAB_SIZE(aclrtStreamConfigHandle), .max = 65536,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static aclError check_config(const aclrtStreamConfigHandle *c, const char *what)
{
	if (!c)
		return npuacl_null(what, "handle");
	if (!npuemu_slab_alive(&configs, c))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %p is not a stream configuration, or no longer",
				   what, (const void *)c);
	return ACL_SUCCESS;
}

aclrtStreamConfigHandle *aclrtCreateStreamConfigHandle(void)
{
	aclrtStreamConfigHandle *c = npuemu_slab_alloc(&configs);

	if (!c) {
		npuacl_fail(ACL_ERROR_BAD_ALLOC,
			    "aclrtCreateStreamConfigHandle: there are %u already, or no memory is left: aclrtDestroyStreamConfigHandle some",
			    configs.max);
		return NULL;
	}
	npuemu_slab_publish(&configs, c);
	return c;
}

aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle *handle)
{
	aclError ret = check_config(handle, "aclrtDestroyStreamConfigHandle");

	if (ret)
		return ret;
	if (!npuemu_slab_retire(&configs, handle))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM,
				   "aclrtDestroyStreamConfigHandle: another thread was faster");
	npuemu_slab_free(&configs, handle);
	return ACL_SUCCESS;
}

static aclError check_priority(const char *what, u32 priority)
{
	if (priority > LOWEST_PRIORITY)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: priority %u; 0 (highest) to %u",
				   what, priority, LOWEST_PRIORITY);
	return ACL_SUCCESS;
}

static aclError check_flags(const char *what, size_t flags)
{
	if (flags & ~(size_t)KNOWN_FLAGS)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: unknown flags %#zx",
				   what, flags & ~(size_t)KNOWN_FLAGS);
	return ACL_SUCCESS;
}

/* Where an option goes, and of what size it is.  Flags are taken as u32 as well, which they are. */
static aclError find_option(aclrtStreamConfigHandle *c, aclrtStreamConfigAttr attr, void **field,
			    size_t *size)
{
	switch (attr) {
	case ACL_RT_STREAM_WORK_ADDR_PTR:
		*field = &c->workptr;
		*size = sizeof(c->workptr);
		return ACL_SUCCESS;
	case ACL_RT_STREAM_WORK_SIZE:
		*field = &c->workSize;
		*size = sizeof(c->workSize);
		return ACL_SUCCESS;
	case ACL_RT_STREAM_FLAG:
		*field = &c->flag;
		*size = sizeof(c->flag);
		return ACL_SUCCESS;
	case ACL_RT_STREAM_PRIORITY:
		*field = &c->priority;
		*size = sizeof(c->priority);
		return ACL_SUCCESS;
	default:
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtSetStreamConfigOpt: there is no option %d; 0 to 3",
				   (int)attr);
	}
}

aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle *handle, aclrtStreamConfigAttr attr,
				 const void *attrValue, size_t valueSize)
{
	static const char what[] = "aclrtSetStreamConfigOpt";
	aclError ret = check_config(handle, what);
	void *field = NULL;
	size_t size = 0;
	u64 v = 0;

	if (!ret && !attrValue)
		ret = npuacl_null(what, "attrValue");
	if (!ret)
		ret = find_option(handle, attr, &field, &size);
	if (ret)
		return ret;
	if (valueSize != size && !(attr == ACL_RT_STREAM_FLAG && valueSize == sizeof(u32)))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: option %d has %zu bytes, not %zu",
				   what, (int)attr, size, valueSize);
	memcpy(&v, attrValue, valueSize);	/* little-endian, as all that Ascend has */
	if (attr == ACL_RT_STREAM_FLAG)
		ret = check_flags(what, v);
	else if (attr == ACL_RT_STREAM_PRIORITY)
		ret = check_priority(what, (u32)v);
	if (!ret)
		memcpy(field, &v, size);
	return ret;
}

/* The work memory is for models, which there are none to run. */
aclError aclrtCreateStreamV2(aclrtStream *stream, const aclrtStreamConfigHandle *handle)
{
	static const char what[] = "aclrtCreateStreamV2";
	struct npuacl_stream *s;
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!stream)
		return npuacl_null(what, "stream");
	ret = check_config(handle, what);
	if (!ret)	/* programs can write into it themselves */
		ret = check_flags(what, handle->flag);
	if (!ret)
		ret = check_priority(what, handle->priority);
	if (!ret)
		ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl.lock);
	ret = npuacl_stream_make(ctx, (u32)handle->flag, (s32)handle->priority, false, &s);
	pthread_mutex_unlock(&npuacl.lock);
	if (ret)
		return ret;
	*stream = s;
	npuacl_stream_state(s, ACL_RT_STREAM_STATE_CREATE_POST);
	return ACL_SUCCESS;
}

/* ---- Attributes -------------------------------------------------------------------------- */

static aclError no_attribute(const char *what, aclrtStreamAttr attr)
{
	return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no attribute %d; 1 to 5",
			   what, (int)attr);
}

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
				 aclrtStreamAttrValue *value)
{
	static const char what[] = "aclrtSetStreamAttribute";
	struct npuacl_stream *s;
	aclError ret;

	if (!value)
		return npuacl_null(what, "value");
	ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	switch (stmAttrType) {
	case ACL_STREAM_ATTR_FAILURE_MODE:
		return npuacl_stream_failure_mode(what, stream, value->failureMode);
	case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
		return aclrtSetStreamOverflowSwitch(stream, value->overflowSwitch);
	case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
		WRITE_ONCE(s->attr_tag, value->userCustomTag);
		return ACL_SUCCESS;
	case ACL_STREAM_ATTR_CACHE_OP_INFO:
		if (value->cacheOpInfoSwitch > 1)
			return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: cacheOpInfoSwitch is %u; 0 (off) or 1 (on)",
					   what, value->cacheOpInfoSwitch);
		return npuacl_note_write(s, NPUACL_NOTE_OP_INFO, value->cacheOpInfoSwitch);
	case ACL_STREAM_ATTR_PRIORITY:
		ret = check_priority(what, value->streamPriority);
		if (!ret)
			WRITE_ONCE(s->priority, (s32)value->streamPriority);
		return ret;
	default:
		return no_attribute(what, stmAttrType);
	}
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
				 aclrtStreamAttrValue *value)
{
	static const char what[] = "aclrtGetStreamAttribute";
	aclrtStreamAttrValue v = { .reserve = { 0 } };
	struct npuacl_stream *s;
	aclError ret;

	if (!value)
		return npuacl_null(what, "value");
	ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	switch (stmAttrType) {
	case ACL_STREAM_ATTR_FAILURE_MODE:
		v.failureMode = READ_ONCE(s->stop_on_error) ? ACL_STOP_ON_FAILURE :
			ACL_CONTINUE_ON_FAILURE;
		break;
	case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
		v.overflowSwitch = READ_ONCE(s->overflow_check);
		break;
	case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
		v.userCustomTag = READ_ONCE(s->attr_tag);
		break;
	case ACL_STREAM_ATTR_CACHE_OP_INFO:
		v.cacheOpInfoSwitch = npuacl_note_read(s, NPUACL_NOTE_OP_INFO);
		break;
	case ACL_STREAM_ATTR_PRIORITY:
		v.streamPriority = (u32)READ_ONCE(s->priority);
		break;
	default:
		return no_attribute(what, stmAttrType);
	}
	*value = v;
	return ACL_SUCCESS;
}
