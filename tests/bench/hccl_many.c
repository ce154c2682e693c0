// SPDX-License-Identifier: MIT
/*
 * Many ranks: 128 threads (BENCH_RANKS).  How long it takes until all have their
 * communicator (create_ns), what a rank that does nothing costs (rank_kib: its thread,
 * stream, communicator, and its share of what all have; device memory counts), and
 * whether an 8 B AllReduce and an AlltoAll with 1 MiB of input arrive at all of them
 * (..._right: ranks at which every element is as it has to be).
 */
#include "hccl_rank.h"
#include "memory.h"

#define RANKS	128u
#define TIMES	10u		/* operations of a measurement */

static struct {
	unsigned int ranks, reps;
	HcclRootInfo root;
	pthread_barrier_t all;	/* the ranks, and main() */
	double ns[RANKS];
	long wrong[RANKS];
} b;

static const struct hccl_bench_case cases[] = {
	{ "allreduce_8", COLL_ALLREDUCE, 8 },
	{ "alltoall_1m", COLL_ALLTOALL, 1ul << 20 },
};

static void meet(void)
{
	pthread_barrier_wait(&b.all);
}

static void one_case(struct hccl_bench_rank *r, const struct hccl_bench_case *c)
{
	unsigned int k, i;
	double t;

	hccl_bench_arm(r, c);
	hccl_bench_issue(r, c);
	hccl_bench_sync(r);
	b.wrong[r->rank] = hccl_bench_look(r, c);
	meet();
	meet();		/* main() has looked */
	for (k = 0; k < b.reps; k++) {
		meet();
		t = bench_now();
		for (i = 0; i < TIMES; i++) {
			hccl_bench_issue(r, c);
			hccl_bench_sync(r);
		}
		b.ns[r->rank] = bench_now() - t;
		meet();
	}
}

static void *rank_main(void *arg)
{
	struct hccl_bench_rank r;
	unsigned int i;

	hccl_bench_open(&r, (unsigned int)(uintptr_t)arg, b.ranks);
	meet();
	if (!r.rank)
		hccl_try(HcclGetRootInfo(&b.root));
	meet();
	hccl_try(HcclCommInitRootInfo(b.ranks, &b.root, r.rank, &r.comm));
	meet();
	meet();		/* main() has measured what that costs */
	hccl_bench_buffers(&r, cases[1].bytes);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		one_case(&r, &cases[i]);
	hccl_bench_close(&r);
	return NULL;
}

static double slowest(void)
{
	double most = 0;
	unsigned int i;

	for (i = 0; i < b.ranks; i++)
		most = b.ns[i] > most ? b.ns[i] : most;
	return most / TIMES;
}

static void lead_case(const struct hccl_bench_case *c)
{
	unsigned int i, right = 0, k;
	char name[40];

	meet();
	for (i = 0; i < b.ranks; i++)
		right += b.wrong[i] < 0;
	snprintf(name, sizeof(name), "%s_right", c->name);
	bench_emit(name, 0, right);
	meet();
	for (k = 0; k < b.reps; k++) {
		meet();
		meet();
		bench_emit(c->name, k, slowest());
	}
}

int main(void)
{
	pthread_t thread[RANKS];
	double before, t;
	unsigned int i;

	b.ranks = bench_env("BENCH_RANKS", RANKS);
	b.reps = bench_env("BENCH_REPS", 5);
	if (!b.ranks || b.ranks > RANKS)
		bench_die("BENCH_RANKS=%u is not in 1..%u", b.ranks, RANKS);
	pthread_barrier_init(&b.all, NULL, b.ranks + 1);
	touched_kib();		/* its own pages are no rank's */
	before = touched_kib();
	acl_try(aclInit(NULL));
	for (i = 0; i < b.ranks; i++)
		if (pthread_create(&thread[i], NULL, rank_main, (void *)(uintptr_t)i))
			bench_die("no thread");
	meet();
	t = bench_now();
	meet();
	meet();
	bench_emit("create_ns", 0, bench_now() - t);
	bench_emit("rank_kib", 0, (touched_kib() - before) / b.ranks);
	meet();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		lead_case(&cases[i]);
	for (i = 0; i < b.ranks; i++)
		pthread_join(thread[i], NULL);
	acl_try(aclFinalize());
	return bench_end();
}
