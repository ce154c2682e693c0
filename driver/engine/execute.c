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

	if (w->op->flags & NPUEMU_OPF_WRITE_ADD) {
		const struct npuemu_sqe_write_add *a = (const void *)w->bb;

		n.token_id = a->add_token_id & NPUEMU_SQE_RMT_ID_MASK;
		n.token_value = a->add_token_value;
		n.va = a->add_addr;
		return (void *)npuemu_remote_at(q, w, &n, 0, 8, NPUEMU_ACCESS_ATOMIC, share);
	}
	{
		const struct npuemu_sqe_notify *y = (const void *)&w->bb[6];

		n.token_id = y->token_id & NPUEMU_SQE_RMT_ID_MASK;
		n.token_value = y->token_value;
		n.va = y->addr;
	}
	return (void *)npuemu_remote_at(q, w, &n, 0, 8, NPUEMU_ACCESS_WRITE, share);
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
		return NPUEMU_STEP_DONE;
	if (w->op->flags & NPUEMU_OPF_WRITE_ADD)
		npuemu_fetch_add(word, ((const struct npuemu_sqe_write_add *)w->bb)->add_data);
	else /* after the payload, for whoever waits for the word */
		smp_store_release(word, ((const struct npuemu_sqe_notify *)&w->bb[6])->data);
	npuemu_touch(q, share);
	return NPUEMU_STEP_DONE;
}

/* A piece of the payload on the local side: at most @want bytes from w->done on. */
struct local_piece {
	u8 *ptr;
	u64 len;
	u64 off;		/* of the piece in the payload */
	struct npuemu_share *share;
};

static bool local_piece(struct npuemu_jfs *q, struct npuemu_wqe *w, u64 want, bool write,
			struct local_piece *p)
{
	u64 base = 0;
	u32 i;

	p->share = NULL;
	p->off = w->done;
	if (!w->nsge) {
		/* inline data, or WRITE_ATOMIC_ADD's one address */
		u64 left = w->len - w->done;

		p->len = left < want ? left : want;
		if (w->op->flags & NPUEMU_OPF_WRITE_ADD) {
			const struct npuemu_sqe_write_add *a = (const void *)w->bb;

			p->ptr = npuemu_local_at(q, w, a->va + w->done, p->len, write,
						 &p->share);
			return p->ptr;
		}
		p->ptr = (u8 *)w->bb + w->op->control + w->done;
		return true;
	}
	for (i = 0; w->done - base >= w->sge[i].len; i++)
		base += w->sge[i].len;
	p->len = w->sge[i].len - (w->done - base);
	if (p->len > want)
		p->len = want;
	if (unlikely(w->backwards) && w->nsge == 1)
		p->off = w->len - w->done - p->len;
	p->ptr = npuemu_local_at(q, w, w->sge[i].va + (p->off - base), p->len, write, &p->share);
	return p->ptr;
}

/* Every place of the WQE, looked at before anything moves. */
static bool check_places(struct npuemu_jfs *q, struct npuemu_wqe *w, const struct npuemu_far *t,
			 bool local_write, u32 access)
{
	struct npuemu_share *share;
	u8 *r;
	u32 i;

	for (i = 0; i < w->nsge; i++) {
		u8 *l;

		if (!w->sge[i].len)
			continue;
		l = npuemu_local_check(q, w, w->sge[i].va, w->sge[i].len, local_write);
		if (!l)
			return false;
		if (w->elem && (uintptr_t)l % w->elem)
			goto misaligned;
	}
	if (w->op->flags & NPUEMU_OPF_WRITE_ADD && w->len &&
	    !npuemu_local_check(q, w, ((const struct npuemu_sqe_write_add *)w->bb)->va,
				w->len, false))
		return false;
	r = npuemu_remote_check(q, w, t, 0, w->len, access);
	if (!r)
		return false;
	if (w->elem && (uintptr_t)r % w->elem)
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
		if (!local_piece(q, w, q->turn_bytes, read, &p))
			return NPUEMU_STEP_DONE;
		r = npuemu_remote_at(q, w, t, p.off, p.len, access, &rshare);
		if (!r)
			return NPUEMU_STEP_DONE;
		step = read ? npuemu_piece(q, w, p.ptr, r, p.len, p.share, reduce_of(w)) :
			      npuemu_piece(q, w, r, p.ptr, p.len, rshare, reduce_of(w));
		if (step == NPUEMU_STEP_WAIT)
			return step;
	}
	return NPUEMU_STEP_DONE;
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
		     !w->len) && !check_places(q, w, &t, read, access))
			return NPUEMU_STEP_DONE;
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

enum npuemu_step npuemu_run_atomic(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	struct npuemu_share *lshare, *rshare;
	u64 old[2] = { 0, 0 };
	struct npuemu_far t;
	u8 *l, *r;

	if (w->len == 16 && !HAVE_CAS16) {
		w->status = NPUEMU_ST_REM_UNSUPPORTED_REQ;
		return NPUEMU_STEP_DONE;
	}
	far_of(q, w, &t);
	/* the result's place first: an atomic that cannot answer must not happen */
	l = npuemu_local_at(q, w, w->sge[0].va, w->len, true, &lshare);
	if (!l)
		return NPUEMU_STEP_DONE;
	r = npuemu_remote_at(q, w, &t, 0, w->len, w->op->access, &rshare);
	if (!r)
		return NPUEMU_STEP_DONE;
	do_atomic(w, r, old);
	npuemu_copy(l, old, w->len, false);
	w->done = w->len;
	npuemu_touch(q, lshare);
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

enum npuemu_step npuemu_execute(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	enum npuemu_step step;

	/* what came before may have been of odd length; a piece that ends with the
	 * turn must cut no element and no pattern
	 */
	q->turn_bytes &= ~7ull;
	if (unlikely(q->nfaults) && npuemu_fault_hit(q, w, &step))
		return step;
	return w->op->run(q, w);
}
