// SPDX-License-Identifier: MIT
/*
 * notify: WRITE_NOTIFY to the peer.  For latency the peer, waiting on the notify
 * word, answers with one of its own; the word counts messages, so it never needs
 * setting back within a round.  As a stream the peer does nothing.
 */
#include <string.h>

#include "../common/cli.h"
#include "pingpong.h"

/* Strong: the word must count up. */
NPUEMU_PERF_INLINE int post(const struct npuemu_perf_hot *h, uint64_t i, uint32_t flags)
{
	uint64_t at = (i & h->mask) * h->stride;

	return npuemu_post_write_notify(h->q, h->near_tx + at, h->size, &h->target,
					h->far_va_rx + at, &h->target, h->far_va_word,
					i + 1, flags | NPUEMU_STRONG);
}

/* The notify word of this side reaches the number of the message. */
static int arrive(struct npuemu_perf_lane *l, uint64_t *slot, const _Atomic uint64_t *total)
{
	const volatile uint64_t *word = (const volatile uint64_t *)(void *)l->near.map;
	struct npuemu_perf_idle idle = { 0, 0 };
	uint64_t want = ++l->got, end;
	int rc;

	*slot = (want - 1) & (l->lay.slots - 1);
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < want) {
		if (++idle.spins < NPUEMU_PERF_SPINS && !l->w->o->sleep)
			continue;
		end = total ? atomic_load(total) : 0;
		if (end && end < want)
			return -1;
		rc = npuemu_perf_sleep_word(l, &idle, word, want);
		if (rc)
			return rc;
	}
	return 0;
}

static void arm(struct npuemu_perf_lane *l, uint64_t seed, uint32_t timed)
{
	npuemu_perf_arm_push(l, seed, timed);
	if (l->far.map)
		memset(l->far.map, 0, 8);
}

/* Where the peer answers, each side looks at its own memory only. */
static int verify(struct npuemu_perf_lane *l, uint64_t seed, uint64_t n, uint32_t timed)
{
	int rc = npuemu_perf_verify_push(l, seed, n, timed);

	if (!rc && l->far.map)
		rc = npuemu_perf_check_word(l, l->far.map, n, 8, "the notify word");
	return rc;
}

NPUEMU_PERF_STREAM(notify, post, 2)
NPUEMU_PERF_PINGPONG(notify, post, arrive)

const struct npuemu_perf_test npuemu_perf_notify = {
	.name = "notify",
	.what = "UDMA WRITE_NOTIFY; for latency half a round trip between two processes",
	.bbs = 2,
	.size_min = 1,
	.size_max = 1u << 30,
	.peer_latency = 1,
	.once = notify_once,
	.latency = notify_ping,
	.stream = notify_stream,
	.pong = notify_pong,
	.ping_n = notify_ping_n,
	.pong_n = notify_pong_n,
	.arm = arm,
	.verify = verify,
};
