// SPDX-License-Identifier: MIT
/*
 * Pairwise AlltoAll (V): in step k every rank gets from the one k before it, and gives to the
 * one k behind it, and to nobody else: no receiver is ever flooded, no sender drained by many.
 *
 * Steps: n - 1, and each lasts as long as its longest pair.  Bytes moved: each byte once.
 */
#include "algo.h"

void hccl_fetch_all(struct hccl_plan *p, const struct hccl_shape *s, bool in_step)
{
	struct hccl_mark m;
	u32 n = s->ranks;

	for (u32 k = 0; k < n; k++) {
		for (u32 r = 0; r < n; r++) {
			u32 from = (r + n - k) % n;

			hccl_copy(p, r, hccl_out(r, hccl_recv_off(s, from, r)),
				  hccl_in(from, hccl_send_off(s, from, r)),
				  hccl_between(s, from, r));
		}
		if (!in_step || !k || k + 1 == n)
			continue;
		hccl_mark(p, &m);	/* the one that gets from me has got it */
		for (u32 r = 0; r < n; r++)
			hccl_wait_mark(p, r, (r + k) % n, &m);
	}
}

bool hccl_pairwise(struct hccl_plan *p, const struct hccl_shape *s)
{
	hccl_fetch_all(p, s, true);
	return true;
}
