// SPDX-License-Identifier: MIT
/*
 * Nonuniform hierarchical ring: rings of ever wider stride, and most bytes go to the
 * nearest.  With neighbours (stride 1) half of all slices are exchanged, every second one;
 * with stride 2 a quarter, and so on: far links, which are the slow ones, carry little.
 *
 * Steps: log2(n) rounded up for each half.  Bytes moved by a member: (n - 1) / n of the area
 * for each half.  Any number of members.
 *
 * Seen from member i: before the gather's step of stride d it has the slices i, i + 2d,
 * i + 4d ...; the ones between, i + d, i + 3d ..., are what member i + d has.  The scatter is
 * the same backwards.
 */
#include "algo.h"

static u32 between(u32 n, u32 d)
{
	return (n - 1 + d) / (2 * d);
}

static void nhr_scatter(const struct hccl_half *h)
{
	u32 n = h->team->n;
	struct hccl_mark m;

	for (u32 d = 1; d < n; d *= 2) {
		hccl_mark(h->p, &m);
		for (u32 i = 0; i < n; i++)
			hccl_take(h, &m, (struct hccl_take){
				.kind = HCCL_REDUCE, .to = i, .from = (i + n - d) % n,
				.at = i, .n = between(n, d), .stride = 2 * d });
	}
}

static void nhr_gather(const struct hccl_half *h)
{
	u32 n = h->team->n, d = 1;
	struct hccl_mark m;

	while (d < n)
		d *= 2;
	while (d /= 2) {
		hccl_mark(h->p, &m);
		for (u32 i = 0; i < n; i++)
			hccl_take(h, &m, (struct hccl_take){
				.kind = HCCL_COPY, .to = i, .from = (i + d) % n,
				.at = i + d, .n = between(n, d), .stride = 2 * d });
	}
}

const struct hccl_pair hccl_nhr_pair = { nhr_scatter, nhr_gather };

bool hccl_nhr(struct hccl_plan *p, const struct hccl_shape *s)
{
	return hccl_compose(p, s, &hccl_nhr_pair);
}
