// SPDX-License-Identifier: MIT
/*
 * The plain reference: what each rank puts in, and what a reduction of that comes to.
 *
 * Every element follows from the row, the rank and its place.  What is only moved, and
 * integers, are all bits; integers wrap, so that the order of a sum makes no difference.
 * Floating-point numbers are small whole numbers, or powers of two for products, such that
 * no order of adding up ever rounds: any rounding, and any byte out of place, is wrong.
 */
#include <math.h>
#include <string.h>

#include "coll.h"

const char *const npuemu_coll_type_names[] = {
	"int8", "int16", "int32", "fp16", "fp32", "int64", "uint64", "uint8", "uint16", "uint32",
	"fp64", "bfp16", "int128", "?", "hif8", "fp8e4m3", "fp8e5m2", "fp8e8m0", NULL
};

const char *const npuemu_coll_op_names[] = { "sum", "prod", "max", "min", NULL };

#define FACTORS		8u	/* ranks that have anything but 1 and -1 in a product */

static const struct {
	uint8_t bytes;
	char kind;		/* s, u: integers; f: floating point; m: moved, never reduced */
	uint32_t exact;		/* whole numbers up to this one have no gaps */
} types[] = {
	[HCCL_DATA_TYPE_INT8] = { 1, 's', 0 },
	[HCCL_DATA_TYPE_INT16] = { 2, 's', 0 },
	[HCCL_DATA_TYPE_INT32] = { 4, 's', 0 },
	[HCCL_DATA_TYPE_FP16] = { 2, 'f', 1u << 11 },
	[HCCL_DATA_TYPE_FP32] = { 4, 'f', 1u << 24 },
	[HCCL_DATA_TYPE_INT64] = { 8, 's', 0 },
	[HCCL_DATA_TYPE_UINT64] = { 8, 'u', 0 },
	[HCCL_DATA_TYPE_UINT8] = { 1, 'u', 0 },
	[HCCL_DATA_TYPE_UINT16] = { 2, 'u', 0 },
	[HCCL_DATA_TYPE_UINT32] = { 4, 'u', 0 },
	[HCCL_DATA_TYPE_FP64] = { 8, 'f', 1u << 30 },
	[HCCL_DATA_TYPE_BFP16] = { 2, 'f', 1u << 8 },
	[HCCL_DATA_TYPE_INT128] = { 16, 'm', 0 },
	[HCCL_DATA_TYPE_HIF8] = { 1, 'm', 0 },
	[HCCL_DATA_TYPE_FP8E4M3] = { 1, 'm', 0 },
	[HCCL_DATA_TYPE_FP8E5M2] = { 1, 'm', 0 },
	[HCCL_DATA_TYPE_FP8E8M0] = { 1, 'm', 0 },
};

uint32_t npuemu_coll_type_bytes(uint32_t type)
{
	return type < NPUEMU_COLL_TYPES && type < sizeof(types) / sizeof(types[0]) ?
		types[type].bytes : 0;
}

int npuemu_coll_type_reduces(uint32_t type)
{
	return npuemu_coll_type_bytes(type) && types[type].kind != 'm';
}

static inline uint64_t bits(const struct npuemu_coll_row *k, uint32_t rank, uint64_t i)
{
	uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ull + (k->index + 1) * 0xc2b2ae3d27d4eb4full;

	x ^= (rank + 1) * 0xd6e8feb86659fd93ull;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return x ^ x >> 29;
}

static inline uint64_t integer(const struct npuemu_coll_row *k, uint32_t rank, uint64_t i)
{
	uint64_t v = bits(k, rank, i);
	uint32_t off = 64 - 8 * k->elem;

	return types[k->type].kind == 's' ? (uint64_t)((int64_t)(v << off) >> off) : v << off >> off;
}

static inline double number(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
			    uint64_t i)
{
	uint64_t v = bits(k, rank, i);
	uint32_t most = types[k->type].exact;

	if (k->op == HCCL_REDUCE_PROD)
		return (v & 1 ? -1.0 : 1.0) *
			(rank < FACTORS ? v >> 1 & 1 ? 2.0 : v >> 2 & 1 ? 0.5 : 1.0 : 1.0);
	if (k->op == HCCL_REDUCE_SUM)
		most /= ranks;
	return (double)(int64_t)(v % (2 * (uint64_t)most + 1)) - (double)most;
}

/* What number() makes, and sums and products of them: never rounds, never subnormal. */
static uint16_t half(double v)
{
	uint16_t sign = v < 0 ? 0x8000 : 0;
	double m;
	int e;

	if (!v)
		return 0;
	m = frexp(fabs(v), &e);
	return sign | (uint16_t)((uint16_t)(e + 14) << 10) | (uint16_t)((2 * m - 1) * 1024);
}

static void put_number(uint32_t type, double v, void *to)
{
	float f = (float)v;
	uint32_t word;
	uint16_t h;

	switch (type) {
	case HCCL_DATA_TYPE_FP64:
		memcpy(to, &v, sizeof(v));
		return;
	case HCCL_DATA_TYPE_FP32:
		memcpy(to, &f, sizeof(f));
		return;
	case HCCL_DATA_TYPE_FP16:
		h = half(v);
		break;
	default:
		memcpy(&word, &f, sizeof(word));
		h = (uint16_t)(word >> 16);
	}
	memcpy(to, &h, sizeof(h));
}

void npuemu_coll_fill(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
		      uint64_t first, uint64_t n, void *to)
{
	char *p = to;
	uint64_t i, v[2];

	for (i = first; i < first + n; i++, p += k->elem) {
		if (k->coll->reduces && types[k->type].kind == 'f') {
			put_number(k->type, number(k, ranks, rank, i), p);
			continue;
		}
		v[0] = bits(k, rank, i);
		v[1] = ~v[0] * 0x9e3779b97f4a7c15ull;
		memcpy(p, v, k->elem);
	}
}

static inline double combine(uint32_t op, double a, double b)
{
	switch (op) {
	case HCCL_REDUCE_SUM:
		return a + b;
	case HCCL_REDUCE_PROD:
		return a * b;
	case HCCL_REDUCE_MAX:
		return a > b ? a : b;
	default:
		return a < b ? a : b;
	}
}

static inline uint64_t combine_integers(uint32_t op, int is_signed, uint64_t a, uint64_t b)
{
	int more = is_signed ? (int64_t)a > (int64_t)b : a > b;

	switch (op) {
	case HCCL_REDUCE_SUM:
		return a + b;
	case HCCL_REDUCE_PROD:
		return a * b;
	case HCCL_REDUCE_MAX:
		return more ? a : b;
	default:
		return more ? b : a;
	}
}

void npuemu_coll_reduced(const struct npuemu_coll_row *k, uint32_t ranks, uint64_t first,
			 uint64_t n, void *to)
{
	char *p = to;
	uint64_t i, v;
	uint32_t r;
	double d;

	for (i = first; i < first + n; i++, p += k->elem) {
		if (types[k->type].kind == 'f') {
			d = number(k, ranks, 0, i);
			for (r = 1; r < ranks; r++)
				d = combine(k->op, d, number(k, ranks, r, i));
			put_number(k->type, d, p);
			continue;
		}
		v = integer(k, 0, i);
		for (r = 1; r < ranks; r++)
			v = combine_integers(k->op, types[k->type].kind == 's', v,
					     integer(k, r, i));
		memcpy(p, &v, k->elem);		/* the low bytes: integers wrap */
	}
}
