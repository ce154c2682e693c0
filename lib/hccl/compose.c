// SPDX-License-Identifier: MIT
/*
 * Collectives made of a pair, scatter and gather (algo.h).
 *
 *	AllReduce	scatter, gather, both in OUT: no other memory, and a pass to begin with
 *	ReduceScatter	scatter in CCL, since nobody has room for partial sums
 *	Reduce		the same, then everybody hands its slice to the root
 *	AllGather	gather in OUT
 *	Broadcast	everybody fetches its slice from the root; gather in OUT
 *
 * What goes through CCL goes in rounds of as much as fits.  Sums are made in an order that
 * the ranks alone decide: the same bits each time, but not those of another algorithm.
 */
#include "algo.h"

static void all_reduce(const struct hccl_half *h, const struct hccl_shape *s,
		       const struct hccl_pair *pair)
{
	for (u32 r = 0; r < s->ranks; r++)
		hccl_copy(h->p, r, hccl_out(r, 0), hccl_in(r, 0), hccl_bytes(s));
	pair->scatter(h);
	pair->gather(h);
}

static void all_gather(const struct hccl_half *h, const struct hccl_shape *s,
		       const struct hccl_pair *pair)
{
	for (u32 r = 0; r < s->ranks; r++)
		hccl_copy(h->p, r, hccl_out(r, h->cut->off[r]), hccl_in(r, 0), h->cut->len[r]);
	pair->gather(h);
}

static void broadcast(const struct hccl_half *h, const struct hccl_shape *s,
		      const struct hccl_pair *pair)
{
	for (u32 r = 0; r < s->ranks; r++)
		hccl_copy(h->p, r, hccl_out(r, h->cut->off[r]), hccl_out(s->root, h->cut->off[r]),
			  h->cut->len[r]);
	pair->gather(h);
}

static bool reduce_scatter(struct hccl_half *h, const struct hccl_shape *s, struct hccl_cut *cut,
			   const struct hccl_pair *pair)
{
	u64 piece = hccl_piece(s, s->ranks), longest = hccl_longest(s);

	if (!piece)
		return false;
	cut->first[0] = 0;
	for (u64 at = 0; at < longest; at += piece) {
		for (u32 c = 0; c < s->ranks; c++) {
			struct hccl_block b = hccl_round(hccl_block_of(s, c), at, piece);

			cut->first[c + 1] = c + 1;
			cut->off[c] = c * piece;
			cut->len[c] = b.len;
			for (u32 r = 0; r < s->ranks; r++)
				hccl_copy(h->p, r, hccl_ccl(r, c * piece), hccl_in(r, b.off),
					  b.len);
		}
		pair->scatter(h);
		for (u32 r = 0; r < s->ranks; r++)
			hccl_copy(h->p, r, hccl_out(r, at), hccl_ccl(r, r * piece), cut->len[r]);
		if (at + piece < longest)
			hccl_sync(h->p, h->team);
	}
	return true;
}

static bool reduce(struct hccl_half *h, const struct hccl_shape *s, struct hccl_cut *cut,
		   const struct hccl_pair *pair)
{
	u64 piece = hccl_piece(s, 1), bytes = hccl_bytes(s);

	if (!piece)
		return false;
	for (u64 at = 0; at < bytes; at += piece) {
		u64 len = hccl_less(bytes - at, piece);

		hccl_cut_even(cut, 0, len, s->ranks, s->elem);
		for (u32 r = 0; r < s->ranks; r++)
			hccl_copy(h->p, r, hccl_ccl(r, 0), hccl_in(r, at), len);
		pair->scatter(h);
		for (u32 r = 0; r < s->ranks; r++)
			hccl_copy(h->p, r, hccl_out(s->root, at + cut->off[r]),
				  hccl_ccl(r, cut->off[r]), cut->len[r]);
		if (at + piece < bytes)
			hccl_sync(h->p, h->team);
	}
	return true;
}

bool hccl_compose(struct hccl_plan *p, const struct hccl_shape *s, const struct hccl_pair *pair)
{
	struct hccl_team team;
	struct hccl_cut cut;
	struct hccl_half h = { p, &team, { HCCL_OUT, 0 }, &cut };

	hccl_team_all(&team, s->ranks);
	switch (s->coll) {
	case HCCL_ALLREDUCE:
		hccl_cut_even(&cut, 0, hccl_bytes(s), s->ranks, s->elem);
		all_reduce(&h, s, pair);
		return true;
	case HCCL_BROADCAST:
		team.full = s->root;
		hccl_cut_even(&cut, 0, hccl_bytes(s), s->ranks, s->elem);
		broadcast(&h, s, pair);
		return true;
	case HCCL_ALLGATHER:
	case HCCL_ALLGATHERV:
		cut.first[0] = 0;
		for (u32 r = 0; r < s->ranks; r++) {
			struct hccl_block b = hccl_block_of(s, r);

			cut.first[r + 1] = r + 1;
			cut.off[r] = b.off;
			cut.len[r] = b.len;
		}
		all_gather(&h, s, pair);
		return true;
	case HCCL_REDUCE_TO:
		h.work.area = HCCL_CCL;
		return reduce(&h, s, &cut, pair);
	case HCCL_REDUCESCATTER:
	case HCCL_REDUCESCATTERV:
		h.work.area = HCCL_CCL;
		return reduce_scatter(&h, s, &cut, pair);
	default:
		return false;
	}
}
