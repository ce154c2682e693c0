// SPDX-License-Identifier: MIT
/*
 * Unit tests of driver/engine/reduce.c, against references that work another
 * way: in double, rounding by comparing the two nearest candidates.  The file is
 * included, not linked, to reach the vector widths this machine would not choose.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "reduce.c"

#define GUARD	0xee
#define EDGE	64u

typedef const npuemu_reduce_fn (*table)[NPUEMU_OPS];

static const char * const op_name[] = { "max", "min", "sum" };
static const char * const type_name[] = {
	"int8", "int16", "int32", "uint8", "uint16", "uint32", "fp16", "fp32", "bf16",
};

#define TYPES	ARRAY_SIZE(type_name)

static struct {
	const char *name;
	table ops;
} levels[3];
static unsigned int n_levels;

static int find_levels(void **state)
{
	(void)state;
	levels[n_levels].name = "plain";
	levels[n_levels++].ops = npuemu_reduce_plain;
#ifdef __x86_64__
	if (npuemu_reduce_table() != npuemu_reduce_plain) {
		levels[n_levels].name = "avx2";
		levels[n_levels++].ops = npuemu_reduce_avx2;
	}
	if (npuemu_reduce_table() == npuemu_reduce_avx512) {
		levels[n_levels].name = "avx512";
		levels[n_levels++].ops = npuemu_reduce_avx512;
	}
#endif
	return 0;
}

static u64 random_state = 0x9e3779b97f4a7c15ull;

static u32 random32(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (u32)(random_state >> 32);
}

/*
 * A 16-bit float format: what each magnitude is worth, in order.  The place of
 * infinity holds the power of two that would come next, which is what rounding
 * compares with.
 */
struct half {
	u16 inf, nan;
	unsigned int fraction;	/* bits */
	int bias;
	double worth[0x7f81];
};

static struct half fp16 = { .inf = 0x7c00, .nan = 0x7e00, .fraction = 10, .bias = 15 };
static struct half bf16 = { .inf = 0x7f80, .nan = 0x7fc0, .fraction = 7, .bias = 127 };

static double power_of_2(int e)
{
	double p = 1;

	for (; e > 0; e--)
		p *= 2;
	for (; e < 0; e++)
		p /= 2;
	return p;
}

static void make_worth(struct half *h)
{
	unsigned int i, one = 1u << h->fraction;

	for (i = 0; i <= h->inf; i++) {
		int exp = (int)(i / one);
		double lead = exp ? one : 0;

		h->worth[i] = (lead + i % one) *
			power_of_2((exp ? exp : 1) - h->bias - (int)h->fraction);
	}
}

static int set_up(void **state)
{
	make_worth(&fp16);
	make_worth(&bf16);
	return find_levels(state);
}

/* The magnitude next to @s + @err, where @err is too small to show in @s. */
static u16 nearest(const struct half *h, double s, double err)
{
	unsigned int lo = 0, hi = h->inf;
	double below, above;

	if (s >= h->worth[hi])
		return h->inf;
	while (hi - lo > 1) {
		unsigned int mid = (lo + hi) / 2;

		if (h->worth[mid] <= s)
			lo = mid;
		else
			hi = mid;
	}
	below = s - h->worth[lo];
	above = h->worth[hi] - s;
	if (below != above)
		return (u16)(below < above ? lo : hi);
	if (err != 0)
		return (u16)(err < 0 ? lo : hi);
	return (u16)(lo & 1 ? hi : lo);
}

static u16 half_sum(const struct half *h, u16 a, u16 b)
{
	u16 mag_a = a & 0x7fff, mag_b = b & 0x7fff;
	double x, y, s, part, err;

	if (mag_a > h->inf || mag_b > h->inf)
		return h->nan;
	if (mag_a == h->inf || mag_b == h->inf) {
		if (mag_a == mag_b && a != b)
			return h->nan;
		return mag_a == h->inf ? a : b;
	}
	x = a & 0x8000 ? -h->worth[mag_a] : h->worth[mag_a];
	y = b & 0x8000 ? -h->worth[mag_b] : h->worth[mag_b];
	s = x + y;
	part = s - x;
	err = (x - (s - part)) + (y - part);	/* s + err is exact */
	if (s == 0)
		return a & b & 0x8000;
	if (s < 0)
		return 0x8000 | nearest(h, -s, -err);
	return nearest(h, s, err);
}

static u16 half_pick(const struct half *h, u16 a, u16 b, bool max)
{
	double x, y;

	if ((a & 0x7fff) > h->inf || (b & 0x7fff) > h->inf)
		return h->nan;
	x = a & 0x8000 ? -h->worth[a & 0x7fff] : h->worth[a & 0x7fff];
	y = b & 0x8000 ? -h->worth[b & 0x7fff] : h->worth[b & 0x7fff];
	if (x == y)		/* the same, or two zeros */
		return max ? a & b : a | b;
	return (x > y) == max ? a : b;
}

static u16 half_ref(const struct half *h, unsigned int op, u16 a, u16 b)
{
	if (op == NPUEMU_REDUCE_SUM)
		return half_sum(h, a, b);
	return half_pick(h, a, b, op == NPUEMU_REDUCE_MAX);
}

static u32 fp32_ref(unsigned int op, u32 a, u32 b)
{
	union npuemu_fp32 { u32 bits; float f; } x = { a }, y = { b }, r;

	if ((a & 0x7fffffff) > 0x7f800000 || (b & 0x7fffffff) > 0x7f800000)
		return 0x7fc00000;
	if (op == NPUEMU_REDUCE_SUM) {
		/* rounding twice is harmless: 53 bits are over 2 * 24 + 2 */
		r.f = (float)((double)x.f + (double)y.f);
		return (r.bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : r.bits;
	}
	if (x.f == y.f)
		return op == NPUEMU_REDUCE_MAX ? a & b : a | b;
	return (x.f > y.f) == (op == NPUEMU_REDUCE_MAX) ? a : b;
}

static u32 int_ref(unsigned int op, unsigned int dtype, u32 a, u32 b)
{
	long long x = a, y = b, r;

	if (dtype == NPUEMU_INT8) {
		x = (s8)a;
		y = (s8)b;
	} else if (dtype == NPUEMU_INT16) {
		x = (s16)a;
		y = (s16)b;
	} else if (dtype == NPUEMU_INT32) {
		x = (s32)a;
		y = (s32)b;
	}
	if (op == NPUEMU_REDUCE_SUM)
		r = x + y;
	else if (op == NPUEMU_REDUCE_MAX)
		r = x > y ? x : y;
	else
		r = x < y ? x : y;
	return (u32)r;
}

/* What @a op @b should be, in the low bits. */
static u32 reference(unsigned int op, unsigned int dtype, u32 a, u32 b)
{
	switch (dtype) {
	case NPUEMU_FP16:
		return half_ref(&fp16, op, (u16)a, (u16)b);
	case NPUEMU_BF16:
		return half_ref(&bf16, op, (u16)a, (u16)b);
	case NPUEMU_FP32:
		return fp32_ref(op, a, b);
	default:
		return int_ref(op, dtype, a, b);
	}
}

static u32 get(const void *p, unsigned int size, size_t i)
{
	if (size == 1)
		return ((const u8 *)p)[i];
	if (size == 2)
		return ((const u16 *)p)[i];
	return ((const u32 *)p)[i];
}

static void put(void *p, unsigned int size, size_t i, u32 value)
{
	if (size == 1)
		((u8 *)p)[i] = (u8)value;
	else if (size == 2)
		((u16 *)p)[i] = (u16)value;
	else
		((u32 *)p)[i] = value;
}

static void *buffer(size_t len)
{
	void *p = NULL;

	assert_int_equal(posix_memalign(&p, 4096, len), 0);
	return p;
}

/* All levels on @n elements of @a and @b; @work and @want are room for as many. */
static void check_levels(unsigned int op, unsigned int dtype, const void *a,
			 const void *b, size_t n, void *work, void *want)
{
	unsigned int size = npuemu_dtype_size(dtype), l;
	size_t i;

	for (i = 0; i < n; i++)
		put(want, size, i, reference(op, dtype, get(a, size, i),
					     get(b, size, i)));
	for (l = 0; l < n_levels; l++) {
		memcpy(work, a, n * size);
		levels[l].ops[dtype][op - NPUEMU_REDUCE_MAX](work, b, n);
		if (!memcmp(work, want, n * size))
			continue;
		for (i = 0; get(work, size, i) == get(want, size, i); i++)
			;
		fail_msg("%s, %s: %#x %s %#x gives %#x, not %#x", levels[l].name,
			 type_name[dtype], get(a, size, i),
			 op_name[op - NPUEMU_REDUCE_MAX], get(b, size, i),
			 get(work, size, i), get(want, size, i));
	}
}

/* The partner of value @a in round @round: of fixed value, close, or any. */
static u16 partner(unsigned int dtype, unsigned int round, u16 a)
{
	static const u16 fp16_fixed[] = {
		0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400,
		0x3c00, 0xbc00, 0x3bff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00,
		0x7c01, 0xfe55, 0x4c00, 0x1400, 0x5bff, 0x0801, 0x2e66, 0xc248,
	};
	static const u16 bf16_fixed[] = {
		0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x807f, 0x0080, 0x8080,
		0x3f80, 0xbf80, 0x3f7f, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0,
		0x7f81, 0xffd5, 0x4c00, 0x1400, 0x7b00, 0x0081, 0x3e4c, 0xc049,
	};
	static const u16 step[] = { 0, 1, 2, 0x80, 0x100, 0x400, 0x480, 0x1000, 0x2c00 };
	unsigned int k = round;

	if (k < ARRAY_SIZE(fp16_fixed))
		return dtype == NPUEMU_FP16 ? fp16_fixed[k] : bf16_fixed[k];
	k -= ARRAY_SIZE(fp16_fixed);
	if (k < 4 * ARRAY_SIZE(step)) {
		u16 near = (u16)(k & 1 ? a + step[k / 4] : a - step[k / 4]);

		return k & 2 ? near ^ 0x8000 : near;
	}
	return (u16)random32();
}

#define ROUNDS	100u

/* All 65536 values of a 16-bit float with many partners each. */
static void every_half(unsigned int dtype)
{
	size_t n = 65536, i;
	u16 *a = buffer(2 * n), *b = buffer(2 * n);
	void *work = buffer(2 * n), *want = buffer(2 * n);
	unsigned int round, op;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < n; i++) {
			a[i] = (u16)i;
			b[i] = partner(dtype, round, (u16)i);
		}
		for (op = NPUEMU_REDUCE_MAX; op <= NPUEMU_REDUCE_SUM; op++)
			check_levels(op, dtype, a, b, n, work, want);
	}
	free(a);
	free(b);
	free(work);
	free(want);
}

static void test_fp16(void **state)
{
	(void)state;
	every_half(NPUEMU_FP16);
}

static void test_bf16(void **state)
{
	(void)state;
	every_half(NPUEMU_BF16);
}

/*
 * Sums of halves are never subnormal and inexact, so rounding there is tested on
 * its own: all fp32 up to past the smallest normal fp16, at coarse steps, and
 * both sides of every tie.
 */
static void test_fp16_rounding(void **state)
{
	typedef NPUEMU_VECTOR(s32, 4) v;
	typedef NPUEMU_VECTOR(float, 4) vf;
	union { u32 bits; float f; } x;
	unsigned int i;
	int side;

	(void)state;
	for (i = 0; i < 0x7c00; i++) {
		x.f = (float)((fp16.worth[i] + fp16.worth[i + 1]) / 2);
		x.bits -= 2;
		for (side = -2; side <= 2; side++, x.bits++) {
			v f = { (s32)x.bits };
			v r = NPUEMU_TO_FP16(v, vf, f);

			if (r[0] != nearest(&fp16, (double)x.f, 0))
				fail_msg("fp32 %#x becomes fp16 %#x, not %#x", x.bits,
					 (unsigned int)r[0],
					 nearest(&fp16, (double)x.f, 0));
		}
	}
	for (x.bits = 0; x.bits < 0x39000000; x.bits += 977) {
		v f = { (s32)(x.bits | 0x80000000u) };
		v r = NPUEMU_TO_FP16(v, vf, f);

		if ((r[0] & 0xffff) != (0x8000 | nearest(&fp16, (double)x.f, 0)))
			fail_msg("fp32 -%#x becomes fp16 %#x", x.bits, (unsigned int)r[0]);
	}
}

static void test_fp32(void **state)
{
	static const u32 fixed[] = {
		0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff,
		0x00800000, 0x80800000, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001,
		0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000,
		0x7f800001, 0xff800001, 0x7fffffff, 0x33800000, 0x34000000, 0x4b800000,
		0x73000000, 0xf3000000, 0x00ffffff, 0x80ffffff,
	};
	size_t k = ARRAY_SIZE(fixed), n = k * k + 400000, i;
	u32 *a = buffer(4 * n), *b = buffer(4 * n);
	void *work = buffer(4 * n), *want = buffer(4 * n);
	unsigned int op;

	(void)state;
	for (i = 0; i < n; i++) {
		a[i] = i < k * k ? fixed[i / k] : random32();
		b[i] = i < k * k ? fixed[i % k] : random32();
		if (i >= k * k && i & 1)	/* exponents that meet */
			b[i] = (a[i] & 0x7f800000) ^ (b[i] & 0x8dffffff);
	}
	for (op = NPUEMU_REDUCE_MAX; op <= NPUEMU_REDUCE_SUM; op++)
		check_levels(op, NPUEMU_FP32, a, b, n, work, want);
	free(a);
	free(b);
	free(work);
	free(want);
}

static void test_integers(void **state)
{
	static const u32 fixed[] = {
		0, 1, ~0u, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff,
		0x80000000, 0x80000001, 0x80808080, 0x7f7f7f7f,
	};
	size_t n = 65536, i;
	void *a = buffer(4 * n), *b = buffer(4 * n);
	void *work = buffer(4 * n), *want = buffer(4 * n);
	unsigned int op, dtype, size, k = ARRAY_SIZE(fixed);

	(void)state;
	for (dtype = NPUEMU_INT8; dtype <= NPUEMU_UINT32; dtype++) {
		size = npuemu_dtype_size(dtype);
		for (i = 0; i < n; i++) {	/* 8 bits: every pair */
			bool any = size > 1 && i >= k * k;

			put(a, size, i, size == 1 ? (u32)i :
			    any ? random32() : fixed[i / k % k]);
			put(b, size, i, size == 1 ? (u32)(i >> 8) :
			    any ? random32() : fixed[i % k]);
		}
		for (op = NPUEMU_REDUCE_MAX; op <= NPUEMU_REDUCE_SUM; op++)
			check_levels(op, dtype, a, b, n, work, want);
	}
	free(a);
	free(b);
	free(work);
	free(want);
}

/* npuemu_reduce() of @n elements at offset @at; nothing else may change. */
static void check_edges(unsigned int op, unsigned int dtype, size_t n, size_t at,
			u8 *dst, const u8 *src, u8 *want)
{
	unsigned int size = npuemu_dtype_size(dtype);
	size_t i, start = EDGE + at * size, all = start + n * size + EDGE;
	const u8 *from = src + (at * 3 % 8) * size;

	memset(want, GUARD, all);
	for (i = 0; i < n * size; i++)
		want[start + i] = (u8)random32();
	memcpy(dst, want, all);
	for (i = 0; i < n; i++)
		put(want + start, size, i,
		    reference(op, dtype, get(want + start, size, i), get(from, size, i)));
	assert_true(npuemu_reduce(dst + start, from, n, op, dtype));
	if (memcmp(dst, want, all))
		fail_msg("%s %s of %zu elements at offset %zu: wrong, or wrong around",
			 type_name[dtype], op_name[op - NPUEMU_REDUCE_MAX], n, at);
}

static void test_lengths_and_edges(void **state)
{
	u8 *dst = buffer(65536), *want = buffer(65536), *src = buffer(65536);
	u8 *keep = buffer(65536);
	unsigned int op, dtype;
	size_t n, at, i;

	(void)state;
	for (i = 0; i < 65536; i++)
		src[i] = (u8)random32();
	memcpy(keep, src, 65536);
	for (dtype = 0; dtype < TYPES; dtype++) {
		for (op = NPUEMU_REDUCE_MAX; op <= NPUEMU_REDUCE_SUM; op++) {
			for (at = 0; at < 9; at++)
				for (n = 0; n <= 150; n++)
					check_edges(op, dtype, n, at, dst, src, want);
			check_edges(op, dtype, 4099, 1, dst, src, want);
		}
	}
	assert_memory_equal(src, keep, 65536);
	free(dst);
	free(want);
	free(src);
	free(keep);
}

/* Longer than what is done with the FPU held at once. */
static void test_pieces(void **state)
{
	size_t n = (2 * NPUEMU_FPU_BYTES + 4096) / 4 + 3, i;
	u32 *dst = buffer(4 * n), *src = buffer(4 * n);

	(void)state;
	for (i = 0; i < n; i++) {
		dst[i] = (u32)i;
		src[i] = 7 * (u32)i + 1;
	}
	assert_true(npuemu_reduce(dst, src, n, NPUEMU_REDUCE_SUM, NPUEMU_UINT32));
	for (i = 0; i < n; i++)
		if (dst[i] != 8 * (u32)i + 1)
			fail_msg("element %zu is %#x", i, dst[i]);
	free(dst);
	free(src);
}

static void test_in_place(void **state)
{
	u16 p[133];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(p); i++)
		p[i] = (u16)(0x3000 + 17 * i);
	assert_true(npuemu_reduce(p, p, ARRAY_SIZE(p), NPUEMU_REDUCE_SUM, NPUEMU_FP16));
	for (i = 0; i < ARRAY_SIZE(p); i++)
		assert_int_equal(p[i], 0x3400 + 17 * i);
}

static void test_unknown(void **state)
{
	static const u32 bad[] = { 0, 7, 11, 12, 9 + 256, ~0u };
	u32 dst[4] = { 1, 2, 3, 4 }, src[4] = { 5, 6, 7, 8 };
	static const u32 keep[4] = { 1, 2, 3, 4 };
	unsigned int i, dtype;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		for (dtype = 0; dtype < TYPES; dtype++)
			assert_false(npuemu_reduce(dst, src, 4, bad[i], dtype));
	for (i = NPUEMU_REDUCE_MAX; i <= NPUEMU_REDUCE_SUM; i++) {
		assert_false(npuemu_reduce(dst, src, 4, i, TYPES));
		assert_false(npuemu_reduce(dst, src, 4, i, ~0u));
		assert_true(npuemu_reduce(dst, src, 0, i, NPUEMU_FP32));
	}
	assert_memory_equal(dst, keep, sizeof(keep));
}

static void test_dtype_size(void **state)
{
	static const unsigned int size[] = { 1, 2, 4, 1, 2, 4, 2, 4, 2 };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(size); i++)
		assert_int_equal(npuemu_dtype_size(i), size[i]);
	assert_int_equal(npuemu_dtype_size(9), 0);
	assert_int_equal(npuemu_dtype_size(~0u), 0);
}

#ifdef __x86_64__
/* The thread's float environment is neither used nor changed. */
static void test_float_environment(void **state)
{
	static const u32 mxcsr[] = {
		0x9fc0,				/* flush to zero, both ways */
		0x3f80, 0x5f80, 0x7f80,		/* round down, up, to zero */
		0x0000,				/* every exception traps */
	};
	static const unsigned int types[] = { NPUEMU_FP16, NPUEMU_FP32, NPUEMU_BF16 };
	size_t n = 4096, i;
	u8 *a = buffer(4 * n), *b = buffer(4 * n), *want = buffer(4 * n);
	unsigned int e, t, size;
	u32 after;

	(void)state;
	for (t = 0; t < ARRAY_SIZE(types); t++) {
		for (e = 0; e < ARRAY_SIZE(mxcsr); e++) {
			size = npuemu_dtype_size(types[t]);
			for (i = 0; i < 4 * n; i++) {
				a[i] = (u8)random32();
				b[i] = (u8)random32();
			}
			for (i = 0; i < n / 4; i++) {	/* subnormals too */
				put(a, size, i, get(a, size, i) & 0x807f);
				put(b, size, i, get(b, size, i) & 0x807f);
			}
			for (i = 0; i < n; i++)
				put(want, size, i,
				    reference(NPUEMU_REDUCE_SUM, types[t],
					      get(a, size, i), get(b, size, i)));
			__builtin_ia32_ldmxcsr(mxcsr[e]);
			npuemu_reduce(a, b, n, NPUEMU_REDUCE_SUM, types[t]);
			after = __builtin_ia32_stmxcsr();
			__builtin_ia32_ldmxcsr(NPUEMU_MXCSR_DEFAULT);
			assert_int_equal(after, mxcsr[e]);
			assert_memory_equal(a, want, n * size);
		}
	}
	free(a);
	free(b);
	free(want);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fp16),
		cmocka_unit_test(test_bf16),
		cmocka_unit_test(test_fp16_rounding),
		cmocka_unit_test(test_fp32),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_lengths_and_edges),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_dtype_size),
#ifdef __x86_64__
		cmocka_unit_test(test_float_environment),
#endif
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
