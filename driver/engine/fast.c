// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The common case in one loop: WRITE or READ of one basic block and one SGE,
 * between places the queue remembers.  It makes the same checks as the long
 * walk (owner bit, reserved bits, token, range, rights, life, backing, room in
 * the CQ); a WQE that fails any of them is left for that walk, which says why.
 *
 * What a run of WQEs has in common is checked once, when a window opens: the
 * kind of WQE, the endpoint, token and rights, and on either side a backed
 * range around the first address.  Per WQE there remain: is it the same kind to
 * the same segment, within both ranges, the segment and its owner still as
 * they were.
 */
#include "engine.h"
#include "copy.h"

#define KIND_BITS	((u64)0xff << (32 + NPUEMU_SQE_OPCODE_SHIFT) | NPUEMU_SQE_INLINE | \
			 NPUEMU_SQE_UDF | NPUEMU_SQE_DW0_RESERVED | NPUEMU_SQE_TOKEN_EN)
#define KIND(op)	((u64)(op) << (32 + NPUEMU_SQE_OPCODE_SHIFT) | NPUEMU_SQE_TOKEN_EN)

/* A range of bytes, backed, and where it is mapped. */
struct range {
	u64 va;
	u64 len;
	u8 *ptr;
};

struct window {
	u64 kind;		/* dword 0 without order, CQE and owner bits; opcode */
	u64 w1, w2, w3, w4;	/* what names the segment */
	bool read;
	struct range near, far;
	const u32 *seq;
	u32 seq_val;
	const u64 *life;
	u64 life_val;
};

/* The part of a place around @va that lies in one backed chunk. */
static bool range_around(struct range *r, u64 place_va, u64 place_len, u8 *ptr,
			 const struct npuemu_arena *a, u64 place_off, u64 va)
{
	u64 in = va - place_va, off = place_off + in, lo, hi;

	if (in >= place_len)
		return false;
	if (!a || !a->backed) {
		r->va = place_va;
		r->len = place_len;
		r->ptr = ptr;
		return true;
	}
	if (!npuemu_backed(a, off, 1))
		return false;
	lo = off >> NPUEMU_CHUNK_SHIFT << NPUEMU_CHUNK_SHIFT;
	hi = lo + (1ull << NPUEMU_CHUNK_SHIFT);
	lo = lo > place_off ? lo - place_off : 0;
	hi = hi - place_off < place_len ? hi - place_off : place_len;
	r->va = place_va + lo;
	r->len = hi - lo;
	r->ptr = ptr + lo;
	return true;
}

static noinline bool window_open(struct npuemu_jfs *q, struct window *win, u64 w0, u64 w1,
				 u64 w2, u64 w3, u64 w4, u64 w5, u64 w7)
{
	u32 token_id = (u32)(w1 >> 32) & NPUEMU_SQE_RMT_ID_MASK, access;
	const struct npuemu_remote *r = &q->remote[NPUEMU_REMOTE_SLOT(token_id, w3)];
	const struct npuemu_local *l = &q->local[0];

	win->kind = w0 & KIND_BITS;
	win->read = win->kind == KIND(NPUEMU_OP_READ);
	access = win->read ? NPUEMU_ACCESS_READ : NPUEMU_ACCESS_WRITE;
	if ((!win->read && win->kind != KIND(NPUEMU_OP_WRITE)) ||
	    (u32)w1 >> NPUEMU_SQE_SGE_NUM_SHIFT != 1)
		return false;
	if (!npuemu_local_hit(l, w7, 1))
		l = &q->local[1];
	if (!npuemu_local_hit(l, w7, 1) || (win->read && l->readonly))
		return false;
	if (!npuemu_remote_valid(r, w2, w3, token_id) || (u32)w4 != r->token_value ||
	    !(r->access & access) ||
	    ((u32)(w3 >> 32) & (NPUEMU_MAX_DEVICES - 1)) != q->link_to)
		return false;
	if (!range_around(&win->near, l->va, l->len, l->ptr, l->arena, l->off, w7) ||
	    !range_around(&win->far, r->va, r->len, r->ptr, r->arena, r->off, w5))
		return false;
	win->w1 = w1;
	win->w2 = w2;
	win->w3 = w3;
	win->w4 = w4;
	win->seq = r->seq;
	win->seq_val = r->seq_val;
	win->life = r->life;
	win->life_val = r->life_val;
	npuemu_touch(q, win->read ? l->share : r->share);
	return true;
}

static inline bool holds(const struct range *r, u64 va, u32 len)
{
	return va - r->va < r->len && len <= r->len - (va - r->va);
}

static inline bool in_window(const struct window *win, u64 w0, u64 w1, u64 w2, u64 w3, u64 w4,
			     u64 w5, u64 w7, u32 len)
{
	return !(((w0 & KIND_BITS) ^ win->kind) | (w1 ^ win->w1) | (w2 ^ win->w2) |
		 (w3 ^ win->w3) | (w4 ^ win->w4)) &&
	       holds(&win->near, w7, len) && holds(&win->far, w5, len);
}

static inline void move(u8 *dst, const u8 *src, u32 len)
{
	if (likely(len == 8 && !(((uintptr_t)dst | (uintptr_t)src) & 7)))
		WRITE_ONCE(*(u64 *)dst, READ_ONCE(*(const u64 *)src));
	else
		npuemu_copy(dst, src, len, false);
}

/* Everything of a CQE that does not change within a turn. */
struct cqe_form {
	u64 *ring;
	u32 mask;
	u64 e0, e1, e2, e3;
};

static inline void put_cqe(const struct cqe_form *f, u32 pi, u32 bb, u32 len)
{
	u64 *e = f->ring + (size_t)(pi & f->mask) * 8;

	WRITE_ONCE(e[1], f->e1);
	WRITE_ONCE(e[2], f->e2 | len);
	WRITE_ONCE(e[3], f->e3);
	WRITE_ONCE(e[4], 0);
	WRITE_ONCE(e[5], 0);
	WRITE_ONCE(e[6], 0);
	WRITE_ONCE(e[7], 0);
	smp_store_release(&e[0], f->e0 | (u64)(bb & NPUEMU_CQE_ENTRY_IDX_MASK) << 32 |
			  (pi & (f->mask + 1) ? 0 : NPUEMU_CQE_OWNER));
}

static void settle(struct npuemu_jfs *q, u32 ci, u32 n, u32 cqes, u64 bytes)
{
	struct npuemu_jfs_counters *c = q->cnt;

	WRITE_ONCE(q->ci, ci);
	q->jfc->pi += cqes;
	q->completed |= cqes != 0;
	q->turn_bytes -= bytes;
	q->link_wqes += n;
	q->link_bytes += bytes;
	WRITE_ONCE(c->wqes, c->wqes + n);
	WRITE_ONCE(c->bytes, c->bytes + bytes);
	WRITE_ONCE(c->cqes, c->cqes + cqes);
	if (q->helper)
		WRITE_ONCE(c->helped, c->helped + n);
}

u32 npuemu_run_plain(struct npuemu_jfs *q, u32 budget)
{
	struct npuemu_jfc *jfc = q->jfc;
	const struct cqe_form form = {
		(u64 *)jfc->ring, jfc->mask, q->cqe_fixed[0], q->cqe_fixed[1],
		(u64)(u32)q->user_data << 32, q->user_data >> 32,
	};
	const u64 *const ring = q->ring;
	const u32 mask = q->mask;
	struct window win = { .kind = ~0ull };
	u32 ci = q->ci, end = ci + (q->pi - ci < budget ? q->pi - ci : budget);
	u32 cpi = jfc->pi, limit = jfc->ci + jfc->mask + 1 - READ_ONCE(jfc->attached);
	u64 left = q->turn_bytes, bytes = 0;

	for (; ci != end; ci++) {
		const u64 *src = ring + (size_t)(ci & mask) * 8;
		u64 w0 = READ_ONCE(src[0]), w1 = READ_ONCE(src[1]), w2 = READ_ONCE(src[2]);
		u64 w3 = READ_ONCE(src[3]), w4 = READ_ONCE(src[4]), w5 = READ_ONCE(src[5]);
		u32 len = (u32)READ_ONCE(src[6]);
		u64 w7 = READ_ONCE(src[7]), near, far;

		if (unlikely(!!((u32)w0 & NPUEMU_SQE_OWNER) == !!(ci & (mask + 1)) ||
			     (w0 & NPUEMU_SQE_ORDER_MASK) == NPUEMU_SQE_ORDER_MASK))
			break;
		if (unlikely(!in_window(&win, w0, w1, w2, w3, w4, w5, w7, len)) &&
		    (!window_open(q, &win, w0, w1, w2, w3, w4, w5, w7) ||
		     !in_window(&win, w0, w1, w2, w3, w4, w5, w7, len)))
			break;
		if (unlikely(READ_ONCE(*win.seq) != win.seq_val ||
			     READ_ONCE(*win.life) != win.life_val || !len || len > left))
			break;
		/* one entry a queue is kept: at the limit the long walk looks closer */
		if (w0 & NPUEMU_SQE_CQE && unlikely(cpi == limit))
			break;
		near = w7 - win.near.va;
		far = w5 - win.far.va;
		if (win.read)
			move(win.near.ptr + near, win.far.ptr + far, len);
		else
			move(win.far.ptr + far, win.near.ptr + near, len);
		left -= len;
		bytes += len;
		if (w0 & NPUEMU_SQE_CQE)
			put_cqe(&form, cpi++, ci, len);
	}
	if (ci != q->ci) {
		u32 n = ci - q->ci;

		settle(q, ci, n, cpi - jfc->pi, bytes);
		return n;
	}
	return 0;
}
