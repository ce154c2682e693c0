// SPDX-License-Identifier: MIT
/*
 * Reductions.  Those that the SDMA engine has are descriptors; the others (64-bit
 * types, products) run on the AI CPUs of the real device, and here in the thread that
 * carries out the lane.  Integers wrap, a float16 or bfloat16 is rounded after each step,
 * to the nearest, ties to even.
 */
#include "comm.h"
#include "support.h"

bool hccl_sdma_reduces(u32 type, u32 op, u32 *code)
{
	static const s8 types[] = {
		[HCCL_DATA_TYPE_INT8] = 0, [HCCL_DATA_TYPE_INT16] = 1, [HCCL_DATA_TYPE_INT32] = 2,
		[HCCL_DATA_TYPE_FP16] = 6, [HCCL_DATA_TYPE_FP32] = 7, [HCCL_DATA_TYPE_INT64] = -1,
		[HCCL_DATA_TYPE_UINT64] = -1, [HCCL_DATA_TYPE_UINT8] = 3, [HCCL_DATA_TYPE_UINT16] = 4,
		[HCCL_DATA_TYPE_UINT32] = 5, [HCCL_DATA_TYPE_FP64] = -1, [HCCL_DATA_TYPE_BFP16] = 8,
	};
	static const u8 ops[] = {
		[HCCL_REDUCE_SUM] = 10, [HCCL_REDUCE_PROD] = 0, [HCCL_REDUCE_MAX] = 8, [HCCL_REDUCE_MIN] = 9,
	};

	if (type >= ARRAY_SIZE(types) || op >= ARRAY_SIZE(ops) || types[type] < 0 || !ops[op])
		return false;
	*code = (u32)ops[op] << 4 | (u32)types[type];
	return true;
}

static float half_up(u16 v)
{
	u32 e = v >> 10 & 0x1f, m = v & 0x3ff, bits;
	float f;

	if (!e) {
		f = (float)m * 0x1p-24f;
		return v & 0x8000 ? -f : f;
	}
	bits = (u32)(v & 0x8000) << 16 | (e == 31 ? 255 : e + 112) << 23 | m << 13;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* To the nearest, ties to even, @shift bits away. */
static u32 rounded(u32 v, u32 shift)
{
	return (v + (1u << (shift - 1)) - 1 + (v >> shift & 1)) >> shift;
}

static u16 half_down(float v)
{
	u32 bits, sign, e;

	memcpy(&bits, &v, sizeof(bits));
	sign = bits >> 16 & 0x8000;
	bits &= 0x7fffffff;
	if (bits > 0x7f800000)
		return (u16)(sign | 0x7e00 | (bits >> 13 & 0x1ff));
	if (bits >= 0x477ff000)		/* halfway from the largest to 65536, and more */
		return (u16)(sign | 0x7c00);
	if (bits >= 0x38800000)
		return (u16)(sign | rounded(bits - (112u << 23), 13));
	e = bits >> 23;
	if (e < 102)			/* below half of the smallest */
		return (u16)sign;
	return (u16)(sign | rounded((bits & 0x7fffff) | 0x800000, 126 - e));
}

static float bf_up(u16 v)
{
	u32 bits = (u32)v << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static u16 bf_down(float v)
{
	u32 bits;

	memcpy(&bits, &v, sizeof(bits));
	if ((bits & 0x7fffffff) > 0x7f800000)
		return (u16)(bits >> 16 | 0x40);	/* a NaN stays one */
	return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define LOOP(type, expr)							\
	do {									\
		__typeof__(type) *d = dst;					\
		const type *s = src;						\
		u64 i, n = bytes / sizeof(type);				\
										\
		for (i = 0; i < n; i++) {					\
			const type a = d[i], b = s[i];				\
										\
			d[i] = (type)(expr);					\
		}								\
		return true;							\
	} while (0)

/* @unsigned_type: where sums and products wrap, and are no errors */
#define INTEGER(type, unsigned_type)						\
	do {									\
		switch (op) {							\
		case HCCL_REDUCE_SUM:						\
			LOOP(type, (unsigned_type)a + (unsigned_type)b);	\
		case HCCL_REDUCE_PROD:						\
			LOOP(type, (unsigned_type)a * (unsigned_type)b);	\
		case HCCL_REDUCE_MAX:						\
			LOOP(type, a > b ? a : b);				\
		case HCCL_REDUCE_MIN:						\
			LOOP(type, a < b ? a : b);				\
		default:							\
			return false;						\
		}								\
	} while (0)

#define FLOATING(type, up, down)						\
	do {									\
		switch (op) {							\
		case HCCL_REDUCE_SUM:						\
			LOOP(type, down(up(a) + up(b)));			\
		case HCCL_REDUCE_PROD:						\
			LOOP(type, down(up(a) * up(b)));			\
		case HCCL_REDUCE_MAX:						\
			LOOP(type, up(a) > up(b) ? a : b);			\
		case HCCL_REDUCE_MIN:						\
			LOOP(type, up(a) < up(b) ? a : b);			\
		default:							\
			return false;						\
		}								\
	} while (0)

bool hccl_aicpu_reduce(void *dst, const void *src, u64 bytes, u32 type, u32 op)
{
	switch (type) {
	case HCCL_DATA_TYPE_INT8:
		INTEGER(s8, u32);
	case HCCL_DATA_TYPE_INT16:
		INTEGER(s16, u32);
	case HCCL_DATA_TYPE_INT32:
		INTEGER(s32, u32);
	case HCCL_DATA_TYPE_INT64:
		INTEGER(s64, u64);
	case HCCL_DATA_TYPE_UINT8:
		INTEGER(u8, u32);
	case HCCL_DATA_TYPE_UINT16:
		INTEGER(u16, u32);
	case HCCL_DATA_TYPE_UINT32:
		INTEGER(u32, u32);
	case HCCL_DATA_TYPE_UINT64:
		INTEGER(u64, u64);
	case HCCL_DATA_TYPE_FP16:
		FLOATING(u16, half_up, half_down);
	case HCCL_DATA_TYPE_BFP16:
		FLOATING(u16, bf_up, bf_down);
	case HCCL_DATA_TYPE_FP32:
		FLOATING(float, , );
	case HCCL_DATA_TYPE_FP64:
		FLOATING(double, , );
	default:
		return false;
	}
}
