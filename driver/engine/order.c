// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Order, and its absence.  Executing in posted order satisfies every order
 * bit, so that is what the engine does.  Chaos mode keeps a window of WQEs and
 * lets them overtake each other, in pieces and late, as far as the order bits
 * allow: what hardware does not promise then shows.  Completions stay in
 * order, because one retires all before it.
 */
#include "engine.h"

static u32 order_of(const struct npuemu_wqe *w)
{
	return ((u32)w->bb[0] & NPUEMU_SQE_ORDER_MASK) >> NPUEMU_SQE_ORDER_SHIFT;
}

static bool is_barrier(const struct npuemu_wqe *w)
{
	/* an SDMA notify comes after everything before it */
	return w->op && w->op->run == npuemu_run_sdma_notify;
}

bool npuemu_order_ready(const struct npuemu_wqe *const *w, u32 i)
{
	const struct npuemu_wqe *me = w[i];
	bool strong = order_of(me) == NPUEMU_ORDER_STRONG;
	bool fence = (u32)me->bb[0] & NPUEMU_SQE_FENCE;
	u32 j;

	for (j = 0; j < i; j++) {
		const struct npuemu_wqe *e = w[j];

		/* what failed never happened: who depends on it waits to be flushed */
		if (e->executed && !e->status)
			continue;
		if (is_barrier(me))
			return false;
		if (strong && order_of(e) != NPUEMU_ORDER_NONE)
			return false;
		if (fence && (!e->op || e->op->flags & NPUEMU_OPF_LOAD))
			return false;
		/* SENDs of a queue reach their receiver in order */
		if (me->op && me->op->run == npuemu_run_send &&
		    (!e->op || e->op->run == npuemu_run_send))
			return false;
	}
	return true;
}

static struct npuemu_wqe *at(struct npuemu_window *win, u32 i)
{
	return &win->w[(win->head + i) % NPUEMU_WINDOW];
}

/* Begun, and not yet executed: what SUSPENDED still lets run. */
static bool under_way(const struct npuemu_wqe *w)
{
	return !w->executed && (w->phase || w->fault_seen || w->held);
}

/* One of those that may go now: the next from a random start. */
static struct npuemu_wqe *pick(struct npuemu_jfs *q, struct npuemu_window *win)
{
	const struct npuemu_wqe *w[NPUEMU_WINDOW] = { NULL };
	u32 i, start, n = win->count;

	for (i = 0; i < n; i++) {
		w[i] = at(win, i);
		/* there is one set of bounce buffers: who has it goes on */
		if (w[i]->held)
			return at(win, i);
	}
	if (!n)
		return NULL;
	start = (u32)npuemu_random(&win->rng) % n;
	for (i = 0; i < n; i++) {
		u32 k = (start + i) % n;

		if (q->state != NPUEMU_QS_READY && !under_way(w[k]))
			continue;
		if (!w[k]->executed && npuemu_order_ready(w, k))
			return at(win, k);
	}
	return NULL;
}

static void fill(struct npuemu_jfs *q, struct npuemu_window *win)
{
	while (q->state == NPUEMU_QS_READY && win->count < NPUEMU_WINDOW) {
		struct npuemu_wqe *w = at(win, win->count);

		if (!npuemu_fetch(q, w))
			return;
		/* what is malformed has nothing to execute */
		w->executed = w->status != 0;
		w->backwards = !w->elem && npuemu_random(&win->rng) & 1;
		win->count++;
		if (w->status)
			return;
	}
}

/* One WQE, some bytes; what of @left they leave. */
static u64 step(struct npuemu_jfs *q, struct npuemu_window *win, u64 left, bool *waiting)
{
	struct npuemu_wqe *w = pick(q, win);
	u64 bytes;

	if (!w)
		return left;
	/* a multiple of 8 cuts no element */
	bytes = (npuemu_random(&win->rng) % 512 + 1) * 8;
	if (bytes > left)
		bytes = left;
	q->turn_bytes = bytes;
	switch (npuemu_execute(q, w)) {
	case NPUEMU_STEP_DONE:
		w->executed = true;
		break;
	case NPUEMU_STEP_WAIT:
		*waiting = true;
		break;
	case NPUEMU_STEP_MORE:
		break;
	}
	return left - (bytes - q->turn_bytes);
}

/* Is there anything left to do at once? */
static bool more(const struct npuemu_jfs *q, struct npuemu_window *win)
{
	u32 i;

	if (q->state == NPUEMU_QS_READY)
		return win->count || q->pi != q->ci || READ_ONCE(*q->db_pi) != q->pi_raw;
	for (i = 0; i < win->count; i++)
		if (under_way(at(win, i)) || (!i && at(win, i)->executed))
			return true;
	return false;
}

bool npuemu_run_window(struct npuemu_jfs *q, bool *waiting)
{
	struct npuemu_window *win = q->win;
	u32 budget = NPUEMU_TURN_WQES;
	u64 left = NPUEMU_TURN_BYTES;

	while (budget-- && left >= 8) {
		fill(q, win);
		if (q->state == NPUEMU_QS_ERROR)	/* a doorbell that cannot be */
			return true;
		if (!win->count)
			break;
		left = step(q, win, left, waiting);
		/* a late CQE costs nothing but the belief that it is early */
		while (win->count && at(win, 0)->executed && npuemu_random(&win->rng) % 4) {
			if (!npuemu_retire(q, at(win, 0))) {
				*waiting = true;
				return false;
			}
			win->head++;
			win->count--;
			if (q->state == NPUEMU_QS_ERROR)
				return true;
		}
		if (*waiting)
			return false;
	}
	return more(q, win);
}

bool npuemu_flush_window(struct npuemu_jfs *q, bool *empty)
{
	struct npuemu_window *win = q->win;

	while (win->count) {
		if (!npuemu_flush_one(q, at(win, 0)))
			return false;
		win->head++;
		win->count--;
	}
	*empty = true;
	return true;
}

void npuemu_drop_window(struct npuemu_jfs *q)
{
	struct npuemu_window *win = q->win;

	for (; win->count; win->count--, win->head++)
		if (at(win, 0)->token)
			q->chip->ops->send_cancel(q, at(win, 0));
}
