/* SPDX-License-Identifier: MIT */
/*
 * What the programs of algorithms are written with: teams, cuts, marks, and the two
 * halves of which most of them are made.
 *
 * Ring, halving and doubling, NHR and Bruck differ in who talks to whom.  Each is a
 * pair of halves over a work area that lies at the same place at all members of a team:
 *   scatter (reduce-scatter): every member's area holds what it contributes; after it
 *	the area of member i holds the result in slice i, and leftovers elsewhere;
 *   gather (all-gather): member i's area holds slice i; after it all hold all.
 * compose.c makes the collectives of a pair, hier.c those over servers.
 */
#ifndef HCCL_ALGO_H
#define HCCL_ALGO_H

#include "plan.h"

#define HCCL_NOBODY	HCCL_MAX_RANKS

struct hccl_team {
	u32 n;
	u32 full;		/* this member has all slices already; or HCCL_NOBODY */
	u16 rank[HCCL_MAX_RANKS];
};

/* Slice i of an area: the segments first[i] to first[i + 1]. */
struct hccl_cut {
	u32 first[HCCL_MAX_RANKS + 1];
	u64 off[HCCL_MAX_RANKS], len[HCCL_MAX_RANKS];
};

struct hccl_work {
	u16 area;
	u64 off;
};

/* How far all lanes were at a moment of the writing. */
struct hccl_mark {
	u32 at[HCCL_MAX_RANKS];
};

struct hccl_half {
	struct hccl_plan *p;
	const struct hccl_team *team;
	struct hccl_work work;
	const struct hccl_cut *cut;
};

struct hccl_pair {
	void (*scatter)(const struct hccl_half *h);
	void (*gather)(const struct hccl_half *h);
};

extern const struct hccl_pair hccl_ring_pair, hccl_rhd_pair, hccl_nhr_pair, hccl_nb_pair,
	hccl_mesh_pair;

/* ---- Programs: false if the CCL buffer is too small ---------------------------------- */

bool hccl_mesh_lane(struct hccl_plan *p, const struct hccl_shape *s);
bool hccl_mesh_one(struct hccl_plan *p, const struct hccl_shape *s);
bool hccl_mesh_two(struct hccl_plan *p, const struct hccl_shape *s);
bool hccl_ring(struct hccl_plan *p, const struct hccl_shape *s);
bool hccl_rhd(struct hccl_plan *p, const struct hccl_shape *s);
bool hccl_nhr(struct hccl_plan *p, const struct hccl_shape *s);
bool hccl_nb(struct hccl_plan *p, const struct hccl_shape *s);
bool hccl_pairwise(struct hccl_plan *p, const struct hccl_shape *s);
bool hccl_hier(struct hccl_plan *p, const struct hccl_shape *s);
bool hccl_compose(struct hccl_plan *p, const struct hccl_shape *s, const struct hccl_pair *pair);
/* AlltoAll (V) by lanes that fetch, a peer after the other; @in_step: with waits between. */
void hccl_fetch_all(struct hccl_plan *p, const struct hccl_shape *s, bool in_step);
/* How many lanes are worth starting for @work bytes of steps. */
u32 hccl_mesh_lanes(const struct hccl_shape *s, u64 work);

/* ---- write.c: what programs are written with ------------------------------------------ */

void hccl_mark(const struct hccl_plan *p, struct hccl_mark *m);
/* The lane of @rank goes on when @peer is where the mark saw it. */
void hccl_wait_mark(struct hccl_plan *p, u32 rank, u32 peer, const struct hccl_mark *m);
/* All members have come here. */
void hccl_sync(struct hccl_plan *p, const struct hccl_team *team);

void hccl_team_all(struct hccl_team *team, u32 ranks);

/* @bytes from @off on in @n nearly equal slices, on borders of cache lines if there are so many */
void hccl_cut_even(struct hccl_cut *cut, u64 off, u64 bytes, u32 n, u32 elem);
/* Border @i of them, from 0. */
u64 hccl_border(u64 bytes, u32 n, u32 i, u32 elem);

/*
 * After @m: member @to takes slice (@at + k * @stride) modulo the team, for all k below
 * @n, out of the area of @from, and puts it to the same place of its own, or adds it.
 */
struct hccl_take {
	enum hccl_step_kind kind;
	u32 to, from;
	u32 at, n, stride;
};

void hccl_take(const struct hccl_half *h, const struct hccl_mark *m, struct hccl_take t);

/* What one rank sends or gets of a collective that has a block for each rank, in bytes. */
struct hccl_block {
	u64 off;
	u64 len;
};

struct hccl_block hccl_block_of(const struct hccl_shape *s, u32 rank);
/* Of AlltoAll (V): in the sender's IN, and in the receiver's OUT. */
u64 hccl_send_off(const struct hccl_shape *s, u32 from, u32 to);
u64 hccl_recv_off(const struct hccl_shape *s, u32 from, u32 to);
u64 hccl_between(const struct hccl_shape *s, u32 from, u32 to);
/* The part of a block that is moved in round @at, if a round moves @piece. */
struct hccl_block hccl_round(struct hccl_block b, u64 at, u64 piece);
/* The largest of all blocks. */
u64 hccl_longest(const struct hccl_shape *s);
/* One of @parts of the CCL buffer, in whole elements; 0: there is no room. */
u64 hccl_piece(const struct hccl_shape *s, u64 parts);

/* Lane of @rank: dst = the sum over the team, in its order, of src at each of them. */
void hccl_sum(struct hccl_plan *p, u32 rank, const struct hccl_team *team, struct hccl_place dst,
	      struct hccl_work src, u64 bytes);
/* Lane of @rank: copy @bytes at @src to the same place of all others of the team, but @not. */
void hccl_push(struct hccl_plan *p, u32 rank, const struct hccl_team *team, u32 not,
	       struct hccl_place src, struct hccl_work dst, u64 bytes);

static inline struct hccl_place hccl_place(struct hccl_work w, u32 rank, u64 off)
{
	return (struct hccl_place){ .rank = (u16)rank, .area = w.area, .off = w.off + off };
}

static inline struct hccl_place hccl_plus(struct hccl_place at, u64 off)
{
	at.off += off;
	return at;
}

static inline u64 hccl_less(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 hccl_bytes(const struct hccl_shape *s)
{
	return s->count * s->elem;
}

#endif
