// SPDX-License-Identifier: MIT
/*
 * The decode side: owns the pool and the block table, places the blocks of
 * each request, waits for its notify and verifies every block of it, those
 * that were there already too.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "content.h"
#include "replay.h"

#define RING_BB		256
#define SHOWN_ERRORS	5

struct decode {
	const struct replay_job *job;
	struct replay_link *l;
	struct replay_result *res;
	struct npuemu *ctx;
	struct npuemu_buf *pool_buf;
	struct npuemu_buf *ctrl_buf;	/* notify word, spare word, placements to send */
	struct npuemu_seg *pool_seg;
	struct npuemu_seg *ctrl_seg;
	struct npuemu_queue *q;
	struct npuemu_cq *cq;
	struct replay_table *table;
	struct replay_ref *refs;	/* of the requests in flight, longest a request */
	uint8_t *pool;
	uint8_t *placements;
	volatile uint64_t *word;
	struct npuemu_target to;	/* prefill's control segment */
	uint64_t to_va;
	uint64_t next;			/* request to place */
	uint64_t done;			/* requests verified */
};

static struct replay_ref *refs_of(const struct decode *d, uint64_t request)
{
	return d->refs + request % d->job->opt.depth * d->job->trace.longest;
}

/* ---- Placing --------------------------------------------------------------- */

static void count_refs(struct decode *d, const struct replay_request *r,
		       const struct replay_ref *refs)
{
	struct replay_result *res = d->res;
	uint32_t i;

	for (i = 0; i < r->blocks; i++) {
		uint32_t tokens = replay_block_tokens(r, i);

		res->refs++;
		res->token_refs += tokens;
		if (refs[i].hit) {
			res->hits++;
			res->token_hits += tokens;
		} else {
			res->blocks_moved++;
		}
	}
}

/* Retire placements that have gone; wait for one if the ring is full. */
static int retire(struct decode *d, bool wait)
{
	struct npuemu_wc wc[8];
	int i, n;

	for (;;) {
		n = npuemu_poll(d->cq, wc, 8);
		if (n < 0)
			return replay_fail(d->l, "polling: %s", npuemu_errmsg());
		if (n || !wait)
			break;
		if (replay_wait_cq(d->l, d->cq, "a placement"))
			return -1;
	}
	for (i = 0; i < n; i++)
		if (wc[i].status != NPUEMU_ST_SUCCESS)
			return replay_fail(d->l, "sending a placement failed: %s",
					   npuemu_status_str(wc[i].status));
	return 0;
}

static int send_placement(struct decode *d, const struct replay_request *r,
			  const struct replay_ref *refs)
{
	uint64_t size = replay_placement_bytes(d->job);
	uint64_t offset = d->next % d->job->opt.depth * size;
	struct replay_placement *pl = (void *)(d->placements + offset);
	uint32_t i, len;
	int rc;

	pl->request = d->next;
	pl->n = 0;
	for (i = 0; i < r->blocks; i++) {
		if (refs[i].hit)
			continue;
		pl->block[pl->n].id = refs[i].id;
		pl->block[pl->n].slot = refs[i].slot;
		pl->n++;
	}
	len = (uint32_t)(sizeof(*pl) + pl->n * sizeof(pl->block[0]));
	if (retire(d, false))
		return -1;
	while ((rc = npuemu_post_write_notify(d->q, pl, len, &d->to,
					      d->to_va + 64 + offset, &d->to, d->to_va,
					      d->next + 1,
					      NPUEMU_STRONG | NPUEMU_SQE_CQE))) {
		if (rc != -EAGAIN)
			return replay_fail(d->l, "posting: %s", strerror(-rc));
		if (retire(d, true))
			return -1;
	}
	if (npuemu_doorbell(d->q))
		return replay_fail(d->l, "doorbell: %s", npuemu_errmsg());
	return 0;
}

/* Place as many requests as may be in flight. */
static int place(struct decode *d)
{
	while (d->next < d->job->trace.n && d->next - d->done < d->job->opt.depth) {
		const struct replay_request *r = &d->job->trace.req[d->next];
		struct replay_ref *refs = refs_of(d, d->next);

		if (!replay_table_request(d->table, d->next, d->done, r->ids, r->blocks,
					  refs))
			break;
		count_refs(d, r, refs);
		if (send_placement(d, r, refs))
			return -1;
		d->next++;
	}
	return 0;
}

/* ---- Verifying ------------------------------------------------------------- */

static void say_bad_block(struct decode *d, const struct replay_ref *ref, uint32_t index,
			  uint32_t layer, size_t at)
{
	const uint8_t *p = d->pool + replay_pool_offset(d->job, layer, ref->slot) + at;
	uint64_t word = replay_word(replay_key(d->job->opt.seed, ref->id, layer), at / 8);
	unsigned int want = word >> at % 8 * 8 & 0xff;

	if (++d->res->verify_errors > SHOWN_ERRORS)
		return;
	replay_say(d->l, "request %" PRIu64 ", block %u (id %" PRIu64
		   ", slot %u, %s), layer %u: byte %zu is 0x%02x, must be 0x%02x",
		   d->done + 1, index, ref->id, ref->slot,
		   ref->hit ? "a hit" : "just moved", layer, at, *p, want);
	if (d->res->verify_errors == SHOWN_ERRORS)
		replay_say(d->l, "further wrong blocks are only counted");
}

static void verify_block(struct decode *d, const struct replay_ref *ref, uint32_t index)
{
	const struct replay_model *m = d->job->opt.model;
	uint32_t layer;
	size_t at;

	for (layer = 0; layer < m->layers; layer++) {
		uint64_t offset = replay_pool_offset(d->job, layer, ref->slot);

		at = replay_compare(d->pool + offset, m->layer_bytes,
				    replay_key(d->job->opt.seed, ref->id, layer));
		if (at < m->layer_bytes) {
			say_bad_block(d, ref, index, layer, at);
			return;
		}
	}
}

/* --sabotage: one byte in the middle of the request's last block. */
static void spoil(struct decode *d, const struct replay_ref *ref)
{
	const struct replay_model *m = d->job->opt.model;

	d->pool[replay_pool_offset(d->job, m->layers / 2, ref->slot) +
		m->layer_bytes / 2] ^= 1;
}

static int verify(struct decode *d)
{
	const struct replay_request *r = &d->job->trace.req[d->done];
	const struct replay_ref *refs = refs_of(d, d->done);
	uint64_t bytes = replay_block_bytes(d->job->opt.model);
	uint32_t i;

	if (d->job->opt.sabotage == d->done + 1 && r->blocks)
		spoil(d, &refs[r->blocks - 1]);
	for (i = 0; i < r->blocks; i++) {
		verify_block(d, &refs[i], i);
		d->res->bytes_verified += bytes;
		if (replay_tick(d->l, bytes))
			return -1;
	}
	d->done++;
	d->res->requests++;
	return 0;
}

/* ---- The whole ------------------------------------------------------------- */

/* 0, or an exit code. */
static int check_board(struct decode *d)
{
	const struct replay_options *o = &d->job->opt;
	struct npuemu_info info = { .size = sizeof(info) };
	uint64_t blocks = d->job->slots, need;
	char a[32], b[32];

	if (npuemu_query(d->ctx, &info)) {
		replay_say(d->l, "cannot query the board: %s", npuemu_errmsg());
		return REPLAY_FAILED;
	}
	if (o->prefill_dev >= info.devices || o->decode_dev >= info.devices) {
		replay_say(d->l,
			   "--devices %u,%u: board '%s' (machine %s) has devices 0..%u",
			   o->prefill_dev, o->decode_dev, info.board, info.machine,
			   info.devices - 1);
		return REPLAY_USAGE;
	}
	need = blocks * replay_block_bytes(o->model);
	if (need > info.budget_bytes) {
		replay_say(d->l, "a pool of %" PRIu64 " blocks needs %s, but this board may use only %s of memory; try fewer --requests, fewer --pool-blocks or a smaller --model",
			   blocks, replay_size(need, a),
			   replay_size(info.budget_bytes, b));
		return REPLAY_FAILED;
	}
	return 0;
}

static int make_memory(struct decode *d, struct replay_msg *m)
{
	const struct replay_job *job = d->job;
	uint32_t dev = job->opt.decode_dev;
	uint64_t pool_bytes = job->slots * replay_block_bytes(job->opt.model);
	uint64_t ctrl_bytes = 64 + replay_placement_bytes(job) * job->opt.depth;
	struct npuemu_seg_attr sa = {
		.size = sizeof(sa), .access = NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE,
	};

	if (npuemu_buf_alloc(d->ctx, dev, pool_bytes, 0, &d->pool_buf) ||
	    npuemu_buf_alloc(d->ctx, dev, ctrl_bytes, 0, &d->ctrl_buf))
		return replay_fail(d->l, "no memory for the pool on device %u: %s", dev,
				   npuemu_errmsg());
	if (npuemu_seg_register(d->pool_buf, &sa, &d->pool_seg) ||
	    npuemu_seg_register(d->ctrl_buf, &sa, &d->ctrl_seg) ||
	    npuemu_seg_query(d->pool_seg, &m->setup.pool) ||
	    npuemu_seg_query(d->ctrl_seg, &m->setup.ctrl))
		return replay_fail(d->l, "cannot register a segment: %s",
				   npuemu_errmsg());
	d->pool = npuemu_buf_ptr(d->pool_buf);
	d->word = npuemu_buf_ptr(d->ctrl_buf);
	d->placements = (uint8_t *)npuemu_buf_ptr(d->ctrl_buf) + 64;
	return 0;
}

static int make_table(struct decode *d)
{
	d->table = replay_table_new(d->job->slots);
	d->refs = calloc((size_t)d->job->opt.depth * d->job->trace.longest + 1,
			 sizeof(*d->refs));
	if (!d->table || !d->refs)
		return replay_fail(d->l, "out of memory");
	return 0;
}

/* 0, or an exit code. */
static int set_up(struct decode *d)
{
	struct npuemu_queue_attr qa = {
		.size = sizeof(qa), .device = d->job->opt.decode_dev,
		.type = NPUEMU_QUEUE_UDMA, .depth = RING_BB,
	};
	struct replay_msg m = { .type = REPLAY_MSG_SETUP };
	int rc;

	if (npuemu_open(NULL, &d->ctx)) {
		replay_say(d->l, "cannot open the board: %s", npuemu_errmsg());
		return REPLAY_FAILED;
	}
	rc = check_board(d);
	if (rc)
		return rc;
	if (make_table(d) || make_memory(d, &m))
		return REPLAY_FAILED;
	if (npuemu_queue_create(d->ctx, &qa, &d->q)) {
		replay_fail(d->l, "cannot create a UDMA queue on device %u: %s",
			    qa.device, npuemu_errmsg());
		return REPLAY_FAILED;
	}
	d->cq = npuemu_queue_cq(d->q);
	if (replay_send(d->l, &m) || replay_recv(d->l, REPLAY_MSG_HELLO, &m))
		return REPLAY_FAILED;
	d->to = npuemu_target_of(&m.hello.ctrl);
	d->to_va = m.hello.ctrl.va;
	return 0;
}

static int replay(struct decode *d)
{
	int64_t start = npuemu_now_ns();

	replay_progress(d->job, d->res);
	while (d->done < d->job->trace.n) {
		if (place(d) ||
		    replay_wait_word(d->l, d->ctx, d->word, d->done + 1,
				     "notify of request") ||
		    verify(d))
			return -1;
		d->res->seconds = (double)(npuemu_now_ns() - start) / 1e9;
		replay_progress(d->job, d->res);
	}
	return 0;
}

/* The counters are prefill's; what it says it moved must be what we missed. */
static int finish(struct decode *d)
{
	uint64_t expected = d->res->blocks_moved * replay_block_bytes(d->job->opt.model);
	struct replay_msg m;

	if (replay_recv(d->l, REPLAY_MSG_DONE, &m))
		return -1;
	d->res->bytes_moved = m.done.bytes;
	d->res->wqes = m.done.wqes;
	d->res->doorbells = m.done.doorbells;
	d->res->cqes = m.done.cqes;
	if (m.done.bytes == expected && m.done.blocks == d->res->blocks_moved)
		return 0;
	return replay_fail(d->l, "prefill says it moved %" PRIu64 " blocks, %" PRIu64
			   " bytes; %" PRIu64 " blocks, %" PRIu64 " bytes were missing",
			   m.done.blocks, m.done.bytes, d->res->blocks_moved, expected);
}

/* Our memory stays until the child has ended: it may still write there. */
static int tear_down(struct decode *d, int code)
{
	struct replay_msg stop = { .type = REPLAY_MSG_STOP };
	int child;

	if (!d->l->gone)
		replay_send(d->l, &stop);
	child = replay_end_child(d->l);
	if (code == REPLAY_OK && child) {
		replay_say(d->l, "prefill (pid %d) did not end well (code %d)", d->l->pid,
			   child);
		code = REPLAY_FAILED;
	}
	if (d->q)
		npuemu_queue_destroy(d->q);
	if (d->ctrl_seg)
		npuemu_seg_unregister(d->ctrl_seg);
	if (d->pool_seg)
		npuemu_seg_unregister(d->pool_seg);
	if (d->ctrl_buf)
		npuemu_buf_free(d->ctrl_buf);
	if (d->pool_buf)
		npuemu_buf_free(d->pool_buf);
	if (d->ctx) {
		if (child)
			npuemu_reap(d->ctx);
		npuemu_close(d->ctx);
	}
	replay_table_free(d->table);
	free(d->refs);
	return code;
}

int replay_decode(const struct replay_job *job, struct replay_link *l,
		  struct replay_result *res)
{
	struct decode d = { .job = job, .l = l, .res = res };
	int code;

	code = set_up(&d);
	if (!code && (replay(&d) || finish(&d)))
		code = REPLAY_FAILED;
	code = tear_down(&d, code);
	if (code == REPLAY_OK && res->verify_errors)
		code = REPLAY_VERIFY;
	return code;
}
