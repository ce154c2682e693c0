// SPDX-License-Identifier: MIT
/*
 * Message rate of 8-byte WRITEs: 32 a doorbell, a completion for each, into
 * another process's segment; against the bare ring and io_uring NOPs.  With
 * NPUEMU_ASYNC=1 the engine thread does the work and the ring is kept full,
 * else the posting thread helps.
 */
#include "bare.h"
#include "stream.h"
#include <liburing.h>

#define QUEUES		64u
#define QUEUE_DEPTH	64u	/* of each of the 64: two doorbells in flight */

static struct bench_queue b;
static uint64_t stamp;		/* what the current sample writes */

/* One thread that posts, helps and polls. */
static double helped(void *arg, uint64_t n)
{
	double t;
	uint64_t i;

	bench_queue_to(&b, arg);
	*b.src = ++stamp;
	t = bench_now();
	for (i = 0; i < n; i += BENCH_BATCH) {
		stream_batch(&b, b.q, i);
		bench_drain(b.cq, BENCH_BATCH, &b.bad);
	}
	return bench_now() - t;
}

/* The engine thread works. */
static double async(void *arg, uint64_t n)
{
	bench_queue_to(&b, arg);
	*b.src = ++stamp;
	return stream_full(&b, n);
}

struct many {
	struct npuemu_queue *q[QUEUES];
	const struct npuemu_seg_info *seg;
};

/* The same over 64 queues of one device, in turn. */
static double async_many(void *arg, uint64_t n)
{
	uint64_t posted = 0, done = 0;
	struct npuemu_wc wc[BENCH_BATCH];
	struct many *m = arg;
	uint32_t k = 0;
	int i, got;
	double t;

	bench_queue_to(&b, m->seg);
	*b.src = ++stamp;
	t = bench_now();
	while (done < n) {
		struct npuemu_queue *q = m->q[k++ % QUEUES];

		got = npuemu_poll(npuemu_queue_cq(q), wc, BENCH_BATCH);
		for (i = 0; i < got; i++)
			b.bad |= wc[i].status;
		if (got < 0)
			bench_die("npuemu_poll: %s", npuemu_errmsg());
		done += (uint64_t)got;
		if (posted < n && npuemu_sq_space(q) >= BENCH_BATCH) {
			stream_batch(&b, q, posted);
			posted += BENCH_BATCH;
		}
	}
	return bench_now() - t;
}

static double uring_nops(void *arg, uint64_t n)
{
	struct io_uring *ring = arg;
	double t = bench_now();
	struct io_uring_cqe *cqe;
	unsigned int head, seen;
	uint64_t i;
	uint32_t j;
	int ret;

	for (i = 0; i < n; i += BENCH_BATCH) {
		for (j = 0; j < BENCH_BATCH; j++)
			io_uring_prep_nop(io_uring_get_sqe(ring));
		ret = io_uring_submit_and_wait(ring, BENCH_BATCH);
		if (ret < 0)
			bench_die("io_uring: %s", strerror(-ret));
		for (seen = 0; seen < BENCH_BATCH;) {
			unsigned int got = 0;

			io_uring_for_each_cqe(ring, head, cqe)
				got++;
			io_uring_cq_advance(ring, got);
			seen += got;
			if (!got && io_uring_wait_cqe(ring, &cqe))
				bench_die("io_uring: no completion");
		}
	}
	return bench_now() - t;
}

static struct bench_case cases[BENCH_MAX_CASES];
static unsigned int count;

static void add(const char *name, double (*run)(void *arg, uint64_t n), void *arg)
{
	cases[count++] = (struct bench_case){
		.name = name, .run = run, .arg = arg, .step = BENCH_BATCH * QUEUES,
	};
}

static void add_uring(const char *name, unsigned int flags, struct io_uring *ring)
{
	int ret = io_uring_queue_init(BENCH_RING, ring, flags);

	if (ret)
		fprintf(stderr, "io_uring (%s) is not to be had: %s\n", name, strerror(-ret));
	else
		add(name, uring_nops, ring);
}

static void loopback(struct npuemu_seg_info *info)
{
	struct npuemu_seg_attr attr = {
		.size = sizeof(attr), .access = NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE,
	};
	struct npuemu_buf *buf;
	struct npuemu_seg *seg;

	bench_try(npuemu_buf_alloc(b.ctx, 0, 4096, 0, &buf));
	bench_try(npuemu_seg_register(buf, &attr, &seg));
	bench_try(npuemu_seg_query(seg, info));
}

int main(int argc, char **argv)
{
	bool is_async = bench_env("NPUEMU_ASYNC", 0);
	static struct io_uring plain, defer;
	struct npuemu_seg_info own;
	struct bench_peer peer;
	struct many many;
	uint32_t i;

	bench_peer_check(argc, argv);
	bench_start();
	bench_peer_start(&peer, 4096);
	bench_queue_open(&b, 4096);
	loopback(&own);
	many.seg = &peer.seg;
	for (i = 0; is_async && i < QUEUES; i++)
		many.q[i] = bench_queue_new(b.ctx, NPUEMU_QUEUE_UDMA, QUEUE_DEPTH);
	bench_place();

	if (is_async) {
		add("bare2", bare_two_threads_rate, bare_new());
		add("rate", async, &peer.seg);
		add("rate64", async_many, &many);
	} else {
		add("bare1", bare_one_thread_rate, bare_new());
		add("rate", helped, &peer.seg);
		add("loopback", helped, &own);
	}
	add_uring("uring", 0, &plain);
	add_uring("uring_defer", IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		  &defer);
	bench_run(cases, count, true);

	if (is_async)
		async(&peer.seg, BENCH_BATCH * QUEUES);
	else
		helped(&peer.seg, BENCH_BATCH * QUEUES);
	bench_good("8-byte WRITE", b.bad);
	for (i = 0; i < 512; i++)
		bench_equal("8-byte WRITE", bench_peer_word(&peer, i * 8), stamp);
	bench_try(npuemu_close(b.ctx));
	bench_peer_stop(&peer);
	return bench_end();
}
