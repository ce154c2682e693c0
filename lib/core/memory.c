// SPDX-License-Identifier: MIT
/* The public API: device memory, registered host memory, segments. */
#include <sys/mman.h>
#include "check.h"

/* ---- Memory ------------------------------------------------------------------------ */

NPUEMU_API int npuemu_buf_alloc(struct npuemu *ctx, uint32_t device, uint64_t bytes,
				uint32_t flags, struct npuemu_buf **out)
{
	int err = npuemu_check_worker(ctx, "npuemu_buf_alloc");
	struct npuemu_buf *buf;

	if (err)
		return err;
	if (!out || flags || !bytes)
		return npuemu_fail(-EINVAL, "npuemu_buf_alloc: %s",
				   !out ? "NULL argument" : flags ? "flags must be 0" : "0 bytes");
	err = npuemu_check_device(ctx, device, "npuemu_buf_alloc");
	if (err)
		return err;
	if (bytes >> 48)
		return npuemu_fail(-ENOMEM, "npuemu_buf_alloc: %llu bytes are more than any device has",
				   (unsigned long long)bytes);
	buf = npuemu_new_obj(&npuemu_bufs);
	if (!buf)
		return -ENOMEM;
	buf->ctx = ctx;
	err = ctx->host->buf_alloc(ctx, device, bytes, buf);
	if (err) {
		npuemu_slab_free(&npuemu_bufs, buf);
		return err;
	}
	npuemu_slab_publish(&npuemu_bufs, buf);
	*out = buf;
	return 0;
}

NPUEMU_API int npuemu_buf_free(struct npuemu_buf *buf)
{
	int err = CHECK_OBJ(npuemu_bufs, buf, "npuemu_buf_free");

	if (err)
		return err;
	if (READ_ONCE(buf->segs))
		return npuemu_fail(-EBUSY, "npuemu_buf_free: %u segment(s) of the buffer are registered: unregister them first",
				   buf->segs);
	if (READ_ONCE(buf->maps))
		return npuemu_fail(-EBUSY, "npuemu_buf_free: the buffer is mapped at %u other address(es): unmap it first",
				   buf->maps);
	if (!npuemu_slab_retire(&npuemu_bufs, buf))
		return npuemu_fail(-EBADF, "npuemu_buf_free: freed by another thread just now");
	err = buf->ctx->host->buf_free(buf);
	npuemu_slab_free(&npuemu_bufs, buf);
	return err;
}

NPUEMU_API void *npuemu_buf_ptr(const struct npuemu_buf *buf)
{
	return CHECK_HANDLE(npuemu_bufs, buf, "npuemu_buf_ptr") ? NULL : buf->ptr;
}

NPUEMU_API uint64_t npuemu_buf_bytes(const struct npuemu_buf *buf)
{
	return CHECK_HANDLE(npuemu_bufs, buf, "npuemu_buf_bytes") ? 0 : buf->bytes;
}

NPUEMU_API int npuemu_buf_export(struct npuemu_buf *buf, struct npuemu_handle *handle)
{
	int err = CHECK_OBJ(npuemu_bufs, buf, "npuemu_buf_export");

	if (!err && !handle)
		err = npuemu_fail(-EINVAL, "npuemu_buf_export: NULL argument");
	return err ? err : buf->ctx->host->buf_export(buf, handle);
}

NPUEMU_API int npuemu_buf_import(struct npuemu *ctx, const struct npuemu_handle *handle,
				 struct npuemu_buf **out)
{
	int err = npuemu_check_worker(ctx, "npuemu_buf_import");
	struct npuemu_buf *buf;

	if (!err && (!handle || !out))
		err = npuemu_fail(-EINVAL, "npuemu_buf_import: NULL argument");
	if (err)
		return err;
	buf = npuemu_new_obj(&npuemu_bufs);
	if (!buf)
		return -ENOMEM;
	buf->ctx = ctx;
	err = ctx->host->buf_import(ctx, handle, buf);
	if (err) {
		npuemu_slab_free(&npuemu_bufs, buf);
		return err;
	}
	npuemu_slab_publish(&npuemu_bufs, buf);
	*out = buf;
	return 0;
}

/* ---- At other addresses -------------------------------------------------------------- */

void *npuemu_reserve(void *va, u64 bytes, int flags)
{
	void *p = mmap(va, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	if (p != MAP_FAILED)
		madvise(p, bytes, MADV_DONTFORK);
	return p;
}

static void hide(struct npuemu_buf *buf, void *va)
{
	if (npuemu_reserve(va, buf->room, MAP_FIXED) == MAP_FAILED)
		npuemu_log(NPUEMU_LOG_ERROR, "%p still shows a buffer that was unmapped: %s (vm.max_map_count?)", va,
			   strerror(errno));
}

int npuemu_buf_map(struct npuemu_buf *buf, void *va)
{
	int err = CHECK_OBJ(npuemu_bufs, buf, "npuemu_buf_map");

	if (err)
		return err;
	if (!va || (uintptr_t)va & 4095 || (u64)(uintptr_t)va + buf->room < buf->room)
		return npuemu_fail(-EINVAL, "npuemu_buf_map: %p is not at a page, or too far up", va);
	/* before: who frees it meanwhile sees that, or we see it retired */
	npuemu_fetch_add(&buf->maps, 1);
	err = CHECK_OBJ(npuemu_bufs, buf, "npuemu_buf_map");
	if (!err)
		err = buf->ctx->host->buf_map(buf, (u64)(uintptr_t)va);
	if (err)
		npuemu_fetch_add(&buf->maps, -1u);
	return err;
}

int npuemu_buf_unmap(struct npuemu_buf *buf, void *va)
{
	int err = CHECK_HANDLE(npuemu_bufs, buf, "npuemu_buf_unmap");

	if (err)
		return err;
	err = buf->ctx->host->buf_unmap(buf, (u64)(uintptr_t)va);
	if (err == -ENOENT)
		return npuemu_fail(err, "npuemu_buf_unmap: the buffer is not mapped at %p", va);
	if (err == -ENOMEM)	/* queues still know it there */
		return err;
	hide(buf, va);
	npuemu_fetch_add(&buf->maps, -1u);
	return err;
}

/* ---- For checkers ----------------------------------------------------------------------- */

bool npuemu_guarded;

int npuemu_buf_close(struct npuemu_buf *buf, bool closed)
{
	int err = CHECK_OBJ(npuemu_bufs, buf, "npuemu_buf_close");

	if (err)
		return err;
	return buf->ctx->host->buf_close(buf, closed);
}

void *npuemu_alias(struct npuemu *ctx, u64 va, bool *device)
{
	*device = false;
	return ctx->host->alias(ctx, va, device);
}

/* ---- What other processes may have --------------------------------------------------------- */

int npuemu_exports_own(struct npuemu *ctx, u32 bytes, void **table)
{
	int err = npuemu_check_worker(ctx, "npuemu_exports_own");

	if (!err && (!bytes || bytes > NPUEMU_EXPORT_BYTES))
		err = npuemu_fail(-ENOSPC, "this process offers as much as it can: %u bytes of names", NPUEMU_EXPORT_BYTES);
	return err ? err : ctx->host->exports_own(ctx, bytes, table);
}

int npuemu_exports_of(struct npuemu *ctx, u32 slot, const void **table, u32 *bytes)
{
	int err = npuemu_check_worker(ctx, "npuemu_exports_of");

	if (!err && slot >= NPUEMU_MAX_SLOTS)
		err = npuemu_fail(-EINVAL, "npuemu_exports_of: there is no slot %u", slot);
	return err ? err : ctx->host->exports_of(ctx, slot, table, bytes);
}

/* ---- Host memory ---------------------------------------------------------------------- */

int npuemu_mem_register_at(struct npuemu *ctx, void *ptr, u64 bytes, void *alias, struct npuemu_mem **out)
{
	int err = npuemu_check_worker(ctx, "npuemu_mem_register");
	struct npuemu_mem *mem;

	if (!err && (!out || !ptr || !bytes || (u64)(uintptr_t)ptr + bytes < bytes))
		err = npuemu_fail(-EINVAL, "npuemu_mem_register: NULL, empty or wrapping range");
	if (err)
		return err;
	mem = npuemu_new_obj(&npuemu_mems);
	if (!mem)
		return -ENOMEM;
	mem->ctx = ctx;
	mem->va = (u64)(uintptr_t)ptr;
	mem->bytes = bytes;
	mem->alias = alias;
	err = ctx->host->mem_register(mem);
	if (err) {
		npuemu_slab_free(&npuemu_mems, mem);
		return err;
	}
	npuemu_slab_publish(&npuemu_mems, mem);
	*out = mem;
	return 0;
}

NPUEMU_API int npuemu_mem_register(struct npuemu *ctx, void *ptr, uint64_t bytes,
				   struct npuemu_mem **out)
{
	return npuemu_mem_register_at(ctx, ptr, bytes, NULL, out);
}

NPUEMU_API int npuemu_mem_unregister(struct npuemu_mem *mem)
{
	int err = CHECK_OBJ(npuemu_mems, mem, "npuemu_mem_unregister");

	if (err)
		return err;
	if (!npuemu_slab_retire(&npuemu_mems, mem))
		return npuemu_fail(-EBADF, "npuemu_mem_unregister: done by another thread just now");
	err = mem->ctx->host->mem_unregister(mem);
	npuemu_slab_free(&npuemu_mems, mem);
	return err;
}

NPUEMU_API int npuemu_mem_any(struct npuemu *ctx, int on)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int err = npuemu_check_worker(ctx, "npuemu_mem_any");

	if (err)
		return err;
	/* over the call: who comes second must find it done */
	pthread_mutex_lock(&lock);
	if (!on && !ctx->any)
		err = npuemu_fail(-EINVAL, "npuemu_mem_any: it is not on");
	else if (ctx->any == !on)
		err = ctx->host->mem_any(ctx, on);
	if (!err)
		ctx->any += on ? 1 : -1u;
	pthread_mutex_unlock(&lock);
	return err;
}

/* ---- Segments -------------------------------------------------------------------------- */

static bool access_legal(u32 a)
{
	const u32 r = NPUEMU_ACCESS_READ, w = NPUEMU_ACCESS_WRITE, at = NPUEMU_ACCESS_ATOMIC;

	return a == NPUEMU_ACCESS_LOCAL || a == r || a == (r | w) || a == (r | w | at);
}

NPUEMU_API int npuemu_seg_register(struct npuemu_buf *buf, const struct npuemu_seg_attr *attr,
				   struct npuemu_seg **out)
{
	int err = CHECK_OBJ(npuemu_bufs, buf, "npuemu_seg_register");
	struct npuemu_seg *seg;
	u64 bytes;

	if (!err)
		err = CHECK_STRUCT(attr, "npuemu_seg_register");
	if (err)
		return err;
	if (!out || attr->flags & ~NPUEMU_SEG_NO_TOKEN)
		return npuemu_fail(-EINVAL, "npuemu_seg_register: NULL argument or unknown flags");
	if (buf->imported)
		return npuemu_fail(-EINVAL, "npuemu_seg_register: the buffer belongs to another process, which must register it");
	if (!access_legal(attr->access))
		return npuemu_fail(-EINVAL, "npuemu_seg_register: access %#x is not legal: LOCAL alone, READ, READ|WRITE, or READ|WRITE|ATOMIC",
				   attr->access);
	if (attr->offset >= buf->bytes || attr->bytes > buf->bytes - attr->offset)
		return npuemu_fail(-EINVAL, "npuemu_seg_register: [%llu, +%llu) is not in a buffer of %llu bytes",
				   (unsigned long long)attr->offset, (unsigned long long)attr->bytes,
				   (unsigned long long)buf->bytes);
	bytes = attr->bytes ? attr->bytes : buf->bytes - attr->offset;
	seg = npuemu_new_obj(&npuemu_segs);
	if (!seg)
		return -ENOMEM;
	seg->ctx = buf->ctx;
	seg->buf = buf;
	seg->info.token_value = attr->token_value;
	seg->info.va = (u64)(uintptr_t)buf->ptr + attr->offset;
	seg->info.bytes = bytes;
	seg->info.access = attr->access;
	seg->info.device = buf->device;
	err = buf->ctx->host->seg_register(seg, attr->offset, attr->flags);
	if (err) {
		npuemu_slab_free(&npuemu_segs, seg);
		return err;
	}
	npuemu_fetch_add(&buf->segs, 1);
	npuemu_slab_publish(&npuemu_segs, seg);
	*out = seg;
	return 0;
}

NPUEMU_API int npuemu_seg_query(const struct npuemu_seg *seg, struct npuemu_seg_info *info)
{
	int err = CHECK_OBJ(npuemu_segs, seg, "npuemu_seg_query");

	if (!err && !info)
		err = npuemu_fail(-EINVAL, "npuemu_seg_query: NULL argument");
	if (!err)
		*info = seg->info;
	return err;
}

NPUEMU_API int npuemu_seg_rotate(struct npuemu_seg *seg, uint32_t token_value)
{
	int err = CHECK_OBJ(npuemu_segs, seg, "npuemu_seg_rotate");

	return err ? err : seg->ctx->host->seg_rotate(seg, token_value);
}

NPUEMU_API int npuemu_seg_unregister(struct npuemu_seg *seg)
{
	int err = CHECK_OBJ(npuemu_segs, seg, "npuemu_seg_unregister");

	if (err)
		return err;
	if (!npuemu_slab_retire(&npuemu_segs, seg))
		return npuemu_fail(-EBADF, "npuemu_seg_unregister: done by another thread just now");
	err = seg->ctx->host->seg_unregister(seg);
	/* a peer that did not let go may still write: then the buffer stays busy */
	if (!err)
		npuemu_fetch_add(&seg->buf->segs, -1u);
	npuemu_slab_free(&npuemu_segs, seg);
	return err;
}
