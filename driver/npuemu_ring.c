// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What user space maps of queues: one window each for all rings, all doorbell
 * pages and all index records of a context, so that thousands of queues take
 * three mappings.  Pages come and go behind them.
 *
 * {take out of the table, zap} and {look up, insert} both happen under
 * ctx->ring_lock, so a page never stays mapped after its ring is gone.
 */
#include <linux/vmalloc.h>
#include "npuemu.h"

#define PER_PAGE	(PAGE_SIZE / NPUEMU_REC_BYTES)
#define AT_DB		NPUEMU_RING_WINDOW
#define AT_REC		(NPUEMU_RING_WINDOW + NPUEMU_DB_WINDOW)

int npuemu_rings_init(struct npuemu_ctx *ctx)
{
	mutex_init(&ctx->ring_lock);
	mt_init_flags(&ctx->ring_mems, MT_FLAGS_ALLOC_RANGE);
	ctx->rec_pages[0] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!ctx->rec_pages[0])
		return -ENOMEM;
	__set_bit(0, ctx->rec_used);	/* the context's own */
	return 0;
}

/* Files are closed, so nothing is mapped, and the last reference is gone. */
void npuemu_rings_exit(struct npuemu_ctx *ctx)
{
	u32 i;

	mtree_destroy(&ctx->ring_mems);
	for (i = 0; i < ARRAY_SIZE(ctx->rec_pages); i++)
		if (ctx->rec_pages[i])
			__free_page(ctx->rec_pages[i]);
	mutex_destroy(&ctx->ring_lock);
}

static atomic64_t all_bytes;	/* of rings, of all contexts */

/* They are not swapped, and no process is seen to have them: a quarter of RAM is the limit. */
static bool charge(u64 bytes)
{
	u64 now = atomic64_add_return(bytes, &all_bytes);

	if (now >> PAGE_SHIFT <= totalram_pages() / 4)
		return true;
	atomic64_sub(bytes, &all_bytes);
	return false;
}

/* ring_lock held.  6.1 has mtree_alloc_range(), too, but there it does not work. */
static int range_take(struct npuemu_ctx *ctx, struct npuemu_ring_mem *m, unsigned long pages,
		      unsigned long *at)
{
	MA_STATE(mas, &ctx->ring_mems, 0, 0);
	int err;

	mas_lock(&mas);
	err = mas_empty_area(&mas, 0, (NPUEMU_RING_WINDOW >> PAGE_SHIFT) - 1, pages);
	if (!err) {
		*at = mas.index;
		err = mas_store_gfp(&mas, m, GFP_KERNEL_ACCOUNT);
	}
	mas_unlock(&mas);
	return err;
}

int npuemu_ring_alloc(struct npuemu_ctx *ctx, struct npuemu_ring_mem *m, u64 bytes)
{
	unsigned long pages, at;
	int err;

	m->bytes = PAGE_ALIGN(bytes);
	if (!charge(m->bytes))
		return -ENOMEM;
	/* MAYFAIL: nobody is killed for it when the cgroup is full */
	m->ptr = __vmalloc(m->bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN |
			   __GFP_RETRY_MAYFAIL);
	if (!m->ptr) {
		atomic64_sub(m->bytes, &all_bytes);
		return -ENOMEM;
	}
	pages = m->bytes >> PAGE_SHIFT;
	mutex_lock(&ctx->ring_lock);
	err = range_take(ctx, m, pages, &at);
	mutex_unlock(&ctx->ring_lock);
	if (err) {
		vfree(m->ptr);
		m->ptr = NULL;
		atomic64_sub(m->bytes, &all_bytes);
		return err == -EBUSY ? -ENOSPC : err;
	}
	m->at = (u64)at << PAGE_SHIFT;
	return 0;
}

static void zap(struct npuemu_ctx *ctx, u64 at, u64 bytes)
{
	unmap_mapping_range(npuemu_mapping(ctx->home), ctx->window + at, bytes, 1);
}

void npuemu_ring_free(struct npuemu_ctx *ctx, struct npuemu_ring_mem *m)
{
	if (!m->ptr)
		return;
	mutex_lock(&ctx->ring_lock);
	mtree_erase(&ctx->ring_mems, m->at >> PAGE_SHIFT);
	zap(ctx, m->at, m->bytes);
	mutex_unlock(&ctx->ring_lock);
	vfree(m->ptr);
	m->ptr = NULL;
	atomic64_sub(m->bytes, &all_bytes);
}

int npuemu_record_take(struct npuemu_ctx *ctx)
{
	struct page *page;
	u32 i;

	i = find_first_zero_bit(ctx->rec_used, NPUEMU_RECORDS);
	if (i == NPUEMU_RECORDS)
		return -ENOSPC;
	if (!ctx->rec_pages[i / PER_PAGE]) {
		page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!page)
			return -ENOMEM;
		/* complete before a fault can find it */
		smp_store_release(&ctx->rec_pages[i / PER_PAGE], page);
	}
	__set_bit(i, ctx->rec_used);
	memset(npuemu_record(ctx, i, 0), 0, NPUEMU_REC_BYTES);
	return i;
}

void npuemu_record_give(struct npuemu_ctx *ctx, u32 record)
{
	__clear_bit(record, ctx->rec_used);
}

/* ---- Mapping --------------------------------------------------------------------------- */

static vm_fault_t ring_fault(struct npuemu_ctx *ctx, struct vm_fault *vmf, u64 off)
{
	vm_fault_t ret = VM_FAULT_SIGBUS;
	struct npuemu_ring_mem *m;

	mutex_lock(&ctx->ring_lock);
	m = mtree_load(&ctx->ring_mems, off >> PAGE_SHIFT);
	if (m)
		ret = vmf_insert_pfn(vmf->vma, vmf->address,
				     vmalloc_to_pfn((u8 *)m->ptr + (off - m->at)));
	mutex_unlock(&ctx->ring_lock);
	return ret;
}

static vm_fault_t db_fault(struct npuemu_ctx *ctx, struct vm_fault *vmf, u64 off)
{
	vm_fault_t ret = VM_FAULT_SIGBUS;
	int idx = srcu_read_lock(&npuemu_turns);
	struct npuemu_queue *q = xa_load(&ctx->queues, off >> PAGE_SHIFT);

	if (q)
		ret = npuemu_doorbell_fault(q, vmf);
	srcu_read_unlock(&npuemu_turns, idx);
	return ret;
}

static vm_fault_t record_fault(struct npuemu_ctx *ctx, struct vm_fault *vmf, u64 off)
{
	/* pairs with npuemu_record_take() */
	struct page *page = smp_load_acquire(&ctx->rec_pages[off >> PAGE_SHIFT]);

	/* never taken away again, so there is nothing to lock against */
	return page ? vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(page)) : VM_FAULT_SIGBUS;
}

static vm_fault_t window_fault(struct vm_fault *vmf)
{
	struct npuemu_ctx *ctx = vmf->vma->vm_private_data;
	u64 off = ((u64)vmf->pgoff << PAGE_SHIFT) - ctx->window;

	if (off < AT_DB)
		return ring_fault(ctx, vmf, off);
	if (off < AT_REC)
		return db_fault(ctx, vmf, off - AT_DB);
	if (off < NPUEMU_WINDOW_BYTES)
		return record_fault(ctx, vmf, off - AT_REC);
	return VM_FAULT_SIGBUS;
}

static int window_mremap(struct vm_area_struct *vma)
{
	return -EPERM;
}

/* The file holds the context: no reference of our own. */
static const struct vm_operations_struct window_ops = {
	.fault = window_fault,
	.mremap = window_mremap,
};

int npuemu_ring_mmap(struct npuemu_ctx *ctx, struct vm_area_struct *vma, u64 off, u64 len)
{
	u64 end = off < AT_DB ? AT_DB : off < AT_REC ? AT_REC : NPUEMU_WINDOW_BYTES;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC || len > end - off)
		return -EINVAL;
	vma->vm_ops = &window_ops;
	vma->vm_private_data = ctx;
	/* PFNMAP and IO: nobody pins these pages and writes past the fault handler */
	npuemu_vm_flags(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTCOPY | VM_DONTDUMP,
			VM_MAYEXEC);
	return 0;
}
