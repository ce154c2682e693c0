// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The receiving side of SEND: take a receive buffer, scatter the message into
 * it, complete on the receiver's CQ, answer the sender.
 */
#include "engine.h"
#include "copy.h"

#define STEP_BYTES	(64u << 10)	/* copied before others may have the processor */

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

/*
 * The message from m->at on over the SGEs, in order.  STEP_WAIT: a pageable one
 * waits for the host; STEP_DONE: all of it, or @w's status says why not.
 */
static enum npuemu_step scatter(struct npuemu_jfr *r, struct npuemu_jfs *q,
				struct npuemu_wqe *w, const struct npuemu_sge *sge,
				struct npuemu_message *m)
{
	u32 i = 0, p;
	u64 at = m->at, from = m->at;

	for (p = 0; p < m->pieces && from >= m->piece_len[p]; p++)
		from -= m->piece_len[p];
	for (; p < m->pieces; p++, from = 0) {
		while (from < m->piece_len[p]) {
			struct npuemu_share *share;
			u64 n = m->piece_len[p] - from;
			u8 *dst;

			while (i < r->max_sge && at >= sge[i].len)
				at -= sge[i++].len;
			if (n > sge[i].len - at)
				n = sge[i].len - at;
			/* no word is cut: pointers are addresses modulo 16 */
			if (n > STEP_BYTES)
				n = STEP_BYTES - ((sge[i].va + at) & 15);
			dst = npuemu_local_at(q, w, sge[i].va + at, &n, true, &share);
			if (!dst)
				return npuemu_no_place(w);
			npuemu_copy(dst, m->piece[p] + from, n, false);
			npuemu_wrote(w, sge[i].va + at, n);
			npuemu_touch(q, share);
			m->at += n;
			at += n;
			from += n;
			npuemu_breathe();
		}
	}
	return NPUEMU_STEP_DONE;
}

/* What was written last to pageable memory goes there. */
static bool written_out(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	if (likely(!w->page_dirty))
		return true;
	if (q->chip->ops->page_out(q, w) == NPUEMU_STEP_WAIT)
		return false;
	w->page_dirty = false;
	return true;
}

/* All of it, written out: else as scatter(). */
static enum npuemu_step place(struct npuemu_jfr *r, struct npuemu_jfs *q, struct npuemu_wqe *w,
			      const struct npuemu_sge *sge, struct npuemu_message *m)
{
	enum npuemu_step step;

	for (;;) {
		if (!written_out(q, w))
			return NPUEMU_STEP_WAIT;
		if (w->status)
			return NPUEMU_STEP_DONE;
		step = scatter(r, q, w, sge, m);
		if (!w->page_dirty)
			return step;
	}
}

/* The lender's scratch, as if it were a WQE. */
static struct npuemu_wqe *scratch(struct npuemu_jfr *r, struct npuemu_jfs *q,
				  const struct npuemu_message *m)
{
	struct npuemu_wqe *w = &q->cur;

	npuemu_once_drop(q);
	w->status = 0;
	w->first = r->ci;
	w->elem = 0;
	w->paging = false;
	if (!m->at)
		w->page_dirty = false;
	return w;
}

u32 npuemu_jfr_deliver(struct npuemu_jfr *r, struct npuemu_jfs *q, struct npuemu_message *m)
{
	struct npuemu_sge sge[8] = { { 0, 0, 0 } };
	struct npuemu_wqe *w;
	/* the buffers were posted before the index */
	u32 pi = smp_load_acquire(r->pi_rec), i, answer = NPUEMU_ST_SUCCESS;
	u64 need = 0, have;

	/* first of all: a stranger learns neither that there is a buffer nor that there is none */
	if (!npuemu_jfr_admits(r, m->token_en, m->token_value))
		return NPUEMU_ST_REM_ACCESS_ABORT;
	/* one that was begun had all this */
	if (!m->at && (pi == r->ci || pi - r->ci > r->mask + 1 ||
		       !npuemu_jfc_room(r->jfc, false)))
		return NPUEMU_ST_RNR_RETRY_CNT_EXC;
	have = fetch_rqe(r, sge);
	for (i = 0; i < m->pieces; i++)
		need += m->piece_len[i];
	m->done.status = NPUEMU_ST_SUCCESS;
	m->done.bytes = (u32)need;
	w = scratch(r, q, m);
	if (need > have) {
		m->done.status = NPUEMU_ST_LOC_LEN;
		m->done.bytes = 0;
		answer = NPUEMU_ST_REM_RESP_LEN;
	} else if (place(r, q, w, sge, m) == NPUEMU_STEP_WAIT) {
		return NPUEMU_DELIVER_AGAIN;
	} else if (w->status) {
		m->done.status = w->status;
		m->done.bytes = 0;
		answer = NPUEMU_ST_REM_ACCESS_ABORT;
	}
	/* there was room, and only this thread writes receive completions of r */
	if (!npuemu_complete_recv(r, r->ci, &m->done))
		return NPUEMU_ST_RNR_RETRY_CNT_EXC;
	return answer;
}
