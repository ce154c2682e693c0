// SPDX-License-Identifier: MIT
/*
 * Message rate of 8-byte WRITEs on the kernel host: the engine is a kernel
 * thread on the other cpu, nobody helps (NPUEMU_ASYNC=1), the ring of 512 blocks
 * is kept full; against the bare ring of the same depth between two threads.  And
 * one WRITE at a time.
 */
#define BENCH_RING 512u
#include "bare.h"
#include "stream.h"
#include "vm.h"

static struct bench_queue b;
static uint64_t stamp;		/* what the current sample writes */

static double rate(void *arg, uint64_t n)
{
	(void)arg;
	*b.src = ++stamp;
	return stream_full(&b, n);
}

/* One WRITE at a time, doorbell to the completion polled. */
static double latency(void *arg, uint64_t n)
{
	double t;
	uint64_t i;

	(void)arg;
	*b.src = ++stamp;
	t = bench_now();
	for (i = 0; i < n; i++) {
		bench_try(npuemu_post_write(b.q, b.src, 8, &b.target, b.raddr + (i & 511) * 8,
					    NPUEMU_SQE_CQE | NPUEMU_RELAXED));
		bench_try(npuemu_doorbell(b.q));
		bench_drain(b.cq, 1, &b.bad);
	}
	return bench_now() - t;
}

int main(int argc, char **argv)
{
	struct bench_case cases[] = {
		{ .name = "bare2", .run = bare_two_threads_rate, .step = BENCH_RING },
		{ .name = "rate", .run = rate, .step = BENCH_RING },
		{ .name = "bare2_one", .run = bare_two_threads_latency, .step = 16 },
		{ .name = "one", .run = latency, .step = 16 },
	};
	struct bench_peer peer;
	uint32_t i;

	bench_peer_check(argc, argv);
	bench_start();
	bench_peer_start(&peer, 4096);
	bench_queue_open(&b, 4096);
	bench_queue_to(&b, &peer.seg);
	vm_place();
	cases[0].arg = bare_new();
	cases[2].arg = cases[0].arg;
	bench_run(cases, 4, true);

	rate(NULL, BENCH_RING);
	bench_good("8-byte WRITE", b.bad);
	for (i = 0; i < 512; i++)
		bench_equal("8-byte WRITE", bench_peer_word(&peer, i * 8), stamp);
	bench_try(npuemu_close(b.ctx));
	bench_peer_stop(&peer);
	return 0;
}
