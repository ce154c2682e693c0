// SPDX-License-Identifier: MIT
/*
 * Operations that the caller issues itself, on no thread.  Mapped, the bytes have moved
 * when the call returns; over a queue they are under way.
 */
#include <stdio.h>
#include "transport.h"

#define SLICE_NS	HCOMM_LOOK_NS

static HcclResult broken(const char *what, struct hcomm_channel *ch)
{
	return hccl_fail((HcclResult)ch->broken, "EI0006", "%s: %s", what, ch->why);
}

static HcclResult by_mapping(const char *what, struct hcomm_channel *ch, struct hcomm_item *it, u32 n)
{
	char text[256], why[256];
	HcclResult bad;
	u32 done;

	for (done = 0; done < n;) {
		done += hcomm_mapped_run(ch->ep->dev, it + done, n - done, &bad, why, sizeof(why));
		if (!bad)
			continue;
		hcomm_item_text(&it[done], text, sizeof(text));
		return hccl_fail(bad, "EI0006", "%s: %s: %s", what, text, why);
	}
	return HCCL_SUCCESS;
}

static HcclResult by_queue(const char *what, struct hcomm_channel *ch, struct hcomm_item *it, u32 n)
{
	u64 piece = 0;
	u32 i = 0;

	pthread_mutex_lock(&ch->lock);
	while (i < n && !READ_ONCE(ch->broken)) {
		if (hcomm_queue_post(ch, &it[i], &piece)) {
			i++;
			piece = 0;
			continue;
		}
		/* full: what is over makes room */
		hcomm_queue_ring(ch);
		hcomm_queue_over(ch, ch->done + 1, npuemu_now_ns() + SLICE_NS);
	}
	hcomm_queue_ring(ch);
	pthread_mutex_unlock(&ch->lock);
	return READ_ONCE(ch->broken) ? broken(what, ch) : HCCL_SUCCESS;
}

/* Takes the references. */
static HcclResult now(const char *what, struct hcomm_channel *ch, struct hcomm_item *it, u32 n)
{
	HcclResult ret = HCCL_SUCCESS;

	if (n)
		ret = ch->path == HCOMM_QUEUE ? by_queue(what, ch, it, n) : by_mapping(what, ch, it, n);
	hcomm_items_put(it, n);
	return ret;
}

/* ---- Public --------------------------------------------------------------------------------- */

static HcclResult move(const char *what, ChannelHandle channel, enum hcomm_kind kind, void *dst, const void *src, u64 len,
		       const u32 *notify)
{
	struct hcomm_item it[2];
	struct hcomm_channel *ch;
	HcclResult ret = hcomm_channel(what, channel, &ch);
	u32 n = 0;

	if (!ret && len) {
		ret = hcomm_item_data(what, ch, NULL, kind, dst, src, len, &it[0]);
		if (!ret)
			it[n++].nbi = true;
	}
	if (!ret && notify) {
		ret = hcomm_item_record(what, ch, *notify, &it[n]);
		n += !ret;
	}
	if (ret)
		hcomm_items_put(it, n);
	return ret ? ret : now(what, ch, it, n);
}

int32_t HcommWriteNbi(ChannelHandle channel, void *dst, const void *src, uint64_t len)
{
	return move("HcommWriteNbi", channel, HCOMM_WRITE, dst, src, len, NULL);
}

int32_t HcommWriteWithNotifyNbi(ChannelHandle channel, void *dst, const void *src, uint64_t len, uint32_t remoteNotifyIdx)
{
	return move("HcommWriteWithNotifyNbi", channel, HCOMM_WRITE, dst, src, len, &remoteNotifyIdx);
}

int32_t HcommReadNbi(ChannelHandle channel, void *dst, const void *src, uint64_t len)
{
	return move("HcommReadNbi", channel, HCOMM_READ, dst, src, len, NULL);
}

int32_t HcommChannelNotifyRecord(ChannelHandle channel, uint32_t remoteNotifyIdx)
{
	return move("HcommChannelNotifyRecord", channel, HCOMM_WRITE, NULL, NULL, 0, &remoteNotifyIdx);
}

int32_t HcommChannelFence(ChannelHandle channel)
{
	static const char what[] = "HcommChannelFence";
	struct hcomm_channel *ch;
	HcclResult ret = hcomm_channel(what, channel, &ch);
	bool over = false;
	u32 upto;

	if (ret || ch->path == HCOMM_MAPPED)
		return ret;
	pthread_mutex_lock(&ch->lock);
	upto = hcomm_queue_head(ch);
	pthread_mutex_unlock(&ch->lock);
	while (!over) {
		pthread_mutex_lock(&ch->lock);
		over = hcomm_queue_over(ch, upto, npuemu_now_ns() + 1000000);
		pthread_mutex_unlock(&ch->lock);
	}
	return READ_ONCE(ch->broken) ? broken(what, ch) : HCCL_SUCCESS;
}

/* Until the word is there, the time is over or the other end is not. */
static HcclResult wait_for(const char *what, struct hcomm_channel *ch, const struct hcomm_item *it)
{
	s64 begin = npuemu_now_ns(), report = begin + npuacl_report_ns(), now, until;
	char text[256];

	while (!hcomm_take(it->word)) {
		now = npuemu_now_ns();
		hcomm_item_text(it, text, sizeof(text));
		if (it->timeout_ns && now - begin >= it->timeout_ns)
			return hccl_fail(HCCL_E_TIMEOUT, "EI0002", "%s: %s: nothing came for %.3f s", what, text,
					  (double)it->timeout_ns / 1e9);
		if (!hcomm_channel_whole(ch))
			return hcomm_take(it->word) ? HCCL_SUCCESS : broken(what, ch);
		if (now >= report) {
			npuemu_log(NPUEMU_LOG_WARN, "%s: %s: for %.0f s", what, text, (double)(now - begin) / 1e9);
			report = now + 60000000000ll;
		}
		until = now + SLICE_NS;
		if (it->timeout_ns && until > begin + it->timeout_ns)
			until = begin + it->timeout_ns;
		npuemu_wait_word(npuacl.board, (const volatile u64 *)it->word, NPUEMU_CMP_NE, 0, until);
	}
	return HCCL_SUCCESS;
}

int32_t HcommChannelNotifyWait(ChannelHandle channel, uint32_t localNotifyIdx, uint32_t timeOut)
{
	static const char what[] = "HcommChannelNotifyWait";
	struct hcomm_channel *ch;
	struct hcomm_item it;
	HcclResult ret = hcomm_channel(what, channel, &ch);

	if (!ret)
		ret = hcomm_item_wait(what, ch, localNotifyIdx, (s64)timeOut * 1000000000, &it);
	if (ret)
		return ret;
	ret = wait_for(what, ch, &it);
	hcomm_items_put(&it, 1);
	return ret;
}
