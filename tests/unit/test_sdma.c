// SPDX-License-Identifier: MIT
/*
 * SDMA descriptors: copies, 2D copies, fills and notifies, what overlaps, and
 * what is refused.  All of the arena is compared after each.
 */
#include "fhassert.h"

#define KIB	1024u
#define MIB	(1024u * KIB)
#define WATCH	(256 * KIB)

static int set_up(void **state)
{
	struct fh_queue *f = fh_queue(fh_new(), 64, 128, 1, NULL);

	fh_watch(f->fh, WATCH, 21);
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

static void copies(void **state)
{
	static const u32 lens[] = { 0, 1, 2, 7, 8, 9, 255, 256, 4096, 65535, 65536, 65537, 100000 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_cqe c;
	struct fh_wqe w;
	u32 i, a;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (a = 0; a < 4; a++) {
			fh_sdma(&w, FH_SDMA_COPY, FH_CQE, FH_VA + 130000 + a, FH_VA + 3 * a, lens[i]);
			c = assert_do(f, &w, FH_OK);
			assert_int_equal(c.bytes, lens[i]);
			memcpy(fh->mine.shadow + 130000 + a, fh->mine.shadow + 3 * a, lens[i]);
			assert_memory(fh, WATCH);
		}
	/* from memory that may only be read, never to it */
	memset(fh->ro, 0x5a, 1000);
	fh_sdma(&w, FH_SDMA_COPY, FH_CQE, FH_VA + 99, FH_RO_VA, 1000);
	assert_do(f, &w, FH_OK);
	memset(fh->mine.shadow + 99, 0x5a, 1000);
	fh_sdma(&w, FH_SDMA_COPY, FH_CQE, FH_RO_VA, FH_VA + 99, 1000);
	assert_refused(f, &w, FH_LOC_ACCESS);
	assert_memory(fh, WATCH);
}

static void copies_2d(void **state)
{
	static const struct {
		u32 width, height, dst_pitch, src_pitch;
	} cases[] = {
		{ 0, 5, 8, 8 }, { 5, 0, 8, 8 }, { 1, 1, 1, 1 }, { 16, 10, 16, 16 },
		{ 16, 10, 20, 16 }, { 16, 10, 16, 33 }, { 7, 30, 100, 11 }, { 1, 1000, 2, 3 },
		{ 300, 1, 300, 300 }, { 1000, 99, 1003, 1001 }, { 70000, 1, 70000, 70001 },
		{ 30000, 3, 30001, 30002 },
	};
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_cqe c;
	struct fh_wqe w;
	u32 i, y;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fh_sdma(&w, FH_SDMA_COPY_2D, FH_CQE, FH_VA + 131072, FH_VA + 77, cases[i].width);
		fh_pitch(&w, cases[i].height, cases[i].dst_pitch, cases[i].src_pitch);
		c = assert_do(f, &w, FH_OK);
		assert_int_equal(c.bytes, cases[i].width * cases[i].height);
		for (y = 0; y < cases[i].height; y++)
			memcpy(fh->mine.shadow + 131072 + y * cases[i].dst_pitch,
			       fh->mine.shadow + 77 + y * cases[i].src_pitch, cases[i].width);
		assert_memory(fh, WATCH);
	}
}

static void fills(void **state)
{
	static const u32 lens[] = { 0, 1, 3, 8, 15, 100, 4097, 65536, 65539, 131073 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 i, k, width, a;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (width = 1; width <= 8; width *= 2)
			for (a = 0; a < 3; a++) {
				u64 pattern = 0xa1b2c3d4e5f60718ull + i;

				fh_sdma(&w, FH_SDMA_FILL, FH_CQE, FH_VA + 1000 + a, pattern, lens[i]);
				fh_pitch(&w, 0, width, 0);
				assert_do(f, &w, FH_OK);
				for (k = 0; k < lens[i]; k++)
					fh->mine.shadow[1000 + a + k] =
						(u8)(pattern >> k % width * 8);
				assert_memory(fh, WATCH);
			}
}

static void notifies(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u64 value = 0x1020304050607080ull;
	struct fh_wqe w;

	fh->mine.shares[0].waiters[0] = 2;
	fh_sdma(&w, FH_SDMA_NOTIFY, FH_CQE, FH_VA + 4096, value, 8);
	assert_do(f, &w, FH_OK);
	memcpy(fh->mine.shadow + 4096, &value, 8);
	assert_memory(fh, WATCH);
	assert_int_equal(fh->n.wake, 1);
	/* after a long copy: not before its last byte */
	fh_watch(fh, WATCH, 2);
	fh_sdma(&w, FH_SDMA_COPY, 0, FH_VA + 131072, FH_VA, 130000);
	fh_post(f, &w);
	fh_sdma(&w, FH_SDMA_NOTIFY, FH_CQE, FH_VA + 270000, ++value, 8);
	memset(fh_mine(fh, 270000), 0, 8);
	fh_post(f, &w);
	fh_bell(f);
	for (bool more = true; more;) {
		more = fh_turn(f);
		if (*(u64 *)(void *)fh_mine(fh, 270000) == value)
			assert_memory_equal(fh_mine(fh, 131072), fh->mine.shadow, 130000);
		else
			assert_true(more);
	}
	assert_cqe(f, 2, FH_OK);
}

/* Ranges that overlap have no order to be copied in. */
static void overlaps(void **state)
{
	static const struct {
		u64 dst, src;
		u32 len;
		bool good;
	} cases[] = {
		{ 1000, 1000, 100, true }, { 1000, 1099, 100, false }, { 1000, 1100, 100, true },
		{ 1099, 1000, 100, false }, { 1100, 1000, 100, true }, { 1001, 1000, 100, false },
		{ 1000, 1001, 100, false }, { 1000, 1001, 1, true }, { 1000, 1001, 2, false },
	};
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 i, op;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (op = 0; op < 2; op++) {
			fh_watch(fh, WATCH, i);
			fh_sdma(&w, op ? FH_SDMA_REDUCE : FH_SDMA_COPY, FH_CQE,
				FH_VA + cases[i].dst, FH_VA + cases[i].src, cases[i].len);
			if (op)
				fh_put32(&w, 8, 8 << 4 | 3);	/* maximum of bytes */
			if (!cases[i].good) {
				assert_refused(f, &w, FH_LOC_LEN);
				assert_memory(fh, WATCH);
			} else {
				assert_do(f, &w, FH_OK);
			}
		}
}

/* In 2D it is rows that must not overlap: blocks of columns of one matrix do not. */
static void overlaps_2d(void **state)
{
	static const struct {
		u64 dst, src;
		u32 width, height, dst_pitch, src_pitch;
		bool good;
	} cases[] = {
		{ 1000, 1100, 100, 20, 200, 200, true },	/* right half to left half */
		{ 1100, 1000, 100, 20, 200, 200, true },
		{ 1099, 1000, 100, 20, 200, 200, false },
		{ 1101, 1000, 100, 20, 200, 200, false },	/* into the next row */
		{ 1000, 1101, 100, 20, 200, 200, false },
		{ 1000, 1100, 101, 20, 200, 200, false },
		{ 1050, 1000, 50, 20, 200, 200, true },
		{ 1000, 1000, 100, 20, 200, 200, true },	/* onto itself */
		{ 1000, 1000, 100, 20, 200, 201, false },	/* not quite itself */
		{ 1000, 1000, 100, 1, 200, 300, true },		/* one row: itself */
		{ 1000, 1200, 100, 20, 200, 200, false },	/* one row up */
		{ 1300, 1000, 100, 20, 200, 200, true },	/* column and rows */
		{ 1000, 5000, 100, 20, 200, 200, true },
		{ 1000, 4900, 100, 20, 200, 200, true },
		{ 1000, 4800, 100, 20, 200, 200, false },	/* last row on the first */
		{ 1000, 2000, 10, 20, 100, 30, false },
	};
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 i, y;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fh_watch(fh, WATCH, i);
		fh_sdma(&w, FH_SDMA_COPY_2D, FH_CQE, FH_VA + cases[i].dst, FH_VA + cases[i].src,
			cases[i].width);
		fh_pitch(&w, cases[i].height, cases[i].dst_pitch, cases[i].src_pitch);
		if (!cases[i].good) {
			assert_refused(f, &w, FH_LOC_LEN);
		} else {
			assert_do(f, &w, FH_OK);
			for (y = 0; y < cases[i].height; y++)
				memmove(fh->mine.shadow + cases[i].dst + y * cases[i].dst_pitch,
					fh->mine.shadow + cases[i].src + y * cases[i].src_pitch,
					cases[i].width);
		}
		assert_memory(fh, WATCH);
	}
}

/* Places outside, in each operand and each operation: nothing is written. */
static void outside(void **state)
{
	static const u64 bad[] = {
		0, 4096, FH_VA - 1, FH_VA + FH_ARENA_BYTES - 7, FH_VA + FH_ARENA_BYTES,
		FH_PEER_VA, ~0ull - 7, ~0ull - 8,
	};
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i, op, side;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		for (op = FH_SDMA_COPY; op <= FH_SDMA_NOTIFY; op++)
			for (side = 0; side < 2; side++) {
				u64 at = op == FH_SDMA_NOTIFY ? bad[i] & ~7ull : bad[i];

				if (side && (op == FH_SDMA_FILL || op == FH_SDMA_NOTIFY))
					continue;
				if (at == FH_VA + FH_ARENA_BYTES - 8)
					continue;
				fh_sdma(&w, op, FH_CQE, side ? FH_VA : at, side ? at : FH_VA, 8);
				if (op == FH_SDMA_COPY_2D)
					fh_pitch(&w, 2, 8, 8);
				if (op == FH_SDMA_FILL)
					fh_pitch(&w, 0, 8, 0);
				if (op == FH_SDMA_REDUCE)
					fh_put32(&w, 8, 8 << 4);
				assert_refused(f, &w, FH_LOC_ACCESS);
				assert_memory(f->fh, WATCH);
			}
	/* lengths beyond any memory */
	for (op = FH_SDMA_COPY; op <= FH_SDMA_FILL; op++) {
		fh_sdma(&w, op, FH_CQE, FH_VA, FH_VA + MIB,
			op == FH_SDMA_COPY_2D ? 0x7fffffff : ~0ull);
		if (op == FH_SDMA_COPY_2D)
			fh_pitch(&w, ~0u, 0x7fffffff, 0x7fffffff);
		if (op == FH_SDMA_FILL)
			fh_pitch(&w, 0, 8, 0);
		assert_refused(f, &w, FH_LOC_ACCESS);
		assert_memory(f->fh, WATCH);
	}
}

static void nop(void **state)
{
	struct fh_queue *f = *state;
	struct fh_cqe c;
	struct fh_wqe w;

	fh_sdma(&w, FH_SDMA_NOP, FH_CQE, 0, ~0ull, ~0ull);
	c = assert_do(f, &w, FH_OK);
	assert_int_equal(c.bytes, 0);
	assert_memory(f->fh, WATCH);
}

#define T(name)	cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(copies), T(copies_2d), T(fills), T(notifies), T(overlaps), T(overlaps_2d),
		T(outside), T(nop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
