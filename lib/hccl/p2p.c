// SPDX-License-Identifier: MIT
/*
 * Send, Recv, BatchSendRecv: each direction between two ranks is a mailbox with room
 * for one message.  Both sides write down what they have; whoever sees both copies.  All
 * items of a batch go on at once, those with one peer in their order.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "comm.h"
#include "graph.h"
#include "support.h"

#define LOOK_NS		100000000ll

enum item_state {
	ITEM_BEGIN,
	ITEM_PUT,		/* its side is written down */
	ITEM_DONE,
};

struct item {
	bool send;
	u32 peer;
	u32 type;
	u64 count, bytes;
	struct hccl_ref ref;
	u64 ticket;		/* 0: of a model */
	u64 n;			/* message of its box */
	enum item_state state;
};

struct batch {
	struct npuacl_work work;
	struct hccl_comm *comm;
	const char *what;
	bool once;
	bool began;
	s64 since, look_at;
	u32 items, left;
	struct item item[];
};

static struct hccl_mail *mail_of(struct hccl_comm *c, const struct item *i)
{
	return i->send ? &c->group->mail[c->rank][i->peer] : &c->group->mail[i->peer][c->rank];
}

static struct hccl_box *box_of(struct hccl_comm *c, const struct item *i)
{
	return &c->box[i->peer * 2 + !i->send];
}

static void item_text(const struct hccl_comm *c, const struct item *i, char *buf, size_t size)
{
	char number[24] = "";

	if (i->n)	/* or it has not begun */
		snprintf(number, sizeof(number), "%" PRIu64 " ", i->n);
	snprintf(buf, size, "%s %s%s rank %u (%s, %" PRIu64 ")", i->send ? "send" : "recv", number,
		 i->send ? "to" : "from", i->peer, hccl_type_name(i->type), i->count);
	(void)c;
}

/* ---- One message ------------------------------------------------------------------------- */

/* Our side, once the message before it is over.  False: it is not. */
static bool put(struct hccl_comm *c, struct item *i)
{
	struct hccl_mail *m = mail_of(c, i);
	struct hccl_box *box = box_of(c, i);

	if (!i->n) {
		if (i->ticket && smp_load_acquire(&box->ticket_begun) + 1 != i->ticket)
			return false;
		i->n = ++box->begun;
		if (i->ticket)
			smp_store_release(&box->ticket_begun, i->ticket);
	}
	if (smp_load_acquire(&m->done) + 1 != i->n)
		return false;
	if (i->send) {
		m->from = i->ref;
		m->from_count = i->count;
		m->from_type = i->type;
		m->from_drops = npuacl_export_drops();
		smp_store_release(&m->sent, i->n);
	} else {
		m->to = i->ref;
		m->to_count = i->count;
		m->to_type = i->type;
		m->to_drops = npuacl_export_drops();
		smp_store_release(&m->wanted, i->n);
	}
	i->state = ITEM_PUT;
	return true;
}

static bool both(struct hccl_mail *m, u64 n)
{
	return smp_load_acquire(&m->sent) == n && smp_load_acquire(&m->wanted) == n;
}

static bool agree(struct hccl_comm *c, const struct item *i, const struct hccl_mail *m)
{
	u32 from = i->send ? c->rank : i->peer, to = i->send ? i->peer : c->rank;

	if (m->from_count == m->to_count && m->from_type == m->to_type)
		return true;
	hccl_group_fail(c, HCCL_E_PARA, "EI0005",
			"ranks disagree on communicator %.64s: rank %u sends %" PRIu64 " of %s to rank %u, which expects %" PRIu64 " of %s (message %" PRIu64 " from %u to %u)",
			c->group->name, from, m->from_count, hccl_type_name(m->from_type), to, m->to_count, hccl_type_name(m->to_type),
			i->n, from, to);
	return false;
}

static aclError copy(struct hccl_comm *c, u8 *dst, const u8 *src, u64 bytes, bool split)
{
	struct npuemu_sdma d;
	aclError err = ACL_SUCCESS;
	u64 done, n;
	u32 bad = 0;

	if (dst == src)
		return ACL_SUCCESS;
	for (done = 0; done < bytes && !err; done += n) {
		n = unlikely(split) ? hccl_stretch(dst + done, src + done, bytes - done) : bytes;
		npuacl_desc(&d, NPUEMU_SDMA_COPY);
		d.dst = (u64)(uintptr_t)(dst + done);
		d.src = (u64)(uintptr_t)(src + done);
		d.len = n;
		err = npuacl_sdma_now(c->dev, &d, 1, &bad);
	}
	return err;
}

/* READ by the queue, at most so much by one WQE. */
#define WQE_BYTES	(1ull << 30)

static bool fetch(struct hccl_comm *c, const struct item *i, struct hccl_mail *m)
{
	u64 done, n;
	bool good = true;

	pthread_mutex_lock(&c->wire);
	for (done = 0; done < i->bytes && good; done += n) {
		n = i->bytes - done < WQE_BYTES ? i->bytes - done : WQE_BYTES;
		good = hccl_jetty_post(c, false, (u8 *)(uintptr_t)m->to.va + done, &m->from, done, n, false, 0);
		if (good)
			good = hccl_jetty_flush(c);
		else
			hccl_group_fail(c, HCCL_E_INTERNAL, "EI9999", "rank %u: its queue has no room for a WQE", c->rank);
	}
	pthread_mutex_unlock(&c->wire);
	return good;
}

static void move(struct hccl_comm *c, const struct item *i, struct hccl_mail *m)
{
	u32 from = i->send ? c->rank : i->peer, to = i->send ? i->peer : c->rank;
	aclError err = ACL_SUCCESS;
	u8 *src, *dst;

	if (i->bytes && c->queued && from != to) {
		if (fetch(c, i, m))
			smp_store_release(&m->done, i->n);
		return;
	}
	if (i->bytes) {
		pthread_mutex_lock(&c->moving);
		src = hccl_ref_open(c, from, true, &m->from, m->from_drops);
		dst = src ? hccl_ref_open(c, to, true, &m->to, m->to_drops) : NULL;
		if (!dst) {
			pthread_mutex_unlock(&c->moving);
			return;
		}
		err = copy(c, dst, src, i->bytes, (m->from.off | m->to.off) & HCCL_PARTS);
		pthread_mutex_unlock(&c->moving);
	}
	if (err)
		hccl_group_check(c);	/* whose memory it was may have died: then that is said */
	if (err)
		hccl_group_fail(c, HCCL_E_REMOTE, "EI9999", "message %" PRIu64 " from rank %u to %u: %s", i->n, from, to,
				npuacl_self.message);
	else
		smp_store_release(&m->done, i->n);
}

/* Did it get on? */
static bool advance(struct hccl_comm *c, struct item *i)
{
	struct hccl_mail *m = mail_of(c, i);
	u64 before = i->n - 1;

	if (i->state == ITEM_BEGIN && !put(c, i))
		return false;
	before = i->n - 1;
	if (smp_load_acquire(&m->done) < i->n) {
		/* by the queue path it is read, by its receiver */
		if (!both(m, i->n) || (c->queued && i->send && i->peer != c->rank) ||
		    !__atomic_compare_exchange_n(&m->taken, &before, i->n, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return false;
		if (agree(c, i, m))
			move(c, i, m);
		if (smp_load_acquire(&m->done) < i->n)
			return false;
		hccl_wake_local(c);
	}
	i->state = ITEM_DONE;
	return true;
}

/* ---- A batch, as work of a stream ------------------------------------------------------------- */

static void over(struct batch *b)
{
	u32 k;

	b->began = false;
	b->left = b->items;
	for (k = 0; k < b->items; k++) {
		b->item[k].state = ITEM_BEGIN;
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
		if (b->item[k].state == ITEM_DONE)
			continue;
		item_text(c, &b->item[k], text, sizeof(text));
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
		if (b->item[k].state != ITEM_DONE && READ_ONCE(c->group->member[b->item[k].peer].state) == HCCL_LEFT &&
		    smp_load_acquire(&mail_of(c, &b->item[k])->done) < b->item[k].n)
			hccl_group_fail(c, HCCL_E_REMOTE, "EI0006", "rank %u has destroyed the communicator, and rank %u still waits for it",
					b->item[k].peer, c->rank);
	if (!c->cfg.exec_ns || now - b->since < c->cfg.exec_ns || hccl_group_broken(c))
		return;
	batch_text(b, text, sizeof(text));
	hccl_group_fail(c, HCCL_E_TIMEOUT, "EI0002", "%s: nothing came for %.3f s (HCCL_EXEC_TIMEOUT)", text,
			(double)(now - b->since) / 1e9);
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
	}
	for (k = 0; k < b->items && !hccl_group_broken(c); k++)
		if (b->item[k].state != ITEM_DONE && advance(c, &b->item[k]))
			b->left--;
	if (!b->left) {
		over(b);
		return true;
	}
	if (!hccl_group_broken(c)) {
		look(b);
		return false;
	}
	for (k = 0; b->item[k].state == ITEM_DONE; k++)
		;
	item_text(c, &b->item[k], text, sizeof(text));
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

static HcclResult item_make(struct hccl_comm *c, const char *what, const HcclSendRecvItem *in, bool self, struct item *out)
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
		b->item[k].ticket = ++box_of(c, &b->item[k])->ticket;
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
