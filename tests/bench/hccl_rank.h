/* SPDX-License-Identifier: MIT */
/* A rank of the HCCL bench programs: a device, a stream, a communicator, two buffers. */
#ifndef NPUEMU_BENCH_HCCL_RANK_H
#define NPUEMU_BENCH_HCCL_RANK_H

#include <hccl/hccl.h>
#include "acl.h"
#include "hccl_cases.h"

struct hccl_bench_rank {
	unsigned int rank, ranks;
	HcclComm comm;
	aclrtStream stream;
	float *in, *out;	/* on the device */
	float *host;
};

/* A call of HCCL that must work. */
#define hccl_try(call)							\
	do {								\
		HcclResult hccl_ret = (call);				\
									\
		if (hccl_ret != HCCL_SUCCESS)				\
			acl_die(__FILE__, __LINE__, #call, (aclError)hccl_ret); \
	} while (0)

/* The thread's device; its stream. */
static inline void hccl_bench_open(struct hccl_bench_rank *r, unsigned int rank,
				   unsigned int ranks)
{
	uint32_t devices;

	memset(r, 0, sizeof(*r));
	r->rank = rank;
	r->ranks = ranks;
	acl_try(aclrtGetDeviceCount(&devices));
	acl_try(aclrtSetDevice((int32_t)(rank % devices)));
	acl_try(aclrtCreateStream(&r->stream));
}

static inline void hccl_bench_buffers(struct hccl_bench_rank *r, size_t bytes)
{
	acl_try(aclrtMalloc((void **)&r->in, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	acl_try(aclrtMalloc((void **)&r->out, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	r->host = malloc(bytes);
	if (!r->host)
		bench_die("no memory");
	acl_try(aclrtMemset(r->in, bytes, 0, bytes));
	acl_try(aclrtMemset(r->out, bytes, 0, bytes));
}

static inline void hccl_bench_close(struct hccl_bench_rank *r)
{
	hccl_try(HcclCommDestroy(r->comm));
	if (r->in)
		acl_try(aclrtFree(r->in));
	if (r->out)
		acl_try(aclrtFree(r->out));
	acl_try(aclrtDestroyStream(r->stream));
	free(r->host);
}

static inline void hccl_bench_issue(struct hccl_bench_rank *r, const struct hccl_bench_case *c)
{
	size_t n = hccl_bench_count(c, r->ranks);

	switch (c->coll) {
	case COLL_ALLREDUCE:
		hccl_try(HcclAllReduce(r->in, r->out, n, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM,
				       r->comm, r->stream));
		break;
	case COLL_REDUCESCATTER:
		hccl_try(HcclReduceScatter(r->in, r->out, n, HCCL_DATA_TYPE_FP32,
					   HCCL_REDUCE_SUM, r->comm, r->stream));
		break;
	case COLL_ALLGATHER:
		hccl_try(HcclAllGather(r->in, r->out, n, HCCL_DATA_TYPE_FP32, r->comm,
				       r->stream));
		break;
	case COLL_ALLTOALL:
		hccl_try(HcclAlltoAll(r->in, n, HCCL_DATA_TYPE_FP32, r->out, n,
				      HCCL_DATA_TYPE_FP32, r->comm, r->stream));
		break;
	default:
		hccl_try(HcclBarrier(r->comm, r->stream));
	}
}

static inline void hccl_bench_sync(struct hccl_bench_rank *r)
{
	acl_try(aclrtSynchronizeStream(r->stream));
}

/* Inputs in, outputs spoilt. */
static inline void hccl_bench_arm(struct hccl_bench_rank *r, const struct hccl_bench_case *c)
{
	size_t in = hccl_bench_in(c, r->ranks) * sizeof(float);
	size_t out = hccl_bench_out(c, r->ranks) * sizeof(float);

	if (!in)
		return;
	hccl_bench_fill(c, r->ranks, r->rank, r->host);
	acl_try(aclrtMemcpy(r->in, in, r->host, in, ACL_MEMCPY_HOST_TO_DEVICE));
	acl_try(aclrtMemset(r->out, out, 0xff, out));
}

static inline long hccl_bench_look(struct hccl_bench_rank *r, const struct hccl_bench_case *c)
{
	size_t out = hccl_bench_out(c, r->ranks) * sizeof(float);

	if (!out)
		return -1;
	acl_try(aclrtMemcpy(r->host, out, r->out, out, ACL_MEMCPY_DEVICE_TO_HOST));
	return hccl_bench_wrong(c, r->ranks, r->rank, r->host);
}

#endif
