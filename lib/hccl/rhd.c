// SPDX-License-Identifier: MIT
/*
 * Recursive halving and doubling: members swap halves with one that is 1/2, 1/4, 1/8 ...
 * of the team away, and add them; then the same way back, copying.
 *
 * Steps: log2(n) for each half.  Bytes moved by a member: (n - 1) / n of the area for each
 * half.  It wants a power of two: if there are more members, each of the first few folds its
 * right neighbour in first, and serves it last: 2 steps and up to 2 areas of bytes more.
 */
#include "algo.h"

/* Members make groups, of two or of one, and of groups there are a power of two. */
struct groups {
	u32 n;
	u32 pairs;		/* the first groups have two members */
};

static struct groups groups_of(u32 members)
{
	struct groups g = { .n = 1 };

	while (g.n * 2 <= members)
		g.n *= 2;
	g.pairs = members - g.n;
	return g;
}

/* The first member of group @i; also the first slice that the group owns. */
static u32 head(struct groups g, u32 i)
{
	return i < g.pairs ? 2 * i : i + g.pairs;
}

/* Group @i takes from @from the slices of @n groups from @at on. */
static void swap(const struct hccl_half *h, const struct hccl_mark *m, struct groups g,
		 enum hccl_step_kind kind, u32 i, u32 from, u32 at, u32 n)
{
	hccl_take(h, m, (struct hccl_take){
		.kind = kind, .to = head(g, i), .from = head(g, from),
		.at = head(g, at), .n = head(g, at + n) - head(g, at), .stride = 1 });
}

static void rhd_scatter(const struct hccl_half *h)
{
	struct groups g = groups_of(h->team->n);
	struct hccl_mark m;

	hccl_mark(h->p, &m);
	for (u32 i = 0; i < g.pairs; i++)
		hccl_take(h, &m, (struct hccl_take){
			.kind = HCCL_REDUCE, .to = 2 * i, .from = 2 * i + 1,
			.n = h->team->n, .stride = 1 });
	for (u32 far = g.n / 2; far; far /= 2) {
		hccl_mark(h->p, &m);
		for (u32 i = 0; i < g.n; i++)
			swap(h, &m, g, HCCL_REDUCE, i, i ^ far, i & ~(far - 1), far);
	}
	hccl_mark(h->p, &m);
	for (u32 i = 0; i < g.pairs; i++)
		hccl_take(h, &m, (struct hccl_take){
			.kind = HCCL_COPY, .to = 2 * i + 1, .from = 2 * i,
			.at = 2 * i + 1, .n = 1 });
}

static void rhd_gather(const struct hccl_half *h)
{
	struct groups g = groups_of(h->team->n);
	struct hccl_mark m;

	hccl_mark(h->p, &m);
	for (u32 i = 0; i < g.pairs; i++)
		hccl_take(h, &m, (struct hccl_take){
			.kind = HCCL_COPY, .to = 2 * i, .from = 2 * i + 1,
			.at = 2 * i + 1, .n = 1 });
	for (u32 far = 1; far < g.n; far *= 2) {
		hccl_mark(h->p, &m);
		for (u32 i = 0; i < g.n; i++)
			swap(h, &m, g, HCCL_COPY, i, i ^ far, (i ^ far) & ~(far - 1), far);
	}
	hccl_mark(h->p, &m);
	for (u32 i = 0; i < g.pairs; i++)	/* all but its own, which comes after the last */
		hccl_take(h, &m, (struct hccl_take){
			.kind = HCCL_COPY, .to = 2 * i + 1, .from = 2 * i,
			.at = 2 * i + 2, .n = h->team->n - 1, .stride = 1 });
}

const struct hccl_pair hccl_rhd_pair = { rhd_scatter, rhd_gather };

/* Broadcast is a binomial tree: who has it doubles with each of log2(n) steps. */
static bool rhd_broadcast(struct hccl_plan *p, const struct hccl_shape *s)
{
	u32 n = s->ranks;
	struct hccl_mark m;

	for (u32 have = 1; have < n; have *= 2) {
		hccl_mark(p, &m);
		for (u32 i = have; i < 2 * have && i < n; i++) {
			u32 to = (s->root + i) % n, from = (s->root + i - have) % n;

			hccl_wait_mark(p, to, from, &m);
			hccl_copy(p, to, hccl_out(to, 0), hccl_out(from, 0), hccl_bytes(s));
		}
	}
	return true;
}

bool hccl_rhd(struct hccl_plan *p, const struct hccl_shape *s)
{
	if (s->coll == HCCL_BROADCAST)
		return rhd_broadcast(p, s);
	return hccl_compose(p, s, &hccl_rhd_pair);
}
