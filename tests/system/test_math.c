// SPDX-License-Identifier: MIT
/*
 * Reductions against plain loops, by UDMA in both directions and by SDMA, and the
 * other things that an SDMA queue does: copies, two-dimensional ones, fills,
 * notifies.  Bytes on both sides of the target stay as they were.
 */
#include <math.h>
#include <string.h>

#include "sys.h"

#define GUARD	64u
#define MOST	70000u

/* ---- Plain loops ------------------------------------------------------------------ */

static float bf16_to_float(uint16_t v)
{
	uint32_t bits = (uint32_t)v << 16;
	float f;

	memcpy(&f, &bits, 4);
	return f;
}

/* Round to nearest, ties to even. */
static uint16_t float_to_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	bits += 0x7fff + (bits >> 16 & 1);
	return (uint16_t)(bits >> 16);
}

#define COMBINE(op, a, b) \
	((op) == NPUEMU_REDUCE_SUM ? (a) + (b) : \
	 (op) == NPUEMU_REDUCE_MAX ? ((a) > (b) ? (a) : (b)) : ((a) < (b) ? (a) : (b)))

#define LOOP(ctype, wide) \
	for (i = 0; i < n / sizeof(ctype); i++) { \
		ctype a, b, r; \
		memcpy(&a, dst + i * sizeof(a), sizeof(a)); \
		memcpy(&b, src + i * sizeof(b), sizeof(b)); \
		r = (ctype)COMBINE(op, (wide)a, (wide)b); \
		memcpy(dst + i * sizeof(r), &r, sizeof(r)); \
	} \
	break

/* dst = dst op src, in unsigned arithmetic where that is the same and defined */
static void plain(enum npuemu_reduce_op op, enum npuemu_dtype type, unsigned char *dst,
		  const unsigned char *src, size_t n)
{
	size_t i;

	switch (type) {
	case NPUEMU_INT8:
		LOOP(int8_t, int64_t);
	case NPUEMU_INT16:
		LOOP(int16_t, int64_t);
	case NPUEMU_INT32:
		LOOP(int32_t, int64_t);
	case NPUEMU_UINT8:
		LOOP(uint8_t, uint64_t);
	case NPUEMU_UINT16:
		LOOP(uint16_t, uint64_t);
	case NPUEMU_UINT32:
		LOOP(uint32_t, uint64_t);
	case NPUEMU_FP16:
		LOOP(_Float16, float);
	case NPUEMU_FP32:
		LOOP(float, float);
	case NPUEMU_BF16:
		for (i = 0; i < n / 2; i++) {
			uint16_t a, b;

			memcpy(&a, dst + i * 2, 2);
			memcpy(&b, src + i * 2, 2);
			a = float_to_bf16(COMBINE(op, bf16_to_float(a), bf16_to_float(b)));
			memcpy(dst + i * 2, &a, 2);
		}
		break;
	}
}

static const struct dtype {
	enum npuemu_dtype type;
	uint32_t bytes;
	const char *name;
} dtypes[] = {
	{ NPUEMU_INT8, 1, "int8" }, { NPUEMU_INT16, 2, "int16" }, { NPUEMU_INT32, 4, "int32" },
	{ NPUEMU_UINT8, 1, "uint8" }, { NPUEMU_UINT16, 2, "uint16" },
	{ NPUEMU_UINT32, 4, "uint32" }, { NPUEMU_FP16, 2, "fp16" }, { NPUEMU_FP32, 4, "fp32" },
	{ NPUEMU_BF16, 2, "bf16" },
};

/* Integers wrap: that they saturate on the chip is not known.  Floats are finite. */
static void numbers(const struct dtype *d, unsigned char *p, size_t n, uint64_t seed)
{
	bool is_float = d->type >= NPUEMU_FP16;
	size_t i;

	sys_fill(p, n, seed);
	for (i = 0; i < n / d->bytes; i++) {
		/* Halves of small numbers: sums are exact in all types. */
		float f = (float)((int)(sys_rand(&seed) % 201) - 100) / 2;
		_Float16 h = (_Float16)f;
		uint16_t b = float_to_bf16(f);

		if (is_float)
			memcpy(p + i * d->bytes, d->type == NPUEMU_FP32 ? (void *)&f :
			       d->type == NPUEMU_FP16 ? (void *)&h : (void *)&b, d->bytes);
		else if (d->type <= NPUEMU_INT32)
			p[(i + 1) * d->bytes - 1] = (unsigned char)((int8_t)p[(i + 1) * d->bytes - 1] / 2);
		else
			p[(i + 1) * d->bytes - 1] /= 2;
	}
}

static const enum npuemu_reduce_op ops[] = {
	NPUEMU_REDUCE_MAX, NPUEMU_REDUCE_MIN, NPUEMU_REDUCE_SUM,
};

enum way { BY_WRITE, BY_READ, BY_SDMA };

struct bench {
	struct npuemu *ctx;
	struct npuemu_queue *udma, *sdma;
	struct sys_mem near, far;
	struct sys_child child;
};

static void start(struct bench *b)
{
	struct npuemu_queue_attr attr = sys_queue_attr(0, 64);

	memset(b, 0, sizeof(*b));
	b->ctx = sys_open();
	sys_mem_make(b->ctx, &b->near, 0, 1 << 20, SYS_RWA);
	sys_mem_make(b->ctx, &b->far, 1, 1 << 20, SYS_RWA);
	b->udma = sys_queue(b->ctx, 0, 64);
	attr.type = NPUEMU_QUEUE_SDMA;
	sys_rc(npuemu_queue_create(b->ctx, &attr, &b->sdma));
}

static void stop(struct bench *b)
{
	sys_rc(npuemu_queue_destroy(b->udma));
	sys_rc(npuemu_queue_destroy(b->sdma));
	sys_mem_drop(&b->near);
	sys_mem_drop(&b->far);
	sys_rc(npuemu_close(b->ctx));
}

static void one(struct bench *b, enum way way, enum npuemu_reduce_op op,
		const struct dtype *d, uint32_t n, uint32_t src_off, uint32_t dst_off)
{
	static unsigned char want[MOST + 2 * GUARD], before[MOST];
	unsigned char *far = b->far.p + GUARD, *near = b->near.p + GUARD;
	unsigned char *dst, *src;
	struct npuemu_queue *q = b->udma;

	if (way == BY_READ) {
		dst = near + dst_off;
		src = far + src_off;
	} else {
		dst = far + dst_off;
		src = near + src_off;
	}
	memset(dst - GUARD, 0xee, n + 2 * GUARD);
	numbers(d, src, n, n);
	numbers(d, dst, n, n + 1);
	memcpy(want, dst - GUARD, n + 2 * GUARD);
	memcpy(before, src, n);
	plain(op, d->type, want + GUARD, src, n);
	switch (way) {
	case BY_WRITE:
		sys_rc(npuemu_post_write_reduce(q, src, n, &b->far.t, b->far.va + GUARD + dst_off,
						op, d->type, NPUEMU_SQE_CQE));
		break;
	case BY_READ:
		sys_rc(npuemu_post_read_reduce(q, dst, n, &b->far.t, b->far.va + GUARD + src_off,
					       op, d->type, NPUEMU_SQE_CQE));
		break;
	case BY_SDMA:
		q = b->sdma;
		sys_rc(npuemu_post_reduce(q, dst, src, n, op, d->type, NPUEMU_SQE_CQE));
		break;
	}
	sys_run(q);
	sys_same(d->name, dst - GUARD, want, n + 2 * GUARD);
	sys_same("the source", src, before, n);
}

static void reductions(void **state)
{
	static const uint32_t counts[] = { 0, 1, 2, 3, 7, 8, 15, 16, 17, 63, 64, 65, 1023, 16384, 16385 };
	struct bench b;
	uint32_t i, c, k, w;

	(void)state;
	start(&b);
	for (i = 0; i < 9; i++)
		for (k = 0; k < 3; k++)
			for (w = BY_WRITE; w <= BY_SDMA; w++)
				for (c = 0; c < 15; c++)
					one(&b, (enum way)w, ops[k], &dtypes[i],
					    counts[c] * dtypes[i].bytes,
					    (c + k) % 8 * dtypes[i].bytes,
					    (c + w) % 5 * dtypes[i].bytes);
	stop(&b);
}

/* A length that ends within an element is refused, not rounded. */
static void part_of_element(void **state)
{
	struct bench b;
	uint32_t i;

	(void)state;
	start(&b);
	for (i = 0; i < 9; i++) {
		if (dtypes[i].bytes == 1)
			continue;
		memset(b.near.p, 0x11, 4096);
		memset(b.far.p, 0x22, 4096);
		sys_rc(npuemu_post_write_reduce(b.udma, b.near.p, 33, &b.far.t, b.far.va,
						NPUEMU_REDUCE_SUM, dtypes[i].type,
						NPUEMU_SQE_CQE));
		sys_true(sys_finish(b.udma), "33 bytes of %s", dtypes[i].name);
		sys_revive(b.udma);
		sys_rc(npuemu_post_reduce(b.sdma, b.far.p, b.near.p, 33, NPUEMU_REDUCE_SUM,
					  dtypes[i].type, NPUEMU_SQE_CQE));
		sys_true(sys_finish(b.sdma), "33 bytes of %s", dtypes[i].name);
		sys_revive(b.sdma);
		sys_is_byte("untouched", b.far.p, 4096, 0x22);
	}
	stop(&b);
}

/* ---- SDMA --------------------------------------------------------------------------- */

static void copies(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 3, 8, 63, 64, 65, 4095, 4097, 65535, 65537 };
	struct bench b;
	uint32_t i, a;

	(void)state;
	start(&b);
	for (i = 0; i < sizeof(sizes) / 4; i++) {
		for (a = 0; a < 64; a += 9) {
			uint32_t n = sizes[i];
			unsigned char *src = b.near.p + GUARD + a % 8, *dst = b.far.p + GUARD + a / 8;

			sys_fill(src, n, n + a);
			memset(dst - GUARD, 0xee, n + 2 * GUARD);
			sys_rc(npuemu_post_copy(b.sdma, dst, src, n, NPUEMU_SQE_CQE));
			sys_run(b.sdma);
			sys_is_byte("before", dst - GUARD, GUARD, 0xee);
			sys_is_filled("copied", dst, n, n + a);
			sys_is_byte("behind", dst + n, GUARD, 0xee);
		}
	}
	stop(&b);
}

static void copies_2d(void **state)
{
	static const struct { uint32_t width, height, dst, src; } cases[] = {
		{ 1, 1, 1, 1 }, { 7, 5, 9, 8 }, { 64, 64, 100, 64 }, { 100, 64, 100, 333 },
		{ 4096, 20, 5000, 8192 }, { 3, 1000, 3, 3 }, { 0, 5, 8, 8 }, { 5, 0, 8, 8 },
	};
	struct bench b;
	uint32_t i, row;

	(void)state;
	start(&b);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t w = cases[i].width, h = cases[i].height;

		sys_fill(b.near.p, 1 << 18, i);
		memset(b.far.p, 0xee, 1 << 18);
		sys_rc(npuemu_post_copy_2d(b.sdma, b.far.p + 77, cases[i].dst, b.near.p + 5,
					   cases[i].src, w, h, NPUEMU_SQE_CQE));
		sys_run(b.sdma);
		sys_is_byte("before", b.far.p, 77, 0xee);
		for (row = 0; row < h; row++) {
			unsigned char *to = b.far.p + 77 + (size_t)row * cases[i].dst;

			sys_same("a row", to, b.near.p + 5 + (size_t)row * cases[i].src, w);
			sys_is_byte("the gap", to + w, cases[i].dst - w, 0xee);
		}
	}
	stop(&b);
}

static void fills(void **state)
{
	static const uint32_t lens[] = { 0, 8, 16, 64, 4096, 4104, 65536, 1 << 19 };
	struct bench b;
	uint32_t w, i, k;

	(void)state;
	start(&b);
	for (w = 1; w <= 8; w *= 2) {
		for (i = 0; i < 8; i++) {
			uint64_t pattern = 0x1122334455667788u + i;
			unsigned char *dst = b.far.p + GUARD + 8 * i;

			memset(dst - GUARD, 0xee, lens[i] + 2 * GUARD);
			sys_rc(npuemu_post_fill(b.sdma, dst, pattern, w, lens[i], NPUEMU_SQE_CQE));
			sys_run(b.sdma);
			sys_is_byte("before", dst - GUARD, GUARD, 0xee);
			for (k = 0; k < lens[i]; k += w)
				if (memcmp(dst + k, &pattern, w))
					sys_fail(__FILE__, __LINE__, "width %u, byte %u", w, k);
			sys_is_byte("behind", dst + lens[i], GUARD, 0xee);
		}
	}
	stop(&b);
}

/* A notify comes after what was posted before it. */
static void notifies(void **state)
{
	struct bench b;
	uint64_t *word;
	uint32_t i;

	(void)state;
	start(&b);
	word = (uint64_t *)(b.far.p + (1 << 19));
	for (i = 1; i <= 50; i++) {
		sys_fill(b.near.p, 40000, i);
		word[0] = word[1] = word[2] = 0;
		sys_rc(npuemu_post_copy(b.sdma, b.far.p, b.near.p, 40000, NPUEMU_RELAXED));
		sys_rc(npuemu_post_sdma_notify(b.sdma, word + 1, i, NPUEMU_SQE_CQE));
		sys_rc(npuemu_doorbell(b.sdma));
		sys_rc(npuemu_wait_word(b.ctx, word + 1, NPUEMU_CMP_EQ, i, sys_deadline()));
		sys_is_filled("copied before", b.far.p, 40000, i);
		sys_eq(word[0] | word[2], 0);
		sys_eq(sys_finish(b.sdma), NPUEMU_ST_SUCCESS);
	}
	stop(&b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(reductions),
		sys_test(part_of_element),
		sys_test(copies),
		sys_test(copies_2d),
		sys_test(fills),
		sys_test(notifies),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
