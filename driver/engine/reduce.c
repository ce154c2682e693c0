// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Combining bytes: dst[i] = dst[i] op src[i].
 *
 * The same bits come out everywhere, whatever the compiler and the vector width:
 *
 * - MAX and MIN of floats compare the bits as integers;
 * - a NaN result is always the positive quiet NaN with an empty payload, for
 *   which of two NaNs an addition passes on is up to the order of its operands,
 *   and which sign a new one gets is up to the machine;
 * - fp16 and bf16 become fp32 and back by integer code, but for two additions
 *   (see NPUEMU_FROM_FP16) that are exact or round once, to nearest even;
 * - there is no multiplication, so nothing can be contracted into one;
 * - the float environment is ours while we add: an application may run with
 *   flush-to-zero, another rounding or unmasked exceptions, and lend its thread.
 *
 * Each operation is one step on a vector of any width, written once with the
 * compilers' generic vectors: a vector of one element does the rest of a row.
 * Comparing vectors gives a mask, all ones or zero in each element.  All steps
 * are built for each width worth having, see NPUEMU_LEVEL.
 */
#include <npuemu/udma.h>

#include "copy.h"

/* Bytes done with the FPU held: the kernel must not keep it for long. */
#ifdef __KERNEL__
#define NPUEMU_FPU_BYTES	4096u
#else
#define NPUEMU_FPU_BYTES	(1024u * 1024)
#endif

/* These race with the users of the memory by design. */
#define NPUEMU_RACY	__attribute__((__no_sanitize__("thread")))

#define NPUEMU_FP16_INF		0x7c00
#define NPUEMU_FP16_NAN		0x7e00
#define NPUEMU_BF16_INF		0x7f80
#define NPUEMU_BF16_NAN		0x7fc0
#define NPUEMU_FP32_INF		0x7f800000
#define NPUEMU_FP32_NAN		0x7fc00000

/* An exponent in its place in an fp32; 127 is that of 1.0. */
#define NPUEMU_EXP(e)		((e) << 23)

/* @width bytes of @type, in memory that may hold any other type. */
#define NPUEMU_VECTOR(type, width)					\
	type __attribute__((__vector_size__(width),			\
			    __aligned__(sizeof(type)), __may_alias__))

#ifdef __FAST_MATH__
#error "reduce.c needs NaNs and the order of additions: build it without -ffast-math"
#endif

#define NPUEMU_SELECT(mask, x, y)	(((x) & (mask)) | ((y) & ~(mask)))

/*
 * The steps: combine @w bytes of @type at @s into those at @d.  Each reads and
 * writes an element once.
 */
#define NPUEMU_STEP_SUM(type, w, d, s)					\
	do {								\
		typedef NPUEMU_VECTOR(type, w) v;			\
									\
		*(v *)(d) += *(const v *)(s);				\
	} while (0)

#define NPUEMU_STEP_PICK(type, w, d, s, op)				\
	do {								\
		typedef NPUEMU_VECTOR(type, w) v;			\
		v a = *(const v *)(d), b = *(const v *)(s);		\
		v first = (v)(a op b);					\
									\
		*(v *)(d) = NPUEMU_SELECT(first, a, b);			\
	} while (0)

#define NPUEMU_STEP_MAX(type, w, d, s)	NPUEMU_STEP_PICK(type, w, d, s, >)
#define NPUEMU_STEP_MIN(type, w, d, s)	NPUEMU_STEP_PICK(type, w, d, s, <)

/*
 * MAX and MIN of floats whose bits are in the signed @type.  With the other bits
 * of negative ones inverted they sort as integers, -0 just below +0.
 */
#define NPUEMU_STEP_FPICK(type, w, d, s, op, mask, inf, nan)		\
	do {								\
		typedef NPUEMU_VECTOR(type, w) v;			\
		v a = *(const v *)(d), b = *(const v *)(s);		\
		v ka = a ^ ((a >> (8 * sizeof(type) - 1)) & (mask));	\
		v kb = b ^ ((b >> (8 * sizeof(type) - 1)) & (mask));	\
		v first = (v)(ka op kb);				\
		v nans = (v)((a & (mask)) > (inf)) |			\
			 (v)((b & (mask)) > (inf));			\
		v r = NPUEMU_SELECT(first, a, b);			\
									\
		*(v *)(d) = NPUEMU_SELECT(nans, (nan), r);		\
	} while (0)

#define NPUEMU_STEP_FP32_PICK(w, d, s, op)				\
	NPUEMU_STEP_FPICK(s32, w, d, s, op, 0x7fffffff,			\
			  NPUEMU_FP32_INF, NPUEMU_FP32_NAN)
#define NPUEMU_STEP_FP16_PICK(w, d, s, op)				\
	NPUEMU_STEP_FPICK(s16, w, d, s, op, 0x7fff,			\
			  NPUEMU_FP16_INF, NPUEMU_FP16_NAN)
#define NPUEMU_STEP_BF16_PICK(w, d, s, op)				\
	NPUEMU_STEP_FPICK(s16, w, d, s, op, 0x7fff,			\
			  NPUEMU_BF16_INF, NPUEMU_BF16_NAN)

#define NPUEMU_STEP_FP32_MAX(type, w, d, s)	NPUEMU_STEP_FP32_PICK(w, d, s, >)
#define NPUEMU_STEP_FP32_MIN(type, w, d, s)	NPUEMU_STEP_FP32_PICK(w, d, s, <)
#define NPUEMU_STEP_FP16_MAX(type, w, d, s)	NPUEMU_STEP_FP16_PICK(w, d, s, >)
#define NPUEMU_STEP_FP16_MIN(type, w, d, s)	NPUEMU_STEP_FP16_PICK(w, d, s, <)
#define NPUEMU_STEP_BF16_MAX(type, w, d, s)	NPUEMU_STEP_BF16_PICK(w, d, s, >)
#define NPUEMU_STEP_BF16_MIN(type, w, d, s)	NPUEMU_STEP_BF16_PICK(w, d, s, <)

#define NPUEMU_STEP_FP32_SUM(type, w, d, s)				\
	do {								\
		typedef NPUEMU_VECTOR(float, w) vf;			\
		typedef NPUEMU_VECTOR(s32, w) v;			\
		vf r = *(const vf *)(d) + *(const vf *)(s);		\
		v nans = r != r;					\
									\
		*(v *)(d) = NPUEMU_SELECT(nans, NPUEMU_FP32_NAN, (v)r);	\
	} while (0)

/*
 * The fp16 in the low half of each element of @h, as fp32.  A subnormal one put
 * into a normal one's place reads as 2^-14 + value; taking 2^-14 away is exact.
 */
#define NPUEMU_FROM_FP16(v, vf, h)					\
	({								\
		v __mag = ((h) & 0x7fff) << 13;				\
		v __tiny = (v)((vf)(__mag + NPUEMU_EXP(113)) - 1.0f / 16384); \
		v __is_tiny = __mag < NPUEMU_EXP(1);			\
		v __out = NPUEMU_SELECT(__is_tiny, __tiny,		\
					__mag + NPUEMU_EXP(112));	\
									\
		/* infinities and NaNs have the largest exponent there too */ \
		__out += (__mag >= NPUEMU_EXP(31)) & NPUEMU_EXP(112);	\
		__out | (((h) & 0x8000) << 16);				\
	})

/*
 * Back, to nearest even.  What is below 2^-14 the FPU rounds: the last place of
 * 0.5 + value is that of a subnormal fp16.
 */
#define NPUEMU_TO_FP16(v, vf, f)					\
	({								\
		v __mag = (f) & 0x7fffffff;				\
		v __odd = (__mag >> 13) & 1;				\
		v __out = (__mag - NPUEMU_EXP(112) + 0xfff + __odd) >> 13; \
		v __tiny = (v)((vf)__mag + 0.5f) - NPUEMU_EXP(126);	\
		v __is_tiny = __mag < NPUEMU_EXP(113);			\
		v __big, __nans = (vf)__mag != (vf)__mag;		\
									\
		__out = NPUEMU_SELECT(__is_tiny, __tiny, __out);	\
		__big = __out > NPUEMU_FP16_INF;			\
		__out = NPUEMU_SELECT(__big, NPUEMU_FP16_INF, __out);	\
		__out |= ((f) >> 16) & 0x8000;				\
		NPUEMU_SELECT(__nans, NPUEMU_FP16_NAN, __out);		\
	})

#define NPUEMU_FROM_BF16(v, vf, h)	((h) << 16)

#define NPUEMU_TO_BF16(v, vf, f)					\
	({								\
		v __nans = (vf)(f) != (vf)(f);				\
		v __out = ((f) + 0x7fff + (((f) >> 16) & 1)) >> 16;	\
									\
		NPUEMU_SELECT(__nans, NPUEMU_BF16_NAN, __out);		\
	})

/* The sum of 16-bit floats, in vectors of 32-bit ones. */
#define NPUEMU_STEP_HALF_SUM(w, d, s, kind)				\
	do {								\
		typedef NPUEMU_VECTOR(u16, w) vh;			\
		typedef NPUEMU_VECTOR(s32, 2 * (w)) v;			\
		typedef NPUEMU_VECTOR(float, 2 * (w)) vf;		\
		v a = __builtin_convertvector(*(const vh *)(d), v);	\
		v b = __builtin_convertvector(*(const vh *)(s), v);	\
		v r;							\
									\
		a = NPUEMU_FROM_##kind(v, vf, a);			\
		b = NPUEMU_FROM_##kind(v, vf, b);			\
		r = (v)((vf)a + (vf)b);					\
		r = NPUEMU_TO_##kind(v, vf, r);				\
		*(vh *)(d) = __builtin_convertvector(r, vh);		\
	} while (0)

#define NPUEMU_STEP_FP16_SUM(type, w, d, s)	NPUEMU_STEP_HALF_SUM(w, d, s, FP16)
#define NPUEMU_STEP_BF16_SUM(type, w, d, s)	NPUEMU_STEP_HALF_SUM(w, d, s, BF16)

/*
 * The same by the processor's own conversions, which give the same bits once the
 * NaNs are made one.  $0 is to nearest even, whatever MXCSR says.
 */
#define NPUEMU_STEP_FP16_SUM_F16C(type, w, d, s)			\
	do {								\
		typedef NPUEMU_VECTOR(s16, w) vh;			\
		typedef NPUEMU_VECTOR(float, 2 * (w)) vf;		\
		vh r = *(const vh *)(d), nans;				\
		vf a, b;						\
									\
		__asm__("vcvtph2ps %1, %0" : "=v"(a) : "v"(r));		\
		__asm__("vcvtph2ps %1, %0" : "=v"(b) : "v"(*(const vh *)(s))); \
		a += b;							\
		__asm__("vcvtps2ph $0, %1, %0" : "=v"(r) : "v"(a));	\
		nans = (r & 0x7fff) > NPUEMU_FP16_INF;			\
		*(vh *)(d) = NPUEMU_SELECT(nans, NPUEMU_FP16_NAN, r);	\
	} while (0)

/* Two bf16 in each element: no widening, no packing. */
#define NPUEMU_STEP_BF16_SUM_PAIRS(type, w, d, s)			\
	do {								\
		typedef NPUEMU_VECTOR(u16, w) vh;			\
		typedef NPUEMU_VECTOR(s32, w) v;			\
		typedef NPUEMU_VECTOR(float, w) vf;			\
		v a = (v)*(const vh *)(d), b = (v)*(const vh *)(s);	\
		v lo = (v)((vf)(a << 16) + (vf)(b << 16));		\
		v hi = (v)((vf)(a & ~0xffff) + (vf)(b & ~0xffff));	\
									\
		lo = NPUEMU_TO_BF16(v, vf, lo) & 0xffff;		\
		hi = NPUEMU_TO_BF16(v, vf, hi) << 16;			\
		*(vh *)(d) = (vh)(lo | hi);				\
	} while (0)

typedef void (*npuemu_reduce_fn)(void *dst, const void *src, size_t n);

/* For the loop that matters most: gcc does not unroll by itself, clang does. */
#define NPUEMU_AS_IS
#define NPUEMU_ROLLED
#ifdef __clang__
#define NPUEMU_UNROLLED
#else
#define NPUEMU_UNROLLED	_Pragma("GCC unroll 4")
#endif

/* @n elements of @type by @step, @width bytes at a time, and the rest by @one. */
#define NPUEMU_LOOP_REST(name, step, one, type, attr, width, how)	\
static attr NPUEMU_RACY void						\
npuemu_##name(void *dst, const void *src, size_t n)			\
{									\
	size_t i, len = n * sizeof(type);				\
	const u8 *s = src;						\
	u8 *d = dst;							\
									\
	NPUEMU_##how							\
	for (i = 0; len - i >= (width); i += (width))			\
		NPUEMU_STEP_##step(type, width, d + i, s + i);		\
	for (; i < len; i += sizeof(type))				\
		NPUEMU_STEP_##one(type, sizeof(type), d + i, s + i);	\
}

#define NPUEMU_LOOP(name, step, type, attr, width)			\
	NPUEMU_LOOP_REST(name, step, step, type, attr, width, ROLLED)

#define NPUEMU_OPS	3	/* MAX, MIN, SUM, as they are numbered */

#define NPUEMU_ROW(type, sum, level)	{				\
		npuemu_##type##_max_##level,				\
		npuemu_##type##_min_##level,				\
		npuemu_##sum##_sum_##level,				\
	}

/*
 * All loops of a level, and the table of them.  A sum of two's complement
 * numbers has no sign to care about.  @w: bytes of a vector, @fp16_sum: the step
 * for that.
 */
#define NPUEMU_LEVEL(level, attr, w, fp16_sum)				\
NPUEMU_LOOP(s8_max_##level, MAX, s8, attr, w)				\
NPUEMU_LOOP(s8_min_##level, MIN, s8, attr, w)				\
NPUEMU_LOOP(s16_max_##level, MAX, s16, attr, w)				\
NPUEMU_LOOP(s16_min_##level, MIN, s16, attr, w)				\
NPUEMU_LOOP(s32_max_##level, MAX, s32, attr, w)				\
NPUEMU_LOOP(s32_min_##level, MIN, s32, attr, w)				\
NPUEMU_LOOP(u8_max_##level, MAX, u8, attr, w)				\
NPUEMU_LOOP(u8_min_##level, MIN, u8, attr, w)				\
NPUEMU_LOOP(u8_sum_##level, SUM, u8, attr, w)				\
NPUEMU_LOOP(u16_max_##level, MAX, u16, attr, w)				\
NPUEMU_LOOP(u16_min_##level, MIN, u16, attr, w)				\
NPUEMU_LOOP(u16_sum_##level, SUM, u16, attr, w)				\
NPUEMU_LOOP(u32_max_##level, MAX, u32, attr, w)				\
NPUEMU_LOOP(u32_min_##level, MIN, u32, attr, w)				\
NPUEMU_LOOP(u32_sum_##level, SUM, u32, attr, w)				\
NPUEMU_LOOP(fp16_max_##level, FP16_MAX, u16, attr, w)			\
NPUEMU_LOOP(fp16_min_##level, FP16_MIN, u16, attr, w)			\
NPUEMU_LOOP_REST(fp16_sum_##level, fp16_sum, FP16_SUM, u16, attr, (w) / 2, ROLLED) \
NPUEMU_LOOP(fp32_max_##level, FP32_MAX, u32, attr, w)			\
NPUEMU_LOOP(fp32_min_##level, FP32_MIN, u32, attr, w)			\
NPUEMU_LOOP_REST(fp32_sum_##level, FP32_SUM, FP32_SUM, u32, attr, w, UNROLLED) \
NPUEMU_LOOP(bf16_max_##level, BF16_MAX, u16, attr, w)			\
NPUEMU_LOOP(bf16_min_##level, BF16_MIN, u16, attr, w)			\
NPUEMU_LOOP_REST(bf16_sum_##level, BF16_SUM_PAIRS, BF16_SUM, u16, attr, w, ROLLED) \
static const npuemu_reduce_fn npuemu_reduce_##level[][NPUEMU_OPS] = {	\
	[NPUEMU_INT8] = NPUEMU_ROW(s8, u8, level),			\
	[NPUEMU_INT16] = NPUEMU_ROW(s16, u16, level),			\
	[NPUEMU_INT32] = NPUEMU_ROW(s32, u32, level),			\
	[NPUEMU_UINT8] = NPUEMU_ROW(u8, u8, level),			\
	[NPUEMU_UINT16] = NPUEMU_ROW(u16, u16, level),			\
	[NPUEMU_UINT32] = NPUEMU_ROW(u32, u32, level),			\
	[NPUEMU_FP16] = NPUEMU_ROW(fp16, fp16, level),			\
	[NPUEMU_FP32] = NPUEMU_ROW(fp32, fp32, level),			\
	[NPUEMU_BF16] = NPUEMU_ROW(bf16, bf16, level),			\
}

NPUEMU_LEVEL(plain, NPUEMU_AS_IS, 16, FP16_SUM);

#if defined(__x86_64__) && !defined(__KERNEL__)

#define NPUEMU_AVX2	__attribute__((__target__("avx2,f16c")))
#define NPUEMU_AVX512	\
	__attribute__((__target__("avx512f,avx512bw,avx512dq,avx512vl")))

NPUEMU_LEVEL(avx2, NPUEMU_AVX2, 32, FP16_SUM_F16C);
NPUEMU_LEVEL(avx512, NPUEMU_AVX512, 64, FP16_SUM_F16C);

/* clang cannot ask for F16C; it came with the generation before FMA. */
#ifdef __clang__
#define NPUEMU_HAS_F16C()	__builtin_cpu_supports("fma")
#else
#define NPUEMU_HAS_F16C()	__builtin_cpu_supports("f16c")
#endif

/* The best table this machine can run. */
static const npuemu_reduce_fn (*npuemu_reduce_table(void))[NPUEMU_OPS]
{
	if (__builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl"))
		return npuemu_reduce_avx512;
	if (__builtin_cpu_supports("avx2") && NPUEMU_HAS_F16C())
		return npuemu_reduce_avx2;
	return npuemu_reduce_plain;
}

#define NPUEMU_MXCSR_DEFAULT	0x1f80u

static u32 npuemu_float_begin(void)
{
	u32 old = __builtin_ia32_stmxcsr();

	__builtin_ia32_ldmxcsr(NPUEMU_MXCSR_DEFAULT);
	return old;
}

static void npuemu_float_end(u32 old)
{
	__builtin_ia32_ldmxcsr(old);
}

#else /* the kernel, whose FPU is in its default state; other machines */

static const npuemu_reduce_fn (*npuemu_reduce_table(void))[NPUEMU_OPS]
{
	return npuemu_reduce_plain;
}

static u32 npuemu_float_begin(void)
{
	return 0;
}

static void npuemu_float_end(u32 old)
{
	(void)old;
}

#endif

unsigned int npuemu_dtype_size(unsigned int dtype)
{
	static const u8 size[] = {
		[NPUEMU_INT8] = 1, [NPUEMU_INT16] = 2, [NPUEMU_INT32] = 4,
		[NPUEMU_UINT8] = 1, [NPUEMU_UINT16] = 2, [NPUEMU_UINT32] = 4,
		[NPUEMU_FP16] = 2, [NPUEMU_FP32] = 4, [NPUEMU_BF16] = 2,
	};

	return dtype < ARRAY_SIZE(size) ? size[dtype] : 0;
}

/* All loops use vector registers, so all of them hold the FPU; nothing out here
 * may touch it.
 */
static noinline void npuemu_reduce_pieces(npuemu_reduce_fn fn, u8 *dst,
					  const u8 *src, size_t n, unsigned int size)
{
	size_t most = NPUEMU_FPU_BYTES / size;

	while (n) {
		size_t some = n < most ? n : most;
		u32 env;

		npuemu_fpu_begin();
		env = npuemu_float_begin();
		fn(dst, src, some);
		npuemu_float_end(env);
		npuemu_fpu_end();
		dst += some * size;
		src += some * size;
		n -= some;
	}
}

bool npuemu_reduce(void *dst, const void *src, size_t n, unsigned int op,
		   unsigned int dtype)
{
	unsigned int size = npuemu_dtype_size(dtype);

	if (!size || op < NPUEMU_REDUCE_MAX || op > NPUEMU_REDUCE_SUM)
		return false;
	npuemu_reduce_pieces(npuemu_reduce_table()[dtype][op - NPUEMU_REDUCE_MAX],
			     dst, src, n, size);
	return true;
}
