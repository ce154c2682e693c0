// SPDX-License-Identifier: MIT
/*
 * Ring: every member talks to the one on its left alone.
 *
 * Steps: n - 1 for each half.  Bytes moved by a member: (n - 1) / n of the area for each
 * half, the least possible.  Any number of members; good for few, or for long ones.
 */
#include "algo.h"

/* A slice starts right of its owner and grows on its way once around to it. */
static void ring_scatter(const struct hccl_half *h)
{
	u32 n = h->team->n;
	struct hccl_mark m;

	for (u32 step = 0; step + 1 < n; step++) {
		hccl_mark(h->p, &m);
		for (u32 i = 0; i < n; i++)
			hccl_take(h, &m, (struct hccl_take){
				.kind = HCCL_REDUCE, .to = i, .from = (i + n - 1) % n,
				.at = (i + 2 * n - step - 2) % n, .n = 1 });
	}
}

static void ring_gather(const struct hccl_half *h)
{
	u32 n = h->team->n;
	struct hccl_mark m;

	for (u32 step = 0; step + 1 < n; step++) {
		hccl_mark(h->p, &m);
		for (u32 i = 0; i < n; i++)
			hccl_take(h, &m, (struct hccl_take){
				.kind = HCCL_COPY, .to = i, .from = (i + n - 1) % n,
				.at = (i + n - 1 - step) % n, .n = 1 });
	}
}

const struct hccl_pair hccl_ring_pair = { ring_scatter, ring_gather };

/*
 * Broadcast is a chain: each takes a chunk from its left as soon as that has it.  The
 * first has it at once; chunks + n - 2 steps for the last one, n - 1 times the bytes.
 */
static bool ring_broadcast(struct hccl_plan *p, const struct hccl_shape *s)
{
	u64 bytes = hccl_bytes(s);

	for (u64 at = 0; at < bytes; at += p->chunk) {
		u64 len = hccl_less(bytes - at, p->chunk);

		for (u32 i = 1; i < s->ranks; i++) {
			u32 to = (s->root + i) % s->ranks, from = (s->root + i - 1) % s->ranks;

			hccl_wait(p, to, from);
			hccl_copy(p, to, hccl_out(to, at), hccl_out(from, at), len);
		}
	}
	return true;
}

bool hccl_ring(struct hccl_plan *p, const struct hccl_shape *s)
{
	if (s->coll == HCCL_BROADCAST)
		return ring_broadcast(p, s);
	return hccl_compose(p, s, &hccl_ring_pair);
}
