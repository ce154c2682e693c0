// SPDX-License-Identifier: MIT
/*
 * The ACL runtime, as its programs use it: synchronous copies against memcpy over
 * memory of the same kinds, runs of small asynchronous copies, an event on an idle
 * stream, allocation.
 *
 * Device memory is a shared mapping of 4 KiB pages and so is what memcpy gets for
 * it; the host's is private (malloc) for both.  Small copies walk over 4 MiB, each
 * block once a run, as memcpy's do.  Allocations are not touched.
 */
#include "acl.h"

#define KIB	1024ull
#define MIB	(1024ull * KIB)
#define LARGEST	(64 * MIB)
#define SMALL	(4 * KIB)
#define RUN	1000u		/* small copies, or allocations, in a row */
#define SPREAD	(4 * MIB)

static struct {
	uint64_t *pageable, *pinned, *device, *target;	/* of the runtime's copies */
	uint64_t *from, *to;				/* of memcpy, for device memory */
	aclrtStream stream;
	aclrtEvent event;
	uint64_t stamp;
} b;

struct copy {
	uint64_t bytes;
	uint64_t *src;
	bool host_target;
};

/* ---- At once --------------------------------------------------------------- */

static void check(const uint64_t *at, const char *what)
{
	uint64_t have;

	acl_try(aclrtMemcpy(&have, sizeof(have), at, sizeof(have), ACL_MEMCPY_DEFAULT));
	bench_equal(what, have, b.stamp);
}

static void put_stamp(uint64_t *at)
{
	acl_try(aclrtMemcpy(at, sizeof(*at), &b.stamp, sizeof(b.stamp), ACL_MEMCPY_DEFAULT));
}

static double copy_now(void *arg, uint64_t n)
{
	const struct copy *c = arg;
	uint64_t i, last = c->bytes / 8 - 1;
	uint64_t *dst = c->host_target ? b.pageable : b.target;
	double t;

	b.stamp++;
	put_stamp(c->src);
	put_stamp(c->src + last);
	t = bench_now();
	for (i = 0; i < n; i++)
		acl_try(aclrtMemcpy(dst, c->bytes, c->src, c->bytes, ACL_MEMCPY_DEFAULT));
	t = bench_now() - t;
	check(dst, "aclrtMemcpy");
	check(dst + last, "aclrtMemcpy");
	return t;
}

static double by_memcpy(void *arg, uint64_t n)
{
	const struct copy *c = arg;
	double t = bench_now();
	uint64_t i;

	for (i = 0; i < n; i++) {
		memcpy(b.to, c->src, c->bytes);
		__asm__ volatile("" ::: "memory");
	}
	return bench_now() - t;
}

/* ---- In a stream ------------------------------------------------------------- */

/* Where the nth of a run of small copies is: each block once, none next to the last. */
static uint64_t block(uint64_t n)
{
	return n * 167 % (SPREAD / SMALL) * (SMALL / 8);
}

static double copies_async(void *arg, uint64_t n)
{
	const struct copy *c = arg;
	uint64_t i, k;
	double t;

	b.stamp++;
	put_stamp(c->src + block(RUN - 1));
	t = bench_now();
	for (k = 0; k < n; k += RUN) {
		for (i = 0; i < RUN; i++)
			acl_try(aclrtMemcpyAsync(b.target + block(i), SMALL, c->src + block(i), SMALL,
						 ACL_MEMCPY_DEFAULT, b.stream));
		acl_try(aclrtSynchronizeStream(b.stream));
	}
	t = bench_now() - t;
	check(b.target + block(RUN - 1), "aclrtMemcpyAsync");
	return t;
}

static double small_memcpy(void *arg, uint64_t n)
{
	const struct copy *c = arg;
	double t = bench_now();
	uint64_t i, k;

	for (k = 0; k < n; k += RUN)
		for (i = 0; i < RUN; i++) {
			memcpy(b.to + block(i), c->src + block(i), SMALL);
			__asm__ volatile("" ::: "memory");
		}
	return bench_now() - t;
}

static double record_and_sync(void *arg, uint64_t n)
{
	double t = bench_now();
	uint64_t i;

	(void)arg;
	for (i = 0; i < n; i++) {
		acl_try(aclrtRecordEvent(b.event, b.stream));
		acl_try(aclrtSynchronizeEvent(b.event));
	}
	return bench_now() - t;
}

/* ---- Allocation ----------------------------------------------------------------- */

static double pairs(void *arg, uint64_t n)
{
	double t = bench_now();
	uint64_t i;
	void *p;

	(void)arg;
	for (i = 0; i < n; i++) {
		acl_try(aclrtMalloc(&p, 2 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
		acl_try(aclrtFree(p));
	}
	return bench_now() - t;
}

/* All of a run at a time, and away in the order they came. */
static double pairs_at_once(void *arg, uint64_t n)
{
	static void *p[RUN];
	double t = bench_now();
	uint64_t i, k;

	(void)arg;
	for (k = 0; k < n; k += RUN) {
		for (i = 0; i < RUN; i++)
			acl_try(aclrtMalloc(&p[i], 2 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
		for (i = 0; i < RUN; i++)
			acl_try(aclrtFree(p[i]));
	}
	return bench_now() - t;
}

/* ---- All of it -------------------------------------------------------------------- */

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

static void set_up(void)
{
	acl_try(aclInit(NULL));
	acl_try(aclrtSetDevice(0));
	acl_try(aclrtCreateStream(&b.stream));
	acl_try(aclrtCreateEvent(&b.event));
	acl_try(aclrtMalloc((void **)&b.device, LARGEST, ACL_MEM_MALLOC_HUGE_FIRST));
	acl_try(aclrtMalloc((void **)&b.target, LARGEST, ACL_MEM_MALLOC_HUGE_FIRST));
	acl_try(aclrtMallocHost((void **)&b.pinned, LARGEST));
	b.pageable = malloc(LARGEST);
	if (!b.pageable)
		bench_die("no memory");
	b.from = shared();
	b.to = shared();
	memset(b.pageable, 0, LARGEST);
	memset(b.pinned, 0, LARGEST);
	acl_try(aclrtMemset(b.device, LARGEST, 0, LARGEST));
	acl_try(aclrtMemset(b.target, LARGEST, 0, LARGEST));
	/* its threads are there after the first use: to the other cpu with them */
	acl_try(aclrtRecordEvent(b.event, b.stream));
	acl_try(aclrtSynchronizeStream(b.stream));
	bench_place();
}

int main(void)
{
	static struct copy d2d_1m, d2d_64m, h2d_1m, h2d_64m, pin_1m, pin_64m, d2h_1m, from_1m, from_64m, small_d2d,
		small_pin, small_from;
	struct bench_case cases[] = {
		{ "memcpy_1m", by_memcpy, &from_1m, 1, 0 },
		{ "d2d_1m", copy_now, &d2d_1m, 1, 0 },
		{ "memcpy_host_1m", by_memcpy, &h2d_1m, 1, 0 },
		{ "h2d_1m", copy_now, &h2d_1m, 1, 0 },
		{ "h2d_pinned_1m", copy_now, &pin_1m, 1, 0 },
		{ "d2h_1m", copy_now, &d2h_1m, 1, 0 },
		{ "memcpy_64m", by_memcpy, &from_64m, 1, 0 },
		{ "d2d_64m", copy_now, &d2d_64m, 1, 0 },
		{ "memcpy_host_64m", by_memcpy, &h2d_64m, 1, 0 },
		{ "h2d_64m", copy_now, &h2d_64m, 1, 0 },
		{ "h2d_pinned_64m", copy_now, &pin_64m, 1, 0 },
		{ "memcpy_4k", small_memcpy, &small_from, RUN, 0 },
		{ "async_4k", copies_async, &small_d2d, RUN, 0 },
		{ "async_pinned_4k", copies_async, &small_pin, RUN, 0 },
		{ "event", record_and_sync, NULL, 1, 0 },
		{ "malloc", pairs, NULL, 1, 0 },
		{ "malloc_at_once", pairs_at_once, NULL, RUN, 0 },
	};

	bench_start();
	set_up();
	d2d_1m = (struct copy){ MIB, b.device, false };
	d2d_64m = (struct copy){ LARGEST, b.device, false };
	h2d_1m = (struct copy){ MIB, b.pageable, false };
	h2d_64m = (struct copy){ LARGEST, b.pageable, false };
	pin_1m = (struct copy){ MIB, b.pinned, false };
	pin_64m = (struct copy){ LARGEST, b.pinned, false };
	d2h_1m = (struct copy){ MIB, b.device, true };
	from_1m = (struct copy){ MIB, b.from, false };
	from_64m = (struct copy){ LARGEST, b.from, false };
	small_d2d = (struct copy){ SMALL, b.device, false };
	small_pin = (struct copy){ SMALL, b.pinned, false };
	small_from = (struct copy){ SMALL, b.from, false };
	bench_run(cases, sizeof(cases) / sizeof(cases[0]), false);
	acl_try(aclFinalize());
	return bench_end();
}
