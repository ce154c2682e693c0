// SPDX-License-Identifier: MIT
/*
 * Memory that is backed only when somebody writes or reads it: it is asked for
 * before each piece, never further than the buffer or segment goes, and an engine
 * that gets none completes with an error and has moved only what it could.
 */
#include "fhassert.h"

#define MIB	(1ull << 20)

static int set_up(void **state)
{
	struct fh_queue *f = fh_queue(fh_new(), 64, 128, 0, NULL);

	fh_lazy(f->fh);
	*state = f;
	return 0;
}

static int set_up_long(void **state)
{
	set_up(state);
	((struct fh_queue *)*state)->fh->chip.trace = true;
	return 0;
}

static int set_up_sdma(void **state)
{
	struct fh_queue *f = fh_queue(fh_new(), 64, 128, 1, NULL);

	fh_lazy(f->fh);
	*state = f;
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

/* Chunks of 2 MiB that a range touches. */
static u64 chunks(u64 off, u64 len)
{
	u64 c, mask = 0;

	for (c = off / (2 * MIB); c <= (off + len - 1) / (2 * MIB); c++)
		mask |= 1ull << c;
	return mask;
}

static void only_what_is_touched(void **state)
{
	static const struct {
		u64 off, len;
	} cases[] = {
		{ 0, 8 }, { 2 * MIB - 8, 8 }, { 2 * MIB - 4, 8 }, { 2 * MIB, 8 },
		{ 2 * MIB - 1, 2 }, { MIB, 2 * MIB }, { 0, 8 * MIB }, { 8 * MIB - 1, 1 },
		{ 2 * MIB - 65536, 65536 * 2 }, { 6 * MIB - 100, 70000 },
	};
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 i, op;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (op = 0; op < 2; op++) {
			fh_lazy(fh);
			fh_rma(&w, op ? FH_READ : FH_WRITE, FH_CQE, cases[i].off, cases[i].off,
			       (u32)cases[i].len);
			assert_do(f, &w, FH_OK);
			assert_int_equal(fh->mine.backed, chunks(cases[i].off, cases[i].len));
			assert_int_equal(fh->theirs.backed, chunks(cases[i].off, cases[i].len));
			assert_do(f, &w, FH_OK);
		}
	/* nothing to move: nothing to back */
	fh_lazy(fh);
	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 0);
	assert_do(f, &w, FH_OK);
	/* refused: nothing to back either */
	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 4 * MIB);
	fh_token(&w, FH_TOKEN_ID, 1);
	assert_refused(f, &w, FH_REM_ACCESS);
	assert_int_equal(fh->mine.backed | fh->theirs.backed, 0);
	/* a word behind the payload */
	fh_notify(&w, FH_CQE, 0, 0, 8, 6 * MIB, 1);
	assert_do(f, &w, FH_OK);
	assert_int_equal(fh->theirs.backed, 9);
	fh_lazy(fh);
	fh_write_add(&w, FH_CQE, 0, 0, 8, 4 * MIB, 1);
	assert_do(f, &w, FH_OK);
	assert_int_equal(fh->theirs.backed, 5);
	fh_lazy(fh);
	fh_faa(&w, FH_CQE, 2 * MIB, 4 * MIB, 8, 1);
	assert_do(f, &w, FH_OK);
	assert_int_equal(fh->mine.backed, 2);
	assert_int_equal(fh->theirs.backed, 4);
}

/* @n backings work, then none; ours are asked for first. */
static void out_of_memory(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	s32 n;

	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 4 * MIB);
	for (n = 0; n < 4; n++) {
		fh_lazy(fh);
		fh_watch(fh, 6 * MIB, (u64)n);
		fh->back_left = n;
		assert_refused(f, &w, n % 2 ? FH_REM_ACCESS : FH_LOC_ACCESS);
		/* each 2 MiB take one of each; what was moved was moved */
		memcpy(fh->theirs.shadow, fh->mine.shadow, 2 * MIB * ((u64)n / 2));
		assert_memory(fh, 6 * MIB);
	}
	fh->back_left = 4;
	fh_lazy(fh);
	assert_do(f, &w, FH_OK);
	fh->back_left = 1;
	fh_lazy(fh);
	fh_watch(fh, 4096, 1);
	fh_faa(&w, FH_CQE, 0, 64, 8, 1);
	assert_refused(f, &w, FH_REM_ACCESS);
	fh->back_left = 0;
	fh_lazy(fh);
	assert_refused(f, &w, FH_LOC_ACCESS);
	assert_memory(fh, 4096);	/* an atomic that cannot answer did not happen */
	/* payload there, notify not: no word, an error */
	fh->back_left = 2;
	fh_lazy(fh);
	fh_notify(&w, FH_CQE, 0, 0, 64, 6 * MIB, 77);
	memset(fh_theirs(fh, 6 * MIB), 0, 8);
	assert_refused(f, &w, FH_REM_ACCESS);
	assert_int_equal(*(u64 *)(void *)fh_theirs(fh, 6 * MIB), 0);
	fh->back_left = -1;
}

/* Never asked for more than the segment: the fake host checks lo and hi. */
static void within_the_segment(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;

	fh_segment(fh, 2, 2 * MIB - 4096, 8192, FH_RWA, 9);
	fh_rma(&w, FH_WRITE, FH_CQE, 0, 2 * MIB - 4096, 8192);
	fh_token(&w, 0x5002, 9);
	assert_do(f, &w, FH_OK);
	assert_int_equal(fh->theirs.backed, 3);
}

/* The owner takes its segment away while a WQE is half moved. */
static void taken_away_between_pieces(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 act;

	for (act = 0; act < 3; act++) {
		fh_segment(fh, 2, 0, 4 * MIB, FH_RWA, 9);
		fh_watch(fh, 4 * MIB, act);
		fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, MIB);
		fh_token(&w, 0x5002, 9);
		fh_post(f, &w);
		fh_bell(f);
		assert_true(fh_turn(f));
		assert_true(fh_turn(f));
		memcpy(fh->theirs.shadow, fh->mine.shadow, 131072);
		assert_memory(fh, 4 * MIB);
		if (act == 0)
			fh_segment_gone(fh, 2);
		else if (act == 1)
			fh_segment_rotate(fh, 2, 10);
		else
			fh->life++;
		fh_run(f);
		assert_cqe(f, f->pi - 1, act == 2 ? FH_TIMEOUT : FH_REM_ACCESS);
		assert_flush_done(f);
		assert_memory(fh, 4 * MIB);
		fh_recover(f);
		if (act == 2)
			fh->life--;
	}
}

static void sdma_backs_both(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;

	fh_sdma(&w, FH_SDMA_COPY, FH_CQE, FH_VA, FH_VA + 4 * MIB - 8, 16);
	assert_do(f, &w, FH_OK);
	assert_int_equal(fh->mine.backed, 7);
	fh_lazy(fh);
	fh_sdma(&w, FH_SDMA_FILL, FH_CQE, FH_VA + 2 * MIB, 0, 3 * MIB);
	fh_pitch(&w, 0, 8, 0);
	assert_do(f, &w, FH_OK);
	assert_int_equal(fh->mine.backed, 6);
	fh_lazy(fh);
	fh->back_left = 1;
	assert_refused(f, &w, FH_LOC_ACCESS);
	fh->back_left = 0;
	fh_lazy(fh);
	fh_sdma(&w, FH_SDMA_NOTIFY, FH_CQE, FH_VA, 1, 8);
	assert_refused(f, &w, FH_LOC_ACCESS);
	fh->back_left = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(only_what_is_touched), BOTH_WAYS(out_of_memory),
		BOTH_WAYS(within_the_segment), BOTH_WAYS(taken_away_between_pieces),
		cmocka_unit_test_setup_teardown(sdma_backs_both, set_up_sdma, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
