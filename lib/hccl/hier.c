// SPDX-License-Identifier: MIT
/*
 * Hierarchical: inside a server everybody with everybody, as in mesh.c; between servers by a
 * pair (algo.h), among those who have the same number in their servers, a team each.
 *
 *	AllReduce	intra reduce-scatter, inter scatter + gather, intra gather
 *	Reduce		intra reduce-scatter, inter reduce, intra gather at the root
 *	ReduceScatter	inter reduce-scatter, intra reduce-scatter
 *	AllGather	intra gather, inter gather
 *	Broadcast	intra scatter, inter broadcast, intra gather
 *	Scatter		inter: one rank of each server fetches for all; intra: they fetch from it
 *	AlltoAll	intra: who has the number of the receiver collects; inter: receivers fetch
 *
 * There are as many teams as the smallest server has ranks.  Who is in no team gives what it has
 * to one of its server's who is, and gets the result from there.  Bytes between servers: what
 * the pair moves, of a slice per team.  Intra-server steps: those of the mesh.  What needs room
 * goes through CCL, in rounds of as much as fits.
 *
 * Scatter and AlltoAll are in hiermove.c.
 */
#include "hier.h"

/* ---- Who is where -------------------------------------------------------------------- */

void hccl_hier_look(struct hccl_hier *h, struct hccl_plan *p, const struct hccl_shape *s)
{
	hccl_team_all(&h->all, s->ranks);
	h->p = p;
	h->s = s;
	h->servers = 0;
	h->teams = s->ranks;
	for (u32 r = 0; r < s->ranks; r++) {
		u32 i = 0;

		while (i < h->servers && s->server[h->of[i].rank[0]] != s->server[r])
			i++;
		if (i == h->servers) {
			h->servers++;
			h->of[i].n = 0;
			h->of[i].full = HCCL_NOBODY;
		}
		h->server[r] = (u16)i;
		h->local[r] = (u16)h->of[i].n;
		h->of[i].rank[h->of[i].n++] = (u16)r;
	}
	for (u32 i = 0; i < h->servers; i++)
		h->teams = h->of[i].n < h->teams ? h->of[i].n : h->teams;
}

void hccl_hier_team(const struct hccl_hier *h, u32 j, struct hccl_team *team)
{
	team->n = h->servers;
	team->full = HCCL_NOBODY;
	for (u32 i = 0; i < h->servers; i++)
		team->rank[i] = h->of[i].rank[j];
}

/* Waits of @rank for all of its server, or for all of it that are in teams. */
void hccl_hier_wait(const struct hccl_hier *h, u32 rank, bool in_teams, const struct hccl_mark *m)
{
	const struct hccl_team *mine = &h->of[h->server[rank]];

	for (u32 k = 0; k < (in_teams ? h->teams : mine->n); k++)
		hccl_wait_mark(h->p, rank, mine->rank[k], m);
}

static const struct hccl_pair *between_servers(const struct hccl_hier *h)
{
	switch (h->s->inter) {
	case HCCL_ALGO_RING:
		return &hccl_ring_pair;
	case HCCL_ALGO_RHD:
		return &hccl_rhd_pair;
	case HCCL_ALGO_NHR:
		return &hccl_nhr_pair;
	case HCCL_ALGO_NB:
		return &hccl_nb_pair;
	case HCCL_ALGO_ONE_LANE:
	case HCCL_ALGO_MESH_ONE:
	case HCCL_ALGO_MESH_TWO:
		return &hccl_mesh_pair;
	default:	/* halving where it is at its best */
		return h->servers & (h->servers - 1) ? &hccl_nhr_pair : &hccl_rhd_pair;
	}
}

/* ---- AllReduce, Reduce --------------------------------------------------------------- */

/* What of @bytes is the business of team @j. */
static struct hccl_block slice_of(const struct hccl_hier *h, u64 bytes, u32 j)
{
	u64 from = hccl_border(bytes, h->teams, j, h->s->elem);

	return (struct hccl_block){ from, hccl_border(bytes, h->teams, j + 1, h->s->elem) - from };
}

static bool all_reduce(const struct hccl_hier *h, const struct hccl_pair *pair)
{
	u64 chunk = hccl_less(h->p->chunk, hccl_piece(h->s, 1));

	for (u32 j = 0; j < h->teams; j++) {
		struct hccl_block b = slice_of(h, hccl_bytes(h->s), j);
		struct hccl_team team;
		struct hccl_cut cut;
		struct hccl_half half = { h->p, &team, { HCCL_OUT, 0 }, &cut };

		hccl_hier_team(h, j, &team);
		for (u32 i = 0; i < h->servers; i++)
			for (u64 at = 0; at < b.len; at += chunk) {
				u64 len = hccl_less(b.len - at, chunk);
				u32 r = team.rank[i];

				/* OUT may be IN, and IN not the first of the sum */
				hccl_sum(h->p, r, &h->of[i], hccl_ccl(r, 0),
					 (struct hccl_work){ HCCL_IN, b.off + at }, len);
				hccl_copy(h->p, r, hccl_out(r, b.off + at), hccl_ccl(r, 0), len);
			}
		hccl_cut_even(&cut, b.off, b.len, h->servers, h->s->elem);
		pair->scatter(&half);
		pair->gather(&half);
		for (u32 i = 0; i < h->servers; i++)
			hccl_hier_share(h, team.rank[i], HCCL_NOBODY, b);
	}
	return true;
}

/* @rank copies a block of its OUT to the OUT of all of its server, but to @not. */
void hccl_hier_share(const struct hccl_hier *h, u32 rank, u32 not, struct hccl_block b)
{
	const struct hccl_team *mine = &h->of[h->server[rank]];

	for (u64 at = b.off; at < b.off + b.len; at += h->p->chunk)
		hccl_push(h->p, rank, mine, not, hccl_out(rank, at),
			  (struct hccl_work){ HCCL_OUT, at },
			  hccl_less(b.off + b.len - at, h->p->chunk));
}

/* One team's part of a round of Reduce: its slice, from @at on in the user's buffers. */
static void reduce_slice(const struct hccl_hier *h, const struct hccl_pair *pair, u32 j, u64 at,
			 struct hccl_block b)
{
	u32 home = h->server[h->s->root];
	struct hccl_team team;
	struct hccl_cut cut;
	struct hccl_half half = { h->p, &team, { HCCL_CCL, 0 }, &cut };
	struct hccl_mark m;

	hccl_hier_team(h, j, &team);
	for (u32 i = 0; i < h->servers; i++)
		for (u64 done = 0; done < b.len; done += h->p->chunk)
			hccl_sum(h->p, team.rank[i], &h->of[i],
				 hccl_ccl(team.rank[i], b.off + done),
				 (struct hccl_work){ HCCL_IN, at + b.off + done },
				 hccl_less(b.len - done, h->p->chunk));
	hccl_cut_even(&cut, b.off, b.len, h->servers, h->s->elem);
	pair->scatter(&half);
	hccl_mark(h->p, &m);
	for (u32 i = 0; i < h->servers; i++)
		if (i != home)
			hccl_take(&half, &m, (struct hccl_take){
				.kind = HCCL_COPY, .to = home, .from = i, .at = i, .n = 1 });
	hccl_copy(h->p, team.rank[home], hccl_out(h->s->root, at + b.off),
		  hccl_ccl(team.rank[home], b.off), b.len);
}

static bool reduce(const struct hccl_hier *h, const struct hccl_pair *pair)
{
	u64 piece = hccl_piece(h->s, 1), bytes = hccl_bytes(h->s);

	for (u64 at = 0; piece && at < bytes; at += piece) {
		u64 len = hccl_less(bytes - at, piece);

		for (u32 j = 0; j < h->teams; j++)
			reduce_slice(h, pair, j, at, slice_of(h, len, j));
		if (at + piece < bytes)
			hccl_sync(h->p, &h->all);
	}
	return piece;
}

/* ---- ReduceScatter ------------------------------------------------------------------- */

/* Slice i of a team's area: the blocks of all of server i. */
static void cut_by_server(const struct hccl_hier *h, struct hccl_cut *cut, u64 at, u64 piece)
{
	u32 seg = 0;

	for (u32 i = 0; i < h->servers; i++) {
		cut->first[i] = seg;
		for (u32 k = 0; k < h->of[i].n; k++, seg++) {
			u32 r = h->of[i].rank[k];
			struct hccl_block b = hccl_block_of(h->s, r);

			cut->off[seg] = piece ? r * piece : b.off;
			cut->len[seg] = piece ? hccl_round(b, at, piece).len : b.len;
		}
	}
	cut->first[h->servers] = seg;
}

/* Member @j of a server: its own contribution to all, and that of those who are in no team. */
static void take_in(const struct hccl_hier *h, u32 i, u32 j, u64 at, u64 piece)
{
	const struct hccl_team *server = &h->of[i];
	u32 r = server->rank[j];

	for (u32 q = 0; q < h->s->ranks; q++) {
		struct hccl_block b = hccl_round(hccl_block_of(h->s, q), at, piece);

		hccl_copy(h->p, r, hccl_ccl(r, q * piece), hccl_in(r, b.off), b.len);
		for (u32 k = j + h->teams; k < server->n; k += h->teams)
			hccl_reduce(h->p, r, hccl_ccl(r, q * piece),
				    hccl_in(server->rank[k], b.off), b.len);
	}
}

static void reduce_scatter_round(const struct hccl_hier *h, const struct hccl_pair *pair, u64 at,
				 u64 piece)
{
	struct hccl_team team;
	struct hccl_cut cut;
	struct hccl_half half = { h->p, &team, { HCCL_CCL, 0 }, &cut };
	struct hccl_mark m;

	cut_by_server(h, &cut, at, piece);
	for (u32 j = 0; j < h->teams; j++) {
		hccl_hier_team(h, j, &team);
		for (u32 i = 0; i < h->servers; i++)
			take_in(h, i, j, at, piece);
		pair->scatter(&half);
	}
	hccl_mark(h->p, &m);
	for (u32 r = 0; r < h->s->ranks; r++) {
		struct hccl_team teamed = h->of[h->server[r]];

		teamed.n = h->teams;
		hccl_hier_wait(h, r, true, &m);
		hccl_sum(h->p, r, &teamed, hccl_out(r, at),
			 (struct hccl_work){ HCCL_CCL, r * piece },
			 hccl_round(hccl_block_of(h->s, r), at, piece).len);
	}
}

static bool reduce_scatter(const struct hccl_hier *h, const struct hccl_pair *pair)
{
	u64 piece = hccl_piece(h->s, h->s->ranks), longest = hccl_longest(h->s);

	for (u64 at = 0; piece && at < longest; at += piece) {
		reduce_scatter_round(h, pair, at, piece);
		if (at + piece < longest)
			hccl_sync(h->p, &h->all);
	}
	return piece;
}

/* ---- AllGather ----------------------------------------------------------------------- */

/* Who is in no team gets from one who is all that comes from other servers. */
static void gather_rest(const struct hccl_hier *h, u32 rank, const struct hccl_mark *m)
{
	u32 i = h->server[rank], from = h->of[i].rank[h->local[rank] % h->teams];

	hccl_wait_mark(h->p, rank, from, m);
	for (u32 q = 0; q < h->s->ranks; q++) {
		struct hccl_block b = hccl_block_of(h->s, q);

		if (h->server[q] != i)
			hccl_copy(h->p, rank, hccl_out(rank, b.off), hccl_out(from, b.off), b.len);
	}
}

static bool all_gather(const struct hccl_hier *h, const struct hccl_pair *pair)
{
	struct hccl_team team;
	struct hccl_cut cut;
	struct hccl_half half = { h->p, &team, { HCCL_OUT, 0 }, &cut };
	struct hccl_mark m;

	for (u32 r = 0; r < h->s->ranks; r++) {
		struct hccl_block b = hccl_block_of(h->s, r);

		for (u64 at = 0; at < b.len; at += h->p->chunk)
			hccl_push(h->p, r, &h->of[h->server[r]], HCCL_NOBODY, hccl_in(r, at),
				  (struct hccl_work){ HCCL_OUT, b.off + at },
				  hccl_less(b.len - at, h->p->chunk));
	}
	for (u32 i = 0; i < h->servers; i++)
		hccl_sync(h->p, &h->of[i]);
	cut_by_server(h, &cut, 0, 0);
	for (u32 j = 0; j < h->teams; j++) {
		hccl_hier_team(h, j, &team);
		pair->gather(&half);
	}
	hccl_mark(h->p, &m);
	for (u32 r = 0; r < h->s->ranks; r++)
		if (h->local[r] >= h->teams)
			gather_rest(h, r, &m);
	return true;
}

/* ---- Broadcast ----------------------------------------------------------------------- */

static bool broadcast(const struct hccl_hier *h, const struct hccl_pair *pair)
{
	u32 root = h->s->root, home = h->server[root];

	for (u32 j = 0; j < h->teams; j++) {
		struct hccl_block b = slice_of(h, hccl_bytes(h->s), j);
		struct hccl_team team;
		struct hccl_cut cut;
		struct hccl_half half = { h->p, &team, { HCCL_OUT, 0 }, &cut };
		struct hccl_mark m;
		u32 from;

		hccl_hier_team(h, j, &team);
		from = team.rank[home];
		hccl_copy(h->p, from, hccl_out(from, b.off), hccl_out(root, b.off), b.len);
		hccl_mark(h->p, &m);
		hccl_cut_even(&cut, b.off, b.len, h->servers, h->s->elem);
		for (u32 i = 0; i < h->servers; i++)
			if (i != home)
				hccl_take(&half, &m, (struct hccl_take){
					.kind = HCCL_COPY, .to = i, .from = home,
					.at = i, .n = 1 });
		team.full = home;
		pair->gather(&half);
		for (u32 i = 0; i < h->servers; i++)
			hccl_hier_share(h, team.rank[i], root, b);
	}
	return true;
}

bool hccl_hier(struct hccl_plan *p, const struct hccl_shape *s)
{
	struct hccl_hier h;

	hccl_hier_look(&h, p, s);
	switch (s->coll) {
	case HCCL_ALLREDUCE:
		return all_reduce(&h, between_servers(&h));
	case HCCL_REDUCE_TO:
		return reduce(&h, between_servers(&h));
	case HCCL_REDUCESCATTER:
	case HCCL_REDUCESCATTERV:
		return reduce_scatter(&h, between_servers(&h));
	case HCCL_ALLGATHER:
	case HCCL_ALLGATHERV:
		return all_gather(&h, between_servers(&h));
	case HCCL_BROADCAST:
		return broadcast(&h, between_servers(&h));
	case HCCL_SCATTER:
		return hccl_hier_scatter(&h);
	case HCCL_ALLTOALL:
	case HCCL_ALLTOALLV:
		return hccl_hier_all_to_all(&h);
	default:
		return false;
	}
}
