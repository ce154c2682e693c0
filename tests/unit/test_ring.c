// SPDX-License-Identifier: MIT
/*
 * The send ring and the completion ring at their edges: full, twice around,
 * straddling, 32-bit wrap, owner bits, doorbells that cannot be, direct WQEs, a
 * full CQ, unsignalled WQEs, and the end of a turn.
 */
#include "fhassert.h"

#define WATCH	65536u

static int set_up(void **state)
{
	*state = fh_new();
	return 0;
}

static int tear_down(void **state)
{
	fh_free(*state);
	return 0;
}

/* Where indices start: fresh, before a lap changes, before they wrap. */
static const u32 starts[] = { 0, 63, 0x7fffffc0, 0xffffff00, 0xffffffbf, 0xffffffff };

#define STARTS	(sizeof(starts) / sizeof(starts[0]))

/* One to four blocks. */
static void sized(struct fh_wqe *w, u32 nbb, u32 flags, u64 mine, u64 theirs)
{
	static const u32 sges[] = { 1, 4, 8, 12 };
	u32 i, n = sges[nbb - 1];

	fh_sqe(w, FH_WRITE, flags, n, FH_PEER_VA + theirs);
	for (i = 0; i < n; i++)
		fh_sge(w, 48 + 16 * i, FH_VA + mine + 8 * i, 8);
	assert_int_equal(w->nbb, nbb);
}

static u32 bytes_of(u32 nbb)
{
	static const u32 sges[] = { 1, 4, 8, 12 };

	return sges[nbb - 1] * 8;
}

/* Post up to @fill blocks of NOPs at a time, twice around the ring and more. */
static void fill_levels(void **state)
{
	static const u32 fill[] = { 1, 31, 62, 63, 64 };
	struct fakehost *fh = *state;
	struct fh_wqe w;
	u32 s, k, i, laps;

	fh_nop(&w, FH_CQE);
	for (s = 0; s < STARTS; s++)
		for (k = 0; k < sizeof(fill) / sizeof(fill[0]); k++) {
			struct fh_queue *f = fh_queue(fh, 64, 128, 0, NULL);

			fh_start_at(f, starts[s]);
			for (laps = 0; laps * fill[k] < 3 * 64; laps++) {
				u32 first = f->pi;

				for (i = 0; i < fill[k]; i++)
					fh_post(f, &w);
				fh_run(f);
				assert_int_equal(f->q.ci, f->pi);
				for (i = 0; i < fill[k]; i++)
					assert_cqe(f, first + i, FH_OK);
				assert_no_cqe(f);
			}
			assert_int_equal(f->cnt.wqes, laps * fill[k]);
			assert_int_equal(f->cnt.doorbells, laps);
			assert_int_equal(f->cnt.errors, 0);
			fh_queue_free(f);
		}
}

static void one_block_too_many(void **state)
{
	struct fakehost *fh = *state;
	struct fh_wqe w;
	u32 s, i;

	fh_nop(&w, FH_CQE);
	for (s = 0; s < STARTS; s++) {
		struct fh_queue *f = fh_queue(fh, 64, 128, 0, NULL);

		fh_start_at(f, starts[s]);
		for (i = 0; i < 65; i++)
			fh_post(f, &w);
		fh_run(f);
		assert_int_equal(f->q.state, NPUEMU_QS_ERROR);
		assert_int_equal(f->cnt.wqes, 0);
		assert_int_equal(f->q.ci, starts[s]);
		assert_non_null(strstr(fh->said, "impossible"));
		assert_flush_done(f);
		assert_no_cqe(f);
		fh_queue_free(f);
	}
}

/* A doorbell that jumps, or goes back, at each start. */
static void impossible_doorbells(void **state)
{
	static const u32 jumps[] = { 65, 1000, 0x10000, 0x7fffffff, 0x80000000, 0xfffffff0, ~0u };
	struct fakehost *fh = *state;
	u32 s, k;

	for (s = 0; s < STARTS; s++)
		for (k = 0; k < sizeof(jumps) / sizeof(jumps[0]); k++) {
			struct fh_queue *f = fh_queue(fh, 64, 128, 0, NULL);
			struct fh_wqe w;

			fh_start_at(f, starts[s]);
			fh_nop(&w, FH_CQE);
			fh_post(f, &w);
			fh_run(f);
			assert_cqe(f, f->pi - 1, FH_OK);
			f->page[32] = f->pi + jumps[k];
			while (fh_turn(f))
				;
			assert_int_equal(f->q.state, NPUEMU_QS_ERROR);
			assert_int_equal(f->cnt.wqes, 1);
			assert_flush_done(f);
			assert_no_cqe(f);
			/* it cannot be flushed either: nothing more happens */
			assert_false(fh_turn(f));
			assert_no_cqe(f);
			fh_queue_free(f);
		}
}

/* WQEs of every size around the end of the ring. */
static void straddling(void **state)
{
	struct fakehost *fh = *state;
	struct fh_wqe w;
	u32 s, nbb, at;

	for (s = 0; s < STARTS; s++)
		for (nbb = 1; nbb <= 4; nbb++)
			for (at = 58; at < 64; at++) {
				struct fh_queue *f = fh_queue(fh, 64, 128, 0, NULL);
				struct fh_cqe c;

				fh_start_at(f, (starts[s] & ~63u) + at);
				fh_watch(fh, WATCH, at * nbb);
				sized(&w, nbb, FH_CQE, 64, 4096);
				memcpy(fh->theirs.shadow + 4096, fh_mine(fh, 64), bytes_of(nbb));
				c = assert_do(f, &w, FH_OK);
				assert_int_equal(c.bytes, bytes_of(nbb));
				assert_memory(fh, WATCH);
				fh_queue_free(f);
			}
}

/* The doorbell covers only some of a WQE's blocks. */
static void cut_short(void **state)
{
	struct fakehost *fh = *state;
	struct fh_wqe w;
	u32 nbb, cut;

	for (nbb = 2; nbb <= 4; nbb++)
		for (cut = 1; cut < nbb; cut++) {
			struct fh_queue *f = fh_queue(fh, 64, 128, 0, NULL);

			fh_watch(fh, WATCH, nbb);
			sized(&w, nbb, FH_CQE, 64, 4096);
			w.nbb = cut;
			assert_do(f, &w, FH_LOC_LEN);
			assert_flush_done(f);
			assert_memory(fh, WATCH);
			assert_int_equal(f->q.ci, cut);
			fh_queue_free(f);
		}
}

static void wrong_owner(void **state)
{
	struct fakehost *fh = *state;
	u32 s, lap, nbb;

	for (s = 0; s < STARTS; s++)
		for (lap = 0; lap < 2; lap++)
			for (nbb = 1; nbb <= 4; nbb++) {
				struct fh_queue *f = fh_queue(fh, 64, 128, 0, NULL);
				struct fh_wqe w;

				fh_start_at(f, starts[s] + lap * 64);
				fh_watch(fh, WATCH, s);
				sized(&w, nbb, FH_CQE, 64, 4096);
				fh_post_stale(f, &w);
				fh_run(f);
				assert_cqe(f, f->pi - 1, FH_UNSUPPORTED);
				assert_non_null(strstr(fh->said, "owner bit"));
				assert_flush_done(f);
				assert_memory(fh, WATCH);
				fh_queue_free(f);
			}
}

/* The lap before is still in the ring, like the WQEs the queue has just done. */
static void last_lap(void **state)
{
	struct fakehost *fh = *state;
	struct fh_wqe w;
	u32 op, i, n, ahead;

	for (op = 0; op < 3; op++)
		for (n = 60; n <= 66; n++)
			for (ahead = 1; ahead < 20; ahead += 6) {
				struct fh_queue *f = fh_queue(fh, 64, 256, 0, NULL);
				u32 blocks = op == 2 ? 2 : 1;

				if (op == 2)
					fh_faa(&w, FH_CQE, 0, 64, 8, 1);
				else
					fh_rma(&w, op ? FH_READ : FH_WRITE, FH_CQE, 0, 64, 8);
				for (i = 0; i < n; i++) {
					fh_post(f, &w);
					if (i % 10 == 9)
						fh_run(f);
				}
				fh_run(f);
				for (i = 0; i < n; i++)
					assert_cqe(f, blocks * (i + 1) - 1, FH_OK);
				/* rung for without being written */
				if (f->pi < 64)
					memcpy(f->ring + f->pi * 8, f->ring, (64 - f->pi) * 64);
				for (i = f->pi; i < 64; i++)
					f->ring[i * 8] &= ~(u64)FH_OWNER;
				f->pi += ahead * blocks;
				fh_watch(fh, WATCH, n);
				fh_run(f);
				assert_cqe(f, blocks * (n + 1) - 1, FH_UNSUPPORTED);
				for (i = 1; i < ahead; i++)
					assert_cqe(f, blocks * (n + 1 + i) - 1, FH_FLUSH);
				assert_flush_done(f);
				assert_memory(fh, WATCH);
				fh_queue_free(f);
			}
}

/* A WQE stored whole at the start of the page, with 16 bits of the index. */
static void direct(struct fh_queue *f, const struct fh_wqe *w)
{
	u32 dw0;

	fh_post(f, w);
	memcpy(&dw0, &f->ring[((f->pi - w->nbb) & (f->depth - 1)) * 8], 4);
	f->page[0] = (dw0 & 0xffff0000u) | (f->pi & 0xffff);
}

static void direct_wqes(void **state)
{
	struct fakehost *fh = *state;
	struct fh_wqe w;
	u32 s, i;

	fh_nop(&w, FH_CQE);
	for (s = 0; s < STARTS; s++) {
		struct fh_queue *f = fh_queue(fh, 64, 128, 0, NULL);

		fh_start_at(f, starts[s]);
		/* not for queues whose page is nobody's */
		direct(f, &w);
		assert_false(npuemu_jfs_has_news(&f->q));
		assert_false(fh_turn(f));
		assert_no_cqe(f);
		f->q.raw = true;
		for (i = 0; i < 200; i++) {
			if (i)
				direct(f, &w);
			assert_true(npuemu_jfs_has_news(&f->q));
			while (fh_turn(f))
				;
			assert_cqe(f, f->pi - 1, FH_OK);
			assert_no_cqe(f);
			assert_false(npuemu_jfs_has_news(&f->q));
			if (i % 7 == 3) {	/* now and then a plain doorbell */
				fh_post(f, &w);
				fh_run(f);
				assert_cqe(f, f->pi - 1, FH_OK);
			}
			if (i % 7 == 5) {	/* both for one WQE */
				direct(f, &w);
				fh_run(f);
				assert_cqe(f, f->pi - 1, FH_OK);
			}
		}
		/* a direct WQE that says what cannot be is not believed */
		f->page[0] = FH_CQE | ((f->pi + 65) & 0xffff);
		assert_false(fh_turn(f));
		assert_int_equal(f->q.ci, f->pi);
		/* nor is a plain index far behind */
		f->page[32] = f->pi - 65;
		while (fh_turn(f))
			;
		assert_int_equal(f->q.state, NPUEMU_QS_ERROR);
		fh_queue_free(f);
	}
}

/* A CQ with no room: nothing is overwritten, everything is told in the end. */
static void fill_cq(struct fakehost *fh, const struct fh_wqe *w)
{
	struct fh_queue *f = fh_queue(fh, 256, 64, 0, NULL);
	struct npuemu_cqe before[64];
	u32 i, flushed = 0;

	for (i = 0; i < 200; i++)
		fh_post(f, w);
	fh_run(f);
	/* one entry is kept for flush-done */
	assert_true(f->waiting);
	assert_int_equal(f->q.state, NPUEMU_QS_ERROR);
	assert_int_equal(f->cq->jfc.starved, 1);
	assert_non_null(strstr(fh->said, "full"));
	assert_int_equal(f->q.last_status, FH_FLUSH);
	memcpy(before, f->cq->jfc.ring, sizeof(before));
	for (i = 0; i < 5; i++)
		assert_false(fh_turn(f));
	assert_memory_equal(before, f->cq->jfc.ring, sizeof(before));
	/* 63 were told, the 64th was executed and waits; nothing is lost */
	for (i = 0; i < 200; i++) {
		while (fh_turn(f))
			;
		if (i < 64) {
			assert_cqe(f, i, FH_OK);
		} else {
			assert_cqe(f, i, FH_FLUSH);
			flushed++;
		}
	}
	while (fh_turn(f))
		;
	assert_flush_done(f);
	assert_no_cqe(f);
	assert_int_equal(f->cnt.wqes, 64);
	assert_int_equal(f->cnt.flushed, flushed);
	assert_int_equal(f->cnt.cqes, 201);
	fh_queue_free(f);
}

static void cq_full(void **state)
{
	struct fakehost *fh = *state;
	struct fh_wqe w;

	fh_nop(&w, FH_CQE);
	fill_cq(fh, &w);
	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 8);
	fill_cq(fh, &w);
	fh_rma(&w, FH_READ, FH_CQE, 0, 0, 100);
	fill_cq(fh, &w);
	fh->chip.trace = true;
	fill_cq(fh, &w);
}

/* Flush-done of each of two queues on one CQ has its entry. */
static void cq_full_two_queues(void **state)
{
	struct fakehost *fh = *state;
	struct fh_queue *f[2];
	struct fh_cq cq;
	struct fh_wqe w;
	struct fh_cqe c;
	u32 i, done = 0, n = 0;

	fh_cq_init(&cq, 64);
	f[0] = fh_queue(fh, 64, 0, 0, &cq);
	f[1] = fh_queue(fh, 64, 0, 0, &cq);
	fh_nop(&w, FH_CQE);
	for (i = 0; i < 62; i++)
		fh_post(f[0], &w);
	fh_run(f[0]);
	assert_int_equal(f[0]->q.state, NPUEMU_QS_READY);
	assert_int_equal(npuemu_jfs_modify(&f[0]->q, NPUEMU_QS_ERROR), 0);
	assert_int_equal(npuemu_jfs_modify(&f[1]->q, NPUEMU_QS_ERROR), 0);
	assert_false(fh_turn(f[0]));
	assert_false(fh_turn(f[1]));
	assert_int_equal(cq.jfc.pi, 64);
	for (; fh_poll(&cq, &c); n++)
		done += c.fd;
	assert_int_equal(n, 64);
	assert_int_equal(done, 2);
	fh_queue_free(f[0]);
	fh_queue_free(f[1]);
	fh_cq_free(&cq);
}

/* Even with more queues than entries. */
static void cq_crowded(void **state)
{
	struct fakehost *fh = *state;
	struct npuemu_cqe before[64];
	struct fh_queue *f[80];
	struct fh_cq cq;
	struct fh_wqe w;
	u32 i;

	fh_cq_init(&cq, 64);
	for (i = 0; i < 80; i++)
		f[i] = fh_queue(fh, 64, 0, 0, &cq);
	fh_nop(&w, FH_CQE);
	for (i = 0; i < 80; i++)
		assert_int_equal(npuemu_jfs_modify(&f[i]->q, NPUEMU_QS_ERROR), 0);
	for (i = 0; i < 64; i++)
		fh_turn(f[i]);
	memcpy(before, cq.jfc.ring, sizeof(before));
	for (; i < 80; i++) {
		fh_turn(f[i]);
		assert_true(f[i]->waiting);
	}
	assert_memory_equal(before, cq.jfc.ring, sizeof(before));
	assert_int_equal(cq.jfc.pi, 64);
	npuemu_jfs_modify(&f[0]->q, NPUEMU_QS_RESET);
	f[0]->pi = 0;
	npuemu_jfs_modify(&f[0]->q, NPUEMU_QS_READY);
	for (i = 0; i < 70; i++) {
		fh_post(f[0], &w);
		fh_run(f[0]);
	}
	assert_memory_equal(before, cq.jfc.ring, sizeof(before));
	for (i = 0; i < 80; i++)
		fh_queue_free(f[i]);
	fh_cq_free(&cq);
}

/* What a consumer says it has read is believed only if it can be. */
static void wrong_consumer_index(void **state)
{
	static const u32 lies[] = { 64, 65, 100, 0xffffff, 0x800000, ~0u };
	struct fakehost *fh = *state;
	u32 k, i;

	for (k = 0; k < sizeof(lies) / sizeof(lies[0]); k++) {
		struct fh_queue *f = fh_queue(fh, 256, 64, 0, NULL);
		struct npuemu_cqe before[64];
		struct fh_wqe w;

		fh_nop(&w, FH_CQE);
		for (i = 0; i < 63; i++)
			fh_post(f, &w);
		fh_run(f);
		memcpy(before, f->cq->jfc.ring, sizeof(before));
		f->cq->ci_rec = lies[k];
		fh_post(f, &w);
		fh_run(f);
		assert_true(f->waiting);
		assert_memory_equal(before, f->cq->jfc.ring, sizeof(before));
		fh_queue_free(f);
	}
}

/* 24 bits of the consumer index are all there is: beyond them it goes on. */
static void consumer_index_wraps(void **state)
{
	struct fakehost *fh = *state;
	struct fh_queue *f = fh_queue(fh, 64, 64, 0, NULL);
	struct fh_wqe w;
	u32 i;

	fh_start_at(f, 0xffffe0);
	fh_nop(&w, FH_CQE);
	for (i = 0; i < 300; i++)
		assert_do(f, &w, FH_OK);
	fh_queue_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fill_levels, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_block_too_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(impossible_doorbells, set_up, tear_down),
		cmocka_unit_test_setup_teardown(straddling, set_up, tear_down),
		cmocka_unit_test_setup_teardown(straddling, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cut_short, set_up, tear_down),
		cmocka_unit_test_setup_teardown(wrong_owner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(last_lap, set_up, tear_down),
		cmocka_unit_test_setup_teardown(direct_wqes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cq_full, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cq_full_two_queues, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cq_crowded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(wrong_consumer_index, set_up, tear_down),
		cmocka_unit_test_setup_teardown(consumer_index_wraps, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
