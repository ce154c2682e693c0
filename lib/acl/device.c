// SPDX-License-Identifier: MIT
/*
 * Which device a thread uses.  SetDevice and ResetDevice are counted for the
 * process; the first makes the device's primary context, with the default
 * stream that all threads share which set this device, the last takes it down.
 */
#include <inttypes.h>
#include "graph.h"
#include "hooks.h"
#include "memory.h"

aclError npuacl_device(s32 id, struct npuacl_device **out)
{
	aclError ret = npuacl_open();

	if (ret)
		return ret;
	if (!npuacl.devices)
		return npuacl_fail(ACL_ERROR_RT_INVALID_DEVICEID,
				   "there is no device %d: this process sees no device (ASCEND_RT_VISIBLE_DEVICES)", id);
	if (id < 0 || (u32)id >= npuacl.devices)
		return npuacl_fail(ACL_ERROR_RT_INVALID_DEVICEID,
				   "there is no device %d: this process sees 0 to %u (ASCEND_RT_VISIBLE_DEVICES, NPUEMU_MACHINE)",
				   id, npuacl.devices - 1);
	*out = &npuacl.dev[id];
	return ACL_SUCCESS;
}

/* npuacl.lock held */
static void release(struct npuacl_device *d)
{
	WRITE_ONCE(d->sets, 0);
	npuacl_ctx_unmake(d->primary);
	WRITE_ONCE(d->primary, NULL);
	if (!d->contexts) {
		npuacl_memory_release((s32)d->id);
		npuacl_notifies_release(d);
		npuacl_sdma_destroy(d);
	}
}

void npuacl_devices_release(void)
{
	u32 i;

	npuacl_contexts_release();
	for (i = 0; i < npuacl.devices; i++)
		if (npuacl.dev[i].sets)
			release(&npuacl.dev[i]);
}

aclError aclrtSetDevice(int32_t deviceId)
{
	struct npuacl_stream *def = NULL;
	struct npuacl_ctx *made;
	struct npuacl_device *d;
	aclError ret = npuacl_device(deviceId, &d);

	if (ret)
		return ret;
	if (!READ_ONCE(d->primary))
		npuacl_device_state(d, ACL_RT_DEVICE_STATE_SET_PRE);
	pthread_mutex_lock(&npuacl.lock);
	if (!d->primary) {
		ret = npuacl_ctx_make(d, true, &made);
		if (!ret) {
			def = made->def;
			smp_store_release(&d->primary, made);
		}
	}
	if (!ret) {
		WRITE_ONCE(d->sets, d->sets + 1);
		npuacl_self.ctx = d->primary;
	}
	pthread_mutex_unlock(&npuacl.lock);
	if (def) {
		npuacl_stream_state(def, ACL_RT_STREAM_STATE_CREATE_POST);
		npuacl_device_state(d, ACL_RT_DEVICE_STATE_SET_POST);
	}
	return ret;
}

static aclError reset(s32 id, bool force)
{
	struct npuacl_device *d;
	struct npuacl_ctx *last;
	aclError ret;

	/* programs do so after aclFinalize, which has done it already */
	if (!npuacl_is_open() && READ_ONCE(npuacl.finalized))
		return ACL_SUCCESS;
	ret = npuacl_device(id, &d);
	if (ret)
		return ret;
	last = READ_ONCE(d->sets) == 1 || force ? READ_ONCE(d->primary) : NULL;
	if (last) {
		npuacl_device_state(d, ACL_RT_DEVICE_STATE_RESET_PRE);
		npuacl_stream_state(last->def, ACL_RT_STREAM_STATE_DESTROY_PRE);
	}
	pthread_mutex_lock(&npuacl.lock);
	if (!d->sets)
		ret = npuacl_fail(ACL_ERROR_RT_CONTEXT_NULL,
				  "device %d is not set (aclrtSetDevice), or has been reset already", id);
	else if (force || d->sets == 1)
		release(d);
	else
		WRITE_ONCE(d->sets, d->sets - 1);
	pthread_mutex_unlock(&npuacl.lock);
	if (last && !ret)
		npuacl_device_state(d, ACL_RT_DEVICE_STATE_RESET_POST);
	return ret;
}

aclError aclrtResetDevice(int32_t deviceId)
{
	return reset(deviceId, false);
}

aclError aclrtResetDeviceForce(int32_t deviceId)
{
	return reset(deviceId, true);
}

aclError aclrtGetDevice(int32_t *deviceId)
{
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!deviceId)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetDevice: deviceId is NULL");
	ret = npuacl_current(&ctx);
	if (!ret)
		*deviceId = (s32)ctx->dev->id;
	return ret;
}

aclError aclrtGetDeviceCount(uint32_t *count)
{
	aclError ret;

	if (!count)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetDeviceCount: count is NULL");
	ret = npuacl_open();
	if (!ret)
		*count = npuacl.devices;
	return ret;
}

/* All streams of the process there; those of other contexts, too. */
static aclError sync_device(struct npuacl_device *d, s64 deadline)
{
	struct npuacl_stream *s;
	aclError ret = ACL_SUCCESS, r;
	u32 i;

	for (i = 0; i < npuacl_streams.used; i++) {
		s = (void *)(npuacl_streams.base + (size_t)i * npuacl_streams.size);
		if (!npuemu_slab_alive(&npuacl_streams, s) || s->dev != d)
			continue;
		r = npuacl_capture_refuses(s, "aclrtSynchronizeDevice");
		if (!r)
			r = npuacl_stream_wait(s, smp_load_acquire(&s->issued), deadline);
		ret = ret ? ret : r;
	}
	return ret;
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout)
{
	struct npuacl_ctx *ctx;
	aclError ret = npuacl_current(&ctx);

	if (ret)
		return ret;
	if (timeout < -1)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "aclrtSynchronizeDeviceWithTimeout: %d ms; -1 means for ever", timeout);
	return sync_device(ctx->dev, npuacl_deadline_ms(timeout));
}

aclError aclrtSynchronizeDevice(void)
{
	return aclrtSynchronizeDeviceWithTimeout(-1);
}
