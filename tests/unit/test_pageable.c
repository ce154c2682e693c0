// SPDX-License-Identifier: MIT
/*
 * Pageable memory, which the engine sees through bounce buffers of the host: it
 * asks, waits, and goes on where it was.  The host here makes it wait for every
 * buffer and every write-out, and a buffer to be written is full of garbage before.
 */
#include "fhassert.h"

#define KIB	1024ull
#define WATCH	(512 * KIB)
#define PG(off)	(FH_PG_VA + (off))
#define N(a)	(sizeof(a) / sizeof((a)[0]))

static struct fh_queue *queue(u32 type)
{
	struct fh_queue *f = fh_queue(fh_new(), 64, 128, type, NULL);

	fh_pageable(f->fh, 7);
	fh_watch(f->fh, WATCH, 3);
	return f;
}

static int set_up(void **state)
{
	*state = queue(0);
	return 0;
}

static int set_up_long(void **state)
{
	struct fh_queue *f = queue(0);

	f->fh->chip.trace = true;
	*state = f;
	return 0;
}

static int set_up_sdma(void **state)
{
	*state = queue(1);
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

static void check(struct fakehost *fh)
{
	assert_memory(fh, WATCH);
	if (memcmp(fh->pg.memory, fh->pg.shadow, FH_PG_BYTES)) {
		u64 i;

		for (i = 0; fh->pg.memory[i] == fh->pg.shadow[i]; i++)
			;
		fh_fail("pageable bytes from offset %#llx on are not as expected",
			(unsigned long long)i);
	}
}

/* With one SGE, to or from pageable memory. */
static void rma(struct fh_wqe *w, u32 op, u64 pg, u64 theirs, u32 len)
{
	fh_sqe(w, op, FH_CQE, 1, FH_PEER_VA + theirs);
	fh_sge(w, 48, PG(pg), len);
}

static const u64 rooms[] = { 64, 4096, FH_BOUNCE };

static void writes_and_reads(void **state)
{
	static const u32 lens[] = { 1, 2, 8, 15, 64, 65, 300, 4096, 5001, 65536, 140007 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_cqe c;
	struct fh_wqe w;
	u32 k, l, a, op;

	for (k = 0; k < N(rooms); k++)
		for (l = 0; l < N(lens); l++)
			for (a = 0; a < 4; a++)
				for (op = 0; op < 2; op++) {
					u8 *p = fh->pg.shadow + 70000 + a * 5;
					u8 *t = fh->theirs.shadow + 90000 + a * 3;
					u32 in = fh->pg.in;

					fh->pg.room = rooms[k];
					rma(&w, op ? FH_READ : FH_WRITE, 70000 + a * 5,
					    90000 + a * 3, lens[l]);
					c = assert_do(f, &w, FH_OK);
					assert_int_equal(c.bytes, lens[l]);
					memcpy(op ? p : t, op ? t : p, lens[l]);
					check(fh);
					assert_true(fh->pg.in > in);
				}
	assert_int_equal(f->q.plain.len, 0);	/* the short way stays shut */
}

/* Many like ones: that every WQE reads the memory anew, not what is held. */
static void runs(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 i;

	for (i = 0; i < 200; i++) {
		rma(&w, FH_WRITE, 4096, 8192, 64);
		memset(fh->pg.memory + 4096, (int)i, 64);
		memset(fh->pg.shadow + 4096, (int)i, 64);
		memset(fh->theirs.shadow + 8192, (int)i, 64);
		assert_do(f, &w, FH_OK);
		check(fh);
	}
	assert_int_equal(f->q.plain.len, 0);
}

/* SGEs of both kinds in one WQE. */
static void mixed_sges(void **state)
{
	static const u32 lens[] = { 100, 70000, 3, 5000, 1, 33 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u32 i, op, at, first;
	struct fh_wqe w;

	for (op = 0; op < 2; op++)
		for (first = 0; first < 2; first++) {
			fh_sqe(&w, op ? FH_READ : FH_WRITE, FH_CQE, 6, FH_PEER_VA + 1000);
			for (i = at = 0; i < 6; i++) {
				u64 off = 1000 + i * 75001;
				bool pg = (i + first) % 2;
				u8 *l = (pg ? fh->pg.shadow : fh->mine.shadow) + off;
				u8 *t = fh->theirs.shadow + 1000 + at;

				fh_sge(&w, 48 + 16 * i, pg ? PG(off) : FH_VA + off, lens[i]);
				memcpy(op ? l : t, op ? t : l, lens[i]);
				at += lens[i];
			}
			assert_do(f, &w, FH_OK);
			check(fh);
		}
}

static void after_words(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u64 v = 0x1234567890abcdefull;
	struct fh_wqe w;

	fh->pg.room = 4096;
	fh_notify(&w, FH_CQE, 0, 501, 30001, 400000, v);
	fh_put64(&w, 88, PG(333));
	assert_do(f, &w, FH_OK);
	memcpy(fh->theirs.shadow + 501, fh->pg.shadow + 333, 30001);
	memcpy(fh->theirs.shadow + 400000, &v, 8);
	check(fh);
	fh_write_add(&w, FH_CQE, 0, 777, 20000, 400000, 10);
	fh_put64(&w, 56, PG(12345));
	assert_do(f, &w, FH_OK);
	memcpy(fh->theirs.shadow + 777, fh->pg.shadow + 12345, 20000);
	v += 10;
	memcpy(fh->theirs.shadow + 400000, &v, 8);
	check(fh);
}

static void add32(u8 *dst, const u8 *src, u32 len)
{
	u32 i, a, b;

	for (i = 0; i < len; i += 4) {
		memcpy(&a, dst + i, 4);
		memcpy(&b, src + i, 4);
		a += b;
		memcpy(dst + i, &a, 4);
	}
}

/* A target that is combined into is brought in first. */
static void reductions(void **state)
{
	static const u32 lens[] = { 4, 64, 68, 5000, 100004 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 k, l, op;

	for (k = 0; k < N(rooms); k++)
		for (l = 0; l < N(lens); l++)
			for (op = 0; op < 2; op++) {
				u8 *p = fh->pg.shadow + 1004, *t = fh->theirs.shadow + 2008;

				fh->pg.room = rooms[k];
				rma(&w, op ? FH_READ : FH_WRITE, 1004, 2008, lens[l]);
				fh_reduce(&w, 10, 2);
				assert_do(f, &w, FH_OK);
				add32(op ? p : t, op ? t : p, lens[l]);
				check(fh);
			}
}

/* However often it waits, an atomic happens once. */
static void atomics(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u8 swap[16], *word = fh->theirs.shadow + 4096;
	struct fh_wqe w;
	u32 by;
	u64 v;

	for (by = 0; by < 20; by++) {
		fh->pg.room = 64;
		fh_faa(&w, FH_CQE, 0, 4096, 8, 3);
		fh_put64(&w, 56, PG(8000 + by));
		assert_do(f, &w, FH_OK);
		memcpy(fh->pg.shadow + 8000 + by, word, 8);
		memcpy(&v, word, 8);
		v += 3;
		memcpy(word, &v, 8);
		check(fh);
		memset(swap, (int)by, 16);
		fh_cas(&w, FH_CQE, 0, 4096, 16, swap, word);
		fh_put64(&w, 56, PG(9000 + by));
		assert_do(f, &w, FH_OK);
		memcpy(fh->pg.shadow + 9000 + by, word, 16);
		memcpy(word, swap, 16);
		check(fh);
	}
}

/* ---- What can go wrong ------------------------------------------------------- */

static void not_mapped(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;

	fh->pg.gone_from = 100000;
	rma(&w, FH_WRITE, 99990, 100, 11);
	assert_refused(f, &w, FH_LOC_ACCESS);
	check(fh);
	rma(&w, FH_READ, 99990, 100, 11);
	assert_refused(f, &w, FH_LOC_ACCESS);
	check(fh);
	/* an atomic that has no room for its answer does not happen */
	fh_faa(&w, FH_CQE, 0, 4096, 8, 1);
	fh_put64(&w, 56, PG(99993));
	assert_refused(f, &w, FH_LOC_ACCESS);
	check(fh);
	/* it goes between the asking and the writing */
	fh->pg.gone_from = FH_PG_BYTES;
	fh->pg.out_gone_from = 50000;
	rma(&w, FH_READ, 49999, 100, 2);
	assert_refused(f, &w, FH_LOC_ACCESS);
	check(fh);
	rma(&w, FH_READ, 49998, 100, 2);
	assert_do(f, &w, FH_OK);
	memcpy(fh->pg.shadow + 49998, fh->theirs.shadow + 100, 2);
	check(fh);
	/* a far side that is bad costs nothing but the asking */
	fh_segment(fh, 2, 0, 64, FH_R, 5);
	rma(&w, FH_READ, 0, 60, 5);
	fh_token(&w, 0x5002, 5);
	assert_refused(f, &w, FH_REM_ACCESS);
	check(fh);
}

/* Turns, one by one, until it waits for the @n-th time. */
static void wait_for(struct fh_queue *f, u32 n)
{
	u32 seen = f->fh->pg.waits, turns = 0;

	fh_bell(f);
	while (f->fh->pg.waits < seen + n) {
		fh_turn(f);
		if (turns++ > 1000)
			fh_fail("it does not wait so often");
	}
	assert_true(f->waiting);
	assert_no_cqe(f);
}

/* Given up on while it waits: to be paged in, or out. */
static void given_up(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u32 n, how, cancels;
	struct fh_wqe w;

	for (how = 0; how < 2; how++)
		for (n = 1; n <= 2; n++) {
			cancels = fh->pg.cancel;
			rma(&w, FH_READ, 100, 200, 300);
			fh_post(f, &w);
			wait_for(f, n);
			if (how) {
				assert_int_equal(npuemu_jfs_modify(&f->q, NPUEMU_QS_ERROR), 0);
				fh_run(f);
				assert_cqe(f, f->pi - 1, FH_FLUSH);
				assert_flush_done(f);
			} else {
				assert_int_equal(npuemu_jfs_modify(&f->q, NPUEMU_QS_RESET), 0);
			}
			assert_true(fh->pg.cancel > cancels);
			fh_recover(f);
			check(fh);
			/* and nothing is left over for the next one */
			rma(&w, FH_READ, 100, 400, 300);
			assert_do(f, &w, FH_OK);
			memcpy(fh->pg.shadow + 100, fh->theirs.shadow + 400, 300);
			check(fh);
		}
}

/* It fails on the way, with something written that has not arrived yet. */
static void fails_on_the_way(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u32 n, cancels;
	struct fh_wqe w;

	fh->pg.room = 4096;
	for (n = 1; n < 8; n++) {
		cancels = fh->pg.cancel;
		fh_segment(fh, 2, 0, 65536, FH_R, 5);
		rma(&w, FH_READ, 8192, 100, 50000);
		fh_token(&w, 0x5002, 5);
		fh_post(f, &w);
		wait_for(f, n);
		fh_segment_gone(fh, 2);
		fh_run(f);
		assert_cqe(f, f->pi - 1, FH_REM_ACCESS);
		assert_flush_done(f);
		assert_int_equal(fh->pg.cancel, cancels + 1);
		fh_recover(f);
		/* whole pieces of it, or nothing */
		memcpy(fh->pg.shadow + 8192, fh->theirs.shadow + 100, n / 2 * 4096);
		check(fh);
	}
}

/* SUSPENDED lets what was begun come to its end. */
static void suspended(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u64 v;
	u32 n;

	for (n = 1; n <= 4; n++) {
		u8 *word = fh->theirs.shadow + 4096;

		if (n > 2)
			fh_chaos(f, n);
		fh_faa(&w, FH_CQE, 0, 4096, 8, 3);
		fh_put64(&w, 56, PG(800));
		fh_post(f, &w);
		wait_for(f, (n - 1) % 2 + 1);
		assert_int_equal(npuemu_jfs_modify(&f->q, NPUEMU_QS_SUSPENDED), 0);
		fh_run(f);
		assert_cqe(f, f->pi - 1, FH_OK);
		memcpy(fh->pg.shadow + 800, word, 8);
		memcpy(&v, word, 8);
		v += 3;
		memcpy(word, &v, 8);
		check(fh);
		assert_int_equal(npuemu_jfs_modify(&f->q, NPUEMU_QS_READY), 0);
	}
}

/* Several under way at once, in any order, from pageable memory and others. */
static void chaos(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u64 seed = 5;
	u32 i, k;

	for (i = 0; i < 60; i++) {
		fh->pg.room = rooms[i % N(rooms)];
		fh_chaos(f, i + 1);
		for (k = 0; k < 12; k++) {
			u64 l = k * 20000 + fh_random(&seed) % 50;
			u64 t = k * 20000 + fh_random(&seed) % 50;
			u32 len = (u32)(fh_random(&seed) % 12000) + 1;
			u8 *ls = (k % 3 ? fh->pg.shadow : fh->mine.shadow) + l;
			u8 *ts = fh->theirs.shadow + t;

			fh_rma(&w, k % 2 ? FH_READ : FH_WRITE, FH_CQE, l, t, len);
			if (k % 3)
				fh_put64(&w, 56, PG(l));
			fh_post(f, &w);
			memcpy(k % 2 ? ls : ts, k % 2 ? ts : ls, len);
		}
		fh_run(f);
		for (k = 0; k < 12; k++)
			assert_cqe(f, f->pi - 12 + k, FH_OK);
		check(fh);
	}
}

/* ---- SDMA --------------------------------------------------------------------- */

static void sdma_copies(void **state)
{
	static const u32 lens[] = { 1, 16, 63, 64, 65, 300, 5001, 100003 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 k, l, way;

	for (k = 0; k < N(rooms); k++)
		for (l = 0; l < N(lens); l++)
			for (way = 0; way < 3; way++) {	/* in, out, within */
				u64 to = 1003, from = 200009;
				u8 *d = (way ? fh->pg.shadow : fh->mine.shadow) + to;
				u8 *s = (way == 1 ? fh->mine.shadow : fh->pg.shadow) + from;

				fh->pg.room = rooms[k];
				fh_sdma(&w, FH_SDMA_COPY, FH_CQE, way ? PG(to) : FH_VA + to,
					way == 1 ? FH_VA + from : PG(from), lens[l]);
				assert_do(f, &w, FH_OK);
				memcpy(d, s, lens[l]);
				check(fh);
				/* the same, combined */
				to++;
				from += 3;
				fh_sdma(&w, FH_SDMA_REDUCE, FH_CQE, way ? PG(to) : FH_VA + to,
					way == 1 ? FH_VA + from : PG(from), lens[l] & ~3u);
				fh_put32(&w, 8, 10 << 4 | 2);
				assert_do(f, &w, FH_OK);
				add32(d + 1, s + 3, lens[l] & ~3u);
				check(fh);
			}
	fh_sdma(&w, FH_SDMA_REDUCE, FH_CQE, PG(1002), PG(5000), 400);
	fh_put32(&w, 8, 10 << 4 | 2);
	assert_refused(f, &w, FH_LOC_LEN);
	check(fh);
}

static void sdma_rest(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u64 pattern = 0xa1b2c3d4e5f60718ull;
	u32 k, y, i, width;
	struct fh_wqe w;

	for (k = 0; k < N(rooms); k++) {
		fh->pg.room = rooms[k];
		fh_sdma(&w, FH_SDMA_COPY_2D, FH_CQE, PG(70001), PG(500003), 777);
		fh_pitch(&w, 50, 1001, 903);
		assert_do(f, &w, FH_OK);
		for (y = 0; y < 50; y++)
			memcpy(fh->pg.shadow + 70001 + y * 1001,
			       fh->pg.shadow + 500003 + y * 903, 777);
		check(fh);
		for (width = 1; width <= 8; width *= 2) {
			fh_sdma(&w, FH_SDMA_FILL, FH_CQE, PG(3003), pattern + k, 70003);
			fh_pitch(&w, 0, width, 0);
			assert_do(f, &w, FH_OK);
			for (i = 0; i < 70003; i++)
				fh->pg.shadow[3003 + i] =
					(u8)((pattern + k) >> i % width * 8);
			check(fh);
		}
		fh_sdma(&w, FH_SDMA_NOTIFY, FH_CQE, PG(4096), pattern, 8);
		assert_do(f, &w, FH_OK);
		memcpy(fh->pg.shadow + 4096, &pattern, 8);
		check(fh);
	}
}

/* A notify comes after the bytes have arrived in memory, not in a buffer. */
static void notify_comes_last(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u64 *word = (u64 *)(void *)fh_mine(fh, 65536);
	struct fh_wqe w;
	u32 i, turns;

	for (i = 0; i < 2; i++) {
		fh_watch(fh, WATCH, i);
		if (i)
			fh_chaos(f, 77);
		fh->pg.room = 4096;
		*word = 0;
		fh_sdma(&w, FH_SDMA_COPY, 0, PG(8192 + i), FH_VA + 100, 20000);
		fh_post(f, &w);
		fh_sdma(&w, FH_SDMA_NOTIFY, FH_CQE, FH_VA + 65536, 1, 8);
		fh_post(f, &w);
		fh_bell(f);
		memcpy(fh->pg.shadow + 8192 + i, fh->mine.shadow + 100, 20000);
		for (turns = 0; !*word; turns++) {
			fh_turn(f);
			assert_true(turns < 1000);
		}
		assert_true(turns > 2);
		assert_memory_equal(fh->pg.memory, fh->pg.shadow, FH_PG_BYTES);
		fh_run(f);
		assert_cqe(f, f->pi - 1, FH_OK);
	}
}

/* ---- SEND --------------------------------------------------------------------- */

/* From pageable memory, to pageable memory, a receive buffer of several SGEs. */
static void sends(void **state)
{
	struct fh_queue *f = *state, *lender = fh_queue(f->fh, 64, 128, 0, NULL);
	struct fakehost *fh = f->fh;
	struct npuemu_sge ring[4 * 16];
	struct npuemu_jfr r = { .ring = ring, .mask = 15, .max_sge = 4 };
	struct fh_cq cq;
	struct fh_cqe c;
	struct fh_wqe w;
	u32 pi = 0, k, i;

	fh_cq_init(&cq, 16);
	cq.jfc.attached = 1;
	r.pi_rec = &pi;
	r.jfc = &cq.jfc;
	fh->jfr = &r;
	fh->lender = &lender->q;
	for (k = 0; k < 24; k++) {
		u32 one = 900 + k, total = 2 * one + 70, left = total;
		u8 copy[4000];

		fh->pg.room = rooms[k % N(rooms)];
		fh_sqe(&w, FH_SEND, FH_CQE, 3, FH_PEER_VA);
		fh_sge(&w, 48, PG(1001), one);
		fh_sge(&w, 64, FH_VA + 77, 70);
		fh_sge(&w, 80, PG(5005 + k), one);
		memcpy(copy, fh->pg.shadow + 1001, one);
		memcpy(copy + one, fh->mine.shadow + 77, 70);
		memcpy(copy + one + 70, fh->pg.shadow + 5005 + k, one);
		for (i = 0; i < 4; i++) {
			u32 len = i == 3 ? left : 500 + k * 3;
			u64 to = 200001 + i * 5000;
			bool pg = (i + k) % 3;

			ring[(pi & 15) * 4 + i] = (struct npuemu_sge){
				.len = len, .va = pg ? PG(to) : FH_VA + to };
			memcpy((pg ? fh->pg.shadow : fh->mine.shadow) + to,
			       copy + total - left, len);
			left -= len;
		}
		pi++;
		assert_do(f, &w, FH_OK);
		assert_true(fh_poll(&cq, &c));
		assert_int_equal(c.code, FH_OK);
		assert_int_equal(c.bytes, total);
		check(fh);
	}
	/* the last part of the receive buffer turns out not to be there */
	for (i = 0; i < 2; i++) {
		fh->pg.room = 64;
		fh->pg.gone_from = i ? FH_PG_BYTES : 300000;
		fh->pg.out_gone_from = i ? 300000 : FH_PG_BYTES;
		fh_rma(&w, FH_SEND, FH_CQE, 100, 0, 200);
		memset(&ring[(pi & 15) * 4], 0, sizeof(ring[0]) * 4);
		ring[(pi & 15) * 4] = (struct npuemu_sge){ .len = 50, .va = PG(270000) };
		ring[(pi & 15) * 4 + 2] = (struct npuemu_sge){ .len = 150, .va = PG(299900) };
		pi++;
		assert_refused(f, &w, FH_REM_ACCESS);
		assert_true(fh_poll(&cq, &c));
		assert_int_equal(c.code, FH_LOC_ACCESS);
		assert_memory_equal(fh->pg.memory + 270000, fh->mine.shadow + 100, 50);
	}
	fh_queue_free(lender);
	fh_cq_free(&cq);
}

#define WITH(name, up)	cmocka_unit_test_setup_teardown(name, up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(writes_and_reads), BOTH_WAYS(runs), BOTH_WAYS(mixed_sges),
		BOTH_WAYS(after_words), BOTH_WAYS(reductions), BOTH_WAYS(atomics),
		WITH(not_mapped, set_up), WITH(given_up, set_up),
		WITH(fails_on_the_way, set_up), WITH(suspended, set_up),
		WITH(chaos, set_up), WITH(sdma_copies, set_up_sdma),
		WITH(sdma_rest, set_up_sdma), WITH(notify_comes_last, set_up_sdma),
		WITH(sends, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
