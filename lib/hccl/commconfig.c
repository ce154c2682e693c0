// SPDX-License-Identifier: MIT
/*
 * HcclCommConfig: what a program sets for one communicator.  The struct has grown
 * with each version, so a member counts only if both its version and its size, as
 * the program's header had them, have room for it.
 */
#include <inttypes.h>
#include <stdio.h>
#include "confparse.h"

#define SYMWIN_MAX	4096	/* GB for each rank: 64 of them still fit in what a process has */

/* What the struct's first bytes are. */
struct info {
	size_t size;
	u32 magic;
	u32 version;
	u64 reserved;
};

struct comm {
	const char *base;
	struct info info;
	char *why;
	size_t room;
};

static int bad(const struct comm *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int bad(const struct comm *m, const char *fmt, ...)
{
	va_list ap;
	int n;

	n = snprintf(m->why, m->room, "EI0003: HcclCommConfig (version %u, %zu bytes): ", m->info.version,
		     m->info.size);
	if (n > 0 && (size_t)n < m->room) {
		va_start(ap, fmt);
		vsnprintf(m->why + n, m->room - (size_t)n, fmt, ap);
		va_end(ap);
	}
	return HCCL_E_PARA;
}

/* ---- Members ---------------------------------------------------------------- */

/* Copied, for the program's struct need not be aligned; false: it has no such member. */
static bool get(const struct comm *m, u32 version, size_t at, void *to, size_t n)
{
	if (m->info.version < version || m->info.size < at + n)
		return false;
	memcpy(to, m->base + at, n);
	return true;
}

#define GET(m, version, member, to)	\
	get(m, version, offsetof(HcclCommConfig, member), &(to), sizeof(to))

/* A string that may fill its array; @to has one byte more. */
static bool get_text(const struct comm *m, u32 version, size_t at, char *to, size_t n)
{
	char text[HCCL_COMM_ALGO_MAX_LENGTH] = "";

	if (!get(m, version, at, text, n) || !text[0])
		return false;
	memcpy(to, text, n);
	to[n] = '\0';
	return true;
}

#define GET_TEXT(m, version, member, to)	\
	get_text(m, version, offsetof(HcclCommConfig, member), to, sizeof(((HcclCommConfig *)0)->member))

static int take_sizes(struct hccl_config *c, const struct comm *m)
{
	u32 v;

	if (GET(m, 1, hcclBufferSize, v) && v != HCCL_NOT_SET) {
		if (!v || v > CONF_BUFFER_MAX)
			return bad(m, "hcclBufferSize is %u; expected 1 to %u (MB), or 0xffffffff: not set", v,
				   CONF_BUFFER_MAX);
		c->buffer_bytes = (u64)v << 20;
	}
	if (GET(m, 1, hcclDeterministic, v) && v != HCCL_NOT_SET) {
		if (v > HCCL_DET_STRICT)
			return bad(m, "hcclDeterministic is %u; expected 0, 1, 2 (strict), or 0xffffffff: not set",
				   v);
		c->deterministic = (u8)v;
	}
	return HCCL_SUCCESS;
}

static int take_mode(struct hccl_config *c, const struct comm *m)
{
	u32 v;

	if (!GET(m, 4, hcclOpExpansionMode, v) || v == HCCL_MODE_DEFAULT)
		return HCCL_SUCCESS;
	if (v > HCCL_MODE_CCU_SCHED)
		return bad(m, "hcclOpExpansionMode is %u; expected 0 (default), 1 (host), 2 (AI CPU), 3 (AIV), 4 (AIV only), 5 (CCU MS) or 6 (CCU scheduled)",
			   v);
	c->mode = (u8)v;
	c->mode_set = true;
	c->aicpu_cache = true;
	return HCCL_SUCCESS;
}

static int take_exec(struct hccl_config *c, const struct comm *m)
{
	s32 v;

	if (!GET(m, 8, hcclExecTimeOut, v) || v == (s32)HCCL_NOT_SET)
		return HCCL_SUCCESS;
	if (v < 0)
		return bad(m, "hcclExecTimeOut is %d; expected 0 (no limit) to 2147483647 (s), or 0xffffffff: not set",
			   v);
	c->exec_ns = (s64)v * 1000000000;
	return HCCL_SUCCESS;
}

static int take_text(struct hccl_config *c, const struct comm *m)
{
	char algo[HCCL_COMM_ALGO_MAX_LENGTH + 1], part[256] = "";
	char text[HCCL_COMM_RETRY_PARAMS_MAX_LENGTH + 1];
	struct conf_out o = { part, sizeof(part) };

	if (GET_TEXT(m, 8, hcclAlgo, algo) && !hccl_config_parse_algo(c, algo, part, sizeof(part)))
		return bad(m, "hcclAlgo is \"%.80s\": %s; expected " CONF_ALGO_WANT, algo, part);
	if (GET_TEXT(m, 8, hcclRetryEnable, text) && !conf_retry(c, text, &o))
		return bad(m, "hcclRetryEnable is \"%s\": %s; expected " CONF_RETRY_WANT, text, part);
	if (GET_TEXT(m, 8, hcclRetryParams, text) && !conf_retry_params(c, text, &o))
		return bad(m, "hcclRetryParams is \"%s\": %s; expected " CONF_PARAM_WANT, text, part);
	return HCCL_SUCCESS;
}

static int take_zero_copy(struct hccl_config *c, const struct comm *m)
{
	u8 v;

	if (!GET(m, 7, aclGraphZeroCopyEnable, v))
		return HCCL_SUCCESS;
	if (v > 1)
		return bad(m, "aclGraphZeroCopyEnable is %u; expected 0 or 1", v);
	c->zero_copy = v;
	return HCCL_SUCCESS;
}

static int take_symwin(struct hccl_config *c, const struct comm *m)
{
	u64 v;

	if (!GET(m, 10, hcclSymWinMaxMemSizePerRank, v) || !v)
		return HCCL_SUCCESS;
	if (v > SYMWIN_MAX)
		return bad(m, "hcclSymWinMaxMemSizePerRank is %" PRIu64 "; expected 1 to %u (GB), or 0: not set",
			   v, SYMWIN_MAX);
	c->symwin_bytes = v << 30;
	return HCCL_SUCCESS;
}

static int take_network(struct hccl_config *c, const struct comm *m)
{
	u32 v;

	if (GET(m, 5, hcclRdmaTrafficClass, v) && v != HCCL_NOT_SET) {
		if (v > 255 || v % 4)
			return bad(m, "hcclRdmaTrafficClass is %u; expected a multiple of 4 from 0 to 255, or 0xffffffff: not set", v);
		c->rdma_tc = v;
	}
	if (GET(m, 5, hcclRdmaServiceLevel, v) && v != HCCL_NOT_SET) {
		if (v > 7)
			return bad(m, "hcclRdmaServiceLevel is %u; expected 0 to 7, or 0xffffffff: not set", v);
		c->rdma_sl = v;
	}
	if (GET(m, 10, hcclQos, v) && v != HCCL_NOT_SET) {
		if (v > 7)
			return bad(m, "hcclQos is %u; expected 0 to 7, or 0xffffffff: not set", v);
		c->qos = v;
	}
	return HCCL_SUCCESS;
}

/* Any value will do. */
static void take_rest(struct hccl_config *c, const struct comm *m)
{
	GET_TEXT(m, 2, hcclCommName, c->name);
	GET_TEXT(m, 3, hcclUdi, c->udi);
	GET_TEXT(m, 9, hcclBufferName, c->buffer_name);
	GET(m, 6, hcclWorldRankID, c->world_rank);
	GET(m, 6, hcclJobID, c->job);
	GET(m, 11, hcclChannelSqDepth, c->sq_depth);
}

/* ---- All of it -------------------------------------------------------------- */

static int check_info(const struct comm *m)
{
	const struct info *i = &m->info;

	if (i->magic != HCCL_COMM_CONFIG_MAGIC_WORD)
		return bad(m, "its magic word is 0x%x; expected 0x%x: prepare it with HcclCommConfigInit()",
			   i->magic, HCCL_COMM_CONFIG_MAGIC_WORD);
	if (i->size < sizeof(*i))
		return bad(m, "its size is smaller than its head of %zu bytes; prepare it with HcclCommConfigInit()",
			   sizeof(*i));
	if (!i->version)
		return bad(m, "its version is 0; expected 1 to %u: prepare it with HcclCommConfigInit()",
			   HCCL_COMM_CONFIG_VERSION);
	if (i->version > HCCL_COMM_CONFIG_VERSION)
		npuemu_log(NPUEMU_LOG_WARN,
			   "HcclCommConfig is of version %u: what version %u does not have is ignored",
			   i->version, HCCL_COMM_CONFIG_VERSION);
	return HCCL_SUCCESS;
}

int hccl_config_apply(struct hccl_config *c, const HcclCommConfig *comm, char *why, size_t room)
{
	static int (*const take[])(struct hccl_config *c, const struct comm *m) = {
		take_sizes, take_mode, take_zero_copy, take_exec, take_text, take_symwin, take_network,
	};
	struct comm m = { .base = (const char *)comm, .why = why, .room = room };
	struct hccl_config next = *c;
	size_t i;
	int ret;

	if (!comm) {
		snprintf(why, room, "EI0003: HcclCommConfig is NULL; give one from HcclCommConfigInit()");
		return HCCL_E_PTR;
	}
	memcpy(&m.info, m.base, sizeof(m.info));
	ret = check_info(&m);
	for (i = 0; i < ARRAY_SIZE(take) && !ret; i++)
		ret = take[i](&next, &m);
	if (ret)
		return ret;
	take_rest(&next, &m);
	*c = next;
	return HCCL_SUCCESS;
}
