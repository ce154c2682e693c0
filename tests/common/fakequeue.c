// SPDX-License-Identifier: MIT
/*
 * The fake host's queues: rings, doorbells, turns, and taking CQEs apart.  See
 * fakehost.h.
 */
#include <stdlib.h>
#include <string.h>

#include "fakehost.h"

#define DB_PAGE	4096u

void fh_cq_init(struct fh_cq *cq, u32 depth)
{
	memset(cq, 0, sizeof(*cq));
	cq->jfc.ring = aligned_alloc(64, (size_t)depth * 64);
	if (!cq->jfc.ring)
		fh_die("no memory");
	memset(cq->jfc.ring, 0, (size_t)depth * 64);
	cq->jfc.mask = depth - 1;
	cq->jfc.ci_rec = &cq->ci_rec;
}

void fh_cq_free(struct fh_cq *cq)
{
	free(cq->jfc.ring);
	free(cq->jfc.times);
}

static u32 bits(const u32 *dw, u32 byte, u32 bit, u32 n)
{
	return dw[byte / 4] >> bit & (n == 32 ? ~0u : (1u << n) - 1);
}

bool fh_poll(struct fh_cq *cq, struct fh_cqe *c)
{
	u32 depth = cq->jfc.mask + 1, dw[16], i;

	memcpy(dw, &cq->jfc.ring[cq->ci & (depth - 1)], 64);
	if ((dw[0] >> 2 & 1) == !!(cq->ci & depth))
		return false;
	c->recv = bits(dw, 0, 0, 1);
	c->jetty = bits(dw, 0, 1, 1);
	c->owner = bits(dw, 0, 2, 1);
	c->inline_en = bits(dw, 0, 3, 1);
	c->opcode = bits(dw, 0, 4, 3);
	c->fd = bits(dw, 0, 7, 1);
	c->substatus = bits(dw, 0, 16, 8);
	c->status = bits(dw, 0, 24, 8);
	c->entry_idx = bits(dw, 4, 0, 16);
	c->local_num = bits(dw, 4, 16, 16) | bits(dw, 8, 0, 4) << 16;
	c->rmt_idx = bits(dw, 8, 4, 20);
	c->tpn = bits(dw, 12, 0, 24);
	c->bytes = bits(dw, 16, 0, 32);
	c->user_data = (u64)dw[6] << 32 | dw[5];
	for (i = 0; i < 4; i++)
		c->rmt_eid[i] = dw[7 + i];
	c->imm = (u64)dw[12] << 32 | dw[11];
	c->code = c->status << 8 | c->substatus;
	cq->ci++;
	cq->ci_rec = cq->ci & 0xffffff;
	return true;
}

struct fh_queue *fh_queue(struct fakehost *fh, u32 depth, u32 cq_depth, u32 type,
			  struct fh_cq *cq)
{
	struct fh_queue *f = calloc(1, sizeof(*f));

	if (!f)
		fh_die("no memory");
	f->ring = aligned_alloc(64, (size_t)depth * 64);
	f->page = aligned_alloc(DB_PAGE, DB_PAGE);
	if (!f->ring || !f->page)
		fh_die("no memory");
	memset(f->ring, 0, (size_t)depth * 64);
	memset(f->page, 0, DB_PAGE);
	f->fh = fh;
	f->depth = depth;
	f->cq = cq ? cq : &f->own;
	if (!cq)
		fh_cq_init(&f->own, cq_depth);
	f->cq->jfc.attached++;
	f->cq->jfc.shared = f->cq->jfc.attached > 1;
	f->q.ring = f->ring;
	f->q.mask = depth - 1;
	f->q.db_pi = f->page + 32;	/* byte 0x80 */
	f->q.owner = &f->owner;
	f->q.jfc = &f->cq->jfc;
	f->q.chip = &fh->chip;
	f->q.cnt = &f->cnt;
	f->q.cause = f->cause;
	f->q.id = FH_QUEUE_ID;
	f->q.type = type;
	f->q.user_data = FH_USER_DATA;
	f->q.ack_timeout_ns = 1000000;
	npuemu_jfs_init(&f->q);
	return f;
}

void fh_queue_free(struct fh_queue *f)
{
	if (f->cq == &f->own)
		fh_cq_free(&f->own);
	free(f->q.win);
	free(f->q.fault);
	free(f->q.many);
	free(f->ring);
	free(f->page);
	free(f);
}

void fh_chaos(struct fh_queue *f, u64 seed)
{
	if (!f->q.win)
		f->q.win = calloc(1, sizeof(*f->q.win));
	if (!f->q.win)
		fh_die("no memory");
	f->q.win->rng = seed;
	f->q.chaos = true;
}

void fh_start_at(struct fh_queue *f, u32 at)
{
	u32 depth = f->cq->jfc.mask + 1, i;

	f->pi = at;
	f->page[32] = at;
	f->q.ci = at;
	f->q.pi = at;
	f->q.pi_raw = at;
	f->cq->ci = at;
	f->cq->ci_rec = at & 0xffffff;
	f->cq->jfc.pi = at;
	f->cq->jfc.ci = at;
	/* what this lap and the one before left in the ring */
	for (i = 0; i < depth; i++) {
		bool even = !(at & depth);

		f->cq->jfc.ring[i].dw0 = (i < (at & (depth - 1)) ? even : !even) ? 4 : 0;
	}
}

static void store(struct fh_queue *f, const struct fh_wqe *w, u32 flip)
{
	u32 i, owner = f->pi & f->depth ? 0 : FH_OWNER;

	for (i = 0; i < w->nbb; i++)
		memcpy(f->ring + (size_t)((f->pi + i) & (f->depth - 1)) * 8, w->b + i * 64, 64);
	i = (u32)f->ring[(size_t)(f->pi & (f->depth - 1)) * 8];
	i = (i & ~FH_OWNER) | (owner ^ flip);
	memcpy(f->ring + (size_t)(f->pi & (f->depth - 1)) * 8, &i, 4);
	f->pi += w->nbb;
}

void fh_post(struct fh_queue *f, const struct fh_wqe *w)
{
	store(f, w, 0);
}

void fh_post_stale(struct fh_queue *f, const struct fh_wqe *w)
{
	store(f, w, FH_OWNER);
}

void fh_bell(struct fh_queue *f)
{
	smp_store_release(&f->page[32], f->pi);
}

bool fh_turn(struct fh_queue *f)
{
	bool more;

	if (!npuemu_owner_try(&f->owner))
		fh_die("the queue is owned already");
	f->waiting = false;
	more = npuemu_jfs_turn(&f->q, false, &f->waiting);
	if (!(f->owner & 1))
		fh_die("the queue was let go of during its turn");
	npuemu_jfs_release(&f->q);
	if (f->q.ntouched || f->q.completed)
		fh_die("something was left over from a turn");
	return more;
}

u32 fh_run(struct fh_queue *f)
{
	u32 waits, n = 0;

	fh_bell(f);
	do {
		waits = f->fh->pg.waits;
		if (n++ > 1000000)
			fh_die("turns without end");
	} while (fh_turn(f) || (f->waiting && f->fh->pg.waits != waits));
	return n;
}

u32 fh_do(struct fh_queue *f, const struct fh_wqe *w, struct fh_cqe *c)
{
	struct fh_cqe mine;

	fh_post(f, w);
	fh_run(f);
	return fh_poll(f->cq, c ? c : &mine) ? (c ? c : &mine)->code : ~0u;
}
