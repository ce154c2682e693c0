/* SPDX-License-Identifier: MIT */
/*
 * What the hierarchical programs share: who is on which server, and in which team.
 */
#ifndef HCCL_HIER_H
#define HCCL_HIER_H

#include "algo.h"

struct hccl_hier {
	struct hccl_plan *p;
	const struct hccl_shape *s;
	u32 servers;
	u32 teams;		/* of all servers: ranks of the smallest */
	u16 server[HCCL_MAX_RANKS];	/* of a rank */
	u16 local[HCCL_MAX_RANKS];	/* its number there */
	struct hccl_team of[HCCL_MAX_RANKS];	/* a server: its ranks, in their order */
	struct hccl_team all;
};

void hccl_hier_look(struct hccl_hier *h, struct hccl_plan *p, const struct hccl_shape *s);
void hccl_hier_team(const struct hccl_hier *h, u32 j, struct hccl_team *team);
void hccl_hier_wait(const struct hccl_hier *h, u32 rank, bool in_teams, const struct hccl_mark *m);
void hccl_hier_share(const struct hccl_hier *h, u32 rank, u32 not, struct hccl_block b);

bool hccl_hier_scatter(const struct hccl_hier *h);
bool hccl_hier_all_to_all(const struct hccl_hier *h);

#endif
