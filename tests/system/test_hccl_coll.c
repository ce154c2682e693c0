// SPDX-License-Identifier: MIT
/*
 * Collectives against a plain reference: operation, data type, reduction, ranks, count,
 * algorithm, in place or not, root, ranks as threads or as processes, on one server or two.
 * All pairs of these come up; with NPUEMU_CHECK_ALL full products of those that matter.  In
 * chaos mode some of them again: where the chip may do things in another order, it does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hccltest.h"

#define BUFFER		(1u << 20)	/* hcclBufferSize of all communicators here */
#define LIST_MAX	40000u

enum param {
	P_COLL, P_TYPE, P_OP, P_RANKS, P_COUNT, P_ALGO, P_PLACE, P_ROOT, P_STRICT, P_PROCESSES,
	P_SERVERS, PARAMS,
};

static const uint8_t rank_counts[] = { 1, 2, 3, 4, 5, 8 };

enum count { C_0, C_1, C_7, C_4096, C_CHUNK, C_BUFFER, C_LARGE, COUNTS };

static const char *const algos[] = {
	"", "level0:fullmesh", "level0:mesh_oneshot", "level0:mesh_twoshot", "level0:ring",
	"level0:H-D_R", "level0:NHR", "level0:NHR_V1", "level0:NB", "level0:pairwise",
	"level0:AHC", "level0:pipeline", "level0:NA;level1:ring", "level0:NA;level1:H-D_R",
	"level0:ring;level1:NHR", "level0:NA;level1:NB", "level1:pairwise",
	"allreduce=level0:ring/alltoall=level0:pairwise/others=level0:NHR",
};

#define N(array)	(sizeof(array) / sizeof((array)[0]))
#define VALUES_MAX	20

static const uint8_t values[PARAMS] = {
	[P_COLL] = HT_COLLS, [P_TYPE] = HT_TYPES, [P_OP] = 4, [P_RANKS] = N(rank_counts),
	[P_COUNT] = COUNTS, [P_ALGO] = N(algos), [P_PLACE] = 2, [P_ROOT] = 3, [P_STRICT] = 2,
	[P_PROCESSES] = 2, [P_SERVERS] = 2,
};

struct pick {
	uint8_t v[PARAMS];
};

/* Made before the first child, so that all of them have it. */
static struct pick list[LIST_MAX];
static uint32_t listed;

/* ---- Which cases ---------------------------------------------------------------- */

static bool counts_for(const struct pick *p, enum param which)
{
	enum ht_coll coll = (enum ht_coll)p->v[P_COLL];

	switch (which) {
	case P_OP:
	case P_STRICT:
		return ht_reduces(coll);
	case P_ROOT:
		return ht_rooted(coll);
	case P_PLACE:
		return ht_may_be_in_place(coll);
	case P_SERVERS:
		return p->v[P_RANKS];
	default:
		return true;
	}
}

static bool possible(const struct pick *p)
{
	return !ht_reduces((enum ht_coll)p->v[P_COLL]) || ht_reducible(ht_type(p->v[P_TYPE]));
}

static void normalize(struct pick *p)
{
	for (int i = 0; i < PARAMS; i++)
		if (!counts_for(p, (enum param)i))
			p->v[i] = 0;
}

static uint8_t any(uint64_t *rnd, int param)
{
	return (uint8_t)(sys_rand(rnd) % values[param]);
}

static bool seen[PARAMS][VALUES_MAX][PARAMS][VALUES_MAX];

static uint32_t new_pairs(const struct pick *p, bool mark)
{
	uint32_t n = 0;

	for (int a = 0; a < PARAMS; a++)
		for (int b = 0; b < a; b++) {
			bool *s = &seen[a][p->v[a]][b][p->v[b]];

			if (!counts_for(p, (enum param)a) || !counts_for(p, (enum param)b) || *s)
				continue;
			n++;
			*s |= mark;
		}
	return n;
}

/* Of some that have values @a and @b: the one that has most of what was not there yet. */
static bool best_with(uint64_t *rnd, int a, uint8_t va, int b, uint8_t vb, struct pick *best)
{
	uint32_t most = 0, n;
	struct pick p;

	for (int tries = 0; tries < 40; tries++) {
		for (int i = 0; i < PARAMS; i++)
			p.v[i] = any(rnd, i);
		p.v[a] = va;
		p.v[b] = vb;
		if (!possible(&p) || !counts_for(&p, (enum param)a) || !counts_for(&p, (enum param)b))
			continue;
		normalize(&p);
		n = new_pairs(&p, false);
		if (n > most) {
			most = n;
			*best = p;
		}
	}
	return most;
}

static void add(const struct pick *p)
{
	if (listed == LIST_MAX)
		abort();
	list[listed++] = *p;
}

static void all_pairs(uint64_t *rnd)
{
	struct pick p;

	for (int a = 0; a < PARAMS; a++)
		for (int b = 0; b < a; b++)
			for (uint8_t va = 0; va < values[a]; va++)
				for (uint8_t vb = 0; vb < values[b]; vb++)
					if (!seen[a][va][b][vb] && best_with(rnd, a, va, b, vb, &p)) {
						new_pairs(&p, true);
						add(&p);
					}
}

/* Each of the first parameters with each other; the rest by chance. */
static void product(uint64_t *rnd, const uint8_t *params, int n, uint8_t count_limit)
{
	struct pick p;
	uint64_t at, total = 1;
	int i;

	for (i = 0; i < n; i++)
		total *= values[params[i]];
	for (at = 0; at < total; at++) {
		uint64_t rest = at;

		for (i = 0; i < PARAMS; i++)
			p.v[i] = any(rnd, i);
		for (i = 0; i < n; i++) {
			p.v[params[i]] = (uint8_t)(rest % values[params[i]]);
			rest /= values[params[i]];
		}
		while (!possible(&p))
			p.v[P_TYPE] = any(rnd, P_TYPE);
		if (p.v[P_COUNT] >= count_limit || (!counts_for(&p, P_OP) && p.v[P_OP]))
			continue;
		normalize(&p);
		add(&p);
	}
}

/* Cases that can have a job, and in there a communicator, in common lie beside each other. */
static int order(const void *a, const void *b)
{
	static const uint8_t by[] = { P_SERVERS, P_PROCESSES, P_RANKS, P_ALGO, P_STRICT };
	const struct pick *p = a, *q = b;

	for (size_t i = 0; i < N(by); i++)
		if (p->v[by[i]] != q->v[by[i]])
			return p->v[by[i]] - q->v[by[i]];
	return memcmp(p, q, sizeof(*p));
}

static void make_list(void)
{
	static const uint8_t kinds[] = { P_COLL, P_TYPE, P_OP, P_RANKS, P_COUNT };
	static const uint8_t ways[] = { P_COLL, P_ALGO, P_RANKS, P_COUNT };
	uint64_t rnd = 5;

	all_pairs(&rnd);
	if (getenv("NPUEMU_CHECK_ALL")) {
		product(&rnd, kinds, N(kinds), C_BUFFER);
		product(&rnd, ways, N(ways), COUNTS);
	}
	qsort(list, listed, sizeof(list[0]), order);
}

/* ---- One case ------------------------------------------------------------------------ */

/* Of the block that each rank has, if it is one: all blocks together are of that size. */
static uint64_t count_of(const struct pick *p, uint64_t seed)
{
	uint32_t size = ht_size(ht_type(p->v[P_TYPE])), ranks = rank_counts[p->v[P_RANKS]];
	uint64_t parts, large = sys_slow() ? BUFFER * 9 / 4 : BUFFER * 5 / 2;

	switch (p->v[P_COLL]) {
	case HT_ALLREDUCE:
	case HT_REDUCE:
	case HT_BROADCAST:
		parts = 1;
		break;
	default:
		parts = ranks;
	}
	switch ((enum count)p->v[P_COUNT]) {
	case C_0:
		return 0;
	case C_1:
		return 1;
	case C_7:
		return 7;
	case C_4096:
		return 4096;
	case C_CHUNK:
		return (65536 + seed % 3) / size - (seed % 3 == 1);
	case C_BUFFER:
		return BUFFER / size / parts + seed % 3 - 1;
	default:
		return large / size / parts + seed % 5;
	}
}

static void one_case(struct ht_rank *r, uint32_t index)
{
	const struct pick *p = &list[index];
	struct ht_case k = {
		.coll = (enum ht_coll)p->v[P_COLL], .type = ht_type(p->v[P_TYPE]),
		.op = (HcclReduceOp)p->v[P_OP], .ranks = r->ranks, .in_place = p->v[P_PLACE],
		.exact = !p->v[P_STRICT], .seed = index + 1, .note = algos[p->v[P_ALGO]],
	};
	static const uint32_t roots[] = { 0, 7, 2 };

	k.root = ht_rooted(k.coll) ? roots[p->v[P_ROOT]] % r->ranks : 0;
	k.count = count_of(p, k.seed);
	ht_collective(r, &k);
}

/* ---- A job ----------------------------------------------------------------------------- */

struct part {
	uint32_t first, end;
	uint32_t every, from;	/* of these cases only the ones with this remainder */
};

static HcclComm open_comm(struct ht_rank *r, const struct pick *p)
{
	HcclCommConfig c;

	HcclCommConfigInit(&c);
	c.hcclBufferSize = 1;
	c.hcclDeterministic = p->v[P_STRICT] ? 2 : 0;
	snprintf(c.hcclAlgo, sizeof(c.hcclAlgo), "%s", algos[p->v[P_ALGO]]);
	return ht_comm(r, &c);
}

static void cases(struct ht_rank *r)
{
	const struct part *part = r->arg;
	const struct pick *before = NULL;
	uint32_t i;

	for (i = part->first; i < part->end; i++) {
		const struct pick *p = &list[i];

		if (i % part->every != part->from)
			continue;
		if (!r->comm || p->v[P_ALGO] != before->v[P_ALGO] ||
		    p->v[P_STRICT] != before->v[P_STRICT]) {
			if (r->comm)
				ht_ok(HcclCommDestroy(r->comm));
			r->comm = open_comm(r, p);
		}
		before = p;
		one_case(r, i);
	}
}

static bool same_job(const struct pick *p, const struct pick *q)
{
	return p->v[P_SERVERS] == q->v[P_SERVERS] && p->v[P_PROCESSES] == q->v[P_PROCESSES] &&
	       p->v[P_RANKS] == q->v[P_RANKS];
}

static void run_list(bool servers, bool processes, uint32_t every, uint32_t from)
{
	struct part part = { .every = every, .from = from };
	struct ht_job job = {
		.bare = true, .fn = cases, .arg = &part, .bytes = sizeof(part),
		.processes = processes,
	};

	for (part.first = 0; part.first < listed; part.first = part.end) {
		const struct pick *p = &list[part.first];

		for (part.end = part.first + 1; part.end < listed; part.end++)
			if (!same_job(p, &list[part.end]))
				break;
		if (p->v[P_SERVERS] != servers || p->v[P_PROCESSES] != processes)
			continue;
		job.ranks = rank_counts[p->v[P_RANKS]];
		job.split = servers ? (job.ranks + 1) / 2 : 0;
		ht_run(&job);
	}
}

static void threads(void **state)
{
	(void)state;
	run_list(false, false, 1, 0);
}

static void processes(void **state)
{
	(void)state;
	run_list(false, true, 1, 0);
}

static void servers_threads(void **state)
{
	(void)state;
	sys_user_only("the module is one machine, of one server");
	run_list(true, false, 1, 0);
}

static void servers_processes(void **state)
{
	(void)state;
	sys_user_only("the module is one machine, of one server");
	run_list(true, true, 1, 0);
}

/* Each seed another part of the list. */
static void chaos(bool processes)
{
	const uint32_t seeds = 3, every = sys_slow() ? 24 : 9;
	char text[16];

	sys_user_only("chaos is a parameter of the module");
	for (uint32_t seed = 1; seed <= seeds; seed++) {
		snprintf(text, sizeof(text), "%u", seed);
		ht_env("NPUEMU_CHAOS", text);
		run_list(false, processes, every, seed);
		ht_env_restore();
	}
}

static void chaos_threads(void **state)
{
	(void)state;
	chaos(false);
}

static void chaos_processes(void **state)
{
	(void)state;
	chaos(true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ht_test(threads),
		ht_test(processes),
		ht_test(chaos_threads),
		ht_test(chaos_processes),
		ht_test_servers(servers_threads),
		ht_test_servers(servers_processes),
	};

	make_list();
	ht_start();
	print_message("%u cases\n", listed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
