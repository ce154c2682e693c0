// SPDX-License-Identifier: MIT
/*
 * Configurations of a communicator's channels: those of lib/transport, with a name
 * for the queue that some are to share.
 */
#include <hccl/hccl_channel.h>
#include "comm.h"

HcclResult HcclChannelConfigCreate(HcclChannelConfig *config)
{
	return hcomm_config_make("HcclChannelConfigCreate", config);
}

HcclResult HcclChannelConfigDestroy(HcclChannelConfig config)
{
	return hcomm_config_drop("HcclChannelConfigDestroy", config);
}

HcclResult HcclChannelConfigSetInt(HcclChannelConfig config, HcclChannelConfigType type, uint32_t value)
{
	static const char what[] = "HcclChannelConfigSetInt";
	struct hcomm_config *x;
	HcclResult ret = hcomm_config(what, config, &x);

	if (ret)
		return ret;
	if (type != HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no number of type %d; 0 (whether a queue is shared)", what,
				 (int)type);
	return hcomm_config_share(what, x, value);
}

HcclResult HcclChannelConfigSetStr(HcclChannelConfig config, HcclChannelConfigType type, const char *value)
{
	static const char what[] = "HcclChannelConfigSetStr";
	struct hcomm_config *x;
	HcclResult ret = hcomm_config(what, config, &x);
	size_t n;

	if (ret)
		return ret;
	if (type != HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no string of type %d; 1 (the name of a shared queue)", what,
				 (int)type);
	if (!value)
		return hccl_null(what, "value");
	n = strnlen(value, HCCL_CHANNEL_CONFIG_SHARED_QUEUE_TAG_MAX_LEN + 1);
	if (n > HCCL_CHANNEL_CONFIG_SHARED_QUEUE_TAG_MAX_LEN)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: the name of a shared queue has more than %u letters", what,
				 HCCL_CHANNEL_CONFIG_SHARED_QUEUE_TAG_MAX_LEN);
	memcpy(x->tag, value, n + 1);
	return HCCL_SUCCESS;
}
