// SPDX-License-Identifier: MIT
/*
 * Data types and reductions: sizes and names of all, and the support matrix of each chip,
 * written down once more, the other way round: as lists of what is refused or taken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "../../lib/hccl/support.h"

#define COUNT(a)	(sizeof(a) / sizeof(*(a)))

static char why[256];

static const struct {
	u32 type, bytes;
	const char *name;
} types[] = {
	{ 0, 1, "int8" }, { 1, 2, "int16" }, { 2, 4, "int32" }, { 3, 2, "fp16" }, { 4, 4, "fp32" },
	{ 5, 8, "int64" }, { 6, 8, "uint64" }, { 7, 1, "uint8" }, { 8, 2, "uint16" }, { 9, 4, "uint32" },
	{ 10, 8, "fp64" }, { 11, 2, "bfp16" }, { 12, 16, "int128" }, { 14, 1, "hif8" },
	{ 15, 1, "fp8e4m3" }, { 16, 1, "fp8e5m2" }, { 17, 1, "fp8e8m0" },
};

static void sizes_and_names(void **state)
{
	static const u32 none[] = { 13, 18, 31, 32, 255, UINT32_MAX };
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(types); i++) {
		assert_int_equal(hccl_type_bytes(types[i].type), types[i].bytes);
		assert_string_equal(hccl_type_name(types[i].type), types[i].name);
	}
	for (i = 0; i < COUNT(none); i++) {
		assert_int_equal(hccl_type_bytes(none[i]), 0);
		assert_string_equal(hccl_type_name(none[i]), "type?");
		assert_int_equal(hccl_reduce_ok(none[i], 0, NULL, why, sizeof(why)), HCCL_E_PARA);
		assert_int_equal(hccl_move_ok(none[i], NULL, why, sizeof(why)), HCCL_E_PARA);
	}
	assert_int_equal(hccl_move_ok(13, NULL, why, sizeof(why)), HCCL_E_PARA);
	assert_string_equal(why, "dataType 13 is none; expected 0 (int8) to 12 (int128), 14 (hif8) to 17 (fp8e8m0)");
	assert_string_equal(hccl_op_name(0), "sum");
	assert_string_equal(hccl_op_name(1), "prod");
	assert_string_equal(hccl_op_name(2), "max");
	assert_string_equal(hccl_op_name(3), "min");
	assert_string_equal(hccl_op_name(4), "op?");
	assert_int_equal(hccl_reduce_ok(0, 4, NULL, why, sizeof(why)), HCCL_E_PARA);
	assert_string_equal(why, "reduction 4 is none; expected 0 (sum), 1 (prod), 2 (max) or 3 (min)");
	assert_int_equal(hccl_reduce_scatter_v_ok(0, 255, "Ascend910B1", why, sizeof(why)), HCCL_E_PARA);
}

static void families(void **state)
{
	(void)state;
	assert_int_equal(hccl_soc_of("Ascend910B1"), HCCL_SOC_A2);
	assert_int_equal(hccl_soc_of("Ascend910_9391"), HCCL_SOC_A3);
	assert_int_equal(hccl_soc_of("Ascend910ProA"), HCCL_SOC_910);
	assert_int_equal(hccl_soc_of("Ascend310P3"), HCCL_SOC_310P);
	assert_int_equal(hccl_soc_of("Ascend950PR_9589"), HCCL_SOC_950);
	assert_int_equal(hccl_soc_of("Chip1"), HCCL_SOC_950);
}

/* " int8 int16 ": is it one of them? */
static bool in(const char *list, const char *name)
{
	char word[24];

	snprintf(word, sizeof(word), " %s ", name);
	return strstr(list, word);
}

static void lenient(void **state)
{
	static const char moved_only[] = " int128 hif8 fp8e4m3 fp8e5m2 fp8e8m0 ";
	u32 i, op;

	(void)state;
	for (i = 0; i < COUNT(types); i++) {
		const int want = in(moved_only, types[i].name) ? HCCL_E_NOT_SUPPORT : HCCL_SUCCESS;

		assert_int_equal(hccl_move_ok(types[i].type, NULL, why, sizeof(why)), HCCL_SUCCESS);
		for (op = 0; op < 4; op++) {
			assert_int_equal(hccl_reduce_ok(types[i].type, op, NULL, why, sizeof(why)), want);
			assert_int_equal(hccl_reduce_scatter_v_ok(types[i].type, op, NULL, why, sizeof(why)), want);
		}
	}
	assert_string_equal(why, "fp8e8m0 can be moved, but not reduced");
}

static const struct {
	const char *soc;
	const char *sum, *prod, *max;	/* max and min are alike */
	const char *vsum, *vprod, *vmax;
	const char *not_moved;
} matrix[] = {
	{ "Ascend910B1", " int8 int16 int32 int64 fp16 fp32 bfp16 ", " int8 int32 int64 fp16 fp32 ",
	  " int8 int16 int32 int64 fp16 fp32 bfp16 ", " int8 int16 int32 fp16 fp32 bfp16 ", " ",
	  " int8 int16 int32 fp16 fp32 bfp16 ", " int128 hif8 fp8e4m3 fp8e5m2 fp8e8m0 " },
	{ "Ascend910_9391", " int8 int16 int32 int64 fp16 fp32 bfp16 ", " int8 int32 int64 fp16 fp32 ",
	  " int8 int16 int32 int64 fp16 fp32 bfp16 ", " int8 int16 int32 int64 fp16 fp32 bfp16 ", " ",
	  " int8 int16 int32 int64 fp16 fp32 bfp16 ", " int128 hif8 fp8e4m3 fp8e5m2 fp8e8m0 " },
	{ "Ascend950PR_9589", " int8 int16 int32 int64 uint64 fp16 fp32 fp64 bfp16 ",
	  " int8 int32 int64 uint64 fp16 fp32 fp64 ",
	  " int8 int16 int32 int64 uint64 fp16 fp32 fp64 bfp16 ",
	  " int8 int16 int32 int64 uint64 fp16 fp32 fp64 bfp16 ",
	  " int8 int16 int32 int64 uint64 fp16 fp32 fp64 bfp16 ",
	  " int8 int16 int32 int64 uint64 fp16 fp32 fp64 bfp16 ", " int128 " },
	{ "Ascend910A", " int8 int32 int64 fp16 fp32 ", " int8 int32 int64 fp16 fp32 ",
	  " int8 int32 int64 fp16 fp32 ", " ", " ", " ", " bfp16 int128 hif8 fp8e4m3 fp8e5m2 fp8e8m0 " },
	{ "Ascend310P3", " int8 int16 int32 fp16 fp32 ", " int8 int32 fp16 fp32 ", " int8 int32 fp16 fp32 ",
	  " int8 int16 fp16 fp32 ", " ", " ", " bfp16 int128 hif8 fp8e4m3 fp8e5m2 fp8e8m0 " },
};

static void strict_matrix(void **state)
{
	u32 m, i, op;

	(void)state;
	for (m = 0; m < COUNT(matrix); m++)
		for (i = 0; i < COUNT(types); i++) {
			const char *name = types[i].name, *soc = matrix[m].soc;

			for (op = 0; op < 4; op++) {
				const char *r = op == 0 ? matrix[m].sum : op == 1 ? matrix[m].prod : matrix[m].max;
				const char *v = op == 0 ? matrix[m].vsum : op == 1 ? matrix[m].vprod : matrix[m].vmax;
				int ret = hccl_reduce_ok(types[i].type, op, soc, why, sizeof(why));

				if (ret != (in(r, name) ? HCCL_SUCCESS : HCCL_E_NOT_SUPPORT))
					fail_msg("%s: %s of %s: %d", soc, hccl_op_name(op), name, ret);
				ret = hccl_reduce_scatter_v_ok(types[i].type, op, soc, why, sizeof(why));
				if (ret != (in(v, name) ? HCCL_SUCCESS : HCCL_E_NOT_SUPPORT))
					fail_msg("%s: V, %s of %s: %d", soc, hccl_op_name(op), name, ret);
			}
			assert_int_equal(hccl_move_ok(types[i].type, soc, why, sizeof(why)),
					 in(matrix[m].not_moved, name) ? HCCL_E_NOT_SUPPORT : HCCL_SUCCESS);
		}
	assert_int_equal(hccl_reduce_ok(HCCL_DATA_TYPE_INT16, HCCL_REDUCE_PROD, "Ascend910B1", why, sizeof(why)),
			 HCCL_E_NOT_SUPPORT);
	assert_string_equal(why, "prod of int16 is not there on Ascend910B1 (NPUEMU_HCCL_STRICT=1)");
	assert_int_equal(hccl_move_ok(HCCL_DATA_TYPE_HIF8, "Ascend910B1", why, sizeof(why)), HCCL_E_NOT_SUPPORT);
	assert_string_equal(why, "hif8 is not there on Ascend910B1 (NPUEMU_HCCL_STRICT=1)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_and_names),
		cmocka_unit_test(families),
		cmocka_unit_test(lenient),
		cmocka_unit_test(strict_matrix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
