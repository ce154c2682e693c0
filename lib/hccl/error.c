// SPDX-License-Identifier: MIT
/*
 * Results of HCCL in words, and the messages that go with them.
 */
#include "comm.h"

static const char *const words[] = {
	[HCCL_SUCCESS] = "no error",
	[HCCL_E_PARA] = "parameter error",
	[HCCL_E_PTR] = "empty pointer",
	[HCCL_E_MEMORY] = "memory error",
	[HCCL_E_INTERNAL] = "internal error",
	[HCCL_E_NOT_SUPPORT] = "not supported",
	[HCCL_E_NOT_FOUND] = "not found",
	[HCCL_E_UNAVAIL] = "not available",
	[HCCL_E_SYSCALL] = "system call failed",
	[HCCL_E_TIMEOUT] = "timeout",
	[HCCL_E_OPEN_FILE_FAILURE] = "file could not be opened",
	[HCCL_E_TCP_CONNECT] = "tcp connection failed",
	[HCCL_E_ROCE_CONNECT] = "roce connection failed",
	[HCCL_E_TCP_TRANSFER] = "tcp transfer failed",
	[HCCL_E_ROCE_TRANSFER] = "roce transfer failed",
	[HCCL_E_RUNTIME] = "runtime error",
	[HCCL_E_DRV] = "driver error",
	[HCCL_E_PROFILING] = "profiling error",
	[HCCL_E_CCE] = "cce error",
	[HCCL_E_NETWORK] = "network error",
	[HCCL_E_AGAIN] = "try again",
	[HCCL_E_REMOTE] = "error completion",
	[HCCL_E_SUSPENDING] = "communicator suspended",
	[HCCL_E_OPRETRY_FAIL] = "operation retry failed",
	[HCCL_E_OOM] = "out of memory",
};

const char *HcclGetErrorString(HcclResult code)
{
	unsigned int n = (unsigned int)code;	/* whatever a program casts to it */

	if (n < ARRAY_SIZE(words))
		return words[n];
	if (n == HCCL_E_IN_STATUS)
		return "error in status";
	return n < HCCL_E_RESERVED ? "unknown err" : "unknown error";
}

HcclResult npuemu_hccl_unsupported(const char *name, HcclResult code)
{
	npuacl_unsupported(name);
	return hccl_fail(code, "EI0003", "%s is not supported by npuemu: see Documentation/compatibility.md", name);
}

/* ---- What it knows of a configuration ------------------------------------------- */

uint32_t HcclGetCommConfigCapability(void)
{
	return HCCL_COMM_CONFIG_RESERVED;
}
