// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The receiving side of SEND: take a receive buffer, scatter the message into
 * it, complete on the receiver's CQ, answer the sender.
 */
#include "engine.h"
#include "copy.h"

/* Copy the receive WQE out of the ring; total bytes it has room for. */
static u64 fetch_rqe(struct npuemu_jfr *r, struct npuemu_sge *sge)
{
	const u64 *src = (const u64 *)(r->ring + (size_t)(r->ci & r->mask) * r->max_sge);
	u64 total = 0;
	u32 i;

	for (i = 0; i < r->max_sge; i++) {
		u64 w0 = READ_ONCE(src[i * 2]);

		sge[i].len = (u32)w0;
		sge[i].token_id = (u32)(w0 >> 32);
		sge[i].va = READ_ONCE(src[i * 2 + 1]);
		total += sge[i].len;
	}
	return total;
}

/* All of the message over the SGEs, in order; false with @w's status. */
static bool scatter(struct npuemu_jfr *r, struct npuemu_jfs *q, struct npuemu_wqe *w,
		    const struct npuemu_sge *sge, const struct npuemu_message *m)
{
	u32 i = 0, p;
	u64 at = 0, from;

	for (p = 0; p < m->pieces; p++) {
		for (from = 0; from < m->piece_len[p];) {
			struct npuemu_share *share;
			u64 n = m->piece_len[p] - from;
			u8 *dst;

			while (i < r->max_sge && at == sge[i].len) {
				i++;
				at = 0;
			}
			if (n > sge[i].len - at)
				n = sge[i].len - at;
			dst = npuemu_local_at(q, w, sge[i].va + at, n, true, &share);
			if (!dst)
				return false;
			npuemu_copy(dst, m->piece[p] + from, n, false);
			npuemu_touch(q, share);
			at += n;
			from += n;
		}
	}
	return true;
}

u32 npuemu_jfr_deliver(struct npuemu_jfr *r, struct npuemu_jfs *q, struct npuemu_message *m)
{
	struct npuemu_sge sge[8] = { { 0, 0, 0 } };
	struct npuemu_wqe *w = &q->cur;	/* the lender's scratch */
	u32 pi = smp_load_acquire(r->pi_rec), i, answer = NPUEMU_ST_SUCCESS;
	u64 need = 0, have;

	if (pi == r->ci || pi - r->ci > r->mask + 1 || !npuemu_jfc_room(r->jfc, false))
		return NPUEMU_ST_RNR_RETRY_CNT_EXC;
	have = fetch_rqe(r, sge);
	for (i = 0; i < m->pieces; i++)
		need += m->piece_len[i];
	m->done.status = NPUEMU_ST_SUCCESS;
	m->done.bytes = (u32)need;
	w->status = 0;
	w->first = r->ci;
	if (need > have) {
		m->done.status = NPUEMU_ST_LOC_LEN;
		m->done.bytes = 0;
		answer = NPUEMU_ST_REM_RESP_LEN;
	} else if (!scatter(r, q, w, sge, m)) {
		m->done.status = w->status;
		m->done.bytes = 0;
		answer = NPUEMU_ST_REM_ACCESS_ABORT;
	}
	/* there was room, and only this thread writes receive completions of r */
	if (!npuemu_complete_recv(r, r->ci, &m->done))
		return NPUEMU_ST_RNR_RETRY_CNT_EXC;
	return answer;
}
