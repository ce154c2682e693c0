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

u8 *fh_guarded(size_t bytes)
{
	u8 *p = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + PAGE, bytes, PROT_READ | PROT_WRITE))
		fh_die("no memory");
	return p + PAGE;
}

void fh_unguard(u8 *p, size_t bytes)
{
	munmap(p - PAGE, bytes + 2 * PAGE);
}

/* ---- What the engine asks -------------------------------------------------- */

static int op_local(struct npuemu_chip *chip, u64 va, u64 len, struct npuemu_local *out)
{
	struct fakehost *fh = host_of(chip);
	u64 from = FH_VA + fh->mine_from, bytes = fh->arena_bytes - fh->mine_from;

	fh->n.local++;
	if (fh->mine_piece && va - from < bytes) {
		from += (va - from) / fh->mine_piece * fh->mine_piece;
		bytes = fh->mine_piece;
	}
	if (va - from < bytes && len <= bytes - (va - from)) {
		out->va = from;
		out->len = bytes;
		out->ptr = fh->mine.a.chunk ? NULL : fh->mine.a.base + (from - FH_VA);
		out->off = from - FH_VA;
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
	if (fh->pg.memory && va - FH_PG_VA < FH_PG_BYTES && len <= FH_PG_BYTES - (va - FH_PG_VA)) {
		out->va = FH_PG_VA;
		out->len = FH_PG_BYTES;
		out->pageable = true;
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
					   const struct npuemu_peer *peer,
					   const struct npuemu_seg_rec *rec)
{
	struct fakehost *fh = host_of(chip);

	fh->n.arena++;
	if (rec >= fh->segs && rec < fh->segs + FH_SEGS)
		fh_die("the segment's record was not copied");
	return fh->out_of_reach || peer != &fh->peer ? NULL : peer->arena[rec->device];
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
	for (c = off >> 21; c <= (off + len - 1) >> 21; c++) {
		if (!arena->chunk)
			arena->backed[c / 64] |= 1ull << (c % 64);
		else if (!arena->chunk[c])
			arena->chunk[c] = fh_guarded(FH_CHUNK);
	}
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

/* The bytes of a SEND as pieces; those of pageable memory are copied. */
static bool gather(struct fakehost *fh, struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	struct npuemu_message *m = &fh->message;
	struct npuemu_share *share;
	u64 at = 0, done, n;
	u32 i;

	if (!fh->message_len) {
		memset(m, 0, sizeof(*m));
		free(fh->message_copy);
		fh->message_copy = malloc(w->len + 1);
		if (!fh->message_copy)
			fh_die("no memory");
	}
	for (i = 0; i < w->nsge; i++) {
		for (done = 0; done < w->sge[i].len; done += n, at += n) {
			bool pageable = w->sge[i].va - FH_PG_VA < FH_PG_BYTES;
			u8 *p;

			n = w->sge[i].len - done;
			if (at < fh->message_len) {	/* had that before we waited */
				if (n > fh->message_len - at)
					n = fh->message_len - at;
				continue;
			}
			p = npuemu_local_at(q, w, w->sge[i].va + done, &n, false, &share);
			if (!p)
				return false;
			if (m->pieces == NPUEMU_MAX_PIECES)
				fh_die("a message in more pieces than there can be");
			if (pageable)
				p = memcpy(fh->message_copy + at, p, n);
			m->piece[m->pieces] = p;
			m->piece_len[m->pieces++] = (u32)n;
			fh->message_len = at + n;
		}
	}
	if (!w->sge && w->len) {
		m->piece[0] = (u8 *)w->bb + 48;
		m->piece_len[0] = (u32)w->len;
		m->pieces = 1;
	}
	fh->message_len = w->len;
	return true;
}

/* Straight into the receive queue; without one the sender waits for ever. */
static enum npuemu_step op_send(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	struct fakehost *fh = host_of(q->chip);
	u32 answer;

	fh->n.send++;
	if (!fh->jfr) {
		w->token = 1;
		return NPUEMU_STEP_WAIT;
	}
	if ((!fh->message_len || fh->message_len < w->len) && !gather(fh, q, w))
		return npuemu_no_place(w);
	fh->message.done.opcode = w->bb[0] >> 40 & 0xff;
	fh->message.done.rmt_idx = q->id;
	fh->message.done.imm = w->bb[5];
	fh->message.token_en = npuemu_send_token((const void *)w->bb, &fh->message.token_value);
	answer = npuemu_jfr_deliver(fh->jfr, fh->lender, &fh->message);
	if (answer == NPUEMU_DELIVER_AGAIN)
		return NPUEMU_STEP_WAIT;
	fh->message_len = 0;
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

bool fh_no_memory;

static void *op_zalloc(size_t bytes)
{
	return fh_no_memory ? NULL : calloc(1, bytes);
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
	.page = fh_page,
	.page_out = fh_page_out,
	.page_cancel = fh_page_cancel,
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
	a->a.base = fh_guarded(bytes);
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
	fh->ro = fh_guarded(FH_RO_BYTES);
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

static void arena_memory_free(struct fh_arena *a)
{
	u64 c;

	if (a->a.base)
		fh_unguard(a->a.base, a->a.bytes);
	for (c = 0; c < FH_MAX_CHUNKS; c++)
		if (a->chunks[c])
			fh_unguard(a->chunks[c], FH_CHUNK);
}

static void chunk_arena(struct fh_arena *a, bool backed)
{
	u64 c, n = a->a.bytes / FH_CHUNK;

	if (a->a.bytes % FH_CHUNK || n > FH_MAX_CHUNKS)
		fh_die("an arena that cannot be chunked");
	arena_memory_free(a);
	a->a.base = NULL;
	a->a.backed = NULL;
	a->a.chunk = a->chunks;
	memset(a->chunks, 0, sizeof(a->chunks));
	/* backwards, so that the next one in memory is not the next one in the arena */
	for (c = n; backed && c--;)
		a->chunks[c] = fh_guarded(FH_CHUNK);
}

void fh_chunked(struct fakehost *fh, bool backed)
{
	chunk_arena(&fh->mine, backed);
	chunk_arena(&fh->theirs, backed);
	fh->chip.epoch++;
}

void fh_free(struct fakehost *fh)
{
	arena_memory_free(&fh->mine);
	arena_memory_free(&fh->theirs);
	fh_unguard(fh->ro, FH_RO_BYTES);
	fh_pageable_free(fh);
	free(fh->message_copy);
	free(fh->mine.shadow);
	free(fh->theirs.shadow);
	free(fh);
}

u8 *fh_at(const struct fh_arena *a, u64 off)
{
	if (!a->a.chunk)
		return a->a.base + off;
	return a->chunks[off / FH_CHUNK] ? a->chunks[off / FH_CHUNK] + off % FH_CHUNK : NULL;
}

u8 *fh_mine(struct fakehost *fh, u64 off)
{
	return fh_at(&fh->mine, off);
}

u8 *fh_theirs(struct fakehost *fh, u64 off)
{
	return fh_at(&fh->theirs, off);
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

static u64 min64(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* In stretches that lie in one piece, chunked or not. */
static void noise(struct fh_arena *a, u64 bytes, u64 *seed)
{
	u64 at, n, i, v;

	for (at = 0; at < bytes; at += n) {
		u8 *p = fh_at(a, at);

		n = min64(bytes - at, FH_CHUNK);
		for (i = 0; p && i < n; i += 8) {
			v = fh_random(seed);
			memcpy(p + i, &v, 8);
		}
		if (p)
			memcpy(a->shadow + at, p, n);
		else
			memset(a->shadow + at, 0, n);
	}
}

void fh_watch(struct fakehost *fh, u64 watch, u64 seed)
{
	u64 s = seed * 0x9e3779b97f4a7c15ull + 1;

	noise(&fh->mine, watch, &s);
	noise(&fh->theirs, watch, &s);
}

u64 fh_differs(const struct fh_arena *a, u64 watch)
{
	static const u8 zeros[FH_CHUNK];
	u64 at, n, i;

	for (at = 0; at < watch; at += n) {
		const u8 *p = fh_at(a, at);

		n = min64(watch - at, FH_CHUNK);
		if (!p)
			p = zeros;
		if (!memcmp(p, a->shadow + at, n))
			continue;
		for (i = 0; p[i] == a->shadow[at + i]; i++)
			;
		return at + i;
	}
	return ~0ull;
}
