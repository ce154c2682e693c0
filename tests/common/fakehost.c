// SPDX-License-Identifier: MIT
/*
 * The fake host's memory, its answers to the engine, and its queues.  See
 * fakehost.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fakehost.h"

#define PAGE	4096u

u64 fh_now;

static void die(const char *what)
{
	fprintf(stderr, "fakehost: %s\n", what);
	abort();
}

static struct fakehost *host_of(struct npuemu_chip *chip)
{
	return chip->host;
}

/* Memory between two pages nobody may touch. */
static u8 *guarded(size_t bytes)
{
	u8 *p = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + PAGE, bytes, PROT_READ | PROT_WRITE))
		die("no memory");
	return p + PAGE;
}

static void unguard(u8 *p, size_t bytes)
{
	munmap(p - PAGE, bytes + 2 * PAGE);
}

/* ---- What the engine asks -------------------------------------------------- */

static int op_local(struct npuemu_chip *chip, u64 va, u64 len, struct npuemu_local *out)
{
	struct fakehost *fh = host_of(chip);
	u64 from = FH_VA + fh->mine_from, bytes = fh->arena_bytes - fh->mine_from;

	fh->n.local++;
	if (va - from < bytes && len <= bytes - (va - from)) {
		out->va = from;
		out->len = bytes;
		out->ptr = fh->mine.a.base + fh->mine_from;
		out->off = fh->mine_from;
		out->arena = &fh->mine.a;
		out->share = &fh->mine.shares[0];
		return 0;
	}
	if (va - FH_RO_VA < FH_RO_BYTES && len <= FH_RO_BYTES - (va - FH_RO_VA)) {
		out->va = FH_RO_VA;
		out->len = FH_RO_BYTES;
		out->ptr = fh->ro;
		out->readonly = true;
		return 0;
	}
	return -EFAULT;
}

static const struct npuemu_peer *op_peer(struct npuemu_chip *chip, const u64 *eid)
{
	struct fakehost *fh = host_of(chip);
	u32 w[4], got[4] = { (u32)eid[0], eid[0] >> 32, (u32)eid[1], eid[1] >> 32 };

	fh->n.peer++;
	fh_eid(fh, w);
	return memcmp(w, got, sizeof(w)) ? NULL : &fh->peer;
}

static const struct npuemu_arena *op_arena(struct npuemu_chip *chip,
					   const struct npuemu_peer *peer, u32 device)
{
	struct fakehost *fh = host_of(chip);

	fh->n.arena++;
	return fh->out_of_reach || peer != &fh->peer ? NULL : peer->arena[device];
}

static int op_back(struct npuemu_chip *chip, const struct npuemu_arena *arena, u64 off, u64 len,
		   u64 lo, u64 hi)
{
	struct fakehost *fh = host_of(chip);
	u64 c;

	fh->n.back++;
	if (!len || off < lo || hi > arena->bytes || len > hi - off)
		die("asked to back what is outside the buffer");
	if (fh->on_back)
		fh->on_back(fh);
	if (!fh->back_left)
		return -ENOMEM;
	if (fh->back_left > 0)
		fh->back_left--;
	for (c = off >> 21; c <= (off + len - 1) >> 21; c++)
		arena->backed[c / 64] |= 1ull << (c % 64);
	return 0;
}

static void op_wake(struct npuemu_chip *chip, struct npuemu_share *share)
{
	host_of(chip)->n.wake++;
	memset(share->waiters, 0, sizeof(share->waiters));
}

static void op_wake_cq(struct npuemu_chip *chip, struct npuemu_jfc *jfc)
{
	(void)jfc;
	host_of(chip)->n.wake_cq++;
}

static bool op_alive(struct npuemu_chip *chip, u64 who)
{
	if (!who)
		die("asked whether nobody lives");
	host_of(chip)->n.alive++;
	return host_of(chip)->others_live;
}

/* Straight into the receive queue; without one the sender waits for ever. */
static enum npuemu_step op_send(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	struct fakehost *fh = host_of(q->chip);
	struct npuemu_message m = { .pieces = 0 };
	struct npuemu_share *share;
	u32 i, answer;

	fh->n.send++;
	if (!fh->jfr) {
		w->token = 1;
		return NPUEMU_STEP_WAIT;
	}
	if (!w->sge) {
		m.piece[m.pieces] = (u8 *)w->bb + 48;
		m.piece_len[m.pieces++] = (u32)w->len;
	}
	for (i = 0; w->sge && i < w->nsge; i++) {
		if (!w->sge[i].len)
			continue;
		m.piece[m.pieces] = npuemu_local_at(q, w, w->sge[i].va, w->sge[i].len, false,
						    &share);
		if (!m.piece[m.pieces])
			return NPUEMU_STEP_DONE;
		m.piece_len[m.pieces++] = w->sge[i].len;
	}
	m.done.opcode = w->bb[0] >> 40 & 0xff;
	m.done.rmt_idx = q->id;
	m.done.imm = w->bb[5];
	answer = npuemu_jfr_deliver(fh->jfr, fh->lender, &m);
	if (answer == FH_RNR && (q->rnr_retry == 7 || w->retries++ < q->rnr_retry))
		return NPUEMU_STEP_WAIT;
	if (answer)
		q->chip->ops->explain(q, "refused by the receiver");
	w->status = answer;
	w->done = answer ? 0 : w->len;
	return NPUEMU_STEP_DONE;
}

static void op_send_cancel(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	if (!w->token)
		die("a SEND that is not under way is cancelled");
	w->token = 0;
	host_of(q->chip)->n.cancel++;
}

static u32 op_faults(struct npuemu_chip *chip, struct npuemu_fault_rec *out)
{
	struct fakehost *fh = host_of(chip);

	fh->n.faults++;
	memcpy(out, fh->faults, sizeof(fh->faults));
	return fh->nfaults;
}

static u64 op_now(void)
{
	return fh_now;
}

static void op_trace(struct npuemu_jfs *q, u32 event, u32 index, u64 arg)
{
	struct fakehost *fh = host_of(q->chip);

	fh->n.trace++;
	if (fh->on_trace)
		fh->on_trace(q, event, index, arg);
}

static void *op_zalloc(size_t bytes)
{
	return calloc(1, bytes);
}

static void op_free(void *p)
{
	free(p);
}

__attribute__((format(printf, 2, 3)))
static void op_explain(struct npuemu_jfs *q, const char *fmt, ...)
{
	struct fakehost *fh = host_of(q->chip);
	va_list ap;

	fh->n.explain++;
	va_start(ap, fmt);
	vsnprintf(fh->said, sizeof(fh->said), fmt, ap);
	va_end(ap);
}

static const struct npuemu_host_ops fake_ops = {
	.local = op_local,
	.peer = op_peer,
	.arena = op_arena,
	.back = op_back,
	.wake = op_wake,
	.wake_cq = op_wake_cq,
	.alive = op_alive,
	.send = op_send,
	.send_cancel = op_send_cancel,
	.faults = op_faults,
	.now = op_now,
	.trace = op_trace,
	.zalloc = op_zalloc,
	.free = op_free,
	.explain = op_explain,
};

/* ---- The host -------------------------------------------------------------- */

static void arena_init(struct fh_arena *a, u32 device, u64 bytes)
{
	a->a.base = guarded(bytes);
	a->a.bytes = bytes;
	a->a.shares = a->shares;
	a->a.nshares = FH_SHARES;
	a->a.device = device;
	a->shadow = malloc(bytes);
	if (!a->shadow)
		die("no memory");
}

struct fakehost *fh_new(void)
{
	return fh_new_small(FH_ARENA_BYTES);
}

struct fakehost *fh_new_small(u64 arena_bytes)
{
	struct fakehost *fh = calloc(1, sizeof(*fh));
	u32 i;

	if (!fh)
		die("no memory");
	fh->ops = fake_ops;
	fh->chip.ops = &fh->ops;
	fh->chip.host = fh;
	fh->chip.machine = &fh->machine;
	fh->chip.links = fh->links;
	fh->chip.fault_gen = &fh->fault_gen;
	fh->chip.slot = FH_SLOT;
	fh->chip.board_id = FH_BOARD;
	fh->chip.me = 0x77;
	fh->arena_bytes = arena_bytes;
	arena_init(&fh->mine, 0, arena_bytes);
	arena_init(&fh->theirs, 1, arena_bytes);
	fh->ro = guarded(FH_RO_BYTES);
	fh->back_left = -1;
	fh->others_live = true;
	fh->life = 0x1001;
	fh->peer.life = &fh->life;
	fh->peer.life_val = fh->life;
	fh->peer.segs = fh->segs;
	fh->peer.nsegs = FH_SEGS;
	fh->peer.arena[1] = &fh->theirs.a;
	for (i = 0; i < FH_SEGS; i++)
		fh->segs[i].seq = 0;
	fh_segment(fh, FH_TOKEN_ID & 0xfff, 0, arena_bytes, FH_RWA, FH_TOKEN_VALUE);
	fh_now = 1000;
	return fh;
}

void fh_free(struct fakehost *fh)
{
	unguard(fh->mine.a.base, fh->arena_bytes);
	unguard(fh->theirs.a.base, fh->arena_bytes);
	unguard(fh->ro, FH_RO_BYTES);
	free(fh->mine.shadow);
	free(fh->theirs.shadow);
	free(fh);
}

u8 *fh_mine(struct fakehost *fh, u64 off)
{
	return fh->mine.a.base + off;
}

u8 *fh_theirs(struct fakehost *fh, u64 off)
{
	return fh->theirs.a.base + off;
}

void fh_eid(struct fakehost *fh, u32 eid[4])
{
	(void)fh;
	eid[0] = 0x554d5055u;
	eid[1] = FH_BOARD;
	eid[2] = 1;
	eid[3] = FH_PEER_SLOT << 24 | FH_PEER_GEN << 8 | 1;
}

u32 fh_segment(struct fakehost *fh, u32 index, u64 off, u64 len, u32 access, u32 value)
{
	struct npuemu_seg_rec *r = &fh->segs[index];

	r->token_id = 0x5000 | index;
	r->token_value = value;
	r->access = access;
	r->va = FH_PEER_VA + off;
	r->len = len;
	r->off = off;
	r->device = 1;
	r->buf = 1;
	r->seq = (r->seq | 1) + 1;
	return r->token_id;
}

void fh_segment_gone(struct fakehost *fh, u32 index)
{
	fh->segs[index].seq = 0;
	fh->segs[index].token_id = 0;
}

void fh_segment_rotate(struct fakehost *fh, u32 index, u32 value)
{
	fh->segs[index].token_value = value;
	fh->segs[index].seq += 2;
}

void fh_lazy(struct fakehost *fh)
{
	fh->mine.backed = 0;
	fh->theirs.backed = 0;
	fh->mine.a.backed = &fh->mine.backed;
	fh->theirs.a.backed = &fh->theirs.backed;
}

void fh_faults(struct fakehost *fh, u32 n)
{
	u32 i;

	/* injected anew, even if nothing about them changed */
	for (i = 0; i < NPUEMU_MAX_FAULTS; i++)
		fh->faults[i].serial++;
	fh->nfaults = n;
	fh->fault_gen++;
}

u64 fh_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 0x2545f4914f6cdd1dull;
}

static void noise(struct fh_arena *a, u64 bytes, u64 *seed)
{
	u64 i, v;

	for (i = 0; i < bytes; i += 8) {
		v = fh_random(seed);
		memcpy(a->a.base + i, &v, 8);
	}
	memcpy(a->shadow, a->a.base, bytes);
}

void fh_watch(struct fakehost *fh, u64 watch, u64 seed)
{
	u64 s = seed * 0x9e3779b97f4a7c15ull + 1;

	noise(&fh->mine, watch, &s);
	noise(&fh->theirs, watch, &s);
}

u64 fh_differs(const struct fh_arena *a, u64 watch)
{
	u64 i;

	if (!memcmp(a->a.base, a->shadow, watch))
		return ~0ull;
	for (i = 0; a->a.base[i] == a->shadow[i]; i++)
		;
	return i;
}

/* ---- Queues ---------------------------------------------------------------- */

void fh_cq_init(struct fh_cq *cq, u32 depth)
{
	memset(cq, 0, sizeof(*cq));
	cq->jfc.ring = aligned_alloc(64, (size_t)depth * 64);
	if (!cq->jfc.ring)
		die("no memory");
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
		die("no memory");
	f->ring = aligned_alloc(64, (size_t)depth * 64);
	f->page = aligned_alloc(PAGE, PAGE);
	if (!f->ring || !f->page)
		die("no memory");
	memset(f->ring, 0, (size_t)depth * 64);
	memset(f->page, 0, PAGE);
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
	free(f->ring);
	free(f->page);
	free(f);
}

void fh_chaos(struct fh_queue *f, u64 seed)
{
	if (!f->q.win)
		f->q.win = calloc(1, sizeof(*f->q.win));
	if (!f->q.win)
		die("no memory");
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
		die("the queue is owned already");
	f->waiting = false;
	more = npuemu_jfs_turn(&f->q, false, &f->waiting);
	if (!(f->owner & 1))
		die("the queue was let go of during its turn");
	npuemu_jfs_release(&f->q);
	if (f->q.ntouched || f->q.completed)
		die("something was left over from a turn");
	return more;
}

u32 fh_run(struct fh_queue *f)
{
	u32 n = 1;

	fh_bell(f);
	while (fh_turn(f))
		if (n++ > 1000000)
			die("turns without end");
	return n;
}

u32 fh_do(struct fh_queue *f, const struct fh_wqe *w, struct fh_cqe *c)
{
	struct fh_cqe mine;

	fh_post(f, w);
	fh_run(f);
	return fh_poll(f->cq, c ? c : &mine) ? (c ? c : &mine)->code : ~0u;
}
