/* SPDX-License-Identifier: MIT */
/*
 * hcomm_res_defs.h - what the resources of the communication library are described
 * by: engines, protocols, addresses, endpoints, memory, threads.
 *
 * Follows the public Hcomm interface of August 2026.  Good for C11 and C++11.
 *
 * A description that begins with a CommAbiHeader is prepared by the Init function
 * beside it, which fills it with 0xff ("not set") before it writes what has a
 * default; size and version say which members a library may look at.
 */
#ifndef HCOMM_RES_DEFS_H
#define HCOMM_RES_DEFS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "securec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Constant expressions in C, too, where a const variable is none. */
#ifdef __cplusplus
#define HCOMM_CONST(type, name, value)	static const type name = value
#else
#define HCOMM_CONST(type, name, value)	__extension__ enum { name = value }
#endif

/* --- Handles ------------------------------------------------------------- */

/* 0, or the number of a HcclResult. */
typedef int32_t HcommResult;

typedef void *EndpointHandle;		/* a place that channels begin or end at */
typedef void *HcommMemHandle;		/* memory registered with an endpoint */
typedef void *HcommSocket;		/* a connection that a channel's ends talk over */
typedef uint64_t ChannelHandle;		/* a way to one peer */
typedef uint64_t ThreadHandle;		/* an ordered sequence of operations, a stream say */

/* In front of descriptions that may grow. */
typedef struct CommAbiHeader {
	uint32_t version;
	uint32_t magicWord;
	uint32_t size;		/* of the whole description, in bytes */
	uint32_t reserved;
} CommAbiHeader;

/* --- Threads ------------------------------------------------------------- */

typedef enum ThreadType {
	THREAD_TYPE_INVALID = -1,
	THREAD_TYPE_TS = 0,	/* run by the task scheduler: a stream */
} ThreadType;

/* What a thread can be asked for. */
typedef enum ThreadResType {
	THREAD_RES_TYPE_INVALID = -1,
	THREAD_RES_TYPE_STREAM = 0,	/* its aclrtStream */
} ThreadResType;

HCOMM_CONST(uint32_t, HCOMM_THREAD_CONFIG_MAGIC_WORD, 0x0f0f0f2f);
HCOMM_CONST(uint32_t, HCOMM_THREAD_CONFIG_VERSION, 1);

typedef struct ThreadConfig {
	CommAbiHeader header;
	uint16_t notifyNumPerThread;	/* notifies that others may signal it by */
	uint8_t reserved[14];
} ThreadConfig;

/* Prepare @num of them: no notifies.  2 (HCCL_E_PTR) for NULL. */
static inline HcommResult ThreadConfigInit(ThreadConfig *config, uint32_t num)
{
	uint32_t i;

	if (!config)
		return 2;
	memset(config, 0, num * sizeof(*config));
	for (i = 0; i < num; i++) {
		config[i].header.version = HCOMM_THREAD_CONFIG_VERSION;
		config[i].header.magicWord = HCOMM_THREAD_CONFIG_MAGIC_WORD;
		config[i].header.size = sizeof(*config);
	}
	return 0;
}

/* --- Engines and protocols ----------------------------------------------- */

/* Who issues the operations. */
typedef enum CommEngine {
	COMM_ENGINE_RESERVED = -1,
	COMM_ENGINE_CPU = 0,		/* the host, directly */
	COMM_ENGINE_CPU_TS = 1,		/* the host, as tasks of a stream */
	COMM_ENGINE_AICPU = 2,		/* the device's CPUs, directly */
	COMM_ENGINE_AICPU_TS = 3,	/* the device's CPUs, as tasks */
	COMM_ENGINE_AIV = 4,		/* vector cores */
	COMM_ENGINE_CCU = 5,		/* the collective communication unit */
} CommEngine;

/* What a channel goes over.  Some have an older name, too. */
typedef enum CommProtocol {
	COMM_PROTOCOL_RESERVED = -1,
	COMM_PROTOCOL_HCCS = 0,
	COMM_PROTOCOL_ROCE = 1,
	COMM_PROTOCOL_PCIE = 2,
	COMM_PROTOCOL_SIO = 3,		/* between the dies of a package */
	COMM_PROTOCOL_UB_CTP = 4,	/* UB queues, compact transport */
	COMM_PROTOCOL_UBC_CTP = COMM_PROTOCOL_UB_CTP,
	COMM_PROTOCOL_UBC_TP = 5,
	COMM_PROTOCOL_UB_MEM = 6,	/* UB, by loads and stores */
	COMM_PROTOCOL_UBOE = 7,		/* UB over Ethernet */
	COMM_PROTOCOL_HCCS_ONLY = 8,	/* HCCS even between the dies of a package */
	COMM_PROTOCOL_UB_RTP = 9,	/* UB queues, reliable transport */
	COMM_PROTOCOL_UBG = COMM_PROTOCOL_UB_RTP,
} CommProtocol;

/* --- Addresses and endpoints --------------------------------------------- */

typedef enum CommAddrType {
	COMM_ADDR_TYPE_RESERVED = -1,
	COMM_ADDR_TYPE_IP_V4 = 0,
	COMM_ADDR_TYPE_IP_V6 = 1,
	COMM_ADDR_TYPE_ID = 2,
	COMM_ADDR_TYPE_EID = 3,		/* of a UB port */
} CommAddrType;

HCOMM_CONST(uint32_t, COMM_ADDR_EID_LEN, 16U);

/* @type says which member of the union it is. */
typedef struct CommAddr {
	CommAddrType type;
	union {
		uint8_t raws[36];
		struct in_addr addr;
		struct in6_addr addr6;
		uint32_t id;
		uint8_t eid[COMM_ADDR_EID_LEN];
	};
} CommAddr;

typedef enum EndpointLocType {
	ENDPOINT_LOC_TYPE_RESERVED = -1,
	ENDPOINT_LOC_TYPE_DEVICE = 0,
	ENDPOINT_LOC_TYPE_HOST = 1,
} EndpointLocType;

/* Where an endpoint is; @locType says which member counts. */
typedef struct EndpointLoc {
	EndpointLocType locType;
	__extension__ union {
		uint8_t raws[60];
		struct {
			uint32_t devPhyId;	/* physical number of the device */
			uint32_t superDevId;	/* its number in the super pod */
			uint32_t serverIdx;
			uint32_t superPodIdx;
		} device;
		struct {
			uint32_t id;
		} host;
	};
} EndpointLoc;

typedef struct EndpointDesc {
	CommProtocol protocol;
	CommAddr commAddr;
	EndpointLoc loc;
	union {
		uint8_t raws[52];
	};
} EndpointDesc;

/* Prepare @num of them: nothing is set.  2 (HCCL_E_PTR) for NULL. */
static inline HcommResult EndpointDescInit(EndpointDesc *endpoint, uint32_t num)
{
	if (!endpoint)
		return num ? 2 : 0;
	/* 0xff in all bytes: every type in there has -1 as its reserved value */
	memset(endpoint, 0xff, num * sizeof(*endpoint));
	return 0;
}

/* What an endpoint may be able to do. */
typedef enum HcommEndpointFeatureType {
	HCOMM_ENDPOINT_FEATURE_INVALID = -1,
	HCOMM_ENDPOINT_FEATURE_NDA = 0,		/* the device posts to the network itself */
} HcommEndpointFeatureType;

/* Of a channel's two ends one listens and one connects. */
typedef enum HcommSocketRole {
	HCOMM_SOCKET_ROLE_RESERVED = -1,
	HCOMM_SOCKET_ROLE_CLIENT = 0,
	HCOMM_SOCKET_ROLE_SERVER = 1,
} HcommSocketRole;

/* --- Memory -------------------------------------------------------------- */

typedef enum CommMemType {
	COMM_MEM_TYPE_INVALID = -1,
	COMM_MEM_TYPE_DEVICE = 0,
	COMM_MEM_TYPE_HOST = 1,
} CommMemType;

/* A range of memory, @size in bytes. */
typedef struct CommMem {
	CommMemType type;
	void *addr;
	uint64_t size;
} CommMem;

#ifdef __cplusplus
}
#endif

#endif
