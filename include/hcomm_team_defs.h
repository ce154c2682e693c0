/* SPDX-License-Identifier: MIT */
/*
 * hcomm_team_defs.h - handles of teams and of their windows.
 *
 * Follows the public Hcomm interface of August 2026.
 */
#ifndef HCOMM_TEAM_DEFS_H
#define HCOMM_TEAM_DEFS_H

#include <stdint.h>

typedef uint64_t *HcommTeamHandle;	/* some ranks of a communicator */
typedef uint64_t *HcommWindowHandle;	/* memory that the ranks of a team reach */

/* What a team needs to synchronize by; each count costs a little memory. */
typedef struct HcommTeamSyncMemRequirement {
	uint32_t signalCount;
	uint32_t counterCount;
	uint32_t barrierCount;
	uint32_t reserved[5];
} HcommTeamSyncMemRequirement;

#endif
