// SPDX-License-Identifier: MIT
/*
 * Faults on purpose: each kind, by queue, slot, device and peer, by rate and
 * count, the same again from the same seed.
 */
#include "fhassert.h"

#define WATCH	4096u
#define ANY	0xffffffffu

static int set_up(void **state)
{
	struct fh_queue *f = fh_queue(fh_new(), 64, 128, 0, NULL);

	fh_watch(f->fh, WATCH, 41);
	f->q.error_suspend = false;
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

/* Arm one fault for everybody, always. */
static struct npuemu_fault_rec *arm(struct fh_queue *f, u32 kind)
{
	struct npuemu_fault_rec *r = &f->fh->faults[0];

	memset(r, 0, sizeof(*r));
	r->kind = kind;
	r->slot = ANY;
	r->queue = ANY;
	r->device = ANY;
	r->rate_ppm = 1000000;
	r->seed = 1;
	fh_faults(f->fh, 1);
	return r;
}

static void every_status(void **state)
{
	static const u32 codes[] = {
		FH_UNSUPPORTED, FH_LOC_LEN, FH_LOC_ACCESS, FH_RESP_LEN, FH_LOC_POISON, FH_REM_REQ,
		FH_REM_ACCESS, FH_REM_POISON, FH_RNR, FH_TIMEOUT, FH_FLUSH,
	};
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i;

	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 100);
	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		arm(f, NPUEMU_FK_STATUS)->status = codes[i];
		assert_refused(f, &w, codes[i]);
		assert_memory(f->fh, WATCH);	/* it did not happen */
		assert_int_equal(f->cnt.faults, i + 1);
	}
	/* unsignalled ones complete, too */
	fh_put32(&w, 0, FH_TOKEN);
	assert_refused(f, &w, FH_FLUSH);
	/* what no CQE could carry is not believed */
	arm(f, NPUEMU_FK_STATUS)->status = 0x10201;
	fh_put32(&w, 0, FH_TOKEN | FH_CQE);
	assert_do(f, &w, FH_OK);
	fh_faults(f->fh, 0);
	assert_do(f, &w, FH_OK);
	assert_int_equal(f->cnt.faults, 12);
}

static void delay(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u64 start = fh_now;

	arm(f, NPUEMU_FK_DELAY)->delay_us = 50;
	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 100);
	fh_post(f, &w);
	fh_run(f);
	assert_true(f->waiting);
	fh_now = start + 49999;
	fh_turn(f);
	assert_true(f->waiting);
	assert_no_cqe(f);
	assert_memory(fh, WATCH);
	fh_now = start + 50000;
	fh_run(f);
	assert_false(f->waiting);
	assert_cqe(f, 0, FH_OK);
	memcpy(fh->theirs.shadow, fh->mine.shadow, 100);
	assert_memory(fh, WATCH);
	/* an hour is not cut to 32 bits */
	arm(f, NPUEMU_FK_DELAY)->delay_us = 3600000000u;
	fh_post(f, &w);
	fh_run(f);
	fh_now += 3599999999999ull;
	fh_turn(f);
	assert_no_cqe(f);
	fh_now++;
	fh_run(f);
	assert_cqe(f, 1, FH_OK);
}

static void drop(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;

	arm(f, NPUEMU_FK_DROP);
	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 100);
	fh_post(f, &w);
	fh_run(f);
	assert_true(f->waiting);
	fh_now += f->q.ack_timeout_ns - 1;
	fh_turn(f);
	assert_no_cqe(f);
	fh_now++;
	fh_run(f);
	assert_cqe(f, 0, FH_TIMEOUT);
	assert_flush_done(f);
	assert_memory(f->fh, WATCH);
	/* ERROR while it is out: flushed at once */
	fh_recover(f);
	fh_post(f, &w);
	fh_run(f);
	assert_true(f->waiting);
	npuemu_jfs_modify(&f->q, NPUEMU_QS_ERROR);
	fh_run(f);
	assert_cqe(f, 0, FH_FLUSH);
	assert_flush_done(f);
}

/* Whose data is poisoned: the peer's when it was brought here, else ours. */
static void poison(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u64 zero = 0;

	arm(f, NPUEMU_FK_POISON);
	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 8);
	assert_refused(f, &w, FH_LOC_POISON);
	fh_notify(&w, FH_CQE, 0, 0, 8, 64, 1);
	assert_refused(f, &w, FH_LOC_POISON);
	fh_write_add(&w, FH_CQE, 0, 0, 8, 64, 1);
	assert_refused(f, &w, FH_LOC_POISON);
	fh_rma(&w, FH_READ, FH_CQE, 0, 0, 8);
	assert_refused(f, &w, FH_REM_POISON);
	fh_faa(&w, FH_CQE, 0, 0, 8, 1);
	assert_refused(f, &w, FH_REM_POISON);
	fh_cas(&w, FH_CQE, 0, 0, 8, &zero, &zero);
	assert_refused(f, &w, FH_REM_POISON);
	assert_memory(f->fh, WATCH);
}

static void dead_peer(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;

	arm(f, NPUEMU_FK_DEAD_PEER)->peer_slot = FH_PEER_SLOT;
	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 8);
	assert_refused(f, &w, FH_TIMEOUT);
	fh_write_add(&w, FH_CQE, 0, 0, 8, 64, 1);
	assert_refused(f, &w, FH_TIMEOUT);
	assert_memory(f->fh, WATCH);
	assert_int_equal(f->cnt.faults, 2);
	/* what goes nowhere does not notice, nor does what goes elsewhere */
	fh_nop(&w, FH_CQE);
	assert_do(f, &w, FH_OK);
	arm(f, NPUEMU_FK_DEAD_PEER)->peer_slot = FH_PEER_SLOT + 1;
	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 8);
	assert_do(f, &w, FH_OK);
	fh_write_add(&w, FH_CQE, 0, 0, 8, 64, 1);
	assert_do(f, &w, FH_OK);
	assert_int_equal(f->cnt.faults, 2);
}

/* Only for whom it was meant. */
static void whom(void **state)
{
	struct fh_queue *f = *state;
	struct npuemu_fault_rec *r;
	struct fh_wqe w;
	u32 i;

	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 8);
	for (i = 0; i < 8; i++) {
		bool hit = i % 2 == 0;

		r = arm(f, NPUEMU_FK_STATUS);
		r->status = FH_RNR;
		switch (i / 2) {
		case 0:
			r->slot = FH_SLOT + !hit;
			break;
		case 1:
			r->queue = FH_QUEUE_ID + !hit;
			break;
		case 2:
			r->device = !hit;
			break;
		default:
			r->kind = hit ? NPUEMU_FK_STATUS : NPUEMU_FK_KINDS;
			break;
		}
		if (hit)
			assert_refused(f, &w, FH_RNR);
		else
			assert_do(f, &w, FH_OK);
	}
	/* a failed check of its own comes first: the WQE is malformed */
	arm(f, NPUEMU_FK_STATUS)->status = FH_RNR;
	fh_put32(&w, 0, fh_get32(&w, 0) | 1u << 24);
	assert_refused(f, &w, FH_UNSUPPORTED);
}

/* Which of @n WQEs are hit; a bit each, 32 a word. */
static u32 hits(struct fh_queue *f, u32 n, u32 *mask)
{
	struct fh_wqe w;
	struct fh_cqe c;
	u32 i, total = 0;

	fh_nop(&w, FH_CQE);
	memset(mask, 0, n / 8);
	for (i = 0; i < n; i++) {
		fh_post(f, &w);
		fh_run(f);
		assert_true(fh_poll(f->cq, &c));
		if (c.code == FH_OK)
			continue;
		assert_int_equal(c.code, FH_RNR);
		mask[i / 32] |= 1u << i % 32;
		total++;
		/* error_suspend: go on */
		assert_int_equal(npuemu_jfs_modify(&f->q, NPUEMU_QS_READY), 0);
	}
	return total;
}

static void rates(void **state)
{
	static const u32 ppm[] = { 1, 1000, 10000, 100000, 500000, 999999, 1000000 };
	struct fh_queue *f = *state;
	static u32 first[20000 / 32], again[20000 / 32];
	struct npuemu_fault_rec *r;
	u32 i, seed;

	f->q.error_suspend = true;
	for (i = 0; i < sizeof(ppm) / sizeof(ppm[0]); i++)
		for (seed = 1; seed <= 3; seed++) {
			double want = ppm[i] / 1e6 * 20000, got, sd2 = want * (1 - ppm[i] / 1e6);

			r = arm(f, NPUEMU_FK_STATUS);
			r->status = FH_RNR;
			r->rate_ppm = ppm[i];
			r->seed = seed * 7919;
			got = hits(f, 20000, first);
			/* five standard deviations */
			if ((got - want) * (got - want) > 25 * sd2 + 1)
				fh_fail("%u ppm, seed %u: %g hits of 20000", ppm[i], seed, got);
			fh_faults(f->fh, 1);	/* armed anew: the same once more */
			hits(f, 20000, again);
			assert_memory_equal(first, again, sizeof(first));
			if (ppm[i] < 1000 || ppm[i] > 900000)
				continue;
			r->seed++;
			fh_faults(f->fh, 1);
			hits(f, 20000, again);
			assert_memory_not_equal(first, again, sizeof(first));
			/* another queue has a row of its own */
			r->seed--;
			f->q.id++;
			fh_faults(f->fh, 1);
			hits(f, 20000, again);
			assert_memory_not_equal(first, again, sizeof(first));
			f->q.id--;
		}
}

static void counts(void **state)
{
	struct fh_queue *f = *state;
	struct npuemu_fault_rec *r = arm(f, NPUEMU_FK_STATUS);
	u32 mask[100];

	f->q.error_suspend = true;
	r->status = FH_RNR;
	r->count = 5;
	assert_int_equal(hits(f, 64, mask), 5);
	assert_int_equal(mask[0], 0x1f);
	assert_int_equal(hits(f, 64, mask), 0);
	r->rate_ppm = 300000;
	r->seed = 2;
	fh_faults(f->fh, 1);
	assert_int_equal(hits(f, 64, mask), 5);
	assert_int_not_equal(mask[0], 0x1f);
}

/* The first of several that hits counts; a full table works. */
static void several(void **state)
{
	struct fh_queue *f = *state;
	struct npuemu_fault_rec *r = arm(f, NPUEMU_FK_STATUS);
	struct fh_wqe w;
	u32 i;

	for (i = 0; i < NPUEMU_MAX_FAULTS; i++) {
		r[i] = r[0];
		r[i].count = 1;
		r[i].status = i % 2 ? FH_RNR : FH_REM_REQ;
	}
	fh_faults(f->fh, NPUEMU_MAX_FAULTS);
	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 8);
	for (i = 0; i < NPUEMU_MAX_FAULTS; i++)
		assert_refused(f, &w, i % 2 ? FH_RNR : FH_REM_REQ);
	assert_do(f, &w, FH_OK);
	/* a number that cannot be is cut */
	fh_faults(f->fh, 1000);
	assert_refused(f, &w, FH_REM_REQ);
}

/* Faults that come and go leave the others where they are. */
static void others_go_on(void **state)
{
	struct fh_queue *f = *state;
	struct npuemu_fault_rec *r = arm(f, NPUEMU_FK_STATUS);
	u32 mask[100];

	f->q.error_suspend = true;
	r[0].status = FH_RNR;
	r[0].count = 40;
	fh_faults(f->fh, 1);
	assert_int_equal(hits(f, 32, mask), 32);
	r[1] = r[0];
	r[1].queue = FH_QUEUE_ID + 1;
	f->fh->nfaults = 2;
	f->fh->fault_gen++;
	assert_int_equal(hits(f, 32, mask), 8);
	assert_int_equal(mask[0], 0xff);
}

/* The board was reset under the process: everything ends. */
static void board_gone(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;

	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 8);
	fh_post(f, &w);
	f->fh->nfaults = 0xffffffffu;
	f->fh->fault_gen++;
	fh_run(f);
	assert_int_equal(f->q.state, NPUEMU_QS_ERROR);
	assert_cqe(f, 0, FH_FLUSH);
	assert_flush_done(f);
	assert_memory(f->fh, WATCH);
}

/* A long WQE is hit at its start or not at all. */
static void once_a_wqe(void **state)
{
	struct fh_queue *f = *state;
	struct npuemu_fault_rec *r = arm(f, NPUEMU_FK_STATUS);
	struct fh_wqe w;

	r->status = FH_RNR;
	fh_faults(f->fh, 0);
	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 1 << 20);
	fh_post(f, &w);
	fh_bell(f);
	assert_true(fh_turn(f));
	fh_faults(f->fh, 1);	/* armed in the middle */
	fh_run(f);
	assert_cqe(f, 0, FH_OK);
	assert_refused(f, &w, FH_RNR);
}

#define T(name)	cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_status), T(delay), T(drop), T(poison), T(dead_peer), T(whom), T(rates),
		T(counts), T(several), T(others_go_on), T(board_gone), T(once_a_wqe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
