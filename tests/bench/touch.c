// SPDX-License-Identifier: MIT
/*
 * First touch: 256 MiB of device memory nobody has touched, filled by SDMA,
 * against a fresh memfd mapping filled page by page.  Both sides are timed from
 * before the memory is asked for until its last byte is written.
 */
#include "bench.h"

#define BYTES	(256ull << 20)
#define CHUNK	(16ull << 20)
#define PATTERN	0x5a5a5a5a5a5a5a5aull

static void check(const char *what, const volatile uint64_t *p)
{
	uint64_t i;

	for (i = 0; i < BYTES / 8; i += 4096 / 8)
		if (p[i] != PATTERN || p[i + 511] != PATTERN)
			bench_die("%s: wrong bytes at %#llx", what,
				  (unsigned long long)i * 8);
}

static double by_device(struct npuemu *ctx, struct npuemu_queue *q)
{
	struct npuemu_buf *buf;
	uint64_t at;
	uint32_t bad = 0;
	double t = bench_now();
	char *p;

	bench_try(npuemu_buf_alloc(ctx, 0, BYTES, 0, &buf));
	p = npuemu_buf_ptr(buf);
	for (at = 0; at < BYTES; at += CHUNK)
		bench_try(npuemu_post_fill(q, p + at, PATTERN, 8, CHUNK, NPUEMU_SQE_CQE));
	bench_try(npuemu_doorbell(q));
	bench_drain(npuemu_queue_cq(q), BYTES / CHUNK, &bad);
	t = bench_now() - t;
	bench_good("SDMA fill", bad);
	check("SDMA fill", (void *)p);
	bench_try(npuemu_buf_free(buf));
	return t;
}

static double by_memfd(void)
{
	double t = bench_now();
	int fd = memfd_create("npuemu-bench", MFD_CLOEXEC);
	uint64_t at;
	char *p;

	if (fd < 0 || ftruncate(fd, BYTES))
		bench_die("memfd: %s", strerror(errno));
	p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
	for (at = 0; at < BYTES; at += 4096)
		memset(p + at, (int)(PATTERN & 0xff), 4096);
	t = bench_now() - t;
	check("memfd", (void *)p);
	munmap(p, BYTES);
	close(fd);
	return t;
}

int main(void)
{
	unsigned int reps = bench_env("BENCH_REPS_TOUCH", 2), r;
	struct npuemu_queue *q;
	struct npuemu *ctx;

	bench_start();
	bench_try(npuemu_open(NULL, &ctx));
	q = bench_queue_new(ctx, NPUEMU_QUEUE_SDMA, 64);
	bench_place();
	for (r = 0; r < reps; r++) {
		bench_emit("memfd", r, by_memfd() / (double)BYTES);
		bench_emit("device", r, by_device(ctx, q) / (double)BYTES);
	}
	bench_try(npuemu_close(ctx));
	return bench_end();
}
