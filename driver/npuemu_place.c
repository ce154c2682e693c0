// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The address table of a context: what local addresses in WQEs mean.
 *
 * An entry is a buffer, or host memory that is pinned, or host memory that is
 * copied on demand (npuemu_pager.c).  It never changes once it can be found.
 * Readers find it inside an npuemu_turns section and use it no longer than
 * that; it holds its buffer, so nobody else needs to.
 *
 * NPUEMU_VA_REST is what lies between the entries.  Queues remember such a gap,
 * so while there is a rest an entry that is added has to be made known, too.
 */
#include <linux/capability.h>
#include <linux/mman.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include "npuemu.h"

#define PIN_MAX		(256ull << 30)	/* bytes of one entry */
#define PIN_BATCH	1024ul		/* pages */

#define KIND_MASK	(NPUEMU_VA_PINNED | NPUEMU_VA_PAGEABLE)

/* ---- Pinned host memory -------------------------------------------------------- */

/* As for RDMA: per address space, pages that more than one entry pins count twice. */
static int pin_charge(struct npuemu_place *p)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	if (atomic64_add_return(p->npages, &p->mm->pinned_vm) > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(p->npages, &p->mm->pinned_vm);
		return -ENOMEM;
	}
	return 0;
}

static int pin_pages(struct npuemu_place *p, unsigned int gup)
{
	unsigned long start = p->va & PAGE_MASK, done = 0;
	int n;

	while (done < p->npages) {
		n = pin_user_pages_fast(start + (done << PAGE_SHIFT),
					min(p->npages - done, PIN_BATCH), gup, p->pages + done);
		if (n <= 0) {
			n = n ? n : -EFAULT;
			goto undo;
		}
		done += n;
		if (fatal_signal_pending(current)) {
			n = -EINTR;
			goto undo;
		}
		cond_resched();
	}
	return 0;

undo:
	unpin_user_pages(p->pages, done);
	return n;
}

/*
 * Pages that are pinned for reading only may be replaced in the process by its
 * next write (older kernels, copy on write), and the engine would read what was.
 * So they are pinned for writing where they may be written at all.
 */
static int pin_whole(struct npuemu_place *p)
{
	int err = pin_pages(p, FOLL_LONGTERM | FOLL_WRITE);

	if (err == -EFAULT && p->flags & NPUEMU_VA_READONLY)
		err = pin_pages(p, FOLL_LONGTERM);
	return err;
}

/* Without any lock held: it faults pages in. */
static int place_pin(struct npuemu_place *p)
{
	bool readonly = p->flags & NPUEMU_VA_READONLY;
	u8 *map;
	int err;

	if (p->len > PIN_MAX)
		return -ENOMEM;
	p->npages = (offset_in_page(p->va) + p->len + PAGE_SIZE - 1) >> PAGE_SHIFT;
	p->mm = current->mm;
	mmgrab(p->mm);
	err = pin_charge(p);
	if (err)
		goto no_charge;
	err = -ENOMEM;
	p->pages = kvmalloc_array(p->npages, sizeof(*p->pages), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!p->pages)
		goto no_pages;
	err = pin_whole(p);
	if (err)
		goto no_pins;
	map = vmap(p->pages, p->npages, VM_MAP, readonly ? PAGE_KERNEL_RO : PAGE_KERNEL);
	if (!map) {
		err = -ENOMEM;
		goto no_map;
	}
	p->ptr = map + offset_in_page(p->va);
	npuemu_leak(NPUEMU_LEAK_PINNED, p->npages);
	return 0;

no_map:
	unpin_user_pages(p->pages, p->npages);
no_pins:
	kvfree(p->pages);
	p->pages = NULL;
no_pages:
	atomic64_sub(p->npages, &p->mm->pinned_vm);
no_charge:
	mmdrop(p->mm);
	p->mm = NULL;
	return err;
}

static void place_unpin(struct npuemu_place *p)
{
	vunmap(p->ptr - offset_in_page(p->va));
	unpin_user_pages_dirty_lock(p->pages, p->npages, !(p->flags & NPUEMU_VA_READONLY));
	kvfree(p->pages);
	atomic64_sub(p->npages, &p->mm->pinned_vm);
	mmdrop(p->mm);
	npuemu_leak(NPUEMU_LEAK_PINNED, -(int)p->npages);
}

/* ---- Entries ---------------------------------------------------------------------- */

static void place_free(struct npuemu_place *p)
{
	if (p->pages)
		place_unpin(p);
	if (p->bo)
		npuemu_bo_put(p->bo);
	kfree(p);
	npuemu_leak(NPUEMU_LEAK_PLACE, -1);
}

/* Of a buffer.  ctx->lock held. */
static int place_in_bo(struct npuemu_ctx *ctx, struct npuemu_place *p, u64 off)
{
	struct npuemu_bo_handle *h = npuemu_handle_find(ctx, p->handle);
	struct npuemu_bo *bo;

	if (!h)
		return -ENOENT;
	bo = h->bo;
	if (off > bo->room || p->len > bo->room - off)
		return -EINVAL;
	if (READ_ONCE(bo->revoked))
		return -ENODEV;
	npuemu_bo_get(bo);
	p->bo = bo;
	p->off = off;
	return 0;
}

/* ctx->lock held.  From here on engines find it. */
static int place_publish(struct npuemu_ctx *ctx, struct npuemu_place *p)
{
	struct npuemu_bo_handle *h;
	int err = npuemu_ctx_check(ctx);

	if (err)
		return err;
	if (ctx->nplaces >= NPUEMU_CTX_PLACES)
		return -ENOSPC;
	err = mtree_insert_range(&ctx->places, p->va, p->va + p->len - 1, p, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	ctx->nplaces++;
	h = p->bo ? npuemu_handle_find(ctx, p->handle) : NULL;
	if (h)
		h->places++;
	return 0;
}

/* ctx->lock held.  Who looks from now on does not find it. */
static void place_unpublish(struct npuemu_ctx *ctx, struct npuemu_place *p)
{
	struct npuemu_bo_handle *h = p->bo ? npuemu_handle_find(ctx, p->handle) : NULL;

	mtree_erase(&ctx->places, p->va);
	ctx->nplaces--;
	if (h)
		h->places--;
}

/* ctx->lock held. */
static int rest_publish(struct npuemu_ctx *ctx)
{
	int err = npuemu_ctx_check(ctx);

	if (!err && ctx->rest)
		err = -EEXIST;
	if (!err)
		err = npuemu_pager_start(ctx);
	if (!err)
		smp_store_release(&ctx->rest, true); /* only now: there is a pager */
	return err;
}

static int rest_map(struct npuemu_ctx *ctx, const struct npuemu_ioc_va_map *a)
{
	int err;

	if (a->flags != (NPUEMU_VA_REST | NPUEMU_VA_PAGEABLE) || a->va || a->bytes ||
	    a->offset || a->handle)
		return -EINVAL;
	mutex_lock(&ctx->lock);
	err = rest_publish(ctx);
	mutex_unlock(&ctx->lock);
	return err;
}

static int rest_unmap(struct npuemu_ctx *ctx)
{
	bool was;

	mutex_lock(&ctx->lock);
	was = ctx->rest;
	WRITE_ONCE(ctx->rest, false);
	mutex_unlock(&ctx->lock);
	if (!was)
		return -ENOENT;
	npuemu_grace();
	return npuemu_pager_drain(ctx, 0, 0);
}

static int map_check(const struct npuemu_ioc_va_map *a)
{
	u32 kind = a->flags & KIND_MASK;
	u64 end;

	if (a->flags & ~(NPUEMU_VA_READONLY | KIND_MASK))
		return -EINVAL;
	if (!a->bytes || check_add_overflow(a->va, a->bytes, &end))
		return -EINVAL;
	if (a->handle)
		return kind || a->va & ~PAGE_MASK || a->offset & ~PAGE_MASK ? -EINVAL : 0;
	if (a->offset || (kind != NPUEMU_VA_PINNED && kind != NPUEMU_VA_PAGEABLE))
		return -EINVAL;
	return access_ok(u64_to_user_ptr(a->va), a->bytes) ? 0 : -EFAULT;
}

int npuemu_ioc_va_map(struct npuemu_file *f, struct npuemu_ioc_va_map *a)
{
	struct npuemu_ctx *ctx = READ_ONCE(f->ctx);
	struct npuemu_place *p;
	bool rest;
	int err;

	if (a->flags & NPUEMU_VA_REST)
		return rest_map(ctx, a);
	err = map_check(a);
	if (err)
		return err;
	p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		return -ENOMEM;
	npuemu_leak(NPUEMU_LEAK_PLACE, 1);
	p->va = a->va;
	p->len = a->bytes;
	p->handle = a->handle;
	p->flags = a->flags;
	if (p->flags & NPUEMU_VA_PINNED) {
		/* takes mmap_lock, which comes before ctx->lock */
		err = place_pin(p);
		if (err)
			goto undo;
	}
	mutex_lock(&ctx->lock);
	if (p->handle)
		err = place_in_bo(ctx, p, a->offset);
	else if (p->flags & NPUEMU_VA_PAGEABLE)
		err = npuemu_pager_start(ctx);
	if (!err)
		err = place_publish(ctx, p);
	rest = ctx->rest;
	mutex_unlock(&ctx->lock);
	if (err)
		goto undo;
	/* no queue takes it for a part of the rest any more; @p may be gone by now */
	if (rest)
		npuemu_grace();
	return 0;

undo:
	place_free(p);
	return err;
}

int npuemu_ioc_va_unmap(struct npuemu_file *f, struct npuemu_ioc_va_unmap *a)
{
	struct npuemu_ctx *ctx = READ_ONCE(f->ctx);
	struct npuemu_place *p;
	int err = 0;

	if (a->va == NPUEMU_VA_UNMAP_REST)
		return rest_unmap(ctx);
	mutex_lock(&ctx->lock);
	p = mtree_load(&ctx->places, a->va);
	if (p && p->va == a->va)
		place_unpublish(ctx, p);
	else
		err = -ENOENT;
	mutex_unlock(&ctx->lock);
	if (err)
		return err;
	npuemu_grace();
	/* no engine asks for its pages any more; what was asked for may be under way */
	if (p->flags & NPUEMU_VA_PAGEABLE)
		err = npuemu_pager_drain(ctx, p->va, p->len);
	place_free(p);
	return err;
}

void npuemu_places_remove(struct npuemu_ctx *ctx, u32 handle)
{
	struct npuemu_bo_handle *h = handle == ~0u ? NULL : npuemu_handle_find(ctx, handle);
	struct npuemu_place *p, *list = NULL;
	unsigned long at = 0;

	if (h && !h->places)
		return;
	if (handle == ~0u)
		WRITE_ONCE(ctx->rest, false);
	mt_for_each(&ctx->places, p, at, ULONG_MAX) {
		if (handle != ~0u && (!p->bo || p->handle != handle))
			continue;
		place_unpublish(ctx, p);
		p->next = list;
		list = p;
		cond_resched();
	}
	if (!list)
		return;
	npuemu_grace();
	while (list) {
		p = list;
		list = p->next;
		place_free(p);
	}
}

/* ---- Looking one up ------------------------------------------------------------------ */

/* Of the rest, between the entries around @va: [first, last]. */
static int local_rest(struct npuemu_ctx *ctx, u64 va, u64 len, u64 first, u64 last,
		      struct npuemu_local *out)
{
	/* pairs with rest_publish(): the pager */
	if (!smp_load_acquire(&ctx->rest))
		return -EFAULT;
	last = min_t(u64, last, TASK_SIZE_MAX - 1);
	if (va > last || len > last - va + 1)
		return -EFAULT;
	memset(out, 0, sizeof(*out));
	out->va = first;
	out->len = last - first + 1;
	out->pageable = true;
	return 0;
}

/* In an npuemu_turns section. */
int npuemu_op_local(struct npuemu_chip *chip, u64 va, u64 len, struct npuemu_local *out)
{
	struct npuemu_ctx *ctx = container_of(chip, struct npuemu_ctx, chip);
	const struct npuemu_place *p;
	struct npuemu_bo *bo;

	MA_STATE(mas, &ctx->places, va, va);

	/* the entry, or how far there is none */
	rcu_read_lock();
	p = mas_walk(&mas);
	rcu_read_unlock();
	if (!p)
		return local_rest(ctx, va, len, mas.index, mas.last, out);
	if (len > p->len - (va - p->va))
		return -EFAULT;
	bo = p->bo;
	if (bo && READ_ONCE(bo->revoked))
		return -EFAULT;
	out->va = p->va;
	out->len = p->len;
	out->ptr = p->ptr;
	out->arena = NULL;
	out->off = 0;
	out->share = NULL;
	out->readonly = p->flags & NPUEMU_VA_READONLY;
	out->pageable = p->flags & NPUEMU_VA_PAGEABLE;
	if (bo) {
		out->ptr = bo->arena.base ? bo->arena.base + p->off : NULL;
		out->arena = &bo->arena;
		out->off = p->off;
		out->share = &bo->share;
	}
	return 0;
}
