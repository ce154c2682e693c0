// SPDX-License-Identifier: MIT
/*
 * Transfers that one rank issues alone: memory is registered, told to the peer, enabled,
 * put to and got from; and the same for all ranks at once.
 */
#include <hccl_one_sided_services.h>
#include "hcclrank.h"


/* ---- Transfers by one side ----------------------------------------------------------- */

#define KB	1024ul

/* Both tell of @mem, and enable what they are told. */
static CommMem swap(struct hr_rank *r, uint32_t peer, void *mem, size_t bytes, HcclMemDesc *mine, HcclMemDesc *theirs)
{
	HcclMemDescs local = { mine, 1 }, remote = { theirs, 1 };
	CommMem got;
	uint32_t n = 0;

	hr_ok(HcclRegisterMem(r->comm, peer, COMM_MEM_TYPE_DEVICE, mem, bytes, mine));
	hr_ok(HcclExchangeMemDesc(r->comm, peer, &local, 0, &remote, &n));
	sys_eq(n, 1);
	hr_ok(HcclEnableMemAccess(r->comm, theirs, &got));
	sys_eq(got.type, COMM_MEM_TYPE_DEVICE);
	sys_eq(got.size, bytes);
	return got;
}

static void put_get(struct hr_rank *r, uint8_t *mem, size_t bytes)
{
	uint32_t next = (r->rank + 1) % r->ranks, before = (r->rank + r->ranks - 1) % r->ranks;
	HcclMemDesc mine[2], theirs[2];
	CommMem to, from;
	size_t half = bytes / 2, i;

	/* lower half: mine; upper: for others to write */
	sys_fill(mem, half, 100 + r->rank);
	/* with two ranks, both are the same peer: told twice, enabled twice */
	if (r->rank % 2) {
		from = swap(r, before, mem, bytes, &mine[1], &theirs[1]);
		to = swap(r, next, mem, bytes, &mine[0], &theirs[0]);
	} else {
		to = swap(r, next, mem, bytes, &mine[0], &theirs[0]);
		from = swap(r, before, mem, bytes, &mine[1], &theirs[1]);
	}
	hr_barrier(r);
	HcclOneSideOpDesc put[3] = {
		{ mem, (uint8_t *)to.addr + half, half / 4 - 3, HCCL_DATA_TYPE_INT8 },
		{ mem, mem, 0, HCCL_DATA_TYPE_INT8 },
		{ mem + half / 4 - 3, (uint8_t *)to.addr + half + half / 4 - 3, half - half / 4 + 3, HCCL_DATA_TYPE_UINT8 },
	};
	hr_ok(HcclBatchPut(r->comm, next, put, 3, r->stream));
	hr_sync(r);
	hr_barrier(r);
	sys_is_filled("what the one before put", mem + half, half, 100 + before);
	hr_barrier(r);
	/* element by element from the next one's lower half, in 64 pieces */
	HcclOneSideOpDesc get[64];
	size_t step = half / 64 / sizeof(float);

	for (i = 0; i < 64; i++)
		get[i] = (HcclOneSideOpDesc){
			(float *)(mem + half) + i * step, (float *)to.addr + i * step, step, HCCL_DATA_TYPE_FP32,
		};
	acl_ok(aclrtMemset(mem + half, half, 0, half));
	hr_ok(HcclBatchGet(r->comm, next, get, 64, r->stream));
	hr_sync(r);
	sys_is_filled("what was got of the next", mem + half, 64 * step * sizeof(float), 100 + next);
	(void)from;
	hr_barrier(r);
	for (i = 0; i < 2; i++) {
		hr_ok(HcclDisableMemAccess(r->comm, &theirs[i]));
		hr_ok(HcclDeregisterMem(r->comm, &mine[i]));
	}
	hr_says(HcclDisableMemAccess(r->comm, &theirs[0]), HCCL_E_NOT_FOUND, "enabled");
	hr_says(HcclDeregisterMem(r->comm, &mine[0]), HCCL_E_NOT_FOUND, "registered");
	hr_says(HcclBatchGet(r->comm, next, get, 1, r->stream), HCCL_E_NOT_FOUND, "not registered");
	hr_barrier(r);
}

static void oneside_rank(struct hr_rank *r)
{
	struct hr_mapped one = hr_map(1), several = hr_map(HR_PARTS);
	uint8_t *plain;

	acl_ok(aclrtMalloc((void **)&plain, 256 * KB, ACL_MEM_MALLOC_HUGE_FIRST));
	put_get(r, plain, 256 * KB);
	put_get(r, plain + 1024, 64 * KB);
	put_get(r, one.va, one.bytes);
	put_get(r, several.va + 4096, several.bytes - 8192);
	acl_ok(aclrtFree(plain));
	hr_unmap(&one);
	hr_unmap(&several);
}

static void oneside(void **state)
{
	(void)state;
	hr_run(2, true, 1, oneside_rank);
	hr_run(4, true, 1, oneside_rank);
	hr_run(2, false, 1, oneside_rank);
}

static void oneside_wrong_rank(struct hr_rank *r)
{
	HcclMemDesc d, theirs[2], bad;
	HcclMemDescs local = { &d, 1 }, remote = { theirs, 1 }, none = { NULL, 0 };
	uint32_t peer = 1 - r->rank, n;
	uint8_t *mem, *host;
	CommMem got;

	acl_ok(aclrtMalloc((void **)&mem, 64 * KB, ACL_MEM_MALLOC_HUGE_FIRST));
	acl_ok(aclrtMallocHost((void **)&host, 4096));
	hr_says(HcclRegisterMem(r->comm, 2, 0, mem, 4096, &d), HCCL_E_PARA, "ranks 0 to 1");
	hr_says(HcclRegisterMem(r->comm, peer, 2, mem, 4096, &d), HCCL_E_PARA, "type 2");
	hr_says(HcclRegisterMem(r->comm, peer, 0, host, 4096, &d), HCCL_E_PARA, "no device memory");
	hr_says(HcclRegisterMem(r->comm, peer, 1, mem, 4096, &d), HCCL_E_PARA, "host memory (1)");
	hr_says(HcclRegisterMem(r->comm, peer, 0, mem, 65 * KB, &d), HCCL_E_PARA, "66560 bytes");
	hr_ok(HcclRegisterMem(r->comm, peer, 0, mem, 64 * KB, &d));
	memset(&bad, 0, sizeof(bad));
	hr_says(HcclEnableMemAccess(r->comm, &bad, &got), HCCL_E_PARA, "no description");
	hr_says(HcclEnableMemAccess(r->comm, &d, &got), HCCL_E_PARA, "the caller is rank");
	bad = d;
	bad.desc[40] ^= 1;
	hr_says(HcclDeregisterMem(r->comm, &bad), HCCL_E_PARA, "no description");
	/* more than there is room for: said to who has none, the other goes on */
	remote.arrayLength = r->rank ? 0 : 1;
	if (r->rank)
		hr_says(HcclExchangeMemDesc(r->comm, peer, &local, 0, &remote, &n), HCCL_E_PARA, "has room for 0");
	else
		hr_ok(HcclExchangeMemDesc(r->comm, peer, &local, 0, &remote, &n));
	/* nothing from one of them */
	remote.arrayLength = 2;
	hr_ok(HcclExchangeMemDesc(r->comm, peer, r->rank ? &local : &none, 0, &remote, &n));
	sys_eq(n, r->rank ? 0 : 1);
	HcclOneSideOpDesc op = { mem, mem, 16, HCCL_DATA_TYPE_INT8 };

	if (!r->rank) {
		hr_says(HcclBatchPut(r->comm, peer, &op, 1, r->stream), HCCL_E_NOT_FOUND, "enabled here");
		hr_ok(HcclEnableMemAccess(r->comm, theirs, &got));
		op.remoteAddr = (uint8_t *)got.addr + 64 * KB - 15;
		hr_says(HcclBatchPut(r->comm, peer, &op, 1, r->stream), HCCL_E_NOT_FOUND, "enabled here");
		op.remoteAddr = got.addr;
		op.localAddr = mem + 64 * KB - 8;
		hr_says(HcclBatchPut(r->comm, peer, &op, 1, r->stream), HCCL_E_NOT_FOUND, "not registered");
		op.localAddr = mem;
		op.dataType = (HcclDataType)99;
		hr_says(HcclBatchPut(r->comm, peer, &op, 1, r->stream), HCCL_E_PARA, "dataType 99");
		op.dataType = HCCL_DATA_TYPE_INT8;
		hr_says(HcclBatchPut(r->comm, peer, &op, 1, NULL), HCCL_E_PTR, "stream is NULL");
		hr_says(HcclBatchPut(r->comm, peer, NULL, 1, r->stream), HCCL_E_PTR, "desc is NULL");
		hr_says(HcclBatchPut(r->comm, peer, &op, 0x80000000u, r->stream), HCCL_E_PARA, "2147483648 entries");
		hr_ok(HcclBatchPut(r->comm, peer, NULL, 0, r->stream));
		hr_ok(HcclBatchPut(r->comm, peer, &op, 1, r->stream));
		hr_sync(r);
	}
	hr_barrier(r);
	/* host memory: from a rank of this process, or not at all */
	hr_ok(HcclRegisterMem(r->comm, peer, 1, host, 4096, &d));
	host[0] = (uint8_t)(r->rank + 7);
	hr_ok(HcclExchangeMemDesc(r->comm, peer, &local, 0, &remote, &n));
	if (r->process) {
		hr_says(HcclEnableMemAccess(r->comm, theirs, &got), HCCL_E_NOT_SUPPORT, "another process");
	} else {
		hr_ok(HcclEnableMemAccess(r->comm, theirs, &got));
		op = (HcclOneSideOpDesc){ mem, got.addr, 1, HCCL_DATA_TYPE_INT8 };
		hr_ok(HcclBatchGet(r->comm, peer, &op, 1, r->stream));
		hr_sync(r);
		sys_eq(mem[0], peer + 7);
	}
	hr_barrier(r);
	acl_ok(aclrtFree(mem));
	acl_ok(aclrtFreeHost(host));
}

static void oneside_wrong(void **state)
{
	(void)state;
	hr_run(2, true, 1, oneside_wrong_rank);
	hr_run(2, false, 1, oneside_wrong_rank);
}

/* In use: not to be taken back.  A stream that waits holds the transfer up. */
static void oneside_busy_rank(struct hr_rank *r)
{
	HcclMemDesc mine, theirs;
	HcclOneSideOpDesc op;
	aclrtNotify gate;
	uint8_t *mem;
	CommMem got;

	acl_ok(aclrtMalloc((void **)&mem, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
	got = swap(r, 1 - r->rank, mem, 4096, &mine, &theirs);
	op = (HcclOneSideOpDesc){ mem, got.addr, 16, HCCL_DATA_TYPE_INT8 };
	acl_ok(aclrtCreateNotify(&gate, 0));
	acl_ok(aclrtWaitAndResetNotify(gate, r->stream, 0));
	hr_ok(HcclBatchGet(r->comm, 1 - r->rank, &op, 1, r->stream));
	hr_says(HcclDeregisterMem(r->comm, &mine), HCCL_E_AGAIN, "transfers that use");
	hr_says(HcclDisableMemAccess(r->comm, &theirs), HCCL_E_AGAIN, "transfers that use");
	hr_says(HcclCommDestroy(r->comm), HCCL_E_AGAIN, "are not over");
	aclrtStream other;

	acl_ok(aclrtCreateStream(&other));
	acl_ok(aclrtRecordNotify(gate, other));
	hr_sync(r);
	hr_ok(HcclDisableMemAccess(r->comm, &theirs));
	hr_ok(HcclDeregisterMem(r->comm, &mine));
	acl_ok(aclrtDestroyStream(other));
	acl_ok(aclrtDestroyNotify(gate));
	hr_barrier(r);
	acl_ok(aclrtFree(mem));
}

static void oneside_busy(void **state)
{
	(void)state;
	hr_run(2, true, 1, oneside_busy_rank);
}

/* Memory of the process, bound to two communicators, prepared for all ranks at once. */
static void prepare_rank(struct hr_rank *r)
{
	HcclPrepareConfig config = { .topoType = HCCL_TOPO_FULLMESH };
	struct hr_mapped several = hr_map(HR_PARTS);
	HcclComm other = hr_comm(r);
	uint8_t *plain;
	void *h[2];
	uint32_t i;

	acl_ok(aclrtMalloc((void **)&plain, 64 * KB, ACL_MEM_MALLOC_HUGE_FIRST));
	CommMem a = { COMM_MEM_TYPE_DEVICE, plain, 64 * KB }, b = { COMM_MEM_TYPE_DEVICE, several.va, several.bytes };
	CommMem bad = { COMM_MEM_TYPE_HOST, plain, 64 };

	hr_says(HcclRegisterGlobalMem(&bad, h), HCCL_E_PARA, "type is host");
	hr_ok(HcclRegisterGlobalMem(&a, &h[0]));
	hr_ok(HcclRegisterGlobalMem(&b, &h[1]));
	hr_says(HcclCommBindMem(r->comm, plain), HCCL_E_NOT_FOUND, "HcclRegisterGlobalMem");
	for (i = 0; i < 2; i++)
		hr_ok(HcclCommBindMem(r->comm, h[i]));
	hr_ok(HcclCommBindMem(other, h[0]));
	hr_says(HcclDeregisterGlobalMem(h[0]), HCCL_E_AGAIN, "bound to 2");
	hr_says(HcclCommPrepare(r->comm, NULL, 10), HCCL_E_PTR, "prepareConfig");
	hr_says(HcclCommPrepare(r->comm, &config, -1), HCCL_E_PARA, "timeout -1");
	hr_ok(HcclCommPrepare(r->comm, &config, 60));
	hr_ok(HcclCommPrepare(r->comm, &config, 0));
	sys_fill(plain, 64 * KB, 50 + r->rank);
	memcpy(hr_shared->bytes[r->rank], &plain, sizeof(plain));
	memcpy(hr_shared->bytes[r->rank] + 8, &several.va, sizeof(several.va));
	hr_barrier(r);
	for (i = 0; i < r->ranks; i++) {
		HcclOneSideOpDesc op = { several.va + HR_PAGES - 100, NULL, 32 * KB, HCCL_DATA_TYPE_INT8 };

		memcpy(&op.remoteAddr, hr_shared->bytes[i], sizeof(op.remoteAddr));
		hr_ok(HcclBatchGet(r->comm, i, &op, 1, r->stream));
		hr_sync(r);
		sys_is_filled("of each", several.va + HR_PAGES - 100, 32 * KB, 50 + i);
		/* the other communicator has not been prepared */
		hr_says(HcclBatchGet(other, i, &op, 1, r->stream), HCCL_E_NOT_FOUND, "not registered");
		op.localAddr = plain;
		hr_says(HcclBatchGet(other, i, &op, 1, r->stream), HCCL_E_NOT_FOUND, "enabled here");
	}
	hr_barrier(r);
	for (i = 0; i < 2; i++)
		hr_ok(HcclCommUnbindMem(r->comm, h[i]));
	hr_says(HcclCommUnbindMem(r->comm, h[0]), HCCL_E_NOT_FOUND, "registered");
	hr_says(HcclDeregisterGlobalMem(h[0]), HCCL_E_AGAIN, "bound to 1");
	/* goes with the communicator that has it */
	hr_ok(HcclCommDestroy(other));
	for (i = 0; i < 2; i++)
		hr_ok(HcclDeregisterGlobalMem(h[i]));
	hr_says(HcclDeregisterGlobalMem(h[0]), HCCL_E_NOT_FOUND, "deregistered");
	hr_barrier(r);
	acl_ok(aclrtFree(plain));
	hr_unmap(&several);
}

static void prepare(void **state)
{
	(void)state;
	hr_run(3, true, 1, prepare_rank);
	hr_run(3, false, 1, prepare_rank);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		hr_test(oneside),
		hr_test(oneside_wrong),
		hr_test(oneside_busy),
		hr_test(prepare),
	};

	hr_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
