// SPDX-License-Identifier: MIT
/* What went wrong, for the thread that asks; as the collectives do it. */
#include <stdio.h>
#include "transport.h"

void hcomm_fail_say(HcclResult code, const char *family, const char *fmt, ...)
{
	char text[sizeof(npuacl_self.message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	npuacl_message(family, (int)code, text);
	npuemu_log(NPUEMU_LOG_INFO, "hcomm: %s", npuacl_self.message);
}

HcclResult hcomm_fail_acl(aclError err, const char *what)
{
	char text[sizeof(npuacl_self.message)];

	memcpy(text, npuacl_self.message, sizeof(text));
	switch (err) {
	case ACL_SUCCESS:
		return HCCL_SUCCESS;
	case ACL_ERROR_RT_MEMORY_ALLOCATION:
	case ACL_ERROR_RT_DEVICE_OOM:
	case ACL_ERROR_BAD_ALLOC:
	case ACL_ERROR_RT_RESOURCE_ALLOC_FAIL:
		return hcomm_fail(HCCL_E_MEMORY, "EI0011", "%s: %s", what, text);
	case ACL_ERROR_RT_FEATURE_NOT_SUPPORT:
		return hcomm_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: %s", what, text);
	case ACL_ERROR_RT_PARAM_INVALID:
	case ACL_ERROR_INVALID_PARAM:
	case ACL_ERROR_RT_INVALID_HANDLE:
	case ACL_ERROR_RT_CONTEXT_NULL:
	case ACL_ERROR_RT_ADDR_UNALIGNED:
		return hcomm_fail(HCCL_E_PARA, "EI0003", "%s: %s", what, text);
	case ACL_ERROR_RT_FFTS_PLUS_TIMEOUT:
		return hcomm_fail(HCCL_E_TIMEOUT, "EI0002", "%s: %s", what, text);
	case ACL_ERROR_RT_SUSPECT_REMOTE_ERROR:
		return hcomm_fail(HCCL_E_REMOTE, "EI0006", "%s: %s", what, text);
	default:
		return hcomm_fail(HCCL_E_RUNTIME, "EI9999", "%s: %s", what, text);
	}
}

HcclResult hcomm_null(const char *what, const char *arg)
{
	return hcomm_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, arg);
}
