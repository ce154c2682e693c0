/* SPDX-License-Identifier: MIT */
/* Checks of ACL calls, which leave their messages elsewhere than npuemu_*() do. */
#ifndef TESTS_COMMON_ACLTEST_H
#define TESTS_COMMON_ACLTEST_H

#include <acl/acl.h>
#include <stdlib.h>
#include <string.h>
#include "sys.h"

static inline void acl_is(const char *file, int line, const char *what, aclError got, aclError want)
{
	const char *msg;

	if (got == want)
		return;
	msg = aclGetRecentErrMsg();
	sys_fail(file, line, "%s: %d, not %d: %s", what, got, want, msg ? msg : "no message");
}

/* The call succeeds. */
#define acl_ok(expr) acl_is(__FILE__, __LINE__, #expr, (expr), ACL_SUCCESS)

/* The call gives @want, and a message of its own. */
#define acl_fails(expr, want)							\
	do {									\
		aclGetRecentErrMsg();						\
		acl_is(__FILE__, __LINE__, #expr, (expr), (want));		\
		sys_true(aclGetRecentErrMsg(), "%s left no message", #expr);	\
	} while (0)

/* It fails, and says @word. */
#define acl_says(expr, want, word)						\
	do {									\
		const char *msg_;						\
		acl_is(__FILE__, __LINE__, #expr, (expr), (want));		\
		msg_ = aclGetRecentErrMsg();					\
		sys_true(msg_ && strstr(msg_, word), "%s: nothing about \"%s\": %s", #expr, word,	\
			 msg_ ? msg_ : "no message");				\
	} while (0)

/* A test on a board of its own, with device 0 set, that leaves nothing behind. */
static inline int acl_begin(void **state)
{
	int rc = sys_setup(state);

	if (rc)
		return rc;
	acl_ok(aclInit(NULL));
	acl_ok(aclrtSetDevice(0));
	return 0;
}

static inline int acl_end(void **state)
{
	acl_ok(aclFinalize());
	return sys_teardown(state);
}

#define acl_test(fn) cmocka_unit_test_setup_teardown(fn, acl_begin, acl_end)

/* A table of calls that are to give one code: ACL_CALL() makes a row's function. */
struct acl_call {
	const char *text;
	aclError (*fn)(void);
};

#define ACL_CALL(name, expr)							\
	static aclError name##_fn(void) { return (expr); }			\
	static const struct acl_call name = { #expr, name##_fn }

static inline void acl_all_fail(const struct acl_call *const *list, size_t n, aclError want)
{
	const char *msg;
	aclError got;
	size_t i;

	for (i = 0; i < n; i++) {
		aclGetRecentErrMsg();
		got = list[i]->fn();
		msg = aclGetRecentErrMsg();
		sys_true(got == want && msg, "%s: %d, not %d: %s", list[i]->text, got, want,
			 msg ? msg : "no message");
	}
}

#endif
