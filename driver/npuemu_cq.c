// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Making and unmaking CQs, who uses them, and the eventfd that announces their entries.
 *
 * A CQ is complete before its handle can be found, and is freed only when nobody uses it,
 * it cannot be found any more and a grace period has passed.
 */
#include "npuemu.h"

void npuemu_cq_free(struct npuemu_cq *cq)
{
	npuemu_ring_free(cq->ctx, &cq->mem);
	npuemu_record_give(cq->ctx, cq->record);
	if (cq->eventfd)
		eventfd_ctx_put(cq->eventfd);
	cq->ctx->ncqs--;
	kfree(cq);
	npuemu_leak(NPUEMU_LEAK_CQ, -1);
}

static int cq_setup(struct npuemu_ctx *ctx, struct npuemu_cq *cq, u32 depth, bool timed)
{
	struct npuemu_jfc *j = &cq->jfc;
	u64 bytes = (u64)depth * NPUEMU_CQE_SIZE;
	int err;

	cq->ctx = ctx;
	err = npuemu_record_take(ctx);
	if (err < 0)
		return err;
	cq->record = err;
	err = npuemu_ring_alloc(ctx, &cq->mem, bytes + (timed ? depth * sizeof(u64) : 0));
	if (err) {
		npuemu_record_give(ctx, cq->record);
		return err;
	}
	j->ring = cq->mem.ptr;
	j->times = timed ? cq->mem.ptr + bytes : NULL;
	j->ci_rec = npuemu_record(ctx, cq->record, NPUEMU_REC_INDEX);
	j->mask = depth - 1;
	j->host = cq;
	return 0;
}

int npuemu_ioc_cq_create(struct npuemu_file *f, struct npuemu_ioc_cq_create *a)
{
	bool timed = a->flags & NPUEMU_CQF_TIMED;
	struct npuemu_ctx *ctx = f->ctx;
	struct npuemu_cq *cq;
	int err;

	if (a->flags & ~(NPUEMU_CQF_TIMED | NPUEMU_CQF_SHARED) ||
	    !npuemu_pow2_within(a->depth, NPUEMU_CQ_MIN, NPUEMU_CQ_MAX))
		return -EINVAL;
	cq = kzalloc(sizeof(*cq), GFP_KERNEL_ACCOUNT);
	if (!cq)
		return -ENOMEM;
	cq->jfc.shared = a->flags & NPUEMU_CQF_SHARED;
	mutex_lock(&ctx->lock);
	err = ctx->closing ? -ENODEV : ctx->ncqs >= NPUEMU_CTX_CQS ? -ENOSPC :
	      cq_setup(ctx, cq, a->depth, timed);
	if (err) {
		mutex_unlock(&ctx->lock);
		kfree(cq);
		return err;
	}
	npuemu_leak(NPUEMU_LEAK_CQ, 1);
	ctx->ncqs++;
	a->record = cq->record;
	a->ring = cq->mem.at;
	a->times = timed ? cq->mem.at + (u64)a->depth * NPUEMU_CQE_SIZE : ~0ull;
	err = xa_alloc_cyclic(&ctx->cqs, &cq->handle, NULL, XA_LIMIT(1, INT_MAX), &ctx->cq_next,
			      GFP_KERNEL_ACCOUNT);
	if (err >= 0) {
		a->handle = cq->handle;
		err = 0;
		xa_store(&ctx->cqs, cq->handle, cq, 0);	/* only now: it is complete */
	} else {
		npuemu_cq_free(cq);
	}
	mutex_unlock(&ctx->lock);
	return err;
}

int npuemu_ioc_cq_destroy(struct npuemu_file *f, struct npuemu_ioc_handle *a)
{
	struct npuemu_ctx *ctx = f->ctx;
	struct npuemu_cq *cq;
	int err = 0;

	if (a->pad)
		return -EINVAL;
	mutex_lock(&ctx->lock);
	cq = xa_load(&ctx->cqs, a->handle);
	if (!cq)
		err = -ENOENT;
	else if (cq->users)
		err = -EBUSY;
	else
		xa_erase(&ctx->cqs, a->handle);
	mutex_unlock(&ctx->lock);
	if (err)
		return err;
	wake_up_all(&ctx->bell);	/* who waits for it */
	npuemu_grace();
	mutex_lock(&ctx->lock);
	npuemu_cq_free(cq);
	mutex_unlock(&ctx->lock);
	return 0;
}

struct npuemu_cq *npuemu_cq_attach(struct npuemu_ctx *ctx, u32 handle)
{
	struct npuemu_cq *cq = xa_load(&ctx->cqs, handle);

	if (!cq)
		return ERR_PTR(-ENOENT);
	if (cq->users && !cq->jfc.shared)
		return ERR_PTR(-EBUSY);
	cq->users++;
	npuemu_fetch_add(&cq->jfc.attached, 1);
	return cq;
}

void npuemu_cq_detach(struct npuemu_cq *cq)
{
	cq->users--;
	npuemu_fetch_add(&cq->jfc.attached, -1u);
}

int npuemu_ioc_cq_eventfd(struct npuemu_file *f, struct npuemu_ioc_cq_eventfd *a)
{
	struct npuemu_ctx *ctx = f->ctx;
	struct eventfd_ctx *new = NULL, *old;
	struct npuemu_cq *cq;

	if (a->fd >= 0) {
		new = eventfd_ctx_fdget(a->fd);
		if (IS_ERR(new))
			return PTR_ERR(new);
	} else if (a->fd != -1) {
		return -EBADF;
	}
	mutex_lock(&ctx->lock);
	cq = xa_load(&ctx->cqs, a->handle);
	if (!cq) {
		mutex_unlock(&ctx->lock);
		if (new)
			eventfd_ctx_put(new);
		return -ENOENT;
	}
	old = cq->eventfd;
	smp_store_release(&cq->eventfd, new); /* complete */
	/* counts as a sleeper: completions are announced */
	npuemu_fetch_add(&cq->jfc.waiters, (u32)!!new - (u32)!!old);
	mutex_unlock(&ctx->lock);
	if (old) {
		npuemu_grace();
		eventfd_ctx_put(old);
	}
	return 0;
}
