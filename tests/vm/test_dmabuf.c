// SPDX-License-Identifier: MIT
/*
 * dma-bufs: ours in other processes and on other devices, others' (udmabuf, vgem,
 * dma-heaps) here; the bytes seen from both sides, by CPU and by engine.
 */
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "raw.h"

#define BYTES	(3 * MIB)
#define RW	(PROT_READ | PROT_WRITE)

static int export(struct raw *r, uint32_t handle, uint32_t flags)
{
	struct npuemu_ioc_bo_export a = { .handle = handle, .flags = flags };

	raw_is(raw_ioctl(r->fd, NPUEMU_IOC_BO_EXPORT, &a), 0);
	sys_true(a.fd > 2, "descriptor %d", a.fd);
	return a.fd;
}

static int try_import(struct raw *r, int fd, struct npuemu_ioc_bo_import *a)
{
	memset(a, 0, sizeof(*a));
	a->fd = fd;
	return raw_ioctl(r->fd, NPUEMU_IOC_BO_IMPORT, a);
}

/* Imported, mapped and in the address table.  @file: of the device it is on. */
static void import(struct raw *r, struct raw *file, int fd, struct raw_bo *b)
{
	struct npuemu_ioc_bo_import a;

	raw_is(try_import(r, fd, &a), 0);
	memset(b, 0, sizeof(*b));
	sys_eq(a.device, file->device);
	b->r = file;
	b->handle = a.handle;
	b->room = a.room;
	b->offset = a.map_offset;
	sys_true(a.bytes <= a.room, "%llu of %llu bytes", (unsigned long long)a.bytes,
		 (unsigned long long)a.room);
	raw_bo_map(b);
}

/* A queue to copy with. */
struct mover {
	struct raw_cq cq;
	struct raw_q q;
};

static void mover_make(struct mover *m, struct raw *r, uint32_t device)
{
	raw_cq_make(r, &m->cq, 64);
	raw_q_make(r, &m->q, &m->cq, device, RAW_SDMA, 64);
}

static void move(struct mover *m, void *dst, const void *src, uint64_t bytes)
{
	raw_post_copy(&m->q, dst, src, bytes);
	raw_completes(&m->q, NPUEMU_ST_SUCCESS);
}

static void sync_cpu(int fd, uint64_t flags)
{
	struct dma_buf_sync s = { .flags = flags };

	raw_is(raw_ioctl(fd, DMA_BUF_IOCTL_SYNC, &s), 0);
}

/* ---- Ours, elsewhere ------------------------------------------------------------------ */

/* The other process: sees what the exporter wrote, writes with CPU and engine. */
static void importer(int fd, void *arg)
{
	uint32_t device = *(uint32_t *)arg;
	struct raw_bo own, b;
	struct raw r, file;
	struct mover m;
	int buf, dev;

	buf = raw_recv_fd(fd);
	raw_open(&r, device);
	mover_make(&m, &r, device);
	raw_bo_make(&r, &own, BYTES);
	/* the buffer is on device 0, whoever imports it */
	dev = raw_node(0);
	raw_is(raw_ioctl(dev, NPUEMU_IOC_JOIN, &(struct npuemu_ioc_join){ .fd = r.fd }), 0);
	file = r;
	file.fd = dev;
	file.device = 0;
	import(&r, &file, buf, &b);
	close(buf);
	sys_eq(b.room, BYTES);
	sys_is_filled("the exporter's", b.p, BYTES, 1);
	move(&m, own.p, b.p, BYTES);
	sys_is_filled("the exporter's, by engine", own.p, BYTES, 1);
	sys_fill(own.p, BYTES, 2);
	move(&m, b.p, own.p, BYTES / 2);
	sys_fill(b.p + BYTES / 2, BYTES / 2, 3);
	sys_go(fd);
	sys_wait_go(fd);
	/* the exporter is gone, and its buffer is not */
	sys_is_filled("after the exporter's end", b.p + BYTES / 2, BYTES / 2, 3);
	move(&m, b.p, own.p, BYTES);
	sys_same("after the exporter's end", b.p, own.p, BYTES);
}

static void to_another(uint32_t device)
{
	unsigned char *want;
	struct raw_child c;
	struct raw_bo b;
	struct mover m;
	struct raw r;
	int fd;

	raw_fork(&c, importer, &device);
	raw_open(&r, 0);
	mover_make(&m, &r, 0);
	raw_bo_make(&r, &b, BYTES);
	sys_fill(b.p, BYTES, 1);
	fd = export(&r, b.handle, O_RDWR | O_CLOEXEC);
	raw_send_fd(c.fd, fd);
	close(fd);
	sys_wait_go(c.fd);
	want = mmap(NULL, BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sys_true(want != MAP_FAILED, "mmap");
	sys_fill(want, BYTES, 2);
	sys_same("the importer's engine", b.p, want, BYTES / 2);
	sys_is_filled("the importer's CPU", b.p + BYTES / 2, BYTES / 2, 3);
	munmap(want, BYTES);
	munmap(b.p, b.room);
	raw_close(&r);
	sys_go(c.fd);
	raw_join(&c);
}

static void between_processes(void **state)
{
	(void)state;
	to_another(0);
}

static void between_devices(void **state)
{
	(void)state;
	to_another(1);
}

/* Its own again: the same memory, one handle. */
static void self_import(void **state)
{
	struct npuemu_ioc_bo_import a;
	struct npuemu_ioc_device d = { 0 };
	unsigned char *p;
	struct raw_bo b, again;
	struct raw r, s;
	int fd;

	(void)state;
	raw_open(&r, 0);
	raw_open(&s, 0);
	raw_bo_make(&r, &b, BYTES);
	fd = export(&r, b.handle, O_RDWR | O_CLOEXEC);
	raw_is(try_import(&r, fd, &a), -EEXIST);
	raw_is(try_import(&s, fd, &a), 0);
	raw_is(try_import(&s, fd, &a), -EEXIST);
	p = mmap(NULL, BYTES, RW, MAP_SHARED, fd, 0);
	sys_true(p != MAP_FAILED, "mmap of the dma-buf: %s", strerror(errno));
	sys_fill(b.p, BYTES, 5);
	sys_same("through the dma-buf", p, b.p, BYTES);
	p[BYTES - 1] ^= 1;
	sys_eq(p[BYTES - 1], b.p[BYTES - 1]);
	munmap(p, BYTES);
	/* memory is counted once */
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_DEVICE, &d), 0);
	sys_eq(d.hbm_used, BYTES);
	/* when the first handle is gone, it can be had again */
	munmap(b.p, b.room);
	raw_is(raw_bo_close(&r, b.handle), 0);
	import(&r, &r, fd, &again);
	sys_fill(again.p, BYTES, 6);
	raw_bo_drop(&again);
	close(fd);
	raw_close(&s);
	raw_close(&r);
}

static void descriptors(void **state)
{
	struct npuemu_ioc_bo_import a;
	struct raw_bo b;
	struct raw r, s;
	off_t size;
	int fd;

	(void)state;
	raw_open(&r, 0);
	raw_open(&s, 0);
	raw_bo_create(&r, &b, BYTES - 5000);
	fd = export(&r, b.handle, O_RDWR | O_CLOEXEC);
	sys_true(fcntl(fd, F_GETFD) & FD_CLOEXEC, "O_CLOEXEC");
	size = lseek(fd, 0, SEEK_END);
	sys_eq(size, b.room);
	sync_cpu(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW);
	sync_cpu(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW);
	raw_is(raw_sys(mmap(NULL, b.room + 4096, RW, MAP_SHARED, fd, 0)), -EINVAL);
	raw_is(raw_sys(mmap(NULL, 4096, RW, MAP_SHARED, fd, (off_t)b.room)), -EINVAL);
	raw_is(raw_sys(mmap(NULL, 4096, RW, MAP_PRIVATE, fd, 0)), -EINVAL);
	close(fd);
	fd = export(&r, b.handle, 0);
	sys_true(!(fcntl(fd, F_GETFD) & FD_CLOEXEC), "not O_CLOEXEC");
	sys_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	raw_is(raw_sys(mmap(NULL, 4096, RW, MAP_SHARED, fd, 0)), -EACCES);
	raw_is(raw_sys(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0)), -EPERM);
	raw_is(try_import(&s, fd, &a), -EACCES);
	close(fd);
	raw_close(&s);
	raw_close(&r);
}

/* ---- Others', here -------------------------------------------------------------------- */

/* A dma-buf that is @cpu for the one who made it: both directions, both ways. */
static void exchange(const char *who, int fd, unsigned char *cpu, uint64_t bytes)
{
	struct npuemu_ioc_device d = { .device = 1 };
	struct npuemu_ioc_bo_import a;
	struct raw_bo own, b;
	struct mover m;
	struct raw r;

	raw_open(&r, 1);
	mover_make(&m, &r, 1);
	raw_bo_make(&r, &own, bytes);
	import(&r, &r, fd, &b);
	sys_eq(b.room, bytes);
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_DEVICE, &d), 0);
	sys_eq(d.hbm_used, bytes);	/* it takes no HBM */
	sync_cpu(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW);
	sys_fill(cpu, bytes, 7);
	sync_cpu(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW);
	move(&m, own.p, b.p, bytes);
	sys_is_filled(who, own.p, bytes, 7);
	sys_is_filled(who, b.p, bytes, 7);
	sys_fill(own.p, bytes, 8);
	move(&m, b.p, own.p, bytes);
	sync_cpu(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ);
	sys_is_filled(who, cpu, bytes, 8);
	sync_cpu(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ);
	/* odd places, and nothing beside them */
	memset(cpu, 0xee, 64);
	raw_post_copy(&m.q, b.p + 13, own.p + 3, 17);
	raw_completes(&m.q, NPUEMU_ST_SUCCESS);
	sys_is_byte("before it", cpu, 13, 0xee);
	sys_same("at odd places", cpu + 13, own.p + 3, 17);
	sys_is_byte("behind it", cpu + 30, 34, 0xee);
	raw_is(try_import(&r, fd, &a), -EEXIST);
	/* the exporter closes: what was imported stays */
	munmap(cpu, bytes);
	close(fd);
	move(&m, own.p, b.p, bytes);
	sys_same("after the exporter's end", own.p, b.p, bytes);
	raw_bo_drop(&b);
	munmap(own.p, own.room);
	raw_close(&r);
}

/* A udmabuf over a memfd of its own; -1: there is no such driver. */
static int udmabuf(uint64_t bytes, int *memfd)
{
	struct udmabuf_create c = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = bytes };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;

	if (dev < 0)
		return -1;
	*memfd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	sys_true(*memfd >= 0 && !ftruncate(*memfd, (off_t)bytes) &&
		 !fcntl(*memfd, F_ADD_SEALS, F_SEAL_SHRINK), "memfd: %s", strerror(errno));
	c.memfd = (uint32_t)*memfd;
	fd = ioctl(dev, UDMABUF_CREATE, &c);
	sys_true(fd >= 0, "UDMABUF_CREATE: %s", strerror(errno));
	close(dev);
	return fd;
}

static void from_udmabuf(void **state)
{
	unsigned char *cpu;
	int memfd, fd;

	(void)state;
	fd = udmabuf(BYTES, &memfd);
	if (fd < 0)
		raw_skip("no /dev/udmabuf in this kernel");
	cpu = mmap(NULL, BYTES, RW, MAP_SHARED, memfd, 0);
	sys_true(cpu != MAP_FAILED, "mmap");
	exchange("udmabuf", fd, cpu, BYTES);
	close(memfd);
}

/* Two contexts of a user share it; a reset of the device takes it away. */
static void udmabuf_shared(void **state)
{
	struct npuemu_ioc_device_ctl reset = { .device = 1 };
	struct npuemu_ioc_bo_export ex = { .flags = O_CLOEXEC };
	struct raw_bo a, b, own;
	struct raw r, s;
	struct mover m;
	int memfd, fd, ctl;

	(void)state;
	fd = udmabuf(BYTES, &memfd);
	if (fd < 0)
		raw_skip("no /dev/udmabuf in this kernel");
	raw_open(&r, 1);
	raw_open(&s, 1);
	import(&r, &r, fd, &a);
	import(&s, &s, fd, &b);
	a.p[12345] = 99;
	sys_eq(b.p[12345], 99);
	mover_make(&m, &s, 1);
	raw_bo_make(&s, &own, 8192);
	move(&m, own.p, b.p + 12288, 4096);
	sys_eq(own.p[12345 - 12288], 99);
	ex.handle = a.handle;
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_BO_EXPORT, &ex), -EOPNOTSUPP);
	ex.flags = O_RDWR | O_CLOEXEC;
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_BO_EXPORT, &ex), 0);
	close(ex.fd);
	ctl = raw_ctl();
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_DEVICE_RESET, &reset), 0);
	close(ctl);
	munmap(a.p, a.room);
	munmap(b.p, b.room);
	munmap(own.p, own.room);
	raw_close(&s);
	raw_close(&r);
	close(fd);
	close(memfd);
}

static void from_heap(void **state)
{
	struct dma_heap_allocation_data h = { .len = BYTES, .fd_flags = O_RDWR | O_CLOEXEC };
	int heap = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);
	unsigned char *cpu;

	(void)state;
	if (heap < 0)
		raw_skip("no /dev/dma_heap/system in this kernel");
	raw_is(raw_ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &h), 0);
	close(heap);
	cpu = mmap(NULL, BYTES, RW, MAP_SHARED, (int)h.fd, 0);
	sys_true(cpu != MAP_FAILED, "mmap of a heap's: %s", strerror(errno));
	exchange("dma-heap", (int)h.fd, cpu, BYTES);
}

/* What it takes of drm/drm.h, which is not everywhere. */
struct drm_create_dumb {
	uint32_t height, width, bpp, flags, handle, pitch;
	uint64_t size;
};

struct drm_prime {
	uint32_t handle, flags;
	int32_t fd;
};

static int vgem_open(void)
{
	struct {
		int major, minor, patch;
		size_t name_len;
		char *name;
		size_t date_len;
		char *date;
		size_t desc_len;
		char *desc;
	} v;
	char path[32], name[16];

	for (int i = 0; i < 16; i++) {
		int fd;

		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		memset(&v, 0, sizeof(v));
		memset(name, 0, sizeof(name));
		v.name = name;
		v.name_len = sizeof(name) - 1;
		if (!ioctl(fd, _IOWR('d', 0x00, v), &v) && !strcmp(name, "vgem"))
			return fd;
		close(fd);
	}
	return -1;
}

static void from_vgem(void **state)
{
	struct drm_create_dumb c = { .height = 1024, .width = 1024, .bpp = 32 };
	struct drm_prime p = { .flags = O_RDWR | O_CLOEXEC };
	unsigned char *cpu;
	int drm = vgem_open();

	(void)state;
	if (drm < 0)
		raw_skip("no vgem in this kernel");
	raw_is(raw_ioctl(drm, _IOWR('d', 0xb2, c), &c), 0);
	p.handle = c.handle;
	raw_is(raw_ioctl(drm, _IOWR('d', 0x2d, p), &p), 0);
	close(drm);
	cpu = mmap(NULL, c.size, RW, MAP_SHARED, p.fd, 0);
	sys_true(cpu != MAP_FAILED, "mmap of vgem's: %s", strerror(errno));
	exchange("vgem", p.fd, cpu, c.size);
}

/* What is no dma-buf. */
static void not_one(void **state)
{
	struct npuemu_ioc_bo_import a;
	struct raw r;
	int fds[3];

	(void)state;
	raw_open(&r, 0);
	fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	fds[1] = memfd_create("test", MFD_CLOEXEC);
	fds[2] = raw_ctl();
	for (int i = 0; i < 3; i++) {
		raw_is(try_import(&r, fds[i], &a), -EINVAL);
		close(fds[i]);
	}
	raw_is(try_import(&r, fds[0], &a), -EBADF);
	raw_close(&r);
}

/* Open and close as two threads of control would, over and over. */
static void storm_child(int fd, void *arg)
{
	struct npuemu_ioc_bo_import a;
	int buf = raw_recv_fd(fd);
	unsigned char *p;

	(void)arg;
	for (int i = 0; i < 40; i++) {
		struct raw r;

		raw_open(&r, (uint32_t)i & 1);
		raw_is(try_import(&r, buf, &a), 0);
		p = mmap(NULL, BYTES, RW, MAP_SHARED, buf, 0);
		sys_true(p != MAP_FAILED, "mmap: %s", strerror(errno));
		p[i * 4096] = 1;
		munmap(p, BYTES);
		if (i & 2)
			raw_is(raw_bo_close(&r, a.handle), 0);
		raw_close(&r);
	}
}

static void storm(void **state)
{
	struct raw_child c[2];
	struct raw_bo b;
	struct raw r;
	int fd;

	(void)state;
	for (int i = 0; i < 2; i++)
		raw_fork(&c[i], storm_child, NULL);
	raw_open(&r, 0);
	raw_bo_create(&r, &b, BYTES);
	fd = export(&r, b.handle, O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 2; i++)
		raw_send_fd(c[i].fd, fd);
	raw_is(raw_bo_close(&r, b.handle), 0);
	close(fd);
	raw_close(&r);
	for (int i = 0; i < 2; i++)
		raw_join(&c[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(between_processes),
		raw_test(between_devices),
		raw_test(self_import),
		raw_test(descriptors),
		raw_test(from_udmabuf),
		raw_test(udmabuf_shared),
		raw_test(from_heap),
		raw_test(from_vgem),
		raw_test(not_one),
		raw_test(storm),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
