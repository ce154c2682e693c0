/* SPDX-License-Identifier: MIT */
/*
 * hccl_sym_win.h - addresses in symmetric windows.  They are made by
 * HcclCommSymWinRegister(), hccl_comm.h.
 *
 * Follows the public HCCL interface of August 2026.
 */
#ifndef HCCL_HCCL_SYM_WIN_H
#define HCCL_HCCL_SYM_WIN_H

#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Where a peer's byte @offset of a window is, for kernels and copies of this rank. */
HcclResult HcclSymWinGetPeerPointer(HcclCommSymWindow winHandle, size_t offset, uint32_t peerRank,
				    void **ptr);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
