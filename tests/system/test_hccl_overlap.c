// SPDX-License-Identifier: MIT
/*
 * Buffers to send from and to receive into that overlap, in the usual places and in any
 * other: what is received is what was sent before, on every rank.
 */
#include <stdlib.h>
#include <string.h>

#include "hccltest.h"

#define COUNT	1000u		/* a block */
#define ROOM	(16 * COUNT)	/* of the one buffer that both lie in */

typedef uint32_t word;

enum what {
	ALLREDUCE, REDUCE, REDUCESCATTER, REDUCESCATTERV, ALLGATHER, ALLGATHERV, SCATTER, ALLTOALL, ALLTOALLV, WHATS,
};

/* Where both begin; of the V forms also where the blocks lie: one after the other. */
struct spot {
	uint32_t in, out;
};

static word value(uint32_t rank, uint32_t at)
{
	return rank * 1000003u + at * 7u + 1;
}

/* What rank @me has at @i of its result: of the inputs, as they were. */
static word expected(enum what w, const struct spot *s, uint32_t ranks, uint32_t me, uint32_t i)
{
	uint32_t q, block = i / COUNT, in = i % COUNT;
	word sum = 0;

	switch (w) {
	case ALLREDUCE:
	case REDUCE:
		for (q = 0; q < ranks; q++)
			sum += value(q, s[q].in + i);
		return sum;
	case REDUCESCATTER:
	case REDUCESCATTERV:
		for (q = 0; q < ranks; q++)
			sum += value(q, s[q].in + me * COUNT + i);
		return sum;
	case SCATTER:
		return value(1, s[1].in + me * COUNT + i);
	case ALLGATHER:
	case ALLGATHERV:
		return value(block, s[block].in + in);
	default:
		return value(block, s[block].in + me * COUNT + in);
	}
}

static HcclResult call(struct ht_rank *r, enum what w, word *in, word *out)
{
	const HcclDataType type = HCCL_DATA_TYPE_UINT32;
	const HcclReduceOp sum = HCCL_REDUCE_SUM;
	uint64_t counts[HT_RANKS], displs[HT_RANKS];
	uint32_t i;

	for (i = 0; i < r->ranks; i++) {
		counts[i] = COUNT;
		displs[i] = (uint64_t)COUNT * i;
	}
	switch (w) {
	case ALLREDUCE:
		return HcclAllReduce(in, out, COUNT, type, sum, r->comm, r->stream);
	case REDUCE:
		return HcclReduce(in, out, COUNT, type, sum, 1, r->comm, r->stream);
	case REDUCESCATTER:
		return HcclReduceScatter(in, out, COUNT, type, sum, r->comm, r->stream);
	case REDUCESCATTERV:
		return HcclReduceScatterV(in, counts, displs, out, COUNT, type, sum, r->comm, r->stream);
	case ALLGATHER:
		return HcclAllGather(in, out, COUNT, type, r->comm, r->stream);
	case ALLGATHERV:
		return HcclAllGatherV(in, COUNT, out, counts, displs, type, r->comm, r->stream);
	case SCATTER:
		return HcclScatter(in, out, COUNT, type, 1, r->comm, r->stream);
	case ALLTOALL:
		return HcclAlltoAll(in, COUNT, type, out, COUNT, type, r->comm, r->stream);
	default:
		return HcclAlltoAllV(in, counts, displs, type, out, counts, displs, type, r->comm, r->stream);
	}
}

static void fill(word *host, uint32_t rank, void *dev)
{
	uint32_t i;

	for (i = 0; i < ROOM; i++)
		host[i] = value(rank, i);
	acl_ok(aclrtMemcpy(dev, ROOM * sizeof(word), host, ROOM * sizeof(word), ACL_MEMCPY_HOST_TO_DEVICE));
}

/* What is in the buffer when all is over: the result, and around it what was there. */
static void look(struct ht_rank *r, enum what w, const struct spot *s, word *want, const void *dev)
{
	uint64_t n = w == ALLGATHER || w == ALLGATHERV || w >= ALLTOALL ? (uint64_t)COUNT * r->ranks : COUNT;
	uint32_t i;

	if (w == REDUCE && r->rank != 1)
		n = 0;
	for (i = 0; i < n; i++)
		want[s[r->rank].out + i] = expected(w, s, r->ranks, r->rank, i);
	ht_compare("what was received", dev, want, ROOM * sizeof(word));
}

static void everything(struct ht_rank *r)
{
	/* of blocks: one buffer, its first and second block, and some words off; each rank otherwise */
	static const struct spot spots[] = {
		{ 0, 0 }, { COUNT, 0 }, { 0, COUNT }, { 8, 0 }, { 0, 8 }, { 0, 2 * COUNT }, { 2 * COUNT, 0 }, { 1, 8 * COUNT },
	};
	const uint32_t n = sizeof(spots) / sizeof(spots[0]);
	word *host = malloc(ROOM * sizeof(*host)), *dev = ht_device(ROOM * sizeof(*host), NULL);
	struct spot s[HT_RANKS];
	uint32_t w, i, k, same;

	for (w = 0; w < WHATS; w++)
		for (same = 0; same < 2; same++)
			for (i = 0; i < n; i++) {
				for (k = 0; k < r->ranks; k++)
					s[k] = spots[(i + (same ? 0 : k)) % n];
				/* these refuse one and the same buffer */
				for (k = 0; k < r->ranks; k++)
					if ((w >= ALLTOALL || w == ALLGATHERV || w == REDUCESCATTERV) && s[k].in == s[k].out)
						s[k] = spots[n - 1];
				fill(host, r->rank, dev);
				ht_barrier(r);
				ht_ok(call(r, (enum what)w, dev + s[r->rank].in, dev + s[r->rank].out));
				ht_sync(r);
				look(r, (enum what)w, s, host, dev);
				ht_barrier(r);
			}
	acl_ok(aclrtFree(dev));
	free(host);
}

static void overlap(void **state)
{
	(void)state;
	ht_run_both(everything, 4, false);
}

static void overlap_queue(void **state)
{
	(void)state;
	ht_env("NPUEMU_TRANSPORT", "queue");
	ht_run_both(everything, 3, false);
}

/* One step of a chain, for all ranks: sums of COUNT words from @in on go to @out. */
static void simulate(word (*all)[COUNT + 1], uint32_t ranks, uint32_t in, uint32_t out)
{
	static __thread word sum[COUNT];
	uint32_t q, i;

	memset(sum, 0, sizeof(sum));
	for (q = 0; q < ranks; q++)
		for (i = 0; i < COUNT; i++)
			sum[i] += all[q][in + i];
	for (q = 0; q < ranks; q++)
		memcpy(all[q] + out, sum, sizeof(sum));
}

#define ROUNDS	20u
#define KEPT	(64u * 4096u)	/* ranks may have some of others' latest copies open: 16 of each */

/* Deep: a copy is made when its turn comes, and not before; and its memory is given back. */
static void turns(struct ht_rank *r)
{
	word (*all)[COUNT + 1] = calloc(r->ranks, sizeof(*all)), *dev = ht_device(sizeof(*all), NULL);
	size_t before = 0, after = 0, total;
	uint32_t i, q, round;

	for (round = 0; round < ROUNDS; round++) {
		for (q = 0; q < r->ranks; q++)
			for (i = 0; i <= COUNT; i++)
				all[q][i] = value(q, i);
		acl_ok(aclrtMemcpy(dev, sizeof(*all), all[r->rank], sizeof(*all), ACL_MEMCPY_HOST_TO_DEVICE));
		ht_barrier(r);
		for (i = 0; i < 30; i++)
			ht_ok(HcclAllReduce(dev + (i + 1) % 2, dev + i % 2, COUNT, HCCL_DATA_TYPE_UINT32, HCCL_REDUCE_SUM, r->comm,
					    r->stream));
		ht_sync(r);
		for (i = 0; i < 30; i++)
			simulate(all, r->ranks, (i + 1) % 2, i % 2);
		ht_compare("a chain", dev, all[r->rank], sizeof(*all));
		ht_barrier(r);
		acl_ok(aclrtGetMemInfo(ACL_HBM_MEM, round ? &after : &before, &total));
		ht_barrier(r);
	}
	sys_true(after + KEPT >= before, "%zu bytes of 600 copies are not given back", before - after);
	acl_ok(aclrtFree(dev));
	free(all);
}

static void in_turn(void **state)
{
	(void)state;
	ht_run_both(turns, 3, false);
}

/* A model copies each time it runs. */
static void model(struct ht_rank *r)
{
	word (*all)[COUNT + 1] = calloc(r->ranks, sizeof(*all)), *dev = ht_device(sizeof(*all), NULL);
	aclmdlRI m;
	uint32_t i, q;

	for (q = 0; q < r->ranks; q++)
		for (i = 0; i <= COUNT; i++)
			all[q][i] = value(q, i);
	acl_ok(aclrtMemcpy(dev, sizeof(*all), all[r->rank], sizeof(*all), ACL_MEMCPY_HOST_TO_DEVICE));
	acl_ok(aclmdlRICaptureBegin(r->stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
	ht_ok(HcclAllReduce(dev, dev + 1, COUNT, HCCL_DATA_TYPE_UINT32, HCCL_REDUCE_SUM, r->comm, r->stream));
	ht_ok(HcclAllReduce(dev + 1, dev, COUNT, HCCL_DATA_TYPE_UINT32, HCCL_REDUCE_SUM, r->comm, r->stream));
	acl_ok(aclmdlRICaptureEnd(r->stream, &m));
	for (i = 0; i < 5; i++) {
		acl_ok(aclmdlRIExecuteAsync(m, r->stream));
		simulate(all, r->ranks, 0, 1);
		simulate(all, r->ranks, 1, 0);
	}
	ht_sync(r);
	ht_compare("a model", dev, all[r->rank], sizeof(*all));
	ht_barrier(r);
	acl_ok(aclmdlRIDestroy(m));
	acl_ok(aclrtFree(dev));
	free(all);
}

static void in_model(void **state)
{
	(void)state;
	ht_run_both(model, 3, false);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ht_test(overlap),
		ht_test(overlap_queue),
		ht_test(in_turn),
		ht_test(in_model),
	};

	ht_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
