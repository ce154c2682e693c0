// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * WAIT: sleep until a CQ has something new or a word compares true, running
 * the process's own queues meanwhile.
 *
 * A context has one bell that all its sleepers share.  A sleeper announces
 * itself (CQ: jfc.waiters; word: its slot's bit in the buffer's mask), looks
 * again, and sleeps; an engine writes, passes a full fence, and looks whether
 * somebody announced himself.  One of the two sees the other.  Plain CPU stores
 * ring no bell, so words are read again every millisecond.
 */
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include "npuemu.h"

#define WORD_NS		((u64)NSEC_PER_MSEC)
#define CQ_NS		(100ull * NSEC_PER_MSEC)
#define HELP_TURNS	16	/* of one queue, before the next gets its turn */

/* ---- Bells ------------------------------------------------------------------------- */

void npuemu_op_wake(struct npuemu_chip *chip, struct npuemu_share *share)
{
	struct npuemu_ctx *ctx;
	u64 mask;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(share->waiters); i++)
		for (mask = READ_ONCE(share->waiters[i]); mask; mask &= mask - 1) {
			ctx = npuemu_ctx_slot(i * 64 + __ffs64(mask));
			if (ctx)
				wake_up_all(&ctx->bell);
		}
}

void npuemu_op_wake_cq(struct npuemu_chip *chip, struct npuemu_jfc *jfc)
{
	struct npuemu_cq *cq = jfc->host;
	struct eventfd_ctx *e = READ_ONCE(cq->eventfd);

	if (e)
		npuemu_eventfd_signal(e);
	wake_up_all(&cq->ctx->bell);
}

/* ---- Helping --------------------------------------------------------------------------- */

/* The next queue at or after @at, in a section of its own: others wait for us. */
static bool help_next(struct npuemu_ctx *ctx, unsigned long *at, bool *any)
{
	int idx = srcu_read_lock(&npuemu_turns);
	struct npuemu_queue *q = xa_find(&ctx->queues, at, ULONG_MAX, XA_PRESENT);
	u32 n;

	for (n = 0; q && n < HELP_TURNS; n++) {
		if (READ_ONCE(q->db_state) != NPUEMU_DB_RUN || !npuemu_queue_news(q) ||
		    !npuemu_queue_turn(q, true))
			break;
		*any = true;
	}
	srcu_read_unlock(&npuemu_turns, idx);
	return q;
}

bool npuemu_help(struct npuemu_ctx *ctx)
{
	unsigned long at;
	bool any = false;

	if (ctx->chip.chaos_seed)
		return false;
	for (at = 0; help_next(ctx, &at, &any); at++) {
		cond_resched();
		if (signal_pending(current))
			break;
	}
	return npuemu_pager_help(ctx) || any;
}

/* ---- What is waited for --------------------------------------------------------------------- */

static bool compare(u64 word, u32 cmp, u64 value)
{
	switch (cmp) {
	case 0:
		return word == value;
	case 1:
		return word != value;
	case 2:
		return word >= value;
	case 3:
		return word > value;
	case 4:
		return word <= value;
	case 5:
		return word < value;
	default:
		return word & value;
	}
}

/* 0 while nobody has touched it. */
static u64 word_read(const struct npuemu_local *l, u64 va)
{
	const struct npuemu_arena *a = l->arena;
	u64 off = l->off + (va - l->va);

	if (!npuemu_backed(a, off, sizeof(u64)))
		return 0;
	/* what was written before it, is seen after it */
	return smp_load_acquire((const u64 *)npuemu_arena_at(a, off));
}

/* 1 ready, 0 not yet.  In an npuemu_turns section. */
static int word_ready(struct npuemu_ctx *ctx, const struct npuemu_ioc_wait_item *it)
{
	struct npuemu_local l = { 0 };
	struct npuemu_ctx *owner;
	struct npuemu_bo *bo;

	if (npuemu_op_local(&ctx->chip, it->va, sizeof(u64), &l) || !l.arena)
		return -EFAULT;
	if (compare(word_read(&l, it->va), it->cmp, it->value))
		return 1;
	bo = container_of(l.arena, struct npuemu_bo, arena);
	if (!bo->owner_life)
		return 0;
	owner = npuemu_ctx_slot(bo->owner_slot);
	return owner && READ_ONCE(owner->life) == bo->owner_life ? 0 : -EOWNERDEAD;
}

static int item_ready(struct npuemu_ctx *ctx, const struct npuemu_ioc_wait_item *it)
{
	struct npuemu_cq *cq;

	if (it->kind == NPUEMU_WAIT_WORD)
		return word_ready(ctx, it);
	cq = xa_load(&ctx->cqs, it->handle);
	return cq ? READ_ONCE(cq->jfc.pi) != it->ci : -ENOENT;
}

/* Announce the sleeper, or take it back. */
static void item_announce(struct npuemu_ctx *ctx, const struct npuemu_ioc_wait_item *it, bool on)
{
	u64 bit = 1ull << (ctx->slot % 64);
	struct npuemu_local l = { 0 };
	struct npuemu_cq *cq;

	if (it->kind == NPUEMU_WAIT_CQ) {
		cq = xa_load(&ctx->cqs, it->handle);
		if (cq)
			npuemu_fetch_add(&cq->jfc.waiters, on ? 1 : -1u);
		return;
	}
	if (npuemu_op_local(&ctx->chip, it->va, sizeof(u64), &l) || !l.share)
		return;
	/* another thread's announcement may go with ours: hence the millisecond */
	if (on)
		npuemu_fetch_or(&l.share->waiters[ctx->slot / 64], bit);
	else
		npuemu_fetch_and(&l.share->waiters[ctx->slot / 64], ~bit);
}

struct waiting {
	struct npuemu_ctx *ctx;
	struct npuemu_ioc_wait_item *items;
	u32 nr;
	u32 flags;
	s64 deadline;
	bool words;
};

/* The index of the first ready item, -EAGAIN, or an error. */
static int look(struct waiting *w)
{
	int idx = srcu_read_lock(&npuemu_turns), r = 0;
	u32 i;

	for (i = 0; i < w->nr && !r; i++)
		r = item_ready(w->ctx, &w->items[i]);
	srcu_read_unlock(&npuemu_turns, idx);
	/* the word went with the device: told is the reset, not what came of it */
	if (r == -EFAULT && READ_ONCE(w->ctx->broken))
		return -ENODEV;
	return r < 0 ? r : r ? (int)i - 1 : -EAGAIN;
}

static void announce(struct waiting *w, bool on)
{
	int idx = srcu_read_lock(&npuemu_turns);
	u32 i;

	for (i = 0; i < w->nr; i++)
		item_announce(w->ctx, &w->items[i], on);
	srcu_read_unlock(&npuemu_turns, idx);
}

/* Asleep for at most @ns; what the look before it found. */
static int doze(struct waiting *w, u64 ns)
{
	DEFINE_WAIT(wait);
	ktime_t t = ns_to_ktime(ns);
	int r;

	announce(w, true);	/* locked operations: the fence before the second look */
	prepare_to_wait(&w->ctx->bell, &wait, TASK_INTERRUPTIBLE);
	/* it may sleep shortly, for SRCU: then we just go round once more */
	r = look(w);
	if (r == -EAGAIN && !READ_ONCE(w->ctx->broken) && !signal_pending(current)) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (!list_empty_careful(&wait.entry))
			schedule_hrtimeout_range(&t, min_t(u64, ns / 8, 50000), HRTIMER_MODE_REL);
	}
	finish_wait(&w->ctx->bell, &wait);
	announce(w, false);
	return r;
}

static int wait_until(struct waiting *w)
{
	u64 slice = w->words ? WORD_NS : CQ_NS, now;
	bool helped;
	int r;

	for (;;) {
		r = look(w);
		if (r != -EAGAIN)
			return r;
		if (READ_ONCE(w->ctx->broken))
			return -ENODEV;
		if (signal_pending(current))
			return -ERESTARTSYS;
		helped = !(w->flags & NPUEMU_WAITF_NO_HELP) && npuemu_help(w->ctx);
		now = ktime_get_ns();
		if ((s64)now >= w->deadline) {
			r = look(w);
			return r == -EAGAIN ? -ETIMEDOUT : r;
		}
		if (helped)
			continue;
		r = doze(w, min_t(u64, slice, (u64)w->deadline - now));
		if (r != -EAGAIN)
			return r;
	}
}

/* ---- The call ---------------------------------------------------------------------------- */

static int items_check(struct waiting *w)
{
	u32 i;

	for (i = 0; i < w->nr; i++) {
		const struct npuemu_ioc_wait_item *it = &w->items[i];

		switch (it->kind) {
		case NPUEMU_WAIT_CQ:
			if (it->cmp || it->va || it->value)
				return -EINVAL;
			break;
		case NPUEMU_WAIT_WORD:
			if (it->handle || it->ci || it->cmp > 6 || it->va & 7)
				return -EINVAL;
			w->words = true;
			break;
		default:
			return -EINVAL;
		}
	}
	return 0;
}

static void sleeper_begin(struct waiting *w, struct npuemu_sleeper *s)
{
	const struct npuemu_ioc_wait_item *it = &w->items[0];

	s->kind = it->kind;
	s->id = it->handle;
	s->object = it->va;
	s->expected = it->kind == NPUEMU_WAIT_CQ ? it->ci : it->value;
	s->since_ns = ktime_get_ns();
	spin_lock(&w->ctx->sleepers_lock);
	list_add_tail(&s->node, &w->ctx->sleepers);
	spin_unlock(&w->ctx->sleepers_lock);
}

static void sleeper_end(struct waiting *w, struct npuemu_sleeper *s)
{
	spin_lock(&w->ctx->sleepers_lock);
	list_del(&s->node);
	spin_unlock(&w->ctx->sleepers_lock);
}

void npuemu_describe_sleeper(struct npuemu_ctx *ctx, char *out, size_t room)
{
	struct npuemu_sleeper *s;
	u64 ms;

	out[0] = '\0';
	spin_lock(&ctx->sleepers_lock);
	s = list_first_entry_or_null(&ctx->sleepers, struct npuemu_sleeper, node);
	if (s) {
		ms = div_u64(ktime_get_ns() - s->since_ns, NSEC_PER_MSEC);
		if (s->kind == NPUEMU_WAIT_CQ)
			snprintf(out, room, "CQ %u beyond entry %llu, for %llu ms", s->id,
				 s->expected, ms);
		else
			snprintf(out, room, "word %#llx to compare with %#llx, for %llu ms",
				 s->object, s->expected, ms);
	}
	spin_unlock(&ctx->sleepers_lock);
}

int npuemu_ioc_wait(struct npuemu_file *f, struct npuemu_ioc_wait *a)
{
	struct waiting w = {
		.ctx = READ_ONCE(f->ctx), .nr = a->nr, .flags = a->flags,
		.deadline = a->deadline_ns,
	};
	struct npuemu_sleeper s;
	int r;

	if (a->pad || a->flags & ~NPUEMU_WAITF_NO_HELP || a->nr > NPUEMU_WAIT_ITEMS)
		return -EINVAL;
	if (npuemu_ctx_check(w.ctx) || READ_ONCE(f->dev->dead))
		return -ENODEV;
	if (!a->nr)
		return npuemu_help(w.ctx) ? 0 : -EAGAIN;
	w.items = memdup_user(u64_to_user_ptr(a->items), a->nr * sizeof(*w.items));
	if (IS_ERR(w.items))
		return PTR_ERR(w.items);
	r = items_check(&w);
	if (!r) {
		sleeper_begin(&w, &s);
		r = wait_until(&w);
		sleeper_end(&w, &s);
	}
	kfree(w.items);
	if (r < 0)
		return r;
	a->ready = r;
	return 0;
}
