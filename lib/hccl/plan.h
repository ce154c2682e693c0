/* SPDX-License-Identifier: MIT */
/*
 * Plans: what a collective does, as one short program for each rank, its lane.
 *
 * A step moves or combines bytes between two places, or waits until another lane
 * has got so far.  That is all an algorithm is: it says who reads what from whom,
 * in which order.  It knows nothing of processes, addresses or engines: run.c
 * carries lanes out, and whoever has the cpu may carry out any of them, so that
 * ranks which share a cpu need not be switched to and from.
 *
 * Rules that every plan keeps, and tests/unit/test_hccl_plan.c checks:
 *  - the steps of a lane are done in order, those of different lanes in any order
 *    that waits allow;
 *  - one side of a step at least belongs to the lane's own rank, so that a queue of
 *    that rank can do it (READ, WRITE, READ and WRITE with reduction);
 *  - bytes that one lane writes and another reads or writes have a wait between them;
 *  - nobody writes HCCL_IN.  HCCL_IN and HCCL_OUT of a rank may be the same memory
 *    (whole, or the part of it that the API says): no step may then read of HCCL_IN
 *    what has been written through HCCL_OUT, unless it means to;
 *  - HCCL_CCL is the communicator's own memory, @ccl_bytes of it for each rank.
 *
 * And what every plan counts on:
 *  - no lane starts before all ranks have come, and a rank is through when all lanes
 *    are: the mesh programs, whose lanes never touch the same bytes, need no wait at
 *    all then, and a barrier is no step at all;
 *  - what may be in place: AllReduce and Reduce whole, ReduceScatter (V) with OUT at
 *    the own slice of IN, AllGather (V) with IN at the own slice of OUT, Scatter with
 *    the root's OUT at its slice of IN; AlltoAll (V) never.  Each rank as it likes.  A
 *    copy from a place to itself, which this leads to, does nothing.
 */
#ifndef HCCL_PLAN_H
#define HCCL_PLAN_H

#include "core.h"

#define HCCL_MAX_RANKS	128u
#define HCCL_MAX_STEPS	((1u << 24) - 1)	/* of a lane: more take more host memory than there is */

#define HCCL_MIN_CCL	64u		/* smaller is no plan at all */
#define HCCL_CHUNK	65536u		/* a copy of it stays in a second level cache */
#define HCCL_GRAIN	131072u

enum hccl_area {
	HCCL_IN,		/* what the rank sends */
	HCCL_OUT,		/* what it receives; Broadcast: its only buffer */
	HCCL_CCL,
};

struct hccl_place {
	u16 rank;
	u16 area;		/* enum hccl_area */
	u64 off;		/* bytes */
};

enum hccl_step_kind {
	HCCL_WAIT,		/* until lane @peer has done @count of its steps */
	HCCL_COPY,		/* dst = src */
	HCCL_REDUCE,		/* dst = dst op src */
};

struct hccl_step {
	u16 kind;		/* enum hccl_step_kind */
	u16 peer;
	u32 count;
	struct hccl_place dst, src;
	u64 bytes;
};

struct hccl_lane {
	struct hccl_step *step;
	u32 n;
	u32 room;
};

enum hccl_coll {
	HCCL_ALLREDUCE,		/* IN count -> OUT count */
	HCCL_REDUCE_TO,		/* IN count -> OUT count of the root */
	HCCL_REDUCESCATTER,	/* IN count * ranks -> OUT count */
	HCCL_REDUCESCATTERV,	/* IN by counts and displs -> OUT counts[rank] */
	HCCL_ALLGATHER,		/* IN count -> OUT count * ranks */
	HCCL_ALLGATHERV,	/* IN counts[rank] -> OUT by counts and displs */
	HCCL_BROADCAST,		/* OUT count of the root -> OUT count */
	HCCL_SCATTER,		/* IN count * ranks of the root -> OUT count */
	HCCL_ALLTOALL,		/* IN count * ranks -> OUT count * ranks */
	HCCL_ALLTOALLV,		/* by the four arrays; VC as well */
	HCCL_BARRIER,
	HCCL_COLLS,
};

enum hccl_algo {
	HCCL_ALGO_AUTO,
	HCCL_ALGO_ONE_LANE,	/* tiny: lane 0 does it all */
	HCCL_ALGO_MESH_ONE,	/* one-shot: every rank fetches all there is, and combines it itself */
	HCCL_ALGO_MESH_TWO,	/* two-shot: every rank combines its slice, and hands it out */
	HCCL_ALGO_RING,
	HCCL_ALGO_RHD,		/* recursive halving and doubling */
	HCCL_ALGO_NHR,		/* nonuniform hierarchical ring */
	HCCL_ALGO_NB,		/* nonuniform Bruck */
	HCCL_ALGO_PAIRWISE,	/* AlltoAll: one peer a step */
	HCCL_ALGO_HIER,		/* over servers: intra, inter, intra */
	HCCL_ALGOS,
};

/* One collective, the same for all ranks. */
struct hccl_shape {
	enum hccl_coll coll;
	u32 ranks;
	u32 root;
	u32 elem;		/* bytes of an element */
	u64 count;		/* elements; V forms: unused */
	/* V forms, in elements.  counts, displs: [ranks].  ALLTOALLV: [sender * ranks + receiver] */
	const u64 *counts, *displs;
	const u64 *send_displs, *recv_displs;	/* ALLTOALLV: [own rank * ranks + peer] */
	u64 ccl_bytes;		/* of each rank; a plan that needs more goes in rounds */
	const u32 *server;	/* [ranks], from 0; NULL: all on one */
	enum hccl_algo inter;	/* HIER: between servers */
	u64 chunk;		/* bytes moved at a time by one lane; 0: HCCL_CHUNK */
	u64 grain;		/* bytes of work that are worth a lane of their own; 0: HCCL_GRAIN */
};

struct hccl_plan {
	u32 ranks;
	enum hccl_algo algo;	/* what it turned out to be */
	bool failed;		/* no memory */
	bool waits;		/* lanes for each other */
	u64 bytes;		/* that are moved, by all lanes */
	u64 chunk;		/* bytes that are moved at a time, so that they stay in a cache */
	struct hccl_lane lane[];
};

/* ---- plan.c ---------------------------------------------------------------------- */

/* NULL: no memory.  @algo that the collective does not have: AUTO's choice, see plan->algo. */
struct hccl_plan *hccl_plan_make(const struct hccl_shape *s, enum hccl_algo algo);
void hccl_plan_free(struct hccl_plan *p);
/* What AUTO means for it. */
enum hccl_algo hccl_plan_choose(const struct hccl_shape *s);
bool hccl_plan_has(enum hccl_coll coll, enum hccl_algo algo);
const char *hccl_algo_name(enum hccl_algo algo);	/* "mesh-two-shot" */
const char *hccl_coll_name(enum hccl_coll coll);	/* "allreduce" */

/* For algorithms: append to the lane of @rank.  No-ops (0 bytes, a place onto itself) are left out. */
void hccl_copy(struct hccl_plan *p, u32 rank, struct hccl_place dst, struct hccl_place src, u64 bytes);
void hccl_reduce(struct hccl_plan *p, u32 rank, struct hccl_place dst, struct hccl_place src, u64 bytes);
/* The lane of @rank goes on when @peer has done what is in its lane by now. */
void hccl_wait(struct hccl_plan *p, u32 rank, u32 peer);
/* ... has done @count of its steps: for programs that are written one lane after the other. */
void hccl_wait_for(struct hccl_plan *p, u32 rank, u32 peer, u32 count);
u32 hccl_at(const struct hccl_plan *p, u32 rank);	/* steps in its lane so far */

static inline struct hccl_place hccl_in(u32 rank, u64 off)
{
	return (struct hccl_place){ .rank = (u16)rank, .area = HCCL_IN, .off = off };
}

static inline struct hccl_place hccl_out(u32 rank, u64 off)
{
	return (struct hccl_place){ .rank = (u16)rank, .area = HCCL_OUT, .off = off };
}

static inline struct hccl_place hccl_ccl(u32 rank, u64 off)
{
	return (struct hccl_place){ .rank = (u16)rank, .area = HCCL_CCL, .off = off };
}

/* Slice @i of @count elements in @ranks nearly equal parts: first element. */
static inline u64 hccl_slice(u64 count, u32 ranks, u32 i)
{
	u64 each = count / ranks, more = count % ranks;

	return each * i + (i < more ? i : more);
}

#endif
