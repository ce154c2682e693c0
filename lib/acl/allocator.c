// SPDX-License-Identifier: MIT
/*
 * Allocators of the program's, registered with streams.  The runtime allocates
 * nothing for a stream by itself: it keeps what was registered and tells it to
 * the layers that ask (aclrtAllocatorGetByStream).
 */
#include <acl/acl_rt_allocator.h>
#include <stdlib.h>
#include "npuacl.h"

struct desc {
	aclrtAllocator allocator;
	aclrtAllocatorAllocFunc alloc;
	aclrtAllocatorFreeFunc free;
	aclrtAllocatorAllocAdviseFunc advise;
	aclrtAllocatorGetAddrFromBlockFunc address;
};

static struct npuemu_slab descs = {
	.what = "allocator", .size = NPUEMU_SLAB_SIZE(struct desc), .max = 4096,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

struct registered {
	struct registered *next;
	const struct npuacl_stream *s;
	aclrtAllocatorDesc handle;
	struct desc d;		/* as it was then */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct registered *list;

static aclError desc_of(aclrtAllocatorDesc handle, struct desc **out, const char *what)
{
	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: allocatorDesc is NULL", what);
	if (!npuemu_slab_alive(&descs, handle))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %p is not of aclrtAllocatorCreateDesc, or no longer", what,
				   handle);
	*out = handle;
	return ACL_SUCCESS;
}

aclrtAllocatorDesc aclrtAllocatorCreateDesc(void)
{
	struct desc *d = npuemu_slab_alloc(&descs);

	if (d)
		npuemu_slab_publish(&descs, d);
	else
		npuacl_fail(ACL_ERROR_BAD_ALLOC, "aclrtAllocatorCreateDesc: there are %u, the most there can be", descs.max);
	return d;
}

aclError aclrtAllocatorDestroyDesc(aclrtAllocatorDesc allocatorDesc)
{
	struct desc *d;
	aclError ret = desc_of(allocatorDesc, &d, "aclrtAllocatorDestroyDesc");

	if (ret)
		return ret;
	if (npuemu_slab_retire(&descs, d))
		npuemu_slab_free(&descs, d);
	return ACL_SUCCESS;
}

/* One field. */
#define SETTER(name, type, field, optional)						\
aclError name(aclrtAllocatorDesc allocatorDesc, type value)				\
{											\
	struct desc *d;									\
	aclError ret = desc_of(allocatorDesc, &d, #name);				\
											\
	if (!ret && !(optional) && !value)						\
		ret = npuacl_fail(ACL_ERROR_INVALID_PARAM, #name ": it is NULL");	\
	if (!ret)									\
		d->field = value;							\
	return ret;									\
}

SETTER(aclrtAllocatorSetObjToDesc, aclrtAllocator, allocator, false)
SETTER(aclrtAllocatorSetAllocFuncToDesc, aclrtAllocatorAllocFunc, alloc, false)
SETTER(aclrtAllocatorSetFreeFuncToDesc, aclrtAllocatorFreeFunc, free, false)
SETTER(aclrtAllocatorSetAllocAdviseFuncToDesc, aclrtAllocatorAllocAdviseFunc, advise, true)
SETTER(aclrtAllocatorSetGetAddrFromBlockFuncToDesc, aclrtAllocatorGetAddrFromBlockFunc, address, false)

/* lock held */
static struct registered **find(const struct npuacl_stream *s)
{
	struct registered **at = &list;

	while (*at && (*at)->s != s)
		at = &(*at)->next;
	return at;
}

aclError aclrtAllocatorRegister(aclrtStream stream, aclrtAllocatorDesc allocatorDesc)
{
	static const char what[] = "aclrtAllocatorRegister";
	struct registered **at, *r;
	struct npuacl_stream *s;
	struct desc *d;
	aclError ret = npuacl_stream(stream, &s);

	if (!ret)
		ret = desc_of(allocatorDesc, &d, what);
	if (ret)
		return ret;
	if (!d->allocator || !d->alloc || !d->free || !d->address)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM,
				   "%s: the description lacks %s", what, !d->allocator ? "the object" : !d->alloc ?
				   "the function that allocates" : !d->free ? "the function that frees" :
				   "the function that tells a block's address");
	r = malloc(sizeof(*r));
	if (!r)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	pthread_mutex_lock(&lock);
	at = find(s);
	if (*at) {	/* instead of what was there */
		free(r);
		r = *at;
	} else {
		r->next = NULL;
		*at = r;
	}
	r->s = s;
	r->handle = allocatorDesc;
	r->d = *d;
	pthread_mutex_unlock(&lock);
	return ACL_SUCCESS;
}

/* Off the list; false: there is none. */
bool npuacl_allocator_drop(const struct npuacl_stream *s)
{
	struct registered **at, *r;
	bool found;

	pthread_mutex_lock(&lock);
	at = find(s);
	r = *at;
	found = r;
	if (found)
		*at = r->next;
	pthread_mutex_unlock(&lock);
	free(r);
	return found;
}

static aclError none(const struct npuacl_stream *s, const char *what)
{
	return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: stream %u of device %u has no allocator of its own", what, s->id,
			   s->dev->id);
}

aclError aclrtAllocatorUnregister(aclrtStream stream)
{
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(stream, &s);

	if (ret)
		return ret;
	return npuacl_allocator_drop(s) ? ACL_SUCCESS : none(s, "aclrtAllocatorUnregister");
}

aclError aclrtAllocatorGetByStream(aclrtStream stream, aclrtAllocatorDesc *allocatorDesc,
				   aclrtAllocator *allocator, aclrtAllocatorAllocFunc *allocFunc,
				   aclrtAllocatorFreeFunc *freeFunc,
				   aclrtAllocatorAllocAdviseFunc *allocAdviseFunc,
				   aclrtAllocatorGetAddrFromBlockFunc *getAddrFromBlockFunc)
{
	static const char what[] = "aclrtAllocatorGetByStream";
	struct npuacl_stream *s;
	struct registered *r;
	aclError ret = npuacl_stream(stream, &s);

	if (ret)
		return ret;
	if (!allocatorDesc || !allocator || !allocFunc || !freeFunc || !allocAdviseFunc || !getAddrFromBlockFunc)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: a place for what is asked for is NULL", what);
	pthread_mutex_lock(&lock);
	r = *find(s);
	if (r) {
		*allocatorDesc = r->handle;
		*allocator = r->d.allocator;
		*allocFunc = r->d.alloc;
		*freeFunc = r->d.free;
		*allocAdviseFunc = r->d.advise;
		*getAddrFromBlockFunc = r->d.address;
	}
	pthread_mutex_unlock(&lock);
	return r ? ACL_SUCCESS : none(s, what);
}

void npuacl_allocators_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	list = NULL;
	npuemu_slab_fork(&descs);
}
