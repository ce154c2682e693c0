// SPDX-License-Identifier: MIT
/*
 * How the ranks are wired, as the machine is described: layer 0 is a server, and layer
 * 1, if there are several, joins them.  Each layer is one topology.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <hccl/hccl_rank_graph.h>
#include "comm.h"
#include "support.h"

struct link {
	struct link *next;
	u32 layer, src, dst;
	CommLink link;
};

/* Arrays that are given away, so they stay. */
struct hccl_graph {
	u32 layers;
	u32 layer[2];
	u32 inst[1];
	u32 ranks[2];			/* on each layer, with this rank */
	u32 rank[2][HCCL_MAX_RANKS];
	u32 insts[2];
	u32 size[2][HCCL_MAX_RANKS];
	struct link *links;
};

static void survey(const struct hccl_comm *c, struct hccl_graph *g)
{
	u32 i;

	g->layers = c->servers > 1 ? 2 : 1;
	g->layer[1] = 1;
	for (i = 0; i < c->ranks; i++) {
		if (c->server[i] == c->server[c->rank])
			g->rank[0][g->ranks[0]++] = i;
		g->rank[1][g->ranks[1]++] = i;
		g->size[0][c->server[i]]++;
	}
	g->insts[0] = c->servers;
	g->insts[1] = 1;
	g->size[1][0] = c->ranks;
}

static HcclResult graph_of(const char *what, HcclComm comm, struct hccl_comm **c, struct hccl_graph **out)
{
	struct hccl_graph *g;
	HcclResult ret = hccl_comm(comm, what, c);

	if (ret)
		return ret;
	pthread_mutex_lock(&(*c)->res.lock);
	g = (*c)->res.graph;
	if (!g) {
		g = calloc(1, sizeof(*g));
		if (g)
			survey(*c, g);
		(*c)->res.graph = g;
	}
	pthread_mutex_unlock(&(*c)->res.lock);
	*out = g;
	return g ? HCCL_SUCCESS : hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
}

void hccl_graph_free(struct hccl_comm *c)
{
	struct hccl_graph *g = c->res.graph;
	struct link *l;

	while (g && (l = g->links)) {
		g->links = l->next;
		free(l);
	}
	free(g);
}

/* With the arguments that all of them have: two results, a layer, an instance. */
static HcclResult ask(const char *what, HcclComm comm, u32 layer, u32 inst, const void *a, const void *b,
		      struct hccl_comm **c, struct hccl_graph **g)
{
	HcclResult ret = graph_of(what, comm, c, g);

	if (ret)
		return ret;
	if (!a || !b)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: the place for a result is NULL", what);
	if (layer >= (*g)->layers)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: layer %u; the communicator has %u, from 0 on", what, layer, (*g)->layers);
	if (inst)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: layer %u has no topology %u; it has one, 0", what, layer, inst);
	return HCCL_SUCCESS;
}

/* ---- Layers ------------------------------------------------------------------------------ */

HcclResult HcclRankGraphGetLayers(HcclComm comm, uint32_t **netLayers, uint32_t *netLayerNum)
{
	struct hccl_graph *g;
	struct hccl_comm *c;
	HcclResult ret = ask("HcclRankGraphGetLayers", comm, 0, 0, netLayers, netLayerNum, &c, &g);

	if (ret)
		return ret;
	*netLayers = g->layer;
	*netLayerNum = g->layers;
	return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetRanksByLayer(HcclComm comm, uint32_t netLayer, uint32_t **ranks, uint32_t *rankNum)
{
	struct hccl_graph *g;
	struct hccl_comm *c;
	HcclResult ret = ask("HcclRankGraphGetRanksByLayer", comm, netLayer, 0, ranks, rankNum, &c, &g);

	if (ret)
		return ret;
	*ranks = g->rank[netLayer];
	*rankNum = g->ranks[netLayer];
	return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetRankSizeByLayer(HcclComm comm, uint32_t netLayer, uint32_t *rankNum)
{
	struct hccl_graph *g;
	struct hccl_comm *c;
	HcclResult ret = ask("HcclRankGraphGetRankSizeByLayer", comm, netLayer, 0, rankNum, rankNum, &c, &g);

	if (!ret)
		*rankNum = g->ranks[netLayer];
	return ret;
}

HcclResult HcclRankGraphGetInstSizeListByLayer(HcclComm comm, uint32_t netLayer, uint32_t **instSizeList,
					       uint32_t *listSize)
{
	struct hccl_graph *g;
	struct hccl_comm *c;
	HcclResult ret = ask("HcclRankGraphGetInstSizeListByLayer", comm, netLayer, 0, instSizeList, listSize, &c, &g);

	if (ret)
		return ret;
	*instSizeList = g->size[netLayer];
	*listSize = g->insts[netLayer];
	return HCCL_SUCCESS;
}

/* ---- Topologies ------------------------------------------------------------------------------ */

static CommTopo topo(const struct hccl_comm *c, u32 layer)
{
	if (layer)
		return COMM_TOPO_CLOS;
	switch (hccl_soc_of(c->cfg.soc)) {
	case HCCL_SOC_A3:
		return COMM_TOPO_910_93;
	case HCCL_SOC_310P:
		return COMM_TOPO_310P;
	default:
		return COMM_TOPO_1DMESH;
	}
}

HcclResult HcclRankGraphGetTopoTypeByLayer(HcclComm comm, uint32_t netLayer, CommTopo *topoType)
{
	struct hccl_graph *g;
	struct hccl_comm *c;
	HcclResult ret = ask("HcclRankGraphGetTopoTypeByLayer", comm, netLayer, 0, topoType, topoType, &c, &g);

	if (!ret)
		*topoType = topo(c, netLayer);
	return ret;
}

HcclResult HcclRankGraphGetTopoType(HcclComm comm, uint32_t netLayer, uint32_t topoInstId, CommTopo *topoType)
{
	struct hccl_graph *g;
	struct hccl_comm *c;
	HcclResult ret = ask("HcclRankGraphGetTopoType", comm, netLayer, topoInstId, topoType, topoType, &c, &g);

	if (!ret)
		*topoType = topo(c, netLayer);
	return ret;
}

HcclResult HcclRankGraphGetTopoInstsByLayer(HcclComm comm, uint32_t netLayer, uint32_t **topoInsts, uint32_t *topoInstNum)
{
	struct hccl_graph *g;
	struct hccl_comm *c;
	HcclResult ret = ask("HcclRankGraphGetTopoInstsByLayer", comm, netLayer, 0, topoInsts, topoInstNum, &c, &g);

	if (ret)
		return ret;
	*topoInsts = g->inst;
	*topoInstNum = 1;
	return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetRanksByTopoInst(HcclComm comm, uint32_t netLayer, uint32_t topoInstId, uint32_t **ranks,
					   uint32_t *rankNum)
{
	struct hccl_graph *g;
	struct hccl_comm *c;
	HcclResult ret = ask("HcclRankGraphGetRanksByTopoInst", comm, netLayer, topoInstId, ranks, rankNum, &c, &g);

	if (ret)
		return ret;
	*ranks = g->rank[netLayer];
	*rankNum = g->ranks[netLayer];
	return HCCL_SUCCESS;
}

HcclResult HcclGetHeterogMode(HcclComm comm, HcclHeterogMode *mode)
{
	struct hccl_graph *g;
	struct hccl_comm *c;
	HcclResult ret = ask("HcclGetHeterogMode", comm, 0, 0, mode, mode, &c, &g);

	/* a machine has devices of one kind */
	if (!ret)
		*mode = HCCL_HETEROG_MODE_HOMOGENEOUS;
	return ret;
}

/* ---- Links and endpoints --------------------------------------------------------------------------- */

static const struct {
	const char *name;	/* of a class of links in the machine's description */
	CommProtocol protocol;
} protocols[] = {
	{ "hccs", COMM_PROTOCOL_HCCS }, { "sio", COMM_PROTOCOL_SIO }, { "ub", COMM_PROTOCOL_UB_CTP },
	{ "uboe", COMM_PROTOCOL_UBOE }, { "roce", COMM_PROTOCOL_ROCE }, { "pcie", COMM_PROTOCOL_PCIE },
};

/* Between two ranks; COMM_PROTOCOL_RESERVED: they are one, or nothing is known of it. */
static CommProtocol protocol(const struct hccl_comm *c, u32 src, u32 dst)
{
	struct npuemu_link_info info = { .size = sizeof(info) };
	size_t i;

	if (src == dst || npuemu_link_query(npuacl.board, c->group->member[src].device, c->group->member[dst].device, &info))
		return COMM_PROTOCOL_RESERVED;
	for (i = 0; i < ARRAY_SIZE(protocols); i++)
		if (!strcmp(info.name, protocols[i].name))
			return protocols[i].protocol;
	return COMM_PROTOCOL_RESERVED;
}

static void describe(const struct hccl_comm *c, u32 rank, CommProtocol p, EndpointDesc *d)
{
	u32 dev = c->group->member[rank].device;

	EndpointDescInit(d, 1);
	d->protocol = p;
	if (p == COMM_PROTOCOL_UB_CTP || p == COMM_PROTOCOL_UBOE) {
		d->commAddr.type = COMM_ADDR_TYPE_EID;
		memset(d->commAddr.eid, 0, sizeof(d->commAddr.eid));
		d->commAddr.eid[0] = 0xfe;
		d->commAddr.eid[1] = 0x80;
		d->commAddr.eid[COMM_ADDR_EID_LEN - 2] = (u8)(dev >> 8);
		d->commAddr.eid[COMM_ADDR_EID_LEN - 1] = (u8)dev;
	} else {
		d->commAddr.type = COMM_ADDR_TYPE_ID;
		d->commAddr.id = dev;
	}
	d->loc.locType = ENDPOINT_LOC_TYPE_DEVICE;
	d->loc.device.devPhyId = dev;
	d->loc.device.superDevId = dev;
	d->loc.device.serverIdx = c->server[rank];
	d->loc.device.superPodIdx = 0;
}

/* res.lock held; NULL: no memory */
static struct link *link_of(struct hccl_comm *c, struct hccl_graph *g, u32 layer, u32 src, u32 dst, CommProtocol p)
{
	struct link *l;

	for (l = g->links; l; l = l->next)
		if (l->layer == layer && l->src == src && l->dst == dst)
			return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->layer = layer;
	l->src = src;
	l->dst = dst;
	CommLinkInit(&l->link, 1);
	describe(c, src, p, &l->link.srcEndpointDesc);
	describe(c, dst, p, &l->link.dstEndpointDesc);
	l->link.linkAttr.linkProtocol = p;
	l->next = g->links;
	g->links = l;
	return l;
}

HcclResult HcclRankGraphGetLinks(HcclComm comm, uint32_t netLayer, uint32_t srcRank, uint32_t dstRank, CommLink **links,
				 uint32_t *linkNum)
{
	static const char what[] = "HcclRankGraphGetLinks";
	struct hccl_graph *g;
	struct hccl_comm *c;
	struct link *l;
	CommProtocol p;
	HcclResult ret = ask(what, comm, netLayer, 0, links, linkNum, &c, &g);

	if (ret)
		return ret;
	if (srcRank >= c->ranks || dstRank >= c->ranks)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: ranks %u and %u; the communicator has ranks 0 to %u", what, srcRank, dstRank,
				 c->ranks - 1);
	*links = NULL;
	*linkNum = 0;
	p = protocol(c, srcRank, dstRank);
	/* on the layer that joins them, and no other */
	if (p == COMM_PROTOCOL_RESERVED || (c->server[srcRank] != c->server[dstRank]) != netLayer)
		return HCCL_SUCCESS;
	pthread_mutex_lock(&c->res.lock);
	l = link_of(c, g, netLayer, srcRank, dstRank, p);
	pthread_mutex_unlock(&c->res.lock);
	if (!l)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	*links = &l->link;
	*linkNum = 1;
	return HCCL_SUCCESS;
}

/* What a rank's links of a layer are. */
static CommProtocol layer_protocol(const struct hccl_comm *c, u32 layer, u32 rank)
{
	CommProtocol p = COMM_PROTOCOL_RESERVED;
	u32 i;

	for (i = 0; i < c->ranks && p == COMM_PROTOCOL_RESERVED; i++)
		if ((c->server[i] != c->server[rank]) == layer)
			p = protocol(c, rank, i);
	return p;
}

HcclResult HcclRankGraphGetEndpointNum(HcclComm comm, uint32_t layer, uint32_t topoInstId, uint32_t *num)
{
	struct hccl_graph *g;
	struct hccl_comm *c;
	HcclResult ret = ask("HcclRankGraphGetEndpointNum", comm, layer, topoInstId, num, num, &c, &g);

	if (!ret)
		*num = layer_protocol(c, layer, c->rank) != COMM_PROTOCOL_RESERVED;
	return ret;
}

HcclResult HcclRankGraphGetEndpointDesc(HcclComm comm, uint32_t layer, uint32_t topoInstId, uint32_t *descNum,
					EndpointDesc *endpointDesc)
{
	static const char what[] = "HcclRankGraphGetEndpointDesc";
	struct hccl_graph *g;
	struct hccl_comm *c;
	CommProtocol p;
	HcclResult ret = ask(what, comm, layer, topoInstId, descNum, endpointDesc, &c, &g);

	if (ret)
		return ret;
	p = layer_protocol(c, layer, c->rank);
	if (p != COMM_PROTOCOL_RESERVED && !*descNum)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: *descNum, the room, is 0; there is 1", what);
	*descNum = p != COMM_PROTOCOL_RESERVED;
	if (*descNum)
		describe(c, c->rank, p, endpointDesc);
	return HCCL_SUCCESS;
}

/* Is it one of the rank's? */
static bool has(const struct hccl_comm *c, const struct hccl_graph *g, u32 rank, const EndpointDesc *d)
{
	CommProtocol p;
	EndpointDesc own;
	u32 layer;

	for (layer = 0; layer < g->layers; layer++) {
		p = layer_protocol(c, layer, rank);
		if (p == COMM_PROTOCOL_RESERVED)
			continue;
		describe(c, rank, p, &own);
		if (d->protocol == p && d->commAddr.type == own.commAddr.type && d->loc.locType == own.loc.locType &&
		    d->loc.device.devPhyId == own.loc.device.devPhyId)
			return true;
	}
	return false;
}

HcclResult HcclRankGraphGetEndpointInfo(HcclComm comm, uint32_t rankId, const EndpointDesc *endpointDesc,
					EndpointAttr endpointAttr, uint32_t infoLen, void *info)
{
	static const char what[] = "HcclRankGraphGetEndpointInfo";
	struct hccl_graph *g;
	struct hccl_comm *c;
	u32 value;
	HcclResult ret = ask(what, comm, 0, 0, endpointDesc, info, &c, &g);

	if (ret)
		return ret;
	if (rankId >= c->ranks)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: rank %u; the communicator has ranks 0 to %u", what, rankId, c->ranks - 1);
	if (!has(c, g, rankId, endpointDesc))
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: rank %u has no such endpoint", what, rankId);
	switch (endpointAttr) {
	case ENDPOINT_ATTR_BW_COEFF:
		value = 1;	/* it is the only one of its layer */
		break;
	case ENDPOINT_ATTR_DIE_ID:
		value = endpointDesc->loc.device.superDevId;
		break;
	case ENDPOINT_ATTR_LOCATION:
		value = (u32)endpointDesc->loc.locType;
		break;
	default:
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no attribute %d; 0 to 2", what, (int)endpointAttr);
	}
	if (infoLen != sizeof(value))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: infoLen is %u; attribute %d has %zu bytes", what, infoLen, (int)endpointAttr,
				 sizeof(value));
	memcpy(info, &value, sizeof(value));
	return HCCL_SUCCESS;
}
