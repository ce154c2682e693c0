/* SPDX-License-Identifier: MIT */
/*
 * The runtime as C++ programs like it: typed pointers without casts, arguments left
 * out, one name for a call with and without a time limit.  All of it is inline and
 * ends in a function of acl_rt.h; in C this is acl_rt.h.
 */
#ifndef ACL_ACL_RT_API_H
#define ACL_ACL_RT_API_H

#include "acl_rt.h"

#ifdef __cplusplus

namespace npuemu_acl {

/* The C functions take any pointer's address as a void **. */
template <typename T>
inline void **out(T **p)
{
	return reinterpret_cast<void **>(p);
}

/* One attribute that holds for all of a batch. */
template <typename T>
struct for_all {
	T value;
	size_t first;

	explicit for_all(const T &v) : value(v), first(0)
	{
	}
};

} /* namespace npuemu_acl */

/* ---- Time limits ------------------------------------------------------------ */

/* Wait for the device, at most so many ms. */
static inline aclError aclrtSynchronizeDevice(int32_t timeout)
{
	return aclrtSynchronizeDeviceWithTimeout(timeout);
}

/* Wait for a stream, at most so many ms. */
static inline aclError aclrtSynchronizeStream(aclrtStream stream, int32_t timeout)
{
	return aclrtSynchronizeStreamWithTimeout(stream, timeout);
}

/* Wait for an event, at most so many ms. */
static inline aclError aclrtSynchronizeEvent(aclrtEvent event, int32_t timeout)
{
	return aclrtSynchronizeEventWithTimeout(event, timeout);
}

/* Have a stream wait for an event, at most so many seconds. */
static inline aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event, int32_t timeout)
{
	return aclrtStreamWaitEventWithTimeout(stream, event, timeout);
}

/* How long operators may take, in us, and what became of that. */
static inline aclError aclrtSetOpExecuteTimeOut(uint64_t timeout, uint64_t *actualTimeout)
{
	return aclrtSetOpExecuteTimeOutV2(timeout, actualTimeout);
}

/* ---- Streams and events ------------------------------------------------------- */

/* A stream with a priority and flags. */
static inline aclError aclrtCreateStream(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
	return aclrtCreateStreamWithConfig(stream, priority, flag);
}

/* An event with flags, of the kind whose records may be repeated. */
static inline aclError aclrtCreateEvent(aclrtEvent *event, uint32_t flag)
{
	return aclrtCreateEventExWithFlag(event, flag);
}

/* ---- Memory ------------------------------------------------------------------- */

/* Device memory in huge pages where there are some. */
template <typename T>
static inline aclError aclrtMalloc(T **devPtr, size_t size, aclrtMallocConfig *cfg = nullptr)
{
	return aclrtMallocWithCfg(npuemu_acl::out(devPtr), size, ACL_MEM_MALLOC_HUGE_FIRST, cfg);
}

/* Device memory. */
template <typename T>
static inline aclError aclrtMalloc(T **devPtr, size_t size, aclrtMemMallocPolicy policy,
				   aclrtMallocConfig *cfg = nullptr)
{
	return aclrtMallocWithCfg(npuemu_acl::out(devPtr), size, policy, cfg);
}

/* Pinned host memory. */
template <typename T>
static inline aclError aclrtMallocHost(T **hostPtr, size_t size, aclrtMallocConfig *cfg = nullptr)
{
	return aclrtMallocHostWithCfg(npuemu_acl::out(hostPtr), size, cfg);
}

/* Memory that host and device share. */
template <typename T>
static inline aclError aclrtMemAllocManaged(T **devPtr, size_t size,
					    uint32_t flags = ACL_RT_MEM_ATTACH_GLOBAL)
{
	return aclrtMemAllocManaged(npuemu_acl::out(devPtr), size, flags);
}

/* Where a pointer points to. */
template <typename T>
static inline aclError aclrtPointerGetAttributes(const T *ptr, aclrtPtrAttributes *attributes)
{
	const void *p = ptr;

	return aclrtPointerGetAttributes(p, attributes);
}

/* Let the device use host memory. */
template <typename T>
static inline aclError aclrtHostRegister(T *ptr, uint64_t size, aclrtHostRegisterType type,
					 T **devPtr)
{
	void *p = ptr;

	return aclrtHostRegister(p, size, type, npuemu_acl::out(devPtr));
}

/* The same with flags; aclrtHostGetDevicePointer tells the device's address. */
template <typename T>
static inline aclError aclrtHostRegister(T *ptr, uint64_t size, uint32_t flag)
{
	return aclrtHostRegisterV2(ptr, size, flag);
}

/* Where the device sees registered memory. */
template <typename T>
static inline aclError aclrtHostGetDevicePointer(T *pHost, T **pDevice, uint32_t flag)
{
	void *p = pHost;

	return aclrtHostGetDevicePointer(p, npuemu_acl::out(pDevice), flag);
}

/* No longer. */
template <typename T>
static inline aclError aclrtHostUnregister(T *ptr)
{
	void *p = ptr;

	return aclrtHostUnregister(p);
}

/* ---- Copies ------------------------------------------------------------------- */

/* Copy @count bytes to @dst, which has room for @destMax. */
template <typename T, typename U>
static inline aclError aclrtMemcpy(T *dst, size_t destMax, const U *src, size_t count,
				   aclrtMemcpyKind kind)
{
	void *to = dst;
	const void *from = src;

	return aclrtMemcpy(to, destMax, from, count, kind);
}

/* The same as a task of a stream. */
template <typename T, typename U>
static inline aclError aclrtMemcpyAsync(T *dst, size_t destMax, const U *src, size_t count,
					aclrtMemcpyKind kind, aclrtStream stream)
{
	void *to = dst;
	const void *from = src;

	return aclrtMemcpyAsync(to, destMax, from, count, kind, stream);
}

/* Copy @height rows of @width bytes, which are a pitch apart. */
template <typename T, typename U>
static inline aclError aclrtMemcpy2d(T *dst, size_t dpitch, const U *src, size_t spitch,
				     size_t width, size_t height, aclrtMemcpyKind kind)
{
	void *to = dst;
	const void *from = src;

	return aclrtMemcpy2d(to, dpitch, from, spitch, width, height, kind);
}

/* The same as a task of a stream. */
template <typename T, typename U>
static inline aclError aclrtMemcpy2dAsync(T *dst, size_t dpitch, const U *src, size_t spitch,
					  size_t width, size_t height, aclrtMemcpyKind kind,
					  aclrtStream stream)
{
	void *to = dst;
	const void *from = src;

	return aclrtMemcpy2dAsync(to, dpitch, from, spitch, width, height, kind, stream);
}

/* ---- Batches of copies -------------------------------------------------------- */

/* Many copies; @failIndex (may be left out): which one was wrong. */
template <typename T, typename U>
static inline aclError aclrtMemcpyBatch(T **dsts, size_t *destMaxs, U **srcs, size_t *sizes,
					size_t numBatches, aclrtMemcpyBatchAttr *attrs,
					size_t *attrsIndexes, size_t numAttrs,
					size_t *failIndex = nullptr)
{
	void **to = npuemu_acl::out(dsts), **from = npuemu_acl::out(srcs);

	if (failIndex == nullptr)
		return aclrtMemcpyBatchV2(to, destMaxs, from, sizes, numBatches, attrs,
					  attrsIndexes, numAttrs);
	return aclrtMemcpyBatch(to, destMaxs, from, sizes, numBatches, attrs, attrsIndexes,
				numAttrs, failIndex);
}

/* The same where one attribute holds for all. */
template <typename T, typename U>
static inline aclError aclrtMemcpyBatch(T **dsts, size_t *destMaxs, U **srcs, size_t *sizes,
					size_t numBatches, aclrtMemcpyBatchAttr attr,
					size_t *failIndex = nullptr)
{
	npuemu_acl::for_all<aclrtMemcpyBatchAttr> all(attr);

	return aclrtMemcpyBatch(dsts, destMaxs, srcs, sizes, numBatches, &all.value, &all.first,
				size_t(1), failIndex);
}

/* Many copies as one task of a stream. */
template <typename T, typename U>
static inline aclError aclrtMemcpyBatchAsync(T **dsts, size_t *destMaxs, U **srcs, size_t *sizes,
					     size_t numBatches, aclrtMemcpyBatchAttr *attrs,
					     size_t *attrsIndexes, size_t numAttrs,
					     aclrtStream stream)
{
	return aclrtMemcpyBatchAsyncV2(npuemu_acl::out(dsts), destMaxs, npuemu_acl::out(srcs),
				       sizes, numBatches, attrs, attrsIndexes, numAttrs, stream);
}

/* The same, and which one was wrong. */
template <typename T, typename U>
static inline aclError aclrtMemcpyBatchAsync(T **dsts, size_t *destMaxs, U **srcs, size_t *sizes,
					     size_t numBatches, aclrtMemcpyBatchAttr *attrs,
					     size_t *attrsIndexes, size_t numAttrs,
					     size_t *failIndex, aclrtStream stream)
{
	void **to = npuemu_acl::out(dsts), **from = npuemu_acl::out(srcs);

	return aclrtMemcpyBatchAsync(to, destMaxs, from, sizes, numBatches, attrs, attrsIndexes,
				     numAttrs, failIndex, stream);
}

/* One attribute for all of them. */
template <typename T, typename U>
static inline aclError aclrtMemcpyBatchAsync(T **dsts, size_t *destMaxs, U **srcs, size_t *sizes,
					     size_t numBatches, aclrtMemcpyBatchAttr attr,
					     aclrtStream stream)
{
	npuemu_acl::for_all<aclrtMemcpyBatchAttr> all(attr);

	return aclrtMemcpyBatchAsyncV2(npuemu_acl::out(dsts), destMaxs, npuemu_acl::out(srcs),
				       sizes, numBatches, &all.value, &all.first, 1, stream);
}

/* One attribute for all of them, and which one was wrong. */
template <typename T, typename U>
static inline aclError aclrtMemcpyBatchAsync(T **dsts, size_t *destMaxs, U **srcs, size_t *sizes,
					     size_t numBatches, aclrtMemcpyBatchAttr attr,
					     size_t *failIndex, aclrtStream stream)
{
	npuemu_acl::for_all<aclrtMemcpyBatchAttr> all(attr);
	void **to = npuemu_acl::out(dsts), **from = npuemu_acl::out(srcs);

	return aclrtMemcpyBatchAsync(to, destMaxs, from, sizes, numBatches, &all.value, &all.first,
				     size_t(1), failIndex, stream);
}

/* ---- Managed memory ----------------------------------------------------------- */

/* Bring shared memory to where it will be used. */
template <typename T>
static inline aclError aclrtMemManagedPrefetchAsync(const T *ptr, size_t size,
						    aclrtMemManagedLocation location,
						    uint32_t flags, aclrtStream stream)
{
	const void *p = ptr;

	return aclrtMemManagedPrefetchAsync(p, size, location, flags, stream);
}

/* Several pieces of it, to one place. */
template <typename T>
static inline aclError aclrtMemManagedPrefetchBatchAsync(const T **ptrs, size_t *sizes,
							 size_t count,
							 aclrtMemManagedLocation prefetchLoc,
							 uint64_t flags, aclrtStream stream)
{
	npuemu_acl::for_all<aclrtMemManagedLocation> all(prefetchLoc);
	const void **p = reinterpret_cast<const void **>(ptrs);

	return aclrtMemManagedPrefetchBatchAsync(p, sizes, count, &all.value, &all.first, size_t(1),
						 flags, stream);
}

/* Several pieces of it, to several places. */
template <typename T>
static inline aclError aclrtMemManagedPrefetchBatchAsync(const T **ptrs, size_t *sizes,
							 size_t count,
							 aclrtMemManagedLocation *prefetchLocs,
							 size_t *prefetchLocIdxs,
							 size_t numPrefetchLocs, uint64_t flags,
							 aclrtStream stream)
{
	const void **p = reinterpret_cast<const void **>(ptrs);

	return aclrtMemManagedPrefetchBatchAsync(p, sizes, count, prefetchLocs, prefetchLocIdxs,
						 numPrefetchLocs, flags, stream);
}

#endif /* __cplusplus */

#endif
