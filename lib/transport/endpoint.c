// SPDX-License-Identifier: MIT
/*
 * Endpoints.  Two of them mean the same place when protocol, address and device are the
 * same, however the rest of their descriptions is filled in.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "transport.h"

#define FIRST_PORT	60032u

struct npuemu_slab hcomm_endpoints = {
	.what = "endpoint", .size = NPUEMU_SLAB_SIZE(struct hcomm_endpoint), .max = 4096,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* ---- After a fork nothing is known -------------------------------------------------------- */

static void child(void)
{
	static struct npuemu_slab *const slabs[] = {
		&hcomm_endpoints, &hcomm_mems, &hcomm_channels, &hcomm_threads, &hcomm_configs,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(slabs); i++) {
		npuemu_slab_fork(slabs[i]);
	}
	hcomm_desks_fork();
}

static void watch(void)
{
	pthread_atfork(NULL, NULL, child);
}

void hcomm_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}

/* ---- Protocols ------------------------------------------------------------------------------ */

struct protocol {
	const char *name;
	bool ub;		/* of machines with UDMA; else of those without */
	bool queue;		/* by queues, rather than by loads and stores */
	bool here;		/* within a server or a super pod: what there is */
};

static const struct protocol protocols[] = {
	[COMM_PROTOCOL_HCCS] = { "HCCS", false, false, true },
	[COMM_PROTOCOL_ROCE] = { "ROCE", false, true, false },
	[COMM_PROTOCOL_PCIE] = { "PCIE", false, false, true },
	[COMM_PROTOCOL_SIO] = { "SIO", false, false, true },
	[COMM_PROTOCOL_UB_CTP] = { "UB_CTP", true, true, true },
	[COMM_PROTOCOL_UBC_TP] = { "UBC_TP", true, true, true },
	[COMM_PROTOCOL_UB_MEM] = { "UB_MEM", true, false, true },
	[COMM_PROTOCOL_UBOE] = { "UBOE", true, true, false },
	[COMM_PROTOCOL_HCCS_ONLY] = { "HCCS_ONLY", false, false, true },
	[COMM_PROTOCOL_UB_RTP] = { "UB_RTP", true, true, true },
};

static HcclResult protocol(const char *what, u32 n, const struct protocol **out)
{
	const struct protocol *p = &protocols[n < ARRAY_SIZE(protocols) ? n : 0];

	if (n >= ARRAY_SIZE(protocols))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: protocol %d; there are 0 (HCCS) to %zu", what, (int)n,
				  ARRAY_SIZE(protocols) - 1);
	if (!p->here)
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: protocol %s: networks between servers are not emulated", what,
				  p->name);
	if (p->ub != !!npuacl.info.has_udma && n != COMM_PROTOCOL_PCIE)
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: machine %s does not have protocol %s; it has %s", what,
				  npuacl.info.machine, p->name,
				  npuacl.info.has_udma ? "UB_CTP, UBC_TP, UB_RTP, UB_MEM and PCIE" :
				  "HCCS, HCCS_ONLY, SIO and PCIE");
	*out = p;
	return HCCL_SUCCESS;
}

/* ---- Who it is -------------------------------------------------------------------------------- */

static HcclResult address(const char *what, const CommAddr *a, struct hcomm_ident *id)
{
	size_t n;

	switch (a->type) {
	case COMM_ADDR_TYPE_RESERVED:
		n = 0;
		break;
	case COMM_ADDR_TYPE_IP_V4:
		n = sizeof(a->addr);
		break;
	case COMM_ADDR_TYPE_IP_V6:
		n = sizeof(a->addr6);
		break;
	case COMM_ADDR_TYPE_ID:
		n = sizeof(a->id);
		break;
	case COMM_ADDR_TYPE_EID:
		n = sizeof(a->eid);
		break;
	default:
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no type of address %d", what, (int)a->type);
	}
	id->addr_type = (u32)a->type;
	memcpy(id->addr, a->raws, n);
	return HCCL_SUCCESS;
}

HcclResult hcomm_identify(const char *what, const EndpointDesc *d, struct hcomm_ident *id)
{
	const struct protocol *p;
	HcclResult ret;

	memset(id, 0, sizeof(*id));
	ret = protocol(what, (u32)d->protocol, &p);
	if (!ret)
		ret = address(what, &d->commAddr, id);
	if (ret)
		return ret;
	id->protocol = (u32)d->protocol;
	id->loc_type = (u32)d->loc.locType;
	switch (d->loc.locType) {
	case ENDPOINT_LOC_TYPE_DEVICE:
		id->loc_id = d->loc.device.devPhyId;
		return HCCL_SUCCESS;
	case ENDPOINT_LOC_TYPE_HOST:
		id->loc_id = d->loc.host.id;
		return HCCL_SUCCESS;
	default:
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no type of location %d; it is a device (0) or the host (1)",
				  what, (int)d->loc.locType);
	}
}

void hcomm_ident_text(const struct hcomm_ident *id, char *buf, size_t size)
{
	const char *name = id->protocol < ARRAY_SIZE(protocols) ? protocols[id->protocol].name : "?";
	char addr[64] = "without an address";
	u32 i, n = 0;

	switch ((CommAddrType)id->addr_type) {
	case COMM_ADDR_TYPE_IP_V4:
		inet_ntop(AF_INET, id->addr, addr, sizeof(addr));
		break;
	case COMM_ADDR_TYPE_IP_V6:
		inet_ntop(AF_INET6, id->addr, addr, sizeof(addr));
		break;
	case COMM_ADDR_TYPE_ID:
		memcpy(&n, id->addr, sizeof(n));
		snprintf(addr, sizeof(addr), "id %u", n);
		break;
	case COMM_ADDR_TYPE_EID:
		n = (u32)snprintf(addr, sizeof(addr), "eid ");
		for (i = 0; i < COMM_ADDR_EID_LEN; i++)
			n += (u32)snprintf(addr + n, sizeof(addr) - n, "%02x", id->addr[i]);
		break;
	default:
		break;
	}
	snprintf(buf, size, "%s, %s, %s %u", name, addr, id->loc_type == ENDPOINT_LOC_TYPE_HOST ? "host" : "device",
		 id->loc_id);
}

/* ---- What there is -------------------------------------------------------------------------------- */

static const CommProtocol ub[] = { COMM_PROTOCOL_UB_CTP, COMM_PROTOCOL_UB_RTP, COMM_PROTOCOL_UB_MEM };
static const CommProtocol hccs[] = { COMM_PROTOCOL_HCCS };

static HcclResult offered(const char *what, s32 dev, const CommProtocol **list, u32 *n)
{
	aclError err = npuacl_open();

	if (err)
		return hccl_fail_acl(err, what);
	if (dev < 0 || dev >= (s32)npuacl.info.devices)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: device %d; the machine has 0 to %u", what, dev,
				  npuacl.info.devices - 1);
	*list = npuacl.info.has_udma ? ub : hccs;
	*n = npuacl.info.has_udma ? ARRAY_SIZE(ub) : ARRAY_SIZE(hccs);
	return HCCL_SUCCESS;
}

HcommResult HcommEndpointGetDescNum(int32_t devPhyId, uint32_t *descNum)
{
	static const char what[] = "HcommEndpointGetDescNum";
	const CommProtocol *list;

	if (!descNum)
		return hccl_null(what, "descNum");
	return offered(what, devPhyId, &list, descNum);
}

static void describe(u32 dev, CommProtocol p, EndpointDesc *d)
{
	struct npuemu_device_info info = { .size = sizeof(info) };
	u8 *eid = d->commAddr.eid;

	EndpointDescInit(d, 1);
	d->protocol = p;
	if (protocols[p].ub) {
		d->commAddr.type = COMM_ADDR_TYPE_EID;
		memset(eid, 0, COMM_ADDR_EID_LEN);
		eid[0] = 0xfe;
		eid[1] = 0x80;
		eid[COMM_ADDR_EID_LEN - 2] = (u8)(dev >> 8);
		eid[COMM_ADDR_EID_LEN - 1] = (u8)dev;
	} else {
		d->commAddr.type = COMM_ADDR_TYPE_ID;
		d->commAddr.id = dev;
	}
	if (npuemu_device_query(npuacl.board, dev, &info))
		info.server = 0;
	d->loc.locType = ENDPOINT_LOC_TYPE_DEVICE;
	d->loc.device.devPhyId = dev;
	d->loc.device.superDevId = dev;
	d->loc.device.serverIdx = info.server;
	d->loc.device.superPodIdx = 0;
}

HcommResult HcommEndpointGetDescs(int32_t devPhyId, uint32_t *descNum, EndpointDesc *endpointDescs)
{
	static const char what[] = "HcommEndpointGetDescs";
	const CommProtocol *list;
	HcclResult ret;
	u32 n, i;

	if (!descNum || !endpointDescs)
		return hccl_null(what, descNum ? "endpointDescs" : "descNum");
	ret = offered(what, devPhyId, &list, &n);
	if (ret)
		return ret;
	if (*descNum < n)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: room for %u descriptions; there are %u (HcommEndpointGetDescNum)",
				  what, *descNum, n);
	for (i = 0; i < n; i++)
		describe((u32)devPhyId, list[i], &endpointDescs[i]);
	*descNum = n;
	return HCCL_SUCCESS;
}

HcommResult HcommEndpointCheckFeature(HcommEndpointFeatureType feature, const EndpointDesc *endpoint, bool *isSupported)
{
	static const char what[] = "HcommEndpointCheckFeature";
	struct hcomm_ident id;
	aclError err;
	HcclResult ret;

	if (!endpoint || !isSupported)
		return hccl_null(what, endpoint ? "isSupported" : "endpoint");
	if (feature != HCOMM_ENDPOINT_FEATURE_NDA)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no feature %d", what, (int)feature);
	err = npuacl_open();
	ret = err ? hccl_fail_acl(err, what) : hcomm_identify(what, endpoint, &id);
	if (!ret)
		*isSupported = false;	/* its networks are those between servers */
	return ret;
}

/* ---- Made and unmade ---------------------------------------------------------------------------------- */

HcclResult hcomm_endpoint(const char *what, EndpointHandle handle, struct hcomm_endpoint **out)
{
	struct hcomm_endpoint *ep = handle;

	if (!ep)
		return hccl_null(what, "endpointHandle");
	if (!npuemu_slab_holds(&hcomm_endpoints, ep, NPUEMU_SLAB_SIZE(*ep)) || ep->board != npuacl.board)
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %p is no endpoint, or has been destroyed", what, handle);
	*out = ep;
	return HCCL_SUCCESS;
}

static HcclResult placed(const char *what, const struct hcomm_ident *id, struct npuacl_device **dev)
{
	struct npuacl_ctx *ctx;
	aclError err = npuacl_current(&ctx);

	if (err)
		return hccl_fail_acl(err, what);
	if (id->loc_type == ENDPOINT_LOC_TYPE_DEVICE && id->loc_id != ctx->dev->phys)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: the endpoint is of physical device %u, but the thread has set %u (aclrtSetDevice)",
				  what, id->loc_id, ctx->dev->phys);
	*dev = ctx->dev;
	return HCCL_SUCCESS;
}

HcommResult HcommEndpointCreate(const EndpointDesc *endpoint, EndpointHandle *endpointHandle)
{
	static const char what[] = "HcommEndpointCreate";
	struct npuacl_device *dev = NULL;
	struct hcomm_endpoint *ep;
	struct hcomm_ident id;
	HcclResult ret;
	aclError err;

	if (!endpoint || !endpointHandle)
		return hccl_null(what, endpoint ? "endpointHandle" : "endpoint");
	err = npuacl_open();
	ret = err ? hccl_fail_acl(err, what) : hcomm_identify(what, endpoint, &id);
	if (!ret)
		ret = placed(what, &id, &dev);
	if (ret)
		return ret;
	hcomm_watch_forks();
	ep = npuemu_slab_alloc(&hcomm_endpoints);
	if (!ep)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: this process has %u endpoints, the most it can", what,
				  hcomm_endpoints.max);
	ret = hcomm_desk_make(what, dev, &id, &ep->desk);
	if (ret) {
		npuemu_slab_free(&hcomm_endpoints, ep);
		return ret;
	}
	ep->board = npuacl.board;
	ep->dev = dev;
	ep->self = id;
	ep->prefers_queue = protocols[id.protocol].queue;
	ep->port = FIRST_PORT + (u32)(hcomm_number() % (65536 - FIRST_PORT));
	pthread_mutex_init(&ep->lock, NULL);
	npuemu_slab_publish(&hcomm_endpoints, ep);
	*endpointHandle = ep;
	return HCCL_SUCCESS;
}

static u32 count_mems(const struct hcomm_endpoint *ep)
{
	const struct hcomm_mem *m;
	u32 n = 0;

	for (m = ep->mems; m; m = m->next)
		n++;
	return n;
}

HcommResult HcommEndpointDestroy(EndpointHandle endpointHandle)
{
	static const char what[] = "HcommEndpointDestroy";
	struct hcomm_import *i;
	struct hcomm_endpoint *ep;
	u32 channels, mems;
	HcclResult ret = hcomm_endpoint(what, endpointHandle, &ep);

	if (ret)
		return ret;
	pthread_mutex_lock(&ep->lock);
	channels = ep->channels;
	mems = count_mems(ep);
	/* of two threads that destroy it one does */
	if (!channels && !mems && !npuemu_slab_retire(&hcomm_endpoints, ep))
		ret = hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %p has been destroyed already", what, endpointHandle);
	pthread_mutex_unlock(&ep->lock);
	if (channels || mems)
		return hccl_fail(HCCL_E_AGAIN, "EI0003", "%s: it has %u channels (HcommChannelDestroy, and what threads still do over them) and %u registrations (HcommMemUnreg)",
				  what, channels, mems);
	if (ret)
		return ret;
	while ((i = ep->imports)) {
		ep->imports = i->next;
		hcomm_desk_put(i->desk);
		free(i);
	}
	npuacl_export_drop(ep->desk->key.id);	/* nobody finds it any more; who has it may look at it yet */
	hcomm_desk_put(ep->desk);
	pthread_mutex_destroy(&ep->lock);
	npuemu_slab_free(&hcomm_endpoints, ep);
	return HCCL_SUCCESS;
}

HcommResult HcommEndpointGetListenPort(EndpointHandle endpointHandle, uint32_t *port)
{
	static const char what[] = "HcommEndpointGetListenPort";
	struct hcomm_endpoint *ep;
	HcclResult ret = hcomm_endpoint(what, endpointHandle, &ep);

	if (ret)
		return ret;
	if (!port)
		return hccl_null(what, "port");
	*port = ep->port;
	return HCCL_SUCCESS;
}
