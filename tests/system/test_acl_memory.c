// SPDX-License-Identifier: MIT
/*
 * Memory of the ACL runtime: what is allocated, freed, registered and asked about,
 * with every wrong pointer there is; many buffers at once, and many threads.
 */
#include <acl/acl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "acltest.h"
#include "sys.h"

static void *device_memory(size_t bytes)
{
	void *p = NULL;

	acl_ok(aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	return p;
}

static void *host_memory(size_t bytes)
{
	void *p = NULL;

	acl_ok(aclrtMallocHost(&p, bytes));
	return p;
}

static void *pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sys_true(p != MAP_FAILED, "mmap of %zu bytes", bytes);
	return p;
}

static aclrtPtrAttributes attributes(const void *p)
{
	aclrtPtrAttributes a;

	memset(&a, 0xff, sizeof(a));
	acl_ok(aclrtPointerGetAttributes(p, &a));
	return a;
}

/* ---- Device memory -------------------------------------------------------------------- */

static void allocation(void **state)
{
	static const int policies[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x100, 0x1001, 0x100002, 12345, -1 };
	static const size_t sizes[] = { 1, 31, 32, 33, 4096, 4097, 65536, 2 << 20, (2 << 20) + 1 };
	unsigned char host[64], back[64], *p;
	aclrtMallocConfig cfg = { NULL, 0 };
	aclrtMallocAttribute at = { .attr = ACL_RT_MEM_ATTR_DEVICE_ID, .value.deviceId = 1 };
	size_t i, k, n;
	void *base;

	(void)state;
	for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
		for (k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
			n = sizes[k] < 64 ? sizes[k] : 64;
			acl_ok(aclrtMalloc((void **)&p, sizes[k], (aclrtMemMallocPolicy)policies[i]));
			sys_true(p && !((uintptr_t)p & 63), "%p is not aligned to 64", (void *)p);
			sys_fill(host, n, i + k);
			acl_ok(aclrtMemcpy(p + sizes[k] - n, n, host, n, ACL_MEMCPY_HOST_TO_DEVICE));
			acl_ok(aclrtMemcpy(back, n, p + sizes[k] - n, n, ACL_MEMCPY_DEVICE_TO_HOST));
			sys_same("the end of a buffer", back, host, n);
			base = NULL;
			n = 0;
			acl_ok(aclrtMemGetAddressRange(p + sizes[k] - 1, &base, &n));
			sys_true(base == p, "base %p, not %p", base, (void *)p);
			sys_eq(n, sizes[k]);
			acl_ok(aclrtFree(p));
		}
	acl_ok(aclrtMallocAlign32((void **)&p, 100, ACL_MEM_MALLOC_NORMAL_ONLY));
	acl_ok(aclrtFree(p));
	acl_ok(aclrtMallocCached((void **)&p, 100, ACL_MEM_MALLOC_HUGE_ONLY));
	acl_ok(aclrtMemFlush(p, 100));
	acl_ok(aclrtMemInvalidate(p, 100));
	acl_says(aclrtMemFlush(p, 4096), ACL_ERROR_RT_PARAM_INVALID, "too long");
	acl_fails(aclrtMemFlush(p, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemInvalidate(NULL, 100), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemInvalidate(host, 10), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtFreeWithDevSync(p));
	acl_ok(aclrtMallocForTaskScheduler((void **)&p, 100, ACL_MEM_MALLOC_HUGE_FIRST, NULL));
	acl_ok(aclrtFree(p));
	acl_ok(aclrtMallocWithCfg((void **)&p, 100, ACL_MEM_MALLOC_HUGE_FIRST, &cfg));
	acl_ok(aclrtFree(p));
	cfg.numAttrs = 1;
	acl_fails(aclrtMallocWithCfg((void **)&p, 100, ACL_MEM_MALLOC_HUGE_FIRST, &cfg), ACL_ERROR_INVALID_PARAM);
	cfg.attrs = &at;
	acl_ok(aclrtMallocWithCfg((void **)&p, 100, ACL_MEM_MALLOC_HUGE_FIRST, &cfg));
	sys_eq(attributes(p).location.id, 1);
	acl_ok(aclrtFree(p));
	at.value.deviceId = 77;
	acl_fails(aclrtMallocWithCfg((void **)&p, 100, ACL_MEM_MALLOC_HUGE_FIRST, &cfg), ACL_ERROR_RT_INVALID_DEVICEID);
	at.attr = (aclrtMallocAttrType)99;
	acl_fails(aclrtMallocWithCfg((void **)&p, 100, ACL_MEM_MALLOC_HUGE_FIRST, &cfg), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMalloc(NULL, 100, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMalloc((void **)&p, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMalloc((void **)&p, SIZE_MAX, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
	acl_fails(aclrtMalloc((void **)&p, SIZE_MAX / 2, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
}

static void runs_out(void **state)
{
	size_t free_before, total, now, left;
	void *p[64];
	int n = 0;

	(void)state;
	acl_ok(aclrtGetMemInfo(ACL_HBM_MEM, &free_before, &total));
	sys_true(free_before && free_before <= total, "%zu of %zu free", free_before, total);
	acl_says(aclrtMalloc(&p[0], total + 4096, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION, "free");
	while (n < 64 && !aclrtMalloc(&p[n], total / 32, ACL_MEM_MALLOC_HUGE_FIRST))
		n++;
	sys_eq(n, free_before / (total / 32));
	acl_fails(aclrtMalloc(&p[n], total / 32, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
	acl_ok(aclrtGetMemInfo(ACL_HBM_MEM, &now, &total));
	sys_eq(now, free_before - (size_t)n * (total / 32));
	acl_ok(aclrtFree(p[--n]));
	acl_ok(aclrtMalloc(&p[n++], total / 32, ACL_MEM_MALLOC_HUGE_FIRST));
	while (n)
		acl_ok(aclrtFree(p[--n]));
	acl_ok(aclrtGetMemInfo(ACL_HBM_MEM, &left, &total));
	sys_eq(left, free_before);
}

static void wrong_frees(void **state)
{
	unsigned char *d = device_memory(1000), *h = host_memory(1000), *r = pages(8192), stack[64];
	void *dev;

	(void)state;
	acl_ok(aclrtHostRegister(r, 8192, ACL_HOST_REGISTER_MAPPED, &dev));
	acl_fails(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtFreeHost(NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtFreeWithDevSync(NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtFreeHostWithDevSync(NULL), ACL_ERROR_INVALID_PARAM);
	acl_says(aclrtFree(d + 16), ACL_ERROR_RT_PARAM_INVALID, "16 bytes into the device buffer of 1000 bytes");
	acl_says(aclrtFree(h), ACL_ERROR_RT_PARAM_INVALID, "aclrtFreeHost");
	acl_says(aclrtFree(r), ACL_ERROR_RT_PARAM_INVALID, "aclrtHostUnregister");
	acl_says(aclrtFree(stack), ACL_ERROR_RT_PARAM_INVALID, "knows nothing");
	acl_fails(aclrtFree((void *)0x10), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtFree((void *)~0ul), ACL_ERROR_RT_PARAM_INVALID);
	acl_says(aclrtFreeHost(d), ACL_ERROR_RT_PARAM_INVALID, "device buffer");
	acl_says(aclrtFreeHost(h + 64), ACL_ERROR_RT_PARAM_INVALID, "64 bytes into the pinned host memory");
	acl_fails(aclrtFreeHost(stack), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtHostUnregister(d), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
	acl_fails(aclrtHostUnregister(h), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
	acl_fails(aclrtHostUnregister(r + 4096), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
	/* none of that freed anything */
	acl_ok(aclrtMemcpy(d, 1000, h, 1000, ACL_MEMCPY_DEFAULT));
	acl_ok(aclrtFree(d));
	acl_says(aclrtFree(d), ACL_ERROR_RT_PARAM_INVALID, "freed already");
	acl_ok(aclrtFreeHost(h));
	acl_says(aclrtFreeHost(h), ACL_ERROR_RT_PARAM_INVALID, "freed already");
	acl_ok(aclrtHostUnregister(r));
	acl_fails(aclrtHostUnregister(r), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
	munmap(r, 8192);
}

/* ---- Host memory ------------------------------------------------------------------------- */

/* Blocks of all sizes hold what was written, whatever is freed around them. */
static void pinned(void **state)
{
	enum { N = 300 };
	struct { unsigned char *p; size_t n; uint64_t seed; } b[N] = { 0 };
	uint64_t rnd = 1;
	aclrtMallocAttribute at = { .attr = ACL_RT_MEM_ATTR_VA_FLAG, .value.vaFlag = 1 };
	aclrtMallocConfig cfg = { &at, 1 };
	void *p, *dev;
	int i, k;

	(void)state;
	for (k = 0; k < (sys_slow() ? 600 : 3000); k++) {
		i = (int)(sys_rand(&rnd) % N);
		if (b[i].p) {
			sys_is_filled("a pinned block", b[i].p, b[i].n, b[i].seed);
			acl_ok(aclrtFreeHost(b[i].p));
			b[i].p = NULL;
			continue;
		}
		b[i].n = 1 + (size_t)(sys_rand(&rnd) % (1u << sys_rand(&rnd) % 18));
		b[i].seed = rnd;
		b[i].p = host_memory(b[i].n);
		sys_true(!((uintptr_t)b[i].p & 63), "%p is not aligned to 64", (void *)b[i].p);
		sys_fill(b[i].p, b[i].n, b[i].seed);
	}
	for (i = 0; i < N; i++)
		if (b[i].p) {
			sys_is_filled("a pinned block", b[i].p, b[i].n, b[i].seed);
			acl_ok(aclrtFreeHost(b[i].p));
		}
	p = host_memory((5 << 20) + 3);
	sys_true(!((uintptr_t)p & ((2 << 20) - 1)), "%p is not aligned to 2 MiB", p);
	memset(p, 1, (5 << 20) + 3);
	acl_ok(aclrtFreeHostWithDevSync(p));
	acl_fails(aclrtMallocHost(NULL, 1), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMallocHost(&p, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMallocHost(&p, SIZE_MAX), ACL_ERROR_RT_MEMORY_ALLOCATION);
	acl_fails(aclrtMallocHost(&p, SIZE_MAX >> 17), ACL_ERROR_RT_MEMORY_ALLOCATION);
	acl_ok(aclrtMallocHostWithCfg(&p, 100, &cfg));
	acl_ok(aclrtHostGetDevicePointer(p, &dev, 0));
	sys_true(dev == p, "%p is %p to the device", p, dev);
	acl_ok(aclrtFreeHost(p));
	acl_ok(aclrtMallocHostWithCfg(&p, 100, NULL));
	acl_fails(aclrtHostGetDevicePointer(p, &dev, 0), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
	acl_ok(aclrtFreeHost(p));
	at.value.vaFlag = 2;
	acl_fails(aclrtMallocHostWithCfg(&p, 100, &cfg), ACL_ERROR_INVALID_PARAM);
	cfg.attrs = NULL;
	acl_fails(aclrtMallocHostWithCfg(&p, 100, &cfg), ACL_ERROR_INVALID_PARAM);
}

static void registered(void **state)
{
	unsigned char *r = pages(1 << 20), *h = host_memory(1 << 20), *d = device_memory(8192), *hole = pages(8192);
	void *dev = NULL;

	(void)state;
	munmap(hole + 4096, 4096);
	acl_ok(aclrtHostRegister(r + 4096, 8192, ACL_HOST_REGISTER_MAPPED, &dev));
	sys_true(dev == r + 4096, "device pointer %p", dev);
	sys_eq(attributes(r + 4096).location.type, ACL_MEM_LOCATION_TYPE_HOST);
	sys_eq(attributes(r).location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	sys_eq(attributes(r + 12288).location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	acl_ok(aclrtHostGetDevicePointer(r + 5000, &dev, 0));
	sys_true(dev == r + 5000, "device pointer %p", dev);
	acl_fails(aclrtHostGetDevicePointer(r, &dev, 0), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
	acl_fails(aclrtHostGetDevicePointer(r + 4096, &dev, 1), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtHostGetDevicePointer(NULL, &dev, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtHostGetDevicePointer(r + 4096, NULL, 0), ACL_ERROR_INVALID_PARAM);
	/* all of it, its end, its start, more than it */
	acl_fails(aclrtHostRegister(r + 4096, 8192, ACL_HOST_REGISTER_MAPPED, &dev),
	      ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	acl_fails(aclrtHostRegister(r + 8192, 8192, ACL_HOST_REGISTER_MAPPED, &dev),
	      ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	acl_fails(aclrtHostRegister(r, 8192, ACL_HOST_REGISTER_MAPPED, &dev), ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	acl_fails(aclrtHostRegisterV2(r, 1 << 20, ACL_HOST_REG_PINNED), ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	acl_ok(aclrtHostRegisterV2(r + 12288, 100, ACL_HOST_REG_PINNED));
	acl_fails(aclrtHostGetDevicePointer(r + 12288, &dev, 0), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
	acl_ok(aclrtHostUnregister(r + 12288));
	acl_ok(aclrtHostUnregister(r + 4096));
	acl_ok(aclrtHostRegisterV2(r, 1 << 20, ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED));
	acl_ok(aclrtHostGetDevicePointer(r + (1 << 20) - 1, &dev, 0));
	acl_ok(aclrtHostUnregister(r));
	acl_fails(aclrtHostRegister(r + 64, 8192, ACL_HOST_REGISTER_MAPPED, &dev), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtHostRegister(r, 0, ACL_HOST_REGISTER_MAPPED, &dev), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtHostRegister(NULL, 4096, ACL_HOST_REGISTER_MAPPED, &dev), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtHostRegister(r, 4096, ACL_HOST_REGISTER_MAPPED, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtHostRegister(r, ~0ull, ACL_HOST_REGISTER_MAPPED, &dev), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtHostRegister(r, 4096, (aclrtHostRegisterType)3, &dev), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtHostRegister(r, 4096, ACL_HOST_REGISTER_READONLY, &dev), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_fails(aclrtHostRegisterV2(r, 4096, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtHostRegisterV2(r, 4096, 1), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtHostRegisterV2(r, 4096, ACL_HOST_REG_IOMEMORY), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_fails(aclrtHostRegister(d, 4096, ACL_HOST_REGISTER_MAPPED, &dev), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtHostRegister(hole, 8192, ACL_HOST_REGISTER_MAPPED, &dev), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtHostRegister(hole, 4096, ACL_HOST_REGISTER_MAPPED, &dev));
	acl_ok(aclrtHostUnregister(hole));
	acl_fails(aclrtHostUnregister(NULL), ACL_ERROR_INVALID_PARAM);
	/* a pinned block, and a part of one */
	acl_ok(aclrtHostRegister(h, 1 << 20, ACL_HOST_REGISTER_MAPPED, &dev));
	acl_fails(aclrtHostRegister(h + 4096, 4096, ACL_HOST_REGISTER_MAPPED, &dev),
	      ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	acl_ok(aclrtMemcpy(d, 8192, h, 8192, ACL_MEMCPY_DEFAULT));
	acl_ok(aclrtHostUnregister(h));
	acl_fails(aclrtHostRegister(h, 2 << 20, ACL_HOST_REGISTER_MAPPED, &dev), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtHostRegister(h + 4096, 4096, ACL_HOST_REGISTER_MAPPED, &dev));
	acl_ok(aclrtFreeHost(h));	/* with the registration in it */
	acl_fails(aclrtHostUnregister(h + 4096), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
	acl_ok(aclrtFree(d));
	munmap(r, 1 << 20);
	munmap(hole, 4096);
}

/* ---- Asked about ----------------------------------------------------------------------------- */

static void asked(void **state)
{
	unsigned char *d = device_memory(3 << 20), *h = host_memory(100), stack[16];
	aclrtHostMemMapCapability can;
	aclrtMemUsageInfo use[4];
	aclrtPtrAttributes a;
	uint64_t before;
	size_t free, total, n;
	void *list[3], *base;
	uint32_t yes;
	int i;

	(void)state;
	a = attributes(d + (3 << 20) - 1);
	sys_eq(a.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
	sys_eq(a.location.id, 0);
	sys_eq(a.pageSize, 2 << 20);
	sys_eq(attributes(h + 99).location.type, ACL_MEM_LOCATION_TYPE_HOST);
	a = attributes(stack);
	sys_eq(a.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	sys_eq(a.pageSize, 4096);
	acl_fails(aclrtPointerGetAttributes(NULL, &a), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtPointerGetAttributes(d, NULL), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtMemGetAddressRange(d + 7, NULL, &n));
	sys_eq(n, 3 << 20);
	acl_ok(aclrtMemGetAddressRange(d + 7, &base, NULL));
	sys_true(base == d, "base %p, not %p", base, (void *)d);
	acl_fails(aclrtMemGetAddressRange(d, NULL, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemGetAddressRange(NULL, &base, &n), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemGetAddressRange(stack, &base, &n), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemGetAddressRange(d + (3 << 20), &base, &n), ACL_ERROR_RT_PARAM_INVALID);

	list[0] = d;
	list[1] = d + 100;
	list[2] = h;
	acl_ok(aclrtCheckMemType(list, 2, ACL_RT_MEM_TYPE_DEV, &yes, 0));
	sys_eq(yes, 1);
	acl_ok(aclrtCheckMemType(list, 3, ACL_RT_MEM_TYPE_DEV, &yes, 0));
	sys_eq(yes, 0);
	acl_ok(aclrtCheckMemType(list, 2, ACL_RT_MEM_TYPE_RSVD, &yes, 0));
	sys_eq(yes, 0);
	acl_ok(aclrtCheckMemType(list, 2, ACL_RT_MEM_TYPE_RSVD | ACL_RT_MEM_TYPE_DEV, &yes, 0));
	sys_eq(yes, 1);
	acl_fails(aclrtCheckMemType(NULL, 2, ACL_RT_MEM_TYPE_DEV, &yes, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtCheckMemType(list, 0, ACL_RT_MEM_TYPE_DEV, &yes, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtCheckMemType(list, 2, 0, &yes, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtCheckMemType(list, 2, 1, &yes, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtCheckMemType(list, 2, ACL_RT_MEM_TYPE_DEV, NULL, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtCheckMemType(list, 2, ACL_RT_MEM_TYPE_DEV, &yes, 1), ACL_ERROR_INVALID_PARAM);

	for (i = ACL_DDR_MEM; i <= ACL_MEM_P2P_HUGE1G; i++) {
		bool ddr = i == ACL_DDR_MEM || i == ACL_DDR_MEM_HUGE || i == ACL_DDR_MEM_NORMAL ||
			   i == ACL_DDR_MEM_P2P_HUGE || i == ACL_DDR_MEM_P2P_NORMAL;

		acl_ok(aclrtGetMemInfo((aclrtMemAttr)i, &free, &total));
		sys_true(ddr ? !free && !total : free && free < total, "kind %d: %zu of %zu", i, free, total);
	}
	acl_fails(aclrtGetMemInfo((aclrtMemAttr)18, &free, &total), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetMemInfo((aclrtMemAttr)-1, &free, &total), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetMemInfo(ACL_HBM_MEM, NULL, &total), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetMemInfo(ACL_HBM_MEM, &free, NULL), ACL_ERROR_INVALID_PARAM);

	acl_ok(aclrtGetMemUsageInfo(0, use, 4, &n));
	sys_eq(n, 1);
	sys_eq(use[0].curMemSize, 3 << 20);
	before = use[0].memPeakSize;
	sys_true(before >= 3 << 20, "peak %llu", (unsigned long long)before);
	acl_ok(aclrtFree(d));
	acl_ok(aclrtGetMemUsageInfo(0, use, 1, &n));
	sys_eq(use[0].curMemSize, 0);
	sys_eq(use[0].memPeakSize, before);
	acl_fails(aclrtGetMemUsageInfo(0, NULL, 1, &n), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetMemUsageInfo(0, use, 0, &n), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetMemUsageInfo(0, use, 1, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetMemUsageInfo(99, use, 1, &n), ACL_ERROR_RT_INVALID_DEVICEID);

	acl_ok(aclrtHostMemMapCapabilities(0, ACL_RT_HAC_TYPE_SDMA, &can));
	sys_eq(can, ACL_RT_HOST_MEM_MAP_SUPPORTED);
	acl_ok(aclrtHostMemMapCapabilities(0, ACL_RT_HAC_TYPE_DVPP, &can));
	sys_eq(can, ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED);
	acl_fails(aclrtHostMemMapCapabilities(0, (aclrtHacType)10, &can), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtHostMemMapCapabilities(0, ACL_RT_HAC_TYPE_SDMA, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtHostMemMapCapabilities(~0u, ACL_RT_HAC_TYPE_SDMA, &can), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_ok(aclrtFreeHost(h));
}

static void *without_device(void *arg)
{
	aclrtPtrAttributes a;
	size_t n, m;
	void *p;

	acl_fails(aclrtMalloc(&p, 100, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL);
	acl_fails(aclrtMallocHost(&p, 100), ACL_ERROR_RT_CONTEXT_NULL);
	acl_fails(aclrtGetMemInfo(ACL_HBM_MEM, &n, &m), ACL_ERROR_RT_CONTEXT_NULL);
	acl_fails(aclrtPointerGetAttributes(arg, &a), ACL_ERROR_RT_CONTEXT_NULL);
	acl_fails(aclrtMemset(arg, 64, 0, 64), ACL_ERROR_RT_CONTEXT_NULL);
	acl_fails(aclrtMemcpy(arg, 64, &n, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_CONTEXT_NULL);
	/* what is freed says itself where it is */
	acl_ok(aclrtFree(arg));
	return NULL;
}

static void no_device(void **state)
{
	void *p = device_memory(64);
	pthread_t t;

	(void)state;
	sys_true(!pthread_create(&t, NULL, without_device, p), "a thread");
	pthread_join(t, NULL);
	acl_fails(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
}

/* ---- Many ------------------------------------------------------------------------------------- */

/* Each address leads to its buffer, while others come and go in any order. */
static void many_buffers(void **state)
{
	const unsigned int n = sys_slow() ? 2000 : 10000;
	struct { unsigned char *p; size_t bytes; } *b = calloc(n, sizeof(*b));
	uint64_t rnd = 7;
	unsigned int i, k;
	size_t bytes;
	void *base;

	(void)state;
	for (k = 0; k < 4 * n; k++) {
		i = k < n ? k : (unsigned int)(sys_rand(&rnd) % n);
		if (k >= n) {
			acl_ok(aclrtFree(b[i].p));
			acl_fails(aclrtMemGetAddressRange(b[i].p, &base, &bytes), ACL_ERROR_RT_PARAM_INVALID);
		}
		b[i].bytes = 1 + (size_t)(sys_rand(&rnd) % 12000);
		b[i].p = device_memory(b[i].bytes);
		i = k < n ? (unsigned int)(sys_rand(&rnd) % (k + 1)) : (unsigned int)(sys_rand(&rnd) % n);
		acl_ok(aclrtMemGetAddressRange(b[i].p + sys_rand(&rnd) % b[i].bytes, &base, &bytes));
		sys_true(base == b[i].p && bytes == b[i].bytes, "%zu at %p, not %zu at %p", bytes, base, b[i].bytes,
			 (void *)b[i].p);
	}
	for (i = 0; i < n; i++)
		acl_ok(aclrtFree(b[i].p));
	free(b);
}

struct churn {
	int device;
	uint64_t seed;
	unsigned char *shared;
};

static void *churn(void *arg)
{
	struct churn *c = arg;
	unsigned char *p[8] = { NULL }, byte;
	size_t n[8], bytes;
	uint64_t rnd = c->seed;
	void *base;
	int i, k;

	acl_ok(aclrtSetDevice(c->device));
	for (k = 0; k < (sys_slow() ? 200 : 2000); k++) {
		i = (int)(sys_rand(&rnd) % 8);
		if (p[i]) {
			acl_ok(aclrtMemGetAddressRange(p[i] + n[i] - 1, &base, &bytes));
			sys_true(base == p[i] && bytes == n[i], "%zu at %p, not %zu at %p", bytes, base, n[i], (void *)p[i]);
			acl_ok(aclrtMemcpy(&byte, 1, p[i] + n[i] - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
			sys_eq(byte, (unsigned char)(c->seed + (uint64_t)i));
			acl_ok(aclrtFree(p[i]));
			p[i] = NULL;
		} else {
			n[i] = 1 + (size_t)(sys_rand(&rnd) % 100000);
			p[i] = device_memory(n[i]);
			sys_eq(attributes(p[i]).location.id, c->device);
			acl_ok(aclrtMemset(p[i], n[i], (int)(unsigned char)(c->seed + (uint64_t)i), n[i]));
		}
		acl_ok(aclrtMemGetAddressRange(c->shared + 50, &base, &bytes));
		sys_true(base == c->shared, "base %p, not %p", base, (void *)c->shared);
		if (k % 16 == 0) {
			base = host_memory(1 + (size_t)(sys_rand(&rnd) % 5000));
			acl_ok(aclrtFreeHost(base));
		}
	}
	for (i = 0; i < 8; i++)
		if (p[i])
			acl_ok(aclrtFree(p[i]));
	return NULL;
}

static void threads(void **state)
{
	struct churn c[4];
	pthread_t t[4];
	int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		c[i] = (struct churn){ i % 2, (uint64_t)i * 31 + 5, i ? c[0].shared : device_memory(100) };
		sys_true(!pthread_create(&t[i], NULL, churn, &c[i]), "a thread");
	}
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	acl_ok(aclrtFree(c[0].shared));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		acl_test(allocation),
		acl_test(runs_out),
		acl_test(wrong_frees),
		acl_test(pinned),
		acl_test(registered),
		acl_test(asked),
		acl_test(no_device),
		acl_test(many_buffers),
		acl_test(threads),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
