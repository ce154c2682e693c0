// SPDX-License-Identifier: MIT
/*
 * Order: the rule as a truth table, and what chaos makes of it.  Without chaos
 * everything runs in posted order, so only chaos can show whether the order bits
 * are kept, and that what they leave open does vary.
 */
#include "fhassert.h"

#define SEEDS	20u
#define WATCH	65536u
#define KIB	1024u

static int set_up(void **state)
{
	struct fh_queue *f = fh_queue(fh_new(), 256, 512, 0, NULL);

	fh_watch(f->fh, WATCH, 31);
	*state = f;
	return 0;
}

static int set_up_sdma(void **state)
{
	*state = fh_queue(fh_new(), 256, 512, 1, NULL);
	return 0;
}

static int tear_down(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;

	fh_queue_free(f);
	fh_free(fh);
	return 0;
}

/* ---- The rule --------------------------------------------------------------- */

enum { NONE = 0, RELAXED = 1 << 16, STRONG = 2 << 16 };

/* May the second go before the first? */
static const struct {
	u32 op1, flags1, op2, flags2;
	bool may;
} table[] = {
	{ FH_WRITE, NONE,    FH_WRITE, NONE,    true },
	{ FH_WRITE, NONE,    FH_WRITE, RELAXED, true },
	{ FH_WRITE, NONE,    FH_WRITE, STRONG,  true },
	{ FH_WRITE, RELAXED, FH_WRITE, NONE,    true },
	{ FH_WRITE, RELAXED, FH_WRITE, RELAXED, true },
	{ FH_WRITE, RELAXED, FH_WRITE, STRONG,  false },
	{ FH_WRITE, STRONG,  FH_WRITE, NONE,    true },
	{ FH_WRITE, STRONG,  FH_WRITE, RELAXED, true },
	{ FH_WRITE, STRONG,  FH_WRITE, STRONG,  false },
	{ FH_READ,  RELAXED, FH_NOTIFY, STRONG, false },
	{ FH_FAA,   STRONG,  FH_READ,  STRONG,  false },
	{ FH_NOP,   RELAXED, FH_WRITE, STRONG,  false },
	/* a fence waits for what brings data back */
	{ FH_READ,  NONE, FH_WRITE, FH_FENCE, false },
	{ FH_CAS,   NONE, FH_WRITE, FH_FENCE, false },
	{ FH_FAA,   NONE, FH_WRITE, FH_FENCE, false },
	{ FH_WRITE, NONE, FH_WRITE, FH_FENCE, true },
	{ FH_NOTIFY, NONE, FH_READ, FH_FENCE, true },
	{ FH_WRITE_ADD, NONE, FH_READ, FH_FENCE, true },
	{ FH_NOP,   NONE, FH_READ,  FH_FENCE, true },
	{ FH_WRITE, RELAXED, FH_WRITE, FH_FENCE | RELAXED, true },
	{ FH_WRITE, RELAXED, FH_WRITE, FH_FENCE | STRONG, false },
	{ FH_READ,  FH_FENCE, FH_WRITE, NONE, true },
	/* SENDs of one queue arrive in order */
	{ FH_SEND,  NONE, FH_SEND, NONE, false },
	{ FH_SEND,  NONE, FH_SEND_IMM, NONE, false },
	{ FH_SEND_IMM, RELAXED, FH_SEND, RELAXED, false },
	{ FH_SEND,  NONE, FH_WRITE, NONE, true },
	{ FH_WRITE, NONE, FH_SEND, NONE, true },
	{ FH_SEND,  RELAXED, FH_WRITE, STRONG, false },
	/* other bits say nothing about placing */
	{ FH_READ,  NONE, FH_WRITE, FH_COMP_ORDER | FH_SOLICITED | FH_CQE, true },
};

static void set(struct npuemu_wqe *w, u32 op, u32 flags)
{
	memset(w, 0, sizeof(*w));
	w->bb[0] = (u64)op << 40 | flags;
	w->op = &npuemu_opcodes[op];
}

static void rule(void **state)
{
	static struct npuemu_wqe w[3];
	const struct npuemu_wqe *p[3] = { &w[0], &w[1], &w[2] };
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		set(&w[0], table[i].op1, table[i].flags1);
		set(&w[1], table[i].op2, table[i].flags2);
		assert_true(npuemu_order_ready(p, 0));
		if (npuemu_order_ready(p, 1) != table[i].may)
			fh_fail("row %u of the table", i);
		/* with something in between that is nobody's business */
		set(&w[1], FH_WRITE, NONE);
		set(&w[2], table[i].op2, table[i].flags2);
		if (npuemu_order_ready(p, 2) != table[i].may)
			fh_fail("row %u of the table, third place", i);
		/* what was executed holds nobody up */
		w[0].executed = true;
		assert_true(npuemu_order_ready(p, 2));
		/* but what failed does: its data never arrived */
		w[0].status = FH_REM_ACCESS;
		if (npuemu_order_ready(p, 2) != table[i].may)
			fh_fail("row %u of the table, after a failure", i);
	}
}

static void sdma_notify_is_a_barrier(void **state)
{
	static struct npuemu_wqe w[3];
	const struct npuemu_wqe *p[3] = { &w[0], &w[1], &w[2] };
	u32 first;

	(void)state;
	for (first = FH_SDMA_NOP; first <= FH_SDMA_NOTIFY; first++) {
		memset(w, 0, sizeof(w));
		w[0].op = &npuemu_sdma_opcodes[first];
		w[1].op = &npuemu_sdma_opcodes[FH_SDMA_NOTIFY];
		assert_false(npuemu_order_ready(p, 1));
		w[2].op = &npuemu_sdma_opcodes[FH_SDMA_COPY];
		assert_true(npuemu_order_ready(p, 2));
		w[0].executed = true;
		assert_true(npuemu_order_ready(p, 1));
	}
}

/* ---- Chaos ------------------------------------------------------------------ */

/* All completions, in posted order and good. */
static void assert_in_order(struct fh_queue *f, u32 first, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		assert_cqe(f, first + i, FH_OK);
	assert_no_cqe(f);
}

/* A relaxed WRITE, then a READ of the same place: what does the READ see?  0: the
 * old, 1: the new, 2: some of each.
 */
static u32 write_then_read(struct fh_queue *f, u32 write_flags, u32 read_flags, u32 len)
{
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 first = f->pi;
	bool old, new;

	fh_watch(fh, WATCH, 32);
	fh_rma(&w, FH_WRITE, FH_CQE | write_flags, 0, 0, len);
	fh_post(f, &w);
	fh_rma(&w, FH_READ, FH_CQE | read_flags, 32 * KIB, 0, len);
	fh_post(f, &w);
	fh_run(f);
	assert_in_order(f, first, 2);
	old = !memcmp(fh_mine(fh, 32 * KIB), fh->theirs.shadow, len);
	new = !memcmp(fh_mine(fh, 32 * KIB), fh->mine.shadow, len);
	return new ? 1 : old ? 0 : 2;
}

static void strong_comes_after_relaxed(void **state)
{
	struct fh_queue *f = *state;
	u32 seed, i;

	for (seed = 1; seed <= SEEDS; seed++) {
		fh_chaos(f, seed);
		for (i = 0; i < 20; i++) {
			assert_int_equal(write_then_read(f, FH_RELAXED, FH_STRONG, 16 * KIB), 1);
			assert_int_equal(write_then_read(f, FH_STRONG, FH_STRONG, 16 * KIB), 1);
		}
	}
}

/* What is not ordered does come out of order, whole and in parts, with some seed. */
static void unordered_ones_overtake(void **state)
{
	static const struct {
		u32 first, second;
	} loose[] = {
		{ 0, 0 }, { 0, FH_RELAXED }, { 0, FH_STRONG }, { FH_RELAXED, 0 },
		{ FH_RELAXED, FH_RELAXED }, { FH_STRONG, FH_RELAXED }, { FH_RELAXED, FH_FENCE },
	};
	struct fh_queue *f = *state;
	u32 seed, k, seen[3];

	for (k = 0; k < sizeof(loose) / sizeof(loose[0]); k++) {
		memset(seen, 0, sizeof(seen));
		for (seed = 1; seed <= SEEDS; seed++) {
			fh_chaos(f, seed);
			seen[write_then_read(f, loose[k].first, loose[k].second, 16 * KIB)]++;
		}
		if (!seen[0] && !seen[2])
			fh_fail("pair %u never came out of order", k);
		if (!seen[1] && !seen[2])
			fh_fail("pair %u always came out of order", k);
	}
}

/* The same seed does the same again. */
static void seeds_repeat(void **state)
{
	struct fh_queue *f = *state;
	u32 seed, i, first[SEEDS + 1][5], differ = 0;

	for (i = 0; i < 2; i++)
		for (seed = 1; seed <= SEEDS; seed++) {
			u32 k;

			fh_chaos(f, seed);
			for (k = 0; k < 5; k++) {
				u32 saw = write_then_read(f, 0, 0, 16 * KIB);

				if (!i)
					first[seed][k] = saw;
				assert_int_equal(saw, first[seed][k]);
				differ += saw != first[1][k];
			}
		}
	assert_true(differ > 0);
}

/* READ and atomics, then a fenced WRITE over what they read: they saw the old. */
static void fence_waits_for_loads(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 seed, i, broken = 0, fence;
	u64 zero = 0;

	for (fence = 0; fence < 2; fence++)
		for (seed = 1; seed <= SEEDS; seed++)
			for (i = 0; i < 10; i++) {
				u32 first = f->pi;
				u64 old;

				fh_chaos(f, seed * 100 + i);
				fh_watch(fh, WATCH, seed);
				memcpy(&old, fh->theirs.shadow + 8192, 8);
				fh_rma(&w, FH_READ, FH_CQE, 32 * KIB, 0, 8192);
				fh_post(f, &w);
				fh_faa(&w, FH_CQE, 60000, 8192, 8, 1);
				fh_post(f, &w);
				fh_cas(&w, FH_CQE, 60016, 8200, 8, &zero, &zero);
				fh_post(f, &w);
				fh_rma(&w, FH_WRITE, FH_CQE | (fence ? FH_FENCE : 0), 0, 0, 8208);
				fh_post(f, &w);
				fh_run(f);
				assert_cqe(f, first, FH_OK);
				assert_cqe(f, first + 2, FH_OK);
				assert_cqe(f, first + 4, FH_OK);
				assert_cqe(f, first + 5, FH_OK);
				if (memcmp(fh_mine(fh, 32 * KIB), fh->theirs.shadow, 8192) ||
				    memcmp(fh_mine(fh, 60000), &old, 8) ||
				    memcmp(fh_mine(fh, 60016), fh->theirs.shadow + 8200, 8)) {
					assert_false(fence);
					broken++;
				}
				if (fence)
					assert_memory_equal(fh_theirs(fh, 0), fh->mine.shadow, 8208);
			}
	assert_true(broken > 0);
}

/* Data relaxed, the notify strong: it never comes before the data. */
static void notify_publishes(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u64 *word = (u64 *)(void *)fh_theirs(fh, 60000);
	struct fh_wqe w;
	u32 seed, i;

	for (seed = 1; seed <= SEEDS; seed++) {
		u32 first = f->pi;

		fh_chaos(f, seed);
		fh_watch(fh, WATCH, seed);
		*word = 0;
		for (i = 0; i < 6; i++) {
			fh_rma(&w, FH_WRITE, FH_CQE | FH_RELAXED, i * 8192, i * 8192, 5000 + i);
			fh_post(f, &w);
			memcpy(fh->theirs.shadow + i * 8192, fh->mine.shadow + i * 8192, 5000 + i);
		}
		fh_notify(&w, FH_CQE | FH_STRONG, 50000, 50000, 4000, 60000, seed);
		fh_post(f, &w);
		memcpy(fh->theirs.shadow + 50000, fh->mine.shadow + 50000, 4000);
		fh_bell(f);
		while (fh_turn(f))
			if (*word == seed)
				assert_memory_equal(fh_theirs(fh, 0), fh->theirs.shadow, 54000);
		assert_int_equal(*word, seed);
		assert_memory_equal(fh_theirs(fh, 0), fh->theirs.shadow, 54000);
		for (i = 0; i < 6; i++)
			assert_cqe(f, first + i, FH_OK);
		assert_cqe(f, first + 7, FH_OK);
	}
}

/* If some of the data fails, the strong notify behind it does not happen. */
static void failure_holds_back_the_notify(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u64 *word = (u64 *)(void *)fh_theirs(fh, 60000);
	struct fh_wqe w;
	u32 seed, i, bad, suspend, kind;

	for (kind = 0; kind < 2; kind++)
		for (suspend = 0; suspend < 2; suspend++)
			for (seed = 1; seed <= SEEDS; seed++)
				for (bad = 0; bad < 5; bad++) {
					struct fh_cqe c;
					u32 failed = 0;

					f->q.error_suspend = suspend;
					fh_chaos(f, seed);
					fh_recover(f);
					*word = 0;
					for (i = 0; i < 5; i++) {
						fh_rma(&w, FH_WRITE, FH_CQE | FH_RELAXED, i * 8192,
						       i * 8192, 3000);
						if (i == bad && kind)
							fh_put32(&w, 0, fh_get32(&w, 0) | 1u << 25);
						else if (i == bad)
							fh_token(&w, FH_TOKEN_ID, 0);
						fh_post(f, &w);
					}
					fh_notify(&w, FH_CQE | FH_STRONG, 50000, 50000, 64, 60000, 7);
					fh_post(f, &w);
					fh_run(f);
					while (fh_poll(f->cq, &c))
						failed += c.code && c.code != FH_FLUSH;
					assert_int_equal(failed, 1);
					assert_int_equal(*word, 0);
				}
	f->q.error_suspend = false;
}

/* Random WQEs that do not overlap: memory ends as in posted order. */
static void memory_ends_the_same(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u64 rng = 99;
	u32 seed, i, posted = 0;

	for (seed = 1; seed <= SEEDS; seed++) {
		u32 first = f->pi, idx[60];

		fh_chaos(f, seed);
		fh_watch(fh, WATCH, seed);
		for (i = 0; i < 60; i++) {
			u64 at = i * 1024 + fh_random(&rng) % 100;
			u32 len = (u32)(fh_random(&rng) >> 20) % 900, order;

			order = (u32)(fh_random(&rng) >> 30) % 3 << 16;
			order |= fh_random(&rng) >> 40 & 1 ? FH_FENCE : 0;
			if (fh_random(&rng) >> 50 & 1) {
				fh_rma(&w, FH_READ, FH_CQE | order, at, at, len);
				memcpy(fh->mine.shadow + at, fh->theirs.shadow + at, len);
			} else {
				fh_rma(&w, FH_WRITE, FH_CQE | order, at, at, len);
				memcpy(fh->theirs.shadow + at, fh->mine.shadow + at, len);
			}
			fh_post(f, &w);
			idx[i] = f->pi - 1;
			posted++;
			if (i % 7 == 3)
				fh_run(f);
		}
		fh_run(f);
		for (i = 0; i < 60; i++)
			assert_cqe(f, idx[i], FH_OK);
		assert_memory(fh, WATCH);
		assert_int_equal(f->q.ci, first + 60);
	}
	assert_int_equal(f->cnt.wqes, posted);
}

static u32 count_executed(struct fh_queue *f, u64 before)
{
	u32 i, n = (u32)(f->cnt.wqes - before);

	for (i = 0; i < f->q.win->count; i++)
		n += f->q.win->w[(f->q.win->head + i) % NPUEMU_WINDOW].executed;
	return n;
}

static u32 count_begun(struct fh_queue *f, u64 before)
{
	u32 i, n = count_executed(f, before);

	for (i = 0; i < f->q.win->count; i++) {
		struct npuemu_wqe *w = &f->q.win->w[(f->q.win->head + i) % NPUEMU_WINDOW];

		n += w->done && !w->executed;
	}
	return n;
}

/* The states hold in chaos: what is flushed, what is drained, what stays. */
static void states(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 seed, i;
	u64 before;

	for (seed = 1; seed <= SEEDS; seed++) {
		u32 done = 0, flushed = 0, fd = 0, last = ~0u, begun;
		struct fh_cqe c;

		fh_recover(f);
		fh_chaos(f, seed);
		before = f->cnt.wqes;
		fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 30000);
		for (i = 0; i < 30; i++)
			fh_post(f, &w);
		fh_bell(f);
		fh_turn(f);
		/* SUSPENDED: what has begun ends, nothing begins */
		begun = count_begun(f, before);
		assert_int_equal(npuemu_jfs_modify(&f->q, NPUEMU_QS_SUSPENDED), 0);
		fh_run(f);
		assert_int_equal(count_begun(f, before), begun);
		assert_int_equal(count_executed(f, before), begun);
		assert_int_equal(npuemu_jfs_modify(&f->q, NPUEMU_QS_READY), 0);
		fh_turn(f);
		assert_int_equal(npuemu_jfs_modify(&f->q, NPUEMU_QS_ERROR), 0);
		fh_run(f);
		while (fh_poll(f->cq, &c)) {
			if (c.fd) {
				fd++;
				continue;
			}
			assert_int_equal(fd, 0);
			assert_int_equal(c.entry_idx, last + 1);
			last = c.entry_idx;
			done += c.code == FH_OK;
			flushed += c.code == FH_FLUSH;
		}
		assert_int_equal(fd, 1);
		assert_int_equal(done + flushed, 30);
		assert_true(flushed > 0);
	}
	/* a doorbell that cannot be: ERROR, and its entry comes with the same run */
	fh_recover(f);
	fh_chaos(f, 1);
	f->page[32] = 257;
	while (fh_turn(f))
		;
	assert_int_equal(f->q.state, NPUEMU_QS_ERROR);
	assert_flush_done(f);
}

/* A turn moves 64 KiB at most here, too. */
static void turns_end(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u64 before = 0;
	u32 seed, i;

	for (seed = 1; seed <= SEEDS; seed++) {
		fh_chaos(f, seed);
		for (i = 0; i < 20; i++) {
			fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 20000 + i);
			fh_post(f, &w);
		}
		fh_bell(f);
		for (bool more = true; more;) {
			u64 now;

			more = fh_turn(f);
			now = f->cnt.bytes;
			for (i = 0; i < f->q.win->count; i++)
				now += f->q.win->w[(f->q.win->head + i) % NPUEMU_WINDOW].done;
			assert_true(now - before <= 65536);
			before = now;
		}
		assert_in_order(f, f->pi - 20, 20);
	}
}

static void full_cq(void **state)
{
	struct fh_queue *f, *g = *state;
	struct fh_wqe w;
	u32 seed, i;

	fh_nop(&w, FH_CQE);
	for (seed = 1; seed <= SEEDS; seed++) {
		f = fh_queue(g->fh, 256, 64, 0, NULL);
		fh_chaos(f, seed);
		for (i = 0; i < 100; i++)
			fh_post(f, &w);
		fh_run(f);
		assert_int_equal(f->cq->jfc.pi, 63);
		assert_int_equal(f->q.state, NPUEMU_QS_ERROR);
		for (i = 0; i < 100; i++) {
			struct fh_cqe c;

			while (fh_turn(f))
				;
			assert_true(fh_poll(f->cq, &c));
			assert_int_equal(c.entry_idx, i);
			assert_true(c.code == FH_OK || (i >= 64 && c.code == FH_FLUSH));
		}
		while (fh_turn(f))
			;
		assert_flush_done(f);
		assert_no_cqe(f);
		fh_queue_free(f);
	}
}

/* SDMA: the notify comes after all before it, whatever their bits say. */
static void sdma_notify(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 seed, i;

	for (seed = 1; seed <= SEEDS; seed++) {
		fh_chaos(f, seed);
		fh_watch(fh, WATCH, seed);
		for (i = 0; i < 5; i++) {
			fh_sdma(&w, FH_SDMA_COPY, FH_CQE, FH_VA + 32768 + i * 4096,
				FH_VA + i * 4096, 4000);
			memcpy(fh->mine.shadow + 32768 + i * 4096, fh->mine.shadow + i * 4096, 4000);
			fh_post(f, &w);
		}
		fh_sdma(&w, FH_SDMA_NOTIFY, FH_CQE, FH_VA + 60000, seed, 8);
		fh_post(f, &w);
		memset(fh_mine(fh, 60000), 0, 8);
		fh_bell(f);
		for (bool more = true; more;) {
			more = fh_turn(f);
			if (*fh_mine(fh, 60000))
				assert_memory_equal(fh_mine(fh, 32768), fh->mine.shadow + 32768,
						    5 * 4096);
		}
		assert_in_order(f, f->pi - 6, 6);
	}
}

#define T(name, how)	cmocka_unit_test_setup_teardown(name, how, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule), cmocka_unit_test(sdma_notify_is_a_barrier),
		T(strong_comes_after_relaxed, set_up), T(unordered_ones_overtake, set_up),
		T(seeds_repeat, set_up), T(fence_waits_for_loads, set_up),
		T(notify_publishes, set_up), T(failure_holds_back_the_notify, set_up),
		T(memory_ends_the_same, set_up), T(states, set_up), T(turns_end, set_up), T(full_cq, set_up),
		T(sdma_notify, set_up_sdma),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
