/* SPDX-License-Identifier: MIT */
/*
 * The bare ring: what a queue of 64-byte entries costs when nothing is checked.
 * A 64-byte WQE goes in with 8-byte stores, its 8-byte store is executed, a
 * 64-byte CQE comes out and is read whole; one CQE for every WQE; the doorbell
 * is a line with the producer index.  In one thread, or with the executing side
 * on the other cpu.
 */
#ifndef NPUEMU_BENCH_BARE_H
#define NPUEMU_BENCH_BARE_H

#include "bench.h"

struct bare {
	_Alignas(64) uint64_t *sq;
	uint64_t *cq;
	uint32_t pi, ci;		/* the posting side's */
	uint64_t sum;
	_Alignas(64) uint32_t doorbell;
	_Alignas(64) uint32_t ready;
	uint32_t stop;
	_Alignas(64) uint32_t ei;	/* the executing side's */
	_Alignas(64) uint64_t src[8];
	uint64_t dst[512];
};

static inline struct bare *bare_new(void)
{
	struct bare *b = aligned_alloc(64, (sizeof(*b) + 63) & ~(size_t)63);

	if (!b)
		bench_die("bare ring: no memory");
	memset(b, 0, sizeof(*b));
	b->sq = aligned_alloc(4096, BENCH_RING * 64);
	b->cq = aligned_alloc(4096, BENCH_RING * 64);
	if (!b->sq || !b->cq)
		bench_die("bare ring: no memory");
	memset(b->sq, 0, BENCH_RING * 64);
	memset(b->cq, 0, BENCH_RING * 64);
	return b;
}

static inline void bare_post(struct bare *b, const void *src, const void *dst)
{
	uint64_t *p = b->sq + (size_t)(b->pi & (BENCH_RING - 1)) * 8;

	bench_store(p, 0x10200000 | (uint64_t)3 << 40);
	bench_store(p + 1, 1 << 24 | (uint64_t)5 << 32);
	bench_store(p + 2, 6);
	bench_store(p + 3, 7);
	bench_store(p + 4, 8);
	bench_store(p + 5, (uint64_t)(uintptr_t)dst);
	bench_store(p + 6, 8);
	bench_store(p + 7, (uint64_t)(uintptr_t)src);
	b->pi++;
}

/* 1 on even laps, in bit 2 as in the real CQE. */
static inline uint64_t bare_owner(uint32_t i)
{
	return i & BENCH_RING ? 0 : 4;
}

static inline void bare_execute(struct bare *b, uint32_t i)
{
	const uint64_t *w = b->sq + (size_t)(i & (BENCH_RING - 1)) * 8;
	uint64_t *c = b->cq + (size_t)(i & (BENCH_RING - 1)) * 8;
	uint64_t *dst = (uint64_t *)(uintptr_t)bench_load(w + 5);
	const uint64_t *src = (const uint64_t *)(uintptr_t)bench_load(w + 7);

	bench_store(dst, bench_load(src));
	bench_store(c + 1, 0);
	bench_store(c + 2, bench_load(w + 6));
	bench_store(c + 3, bench_load(w + 1));
	bench_store(c + 4, 0);
	bench_store(c + 5, 0);
	bench_store(c + 6, 0);
	bench_store(c + 7, 0);
	bench_release(c, bare_owner(i) | (uint64_t)i << 32);
}

static inline bool bare_take(struct bare *b)
{
	uint64_t *c = b->cq + (size_t)(b->ci & (BENCH_RING - 1)) * 8;
	uint64_t w0 = bench_acquire(c);

	if ((w0 & 4) != bare_owner(b->ci))
		return false;
	b->sum += w0 ^ bench_load(c + 1) ^ bench_load(c + 2) ^ bench_load(c + 3) ^
		  bench_load(c + 4) ^ bench_load(c + 5) ^ bench_load(c + 6) ^
		  bench_load(c + 7);
	b->ci++;
	return true;
}

/* One thread: @batch posted, doorbell, executed, completions read. */
static inline double bare_one_thread(struct bare *b, uint64_t n, uint32_t batch)
{
	double t = bench_now();
	uint64_t i;
	uint32_t j, pi;

	b->ei = b->pi;
	for (i = 0; i < n; i += batch) {
		for (j = 0; j < batch; j++)
			bare_post(b, b->src, b->dst + ((i + j) & 511));
		bench_release(&b->doorbell, b->pi);
		pi = bench_acquire(&b->doorbell);
		for (; b->ei != pi; b->ei++)
			bare_execute(b, b->ei);
		for (j = 0; j < batch; j++)
			if (!bare_take(b))
				bench_die("bare ring: a completion is missing");
	}
	return bench_now() - t;
}

static inline void *bare_engine(void *arg)
{
	struct bare *b = arg;
	uint32_t ei = b->pi, pi;

	bench_pin_tid(0, 1);
	bench_release(&b->ready, 1);
	for (;;) {
		pi = bench_acquire(&b->doorbell);
		if (ei == pi) {
			if (bench_load(&b->stop))
				return NULL;
			continue;
		}
		for (; ei != pi; ei++)
			bare_execute(b, ei);
	}
}

static inline pthread_t bare_engine_start(struct bare *b)
{
	pthread_t thread;

	b->stop = 0;
	b->ready = 0;
	if (pthread_create(&thread, NULL, bare_engine, b))
		bench_die("bare ring: no thread");
	while (!bench_acquire(&b->ready))
		;
	return thread;
}

static inline void bare_engine_stop(struct bare *b, pthread_t thread)
{
	bench_store(&b->stop, 1);
	pthread_join(thread, NULL);
}

/* Two threads, the ring kept full, BENCH_BATCH WQEs a doorbell. */
static inline double bare_two_threads_rate(void *arg, uint64_t n)
{
	struct bare *b = arg;
	pthread_t thread = bare_engine_start(b);
	uint64_t posted = 0, done = 0;
	double t = bench_now();
	uint32_t j;

	while (done < n) {
		while (posted < n && b->pi - b->ci <= BENCH_RING - BENCH_BATCH) {
			for (j = 0; j < BENCH_BATCH; j++)
				bare_post(b, b->src, b->dst + ((posted + j) & 511));
			bench_release(&b->doorbell, b->pi);
			posted += BENCH_BATCH;
		}
		for (j = 0; j < BENCH_BATCH && bare_take(b); j++)
			done++;
	}
	t = bench_now() - t;
	bare_engine_stop(b, thread);
	return t;
}

/* Two threads, one WQE at a time, doorbell to the completion seen. */
static inline double bare_two_threads_latency(void *arg, uint64_t n)
{
	struct bare *b = arg;
	pthread_t thread = bare_engine_start(b);
	double t = bench_now();
	uint64_t i;

	for (i = 0; i < n; i++) {
		bare_post(b, b->src, b->dst + (i & 511));
		bench_release(&b->doorbell, b->pi);
		while (!bare_take(b))
			;
	}
	t = bench_now() - t;
	bare_engine_stop(b, thread);
	return t;
}

static inline double bare_one_thread_rate(void *arg, uint64_t n)
{
	return bare_one_thread(arg, n, BENCH_BATCH);
}

static inline double bare_one_thread_latency(void *arg, uint64_t n)
{
	return bare_one_thread(arg, n, 1);
}

#endif
