// SPDX-License-Identifier: MIT
/*
 * Where handles come from: a freed one is not given away at once, all there are can be had,
 * and objects that come and go take no more memory than those that are there at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core.h"

struct object {
	struct npuemu *ctx;
	u64 body[7];
};

#define MAX	1000u
#define LATE	64u		/* so many come before a freed one again, at least */
#define ROOM	80u		/* and so many places are used beyond those that were at a time, at most */

static struct npuemu_slab slab = NPUEMU_SLAB_INIT("object", struct object, MAX);

static void *get(void)
{
	struct object *o = npuemu_slab_alloc(&slab);

	assert_non_null(o);
	assert_int_equal(o->body[0] | o->body[6], 0);
	o->body[0] = 1;
	o->body[6] = 1;
	npuemu_slab_publish(&slab, o);
	return o;
}

static void put(void *o)
{
	assert_true(npuemu_slab_retire(&slab, o));
	assert_false(npuemu_slab_retire(&slab, o));
	npuemu_slab_free(&slab, o);
	assert_false(npuemu_slab_alive(&slab, o));
}

/* @live are there all the time, one more comes and goes. */
static void churn(u32 live)
{
	void *had[LATE] = { NULL }, *o;
	u32 i, k;

	for (i = 0; i < 10 * MAX; i++) {
		o = get();
		for (k = 0; k < LATE; k++)
			assert_ptr_not_equal(o, had[k]);
		had[i % LATE] = o;
		put(o);
		if (i >= MAX)
			assert_true(slab.used <= live + ROOM);
	}
}

static void come_and_go(void **state)
{
	void *keep[300];
	u32 i;

	(void)state;
	churn(0);
	for (i = 0; i < 300; i++)
		keep[i] = get();
	churn(300);
	for (i = 0; i < 300; i++)
		put(keep[i]);
	churn(300);
}

/* All, none more, and each again that was given back. */
static void all_of_them(void **state)
{
	static void *o[MAX];
	u32 i, k;

	(void)state;
	for (i = 0; i < MAX; i++)
		o[i] = get();
	assert_null(npuemu_slab_alloc(&slab));
	for (i = 0; i < MAX; i += 7) {
		put(o[i]);
		assert_ptr_equal(get(), o[i]);
		assert_null(npuemu_slab_alloc(&slab));
	}
	for (i = 0; i < MAX; i++)
		for (k = i + 1; k < MAX && k < i + 3; k++)
			assert_ptr_not_equal(o[i], o[k]);
	for (i = 0; i < MAX; i++)
		put(o[i]);
	churn(MAX - LATE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(come_and_go),
		cmocka_unit_test(all_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
