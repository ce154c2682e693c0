// SPDX-License-Identifier: MIT
/*
 * Memory of ranks beside what a collective is given: buffers of several mappings,
 * ranges for zero copy, symmetric windows.
 */
#include <hccl/hccl_sym_win.h>
#include <stdio.h>
#include "hcclrank.h"

#define MB	(1ul << 20)
#define PAGES	HR_PAGES
#define PARTS	HR_PARTS

/* ---- Mappings side by side -------------------------------------------------- */

static void put_values(void *dev, uint32_t rank, size_t n)
{
	float *host = malloc(n * sizeof(*host));
	size_t i;

	for (i = 0; i < n; i++)
		host[i] = hr_value(rank, i);
	acl_ok(aclrtMemcpy(dev, n * sizeof(*host), host, n * sizeof(*host), ACL_MEMCPY_HOST_TO_DEVICE));
	free(host);
}

/* Element i is the sum of what all ranks have there. */
static void has_sum(const char *what, const void *dev, uint32_t ranks, size_t n)
{
	float *host = malloc(n * sizeof(*host)), want;
	uint32_t r;
	size_t i;

	acl_ok(aclrtMemcpy(host, n * sizeof(*host), dev, n * sizeof(*host), ACL_MEMCPY_DEVICE_TO_HOST));
	for (i = 0; i < n; i++) {
		for (r = 0, want = 0; r < ranks; r++)
			want += hr_value(r, i);
		sys_true(host[i] == want, "%s: element %zu is %f, not %f", what, i, (double)host[i], (double)want);
	}
	free(host);
}

static void has_values(const char *what, const void *dev, uint32_t rank, size_t n)
{
	float *host = malloc(n * sizeof(*host));
	size_t i;

	acl_ok(aclrtMemcpy(host, n * sizeof(*host), dev, n * sizeof(*host), ACL_MEMCPY_DEVICE_TO_HOST));
	for (i = 0; i < n; i++)
		sys_true(host[i] == hr_value(rank, i), "%s: element %zu is %f, not %f", what, i, (double)host[i],
			 (double)hr_value(rank, i));
	free(host);
}

static void parts_collectives(struct hr_rank *r)
{
	size_t n = (PARTS * PAGES - 128) / sizeof(float), k = n / r->ranks / 2, i;
	struct hr_mapped in = hr_map(PARTS), out = hr_map(PARTS);
	uint32_t times, peer;

	/* neither side begins where a mapping does, and each has boundaries of its own */
	void *src = in.va + 64, *dst = out.va + 4;

	put_values(src, r->rank, n);
	for (times = 0; times < 3; times++) {
		acl_ok(aclrtMemset(out.va, out.bytes, 0x77, out.bytes));
		hr_barrier(r);
		hr_ok(HcclAllReduce(src, dst, n, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, r->comm, r->stream));
		hr_sync(r);
		has_sum("allreduce", dst, r->ranks, n);
		hr_barrier(r);
	}
	/* a type that no engine reduces */
	put_values(dst, r->rank, n);
	hr_barrier(r);
	hr_ok(HcclAllReduce(dst, dst, n, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_PROD, r->comm, r->stream));
	hr_sync(r);
	hr_barrier(r);
	hr_ok(HcclAllGather(src, dst, k, HCCL_DATA_TYPE_FP32, r->comm, r->stream));
	hr_sync(r);
	for (i = 0; i < r->ranks; i++)
		has_values("allgather", (float *)dst + i * k, (uint32_t)i, k);
	hr_barrier(r);
	/* point to point: to the next, from the one before */
	peer = (r->rank + 1) % r->ranks;
	HcclSendRecvItem items[2] = {
		{ HCCL_SEND, src, n, HCCL_DATA_TYPE_FP32, peer },
		{ HCCL_RECV, dst, n, HCCL_DATA_TYPE_FP32, (r->rank + r->ranks - 1) % r->ranks },
	};
	hr_ok(HcclBatchSendRecv(items, 2, r->comm, r->stream));
	hr_sync(r);
	has_values("received", dst, (r->rank + r->ranks - 1) % r->ranks, n);
	hr_barrier(r);
	hr_unmap(&in);
	hr_unmap(&out);
}

static void parts(void **state)
{
	(void)state;
	hr_run(3, false, 1, parts_collectives);
	hr_run(3, true, 1, parts_collectives);
	hr_run(4, true, 2, parts_collectives);
}

/* What was mapped is given back, other memory comes to its place: the peers see that. */
static void parts_remapped(struct hr_rank *r)
{
	size_t n = 2 * PAGES / sizeof(float);
	struct hr_mapped m = hr_map(2);
	uint32_t times;

	for (times = 0; times < 12; times++) {
		put_values(m.va, r->rank, n);
		hr_barrier(r);
		hr_ok(HcclAllReduce(m.va, m.va, n, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, r->comm, r->stream));
		hr_sync(r);
		has_sum("after another mapping", m.va, r->ranks, n);
		hr_barrier(r);
		acl_ok(aclrtUnmapMem(m.va + PAGES));
		acl_ok(aclrtFreePhysical(m.handle[1]));
		m.handle[1] = hr_physical((int32_t)r->rank);
		acl_ok(aclrtMapMem(m.va + PAGES, PAGES, 0, m.handle[1], 0));
	}
	hr_unmap(&m);
}

static void remapped(void **state)
{
	(void)state;
	hr_run(2, true, 1, parts_remapped);
	hr_run(2, false, 1, parts_remapped);
}

/* A model names the parts for as long as it is there. */
static void parts_model(struct hr_rank *r)
{
	size_t n = 2 * PAGES / sizeof(float), k;
	struct hr_mapped in = hr_map(2), out = hr_map(2), other = hr_map(2);
	aclmdlRI model;

	put_values(in.va, r->rank, n);
	acl_ok(aclmdlRICaptureBegin(r->stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
	hr_ok(HcclAllReduce(in.va, out.va, n, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, r->comm, r->stream));
	acl_ok(aclmdlRICaptureEnd(r->stream, &model));
	for (k = 0; k < 20; k++) {	/* other lists come and go */
		hr_ok(HcclBroadcast(other.va + k * 4, (n - 1000), HCCL_DATA_TYPE_FP32, 0, r->comm, r->stream));
		hr_sync(r);
		acl_ok(aclmdlRIExecuteAsync(model, r->stream));
		hr_sync(r);
	}
	has_sum("a model", out.va, r->ranks, n);
	hr_barrier(r);
	acl_ok(aclmdlRIDestroy(model));
	hr_unmap(&in);
	hr_unmap(&out);
	hr_unmap(&other);
}

static void model(void **state)
{
	(void)state;
	hr_run(2, true, 1, parts_model);
}

/* What is no such buffer is refused, with words. */
static void parts_refused(struct hr_rank *r)
{
	struct hr_mapped a = hr_map(2);
	void *plain;

	acl_ok(aclrtMalloc(&plain, 4096, ACL_MEM_MALLOC_NORMAL_ONLY));
	hr_says(HcclBroadcast(plain, 4097, HCCL_DATA_TYPE_INT8, 0, r->comm, r->stream), HCCL_E_PARA, "4096 bytes");
	hr_says(HcclBroadcast(a.va, a.bytes + 1, HCCL_DATA_TYPE_INT8, 0, r->comm, r->stream), HCCL_E_PARA, "what follows is");
	acl_ok(aclrtUnmapMem(a.va + PAGES));
	hr_says(HcclBroadcast(a.va, a.bytes, HCCL_DATA_TYPE_INT8, 0, r->comm, r->stream), HCCL_E_PARA, "reserved addresses");
	acl_ok(aclrtMapMem(a.va + PAGES, PAGES, 0, a.handle[1], 0));
	hr_barrier(r);
	hr_ok(HcclBroadcast(a.va, a.bytes, HCCL_DATA_TYPE_INT8, 0, r->comm, r->stream));
	hr_sync(r);
	acl_ok(aclrtFree(plain));
	hr_unmap(&a);
}

static void refused(void **state)
{
	(void)state;
	hr_run(2, true, 1, parts_refused);
	hr_run(2, false, 1, parts_refused);
}

/* ---- Zero copy ------------------------------------------------------------------ */

static void zero_rank(struct hr_rank *r)
{
	struct hr_mapped m = hr_map(2);
	aclrtDrvMemHandle other = hr_physical((int32_t)r->rank);
	size_t n = m.bytes / sizeof(float);
	HcclComm sub;
	void *plain;

	acl_ok(aclrtMalloc(&plain, 4096, ACL_MEM_MALLOC_NORMAL_ONLY));
	hr_says(HcclCommSetMemoryRange(r->comm, NULL, m.bytes, 0, 0), HCCL_E_PTR, "NULL");
	hr_says(HcclCommSetMemoryRange(r->comm, plain, 4096, 0, 0), HCCL_E_PARA, "aclrtReserveMemAddress");
	hr_says(HcclCommSetMemoryRange(r->comm, m.va + PAGES, PAGES, 0, 0), HCCL_E_PARA, "aclrtReserveMemAddress");
	hr_says(HcclCommSetMemoryRange(r->comm, m.va, m.bytes + 1, 0, 0), HCCL_E_PARA, "are reserved");
	hr_says(HcclCommSetMemoryRange(r->comm, m.va, m.bytes, 1, 0), HCCL_E_PARA, "alignment 1");
	hr_says(HcclCommSetMemoryRange(r->comm, m.va, m.bytes, 0, 1), HCCL_E_PARA, "flags 0x1");
	hr_says(HcclCommActivateCommMemory(r->comm, m.va, PAGES, 0, m.handle[0], 0), HCCL_E_NOT_FOUND, "no range");
	hr_ok(HcclCommSetMemoryRange(r->comm, m.va, m.bytes, 0, 0));
	hr_says(HcclCommSetMemoryRange(r->comm, m.va, m.bytes, 0, 0), HCCL_E_PARA, "overlaps");
	hr_says(HcclCommActivateCommMemory(r->comm, m.va, PAGES, 0, other, 0), HCCL_E_PARA, "other memory");
	hr_says(HcclCommActivateCommMemory(r->comm, m.va, PAGES / 2, 0, m.handle[0], 0), HCCL_E_PARA, "not all of the mapping");
	hr_says(HcclCommActivateCommMemory(r->comm, m.va, PAGES, 4096, m.handle[0], 0), HCCL_E_PARA, "offset 4096");
	hr_says(HcclCommActivateCommMemory(r->comm, m.va, PAGES, 0, NULL, 0), HCCL_E_PTR, "handle is NULL");
	hr_ok(HcclCommActivateCommMemory(r->comm, m.va, PAGES, 0, m.handle[0], 0));
	hr_says(HcclCommActivateCommMemory(r->comm, m.va, PAGES, 0, m.handle[0], 0), HCCL_E_PARA, "active already");
	/* known to all communicators of the process */
	sub = hr_comm(r);
	hr_ok(HcclCommActivateCommMemory(sub, m.va + PAGES, PAGES, 0, m.handle[1], 0));
	hr_says(HcclCommUnsetMemoryRange(sub, m.va), HCCL_E_PARA, "another communicator");
	put_values(m.va, r->rank, n);
	hr_barrier(r);
	hr_ok(HcclAllReduce(m.va, m.va, n, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, r->comm, r->stream));
	hr_sync(r);
	has_sum("zero copy", m.va, r->ranks, n);
	hr_says(HcclCommUnsetMemoryRange(r->comm, m.va), HCCL_E_PARA, "active");
	hr_says(HcclCommDeactivateCommMemory(r->comm, m.va + 4096), HCCL_E_NOT_FOUND, "is active");
	hr_says(HcclCommDeactivateCommMemory(r->comm, plain), HCCL_E_NOT_FOUND, "no range");
	hr_ok(HcclCommDeactivateCommMemory(r->comm, m.va + PAGES));
	hr_ok(HcclCommDeactivateCommMemory(r->comm, m.va));
	hr_says(HcclCommDeactivateCommMemory(r->comm, m.va), HCCL_E_NOT_FOUND, "is active");
	hr_ok(HcclCommUnsetMemoryRange(r->comm, m.va));
	hr_says(HcclCommUnsetMemoryRange(r->comm, m.va), HCCL_E_NOT_FOUND, "no range");
	hr_barrier(r);
	hr_ok(HcclCommDestroy(sub));
	acl_ok(aclrtFree(plain));
	acl_ok(aclrtFreePhysical(other));
	hr_unmap(&m);
}

/* Of another size than the others: said to who comes later, and to the first when it goes on. */
static void zero_sizes(struct hr_rank *r)
{
	struct hr_mapped m = hr_map(2);

	if (r->rank == 1)
		hr_barrier(r);
	if (r->rank == 1)
		hr_says(HcclCommSetMemoryRange(r->comm, m.va, PAGES, 0, 0), HCCL_E_PARA, "4194304 on rank 0");
	else
		hr_ok(HcclCommSetMemoryRange(r->comm, m.va, m.bytes, 0, 0));
	if (r->rank == 0)
		hr_barrier(r);
	hr_barrier(r);
	if (r->rank == 0) {
		hr_ok(HcclCommActivateCommMemory(r->comm, m.va, PAGES, 0, m.handle[0], 0));
		hr_ok(HcclCommDeactivateCommMemory(r->comm, m.va));
		hr_ok(HcclCommUnsetMemoryRange(r->comm, m.va));
	}
	hr_barrier(r);
	/* what is left goes with the communicator */
	hr_ok(HcclCommSetMemoryRange(r->comm, m.va, m.bytes, 0, 0));
	hr_ok(HcclCommActivateCommMemory(r->comm, m.va, PAGES, 0, m.handle[0], 0));
	hr_unmap(&m);
}

/* Not while an operation is on the way: the others have not come. */
static void zero_busy(struct hr_rank *r)
{
	struct hr_mapped m = hr_map(1);

	hr_ok(HcclCommSetMemoryRange(r->comm, m.va, m.bytes, 0, 0));
	hr_ok(HcclCommActivateCommMemory(r->comm, m.va, PAGES, 0, m.handle[0], 0));
	if (!r->rank) {
		hr_ok(HcclBroadcast(m.va, 1000, HCCL_DATA_TYPE_INT8, 1, r->comm, r->stream));
		hr_says(HcclCommDeactivateCommMemory(r->comm, m.va), HCCL_E_AGAIN, "are not over");
		hr_says(HcclCommUnsetMemoryRange(r->comm, m.va), HCCL_E_AGAIN, "are not over");
	}
	hr_barrier(r);
	if (r->rank)
		hr_ok(HcclBroadcast(m.va, 1000, HCCL_DATA_TYPE_INT8, 1, r->comm, r->stream));
	hr_sync(r);
	hr_ok(HcclCommDeactivateCommMemory(r->comm, m.va));
	hr_ok(HcclCommUnsetMemoryRange(r->comm, m.va));
	hr_unmap(&m);
}

static void zero_copy(void **state)
{
	(void)state;
	hr_run(2, true, 1, zero_rank);
	hr_run(3, false, 1, zero_rank);
	hr_run(2, true, 1, zero_sizes);
	hr_run(2, true, 1, zero_busy);
}

static void zero_servers_rank(struct hr_rank *r)
{
	struct hr_mapped m = hr_map(1);

	hr_says(HcclCommSetMemoryRange(r->comm, m.va, m.bytes, 0, 0), HCCL_E_NOT_SUPPORT, "2 servers");
	hr_unmap(&m);
}

static void zero_servers(void **state)
{
	(void)state;
	sys_user_only("the module is one machine, of one server");
	hr_run(2, false, 8, zero_servers_rank);
}

/* ---- Symmetric windows -------------------------------------------------------------- */

static void window_use(struct hr_rank *r, uint8_t *mem, size_t bytes)
{
	size_t n = bytes / sizeof(float), at = 4096;
	HcclCommSymWindow w = NULL, found;
	uint32_t i, next = (r->rank + 1) % r->ranks;
	void *peer, *mine, *copy;
	size_t off;

	put_values(mem, r->rank, n);
	acl_ok(aclrtMalloc(&copy, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	hr_ok(HcclCommSymWinRegister(r->comm, mem, bytes, &w, 1));
	hr_barrier(r);
	/* every peer's memory, by an engine in a stream, at once, and by the CPU as a kernel would */
	for (i = 0; i < r->ranks; i++) {
		hr_ok(HcclSymWinGetPeerPointer(w, 0, i, &peer));
		acl_ok(aclrtMemcpyAsync(copy, bytes, peer, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, r->stream));
		hr_sync(r);
		has_values("a peer's window", copy, i, n);
		sys_true(((float *)peer)[n - 1] == hr_value(i, n - 1), "rank %u: the last of rank %u is wrong", r->rank, i);
	}
	hr_ok(HcclSymWinGetPeerPointer(w, 0, r->rank, &mine));
	sys_true(mine == mem, "%p and %p", mine, (void *)mem);
	hr_barrier(r);
	/* and the other way: into the middle of the next one's */
	acl_ok(aclrtMemset(copy, bytes, (int32_t)(r->rank + 1), bytes));
	hr_ok(HcclSymWinGetPeerPointer(w, at, next, &peer));
	acl_ok(aclrtMemcpy(peer, bytes - at, copy, bytes - at, ACL_MEMCPY_DEVICE_TO_DEVICE));
	hr_barrier(r);
	sys_is_byte("written by the one before", mem + at, bytes - at,
		    (unsigned char)((r->rank + r->ranks - 1) % r->ranks + 1));
	/* found again */
	hr_ok(HcclCommSymWinGet(r->comm, mem + at, bytes - at, &found, &off));
	sys_true(found == w && off == at, "%p at %zu", found, off);
	hr_ok(HcclCommSymWinGet(r->comm, mem + at, bytes, &found, &off));
	sys_true(!found && !off, "more than there is was found: %p at %zu", found, off);
	hr_ok(HcclCommSymWinGet(r->comm, copy, 1, &found, &off));
	sys_true(!found && !off, "memory that is in none: %p at %zu", found, off);
	hr_says(HcclSymWinGetPeerPointer(w, bytes, next, &peer), HCCL_E_PARA, "the window has");
	hr_says(HcclSymWinGetPeerPointer(w, 0, r->ranks, &peer), HCCL_E_PARA, "has ranks 0 to");
	hr_barrier(r);
	hr_ok(HcclSymWinGetPeerPointer(w, 0, next, &peer));
	hr_ok(HcclCommSymWinDeregister(w));
	hr_says(HcclCommSymWinDeregister(w), HCCL_E_PARA, "deregistered");
	hr_says(HcclSymWinGetPeerPointer(w, 0, 0, &mine), HCCL_E_PARA, "no window");
	if (r->process)	/* of another process: no longer known */
		acl_fails(aclrtMemset(peer, 1, 1, 1), ACL_ERROR_RT_PARAM_INVALID);
	hr_barrier(r);
	acl_ok(aclrtFree(copy));
}

static void window_rank(struct hr_rank *r)
{
	struct hr_mapped one = hr_map(1), several = hr_map(PARTS);
	uint8_t *plain;

	acl_ok(aclrtMalloc((void **)&plain, MB, ACL_MEM_MALLOC_HUGE_FIRST));
	window_use(r, plain, MB);
	window_use(r, plain + 512, MB / 2);
	window_use(r, one.va, one.bytes);
	window_use(r, several.va + 1024, several.bytes - 2048);
	acl_ok(aclrtFree(plain));
	hr_unmap(&one);
	hr_unmap(&several);
}

static void windows(void **state)
{
	(void)state;
	hr_run(3, true, 1, window_rank);
	hr_run(3, false, 1, window_rank);
}

static void window_wrong_rank(struct hr_rank *r)
{
	HcclCommSymWindow w = NULL, left;
	uint8_t *mem, host[16];

	acl_ok(aclrtMalloc((void **)&mem, MB, ACL_MEM_MALLOC_HUGE_FIRST));
	hr_says(HcclCommSymWinRegister(r->comm, NULL, MB, &w, 1), HCCL_E_PTR, "addr");
	hr_says(HcclCommSymWinRegister(r->comm, mem, 0, &w, 1), HCCL_E_PARA, "size 0");
	hr_says(HcclCommSymWinRegister(r->comm, mem, MB, &w, 0), HCCL_E_PARA, "flag 0");
	hr_says(HcclCommSymWinRegister(r->comm, mem, MB / (r->rank + 1), &w, 1), HCCL_E_PARA, "524288 on rank 1");
	/* one cannot: all are told */
	if (r->rank == 1)
		hr_says(HcclCommSymWinRegister(r->comm, host, 16, &w, 1), HCCL_E_PARA, "no device memory");
	else
		hr_says(HcclCommSymWinRegister(r->comm, mem, 16, &w, 1), HCCL_E_PARA, "rank 1 could not");
	/* more than hcclSymWinMaxMemSizePerRank, without having it */
	hr_says(HcclCommSymWinRegister(r->comm, mem, 17ul << 30, &w, 1), HCCL_E_MEMORY, "16 GB");
	sys_true(!w, "a window was made");
	/* nothing is broken by that, and what is left goes with the communicator */
	hr_ok(HcclCommSymWinRegister(r->comm, mem, MB, &left, 1));
	hr_barrier(r);
	acl_ok(aclrtFree(mem));
}

static void windows_wrong(void **state)
{
	(void)state;
	hr_run(2, true, 1, window_wrong_rank);
	hr_run(2, false, 1, window_wrong_rank);
}

/* A rank does not come: the others are told, within their time. */
static void window_alone_rank(struct hr_rank *r)
{
	HcclCommSymWindow w;
	void *mem;

	acl_ok(aclrtMalloc(&mem, MB, ACL_MEM_MALLOC_HUGE_FIRST));
	if (r->rank) {
		hr_barrier(r);
	} else {
		hr_says(HcclCommSymWinRegister(r->comm, mem, MB, &w, 1), HCCL_E_TIMEOUT, "rank 1 did not come");
		hr_barrier(r);
	}
	hr_says(HcclCommSymWinRegister(r->comm, mem, MB, &w, 1), HCCL_E_TIMEOUT, "");
	acl_ok(aclrtFree(mem));
}

static void windows_alone(void **state)
{
	(void)state;
	setenv("HCCL_CONNECT_TIMEOUT", "1", 1);
	hr_run(2, false, 1, window_alone_rank);
	setenv("HCCL_CONNECT_TIMEOUT", "120", 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		hr_test(parts),
		hr_test(remapped),
		hr_test(model),
		hr_test(refused),
		hr_test(zero_copy),
		hr_test_servers(zero_servers),
		hr_test(windows),
		hr_test(windows_wrong),
		hr_test(windows_alone),
	};

	hr_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
