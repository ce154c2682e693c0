// SPDX-License-Identifier: MIT
/*
 * The same collectives by MPI: compiled with mpicc, where there is one, and run with
 * mpirun.  Prints "name repetition nanoseconds" as the other bench programs do: of one
 * operation, the slowest rank's.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../hccl_cases.h"

static float *in, *out;
static int rank, ranks;

static void once(const struct hccl_bench_case *c)
{
	int n = (int)hccl_bench_count(c, (unsigned int)ranks);

	switch (c->coll) {
	case COLL_ALLREDUCE:
		MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case COLL_REDUCESCATTER:
		MPI_Reduce_scatter_block(in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case COLL_ALLGATHER:
		MPI_Allgather(in, n, MPI_FLOAT, out, n, MPI_FLOAT, MPI_COMM_WORLD);
		break;
	case COLL_ALLTOALL:
		MPI_Alltoall(in, n, MPI_FLOAT, out, n, MPI_FLOAT, MPI_COMM_WORLD);
		break;
	default:
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

/* All ranks come to the same number. */
static double run(const struct hccl_bench_case *c, long n)
{
	double t, most;
	long i;

	for (i = 0; i < HCCL_BENCH_AGAIN(n); i++)
		once(c);
	MPI_Barrier(MPI_COMM_WORLD);
	t = MPI_Wtime();
	for (i = 0; i < n; i++)
		once(c);
	t = MPI_Wtime() - t;
	MPI_Allreduce(&t, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return most * 1e9;
}

static void check(const struct hccl_bench_case *c)
{
	long bad;

	hccl_bench_fill(c, (unsigned int)ranks, (unsigned int)rank, in);
	memset(out, 0xff, HCCL_BENCH_MOST);
	once(c);
	bad = hccl_bench_wrong(c, (unsigned int)ranks, (unsigned int)rank, out);
	if (bad < 0)
		return;
	fprintf(stderr, "%s: element %ld of rank %d is wrong\n", c->name, bad, rank);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static long calibrate(const struct hccl_bench_case *c, double want)
{
	long n = HCCL_BENCH_LEAST;
	double ns;

	for (ns = 0; ns < HCCL_BENCH_WARM_NS;)
		ns += run(c, n);
	while ((ns = run(c, n)) < want / 8)
		n *= 2;
	n = (long)((double)n * want / ns);
	return n < HCCL_BENCH_LEAST ? HCCL_BENCH_LEAST : n;
}

static long number(const char *name, long otherwise)
{
	const char *s = getenv(name);

	return s && *s ? strtol(s, NULL, 0) : otherwise;
}

int main(int argc, char **argv)
{
	long n[HCCL_BENCH_CASES], reps = number("BENCH_REPS", 5), r;
	double want = 1e6 * (double)number("BENCH_SAMPLE_MS", 6), ns;
	size_t i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	in = malloc(HCCL_BENCH_MOST);
	out = malloc(HCCL_BENCH_MOST);
	if (!in || !out)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(in, 0, HCCL_BENCH_MOST);
	for (i = 0; i < HCCL_BENCH_CASES; i++) {
		check(&hccl_bench_cases[i]);
		n[i] = calibrate(&hccl_bench_cases[i], want);
	}
	for (r = 0; r < reps; r++)
		for (i = 0; i < HCCL_BENCH_CASES; i++) {
			ns = run(&hccl_bench_cases[i], n[i]) / (double)n[i];
			if (!rank)
				printf("%s %ld %.17g\n", hccl_bench_cases[i].name, r, ns);
		}
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
