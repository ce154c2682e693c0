/* SPDX-License-Identifier: MIT */
/*
 * hccl_one_sided_services.h - transfers that only one of the two ranks issues: memory
 * is registered, told to the peer, and from then on written and read by it.
 *
 * The real library does not install this header, but transfer engines of LLM inference
 * are built with it.  Good for C11 and C++11.
 *
 * Conventions
 * - HCCL_E_PTR for NULL, HCCL_E_PARA for a value that cannot be, HCCL_E_NOT_FOUND for
 *   memory that is not registered, told or enabled.
 * - Both ranks register before they exchange.  Host memory can be reached by ranks of the
 *   same process only (HCCL_E_NOT_SUPPORT).
 * - A transfer is done when its stream says so, on the side that issued it.  The other
 *   side is not told.
 */
#ifndef HCCL_ONE_SIDED_SERVICES_H
#define HCCL_ONE_SIDED_SERVICES_H

#include "hccl/hccl_types.h"
#include "acl/acl_base_rt.h"
#include "hcomm_res_defs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Types --------------------------------------------------------------- */

HCCL_CONST(uint32_t, HCCL_MEM_DESC_LENGTH, 511);

/* Stands for registered memory; may be carried to the peer as bytes, by any way. */
typedef struct HcclMemDesc {
	char desc[HCCL_MEM_DESC_LENGTH + 1];
} HcclMemDesc;

typedef struct HcclMemDescs {
	HcclMemDesc *array;
	uint32_t arrayLength;
} HcclMemDescs;

/* One piece of a transfer: @count elements; @remoteAddr as the peer knows it. */
typedef struct HcclOneSideOpDesc {
	void *localAddr;
	void *remoteAddr;
	uint64_t count;
	HcclDataType dataType;
} HcclOneSideOpDesc;

/* Which ranks are to reach each other. */
typedef enum HcclTopoType {
	HCCL_TOPO_FULLMESH = 0,		/* each of them every other */
	HCCL_TOPO_NUM = 1,
} HcclTopoType;

typedef struct HcclPrepareConfig {
	HcclTopoType topoType;
	uint64_t rsvd0;
	uint64_t rsvd1;
	uint64_t rsvd2;
} HcclPrepareConfig;

#pragma GCC visibility push(default)

/* --- Memory for one peer ------------------------------------------------- */

/* @type is one of CommMemType.  As often as it was registered it has to be deregistered. */
HcclResult HcclRegisterMem(HcclComm comm, uint32_t remoteRank, int type, void *addr, uint64_t size,
			   HcclMemDesc *desc);

/* HCCL_E_AGAIN while a transfer of this rank uses it. */
HcclResult HcclDeregisterMem(HcclComm comm, HcclMemDesc *desc);

/*
 * Tell a peer of memory and get what it tells: it has to call, too, and is waited for,
 * at most HCCL_CONNECT_TIMEOUT seconds.  @timeout is not used.  *@actualNum is how
 * many came, at most as many as there is room for in @remote.
 */
HcclResult HcclExchangeMemDesc(HcclComm comm, uint32_t remoteRank, HcclMemDescs *local, int timeout,
			       HcclMemDescs *remote, uint32_t *actualNum);

/* Be able to reach it; *@remoteMem is as the peer knows it. */
HcclResult HcclEnableMemAccess(HcclComm comm, HcclMemDesc *remoteMemDesc, CommMem *remoteMem);
HcclResult HcclDisableMemAccess(HcclComm comm, HcclMemDesc *remoteMemDesc);

/* --- Memory for all peers ------------------------------------------------ */

/* For any communicator of this process that it is then bound to. */
HcclResult HcclRegisterGlobalMem(const CommMem *mem, void **memHandle);

/* HCCL_E_AGAIN while a communicator has it. */
HcclResult HcclDeregisterGlobalMem(void *memHandle);

HcclResult HcclCommBindMem(HcclComm comm, void *memHandle);
HcclResult HcclCommUnbindMem(HcclComm comm, void *memHandle);

/*
 * All ranks tell each other what they have bound, and can reach it from then on.  Waits
 * for @timeout seconds; 0: HCCL_CONNECT_TIMEOUT.
 */
HcclResult HcclCommPrepare(HcclComm comm, const HcclPrepareConfig *prepareConfig, const int timeout);

/* --- Transfers ----------------------------------------------------------- */

/* Local memory, registered or bound, to the peer's, and the other way round. */
HcclResult HcclBatchPut(HcclComm comm, uint32_t remoteRank, HcclOneSideOpDesc *desc,
			uint32_t descNum, aclrtStream stream);
HcclResult HcclBatchGet(HcclComm comm, uint32_t remoteRank, HcclOneSideOpDesc *desc,
			uint32_t descNum, aclrtStream stream);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
