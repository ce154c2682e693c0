// SPDX-License-Identifier: MIT
/*
 * Host memory as a place for engines: pinned, with RLIMIT_MEMLOCK, and pageable,
 * whose pages may be away, come late, or never.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "raw.h"

#define PINNED		NPUEMU_VA_PINNED
#define PAGEABLE	NPUEMU_VA_PAGEABLE
#define READONLY	NPUEMU_VA_READONLY
#define RW		(PROT_READ | PROT_WRITE)

struct hm {
	struct raw r;
	struct raw_bo bo;
	struct raw_cq cq;
	struct raw_q q;
};

static void hm_open(struct hm *h, uint64_t bytes)
{
	raw_open(&h->r, 0);
	raw_bo_make(&h->r, &h->bo, bytes);
	raw_cq_make(&h->r, &h->cq, 64);
	raw_q_make(&h->r, &h->q, &h->cq, 0, RAW_SDMA, 64);
}

static void hm_close(struct hm *h)
{
	munmap(h->bo.p, h->bo.room);
	raw_close(&h->r);
}

static unsigned char *pages(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sys_true(p != MAP_FAILED, "mmap: %s", strerror(errno));
	return p;
}

static int map(struct hm *h, const void *p, uint64_t bytes, uint32_t flags)
{
	return raw_va_map(&h->r, (uintptr_t)p, bytes, 0, 0, flags);
}

static int unmap(struct hm *h, const void *p)
{
	return raw_va_unmap(&h->r, (uintptr_t)p);
}

static void copy(struct hm *h, void *dst, const void *src, uint64_t bytes, uint32_t want)
{
	raw_post_copy(&h->q, dst, src, bytes);
	raw_completes(&h->q, want);
}

/* The queue stops at an error. */
static void fails(struct hm *h, void *dst, const void *src, uint64_t bytes)
{
	struct npuemu_cqe cqe;

	copy(h, dst, src, bytes, NPUEMU_ST_LOC_ACCESS);
	raw_is(raw_modify(&h->q, NPUEMU_QS_RESET), 0);
	raw_is(raw_modify(&h->q, NPUEMU_QS_READY), 0);
	while (raw_poll(&h->cq, &cqe))
		;
}

/* ---- Both kinds ------------------------------------------------------------------ */

static void both_ways(uint32_t kind)
{
	static const struct {
		uint32_t host, dev, len;
	} at[] = {
		{ 0, 0, 1 }, { 0, 0, 4096 }, { 1, 7, 4095 }, { 4095, 4090, 2 }, { 17, 4096, 65536 },
		{ 4000, 3, 200000 }, { 0, 0, 1 << 20 }, { 12345, 54321, 654321 },
	};
	unsigned char *host = pages(2 * MIB);
	struct hm h;

	hm_open(&h, 2 * MIB);
	raw_is(map(&h, host, 2 * MIB, kind), 0);
	for (unsigned int i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		sys_fill(host, 2 * MIB, i);
		memset(h.bo.p, 0x33, h.bo.room);
		copy(&h, h.bo.p + at[i].dev, host + at[i].host, at[i].len, NPUEMU_ST_SUCCESS);
		sys_is_filled("the source", host, 2 * MIB, i);
		sys_same("read from the host", h.bo.p + at[i].dev, host + at[i].host, at[i].len);
		sys_is_byte("before", h.bo.p, at[i].dev, 0x33);
		sys_is_byte("behind", h.bo.p + at[i].dev + at[i].len, 64, 0x33);
		sys_fill(h.bo.p, h.bo.room, 100 + i);
		memset(host, 0x44, 2 * MIB);
		copy(&h, host + at[i].host, h.bo.p + at[i].dev, at[i].len, NPUEMU_ST_SUCCESS);
		sys_same("written to the host", host + at[i].host, h.bo.p + at[i].dev, at[i].len);
		sys_is_byte("before", host, at[i].host, 0x44);
		sys_is_byte("behind", host + at[i].host + at[i].len, 64, 0x44);
	}
	/* from host to host */
	copy(&h, host + MIB, host, 100000, NPUEMU_ST_SUCCESS);
	sys_same("host to host", host + MIB, host, 100000);
	raw_is(unmap(&h, host), 0);
	fails(&h, h.bo.p, host, 8);
	fails(&h, host, h.bo.p, 8);
	hm_close(&h);
	munmap(host, 2 * MIB);
}

static void limits(uint32_t kind)
{
	unsigned char *host = pages(64 * KIB);
	struct hm h;

	hm_open(&h, 64 * KIB);
	memset(host, 0x11, 64 * KIB);
	memset(h.bo.p, 0x22, h.bo.room);
	/* to the byte */
	raw_is(map(&h, host + 100, 1000, kind), 0);
	copy(&h, h.bo.p, host + 100, 1000, NPUEMU_ST_SUCCESS);
	fails(&h, h.bo.p, host + 99, 8);
	fails(&h, h.bo.p, host + 1093, 8);
	fails(&h, host + 1093, h.bo.p, 8);
	raw_is(unmap(&h, host + 100), 0);
	/* only for reading */
	raw_is(map(&h, host, 64 * KIB, kind | READONLY), 0);
	copy(&h, h.bo.p, host, 4096, NPUEMU_ST_SUCCESS);
	memset(h.bo.p, 0x22, h.bo.room);
	fails(&h, host, h.bo.p, 4096);
	raw_post_fill(&h.q, host, 0x55, 64);
	raw_completes(&h.q, NPUEMU_ST_LOC_ACCESS);
	sys_is_byte("read only", host, 64 * KIB, 0x11);
	hm_close(&h);
	munmap(host, 64 * KIB);
}

static void pinned(void **state)
{
	(void)state;
	both_ways(PINNED);
	limits(PINNED);
}

static void pageable(void **state)
{
	(void)state;
	both_ways(PAGEABLE);
	limits(PAGEABLE);
}

/* ---- Pinned ---------------------------------------------------------------------------- */

static long vm_pin_kib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[200];
	long n = -1;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmPin: %ld kB", &n) == 1)
			break;
	if (f)
		fclose(f);
	sys_true(n >= 0, "no VmPin");
	return n;
}

static void poor(int fd, void *unused)
{
	struct rlimit limit = { 64 * KIB, 64 * KIB };
	unsigned char *host;
	struct hm h;

	(void)fd;
	(void)unused;
	raw_is(raw_sys(setrlimit(RLIMIT_MEMLOCK, &limit)), 0);
	raw_become(1000);
	host = pages(1 * MIB);
	hm_open(&h, 64 * KIB);
	raw_is(map(&h, host, 64 * KIB + 1, PINNED), -ENOMEM);
	sys_eq(vm_pin_kib(), 0);
	for (int i = 0; i < 3; i++) {
		raw_is(map(&h, host, 32 * KIB, PINNED), 0);
		raw_is(map(&h, host + 64 * KIB, 28 * KIB, PINNED), 0);
		sys_eq(vm_pin_kib(), 60);
		raw_is(map(&h, host + 128 * KIB, 4097, PINNED), -ENOMEM);
		/* two pages, however few bytes of them */
		raw_is(map(&h, host + 128 * KIB + 4095, 2, PINNED), -ENOMEM);
		raw_is(map(&h, host + 128 * KIB, 4096, PINNED), 0);
		sys_eq(vm_pin_kib(), 64);
		raw_is(map(&h, host + 256 * KIB, 1, PINNED), -ENOMEM);
		/* what is not pinned is not counted */
		raw_is(map(&h, host + 512 * KIB, 512 * KIB, PAGEABLE), 0);
		copy(&h, h.bo.p, host + 128 * KIB, 4096, NPUEMU_ST_SUCCESS);
		raw_is(unmap(&h, host), 0);
		raw_is(unmap(&h, host + 64 * KIB), 0);
		raw_is(unmap(&h, host + 128 * KIB), 0);
		raw_is(unmap(&h, host + 512 * KIB), 0);
		sys_eq(vm_pin_kib(), 0);
	}
	/* what fails half-way is given back */
	munmap(host + 32 * KIB, 4096);
	raw_is(map(&h, host, 64 * KIB, PINNED), -EFAULT);
	sys_eq(vm_pin_kib(), 0);
	raw_is(map(&h, host, 32 * KIB, PINNED), 0);
	/* and the rest at the end */
	hm_close(&h);
	sys_eq(vm_pin_kib(), 0);
}

static void memlock(void **state)
{
	struct rlimit limit = { 64 * KIB, 64 * KIB }, old;
	unsigned char *host;
	struct raw_child c;
	struct hm h;

	(void)state;
	raw_fork(&c, poor, NULL);
	raw_join(&c);
	sys_eq(raw_leaks("pinned_pages"), 0);
	/* root may */
	raw_is(raw_sys(getrlimit(RLIMIT_MEMLOCK, &old)), 0);
	limit.rlim_max = old.rlim_max;
	raw_is(raw_sys(setrlimit(RLIMIT_MEMLOCK, &limit)), 0);
	host = pages(1 * MIB);
	hm_open(&h, 64 * KIB);
	raw_is(map(&h, host, 1 * MIB, PINNED), 0);
	sys_eq(raw_leaks("pinned_pages"), 256);
	hm_close(&h);
	sys_eq(vm_pin_kib(), 0);
	munmap(host, 1 * MIB);
	raw_is(raw_sys(setrlimit(RLIMIT_MEMLOCK, &old)), 0);
}

static void other_half(int fd, void *arg)
{
	/* writing is what would take the page away from the parent */
	memset(arg, 0x99, 64 * KIB);
	sys_go(fd);
	sys_wait_go(fd);
	sys_is_byte("the child's own", arg, 64 * KIB, 0x99);
}

static void pinned_and_forked(void **state)
{
	unsigned char *host = pages(64 * KIB);
	struct raw_child c;
	struct hm h;

	(void)state;
	hm_open(&h, 64 * KIB);
	memset(host, 1, 64 * KIB);
	raw_is(map(&h, host, 64 * KIB, PINNED), 0);
	raw_fork(&c, other_half, host);
	sys_wait_go(c.fd);
	memset(host, 2, 64 * KIB);
	copy(&h, h.bo.p, host, 64 * KIB, NPUEMU_ST_SUCCESS);
	sys_is_byte("what the engine sees", h.bo.p, 64 * KIB, 2);
	memset(h.bo.p, 3, 64 * KIB);
	copy(&h, host, h.bo.p, 64 * KIB, NPUEMU_ST_SUCCESS);
	sys_is_byte("what the CPU sees", host, 64 * KIB, 3);
	sys_go(c.fd);
	raw_join(&c);
	/* unmapped while it is pinned: the engine has the pages, nobody else does */
	munmap(host, 64 * KIB);
	copy(&h, h.bo.p, host, 64 * KIB, NPUEMU_ST_SUCCESS);
	sys_is_byte("pages that were pinned", h.bo.p, 64 * KIB, 3);
	hm_close(&h);
}

/* ---- Pageable ---------------------------------------------------------------------------- */

static void goes_away(void **state)
{
	unsigned char *host = pages(1 * MIB), *file;
	struct hm h;
	int fd;

	(void)state;
	hm_open(&h, 1 * MIB);
	raw_is(map(&h, host, 1 * MIB, PAGEABLE), 0);
	/* pages nobody has touched are zero */
	memset(h.bo.p, 1, 1 * MIB);
	copy(&h, h.bo.p, host, 1 * MIB, NPUEMU_ST_SUCCESS);
	sys_is_byte("fresh pages", h.bo.p, 1 * MIB, 0);
	/* thrown out and read back */
	sys_fill(host, 1 * MIB, 4);
	madvise(host, 1 * MIB, MADV_PAGEOUT);
	copy(&h, h.bo.p, host, 1 * MIB, NPUEMU_ST_SUCCESS);
	sys_is_filled("after MADV_PAGEOUT", h.bo.p, 1 * MIB, 4);
	mprotect(host, 64 * KIB, PROT_READ);
	fails(&h, host + 4096, h.bo.p, 8);
	mprotect(host, 64 * KIB, PROT_NONE);
	fails(&h, h.bo.p, host + 4096, 8);
	mprotect(host, 64 * KIB, RW);
	copy(&h, h.bo.p, host + 4096, 8, NPUEMU_ST_SUCCESS);
	munmap(host + 512 * KIB, 4096);
	fails(&h, h.bo.p, host + 512 * KIB - 64, 128);
	munmap(host, 1 * MIB);
	fails(&h, h.bo.p, host, 1 * MIB);
	fails(&h, host, h.bo.p, 4096);
	raw_is(unmap(&h, host), 0);
	/* a file that ends before its mapping does */
	fd = memfd_create("test", MFD_CLOEXEC);
	sys_true(fd >= 0 && !ftruncate(fd, 4096), "memfd");
	file = mmap(NULL, 8192, RW, MAP_SHARED, fd, 0);
	sys_true(file != MAP_FAILED, "mmap");
	raw_is(map(&h, file, 8192, PAGEABLE), 0);
	memset(h.bo.p, 7, 4096);
	copy(&h, file, h.bo.p, 4096, NPUEMU_ST_SUCCESS);
	sys_is_byte("the file", file, 4096, 7);
	fails(&h, h.bo.p, file + 4096, 8);
	fails(&h, file + 4096, h.bo.p, 8);
	raw_is(unmap(&h, file), 0);
	munmap(file, 8192);
	close(fd);
	hm_close(&h);
}

/* Memory whose faults are ours to serve: until then, who touches it sleeps. */
static int blocked_pages(unsigned char *p, uint64_t bytes)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { (uintptr_t)p, bytes }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	sys_true(fd >= 0, "userfaultfd: %s", strerror(errno));
	raw_is(raw_ioctl(fd, UFFDIO_API, &api), 0);
	raw_is(raw_ioctl(fd, UFFDIO_REGISTER, &reg), 0);
	return fd;
}

static void serve_page(int fd, unsigned char *p, unsigned char byte)
{
	static unsigned char page[4096];
	struct uffdio_copy c = {
		.dst = (uintptr_t)p, .src = (uintptr_t)page, .len = sizeof(page),
	};

	memset(page, byte, sizeof(page));
	raw_is(raw_ioctl(fd, UFFDIO_COPY, &c), 0);
}

/* Somebody waits for the page. */
static void fault_comes(int fd)
{
	int64_t deadline = sys_deadline();
	struct uffd_msg m;

	while (read(fd, &m, sizeof(m)) != sizeof(m))
		sys_true(sys_retry(deadline), "nobody asks for the page");
	sys_eq(m.event, UFFD_EVENT_PAGEFAULT);
}

static void others_work(struct hm *h, struct raw_q *other, unsigned char *warm)
{
	struct npuemu_cqe cqe;

	for (int i = 0; i < 20; i++) {
		raw_post_copy(other, h->bo.p + 32 * KIB, h->bo.p + 40 * KIB, 4096);
		raw_completes(other, NPUEMU_ST_SUCCESS);
	}
	/* memory that is there, in the same way */
	(void)warm;
	sys_true(!raw_poll(&h->cq, &cqe), "the blocked copy is done");
}

static void page_comes_late(void **state)
{
	unsigned char *host = pages(64 * KIB);
	struct raw_cq cq;
	struct raw_q other;
	struct hm h, next;
	int uffd;

	(void)state;
	uffd = blocked_pages(host, 64 * KIB);
	hm_open(&h, 64 * KIB);
	raw_cq_make(&h.r, &cq, 64);
	raw_q_make(&h.r, &other, &cq, 0, RAW_SDMA, 64);
	raw_is(map(&h, host, 64 * KIB, PAGEABLE), 0);
	/* reading */
	raw_post_copy(&h.q, h.bo.p, host + 4096, 64);
	raw_ring(&h.q);
	fault_comes(uffd);
	others_work(&h, &other, host);
	/* another process's queue on the same engine */
	hm_open(&next, 64 * KIB);
	copy(&next, next.bo.p, next.bo.p + 4096, 4096, NPUEMU_ST_SUCCESS);
	hm_close(&next);
	/* one's own WAIT does not get stuck in it either */
	raw_is(raw_wait_cq(&h.cq, 50), -ETIMEDOUT);
	serve_page(uffd, host + 4096, 0x21);
	raw_completes(&h.q, NPUEMU_ST_SUCCESS);
	sys_is_byte("what came late", h.bo.p, 64, 0x21);
	/* writing */
	memset(h.bo.p, 0x43, 64);
	raw_post_copy(&h.q, host + 8192, h.bo.p, 64);
	raw_ring(&h.q);
	fault_comes(uffd);
	others_work(&h, &other, host);
	serve_page(uffd, host + 8192, 0x21);
	raw_completes(&h.q, NPUEMU_ST_SUCCESS);
	sys_is_byte("what was written", host + 8192, 64, 0x43);
	sys_is_byte("beside it", host + 8192 + 64, 4096 - 64, 0x21);
	hm_close(&h);
	close(uffd);
	munmap(host, 64 * KIB);
}

/* The page never comes: taking the memory back, and the end, do not wait for it. */
static void page_never_comes(void **state)
{
	unsigned char *host = pages(64 * KIB);
	struct npuemu_cqe cqe;
	struct hm h;
	int uffd;

	(void)state;
	uffd = blocked_pages(host, 64 * KIB);
	hm_open(&h, 64 * KIB);
	raw_is(map(&h, host, 64 * KIB, PAGEABLE), 0);
	raw_post_copy(&h.q, h.bo.p, host, 64);
	raw_ring(&h.q);
	fault_comes(uffd);
	raw_is(unmap(&h, host), 0);
	sys_true(raw_spin(&h.cq, &cqe, SYS_PATIENCE_MS), "no completion");
	raw_status_is(__FILE__, __LINE__, raw_status(&cqe), NPUEMU_ST_LOC_ACCESS);
	raw_is(raw_modify(&h.q, NPUEMU_QS_RESET), 0);
	raw_is(raw_modify(&h.q, NPUEMU_QS_READY), 0);
	while (raw_poll(&h.cq, &cqe))
		;
	/* again, and now the queue goes */
	raw_is(map(&h, host, 64 * KIB, PAGEABLE), 0);
	raw_post_copy(&h.q, h.bo.p, host + 4096, 64);
	raw_ring(&h.q);
	fault_comes(uffd);
	raw_is(raw_q_destroy(&h.q), 0);
	/* again, and now everything goes */
	raw_q_make(&h.r, &h.q, &h.cq, 0, RAW_SDMA, 64);
	raw_post_copy(&h.q, h.bo.p, host + 8192, 64);
	raw_ring(&h.q);
	fault_comes(uffd);
	hm_close(&h);
	close(uffd);
	munmap(host, 64 * KIB);
}

/* What is in an entry stays when the rest goes, whichever of the two has the copier. */
static void rest_goes(void **state)
{
	const uint32_t rest = NPUEMU_VA_REST | PAGEABLE;
	unsigned char *host = pages(64 * KIB), *entry = host + 32 * KIB;
	int uffd = blocked_pages(host, 64 * KIB);
	struct npuemu_cqe cqe;
	struct raw_cq cq;
	struct raw_q other;
	struct hm h;

	(void)state;
	hm_open(&h, 64 * KIB);
	raw_cq_make(&h.r, &cq, 64);
	raw_q_make(&h.r, &other, &cq, 0, RAW_SDMA, 64);
	raw_is(map(&h, entry, 32 * KIB, PAGEABLE), 0);
	for (int i = 0; i < 2; i++) {
		uint32_t at = (uint32_t)i * 4096;

		raw_is(raw_va_map(&h.r, 0, 0, 0, 0, rest), 0);
		raw_post_copy(&h.q, h.bo.p, host + at, 64);
		raw_post_copy(&other, h.bo.p + 4096, entry + at, 64);
		raw_ring(i ? &other : &h.q);
		fault_comes(uffd);
		raw_ring(i ? &h.q : &other);
		raw_is(raw_wait_cq(&h.cq, 50), -ETIMEDOUT);
		raw_is(raw_va_unmap(&h.r, NPUEMU_VA_UNMAP_REST), 0);
		sys_true(raw_spin(&h.cq, &cqe, SYS_PATIENCE_MS), "no completion");
		raw_status_is(__FILE__, __LINE__, raw_status(&cqe), NPUEMU_ST_LOC_ACCESS);
		raw_is(raw_modify(&h.q, NPUEMU_QS_RESET), 0);
		raw_is(raw_modify(&h.q, NPUEMU_QS_READY), 0);
		while (raw_poll(&h.cq, &cqe))
			;
		sys_true(!raw_poll(&cq, &cqe), "the entry's copy went with the rest");
		if (!i)	/* the copier has come there now */
			fault_comes(uffd);
		serve_page(uffd, entry + at, (unsigned char)(0x31 + i));
		sys_true(raw_spin(&cq, &cqe, SYS_PATIENCE_MS), "no completion");
		raw_status_is(__FILE__, __LINE__, raw_status(&cqe), NPUEMU_ST_SUCCESS);
		sys_is_byte("of the entry", h.bo.p + 4096, 64, (unsigned char)(0x31 + i));
	}
	hm_close(&h);
	close(uffd);
	munmap(host, 64 * KIB);
}

/* Pinned while a queue is writing there: neither the bytes nor the WQE are lost. */
static void pinned_under_way(void **state)
{
	unsigned char *host = pages(4 * MIB);
	struct npuemu_cqe cqe;
	struct hm h;

	(void)state;
	hm_open(&h, 4 * MIB);
	raw_is(raw_va_map(&h.r, 0, 0, 0, 0, NPUEMU_VA_REST | PAGEABLE), 0);
	for (unsigned int i = 0; i < 30; i++) {
		sys_fill(h.bo.p, 4 * MIB, i);
		raw_post_copy(&h.q, host, h.bo.p, 4 * MIB);
		raw_ring(&h.q);
		raw_is(map(&h, host, 4 * MIB, i & 1 ? PINNED : PAGEABLE), 0);
		sys_true(raw_spin(&h.cq, &cqe, SYS_PATIENCE_MS), "no completion");
		raw_status_is(__FILE__, __LINE__, raw_status(&cqe), NPUEMU_ST_SUCCESS);
		sys_is_filled("what was written", host, 4 * MIB, i);
		raw_is(unmap(&h, host), 0);
	}
	hm_close(&h);
	munmap(host, 4 * MIB);
}

static void stuck(int fd, void *unused)
{
	unsigned char *host = pages(64 * KIB);
	int uffd = blocked_pages(host, 64 * KIB);
	struct hm h;

	(void)unused;
	hm_open(&h, 64 * KIB);
	raw_is(map(&h, host, 64 * KIB, PAGEABLE), 0);
	raw_post_copy(&h.q, h.bo.p, host, 64);
	raw_ring(&h.q);
	fault_comes(uffd);
	sys_go(fd);
	raw_wait_cq(&h.cq, 10 * SYS_PATIENCE_MS);
}

static void killed_while_stuck(void **state)
{
	struct raw_child c;

	(void)state;
	for (int i = 0; i < 3; i++) {
		raw_fork(&c, stuck, NULL);
		sys_wait_go(c.fd);
		sys_nap((unsigned int)(20 * i));
		raw_kill(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(pinned),
		raw_test(pageable),
		raw_test(memlock),
		raw_test(pinned_and_forked),
		raw_test(goes_away),
		raw_test(page_comes_late),
		raw_test(page_never_comes),
		raw_test(rest_goes),
		raw_test(pinned_under_way),
		raw_test(killed_while_stuck),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
