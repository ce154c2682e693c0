/* SPDX-License-Identifier: MIT */
/*
 * hcomm_primitives.h - what goes over channels: copies, reductions and notifies.
 *
 * Follows the public Hcomm interface of August 2026.
 *
 * Conventions
 * - Functions return 0, or the number of a HcclResult.
 * - Those called ...OnThread append to a thread, which executes them in order; the
 *   others are issued at once by the caller.  What fails on a thread is reported when
 *   its stream is synchronized.
 * - @len is in bytes, @count in elements, @timeOut in seconds (0: for ever).
 * - Of @dst and @src the remote one is in the peer's own addresses, in memory that the
 *   peer registered.  Local memory of a queue protocol has to be registered, too.
 * - ...Nbi is not ordered with what follows on its channel before a fence or a drain.
 * - A notify is known by its index at the end that waits for it: below the notifyNum
 *   that the channel, or the thread, was made with.
 */
#ifndef HCOMM_PRIMITIVES_H
#define HCOMM_PRIMITIVES_H

#include "hcomm_res_defs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The times below that set defaults are floats. */
#define HCOMM_TIMEOUT_FLOAT_TYPE	1

/* --- Types --------------------------------------------------------------- */

/* The numbers of HcclDataType. */
typedef enum HcommDataType {
	HCOMM_DATA_TYPE_INT8 = 0,
	HCOMM_DATA_TYPE_INT16 = 1,
	HCOMM_DATA_TYPE_INT32 = 2,
	HCOMM_DATA_TYPE_FP16 = 3,
	HCOMM_DATA_TYPE_FP32 = 4,
	HCOMM_DATA_TYPE_INT64 = 5,
	HCOMM_DATA_TYPE_UINT64 = 6,
	HCOMM_DATA_TYPE_UINT8 = 7,
	HCOMM_DATA_TYPE_UINT16 = 8,
	HCOMM_DATA_TYPE_UINT32 = 9,
	HCOMM_DATA_TYPE_FP64 = 10,
	HCOMM_DATA_TYPE_BFP16 = 11,
	HCOMM_DATA_TYPE_INT128 = 12,
	HCOMM_DATA_TYPE_HIF8 = 14,
	HCOMM_DATA_TYPE_FP8E4M3 = 15,
	HCOMM_DATA_TYPE_FP8E5M2 = 16,
	HCOMM_DATA_TYPE_FP8E8M0 = 17,
	HCOMM_DATA_TYPE_RESERVED = 255,
} HcommDataType;

/* The numbers of HcclReduceOp. */
typedef enum HcommReduceOp {
	HCOMM_REDUCE_SUM = 0,
	HCOMM_REDUCE_PROD = 1,
	HCOMM_REDUCE_MAX = 2,
	HCOMM_REDUCE_MIN = 3,
	HCOMM_REDUCE_RESERVED = 255,
} HcommReduceOp;

typedef enum HcommTransferType {
	HCOMM_TRANSFER_TYPE_INVALID = -1,
	HCOMM_TRANSFER_TYPE_WRITE = 0,
	HCOMM_TRANSFER_TYPE_WRITE_REDUCE = 1,
	HCOMM_TRANSFER_TYPE_WRITE_WITH_NOTIFY = 2,
	HCOMM_TRANSFER_TYPE_WRITE_REDUCE_WITH_NOTIFY = 3,
	HCOMM_TRANSFER_TYPE_READ = 4,
	HCOMM_TRANSFER_TYPE_READ_REDUCE = 5,
	HCOMM_TRANSFER_TYPE_NOTIFY_RECORD = 6,
} HcommTransferType;

/* One of several operations that are issued together; @transType says which member. */
typedef struct HcommBatchTransferDesc {
	HcommTransferType transType;
	uint8_t reserved[4];
	union {
		uint8_t raws[56];
		struct {
			uint64_t len;
			void *dst;
			void *src;
		} write;
		struct {
			uint64_t len;
			void *dst;
			void *src;
		} read;
		struct {		/* WRITE_REDUCE and READ_REDUCE */
			uint64_t count;
			void *dst;
			void *src;
			HcommReduceOp reduceOp;
			HcommDataType dataType;
		} reduce;
		struct {
			uint32_t notifyIdx;
		} notifyRecord;
		struct {
			uint64_t len;
			void *dst;
			void *src;
			uint32_t notifyIdx;
		} writeWithNotify;
		struct {
			uint64_t count;
			void *dst;
			void *src;
			HcommReduceOp reduceOp;
			HcommDataType dataType;
			uint32_t notifyIdx;
		} writeReduceWithNotify;
	} transferInfo;
} HcommBatchTransferDesc;

#pragma GCC visibility push(default)

/* --- On this device ------------------------------------------------------ */

/* Copy. */
int32_t HcommLocalCopyOnThread(ThreadHandle thread, void *dst, const void *src, uint64_t len);

/* @dst = @dst (@reduceOp) @src, for @count elements. */
int32_t HcommLocalReduceOnThread(ThreadHandle thread, void *dst, const void *src, uint64_t count,
				 HcommDataType dataType, HcommReduceOp reduceOp);

/* Signal a notify of another thread. */
int32_t HcommThreadNotifyRecordOnThread(ThreadHandle thread, ThreadHandle dstThread,
					uint32_t dstNotifyIdx);

/* Wait for one of its own, and clear it. */
int32_t HcommThreadNotifyWaitOnThread(ThreadHandle thread, uint32_t notifyIdx, uint32_t timeOut);

/* The same, for as long as HcommSetNotifyWaitTimeOut() says. */
int32_t HcommThreadNotifyWaitOnThreadWithDefaultTimeout(ThreadHandle thread, uint32_t notifyIdx);

/* Signal a notify of the runtime, by its number (aclrtGetNotifyId()). */
int32_t HcommAclrtNotifyRecordOnThread(ThreadHandle thread, uint64_t dstNotifyId);

/* Wait for one, and clear it. */
int32_t HcommAclrtNotifyWaitOnThread(ThreadHandle thread, uint64_t notifyId, uint32_t timeOut);

/* --- Over a channel, in a thread's order ----------------------------------- */

/* Copy to the peer. */
int32_t HcommWriteOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src,
			   uint64_t len);

/* Reduce into the peer's memory. */
int32_t HcommWriteReduceOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
				 const void *src, uint64_t count, HcommDataType dataType,
				 HcommReduceOp reduceOp);

/* Copy, then signal: who sees the notify sees the bytes. */
int32_t HcommWriteWithNotifyOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
				     const void *src, uint64_t len, uint32_t remoteNotifyIdx);

/* Reduce, then signal. */
int32_t HcommWriteReduceWithNotifyOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
					   const void *src, uint64_t count, HcommDataType dataType,
					   HcommReduceOp reduceOp, uint32_t remoteNotifyIdx);

/* Copy from the peer. */
int32_t HcommReadOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src,
			  uint64_t len);

/* Reduce from the peer's memory into our own. */
int32_t HcommReadReduceOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
				const void *src, uint64_t count, HcommDataType dataType,
				HcommReduceOp reduceOp);

/* Copies whose end nobody waits for before the fence or the drain. */
int32_t HcommWriteNbiOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
			      const void *src, uint64_t len);
int32_t HcommWriteWithNotifyNbiOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
					const void *src, uint64_t len, uint32_t remoteNotifyIdx);
int32_t HcommReadNbiOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
			     const void *src, uint64_t len);

/* Signal a notify at the peer's end. */
int32_t HcommChannelNotifyRecordOnThread(ThreadHandle thread, ChannelHandle channel,
					 uint32_t remoteNotifyIdx);

/* Wait for one at this end, and clear it. */
int32_t HcommChannelNotifyWaitOnThread(ThreadHandle thread, ChannelHandle channel,
				       uint32_t localNotifyIdx, uint32_t timeOut);

/* The same, for as long as HcommSetNotifyWaitTimeOut() says. */
int32_t HcommChannelNotifyWaitOnThreadWithDefaultTimeout(ThreadHandle thread, ChannelHandle channel,
							 uint32_t localNotifyIdx);

/* What was issued on the channel comes before what will be. */
int32_t HcommChannelFenceOnThread(ThreadHandle thread, ChannelHandle channel);

/* The thread goes on when all that was issued on the channel has been completed. */
int32_t HcommChannelDrainOnThread(ThreadHandle thread, ChannelHandle channel);

/* What was issued on the thread, on whichever channel, comes before what will be. */
int32_t HcommFenceOnThread(ThreadHandle thread);

/* Several operations, in their order; at most one that fails is reported. */
int32_t HcommBatchTransferOnThread(ThreadHandle thread, ChannelHandle channel,
				   const HcommBatchTransferDesc *transferDescs,
				   uint32_t transferDescNum);

/* --- Over a channel, at once --------------------------------------------- */

int32_t HcommWriteNbi(ChannelHandle channel, void *dst, const void *src, uint64_t len);
int32_t HcommWriteWithNotifyNbi(ChannelHandle channel, void *dst, const void *src, uint64_t len,
				uint32_t remoteNotifyIdx);
int32_t HcommReadNbi(ChannelHandle channel, void *dst, const void *src, uint64_t len);

/* Signal a notify at the peer's end, after what was issued before. */
int32_t HcommChannelNotifyRecord(ChannelHandle channel, uint32_t remoteNotifyIdx);

/* Block until one at this end has come, and clear it; 9 (HCCL_E_TIMEOUT) when it has not. */
int32_t HcommChannelNotifyWait(ChannelHandle channel, uint32_t localNotifyIdx, uint32_t timeOut);

/* Block until all that was issued has been completed. */
int32_t HcommChannelFence(ChannelHandle channel);

/* --- How it is issued ---------------------------------------------------- */

/*
 * Hold back what this thread of the program issues, and issue it with one doorbell at
 * HcommBatchModeEnd().  @batchTag is a name for logs.
 */
int32_t HcommBatchModeStart(const char *batchTag);
int32_t HcommBatchModeEnd(const char *batchTag);

/* Take a communicator, by its name, for the use of an operator; and give it back. */
int32_t HcommAcquireComm(const char *commId);
int32_t HcommReleaseComm(const char *commId);

/* How long waits with the default time last, in seconds; for this thread of the program. */
int32_t HcommSetNotifyWaitTimeOut(float timeOut);

/* How long an operation may wait for room on a thread, in seconds; likewise. */
int32_t HcommThreadResAcquireTimeOut(float timeOut);

/*
 * Operators that a device's CPU unfolds may keep the tasks under a name and issue them
 * again for other buffers: look, record between start and end, or execute.  @addrs and
 * @sizes (bytes) are the @count buffers that the tasks are about.
 */
HcommResult HcommAicpuTsTaskCacheLookup(const char *tag, bool *isHit);
HcommResult HcommAicpuTsTaskCacheStart(const char *tag, void **addrs, uint64_t *sizes,
				       uint64_t count);
HcommResult HcommAicpuTsTaskCacheEnd(const char *tag);
HcommResult HcommAicpuTsTaskCacheExecute(const char *tag, void **addrs, uint64_t *sizes,
					 uint64_t count);
HcommResult HcommAicpuTsTaskCacheClear(const char *tag);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
