/* SPDX-License-Identifier: MIT */
/*
 * What the idle benches share: 64 queues over 8 devices, each mapped for device
 * code and used once, and the plain doorbell store that must wake their engine.
 */
#ifndef NPUEMU_BENCH_IDLE_H
#define NPUEMU_BENCH_IDLE_H

#include "bench.h"

#define IDLE_QUEUES	64
#define IDLE_DEVICES	8

struct idle_one {
	struct npuemu_queue *q;
	struct npuemu_queue_map map;
	struct npuemu_buf *buf;
	struct npuemu_target target;
	uint64_t va;
};

static struct idle_one idle_all[IDLE_QUEUES];

static inline void idle_make(struct npuemu *ctx, struct idle_one *o, uint32_t device)
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

static inline void idle_use(struct idle_one *o)
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

/* The board with all queues made and used; how many devices they are on. */
static inline uint32_t idle_open(struct npuemu **ctx)
{
	struct npuemu_info info = { .size = sizeof(info) };
	uint32_t devices, i;

	bench_try(npuemu_open(NULL, ctx));
	bench_try(npuemu_query(*ctx, &info));
	devices = info.devices < IDLE_DEVICES ? info.devices : IDLE_DEVICES;
	for (i = 0; i < IDLE_QUEUES; i++)
		idle_make(*ctx, &idle_all[i], i % devices);
	for (i = 0; i < IDLE_QUEUES; i++)
		idle_use(&idle_all[i]);
	return devices;
}

static inline void idle_sleep(double seconds)
{
	double end = bench_now() + seconds * 1e9, left;

	while ((left = end - bench_now()) > 0) {
		struct timespec rest = { .tv_sec = (time_t)(left / 1e9) };

		rest.tv_nsec = (long)(left - (double)rest.tv_sec * 1e9);
		nanosleep(&rest, NULL);
	}
}

/* As device code does it: WQE into the ring, 32-bit store to the doorbell. */
static inline double idle_wake(struct idle_one *o)
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

#endif
