/* SPDX-License-Identifier: MIT */
/*
 * hccl_team.h - teams: ranks of a communicator with windows and channels of their own,
 * for kernels that communicate themselves.
 *
 * Follows the public HCCL interface of August 2026.
 */
#ifndef HCCL_HCCL_TEAM_H
#define HCCL_HCCL_TEAM_H

#include "hccl_types.h"
#include "../hcomm_res_defs.h"
#include "../hcomm_team_defs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Descriptions -------------------------------------------------------- */

HCCL_CONST(uint32_t, HCCL_TEAM_CREATE_DESC_MAGIC_WORD, 0x0fcf0f14U);
HCCL_CONST(uint32_t, HCCL_TEAM_CREATE_DESC_VERSION, 1U);

typedef struct HcclTeamCreateDesc {
	CommAbiHeader header;
	const uint32_t *rankIds;	/* @rankNum of them, in the communicator's numbers */
	uint32_t rankNum;
	uint32_t selfRankId;		/* this rank, in the team's numbers */
	uint32_t netLayer;
	CommProtocol protocol;
	HcommTeamSyncMemRequirement requirement;
	uint32_t reserved[4];
} HcclTeamCreateDesc;

/* Prepare one: no ranks, no protocol.  HCCL_E_PTR for NULL. */
static inline HcclResult HcclTeamCreateDescInit(HcclTeamCreateDesc *desc)
{
	if (!desc)
		return HCCL_E_PTR;
	memset(desc, 0, sizeof(*desc));
	desc->header.version = HCCL_TEAM_CREATE_DESC_VERSION;
	desc->header.magicWord = HCCL_TEAM_CREATE_DESC_MAGIC_WORD;
	desc->header.size = sizeof(*desc);
	desc->protocol = COMM_PROTOCOL_RESERVED;
	memset(desc->requirement.reserved, 0xff, sizeof(desc->requirement.reserved));
	return HCCL_SUCCESS;
}

HCCL_CONST(uint32_t, HCCL_TEAM_CREATE_CHANNELS_DESC_MAGIC_WORD, 0x0fcf0f15U);
HCCL_CONST(uint32_t, HCCL_TEAM_CREATE_CHANNELS_DESC_VERSION, 1U);

typedef struct HcclTeamCreateChannelsDesc {
	CommAbiHeader header;
	CommEngine engine;
	uint32_t notifyNum;
	CommProtocol protocol;
	uint32_t channelCnt;		/* to each peer */
	uint32_t reserved[4];
} HcclTeamCreateChannelsDesc;

/* Prepare one: no engine, no protocol.  HCCL_E_PTR for NULL. */
static inline HcclResult HcclTeamCreateChannelsDescInit(HcclTeamCreateChannelsDesc *desc)
{
	if (!desc)
		return HCCL_E_PTR;
	memset(desc, 0, sizeof(*desc));
	desc->header.version = HCCL_TEAM_CREATE_CHANNELS_DESC_VERSION;
	desc->header.magicWord = HCCL_TEAM_CREATE_CHANNELS_DESC_MAGIC_WORD;
	desc->header.size = sizeof(*desc);
	desc->engine = COMM_ENGINE_RESERVED;
	desc->protocol = COMM_PROTOCOL_RESERVED;
	return HCCL_SUCCESS;
}

#pragma GCC visibility push(default)

/* --- Teams --------------------------------------------------------------- */

/* A team of a communicator; all of its ranks call. */
HcclResult HcclWorldTeamCreate(HcclComm comm, const HcclTeamCreateDesc *desc,
			       HcommTeamHandle *teamHandle);

/* A part of a team; the ranks of the part call. */
HcclResult HcclSubTeamCreate(HcommTeamHandle parentTeam, const HcclTeamCreateDesc *desc,
			     HcommTeamHandle *teamHandle);

/* Unmake it; its windows and channels have to be gone, and parts of it. */
HcclResult HcclTeamDestroy(HcommTeamHandle teamHandle);

/* Memory that all ranks of a team reach; all of them call. */
HcclResult HcclTeamWindowRegister(HcclComm comm, HcommTeamHandle teamHandle, const CommMem *mem,
				  HcommWindowHandle *windowHandle, uint32_t flag);

HcclResult HcclTeamWindowDeregister(HcommTeamHandle teamHandle, HcommWindowHandle windowHandle);

/* Channels between all ranks of a team. */
HcclResult HcclTeamChannelsCreate(HcclComm comm, HcommTeamHandle teamHandle,
				  const HcclTeamCreateChannelsDesc *desc);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
