// SPDX-License-Identifier: MIT
/*
 * Large WRITEs and fp32 reductions into another process's segment; against
 * memcpy and a plain vector loop over shared mappings of the same kind, and
 * memcpy over private 2 MiB pages.
 *
 * Each WRITE has a doorbell and a completion of its own, and the next one waits
 * for it.  One pair of buffers is used over and over, as ucx_perftest does.
 */
#include "bench.h"

#define KIB	1024ull
#define MIB	(1024ull * KIB)
#define LARGEST	(64 * MIB)

static struct bench_queue b;
static uint64_t stamp;
static uint64_t sums[2];	/* reductions of 64 KiB and 1 MiB so far */

struct copy {
	uint64_t bytes;
	void *src, *dst;
};

static double write_one_size(void *arg, uint64_t n)
{
	const struct copy *c = arg;
	uint64_t i, *last = b.src + c->bytes / 8 - 1;
	double t;

	*b.src = ++stamp;
	*last = stamp;
	t = bench_now();
	for (i = 0; i < n; i++) {
		npuemu_post_write(b.q, b.src, (uint32_t)c->bytes, &b.target, b.raddr,
				  NPUEMU_SQE_CQE | NPUEMU_RELAXED);
		bench_try(npuemu_doorbell(b.q));
		bench_drain(b.cq, 1, &b.bad);
	}
	return bench_now() - t;
}

/* The second half of both sides holds floats. */
static double write_reduce(void *arg, uint64_t n)
{
	const struct copy *c = arg;
	double t = bench_now();
	uint64_t i;

	for (i = 0; i < n; i++) {
		npuemu_post_write_reduce(b.q, (char *)b.src + LARGEST, (uint32_t)c->bytes,
					 &b.target, b.raddr + LARGEST, NPUEMU_REDUCE_SUM,
					 NPUEMU_FP32, NPUEMU_SQE_CQE | NPUEMU_RELAXED);
		bench_try(npuemu_doorbell(b.q));
		bench_drain(b.cq, 1, &b.bad);
	}
	t = bench_now() - t;
	sums[c->bytes > 64 * KIB] += n;
	return t;
}

/* Two floats that both hold @n. */
static uint64_t two_floats(uint64_t n)
{
	float f[2] = { (float)n, (float)n };
	uint64_t v;

	memcpy(&v, f, sizeof(v));
	return v;
}

static double by_memcpy(void *arg, uint64_t n)
{
	const struct copy *c = arg;
	double t = bench_now();
	uint64_t i;

	for (i = 0; i < n; i++) {
		memcpy(c->dst, c->src, c->bytes);
		__asm__ volatile("" ::: "memory");
	}
	return bench_now() - t;
}

__attribute__((noinline))
static void add_floats(float *restrict y, const float *restrict x, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		y[i] += x[i];
}

static double by_loop(void *arg, uint64_t n)
{
	const struct copy *c = arg;
	double t = bench_now();
	uint64_t i;

	for (i = 0; i < n; i++)
		add_floats(c->dst, c->src, c->bytes / sizeof(float));
	return bench_now() - t;
}

static void *shared(void)
{
	int fd = memfd_create("npuemu-bench", MFD_CLOEXEC);
	void *p;

	if (fd < 0 || ftruncate(fd, LARGEST))
		bench_die("memfd: %s", strerror(errno));
	p = mmap(NULL, LARGEST, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
	close(fd);
	memset(p, 0, LARGEST);
	return p;
}

/* Private memory in 2 MiB pages, where the kernel gives them. */
static void *huge(uint64_t bytes)
{
	void *p = aligned_alloc(2 * MIB, bytes);

	if (!p)
		bench_die("no memory");
	madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

int main(int argc, char **argv)
{
	static const char *const size_names[] = { "64k", "1m", "16m", "64m" };
	static const uint64_t sizes[] = { 64 * KIB, MIB, 16 * MIB, 64 * MIB };
	struct bench_case cases[BENCH_MAX_CASES];
	struct bench_peer peer;
	struct copy all[4], thp[4];
	unsigned int count = 0, i;
	char *name;
	float *x, *y;

	bench_peer_check(argc, argv);
	bench_start();
	bench_peer_start(&peer, LARGEST + 2 * MIB);
	bench_queue_open(&b, LARGEST + 2 * MIB);
	bench_queue_to(&b, &peer.seg);
	bench_place();
	x = (float *)(void *)((char *)b.src + LARGEST);
	y = shared();
	for (i = 0; i < MIB / sizeof(float); i++)
		x[i] = 1.0f;

	all[0].src = shared();
	thp[0].src = huge(2 * MIB);
	thp[0].dst = huge(2 * MIB);
	for (i = 0; i < 4; i++) {
		all[i] = (struct copy){ sizes[i], all[0].src, y };
		thp[i] = (struct copy){ sizes[i], thp[0].src, thp[0].dst };
#define ADD(what, fn, where)						\
		do {							\
			if (asprintf(&name, "%s_%s", what, size_names[i]) < 0)	\
				bench_die("no memory");			\
			cases[count++] = (struct bench_case){		\
				name, fn, &(where)[i], 1, 0 };	\
		} while (0)
		ADD("memcpy", by_memcpy, all);
		ADD("write", write_one_size, all);
		if (i > 1)
			continue;
		ADD("memcpy_huge", by_memcpy, thp);
		ADD("loop", by_loop, all);
		ADD("reduce", write_reduce, all);
	}
	bench_run(cases, count, false);

	bench_good("large WRITE", b.bad);
	bench_equal("64 MiB WRITE", bench_peer_word(&peer, 0), stamp);
	bench_equal("64 MiB WRITE", bench_peer_word(&peer, LARGEST - 8), stamp);
	bench_equal("fp32 reduce", bench_peer_word(&peer, LARGEST),
		    two_floats(sums[0] + sums[1]));
	bench_equal("fp32 reduce", bench_peer_word(&peer, LARGEST + MIB - 8),
		    two_floats(sums[1]));
	bench_try(npuemu_close(b.ctx));
	bench_peer_stop(&peer);
	return bench_end();
}
