/* SPDX-License-Identifier: MIT */
/*
 * Pools that streams allocate from and free to in their own order: what a stream
 * frees, a later task of it may use at once.
 */
#ifndef ACL_ACL_RT_MEMORY_SOMA_H
#define ACL_ACL_RT_MEMORY_SOMA_H

#include "acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void *aclrtMemPool;

/* Attributes; the types of their values: the first three int32_t, the others uint64_t. */
typedef enum aclrtMemPoolAttr {
	ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
	ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC = 2,
	ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
	ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD = 4,
	ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT = 5,
	ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH = 6,
	ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT = 7,
	ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH = 8
} aclrtMemPoolAttr;

/* What a pool is made of, and where; maxSize 0: as large as the device. */
typedef struct aclrtMemPoolProps {
	aclrtMemAllocationType allocType;
	aclrtMemHandleType handleType;
	aclrtMemLocation location;
	size_t maxSize;
	unsigned char reserved[32];
} aclrtMemPoolProps;

/* Make a pool. */
ACL_FUNC_VISIBILITY aclError aclrtMemPoolCreate(aclrtMemPool *memPool,
						const aclrtMemPoolProps *poolProps);

/* Unmake it; its memory goes when the last of it is freed. */
ACL_FUNC_VISIBILITY aclError aclrtMemPoolDestroy(const aclrtMemPool memPool);

/* Set an attribute. */
ACL_FUNC_VISIBILITY aclError aclrtMemPoolSetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr,
						 void *value);

/* Read an attribute. */
ACL_FUNC_VISIBILITY aclError aclrtMemPoolGetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr,
						 void *value);

/* Allocate in the stream's order: the memory is for what the stream does afterwards. */
ACL_FUNC_VISIBILITY aclError aclrtMemPoolMallocAsync(void **ptr, size_t size, aclrtMemPool memPool,
						     aclrtStream stream);

/* Free in the stream's order. */
ACL_FUNC_VISIBILITY aclError aclrtMemPoolFreeAsync(void *ptr, aclrtStream stream);

/* Give memory that nobody uses back to the device, down to so many bytes. */
ACL_FUNC_VISIBILITY aclError aclrtMemPoolTrimTo(aclrtMemPool memPool, size_t minBytesToKeep);

#ifdef __cplusplus
}
#endif

#endif
