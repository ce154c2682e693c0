/* SPDX-License-Identifier: MIT */
/*
 * Data types and reductions: their sizes and names, and what is there for which
 * chip.  Without a chip everything is there that can be computed; with one (strict
 * mode) what its documentation lists.
 */
#ifndef NPUEMU_HCCL_SUPPORT_H
#define NPUEMU_HCCL_SUPPORT_H

#include "core.h"
#include <hccl/hccl_types.h>

/* Families that HCCL tells apart. */
enum hccl_soc {
	HCCL_SOC_910,		/* the first 910 */
	HCCL_SOC_310P,
	HCCL_SOC_A2,		/* 910B */
	HCCL_SOC_A3,		/* 910C: Ascend910_93... */
	HCCL_SOC_950,		/* and whatever has a name of its own */
};

enum hccl_soc hccl_soc_of(const char *name);	/* as the machine description has it */

u32 hccl_type_bytes(u32 type);			/* 0: no such type */
const char *hccl_type_name(u32 type);		/* as hccl_test writes it; "type?" */
const char *hccl_op_name(u32 op);		/* "sum"...; "op?" */

/*
 * May AllReduce, Reduce and ReduceScatter do this?  @soc: strict, for this chip, or NULL.
 * HCCL_SUCCESS, HCCL_E_PARA (no such type or reduction), HCCL_E_NOT_SUPPORT; with a message
 * without a code, for the caller's.
 */
int hccl_reduce_ok(u32 type, u32 op, const char *soc, char *why, size_t room);
/* The same of ReduceScatterV. */
int hccl_reduce_scatter_v_ok(u32 type, u32 op, const char *soc, char *why, size_t room);
/* And of what only moves data. */
int hccl_move_ok(u32 type, const char *soc, char *why, size_t room);

#endif
