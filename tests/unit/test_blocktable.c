// SPDX-License-Identifier: MIT
/*
 * The block table of npuemu-replay against a naive model: a plain array in
 * order of use, searched from the front.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../tools/replay/blocktable.c"

#define MAX_SLOTS	64

/* ---- The model -------------------------------------------------------------- */

struct naive {
	uint64_t id[MAX_SLOTS];		/* oldest first */
	uint32_t n;
	uint32_t slots;
};

static int naive_find(const struct naive *m, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < m->n; i++)
		if (m->id[i] == id)
			return (int)i;
	return -1;
}

static void naive_remove(struct naive *m, uint32_t i)
{
	memmove(&m->id[i], &m->id[i + 1], (m->n - i - 1) * sizeof(m->id[0]));
	m->n--;
}

/* Returns whether it was held. */
static bool naive_use(struct naive *m, uint64_t id)
{
	int i = naive_find(m, id);

	if (i >= 0)
		naive_remove(m, (uint32_t)i);
	else if (m->n == m->slots)
		naive_remove(m, 0);
	m->id[m->n++] = id;
	return i >= 0;
}

static void naive_request(struct naive *m, const uint64_t *ids, uint32_t n, bool *hit)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (naive_find(m, ids[i]) >= 0)
			naive_use(m, ids[i]);
	for (i = 0; i < n; i++)
		hit[i] = naive_use(m, ids[i]);
}

static uint64_t rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* The table holds exactly what the model holds, in the same order. */
static void same_content(const struct replay_table *t, const struct naive *m)
{
	uint32_t s = t->oldest, i;

	assert_int_equal(t->used, m->n);
	for (i = 0; i < m->n; i++) {
		assert_int_not_equal(s, REPLAY_NO_SLOT);
		assert_true(t->slot[s].id == m->id[i]);
		assert_int_equal(replay_table_find(t, m->id[i]), s);
		s = t->slot[s].newer;
	}
	assert_int_equal(s, REPLAY_NO_SLOT);
}

/* ---- Tests --------------------------------------------------------------------- */

static void check_refs(const struct replay_table *t,
		       const uint64_t *ids, const struct replay_ref *refs,
		       const bool *hit, uint32_t n)
{
	uint32_t i, j;

	for (i = 0; i < n; i++) {
		assert_true(refs[i].id == ids[i]);
		assert_int_equal(refs[i].hit, hit[i]);
		assert_int_equal(refs[i].slot, replay_table_find(t, ids[i]));
		/* two blocks of a request never share a slot */
		for (j = 0; j < i; j++)
			if (refs[j].slot == refs[i].slot)
				assert_true(ids[j] == ids[i]);
	}
}

static void run_random(uint32_t slots, uint64_t id_range, uint64_t id_step, uint64_t seed)
{
	struct replay_table *t = replay_table_new(slots);
	struct naive m = { .slots = slots };
	struct replay_ref refs[MAX_SLOTS];
	uint64_t ids[MAX_SLOTS], k;
	bool hit[MAX_SLOTS];
	uint32_t i, n;

	assert_non_null(t);
	for (k = 0; k < 3000; k++) {
		n = (uint32_t)(rnd(&seed) % (slots + 1));
		for (i = 0; i < n; i++)
			ids[i] = rnd(&seed) % id_range * id_step;
		naive_request(&m, ids, n, hit);
		assert_true(replay_table_request(t, k, k, ids, n, refs));
		check_refs(t, ids, refs, hit, n);
		same_content(t, &m);
	}
	replay_table_free(t);
}

static void against_model(void **state)
{
	(void)state;
	run_random(1, 3, 1, 11);
	run_random(2, 5, 1, 12);
	run_random(7, 10, 1, 13);
	run_random(16, 400, 1, 14);
	run_random(64, 100, 1, 15);
	/* ids far apart, and such that low bits are all alike */
	run_random(33, 60, (uint64_t)1 << 40, 16);
	run_random(33, 60, 0x0004000000000001u, 17);
}

/*
 * With requests in flight the outcome is the same as without, and no slot
 * changes hands while an unfinished request needs it.
 */
static void run_in_flight(uint32_t slots, uint32_t depth, uint64_t id_range, uint64_t seed)
{
	struct replay_table *t = replay_table_new(slots);
	struct replay_ref held[8][MAX_SLOTS];
	struct naive m = { .slots = slots };
	uint32_t count[8], refused = 0, i, n;
	uint64_t ids[MAX_SLOTS], k, done = 0, r;
	bool hit[MAX_SLOTS];

	assert_non_null(t);
	for (k = 0; k < 3000; k++) {
		n = (uint32_t)(rnd(&seed) % (slots + 1));
		for (i = 0; i < n; i++)
			ids[i] = rnd(&seed) % id_range;
		naive_request(&m, ids, n, hit);
		while (k - done >= depth)
			done++;
		while (!replay_table_request(t, k, done, ids, n, held[k % 8])) {
			refused++;
			assert_true(done < k);
			done++;
		}
		count[k % 8] = n;
		check_refs(t, ids, held[k % 8], hit, n);
		same_content(t, &m);
		for (r = done; r <= k; r++)
			for (i = 0; i < count[r % 8]; i++)
				assert_true(t->slot[held[r % 8][i].slot].id ==
					    held[r % 8][i].id);
	}
	/* else this has tested nothing */
	if (depth > 1)
		assert_true(refused > 0);
	else
		assert_int_equal(refused, 0);
	replay_table_free(t);
}

static void in_flight(void **state)
{
	(void)state;
	run_in_flight(8, 1, 20, 21);
	run_in_flight(8, 2, 20, 22);
	run_in_flight(16, 4, 24, 23);
	run_in_flight(40, 8, 300, 24);
}

static void waits_for_a_busy_victim(void **state)
{
	struct replay_table *t = replay_table_new(2);
	uint64_t a[] = { 1, 2 }, b[] = { 3 }, c[] = { 2 };
	struct replay_ref refs[2];

	(void)state;
	assert_true(replay_table_request(t, 0, 0, a, 2, refs));
	/* 3 would evict 1, which request 0 has not finished with */
	assert_false(replay_table_request(t, 1, 0, b, 1, refs));
	assert_int_equal(replay_table_find(t, 3), REPLAY_NO_SLOT);
	assert_int_not_equal(replay_table_find(t, 1), REPLAY_NO_SLOT);
	/* a hit needs nobody's slot */
	assert_true(replay_table_request(t, 1, 0, c, 1, refs));
	assert_true(refs[0].hit);
	assert_false(replay_table_request(t, 2, 0, b, 1, refs));
	assert_true(replay_table_request(t, 2, 1, b, 1, refs));
	assert_int_equal(replay_table_find(t, 1), REPLAY_NO_SLOT);
	replay_table_free(t);
}

/* What a request finds it keeps, though it is older than all else. */
static void own_blocks_are_pinned(void **state)
{
	struct replay_table *t = replay_table_new(3);
	uint64_t a[] = { 1, 2, 3 }, b[] = { 4, 5, 1 };
	struct replay_ref refs[3];

	(void)state;
	assert_true(replay_table_request(t, 0, 0, a, 3, refs));
	assert_true(replay_table_request(t, 1, 1, b, 3, refs));
	assert_false(refs[0].hit);
	assert_false(refs[1].hit);
	assert_true(refs[2].hit);
	replay_table_free(t);
}

static void twice_in_one_request(void **state)
{
	struct replay_table *t = replay_table_new(2);
	uint64_t a[] = { 9, 9 };
	struct replay_ref refs[2];

	(void)state;
	assert_true(replay_table_request(t, 0, 0, a, 2, refs));
	assert_false(refs[0].hit);
	assert_true(refs[1].hit);
	assert_int_equal(refs[0].slot, refs[1].slot);
	replay_table_free(t);
}

static void bad_sizes(void **state)
{
	(void)state;
	assert_null(replay_table_new(0));
	assert_null(replay_table_new((1u << 31) + 1));
	replay_table_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(against_model),
		cmocka_unit_test(in_flight),
		cmocka_unit_test(waits_for_a_busy_victim),
		cmocka_unit_test(own_blocks_are_pinned),
		cmocka_unit_test(twice_in_one_request),
		cmocka_unit_test(bad_sizes),
	};

	return cmocka_run_group_tests_name("blocktable", tests, NULL, NULL);
}
