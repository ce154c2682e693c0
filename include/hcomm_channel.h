/* SPDX-License-Identifier: MIT */
/*
 * hcomm_channel.h - channels: a way from an endpoint here to one elsewhere, with
 * notifies at both ends.
 *
 * Follows the public Hcomm interface of August 2026.  Returned codes: hcomm_res.h.
 */
#ifndef HCOMM_CHANNEL_H
#define HCOMM_CHANNEL_H

#include "hcomm_res_defs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Descriptions -------------------------------------------------------- */

HCOMM_CONST(uint32_t, HCOMM_CHANNEL_MAGIC_WORD, 0x0fcf0f0fU);
HCOMM_CONST(uint32_t, HCOMM_CHANNEL_VERSION, 4U);
HCOMM_CONST(uint32_t, HCOMM_CHANNEL_VERSION_ONE, 1U);
HCOMM_CONST(uint32_t, HCOMM_CHANNEL_DESC_RAW_MAX_LEN, 128U);
HCOMM_CONST(uint32_t, HCOMM_CHANNEL_NAME_MAX_LEN, 191U);

typedef struct HcommChannelDesc {
	CommAbiHeader header;
	EndpointDesc remoteEndpoint;
	uint32_t notifyNum;		/* notifies at each end */
	bool exchangeAllMems;		/* all that is registered goes to the peer */
	HcommMemHandle *memHandles;	/* else these do */
	uint32_t memHandleNum;
	HcommSocket socket;		/* NULL: one of the channel's own */
	HcommSocketRole role;
	uint16_t port;			/* the server's: listened on, or connected to */
	/* By the protocol; 0xff in all bytes: its defaults. */
	__extension__ union {
		uint8_t raws[HCOMM_CHANNEL_DESC_RAW_MAX_LEN];
		struct {
			uint32_t queueNum;
			uint32_t retryCnt;
			uint32_t retryInterval;
			uint8_t tc;		/* traffic class */
			uint8_t sl;		/* service level */
			uint32_t qpThreshold;	/* bytes from which on several queues share */
			uint32_t cqAttrFlags;
			uint16_t *srcPortList;	/* source ports, one a queue */
		} roceAttr;
		struct {
			uint32_t qos;
		} hccsAttr;
		struct {
			uint32_t sqDepth;	/* 0: the default, as is 0xffffffff */
		} ubAttr;
		struct {
			uint8_t pathMode;	/* 0: either, 1: one path, 2: several */
		} ubMemAttr;
	};
	/* from version 2 on */
	uint32_t qos;			/* 0 to 7; 0xffffffff: the protocol's own */
	const char *channelName;	/* the same at both ends; NULL: none */
} HcommChannelDesc;

/* Prepare @descNum of them.  2 (HCCL_E_PTR) for NULL. */
static inline HcommResult HcommChannelDescInit(HcommChannelDesc *channelDesc, uint32_t descNum)
{
	HcommChannelDesc *d;
	uint32_t i;

	if (!channelDesc)
		return descNum ? 2 : 0;
	memset(channelDesc, 0xff, descNum * sizeof(*channelDesc));
	for (i = 0; i < descNum; i++) {
		d = &channelDesc[i];
		d->header.version = HCOMM_CHANNEL_VERSION;
		d->header.magicWord = HCOMM_CHANNEL_MAGIC_WORD;
		d->header.size = sizeof(*d);
		d->header.reserved = 0;
		d->notifyNum = 0;
		d->exchangeAllMems = false;
		d->memHandles = NULL;
		d->memHandleNum = 0;
		d->socket = NULL;
		d->role = HCOMM_SOCKET_ROLE_RESERVED;
		d->port = 0;
		d->roceAttr.srcPortList = NULL;
		d->channelName = NULL;
	}
	return 0;
}

/* --- Configurations ------------------------------------------------------ */

/* Further wishes, in an object of their own. */
typedef void *HcommChannelConfig;

typedef enum HcommChannelConfigType {
	HCOMM_CHANNEL_CONFIG_TYPE_INVALID = -1,
	HCOMM_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE = 0,	/* 0 or 1: channels share a queue */
} HcommChannelConfigType;

#pragma GCC visibility push(default)

/* An empty configuration. */
HcommResult HcommChannelConfigCreate(HcommChannelConfig *config);

HcommResult HcommChannelConfigDestroy(HcommChannelConfig config);

/* Set one that is a number. */
HcommResult HcommChannelConfigSetInt(HcommChannelConfig config, HcommChannelConfigType type,
				     uint32_t value);

/* --- Channels ------------------------------------------------------------ */

/*
 * Begin @channelNum channels from an endpoint, one for each description; they are
 * usable when HcommChannelGetStatus() says so.  The other end does the same with the
 * other role.
 */
HcommResult HcommChannelCreate(EndpointHandle endpointHandle, CommEngine engine,
			       HcommChannelDesc *channelDescs, uint32_t channelNum,
			       ChannelHandle *channels);

/* The same with a configuration for all of them. */
HcommResult HcommChannelCreateWithConfig(EndpointHandle endpointHandle, CommEngine engine,
					 HcommChannelDesc *channelDescs, uint32_t channelNum,
					 HcommChannelConfig config, ChannelHandle *channels);

/*
 * How far they are, and a step further: @statusList[i] is 0 when channel i is ready,
 * 20 (HCCL_E_AGAIN) as long as it is not, or what has failed.
 */
HcommResult HcommChannelGetStatus(const ChannelHandle *channelList, uint32_t listNum,
				  int32_t *statusList);

/* Unmake them, ready or not; the other ends' operations then fail. */
HcommResult HcommChannelDestroy(const ChannelHandle *channels, uint32_t channelNum);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
