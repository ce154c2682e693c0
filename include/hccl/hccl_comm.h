/* SPDX-License-Identifier: MIT */
/*
 * hccl_comm.h - communicators: how ranks come together, what they are configured by,
 * the memory that they share, and what happens when something fails.
 *
 * Follows the public HCCL interface of August 2026.
 *
 * Conventions
 * - Functions return a HcclResult; aclGetRecentErrMsg() then says in words what was
 *   wrong.  Not repeated below: HCCL_E_PTR for NULL, HCCL_E_PARA for a value that
 *   cannot be, or for a communicator that is none.
 * - A rank is one device, by a process or by a thread of its own.  The device has to be
 *   set in the calling thread.
 * - Functions that make a communicator wait for all of its ranks, for at most
 *   HCCL_CONNECT_TIMEOUT seconds; then HCCL_E_TIMEOUT, and the message lists who is
 *   missing.
 */
#ifndef HCCL_HCCL_COMM_H
#define HCCL_HCCL_COMM_H

#include <stdbool.h>
#include <string.h>
#include "hccl_types.h"
#include "hccl_res.h"
#include "hccl_launch.h"
#include "../acl/acl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Types --------------------------------------------------------------- */

/* Called before and after what a HcclCommStatePhase names, with the program's @args. */
typedef HcclResult (*HcclCommStateCallback)(HcclComm comm, HcclCommStatePhase phase, void *args);

/* What HcclConfigGetInfo() tells. */
typedef enum HcclConfigType {
	HCCL_CONFIG_TYPE_INVALID = -1,
	HCCL_CONFIG_TYPE_OP_EXPANSION_MODE = 0,	/* a HcclConfigTypeOpExpansionMode */
	HCCL_CONFIG_TYPE_HCCL_ALGO = 1,		/* a string */
} HcclConfigType;

/* Who unfolds an operation into tasks.  Not the numbers of HcclCommConfig. */
typedef enum HcclOpExpansionMode {
	HCCL_OP_EXPANSION_MODE_INVALID = -1,
	HCCL_OP_EXPANSION_MODE_AI_CPU = 0,
	HCCL_OP_EXPANSION_MODE_AIV = 1,
	HCCL_OP_EXPANSION_MODE_HOST = 2,
	HCCL_OP_EXPANSION_MODE_HOST_TS = 3,
	HCCL_OP_EXPANSION_MODE_CCU_MS = 4,
	HCCL_OP_EXPANSION_MODE_CCU_SCHED = 5,
	HCCL_OP_EXPANSION_AIV_ONLY = 6,
} HcclOpExpansionMode;

typedef HcclOpExpansionMode HcclConfigTypeOpExpansionMode;

/* Prepare a configuration: nothing is set.  NULL is left alone. */
static inline void HcclCommConfigInit(HcclCommConfig *config)
{
	/* what its reserved bytes are */
	struct {
		size_t size;
		uint32_t magic;
		uint32_t version;
		uint64_t reserved;
	} info;

	if (!config)
		return;
	info.size = sizeof(*config);
	info.magic = HCCL_COMM_CONFIG_MAGIC_WORD;
	info.version = HCCL_COMM_CONFIG_VERSION;
	info.reserved = 0;
	memset(config, 0, sizeof(*config));
	memcpy(config->reserved, &info, sizeof(config->reserved));
	config->hcclBufferSize = HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET;
	config->hcclDeterministic = HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET;
	config->hcclOpExpansionMode = HCCL_COMM_DEFAULT_OP_EXPANSION_MODE;
	config->hcclRdmaTrafficClass = HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET;
	config->hcclRdmaServiceLevel = HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET;
	config->hcclExecTimeOut = HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET;
	config->hcclQos = HCCL_COMM_QOS_CONFIG_NOT_SET;
	config->hcclSymWinMaxMemSizePerRank = HCCL_DEFAULT_SYMMETRIC_MEMORY_STRIDE;
	config->hcclChannelSqDepth = HCCL_COMM_SQ_DEPTH_CONFIG_NOT_SET;
}

#pragma GCC visibility push(default)

/* --- Making communicators ------------------------------------------------- */

/*
 * Begin a meeting, in one rank, the root; the program takes *@rootInfo to all others.
 * One is good for one communicator.
 */
HcclResult HcclGetRootInfo(HcclRootInfo *rootInfo);

/* Come to the meeting as @rank of @nRanks. */
HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank,
				HcclComm *comm);

/* The same with a configuration. */
HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank,
				      const HcclCommConfig *config, HcclComm *comm);

/* All ranks in one call: rank i has device @devices[i] and gets @comms[i]. */
HcclResult HcclCommInitAll(uint32_t ndev, int32_t *devices, HcclComm *comms);

/* As @rank of the JSON file @clusterInfo, a rank table. */
HcclResult HcclCommInitClusterInfo(const char *clusterInfo, uint32_t rank, HcclComm *comm);

/* The same with a configuration. */
HcclResult HcclCommInitClusterInfoConfig(const char *clusterInfo, uint32_t rank,
					 HcclCommConfig *config, HcclComm *comm);

/*
 * A communicator of some ranks of *@comm: @rankNum of them in @rankIds, this one being
 * number @subCommRankId there.  @subCommId tells groups apart.  Ranks outside may call
 * with NULL and a @subCommId of 0xffffffff; they get none.
 */
HcclResult HcclCreateSubCommConfig(HcclComm *comm, uint32_t rankNum, uint32_t *rankIds,
				   uint64_t subCommId, uint32_t subCommRankId,
				   HcclCommConfig *config, HcclComm *subComm);

/*
 * Unmake this rank's part of it; HCCL_E_AGAIN while another thread uses it.  What is
 * queued is waited for.
 */
HcclResult HcclCommDestroy(HcclComm comm);

/* --- Questions ----------------------------------------------------------- */

HcclResult HcclGetRankSize(HcclComm comm, uint32_t *rankSize);
HcclResult HcclGetRankId(HcclComm comm, uint32_t *rank);

/* Its name: up to COMM_NAME_MAX_LENGTH bytes. */
HcclResult HcclGetCommName(HcclComm comm, char *commName);

/* The communicator of that name: HCCL_E_NOT_FOUND if the process has none. */
HcclResult HcclCommGetHandleWithName(const char *commName, HcclComm *comm);

/* How it is configured: @infoLen bytes at @info, of the type that @configType says. */
HcclResult HcclConfigGetInfo(HcclComm comm, HcclConfigType configType, uint32_t infoLen,
			     void *info);

/* A code in a few words; the string lives for ever. */
const char *HcclGetErrorString(HcclResult code);

/* HCCL_COMM_CONFIG_RESERVED of the library: it knows all below. */
uint32_t HcclGetCommConfigCapability(void);

/* --- Configuration of the process ---------------------------------------- */

HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue);
HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue *configValue);

/* --- Order --------------------------------------------------------------- */

/* On the stream, nothing goes on before all ranks have come to it. */
HcclResult HcclBarrier(HcclComm comm, aclrtStream stream);

/*
 * Calls between these two are carried out together at the end.  They may be nested;
 * making communicators, collectives, and sends and receives do not mix.
 */
HcclResult HcclGroupStart(void);
HcclResult HcclGroupEnd(void);

/* Whether the thread is between them. */
HcclResult HcclGroupStatusGet(bool *inGroup);

/* --- Failures ------------------------------------------------------------ */

/* *@asyncError: HCCL_SUCCESS, or HCCL_E_REMOTE when an operation on it has failed. */
HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult *asyncError);

/* Stop it: operations on it fail with HCCL_E_SUSPENDING, until it is resumed. */
HcclResult HcclCommSuspend(HcclComm comm);
HcclResult HcclCommResume(HcclComm comm);

/* How it is, by its name. */
HcclResult HcclCommGetStatus(const char *commName, HcclCommStatus *status);

/*
 * Have a function called when the state of any communicator of this process changes, in
 * the thread that changes it.  @regName says whose it is; the same name again replaces it.
 */
HcclResult HcclCommRegCommStateCallback(const char *regName, HcclCommStateCallback callback,
					void *args);

/* Which network interface ranks use: for @ranks[i] the backup if @useBackup[i]. */
HcclResult HcclCommWorkingDevNicSet(HcclComm comm, uint32_t *ranks, bool *useBackup,
				    uint32_t nRanks);

/* --- Memory -------------------------------------------------------------- */

/*
 * Operations without copies, for memory of aclrtReserveMemAddress(): all ranks name a
 * range of the same size (bytes), then the physical memory that they have mapped in it.
 * @alignment, @offset and @flags are 0.  Ranges, and what is active in them, do not
 * overlap.  HCCL_E_NOT_SUPPORT if the ranks are on several servers, HCCL_E_NOT_FOUND for
 * what is in no range or not active, HCCL_E_AGAIN for taking back while operations are
 * on the way.
 */
HcclResult HcclCommSetMemoryRange(HcclComm comm, void *baseVirPtr, size_t size, size_t alignment,
				  uint64_t flags);
HcclResult HcclCommUnsetMemoryRange(HcclComm comm, void *baseVirPtr);
HcclResult HcclCommActivateCommMemory(HcclComm comm, void *virPtr, size_t size, size_t offset,
				      aclrtDrvMemHandle handle, uint64_t flags);
HcclResult HcclCommDeactivateCommMemory(HcclComm comm, void *virPtr);

/* A window of @size bytes that all ranks register together; @flag is 1. */
HcclResult HcclCommSymWinRegister(HcclComm comm, void *addr, uint64_t size,
				  HcclCommSymWindow *winHandle, uint32_t flag);
HcclResult HcclCommSymWinDeregister(HcclCommSymWindow winHandle);

/* The window that @size bytes at @ptr are in, and where.  If there is none: NULL and 0. */
HcclResult HcclCommSymWinGet(HcclComm comm, void *ptr, size_t size, HcclCommSymWindow *winHandle,
			     size_t *offset);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
