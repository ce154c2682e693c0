// SPDX-License-Identifier: MIT
/*
 * What went wrong, for the thread that asks: the message of aclGetRecentErrMsg()
 * begins with the code of its family as the real library's do; for channels and collectives.  EI0002 a wait for
 * another rank timed out, EI0003 bad argument, EI0006 ranks could not be linked, EI0011
 * out of memory, EI0015 ranks did not come.
 */
#include <stdio.h>
#include "fail.h"

void hccl_fail_say(HcclResult code, const char *family, const char *fmt, ...)
{
	char text[sizeof(npuacl_self.message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	npuacl_message(family, (int)code, text);
	npuemu_log(NPUEMU_LOG_INFO, "hccl: %s", npuacl_self.message);
}

void hccl_fail_why_say(HcclResult code, const char *what, const char *why)
{
	char family[8] = "EI9999";

	if (!strncmp(why, "EI", 2) && why[6] == ':') {
		memcpy(family, why, 6);
		why += 8;
	}
	hccl_fail_say(code, family, "%s: %s", what, why);
}

HcclResult hccl_fail_acl_say(aclError err, const char *what)
{
	char text[sizeof(npuacl_self.message)];

	memcpy(text, npuacl_self.message, sizeof(text));
	switch (err) {
	case ACL_ERROR_RT_MEMORY_ALLOCATION:
	case ACL_ERROR_RT_DEVICE_OOM:
	case ACL_ERROR_BAD_ALLOC:
	case ACL_ERROR_RT_RESOURCE_ALLOC_FAIL:
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: %s", what, text);
	case ACL_ERROR_RT_FEATURE_NOT_SUPPORT:
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: %s", what, text);
	case ACL_ERROR_RT_PARAM_INVALID:
	case ACL_ERROR_INVALID_PARAM:
	case ACL_ERROR_RT_INVALID_HANDLE:
	case ACL_ERROR_RT_CONTEXT_NULL:
	case ACL_ERROR_RT_ADDR_UNALIGNED:
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %s", what, text);
	case ACL_ERROR_RT_FFTS_PLUS_TIMEOUT:
		return hccl_fail(HCCL_E_TIMEOUT, "EI0002", "%s: %s", what, text);
	case ACL_ERROR_RT_SUSPECT_REMOTE_ERROR:
		return hccl_fail(HCCL_E_REMOTE, "EI0006", "%s: %s", what, text);
	default:
		return hccl_fail(HCCL_E_RUNTIME, "EI9999", "%s: %s", what, text);
	}
}
