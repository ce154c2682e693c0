// SPDX-License-Identifier: MIT
/*
 * Polling and waiting.  The consumer's side of a CQ is the caller's: an entry
 * is valid when its owner bit differs from the parity of the lap; reading one
 * retires every WQE of its queue up to and with it.
 */
#include "core.h"

bool npuemu_compare(u64 word, u32 cmp, u64 value)
{
	switch (cmp) {
	case NPUEMU_CMP_EQ:
		return word == value;
	case NPUEMU_CMP_NE:
		return word != value;
	case NPUEMU_CMP_GE:
		return word >= value;
	case NPUEMU_CMP_GT:
		return word > value;
	case NPUEMU_CMP_LE:
		return word <= value;
	case NPUEMU_CMP_LT:
		return word < value;
	default:
		return (word & value) != 0;
	}
}

static inline const u64 *entry(const struct npuemu_cq *cq)
{
	return cq->ring + (size_t)(cq->ci & cq->mask) * 8;
}

static inline bool valid(const struct npuemu_cq *cq, u64 w0)
{
	return !!(w0 & NPUEMU_CQE_OWNER) != !!(cq->ci & (cq->mask + 1));
}

bool npuemu_cq_ready(const struct npuemu_cq *cq)
{
	return valid(cq, smp_load_acquire(entry(cq)));
}

/* What is the same for both directions, and where the receive side differs. */
static inline void take(const struct npuemu_cq *cq, const u64 *e, u64 w0, u32 ci,
			struct npuemu_wc *wc)
{
	u32 dw0 = (u32)w0, dw1 = (u32)(w0 >> 32);
	u64 w1 = e[1], w2 = e[2], w3 = e[3];

	wc->user_data = w2 >> 32 | w3 << 32;
	wc->wqe = dw1 & NPUEMU_CQE_ENTRY_IDX_MASK;
	wc->byte_cnt = (u32)w2;
	wc->status = dw0 >> NPUEMU_CQE_STATUS_SHIFT << 8 | (dw0 >> NPUEMU_CQE_SUBSTATUS_SHIFT & 0xff);
	wc->queue = dw1 >> NPUEMU_CQE_LOCAL_LO_SHIFT | ((u32)w1 & NPUEMU_CQE_LOCAL_HI_MASK) << 16;
	wc->flags = dw0 & NPUEMU_CQE_FD ? NPUEMU_WC_FLUSH_DONE : 0;
	wc->opcode = 0;
	wc->imm = 0;
	wc->model_ns = unlikely(cq->times) ? READ_ONCE(cq->times[ci & cq->mask]) : 0;
	memset(&wc->rmt_eid, 0, sizeof(wc->rmt_eid));
	if (likely(!(dw0 & NPUEMU_CQE_RECV)))
		return;
	wc->flags = NPUEMU_WC_RECV;
	wc->opcode = dw0 >> NPUEMU_CQE_OPCODE_SHIFT & 7;
	if (wc->opcode == NPUEMU_OP_SEND_IMM) {
		wc->flags |= NPUEMU_WC_IMM;
		wc->imm = e[5] >> 32 | e[6] << 32;
	}
	wc->rmt_eid.w[0] = (u32)(w3 >> 32);
	wc->rmt_eid.w[1] = (u32)e[4];
	wc->rmt_eid.w[2] = (u32)(e[4] >> 32);
	wc->rmt_eid.w[3] = (u32)e[5];
}

/* The entry has 16 bits of the index; the rest follows from what is out. */
static inline void retire(struct npuemu_post_view *v, struct npuemu_wc *wc)
{
	u32 last = v->ci + ((wc->wqe - v->ci) & v->mask);

	wc->wqe = last;
	/* pairs with npuemu_used(): the poster may be another thread */
	if (likely(last - v->ci < READ_ONCE(v->pi) - v->ci))
		smp_store_release(&v->ci, last + 1);
}

/* Is the entry at @ci from before the queue was made or reset? */
static bool stale(struct npuemu_queue *q, u32 ci)
{
	if (likely(!q->stale))
		return false;
	if ((s32)(ci - q->fresh) < 0)
		return true;
	q->stale = false;
	return false;
}

/*
 * The common entry: a success of the one queue this CQ is for.  What is the
 * same in all of them was noted when the queue was made, on this side's lines,
 * so one comparison tells that an entry is valid and all that.
 */
#define OWN_VARIES	((u64)NPUEMU_CQE_ENTRY_IDX_MASK << 32)

static int poll_own(struct npuemu_cq *cq, struct npuemu_wc *wc, int n)
{
	const struct npuemu_cq_own own = cq->own_form;
	const u64 *e = entry(cq);
	u64 form = own.e0 | (cq->ci & (cq->mask + 1) ? 0 : NPUEMU_CQE_OWNER);
	u32 left = cq->mask + 1 - (cq->ci & cq->mask), pi, ci, mask;
	int i;

	if (own.e0 == ~0ull || unlikely(cq->only->stale && stale(cq->only, cq->ci)))
		return 0;
	pi = READ_ONCE(own.view->pi);
	ci = own.view->ci;
	mask = own.view->mask;
	if (left < (u32)n)
		n = (int)left;
	for (i = 0; i < n; i++, e += 8, wc++) {
		u64 w0 = smp_load_acquire(e);
		u32 last;

		if ((w0 ^ form) & ~OWN_VARIES || (u32)e[1] != own.e1)
			break;
		last = ci + (((u32)(w0 >> 32) - ci) & mask);
		if (likely(last - ci < pi - ci))
			ci = last + 1;
		wc->user_data = own.user_data;
		wc->wqe = last;
		wc->byte_cnt = (u32)e[2];
		wc->status = 0;
		wc->queue = own.id;
		wc->flags = 0;
		wc->opcode = 0;
		wc->imm = 0;
		memset(&wc->rmt_eid, 0, sizeof(wc->rmt_eid));
		wc->model_ns = 0;
	}
	smp_store_release(&own.view->ci, ci); /* pairs with npuemu_used() */
	cq->ci += (u32)i;
	return i;
}

static int poll_any(struct npuemu_cq *cq, struct npuemu_wc *wc, int n)
{
	u32 ci = cq->ci, mask = cq->mask;
	struct npuemu_queue *q;
	int i;

	for (i = 0; i < n; i++, ci++) {
		const u64 *e = cq->ring + (size_t)(ci & mask) * 8;
		u64 w0 = smp_load_acquire(e);

		if (!!(w0 & NPUEMU_CQE_OWNER) == !!(ci & (mask + 1)))
			break;
		take(cq, e, w0, ci, &wc[i]);
		if (wc[i].flags)	/* receive, flush done: retire nothing */
			continue;
		q = cq->ctx->host->queue_by_id(cq->ctx, wc[i].queue);
		if (q && !stale(q, ci))
			retire(&q->view, &wc[i]);
	}
	cq->ci = ci;
	return i;
}

static int poll_some(struct npuemu_cq *cq, struct npuemu_wc *wc, int n)
{
	int i = poll_own(cq, wc, n);

	/* what is of another form behind them can wait for the next call */
	if (!i)
		i = poll_any(cq, wc, n);
	if (i) {
		smp_store_release(cq->ci_rec, cq->ci & 0xffffff);
		if (unlikely(READ_ONCE(cq->jfc.starved))) {
			/* not fenced: missed, a starved queue is looked at within 10 ms */
			cq->ctx->host->unstarve(cq);
		}
	}
	return i;
}

static int check(struct npuemu_cq *cq, const char *what)
{
	if (unlikely(!npuemu_slab_holds(&npuemu_cqs, cq, NPUEMU_SLAB_SIZE(*cq))))
		return npuemu_fail(-EBADF, "%s: not a completion queue, or it was destroyed", what);
	if (unlikely(READ_ONCE(cq->ctx->broken))) {
		if (READ_ONCE(cq->ctx->broken) == -EPERM)
			return npuemu_fail(-EPERM, "%s: the board was opened by process %d; after fork() the child must npuemu_open() again",
					   what, cq->ctx->pid);
		return npuemu_fail(-EUCLEAN, "%s: board \"%s\" was reset or is damaged", what,
				   cq->ctx->board);
	}
	return 0;
}

NPUEMU_API int npuemu_poll(struct npuemu_cq *cq, struct npuemu_wc *wc, int n)
{
	int err = check(cq, "npuemu_poll"), got;

	if (unlikely(err))
		return err;
	if (unlikely(n < 0 || (n && !wc)))
		return npuemu_fail(-EINVAL, "npuemu_poll: no room given");
	got = poll_some(cq, wc, n);
	if (likely(got) || !n || !cq->ctx->host->help(cq->ctx, cq))
		return got;
	return poll_some(cq, wc, n);
}

NPUEMU_API int npuemu_wait(struct npuemu_cq *cq, int64_t deadline_ns)
{
	int err = check(cq, "npuemu_wait");

	if (unlikely(err))
		return err;
	return npuemu_cq_ready(cq) ? 0 : cq->ctx->host->wait_cq(cq, deadline_ns);
}

NPUEMU_API int npuemu_wait_word(struct npuemu *ctx, const volatile uint64_t *word,
				enum npuemu_cmp cmp, uint64_t value, int64_t deadline_ns)
{
	int err = npuemu_check_worker(ctx, "npuemu_wait_word");

	if (err)
		return err;
	if (!word || (uintptr_t)word & 7 || (u32)cmp > NPUEMU_CMP_AND)
		return npuemu_fail(-EINVAL, "npuemu_wait_word: NULL or misaligned word, or no such comparison");
	return ctx->host->wait_word(ctx, word, cmp, value, deadline_ns);
}
