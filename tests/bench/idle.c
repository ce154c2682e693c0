// SPDX-License-Identifier: MIT
/*
 * An idle board: one process with 64 queues over 8 devices, every one used once
 * and mapped for device code.  Prints the cpu time of 5 idle seconds in percent
 * of a core (cpu_pct), then how long after a plain store to a doorbell the
 * completion is in the ring (wake_ns), found without calling the library.  Last,
 * what a thread costs that does nothing but nap 10 ms at a time (nap10_pct): no
 * look-out that naps so can be cheaper on this machine.
 */
#include "bench.h"
#include <sys/resource.h>

#define QUEUES	64
#define DEVICES	8

struct one {
	struct npuemu_queue *q;
	struct npuemu_queue_map map;
	struct npuemu_buf *buf;
	struct npuemu_target target;
	uint64_t va;
};

static struct one all[QUEUES];

static void make(struct npuemu *ctx, struct one *o, uint32_t device)
{
	struct npuemu_seg_attr seg_attr = {
		.size = sizeof(seg_attr), .access = NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE,
	};
	struct npuemu_queue_attr attr = {
		.size = sizeof(attr), .device = device, .depth = 64,
	};
	struct npuemu_seg_info info;
	struct npuemu_seg *seg;

	bench_try(npuemu_buf_alloc(ctx, device, 4096, 0, &o->buf));
	bench_try(npuemu_seg_register(o->buf, &seg_attr, &seg));
	bench_try(npuemu_seg_query(seg, &info));
	o->target = npuemu_target_of(&info);
	o->va = info.va;
	bench_try(npuemu_queue_create(ctx, &attr, &o->q));
	o->map.size = sizeof(o->map);
	bench_try(npuemu_queue_map(o->q, &o->map));
}

static void use(struct one *o)
{
	uint64_t *p = npuemu_buf_ptr(o->buf);
	uint32_t bad = 0;

	p[0] = 0x1234;
	bench_try(npuemu_post_write(o->q, p, 8, &o->target, o->va + 8, NPUEMU_SQE_CQE));
	bench_try(npuemu_doorbell(o->q));
	bench_drain(npuemu_queue_cq(o->q), 1, &bad);
	bench_good("first WRITE", bad);
	bench_equal("first WRITE", p[1], 0x1234);
}

static double cpu_ns(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return 1e9 * (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e3 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* As device code does it: WQE into the ring, 32-bit store to the doorbell. */
static double wake(struct one *o)
{
	struct npuemu_post_view *v = npuemu_view(o->q);
	uint64_t *p = npuemu_buf_ptr(o->buf);
	/* one completion so far: this is entry 1 of the first lap */
	volatile uint32_t *cqe = (volatile uint32_t *)o->map.cq + NPUEMU_CQE_SIZE / 4;
	double t;

	p[0] = 0x5678;
	bench_try(npuemu_post_write(o->q, p, 8, &o->target, o->va + 8, NPUEMU_SQE_CQE));
	t = bench_now();
	__atomic_store_n(o->map.db, v->pi, __ATOMIC_RELEASE);
	while (!(__atomic_load_n(cqe, __ATOMIC_ACQUIRE) & NPUEMU_CQE_OWNER))
		if (bench_now() - t > 2e9)
			bench_die("no completion 2 s after a plain store to the doorbell");
	t = bench_now() - t;
	bench_equal("WRITE by a plain doorbell store", p[1], 0x5678);
	return t;
}

static double naps_pct(void)
{
	struct timespec nap = { 0, 10 * 1000 * 1000 };
	double t = bench_now(), cpu = cpu_ns(RUSAGE_THREAD);
	int i;

	for (i = 0; i < 50; i++)
		nanosleep(&nap, NULL);
	return 100 * (cpu_ns(RUSAGE_THREAD) - cpu) / (bench_now() - t);
}

int main(void)
{
	double seconds = bench_env("BENCH_IDLE_SECONDS", 5), cpu, t;
	struct timespec nap = { 0, 200 * 1000 * 1000 };
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu *ctx;
	uint32_t devices, i;

	bench_try(npuemu_open(NULL, &ctx));
	bench_try(npuemu_query(ctx, &info));
	devices = info.devices < DEVICES ? info.devices : DEVICES;
	for (i = 0; i < QUEUES; i++)
		make(ctx, &all[i], i % devices);
	for (i = 0; i < QUEUES; i++)
		use(&all[i]);
	nanosleep(&nap, NULL);

	cpu = cpu_ns(RUSAGE_SELF);
	t = bench_now();
	while (bench_now() - t < seconds * 1e9) {
		struct timespec rest = { 0, 0 };
		double left = seconds * 1e9 - (bench_now() - t);

		rest.tv_sec = (time_t)(left / 1e9);
		rest.tv_nsec = (long)(left - (double)rest.tv_sec * 1e9);
		nanosleep(&rest, NULL);
	}
	t = bench_now() - t;
	bench_emit("devices", 0, devices);
	bench_emit("cpu_pct", 0, 100 * (cpu_ns(RUSAGE_SELF) - cpu) / t);
	for (i = 0; i < 5; i++) {
		bench_emit("wake_ns", i, wake(&all[i * 13]));
		nanosleep(&nap, NULL);
	}
	bench_emit("nap10_pct", 0, naps_pct());
	bench_try(npuemu_close(ctx));
	return bench_end();
}
