// SPDX-License-Identifier: MIT
/*
 * Channels of a communicator: those of lib/transport, from the rank's endpoint to that of
 * another rank.  There is one for each rank, protocol and engine.  Ends of the same engine
 * find each other; whoever makes several begins with all of them before it waits for any.
 */
#include <hccl/hccl_channel.h>
#include <hcomm_channel.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "comm.h"

#define LOOK_NS		100000000ll	/* are the others there? */

struct hccl_chan {
	struct hccl_chan *next;
	ChannelHandle handle;
	u32 rank;
	CommProtocol protocol;
	CommEngine engine;
	u32 notifies;
	bool ready;
	u32 mems;			/* that the peer was told of */
	struct hccl_memreg **mem;
	/* that it told of; once it is ready */
	void *buffer;
	u64 bytes;
	u32 remotes;
	CommMem *remote;
	char **tag;
};

/* ---- The list: ends_lock held ------------------------------------------------------------ */

static struct hccl_chan *known(struct hccl_comm *c, CommEngine engine, const HcclChannelDesc *d)
{
	struct hccl_chan *ch = c->res.chans;

	while (ch && (ch->rank != d->remoteRank || ch->protocol != d->channelProtocol || ch->engine != engine))
		ch = ch->next;
	return ch;
}

static struct hccl_chan **find(struct hccl_comm *c, ChannelHandle handle)
{
	struct hccl_chan **at = &c->res.chans;

	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	return at;
}

static void chan_free(struct hccl_chan *ch)
{
	u32 i;

	if (ch->handle)
		HcommChannelDestroy(&ch->handle, 1);
	for (i = 0; ch->tag && i < ch->remotes; i++)
		free(ch->tag[i]);
	free(ch->tag);
	free(ch->remote);
	free(ch->mem);
	free(ch);
}

static HcclResult absent(struct hccl_comm *c, const char *what, ChannelHandle handle)
{
	return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %#" PRIx64 " is no channel of rank %u of communicator %.64s, or has been destroyed",
			 what, (u64)handle, c->rank, c->name);
}

/* ---- What is asked for ----------------------------------------------------------------------- */

static HcclResult begin(const char *what, HcclComm comm, CommEngine engine, const HcclChannelDesc *descs, u32 n,
			ChannelHandle *channels, struct hccl_comm **c)
{
	HcclResult ret = hccl_comm(comm, what, c);
	u32 i;

	if (ret)
		return ret;
	if (!descs || !channels)
		return hccl_null(what, descs ? "channels" : "channelDescs");
	if (!n || n > HCCL_ENTRIES)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: channelNum is %u; 1 to %u", what, n, HCCL_ENTRIES);
	ret = hcomm_engine(what, engine);
	for (i = 0; i < n && !ret; i++)
		ret = hccl_chan_check(*c, what, &descs[i]);
	return ret;
}

/* ---- Made: ends_lock held ----------------------------------------------------------------------- */

/* Has it all that is asked for now? */
static HcclResult fits(struct hccl_comm *c, const char *what, const struct hccl_chan *ch, const HcclChannelDesc *d)
{
	u32 i, k;

	if (d->notifyNum > ch->notifies)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %u notifies: the channel of communicator %.64s from rank %u to %u was made with %u; HcclChannelDestroy comes first",
				 what, d->notifyNum, c->name, c->rank, ch->rank, ch->notifies);
	for (i = 0; i < d->memHandleNum; i++) {
		for (k = 0; k < ch->mems && ch->mem[k] != d->memHandles[i]; k++)
			;
		if (k == ch->mems)
			return hccl_fail(HCCL_E_PARA, "EI0003", "%s: memHandles[%u]: the channel of communicator %.64s from rank %u to %u was made without that memory; HcclChannelDestroy comes first",
					 what, i, c->name, c->rank, ch->rank);
	}
	return HCCL_SUCCESS;
}

/* The endpoint's names of the memory that the peer is told of. */
static HcclResult told(struct hccl_comm *c, const char *what, const HcclChannelDesc *d, const struct hccl_end *e,
		       struct hccl_chan *ch, HcommMemHandle *mems)
{
	u32 i;

	mems[0] = e->buffer;
	for (i = 0; i < d->memHandleNum; i++) {
		ch->mem[i] = hccl_memreg_of(c, d->memHandles[i]);
		if (!ch->mem[i])
			return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: memHandles[%u] is %p, no memory of rank %u of communicator %.64s (HcclCommMemReg)",
					 what, i, d->memHandles[i], c->rank, c->name);
		mems[1 + i] = ch->mem[i]->at[d->channelProtocol];
	}
	ch->mems = d->memHandleNum;
	return HCCL_SUCCESS;
}

static HcclResult make(struct hccl_comm *c, const char *what, CommEngine engine, const HcclChannelDesc *d,
		       struct hccl_chan *ch)
{
	HcommMemHandle *mems = calloc((size_t)d->memHandleNum + 1, sizeof(*mems));
	struct hccl_end *e;
	HcommChannelDesc h;
	char name[32];
	HcclResult ret;

	ch->mem = calloc((size_t)d->memHandleNum + 1, sizeof(struct hccl_memreg *));
	if (!mems || !ch->mem) {
		free(mems);
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	}
	ret = hccl_end_make(c, what, d->channelProtocol, &e);
	if (!ret)
		ret = told(c, what, d, e, ch, mems);
	if (!ret) {
		snprintf(name, sizeof(name), "engine %d", (int)engine);
		HcommChannelDescInit(&h, 1);
		hccl_end_describe(c, d->remoteRank, d->channelProtocol, &h.remoteEndpoint);
		h.notifyNum = d->notifyNum;
		h.memHandles = mems;
		h.memHandleNum = 1 + d->memHandleNum;
		h.channelName = name;
		ret = hccl_said(c, what, (s32)d->remoteRank, (HcclResult)HcommChannelCreate(e->ep, engine, &h, 1, &ch->handle));
		ch->handle = ret ? 0 : ch->handle;
	}
	free(mems);
	return ret;
}

static HcclResult have(struct hccl_comm *c, const char *what, CommEngine engine, const HcclChannelDesc *d,
		       ChannelHandle *handle, bool *fresh)
{
	struct hccl_chan *ch = known(c, engine, d);
	HcclResult ret;

	if (ch) {
		*handle = ch->handle;
		return fits(c, what, ch, d);
	}
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	ch->rank = d->remoteRank;
	ch->protocol = d->channelProtocol;
	ch->engine = engine;
	ch->notifies = d->notifyNum;
	ret = make(c, what, engine, d, ch);
	if (ret) {
		chan_free(ch);
		return ret;
	}
	ch->next = c->res.chans;
	c->res.chans = ch;
	*handle = ch->handle;
	*fresh = true;
	return HCCL_SUCCESS;
}

/* What the peer told of: its buffer, and memory with a name. */
static HcclResult note(struct hccl_comm *c, const char *what, struct hccl_chan *ch)
{
	u64 va = c->group->member[ch->rank].ccl.va;
	struct hcomm_told t;
	u32 n = 0, i;

	while (hcomm_channel_told(ch->handle, n, &t))
		n++;
	ch->remote = calloc((size_t)n + 1, sizeof(*ch->remote));
	ch->tag = calloc((size_t)n + 1, sizeof(*ch->tag));
	for (i = 0; ch->remote && ch->tag && i < n && hcomm_channel_told(ch->handle, i, &t); i++) {
		if (!ch->buffer && (u64)(uintptr_t)t.mem.addr == va) {
			ch->buffer = t.mem.addr;
			ch->bytes = t.mem.size;
			continue;
		}
		ch->remote[ch->remotes] = t.mem;
		ch->tag[ch->remotes] = strdup(t.tag);
		if (!ch->tag[ch->remotes++])
			break;
	}
	if (!ch->remote || !ch->tag || i < n)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	if (!ch->buffer)
		return hccl_fail(HCCL_E_REMOTE, "EI0006", "%s: rank %u of communicator %.64s has told rank %u of no buffer", what, ch->rank,
				 c->name, c->rank);
	ch->ready = true;
	return HCCL_SUCCESS;
}

/* A step further: HCCL_E_AGAIN as long as the peer has not come. */
static HcclResult step(struct hccl_comm *c, const char *what, ChannelHandle handle, u32 rank)
{
	struct hccl_chan *ch = *find(c, handle);
	HcclResult ret;
	s32 status;

	if (!ch)
		return absent(c, what, handle);
	ret = (HcclResult)HcommChannelGetStatus(&handle, 1, &status);
	if (!ret)
		ret = (HcclResult)status;
	if (ret == HCCL_E_AGAIN)
		return ret;
	if (ret)
		return hccl_said(c, what, (s32)rank, ret);
	return ch->ready ? HCCL_SUCCESS : note(c, what, ch);
}

/* ---- Waited for --------------------------------------------------------------------------------- */

/* All of them: of two ends one links, so that each has to be looked at again and again. */
static HcclResult steps(struct hccl_comm *c, const char *what, const HcclChannelDesc *d, u32 n, const ChannelHandle *channels,
			u32 *missing)
{
	HcclResult ret = HCCL_SUCCESS, one;
	u32 i;

	pthread_mutex_lock(&c->res.ends_lock);
	for (i = 0; i < n && (!ret || ret == HCCL_E_AGAIN); i++) {
		one = step(c, what, channels[i], d[i].remoteRank);
		if (one == HCCL_E_AGAIN)
			*missing = i;
		ret = one ? one : ret;
	}
	pthread_mutex_unlock(&c->res.ends_lock);
	return ret;
}

static HcclResult gone(struct hccl_comm *c, const char *what, u32 rank)
{
	hccl_group_check(c);
	if (smp_load_acquire(&c->group->member[rank].state) == HCCL_LEFT)
		return hccl_fail(HCCL_E_REMOTE, "EI0006", "%s: rank %u waits for a channel to rank %u, which has destroyed communicator %.64s",
				 what, c->rank, rank, c->name);
	return HCCL_SUCCESS;
}

static HcclResult wait_for(struct hccl_comm *c, const char *what, CommEngine engine, const HcclChannelDesc *d, u32 n,
			   const ChannelHandle *channels)
{
	s64 since = npuemu_now_ns(), look = since + LOOK_NS, now;
	struct timespec nap = { .tv_nsec = 200000 };
	HcclResult ret;
	u32 at = 0;

	while ((ret = steps(c, what, d, n, channels, &at)) == HCCL_E_AGAIN) {
		now = npuemu_now_ns();
		if (c->cfg.connect_ns && now - since >= c->cfg.connect_ns)
			return hccl_fail(HCCL_E_TIMEOUT, "EI0006", "%s: rank %u has not made a channel of engine %d and protocol %d to rank %u of communicator %.64s within %.1f s (HCCL_CONNECT_TIMEOUT): it has to call HcclChannelAcquire, too",
					 what, d[at].remoteRank, (int)engine, (int)d[at].channelProtocol, c->rank, c->name,
					 (double)(now - since) / 1e9);
		ret = hccl_broken(c, what);
		if (!ret && now >= look) {
			look = now + LOOK_NS;
			ret = gone(c, what, d[at].remoteRank);
		}
		if (ret)
			return ret;
		nanosleep(&nap, NULL);
	}
	return ret;
}

/* Those that were made for a call that has failed; its message stays. */
static void take_back(struct hccl_comm *c, const ChannelHandle *channels, const bool *fresh, u32 n)
{
	char text[sizeof(npuacl_self.message)];
	struct hccl_chan **at, *ch;
	u32 i;

	memcpy(text, npuacl_self.message, sizeof(text));
	pthread_mutex_lock(&c->res.ends_lock);
	for (i = 0; i < n; i++) {
		at = find(c, fresh[i] ? channels[i] : 0);
		ch = *at;
		if (!ch)
			continue;
		*at = ch->next;
		chan_free(ch);
	}
	pthread_mutex_unlock(&c->res.ends_lock);
	memcpy(npuacl_self.message, text, sizeof(text));
}

static HcclResult acquire(const char *what, struct hccl_comm *c, CommEngine engine, const HcclChannelDesc *descs, u32 n,
			  ChannelHandle *channels)
{
	HcclResult ret = hccl_broken(c, what);
	bool *fresh;
	u32 i;

	if (!ret)
		ret = hccl_on_device(c, what);
	if (ret)
		return ret;
	fresh = calloc(n, sizeof(*fresh));
	if (!fresh)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	pthread_mutex_lock(&c->res.ends_lock);
	for (i = 0; i < n && !ret; i++)
		ret = have(c, what, engine, &descs[i], &channels[i], &fresh[i]);
	pthread_mutex_unlock(&c->res.ends_lock);
	if (!ret)
		ret = wait_for(c, what, engine, descs, n, channels);
	if (ret)
		take_back(c, channels, fresh, n);
	free(fresh);
	return ret;
}

HcclResult HcclChannelAcquire(HcclComm comm, CommEngine engine, const HcclChannelDesc *channelDescs, uint32_t channelNum,
			      ChannelHandle *channels)
{
	static const char what[] = "HcclChannelAcquire";
	struct hccl_comm *c;
	HcclResult ret = begin(what, comm, engine, channelDescs, channelNum, channels, &c);

	return ret ? ret : acquire(what, c, engine, channelDescs, channelNum, channels);
}

HcclResult HcclChannelAcquireWithConfig(HcclComm comm, CommEngine engine, const HcclChannelDesc *channelDescs,
					uint32_t channelNum, HcclChannelConfig config, ChannelHandle *channels)
{
	static const char what[] = "HcclChannelAcquireWithConfig";
	struct hcomm_config *wishes;
	struct hccl_comm *c;
	HcclResult ret = begin(what, comm, engine, channelDescs, channelNum, channels, &c);

	if (!ret)
		ret = hcomm_config(what, config, &wishes);
	return ret ? ret : acquire(what, c, engine, channelDescs, channelNum, channels);
}

/* ---- Asked about, and unmade ---------------------------------------------------------------------- */

HcclResult HcclChannelQuery(HcclComm comm, CommEngine engine, const HcclChannelDesc *channelDescs, uint32_t channelNum,
			    ChannelHandle *channels)
{
	static const char what[] = "HcclChannelQuery";
	struct hccl_chan *ch;
	struct hccl_comm *c;
	HcclResult ret = begin(what, comm, engine, channelDescs, channelNum, channels, &c);
	u32 i;

	if (ret)
		return ret;
	pthread_mutex_lock(&c->res.ends_lock);
	for (i = 0; i < channelNum && !ret; i++) {
		ch = known(c, engine, &channelDescs[i]);
		if (!ch || !ch->ready)
			ret = hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: rank %u of communicator %.64s has no channel of engine %d and protocol %d to rank %u",
					what, c->rank, c->name, (int)engine, (int)channelDescs[i].channelProtocol,
					channelDescs[i].remoteRank);
		else
			ret = fits(c, what, ch, &channelDescs[i]);
		if (!ret)
			channels[i] = ch->handle;
	}
	pthread_mutex_unlock(&c->res.ends_lock);
	return ret;
}

HcclResult HcclChannelDestroy(HcclComm comm, const ChannelHandle *channels, uint32_t channelNum)
{
	static const char what[] = "HcclChannelDestroy";
	struct hccl_chan **at, *ch;
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, what, &c);
	u32 i, k;

	if (ret)
		return ret;
	if (!channels)
		return hccl_null(what, "channels");
	if (!channelNum || channelNum > HCCL_ENTRIES)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: channelNum is %u; 1 to %u", what, channelNum, HCCL_ENTRIES);
	pthread_mutex_lock(&c->res.ends_lock);
	/* all of them, or none */
	for (i = 0; i < channelNum && !ret; i++) {
		if (!channels[i] || !*find(c, channels[i]))
			ret = absent(c, what, channels[i]);
		for (k = 0; k < i && !ret; k++)
			if (channels[k] == channels[i])
				ret = hccl_fail(HCCL_E_PARA, "EI0003", "%s: channels[%u] and channels[%u] are the same", what, k, i);
	}
	for (i = 0; i < channelNum && !ret; i++) {
		at = find(c, channels[i]);
		ch = *at;
		*at = ch->next;
		chan_free(ch);
	}
	pthread_mutex_unlock(&c->res.ends_lock);
	return ret;
}

/* ends_lock held. */
static HcclResult ready(struct hccl_comm *c, const char *what, ChannelHandle channel, struct hccl_chan **out)
{
	*out = channel ? *find(c, channel) : NULL;
	return *out && (*out)->ready ? HCCL_SUCCESS : absent(c, what, channel);
}

HcclResult HcclChannelGetHcclBuffer(HcclComm comm, ChannelHandle channel, void **buffer, uint64_t *size)
{
	static const char what[] = "HcclChannelGetHcclBuffer";
	struct hccl_chan *ch;
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, what, &c);

	if (ret)
		return ret;
	if (!buffer || !size)
		return hccl_null(what, buffer ? "size" : "buffer");
	pthread_mutex_lock(&c->res.ends_lock);
	ret = ready(c, what, channel, &ch);
	if (!ret) {
		*buffer = ch->buffer;
		*size = ch->bytes;
	}
	pthread_mutex_unlock(&c->res.ends_lock);
	return ret;
}

HcclResult HcclChannelGetRemoteMems(HcclComm comm, ChannelHandle channel, uint32_t *memNum, CommMem **remoteMems, char ***memTags)
{
	static const char what[] = "HcclChannelGetRemoteMems";
	struct hccl_chan *ch;
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, what, &c);

	if (ret)
		return ret;
	if (!memNum || !remoteMems || !memTags)
		return hccl_null(what, !memNum ? "memNum" : remoteMems ? "memTags" : "remoteMems");
	pthread_mutex_lock(&c->res.ends_lock);
	ret = ready(c, what, channel, &ch);
	if (!ret) {
		*memNum = ch->remotes;
		*remoteMems = ch->remote;
		*memTags = ch->tag;
	}
	pthread_mutex_unlock(&c->res.ends_lock);
	return ret;
}

/* ---- At the end -------------------------------------------------------------------------------------- */

u32 hccl_chans_busy(struct hccl_comm *c)
{
	const struct hccl_chan *ch;
	u32 n = 0;

	pthread_mutex_lock(&c->res.ends_lock);
	for (ch = c->res.chans; ch; ch = ch->next)
		n += hcomm_channel_busy(ch->handle);
	pthread_mutex_unlock(&c->res.ends_lock);
	return n;
}

void hccl_chans_free(struct hccl_comm *c)
{
	struct hccl_chan *ch;

	while ((ch = c->res.chans)) {
		c->res.chans = ch->next;
		chan_free(ch);
	}
}
