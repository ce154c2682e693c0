// SPDX-License-Identifier: MIT
/* write, read and copy: moving bytes from tx slots to rx slots. */
#include "loops.h"

NPUEMU_PERF_INLINE int post_write(const struct npuemu_perf_hot *h, uint64_t i,
				  uint32_t flags)
{
	uint64_t at = (i & h->mask) * h->stride;

	return npuemu_post_write(h->q, h->near_tx + at, h->size, &h->target,
				 h->far_va_rx + at, flags);
}

NPUEMU_PERF_INLINE int post_read(const struct npuemu_perf_hot *h, uint64_t i,
				 uint32_t flags)
{
	uint64_t at = (i & h->mask) * h->stride;

	return npuemu_post_read(h->q, h->near_rx + at, h->size, &h->target,
				h->far_va_tx + at, flags);
}

/* SDMA knows addresses of this process only. */
NPUEMU_PERF_INLINE int post_copy(const struct npuemu_perf_hot *h, uint64_t i,
				 uint32_t flags)
{
	uint64_t at = (i & h->mask) * h->stride;

	return npuemu_post_copy(h->q, h->far_rx + at, h->near_tx + at, h->size, flags);
}

static void arm_read(struct npuemu_perf_lane *l, uint64_t seed, uint32_t timed)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);
	uint64_t i;

	(void)timed;
	for (i = 0; i <= h.mask; i++) {
		npuemu_perf_fill(h.far_tx + i * h.stride, h.size, seed + (i << 32));
		npuemu_perf_fill_other(h.near_rx + i * h.stride, h.size, seed + (i << 32));
	}
}

static int verify_read(struct npuemu_perf_lane *l, uint64_t seed, uint64_t n,
		       uint32_t timed)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);
	uint64_t i;
	int rc = 0;

	(void)timed;
	for (i = 0; i <= h.mask && i < n && !rc; i++) {
		rc = npuemu_perf_check(l, h.far_tx + i * h.stride, h.size,
				       seed + (i << 32), "the source");
		if (!rc)
			rc = npuemu_perf_check(l, h.near_rx + i * h.stride, h.size,
					       seed + (i << 32), "the destination");
	}
	return rc;
}

NPUEMU_PERF_LOOPS(write, post_write, 1)
NPUEMU_PERF_LOOPS(read, post_read, 1)
NPUEMU_PERF_LOOPS(copy, post_copy, 1)

const struct npuemu_perf_test npuemu_perf_write = {
	.name = "write",
	.what = "UDMA WRITE into the other device's segment",
	.bbs = 1,
	.size_min = 1,
	.size_max = 1u << 30,
	.once = write_once,
	.latency = write_latency,
	.stream = write_stream,
	.arm = npuemu_perf_arm_push,
	.verify = npuemu_perf_verify_push,
};

const struct npuemu_perf_test npuemu_perf_read = {
	.name = "read",
	.what = "UDMA READ from it",
	.bbs = 1,
	.size_min = 1,
	.size_max = 1u << 30,
	.once = read_once,
	.latency = read_latency,
	.stream = read_stream,
	.arm = arm_read,
	.verify = verify_read,
};

const struct npuemu_perf_test npuemu_perf_copy = {
	.name = "copy",
	.what = "SDMA copy from one device's memory to the other's",
	.bbs = 1,
	.sdma = 1,
	.size_min = 1,
	.size_max = 1u << 30,
	.once = copy_once,
	.latency = copy_latency,
	.stream = copy_stream,
	.arm = npuemu_perf_arm_push,
	.verify = npuemu_perf_verify_push,
};
