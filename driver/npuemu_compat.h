/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What differs between kernels, probed rather than told from version numbers
 * (stable kernels carry backports): Kbuild greps the headers it builds against
 * and defines NPUEMU_HAVE_*.  The only file of the driver with an #ifdef about
 * it.
 */
#ifndef NPUEMU_COMPAT_H
#define NPUEMU_COMPAT_H

#include <linux/dma-buf.h>
#include <linux/eventfd.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>

static inline void npuemu_vm_flags(struct vm_area_struct *vma, unsigned long set,
				   unsigned long clear)
{
#ifdef NPUEMU_HAVE_VM_FLAGS_MOD
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

static inline void npuemu_eventfd_signal(struct eventfd_ctx *ctx)
{
#ifdef NPUEMU_HAVE_EVENTFD_SIGNAL_1
	eventfd_signal(ctx);
#else
	eventfd_signal(ctx, 1);
#endif
}

/*
 * Buffers (npuemu_bo.c, npuemu_dmabuf.c).  What Kbuild looks for:
 * NPUEMU_HAVE_VMALLOC_HUGE: "vmalloc_huge" in include/linux/vmalloc.h
 * NPUEMU_HAVE_DMA_BUF_VMAP_UNLOCKED: "dma_buf_vmap_unlocked" in
 * include/linux/dma-buf.h
 */

/*
 * Zeroed and charged, without waking the OOM killer: NULL is an answer here.
 * One huge page if there is one at hand, small ones with more patience else.
 */
static inline void *npuemu_vmalloc_chunk(unsigned long bytes)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	void *p = NULL;

#ifdef NPUEMU_HAVE_VMALLOC_HUGE
	if (bytes >= PMD_SIZE)
		p = vmalloc_huge(bytes, gfp | __GFP_NORETRY);
#endif
	return p ? p : __vmalloc(bytes, gfp | __GFP_RETRY_MAYFAIL);
}

static inline int npuemu_dma_buf_vmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
#ifdef NPUEMU_HAVE_DMA_BUF_VMAP_UNLOCKED
	return dma_buf_vmap_unlocked(dmabuf, map);
#else
	return dma_buf_vmap(dmabuf, map);
#endif
}

static inline void npuemu_dma_buf_vunmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
#ifdef NPUEMU_HAVE_DMA_BUF_VMAP_UNLOCKED
	dma_buf_vunmap_unlocked(dmabuf, map);
#else
	dma_buf_vunmap(dmabuf, map);
#endif
}

#ifdef NPUEMU_HAVE_IMPORT_NS_STRING
#define NPUEMU_IMPORT_DMA_BUF() MODULE_IMPORT_NS("DMA_BUF")
#else
#define NPUEMU_IMPORT_DMA_BUF() MODULE_IMPORT_NS(DMA_BUF)
#endif

#endif
