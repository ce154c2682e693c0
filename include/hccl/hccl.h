/* SPDX-License-Identifier: MIT */
/*
 * hccl.h - collective communication between emulated NPUs.
 *
 * Follows the public HCCL interface of August 2026.  Good for C11 and C++11.
 *
 * Conventions
 * - Operations are queued on @stream and return at once; synchronize the stream to know
 *   that they are done, or have failed.  A NULL stream is HCCL_E_PTR, as is a NULL
 *   communicator: there is no default one here.
 * - All ranks of a communicator issue the same operations in the same order, with the
 *   same data type, reduction, root and, where it is not said otherwise, count.  Where
 *   they do not, all of them get an error that says who differs.
 * - Counts are numbers of elements.  With 0 of them, a call succeeds and does nothing.
 * - Buffers are device memory, and stay as they are until the operation is done.  Arrays
 *   of counts and displacements (in elements) are host memory, uint64_t, and free to be
 *   reused after the call.
 * - HCCL_E_NOT_SUPPORT for a data type that cannot be reduced.
 */
#ifndef HCCL_HCCL_H
#define HCCL_HCCL_H

#include "hccl_types.h"
#include "hccl_comm.h"
#include "../acl/acl.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* --- Reductions ---------------------------------------------------------- */

/* @recvBuf, on all ranks, gets @count elements reduced over all ranks; may be @sendBuf. */
HcclResult HcclAllReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType,
			 HcclReduceOp op, HcclComm comm, aclrtStream stream);

/* The same on @root alone; @recvBuf has to be there on all. */
HcclResult HcclReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType,
		      HcclReduceOp op, uint32_t root, HcclComm comm, aclrtStream stream);

/* Of all ranks' @sendBuf, reduced, rank i gets part i: @recvCount elements. */
HcclResult HcclReduceScatter(void *sendBuf, void *recvBuf, uint64_t recvCount,
			     HcclDataType dataType, HcclReduceOp op, HcclComm comm,
			     aclrtStream stream);

/* Part i has sendCounts[i] elements, sendDispls[i] into @sendBuf; @recvCount is its own. */
HcclResult HcclReduceScatterV(void *sendBuf, const void *sendCounts, const void *sendDispls,
			      void *recvBuf, uint64_t recvCount, HcclDataType dataType,
			      HcclReduceOp op, HcclComm comm, aclrtStream stream);

/* --- One to all, all to one ---------------------------------------------- */

/* @buf of @root comes to all. */
HcclResult HcclBroadcast(void *buf, uint64_t count, HcclDataType dataType, uint32_t root,
			 HcclComm comm, aclrtStream stream);

/* Of the @sendBuf of @root (NULL elsewhere), rank i gets part i: @recvCount elements. */
HcclResult HcclScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType,
		       uint32_t root, HcclComm comm, aclrtStream stream);

/* --- All to all ---------------------------------------------------------- */

/* @recvBuf, on all ranks, gets all @sendBuf, in the order of ranks. */
HcclResult HcclAllGather(void *sendBuf, void *recvBuf, uint64_t sendCount, HcclDataType dataType,
			 HcclComm comm, aclrtStream stream);

/* That of rank i has recvCounts[i] elements, and goes recvDispls[i] into @recvBuf. */
HcclResult HcclAllGatherV(void *sendBuf, uint64_t sendCount, void *recvBuf, const void *recvCounts,
			  const void *recvDispls, HcclDataType dataType, HcclComm comm,
			  aclrtStream stream);

/* Part i of @sendBuf goes to rank i, as part "own rank" of its @recvBuf. */
HcclResult HcclAlltoAll(const void *sendBuf, uint64_t sendCount, HcclDataType sendType,
			const void *recvBuf, uint64_t recvCount, HcclDataType recvType,
			HcclComm comm, aclrtStream stream);

/* The same with a count and a displacement for each part. */
HcclResult HcclAlltoAllV(const void *sendBuf, const void *sendCounts, const void *sdispls,
			 HcclDataType sendType, const void *recvBuf, const void *recvCounts,
			 const void *rdispls, HcclDataType recvType, HcclComm comm,
			 aclrtStream stream);

/* Without gaps; @sendCountMatrix has a row of counts for each rank that sends. */
HcclResult HcclAlltoAllVC(const void *sendBuf, const void *sendCountMatrix, HcclDataType sendType,
			  const void *recvBuf, HcclDataType recvType, HcclComm comm,
			  aclrtStream stream);

/* --- One to one ---------------------------------------------------------- */

/*
 * A send meets the receive of its peer, in the order of both; its stream does not go on
 * before.
 */
HcclResult HcclSend(void *sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank,
		    HcclComm comm, aclrtStream stream);
HcclResult HcclRecv(void *recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank,
		    HcclComm comm, aclrtStream stream);

/* @itemNum of them at once: none waits for another. */
HcclResult HcclBatchSendRecv(HcclSendRecvItem *sendRecvInfo, uint32_t itemNum, HcclComm comm,
			     aclrtStream stream);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
