// SPDX-License-Identifier: MIT
/*
 * WQEs that combine instead of copying: all operations and types on WRITE, READ
 * and SDMA, against a plain loop over one element at a time; elements are never
 * cut, whatever the turn has left; and one at a time may combine into a buffer.
 * That the arithmetic itself is right is test_reduce.c's; here it must be the same.
 */
#include "fhassert.h"
#include "copy.h"

#define KIB	1024u
#define WATCH	(512 * KIB)
#define TYPES	9
static const u32 bytes_of[TYPES] = { 1, 2, 4, 1, 2, 4, 2, 4, 2 };

static int set_up(void **state)
{
	struct fh_queue *f = fh_queue(fh_new(), 64, 128, 0, NULL);

	*state = f;
	return 0;
}

static int set_up_sdma(void **state)
{
	*state = fh_queue(fh_new(), 64, 128, 1, NULL);
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

/* One integer element, in arithmetic wide enough for all of them. */
static s64 integer(const u8 *p, u32 type)
{
	u32 n = bytes_of[type];
	u64 v = 0;

	memcpy(&v, p, n);
	if (type <= 2 && v >> (8 * n - 1))
		v |= ~0ull << (8 * n - 1);
	return (s64)v;
}

/* dst = dst op src, element by element. */
static void plain_loop(u8 *dst, const u8 *src, u64 len, u32 op, u32 type)
{
	u32 n = bytes_of[type];
	u64 i;

	for (i = 0; i < len; i += n) {
		s64 a, b, r;

		if (type >= 6) {	/* floats: one element a call */
			union {
				u8 b[4];
				u32 align;
			} d, s;

			memcpy(d.b, dst + i, n);
			memcpy(s.b, src + i, n);
			npuemu_reduce(d.b, s.b, 1, op, type);
			memcpy(dst + i, d.b, n);
			continue;
		}
		a = integer(dst + i, type);
		b = integer(src + i, type);
		r = op == 8 ? (a > b ? a : b) : op == 9 ? (a < b ? a : b) : a + b;
		memcpy(dst + i, &r, n);
	}
}

static void all_types_over_the_wire(void **state)
{
	static const u32 lens[] = { 0, 4, 8, 60, 1000, 65536, 65540, 200000 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_cqe c;
	struct fh_wqe w;
	u32 op, type, read, i, k;

	for (op = 8; op <= 10; op++)
		for (type = 0; type < TYPES; type++)
			for (read = 0; read < 2; read++)
				for (k = 0; k < 2; k++) {
					i = (op * 5 + type * 3 + read + k * 7) % 8;
					fh_watch(fh, WATCH, op + type * 16);
					fh_rma(&w, read ? FH_READ : FH_WRITE, FH_CQE, 4, 8, lens[i]);
					fh_reduce(&w, op, type);
					c = assert_do(f, &w, FH_OK);
					assert_int_equal(c.bytes, lens[i]);
					if (read)
						plain_loop(fh->mine.shadow + 4, fh->theirs.shadow + 8,
							   lens[i], op, type);
					else
						plain_loop(fh->theirs.shadow + 8, fh->mine.shadow + 4,
							   lens[i], op, type);
					assert_memory(fh, WATCH);
				}
}

static void all_types_by_sdma(void **state)
{
	static const u32 lens[] = { 0, 4, 12, 4096, 65536, 65540, 150000 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 op, type, i;

	for (op = 8; op <= 10; op++)
		for (type = 0; type < TYPES; type++) {
			i = (op * 5 + type) % 7;
			fh_watch(fh, WATCH, op + type * 16);
			fh_sdma(&w, FH_SDMA_REDUCE, FH_CQE, FH_VA + 8, FH_VA + 300004, lens[i]);
			fh_put32(&w, 8, op << 4 | type);
			assert_do(f, &w, FH_OK);
			plain_loop(fh->mine.shadow + 8, fh->mine.shadow + 300004, lens[i], op, type);
			assert_memory(fh, WATCH);
		}
}

/* With several SGEs, with a notify, and inline. */
static void other_shapes(void **state)
{
	static const u32 lens[] = { 4, 0, 400, 70000, 8 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 i, at, read;
	u8 data[64];
	u64 one = 1;

	for (read = 0; read < 2; read++) {
		fh_watch(fh, WATCH, 5 + read);
		fh_sqe(&w, read ? FH_READ : FH_WRITE, FH_CQE, 5, FH_PEER_VA + 12);
		for (i = 0, at = 12; i < 5; at += lens[i++]) {
			u8 *m = fh->mine.shadow + 80000 * i, *t = fh->theirs.shadow + at;

			fh_sge(&w, 48 + 16 * i, FH_VA + 80000 * i, lens[i]);
			plain_loop(read ? m : t, read ? t : m, lens[i], 10, 2);
		}
		fh_reduce(&w, 10, 2);
		assert_do(f, &w, FH_OK);
		assert_memory(fh, WATCH);
	}
	fh_notify(&w, FH_CQE, 64, 128, 100000, 200000, 1);
	fh_reduce(&w, 8, 7);
	assert_do(f, &w, FH_OK);
	plain_loop(fh->theirs.shadow + 128, fh->mine.shadow + 64, 100000, 8, 7);
	memcpy(fh->theirs.shadow + 200000, &one, 8);
	assert_memory(fh, WATCH);
	for (i = 0; i < sizeof(data); i++)
		data[i] = (u8)(i * 37);
	fh_inline(&w, FH_WRITE, FH_CQE, 1000, data, sizeof(data));
	fh_reduce(&w, 10, 4);
	assert_do(f, &w, FH_OK);
	plain_loop(fh->theirs.shadow + 1000, data, sizeof(data), 10, 4);
	assert_memory(fh, WATCH);
}

/* A WQE of odd length before it: what the turn has left is no whole element. */
static void turn_with_an_odd_rest(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 type, odd, left;

	for (type = 0; type < TYPES; type++)
		for (odd = 1; odd < 8; odd++)
			for (left = 0; left < 2; left++) {
				u32 first = left ? 65536 - odd : odd;

				fh_watch(fh, WATCH, odd);
				fh_rma(&w, FH_WRITE, 0, 0, 300000, first);
				fh_post(f, &w);
				fh_rma(&w, FH_WRITE, FH_CQE, 4, 8, 140000);
				fh_reduce(&w, 10, type);
				fh_post(f, &w);
				fh_run(f);
				assert_cqe(f, f->pi - 1, FH_OK);
				memcpy(fh->theirs.shadow + 300000, fh->mine.shadow, first);
				plain_loop(fh->theirs.shadow + 8, fh->mine.shadow + 4, 140000, 10,
					   type);
				assert_memory(fh, WATCH);
			}
}

static void sdma_with_an_odd_rest(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 odd, width, i;

	for (odd = 1; odd < 8; odd++)
		for (width = 1; width <= 8; width *= 2) {
			u64 pattern = 0x8877665544332211ull;

			fh_watch(fh, WATCH, odd);
			fh_sdma(&w, FH_SDMA_COPY, 0, FH_VA, FH_VA + 4096, odd);
			fh_post(f, &w);
			fh_sdma(&w, FH_SDMA_FILL, FH_CQE, FH_VA + 8192, pattern, 140000 + odd);
			fh_pitch(&w, 0, width, 0);
			fh_post(f, &w);
			fh_sdma(&w, FH_SDMA_COPY, 0, FH_VA + 16, FH_VA + 4096, odd);
			fh_post(f, &w);
			fh_sdma(&w, FH_SDMA_REDUCE, FH_CQE, FH_VA + 150000, FH_VA + 300000, 140000);
			fh_put32(&w, 8, 10 << 4 | 2);
			fh_post(f, &w);
			fh_run(f);
			assert_cqe(f, f->pi - 3, FH_OK);
			assert_cqe(f, f->pi - 1, FH_OK);
			memcpy(fh->mine.shadow, fh->mine.shadow + 4096, odd);
			memcpy(fh->mine.shadow + 16, fh->mine.shadow + 4096, odd);
			for (i = 0; i < 140000 + odd; i++)
				fh->mine.shadow[8192 + i] = (u8)(pattern >> i % width * 8);
			plain_loop(fh->mine.shadow + 150000, fh->mine.shadow + 300000, 140000, 10, 2);
			assert_memory(fh, WATCH);
		}
}

/* Elements lie at multiples of their size, on both sides. */
static void alignment(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 type, read, a;

	fh_watch(fh, WATCH, 9);
	for (type = 0; type < TYPES; type++)
		for (read = 0; read < 2; read++)
			for (a = 1; a < 4; a++) {
				u32 want = a % bytes_of[type] ? FH_LOC_LEN : FH_OK;
				u32 op = read ? FH_READ : FH_WRITE;

				fh_rma(&w, op, FH_CQE, 64 + a, 64, 8);
				fh_reduce(&w, 9, type);
				if (want)
					assert_refused(f, &w, want);
				fh_rma(&w, op, FH_CQE, 64, 64 + a, 8);
				fh_reduce(&w, 9, type);
				if (want)
					assert_refused(f, &w, want);
				assert_memory(fh, WATCH);
				if (!want) {
					assert_do(f, &w, want);
					fh_watch(fh, WATCH, type);
				}
			}
}

/* Somebody else combines into the buffer: wait; he is dead: go on. */
static void one_at_a_time(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct npuemu_share *share = &fh->theirs.shares[1];
	struct fh_wqe w;
	u32 read;

	for (read = 0; read < 2; read++) {
		share = read ? &fh->mine.shares[0] : &fh->theirs.shares[1];
		fh_watch(fh, WATCH, read);
		fh_rma(&w, read ? FH_READ : FH_WRITE, FH_CQE, 0, 0, 64);
		fh_reduce(&w, 10, 5);
		share->reducer = 0x99;
		fh->others_live = true;
		fh_post(f, &w);
		fh_run(f);
		assert_true(f->waiting);
		fh_turn(f);
		assert_true(f->waiting);
		assert_no_cqe(f);
		assert_memory(fh, WATCH);
		assert_int_equal(share->reducer, 0x99);
		/* plain copies do not care */
		share->reducer = 0;
		fh_turn(f);
		assert_false(f->waiting);
		assert_cqe(f, f->pi - 1, FH_OK);
		assert_int_equal(share->reducer, 0);
		share->reducer = 0x99;
		fh->others_live = false;
		assert_do(f, &w, FH_OK);
		assert_int_equal(share->reducer, 0);
		/* another thread of this process is alive by definition */
		share->reducer = fh->chip.me;
		fh_post(f, &w);
		fh_run(f);
		assert_true(f->waiting);
		assert_int_equal(share->reducer, fh->chip.me);
		share->reducer = 0;
		fh_run(f);
		assert_cqe(f, f->pi - 1, FH_OK);
		share->reducer = 0x99;
		fh->others_live = true;
		fh_rma(&w, read ? FH_READ : FH_WRITE, FH_CQE, 0, 0, 64);
		assert_do(f, &w, FH_OK);
		share->reducer = 0;
	}
}

#define T(name, how)	cmocka_unit_test_setup_teardown(name, how, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_types_over_the_wire, set_up), T(all_types_by_sdma, set_up_sdma),
		T(other_shapes, set_up), T(turn_with_an_odd_rest, set_up),
		T(sdma_with_an_odd_rest, set_up_sdma), T(alignment, set_up),
		T(one_at_a_time, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
