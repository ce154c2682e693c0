// SPDX-License-Identifier: MIT
/*
 * WRITEs of 1 MiB into another process's segment on the kernel host, against
 * memcpy between two shared mappings.  As in copy.c each WRITE has a doorbell and
 * a completion of its own, the next one waits for it, and one pair of buffers is
 * used over and over.  Nobody helps (NPUEMU_ASYNC=1): the engine copies.
 */
#include "vm.h"

#define BYTES	(1u << 20)

static struct bench_queue b;
static uint64_t stamp;

static double by_write(void *arg, uint64_t n)
{
	double t;
	uint64_t i;

	(void)arg;
	*b.src = ++stamp;
	b.src[BYTES / 8 - 1] = stamp;
	t = bench_now();
	for (i = 0; i < n; i++) {
		bench_try(npuemu_post_write(b.q, b.src, BYTES, &b.target, b.raddr,
					    NPUEMU_SQE_CQE | NPUEMU_RELAXED));
		bench_try(npuemu_doorbell(b.q));
		bench_drain(b.cq, 1, &b.bad);
	}
	return bench_now() - t;
}

static double by_memcpy(void *arg, uint64_t n)
{
	char **two = arg;
	double t = bench_now();
	uint64_t i;

	for (i = 0; i < n; i++) {
		memcpy(two[0], two[1], BYTES);
		__asm__ volatile("" ::: "memory");
	}
	return bench_now() - t;
}

static char *shared(void)
{
	int fd = memfd_create("npuemu-bench", MFD_CLOEXEC);
	char *p;

	if (fd < 0 || ftruncate(fd, BYTES))
		bench_die("memfd: %s", strerror(errno));
	p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
	close(fd);
	memset(p, 1, BYTES);
	return p;
}

int main(int argc, char **argv)
{
	char *two[2] = { shared(), shared() };
	struct bench_case cases[] = {
		{ .name = "memcpy_1m", .run = by_memcpy, .arg = two },
		{ .name = "write_1m", .run = by_write },
	};
	struct bench_peer peer;

	bench_peer_check(argc, argv);
	bench_start();
	bench_peer_start(&peer, BYTES);
	bench_queue_open(&b, BYTES);
	bench_queue_to(&b, &peer.seg);
	vm_place();
	bench_run(cases, 2, true);

	bench_good("1 MiB WRITE", b.bad);
	bench_equal("1 MiB WRITE", bench_peer_word(&peer, 0), stamp);
	bench_equal("1 MiB WRITE", bench_peer_word(&peer, BYTES - 8), stamp);
	bench_try(npuemu_close(b.ctx));
	bench_peer_stop(&peer);
	return 0;
}
