/* SPDX-License-Identifier: MIT */
/*
 * How functions of channels and collectives fail: a code, and a message for the calling
 * thread, which aclGetRecentErrMsg() gives as it does those of the runtime.
 */
#ifndef HCCL_FAIL_H
#define HCCL_FAIL_H

#include <hccl/hccl_types.h>
#include "npuacl.h"

void hccl_fail_say(HcclResult code, const char *family, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Note family, code and message for this thread, give the code back. */
#define hccl_fail(code, family, ...)						\
	__extension__ ({							\
		const HcclResult code__ = (code);				\
		hccl_fail_say(code__, (family), __VA_ARGS__);			\
		code__;								\
	})

/*
 * The rest are inline so that it is seen wherever one is used that a failure is never
 * HCCL_SUCCESS.
 */

/* The same, with a text that begins with its family: "EI0001: ...". */
void hccl_fail_why_say(HcclResult code, const char *what, const char *why);
static inline HcclResult hccl_fail_why(HcclResult code, const char *what, const char *why)
{
	hccl_fail_why_say(code, what, why);
	return code;
}

/* After a call of lib/acl that failed and said why: the code that fits. */
HcclResult hccl_fail_acl_say(aclError err, const char *what);
static inline HcclResult hccl_fail_acl(aclError err, const char *what)
{
	HcclResult ret = hccl_fail_acl_say(err, what);

	return ret ? ret : HCCL_E_INTERNAL;
}

/* After a call of lib/acl that may have failed. */
static inline HcclResult hccl_from_acl(aclError err, const char *what)
{
	return err ? hccl_fail_acl(err, what) : HCCL_SUCCESS;
}

/* @arg of @what is NULL. */
static inline HcclResult hccl_null(const char *what, const char *arg)
{
	return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, arg);
}

#endif
