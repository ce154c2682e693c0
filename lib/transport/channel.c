// SPDX-License-Identifier: MIT
/* Channels: made from a description, asked how far they are, unmade. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "transport.h"

#define QUEUE_DEPTH	1024u
#define V1_SIZE		offsetof(HcommChannelDesc, qos)

struct npuemu_slab hcomm_channels = {
	.what = "channel", .size = NPUEMU_SLAB_SIZE(struct hcomm_channel), .max = 65536,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* ---- Configurations ---------------------------------------------------------------------- */

struct npuemu_slab hcomm_configs = {
	.what = "configuration of channels", .size = NPUEMU_SLAB_SIZE(struct hcomm_config), .max = 4096,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

HcclResult hcomm_config(const char *what, void *handle, struct hcomm_config **out)
{
	if (!handle)
		return hccl_null(what, "config");
	if (!npuemu_slab_alive(&hcomm_configs, handle))
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %p is no configuration of channels, or has been destroyed", what,
				 handle);
	*out = handle;
	return HCCL_SUCCESS;
}

HcclResult hcomm_config_make(const char *what, void **config)
{
	struct hcomm_config *c;

	if (!config)
		return hccl_null(what, "config");
	hcomm_watch_forks();
	c = npuemu_slab_alloc(&hcomm_configs);
	if (!c)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: this process has %u configurations, the most it can", what,
				  hcomm_configs.max);
	npuemu_slab_publish(&hcomm_configs, c);
	*config = c;
	return HCCL_SUCCESS;
}

HcclResult hcomm_config_drop(const char *what, void *handle)
{
	struct hcomm_config *c;
	HcclResult ret = hcomm_config(what, handle, &c);

	if (ret)
		return ret;
	if (!npuemu_slab_retire(&hcomm_configs, c))
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %p has been destroyed already", what, handle);
	npuemu_slab_free(&hcomm_configs, c);
	return HCCL_SUCCESS;
}

HcclResult hcomm_config_share(const char *what, struct hcomm_config *c, u32 value)
{
	if (value > 1)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: whether channels share a queue is 0 or 1, not %u", what, value);
	c->shared_queue = value;
	return HCCL_SUCCESS;
}

HcommResult HcommChannelConfigCreate(HcommChannelConfig *config)
{
	return hcomm_config_make("HcommChannelConfigCreate", config);
}

HcommResult HcommChannelConfigDestroy(HcommChannelConfig handle)
{
	return hcomm_config_drop("HcommChannelConfigDestroy", handle);
}

HcommResult HcommChannelConfigSetInt(HcommChannelConfig handle, HcommChannelConfigType type, uint32_t value)
{
	static const char what[] = "HcommChannelConfigSetInt";
	struct hcomm_config *c;
	HcclResult ret = hcomm_config(what, handle, &c);

	if (ret)
		return ret;
	if (type != HCOMM_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no type %d", what, (int)type);
	return hcomm_config_share(what, c, value);
}

/* ---- What is asked for ---------------------------------------------------------------------- */

static HcclResult check_header(const char *what, const HcommChannelDesc *d, u32 n)
{
	if (d->header.magicWord != HCOMM_CHANNEL_MAGIC_WORD || !d->header.version ||
	    d->header.version > HCOMM_CHANNEL_VERSION)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: a description of version %u, magic word %#x: HcommChannelDescInit() prepares it",
				  what, d->header.version, d->header.magicWord);
	if (d->header.size < V1_SIZE || (n > 1 && d->header.size != sizeof(*d)))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: a description of %u bytes; version %u has %zu", what,
				  d->header.size, HCOMM_CHANNEL_VERSION, sizeof(*d));
	if (d->socket)
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: socket: the ends of a channel find each other without; it has to be NULL",
				  what);
	if (d->role < HCOMM_SOCKET_ROLE_RESERVED || d->role > HCOMM_SOCKET_ROLE_SERVER)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no role %d", what, (int)d->role);
	if (d->notifyNum > HCOMM_NOTIFIES)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %u notifies; an endpoint has %u for all its channels", what,
				  d->notifyNum, HCOMM_NOTIFIES);
	return HCCL_SUCCESS;
}

HcclResult hcomm_engine(const char *what, CommEngine engine)
{
	switch (engine) {
	case COMM_ENGINE_CPU:
	case COMM_ENGINE_CPU_TS:
	case COMM_ENGINE_AICPU:
	case COMM_ENGINE_AICPU_TS:
		return HCCL_SUCCESS;
	case COMM_ENGINE_AIV:
	case COMM_ENGINE_CCU:
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: engine %s is not supported; CPU, CPU_TS, AICPU and AICPU_TS are",
				  what, engine == COMM_ENGINE_AIV ? "AIV" : "CCU");
	default:
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no engine %d", what, (int)engine);
	}
}

static HcclResult forced(const char *what, u32 *path)
{
	const char *v = npuemu_getenv("NPUEMU_TRANSPORT");

	*path = HCOMM_ANY;
	if (!v)
		return HCCL_SUCCESS;
	if (!strcmp(v, "mapped")) {
		*path = HCOMM_MAPPED;
		return HCCL_SUCCESS;
	}
	if (strcmp(v, "queue"))
		return hccl_fail(HCCL_E_PARA, "EI0001", "%s: NPUEMU_TRANSPORT is \"%.20s\"; queue or mapped (or not set)", what, v);
	if (!npuacl.info.has_udma)
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0001", "%s: NPUEMU_TRANSPORT is queue, but machine %s has no UDMA", what,
				  npuacl.info.machine);
	*path = HCOMM_QUEUE;
	return HCCL_SUCCESS;
}

static HcclResult name_of(const char *what, const HcommChannelDesc *d, char *name)
{
	const char *s = d->header.version >= 2 && d->header.size == sizeof(*d) ? d->channelName : NULL;

	if (s && strnlen(s, HCOMM_CHANNEL_NAME_MAX_LEN + 1) > HCOMM_CHANNEL_NAME_MAX_LEN)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: channelName has more than %u characters", what,
				  HCOMM_CHANNEL_NAME_MAX_LEN);
	snprintf(name, HCOMM_CHANNEL_NAME_MAX_LEN + 1, "%s", s ? s : "");
	return HCCL_SUCCESS;
}

/* ---- Places in the desk: ep->lock held -------------------------------------------------------- */

static HcclResult take_words(const char *what, struct hcomm_endpoint *ep, u32 n, u32 *at)
{
	u32 i, run = 0;

	*at = 0;
	for (i = 0; i < HCOMM_NOTIFIES && run < n; i++)
		run = ep->taken[i / 64] & 1ull << i % 64 ? 0 : run + 1;
	if (run < n)
		return hccl_fail(HCCL_E_UNAVAIL, "EI0003", "%s: %u more notifies: the endpoint has %u for all its channels", what, n,
				  HCOMM_NOTIFIES);
	*at = i - n;
	for (i = *at; i < *at + n; i++) {
		ep->taken[i / 64] |= 1ull << i % 64;
		__atomic_store_n(&ep->desk->pub->word[i], 0, __ATOMIC_RELAXED);
	}
	return HCCL_SUCCESS;
}

static void give_words(struct hcomm_endpoint *ep, u32 at, u32 n)
{
	u32 i;

	for (i = at; i < at + n; i++)
		ep->taken[i / 64] &= ~(1ull << i % 64);
}

static HcclResult take_offer(const char *what, struct hcomm_endpoint *ep, u32 *at)
{
	struct hcomm_public *p = ep->desk->pub;
	u32 i, state;

	for (i = 0; i < HCOMM_CHANNELS; i++) {
		state = smp_load_acquire(&p->offer[i].state);
		if (state == HCOMM_FREE || state == HCOMM_GONE)
			break;
	}
	if (i == HCOMM_CHANNELS)
		return hccl_fail(HCCL_E_UNAVAIL, "EI0003", "%s: the endpoint has %u channels, the most it can", what,
				  HCOMM_CHANNELS);
	*at = i;
	return HCCL_SUCCESS;
}

/* The offer, but for its state. */
static void fill(struct hcomm_channel *ch, const struct hcomm_offer *o)
{
	struct hcomm_public *p = ch->own->pub;

	/* who was linked to what had the place may look at its head yet */
	WRITE_ONCE(ch->offer->state, HCOMM_BUSY);
	WRITE_ONCE(ch->offer->pid, o->pid);
	WRITE_ONCE(ch->offer->gen, ch->gen);
	memcpy(&ch->offer->remote, &o->remote, sizeof(*o) - offsetof(struct hcomm_offer, remote));
	smp_store_release(&ch->offer->state, HCOMM_OPEN);
	if (ch->at >= p->offers)
		smp_store_release(&p->offers, ch->at + 1);
}

static HcclResult enter(const char *what, struct hcomm_channel *ch, struct hcomm_offer *o)
{
	struct hcomm_endpoint *ep = ch->ep;
	HcclResult ret;

	pthread_mutex_lock(&ep->lock);
	ret = take_offer(what, ep, &ch->at);
	if (!ret)
		ret = take_words(what, ep, o->notifies, &o->notify_at);
	if (!ret) {
		ch->gen = hcomm_number();
		ch->notifies = o->notifies;
		ch->offer = &ch->own->pub->offer[ch->at];
		o->pid = (u32)getpid();
		fill(ch, o);
		ep->channels++;
	}
	pthread_mutex_unlock(&ep->lock);
	return ret;
}

/* ---- Made ---------------------------------------------------------------------------------------- */

static HcclResult make(const char *what, struct hcomm_endpoint *ep, const HcommChannelDesc *d, u32 n, ChannelHandle *out)
{
	struct hcomm_offer o = { 0 };
	struct hcomm_channel *ch;
	u32 depth = QUEUE_DEPTH;
	HcclResult ret;

	ret = check_header(what, d, n);
	if (!ret)
		ret = hcomm_identify(what, &d->remoteEndpoint, &o.remote);
	if (!ret)
		ret = forced(what, &o.forced);
	if (!ret)
		ret = name_of(what, d, o.name);
	if (!ret)
		ret = hcomm_regions_of(what, ep, d, o.mems);
	if (ret)
		return ret;
	ch = npuemu_slab_alloc(&hcomm_channels);
	if (!ch)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: this process has %u channels, the most it can", what,
				  hcomm_channels.max);
	ch->ep = ep;
	ch->own = ep->desk;
	ch->refs = 1;
	pthread_mutex_init(&ch->lock, NULL);
	o.role = (u32)d->role;
	o.port = d->port;
	o.notifies = d->notifyNum;
	if (d->ubAttr.sqDepth && d->ubAttr.sqDepth != 0xffffffff)
		depth = d->ubAttr.sqDepth;
	if (o.forced == HCOMM_QUEUE || (o.forced == HCOMM_ANY && ep->prefers_queue))
		ret = hcomm_queue_make(what, ch, depth);
	o.queue = ch->q != NULL;
	if (!ret)
		ret = enter(what, ch, &o);
	if (ret) {
		hcomm_queue_free(ch);
		pthread_mutex_destroy(&ch->lock);
		npuemu_slab_free(&hcomm_channels, ch);
		return ret;
	}
	npuemu_slab_publish(&hcomm_channels, ch);
	*out = (ChannelHandle)(uintptr_t)ch;
	return HCCL_SUCCESS;
}

static HcclResult create(const char *what, EndpointHandle endpoint, CommEngine engine, const HcommChannelDesc *descs, u32 n,
			 ChannelHandle *channels)
{
	struct hcomm_endpoint *ep;
	HcclResult ret = hcomm_endpoint(what, endpoint, &ep);
	u32 i;

	if (!ret)
		ret = hcomm_engine(what, engine);
	if (!ret && (!descs || !channels))
		ret = hccl_null(what, descs ? "channels" : "channelDescs");
	if (!ret && !n)
		ret = hccl_fail(HCCL_E_PARA, "EI0003", "%s: channelNum is 0", what);
	for (i = 0; !ret && i < n; i++)
		ret = make(what, ep, &descs[i], n, &channels[i]);
	if (ret && i > 1) {
		char text[sizeof(npuacl_self.message)];

		/* all of them, or none; the message is that of the one that failed */
		memcpy(text, npuacl_self.message, sizeof(text));
		HcommChannelDestroy(channels, i - 1);
		memcpy(npuacl_self.message, text, sizeof(text));
	}
	return ret;
}

HcommResult HcommChannelCreate(EndpointHandle endpointHandle, CommEngine engine, HcommChannelDesc *channelDescs,
			       uint32_t channelNum, ChannelHandle *channels)
{
	return create("HcommChannelCreate", endpointHandle, engine, channelDescs, channelNum, channels);
}

HcommResult HcommChannelCreateWithConfig(EndpointHandle endpointHandle, CommEngine engine, HcommChannelDesc *channelDescs,
					 uint32_t channelNum, HcommChannelConfig handle, ChannelHandle *channels)
{
	static const char what[] = "HcommChannelCreateWithConfig";
	struct hcomm_config *c;
	HcclResult ret = hcomm_config(what, handle, &c);

	return ret ? ret : create(what, endpointHandle, engine, channelDescs, channelNum, channels);
}

/* ---- Found ---------------------------------------------------------------------------------------- */

static HcclResult find(const char *what, ChannelHandle handle, struct hcomm_channel **out)
{
	struct hcomm_channel *ch = (struct hcomm_channel *)(uintptr_t)handle;

	if (!npuemu_slab_holds(&hcomm_channels, ch, NPUEMU_SLAB_SIZE(*ch)) || ch->ep->board != npuacl.board ||
	    READ_ONCE(ch->closing))
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %#" PRIx64 " is no channel, or has been destroyed", what,
				  (u64)handle);
	*out = ch;
	return HCCL_SUCCESS;
}

HcclResult hcomm_channel(const char *what, ChannelHandle handle, struct hcomm_channel **out)
{
	HcclResult ret = find(what, handle, out);

	if (!ret && unlikely(!smp_load_acquire(&(*out)->ready)))
		ret = hccl_fail(HCCL_E_AGAIN, "EI0003", "%s: the channel is not ready: HcommChannelGetStatus() tells when it is", what);
	return ret;
}

HcommResult HcommChannelGetStatus(const ChannelHandle *channelList, uint32_t listNum, int32_t *statusList)
{
	static const char what[] = "HcommChannelGetStatus";
	struct hcomm_channel *ch;
	HcclResult ret = HCCL_SUCCESS;
	u32 i;

	if (!channelList || !statusList)
		return hccl_null(what, channelList ? "statusList" : "channelList");
	for (i = 0; i < listNum && !ret; i++)
		ret = find(what, channelList[i], &ch);
	for (i = 0; i < listNum && !ret; i++) {
		ret = find(what, channelList[i], &ch);
		if (!ret)
			statusList[i] = hcomm_link(what, ch);
	}
	return ret;
}

void hcomm_channel_get(struct hcomm_channel *ch)
{
	npuemu_fetch_add(&ch->refs, 1);
}

/* ---- Unmade ------------------------------------------------------------------------------------------ */

void hcomm_channel_put(struct hcomm_channel *ch)
{
	struct hcomm_endpoint *ep = ch->ep;

	if (npuemu_fetch_add(&ch->refs, -1u) != 1)
		return;
	hcomm_queue_free(ch);
	hcomm_reach_free(ch);
	if (ch->peer)
		hcomm_desk_put(ch->peer);
	pthread_mutex_lock(&ep->lock);
	give_words(ep, ch->offer->notify_at, ch->notifies);
	/* its place may be had again */
	smp_store_release(&ch->offer->state, HCOMM_GONE);
	pthread_mutex_unlock(&ep->lock);
	pthread_mutex_destroy(&ch->lock);
	npuemu_slab_free(&hcomm_channels, ch);
	pthread_mutex_lock(&ep->lock);
	ep->channels--;
	pthread_mutex_unlock(&ep->lock);
}

HcommResult HcommChannelDestroy(const ChannelHandle *channels, uint32_t channelNum)
{
	static const char what[] = "HcommChannelDestroy";
	struct hcomm_channel *ch;
	HcclResult ret = HCCL_SUCCESS;
	u32 i;

	if (!channels)
		return hccl_null(what, "channels");
	for (i = 0; i < channelNum && !ret; i++)
		ret = find(what, channels[i], &ch);
	for (i = 0; i < channelNum && !ret; i++) {
		ret = find(what, channels[i], &ch);
		if (!ret && !npuemu_slab_retire(&hcomm_channels, ch))
			ret = hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: channel %u of the list has been destroyed already", what, i);
		if (ret)
			break;
		WRITE_ONCE(ch->closing, true);
		hcomm_unlink(ch);
		hcomm_channel_put(ch);
	}
	return ret;
}

bool hcomm_channel_busy(ChannelHandle handle)
{
	return smp_load_acquire(&((struct hcomm_channel *)(uintptr_t)handle)->refs) > 1;
}

/* ---- What breaks one ------------------------------------------------------------------------------------ */

void hcomm_channel_text(const struct hcomm_channel *ch, char *buf, size_t size)
{
	snprintf(buf, size, "the channel to process %u, device %u", ch->pid, ch->peer ? ch->peer->pub->device : 0);
}

void hcomm_channel_break(struct hcomm_channel *ch, HcclResult code, const char *fmt, ...)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	va_list ap;

	pthread_mutex_lock(&lock);
	if (!ch->broken) {
		va_start(ap, fmt);
		vsnprintf(ch->why, sizeof(ch->why), fmt, ap);
		va_end(ap);
		smp_store_release(&ch->broken, (u32)code);
	}
	pthread_mutex_unlock(&lock);
}

bool hcomm_channel_whole(struct hcomm_channel *ch)
{
	s64 now = npuemu_now_ns(), at = __atomic_load_n(&ch->look_at, __ATOMIC_RELAXED);
	char text[96];
	u32 state;

	if (unlikely(smp_load_acquire(&ch->broken)))
		return false;
	hcomm_channel_text(ch, text, sizeof(text));
	if (unlikely(READ_ONCE(ch->closing))) {
		hcomm_channel_break(ch, HCCL_E_UNAVAIL, "%s was destroyed before", text);
		return false;
	}
	state = smp_load_acquire(&ch->other->state);
	if (unlikely(READ_ONCE(ch->other->gen) != ch->other_gen || state == HCOMM_GONE || state == HCOMM_FREE)) {
		hcomm_channel_break(ch, HCCL_E_REMOTE, "%s: the other end was destroyed", text);
		return false;
	}
	if (now < at || !ch->peer->import ||
	    !__atomic_compare_exchange_n(&ch->look_at, &at, now + HCOMM_LOOK_NS, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return true;
	if (likely(npuacl_export_alive(ch->peer->key.id)))
		return true;
	hcomm_channel_break(ch, HCCL_E_REMOTE, "%s: that process has ended", text);
	return false;
}
