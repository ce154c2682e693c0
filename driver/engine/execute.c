// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Executing UDMA work: every place is checked before the first byte moves,
 * then pieces are moved until the turn is used up, then what must come after
 * the payload (a notify, a counter) is done.
 */
#include "engine.h"
#include "copy.h"

/* phases of a WQE with payload */
enum {
	PHASE_CHECK,
	PHASE_MOVE,
	PHASE_AFTER,
};

static inline const struct npuemu_sqe *sqe_of(const struct npuemu_wqe *w)
{
	return (const void *)w->bb;
}

/* Where the payload goes to or comes from, whatever the layout. */
static inline void far_of(struct npuemu_jfs *q, const struct npuemu_wqe *w,
			  struct npuemu_far *t)
{
	const struct npuemu_sqe *s = sqe_of(w);

	t->token_en = s->dw0 & NPUEMU_SQE_TOKEN_EN;
	t->token_id = s->dw3 & NPUEMU_SQE_RMT_ID_MASK;
	if (unlikely(w->op->flags & NPUEMU_OPF_WRITE_ADD)) {
		const struct npuemu_sqe_write_add *a = (const void *)s;

		t->eid[0] = NPUEMU_EID_LO(q->chip->board_id);
		t->eid[1] = npuemu_eid_hi(a->rmt_eid3);
		t->token_value = a->rmt_token_value;
		t->va = a->rmt_addr;
		return;
	}
	t->eid[0] = w->bb[2];
	t->eid[1] = w->bb[3];
	t->token_value = s->rmt_token_value;
	t->va = s->rmt_addr;
}

/* The 8-byte word a WRITE_NOTIFY or WRITE_ATOMIC_ADD touches after its payload. */
static u64 *after_word(struct npuemu_jfs *q, struct npuemu_wqe *w, const struct npuemu_far *t,
		       struct npuemu_share **share)
{
	struct npuemu_far n = *t;
	u64 len = 8;	/* aligned, so it stays 8 */

	if (w->op->flags & NPUEMU_OPF_WRITE_ADD) {
		const struct npuemu_sqe_write_add *a = (const void *)w->bb;

		n.token_id = a->add_token_id & NPUEMU_SQE_RMT_ID_MASK;
		n.token_value = a->add_token_value;
		n.va = a->add_addr;
		return (void *)npuemu_remote_at(q, w, &n, 0, &len, NPUEMU_ACCESS_ATOMIC, share);
	}
	{
		const struct npuemu_sqe_notify *y = (const void *)&w->bb[6];

		n.token_id = y->token_id & NPUEMU_SQE_RMT_ID_MASK;
		n.token_value = y->token_value;
		n.va = y->addr;
	}
	return (void *)npuemu_remote_at(q, w, &n, 0, &len, NPUEMU_ACCESS_WRITE, share);
}

static inline bool has_after(const struct npuemu_wqe *w)
{
	return w->op->control != 48;	/* WRITE_NOTIFY, WRITE_ATOMIC_ADD */
}

static enum npuemu_step after(struct npuemu_jfs *q, struct npuemu_wqe *w,
			      const struct npuemu_far *t)
{
	struct npuemu_share *share = NULL;
	u64 *word = after_word(q, w, t, &share);

	if (!word)
		return npuemu_no_place(w);
	if (w->op->flags & NPUEMU_OPF_WRITE_ADD)
		npuemu_fetch_add(word, ((const struct npuemu_sqe_write_add *)w->bb)->add_data);
	else /* after the payload, for whoever waits for the word */
		smp_store_release(word, ((const struct npuemu_sqe_notify *)&w->bb[6])->data);
	npuemu_touch(q, share);
	return NPUEMU_STEP_DONE;
}

/* A piece of the payload on the local side. */
struct local_piece {
	u8 *ptr;		/* inline data, or as npuemu_local_at() says */
	u64 va;
	u64 len;
	u64 off;		/* of the piece in the payload */
	struct npuemu_share *share;
};

/* Only a payload that is one range can be moved from its end. */
static inline bool backwards(const struct npuemu_wqe *w)
{
	return unlikely(w->backwards) && w->nsge == 1;
}

/* Which one is next: at most @want bytes from w->done on. */
static inline void local_piece(struct npuemu_wqe *w, u64 want, struct local_piece *p)
{
	u64 base = 0;
	u32 i;

	p->ptr = NULL;
	p->share = NULL;
	p->off = w->done;
	if (!w->nsge) {
		/* inline data, or WRITE_ATOMIC_ADD's one address */
		u64 left = w->len - w->done;

		p->len = left < want ? left : want;
		if (w->op->flags & NPUEMU_OPF_WRITE_ADD)
			p->va = ((const struct npuemu_sqe_write_add *)w->bb)->va + w->done;
		else
			p->ptr = (u8 *)w->bb + w->op->control + w->done;
		return;
	}
	for (i = 0; w->done - base >= w->sge[i].len; i++)
		base += w->sge[i].len;
	p->len = w->sge[i].len - (w->done - base);
	if (p->len > want)
		p->len = want;
	if (backwards(w))
		p->off = w->len - w->done - p->len;
	p->va = w->sge[i].va + (p->off - base);
}

/*
 * Both ends of a piece, shortened to what lies in one stretch at either: its
 * beginning, or going backwards its end.  A pointer to the remote one, or NULL.
 */
static inline u8 *both_ends(struct npuemu_jfs *q, struct npuemu_wqe *w,
			    const struct npuemu_far *t, bool read, u32 access,
			    struct local_piece *p, struct npuemu_share **share)
{
	bool inlined = p->ptr;

	for (;;) {
		u64 got = p->len;
		u8 *r;

		if (!inlined) {
			p->ptr = npuemu_local_at(q, w, p->va, &got, read, &p->share);
			if (!p->ptr)
				return NULL;
			/* nothing moves before all of the far side was looked at */
			if (unlikely(got < p->len && !w->done) &&
			    !npuemu_remote_check(q, w, t, 0, w->len, access))
				return NULL;
		}
		if (likely(got == p->len) || !backwards(w)) {
			r = npuemu_remote_at(q, w, t, p->off, &got, access, share);
			if (!r)
				return NULL;
			if (likely(got == p->len) || !backwards(w)) {
				p->len = got;
				return r;
			}
		}
		p->off += got;
		p->va += got;
		p->len -= got;
	}
}

/* Every place of the WQE, looked at before anything moves. */
static bool check_places(struct npuemu_jfs *q, struct npuemu_wqe *w, const struct npuemu_far *t,
			 bool local_write, u32 access)
{
	struct npuemu_share *share;
	u32 i;

	for (i = 0; i < w->nsge; i++) {
		if (!w->sge[i].len)
			continue;
		if (!npuemu_local_check(q, w, w->sge[i].va, w->sge[i].len, local_write))
			return false;
		/* addresses and pointers are the same modulo 16 */
		if (w->elem && w->sge[i].va & (w->elem - 1))
			goto misaligned;
	}
	if (w->op->flags & NPUEMU_OPF_WRITE_ADD && w->len &&
	    !npuemu_local_check(q, w, ((const struct npuemu_sqe_write_add *)w->bb)->va,
				w->len, false))
		return false;
	if (!npuemu_remote_check(q, w, t, 0, w->len, access))
		return false;
	if (w->elem && t->va & (w->elem - 1))
		goto misaligned;
	return !has_after(w) || after_word(q, w, t, &share);

misaligned:
	q->chip->ops->explain(q, "WQE at block %u: reduce operands are not aligned to their %u-byte elements",
			      w->first, w->elem);
	w->status = NPUEMU_ST_LOC_LEN;
	return false;
}

/*
 * Combining is a read, an operation and a write, so two engines must not do it
 * to one buffer at once.  Nobody waits for the other here: the queue turns to
 * something else and comes back.  A dead holder is pushed aside.
 */
static bool reducer_take(struct npuemu_jfs *q, struct npuemu_share *share)
{
	struct npuemu_chip *chip = q->chip;
	u64 who;

	if (!share || npuemu_cas(&share->reducer, 0, chip->me))
		return true;
	who = READ_ONCE(share->reducer);
	if (!who || who == chip->me || chip->ops->alive(chip, who))
		return false;
	return npuemu_cas(&share->reducer, who, chip->me);
}

enum npuemu_step npuemu_piece(struct npuemu_jfs *q, struct npuemu_wqe *w, u8 *dst,
			      const u8 *src, u64 len, struct npuemu_share *share, u32 reduce)
{
	if (likely(!w->elem)) {
		npuemu_copy(dst, src, len, w->len >= NPUEMU_STREAM_BYTES);
	} else {
		if (!reducer_take(q, share))
			return NPUEMU_STEP_WAIT;
		npuemu_reduce(dst, src, len / w->elem, reduce >> 4 & 0xf, reduce & 0xf);
		if (share) /* what was combined, before the next one may */
			smp_store_release(&share->reducer, 0);
	}
	npuemu_touch(q, share);
	w->done += len;
	q->turn_bytes -= len < q->turn_bytes ? len : q->turn_bytes;
	return NPUEMU_STEP_MORE;
}

static inline u32 reduce_of(const struct npuemu_wqe *w)
{
	u32 dw9 = sqe_of(w)->dw9;

	return (dw9 >> NPUEMU_SQE_RED_OP_SHIFT & 0xf) << 4 |
	       (dw9 >> NPUEMU_SQE_RED_TYPE_SHIFT & 0xf);
}

/* Move pieces until the payload or the turn ends. */
static enum npuemu_step move(struct npuemu_jfs *q, struct npuemu_wqe *w,
			     const struct npuemu_far *t, bool read, u32 access)
{
	while (w->done < w->len) {
		struct npuemu_share *rshare = NULL;
		struct local_piece p;
		enum npuemu_step step;
		u8 *r;

		if (!q->turn_bytes)
			return NPUEMU_STEP_MORE;
		local_piece(w, q->turn_bytes, &p);
		r = both_ends(q, w, t, read, access, &p, &rshare);
		if (!r)
			return npuemu_no_place(w);
		step = read ? npuemu_piece(q, w, p.ptr, r, p.len, p.share, reduce_of(w)) :
			      npuemu_piece(q, w, r, p.ptr, p.len, rshare, reduce_of(w));
		if (step == NPUEMU_STEP_WAIT)
			return step;
		npuemu_wrote(w, p.va, p.len);
	}
	return NPUEMU_STEP_DONE;
}

/* Pages come from the front: what is held shall be what is asked for again. */
static noinline void choose_way(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(q->local); i++)
		if (npuemu_local_hit(q->local[i], w->sge[0].va, w->len) && q->local[i]->pageable)
			w->backwards = false;
}

static enum npuemu_step run_rma(struct npuemu_jfs *q, struct npuemu_wqe *w, bool read)
{
	enum npuemu_step step;
	struct npuemu_far t;
	u32 access = w->op->access;

	far_of(q, w, &t);
	if (w->phase == PHASE_CHECK) {
		/* one piece and nothing after it: its own checks are all there is */
		if ((w->nsge != 1 || w->len > q->turn_bytes || w->elem || has_after(w) ||
		     !w->len || w->backwards) && !check_places(q, w, &t, read, access))
			return NPUEMU_STEP_DONE;
		if (backwards(w))
			choose_way(q, w);
		w->phase = PHASE_MOVE;
	}
	if (w->phase == PHASE_MOVE) {
		step = move(q, w, &t, read, access);
		if (step != NPUEMU_STEP_DONE || w->status)
			return step;
		w->phase = PHASE_AFTER;
	}
	return has_after(w) ? after(q, w, &t) : NPUEMU_STEP_DONE;
}

enum npuemu_step npuemu_run_write(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	return run_rma(q, w, false);
}

enum npuemu_step npuemu_run_read(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	return run_rma(q, w, true);
}

#if defined(__x86_64__)
/* 16 bytes at once; @old is what was there, @expect what had to be. */
static void cas16(u64 *p, const u64 *expect, const u64 *swap, u64 *old)
{
	old[0] = expect[0];
	old[1] = expect[1];
	__asm__ __volatile__("lock; cmpxchg16b %0"
			     : "+m" (*(char (*)[16])p), "+a" (old[0]), "+d" (old[1])
			     : "b" (swap[0]), "c" (swap[1])
			     : "memory", "cc");
}

#define HAVE_CAS16 1
#else
#define HAVE_CAS16 0
#define cas16(p, expect, swap, old) ((void)(p), (void)(expect), (void)(swap), (void)(old))
#endif

static void do_atomic(struct npuemu_wqe *w, u8 *r, u64 *old)
{
	const u64 *operand = &w->bb[8];
	bool cas = w->op == &npuemu_opcodes[NPUEMU_OP_CAS];
	u32 was4;

	switch (w->len) {
	case 4:
		if (cas) {
			was4 = (u32)(operand[0] >> 32);
			__atomic_compare_exchange_n((u32 *)r, &was4, (u32)operand[0], false,
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		} else {
			was4 = npuemu_fetch_add((u32 *)r, (u32)operand[0]);
		}
		old[0] = was4;
		break;
	case 8:
		if (cas) {
			old[0] = operand[1];
			__atomic_compare_exchange_n((u64 *)r, old, operand[0], false,
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		} else {
			old[0] = npuemu_fetch_add((u64 *)r, operand[0]);
		}
		break;
	default:
		cas16((u64 *)r, operand + 2, operand, old);
		break;
	}
}

/* Where the result goes: anywhere, so it may lie across the end of a chunk. */
struct result {
	u8 *ptr[2];
	u64 len[2];
	struct npuemu_share *share;
};

static bool result_at(struct npuemu_jfs *q, struct npuemu_wqe *w, struct result *to)
{
	u64 va = w->sge[0].va;

	to->len[0] = w->len;
	to->ptr[0] = npuemu_local_at(q, w, va, &to->len[0], true, &to->share);
	if (!to->ptr[0])
		return false;
	to->len[1] = w->len - to->len[0];
	if (likely(!to->len[1]))
		return true;
	to->ptr[1] = npuemu_local_at(q, w, va + to->len[0], &to->len[1], true, &to->share);
	return to->ptr[1];
}

enum npuemu_step npuemu_run_atomic(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	struct npuemu_share *rshare;
	u64 old[2] = { 0, 0 }, len = w->len;
	struct npuemu_far t;
	struct result to;
	u8 *r;

	if (w->len == 16 && !HAVE_CAS16) {
		w->status = NPUEMU_ST_REM_UNSUPPORTED_REQ;
		return NPUEMU_STEP_DONE;
	}
	far_of(q, w, &t);
	/* the result's place first: an atomic that cannot answer must not happen */
	if (!result_at(q, w, &to))
		return npuemu_no_place(w);
	r = npuemu_remote_at(q, w, &t, 0, &len, w->op->access, &rshare);	/* aligned: whole */
	if (!r)
		return npuemu_no_place(w);
	do_atomic(w, r, old);
	npuemu_copy(to.ptr[0], old, to.len[0], false);
	if (unlikely(to.len[1]))
		npuemu_copy(to.ptr[1], (u8 *)old + to.len[0], to.len[1], false);
	npuemu_wrote(w, w->sge[0].va, w->len);
	w->done = w->len;
	npuemu_touch(q, to.share);
	npuemu_touch(q, rshare);
	return NPUEMU_STEP_DONE;
}

enum npuemu_step npuemu_run_send(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	u32 i;

	if (w->phase == PHASE_CHECK) {
		if (((const struct npuemu_sqe *)w->bb)->dw0 >> NPUEMU_SQE_RMT_TYPE_SHIFT & 2) {
			q->chip->ops->explain(q, "WQE at block %u: SEND goes to a jetty or an RQ, there are no jetty groups",
					      w->first);
			w->status = NPUEMU_ST_REM_UNSUPPORTED_REQ;
			return NPUEMU_STEP_DONE;
		}
		for (i = 0; i < w->nsge; i++)
			if (w->sge[i].len &&
			    !npuemu_local_check(q, w, w->sge[i].va, w->sge[i].len, false))
				return NPUEMU_STEP_DONE;
		w->phase = PHASE_MOVE;
	}
	return q->chip->ops->send(q, w);
}

enum npuemu_step npuemu_run_nop(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	(void)q;
	(void)w;
	return NPUEMU_STEP_DONE;
}

/* What was written to a bounce buffer goes to where it belongs. */
static noinline enum npuemu_step write_out(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	if (q->chip->ops->page_out(q, w) == NPUEMU_STEP_WAIT) {
		w->held = true;
		return NPUEMU_STEP_WAIT;
	}
	w->page_dirty = false;
	return w->ran || w->status ? NPUEMU_STEP_DONE : NPUEMU_STEP_MORE;
}

enum npuemu_step npuemu_execute(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	bool held = w->held;
	enum npuemu_step step;

	w->held = false;
	/* what came before may have been of odd length; a piece that ends with the
	 * turn must cut no element and no pattern
	 */
	q->turn_bytes &= ~7ull;
	if (unlikely(q->nfaults) && npuemu_fault_hit(q, w, &step))
		return step;
	if (unlikely(w->page_dirty)) {
		step = write_out(q, w);
		if (step != NPUEMU_STEP_MORE)
			return step;
	}
	step = w->op->run(q, w);
	if (likely(!w->page_dirty && !held))
		return step;
	if (step == NPUEMU_STEP_DONE && w->status) {
		/* it has failed: what it leaves behind is not promised */
		w->page_dirty = false;
		q->chip->ops->page_cancel(q);
		return step;
	}
	if (!w->page_dirty)
		return step;
	w->ran = step == NPUEMU_STEP_DONE;
	w->held = false;
	return write_out(q, w);
}
