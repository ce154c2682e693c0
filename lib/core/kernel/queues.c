// SPDX-License-Identifier: MIT
/*
 * Completion, receive and send queues.  The driver makes them; what is shared
 * with it lies in the three windows.  Of the engine's own structs that the
 * handles hold only what the common code reads is filled in: ids, masks and
 * the form of a completion.  How far a queue has got, the driver says.
 */
#include <stdio.h>
#include <stdlib.h>
#include "kernel.h"

#define INDEX(id)	((id) & (NPUEMU_CTX_QUEUES - 1))

/* ---- Completion queues ----------------------------------------------------------- */

int npuemu_k_cq_create(struct npuemu_cq *cq, u32 depth, bool timed)
{
	struct npuemu_kernel *k = npuemu_kernel_of(cq->ctx);
	struct npuemu_ioc_cq_create a = {
		.depth = depth,
		.flags = (timed ? NPUEMU_CQF_TIMED : 0) | (cq->shared ? NPUEMU_CQF_SHARED : 0),
	};
	int err = npuemu_k_ioctl(k->home, NPUEMU_IOC_CQ_CREATE, &a);

	if (err == -ENOSPC)
		return npuemu_fail(err, "no room for another completion queue of %u entries in this process",
				   depth);
	if (err)
		return npuemu_k_failed(cq->ctx, err, "cannot make a completion queue of %u entries",
				       depth);
	cq->handle = a.handle;
	cq->mask = depth - 1;
	cq->ring = (const u64 *)(void *)(k->rings + a.ring);
	cq->times = timed ? (u64 *)(void *)(k->rings + a.times) : NULL;
	cq->ci_rec = npuemu_k_record(k, a.record, NPUEMU_REC_INDEX);
	return 0;
}

void npuemu_k_cq_destroy(struct npuemu_cq *cq)
{
	struct npuemu_kernel *k = npuemu_kernel_of(cq->ctx);
	struct npuemu_ioc_handle a = { .handle = cq->handle };
	int err = npuemu_k_ioctl(k->home, NPUEMU_IOC_CQ_DESTROY, &a);

	if (err && err != -ENODEV)
		npuemu_log(NPUEMU_LOG_WARN, "completion queue %u stays until the board is closed: %s",
			   cq->handle, strerror(-err));
}

/* ---- Receive queues ---------------------------------------------------------------- */

int npuemu_k_rq_create(struct npuemu_rq *rq, const struct npuemu_rq_attr *attr)
{
	struct npuemu_kernel *k = npuemu_kernel_of(rq->ctx);
	struct npuemu_ioc_rq_create a = {
		.device = attr->device,
		.depth = attr->depth,
		.max_sge = attr->max_sge ? attr->max_sge : 1,
		.cq = rq->cq->handle,
		.user_data = attr->user_data,
		.flags = attr->flags & NPUEMU_RQ_TOKEN ? NPUEMU_RQF_TOKEN : 0,
		.token_value = attr->token_value,
	};
	int fd = npuemu_k_device(k, attr->device), err;

	if (fd < 0)
		return fd;
	err = npuemu_k_ioctl(k->home, NPUEMU_IOC_RQ_CREATE, &a);
	if (err == -ENOSPC)
		return npuemu_fail(err, "no room for another receive queue in this process");
	if (err)
		return npuemu_k_failed(rq->ctx, err, "cannot make a receive queue on device %u",
				       attr->device);
	rq->index = INDEX(a.id);
	rq->device = attr->device;
	rq->ring = (void *)(k->rings + a.ring);
	rq->pi_rec = npuemu_k_record(k, a.record, NPUEMU_REC_INDEX);
	rq->consumed = npuemu_k_record(k, a.record, NPUEMU_REC_CONSUMED);
	rq->jfr.id = a.id;
	rq->jfr.mask = attr->depth - 1;
	rq->jfr.max_sge = a.max_sge;
	rq->jfr.token = attr->flags & NPUEMU_RQ_TOKEN;
	rq->jfr.token_value = a.token_value;
	rq->jfr.user_data = attr->user_data;
	smp_store_release(&k->rqs[rq->index], rq);
	return 0;
}

int npuemu_k_rq_destroy(struct npuemu_rq *rq)
{
	struct npuemu_kernel *k = npuemu_kernel_of(rq->ctx);
	struct npuemu_ioc_handle a = { .handle = rq->jfr.id };
	int err = npuemu_k_ioctl(k->home, NPUEMU_IOC_RQ_DESTROY, &a);

	if (err == -ETIMEDOUT)
		return npuemu_fail(err, "a delivery into receive queue %u has not ended for 10 s",
				   rq->jfr.id);
	if (err && err != -ENODEV)
		return npuemu_k_failed(rq->ctx, err, "cannot destroy receive queue %u", rq->jfr.id);
	smp_store_release(&k->rqs[rq->index], NULL);
	return 0;
}

int npuemu_k_rq_query(struct npuemu_rq *rq, struct npuemu_rq_info *info)
{
	struct npuemu_kernel *k = npuemu_kernel_of(rq->ctx);
	struct npuemu_ioc_rq_query a = { .id = rq->jfr.id };
	int err = npuemu_k_ioctl(k->home, NPUEMU_IOC_RQ_QUERY, &a);

	if (err)
		return npuemu_k_failed(rq->ctx, err, "cannot look at receive queue %u", rq->jfr.id);
	info->id = a.id;
	info->device = a.device;
	info->depth = a.depth;
	info->posted = a.posted;
	info->consumed = a.consumed;
	memcpy(info->eid.w, a.eid, sizeof(a.eid));
	return 0;
}

/* ---- Send queues --------------------------------------------------------------------- */

static int create_failed(struct npuemu_kernel *k, const struct npuemu_queue_attr *attr, int err)
{
	switch (err) {
	case -EOPNOTSUPP:
		return npuemu_fail(err, "a %s has no %s engine (machine 950 has)", k->about.machine,
				   attr->type == NPUEMU_QUEUE_SDMA ? "SDMA" : "UDMA");
	case -ENOSPC:
		return npuemu_fail(err, "no room for another queue in this process (%u at most)",
				   NPUEMU_CTX_QUEUES - 1);
	default:
		return npuemu_k_failed(&k->base, err, "cannot make a queue on device %u",
				       attr->device);
	}
}

/* What poll.c goes by: the form complete.c gives each success of this queue. */
static void completion_form(struct npuemu_jfs *j)
{
	j->cqe_fixed[0] = NPUEMU_CQE_JETTY |
			  (u64)(j->id & 0xffff) << (32 + NPUEMU_CQE_LOCAL_LO_SHIFT);
	j->cqe_fixed[1] = j->id >> 16 & NPUEMU_CQE_LOCAL_HI_MASK;
}

int npuemu_k_queue_create(struct npuemu_queue *q, const struct npuemu_queue_attr *attr)
{
	struct npuemu_kernel *k = npuemu_kernel_of(q->ctx);
	struct npuemu_ioc_queue_create a = {
		.device = attr->device,
		.type = attr->type,
		.depth = attr->depth,
		.flags = attr->error_suspend ? NPUEMU_QF_ERROR_SUSPEND : 0,
		.cq = q->cq->handle,
		.rq = q->rq ? q->rq->jfr.id : 0,
		.rnr_retry = attr->rnr_retry,
		.ack_timeout_ms = attr->ack_timeout_ms,
		.user_data = attr->user_data,
	};
	int fd = npuemu_k_device(k, attr->device), err;

	if (fd < 0)
		return fd;
	err = npuemu_k_ioctl(k->home, NPUEMU_IOC_QUEUE_CREATE, &a);
	if (err)
		return create_failed(k, attr, err);
	q->index = INDEX(a.id);
	q->db = (u32 *)(void *)(k->doorbells + (size_t)a.db_page * NPUEMU_DB_PAGE_SIZE + NPUEMU_DB_PI);
	q->view.ring = (void *)(k->rings + a.ring);
	q->view.mask = attr->depth - 1;
	q->view.depth = attr->depth;
	q->jfs.id = a.id;
	q->jfs.device = attr->device;
	q->jfs.type = attr->type;
	q->jfs.user_data = attr->user_data;
	completion_form(&q->jfs);
	/* what the CQ already holds is not this queue's, whatever id it has */
	q->stale = true;
	q->fresh = a.cq_pi;
	memcpy(k->eid[attr->device].w, a.eid, sizeof(a.eid));
	smp_store_release(&k->queues[q->index], q);
	return 0;
}

/* A post through the dead handle finds no room. */
static void queue_bury(struct npuemu_kernel *k, struct npuemu_queue *q)
{
	q->view.pi = 0;
	q->view.ci = 0;
	q->view.depth = 0;
	smp_store_release(&k->queues[q->index], NULL);
}

int npuemu_k_queue_destroy(struct npuemu_queue *q)
{
	struct npuemu_kernel *k = npuemu_kernel_of(q->ctx);
	struct npuemu_ioc_handle a = { .handle = q->jfs.id };
	int err = npuemu_k_ioctl(k->home, NPUEMU_IOC_QUEUE_DESTROY, &a);

	if (err == -ETIMEDOUT)
		return npuemu_fail(err, "queue %u has been in one turn for 10 s", q->jfs.id);
	/* lost with its device: that is gone enough */
	if (err && err != -ENODEV)
		return npuemu_k_failed(q->ctx, err, "cannot destroy queue %u", q->jfs.id);
	queue_bury(k, q);
	return 0;
}

static int modify_failed(struct npuemu_queue *q, int err, u32 state)
{
	static const char *const names[] = { "RESET", "READY", "SUSPENDED", "ERROR" };
	struct npuemu_queue_stat stat = { 0 };

	if (err == -ETIMEDOUT)
		return npuemu_fail(err, "queue %u has been in one turn for 10 s", q->jfs.id);
	if (err != -EINVAL || npuemu_k_queue_query(q, &stat))
		return npuemu_k_failed(q->ctx, err, "cannot change queue %u to %s", q->jfs.id,
				       names[state & 3]);
	return npuemu_fail(err, "queue %u: %s -> %s is not a legal change (RESET -> READY <-> SUSPENDED, any -> ERROR, any -> RESET)",
			   q->jfs.id, names[stat.state & 3], names[state & 3]);
}

int npuemu_k_queue_modify(struct npuemu_queue *q, u32 state)
{
	struct npuemu_kernel *k = npuemu_kernel_of(q->ctx);
	struct npuemu_ioc_queue_modify a = { .id = q->jfs.id, .state = state };
	int err = npuemu_k_ioctl(k->home, NPUEMU_IOC_QUEUE_MODIFY, &a);

	if (err)
		return modify_failed(q, err, state);
	if (state == NPUEMU_QS_RESET) {
		/* the driver has set the doorbell's index to 0 as well */
		q->view.pi = 0;
		q->view.ci = 0;
		q->stale = true;
		q->fresh = a.cq_pi;
	}
	return 0;
}

int npuemu_k_queue_map(struct npuemu_queue *q, struct npuemu_queue_map *map)
{
	struct npuemu_kernel *k = npuemu_kernel_of(q->ctx);

	map->id = q->jfs.id;
	map->eid = k->eid[q->jfs.device];
	map->sq = q->view.ring;
	map->sq_depth = q->view.depth;
	map->cq = (void *)(uintptr_t)q->cq->ring;
	map->cq_depth = q->cq->mask + 1;
	/* any store to the page wakes the engine: there is no other mapping to give */
	map->db = q->db;
	map->db_page = (u8 *)q->db - NPUEMU_DB_PI;
	map->cq_db = q->cq->ci_rec;
	return 0;
}

void npuemu_k_stat(const struct npuemu_ioc_queue_query *from, struct npuemu_queue_stat *stat)
{
	_Static_assert(sizeof(stat->cnt) == sizeof(from->cnt), "counters are one layout");
	_Static_assert(sizeof(stat->cause) == sizeof(from->cause), "causes are as long");
	stat->size = sizeof(*stat);
	stat->id = from->id;
	stat->device = from->device;
	stat->type = from->type;
	stat->state = from->state;
	stat->pi = from->pi;
	stat->ci = from->ci;
	stat->depth = from->depth;
	stat->last_status = from->last_status;
	stat->reserved = 0;
	memcpy(&stat->cnt, &from->cnt, sizeof(stat->cnt));
	memcpy(stat->cause, from->cause, sizeof(stat->cause));
	stat->cause[sizeof(stat->cause) - 1] = '\0';
}

int npuemu_k_queue_query(struct npuemu_queue *q, struct npuemu_queue_stat *stat)
{
	struct npuemu_kernel *k = npuemu_kernel_of(q->ctx);
	struct npuemu_ioc_queue_query a = { .id = q->jfs.id };
	int err = npuemu_k_ioctl(k->home, NPUEMU_IOC_QUEUE_QUERY, &a);

	if (err)
		return npuemu_k_failed(q->ctx, err, "cannot look at queue %u", q->jfs.id);
	npuemu_k_stat(&a, stat);
	return 0;
}

struct npuemu_queue *npuemu_k_queue_by_id(struct npuemu *ctx, u32 id)
{
	struct npuemu_queue *q = smp_load_acquire(&npuemu_kernel_of(ctx)->queues[INDEX(id)]);

	return q && q->jfs.id == id ? q : NULL;
}

/* The board is being closed: no handle may outlive it. */
void npuemu_k_queues_drop(struct npuemu_kernel *k)
{
	u32 i;

	for (i = 1; i < NPUEMU_CTX_QUEUES; i++) {
		struct npuemu_queue *q = k->queues[i];

		if (!q || !npuemu_queue_destroy(q))
			continue;
		queue_bury(k, q);
		if (npuemu_slab_retire(&npuemu_queues, q))
			npuemu_slab_free(&npuemu_queues, q);
	}
	for (i = 1; i < NPUEMU_CTX_QUEUES; i++)
		if (k->rqs[i])
			npuemu_rq_destroy(k->rqs[i]);
}
