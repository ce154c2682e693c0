// SPDX-License-Identifier: MIT
/*
 * The lanes of a collective are carried out: by whichever ranks are asked meanwhile, a
 * batch of steps at a time, as descriptors on the SDMA queue of who does it, or as WQEs of
 * a lane's rank.
 *
 * Long lanes are left to their ranks for a while: a process that has done a lane once
 * has its pages, and the first touch of a page costs more than to copy it.
 */
#include <inttypes.h>
#include "comm.h"
#include "support.h"

#define BATCH		32u		/* steps of a lane that one doorbell starts */
#define ANY_CPU		UINT32_MAX
#define OWN_ASKS	20u		/* where each rank has a cpu: a look at another's lane takes its line from it */
#define BATCH_BYTES	(64u << 10)	/* a helper's turn: with more the engine's thread would be called, too */

/* ---- Places ------------------------------------------------------------------------------------ */

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

/* ---- Steps ------------------------------------------------------------------------------------- */

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

static bool reached(const struct hccl_op *op, const struct hccl_slot *slot, const struct hccl_step *st)
{
	return hccl_steps_done(&slot->lane[st->peer], op->seq) >= st->count;
}

/* ---- Lanes ------------------------------------------------------------------------------------- */

/* Steps of a lane that is ours for now, until it waits or has none.  Did it get on? */
static bool carry(struct hccl_op *op, struct hccl_slot *slot, u32 r, struct npuacl_sdma *q)
{
	struct hccl_lane *lane = &op->plan->lane[r];
	struct hccl_lane_state *state = &slot->lane[r];
	struct batch b = { .q = q };
	u32 begin = hccl_steps_done(state, op->seq), at = begin, n;
	bool good = true;

	while (at < lane->n && good) {
		const struct hccl_step *st = &lane->step[at];

		for (n = 0; at + n < lane->n && n < BATCH && good; n++, st++) {
			if (b.bytes && st->kind != HCCL_WAIT && b.bytes + st->bytes > BATCH_BYTES)
				break;
			if (st->kind == HCCL_WAIT) {
				if (!reached(op, slot, st))
					break;
				continue;
			}
			good = step_of(op, slot, st, &b);
		}
		good = good && flush(op, &b);
		if (!n || !good)
			break;
		at += n;
		smp_store_release(&state->done, hccl_steps_tag(op->seq, at));
		/* another may have waited for that */
		if (op->plan->waits)
			npuacl_ring(&op->comm->group->bell, op->comm->queued ? INT32_MAX : 1);
	}
	/* a queue is not left with something in it */
	if (!good)
		flush(op, &b);
	if (good && at == lane->n && at != begin && npuemu_fetch_add(&slot->lanes, 1) + 1 == op->lanes)
		hccl_op_over(op, slot);
	return at != begin;
}

/* So many bytes that there is something of them left in the cpus' caches the next time. */
static bool may_be_cached(const struct hccl_comm *c, const struct hccl_op *op)
{
	bool shared = op->want.coll != HCCL_ALLTOALL && op->want.coll != HCCL_ALLTOALLV;

	/* what one lane alone reads counts as well */
	return op->plan->bytes * (shared ? 1 : 2) <= c->cache;
}

/*
 * Where ranks share cpus, a cpu does the same lanes each time, whichever rank it is at: it may have their
 * buffers in its cache.
 */
static u32 this_cpu(const struct hccl_comm *c)
{
	int cpu = sched_getcpu();

	return cpu >= 0 && cpu < CPU_SETSIZE ? c->cpu_at[cpu] : 0;
}

static bool is_of_cpu(const struct hccl_comm *c, u32 r, u32 cpu)
{
	return r * c->cpus / c->ranks == cpu;
}

/* If nobody is at it, and something of it is left. */
static bool take(const struct hccl_op *op, struct hccl_lane_state *state, u32 r)
{
	u64 was = READ_ONCE(state->owner);

	return !hccl_tagged_rank(was, op->seq) && hccl_steps_done(state, op->seq) < op->plan->lane[r].n &&
	       npuemu_cas(&state->owner, was, hccl_rank_tag(op->seq, op->comm->rank));
}

/*
 * No wait for a queue: all may be held by batches that only the scheduler's thread ends, and that may
 * be us.  False: whoever asks next tries again.
 */
static bool have_queue(struct hccl_comm *c, struct npuacl_sdma **q)
{
	int err = 0;

	if (!*q)
		*q = npuacl_sdma_try(c->dev, &err);
	if (err)
		hccl_group_fail(c, HCCL_E_RUNTIME, "EI9999", "rank %u: no SDMA queue: %s", c->rank, npuemu_errmsg());
	return *q;
}

/* One look at all lanes; those of @cpu alone, or all.  Did any get on? */
static bool go_through(struct hccl_op *op, struct hccl_slot *slot, bool own, u32 cpu, struct npuacl_sdma **q)
{
	struct hccl_comm *c = op->comm;
	struct hccl_lane_state *state;
	bool on = false;
	u32 i, r;

	for (i = 0; i < (own ? 1 : c->ranks) && !hccl_group_broken(c); i++) {
		r = c->rank + i < c->ranks ? c->rank + i : c->rank + i - c->ranks;
		state = &slot->lane[r];
		if (cpu != ANY_CPU && !is_of_cpu(c, r, cpu))
			continue;
		if (!take(op, state, r))
			continue;
		if (have_queue(c, q))
			on |= carry(op, slot, r, *q);
		else
			op->queueless = true;
		smp_store_release(&state->owner, hccl_round(op->seq) << HCCL_RANK_BITS);
	}
	return on;
}

/* Lanes that nobody is at, our own first.  Are all done? */
bool hccl_lanes_carry(struct hccl_op *op, struct hccl_slot *slot)
{
	struct hccl_comm *c = op->comm;
	struct npuacl_sdma *q = NULL;
	/* a lane's queue is its rank's */
	bool on, own = c->queued || (op->others_at && npuemu_now_ns() < op->others_at) ||
		(c->spins && op->asked++ < OWN_ASKS && op->lanes > 1);
	u32 cpu = own || c->spins || !may_be_cached(c, op) ? ANY_CPU : this_cpu(c);

	op->queueless = false;
	do {
		on = cpu != ANY_CPU && go_through(op, slot, own, cpu, &q);
		on |= go_through(op, slot, own, ANY_CPU, &q);
	} while (on && !smp_load_acquire(&slot->over) && !hccl_group_broken(c));
	if (q)
		npuacl_sdma_put(c->dev, q);
	/* each further look would take a line from who is at a lane */
	op->taken = !on && !own && !op->plan->waits && !op->queueless;
	return smp_load_acquire(&slot->over);
}
