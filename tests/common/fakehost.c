// SPDX-License-Identifier: MIT
/*
 * The fake host's memory and its answers to the engine.  See fakehost.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fakehost.h"

#define PAGE	4096u

u64 fh_now;

void fh_die(const char *what)
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
		fh_die("no memory");
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
		fh_die("asked to back what is outside the buffer");
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
		fh_die("asked whether nobody lives");
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
		fh_die("a SEND that is not under way is cancelled");
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
		fh_die("no memory");
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
		fh_die("no memory");
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
