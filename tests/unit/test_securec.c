// SPDX-License-Identifier: MIT
/*
 * The functions of securec.h: what they write, what they refuse, what they leave.
 */
#include <limits.h>
#include <securec.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "sys.h"

#define TOO_MUCH	(SECUREC_MEM_MAX_LEN + 1)

static char buf[16];

/* Sixteen letters, none of which ends it. */
static char *fresh(void)
{
	memcpy(buf, "ABCDEFGHIJKLMNOP", 16);
	return buf;
}

/* The buffer is these bytes, and what was there behind them. */
#define left(bytes)								\
	do {									\
		char want_[16] = { 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K',	\
				   'L', 'M', 'N', 'O', 'P' };			\
		memcpy(want_, bytes, sizeof(bytes) - 1);			\
		assert_memory_equal(buf, want_, 16);				\
	} while (0)

static void set(void **state)
{
	(void)state;
	sys_eq(memset_s(fresh(), 8, 'x', 3), EOK);
	left("xxx");
	sys_eq(memset_s(fresh(), 8, 'x', 8), EOK);
	left("xxxxxxxx");
	sys_eq(memset_s(fresh(), 8, 'x', 9), ERANGE_AND_RESET);
	left("xxxxxxxx");
	sys_eq(memset_s(fresh(), 8, 'x', 0), EOK);
	left("");
	sys_eq(memset_s(fresh(), 0, 'x', 0), ERANGE);
	sys_eq(memset_s(fresh(), TOO_MUCH, 'x', 1), ERANGE);
	left("");
	sys_eq(memset_s(NULL, 8, 'x', 1), EINVAL);
}

static void copy(void **state)
{
	static errno_t (*const f[])(void *, size_t, const void *, size_t) = { memcpy_s, memmove_s };
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		sys_eq(f[i](fresh(), 8, "12345678", 8), EOK);
		left("12345678");
		sys_eq(f[i](fresh(), 8, "123", 0), EOK);
		left("");
		sys_eq(f[i](fresh(), 8, "123456789", 9), ERANGE_AND_RESET);
		left("\0\0\0\0\0\0\0\0");
		sys_eq(f[i](fresh(), 8, NULL, 1), EINVAL_AND_RESET);
		left("\0\0\0\0\0\0\0\0");
		sys_eq(f[i](fresh(), 0, "1", 1), ERANGE);
		sys_eq(f[i](fresh(), TOO_MUCH, "1", 1), ERANGE);
		left("");
		sys_eq(f[i](NULL, 8, "1", 1), EINVAL);
		fresh();
		sys_eq(f[i](buf, 8, buf, 8), EOK);
		left("");
		/* next to each other, in both orders */
		sys_eq(f[i](buf, 8, buf + 4, 4), EOK);
		left("EFGH");
		fresh();
		sys_eq(f[i](buf + 4, 8, buf, 4), EOK);
		left("ABCDABCD");
	}
	fresh();
	sys_eq(memcpy_s(buf, 8, buf + 3, 4), EOVERLAP_AND_RESET);
	left("\0\0\0\0\0\0\0\0");
	fresh();
	sys_eq(memcpy_s(buf + 3, 8, buf, 4), EOVERLAP_AND_RESET);
	left("ABC\0\0\0\0\0\0\0\0");
	fresh();
	sys_eq(memmove_s(buf, 8, buf + 3, 4), EOK);
	left("DEFG");
	fresh();
	sys_eq(memmove_s(buf + 3, 8, buf, 4), EOK);
	left("ABCABCD");
}

static void copy_string(void **state)
{
	const char unended[3] = { '1', '2', '3' };

	(void)state;
	sys_eq(strcpy_s(fresh(), 4, "123"), EOK);
	left("123\0");
	sys_eq(strcpy_s(fresh(), 4, "1234"), ERANGE_AND_RESET);
	left("\0");
	sys_eq(strcpy_s(fresh(), 4, NULL), EINVAL_AND_RESET);
	left("\0");
	sys_eq(strcpy_s(NULL, 4, "1"), EINVAL);
	sys_eq(strcpy_s(fresh(), 0, "1"), ERANGE);
	sys_eq(strcpy_s(fresh(), TOO_MUCH, "1"), ERANGE);
	left("");
	strcpy(fresh() + 2, "xy");
	sys_eq(strcpy_s(buf, 8, buf + 1), EOVERLAP_AND_RESET);
	left("\0Bxy\0");
	strcpy(fresh(), "xy");
	sys_eq(strcpy_s(buf, 8, buf), EOK);
	left("xy\0");

	sys_eq(strncpy_s(fresh(), 4, "12345", 3), EOK);
	left("123\0");
	sys_eq(strncpy_s(fresh(), 4, "12", 3), EOK);
	left("12\0");
	sys_eq(strncpy_s(fresh(), 8, unended, 3), EOK);
	left("123\0");
	sys_eq(strncpy_s(fresh(), 4, "12345", 4), ERANGE_AND_RESET);
	left("\0");
	sys_eq(strncpy_s(fresh(), 4, "12", 1000), EOK);
	left("12\0");
	sys_eq(strncpy_s(fresh(), 4, "12", 0), EOK);
	left("\0");
	sys_eq(strncpy_s(fresh(), 4, "12", TOO_MUCH), ERANGE_AND_RESET);
	left("\0");
	sys_eq(strncpy_s(fresh(), 4, NULL, 1), EINVAL_AND_RESET);
	sys_eq(strncpy_s(NULL, 4, "1", 1), EINVAL);
	sys_eq(strncpy_s(fresh(), 0, "1", 1), ERANGE);
	fresh();
	sys_eq(strncpy_s(buf, 8, buf + 2, 4), EOVERLAP_AND_RESET);
	left("\0");
}

static char *holding(const char *s)
{
	return strcpy(fresh(), s);
}

static void append(void **state)
{
	(void)state;
	sys_eq(strcat_s(holding("ab"), 5, "cd"), EOK);
	left("abcd\0");
	sys_eq(strcat_s(holding("ab"), 4, "cd"), ERANGE_AND_RESET);
	left("\0b\0");
	sys_eq(strcat_s(fresh(), 4, "cd"), EINVAL_AND_RESET);	/* does not end */
	left("\0");
	sys_eq(strcat_s(holding("ab"), 4, NULL), EINVAL_AND_RESET);
	sys_eq(strcat_s(NULL, 4, "c"), EINVAL);
	sys_eq(strcat_s(holding("ab"), 0, "c"), ERANGE);
	left("ab\0");
	holding("ab");
	sys_eq(strcat_s(buf, 16, buf), EOVERLAP_AND_RESET);
	left("\0b\0");

	sys_eq(strncat_s(holding("ab"), 5, "cdef", 2), EOK);
	left("abcd\0");
	sys_eq(strncat_s(holding("ab"), 5, "cdef", 3), ERANGE_AND_RESET);
	left("\0b\0");
	sys_eq(strncat_s(holding("ab"), 5, "c", 100), EOK);
	left("abc\0");
	sys_eq(strncat_s(holding("ab"), 5, "c", 0), EOK);
	left("ab\0");
	sys_eq(strncat_s(holding("ab"), 5, "c", TOO_MUCH), ERANGE_AND_RESET);
	sys_eq(strncat_s(NULL, 5, "c", 1), EINVAL);
}

static void tokens(void **state)
{
	char text[] = ",a,,bc,";
	char *rest = NULL;

	(void)state;
	assert_string_equal(strtok_s(text, ",", &rest), "a");
	assert_string_equal(strtok_s(NULL, ",", &rest), "bc");
	sys_true(!strtok_s(NULL, ",", &rest), "a third piece");
	sys_true(!strtok_s(text, NULL, &rest) && !strtok_s(text, ",", NULL), "NULL is taken");
	rest = NULL;
	sys_true(!strtok_s(NULL, ",", &rest), "a piece of nothing");
}

/* a format that is none */
#pragma GCC diagnostic ignored "-Wformat-security"

static void print(void **state)
{
	const char *none = NULL;

	(void)state;
	sys_eq(sprintf_s(fresh(), 8, "%d-%s", 42, "abcd"), 7);
	left("42-abcd\0");
	sys_eq(sprintf_s(fresh(), 7, "%d-%s", 42, "abcd"), -1);
	sys_eq(buf[0], 0);
	sys_eq(sprintf_s(fresh(), 7, none), -1);
	sys_eq(buf[0], 0);
	sys_eq(sprintf_s(NULL, 7, "a"), -1);
	sys_eq(sprintf_s(fresh(), 0, "a"), -1);
	sys_eq(sprintf_s(fresh(), TOO_MUCH, "a"), -1);
	left("");

	sys_eq(snprintf_s(fresh(), 8, 7, "%s", "abcdefg"), 7);
	left("abcdefg\0");
	sys_eq(snprintf_s(fresh(), 8, 3, "%s", "abcd"), -1);
	left("abc\0");
	sys_eq(snprintf_s(fresh(), 8, 4, "%s", "abcd"), 4);
	left("abcd\0");
	sys_eq(snprintf_s(fresh(), 4, 100, "%s", "abcd"), -1);
	sys_eq(buf[0], 0);
	sys_eq(snprintf_s(fresh(), 5, (size_t)-1, "%s", "abcd"), 4);
	sys_eq(snprintf_s(fresh(), 8, TOO_MUCH, "a"), -1);
	sys_eq(buf[0], 0);
	sys_eq(snprintf_s(NULL, 8, 3, "a"), -1);

	sys_eq(snprintf_truncated_s(fresh(), 4, "%s", "abcdef"), 3);
	left("abc\0");
	sys_eq(snprintf_truncated_s(fresh(), 4, "%s", "ab"), 2);
	left("ab\0");
	sys_eq(snprintf_truncated_s(fresh(), 1, "%s", "ab"), 0);
	left("\0");
	sys_eq(snprintf_truncated_s(fresh(), 0, "a"), -1);
	sys_eq(snprintf_truncated_s(NULL, 4, "a"), -1);
	sys_eq(snprintf_truncated_s(fresh(), 4, none), -1);
	sys_eq(buf[0], 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(set),
		cmocka_unit_test(copy),
		cmocka_unit_test(copy_string),
		cmocka_unit_test(append),
		cmocka_unit_test(tokens),
		cmocka_unit_test(print),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
