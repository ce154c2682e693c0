// SPDX-License-Identifier: MIT
/*
 * One message between two ranks.  Each direction of two ranks has a mailbox with room for a
 * few: both sides write down what they have, in the order of messages, and whoever sees both
 * copies; one message after the other.
 *
 * Who waits for a message sleeps on the bell of its rank, so each thing that lets the other side
 * get on rings that one.
 */
#include <inttypes.h>
#include <stdio.h>
#include "comm.h"
#include "mail.h"
#include "support.h"

static struct hccl_mail *mail_of(struct hccl_comm *c, const struct hccl_item *i)
{
	return i->send ? &c->group->mail[c->rank][i->peer] : &c->group->mail[i->peer][c->rank];
}

static struct hccl_box *box_of(struct hccl_comm *c, const struct hccl_item *i)
{
	return &c->box[i->peer * 2 + !i->send];
}

void hccl_item_text(const struct hccl_item *i, char *buf, size_t size)
{
	char number[24] = "";

	if (i->n)	/* or it has not begun */
		snprintf(number, sizeof(number), "%" PRIu64 " ", i->n);
	snprintf(buf, size, "%s %s%s rank %u (%s, %" PRIu64 ")", i->send ? "send" : "recv", number,
		 i->send ? "to" : "from", i->peer, hccl_type_name(i->type), i->count);
}

u64 hccl_item_ticket(struct hccl_comm *c, const struct hccl_item *i)
{
	struct hccl_box *box = box_of(c, i);

	WRITE_ONCE(box->ticket, box->ticket + 1);
	return box->ticket;
}

static void ring(struct hccl_comm *c, u32 rank)
{
	npuacl_ring(&c->group->bells[rank].bell, INT32_MAX);
}

/* ---- Written down ------------------------------------------------------------------------- */

static struct hccl_message *message(struct hccl_mail *m, u64 n)
{
	return &m->at[n % HCCL_MAILS];
}

/* Are both sides there?  Neither is written again until it is done. */
static bool both(struct hccl_mail *m, u64 n)
{
	return smp_load_acquire(&m->sent) >= n && smp_load_acquire(&m->wanted) >= n;
}

/* Its number: in the order of the calls, whichever streams they are on. */
static bool number(struct hccl_box *box, struct hccl_item *i)
{
	if (i->ticket && smp_load_acquire(&box->ticket_begun) + 1 != i->ticket)
		return false;
	i->n = npuemu_fetch_add(&box->begun, 1) + 1;
	if (i->ticket)
		smp_store_release(&box->ticket_begun, i->ticket);
	return true;
}

bool hccl_item_put(struct hccl_comm *c, struct hccl_item *i)
{
	struct hccl_mail *m = mail_of(c, i);
	struct hccl_box *box = box_of(c, i);
	u64 *mine = i->send ? &m->sent : &m->wanted;
	struct hccl_side *side;

	if (!i->n && !number(box, i))
		return false;
	if (smp_load_acquire(&m->done) + HCCL_MAILS < i->n || smp_load_acquire(mine) + 1 != i->n)
		return false;
	side = i->send ? &message(m, i->n)->from : &message(m, i->n)->to;
	side->ref = i->ref;
	side->count = i->count;
	side->type = i->type;
	side->drops = npuacl_export_drops();
	smp_store_release(mine, i->n);
	i->state = HCCL_ITEM_PUT;
	smp_mb(); /* ours, before the look at theirs: one of both sees both */
	/* by the queue path only the receiver can */
	if (c->queued && i->send && both(m, i->n))
		ring(c, i->peer);
	/* another stream of ours has the next one */
	if (READ_ONCE(box->ticket) != i->ticket)
		ring(c, c->rank);
	return true;
}

/* ---- Copied --------------------------------------------------------------------------------- */

static bool agree(struct hccl_comm *c, const struct hccl_item *i, const struct hccl_message *m)
{
	u32 from = i->send ? c->rank : i->peer, to = i->send ? i->peer : c->rank;

	if (m->from.count == m->to.count && m->from.type == m->to.type)
		return true;
	hccl_group_fail(c, HCCL_E_PARA, "EI0005",
			"ranks disagree on communicator %.64s: rank %u sends %" PRIu64 " of %s to rank %u, which expects %" PRIu64 " of %s (message %" PRIu64 " from %u to %u)",
			c->group->name, from, m->from.count, hccl_type_name(m->from.type), to, m->to.count, hccl_type_name(m->to.type),
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

static bool fetch(struct hccl_comm *c, const struct hccl_item *i, const struct hccl_message *m)
{
	u64 done, n;
	bool good = true;

	pthread_mutex_lock(&c->wire);
	for (done = 0; done < i->bytes && good; done += n) {
		n = i->bytes - done < WQE_BYTES ? i->bytes - done : WQE_BYTES;
		good = hccl_jetty_post(c, false, (u8 *)(uintptr_t)m->to.ref.va + done, &m->from.ref, done, n, false, 0);
		if (good)
			good = hccl_jetty_flush(c);
		else
			hccl_group_fail(c, HCCL_E_INTERNAL, "EI9999", "rank %u: its queue has no room for a WQE", c->rank);
	}
	pthread_mutex_unlock(&c->wire);
	return good;
}

/* False: the group has failed. */
static bool move(struct hccl_comm *c, const struct hccl_item *i, const struct hccl_message *m)
{
	u32 from = i->send ? c->rank : i->peer, to = i->send ? i->peer : c->rank;
	aclError err = ACL_SUCCESS;
	u8 *src, *dst;

	if (!i->bytes)
		return true;
	if (c->queued && from != to)
		return fetch(c, i, m);
	pthread_mutex_lock(&c->moving);
	src = hccl_ref_open(c, from, true, &m->from.ref, m->from.drops);
	dst = src ? hccl_ref_open(c, to, true, &m->to.ref, m->to.drops) : NULL;
	if (dst)
		err = copy(c, dst, src, i->bytes, (m->from.ref.off | m->to.ref.off) & HCCL_PARTS);
	pthread_mutex_unlock(&c->moving);
	if (!dst)	/* hccl_ref_open() has said why */
		return false;
	if (!err)
		return true;
	hccl_group_check(c);	/* whose memory it was may have died: then that is said */
	hccl_group_fail(c, HCCL_E_REMOTE, "EI9999", "message %" PRIu64 " from rank %u to %u: %s", i->n, from, to,
			npuacl_self.message);
	return false;
}

/* Ours to copy: after the one before it, if nobody else is at it. */
static bool take(struct hccl_comm *c, const struct hccl_item *i, struct hccl_mail *m)
{
	u64 before = i->n - 1;

	/* by the queue path it is read, by its receiver */
	if (c->queued && i->send && i->peer != c->rank)
		return false;
	return both(m, i->n) && smp_load_acquire(&m->done) == before &&
	       __atomic_compare_exchange_n(&m->taken, &before, i->n, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/*
 * Message @n is over, and the other side may wait for that; but not as long as it has written down
 * more of them than are worth a wake-up.
 */
static void tell_peer(struct hccl_comm *c, const struct hccl_item *i, struct hccl_mail *m)
{
	u64 more = smp_load_acquire(i->send ? &m->wanted : &m->sent) - i->n;

	if (!more || more == HCCL_MAILS / 2)
		ring(c, i->peer);
}

bool hccl_item_advance(struct hccl_comm *c, struct hccl_item *i)
{
	struct hccl_mail *m = mail_of(c, i);
	struct hccl_message *at;

	if (i->state == HCCL_ITEM_BEGIN && !hccl_item_put(c, i))
		return false;
	if (smp_load_acquire(&m->done) < i->n) {
		if (!take(c, i, m))
			return false;
		at = message(m, i->n);
		if (!agree(c, i, at) || !move(c, i, at))
			return false;
		smp_store_release(&m->done, i->n);
		tell_peer(c, i, m);
	}
	i->state = HCCL_ITEM_DONE;
	return true;
}

bool hccl_item_over(struct hccl_comm *c, const struct hccl_item *i)
{
	return smp_load_acquire(&mail_of(c, i)->done) >= i->n;
}
