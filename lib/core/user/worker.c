// SPDX-License-Identifier: MIT
/*
 * Who runs the queues: the engine thread, and threads that help.
 *
 * A hot queue is one the engine looks at.  With helping, a post is executed in
 * the caller at once and the queue stays cold unless something is left; the
 * engine naps in short steps while the process posts, and sleeps soundly
 * otherwise.  Without helping (NPUEMU_ASYNC=1, chaos) a doorbell heats a cold
 * queue and the engine spins on hot ones for a while before it parks them.
 */
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "user.h"

#define NAP_NS		100000ll	/* 100 us */
#define RECENT_NS	10000000ll	/* naps go on for 10 ms after a post */
#define LAZY_NS		10000000ll	/* the longest nap with something waiting ... */
#define ALIVE_NS	100000000ll	/* peers' lives are looked at this often */
#define AWAKE_NS	250000000ll	/* doorbells are polled often for so long */
#define DROWSY_NS	100000000ll	/* ... and without, when doorbells must be polled */

/* Owner only: is something under way, or could something start? */
static bool queue_todo(const struct npuemu_queue *q)
{
	const struct npuemu_jfs *j = &q->jfs;

	if (j->state == NPUEMU_QS_RESET)
		return false;
	if (j->busy || (j->win && j->win->count))
		return true;
	return j->state != NPUEMU_QS_SUSPENDED && (j->pi != j->ci || j->flush_done_due);
}

static bool queue_runs(const struct npuemu_queue *q)
{
	return q->jfs.state == NPUEMU_QS_READY || q->jfs.state == NPUEMU_QS_ERROR;
}

/* Owner only: let others see where the queue stands. */
void queue_publish(struct npuemu_queue *q)
{
	struct slot_queue *s = &slot_queues(user_of(q->ctx), user_of(q->ctx)->slot_index)[q->index];

	WRITE_ONCE(s->pi, q->jfs.pi);
	WRITE_ONCE(s->ci, q->jfs.ci);
	WRITE_ONCE(s->pi_raw, q->jfs.pi_raw);
	WRITE_ONCE(s->dwqe, q->jfs.dwqe_seen);
	WRITE_ONCE(s->todo, queue_todo(q));
	if (unlikely(s->state != q->jfs.state || s->last_status != q->jfs.last_status)) {
		WRITE_ONCE(s->state, q->jfs.state);
		WRITE_ONCE(s->last_status, q->jfs.last_status);
	}
}

void queue_heat(struct user *u, struct npuemu_queue *q)
{
	u32 i = q->index, sleep;

	if (unlikely(READ_ONCE(u->chip.trace)))
		npuemu_trace_add(q->jfs.id, NPUEMU_TR_WAKE, q->view.pi, q->jfs.device, 0);
	WRITE_ONCE(q->cold, 0);
	npuemu_fetch_or(&u->hot[i / 64], 1ull << (i % 64));
	/* counted even if it is awake: it may be about to sleep */
	npuemu_fetch_add(&u->slot->ebell, 1);
	sleep = READ_ONCE(u->slot->esleep);
	/* a nap ends soon enough by itself when this thread can help instead */
	if (sleep >= ENGINE_DOZES || (sleep == ENGINE_NAPS && u->async))
		npuemu_futex_wake(&u->slot->ebell, INT_MAX);
}

/* Run the owned queue for one turn; did it get anywhere, is there more? */
static bool run(struct user *u, struct npuemu_queue *q, bool helper)
{
	struct npuemu_jfs *j = &q->jfs;
	u32 ci = j->ci, i = q->index;
	bool waiting = false, more = npuemu_jfs_turn(j, helper, &waiting);
	bool moved = j->ci != ci || j->completed || j->turn_bytes != NPUEMU_TURN_BYTES;

	if (unlikely(waiting))
		npuemu_fetch_or(&u->waiting[i / 64], 1ull << (i % 64));
	queue_publish(q);
	npuemu_jfs_release(j);
	if (unlikely(waiting)) {
		if (!(READ_ONCE(u->hot[i / 64]) >> (i % 64) & 1))
			queue_heat(u, q);
		return moved;
	}
	/* whoever left it here may not come back: the engine must know */
	if (more && !(READ_ONCE(u->hot[i / 64]) >> (i % 64) & 1))
		queue_heat(u, q);
	return more || moved;
}

bool queue_turn(struct user *u, u32 index, bool helper)
{
	u32 *owner = &slot_queues(u, u->slot_index)[index].owner;
	struct npuemu_queue *q;

	if (!npuemu_owner_try(owner))
		return false;
	/* looked up only now: who destroys a queue owns it, too */
	q = smp_load_acquire(&u->queues[index]);
	if (q)
		return run(u, q, helper);
	npuemu_owner_put(owner);
	return false;
}

int queue_own(struct npuemu_queue *q)
{
	s64 deadline = 0;
	u32 n;

	for (n = 0; !npuemu_owner_try(q->jfs.owner); n++) {
		if (n < 64)
			sched_yield();
		else
			usleep(50);
		if (n == 64)
			deadline = npuemu_now_ns() + GRACE_NS;
		if (n > 64 && npuemu_now_ns() > deadline)
			return npuemu_fail(-ETIMEDOUT, "queue %u has been in one turn for 10 s (a stopped thread? a damaged board?)",
					   q->jfs.id);
	}
	return 0;
}

/* More than any copy has that is not halved between two threads anyway. */
#define THROUGH_TURNS	1024u

int user_doorbell(struct npuemu_queue *q, bool through)
{
	struct user *u = user_of(q->ctx);
	struct npuemu_jfs *j = &q->jfs;

	/* while a process posts, its engine looks after dead peers: see rest() */
	if (unlikely(!READ_ONCE(u->posted))) {
		WRITE_ONCE(u->posted, 1);
		if (READ_ONCE(u->slot->esleep) == ENGINE_SLEEPS)
			bell_ring_engine(u->slot);
	}
	smp_store_release(q->db, q->view.pi);
	if (likely(!u->async)) {
		u32 turns = through ? THROUGH_TURNS : 1;

		/* ownership is handed back after each: others may want the queue gone */
		while (turns-- && likely(npuemu_owner_try(j->owner))) {
			bool waiting = false, more = npuemu_jfs_turn(j, true, &waiting);

			queue_publish(q);
			npuemu_jfs_release(j);
			if (unlikely(READ_ONCE(q->ctx->broken)))
				return npuemu_fail(-EUCLEAN, "npuemu_doorbell: the board was reset");
			if (likely(!more && !waiting && !npuemu_jfs_has_news(j)))
				return 0;
			if (waiting) {
				npuemu_fetch_or(&u->waiting[q->index / 64], 1ull << (q->index % 64));
				break;
			}
		}
		queue_heat(u, q);
		return 0;
	}
	smp_mb(); /* the index, before the look at who watches it; see cool() */
	if (READ_ONCE(q->cold))
		queue_heat(u, q);
	return 0;
}

bool user_help(struct npuemu *ctx, struct npuemu_cq *cq)
{
	struct user *u = user_of(ctx);
	bool any = false;
	u32 i;

	if (u->async)
		return false;
	if (cq && cq->only) {
		if (!npuemu_jfs_has_news(&cq->only->jfs) && !READ_ONCE(cq->only->jfs.busy) &&
		    !READ_ONCE(cq->only->jfs.flush_done_due))
			return false;
		/* ownership is handed back after each turn; the caller looks after a few */
		for (i = 0; i < 16 && queue_turn(u, cq->only->index, true); i++) {
			any = true;
			if (npuemu_cq_ready(cq))
				break;
		}
		return any;
	}
	any = inbox_run(u);
	for (i = 0; i < ARRAY_SIZE(u->hot); i++) {
		u64 mask = READ_ONCE(u->hot[i]);

		for (; mask; mask &= mask - 1)
			any |= queue_turn(u, i * 64 + (u32)__builtin_ctzll(mask), true);
	}
	return any;
}

static void queue_heat_if(struct user *u, u32 i, const struct npuemu_cq *cq)
{
	struct npuemu_queue *q = smp_load_acquire(&u->queues[i]);

	if (q && q->cq == cq)
		queue_heat(u, q);
}

/* The poller made room in a CQ that had run out of it. */
void user_unstarve(struct npuemu_cq *cq)
{
	struct user *u = user_of(cq->ctx);
	u32 i;

	WRITE_ONCE(cq->jfc.starved, 0);
	for (i = 1; i < u->slot->queues_hi && i < SLOT_QUEUES; i++)
		queue_heat_if(u, i, cq);
}

/* ---- The engine thread ----------------------------------------------------------- */

/* By what its last owner published, without owning it. */
static bool doorbell_moved(struct user *u, u32 k)
{
	const struct slot_queue *s = &slot_queues(u, u->slot_index)[k];
	const u32 *page = (const u32 *)(void *)(u->db_alias + (size_t)k * NPUEMU_DB_PAGE_SIZE);

	return READ_ONCE(page[NPUEMU_DB_PI / 4]) != READ_ONCE(s->pi_raw) ||
	       (READ_ONCE(u->raw[k / 64]) >> (k % 64) & 1 &&
		READ_ONCE(page[NPUEMU_DB_DWQE / 4]) != READ_ONCE(s->dwqe));
}

/* Worth a turn? */
static bool maybe_news(struct user *u, u32 k)
{
	return doorbell_moved(u, k) || READ_ONCE(slot_queues(u, u->slot_index)[k].todo);
}

/* One round over the hot queues: did any get anywhere? */
static bool round_hot(struct user *u)
{
	bool any = false;
	u32 i, words = READ_ONCE(u->slot->queues_hi) / 64 + 1;

	for (i = 0; i < words && i < SLOT_QUEUES / 64; i++) {
		u64 mask = READ_ONCE(u->hot[i]);

		if (likely(!mask))
			continue;
		for (; mask; mask &= mask - 1) {
			u32 k = i * 64 + (u32)__builtin_ctzll(mask);

			if (!maybe_news(u, k))
				continue;
			WRITE_ONCE(u->slot->engine_turns, u->slot->engine_turns + 1);
			any |= queue_turn(u, k, false);
		}
	}
	return any;
}

/*
 * Stop looking at a queue.  Pairs with the fence in user_doorbell().  {cold,
 * protect} here and {hot, unprotect} in doorbell.c's fault() both happen under
 * the queue's ownership: else a page could be left open with nobody looking.
 */
static void cool(struct user *u, u32 k)
{
	struct npuemu_queue *q;
	u32 *owner = &slot_queues(u, u->slot_index)[k].owner;
	u64 bit = 1ull << (k % 64);

	if (!npuemu_owner_try(owner))
		return;
	npuemu_fetch_and(&u->hot[k / 64], ~bit);
	npuemu_fetch_and(&u->waiting[k / 64], ~bit);
	q = smp_load_acquire(&u->queues[k]);
	if (q) {
		WRITE_ONCE(u->slot->engine_parks, u->slot->engine_parks + 1);
		if (unlikely(READ_ONCE(u->chip.trace)))
			npuemu_trace_add(q->jfs.id, NPUEMU_TR_PARK, q->jfs.pi, q->jfs.device, 0);
		xchg(&q->cold, 1);
		if (q->jfs.raw)
			doorbell_protect(u, k, true);
		/* only now, with every way to store closed or heard: anything new? */
		if (queue_todo(q) || (queue_runs(q) && npuemu_jfs_has_news(&q->jfs))) {
			WRITE_ONCE(q->cold, 0);
			npuemu_fetch_or(&u->hot[k / 64], bit);
		}
	}
	npuemu_owner_put(owner);
}

static bool any_hot(struct user *u)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(u->hot); i++)
		if (READ_ONCE(u->hot[i]))
			return true;
	return false;
}

/* Cool what does not wait for something; how many stay hot? */
static bool cool_all(struct user *u)
{
	bool left = false;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(u->hot); i++) {
		u64 mask = READ_ONCE(u->hot[i]), waiting = READ_ONCE(u->waiting[i]);

		for (; mask; mask &= mask - 1) {
			u32 k = i * 64 + (u32)__builtin_ctzll(mask);

			if (waiting >> (k % 64) & 1)
				left = true;
			else
				cool(u, k);
		}
		/* set again by the next turn that still waits */
		npuemu_fetch_and(&u->waiting[i], ~waiting);
	}
	return left;
}

/* Without userfaultfd: has a raw doorbell moved while nobody looked? */
static bool raw_news(struct user *u)
{
	bool any = false;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(u->raw); i++) {
		u64 mask = READ_ONCE(u->raw[i]) & ~READ_ONCE(u->hot[i]);

		for (; mask; mask &= mask - 1) {
			u32 k = i * 64 + (u32)__builtin_ctzll(mask);
			u32 *owner = &slot_queues(u, u->slot_index)[k].owner;
			struct npuemu_queue *q;

			if (!maybe_news(u, k) || !npuemu_owner_try(owner))
				continue;
			q = smp_load_acquire(&u->queues[k]);
			if (q && (queue_todo(q) ||
				  (queue_runs(q) && npuemu_jfs_has_news(&q->jfs)))) {
				WRITE_ONCE(q->cold, 0);
				npuemu_fetch_or(&u->hot[i], 1ull << (k % 64));
				any = true;
			}
			npuemu_owner_put(owner);
		}
	}
	return any;
}

static bool any_raw(struct user *u)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(u->raw); i++)
		if (READ_ONCE(u->raw[i]))
			return true;
	return false;
}

static bool inbox_news(struct user *u)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(u->slot->inbox); i++)
		if (READ_ONCE(u->slot->inbox[i]))
			return true;
	return false;
}

/* @seen: the bell before the last look at what there is to do. */
static void nap(struct user *u, u32 kind, s64 ns, u32 seen)
{
	xchg(&u->slot->esleep, kind);
	/* after the fence: whoever came before it sees us asleep, or we see its work */
	if (!READ_ONCE(u->stop) && !inbox_news(u))
		npuemu_futex_wait(&u->slot->ebell, seen, ns);
	WRITE_ONCE(u->slot->esleep, ENGINE_AWAKE);
}

struct pace {
	s64 idle_since;		/* 0: not idle */
	s64 last_work;		/* something was hot */
	s64 last_post;
	s64 next_look;		/* at the lives of peers */
	s64 backoff;
	u32 spins;		/* since the clock was last read */
	u32 bell;		/* as of the last sweep */
};

/*
 * A bell may mean that somebody died, and while the process posts nobody else
 * would notice: forget dead peers.
 */
static void housekeeping(struct user *u, struct pace *p, s64 now)
{
	u32 bell = READ_ONCE(u->slot->ebell);

	if (now >= p->next_look) {
		p->next_look = now + ALIVE_NS;
		board_check(&u->base);
		peers_look(u);
	}
	/* never wait for the lock: its holder may be waiting for a turn of ours */
	if (bell == p->bell || pthread_mutex_trylock(&u->lock))
		return;
	p->bell = bell;
	peers_sweep(u);
	arena_sweep_zombies(u);
	pthread_mutex_unlock(&u->lock);
}

/* How long to sleep once everything is parked. */
static s64 sleep_time(struct user *u, struct pace *p, s64 now, bool waits)
{
	bool polls = u->uffd < 0 && any_raw(u);

	p->backoff = p->backoff ? p->backoff * 2 : NAP_NS;
	/*
	 * Waking every 10 ms costs more than 0.1 % of a core by itself, so after a
	 * while without a store the polling of raw doorbells gets slower still.
	 */
	if (p->backoff > LAZY_NS && (waits || now - p->idle_since < AWAKE_NS))
		p->backoff = LAZY_NS;
	if (p->backoff > DROWSY_NS)
		p->backoff = DROWSY_NS;
	if (waits || polls)
		return p->backoff;
	/* a tick or two after the last post, then soundly */
	return now - p->last_post < ALIVE_NS || READ_ONCE(u->slot->ebell) != p->bell ? LAZY_NS :
	       INT64_MAX;
}

/* Nothing to do just now: spin, nap, or park and sleep. */
static void rest(struct user *u, struct pace *p, u32 seen)
{
	s64 now, ns;
	bool waits, hot;

	if (p->spins++ % 32) {
		npuemu_relax();
		return;
	}
	now = npuemu_now_ns();
	hot = any_hot(u);
	if (!p->idle_since)
		p->idle_since = now;
	if (hot && !p->backoff)
		p->last_work = now;
	if (READ_ONCE(u->posted)) {
		WRITE_ONCE(u->posted, 0);
		p->last_post = now;
	}
	housekeeping(u, p, now);
	if ((u->async || any_raw(u)) && hot && now - p->idle_since < u->poll_ns) {
		npuemu_relax();
		return;
	}
	p->spins = 0;
	if (!u->async && now - p->last_work < RECENT_NS && now - p->idle_since < RECENT_NS) {
		nap(u, ENGINE_NAPS, NAP_NS, seen);
		return;
	}
	waits = cool_all(u);
	if (any_hot(u) && !waits)
		return;
	ns = sleep_time(u, p, now, waits);
	WRITE_ONCE(u->slot->engine_sleeps, u->slot->engine_sleeps + 1);
	nap(u, ns == INT64_MAX ? ENGINE_SLEEPS : ENGINE_DOZES, ns, seen);
	if (ns == INT64_MAX) {
		p->backoff = 0;
		p->idle_since = 0;
	}
	if (u->uffd < 0 && raw_news(u))
		p->idle_since = 0;
}

static void engine_loop(struct user *u)
{
	struct pace p = { .bell = READ_ONCE(u->slot->ebell) };
	u32 busy = 0;

	while (!READ_ONCE(u->stop)) {
		u32 seen = READ_ONCE(u->slot->ebell);
		bool any = round_hot(u);

		any |= inbox_run(u);
		if (any) {
			p.idle_since = 0;
			p.backoff = 0;
			if (!(++busy % 4096))
				housekeeping(u, &p, npuemu_now_ns());
			continue;
		}
		rest(u, &p, seen);
	}
}

/* The slot's robust mutex: held as long as this thread, and so the process, lives. */
static int take_life(struct user *u)
{
	s64 deadline = npuemu_now_ns() + 5000000000ll;
	int r;

	for (;;) {
		r = pthread_mutex_trylock(&u->slot->alive);
		if (r == EOWNERDEAD)
			r = pthread_mutex_consistent(&u->slot->alive);
		if (!r)
			return 0;
		if (r != EBUSY || npuemu_now_ns() > deadline)
			return -EUCLEAN;
		usleep(100);	/* somebody is looking whether it is free */
	}
}

static void *engine(void *arg)
{
	struct user *u = arg;

	prctl(PR_SET_NAME, "npuemu-engine");
	if (take_life(u)) {
		smp_store_release(&u->engine_ready, 2);
		npuemu_futex_wake(&u->engine_ready, 1);
		return NULL;
	}
	/* failing, somebody took us for dead: another pid namespace on the board? */
	if (!npuemu_cas(&u->slot->life, LIFE(SLOT_CLAIMED, LIFE_GEN(u->life), getpid()), u->life)) {
		pthread_mutex_unlock(&u->slot->alive);
		smp_store_release(&u->engine_ready, 2);
		npuemu_futex_wake(&u->engine_ready, 1);
		return NULL;
	}
	smp_store_release(&u->engine_ready, 1);
	npuemu_futex_wake(&u->engine_ready, 1);
	engine_loop(u);
	pthread_mutex_unlock(&u->slot->alive);
	return NULL;
}

int worker_start(struct user *u)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&u->engine, NULL, engine, u);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return npuemu_fail(-err, "cannot start the engine thread: %s", strerror(err));
	u->engine_started = true;
	while (!smp_load_acquire(&u->engine_ready))
		npuemu_futex_wait(&u->engine_ready, 0, 100000000);
	if (u->engine_ready != 1)
		return npuemu_fail(-EUCLEAN, "slot %u of board \"%s\" is damaged: npuemu-ctl reset",
				   u->slot_index, u->name);
	return 0;
}

void worker_stop(struct user *u)
{
	WRITE_ONCE(u->stop, 1);
	if (!u->engine_started)
		return;
	bell_ring_engine(u->slot);
	pthread_join(u->engine, NULL);
	u->engine_started = false;
}
