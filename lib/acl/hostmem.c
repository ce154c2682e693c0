// SPDX-License-Identifier: MIT
/*
 * Host memory that devices know: pinned, which is allocated here, and registered,
 * which is the program's own.
 *
 * lib/core is told of both, so that engines use them directly.  Where it cannot
 * take more they are used like any host memory, which is slower, not wrong.
 * Small pinned blocks share chunks: each chunk is cut into blocks of one size.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "check.h"

#define PAGE		4096ull
#define HUGE		(2ull << 20)
#define CHUNK_SHIFT	18
#define CHUNK		(1ull << CHUNK_SHIFT)
#define SMALL_SHIFT	6			/* the smallest block: 64 bytes */
#define SMALL_MOST	(CHUNK / 8)		/* more than that is on its own */
#define CHUNKS		4096u
#define CLASSES		16u

struct chunk {
	u8 *base;
	struct npuemu_mem *mem;
	u32 shift;		/* of a block's size */
	u32 used;		/* blocks */
	u64 taken[(CHUNK >> SMALL_SHIFT) / 64];
};

static struct {
	pthread_mutex_t lock;
	struct chunk *chunk[CHUNKS];
	u32 n;			/* chunks up to here, holes among them */
	u32 hint[CLASSES];	/* where there was room last */
	u32 empty[CLASSES];	/* chunks without a block: one is kept, for who allocates and frees in turns */
} hm = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- Pages ------------------------------------------------------------------------------ */

static struct npuemu_mem *pin(u8 *p, u64 bytes, void *alias)
{
	struct npuemu_mem *mem = NULL;
	int err = npuemu_mem_register_at(npuacl.board, p, bytes, alias, &mem);

	if (!err)
		return mem;
	npuemu_log(NPUEMU_LOG_DEBUG, "acl: %" PRIu64 " bytes at %p are not pinned, and used like other host memory: %s",
		   bytes, (void *)p, npuemu_errmsg());
	return NULL;
}

/* NULL: there are none.  From 2 MiB on they begin where a huge page can. */
static u8 *pages_get(u64 bytes)
{
	u64 extra = bytes >= HUGE ? HUGE - PAGE : 0, skip;
	u8 *p = mmap(NULL, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (!extra)
		return p;
	skip = -(u64)(uintptr_t)p & (HUGE - 1);
	if (skip)
		munmap(p, skip);
	if (extra > skip)
		munmap(p + skip + bytes, extra - skip);
	p += skip;
	madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

/* No engine uses them any more when lib/core has let go. */
static void pages_put(u8 *p, u64 bytes, struct npuemu_mem *mem, void *alias)
{
	if (mem && npuemu_mem_unregister(mem))
		return;	/* somebody may still be there: better leak them */
	munmap(p, bytes);
	if (alias)
		munmap(alias, bytes);
}

/* A block on its own, which engines know. */
static u8 *large_get(struct npuacl_range *r, u64 size)
{
	u64 bytes = (size + PAGE - 1) & ~(PAGE - 1);
	u8 *p = pages_get(bytes);

	if (!p)
		return NULL;
	if (unlikely(npuacl_check_on))
		r->alias = npuacl_check_pages(p, bytes);
	r->mem = pin(p, bytes, r->alias);
	if (!r->mem && r->alias) {
		/* engines will go to where the program does */
		munmap(r->alias, bytes);
		r->alias = NULL;
	}
	return p;
}

/* ---- Chunks of small blocks ---------------------------------------------------------------- */

static u32 class_of(u64 size)
{
	u32 shift = SMALL_SHIFT;

	while (1ull << shift < size)
		shift++;
	return shift;
}

/* hm.lock held */
static struct chunk *chunk_make(u32 shift, u32 *index)
{
	struct chunk *c;
	u32 i;

	for (i = 0; i < hm.n && hm.chunk[i]; i++)
		;
	if (i == CHUNKS)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->base = pages_get(CHUNK);
	if (!c->base) {
		free(c);
		return NULL;
	}
	c->mem = pin(c->base, CHUNK, NULL);
	c->shift = shift;
	hm.chunk[i] = c;
	hm.empty[shift - SMALL_SHIFT]++;
	if (i == hm.n)
		hm.n++;
	*index = i;
	return c;
}

static struct chunk *chunk_with_room(u32 shift, u32 *index)
{
	u32 most = 1u << (CHUNK_SHIFT - shift), i, k;

	for (k = 0; k < hm.n; k++) {
		i = (hm.hint[shift - SMALL_SHIFT] + k) % hm.n;
		if (hm.chunk[i] && hm.chunk[i]->shift == shift && hm.chunk[i]->used < most) {
			*index = i;
			return hm.chunk[i];
		}
	}
	return chunk_make(shift, index);
}

static u8 *small_get(u64 size, u32 *index)
{
	u32 shift = class_of(size), i = 0, bit;
	struct chunk *c;
	u8 *p = NULL;

	pthread_mutex_lock(&hm.lock);
	c = chunk_with_room(shift, index);
	if (c) {
		hm.hint[shift - SMALL_SHIFT] = *index;
		while (!~c->taken[i])
			i++;
		bit = (u32)__builtin_ctzll(~c->taken[i]);
		c->taken[i] |= 1ull << bit;
		hm.empty[shift - SMALL_SHIFT] -= !c->used++;
		p = c->base + ((u64)(i * 64 + bit) << shift);
	}
	pthread_mutex_unlock(&hm.lock);
	return p;
}

static void chunk_forget(u32 index)
{
	hm.empty[hm.chunk[index]->shift - SMALL_SHIFT]--;
	hm.chunk[index] = NULL;
}

static void chunk_free(struct chunk *c)
{
	pages_put(c->base, CHUNK, c->mem, NULL);
	free(c);
}

static void small_put(u8 *p, u32 index)
{
	struct chunk *c;
	u64 block;

	pthread_mutex_lock(&hm.lock);
	c = hm.chunk[index];
	block = (u64)(p - c->base) >> c->shift;
	c->taken[block / 64] &= ~(1ull << block % 64);
	if (--c->used || !hm.empty[c->shift - SMALL_SHIFT]++)
		c = NULL;
	else
		chunk_forget(index);
	pthread_mutex_unlock(&hm.lock);
	if (c)
		chunk_free(c);
}

/* ---- Pinned memory ------------------------------------------------------------------------- */

static void host_release(struct npuacl_range *r)
{
	u8 *p = (u8 *)(uintptr_t)r->base;

	if (r->chunk)
		small_put(p, r->chunk - 1);
	else
		pages_put(p, (r->room + PAGE - 1) & ~(PAGE - 1), r->mem, r->alias);
	npuacl_range_gone(r);
}

static aclError host_malloc(const char *what, void **out, u64 size, u32 flags)
{
	struct npuacl_range *r;
	struct npuacl_ctx *ctx;
	u32 index = 0;
	aclError ret;
	u8 *p;

	if (!out || !size)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what, out ? "size is 0" : "the pointer is NULL");
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	if (size >> 47)
		return npuacl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
				   "%s: %" PRIu64 " bytes are more than there are addresses", what, size);
	r = calloc(1, sizeof(*r));
	if (!r)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	/* the checker closes pages: none is shared then */
	p = size <= SMALL_MOST && likely(!npuacl_check_on) ? small_get(size, &index) : NULL;
	if (p)
		r->chunk = index + 1;
	else
		p = large_get(r, size);
	if (!p) {
		free(r);
		return npuacl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: no %" PRIu64 " bytes of host memory: %s",
				   what, size, strerror(errno));
	}
	r->base = (u64)(uintptr_t)p;
	r->size = size;
	r->room = (size + 31) & ~31ull;
	r->kind = NPUACL_PINNED;
	r->flags = flags | (size >= HUGE ? NPUACL_PLACE_HUGE : 0);
	if (npuacl_range_add(r)) {
		host_release(r);
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	}
	*out = p;
	return ACL_SUCCESS;
}

aclError aclrtMallocHost(void **hostPtr, size_t size)
{
	return host_malloc("aclrtMallocHost", hostPtr, size, 0);
}

aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg)
{
	struct npuacl_device *dev;
	u32 flags = 0;
	aclError ret;
	size_t i;

	if (cfg && cfg->numAttrs && !cfg->attrs)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM,
				   "aclrtMallocHostWithCfg: the configuration has %zu options, but attrs is NULL",
				   cfg->numAttrs);
	for (i = 0; cfg && i < cfg->numAttrs; i++) {
		const aclrtMallocAttribute *a = &cfg->attrs[i];

		if (a->attr == ACL_RT_MEM_ATTR_DEVICE_ID) {
			ret = npuacl_device((s32)a->value.deviceId, &dev);
			if (ret)
				return ret;
		} else if (a->attr == ACL_RT_MEM_ATTR_VA_FLAG) {
			if (a->value.vaFlag > 1)
				return npuacl_fail(ACL_ERROR_INVALID_PARAM,
						   "aclrtMallocHostWithCfg: option %zu: vaFlag is 0 or 1, not %u", i, a->value.vaFlag);
			flags = a->value.vaFlag ? NPUACL_PLACE_DEVPTR : 0;
		} else if (a->attr != ACL_RT_MEM_ATTR_RSV && a->attr != ACL_RT_MEM_ATTR_MODULE_ID) {
			return npuacl_fail(ACL_ERROR_INVALID_PARAM,
					   "aclrtMallocHostWithCfg: option %zu: there is no option %d", i, (int)a->attr);
		}
	}
	return host_malloc("aclrtMallocHostWithCfg", ptr, size, flags);
}

static void unregister(struct npuacl_range *r)
{
	if (r->mem)
		npuemu_mem_unregister(r->mem);
	npuacl_range_gone(r);
}

static aclError host_free(const char *what, void *ptr)
{
	u64 va = (u64)(uintptr_t)ptr, end;
	struct npuacl_range *r, *in;
	char text[192];

	if (!ptr)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: hostPtr is NULL", what);
	r = npuacl_range_take(va, NPUACL_BIT(NPUACL_PINNED));
	if (!r)
		NPUACL_CHECK(npuacl_check_no_buffer(what, va));
	if (!r)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: %p is %s; it takes the pointer that aclrtMallocHost gave", what, ptr,
				   npuacl_explain(va, text, sizeof(text)));
	NPUACL_CHECK(npuacl_check_freeing(what, r));
	end = va + r->room;
	for (;;) {
		in = npuacl_range_take_in(NPUACL_REGISTERED, va, end, -1);
		if (!in)
			break;
		npuemu_log(NPUEMU_LOG_WARN, "%s: %p was still registered (aclrtHostUnregister)", what,
			   (void *)(uintptr_t)in->base);
		unregister(in);
	}
	host_release(r);
	return ACL_SUCCESS;
}

aclError aclrtFreeHost(void *hostPtr)
{
	return host_free("aclrtFreeHost", hostPtr);
}

aclError aclrtFreeHostWithDevSync(void *hostPtr)
{
	struct npuacl_ctx *ctx;
	aclError ret, sync;

	if (!hostPtr)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtFreeHostWithDevSync: hostPtr is NULL");
	/* what cannot wait does not free; what the device has failed with is no reason to keep it */
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	sync = aclrtSynchronizeDevice();
	ret = host_free("aclrtFreeHostWithDevSync", hostPtr);
	return ret ? ret : sync;
}

/* ---- Registered memory ------------------------------------------------------------------------ */

/* Where it lies: none of it on a device, and not across the end of a pinned block. */
static aclError check_range(const char *what, u64 va, u64 size, bool *pinned)
{
	struct npuacl_place p;
	char text[192];

	npuacl_place_of(va, &p);
	if (npuacl_on_device(&p))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %#" PRIx64 " is no host memory, but %s", what, va,
				   npuacl_explain(va, text, sizeof(text)));
	*pinned = p.kind == NPUACL_PINNED;
	/* pages belong to a block whole */
	if (*pinned && size > ((p.end + PAGE - 1) & ~(PAGE - 1)) - va)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: %" PRIu64 " bytes are too many: %#" PRIx64 " is %s", what, size, va,
				   npuacl_explain(va, text, sizeof(text)));
	if (!*pinned && p.kind == NPUACL_PAGEABLE && size > p.end - va) {
		struct npuacl_place next;

		npuacl_place_of(p.end, &next);
		if (next.kind != NPUACL_REGISTERED)
			return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
					   "%s: %" PRIu64 " bytes from %#" PRIx64 " on reach into other memory at %#" PRIx64,
					   what, size, va, p.end);
	}
	return ACL_SUCCESS;
}

static aclError host_register(const char *what, void *ptr, u64 size, u32 flags)
{
	u64 va = (u64)(uintptr_t)ptr;
	struct npuacl_range *r;
	struct npuacl_ctx *ctx;
	bool pinned;
	aclError ret;
	int err;

	if (!ptr || !size || va + size < va)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what,
				   !ptr ? "ptr is NULL" : !size ? "size is 0" : "size goes beyond the last address");
	if (va & (PAGE - 1))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: %p is not at the start of a page (4096 bytes): aclrtMallocHost, mmap or aligned_alloc give such memory",
				   what, ptr);
	ret = npuacl_current(&ctx);
	if (!ret)
		ret = check_range(what, va, size, &pinned);
	if (ret)
		return ret;
	r = calloc(1, sizeof(*r));
	if (!r)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	*r = (struct npuacl_range){
		.base = va, .size = size, .room = size, .kind = NPUACL_REGISTERED, .flags = flags,
	};
	err = npuacl_range_add(r);
	if (err) {
		free(r);
		return err == -EEXIST ?
		       npuacl_fail(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
				   "%s: some of the %" PRIu64 " bytes at %p are registered already", what, size, ptr) :
		       npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	}
	/* a pinned block has it all already */
	err = pinned ? 0 : npuemu_mem_register(npuacl.board, ptr, size, &r->mem);
	if (!err)
		return ACL_SUCCESS;
	ret = npuacl_fail_core(err, err == -EFAULT || err == -EINVAL ? ACL_ERROR_RT_PARAM_INVALID :
			       ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, what);
	r = npuacl_range_take(va, NPUACL_BIT(NPUACL_REGISTERED));
	if (r)
		npuacl_range_gone(r);
	return ret;
}

aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr)
{
	aclError ret;

	if (!devPtr)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtHostRegister: devPtr is NULL");
	if (type == ACL_HOST_REGISTER_IOMEMORY || type == ACL_HOST_REGISTER_READONLY)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "aclrtHostRegister: type %d is reserved; ACL_HOST_REGISTER_MAPPED (0) works", (int)type);
	if (type != ACL_HOST_REGISTER_MAPPED)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtHostRegister: there is no type %d", (int)type);
	ret = host_register("aclrtHostRegister", ptr, size, NPUACL_PLACE_DEVPTR);
	if (!ret)
		*devPtr = ptr;
	return ret;
}

aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag)
{
	const u32 reserved = ACL_HOST_REG_IOMEMORY | ACL_HOST_REG_READONLY;

	if (!flag || flag & ~(u32)(ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED | reserved))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM,
				   "aclrtHostRegisterV2: flag %#x; ACL_HOST_REG_MAPPED (0x2), ACL_HOST_REG_PINNED (0x10000000) or both",
				   flag);
	if (flag & reserved)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "aclrtHostRegisterV2: flag %#x: IOMEMORY and READONLY are reserved", flag);
	return host_register("aclrtHostRegisterV2", ptr, size,
			     flag & ACL_HOST_REG_MAPPED ? NPUACL_PLACE_DEVPTR : 0);
}

aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag)
{
	u64 va = (u64)(uintptr_t)pHost;
	struct npuacl_place p;
	char text[192];

	if (!pHost || !pDevice || flag)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtHostGetDevicePointer: %s",
				   flag ? "flag has to be 0" : "an argument is NULL");
	if (!npuacl_place_in(NPUACL_REGISTERED, va, &p) && !npuacl_place_in(NPUACL_PINNED, va, &p))
		p.flags = 0;
	if (!(p.flags & NPUACL_PLACE_DEVPTR))
		return npuacl_fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED,
				   "aclrtHostGetDevicePointer: %p has no device address, it is %s: aclrtHostRegister, or aclrtHostRegisterV2 with ACL_HOST_REG_MAPPED, comes first",
				   pHost, npuacl_explain(va, text, sizeof(text)));
	*pDevice = pHost;
	return ACL_SUCCESS;
}

aclError aclrtHostUnregister(void *ptr)
{
	u64 va = (u64)(uintptr_t)ptr;
	struct npuacl_range *r;
	char text[192];

	if (!ptr)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtHostUnregister: ptr is NULL");
	r = npuacl_range_take(va, NPUACL_BIT(NPUACL_REGISTERED));
	if (!r)
		return npuacl_fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED,
				   "aclrtHostUnregister: no registered memory begins at %p; it is %s", ptr,
				   npuacl_explain(va, text, sizeof(text)));
	NPUACL_CHECK(npuacl_check_freeing("aclrtHostUnregister", r));
	unregister(r);
	return ACL_SUCCESS;
}

aclError aclrtHostMemMapCapabilities(uint32_t deviceId, aclrtHacType hacType,
				     aclrtHostMemMapCapability *capabilities)
{
	struct npuacl_device *dev;
	aclError ret;
	bool yes;

	if (!capabilities)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtHostMemMapCapabilities: capabilities is NULL");
	if ((u32)hacType > ACL_RT_HAC_TYPE_CCU)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtHostMemMapCapabilities: there is no engine %d",
				   (int)hacType);
	if (deviceId > INT32_MAX)
		return npuacl_fail(ACL_ERROR_RT_INVALID_DEVICEID, "aclrtHostMemMapCapabilities: there is no device %u",
				   deviceId);
	ret = npuacl_device((s32)deviceId, &dev);
	if (ret)
		return ret;
	/* those that there are reach all of the process's memory */
	yes = hacType == ACL_RT_HAC_TYPE_SDMA || hacType == ACL_RT_HAC_TYPE_STARS ||
	      hacType == ACL_RT_HAC_TYPE_AIV || (hacType == ACL_RT_HAC_TYPE_UDMA && npuacl.info.has_udma);
	*capabilities = yes ? ACL_RT_HOST_MEM_MAP_SUPPORTED : ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED;
	return ACL_SUCCESS;
}

/* ---- The end -------------------------------------------------------------------------------------- */

void npuacl_hostmem_release(void)
{
	struct npuacl_range *r;
	u32 i;

	while ((r = npuacl_range_take_in(NPUACL_REGISTERED, 0, ~0ull, -1)))
		unregister(r);
	while ((r = npuacl_range_take_in(NPUACL_PINNED, 0, ~0ull, -1)))
		host_release(r);
	pthread_mutex_lock(&hm.lock);
	for (i = 0; i < hm.n; i++) {
		struct chunk *c = hm.chunk[i];

		if (!c || c->used)
			continue;
		chunk_forget(i);
		chunk_free(c);
	}
	pthread_mutex_unlock(&hm.lock);
}

void npuacl_hostmem_fork(void)
{
	u32 i;

	/* the parent's chunks are its own: full for ever here */
	for (i = 0; i < hm.n; i++)
		if (hm.chunk[i])
			hm.chunk[i]->used = CHUNK >> SMALL_SHIFT;
	memset(hm.empty, 0, sizeof(hm.empty));
	pthread_mutex_init(&hm.lock, NULL);
}
