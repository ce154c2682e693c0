// SPDX-License-Identifier: MIT
/* One process of a pair, round by round. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../common/cli.h"
#include "loops.h"

#define IN_FLIGHT	(32u << 20)	/* bytes, where the ring could take more */
#define BATCH_BYTES	(256u << 10)	/* of one doorbell, unless told otherwise */

struct gate {
	pthread_barrier_t armed;	/* the memory is ready */
	pthread_barrier_t go;
};

struct lane_run {
	struct npuemu_perf_lane *l;
	struct gate *gate;
	pthread_t thread;
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* Of what a side sends in the timed run. */
static uint64_t timed_seed(const struct npuemu_perf_lane *l, int of_peer)
{
	return l->seed ^ (of_peer ? 0x7065657200000000ull : 0x696e697400000000ull);
}

static int is_latency(const struct npuemu_perf_lane *l)
{
	return l->w->o->mode == NPUEMU_PERF_LATENCY;
}

/* At least @min, at most @most messages, and no more than 64 MiB of them. */
static uint32_t few(const struct npuemu_perf_lane *l, uint32_t min, uint32_t most)
{
	uint32_t n = (64u << 20) / l->lay.size;

	if (n > most)
		n = most;
	return n < min ? min : n;
}

static void reset_lane(struct npuemu_perf_lane *l, const struct npuemu_perf_round *round)
{
	const struct npuemu_perf_opts *o = l->w->o;
	uint32_t bbs = o->test->bbs, need;
	uint64_t window;

	npuemu_perf_layout(o, round->size, &l->lay);
	l->batch = o->batch;
	if (!l->batch) {
		l->batch = BATCH_BYTES / round->size;
		l->batch = l->batch < 1 ? 1 : l->batch > 32 ? 32 : l->batch;
	}
	need = (o->signal > l->batch ? o->signal : l->batch) + l->batch;
	window = IN_FLIGHT / round->size;
	if (window < need)
		window = need;
	window *= bbs;
	l->window = window > o->depth ? o->depth : (uint32_t)window;
	l->seed = mix((uint64_t)round->index << 32 | l->w->pair << 16 | l->index);
	l->next = 0;
	l->got = 0;
	l->armed_at = 0;
	l->count = 0;
	l->start_ns = 0;
	l->end_ns = 0;
	memset(&l->hist, 0, sizeof(l->hist));
	memset(l->near.map, 0, 8);
	npuemu_perf_guards(&l->near, &l->lay);
	if (l->far.map) {
		memset(l->far.map, 0, 8);
		npuemu_perf_guards(&l->far, &l->lay);
	}
}

static void arm(struct npuemu_perf_lane *l, uint64_t seed, uint32_t timed)
{
	l->armed_at = l->next;
	l->w->o->test->arm(l, seed, timed);
}

/* Messages one by one, each looked at, where only this side acts. */
static int check_some(struct npuemu_perf_lane *l)
{
	const struct npuemu_perf_test *t = l->w->o->test;
	uint32_t k, s, rounds = few(l, 2, 32);
	uint64_t seed;
	int rc = 0;

	for (k = 0; k < rounds && !rc; k++) {
		seed = l->seed + ((uint64_t)k << 48);
		arm(l, seed, 0);
		for (s = 0; s < l->lay.slots && !rc; s++) {
			rc = t->once(l, NPUEMU_SQE_CQE);
			if (!rc)
				rc = npuemu_perf_reap_all(l);
		}
		if (!rc)
			rc = t->verify(l, seed, l->lay.slots, 0);
	}
	return rc;
}

static int before_alone(struct npuemu_perf_lane *l)
{
	const struct npuemu_perf_opts *o = l->w->o;
	int rc = 0;

	if (o->check)
		rc = check_some(l);
	if (!rc && o->warmup) {
		arm(l, timed_seed(l, 0), 1);
		if (is_latency(l))
			rc = o->test->latency(l, few(l, 2, o->warmup));
		else
			rc = o->test->stream(l, few(l, 2, o->warmup));
	}
	if (!rc)
		arm(l, timed_seed(l, 0), 1);
	memset(&l->hist, 0, sizeof(l->hist));
	return rc;
}

/* Both sides act: the same number of messages on each. */
static int before_together(struct npuemu_perf_lane *l)
{
	const struct npuemu_perf_opts *o = l->w->o;
	int (*some)(struct npuemu_perf_lane *l, uint32_t n, int check);
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);
	uint64_t i;
	int rc = 0;

	some = l->w->is_peer ? o->test->pong_n : o->test->ping_n;
	if (o->check)
		rc = some(l, few(l, 2, 32), 1);
	if (!rc && o->warmup)
		rc = some(l, few(l, 2, o->warmup), 0);
	o->test->arm(l, timed_seed(l, l->w->is_peer), 1);
	for (i = 0; i <= h.mask; i++)
		npuemu_perf_fill_other(h.near_rx + i * h.stride, h.size,
				       timed_seed(l, !l->w->is_peer) + (i << 32));
	return rc;
}

static int timed(struct npuemu_perf_lane *l)
{
	const struct npuemu_perf_opts *o = l->w->o;

	if (l->w->is_peer)
		return is_latency(l) ? o->test->pong(l) : o->test->drain(l);
	if (is_latency(l))
		return o->test->latency(l, o->iterations);
	return o->test->stream(l, o->iterations);
}

static void *lane_thread(void *arg)
{
	struct lane_run *run = arg;
	struct npuemu_perf_lane *l = run->l;
	uint64_t sent, got;

	if (npuemu_perf_active(l->w->o))
		l->rc = before_together(l);
	else
		l->rc = before_alone(l);
	pthread_barrier_wait(&run->gate->armed);
	pthread_barrier_wait(&run->gate->go);
	if (l->rc || atomic_load(&l->w->sh->abort))
		return NULL;
	sent = l->next;
	got = l->got;
	l->start_ns = npuemu_now_ns();
	l->rc = timed(l);
	l->end_ns = npuemu_now_ns();
	l->count = l->next - sent;
	if (l->w->is_peer)
		l->count = l->got - got;
	else
		atomic_store(&l->w->res->total[l->index], l->next);
	return NULL;
}

/* Break what the check must then find, to show that it can. */
static void flip(struct npuemu_perf_lane *l)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);
	char *p = h.near_rx;

	if (h.far_rx && l->w->o->test != &npuemu_perf_read)
		p = h.far_rx;
	p[l->w->o->flip_at] ^= 0x20;
}

/* What both sides sent and got, where both acted. */
static int verify_together(struct npuemu_perf_lane *l)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);
	uint64_t i, seed = timed_seed(l, !l->w->is_peer);
	int rc;

	/* did each rx slot get a message? */
	int filled = l->count >= l->lay.slots && (l->w->is_peer || is_latency(l));

	rc = npuemu_perf_verify_push(l, timed_seed(l, l->w->is_peer), l->lay.slots, 1);
	for (i = 0; filled && i <= h.mask && !rc; i++)
		rc = npuemu_perf_check(l, h.near_rx + i * h.stride, h.size,
				       seed + (i << 32),
				       l->w->is_peer ? "the destination" : "the answer");
	return rc;
}

static int verify(struct npuemu_perf_lane *l)
{
	const struct npuemu_perf_opts *o = l->w->o;
	int rc;

	if (o->flip && !l->index && !l->w->pair)
		flip(l);
	if (npuemu_perf_active(o))
		rc = verify_together(l);
	else
		rc = o->test->verify(l, timed_seed(l, 0), l->count, 1);
	if (!rc)
		rc = npuemu_perf_check_guards(l, &l->near, "the guard near the source");
	if (!rc && l->far.map)
		rc = npuemu_perf_check_guards(l, &l->far,
					      "the guard near the destination");
	return rc;
}

/* Add up the lanes; the first that says what is wrong speaks for all. */
static int collect(struct npuemu_perf_worker *w)
{
	struct npuemu_perf_result *r = w->res;
	struct npuemu_perf_lane *l;
	uint32_t i;

	r->rc = 0;
	r->count = 0;
	r->msg[0] = '\0';
	memset(&r->hist, 0, sizeof(r->hist));
	for (i = 0; i < w->o->threads; i++) {
		l = &w->lane[i];
		if (l->rc && !r->msg[0]) {
			r->rc = l->rc;
			memcpy(r->msg, l->msg, sizeof(r->msg));
		}
		r->count += l->count;
		if (!i || l->start_ns < r->start_ns)
			r->start_ns = l->start_ns;
		if (!i || l->end_ns > r->end_ns)
			r->end_ns = l->end_ns;
		npuemu_hist_merge(&r->hist, &l->hist);
	}
	return r->rc;
}

static int tell(int fd, char c)
{
	return send(fd, &c, 1, MSG_NOSIGNAL) == 1 ? 0 : NPUEMU_EXIT_RUNTIME;
}

static int hear(int fd)
{
	char c;

	return recv(fd, &c, 1, 0) == 1 ? 0 : NPUEMU_EXIT_RUNTIME;
}

static void start_lanes(struct npuemu_perf_worker *w, struct lane_run *run,
			struct gate *gate)
{
	uint32_t i;

	pthread_barrier_init(&gate->armed, NULL, w->o->threads + 1);
	pthread_barrier_init(&gate->go, NULL, w->o->threads + 1);
	for (i = 0; i < w->o->threads; i++) {
		run[i].l = &w->lane[i];
		run[i].gate = gate;
		if (pthread_create(&run[i].thread, NULL, lane_thread, &run[i])) {
			/* the others wait for it at a barrier: no way back */
			npuemu_cli_say("cannot start thread %u", i);
			_exit(NPUEMU_EXIT_RUNTIME);
		}
	}
}

static int run_lanes(struct npuemu_perf_worker *w)
{
	struct lane_run run[NPUEMU_PERF_LANES];
	struct gate gate;
	uint32_t i;

	start_lanes(w, run, &gate);
	pthread_barrier_wait(&gate.armed);
	if (tell(w->boss, 'R') || hear(w->boss))
		atomic_store(&w->sh->abort, 1);
	pthread_barrier_wait(&gate.go);
	for (i = 0; i < w->o->threads; i++)
		pthread_join(run[i].thread, NULL);
	pthread_barrier_destroy(&gate.armed);
	pthread_barrier_destroy(&gate.go);
	for (i = 0; i < w->o->threads && w->o->check; i++)
		if (!w->lane[i].rc && !atomic_load(&w->sh->abort))
			w->lane[i].rc = verify(&w->lane[i]);
	return collect(w);
}

static int one_round(struct npuemu_perf_worker *w, const struct npuemu_perf_round *round)
{
	uint32_t i;

	if (w->is_peer && !npuemu_perf_active(w->o)) {
		/* the initiator does all, also to our memory */
		return tell(w->boss, 'R') || hear(w->boss) ? NPUEMU_EXIT_RUNTIME : 0;
	}
	for (i = 0; i < w->o->threads; i++) {
		reset_lane(&w->lane[i], round);
		atomic_store(&w->res->total[i], 0);
	}
	if (npuemu_perf_active(w->o) && (tell(w->mate, 'M') || hear(w->mate)))
		return NPUEMU_EXIT_RUNTIME;
	return run_lanes(w);
}

int npuemu_perf_work(struct npuemu_perf_worker *w)
{
	struct npuemu_perf_round round;
	int rc;

	rc = npuemu_perf_side_open(w);
	if (!rc)
		rc = tell(w->boss, 'S');
	while (!rc) {
		rc = NPUEMU_EXIT_RUNTIME;
		if (recv(w->boss, &round, sizeof(round), MSG_WAITALL) != sizeof(round))
			break;
		rc = 0;
		if (round.last)
			break;
		rc = one_round(w, &round);
		if (!rc)
			rc = tell(w->boss, 'D');
	}
	if (rc)
		tell(w->boss, 'E');
	npuemu_perf_side_close(w);
	return rc;
}
