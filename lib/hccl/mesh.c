// SPDX-License-Identifier: MIT
/*
 * Mesh: everybody reaches everybody at once.  Bytes go from the user's buffers to the user's
 * buffers; n ranks, B bytes of the longest block or, where all have the same, of the payload.
 *
 * two-shot	A lane combines its slice out of all IN and hands it out to all OUT, chunk by
 *		chunk, so that a chunk is in a cache from its first read to its last write.
 *		No lane touches another's bytes: no wait at all.  AllReduce: (2n + 1) B bytes.
 * one-shot	Every rank fetches all there is and combines it itself, as devices do that wait
 *		for nobody but once: n (n + 1) B bytes for an AllReduce, and as many rounds as
 *		the CCL buffer asks for.  What is one step anyway (ReduceScatter, AllGather,
 *		Scatter, AlltoAll) is the same program as two-shot.
 * one lane	One rank does it all: fewest steps (AllReduce, AllGather: 2n - 1), no company.
 *
 * Sums are made in rank order, ((in_0 + in_1) + in_2) ..., whoever makes them: the three give
 * the same bits.  That, and in place, is why a lane adds up in its CCL: OUT may be its IN,
 * which is not the first.  Needed of CCL: a chunk; one-shot AllReduce: what there is.
 */
#include "algo.h"

static u64 chunk_of(const struct hccl_plan *p, const struct hccl_shape *s)
{
	return hccl_less(p->chunk, hccl_piece(s, 1));
}

static const struct hccl_team *everybody(struct hccl_team *team, const struct hccl_shape *s)
{
	hccl_team_all(team, s->ranks);
	return team;
}

/* A power of two, or all: lanes are equally long, and so are then the shares of few cpus. */
u32 hccl_mesh_lanes(const struct hccl_shape *s, u64 work)
{
	u64 grain = s->grain ? s->grain : HCCL_GRAIN;
	u32 n = 1;

	if (work / grain >= s->ranks)
		return s->ranks;
	while (n * 2 <= s->ranks && (n * 2 * grain <= work || (n == 1 && grain / 4 <= work)))
		n *= 2;
	return n;
}

/* ---- Sums ---------------------------------------------------------------------------- */

/*
 * Lane of @rank: @len bytes from @in on, summed over all, go to @out at @to, or at all if that
 * is HCCL_NOBODY.  Rank 0 may add up in place, if that is where they go.
 */
static void sum_out(struct hccl_plan *p, const struct hccl_shape *s, u32 rank, u32 to, u64 in,
		    u64 out, u64 len)
{
	u64 chunk = chunk_of(p, s);
	struct hccl_team team;
	bool own = !rank && (!to || to == HCCL_NOBODY);

	everybody(&team, s);
	for (u64 at = 0; at < len; at += chunk) {
		struct hccl_place acc = own ? hccl_out(0, out + at) : hccl_ccl(rank, 0);
		u64 part = hccl_less(len - at, chunk);

		hccl_sum(p, rank, &team, acc, (struct hccl_work){ HCCL_IN, in + at }, part);
		if (to == HCCL_NOBODY)
			hccl_push(p, rank, &team, own ? rank : HCCL_NOBODY, acc,
				  (struct hccl_work){ HCCL_OUT, out + at }, part);
		else if (!own)
			hccl_copy(p, rank, hccl_out(to, out + at), acc, part);
	}
}

/* AllReduce; Reduce, if @to is somebody. */
static void reduce_slices(struct hccl_plan *p, const struct hccl_shape *s, u32 lanes, u32 to)
{
	u32 first = to == HCCL_NOBODY ? 0 : to;
	u64 bytes = hccl_bytes(s);

	for (u32 i = 0; i < lanes; i++) {
		u64 from = hccl_border(bytes, lanes, i, s->elem);
		u64 end = hccl_border(bytes, lanes, i + 1, s->elem);

		sum_out(p, s, (first + i) % s->ranks, to, from, from, end - from);
	}
}

static void reduce_blocks(struct hccl_plan *p, const struct hccl_shape *s, bool alone)
{
	for (u32 r = 0; r < s->ranks; r++) {
		struct hccl_block b = hccl_block_of(s, r);

		sum_out(p, s, alone ? 0 : r, r, b.off, 0, b.len);
	}
}

/* OUT may be an IN that others have yet to read: all have summed up before anybody writes. */
static void reduce_at_all(struct hccl_plan *p, const struct hccl_shape *s)
{
	u64 round = hccl_piece(s, 1), bytes = hccl_bytes(s);
	struct hccl_team team;
	struct hccl_mark m;

	everybody(&team, s);
	for (u64 at = 0; at < bytes; at += round) {
		u64 len = hccl_less(bytes - at, round);

		for (u32 r = 0; r < s->ranks; r++)
			hccl_sum(p, r, &team, hccl_ccl(r, 0), (struct hccl_work){ HCCL_IN, at },
				 len);
		hccl_mark(p, &m);
		for (u32 r = 0; r < s->ranks; r++) {
			for (u32 q = 0; q < s->ranks; q++)
				hccl_wait_mark(p, r, q, &m);
			hccl_copy(p, r, hccl_out(r, at), hccl_ccl(r, 0), len);
		}
	}
}

/* ---- Copies -------------------------------------------------------------------------- */

static void gather_push(struct hccl_plan *p, const struct hccl_shape *s)
{
	struct hccl_team team;

	everybody(&team, s);
	for (u32 r = 0; r < s->ranks; r++) {
		struct hccl_block b = hccl_block_of(s, r);

		for (u64 at = 0; at < b.len; at += p->chunk)
			hccl_push(p, r, &team, HCCL_NOBODY, hccl_in(r, at),
				  (struct hccl_work){ HCCL_OUT, b.off + at },
				  hccl_less(b.len - at, p->chunk));
	}
}

/* All into OUT of rank 0, from there to the others; a V form may have gaps, which stay. */
static void gather_alone(struct hccl_plan *p, const struct hccl_shape *s)
{
	struct hccl_team team;
	u64 off = 0, len = 0;

	everybody(&team, s);
	for (u32 r = 0; r < s->ranks; r++) {
		struct hccl_block b = hccl_block_of(s, r);

		hccl_copy(p, 0, hccl_out(0, b.off), hccl_in(r, 0), b.len);
	}
	for (u32 r = 0; r < s->ranks; r++) {
		struct hccl_block b = hccl_block_of(s, r);

		if (b.off != off + len) {
			hccl_push(p, 0, &team, 0, hccl_out(0, off),
				  (struct hccl_work){ HCCL_OUT, off }, len);
			off = b.off;
			len = 0;
		}
		len += b.len;
	}
	hccl_push(p, 0, &team, 0, hccl_out(0, off), (struct hccl_work){ HCCL_OUT, off }, len);
}

/* A lane fetches a chunk of its slice and hands it out; the root has it already. */
static void broadcast_slices(struct hccl_plan *p, const struct hccl_shape *s, u32 lanes)
{
	u64 bytes = hccl_bytes(s);

	for (u32 i = 0; i < lanes; i++) {
		u64 at = hccl_border(bytes, lanes, i, s->elem);
		u64 end = hccl_border(bytes, lanes, i + 1, s->elem);
		u32 rank = (s->root + i) % s->ranks;

		for (; at < end; at += p->chunk) {
			u64 len = hccl_less(end - at, p->chunk);

			hccl_copy(p, rank, hccl_out(rank, at), hccl_out(s->root, at), len);
			for (u32 q = 0; q < s->ranks; q++)
				if (q != s->root && q != rank)
					hccl_copy(p, rank, hccl_out(q, at), hccl_out(rank, at),
						  len);
		}
	}
}

static void broadcast_fetch(struct hccl_plan *p, const struct hccl_shape *s)
{
	for (u32 r = 0; r < s->ranks; r++)
		hccl_copy(p, r, hccl_out(r, 0), hccl_out(s->root, 0), hccl_bytes(s));
}

static void scatter(struct hccl_plan *p, const struct hccl_shape *s, bool alone)
{
	for (u32 r = 0; r < s->ranks; r++)
		hccl_copy(p, alone ? s->root : r, hccl_out(r, 0),
			  hccl_in(s->root, r * hccl_bytes(s)), hccl_bytes(s));
}

/* What neither comes from rank 0 nor goes to it has to pass through its memory. */
static void all_to_all_alone(struct hccl_plan *p, const struct hccl_shape *s)
{
	u64 piece = hccl_piece(s, 1);

	for (u32 from = 0; from < s->ranks; from++)
		for (u32 to = 0; to < s->ranks; to++) {
			struct hccl_place src = hccl_in(from, hccl_send_off(s, from, to));
			struct hccl_place dst = hccl_out(to, hccl_recv_off(s, from, to));
			u64 bytes = hccl_between(s, from, to);

			if (!from || !to) {
				hccl_copy(p, 0, dst, src, bytes);
				continue;
			}
			for (u64 at = 0; at < bytes; at += piece) {
				u64 len = hccl_less(bytes - at, piece);

				hccl_copy(p, 0, hccl_ccl(0, 0), hccl_plus(src, at), len);
				hccl_copy(p, 0, hccl_plus(dst, at), hccl_ccl(0, 0), len);
			}
		}
}

/* ---- By name ------------------------------------------------------------------------- */

bool hccl_mesh_lane(struct hccl_plan *p, const struct hccl_shape *s)
{
	switch (s->coll) {
	case HCCL_ALLREDUCE:
		reduce_slices(p, s, 1, HCCL_NOBODY);
		return true;
	case HCCL_REDUCE_TO:
		reduce_slices(p, s, 1, s->root);
		return true;
	case HCCL_REDUCESCATTER:
	case HCCL_REDUCESCATTERV:
		reduce_blocks(p, s, true);
		return true;
	case HCCL_ALLGATHER:
	case HCCL_ALLGATHERV:
		gather_alone(p, s);
		return true;
	case HCCL_BROADCAST:
		broadcast_slices(p, s, 1);
		return true;
	case HCCL_SCATTER:
		scatter(p, s, true);
		return true;
	case HCCL_ALLTOALL:
	case HCCL_ALLTOALLV:
		all_to_all_alone(p, s);
		return true;
	default:
		return s->coll == HCCL_BARRIER;
	}
}

bool hccl_mesh_two(struct hccl_plan *p, const struct hccl_shape *s)
{
	u64 work = (2ull * s->ranks + 1) * hccl_bytes(s);

	switch (s->coll) {
	case HCCL_ALLREDUCE:
		reduce_slices(p, s, hccl_mesh_lanes(s, work), HCCL_NOBODY);
		return true;
	case HCCL_REDUCE_TO:
		reduce_slices(p, s, hccl_mesh_lanes(s, work / 2), s->root);
		return true;
	case HCCL_REDUCESCATTER:
	case HCCL_REDUCESCATTERV:
		reduce_blocks(p, s, false);
		return true;
	case HCCL_ALLGATHER:
	case HCCL_ALLGATHERV:
		gather_push(p, s);
		return true;
	case HCCL_BROADCAST:
		broadcast_slices(p, s, hccl_mesh_lanes(s, work / 2));
		return true;
	case HCCL_SCATTER:
		scatter(p, s, false);
		return true;
	case HCCL_ALLTOALL:
	case HCCL_ALLTOALLV:
		hccl_fetch_all(p, s, false);
		return true;
	default:
		return false;
	}
}

bool hccl_mesh_one(struct hccl_plan *p, const struct hccl_shape *s)
{
	switch (s->coll) {
	case HCCL_ALLREDUCE:
		reduce_at_all(p, s);
		return true;
	case HCCL_REDUCE_TO:
		reduce_slices(p, s, 1, s->root);
		return true;
	case HCCL_BROADCAST:
		broadcast_fetch(p, s);
		return true;
	default:
		return hccl_mesh_two(p, s);
	}
}

/* ---- As a pair: between servers ------------------------------------------------------- */

static void mesh_scatter(const struct hccl_half *h)
{
	u32 n = h->team->n;
	struct hccl_mark m;

	hccl_mark(h->p, &m);
	for (u32 i = 0; i < n; i++)
		for (u32 k = 1; k < n; k++)
			hccl_take(h, &m, (struct hccl_take){
				.kind = HCCL_REDUCE, .to = i, .from = (i + k) % n,
				.at = i, .n = 1 });
}

static void mesh_gather(const struct hccl_half *h)
{
	u32 n = h->team->n;
	struct hccl_mark m;

	hccl_mark(h->p, &m);
	for (u32 i = 0; i < n; i++)
		for (u32 k = 1; k < n; k++)
			hccl_take(h, &m, (struct hccl_take){
				.kind = HCCL_COPY, .to = i, .from = (i + k) % n,
				.at = i + k, .n = 1 });
}

const struct hccl_pair hccl_mesh_pair = { mesh_scatter, mesh_gather };
