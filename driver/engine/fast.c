// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The common cases in one loop: WRITE or READ of one basic block and one SGE,
 * and FAA, between places the queue remembers.  It makes the same checks as the long
 * walk (owner bit, reserved bits, token, range, rights, life, backing, room in
 * the CQ); a WQE that fails any of them is left for that walk, which says why.
 *
 * WQEs come in runs that differ in their two addresses only.  What a run has in
 * common is checked once, when a window opens on its first WQE; then, for each,
 * there remain: is every other word the same as in the first, do both addresses
 * lie in backed ranges, is the segment what it was and its owner alive.
 */
#include "engine.h"
#include "copy.h"

#define KIND_BITS	((u64)0xff << (32 + NPUEMU_SQE_OPCODE_SHIFT) | NPUEMU_SQE_INLINE | \
			 NPUEMU_SQE_UDF | NPUEMU_SQE_DW0_RESERVED | NPUEMU_SQE_TOKEN_EN)
#define KIND(op)	((u64)(op) << (32 + NPUEMU_SQE_OPCODE_SHIFT) | NPUEMU_SQE_TOKEN_EN)

/* The part of a place around @va that lies in one backed chunk. */
static bool range_around(struct npuemu_span *r, u64 place_va, u64 place_len, u8 *ptr,
			 const struct npuemu_arena *a, u64 place_off, u64 va, u64 len)
{
	u64 in = va - place_va, lo = 0, hi = place_len;

	if (in >= place_len || len > place_len - in)
		return false;
	if (a && (a->backed || a->chunk)) {
		u64 off = place_off + in, chunk = off >> NPUEMU_CHUNK_SHIFT << NPUEMU_CHUNK_SHIFT;

		if (!npuemu_backed(a, off, 1))
			return false;
		if (chunk > place_off)
			lo = chunk - place_off;
		if (chunk + NPUEMU_CHUNK_BYTES - place_off < hi)
			hi = chunk + NPUEMU_CHUNK_BYTES - place_off;
	}
	if (len > hi - in)
		return false;
	r->va = place_va + lo;
	r->last = hi - lo - len;
	r->ptr = a && a->chunk ? npuemu_arena_at(a, place_off + lo) : ptr + lo;
	return r->ptr;
}

static bool window_open(struct npuemu_jfs *q, struct npuemu_plain *win)
{
	const u64 *w = win->w;
	u32 token_id = (u32)(w[1] >> 32) & NPUEMU_SQE_RMT_ID_MASK;
	const struct npuemu_remote *r = &q->remote[NPUEMU_REMOTE_SLOT(token_id, w[3])];
	const struct npuemu_local *l = q->local[0];
	u32 access;

	win->len = (u32)w[6];
	win->blocks = 1;
	win->read = true;
	switch (w[0] & KIND_BITS) {
	case KIND(NPUEMU_OP_WRITE):
		access = NPUEMU_ACCESS_WRITE;
		win->read = false;
		break;
	case KIND(NPUEMU_OP_READ):
		access = NPUEMU_ACCESS_READ;
		break;
	case KIND(NPUEMU_OP_FAA):
		if (win->len != 8)
			return false;
		access = NPUEMU_ACCESS_ATOMIC;
		win->blocks = 2;
		break;
	default:
		return false;
	}
	if ((u32)w[1] >> NPUEMU_SQE_SGE_NUM_SHIFT != 1 || !win->len ||
	    (w[0] & NPUEMU_SQE_ORDER_MASK) == NPUEMU_SQE_ORDER_MASK)
		return false;
	if (!npuemu_local_hit(l, w[7], win->len))
		l = q->local[1];
	if (!npuemu_remote_valid(r, w[2], w[3], token_id) || (u32)w[4] != r->token_value ||
	    !(r->access & access) ||
	    ((u32)(w[3] >> 32) & (NPUEMU_MAX_DEVICES - 1)) != q->link_to ||
	    (win->read && l->readonly) || l->pageable)
		return false;
	if (!range_around(&win->near, l->va, l->len, l->ptr, l->arena, l->off, w[7], win->len) ||
	    !range_around(&win->far, r->va, r->len, r->ptr, r->arena, r->off, w[5], win->len))
		return false;
	win->touch[0] = win->read ? l->share : NULL;
	win->touch[1] = access != NPUEMU_ACCESS_READ ? r->share : NULL;
	win->to = q->link_to;
	win->seq = r->seq;
	win->seq_val = r->seq_val;
	win->life = r->life;
	win->life_val = r->life_val;
	return true;
}

/* Everything of a CQE that does not change within a run. */
struct form {
	u64 e0, e1, e2, e3;
};

static inline void put_cqe(const struct form *f, u64 *e, u32 bb)
{
	WRITE_ONCE(e[1], f->e1);
	WRITE_ONCE(e[2], f->e2);
	WRITE_ONCE(e[3], f->e3);
	WRITE_ONCE(e[4], 0);
	WRITE_ONCE(e[5], 0);
	WRITE_ONCE(e[6], 0);
	WRITE_ONCE(e[7], 0);
	/* the owner bit after the body: the poller loads it first, with acquire */
	smp_store_release(&e[0], f->e0 | (u64)bb << 32);
}

static __always_inline void move(u8 *dst, const u8 *src, u32 len)
{
	if (len == 8 && likely(!(((uintptr_t)dst | (uintptr_t)src) & 7)))
		WRITE_ONCE(*(u64 *)dst, READ_ONCE(*(const u64 *)src));
	else
		npuemu_copy(dst, src, len, false);
}

/* Is the WQE at @p one of the run?  Its two places as offsets. */
static __always_inline bool same(const struct npuemu_plain *win, const u64 *p,
				 u64 *near, u64 *far)
{
	*near = READ_ONCE(p[7]) - win->near.va;
	*far = READ_ONCE(p[5]) - win->far.va;
	return likely(!((READ_ONCE(p[0]) ^ win->w[0]) | (READ_ONCE(p[1]) ^ win->w[1]) |
			(READ_ONCE(p[2]) ^ win->w[2]) | (READ_ONCE(p[3]) ^ win->w[3]) |
			(READ_ONCE(p[4]) ^ win->w[4]) | (READ_ONCE(p[6]) ^ win->w[6]))) &&
	       likely(*near <= win->near.last && *far <= win->far.last) &&
	       likely(READ_ONCE(*win->seq) == win->seq_val &&
		      READ_ONCE(*win->life) == win->life_val);
}

/*
 * Up to @n WQEs from @p on, block @at of the ring and no end of it among them;
 * how many were of the run.  @e: where their CQEs go, NULL if none are wanted.  @op is one of
 * NPUEMU_OP_WRITE, READ, FAA.
 */
static __always_inline u32 run(const struct npuemu_plain *win, const u64 *p, u32 n, u64 *e,
			       const struct form *form, u32 at, u32 op, u32 len)
{
	const u32 blocks = op == NPUEMU_OP_FAA ? 2 : 1;
	u64 near, far;
	u32 i;

	for (i = 0; i < n; i++, p += blocks * 8) {
		u8 *l, *r;

		if (!same(win, p, &near, &far))
			break;
		l = win->near.ptr + near;
		r = win->far.ptr + far;
		if (op == NPUEMU_OP_WRITE) {
			move(r, l, len);
		} else if (op == NPUEMU_OP_READ) {
			move(l, r, len);
		} else {
			if (((uintptr_t)l | (uintptr_t)r) & 7)
				break;
			WRITE_ONCE(*(u64 *)l, npuemu_fetch_add((u64 *)r, READ_ONCE(p[8])));
		}
		at += blocks;
		if (e) {
			put_cqe(form, e, at - 1);
			e += 8;
		}
	}
	return i;
}

static void settle(struct npuemu_jfs *q, u32 n, u32 blocks, bool cqes, u64 bytes)
{
	struct npuemu_jfs_counters *c = q->cnt;

	WRITE_ONCE(q->ci, q->ci + n * blocks);
	q->turn_bytes -= bytes;
	WRITE_ONCE(c->link_wqes, c->link_wqes + n);
	WRITE_ONCE(c->link_bytes, c->link_bytes + bytes);
	WRITE_ONCE(c->wqes, c->wqes + n);
	WRITE_ONCE(c->bytes, c->bytes + bytes);
	if (q->helper)
		WRITE_ONCE(c->helped, c->helped + n);
	if (!cqes)
		return;
	q->jfc->pi += n;
	q->completed = true;
	WRITE_ONCE(c->cqes, c->cqes + n);
}

static u32 min32(u32 a, u32 b)
{
	return a < b ? a : b;
}

/* One run of at most @budget WQEs: how many, 0 if the next one is not for us. */
static u32 one_run(struct npuemu_jfs *q, u32 budget)
{
	struct npuemu_jfc *jfc = q->jfc;
	u32 ci = q->ci, at = ci & q->mask, n, i;
	const u64 *p = q->ring + (size_t)at * 8;
	struct form form = { 0, 0, 0, 0 };
	struct npuemu_plain *win = &q->plain;
	u64 *e = NULL, near, far;

	/* the window of the last turn still fits more often than not */
	if (!win->len || win->to != q->link_to || !same(win, p, &near, &far)) {
		win->len = 0;
		for (i = 0; i < 8; i++)
			win->w[i] = READ_ONCE(p[i]);
		if (!window_open(q, win)) {
			win->len = 0;
			return 0;
		}
	}
	if (unlikely(!!((u32)win->w[0] & NPUEMU_SQE_OWNER) == !!(ci & (q->mask + 1))) ||
	    win->len > q->turn_bytes)
		return 0;
	npuemu_touch(q, win->touch[0]);
	npuemu_touch(q, win->touch[1]);
	n = min32(q->pi - ci, q->mask + 1 - at) / win->blocks;
	n = min32(n, budget);
	if ((u64)n * win->len > q->turn_bytes)
		n = (u32)q->turn_bytes / win->len;
	if (win->w[0] & NPUEMU_SQE_CQE) {
		u32 cat = jfc->pi & jfc->mask;
		/* one entry a queue is kept: at the limit the long walk looks closer */
		u32 used = jfc->pi - jfc->ci + READ_ONCE(jfc->attached);

		if (used > jfc->mask)
			return 0;
		n = min32(n, jfc->mask + 1 - used);
		n = min32(n, jfc->mask + 1 - cat);
		e = (u64 *)jfc->ring + (size_t)cat * 8;
		form.e0 = q->cqe_fixed[0] | (jfc->pi & (jfc->mask + 1) ? 0 : NPUEMU_CQE_OWNER);
		form.e1 = q->cqe_fixed[1];
		form.e2 = (u64)(u32)q->user_data << 32 | win->len;
		form.e3 = q->user_data >> 32;
	}
	if (win->blocks == 2)
		n = run(win, p, n, e, &form, at, NPUEMU_OP_FAA, 8);
	else if (win->read)
		n = run(win, p, n, e, &form, at, NPUEMU_OP_READ, win->len);
	else if (win->len == 8)
		n = run(win, p, n, e, &form, at, NPUEMU_OP_WRITE, 8);
	else
		n = run(win, p, n, e, &form, at, NPUEMU_OP_WRITE, win->len);
	if (n)
		settle(q, n, win->blocks, e, (u64)n * win->len);
	return n;
}

u32 npuemu_run_plain(struct npuemu_jfs *q, u32 budget)
{
	u32 done = 0, n;

	while (done < budget && q->ci != q->pi) {
		n = one_run(q, budget - done);
		if (!n)
			break;
		done += n;
	}
	return done;
}
