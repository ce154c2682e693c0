// SPDX-License-Identifier: MIT
/*
 * Memory pools: device memory that is allocated and freed in a stream's order,
 * and kept for the next who asks.
 *
 * A block may be had again when the stream has come to its free.  What nobody
 * uses is given back to the device when the pool has more than was in use at most
 * and than its release threshold, when it is trimmed, and when there would be no
 * memory otherwise.
 */
#include <acl/acl_rt_memory_soma.h>
#include <inttypes.h>
#include <stdlib.h>
#include "check.h"
#include "graph.h"

#define SMALL		512u		/* sizes are rounded up to */
#define LARGE		(2ull << 20)	/* beyond this, to this */
#define BUCKETS		1024u

struct block {
	struct block *next;	/* of the pool's free ones */
	struct block *chain;	/* of a bucket */
	struct pool *pool;
	void *ptr;
	u64 size;
	bool used;
	bool freeing;
};

struct pool {
	struct npuacl_device *dev;
	u64 max;		/* 0: the device's */
	u64 threshold;
	u64 reserved, reserved_high;
	u64 used, used_high;
	s32 reuse[3];		/* attributes 1 to 3: kept, and reuse is as it is */
	struct block *free;
	bool dead;		/* destroyed: gone with its last block */
};

static struct npuemu_slab pools = {
	.what = "memory pool", .size = NPUEMU_SLAB_SIZE(struct pool), .max = 4096,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* Of all pools; nobody calls out of here with it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *bucket[BUCKETS];

static struct block **bucket_of(const void *ptr)
{
	return &bucket[((uintptr_t)ptr / SMALL) % BUCKETS];
}

/* ---- Blocks; the lock is held ------------------------------------------------------------ */

static struct block *find(const void *ptr)
{
	struct block *b = *bucket_of(ptr);

	while (b && b->ptr != ptr)
		b = b->chain;
	return b;
}

static void forget(struct block *b)
{
	struct block **at = bucket_of(b->ptr);

	while (*at != b)
		at = &(*at)->chain;
	*at = b->chain;
	b->pool->reserved -= b->size;
	free(b);
}

/* Off the pool, until @keep bytes are left of it: a list for give_back(). */
static struct block *surplus(struct pool *p, u64 keep)
{
	struct block *b, *list = NULL;

	while (p->free && p->reserved > keep) {
		b = p->free;
		p->free = b->next;
		p->reserved -= b->size;
		b->next = list;
		list = b;
	}
	return list;
}

/* Without the lock. */
static void give_back(struct block *list)
{
	struct block *b;

	while (list) {
		struct block **at;

		b = list;
		list = b->next;
		pthread_mutex_lock(&lock);
		for (at = bucket_of(b->ptr); *at != b; at = &(*at)->chain)
			;
		*at = b->chain;
		pthread_mutex_unlock(&lock);
		aclrtFree(b->ptr);
		free(b);
	}
}

/* The smallest that is large enough, and not more than twice that. */
static struct block *reuse(struct pool *p, u64 size)
{
	struct block **at, **best = NULL, *b;

	for (at = &p->free; *at; at = &(*at)->next)
		if ((*at)->size >= size && (*at)->size <= 2 * size && (!best || (*at)->size < (*best)->size))
			best = at;
	if (!best)
		return NULL;
	b = *best;
	*best = b->next;
	return b;
}

static void take(struct block *b, void **ptr)
{
	struct pool *p = b->pool;

	b->used = true;
	b->freeing = false;
	p->used += b->size;
	if (p->used > p->used_high)
		p->used_high = p->used;
	*ptr = b->ptr;
}

/* ---- Pools ---------------------------------------------------------------------------------- */

static aclError pool_of(aclrtMemPool handle, struct pool **out, const char *what)
{
	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the pool is NULL", what);
	if (!npuemu_slab_alive(&pools, handle))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not a memory pool, or no longer", what, handle);
	*out = handle;
	return ACL_SUCCESS;
}

aclError aclrtMemPoolCreate(aclrtMemPool *memPool, const aclrtMemPoolProps *poolProps)
{
	static const char what[] = "aclrtMemPoolCreate";
	struct npuacl_device *d;
	struct pool *p;
	aclError ret;

	if (!memPool || !poolProps)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", what, memPool ? "poolProps" : "memPool");
	if (poolProps->allocType != ACL_MEM_ALLOCATION_TYPE_PINNED || poolProps->handleType != ACL_MEM_HANDLE_TYPE_NONE)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "%s: allocType %d, handleType %d; only PINNED and NONE are supported", what,
				   (int)poolProps->allocType, (int)poolProps->handleType);
	if (poolProps->location.type != ACL_MEM_LOCATION_TYPE_DEVICE)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: location type %d; only a device is supported",
				   what, (int)poolProps->location.type);
	ret = npuacl_device((s32)poolProps->location.id, &d);
	if (ret)
		return ret;
	p = npuemu_slab_alloc(&pools);
	if (!p)
		return npuacl_fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: there are %u pools, the most there can be", what,
				   pools.max);
	p->dev = d;
	p->max = poolProps->maxSize;
	p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
	npuemu_slab_publish(&pools, p);
	NPUACL_CHECK(npuacl_check_object(NPUACL_OBJ_POOL, p, d->id, (u32)(((u8 *)p - pools.base) / pools.size)));
	*memPool = p;
	return ACL_SUCCESS;
}

/* The last of its memory is free, and given back. */
static void maybe_gone(struct pool *p)
{
	bool gone;

	pthread_mutex_lock(&lock);
	gone = p->dead && !p->reserved;
	if (gone)
		p->dead = false;
	pthread_mutex_unlock(&lock);
	if (gone)
		npuemu_slab_free(&pools, p);
}

aclError aclrtMemPoolDestroy(const aclrtMemPool memPool)
{
	struct block *list;
	struct pool *p;
	aclError ret = pool_of(memPool, &p, "aclrtMemPoolDestroy");

	if (ret)
		return ret;
	if (!npuemu_slab_retire(&pools, p))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtMemPoolDestroy: %p was destroyed already", memPool);
	NPUACL_CHECK(npuacl_check_object_gone(NPUACL_OBJ_POOL, p));
	pthread_mutex_lock(&lock);
	list = surplus(p, 0);
	p->dead = true;
	pthread_mutex_unlock(&lock);
	give_back(list);
	maybe_gone(p);
	return ACL_SUCCESS;
}

aclError aclrtMemPoolTrimTo(aclrtMemPool memPool, size_t minBytesToKeep)
{
	struct block *list;
	struct pool *p;
	aclError ret = pool_of(memPool, &p, "aclrtMemPoolTrimTo");

	if (ret)
		return ret;
	pthread_mutex_lock(&lock);
	list = surplus(p, minBytesToKeep);
	pthread_mutex_unlock(&lock);
	give_back(list);
	return ACL_SUCCESS;
}

aclError aclrtMemPoolSetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr, void *value)
{
	static const char what[] = "aclrtMemPoolSetAttr";
	struct pool *p;
	aclError ret = pool_of(memPool, &p, what);

	if (ret)
		return ret;
	if (!value)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: value is NULL", what);
	pthread_mutex_lock(&lock);
	switch (attr) {
	case ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC:
	case ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		p->reuse[attr - ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(const s32 *)value;
		break;
	case ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD:
		p->threshold = *(const u64 *)value;
		break;
	case ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH:
	case ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH:
		/* only back to what there is now */
		if (*(const u64 *)value)
			ret = ACL_ERROR_INVALID_PARAM;
		else if (attr == ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH)
			p->used_high = p->used;
		else
			p->reserved_high = p->reserved;
		break;
	default:
		ret = ACL_ERROR_INVALID_PARAM;
		break;
	}
	pthread_mutex_unlock(&lock);
	return ret ? npuacl_fail(ret, "%s: attribute %d cannot be set, or not to that value", what, (int)attr) : ret;
}

aclError aclrtMemPoolGetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr, void *value)
{
	static const char what[] = "aclrtMemPoolGetAttr";
	struct pool *p;
	aclError ret = pool_of(memPool, &p, what);
	u64 v = 0;

	if (ret)
		return ret;
	if (!value)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: value is NULL", what);
	pthread_mutex_lock(&lock);
	switch (attr) {
	case ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC:
	case ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		v = (u64)p->reuse[attr - ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES];
		break;
	case ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD:
		v = p->threshold;
		break;
	case ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT:
		v = p->reserved;
		break;
	case ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH:
		v = p->reserved_high;
		break;
	case ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT:
		v = p->used;
		break;
	case ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH:
		v = p->used_high;
		break;
	default:
		ret = ACL_ERROR_INVALID_PARAM;
		break;
	}
	pthread_mutex_unlock(&lock);
	if (ret)
		return npuacl_fail(ret, "%s: there is no attribute %d", what, (int)attr);
	if (attr <= ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
		*(s32 *)value = (s32)v;
	else
		*(u64 *)value = v;
	return ACL_SUCCESS;
}

/* ---- Allocating and freeing ------------------------------------------------------------------- */

/* A block more.  The lock is not held. */
static aclError grow(struct pool *p, u64 size, void **ptr, const char *what)
{
	struct block *b, *list;
	bool full;
	aclError ret;

	pthread_mutex_lock(&lock);
	/* what is kept for others goes first */
	list = p->max && p->reserved + size > p->max ? surplus(p, p->max > size ? p->max - size : 0) : NULL;
	full = p->max && p->reserved + size > p->max;
	pthread_mutex_unlock(&lock);
	give_back(list);
	if (full)
		return npuacl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
				   "%s: %" PRIu64 " bytes more than the %" PRIu64 " in use are above the pool's %" PRIu64,
				   what, size, p->used, p->max);
	b = calloc(1, sizeof(*b));
	if (!b)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	ret = aclrtMalloc(&b->ptr, size, ACL_MEM_MALLOC_HUGE_FIRST);
	if (ret == ACL_ERROR_RT_MEMORY_ALLOCATION && p->free) {
		aclrtMemPoolTrimTo(p, 0);
		ret = aclrtMalloc(&b->ptr, size, ACL_MEM_MALLOC_HUGE_FIRST);
	}
	if (ret) {
		free(b);
		return ret;
	}
	b->pool = p;
	b->size = size;
	pthread_mutex_lock(&lock);
	b->chain = *bucket_of(b->ptr);
	*bucket_of(b->ptr) = b;
	p->reserved += size;
	if (p->reserved > p->reserved_high)
		p->reserved_high = p->reserved;
	take(b, ptr);
	pthread_mutex_unlock(&lock);
	return ACL_SUCCESS;
}

static u64 rounded(u64 size)
{
	u64 to = size < LARGE ? SMALL : LARGE;

	return size > ~0ull - to ? 0 : (size + to - 1) / to * to;
}

aclError aclrtMemPoolMallocAsync(void **ptr, size_t size, aclrtMemPool memPool, aclrtStream stream)
{
	static const char what[] = "aclrtMemPoolMallocAsync";
	struct npuacl_stream *s;
	struct block *b;
	struct pool *p;
	aclError ret = pool_of(memPool, &p, what);

	if (!ret)
		ret = npuacl_stream(stream, &s);
	if (!ret)
		ret = npuacl_capture_refuses(s, what);
	if (ret)
		return ret;
	if (!ptr || !size || !rounded(size))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what, ptr ? "size is 0, or beyond all bounds" :
				   "ptr is NULL");
	if (s->dev != p->dev)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the pool is of device %u, stream %u of device %u", what,
				   p->dev->id, s->id, s->dev->id);
	pthread_mutex_lock(&lock);
	b = reuse(p, rounded(size));
	if (b)
		take(b, ptr);
	pthread_mutex_unlock(&lock);
	return b ? ACL_SUCCESS : grow(p, rounded(size), ptr, what);
}

/* The stream has come there, or its tasks were dropped. */
static void freed(void *arg)
{
	struct block *b = arg, *list = NULL;
	struct pool *p = b->pool;

	pthread_mutex_lock(&lock);
	b->used = false;
	b->freeing = false;
	p->used -= b->size;
	b->next = p->free;
	p->free = b;
	list = surplus(p, p->dead ? 0 : p->threshold > p->used_high ? p->threshold : p->used_high);
	pthread_mutex_unlock(&lock);
	give_back(list);
	maybe_gone(p);
}

aclError aclrtMemPoolFreeAsync(void *ptr, aclrtStream stream)
{
	static const char what[] = "aclrtMemPoolFreeAsync";
	struct npuacl_task t = { .kind = NPUACL_CALL };
	struct npuacl_stream *s;
	struct block *b;
	aclError ret = npuacl_stream(stream, &s);

	if (!ret)
		ret = npuacl_capture_refuses(s, what);
	if (ret)
		return ret;
	pthread_mutex_lock(&lock);
	b = find(ptr);
	if (b && (!b->used || b->freeing))
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p was freed already", what, ptr);
	else if (b)
		b->freeing = true;
	pthread_mutex_unlock(&lock);
	if (!b)
		return npuacl_fail(ptr ? ACL_ERROR_RT_PARAM_INVALID : ACL_ERROR_INVALID_PARAM,
				   "%s: %p is not of aclrtMemPoolMallocAsync", what, ptr);
	if (ret)
		return ret;
	t.own.release = freed;
	t.own.arg = b;
	ret = npuacl_submit(s, &t, NULL);
	if (ret) {
		pthread_mutex_lock(&lock);
		b->freeing = false;
		pthread_mutex_unlock(&lock);
	}
	return ret;
}

bool npuacl_pool_keeps(const void *ptr)
{
	const struct block *b;
	bool keeps;

	pthread_mutex_lock(&lock);
	b = find(ptr);
	keeps = b && (!b->used || b->freeing);
	pthread_mutex_unlock(&lock);
	return keeps;
}

/* ---- The end of a device, or of a parent ---------------------------------------------------------- */

/* Nothing runs there; its memory goes next.  -1: all devices. */
void npuacl_pools_release(s32 device)
{
	struct block *b, *next;
	struct pool *p;
	u32 i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < BUCKETS; i++)
		for (b = bucket[i]; b; b = next) {
			next = b->chain;
			if (device < 0 || b->pool->dev->id == (u32)device)
				forget(b);
		}
	pthread_mutex_unlock(&lock);
	for (i = 0; i < pools.used; i++) {
		p = (void *)(pools.base + (size_t)i * pools.size);
		if (npuemu_slab_alive(&pools, p) && (device < 0 || p->dev->id == (u32)device) &&
		    npuemu_slab_retire(&pools, p)) {
			NPUACL_CHECK(npuacl_check_object_gone(NPUACL_OBJ_POOL, p));
			npuemu_slab_free(&pools, p);
		} else if (p->dead && (device < 0 || p->dev->id == (u32)device)) {
			p->dead = false;
			npuemu_slab_free(&pools, p);
		}
	}
}

void npuacl_pools_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(bucket, 0, sizeof(bucket));
	npuemu_slab_fork(&pools);
}
