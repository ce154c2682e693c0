// SPDX-License-Identifier: MIT
/*
 * Made and unmade with a communicator: what else its rank has.
 */
#include <stdlib.h>
#include "comm.h"

HcclResult hccl_res_make(struct hccl_comm *c, const char *what)
{
	static u64 born;

	pthread_mutex_init(&c->res.lock, NULL);
	pthread_mutex_init(&c->res.meet_lock, NULL);
	pthread_mutex_init(&c->res.ends_lock, NULL);
	c->res.born = npuemu_fetch_add(&born, 1) + 1;
	c->res.swaps = calloc(c->ranks, sizeof(*c->res.swaps));
	c->res.range = calloc(HCCL_RANGES, sizeof(*c->res.range));
	if (!c->res.swaps || !c->res.range)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	return HCCL_SUCCESS;
}

void hccl_res_unmake(struct hccl_comm *c)
{
	/* it did not get that far */
	if (!c->res.born)
		return;
	hccl_chans_free(c);
	hccl_threads_free(c);
	hccl_ends_free(c);
	hccl_wins_free(c);
	hccl_globals_unbind(c);
	hccl_mems_free(c);
	hccl_engctxs_free(c);
	hccl_graph_free(c);
	hccl_hide(c->res.shown);
	if (c->local)
		hccl_ranges_free(c);
	hccl_parts_free(c);
	free(c->res.swaps);
	free(c->res.range);
	pthread_mutex_destroy(&c->res.lock);
	pthread_mutex_destroy(&c->res.meet_lock);
	pthread_mutex_destroy(&c->res.ends_lock);
}
