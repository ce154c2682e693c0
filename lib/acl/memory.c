// SPDX-License-Identifier: MIT
/*
 * Device memory: allocated, freed, asked about.
 *
 * Each allocation is a buffer of lib/core, and its address the device pointer.
 * Sizes are rounded up to 32 bytes, as the real runtime's are, and what is copied
 * may reach to the end of that.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "check.h"
#include "share.h"

#define HUGE		(2ull << 20)
#define POLICY_BASE	0xffu
#define POLICY_EXTRA	(ACL_MEM_TYPE_LOW_BAND_WIDTH | ACL_MEM_TYPE_HIGH_BAND_WIDTH | \
			 ACL_MEM_ACCESS_USER_SPACE_READONLY)

/* What this process has of each device; atomic. */
static struct {
	u64 now, peak;
} usage[NPUACL_DEVICES];

void npuacl_memory_use(u32 device, u64 bytes)
{
	u64 now = __atomic_add_fetch(&usage[device].now, bytes, __ATOMIC_RELAXED);
	u64 peak = READ_ONCE(usage[device].peak);

	while (now > peak &&
	       !__atomic_compare_exchange_n(&usage[device].peak, &peak, now, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

/* ---- Allocation ----------------------------------------------------------------------- */

/* Pages are all alike here: this is for who asks what they would be. */
static u32 page_flags(u32 policy, u64 size)
{
	switch (policy & ~POLICY_EXTRA) {
	case ACL_MEM_MALLOC_HUGE_FIRST:
	case ACL_MEM_MALLOC_HUGE_FIRST_P2P:
		return size > HUGE / 2 ? NPUACL_PLACE_HUGE : 0;
	case ACL_MEM_MALLOC_HUGE_ONLY:
	case ACL_MEM_MALLOC_HUGE_ONLY_P2P:
		return NPUACL_PLACE_HUGE;
	case ACL_MEM_MALLOC_NORMAL_ONLY:
	case ACL_MEM_MALLOC_NORMAL_ONLY_P2P:
		return 0;
	case ACL_MEM_MALLOC_HUGE1G_ONLY:
	case ACL_MEM_MALLOC_HUGE1G_ONLY_P2P:
		return NPUACL_PLACE_HUGE1G;
	default:	/* documented: what is not a policy goes by the size */
		return size >= HUGE ? NPUACL_PLACE_HUGE : 0;
	}
}

static aclError no_memory(const char *what, const struct npuacl_device *dev, u64 size)
{
	struct npuemu_device_info info = { .size = sizeof(info) };
	char why[256];
	u64 free;

	snprintf(why, sizeof(why), "%s", npuemu_errmsg());
	if (npuemu_device_query(npuacl.board, dev->phys, &info))
		return npuacl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: %" PRIu64 " bytes on device %u: %s", what,
				   size, dev->id, why);
	free = info.hbm_used < info.hbm_bytes ? info.hbm_bytes - info.hbm_used : 0;
	return npuacl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
			   "%s: no %" PRIu64 " bytes on device %u: %" PRIu64 " of %" PRIu64 " are free (%s); free some, or choose a machine with more (NPUEMU_MACHINE)",
			   what, size, dev->id, free, info.hbm_bytes, why);
}

static aclError alloc(const char *what, struct npuacl_device *dev, u64 size, u32 flags, void **out)
{
	u64 room = (size + 31) & ~31ull;
	struct npuacl_range *r;
	int err;

	if (size > room)
		return npuacl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
				   "%s: %" PRIu64 " bytes are more than there are addresses", what, size);
	r = calloc(1, sizeof(*r));
	if (!r)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	err = npuemu_buf_alloc(npuacl.board, dev->phys, room, 0, &r->buf);
	if (err) {
		free(r);
		if (err == -ENOMEM || err == -ENOSPC)
			return no_memory(what, dev, size);
		return npuacl_fail_core(err, ACL_ERROR_RT_MEMORY_ALLOCATION, what);
	}
	r->base = (u64)(uintptr_t)npuemu_buf_ptr(r->buf);
	r->size = size;
	r->room = room;
	r->kind = NPUACL_DEVICE;
	r->device = dev->id;
	r->flags = flags;
	*out = (void *)(uintptr_t)r->base;
	err = npuacl_range_add(r);
	if (!err) {
		npuacl_memory_use(dev->id, room);
		return ACL_SUCCESS;
	}
	*out = NULL;
	npuemu_buf_free(r->buf);
	free(r);
	return npuacl_fail(err == -ENOMEM ? ACL_ERROR_BAD_ALLOC : ACL_ERROR_RT_INTERNAL_ERROR,
			   "%s: the new buffer cannot be noted (%s)", what, strerror(-err));
}

/* NULL, or a list of options; what is given in it. */
static aclError read_config(const char *what, const aclrtMallocConfig *cfg, struct npuacl_device **dev)
{
	size_t i;

	if (!cfg)
		return ACL_SUCCESS;
	if (cfg->numAttrs && !cfg->attrs)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the configuration has %zu options, but attrs is NULL",
				   what, cfg->numAttrs);
	for (i = 0; i < cfg->numAttrs; i++) {
		aclError ret;

		switch (cfg->attrs[i].attr) {
		case ACL_RT_MEM_ATTR_RSV:
		case ACL_RT_MEM_ATTR_MODULE_ID:
		case ACL_RT_MEM_ATTR_VA_FLAG:
			break;
		case ACL_RT_MEM_ATTR_DEVICE_ID:
			ret = npuacl_device((s32)cfg->attrs[i].value.deviceId, dev);
			if (ret)
				return ret;
			break;
		default:
			return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: option %zu: there is no option %d", what, i,
					   (int)cfg->attrs[i].attr);
		}
	}
	return ACL_SUCCESS;
}

static aclError device_malloc(const char *what, void **out, size_t size, u32 policy,
			      const aclrtMallocConfig *cfg)
{
	struct npuacl_device *dev;
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!out || !size)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what, out ? "size is 0" : "devPtr is NULL");
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	dev = ctx->dev;
	ret = read_config(what, cfg, &dev);
	if (ret)
		return ret;
	if ((policy & ~POLICY_EXTRA) > ACL_MEM_MALLOC_HUGE1G_ONLY_P2P)
		npuemu_log(NPUEMU_LOG_DEBUG, "%s: %#x is no policy: pages by size", what, policy);
	return alloc(what, dev, size, page_flags(policy, size), out);
}

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	return device_malloc("aclrtMalloc", devPtr, size, policy, NULL);
}

aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	return device_malloc("aclrtMallocAlign32", devPtr, size, policy, NULL);
}

aclError aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	return device_malloc("aclrtMallocCached", devPtr, size, policy, NULL);
}

aclError aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg)
{
	return device_malloc("aclrtMallocWithCfg", devPtr, size, policy, cfg);
}

aclError aclrtMallocForTaskScheduler(void **devPtr, size_t size, aclrtMemMallocPolicy policy,
				     aclrtMallocConfig *cfg)
{
	return device_malloc("aclrtMallocForTaskScheduler", devPtr, size, policy, cfg);
}

/* ---- Freeing ------------------------------------------------------------------------------ */

static int release(struct npuacl_range *r)
{
	int err;

	/* exported: who has the key no longer gets it */
	if (r->owner)
		npuacl_window_forget(r->buf);
	err = npuemu_buf_free(r->buf);
	if (err == -EBUSY)
		return err;
	npuacl_memory_use(r->device, -r->room);
	npuacl_range_gone(r);
	return err;
}

static aclError not_a_buffer(const char *what, u64 va)
{
	struct npuacl_place p;
	const char *hint = "";
	char text[192];

	NPUACL_CHECK(npuacl_check_no_buffer(what, va));
	npuacl_place_of(va, &p);
	switch (p.kind) {
	case NPUACL_DEVICE:
		hint = "; it takes the pointer that aclrtMalloc gave";
		break;
	case NPUACL_PINNED:
		hint = "; that is for aclrtFreeHost";
		break;
	case NPUACL_REGISTERED:
		hint = "; that is for aclrtHostUnregister";
		break;
	case NPUACL_MAPPED:
		hint = "; that is for aclrtUnmapMem";
		break;
	case NPUACL_IMPORTED:
		hint = "; that is for aclrtIpcMemClose";
		break;
	}
	return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %#" PRIx64 " is %s%s", what, va,
			   npuacl_explain(va, text, sizeof(text)), hint);
}

static aclError device_free(const char *what, void *ptr)
{
	u64 va = (u64)(uintptr_t)ptr;
	struct npuacl_range *r;
	int err;

	if (!ptr)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: devPtr is NULL", what);
	r = npuacl_range_take(va, NPUACL_BIT(NPUACL_DEVICE));
	if (!r)
		return not_a_buffer(what, va);
	NPUACL_CHECK(npuacl_check_freeing(what, r));
	err = release(r);
	if (err == -EBUSY && npuacl_range_add(r))
		free(r);
	return err ? npuacl_fail_core(err, ACL_ERROR_RT_MEMORY_FREE, what) : ACL_SUCCESS;
}

aclError aclrtFree(void *devPtr)
{
	return device_free("aclrtFree", devPtr);
}

aclError aclrtFreeWithDevSync(void *devPtr)
{
	struct npuacl_ctx *ctx;
	aclError ret, sync;

	if (!devPtr)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtFreeWithDevSync: devPtr is NULL");
	/* what cannot wait does not free; what the device has failed with is no reason to keep it */
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	sync = aclrtSynchronizeDevice();
	ret = device_free("aclrtFreeWithDevSync", devPtr);
	return ret ? ret : sync;
}

void npuacl_memory_release(s32 device)
{
	struct npuacl_range *r;
	u64 bytes = 0;
	u32 n = 0;

	npuacl_pools_release(device);
	npuacl_ipc_release(device);
	npuacl_event_cells_release(device);
	npuacl_vmm_release(device);
	for (;;) {
		r = npuacl_range_take_in(NPUACL_DEVICE, 0, ~0ull, device);
		if (!r)
			break;
		n++;
		bytes += r->size;
		if (release(r) == -EBUSY) {
			/* a segment of somebody's: gone with the board, at the latest */
			npuacl_memory_use(r->device, -r->room);
			npuacl_range_gone(r);
		}
	}
	if (n)
		npuemu_log(NPUEMU_LOG_INFO, "acl: %u buffers (%" PRIu64 " bytes) of device %d were freed with it", n,
			   bytes, device);
	if (device < 0) {
		npuacl_notify_kept_release(true);
		npuacl_export_release();
	}
}

void npuacl_memory_fork(void)
{
	npuacl_export_fork();
	npuacl_window_fork();
	npuacl_import_fork();
	npuacl_ipc_fork();
	npuacl_vmm_fork();
	npuacl_event_cells_fork();
	memset(usage, 0, sizeof(usage));
	npuacl_address_fork();
}

/* ---- Asked about ------------------------------------------------------------------------------ */

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total)
{
	struct npuemu_device_info info = { .size = sizeof(info) };
	struct npuacl_ctx *ctx;
	aclError ret;
	int err;

	if (!free || !total)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetMemInfo: %s is NULL", free ? "total" : "free");
	if ((u32)attr > ACL_MEM_P2P_HUGE1G)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetMemInfo: there is no kind of memory %d", (int)attr);
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	err = npuemu_device_query(npuacl.board, ctx->dev->phys, &info);
	if (err)
		return npuacl_fail_core(err, ACL_ERROR_RT_INTERNAL_ERROR, "aclrtGetMemInfo");
	*free = 0;
	*total = 0;
	switch (attr) {
	case ACL_DDR_MEM:
	case ACL_DDR_MEM_HUGE:
	case ACL_DDR_MEM_NORMAL:
	case ACL_DDR_MEM_P2P_HUGE:
	case ACL_DDR_MEM_P2P_NORMAL:
		break;	/* the machines have HBM only */
	default:	/* pages are all alike: whoever asks for some of them may have all */
		*total = info.hbm_bytes;
		*free = info.hbm_used < info.hbm_bytes ? info.hbm_bytes - info.hbm_used : 0;
		break;
	}
	return ACL_SUCCESS;
}

aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo *memUsageInfo, size_t inputNum,
			      size_t *outputNum)
{
	struct npuacl_device *dev;
	aclError ret;

	if (!memUsageInfo || !outputNum || !inputNum)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetMemUsageInfo: %s",
				   inputNum ? "an argument is NULL" : "inputNum is 0");
	ret = npuacl_device(deviceId, &dev);
	if (ret)
		return ret;
	/* one part: what this process allocated */
	memset(memUsageInfo, 0, sizeof(*memUsageInfo));
	snprintf(memUsageInfo->name, sizeof(memUsageInfo->name), "APP");
	memUsageInfo->curMemSize = READ_ONCE(usage[dev->id].now);
	memUsageInfo->memPeakSize = READ_ONCE(usage[dev->id].peak);
	*outputNum = 1;
	return ACL_SUCCESS;
}

static u32 page_size(u32 flags)
{
	return flags & NPUACL_PLACE_HUGE1G ? 1u << 30 : flags & NPUACL_PLACE_HUGE ? (u32)HUGE : 4096;
}

aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes)
{
	struct npuacl_place p;
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!ptr || !attributes)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtPointerGetAttributes: %s is NULL",
				   ptr ? "attributes" : "ptr");
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	npuacl_place_of((u64)(uintptr_t)ptr, &p);
	memset(attributes, 0, sizeof(*attributes));
	attributes->location.type = ACL_MEM_LOCATION_TYPE_HOST;
	if (npuacl_on_device(&p)) {
		attributes->location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
		attributes->location.id = p.device;
	} else if (p.kind == NPUACL_PAGEABLE) {
		attributes->location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
	}
	attributes->pageSize = page_size(p.flags);
	return ACL_SUCCESS;
}

aclError aclrtMemGetAddressRange(void *ptr, void **pbase, size_t *psize)
{
	struct npuacl_place p;
	char text[192];

	if (!ptr || (!pbase && !psize))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtMemGetAddressRange: %s",
				   ptr ? "pbase and psize are NULL: there is nothing to tell" : "ptr is NULL");
	npuacl_place_of((u64)(uintptr_t)ptr, &p);
	if (!npuacl_on_device(&p))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "aclrtMemGetAddressRange: %p is no device memory, but %s", ptr,
				   npuacl_explain((u64)(uintptr_t)ptr, text, sizeof(text)));
	if (pbase)
		*pbase = (void *)(uintptr_t)p.base;
	if (psize)
		*psize = p.size;
	return ACL_SUCCESS;
}

aclError aclrtCheckMemType(void **addrList, uint32_t size, uint32_t memType, uint32_t *checkResult,
			   uint32_t reserve)
{
	const u32 known = ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_DVPP | ACL_RT_MEM_TYPE_RSVD;
	struct npuacl_place p;
	u32 i, type, want;

	if (!addrList || !checkResult || !size)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtCheckMemType: %s",
				   size ? "an argument is NULL" : "size is 0");
	if (!memType || memType & ~known || reserve)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtCheckMemType: %s %#x",
				   reserve ? "reserve has to be 0, not" : "there is no memory type", reserve ? reserve : memType);
	/* from the 950 on, DVPP has no memory of its own */
	want = memType;
	if (want & ACL_RT_MEM_TYPE_DVPP && npuacl_is_open() && npuacl.info.generation >= 950)
		want |= ACL_RT_MEM_TYPE_DEV;
	*checkResult = 1;
	for (i = 0; i < size; i++) {
		u64 va = (u64)(uintptr_t)addrList[i];

		npuacl_place_of(va, &p);
		if (p.kind == NPUACL_MAPPED || npuacl_place_in(NPUACL_RESERVED, va, &p))
			type = ACL_RT_MEM_TYPE_RSVD;
		else
			type = npuacl_on_device(&p) ? ACL_RT_MEM_TYPE_DEV : 0;
		if (!(type & want))
			*checkResult = 0;
	}
	return ACL_SUCCESS;
}

/* Caches are coherent: there is nothing to do but check. */
static aclError cache_op(const char *what, void *ptr, size_t size)
{
	struct npuacl_side s;
	aclError ret;

	if (!ptr || !size)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what, ptr ? "size is 0" : "devPtr is NULL");
	ret = npuacl_side(what, "range", (u64)(uintptr_t)ptr, size, &s);
	if (ret)
		return ret;
	if (!npuacl_on_device(&s.at))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is no device memory", what, ptr);
	smp_mb(); /* the host's stores are seen, and it sees the device's */
	return ACL_SUCCESS;
}

aclError aclrtMemFlush(void *devPtr, size_t size)
{
	return cache_op("aclrtMemFlush", devPtr, size);
}

aclError aclrtMemInvalidate(void *devPtr, size_t size)
{
	return cache_op("aclrtMemInvalidate", devPtr, size);
}
