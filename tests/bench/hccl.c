// SPDX-License-Identifier: MIT
/*
 * HCCL's collectives, BENCH_RANKS ranks, a process each (or threads of this one:
 * BENCH_THREADS=1).  An operation is measured twice: call and synchronization, and 100
 * calls and one synchronization ("_deep").  In between, with the same ranks: the barrier
 * that ranks could have who share a word and yield ("floor"), and the copy limit
 * ("_limit", hccl_limit.h).  All times are the slowest rank's, of one operation.
 *
 * The first process opens nothing: it forks the ranks, tells them what to do next, and
 * they sleep while it measures the limit.
 *
 * Ranks that have just been woken are not what is measured: three of four may be on one
 * cpu then, and it takes the kernel tens of milliseconds to see that.  MPI's program does
 * one thing after the other without sleep, and so do ranks here; after a sleep they yield
 * to each other for a while first.
 */
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include "hccl_limit.h"
#include "hccl_rank.h"

#define RANKS	8u
#define DEEP	100u
#define AWAKE_NS	2e6	/* without a job, before a rank goes to sleep */
#define SETTLE_NS	200e6	/* after that sleep */

enum job {
	JOB_SYNC,
	JOB_DEEP,
	JOB_FLOOR,
	JOB_ARM,
	JOB_LOOK,
	JOB_END,
};

/* Shared by the ranks and who leads them. */
static struct lead {
	uint32_t go;		/* counts jobs; ranks sleep on it */
	uint32_t done;		/* ranks that are through; slept on by who leads */
	uint32_t job;
	uint32_t which;
	uint64_t n;
	HcclRootInfo root;
	_Alignas(64) uint32_t arrived;
	_Alignas(64) uint32_t turn;
	struct {
		_Alignas(64) double ns;
		long wrong;
	} rank[RANKS];
} *lead;

static struct {
	unsigned int ranks;
	bool threads, yields;
	bool slept;		/* the ranks */
	pid_t pid[RANKS];
	pthread_t thread[RANKS];
} b;

struct run {
	enum job job;
	uint32_t which;
	char name[40];
};

/* ---- Words to sleep on ------------------------------------------------------- */

static void wait_while(uint32_t *word, uint32_t value)
{
	struct timespec second = { .tv_sec = 1 };

	if (bench_acquire(word) == value)
		syscall(SYS_futex, word, FUTEX_WAIT, value, &second, NULL, 0);
}

static void wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The floor: nothing but a counter, and a yield where ranks share a cpu. */
static void meet(void)
{
	uint32_t turn = bench_acquire(&lead->turn);

	if (__atomic_add_fetch(&lead->arrived, 1, __ATOMIC_ACQ_REL) == b.ranks) {
		bench_store(&lead->arrived, 0);
		bench_release(&lead->turn, turn + 1);
		return;
	}
	while (bench_acquire(&lead->turn) == turn) {
		if (b.yields)
			sched_yield();
		else
			__builtin_ia32_pause();
	}
}

/* ---- A rank -------------------------------------------------------------------- */

static void work(struct hccl_bench_rank *r, enum job job, const struct hccl_bench_case *c,
		 uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++) {
		if (job == JOB_FLOOR) {
			meet();
			continue;
		}
		hccl_bench_issue(r, c);
		if (job == JOB_SYNC || i % DEEP == DEEP - 1 || i == n - 1)
			hccl_bench_sync(r);
	}
}

static void do_job(struct hccl_bench_rank *r, enum job job)
{
	const struct hccl_bench_case *c = &hccl_bench_cases[lead->which];
	double t;

	switch (job) {
	case JOB_ARM:
		hccl_bench_arm(r, c);
		return;
	case JOB_LOOK:
		lead->rank[r->rank].wrong = hccl_bench_look(r, c);
		return;
	default:
		work(r, job, c, HCCL_BENCH_AGAIN(lead->n));
		meet();
		t = bench_now();
		work(r, job, c, lead->n);
		lead->rank[r->rank].ns = bench_now() - t;
	}
}

static void next_job(uint32_t seen)
{
	double end = bench_now() + AWAKE_NS;

	while (bench_acquire(&lead->go) == seen)
		if (bench_now() < end)
			sched_yield();
		else
			wait_while(&lead->go, seen);
}

static void told_done(void)
{
	if (__atomic_add_fetch(&lead->done, 1, __ATOMIC_ACQ_REL) == b.ranks)
		wake(&lead->done);
}

static void rank_main(unsigned int rank)
{
	struct hccl_bench_rank r;
	uint32_t seen = 0;
	enum job job;

	if (!b.threads)
		acl_try(aclInit(NULL));
	hccl_bench_open(&r, rank, b.ranks);
	hccl_bench_buffers(&r, HCCL_BENCH_MOST);
	if (!rank)
		hccl_try(HcclGetRootInfo(&lead->root));
	meet();
	hccl_try(HcclCommInitRootInfo(b.ranks, &lead->root, rank, &r.comm));
	do {
		told_done();
		next_job(seen++);
		job = (enum job)lead->job;
		if (job != JOB_END)
			do_job(&r, job);
	} while (job != JOB_END);
	hccl_bench_close(&r);
	if (!b.threads)
		acl_try(aclFinalize());
	told_done();
}

/* ---- Who leads ------------------------------------------------------------------ */

static void ranks_are_there(void)
{
	unsigned int i;
	int status;

	for (i = 0; i < b.ranks && !b.threads; i++)
		if (b.pid[i] && waitpid(b.pid[i], &status, WNOHANG) == b.pid[i] && status)
			bench_die("rank %u ended with status %#x", i, status);
}

static void all_done(void)
{
	uint32_t done;

	while ((done = bench_acquire(&lead->done)) < b.ranks) {
		wait_while(&lead->done, done);
		ranks_are_there();
	}
}

static double tell(enum job job, uint32_t which, uint64_t n)
{
	double most = 0;
	unsigned int i;

	lead->job = job;
	lead->which = which;
	lead->n = n;
	bench_store(&lead->done, 0);
	__atomic_add_fetch(&lead->go, 1, __ATOMIC_RELEASE);
	wake(&lead->go);
	all_done();
	for (i = 0; i < b.ranks; i++)
		most = lead->rank[i].ns > most ? lead->rank[i].ns : most;
	return most;
}

static double told(void *arg, uint64_t n)
{
	double end = b.slept ? bench_now() + SETTLE_NS : 0;
	const struct run *run = arg;

	while (bench_now() < end)
		tell(JOB_FLOOR, 0, 100);
	b.slept = false;
	return tell(run->job, run->which, n);
}

static double limited(void *arg, uint64_t n)
{
	struct timespec nap = { .tv_nsec = (long)(2 * AWAKE_NS) };

	if (!b.slept)
		nanosleep(&nap, NULL);	/* until they sleep */
	b.slept = true;
	return limit_run(arg, n);
}

static void check(uint32_t which)
{
	unsigned int i;

	tell(JOB_ARM, which, 0);
	tell(JOB_SYNC, which, 0);
	tell(JOB_LOOK, which, 0);
	for (i = 0; i < b.ranks; i++)
		if (lead->rank[i].wrong >= 0)
			bench_die("%s: element %ld of rank %u is wrong",
				  hccl_bench_cases[which].name, lead->rank[i].wrong, i);
}

static void check_all(void)
{
	uint32_t i;

	for (i = 0; i < HCCL_BENCH_CASES; i++) {
		check(i);
		if (!b.threads && hccl_bench_cases[i].bytes > 8 &&
		    hccl_bench_cases[i].coll != COLL_BARRIER)
			limit_check(&hccl_bench_cases[i]);
	}
}

static void *rank_thread(void *arg)
{
	rank_main((unsigned int)(uintptr_t)arg);
	return NULL;
}

static void start(void)
{
	pid_t parent = getpid();
	unsigned int i;

	if (b.threads)
		acl_try(aclInit(NULL));
	for (i = 0; i < b.ranks; i++) {
		if (b.threads) {
			if (pthread_create(&b.thread[i], NULL, rank_thread, (void *)(uintptr_t)i))
				bench_die("no thread");
			continue;
		}
		b.pid[i] = fork();
		if (b.pid[i] < 0)
			bench_die("no process");
		if (b.pid[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		rank_main(i);
		_exit(0);
	}
	all_done();
}

static void end(void)
{
	unsigned int i;
	int status;

	tell(JOB_END, 0, 0);
	for (i = 0; i < b.ranks; i++) {
		if (b.threads) {
			pthread_join(b.thread[i], NULL);
			continue;
		}
		if (waitpid(b.pid[i], &status, 0) == b.pid[i] && status)
			bench_die("rank %u ended with status %#x", i, status);
	}
	if (b.threads)
		acl_try(aclFinalize());
}

/* ---- What is measured -------------------------------------------------------------- */

static struct run runs[3 * HCCL_BENCH_CASES + 1];
static struct bench_case list[3 * HCCL_BENCH_CASES + 1];
static unsigned int listed;

static void add(enum job job, uint32_t which, const char *suffix)
{
	struct run *run = &runs[listed];

	run->job = job;
	run->which = which;
	snprintf(run->name, sizeof(run->name), "%s%s", hccl_bench_cases[which].name, suffix);
	list[listed++] = (struct bench_case){
		run->name, told, run, job == JOB_DEEP ? DEEP : HCCL_BENCH_LEAST, 0
	};
}

static void add_limit(uint32_t which)
{
	struct run *run = &runs[listed];

	snprintf(run->name, sizeof(run->name), "%s_limit", hccl_bench_cases[which].name);
	list[listed++] = (struct bench_case){
		run->name, limited, (void *)(uintptr_t)&hccl_bench_cases[which],
		HCCL_BENCH_LEAST, 0
	};
}

/* Each rank has come to touch the buffers of all others, which is slow the first time. */
static void warm(void)
{
	double end;
	uint32_t i;

	for (i = 0; i < HCCL_BENCH_CASES && !b.threads; i++)
		for (end = bench_now() + HCCL_BENCH_WARM_NS; bench_now() < end;)
			tell(JOB_SYNC, i, HCCL_BENCH_LEAST);
}

/* All that the ranks do, then the limits. */
static void measure(void)
{
	const struct hccl_bench_case *c;
	char name[40];
	uint32_t i;

	for (i = 0; i < HCCL_BENCH_CASES; i++) {
		c = &hccl_bench_cases[i];
		if (b.threads && c->bytes > 8)
			continue;
		add(JOB_SYNC, i, "");
		if (c->bytes <= 1ul << 20)
			add(JOB_DEEP, i, "_deep");
		if (c->coll == COLL_BARRIER) {
			add(JOB_FLOOR, i, "");
			snprintf(runs[listed - 1].name, sizeof(runs[0].name), "floor");
		}
	}
	for (i = 0; i < HCCL_BENCH_CASES; i++)
		if (!b.threads && hccl_bench_cases[i].bytes > 8)
			add_limit(i);
	warm();
	bench_run(list, listed, !b.threads);
	/* seconds each: once a run, and there are several runs */
	for (i = 0; i < HCCL_BENCH_CASES && !b.threads; i++) {
		if (hccl_bench_cases[i].bytes <= 1ul << 20)
			continue;
		snprintf(name, sizeof(name), "%s_deep", hccl_bench_cases[i].name);
		bench_emit(name, 0, tell(JOB_DEEP, i, DEEP) / DEEP);
	}
}

int main(void)
{
	cpu_set_t cpus;

	b.ranks = bench_env("BENCH_RANKS", 2);
	b.threads = bench_env("BENCH_THREADS", 0);
	if (b.ranks < 2 || b.ranks > RANKS || b.ranks > LIMIT_RANKS)
		bench_die("BENCH_RANKS=%u is not in 2..%u", b.ranks, RANKS);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	b.yields = b.ranks > (unsigned int)CPU_COUNT(&cpus);
	lead = mmap(NULL, sizeof(*lead), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (lead == MAP_FAILED)
		bench_die("no memory");
	bench_start();
	start();
	if (!b.threads) {
		limit_open(b.ranks);
		bench_pin_tid(0, 0);
	}
	check_all();
	measure();
	check_all();
	end();
	return bench_end();
}
