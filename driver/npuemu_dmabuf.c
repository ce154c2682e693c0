// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Buffers as dma-bufs, and dma-bufs as buffers.
 *
 * Export: a dma-buf holds the buffer like a handle does; its mappings are
 * made through the device's address space, so a reset takes them as well.
 * Importers in the kernel get memory that stays until they let go of it.
 *
 * Import: our own dma-buf is the same buffer again.  One of another driver
 * becomes a buffer that is the exporter's memory as it maps it for the kernel;
 * it takes no HBM, and its mappings in user space are the exporter's affair.
 * So is who may look at it when: engines access it whenever a WQE says so, and
 * user space brackets that with DMA_BUF_IOCTL_SYNC if other devices join in.
 */
#include <linux/dma-mapping.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/iosys-map.h>
#include <linux/scatterlist.h>
#include <linux/sched/signal.h>
#include "npuemu.h"

#define CHUNK_PAGES	(NPUEMU_CHUNK_BYTES >> PAGE_SHIFT)

/* What a dma-buf of ours stands for. */
struct npuemu_export {
	struct npuemu_bo *bo;
	struct mutex lock;	/* maps; innermost */
	struct list_head maps;
};

/* One mapping for a device.  sg_append_table: it is filled chunk by chunk. */
struct npuemu_dma_map {
	struct sg_append_table table;
	struct device *dev;
	struct list_head node;
};

/* Attaching and mapping what others made; one at a time, so that it is done once. */
static DEFINE_MUTEX(import_lock);

/* ---- Export ------------------------------------------------------------------------ */

/* Back the chunk at @off and say what its pages are: their number, or -errno. */
static int chunk_pages(struct npuemu_bo *bo, u64 off, struct page **pages)
{
	u64 bytes = min_t(u64, NPUEMU_CHUNK_BYTES, bo->room - off);
	int err, i, n = bytes >> PAGE_SHIFT;
	u8 *p;

	err = npuemu_bo_back(bo, off, bytes);
	if (err)
		return err;
	p = npuemu_arena_at(&bo->arena, off);
	for (i = 0; i < n; i++)
		pages[i] = vmalloc_to_page(p + (u64)i * PAGE_SIZE);
	return n;
}

static int table_fill(struct npuemu_bo *bo, struct sg_append_table *table, struct device *dev)
{
	unsigned int seg = max_t(unsigned int, dma_get_max_seg_size(dev), PAGE_SIZE);
	struct page **pages;
	u64 off, left;
	int n, err = 0;

	pages = kmalloc_array(CHUNK_PAGES, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	for (off = 0; off < bo->room && !err; off += NPUEMU_CHUNK_BYTES) {
		n = chunk_pages(bo, off, pages);
		if (n < 0) {
			err = n;
			break;
		}
		left = (bo->room - off) / PAGE_SIZE - n;
		err = sg_alloc_append_table_from_pages(table, pages, n, 0,
						       (unsigned long)n << PAGE_SHIFT, seg, left,
						       GFP_KERNEL_ACCOUNT);
		cond_resched();
	}
	kfree(pages);
	return err;
}

/*
 * An importer that got so far expects memory: dma_buf_vmap() even complains
 * aloud when there is none.  So all of it is backed here, where no is an answer.
 */
static int export_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *at)
{
	struct npuemu_export *e = dmabuf->priv;
	struct npuemu_bo *bo = e->bo;
	int err = 0;
	u64 off;

	if (READ_ONCE(bo->revoked))
		return -ENODEV;
	for (off = 0; off < bo->room && !err; off += NPUEMU_CHUNK_BYTES)
		err = fatal_signal_pending(current) ? -EINTR :
		      npuemu_bo_back(bo, off, min_t(u64, NPUEMU_CHUNK_BYTES, bo->room - off));
	return err;
}

static struct sg_table *export_map(struct dma_buf_attachment *at, enum dma_data_direction dir)
{
	struct npuemu_export *e = at->dmabuf->priv;
	struct npuemu_dma_map *m;
	int err;

	/* the kernel would complain aloud */
	if (!at->dev->dma_mask)
		return ERR_PTR(-EIO);
	if (READ_ONCE(e->bo->revoked))
		return ERR_PTR(-ENODEV);
	m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		return ERR_PTR(-ENOMEM);
	m->dev = at->dev;
	err = table_fill(e->bo, &m->table, m->dev);
	if (err)
		goto no_table;
	err = dma_map_sgtable(m->dev, &m->table.sgt, dir, 0);
	if (err)
		goto no_table;
	mutex_lock(&e->lock);
	list_add_tail(&m->node, &e->maps);
	mutex_unlock(&e->lock);
	return &m->table.sgt;

no_table:
	sg_free_append_table(&m->table);
	kfree(m);
	return ERR_PTR(err);
}

static void export_unmap(struct dma_buf_attachment *at, struct sg_table *sgt,
			 enum dma_data_direction dir)
{
	struct npuemu_dma_map *m = container_of(sgt, struct npuemu_dma_map, table.sgt);
	struct npuemu_export *e = at->dmabuf->priv;

	mutex_lock(&e->lock);
	list_del(&m->node);
	mutex_unlock(&e->lock);
	dma_unmap_sgtable(m->dev, sgt, dir, 0);
	sg_free_append_table(&m->table);
	kfree(m);
}

/* Nothing to do where DMA is coherent; devices that bounce copy here. */
static int export_begin(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	struct npuemu_export *e = dmabuf->priv;
	struct npuemu_dma_map *m;

	mutex_lock(&e->lock);
	list_for_each_entry(m, &e->maps, node)
		dma_sync_sgtable_for_cpu(m->dev, &m->table.sgt, dir);
	mutex_unlock(&e->lock);
	return 0;
}

static int export_end(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	struct npuemu_export *e = dmabuf->priv;
	struct npuemu_dma_map *m;

	mutex_lock(&e->lock);
	list_for_each_entry(m, &e->maps, node)
		dma_sync_sgtable_for_device(m->dev, &m->table.sgt, dir);
	mutex_unlock(&e->lock);
	return 0;
}

static int export_vmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct npuemu_export *e = dmabuf->priv;
	struct npuemu_bo *bo = e->bo;
	struct page **pages;
	void *p = NULL;
	int n = 0;
	u64 off;

	if (bo->room > npuemu_budget)
		return -ENOMEM;
	pages = kvmalloc_array(bo->room >> PAGE_SHIFT, sizeof(*pages),
			       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!pages)
		return -ENOMEM;
	for (off = 0; off < bo->room && n >= 0; off += NPUEMU_CHUNK_BYTES)
		n = chunk_pages(bo, off, pages + (off >> PAGE_SHIFT));
	if (n >= 0)
		p = vmap(pages, bo->room >> PAGE_SHIFT, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	if (n < 0)
		return n;
	if (!p)
		return -ENOMEM;
	iosys_map_set_vaddr(map, p);
	return 0;
}

static void export_vunmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	vunmap(map->vaddr);
}

static int export_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct npuemu_export *e = dmabuf->priv;

	return npuemu_bo_mmap(e->bo, vma, (u64)vma->vm_pgoff << PAGE_SHIFT);
}

static void export_release(struct dma_buf *dmabuf)
{
	struct npuemu_export *e = dmabuf->priv;

	npuemu_bo_put(e->bo);
	mutex_destroy(&e->lock);
	kfree(e);
	npuemu_leak(NPUEMU_LEAK_DMABUF, -1);
}

static const struct dma_buf_ops export_ops = {
	.attach = export_attach,
	.map_dma_buf = export_map,
	.unmap_dma_buf = export_unmap,
	.begin_cpu_access = export_begin,
	.end_cpu_access = export_end,
	.vmap = export_vmap,
	.vunmap = export_vunmap,
	.mmap = export_mmap,
	.release = export_release,
};

static struct dma_buf *export_bo(struct npuemu_bo *bo, u32 flags)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct npuemu_export *e;
	struct dma_buf *dmabuf;

	e = kzalloc(sizeof(*e), GFP_KERNEL_ACCOUNT);
	if (!e)
		return ERR_PTR(-ENOMEM);
	mutex_init(&e->lock);
	INIT_LIST_HEAD(&e->maps);
	e->bo = bo;
	info.ops = &export_ops;
	info.size = bo->room;
	info.flags = flags;
	info.priv = e;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		mutex_destroy(&e->lock);
		kfree(e);
		return dmabuf;
	}
	npuemu_bo_get(bo);
	npuemu_leak(NPUEMU_LEAK_DMABUF, 1);
	/* so that one zap finds the mappings made through it as well */
	dmabuf->file->f_mapping = npuemu_mapping(bo->dev);
	return dmabuf;
}

/* The dma-buf of a buffer, referenced: a new one, or the one it came as. */
static struct dma_buf *dmabuf_of(struct npuemu_bo *bo, u32 flags)
{
	if (READ_ONCE(bo->revoked))
		return ERR_PTR(-ENODEV);
	if (!bo->foreign)
		return export_bo(bo, flags);
	/* its file is what it is: do not give more than was asked for */
	if (!(flags & O_RDWR))
		return ERR_PTR(-EOPNOTSUPP);
	get_dma_buf(bo->foreign);
	return bo->foreign;
}

int npuemu_ioc_bo_export(struct npuemu_file *f, struct npuemu_ioc_bo_export *a)
{
	struct npuemu_export_arg *arg = container_of(a, struct npuemu_export_arg, a);
	struct dma_buf *dmabuf;
	struct npuemu_bo *bo;
	int fd;

	if (a->pad || a->flags & ~(u32)(O_CLOEXEC | O_RDWR))
		return -EINVAL;
	bo = npuemu_handle_bo(f->ctx, a->handle);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	dmabuf = dmabuf_of(bo, a->flags);
	npuemu_bo_put(bo);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	fd = get_unused_fd_flags(a->flags & O_CLOEXEC);
	if (fd < 0) {
		dma_buf_put(dmabuf);
		return fd;
	}
	a->fd = fd;
	arg->dmabuf = dmabuf;
	return 0;
}

/* From here on another thread may use, and close, the descriptor. */
void npuemu_export_done(struct npuemu_export_arg *arg, bool told)
{
	if (told) {
		fd_install(arg->a.fd, arg->dmabuf->file);
		return;
	}
	put_unused_fd(arg->a.fd);
	dma_buf_put(arg->dmabuf);
}

/* ---- Import -------------------------------------------------------------------------- */

/* An exporter may want to map it for "our device", which never does any DMA. */
static int dma_mask(struct device *dev)
{
	if (dev->dma_mask)
		return 0;
	return dma_coerce_mask_and_coherent(dev, DMA_BIT_MASK(64));
}

static int foreign_check(const struct npuemu_dev *dev, const struct dma_buf *dmabuf)
{
	if (!READ_ONCE(dev->dev))
		return -ENODEV;
	if (!dmabuf->ops->vmap)
		return -EOPNOTSUPP;
	if (!dmabuf->size || !PAGE_ALIGNED(dmabuf->size) || dmabuf->size > NPUEMU_BO_MAX)
		return -EINVAL;
	return 0;
}

/* import_lock held. */
static struct npuemu_bo *foreign_new(struct npuemu_dev *dev, struct dma_buf *dmabuf,
				     struct npuemu_ctx *maker)
{
	struct npuemu_bo *bo;
	int err;

	err = foreign_check(dev, dmabuf);
	if (!err)
		err = dma_mask(dev->dev);
	if (err)
		return ERR_PTR(err);
	bo = npuemu_bo_alloc(dev, dmabuf->size, maker);
	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->attach = dma_buf_attach(dmabuf, dev->dev);
	if (IS_ERR(bo->attach)) {
		err = PTR_ERR(bo->attach);
		goto no_attach;
	}
	err = npuemu_dma_buf_vmap(dmabuf, &bo->vmap);
	if (err)
		goto no_vmap;
	err = -EOPNOTSUPP;
	if (bo->vmap.is_iomem || !IS_ALIGNED((unsigned long)bo->vmap.vaddr, 16))
		goto no_memory;
	get_dma_buf(dmabuf);
	bo->foreign = dmabuf;
	bo->owner_slot = ~0u;
	bo->owner_life = 0;
	bo->arena.base = bo->vmap.vaddr;
	npuemu_bo_publish(bo);
	return bo;

no_memory:
	npuemu_dma_buf_vunmap(dmabuf, &bo->vmap);
no_vmap:
	dma_buf_detach(dmabuf, bo->attach);
no_attach:
	npuemu_bo_put(bo);
	return ERR_PTR(err);
}

void npuemu_foreign_release(struct npuemu_bo *bo)
{
	npuemu_dma_buf_vunmap(bo->foreign, &bo->vmap);
	dma_buf_detach(bo->foreign, bo->attach);
	dma_buf_put(bo->foreign);
}

/*
 * A user's contexts that import it on a device share one buffer, and with it
 * who waits for words in it and who combines into it.
 */
static struct npuemu_bo *foreign_get(struct npuemu_dev *dev, struct dma_buf *dmabuf,
				     struct npuemu_ctx *maker)
{
	struct npuemu_bo *bo;

	mutex_lock(&import_lock);
	bo = npuemu_bo_find_foreign(dev, dmabuf, maker->uid);
	if (!bo)
		bo = foreign_new(dev, dmabuf, maker);
	mutex_unlock(&import_lock);
	return bo;
}

/* The buffer that the dma-buf is, or becomes; referenced. */
static struct npuemu_bo *bo_of(struct npuemu_file *f, struct dma_buf *dmabuf)
{
	struct npuemu_export *e = dmabuf->priv;

	/* a handle lets one write, so the file has to */
	if (!(dmabuf->file->f_mode & FMODE_WRITE))
		return ERR_PTR(-EACCES);
	if (dmabuf->ops != &export_ops)
		return foreign_get(f->dev, dmabuf, f->ctx);
	if (READ_ONCE(e->bo->revoked))
		return ERR_PTR(-ENODEV);
	npuemu_bo_get(e->bo);
	return e->bo;
}

int npuemu_ioc_bo_import(struct npuemu_file *f, struct npuemu_ioc_bo_import *a)
{
	struct dma_buf *dmabuf;
	struct npuemu_bo *bo;
	int ret;

	if (a->flags)
		return -EINVAL;
	dmabuf = dma_buf_get(a->fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	bo = bo_of(f, dmabuf);
	dma_buf_put(dmabuf);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = npuemu_handle_add(f->ctx, bo, true);
	if (ret > 0) {
		a->handle = ret;
		a->device = bo->dev->index;
		a->bytes = bo->bytes;
		a->room = bo->room;
		a->map_offset = bo->map_offset;
		ret = 0;
	}
	npuemu_bo_put(bo);
	return ret;
}
