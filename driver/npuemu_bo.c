// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Buffers: HBM in chunks of 2 MiB that get memory when touched, and what
 * processes map of them.
 *
 * {see that it is not revoked, back, insert} and {revoke, zap} both happen
 * under bo->lock, so nothing is mapped after a reset.  What engines see of a
 * chunk is a pointer that appears once and stays until the last reference.
 */
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include "npuemu.h"

LIST_HEAD(npuemu_bo_list);
DEFINE_MUTEX(npuemu_bo_list_lock);	/* the list; outside bo->lock */

/* ---- Memory ------------------------------------------------------------------------ */

/* Lock-free, and never beyond @limit for a moment. */
static bool charge(atomic64_t *used, u64 bytes, u64 limit)
{
	s64 was = atomic64_read(used);

	do {
		if (bytes > limit || (u64)was > limit - bytes)
			return false;
	} while (!atomic64_try_cmpxchg(used, &was, was + bytes));
	return true;
}

static u64 chunk_count(const struct npuemu_bo *bo)
{
	return DIV_ROUND_UP_ULL(bo->room, NPUEMU_CHUNK_BYTES);
}

static u64 chunk_bytes(const struct npuemu_bo *bo, u64 i)
{
	return min_t(u64, NPUEMU_CHUNK_BYTES, bo->room - (i << NPUEMU_CHUNK_SHIFT));
}

/* bo->lock held. */
static int back_chunk(struct npuemu_bo *bo, u64 i)
{
	u64 bytes = chunk_bytes(bo, i);
	struct mem_cgroup *old;
	void *p;

	if (bo->arena.chunk[i])
		return 0;
	if (bo->revoked)
		return -ENODEV;
	if (!charge(&npuemu_backed_bytes, bytes, npuemu_budget))
		return -ENOMEM;
	/* the maker's cgroup pays, whoever touches it first */
	old = set_active_memcg(bo->memcg);
	p = npuemu_vmalloc_chunk(bytes);
	set_active_memcg(old);
	if (!p) {
		atomic64_sub(bytes, &npuemu_backed_bytes);
		return -ENOMEM;
	}
	atomic64_add(bytes, &bo->dev->hbm_backed);
	npuemu_leak(NPUEMU_LEAK_CHUNK, 1);
	/* pairs with the acquire in npuemu_arena_at(): zeros before the pointer */
	smp_store_release(&bo->arena.chunk[i], p);
	return 0;
}

int npuemu_bo_back(struct npuemu_bo *bo, u64 off, u64 len)
{
	u64 i, last;
	int err = 0;

	if (!bo->arena.chunk || !len)
		return 0;
	if (off > bo->room || len > bo->room - off)
		return -EINVAL;
	last = (off + len - 1) >> NPUEMU_CHUNK_SHIFT;
	for (i = off >> NPUEMU_CHUNK_SHIFT; i <= last && !err; i++) {
		if (READ_ONCE(bo->arena.chunk[i]))
			continue;
		mutex_lock(&bo->lock);
		err = back_chunk(bo, i);
		mutex_unlock(&bo->lock);
		cond_resched();
	}
	return err;
}

/* Chunks do not reach past their buffer, so there is nothing to keep in [lo, hi). */
int npuemu_op_back(struct npuemu_chip *chip, const struct npuemu_arena *arena, u64 off, u64 len,
		   u64 lo, u64 hi)
{
	return npuemu_bo_back(container_of(arena, struct npuemu_bo, arena), off, len);
}

static void chunks_free(struct npuemu_bo *bo)
{
	u64 i, bytes;

	for (i = 0; i < chunk_count(bo); i++) {
		if (!bo->arena.chunk[i])
			continue;
		bytes = chunk_bytes(bo, i);
		vfree(bo->arena.chunk[i]);
		atomic64_sub(bytes, &npuemu_backed_bytes);
		atomic64_sub(bytes, &bo->dev->hbm_backed);
		npuemu_leak(NPUEMU_LEAK_CHUNK, -1);
		cond_resched();
	}
	kvfree(bo->arena.chunk);
	atomic64_sub(bo->room, &bo->dev->hbm_used);
}

/* ---- Making and freeing -------------------------------------------------------------- */

static void bo_release(struct kref *ref)
{
	struct npuemu_bo *bo = container_of(ref, struct npuemu_bo, ref);

	might_sleep();
	mutex_lock(&npuemu_bo_list_lock);
	list_del(&bo->node);
	mutex_unlock(&npuemu_bo_list_lock);
	npuemu_name_drop(bo);
	if (bo->foreign)
		npuemu_foreign_release(bo);
	if (bo->arena.chunk)
		chunks_free(bo);
	mem_cgroup_put(bo->memcg);
	mutex_destroy(&bo->lock);
	kfree(bo);
	npuemu_leak(NPUEMU_LEAK_BO, -1);
}

void npuemu_bo_put(struct npuemu_bo *bo)
{
	kref_put(&bo->ref, bo_release);
}

struct npuemu_bo *npuemu_bo_alloc(struct npuemu_dev *dev, u64 bytes, struct npuemu_ctx *maker)
{
	struct npuemu_bo *bo;

	bo = kzalloc(sizeof(*bo), GFP_KERNEL_ACCOUNT);
	if (!bo)
		return NULL;
	kref_init(&bo->ref);
	mutex_init(&bo->lock);
	INIT_LIST_HEAD(&bo->node);
	bo->dev = dev;
	bo->bytes = bytes;
	bo->room = PAGE_ALIGN(bytes);
	bo->map_offset = npuemu_dev_range(dev, bo->room);
	bo->resets = READ_ONCE(dev->resets);
	bo->owner_slot = maker->slot;
	bo->owner_life = READ_ONCE(maker->life);
	bo->uid = maker->uid;
	bo->arena.bytes = bo->room;
	bo->arena.shares = &bo->share;
	bo->arena.nshares = 1;
	bo->arena.device = dev->index;
	npuemu_leak(NPUEMU_LEAK_BO, 1);
	return bo;
}

void npuemu_bo_publish(struct npuemu_bo *bo)
{
	mutex_lock(&npuemu_bo_list_lock);
	list_add_tail(&bo->node, &npuemu_bo_list);
	mutex_unlock(&npuemu_bo_list_lock);
}

struct npuemu_bo *npuemu_bo_new(struct npuemu_dev *dev, u64 bytes, struct npuemu_ctx *maker)
{
	struct npuemu_bo *bo;
	u64 room;

	if (!bytes)
		return ERR_PTR(-EINVAL);
	if (bytes > NPUEMU_BO_MAX)
		return ERR_PTR(-ENOSPC);
	room = PAGE_ALIGN(bytes);
	/* first: what is refused shall not use up addresses of the device */
	if (!charge(&dev->hbm_used, room, npuemu_machine.hbm_bytes))
		return ERR_PTR(-ENOSPC);
	bo = npuemu_bo_alloc(dev, bytes, maker);
	if (!bo)
		goto no_bo;
	bo->arena.chunk = kvcalloc(chunk_count(bo), sizeof(*bo->arena.chunk), GFP_KERNEL_ACCOUNT);
	if (!bo->arena.chunk)
		goto no_table;
	bo->memcg = get_mem_cgroup_from_mm(current->mm);
	npuemu_bo_publish(bo);
	return bo;

no_table:
	npuemu_bo_put(bo);
no_bo:
	atomic64_sub(room, &dev->hbm_used);
	return ERR_PTR(-ENOMEM);
}

struct npuemu_bo *npuemu_bo_find_foreign(struct npuemu_dev *dev, struct dma_buf *dmabuf,
					 kuid_t uid)
{
	struct npuemu_bo *bo, *found = NULL;

	mutex_lock(&npuemu_bo_list_lock);
	list_for_each_entry(bo, &npuemu_bo_list, node) {
		/* one that is just going counts as none */
		if (bo->foreign == dmabuf && bo->dev == dev && uid_eq(bo->uid, uid) &&
		    !READ_ONCE(bo->revoked) && kref_get_unless_zero(&bo->ref)) {
			found = bo;
			break;
		}
	}
	mutex_unlock(&npuemu_bo_list_lock);
	return found;
}

void npuemu_bos_revoke(struct npuemu_dev *dev)
{
	struct npuemu_bo *bo;

	mutex_lock(&npuemu_bo_list_lock);
	list_for_each_entry(bo, &npuemu_bo_list, node) {
		if (bo->dev != dev || bo->revoked)
			continue;
		mutex_lock(&bo->lock);
		WRITE_ONCE(bo->revoked, true);
		unmap_mapping_range(npuemu_mapping(dev), bo->map_offset, bo->room, 1);
		mutex_unlock(&bo->lock);
	}
	mutex_unlock(&npuemu_bo_list_lock);
}

/* ---- Mappings --------------------------------------------------------------------------- */

static u64 vma_off(const struct vm_area_struct *vma, unsigned long addr)
{
	const struct npuemu_bo *bo = vma->vm_private_data;

	return ((u64)vma->vm_pgoff << PAGE_SHIFT) + (addr - vma->vm_start) - bo->map_offset;
}

/*
 * Insert what the mapping shows of the chunk at @off, the page that faulted
 * first: it alone must succeed.  Chunks have all their memory or none, and 512
 * faults take far longer than 512 entries.
 */
static vm_fault_t map_chunk(struct vm_fault *vmf, struct npuemu_bo *bo, u64 off)
{
	struct vm_area_struct *vma = vmf->vma;
	u64 i = off >> NPUEMU_CHUNK_SHIFT, start = i << NPUEMU_CHUNK_SHIFT;
	unsigned long here = vmf->address & PAGE_MASK, at, end;
	u8 *p = bo->arena.chunk[i];
	u64 first = vma_off(vma, vma->vm_start);
	vm_fault_t ret;

	ret = vmf_insert_pfn(vma, here, vmalloc_to_pfn(p + (off - start)));
	if (ret != VM_FAULT_NOPAGE)
		return ret;
	at = start > first ? vma->vm_start + (start - first) : vma->vm_start;
	end = min_t(u64, vma->vm_end, here - (off - start) + chunk_bytes(bo, i));
	for (; at < end; at += PAGE_SIZE)
		if (at != here &&
		    vmf_insert_pfn(vma, at, vmalloc_to_pfn(p + (vma_off(vma, at) - start))) !=
		    VM_FAULT_NOPAGE)
			break;
	return ret;
}

/*
 * No memory is SIGBUS, not VM_FAULT_OOM: that means "try again" to the kernel
 * unless it can free some by killing, which it cannot when it is the budget or
 * the cgroup of somebody else that is used up.
 */
static vm_fault_t bo_fault(struct vm_fault *vmf)
{
	struct npuemu_bo *bo = vmf->vma->vm_private_data;
	u64 off = vma_off(vmf->vma, vmf->address & PAGE_MASK);
	vm_fault_t ret = VM_FAULT_SIGBUS;

	if (off >= bo->room)
		return ret;
	mutex_lock(&bo->lock);
	if (!bo->revoked && !back_chunk(bo, off >> NPUEMU_CHUNK_SHIFT))
		ret = map_chunk(vmf, bo, off);
	mutex_unlock(&bo->lock);
	return ret;
}

/* For debuggers: pages of the mapping cannot be pinned, so they ask. */
static int bo_access(struct vm_area_struct *vma, unsigned long addr, void *buf, int len, int write)
{
	struct npuemu_bo *bo = vma->vm_private_data;
	u64 off = vma_off(vma, addr);
	int n, err = 0;
	u8 *p;

	if (off >= bo->room || len <= 0)
		return -EFAULT;
	if (write && !(vma->vm_flags & VM_WRITE))
		return -EACCES;
	n = min3((u64)len, (u64)(vma->vm_end - addr),
		 NPUEMU_CHUNK_BYTES - (off & (NPUEMU_CHUNK_BYTES - 1)));
	mutex_lock(&bo->lock);
	if (bo->revoked)
		err = -EIO;
	else if (write)
		err = back_chunk(bo, off >> NPUEMU_CHUNK_SHIFT);
	if (!err) {
		p = npuemu_arena_at(&bo->arena, off);
		if (write)
			memcpy(p, buf, n);
		else if (p)
			memcpy(buf, p, n);
		else
			memset(buf, 0, n);
	}
	mutex_unlock(&bo->lock);
	return err ? err : n;
}

static void bo_vm_open(struct vm_area_struct *vma)
{
	npuemu_bo_get(vma->vm_private_data);
}

static void bo_vm_close(struct vm_area_struct *vma)
{
	npuemu_bo_put(vma->vm_private_data);
}

static int bo_mremap(struct vm_area_struct *vma)
{
	return -EPERM;
}

/* Splitting is fine: each part has its reference and its own vm_pgoff. */
static const struct vm_operations_struct bo_vm_ops = {
	.open = bo_vm_open,
	.close = bo_vm_close,
	.fault = bo_fault,
	.access = bo_access,
	.mremap = bo_mremap,
};

int npuemu_bo_mmap(struct npuemu_bo *bo, struct vm_area_struct *vma, u64 off)
{
	u64 len = vma->vm_end - vma->vm_start;
	int err;

	/* not VM_SHARED, which a shared mapping of a read-only file has not */
	if (!(vma->vm_flags & VM_MAYSHARE) || !PAGE_ALIGNED(off))
		return -EINVAL;
	if (off > bo->room || len > bo->room - off)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	if (READ_ONCE(bo->revoked))
		return -ENODEV;
	if (bo->foreign) {
		err = dma_buf_mmap(bo->foreign, vma, off >> PAGE_SHIFT);
		if (!err)
			npuemu_vm_flags(vma, VM_DONTCOPY | VM_DONTDUMP, VM_MAYEXEC);
		return err;
	}
	npuemu_bo_get(bo);
	vma->vm_private_data = bo;
	vma->vm_ops = &bo_vm_ops;
	/* for a dma-buf, whose offsets begin at 0, as well: the zap goes by it */
	vma->vm_pgoff = (bo->map_offset + off) >> PAGE_SHIFT;
	/*
	 * PFNMAP: pages are not pinned, so none is written after a reset.  IO: and
	 * a process cannot ask for them to be inherited or dumped after all.
	 */
	npuemu_vm_flags(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTCOPY | VM_DONTDUMP,
			VM_MAYEXEC);
	return 0;
}

/* ---- The module comes and goes -------------------------------------------------------- */

int npuemu_bo_init(void)
{
	return 0;
}

/* Every reference is some file's or mapping's, and those hold the module. */
void npuemu_bo_exit(void)
{
	if (!list_empty(&npuemu_bo_list))
		pr_err("npuemu: %d buffers are left at unload\n",
		       atomic_read(&npuemu_leaks[NPUEMU_LEAK_BO]));
	npuemu_names_exit();
}
