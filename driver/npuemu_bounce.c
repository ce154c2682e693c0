// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Pageable host memory, as a queue sees it: bounce buffers that it asks for, finds
 * full, and has written out.  Everything here happens in a turn of the queue,
 * by its owner, and nothing waits.
 */
#include "npuemu_pager.h"

/* ---- Pairs ------------------------------------------------------------------------ */

static void bounce_free(struct kref *ref)
{
	struct npuemu_bounce *b = container_of(ref, struct npuemu_bounce, ref);

	kvfree(b->buf[0].mem);
	kvfree(b->buf[1].mem);
	npuemu_pager_put(b->pager);
	kfree(b);
}

void npuemu_bounce_put(struct npuemu_bounce *b)
{
	kref_put(&b->ref, bounce_free);
}

static struct npuemu_ctx *ctx_of(struct npuemu_jfs *q)
{
	return container_of(q->chip, struct npuemu_ctx, chip);
}

/* NULL: the inbox of a context. */
static struct npuemu_queue *queue_of(struct npuemu_jfs *q)
{
	return q == &ctx_of(q)->inbox ? NULL : container_of(q, struct npuemu_queue, jfs);
}

/* Where a queue keeps its pair; only its owner looks there. */
static struct npuemu_bounce **pair_of(struct npuemu_jfs *q)
{
	struct npuemu_queue *queue = queue_of(q);

	return queue ? &queue->bounce : &ctx_of(q)->inbox_bounce;
}

/* In a turn: the buffers come later, from the copier. */
static struct npuemu_bounce *pair_make(struct npuemu_jfs *q)
{
	struct npuemu_bounce **at = pair_of(q), *b = *at;
	struct npuemu_pager *p;
	u32 i;

	if (b)
		return b;
	/* pairs with npuemu_pager_start(); it stays until this turn ends */
	p = smp_load_acquire(&ctx_of(q)->pager);
	if (!p)
		return NULL;
	b = kzalloc(sizeof(*b), GFP_KERNEL_ACCOUNT);
	if (!b)
		return NULL;
	kref_init(&b->ref);
	kref_get(&p->ref);
	b->pager = p;
	b->queue = queue_of(q);
	for (i = 0; i < ARRAY_SIZE(b->buf); i++) {
		b->buf[i].bounce = b;
		INIT_LIST_HEAD(&b->buf[i].node);
	}
	*at = b;
	return b;
}

/* ---- Requests; pager->lock held ------------------------------------------------------- */

static void waits(struct npuemu_bounce *b)
{
	if (b->queue)
		WRITE_ONCE(b->queue->pages, true);
}

void npuemu_bounce_tell(struct npuemu_bounce *b)
{
	if (b->queue) {
		WRITE_ONCE(b->queue->pages, false);
		WRITE_ONCE(b->queue->waits, false);
	}
	if (b->worker)
		npuemu_worker_kick(b->worker);
}

static void submit(struct npuemu_jfs *q, struct npuemu_page_buf *buf, bool out)
{
	struct npuemu_bounce *b = buf->bounce;

	b->worker = b->queue ? b->queue->worker : ctx_of(q)->inbox_worker;
	buf->out = out;
	buf->slow = false;
	buf->abandoned = false;
	buf->state = NPUEMU_PAGE_WANT;
	list_add_tail(&buf->node, &b->pager->asked);
	waits(b);
	wake_up(&b->pager->wait);
}

/* How much of [va, +len) is held, in whole units of 16 unless it is all. */
static u64 held(const struct npuemu_page_buf *buf, u64 va, u64 len)
{
	u64 end = buf->r[0].va + buf->r[0].len;

	if (buf->gathered || va - buf->r[0].va >= buf->r[0].len)
		return 0;
	if (len <= end - va)
		return len;
	end &= ~15ull;
	return end > va && end - va >= 16 ? end - va : 0;
}

enum answer {
	IS_THERE,
	COMES,
	COMES_NOT,
};

static bool for_wqe(const struct npuemu_jfs *q, const struct npuemu_wqe *w,
		    const struct npuemu_page_buf *buf)
{
	return buf->first == w->first && buf->retired == q->cnt->wqes;
}

/* Begin a request: at once if it is only for a buffer, and there is one. */
static enum answer ask(struct npuemu_jfs *q, struct npuemu_wqe *w, struct npuemu_page_buf *buf,
		       const struct npuemu_range *r, u32 nr, bool gathered, bool fill)
{
	buf->first = w->first;
	buf->retired = q->cnt->wqes;
	buf->gathered = gathered;
	buf->fill = fill;
	buf->nr = nr;
	memcpy(buf->r, r, nr * sizeof(*r));
	if (!fill && buf->mem) {
		buf->state = NPUEMU_PAGE_FULL;
		return IS_THERE;
	}
	submit(q, buf, false);
	return COMES;
}

/* Is it under way, or has it failed?  IS_THERE: neither. */
static enum answer look(const struct npuemu_jfs *q, const struct npuemu_wqe *w,
			struct npuemu_page_buf *buf)
{
	if (buf->bounce->pager->dead)
		return COMES_NOT;
	if (buf->state == NPUEMU_PAGE_WANT || buf->state == NPUEMU_PAGE_BUSY) {
		waits(buf->bounce);
		return COMES;
	}
	if (buf->state == NPUEMU_PAGE_FAILED) {
		buf->state = NPUEMU_PAGE_IDLE;
		if (for_wqe(q, w, buf))
			return COMES_NOT;
	}
	return IS_THERE;
}

/* ---- Operations of the engine ----------------------------------------------------------- */

static void *answered(struct npuemu_jfs *q, struct npuemu_wqe *w, enum answer a, u64 va, u8 *ptr)
{
	if (a == IS_THERE)
		return ptr;
	if (a == COMES) {
		w->paging = true;
		return NULL;
	}
	q->chip->ops->explain(q, "WQE at block %u: host memory at %#llx cannot be reached",
			      w->first, va);
	w->status = NPUEMU_ST_LOC_ACCESS;
	return NULL;
}

static void *no_pair(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	q->chip->ops->explain(q, "WQE at block %u: no memory for bounce buffers", w->first);
	w->status = NPUEMU_ST_LOC_ACCESS;
	return NULL;
}

u8 *npuemu_op_page(struct npuemu_jfs *q, struct npuemu_wqe *w, u64 va, u64 *len, bool write,
		   bool fill)
{
	struct npuemu_bounce *b = pair_make(q);
	struct npuemu_range r = { .va = va };
	struct npuemu_page_buf *buf;
	enum answer a;
	u8 *ptr = NULL;
	u64 n = 0;

	if (!b)
		return no_pair(q, w);
	buf = &b->buf[write];
	/* the end of a full buffer is a multiple of 16 */
	r.len = min_t(u64, *len, NPUEMU_BOUNCE_BYTES - (va & 15));
	spin_lock(&b->pager->lock);
	a = look(q, w, buf);
	if (a == IS_THERE) {
		if (buf->state == NPUEMU_PAGE_FULL && for_wqe(q, w, buf) && (buf->fill || !fill))
			n = held(buf, va, *len);
		if (!n) {
			a = ask(q, w, buf, &r, 1, false, fill);
			n = r.len;
		}
	}
	if (a == IS_THERE) {
		ptr = buf->mem + npuemu_page_at(buf, va);
		*len = n;
	}
	spin_unlock(&b->pager->lock);
	return answered(q, w, a, va, ptr);
}

static bool same_ranges(const struct npuemu_page_buf *buf, const struct npuemu_range *r, u32 nr)
{
	return buf->gathered && buf->nr == nr && !memcmp(buf->r, r, nr * sizeof(*r));
}

const u8 *npuemu_pager_gather(struct npuemu_jfs *q, struct npuemu_wqe *w,
			      const struct npuemu_range *r, u32 nr)
{
	struct npuemu_bounce *b = pair_make(q);
	struct npuemu_page_buf *buf;
	enum answer a;
	u8 *ptr = NULL;

	if (!b)
		return no_pair(q, w);
	buf = &b->buf[0];
	spin_lock(&b->pager->lock);
	a = look(q, w, buf);
	if (a == IS_THERE) {
		if (buf->state == NPUEMU_PAGE_FULL && for_wqe(q, w, buf) && same_ranges(buf, r, nr))
			ptr = buf->mem;
		else
			a = ask(q, w, buf, r, nr, true, true);
	}
	spin_unlock(&b->pager->lock);
	return answered(q, w, a, r->va, ptr);
}

/*
 * Is it still host memory that may be written?  It may have been unmapped since;
 * or pinned, if it was part of NPUEMU_VA_REST: what it was is as good.
 */
static bool out_allowed(struct npuemu_jfs *q, const struct npuemu_wqe *w)
{
	struct npuemu_local l;

	return !npuemu_op_local(q->chip, w->page_va, w->page_len, &l) && !l.arena && !l.readonly;
}

static enum answer write_out(struct npuemu_jfs *q, struct npuemu_wqe *w,
			     struct npuemu_page_buf *buf, bool allowed)
{
	enum answer a = look(q, w, buf);

	if (a != IS_THERE)
		return a;
	if (buf->state == NPUEMU_PAGE_WRITTEN) {
		buf->state = NPUEMU_PAGE_IDLE;
		return IS_THERE;
	}
	if (!allowed || buf->state != NPUEMU_PAGE_FULL || !w->page_len ||
	    held(buf, w->page_va, w->page_len) != w->page_len)
		return COMES_NOT;
	buf->out_va = w->page_va;
	buf->out_len = w->page_len;
	submit(q, buf, true);
	return COMES;
}

enum npuemu_step npuemu_op_page_out(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	struct npuemu_bounce *b = *pair_of(q);
	enum answer a = COMES_NOT;
	bool allowed;

	if (b) {
		allowed = out_allowed(q, w);
		spin_lock(&b->pager->lock);
		a = write_out(q, w, &b->buf[1], allowed);
		spin_unlock(&b->pager->lock);
	}
	if (a == COMES)
		return NPUEMU_STEP_WAIT;
	w->page_dirty = false;
	if (a == COMES_NOT)
		answered(q, w, a, w->page_va, NULL);
	return NPUEMU_STEP_DONE;
}

void npuemu_bounce_forget(struct npuemu_bounce **at, bool whole)
{
	struct npuemu_bounce *b = *at;
	struct npuemu_pager *p;
	bool busy = false;
	u32 i;

	if (!b)
		return;
	p = b->pager;
	spin_lock(&p->lock);
	for (i = 0; i < ARRAY_SIZE(b->buf); i++) {
		if (b->buf[i].state == NPUEMU_PAGE_BUSY) {
			WRITE_ONCE(b->buf[i].abandoned, true);
			busy = true;
			continue;
		}
		list_del_init(&b->buf[i].node);
		b->buf[i].state = NPUEMU_PAGE_IDLE;
	}
	if (b->queue)
		WRITE_ONCE(b->queue->pages, false);
	if (busy || whole) {
		b->orphan = true;
		b->queue = NULL;
		b->worker = NULL;
		*at = NULL;
	}
	spin_unlock(&p->lock);
	if (busy)
		npuemu_pager_interrupt(p);
	if (busy || whole)
		npuemu_bounce_put(b);
}

void npuemu_op_page_cancel(struct npuemu_jfs *q)
{
	npuemu_bounce_forget(pair_of(q), false);
}

void npuemu_pager_forget(struct npuemu_queue *q)
{
	npuemu_bounce_forget(&q->bounce, true);
}
