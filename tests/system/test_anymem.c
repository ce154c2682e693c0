// SPDX-License-Identifier: MIT
/*
 * npuemu_mem_any(): local sources and targets anywhere in the process.  What is
 * not there, or may not be written, fails the WQE and never the process; what is
 * registered, and device memory, are what they were.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys.h"

#define KIB	1024ull
#define MIB	(1024 * KIB)
#define RW	(PROT_READ | PROT_WRITE)

struct any {
	struct npuemu *ctx;
	struct sys_mem m;		/* 4 MiB on device 0 */
	struct npuemu_queue *sdma;
	struct npuemu_queue *udma;
};

static const char constant[5000] = "what the compiler puts where nobody may write";

static void any_open(struct any *a)
{
	struct npuemu_queue_attr attr = sys_queue_attr(0, 64);

	a->ctx = sys_open();
	sys_mem_make(a->ctx, &a->m, 0, 4 * MIB, SYS_RWA);
	a->udma = sys_queue(a->ctx, 0, 64);
	attr.type = NPUEMU_QUEUE_SDMA;
	sys_rc(npuemu_queue_create(a->ctx, &attr, &a->sdma));
	sys_rc(npuemu_mem_any(a->ctx, 1));
}

static void any_close(struct any *a)
{
	sys_rc(npuemu_mem_any(a->ctx, 0));
	sys_rc(npuemu_queue_destroy(a->sdma));
	sys_rc(npuemu_queue_destroy(a->udma));
	sys_mem_drop(&a->m);
	sys_rc(npuemu_close(a->ctx));
}

static unsigned char *pages(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sys_true(p != MAP_FAILED, "mmap: %s", strerror(errno));
	return p;
}

static void copies(struct any *a, void *dst, const void *src, uint64_t n)
{
	sys_rc(npuemu_post_copy(a->sdma, dst, src, n, NPUEMU_SQE_CQE));
	sys_run(a->sdma);
}

static void copy_fails(struct any *a, void *dst, const void *src, uint64_t n)
{
	sys_rc(npuemu_post_copy(a->sdma, dst, src, n, NPUEMU_SQE_CQE));
	sys_eq(sys_finish(a->sdma), NPUEMU_ST_LOC_ACCESS);
	sys_revive(a->sdma);
}

/* Host memory as a source, and as a target, of either kind of queue. */
static void both_ways(struct any *a, unsigned char *p, uint32_t n)
{
	unsigned char *dev = a->m.p + 100;

	sys_fill(p, n, 1);
	copies(a, dev, p, n);
	sys_is_filled("copied from the host", dev, n, 1);
	sys_fill(dev, n, 2);
	copies(a, p, dev, n);
	sys_is_filled("copied to the host", p, n, 2);
	sys_rc(npuemu_post_write(a->udma, p, n, &a->m.t, a->m.va + 2 * MIB, NPUEMU_SQE_CQE));
	sys_run(a->udma);
	sys_is_filled("written from the host", a->m.p + 2 * MIB, n, 2);
	sys_fill(a->m.p + 2 * MIB, n, 3);
	sys_rc(npuemu_post_read(a->udma, p, n, &a->m.t, a->m.va + 2 * MIB, NPUEMU_SQE_CQE));
	sys_run(a->udma);
	sys_is_filled("read to the host", p, n, 3);
}

static void kinds(void **state)
{
	static unsigned char bss[70001];
	unsigned char stack[3000], *p;
	struct any a;
	FILE *f;

	(void)state;
	any_open(&a);
	both_ways(&a, stack + 1, 2999);
	both_ways(&a, bss, sizeof(bss));
	p = malloc(300001);
	sys_true(p, "malloc");
	both_ways(&a, p, 300001);
	free(p);
	p = pages(2 * MIB);
	both_ways(&a, p, 1500001);
	/* pages that nobody has touched */
	munmap(p, 2 * MIB);
	p = pages(2 * MIB);
	memset(a.m.p, 1, 2 * MIB);
	copies(&a, a.m.p, p, 2 * MIB);
	sys_is_byte("fresh pages", a.m.p, 2 * MIB, 0);
	munmap(p, 2 * MIB);
	p = pages(2 * MIB);
	sys_fill(a.m.p, 2 * MIB, 5);
	copies(&a, p, a.m.p, 2 * MIB);
	sys_is_filled("to fresh pages", p, 2 * MIB, 5);
	munmap(p, 2 * MIB);
	/* host to host */
	sys_fill(bss, sizeof(bss), 6);
	p = pages(128 * KIB);
	copies(&a, p + 11, bss, sizeof(bss));
	sys_same("host to host", p + 11, bss, sizeof(bss));
	munmap(p, 128 * KIB);
	/* a file, to its last page */
	f = tmpfile();
	sys_true(f && !ftruncate(fileno(f), 8 * KIB), "tmpfile");
	p = mmap(NULL, 16 * KIB, RW, MAP_SHARED, fileno(f), 0);
	sys_true(p != MAP_FAILED, "mmap of a file");
	both_ways(&a, p + 3, 8 * KIB - 3);
	copy_fails(&a, a.m.p, p + 8 * KIB, 8);
	copy_fails(&a, p + 8 * KIB, a.m.p, 8);
	copy_fails(&a, p + 8 * KIB - 4, a.m.p, 8);
	munmap(p, 16 * KIB);
	fclose(f);
	any_close(&a);
}

static void read_only(void **state)
{
	unsigned char *p = pages(64 * KIB);
	struct any a;

	(void)state;
	any_open(&a);
	copies(&a, a.m.p, constant, sizeof(constant));
	sys_same("a constant", a.m.p, constant, sizeof(constant));
	memset(a.m.p, 0x77, 8 * KIB);
	copy_fails(&a, (void *)(uintptr_t)constant, a.m.p, sizeof(constant));
	sys_true(constant[0] == 'w' && !constant[4999], "a constant was written");
	sys_rc(npuemu_post_read(a.udma, (void *)(uintptr_t)constant, 8, &a.m.t, a.m.va,
				NPUEMU_SQE_CQE));
	sys_eq(sys_finish(a.udma), NPUEMU_ST_LOC_ACCESS);
	sys_revive(a.udma);
	sys_rc(npuemu_post_fill(a.sdma, (void *)(uintptr_t)constant, 1, 1, 64, NPUEMU_SQE_CQE));
	sys_eq(sys_finish(a.sdma), NPUEMU_ST_LOC_ACCESS);
	sys_revive(a.sdma);
	/* rights that change */
	sys_fill(p, 64 * KIB, 1);
	copies(&a, p, a.m.p, 4096);
	mprotect(p, 4096, PROT_READ);
	copies(&a, a.m.p, p, 4096);
	copy_fails(&a, p, a.m.p, 4096);
	mprotect(p, 4096, PROT_NONE);
	copy_fails(&a, a.m.p, p, 4096);
	copy_fails(&a, p, a.m.p, 4096);
	copies(&a, a.m.p, p + 4096, 4096);
	mprotect(p, 4096, RW);
	copies(&a, p, a.m.p, 4096);
	any_close(&a);
	munmap(p, 64 * KIB);
}

static void not_there(void **state)
{
	static const uint64_t nowhere[] = {
		0, 1, 4096, 65535, 1ull << 46, 0x7ffffffff000, 1ull << 60, 0xffff888000000000,
		UINT64_MAX - 4095, UINT64_MAX - 7,
	};
	unsigned char *p = pages(1 * MIB);
	struct any a;
	unsigned int i;

	(void)state;
	any_open(&a);
	for (i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		copy_fails(&a, a.m.p, (void *)(uintptr_t)nowhere[i], 8);
		copy_fails(&a, (void *)(uintptr_t)nowhere[i], a.m.p, 8);
	}
	/* what was just good */
	copies(&a, a.m.p, p, 1 * MIB);
	copies(&a, p, a.m.p, 1 * MIB);
	munmap(p + 512 * KIB, 4096);
	copy_fails(&a, a.m.p, p, 1 * MIB);
	copy_fails(&a, p, a.m.p, 1 * MIB);
	copy_fails(&a, a.m.p, p + 512 * KIB - 8, 16);
	copies(&a, a.m.p, p, 512 * KIB);
	for (i = 0; i < 20; i++) {
		copies(&a, a.m.p, p, 4096);
		munmap(p, 4096);
		copy_fails(&a, a.m.p, p, 4096);
		copy_fails(&a, p, a.m.p, 4096);
		sys_true(mmap(p, 4096, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p,
			 "mmap");
		sys_fill(p, 4096, i);
	}
	/* one of many in a queue: those before it are done */
	sys_rc(npuemu_post_copy(a.sdma, a.m.p, p, 4096, 0));
	sys_rc(npuemu_post_copy(a.sdma, a.m.p + 4096, p + 512 * KIB, 4096, 0));
	sys_rc(npuemu_post_copy(a.sdma, a.m.p + 8192, p, 4096, NPUEMU_SQE_CQE));
	sys_eq(sys_finish(a.sdma), NPUEMU_ST_LOC_ACCESS);
	sys_revive(a.sdma);
	sys_is_filled("before the bad one", a.m.p, 4096, 19);
	any_close(&a);
	munmap(p, 1 * MIB);
}

/* A neighbour at a known address: it stays its own place. */
static void registered_wins(void **state)
{
	unsigned char *p = pages(128 * KIB);
	struct npuemu_mem *reg, *ro;
	struct any a;

	(void)state;
	any_open(&a);
	sys_fill(p, 128 * KIB, 1);
	/* queues know the whole of it before any of it is registered */
	copies(&a, a.m.p, p, 128 * KIB);
	copies(&a, p, a.m.p, 128 * KIB);
	sys_rc(npuemu_mem_register(a.ctx, p + 64 * KIB, 4 * KIB, &reg));
	copies(&a, a.m.p, p + 64 * KIB, 4 * KIB);
	copies(&a, p + 64 * KIB, a.m.p, 4 * KIB);
	copies(&a, a.m.p, p, 64 * KIB);
	copies(&a, a.m.p, p + 68 * KIB, 60 * KIB);
	copy_fails(&a, a.m.p, p, 128 * KIB);
	copy_fails(&a, a.m.p, p + 64 * KIB - 1, 2);
	copy_fails(&a, a.m.p, p + 68 * KIB - 1, 2);
	copy_fails(&a, p + 64 * KIB - 1, a.m.p, 2);
	/* registered while it may not be written: so it stays, unlike its neighbour */
	mprotect(p, 4 * KIB, PROT_READ);
	sys_rc(npuemu_mem_register(a.ctx, p, 4 * KIB, &ro));
	mprotect(p, 4 * KIB, RW);
	copy_fails(&a, p, a.m.p, 8);
	copies(&a, a.m.p, p, 4 * KIB);
	copies(&a, p + 4 * KIB, a.m.p, 8);
	sys_rc(npuemu_mem_unregister(ro));
	copies(&a, p, a.m.p, 8);
	sys_rc(npuemu_mem_unregister(reg));
	sys_fill(p, 128 * KIB, 2);
	copies(&a, a.m.p, p, 128 * KIB);
	sys_is_filled("one place again", a.m.p, 128 * KIB, 2);
	any_close(&a);
	munmap(p, 128 * KIB);
}

static void beside_a_buffer(void **state)
{
	struct npuemu_buf *buf;
	unsigned char *p, *end;
	struct any a;

	(void)state;
	any_open(&a);
	/* into a buffer, and out of it */
	end = a.m.p + 4 * MIB;
	copy_fails(&a, a.m.p, end - 4, 8);
	copy_fails(&a, a.m.p, a.m.p + 64 - 68, 8);
	copy_fails(&a, end - 4, a.m.p, 8);
	sys_fill(a.m.p, 4 * MIB, 1);
	copies(&a, a.m.p + 2 * MIB, a.m.p, 2 * MIB);
	sys_same("in the buffer", a.m.p + 2 * MIB, a.m.p, 2 * MIB);
	/* one that comes, and goes */
	sys_rc(npuemu_buf_alloc(a.ctx, 0, 64 * KIB, 0, &buf));
	p = npuemu_buf_ptr(buf);
	copies(&a, p, a.m.p, 64 * KIB);
	sys_rc(npuemu_buf_free(buf));
	copy_fails(&a, p, a.m.p, 64 * KIB);
	copy_fails(&a, a.m.p, p, 64 * KIB);
	any_close(&a);
}

static void on_and_off(void **state)
{
	unsigned char *p = pages(64 * KIB);
	struct any a;

	(void)state;
	any_open(&a);
	sys_rc(npuemu_mem_any(a.ctx, 7));
	copies(&a, a.m.p, p, 64 * KIB);
	sys_rc(npuemu_mem_any(a.ctx, 0));
	copies(&a, a.m.p, p, 64 * KIB);
	sys_rc(npuemu_mem_any(a.ctx, 0));
	copy_fails(&a, a.m.p, p, 64 * KIB);
	copy_fails(&a, p, a.m.p, 1);
	sys_err(npuemu_mem_any(a.ctx, 0), -EINVAL);
	for (int i = 0; i < 50; i++) {
		sys_rc(npuemu_mem_any(a.ctx, 1));
		copies(&a, p, a.m.p, 4096);
		sys_rc(npuemu_mem_any(a.ctx, 0));
		copy_fails(&a, p, a.m.p, 4096);
	}
	/* left on: the end does not mind */
	sys_rc(npuemu_mem_any(a.ctx, 1));
	sys_rc(npuemu_mem_any(a.ctx, 1));
	any_close(&a);
	any_open(&a);
	any_close(&a);
	munmap(p, 64 * KIB);
}

/* Every way to name local memory, not only copies. */
static void other_ways(void **state)
{
	unsigned char *p = pages(64 * KIB);
	uint64_t old = 0, word = 0;
	float f[64], *dev;
	struct any a;
	int i;

	(void)state;
	any_open(&a);
	dev = (float *)(void *)a.m.p;
	sys_rc(npuemu_post_fill(a.sdma, p + 1, 0x5a, 1, 40000, NPUEMU_SQE_CQE));
	sys_run(a.sdma);
	sys_is_byte("filled", p + 1, 40000, 0x5a);
	sys_eq(p[0], 0);
	sys_eq(p[40001], 0);
	sys_rc(npuemu_post_sdma_notify(a.sdma, &word, 99, NPUEMU_SQE_CQE));
	sys_run(a.sdma);
	sys_eq(word, 99);
	*(uint64_t *)(void *)a.m.p = 40;
	sys_rc(npuemu_post_faa(a.udma, &old, 8, &a.m.t, a.m.va, 2, NPUEMU_SQE_CQE));
	sys_run(a.udma);
	sys_eq(old, 40);
	sys_eq(*(uint64_t *)(void *)a.m.p, 42);
	for (i = 0; i < 64; i++) {
		f[i] = (float)i;
		dev[i] = 1;
	}
	sys_rc(npuemu_post_reduce(a.sdma, dev, f, sizeof(f), NPUEMU_REDUCE_SUM, NPUEMU_FP32,
				  NPUEMU_SQE_CQE));
	sys_run(a.sdma);
	for (i = 0; i < 64; i++)
		sys_true(dev[i] == (float)i + 1, "element %d is %f", i, (double)dev[i]);
	sys_rc(npuemu_post_reduce(a.sdma, f, dev, sizeof(f), NPUEMU_REDUCE_SUM, NPUEMU_FP32,
				  NPUEMU_SQE_CQE));
	sys_run(a.sdma);
	for (i = 0; i < 64; i++)
		sys_true(f[i] == (float)(2 * i) + 1, "element %d is %f", i, (double)f[i]);
	any_close(&a);
	munmap(p, 64 * KIB);
}

/* Against a plain loop, both images compared whole. */
static void random_copies(void **state)
{
	enum { HOST = 600 * 1024, DEV = 4 * 1024 * 1024 };
	unsigned int i, rounds = sys_slow() ? 60 : 400;
	unsigned char *host = malloc(HOST), *h = malloc(HOST), *d = malloc(DEV);
	uint64_t rnd = 11;
	struct any a;

	(void)state;
	sys_true(host && h && d, "malloc");
	any_open(&a);
	sys_fill(host, HOST, 1);
	sys_fill(h, HOST, 1);
	sys_fill(a.m.p, DEV, 2);
	sys_fill(d, DEV, 2);
	for (i = 0; i < rounds; i++) {
		uint64_t n = 1 + sys_rand(&rnd) % (1ull << (1 + sys_rand(&rnd) % 19));
		uint64_t at = sys_rand(&rnd) % (HOST - n), to = sys_rand(&rnd) % (DEV - n), k;

		if (sys_rand(&rnd) & 1) {
			copies(&a, a.m.p + to, host + at, n);
			for (k = 0; k < n; k++)
				d[to + k] = h[at + k];
		} else {
			copies(&a, host + at, a.m.p + to, n);
			for (k = 0; k < n; k++)
				h[at + k] = d[to + k];
		}
		if (i % 16 && i != rounds - 1)
			continue;
		sys_same("the host's", host, h, HOST);
		sys_same("the device's", a.m.p, d, DEV);
	}
	any_close(&a);
	free(host);
	free(h);
	free(d);
}

static void forked(void **state)
{
	unsigned char *p = pages(64 * KIB);
	struct any a;
	int status;
	pid_t pid;

	(void)state;
	any_open(&a);
	sys_fill(p, 64 * KIB, 1);
	copies(&a, a.m.p, p, 64 * KIB);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		int bad = npuemu_mem_any(a.ctx, 1) != -EPERM ||
			  npuemu_mem_any(a.ctx, 0) != -EPERM;

		memset(p, 0xee, 64 * KIB);
		_exit(bad);
	}
	sys_true(pid > 0, "fork: %s", strerror(errno));
	/* the pages are shared with the child until one of the two writes */
	sys_fill(a.m.p, 64 * KIB, 2);
	copies(&a, p, a.m.p, 64 * KIB);
	sys_true(waitpid(pid, &status, 0) == pid && !status, "the child: %#x", status);
	sys_is_filled("the parent's", p, 64 * KIB, 2);
	copies(&a, a.m.p + MIB, p, 64 * KIB);
	sys_is_filled("from the parent's", a.m.p + MIB, 64 * KIB, 2);
	any_close(&a);
	munmap(p, 64 * KIB);
}

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102	/* Linux 6.13 */
#endif

/* A page in the middle that is mapped as all of it is, and yet may not be touched. */
static void guarded(void **state)
{
	unsigned char *p = pages(MIB);
	struct any a;

	(void)state;
	memset(p, 1, MIB);
	if (madvise(p + 512 * KIB, 4096, MADV_GUARD_INSTALL)) {
		munmap(p, MIB);
		skip();
	}
	any_open(&a);
	copy_fails(&a, a.m.p, p, MIB);
	copy_fails(&a, p, a.m.p, MIB);
	both_ways(&a, p, 512 * KIB);
	any_close(&a);
	munmap(p, MIB);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(kinds),
		sys_test(read_only),
		sys_test(not_there),
		sys_test(guarded),
		sys_test(registered_wins),
		sys_test(beside_a_buffer),
		sys_test(on_and_off),
		sys_test(other_ways),
		sys_test(random_copies),
		sys_test(forked),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
