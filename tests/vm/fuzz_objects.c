// SPDX-License-Identifier: MIT
/*
 * fuzz_ioctl: ioctls of buffers, dma-bufs, addresses and segments.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fuzz.h"

/* ---- Buffers ------------------------------------------------------------- */

static int bo_close(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->bo);
	struct npuemu_ioc_handle a = { .handle = t ? t->id : NOBODY };
	int rc = fz_ioctl(z, fz_fd(z), NPUEMU_IOC_BO_CLOSE, &a);

	if (t && (!rc || rc == -ENOENT))
		fz_drop(&z->bo, t);
	return rc;
}

static int op_bo_create(struct fz *z)
{
	struct npuemu_ioc_bo_create a = { .bytes = 1 + fz_below(z, 256 << 10) };
	u32 file = fz_below(z, z->nfd);
	int rc;

	if (fz_one_in(z, 8))
		a.bytes = 1ull << fz_below(z, 33);
	if (z->bo.n == FZ_SET)
		return bo_close(z);
	rc = fz_ioctl(z, z->fd[file], NPUEMU_IOC_BO_CREATE, &a);
	if (!rc)
		fz_add(&z->bo, a.handle, file, a.map_offset, a.room);
	return rc;
}

static int op_bo_close(struct fz *z)
{
	return bo_close(z);
}

static int op_bo_name(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->bo);
	struct npuemu_ioc_bo_name a = { .handle = t ? t->id : NOBODY };
	int rc = fz_ioctl(z, fz_fd(z), NPUEMU_IOC_BO_NAME, &a);

	if (!rc)
		memcpy(z->me->name[fz_below(z, 4)], a.name, sizeof(a.name));
	return rc;
}

static int op_bo_open(struct fz *z)
{
	struct fz_proc *p = &z->shared->proc[fz_below(z, FZ_PROCS)];
	struct npuemu_ioc_bo_open a = { 0 };
	int rc;

	memcpy(a.name, p->name[fz_below(z, 4)], sizeof(a.name));
	if (z->bo.n == FZ_SET)
		return bo_close(z);
	rc = fz_ioctl(z, fz_fd(z), NPUEMU_IOC_BO_OPEN, &a);
	if (!rc)
		fz_add(&z->bo, a.handle, fz_below(z, z->nfd), a.map_offset, a.room);
	return rc;
}

static int buf_close(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->buf);

	if (!t)
		return -ENOENT;
	fz_begin(z, 0, NULL, 0);
	close((int)t->id);
	fz_drop(&z->buf, t);
	return 0;
}

static int op_bo_export(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->bo);
	struct npuemu_ioc_bo_export a = {
		.handle = t ? t->id : NOBODY,
		.flags = O_CLOEXEC | (fz_one_in(z, 3) ? 0 : O_RDWR),
	};
	int rc;

	if (z->buf.n == FZ_SET)
		return buf_close(z);
	rc = fz_ioctl(z, fz_fd(z), NPUEMU_IOC_BO_EXPORT, &a);
	if (!rc)
		fz_add(&z->buf, a.fd, 0, 0, t ? t->len : 4096);
	return rc;
}

static int op_bo_import(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->buf);
	struct npuemu_ioc_bo_import a = { .fd = t ? (int)t->id : -1 };
	u32 file = fz_below(z, z->nfd);
	int rc;

	if (fz_one_in(z, 16))
		a.fd = fz_fd(z);
	if (z->bo.n == FZ_SET)
		return bo_close(z);
	rc = fz_ioctl(z, z->fd[file], NPUEMU_IOC_BO_IMPORT, &a);
	if (!rc)
		fz_add(&z->bo, a.handle, file, a.map_offset, a.room);
	return rc;
}

/* A dma-buf of somebody else's: /dev/udmabuf or a heap, if there is one. */
static int op_foreign(struct fz *z)
{
	u32 bytes = 4096u << fz_below(z, 6);
	int dev, fd = -1, mem;

	if (z->buf.n == FZ_SET)
		return buf_close(z);
	fz_begin(z, 0, NULL, 0);
	if (fz_one_in(z, 2)) {
		struct dma_heap_allocation_data a = {
			.len = bytes, .fd_flags = O_RDWR | O_CLOEXEC,
		};

		dev = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);
		if (dev >= 0 && !ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &a))
			fd = (int)a.fd;
	} else {
		struct udmabuf_create a = { .size = bytes, .flags = UDMABUF_FLAGS_CLOEXEC };

		dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
		mem = memfd_create("fuzz", MFD_ALLOW_SEALING | MFD_CLOEXEC);
		a.memfd = (u32)mem;
		if (dev >= 0 && mem >= 0 && !ftruncate(mem, bytes) &&
		    !fcntl(mem, F_ADD_SEALS, F_SEAL_SHRINK))
			fd = ioctl(dev, UDMABUF_CREATE, &a);
		if (mem >= 0)
			close(mem);
	}
	if (dev >= 0)
		close(dev);
	if (fd < 0)
		return -ENODEV;
	fz_add(&z->buf, fd, 1, 0, bytes);
	return 0;
}

static int op_buf_use(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->buf);
	struct dma_buf_sync a = { 0 };
	void *p;

	if (!t)
		return -ENOENT;
	if (fz_one_in(z, 4))
		return buf_close(z);
	fz_begin(z, 0, NULL, 0);
	if (fz_one_in(z, 2)) {
		/* udmabuf takes offence at two directions (DMA-API debugging says so), and
		 * what is exported may be one that was imported
		 */
		a.flags = DMA_BUF_SYNC_RW | (fz_below(z, 2) ? DMA_BUF_SYNC_END : 0);
		if (fz_one_in(z, 8))	/* no direction, or no such flag: refused before that */
			a.flags = fz_below(z, 2) ? a.flags & DMA_BUF_SYNC_END : a.flags | 8;
		return ioctl((int)t->id, DMA_BUF_IOCTL_SYNC, &a) < 0 ? -errno : 0;
	}
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, (int)t->id,
		 (off_t)fz_below(z, 4) << 12);
	if (p == MAP_FAILED)
		return -errno;
	if (z->map.n == FZ_SET)
		munmap(p, 4096);
	else
		fz_add(&z->map, 0, 0, (u64)p, 4096);
	return 0;
}

/* ---- Addresses and segments ---------------------------------------------- */

static int va_unmap(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->place);
	struct npuemu_ioc_va_unmap a = { .va = t ? t->at : 4096 };
	int rc;

	if (fz_one_in(z, 8)) {
		a.va = NPUEMU_VA_UNMAP_REST;
		t = NULL;
	}
	rc = fz_ioctl(z, fz_fd(z), NPUEMU_IOC_VA_UNMAP, &a);

	if (t && (!rc || rc == -ENOENT))
		fz_drop(&z->place, t);
	return rc;
}

static int op_va_map(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->bo);
	struct npuemu_ioc_va_map a = { .handle = t ? t->id : NOBODY };
	int rc;

	a.va = 0x100000000000ull + (fz_next(&z->rng) % (1ull << 30) & ~0xfffull);
	a.bytes = t && t->len > 4096 ? (1 + fz_next(&z->rng) % (t->len / 4096)) * 4096 : 4096;
	if (fz_one_in(z, 3)) {		/* memory of this process; some of it device memory */
		struct fz_thing *m = fz_one_in(z, 4) ? fz_any(z, &z->map) : NULL;

		a.handle = 0;
		a.va = m ? m->at : (u64)z->rig.host + fz_below(z, 2 * FZ_BYTES);
		a.bytes = 1 + fz_below(z, 40000);
		a.flags = fz_one_in(z, 2) ? NPUEMU_VA_PINNED : NPUEMU_VA_PAGEABLE;
	}
	if (fz_one_in(z, 4))
		a.flags |= NPUEMU_VA_READONLY;
	if (fz_one_in(z, 16)) {
		struct npuemu_ioc_va_map rest = { .flags = NPUEMU_VA_REST | NPUEMU_VA_PAGEABLE };

		return fz_ioctl(z, fz_fd(z), NPUEMU_IOC_VA_MAP, &rest);
	}
	if (z->place.n == FZ_SET)
		return va_unmap(z);
	rc = fz_ioctl(z, fz_fd(z), NPUEMU_IOC_VA_MAP, &a);
	if (!rc)
		fz_add(&z->place, 0, 0, a.va, a.bytes);
	return rc;
}

static int op_va_unmap(struct fz *z)
{
	return va_unmap(z);
}

static int seg_destroy(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->seg);
	struct npuemu_ioc_seg_destroy a = { .token_id = t ? t->id : NOBODY };
	int rc = fz_ioctl(z, fz_fd(z), NPUEMU_IOC_SEG_DESTROY, &a);

	if (t && (!rc || rc == -ENOENT))
		fz_drop(&z->seg, t);
	return rc;
}

static int op_seg_create(struct fz *z)
{
	static const u32 rights[] = {
		NPUEMU_ACCESS_LOCAL, NPUEMU_ACCESS_READ, NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE,
		NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE | NPUEMU_ACCESS_ATOMIC,
	};
	struct fz_thing *t = fz_any(z, &z->bo);
	struct npuemu_ioc_seg_create a = {
		.handle = t ? t->id : NOBODY,
		.flags = fz_one_in(z, 4) ? NPUEMU_SEGF_NO_TOKEN : 0,
		.access = rights[fz_below(z, 4)],
		/* what was rounded up does not count */
		.bytes = t && t->len > 4096 ? 1 + fz_next(&z->rng) % (t->len - 4095) : 1,
		.va = 0x200000000000ull,
	};
	struct fz_target *target = &z->me->target[1 + fz_below(z, FZ_SEGS - 1)];
	int rc;

	if (z->seg.n == FZ_SET)
		return seg_destroy(z);
	if (!(a.flags & NPUEMU_SEGF_NO_TOKEN) && fz_one_in(z, 2))
		a.token_value = (u32)fz_next(&z->rng);
	rc = fz_ioctl(z, fz_fd(z), NPUEMU_IOC_SEG_CREATE, &a);
	if (rc)
		return rc;
	fz_add(&z->seg, a.token_id, 0, a.va, a.bytes);
	target->va = a.va;
	target->len = a.bytes;
	target->token_id = a.token_id;
	target->token_value = a.token_value;
	memcpy(target->eid, a.eid, sizeof(a.eid));
	return 0;
}

static int op_seg_rotate(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->seg);
	struct npuemu_ioc_seg_rotate a = { .token_id = t ? t->id : NOBODY };

	return fz_ioctl(z, fz_fd(z), NPUEMU_IOC_SEG_ROTATE, &a);
}

static int op_seg_destroy(struct fz *z)
{
	return seg_destroy(z);
}

const struct fz_op fz_object_ops[] = {
	{ "BO_CREATE", op_bo_create, 30, 1, false },
	{ "BO_CLOSE", op_bo_close, 20, 1, false },
	{ "BO_NAME", op_bo_name, 30, 12, false },
	{ "BO_OPEN", op_bo_open, 20, 1, false },
	{ "BO_EXPORT", op_bo_export, 20, 1, false },
	{ "BO_IMPORT", op_bo_import, 20, 1, false },
	{ "a foreign dma-buf", op_foreign, 6, 1, true },
	{ "use of a dma-buf", op_buf_use, 20, 1, false },
	{ "VA_MAP", op_va_map, 20, 1, false },
	{ "VA_UNMAP", op_va_unmap, 6, 1, false },
	{ "SEG_CREATE", op_seg_create, 20, 1, false },
	{ "SEG_ROTATE", op_seg_rotate, 40, 12, false },
	{ "SEG_DESTROY", op_seg_destroy, 6, 1, false },
	{ NULL, NULL, 0, 0, false }
};
