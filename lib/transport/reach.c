// SPDX-License-Identifier: MIT
/*
 * Memory of the peer, over a channel: what came with the channel, and what was imported
 * with the endpoint.  Addresses are the peer's; here they become those of a mapping, or a
 * token and the address in its segment.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "transport.h"

static void forget(struct hcomm_reach *x)
{
	npuacl_import_put(x->import);
	x->import = NULL;
	x->ptr = NULL;
}

void hcomm_reach_free(struct hcomm_channel *ch)
{
	u32 i;

	for (i = 0; i < ch->reaches; i++)
		forget(&ch->reach[i]);
	free(ch->reach);
	ch->reach = NULL;
	ch->reaches = 0;
	ch->room = 0;
}

/* One more, unless it is no longer there, or known. */
static HcclResult add(struct hcomm_channel *ch, u32 at, u64 gen)
{
	const struct hcomm_region *r = &ch->peer->pub->region[at];
	struct hcomm_reach *x;
	u32 i;

	if (!gen)
		gen = smp_load_acquire(&r->gen);
	for (i = 0; i < ch->reaches; i++)
		if (ch->reach[i].at == at && ch->reach[i].gen == gen)
			return HCCL_SUCCESS;
	if (ch->reaches == ch->room) {
		x = realloc(ch->reach, (ch->room + 16) * sizeof(*x));
		if (!x)
			return HCCL_E_MEMORY;
		ch->reach = x;
		ch->room += 16;
	}
	x = &ch->reach[ch->reaches];
	memset(x, 0, sizeof(*x));
	x->at = at;
	x->gen = gen;
	x->r = *r;
	smp_mb(); /* the copy, before the look whether it was whole */
	if (gen && READ_ONCE(r->gen) == gen && x->r.bytes && x->r.va + x->r.bytes > x->r.va)
		ch->reaches++;
	return HCCL_SUCCESS;
}

HcclResult hcomm_reach_link(struct hcomm_channel *ch)
{
	HcclResult ret = HCCL_SUCCESS;
	u32 at;

	for (at = 0; at < HCOMM_REGIONS && !ret; at++)
		if (ch->other->mems[at / 64] & 1ull << at % 64)
			ret = add(ch, at, 0);
	return ret;
}

bool hcomm_channel_told(ChannelHandle handle, u32 nth, struct hcomm_told *t)
{
	struct hcomm_channel *ch = (struct hcomm_channel *)(uintptr_t)handle;
	const struct hcomm_region *r;
	bool is;

	pthread_mutex_lock(&ch->lock);
	is = nth < ch->reaches;
	if (is) {
		r = &ch->reach[nth].r;
		t->mem.type = (CommMemType)r->type;
		t->mem.addr = (void *)(uintptr_t)r->va;
		t->mem.size = r->bytes;
		snprintf(t->tag, sizeof(t->tag), "%.*s", (int)sizeof(r->tag) - 1, r->tag);
	}
	pthread_mutex_unlock(&ch->lock);
	return is;
}

/* Nothing is under way: what the peer has unregistered is let go. */
static void sweep(struct hcomm_channel *ch)
{
	u32 i, n = 0;

	if (smp_load_acquire(&ch->refs) > 1)
		return;
	for (i = 0; i < ch->reaches; i++) {
		if (READ_ONCE(ch->peer->pub->region[ch->reach[i].at].gen) == ch->reach[i].gen)
			ch->reach[n++] = ch->reach[i];
		else
			forget(&ch->reach[i]);
	}
	ch->reaches = n;
}

/* What was imported, meanwhile. */
static void add_imports(struct hcomm_channel *ch)
{
	const struct hcomm_import *i;

	sweep(ch);
	pthread_mutex_lock(&ch->ep->lock);
	for (i = ch->ep->imports; i; i = i->next)
		if (i->desk == ch->peer)
			add(ch, i->at, i->gen);
	pthread_mutex_unlock(&ch->ep->lock);
}

static bool holds(const struct hcomm_channel *ch, const struct hcomm_reach *x, u64 va, u64 len)
{
	return va - x->r.va < x->r.bytes && len <= x->r.bytes - (va - x->r.va) &&
	       READ_ONCE(ch->peer->pub->region[x->at].gen) == x->gen;
}

static struct hcomm_reach *find(struct hcomm_channel *ch, u64 va, u64 len)
{
	u32 i;

	if (ch->last < ch->reaches && holds(ch, &ch->reach[ch->last], va, len))
		return &ch->reach[ch->last];
	for (i = 0; i < ch->reaches; i++)
		if (holds(ch, &ch->reach[i], va, len)) {
			ch->last = i;
			return &ch->reach[i];
		}
	return NULL;
}

static HcclResult nowhere(const char *what, const struct hcomm_channel *ch, u64 va, u64 len)
{
	char text[512];
	size_t n = 0;
	u32 i, gone = 0;

	text[0] = 0;
	for (i = 0; i < ch->reaches && n < sizeof(text); i++) {
		const struct hcomm_reach *x = &ch->reach[i];

		if (READ_ONCE(ch->peer->pub->region[x->at].gen) != x->gen)
			gone++;
		else
			n += (size_t)snprintf(text + n, sizeof(text) - n, "; %" PRIu64 " bytes at %#" PRIx64 "%s%s", x->r.bytes,
					      x->r.va, x->r.tag[0] ? " " : "", x->r.tag);
	}
	return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: process %u has registered no memory for this channel that holds %" PRIu64 " bytes at its %#" PRIx64 "; %u were unregistered%s",
			  what, ch->pid, len, va, gone, text);
}

/* By the mapped path; NULL with a message. */
static HcclResult open_here(const char *what, struct hcomm_channel *ch, struct hcomm_reach *x)
{
	struct npuacl_key key = { .id = x->r.key, .secret = x->r.secret };
	aclError err;
	u8 *ptr;

	if (x->ptr)
		return HCCL_SUCCESS;
	if (!ch->peer->import) {	/* the peer is of this process */
		x->ptr = (u8 *)(uintptr_t)x->r.va;
		return HCCL_SUCCESS;
	}
	if (!x->r.key)
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: the %" PRIu64 " bytes at %#" PRIx64 " of process %u are host memory, which other processes cannot reach",
				  what, x->r.bytes, x->r.va, ch->pid);
	err = npuacl_window_open(what, &key, &x->import, &ptr);
	if (err)
		return hccl_fail_acl(err, what);
	if (x->import && (x->r.off > npuemu_buf_bytes(x->import->buf) ||
			  x->r.bytes > npuemu_buf_bytes(x->import->buf) - x->r.off)) {
		forget(x);
		return hccl_fail(HCCL_E_REMOTE, "EI0006", "%s: what process %u says of its memory is damaged", what, ch->pid);
	}
	x->ptr = ptr + x->r.off;
	return HCCL_SUCCESS;
}

HcclResult hcomm_reach(const char *what, struct hcomm_channel *ch, u64 va, u64 len, struct hcomm_spot *spot)
{
	struct hcomm_reach *x = find(ch, va, len);
	HcclResult ret;

	if (!x) {
		add_imports(ch);
		x = find(ch, va, len);
	}
	if (!x)
		return nowhere(what, ch, va, len);
	spot->gen = &ch->peer->pub->region[x->at].gen;
	spot->want = x->gen;
	if (ch->path == HCOMM_MAPPED) {
		ret = open_here(what, ch, x);
		spot->va = ret ? 0 : (u64)(uintptr_t)x->ptr + (va - x->r.va);
		return ret;
	}
	if (!x->r.has_seg)
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: the %" PRIu64 " bytes at %#" PRIx64 " of process %u have no segment: UDMA reaches only device memory of the process that allocated it",
				  what, x->r.bytes, x->r.va, ch->pid);
	spot->target = npuemu_target_of(&x->r.seg);
	spot->remote = x->r.seg.va + (va - x->r.va);
	return HCCL_SUCCESS;
}
