/* SPDX-License-Identifier: MIT */
/*
 * A program's own allocator of device memory for a stream: four functions in a
 * description, registered with the stream.
 */
#ifndef ACL_ACL_RT_ALLOCATOR_H
#define ACL_ACL_RT_ALLOCATOR_H

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gives a block of at least that many bytes, or NULL. */
typedef void *(*aclrtAllocatorAllocFunc)(aclrtAllocator allocator, size_t size);
/* Takes a block back. */
typedef void (*aclrtAllocatorFreeFunc)(aclrtAllocator allocator, aclrtAllocatorBlock block);
/* Gives a block, at that address if it can. */
typedef void *(*aclrtAllocatorAllocAdviseFunc)(aclrtAllocator allocator, size_t size,
					       aclrtAllocatorAddr addr);
/* Where a block's memory is. */
typedef void *(*aclrtAllocatorGetAddrFromBlockFunc)(aclrtAllocatorBlock block);

/* An empty description. */
ACL_FUNC_VISIBILITY aclrtAllocatorDesc aclrtAllocatorCreateDesc(void);

/* Free it; streams that it was registered with keep what it said. */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorDestroyDesc(aclrtAllocatorDesc allocatorDesc);

/* What the functions get for their allocator. */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorSetObjToDesc(aclrtAllocatorDesc allocatorDesc,
							aclrtAllocator allocator);

/* The function that allocates. */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorSetAllocFuncToDesc(aclrtAllocatorDesc allocatorDesc,
							      aclrtAllocatorAllocFunc func);

/* The function that frees. */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorSetFreeFuncToDesc(aclrtAllocatorDesc allocatorDesc,
							     aclrtAllocatorFreeFunc func);

/* The function that allocates at an address; there may be none. */
ACL_FUNC_VISIBILITY aclError
aclrtAllocatorSetAllocAdviseFuncToDesc(aclrtAllocatorDesc allocatorDesc,
				       aclrtAllocatorAllocAdviseFunc func);

/* The function that tells a block's address. */
ACL_FUNC_VISIBILITY aclError
aclrtAllocatorSetGetAddrFromBlockFuncToDesc(aclrtAllocatorDesc allocatorDesc,
					    aclrtAllocatorGetAddrFromBlockFunc func);

/* Use it for a stream, instead of what was registered before. */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorRegister(aclrtStream stream,
						    aclrtAllocatorDesc allocatorDesc);

/* What is registered with a stream. */
ACL_FUNC_VISIBILITY aclError
aclrtAllocatorGetByStream(aclrtStream stream, aclrtAllocatorDesc *allocatorDesc,
			  aclrtAllocator *allocator, aclrtAllocatorAllocFunc *allocFunc,
			  aclrtAllocatorFreeFunc *freeFunc,
			  aclrtAllocatorAllocAdviseFunc *allocAdviseFunc,
			  aclrtAllocatorGetAddrFromBlockFunc *getAddrFromBlockFunc);

/* The runtime's own allocator again. */
ACL_FUNC_VISIBILITY aclError aclrtAllocatorUnregister(aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
