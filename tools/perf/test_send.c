// SPDX-License-Identifier: MIT
/*
 * send: SEND to the peer's queue, which gives receive buffers.  The peer always
 * takes part: it answers for latency, or takes what comes and gives the buffers
 * back.  The receive queue is full at the start and each buffer returns at once,
 * so entry number N lies in rx slot N modulo their number.
 */
#include <string.h>

#include "../common/cli.h"
#include "pingpong.h"

NPUEMU_PERF_INLINE int post(const struct npuemu_perf_hot *h, uint64_t i, uint32_t flags)
{
	uint64_t at = (i & h->mask) * h->stride;

	return npuemu_post_send(h->q, h->near_tx + at, h->size, &h->jetty, 1, flags);
}

/* One receive completion: look at it and give its buffer back. */
static int received(struct npuemu_perf_lane *l, const struct npuemu_wc *wc)
{
	int rc;

	if (wc->status != NPUEMU_ST_SUCCESS)
		return npuemu_perf_bad_wc(l, wc);
	if (wc->byte_cnt != l->lay.size)
		return npuemu_perf_fail(l, NPUEMU_EXIT_DATA,
					"message %llu: expected %u bytes, found %u",
					(unsigned long long)l->got, l->lay.size,
					wc->byte_cnt);
	l->got++;
	rc = npuemu_perf_give(l, wc->wqe);
	return rc ? npuemu_perf_bad_call(l, rc, "npuemu_post_recv") : 0;
}

static int arrive(struct npuemu_perf_lane *l, uint64_t *slot, const _Atomic uint64_t *total)
{
	struct npuemu_perf_idle idle = { 0, 0 };
	struct npuemu_wc wc;
	uint64_t end;
	int n, rc;

	while ((n = npuemu_poll(l->rcq, &wc, 1)) == 0) {
		end = total ? atomic_load_explicit(total, memory_order_relaxed) : 0;
		if (end && end == l->got)
			return -1;
		rc = npuemu_perf_pause(l, &idle, l->rcq);
		if (rc)
			return rc;
	}
	if (n < 0)
		return npuemu_perf_bad_call(l, n, "npuemu_poll");
	*slot = wc.wqe & (l->lay.slots - 1);
	return received(l, &wc);
}

/* The receiving end of a stream. */
static int drain(struct npuemu_perf_lane *l)
{
	const _Atomic uint64_t *total = &l->w->other->total[l->index];
	struct npuemu_perf_idle idle = { 0, 0 };
	struct npuemu_wc wc[32];
	uint64_t end;
	int n, i, rc = 0;

	while (!rc) {
		n = npuemu_poll(l->rcq, wc, 32);
		if (n < 0)
			return npuemu_perf_bad_call(l, n, "npuemu_poll");
		for (i = 0; i < n && !rc; i++)
			rc = received(l, &wc[i]);
		if (n) {
			memset(&idle, 0, sizeof(idle));
			continue;
		}
		end = atomic_load_explicit(total, memory_order_relaxed);
		if (end && end == l->got)
			break;
		rc = npuemu_perf_pause(l, &idle, l->rcq);
	}
	return rc;
}

NPUEMU_PERF_STREAM(send, post, 1)
NPUEMU_PERF_PINGPONG(send, post, arrive)

const struct npuemu_perf_test npuemu_perf_send = {
	.name = "send",
	.what = "UDMA SEND into the peer's receive buffers; latency as for notify",
	.bbs = 1,
	.size_min = 1,
	.size_max = 1u << 28,
	.receives = 1,
	.peer_latency = 1,
	.peer_stream = 1,
	.once = send_once,
	.latency = send_ping,
	.stream = send_stream,
	.pong = send_pong,
	.drain = drain,
	.ping_n = send_ping_n,
	.pong_n = send_pong_n,
	.arm = npuemu_perf_arm_push,
	.verify = npuemu_perf_verify_push,
};
