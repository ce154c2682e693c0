// SPDX-License-Identifier: MIT
/*
 * The states of a queue: which changes are allowed, what is flushed and in which
 * order, the flush-done entry, suspending after an error, reset and reuse, and the
 * counters and causes that go with it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sys.h"

#define DEPTH	64u

struct bench {
	struct npuemu *ctx;
	struct npuemu_queue *q;
	struct npuemu_cq *cq;
	struct sys_mem m;
};

static void start(struct bench *b, uint32_t error_suspend)
{
	struct npuemu_queue_attr attr = sys_queue_attr(0, DEPTH);

	b->ctx = sys_open();
	sys_mem_make(b->ctx, &b->m, 0, 65536, SYS_RWA);
	attr.error_suspend = error_suspend;
	attr.user_data = 0x1234567887654321u;
	sys_rc(npuemu_queue_create(b->ctx, &attr, &b->q));
	b->cq = npuemu_queue_cq(b->q);
}

static void stop(struct bench *b)
{
	sys_rc(npuemu_queue_destroy(b->q));
	sys_mem_drop(&b->m);
	sys_rc(npuemu_close(b->ctx));
}

/* Stores @value in word @i of the upper half. */
static void post_word(struct bench *b, uint32_t i, uint64_t value, uint32_t flags)
{
	((uint64_t *)b->m.p)[i] = value;
	sys_rc(npuemu_post_write(b->q, b->m.p + 8ull * i, 8, &b->m.t, b->m.va + 32768 + 8ull * i,
				 flags));
}

static uint64_t word(const struct bench *b, uint32_t i)
{
	return ((volatile uint64_t *)(b->m.p + 32768))[i];
}

static void post_bad(struct bench *b, uint32_t flags)
{
	struct npuemu_target t = b->m.t;

	t.token_value++;
	sys_rc(npuemu_post_write(b->q, b->m.p, 8, &t, b->m.va, flags));
}

static void state_is(struct bench *b, uint32_t want)
{
	sys_eq(sys_stat(b->q).state, want);
}

/* ---- Changes ------------------------------------------------------------------------ */

static void go_to(struct bench *b, uint32_t state)
{
	struct npuemu_wc wc;

	if (sys_stat(b->q).state != NPUEMU_QS_RESET)
		sys_rc(npuemu_queue_modify(b->q, NPUEMU_QS_RESET));
	if (state != NPUEMU_QS_RESET)
		sys_rc(npuemu_queue_modify(b->q, NPUEMU_QS_READY));
	if (state > NPUEMU_QS_READY)
		sys_rc(npuemu_queue_modify(b->q, (enum npuemu_queue_state)state));
	/* flush-done entries */
	while (sys_rc(npuemu_poll(b->cq, &wc, 1)))
		;
	state_is(b, state);
}

static void changes(void **state)
{
	/* [from][to] */
	static const char allowed[4][4] = {
		[NPUEMU_QS_RESET] = { 1, 1, 0, 1 },
		[NPUEMU_QS_READY] = { 1, 0, 1, 1 },
		[NPUEMU_QS_SUSPENDED] = { 1, 1, 0, 1 },
		[NPUEMU_QS_ERROR] = { 1, 0, 0, 1 },
	};
	struct bench b;
	uint32_t from, to;

	(void)state;
	start(&b, 0);
	for (from = 0; from < 4; from++) {
		for (to = 0; to < 4; to++) {
			int rc;

			go_to(&b, from);
			rc = npuemu_queue_modify(b.q, (enum npuemu_queue_state)to);
			sys_true(rc == (allowed[from][to] ? 0 : -EINVAL), "%u to %u: %d: %s",
				 from, to, rc, npuemu_errmsg());
			state_is(&b, rc ? from : to);
		}
		sys_err(npuemu_queue_modify(b.q, (enum npuemu_queue_state)4), -EINVAL);
		sys_err(npuemu_queue_modify(b.q, (enum npuemu_queue_state)-1), -EINVAL);
	}
	go_to(&b, NPUEMU_QS_READY);
	post_word(&b, 0, 77, NPUEMU_SQE_CQE);
	sys_run(b.q);
	sys_eq(word(&b, 0), 77);
	stop(&b);
}

static void suspend(void **state)
{
	struct npuemu_wc wc;
	struct bench b;
	uint32_t i;

	(void)state;
	start(&b, 0);
	sys_rc(npuemu_queue_modify(b.q, NPUEMU_QS_SUSPENDED));
	for (i = 0; i < 10; i++)
		post_word(&b, i, i + 1, NPUEMU_SQE_CQE);
	sys_rc(npuemu_doorbell(b.q));
	sys_err(npuemu_wait(b.cq, npuemu_deadline_ms(50)), -ETIMEDOUT);
	sys_eq(sys_stat(b.q).ci, 0);
	sys_is_byte("nothing moved", b.m.p + 32768, 80, 0);
	sys_rc(npuemu_queue_modify(b.q, NPUEMU_QS_READY));
	for (i = 0; i < 10; i++) {
		sys_one(b.cq, &wc);
		sys_is_status(&wc, NPUEMU_ST_SUCCESS);
		sys_eq(wc.wqe, i);
		sys_eq(word(&b, i), i + 1);
	}
	stop(&b);
}

/* ---- Errors and flush ---------------------------------------------------------------- */

/* Entries of WQEs @from up to @to - 1 with WR_FLUSH_ERR, then the flush-done one. */
static void take_flushed(struct bench *b, uint32_t from, uint32_t to)
{
	struct npuemu_wc wc;

	for (; from < to; from++) {
		sys_one(b->cq, &wc);
		sys_is_status(&wc, NPUEMU_ST_WR_FLUSH_ERR);
		sys_true(!(wc.flags & NPUEMU_WC_FLUSH_DONE), "flush-done before WQE %u", from);
		sys_eq(wc.wqe, from);
		sys_eq(wc.user_data, 0x1234567887654321u);
	}
	sys_one(b->cq, &wc);
	sys_is_status(&wc, NPUEMU_ST_WR_FLUSH_ERR);
	sys_true(wc.flags & NPUEMU_WC_FLUSH_DONE, "no flush-done but WQE %u", wc.wqe);
	sys_eq(npuemu_poll(b->cq, &wc, 1), 0);
}

static void flush(void **state)
{
	static const uint32_t counts[] = { 0, 1, 10, DEPTH - 1, DEPTH };
	struct bench b;
	uint32_t c, i;

	(void)state;
	start(&b, 0);
	for (c = 0; c < 5; c++) {
		uint64_t flushed = sys_stat(b.q).cnt.flushed;

		sys_rc(npuemu_queue_modify(b.q, NPUEMU_QS_SUSPENDED));
		/* every outstanding one completes, asked for or not */
		for (i = 0; i < counts[c]; i++)
			post_word(&b, i, 1, i & 1 ? NPUEMU_SQE_CQE : 0);
		sys_rc(npuemu_doorbell(b.q));
		sys_rc(npuemu_queue_modify(b.q, NPUEMU_QS_ERROR));
		take_flushed(&b, 0, counts[c]);
		state_is(&b, NPUEMU_QS_ERROR);
		sys_is_byte("nothing moved", b.m.p + 32768, 8 * DEPTH, 0);
		sys_eq(sys_stat(b.q).cnt.flushed, flushed + counts[c]);
		sys_revive(b.q);
	}
	stop(&b);
}

static void error_flushes(void **state)
{
	struct npuemu_queue_stat st;
	struct npuemu_wc wc;
	struct bench b;
	uint32_t i;

	(void)state;
	start(&b, 0);
	for (i = 0; i < 20; i++) {
		if (i == 7)
			post_bad(&b, NPUEMU_STRONG);
		else
			post_word(&b, i, i + 1, NPUEMU_SQE_CQE | NPUEMU_STRONG);
	}
	sys_rc(npuemu_doorbell(b.q));
	for (i = 0; i < 7; i++) {
		sys_one(b.cq, &wc);
		sys_is_status(&wc, NPUEMU_ST_SUCCESS);
		sys_eq(wc.wqe, i);
	}
	/* an error completes even where no completion was asked for */
	sys_one(b.cq, &wc);
	sys_is_status(&wc, NPUEMU_ST_REM_ACCESS_ABORT);
	sys_eq(wc.wqe, 7);
	take_flushed(&b, 8, 20);
	for (i = 0; i < 20; i++)
		sys_eq(word(&b, i), i < 7 ? i + 1 : 0);
	st = sys_stat(b.q);
	sys_eq(st.state, NPUEMU_QS_ERROR);
	sys_eq(st.last_status, NPUEMU_ST_REM_ACCESS_ABORT);
	sys_true(st.cause[0], "no cause");
	sys_eq(st.cnt.errors, 1);
	sys_eq(st.cnt.flushed, 12);
	sys_eq(st.cnt.wqes, 8);
	sys_eq(st.cnt.bytes, 7 * 8);
	sys_revive(b.q);
	st = sys_stat(b.q);
	sys_eq(st.last_status, 0);
	sys_eq(st.pi, 0);
	sys_eq(st.ci, 0);
	stop(&b);
}

/* What is posted to a queue in ERROR does not get lost: it is flushed as well. */
static void post_in_error(void **state)
{
	struct npuemu_wc wc;
	struct bench b;
	uint32_t i;

	(void)state;
	start(&b, 0);
	post_bad(&b, NPUEMU_SQE_CQE);
	sys_rc(npuemu_doorbell(b.q));
	sys_one(b.cq, &wc);
	sys_is_status(&wc, NPUEMU_ST_REM_ACCESS_ABORT);
	take_flushed(&b, 1, 1);
	for (i = 0; i < 5; i++)
		post_word(&b, i, 1, NPUEMU_SQE_CQE);
	npuemu_doorbell(b.q);
	for (i = 0; i < 5; i++) {
		sys_one(b.cq, &wc);
		sys_is_status(&wc, NPUEMU_ST_WR_FLUSH_ERR);
		sys_eq(wc.wqe, i + 1);
	}
	sys_is_byte("nothing moved", b.m.p + 32768, 40, 0);
	stop(&b);
}

static void error_suspends(void **state)
{
	struct npuemu_wc wc;
	struct bench b;
	uint32_t i;

	(void)state;
	start(&b, 1);
	for (i = 0; i < 10; i++) {
		if (i == 4)
			post_bad(&b, NPUEMU_SQE_CQE | NPUEMU_STRONG);
		else
			post_word(&b, i, i + 1, NPUEMU_SQE_CQE | NPUEMU_STRONG);
	}
	sys_rc(npuemu_doorbell(b.q));
	for (i = 0; i < 5; i++) {
		sys_one(b.cq, &wc);
		sys_is_status(&wc, i == 4 ? NPUEMU_ST_REM_ACCESS_ABORT : NPUEMU_ST_SUCCESS);
		sys_eq(wc.wqe, i);
	}
	sys_err(npuemu_wait(b.cq, npuemu_deadline_ms(30)), -ETIMEDOUT);
	state_is(&b, NPUEMU_QS_SUSPENDED);
	sys_eq(word(&b, 5), 0);
	sys_rc(npuemu_queue_modify(b.q, NPUEMU_QS_READY));
	for (i = 5; i < 10; i++) {
		sys_one(b.cq, &wc);
		sys_is_status(&wc, NPUEMU_ST_SUCCESS);
		sys_eq(wc.wqe, i);
		sys_eq(word(&b, i), i + 1);
	}
	stop(&b);
}

/* ---- Reset and reuse ------------------------------------------------------------------- */

static void reset(void **state)
{
	struct npuemu_wc wc;
	struct bench b;
	uint32_t round, i;

	(void)state;
	start(&b, 0);
	for (round = 0; round < 5; round++) {
		/* somewhere in the ring, two blocks at its end */
		for (i = 0; i < 31 + round; i++) {
			sys_rc(npuemu_post_write_notify(b.q, b.m.p, 8, &b.m.t, b.m.va + 8192,
							&b.m.t, b.m.va + 16384, round,
							NPUEMU_SQE_CQE));
			sys_run(b.q);
		}
		/* posted, rung and not polled; posted and not rung */
		post_word(&b, 0, 100 + round, NPUEMU_SQE_CQE);
		sys_rc(npuemu_doorbell(b.q));
		sys_rc(npuemu_wait(b.cq, sys_deadline()));
		post_word(&b, 1, 100 + round, NPUEMU_SQE_CQE);
		sys_rc(npuemu_queue_modify(b.q, NPUEMU_QS_RESET));
		sys_eq(sys_stat(b.q).pi, 0);
		sys_eq(sys_stat(b.q).ci, 0);
		/* what is posted now does not run, and the next reset drops it */
		if (!npuemu_post_write(b.q, b.m.p, 8, &b.m.t, b.m.va + 32768 + 8, NPUEMU_SQE_CQE))
			sys_rc(npuemu_doorbell(b.q));
		sys_nap(2);
		sys_rc(npuemu_queue_modify(b.q, NPUEMU_QS_RESET));
		/* what the CQ had is still there */
		sys_eq(npuemu_poll(b.cq, &wc, 1), 1);
		sys_is_status(&wc, NPUEMU_ST_SUCCESS);
		sys_eq(npuemu_poll(b.cq, &wc, 1), 0);
		sys_eq(word(&b, 0), 100 + round);
		sys_eq(word(&b, 1), 0);
		sys_rc(npuemu_queue_modify(b.q, NPUEMU_QS_READY));
		sys_eq(npuemu_sq_space(b.q), DEPTH);
		/* from the start again, for more than a lap */
		for (i = 0; i < 3 * DEPTH; i++) {
			post_word(&b, 2, i + 1, NPUEMU_SQE_CQE);
			sys_eq(npuemu_last_wqe(b.q), i);
			sys_run(b.q);
			sys_eq(word(&b, 2), i + 1);
		}
		sys_rc(npuemu_queue_modify(b.q, NPUEMU_QS_RESET));
		sys_rc(npuemu_queue_modify(b.q, NPUEMU_QS_READY));
	}
	stop(&b);
}

/* Destroyed in every state, with work in it, again and again. */
static void destroy(void **state)
{
	struct bench b;
	uint32_t i, k;

	(void)state;
	start(&b, 0);
	for (i = 0; i < 40; i++) {
		struct npuemu_queue *q = sys_queue(b.ctx, i & 1, 256);

		if (i % 4 == 1)
			sys_rc(npuemu_queue_modify(q, NPUEMU_QS_SUSPENDED));
		for (k = 0; k < 200; k++)
			sys_rc(npuemu_post_write(q, b.m.p, 4096, &b.m.t, b.m.va + 8192, 0));
		if (i % 4 != 3)
			sys_rc(npuemu_doorbell(q));
		if (i % 4 == 2)
			sys_rc(npuemu_queue_modify(q, NPUEMU_QS_ERROR));
		sys_rc(npuemu_queue_destroy(q));
		sys_err(npuemu_queue_destroy(q), -EBADF);
	}
	stop(&b);
}

/* At once: another's turn is looked at from the side.  A machine with one cpu has to be lent it. */
static void poll_hard(struct npuemu_cq *cq, struct npuemu_wc *wc)
{
	int64_t deadline = sys_deadline();
	uint32_t i;

	for (i = 1; !sys_rc(npuemu_poll(cq, wc, 1)); i++)
		if (!(i % 4096))
			sys_true(sys_retry(deadline), "no CQE");
}

/* An engine thread executes, and is not through with its turn when the CQE is there. */
static void in_a_turn(int fd, const void *arg)
{
	struct npuemu_queue_stat st;
	struct npuemu_wc wc;
	struct bench b;
	uint32_t i;

	(void)fd;
	(void)arg;
	setenv("NPUEMU_ASYNC", "1", 1);
	start(&b, 0);
	for (i = 0; i < 4000; i++) {
		post_bad(&b, 0);
		sys_rc(npuemu_doorbell(b.q));
		poll_hard(b.cq, &wc);
		st = sys_stat(b.q);
		sys_is_status(&wc, NPUEMU_ST_REM_ACCESS_ABORT);
		sys_true(st.state == NPUEMU_QS_ERROR && st.last_status == wc.status, "round %u: the CQE says %s, the queue state %u, %s", i,
			 npuemu_status_str(wc.status), st.state, npuemu_status_str(st.last_status));
		sys_true(strstr(st.cause, "token"), "round %u: the cause is \"%s\"", i, st.cause);
		sys_revive(b.q);
	}
	stop(&b);
}

/* What a CQE says the queue's state says, too, for whoever has seen the CQE. */
static void told_with_cqe(void **state)
{
	struct sys_child c;

	(void)state;
	sys_spawn(&c, in_a_turn, NULL, 0);
	sys_join(&c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(changes),
		sys_test(suspend),
		sys_test(flush),
		sys_test(error_flushes),
		sys_test(post_in_error),
		sys_test(error_suspends),
		sys_test(reset),
		sys_test(destroy),
		sys_test(told_with_cqe),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
