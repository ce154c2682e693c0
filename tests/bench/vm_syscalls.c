// SPDX-License-Identifier: MIT
/*
 * System calls between posting and the polled completion, on the kernel host
 * with its engine awake.  A perf counter of the tracepoint raw_syscalls:sys_enter
 * counts those of this thread; reading it is one itself, which is taken off.
 *
 * quiet_pct: of 100,000 WRITEs in batches of 32, each batch polled to its end, the
 * share of batches without a system call.  per_write: of as many in a stream that
 * keeps the ring full, system calls for each WRITE.
 */
#define BENCH_RING 512u
#include <linux/perf_event.h>
#include "stream.h"
#include "vm.h"

#define WRITES	100000u

static struct bench_queue b;
static int counter;

static uint64_t tracepoint(const char *name)
{
	unsigned long long id;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%llu", &id) != 1)
		bench_die("%s: %s", path, strerror(errno));
	fclose(f);
	return id;
}

static void counter_open(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr),
		.config = tracepoint("raw_syscalls/sys_enter"),
	};

	counter = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (counter < 0)
		bench_die("perf_event_open: %s", strerror(errno));
}

static uint64_t calls(void)
{
	uint64_t n;

	if (read(counter, &n, sizeof(n)) != sizeof(n))
		bench_die("perf counter: %s", strerror(errno));
	return n;
}

/* A counter that counts nothing would show that all is well. */
static void counter_works(void)
{
	uint64_t n = calls();
	int i;

	for (i = 0; i < 10; i++)
		syscall(SYS_getppid);
	n = calls() - n;
	if (n != 11)
		bench_die("perf counter: %llu system calls counted where 11 were made",
			  (unsigned long long)n);
}

int main(int argc, char **argv)
{
	uint64_t before, now, made, clock;
	struct bench_peer peer;
	uint32_t i, batches, quiet = 0;

	bench_peer_check(argc, argv);
	bench_start();
	bench_peer_start(&peer, 4096);
	bench_queue_open(&b, 4096);
	bench_queue_to(&b, &peer.seg);
	vm_place();
	counter_open();
	counter_works();
	*b.src = 0x1234;
	stream_full(&b, 10 * BENCH_RING);	/* it is awake now */

	batches = WRITES / BENCH_BATCH;
	before = calls();
	for (i = 0; i < batches; i++) {
		stream_batch(&b, b.q, (uint64_t)i * BENCH_BATCH);
		bench_drain(b.cq, BENCH_BATCH, &b.bad);
		now = calls();
		quiet += now - before == 1;
		before = now;
	}
	/* the stream looks at the clock twice, which may be a system call */
	before = calls();
	bench_now();
	bench_now();
	clock = calls() - before - 1;
	stream_full(&b, 10 * BENCH_RING);
	before = calls();
	stream_full(&b, batches * BENCH_BATCH);
	made = calls() - before - 1 - clock;

	bench_emit("quiet_pct", 0, 100.0 * quiet / batches);
	bench_emit("per_write", 0, (double)made / (batches * BENCH_BATCH));
	bench_good("8-byte WRITE", b.bad);
	bench_equal("8-byte WRITE", bench_peer_word(&peer, 8), 0x1234);
	bench_try(npuemu_close(b.ctx));
	bench_peer_stop(&peer);
	return 0;
}
