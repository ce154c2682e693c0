// SPDX-License-Identifier: MIT
/*
 * What programs of algorithms are written with: marks, cuts, blocks, rounds.
 */
#include <string.h>
#include "algo.h"

#define LINE	64u

/* ---- Order --------------------------------------------------------------------------- */

void hccl_mark(const struct hccl_plan *p, struct hccl_mark *m)
{
	for (u32 r = 0; r < p->ranks; r++)
		m->at[r] = p->lane[r].n;
}

void hccl_wait_mark(struct hccl_plan *p, u32 rank, u32 peer, const struct hccl_mark *m)
{
	hccl_wait_for(p, rank, peer, m->at[peer]);
}

/* Dissemination: after wait k a lane knows of the 2^(k+1) - 1 before it.  log2(n) waits. */
void hccl_sync(struct hccl_plan *p, const struct hccl_team *team)
{
	struct hccl_mark m;

	for (u32 d = 1; d < team->n; d *= 2) {
		hccl_mark(p, &m);
		for (u32 i = 0; i < team->n; i++)
			hccl_wait_mark(p, team->rank[i], team->rank[(i + team->n - d) % team->n],
				       &m);
	}
}

/* ---- Teams and cuts ------------------------------------------------------------------ */

void hccl_team_all(struct hccl_team *team, u32 ranks)
{
	team->n = ranks;
	team->full = HCCL_NOBODY;
	for (u32 i = 0; i < ranks; i++)
		team->rank[i] = (u16)i;
}

u64 hccl_border(u64 bytes, u32 n, u32 i, u32 elem)
{
	u64 unit = LINE % elem ? elem : LINE;

	/* So few that most would have nothing to do: element by element. */
	if (bytes < unit * n)
		unit = elem;
	return hccl_less(hccl_slice((bytes + unit - 1) / unit, n, i) * unit, bytes);
}

void hccl_cut_even(struct hccl_cut *cut, u64 off, u64 bytes, u32 n, u32 elem)
{
	cut->first[0] = 0;
	for (u32 i = 0; i < n; i++) {
		u64 from = hccl_border(bytes, n, i, elem);

		cut->first[i + 1] = i + 1;
		cut->off[i] = off + from;
		cut->len[i] = hccl_border(bytes, n, i + 1, elem) - from;
	}
}

/* Segments that follow each other are moved together. */
void hccl_take(const struct hccl_half *h, const struct hccl_mark *m, struct hccl_take t)
{
	void (*move)(struct hccl_plan *p, u32 rank, struct hccl_place dst, struct hccl_place src,
		     u64 bytes) = t.kind == HCCL_REDUCE ? hccl_reduce : hccl_copy;
	u32 to = h->team->rank[t.to], from = h->team->rank[t.from];
	u64 off = 0, len = 0;

	if (t.to == h->team->full)
		return;
	hccl_wait_mark(h->p, to, from, m);
	for (u32 k = 0; k < t.n; k++) {
		u32 slice = (t.at + k * t.stride) % h->team->n;

		for (u32 seg = h->cut->first[slice]; seg < h->cut->first[slice + 1]; seg++) {
			if (len && h->cut->off[seg] == off + len) {
				len += h->cut->len[seg];
				continue;
			}
			move(h->p, to, hccl_place(h->work, to, off),
			     hccl_place(h->work, from, off), len);
			off = h->cut->off[seg];
			len = h->cut->len[seg];
		}
	}
	move(h->p, to, hccl_place(h->work, to, off), hccl_place(h->work, from, off), len);
}

/* ---- Blocks and rounds --------------------------------------------------------------- */

struct hccl_block hccl_block_of(const struct hccl_shape *s, u32 rank)
{
	if (s->coll == HCCL_REDUCESCATTERV || s->coll == HCCL_ALLGATHERV)
		return (struct hccl_block){ s->displs[rank] * s->elem, s->counts[rank] * s->elem };
	return (struct hccl_block){ rank * hccl_bytes(s), hccl_bytes(s) };
}

u64 hccl_send_off(const struct hccl_shape *s, u32 from, u32 to)
{
	if (s->coll == HCCL_ALLTOALLV)
		return s->send_displs[from * s->ranks + to] * s->elem;
	return to * hccl_bytes(s);
}

u64 hccl_recv_off(const struct hccl_shape *s, u32 from, u32 to)
{
	if (s->coll == HCCL_ALLTOALLV)
		return s->recv_displs[to * s->ranks + from] * s->elem;
	return from * hccl_bytes(s);
}

u64 hccl_between(const struct hccl_shape *s, u32 from, u32 to)
{
	if (s->coll == HCCL_ALLTOALLV)
		return s->counts[from * s->ranks + to] * s->elem;
	return hccl_bytes(s);
}

struct hccl_block hccl_round(struct hccl_block b, u64 at, u64 piece)
{
	u64 skip = hccl_less(at, b.len);

	return (struct hccl_block){ b.off + skip, hccl_less(b.len - skip, piece) };
}

u64 hccl_longest(const struct hccl_shape *s)
{
	u64 most = 0;

	for (u32 r = 0; r < s->ranks; r++) {
		u64 len = hccl_block_of(s, r).len;

		most = len > most ? len : most;
	}
	return most;
}

u64 hccl_piece(const struct hccl_shape *s, u64 parts)
{
	u64 each = s->ccl_bytes / parts;

	if (each >= LINE && LINE % s->elem == 0)
		return each - each % LINE;
	return each - each % s->elem;
}

void hccl_sum(struct hccl_plan *p, u32 rank, const struct hccl_team *team, struct hccl_place dst,
	      struct hccl_work src, u64 bytes)
{
	hccl_copy(p, rank, dst, hccl_place(src, team->rank[0], 0), bytes);
	for (u32 i = 1; i < team->n; i++)
		hccl_reduce(p, rank, dst, hccl_place(src, team->rank[i], 0), bytes);
}

void hccl_push(struct hccl_plan *p, u32 rank, const struct hccl_team *team, u32 not,
	       struct hccl_place src, struct hccl_work dst, u64 bytes)
{
	for (u32 i = 0; i < team->n; i++)
		if (team->rank[i] != not)
			hccl_copy(p, rank, hccl_place(dst, team->rank[i], 0), src, bytes);
}
