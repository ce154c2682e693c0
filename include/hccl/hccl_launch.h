/* SPDX-License-Identifier: MIT */
/*
 * hccl_launch.h - operators that run on a device's CPUs, launched for a communicator.
 *
 * Follows the public HCCL interface of August 2026.
 */
#ifndef HCCL_HCCL_LAUNCH_H
#define HCCL_HCCL_LAUNCH_H

#include "hccl_types.h"
#include "../acl/acl_rt.h"
#include "../hcomm_res_defs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- What it does -------------------------------------------------------- */

/* A send or a receive; @count in elements. */
typedef struct HcclOpP2pDesc {
	void *buffer;
	uint8_t reserved[8];
	HcclCMDType cmdType;
	HcclDataType dataType;
	uint64_t count;
	uint32_t remoteRank;
	void *unfoldStream;
} HcclOpP2pDesc;

HCCL_CONST(uint32_t, HCCL_OPDESC_MAGIC_WORD, 0x0f0f0f0f);
HCCL_CONST(uint32_t, HCCL_OPDESC_VERSION, 1);
HCCL_CONST(uint32_t, HCCL_OP_DESC_OP_NAME_MAX_LEN, 256);

typedef struct HcclOpDesc {
	CommAbiHeader header;
	uint32_t opDescType;
	char opName[HCCL_OP_DESC_OP_NAME_MAX_LEN];
	union {
		uint8_t raws[76];
		HcclOpP2pDesc p2p;
	};
} HcclOpDesc;

/* Prepare one.  HCCL_E_PTR for NULL. */
static inline HcclResult HcclOpDescInit(HcclOpDesc *opDesc)
{
	if (!opDesc)
		return HCCL_E_PTR;
	memset(opDesc, 0xff, sizeof(*opDesc));
	opDesc->header.version = HCCL_OPDESC_VERSION;
	opDesc->header.magicWord = HCCL_OPDESC_MAGIC_WORD;
	opDesc->header.size = sizeof(*opDesc);
	opDesc->header.reserved = 0;
	return HCCL_SUCCESS;
}

/* --- The kernel ---------------------------------------------------------- */

HCCL_CONST(uint32_t, HCCL_KERNEL_SO_NAME_MAX_LEN, 256);
HCCL_CONST(uint32_t, HCCL_KERNEL_FUNC_NAME_MAX_LEN, 256);

/* Which function of which library, and its arguments: @argSize bytes. */
typedef struct HcclKernelFuncInfo {
	char kernelSoName[HCCL_KERNEL_SO_NAME_MAX_LEN];
	char kernelFuncName[HCCL_KERNEL_FUNC_NAME_MAX_LEN];
	void *args;
	uint32_t argSize;
} HcclKernelFuncInfo;

HCCL_CONST(uint32_t, P2P_MAX_ARG_SIZE, 8192U);

/* What the kernel of a send or a receive gets. */
typedef struct HcclP2pKernelParam {
	ThreadHandle sendRecvThread;
	uint8_t opParams[P2P_MAX_ARG_SIZE];
} HcclP2pKernelParam;

HCCL_CONST(uint32_t, HCCL_KERNEL_LAUNCH_CFG_MAGIC_WORD, 0x0f0f0f0f);
HCCL_CONST(uint32_t, HCCL_KERNEL_LAUNCH_CFG_VERSION, 1);

typedef struct HcclKernelLaunchCfg {
	CommAbiHeader header;
	uint64_t timeOut;		/* seconds */
	uint8_t reserved[104];
} HcclKernelLaunchCfg;

/* Prepare one.  HCCL_E_PTR for NULL. */
static inline HcclResult HcclKernelLaunchCfgInit(HcclKernelLaunchCfg *kernelLaunchCfg)
{
	if (!kernelLaunchCfg)
		return HCCL_E_PTR;
	memset(kernelLaunchCfg, 0xff, sizeof(*kernelLaunchCfg));
	kernelLaunchCfg->header.version = HCCL_KERNEL_LAUNCH_CFG_VERSION;
	kernelLaunchCfg->header.magicWord = HCCL_KERNEL_LAUNCH_CFG_MAGIC_WORD;
	kernelLaunchCfg->header.size = sizeof(*kernelLaunchCfg);
	kernelLaunchCfg->header.reserved = 0;
	return HCCL_SUCCESS;
}

#pragma GCC visibility push(default)

/*
 * Launch it on @aicpuThreadHandle, as a part of what @userStream does.  Between
 * HcclGroupStart() and HcclGroupEnd() only.
 */
HcclResult HcclAicpuKernelLaunch(HcclComm comm, const HcclOpDesc *opInfo,
				 const HcclKernelFuncInfo *funcInfo, ThreadHandle aicpuThreadHandle,
				 aclrtStream userStream, const HcclKernelLaunchCfg *kernelLaunchCfg);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
