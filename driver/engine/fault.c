// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Faults on purpose: any status, delay, drop, poison, dead peer; by queue and
 * by rate, from a seed, so that a run that failed fails again.
 */
#include "engine.h"

/* Sebastiano Vigna's splitmix64, from its published description. */
u64 npuemu_random(u64 *state)
{
	u64 z;

	*state += 0x9e3779b97f4a7c15ull;
	z = *state;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void npuemu_faults_load(struct npuemu_jfs *q)
{
	struct npuemu_fault_rec all[NPUEMU_MAX_FAULTS];
	/* before the records: if they change meanwhile we come back */
	u32 i, n, gen = smp_load_acquire(q->chip->fault_gen);

	n = q->chip->ops->faults(q->chip, all);
	if (n == NPUEMU_BOARD_GONE) {
		npuemu_jfs_modify(q, NPUEMU_QS_ERROR);
		q->chip->ops->explain(q, "the board was reset");
		n = 0;
	}
	q->nfaults = 0;
	if (n && !q->fault)
		q->fault = q->chip->ops->zalloc(NPUEMU_MAX_FAULTS * sizeof(*q->fault));
	if (!q->fault)
		n = 0;
	for (i = 0; i < n && i < NPUEMU_MAX_FAULTS; i++) {
		const struct npuemu_fault_rec *f = &all[i];

		if (f->kind >= NPUEMU_FK_KINDS ||
		    (f->slot != NPUEMU_FAULT_ANY && f->slot != q->chip->slot) ||
		    (f->queue != NPUEMU_FAULT_ANY && f->queue != q->id) ||
		    (f->device != NPUEMU_FAULT_ANY && f->device != q->device) ||
		    f->status > 0xffff)	/* has no place in a CQE */
			continue;
		/* one that stands where it stood goes on where it was */
		if (memcmp(&q->fault[q->nfaults].rec, f, sizeof(*f))) {
			q->fault[q->nfaults].rec = *f;
			q->fault[q->nfaults].rng = f->seed ^ (u64)q->id << 32;
			q->fault[q->nfaults].hits = 0;
		}
		q->nfaults++;
	}
	q->fault_gen = gen;
}

static u32 peer_slot(const struct npuemu_wqe *w)
{
	u64 eid3 = w->op->flags & NPUEMU_OPF_WRITE_ADD ? w->bb[2] : w->bb[3] >> 32;

	return NPUEMU_EID3_SLOT((u32)eid3);
}

static u32 poison_status(const struct npuemu_wqe *w)
{
	return w->op->flags & NPUEMU_OPF_LOAD ? NPUEMU_ST_REM_DATA_POISON :
	       NPUEMU_ST_LOC_DATA_POISON;
}

/* Roll the dice of every fault once for this WQE; the first that hits counts. */
static bool roll(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	u32 i;

	for (i = 0; i < q->nfaults; i++) {
		const struct npuemu_fault_rec *f = &q->fault[i].rec;

		if (f->count && q->fault[i].hits >= f->count)
			continue;
		if (npuemu_random(&q->fault[i].rng) % 1000000 >= f->rate_ppm)
			continue;
		switch (f->kind) {
		case NPUEMU_FK_STATUS:
			w->fault_status = f->status;
			break;
		case NPUEMU_FK_DELAY:
			w->fault_status = ~0u;	/* late, but well */
			w->not_before = q->chip->ops->now() + f->delay_us * 1000ull;
			break;
		case NPUEMU_FK_DROP:
			w->fault_status = NPUEMU_ST_ACK_TIMEOUT;
			w->not_before = q->chip->ops->now() + q->ack_timeout_ns;
			break;
		case NPUEMU_FK_POISON:
			w->fault_status = poison_status(w);
			break;
		default:
			if (!(w->op->flags & NPUEMU_OPF_REMOTE) || peer_slot(w) != f->peer_slot)
				continue;
			w->fault_status = NPUEMU_ST_ACK_TIMEOUT;
			break;
		}
		q->fault[i].hits++;
		WRITE_ONCE(q->cnt->faults, q->cnt->faults + 1);
		return true;
	}
	return false;
}

bool npuemu_fault_hit(struct npuemu_jfs *q, struct npuemu_wqe *w, enum npuemu_step *step)
{
	if (!w->fault_seen) {
		w->fault_seen = true;
		w->fault_status = ~0u;
		if (!w->phase && roll(q, w) && w->fault_status != ~0u)
			q->chip->ops->explain(q, "WQE at block %u: injected fault", w->first);
	}
	if (w->not_before) {
		if (q->chip->ops->now() < w->not_before) {
			*step = NPUEMU_STEP_WAIT;
			return true;
		}
		w->not_before = 0;
	}
	if (w->fault_status == ~0u)
		return false;
	w->status = w->fault_status;
	*step = NPUEMU_STEP_DONE;
	return true;
}
