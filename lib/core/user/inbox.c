// SPDX-License-Identifier: MIT
/*
 * SEND between processes.  The sender puts a message into its own small ring
 * in the receiver's slot; whoever runs the receiver's inbox matches it with a
 * receive buffer, copies, completes, and answers in place.  The sender's queue
 * waits for the answer, for its time-out, or for the receiver's death.
 */
#include "user.h"

#define SEND_MAX	(16u << 20)	/* bytes of one message */
#define RNR_NS		1000000u	/* between two tries */

/* token: 1 + entry, slot of the receiver << 8 */
static u64 token_of(u32 slot, u32 entry)
{
	return (u64)slot << 8 | (entry + 1);
}

static struct inbox_entry *entry_of(struct user *u, u64 token)
{
	return &slot_inbox(u, (u32)(token >> 8), u->slot_index)[(token & 0xff) - 1];
}

static enum npuemu_step fail(struct npuemu_jfs *q, struct npuemu_wqe *w, u32 status,
			     const char *why)
{
	user_explain(q, "WQE at block %u: SEND: %s", w->first, why);
	w->status = status;
	return NPUEMU_STEP_DONE;
}

/* An answer to a process that had this slot before us: nobody else frees it. */
static bool orphan(struct user *u, struct inbox_entry *e)
{
	return READ_ONCE(e->sender_life) != u->life &&
	       npuemu_cas(&e->state, ENTRY_DONE, ENTRY_FREE);
}

/* One of our entries there that is free; ~0: all busy. */
static u32 entry_take(struct user *u, struct user_peer *p)
{
	struct inbox_entry *ring = slot_inbox(u, p->slot, u->slot_index);
	u32 i;

	for (i = 0; i < INBOX_ENTRIES; i++) {
		/* given up on while the receiver had it: ours again once it let go */
		if (READ_ONCE(p->inbox_lost) >> i & 1 && READ_ONCE(ring[i].state) == ENTRY_FREE &&
		    npuemu_fetch_and(&p->inbox_lost, ~(1u << i)) >> i & 1)
			npuemu_fetch_and(&p->inbox_used, ~(1u << i));
		if (READ_ONCE(p->inbox_used) >> i & 1)
			continue;
		if (npuemu_fetch_or(&p->inbox_used, 1u << i) >> i & 1)
			continue;
		if (READ_ONCE(ring[i].state) == ENTRY_FREE || orphan(u, &ring[i]))
			return i;
		npuemu_fetch_and(&p->inbox_used, ~(1u << i));
	}
	return ~0u;
}

/* The payload: inline up to 208 bytes, else by place in the sender's arenas. */
static const char *describe(struct user *u, struct npuemu_jfs *q, struct npuemu_wqe *w,
			    struct inbox_entry *e)
{
	struct npuemu_share *share;
	u32 i;

	e->pieces = 0;
	e->inline_len = (u32)w->len;
	if (!w->sge) {
		memcpy(e->data, (u8 *)w->bb + w->op->control, w->len);
		return NULL;
	}
	if (w->len <= sizeof(e->data)) {
		u32 at = 0;

		for (i = 0; i < w->nsge; i++) {
			u64 done, n;

			for (done = 0; done < w->sge[i].len; done += n) {
				u8 *p;

				n = w->sge[i].len - done;
				p = npuemu_local_at(q, w, w->sge[i].va + done, &n, false, &share);
				if (!p)
					return "local address is not good";
				memcpy(e->data + at, p, n);
				at += (u32)n;
			}
		}
		return NULL;
	}
	for (i = 0; i < w->nsge; i++) {
		const struct npuemu_local *l = q->local[0];

		if (!w->sge[i].len)
			continue;
		if (!npuemu_local_check(q, w, w->sge[i].va, w->sge[i].len, false))
			return "local address is not good";
		if (!npuemu_local_hit(l, w->sge[i].va, w->sge[i].len))
			l = q->local[1];
		if (!npuemu_local_hit(l, w->sge[i].va, w->sge[i].len) || !l->arena ||
		    !u->arena[l->arena->device] ||
		    l->arena != &u->arena[l->arena->device]->a)
			return "more than 208 bytes must lie in device memory of this process";
		e->piece[e->pieces].len = w->sge[i].len;
		e->piece[e->pieces].device = l->arena->device;
		e->piece[e->pieces].off = l->off + (w->sge[i].va - l->va);
		e->pieces++;
	}
	return NULL;
}

static enum npuemu_step post(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	const struct npuemu_sqe *s = (const void *)w->bb;
	struct user *u = q->chip->host;
	struct user_peer *p;
	struct inbox_entry *e;
	const char *why;
	u32 i;

	if (w->len > SEND_MAX)
		return fail(q, w, NPUEMU_ST_LOC_LEN, "message longer than 16 MiB");
	p = (struct user_peer *)(uintptr_t)peer_find(q->chip, &w->bb[2]);
	if (!p)
		return fail(q, w, NPUEMU_ST_ACK_TIMEOUT, "nobody answers at this endpoint");
	/* a try without an answer ends at this time; "not ready" is an answer */
	if (!w->deadline)
		w->deadline = (u64)npuemu_now_ns() + q->ack_timeout_ns;
	i = entry_take(u, p);
	if (i == ~0u)
		return (u64)npuemu_now_ns() < w->deadline ? NPUEMU_STEP_WAIT :
		       fail(q, w, NPUEMU_ST_ACK_TIMEOUT, "the receiver takes no more messages");
	if (!READ_ONCE(p->inbox_backed)) {
		if (board_back(u, p->slot, OFF_INBOX + u->slot_index * INBOX_ENTRIES * sizeof(*e),
			       INBOX_ENTRIES * sizeof(*e))) {
			npuemu_fetch_and(&p->inbox_used, ~(1u << i));
			return fail(q, w, NPUEMU_ST_LOC_ACCESS, "/dev/shm is full");
		}
		WRITE_ONCE(p->inbox_backed, 1);
	}
	e = &slot_inbox(u, p->slot, u->slot_index)[i];
	why = describe(u, q, w, e);
	if (why) {
		npuemu_fetch_and(&p->inbox_used, ~(1u << i));
		return fail(q, w, NPUEMU_ST_LOC_ACCESS, why);
	}
	e->target = s->dw3 & NPUEMU_SQE_RMT_ID_MASK;
	e->jetty = (s->dw0 & NPUEMU_SQE_RMT_TYPE_MASK) >> NPUEMU_SQE_RMT_TYPE_SHIFT;
	e->opcode = s->dw1 >> NPUEMU_SQE_OPCODE_SHIFT & 0xff;
	e->rmt_idx = q->id;
	e->token_en = npuemu_send_token(s, &e->token_value);
	e->eid[0] = NPUEMU_EID_MAGIC;
	e->eid[1] = u->chip.board_id;
	e->eid[2] = q->device;
	e->eid[3] = NPUEMU_EID3(u->slot_index, LIFE_GEN(u->life), q->device);
	e->imm = e->opcode == NPUEMU_OP_SEND_IMM ? s->rmt_addr : 0;
	e->receiver_life = p->life;
	WRITE_ONCE(e->sender_life, u->life);
	w->token = token_of(p->slot, i);
	smp_store_release(&e->state, ENTRY_POSTED);
	npuemu_fetch_or(&slot_head(u, p->slot)->inbox[u->slot_index / 64],
			1ull << (u->slot_index % 64));
	if (p->slot == u->slot_index)
		inbox_run(u);
	else
		bell_ring_engine(slot_head(u, p->slot));
	return NPUEMU_STEP_WAIT;
}

/* The peer a SEND under way was for, if its slot is still the same process's. */
static struct user_peer *peer_of(struct user *u, const struct npuemu_wqe *w)
{
	struct user_peer *p = smp_load_acquire(&u->peers[w->token >> 8]);

	return p && (LIFE_GEN(p->life) & 0xffff) == NPUEMU_EID3_GEN((u32)(w->bb[3] >> 32)) ? p :
	       NULL;
}

/* Done with the entry: it is free, or @lost until the receiver frees it. */
static void let_go(struct user *u, struct npuemu_wqe *w, bool lost)
{
	struct user_peer *p = peer_of(u, w);
	u32 bit = 1u << ((w->token & 0xff) - 1);

	if (p && lost)
		npuemu_fetch_or(&p->inbox_lost, bit);
	else if (p)
		npuemu_fetch_and(&p->inbox_used, ~bit);
	w->token = 0;
}

void inbox_send_cancel(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	struct user *u = q->chip->host;
	struct inbox_entry *e = entry_of(u, w->token);
	u32 state;

	if (!peer_of(u, w)) {
		w->token = 0;
		return;
	}
	/* it may move from POSTED to TAKEN to DONE while we look */
	for (;;) {
		state = READ_ONCE(e->state);
		if ((state == ENTRY_POSTED || state == ENTRY_DONE) &&
		    npuemu_cas(&e->state, state, ENTRY_FREE))
			break;
		if (state == ENTRY_TAKEN && npuemu_cas(&e->state, state, ENTRY_CANCELLED)) {
			let_go(u, w, true);
			return;
		}
		if (state == ENTRY_FREE || state == ENTRY_CANCELLED)
			break;
	}
	let_go(u, w, false);
}

static enum npuemu_step answered(struct npuemu_jfs *q, struct npuemu_wqe *w, u32 status)
{
	struct user *u = q->chip->host;

	WRITE_ONCE(entry_of(u, w->token)->state, ENTRY_FREE);
	let_go(u, w, false);
	w->deadline = 0;
	status &= 0xffff;
	if (status != NPUEMU_ST_RNR_RETRY_CNT_EXC) {
		if (status)
			return fail(q, w, status, "refused by the receiver");
		w->done = w->len;
		return NPUEMU_STEP_DONE;
	}
	WRITE_ONCE(q->cnt->rnr, q->cnt->rnr + 1);
	if (q->rnr_retry != 7 && w->retries >= q->rnr_retry)
		return fail(q, w, status, "the receiver has no receive buffer posted");
	w->retries++;
	w->retry_at = (u64)npuemu_now_ns() + RNR_NS;
	return NPUEMU_STEP_WAIT;
}

enum npuemu_step inbox_send(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	struct user *u = q->chip->host;
	struct inbox_entry *e;
	struct user_peer *p;

	if (!w->token) {
		enum npuemu_step step;

		if (w->retry_at && (u64)npuemu_now_ns() < w->retry_at)
			return NPUEMU_STEP_WAIT;
		step = post(q, w);
		if (step != NPUEMU_STEP_WAIT || !w->token)
			return step;
	}
	e = entry_of(u, w->token);
	p = peer_of(u, w);
	if (p && smp_load_acquire(&e->state) == ENTRY_DONE)
		return answered(q, w, READ_ONCE(e->status));
	if (!p || READ_ONCE(slot_head(u, p->slot)->life) != p->life) {
		w->token = 0;
		return fail(q, w, NPUEMU_ST_ACK_TIMEOUT, "the receiver has died");
	}
	if ((u64)npuemu_now_ns() > w->deadline) {
		inbox_send_cancel(q, w);
		return fail(q, w, NPUEMU_ST_ACK_TIMEOUT, "no answer within the queue's ack_timeout_ms");
	}
	return NPUEMU_STEP_WAIT;
}

/* ---- The receiver ----------------------------------------------------------------- */

void inbox_init(struct user *u)
{
	struct slot_queue *s = &slot_queues(u, u->slot_index)[0];
	struct npuemu_jfs *j = &u->inbox;

	j->chip = &u->chip;
	j->owner = &s->owner;
	j->cnt = &s->cnt;
	j->cause = s->cause;
	j->epoch = READ_ONCE(u->chip.epoch);
	npuemu_places_drop(j);
	if (!u->slot->queues_hi)
		WRITE_ONCE(u->slot->queues_hi, 1);
}

static struct npuemu_jfr *target_of(struct user *u, const struct inbox_entry *e)
{
	u32 i = e->target & (SLOT_QUEUES - 1);
	struct npuemu_rq *r;

	if (e->jetty) {
		struct npuemu_queue *q = smp_load_acquire(&u->queues[i]);

		return q && q->jfs.id == e->target && q->rq ? &q->rq->jfr : NULL;
	}
	r = smp_load_acquire(&u->rqs[i]);
	return r && r->jfr.id == e->target ? &r->jfr : NULL;
}

/* Pointers to the sender's bytes; false if what it says cannot be. */
static bool gather(struct user *u, u32 from, const struct inbox_entry *e,
		   struct npuemu_message *m)
{
	struct user_peer *p;
	u32 i;

	if (!e->pieces) {
		m->pieces = e->inline_len ? 1 : 0;
		m->piece[0] = e->data;
		m->piece_len[0] = e->inline_len;
		return e->inline_len <= sizeof(e->data);
	}
	p = peer_by_life(u, from, e->sender_life);
	if (!p || e->pieces > NPUEMU_MAX_SGE)
		return false;
	m->pieces = e->pieces;
	for (i = 0; i < e->pieces; i++) {
		const struct npuemu_arena *a = peer_arena(&u->chip, &p->p, e->piece[i].device);
		u64 off = e->piece[i].off, len = e->piece[i].len;

		if (!a || !len || len > a->bytes || off > a->bytes - len ||
		    arena_back(&u->chip, a, off, len, off, off + len))
			return false;
		m->piece[i] = npuemu_arena_at(a, off);
		m->piece_len[i] = (u32)len;
	}
	return true;
}

static struct npuemu_jfc *deliver(struct user *u, u32 from, struct inbox_entry *shared)
{
	struct inbox_entry e = *shared;	/* copied once, then checked, then used */
	struct npuemu_message m = { .pieces = 0 };
	struct npuemu_jfr *r = target_of(u, &e);	/* jfr.c looks at the token */
	u32 status = NPUEMU_ST_REM_ACCESS_ABORT;

	if (r && gather(u, from, &e, &m)) {
		m.done.opcode = e.opcode & 7;
		m.done.rmt_idx = e.rmt_idx;
		m.done.jetty_id = e.jetty ? e.target : 0;
		memcpy(m.done.rmt_eid, e.eid, sizeof(e.eid));
		m.done.imm = e.imm;
		m.token_en = e.token_en;
		m.token_value = e.token_value;
		status = npuemu_jfr_deliver(r, &u->inbox, &m);
	}
	WRITE_ONCE(shared->status, status);
	return r && status != NPUEMU_ST_RNR_RETRY_CNT_EXC ? r->jfc : NULL;
}

static void from_sender(struct user *u, u32 from)
{
	struct inbox_entry *ring = slot_inbox(u, u->slot_index, from);
	struct slot_head *s = slot_head(u, from);
	u32 i;

	for (i = 0; i < INBOX_ENTRIES; i++) {
		struct npuemu_jfc *jfc = NULL;

		if (READ_ONCE(ring[i].state) != ENTRY_POSTED ||
		    !npuemu_cas(&ring[i].state, ENTRY_POSTED, ENTRY_TAKEN))
			continue;
		/* of a process that is gone, or for one that had our slot before us */
		if (READ_ONCE(s->life) != ring[i].sender_life || ring[i].receiver_life != u->life) {
			WRITE_ONCE(ring[i].state, ENTRY_FREE);
			continue;
		}
		jfc = deliver(u, from, &ring[i]);
		if (!npuemu_cas(&ring[i].state, ENTRY_TAKEN, ENTRY_DONE))
			WRITE_ONCE(ring[i].state, ENTRY_FREE);
		if (jfc && READ_ONCE(jfc->waiters))
			bell_ring(u->slot);
		if (from != u->slot_index) {
			bell_ring_engine(s);
			bell_ring(s);
		}
	}
}

bool inbox_run(struct user *u)
{
	struct slot_head *h = u->slot;
	struct npuemu_jfs *j = &u->inbox;
	bool any = false;
	u32 i, epoch;

	for (i = 0; i < ARRAY_SIZE(h->inbox); i++)
		any |= READ_ONCE(h->inbox[i]) != 0;
	if (likely(!any) || !npuemu_owner_try(j->owner))
		return false;
	epoch = smp_load_acquire(&u->chip.epoch);
	if (j->epoch != epoch) {
		npuemu_places_drop(j);
		j->epoch = epoch;
	}
	for (i = 0; i < NPUEMU_MAX_SLOTS; i++) {
		u64 bit = 1ull << (i % 64);

		if (!(READ_ONCE(h->inbox[i / 64]) & bit))
			continue;
		npuemu_fetch_and(&h->inbox[i / 64], ~bit);
		from_sender(u, i);
	}
	/* what was written into buffers wakes whoever waits there */
	j->jfc = NULL;
	j->completed = false;
	npuemu_jfs_release(j);
	return any;
}
