/* SPDX-License-Identifier: MIT */
/*
 * A simulator of plans (lib/hccl/plan.h) over plain arrays, which knows nothing of algorithms.
 *
 * It runs the lanes in many orders, and compares with what loops over all ranks make of the
 * same bytes.  Whether lanes race does not depend on the order that they happen to run in: it
 * follows from the waits alone, and is checked for all pairs of accesses.
 */
#ifndef PLANSIM_H
#define PLANSIM_H

#include "../../lib/hccl/plan.h"

enum { PLANSIM_APART, PLANSIM_IN_PLACE, PLANSIM_MIXED, PLANSIM_PLACINGS };

/* Which of the lanes that can go on does. */
enum {
	PLANSIM_FIRST,
	PLANSIM_LAST,
	PLANSIM_DEEPEST,	/* who is farthest */
	PLANSIM_SHALLOWEST,
	PLANSIM_RANDOM,
	PLANSIM_ORDERS,
};

/* One collective. */
struct plansim {
	struct hccl_shape s;
	enum hccl_algo algo;
	bool floats;		/* elements are float32, else integers of s.elem bytes */
	u32 placing;
	u32 runs;		/* the first is in random order, the next in each other one */
	u64 counts[HCCL_MAX_RANKS * HCCL_MAX_RANKS], displs[HCCL_MAX_RANKS];
	u64 send[HCCL_MAX_RANKS * HCCL_MAX_RANKS], recv[HCCL_MAX_RANKS * HCCL_MAX_RANKS];
};

extern struct plansim plansim;

u32 plansim_dice(u32 n);	/* 0 to n - 1 */
void plansim_run(void);		/* fails the test if anything is wrong */

#endif
