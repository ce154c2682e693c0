// SPDX-License-Identifier: MIT
/*
 * HCCL's settings: every variable with good, extreme and bad values, what depends on
 * several, HcclCommConfig of every version and size, which of them wins, and the line of text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../lib/hccl/config.h"
#include "hccl_settings.h"

#define COUNT(a)	(sizeof(a) / sizeof(*(a)))
#define WHY		1024

extern char **environ;
static char why[WHY];

/* Nothing of the outer environment has a say. */
static int clean(void **state)
{
	char name[128];
	char **e = environ;

	(void)state;
	while (*e) {
		if (strncmp(*e, "HCCL_", 5) && strncmp(*e, "NPUEMU_HCCL_", 12)) {
			e++;
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*e, "="), *e);
		unsetenv(name);
		e = environ;
	}
	return 0;
}

static int load(struct hccl_config *c, const char *soc)
{
	memset(c, 0xa5, sizeof(*c));
	memset(why, 0, sizeof(why));
	return hccl_config_load(c, soc, why, sizeof(why));
}

static void load_good(struct hccl_config *c)
{
	if (load(c, "Ascend950PR_9589"))
		fail_msg("%s", why);
}

static u64 member(const struct hccl_config *c, size_t at, u32 size)
{
	u64 v = 0;

	memcpy(&v, (const char *)c + at, size);
	return v;
}

/* ---- The environment -------------------------------------------------------- */

static void defaults(void **state)
{
	static const struct {
		const char *soc;
		u32 mode;
	} rows[] = {
		{ "Ascend910A", HCCL_MODE_HOST }, { "Ascend910B1", HCCL_MODE_HOST },
		{ "Ascend910_9391", HCCL_MODE_AICPU }, { "Ascend950PR_9589", HCCL_MODE_AICPU },
		{ "Ascend310P3", HCCL_MODE_HOST }, { "Own", HCCL_MODE_AICPU },
	};
	struct hccl_config c;
	char text[HCCL_CONFIG_TEXT];
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(rows); i++) {
		assert_int_equal(load(&c, rows[i].soc), HCCL_SUCCESS);
		assert_int_equal(c.mode, rows[i].mode);
		assert_false(c.mode_set);
		assert_null(hccl_config_strict_soc(&c));
	}
	load_good(&c);
	hccl_config_text(&c, text, sizeof(text));
	assert_string_equal(text, "mode=AI_CPU buffer=200MB deterministic=false algo=- intra=pcie check=first retry=000 zero_copy=0 symwin=16GB strict=no connect_timeout=120s exec_timeout=1836s");
	assert_int_equal(c.rdma_tc, 132);
	assert_int_equal(c.rdma_sl, 4);
	assert_int_equal(c.rdma_timeout, 20);
	assert_int_equal(c.rdma_retries, 7);
	assert_int_equal(c.multi_qp_kib, 512);
	assert_int_equal(c.if_base_port, 0);
	assert_int_equal(c.retry_hold_ms, 5000);
	assert_true(c.heartbeat && c.stuck_detection && c.task_exception && !c.whitelist);
	assert_true(c.qos == HCCL_NOT_SET && c.sq_depth == HCCL_NOT_SET);
}

static void good_environment(void **state)
{
	struct hccl_config c;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(good_values); i++) {
		const struct good_value *g = &good_values[i];

		setenv(g->name, g->value, 1);
		if (load(&c, "Ascend950PR_9589"))
			fail_msg("%s", why);
		if (g->size && member(&c, g->at, g->size) != g->want)
			fail_msg("%s=%s gives %llu", g->name, g->value,
				 (unsigned long long)member(&c, g->at, g->size));
		unsetenv(g->name);
	}
}

static void bad_environment(void **state)
{
	struct hccl_config c;
	char want[WHY];
	u32 wrong = 0;
	size_t i;
	int n;

	(void)state;
	for (i = 0; i < COUNT(bad_values); i++) {
		const struct bad_value *b = &bad_values[i];

		setenv(b->name, b->value, 1);
		n = snprintf(want, sizeof(want), "EI0001: %s is \"%s\"%s", b->name, b->value,
			     b->what ? b->what : ": ");
		if (load(&c, "Ascend950PR_9589") != HCCL_E_PARA ||
		    (b->what ? strcmp(why, want) : strncmp(why, want, (size_t)n))) {
			print_error("got      %s\nexpected %s\n", why, want);
			wrong++;
		}
		unsetenv(b->name);
	}
	assert_int_equal(wrong, 0);
}

static void texts_and_their_limits(void **state)
{
	static const struct {
		const char *name;
		size_t max, at;
	} rows[] = {
		{ "HCCL_WHITELIST_FILE", 511, offsetof(struct hccl_config, whitelist_file) },
		{ "HCCL_LOGIC_SUPERPOD_ID", 128, offsetof(struct hccl_config, logic_superpod) },
	};
	char value[1024];
	struct hccl_config c;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(rows); i++) {
		memset(value, 'v', sizeof(value));
		value[rows[i].max] = '\0';
		setenv(rows[i].name, value, 1);
		load_good(&c);
		assert_string_equal((char *)&c + rows[i].at, value);
		value[rows[i].max] = 'v';
		value[rows[i].max + 1] = '\0';
		setenv(rows[i].name, value, 1);
		assert_int_equal(load(&c, "Ascend950PR_9589"), HCCL_E_PARA);
		/* of a long value the beginning will do */
		assert_non_null(strstr(why, "vvv...\"; expected"));
		unsetenv(rows[i].name);
	}
	memset(value, 'e', sizeof(value));
	for (i = 3; i < 255; i += 4)
		value[i] = ',';
	value[255] = '\0';
	setenv("HCCL_SOCKET_IFNAME", value, 1);
	load_good(&c);
	assert_string_equal(c.if_names, value);
	value[255] = 'e';
	value[256] = '\0';
	setenv("HCCL_SOCKET_IFNAME", value, 1);
	assert_int_equal(load(&c, "Ascend950PR_9589"), HCCL_E_PARA);
	assert_non_null(strstr(why, ": it is longer than 255 characters; expected"));
}

static void intra_links(void **state)
{
	/* -1: not set */
	static const struct {
		int pcie, roce, ret, is_roce;
	} rows[] = {
		{ -1, -1, 0, 0 }, { 1, -1, 0, 0 }, { -1, 1, 0, 1 }, { 1, 0, 0, 0 }, { 0, 1, 0, 1 },
		{ 0, 0, 0, 0 }, { 0, -1, 1, 0 }, { -1, 0, 1, 0 }, { 1, 1, 1, 0 },
	};
	struct hccl_config c;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(rows); i++) {
		unsetenv("HCCL_INTRA_PCIE_ENABLE");
		unsetenv("HCCL_INTRA_ROCE_ENABLE");
		if (rows[i].pcie >= 0)
			setenv("HCCL_INTRA_PCIE_ENABLE", rows[i].pcie ? "1" : "0", 1);
		if (rows[i].roce >= 0)
			setenv("HCCL_INTRA_ROCE_ENABLE", rows[i].roce ? "1" : "0", 1);
		assert_int_equal(load(&c, "Ascend910B1"), rows[i].ret);
		if (rows[i].ret)
			continue;
		assert_int_equal(c.intra_roce, rows[i].is_roce);
		assert_int_equal(c.intra_pcie, !rows[i].is_roce);
	}
	assert_string_equal(why, "EI0001: HCCL_INTRA_ROCE_ENABLE is \"1\": HCCL_INTRA_PCIE_ENABLE is 1, too; expected only one of them to be 1");
}

static void whitelist_needs_its_file(void **state)
{
	struct hccl_config c;

	(void)state;
	setenv("HCCL_WHITELIST_DISABLE", "0", 1);
	assert_int_equal(load(&c, "Own"), HCCL_E_PARA);
	assert_string_equal(why, "EI0001: HCCL_WHITELIST_FILE is \"\"; expected a file that can be read, as HCCL_WHITELIST_DISABLE is 0");
	setenv("HCCL_WHITELIST_FILE", "/nowhere/at/all", 1);
	assert_int_equal(load(&c, "Own"), HCCL_E_PARA);
	setenv("HCCL_WHITELIST_FILE", "/dev/null", 1);
	assert_int_equal(load(&c, "Own"), HCCL_SUCCESS);
	assert_true(c.whitelist);
}

static void strict_mode(void **state)
{
	struct hccl_config c;

	(void)state;
	setenv("NPUEMU_HCCL_STRICT", "1", 1);
	load_good(&c);
	assert_string_equal(hccl_config_strict_soc(&c), "Ascend950PR_9589");
	setenv("HCCL_CONNECT_TIMEOUT", "119.9", 1);
	assert_int_equal(load(&c, "Own"), HCCL_E_PARA);
	assert_string_equal(why, "EI0001: HCCL_CONNECT_TIMEOUT is \"119.9\": NPUEMU_HCCL_STRICT=1 takes no less than 120; expected seconds, up to 7200, fractions too; 0: no limit");
	setenv("HCCL_CONNECT_TIMEOUT", "120", 1);
	load_good(&c);
}

/* ---- HCCL_ALGO -------------------------------------------------------------- */

static void algorithms(void **state)
{
	static const struct {
		const char *value, *text;
	} rows[] = {
		{ "level0:NA;level1:ring", "NA/ring" },
		{ "level1:H-D_R", "-/H-D_R" },
		{ "level3:NB;level1:NHR_V1;level2:AHC;level0:fullmesh", "fullmesh/NHR_V1/AHC/NB" },
		{ "level0:mesh_oneshot", "mesh_oneshot" },
		{ "level0:mesh", "fullmesh" },
		{ "level0:null;level1:AHC_BROKE", "NA/AHC_BROKE" },
		{ "allreduce=level0:NA;level1:pipeline", "-,allreduce:NA/pipeline" },
		{ "allreduce=level1:ring/alltoall=level1:pairwise", "-,allreduce:-/ring,alltoall:-/pairwise" },
		{ "others=level1:NHR/broadcast=level1:NB", "-/NHR,broadcast:-/NB" },
		{ "broadcast=level0:mesh_twoshot/others=level1:NHR", "-/NHR,broadcast:mesh_twoshot" },
	};
	static const u8 gather[] = { HCCL_CMD_ALLGATHER, HCCL_CMD_ALLGATHER_V };
	static const u8 all[] = { HCCL_CMD_ALLTOALL, HCCL_CMD_ALLTOALLV, HCCL_CMD_ALLTOALLVC };
	struct hccl_config c;
	char text[HCCL_CONFIG_TEXT], want[256], bad[256];
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(rows); i++) {
		setenv("HCCL_ALGO", rows[i].value, 1);
		load_good(&c);
		hccl_config_text(&c, text, sizeof(text));
		snprintf(want, sizeof(want), " algo=%s ", rows[i].text);
		if (!strstr(text, want))
			fail_msg("%s gives %s", rows[i].value, text);
	}
	/* variants of an operation follow it */
	assert_true(hccl_config_parse_algo(&c, "allgather=level1:NB/alltoall=level1:pairwise", bad, sizeof(bad)));
	for (i = 0; i < COUNT(gather); i++)
		assert_int_equal(c.alg[gather[i]][1], HCCL_ALG_NB);
	for (i = 0; i < COUNT(all); i++)
		assert_int_equal(c.alg[all[i]][1], HCCL_ALG_PAIRWISE);
	assert_int_equal(c.alg[HCCL_CMD_ALLREDUCE][1], HCCL_ALG_DEFAULT);
	/* what is bad changes nothing */
	assert_false(hccl_config_parse_algo(&c, "allgather=level1:ring/x=level1:NB", bad, sizeof(bad)));
	assert_int_equal(c.alg[HCCL_CMD_ALLGATHER][1], HCCL_ALG_NB);
}

/* ---- HcclCommConfig --------------------------------------------------------- */

struct head {
	size_t size;
	u32 magic, version;
};

/* As HcclCommConfigInit() has it, with all set to what differs from the defaults. */
static HcclCommConfig full(u32 version, size_t size)
{
	struct head h = { size, 0xf0f0f0f0, version };
	HcclCommConfig m;

	memset(&m, 0, sizeof(m));
	memcpy(m.reserved, &h, sizeof(h));
	m.hcclBufferSize = 7;
	m.hcclDeterministic = 1;
	strcpy(m.hcclCommName, "group");
	strcpy(m.hcclUdi, "udi");
	m.hcclOpExpansionMode = 6;
	m.hcclRdmaTrafficClass = 8;
	m.hcclRdmaServiceLevel = 2;
	m.hcclWorldRankID = 3;
	m.hcclJobID = 1ull << 40;
	m.aclGraphZeroCopyEnable = 1;
	m.hcclExecTimeOut = 60;
	strcpy(m.hcclAlgo, "level1:NHR");
	strcpy(m.hcclRetryEnable, "L1:1");
	strcpy(m.hcclRetryParams, "MaxCnt:9");
	strcpy(m.hcclBufferName, "shared");
	m.hcclQos = 5;
	m.hcclSymWinMaxMemSizePerRank = 2;
	m.hcclChannelSqDepth = 128;
	return m;
}

/* Which of the members have been taken, by the version that brought them. */
static void check_taken(const struct hccl_config *c, u32 version, size_t size)
{
	const struct {
		u32 version;
		size_t end;		/* of the member */
		bool taken;
	} rows[] = {
		{ 1, 28, c->buffer_bytes == 7 << 20 },
		{ 1, 32, c->deterministic == HCCL_DET_TRUE },
		{ 2, 160, !strcmp(c->name, "group") },
		{ 3, 288, !strcmp(c->udi, "udi") },
		{ 4, 292, c->mode == HCCL_MODE_CCU_SCHED && c->mode_set },
		{ 5, 296, c->rdma_tc == 8 },
		{ 5, 300, c->rdma_sl == 2 },
		{ 6, 304, c->world_rank == 3 },
		{ 6, 312, c->job == 1ull << 40 },
		{ 7, 313, c->zero_copy },
		{ 8, 320, c->exec_ns == (s64)(60 * S) },
		{ 8, 1920, c->alg[HCCL_CMD_REDUCE][1] == HCCL_ALG_NHR },
		{ 8, 1970, c->retry[1] },
		{ 8, 2098, c->retry_max == 9 },
		{ 9, 2226, !strcmp(c->buffer_name, "shared") },
		{ 10, 2232, c->qos == 5 },
		{ 10, 2240, c->symwin_bytes == 2ull << 30 },
		{ 11, 2244, c->sq_depth == 128 },
	};
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		if (rows[i].taken != (version >= rows[i].version && size >= rows[i].end))
			fail_msg("version %u, %zu bytes: member that ends at %zu", version, size, rows[i].end);
}

static void comm_config_of_every_version_and_size(void **state)
{
	static const size_t sizes[] = {
		24, 27, 28, 32, 159, 160, 288, 292, 304, 312, 313, 319, 320, 1919, 1920, 1970, 2098, 2226,
		2231, 2232, 2240, 2243, 2244, 2248, 100000,
	};
	struct hccl_config c;
	u32 version;
	size_t i;

	(void)state;
	for (version = 1; version <= 11; version++)
		for (i = 0; i < COUNT(sizes); i++) {
			HcclCommConfig m = full(version, sizes[i]);
			/* exactly what the program has, and not aligned */
			size_t n = sizes[i] < sizeof(m) ? sizes[i] : sizeof(m);
			char *raw = malloc(n + 1);

			assert_non_null(raw);
			memcpy(raw + 1, &m, n);
			load_good(&c);
			assert_int_equal(hccl_config_apply(&c, (const void *)(raw + 1), why, sizeof(why)),
					 HCCL_SUCCESS);
			check_taken(&c, version, sizes[i]);
			free(raw);
		}
}

static void comm_config_newer_than_we_know(void **state)
{
	HcclCommConfig m = full(12, 4096);
	struct hccl_config c;

	(void)state;
	load_good(&c);
	assert_int_equal(hccl_config_apply(&c, &m, why, sizeof(why)), HCCL_SUCCESS);
	check_taken(&c, 11, 2248);
}

/* What is not set leaves the environment's; what is set wins over it. */
static void who_wins(void **state)
{
	HcclCommConfig m = full(11, sizeof(m));
	struct hccl_config c, before;

	(void)state;
	setenv("HCCL_BUFFSIZE", "300", 1);
	setenv("HCCL_DETERMINISTIC", "strict", 1);
	setenv("HCCL_OP_EXPANSION_MODE", "AICPU_CacheDisable", 1);
	setenv("HCCL_EXEC_TIMEOUT", "0.25", 1);
	setenv("HCCL_ALGO", "level1:ring", 1);
	setenv("HCCL_RDMA_TC", "16", 1);
	load_good(&c);
	assert_int_equal(hccl_config_apply(&c, &m, why, sizeof(why)), HCCL_SUCCESS);
	check_taken(&c, 11, sizeof(m));
	assert_true(c.aicpu_cache);

	load_good(&c);
	memset((char *)&m + 24, 0, sizeof(m) - 24);
	m.hcclBufferSize = HCCL_NOT_SET;
	m.hcclDeterministic = HCCL_NOT_SET;
	m.hcclRdmaTrafficClass = HCCL_NOT_SET;
	m.hcclRdmaServiceLevel = HCCL_NOT_SET;
	m.hcclExecTimeOut = -1;
	m.hcclQos = HCCL_NOT_SET;
	m.hcclChannelSqDepth = HCCL_NOT_SET;
	before = c;
	assert_int_equal(hccl_config_apply(&c, &m, why, sizeof(why)), HCCL_SUCCESS);
	assert_memory_equal(&c, &before, sizeof(c));
	m.hcclExecTimeOut = 0;
	assert_int_equal(hccl_config_apply(&c, &m, why, sizeof(why)), HCCL_SUCCESS);
	assert_int_equal(c.exec_ns, 0);
}

/* Strings that fill their arrays have no NUL. */
static void full_arrays(void **state)
{
	HcclCommConfig m = full(11, sizeof(m));
	struct hccl_config c;

	(void)state;
	memset(m.hcclCommName, 'n', sizeof(m.hcclCommName));
	memset(m.hcclUdi, 'u', sizeof(m.hcclUdi));
	memset(m.hcclBufferName, 'b', sizeof(m.hcclBufferName));
	load_good(&c);
	assert_int_equal(hccl_config_apply(&c, &m, why, sizeof(why)), HCCL_SUCCESS);
	assert_int_equal(strlen(c.name), 128);
	assert_int_equal(strlen(c.udi), 128);
	assert_int_equal(strlen(c.buffer_name), 128);
	memset(m.hcclAlgo, 'x', sizeof(m.hcclAlgo));
	assert_int_equal(hccl_config_apply(&c, &m, why, sizeof(why)), HCCL_E_PARA);
	strcpy(m.hcclAlgo, "");
	memset(m.hcclRetryEnable, 'x', sizeof(m.hcclRetryEnable));
	assert_int_equal(hccl_config_apply(&c, &m, why, sizeof(why)), HCCL_E_PARA);
	strcpy(m.hcclRetryEnable, "");
	memset(m.hcclRetryParams, 'x', sizeof(m.hcclRetryParams));
	assert_int_equal(hccl_config_apply(&c, &m, why, sizeof(why)), HCCL_E_PARA);
}

#define CHANGE(member, to) \
	do { m = full(11, sizeof(m)); m.member = (to); } while (0)

static void expect_refused(const HcclCommConfig *m, const char *words)
{
	struct hccl_config c, before;
	char want[WHY];

	load_good(&c);
	before = c;
	assert_int_equal(hccl_config_apply(&c, m, why, sizeof(why)), HCCL_E_PARA);
	assert_memory_equal(&c, &before, sizeof(c));
	snprintf(want, sizeof(want), "EI0003: HcclCommConfig (version 11, 2248 bytes): %s", words);
	assert_string_equal(why, want);
}

static void bad_comm_configs(void **state)
{
	HcclCommConfig m;
	struct hccl_config c;

	(void)state;
	CHANGE(hcclBufferSize, 0);
	expect_refused(&m, "hcclBufferSize is 0; expected 1 to 1048576 (MB), or 0xffffffff: not set");
	CHANGE(hcclBufferSize, 1048577);
	expect_refused(&m, "hcclBufferSize is 1048577; expected 1 to 1048576 (MB), or 0xffffffff: not set");
	CHANGE(hcclDeterministic, 3);
	expect_refused(&m, "hcclDeterministic is 3; expected 0, 1, 2 (strict), or 0xffffffff: not set");
	CHANGE(hcclOpExpansionMode, 7);
	expect_refused(&m, "hcclOpExpansionMode is 7; expected 0 (default), 1 (host), 2 (AI CPU), 3 (AIV), 4 (AIV only), 5 (CCU MS) or 6 (CCU scheduled)");
	CHANGE(aclGraphZeroCopyEnable, 2);
	expect_refused(&m, "aclGraphZeroCopyEnable is 2; expected 0 or 1");
	CHANGE(hcclExecTimeOut, -2);
	expect_refused(&m, "hcclExecTimeOut is -2; expected 0 (no limit) to 2147483647 (s), or 0xffffffff: not set");
	CHANGE(hcclRdmaTrafficClass, 3);
	expect_refused(&m, "hcclRdmaTrafficClass is 3; expected a multiple of 4 from 0 to 255, or 0xffffffff: not set");
	CHANGE(hcclRdmaTrafficClass, 256);
	expect_refused(&m, "hcclRdmaTrafficClass is 256; expected a multiple of 4 from 0 to 255, or 0xffffffff: not set");
	CHANGE(hcclRdmaServiceLevel, 8);
	expect_refused(&m, "hcclRdmaServiceLevel is 8; expected 0 to 7, or 0xffffffff: not set");
	CHANGE(hcclQos, 8);
	expect_refused(&m, "hcclQos is 8; expected 0 to 7, or 0xffffffff: not set");
	CHANGE(hcclSymWinMaxMemSizePerRank, 4097);
	expect_refused(&m, "hcclSymWinMaxMemSizePerRank is 4097; expected 1 to 4096 (GB), or 0: not set");
	CHANGE(hcclAlgo[6], 'x');
	expect_refused(&m, "hcclAlgo is \"level1xNHR\": \"level1xNHR\"" LEVEL);
	CHANGE(hcclRetryEnable[1], '5');
	expect_refused(&m, "hcclRetryEnable is \"L5:1\": \"L5:1\" is no level's" RETRY);
	CHANGE(hcclRetryParams[0], 'm');
	expect_refused(&m, "hcclRetryParams is \"maxCnt:9\": \"maxCnt:9\" is not one of them" PARAMS);

	load_good(&c);
	assert_int_equal(hccl_config_apply(&c, NULL, why, sizeof(why)), HCCL_E_PTR);
	m = full(0, sizeof(m));
	assert_int_equal(hccl_config_apply(&c, &m, why, sizeof(why)), HCCL_E_PARA);
	assert_non_null(strstr(why, "its version is 0; expected 1 to 11"));
	m = full(11, 23);
	assert_int_equal(hccl_config_apply(&c, &m, why, sizeof(why)), HCCL_E_PARA);
	assert_non_null(strstr(why, "its size is smaller than its head of 24 bytes"));
	m = full(11, sizeof(m));
	m.reserved[8] ^= 1;
	assert_int_equal(hccl_config_apply(&c, &m, why, sizeof(why)), HCCL_E_PARA);
	assert_non_null(strstr(why, "its magic word is 0xf0f0f0f1; expected 0xf0f0f0f0"));
}

/* ---- Text ------------------------------------------------------------------- */

static void text_of_everything(void **state)
{
	HcclCommConfig m = full(11, sizeof(m));
	struct hccl_config c;
	char text[HCCL_CONFIG_TEXT], cut[40];
	size_t i, k;

	(void)state;
	setenv("HCCL_INTER_HCCS_DISABLE", "true", 1);
	setenv("HCCL_INTRA_ROCE_ENABLE", "1", 1);
	setenv("HCCL_DFS_CONFIG", "inconsistent_check:off", 1);
	setenv("HCCL_CONNECT_TIMEOUT", "0", 1);
	setenv("NPUEMU_HCCL_STRICT", "0", 1);
	load_good(&c);
	assert_int_equal(hccl_config_apply(&c, &m, why, sizeof(why)), HCCL_SUCCESS);
	c.exec_ns = 1500000000;
	hccl_config_text(&c, text, sizeof(text));
	assert_string_equal(text, "mode=CCU_SCHED buffer=7MB deterministic=true algo=-/NHR intra=roce inter_hccs=off check=off retry=010 zero_copy=1 symwin=2GB strict=no connect_timeout=never exec_timeout=1.5s");
	/* the longest there can be, which has room, and does not overrun less */
	memset(c.alg, HCCL_ALG_MESH_TWOSHOT, sizeof(c.alg));
	for (i = 0; i < HCCL_ALG_CMDS; i++)
		for (k = 0; k < HCCL_ALG_LEVELS; k++)
			c.alg[i][k] = (u8)(i ? HCCL_ALG_MESH_TWOSHOT : HCCL_ALG_MESH_ONESHOT);
	hccl_config_text(&c, text, sizeof(text));
	assert_non_null(strstr(text, " exec_timeout=1.5s"));
	for (i = 1; i < sizeof(cut); i++) {
		memset(cut, 'x', sizeof(cut));
		hccl_config_text(&c, cut, i);
		assert_int_equal(strlen(cut), i - 1);
		assert_memory_equal(cut, text, i - 1);
		assert_int_equal(cut[i], 'x');
	}
	hccl_config_text(&c, cut, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(defaults, clean),
		cmocka_unit_test_setup(good_environment, clean),
		cmocka_unit_test_setup(bad_environment, clean),
		cmocka_unit_test_setup(texts_and_their_limits, clean),
		cmocka_unit_test_setup(intra_links, clean),
		cmocka_unit_test_setup(whitelist_needs_its_file, clean),
		cmocka_unit_test_setup(strict_mode, clean),
		cmocka_unit_test_setup(algorithms, clean),
		cmocka_unit_test_setup(comm_config_of_every_version_and_size, clean),
		cmocka_unit_test_setup(comm_config_newer_than_we_know, clean),
		cmocka_unit_test_setup(who_wins, clean),
		cmocka_unit_test_setup(full_arrays, clean),
		cmocka_unit_test_setup(bad_comm_configs, clean),
		cmocka_unit_test_setup(text_of_everything, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
