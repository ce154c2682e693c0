// SPDX-License-Identifier: MIT
/*
 * Hierarchical Scatter and AlltoAll (V): nothing is summed, each byte has one receiver.  On its
 * way to another server it passes one rank's CCL, a gate, so that few pairs of ranks of different
 * servers talk to each other, and those in long runs.  Inside a server bytes go directly.
 *
 * Bytes moved: those for other servers twice, the rest once.  Steps: a gate's round for each
 * CCL buffer full.
 */
#include "hier.h"

/* ---- Scatter: a server's gate is who has the root's number ----------------------------- */

static u32 gate_of(const struct hccl_hier *h, u32 server)
{
	return h->of[server].rank[h->local[h->s->root] % h->of[server].n];
}

static void scatter_round(const struct hccl_hier *h, u32 server, u64 at, u64 piece)
{
	const struct hccl_team *here = &h->of[server];
	u32 gate = gate_of(h, server);
	struct hccl_mark m;

	for (u32 k = 0; k < here->n; k++) {
		struct hccl_block b = hccl_round(hccl_block_of(h->s, here->rank[k]), at, piece);
		struct hccl_place src = hccl_in(h->s->root, b.off);

		if (here->rank[k] == gate)
			hccl_copy(h->p, gate, hccl_out(gate, at), src, b.len);
		else
			hccl_copy(h->p, gate, hccl_ccl(gate, k * piece), src, b.len);
	}
	hccl_mark(h->p, &m);
	for (u32 k = 0; k < here->n; k++) {
		u32 r = here->rank[k];

		if (r == gate)
			continue;
		hccl_wait_mark(h->p, r, gate, &m);
		hccl_copy(h->p, r, hccl_out(r, at), hccl_ccl(gate, k * piece),
			  hccl_round(hccl_block_of(h->s, r), at, piece).len);
	}
	hccl_mark(h->p, &m);		/* the gate's CCL is free again */
	hccl_hier_wait(h, gate, false, &m);
}

bool hccl_hier_scatter(const struct hccl_hier *h)
{
	u32 home = h->server[h->s->root];
	u64 bytes = hccl_bytes(h->s);

	for (u32 k = 0; k < h->of[home].n; k++) {
		u32 r = h->of[home].rank[k];

		hccl_copy(h->p, r, hccl_out(r, 0), hccl_in(h->s->root, r * bytes), bytes);
	}
	for (u32 i = 0; i < h->servers; i++) {
		u64 piece = hccl_piece(h->s, h->of[i].n);

		if (!piece)
			return false;
		for (u64 at = 0; i != home && at < bytes; at += piece)
			scatter_round(h, i, at, piece);
	}
	return true;
}

/* ---- AlltoAll (V): a receiver's gate on a server is who has the receiver's number ------ */

struct route {
	u32 gate;
	u32 slot;		/* of the gate's CCL: a place for each sender it serves */
};

/* @to has a gate on each server but its own; senders of a server have adjoining slots. */
static struct route route_of(const struct hccl_hier *h, u32 from, u32 to)
{
	const struct hccl_team *here = &h->of[h->server[from]];
	u32 number = h->local[to] % here->n, before = 0;

	for (u32 q = 0; q < to; q++)
		before += h->server[q] != h->server[from] && h->local[q] % here->n == number;
	return (struct route){ here->rank[number], before * here->n + h->local[from] };
}

static u64 slots(const struct hccl_hier *h)
{
	u64 most = 1;

	for (u32 from = 0; from < h->s->ranks; from++)
		for (u32 to = 0; to < h->s->ranks; to++)
			if (h->server[from] != h->server[to]) {
				u64 slot = route_of(h, from, to).slot + 1;

				most = slot > most ? slot : most;
			}
	return most;
}

static void collect(const struct hccl_hier *h, u32 from, u32 to, u64 at, u64 piece)
{
	struct hccl_block b = { hccl_send_off(h->s, from, to), hccl_between(h->s, from, to) };
	struct route way = route_of(h, from, to);

	b = hccl_round(b, at, piece);
	if (way.gate != from)
		hccl_copy(h->p, way.gate, hccl_ccl(way.gate, way.slot * piece),
			  hccl_in(from, b.off), b.len);
}

static void deliver(const struct hccl_hier *h, u32 from, u32 to, u64 at, u64 piece,
		    const struct hccl_mark *m)
{
	struct hccl_block b = { hccl_send_off(h->s, from, to), hccl_between(h->s, from, to) };
	struct hccl_place dst = hccl_out(to, hccl_recv_off(h->s, from, to) + at);
	struct route way = route_of(h, from, to);

	b = hccl_round(b, at, piece);
	if (!b.len)
		return;
	if (way.gate == from) {
		hccl_copy(h->p, to, dst, hccl_in(from, b.off), b.len);
		return;
	}
	hccl_wait_mark(h->p, to, way.gate, m);
	hccl_copy(h->p, to, dst, hccl_ccl(way.gate, way.slot * piece), b.len);
}

static u64 longest_pair(const struct hccl_hier *h)
{
	u64 most = 0;

	for (u32 from = 0; from < h->s->ranks; from++)
		for (u32 to = 0; to < h->s->ranks; to++) {
			u64 len = hccl_between(h->s, from, to);

			if (h->server[from] != h->server[to] && len > most)
				most = len;
		}
	return most;
}

static void all_to_all_round(const struct hccl_hier *h, u64 at, u64 piece)
{
	struct hccl_mark m;

	for (u32 from = 0; from < h->s->ranks; from++)
		for (u32 to = 0; to < h->s->ranks; to++)
			if (h->server[from] != h->server[to])
				collect(h, from, to, at, piece);
	hccl_mark(h->p, &m);
	for (u32 to = 0; to < h->s->ranks; to++)
		for (u32 i = 0; i < h->servers; i++)
			for (u32 k = 0; i != h->server[to] && k < h->of[i].n; k++)
				deliver(h, h->of[i].rank[k], to, at, piece, &m);
}

bool hccl_hier_all_to_all(const struct hccl_hier *h)
{
	u64 piece = hccl_piece(h->s, slots(h)), longest = longest_pair(h);

	if (!piece)
		return false;
	for (u32 to = 0; to < h->s->ranks; to++)
		for (u32 from = 0; from < h->s->ranks; from++)
			if (h->server[from] == h->server[to])
				hccl_copy(h->p, to, hccl_out(to, hccl_recv_off(h->s, from, to)),
					  hccl_in(from, hccl_send_off(h->s, from, to)),
					  hccl_between(h->s, from, to));
	for (u64 at = 0; at < longest; at += piece) {
		all_to_all_round(h, at, piece);
		if (at + piece < longest)
			hccl_sync(h->p, &h->all);
	}
	return true;
}
