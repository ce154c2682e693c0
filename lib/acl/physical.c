// SPDX-License-Identifier: MIT
/*
 * Physical memory: allocated without an address, and given back when neither a handle
 * nor a mapping is left.  Memory of the host is taken from the device's as well, which
 * is what all processes can reach; only those who ask are told apart.
 */
#include <inttypes.h>
#include "share.h"

#define ATTR_BIT(a)	(1u << (a))
#define ATTRS_1G	(ATTR_BIT(ACL_HBM_MEM_HUGE1G) | ATTR_BIT(ACL_HBM_MEM_P2P_HUGE1G) | \
			 ATTR_BIT(ACL_MEM_HUGE1G) | ATTR_BIT(ACL_MEM_P2P_HUGE1G))
#define ATTRS_NORMAL	(ATTR_BIT(ACL_DDR_MEM_NORMAL) | ATTR_BIT(ACL_HBM_MEM_NORMAL) | \
			 ATTR_BIT(ACL_DDR_MEM_P2P_NORMAL) | ATTR_BIT(ACL_HBM_MEM_P2P_NORMAL) | \
			 ATTR_BIT(ACL_MEM_NORMAL) | ATTR_BIT(ACL_MEM_P2P_NORMAL))

struct npuemu_slab npuacl_physicals = {
	.what = "physical memory", .size = NPUEMU_SLAB_SIZE(struct npuacl_physical), .max = 1u << 17,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static struct npuacl_physical *all;	/* also those that only mappings hold; npuacl_vmm.lock */

u64 npuacl_physical_page(aclrtMemAttr attr)
{
	if (ATTR_BIT(attr) & ATTRS_1G)
		return 1ull << 30;
	return ATTR_BIT(attr) & ATTRS_NORMAL ? 4096 : NPUACL_PAGE_HUGE;
}

bool npuacl_physical_is_host(const struct npuacl_physical *p)
{
	return p->prop.location.type != ACL_MEM_LOCATION_TYPE_DEVICE;
}

u32 npuacl_physical_flags(const struct npuacl_physical *p)
{
	u64 page = npuacl_physical_page(p->prop.memAttr);
	u32 flags = page > NPUACL_PAGE_HUGE ? NPUACL_PLACE_HUGE1G : page == NPUACL_PAGE_HUGE ? NPUACL_PLACE_HUGE : 0;

	return flags | (npuacl_physical_is_host(p) ? NPUACL_PLACE_HOST : 0);
}

/* ---- Life ------------------------------------------------------------------------------ */

aclError npuacl_physical(const char *what, aclrtDrvMemHandle handle, struct npuacl_physical **out)
{
	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the handle is NULL", what);
	if (!npuemu_slab_alive(&npuacl_physicals, handle))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: %p is not a handle of physical memory, or was given back (aclrtFreePhysical)", what,
				   (void *)handle);
	*out = (struct npuacl_physical *)handle;
	return ACL_SUCCESS;
}

struct npuacl_physical *npuacl_physical_new(const char *what)
{
	struct npuacl_physical *p = npuemu_slab_alloc(&npuacl_physicals);

	if (!p) {
		npuacl_fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: this process has %u pieces of physical memory, the most it can",
			    what, npuacl_physicals.max);
		return NULL;
	}
	p->refs = 1;
	p->next = all;
	all = p;
	return p;
}

static int free_memory(struct npuacl_physical *p)
{
	struct npuacl_physical *of = p->of;

	if (p->import) {
		npuacl_import_put(p->import);
		return 0;
	}
	if (of) {
		of->uses--;
		return npuacl_physical_gone(of);
	}
	if (!p->buf)
		return 0;
	npuacl_export_drop(p->key.id);
	if (p->offered)
		npuacl_window_forget(p->buf);
	npuacl_memory_use(p->device, -p->size);
	return npuemu_buf_free(p->buf);
}

int npuacl_physical_gone(struct npuacl_physical *p)
{
	struct npuacl_physical **at = &all;
	int err;

	if (p->refs || p->uses)
		return 0;
	npuemu_slab_retire(&npuacl_physicals, p);
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	err = free_memory(p);
	npuemu_slab_free(&npuacl_physicals, p);
	return err;
}

void npuacl_physicals_release(s32 device)
{
	struct npuacl_physical *p;
	bool more = true;

	for (p = all; p; p = p->next)
		if (device < 0 || p->device == (u32)device)
			p->refs = 0;
	/* imports first: what they are of is then free as well */
	while (more) {
		more = false;
		for (p = all; p && !more; p = p->next) {
			more = !p->refs && !p->uses;
			if (more)
				npuacl_physical_gone(p);
		}
	}
}

struct npuacl_physical *npuacl_physical_exported(u64 id)
{
	struct npuacl_physical *p = all;

	while (p && p->key.id != id)
		p = p->next;
	return p;
}

void npuacl_physicals_fork(void)
{
	all = NULL;
	npuemu_slab_fork(&npuacl_physicals);
}

/* ---- What programs call ------------------------------------------------------------------ */

static aclError check_prop(const char *what, const aclrtPhysicalMemProp *prop)
{
	if (!prop)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: prop is NULL", what);
	if (prop->handleType != ACL_MEM_HANDLE_TYPE_NONE)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "%s: handleType %d is not supported: memory is shared by numbers and bytes, not by descriptors (ACL_MEM_HANDLE_TYPE_NONE)",
				   what, (int)prop->handleType);
	if (prop->allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no allocationType %d", what,
				   (int)prop->allocationType);
	if ((u32)prop->memAttr > ACL_MEM_P2P_HUGE1G)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no memAttr %d", what, (int)prop->memAttr);
	return ACL_SUCCESS;
}

/* The device whose memory it is: of host memory, the current one. */
static aclError device_of(const char *what, const aclrtMemLocation *loc, struct npuacl_device **dev)
{
	struct npuacl_ctx *ctx;
	aclError ret = npuacl_current(&ctx);

	if (ret)
		return ret;
	*dev = ctx->dev;
	switch (loc->type) {
	case ACL_MEM_LOCATION_TYPE_DEVICE:
		return npuacl_device((s32)loc->id, dev);
	case ACL_MEM_LOCATION_TYPE_HOST:
	case ACL_MEM_LOCATION_TYPE_HOST_NUMA:
		return ACL_SUCCESS;
	default:
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no memory at a location of type %d; host (0), device (1) or NUMA node (4)",
				   what, (int)loc->type);
	}
}

static aclError physical_alloc(const char *what, size_t size, const aclrtPhysicalMemProp *prop,
			       struct npuacl_device *dev, struct npuacl_physical **out)
{
	struct npuacl_physical *p = npuacl_physical_new(what);
	int err;

	if (!p)
		return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
	err = npuemu_buf_alloc(npuacl.board, dev->phys, size, 0, &p->buf);
	if (err) {
		p->refs = 0;
		p->buf = NULL;
		npuacl_physical_gone(p);
		if (err == -ENOMEM || err == -ENOSPC)
			return npuacl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
					   "%s: no %zu bytes on device %u (%s); free some, or choose a machine with more (NPUEMU_MACHINE)",
					   what, size, dev->id, npuemu_errmsg());
		return npuacl_fail_core(err, ACL_ERROR_RT_MEMORY_ALLOCATION, what);
	}
	p->size = size;
	p->prop = *prop;
	p->device = dev->id;
	p->user = dev->id;
	npuacl_memory_use(dev->id, size);
	npuemu_slab_publish(&npuacl_physicals, p);
	*out = p;
	return ACL_SUCCESS;
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop,
			     uint64_t flags)
{
	static const char what[] = "aclrtMallocPhysical";
	struct npuacl_physical *p = NULL;
	struct npuacl_device *dev;
	aclError ret;
	u64 page;

	if (!handle || !size)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what, handle ? "size is 0" : "handle is NULL");
	ret = check_prop(what, prop);
	if (ret)
		return ret;
	if (flags)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flags are %#" PRIx64 ", but there are none: use 0", what,
				   flags);
	page = npuacl_physical_page(prop->memAttr);
	if (size % page)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: size (%zu) is not a multiple of %" PRIu64 " (aclrtMemGetAllocationGranularity)", what, size,
				   page);
	ret = device_of(what, &prop->location, &dev);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_vmm.lock);
	ret = physical_alloc(what, size, prop, dev, &p);
	pthread_mutex_unlock(&npuacl_vmm.lock);
	if (!ret)
		*handle = (aclrtDrvMemHandle)p;
	return ret;
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle)
{
	static const char what[] = "aclrtFreePhysical";
	struct npuacl_physical *p;
	aclError ret;
	int err = 0;

	pthread_mutex_lock(&npuacl_vmm.lock);
	ret = npuacl_physical(what, handle, &p);
	if (!ret && !--p->refs) {
		/* mapped, it has no handle until somebody asks for one again */
		npuemu_slab_retire(&npuacl_physicals, p);
		err = npuacl_physical_gone(p);
	}
	pthread_mutex_unlock(&npuacl_vmm.lock);
	return err ? npuacl_fail_core(err, ACL_ERROR_RT_MEMORY_FREE, what) : ret;
}

aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle, aclrtPhysicalMemProp *prop)
{
	static const char what[] = "aclrtMemGetAllocationPropertiesFromHandle";
	struct npuacl_physical *p;
	aclError ret;

	if (!prop)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: prop is NULL", what);
	pthread_mutex_lock(&npuacl_vmm.lock);
	ret = npuacl_physical(what, handle, &p);
	if (!ret)
		*prop = p->prop;
	pthread_mutex_unlock(&npuacl_vmm.lock);
	return ret;
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, aclrtMemGranularityOptions option,
					  size_t *granularity)
{
	static const char what[] = "aclrtMemGetAllocationGranularity";
	struct npuacl_device *dev;
	aclError ret = check_prop(what, prop);

	if (ret)
		return ret;
	if (!granularity)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: granularity is NULL", what);
	if (option != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM && option != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no option %d; MINIMUM (0) or RECOMMENDED (1)", what,
				   (int)option);
	ret = device_of(what, &prop->location, &dev);
	if (ret)
		return ret;
	*granularity = npuacl_physical_page(prop->memAttr);
	/* memory gets its pages 2 MiB at a time */
	if (option == ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED && *granularity < NPUACL_PAGE_HUGE)
		*granularity = NPUACL_PAGE_HUGE;
	return ACL_SUCCESS;
}
