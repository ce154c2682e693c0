// SPDX-License-Identifier: MIT
/* The public API: completion queues, receive queues, send queues. */
#include "check.h"

static bool is_pow2(u32 v)
{
	return v && !(v & (v - 1));
}

/* ---- Queues -------------------------------------------------------------------------------- */

static int cq_new(struct npuemu *ctx, u32 depth, u32 flags, struct npuemu_cq **out)
{
	struct npuemu_cq *cq = npuemu_new_obj(&npuemu_cqs);
	bool timed = flags & NPUEMU_CQ_TIMED || npuemu_env_flag("NPUEMU_TIME");
	int err;

	if (!cq)
		return -ENOMEM;
	cq->ctx = ctx;
	cq->shared = flags & NPUEMU_CQ_SHARED;
	cq->own_form.e0 = ~0ull;	/* no entry looks like that */
	err = ctx->host->cq_create(cq, depth, timed);
	if (err) {
		npuemu_slab_free(&npuemu_cqs, cq);
		return err;
	}
	*out = cq;
	return 0;
}

NPUEMU_API int npuemu_cq_create(struct npuemu *ctx, const struct npuemu_cq_attr *attr,
				struct npuemu_cq **out)
{
	int err = npuemu_check_worker(ctx, "npuemu_cq_create");

	if (!err)
		err = CHECK_STRUCT(attr, "npuemu_cq_create");
	if (err)
		return err;
	if (!out || attr->reserved || attr->flags & ~(NPUEMU_CQ_TIMED | NPUEMU_CQ_SHARED))
		return npuemu_fail(-EINVAL, "npuemu_cq_create: NULL argument, unknown flags or reserved field not 0");
	if (!is_pow2(attr->depth) || attr->depth < NPUEMU_CQ_MIN || attr->depth > NPUEMU_CQ_MAX)
		return npuemu_fail(-EINVAL, "npuemu_cq_create: depth %u is not a power of two from %u to %u",
				   attr->depth, NPUEMU_CQ_MIN, NPUEMU_CQ_MAX);
	err = cq_new(ctx, attr->depth, attr->flags, out);
	if (!err)
		npuemu_slab_publish(&npuemu_cqs, *out);
	return err;
}

static void cq_free(struct npuemu_cq *cq)
{
	cq->ctx->host->cq_destroy(cq);
	npuemu_slab_free(&npuemu_cqs, cq);
}

NPUEMU_API int npuemu_cq_destroy(struct npuemu_cq *cq)
{
	int err = CHECK_OBJ(npuemu_cqs, cq, "npuemu_cq_destroy");

	if (err)
		return err;
	if (READ_ONCE(cq->users) || cq->own)
		return npuemu_fail(-EBUSY, "npuemu_cq_destroy: %s",
				   cq->own ? "it belongs to its queue and goes with it" :
				   "queues or receive queues still use it");
	if (!npuemu_slab_retire(&npuemu_cqs, cq))
		return npuemu_fail(-EBADF, "npuemu_cq_destroy: done by another thread just now");
	cq_free(cq);
	return 0;
}

/* One more user; the second needs a CQ made for it. */
static int cq_attach(struct npuemu_cq *cq, struct npuemu *ctx, const char *what)
{
	int err = CHECK_OBJ(npuemu_cqs, cq, what);

	if (err)
		return err;
	if (cq->ctx != ctx)
		return npuemu_fail(-EINVAL, "%s: the CQ is of another board", what);
	if (npuemu_fetch_add(&cq->users, 1) && !cq->shared) {
		npuemu_fetch_add(&cq->users, -1u);
		return npuemu_fail(-EBUSY, "%s: the CQ has a user already: make it with NPUEMU_CQ_SHARED",
				   what);
	}
	return 0;
}

NPUEMU_API int npuemu_rq_create(struct npuemu *ctx, const struct npuemu_rq_attr *attr,
				struct npuemu_rq **out)
{
	int err = npuemu_check_worker(ctx, "npuemu_rq_create");
	struct npuemu_rq *rq;

	if (!err)
		err = CHECK_STRUCT(attr, "npuemu_rq_create");
	if (!err && (!out || !attr->cq))
		err = npuemu_fail(-EINVAL, "npuemu_rq_create: NULL argument");
	if (!err)
		err = npuemu_check_device(ctx, attr->device, "npuemu_rq_create");
	if (err)
		return err;
	if (!is_pow2(attr->depth) || attr->depth < NPUEMU_RQ_MIN || attr->depth > NPUEMU_RQ_MAX ||
	    (attr->max_sge && (!is_pow2(attr->max_sge) || attr->max_sge > 8)))
		return npuemu_fail(-EINVAL, "npuemu_rq_create: depth %u (a power of two from %u to %u) or max_sge %u (1, 2, 4, 8)",
				   attr->depth, NPUEMU_RQ_MIN, NPUEMU_RQ_MAX, attr->max_sge);
	if (attr->flags & ~NPUEMU_RQ_TOKEN || (attr->token_value && !attr->flags))
		return npuemu_fail(-EINVAL, "npuemu_rq_create: unknown flags %#x, or a token value without NPUEMU_RQ_TOKEN",
				   attr->flags);
	err = cq_attach(attr->cq, ctx, "npuemu_rq_create");
	if (err)
		return err;
	rq = npuemu_new_obj(&npuemu_rqs);
	if (rq) {
		rq->ctx = ctx;
		rq->cq = attr->cq;
		err = ctx->host->rq_create(rq, attr);
		if (!err) {
			npuemu_slab_publish(&npuemu_rqs, rq);
			*out = rq;
			return 0;
		}
		npuemu_slab_free(&npuemu_rqs, rq);
	}
	npuemu_fetch_add(&attr->cq->users, -1u);
	return rq ? err : -ENOMEM;
}

NPUEMU_API int npuemu_rq_destroy(struct npuemu_rq *rq)
{
	int err = CHECK_OBJ(npuemu_rqs, rq, "npuemu_rq_destroy");

	if (err)
		return err;
	if (READ_ONCE(rq->users))
		return npuemu_fail(-EBUSY, "npuemu_rq_destroy: a queue still names it");
	if (!npuemu_slab_retire(&npuemu_rqs, rq))
		return npuemu_fail(-EBADF, "npuemu_rq_destroy: done by another thread just now");
	err = rq->ctx->host->rq_destroy(rq);
	if (err)
		return err;	/* stuck: it stays, and so does its CQ */
	npuemu_fetch_add(&rq->cq->users, -1u);
	npuemu_slab_free(&npuemu_rqs, rq);
	return 0;
}

NPUEMU_API int npuemu_rq_query(struct npuemu_rq *rq, struct npuemu_rq_info *info)
{
	int err = CHECK_OBJ(npuemu_rqs, rq, "npuemu_rq_query");

	if (!err)
		err = CHECK_STRUCT(info, "npuemu_rq_query");
	if (err)
		return err;
	info->flags = rq->jfr.token ? NPUEMU_RQ_TOKEN : 0;
	info->token_value = rq->jfr.token_value;
	return rq->ctx->host->rq_query(rq, info);
}

NPUEMU_API int npuemu_post_recv(struct npuemu_rq *rq, const struct npuemu_sge *sge, uint32_t n)
{
	int err = CHECK_OBJ(npuemu_rqs, rq, "npuemu_post_recv");
	u32 i;

	if (err)
		return err;
	if (n > rq->jfr.max_sge || (n && !sge))
		return npuemu_fail(-EINVAL, "npuemu_post_recv: %u SGEs, the queue takes %u", n,
				   rq->jfr.max_sge);
	if (rq->pi - smp_load_acquire(rq->consumed) > rq->jfr.mask)
		return -EAGAIN;
	for (i = 0; i < rq->jfr.max_sge; i++) {
		struct npuemu_sge *e = &rq->ring[(size_t)(rq->pi & rq->jfr.mask) * rq->jfr.max_sge + i];
		struct npuemu_sge s = { 0 };

		if (i < n)
			s = sge[i];
		WRITE_ONCE(*(u64 *)(void *)e, (u64)s.token_id << 32 | s.len);
		WRITE_ONCE(e->va, s.va);
	}
	smp_store_release(rq->pi_rec, ++rq->pi);
	return 0;
}

static int queue_check(struct npuemu *ctx, const struct npuemu_queue_attr *a)
{
	int err = npuemu_check_device(ctx, a->device, "npuemu_queue_create");

	if (err)
		return err;
	if (a->flags || a->type > NPUEMU_QUEUE_SDMA || a->rnr_retry > 7 || a->error_suspend > 1)
		return npuemu_fail(-EINVAL, "npuemu_queue_create: flags must be 0, type UDMA or SDMA, rnr_retry 0..7, error_suspend 0 or 1");
	if (!is_pow2(a->depth) || a->depth < NPUEMU_SQ_MIN_BB || a->depth > NPUEMU_SQ_MAX_BB)
		return npuemu_fail(-EINVAL, "npuemu_queue_create: depth %u is not a power of two from %u to %u basic blocks",
				   a->depth, NPUEMU_SQ_MIN_BB, NPUEMU_SQ_MAX_BB);
	if (a->rq) {
		err = CHECK_OBJ(npuemu_rqs, a->rq, "npuemu_queue_create");
		if (!err && a->rq->ctx != ctx)
			err = npuemu_fail(-EINVAL, "npuemu_queue_create: the RQ is of another board");
	}
	return err;
}

/* The CQ of a new queue: the one given, or one with room for everything. */
static int queue_cq(struct npuemu *ctx, const struct npuemu_queue_attr *a, struct npuemu_cq **cq)
{
	int err;

	if (a->cq) {
		*cq = a->cq;
		return cq_attach(a->cq, ctx, "npuemu_queue_create");
	}
	/* every WQE may complete, and the flush-done entry comes on top */
	err = cq_new(ctx, a->depth * 2, 0, cq);
	if (err)
		return err;
	(*cq)->own = true;
	(*cq)->users = 1;
	npuemu_slab_publish(&npuemu_cqs, *cq);
	return 0;
}

static void queue_cq_drop(struct npuemu_cq *cq)
{
	npuemu_fetch_add(&cq->users, -1u);
	if (cq->own && npuemu_slab_retire(&npuemu_cqs, cq))
		cq_free(cq);
}

NPUEMU_API int npuemu_queue_create(struct npuemu *ctx, const struct npuemu_queue_attr *attr,
				   struct npuemu_queue **out)
{
	int err = npuemu_check_worker(ctx, "npuemu_queue_create");
	struct npuemu_queue *q;
	struct npuemu_cq *cq;

	if (!err)
		err = CHECK_STRUCT(attr, "npuemu_queue_create");
	if (!err && !out)
		err = npuemu_fail(-EINVAL, "npuemu_queue_create: NULL argument");
	if (!err)
		err = queue_check(ctx, attr);
	if (!err)
		err = queue_cq(ctx, attr, &cq);
	if (err)
		return err;
	q = npuemu_new_obj(&npuemu_queues);
	if (!q) {
		queue_cq_drop(cq);
		return -ENOMEM;
	}
	q->ctx = ctx;
	q->cq = cq;
	q->rq = attr->rq;
	if (!cq->shared)
		cq->only = q;
	err = ctx->host->queue_create(q, attr);
	if (!err && !cq->shared && !cq->times)
		cq->own_form = (struct npuemu_cq_own){
			q->jfs.cqe_fixed[0], (u32)q->jfs.cqe_fixed[1], q->jfs.id,
			q->jfs.user_data, &q->view,
		};
	if (err) {
		cq->only = NULL;
		queue_cq_drop(cq);
		npuemu_slab_free(&npuemu_queues, q);
		return err;
	}
	if (q->rq)
		npuemu_fetch_add(&q->rq->users, 1);
	npuemu_slab_publish(&npuemu_queues, q);
	*out = q;
	return 0;
}

NPUEMU_API int npuemu_queue_destroy(struct npuemu_queue *q)
{
	struct npuemu_cq *cq;
	int err;

	err = CHECK_HANDLE(npuemu_queues, q, "npuemu_queue_destroy");
	if (err)
		return err;
	if (!npuemu_slab_retire(&npuemu_queues, q))
		return npuemu_fail(-EBADF, "npuemu_queue_destroy: done by another thread just now");
	cq = q->cq;
	err = q->ctx->host->queue_destroy(q);
	if (err)
		return err;	/* stuck: neither the queue nor its CQ can go */
	cq->only = NULL;
	cq->own_form.e0 = ~0ull;
	queue_cq_drop(cq);
	if (q->rq)
		npuemu_fetch_add(&q->rq->users, -1u);
	npuemu_slab_free(&npuemu_queues, q);
	return 0;
}

NPUEMU_API struct npuemu_cq *npuemu_queue_cq(struct npuemu_queue *q)
{
	return CHECK_HANDLE(npuemu_queues, q, "npuemu_queue_cq") ? NULL : q->cq;
}

NPUEMU_API int npuemu_queue_modify(struct npuemu_queue *q, enum npuemu_queue_state state)
{
	int err = CHECK_OBJ(npuemu_queues, q, "npuemu_queue_modify");

	if (!err && (u32)state > NPUEMU_QS_ERROR)
		err = npuemu_fail(-EINVAL, "npuemu_queue_modify: no state %u", (u32)state);
	return err ? err : q->ctx->host->queue_modify(q, state);
}

NPUEMU_API int npuemu_queue_map(struct npuemu_queue *q, struct npuemu_queue_map *map)
{
	int err = CHECK_OBJ(npuemu_queues, q, "npuemu_queue_map");

	if (!err)
		err = CHECK_STRUCT(map, "npuemu_queue_map");
	return err ? err : q->ctx->host->queue_map(q, map);
}

NPUEMU_API int npuemu_queue_query(struct npuemu_queue *q, struct npuemu_queue_stat *stat)
{
	int err = CHECK_OBJ(npuemu_queues, q, "npuemu_queue_query");

	if (!err)
		err = CHECK_STRUCT(stat, "npuemu_queue_query");
	return err ? err : q->ctx->host->queue_query(q, stat);
}

static inline int doorbell(struct npuemu_queue *q, bool through)
{
	/* the hot path: the handle, and whether the board still stands */
	if (unlikely(!npuemu_slab_holds(&npuemu_queues, q, NPUEMU_SLAB_SIZE(*q))))
		return npuemu_fail(-EBADF, "npuemu_doorbell: not a queue, or it was destroyed");
	if (unlikely(READ_ONCE(q->ctx->broken)))
		return npuemu_check_whole(q->ctx, "npuemu_doorbell");
	return q->ctx->host->doorbell(q, through);
}

NPUEMU_API int npuemu_doorbell(struct npuemu_queue *q)
{
	return doorbell(q, false);
}

int npuemu_doorbell_through(struct npuemu_queue *q)
{
	return doorbell(q, true);
}
