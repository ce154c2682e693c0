// SPDX-License-Identifier: MIT
/*
 * Plans of collectives, without anything that could carry them out: each algorithm of each
 * collective, for many shapes, by the simulator of plansim.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "plansim.h"

/* ---- Shapes ----------------------------------------------------------------------------- */

static const u32 ranks[] = { 1, 2, 3, 4, 5, 7, 8, 16 };
static const u64 counts[] = { 0, 1, 7, 64, 1000 };

static void job(enum hccl_coll coll, enum hccl_algo algo, u32 n, u64 count)
{
	u64 far = 0;

	memset(&plansim.s, 0, sizeof(plansim.s));
	plansim.s.coll = coll;
	plansim.s.ranks = n;
	plansim.s.elem = 4;
	plansim.s.count = count;
	plansim.s.ccl_bytes = 8192;
	plansim.s.chunk = 1024;
	plansim.s.grain = 64;
	plansim.algo = algo;
	plansim.floats = false;
	plansim.placing = PLANSIM_APART;
	plansim.runs = 2;
	/* blocks of any length and none, in no order of the ranks, with gaps */
	for (u32 r = 0; r < n; r++) {
		plansim.displs[r] = far;
		plansim.counts[r] = plansim_dice(4) ? plansim_dice((u32)count + 1) : 0;
		far += plansim.counts[r] + plansim_dice(3);
	}
	if (coll != HCCL_ALLTOALLV)
		return;
	for (u32 i = 0; i < n * n; i++)
		plansim.counts[i] = plansim_dice(4) ? plansim_dice((u32)count + 1) : 0;
	for (u32 r = 0; r < n; r++) {
		u64 out = plansim_dice(3), in = plansim_dice(3);

		for (u32 q = 0; q < n; q++) {
			plansim.send[r * n + n - 1 - q] = out;
			out += plansim.counts[r * n + n - 1 - q] + plansim_dice(2);
			plansim.recv[r * n + q] = in;
			in += plansim.counts[q * n + r] + plansim_dice(2);
		}
	}
}

static bool rooted(enum hccl_coll coll)
{
	return coll == HCCL_REDUCE_TO || coll == HCCL_BROADCAST || coll == HCCL_SCATTER;
}

/* In all placings, from several roots. */
static void placings(void)
{
	u32 step = plansim.s.ranks > 4 ? plansim.s.ranks / 2 : 1;
	u32 roots = rooted(plansim.s.coll) ? plansim.s.ranks : 1;

	for (plansim.s.root = 0; plansim.s.root < roots; plansim.s.root += step)
		for (plansim.placing = 0; plansim.placing < PLANSIM_PLACINGS; plansim.placing++)
			plansim_run();
}

static void flat(enum hccl_algo algo)
{
	for (u32 c = 0; c < HCCL_COLLS; c++)
		for (u32 n = 0; n < ARRAY_SIZE(ranks) && hccl_plan_has(c, algo); n++)
			for (u32 i = 0; i < ARRAY_SIZE(counts); i++) {
				u64 count = ranks[n] > 8 && counts[i] > 300 ? 300 : counts[i];

				job(c, algo, ranks[n], count);
				placings();
			}
}

/* What goes through CCL goes in rounds, and what is long in chunks, of any length. */
static void rounds(enum hccl_algo algo)
{
	for (u32 c = 0; c < HCCL_COLLS; c++)
		for (u32 n = 1; n < ARRAY_SIZE(ranks) && hccl_plan_has(c, algo); n++) {
			job(c, algo, ranks[n], 150);
			plansim.s.ccl_bytes = ranks[n] * 128 + 4;
			plansim.s.chunk = 100;
			plansim.runs = PLANSIM_ORDERS + 3;
			placings();
		}
}

static void each_width(enum hccl_algo algo)
{
	static const u32 widths[] = { 1, 2, 8 };

	for (u32 c = 0; c < HCCL_COLLS; c++)
		for (u32 i = 0; i < ARRAY_SIZE(widths) && hccl_plan_has(c, algo); i++) {
			job(c, algo, 5, 333);
			plansim.s.elem = widths[i];
			plansim.s.ccl_bytes = 1000;
			plansim.s.chunk = 203;
			placings();
		}
}

static void floats(enum hccl_algo algo)
{
	static const u32 some[] = { 2, 3, 6, 8 };

	for (u32 c = 0; c < HCCL_COLLS; c++)
		for (u32 n = 0; n < ARRAY_SIZE(some) && hccl_plan_has(c, algo); n++) {
			job(c, algo, some[n], 300);
			plansim.floats = true;
			plansim.s.chunk = 256;
			plansim.s.ccl_bytes = 2048;
			plansim.runs = 4;
			placings();
		}
}

static void all_of(enum hccl_algo algo)
{
	flat(algo);
	rounds(algo);
	each_width(algo);
	floats(algo);
}

#define TEST_OF(name, algo)				\
	static void test_##name(void **state)		\
	{						\
		(void)state;				\
		all_of(HCCL_ALGO_##algo);		\
	}

TEST_OF(one_lane, ONE_LANE)
TEST_OF(mesh_one, MESH_ONE)
TEST_OF(mesh_two, MESH_TWO)
TEST_OF(ring, RING)
TEST_OF(rhd, RHD)
TEST_OF(nhr, NHR)
TEST_OF(nb, NB)
TEST_OF(pairwise, PAIRWISE)

/* ---- Servers ----------------------------------------------------------------------------- */

static const struct {
	u32 ranks;
	u32 server[16];
} layouts[] = {
	{ 4,  { 0, 0, 1, 1 } },
	{ 8,  { 0, 0, 0, 0, 1, 1, 1, 1 } },
	{ 6,  { 0, 0, 1, 1, 2, 2 } },
	{ 8,  { 0, 1, 2, 3, 0, 1, 2, 3 } },		/* not next to each other */
	{ 5,  { 0, 0, 0, 1, 1 } },			/* unequal */
	{ 7,  { 2, 2, 2, 2, 0, 1, 1 } },
	{ 9,  { 1, 0, 0, 2, 1, 0, 0, 2, 0 } },
	{ 3,  { 0, 1, 2 } },
	{ 16, { 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4 } },
};

static const enum hccl_algo inters[] = {
	HCCL_ALGO_AUTO, HCCL_ALGO_MESH_TWO, HCCL_ALGO_RING, HCCL_ALGO_RHD, HCCL_ALGO_NHR,
	HCCL_ALGO_NB,
};

static void servers(u32 layout, enum hccl_coll coll, u64 count)
{
	job(coll, HCCL_ALGO_HIER, layouts[layout].ranks, count);
	plansim.s.server = layouts[layout].server;
}

static void test_hier(void **state)
{
	(void)state;
	for (u32 c = 0; c < HCCL_COLLS; c++)
		for (u32 l = 0; l < ARRAY_SIZE(layouts) && hccl_plan_has(c, HCCL_ALGO_HIER); l++)
			for (u32 k = 0; k < ARRAY_SIZE(inters); k++) {
				for (u32 i = 0; i < ARRAY_SIZE(counts) - 1; i++) {
					servers(l, c, counts[i]);
					plansim.s.inter = inters[k];
					placings();
				}
				servers(l, c, 150);
				plansim.s.inter = inters[k];
				plansim.s.ccl_bytes = c == HCCL_REDUCE_TO ? 260 : 16 * 128 + 4;
				plansim.s.chunk = 100;
				plansim.runs = PLANSIM_ORDERS + 1;
				placings();
				servers(l, c, 100);
				plansim.s.inter = inters[k];
				plansim.floats = true;
				placings();
			}
}

static void test_hier_says_so(void **state)
{
	struct hccl_plan *p;

	(void)state;
	servers(0, HCCL_ALLREDUCE, 1000000);
	assert_int_equal(hccl_plan_choose(&plansim.s), HCCL_ALGO_HIER);
	plansim.s.count = 2;
	plansim.s.grain = 0;
	assert_int_equal(hccl_plan_choose(&plansim.s), HCCL_ALGO_ONE_LANE);
	servers(0, HCCL_ALLREDUCE, 1000000);
	plansim.s.server = NULL;		/* one server: there is no between */
	p = hccl_plan_make(&plansim.s, HCCL_ALGO_HIER);
	assert_non_null(p);
	assert_int_equal(p->algo, HCCL_ALGO_MESH_TWO);
	hccl_plan_free(p);
}

/* ---- AUTO, names, limits ------------------------------------------------------------------- */

static void test_auto(void **state)
{
	(void)state;
	for (u32 c = 0; c < HCCL_COLLS; c++)
		for (u32 n = 0; n < ARRAY_SIZE(ranks); n++)
			for (u32 i = 0; i < ARRAY_SIZE(counts); i++) {
				job(c, HCCL_ALGO_AUTO, ranks[n], counts[i]);
				plansim.s.chunk = plansim.s.grain = 0;
				placings();
			}
}

static enum hccl_algo chosen(enum hccl_coll coll, enum hccl_algo algo, u32 n, u64 count)
{
	struct hccl_plan *p;
	enum hccl_algo is;

	job(coll, algo, n, count);
	plansim.s.chunk = plansim.s.grain = 0;
	plansim.s.counts = plansim.counts;
	plansim.s.displs = plansim.displs;
	p = hccl_plan_make(&plansim.s, algo);
	assert_non_null(p);
	is = p->algo;
	hccl_plan_free(p);
	return is;
}

static u64 steps_of(enum hccl_coll coll, enum hccl_algo algo, u32 n, u64 count)
{
	struct hccl_plan *p;
	u64 steps = 0;

	job(coll, algo, n, count);
	plansim.s.chunk = plansim.s.grain = 0;
	p = hccl_plan_make(&plansim.s, algo);
	assert_non_null(p);
	for (u32 r = 0; r < n; r++)
		steps += p->lane[r].n;
	hccl_plan_free(p);
	return steps;
}

static void test_choice(void **state)
{
	(void)state;
	assert_int_equal(chosen(HCCL_ALLREDUCE, HCCL_ALGO_AUTO, 8, 2), HCCL_ALGO_ONE_LANE);
	assert_int_equal(chosen(HCCL_ALLREDUCE, HCCL_ALGO_AUTO, 8, 1 << 18), HCCL_ALGO_MESH_TWO);
	assert_int_equal(chosen(HCCL_ALLGATHER, HCCL_ALGO_AUTO, 8, 2), HCCL_ALGO_ONE_LANE);
	assert_int_equal(chosen(HCCL_ALLGATHER, HCCL_ALGO_AUTO, 8, 1 << 18), HCCL_ALGO_MESH_TWO);
	assert_int_equal(chosen(HCCL_ALLTOALL, HCCL_ALGO_AUTO, 8, 2), HCCL_ALGO_MESH_TWO);
	/* one that the collective does not have */
	assert_int_equal(chosen(HCCL_ALLTOALL, HCCL_ALGO_RING, 8, 9), HCCL_ALGO_MESH_TWO);
	assert_int_equal(chosen(HCCL_ALLREDUCE, HCCL_ALGO_PAIRWISE, 8, 2), HCCL_ALGO_ONE_LANE);
	assert_int_equal(chosen(HCCL_BARRIER, HCCL_ALGO_RING, 8, 0), HCCL_ALGO_ONE_LANE);
	/* and one that it has */
	assert_int_equal(chosen(HCCL_ALLREDUCE, HCCL_ALGO_NHR, 8, 2), HCCL_ALGO_NHR);
	assert_int_equal(chosen(HCCL_ALLTOALL, HCCL_ALGO_PAIRWISE, 8, 2), HCCL_ALGO_PAIRWISE);

	assert_int_equal(steps_of(HCCL_ALLREDUCE, HCCL_ALGO_AUTO, 8, 2), 15);
	assert_int_equal(steps_of(HCCL_ALLGATHER, HCCL_ALGO_AUTO, 8, 2), 15);
	assert_int_equal(steps_of(HCCL_BROADCAST, HCCL_ALGO_AUTO, 8, 2), 7);
	assert_int_equal(steps_of(HCCL_BARRIER, HCCL_ALGO_AUTO, 8, 0), 0);
}

static void test_names(void **state)
{
	(void)state;
	for (u32 i = 0; i < HCCL_ALGOS; i++)
		for (u32 k = 0; k < i; k++)
			assert_string_not_equal(hccl_algo_name(i), hccl_algo_name(k));
	for (u32 i = 0; i < HCCL_COLLS; i++)
		for (u32 k = 0; k < i; k++)
			assert_string_not_equal(hccl_coll_name(i), hccl_coll_name(k));
	assert_string_equal(hccl_algo_name(HCCL_ALGO_MESH_TWO), "mesh-two-shot");
	assert_string_equal(hccl_coll_name(HCCL_ALLREDUCE), "allreduce");
	assert_string_equal(hccl_algo_name(HCCL_ALGOS), "unknown");
	assert_false(hccl_plan_has(HCCL_COLLS, HCCL_ALGO_RING));
}

static void test_limits(void **state)
{
	(void)state;
	job(HCCL_ALLREDUCE, HCCL_ALGO_AUTO, HCCL_MAX_RANKS, 1);
	plansim.s.ranks++;
	assert_null(hccl_plan_make(&plansim.s, plansim.algo));
	job(HCCL_ALLREDUCE, HCCL_ALGO_AUTO, 4, 1);
	plansim.s.ccl_bytes = HCCL_MIN_CCL - 1;
	assert_null(hccl_plan_make(&plansim.s, plansim.algo));
	/* not a piece for each rank: something that needs less */
	for (u32 a = 1; a < HCCL_ALGOS; a++) {
		job(HCCL_REDUCESCATTER, a, 16, 40);
		plansim.s.elem = 8;
		plansim.s.ccl_bytes = HCCL_MIN_CCL;
		plansim_run();
	}
}

static void test_128(void **state)
{
	static u32 by_eight[HCCL_MAX_RANKS], ragged[HCCL_MAX_RANKS];

	(void)state;
	for (u32 r = 0; r < HCCL_MAX_RANKS; r++) {
		by_eight[r] = r / 8;
		ragged[r] = r * r % 11 % 5;
	}
	for (u32 c = 0; c < HCCL_COLLS; c++)
		for (u32 a = 0; a < HCCL_ALGOS; a++) {
			if (a && !hccl_plan_has(c, a))
				continue;
			job(c, a, HCCL_MAX_RANKS, 9);
			plansim.s.root = 77;
			plansim.runs = 1;
			plansim.s.server = a == HCCL_ALGO_HIER ? c % 2 ? by_eight : ragged : NULL;
			plansim.placing = PLANSIM_MIXED;
			plansim_run();
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_lane),
		cmocka_unit_test(test_mesh_one),
		cmocka_unit_test(test_mesh_two),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_rhd),
		cmocka_unit_test(test_nhr),
		cmocka_unit_test(test_nb),
		cmocka_unit_test(test_pairwise),
		cmocka_unit_test(test_hier),
		cmocka_unit_test(test_hier_says_so),
		cmocka_unit_test(test_auto),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_128),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
