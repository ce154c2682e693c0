// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Writing completions.  The producer index is private; of the consumer only
 * its index record is read, and believed only as far as it is possible.  No
 * entry is ever overwritten: one per attached queue is kept for flush-done.
 */
#include "engine.h"

static void lock(struct npuemu_jfc *jfc)
{
	npuemu_spin_enter();
	while (unlikely(!npuemu_cas(&jfc->lock, 0, 1)))
		npuemu_relax();
}

static void unlock(struct npuemu_jfc *jfc)
{
	smp_store_release(&jfc->lock, 0); /* the entry, before the next producer */
	npuemu_spin_exit();
}

/* Take what the consumer says it has read; ignore what cannot be. */
static void read_ci(struct npuemu_jfc *jfc)
{
	/* the consumer has read the entries before it said so: they may be overwritten */
	u32 delta = (smp_load_acquire(jfc->ci_rec) - jfc->ci) & 0xffffff;

	if (delta <= jfc->pi - jfc->ci)
		jfc->ci += delta;
}

static bool room(struct npuemu_jfc *jfc, bool flush_done)
{
	/* more queues than entries is possible: nothing may go below zero here */
	u32 kept = flush_done ? 0 : READ_ONCE(jfc->attached);

	if (likely(jfc->pi - jfc->ci + kept <= jfc->mask))
		return true;
	read_ci(jfc);
	if (jfc->pi - jfc->ci + kept <= jfc->mask)
		return true;
	WRITE_ONCE(jfc->starved, 1);
	smp_mb(); /* the poller stores its index, then looks whether we starve */
	read_ci(jfc);
	return jfc->pi - jfc->ci + kept <= jfc->mask;
}

/* Is there room for an entry, as far as one can say without holding it? */
bool npuemu_jfc_room(struct npuemu_jfc *jfc, bool flush_done)
{
	bool ok;

	if (!jfc->shared)
		return room(jfc, flush_done);
	lock(jfc);
	ok = room(jfc, flush_done);
	unlock(jfc);
	return ok;
}

static inline u64 status_bits(u32 status)
{
	return (u64)(status >> 8) << NPUEMU_CQE_STATUS_SHIFT |
	       (status & 0xff) << NPUEMU_CQE_SUBSTATUS_SHIFT;
}

bool npuemu_complete(struct npuemu_jfs *q, u32 last_bb, u32 status, u32 bytes,
		     bool flush_done)
{
	struct npuemu_jfc *jfc = q->jfc;
	u64 e[8];

	e[0] = q->cqe_fixed[0] | status_bits(status) | (flush_done ? NPUEMU_CQE_FD : 0) |
	       (u64)(last_bb & q->mask) << 32;
	e[1] = q->cqe_fixed[1];
	e[2] = (u64)(u32)q->user_data << 32 | bytes;
	e[3] = q->user_data >> 32;
	e[4] = 0;
	e[5] = 0;
	e[6] = 0;
	e[7] = 0;
	if (jfc->shared)
		lock(jfc);
	if (unlikely(!room(jfc, flush_done))) {
		if (jfc->shared)
			unlock(jfc);
		return false;
	}
	if (unlikely(jfc->times))
		WRITE_ONCE(jfc->times[jfc->pi & jfc->mask], q->model_ns);
	npuemu_publish(jfc, e);
	if (jfc->shared)
		unlock(jfc);
	if (unlikely(READ_ONCE(q->chip->trace)))
		q->chip->ops->trace(q, NPUEMU_TR_COMPLETE, last_bb, status);
	WRITE_ONCE(q->cnt->cqes, q->cnt->cqes + 1);
	q->completed = true;
	return true;
}

bool npuemu_complete_recv(struct npuemu_jfr *r, u32 index, const struct npuemu_recv_done *d)
{
	struct npuemu_jfc *jfc = r->jfc;
	bool jetty = d->jetty_id || r->jetty;
	u32 id = d->jetty_id ? d->jetty_id : r->id;
	u64 e[8];

	e[0] = NPUEMU_CQE_RECV | (jetty ? NPUEMU_CQE_JETTY : 0) | status_bits(d->status) |
	       (u64)d->opcode << NPUEMU_CQE_OPCODE_SHIFT |
	       (u64)(index & NPUEMU_CQE_ENTRY_IDX_MASK) << 32 |
	       (u64)(id & 0xffff) << (32 + NPUEMU_CQE_LOCAL_LO_SHIFT);
	e[1] = (id >> 16 & NPUEMU_CQE_LOCAL_HI_MASK) |
	       (d->rmt_idx & 0xfffffu) << NPUEMU_CQE_RMT_IDX_SHIFT;
	e[2] = (u64)(u32)r->user_data << 32 | d->bytes;
	e[3] = r->user_data >> 32 | (u64)d->rmt_eid[0] << 32;
	e[4] = d->rmt_eid[1] | (u64)d->rmt_eid[2] << 32;
	e[5] = d->rmt_eid[3] | (u64)(u32)d->imm << 32;
	e[6] = d->imm >> 32;
	e[7] = 0;
	lock(jfc);
	if (!room(jfc, false)) {
		unlock(jfc);
		return false;
	}
	if (jfc->times)
		WRITE_ONCE(jfc->times[jfc->pi & jfc->mask], 0);
	/* before the entry: who sees that gives the buffer back, and finds room */
	smp_store_release(&r->ci, index + 1);
	if (r->ci_out)
		smp_store_release(r->ci_out, index + 1); /* likewise */
	npuemu_publish(jfc, e);
	unlock(jfc);
	return true;
}
