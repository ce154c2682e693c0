// SPDX-License-Identifier: MIT
/*
 * Send, Recv, BatchSendRecv, as work of a stream: all items of a batch go on at once, those with
 * one peer in their order (mail.c).
 *
 * Sends to one peer that follow each other in a stream, with nothing between, are written down
 * ahead of their turn, and so are receptions: where ranks share a cpu they are switched to
 * once for several.  A reception and a send are not: what is sent may be what was received.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "comm.h"
#include "graph.h"
#include "mail.h"
#include "support.h"

#define LOOK_NS		100000000ll

struct batch {
	struct npuacl_work work;
	struct hccl_comm *comm;
	const char *what;
	bool once;
	bool began;
	s64 since, look_at;
	u32 items, left;
	struct hccl_item item[];
};

/* ---- A batch, as work of a stream ------------------------------------------------------------- */

static void over(struct batch *b)
{
	u32 k;

	b->began = false;
	b->work.bell = NULL;
	b->left = b->items;
	for (k = 0; k < b->items; k++) {
		b->item[k].state = HCCL_ITEM_BEGIN;
		b->item[k].n = 0;
	}
}

static void batch_text(struct batch *b, char *buf, size_t size)
{
	struct hccl_comm *c = b->comm;
	char text[96];
	size_t n = (size_t)snprintf(buf, size, "rank %u waits on communicator %.64s in", c->rank, c->group->name);
	u32 k, told = 0;

	for (k = 0; k < b->items && told < 4 && n < size; k++) {
		if (b->item[k].state == HCCL_ITEM_DONE)
			continue;
		hccl_item_text(&b->item[k], text, sizeof(text));
		n += (size_t)snprintf(buf + n, size - n, "%s %s", told++ ? "," : "", text);
	}
}

static void look(struct batch *b)
{
	struct hccl_comm *c = b->comm;
	s64 now = npuemu_now_ns();
	char text[400];
	u32 k;

	if (now < b->look_at)
		return;
	b->look_at = now + LOOK_NS;
	hccl_group_check(c);
	for (k = 0; k < b->items && !hccl_group_broken(c); k++)
		if (b->item[k].state != HCCL_ITEM_DONE && smp_load_acquire(&c->group->member[b->item[k].peer].state) == HCCL_LEFT &&
		    !hccl_item_over(c, &b->item[k]))
			hccl_group_fail(c, HCCL_E_REMOTE, "EI0006", "rank %u has destroyed the communicator, and rank %u still waits for it",
					b->item[k].peer, c->rank);
	if (!c->cfg.exec_ns || now - b->since < c->cfg.exec_ns || hccl_group_broken(c))
		return;
	batch_text(b, text, sizeof(text));
	hccl_group_fail(c, HCCL_E_TIMEOUT, "EI0002", "%s: nothing came for %.3f s (HCCL_EXEC_TIMEOUT)", text,
			(double)(now - b->since) / 1e9);
}

static const struct npuacl_work_ops ops;

/* The single messages right behind it that go the same way, as far as there is room. */
static void put_ahead(struct batch *b, struct npuacl_stream *s)
{
	const struct hccl_item *first = b->item;
	struct npuacl_task *t;
	struct hccl_item *i;
	struct batch *next;
	u64 have;
	u32 k;

	if (b->items != 1 || !first->ticket || first->state != HCCL_ITEM_PUT)
		return;
	have = npuacl_pending(s);
	for (k = 1; k < HCCL_MAILS; k++) {
		t = npuacl_task_of(s, k, have);
		if (!t || t->kind != NPUACL_WORK || t->work->ops != &ops)
			return;
		next = container_of(t->work, struct batch, work);
		i = next->item;
		if (next->comm != b->comm || next->items != 1 || i->send != first->send || i->peer != first->peer ||
		    i->ticket != first->ticket + k)
			return;
		if (i->state == HCCL_ITEM_BEGIN && !hccl_item_put(b->comm, i))
			return;
	}
}

static bool step(struct npuacl_work *w, struct npuacl_stream *s, u32 task)
{
	struct batch *b = container_of(w, struct batch, work);
	struct hccl_comm *c = b->comm;
	char text[96];
	u32 k;

	if (!b->began) {
		b->began = true;
		b->since = npuemu_now_ns();
		b->look_at = b->since + LOOK_NS;
		b->work.bell = &c->group->bells[c->rank].bell;
	}
	for (k = 0; k < b->items && !hccl_group_broken(c); k++)
		if (b->item[k].state != HCCL_ITEM_DONE && hccl_item_advance(c, &b->item[k]))
			b->left--;
	if (!b->left) {
		over(b);
		return true;
	}
	if (!hccl_group_broken(c)) {
		put_ahead(b, s);
		look(b);
		return false;
	}
	for (k = 0; b->item[k].state == HCCL_ITEM_DONE; k++)
		;
	hccl_item_text(&b->item[k], text, sizeof(text));
	hccl_op_failed(c, s, task, text);
	over(b);
	return true;
}

/* It costs as much to find out as to do it. */
static bool due(struct npuacl_work *w)
{
	(void)w;
	return true;
}

static void drop(struct npuacl_work *w, struct npuacl_stream *s)
{
	struct batch *b = container_of(w, struct batch, work);
	struct hccl_comm *c = b->comm;
	char text[300];

	batch_text(b, text, sizeof(text));
	if (!hccl_group_broken(c))
		hccl_group_fail(c, HCCL_E_REMOTE, "EI0002", "%s, dropped it: its stream %u was aborted, or has stopped after an error",
				text, s->id);
	WRITE_ONCE(c->error, (u32)HCCL_E_REMOTE);
	over(b);
}

static void batch_free(struct batch *b)
{
	u32 k;

	for (k = 0; k < b->items; k++)
		hccl_ref_drop(b->comm, &b->item[k].ref);
	free(b);
}

static void release(struct npuacl_work *w)
{
	struct batch *b = container_of(w, struct batch, work);
	struct hccl_comm *c = b->comm;

	batch_free(b);
	npuemu_fetch_add(&c->in_flight, -1u);
}

static void text(struct npuacl_work *w, char *buf, size_t size)
{
	batch_text(container_of(w, struct batch, work), buf, size);
}

static u64 about(struct npuacl_work *w)
{
	(void)w;
	return (u64)HCCL_COLLS << 8;
}

static const struct npuacl_work_ops ops = {
	.step = step, .due = due, .drop = drop, .release = release, .text = text, .about = about,
};

/* ---- Issued --------------------------------------------------------------------------------------- */

static HcclResult item_make(struct hccl_comm *c, const char *what, const HcclSendRecvItem *in, bool self, struct hccl_item *out)
{
	u32 size = hccl_type_bytes((u32)in->dataType);
	char why[160];

	if (hccl_move_ok((u32)in->dataType, hccl_config_strict_soc(&c->cfg), why, sizeof(why)))
		return hccl_fail(size ? HCCL_E_NOT_SUPPORT : HCCL_E_PARA, "EI0003", "%s: %s", what, why);
	if (in->remoteRank >= c->ranks)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: rank %u; the communicator has ranks 0 to %u", what, in->remoteRank,
				 c->ranks - 1);
	if (in->remoteRank == c->rank && !self)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: rank %u would wait for itself: HcclBatchSendRecv can do both at once", what,
				 c->rank);
	if (in->count > UINT64_MAX / 16)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: a count of %" PRIu64, what, in->count);
	if (in->count && !in->buf)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: the buffer is NULL", what);
	out->send = in->sendRecvType == HCCL_SEND;
	out->peer = in->remoteRank;
	out->type = (u32)in->dataType;
	out->count = in->count;
	out->bytes = in->count * size;
	return hccl_ref_make(c, what, out->send ? "sendBuf" : "recvBuf", in->buf, out->bytes, &out->ref);
}

static HcclResult make(struct hccl_comm *c, const char *what, const HcclSendRecvItem *items, u32 n, bool self,
		       struct batch **out)
{
	struct batch *b = calloc(1, sizeof(*b) + n * sizeof(b->item[0]));
	HcclResult ret = HCCL_SUCCESS;
	u32 k;

	if (!b)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	b->work.ops = &ops;
	b->work.spins = c->spins;
	b->comm = c;
	b->what = what;
	for (k = 0; k < n && !ret; k++) {
		ret = item_make(c, what, &items[k], self, &b->item[k]);
		b->items += !ret;
	}
	b->left = n;
	if (ret)
		batch_free(b);
	else
		*out = b;
	return ret;
}

/* Takes @b, also if it fails. */
static HcclResult submit(struct batch *b, struct npuacl_stream *s)
{
	struct npuacl_task t = { .kind = NPUACL_WORK };
	struct hccl_comm *c = b->comm;
	const char *what = b->what;
	aclError err;
	u32 k;

	b->once = !npuacl_records(s);
	pthread_mutex_lock(&c->lock);
	for (k = 0; k < b->items && b->once; k++)
		b->item[k].ticket = hccl_item_ticket(c, &b->item[k]);
	npuemu_fetch_add(&c->in_flight, 1);
	t.work = &b->work;	/* the stream's, unless that fails */
	err = npuacl_submit(s, &t, NULL);
	pthread_mutex_unlock(&c->lock);
	if (!err)
		return HCCL_SUCCESS;
	/* no memory for a task: those tickets will not come */
	hccl_group_fail(c, HCCL_E_MEMORY, "EI0011", "%s: rank %u is out of host memory", what, c->rank);
	batch_free(b);
	npuemu_fetch_add(&c->in_flight, -1u);
	return hccl_fail_acl(err, what);
}

/* ---- In a group ---------------------------------------------------------------------------------- */

/* What is for one communicator and stream, until the group ends. */
struct held {
	struct held *next;
	struct batch *b;
	aclrtStream stream;
	u64 born;		/* the communicator's */
};

static __thread struct held *held;

static HcclResult append(struct held *h, struct batch *b)
{
	u32 n = h->b->items, k = b->items;
	struct batch *both = realloc(h->b, sizeof(*both) + (n + k) * sizeof(both->item[0]));

	if (!both)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", b->what);
	memcpy(&both->item[n], b->item, k * sizeof(b->item[0]));
	both->items = n + k;
	both->left = n + k;
	h->b = both;
	free(b);
	return HCCL_SUCCESS;
}

static HcclResult hold(struct batch *b, aclrtStream stream)
{
	struct hccl_comm *c = b->comm;
	struct held **at = &held, *h;
	HcclResult ret;

	for (; (h = *at); at = &h->next)
		if (h->b->comm == c && h->stream == stream)
			break;
	if (h) {
		ret = append(h, b);
		if (ret)
			batch_free(b);
		return ret;
	}
	h = calloc(1, sizeof(*h));
	if (!h) {
		ret = hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", b->what);
		batch_free(b);
		return ret;
	}
	h->b = b;
	h->stream = stream;
	h->born = c->res.born;
	/* nobody destroys it meanwhile */
	npuemu_fetch_add(&c->in_flight, 1);
	*at = h;
	return HCCL_SUCCESS;
}

static HcclResult let_go(struct held *h)
{
	struct hccl_comm *c = h->b->comm;
	struct npuacl_stream *s;
	HcclResult ret;

	/* aclFinalize in between: it is gone, and what it had with it */
	if (hccl_comm(c, "HcclGroupEnd", &c) || c->res.born != h->born) {
		free(h->b);
		return hccl_fail(HCCL_E_PARA, "EI0003", "HcclGroupEnd: a communicator has been destroyed since HcclGroupStart");
	}
	ret = hccl_stream(c, "HcclGroupEnd", h->stream, &s);
	if (!ret)
		ret = hccl_broken(c, "HcclGroupEnd");
	if (ret)
		batch_free(h->b);
	else
		ret = submit(h->b, s);
	npuemu_fetch_add(&c->in_flight, -1u);
	return ret;
}

HcclResult hccl_p2p_together(void)
{
	struct npuacl_thread said = npuacl_self;
	HcclResult ret = HCCL_SUCCESS, one;
	struct held *h;

	while ((h = held)) {
		held = h->next;
		one = let_go(h);
		if (one && !ret) {
			ret = one;
			said = npuacl_self;
		}
		free(h);
	}
	if (ret)
		npuacl_self = said;
	return ret;
}

HcclResult hccl_p2p(struct hccl_comm *c, const char *what, const HcclSendRecvItem *items, u32 n, bool self,
		    aclrtStream stream)
{
	struct npuacl_stream *s;
	struct batch *b;
	HcclResult ret;

	ret = hccl_together(what, HCCL_TOGETHER_P2P);
	if (!ret)
		ret = hccl_stream(c, what, stream, &s);
	if (!ret)
		ret = hccl_broken(c, what);
	if (!ret)
		ret = make(c, what, items, n, self || hccl_together_depth, &b);
	if (ret)
		return ret;
	return hccl_together_depth ? hold(b, stream) : submit(b, s);
}
