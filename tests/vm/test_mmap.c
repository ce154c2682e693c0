// SPDX-License-Identifier: MIT
/*
 * Mappings: what may be mapped, how it behaves under mremap, munmap, madvise and
 * fork, what else in the kernel may reach it, and that nobody ever sees old bytes.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "raw.h"

#define RW	(PROT_READ | PROT_WRITE)

/* 0, or the errno why it cannot be mapped. */
static int can_map(int fd, uint64_t offset, uint64_t bytes, int prot, int flags)
{
	void *p = mmap(NULL, bytes, prot, flags, fd, (off_t)offset);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, bytes);
	return 0;
}

#define refused(fd, offset, bytes) \
	raw_is(can_map(fd, offset, bytes, RW, MAP_SHARED), -EINVAL)

static void fill(unsigned char *p, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += 512)
		p[at] = (unsigned char)(at / 512 * 7 + 1);
}

static void is_filled(const char *what, const unsigned char *p, uint64_t from, uint64_t to)
{
	for (uint64_t at = from; at < to; at += 512)
		sys_true(p[at] == (unsigned char)(at / 512 * 7 + 1), "%s: byte %llu is %#x", what,
			 (unsigned long long)at, p[at]);
}

/* ---- What may be mapped ------------------------------------------------------------ */

static void offsets(void **state)
{
	struct raw a, b, c;
	struct raw_bo bo, theirs;
	unsigned char *p;
	int err;

	(void)state;
	raw_open(&a, 0);
	raw_open(&b, 0);
	raw_open(&c, 1);
	raw_bo_make(&a, &bo, 3 * MIB);
	raw_bo_make(&b, &theirs, 64 * KIB);
	fill(bo.p, bo.room);
	/* nothing is there */
	refused(a.fd, 0, 4096);
	refused(a.fd, 4096, 4096);
	err = can_map(a.fd, 0x7ffffffffffff000, 4096, RW, MAP_SHARED);
	sys_true(err == -EINVAL || err == -EOVERFLOW, "the last page: %s", strerror(-err));
	/* another context's */
	refused(a.fd, theirs.offset, 4096);
	refused(b.fd, bo.offset, 4096);
	refused(a.fd, b.q.ring_offset, 4096);
	refused(a.fd, b.q.db_offset, 4096);
	refused(a.fd, b.q.rec_offset, 4096);
	/* another device's */
	refused(c.fd, bo.offset, 4096);
	refused(c.fd, a.q.ring_offset, 4096);
	/* past the end, or not from the start of a buffer to beyond it */
	refused(a.fd, bo.offset, bo.room + 4096);
	refused(a.fd, bo.offset + bo.room, 4096);
	refused(a.fd, bo.offset + bo.room - 4096, 8192);
	refused(a.fd, bo.offset - 4096, 8192);
	refused(a.fd, bo.offset, 1ull << 40);
	refused(a.fd, a.q.ring_offset, a.q.ring_bytes + 4096);
	refused(a.fd, a.q.db_offset, a.q.db_bytes + 4096);
	refused(a.fd, a.q.rec_offset, a.q.rec_bytes + 4096);
	refused(a.fd, a.q.rec_offset + a.q.rec_bytes, 4096);
	refused(a.fd, a.q.ring_offset - 4096, 4096);
	/* a part of it is that part */
	p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, a.fd, (off_t)(bo.offset + 2 * MIB - 4096));
	sys_true(p != MAP_FAILED, "a part of a buffer: %s", strerror(errno));
	sys_same("a part of a buffer", p, bo.p + 2 * MIB - 4096, 8192);
	munmap(p, 8192);
	raw_is(can_map(a.fd, a.q.db_offset + 4096, 4096, RW, MAP_SHARED), 0);
	/* gone with its handle */
	munmap(bo.p, bo.room);
	raw_is(raw_bo_close(&a, bo.handle), 0);
	refused(a.fd, bo.offset, 4096);
	munmap(theirs.p, theirs.room);
	raw_close(&c);
	raw_close(&b);
	raw_close(&a);
}

static void not_exec(void *p, uint64_t bytes)
{
	raw_is(raw_sys(mprotect(p, bytes, PROT_READ | PROT_EXEC)), -EACCES);
	raw_is(raw_sys(mprotect(p, bytes, PROT_EXEC)), -EACCES);
}

static void flags(void **state)
{
	const int exec[] = { PROT_EXEC, PROT_READ | PROT_EXEC, RW | PROT_EXEC };
	uint64_t at[4];
	struct raw_bo bo;
	struct raw r;

	(void)state;
	raw_open(&r, 0);
	raw_bo_make(&r, &bo, 64 * KIB);
	at[0] = bo.offset;
	at[1] = r.q.ring_offset;
	at[2] = r.q.db_offset;
	at[3] = r.q.rec_offset;
	for (int i = 0; i < 4; i++) {
		raw_is(can_map(r.fd, at[i], 4096, RW, MAP_PRIVATE), -EINVAL);
		raw_is(can_map(r.fd, at[i], 4096, PROT_READ, MAP_PRIVATE), -EINVAL);
		for (int j = 0; j < 3; j++)
			raw_is(can_map(r.fd, at[i], 4096, exec[j], MAP_SHARED),
			       i ? -EINVAL : -EPERM);
	}
	bo.p[0] = 1;
	not_exec(bo.p, 4096);
	not_exec(r.rings, 4096);
	not_exec(r.doorbells, 4096);
	not_exec(r.records, 4096);
	munmap(bo.p, bo.room);
	raw_close(&r);
}

/* A file opened for reading lets nobody write, not even later. */
static void read_only(void **state)
{
	struct npuemu_ioc_bo_create a = { .bytes = 8192 };
	struct npuemu_ioc_query q = { 0 };
	unsigned char *p;
	int fd;

	(void)state;
	fd = open("/dev/npuemu0", O_RDONLY | O_CLOEXEC);
	sys_true(fd >= 0, "open: %s", strerror(errno));
	raw_is(raw_ioctl(fd, NPUEMU_IOC_QUERY, &q), 0);
	raw_is(raw_ioctl(fd, NPUEMU_IOC_BO_CREATE, &a), 0);
	raw_is(can_map(fd, a.map_offset, 8192, RW, MAP_SHARED), -EACCES);
	raw_is(can_map(fd, q.db_offset, 4096, RW, MAP_SHARED), -EACCES);
	p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, (off_t)a.map_offset);
	sys_true(p != MAP_FAILED, "for reading: %s", strerror(errno));
	raw_is(raw_touch(p, false), 0);
	raw_is(raw_touch(p, true), SIGSEGV);
	raw_is(raw_sys(mprotect(p, 8192, RW)), -EACCES);
	sys_is_byte("fresh memory", p, 8192, 0);
	munmap(p, 8192);
	close(fd);
	/* a choice, where the file is writable */
	fd = raw_node(0);
	raw_is(raw_ioctl(fd, NPUEMU_IOC_BO_CREATE, &a), 0);
	p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, (off_t)a.map_offset);
	sys_true(p != MAP_FAILED, "for reading: %s", strerror(errno));
	raw_is(raw_touch(p, true), SIGSEGV);
	raw_is(raw_sys(mprotect(p, 8192, RW)), 0);
	raw_is(raw_touch(p, true), 0);
	munmap(p, 8192);
	close(fd);
}

/* ---- What one does to mappings ------------------------------------------------------- */

static void is_moved(void *old, uint64_t bytes, uint64_t to, int how)
{
	void *spot = mmap(NULL, to, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *p;

	sys_true(spot != MAP_FAILED, "mmap");
	p = mremap(old, bytes, to, how, spot);
	sys_true(p == MAP_FAILED, "mremap of %llu bytes to %llu, flags %d: works",
		 (unsigned long long)bytes, (unsigned long long)to, how);
	munmap(spot, to);
}

static void moving(void **state)
{
	struct raw_bo bo;
	struct raw_cq cq;
	struct raw_q q;
	struct raw r;

	(void)state;
	raw_open(&r, 0);
	raw_bo_make(&r, &bo, 3 * MIB);
	fill(bo.p, bo.room);
	raw_cq_make(&r, &cq, 64);
	raw_q_make(&r, &q, &cq, 0, RAW_SDMA, 64);
	is_moved(bo.p, bo.room, bo.room + 4096, 0);
	is_moved(bo.p, bo.room, bo.room * 2, MREMAP_MAYMOVE);
	is_moved(bo.p, bo.room, bo.room, MREMAP_MAYMOVE | MREMAP_FIXED);
	is_moved(bo.p, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED);
	is_moved(bo.p + 4096, 8192, 8192, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	is_moved(bo.p, 0, 4096, MREMAP_MAYMOVE);	/* an old size of 0: a second mapping */
	is_moved(r.rings, r.q.ring_bytes, r.q.ring_bytes + 4096, MREMAP_MAYMOVE);
	is_moved(r.doorbells, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED);
	is_moved(r.doorbells + 4096, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED);
	is_moved(r.records, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED);
	is_filled("after mremap", bo.p, 0, bo.room);
	raw_post_nop(&q);
	raw_completes(&q, NPUEMU_ST_SUCCESS);
	munmap(bo.p, bo.room);
	raw_close(&r);
}

static void splitting(void **state)
{
	unsigned char *p;
	struct raw_bo bo;
	struct raw r;

	(void)state;
	raw_open(&r, 0);
	raw_bo_make(&r, &bo, 4 * MIB);
	fill(bo.p, bo.room);
	munmap(bo.p + 1 * MIB, 2 * MIB);
	raw_is(raw_touch(bo.p + 1 * MIB, false), SIGSEGV);
	raw_is(raw_touch(bo.p + 3 * MIB - 1, true), SIGSEGV);
	is_filled("before the hole", bo.p, 0, 1 * MIB);
	is_filled("after the hole", bo.p, 3 * MIB, 4 * MIB);
	p = mmap(bo.p + 1 * MIB, 2 * MIB, RW, MAP_SHARED | MAP_FIXED, r.fd,
		 (off_t)(bo.offset + 1 * MIB));
	sys_true(p == bo.p + 1 * MIB, "back again: %s", strerror(errno));
	is_filled("back again", bo.p, 0, bo.room);
	/* one page after the other, from the end */
	for (uint64_t at = bo.room; at; at -= 64 * KIB)
		munmap(bo.p + at - 64 * KIB, 64 * KIB);
	raw_is(raw_touch(bo.p, false), SIGSEGV);
	/* of the windows as well */
	munmap(r.rings + 8192, 4096);
	munmap(r.doorbells + 4096, 4096);
	raw_is(raw_touch(r.doorbells + 4096, true), SIGSEGV);
	/* no queue: no page behind it */
	raw_is(raw_touch(r.doorbells + 8192, true), SIGBUS);
	raw_is(raw_touch(r.rings + r.q.ring_bytes - 1, false), SIGBUS);
	raw_is(raw_bo_close(&r, bo.handle), 0);
	raw_close(&r);
}

static void advice(void **state)
{
	static const int all[] = {
		MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED,
		MADV_FREE, MADV_REMOVE, MADV_MERGEABLE, MADV_HUGEPAGE, MADV_NOHUGEPAGE,
		MADV_DODUMP, MADV_DOFORK, MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_COLD,
		MADV_PAGEOUT, MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_DONTFORK,
		MADV_DONTDUMP, 24 /* DONTNEED_LOCKED */, 25 /* COLLAPSE */,
	};
	struct raw_bo bo;
	struct raw r;

	(void)state;
	raw_open(&r, 0);
	raw_bo_make(&r, &bo, 4 * MIB);
	fill(bo.p, bo.room);
	for (unsigned int i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		madvise(bo.p, bo.room, all[i]);
		madvise(bo.p + 4096, 8192, all[i]);
		madvise(r.doorbells, 4096, all[i]);
		madvise(r.rings, 4096, all[i]);
		is_filled("after madvise", bo.p, 0, bo.room);
	}
	/* these would give a child what is not its */
	raw_is(raw_sys(madvise(bo.p, bo.room, MADV_DOFORK)), -EINVAL);
	raw_is(raw_sys(madvise(r.rings, 4096, MADV_DOFORK)), -EINVAL);
	raw_is(raw_sys(madvise(r.doorbells, 4096, MADV_DOFORK)), -EINVAL);
	raw_is(raw_sys(madvise(r.records, 4096, MADV_DOFORK)), -EINVAL);
	raw_is(raw_sys(madvise(bo.p, bo.room, MADV_DODUMP)), -EINVAL);
	mlock(bo.p, bo.room);
	munlock(bo.p, bo.room);
	msync(bo.p, bo.room, MS_SYNC);
	is_filled("after mlock", bo.p, 0, bo.room);
	munmap(bo.p, bo.room);
	raw_close(&r);
}

struct inherited {
	struct raw *r;
	struct raw_bo *bo;
};

static void heir(int fd, void *arg)
{
	struct inherited *i = arg;

	(void)fd;
	raw_is(raw_touch(i->bo->p, false), SIGSEGV);
	raw_is(raw_touch(i->bo->p + i->bo->room - 1, true), SIGSEGV);
	raw_is(raw_touch(i->r->rings, false), SIGSEGV);
	raw_is(raw_touch(i->r->doorbells, true), SIGSEGV);
	raw_is(raw_touch(i->r->records, false), SIGSEGV);
}

static void forked(void **state)
{
	struct inherited i;
	struct raw_child c;
	struct raw_bo bo;
	struct raw_cq cq;
	struct raw_q q;
	struct raw r;

	(void)state;
	raw_open(&r, 0);
	raw_bo_make(&r, &bo, 3 * MIB);
	fill(bo.p, bo.room);
	raw_cq_make(&r, &cq, 64);
	raw_q_make(&r, &q, &cq, 0, RAW_SDMA, 64);
	i.r = &r;
	i.bo = &bo;
	for (int n = 0; n < 3; n++) {
		raw_fork(&c, heir, &i);
		raw_post_copy(&q, bo.p + 2 * MIB, bo.p, 4096);
		raw_completes(&q, NPUEMU_ST_SUCCESS);
		raw_join(&c);
		sys_same("copied", bo.p + 2 * MIB, bo.p, 4096);
	}
	munmap(bo.p, bo.room);
	raw_close(&r);
}

/* ---- Lifetime -------------------------------------------------------------------------- */

static void outlives(void **state)
{
	struct npuemu_ioc_device d = { 0 };
	struct raw_bo bo, other;
	struct raw r;
	int ctl = raw_ctl();

	(void)state;
	/* the handle is gone: the mapping is not */
	raw_open(&r, 0);
	raw_bo_make(&r, &bo, 3 * MIB);
	fill(bo.p, 2 * MIB);
	raw_is(raw_bo_close(&r, bo.handle), 0);
	is_filled("freed, but mapped", bo.p, 0, 2 * MIB);
	fill(bo.p, bo.room);
	is_filled("freed, but mapped", bo.p, 0, bo.room);
	raw_bo_make(&r, &other, 3 * MIB);
	sys_is_byte("another", other.p, other.room, 0);
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_DEVICE, &d), 0);
	sys_eq(d.hbm_used, bo.room + other.room);
	munmap(bo.p, bo.room);
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_DEVICE, &d), 0);
	sys_eq(d.hbm_used, other.room);
	/* the file is gone: the mapping holds it */
	close(r.fd);
	fill(other.p, other.room);
	is_filled("closed, but mapped", other.p, 0, other.room);
	raw_unmap(&r);
	is_filled("closed, but mapped", other.p, 0, other.room);
	sys_eq(raw_leaks("contexts"), 1);
	munmap(other.p, other.room);
	close(ctl);
}

/* ---- Who else reaches it ------------------------------------------------------------------ */

static void proc_mem(const unsigned char *p, const unsigned char *want, size_t n)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	unsigned char *buf = malloc(n);
	ssize_t got;

	sys_true(fd >= 0 && buf, "/proc/self/mem: %s", strerror(errno));
	memset(buf, 0x5a, n);
	got = pread(fd, buf, n, (off_t)(uintptr_t)p);
	sys_true(got == (ssize_t)n || (got < 0 && errno == EIO), "/proc/self/mem: %zd", got);
	if (got > 0)
		sys_same("/proc/self/mem", buf, want, n);
	got = pwrite(fd, want, n, (off_t)(uintptr_t)p);
	sys_true(got == (ssize_t)n || (got < 0 && errno == EIO), "/proc/self/mem: %zd", got);
	free(buf);
	close(fd);
}

static void pinned_by_others(void **state)
{
	unsigned char buf[4096], *copy;
	struct iovec local = { buf, sizeof(buf) }, remote;
	struct raw_bo bo;
	struct raw_cq cq;
	struct raw_q q;
	struct raw r;
	void *at[4];
	int p[2];

	(void)state;
	raw_open(&r, 0);
	raw_bo_make(&r, &bo, 3 * MIB);
	fill(bo.p, bo.room);
	raw_cq_make(&r, &cq, 64);
	raw_q_make(&r, &q, &cq, 0, RAW_SDMA, 64);
	sys_true(!pipe2(p, O_CLOEXEC), "pipe");
	at[0] = bo.p;
	at[1] = q.ring;
	at[2] = (unsigned char *)q.db - NPUEMU_DB_PI;
	at[3] = r.records;
	for (int i = 0; i < 4; i++) {
		/* they take pages, and would go on writing to them after a reset */
		remote = (struct iovec){ at[i], 4096 };
		raw_touch(at[i], true);
		raw_is(raw_sys(process_vm_readv(getpid(), &local, 1, &remote, 1, 0)), -EFAULT);
		raw_is(raw_sys(process_vm_writev(getpid(), &local, 1, &remote, 1, 0)), -EFAULT);
		raw_is(raw_sys(vmsplice(p[1], &remote, 1, 0)), -EFAULT);
		raw_is(raw_sys(vmsplice(p[1], &remote, 1, SPLICE_F_GIFT)), -EFAULT);
	}
	/* plain copies by the kernel are fine */
	raw_is(raw_sys(write(p[1], bo.p, 4096)), 4096);
	raw_is(raw_sys(read(p[0], bo.p + 2 * MIB, 4096)), 4096);
	sys_same("through a pipe", bo.p + 2 * MIB, bo.p, 4096);
	copy = malloc(8192);
	sys_true(copy, "malloc");
	memcpy(copy, bo.p + 2 * MIB - 4096, 8192);
	proc_mem(bo.p + 2 * MIB - 4096, copy, 8192);
	sys_same("after /proc/self/mem", bo.p + 2 * MIB - 4096, copy, 8192);
	free(copy);
	raw_post_nop(&q);
	raw_completes(&q, NPUEMU_ST_SUCCESS);
	close(p[0]);
	close(p[1]);
	munmap(bo.p, bo.room);
	raw_close(&r);
}

/* ---- What is in it ------------------------------------------------------------------------- */

static void lazy(void **state)
{
	struct npuemu_ioc_device d = { 0 };
	struct raw_bo bo;
	struct raw r;

	(void)state;
	raw_open(&r, 0);
	raw_bo_make(&r, &bo, 512 * MIB);
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_DEVICE, &d), 0);
	sys_eq(d.hbm_used, 512 * MIB);
	sys_eq(d.hbm_backed, 0);
	raw_is(raw_touch(bo.p + 300 * MIB, false), 0);
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_DEVICE, &d), 0);
	sys_true(d.hbm_backed >= 4096 && d.hbm_backed <= 2 * MIB, "%llu bytes for one",
		 (unsigned long long)d.hbm_backed);
	munmap(bo.p, bo.room);
	raw_is(raw_bo_close(&r, bo.handle), 0);
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_DEVICE, &d), 0);
	sys_eq(d.hbm_backed, 0);
	raw_close(&r);
}

/* As much as it can get: all zero for CPU and engine; leaves secrets behind. */
static void spy(int fd, void *unused)
{
	const uint64_t bytes = 48 * MIB + 12 * KIB;
	unsigned char *host;
	struct raw_bo bo;
	struct raw_cq cq;
	struct raw_q q;
	struct raw r;

	(void)fd;
	(void)unused;
	raw_open(&r, 0);
	raw_bo_make(&r, &bo, bytes);
	raw_cq_make(&r, &cq, 64);
	raw_q_make(&r, &q, &cq, 0, RAW_SDMA, 64);
	/* rings as well */
	sys_is_byte("a ring", q.ring, 64 * NPUEMU_BB_SIZE, 0);
	sys_is_byte("a ring", cq.ring, 64 * NPUEMU_CQE_SIZE, 0);
	host = mmap(NULL, 4 * MIB, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sys_true(host != MAP_FAILED, "mmap");
	memset(host, 0x11, 4 * MIB);
	raw_is(raw_va_map(&r, (uintptr_t)host, 4 * MIB, 0, 0, NPUEMU_VA_PINNED), 0);
	/* before any CPU touched it */
	raw_post_copy(&q, host, bo.p + 8 * MIB, 4 * MIB);
	raw_completes(&q, NPUEMU_ST_SUCCESS);
	sys_is_byte("what the engine sees", host, 4 * MIB, 0);
	sys_is_byte("what the CPU sees", bo.p, bo.room, 0);
	memset(bo.p, 0xa5, bo.room);
	raw_post_fill(&q, bo.p, 0xa5a5a5a5a5a5a5a5, 8 * MIB);
	raw_completes(&q, NPUEMU_ST_SUCCESS);
	memset(q.ring, 0xa5, 64 * NPUEMU_BB_SIZE);
	memset(cq.ring, 0xa5, 64 * NPUEMU_CQE_SIZE);
	/* gone as it is, without a word */
}

static void no_old_bytes(void **state)
{
	struct raw_child c;

	(void)state;
	for (int i = 0; i < 4; i++) {
		raw_fork(&c, spy, NULL);
		raw_join(&c);
	}
}

/* More than there is memory for: SIGBUS and error completions, not the OOM killer. */
static void budget(void **state)
{
	struct npuemu_ioc_query q0 = { 0 };
	struct raw_bo bo[2];
	struct raw_cq cq;
	struct raw_q q;
	uint64_t i, n;
	struct raw r[2];
	int sig = 0;

	(void)state;
	raw_open(&r[0], 0);
	if (r[0].q.budget_bytes >= 2 * GIB) {
		raw_close(&r[0]);
		raw_skip("the budget is above what the devices have");
	}
	raw_open(&r[1], 1);
	raw_bo_make(&r[0], &bo[0], 1 * GIB);
	raw_bo_make(&r[1], &bo[1], 1 * GIB);
	for (n = 0; n < 1024 && !sig; n++)
		sig = raw_touch(bo[n / 512].p + n % 512 * 2 * MIB, true);
	raw_is(sig, SIGBUS);
	raw_is(raw_ioctl(r[0].fd, NPUEMU_IOC_QUERY, &q0), 0);
	sys_true(q0.backed_bytes <= q0.budget_bytes && q0.budget_bytes - q0.backed_bytes < 2 * MIB,
		 "%llu of %llu are backed", (unsigned long long)q0.backed_bytes,
		 (unsigned long long)q0.budget_bytes);
	/* the engine does not get any either, and says so */
	raw_cq_make(&r[1], &cq, 64);
	raw_q_make(&r[1], &q, &cq, 1, RAW_SDMA, 64);
	raw_post_fill(&q, bo[1].p + 1 * GIB - 2 * MIB, 1, 4096);
	sys_true(raw_finish(&q) != NPUEMU_ST_SUCCESS, "the engine wrote where nothing is");
	sys_true(raw_query(&q).cause[0], "it does not say why");
	/* given back, it works again */
	munmap(bo[0].p, bo[0].room);
	raw_is(raw_bo_close(&r[0], bo[0].handle), 0);
	for (i = 0; i < 4; i++)
		raw_is(raw_touch(bo[1].p + 1 * GIB - (i + 1) * 2 * MIB, true), 0);
	munmap(bo[1].p, bo[1].room);
	raw_close(&r[1]);
	raw_close(&r[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(offsets),
		raw_test(flags),
		raw_test(read_only),
		raw_test(moving),
		raw_test(splitting),
		raw_test(advice),
		raw_test(forked),
		raw_test(outlives),
		raw_test(pinned_by_others),
		raw_test(lazy),
		raw_test(no_old_bytes),
		raw_test(budget),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
