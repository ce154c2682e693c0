// SPDX-License-Identifier: MIT
/*
 * A collective is carried out: as work of a stream, asked again and again until it is
 * over (npuacl.h).
 *
 * A rank that comes to it writes down what it wants, and counts itself.  The last to
 * come sees whether all want the same, makes the next slot ready, and opens this one.
 * From then on every rank that is asked carries out what lanes it can get hold of, a
 * batch of steps at a time, as descriptors on its own SDMA queue.  When all lanes are
 * done everybody's buffers are, and each rank goes on as soon as it sees that.
 *
 * Long lanes are left to their ranks for a while: a process that has done a lane once
 * has its pages, and the first touch of a page costs more than to copy it.
 *
 * A rank that has finished one is at most at the next, so two slots are enough: when the
 * last rank has come to a collective all have left the one before.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "comm.h"
#include "support.h"

#define LOOK_NS		100000000ll	/* are the others alive? */
#define OWN_BYTES	(4u << 20)	/* a lane that long is its rank's, */
#define OWN_NS		5000000ll	/* for so long, and a ns for each byte of all: a rank may not come */
#define BATCH		32u		/* steps of a lane that one doorbell starts */
#define BATCH_BYTES	(64u << 10)	/* a helper's turn: with more the engine's thread would be called, too */

/* ---- Its end --------------------------------------------------------------------------- */

static void finish(struct hccl_op *op)
{
	struct hccl_comm *c = op->comm;

	/* or it was dropped before it had begun */
	if (op->seq)
		c->group->member[c->rank].finished = op->seq;
	if (READ_ONCE(c->now) == op)
		smp_store_release(&c->now, NULL);
	if (op->ticket)
		smp_store_release(&c->ticket_done, op->ticket);
	hccl_plan_put(op->plan);
	op->plan = NULL;
	/* a model's comes again */
	op->work.bell = NULL;
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

static void clear(struct hccl_slot *slot, u32 ranks)
{
	u32 i;

	for (i = 0; i < ranks; i++) {
		slot->lane[i].owner = 0;
		slot->lane[i].done = 0;
	}
	slot->lanes = 0;
	slot->over = 0;
	WRITE_ONCE(slot->arrived, 0);
}

static void arrive(struct hccl_op *op)
{
	struct hccl_comm *c = op->comm;
	struct hccl_slot *slot;
	u32 k;

	op->last = false;
	WRITE_ONCE(op->seq, ++c->begun);
	op->want.seq = op->seq;
	op->want.drops = npuacl_export_drops();
	slot = &c->group->slot[op->seq % HCCL_SLOTS];
	slot->want[c->rank] = op->want;
	for (k = 0; op->array && k < 4; k++)
		memcpy(slot->array[c->rank][k], op->array + (size_t)k * c->ranks, c->ranks * sizeof(u64));
	WRITE_ONCE(c->group->member[c->rank].begun, op->seq);
	op->began = npuemu_now_ns();
	WRITE_ONCE(op->look_at, op->began + LOOK_NS);
	WRITE_ONCE(op->phase, HCCL_ARRIVED);
	if (npuemu_fetch_add(&slot->arrived, 1) + 1 < c->ranks)
		return;
	if (!hccl_wants_agree(c, slot))
		return;
	clear(&c->group->slot[(op->seq + 1) % HCCL_SLOTS], c->ranks);
	op->last = true;
}

/* ---- Its plan ---------------------------------------------------------------------------- */

static HcclResult plan(struct hccl_op *op, struct hccl_slot *slot)
{
	struct hccl_comm *c = op->comm;
	u32 i;

	op->plan = hccl_plan_get(c, op, slot);
	if (!op->plan) {
		hccl_group_fail(c, HCCL_E_MEMORY, "EI0011", "rank %u has no host memory for the plan of a collective", c->rank);
		return HCCL_E_MEMORY;
	}
	op->ran = op->plan->algo;
	memset(c->base, 0, 3 * c->ranks * sizeof(*c->base));
	op->lanes = 0;
	op->split = false;
	for (i = 0; i < c->ranks; i++)
		op->lanes += op->plan->lane[i].n > 0;
	op->others_at = 0;
	if (!c->all_here && !op->plan->waits && op->plan->bytes >= (u64)OWN_BYTES * op->lanes)
		op->others_at = npuemu_now_ns() + OWN_NS + (s64)op->plan->bytes;
	WRITE_ONCE(op->phase, HCCL_GOES);
	return HCCL_SUCCESS;
}

/* ---- Its lanes ------------------------------------------------------------------------------ */

/* Where a place is, from here; NULL: it cannot be reached, and the group has failed. */
static u8 *at(struct hccl_op *op, struct hccl_slot *slot, struct hccl_place p)
{
	struct hccl_comm *c = op->comm;
	u8 **base = &c->base[p.rank * 3 + p.area];
	const struct hccl_want *w;

	if (likely(*base))
		return *base + p.off;
	if (p.area == HCCL_CCL) {
		struct hccl_member *m = &c->group->member[p.rank];
		struct hccl_comm *other = smp_load_acquire(&c->local->rank[p.rank]);

		*base = other ? other->ccl_ptr : hccl_ref_open(c, p.rank, false, &m->ccl, c->peer[p.rank].drops);
	} else {
		const struct hccl_ref *ref;

		w = &slot->want[p.rank];
		ref = p.area == HCCL_IN ? &w->in : &w->out;
		op->split |= !!(ref->off & HCCL_PARTS);
		*base = hccl_ref_open(c, p.rank, false, ref, w->drops);
	}
	if (!*base && !hccl_group_broken(c))
		hccl_group_fail(c, HCCL_E_INTERNAL, "EI9999", "the plan names a buffer of rank %u that it does not have", p.rank);
	return *base ? *base + p.off : NULL;
}

/* The latest descriptor is held back, since the last of all reports. */
struct batch {
	struct npuacl_sdma *q;
	struct npuemu_sdma held;
	bool holds;
	bool wire;		/* something is posted to the UDMA queue */
	u32 posted;
	u64 bytes;
};

/* What was posted is over. */
static bool flush(struct hccl_op *op, struct batch *b)
{
	struct hccl_comm *c = op->comm;
	u32 bad = 0, status = 0, last;
	int got;

	if (b->wire) {
		b->wire = false;
		b->bytes = 0;
		got = hccl_jetty_flush(c);
		pthread_mutex_unlock(&c->wire);
		return got;
	}
	if (!b->holds)
		return true;
	npuacl_sdma_post(b->q, &b->held, true);
	last = npuacl_sdma_ring(b->q);
	got = npuacl_sdma_poll(b->q, last, b->posted + 1, NPUEMU_FOREVER, &bad, &status);
	b->holds = false;
	b->posted = 0;
	b->bytes = 0;
	if (!got)
		return true;
	hccl_group_check(c);	/* whose memory it was may have died: then that is said */
	hccl_group_fail(c, HCCL_E_REMOTE, "EI9999", "a copy by rank %u failed: %s; %s", c->rank, npuemu_status_str(status),
			b->q->cause);
	return false;
}

/* Not by an engine, so where this library may reach it, checker or not. */
static u8 *reach(u8 *va)
{
	bool device;

	return npuemu_guarded ? npuemu_alias(npuacl.board, (u64)(uintptr_t)va, &device) : va;
}

static const struct hccl_ref *ref_of(struct hccl_op *op, struct hccl_slot *slot, struct hccl_place p)
{
	if (p.area == HCCL_CCL)
		return &op->comm->group->member[p.rank].ccl;
	return p.area == HCCL_IN ? &slot->want[p.rank].in : &slot->want[p.rank].out;
}

/* One side is another rank's, and ours to read or to write by the queue. */
static bool wire_step(struct hccl_op *op, struct hccl_slot *slot, const struct hccl_step *st, struct batch *b, u32 code)
{
	struct hccl_comm *c = op->comm;
	bool write = st->dst.rank != c->rank;
	struct hccl_place near = write ? st->src : st->dst, far = write ? st->dst : st->src;
	u8 *local = at(op, slot, near);

	/* in order with what the other engine has */
	if (b->holds && !flush(op, b))
		return false;
	if (!local)
		return false;
	if (!b->wire)
		pthread_mutex_lock(&c->wire);	/* messages of other streams use the queue, too */
	b->wire = true;
	b->bytes += st->bytes;
	if (hccl_jetty_post(c, write, local, ref_of(op, slot, far), far.off, st->bytes, st->kind == HCCL_REDUCE, code))
		return true;
	hccl_group_fail(c, HCCL_E_INTERNAL, "EI9999", "rank %u: its queue has no room for %" PRIu64 " bytes", c->rank, st->bytes);
	return false;
}

static void post(struct batch *b, u32 sdma, u32 type, u8 *dst, const u8 *src, u64 bytes)
{
	if (b->holds) {
		npuacl_sdma_post(b->q, &b->held, false);
		b->posted++;
	}
	npuacl_desc(&b->held, sdma);
	b->held.type = type;
	b->held.dst = (u64)(uintptr_t)dst;
	b->held.src = (u64)(uintptr_t)src;
	b->held.len = bytes;
	b->holds = true;
	b->bytes += bytes;
}

/* A descriptor has its bytes in one mapping on either side, and no more than a turn takes. */
static bool post_pieces(struct hccl_op *op, struct batch *b, u32 sdma, u32 type, u8 *dst, const u8 *src, u64 bytes)
{
	u64 n, done;

	for (done = 0; done < bytes; done += n) {
		n = bytes - done;
		if (unlikely(op->split))
			n = hccl_stretch(dst + done, src + done, n);
		n = n < BATCH_BYTES ? n : BATCH_BYTES;
		if ((b->posted >= BATCH || (b->bytes && b->bytes + n > BATCH_BYTES)) && !flush(op, b))
			return false;
		post(b, sdma, type, dst + done, src + done, n);
	}
	return true;
}

/* One step; false: the group has failed. */
static bool step_of(struct hccl_op *op, struct hccl_slot *slot, const struct hccl_step *st, struct batch *b)
{
	bool cpu, wire = op->comm->queued && st->dst.rank != st->src.rank;
	u8 *dst, *src;
	u32 code = 0, sdma;

	/* the AI CPUs have no queue: they reach what they read by its mapping */
	cpu = st->kind == HCCL_REDUCE && !hccl_sdma_reduces(op->want.type, op->want.op, &code);
	if (wire && !cpu)
		return wire_step(op, slot, st, b, code);
	dst = at(op, slot, st->dst);
	src = at(op, slot, st->src);
	if (!dst || !src || (b->wire && !flush(op, b)))
		return false;
	if (cpu) {
		if (!flush(op, b))
			return false;
		return hccl_aicpu_reduce(reach(dst), reach(src), st->bytes, op->want.type, op->want.op);
	}
	if (st->kind == HCCL_COPY && dst == src)
		return true;
	sdma = st->kind == HCCL_REDUCE ? NPUEMU_SDMA_REDUCE : NPUEMU_SDMA_COPY;
	if (unlikely(op->split || st->bytes > BATCH_BYTES))
		return post_pieces(op, b, sdma, code, dst, src, st->bytes);
	post(b, sdma, code, dst, src, st->bytes);
	return true;
}

static bool reached(const struct hccl_slot *slot, const struct hccl_step *st)
{
	return smp_load_acquire(&slot->lane[st->peer].done) >= st->count;
}

/* Steps of a lane that is ours for now, until it waits or has none.  Did it get on? */
static bool carry(struct hccl_op *op, struct hccl_slot *slot, u32 r, struct npuacl_sdma *q)
{
	struct hccl_lane *lane = &op->plan->lane[r];
	struct hccl_lane_state *state = &slot->lane[r];
	struct batch b = { .q = q };
	u32 begin = READ_ONCE(state->done), at = begin, n;
	bool good = true;

	while (at < lane->n && good) {
		const struct hccl_step *st = &lane->step[at];

		for (n = 0; at + n < lane->n && n < BATCH && good; n++, st++) {
			if (b.bytes && st->kind != HCCL_WAIT && b.bytes + st->bytes > BATCH_BYTES)
				break;
			if (st->kind == HCCL_WAIT) {
				if (!reached(slot, st))
					break;
				continue;
			}
			good = step_of(op, slot, st, &b);
		}
		good = good && flush(op, &b);
		if (!n || !good)
			break;
		at += n;
		smp_store_release(&state->done, at);
		/* another may have waited for that */
		if (op->plan->waits)
			npuacl_ring(&op->comm->group->bell, op->comm->queued ? INT32_MAX : 1);
	}
	/* a queue is not left with something in it */
	if (!good)
		flush(op, &b);
	if (good && at == lane->n && at != begin && npuemu_fetch_add(&slot->lanes, 1) + 1 == op->lanes) {
		smp_store_release(&slot->over, 1);
		if (READ_ONCE(slot->seq) == op->seq)
			npuacl_ring(&op->comm->group->bell, INT32_MAX);
	}
	return at != begin;
}

/* Lanes that nobody is at, our own first.  Are all done? */
static bool carry_lanes(struct hccl_op *op, struct hccl_slot *slot)
{
	struct hccl_comm *c = op->comm;
	struct npuacl_sdma *q = NULL;
	/* a lane's queue is its rank's */
	bool on, own = c->queued || (op->others_at && npuemu_now_ns() < op->others_at);
	aclError err;
	u32 i, r;

	do {
		on = false;
		for (i = 0; i < c->ranks && !hccl_group_broken(c); i++) {
			struct hccl_lane_state *state;

			r = c->rank + i < c->ranks ? c->rank + i : c->rank + i - c->ranks;
			state = &slot->lane[r];
			if (own && i)
				break;
			if (READ_ONCE(state->done) >= op->plan->lane[r].n || READ_ONCE(state->owner) ||
			    !npuemu_cas(&state->owner, 0, c->rank + 1))
				continue;
			if (!q)
				q = npuacl_sdma_take(c->dev, &err);
			if (!q)
				hccl_group_fail(c, HCCL_E_RUNTIME, "EI9999", "rank %u: %s", c->rank, npuacl_self.message);
			else
				on |= carry(op, slot, r, q);
			smp_store_release(&state->owner, 0);
		}
	} while (on && !smp_load_acquire(&slot->over) && !hccl_group_broken(c));
	if (q)
		npuacl_sdma_put(c->dev, q);
	return smp_load_acquire(&slot->over);
}

/* ---- It opens ---------------------------------------------------------------------------------- */

/* There is something to be done for as many ranks as have a cpu; for all, if lanes are their ranks'. */
static void call_ranks(const struct hccl_op *op, const struct hccl_slot *slot)
{
	struct hccl_comm *c = op->comm;
	u32 most = op->lanes < c->cpus ? op->lanes : c->cpus;

	npuacl_ring(&c->group->bell, c->queued || op->others_at || READ_ONCE(slot->over) ? INT32_MAX : (s32)most - 1);
}

/* The others may go on.  What one rank does anyway is done before, so that none looks in vain. */
static void open_slot(struct hccl_op *op, struct hccl_slot *slot)
{
	struct hccl_comm *c = op->comm;

	if (plan(op, slot))
		return;
	slot->algo = op->ran;
	if (!op->lanes)
		WRITE_ONCE(slot->over, 1);
	else if (op->lanes == 1 && !c->queued && !op->others_at)	/* then it may be another's for now */
		carry_lanes(op, slot);
	if (hccl_group_broken(c))
		return;
	smp_store_release(&slot->seq, op->seq);
	call_ranks(op, slot);
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

/* Nothing to be done just now: has it gone on for too long, is everybody alive? */
static void look(struct hccl_op *op)
{
	struct hccl_comm *c = op->comm;
	s64 now = npuemu_now_ns();
	char text[384];

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

static bool step(struct npuacl_work *w, struct npuacl_stream *s, u32 task)
{
	struct hccl_op *op = container_of(w, struct hccl_op, work);
	struct hccl_comm *c = op->comm;
	struct hccl_slot *slot;

	WRITE_ONCE(c->parked, NULL);
	if (op->phase == HCCL_BEGIN) {
		if (!may_begin(op))
			return false;
		if (hccl_group_broken(c))
			return failed(op, s, task);
		if (!begin(op))
			return false;
		arrive(op);
		/* in one process whoever gets on wakes the others' streams, and may do it all itself */
		op->work.bell = c->all_here ? NULL : &c->group->bell;
		if (op->last)
			open_slot(op, &c->group->slot[op->seq % HCCL_SLOTS]);
	}
	slot = &c->group->slot[op->seq % HCCL_SLOTS];
	if (op->phase == HCCL_ARRIVED && smp_load_acquire(&slot->seq) == op->seq)
		see_open(op, slot);
	if (op->phase == HCCL_GOES && (smp_load_acquire(&slot->over) || carry_lanes(op, slot))) {
		tell(op, s);
		finish(op);
		hccl_wake_local(c);
		return true;
	}
	if (hccl_group_broken(c))
		return failed(op, s, task);
	look(op);
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

	WRITE_ONCE(c->parked, NULL);
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
