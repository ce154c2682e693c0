// SPDX-License-Identifier: MIT
/*
 * A collective, from its beginning to its end: as work of a stream, asked again and again
 * until it is over (npuacl.h).
 *
 * A rank that comes to it writes down what it wants in a slot of the group, and counts
 * itself; the end of the collective before counts as well.  Who completes the count sees
 * whether all want the same, and opens the slot.  From then on
 * every rank that is asked carries out what lanes it can get hold of (lanes.c).  When all
 * lanes are done everybody's buffers are, and each rank goes on as soon as it sees that.
 *
 * What follows in the stream is known before it is its turn: a rank comes to so many
 * collectives ahead as long as nothing else is between.  So one that has a cpu gets on
 * with as many as all have come to, and where ranks share a cpu they are switched to once
 * for all of those.
 *
 * A rank is at most HCCL_AHEAD collectives from the oldest that it has not seen the end of.  When
 * all have come to one, all have left the one HCCL_AHEAD before; so twice as many slots are
 * enough: when a rank comes to one again, all have left what it was for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "comm.h"
#include "support.h"

#define LOOK_NS		100000000ll	/* are the others alive? */
#define OWN_BYTES	(4u << 20)	/* a lane that long is its rank's, */
#define OWN_NS		5000000ll	/* for so long, and a ns for each byte of all: a rank may not come */

/* ---- Its end --------------------------------------------------------------------------- */

static void finish(struct hccl_op *op)
{
	struct hccl_comm *c = op->comm;

	/* or it was dropped before it had begun */
	if (op->seq)
		c->group->member[c->rank].finished = op->seq;
	if (READ_ONCE(c->now) == op) {
		c->ahead -= !!op->next;
		smp_store_release(&c->now, op->next);
	}
	if (op->ticket)
		smp_store_release(&c->ticket_done, op->ticket);
	op->plan = NULL;
	/* a model's comes again */
	op->work.bell = NULL;
	op->here = false;
	op->waits = false;
	op->began = 0;
	WRITE_ONCE(op->phase, HCCL_BEGIN);
	WRITE_ONCE(op->seq, 0);
}

void hccl_op_failed(struct hccl_comm *c, struct npuacl_stream *s, u32 task, const char *text)
{
	char why[sizeof(c->group->why)], family[8];
	HcclResult code = hccl_group_failed(c, why, sizeof(why), family);

	WRITE_ONCE(c->error, (u32)HCCL_E_REMOTE);
	npuacl_stream_error(s, task, code == HCCL_E_TIMEOUT ? ACL_ERROR_RT_FFTS_PLUS_TIMEOUT :
			    ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, "task %u, %s: %s: %s", task, text, family, why);
}

static bool failed(struct hccl_op *op, struct npuacl_stream *s, u32 task)
{
	char text[96];

	hccl_want_text(&op->want, text, sizeof(text));
	hccl_op_failed(op->comm, s, task, text);
	finish(op);
	return true;
}

/* ---- Its beginning ----------------------------------------------------------------------- */

/* Ours of those that came before it, on whatever streams, are over?  After a failure all end. */
static bool may_begin(struct hccl_op *op)
{
	struct hccl_comm *c = op->comm;

	if (hccl_group_broken(c))
		return true;
	return !READ_ONCE(c->now) && (!op->ticket || smp_load_acquire(&c->ticket_done) + 1 == op->ticket);
}

/* One at a time; a model's has no ticket, so that two may be here. */
static bool begin(struct hccl_op *op)
{
	struct hccl_op *none = NULL;

	return __atomic_compare_exchange_n(&op->comm->now, &none, op, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static struct hccl_slot *slot_of(const struct hccl_op *op)
{
	return &op->comm->group->slot[op->seq % HCCL_SLOTS];
}

void hccl_slots_clear(struct hccl_comm *c)
{
	u32 i;

	for (i = 0; i < HCCL_SLOTS; i++)
		memset(&c->group->slot[i], 0, offsetof(struct hccl_slot, want));
	hccl_slots_begin(c->group);
}

/* Are all ranks at collective @seq, and the one before is over? */
static bool one_more(const struct hccl_comm *c, u64 seq)
{
	struct hccl_slot *slot = &c->group->slot[seq % HCCL_SLOTS];

	if (npuemu_fetch_add(&slot->arrived, 1) + 1 != (u32)hccl_round(seq) * (c->ranks + 1))
		return false;
	WRITE_ONCE(slot->opener, hccl_rank_tag(seq, c->rank));
	return true;
}

/* Others have it in their caches, and will not ask for it again if it stays as it is. */
static void write_want(struct hccl_want *to, const struct hccl_want *want)
{
	const size_t refs = offsetof(struct hccl_want, in);

	memcpy(to, want, refs);
	if (want->coll == HCCL_BARRIER || !memcmp(&to->in, &want->in, sizeof(*want) - refs))
		return;
	memcpy(&to->in, &want->in, sizeof(*want) - refs);
}

static void arrive(struct hccl_op *op)
{
	struct hccl_comm *c = op->comm;
	struct hccl_slot *slot;
	u32 k;

	op->next = NULL;
	WRITE_ONCE(op->seq, ++c->begun);
	op->want.seq = op->seq;
	op->want.drops = npuacl_export_drops();
	slot = slot_of(op);
	write_want(&slot->want[c->rank], &op->want);
	for (k = 0; op->array && k < 4; k++)
		memcpy(slot->array[c->rank][k], op->array + (size_t)k * c->ranks, c->ranks * sizeof(u64));
	WRITE_ONCE(c->group->member[c->rank].begun, op->seq);
	WRITE_ONCE(op->phase, HCCL_ARRIVED);
	op->last = one_more(c, op->seq);
}

static void time_it(struct hccl_op *op)
{
	op->began = npuemu_now_ns();
	WRITE_ONCE(op->look_at, op->began + LOOK_NS);
}

/* It is this one's turn. */
static void come_to_it(struct hccl_op *op)
{
	op->here = true;
	if (unlikely(npuemu_log_at >= NPUEMU_LOG_DEBUG))
		time_it(op);
	/* in one process whoever gets on wakes the others' streams, and may do it all itself */
	op->work.bell = op->comm->all_here ? NULL : &op->comm->group->bell;
}

/* The collectives right behind it, if the stream has them already.  A model's have no order until it runs. */
static void look_ahead(struct hccl_op *op, struct npuacl_stream *s)
{
	struct hccl_comm *c = op->comm;
	struct npuacl_task *t;
	struct hccl_op *next;
	u64 have;

	if (!op->ticket || c->ahead + 1 >= HCCL_AHEAD || hccl_group_broken(c))
		return;
	have = npuacl_pending(s);
	while (c->ahead + 1 < HCCL_AHEAD) {
		t = npuacl_task_of(s, c->ahead + 1, have);
		if (!t || t->kind != NPUACL_WORK || t->work->ops != &hccl_collective)
			return;
		next = container_of(t->work, struct hccl_op, work);
		if (next->comm != c || next->ticket != op->ticket + c->ahead + 1)
			return;
		arrive(next);
		c->newest->next = next;
		c->newest = next;
		c->ahead++;
	}
}

/* ---- Its plan ---------------------------------------------------------------------------- */

static HcclResult plan(struct hccl_op *op, struct hccl_slot *slot)
{
	struct hccl_comm *c = op->comm;
	u32 i;

	op->lanes = 0;
	op->asked = 0;
	op->split = false;
	op->taken = op->want.coll == HCCL_BARRIER;	/* to have come is all */
	if (op->taken) {
		op->ran = HCCL_ALGO_ONE_LANE;
		WRITE_ONCE(op->phase, HCCL_GOES);
		return HCCL_SUCCESS;
	}
	op->plan = hccl_plan_of(c, op, slot);
	if (!op->plan) {
		hccl_group_fail(c, HCCL_E_MEMORY, "EI0011", "rank %u has no host memory for the plan of a collective", c->rank);
		return HCCL_E_MEMORY;
	}
	op->ran = op->plan->algo;
	memset(c->base, 0, 3 * c->ranks * sizeof(*c->base));
	for (i = 0; i < c->ranks; i++)
		op->lanes += op->plan->lane[i].n > 0;
	op->others_at = 0;
	if (!c->all_here && !op->plan->waits && op->plan->bytes >= (u64)OWN_BYTES * op->lanes)
		op->others_at = npuemu_now_ns() + OWN_NS + (s64)op->plan->bytes;
	WRITE_ONCE(op->phase, HCCL_GOES);
	return HCCL_SUCCESS;
}

/* ---- It opens, and is over ------------------------------------------------------------------------ */

/* There is something to be done for as many ranks as have a cpu; for all, if lanes are their ranks'. */
static void call_ranks(const struct hccl_op *op)
{
	struct hccl_comm *c = op->comm;
	u32 most = op->lanes < c->cpus ? op->lanes : c->cpus;

	npuacl_ring(&c->group->bell, c->queued || op->others_at ? INT32_MAX : (s32)most - 1);
}

void hccl_op_over(struct hccl_op *op, struct hccl_slot *slot)
{
	struct hccl_comm *c = op->comm;

	smp_store_release(&slot->over, 1);
	/* then this rank is at the next one, too, and opens it when it comes to it: at once */
	if (one_more(c, op->seq + 1) && likely(op->next))
		op->next->last = true;
	if (READ_ONCE(slot->seq) == op->seq)
		npuacl_ring(&c->group->bell, INT32_MAX);
}

/* The others may go on.  What one rank does anyway is done before, so that none looks in vain. */
static void open_slot(struct hccl_op *op, struct hccl_slot *slot)
{
	struct hccl_comm *c = op->comm;

	op->last = false;
	if (!hccl_wants_agree(c, slot))
		return;
	WRITE_ONCE(slot->lanes, 0);
	WRITE_ONCE(slot->over, 0);
	if (plan(op, slot))
		return;
	slot->algo = op->ran;
	if (!op->lanes)
		hccl_op_over(op, slot);
	else if (op->lanes == 1 && !c->queued && !op->others_at)	/* then it may be another's for now */
		hccl_lanes_carry(op, slot);
	if (hccl_group_broken(c))
		return;
	smp_store_release(&slot->seq, op->seq);
	if (!READ_ONCE(slot->over))
		call_ranks(op);
	else if (!op->next || !op->next->last)
		npuacl_ring(&c->group->bell, INT32_MAX);
	hccl_wake_local(c);
}

/* Opened by another; it may even be over, and then no plan is needed. */
static void see_open(struct hccl_op *op, struct hccl_slot *slot)
{
	if (!smp_load_acquire(&slot->over)) {
		plan(op, slot);
		return;
	}
	op->ran = (enum hccl_algo)slot->algo;
	WRITE_ONCE(op->phase, HCCL_GOES);
}

/* ---- What actually ran ---------------------------------------------------------------------------- */

static void tell(const struct hccl_op *op, const struct npuacl_stream *s)
{
	char text[96];

	if (likely(npuemu_log_at < NPUEMU_LOG_DEBUG))
		return;
	hccl_want_text(&op->want, text, sizeof(text));
	npuemu_log_write(NPUEMU_LOG_DEBUG, "hccl: rank %u: %s on stream %u, by %s, %.1f us", op->comm->rank, text, s->id,
			 op->want.coll == HCCL_BARRIER ? "counting" : hccl_algo_name(op->ran),
			 (double)(npuemu_now_ns() - op->began) / 1e3);
}

/* ---- As work of a stream ------------------------------------------------------------------------ */

/* A rank that has destroyed its communicator will not come any more. */
static void look_for_left(struct hccl_op *op)
{
	struct hccl_comm *c = op->comm;
	struct hccl_member *m = c->group->member;
	char text[96];
	u32 i;

	for (i = 0; i < c->ranks && op->phase == HCCL_ARRIVED; i++) {
		if (smp_load_acquire(&m[i].state) != HCCL_LEFT || READ_ONCE(m[i].begun) >= op->seq)
			continue;
		hccl_want_text(&op->want, text, sizeof(text));
		hccl_group_fail(c, HCCL_E_REMOTE, "EI0006", "rank %u has destroyed the communicator after op %" PRIu64 "; rank %u waits for it in %s",
				i, READ_ONCE(m[i].finished), c->rank, text);
		return;
	}
}

/*
 * Nothing to be done just now: has it gone on for too long, is everybody alive?  Most are
 * over when they are asked again, and need no clock.
 */
static void look(struct hccl_op *op)
{
	struct hccl_comm *c = op->comm;
	char text[384];
	s64 now;

	if (!op->waits) {
		op->waits = true;
		return;
	}
	if (!op->began) {
		time_it(op);
		return;
	}
	now = npuemu_now_ns();
	if (now < op->look_at)
		return;
	WRITE_ONCE(op->look_at, now + LOOK_NS);
	hccl_group_check(c);
	if (READ_ONCE(c->group->left) && !hccl_group_broken(c))
		look_for_left(op);
	if (!c->cfg.exec_ns || now - op->began < c->cfg.exec_ns || hccl_group_broken(c))
		return;
	hccl_waits_text(c, op, text, sizeof(text));
	hccl_group_fail(c, HCCL_E_TIMEOUT, "EI0002", "%s; for %.3f s (HCCL_EXEC_TIMEOUT)", text,
			(double)(now - op->began) / 1e9);
}

/* It is asked.  Another stream of the rank may be parked at the collective before: that is to be woken as ever. */
static void unpark(struct hccl_comm *c, const struct npuacl_stream *s)
{
	if (READ_ONCE(c->parked) == s)
		WRITE_ONCE(c->parked, NULL);
}

static bool step(struct npuacl_work *w, struct npuacl_stream *s, u32 task)
{
	struct hccl_op *op = container_of(w, struct hccl_op, work);
	struct hccl_comm *c = op->comm;
	struct hccl_slot *slot;

	unpark(c, s);
	if (op->phase == HCCL_BEGIN) {
		if (!may_begin(op))
			return false;
		if (hccl_group_broken(c))
			return failed(op, s, task);
		if (!begin(op))
			return false;
		c->newest = op;
		arrive(op);
	}
	if (!op->here)
		come_to_it(op);
	look_ahead(op, s);
	slot = slot_of(op);
	if (op->last)
		open_slot(op, slot);
	if (op->phase == HCCL_ARRIVED && smp_load_acquire(&slot->seq) == op->seq)
		see_open(op, slot);
	if (op->phase == HCCL_GOES && (smp_load_acquire(&slot->over) || (!op->taken && hccl_lanes_carry(op, slot)))) {
		tell(op, s);
		finish(op);
		hccl_wake_local(c);
		return true;
	}
	if (hccl_group_broken(c))
		return failed(op, s, task);
	look(op);
	if (READ_ONCE(c->local->refs) < 2)	/* nobody else here */
		return false;
	/* from here on whoever gets it done wakes us, if it is of this process */
	smp_store_release(&c->parked, s);
	smp_mb(); /* said, before the look: pairs with hccl_wake_local() */
	if (op->phase == HCCL_ARRIVED ? smp_load_acquire(&slot->seq) == op->seq :
	    op->phase == HCCL_GOES && smp_load_acquire(&slot->over))
		WRITE_ONCE(s->woken, true);
	return false;
}

/* Somebody may be at its step() meanwhile, who then sees to it anyway. */
static bool due(struct npuacl_work *w)
{
	struct hccl_op *op = container_of(w, struct hccl_op, work);
	enum hccl_phase phase = READ_ONCE(op->phase);
	struct hccl_comm *c = op->comm;
	u64 seq = READ_ONCE(op->seq);

	if (phase == HCCL_BEGIN)
		return may_begin(op);
	if (phase == HCCL_ARRIVED && smp_load_acquire(&c->group->slot[seq % HCCL_SLOTS].seq) == seq)
		return true;
	return phase == HCCL_GOES || hccl_group_broken(c) || npuemu_now_ns() >= READ_ONCE(op->look_at);
}

static void drop(struct npuacl_work *w, struct npuacl_stream *s)
{
	struct hccl_op *op = container_of(w, struct hccl_op, work);
	struct hccl_comm *c = op->comm;
	char text[96];

	unpark(c, s);
	hccl_want_text(&op->want, text, sizeof(text));
	if (!hccl_group_broken(c))
		hccl_group_fail(c, HCCL_E_REMOTE, "EI0002", "rank %u dropped %s: its stream %u was aborted, or has stopped after an error",
				c->rank, text, s->id);
	WRITE_ONCE(c->error, (u32)HCCL_E_REMOTE);
	finish(op);
}

/* The last use of the communicator: whoever destroys it waits for that. */
static void release(struct npuacl_work *w)
{
	struct hccl_op *op = container_of(w, struct hccl_op, work);
	struct hccl_comm *c = op->comm;

	hccl_op_free(op);
	npuemu_fetch_add(&c->in_flight, -1u);
}

static void text(struct npuacl_work *w, char *buf, size_t size)
{
	struct hccl_op *op = container_of(w, struct hccl_op, work);

	hccl_waits_text(op->comm, op, buf, size);
}

static u64 about(struct npuacl_work *w)
{
	struct hccl_op *op = container_of(w, struct hccl_op, work);

	return (u64)op->want.coll << 8 | op->ran;
}

const struct npuacl_work_ops hccl_collective = {
	.step = step, .due = due, .drop = drop, .release = release, .text = text, .about = about,
};
