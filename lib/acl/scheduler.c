// SPDX-License-Identifier: MIT
/*
 * Who runs a stream, and when.
 *
 * A stream with something to do is QUEUED, and on the ready list.  The next to
 * come by owns and runs it: a thread that waits for it, one that waits for
 * another and has nothing better to do, or the scheduler's.  That thread naps
 * while there was something to do lately, so that who submits need not wake it;
 * then it sleeps.  A nap takes 100 us at first, and longer while others are always
 * there before it: on a busy machine each look costs somebody a switch.  A long one
 * is a doze: for what was woken, and may have waited long, it is called.
 *
 * A stream whose first task waits is PARKED.  What comes from this process (an
 * event, a host function) wakes it; for words in memory, deadlines and batches
 * that a fault delays, it is on the watch list, which the thread goes through
 * each time it comes round, at least every millisecond.
 */
#include <signal.h>
#include "npuacl.h"

#define NAP_NS		100000ll
#define LONGEST_NAP	800000ll	/* below WATCH_NS */
#define LONGEST_DOZE	6400000ll	/* if there is nothing to watch */
#define FRESH_NS	100000ll	/* not taken by the thread: see pop() */
#define WATCH_NS	1000000ll
#define LATELY_NS	250000000ll	/* to be woken costs who submits more than a doze each 6 ms */

static struct {
	pthread_mutex_t lock;
	struct ready {
		struct npuacl_stream *first, *last;
	} list[2];		/* ready: tasks came, what was waited for came; each in that order, @first also read without the lock */
	struct npuacl_stream *watched;
	u32 ready;		/* how many; read without the lock */
	u32 kick;		/* futex the thread sleeps on */
	u32 bed;		/* enum bed */
	u32 stop;
	bool started;
	pthread_t thread;
	s64 busy_ns;		/* when there was something to do last; the thread's */
} sched = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- The thread's bed -------------------------------------------------------------- */

enum bed {
	UP,			/* or back soon */
	DOZES,			/* tasks that just came can wait, nothing else */
	SLEEPS,
};

/* After a full fence behind what there is to do: pairs with go_to_bed(). */
static void kick_fenced(bool urgent)
{
	if (!urgent && READ_ONCE(sched.bed) < SLEEPS)
		return;
	npuemu_fetch_add(&sched.kick, 1);
	if (READ_ONCE(sched.bed) != UP)
		npuemu_futex_wake(&sched.kick, 1);
}

static void kick(bool urgent)
{
	smp_mb();
	kick_fenced(urgent);
}

void npuacl_nudge(void)
{
	if (READ_ONCE(sched.ready) && READ_ONCE(sched.bed) == DOZES)
		kick(true);
}

static void go_to_bed(u32 seen, s64 ns)
{
	bool sleeps = ns == INT64_MAX;

	if (ns > WATCH_NS)
		WRITE_ONCE(sched.bed, sleeps ? SLEEPS : DOZES);
	smp_mb(); /* in bed, before the look */
	if (!READ_ONCE(sched.list[1].first) && !(sleeps && READ_ONCE(sched.ready)) && !READ_ONCE(sched.stop))
		npuemu_futex_wait(&sched.kick, seen, ns);
	WRITE_ONCE(sched.bed, UP);
}

static void *sched_main(void *arg);

/* sched.lock held */
static void start(void)
{
	sigset_t all, old;

	if (sched.started)
		return;
	sigfillset(&all);
	/* a fault in a function of the program's is for the program, and check_fault.c */
	sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	if (!pthread_create(&sched.thread, NULL, sched_main, NULL))
		sched.started = true;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- The ready list ------------------------------------------------------------------ */

/* sched.lock held */
static void enlist(struct npuacl_stream *s, bool woken, s64 now)
{
	struct ready *l = &sched.list[woken];

	if (!s->listed) {
		WRITE_ONCE(s->listed, true);
		s->listed_woken = woken;
		s->listed_ns = now;
		s->ready_next = NULL;
		if (l->last)
			l->last->ready_next = s;
		else
			WRITE_ONCE(l->first, s);
		l->last = s;
		WRITE_ONCE(sched.ready, sched.ready + 1);
	}
	start();
}

/* It is QUEUED, for whoever is there first: one that waits does not take it off the list. */
static void push(struct npuacl_stream *s, bool woken)
{
	s64 now;

	smp_mb__after_atomic(); /* queued, before the look: pairs with pop() */
	if (READ_ONCE(s->listed)) {
		kick_fenced(woken);
		return;
	}
	now = npuemu_now_ns();
	pthread_mutex_lock(&sched.lock);
	enlist(s, woken, now);
	pthread_mutex_unlock(&sched.lock);
	kick(woken);
}

/* The list to take from next; NULL: none */
static struct ready *turn(s64 by)
{
	struct ready *fresh = &sched.list[0], *woken = &sched.list[1];

	if (fresh->first && fresh->first->listed_ns <= by)
		return fresh;
	return woken->first ? woken : NULL;
}

/*
 * Where tasks just came, more are likely to, and then a wait.  Who waits runs them
 * best: they are in its cache, and two cpus do not fight for the lines of the queue.
 * So only those are taken to which the first came by @by, and all that were woken.
 */
static struct npuacl_stream *pop(s64 by)
{
	struct npuacl_stream *s = NULL;
	struct ready *l;

	if (!READ_ONCE(sched.ready))
		return NULL;
	pthread_mutex_lock(&sched.lock);
	while ((l = turn(by))) {
		s = l->first;
		WRITE_ONCE(l->first, s->ready_next);
		if (!l->first)
			l->last = NULL;
		WRITE_ONCE(s->listed, false);
		WRITE_ONCE(sched.ready, sched.ready - 1);
		smp_mb(); /* off the list, before the look: pairs with push() */
		/* somebody who waits for it may have been quicker */
		if (npuemu_cas(&s->run, NPUACL_QUEUED, NPUACL_RUNNING))
			break;
		s = NULL;
	}
	pthread_mutex_unlock(&sched.lock);
	return s;
}

void npuacl_unlist(struct npuacl_stream *s)
{
	struct npuacl_stream **at, *prev = NULL;
	struct ready *l;

	pthread_mutex_lock(&sched.lock);
	l = &sched.list[s->listed_woken];
	for (at = &l->first; s->listed && *at; prev = *at, at = &(*at)->ready_next) {
		if (*at != s)
			continue;
		WRITE_ONCE(*at, s->ready_next);
		if (l->last == s)
			l->last = prev;
		WRITE_ONCE(s->listed, false);
		WRITE_ONCE(sched.ready, sched.ready - 1);
		break;
	}
	pthread_mutex_unlock(&sched.lock);
}

void npuacl_wake_idle(struct npuacl_stream *s)
{
	/* who gets it needs no fence of its own */
	if (READ_ONCE(s->run) == NPUACL_IDLE && npuemu_cas(&s->run, NPUACL_IDLE, NPUACL_QUEUED)) {
		push(s, false);
		return;
	}
	smp_mb(); /* issued, before the look at run: pairs with the end of npuacl_run() */
	if (READ_ONCE(s->run) == NPUACL_IDLE && npuemu_cas(&s->run, NPUACL_IDLE, NPUACL_QUEUED))
		push(s, false);
}

void npuacl_wake_parked(struct npuacl_stream *s)
{
	WRITE_ONCE(s->woken, true);
	smp_mb(); /* pairs with npuacl_run(): it sees woken, or we see it parked */
	if (npuemu_cas(&s->run, NPUACL_PARKED, NPUACL_QUEUED))
		push(s, true);
}

bool npuacl_try_own(struct npuacl_stream *s)
{
	return READ_ONCE(s->run) == NPUACL_QUEUED &&
	       npuemu_cas(&s->run, NPUACL_QUEUED, NPUACL_RUNNING);
}

/* ---- The watch list --------------------------------------------------------------------- */

void npuacl_watch(struct npuacl_stream *s)
{
	pthread_mutex_lock(&sched.lock);
	if (!s->watched) {
		WRITE_ONCE(s->watched, true);
		s->watch_next = sched.watched;
		WRITE_ONCE(sched.watched, s);
	}
	start();
	pthread_mutex_unlock(&sched.lock);
	kick(true);
}

/* sched.lock held */
static void unwatch(struct npuacl_stream *s)
{
	struct npuacl_stream **at = &sched.watched;

	if (!s->watched)
		return;
	while (*at != s)
		at = &(*at)->watch_next;
	WRITE_ONCE(*at, s->watch_next);
	smp_store_release(&s->watched, false);	/* whoever looked at its task is through with it */
}

void npuacl_unwatch(struct npuacl_stream *s)
{
	if (!smp_load_acquire(&s->watched))
		return;
	pthread_mutex_lock(&sched.lock);
	unwatch(s);
	pthread_mutex_unlock(&sched.lock);
}

/* Those that may go on do.  The lock keeps them, and the tasks that they are at, where they are. */
void npuacl_look(void)
{
	struct npuacl_stream *s, *next;
	bool any = false;
	s64 now;

	if (!READ_ONCE(sched.watched))
		return;
	now = npuemu_now_ns();
	pthread_mutex_lock(&sched.lock);
	smp_mb(); /* watched, before the looks at run: pairs with run_one(), and npuacl_unwatch() there */
	for (s = sched.watched; s; s = next) {
		next = s->watch_next;
		if (smp_load_acquire(&s->run) != NPUACL_PARKED || !npuacl_due(s, now))
			continue;
		WRITE_ONCE(s->woken, true);
		smp_mb(); /* as in npuacl_wake_parked() */
		/* or somebody has asked it meanwhile, and looks at woken */
		if (!npuemu_cas(&s->run, NPUACL_PARKED, NPUACL_QUEUED))
			continue;
		enlist(s, true, now);
		unwatch(s);
		any = true;
	}
	pthread_mutex_unlock(&sched.lock);
	if (any)
		kick(true);
}

/* ---- Running ------------------------------------------------------------------------------ */

/* It is parked at work: from here on who waits for it asks, or the scheduler's thread does. */
static void hand_over(struct npuacl_stream *s)
{
	if (!READ_ONCE(s->attended)) {
		npuacl_watch(s);
	} else if (READ_ONCE(s->sleepers)) {
		npuemu_fetch_add(&s->bell, 1);
		npuemu_futex_wake(&s->bell, INT32_MAX);
	}
}

static void run_one(struct npuacl_stream *s)
{
	enum npuacl_outcome out;

	for (;;) {
		WRITE_ONCE(s->woken, false);
		smp_mb(); /* who wakes from here on wakes again: before the look at the tasks */
		out = npuacl_progress(s);
		if (out == NPUACL_WAIT) {
			smp_store_release(&s->run, NPUACL_PARKED);
			smp_mb(); /* parked, before the looks: pairs with npuacl_leave(), and who goes to sleep */
			if (READ_ONCE(s->works))
				hand_over(s);
			if (!READ_ONCE(s->woken) || !npuemu_cas(&s->run, NPUACL_PARKED, NPUACL_RUNNING))
				return;
			continue;
		}
		smp_store_release(&s->run, NPUACL_IDLE);
		smp_mb(); /* idle, before the look: pairs with npuacl_wake_idle() */
		if (!npuacl_pending(s) || !npuemu_cas(&s->run, NPUACL_IDLE, NPUACL_RUNNING))
			return;
	}
}

/* Streams that this thread owns, and runs when it is through with the one it is at. */
static __thread struct soon {
	bool running;
	struct npuacl_stream *first, *last;
} soon;

void npuacl_run(struct npuacl_stream *s)
{
	bool outermost = !soon.running;

	soon.running = true;
	run_one(s);
	while (outermost && (s = soon.first)) {
		soon.first = s->soon_next;
		run_one(s);
	}
	if (outermost)
		soon.running = false;
}

void npuacl_wake_soon(struct npuacl_stream *s)
{
	WRITE_ONCE(s->woken, true);
	smp_mb(); /* as in npuacl_wake_parked() */
	if (!npuemu_cas(&s->run, NPUACL_PARKED, soon.running ? NPUACL_RUNNING : NPUACL_QUEUED))
		return;
	if (!soon.running) {
		push(s, true);
		return;
	}
	s->soon_next = NULL;
	if (soon.first)
		soon.last->soon_next = s;
	else
		soon.first = s;
	soon.last = s;
}

/*
 * To wait for a stream is to ask its work whether it can go on, so that the thread of
 * the scheduler need not.  It takes over from the last who leaves.
 */
void npuacl_attend(struct npuacl_stream *s)
{
	npuemu_fetch_add(&s->attended, 1);
}

void npuacl_leave(struct npuacl_stream *s)
{
	npuemu_fetch_add(&s->attended, -1u);
	smp_mb__after_atomic(); /* gone, before the look: pairs with npuacl_run() */
	if (READ_ONCE(s->run) == NPUACL_PARKED && READ_ONCE(s->works) && !READ_ONCE(s->attended))
		npuacl_watch(s);
}

bool npuacl_ask(struct npuacl_stream *s, bool sleepy)
{
	u64 done = READ_ONCE(s->done);

	if (READ_ONCE(s->run) != NPUACL_PARKED || !npuemu_cas(&s->run, NPUACL_PARKED, NPUACL_RUNNING))
		return false;
	s->sleepy = sleepy;
	npuacl_run(s);
	return READ_ONCE(s->done) != done;
}

static bool help(s64 by)
{
	struct npuacl_stream *s = pop(by);

	if (s)
		npuacl_run(s);
	return s;
}

bool npuacl_help(void)
{
	return help(INT64_MAX);
}

static void *sched_main(void *arg)
{
	s64 nap = NAP_NS, longest, now;
	u32 seen, before = 0;

	(void)arg;
	while (!READ_ONCE(sched.stop)) {
		seen = smp_load_acquire(&sched.kick);
		npuacl_look();
		now = npuemu_now_ns();
		/* what it was called for may be done already: more is likely to come */
		if (seen != before)
			sched.busy_ns = now;
		before = seen;
		if (help(now - FRESH_NS)) {
			sched.busy_ns = now;
			nap = NAP_NS;
			continue;
		}
		longest = READ_ONCE(sched.watched) ? LONGEST_NAP : LONGEST_DOZE;
		nap = nap < longest ? nap : longest;
		/* too fresh? */
		if (READ_ONCE(sched.ready))
			sched.busy_ns = now;
		if (now - sched.busy_ns < LATELY_NS) {
			go_to_bed(seen, nap);
			nap *= 4;
		} else if (READ_ONCE(sched.watched)) {
			go_to_bed(seen, WATCH_NS);
		} else {
			go_to_bed(seen, INT64_MAX);
			nap = NAP_NS;
		}
	}
	return NULL;
}

void npuacl_scheduler_stop(void)
{
	pthread_t thread;
	bool started;

	pthread_mutex_lock(&sched.lock);
	started = sched.started;
	thread = sched.thread;
	if (started)
		WRITE_ONCE(sched.stop, 1);
	pthread_mutex_unlock(&sched.lock);
	if (!started)
		return;
	WRITE_ONCE(sched.bed, SLEEPS);
	kick(true);
	pthread_join(thread, NULL);
	pthread_mutex_lock(&sched.lock);
	sched.started = false;
	WRITE_ONCE(sched.stop, 0);
	pthread_mutex_unlock(&sched.lock);
}

void npuacl_scheduler_fork(void)
{
	memset(&sched, 0, sizeof(sched));
	pthread_mutex_init(&sched.lock, NULL);
}
