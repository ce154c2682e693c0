// SPDX-License-Identifier: MIT
/*
 * Endpoints of a communicator, and the memory that peers of its channels are told of.
 *
 * A rank has one endpoint for each protocol that it makes channels of.  By what it is
 * known follows from the group and the rank, so that all ranks know it without being
 * told, and no other endpoint is known by the same.  Memory is registered with all of
 * them: a queue takes nothing else on its own side either.
 */
#include <hccl/hccl_channel.h>
#include <hccl/hccl_res.h>
#include <hcomm_res.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "comm.h"

HcclResult hccl_on_device(struct hccl_comm *c, const char *what)
{
	struct npuacl_ctx *ctx;
	aclError err = npuacl_current(&ctx);

	if (err)
		return hccl_fail_acl(err, what);
	if (ctx->dev != c->dev)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: the thread has set device %u, but rank %u of communicator %.64s is on device %u (aclrtSetDevice)",
				 what, ctx->dev->id, c->rank, c->name, c->dev->id);
	return HCCL_SUCCESS;
}

HcclResult hccl_said(const struct hccl_comm *c, const char *what, s32 peer, HcclResult code)
{
	char text[sizeof(npuacl_self.message)], to[32] = "";

	if (!code)
		return HCCL_SUCCESS;
	memcpy(text, npuacl_self.message, sizeof(text));
	if (peer >= 0)
		snprintf(to, sizeof(to), ", to rank %d", peer);
	return hccl_fail(code, code == HCCL_E_REMOTE ? "EI0006" : "EI0003", "%s: rank %u of communicator %.64s%s: %s", what, c->rank,
			 c->name, to, text);
}

/* ---- Endpoints --------------------------------------------------------------------------- */

void hccl_end_describe(const struct hccl_comm *c, u32 rank, CommProtocol protocol, EndpointDesc *d)
{
	u64 seed = c->local->key.id ^ npuemu_random(&(u64){ c->local->key.secret }), half[2];

	half[0] = npuemu_random(&seed);
	half[1] = (npuemu_random(&seed) & ~0xffffull) | rank;
	EndpointDescInit(d, 1);
	d->protocol = protocol;
	d->commAddr.type = COMM_ADDR_TYPE_EID;
	memcpy(d->commAddr.eid, half, sizeof(half));
	d->loc.locType = ENDPOINT_LOC_TYPE_DEVICE;
	d->loc.device.devPhyId = c->group->member[rank].device;
}

static void end_unmake(struct hccl_comm *c, u32 p)
{
	struct timespec nap = { .tv_nsec = 10000000 };
	struct hccl_end *e = &c->res.end[p];
	struct hccl_memreg *m;
	HcommResult ret;
	u32 tries;

	for (m = c->res.memregs; m; m = m->next) {
		if (m->at[p])
			HcommMemUnreg(e->ep, m->at[p]);
		m->at[p] = NULL;
	}
	if (e->buffer)
		HcommMemUnreg(e->ep, e->buffer);
	/* streams come to operations whose channel is gone, and let go of it */
	for (tries = 0; (ret = HcommEndpointDestroy(e->ep)) == HCCL_E_AGAIN && tries < 200; tries++) {
		npuacl_look();
		nanosleep(&nap, NULL);
	}
	if (ret)
		npuemu_log(NPUEMU_LOG_WARN, "hccl: an endpoint of rank %u of communicator %.64s stays: %s", c->rank, c->name,
			   npuacl_self.message);
	memset(e, 0, sizeof(*e));
}

/* What the communicator has so far, for a new one. */
static HcclResult fill(struct hccl_comm *c, struct hccl_end *e, u32 p)
{
	CommMem buffer = { .type = COMM_MEM_TYPE_DEVICE, .addr = c->ccl_ptr, .size = c->ccl_bytes };
	HcommResult ret = HcommMemReg(e->ep, NULL, &buffer, &e->buffer);
	struct hccl_memreg *m;

	for (m = c->res.memregs; m && !ret; m = m->next)
		ret = HcommMemReg(e->ep, m->tag, &m->mem, &m->at[p]);
	return (HcclResult)ret;
}

HcclResult hccl_end_make(struct hccl_comm *c, const char *what, CommProtocol protocol, struct hccl_end **out)
{
	struct hccl_end *e;
	EndpointDesc d;
	HcclResult ret;

	if ((u32)protocol >= HCCL_PROTOCOLS)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no protocol %d; 0 (HCCS) to %u", what, (int)protocol,
				 HCCL_PROTOCOLS - 1);
	e = &c->res.end[protocol];
	*out = e;
	if (e->ep)
		return HCCL_SUCCESS;
	ret = hccl_buffer_show(c, what);
	if (ret)
		return ret;
	hccl_end_describe(c, c->rank, protocol, &d);
	ret = hccl_said(c, what, -1, (HcclResult)HcommEndpointCreate(&d, &e->ep));
	if (ret) {
		e->ep = NULL;
		return ret;
	}
	ret = hccl_said(c, what, -1, fill(c, e, (u32)protocol));
	if (ret) {
		char text[sizeof(npuacl_self.message)];

		memcpy(text, npuacl_self.message, sizeof(text));
		end_unmake(c, (u32)protocol);
		memcpy(npuacl_self.message, text, sizeof(text));
	}
	return ret;
}

void hccl_ends_free(struct hccl_comm *c)
{
	struct hccl_memreg *m;
	u32 p;

	for (p = 0; p < HCCL_PROTOCOLS; p++)
		if (c->res.end[p].ep)
			end_unmake(c, p);
	while ((m = c->res.memregs)) {
		c->res.memregs = m->next;
		free(m);
	}
}

/* ---- Descriptions of channels ---------------------------------------------------------------- */

/* An end that is described has to be the rank's. */
static HcclResult check_end(struct hccl_comm *c, const char *what, const char *which, const EndpointDesc *e, u32 rank,
			    CommProtocol protocol)
{
	if (e->protocol != COMM_PROTOCOL_RESERVED && e->protocol != protocol)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %s is of protocol %d, the channel of %d", what, which, (int)e->protocol,
				 (int)protocol);
	if (e->loc.locType == ENDPOINT_LOC_TYPE_DEVICE && e->loc.device.devPhyId != c->group->member[rank].device)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %s is on physical device %u, but rank %u of communicator %.64s on %u", what,
				 which, e->loc.device.devPhyId, rank, c->name, c->group->member[rank].device);
	return HCCL_SUCCESS;
}

HcclResult hccl_chan_check(struct hccl_comm *c, const char *what, const HcclChannelDesc *d)
{
	HcclResult ret;

	if (d->header.magicWord != HCCL_CHANNEL_MAGIC_WORD || d->header.version != HCCL_CHANNEL_VERSION ||
	    d->header.size != sizeof(*d))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: a description of version %u, magic word %#x, %u bytes: HcclChannelDescInit() prepares it",
				 what, d->header.version, d->header.magicWord, d->header.size);
	if (d->remoteRank >= c->ranks)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: remoteRank is %u; communicator %.64s has ranks 0 to %u", what, d->remoteRank,
				 c->name, c->ranks - 1);
	if (d->remoteRank == c->rank)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: remoteRank is %u, the caller itself: channels go to other ranks of communicator %.64s",
				 what, d->remoteRank, c->name);
	if (d->memHandleNum && !d->memHandles)
		return hccl_null(what, "memHandles");
	ret = check_end(c, what, "localEndpoint", &d->localEndpoint, c->rank, d->channelProtocol);
	return ret ? ret : check_end(c, what, "remoteEndpoint", &d->remoteEndpoint, d->remoteRank, d->channelProtocol);
}

/* ---- Memory with a name --------------------------------------------------------------------- */

struct hccl_memreg *hccl_memreg_of(struct hccl_comm *c, const void *handle)
{
	struct hccl_memreg *m = c->res.memregs;

	while (m && m != handle)
		m = m->next;
	return m;
}

/* Without an endpoint nothing would look at it before there is a channel. */
static HcclResult look(struct hccl_comm *c, const char *what, const CommMem *mem)
{
	struct npuacl_side side;
	aclError err;

	if (mem->type != COMM_MEM_TYPE_DEVICE && mem->type != COMM_MEM_TYPE_HOST)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no type of memory %d; it is device (0) or host (1)", what,
				 (int)mem->type);
	err = npuacl_side(what, "mem", (u64)(uintptr_t)mem->addr, mem->size, &side);
	if (err)
		return hccl_fail_acl(err, what);
	if (npuacl_on_device(&side.at) != (mem->type == COMM_MEM_TYPE_DEVICE))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %p is %s memory, not %s memory (rank %u of communicator %.64s)", what,
				 mem->addr, npuacl_on_device(&side.at) ? "device" : "host",
				 npuacl_on_device(&side.at) ? "host" : "device", c->rank, c->name);
	if (side.split)
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: the %p of rank %u of communicator %.64s is of several mappings: register each",
				 what, mem->addr, c->rank, c->name);
	return HCCL_SUCCESS;
}

static HcclResult check(struct hccl_comm *c, const char *what, const char *tag, const CommMem *mem, void *handle)
{
	size_t n;

	if (!tag || !mem || !handle)
		return hccl_null(what, !tag ? "memTag" : mem ? "memHandle" : "mem");
	n = strnlen(tag, HCCL_RES_TAG_MAX_LEN + 1);
	if (!n || n > HCCL_RES_TAG_MAX_LEN)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: memTag has %zu%s letters; 1 to %u", what, n, n ? " or more" : "",
				 HCCL_RES_TAG_MAX_LEN);
	if (!mem->addr)
		return hccl_null(what, "mem->addr");
	if (!mem->size || (u64)(uintptr_t)mem->addr + mem->size < mem->size)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %llu bytes from %p on", what, (unsigned long long)mem->size, mem->addr);
	return look(c, what, mem);
}

/* ends_lock held: with all endpoints that there are, or none. */
static HcclResult enter(struct hccl_comm *c, const char *what, struct hccl_memreg *m)
{
	struct hccl_memreg *other;
	HcclResult ret = HCCL_SUCCESS;
	u32 p;

	for (other = c->res.memregs; other; other = other->next)
		if (!strcmp(other->tag, m->tag))
			return hccl_fail(HCCL_E_PARA, "EI0003", "%s: rank %u of communicator %.64s has memory \"%s\" already, %p", what,
					 c->rank, c->name, m->tag, other->mem.addr);
	for (p = 0; p < HCCL_PROTOCOLS && !ret; p++)
		if (c->res.end[p].ep)
			ret = hccl_said(c, what, -1, (HcclResult)HcommMemReg(c->res.end[p].ep, m->tag, &m->mem, &m->at[p]));
	if (ret) {
		while (p--)
			if (m->at[p])
				HcommMemUnreg(c->res.end[p].ep, m->at[p]);
		return ret;
	}
	m->next = c->res.memregs;
	c->res.memregs = m;
	return HCCL_SUCCESS;
}

HcclResult HcclCommMemReg(HcclComm comm, const char *memTag, const CommMem *mem, HcclMemHandle *memHandle)
{
	static const char what[] = "HcclCommMemReg";
	struct hccl_memreg *m;
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, what, &c);

	if (!ret)
		ret = check(c, what, memTag, mem, memHandle);
	if (ret)
		return ret;
	m = calloc(1, sizeof(*m));
	if (!m)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	m->mem = *mem;
	memcpy(m->tag, memTag, strlen(memTag) + 1);
	pthread_mutex_lock(&c->res.ends_lock);
	ret = enter(c, what, m);
	pthread_mutex_unlock(&c->res.ends_lock);
	if (ret)
		free(m);
	else
		*memHandle = m;
	return ret;
}
