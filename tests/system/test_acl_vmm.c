// SPDX-License-Identifier: MIT
/*
 * Reserved addresses and physical memory mapped there: what the CPU and the engines find,
 * across mappings that lie next to each other as well; rights; who holds what for how
 * long; what is refused.
 */
#include <acl/acl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "acltest.h"
#include "sys.h"

#define MIB	(1ul << 20)
#define PIECE	(2 * MIB)

static aclrtPhysicalMemProp prop_of(uint32_t device)
{
	aclrtPhysicalMemProp p = {
		.handleType = ACL_MEM_HANDLE_TYPE_NONE, .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
		.memAttr = ACL_HBM_MEM_HUGE, .location = { .id = device, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};

	return p;
}

static aclrtDrvMemHandle physical(uint32_t device, size_t bytes)
{
	aclrtPhysicalMemProp p = prop_of(device);
	aclrtDrvMemHandle h = NULL;

	acl_ok(aclrtMallocPhysical(&h, bytes, &p, 0));
	return h;
}

static uint8_t *reserve(size_t bytes)
{
	void *p = NULL;

	acl_ok(aclrtReserveMemAddress(&p, bytes, 0, NULL, 1));
	sys_true(p && !((uintptr_t)p & (PIECE - 1)), "%p is not at 2 MiB", p);
	return p;
}

static uint64_t hbm_used(void)
{
	struct npuemu_open_attr attr = { .size = sizeof(attr), .flags = NPUEMU_OPEN_EXISTING };
	struct npuemu *ctx;
	uint64_t n;

	sys_rc(npuemu_open(&attr, &ctx));
	n = sys_hbm_used(ctx);
	sys_rc(npuemu_close(ctx));
	return n;
}

/* Copies, fills and reductions that begin in one mapping and end in the next. */
static void across(void **state)
{
	static uint8_t in[PIECE], out[PIECE];
	uint8_t *va = reserve(4 * PIECE), *at = va + PIECE - 4096;
	aclrtDrvMemHandle h[2];
	aclrtStream s;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		h[i] = physical(0, PIECE);
		acl_ok(aclrtMapMem(va + i * PIECE, PIECE, 0, h[i], 0));
	}
	acl_ok(aclrtCreateStream(&s));
	sys_fill(in, sizeof(in), 7);
	acl_ok(aclrtMemcpy(at, PIECE, in, PIECE, ACL_MEMCPY_HOST_TO_DEVICE));
	/* the CPU sees it there, on both sides of the seam */
	sys_same("what the CPU sees", at, in, PIECE);
	acl_ok(aclrtMemcpy(out, PIECE, at, PIECE, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_same("read back", out, in, PIECE);
	/* and the engines what it writes */
	memset(at, 0x5a, 8192);
	acl_ok(aclrtMemcpy(out, 8192, at, 8192, ACL_MEMCPY_DEFAULT));
	sys_is_byte("what the engine sees", out, 8192, 0x5a);
	acl_ok(aclrtMemsetAsync(at, PIECE, 0x11, 8192, s));
	acl_ok(aclrtMemcpyAsync(va + 100, PIECE, at, 8192, ACL_MEMCPY_DEVICE_TO_DEVICE, s));
	acl_ok(aclrtSynchronizeStream(s));
	sys_is_byte("filled across", at, 8192, 0x11);
	sys_is_byte("copied", va + 100, 8192, 0x11);
	acl_ok(aclrtReduceAsync(at, va + 256, 8192 - 512, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT8, s, NULL));
	acl_ok(aclrtSynchronizeStream(s));
	sys_is_byte("reduced across", at, 8192 - 512, 0x22);
	sys_is_byte("not reduced", at + 8192 - 512, 512, 0x11);
	/* beyond the second there is nothing */
	acl_fails(aclrtMemset(at + PIECE, PIECE, 1, 8192), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemcpy(va + 2 * PIECE - 16, 64, in, 64, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID);
	for (i = 0; i < 2; i++) {
		acl_ok(aclrtUnmapMem(va + i * PIECE));
		acl_ok(aclrtFreePhysical(h[i]));
	}
	acl_fails(aclrtMemcpy(va, PIECE, in, PIECE, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtReleaseMemAddress(va));
	acl_ok(aclrtDestroyStream(s));
}

/* One piece of memory at two places; elsewhere than it was first. */
static void views(void **state)
{
	uint8_t *va = reserve(4 * PIECE);
	aclrtDrvMemHandle h = physical(0, PIECE), again;
	aclrtPtrAttributes attr;
	aclrtPhysicalMemProp p;
	void *base;
	size_t size;

	(void)state;
	acl_ok(aclrtMapMem(va, PIECE, 0, h, 0));
	acl_ok(aclrtMapMem(va + 2 * PIECE, PIECE, 0, h, 0));
	acl_ok(aclrtMemset(va, PIECE, 0x33, PIECE));
	sys_is_byte("the other view", va + 2 * PIECE, PIECE, 0x33);
	/* to the compiler these are two places */
	*(volatile uint8_t *)(va + 2 * PIECE + 5) = 9;
	sys_eq(*(volatile uint8_t *)(va + 5), 9);
	acl_ok(aclrtPointerGetAttributes(va + 2 * PIECE + 77, &attr));
	sys_eq(attr.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
	sys_eq(attr.location.id, 0);
	sys_eq(attr.pageSize, PIECE);
	acl_ok(aclrtMemGetAddressRange(va + 2 * PIECE + 77, &base, &size));
	sys_true(base == va + 2 * PIECE && size == PIECE, "%p, %zu", base, size);
	acl_ok(aclrtMemRetainAllocationHandle(va + 1234, &again));
	sys_true(again == h, "the handle is %p, not %p", (void *)again, (void *)h);
	acl_ok(aclrtMemGetAllocationPropertiesFromHandle(again, &p));
	sys_eq(p.memAttr, ACL_HBM_MEM_HUGE);
	sys_eq(p.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
	acl_ok(aclrtUnmapMem(va));
	sys_eq(*(volatile uint8_t *)(va + 2 * PIECE + 5), 9);
	acl_ok(aclrtFreePhysical(h));
	/* the retained one still counts */
	acl_ok(aclrtMapMem(va, PIECE, 0, again, 0));
	sys_eq(va[5], 9);
	acl_ok(aclrtFreePhysical(again));
	acl_fails(aclrtFreePhysical(again), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtUnmapMem(va));
	acl_ok(aclrtUnmapMem(va + 2 * PIECE));
	acl_ok(aclrtReleaseMemAddress(va));
}

/* Given back while it is mapped, memory stays until it is unmapped. */
static void deferred(void **state)
{
	uint8_t *va = reserve(2 * PIECE);
	aclrtDrvMemHandle h = physical(0, PIECE), again = NULL;
	uint64_t before = hbm_used();

	(void)state;
	acl_ok(aclrtMapMem(va, PIECE, 0, h, 0));
	acl_ok(aclrtFreePhysical(h));
	acl_fails(aclrtMapMem(va + PIECE, PIECE, 0, h, 0), ACL_ERROR_RT_PARAM_INVALID);
	sys_eq(hbm_used(), before);
	acl_ok(aclrtMemset(va, PIECE, 1, PIECE));
	acl_fails(aclrtReleaseMemAddress(va), ACL_ERROR_RT_PARAM_INVALID);
	/* a handle again */
	acl_ok(aclrtMemRetainAllocationHandle(va, &again));
	acl_ok(aclrtMapMem(va + PIECE, PIECE, 0, again, 0));
	acl_ok(aclrtFreePhysical(again));
	acl_ok(aclrtUnmapMem(va));
	sys_is_byte("the view that is left", va + PIECE, PIECE, 1);
	sys_eq(hbm_used(), before);
	acl_ok(aclrtUnmapMem(va + PIECE));
	sys_eq(hbm_used(), before - PIECE);
	acl_fails(aclrtUnmapMem(va + PIECE), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtReleaseMemAddress(va));
	acl_fails(aclrtReleaseMemAddress(va), ACL_ERROR_RT_PARAM_INVALID);
}

static void rights(void **state)
{
	static uint8_t host[4096];
	uint8_t *va = reserve(2 * PIECE);
	aclrtDrvMemHandle h = physical(0, PIECE), far = physical(1, PIECE);
	aclrtMemAccessDesc d[2] = {
		{ .flags = ACL_RT_MEM_ACCESS_FLAGS_READ, .location = { 0, ACL_MEM_LOCATION_TYPE_DEVICE } },
		{ .flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE, .location = { 1, ACL_MEM_LOCATION_TYPE_DEVICE } },
	};
	aclrtMemLocation zero = { 0, ACL_MEM_LOCATION_TYPE_DEVICE }, one = { 1, ACL_MEM_LOCATION_TYPE_DEVICE };
	uint64_t flag = 77;

	(void)state;
	acl_ok(aclrtMemMapNoAccess(va, PIECE, 0, h, 0));
	acl_ok(aclrtMemGetAccess(va, &zero, &flag));
	sys_eq(flag, ACL_RT_MEM_ACCESS_FLAGS_NONE);
	acl_fails(aclrtMemcpy(host, 4096, va, 4096, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemset(va, 4096, 1, 4096), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtMemSetAccess(va, PIECE, d, 1));
	acl_ok(aclrtMemGetAccess(va + 4000, &zero, &flag));
	sys_eq(flag, ACL_RT_MEM_ACCESS_FLAGS_READ);
	acl_ok(aclrtMemcpy(host, 4096, va, 4096, ACL_MEMCPY_DEFAULT));
	acl_fails(aclrtMemcpy(va, 4096, host, 4096, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemset(va, 4096, 1, 4096), ACL_ERROR_RT_PARAM_INVALID);
	d[0].flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
	acl_ok(aclrtMemSetAccess(va, PIECE, d, 2));
	acl_ok(aclrtMemGetAccess(va, &one, &flag));
	sys_eq(flag, ACL_RT_MEM_ACCESS_FLAGS_READWRITE);
	acl_ok(aclrtMemset(va, 4096, 1, 4096));
	/* of another device: by peer access, or because it was given the right */
	acl_ok(aclrtMapMem(va + PIECE, PIECE, 0, far, 0));
	acl_ok(aclrtMemGetAccess(va + PIECE, &zero, &flag));
	sys_eq(flag, ACL_RT_MEM_ACCESS_FLAGS_NONE);
	acl_fails(aclrtMemcpy(va + PIECE, 4096, va, 4096, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtMemSetAccess(va + PIECE, PIECE, d, 1));
	acl_ok(aclrtMemcpy(va + PIECE, 4096, va, 4096, ACL_MEMCPY_DEFAULT));
	sys_is_byte("on the other device", va + PIECE, 4096, 1);
	/* both at once, and not a half */
	acl_ok(aclrtMemSetAccess(va, 2 * PIECE, d, 1));
	acl_fails(aclrtMemSetAccess(va, PIECE + 4096, d, 1), ACL_ERROR_RT_PARAM_INVALID);
	d[0].flags = (aclrtMemAccessFlags)2;
	acl_fails(aclrtMemSetAccess(va, PIECE, d, 1), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtUnmapMem(va));
	acl_fails(aclrtMemGetAccess(va, &zero, &flag), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtUnmapMem(va + PIECE));
	acl_ok(aclrtFreePhysical(h));
	acl_ok(aclrtFreePhysical(far));
	acl_ok(aclrtReleaseMemAddress(va));
}

static void host_memory(void **state)
{
	aclrtPhysicalMemProp p = prop_of(0);
	uint8_t *va = reserve(PIECE), *dev = NULL;
	aclrtDrvMemHandle h;
	aclrtPtrAttributes attr;
	aclrtStream s;

	(void)state;
	p.location.type = ACL_MEM_LOCATION_TYPE_HOST_NUMA;
	p.memAttr = ACL_DDR_MEM_P2P_HUGE;
	acl_ok(aclrtMallocPhysical(&h, PIECE, &p, 0));
	acl_ok(aclrtMapMem(va, PIECE, 0, h, 0));
	acl_ok(aclrtPointerGetAttributes(va, &attr));
	sys_eq(attr.location.type, ACL_MEM_LOCATION_TYPE_HOST);
	acl_ok(aclrtMalloc((void **)&dev, PIECE, ACL_MEM_MALLOC_HUGE_FIRST));
	acl_ok(aclrtCreateStream(&s));
	sys_fill(va, PIECE, 3);
	acl_ok(aclrtMemcpyAsync(dev, PIECE, va, PIECE, ACL_MEMCPY_HOST_TO_DEVICE, s));
	acl_ok(aclrtMemsetAsync(dev, PIECE, 0x44, 4096, s));
	acl_ok(aclrtMemcpyAsync(va, PIECE, dev, 4096, ACL_MEMCPY_DEVICE_TO_HOST, s));
	acl_ok(aclrtSynchronizeStream(s));
	sys_is_byte("came back", va, 4096, 0x44);
	/* host to host is not for a stream */
	acl_fails(aclrtMemcpyAsync(va, 64, va + 4096, 64, ACL_MEMCPY_DEFAULT, s), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtFree(dev));
	acl_ok(aclrtUnmapMem(va));
	acl_ok(aclrtFreePhysical(h));
	acl_ok(aclrtReleaseMemAddress(va));
}

static void addresses(void **state)
{
	void *p = NULL, *q = NULL, *far;

	(void)state;
	acl_ok(aclrtReserveMemAddress(&p, 3 * MIB, 0, NULL, 0));
	acl_ok(aclrtReleaseMemAddress(p));
	/* where it was, which is free now */
	acl_ok(aclrtReserveMemAddress(&q, 3 * MIB, 0, p, 1));
	sys_true(q == p, "%p, not %p", q, p);
	/* taken: elsewhere */
	acl_ok(aclrtReserveMemAddress(&p, 2 * MIB, 0, q, 1));
	sys_true(p != q, "%p twice", p);
	acl_ok(aclrtReleaseMemAddress(p));
	acl_ok(aclrtReleaseMemAddress(q));
	acl_ok(aclrtReserveMemAddress(&p, 2 * MIB, 64 * MIB, NULL, 1));
	sys_true(!((uintptr_t)p & (64 * MIB - 1)), "%p is not at 64 MiB", p);
	acl_ok(aclrtReleaseMemAddress(p));
	/* a place that is free for sure: where there was one just now */
	far = mmap(NULL, 2ul << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	sys_true(far != MAP_FAILED, "mmap");
	munmap(far, 2ul << 30);
	far = (void *)(((uintptr_t)far + (1ul << 30) - 1) & ~((1ul << 30) - 1));
	acl_ok(aclrtReserveMemAddressNoUCMemory(&p, 1ul << 30, 0, far, 1));
	sys_true(p == far, "%p, not %p", p, far);
	acl_fails(aclrtReserveMemAddressNoUCMemory(&q, 1ul << 30, 0, far, 1), ACL_ERROR_RT_MEMORY_ALLOCATION);
	acl_ok(aclrtReleaseMemAddress(p));
	acl_fails(aclrtReserveMemAddressNoUCMemory(&q, MIB, 0, far, 1), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtReserveMemAddressNoUCMemory(&q, 1ul << 30, 0, NULL, 1), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtReserveMemAddress(&p, 2 * MIB, 3, NULL, 1), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtReserveMemAddress(&p, 2 * MIB, 0, (void *)4096, 1), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtReserveMemAddress(&p, 2 * MIB, 0, NULL, 2), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtReserveMemAddress(&p, 0, 0, NULL, 1), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtReserveMemAddress(NULL, MIB, 0, NULL, 1), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtReserveMemAddress(&p, 1ul << 60, 0, NULL, 1), ACL_ERROR_RT_MEMORY_ALLOCATION);
}

static void refused(void **state)
{
	uint8_t *va = reserve(2 * PIECE);
	aclrtDrvMemHandle h = physical(0, PIECE), big = physical(0, 2 * PIECE), none = NULL;
	aclrtPhysicalMemProp p = prop_of(0);
	uint8_t *dev = NULL, stack[64];
	size_t n = 0;

	(void)state;
	acl_ok(aclrtMalloc((void **)&dev, PIECE, ACL_MEM_MALLOC_HUGE_FIRST));
	acl_fails(aclrtMapMem(va, PIECE, 4096, h, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMapMem(va, PIECE / 2, 0, h, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMapMem(va + 4096, PIECE, 0, h, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMapMem(va, PIECE, 0, h, 1), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMapMem(NULL, PIECE, 0, h, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMapMem(va, PIECE, 0, NULL, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMapMem(va, PIECE, 0, stack, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMapMem((void *)(uintptr_t)(1ul << 40), PIECE, 0, h, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMapMem(dev, PIECE, 0, h, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMapMem(va + PIECE, 2 * PIECE, 0, big, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtMapMem(va + PIECE, PIECE, 0, h, 0));
	va[PIECE] = 1;
	acl_fails(aclrtMapMem(va + PIECE, PIECE, 0, h, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMapMem(va, 2 * PIECE, 0, big, 0), ACL_ERROR_RT_PARAM_INVALID);
	/* what was there, there it still is */
	sys_eq(va[PIECE], 1);
	acl_fails(aclrtUnmapMem(va), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtUnmapMem(va + PIECE + 4096), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtUnmapMem(dev), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtUnmapMem(NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtFree(va + PIECE), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtReleaseMemAddress(dev), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtReleaseMemAddress(va + PIECE), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtReleaseMemAddress(NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemRetainAllocationHandle(dev, &none), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemRetainAllocationHandle(va, &none), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemRetainAllocationHandle(NULL, &none), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtFreePhysical(NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtFreePhysical(va), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMallocPhysical(&none, PIECE + 4096, &p, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMallocPhysical(&none, 0, &p, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMallocPhysical(NULL, PIECE, &p, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMallocPhysical(&none, PIECE, NULL, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMallocPhysical(&none, PIECE, &p, 4), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMallocPhysical(&none, 64ul << 30, &p, 0), ACL_ERROR_RT_MEMORY_ALLOCATION);
	p.location.id = 99;
	acl_fails(aclrtMallocPhysical(&none, PIECE, &p, 0), ACL_ERROR_RT_INVALID_DEVICEID);
	p.location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
	acl_fails(aclrtMallocPhysical(&none, PIECE, &p, 0), ACL_ERROR_RT_PARAM_INVALID);
	p = prop_of(0);
	p.handleType = ACL_MEM_HANDLE_TYPE_POSIX;
	acl_fails(aclrtMallocPhysical(&none, PIECE, &p, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	p = prop_of(0);
	acl_ok(aclrtMemGetAllocationGranularity(&p, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &n));
	sys_eq(n, PIECE);
	p.memAttr = ACL_HBM_MEM_HUGE1G;
	acl_ok(aclrtMemGetAllocationGranularity(&p, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &n));
	sys_eq(n, 1ul << 30);
	acl_fails(aclrtMemGetAllocationGranularity(&p, (aclrtMemGranularityOptions)5, &n), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemGetAllocationGranularity(&p, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, NULL),
		  ACL_ERROR_INVALID_PARAM);
	p.memAttr = (aclrtMemAttr)55;
	acl_fails(aclrtMemGetAllocationGranularity(&p, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &n),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtUnmapMem(va + PIECE));
	acl_ok(aclrtFreePhysical(h));
	acl_ok(aclrtFreePhysical(big));
	acl_ok(aclrtFree(dev));
	acl_ok(aclrtReleaseMemAddress(va));
}

/* What is left is given back by aclFinalize, and by a reset of the device. */
static void left_over(void **state)
{
	uint8_t *va = reserve(4 * PIECE), *more = reserve(PIECE);
	aclrtDrvMemHandle h = physical(0, PIECE), again, idle = physical(0, PIECE);
	uint64_t before = hbm_used();

	(void)state;
	(void)more;
	(void)idle;
	acl_ok(aclrtMapMem(va, PIECE, 0, h, 0));
	acl_ok(aclrtMapMem(va + PIECE, PIECE, 0, physical(1, PIECE), 0));
	acl_ok(aclrtMemRetainAllocationHandle(va, &again));
	acl_ok(aclrtFreePhysical(h));
	acl_ok(aclrtResetDevice(0));
	/* of the other device is all still there; the addresses are no device's */
	sys_true(hbm_used() < before, "nothing was freed");
	acl_ok(aclrtSetDevice(0));
	acl_fails(aclrtUnmapMem(va), ACL_ERROR_RT_PARAM_INVALID);
	va[PIECE] = 3;
	acl_ok(aclrtMapMem(va, PIECE, 0, physical(0, PIECE), 0));
	sys_eq(va[0], 0);
}

/* Everybody maps, works and unmaps, at addresses and with memory of its own. */
static void *mapper(void *arg)
{
	uint8_t seed = (uint8_t)(uintptr_t)arg, out[4096];
	int i, rounds = sys_slow() ? 15 : 60;
	uint8_t *va;
	aclrtDrvMemHandle h;

	acl_ok(aclrtSetDevice(0));
	va = reserve(2 * PIECE);
	for (i = 0; i < rounds; i++) {
		h = physical(0, PIECE);
		acl_ok(aclrtMapMem(va + (i & 1) * PIECE, PIECE, 0, h, 0));
		acl_ok(aclrtFreePhysical(h));
		acl_ok(aclrtMemset(va + (i & 1) * PIECE, PIECE, seed, 4096));
		acl_ok(aclrtMemcpy(out, 4096, va + (i & 1) * PIECE, 4096, ACL_MEMCPY_DEFAULT));
		sys_is_byte("its own", out, 4096, seed);
		acl_ok(aclrtUnmapMem(va + (i & 1) * PIECE));
	}
	acl_ok(aclrtReleaseMemAddress(va));
	return NULL;
}

static void threads(void **state)
{
	pthread_t t[4];
	uintptr_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		sys_true(!pthread_create(&t[i], NULL, mapper, (void *)(i + 1)), "pthread_create");
	for (i = 0; i < 4; i++)
		sys_true(!pthread_join(t[i], NULL), "pthread_join");
}

/* A stream waits for a word, and then the word goes: an error, and the next task runs. */
static void words(void **state)
{
	uint8_t *va = reserve(PIECE);
	uint64_t *freed = NULL;
	aclrtDrvMemHandle h = physical(0, PIECE);
	aclrtStream s;
	int i;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	for (i = 0; i < (sys_slow() ? 20 : 100); i++) {
		acl_ok(aclrtMapMem(va, PIECE, 0, h, 0));
		acl_ok(aclrtMemset(va, 4096, 0, 4096));
		acl_ok(aclrtValueWait(va + 64, 5, ACL_STREAM_WAIT_VALUE_EQ, s));
		sys_nap((unsigned int)i % 4);
		acl_ok(aclrtUnmapMem(va));
		acl_says(aclrtSynchronizeStream(s), ACL_ERROR_RT_SYS_DMA, "wait for the word");
		/* there again, and good */
		acl_ok(aclrtMapMem(va, PIECE, 0, h, 0));
		acl_ok(aclrtValueWait(va + 64, 5, ACL_STREAM_WAIT_VALUE_EQ, s));
		acl_ok(aclrtMemset(va + 64, 1, 5, 1));
		acl_ok(aclrtSynchronizeStream(s));
		acl_ok(aclrtUnmapMem(va));
	}
	/* whenever it looks: what was there is known as soon as it is there no more */
	for (i = 0; i < (sys_slow() ? 20 : 100); i++) {
		acl_ok(aclrtMalloc((void **)&freed, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
		acl_ok(aclrtMemset(freed, 4096, 0, 4096));
		acl_ok(aclrtValueWait(freed, 5, ACL_STREAM_WAIT_VALUE_EQ, s));
		sys_nap((unsigned int)i % 4);
		acl_ok(aclrtFree(freed));
		acl_says(aclrtSynchronizeStream(s), ACL_ERROR_RT_SYS_DMA, "was freed");
	}
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtFreePhysical(h));
	acl_ok(aclrtReleaseMemAddress(va));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		acl_test(across), acl_test(views), acl_test(deferred), acl_test(rights), acl_test(host_memory),
		acl_test(addresses), acl_test(refused), acl_test(left_over), acl_test(threads),
		acl_test(words),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
