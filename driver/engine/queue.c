// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The life of a send queue: owning it, fetching WQEs, turns, retiring in
 * order, states, flush.
 *
 * Nothing in the ring or the doorbell page is believed: a WQE is copied before
 * it is looked at, the producer index must lie within one ring of what was
 * consumed, and all progress is kept in private indices.
 */
#include "engine.h"

/* From now on the link to @to is counted; what the last one got is added to it. */
static void link_switch(struct npuemu_jfs *q, u32 to)
{
	struct npuemu_jfs_counters *c = q->cnt;
	struct npuemu_link_counters *l =
		&q->chip->links[q->device * NPUEMU_MAX_DEVICES + q->link_to];

	if (c->link_wqes) {
		npuemu_fetch_add(&l->wqes, c->link_wqes);
		npuemu_fetch_add(&l->bytes, c->link_bytes);
	}
	WRITE_ONCE(c->link_wqes, 0);
	WRITE_ONCE(c->link_bytes, 0);
	WRITE_ONCE(c->link_to, to);
	q->link_to = to;
}

void npuemu_jfs_release(struct npuemu_jfs *q)
{
	struct npuemu_share *touched[NPUEMU_MAX_TOUCHED];
	struct npuemu_chip *chip = q->chip;
	struct npuemu_jfc *jfc = q->jfc;
	bool completed = q->completed;
	u32 i, n = q->ntouched;

	for (i = 0; unlikely(i < n); i++)
		touched[i] = READ_ONCE(q->touched[i]);
	q->ntouched = 0;
	q->completed = false;
	/*
	 * Gives the queue back and is the full fence between what was written
	 * and the look at who waits for it.  After it q is somebody else's.
	 */
	npuemu_owner_put(q->owner);
	npuemu_wake_touched(chip, touched, n);
	if (completed && unlikely(READ_ONCE(jfc->waiters)))
		chip->ops->wake_cq(chip, jfc);
}

static __cold void fail(struct npuemu_jfs *q, u32 status)
{
	if (!q->last_status)
		WRITE_ONCE(q->last_status, status);
	if (q->state == NPUEMU_QS_ERROR)	/* flushing: there it stays */
		return;
	if (q->error_suspend && status != NPUEMU_ST_WR_FLUSH_ERR) {
		WRITE_ONCE(q->state, NPUEMU_QS_SUSPENDED);
		return;
	}
	WRITE_ONCE(q->state, NPUEMU_QS_ERROR);
	WRITE_ONCE(q->flush_done_due, true);
}

static void accept_pi(struct npuemu_jfs *q, u32 pi)
{
	if (unlikely(READ_ONCE(q->chip->trace)))
		q->chip->ops->trace(q, NPUEMU_TR_DOORBELL, pi, 0);
	WRITE_ONCE(q->pi, pi);
	WRITE_ONCE(q->cnt->doorbells, q->cnt->doorbells + 1);
}

/*
 * Everything seen so far is consumed: look for more.  False if what the
 * doorbell says cannot be.
 */
static bool read_pi(struct npuemu_jfs *q)
{
	const u32 *dwqe = q->db_pi - NPUEMU_DB_PI / sizeof(u32);
	/* acquire: the WQEs were written before the doorbell */
	u32 depth = q->mask + 1, pi = smp_load_acquire(q->db_pi), dw;

	if (pi != q->pi_raw) {
		WRITE_ONCE(q->pi_raw, pi);
		if (likely(pi - q->ci <= depth)) {
			accept_pi(q, pi);
		} else if (!q->dwqe_used || q->ci - pi > depth) {
			/* after direct WQEs the plain index may lag behind, never else */
			q->chip->ops->explain(q, "doorbell %#x is impossible: %#x blocks are consumed and the ring has %u",
					      pi, q->ci, depth);
			return false;
		}
	}
	if (unlikely(q->raw) && q->pi == q->ci) {
		/* a direct WQE, stored whole, rings with 16 bits of the index */
		dw = smp_load_acquire(dwqe); /* likewise */
		if (dw != q->dwqe_seen) {
			u32 delta = (dw - q->ci) & NPUEMU_SQE_IDX_MASK;

			WRITE_ONCE(q->dwqe_seen, dw);
			if (delta && delta <= depth) {
				q->dwqe_used = true;
				accept_pi(q, q->ci + delta);
			}
		}
	}
	return true;
}

static inline void copy_bb(u64 *dst, const u64 *src)
{
	u32 i;

	for (i = 0; i < 8; i++)
		dst[i] = READ_ONCE(src[i]);
}

bool npuemu_fetch(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	u32 i, n, ci = q->ci;

	if (q->pi == ci) {
		if (unlikely(!read_pi(q))) {
			fail(q, NPUEMU_ST_WR_FLUSH_ERR);
			return false;
		}
		if (q->pi == ci)
			return false;
	}
	copy_bb(w->bb, q->ring + (size_t)(ci & q->mask) * 8);
	n = npuemu_wqe_blocks(q, w->bb[0], w->bb[1]);
	npuemu_once_drop(q);
	w->first = ci;
	w->nbb = n;
	w->status = 0;
	w->phase = 0;
	w->nsge = 0;
	w->done = 0;
	w->not_before = 0;
	w->fault_seen = false;
	w->token = 0;
	w->deadline = 0;
	w->retry_at = 0;
	w->retries = 0;
	w->executed = false;
	w->backwards = false;
	w->paging = false;
	w->page_dirty = false;
	w->page_write = false;
	w->held = false;
	w->ran = false;
	if (unlikely(n > q->pi - ci)) {
		q->chip->ops->explain(q, "WQE at block %u: claims %u blocks, the doorbell covers %u",
				      ci, n, q->pi - ci);
		w->nbb = q->pi - ci;
		w->status = NPUEMU_ST_LOC_LEN;
	}
	for (i = 1; i < w->nbb; i++)
		copy_bb(w->bb + i * 8, q->ring + (size_t)((ci + i) & q->mask) * 8);
	if (unlikely(!!((u32)w->bb[0] & NPUEMU_SQE_OWNER) == !!(ci & (q->mask + 1)))) {
		q->chip->ops->explain(q, "WQE at block %u: owner bit is of another lap (doorbell before the WQE was written?)",
				      ci);
		w->status = NPUEMU_ST_UNSUPPORTED_OPCODE;
	}
	WRITE_ONCE(q->ci, ci + w->nbb);
	if (likely(!w->status))
		w->status = npuemu_wqe_check(q, w);
	if (unlikely(w->status)) {
		w->op = NULL;
		w->len = 0;
	}
	if (unlikely(READ_ONCE(q->chip->trace)))
		q->chip->ops->trace(q, NPUEMU_TR_EXECUTE, ci,
				    (w->bb[0] >> 40 & 0xff) | w->len << 8);
	return true;
}

/* The device a WQE goes to, for the link's counters and its speed. */
static inline u32 device_of(const struct npuemu_jfs *q, const struct npuemu_wqe *w)
{
	if (!w->op || !(w->op->flags & NPUEMU_OPF_REMOTE))
		return q->device;
	return (u32)(w->op->flags & NPUEMU_OPF_WRITE_ADD ? w->bb[2] : w->bb[3] >> 32) &
	       (NPUEMU_MAX_DEVICES - 1);
}

/* What the modelled device would have taken, one WQE after the other. */
static noinline void model(struct npuemu_jfs *q, const struct npuemu_wqe *w)
{
	u32 to = device_of(q, w);
	const struct npuemu_machine *m = q->chip->machine;
	const struct npuemu_engine_desc *e = &m->engine[q->type ? NPUEMU_ENGINE_SDMA :
							NPUEMU_ENGINE_UDMA];
	const struct npuemu_link_class *l =
		npuemu_machine_link(m, q->device, to < m->devices ? to : q->device);
	u64 rate = l->pair_mbytes_per_s;

	if (e->mbytes_per_s && e->mbytes_per_s < rate)
		rate = e->mbytes_per_s;
	q->model_ns += e->submit_ns + (rate ? w->len * 1000 / rate : 0);
	if ((u32)w->bb[0] & NPUEMU_SQE_CQE)
		q->model_ns += l->latency_ns;
}

static inline void count(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	u32 to = device_of(q, w);

	WRITE_ONCE(q->cnt->wqes, q->cnt->wqes + 1);
	WRITE_ONCE(q->cnt->bytes, q->cnt->bytes + w->done);
	if (q->helper)
		WRITE_ONCE(q->cnt->helped, q->cnt->helped + 1);
	if (unlikely(q->link_to != to))
		link_switch(q, to);
	WRITE_ONCE(q->cnt->link_wqes, q->cnt->link_wqes + 1);
	WRITE_ONCE(q->cnt->link_bytes, q->cnt->link_bytes + w->done);
}

bool npuemu_retire(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	u64 free_at = q->model_ns;

	if (unlikely(q->jfc->times))
		model(q, w);	/* first: its own entry has it */
	if (likely(!w->status)) {
		if ((u32)w->bb[0] & NPUEMU_SQE_CQE &&
		    unlikely(!npuemu_complete(q, w->first + w->nbb - 1, 0, (u32)w->len,
					      false))) {
			if (q->state != NPUEMU_QS_ERROR) {
				q->chip->ops->explain(q, "completion queue is full: poll it, or make it deeper");
				fail(q, NPUEMU_ST_WR_FLUSH_ERR);
			}
			q->model_ns = free_at;
			return false;
		}
		count(q, w);
		return true;
	}
	/*
	 * An error completes whether it was asked for or not.  The queue's state is
	 * first: who finds the entry may ask for it at once.  Another queue may take
	 * the room meanwhile; then the entry comes later, when there is some.
	 */
	if (npuemu_jfc_room(q->jfc, false)) {
		fail(q, w->status);
		if (npuemu_complete(q, w->first + w->nbb - 1, w->status, 0, false)) {
			count(q, w);
			WRITE_ONCE(q->cnt->errors, q->cnt->errors + 1);
			return true;
		}
	}
	q->model_ns = free_at;
	return false;
}

bool npuemu_flush_one(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	if (w->executed)
		return npuemu_retire(q, w);
	/* before the look for room, for which a receiver must not have to wait */
	if (w->token)
		q->chip->ops->send_cancel(q, w);
	w->token = 0;
	if (q->chip->ops->page_cancel)
		q->chip->ops->page_cancel(q);
	if (!npuemu_complete(q, w->first + w->nbb - 1, NPUEMU_ST_WR_FLUSH_ERR, 0, false))
		return false;
	WRITE_ONCE(q->cnt->flushed, q->cnt->flushed + 1);
	return true;
}

/* ERROR: everything outstanding completes as flushed, then one last entry. */
static bool flush(struct npuemu_jfs *q, bool *waiting)
{
	u32 budget;
	bool empty = true;

	if (q->win && !npuemu_flush_window(q, &empty))
		goto no_room;
	for (budget = NPUEMU_TURN_WQES; budget; budget--) {
		if (!q->busy) {
			if (q->pi == q->ci && !read_pi(q))
				break;
			if (q->pi == q->ci)
				break;
			if (!npuemu_fetch(q, &q->cur))
				break;
			WRITE_ONCE(q->busy, true);
		}
		if (!npuemu_flush_one(q, &q->cur))
			goto no_room;
		WRITE_ONCE(q->busy, false);
	}
	if (!budget)	/* flush-done comes last: look at the doorbell first */
		return true;
	if (q->flush_done_due) {
		if (!npuemu_complete(q, q->ci - 1, NPUEMU_ST_WR_FLUSH_ERR, 0, true))
			goto no_room;
		WRITE_ONCE(q->flush_done_due, false);
	}
	return false;

no_room:
	*waiting = true;
	return false;
}

/* Nothing about the queue asks for the long walk. */
static inline bool plain(const struct npuemu_jfs *q)
{
	return !q->type && !q->nfaults && !READ_ONCE(q->chip->trace) && !q->jfc->shared &&
	       !q->jfc->times;
}

static bool turn(struct npuemu_jfs *q, bool *waiting)
{
	struct npuemu_wqe *w = &q->cur;
	u32 budget;

	for (budget = NPUEMU_TURN_WQES; budget; budget--) {
		if (!q->busy) {
			if (q->state == NPUEMU_QS_READY && plain(q)) {
				if (q->pi == q->ci && !read_pi(q)) {
					fail(q, NPUEMU_ST_WR_FLUSH_ERR);
					break;
				}
				budget -= npuemu_run_plain(q, budget);
				if (!budget || !q->turn_bytes || q->pi == q->ci)
					break;
			}
			if (q->state != NPUEMU_QS_READY || !npuemu_fetch(q, w))
				break;
			WRITE_ONCE(q->busy, true);
		}
		if (!w->executed) {
			if (likely(!w->status)) {
				enum npuemu_step step = npuemu_execute(q, w);

				if (step == NPUEMU_STEP_MORE)
					return true;
				if (step == NPUEMU_STEP_WAIT) {
					*waiting = true;
					return false;
				}
			}
			w->executed = true;
		}
		if (unlikely(!npuemu_retire(q, w))) {
			*waiting = true;
			return false;
		}
		WRITE_ONCE(q->busy, false);
		if (!q->turn_bytes)
			break;
	}
	if (q->state == NPUEMU_QS_ERROR)
		return true;
	return q->state == NPUEMU_QS_READY && (q->pi != q->ci || READ_ONCE(*q->db_pi) != q->pi_raw);
}

bool npuemu_jfs_turn(struct npuemu_jfs *q, bool helper, bool *waiting)
{
	/* what was taken away before these moved must not be used after */
	u32 epoch = smp_load_acquire(&q->chip->epoch);
	u32 gen = READ_ONCE(*q->chip->fault_gen);
	bool more;

	if (unlikely(q->epoch != epoch)) {
		npuemu_places_drop(q);
		q->epoch = epoch;
	}
	if (unlikely(q->fault_gen != gen))
		npuemu_faults_load(q);
	q->turn_bytes = NPUEMU_TURN_BYTES;
	q->helper = helper;
	switch (q->state) {
	case NPUEMU_QS_RESET:
		return false;
	case NPUEMU_QS_ERROR:
		more = flush(q, waiting);
		break;
	default:
		more = q->win ? npuemu_run_window(q, waiting) : turn(q, waiting);
		break;
	}
	return more;
}

static void drop_all(struct npuemu_jfs *q)
{
	if (q->busy && q->cur.token)
		q->chip->ops->send_cancel(q, &q->cur);
	if ((q->busy || (q->win && q->win->count)) && q->chip->ops->page_cancel)
		q->chip->ops->page_cancel(q);
	if (q->win)
		npuemu_drop_window(q);
	link_switch(q, q->device);
	WRITE_ONCE(q->busy, false);
	WRITE_ONCE(q->ci, 0);
	WRITE_ONCE(q->pi, 0);
	q->pi_raw = 0;
	q->dwqe_seen = 0;
	q->dwqe_used = false;
	WRITE_ONCE(q->flush_done_due, false);
	WRITE_ONCE(q->last_status, 0);
	q->cause[0] = '\0';
}

int npuemu_jfs_modify(struct npuemu_jfs *q, u32 state)
{
	switch (state) {
	case NPUEMU_QS_RESET:
		drop_all(q);
		break;
	case NPUEMU_QS_READY:
		if (q->state != NPUEMU_QS_RESET && q->state != NPUEMU_QS_SUSPENDED)
			return -EINVAL;
		WRITE_ONCE(q->last_status, 0);
		q->cause[0] = '\0';
		break;
	case NPUEMU_QS_SUSPENDED:
		if (q->state != NPUEMU_QS_READY)
			return -EINVAL;
		break;
	case NPUEMU_QS_ERROR:
		if (q->state == NPUEMU_QS_ERROR)
			return 0;
		WRITE_ONCE(q->flush_done_due, true);
		break;
	default:
		return -EINVAL;
	}
	WRITE_ONCE(q->state, state);
	if (unlikely(READ_ONCE(q->chip->trace)))
		q->chip->ops->trace(q, NPUEMU_TR_STATE, q->ci, state);
	return 0;
}

void npuemu_jfs_init(struct npuemu_jfs *q)
{
	q->cqe_fixed[0] = NPUEMU_CQE_JETTY |
			  (u64)(q->id & 0xffff) << (32 + NPUEMU_CQE_LOCAL_LO_SHIFT);
	q->cqe_fixed[1] = q->id >> 16 & NPUEMU_CQE_LOCAL_HI_MASK;
	q->fault_gen = ~READ_ONCE(*q->chip->fault_gen);
	npuemu_places_drop(q);
	drop_all(q);
	q->state = NPUEMU_QS_READY;
}
