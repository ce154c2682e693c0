// SPDX-License-Identifier: MIT
/*
 * From an address to a place: tokens, ranges and rights of a peer's segment, what
 * happens when the owner rotates, takes away, damages or dies, local ranges, and
 * memory that is backed late or not at all.
 */
#include "fhassert.h"

#define WATCH	65536u
#define SEG	2u		/* a second segment, small */
#define SEG_ID	0x5002u
#define OFF	8192u
#define LEN	4096u

static int set_up(void **state)
{
	struct fh_queue *f = fh_queue(fh_new(), 64, 128, 0, NULL);

	fh_watch(f->fh, WATCH, 5);
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

enum { DO_WRITE, DO_READ, DO_FAA, DO_CAS, DO_NOTIFY, DO_ADD, DO_REDUCE, DO_READ_REDUCE,
	DO_INLINE, DO_KINDS };

/* A good WQE of each kind, 8 bytes at @off of the peer's arena, with @id, @value. */
static void make(struct fh_wqe *w, u32 kind, u64 off, u32 id, u32 value)
{
	u64 zero = 0;

	switch (kind) {
	case DO_WRITE:
	case DO_READ:
		fh_rma(w, kind == DO_READ ? FH_READ : FH_WRITE, FH_CQE, 0, off, 8);
		break;
	case DO_FAA:
		fh_faa(w, FH_CQE, 0, off, 8, 1);
		break;
	case DO_CAS:
		fh_cas(w, FH_CQE, 0, off, 8, &zero, &zero);
		break;
	case DO_NOTIFY:
		fh_notify(w, FH_CQE, 0, off, 8, off, 1);
		fh_put32(w, 48, id);
		fh_put32(w, 52, value);
		break;
	case DO_ADD:
		fh_write_add(w, FH_CQE, 0, off, 8, off, 1);
		fh_put32(w, 12, id | 8u << 20);
		fh_put32(w, 20, value);
		fh_put32(w, 32, value);
		fh_put32(w, 36, id);
		return;
	case DO_REDUCE:
	case DO_READ_REDUCE:
		fh_rma(w, kind == DO_READ_REDUCE ? FH_READ : FH_WRITE, FH_CQE, 0, off, 8);
		fh_reduce(w, 10, 2);
		break;
	default:
		fh_inline(w, FH_WRITE, FH_CQE, off, &zero, 8);
		break;
	}
	fh_token(w, id, value);
}

/* The right of the set that a kind of WQE needs: a bit of R 2, W 4, A 8. */
static const u32 needs[DO_KINDS] = {
	[DO_WRITE] = 4, [DO_READ] = 2, [DO_FAA] = 8, [DO_CAS] = 8, [DO_NOTIFY] = 4,
	[DO_ADD] = 12, [DO_REDUCE] = 4, [DO_READ_REDUCE] = 2, [DO_INLINE] = 4,
};

/* The four legal sets; nothing but what the set has is allowed. */
static void rights(void **state)
{
	static const u32 sets[] = { FH_LOCAL_ONLY, FH_R, FH_RW, FH_RWA };
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i, kind, round;

	for (i = 0; i < 4; i++) {
		fh_segment(f->fh, SEG, OFF, LEN, sets[i], 99);
		for (kind = 0; kind < DO_KINDS; kind++)
			for (round = 0; round < 2; round++) {	/* cached, too */
				bool may = (sets[i] & needs[kind]) == needs[kind];

				make(&w, kind, OFF, SEG_ID, 99);
				if (may)
					assert_do(f, &w, FH_OK);
				else
					assert_refused(f, &w, FH_REM_ACCESS);
			}
		/* a right taken away from a queue that had it */
		if (sets[i] == FH_LOCAL_ONLY)
			continue;
		make(&w, DO_READ, OFF, SEG_ID, 99);
		assert_do(f, &w, FH_OK);
		fh_segment(f->fh, SEG, OFF, LEN, FH_LOCAL_ONLY, 99);
		assert_refused(f, &w, FH_REM_ACCESS);
	}
}

static void token_value(void **state)
{
	static const u32 wrong[] = { 0, 98, 99 | 1u << 31, ~0u };
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 kind, i;

	fh_segment(f->fh, SEG, OFF, LEN, FH_RWA, 99);
	for (kind = 0; kind < DO_KINDS; kind++) {
		make(&w, kind, OFF, SEG_ID, 99);
		assert_do(f, &w, FH_OK);
		for (i = 0; i < 4; i++) {
			make(&w, kind, OFF, SEG_ID, wrong[i]);
			assert_refused(f, &w, FH_REM_ACCESS);
		}
		/* not shown at all */
		make(&w, kind, OFF, SEG_ID, 99);
		fh_put32(&w, 0, FH_CQE | (fh_get32(&w, 0) & (FH_INLINE | FH_UDF)));
		assert_refused(f, &w, FH_REM_ACCESS);
		/* the second word's own token */
		make(&w, kind, OFF, SEG_ID, 99);
		if (kind == DO_NOTIFY)
			fh_put32(&w, 52, 98);
		else if (kind == DO_ADD)
			fh_put32(&w, 32, 98);
		else
			continue;
		assert_refused(f, &w, FH_REM_ACCESS);
	}
	/* a segment without a token asks for none */
	fh_segment(f->fh, SEG, OFF, LEN, FH_RWA | FH_NO_TOKEN, 99);
	for (kind = 0; kind < DO_KINDS; kind++) {
		make(&w, kind, OFF, SEG_ID, 0);
		fh_put32(&w, 0, FH_CQE | (fh_get32(&w, 0) & (FH_INLINE | FH_UDF)));
		assert_do(f, &w, FH_OK);
	}
}

static void token_id(void **state)
{
	/* unknown: no such record, no such index, the record's id is another */
	static const u32 wrong[] = { 0, 0x5003, 0x5fff, 0x6002, 0x1002, 0xf5002, 2 };
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 kind, i;

	fh_segment(f->fh, SEG, OFF, LEN, FH_RWA, 99);
	for (kind = 0; kind < DO_KINDS; kind++) {
		for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
			make(&w, kind, OFF, wrong[i], 99);
			assert_refused(f, &w, FH_REM_ACCESS);
		}
		/* bits above the 20 of an id are somebody else's */
		make(&w, kind, OFF, SEG_ID, 99);
		if (kind == DO_NOTIFY)
			fh_put32(&w, 48, SEG_ID | 0xfff00000);
		if (kind != DO_ADD)
			fh_put32(&w, 12, SEG_ID | 0xfff00000);
		assert_do(f, &w, FH_OK);
	}
}

static void range(void **state)
{
	static const struct {
		s64 at;		/* from the segment's start */
		u32 len;
		bool good;
	} cases[] = {
		{ 0, 8, true }, { 0, LEN, true }, { LEN - 8, 8, true }, { LEN - 1, 1, true },
		{ LEN, 0, true }, { 0, 0, true }, { 1, LEN - 1, true },
		{ -1, 8, false }, { -8, 8, false }, { -1, 0, false }, { LEN - 7, 8, false },
		{ LEN, 1, false }, { LEN + 1, 0, false }, { LEN + 1, 8, false },
		{ 0, LEN + 1, false }, { 1, LEN, false }, { 0, 4 << 20, false }, { 8, 4 << 20, false },
		{ -(s64)(FH_PEER_VA + OFF), 8, false }, { INT64_MAX, 8, false },
		{ -(s64)(FH_PEER_VA + OFF) - 8, 8, false },
	};
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i, op, warm;

	fh_segment(f->fh, SEG, OFF, LEN, FH_RWA, 99);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (op = 0; op < 2; op++)
			for (warm = 0; warm < 4; warm++) {
				u32 fop = op ? FH_READ : FH_WRITE, k;

				/* places known, and a run of like WQEs under way */
				for (k = 0; k < warm; k++) {
					fh_rma(&w, fop, FH_CQE, 0, OFF,
					       cases[i].len <= LEN ? cases[i].len : 8);
					fh_token(&w, SEG_ID, 99);
					assert_do(f, &w, FH_OK);
				}
				fh_watch(f->fh, WATCH, 6);
				fh_rma(&w, fop, FH_CQE, 0, OFF + (u64)cases[i].at, cases[i].len);
				fh_token(&w, SEG_ID, 99);
				if (!cases[i].good) {
					assert_refused(f, &w, FH_REM_ACCESS);
				} else {
					u64 at = OFF + (u64)cases[i].at;

					assert_do(f, &w, FH_OK);
					if (op)
						memcpy(f->fh->mine.shadow, f->fh->theirs.shadow + at,
						       cases[i].len);
					else
						memcpy(f->fh->theirs.shadow + at, f->fh->mine.shadow,
						       cases[i].len);
				}
				assert_memory(f->fh, WATCH);
			}
}

/* The word behind the payload is checked, too, before anything is moved. */
static void second_word(void **state)
{
	static const s64 at[] = { -8, LEN, LEN + 8, -(s64)(FH_PEER_VA + OFF) };
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i;

	fh_segment(f->fh, SEG, OFF, LEN, FH_RWA, 99);
	for (i = 0; i < 4; i++) {
		make(&w, DO_NOTIFY, OFF, SEG_ID, 99);
		fh_put64(&w, 56, FH_PEER_VA + OFF + (u64)at[i]);
		assert_refused(f, &w, FH_REM_ACCESS);
		make(&w, DO_ADD, OFF, SEG_ID, 99);
		fh_put64(&w, 40, FH_PEER_VA + OFF + (u64)at[i]);
		assert_refused(f, &w, FH_REM_ACCESS);
		assert_memory(f->fh, WATCH);
	}
}

/* The owner does something while the queue knows the segment. */
static void owner_acts(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 peers, kind;

	for (kind = 0; kind < DO_KINDS; kind++) {
		fh_segment(fh, SEG, OFF, LEN, FH_RWA, 99);
		make(&w, kind, OFF, SEG_ID, 99);
		assert_do(f, &w, FH_OK);
		peers = fh->n.peer;
		assert_do(f, &w, FH_OK);
		if (kind != DO_ADD && kind != DO_NOTIFY)
			assert_int_equal(fh->n.peer, peers);	/* remembered */
		fh_segment_rotate(fh, SEG, 100);
		assert_refused(f, &w, FH_REM_ACCESS);
		make(&w, kind, OFF, SEG_ID, 100);
		assert_do(f, &w, FH_OK);
		fh_segment_gone(fh, SEG);
		assert_refused(f, &w, FH_REM_ACCESS);
		/* the place is given to somebody else */
		fh_segment(fh, SEG, OFF, LEN, FH_RWA, 100);
		fh->segs[SEG].token_id = 0x7002;
		assert_refused(f, &w, FH_REM_ACCESS);
		/* caught in the middle of a change, for good */
		fh_segment(fh, SEG, OFF, LEN, FH_RWA, 100);
		assert_do(f, &w, FH_OK);
		fh->segs[SEG].seq |= 1;
		assert_refused(f, &w, FH_REM_ACCESS);
		fh->segs[SEG].seq = 0;
		/* dead, and nobody at all */
		fh_segment(fh, SEG, OFF, LEN, FH_RWA, 100);
		assert_do(f, &w, FH_OK);
		fh->life++;
		assert_refused(f, &w, FH_TIMEOUT);
		assert_refused(f, &w, FH_TIMEOUT);
		fh->life--;
		assert_do(f, &w, FH_OK);
		/* the host says: look again at everything */
		peers = fh->n.peer;
		fh->chip.epoch++;
		assert_do(f, &w, FH_OK);
		assert_true(fh->n.peer > peers);
		fh->chip.epoch++;
		fh->out_of_reach = true;
		assert_refused(f, &w, FH_TIMEOUT);
		/* what is wrong behind a token is no business of who does not have it */
		make(&w, kind, 0, FH_TOKEN_ID, FH_TOKEN_VALUE + 1);
		assert_refused(f, &w, FH_REM_ACCESS);
		make(&w, kind, 0, FH_TOKEN_ID, FH_TOKEN_VALUE);
		assert_refused(f, &w, FH_TIMEOUT);
		fh->out_of_reach = false;
	}
}

static void unknown_endpoint(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i, kind;

	for (kind = 0; kind < DO_KINDS; kind++)
		for (i = 0; i < 128; i += 5) {
			if (kind == DO_ADD && i < 96)	/* carries the last dword only */
				continue;
			make(&w, kind, 0, FH_TOKEN_ID, FH_TOKEN_VALUE);
			assert_do(f, &w, FH_OK);
			if (kind == DO_ADD)
				fh_put32(&w, 16, fh_get32(&w, 16) ^ 1u << (i - 96));
			else
				fh_put32(&w, 16 + i / 32 * 4,
					 fh_get32(&w, 16 + i / 32 * 4) ^ 1u << (i % 32));
			assert_refused(f, &w, FH_TIMEOUT);
		}
}

static void damaged_record(void **state)
{
	struct fh_queue *f = *state;
	struct npuemu_seg_rec *r = &f->fh->segs[SEG], good;
	struct fh_wqe w;
	u32 i, kind;

	fh_segment(f->fh, SEG, OFF, LEN, FH_RWA, 99);
	good = *r;
	for (i = 0; i < 13; i++)
		for (kind = 0; kind < DO_KINDS; kind++) {
			u32 want = FH_REM_ACCESS, seq = r->seq + 2;

			*r = good;
			switch (i) {
			case 0:
				r->len = FH_ARENA_BYTES + 1;
				break;
			case 1:
				r->off = FH_ARENA_BYTES;
				break;
			case 2:
				r->off = FH_ARENA_BYTES - LEN + 1;
				break;
			case 3:
				r->off = ~0ull;
				break;
			case 4:
				r->len = ~0ull;
				break;
			case 5:
				r->va = ~0ull - 10;
				break;
			case 6:
				r->buf = FH_SHARES;
				break;
			case 7:
				r->buf = ~0u;
				break;
			case 8:
				r->off = ~0ull - LEN + 2;
				break;
			case 9:
				r->device = 2;	/* not the endpoint's */
				break;
			case 10:
				r->device = NPUEMU_MAX_DEVICES;
				break;
			case 11:
				r->off++;	/* words would not be aligned */
				break;
			default:
				r->off += 8;	/* nor 16-byte ones */
				break;
			}
			r->seq = seq;
			make(&w, kind, OFF, SEG_ID, 99);
			assert_refused(f, &w, want);
		}
	assert_memory(f->fh, WATCH);
}

static void local_ranges(void **state)
{
	static const u64 bad[] = {
		0, 0x1000, FH_VA - 8, FH_VA - 1, FH_VA + FH_ARENA_BYTES - 7, FH_VA + FH_ARENA_BYTES,
		FH_PEER_VA, ~0ull, ~0ull - 6, FH_RO_VA + FH_RO_BYTES - 7,
	};
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i, kind, warm, va;

	for (kind = 0; kind < DO_KINDS; kind++)
		for (i = 0; i <= sizeof(bad) / sizeof(bad[0]); i++)
			for (warm = 0; warm < 4 && kind != DO_INLINE; warm++) {
				u32 k;
				bool ro = i == sizeof(bad) / sizeof(bad[0]);
				bool writes = kind == DO_READ || kind == DO_FAA ||
					      kind == DO_CAS || kind == DO_READ_REDUCE;

				make(&w, kind, 0, FH_TOKEN_ID, FH_TOKEN_VALUE);
				f->fh->chip.epoch++;
				for (k = 0; k < warm; k++)
					assert_do(f, &w, FH_OK);
				fh_watch(f->fh, WATCH, 7);
				va = kind == DO_NOTIFY ? 88 : 56;
				fh_put64(&w, va, ro ? FH_RO_VA + 8 : bad[i]);
				if (!ro || writes) {
					assert_refused(f, &w, FH_LOC_ACCESS);
					assert_memory(f->fh, WATCH);
				} else {
					assert_do(f, &w, FH_OK);
				}
			}
}

/* 8 bytes of buffer @i, which lies where @piece says, go to word @i of the peer's. */
static void from_buffer(struct fh_queue *f, u64 piece, u32 i, u64 in)
{
	static u64 value;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u64 got;

	value++;
	memcpy(fh->mine.a.base + piece * i + in, &value, 8);
	fh_rma(&w, FH_WRITE, FH_CQE, piece * i + in, 8ull * i, 8);
	assert_do(f, &w, FH_OK);
	memcpy(&got, fh->theirs.a.base + 8ull * i, 8);
	assert_int_equal(got, value);
}

/* More buffers than a queue remembers, of several sizes; what it remembers it does not ask for again. */
static void many_buffers(void **state)
{
	static const u64 pieces[] = { 64, 4096, 65536 };
	static const u32 counts[] = { 1, 2, 3, NPUEMU_PLACES - 1, NPUEMU_PLACES, NPUEMU_PLACES + 1, 100 };
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	struct fh_wqe w;
	u32 p, k, i, n, round, asked;

	for (p = 0; p < 3; p++)
		for (k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
			fh->mine_piece = pieces[p];
			fh->chip.epoch++;
			n = counts[k];
			for (round = 0; round < 3; round++) {
				asked = fh->n.local;
				for (i = 0; i < n; i++)
					from_buffer(f, pieces[p], n - 1 - i, 8 * round);
				if (!round)
					assert_int_equal(fh->n.local, asked + n);
				else if (n <= NPUEMU_PLACES)
					assert_int_equal(fh->n.local, asked);
			}
			/* no further than its end, though the next one is known */
			fh_rma(&w, FH_WRITE, FH_CQE, pieces[p] - 4, 0, 8);
			assert_refused(f, &w, FH_LOC_ACCESS);
			/* and none of them, when the host says so */
			fh->mine_from = pieces[p] * n;
			fh->chip.epoch++;
			for (i = 0; i < n; i++) {
				fh_rma(&w, FH_WRITE, FH_CQE, pieces[p] * i, 0, 8);
				assert_refused(f, &w, FH_LOC_ACCESS);
			}
			fh->mine_from = 0;
		}
}

/* Without memory for more it remembers two. */
static void two_buffers(void **state)
{
	struct fh_queue *f = *state;
	struct fakehost *fh = f->fh;
	u32 i, asked;

	fh->mine_piece = 4096;
	fh_no_memory = true;
	for (i = 0; i < 60; i++)
		from_buffer(f, 4096, i % 5, 0);
	asked = fh->n.local;
	for (i = 0; i < 20; i++)
		from_buffer(f, 4096, 3 + i % 2, 0);
	assert_int_equal(fh->n.local, asked);
	for (i = 0; i < 3; i++)
		from_buffer(f, 4096, i, 0);
	assert_int_equal(fh->n.local, asked + 3);
	fh_no_memory = false;
	for (i = 0; i < 60; i++)
		from_buffer(f, 4096, i % 5, 0);
	assert_true(fh->n.local <= asked + 3 + 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(rights), BOTH_WAYS(token_value), BOTH_WAYS(token_id), BOTH_WAYS(range),
		BOTH_WAYS(second_word), BOTH_WAYS(owner_acts), BOTH_WAYS(unknown_endpoint),
		BOTH_WAYS(damaged_record), BOTH_WAYS(local_ranges), BOTH_WAYS(many_buffers),
		BOTH_WAYS(two_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
