/* SPDX-License-Identifier: MIT */
/*
 * A stream of 8-byte WRITEs: BENCH_BATCH a doorbell, a completion for each,
 * destinations that walk over 4 KiB, the ring kept full.
 */
#ifndef NPUEMU_BENCH_STREAM_H
#define NPUEMU_BENCH_STREAM_H

#include "bench.h"

static inline void stream_batch(struct bench_queue *b, struct npuemu_queue *q, uint64_t at)
{
	uint32_t j;

	for (j = 0; j < BENCH_BATCH; j++)
		if (npuemu_post_write(q, b->src, 8, &b->target,
				      b->raddr + ((at + j) & 511) * 8,
				      NPUEMU_SQE_CQE | NPUEMU_RELAXED))
			bench_die("post: the ring is full");
	bench_try(npuemu_doorbell(q));
}

/* @n WRITEs, a multiple of BENCH_BATCH; ns they took. */
static inline double stream_full(struct bench_queue *b, uint64_t n)
{
	uint64_t posted = 0, done = 0;
	struct npuemu_wc wc[BENCH_BATCH];
	int i, got;
	double t;

	t = bench_now();
	while (done < n) {
		while (posted < n && npuemu_sq_space(b->q) >= BENCH_BATCH) {
			stream_batch(b, b->q, posted);
			posted += BENCH_BATCH;
		}
		got = npuemu_poll(b->cq, wc, BENCH_BATCH);
		for (i = 0; i < got; i++)
			b->bad |= wc[i].status;
		if (got < 0)
			bench_die("npuemu_poll: %s", npuemu_errmsg());
		done += (uint64_t)got;
	}
	return bench_now() - t;
}

#endif
