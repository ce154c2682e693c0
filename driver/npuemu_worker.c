// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Engines: one kthread for the UDMA queues of a device, one for the SDMA ones.
 *
 * A hot queue (db_state RUN) is on its engine's list and is looked at in turn.
 * One that had nothing for poll_us is parked; when all are parked the thread
 * sleeps until a doorbell fault, or whoever else makes a queue hot, wakes it.
 * Queues that wait for somebody (a receiver, room in a CQ, a pager) or for some
 * time stay hot, and the thread naps between looks.  One that was lost with its
 * device (db_state LOST) stays hot until its flush is done.
 *
 * Threads that wait for completions run queues of their own process, too
 * (npuemu_wait.c); the owner word decides who does.
 */
#include <linux/freezer.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include "npuemu.h"
#include "npuemu_trace.h"

#define NAP_MIN_NS	(100ull * NSEC_PER_USEC)
#define NAP_MAX_NS	(10ull * NSEC_PER_MSEC)

/* What a round over the hot queues found. */
#define MOVED		0x1u	/* one got somewhere */
#define IDLES		0x2u	/* one has nothing, but is not parked yet */
#define WAITS		0x4u	/* one waits */

/* ---- The hot list ------------------------------------------------------------------- */

void npuemu_worker_kick(struct npuemu_worker *w)
{
	WRITE_ONCE(w->kicked, true);
	wake_up_process(w->task);
}

void npuemu_heat(struct npuemu_queue *q)
{
	struct npuemu_worker *w = q->worker;

	if (q->db_state >= NPUEMU_DB_LOST)
		return;
	/* npuemu_doorbell.c tells of its own */
	if (q->db_state == NPUEMU_DB_PARKED)
		trace_npuemu_wake(q, NPUEMU_WAKE_KICK);
	spin_lock(&w->lock);
	WRITE_ONCE(q->db_state, NPUEMU_DB_RUN);
	WRITE_ONCE(q->idle_since, 0);
	if (list_empty(&q->hot_node)) {
		list_add_tail(&q->hot_node, &w->hot);
		w->nhot++;
	}
	spin_unlock(&w->lock);
	npuemu_worker_kick(w);
}

void npuemu_cool(struct npuemu_queue *q)
{
	struct npuemu_worker *w = q->worker;

	spin_lock(&w->lock);
	if (!list_empty(&q->hot_node)) {
		list_del_init(&q->hot_node);
		w->nhot--;
	}
	spin_unlock(&w->lock);
}

/* ---- Turns ------------------------------------------------------------------------------ */

bool npuemu_queue_todo(const struct npuemu_queue *q)
{
	const struct npuemu_jfs *j = &q->jfs;
	u32 state = READ_ONCE(j->state);

	if (state == NPUEMU_QS_RESET)
		return false;
	if (READ_ONCE(j->busy) || (j->win && READ_ONCE(j->win->count)))
		return true;
	return state != NPUEMU_QS_SUSPENDED &&
	       (READ_ONCE(j->pi) != READ_ONCE(j->ci) || READ_ONCE(j->flush_done_due));
}

bool npuemu_queue_news(const struct npuemu_queue *q)
{
	u32 state = READ_ONCE(q->jfs.state);

	if (npuemu_queue_todo(q))
		return true;
	return (state == NPUEMU_QS_READY || state == NPUEMU_QS_ERROR) &&
	       npuemu_jfs_has_news(&q->jfs);
}

bool npuemu_queue_turn(struct npuemu_queue *q, bool helper)
{
	struct npuemu_jfs *j = &q->jfs;
	bool waiting = false, more, moved, lost;
	u32 ci, state, status;

	if (!npuemu_owner_try(&q->owner))
		return false;
	ci = j->ci;
	state = j->state;
	status = j->last_status;
	lost = READ_ONCE(q->db_state) == NPUEMU_DB_LOST;
	if (unlikely(lost))
		npuemu_jfs_modify(j, NPUEMU_QS_ERROR);
	more = npuemu_jfs_turn(j, helper, &waiting);
	/* here, not in op_explain(): now it is known what came of it */
	if (unlikely(j->state != state || j->last_status != status))
		trace_npuemu_error(j);
	moved = j->ci != ci || j->completed || j->turn_bytes != NPUEMU_TURN_BYTES;
	WRITE_ONCE(q->waits, waiting);
	npuemu_jfs_release(j);
	if (unlikely(lost) && !more && !waiting)	/* flush-done is written */
		npuemu_doorbell_kill(q);
	return moved || (more && !waiting);
}

/* ---- The engine thread ------------------------------------------------------------------- */

static struct npuemu_queue *next_hot(struct npuemu_worker *w)
{
	struct npuemu_queue *q;

	spin_lock(&w->lock);
	q = list_first_entry_or_null(&w->hot, struct npuemu_queue, hot_node);
	if (q)
		list_move_tail(&q->hot_node, &w->hot);
	spin_unlock(&w->lock);
	return q;
}

static u32 look(struct npuemu_worker *w, struct npuemu_queue *q, u64 now)
{
	if (npuemu_queue_news(q) || unlikely(READ_ONCE(q->db_state) == NPUEMU_DB_LOST)) {
		WRITE_ONCE(w->turns, w->turns + 1);
		if (npuemu_queue_turn(q, false)) {
			WRITE_ONCE(q->idle_since, 0);
			return MOVED;
		}
		/* somebody else has it, or it waits: no reason to spin */
		return WAITS;
	}
	if (!READ_ONCE(q->idle_since)) {
		WRITE_ONCE(q->idle_since, now);
		return IDLES;
	}
	if (now - READ_ONCE(q->idle_since) < READ_ONCE(q->poll_ns))
		return IDLES;
	if (!npuemu_doorbell_park(q))
		return IDLES;
	WRITE_ONCE(w->parks, w->parks + 1);
	return 0;
}

static u32 look_round(struct npuemu_worker *w)
{
	u32 n = READ_ONCE(w->nhot), found = 0;
	u64 now = ktime_get_ns();
	struct npuemu_queue *q;
	int idx;

	while (n--) {
		idx = srcu_read_lock(&npuemu_turns);
		q = next_hot(w);
		if (q)
			found |= look(w, q, now);
		srcu_read_unlock(&npuemu_turns, idx);
		if (!q)
			break;
		cond_resched();
	}
	return found;
}

/* Until somebody kicks, or for @ns (0: for as long as nothing is hot). */
static void nap(struct npuemu_worker *w, u64 ns)
{
	ktime_t t = ns_to_ktime(ns);

	set_current_state(TASK_IDLE);
	/* pairs with the wake-up after the store in npuemu_worker_kick() */
	if (!READ_ONCE(w->kicked) && !kthread_should_stop()) {
		if (ns)
			schedule_hrtimeout_range(&t, ns / 4, HRTIMER_MODE_REL);
		else if (!READ_ONCE(w->nhot))
			schedule();
	}
	__set_current_state(TASK_RUNNING);
	/* before the look that follows: a kick in between is either seen there, or stays */
	smp_store_mb(w->kicked, false);
}

static int engine(void *arg)
{
	struct npuemu_worker *w = arg;
	u64 backoff = 0;

	while (!kthread_should_stop()) {
		u32 found = look_round(w);

		if (found & MOVED) {
			backoff = 0;
			cond_resched();
		} else if (found & IDLES) {
			cpu_relax();
			cond_resched();
		} else if (found & WAITS) {
			backoff = clamp(backoff * 2, NAP_MIN_NS, NAP_MAX_NS);
			nap(w, backoff);
		} else {
			backoff = 0;
			WRITE_ONCE(w->sleeps, w->sleeps + 1);
			nap(w, 0);
		}
	}
	return 0;
}

int npuemu_worker_start(struct npuemu_worker *w, struct npuemu_dev *dev, const char *kind)
{
	struct task_struct *t;

	w->dev = dev;
	spin_lock_init(&w->lock);
	INIT_LIST_HEAD(&w->hot);
	t = kthread_create(engine, w, "npuemu%u-%s", dev->index, kind);
	if (IS_ERR(t))
		return PTR_ERR(t);
	w->task = t;
	wake_up_process(t);
	return 0;
}

void npuemu_worker_stop(struct npuemu_worker *w)
{
	kthread_stop(w->task);
}

/* ---- What the chip asks of its host ------------------------------------------------------ */

static bool op_alive(struct npuemu_chip *chip, u64 who)
{
	struct npuemu_ctx *ctx = npuemu_ctx_slot((u32)who - 1);

	return ctx && READ_ONCE(ctx->life) && ctx->chip.me == who;
}

static u64 op_now(void)
{
	return ktime_get_ns();
}

static void *op_zalloc(size_t bytes)
{
	return kvzalloc(bytes, GFP_KERNEL_ACCOUNT);
}

static void op_free(void *p)
{
	kvfree(p);
}

static __printf(2, 3) void op_explain(struct npuemu_jfs *q, const char *fmt, ...)
{
	va_list args;

	/* the first reason is the one that counts */
	if (!q->cause || q->cause[0])
		return;
	va_start(args, fmt);
	vsnprintf(q->cause, NPUEMU_CAUSE_BYTES, fmt, args);
	va_end(args);
}

const struct npuemu_host_ops npuemu_ops = {
	.local = npuemu_op_local,
	.peer = npuemu_op_peer,
	.arena = npuemu_op_arena,
	.back = npuemu_op_back,
	.wake = npuemu_op_wake,
	.wake_cq = npuemu_op_wake_cq,
	.alive = op_alive,
	.send = npuemu_op_send,
	.send_cancel = npuemu_op_send_cancel,
	.faults = npuemu_op_faults,
	.now = op_now,
	.trace = npuemu_op_trace,
	.zalloc = op_zalloc,
	.free = op_free,
	.explain = op_explain,
	.page = npuemu_op_page,
	.page_out = npuemu_op_page_out,
	.page_cancel = npuemu_op_page_cancel,
};
