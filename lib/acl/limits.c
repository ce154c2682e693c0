// SPDX-License-Identifier: MIT
/*
 * How much of a device the program wants to use: cores, for the process or a
 * stream; stacks and print buffers of kernels.  Kernels are what would obey.
 */
#include <sys/mman.h>
#include <unistd.h>
#include "streamnote.h"

/* ---- Cores of a device ---------------------------------------------------------------- */

_Static_assert(ACL_RT_DEV_RES_CUBE_CORE == 0 && ACL_RT_DEV_RES_VECTOR_CORE == NPUACL_RES_TYPES - 1,
	       "types are indices");

/* 1 up to what the hardware has. */
static aclError check_value(const char *what, aclrtDevResLimitType type, u32 value)
{
	u32 most;
	aclError ret = npuacl_cores(what, type, &most);

	if (!ret && (!value || value > most))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %u %s cores; 1 to %u",
				   what, value,
				   type == ACL_RT_DEV_RES_CUBE_CORE ? "cube" : "vector", most);
	return ret;
}

/* What was set for the process, else what there is. */
static aclError device_limit(const char *what, struct npuacl_device *d, aclrtDevResLimitType type,
			     u32 *value)
{
	u32 most;
	aclError ret = npuacl_cores(what, type, &most);

	if (!ret)
		*value = READ_ONCE(d->res_limit[type]) ? : most;
	return ret;
}

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value)
{
	static const char what[] = "aclrtSetDeviceResLimit";
	struct npuacl_device *d;
	aclError ret = npuacl_device_in_use(what, deviceId, &d);

	if (!ret)
		ret = check_value(what, type, value);
	if (!ret)
		WRITE_ONCE(d->res_limit[type], value);
	return ret;
}

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t *value)
{
	static const char what[] = "aclrtGetDeviceResLimit";
	struct npuacl_device *d;
	aclError ret;

	if (!value)
		return npuacl_null(what, "value");
	ret = npuacl_device_in_use(what, deviceId, &d);
	return ret ? ret : device_limit(what, d, type, value);
}

void npuacl_limits_forget(struct npuacl_device *d)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(d->res_limit); i++)
		WRITE_ONCE(d->res_limit[i], 0);
}

aclError aclrtResetDeviceResLimit(int32_t deviceId)
{
	struct npuacl_device *d;
	aclError ret = npuacl_device_in_use("aclrtResetDeviceResLimit", deviceId, &d);

	if (!ret)
		npuacl_limits_forget(d);
	return ret;
}

/* ---- Of a stream ------------------------------------------------------------------------ */

/*
 * Few streams have any, so that they are kept beside them: by place in the slab,
 * and told apart from those of a stream that was there before by its number.
 */
static struct npuacl_stream_note *notes;
static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;

static struct npuacl_stream_note *note_of(struct npuacl_stream *s)
{
	size_t bytes = sizeof(*notes) * npuacl_streams.max;
	struct npuacl_stream_note *n;

	if (!notes) {
		n = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (n == MAP_FAILED)
			return NULL;
		notes = n;
	}
	return &notes[(size_t)((u8 *)s - npuacl_streams.base) / npuacl_streams.size];
}

static bool is_of(const struct npuacl_stream_note *n, const struct npuacl_stream *s)
{
	return n->pid == (u32)getpid() && n->device == s->dev->id && n->stream == s->id;
}

aclError npuacl_note_write(struct npuacl_stream *s, u32 field, u32 value)
{
	struct npuacl_stream_note *n;
	aclError ret = ACL_SUCCESS;

	pthread_mutex_lock(&notes_lock);
	n = note_of(s);
	if (!n) {
		ret = npuacl_fail(ACL_ERROR_BAD_ALLOC, "out of host memory");
	} else {
		if (!is_of(n, s)) {
			memset(n, 0, sizeof(*n));
			n->pid = (u32)getpid();
			n->device = s->dev->id;
			n->stream = s->id;
		}
		n->field[field] = value;
	}
	pthread_mutex_unlock(&notes_lock);
	return ret;
}

u32 npuacl_note_read(struct npuacl_stream *s, u32 field)
{
	struct npuacl_stream_note *n;
	u32 value = 0;

	pthread_mutex_lock(&notes_lock);
	n = note_of(s);
	if (n && is_of(n, s))
		value = n->field[field];
	pthread_mutex_unlock(&notes_lock);
	return value;
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value)
{
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(stream, &s);

	if (!ret)
		ret = check_value("aclrtSetStreamResLimit", type, value);
	return ret ? ret : npuacl_note_write(s, (u32)type, value);
}

/* The stream's, else the process's, else the hardware's. */
static aclError stream_limit(const char *what, struct npuacl_stream *s, aclrtDevResLimitType type,
			     u32 *value)
{
	aclError ret = device_limit(what, s->dev, type, value);
	u32 own;

	if (ret)
		return ret;
	own = npuacl_note_read(s, (u32)type);
	if (own)
		*value = own;
	return ACL_SUCCESS;
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t *value)
{
	struct npuacl_stream *s;
	aclError ret;

	if (!value)
		return npuacl_null("aclrtGetStreamResLimit", "value");
	ret = npuacl_stream(stream, &s);
	return ret ? ret : stream_limit("aclrtGetStreamResLimit", s, type, value);
}

aclError aclrtResetStreamResLimit(aclrtStream stream)
{
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(stream, &s);
	u32 i;

	for (i = 0; !ret && i < NPUACL_RES_TYPES; i++)
		ret = npuacl_note_write(s, i, 0);
	return ret;
}

/* ---- Of a thread: those of the stream that it chose ---------------------------------------- */

static __thread struct {
	struct npuacl_stream *s;
	struct npuacl_device *dev;
	u32 id;
} chosen;

/* NULL: none, or it is gone, and perhaps another one in its place. */
static struct npuacl_stream *chosen_stream(void)
{
	struct npuacl_stream *s = chosen.s;

	if (!s || !npuemu_slab_alive(&npuacl_streams, s))
		return NULL;
	return s->dev == chosen.dev && s->id == chosen.id ? s : NULL;
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream)
{
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(stream, &s);

	if (ret)
		return ret;
	chosen.s = s;
	chosen.dev = s->dev;
	chosen.id = s->id;
	return ACL_SUCCESS;
}

/* Of a stream that is not in use: there is nothing to undo. */
aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream)
{
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(stream, &s);

	if (!ret && s == chosen_stream())
		chosen.s = NULL;
	return ret;
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value)
{
	static const char what[] = "aclrtGetResInCurrentThread";
	struct npuacl_stream *s;
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!value)
		return npuacl_null(what, "value");
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	s = chosen_stream();
	return s ? stream_limit(what, s, type, value) : device_limit(what, ctx->dev, type, value);
}

/* ---- Stacks and print buffers, of all devices of the process -------------------------------- */

#define KIB	1024u
#define MIB	(1024u * KIB)

/* As the API's documentation has them. */
static struct {
	bool simt;		/* only where there is SIMT */
	u32 step;		/* rounded up to a multiple */
	u32 least, most;
	u32 times;		/* what is read back: threads of a warp share it */
	u32 value;
} device_limits[] = {
	[ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE] = { true, 128, 0, UINT32_MAX / 32 - 127, 32, 1152 },
	[ACL_RT_DEV_LIMIT_SIMT_DVG_WARP_STACK_SIZE] = { true, 128, 0, UINT32_MAX - 127, 1, 1024 },
	[ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE] = { false, 16 * KIB, 0, 192 * KIB, 1, 32 * KIB },
	[ACL_RT_DEV_LIMIT_SIMD_PRINTF_FIFO_SIZE_PER_CORE] = { false, 8, KIB, 64 * MIB, 1, 32 * KIB },
	[ACL_RT_DEV_LIMIT_SIMT_PRINTF_FIFO_SIZE] = { true, 8, MIB, 64 * MIB, 1, 2 * MIB },
};
static pthread_mutex_t limits_lock = PTHREAD_MUTEX_INITIALIZER;

static aclError check_limit(const char *what, aclrtDeviceLimit limit)
{
	aclError ret;

	if ((u32)limit >= ARRAY_SIZE(device_limits))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: limit %d; 0 to %zu",
				   what, (int)limit, ARRAY_SIZE(device_limits) - 1);
	ret = npuacl_open();
	if (!ret && device_limits[limit].simt && npuacl.info.generation < NPUACL_GENERATION_SIMT)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: limit %d is of SIMT kernels, which a %s has not",
				   what, (int)limit, npuacl.info.soc);
	return ret;
}

/* No stack for threads and none for what they share: such kernels could not run. */
static bool leaves_nothing(aclrtDeviceLimit limit, u32 value)
{
	if (value)
		return false;
	if (limit == ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE)
		return !device_limits[ACL_RT_DEV_LIMIT_SIMT_DVG_WARP_STACK_SIZE].value;
	return limit == ACL_RT_DEV_LIMIT_SIMT_DVG_WARP_STACK_SIZE &&
	       !device_limits[ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE].value;
}

aclError aclrtDeviceSetLimit(aclrtDeviceLimit limit, size_t value)
{
	static const char what[] = "aclrtDeviceSetLimit";
	aclError ret = check_limit(what, limit);
	u32 most, step, v;

	if (ret)
		return ret;
	if (value > UINT32_MAX)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %zu bytes; at most %u",
				   what, value, UINT32_MAX);
	most = device_limits[limit].most;
	if (limit == ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE) {
		if (npuacl.info.generation >= NPUACL_GENERATION_SIMT)
			most = 128 * KIB;
		if (value < 32 * KIB)
			value = 32 * KIB;
	}
	if (value < device_limits[limit].least || value > most)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes for limit %d; %u to %u",
				   what, value, (int)limit, device_limits[limit].least, most);
	step = device_limits[limit].step;
	v = ((u32)value + step - 1) / step * step;
	pthread_mutex_lock(&limits_lock);
	if (leaves_nothing(limit, v))
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				  "%s: the stacks of SIMT threads and of their divergence cannot both be 0",
				  what);
	else
		device_limits[limit].value = v;
	pthread_mutex_unlock(&limits_lock);
	return ret;
}

aclError aclrtDeviceGetLimit(aclrtDeviceLimit limit, size_t *value)
{
	aclError ret;

	if (!value)
		return npuacl_null("aclrtDeviceGetLimit", "value");
	ret = check_limit("aclrtDeviceGetLimit", limit);
	if (ret)
		return ret;
	pthread_mutex_lock(&limits_lock);
	*value = (size_t)device_limits[limit].value * device_limits[limit].times;
	pthread_mutex_unlock(&limits_lock);
	return ACL_SUCCESS;
}
