// SPDX-License-Identifier: MIT
/*
 * Memory that comes in chunks of 2 MiB, each somewhere else: what lies across the
 * ends of chunks, at either side or both, at odd offsets.  Chunks lie between pages
 * nobody may touch, and after each WQE all of both arenas is compared with what a
 * plain loop over linear memory makes of it.
 */
#include "fhassert.h"

#define KIB	1024ull
#define MIB	(1024 * KIB)
#define END	(2 * MIB)	/* of the first chunk */
#define WATCH	(6 * MIB)

static struct fh_queue *queue(u32 type, bool backed)
{
	struct fh_queue *f = fh_queue(fh_new_small(WATCH), 64, 128, type, NULL);

	fh_chunked(f->fh, backed);
	fh_watch(f->fh, WATCH, 17);
	return f;
}

static int set_up(void **state)
{
	*state = queue(0, true);
	return 0;
}

static int set_up_long(void **state)
{
	struct fh_queue *f = queue(0, true);

	f->fh->chip.trace = true;
	*state = f;
	return 0;
}

static int set_up_lazy(void **state)
{
	*state = queue(0, false);
	return 0;
}

static int set_up_sdma(void **state)
{
	*state = queue(1, true);
	return 0;
}

static int set_up_sdma_lazy(void **state)
{
	*state = queue(1, false);
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

/* How far before the end of a chunk something starts; what is shorter ends there. */
static const u32 before[] = { 0, 1, 3, 8, 15, 16, 4099, 70001 };
static const u32 lens[] = { 1, 2, 8, 16, 17, 300, 8191, 140003 };
#define N(a)	(sizeof(a) / sizeof((a)[0]))

/* One WRITE or READ, from one offset to the other. */
static void move(struct fh_queue *f, u32 op, u64 mine, u64 theirs, u32 len)
{
	struct fakehost *fh = f->fh;
	struct fh_cqe c;
	struct fh_wqe w;

	fh_rma(&w, op, FH_CQE, mine, theirs, len);
	c = assert_do(f, &w, FH_OK);
	assert_int_equal(c.bytes, len);
	if (op == FH_READ)
		memcpy(fh->mine.shadow + mine, fh->theirs.shadow + theirs, len);
	else
		memcpy(fh->theirs.shadow + theirs, fh->mine.shadow + mine, len);
	assert_memory(fh, WATCH);
}

static void writes_and_reads(void **state)
{
	u32 a, b, l;

	for (l = 0; l < N(lens); l++)
		for (a = 0; a < N(before); a++)
			for (b = 0; b < N(before); b += 1 + l % 2) {
				move(*state, (a + b) % 2 ? FH_READ : FH_WRITE,
				     END - before[a], 2 * END - before[b], lens[l]);
			}
}

/* More than a chunk: several ends in one WQE, the two sides out of step. */
static void long_ones(void **state)
{
	move(*state, FH_WRITE, 3, 5, 4 * MIB + 123456);
	move(*state, FH_READ, 77, END - 9, 3 * MIB + 1);
	move(*state, FH_WRITE, END - 1, END - 2, END + 3);
	move(*state, FH_READ, 0, 0, WATCH);
	move(*state, FH_WRITE, WATCH - 1, WATCH - 1, 1);
}

/* Payload in several SGEs, each of them across an end. */
static void several_sges(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u32 i, op, at, len;
	struct fh_wqe w;

	for (op = 0; op < 2; op++) {
		fh_sqe(&w, op ? FH_READ : FH_WRITE, FH_CQE, 6, FH_PEER_VA + END - 1001);
		for (i = at = 0; i < 6; i++, at += len) {
			u64 mine = (1 + i % 2) * END - 150 * (i + 1) - 1;
			u8 *m = fh->mine.shadow + mine, *t = fh->theirs.shadow + END - 1001 + at;

			/* from ranges that may overlap, to ranges that do not */
			len = op ? 151 + i : 301 * (i + 1);
			fh_sge(&w, 48 + 16 * i, FH_VA + mine, len);
			memcpy(op ? m : t, op ? t : m, len);
		}
		assert_do(f, &w, FH_OK);
		assert_memory(fh, WATCH);
	}
}

/* What follows a payload that lies across ends, at either side of one. */
static void after_words(void **state)
{
	static const u64 words[] = { END - 8, END, 2 * END - 8, 2 * END, 0, WATCH - 8 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u64 v;
	u32 i;

	for (i = 0; i < N(words); i++) {
		u64 from = 2 * END - 50001, to = END - 100000;

		v = 0x1122334455667788ull + i;
		fh_notify(&w, FH_CQE, from, to, 90001, words[i], v);
		assert_do(f, &w, FH_OK);
		memcpy(fh->theirs.shadow + to, fh->mine.shadow + from, 90001);
		memcpy(fh->theirs.shadow + words[i], &v, 8);
		assert_memory(fh, WATCH);
		to = END - 33;
		fh_write_add(&w, FH_CQE, from, to, 50007, words[i], 5);
		assert_do(f, &w, FH_OK);
		memcpy(fh->theirs.shadow + to, fh->mine.shadow + from, 50007);
		memcpy(&v, fh->theirs.shadow + words[i], 8);
		v += 5;
		memcpy(fh->theirs.shadow + words[i], &v, 8);
		assert_memory(fh, WATCH);
	}
}

/* dst += src, elements of @size bytes. */
static void add(u8 *dst, const u8 *src, u32 len, u32 size)
{
	u32 i, a, b;

	for (i = 0; i < len; i += size) {
		a = 0;
		b = 0;
		memcpy(&a, dst + i, size);
		memcpy(&b, src + i, size);
		a += b;
		memcpy(dst + i, &a, size);
	}
}

static void reductions(void **state)
{
	static const u32 counts[] = { 1, 2, 5, 64, 25001 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u32 type, n, a, b;
	struct fh_wqe w;

	for (type = 0; type < 3; type++)
		for (n = 0; n < N(counts); n++)
			for (a = 0; a < 3; a++)
				for (b = 0; b < 3; b++) {
					u32 size = 1u << type, len = counts[n] * size;
					u64 m = END - a * size * 3, t = 2 * END - b * size * 17;
					u8 *ms = fh->mine.shadow + m, *ts = fh->theirs.shadow + t;
					bool read = (a + n) % 2;

					fh_rma(&w, read ? FH_READ : FH_WRITE, FH_CQE, m, t, len);
					fh_reduce(&w, 10, type);
					assert_do(f, &w, FH_OK);
					add(read ? ms : ts, read ? ts : ms, len, size);
					assert_memory(fh, WATCH);
				}
}

/* The result's place may be odd, and so lie across an end; the word may not. */
static void atomics(void **state)
{
	static const u64 words[] = { END - 16, END, 2 * END };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u32 len, by, i;

	for (len = 4; len <= 16; len *= 2)
		for (by = 0; by <= len; by++)
			for (i = 0; i < N(words); i++) {
				u8 *word = fh->theirs.shadow + words[i], swap[16];
				u64 mine = END - by, v = 0;
				struct fh_wqe w;

				if (len == 16 || by % 2) {
					memset(swap, (int)(by + i + len), 16);
					fh_cas(&w, FH_CQE, mine, words[i], len, swap, word);
					memcpy(fh->mine.shadow + mine, word, len);
					memcpy(word, swap, len);
				} else {
					fh_faa(&w, FH_CQE, mine, words[i], len, 0x1234567);
					memcpy(fh->mine.shadow + mine, word, len);
					memcpy(&v, word, len);
					v += 0x1234567;
					memcpy(word, &v, len);
				}
				assert_do(f, &w, FH_OK);
				assert_memory(fh, WATCH);
			}
}

/* Runs of like WQEs that walk over ends: the short way takes what lies in one chunk. */
static void runs(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 i, k;

	for (k = 0; k < 40; k++) {
		for (i = 0; i < 32; i++) {
			u64 at = (k * 32 + i) * 31, m = END - 20000 + at, t = 2 * END - 15000 + at;

			fh_rma(&w, k % 2 ? FH_READ : FH_WRITE, i == 31 ? FH_CQE : 0, m, t, 31);
			fh_post(f, &w);
			if (k % 2)
				memcpy(fh->mine.shadow + m, fh->theirs.shadow + t, 31);
			else
				memcpy(fh->theirs.shadow + t, fh->mine.shadow + m, 31);
		}
		fh_run(f);
		assert_cqe(f, f->pi - 1, FH_OK);
		assert_memory(fh, WATCH);
		if (!fh->chip.trace)
			assert_int_equal(f->q.plain.len, 31);
	}
}

/* ---- Backing ---------------------------------------------------------------- */

/* Chunks are backed as pieces come to them, no others, and are zero. */
static void lazily(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u8 data[200];
	struct fh_wqe w;

	memset(data, 0x77, sizeof(data));
	fh_inline(&w, FH_WRITE, FH_CQE, END - 99, data, 200);
	assert_do(f, &w, FH_OK);
	memset(fh->theirs.shadow + END - 99, 0x77, 200);
	assert_memory(fh, WATCH);
	assert_int_equal(fh->n.back, 2);
	assert_null(fh->theirs.chunks[2]);
	assert_null(fh->mine.chunks[0]);
	/* back to us: of ours only what is written comes */
	fh_rma(&w, FH_READ, FH_CQE, 2 * END - 101, END - 150, 300);
	assert_do(f, &w, FH_OK);
	memcpy(fh->mine.shadow + 2 * END - 101, fh->theirs.shadow + END - 150, 300);
	assert_memory(fh, WATCH);
	assert_int_equal(fh->n.back, 4);
	assert_null(fh->mine.chunks[0]);
	assert_null(fh->theirs.chunks[2]);
	/* a word of it */
	fh_faa(&w, FH_CQE, END - 3, 2 * END, 8, 9);
	assert_do(f, &w, FH_OK);
	fh->theirs.shadow[2 * END] = 9;
	assert_memory(fh, WATCH);
	assert_int_equal(fh->n.back, 6);
	/* all is there now: nobody is asked again, and the short way opens */
	fh_rma(&w, FH_WRITE, FH_CQE, 2 * END - 4000, 2 * END - 2000, 4000);
	assert_do(f, &w, FH_OK);
	assert_int_equal(fh->n.back, 6);
}

/* Memory runs out on the way, at either side. */
static void out_of_memory(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;

	fh->back_left = 2;	/* the first of ours, the first of theirs */
	fh_rma(&w, FH_WRITE, FH_CQE, END - 100, END - 50, 1000);
	assert_refused(f, &w, FH_REM_ACCESS);
	assert_memory(fh, WATCH);
	fh->back_left = 1;	/* their second; our second is missing */
	assert_refused(f, &w, FH_LOC_ACCESS);
	assert_memory(fh, WATCH);
	fh->back_left = 0;	/* an atomic that has no room for its answer */
	fh_faa(&w, FH_CQE, END - 1, 0, 8, 1);
	assert_refused(f, &w, FH_LOC_ACCESS);
	assert_memory(fh, WATCH);
	fh->back_left = -1;
	assert_do(f, &w, FH_OK);
}

/* A bad far side is found before the first of several pieces moves. */
static void nothing_moves(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;

	fh_segment(fh, 2, END, 4096, FH_RWA, 5);
	fh_rma(&w, FH_WRITE, FH_CQE, END - 100, END + 3900, 200);
	fh_token(&w, 0x5002, 5);
	assert_refused(f, &w, FH_REM_ACCESS);
	assert_memory(fh, WATCH);
	/* and a bad near side */
	fh->mine_from = END - 100;
	fh->chip.epoch++;
	fh_rma(&w, FH_READ, FH_CQE, END - 101, END - 50, 200);
	assert_refused(f, &w, FH_LOC_ACCESS);
	assert_memory(fh, WATCH);
}

/* ---- SDMA ------------------------------------------------------------------- */

static void sdma_copies(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 a, b, l;

	for (l = 0; l < N(lens); l++)
		for (a = 0; a < N(before); a++)
			for (b = 0; b < N(before); b += 1 + l % 3) {
				u64 to = END - before[a], from = 2 * END - before[b];

				fh_sdma(&w, FH_SDMA_COPY, FH_CQE, FH_VA + to, FH_VA + from,
					lens[l]);
				assert_do(f, &w, FH_OK);
				memcpy(fh->mine.shadow + to, fh->mine.shadow + from, lens[l]);
				assert_memory(fh, WATCH);
			}
}

static void sdma_2d(void **state)
{
	static const struct {
		u32 width, height, dst_pitch, src_pitch;
	} cases[] = {
		{ 1, 5000, 3, 7 }, { 100, 300, 131, 173 }, { 4096, 40, 4096, 5000 },
		{ 70001, 9, 80003, 70001 },
	};
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 i, y, k;

	for (i = 0; i < N(cases); i++)
		for (k = 0; k < 4; k++) {
			u64 to = END - cases[i].dst_pitch * (cases[i].height / 2) - k % 2 * 13;
			u64 from = 2 * END - cases[i].src_pitch * (cases[i].height / 2) - k / 2 * 7;

			fh_sdma(&w, FH_SDMA_COPY_2D, FH_CQE, FH_VA + to, FH_VA + from,
				cases[i].width);
			fh_pitch(&w, cases[i].height, cases[i].dst_pitch, cases[i].src_pitch);
			assert_do(f, &w, FH_OK);
			for (y = 0; y < cases[i].height; y++)
				memcpy(fh->mine.shadow + to + y * cases[i].dst_pitch,
				       fh->mine.shadow + from + y * cases[i].src_pitch,
				       cases[i].width);
			assert_memory(fh, WATCH);
		}
}

/* The pattern goes on where it was when the chunk ended. */
static void sdma_fills(void **state)
{
	static const u32 fill_lens[] = { 1, 7, 16, 33, 100000, 4194307 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u32 width, l, by, i;
	struct fh_wqe w;

	for (l = 0; l < N(fill_lens); l++)
		for (width = 1; width <= 8; width *= 2)
			for (by = 0; by < 18; by += 1 + l / 2) {
				u64 pattern = 0xa1b2c3d4e5f60718ull + by;

				fh_sdma(&w, FH_SDMA_FILL, FH_CQE, FH_VA + END - by, pattern,
					fill_lens[l]);
				fh_pitch(&w, 0, width, 0);
				if (END - by + fill_lens[l] > WATCH)
					continue;
				assert_do(f, &w, FH_OK);
				for (i = 0; i < fill_lens[l]; i++)
					fh->mine.shadow[END - by + i] =
						(u8)(pattern >> i % width * 8);
				assert_memory(fh, WATCH);
			}
}

static void sdma_rest(void **state)
{
	static const u64 words[] = { END - 8, END, WATCH - 8 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u64 v = 0x8899aabbccddeeffull;
	u32 type, a, b, i;
	struct fh_wqe w;

	for (type = 0; type < 3; type++)
		for (a = 0; a < 4; a++)
			for (b = 0; b < 4; b++) {
				u64 to = END - (a << type) * 5, from = 2 * END - (b << type) * 333;

				fh_sdma(&w, FH_SDMA_REDUCE, FH_CQE, FH_VA + to, FH_VA + from,
					120000);
				fh_put32(&w, 8, 10 << 4 | type);
				assert_do(f, &w, FH_OK);
				add(fh->mine.shadow + to, fh->mine.shadow + from, 120000,
				    1u << type);
				assert_memory(fh, WATCH);
			}
	/* off its elements by address, whatever the chunk's own address is */
	fh_sdma(&w, FH_SDMA_REDUCE, FH_CQE, FH_VA + END - 6, FH_VA, 400);
	fh_put32(&w, 8, 10 << 4 | 2);
	assert_refused(f, &w, FH_LOC_LEN);
	for (i = 0; i < N(words); i++) {
		fh_sdma(&w, FH_SDMA_NOTIFY, FH_CQE, FH_VA + words[i], v, 8);
		assert_do(f, &w, FH_OK);
		memcpy(fh->mine.shadow + words[i], &v, 8);
		assert_memory(fh, WATCH);
	}
}

static void sdma_lazily(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;

	fh_sdma(&w, FH_SDMA_FILL, FH_CQE, FH_VA + 2 * END - 5, 0x5a, 10);
	fh_pitch(&w, 0, 1, 0);
	assert_do(f, &w, FH_OK);
	memset(fh->mine.shadow + 2 * END - 5, 0x5a, 10);
	assert_memory(fh, WATCH);
	assert_int_equal(fh->n.back, 2);
	assert_null(fh->mine.chunks[0]);
	fh_sdma(&w, FH_SDMA_COPY, FH_CQE, FH_VA + END - 2, FH_VA + 2 * END - 7, 14);
	assert_do(f, &w, FH_OK);
	memcpy(fh->mine.shadow + END - 2, fh->mine.shadow + 2 * END - 7, 14);
	assert_memory(fh, WATCH);
	assert_int_equal(fh->n.back, 3);
	fh_sdma(&w, FH_SDMA_NOTIFY, FH_CQE, FH_VA, 3, 8);
	assert_do(f, &w, FH_OK);
	fh->mine.shadow[0] = 3;
	assert_memory(fh, WATCH);
}

/* ---- Chaos ------------------------------------------------------------------ */

/* Pieces of random length, of which about half of the WQEs start from the end. */
static void chaos(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u64 seed = 99, m, t, len;
	struct fh_wqe w;
	u32 i, k;

	for (i = 0; i < 60; i++) {
		fh_chaos(f, i + 1);
		for (k = 0; k < 6; k++) {
			/* one after the other in memory, so that any order is right */
			m = END - 100000 + k * 40000 + fh_random(&seed) % 100;
			t = 2 * END - 100000 + k * 40000 + fh_random(&seed) % 100;
			len = fh_random(&seed) % 39000 + 1;
			fh_rma(&w, i % 2 ? FH_READ : FH_WRITE, FH_CQE, m, t, (u32)len);
			fh_post(f, &w);
			if (i % 2)
				memcpy(fh->mine.shadow + m, fh->theirs.shadow + t, len);
			else
				memcpy(fh->theirs.shadow + t, fh->mine.shadow + m, len);
		}
		fh_run(f);
		for (k = 0; k < 6; k++)
			assert_cqe(f, f->pi - 6 + k, FH_OK);
		assert_memory(fh, WATCH);
	}
}

#define WITH(name, up)	cmocka_unit_test_setup_teardown(name, up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(writes_and_reads), BOTH_WAYS(long_ones), BOTH_WAYS(several_sges),
		BOTH_WAYS(after_words), BOTH_WAYS(reductions), BOTH_WAYS(atomics),
		BOTH_WAYS(runs),
		WITH(lazily, set_up_lazy), WITH(out_of_memory, set_up_lazy),
		WITH(nothing_moves, set_up), WITH(sdma_copies, set_up_sdma),
		WITH(sdma_2d, set_up_sdma), WITH(sdma_fills, set_up_sdma),
		WITH(sdma_rest, set_up_sdma), WITH(sdma_lazily, set_up_sdma_lazy),
		WITH(chaos, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
