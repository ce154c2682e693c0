// SPDX-License-Identifier: MIT
/*
 * Access to a peer: from the current device to another one, and not back.  It is a
 * matter of the device, not of the thread or context that asked for it.
 */
#include "devinfo.h"

static aclError reaches(const char *what, struct npuacl_device *a, struct npuacl_device *b,
			bool *can)
{
	aclError ret;
	u64 bit;

	ret = npuacl_topology(what, a, b, &bit);
	if (!ret)
		*can = npuacl_topology_is_memory(bit);
	return ret;
}

aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId)
{
	static const char what[] = "aclrtDeviceCanAccessPeer";
	struct npuacl_device *a, *b;
	bool can = false;
	aclError ret;

	if (!canAccessPeer)
		return npuacl_null(what, "canAccessPeer");
	if (deviceId == peerDeviceId)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: device %d is no peer of its own",
				   what, deviceId);
	ret = npuacl_device(deviceId, &a);
	if (!ret)
		ret = npuacl_device(peerDeviceId, &b);
	if (!ret)
		ret = reaches(what, a, b, &can);
	if (!ret)
		*canAccessPeer = can;
	return ret;
}

/* The thread's device, and the other one. */
static aclError pair(const char *what, s32 peer_id, struct npuacl_device **self,
		     struct npuacl_device **peer)
{
	struct npuacl_ctx *ctx;
	aclError ret = npuacl_current(&ctx);

	if (ret)
		return ret;
	*self = ctx->dev;
	if (peer_id == (s32)ctx->dev->id)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: device %d is the current one, and no peer of its own",
				   what, peer_id);
	return npuacl_device(peer_id, peer);
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags)
{
	static const char what[] = "aclrtDeviceEnablePeerAccess";
	struct npuacl_device *self, *peer;
	bool can = false;
	aclError ret;

	if (flags)
		return npuacl_fail(ACL_ERROR_FEATURE_UNSUPPORTED, "%s: flags are %#x, but there are none: use 0",
				   what, flags);
	ret = pair(what, peerDeviceId, &self, &peer);
	if (!ret)
		ret = reaches(what, self, peer, &can);
	if (ret)
		return ret;
	if (!can)
		return npuacl_fail(ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED,
				   "%s: between devices %u and %u there is only a network (aclrtDeviceCanAccessPeer tells)",
				   what, self->id, peer->id);
	/* again is fine: that is how programs make sure of it */
	__atomic_store_n(&self->peer[peer->id], 1, __ATOMIC_RELEASE);
	return ACL_SUCCESS;
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId)
{
	static const char what[] = "aclrtDeviceDisablePeerAccess";
	struct npuacl_device *self, *peer;
	aclError ret = pair(what, peerDeviceId, &self, &peer);

	if (ret)
		return ret;
	if (!__atomic_exchange_n(&self->peer[peer->id], 0, __ATOMIC_ACQ_REL))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: access from device %u to %u is not enabled (the other direction is another matter)",
				   what, self->id, peer->id);
	return ACL_SUCCESS;
}

aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t *status)
{
	static const char what[] = "aclrtDevicePeerAccessStatus";
	aclError ret;
	s32 n;

	if (!status)
		return npuacl_null(what, "status");
	ret = npuacl_open();
	if (ret)
		return ret;
	n = (s32)npuacl.devices;
	/* 107000 here, unlike elsewhere */
	if (deviceId < 0 || deviceId >= n || peerDeviceId < 0 || peerDeviceId >= n)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: devices %d and %d; there are 0 to %d",
				   what, deviceId, peerDeviceId, n - 1);
	*status = __atomic_load_n(&npuacl.dev[deviceId].peer[peerDeviceId], __ATOMIC_ACQUIRE);
	return ACL_SUCCESS;
}
