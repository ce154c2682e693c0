/* SPDX-License-Identifier: MIT */
/*
 * The copy limit: what two threads of one process take for the work of all ranks, on
 * buffers that they have mapped, with a spin barrier before and after each operation and
 * nothing else.  Sums are made chunk by chunk in a cache; from 4 MiB on results are
 * written past the caches.
 */
#ifndef NPUEMU_BENCH_HCCL_LIMIT_H
#define NPUEMU_BENCH_HCCL_LIMIT_H

#ifdef __AVX__
#include <immintrin.h>
#endif
#include "bench.h"
#include "hccl_cases.h"

#define LIMIT_RANKS	8u
#define LIMIT_CHUNK	2048u		/* floats: with a source beside it in a first level cache */
#define LIMIT_STREAM	(4ul << 20)	/* bytes from which on stores go past the caches */

static struct {
	unsigned int ranks;
	float *in[LIMIT_RANKS], *out[LIMIT_RANKS];
	const struct hccl_bench_case *c;
	uint64_t n;
	_Alignas(64) uint32_t arrived;
	_Alignas(64) uint32_t turn;
} limit;

static inline void limit_copy(float *to, const float *from, size_t n)
{
	size_t i = 0;

#ifdef __AVX__
	if (limit.c->bytes >= LIMIT_STREAM && !((uintptr_t)to % 32)) {
		for (; i + 8 <= n; i += 8)
			_mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
		_mm_sfence();
	}
#endif
	memcpy(to + i, from + i, (n - i) * sizeof(float));
}

static inline void limit_meet(void)
{
	uint32_t turn = bench_acquire(&limit.turn);

	if (__atomic_fetch_add(&limit.arrived, 1, __ATOMIC_ACQ_REL)) {
		bench_store(&limit.arrived, 0);
		bench_release(&limit.turn, turn + 1);
		return;
	}
	while (bench_acquire(&limit.turn) == turn)
		__builtin_ia32_pause();
}

/* Elements @at.. of all inputs, added up. */
static inline void limit_sum(float *restrict acc, size_t at, size_t n)
{
	const float *restrict a = limit.in[0] + at, *restrict b = limit.in[1] + at;
	unsigned int r;
	size_t i;

	for (i = 0; i < n; i++)
		acc[i] = a[i] + b[i];
	for (r = 2; r < limit.ranks; r++) {
		a = limit.in[r] + at;
		for (i = 0; i < n; i++)
			acc[i] += a[i];
	}
}

/* Elements from..to of the inputs to @out, or to all outputs at the same place. */
static inline void limit_reduce(size_t from, size_t to, float *out)
{
	_Alignas(64) float acc[LIMIT_CHUNK];
	unsigned int q;
	size_t at, n;

	for (at = from; at < to; at += n) {
		n = to - at < LIMIT_CHUNK ? to - at : LIMIT_CHUNK;
		limit_sum(acc, at, n);
		if (out)
			limit_copy(out + (at - from), acc, n);
		for (q = 0; !out && q < limit.ranks; q++)
			limit_copy(limit.out[q] + at, acc, n);
	}
}

/* Half of what each rank gives, to all. */
static inline void limit_gather(size_t count, unsigned int half)
{
	size_t from = half ? count / 2 : 0, to = half ? count : count / 2, at, n;
	unsigned int r, q;

	for (r = 0; r < limit.ranks; r++)
		for (at = from; at < to; at += n) {
			n = to - at < 2 * LIMIT_CHUNK ? to - at : 2 * LIMIT_CHUNK;
			for (q = 0; q < limit.ranks; q++)
				limit_copy(limit.out[q] + r * count + at, limit.in[r] + at, n);
		}
}

static inline void limit_work(unsigned int half)
{
	size_t count = hccl_bench_count(limit.c, limit.ranks);
	unsigned int q, r;

	switch (limit.c->coll) {
	case COLL_ALLREDUCE:
		limit_reduce(half ? count / 2 : 0, half ? count : count / 2, NULL);
		break;
	case COLL_REDUCESCATTER:
		for (q = half; q < limit.ranks; q += 2)
			limit_reduce(q * count, (q + 1) * count, limit.out[q]);
		break;
	case COLL_ALLGATHER:
		limit_gather(count, half);
		break;
	case COLL_ALLTOALL:
		for (q = half; q < limit.ranks; q += 2)
			for (r = 0; r < limit.ranks; r++)
				limit_copy(limit.out[q] + r * count, limit.in[r] + q * count,
					   count);
		break;
	default:
		break;
	}
}

static inline void limit_loop(unsigned int half, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++) {
		limit_meet();
		limit_work(half);
		limit_meet();
	}
}

static inline void *limit_thread(void *arg)
{
	(void)arg;
	bench_pin_tid(0, 1);
	limit_loop(1, HCCL_BENCH_AGAIN(limit.n) + limit.n);
	return NULL;
}

/* For bench_run(): the calling thread is one of the two. */
static inline double limit_run(void *arg, uint64_t n)
{
	pthread_t thread;
	double t;

	limit.c = arg;
	limit.n = n;
	if (pthread_create(&thread, NULL, limit_thread, NULL))
		bench_die("limit: no thread");
	limit_loop(0, HCCL_BENCH_AGAIN(n));
	t = bench_now();
	limit_loop(0, n);
	t = bench_now() - t;
	pthread_join(thread, NULL);
	return t;
}

static inline void limit_check(const struct hccl_bench_case *c)
{
	unsigned int r;
	long bad;

	for (r = 0; r < limit.ranks; r++) {
		hccl_bench_fill(c, limit.ranks, r, limit.in[r]);
		memset(limit.out[r], 0xff, c->bytes);
	}
	limit_run((void *)(uintptr_t)c, 0);
	for (r = 0; r < limit.ranks; r++) {
		bad = hccl_bench_wrong(c, limit.ranks, r, limit.out[r]);
		if (bad >= 0)
			bench_die("limit, %s: element %ld of rank %u is wrong", c->name, bad, r);
	}
}

/* Buffers of 4 KiB pages of shared memory, as any two processes have them. */
static inline void limit_open(unsigned int ranks)
{
	unsigned int r;
	float *p;

	limit.ranks = ranks;
	for (r = 0; r < 2 * ranks; r++) {
		p = mmap(NULL, HCCL_BENCH_MOST, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			bench_die("limit: no memory");
		memset(p, 0, HCCL_BENCH_MOST);
		*(r < ranks ? &limit.in[r] : &limit.out[r - ranks]) = p;
	}
}

#endif
