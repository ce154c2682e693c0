// SPDX-License-Identifier: MIT
/*
 * One WQE at a time, doorbell to polled completion, and fetch-add; against the
 * bare ring, a bare store and a bare locked add.
 */
#include "bare.h"

static struct bench_queue b;
static uint64_t stamp, added;
static uint64_t words[512] __attribute__((aligned(64)));

static double write_one(void *arg, uint64_t n)
{
	double t;
	uint64_t i;

	(void)arg;
	*b.src = ++stamp;
	t = bench_now();
	for (i = 0; i < n; i++) {
		npuemu_post_write(b.q, b.src, 8, &b.target, b.raddr + (i & 255) * 8,
				  NPUEMU_SQE_CQE | NPUEMU_RELAXED);
		bench_try(npuemu_doorbell(b.q));
		bench_drain(b.cq, 1, &b.bad);
	}
	return bench_now() - t;
}

/* Batched as the bare one-thread ring is: 32 a doorbell. */
static double fetch_add(void *arg, uint64_t n)
{
	uint64_t word = b.raddr + 2048, i;
	uint32_t j;
	double t;

	(void)arg;
	t = bench_now();
	for (i = 0; i < n; i += BENCH_BATCH) {
		for (j = 0; j < BENCH_BATCH; j++)
			if (npuemu_post_faa(b.q, b.src + 8 + j, 8, &b.target, word, 1,
					    NPUEMU_SQE_CQE | NPUEMU_RELAXED))
				bench_die("fetch-add: the ring is full");
		bench_try(npuemu_doorbell(b.q));
		bench_drain(b.cq, BENCH_BATCH, &b.bad);
	}
	t = bench_now() - t;
	added += n;
	return t;
}

static double bare_store(void *arg, uint64_t n)
{
	double t = bench_now();
	uint64_t i;

	(void)arg;
	for (i = 0; i < n; i++)
		bench_store(&words[i & 255], i);
	return bench_now() - t;
}

static double bare_add(void *arg, uint64_t n)
{
	double t = bench_now();
	uint64_t i;

	(void)arg;
	for (i = 0; i < n; i++)
		words[8 + (i & 31)] = __atomic_fetch_add(&words[300], 1, __ATOMIC_SEQ_CST);
	return bench_now() - t;
}

int main(int argc, char **argv)
{
	bool is_async = bench_env("NPUEMU_ASYNC", 0);
	struct bare *bare;
	struct bench_peer peer;
	int i;

	bench_peer_check(argc, argv);
	bench_start();
	bench_peer_start(&peer, 4096);
	bench_queue_open(&b, 4096);
	bench_queue_to(&b, &peer.seg);
	bench_place();
	bare = bare_new();

	struct bench_case with_engine[] = {
		{ "bare2", bare_two_threads_latency, bare, 1, 0 },
		{ "write", write_one, NULL, 256, 0 },
	};
	struct bench_case helping[] = {
		{ "store", bare_store, NULL, 256, 0 },
		{ "write", write_one, NULL, 256, 0 },
		{ "bare1", bare_one_thread_latency, bare, 1, 0 },
		{ "add", bare_add, NULL, 1, 0 },
		{ "bare1_batch", bare_one_thread_rate, bare, BENCH_BATCH, 0 },
		{ "faa", fetch_add, NULL, BENCH_BATCH, 0 },
	};

	if (is_async)
		bench_run(with_engine, 2, true);
	else
		bench_run(helping, 6, false);

	bench_good("one WRITE or fetch-add", b.bad);
	for (i = 0; i < 256; i++)
		bench_equal("one WRITE", bench_peer_word(&peer, (uint64_t)i * 8), stamp);
	bench_equal("fetch-add", bench_peer_word(&peer, 2048), added);
	bench_try(npuemu_close(b.ctx));
	bench_peer_stop(&peer);
	return bench_end();
}
