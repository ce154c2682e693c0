// SPDX-License-Identifier: MIT
/*
 * Sleeping and waking.  A process has one bell word; its waiting threads sleep
 * on it.  A waiter says where it waits (a bit in the buffer's mask, or the
 * CQ's count), looks again, and sleeps; an engine that wrote looks at the mask
 * behind a full fence and rings.  Every wait has a deadline or reports.
 */
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "user.h"

#define SPIN_NS		20000ll		/* a sleep costs about as much */
#define LOOK_NS		100000000ll	/* life words are looked at this often */
#define WORD_NS		1000000ll	/* plain stores ring no bell */

void bell_ring(struct slot_head *s)
{
	npuemu_fetch_add(&s->bell, 1);
	if (READ_ONCE(s->sleepers))
		npuemu_futex_wake(&s->bell, INT_MAX);
}

void bell_ring_engine(struct slot_head *s)
{
	npuemu_fetch_add(&s->ebell, 1);
	if (READ_ONCE(s->esleep) != ENGINE_AWAKE)
		npuemu_futex_wake(&s->ebell, INT_MAX);
}

void bell_wake_share(struct npuemu_chip *chip, struct npuemu_share *share)
{
	struct user *u = chip->host;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(share->waiters); i++) {
		u64 mask = READ_ONCE(share->waiters[i]);

		while (mask) {
			u32 bit = (u32)__builtin_ctzll(mask);
			struct slot_head *s = slot_head(u, i * 64 + bit);

			mask &= mask - 1;
			if (LIFE_STATE(READ_ONCE(s->life)) == SLOT_LIVE)
				bell_ring(s);
			else
				npuemu_fetch_and(&share->waiters[i], ~(1ull << bit));
		}
	}
}

void bell_wake_cq(struct npuemu_chip *chip, struct npuemu_jfc *jfc)
{
	struct user *u = chip->host;

	(void)jfc;
	bell_ring(u->slot);
}

/* ---- One wait, for a CQ or a word --------------------------------------------- */

struct wait {
	struct user *u;
	struct npuemu_cq *cq;		/* or */
	const volatile u64 *word;
	u32 cmp;
	u64 value;
	struct npuemu_share *share;
	struct user_peer *owner;	/* of an imported word's buffer */
	u32 owner_slot;
	s64 start;
	s64 next_look;
	s64 next_report;
};

static bool ready(const struct wait *w)
{
	if (w->cq)
		return npuemu_cq_ready(w->cq);
	return npuemu_compare(__atomic_load_n(w->word, __ATOMIC_ACQUIRE), w->cmp, w->value);
}

/* Say in the slot what this thread waits for; NULL if too many already do. */
static struct slot_sleeper *sleeper_begin(const struct wait *w)
{
	u32 kind = w->cq ? SLEEP_CQ : SLEEP_WORD, i;

	for (i = 0; i < SLOT_SLEEPERS; i++) {
		struct slot_sleeper *s = &w->u->slot->sleeper[i];

		if (READ_ONCE(s->kind) || !npuemu_cas(&s->kind, SLEEP_NONE, kind))
			continue;
		WRITE_ONCE(s->id, !w->cq ? w->owner_slot : w->cq->only ? w->cq->only->jfs.id : NPUEMU_ANY);
		WRITE_ONCE(s->object, (u64)(uintptr_t)w->word);
		WRITE_ONCE(s->expected, w->value);
		WRITE_ONCE(s->since_ns, (u64)w->start);
		return s;
	}
	return NULL;
}

static void sleeper_end(struct slot_sleeper *s)
{
	if (s)
		smp_store_release(&s->kind, SLEEP_NONE);
}

static void report(struct wait *w, s64 now)
{
	struct npuemu_queue *q = w->cq ? w->cq->only : NULL;
	double sec = (double)(now - w->start) / 1e9;

	if (!w->cq)
		npuemu_log(NPUEMU_LOG_WARN, "still waiting after %.0f s: word %p is %#llx, wanted %#llx (cmp %u); it lies in memory of process %u (slot %u): see npuemu-smi",
			   sec, (const void *)w->word, (unsigned long long)*w->word,
			   (unsigned long long)w->value, w->cmp,
			   LIFE_PID(w->owner ? w->owner->life : w->u->life), w->owner_slot);
	else if (q)
		npuemu_log(NPUEMU_LOG_WARN, "still waiting after %.0f s: queue %u (device %u) has posted up to block %u and executed up to %u, state %u%s%s",
			   sec, q->jfs.id, q->jfs.device, q->view.pi, READ_ONCE(q->jfs.ci),
			   READ_ONCE(q->jfs.state), q->jfs.cause[0] ? ": " : "", q->jfs.cause);
	else
		npuemu_log(NPUEMU_LOG_WARN, "still waiting after %.0f s for a completion on a shared CQ: see npuemu-smi --queues",
			   sec);
}

/* Now and then: is the board sound, the owner alive, is it time to complain? */
static int look(struct wait *w, s64 now)
{
	if (now >= w->next_look) {
		w->next_look = now + LOOK_NS;
		if (board_check(&w->u->base))
			return npuemu_fail(-EUCLEAN, "the board was reset or is damaged");
		if (w->cq)
			peers_look(w->u);
		if (w->owner && (READ_ONCE(w->owner->gone) || !slot_alive(w->u, w->owner->slot, w->owner->life)))
			return npuemu_fail(-EOWNERDEAD, "process %u, which owns the awaited word, has died",
					   LIFE_PID(w->owner->life));
	}
	if (now >= w->next_report) {
		w->next_report = now + 60000000000ll;
		report(w, now);
	}
	return 0;
}

static void doze(struct wait *w, s64 ns)
{
	struct slot_head *s = w->u->slot;
	u32 me = w->u->slot_index, seen = READ_ONCE(s->bell);

	npuemu_fetch_add(&s->sleepers, 1);
	if (w->cq)
		npuemu_fetch_add(&w->cq->jfc.waiters, 1);
	else if (w->share)
		npuemu_fetch_or(&w->share->waiters[me / 64], 1ull << (me % 64));
	/* the locked operations above are the fence before this second look */
	if (!ready(w))
		npuemu_futex_wait(&s->bell, seen, ns);
	if (w->cq)
		npuemu_fetch_add(&w->cq->jfc.waiters, -1u);
	else if (w->share)
		npuemu_fetch_and(&w->share->waiters[me / 64], ~(1ull << (me % 64)));
	npuemu_fetch_add(&s->sleepers, -1u);
}

static bool spin(const struct wait *w, s64 until)
{
	u32 n;

	do {
		for (n = 0; n < 50; n++) {
			if (ready(w))
				return true;
			npuemu_relax();
		}
	} while (npuemu_now_ns() < until);
	return false;
}

static int wait_until(struct wait *w, s64 deadline)
{
	struct slot_sleeper *s = NULL;
	s64 slice = w->cq ? LOOK_NS : WORD_NS, now;
	bool helped;
	int err = 0;

	w->start = npuemu_now_ns();
	w->next_look = w->start + LOOK_NS;
	w->next_report = w->u->hang_report_ns ? w->start + w->u->hang_report_ns : INT64_MAX;
	for (;;) {
		if (ready(w))
			break;
		helped = user_help(&w->u->base, w->cq);
		now = npuemu_now_ns();
		if (now >= deadline && !ready(w)) {
			err = -ETIMEDOUT;
			break;
		}
		if (helped)
			continue;
		if (now - w->start < SPIN_NS && spin(w, w->start + SPIN_NS))
			break;
		if (!s)
			s = sleeper_begin(w);
		err = look(w, now);
		if (err)
			break;
		doze(w, deadline - now < slice ? deadline - now : slice);
	}
	sleeper_end(s);
	return err;
}

int user_wait_cq(struct npuemu_cq *cq, s64 deadline)
{
	struct wait w = { .u = user_of(cq->ctx), .cq = cq };
	int err = wait_until(&w, deadline);

	if (err == -ETIMEDOUT && deadline) {
		struct npuemu_queue *q = cq->only;

		return q ? npuemu_fail(err, "no completion within the deadline: queue %u (device %u) has executed block %u of %u posted%s%s",
				       q->jfs.id, q->jfs.device, READ_ONCE(q->jfs.ci), q->view.pi,
				       q->jfs.cause[0] ? ": " : "", q->jfs.cause) :
			   npuemu_fail(err, "no completion on the shared CQ within the deadline");
	}
	return err;
}

int user_wait_word(struct npuemu *ctx, const volatile u64 *word, u32 cmp, u64 value,
		   s64 deadline)
{
	struct user *u = user_of(ctx);
	struct wait w = { .u = u, .word = word, .cmp = cmp, .value = value };
	struct npuemu_buf *b;
	int err;

	pthread_mutex_lock(&u->lock);
	b = place_buffer(u, (u64)(uintptr_t)word, sizeof(*word));
	if (b) {
		w.share = READ_ONCE(b->share);
		w.owner = b->imported ? b->host : NULL;
		w.owner_slot = w.owner ? w.owner->slot : u->slot_index;
	}
	pthread_mutex_unlock(&u->lock);
	if (!b)
		return npuemu_fail(-EFAULT, "word %p is not in a buffer of this process", (const void *)word);
	err = wait_until(&w, deadline);
	if (err == -ETIMEDOUT && deadline)
		return npuemu_fail(err, "word %p is %#llx after the deadline, wanted %#llx (cmp %u)",
				   (const void *)word, (unsigned long long)READ_ONCE(*word),
				   (unsigned long long)value, cmp);
	return err;
}
