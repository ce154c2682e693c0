// SPDX-License-Identifier: MIT
/* Data types and reductions, and what is there for which chip. */
#include <stdio.h>
#include "support.h"

#define T(type)		(1u << HCCL_DATA_TYPE_##type)
#define SUM		(1u << HCCL_REDUCE_SUM)
#define PROD		(1u << HCCL_REDUCE_PROD)
#define EXTREMES	(1u << HCCL_REDUCE_MAX | 1u << HCCL_REDUCE_MIN)
#define ALL		(SUM | PROD | EXTREMES)

#define SIGNED		(T(INT8) | T(INT16) | T(INT32) | T(INT64))
#define UNSIGNED	(T(UINT8) | T(UINT16) | T(UINT32) | T(UINT64))
#define FLOATS		(T(FP16) | T(FP32) | T(FP64) | T(BFP16))
#define FP8S		(T(HIF8) | T(FP8E4M3) | T(FP8E5M2) | T(FP8E8M0))
#define COMPUTABLE	(SIGNED | UNSIGNED | FLOATS)

/* What a name of a chip begins with; the first that fits. */
static const struct {
	const char *prefix;
	enum hccl_soc soc;
} socs[] = {
	{ "Ascend910B", HCCL_SOC_A2 },
	{ "Ascend910_93", HCCL_SOC_A3 },
	{ "Ascend910", HCCL_SOC_910 },
	{ "Ascend310P", HCCL_SOC_310P },
};

static const struct {
	const char *name;
	u32 bytes;
} types[] = {
	[HCCL_DATA_TYPE_INT8] = { "int8", 1 },
	[HCCL_DATA_TYPE_INT16] = { "int16", 2 },
	[HCCL_DATA_TYPE_INT32] = { "int32", 4 },
	[HCCL_DATA_TYPE_FP16] = { "fp16", 2 },
	[HCCL_DATA_TYPE_FP32] = { "fp32", 4 },
	[HCCL_DATA_TYPE_INT64] = { "int64", 8 },
	[HCCL_DATA_TYPE_UINT64] = { "uint64", 8 },
	[HCCL_DATA_TYPE_UINT8] = { "uint8", 1 },
	[HCCL_DATA_TYPE_UINT16] = { "uint16", 2 },
	[HCCL_DATA_TYPE_UINT32] = { "uint32", 4 },
	[HCCL_DATA_TYPE_FP64] = { "fp64", 8 },
	[HCCL_DATA_TYPE_BFP16] = { "bfp16", 2 },
	[HCCL_DATA_TYPE_INT128] = { "int128", 16 },
	[HCCL_DATA_TYPE_HIF8] = { "hif8", 1 },
	[HCCL_DATA_TYPE_FP8E4M3] = { "fp8e4m3", 1 },
	[HCCL_DATA_TYPE_FP8E5M2] = { "fp8e5m2", 1 },
	[HCCL_DATA_TYPE_FP8E8M0] = { "fp8e8m0", 1 },
};

static const char *const ops[] = {
	[HCCL_REDUCE_SUM] = "sum",
	[HCCL_REDUCE_PROD] = "prod",
	[HCCL_REDUCE_MAX] = "max",
	[HCCL_REDUCE_MIN] = "min",
};

/* The documentation's support matrix, by chip; any: all reductions, but for prod: no_prod. */
struct matrix {
	u32 any;
	u32 no_prod;
	u32 sum_only;
	u32 v;			/* types of ReduceScatterV */
	u32 v_ops;
	u32 moves;
};

static const struct matrix matrices[] = {
	[HCCL_SOC_910] = {
		.any = T(INT8) | T(INT32) | T(INT64) | T(FP16) | T(FP32),
		.moves = COMPUTABLE & ~T(BFP16),
	},
	[HCCL_SOC_310P] = {
		.any = T(INT8) | T(INT32) | T(FP16) | T(FP32),
		.sum_only = T(INT16),
		.v = T(INT8) | T(INT16) | T(FP16) | T(FP32),
		.v_ops = SUM,
		.moves = COMPUTABLE & ~T(BFP16),
	},
	[HCCL_SOC_A2] = {
		.any = T(INT8) | T(INT32) | T(INT64) | T(FP16) | T(FP32),
		.no_prod = T(INT16) | T(BFP16),
		.v = T(INT8) | T(INT16) | T(INT32) | T(FP16) | T(FP32) | T(BFP16),
		.v_ops = SUM | EXTREMES,
		.moves = COMPUTABLE,
	},
	[HCCL_SOC_A3] = {
		.any = T(INT8) | T(INT32) | T(INT64) | T(FP16) | T(FP32),
		.no_prod = T(INT16) | T(BFP16),
		.v = T(INT8) | T(INT16) | T(INT32) | T(INT64) | T(FP16) | T(FP32) | T(BFP16),
		.v_ops = SUM | EXTREMES,
		.moves = COMPUTABLE,
	},
	[HCCL_SOC_950] = {
		.any = T(INT8) | T(INT32) | T(INT64) | T(UINT64) | T(FP16) | T(FP32) | T(FP64),
		.no_prod = T(INT16) | T(BFP16),
		.v = SIGNED | T(UINT64) | FLOATS,
		.v_ops = ALL,
		.moves = COMPUTABLE | FP8S,
	},
};

enum hccl_soc hccl_soc_of(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(socs); i++)
		if (!strncmp(name, socs[i].prefix, strlen(socs[i].prefix)))
			return socs[i].soc;
	return HCCL_SOC_950;
}

static bool is_type(u32 type)
{
	return type < ARRAY_SIZE(types) && types[type].name;
}

u32 hccl_type_bytes(u32 type)
{
	return is_type(type) ? types[type].bytes : 0;
}

const char *hccl_type_name(u32 type)
{
	return is_type(type) ? types[type].name : "type?";
}

const char *hccl_op_name(u32 op)
{
	return op < ARRAY_SIZE(ops) ? ops[op] : "op?";
}

/* The reductions that a chip does of a type. */
static u32 reductions(const struct matrix *m, u32 type)
{
	const u32 bit = 1u << type;

	if (m->any & bit)
		return ALL;
	if (m->no_prod & bit)
		return SUM | EXTREMES;
	return m->sum_only & bit ? SUM : 0;
}

static int check_type(u32 type, char *why, size_t room)
{
	if (is_type(type))
		return HCCL_SUCCESS;
	snprintf(why, room, "dataType %u is none; expected 0 (int8) to 12 (int128), 14 (hif8) to 17 (fp8e8m0)",
		 type);
	return HCCL_E_PARA;
}

static int check_reduction(u32 type, u32 op, char *why, size_t room)
{
	int ret = check_type(type, why, room);

	if (ret)
		return ret;
	if (op >= ARRAY_SIZE(ops)) {
		snprintf(why, room, "reduction %u is none; expected 0 (sum), 1 (prod), 2 (max) or 3 (min)", op);
		return HCCL_E_PARA;
	}
	if (COMPUTABLE >> type & 1)
		return HCCL_SUCCESS;
	snprintf(why, room, "%s can be moved, but not reduced", types[type].name);
	return HCCL_E_NOT_SUPPORT;
}

static int refuse(u32 type, const char *op, const char *soc, char *why, size_t room)
{
	snprintf(why, room, "%s%s%s is not there on %s (NPUEMU_HCCL_STRICT=1)", op, *op ? " of " : "",
		 types[type].name, soc);
	return HCCL_E_NOT_SUPPORT;
}

int hccl_reduce_ok(u32 type, u32 op, const char *soc, char *why, size_t room)
{
	int ret = check_reduction(type, op, why, room);

	if (ret || !soc || reductions(&matrices[hccl_soc_of(soc)], type) >> op & 1)
		return ret;
	return refuse(type, ops[op], soc, why, room);
}

int hccl_reduce_scatter_v_ok(u32 type, u32 op, const char *soc, char *why, size_t room)
{
	int ret = check_reduction(type, op, why, room);
	const struct matrix *m;

	if (ret || !soc)
		return ret;
	m = &matrices[hccl_soc_of(soc)];
	if (m->v >> type & 1 && m->v_ops >> op & 1)
		return HCCL_SUCCESS;
	return refuse(type, ops[op], soc, why, room);
}

int hccl_move_ok(u32 type, const char *soc, char *why, size_t room)
{
	int ret = check_type(type, why, room);

	if (ret || !soc || matrices[hccl_soc_of(soc)].moves >> type & 1)
		return ret;
	return refuse(type, "", soc, why, room);
}
