// SPDX-License-Identifier: MIT
/*
 * The plan that a collective goes by.  Programs do the same again and again, and the
 * ranks of a process all do the same, so the latest plans are kept with the group.
 */
#include <stdlib.h>
#include "comm.h"
#include "support.h"

#define KEPT	8u

struct hccl_made {
	struct hccl_made *next;
	struct hccl_shape shape;
	u64 sum;			/* V forms: of their arrays */
	enum hccl_algo asked;
	u32 refs;			/* ranks that went by it last; atomic */
	struct hccl_local *local;
	struct hccl_plan *plan;
};

/* HCCL_ALGO's words, for one server. */
static enum hccl_algo inside(u8 alg)
{
	switch (alg) {
	case HCCL_ALG_RING:
		return HCCL_ALGO_RING;
	case HCCL_ALG_HDR:
		return HCCL_ALGO_RHD;
	case HCCL_ALG_NHR:
	case HCCL_ALG_NHR_V1:
		return HCCL_ALGO_NHR;
	case HCCL_ALG_NB:
		return HCCL_ALGO_NB;
	case HCCL_ALG_PAIRWISE:
		return HCCL_ALGO_PAIRWISE;
	case HCCL_ALG_MESH:
	case HCCL_ALG_MESH_TWOSHOT:
		return HCCL_ALGO_MESH_TWO;
	case HCCL_ALG_MESH_ONESHOT:
		return HCCL_ALGO_MESH_ONE;
	default:
		return HCCL_ALGO_AUTO;
	}
}

static const u8 cmd_of[HCCL_COLLS] = {
	[HCCL_ALLREDUCE] = HCCL_CMD_ALLREDUCE, [HCCL_REDUCE_TO] = HCCL_CMD_REDUCE,
	[HCCL_REDUCESCATTER] = HCCL_CMD_REDUCE_SCATTER, [HCCL_REDUCESCATTERV] = HCCL_CMD_REDUCE_SCATTER_V,
	[HCCL_ALLGATHER] = HCCL_CMD_ALLGATHER, [HCCL_ALLGATHERV] = HCCL_CMD_ALLGATHER_V,
	[HCCL_BROADCAST] = HCCL_CMD_BROADCAST, [HCCL_SCATTER] = HCCL_CMD_SCATTER, [HCCL_ALLTOALL] = HCCL_CMD_ALLTOALL,
	[HCCL_ALLTOALLV] = HCCL_CMD_ALLTOALLV,
};

static bool sums(u32 coll)
{
	return coll == HCCL_ALLREDUCE || coll == HCCL_REDUCE_TO || coll == HCCL_REDUCESCATTER ||
	       coll == HCCL_REDUCESCATTERV;
}

/* Sums in rank order are what the mesh programs make, and no others: mesh.c. */
static enum hccl_algo in_order(const struct hccl_comm *c, u8 alg)
{
	if (alg == HCCL_ALG_MESH_ONESHOT)
		return HCCL_ALGO_MESH_ONE;
	return c->servers > 1 ? HCCL_ALGO_MESH_TWO : HCCL_ALGO_AUTO;
}

static enum hccl_algo asked(const struct hccl_comm *c, u32 coll, enum hccl_algo *inter)
{
	const u8 *level = c->cfg.alg[cmd_of[coll]];

	*inter = inside(level[1]);
	if (c->cfg.deterministic == HCCL_DET_STRICT && sums(coll))
		return in_order(c, level[0]);
	if (c->servers > 1 && *inter != HCCL_ALGO_AUTO)
		return *inter == HCCL_ALGO_PAIRWISE ? HCCL_ALGO_PAIRWISE : HCCL_ALGO_HIER;
	if (level[0] == HCCL_ALG_DEFAULT || level[0] == HCCL_ALG_NA)
		return *inter;	/* one server: what is asked for between servers is done between ranks */
	return inside(level[0]);
}

static u64 sum_arrays(const struct hccl_slot *slot, u32 ranks)
{
	u64 sum = 1;
	u32 r, k, i;

	for (r = 0; r < ranks; r++)
		for (k = 0; k < 4; k++)
			for (i = 0; i < ranks; i++) {
				sum ^= slot->array[r][k][i];
				sum = npuemu_random(&sum);
			}
	return sum;
}

static bool same(const struct hccl_made *m, const struct hccl_shape *s, u64 sum, enum hccl_algo algo)
{
	const struct hccl_shape *k = &m->shape;

	return k->coll == s->coll && k->root == s->root && k->elem == s->elem && k->count == s->count &&
	       m->sum == sum && m->asked == algo && k->inter == s->inter;
}

/* One block of host memory for the arrays as hccl_shape wants them. */
static u64 *arrays(struct hccl_shape *s, const struct hccl_slot *slot)
{
	u32 n = s->ranks, r, i;
	u64 *a;

	if (s->coll != HCCL_ALLTOALLV) {
		a = malloc(2 * n * sizeof(*a));
		if (!a)
			return NULL;
		for (i = 0; i < n; i++) {
			a[i] = slot->array[0][0][i];
			a[n + i] = slot->array[0][1][i];
		}
		s->counts = a;
		s->displs = a + n;
		return a;
	}
	a = malloc(3 * (size_t)n * n * sizeof(*a));
	if (!a)
		return NULL;
	for (r = 0; r < n; r++)
		for (i = 0; i < n; i++) {
			a[r * n + i] = slot->array[r][0][i];
			a[(n + r) * n + i] = slot->array[r][1][i];
			a[(2 * n + r) * n + i] = slot->array[r][3][i];
		}
	s->counts = a;
	s->send_displs = a + (size_t)n * n;
	s->recv_displs = a + 2 * (size_t)n * n;
	return a;
}

static bool has_arrays(enum hccl_coll coll)
{
	return coll == HCCL_ALLTOALLV || coll == HCCL_ALLGATHERV || coll == HCCL_REDUCESCATTERV;
}

static struct hccl_made *make(struct hccl_comm *c, struct hccl_shape *s, const struct hccl_slot *slot, enum hccl_algo algo)
{
	struct hccl_made *m = calloc(1, sizeof(*m));
	u64 *a = NULL;

	if (m && has_arrays(s->coll))
		a = arrays(s, slot);
	if (m && (a || !has_arrays(s->coll)))
		m->plan = hccl_plan_make(s, algo);
	free(a);
	if (!m || !m->plan) {
		free(m);
		return NULL;
	}
	s->counts = NULL;
	s->displs = NULL;
	s->send_displs = NULL;
	s->recv_displs = NULL;
	m->shape = *s;
	m->asked = algo;
	m->local = c->local;
	return m;
}

static void unmake(struct hccl_made *m)
{
	hccl_plan_free(m->plan);
	free(m);
}

/* local->lock held: those beyond the latest, unless in use. */
static void trim(struct hccl_local *l)
{
	struct hccl_made **at = &l->plans, *m;
	u32 n = 0;

	while ((m = *at)) {
		/* who had it last is through with it: pairs with put() */
		if (++n <= KEPT || smp_load_acquire(&m->refs)) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		unmake(m);
	}
}

static void put(struct hccl_made *m)
{
	if (m)
		npuemu_fetch_add(&m->refs, -1u);
}

/* It is this rank's until the next: a rank goes by one plan at a time. */
struct hccl_plan *hccl_plan_of(struct hccl_comm *c, const struct hccl_op *op, struct hccl_slot *slot)
{
	const struct hccl_want *w = &op->want;
	struct hccl_shape s = {
		.coll = w->coll, .ranks = c->ranks, .root = w->root, .elem = hccl_type_bytes(w->type), .count = w->count,
		.ccl_bytes = c->ccl_bytes, .server = c->servers > 1 ? c->server : NULL,
	};
	enum hccl_algo algo = asked(c, w->coll, &s.inter);
	u64 sum = has_arrays(s.coll) ? sum_arrays(slot, c->ranks) : 0;
	struct hccl_made *m = c->plan;

	if (likely(m && same(m, &s, sum, algo)))
		return m->plan;
	pthread_mutex_lock(&c->local->lock);
	for (m = c->local->plans; m && !same(m, &s, sum, algo); m = m->next)
		;
	if (!m) {
		m = make(c, &s, slot, algo);
		if (m) {
			m->sum = sum;
			m->next = c->local->plans;
			c->local->plans = m;
			trim(c->local);
		}
	}
	if (m)
		npuemu_fetch_add(&m->refs, 1);
	pthread_mutex_unlock(&c->local->lock);
	put(c->plan);
	c->plan = m;
	return m ? m->plan : NULL;
}

void hccl_plan_drop(struct hccl_comm *c)
{
	put(c->plan);
	c->plan = NULL;
}

void hccl_plans_free(struct hccl_local *l)
{
	struct hccl_made *m, *next;

	for (m = l->plans; m; m = next) {
		next = m->next;
		unmake(m);
	}
	l->plans = NULL;
}
