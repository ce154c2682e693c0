// SPDX-License-Identifier: MIT
/*
 * The queue path: each channel has a UDMA queue of its own, and its peer's memory is
 * reached by segment and token.  Every WQE has a completion; they come in order, so that
 * a count tells what is over.  An error breaks the channel for good.
 */
#include <inttypes.h>
#include <stdio.h>
#include "transport.h"

#define PIECE		(1u << 30)	/* of one WQE */

HcclResult hcomm_queue_make(const char *what, struct hcomm_channel *ch, u32 depth)
{
	struct npuemu_queue_attr attr = {
		.size = sizeof(attr), .device = ch->ep->dev->phys, .type = NPUEMU_QUEUE_UDMA, .depth = NPUEMU_SQ_MIN_BB,
	};
	int err;

	if (depth > NPUEMU_SQ_MAX_BB)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: ubAttr.sqDepth is %u; a queue has at most %u blocks", what, depth,
				  NPUEMU_SQ_MAX_BB);
	while (attr.depth < depth)
		attr.depth *= 2;
	err = npuemu_queue_create(npuacl.board, &attr, &ch->q);
	if (err == -EOPNOTSUPP)
		return HCCL_SUCCESS;	/* this end has none: both ends see that */
	if (err)
		return hccl_fail(HCCL_E_UNAVAIL, "EI0003", "%s: no UDMA queue on device %u: %s", what, ch->ep->dev->id,
				  npuemu_errmsg());
	ch->cq = npuemu_queue_cq(ch->q);
	return HCCL_SUCCESS;
}

void hcomm_queue_free(struct hcomm_channel *ch)
{
	if (ch->q)
		npuemu_queue_destroy(ch->q);
	ch->q = NULL;
	ch->cq = NULL;
}

u32 hcomm_queue_head(struct hcomm_channel *ch)
{
	return npuemu_last_wqe(ch->q) + 1;
}

/* ---- Posting ------------------------------------------------------------------------------ */

static int post_record(struct hcomm_channel *ch, const struct hcomm_item *it)
{
	const struct npuemu_seg_info *seg = &ch->peer->pub->seg;
	struct npuemu_target t = npuemu_target_of(seg);
	u64 at = seg->va + (ch->other_notify_at + it->index) * sizeof(u64);

	return npuemu_post_write_notify(ch->q, ch->own->pub->word, 0, &t, at, &t, at, 1, NPUEMU_STRONG | NPUEMU_SQE_CQE);
}

static int post_piece(struct hcomm_channel *ch, const struct hcomm_item *it, u64 from, u32 len)
{
	bool write = it->kind == HCOMM_WRITE || it->kind == HCOMM_WRITE_REDUCE;
	const void *local = (const void *)(uintptr_t)((write ? it->src : it->dst) + from);
	bool reduces = it->kind == HCOMM_WRITE_REDUCE || it->kind == HCOMM_READ_REDUCE;
	u32 flags = NPUEMU_SQE_CQE | (it->nbi ? NPUEMU_RELAXED : NPUEMU_STRONG) | (reduces ? NPUEMU_SQE_UDF : 0);
	u32 dw9 = reduces ? npuemu_reduce_dw9((enum npuemu_reduce_op)(it->code >> 4), (enum npuemu_dtype)(it->code & 0xf)) : 0;

	return npuemu_post_rma(ch->q, write ? NPUEMU_OP_WRITE : NPUEMU_OP_READ, local, len, &it->spot.target,
			       it->spot.remote + from, dw9, flags);
}

bool hcomm_queue_post(struct hcomm_channel *ch, const struct hcomm_item *it, u64 *piece)
{
	u32 len;

	if (it->kind == HCOMM_RECORD)
		return !post_record(ch, it);
	while (*piece < it->len) {
		len = it->len - *piece < PIECE ? (u32)(it->len - *piece) : PIECE;
		if (post_piece(ch, it, *piece, len))
			return false;
		*piece += len;
	}
	return true;
}

void hcomm_queue_ring(struct hcomm_channel *ch)
{
	if (npuemu_doorbell(ch->q))
		hcomm_channel_break(ch, HCCL_E_DRV, "its queue: %s", npuemu_errmsg());
}

/* ---- Completions ---------------------------------------------------------------------------- */

static void failed(struct hcomm_channel *ch, const struct npuemu_wc *wc)
{
	struct npuemu_queue_stat stat = { .size = sizeof(stat) };
	char text[96];

	if (npuemu_queue_query(ch->q, &stat))
		stat.cause[0] = 0;
	hcomm_channel_text(ch, text, sizeof(text));
	hcomm_channel_break(ch, HCCL_E_REMOTE, "%s: %s; %s", text, npuemu_status_str(wc->status), stat.cause);
}

static int take(struct hcomm_channel *ch)
{
	struct npuemu_wc wc[16];
	int n = npuemu_poll(ch->cq, wc, ARRAY_SIZE(wc)), i;

	for (i = 0; i < n; i++) {
		if (wc[i].flags & NPUEMU_WC_FLUSH_DONE)
			continue;
		if (wc[i].status != NPUEMU_ST_SUCCESS)
			failed(ch, &wc[i]);
		ch->done = wc[i].wqe + 1;
	}
	if (n < 0)
		hcomm_channel_break(ch, HCCL_E_DRV, "its queue: %s", npuemu_errmsg());
	return n;
}

bool hcomm_queue_over(struct hcomm_channel *ch, u32 upto, s64 deadline)
{
	int n, err;

	for (;;) {
		n = take(ch);
		if ((s32)(ch->done - upto) >= 0 || READ_ONCE(ch->broken))
			return true;
		if (n)
			continue;
		err = npuemu_wait(ch->cq, deadline);
		if (err == -ETIMEDOUT)
			return false;
		if (err)
			hcomm_channel_break(ch, HCCL_E_DRV, "its queue: %s", npuemu_errmsg());
	}
}
