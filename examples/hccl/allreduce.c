/* SPDX-License-Identifier: MIT */
/* allreduce.c - the sum of what every rank has, on every rank; started by npuemu-run. */
#include <stdio.h>
#include <stdlib.h>
#include <acl/acl.h>
#include <hccl/hccl.h>

static void must(int code, const char *what)
{
	const char *why = code ? aclGetRecentErrMsg() : NULL;

	if (!code)
		return;
	fprintf(stderr, "%s: error %d: %s\n", what, code, why ? why : "no message");
	exit(1);
}

static int number(const char *name)
{
	const char *text = getenv(name);

	must(!text, "RANK_ID, RANK_SIZE, DEVICE_ID: npuemu-run sets them");
	return atoi(text);
}

int main(void)
{
	float mine[4], sum[4];
	int rank = number("RANK_ID"), i;
	aclrtStream stream;
	void *from, *to;
	HcclComm comm;

	must(aclInit(NULL), "aclInit");
	must(aclrtSetDevice(number("DEVICE_ID")), "aclrtSetDevice");
	must(aclrtCreateStream(&stream), "aclrtCreateStream");
	must(HcclCommInitClusterInfo(getenv("RANK_TABLE_FILE"), (uint32_t)rank, &comm), "HcclCommInitClusterInfo");
	must(aclrtMalloc(&from, sizeof(mine), ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
	must(aclrtMalloc(&to, sizeof(sum), ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
	for (i = 0; i < 4; i++)
		mine[i] = (float)(rank + i);
	must(aclrtMemcpy(from, sizeof(mine), mine, sizeof(mine), ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");

	must(HcclAllReduce(from, to, 4, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream), "HcclAllReduce");
	must(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");

	must(aclrtMemcpy(sum, sizeof(sum), to, sizeof(sum), ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
	printf("rank %d of %d has %g %g %g %g\n", rank, number("RANK_SIZE"), (double)sum[0], (double)sum[1],
	       (double)sum[2], (double)sum[3]);
	must(HcclCommDestroy(comm), "HcclCommDestroy");
	must(aclFinalize(), "aclFinalize");
	return 0;
}
