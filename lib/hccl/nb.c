// SPDX-License-Identifier: MIT
/*
 * Nonuniform Bruck: what a member has is one run of slices, which doubles with each step:
 * i to i + d - 1 before the gather's step of distance d, and the next d are what member
 * i + d has.  The last step moves the rest.  The scatter is the same backwards.
 *
 * Steps: log2(n) rounded up for each half.  Bytes moved by a member: (n - 1) / n of the area
 * for each half.  Any number of members; runs are moved whole, where NHR moves single slices.
 */
#include "algo.h"

static void nb_step(const struct hccl_half *h, enum hccl_step_kind kind, u32 d)
{
	u32 n = h->team->n, run = d < n - d ? d : n - d;
	struct hccl_mark m;

	hccl_mark(h->p, &m);
	for (u32 i = 0; i < n; i++) {
		bool adds = kind == HCCL_REDUCE;

		hccl_take(h, &m, (struct hccl_take){
			.kind = kind, .to = i, .from = (adds ? i + n - d : i + d) % n,
			.at = adds ? i : i + d, .n = run, .stride = 1 });
	}
}

static void nb_scatter(const struct hccl_half *h)
{
	u32 d = 1;

	while (d < h->team->n)
		d *= 2;
	while (d /= 2)
		nb_step(h, HCCL_REDUCE, d);
}

static void nb_gather(const struct hccl_half *h)
{
	for (u32 d = 1; d < h->team->n; d *= 2)
		nb_step(h, HCCL_COPY, d);
}

const struct hccl_pair hccl_nb_pair = { nb_scatter, nb_gather };

bool hccl_nb(struct hccl_plan *p, const struct hccl_shape *s)
{
	return hccl_compose(p, s, &hccl_nb_pair);
}
