/* SPDX-License-Identifier: MIT */
/*
 * There and back between the two processes of a pair, for notify and send: the
 * initiator posts (ping), the peer waits for the arrival and posts the answer
 * (pong).  Both count messages alike from the start of a round on.
 */
#ifndef NPUEMU_TOOLS_PERF_PINGPONG_H
#define NPUEMU_TOOLS_PERF_PINGPONG_H

#include "loops.h"

/*
 * Wait for the other side's next message and say in which rx slot it lies.  0, an
 * exit code, or -1: the other side's @total says that there will be no more.
 */
typedef int (*npuemu_perf_arrive)(struct npuemu_perf_lane *l, uint64_t *slot,
				  const _Atomic uint64_t *total);

/* The pattern of the current message or of its answer. */
static inline uint64_t npuemu_perf_message_seed(const struct npuemu_perf_lane *l,
						uint64_t message, int answer)
{
	return l->seed + (message << 33) + (answer ? 1ull << 32 : 0);
}

static inline void npuemu_perf_write_message(struct npuemu_perf_lane *l, int answer)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);

	npuemu_perf_fill(h.near_tx + (h.base & h.mask) * h.stride, h.size,
			 npuemu_perf_message_seed(l, l->next, answer));
}

static inline int npuemu_perf_read_message(struct npuemu_perf_lane *l, uint64_t slot,
					   uint64_t message, int answer)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);

	return npuemu_perf_check(l, h.near_rx + slot * h.stride, h.size,
				 npuemu_perf_message_seed(l, message, answer),
				 answer ? "the answer" : "the destination");
}

/* The own completion is taken last: it is not what the other side waits for. */
NPUEMU_PERF_INLINE int npuemu_perf_ping(struct npuemu_perf_lane *l, uint64_t *slot,
					npuemu_perf_post post, npuemu_perf_arrive arrive)
{
	struct npuemu_wc wc;
	int rc;

	rc = npuemu_perf_post_once(l, NPUEMU_SQE_CQE, post);
	if (!rc)
		rc = arrive(l, slot, NULL);
	if (!rc)
		rc = npuemu_perf_reap_one(l, l->cq, &wc);
	return rc;
}

NPUEMU_PERF_INLINE int npuemu_perf_answer(struct npuemu_perf_lane *l, npuemu_perf_post post)
{
	struct npuemu_wc wc;
	int rc;

	rc = npuemu_perf_post_once(l, NPUEMU_SQE_CQE, post);
	if (!rc)
		rc = npuemu_perf_reap_one(l, l->cq, &wc);
	return rc;
}

NPUEMU_PERF_INLINE int npuemu_perf_ping_timed(struct npuemu_perf_lane *l, uint64_t n,
					      npuemu_perf_post post,
					      npuemu_perf_arrive arrive)
{
	uint64_t i, t, slot;
	int rc;

	for (i = 0; npuemu_perf_going(l, i, n); i++) {
		t = npuemu_ticks();
		rc = npuemu_perf_ping(l, &slot, post, arrive);
		if (rc)
			return rc;
		npuemu_hist_add(&l->hist, npuemu_ticks() - t);
	}
	return 0;
}

NPUEMU_PERF_INLINE int npuemu_perf_pong_timed(struct npuemu_perf_lane *l,
					      npuemu_perf_post post,
					      npuemu_perf_arrive arrive)
{
	const _Atomic uint64_t *total = &l->w->other->total[l->index];
	uint64_t slot;
	int rc;

	do {
		rc = arrive(l, &slot, total);
		if (!rc)
			rc = npuemu_perf_answer(l, post);
	} while (!rc);
	return rc < 0 ? 0 : rc;
}

/* @n messages before the timed run; with @check each has a pattern of its own. */
NPUEMU_PERF_INLINE int npuemu_perf_ping_n(struct npuemu_perf_lane *l, uint32_t n, int check,
					  npuemu_perf_post post, npuemu_perf_arrive arrive)
{
	uint64_t slot, message;
	int rc = 0;

	while (n-- && !rc) {
		message = l->next;
		if (check)
			npuemu_perf_write_message(l, 0);
		rc = npuemu_perf_ping(l, &slot, post, arrive);
		if (!rc && check)
			rc = npuemu_perf_read_message(l, slot, message, 1);
	}
	return rc;
}

NPUEMU_PERF_INLINE int npuemu_perf_pong_n(struct npuemu_perf_lane *l, uint32_t n, int check,
					  npuemu_perf_post post, npuemu_perf_arrive arrive)
{
	uint64_t slot = 0;
	int rc = 0;

	while (n-- && !rc) {
		if (check)
			npuemu_perf_write_message(l, 1);
		rc = arrive(l, &slot, NULL);
		if (!rc && check)
			rc = npuemu_perf_read_message(l, slot, l->next, 0);
		if (!rc)
			rc = npuemu_perf_answer(l, post);
	}
	return rc;
}

#define NPUEMU_PERF_PINGPONG(name, post, arrive)					\
	static int name##_ping(struct npuemu_perf_lane *l, uint64_t n)			\
	{										\
		return npuemu_perf_ping_timed(l, n, post, arrive);			\
	}										\
	static int name##_pong(struct npuemu_perf_lane *l)				\
	{										\
		return npuemu_perf_pong_timed(l, post, arrive);				\
	}										\
	static int name##_ping_n(struct npuemu_perf_lane *l, uint32_t n, int check)	\
	{										\
		return npuemu_perf_ping_n(l, n, check, post, arrive);			\
	}										\
	static int name##_pong_n(struct npuemu_perf_lane *l, uint32_t n, int check)	\
	{										\
		return npuemu_perf_pong_n(l, n, check, post, arrive);			\
	}

#endif
