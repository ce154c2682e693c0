/* SPDX-License-Identifier: MIT */
/*
 * hccl_res.h - resources of a communicator for operators that programs bring along:
 * its buffer, registered memory, threads, contexts of engines.
 *
 * Follows the public HCCL interface of August 2026.
 *
 * HCCL_E_PTR for NULL, HCCL_E_PARA for a value that cannot be, HCCL_E_NOT_FOUND for
 * what is not there.  All of it goes with the communicator.
 */
#ifndef HCCL_HCCL_RES_H
#define HCCL_HCCL_RES_H

#include "hccl_types.h"
#include "hccl_channel.h"
#include "../acl/acl_base_rt.h"
#include "../hcomm_res_defs.h"
#include "../hcomm_channel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longest name of a context or of memory, without the byte that ends it. */
HCCL_CONST(uint32_t, HCCL_RES_TAG_MAX_LEN, 255);

/* What THREAD_RES_TYPE_STREAM gives. */
typedef aclrtStream ThreadResTypeStream;

/* Threads that there is one of for each use. */
typedef enum HcclDedicatedThreadType {
	HCCL_DED_THREAD_TYPE_INVALID = -1,
	HCCL_DED_THREAD_TYPE_AICPU_LAUNCH = 0,
	HCCL_DED_THREAD_TYPE_AICPU_LAUNCH_GE = 1,
	HCCL_DED_THREAD_TYPE_AICPU_ORDER_LAUNCH_OPBASE = 2,
	HCCL_DED_THREAD_TYPE_AICPU_ORDER_LAUNCH_ACLGRAPH = 3,
	HCCL_DED_THREAD_TYPE_AICPU_ORDER_LAUNCH_GE = 4,
	HCCL_DED_THREAD_TYPE_AICPU_ORDER_LAUNCH_DEVICE = 5,
} HcclDedicatedThreadType;

#pragma GCC visibility push(default)

/* --- Memory -------------------------------------------------------------- */

/* This rank's buffer of the communicator, which peers reach, and its size in bytes. */
HcclResult HcclGetHcclBuffer(HcclComm comm, void **buffer, uint64_t *size);

/* The same, filled with zeros. */
HcclResult HcclGetHcclBufferCleared(HcclComm comm, void **buffer, uint64_t *size);

/* Register memory, so that the peers of channels may be told of it by the name @memTag. */
HcclResult HcclCommMemReg(HcclComm comm, const char *memTag, const CommMem *mem,
			  HcclMemHandle *memHandle);

/* --- Threads ------------------------------------------------------------- */

/* @threadNum threads of an engine, each with so many notifies. */
HcclResult HcclThreadAcquire(HcclComm comm, CommEngine engine, uint32_t threadNum,
			     uint32_t notifyNumPerThread, ThreadHandle *threads);

/* The same with a configuration for each of them. */
HcclResult HcclThreadAcquireWithConfig(HcclComm comm, CommEngine engine, uint32_t threadNum,
				       ThreadType type, const ThreadConfig *config,
				       ThreadHandle *threads);

/* A stream of the program's as a thread, with so many notifies. */
HcclResult HcclThreadAcquireWithStream(HcclComm comm, CommEngine engine, aclrtStream stream,
				       uint32_t notifyNum, ThreadHandle *thread);

/* The one for a use: asked for again, it is the same one. */
HcclResult HcclDedicatedThreadAcquire(HcclComm comm, HcclDedicatedThreadType useType,
				      uint32_t notifyNumPerThread, ThreadHandle *thread);

/* What is behind a thread: *@info of @infoLen bytes, of the type that @resType says. */
HcclResult HcclThreadResGetInfo(HcclComm comm, ThreadHandle thread, ThreadResType resType,
				uint32_t infoLen, void **info);

/* --- Contexts ------------------------------------------------------------ */

/* Memory of @size bytes where an engine finds what its operator needs, by a name. */
HcclResult HcclEngineCtxCreate(HcclComm comm, const char *ctxTag, CommEngine engine, uint64_t size,
			       void **ctx);

/* The one that is there already: HCCL_E_NOT_FOUND if it is not. */
HcclResult HcclEngineCtxGet(HcclComm comm, const char *ctxTag, CommEngine engine, void **ctx,
			    uint64_t *size);

/* Copy @size bytes of host memory into it, from @dstCtxOffset on. */
HcclResult HcclEngineCtxCopy(HcclComm comm, CommEngine engine, const char *ctxTag,
			     const void *srcCtx, uint64_t size, uint64_t dstCtxOffset);

HcclResult HcclEngineCtxDestroy(HcclComm comm, const char *ctxTag, CommEngine engine);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
