// SPDX-License-Identifier: MIT
/*
 * Buffers, registered host memory and segments.  A buffer is made on its
 * device's file, mapped through it, and entered in the driver's address table
 * at the address it was mapped at: that is how WQEs name it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "kernel.h"

#define CHUNK (1ull << NPUEMU_CHUNK_SHIFT)

/* ---- Which buffer is at an address ------------------------------------------------- */

u32 npuemu_k_place_search(const struct npuemu_kernel *k, u64 va)
{
	u32 lo = 0, hi = k->nplaces;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (k->places[mid].va + k->places[mid].room + k->places[mid].gap <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int place_add(struct npuemu_kernel *k, const struct npuemu_buf *buf, u64 va, u32 slot)
{
	u32 at, room;

	pthread_mutex_lock(&k->lock);
	if (k->nplaces == k->places_room) {
		struct npuemu_kplace *more;

		room = k->places_room ? k->places_room * 2 : 64;
		more = realloc(k->places, room * sizeof(*more));
		if (!more) {
			pthread_mutex_unlock(&k->lock);
			return npuemu_fail(-ENOMEM, "out of memory");
		}
		k->places = more;
		k->places_room = room;
	}
	at = npuemu_k_place_search(k, va);
	memmove(k->places + at + 1, k->places + at, (k->nplaces - at) * sizeof(*k->places));
	k->places[at] = (struct npuemu_kplace){ va, buf->bytes, buf->room, 0, buf->own_view, slot };
	if (va == (u64)(uintptr_t)buf->ptr)
		k->places[at].gap = buf->gap;
	k->nplaces++;
	pthread_mutex_unlock(&k->lock);
	return 0;
}

void npuemu_k_place_delete(struct npuemu_kernel *k, u32 at)
{
	k->nplaces--;
	memmove(k->places + at, k->places + at + 1, (k->nplaces - at) * sizeof(*k->places));
}

static void place_remove(struct npuemu_kernel *k, u64 va)
{
	u32 at;

	pthread_mutex_lock(&k->lock);
	at = npuemu_k_place_search(k, va);
	if (at < k->nplaces && k->places[at].va == va)
		npuemu_k_place_delete(k, at);
	pthread_mutex_unlock(&k->lock);
}

bool npuemu_k_place_find(struct npuemu_kernel *k, u64 va, u64 len, u32 *slot)
{
	const struct npuemu_kplace *p;
	bool found;
	u32 at;

	pthread_mutex_lock(&k->lock);
	at = npuemu_k_place_search(k, va);
	p = &k->places[at];
	found = at < k->nplaces && va >= p->va && va - p->va < p->bytes &&
		len <= p->bytes - (va - p->va);
	if (found)
		*slot = p->slot;
	pthread_mutex_unlock(&k->lock);
	return found;
}

void npuemu_k_places_unmap(struct npuemu_kernel *k)
{
	struct npuemu_kplace *p, *q;

	for (p = k->places; p < k->places + k->nplaces; p++) {
		munmap((void *)(uintptr_t)p->va, p->room + p->gap);
		if (!p->own_view)
			continue;
		munmap(p->own_view, p->room);
		/* mapped elsewhere, too */
		for (q = p + 1; q < k->places + k->nplaces; q++)
			if (q->own_view == p->own_view)
				q->own_view = NULL;
	}
	k->nplaces = 0;
	free(k->held);
	k->held = NULL;
}

/* ---- Buffers -------------------------------------------------------------------------- */

/* The driver backs 2 MiB at a time, and one page table entry can map that much:
 * if the address is right.
 */
static void *map_aligned(int fd, u64 room, u64 gap, u64 offset)
{
	const u64 align = room < CHUNK ? 4096 : CHUNK, all = room + gap + align;
	const int prot = PROT_READ | PROT_WRITE;
	u8 *base, *at, *end;
	void *p;

	if (room < CHUNK && !gap)
		return mmap(NULL, room, prot, MAP_SHARED, fd, (off_t)offset);
	base = npuemu_reserve(NULL, all, 0);
	if (base == MAP_FAILED)
		return MAP_FAILED;
	at = (u8 *)(((uintptr_t)base + align - 1) & ~(uintptr_t)(align - 1));
	p = mmap(at, room, prot, MAP_SHARED | MAP_FIXED, fd, (off_t)offset);
	if (p == MAP_FAILED) {
		int err = errno;

		munmap(base, all);
		errno = err;
		return MAP_FAILED;
	}
	end = at + room + gap;
	if (at > base)
		munmap(base, (size_t)(at - base));
	if (base + all > end)
		munmap(end, (size_t)(base + all - end));
	return p;
}

static void handle_close(struct npuemu_kernel *k, u32 handle)
{
	struct npuemu_ioc_handle a = { .handle = handle };

	npuemu_k_ioctl(k->home, NPUEMU_IOC_BO_CLOSE, &a);
}

/* Map a buffer that has its handle, and make its address known; or let go of it. */
static int buf_map(struct npuemu_kernel *k, struct npuemu_buf *buf, u64 map_offset, u32 slot)
{
	struct npuemu_ioc_va_map a = { .bytes = buf->bytes, .handle = buf->index };
	int fd = npuemu_k_device(k, buf->device), err;
	void *p;

	if (fd < 0) {
		handle_close(k, buf->index);
		return fd;
	}
	buf->gap = npuemu_guard_gap(buf->room);
	p = map_aligned(fd, buf->room, buf->gap, map_offset);
	if (p == MAP_FAILED) {
		err = -errno;
		handle_close(k, buf->index);
		return npuemu_k_failed(&k->base, err == -ENODEV ? err : -ENOMEM,
				       "cannot map %" PRIu64 " bytes of device %u (%s; ulimit -v, or vm.max_map_count?)",
				       buf->room, buf->device, strerror(-err));
	}
	buf->ptr = p;
	buf->off = map_offset;
	a.va = (u64)(uintptr_t)p;
	err = npuemu_k_ioctl(k->home, NPUEMU_IOC_VA_MAP, &a);
	if (err) {
		munmap(p, buf->room + buf->gap);
		handle_close(k, buf->index);
		return npuemu_k_failed(&k->base, err, "cannot enter %#" PRIx64 " in the address table",
				       (u64)a.va);
	}
	npuemu_k_guard_new(buf, fd);
	err = place_add(k, buf, a.va, slot);
	if (err) {
		if (buf->own_view)
			munmap(buf->own_view, buf->room);
		munmap(p, buf->room + buf->gap);
		handle_close(k, buf->index);	/* also takes it out of the table */
	}
	return err;
}

/* -ENOSPC is either of two: tell which. */
static int buf_no_room(struct npuemu_kernel *k, u32 device, u64 bytes)
{
	struct npuemu_ioc_device a = { .device = device };
	u64 room = (bytes + 4095) & ~4095ull, free;
	int err = npuemu_k_ioctl(k->home, NPUEMU_IOC_DEVICE, &a);

	if (err)
		return npuemu_k_failed(&k->base, err, "cannot look at device %u", device);
	free = a.hbm_used < a.hbm_bytes ? a.hbm_bytes - a.hbm_used : 0;
	if (room <= free && k->nplaces - k->held_n >= NPUEMU_CTX_BOS)
		return npuemu_fail(-ENOSPC, "this process holds %u buffers, the most it can",
				   NPUEMU_CTX_BOS);
	return npuemu_fail(-ENOMEM, "out of device memory: %" PRIu64 " bytes asked for, %" PRIu64 " of %" PRIu64 " free on device %u",
			   room, free, (u64)a.hbm_bytes, device);
}

int npuemu_k_buf_alloc(struct npuemu *ctx, u32 device, u64 bytes, struct npuemu_buf *buf)
{
	struct npuemu_kernel *k = npuemu_kernel_of(ctx);
	struct npuemu_ioc_bo_create a = { .bytes = bytes };
	int fd = npuemu_k_device(k, device), err;

	if (fd < 0)
		return fd;
	err = npuemu_k_ioctl(fd, NPUEMU_IOC_BO_CREATE, &a);
	if (err == -ENOSPC)
		return buf_no_room(k, device, bytes);
	if (err)
		return npuemu_k_failed(ctx, err, "cannot make a buffer of %" PRIu64 " bytes on device %u",
				       bytes, device);
	buf->device = device;
	buf->index = a.handle;
	buf->bytes = bytes;
	buf->room = a.room;
	return buf_map(k, buf, a.map_offset, k->about.slot);
}

int npuemu_k_buf_free(struct npuemu_buf *buf)
{
	struct npuemu_kernel *k = npuemu_kernel_of(buf->ctx);
	struct npuemu_ioc_va_unmap a = { .va = (u64)(uintptr_t)buf->ptr };
	int err = npuemu_k_ioctl(k->home, NPUEMU_IOC_VA_UNMAP, &a);

	/* in this order: the address is free for others only when no engine uses it */
	if (!npuemu_k_guard_hold(buf)) {
		place_remove(k, a.va);
		munmap(buf->ptr, buf->room + buf->gap);
	}
	handle_close(k, buf->index);
	if (err == -ETIMEDOUT)
		return npuemu_fail(err, "an engine has not let go of the buffer for 10 s");
	return err && err != -ENODEV ? npuemu_k_failed(buf->ctx, err, "cannot free the buffer at %#" PRIx64,
						       (u64)a.va) : 0;
}

/* ---- Buffers at other addresses, too --------------------------------------------------- */

int npuemu_k_buf_map(struct npuemu_buf *buf, u64 va)
{
	struct npuemu_ioc_va_map a = { .va = va, .bytes = buf->bytes, .handle = buf->index };
	struct npuemu_kernel *k = npuemu_kernel_of(buf->ctx);
	int fd = npuemu_k_device(k, buf->device), err = 0;
	void *at = (void *)(uintptr_t)va;
	u32 slot = k->about.slot;

	if (fd < 0)
		return fd;
	/* before it is visible: the name it is known by may not be taken */
	err = npuemu_k_ioctl(k->home, NPUEMU_IOC_VA_MAP, &a);
	if (err)
		return err == -EEXIST ? npuemu_fail(err, "[%#" PRIx64 ", +%" PRIu64 ") overlaps device memory, or memory registered already",
						    va, buf->room) :
			npuemu_k_failed(buf->ctx, err, "cannot enter %#" PRIx64 " in the address table", va);
	if (mmap(at, buf->room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)buf->off) == MAP_FAILED)
		err = npuemu_k_failed(buf->ctx, errno == ENODEV ? -ENODEV : -ENOMEM,
				      "cannot map %" PRIu64 " bytes of device %u at %p (%s; ulimit -v, or vm.max_map_count?)",
				      buf->room, buf->device, at, strerror(errno));
	npuemu_k_place_find(k, (u64)(uintptr_t)buf->ptr, 1, &slot);
	if (!err)
		err = place_add(k, buf, va, slot);
	if (err) {
		struct npuemu_ioc_va_unmap undo = { .va = va };

		npuemu_k_ioctl(k->home, NPUEMU_IOC_VA_UNMAP, &undo);
		npuemu_reserve(at, buf->room, MAP_FIXED);
	}
	return err;
}

int npuemu_k_buf_unmap(struct npuemu_buf *buf, u64 va)
{
	struct npuemu_kernel *k = npuemu_kernel_of(buf->ctx);
	struct npuemu_ioc_va_unmap a = { .va = va };
	u32 slot;
	int err;

	if (va == (u64)(uintptr_t)buf->ptr || !npuemu_k_place_find(k, va, 1, &slot))
		return -ENOENT;
	err = npuemu_k_ioctl(k->home, NPUEMU_IOC_VA_UNMAP, &a);
	place_remove(k, va);
	/* of a lost context nothing is left that could use it */
	return err && err != -ENODEV ? npuemu_k_failed(buf->ctx, err, "cannot unmap the buffer at %#" PRIx64, va) : 0;
}

/* ---- Names of buffers, for other processes ------------------------------------------------ */

#define HANDLE_MAGIC 0x4c444e484b45504eull	/* "NPEKHNDL" */

/* w: name (4 words), magic, board | slot of the maker and device, bytes, sum */
static u64 handle_sum(const struct npuemu_handle *h)
{
	u64 sum = HANDLE_MAGIC;
	u32 i;

	for (i = 0; i < 7; i++) {
		sum ^= h->w[i];
		sum = npuemu_random(&sum);
	}
	return sum;
}

int npuemu_k_buf_export(struct npuemu_buf *buf, struct npuemu_handle *h)
{
	struct npuemu_kernel *k = npuemu_kernel_of(buf->ctx);
	struct npuemu_ioc_bo_name a = { .handle = buf->index };
	int err;

	if (buf->imported)
		return npuemu_fail(-EINVAL, "this buffer was imported: hand on its owner's handle instead");
	err = npuemu_k_ioctl(k->home, NPUEMU_IOC_BO_NAME, &a);
	if (err)
		return npuemu_k_failed(buf->ctx, err, "cannot export the buffer");
	memcpy(h->w, a.name, sizeof(a.name));
	h->w[4] = HANDLE_MAGIC;
	h->w[5] = (u64)k->about.board_id << 32 | k->about.slot << 8 | buf->device;
	h->w[6] = buf->bytes;
	h->w[7] = handle_sum(h);
	return 0;
}

static int import_failed(struct npuemu_kernel *k, int err, u32 slot)
{
	switch (err) {
	case -EEXIST:
		if (slot == k->about.slot)
			return npuemu_fail(-EINVAL, "the buffer is this process's own: use it as it is");
		return npuemu_fail(err, "this process has imported the buffer already");
	case -ESTALE:
	case -ENOENT:
		return npuemu_fail(-ESTALE, "the exporter (slot %u) has freed the buffer or is gone",
				   slot);
	case -EACCES:
	case -EPERM:
		return npuemu_fail(-EACCES, "the buffer is another user's");
	case -EINVAL:
		return npuemu_fail(err, "not a handle of a buffer on board \"%s\"", k->base.board);
	case -ENOSPC:
		return npuemu_fail(err, "this process holds %u buffers, the most it can",
				   NPUEMU_CTX_BOS);
	default:
		return npuemu_k_failed(&k->base, err, "cannot import the buffer");
	}
}

int npuemu_k_buf_import(struct npuemu *ctx, const struct npuemu_handle *h, struct npuemu_buf *buf)
{
	struct npuemu_kernel *k = npuemu_kernel_of(ctx);
	u32 slot = (u32)h->w[5] >> 8, device = (u32)h->w[5] & 0xff;
	struct npuemu_ioc_bo_open a = { 0 };
	int err;

	if (h->w[4] != HANDLE_MAGIC || h->w[5] >> 32 != k->about.board_id ||
	    device >= k->about.devices || slot >= NPUEMU_MAX_SLOTS || h->w[7] != handle_sum(h))
		return npuemu_fail(-EINVAL, "not a handle of a buffer on board \"%s\"", ctx->board);
	memcpy(a.name, h->w, sizeof(a.name));
	err = npuemu_k_ioctl(k->home, NPUEMU_IOC_BO_OPEN, &a);
	if (err)
		return import_failed(k, err, slot);
	if (a.device != device || a.bytes != h->w[6] || a.owner_slot != slot ||
	    a.device >= k->about.devices) {
		handle_close(k, a.handle);
		return npuemu_fail(-ESTALE, "the handle does not fit the buffer of that name");
	}
	buf->device = a.device;
	buf->index = a.handle;
	buf->bytes = a.bytes;
	buf->room = a.room;
	buf->imported = true;
	return buf_map(k, buf, a.map_offset, a.owner_slot);
}

/* ---- Host memory ------------------------------------------------------------------------------ */

static int mem_map(struct npuemu_kernel *k, const struct npuemu_mem *mem, u32 flags)
{
	struct npuemu_ioc_va_map a = { .va = mem->va, .bytes = mem->bytes, .flags = flags };

	return npuemu_k_ioctl(k->home, NPUEMU_IOC_VA_MAP, &a);
}

/* Fault pages in: 0, or the errno why not all can be read, or written. */
static int touch(const struct npuemu_mem *mem, int how)
{
	u64 from = mem->va & ~4095ull;

	return madvise((void *)(uintptr_t)from, mem->va + mem->bytes - from, how) ? errno : 0;
}

/* Memory that cannot be pinned for writing: 0 if it can be written all the same. */
static int mem_rights(const struct npuemu_mem *mem, u32 *readonly)
{
	switch (touch(mem, MADV_POPULATE_WRITE)) {
	case 0:
		return 0;	/* of a file, say */
	case EINVAL:
		*readonly = NPUEMU_VA_READONLY;
		return touch(mem, MADV_POPULATE_READ) ? -EFAULT : 0;
	default:
		return -EFAULT;
	}
}

static int mem_pageable(struct npuemu_kernel *k, const struct npuemu_mem *mem, u32 flags)
{
	int err;

	if (!(k->about.caps & NPUEMU_CAP_PAGEABLE))
		return -ENOMEM;
	err = mem_map(k, mem, NPUEMU_VA_PAGEABLE | flags);
	if (!err)
		npuemu_log(NPUEMU_LOG_INFO, "[%#" PRIx64 ", +%" PRIu64 ") is registered without pinning it (ulimit -l?): this process copies for the engines",
			   mem->va, mem->bytes);
	return err;
}

/* Pinned where that is allowed and possible; else the process copies. */
static int mem_register(struct npuemu_kernel *k, const struct npuemu_mem *mem)
{
	u32 readonly = 0;
	int err = mem_map(k, mem, NPUEMU_VA_PINNED);

	if (err != -EFAULT && err != -ENOMEM && err != -EPERM)
		return err;
	if (mem_rights(mem, &readonly))
		return -EFAULT;
	if (readonly && err == -EFAULT)
		err = mem_map(k, mem, NPUEMU_VA_PINNED | readonly);
	/* for that the program's own view would have to stay open */
	if (err && mem->alias)
		return err;
	return err ? mem_pageable(k, mem, readonly) : 0;
}

int npuemu_k_mem_register(struct npuemu_mem *mem)
{
	int err = mem_register(npuemu_kernel_of(mem->ctx), mem);

	switch (err) {
	case -EFAULT:
		return npuemu_fail(err, "[%#" PRIx64 ", +%" PRIu64 ") is not all mapped and readable",
				   mem->va, mem->bytes);
	case -EEXIST:
		return npuemu_fail(err, "[%#" PRIx64 ", +%" PRIu64 ") overlaps device memory, or memory registered already",
				   mem->va, mem->bytes);
	case -ENOSPC:
		return npuemu_fail(err, "the address table of this process has %u entries, the most it can",
				   NPUEMU_CTX_PLACES);
	default:
		return err ? npuemu_k_failed(mem->ctx, err, "cannot register [%#" PRIx64 ", +%" PRIu64 ")",
					     mem->va, mem->bytes) : 0;
	}
}

int npuemu_k_mem_unregister(struct npuemu_mem *mem)
{
	struct npuemu_kernel *k = npuemu_kernel_of(mem->ctx);
	struct npuemu_ioc_va_unmap a = { .va = mem->va };
	int err = npuemu_k_ioctl(k->home, NPUEMU_IOC_VA_UNMAP, &a);

	return err ? npuemu_k_failed(mem->ctx, err, "cannot unregister [%#" PRIx64 ", +%" PRIu64 ")",
				     mem->va, mem->bytes) : 0;
}

int npuemu_k_mem_any(struct npuemu *ctx, bool on)
{
	struct npuemu_kernel *k = npuemu_kernel_of(ctx);
	struct npuemu_ioc_va_map map = { .flags = NPUEMU_VA_REST | NPUEMU_VA_PAGEABLE };
	struct npuemu_ioc_va_unmap unmap = { .va = NPUEMU_VA_UNMAP_REST };
	int err = on ? npuemu_k_ioctl(k->home, NPUEMU_IOC_VA_MAP, &map) :
		       npuemu_k_ioctl(k->home, NPUEMU_IOC_VA_UNMAP, &unmap);

	return err ? npuemu_k_failed(ctx, err, "cannot %s memory that is not registered",
				     on ? "use" : "stop using") : 0;
}

/* ---- Segments ------------------------------------------------------------------------------------ */

int npuemu_k_seg_register(struct npuemu_seg *seg, u64 off, u32 flags)
{
	struct npuemu_kernel *k = npuemu_kernel_of(seg->ctx);
	struct npuemu_ioc_seg_create a = {
		.handle = seg->buf->index,
		.flags = flags & NPUEMU_SEG_NO_TOKEN ? NPUEMU_SEGF_NO_TOKEN : 0,
		.access = seg->info.access,
		.token_value = seg->info.token_value,
		.offset = off,
		.bytes = seg->info.bytes,
		.va = seg->info.va,
	};
	int err = npuemu_k_ioctl(k->home, NPUEMU_IOC_SEG_CREATE, &a);

	if (err == -ENOSPC)
		return npuemu_fail(err, "this process offers %u segments, the most it can",
				   NPUEMU_CTX_SEGS);
	if (err)
		return npuemu_k_failed(seg->ctx, err, "cannot register a segment of device %u",
				       seg->info.device);
	seg->index = a.token_id;
	seg->info.token_id = a.token_id;
	seg->info.token_value = a.token_value;
	memcpy(seg->info.eid.w, a.eid, sizeof(a.eid));
	return 0;
}

int npuemu_k_seg_rotate(struct npuemu_seg *seg, u32 token_value)
{
	struct npuemu_kernel *k = npuemu_kernel_of(seg->ctx);
	struct npuemu_ioc_seg_rotate a = {
		.token_id = seg->info.token_id, .token_value = token_value,
	};
	int err = npuemu_k_ioctl(k->home, NPUEMU_IOC_SEG_ROTATE, &a);

	if (err)
		return npuemu_k_failed(seg->ctx, err, "cannot change the token of segment %#x",
				       seg->info.token_id);
	seg->info.token_value = a.token_value;
	return 0;
}

int npuemu_k_seg_unregister(struct npuemu_seg *seg)
{
	struct npuemu_kernel *k = npuemu_kernel_of(seg->ctx);
	struct npuemu_ioc_seg_destroy a = { .token_id = seg->info.token_id };
	int err = npuemu_k_ioctl(k->home, NPUEMU_IOC_SEG_DESTROY, &a);

	if (err == -ETIMEDOUT)
		return npuemu_fail(err, "an engine has not let go of segment %#x for 10 s; it is revoked all the same",
				   seg->info.token_id);
	return err ? npuemu_k_failed(seg->ctx, err, "cannot revoke segment %#x",
				     seg->info.token_id) : 0;
}
