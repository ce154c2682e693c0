/* SPDX-License-Identifier: MIT */
/*
 * hccl_channel.h - channels between the ranks of a communicator, for operators that
 * programs bring along.
 *
 * Follows the public HCCL interface of August 2026.
 *
 * HCCL_E_PTR for NULL, HCCL_E_PARA for a value that cannot be, HCCL_E_NOT_FOUND for
 * what is not there.  What goes over a channel: hcomm_primitives.h.
 */
#ifndef HCCL_HCCL_CHANNEL_H
#define HCCL_HCCL_CHANNEL_H

#include "hccl_types.h"
#include "../hcomm_res_defs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory registered with a communicator. */
typedef void *HcclMemHandle;

/* --- Descriptions -------------------------------------------------------- */

HCCL_CONST(uint32_t, HCCL_CHANNEL_MAGIC_WORD, 0x0f0f0f0fU);
HCCL_CONST(uint32_t, HCCL_CHANNEL_VERSION, 1U);
HCCL_CONST(uint32_t, HCCL_CHANNEL_DESC_RAW_MAX_LEN, 128U);

typedef struct HcclChannelDesc {
	CommAbiHeader header;
	uint32_t remoteRank;
	CommProtocol channelProtocol;
	EndpointDesc localEndpoint;
	EndpointDesc remoteEndpoint;
	uint32_t notifyNum;		/* notifies at each end */
	HcclMemHandle *memHandles;	/* memory that the peer is told of */
	uint32_t memHandleNum;
	/* By the protocol; 0xff in all bytes: its defaults. */
	__extension__ union {
		uint8_t raws[HCCL_CHANNEL_DESC_RAW_MAX_LEN];
		struct {
			uint32_t queueNum;
			uint32_t retryCnt;
			uint32_t retryInterval;
			uint8_t tc;		/* traffic class */
			uint8_t sl;		/* service level */
		} roceAttr;
		struct {
			uint8_t pathMode;	/* 0: either, 1: one path, 2: several */
		} ubMemAttr;
	};
} HcclChannelDesc;

/* Prepare @descNum of them.  HCCL_E_PTR for NULL. */
static inline HcclResult HcclChannelDescInit(HcclChannelDesc *channelDesc, uint32_t descNum)
{
	HcclChannelDesc *d;
	uint32_t i;

	if (!channelDesc)
		return descNum ? HCCL_E_PTR : HCCL_SUCCESS;
	memset(channelDesc, 0xff, descNum * sizeof(*channelDesc));
	for (i = 0; i < descNum; i++) {
		d = &channelDesc[i];
		d->header.version = HCCL_CHANNEL_VERSION;
		d->header.magicWord = HCCL_CHANNEL_MAGIC_WORD;
		d->header.size = sizeof(*d);
		d->header.reserved = 0;
		d->notifyNum = 0;
		d->memHandles = NULL;
		d->memHandleNum = 0;
	}
	return HCCL_SUCCESS;
}

/* --- Configurations ------------------------------------------------------ */

/* Further wishes, in an object of their own. */
typedef void *HcclChannelConfig;

HCCL_CONST(uint32_t, HCCL_CHANNEL_CONFIG_SHARED_QUEUE_TAG_MAX_LEN, 255U);

typedef enum HcclChannelConfigType {
	HCCL_CHANNEL_CONFIG_TYPE_INVALID = -1,
	HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE = 0,	/* 0 or 1: channels share a queue */
	HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG = 1,	/* those with the same name do */
} HcclChannelConfigType;

#pragma GCC visibility push(default)

/* An empty configuration. */
HcclResult HcclChannelConfigCreate(HcclChannelConfig *config);

HcclResult HcclChannelConfigDestroy(HcclChannelConfig config);

/* Set one that is a number. */
HcclResult HcclChannelConfigSetInt(HcclChannelConfig config, HcclChannelConfigType type,
				   uint32_t value);

/* Set one that is a string. */
HcclResult HcclChannelConfigSetStr(HcclChannelConfig config, HcclChannelConfigType type,
				   const char *value);

/* --- Channels ------------------------------------------------------------ */

/*
 * Make @channelNum channels, or give those that are there already.  The peers do the
 * same; it waits for them, for at most HCCL_CONNECT_TIMEOUT seconds (HCCL_E_TIMEOUT).
 */
HcclResult HcclChannelAcquire(HcclComm comm, CommEngine engine, const HcclChannelDesc *channelDescs,
			      uint32_t channelNum, ChannelHandle *channels);

/* The same with a configuration for all of them. */
HcclResult HcclChannelAcquireWithConfig(HcclComm comm, CommEngine engine,
					const HcclChannelDesc *channelDescs, uint32_t channelNum,
					HcclChannelConfig config, ChannelHandle *channels);

/* Those that are there already: HCCL_E_NOT_FOUND if one is not. */
HcclResult HcclChannelQuery(HcclComm comm, CommEngine engine, const HcclChannelDesc *channelDescs,
			    uint32_t channelNum, ChannelHandle *channels);

/* Unmake them; what is left is unmade with the communicator. */
HcclResult HcclChannelDestroy(HcclComm comm, const ChannelHandle *channels, uint32_t channelNum);

/* The peer's buffer of this communicator, in addresses for operations on the channel. */
HcclResult HcclChannelGetHcclBuffer(HcclComm comm, ChannelHandle channel, void **buffer,
				    uint64_t *size);

/*
 * The memory that the peer told of: *@memNum entries and their names.  Both arrays
 * belong to the library and live as long as the channel.
 */
HcclResult HcclChannelGetRemoteMems(HcclComm comm, ChannelHandle channel, uint32_t *memNum,
				    CommMem **remoteMems, char ***memTags);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
