// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Entries from user space: open, release, ioctl and mmap.
 *
 * A context belongs to the address space that opened it.  Somebody else who
 * got hold of the file (fork, SCM_RIGHTS) may ask what it is, and close it: the
 * addresses in it would mean nothing there.
 */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>
#include "npuemu.h"

#define IOC_ROOM	256

#define ON_DEV		0x1u
#define ON_CTL		0x2u
#define ADMIN		0x4u
#define OUTSIDE		0x8u	/* looks at the state of the device itself */
#define EARLY		0x10u	/* the file may still JOIN afterwards */

typedef int (*npuemu_ioc_fn)(struct npuemu_file *f, void *arg);

static int ioc_reset(struct npuemu_file *f, struct npuemu_ioc_device_ctl *a, bool unplug)
{
	int err = 0, first = 0;
	u32 i;

	if (a->pad)
		return -EINVAL;
	if (a->device != NPUEMU_ALL_DEVICES) {
		if (a->device >= npuemu_machine.devices)
			return -EINVAL;
		i = array_index_nospec(a->device, npuemu_machine.devices);
		return npuemu_dev_reset(&npuemu_devs[i], unplug);
	}
	for (i = 0; i < npuemu_machine.devices; i++) {
		err = npuemu_dev_reset(&npuemu_devs[i], unplug);
		if (err && err != -ENODEV && !first)
			first = err;
	}
	return first;
}

static int npuemu_ioc_device_reset(struct npuemu_file *f, struct npuemu_ioc_device_ctl *a)
{
	return ioc_reset(f, a, false);
}

static int npuemu_ioc_device_unplug(struct npuemu_file *f, struct npuemu_ioc_device_ctl *a)
{
	return ioc_reset(f, a, true);
}

static int npuemu_ioc_join(struct npuemu_file *f, struct npuemu_ioc_join *a)
{
	return a->pad ? -EINVAL : npuemu_join(f, a);
}

#define IOC(name, wrapped, places)					\
	[_IOC_NR(NPUEMU_IOC_##name)] = {				\
		NPUEMU_IOC_##name, places, wrap_##wrapped }

/* One wrapper each, so that every call goes through a pointer of its own type. */
#define WRAP(fn, type)							\
	static int wrap_##fn(struct npuemu_file *f, void *a)		\
	{								\
		BUILD_BUG_ON(sizeof(type) > IOC_ROOM);			\
		return npuemu_ioc_##fn(f, a);				\
	}

WRAP(query, struct npuemu_ioc_query)
WRAP(join, struct npuemu_ioc_join)
WRAP(bo_create, struct npuemu_ioc_bo_create)
WRAP(bo_close, struct npuemu_ioc_handle)
WRAP(bo_export, struct npuemu_ioc_bo_export)
WRAP(bo_import, struct npuemu_ioc_bo_import)
WRAP(bo_name, struct npuemu_ioc_bo_name)
WRAP(bo_open, struct npuemu_ioc_bo_open)
WRAP(va_map, struct npuemu_ioc_va_map)
WRAP(va_unmap, struct npuemu_ioc_va_unmap)
WRAP(seg_create, struct npuemu_ioc_seg_create)
WRAP(seg_rotate, struct npuemu_ioc_seg_rotate)
WRAP(seg_destroy, struct npuemu_ioc_seg_destroy)
WRAP(cq_create, struct npuemu_ioc_cq_create)
WRAP(cq_destroy, struct npuemu_ioc_handle)
WRAP(cq_eventfd, struct npuemu_ioc_cq_eventfd)
WRAP(rq_create, struct npuemu_ioc_rq_create)
WRAP(rq_destroy, struct npuemu_ioc_handle)
WRAP(rq_query, struct npuemu_ioc_rq_query)
WRAP(queue_create, struct npuemu_ioc_queue_create)
WRAP(queue_destroy, struct npuemu_ioc_handle)
WRAP(queue_modify, struct npuemu_ioc_queue_modify)
WRAP(queue_query, struct npuemu_ioc_queue_query)
WRAP(wait, struct npuemu_ioc_wait)
WRAP(device, struct npuemu_ioc_device)
WRAP(link, struct npuemu_ioc_link)
WRAP(processes, struct npuemu_ioc_list)
WRAP(queues, struct npuemu_ioc_list)
WRAP(fault_inject, struct npuemu_ioc_fault)
WRAP(fault_clear, struct npuemu_ioc_handle)
WRAP(device_reset, struct npuemu_ioc_device_ctl)
WRAP(device_unplug, struct npuemu_ioc_device_ctl)

static const struct npuemu_ioc {
	u32 cmd;
	u32 on;
	npuemu_ioc_fn fn;
} iocs[] = {
	IOC(QUERY, query, EARLY | OUTSIDE | ON_DEV | ON_CTL),
	IOC(JOIN, join, EARLY | OUTSIDE | ON_DEV),
	IOC(BO_CREATE, bo_create, ON_DEV),
	IOC(BO_CLOSE, bo_close, ON_DEV),
	IOC(BO_EXPORT, bo_export, ON_DEV),
	IOC(BO_IMPORT, bo_import, ON_DEV),
	IOC(BO_NAME, bo_name, ON_DEV),
	IOC(BO_OPEN, bo_open, ON_DEV),
	IOC(VA_MAP, va_map, OUTSIDE | ON_DEV),
	IOC(VA_UNMAP, va_unmap, OUTSIDE | ON_DEV),
	IOC(SEG_CREATE, seg_create, ON_DEV),
	IOC(SEG_ROTATE, seg_rotate, ON_DEV),
	IOC(SEG_DESTROY, seg_destroy, ON_DEV),
	IOC(CQ_CREATE, cq_create, ON_DEV),
	IOC(CQ_DESTROY, cq_destroy, ON_DEV),
	IOC(CQ_EVENTFD, cq_eventfd, ON_DEV),
	IOC(RQ_CREATE, rq_create, ON_DEV),
	IOC(RQ_DESTROY, rq_destroy, ON_DEV),
	IOC(RQ_QUERY, rq_query, ON_DEV),
	IOC(QUEUE_CREATE, queue_create, ON_DEV),
	IOC(QUEUE_DESTROY, queue_destroy, ON_DEV),
	IOC(QUEUE_MODIFY, queue_modify, ON_DEV),
	IOC(QUEUE_QUERY, queue_query, ON_DEV),
	IOC(WAIT, wait, OUTSIDE | ON_DEV),
	IOC(DEVICE, device, ON_DEV | ON_CTL),
	IOC(LINK, link, ON_DEV | ON_CTL),
	IOC(PROCESSES, processes, OUTSIDE | ON_DEV | ON_CTL),
	IOC(QUEUES, queues, OUTSIDE | ON_DEV | ON_CTL),
	IOC(FAULT_INJECT, fault_inject, ON_CTL | ADMIN),
	IOC(FAULT_CLEAR, fault_clear, ON_CTL | ADMIN),
	IOC(DEVICE_RESET, device_reset, ON_CTL | ADMIN),
	IOC(DEVICE_UNPLUG, device_unplug, ON_CTL | ADMIN),
};

/* What does not hang on the size the caller's struct has. */
#define IOC_KIND(cmd)	((cmd) & ~(u32)(_IOC_SIZEMASK << _IOC_SIZESHIFT))

static const struct npuemu_ioc *ioc_find(struct npuemu_file *f, u32 cmd)
{
	const struct npuemu_ioc *e;
	u32 nr = _IOC_NR(cmd);

	if (nr >= ARRAY_SIZE(iocs))
		return NULL;
	e = &iocs[array_index_nospec(nr, ARRAY_SIZE(iocs))];
	if (!e->fn || IOC_KIND(e->cmd) != IOC_KIND(cmd) || !(e->on & (f->dev ? ON_DEV : ON_CTL)))
		return NULL;
	return e;
}

/*
 * Inside the device, so that a reset waits for it; but not what may wait for a
 * page of user space, and so for ever: the copies in and out are done outside,
 * and some calls look after themselves.
 */
static int ioc_call(struct npuemu_file *f, const struct npuemu_ioc *e, void *arg)
{
	int err, idx;

	if (!f->dev || e->on & OUTSIDE)
		return e->fn(f, arg);
	if (!npuemu_dev_enter(f->dev, &idx))
		return -ENODEV;
	err = npuemu_ctx_check(READ_ONCE(f->ctx));
	if (!err)
		err = e->fn(f, arg);
	npuemu_dev_exit(f->dev, idx);
	return err;
}

/* Copied once in, used, copied once out. */
static long ioc_run(struct npuemu_file *f, const struct npuemu_ioc *e, void __user *arg,
		    size_t size)
{
	u64 room[IOC_ROOM / sizeof(u64)] = { 0 };
	size_t have = _IOC_SIZE(e->cmd);
	bool done;
	int err = 0;

	BUILD_BUG_ON(sizeof(struct npuemu_export_arg) > IOC_ROOM);
	if (have) {
		err = copy_struct_from_user(room, have, arg, size);
		if (err)
			return err;
	}
	err = ioc_call(f, e, room);
	done = !err;
	if (done && have && copy_to_user(arg, room, min(have, size)))
		err = -EFAULT;
	/* a descriptor becomes one only now: what user space was not told of must not stay */
	if (done && e->cmd == NPUEMU_IOC_BO_EXPORT)
		npuemu_export_done((struct npuemu_export_arg *)room, !err);
	return err;
}

/*
 * The context to work with, from now on for ever: 0, or -EPERM for somebody who
 * did not open it.
 */
static int ctx_use(struct npuemu_file *f)
{
	int err;

	/* pairs with join(): the context it stays with */
	if (smp_load_acquire(&f->used))
		return current->mm == READ_ONCE(f->ctx)->mm ? 0 : -EPERM;
	mutex_lock(&f->lock);
	err = current->mm == f->ctx->mm ? 0 : -EPERM;
	/* a stranger does not keep the owner from a JOIN */
	if (!err)
		WRITE_ONCE(f->used, true);
	mutex_unlock(&f->lock);
	return err;
}

static long npuemu_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct npuemu_file *f = file->private_data;
	const struct npuemu_ioc *e = ioc_find(f, cmd);
	int err;

	if (!e)
		return -ENOTTY;
	if (e->on & ADMIN && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (f->dev && !(e->on & EARLY)) {
		err = ctx_use(f);
		if (err)
			return err;
	}
	return ioc_run(f, e, (void __user *)arg, _IOC_SIZE(cmd));
}

static int npuemu_open(struct inode *inode, struct file *file)
{
	u32 minor = iminor(inode);
	struct npuemu_file *f;
	int err = 0, idx;

	if (minor != NPUEMU_MAX_DEVICES && minor >= npuemu_machine.devices)
		return -ENODEV;
	f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);
	if (!f)
		return -ENOMEM;
	mutex_init(&f->lock);
	if (minor != NPUEMU_MAX_DEVICES) {
		f->dev = &npuemu_devs[array_index_nospec(minor, npuemu_machine.devices)];
		if (!npuemu_dev_enter(f->dev, &idx)) {
			kfree(f);
			return -ENODEV;
		}
		f->ctx = npuemu_ctx_new(f->dev);
		npuemu_dev_exit(f->dev, idx);
		if (IS_ERR(f->ctx)) {
			err = PTR_ERR(f->ctx);
			kfree(f);
			return err;
		}
		file->f_mapping = npuemu_mapping(f->dev);
	}
	file->private_data = f;
	return nonseekable_open(inode, file);
}

/* Every close() of a descriptor, and the end of a process. */
static int npuemu_flush(struct file *file, fl_owner_t id)
{
	struct npuemu_file *f = file->private_data;

	if (!f->dev)
		return 0;
	mutex_lock(&f->lock);
	npuemu_pager_flush(f->ctx);
	mutex_unlock(&f->lock);
	return 0;
}

static int npuemu_release(struct inode *inode, struct file *file)
{
	struct npuemu_file *f = file->private_data;

	if (f->ctx)
		npuemu_ctx_release(f->ctx);
	mutex_destroy(&f->lock);
	kfree(f);
	return 0;
}

static int map_something(struct npuemu_file *f, struct vm_area_struct *vma)
{
	u64 off = (u64)vma->vm_pgoff << PAGE_SHIFT, len = vma->vm_end - vma->vm_start;
	struct npuemu_ctx *ctx = READ_ONCE(f->ctx);
	struct npuemu_bo_handle *h;
	struct npuemu_bo *bo = NULL;
	int err;

	if (f->dev == ctx->home && off - ctx->window < NPUEMU_WINDOW_BYTES)
		return npuemu_ring_mmap(ctx, vma, off - ctx->window, len);
	mutex_lock(&ctx->lock);
	h = mtree_load(&ctx->maps, vma->vm_pgoff);
	if (h && h->bo->dev == f->dev) {
		bo = h->bo;
		npuemu_bo_get(bo);
	}
	mutex_unlock(&ctx->lock);
	if (!bo)
		return -EINVAL;
	err = npuemu_bo_mmap(bo, vma, off - bo->map_offset);
	npuemu_bo_put(bo);
	return err;
}

static int npuemu_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct npuemu_file *f = file->private_data;
	int err, idx;

	if (!f->dev)
		return -ENODEV;
	err = ctx_use(f);
	if (err)
		return err;
	if (!npuemu_dev_enter(f->dev, &idx))
		return -ENODEV;
	err = npuemu_ctx_check(READ_ONCE(f->ctx));
	if (!err)
		err = map_something(f, vma);
	npuemu_dev_exit(f->dev, idx);
	return err;
}

const struct file_operations npuemu_fops = {
	.owner = THIS_MODULE,
	.open = npuemu_open,
	.flush = npuemu_flush,
	.release = npuemu_release,
	.unlocked_ioctl = npuemu_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = npuemu_mmap,
	.show_fdinfo = npuemu_show_fdinfo,
	.llseek = noop_llseek,
};

struct npuemu_file *npuemu_file_of(struct file *file)
{
	return file->f_op == &npuemu_fops ? file->private_data : NULL;
}
