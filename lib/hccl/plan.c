// SPDX-License-Identifier: MIT
/*
 * Plans: making them, what AUTO means, which collective has which algorithm.
 */
#include <stdlib.h>
#include "algo.h"
#include "names.h"

/* ---- Steps --------------------------------------------------------------------------- */

static void append(struct hccl_plan *p, u32 rank, struct hccl_step step)
{
	struct hccl_lane *lane = &p->lane[rank];

	if (lane->n == lane->room) {
		u32 room = lane->room ? lane->room * 2 : 8;
		struct hccl_step *more = room > HCCL_MAX_STEPS ? NULL : realloc(lane->step, room * sizeof(*more));

		if (!more) {
			p->failed = true;
			return;
		}
		lane->step = more;
		lane->room = room;
	}
	lane->step[lane->n++] = step;
}

static void move(struct hccl_plan *p, enum hccl_step_kind kind, u32 rank, struct hccl_place dst,
		 struct hccl_place src, u64 bytes)
{
	struct hccl_step step = { .kind = (u16)kind, .dst = dst, .src = src, .bytes = bytes };

	if (!bytes)
		return;
	p->bytes += bytes;
	append(p, rank, step);
}

void hccl_copy(struct hccl_plan *p, u32 rank, struct hccl_place dst, struct hccl_place src,
	       u64 bytes)
{
	if (dst.rank != src.rank || dst.area != src.area || dst.off != src.off)
		move(p, HCCL_COPY, rank, dst, src, bytes);
}

void hccl_reduce(struct hccl_plan *p, u32 rank, struct hccl_place dst, struct hccl_place src,
		 u64 bytes)
{
	move(p, HCCL_REDUCE, rank, dst, src, bytes);
}

/* What is past already, or what the step before waits for, is no step. */
void hccl_wait_for(struct hccl_plan *p, u32 rank, u32 peer, u32 count)
{
	const struct hccl_lane *lane = &p->lane[rank];

	if (!count || rank == peer)
		return;
	if (lane->n) {
		const struct hccl_step *last = &lane->step[lane->n - 1];

		if (last->kind == HCCL_WAIT && last->peer == peer && last->count >= count)
			return;
	}
	p->waits = true;
	append(p, rank, (struct hccl_step){ .kind = HCCL_WAIT, .peer = (u16)peer, .count = count });
}

void hccl_wait(struct hccl_plan *p, u32 rank, u32 peer)
{
	hccl_wait_for(p, rank, peer, p->lane[peer].n);
}

u32 hccl_at(const struct hccl_plan *p, u32 rank)
{
	return p->lane[rank].n;
}

/* ---- Which has which ----------------------------------------------------------------- */

#define HAS(algo)	(1u << HCCL_ALGO_##algo)
#define MESH		(HAS(ONE_LANE) | HAS(MESH_ONE) | HAS(MESH_TWO) | HAS(HIER))
#define PAIRS		(HAS(RING) | HAS(RHD) | HAS(NHR) | HAS(NB))

static const u32 has[HCCL_COLLS] = {
	[HCCL_ALLREDUCE] = MESH | PAIRS,
	[HCCL_REDUCE_TO] = MESH | PAIRS,
	[HCCL_REDUCESCATTER] = MESH | PAIRS,
	[HCCL_REDUCESCATTERV] = MESH | PAIRS,
	[HCCL_ALLGATHER] = MESH | PAIRS,
	[HCCL_ALLGATHERV] = MESH | PAIRS,
	[HCCL_BROADCAST] = MESH | PAIRS,
	[HCCL_SCATTER] = MESH,
	[HCCL_ALLTOALL] = MESH | HAS(PAIRWISE),
	[HCCL_ALLTOALLV] = MESH | HAS(PAIRWISE),
	[HCCL_BARRIER] = HAS(ONE_LANE),
};

static bool (*const write[HCCL_ALGOS])(struct hccl_plan *p, const struct hccl_shape *s) = {
	[HCCL_ALGO_ONE_LANE] = hccl_mesh_lane,
	[HCCL_ALGO_MESH_ONE] = hccl_mesh_one,
	[HCCL_ALGO_MESH_TWO] = hccl_mesh_two,
	[HCCL_ALGO_RING] = hccl_ring,
	[HCCL_ALGO_RHD] = hccl_rhd,
	[HCCL_ALGO_NHR] = hccl_nhr,
	[HCCL_ALGO_NB] = hccl_nb,
	[HCCL_ALGO_PAIRWISE] = hccl_pairwise,
	[HCCL_ALGO_HIER] = hccl_hier,
};

_Static_assert(ARRAY_SIZE(hccl_algo_names) == HCCL_ALGOS, "each has a name");
_Static_assert(ARRAY_SIZE(hccl_coll_names) == HCCL_COLLS + 1, "each has a name, and messages do");

const char *hccl_algo_name(enum hccl_algo algo)
{
	return algo < HCCL_ALGOS ? hccl_algo_names[algo] : "unknown";
}

const char *hccl_coll_name(enum hccl_coll coll)
{
	return coll < HCCL_COLLS ? hccl_coll_names[coll] : "unknown";
}

bool hccl_plan_has(enum hccl_coll coll, enum hccl_algo algo)
{
	return coll < HCCL_COLLS && algo < HCCL_ALGOS && has[coll] & 1u << algo;
}

/* ---- What AUTO means ----------------------------------------------------------------- */

static bool one_server(const struct hccl_shape *s)
{
	if (s->server)
		for (u32 r = 1; r < s->ranks; r++)
			if (s->server[r] != s->server[0])
				return false;
	return true;
}

/*
 * Two cpus do what lanes there are, a step costs about as much as 3000 bytes that are in a
 * cache: is one cpu with fewer steps, but all the bytes, done sooner?
 */
#define STEP_BYTES	3000u

static bool one_is_faster(u64 steps, u64 lanes_steps, u64 bytes)
{
	return steps * STEP_BYTES + bytes <= (lanes_steps * STEP_BYTES + bytes) / 2;
}

/* Is it so little that one lane had better do it all? */
static bool tiny(const struct hccl_shape *s)
{
	u64 n = s->ranks, bytes = hccl_bytes(s);

	switch (s->coll) {
	case HCCL_ALLREDUCE:
		return hccl_mesh_lanes(s, (2 * n + 1) * bytes) == 1;
	case HCCL_REDUCE_TO:
	case HCCL_BROADCAST:
		return hccl_mesh_lanes(s, n * bytes) == 1;
	case HCCL_ALLGATHER:
		return one_is_faster(2 * n - 1, n * n, n * n * bytes);
	case HCCL_SCATTER:
		return hccl_mesh_lanes(s, n * bytes) == 1;
	case HCCL_BARRIER:
		return true;
	default:	/* as many steps for one as for all */
		return false;
	}
}

static enum hccl_algo choose_flat(const struct hccl_shape *s)
{
	return s->ranks == 1 || tiny(s) ? HCCL_ALGO_ONE_LANE : HCCL_ALGO_MESH_TWO;
}

enum hccl_algo hccl_plan_choose(const struct hccl_shape *s)
{
	enum hccl_algo flat = choose_flat(s);

	return flat == HCCL_ALGO_ONE_LANE || one_server(s) ? flat : HCCL_ALGO_HIER;
}

/* ---- Plans --------------------------------------------------------------------------- */

static void forget(struct hccl_plan *p)
{
	for (u32 r = 0; r < p->ranks; r++)
		p->lane[r].n = 0;
	p->waits = false;
	p->bytes = 0;
}

struct hccl_plan *hccl_plan_make(const struct hccl_shape *s, enum hccl_algo algo)
{
	struct hccl_plan *p;

	if (!s->ranks || s->ranks > HCCL_MAX_RANKS || s->ccl_bytes < HCCL_MIN_CCL ||
	    s->coll >= HCCL_COLLS || !s->elem || s->elem > HCCL_MIN_CCL)
		return NULL;
	p = calloc(1, sizeof(*p) + s->ranks * sizeof(p->lane[0]));
	if (!p)
		return NULL;
	p->ranks = s->ranks;
	p->chunk = s->chunk ? s->chunk : HCCL_CHUNK;
	p->chunk -= p->chunk % s->elem;
	p->chunk = p->chunk ? p->chunk : s->elem;
	if (s->ranks == 1 || !hccl_plan_has(s->coll, algo) ||
	    (algo == HCCL_ALGO_HIER && one_server(s)))
		algo = hccl_plan_choose(s);
	p->algo = algo;
	if (!write[algo](p, s)) {		/* it wants a larger CCL buffer */
		forget(p);
		p->algo = choose_flat(s);
		write[p->algo](p, s);
	}
	if (p->failed) {
		hccl_plan_free(p);
		return NULL;
	}
	return p;
}

void hccl_plan_free(struct hccl_plan *p)
{
	if (!p)
		return;
	for (u32 r = 0; r < p->ranks; r++)
		free(p->lane[r].step);
	free(p);
}
