/* SPDX-License-Identifier: MIT */
/*
 * hccl_rank_graph.h - how the ranks of a communicator are wired.
 *
 * Follows the public HCCL interface of August 2026.
 *
 * Layers are counted from 0, the nearest (a server); each has instances of topologies
 * (a mesh of eight, say), and links between ranks.  Arrays that are given belong to the
 * library and live as long as the communicator.
 */
#ifndef HCCL_HCCL_RANK_GRAPH_H
#define HCCL_HCCL_RANK_GRAPH_H

#include "hccl_types.h"
#include "../hcomm_res_defs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Types --------------------------------------------------------------- */

typedef enum CommTopo {
	COMM_TOPO_RESERVED = -1,
	COMM_TOPO_CLOS = 0,		/* switches */
	COMM_TOPO_1DMESH = 1,		/* each to each */
	COMM_TOPO_910_93 = 2,
	COMM_TOPO_310P = 3,
	COMM_TOPO_A2AXSERVER = 4,
	COMM_TOPO_CUSTOM = 5,
} CommTopo;

/* Whether all devices are of one kind. */
typedef enum HcclHeterogMode {
	HCCL_HETEROG_MODE_INVALID = -1,
	HCCL_HETEROG_MODE_HOMOGENEOUS = 0,
	HCCL_HETEROG_MODE_MIX_A2_A3 = 1,
} HcclHeterogMode;

/* What an endpoint can be asked for; each has a type of its own below. */
typedef enum EndpointAttr {
	ENDPOINT_ATTR_INVALID = -1,
	ENDPOINT_ATTR_BW_COEFF = 0,
	ENDPOINT_ATTR_DIE_ID = 1,
	ENDPOINT_ATTR_LOCATION = 2,
} EndpointAttr;

typedef uint32_t EndpointAttrBwCoeff;	/* its share of bandwidth, relative to others */
typedef uint32_t EndpointAttrDieId;
typedef uint32_t EndpointAttrLocation;

HCCL_CONST(uint32_t, COMM_LINK_MAGIC_WORD, 0x0f0e0f0f);
HCCL_CONST(uint32_t, COMM_LINK_VERSION, 1);

/* A link between two ranks. */
typedef struct CommLink {
	CommAbiHeader header;
	EndpointDesc srcEndpointDesc;
	EndpointDesc dstEndpointDesc;
	union {
		uint8_t raws[128];
		__extension__ struct {
			CommProtocol linkProtocol;
			uint8_t hop;		/* 1: direct */
		};
	} linkAttr;
} CommLink;

/* Prepare @linkNum of them.  HCCL_E_PTR for NULL. */
static inline HcclResult CommLinkInit(CommLink *commLink, uint32_t linkNum)
{
	uint32_t i;

	if (!commLink)
		return linkNum ? HCCL_E_PTR : HCCL_SUCCESS;
	memset(commLink, 0xff, linkNum * sizeof(*commLink));
	for (i = 0; i < linkNum; i++) {
		commLink[i].header.version = COMM_LINK_VERSION;
		commLink[i].header.magicWord = COMM_LINK_MAGIC_WORD;
		commLink[i].header.size = sizeof(*commLink);
		commLink[i].header.reserved = 0;
		commLink[i].linkAttr.hop = 1;
	}
	return HCCL_SUCCESS;
}

#pragma GCC visibility push(default)

/* --- Layers -------------------------------------------------------------- */

/* The layers that this rank is on. */
HcclResult HcclRankGraphGetLayers(HcclComm comm, uint32_t **netLayers, uint32_t *netLayerNum);

/* The ranks that share this rank's instance of a layer, and how many they are. */
HcclResult HcclRankGraphGetRanksByLayer(HcclComm comm, uint32_t netLayer, uint32_t **ranks,
					uint32_t *rankNum);
HcclResult HcclRankGraphGetRankSizeByLayer(HcclComm comm, uint32_t netLayer, uint32_t *rankNum);

/* How many ranks each instance of a layer has. */
HcclResult HcclRankGraphGetInstSizeListByLayer(HcclComm comm, uint32_t netLayer,
					       uint32_t **instSizeList, uint32_t *listSize);

/* --- Topologies ---------------------------------------------------------- */

/* The topology of a layer, and of one instance of it. */
HcclResult HcclRankGraphGetTopoTypeByLayer(HcclComm comm, uint32_t netLayer, CommTopo *topoType);
HcclResult HcclRankGraphGetTopoType(HcclComm comm, uint32_t netLayer, uint32_t topoInstId,
				    CommTopo *topoType);

/* The instances of topologies that this rank is in, by their numbers. */
HcclResult HcclRankGraphGetTopoInstsByLayer(HcclComm comm, uint32_t netLayer, uint32_t **topoInsts,
					    uint32_t *topoInstNum);

/* The ranks of one. */
HcclResult HcclRankGraphGetRanksByTopoInst(HcclComm comm, uint32_t netLayer, uint32_t topoInstId,
					   uint32_t **ranks, uint32_t *rankNum);

/* Whether the devices are of one kind. */
HcclResult HcclGetHeterogMode(HcclComm comm, HcclHeterogMode *mode);

/* --- Links and endpoints ------------------------------------------------- */

/* The links from one rank to another on a layer; none is no error. */
HcclResult HcclRankGraphGetLinks(HcclComm comm, uint32_t netLayer, uint32_t srcRank,
				 uint32_t dstRank, CommLink **links, uint32_t *linkNum);

/* How many endpoints this rank has in an instance of a topology. */
HcclResult HcclRankGraphGetEndpointNum(HcclComm comm, uint32_t layer, uint32_t topoInstId,
				       uint32_t *num);

/* Describe them: *@descNum is the room on entry and what was written on return. */
HcclResult HcclRankGraphGetEndpointDesc(HcclComm comm, uint32_t layer, uint32_t topoInstId,
					uint32_t *descNum, EndpointDesc *endpointDesc);

/* An attribute of a rank's endpoint: @infoLen is the size of its type above. */
HcclResult HcclRankGraphGetEndpointInfo(HcclComm comm, uint32_t rankId,
					const EndpointDesc *endpointDesc, EndpointAttr endpointAttr,
					uint32_t infoLen, void *info);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
