// SPDX-License-Identifier: MIT
/*
 * Queue states: which changes are legal, what runs in which, draining, the order
 * of flushing, and the one flush-done entry.
 */
#include "fhassert.h"

enum { RESET = 0, READY = 1, SUSPENDED = 2, ERROR = 3 };

static int set_up(void **state)
{
	*state = fh_queue(fh_new(), 256, 512, 0, NULL);
	return 0;
}

static int set_up_long(void **state)
{
	struct fh_queue *f = fh_queue(fh_new(), 256, 512, 0, NULL);

	f->fh->chip.trace = true;
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

static int modify(struct fh_queue *f, u32 s)
{
	return npuemu_jfs_modify(&f->q, s);
}

/* By a legal way from RESET. */
static void bring_to(struct fh_queue *f, u32 s)
{
	assert_int_equal(modify(f, RESET), 0);
	f->page[32] = 0;
	f->pi = 0;
	if (s == RESET)
		return;
	if (s != ERROR)
		assert_int_equal(modify(f, READY), 0);
	if (s == SUSPENDED || s == ERROR)
		assert_int_equal(modify(f, s), 0);
}

static void changes(void **state)
{
	static const bool legal[4][4] = {
		/* to		RESET READY SUSPENDED ERROR */
		[RESET]	    = { true, true, false, true },
		[READY]	    = { true, false, true, true },
		[SUSPENDED] = { true, true, false, true },
		[ERROR]	    = { true, false, false, true },
	};
	struct fh_queue *f = *state;
	u32 from, to;

	assert_int_equal(f->q.state, READY);
	for (from = 0; from < 4; from++)
		for (to = 0; to < 6; to++) {
			bool ok = to < 4 && legal[from][to];

			bring_to(f, from);
			if (modify(f, to) != (ok ? 0 : -EINVAL))
				fh_fail("from %u to %u", from, to);
			assert_int_equal(f->q.state, ok ? to : from);
		}
}

/* Only READY takes new work. */
static void who_runs(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 s;

	fh_nop(&w, FH_CQE);
	for (s = RESET; s <= SUSPENDED; s++) {
		if (s == READY)
			continue;
		bring_to(f, s);
		fh_post(f, &w);
		fh_run(f);
		assert_no_cqe(f);
		assert_int_equal(f->q.ci, 0);
		assert_int_equal(modify(f, READY), 0);
		while (fh_turn(f))
			;
		assert_cqe(f, 0, FH_OK);
	}
}

/* What was begun is finished in SUSPENDED; nothing is lost, nothing done twice. */
static void drains(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;

	fh_watch(fh, 1 << 20, 1);
	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 300000);
	fh_post(f, &w);
	fh_nop(&w, FH_CQE);
	fh_post(f, &w);
	fh_bell(f);
	assert_true(fh_turn(f));
	assert_no_cqe(f);
	assert_int_equal(modify(f, SUSPENDED), 0);
	while (fh_turn(f))
		;
	assert_cqe(f, 0, FH_OK);
	assert_no_cqe(f);
	memcpy(fh->theirs.shadow, fh->mine.shadow, 300000);
	assert_memory(fh, 1 << 20);
	assert_int_equal(modify(f, READY), 0);
	while (fh_turn(f))
		;
	assert_cqe(f, 1, FH_OK);
	assert_no_cqe(f);
}

/* ERROR: everything in posted order, then one entry with fd, whatever the number. */
static void flush_order(void **state)
{
	static const u32 counts[] = { 0, 1, 2, 63, 64, 65, 127, 128, 129, 200, 256 };
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 k, i;

	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 8);
	fh_watch(f->fh, 4096, 3);
	for (k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
		bring_to(f, READY);
		for (i = 0; i < counts[k]; i++) {
			/* signalled or not */
			fh_put32(&w, 0, i % 3 ? FH_TOKEN : FH_TOKEN | FH_CQE);
			fh_post(f, &w);
		}
		fh_bell(f);
		assert_int_equal(modify(f, ERROR), 0);
		while (fh_turn(f))
			;
		for (i = 0; i < counts[k]; i++)
			assert_cqe(f, i, FH_FLUSH);
		assert_flush_done(f);
		assert_no_cqe(f);
		assert_int_equal(modify(f, ERROR), 0);	/* again: nothing new */
		while (fh_turn(f))
			;
		assert_no_cqe(f);
	}
	assert_memory(f->fh, 4096);
}

/* The entry of flush-done names the queue and nothing that is out. */
static void flush_done_bits(void **state)
{
	struct fh_queue *f = *state;
	struct fh_cqe c;

	assert_int_equal(modify(f, ERROR), 0);
	while (fh_turn(f))
		;
	assert_true(fh_poll(f->cq, &c));
	assert_int_equal(c.fd, 1);
	assert_int_equal(c.status, 6);
	assert_int_equal(c.substatus, 0);
	assert_int_equal(c.recv, 0);
	assert_int_equal(c.jetty, 1);
	assert_int_equal(c.local_num, FH_QUEUE_ID);
	assert_int_equal(c.user_data, FH_USER_DATA);
	assert_int_equal(c.bytes, 0);
}

/* The failing WQE, then flushed ones, then flush-done; however many are out, and
 * however many were rung for after the engine looked last.
 */
static void flush_after_failure(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe bad, good;
	u32 first, later, i;

	fh_rma(&good, FH_WRITE, FH_CQE, 0, 0, 8);
	bad = good;
	fh_token(&bad, FH_TOKEN_ID, 7);
	for (first = 1; first < 200; first += first < 60 || first > 70 ? 7 : 1)
		for (later = 0; later < 3; later++) {
			bring_to(f, READY);
			fh_post(f, &bad);
			for (i = 1; i < first; i++)
				fh_post(f, &good);
			fh_bell(f);
			fh_turn(f);
			for (i = 0; i < later; i++)
				fh_post(f, &good);
			fh_run(f);
			assert_cqe(f, 0, FH_REM_ACCESS);
			for (i = 1; i < first + later; i++)
				assert_cqe(f, i, FH_FLUSH);
			assert_flush_done(f);
			assert_no_cqe(f);
		}
}

/* Posting goes on in ERROR: each WQE is flushed, there is no second flush-done. */
static void posting_in_error(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i;

	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 8);
	assert_int_equal(modify(f, ERROR), 0);
	while (fh_turn(f))
		;
	assert_flush_done(f);
	for (i = 0; i < 1000; i++) {
		fh_post(f, &w);
		fh_run(f);
		assert_cqe(f, i, FH_FLUSH);
		assert_no_cqe(f);
	}
	assert_int_equal(f->cnt.flushed, 1000);
	assert_int_equal(f->cnt.wqes, 0);
}

/* In the middle of a WQE: it is flushed, although some of it was moved. */
static void error_in_the_middle(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;

	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 300000);
	fh_post(f, &w);
	fh_post(f, &w);
	fh_bell(f);
	assert_true(fh_turn(f));
	assert_int_equal(modify(f, ERROR), 0);
	while (fh_turn(f))
		;
	assert_cqe(f, 0, FH_FLUSH);
	assert_cqe(f, 1, FH_FLUSH);
	assert_flush_done(f);
	assert_no_cqe(f);
}

/* RESET forgets all that is out, without a completion. */
static void reset_forgets(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i;

	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 300000);
	for (i = 0; i < 3; i++)
		fh_post(f, &w);
	fh_bell(f);
	assert_true(fh_turn(f));
	bring_to(f, READY);
	assert_false(fh_turn(f));
	assert_no_cqe(f);
	fh_nop(&w, FH_CQE);
	assert_do(f, &w, FH_OK);
	assert_no_cqe(f);
	assert_int_equal(f->q.last_status, 0);
}

/* error_suspend: stop behind the failed WQE until somebody acts. */
static void error_suspend(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe bad, good;
	u32 i;

	f->q.error_suspend = true;
	fh_rma(&good, FH_WRITE, FH_CQE, 0, 0, 8);
	bad = good;
	fh_token(&bad, FH_TOKEN_ID, 7);
	fh_post(f, &good);
	fh_post(f, &bad);
	fh_post(f, &good);
	fh_post(f, &bad);
	fh_post(f, &good);
	fh_run(f);
	assert_cqe(f, 0, FH_OK);
	assert_cqe(f, 1, FH_REM_ACCESS);
	assert_no_cqe(f);
	assert_int_equal(f->q.state, SUSPENDED);
	assert_int_equal(f->q.last_status, FH_REM_ACCESS);
	assert_int_equal(modify(f, READY), 0);
	assert_int_equal(f->q.last_status, 0);
	while (fh_turn(f))
		;
	assert_cqe(f, 2, FH_OK);
	assert_cqe(f, 3, FH_REM_ACCESS);
	assert_no_cqe(f);
	/* from here to ERROR: the last one is flushed */
	assert_int_equal(modify(f, ERROR), 0);
	while (fh_turn(f))
		;
	assert_cqe(f, 4, FH_FLUSH);
	assert_flush_done(f);
	assert_no_cqe(f);
	/* a doorbell that cannot be is past mending: ERROR even so */
	bring_to(f, READY);
	for (i = 0; i < 257; i++)
		fh_post(f, &good);
	fh_run(f);
	assert_int_equal(f->q.state, ERROR);
	assert_flush_done(f);
}

/*
 * A failed WQE waits for room in the CQ when the queue is put into ERROR: it
 * stays there, also with error_suspend, and flush-done comes.
 */
static void error_while_waiting_for_room(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w, bad;
	u32 i;

	f->q.error_suspend = true;
	fh_nop(&w, FH_CQE);
	fh_rma(&bad, FH_WRITE, FH_CQE, 0, 0, 8);
	fh_token(&bad, FH_TOKEN_ID, 7);
	for (i = 0; i < 511; i++) {
		fh_post(f, &w);
		fh_run(f);
	}
	fh_post(f, &bad);
	fh_run(f);
	assert_true(f->waiting);
	assert_int_equal(f->q.state, READY);
	assert_int_equal(modify(f, ERROR), 0);
	for (i = 0; i < 511; i++)
		assert_cqe(f, i, FH_OK);
	for (i = 0; i < 5; i++)
		fh_turn(f);
	assert_cqe(f, 511, FH_REM_ACCESS);
	assert_int_equal(f->q.state, ERROR);
	assert_flush_done(f);
	assert_no_cqe(f);
}

/* A SEND under way is taken back when its queue is flushed or reset. */
static void send_is_cancelled(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;

	fh_rma(&w, FH_SEND, FH_CQE, 0, 0, 8);
	fh_post(f, &w);
	fh_run(f);
	assert_true(f->waiting);
	assert_int_equal(modify(f, ERROR), 0);
	while (fh_turn(f))
		;
	assert_int_equal(f->fh->n.cancel, 1);
	assert_cqe(f, 0, FH_FLUSH);
	assert_flush_done(f);
	bring_to(f, READY);
	fh_post(f, &w);
	fh_run(f);
	assert_true(f->waiting);
	assert_int_equal(modify(f, RESET), 0);
	assert_int_equal(f->fh->n.cancel, 2);
	assert_no_cqe(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(changes), BOTH_WAYS(who_runs), BOTH_WAYS(drains),
		BOTH_WAYS(flush_order), BOTH_WAYS(flush_done_bits),
		BOTH_WAYS(flush_after_failure), BOTH_WAYS(posting_in_error),
		BOTH_WAYS(error_in_the_middle), BOTH_WAYS(reset_forgets),
		BOTH_WAYS(error_suspend), BOTH_WAYS(error_while_waiting_for_room),
		BOTH_WAYS(send_is_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
