/* SPDX-License-Identifier: MIT */
/*
 * Times of single operations: a cheap clock, and a histogram with a relative
 * error under 0.8 %, so that millions of samples need no memory and several
 * threads' can be added up.
 */
#ifndef NPUEMU_TOOLS_HIST_H
#define NPUEMU_TOOLS_HIST_H

#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define NPUEMU_HIST_SUB		128u	/* steps between two powers of two */
#define NPUEMU_HIST_POWERS	40u	/* up to 2^46 ticks */
#define NPUEMU_HIST_SLOTS	(NPUEMU_HIST_SUB * NPUEMU_HIST_POWERS)

struct npuemu_hist {
	uint64_t count;
	uint64_t sum;
	uint64_t min;
	uint64_t max;
	uint32_t slot[NPUEMU_HIST_SLOTS];
};

/* Set by npuemu_ticks_init(), which must come before any npuemu_ticks(). */
extern int npuemu_ticks_tsc;

/* Find out which clock to use and how fast it runs: nanoseconds of one tick. */
double npuemu_ticks_init(void);
/* What one reading costs, in ticks. */
uint64_t npuemu_ticks_cost(void);

static inline uint64_t npuemu_ticks(void)
{
	struct timespec ts;

#if defined(__x86_64__)
	if (npuemu_ticks_tsc) {
		_mm_lfence();	/* not before what came before has ended */
		return __rdtsc();
	}
#endif
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint32_t npuemu_hist_index(uint64_t v)
{
	uint32_t shift, i;

	if (v < NPUEMU_HIST_SUB)
		return (uint32_t)v;
	shift = 63u - (uint32_t)__builtin_clzll(v) - 7u;
	i = (shift + 1) * NPUEMU_HIST_SUB + (uint32_t)(v >> shift) - NPUEMU_HIST_SUB;
	return i < NPUEMU_HIST_SLOTS ? i : NPUEMU_HIST_SLOTS - 1;
}

static inline void npuemu_hist_add(struct npuemu_hist *h, uint64_t v)
{
	if (!h->count || v < h->min)
		h->min = v;
	if (v > h->max)
		h->max = v;
	h->count++;
	h->sum += v;
	h->slot[npuemu_hist_index(v)]++;
}

void npuemu_hist_merge(struct npuemu_hist *to, const struct npuemu_hist *from);
/* The value @permille of a thousand samples do not exceed; 0 without samples. */
uint64_t npuemu_hist_at(const struct npuemu_hist *h, uint32_t permille);

/* Sorts @v. */
double npuemu_median(double *v, int n);

#endif
