// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Making, changing and unmaking receive queues and send queues; npuemu_cq.c has the CQs.
 *
 * Each is complete before its id can be found, and is freed only after it
 * cannot be found any more and a grace period has passed.  Ids carry a
 * generation, so one of a destroyed queue does not hit its successor.
 */
#include <linux/delay.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/vmalloc.h>
#include "npuemu.h"

/* ---- Receive queues ----------------------------------------------------------------------- */

/* A free index of a table; ids carry a generation above it.  ctx->lock held. */
static int index_take(struct npuemu_ctx *ctx, struct xarray *table, u32 *index, u32 *id)
{
	int err = xa_alloc(table, index, NULL, XA_LIMIT(1, NPUEMU_CTX_QUEUES - 1),
			   GFP_KERNEL_ACCOUNT);

	if (err)
		return err == -EBUSY ? -ENOSPC : err;
	*id = (u32)(++ctx->queue_gen[*index]) << 12 | *index;
	return 0;
}

static void rq_free(struct npuemu_rq *rq)
{
	npuemu_ring_free(rq->ctx, &rq->mem);
	npuemu_record_give(rq->ctx, rq->record);
	kfree(rq);
	npuemu_leak(NPUEMU_LEAK_RQ, -1);
}

static int rq_setup(struct npuemu_ctx *ctx, struct npuemu_rq *rq,
		    const struct npuemu_ioc_rq_create *a)
{
	struct npuemu_jfr *j = &rq->jfr;
	int err;

	rq->ctx = ctx;
	rq->device = a->device;
	err = npuemu_record_take(ctx);
	if (err < 0)
		return err;
	rq->record = err;
	err = npuemu_ring_alloc(ctx, &rq->mem,
				(u64)a->depth * a->max_sge * sizeof(struct npuemu_sge));
	if (err) {
		npuemu_record_give(ctx, rq->record);
		return err;
	}
	j->ring = rq->mem.ptr;
	j->pi_rec = npuemu_record(ctx, rq->record, NPUEMU_REC_INDEX);
	j->ci_out = npuemu_record(ctx, rq->record, NPUEMU_REC_CONSUMED);
	j->mask = a->depth - 1;
	j->max_sge = a->max_sge;
	j->user_data = a->user_data;
	j->token = a->flags & NPUEMU_RQF_TOKEN;
	j->token_value = a->token_value;
	return 0;
}

static int rq_publish(struct npuemu_ctx *ctx, struct npuemu_rq *rq, struct npuemu_ioc_rq_create *a)
{
	struct npuemu_cq *cq = npuemu_cq_attach(ctx, a->cq);
	u32 index;
	int err;

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	err = index_take(ctx, &ctx->rqs, &index, &rq->id);
	if (err) {
		npuemu_cq_detach(cq);
		return err;
	}
	rq->cq = cq;
	rq->jfr.jfc = &cq->jfc;
	rq->jfr.id = rq->id;
	a->id = rq->id;
	a->record = rq->record;
	a->ring = rq->mem.at;
	npuemu_eid(ctx, a->device, a->eid);
	xa_store(&ctx->rqs, index, rq, 0); /* only now: it is complete */
	return 0;
}

int npuemu_ioc_rq_create(struct npuemu_file *f, struct npuemu_ioc_rq_create *a)
{
	struct npuemu_ctx *ctx = f->ctx;
	struct npuemu_rq *rq;
	int err;

	if (a->device >= npuemu_machine.devices || a->flags & ~NPUEMU_RQF_TOKEN ||
	    !npuemu_pow2_within(a->depth, NPUEMU_RQ_MIN, NPUEMU_RQ_MAX) ||
	    !npuemu_pow2_within(a->max_sge, 1, 8))
		return -EINVAL;
	if (a->flags & NPUEMU_RQF_TOKEN)
		a->token_value = npuemu_token_or_random(a->token_value);
	else if (a->token_value)	/* it would protect nothing */
		return -EINVAL;
	rq = kzalloc(sizeof(*rq), GFP_KERNEL_ACCOUNT);
	if (!rq)
		return -ENOMEM;
	mutex_lock(&ctx->lock);
	err = ctx->closing ? -ENODEV : rq_setup(ctx, rq, a);
	if (err) {
		mutex_unlock(&ctx->lock);
		kfree(rq);
		return err;
	}
	npuemu_leak(NPUEMU_LEAK_RQ, 1);
	err = rq_publish(ctx, rq, a);
	if (err)
		rq_free(rq);
	mutex_unlock(&ctx->lock);
	return err;
}

/* By id, ctx->lock held. */
static struct npuemu_rq *rq_find(struct npuemu_ctx *ctx, u32 id)
{
	struct npuemu_rq *rq = xa_load(&ctx->rqs, id & (NPUEMU_CTX_QUEUES - 1));

	return rq && rq->id == id ? rq : NULL;
}

int npuemu_ioc_rq_destroy(struct npuemu_file *f, struct npuemu_ioc_handle *a)
{
	struct npuemu_ctx *ctx = f->ctx;
	struct npuemu_rq *rq;
	int err = 0;

	if (a->pad)
		return -EINVAL;
	mutex_lock(&ctx->lock);
	rq = rq_find(ctx, a->handle);
	if (!rq)
		err = -ENOENT;
	else if (rq->users)
		err = -EBUSY;
	else
		xa_erase(&ctx->rqs, a->handle & (NPUEMU_CTX_QUEUES - 1));
	mutex_unlock(&ctx->lock);
	if (err)
		return err;
	npuemu_grace();
	mutex_lock(&ctx->lock);
	npuemu_cq_detach(rq->cq);
	rq_free(rq);
	mutex_unlock(&ctx->lock);
	return 0;
}

int npuemu_ioc_rq_query(struct npuemu_file *f, struct npuemu_ioc_rq_query *a)
{
	struct npuemu_ctx *ctx = f->ctx;
	struct npuemu_rq *rq;

	if (a->pad)
		return -EINVAL;
	mutex_lock(&ctx->lock);
	rq = rq_find(ctx, a->id);
	if (rq) {
		a->device = rq->device;
		a->depth = rq->jfr.mask + 1;
		a->posted = READ_ONCE(*rq->jfr.pi_rec);
		a->consumed = READ_ONCE(rq->jfr.ci);
		npuemu_eid(ctx, rq->device, a->eid);
	}
	mutex_unlock(&ctx->lock);
	return rq ? 0 : -ENOENT;
}

/* ---- Send queues ------------------------------------------------------------------------- */

static int queue_window(struct npuemu_queue *q)
{
	u64 seed = q->ctx->chip.chaos_seed;

	if (!seed)
		return 0;
	q->jfs.win = kvzalloc(sizeof(*q->jfs.win), GFP_KERNEL_ACCOUNT);
	if (!q->jfs.win)
		return -ENOMEM;
	q->jfs.win->rng = seed ^ (u64)q->jfs.id << 32;
	q->jfs.chaos = true;
	return 0;
}

void npuemu_queue_free(struct npuemu_queue *q)
{
	npuemu_pager_forget(q);
	npuemu_doorbell_exit(q);
	npuemu_ring_free(q->ctx, &q->mem);
	kvfree(q->jfs.fault);
	kvfree(q->jfs.many);
	kvfree(q->jfs.win);
	kvfree(q);
	npuemu_leak(NPUEMU_LEAK_QUEUE, -1);
}

static void queue_describe(struct npuemu_queue *q, const struct npuemu_ioc_queue_create *a)
{
	struct npuemu_jfs *j = &q->jfs;

	q->depth = a->depth;
	q->dev = &npuemu_devs[a->device];
	q->worker = &q->dev->worker[a->type];
	INIT_LIST_HEAD(&q->hot_node);
	j->mask = a->depth - 1;
	j->owner = &q->owner;
	j->chip = &q->ctx->chip;
	j->error_suspend = a->flags & NPUEMU_QF_ERROR_SUSPEND;
	j->cnt = &q->cnt;
	j->device = a->device;
	j->type = a->type;
	j->rnr_retry = a->rnr_retry;
	j->ack_timeout_ns = (a->ack_timeout_ms ?: 8000) * 1000000ull;
	j->user_data = a->user_data;
	j->cause = q->cause;
	j->host = q;
	j->link_to = a->device;
	j->raw = true;		/* device code may store direct WQEs at any time */
}

static int queue_publish(struct npuemu_ctx *ctx, struct npuemu_queue *q,
			 struct npuemu_ioc_queue_create *a)
{
	struct npuemu_rq *rq = NULL;
	struct npuemu_cq *cq;
	int err;

	if (a->rq) {
		rq = rq_find(ctx, a->rq);
		if (!rq)
			return -ENOENT;
	}
	cq = npuemu_cq_attach(ctx, a->cq);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	err = index_take(ctx, &ctx->queues, &q->index, &q->jfs.id);
	if (err)
		goto no_index;
	q->cq = cq;
	q->rq = rq;
	q->jfs.jfc = &cq->jfc;
	err = queue_window(q);
	if (err)
		goto no_window;
	err = npuemu_doorbell_init(q);
	if (err)
		goto no_window;
	npuemu_jfs_init(&q->jfs);
	if (rq)
		rq->users++;
	a->id = q->jfs.id;
	a->db_page = q->index;
	a->ring = q->mem.at;
	a->cq_pi = READ_ONCE(cq->jfc.pi);
	npuemu_eid(ctx, a->device, a->eid);
	xa_store(&ctx->queues, q->index, q, 0);	/* only now: it is complete */
	return 0;

no_window:
	xa_erase(&ctx->queues, q->index);
no_index:
	npuemu_cq_detach(cq);
	return err;
}

int npuemu_ioc_queue_create(struct npuemu_file *f, struct npuemu_ioc_queue_create *a)
{
	static const u32 kinds[] = { NPUEMU_ENGINE_UDMA, NPUEMU_ENGINE_SDMA };
	struct npuemu_ctx *ctx = f->ctx;
	struct npuemu_queue *q;
	int err, idx;

	if (a->device >= npuemu_machine.devices || a->type >= ARRAY_SIZE(kinds) || a->pad ||
	    a->flags & ~NPUEMU_QF_ERROR_SUSPEND || a->rnr_retry > 7 ||
	    !npuemu_pow2_within(a->depth, NPUEMU_SQ_MIN_BB, NPUEMU_SQ_MAX_BB))
		return -EINVAL;
	a->device = array_index_nospec(a->device, npuemu_machine.devices);
	a->type = array_index_nospec(a->type, ARRAY_SIZE(kinds));
	if (!npuemu_machine.engine[kinds[a->type]].present)
		return -EOPNOTSUPP;
	q = kvzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);
	if (!q)
		return -ENOMEM;
	npuemu_leak(NPUEMU_LEAK_QUEUE, 1);
	q->ctx = ctx;
	queue_describe(q, a);
	err = npuemu_ring_alloc(ctx, &q->mem, (u64)a->depth * NPUEMU_BB_SIZE);
	if (err)
		goto failed;
	q->jfs.ring = q->mem.ptr;
	/* also of a device that is not the file's */
	err = -ENODEV;
	if (!npuemu_dev_enter(q->dev, &idx))
		goto failed;
	mutex_lock(&ctx->lock);
	if (!ctx->closing && !ctx->broken)
		err = queue_publish(ctx, q, a);
	mutex_unlock(&ctx->lock);
	npuemu_dev_exit(q->dev, idx);
	if (!err)
		return 0;
failed:
	npuemu_queue_free(q);
	return err;
}

/* By id.  ctx->lock held, or in an npuemu_turns section. */
static struct npuemu_queue *queue_find(struct npuemu_ctx *ctx, u32 id)
{
	struct npuemu_queue *q = xa_load(&ctx->queues, id & (NPUEMU_CTX_QUEUES - 1));

	return q && q->jfs.id == id ? q : NULL;
}

int npuemu_queue_own(struct npuemu_queue *q)
{
	u64 end = ktime_get_ns() + (u64)NPUEMU_GRACE_MS * NSEC_PER_MSEC;
	u32 n;

	for (n = 0; !npuemu_owner_try(&q->owner); n++) {
		if (n < 16) {
			cond_resched();
			continue;
		}
		if (fatal_signal_pending(current))
			return -EINTR;
		if (ktime_get_ns() > end)
			return -ETIMEDOUT;
		usleep_range(20, 50);
	}
	return 0;
}

/* It cannot be found any more: stop it, let everybody leave, free it. */
static void queue_end(struct npuemu_ctx *ctx, struct npuemu_queue *q)
{
	npuemu_doorbell_kill(q);
	npuemu_grace();
	/* nobody is inside, and nobody can come: the owner word is ours */
	npuemu_jfs_modify(&q->jfs, NPUEMU_QS_RESET);
	mutex_lock(&ctx->lock);
	if (q->rq)
		q->rq->users--;
	npuemu_cq_detach(q->cq);
	xa_erase(&ctx->queues, q->index);
	npuemu_queue_free(q);
	mutex_unlock(&ctx->lock);
}

int npuemu_ioc_queue_destroy(struct npuemu_file *f, struct npuemu_ioc_handle *a)
{
	struct npuemu_ctx *ctx = f->ctx;
	struct npuemu_queue *q;

	if (a->pad)
		return -EINVAL;
	mutex_lock(&ctx->lock);
	q = queue_find(ctx, a->handle);
	if (q)	/* the slot stays taken until its doorbell page is gone */
		xa_store(&ctx->queues, q->index, XA_ZERO_ENTRY, 0);
	mutex_unlock(&ctx->lock);
	if (!q)
		return -ENOENT;
	queue_end(ctx, q);
	return 0;
}

int npuemu_ioc_queue_modify(struct npuemu_file *f, struct npuemu_ioc_queue_modify *a)
{
	int idx = srcu_read_lock(&npuemu_turns), err = -ENOENT;
	struct npuemu_queue *q = queue_find(f->ctx, a->id);
	u32 *db;

	if (!q)
		goto out;
	err = a->state > NPUEMU_QS_ERROR ? -EINVAL : npuemu_queue_own(q);
	/* it is only flushed any more, whatever state it is said to be in */
	if (!err && READ_ONCE(q->db_state) >= NPUEMU_DB_LOST) {
		npuemu_jfs_release(&q->jfs);
		err = -ENODEV;
	}
	if (err)
		goto out;
	a->was = q->jfs.state;
	err = npuemu_jfs_modify(&q->jfs, a->state);
	if (!err && a->state == NPUEMU_QS_RESET) {
		db = page_address(q->db_page);
		WRITE_ONCE(db[NPUEMU_DB_DWQE / 4], 0);
		WRITE_ONCE(db[NPUEMU_DB_PI / 4], 0);
	}
	a->cq_pi = READ_ONCE(q->cq->jfc.pi);
	/* still owned: news of a parked queue that nobody owns is the watchdog's */
	if (!err) {
		mutex_lock(&q->db_lock);
		npuemu_heat(q);
		mutex_unlock(&q->db_lock);
	}
	npuemu_jfs_release(&q->jfs);
	npuemu_worker_kick(q->worker);	/* it may have come while we had it */
out:
	srcu_read_unlock(&npuemu_turns, idx);
	return err;
}

void npuemu_counters_add(const struct npuemu_jfs_counters *c, struct npuemu_ioc_counters *out)
{
	out->wqes += READ_ONCE(c->wqes);
	out->cqes += READ_ONCE(c->cqes);
	out->bytes += READ_ONCE(c->bytes);
	out->doorbells += READ_ONCE(c->doorbells);
	out->errors += READ_ONCE(c->errors);
	out->flushed += READ_ONCE(c->flushed);
	out->helped += READ_ONCE(c->helped);
	out->faults += READ_ONCE(c->faults);
	out->rnr += READ_ONCE(c->rnr);
}

void npuemu_queue_stat(struct npuemu_queue *q, struct npuemu_ioc_queue_query *out)
{
	memset(out, 0, sizeof(*out));
	out->id = q->jfs.id;
	out->device = q->jfs.device;
	out->type = q->jfs.type;
	out->state = READ_ONCE(q->jfs.state);
	out->pi = READ_ONCE(q->jfs.pi);
	out->ci = READ_ONCE(q->jfs.ci);
	out->depth = q->depth;
	out->last_status = READ_ONCE(q->jfs.last_status);
	npuemu_counters_add(&q->cnt, &out->cnt);
	/* it may be written just now; strscpy ends it in any case */
	strscpy(out->cause, q->cause, sizeof(out->cause));
}

int npuemu_ioc_queue_query(struct npuemu_file *f, struct npuemu_ioc_queue_query *a)
{
	int idx = srcu_read_lock(&npuemu_turns), err = 0;
	struct npuemu_queue *q = queue_find(f->ctx, a->id);

	if (a->pad)
		err = -EINVAL;
	else if (!q)
		err = -ENOENT;
	else
		npuemu_queue_stat(q, a);
	srcu_read_unlock(&npuemu_turns, idx);
	return err;
}

/* ---- The end of a context, or of a device ------------------------------------------------ */

/*
 * ERROR, and what is outstanding is flushed: a ring full of WQEs, but not for as
 * long as user space goes on posting, nor until it makes room in the CQ.  For that
 * there is the worker, which also ends it.  In an npuemu_turns section.
 */
static void queue_lose(struct npuemu_queue *q)
{
	u32 n = q->depth / NPUEMU_TURN_WQES + 2;
	bool more = true, waiting = false;

	/* first: what is flushed here must not look like a doorbell that was missed */
	npuemu_doorbell_lose(q);
	/* owned for each turn, not tried: when we return no turn does anything but flush */
	for (; n && more && !waiting && !npuemu_queue_own(q); n--) {
		npuemu_jfs_modify(&q->jfs, NPUEMU_QS_ERROR);
		more = npuemu_jfs_turn(&q->jfs, false, &waiting);
		WRITE_ONCE(q->waits, waiting);
		npuemu_jfs_release(&q->jfs);
		cond_resched();
	}
}

void npuemu_queues_kill(struct npuemu_ctx *ctx, struct npuemu_dev *dev)
{
	struct npuemu_queue *q;
	unsigned long i;
	int idx;

	/* a section for each: every grace period waits for us */
	for (i = 0;; i++) {
		idx = srcu_read_lock(&npuemu_turns);
		q = xa_find(&ctx->queues, &i, ULONG_MAX, XA_PRESENT);
		if (q && (!dev || q->dev == dev))
			queue_lose(q);
		srcu_read_unlock(&npuemu_turns, idx);
		if (!q)
			break;
	}
	wake_up_all(&ctx->bell);
}

/*
 * The files are closed and the life word has ended: whoever is still inside
 * came before that.
 */
void npuemu_queues_drop(struct npuemu_ctx *ctx)
{
	struct npuemu_queue *q, *next;
	struct npuemu_cq *cq;
	struct npuemu_rq *rq;
	unsigned long i;
	LIST_HEAD(gone);

	mutex_lock(&ctx->lock);
	xa_for_each(&ctx->queues, i, q) {
		xa_erase(&ctx->queues, i);
		npuemu_doorbell_kill(q);	/* off the hot list: its node is free */
		list_add(&q->hot_node, &gone);
	}
	mutex_unlock(&ctx->lock);
	npuemu_grace();
	list_for_each_entry_safe(q, next, &gone, hot_node) {
		npuemu_jfs_modify(&q->jfs, NPUEMU_QS_RESET);
		npuemu_queue_free(q);
	}
	xa_for_each(&ctx->rqs, i, rq) {
		xa_erase(&ctx->rqs, i);
		rq_free(rq);
	}
	xa_for_each(&ctx->cqs, i, cq) {
		xa_erase(&ctx->cqs, i);
		npuemu_cq_free(cq);
	}
}
