// SPDX-License-Identifier: MIT
/* Two ranks' settings as text: do they fit together?  And the names and public numbers of modes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../lib/hccl/config.h"

#define COUNT(a)	(sizeof(a) / sizeof(*(a)))

static char why[256];

static void ranks_agree_or_not(void **state)
{
	static const struct {
		const char *a, *b, *why;
	} rows[] = {
		{ "a=1 b=2", "a=1 b=2", NULL },
		{ "a=1 exec_timeout=2s connect_timeout=1s", "a=1 exec_timeout=3s connect_timeout=9s", NULL },
		{ "a=1 b=2", "a=1 b=3", "b is 2, but 3 on the other side" },
		{ "a=1 b=2", "a=1", "b is 2, but nothing on the other side" },
		{ "a=1", "a=1 b=2", "b is nothing, but 2 on the other side" },
		{ "a=1", "aa=1 a=2", "a is 1, but 2 on the other side" },
		{ "a=10", "a=1", "a is 10, but 1 on the other side" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(rows); i++) {
		why[0] = '\0';
		assert_int_equal(hccl_config_agree(rows[i].a, rows[i].b, why, sizeof(why)), !rows[i].why);
		assert_string_equal(why, rows[i].why ? rows[i].why : "");
	}
}

static void public_numbers(void **state)
{
	static const struct {
		u32 mode, number;
		const char *name;
	} rows[] = {
		{ HCCL_MODE_AICPU, 0, "AI_CPU" }, { HCCL_MODE_AIV, 1, "AIV" }, { HCCL_MODE_HOST, 2, "HOST" },
		{ HCCL_MODE_HOST_TS, 3, "HOST_TS" }, { HCCL_MODE_CCU_MS, 4, "CCU_MS" },
		{ HCCL_MODE_CCU_SCHED, 5, "CCU_SCHED" }, { HCCL_MODE_AIV_ONLY, 6, "AIV_ONLY" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(rows); i++) {
		assert_int_equal(hccl_mode_public(rows[i].mode), rows[i].number);
		assert_string_equal(hccl_mode_name(rows[i].mode), rows[i].name);
	}
	assert_string_equal(hccl_mode_name(HCCL_MODES), "?");
	assert_string_equal(hccl_alg_name(HCCL_ALGS), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_agree_or_not),
		cmocka_unit_test(public_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
