// SPDX-License-Identifier: MIT
/*
 * What WQEs do to memory: WRITE and READ with one and several SGEs, inline data,
 * lengths around turns and chunks, WRITE_NOTIFY, WRITE_ATOMIC_ADD, CAS, FAA.
 * After each, all of both arenas is compared with what it should be, so a byte
 * too many is seen wherever it fell.
 */
#include "fhassert.h"

#define KIB	1024u
#define MIB	(1024u * KIB)
#define WATCH	(64 * KIB)

static int set_up(void **state)
{
	struct fh_queue *f = fh_queue(fh_new(), 64, 128, 0, NULL);

	fh_watch(f->fh, WATCH, 11);
	*state = f;
	return 0;
}

static int set_up_long(void **state)
{
	set_up(state);
	((struct fh_queue *)*state)->fh->chip.trace = true;
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

/* Short lengths at every alignment of both sides. */
static void short_lengths(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_cqe c;
	struct fh_wqe w;
	u32 len, a, b;

	for (len = 0; len <= 300; len += len < 40 ? 1 : 13)
		for (a = 0; a < 9; a += 3)
			for (b = 0; b < 9; b += 2) {
				fh_rma(&w, FH_WRITE, FH_CQE, 4096 + a, 8192 + b, len);
				c = assert_do(f, &w, FH_OK);
				assert_int_equal(c.bytes, len);
				memcpy(fh->theirs.shadow + 8192 + b, fh->mine.shadow + 4096 + a, len);
				assert_memory(fh, WATCH);
				fh_rma(&w, FH_READ, FH_CQE, 16384 + b, 8192 + a, len);
				c = assert_do(f, &w, FH_OK);
				assert_int_equal(c.bytes, len);
				memcpy(fh->mine.shadow + 16384 + b, fh->theirs.shadow + 8192 + a, len);
				assert_memory(fh, WATCH);
			}
}

/* Around a turn, a chunk, and the size from which caches are bypassed. */
static void long_lengths(void **state)
{
	static const u32 around[] = { 64 * KIB, 128 * KIB, 2 * MIB, 6 * MIB };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 i, op, turns;
	s32 d;

	fh_watch(fh, 8 * MIB, 12);
	for (i = 0; i < 4; i++)
		for (d = -1; d <= 1; d++)
			for (op = 0; op < 2; op++) {
				u32 len = around[i] + (u32)d;
				struct fh_arena *from = op ? &fh->theirs : &fh->mine;
				struct fh_arena *to = op ? &fh->mine : &fh->theirs;
				u64 at = MIB + 5;

				fh_rma(&w, op ? FH_READ : FH_WRITE, FH_CQE, op ? at : 3,
				       op ? 3 : at, len);
				fh_post(f, &w);
				turns = fh_run(f);
				assert_cqe(f, f->pi - 1, FH_OK);
				assert_int_equal(turns, (len + 64 * KIB - 1) / (64 * KIB));
				memcpy(to->shadow + at, from->shadow + 3, len);
				assert_memory(fh, 8 * MIB);
			}
}

/* 0 to 13 SGEs of mixed lengths, empty ones among them, as one message. */
static void several_sges(void **state)
{
	static const u32 lens[] = { 3, 0, 64, 1, 0, 500, 8, 7, 0, 4096, 2, 33, 0 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_cqe c;
	struct fh_wqe w;
	u32 n, i, op, total;

	for (op = 0; op < 2; op++)
		for (n = 0; n <= (op ? 6 : 13); n++) {
			u8 *shadow = fh->theirs.shadow + 20000;

			fh_watch(fh, WATCH, n);
			fh_sqe(&w, op ? FH_READ : FH_WRITE, FH_CQE, n, FH_PEER_VA + 20000);
			for (i = total = 0; i < n; i++) {
				u32 at = 40000 - i * 5000 % 39000;

				fh_sge(&w, 48 + 16 * i, FH_VA + at, lens[i]);
				if (op)
					memcpy(fh->mine.shadow + at, shadow + total, lens[i]);
				else
					memcpy(shadow + total, fh->mine.shadow + at, lens[i]);
				total += lens[i];
			}
			c = assert_do(f, &w, FH_OK);
			assert_int_equal(c.bytes, total);
			assert_memory(fh, WATCH);
		}
}

/* Several long SGEs: pieces end where SGEs, turns and chunks do. */
static void several_long_sges(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 i, total = 0, len;

	fh_watch(fh, 8 * MIB, 13);
	fh_sqe(&w, FH_WRITE, FH_CQE, 7, FH_PEER_VA + 77);
	for (i = 0; i < 7; i++) {
		len = 60000 + 30011 * i;
		fh_sge(&w, 48 + 16 * i, FH_VA + i * MIB + i, len);
		memcpy(fh->theirs.shadow + 77 + total, fh->mine.shadow + i * MIB + i, len);
		total += len;
	}
	assert_do(f, &w, FH_OK);
	assert_memory(fh, 8 * MIB);
}

/* One bad SGE among good ones: nothing is moved at all. */
static void one_bad_sge(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i, bad, op;

	for (op = 0; op < 2; op++)
		for (bad = 0; bad < 6; bad++) {
			fh_sqe(&w, op ? FH_READ : FH_WRITE, FH_CQE, 6, FH_PEER_VA);
			for (i = 0; i < 6; i++)
				fh_sge(&w, 48 + 16 * i, i == bad ? 64 : FH_VA + 4096 * i, 100);
			assert_refused(f, &w, FH_LOC_ACCESS);
			assert_memory(f->fh, WATCH);
			/* an empty one may point anywhere */
			fh_put32(&w, 48 + 16 * bad, 0);
			assert_do(f, &w, FH_OK);
			fh_watch(f->fh, WATCH, bad);
		}
}

static void inline_data(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_cqe c;
	struct fh_wqe w;
	u8 data[208];
	u32 len, i, start;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (u8)(i * 7 + 1);
	for (len = 0; len <= 208; len++)
		for (start = 0; start < 2; start++) {
			if (start)	/* around the end of the ring, too */
				while (f->pi % 64 != 62) {
					fh_nop(&w, FH_CQE);
					assert_do(f, &w, FH_OK);
				}
			fh_inline(&w, FH_WRITE, FH_CQE, 5000 + len % 3, data, len);
			c = assert_do(f, &w, FH_OK);
			assert_int_equal(c.bytes, len);
			memcpy(fh->theirs.shadow + 5000 + len % 3, data, len);
			assert_memory(fh, WATCH);
		}
	for (len = 0; len <= 176; len++) {
		u64 value = 0x1234567800000000ull + len;

		fh_inline(&w, FH_NOTIFY, FH_CQE, 9000, data, len);
		fh_put32(&w, 48, FH_TOKEN_ID);
		fh_put32(&w, 52, FH_TOKEN_VALUE);
		fh_put64(&w, 56, FH_PEER_VA + 16384);
		fh_put64(&w, 64, value);
		if (w.nbb < 2)
			w.nbb = 2;
		assert_do(f, &w, FH_OK);
		memcpy(fh->theirs.shadow + 9000, data, len);
		memcpy(fh->theirs.shadow + 16384, &value, 8);
		assert_memory(fh, WATCH);
	}
}

/* The word is not touched before the last byte of the payload is there. */
static void notify_comes_last(void **state)
{
	static const u32 lens[] = { 0, 8, 65535, 65536, 65537, 300000 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u64 *word = (u64 *)(void *)fh_theirs(fh, MIB);
	struct fh_cqe c;
	struct fh_wqe w;
	u32 i;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		u64 value = 0xfedcba9876543210ull + i;

		fh_watch(fh, 2 * MIB, i);
		fh_notify(&w, FH_CQE, 64, 128, lens[i], MIB, value);
		fh_post(f, &w);
		fh_bell(f);
		memcpy(fh->theirs.shadow + 128, fh->mine.shadow + 64, lens[i]);
		for (bool more = true; more;) {
			more = fh_turn(f);
			if (*word == value)
				assert_memory_equal(fh_theirs(fh, 128), fh->theirs.shadow + 128,
						    lens[i]);
			else
				assert_true(more);
		}
		c = assert_cqe(f, f->pi - 1, FH_OK);
		assert_int_equal(c.bytes, lens[i]);
		memcpy(fh->theirs.shadow + MIB, &value, 8);
		assert_memory(fh, 2 * MIB);
	}
	/* inside its own payload: the word wins */
	fh_watch(fh, WATCH, 3);
	fh_notify(&w, FH_CQE, 0, 0, 64, 16, 42);
	assert_do(f, &w, FH_OK);
	memcpy(fh->theirs.shadow, fh->mine.shadow, 64);
	memset(fh->theirs.shadow + 16, 0, 8);
	fh->theirs.shadow[16] = 42;
	assert_memory(fh, WATCH);
}

/* A layout of its own, in one block. */
static void write_atomic_add(void **state)
{
	static const u32 lens[] = { 0, 1, 8, 1023, 1024, 1025, 65536, 262143 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u64 sum, adds[] = { 1, 0, ~0ull, 1ull << 63, 12345 };
	struct fh_cqe c;
	struct fh_wqe w;
	u32 i, k;

	fh_watch(fh, 2 * MIB, 4);
	fh_segment(fh, 2, MIB, 4096, FH_RWA, 0x55);
	memcpy(&sum, fh->theirs.shadow + MIB + 8, 8);
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (k = 0; k < 5; k++) {
			fh_write_add(&w, FH_CQE, 99, 201, lens[i], MIB + 8, adds[k]);
			fh_put32(&w, 32, 0x55);		/* the counter has another token */
			fh_put32(&w, 36, 0x5002);
			c = assert_do(f, &w, FH_OK);
			assert_int_equal(c.bytes, lens[i]);
			memcpy(fh->theirs.shadow + 201, fh->mine.shadow + 99, lens[i]);
			sum += adds[k];
			memcpy(fh->theirs.shadow + MIB + 8, &sum, 8);
			assert_memory(fh, 2 * MIB);
		}
}

static void fetch_and_add(void **state)
{
	static const u64 adds[] = { 0, 1, 0xffffffff, 0x100000000, ~0ull, 0x123456789abcdef };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_cqe c;
	struct fh_wqe w;
	u32 i, len, to;

	for (len = 4; len <= 8; len += 4)
		for (i = 0; i < 6; i++)
			for (to = 0; to < 3; to++) {	/* the result's place may be odd */
				u64 old = 0, sum;

				fh_faa(&w, FH_CQE, 4096 + to, 8192 + i * 16, len, adds[i]);
				memcpy(&old, fh->theirs.shadow + 8192 + i * 16, len);
				sum = old + adds[i];
				memcpy(fh->theirs.shadow + 8192 + i * 16, &sum, len);
				memcpy(fh->mine.shadow + 4096 + to, &old, len);
				c = assert_do(f, &w, FH_OK);
				assert_int_equal(c.bytes, len);
				assert_memory(fh, WATCH);
			}
	/* many in a row, through the ring's end */
	for (i = 0; i < 1000; i++) {
		fh_faa(&w, i % 16 == 15 ? FH_CQE : 0, 512, 1024, 8, i);
		fh_post(f, &w);
		if (i % 16 == 15) {
			fh_run(f);
			assert_cqe(f, f->pi - 1, FH_OK);
		}
	}
	fh_run(f);
	assert_int_equal(f->cnt.errors, 0);
}

static void compare_and_swap(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_cqe c;
	struct fh_wqe w;
	u8 swap[16], compare[16];
	u32 len, hit, i, k;

	for (len = 4; len <= 16; len *= 2)
		for (hit = 0; hit <= len; hit++) {	/* wrong in byte hit-1, or right */
			u8 *word = fh->theirs.shadow + 8192 + len * 16;

			for (i = 0; i < 16; i++)
				swap[i] = (u8)(hit * 16 + i + len);
			memcpy(compare, word, len);
			if (hit)
				compare[hit - 1] ^= 0x10;
			fh_cas(&w, FH_CQE, 4099, 8192 + len * 16, len, swap, compare);
			memcpy(fh->mine.shadow + 4099, word, len);
			if (!hit)
				memcpy(word, swap, len);
			c = assert_do(f, &w, FH_OK);
			assert_int_equal(c.bytes, len);
			assert_memory(fh, WATCH);
			for (k = 1; k < len; k++) {	/* never off its alignment */
				fh_put64(&w, 40, FH_PEER_VA + 8192 + len * 16 + k);
				assert_refused(f, &w, FH_REM_REQ);
			}
			assert_memory(fh, WATCH);
		}
}

/* NOP has nothing to do whatever it carries. */
static void nop(void **state)
{
	struct fh_queue *f = *state;
	struct fh_cqe c;
	struct fh_wqe w;

	fh_rma(&w, FH_NOP, FH_CQE, 1, 1, 5000);
	c = assert_do(f, &w, FH_OK);
	assert_int_equal(c.bytes, 0);
	fh_nop(&w, FH_CQE);
	assert_do(f, &w, FH_OK);
	assert_memory(f->fh, WATCH);
	assert_int_equal(f->cnt.bytes, 0);
}

/* To oneself, onto bytes that are read: what comes out is open, the rest stays. */
static void onto_itself(void **state)
{
	static const u32 lens[] = { 16, 200, 3000, 20000, 200000 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 i, by, op;

	fh->peer.arena[1] = &fh->mine.a;
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (by = 0; by < 3; by++)
			for (op = 0; op < 2; op++) {
				u64 a = 4096, b = 4096 + by * (lens[i] / 2);

				fh_watch(fh, 8 * MIB, 1);
				fh_rma(&w, op ? FH_READ : FH_WRITE, FH_CQE, a, b, lens[i]);
				assert_do(f, &w, FH_OK);
				if (by == 1)
					memcpy(fh->mine.shadow + (op ? a : b), fh_mine(fh, op ? a : b),
					       lens[i]);
				if (by == 2)
					memcpy(fh->mine.shadow + (op ? a : b),
					       fh->mine.shadow + (op ? b : a), lens[i]);
				assert_memory(fh, 8 * MIB);
			}
	fh->peer.arena[1] = &fh->theirs.a;
}

/* Runs of like WQEs that change in one thing on the way: the fast path has to see it. */
static void runs(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 odd, i;

	for (odd = 0; odd < 9; odd++) {
		u32 cqes = 0, want = 0;
		struct fh_cqe c;

		fh_watch(fh, WATCH, odd);
		fh_segment(fh, 2, 32768, 8192, FH_RW, 5);
		for (i = 0; i < 32; i++) {
			u64 from = i * 100, to = 16384 + i * 100;
			u32 len = 48, op = FH_WRITE, flags = FH_CQE;

			if (i == 13 && odd == 1)
				len = 49;
			if (i == 13 && odd == 2)
				op = FH_READ;
			if (i == 13 && odd == 3)
				flags = 0;
			if (i == 13 && odd == 4)
				from = 30001;
			fh_rma(&w, op, flags, from, to, len);
			if (i == 13 && odd == 5) {
				to = 32768 + 64;
				fh_rma(&w, op, flags, from, to, len);
				fh_token(&w, 0x5002, 5);
			}
			if (i == 13 && odd == 6)
				fh_nop(&w, FH_CQE);
			if (i == 13 && odd == 7)
				fh_inline(&w, FH_WRITE, FH_CQE, to, fh->mine.shadow + from, len);
			if (i == 13 && odd == 8)
				fh_put32(&w, 0, fh_get32(&w, 0) | FH_STRONG | FH_FENCE);
			if (i == 13 && odd == 2)
				memcpy(fh->mine.shadow + from, fh->theirs.shadow + to, len);
			else if (i != 13 || odd != 6)
				memcpy(fh->theirs.shadow + to, fh->mine.shadow + from, len);
			want += i != 13 || odd != 3;
			fh_post(f, &w);
		}
		fh_run(f);
		while (fh_poll(f->cq, &c)) {
			assert_int_equal(c.code, FH_OK);
			cqes++;
		}
		assert_int_equal(cqes, want);
		assert_memory(fh, WATCH);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(short_lengths), BOTH_WAYS(long_lengths), BOTH_WAYS(several_sges),
		BOTH_WAYS(several_long_sges), BOTH_WAYS(one_bad_sge), BOTH_WAYS(inline_data),
		BOTH_WAYS(notify_comes_last), BOTH_WAYS(write_atomic_add),
		BOTH_WAYS(fetch_and_add), BOTH_WAYS(compare_and_swap), BOTH_WAYS(nop),
		BOTH_WAYS(onto_itself), BOTH_WAYS(runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
