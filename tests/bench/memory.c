// SPDX-License-Identifier: MIT
/*
 * Memory: KiB an idle device costs (device_kib), and KiB a queue of 1,024 basic
 * blocks and its CQ cost after two full laps of both (queue_kib).  What is counted:
 * memory.h; device memory that is backed is taken off.
 */
#include "bench.h"
#include "memory.h"

#define DEVICES	8
#define QUEUES	32
#define LAPS	4	/* the CQ has twice the entries: two laps of it */

static double hbm_kib(struct npuemu *ctx, uint32_t devices)
{
	struct npuemu_device_info info = { .size = sizeof(info) };
	double sum = 0;
	uint32_t i;

	for (i = 0; i < devices; i++) {
		bench_try(npuemu_device_query(ctx, i, &info));
		sum += (double)info.hbm_backed / 1024;
	}
	return sum;
}

static void laps(struct npuemu_queue *q, const struct npuemu_seg_info *seg, void *src)
{
	struct npuemu_target t = npuemu_target_of(seg);
	uint32_t i, j, bad = 0;

	for (i = 0; i < LAPS * BENCH_RING; i += BENCH_BATCH) {
		for (j = 0; j < BENCH_BATCH; j++)
			bench_try(npuemu_post_write(q, src, 8, &t, seg->va + 8,
						    NPUEMU_SQE_CQE));
		bench_try(npuemu_doorbell(q));
		bench_drain(npuemu_queue_cq(q), BENCH_BATCH, &bad);
	}
	bench_good("WRITE", bad);
}

int main(void)
{
	struct npuemu_seg_attr attr = {
		.size = sizeof(attr), .access = NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE,
	};
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu_queue *q[QUEUES];
	struct npuemu_buf *buf[DEVICES];
	struct npuemu_seg_info seg_info;
	struct npuemu_seg *seg;
	struct npuemu *ctx;
	uint32_t devices, i;
	double before, after;

	touched_kib();		/* its own pages are no device's */
	before = touched_kib();
	bench_try(npuemu_open(NULL, &ctx));
	bench_try(npuemu_query(ctx, &info));
	devices = info.devices < DEVICES ? info.devices : DEVICES;
	for (i = 0; i < devices; i++)
		bench_try(npuemu_buf_alloc(ctx, i, 4096, 0, &buf[i]));
	after = touched_kib() - hbm_kib(ctx, devices);
	bench_emit("devices", 0, devices);
	bench_emit("device_kib", 0, (after - before) / devices);

	/* one queue first: what all share is not the next one's */
	bench_try(npuemu_seg_register(buf[0], &attr, &seg));
	bench_try(npuemu_seg_query(seg, &seg_info));
	laps(bench_queue_new(ctx, NPUEMU_QUEUE_UDMA, BENCH_RING), &seg_info,
	     npuemu_buf_ptr(buf[0]));
	before = touched_kib() - hbm_kib(ctx, devices);
	for (i = 0; i < QUEUES; i++)
		q[i] = bench_queue_new(ctx, NPUEMU_QUEUE_UDMA, BENCH_RING);
	for (i = 0; i < QUEUES; i++)
		laps(q[i], &seg_info, npuemu_buf_ptr(buf[0]));
	after = touched_kib() - hbm_kib(ctx, devices);
	bench_emit("queue_kib", 0, (after - before) / QUEUES);
	bench_try(npuemu_close(ctx));
	return bench_end();
}
