// SPDX-License-Identifier: MIT
/* Memory pools: order, reuse, limits, trimming, handles; allocators of streams. */
#include <acl/acl.h>
#include <acl/acl_rt_allocator.h>
#include <acl/acl_rt_memory_soma.h>
#include <string.h>

#include "acltest.h"
#include "sys.h"

#define MIB (1ull << 20)

static aclrtMemPool pool(size_t max)
{
	aclrtMemPoolProps props = {
		.allocType = ACL_MEM_ALLOCATION_TYPE_PINNED, .handleType = ACL_MEM_HANDLE_TYPE_NONE,
		.location = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE }, .maxSize = max,
	};
	aclrtMemPool p;

	acl_ok(aclrtMemPoolCreate(&p, &props));
	return p;
}

static uint64_t attr(aclrtMemPool p, aclrtMemPoolAttr which)
{
	uint64_t v = 0;

	acl_ok(aclrtMemPoolGetAttr(p, which, &v));
	return v;
}

/* A block that was freed behind a closed gate is not given out before the gate opens. */
static void in_order(void **state)
{
	aclrtMemPool p = pool(0);
	unsigned char got[4096];
	void *a, *b, *c;
	aclrtEvent gate;
	aclrtStream s;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtCreateEventWithFlag(&gate, ACL_EVENT_SYNC));
	acl_ok(aclrtMemPoolMallocAsync(&a, 4096, p, s));
	acl_ok(aclrtMemsetAsync(a, 4096, 1, 4096, s));
	acl_ok(aclrtStreamWaitEvent(s, gate));
	acl_ok(aclrtMemcpyAsync(got, 4096, a, 1, ACL_MEMCPY_DEVICE_TO_HOST, NULL));
	acl_ok(aclrtMemPoolFreeAsync(a, s));
	acl_fails(aclrtMemPoolFreeAsync(a, s), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtMemPoolMallocAsync(&b, 4096, p, s));
	sys_true(a != b, "it was given out while its stream had not come to the free");
	sys_eq(attr(p, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT), 8192);
	acl_ok(aclrtRecordEvent(gate, NULL));
	acl_ok(aclrtSynchronizeStream(s));
	sys_eq(attr(p, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT), 4096);
	acl_ok(aclrtMemPoolMallocAsync(&c, 4000, p, s));
	sys_true(a == c, "memory that is free was not used again");
	sys_eq(attr(p, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT), 8192);
	acl_ok(aclrtMemsetAsync(c, 4000, 7, 4000, s));
	acl_ok(aclrtMemcpyAsync(got, 4000, c, 4000, ACL_MEMCPY_DEVICE_TO_HOST, s));
	acl_ok(aclrtSynchronizeStream(s));
	sys_is_byte("the block", got, 4000, 7);
	acl_ok(aclrtMemPoolFreeAsync(b, s));
	acl_ok(aclrtMemPoolFreeAsync(c, s));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtMemPoolDestroy(p));
	acl_ok(aclrtDestroyEvent(gate));
	acl_ok(aclrtDestroyStream(s));
}

static void limits(void **state)
{
	aclrtMemPool p = pool(8 * MIB);
	size_t before, after, total;
	uint64_t zero = 0, five = 5;
	aclrtStream s;
	void *a, *b;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
	acl_ok(aclrtMemPoolMallocAsync(&a, 4 * MIB, p, s));
	acl_ok(aclrtMemPoolMallocAsync(&b, 3 * MIB, p, s));
	sys_eq(attr(p, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT), 8 * MIB);
	acl_fails(aclrtMemPoolMallocAsync(&b, 1, p, s), ACL_ERROR_RT_MEMORY_ALLOCATION);
	/* what is free gives way to what is asked for */
	acl_ok(aclrtMemPoolFreeAsync(a, s));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtMemPoolMallocAsync(&a, 512, p, s));
	acl_ok(aclrtMemPoolFreeAsync(a, s));
	acl_ok(aclrtMemPoolFreeAsync(b, s));
	acl_ok(aclrtSynchronizeStream(s));
	sys_eq(attr(p, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT), 0);
	sys_eq(attr(p, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH), 8 * MIB);
	acl_ok(aclrtMemPoolSetAttr(p, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &zero));
	sys_eq(attr(p, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH), 0);
	acl_fails(aclrtMemPoolSetAttr(p, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &five), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemPoolSetAttr(p, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT, &zero), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtMemPoolTrimTo(p, 0));
	sys_eq(attr(p, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT), 0);
	acl_ok(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
	sys_eq(after, before);
	acl_ok(aclrtMemPoolDestroy(p));
	acl_ok(aclrtDestroyStream(s));
}

/* Destroyed with memory out: that can be used and freed, and then all of it is gone. */
static void destroyed_first(void **state)
{
	aclrtMemPool p = pool(0);
	size_t before, after, total;
	unsigned char got[64];
	aclrtStream s;
	void *a;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
	acl_ok(aclrtMemPoolMallocAsync(&a, 64, p, s));
	acl_ok(aclrtMemPoolDestroy(p));
	acl_fails(aclrtMemPoolDestroy(p), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemPoolMallocAsync(&a, 64, p, s), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtMemsetAsync(a, 64, 3, 64, s));
	acl_ok(aclrtMemcpyAsync(got, 64, a, 64, ACL_MEMCPY_DEVICE_TO_HOST, s));
	sys_is_byte("memory of a pool that is gone", got, 64, 3);
	acl_ok(aclrtMemPoolFreeAsync(a, s));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
	sys_eq(after, before);
	acl_ok(aclrtDestroyStream(s));
}

static void wrong(void **state)
{
	aclrtMemPoolProps props = {
		.location = { .id = 99, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};
	aclrtMemPool p = pool(0), q;
	uint64_t v;
	void *a;

	(void)state;
	acl_fails(aclrtMemPoolCreate(NULL, &props), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemPoolCreate(&q, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemPoolCreate(&q, &props), ACL_ERROR_RT_INVALID_DEVICEID);
	props.location.type = ACL_MEM_LOCATION_TYPE_HOST;
	acl_fails(aclrtMemPoolCreate(&q, &props), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_fails(aclrtMemPoolMallocAsync(NULL, 64, p, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemPoolMallocAsync(&a, 0, p, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemPoolMallocAsync(&a, ~(size_t)0, p, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemPoolMallocAsync(&a, 64, NULL, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemPoolMallocAsync(&a, 64, &v, NULL), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemPoolFreeAsync(NULL, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemPoolFreeAsync(&v, NULL), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemPoolGetAttr(p, (aclrtMemPoolAttr)9, &v), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemPoolGetAttr(p, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, NULL), ACL_ERROR_INVALID_PARAM);
	/* left over: aclFinalize takes it */
	acl_ok(aclrtMemPoolMallocAsync(&a, 64, p, NULL));
}

static void *give(aclrtAllocator a, size_t n)
{
	(void)n;
	return a;
}

static void give_up(aclrtAllocator a, aclrtAllocatorBlock b)
{
	(void)a;
	(void)b;
}

static void *where(aclrtAllocatorBlock b)
{
	return b;
}

static void allocators(void **state)
{
	aclrtAllocatorDesc d = aclrtAllocatorCreateDesc(), got;
	aclrtAllocatorGetAddrFromBlockFunc g;
	aclrtAllocatorAllocAdviseFunc v;
	aclrtAllocatorAllocFunc a;
	aclrtAllocatorFreeFunc f;
	aclrtAllocator obj;
	aclrtStream s;

	(void)state;
	sys_true(d, "no description");
	acl_ok(aclrtCreateStream(&s));
	acl_fails(aclrtAllocatorRegister(s, d), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtAllocatorSetObjToDesc(d, &s));
	acl_ok(aclrtAllocatorSetAllocFuncToDesc(d, give));
	acl_ok(aclrtAllocatorSetFreeFuncToDesc(d, give_up));
	acl_fails(aclrtAllocatorSetFreeFuncToDesc(d, NULL), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtAllocatorSetAllocAdviseFuncToDesc(d, NULL));
	acl_ok(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(d, where));
	acl_fails(aclrtAllocatorGetByStream(s, &got, &obj, &a, &f, &v, &g), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtAllocatorRegister(s, d));
	acl_ok(aclrtAllocatorGetByStream(s, &got, &obj, &a, &f, &v, &g));
	sys_true(got == d && obj == &s && a == give && f == give_up && !v && g == where, "not what was registered");
	acl_fails(aclrtAllocatorGetByStream(s, NULL, &obj, &a, &f, &v, &g), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtAllocatorDestroyDesc(d));
	acl_fails(aclrtAllocatorDestroyDesc(d), ACL_ERROR_INVALID_PARAM);
	/* the stream keeps what it was told */
	acl_ok(aclrtAllocatorGetByStream(s, &got, &obj, &a, &f, &v, &g));
	acl_ok(aclrtAllocatorUnregister(s));
	acl_fails(aclrtAllocatorUnregister(s), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtDestroyStream(s));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		acl_test(in_order),
		acl_test(limits),
		acl_test(destroyed_first),
		acl_test(wrong),
		acl_test(allocators),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
