// SPDX-License-Identifier: MIT
/*
 * Configurations of channels: wishes that are noted.  Each channel has a queue of its
 * own, so that whether some are to share one changes nothing that can be seen.
 */
#include <hccl/hccl_channel.h>
#include "comm.h"

struct chan_config {
	u32 shared;
	char tag[256];
};

static struct npuemu_slab configs = {
	.what = "configuration of channels", .size = NPUEMU_SLAB_SIZE(struct chan_config), .max = 4096,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

void hccl_chans_fork(void)
{
	configs.base = NULL;
	configs.used = 0;
	configs.next = 0;
	pthread_mutex_init(&configs.lock, NULL);
}

HcclResult hccl_chan_config(const char *what, HcclChannelConfig handle)
{
	if (!handle)
		return hccl_null(what, "config");
	if (!npuemu_slab_alive(&configs, handle))
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %p is no configuration of channels, or has been destroyed", what,
				 handle);
	return HCCL_SUCCESS;
}

HcclResult HcclChannelConfigCreate(HcclChannelConfig *config)
{
	static const char what[] = "HcclChannelConfigCreate";
	struct chan_config *x;

	if (!config)
		return hccl_null(what, "config");
	hccl_begin();
	x = npuemu_slab_alloc(&configs);
	if (!x)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: this process has %u configurations, the most it can", what, configs.max);
	npuemu_slab_publish(&configs, x);
	*config = x;
	return HCCL_SUCCESS;
}

HcclResult HcclChannelConfigDestroy(HcclChannelConfig config)
{
	static const char what[] = "HcclChannelConfigDestroy";
	HcclResult ret = hccl_chan_config(what, config);

	if (ret)
		return ret;
	if (!npuemu_slab_retire(&configs, config))
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %p has been destroyed already", what, config);
	npuemu_slab_free(&configs, config);
	return HCCL_SUCCESS;
}

HcclResult HcclChannelConfigSetInt(HcclChannelConfig config, HcclChannelConfigType type, uint32_t value)
{
	static const char what[] = "HcclChannelConfigSetInt";
	HcclResult ret = hccl_chan_config(what, config);

	if (ret)
		return ret;
	if (type != HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no number of type %d; 0 (whether a queue is shared)", what,
				 (int)type);
	if (value > 1)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: whether channels share a queue is 0 or 1, not %u", what, value);
	((struct chan_config *)config)->shared = value;
	return HCCL_SUCCESS;
}

HcclResult HcclChannelConfigSetStr(HcclChannelConfig config, HcclChannelConfigType type, const char *value)
{
	static const char what[] = "HcclChannelConfigSetStr";
	HcclResult ret = hccl_chan_config(what, config);
	struct chan_config *x = config;
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
