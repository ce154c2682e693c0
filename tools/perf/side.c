// SPDX-License-Identifier: MIT
/* What a process of npuemu-perf needs on the board: memory, segments, queues. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../common/cli.h"
#include "loops.h"

static int failed(struct npuemu_perf_worker *w, int err, const char *what)
{
	const char *why = npuemu_errmsg();

	w->res->rc = NPUEMU_EXIT_RUNTIME;
	snprintf(w->res->msg, sizeof(w->res->msg), "%s%s: %s", what,
		 w->is_peer ? " of the peer" : "", *why ? why : strerror(-err));
	return NPUEMU_EXIT_RUNTIME;
}

/*
 * Receive buffers outlive a round, so their slots lie as the largest size needs.
 * Slots end with a gap of at least 64 guard bytes, and whole pages stay aligned.
 */
void npuemu_perf_layout(const struct npuemu_perf_opts *o, uint32_t size,
			struct npuemu_perf_layout *lay)
{
	uint64_t widest = size;
	int i;

	for (i = 0; o->test->receives && i < o->sizes; i++)
		if (o->size[i] > widest)
			widest = o->size[i];
	lay->size = size;
	lay->slots = o->slots;
	if (widest >= 4096)
		lay->stride = (widest + 4095) / 4096 * 4096 + 4096;
	else
		lay->stride = (widest + 63) / 64 * 64 + 64;
	lay->area = lay->stride * lay->slots;
	lay->bytes = 2ull * NPUEMU_PERF_GUARD + 2 * lay->area;
	lay->bytes = (lay->bytes + 4095) / 4096 * 4096;
}

static uint64_t lane_bytes(const struct npuemu_perf_opts *o)
{
	struct npuemu_perf_layout lay;
	uint64_t most = 0;
	int i;

	for (i = 0; i < o->sizes; i++) {
		npuemu_perf_layout(o, (uint32_t)o->size[i], &lay);
		if (lay.bytes > most)
			most = lay.bytes;
	}
	return most;
}

static int open_board(struct npuemu_perf_worker *w)
{
	struct npuemu_open_attr attr;
	uint32_t a, b, n;
	int rc;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.board = w->o->board;
	rc = npuemu_open(&attr, &w->ctx);
	if (rc)
		return failed(w, rc, "cannot open the board");
	w->sh->info.size = sizeof(w->sh->info);
	if (!w->pair && !w->is_peer) {
		rc = npuemu_query(w->ctx, &w->sh->info);
		n = w->sh->info.devices;
	} else {
		struct npuemu_info info = { .size = sizeof(info) };

		rc = npuemu_query(w->ctx, &info);
		n = info.devices;
	}
	if (rc || !n)
		return failed(w, rc, "npuemu_query");
	a = (w->o->devices_given ? w->o->device_a : 0) + 2 * w->pair;
	b = (w->o->devices_given ? w->o->device_b : 1) + 2 * w->pair;
	if (w->o->devices_given && (w->o->device_a >= n || w->o->device_b >= n)) {
		w->res->rc = NPUEMU_EXIT_USAGE;
		snprintf(w->res->msg, sizeof(w->res->msg),
			 "--devices %u,%u: the board has devices 0..%u", w->o->device_a,
			 w->o->device_b, n - 1);
		return NPUEMU_EXIT_USAGE;
	}
	w->dev_near = (w->is_peer ? b : a) % n;
	w->dev_far = (w->is_peer ? a : b) % n;
	if (!w->pair && !w->is_peer) {
		w->sh->device_a = w->dev_near;
		w->sh->device_b = w->dev_far;
	}
	return 0;
}

static int make_memory(struct npuemu_perf_worker *w, uint32_t device,
		       struct npuemu_buf **buf, struct npuemu_seg **seg,
		       struct npuemu_seg_info *info)
{
	struct npuemu_seg_attr attr;
	int rc;

	rc = npuemu_buf_alloc(w->ctx, device, lane_bytes(w->o) * w->o->threads, 0, buf);
	if (rc)
		return failed(w, rc, "cannot allocate device memory");
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.access = NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE | NPUEMU_ACCESS_ATOMIC;
	rc = npuemu_seg_register(*buf, &attr, seg);
	if (!rc)
		rc = npuemu_seg_query(*seg, info);
	return rc ? failed(w, rc, "cannot register a segment") : 0;
}

int npuemu_perf_give(struct npuemu_perf_lane *l, uint32_t index)
{
	uint64_t slot = index & (l->lay.slots - 1);
	struct npuemu_sge sge;

	sge.len = (uint32_t)(l->lay.stride - 64);
	sge.token_id = 0;
	sge.va = (uint64_t)(uintptr_t)(l->near.map + NPUEMU_PERF_GUARD + l->lay.area +
				       slot * l->lay.stride);
	return npuemu_post_recv(l->rq, &sge, 1);
}

static int make_receive(struct npuemu_perf_lane *l)
{
	struct npuemu_perf_worker *w = l->w;
	struct npuemu_cq_attr ca;
	struct npuemu_rq_attr ra;
	uint32_t i;
	int rc;

	memset(&ca, 0, sizeof(ca));
	ca.size = sizeof(ca);
	ca.depth = 2 * NPUEMU_PERF_RQ_DEPTH;
	rc = npuemu_cq_create(w->ctx, &ca, &l->rcq);
	if (rc)
		return failed(w, rc, "cannot create a completion queue");
	memset(&ra, 0, sizeof(ra));
	ra.size = sizeof(ra);
	ra.device = w->dev_near;
	ra.depth = NPUEMU_PERF_RQ_DEPTH;
	ra.max_sge = 1;
	ra.cq = l->rcq;
	rc = npuemu_rq_create(w->ctx, &ra, &l->rq);
	for (i = 0; i < NPUEMU_PERF_RQ_DEPTH && !rc; i++)
		rc = npuemu_perf_give(l, i);
	return rc ? failed(w, rc, "cannot create a receive queue") : 0;
}

static int make_queue(struct npuemu_perf_lane *l)
{
	struct npuemu_perf_worker *w = l->w;
	struct npuemu_queue_attr attr;
	struct npuemu_queue_stat st;
	int rc = 0;

	if (w->o->test->receives)
		rc = make_receive(l);
	if (rc)
		return rc;
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.device = w->dev_near;
	attr.type = w->o->test->sdma ? NPUEMU_QUEUE_SDMA : NPUEMU_QUEUE_UDMA;
	attr.depth = w->o->depth;
	attr.rnr_retry = 7;
	attr.rq = l->rq;
	rc = npuemu_queue_create(w->ctx, &attr, &l->q);
	if (rc)
		return failed(w, rc, "cannot create a queue");
	l->cq = npuemu_queue_cq(l->q);
	memset(&st, 0, sizeof(st));
	st.size = sizeof(st);
	rc = npuemu_queue_query(l->q, &st);
	if (rc)
		return failed(w, rc, "npuemu_queue_query");
	w->card.queue[l->index] = st.id;
	return 0;
}

static int make_lanes(struct npuemu_perf_worker *w)
{
	uint64_t each = lane_bytes(w->o);
	uint32_t i;
	int rc = 0;

	w->lane = calloc(w->o->threads, sizeof(*w->lane));
	if (!w->lane)
		return failed(w, -ENOMEM, "lanes");
	for (i = 0; i < w->o->threads && !rc; i++) {
		w->lane[i].w = w;
		w->lane[i].index = i;
		w->lane[i].near.map = (char *)npuemu_buf_ptr(w->near_buf) + i * each;
		w->lane[i].near.va = w->card.seg.va + i * each;
		npuemu_perf_layout(w->o, (uint32_t)w->o->size[0], &w->lane[i].lay);
		rc = make_queue(&w->lane[i]);
	}
	return rc;
}

/* Tell the other process where our things are and learn where its are. */
static int exchange(struct npuemu_perf_worker *w)
{
	int rc;

	rc = npuemu_buf_export(w->near_buf, &w->card.handle);
	if (rc)
		return failed(w, rc, "cannot export the buffer");
	if (send(w->mate, &w->card, sizeof(w->card), MSG_NOSIGNAL) != sizeof(w->card) ||
	    recv(w->mate, &w->mate_card, sizeof(w->mate_card), MSG_WAITALL) !=
	    sizeof(w->mate_card))
		return NPUEMU_EXIT_RUNTIME;	/* the other one says why it left */
	if (w->is_peer)
		return 0;
	rc = npuemu_buf_import(w->ctx, &w->mate_card.handle, &w->far_buf);
	return rc ? failed(w, rc, "cannot import the peer's buffer") : 0;
}

static void aim(struct npuemu_perf_worker *w)
{
	int blind = npuemu_perf_active(w->o) || w->is_peer;
	uint64_t each = lane_bytes(w->o);
	struct npuemu_perf_lane *l;
	uint32_t i;

	for (i = 0; i < w->o->threads; i++) {
		l = &w->lane[i];
		l->target = npuemu_target_of(&w->mate_card.seg);
		l->jetty = l->target;
		l->jetty.token_id = w->mate_card.queue[i];
		l->jetty.token_value = 0;
		l->far.va = w->mate_card.seg.va + i * each;
		if (!blind)
			l->far.map = (char *)npuemu_buf_ptr(w->far_buf) + i * each;
	}
}

int npuemu_perf_side_open(struct npuemu_perf_worker *w)
{
	int rc = open_board(w);

	if (!rc)
		rc = make_memory(w, w->dev_near, &w->near_buf, &w->near_seg, &w->card.seg);
	if (!rc)
		rc = make_lanes(w);
	if (!rc && w->o->self)
		rc = make_memory(w, w->dev_far, &w->far_buf, &w->far_seg,
				 &w->mate_card.seg);
	else if (!rc)
		rc = exchange(w);
	if (!rc)
		aim(w);
	return rc;
}

void npuemu_perf_side_close(struct npuemu_perf_worker *w)
{
	/* the last close frees what this process has */
	if (w->ctx)
		npuemu_close(w->ctx);
	free(w->lane);
	w->ctx = NULL;
	w->lane = NULL;
}
