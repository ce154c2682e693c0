// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * How contexts hold buffers: handles, and the names by which processes of one
 * user open each other's.
 *
 * Handles are looked up under ctx->lock.  Names are of the whole module; their
 * table holds no references, and the last reference takes the name out of it.
 */
#include <linux/random.h>
#include "npuemu.h"

#define NAME_MAGIC	0x6f62756d6575706eull	/* "npuemubo" */

static DEFINE_XARRAY_ALLOC1(names);	/* id -> npuemu_bo */
static u32 names_next;			/* under the lock of names */

/* ---- Handles ------------------------------------------------------------------------------ */

static unsigned long first_page(const struct npuemu_bo *bo)
{
	return bo->map_offset >> PAGE_SHIFT;
}

/* Offsets are unique among all devices, so an overlap is the same buffer. */
static int handle_insert(struct npuemu_ctx *ctx, struct npuemu_bo_handle *h)
{
	unsigned long first = first_page(h->bo);
	int err;

	if (mtree_load(&ctx->maps, first))
		return -EEXIST;
	if (ctx->nbos >= NPUEMU_CTX_BOS)
		return -ENOSPC;
	err = xa_alloc_cyclic(&ctx->bos, &h->handle, h, XA_LIMIT(1, S32_MAX), &ctx->bo_next,
			      GFP_KERNEL_ACCOUNT);
	if (err < 0)
		return err == -EBUSY ? -ENOSPC : err;
	err = mtree_insert_range(&ctx->maps, first, first + (h->bo->room >> PAGE_SHIFT) - 1, h,
				 GFP_KERNEL_ACCOUNT);
	if (err) {
		xa_erase(&ctx->bos, h->handle);
		return err;
	}
	ctx->nbos++;
	return h->handle;
}

static void handle_erase(struct npuemu_ctx *ctx, struct npuemu_bo_handle *h)
{
	mtree_erase(&ctx->maps, first_page(h->bo));
	xa_erase(&ctx->bos, h->handle);
	ctx->nbos--;
}

/* It is in no table any more; no lock held: freeing memory takes long. */
static void handle_free(struct npuemu_bo_handle *h)
{
	if (!h->imported) {
		mutex_lock(&h->bo->lock);
		WRITE_ONCE(h->bo->freed, true);
		mutex_unlock(&h->bo->lock);
	}
	npuemu_bo_put(h->bo);
	kfree(h);
	npuemu_leak(NPUEMU_LEAK_HANDLE, -1);
}

int npuemu_handle_add(struct npuemu_ctx *ctx, struct npuemu_bo *bo, bool imported)
{
	struct npuemu_bo_handle *h;
	int ret;

	h = kzalloc(sizeof(*h), GFP_KERNEL_ACCOUNT);
	if (!h)
		return -ENOMEM;
	npuemu_bo_get(bo);
	h->bo = bo;
	h->imported = imported;
	mutex_lock(&ctx->lock);
	ret = handle_insert(ctx, h);
	mutex_unlock(&ctx->lock);
	if (ret < 0) {
		npuemu_bo_put(bo);
		kfree(h);
		return ret;
	}
	npuemu_leak(NPUEMU_LEAK_HANDLE, 1);
	return ret;
}

struct npuemu_bo_handle *npuemu_handle_find(struct npuemu_ctx *ctx, u32 handle)
{
	return handle ? xa_load(&ctx->bos, handle) : NULL;
}

struct npuemu_bo *npuemu_handle_bo(struct npuemu_ctx *ctx, u32 handle)
{
	struct npuemu_bo *bo = ERR_PTR(-ENOENT);
	struct npuemu_bo_handle *h;

	mutex_lock(&ctx->lock);
	h = npuemu_handle_find(ctx, handle);
	if (h) {
		bo = h->bo;
		npuemu_bo_get(bo);
	}
	mutex_unlock(&ctx->lock);
	return bo;
}

void npuemu_handles_drop(struct npuemu_ctx *ctx)
{
	struct npuemu_bo_handle *h;
	unsigned long at;

	for (;;) {
		at = 0;
		mutex_lock(&ctx->lock);
		h = xa_find(&ctx->bos, &at, ULONG_MAX, XA_PRESENT);
		if (h)
			handle_erase(ctx, h);
		mutex_unlock(&ctx->lock);
		if (!h)
			return;
		handle_free(h);
	}
}

int npuemu_ioc_bo_create(struct npuemu_file *f, struct npuemu_ioc_bo_create *a)
{
	struct npuemu_bo *bo;
	int ret;

	if (a->flags)
		return -EINVAL;
	bo = npuemu_bo_new(f->dev, a->bytes, f->ctx);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = npuemu_handle_add(f->ctx, bo, false);
	if (ret > 0) {
		a->handle = ret;
		a->room = bo->room;
		a->map_offset = bo->map_offset;
		ret = 0;
	}
	npuemu_bo_put(bo);
	return ret;
}

int npuemu_ioc_bo_close(struct npuemu_file *f, struct npuemu_ioc_handle *a)
{
	struct npuemu_ctx *ctx = f->ctx;
	struct npuemu_bo_handle *h;
	int err = 0;

	if (a->pad)
		return -EINVAL;
	mutex_lock(&ctx->lock);
	h = npuemu_handle_find(ctx, a->handle);
	if (!h) {
		err = -ENOENT;
	} else if (h->segs) {
		err = -EBUSY;
	} else {
		npuemu_places_remove(ctx, a->handle);
		handle_erase(ctx, h);
	}
	mutex_unlock(&ctx->lock);
	if (!err)
		handle_free(h);
	return err;
}

/* ---- Names ---------------------------------------------------------------------------------- */

/* bo->lock held.  The nonce is there before anybody can find the buffer. */
static int name_make(struct npuemu_bo *bo)
{
	u32 id;
	int err;

	if (bo->revoked)
		return -ENODEV;
	if (bo->freed)
		return -ESTALE;
	if (bo->name_id)
		return 0;
	get_random_bytes(bo->name, sizeof(bo->name));
	err = xa_alloc_cyclic(&names, &id, bo, xa_limit_31b, &names_next, GFP_KERNEL_ACCOUNT);
	if (err < 0)
		return err == -EBUSY ? -ENOSPC : err;
	bo->name_id = id;
	return 0;
}

int npuemu_ioc_bo_name(struct npuemu_file *f, struct npuemu_ioc_bo_name *a)
{
	struct npuemu_bo *bo;
	int err;

	if (a->pad)
		return -EINVAL;
	bo = npuemu_handle_bo(f->ctx, a->handle);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	mutex_lock(&bo->lock);
	err = name_make(bo);
	if (!err) {
		a->name[0] = bo->name_id;
		a->name[1] = bo->name[0];
		a->name[2] = bo->name[1];
		a->name[3] = NAME_MAGIC;
	}
	mutex_unlock(&bo->lock);
	npuemu_bo_put(bo);
	return err;
}

/*
 * The buffer of a name, referenced.  A wrong nonce and a name whose buffer is
 * gone look alike: nobody learns which ids are in use.
 */
static struct npuemu_bo *name_find(const u64 *name, kuid_t uid)
{
	struct npuemu_bo *bo;

	if (name[3] != NAME_MAGIC || !name[0] || name[0] > S32_MAX)
		return ERR_PTR(-EINVAL);
	xa_lock(&names);
	bo = xa_load(&names, name[0]);
	if (!bo || (bo->name[0] ^ name[1]) | (bo->name[1] ^ name[2]))
		bo = ERR_PTR(-ESTALE);
	else if (!uid_eq(bo->uid, uid))
		bo = ERR_PTR(-EACCES);
	else if (READ_ONCE(bo->freed) || READ_ONCE(bo->revoked) || !kref_get_unless_zero(&bo->ref))
		bo = ERR_PTR(-ESTALE);
	xa_unlock(&names);
	return bo;
}

int npuemu_ioc_bo_open(struct npuemu_file *f, struct npuemu_ioc_bo_open *a)
{
	struct npuemu_bo *bo;
	int ret;

	if (a->pad)
		return -EINVAL;
	bo = name_find(a->name, f->ctx->uid);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = npuemu_handle_add(f->ctx, bo, true);
	if (ret > 0) {
		a->handle = ret;
		a->device = bo->dev->index;
		a->bytes = bo->bytes;
		a->room = bo->room;
		a->map_offset = bo->map_offset;
		a->owner_slot = bo->owner_slot;
		ret = 0;
	}
	npuemu_bo_put(bo);
	return ret;
}

void npuemu_name_drop(struct npuemu_bo *bo)
{
	if (bo->name_id)
		xa_erase(&names, bo->name_id);
}

void npuemu_names_exit(void)
{
	xa_destroy(&names);
}
