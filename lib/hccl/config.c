// SPDX-License-Identifier: MIT
/*
 * The settings of a communicator from the environment, and as one line of text.
 * commconfig.c adds what a program sets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>
#include "confparse.h"
#include "support.h"

#define SECOND	1000000000ll
#define MB	(1ull << 20)

static const char *const modes[HCCL_MODES] = {
	[HCCL_MODE_DEFAULT] = "default",
	[HCCL_MODE_HOST] = "HOST",
	[HCCL_MODE_AICPU] = "AI_CPU",
	[HCCL_MODE_AIV] = "AIV",
	[HCCL_MODE_AIV_ONLY] = "AIV_ONLY",
	[HCCL_MODE_CCU_MS] = "CCU_MS",
	[HCCL_MODE_CCU_SCHED] = "CCU_SCHED",
	[HCCL_MODE_HOST_TS] = "HOST_TS",
};

static const char *const determinisms[] = {
	[HCCL_DET_FALSE] = "false",
	[HCCL_DET_TRUE] = "true",
	[HCCL_DET_STRICT] = "strict",
};

const char *hccl_mode_name(u32 mode)
{
	return mode < HCCL_MODES ? modes[mode] : "?";
}

u32 hccl_mode_public(u32 mode)
{
	/* HcclOpExpansionMode: AI_CPU, AIV, HOST, HOST_TS, CCU_MS, CCU_SCHED, AIV_ONLY */
	static const u8 numbers[HCCL_MODES] = {
		[HCCL_MODE_HOST] = 2, [HCCL_MODE_AICPU] = 0, [HCCL_MODE_AIV] = 1,
		[HCCL_MODE_AIV_ONLY] = 6, [HCCL_MODE_CCU_MS] = 4, [HCCL_MODE_CCU_SCHED] = 5,
		[HCCL_MODE_HOST_TS] = 3,
	};

	return mode < HCCL_MODES ? numbers[mode] : 0;
}

const char *hccl_config_strict_soc(const struct hccl_config *c)
{
	return c->strict ? c->soc : NULL;
}

/* ---- Values of their own kind ----------------------------------------------- */

static bool take_mode(struct hccl_config *c, const char *s, struct conf_out *o)
{
	u32 i;

	(void)o;
	c->aicpu_cache = strcmp(s, "AICPU_CacheDisable") != 0;
	if (!strcmp(s, "AICPU_TS") || !strcmp(s, "AICPU_CacheDisable"))
		s = "AI_CPU";
	for (i = HCCL_MODE_HOST; i < HCCL_MODES && strcmp(s, modes[i]); i++)
		;
	c->mode = (u8)i;
	c->mode_set = true;
	return i < HCCL_MODES;
}

static bool take_deterministic(struct hccl_config *c, const char *s, struct conf_out *o)
{
	u32 i;

	(void)o;
	for (i = 0; i < ARRAY_SIZE(determinisms) && strcasecmp(s, determinisms[i]); i++)
		;
	c->deterministic = (u8)i;
	return i < ARRAY_SIZE(determinisms);
}

static bool take_connect(struct hccl_config *c, const char *s, struct conf_out *o)
{
	if (!conf_seconds(conf_span(s), 7200, &c->connect_ns))
		return false;
	if (c->strict && c->connect_ns < 120 * SECOND)
		return conf_bad(o, "NPUEMU_HCCL_STRICT=1 takes no less than 120");
	return true;
}

static bool take_exec(struct hccl_config *c, const char *s, struct conf_out *o)
{
	(void)o;
	return conf_seconds(conf_span(s), CONF_EXEC_MAX, &c->exec_ns);
}

static bool take_buffer(struct hccl_config *c, const char *s, struct conf_out *o)
{
	u64 mb;

	(void)o;
	if (!conf_number(conf_span(s), 1, CONF_BUFFER_MAX, &mb))
		return false;
	c->buffer_bytes = mb * MB;
	return true;
}

static bool take_algo(struct hccl_config *c, const char *s, struct conf_out *o)
{
	return hccl_config_parse_algo(c, s, o->bad, o->room);
}

static bool take_tc(struct hccl_config *c, const char *s, struct conf_out *o)
{
	(void)o;
	return conf_u32(conf_span(s), 0, 255, &c->rdma_tc) && c->rdma_tc % 4 == 0;
}

static bool take_if_ip(struct hccl_config *c, const char *s, struct conf_out *o)
{
	(void)o;
	if (!conf_ip(s))
		return false;
	snprintf(c->if_ip, sizeof(c->if_ip), "%s", s);
	return true;
}

static bool take_names(struct hccl_config *c, const char *s, struct conf_out *o)
{
	if (strlen(s) >= sizeof(c->if_names))
		return conf_bad(o, "it is longer than %zu characters", sizeof(c->if_names) - 1);
	snprintf(c->if_names, sizeof(c->if_names), "%s", s);
	return conf_names(s, o);
}

static bool take_family(struct hccl_config *c, const char *s, struct conf_out *o)
{
	(void)o;
	c->ipv6 = !strcmp(s, "AF_INET6");
	c->family_set = true;
	return c->ipv6 || !strcmp(s, "AF_INET");
}

static bool take_host_ports(struct hccl_config *c, const char *s, struct conf_out *o)
{
	return conf_ports(&c->host_ports, s, o);
}

static bool take_npu_ports(struct hccl_config *c, const char *s, struct conf_out *o)
{
	return conf_ports(&c->npu_ports, s, o);
}

static bool take_whitelist(struct hccl_config *c, const char *s, struct conf_out *o)
{
	u32 off;

	(void)o;
	if (!conf_u32(conf_span(s), 0, 1, &off))
		return false;
	c->whitelist = !off;
	return true;
}

static bool take_whitelist_file(struct hccl_config *c, const char *s, struct conf_out *o)
{
	(void)o;
	snprintf(c->whitelist_file, sizeof(c->whitelist_file), "%s", s);
	return strlen(s) < sizeof(c->whitelist_file);
}

static bool take_superpod(struct hccl_config *c, const char *s, struct conf_out *o)
{
	(void)o;
	snprintf(c->logic_superpod, sizeof(c->logic_superpod), "%s", s);
	return strlen(s) < sizeof(c->logic_superpod);
}

/* ---- The variables ---------------------------------------------------------- */

enum kind {
	KIND_OWN,		/* take() knows */
	KIND_FLAG,		/* u8: 0 or 1 */
	KIND_BOOL,		/* u8: true or false */
	KIND_U32,		/* u32: min to max */
};

struct var {
	const char *name;
	const char *want;	/* KIND_OWN */
	bool (*take)(struct hccl_config *c, const char *s, struct conf_out *o);
	size_t at;
	u32 min, max;
	enum kind kind;
};

#define OWN(name_, take_, want_)	{ .name = (name_), .take = (take_), .want = (want_) }
#define AT(kind_, name_, member)	.kind = (kind_), .name = (name_), .at = offsetof(struct hccl_config, member)
#define NUMBER(name_, member, min_, max_)	{ AT(KIND_U32, name_, member), .min = (min_), .max = (max_) }

static const struct var vars[] = {
	OWN("HCCL_CONNECT_TIMEOUT", take_connect, "seconds, up to 7200, fractions too; 0: no limit"),
	OWN("HCCL_EXEC_TIMEOUT", take_exec, "seconds, up to 2147483647, fractions too; 0: no limit"),
	OWN("HCCL_BUFFSIZE", take_buffer, "a number of MB, 1 to 1048576"),
	OWN("HCCL_OP_EXPANSION_MODE", take_mode,
	    "HOST, HOST_TS, AI_CPU, AICPU_TS, AICPU_CacheDisable, AIV, AIV_ONLY, CCU_MS or CCU_SCHED"),
	OWN("HCCL_ALGO", take_algo, CONF_ALGO_WANT),
	OWN("HCCL_DETERMINISTIC", take_deterministic, "false, true or strict"),
	{ AT(KIND_BOOL, "HCCL_INTER_HCCS_DISABLE", inter_hccs_off) },
	OWN("HCCL_IF_IP", take_if_ip, "an IPv4 or IPv6 address, or ADDRESS%INTERFACE"),
	OWN("HCCL_SOCKET_IFNAME", take_names, "names of interfaces with commas between them, and ^, = or ^= before them"),
	OWN("HCCL_SOCKET_FAMILY", take_family, "AF_INET or AF_INET6"),
	NUMBER("HCCL_IF_BASE_PORT", if_base_port, 1024, 65520),
	OWN("HCCL_HOST_SOCKET_PORT_RANGE", take_host_ports, "auto, or ports and ranges of them from 1 to 65535: 60000-60031,61000"),
	OWN("HCCL_NPU_SOCKET_PORT_RANGE", take_npu_ports, "auto, or ports and ranges of them from 1 to 65535: 60000-60031,61000"),
	OWN("HCCL_WHITELIST_DISABLE", take_whitelist, "0 or 1"),
	OWN("HCCL_WHITELIST_FILE", take_whitelist_file, "a path of up to 511 characters"),
	OWN("HCCL_LOGIC_SUPERPOD_ID", take_superpod, "up to 128 characters"),
	{ AT(KIND_FLAG, "HCCL_DIAGNOSE_ENABLE", diagnose) },
	{ AT(KIND_FLAG, "HCCL_ENTRY_LOG_ENABLE", entry_log) },
	OWN("HCCL_DEBUG_CONFIG", conf_debug, "alg, task, resource, with commas between them; ^ before them: all but these"),
	OWN("HCCL_DFS_CONFIG", conf_dfs,
	    "KEY:VALUE,...: cluster_heartbeat, stuck_detection, task_exception (on, off), inconsistent_check (on, off, first), connection_fault_detection_time (s: 0, 20 to 7200), task_monitor_interval (ms: 0 to 7200000)"),
	OWN("HCCL_OP_RETRY_ENABLE", conf_retry, CONF_RETRY_WANT),
	OWN("HCCL_OP_RETRY_PARAMS", conf_retry_params, CONF_PARAM_WANT),
	OWN("HCCL_RDMA_TC", take_tc, "a multiple of 4 from 0 to 255"),
	NUMBER("HCCL_RDMA_SL", rdma_sl, 0, 7),
	NUMBER("HCCL_RDMA_TIMEOUT", rdma_timeout, 5, 24),
	NUMBER("HCCL_RDMA_RETRY_CNT", rdma_retries, 1, 7),
	NUMBER("HCCL_RDMA_QPS_PER_CONNECTION", rdma_qps, 1, 32),
	NUMBER("HCCL_MULTI_QP_THRESHOLD", multi_qp_kib, 1, 8192),
	{ AT(KIND_BOOL, "HCCL_RDMA_PCIE_DIRECT_POST_NOSTRICT", rdma_nostrict) },
};

static bool take(struct hccl_config *c, const struct var *v, const char *s, struct conf_out *o)
{
	void *at = (char *)c + v->at;
	u32 flag;

	switch (v->kind) {
	case KIND_FLAG:
		if (!conf_u32(conf_span(s), 0, 1, &flag))
			return false;
		*(u8 *)at = (u8)flag;
		return true;
	case KIND_BOOL:
		*(u8 *)at = !strcasecmp(s, "true");
		return *(u8 *)at || !strcasecmp(s, "false");
	case KIND_U32:
		return conf_u32(conf_span(s), v->min, v->max, at);
	default:
		return v->take(c, s, o);
	}
}

static int refuse(const char *name, const char *s, const char *bad, const char *want, char *why, size_t room)
{
	snprintf(why, room, "EI0001: %s is \"%.80s%s\"%s%s; expected %s", name, s, strlen(s) > 80 ? "..." : "",
		 *bad ? ": " : "", bad, want);
	return HCCL_E_PARA;
}

static int load_var(struct hccl_config *c, const struct var *v, char *why, size_t room)
{
	const char *s = npuemu_getenv(v->name);
	char bad[256] = "", range[64];
	struct conf_out o = { bad, sizeof(bad) };
	const char *want = v->want;

	if (!s || take(c, v, s, &o))
		return HCCL_SUCCESS;
	if (v->kind == KIND_FLAG)
		want = "0 or 1";
	if (v->kind == KIND_BOOL)
		want = "true or false";
	if (v->kind == KIND_U32) {
		snprintf(range, sizeof(range), "a number from %u to %u", v->min, v->max);
		want = range;
	}
	return refuse(v->name, s, bad, want, why, room);
}

/* ---- What depends on more than one of them ---------------------------------- */

/* -1: not set, -2: not 0 or 1 */
static int flag_of(const char *name)
{
	const char *s = npuemu_getenv(name);
	u32 v;

	if (!s)
		return -1;
	return conf_u32(conf_span(s), 0, 1, &v) ? (int)v : -2;
}

/* PCIe unless RoCE is asked for; none of them, or both, is no link. */
static int load_intra(struct hccl_config *c, char *why, size_t room)
{
	static const char *const names[] = { "HCCL_INTRA_PCIE_ENABLE", "HCCL_INTRA_ROCE_ENABLE" };
	int is[2], i;

	for (i = 0; i < 2; i++) {
		is[i] = flag_of(names[i]);
		if (is[i] == -2)
			return refuse(names[i], npuemu_getenv(names[i]), "", "0 or 1", why, room);
	}
	if (is[0] == 1 && is[1] == 1)
		return refuse(names[1], "1", "HCCL_INTRA_PCIE_ENABLE is 1, too", "only one of them to be 1", why, room);
	for (i = 0; i < 2; i++)
		if (is[i] == 0 && is[!i] == -1) {
			char want[80];

			snprintf(want, sizeof(want), "%s=1 with it", names[!i]);
			return refuse(names[i], "0", "it leaves no link", want, why, room);
		}
	c->intra_roce = is[1] == 1;
	c->intra_pcie = !c->intra_roce;
	return HCCL_SUCCESS;
}

static int check_whitelist(const struct hccl_config *c, char *why, size_t room)
{
	if (!c->whitelist || (c->whitelist_file[0] && !access(c->whitelist_file, R_OK)))
		return HCCL_SUCCESS;
	return refuse("HCCL_WHITELIST_FILE", c->whitelist_file, "",
		      "a file that can be read, as HCCL_WHITELIST_DISABLE is 0", why, room);
}

/* ---- All together ----------------------------------------------------------- */

static void set_defaults(struct hccl_config *c, const char *soc)
{
	const enum hccl_soc family = hccl_soc_of(soc);

	memset(c, 0, sizeof(*c));
	snprintf(c->soc, sizeof(c->soc), "%s", soc);
	c->connect_ns = 120 * SECOND;
	c->exec_ns = 1836 * SECOND;
	c->buffer_bytes = 200 * MB;
	c->mode = family == HCCL_SOC_A3 || family == HCCL_SOC_950 ? HCCL_MODE_AICPU : HCCL_MODE_HOST;
	c->aicpu_cache = true;
	c->intra_pcie = true;
	c->heartbeat = true;
	c->stuck_detection = true;
	c->task_exception = true;
	c->check = HCCL_CHECK_FIRST;
	c->fault_detection_s = 20;
	c->retry_max = 1;
	c->retry_hold_ms = 5000;
	c->retry_interval_ms = 1000;
	c->rdma_tc = 132;
	c->rdma_sl = 4;
	c->rdma_timeout = 20;
	c->rdma_retries = 7;
	c->rdma_qps = 1;
	c->multi_qp_kib = 512;
	c->qos = HCCL_NOT_SET;
	c->symwin_bytes = 16ull << 30;
	c->sq_depth = HCCL_NOT_SET;
}

int hccl_config_load(struct hccl_config *c, const char *soc, char *why, size_t room)
{
	int strict = flag_of("NPUEMU_HCCL_STRICT"), ret = HCCL_SUCCESS;
	size_t i;

	set_defaults(c, soc);
	if (strict == -2)
		return refuse("NPUEMU_HCCL_STRICT", npuemu_getenv("NPUEMU_HCCL_STRICT"), "", "0 or 1", why, room);
	c->strict = strict == 1;
	for (i = 0; i < ARRAY_SIZE(vars) && !ret; i++)
		ret = load_var(c, &vars[i], why, room);
	if (!ret)
		ret = load_intra(c, why, room);
	return ret ? ret : check_whitelist(c, why, room);
}
