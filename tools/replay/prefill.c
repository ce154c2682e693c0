// SPDX-License-Identifier: MIT
/*
 * The prefill side: takes placements, produces the blocks in its own HBM, layer
 * by layer, and WRITEs them into the decode device's pool.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "content.h"
#include "replay.h"

#define RING_BB		256
#define BATCH		32	/* WQEs a doorbell */
#define SIGNAL_EVERY	16	/* WQEs a completion; it retires all before it */
#define STAGING_BYTES	(2u << 20)
#define STAGING_MIN	64	/* units; must exceed SIGNAL_EVERY */

/*
 * Staging is a ring of units of one layer of one block.  A unit is free again
 * when its WRITE has retired: @end is the ring index behind that.
 */
struct staging {
	uint8_t *base;
	uint32_t units;
	uint32_t next;
	uint32_t *end;
};

struct prefill {
	const struct replay_job *job;
	struct replay_link *l;
	struct npuemu *ctx;
	struct npuemu_buf *stage_buf;
	struct npuemu_buf *ctrl_buf;	/* notify word, then placements */
	struct npuemu_seg *ctrl_seg;
	struct npuemu_queue *q;
	struct npuemu_cq *cq;
	struct staging st;
	volatile uint64_t *word;
	const uint8_t *placements;
	struct replay_placement *now;	/* our copy of the one being served */
	struct npuemu_seg_info pool;
	struct npuemu_seg_info ctrl;
	struct npuemu_target pool_to;
	struct npuemu_target ctrl_to;
	uint32_t retired;	/* basic blocks */
	uint32_t unrung;	/* WQEs posted since the last doorbell */
	uint32_t unsignalled;
	uint64_t request;
	uint64_t blocks;
	uint64_t bytes;
};

static int ring(struct prefill *p)
{
	int rc;

	if (!p->unrung)
		return 0;
	p->unrung = 0;
	rc = npuemu_doorbell(p->q);
	if (rc)
		return replay_fail(p->l, "doorbell: %s", npuemu_errmsg());
	return 0;
}

static int say_completion(struct prefill *p, const struct npuemu_wc *wc)
{
	struct npuemu_queue_stat st = { .size = sizeof(st) };

	if (npuemu_queue_query(p->q, &st))
		st.cause[0] = 0;
	return replay_fail(p->l, "request %" PRIu64
			   ": the WQE at ring index %u failed: %s%s%s", p->request + 1, wc->wqe,
			   npuemu_status_str(wc->status), st.cause[0] ? "; " : "", st.cause);
}

/* Retire what has completed; sleep for it if @wait and there is nothing. */
static int retire(struct prefill *p, bool wait)
{
	struct npuemu_wc wc[16];
	int i, n;

	for (;;) {
		n = npuemu_poll(p->cq, wc, 16);
		if (n < 0)
			return replay_fail(p->l, "polling: %s", npuemu_errmsg());
		if (n || !wait)
			break;
		if (replay_wait_cq(p->l, p->cq, "its WRITEs"))
			return -1;
	}
	for (i = 0; i < n; i++) {
		if (wc[i].status != NPUEMU_ST_SUCCESS)
			return say_completion(p, &wc[i]);
		p->retired = wc[i].wqe + 1;
	}
	return 0;
}

/* The next staging unit, once it is free. */
static int take_unit(struct prefill *p, uint32_t *unit)
{
	struct staging *s = &p->st;

	*unit = s->next;
	s->next = (s->next + 1) % s->units;
	while ((int32_t)(p->retired - s->end[*unit]) < 0)
		if (ring(p) || retire(p, true))
			return -1;
	return 0;
}

/* After a post: its doorbell, and room for the next one. */
static int posted(struct prefill *p, uint32_t flags)
{
	p->unrung++;
	p->unsignalled = flags & NPUEMU_SQE_CQE ? 0 : p->unsignalled + 1;
	if (p->unrung < BATCH)
		return 0;
	return ring(p) || retire(p, false) ? -1 : 0;
}

/* DW0 bits that ask for a completion, now and then. */
static uint32_t signal_flag(const struct prefill *p)
{
	return p->unsignalled + 1 >= SIGNAL_EVERY ? NPUEMU_SQE_CQE : 0;
}

/* A post found the ring full: let it drain.  Any other error ends the replay. */
static int make_room(struct prefill *p, int rc)
{
	if (rc != -EAGAIN)
		return replay_fail(p->l, "posting: %s", strerror(-rc));
	return ring(p) || retire(p, true) ? -1 : 0;
}

static int post_layer(struct prefill *p, const void *src, uint64_t raddr)
{
	uint32_t signal = signal_flag(p);
	int rc;

	while ((rc = npuemu_post_write(p->q, src, p->job->opt.model->layer_bytes,
				       &p->pool_to, raddr, NPUEMU_RELAXED | signal)))
		if (make_room(p, rc))
			return -1;
	return posted(p, signal);
}

/* The last WQE of a request: after all of its WRITEs, with its number. */
static int post_last(struct prefill *p, const void *src, uint32_t len,
		     const struct npuemu_target *to, uint64_t raddr)
{
	int rc;

	while ((rc = npuemu_post_write_notify(p->q, src, len, to, raddr, &p->ctrl_to,
					      p->ctrl.va, p->request + 1,
					      NPUEMU_STRONG | NPUEMU_SQE_CQE)))
		if (make_room(p, rc))
			return -1;
	return posted(p, NPUEMU_SQE_CQE) || ring(p) ? -1 : 0;
}

/* Nothing to move: the notify still goes, with the request number as payload. */
static int post_empty(struct prefill *p)
{
	uint64_t *src;
	uint32_t unit;

	if (take_unit(p, &unit))
		return -1;
	src = (uint64_t *)(void *)(p->st.base +
				   (size_t)unit * p->job->opt.model->layer_bytes);
	*src = p->request;
	if (post_last(p, src, sizeof(*src), &p->ctrl_to, p->ctrl.va + sizeof(uint64_t)))
		return -1;
	p->st.end[unit] = npuemu_last_wqe(p->q) + 1;
	return 0;
}

/* One layer of one block: produce it, then move it. */
static int move_layer(struct prefill *p, const struct replay_place *b, uint32_t layer,
		      bool last)
{
	uint32_t bytes = p->job->opt.model->layer_bytes, unit;
	uint64_t offset = replay_pool_offset(p->job, layer, (uint32_t)b->slot);
	uint64_t raddr = p->pool.va + offset;
	void *src;

	if (take_unit(p, &unit))
		return -1;
	src = p->st.base + (size_t)unit * bytes;
	replay_fill(src, bytes, replay_key(p->job->opt.seed, b->id, layer));
	if (last ? post_last(p, src, bytes, &p->pool_to, raddr) :
		   post_layer(p, src, raddr))
		return -1;
	p->st.end[unit] = npuemu_last_wqe(p->q) + 1;
	p->bytes += bytes;
	return replay_tick(p->l, bytes);
}

/*
 * Take the placement out of the ring.  Others can write there, so copy it, then
 * check it, then use it.
 */
static int take_placement(struct prefill *p)
{
	uint64_t size = replay_placement_bytes(p->job), i;
	struct replay_placement *pl = p->now;

	memcpy(pl, p->placements + p->request % p->job->opt.depth * size, size);
	if (pl->request != p->request || pl->n > p->job->trace.longest)
		return replay_fail(p->l, "placement %" PRIu64
				   " is damaged: it says request %" PRIu64 ", %" PRIu64
				   " blocks", p->request + 1, pl->request + 1, pl->n);
	for (i = 0; i < pl->n; i++)
		if (pl->block[i].slot >= p->job->slots)
			return replay_fail(p->l, "placement %" PRIu64
					   " is damaged: slot %" PRIu64 " of %u",
					   p->request + 1, pl->block[i].slot,
					   p->job->slots);
	return 0;
}

static int serve(struct prefill *p)
{
	uint32_t layers = p->job->opt.model->layers, layer;
	const struct replay_placement *pl = p->now;
	uint64_t i;

	if (replay_wait_word(p->l, p->ctx, p->word, p->request + 1, "placement"))
		return -1;
	if (take_placement(p))
		return -1;
	if (!pl->n)
		return post_empty(p);
	for (layer = 0; layer < layers; layer++) {
		for (i = 0; i < pl->n; i++)
			if (move_layer(p, &pl->block[i], layer,
				       layer + 1 == layers && i + 1 == pl->n))
				return -1;
		/* the layer's remainder: decode's memory fills while we produce */
		if (ring(p))
			return -1;
	}
	p->blocks += pl->n;
	return 0;
}

static int set_up(struct prefill *p)
{
	const struct replay_job *job = p->job;
	uint32_t unit_bytes = job->opt.model->layer_bytes;
	struct npuemu_queue_attr qa = {
		.size = sizeof(qa), .device = job->opt.prefill_dev,
		.type = NPUEMU_QUEUE_UDMA, .depth = RING_BB,
	};
	struct npuemu_seg_attr sa = {
		.size = sizeof(sa), .access = NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE,
	};
	uint64_t ctrl_bytes = 64 + replay_placement_bytes(job) * job->opt.depth;
	struct replay_msg m = { .type = REPLAY_MSG_HELLO };

	p->st.units = STAGING_BYTES / unit_bytes;
	if (p->st.units < STAGING_MIN)
		p->st.units = STAGING_MIN;
	p->st.end = calloc(p->st.units, sizeof(*p->st.end));
	p->now = malloc(replay_placement_bytes(job));
	if (!p->st.end || !p->now)
		return replay_fail(p->l, "out of memory");
	if (npuemu_open(NULL, &p->ctx))
		return replay_fail(p->l, "cannot open the board: %s", npuemu_errmsg());
	if (npuemu_buf_alloc(p->ctx, job->opt.prefill_dev,
			     (uint64_t)p->st.units * unit_bytes, 0, &p->stage_buf) ||
	    npuemu_buf_alloc(p->ctx, job->opt.prefill_dev, ctrl_bytes, 0, &p->ctrl_buf))
		return replay_fail(p->l, "no staging memory on device %u: %s",
				   job->opt.prefill_dev, npuemu_errmsg());
	if (npuemu_seg_register(p->ctrl_buf, &sa, &p->ctrl_seg) ||
	    npuemu_seg_query(p->ctrl_seg, &m.hello.ctrl))
		return replay_fail(p->l, "cannot register a segment: %s",
				   npuemu_errmsg());
	if (npuemu_queue_create(p->ctx, &qa, &p->q))
		return replay_fail(p->l, "cannot create a UDMA queue on device %u: %s",
				   job->opt.prefill_dev, npuemu_errmsg());
	p->cq = npuemu_queue_cq(p->q);
	p->st.base = npuemu_buf_ptr(p->stage_buf);
	p->word = npuemu_buf_ptr(p->ctrl_buf);
	p->placements = (const uint8_t *)npuemu_buf_ptr(p->ctrl_buf) + 64;
	return replay_send(p->l, &m);
}

static int finish(struct prefill *p)
{
	struct npuemu_queue_stat st = { .size = sizeof(st) };
	struct replay_msg m = { .type = REPLAY_MSG_DONE };

	while (p->retired != npuemu_last_wqe(p->q) + 1)
		if (ring(p) || retire(p, true))
			return -1;
	if (npuemu_queue_query(p->q, &st))
		return replay_fail(p->l, "cannot read the counters: %s", npuemu_errmsg());
	m.done.blocks = p->blocks;
	m.done.bytes = p->bytes;
	m.done.wqes = st.cnt.wqes;
	m.done.doorbells = st.cnt.doorbells;
	m.done.cqes = st.cnt.cqes;
	if (replay_send(p->l, &m))
		return -1;
	return replay_recv(p->l, REPLAY_MSG_STOP, &m);
}

static int run(struct prefill *p)
{
	struct replay_msg m;

	/* decode opens first: it is the one to say what is wrong with the board */
	if (replay_recv(p->l, REPLAY_MSG_SETUP, &m))
		return -1;
	p->pool = m.setup.pool;
	p->ctrl = m.setup.ctrl;
	p->pool_to = npuemu_target_of(&p->pool);
	p->ctrl_to = npuemu_target_of(&p->ctrl);
	if (set_up(p))
		return -1;
	for (p->request = 0; p->request < p->job->trace.n; p->request++)
		if (serve(p))
			return -1;
	return finish(p);
}

static void tear_down(struct prefill *p)
{
	if (p->q)
		npuemu_queue_destroy(p->q);
	if (p->ctrl_seg)
		npuemu_seg_unregister(p->ctrl_seg);
	if (p->ctrl_buf)
		npuemu_buf_free(p->ctrl_buf);
	if (p->stage_buf)
		npuemu_buf_free(p->stage_buf);
	if (p->ctx) {
		if (p->l->gone)
			npuemu_reap(p->ctx);
		npuemu_close(p->ctx);
	}
	free(p->st.end);
	free(p->now);
}

int replay_prefill(const struct replay_job *job, struct replay_link *l)
{
	struct prefill p = { .job = job, .l = l };
	int rc = run(&p);

	tear_down(&p);
	return rc ? REPLAY_FAILED : REPLAY_OK;
}
