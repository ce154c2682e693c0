/* SPDX-License-Identifier: MIT */
/*
 * The measuring loops, made once for every test by inlining its post function:
 * a call through a pointer would cost as much as what is measured.  The fields a
 * loop needs are copied to the stack first, since stores into a ring might
 * otherwise alias them.
 */
#ifndef NPUEMU_TOOLS_PERF_LOOPS_H
#define NPUEMU_TOOLS_PERF_LOOPS_H

#include "perf.h"

#define NPUEMU_PERF_INLINE	static __attribute__((always_inline)) inline
#define NPUEMU_PERF_SPINS	2000u	/* empty looks before sleeping */
#define NPUEMU_PERF_SLICE_MS	10

struct npuemu_perf_hot {
	struct npuemu_queue *q;
	struct npuemu_cq *cq;
	char *near_tx;
	char *near_rx;
	char *far_tx;
	char *far_rx;
	uint64_t far_va_tx;
	uint64_t far_va_rx;
	uint64_t far_va_word;
	uint64_t stride;
	uint64_t mask;
	uint32_t size;
	uint32_t op;
	uint32_t type;
	uint64_t base;		/* messages since the memory was armed */
	struct npuemu_target target;
	struct npuemu_target jetty;
};

static inline struct npuemu_perf_hot npuemu_perf_hot(const struct npuemu_perf_lane *l)
{
	struct npuemu_perf_hot h;
	uint64_t tx = NPUEMU_PERF_GUARD, rx = NPUEMU_PERF_GUARD + l->lay.area;

	h.q = l->q;
	h.cq = l->cq;
	h.near_tx = l->near.map + tx;
	h.near_rx = l->near.map + rx;
	h.far_tx = l->far.map ? l->far.map + tx : NULL;
	h.far_rx = l->far.map ? l->far.map + rx : NULL;
	h.far_va_tx = l->far.va + tx;
	h.far_va_rx = l->far.va + rx;
	h.far_va_word = l->far.va;
	h.stride = l->lay.stride;
	h.mask = l->lay.slots - 1;
	h.size = l->lay.size;
	h.op = l->w->o->op;
	h.type = l->w->o->type;
	h.base = l->next - l->armed_at;
	h.target = l->target;
	h.jetty = l->jetty;
	return h;
}

/* Post message @i since arming: 0, or a negative errno. */
typedef int (*npuemu_perf_post)(const struct npuemu_perf_hot *h, uint64_t i, uint32_t flags);

struct npuemu_perf_idle {
	uint32_t spins;
	uint32_t slices;
};

/* loops.c: the paths that are not hot; exit codes, with l->msg set */
int npuemu_perf_bad_wc(struct npuemu_perf_lane *l, const struct npuemu_wc *wc);
int npuemu_perf_bad_call(struct npuemu_perf_lane *l, int err, const char *call);
/* Nothing came: sleep a little, or give up. */
int npuemu_perf_sleep(struct npuemu_perf_lane *l, struct npuemu_perf_idle *idle,
		      struct npuemu_cq *cq);
int npuemu_perf_sleep_word(struct npuemu_perf_lane *l, struct npuemu_perf_idle *idle,
			   const volatile uint64_t *word, uint64_t value);
/* Wait for one completion of @cq, polling it. */
int npuemu_perf_reap_one(struct npuemu_perf_lane *l, struct npuemu_cq *cq,
			 struct npuemu_wc *wc);

NPUEMU_PERF_INLINE int npuemu_perf_pause(struct npuemu_perf_lane *l,
					 struct npuemu_perf_idle *idle,
					 struct npuemu_cq *cq)
{
	if (++idle->spins < NPUEMU_PERF_SPINS && !l->w->o->sleep)
		return 0;
	return npuemu_perf_sleep(l, idle, cq);
}

/* Take what completions there are, at least one: 0 or an exit code. */
NPUEMU_PERF_INLINE int npuemu_perf_reap(struct npuemu_perf_lane *l, struct npuemu_cq *cq)
{
	struct npuemu_perf_idle idle = { 0, 0 };
	struct npuemu_wc wc[32];
	int n, i, rc;

	while ((n = npuemu_poll(cq, wc, 32)) == 0) {
		rc = npuemu_perf_pause(l, &idle, cq);
		if (rc)
			return rc;
	}
	if (n < 0)
		return npuemu_perf_bad_call(l, n, "npuemu_poll");
	for (i = 0; i < n; i++)
		if (wc[i].status != NPUEMU_ST_SUCCESS)
			return npuemu_perf_bad_wc(l, &wc[i]);
	return 0;
}

NPUEMU_PERF_INLINE int npuemu_perf_going(const struct npuemu_perf_lane *l, uint64_t done,
					 uint64_t n)
{
	if (n)
		return done < n;
	return !atomic_load_explicit(&l->w->sh->stop, memory_order_relaxed);
}

/* One at a time, each timed from before its WQE is written to its completion. */
NPUEMU_PERF_INLINE int npuemu_perf_latency_loop(struct npuemu_perf_lane *l, uint64_t n,
						npuemu_perf_post post)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);
	uint64_t i, t;
	int rc;

	for (i = 0; npuemu_perf_going(l, i, n); i++) {
		t = npuemu_ticks();
		rc = post(&h, h.base + i, NPUEMU_SQE_CQE);
		if (!rc)
			rc = npuemu_doorbell(h.q);
		if (rc)
			return npuemu_perf_bad_call(l, rc, "posting");
		rc = npuemu_perf_reap(l, h.cq);
		if (rc)
			return rc;
		npuemu_hist_add(&l->hist, npuemu_ticks() - t);
	}
	l->next += i;
	return 0;
}

NPUEMU_PERF_INLINE int npuemu_perf_reap_all(struct npuemu_perf_lane *l)
{
	const struct npuemu_post_view *v = npuemu_view(l->q);
	int rc = 0;

	while (!rc && v->ci != v->pi)
		rc = npuemu_perf_reap(l, l->cq);
	return rc;
}

/* The ring kept full: a batch whenever it has room for one. */
NPUEMU_PERF_INLINE int npuemu_perf_stream_loop(struct npuemu_perf_lane *l, uint64_t n,
					       npuemu_perf_post post, uint32_t bbs)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);
	const struct npuemu_post_view *v = npuemu_view(h.q);
	const uint32_t batch = l->batch, signal = l->w->o->signal;
	const uint32_t limit = l->window - batch * bbs;
	uint32_t since = 0, k, flags;
	uint64_t i = h.base;
	int rc = 0;

	while (npuemu_perf_going(l, i - h.base, n)) {
		while (v->pi - v->ci > limit) {
			rc = npuemu_perf_reap(l, h.cq);
			if (rc)
				return rc;
		}
		for (k = 0; k < batch && !rc; k++) {
			flags = 0;
			if (++since == signal) {
				flags = NPUEMU_SQE_CQE;
				since = 0;
			}
			rc = post(&h, i++, flags);
		}
		if (!rc)
			rc = npuemu_doorbell(h.q);
		if (rc)
			return npuemu_perf_bad_call(l, rc, "posting");
	}
	if (since) {	/* the last one must be seen to retire the rest */
		while (v->depth - (v->pi - v->ci) < bbs) {
			rc = npuemu_perf_reap(l, h.cq);
			if (rc)
				return rc;
		}
		rc = post(&h, i++, NPUEMU_SQE_CQE);
		if (!rc)
			rc = npuemu_doorbell(h.q);
		if (rc)
			return npuemu_perf_bad_call(l, rc, "posting");
	}
	l->next += i - h.base;
	return npuemu_perf_reap_all(l);
}

NPUEMU_PERF_INLINE int npuemu_perf_post_once(struct npuemu_perf_lane *l, uint32_t flags,
					     npuemu_perf_post post)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);
	int rc = post(&h, h.base, flags);

	if (!rc)
		rc = npuemu_doorbell(h.q);
	if (rc)
		return npuemu_perf_bad_call(l, rc, "posting");
	l->next++;
	return 0;
}

/* The functions of a test around its post function. */
#define NPUEMU_PERF_STREAM(name, post, bbs)					\
	static int name##_once(struct npuemu_perf_lane *l, uint32_t flags)	\
	{									\
		return npuemu_perf_post_once(l, flags, post);			\
	}									\
	static int name##_stream(struct npuemu_perf_lane *l, uint64_t n)	\
	{									\
		return npuemu_perf_stream_loop(l, n, post, bbs);		\
	}

#define NPUEMU_PERF_LOOPS(name, post, bbs)					\
	NPUEMU_PERF_STREAM(name, post, bbs)					\
	static int name##_latency(struct npuemu_perf_lane *l, uint64_t n)	\
	{									\
		return npuemu_perf_latency_loop(l, n, post);			\
	}

#endif
