// SPDX-License-Identifier: MIT
/* The paths of the measuring loops that are not hot: sleeping and giving up. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../common/cli.h"
#include "loops.h"

int npuemu_perf_fail(struct npuemu_perf_lane *l, int rc, const char *fmt, ...)
{
	char size[32] = "";
	va_list ap;
	int n;

	if (l->rc)
		return l->rc;
	l->rc = rc;
	if (l->lay.size)
		snprintf(size, sizeof(size), " %u B", l->lay.size);
	n = snprintf(l->msg, sizeof(l->msg), "%s%s, thread %u%s: ", l->w->o->test->name,
		     size, l->index, l->w->is_peer ? " of the peer" : "");
	va_start(ap, fmt);
	vsnprintf(l->msg + n, sizeof(l->msg) - (size_t)n, fmt, ap);
	va_end(ap);
	atomic_store(&l->w->sh->abort, 1);
	return rc;
}

int npuemu_perf_bad_wc(struct npuemu_perf_lane *l, const struct npuemu_wc *wc)
{
	struct npuemu_queue_stat st;

	memset(&st, 0, sizeof(st));
	st.size = sizeof(st);
	if (npuemu_queue_query(l->q, &st))
		st.cause[0] = '\0';
	return npuemu_perf_fail(l, NPUEMU_EXIT_RUNTIME, "queue %u, WQE at block %u: %s%s%s",
				wc->queue, wc->wqe, npuemu_status_str(wc->status),
				st.cause[0] ? "; " : "", st.cause);
}

int npuemu_perf_bad_call(struct npuemu_perf_lane *l, int err, const char *call)
{
	const char *why = npuemu_errmsg();

	return npuemu_perf_fail(l, NPUEMU_EXIT_RUNTIME, "%s: %s", call,
				*why ? why : strerror(-err));
}

static int too_long(struct npuemu_perf_lane *l, struct npuemu_perf_idle *idle,
		    const char *what)
{
	uint32_t most = l->w->o->timeout_s * (1000 / NPUEMU_PERF_SLICE_MS);

	if (atomic_load_explicit(&l->w->sh->abort, memory_order_relaxed))
		return l->rc = l->rc ? l->rc : NPUEMU_EXIT_RUNTIME;
	if (++idle->slices < most)
		return 0;
	return npuemu_perf_fail(l, NPUEMU_EXIT_RUNTIME,
				"%s did not come within %u s (message %llu); see npuemu-smi --queues",
				what, l->w->o->timeout_s, (unsigned long long)l->next);
}

int npuemu_perf_sleep(struct npuemu_perf_lane *l, struct npuemu_perf_idle *idle,
		      struct npuemu_cq *cq)
{
	int rc = npuemu_wait(cq, npuemu_deadline_ms(NPUEMU_PERF_SLICE_MS));

	if (!rc)
		return 0;
	if (rc != -ETIMEDOUT)
		return npuemu_perf_bad_call(l, rc, "npuemu_wait");
	return too_long(l, idle, "a completion");
}

int npuemu_perf_sleep_word(struct npuemu_perf_lane *l, struct npuemu_perf_idle *idle,
			   const volatile uint64_t *word, uint64_t value)
{
	int rc = npuemu_wait_word(l->w->ctx, word, NPUEMU_CMP_GE, value,
				  npuemu_deadline_ms(NPUEMU_PERF_SLICE_MS));

	if (!rc)
		return 0;
	if (rc != -ETIMEDOUT)
		return npuemu_perf_bad_call(l, rc, "npuemu_wait_word");
	return too_long(l, idle, "a notify");
}

int npuemu_perf_reap_one(struct npuemu_perf_lane *l, struct npuemu_cq *cq,
			 struct npuemu_wc *wc)
{
	struct npuemu_perf_idle idle = { 0, 0 };
	int n, rc;

	while ((n = npuemu_poll(cq, wc, 1)) == 0) {
		rc = npuemu_perf_pause(l, &idle, cq);
		if (rc)
			return rc;
	}
	if (n < 0)
		return npuemu_perf_bad_call(l, n, "npuemu_poll");
	if (wc->status != NPUEMU_ST_SUCCESS)
		return npuemu_perf_bad_wc(l, wc);
	return 0;
}
