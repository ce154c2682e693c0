// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * SEND: the sender's turn puts the message into the receiver's buffer itself.
 *
 * For that it takes, by trying only, the receive queue and the receiver's inbox:
 * the caches and the scratch that stand for a queue of the receiver's.  Who
 * cannot have them comes back later, so a context may send to itself, and two
 * to each other.
 *
 * A receive buffer in pageable memory is filled over several turns.  Between
 * them both are given back, but ctx->inbox_who keeps other messages out.  A
 * sender that gives up writes GIVEN_UP there, without owning anything, and the
 * next one cleans up.
 */
#include "npuemu_pager.h"

#define SEND_MAX	(16u << 20)	/* bytes of one message */
#define RNR_NS		1000000u	/* between two tries */
#define GIVEN_UP	1ull		/* in ctx->inbox_who: nobody goes on with it */

static enum npuemu_step fail(struct npuemu_jfs *q, struct npuemu_wqe *w, u32 status,
			     const char *why)
{
	q->chip->ops->explain(q, "WQE at block %u: SEND: %s", w->first, why);
	w->status = status;
	return NPUEMU_STEP_DONE;
}

/* Unlike any other message under way: slot, queue, first block. */
static u64 name_of(const struct npuemu_jfs *q, const struct npuemu_wqe *w)
{
	return 1ull << 63 | (u64)q->chip->slot << 52 | (u64)(q->id & 0xfffff) << 32 | w->first;
}

/* ---- The sender's bytes -------------------------------------------------------------- */

/* After a check that was good: is it pageable? */
static bool is_pageable(const struct npuemu_jfs *q, const struct npuemu_sge *sge)
{
	const struct npuemu_local *l = q->local[0];

	if (!npuemu_local_hit(l, sge->va, sge->len))
		l = q->local[1];
	return l->pageable;
}

static bool add_piece(struct npuemu_message *m, const u8 *ptr, u64 len)
{
	if (m->pieces == NPUEMU_MAX_PIECES)
		return false;
	m->piece[m->pieces] = ptr;
	m->piece_len[m->pieces] = (u32)len;
	m->pieces++;
	return true;
}

/* What must be fetched first: its number of ranges, 0 with w->status or not. */
static u32 find_pageable(struct npuemu_jfs *q, struct npuemu_wqe *w, struct npuemu_range *r)
{
	u64 sum = 0;
	u32 i, n = 0;

	for (i = 0; i < w->nsge; i++) {
		const struct npuemu_sge *sge = &w->sge[i];

		if (!sge->len)
			continue;
		if (!npuemu_local_check(q, w, sge->va, sge->len, false))
			return 0;
		if (!is_pageable(q, sge))
			continue;
		r[n].va = sge->va;
		r[n].len = sge->len;
		sum += sge->len;
		n++;
	}
	if (sum <= NPUEMU_BOUNCE_BYTES)
		return n;
	fail(q, w, NPUEMU_ST_LOC_LEN, "more than 64 KiB lie in memory that is not pinned");
	return 0;
}

/* One SGE that is not pageable. */
static bool add_sge(struct npuemu_jfs *q, struct npuemu_wqe *w, const struct npuemu_sge *sge,
		    struct npuemu_message *m)
{
	struct npuemu_share *share;
	u64 at, len;
	u8 *ptr;

	for (at = 0; at < sge->len; at += len) {
		len = sge->len - at;
		ptr = npuemu_local_at(q, w, sge->va + at, &len, false, &share);
		if (!ptr)
			return false;
		if (!add_piece(m, ptr, len)) {
			fail(q, w, NPUEMU_ST_LOC_LEN, "too many pieces");
			return false;
		}
	}
	return true;
}

/* Pointers to all of it, good for this turn; false: see npuemu_no_place(). */
static bool gather(struct npuemu_jfs *q, struct npuemu_wqe *w, struct npuemu_message *m)
{
	struct npuemu_range r[NPUEMU_MAX_SGE];
	const u8 *paged = NULL;
	u32 i, n, next = 0;

	if (!w->sge)
		return !w->len || add_piece(m, (u8 *)w->bb + w->op->control, w->len);
	n = find_pageable(q, w, r);
	if (w->status)
		return false;
	if (n) {
		paged = npuemu_pager_gather(q, w, r, n);
		if (!paged)
			return false;
	}
	for (i = 0; i < w->nsge; i++) {
		const struct npuemu_sge *sge = &w->sge[i];

		if (!sge->len)
			continue;
		/* the same range means the same place */
		if (next < n && sge->va == r[next].va && sge->len == r[next].len) {
			add_piece(m, paged, sge->len);
			paged += sge->len;
			next++;
		} else if (!add_sge(q, w, sge, m)) {
			return false;
		}
	}
	return true;
}

static void describe(const struct npuemu_jfs *q, const struct npuemu_wqe *w,
		     struct npuemu_message *m)
{
	const struct npuemu_sqe *s = (const void *)w->bb;
	u32 opcode = s->dw1 >> NPUEMU_SQE_OPCODE_SHIFT & 0xff;

	m->done.opcode = opcode & 7;
	m->done.rmt_idx = q->id;
	npuemu_eid(container_of(q->chip, struct npuemu_ctx, chip), q->device, m->done.rmt_eid);
	if (s->dw0 & NPUEMU_SQE_RMT_TYPE_MASK)
		m->done.jetty_id = s->dw3 & NPUEMU_SQE_RMT_ID_MASK;
	if (opcode == NPUEMU_OP_SEND_IMM)
		m->done.imm = s->rmt_addr;
	m->token_en = npuemu_send_token(s, &m->token_value);
}

/* ---- The receiver ---------------------------------------------------------------------- */

void npuemu_inbox_init(struct npuemu_ctx *ctx)
{
	struct npuemu_jfs *j = &ctx->inbox;

	j->chip = &ctx->chip;
	j->owner = &ctx->inbox_owner;
	j->cnt = &ctx->inbox_cnt;
	j->cause = ctx->inbox_cause;
	j->epoch = READ_ONCE(ctx->chip.epoch);
	npuemu_places_drop(j);
}

/*
 * The queue a message is for: named itself, or the jetty's.  None for who has not
 * its token, here already: he shall neither keep others waiting nor wake anybody,
 * nor learn from what takes how long that there is such a queue.
 */
static struct npuemu_rq *target_of(struct npuemu_ctx *to, const struct npuemu_wqe *w)
{
	const struct npuemu_sqe *s = (const void *)w->bb;
	u32 id = s->dw3 & NPUEMU_SQE_RMT_ID_MASK, index = id & (NPUEMU_CTX_QUEUES - 1);
	struct npuemu_queue *jetty;
	struct npuemu_rq *rq;
	bool token_en;
	u32 token;

	if (s->dw0 & NPUEMU_SQE_RMT_TYPE_MASK) {
		jetty = xa_load(&to->queues, index);
		rq = jetty && jetty->jfs.id == id ? jetty->rq : NULL;
	} else {
		rq = xa_load(&to->rqs, index);
		if (rq && rq->id != id)
			rq = NULL;
	}
	token_en = npuemu_send_token(s, &token);
	return rq && npuemu_jfr_admits(&rq->jfr, token_en, token) ? rq : NULL;
}

/* Owner of the inbox only: is it for this message? */
static bool inbox_enter(struct npuemu_ctx *to, u64 name)
{
	struct npuemu_jfs *j = &to->inbox;
	u64 who = READ_ONCE(to->inbox_who);
	u32 epoch;

	if (who == GIVEN_UP) {
		npuemu_op_page_cancel(j);
		who = 0;
	}
	if (who && who != name)
		return false;
	if (!who)
		to->inbox_at = 0;
	WRITE_ONCE(to->inbox_who, name);
	/* what was taken away before it moved must not be used after */
	epoch = smp_load_acquire(&to->chip.epoch);
	if (j->epoch != epoch) {
		npuemu_places_drop(j);
		j->epoch = epoch;
	}
	return true;
}

static bool take(struct npuemu_ctx *to, struct npuemu_rq *rq, u64 name)
{
	if (!npuemu_owner_try(&rq->owner))
		return false;
	if (!npuemu_owner_try(&to->inbox_owner))
		goto no_inbox;
	if (inbox_enter(to, name))
		return true;
	npuemu_owner_put(&to->inbox_owner);
no_inbox:
	npuemu_owner_put(&rq->owner);
	return false;
}

static void give_back(struct npuemu_ctx *to, struct npuemu_rq *rq, bool answered)
{
	struct npuemu_jfc *jfc = rq->jfr.jfc;

	if (answered)
		WRITE_ONCE(to->inbox_who, 0);
	/* also wakes who waits for what was written */
	to->inbox.jfc = NULL;
	to->inbox.completed = false;
	npuemu_jfs_release(&to->inbox);
	npuemu_owner_put(&rq->owner);	/* a full fence: the CQE before the look */
	if (answered && READ_ONCE(jfc->waiters))
		to->chip.ops->wake_cq(&to->chip, jfc);
}

/* ---- The operation --------------------------------------------------------------------- */

/* In a turn or not; owns only the sender's queue. */
void npuemu_op_send_cancel(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	int idx = srcu_read_lock(&npuemu_turns);
	struct npuemu_ctx *to = npuemu_peer_ctx(&w->bb[2]);

	w->token = 0;
	/* while it says our name, nobody else changes it */
	if (to && READ_ONCE(to->inbox_who) == name_of(q, w))
		WRITE_ONCE(to->inbox_who, GIVEN_UP);
	srcu_read_unlock(&npuemu_turns, idx);
}

static enum npuemu_step give_up(struct npuemu_jfs *q, struct npuemu_wqe *w, u32 status,
				const char *why)
{
	if (w->token)
		npuemu_op_send_cancel(q, w);
	return fail(q, w, status, why);
}

static enum npuemu_step answered(struct npuemu_jfs *q, struct npuemu_wqe *w, u32 status)
{
	w->token = 0;
	w->deadline = 0;
	if (status != NPUEMU_ST_RNR_RETRY_CNT_EXC) {
		if (status)
			return fail(q, w, status, "refused by the receiver");
		w->done = w->len;
		q->turn_bytes -= min(w->len, q->turn_bytes);
		return NPUEMU_STEP_DONE;
	}
	WRITE_ONCE(q->cnt->rnr, q->cnt->rnr + 1);
	if (q->rnr_retry != 7 && w->retries >= q->rnr_retry)
		return fail(q, w, status, "the receiver has no receive buffer posted");
	w->retries++;
	w->retry_at = q->chip->ops->now() + RNR_NS;
	return NPUEMU_STEP_WAIT;
}

/* Once all of the message can be pointed to. */
static enum npuemu_step deliver(struct npuemu_jfs *q, struct npuemu_wqe *w,
				struct npuemu_ctx *to, struct npuemu_rq *rq,
				struct npuemu_message *m)
{
	u64 now = q->chip->ops->now();
	u32 status;

	/* a try without an answer ends at this time; "not ready" is an answer */
	if (!w->deadline)
		w->deadline = now + q->ack_timeout_ns;
	if (!take(to, rq, name_of(q, w))) {
		if (now < w->deadline)
			return NPUEMU_STEP_WAIT;
		return give_up(q, w, NPUEMU_ST_ACK_TIMEOUT, "the receiver takes no more messages");
	}
	describe(q, w, m);
	m->at = to->inbox_at;
	to->inbox_worker = container_of(q, struct npuemu_queue, jfs)->worker;
	status = npuemu_jfr_deliver(&rq->jfr, &to->inbox, m);
	to->inbox_at = m->at;
	give_back(to, rq, status != NPUEMU_DELIVER_AGAIN);
	if (status != NPUEMU_DELIVER_AGAIN)
		return answered(q, w, status);
	w->token = 1;
	if (now < w->deadline)
		return NPUEMU_STEP_WAIT;
	return give_up(q, w, NPUEMU_ST_ACK_TIMEOUT, "no answer within the queue's ack_timeout_ms");
}

enum npuemu_step npuemu_op_send(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	struct npuemu_message m = { .pieces = 0 };
	struct npuemu_ctx *to;
	struct npuemu_rq *rq;

	if (w->retry_at && q->chip->ops->now() < w->retry_at)
		return NPUEMU_STEP_WAIT;
	if (w->len > SEND_MAX)
		return fail(q, w, NPUEMU_ST_LOC_LEN, "message longer than 16 MiB");
	to = npuemu_peer_ctx(&w->bb[2]);
	if (!to) {
		w->token = 0;
		return fail(q, w, NPUEMU_ST_ACK_TIMEOUT, "nobody answers at this endpoint");
	}
	rq = target_of(to, w);
	if (!rq)
		return give_up(q, w, NPUEMU_ST_REM_ACCESS_ABORT, "refused by the receiver");
	if (gather(q, w, &m))
		return deliver(q, w, to, rq, &m);
	if (w->status && w->token)
		npuemu_op_send_cancel(q, w);
	return npuemu_no_place(w);
}
