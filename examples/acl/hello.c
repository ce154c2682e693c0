/* SPDX-License-Identifier: MIT */
/* hello.c - to an NPU, across its memory and back: timed by events, and checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <acl/acl.h>

#define WORDS	(4 << 20)
#define BYTES	(WORDS * sizeof(int))

static void must(aclError code, const char *what)
{
	const char *why = code ? aclGetRecentErrMsg() : NULL;

	if (!code)
		return;
	fprintf(stderr, "%s: error %d: %s\n", what, code, why ? why : "no message");
	exit(1);
}

int main(void)
{
	int *host, i, wrong = 0;
	void *from, *to;
	aclrtStream stream;
	aclrtEvent begin, end;
	float ms;

	must(aclInit(NULL), "aclInit");
	must(aclrtSetDevice(0), "aclrtSetDevice");
	must(aclrtCreateStream(&stream), "aclrtCreateStream");
	must(aclrtCreateEvent(&begin), "aclrtCreateEvent");
	must(aclrtCreateEvent(&end), "aclrtCreateEvent");
	must(aclrtMallocHost((void **)&host, BYTES), "aclrtMallocHost");
	must(aclrtMalloc(&from, BYTES, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
	must(aclrtMalloc(&to, BYTES, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");

	for (i = 0; i < WORDS; i++)
		host[i] = i;
	must(aclrtMemcpy(from, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
	memset(host, 0, BYTES);

	must(aclrtRecordEvent(begin, stream), "aclrtRecordEvent");
	must(aclrtMemcpyAsync(to, BYTES, from, BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
	     "aclrtMemcpyAsync");
	must(aclrtRecordEvent(end, stream), "aclrtRecordEvent");
	must(aclrtMemcpyAsync(host, BYTES, to, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, stream),
	     "aclrtMemcpyAsync");
	must(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
	must(aclrtEventElapsedTime(&ms, begin, end), "aclrtEventElapsedTime");

	for (i = 0; i < WORDS; i++)
		wrong += host[i] != i;
	printf("%s: %zu MiB across device 0, %d words wrong\n", aclrtGetSocName(), BYTES >> 20,
	       wrong);
	fprintf(stderr, "between the events: %.3f ms\n", ms);

	must(aclrtDestroyEvent(begin), "aclrtDestroyEvent");
	must(aclrtDestroyEvent(end), "aclrtDestroyEvent");
	must(aclrtDestroyStream(stream), "aclrtDestroyStream");
	must(aclrtFree(from), "aclrtFree");
	must(aclrtFree(to), "aclrtFree");
	must(aclrtFreeHost(host), "aclrtFreeHost");
	must(aclrtResetDevice(0), "aclrtResetDevice");
	must(aclFinalize(), "aclFinalize");
	return wrong != 0;
}
