// SPDX-License-Identifier: MIT
/*
 * HCCL_ALGO: "level0:NA;level1:ring", for every operation; or for some of them,
 * "allreduce=level0:NA;level1:ring/others=level1:NHR".
 */
#include <stdio.h>
#include "confparse.h"

/* As the user writes them; the first of a choice is what we write. */
static const struct {
	const char *name;
	u8 alg;
} algs[] = {
	{ "-", HCCL_ALG_DEFAULT },	/* for us only */
	{ "NA", HCCL_ALG_NA },
	{ "ring", HCCL_ALG_RING },
	{ "H-D_R", HCCL_ALG_HDR },
	{ "NHR", HCCL_ALG_NHR },
	{ "NHR_V1", HCCL_ALG_NHR_V1 },
	{ "NB", HCCL_ALG_NB },
	{ "AHC", HCCL_ALG_AHC },
	{ "AHC_BROKE", HCCL_ALG_AHC_BROKE },
	{ "pipeline", HCCL_ALG_PIPELINE },
	{ "pairwise", HCCL_ALG_PAIRWISE },
	{ "fullmesh", HCCL_ALG_MESH },
	{ "mesh_oneshot", HCCL_ALG_MESH_ONESHOT },
	{ "mesh_twoshot", HCCL_ALG_MESH_TWOSHOT },
	{ "mesh", HCCL_ALG_MESH },
	{ "null", HCCL_ALG_NA },
};

#define CMD(name)	(1u << HCCL_CMD_##name)

static const struct {
	const char *name;
	u32 cmds;		/* the operations that follow it */
} ops[] = {
	{ "broadcast", CMD(BROADCAST) },
	{ "allreduce", CMD(ALLREDUCE) },
	{ "reduce", CMD(REDUCE) },
	{ "send", CMD(SEND) },
	{ "receive", CMD(RECEIVE) },
	{ "allgather", CMD(ALLGATHER) | CMD(ALLGATHER_V) },
	{ "reducescatter", CMD(REDUCE_SCATTER) | CMD(REDUCE_SCATTER_V) },
	{ "alltoall", CMD(ALLTOALL) | CMD(ALLTOALLV) | CMD(ALLTOALLVC) | CMD(HALF_ALLTOALLV) },
	{ "gather", CMD(GATHER) },
	{ "scatter", CMD(SCATTER) },
	{ "sendrecv", CMD(BATCH_SEND_RECV) },
	{ "others", 0 },	/* those that are not named */
};

const char *hccl_alg_name(u32 alg)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(algs); i++)
		if (algs[i].alg == alg)
			return algs[i].name;
	return "?";
}

static bool parse_level(struct span item, u8 *levels, struct conf_out *o)
{
	struct span key, value;
	size_t i;
	u32 level;

	if (!conf_pair(item, &key, &value) || key.n != 6 || memcmp(key.s, "level", 5) ||
	    !conf_u32((struct span){ key.s + 5, 1 }, 0, HCCL_ALG_LEVELS - 1, &level))
		return conf_bad(o, "\"%.*s\" is not level0: to level%d: and an algorithm", (int)item.n, item.s,
				HCCL_ALG_LEVELS - 1);
	for (i = 1; i < ARRAY_SIZE(algs) && !conf_is(value, algs[i].name); i++)
		;
	if (i == ARRAY_SIZE(algs))
		return conf_bad(o, "\"%.*s\" is none of NA, ring, H-D_R, NHR, NHR_V1, NB, AHC, AHC_BROKE, pipeline, pairwise, fullmesh, mesh_oneshot, mesh_twoshot",
				(int)value.n, value.s);
	if (levels[level])
		return conf_bad(o, "level%u is there twice", level);
	levels[level] = algs[i].alg;
	return true;
}

static bool parse_levels(struct span text, u8 *levels, struct conf_out *o)
{
	struct span item;

	memset(levels, HCCL_ALG_DEFAULT, HCCL_ALG_LEVELS);
	while (conf_next(&text, ';', &item))
		if (!parse_level(item, levels, o))
			return false;
	return true;
}

static void set(struct hccl_config *c, u32 cmds, const u8 *levels)
{
	u32 i;

	for (i = 0; i < HCCL_ALG_CMDS; i++)
		if (cmds >> i & 1)
			memcpy(c->alg[i], levels, HCCL_ALG_LEVELS);
}

/* One OPERATION=LEVELS; @named: those that came before. */
static bool parse_op(struct hccl_config *c, struct span item, u32 *named, u8 *others, struct conf_out *o)
{
	u8 levels[HCCL_ALG_LEVELS];
	struct span op, text = item;
	size_t i;

	conf_next(&text, '=', &op);
	for (i = 0; i < ARRAY_SIZE(ops) && !conf_is(op, ops[i].name); i++)
		;
	if (!text.s || i == ARRAY_SIZE(ops))
		return conf_bad(o, "\"%.*s\" does not begin with broadcast=, allreduce=, reduce=, allgather=, reducescatter=, alltoall=, scatter=, gather=, send=, receive=, sendrecv= or others=",
				(int)item.n, item.s);
	if (*named >> i & 1)
		return conf_bad(o, "%s= is there twice", ops[i].name);
	*named |= 1u << i;
	if (!parse_levels(text, levels, o))
		return false;
	if (ops[i].cmds)
		set(c, ops[i].cmds, levels);
	else
		memcpy(others, levels, sizeof(levels));
	return true;
}

bool hccl_config_parse_algo(struct hccl_config *c, const char *s, char *bad, size_t room)
{
	struct conf_out o = { .bad = bad, .room = room };
	u8 levels[HCCL_ALG_LEVELS] = { 0 };
	struct span rest = conf_span(s), item;
	u8 alg[sizeof(c->alg)];
	u32 named = 0, rest_of = ~0u;
	size_t i;

	/* as it was, should a later part be bad */
	memcpy(alg, c->alg, sizeof(alg));
	if (!strchr(s, '=')) {
		if (!parse_levels(rest, levels, &o))
			return false;
		set(c, ~0u, levels);
		snprintf(c->algo, sizeof(c->algo), "%s", s);
		return true;
	}
	memset(c->alg, HCCL_ALG_DEFAULT, sizeof(c->alg));
	while (conf_next(&rest, '/', &item))
		if (!parse_op(c, item, &named, levels, &o)) {
			memcpy(c->alg, alg, sizeof(alg));
			return false;
		}
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		if (named >> i & 1)
			rest_of &= ~ops[i].cmds;
	set(c, rest_of, levels);
	snprintf(c->algo, sizeof(c->algo), "%s", s);
	return true;
}
