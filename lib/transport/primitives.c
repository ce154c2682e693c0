// SPDX-License-Identifier: MIT
/* The operations on threads, as programs call them. */
#include <inttypes.h>
#include <stdlib.h>
#include "transport.h"

#define NS(seconds)	((s64)(seconds) * 1000000000)

/* ---- On this device ---------------------------------------------------------------------- */

int32_t HcommLocalCopyOnThread(ThreadHandle thread, void *dst, const void *src, uint64_t len)
{
	static const char what[] = "HcommLocalCopyOnThread";
	struct hcomm_thread *th;
	struct hcomm_item it;
	HcclResult ret = hcomm_thread(what, thread, &th);

	if (ret || !len)
		return ret;
	ret = hcomm_item_data(what, NULL, th->dev, HCOMM_COPY, dst, src, len, &it);
	return ret ? ret : hcomm_issue(what, th, &it, 1);
}

int32_t HcommLocalReduceOnThread(ThreadHandle thread, void *dst, const void *src, uint64_t count, HcommDataType dataType,
				 HcommReduceOp reduceOp)
{
	static const char what[] = "HcommLocalReduceOnThread";
	struct hcomm_thread *th;
	struct hcomm_item it;
	HcclResult ret = hcomm_thread(what, thread, &th);

	if (!ret)
		ret = hcomm_item_reduce(what, NULL, th->dev, HCOMM_REDUCE, dst, src, count, (u32)dataType, (u32)reduceOp, &it);
	return ret || !count ? ret : hcomm_issue(what, th, &it, 1);
}

static HcclResult wait_for(const char *what, struct hcomm_thread *th, volatile u64 *word, u32 index, s64 timeout_ns)
{
	struct hcomm_item it = { .kind = HCOMM_WAIT, .index = index, .word = word, .timeout_ns = timeout_ns };

	return hcomm_issue(what, th, &it, 1);
}

static HcclResult check_index(const char *what, const struct hcomm_thread *th, u32 index)
{
	if (index < th->notifies)
		return HCCL_SUCCESS;
	return hccl_fail(HCCL_E_PARA, "EI0003", "%s: notify %u; the thread was made with %u, counted from 0", what, index,
			  th->notifies);
}

int32_t HcommThreadNotifyRecordOnThread(ThreadHandle thread, ThreadHandle dstThread, uint32_t dstNotifyIdx)
{
	static const char what[] = "HcommThreadNotifyRecordOnThread";
	struct hcomm_item it = { .kind = HCOMM_RECORD, .index = dstNotifyIdx };
	struct hcomm_thread *th, *to;
	HcclResult ret = hcomm_thread(what, thread, &th);

	if (!ret)
		ret = hcomm_thread(what, dstThread, &to);
	if (!ret)
		ret = check_index(what, to, dstNotifyIdx);
	if (ret)
		return ret;
	it.word = &to->word[dstNotifyIdx];
	if (to != th) {
		/* it may be freed before this one's stream gets there */
		it.to = to;
		npuemu_fetch_add(&to->refs, 1);
	}
	return hcomm_issue(what, th, &it, 1);
}

static HcclResult thread_wait(const char *what, ThreadHandle thread, u32 index, s64 timeout_ns)
{
	struct hcomm_thread *th;
	HcclResult ret = hcomm_thread(what, thread, &th);

	if (!ret)
		ret = check_index(what, th, index);
	return ret ? ret : wait_for(what, th, &th->word[index], index, timeout_ns);
}

int32_t HcommThreadNotifyWaitOnThread(ThreadHandle thread, uint32_t notifyIdx, uint32_t timeOut)
{
	return thread_wait("HcommThreadNotifyWaitOnThread", thread, notifyIdx, NS(timeOut));
}

int32_t HcommThreadNotifyWaitOnThreadWithDefaultTimeout(ThreadHandle thread, uint32_t notifyIdx)
{
	return thread_wait("HcommThreadNotifyWaitOnThreadWithDefaultTimeout", thread, notifyIdx, hcomm_default_timeout());
}

/* A notify of aclrtCreateNotify() on the thread's device, by its number. */
static HcclResult runtime_word(const char *what, struct hcomm_thread *th, u64 id, volatile u64 **word)
{
	struct npuemu_buf *buf = npuacl_notify_buf(th->dev);

	if (!buf || id >= npuemu_buf_bytes(buf) / sizeof(u64))
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: this process has no notify %" PRIu64 " on device %u", what, id,
				  th->dev->id);
	*word = (volatile u64 *)npuemu_buf_ptr(buf) + id;
	return HCCL_SUCCESS;
}

int32_t HcommAclrtNotifyRecordOnThread(ThreadHandle thread, uint64_t dstNotifyId)
{
	static const char what[] = "HcommAclrtNotifyRecordOnThread";
	struct hcomm_item it = { .kind = HCOMM_RECORD, .index = (u32)dstNotifyId };
	struct hcomm_thread *th;
	HcclResult ret = hcomm_thread(what, thread, &th);

	if (!ret)
		ret = runtime_word(what, th, dstNotifyId, &it.word);
	return ret ? ret : hcomm_issue(what, th, &it, 1);
}

int32_t HcommAclrtNotifyWaitOnThread(ThreadHandle thread, uint64_t notifyId, uint32_t timeOut)
{
	static const char what[] = "HcommAclrtNotifyWaitOnThread";
	struct hcomm_thread *th;
	volatile u64 *word;
	HcclResult ret = hcomm_thread(what, thread, &th);

	if (!ret)
		ret = runtime_word(what, th, notifyId, &word);
	return ret ? ret : wait_for(what, th, word, (u32)notifyId, NS(timeOut));
}

/* ---- Over a channel ------------------------------------------------------------------------ */

/* Bytes, and a notify after them; NULL: none. */
struct wish {
	enum hcomm_kind kind;
	bool nbi;
	void *dst;
	const void *src;
	u64 n;			/* bytes, or elements of a reduction */
	u32 type, op;
	const u32 *notify;
};

static bool reduces(enum hcomm_kind kind)
{
	return kind == HCOMM_WRITE_REDUCE || kind == HCOMM_READ_REDUCE;
}

/* Up to two items, which @n counts; all of them, or none. */
static HcclResult items(const char *what, struct hcomm_channel *ch, const struct wish *w, struct hcomm_item *it, u32 *n)
{
	HcclResult ret = HCCL_SUCCESS;

	*n = 0;
	if (w->n) {
		if (reduces(w->kind))
			ret = hcomm_item_reduce(what, ch, NULL, w->kind, w->dst, w->src, w->n, w->type, w->op, it);
		else
			ret = hcomm_item_data(what, ch, NULL, w->kind, w->dst, w->src, w->n, it);
		if (ret)
			return ret;
		it[(*n)++].nbi = w->nbi;
	}
	if (!w->notify)
		return HCCL_SUCCESS;
	ret = hcomm_item_record(what, ch, *w->notify, &it[*n]);
	if (ret) {
		hcomm_items_put(it, *n);
		return ret;
	}
	it[(*n)++].nbi = w->nbi;
	return HCCL_SUCCESS;
}

static HcclResult both(const char *what, ThreadHandle thread, ChannelHandle channel, struct hcomm_thread **th,
		       struct hcomm_channel **ch)
{
	HcclResult ret = hcomm_thread(what, thread, th);

	return ret ? ret : hcomm_channel(what, channel, ch);
}

static HcclResult go(const char *what, ThreadHandle thread, ChannelHandle channel, const struct wish *w)
{
	struct hcomm_channel *ch;
	struct hcomm_thread *th;
	struct hcomm_item it[2];
	HcclResult ret = both(what, thread, channel, &th, &ch);
	u32 n;

	if (!ret)
		ret = items(what, ch, w, it, &n);
	return ret ? ret : hcomm_issue(what, th, it, n);
}

int32_t HcommWriteOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src, uint64_t len)
{
	const struct wish w = { .kind = HCOMM_WRITE, .dst = dst, .src = src, .n = len };

	return go("HcommWriteOnThread", thread, channel, &w);
}

int32_t HcommWriteReduceOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src, uint64_t count,
				 HcommDataType dataType, HcommReduceOp reduceOp)
{
	const struct wish w = {
		.kind = HCOMM_WRITE_REDUCE, .dst = dst, .src = src, .n = count, .type = (u32)dataType, .op = (u32)reduceOp,
	};

	return go("HcommWriteReduceOnThread", thread, channel, &w);
}

int32_t HcommWriteWithNotifyOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src, uint64_t len,
				     uint32_t remoteNotifyIdx)
{
	const struct wish w = { .kind = HCOMM_WRITE, .dst = dst, .src = src, .n = len, .notify = &remoteNotifyIdx };

	return go("HcommWriteWithNotifyOnThread", thread, channel, &w);
}

int32_t HcommWriteReduceWithNotifyOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src,
					   uint64_t count, HcommDataType dataType, HcommReduceOp reduceOp,
					   uint32_t remoteNotifyIdx)
{
	const struct wish w = {
		.kind = HCOMM_WRITE_REDUCE, .dst = dst, .src = src, .n = count, .type = (u32)dataType, .op = (u32)reduceOp,
		.notify = &remoteNotifyIdx,
	};

	return go("HcommWriteReduceWithNotifyOnThread", thread, channel, &w);
}

int32_t HcommReadOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src, uint64_t len)
{
	const struct wish w = { .kind = HCOMM_READ, .dst = dst, .src = src, .n = len };

	return go("HcommReadOnThread", thread, channel, &w);
}

int32_t HcommReadReduceOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src, uint64_t count,
				HcommDataType dataType, HcommReduceOp reduceOp)
{
	const struct wish w = {
		.kind = HCOMM_READ_REDUCE, .dst = dst, .src = src, .n = count, .type = (u32)dataType, .op = (u32)reduceOp,
	};

	return go("HcommReadReduceOnThread", thread, channel, &w);
}

int32_t HcommWriteNbiOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src, uint64_t len)
{
	const struct wish w = { .kind = HCOMM_WRITE, .nbi = true, .dst = dst, .src = src, .n = len };

	return go("HcommWriteNbiOnThread", thread, channel, &w);
}

int32_t HcommWriteWithNotifyNbiOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src,
					uint64_t len, uint32_t remoteNotifyIdx)
{
	const struct wish w = {
		.kind = HCOMM_WRITE, .nbi = true, .dst = dst, .src = src, .n = len, .notify = &remoteNotifyIdx,
	};

	return go("HcommWriteWithNotifyNbiOnThread", thread, channel, &w);
}

int32_t HcommReadNbiOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src, uint64_t len)
{
	const struct wish w = { .kind = HCOMM_READ, .nbi = true, .dst = dst, .src = src, .n = len };

	return go("HcommReadNbiOnThread", thread, channel, &w);
}

int32_t HcommChannelNotifyRecordOnThread(ThreadHandle thread, ChannelHandle channel, uint32_t remoteNotifyIdx)
{
	const struct wish w = { .kind = HCOMM_WRITE, .notify = &remoteNotifyIdx };

	return go("HcommChannelNotifyRecordOnThread", thread, channel, &w);
}

/* ---- Waits and fences ------------------------------------------------------------------------- */

static HcclResult channel_wait(const char *what, ThreadHandle thread, ChannelHandle channel, u32 index, s64 timeout_ns)
{
	struct hcomm_channel *ch;
	struct hcomm_thread *th;
	struct hcomm_item it;
	HcclResult ret = both(what, thread, channel, &th, &ch);

	if (!ret)
		ret = hcomm_item_wait(what, ch, index, timeout_ns, &it);
	return ret ? ret : hcomm_issue(what, th, &it, 1);
}

int32_t HcommChannelNotifyWaitOnThread(ThreadHandle thread, ChannelHandle channel, uint32_t localNotifyIdx,
				       uint32_t timeOut)
{
	return channel_wait("HcommChannelNotifyWaitOnThread", thread, channel, localNotifyIdx, NS(timeOut));
}

int32_t HcommChannelNotifyWaitOnThreadWithDefaultTimeout(ThreadHandle thread, ChannelHandle channel,
							 uint32_t localNotifyIdx)
{
	return channel_wait("HcommChannelNotifyWaitOnThreadWithDefaultTimeout", thread, channel, localNotifyIdx,
			    hcomm_default_timeout());
}

static HcclResult drain(const char *what, ThreadHandle thread, ChannelHandle channel)
{
	struct hcomm_channel *ch;
	struct hcomm_thread *th;
	struct hcomm_item it;
	HcclResult ret = both(what, thread, channel, &th, &ch);

	if (ret)
		return ret;
	hcomm_item_drain(ch, &it);
	return hcomm_issue(what, th, &it, 1);
}

/* A fence waits, too: that is more than it promises. */
int32_t HcommChannelFenceOnThread(ThreadHandle thread, ChannelHandle channel)
{
	return drain("HcommChannelFenceOnThread", thread, channel);
}

int32_t HcommChannelDrainOnThread(ThreadHandle thread, ChannelHandle channel)
{
	return drain("HcommChannelDrainOnThread", thread, channel);
}

int32_t HcommFenceOnThread(ThreadHandle thread)
{
	static const char what[] = "HcommFenceOnThread";
	struct hcomm_thread *th;
	struct hcomm_item *it;
	HcclResult ret = hcomm_thread(what, thread, &th);
	u32 n;

	if (ret)
		return ret;
	it = hcomm_under_take(th, &n);
	ret = hcomm_issue(what, th, it, n);
	free(it);
	return ret;
}

/* ---- Several ------------------------------------------------------------------------------------- */

static HcclResult wish_of(const char *what, const HcommBatchTransferDesc *d, u32 i, struct wish *w)
{
	memset(w, 0, sizeof(*w));
	switch (d->transType) {
	case HCOMM_TRANSFER_TYPE_WRITE:
		*w = (struct wish){ .kind = HCOMM_WRITE, .dst = d->transferInfo.write.dst, .src = d->transferInfo.write.src,
				    .n = d->transferInfo.write.len };
		return HCCL_SUCCESS;
	case HCOMM_TRANSFER_TYPE_READ:
		*w = (struct wish){ .kind = HCOMM_READ, .dst = d->transferInfo.read.dst, .src = d->transferInfo.read.src,
				    .n = d->transferInfo.read.len };
		return HCCL_SUCCESS;
	case HCOMM_TRANSFER_TYPE_WRITE_REDUCE:
	case HCOMM_TRANSFER_TYPE_READ_REDUCE:
		*w = (struct wish){ .dst = d->transferInfo.reduce.dst, .src = d->transferInfo.reduce.src,
				    .n = d->transferInfo.reduce.count, .type = (u32)d->transferInfo.reduce.dataType,
				    .op = (u32)d->transferInfo.reduce.reduceOp };
		w->kind = d->transType == HCOMM_TRANSFER_TYPE_WRITE_REDUCE ? HCOMM_WRITE_REDUCE : HCOMM_READ_REDUCE;
		return HCCL_SUCCESS;
	case HCOMM_TRANSFER_TYPE_WRITE_WITH_NOTIFY:
		*w = (struct wish){ .kind = HCOMM_WRITE, .dst = d->transferInfo.writeWithNotify.dst,
				    .src = d->transferInfo.writeWithNotify.src, .n = d->transferInfo.writeWithNotify.len,
				    .notify = &d->transferInfo.writeWithNotify.notifyIdx };
		return HCCL_SUCCESS;
	case HCOMM_TRANSFER_TYPE_WRITE_REDUCE_WITH_NOTIFY:
		*w = (struct wish){ .kind = HCOMM_WRITE_REDUCE, .dst = d->transferInfo.writeReduceWithNotify.dst,
				    .src = d->transferInfo.writeReduceWithNotify.src,
				    .n = d->transferInfo.writeReduceWithNotify.count,
				    .type = (u32)d->transferInfo.writeReduceWithNotify.dataType,
				    .op = (u32)d->transferInfo.writeReduceWithNotify.reduceOp,
				    .notify = &d->transferInfo.writeReduceWithNotify.notifyIdx };
		return HCCL_SUCCESS;
	case HCOMM_TRANSFER_TYPE_NOTIFY_RECORD:
		*w = (struct wish){ .kind = HCOMM_WRITE, .notify = &d->transferInfo.notifyRecord.notifyIdx };
		return HCCL_SUCCESS;
	default:
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: entry %u: there is no transType %d", what, i, (int)d->transType);
	}
}

int32_t HcommBatchTransferOnThread(ThreadHandle thread, ChannelHandle channel, const HcommBatchTransferDesc *transferDescs,
				   uint32_t transferDescNum)
{
	static const char what[] = "HcommBatchTransferOnThread";
	struct hcomm_channel *ch;
	struct hcomm_thread *th;
	struct hcomm_item *it;
	struct wish w;
	HcclResult ret = both(what, thread, channel, &th, &ch);
	u32 i, n = 0, one;

	if (ret)
		return ret;
	if (!transferDescs)
		return hccl_null(what, "transferDescs");
	if (!transferDescNum)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: transferDescNum is 0", what);
	it = calloc(2 * (size_t)transferDescNum, sizeof(*it));
	if (!it)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	for (i = 0; i < transferDescNum && !ret; i++) {
		ret = wish_of(what, &transferDescs[i], i, &w);
		if (!ret)
			ret = items(what, ch, &w, &it[n], &one);
		n += ret ? 0 : one;
	}
	if (ret)
		hcomm_items_put(it, n);
	else
		ret = hcomm_issue(what, th, it, n);
	free(it);
	return ret;
}
