// SPDX-License-Identifier: MIT
/*
 * A turn and what it leaves: the CQE bit by bit, unsignalled WQEs, the end of a
 * turn after 64 KiB or 64 WQEs, counters, modelled time, waking, ownership.
 */
#include "fhassert.h"

static int set_up(void **state)
{
	*state = fh_queue(fh_new(), 256, 512, 0, NULL);
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

/* All 16 dwords, written out: id 0x7a5c3, user data 0x1122334455667788. */
static void cqe_bits(void **state)
{
	struct fh_queue *f = *state;
	u32 want[16] = {
		0x00000006,	/* jetty, owner of the first lap */
		0xa5c30000,	/* low 16 bits of the queue, entry 0 */
		0x00000007,	/* its high 4 bits */
		0,
		40,		/* bytes */
		0x55667788, 0x11223344,
	};
	const struct npuemu_cqe *ring = f->cq->jfc.ring;
	struct fh_wqe w;
	u32 i;

	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 40);
	for (i = 0; i < 512; i++) {
		fh_post(f, &w);
		fh_run(f);
		want[1] = 0xa5c30000 | (i & 255);
		assert_memory_equal(&ring[i], want, 64);
		f->cq->ci_rec = i + 1;
	}
	fh_post(f, &w);
	fh_run(f);
	want[0] = 0x00000002;	/* owner of the second lap */
	want[1] = 0xa5c30000 | (512 & 255);
	assert_memory_equal(&ring[0], want, 64);
	f->cq->ci_rec = 513;
	/* an error: local access, 2.2 */
	fh_put64(&w, 56, 0x1234);
	fh_post(f, &w);
	fh_run(f);
	want[0] = 0x02020002;
	want[1] = 0xa5c30000 | (513 & 255);
	want[4] = 0;
	assert_memory_equal(&ring[1], want, 64);
	/* the flush-done entry: 6.0, fd */
	want[0] = 0x06000082;
	assert_memory_equal(&ring[2], want, 64);
}

/* A completion retires what was posted before it, signalled or not. */
static void unsignalled(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i, n = 0, last = 0;
	struct fh_cqe c;

	for (i = 0; i < 1000; i++) {
		fh_rma(&w, FH_WRITE, i % 7 == 6 ? FH_CQE : 0, 0, 4096, 8);
		fh_post(f, &w);
		if (i % 50 == 49)
			fh_run(f);
		while (fh_poll(f->cq, &c)) {
			assert_int_equal(c.code, FH_OK);
			assert_int_equal((c.entry_idx - last) & 255, n ? 7 : 6);
			last = c.entry_idx;
			n++;
		}
	}
	assert_int_equal(n, 1000 / 7);
	assert_int_equal(f->cnt.wqes, 1000);
	assert_int_equal(f->cnt.cqes, 1000 / 7);
	assert_int_equal(f->cnt.bytes, 8000);
}

/* An error completes although nobody asked; what comes after is flushed. */
static void unsignalled_error(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i;

	for (i = 0; i < 10; i++) {
		fh_rma(&w, FH_WRITE, 0, 0, 4096, 8);
		if (i == 5)
			fh_token(&w, FH_TOKEN_ID, 1);
		fh_post(f, &w);
	}
	fh_run(f);
	assert_cqe(f, 5, FH_REM_ACCESS);
	for (i = 6; i < 10; i++)
		assert_cqe(f, i, FH_FLUSH);
	assert_flush_done(f);
	assert_no_cqe(f);
	assert_int_equal(f->q.last_status, FH_REM_ACCESS);
	assert_int_equal(f->cnt.errors, 1);
	assert_int_equal(f->cnt.wqes, 6);
	assert_int_equal(f->cnt.flushed, 4);
}

static void turn_of_64_wqes(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i;

	fh_nop(&w, FH_CQE);
	for (i = 0; i < 200; i++)
		fh_post(f, &w);
	fh_bell(f);
	assert_true(fh_turn(f));
	assert_int_equal(f->cnt.wqes, 64);
	assert_true(fh_turn(f));
	assert_int_equal(f->cnt.wqes, 128);
	assert_true(fh_turn(f));
	assert_false(fh_turn(f));
	assert_int_equal(f->cnt.wqes, 200);
	/* exactly 64: nothing is left */
	for (i = 0; i < 64; i++)
		fh_post(f, &w);
	assert_int_equal(fh_run(f), 1);
	/* rung for more while at it */
	for (i = 0; i < 64; i++)
		fh_post(f, &w);
	fh_bell(f);
	fh_post(f, &w);
	assert_int_equal(fh_run(f), 2);
}

/* No turn moves more than 64 KiB, whatever the WQEs are. */
static void turn_of_64_kib(void **state)
{
	static const u32 lens[] = { 65536, 65537, 1 << 20, 40000, 65535, 1, 8, 32768, 100003 };
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u64 before = 0, total = 0;
	u32 i, turns = 0;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		fh_rma(&w, i % 2 ? FH_READ : FH_WRITE, FH_CQE, 1 << 20, 3 << 20, lens[i]);
		fh_post(f, &w);
		total += lens[i];
	}
	fh_bell(f);
	for (bool more = true; more; turns++) {
		u64 now;

		more = fh_turn(f);
		now = f->cnt.bytes + (f->q.busy ? f->q.cur.done : 0);
		assert_true(now - before <= 65536);
		before = now;
	}
	assert_int_equal(before, total);
	assert_true(turns >= (total + 65535) / 65536);
	/* a WQE that fills a turn exactly ends it, and leaves nothing */
	fh_rma(&w, FH_WRITE, FH_CQE, 1 << 20, 3 << 20, 65536);
	fh_post(f, &w);
	assert_int_equal(fh_run(f), 1);
}

static void counters(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	bool waiting = false;
	struct fh_wqe w;
	u32 i;

	fh_rma(&w, FH_WRITE, 0, 0, 0, 100);
	for (i = 0; i < 3; i++)
		fh_post(f, &w);
	fh_write_add(&w, 0, 0, 0, 50, 4096, 1);
	fh_post(f, &w);
	fh_nop(&w, FH_CQE);
	fh_post(f, &w);
	fh_run(f);
	assert_int_equal(f->cnt.wqes, 5);
	assert_int_equal(f->cnt.bytes, 350);
	assert_int_equal(f->cnt.helped, 0);
	/* by link, from device 0: to the peer's device 1; to itself, not added yet */
	assert_int_equal(fh->links[1].wqes, 4);
	assert_int_equal(fh->links[1].bytes, 350);
	assert_int_equal(fh->links[0].wqes, 0);
	assert_int_equal(f->cnt.link_to, 0);
	assert_int_equal(f->cnt.link_wqes, 1);
	assert_int_equal(f->cnt.link_bytes, 0);
	npuemu_jfs_modify(&f->q, NPUEMU_QS_ERROR);
	fh_recover(f);
	assert_int_equal(fh->links[0].wqes, 1);
	assert_int_equal(f->cnt.link_wqes, 0);
	/* to and fro: each to its own */
	fh->links[0].wqes = 0;
	fh->links[1].wqes = 0;
	fh->links[1].bytes = 0;
	for (i = 0; i < 30; i++) {
		fh_rma(&w, FH_WRITE, 0, 0, 0, 10);
		if (i % 10 == 9)
			fh_nop(&w, 0);
		fh_post(f, &w);
		if (i % 4 == 3)
			fh_run(f);
	}
	fh_run(f);
	fh_recover(f);
	assert_int_equal(fh->links[0].wqes, 3);
	assert_int_equal(fh->links[1].wqes, 27);
	assert_int_equal(fh->links[1].bytes, 270);
	f->cnt.doorbells = 1;
	fh_nop(&w, FH_CQE);
	fh_post(f, &w);
	fh_bell(f);
	assert_true(npuemu_owner_try(&f->owner));
	npuemu_jfs_turn(&f->q, true, &waiting);
	npuemu_jfs_release(&f->q);
	assert_int_equal(f->cnt.helped, 1);
	assert_int_equal(f->cnt.doorbells, 2);
}

/* submit + bytes over the slower of engine and link; latency when signalled. */
static void modelled_time(void **state)
{
	struct fh_queue *f = *state;
	struct npuemu_machine *m = &f->fh->machine;
	struct fh_wqe w;
	u64 *times = calloc(512, sizeof(u64));

	assert_non_null(times);
	m->devices = 2;
	m->devices_per_server = 2;
	m->devices_per_module = 1;
	m->links = 2;
	m->link_server = 1;
	m->link[0] = (struct npuemu_link_class){ "self", 7, 100, 100 };
	m->link[1] = (struct npuemu_link_class){ "far", 300, 5000, 1000 };
	m->engine[NPUEMU_ENGINE_UDMA] = (struct npuemu_engine_desc){ 1, 1, 50, 2000 };
	f->cq->jfc.times = times;
	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 10000);
	assert_do(f, &w, FH_OK);
	assert_int_equal(f->q.model_ns, 50 + 10000 + 300);	/* 1,000 MB/s: 1 ns a byte */
	fh_rma(&w, FH_WRITE, 0, 0, 0, 10000);
	fh_post(f, &w);
	fh_nop(&w, FH_CQE);
	fh_post(f, &w);
	fh_run(f);
	assert_int_equal(f->q.model_ns, 10350 + 10050 + 57);
	m->engine[NPUEMU_ENGINE_UDMA].mbytes_per_s = 500;	/* now the engine is slower */
	f->q.model_ns = 0;
	fh_rma(&w, FH_READ, FH_CQE, 0, 0, 1000);
	fh_post(f, &w);
	fh_run(f);
	assert_int_equal(f->q.model_ns, 50 + 2000 + 300);
	/* an entry carries the time of its own WQE, waiting included */
	assert_true(times[0] <= times[1] && times[0] == 10350);
}

/* Sleepers are woken once a turn, and only where something was written. */
static void waking(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 i;

	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 8);
	assert_do(f, &w, FH_OK);
	assert_int_equal(fh->n.wake, 0);
	fh->mine.shares[0].waiters[0] = 1;	/* asleep on our memory: not written */
	assert_do(f, &w, FH_OK);
	assert_int_equal(fh->n.wake, 0);
	fh->theirs.shares[1].waiters[3] = 1ull << 63;
	for (i = 0; i < 10; i++)
		fh_post(f, &w);
	fh_run(f);
	assert_int_equal(fh->n.wake, 1);
	assert_int_equal(fh->theirs.shares[1].waiters[3], 0);
	fh_rma(&w, FH_READ, FH_CQE, 0, 0, 8);
	fh_post(f, &w);
	fh_run(f);
	assert_int_equal(fh->n.wake, 2);
	/* who waits for the CQ is woken when an entry was written, not else */
	f->cq->jfc.waiters = 1;
	fh_turn(f);
	assert_int_equal(fh->n.wake_cq, 0);
	fh_post(f, &w);
	fh_run(f);
	assert_int_equal(fh->n.wake_cq, 1);
	fh_put32(&w, 0, FH_TOKEN);
	fh_post(f, &w);
	fh_run(f);
	assert_int_equal(fh->n.wake_cq, 1);
}

/* More buffers in one turn than a queue remembers: all sleepers are woken. */
static void waking_many(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct npuemu_share shares[20];
	struct fh_wqe w;
	u32 i;

	memset(shares, 0, sizeof(shares));
	fh->theirs.a.shares = shares;
	fh->theirs.a.nshares = 20;
	fh->peer.nsegs = FH_SEGS;
	for (i = 2; i < FH_SEGS; i++) {
		fh_segment(fh, i, i * 4096, 4096, FH_RW, 1);
		fh->segs[i].buf = i;
		shares[i].waiters[i % 4] = 1;
		fh_rma(&w, FH_WRITE, FH_CQE, 0, i * 4096, 8);
		fh_token(&w, 0x5000 | i, 1);
		fh_post(f, &w);
	}
	fh_bell(f);
	fh_turn(f);
	for (i = 2; i < FH_SEGS; i++)
		assert_int_equal(shares[i].waiters[i % 4], 0);
	assert_int_equal(fh->n.wake, FH_SEGS - 2);
}

static void owner_word(void **state)
{
	u32 owner = 0xfffffffe;

	(void)state;
	assert_true(npuemu_owner_try(&owner));
	assert_int_equal(owner, ~0u);
	assert_false(npuemu_owner_try(&owner));
	npuemu_owner_put(&owner);
	assert_int_equal(owner, 0);
	assert_true(npuemu_owner_try(&owner));
	assert_false(npuemu_owner_try(&owner));
	assert_int_equal(owner, 1);
}

static u32 traced[8];
static u64 traced_args[8];

static void on_trace(struct npuemu_jfs *q, u32 event, u32 index, u64 arg)
{
	(void)q;
	(void)index;
	traced[event]++;
	traced_args[event] = arg;
}

static void tracing(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;

	f->fh->on_trace = on_trace;
	memset(traced, 0, sizeof(traced));
	fh_rma(&w, FH_WRITE, FH_CQE, 0, 0, 300);
	assert_do(f, &w, FH_OK);
	assert_int_equal(f->fh->n.trace, 0);
	f->fh->chip.trace = true;
	fh_post(f, &w);
	fh_post(f, &w);
	fh_run(f);
	assert_int_equal(traced[NPUEMU_TR_DOORBELL], 1);
	assert_int_equal(traced[NPUEMU_TR_EXECUTE], 2);
	assert_int_equal(traced[NPUEMU_TR_COMPLETE], 2);
	assert_int_equal(traced_args[NPUEMU_TR_EXECUTE], 300 << 8 | FH_WRITE);
	assert_int_equal(traced_args[NPUEMU_TR_COMPLETE], 0);
}

#define T(name)	cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(cqe_bits), T(unsignalled), T(unsignalled_error), T(turn_of_64_wqes),
		T(turn_of_64_kib), T(counters), T(modelled_time), T(waking), T(waking_many),
		T(owner_word), T(tracing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
