// SPDX-License-Identifier: MIT
/*
 * reduce: destination = destination op source, by SDMA or by a UDMA WRITE.  The
 * elements are small whole numbers, which every data type holds exactly, so the
 * expected bytes need no float arithmetic.  In a timed run of sums the source is
 * zero: anything else would overflow after some thousand messages.
 */
#include <string.h>

#include "loops.h"

#define CHUNK	512u	/* bytes made at a time; a multiple of every element size */

NPUEMU_PERF_INLINE int post_sdma(const struct npuemu_perf_hot *h, uint64_t i,
				 uint32_t flags)
{
	uint64_t at = (i & h->mask) * h->stride;

	return npuemu_post_reduce(h->q, h->far_rx + at, h->near_tx + at, h->size,
				  (enum npuemu_reduce_op)h->op,
				  (enum npuemu_dtype)h->type, flags);
}

NPUEMU_PERF_INLINE int post_udma(const struct npuemu_perf_hot *h, uint64_t i,
				 uint32_t flags)
{
	uint64_t at = (i & h->mask) * h->stride;

	return npuemu_post_write_reduce(h->q, h->near_tx + at, h->size, &h->target,
					h->far_va_rx + at, (enum npuemu_reduce_op)h->op,
					(enum npuemu_dtype)h->type, flags);
}

static uint32_t element_bytes(uint32_t type)
{
	switch (type) {
	case NPUEMU_INT8:
	case NPUEMU_UINT8:
		return 1;
	case NPUEMU_INT32:
	case NPUEMU_UINT32:
	case NPUEMU_FP32:
		return 4;
	}
	return 2;
}

static uint32_t fp32_bits(int v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

/* Whole numbers up to 2048 are exact: move sign, exponent and fraction over. */
static uint32_t fp16_bits(int v)
{
	uint32_t bits = fp32_bits(v), sign = bits >> 16 & 0x8000u;

	if (!v)
		return sign;
	return sign | ((bits >> 23 & 0xffu) - 127 + 15) << 10 | (bits >> 13 & 0x3ffu);
}

static void encode(char *p, int v, uint32_t type)
{
	uint32_t bits = (uint32_t)v;

	if (type == NPUEMU_FP32)
		bits = fp32_bits(v);
	else if (type == NPUEMU_FP16)
		bits = fp16_bits(v);
	else if (type == NPUEMU_BF16)
		bits = fp32_bits(v) >> 16;
	memcpy(p, &bits, element_bytes(type));
}

/* Element @i of source and destination: -8..8, or 0..16 without a sign. */
static int element(uint64_t seed, uint64_t i, uint32_t type)
{
	uint64_t x = (seed + i) * 0x9e3779b97f4a7c15ull;
	int v = (int)((x ^ x >> 29) % 17);

	if (type == NPUEMU_UINT8 || type == NPUEMU_UINT16 || type == NPUEMU_UINT32)
		return v;
	return v - 8;
}

static int combine(int a, int b, uint32_t op)
{
	if (op == NPUEMU_REDUCE_SUM)
		return a + b;
	if (op == NPUEMU_REDUCE_MAX)
		return a > b ? a : b;
	return a < b ? a : b;
}

enum what { SOURCE, BEFORE, AFTER };

struct making {
	uint64_t seed;
	uint32_t op;
	uint32_t type;
	uint32_t zero;		/* the source is all zero */
};

static int value(const struct making *m, uint64_t i, enum what what)
{
	int src = m->zero ? 0 : element(m->seed, i, m->type);
	int dst = element(m->seed + 0x5555, i, m->type);

	if (what == SOURCE)
		return src;
	return what == BEFORE ? dst : combine(dst, src, m->op);
}

/* The elements from byte @at on. */
static void make(const struct making *m, char *p, uint64_t at, uint64_t bytes,
		 enum what what)
{
	uint32_t e = element_bytes(m->type);
	uint64_t i;

	for (i = 0; i < bytes; i += e)
		encode(p + i, value(m, (at + i) / e, what), m->type);
}

static int check(struct npuemu_perf_lane *l, const struct making *m, const char *p,
		 enum what what, const char *where)
{
	uint64_t at, n;
	char want[CHUNK];
	int rc = 0;

	for (at = 0; at < l->lay.size && !rc; at += n) {
		n = l->lay.size - at < CHUNK ? l->lay.size - at : CHUNK;
		make(m, want, at, n, what);
		rc = npuemu_perf_check_bytes(l, p + at, want, n, at, where);
	}
	return rc;
}

static struct making making_of(const struct npuemu_perf_hot *h, uint64_t seed,
			       uint32_t timed)
{
	struct making m = { seed, h->op, h->type, 0 };

	m.zero = timed && h->op == NPUEMU_REDUCE_SUM;
	return m;
}

static void arm(struct npuemu_perf_lane *l, uint64_t seed, uint32_t timed)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);
	struct making m = making_of(&h, seed, timed);
	uint64_t i;

	for (i = 0; i <= h.mask; i++) {
		m.seed = seed + i;
		make(&m, h.near_tx + i * h.stride, 0, h.size, SOURCE);
		make(&m, h.far_rx + i * h.stride, 0, h.size, BEFORE);
	}
}

static int verify(struct npuemu_perf_lane *l, uint64_t seed, uint64_t n, uint32_t timed)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);
	struct making m = making_of(&h, seed, timed);
	uint64_t i;
	int rc = 0;

	for (i = 0; i <= h.mask && i < n && !rc; i++) {
		m.seed = seed + i;
		rc = check(l, &m, h.near_tx + i * h.stride, SOURCE, "the source");
		if (!rc)
			rc = check(l, &m, h.far_rx + i * h.stride, AFTER,
				   "the destination");
	}
	return rc;
}

NPUEMU_PERF_LOOPS(sdma, post_sdma, 1)
NPUEMU_PERF_LOOPS(udma, post_udma, 1)

const struct npuemu_perf_test npuemu_perf_reduce = {
	.name = "reduce",
	.what = "SDMA reduce (--engine udma: WRITE with reduce), --op and --type",
	.bbs = 1,
	.sdma = 1,
	.typed = 1,
	.size_min = 4,
	.size_max = 1u << 30,
	.once = sdma_once,
	.latency = sdma_latency,
	.stream = sdma_stream,
	.arm = arm,
	.verify = verify,
};

const struct npuemu_perf_test npuemu_perf_reduce_udma = {
	.name = "reduce",
	.what = "UDMA WRITE with reduce",
	.bbs = 1,
	.typed = 1,
	.size_min = 4,
	.size_max = 1u << 30,
	.once = udma_once,
	.latency = udma_latency,
	.stream = udma_stream,
	.arm = arm,
	.verify = verify,
};
