/* SPDX-License-Identifier: MIT */
/*
 * Which collectives are measured, and what their data are: the same for npuemu, for MPI
 * and for the copy limit.  Bytes are those of the longest buffer of a rank, as nccl-tests
 * and hccl_test have it: all-gather's output, reduce-scatter's and all-to-all's input.
 * Floats, sums.
 */
#ifndef NPUEMU_BENCH_HCCL_CASES_H
#define NPUEMU_BENCH_HCCL_CASES_H

#include <stddef.h>
#include <stdint.h>

enum hccl_bench_coll {
	COLL_ALLREDUCE,
	COLL_REDUCESCATTER,
	COLL_ALLGATHER,
	COLL_ALLTOALL,
	COLL_BARRIER,
};

struct hccl_bench_case {
	const char *name;
	enum hccl_bench_coll coll;
	size_t bytes;
};

#define HCCL_BENCH_MOST		(16ul << 20)
#define HCCL_BENCH_LEAST	3	/* operations of a sample */
/*
 * So many before it do not count: some milliseconds after a case its data are no more in the
 * last level cache, which others than this machine use as well, and come back one by one.
 */
#define HCCL_BENCH_AGAIN(n)	((n) > HCCL_BENCH_LEAST ? 2 * (n) : 1)
#define HCCL_BENCH_WARM_NS	300e6	/* of each case, before the first sample of all */

__attribute__((unused))
static const struct hccl_bench_case hccl_bench_cases[] = {
	{ "barrier", COLL_BARRIER, 0 },
	{ "allreduce_8", COLL_ALLREDUCE, 8 },
	{ "allreduce_64k", COLL_ALLREDUCE, 64ul << 10 },
	{ "reducescatter_64k", COLL_REDUCESCATTER, 64ul << 10 },
	{ "allgather_64k", COLL_ALLGATHER, 64ul << 10 },
	{ "alltoall_64k", COLL_ALLTOALL, 64ul << 10 },
	{ "allreduce_1m", COLL_ALLREDUCE, 1ul << 20 },
	{ "reducescatter_1m", COLL_REDUCESCATTER, 1ul << 20 },
	{ "allgather_1m", COLL_ALLGATHER, 1ul << 20 },
	{ "alltoall_1m", COLL_ALLTOALL, 1ul << 20 },
	{ "allreduce_16m", COLL_ALLREDUCE, 16ul << 20 },
	{ "reducescatter_16m", COLL_REDUCESCATTER, 16ul << 20 },
	{ "allgather_16m", COLL_ALLGATHER, 16ul << 20 },
	{ "alltoall_16m", COLL_ALLTOALL, 16ul << 20 },
};

#define HCCL_BENCH_CASES	(sizeof(hccl_bench_cases) / sizeof(hccl_bench_cases[0]))

/* Elements that a call names: of a part, where a buffer has a part for each rank. */
static inline size_t hccl_bench_count(const struct hccl_bench_case *c, unsigned int ranks)
{
	size_t n = c->bytes / sizeof(float);

	return c->coll == COLL_ALLREDUCE || c->coll == COLL_BARRIER ? n : n / ranks;
}

/* Elements of a rank's input and output. */
static inline size_t hccl_bench_in(const struct hccl_bench_case *c, unsigned int ranks)
{
	return hccl_bench_count(c, ranks) *
		(c->coll == COLL_REDUCESCATTER || c->coll == COLL_ALLTOALL ? ranks : 1);
}

static inline size_t hccl_bench_out(const struct hccl_bench_case *c, unsigned int ranks)
{
	return hccl_bench_count(c, ranks) *
		(c->coll == COLL_ALLGATHER || c->coll == COLL_ALLTOALL ? ranks : 1);
}

/* Whole numbers that stay so: for 128 ranks a sum is below 2^24. */
static inline float hccl_bench_value(unsigned int rank, size_t i)
{
	return (float)(rank + 1) * (float)(i % 61 + 1);
}

static inline void hccl_bench_fill(const struct hccl_bench_case *c, unsigned int ranks,
				   unsigned int rank, float *in)
{
	size_t i, n = hccl_bench_in(c, ranks);

	for (i = 0; i < n; i++)
		in[i] = hccl_bench_value(rank, i);
}

static inline float hccl_bench_want(const struct hccl_bench_case *c, unsigned int ranks,
				    unsigned int rank, size_t i)
{
	size_t count = hccl_bench_count(c, ranks);

	switch (c->coll) {
	case COLL_ALLREDUCE:
		return hccl_bench_value(0, i) * (float)(ranks * (ranks + 1) / 2);
	case COLL_REDUCESCATTER:
		return hccl_bench_value(0, rank * count + i) * (float)(ranks * (ranks + 1) / 2);
	case COLL_ALLGATHER:
		return hccl_bench_value((unsigned int)(i / count), i % count);
	default:
		return hccl_bench_value((unsigned int)(i / count), rank * count + i % count);
	}
}

/* The first element of an output that is wrong; -1: none is. */
static inline long hccl_bench_wrong(const struct hccl_bench_case *c, unsigned int ranks,
				    unsigned int rank, const float *out)
{
	size_t i, n = hccl_bench_out(c, ranks);

	for (i = 0; i < n; i++)
		if (out[i] != hccl_bench_want(c, ranks, rank, i))
			return (long)i;
	return -1;
}

#endif
