// SPDX-License-Identifier: MIT
/*
 * faa and cas on a remote word.  Message i since the memory was armed finds i
 * there and leaves i + 1, so the word counts what was really executed.
 */
#include <string.h>

#include "loops.h"

NPUEMU_PERF_INLINE int post_faa(const struct npuemu_perf_hot *h, uint64_t i,
				uint32_t flags)
{
	(void)i;
	return npuemu_post_faa(h->q, h->near_rx, h->size, &h->target, h->far_va_rx, 1,
			       flags);
}

/* Strong: each needs what the one before it left. */
NPUEMU_PERF_INLINE int post_cas(const struct npuemu_perf_hot *h, uint64_t i,
				uint32_t flags)
{
	return npuemu_post_cas(h->q, h->near_rx, h->size, &h->target, h->far_va_rx,
			       i + 1, i, flags | NPUEMU_STRONG);
}

static void arm(struct npuemu_perf_lane *l, uint64_t seed, uint32_t timed)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);

	(void)timed;
	if (h.far_rx)	/* the peer clears its own */
		memset(h.far_rx, 0, h.size);
	npuemu_perf_fill(h.near_rx, h.size, seed);
}

static int verify(struct npuemu_perf_lane *l, uint64_t seed, uint64_t n, uint32_t timed)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);
	int rc;

	(void)seed;
	rc = npuemu_perf_check_word(l, h.far_rx, n, h.size, "the remote word");
	/* which of many unordered additions came last is not promised */
	if (!rc && n && !timed)
		rc = npuemu_perf_check_word(l, h.near_rx, n - 1, h.size,
					    "the old value returned");
	return rc;
}

NPUEMU_PERF_LOOPS(faa, post_faa, 2)
NPUEMU_PERF_LOOPS(cas, post_cas, 2)

const struct npuemu_perf_test npuemu_perf_faa = {
	.name = "faa",
	.what = "UDMA fetch-and-add on a remote word",
	.bbs = 2,
	.size_min = 4,
	.size_max = 8,
	.atomic = 1,
	.once = faa_once,
	.latency = faa_latency,
	.stream = faa_stream,
	.arm = arm,
	.verify = verify,
};

const struct npuemu_perf_test npuemu_perf_cas = {
	.name = "cas",
	.what = "UDMA compare-and-swap on a remote word, each succeeding",
	.bbs = 2,
	.size_min = 4,
	.size_max = 8,
	.atomic = 1,
	.once = cas_once,
	.latency = cas_latency,
	.stream = cas_stream,
	.arm = arm,
	.verify = verify,
};
