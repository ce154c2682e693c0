// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Segments a context offers to its peers, and finding peers.
 *
 * A segment is published as a record (struct npuemu_seg_rec) that engines of
 * peers read without a lock: its sequence word is 0 while there is none, odd
 * while it changes, and different after each change.  Engines remember what
 * they read for as long as the word stays the same, and look at it for every
 * piece they move.
 *
 * The record of a segment that goes is made void first; its buffer is let go,
 * and its index can be taken again, only after the grace period.  So an engine
 * that copied the record may, in the same turn, look at ctx->segments without
 * finding another one there.
 */
#include <linux/overflow.h>
#include <linux/random.h>
#include "npuemu.h"

#define BLOCK	64u		/* segments in a block of ctx->segments */
#define INDEX	(NPUEMU_CTX_SEGS - 1)

static bool access_legal(u32 access)
{
	const u32 r = NPUEMU_ACCESS_READ, w = NPUEMU_ACCESS_WRITE, a = NPUEMU_ACCESS_ATOMIC;

	return access == NPUEMU_ACCESS_LOCAL || access == r || access == (r | w) ||
	       access == (r | w | a);
}

u32 npuemu_token_or_random(u32 token)
{
	while (!token)
		token = get_random_u32();
	return token;
}

/* NULL: that index was never used.  ctx->lock held, or in an npuemu_turns section. */
static struct npuemu_segment *seg_at(struct npuemu_ctx *ctx, u32 index)
{
	/* pairs with the release in seg_take(): the block is zeroed */
	struct npuemu_segment *block = smp_load_acquire(&ctx->segments[index / BLOCK]);

	return block ? &block[index % BLOCK] : NULL;
}

/* ctx->lock held */
static struct npuemu_segment *seg_find(struct npuemu_ctx *ctx, u32 token_id)
{
	struct npuemu_segment *s = seg_at(ctx, token_id & INDEX);

	return s && s->live && s->token_id == token_id ? s : NULL;
}

/* The table of records, at the first segment.  ctx->lock held. */
static int recs_alloc(struct npuemu_ctx *ctx)
{
	struct npuemu_seg_rec *recs;

	if (ctx->segs)
		return 0;
	recs = kvcalloc(NPUEMU_CTX_SEGS, sizeof(*recs), GFP_KERNEL_ACCOUNT);
	if (!recs)
		return -ENOMEM;
	ctx->peer.segs = recs;
	ctx->peer.nsegs = NPUEMU_CTX_SEGS;
	/* pairs with npuemu_op_peer(): who sees it sees the two above */
	smp_store_release(&ctx->segs, recs);
	return 0;
}

/*
 * A free index, and its next token id.  Indices go round, so that an id comes
 * again as late as it can.  ctx->lock held.
 */
static struct npuemu_segment *seg_take(struct npuemu_ctx *ctx)
{
	struct npuemu_segment *s, *block;
	u32 n, i;

	for (n = 0; n < NPUEMU_CTX_SEGS; n++) {
		i = (ctx->seg_next + n) & INDEX;
		s = seg_at(ctx, i);
		if (!s) {
			block = kcalloc(BLOCK, sizeof(*block), GFP_KERNEL_ACCOUNT);
			if (!block)
				return ERR_PTR(-ENOMEM);
			smp_store_release(&ctx->segments[i / BLOCK], block); /* it is zeroed */
			s = &block[i % BLOCK];
		}
		if (s->bo)
			continue;
		ctx->seg_next = (i + 1) & INDEX;
		/* 8 bits of generation */
		s->token_id += NPUEMU_CTX_SEGS;
		s->token_id = (s->token_id & NPUEMU_SQE_RMT_ID_MASK & ~INDEX) | i;
		return s;
	}
	return ERR_PTR(-ENOSPC);
}

/* The even value after the last one this index had, never 0. */
static u32 next_seq(struct npuemu_segment *s)
{
	s->seq += 2;
	if (!s->seq)
		s->seq = 2;
	return s->seq;
}

static void seg_publish(struct npuemu_ctx *ctx, struct npuemu_segment *s,
			const struct npuemu_ioc_seg_create *a)
{
	struct npuemu_seg_rec *r = &ctx->segs[s->token_id & INDEX];
	u32 open = a->flags & NPUEMU_SEGF_NO_TOKEN ? NPUEMU_SEGREC_NO_TOKEN : 0;

	WRITE_ONCE(r->token_id, s->token_id);
	WRITE_ONCE(r->token_value, a->token_value);
	WRITE_ONCE(r->access, a->access | open);
	WRITE_ONCE(r->va, a->va);
	WRITE_ONCE(r->len, a->bytes);
	WRITE_ONCE(r->off, a->offset);
	WRITE_ONCE(r->device, s->bo->dev->index);
	WRITE_ONCE(r->buf, 0);	/* a buffer is an arena of its own here */
	s->live = true;
	ctx->nsegs++;
	smp_store_release(&r->seq, next_seq(s)); /* only now: it is complete */
}

/* ctx->lock held */
static int seg_make(struct npuemu_ctx *ctx, struct npuemu_ioc_seg_create *a)
{
	struct npuemu_bo_handle *h = npuemu_handle_find(ctx, a->handle);
	struct npuemu_segment *s;
	u64 end;
	int err;

	if (!h)
		return -ENOENT;
	if (h->imported)
		return -EPERM;
	if (check_add_overflow(a->offset, a->bytes, &end) || end > h->bo->bytes)
		return -EINVAL;
	if (READ_ONCE(h->bo->revoked))
		return -ENODEV;
	err = npuemu_ctx_check(ctx);
	if (!err)
		err = recs_alloc(ctx);
	if (err)
		return err;
	s = seg_take(ctx);
	if (IS_ERR(s))
		return PTR_ERR(s);
	npuemu_bo_get(h->bo);
	h->segs++;
	npuemu_leak(NPUEMU_LEAK_SEG, 1);
	s->handle = a->handle;
	s->bo = h->bo;
	WRITE_ONCE(s->arena, &h->bo->arena);
	a->token_id = s->token_id;
	a->token_value = npuemu_token_or_random(a->token_value);
	npuemu_eid(ctx, h->bo->dev->index, a->eid);
	seg_publish(ctx, s, a);
	return 0;
}

int npuemu_ioc_seg_create(struct npuemu_file *f, struct npuemu_ioc_seg_create *a)
{
	struct npuemu_ctx *ctx = READ_ONCE(f->ctx);
	u64 end;
	int err;

	if (a->flags & ~NPUEMU_SEGF_NO_TOKEN || a->pad || !access_legal(a->access))
		return -EINVAL;
	if (!a->bytes || check_add_overflow(a->va, a->bytes, &end) || (a->va ^ a->offset) & 4095)
		return -EINVAL;
	mutex_lock(&ctx->lock);
	err = seg_make(ctx, a);
	mutex_unlock(&ctx->lock);
	return err;
}

/*
 * When it returns, no piece of work that is begun gets by with the old token.  One
 * that was begun may still be finished: at most 64 KiB for each queue.
 */
int npuemu_ioc_seg_rotate(struct npuemu_file *f, struct npuemu_ioc_seg_rotate *a)
{
	struct npuemu_ctx *ctx = READ_ONCE(f->ctx);
	struct npuemu_segment *s;
	struct npuemu_seg_rec *r;
	int err = -ENOENT;

	mutex_lock(&ctx->lock);
	s = seg_find(ctx, a->token_id);
	if (s) {
		a->token_value = npuemu_token_or_random(a->token_value);
		r = &ctx->segs[a->token_id & INDEX];
		WRITE_ONCE(r->seq, s->seq + 1);
		smp_wmb(); /* odd before the change; pairs with the acquires of the reader */
		WRITE_ONCE(r->token_value, a->token_value);
		smp_store_release(&r->seq, next_seq(s)); /* the change before it is even */
		err = 0;
	}
	mutex_unlock(&ctx->lock);
	return err;
}

/* Nobody can use it any more: let go of its buffer.  ctx->lock held. */
static void seg_release(struct npuemu_ctx *ctx, struct npuemu_segment *s)
{
	struct npuemu_bo_handle *h = npuemu_handle_find(ctx, s->handle);
	struct npuemu_bo *bo = s->bo;

	if (h)
		h->segs--;
	WRITE_ONCE(s->arena, NULL);
	s->bo = NULL;
	ctx->nsegs--;
	npuemu_bo_put(bo);
	npuemu_leak(NPUEMU_LEAK_SEG, -1);
}

int npuemu_ioc_seg_destroy(struct npuemu_file *f, struct npuemu_ioc_seg_destroy *a)
{
	struct npuemu_ctx *ctx = READ_ONCE(f->ctx);
	struct npuemu_segment *s;

	if (a->pad)
		return -EINVAL;
	mutex_lock(&ctx->lock);
	s = seg_find(ctx, a->token_id);
	if (s) {
		s->live = false;
		WRITE_ONCE(ctx->segs[a->token_id & INDEX].seq, 0);
	}
	mutex_unlock(&ctx->lock);
	if (!s)
		return -ENOENT;
	npuemu_grace();
	mutex_lock(&ctx->lock);
	seg_release(ctx, s);
	mutex_unlock(&ctx->lock);
	return 0;
}

/* On close, with ctx->lock held; the context's life has ended. */
void npuemu_segs_drop(struct npuemu_ctx *ctx)
{
	struct npuemu_seg_rec *recs = ctx->segs;
	struct npuemu_segment *s;
	u32 i;

	if (!recs)
		return;
	for (i = 0; i < NPUEMU_CTX_SEGS; i++)
		WRITE_ONCE(recs[i].seq, 0);
	WRITE_ONCE(ctx->segs, NULL);
	npuemu_grace();
	for (i = 0; i < NPUEMU_CTX_SEGS; i++) {
		s = seg_at(ctx, i);
		if (s && s->bo)
			seg_release(ctx, s);
	}
	for (i = 0; i < ARRAY_SIZE(ctx->segments); i++) {
		kfree(ctx->segments[i]);
		ctx->segments[i] = NULL;
	}
	ctx->peer.nsegs = 0;
	ctx->peer.segs = NULL;
	kvfree(recs);
}

u32 npuemu_segs_count(struct npuemu_ctx *ctx)
{
	return READ_ONCE(ctx->nsegs);
}

/* ---- Peers, as engines find them ---------------------------------------------------- */

struct npuemu_ctx *npuemu_peer_ctx(const u64 *eid)
{
	u32 w3 = eid[1] >> 32;
	struct npuemu_ctx *ctx;

	if (eid[0] != NPUEMU_EID_LO(npuemu_board_id) || (u32)eid[1] != NPUEMU_EID3_DEV(w3))
		return NULL;
	ctx = npuemu_ctx_slot(NPUEMU_EID3_SLOT(w3));
	if (!ctx || ctx->gen != NPUEMU_EID3_GEN(w3))
		return NULL;
	if (READ_ONCE(ctx->life) != ctx->peer.life_val || READ_ONCE(ctx->broken))
		return NULL;
	return ctx;
}

const struct npuemu_peer *npuemu_op_peer(struct npuemu_chip *chip, const u64 *eid)
{
	/* alive, and offers nothing */
	static const u64 life = 1;
	static const struct npuemu_peer bare = { .life = &life, .life_val = 1 };
	struct npuemu_ctx *ctx = npuemu_peer_ctx(eid);

	if (!ctx)
		return NULL;
	/* pairs with recs_alloc() */
	return smp_load_acquire(&ctx->segs) ? &ctx->peer : &bare;
}

const struct npuemu_arena *npuemu_op_arena(struct npuemu_chip *chip, const struct npuemu_peer *peer,
					   const struct npuemu_seg_rec *rec)
{
	struct npuemu_ctx *ctx = container_of(peer, struct npuemu_ctx, peer);
	struct npuemu_segment *s = seg_at(ctx, rec->token_id & INDEX);
	const struct npuemu_arena *arena = s ? READ_ONCE(s->arena) : NULL;

	/* the record was good in this turn, so the buffer is there until its end */
	if (!arena || READ_ONCE(container_of(arena, struct npuemu_bo, arena)->revoked))
		return NULL;
	return arena;
}
