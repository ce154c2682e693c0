// SPDX-License-Identifier: MIT
/*
 * What collectives have to give, by loops as plain as can be: values that every rank can
 * work out for every other one, sums in rank order, and buffers before and after.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hccltest.h"

/* ---- Types and names --------------------------------------------------------- */

static const struct {
	HcclDataType type;
	const char *name;
	uint8_t size;
	bool reducible;
} types[HT_TYPES] = {
	{ HCCL_DATA_TYPE_INT8, "int8", 1, true },	{ HCCL_DATA_TYPE_INT16, "int16", 2, true },
	{ HCCL_DATA_TYPE_INT32, "int32", 4, true },	{ HCCL_DATA_TYPE_FP16, "fp16", 2, true },
	{ HCCL_DATA_TYPE_FP32, "fp32", 4, true },	{ HCCL_DATA_TYPE_INT64, "int64", 8, true },
	{ HCCL_DATA_TYPE_UINT64, "uint64", 8, true },	{ HCCL_DATA_TYPE_UINT8, "uint8", 1, true },
	{ HCCL_DATA_TYPE_UINT16, "uint16", 2, true },	{ HCCL_DATA_TYPE_UINT32, "uint32", 4, true },
	{ HCCL_DATA_TYPE_FP64, "fp64", 8, true },	{ HCCL_DATA_TYPE_BFP16, "bfp16", 2, true },
	{ HCCL_DATA_TYPE_INT128, "int128", 16, false },	{ HCCL_DATA_TYPE_HIF8, "hif8", 1, false },
	{ HCCL_DATA_TYPE_FP8E4M3, "fp8e4m3", 1, false }, { HCCL_DATA_TYPE_FP8E5M2, "fp8e5m2", 1, false },
	{ HCCL_DATA_TYPE_FP8E8M0, "fp8e8m0", 1, false },
};

static const struct {
	const char *name;
	bool reduces, rooted, in_place, v;
} colls[HT_COLLS] = {
	[HT_ALLREDUCE]	    = { "AllReduce", .reduces = true, .in_place = true },
	[HT_REDUCE]	    = { "Reduce", .reduces = true, .rooted = true, .in_place = true },
	[HT_REDUCESCATTER]  = { "ReduceScatter", .reduces = true, .in_place = true },
	[HT_REDUCESCATTERV] = { "ReduceScatterV", .reduces = true, .v = true },
	[HT_ALLGATHER]	    = { "AllGather", .in_place = true },
	[HT_ALLGATHERV]	    = { "AllGatherV", .v = true },
	[HT_BROADCAST]	    = { "Broadcast", .rooted = true },
	[HT_SCATTER]	    = { "Scatter", .rooted = true, .in_place = true },
	[HT_ALLTOALL]	    = { "AlltoAll" },
	[HT_ALLTOALLV]	    = { "AlltoAllV", .v = true },
	[HT_ALLTOALLVC]	    = { "AlltoAllVC", .v = true },
};

static uint32_t index_of(HcclDataType type)
{
	uint32_t i;

	for (i = 0; i < HT_TYPES && types[i].type != type; i++)
		;
	sys_true(i < HT_TYPES, "no type %d", (int)type);
	return i;
}

HcclDataType ht_type(uint32_t i)
{
	return types[i].type;
}

const char *ht_type_name(HcclDataType type)
{
	return types[index_of(type)].name;
}

const char *ht_coll_name(enum ht_coll coll)
{
	return colls[coll].name;
}

uint32_t ht_size(HcclDataType type)
{
	return types[index_of(type)].size;
}

bool ht_reduces(enum ht_coll coll)
{
	return colls[coll].reduces;
}

bool ht_rooted(enum ht_coll coll)
{
	return colls[coll].rooted;
}

bool ht_reducible(HcclDataType type)
{
	return types[index_of(type)].reducible;
}

bool ht_may_be_in_place(enum ht_coll coll)
{
	return colls[coll].in_place;
}

void ht_case_text(const struct ht_case *k, char *buf, size_t size)
{
	static const char *const ops[] = { "sum", "prod", "max", "min" };

	snprintf(buf, size, "%s of %llu %s%s%s, root %u of %u ranks%s%s, seed %llu; %s",
		 ht_coll_name(k->coll), (unsigned long long)k->count, ht_type_name(k->type),
		 ht_reduces(k->coll) ? ", " : "", ht_reduces(k->coll) ? ops[k->op] : "", k->root,
		 k->ranks, k->in_place ? ", in place" : "", k->exact ? ", exact" : "",
		 (unsigned long long)k->seed, k->note ? k->note : "");
}

/* ---- Values -------------------------------------------------------------------- */

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/*
 * For sums: a few bits before the point, all bits of the mantissa behind it, so that the
 * order matters; or whole numbers, whose sums fit.  Products stay near 1, or are powers of two.
 */
static double real(const struct ht_case *k, uint64_t h)
{
	double sign = h & 1 ? -1 : 1;

	if (k->op == HCCL_REDUCE_PROD)
		return k->exact ? sign * (h & 2 ? 2 : 1) :
		       sign * (0.5 + (double)(h >> 12) / (double)(1ull << 52) * 1.5);
	if (k->exact)
		return (double)(int)(h % 17) - 8;
	return sign * (1.0 + (double)(h >> 12) / (double)(1ull << 52)) * (double)(1u << (h >> 1 & 7)) / 16;
}

static uint16_t to_bf(float f)
{
	uint32_t bits, low;

	memcpy(&bits, &f, sizeof(bits));
	low = bits & 0xffff;
	bits >>= 16;
	if (low > 0x8000 || (low == 0x8000 && bits & 1))
		bits++;
	return (uint16_t)bits;
}

static float from_bf(uint16_t v)
{
	uint32_t bits = (uint32_t)v << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static void put_real(HcclDataType type, double v, void *out)
{
	_Float16 half = (_Float16)v;
	float single = (float)v;
	uint16_t bf = to_bf(single);

	if (type == HCCL_DATA_TYPE_FP16)
		memcpy(out, &half, sizeof(half));
	else if (type == HCCL_DATA_TYPE_BFP16)
		memcpy(out, &bf, sizeof(bf));
	else if (type == HCCL_DATA_TYPE_FP32)
		memcpy(out, &single, sizeof(single));
	else
		memcpy(out, &v, sizeof(v));
}

static bool floats(HcclDataType type)
{
	return type == HCCL_DATA_TYPE_FP16 || type == HCCL_DATA_TYPE_BFP16 ||
	       type == HCCL_DATA_TYPE_FP32 || type == HCCL_DATA_TYPE_FP64;
}

void ht_values(const struct ht_case *k, uint32_t rank, uint64_t first, uint64_t n, void *out)
{
	uint64_t base = k->seed * 0x9e3779b97f4a7c15u + ((uint64_t)rank << 40), i, h[2];
	bool real_ones = floats(k->type) && ht_reduces(k->coll);
	uint32_t size = ht_size(k->type);
	uint8_t *at = out;

	for (i = 0; i < n; i++, at += size) {
		h[0] = mix(base + first + i);
		h[1] = ~h[0];
		if (real_ones)
			put_real(k->type, real(k, h[0]), at);
		else
			memcpy(at, h, size);
	}
}

/* ---- Reductions ------------------------------------------------------------------ */

#define EACH(type, wide, from, to)							\
	do {										\
		type *a_ = acc;								\
		const type *b_ = in;							\
		uint64_t i_;								\
											\
		for (i_ = 0; i_ < n; i_++) {						\
			wide a = (wide)from(a_[i_]), b = (wide)from(b_[i_]);		\
											\
			if (op == HCCL_REDUCE_SUM)					\
				a = (wide)(a + b);					\
			else if (op == HCCL_REDUCE_PROD)				\
				a = (wide)(a * b);					\
			else if (op == HCCL_REDUCE_MAX ? from(b_[i_]) > from(a_[i_]) :	\
							 from(b_[i_]) < from(a_[i_]))	\
				a = b;							\
			a_[i_] = (type)to(a);						\
		}									\
	} while (0)

#define AS_IT_IS(v)	(v)

void ht_reduce(HcclDataType type, HcclReduceOp op, void *acc, const void *in, uint64_t n)
{
	switch (type) {
	case HCCL_DATA_TYPE_INT8:
		EACH(int8_t, uint64_t, AS_IT_IS, AS_IT_IS);
		break;
	case HCCL_DATA_TYPE_INT16:
		EACH(int16_t, uint64_t, AS_IT_IS, AS_IT_IS);
		break;
	case HCCL_DATA_TYPE_INT32:
		EACH(int32_t, uint64_t, AS_IT_IS, AS_IT_IS);
		break;
	case HCCL_DATA_TYPE_INT64:
		EACH(int64_t, uint64_t, AS_IT_IS, AS_IT_IS);
		break;
	case HCCL_DATA_TYPE_UINT8:
		EACH(uint8_t, uint64_t, AS_IT_IS, AS_IT_IS);
		break;
	case HCCL_DATA_TYPE_UINT16:
		EACH(uint16_t, uint64_t, AS_IT_IS, AS_IT_IS);
		break;
	case HCCL_DATA_TYPE_UINT32:
		EACH(uint32_t, uint64_t, AS_IT_IS, AS_IT_IS);
		break;
	case HCCL_DATA_TYPE_UINT64:
		EACH(uint64_t, uint64_t, AS_IT_IS, AS_IT_IS);
		break;
	case HCCL_DATA_TYPE_FP16:
		EACH(_Float16, float, AS_IT_IS, AS_IT_IS);
		break;
	case HCCL_DATA_TYPE_BFP16:
		EACH(uint16_t, float, from_bf, to_bf);
		break;
	case HCCL_DATA_TYPE_FP32:
		EACH(float, float, AS_IT_IS, AS_IT_IS);
		break;
	case HCCL_DATA_TYPE_FP64:
		EACH(double, double, AS_IT_IS, AS_IT_IS);
		break;
	default:
		sys_fail(__FILE__, __LINE__, "%s is not reduced", ht_type_name(type));
	}
}

/* ---- Counts and displacements ------------------------------------------------------ */

/* Of a V form, what @from sends to @to: up to k->count, some of it nothing. */
static uint64_t between(const struct ht_case *k, uint32_t from, uint32_t to)
{
	uint64_t h = mix(k->seed ^ (from * 64 + to + 1));

	if (from == to && !(h & 8))
		return k->count;
	switch (h & 7) {
	case 0:
		return 0;
	case 1:
		return k->count / 3;
	case 2:
		return k->count ? k->count - 1 : 0;
	default:
		return k->count;
	}
}

/* Parts one after the other, in an order of their own, with gaps of up to 3 between them. */
static uint64_t spread(const struct ht_case *k, uint32_t salt, const uint64_t *counts, uint64_t *displs)
{
	uint64_t at = mix(k->seed + salt) & 3;
	uint32_t i, part, n = k->ranks, first = (uint32_t)(mix(k->seed - salt) % n);

	for (i = 0; i < n; i++) {
		part = mix(k->seed * 3 + salt) & 1 ? (first + i) % n : (first + n - i) % n;
		displs[part] = at;
		at += counts[part] + (mix(k->seed + salt + i) & 3);
	}
	return at;
}

static void v_layout(const struct ht_case *k, uint32_t rank, struct ht_layout *l)
{
	uint32_t i, j, n = k->ranks;
	bool same = k->coll == HT_ALLGATHERV || k->coll == HT_REDUCESCATTERV;

	for (i = 0; i < n; i++)
		for (j = 0; j < n; j++)
			l->matrix[i * n + j] = between(k, i, j);
	for (i = 0; i < n; i++) {
		/* of these two only one row is used, by all ranks */
		l->send[i] = same ? between(k, 0, i) : l->matrix[rank * n + i];
		l->recv[i] = same ? between(k, 0, i) : l->matrix[i * n + rank];
	}
	switch (k->coll) {
	case HT_ALLGATHERV:
		l->in = l->recv[rank];
		l->out = spread(k, rank + 1, l->recv, l->rdispl);
		break;
	case HT_REDUCESCATTERV:
		l->in = spread(k, 1, l->send, l->sdispl);
		l->out = l->send[rank];
		break;
	case HT_ALLTOALLV:
		l->in = spread(k, rank + 1, l->send, l->sdispl);
		l->out = spread(k, rank + 100, l->recv, l->rdispl);
		break;
	default:	/* VC: no gaps */
		for (i = 0; i < n; i++) {
			l->sdispl[i] = l->in;
			l->in += l->send[i];
			l->rdispl[i] = l->out;
			l->out += l->recv[i];
		}
	}
}

void ht_layout(const struct ht_case *k, uint32_t rank, struct ht_layout *l)
{
	uint64_t n = k->ranks;

	memset(l, 0, sizeof(*l));
	if (colls[k->coll].v) {
		v_layout(k, rank, l);
		return;
	}
	l->in = k->count;
	l->out = k->count;
	if (k->coll == HT_REDUCESCATTER || k->coll == HT_SCATTER || k->coll == HT_ALLTOALL)
		l->in *= n;
	if (k->coll == HT_ALLGATHER || k->coll == HT_ALLTOALL)
		l->out *= n;
}

/* ---- What comes out ------------------------------------------------------------------ */

/* @n elements from @first on, combined over all ranks, in their order. */
static void combine(const struct ht_case *k, uint64_t first, uint64_t n, void *out)
{
	void *next = malloc(n * ht_size(k->type) + 1);
	uint32_t i;

	sys_true(next, "no memory");
	ht_values(k, 0, first, n, out);
	for (i = 1; i < k->ranks; i++) {
		ht_values(k, i, first, n, next);
		ht_reduce(k->type, k->op, out, next, n);
	}
	free(next);
}

/* What @rank gets of each other one. */
static void gather(const struct ht_case *k, uint32_t rank, const struct ht_layout *l, uint8_t *out)
{
	uint32_t size = ht_size(k->type), i;
	struct ht_layout of;

	for (i = 0; i < k->ranks; i++) {
		switch (k->coll) {
		case HT_ALLGATHER:
			ht_values(k, i, 0, k->count, out + i * k->count * size);
			break;
		case HT_ALLTOALL:
			ht_values(k, i, rank * k->count, k->count, out + i * k->count * size);
			break;
		case HT_ALLGATHERV:
			ht_values(k, i, 0, l->recv[i], out + l->rdispl[i] * size);
			break;
		default:
			ht_layout(k, i, &of);
			ht_values(k, i, of.sdispl[rank], of.send[rank], out + l->rdispl[i] * size);
		}
	}
}

void ht_expected(const struct ht_case *k, uint32_t rank, const struct ht_layout *l, void *out)
{
	switch (k->coll) {
	case HT_ALLREDUCE:
		combine(k, 0, k->count, out);
		break;
	case HT_REDUCE:
		if (rank == k->root)
			combine(k, 0, k->count, out);
		break;
	case HT_REDUCESCATTER:
		combine(k, rank * k->count, k->count, out);
		break;
	case HT_REDUCESCATTERV:
		combine(k, l->sdispl[rank], l->send[rank], out);
		break;
	case HT_BROADCAST:
		ht_values(k, k->root, 0, k->count, out);
		break;
	case HT_SCATTER:
		ht_values(k, k->root, rank * k->count, k->count, out);
		break;
	default:
		gather(k, rank, l, out);
	}
}
