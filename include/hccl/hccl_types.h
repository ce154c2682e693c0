/* SPDX-License-Identifier: MIT */
/*
 * hccl_types.h - types, codes and limits of the collective communication library.
 *
 * Follows the public HCCL interface of August 2026.  Good for C11 and C++11.
 */
#ifndef HCCL_HCCL_TYPES_H
#define HCCL_HCCL_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Constant expressions in C, too, where a const variable is none. */
#ifdef __cplusplus
#define HCCL_CONST(type, name, value)	static const type name = value
#else
#define HCCL_CONST(type, name, value)	__extension__ enum { name = value }
#endif

/* --- Results ------------------------------------------------------------- */

/* HcclGetErrorString() has them in words, aclGetRecentErrMsg() what it was about. */
typedef enum HcclResult {
	HCCL_SUCCESS = 0,
	HCCL_E_PARA = 1,		/* a value that cannot be */
	HCCL_E_PTR = 2,			/* NULL */
	HCCL_E_MEMORY = 3,
	HCCL_E_INTERNAL = 4,
	HCCL_E_NOT_SUPPORT = 5,
	HCCL_E_NOT_FOUND = 6,
	HCCL_E_UNAVAIL = 7,
	HCCL_E_SYSCALL = 8,
	HCCL_E_TIMEOUT = 9,
	HCCL_E_OPEN_FILE_FAILURE = 10,
	HCCL_E_TCP_CONNECT = 11,
	HCCL_E_ROCE_CONNECT = 12,
	HCCL_E_TCP_TRANSFER = 13,
	HCCL_E_ROCE_TRANSFER = 14,
	HCCL_E_RUNTIME = 15,		/* a function of the runtime failed */
	HCCL_E_DRV = 16,
	HCCL_E_PROFILING = 17,
	HCCL_E_CCE = 18,
	HCCL_E_NETWORK = 19,
	HCCL_E_AGAIN = 20,		/* not yet */
	HCCL_E_REMOTE = 21,		/* a completion with an error */
	HCCL_E_SUSPENDING = 22,		/* the communicator is suspended */
	HCCL_E_OPRETRY_FAIL = 23,
	HCCL_E_OOM = 24,		/* out of device memory */
	HCCL_E_IN_STATUS = 1041,
	HCCL_E_RESERVED = 1042,
} HcclResult;

/* --- Handles ------------------------------------------------------------- */

typedef void *HcclComm;			/* a communicator, as one rank has it */
typedef void *HcclConn;
typedef void *HcclCommSymWindow;	/* memory at the same offset on all ranks */

/* --- Data ---------------------------------------------------------------- */

/* Not the numbers of aclDataType. */
typedef enum HcclDataType {
	HCCL_DATA_TYPE_INT8 = 0,
	HCCL_DATA_TYPE_INT16 = 1,
	HCCL_DATA_TYPE_INT32 = 2,
	HCCL_DATA_TYPE_FP16 = 3,
	HCCL_DATA_TYPE_FP32 = 4,
	HCCL_DATA_TYPE_INT64 = 5,
	HCCL_DATA_TYPE_UINT64 = 6,
	HCCL_DATA_TYPE_UINT8 = 7,
	HCCL_DATA_TYPE_UINT16 = 8,
	HCCL_DATA_TYPE_UINT32 = 9,
	HCCL_DATA_TYPE_FP64 = 10,
	HCCL_DATA_TYPE_BFP16 = 11,
	HCCL_DATA_TYPE_INT128 = 12,	/* moved, never reduced; likewise those below */
	HCCL_DATA_TYPE_HIF8 = 14,
	HCCL_DATA_TYPE_FP8E4M3 = 15,
	HCCL_DATA_TYPE_FP8E5M2 = 16,
	HCCL_DATA_TYPE_FP8E8M0 = 17,
	HCCL_DATA_TYPE_RESERVED = 255,
} HcclDataType;

typedef enum HcclReduceOp {
	HCCL_REDUCE_SUM = 0,
	HCCL_REDUCE_PROD = 1,
	HCCL_REDUCE_MAX = 2,
	HCCL_REDUCE_MIN = 3,
	HCCL_REDUCE_RESERVED = 255,
} HcclReduceOp;

typedef enum HcclSendRecvType {
	HCCL_SEND = 0,
	HCCL_RECV = 1,
	HCCL_SEND_RECV_RESERVED = 2,
} HcclSendRecvType;

/* One of the transfers of HcclBatchSendRecv(); @count in elements. */
typedef struct HcclSendRecvItemDef {
	HcclSendRecvType sendRecvType;
	void *buf;
	uint64_t count;
	HcclDataType dataType;
	uint32_t remoteRank;
} HcclSendRecvItem;

/* Operations, as the resource layer and logs number them. */
typedef enum HcclCMDType {
	HCCL_CMD_INVALID = 0,
	HCCL_CMD_BROADCAST = 1,
	HCCL_CMD_ALLREDUCE = 2,
	HCCL_CMD_REDUCE = 3,
	HCCL_CMD_SEND = 4,
	HCCL_CMD_RECEIVE = 5,
	HCCL_CMD_ALLGATHER = 6,
	HCCL_CMD_REDUCE_SCATTER = 7,
	HCCL_CMD_ALLTOALLV = 8,
	HCCL_CMD_ALLTOALLVC = 9,
	HCCL_CMD_ALLTOALL = 10,
	HCCL_CMD_GATHER = 11,
	HCCL_CMD_SCATTER = 12,
	HCCL_CMD_BATCH_SEND_RECV = 13,
	HCCL_CMD_BATCH_PUT = 14,
	HCCL_CMD_BATCH_GET = 15,
	HCCL_CMD_ALLGATHER_V = 16,
	HCCL_CMD_REDUCE_SCATTER_V = 17,
	HCCL_CMD_BATCH_WRITE = 18,
	HCCL_CMD_HALF_ALLTOALLV = 20,
	HCCL_CMD_ALL = 21,
	HCCL_CMD_FINALIZE = 100,
	HCCL_CMD_INTER_GROUP_SYNC = 101,
	HCCL_CMD_INIT = 102,
	HCCL_CMD_BARRIER = 103,
	HCCL_CMD_MAX = 104,
} HcclCMDType;

/* --- Root information ---------------------------------------------------- */

HCCL_CONST(uint32_t, HCCL_ROOT_INFO_BYTES, 4108);

/*
 * Where the ranks of a communicator meet.  The program carries it from the root to the
 * others as bytes; it begins with an IP address in letters.
 */
typedef struct HcclRootInfoDef {
	char internal[HCCL_ROOT_INFO_BYTES];
} HcclRootInfo;

/* --- State --------------------------------------------------------------- */

typedef enum HcclCommStatus {
	HCCL_COMM_STATUS_READY = 0,
	HCCL_COMM_STATUS_SUSPENDING = 1,
	HCCL_COMM_STATUS_INVALID = 254,
	HCCL_COMM_STATUS_RESERVED = 255,
} HcclCommStatus;

/* When a callback of HcclCommRegCommStateCallback() is called. */
typedef enum HcclCommStatePhase {
	HCCL_COMM_STATE_PHASE_INVALID = -1,
	HCCL_COMM_STATE_PHASE_DESTROY_PRE = 0,
	HCCL_COMM_STATE_PHASE_DESTROY_POST = 1,
	HCCL_COMM_STATE_PHASE_RESUME_PRE = 2,
	HCCL_COMM_STATE_PHASE_RESUME_POST = 3,
} HcclCommStatePhase;

/* --- Configuration of the process ---------------------------------------- */

typedef enum HcclConfig {
	HCCL_DETERMINISTIC = 0,		/* 0: no, 1: the same result every time */
	HCCL_CONFIG_RESERVED = 1,
} HcclConfig;

typedef union HcclConfigValue {
	int32_t value;
} HcclConfigValue;

/* --- Configuration of a communicator ------------------------------------- */

HCCL_CONST(uint32_t, HCCL_COMM_CONFIG_INFO_BYTES, 24);
HCCL_CONST(uint32_t, HCCL_COMM_CONFIG_MAGIC_WORD, 0xf0f0f0f0);
HCCL_CONST(uint32_t, HCCL_COMM_CONFIG_VERSION, 11);

/* Sizes of its strings, with the byte that ends them. */
HCCL_CONST(uint32_t, COMM_NAME_MAX_LENGTH, 128);
HCCL_CONST(uint32_t, UDI_MAX_LENGTH, 128);
HCCL_CONST(uint32_t, BUFFER_NAME_MAX_LENGTH, 128);
HCCL_CONST(uint32_t, HCCL_COMM_ALGO_MAX_LENGTH, 1600);
HCCL_CONST(uint32_t, HCCL_COMM_RETRY_ENABLE_MAX_LENGTH, 50);
HCCL_CONST(uint32_t, HCCL_COMM_RETRY_PARAMS_MAX_LENGTH, 128);

/* Defaults. */
HCCL_CONST(uint32_t, HCCL_COMM_DEFAULT_BUFFSIZE, 200);
HCCL_CONST(uint32_t, HCCL_COMM_DEFAULT_DETERMINISTIC, 0);
HCCL_CONST(uint32_t, HCCL_COMM_DEFAULT_OP_EXPANSION_MODE, 0);
HCCL_CONST(uint64_t, HCCL_DEFAULT_SYMMETRIC_MEMORY_STRIDE, 16ULL);

/* Not set: the environment decides, or the default. */
HCCL_CONST(uint32_t, HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET, 0xffffffff);
HCCL_CONST(uint32_t, HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET, 0xffffffff);
HCCL_CONST(uint32_t, HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET, 0xffffffff);
HCCL_CONST(uint32_t, HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET, 0xffffffff);
HCCL_CONST(int32_t, HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET, -1);	/* 0xffffffff */
HCCL_CONST(uint32_t, HCCL_COMM_QOS_CONFIG_NOT_SET, 0xffffffff);
HCCL_CONST(uint32_t, HCCL_COMM_SQ_DEPTH_CONFIG_NOT_SET, 0xffffffff);

/*
 * Prepared by HcclCommConfigInit().  Members were added with each version; the bytes in
 * front say how many there are: { size_t size; uint32_t magic, version; uint64_t 0; }.
 */
typedef struct HcclCommConfigDef {
	char reserved[HCCL_COMM_CONFIG_INFO_BYTES];
	uint32_t hcclBufferSize;	/* of each of its two buffers, in MB; at least 1 */
	uint32_t hcclDeterministic;	/* 0: no, 1: every time the same, 2: in rank order */
	char hcclCommName[COMM_NAME_MAX_LENGTH];
	char hcclUdi[UDI_MAX_LENGTH];	/* the user's own words about it */
	/* 0: default, 1: host, 2: AI CPU, 3: AIV, 4: AIV only, 5: CCU MS, 6: CCU scheduled */
	uint32_t hcclOpExpansionMode;
	uint32_t hcclRdmaTrafficClass;
	uint32_t hcclRdmaServiceLevel;
	uint32_t hcclWorldRankID;
	uint64_t hcclJobID;
	uint8_t aclGraphZeroCopyEnable;
	int32_t hcclExecTimeOut;	/* of an operation, in seconds; 0: none */
	char hcclAlgo[HCCL_COMM_ALGO_MAX_LENGTH];	/* as HCCL_ALGO has it */
	char hcclRetryEnable[HCCL_COMM_RETRY_ENABLE_MAX_LENGTH];
	char hcclRetryParams[HCCL_COMM_RETRY_PARAMS_MAX_LENGTH];
	char hcclBufferName[BUFFER_NAME_MAX_LENGTH];	/* the same name: a shared buffer */
	uint32_t hcclQos;
	uint64_t hcclSymWinMaxMemSizePerRank;	/* room for symmetric windows, in GB */
	uint32_t hcclChannelSqDepth;
} HcclCommConfig;

/* What a library knows of it: HcclGetCommConfigCapability() is above all that it does. */
typedef enum HcclCommConfigCapability {
	HCCL_COMM_CONFIG_BUFFER_SIZE = 0,
	HCCL_COMM_CONFIG_DETERMINISTIC = 1,
	HCCL_COMM_CONFIG_COMM_NAME = 2,
	HCCL_COMM_CONFIG_OP_EXPANSION_MODE = 3,
	HCCL_COMM_CONFIG_SUPPORT_INIT_BY_ENV = 4,
	HCCL_COMM_CONFIG_WORLD_RANKID = 5,
	HCCL_COMM_CONFIG_JOBID = 6,
	HCCL_COMM_CONFIG_ACLGRAPH_ZEROCOPY_ENABLE = 7,
	HCCL_COMM_CONFIG_EXEC_TIMEOUT = 8,
	HCCL_COMM_CONFIG_ALGO = 9,
	HCCL_COMM_CONFIG_RETRY = 10,
	HCCL_COMM_CONFIG_BUFFER_NAME = 11,
	HCCL_COMM_CONFIG_RESERVED = 12,
} HcclCommConfigCapability;

#ifdef __cplusplus
}
#endif

#endif
