// SPDX-License-Identifier: MIT
/* Times of single operations: see hist.h. */
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <stdlib.h>

#include "hist.h"

int npuemu_ticks_tsc;

/* Does the counter run at one speed, whatever the core does? */
static int tsc_is_constant(void)
{
#if defined(__x86_64__)
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8));
#else
	return 0;
#endif
}

static double elapsed_ns(const struct timespec *a, const struct timespec *b)
{
	return (double)(b->tv_sec - a->tv_sec) * 1e9 + (double)(b->tv_nsec - a->tv_nsec);
}

double npuemu_ticks_init(void)
{
	struct timespec a, b;
	uint64_t t0, t1;
	double ns;

	npuemu_ticks_tsc = tsc_is_constant();
	if (!npuemu_ticks_tsc)
		return 1.0;
	clock_gettime(CLOCK_MONOTONIC, &a);
	t0 = npuemu_ticks();
	do {
		clock_gettime(CLOCK_MONOTONIC, &b);
		t1 = npuemu_ticks();
		ns = elapsed_ns(&a, &b);
	} while (ns < 2e7);
	if (t1 > t0)
		return ns / (double)(t1 - t0);
	npuemu_ticks_tsc = 0;
	return 1.0;
}

uint64_t npuemu_ticks_cost(void)
{
	uint64_t best = UINT64_MAX, t0, t1;
	int i;

	for (i = 0; i < 1000; i++) {
		t0 = npuemu_ticks();
		t1 = npuemu_ticks();
		if (t1 - t0 < best)
			best = t1 - t0;
	}
	return best;
}

void npuemu_hist_merge(struct npuemu_hist *to, const struct npuemu_hist *from)
{
	uint32_t i;

	if (!from->count)
		return;
	if (!to->count || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->count += from->count;
	to->sum += from->sum;
	for (i = 0; i < NPUEMU_HIST_SLOTS; i++)
		to->slot[i] += from->slot[i];
}

/* The middle of a slot. */
static uint64_t slot_value(uint32_t i)
{
	uint32_t shift = i / NPUEMU_HIST_SUB;
	uint64_t low;

	if (!shift)
		return i;
	shift--;
	low = (uint64_t)(NPUEMU_HIST_SUB + i % NPUEMU_HIST_SUB) << shift;
	return low + ((1ull << shift) >> 1);
}

uint64_t npuemu_hist_at(const struct npuemu_hist *h, uint32_t permille)
{
	uint64_t want, seen = 0, v;
	uint32_t i;

	if (!h->count)
		return 0;
	want = (h->count * permille + 999) / 1000;
	if (!want)
		want = 1;
	for (i = 0; i < NPUEMU_HIST_SLOTS; i++) {
		seen += h->slot[i];
		if (seen >= want)
			break;
	}
	v = slot_value(i);
	if (v > h->max)
		v = h->max;
	return v < h->min ? h->min : v;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double npuemu_median(double *v, int n)
{
	if (n < 1)
		return 0;
	qsort(v, (size_t)n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}
