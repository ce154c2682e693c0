// SPDX-License-Identifier: MIT
/*
 * How two ends find each other.  Each has written into its endpoint's desk to whom it
 * wants a channel.  The one of the lower key looks for a match in desks of endpoints like
 * the one it was told of, the first of its own for the first of theirs, and writes into
 * both what came of it: linked over a path, or refused, and why.  What is said there is
 * never changed afterwards.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include "transport.h"

#define SEEK_NS		500000ll	/* looks, of one channel */
#define BUSY_NS		5000000000ll	/* whoever was linking it has died */

/* One end: its desk, and its place in there. */
struct side {
	struct hcomm_desk *desk;
	struct hcomm_offer *offer;
	u32 at;
};

/* ---- Do they agree? ---------------------------------------------------------------------- */

static const char *path_name(u32 path)
{
	return path == HCOMM_QUEUE ? "queue" : path == HCOMM_MAPPED ? "mapped" : "not set";
}

/* 0 with the path, or why not. */
static HcclResult agree(const struct side *a, const struct side *b, u32 *path, char *why, size_t size)
{
	const struct hcomm_public *p = a->desk->pub, *q = b->desk->pub;
	char own[160], other[160];

	if (a->offer->forced != b->offer->forced) {
		snprintf(why, size, "NPUEMU_TRANSPORT is %s in process %u and %s in process %u", path_name(a->offer->forced),
			 p->pid, path_name(b->offer->forced), q->pid);
		return HCCL_E_PARA;
	}
	if (p->self.protocol != q->self.protocol) {
		hcomm_ident_text(&p->self, own, sizeof(own));
		hcomm_ident_text(&q->self, other, sizeof(other));
		snprintf(why, size, "protocols differ: process %u has %.90s, process %u has %.90s", p->pid, own, q->pid, other);
		return HCCL_E_PARA;
	}
	*path = a->offer->queue && b->offer->queue ? HCOMM_QUEUE : HCOMM_MAPPED;
	return HCCL_SUCCESS;
}

/* ---- Linking ------------------------------------------------------------------------------- */

static bool same_wish(const struct hcomm_offer *a, const struct hcomm_offer *b)
{
	return (a->port == b->port || !a->port || !b->port) && !strncmp(a->name, b->name, sizeof(a->name));
}

/* One listens, and one connects; who does not say does either. */
static bool roles_fit(const struct hcomm_offer *a, const struct hcomm_offer *b)
{
	return a->role != b->role || a->role == (u32)HCOMM_SOCKET_ROLE_RESERVED;
}

/* An end that is looked at: free to be linked, and it wants one to @self. */
static bool wants(const struct hcomm_offer *o, const struct hcomm_ident *self)
{
	return smp_load_acquire(&o->state) == HCOMM_OPEN && !memcmp(&o->remote, self, sizeof(*self));
}

/* Ours that comes first of those that want the same as @ch. */
static struct side first(const struct hcomm_channel *ch)
{
	struct hcomm_public *p = ch->own->pub;
	struct side s = { ch->own, ch->offer, ch->at };
	u32 i, n = smp_load_acquire(&p->offers);

	for (i = 0; i < n && i < HCOMM_CHANNELS; i++) {
		struct hcomm_offer *o = &p->offer[i];

		if (!wants(o, &ch->offer->remote) || !same_wish(o, ch->offer) || o->role != ch->offer->role ||
		    READ_ONCE(o->gen) >= READ_ONCE(s.offer->gen))
			continue;
		s.offer = o;
		s.at = i;
	}
	return s;
}

/* The end of @o learns of the other one. */
static void tell(struct hcomm_offer *o, const struct side *other)
{
	o->peer = other->desk->key.id;
	o->peer_secret = other->desk->key.secret;
	o->peer_at = other->at;
	o->peer_gen = other->offer->gen;
}

/* Both are ours to write. */
static void write_down(const struct side *own, const struct side *peer)
{
	struct hcomm_offer *a = own->offer, *b = peer->offer;
	char why[sizeof(a->why)] = "";
	u32 path = HCOMM_ANY, state;
	HcclResult code;

	code = agree(own, peer, &path, why, sizeof(why));
	state = code ? HCOMM_REFUSED : HCOMM_LINKED;
	tell(a, peer);
	tell(b, own);
	a->path = path;
	b->path = path;
	a->code = (u32)code;
	b->code = (u32)code;
	memcpy(a->why, why, sizeof(why));
	memcpy(b->why, why, sizeof(why));
	smp_store_release(&b->state, state);
	smp_store_release(&a->state, state);
}

static bool lower(const struct side *a, const struct side *b)
{
	return a->desk->key.id != b->desk->key.id ? a->desk->key.id < b->desk->key.id : a->at < b->at;
}

/* The first of a desk that fits, whether or not we are to link it. */
static bool fitting(const struct side *own, struct side *peer)
{
	struct hcomm_public *p = peer->desk->pub;
	u32 i, n = smp_load_acquire(&p->offers);

	peer->offer = NULL;
	for (i = 0; i < n && i < HCOMM_CHANNELS; i++) {
		struct hcomm_offer *o = &p->offer[i];

		if (o == own->offer || !wants(o, &own->desk->pub->self) || !same_wish(o, own->offer) || !roles_fit(o, own->offer))
			continue;
		/* of the same endpoint: the later one */
		if (peer->desk == own->desk && i < own->at)
			continue;
		if (peer->offer && READ_ONCE(o->gen) >= READ_ONCE(peer->offer->gen))
			continue;
		peer->offer = o;
		peer->at = i;
	}
	return peer->offer;
}

/* Whether it got on. */
static bool try(const struct side *own, struct hcomm_desk *desk)
{
	struct side peer = { .desk = desk };

	if (!fitting(own, &peer) || !lower(own, &peer) || !npuemu_cas(&own->offer->state, HCOMM_OPEN, HCOMM_BUSY))
		return false;
	if (!npuemu_cas(&peer.offer->state, HCOMM_OPEN, HCOMM_BUSY)) {
		smp_store_release(&own->offer->state, HCOMM_OPEN);
		return false;
	}
	write_down(own, &peer);
	return true;
}

static bool seek_for(const char *what, const struct side *own)
{
	struct hcomm_ident remote = own->offer->remote;
	struct hcomm_desk *peer;
	struct npuacl_key key;
	bool on = false;
	u32 nth;

	for (nth = 0; !on && npuacl_export_seek(NPUACL_EXPORT_ENDPOINT, &remote, sizeof(remote), nth, &key); nth++) {
		/* it may be gone again */
		if (hcomm_desk_open(what, &key, &peer))
			continue;
		on = try(own, peer);
		hcomm_desk_put(peer);
	}
	return on;
}

/* Those that come before it have to be linked before. */
static void seek(const char *what, struct hcomm_channel *ch)
{
	struct side own;

	if (npuemu_now_ns() < ch->seek_at)
		return;
	do
		own = first(ch);
	while (seek_for(what, &own) && smp_load_acquire(&ch->offer->state) == HCOMM_OPEN);
	ch->seek_at = npuemu_now_ns() + SEEK_NS;
}

/* It takes long: to whom, once. */
static void report(struct hcomm_channel *ch, s64 now)
{
	char text[160];

	if (!ch->open_since)
		ch->open_since = now;
	if (ch->reported || now - ch->open_since < npuacl_report_ns())
		return;
	ch->reported = true;
	hcomm_ident_text(&ch->offer->remote, text, sizeof(text));
	npuemu_log(NPUEMU_LOG_WARN, "hcomm: for %.0f s no endpoint %s wants a channel to here with %s role, port %u and name \"%.40s\"",
		   (double)(now - ch->open_since) / 1e9, text,
		   ch->offer->role == HCOMM_SOCKET_ROLE_SERVER ? "the client's" :
		   ch->offer->role == HCOMM_SOCKET_ROLE_CLIENT ? "the server's" : "any", ch->offer->port, ch->offer->name);
}

/* ---- As an end sees it ------------------------------------------------------------------------ */

static HcclResult get_ready(const char *what, struct hcomm_channel *ch)
{
	struct npuacl_key key = { .id = ch->offer->peer, .secret = ch->offer->peer_secret };
	HcclResult ret;

	if (ch->offer->peer_at >= HCOMM_CHANNELS || (ch->offer->path == HCOMM_QUEUE && !ch->q))
		return hccl_fail(HCCL_E_REMOTE, "EI0006", "%s: what was said of the other end is damaged", what);
	ret = hcomm_desk_open(what, &key, &ch->peer);
	if (ret)
		return ret;
	ch->other = &ch->peer->pub->offer[ch->offer->peer_at];
	ch->other_gen = ch->offer->peer_gen;
	ch->pid = ch->peer->pub->pid;
	ch->path = (enum hcomm_path)ch->offer->path;
	ch->other_notifies = READ_ONCE(ch->other->notifies);
	ch->other_notify_at = READ_ONCE(ch->other->notify_at);
	if (ch->other_notifies > HCOMM_NOTIFIES || ch->other_notify_at > HCOMM_NOTIFIES - ch->other_notifies)
		return hccl_fail(HCCL_E_REMOTE, "EI0006", "%s: what process %u says of its notifies is damaged", what, ch->pid);
	if (ch->path != HCOMM_QUEUE)
		hcomm_queue_free(ch);
	ret = hcomm_reach_link(ch);
	if (ret)
		return hccl_fail(ret, "EI0011", "%s: out of host memory", what);
	npuemu_log(NPUEMU_LOG_INFO, "hcomm: channel to process %u, device %u: %s, %u notifies here, %u there, %u regions", ch->pid,
		   ch->peer->pub->device, path_name(ch->path), ch->notifies, ch->other_notifies, ch->reaches);
	smp_store_release(&ch->ready, true);
	return HCCL_SUCCESS;
}

/* ch->lock held */
static HcclResult link(const char *what, struct hcomm_channel *ch)
{
	s64 now = npuemu_now_ns();
	HcclResult ret;

	if (smp_load_acquire(&ch->offer->state) == HCOMM_OPEN)
		seek(what, ch);
	switch (smp_load_acquire(&ch->offer->state)) {
	case HCOMM_OPEN:
		ch->busy_since = 0;
		report(ch, now);
		return HCCL_E_AGAIN;
	case HCOMM_BUSY:
		if (!ch->busy_since)
			ch->busy_since = now;
		if (now - ch->busy_since < BUSY_NS)
			return HCCL_E_AGAIN;
		hcomm_channel_break(ch, HCCL_E_REMOTE, "the other end's process ended while it linked the channel");
		break;
	case HCOMM_LINKED:
		ret = get_ready(what, ch);
		if (!ret)
			return HCCL_SUCCESS;
		hcomm_channel_break(ch, ret, "%.250s", npuacl_self.message);
		break;
	default:
		hcomm_channel_break(ch, (HcclResult)ch->offer->code, "%.*s", (int)sizeof(ch->offer->why), ch->offer->why);
		break;
	}
	return (HcclResult)ch->broken;
}

HcclResult hcomm_link(const char *what, struct hcomm_channel *ch)
{
	HcclResult ret;

	pthread_mutex_lock(&ch->lock);
	if (ch->broken)
		ret = (HcclResult)ch->broken;
	else if (ch->ready)
		ret = hcomm_channel_whole(ch) ? HCCL_SUCCESS : (HcclResult)ch->broken;
	else
		ret = link(what, ch);
	pthread_mutex_unlock(&ch->lock);
	if (ret && ret != HCCL_E_AGAIN)
		hccl_fail_say(ret, "EI0006", "%s: %s", what, ch->why);
	return ret;
}

void hcomm_unlink(struct hcomm_channel *ch)
{
	s64 deadline = npuemu_now_ns() + 2000000000ll;

	/* the other end may be linking it just now */
	while (!npuemu_cas(&ch->offer->state, HCOMM_OPEN, HCOMM_REFUSED) &&
	       smp_load_acquire(&ch->offer->state) == HCOMM_BUSY && npuemu_now_ns() < deadline)
		sched_yield();
	/* the place stays taken, until nothing is under way; the number tells the other end now */
	smp_store_release(&ch->offer->gen, 0);
	smp_store_release(&ch->offer->state, HCOMM_REFUSED);
}
