// SPDX-License-Identifier: MIT
/*
 * Addresses that a program reserves, and physical memory that it maps there: whole
 * pieces, each as a range of the address map, so that copies and all else find them.
 *
 * Rights are kept for each device, as they were set, and told as they are; what is
 * refused is coarser.  Nobody may read: nobody can.  Nobody may write: nobody can.
 * Another device than the memory's own may: then every device does, without peer access.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "check.h"
#include "share.h"

#define GIB		(1ull << 30)
#define HOST		NPUACL_DEVICES		/* whose rights, beside the devices' */
#define RIGHTS		(NPUACL_PLACE_PEER | NPUACL_PLACE_READONLY | NPUACL_PLACE_NOACCESS)

struct npuacl_vmm npuacl_vmm = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct reserved {
	u32 mappings;
};

struct mapping {
	struct npuacl_physical *mem;
	struct reserved *in;
	u8 right[NPUACL_DEVICES + 1];	/* aclrtMemAccessFlags */
};

static void keep(struct npuacl_range *r, void *arg)
{
	*(struct npuacl_range **)arg = r;
}

/* npuacl_vmm.lock held: only who has it takes such ranges out of the map. */
static struct npuacl_range *find(enum npuacl_place_kind kind, u64 va)
{
	struct npuacl_range *r = NULL;

	npuacl_range_with(NPUACL_BIT(kind), va, keep, &r);
	return r;
}

/* ---- Addresses -------------------------------------------------------------------------- */

/* @align: a power of two. */
static void *reserve_aligned(u64 bytes, u64 align)
{
	u8 *base = npuemu_reserve(NULL, bytes + align, 0), *at;

	if (base == MAP_FAILED)
		return NULL;
	at = (u8 *)(((uintptr_t)base + align - 1) & ~(uintptr_t)(align - 1));
	if (at > base)
		munmap(base, (size_t)(at - base));
	munmap(at + bytes, (size_t)(base + align - at));
	return at;
}

static void *reserve_at(u64 va, u64 bytes)
{
	void *p = npuemu_reserve((void *)(uintptr_t)va, bytes, MAP_FIXED_NOREPLACE);

	if (p == MAP_FAILED)
		return NULL;
	if ((u64)(uintptr_t)p == va)
		return p;
	munmap(p, bytes);	/* a kernel that does not know the flag */
	return NULL;
}

static aclError note_reserved(const char *what, void *p, u64 size, u64 room)
{
	struct npuacl_range *r = calloc(1, sizeof(*r));
	struct reserved *res = calloc(1, sizeof(*res));
	int err = -ENOMEM;

	if (r && res) {
		r->base = (u64)(uintptr_t)p;
		r->size = size;
		r->room = room;
		r->kind = NPUACL_RESERVED;
		r->owner = res;
		err = npuacl_range_add(r);
	}
	if (!err)
		return ACL_SUCCESS;
	munmap(p, room);
	free(r);
	free(res);
	return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: the addresses cannot be noted (%s)", what, strerror(-err));
}

static aclError check_reserve(const char *what, void **out, size_t size, size_t alignment, u64 flags)
{
	if (!out || !size)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what, out ? "size is 0" : "virPtr is NULL");
	if (alignment & (alignment - 1) || alignment > 1ull << 40)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: alignment %zu is no power of two: use 0", what, alignment);
	if (flags > 1)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flags %#" PRIx64 "; 0 for normal pages, 1 for huge ones",
				   what, flags);
	if (size >> 47)
		return npuacl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: %zu bytes are more than there are addresses", what, size);
	return npuacl_open();
}

aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr, uint64_t flags)
{
	static const char what[] = "aclrtReserveMemAddress";
	u64 align = alignment > NPUACL_PAGE_HUGE ? alignment : NPUACL_PAGE_HUGE;
	u64 room = (size + NPUACL_PAGE_HUGE - 1) & ~(NPUACL_PAGE_HUGE - 1), expect = (u64)(uintptr_t)expectPtr;
	aclError ret = check_reserve(what, virPtr, size, alignment, flags);
	void *p = NULL;

	if (ret)
		return ret;
	if (expect & (align - 1))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: expectPtr (%p) is not a multiple of %" PRIu64, what, expectPtr,
				   align);
	if (expect)
		p = reserve_at(expect, room);
	/* it is what they expect, no more */
	if (!p)
		p = reserve_aligned(room, align);
	if (!p)
		return npuacl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: no %zu bytes of addresses are left: %s (ulimit -v?)", what,
				   size, strerror(errno));
	ret = note_reserved(what, p, size, room);
	if (!ret)
		*virPtr = p;
	return ret;
}

aclError aclrtReserveMemAddressNoUCMemory(void **virPtr, size_t size, size_t alignment, void *expectPtr,
					  uint64_t flags)
{
	static const char what[] = "aclrtReserveMemAddressNoUCMemory";
	aclError ret = check_reserve(what, virPtr, size, alignment, flags);
	void *p;

	if (ret)
		return ret;
	if (!expectPtr || (uintptr_t)expectPtr % GIB || size % GIB)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: expectPtr (%p) and size (%zu) have to be multiples of 1 GiB",
				   what, expectPtr, size);
	p = reserve_at((u64)(uintptr_t)expectPtr, size);
	if (!p)
		return npuacl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: %zu bytes at %p are not free: %s", what, size, expectPtr,
				   strerror(errno));
	ret = note_reserved(what, p, size, size);
	if (!ret)
		*virPtr = p;
	return ret;
}

static void release_addresses(struct npuacl_range *r)
{
	munmap((void *)(uintptr_t)r->base, r->room);
	free(r->owner);
	npuacl_range_gone(r);
}

static aclError not_reserved(const char *what, u64 va)
{
	char text[192];

	return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %#" PRIx64 " is %s; it takes the start of what aclrtReserveMemAddress gave",
			   what, va, npuacl_explain(va, text, sizeof(text)));
}

aclError aclrtReleaseMemAddress(void *virPtr)
{
	static const char what[] = "aclrtReleaseMemAddress";
	u64 va = (u64)(uintptr_t)virPtr;
	struct npuacl_range *r;
	struct reserved *res;
	aclError ret;

	if (!virPtr)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: virPtr is NULL", what);
	pthread_mutex_lock(&npuacl_vmm.lock);
	r = find(NPUACL_RESERVED, va);
	res = r ? r->owner : NULL;
	if (!r || r->base != va) {
		ret = not_reserved(what, va);
	} else if (res->mappings) {
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: at %p %u piece(s) of memory are still mapped: aclrtUnmapMem comes first",
				  what, virPtr, res->mappings);
	} else {
		npuacl_range_take(va, NPUACL_BIT(NPUACL_RESERVED));
		release_addresses(r);
		ret = ACL_SUCCESS;
	}
	pthread_mutex_unlock(&npuacl_vmm.lock);
	return ret;
}

/* ---- Rights -------------------------------------------------------------------------------- */

/* What they come to, as flags of the range. */
static u32 rights_flags(const struct mapping *m)
{
	u32 most = m->right[HOST], flags = 0, d;

	for (d = 0; d < npuacl.devices; d++) {
		most |= m->right[d];
		if (m->right[d] && d != m->mem->device)
			flags = NPUACL_PLACE_PEER;
	}
	if (most == ACL_RT_MEM_ACCESS_FLAGS_NONE)
		flags |= NPUACL_PLACE_NOACCESS;
	else if (most == ACL_RT_MEM_ACCESS_FLAGS_READ)
		flags |= NPUACL_PLACE_READONLY;
	return flags;
}

static void rights_apply(struct npuacl_range *r)
{
	npuacl_range_flags(r, (r->flags & ~RIGHTS) | rights_flags(r->owner));
}

static aclError location_of(const char *what, const aclrtMemLocation *loc, u32 *who)
{
	struct npuacl_device *dev;
	aclError ret;

	switch (loc->type) {
	case ACL_MEM_LOCATION_TYPE_DEVICE:
		ret = npuacl_device((s32)loc->id, &dev);
		*who = ret ? 0 : dev->id;
		return ret;
	case ACL_MEM_LOCATION_TYPE_HOST:
	case ACL_MEM_LOCATION_TYPE_HOST_NUMA:
		*who = HOST;
		return ACL_SUCCESS;
	default:
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no location of type %d; host (0), device (1) or NUMA node (4)",
				   what, (int)loc->type);
	}
}

static aclError not_mapped(const char *what, u64 va)
{
	char text[192];

	return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %#" PRIx64 " is not mapped by aclrtMapMem, but %s", what, va,
			   npuacl_explain(va, text, sizeof(text)));
}

/* Whole mappings, one after the other, all of [va, +size). */
static aclError check_mappings(const char *what, u64 va, u64 size)
{
	struct npuacl_range *r;
	u64 at = va;

	while (at - va < size) {
		r = find(NPUACL_MAPPED, at);
		if (!r)
			return not_mapped(what, at);
		if (r->base != at || r->room > size - (at - va))
			return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
					   "%s: [%#" PRIx64 ", +%" PRIu64 ") has only a part of the mapping of %" PRIu64 " bytes at %#" PRIx64,
					   what, va, size, r->room, r->base);
		at += r->room;
	}
	return ACL_SUCCESS;
}

static aclError set_access(const char *what, u64 va, u64 size, const aclrtMemAccessDesc *desc, size_t count)
{
	struct npuacl_range *r;
	struct mapping *m;
	aclError ret = check_mappings(what, va, size);
	u32 who = 0;
	size_t i;
	u64 at;

	for (at = va; !ret && at - va < size; at += r->room) {
		r = find(NPUACL_MAPPED, at);
		m = r->owner;
		for (i = 0; i < count && !ret; i++) {
			ret = location_of(what, &desc[i].location, &who);
			if (!ret)
				m->right[who] = (u8)desc[i].flags;
		}
		rights_apply(r);
	}
	return ret;
}

aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc, size_t count)
{
	static const char what[] = "aclrtMemSetAccess";
	aclError ret = ACL_SUCCESS;
	u32 who;
	size_t i;

	if (!virPtr || !desc || !size || !count)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what, !virPtr ? "virPtr is NULL" : !desc ? "desc is NULL" :
				   size ? "count is 0" : "size is 0");
	/* all of them, or none */
	for (i = 0; i < count && !ret; i++) {
		ret = location_of(what, &desc[i].location, &who);
		if (!ret && desc[i].flags != ACL_RT_MEM_ACCESS_FLAGS_NONE && desc[i].flags != ACL_RT_MEM_ACCESS_FLAGS_READ &&
		    desc[i].flags != ACL_RT_MEM_ACCESS_FLAGS_READWRITE)
			ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: entry %zu: there is no access %d; 0, READ (1) or READWRITE (3)",
					  what, i, (int)desc[i].flags);
	}
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_vmm.lock);
	ret = set_access(what, (u64)(uintptr_t)virPtr, size, desc, count);
	pthread_mutex_unlock(&npuacl_vmm.lock);
	return ret;
}

aclError aclrtMemGetAccess(void *virPtr, aclrtMemLocation *location, uint64_t *flag)
{
	static const char what[] = "aclrtMemGetAccess";
	struct npuacl_range *r;
	aclError ret;
	u32 who = 0;

	if (!virPtr || !location || !flag)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", what,
				   !virPtr ? "virPtr" : location ? "flag" : "location");
	ret = location_of(what, location, &who);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_vmm.lock);
	r = find(NPUACL_MAPPED, (u64)(uintptr_t)virPtr);
	if (r)
		*flag = ((struct mapping *)r->owner)->right[who];
	else
		ret = not_mapped(what, (u64)(uintptr_t)virPtr);
	pthread_mutex_unlock(&npuacl_vmm.lock);
	return ret;
}

/* ---- Mapping ----------------------------------------------------------------------------------- */

static aclError check_map(const char *what, u64 va, u64 size, u64 offset, const struct npuacl_physical *p,
			  struct npuacl_range **in)
{
	u64 page = npuacl_physical_page(p->prop.memAttr) < NPUACL_PAGE_HUGE ? 4096 : NPUACL_PAGE_HUGE;
	char text[192];

	if (offset || size != p->size)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: size %" PRIu64 ", offset %" PRIu64 ": memory is mapped as a whole, here %" PRIu64 " bytes", what,
				   size, offset, p->size);
	if (va & (page - 1))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: virPtr (%#" PRIx64 ") is not a multiple of %" PRIu64 ", the pages of this memory",
				   what, va, page);
	*in = find(NPUACL_RESERVED, va);
	if (!*in)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %#" PRIx64 " is not reserved (aclrtReserveMemAddress), but %s", what,
				   va, npuacl_explain(va, text, sizeof(text)));
	if (size > (*in)->room - (va - (*in)->base))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: %" PRIu64 " bytes at %#" PRIx64 " go beyond the %" PRIu64 " reserved at %#" PRIx64, what, size, va,
				   (*in)->room, (*in)->base);
	return ACL_SUCCESS;
}

static aclError map_failed(const char *what, u64 va, int err)
{
	char text[192];

	if (err == -EEXIST)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: at %#" PRIx64 " there is memory already: %s", what, va,
				   npuacl_explain(va, text, sizeof(text)));
	return npuacl_fail_core(err, ACL_ERROR_RT_MEMORY_ALLOCATION, what);
}

static aclError map(const char *what, u64 va, struct npuacl_physical *p, struct npuacl_range *in, bool access)
{
	struct npuacl_range *r = calloc(1, sizeof(*r));
	struct mapping *m = calloc(1, sizeof(*m));
	int err;

	if (!r || !m) {
		free(r);
		free(m);
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	}
	m->mem = p;
	m->in = in->owner;
	if (access) {
		m->right[p->device] = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
		m->right[p->user] = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
		m->right[HOST] = npuacl_physical_is_host(p) ? ACL_RT_MEM_ACCESS_FLAGS_READWRITE : 0;
	}
	r->base = va;
	r->size = p->size;
	r->room = p->size;
	r->kind = NPUACL_MAPPED;
	r->device = p->device;
	r->buf = p->buf;
	r->owner = m;
	r->flags = npuacl_physical_flags(p) | rights_flags(m);
	/* imported for a device that is not the memory's, or not known by it */
	if (access && p->import)
		r->flags |= NPUACL_PLACE_PEER;
	err = npuemu_buf_map(p->buf, (void *)(uintptr_t)va);
	if (!err) {
		err = npuacl_range_add(r);
		if (err)
			npuemu_buf_unmap(p->buf, (void *)(uintptr_t)va);
	}
	if (err) {
		free(r);
		free(m);
		return map_failed(what, va, err);
	}
	p->uses++;
	m->in->mappings++;
	return ACL_SUCCESS;
}

static aclError map_mem(const char *what, void *ptr, size_t size, size_t offset, aclrtDrvMemHandle handle, u64 flags,
			bool access)
{
	struct npuacl_range *in = NULL;
	struct npuacl_physical *p;
	aclError ret;

	if (!ptr || flags)
		return npuacl_fail(ptr ? ACL_ERROR_RT_PARAM_INVALID : ACL_ERROR_INVALID_PARAM, "%s: %s", what,
				   ptr ? "there are no flags: use 0" : "virPtr is NULL");
	pthread_mutex_lock(&npuacl_vmm.lock);
	ret = npuacl_physical(what, handle, &p);
	if (!ret)
		ret = check_map(what, (u64)(uintptr_t)ptr, size, offset, p, &in);
	if (!ret)
		ret = map(what, (u64)(uintptr_t)ptr, p, in, access);
	pthread_mutex_unlock(&npuacl_vmm.lock);
	return ret;
}

aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags)
{
	return map_mem("aclrtMapMem", virPtr, size, offset, handle, flags, true);
}

aclError aclrtMemMapNoAccess(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags)
{
	return map_mem("aclrtMemMapNoAccess", virPtr, size, offset, handle, flags, false);
}

/* It is out of the map already.  npuacl_vmm.lock held. */
static int unmap(struct npuacl_range *r)
{
	struct mapping *m = r->owner;
	int err = npuemu_buf_unmap(r->buf, (void *)(uintptr_t)r->base), err2;

	m->in->mappings--;
	m->mem->uses--;
	err2 = npuacl_physical_gone(m->mem);
	free(m);
	npuacl_range_gone(r);
	return err ? err : err2;
}

aclError aclrtUnmapMem(void *virPtr)
{
	static const char what[] = "aclrtUnmapMem";
	u64 va = (u64)(uintptr_t)virPtr;
	struct npuacl_range *r;
	aclError ret = ACL_SUCCESS;
	int err;

	if (!virPtr)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: virPtr is NULL", what);
	pthread_mutex_lock(&npuacl_vmm.lock);
	r = npuacl_range_take(va, NPUACL_BIT(NPUACL_MAPPED));
	if (r)
		NPUACL_CHECK(npuacl_check_freeing(what, r));
	err = r ? unmap(r) : 0;
	if (!r)
		ret = not_mapped(what, va);
	else if (err)
		ret = npuacl_fail_core(err, ACL_ERROR_RT_MEMORY_FREE, what);
	pthread_mutex_unlock(&npuacl_vmm.lock);
	return ret;
}

aclError aclrtMemRetainAllocationHandle(void *virPtr, aclrtDrvMemHandle *handle)
{
	static const char what[] = "aclrtMemRetainAllocationHandle";
	struct npuacl_physical *p;
	struct npuacl_range *r;
	aclError ret = ACL_SUCCESS;

	if (!virPtr || !handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", what, virPtr ? "handle" : "virPtr");
	pthread_mutex_lock(&npuacl_vmm.lock);
	r = find(NPUACL_MAPPED, (u64)(uintptr_t)virPtr);
	if (r) {
		p = ((struct mapping *)r->owner)->mem;
		/* given back while it was mapped: a handle again */
		if (!p->refs++)
			npuemu_slab_publish(&npuacl_physicals, p);
		*handle = (aclrtDrvMemHandle)p;
	} else {
		ret = not_mapped(what, (u64)(uintptr_t)virPtr);
	}
	pthread_mutex_unlock(&npuacl_vmm.lock);
	return ret;
}

aclError npuacl_vmm_is(const char *what, u64 va, u64 size, aclrtDrvMemHandle handle)
{
	struct npuacl_physical *p;
	struct npuacl_range *r;
	aclError ret;

	pthread_mutex_lock(&npuacl_vmm.lock);
	ret = npuacl_physical(what, handle, &p);
	r = ret ? NULL : find(NPUACL_MAPPED, va);
	if (!ret && !r)
		ret = not_mapped(what, va);
	else if (!ret && ((struct mapping *)r->owner)->mem != p)
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: at %#" PRIx64 " other memory is mapped than handle %p stands for",
				  what, va, (void *)handle);
	else if (!ret && (r->base != va || r->room != size))
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				  "%s: [%#" PRIx64 ", +%" PRIu64 ") is not all of the mapping of %" PRIu64 " bytes at %#" PRIx64, what, va,
				  size, r->room, r->base);
	pthread_mutex_unlock(&npuacl_vmm.lock);
	return ret;
}

/* ---- The end -------------------------------------------------------------------------------------- */

void npuacl_vmm_release(s32 device)
{
	struct npuacl_range *r;

	pthread_mutex_lock(&npuacl_vmm.lock);
	while ((r = npuacl_range_take_in(NPUACL_MAPPED, 0, ~0ull, device)))
		unmap(r);
	npuacl_physicals_release(device);
	while (device < 0 && (r = npuacl_range_take_in(NPUACL_RESERVED, 0, ~0ull, -1)))
		release_addresses(r);
	pthread_mutex_unlock(&npuacl_vmm.lock);
}

void npuacl_vmm_fork(void)
{
	pthread_mutex_init(&npuacl_vmm.lock, NULL);
	npuacl_physicals_fork();
}

/* ---- Windows ------------------------------------------------------------------------------------- */

aclError npuacl_vmm_window(const char *what, u64 va, struct npuacl_window *w)
{
	struct npuacl_physical *p;
	struct npuacl_range *r;
	aclError ret;

	pthread_mutex_lock(&npuacl_vmm.lock);
	r = find(NPUACL_MAPPED, va);
	if (!r) {
		ret = not_mapped(what, va);
		goto out;
	}
	p = ((struct mapping *)r->owner)->mem;
	while (p->of)
		p = p->of;
	if (p->import) {
		ret = npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				  "%s: the memory mapped at %#llx is another process's, and cannot be offered on", what,
				  (unsigned long long)va);
		goto out;
	}
	w->base = r->base;
	w->end = r->base + r->room;
	p->offered = true;
	ret = npuacl_window_offer(what, p->buf, r->room, npuacl.dev[p->device].phys, w);
out:
	pthread_mutex_unlock(&npuacl_vmm.lock);
	return ret;
}
