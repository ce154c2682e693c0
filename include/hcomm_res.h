/* SPDX-License-Identifier: MIT */
/*
 * hcomm_res.h - resources below communicators: endpoints, registered memory, threads.
 * Channels are in hcomm_channel.h, what goes over them in hcomm_primitives.h.
 *
 * Follows the public Hcomm interface of August 2026.
 *
 * All return 0 or the number of a HcclResult: 2 (HCCL_E_PTR) for NULL, 1 (HCCL_E_PARA)
 * for a value that cannot be, 6 (HCCL_E_NOT_FOUND) for a handle that is none.
 */
#ifndef HCOMM_RES_H
#define HCOMM_RES_H

#include "hcomm_res_defs.h"
#include "hcomm_channel.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* --- Endpoints ----------------------------------------------------------- */

/* How many endpoints a device (by its physical number) can have. */
HcommResult HcommEndpointGetDescNum(int32_t devPhyId, uint32_t *descNum);

/*
 * Describe them: *@descNum is the room in @endpointDescs on entry and what was
 * written on return.
 */
HcommResult HcommEndpointGetDescs(int32_t devPhyId, uint32_t *descNum,
				  EndpointDesc *endpointDescs);

/* Whether endpoints like @endpoint can do something. */
HcommResult HcommEndpointCheckFeature(HcommEndpointFeatureType feature,
				      const EndpointDesc *endpoint, bool *isSupported);

/*
 * Make an endpoint.  Its location has to be the device that the thread has set, or the
 * host; 5 (HCCL_E_NOT_SUPPORT) for a protocol that the machine does not have.
 */
HcommResult HcommEndpointCreate(const EndpointDesc *endpoint, EndpointHandle *endpointHandle);

/* Unmake it; its channels and registrations have to be gone. */
HcommResult HcommEndpointDestroy(EndpointHandle endpointHandle);

/* The port that it takes connections of channels on. */
HcommResult HcommEndpointGetListenPort(EndpointHandle endpointHandle, uint32_t *port);

/* --- Memory -------------------------------------------------------------- */

/* Device memory that is good for all channels; @size in bytes. */
HcommResult HcommMemAlloc(void **ptr, size_t size);

HcommResult HcommMemFree(void *ptr);

/*
 * Register memory with an endpoint, so that peers of its channels may reach it.
 * @memTag, a name, goes along to the peer; it may be NULL.
 */
HcommResult HcommMemReg(EndpointHandle endpointHandle, const char *memTag, const CommMem *mem,
			HcommMemHandle *memHandle);

HcommResult HcommMemUnreg(EndpointHandle endpointHandle, HcommMemHandle memHandle);

/*
 * Describe registered memory in bytes that a peer can import: *@memDescLen of them at
 * *@memDesc, which belongs to the library and lives until HcommMemUnreg().
 */
HcommResult HcommMemExport(EndpointHandle endpointHandle, HcommMemHandle memHandle,
			   void **memDesc, uint32_t *memDescLen);

/* Make a peer's memory usable here; *@outMem gets where it is, in the peer's addresses. */
HcommResult HcommMemImport(EndpointHandle endpointHandle, const void *memDesc, uint32_t descLen,
			   CommMem *outMem);

HcommResult HcommMemUnimport(EndpointHandle endpointHandle, const void *memDesc, uint32_t descLen);

/* --- Threads ------------------------------------------------------------- */

/*
 * @threadNum threads of an engine, on the device that is set; thread i gets
 * @notifyNumPerThread[i] notifies.
 */
HcommResult HcommThreadAlloc(CommEngine engine, uint32_t threadNum,
			     const uint32_t *notifyNumPerThread, ThreadHandle *threads);

/* Give them back; what they still had to do is waited for. */
HcommResult HcommThreadFree(const ThreadHandle *threads, uint32_t threadNum);

/* What is behind a thread: *@info of @infoLen bytes, of the type that @resType says. */
HcommResult HcommThreadResGetInfo(ThreadHandle thread, ThreadResType resType, uint32_t infoLen,
				  void **info);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
