/* SPDX-License-Identifier: MIT */
/* What the bench programs of the ACL runtime share. */
#ifndef NPUEMU_BENCH_ACL_H
#define NPUEMU_BENCH_ACL_H

#include <acl/acl.h>
#include "bench.h"

/* A call of the runtime that must work. */
#define acl_try(call)							\
	do {								\
		aclError acl_ret = (call);				\
									\
		if (acl_ret != ACL_SUCCESS)				\
			acl_die(__FILE__, __LINE__, #call, acl_ret);	\
	} while (0)

__attribute__((cold, noreturn))
static inline void acl_die(const char *file, int line, const char *what, aclError code)
{
	const char *why = aclGetRecentErrMsg();

	bench_die("%s:%d: %s: %d (%s)", file, line, what, code, why ? why : "no message");
}

#endif
