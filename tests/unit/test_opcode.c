// SPDX-License-Identifier: MIT
/*
 * What a WQE may contain: every opcode, size, SGE count, inline length, reserved
 * bit and reduce code, against a table written by hand from the format tables.
 * The checker is asked alone, and once through a queue to see that the walk over
 * the ring agrees with it.
 */
#include "fhassert.h"

#define NO	(-1)

/* What the format says of the opcodes the chip knows. */
static const struct rule {
	u32 op;
	int control;		/* bytes before the SGEs */
	int blocks;		/* fixed number; 0: as the payload list needs */
	int sges;		/* at most */
	int inline_bytes;	/* at most; NO: takes none */
	bool reduces;
} rules[] = {
	{ FH_SEND,	48, 0, 13, 192, false },
	{ FH_SEND_IMM,	48, 0, 13, 192, false },
	{ FH_WRITE,	48, 0, 13, 208, true },
	{ FH_NOTIFY,	80, 0, 11, 176, true },
	{ FH_READ,	48, 0,  6,  NO, true },
	{ FH_CAS,	48, 2,  1,  NO, false },
	{ FH_FAA,	48, 2,  1,  NO, false },
	{ FH_NOP,	48, 1, 13,  NO, false },
};

#define WRITE_ADD_BLOCKS	1

static const struct rule *rule_of(u32 op)
{
	u32 i;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].op == op)
			return &rules[i];
	return NULL;
}

static int set_up(void **state)
{
	struct fakehost *fh = fh_new();

	*state = fh_queue(fh, 64, 64, 0, NULL);
	return 0;
}

static int set_up_sdma(void **state)
{
	*state = fh_queue(fh_new(), 64, 64, 1, NULL);
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

/* Ask the checker alone. */
static u32 check(struct fh_queue *f, const struct fh_wqe *w, u64 *len)
{
	static struct npuemu_wqe c;
	u32 status;

	memset(&c, 0, sizeof(c));
	memcpy(c.bb, w->b, sizeof(c.bb));
	status = npuemu_wqe_check(&f->q, &c);
	if (len)
		*len = c.len;
	return status;
}

static u32 blocks(struct fh_queue *f, const struct fh_wqe *w)
{
	u64 w0, w1;

	memcpy(&w0, w->b, 8);
	memcpy(&w1, w->b + 8, 8);
	return npuemu_wqe_blocks(&f->q, w0, w1);
}

/* A WQE with @n SGEs of 8 bytes, as far as they fit into four blocks. */
static void make(struct fh_wqe *w, u32 op, u32 flags, u32 n)
{
	u32 at = op == FH_NOTIFY ? 80 : 48, i;

	fh_sqe(w, op, flags, n, FH_PEER_VA + 64);
	if (op == FH_NOTIFY) {
		fh_put32(w, 48, FH_TOKEN_ID);
		fh_put32(w, 52, FH_TOKEN_VALUE);
		fh_put64(w, 56, FH_PEER_VA + 0x8000);
		w->nbb = 2;
	}
	for (i = 0; i < n && at + 16 * (i + 1) <= 256; i++)
		fh_sge(w, at + 16 * i, FH_VA + 64 * i, 8);
}

static u32 up_to_blocks(int bytes)
{
	u32 n = (u32)(bytes + 63) / 64;

	return n > 4 ? 1 : n;
}

static void opcodes_and_sge_counts(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 op, n;

	for (op = 0; op < 256; op++) {
		const struct rule *r = rule_of(op);

		for (n = 0; n < 256; n++) {
			u32 want = FH_UNSUPPORTED, bb = 1;

			if (op == FH_WRITE_ADD)	/* has a test of its own */
				continue;
			if (r) {
				want = (int)n > r->sges ? FH_LOC_LEN : FH_OK;
				if (r->blocks == 2 && n != 1)
					want = FH_LOC_LEN;
				bb = r->blocks ? (u32)r->blocks :
					up_to_blocks(r->control + 16 * (int)n);
			}
			make(&w, op, 0, n);
			if (check(f, &w, NULL) != want || blocks(f, &w) != bb)
				fh_fail("opcode %u with %u SGEs: %#x in %u blocks, not %#x in %u",
					op, n, check(f, &w, NULL), blocks(f, &w), want, bb);
		}
	}
}

static void inline_lengths(void **state)
{
	struct fh_queue *f = *state;
	static u8 data[1024];
	struct fh_wqe w;
	u32 i, n;
	u64 len;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const struct rule *r = &rules[i];

		for (n = 0; n < 1024; n++) {
			u32 want = r->inline_bytes == NO ? FH_UNSUPPORTED :
				(int)n > r->inline_bytes ? FH_LOC_LEN : FH_OK;
			u32 bb = r->blocks ? (u32)r->blocks :
				up_to_blocks(r->control + (int)n);

			fh_inline(&w, r->op, 0, 64, data, n > 176 ? 0 : n);
			fh_put32(&w, 4, r->op << 8 | n << 22);
			if (r->op == FH_NOTIFY)
				fh_put64(&w, 56, FH_PEER_VA + 0x8000);
			if (check(f, &w, &len) != want || blocks(f, &w) != bb)
				fh_fail("opcode %u, %u bytes inline: %#x in %u blocks, not %#x in %u",
					r->op, n, check(f, &w, NULL), blocks(f, &w), want, bb);
			if (!want)
				assert_int_equal(len, n);
			/* an SGE count beside inline data means nothing */
			fh_put32(&w, 8, 13u << 24);
			assert_int_equal(check(f, &w, NULL), want);
			assert_int_equal(blocks(f, &w), bb);
		}
	}
}

/* Each bit of DW0 alone: reserved ones refuse, the others do not. */
static void control_bits(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i, bit, n;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		for (bit = 0; bit < 32; bit++) {
			u32 want = bit >= 24 && bit <= 26 ? FH_UNSUPPORTED : FH_OK;

			if (bit == 22 || bit == 23)	/* inline, udf */
				continue;
			for (n = 1; n <= 2; n++) {	/* the short way, and the long one */
				make(&w, rules[i].op, 0, rules[i].sges > 1 ? n : 1);
				fh_put32(&w, 0, fh_get32(&w, 0) | 1u << bit);
				if (check(f, &w, NULL) != want)
					fh_fail("opcode %u, DW0 bit %u: %#x", rules[i].op, bit,
						check(f, &w, NULL));
			}
		}
		make(&w, rules[i].op, 3u << 16, 1);
		assert_int_equal(check(f, &w, NULL), FH_UNSUPPORTED);
	}
	fh_write_add(&w, 0, 0, 0, 8, 64, 1);
	for (bit = 22; bit <= 26; bit++) {
		fh_put32(&w, 0, FH_TOKEN | 1u << bit);
		assert_int_equal(check(f, &w, NULL), FH_UNSUPPORTED);
	}
	fh_put32(&w, 0, FH_TOKEN | 3u << 16);
	assert_int_equal(check(f, &w, NULL), FH_UNSUPPORTED);
}

static void reduce_codes(void **state)
{
	/* INT8 INT16 INT32 UINT8 UINT16 UINT32 FP16 FP32 BF16, then nothing */
	static const u32 bytes[16] = { 1, 2, 4, 1, 2, 4, 2, 4, 2 };
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 i, op, type, len;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		for (op = 0; op < 16; op++)
			for (type = 0; type < 16; type++)
				for (len = 0; len <= 8; len++) {
					u32 want = FH_UNSUPPORTED;

					if (rules[i].reduces && op >= 8 && op <= 10 &&
					    bytes[type])
						want = len % bytes[type] ? FH_LOC_LEN : FH_OK;
					make(&w, rules[i].op, 0, 1);
					fh_put32(&w, rules[i].op == FH_NOTIFY ? 80 : 48, len);
					fh_reduce(&w, op, type);
					if (check(f, &w, NULL) != want)
						fh_fail("opcode %u, reduce %u, type %u, %u bytes: %#x, not %#x",
							rules[i].op, op, type, len,
							check(f, &w, NULL), want);
				}
	}
	/* a type of user-defined field other than reduce */
	for (i = 1; i < 256; i++) {
		make(&w, FH_WRITE, 0, 1);
		fh_reduce(&w, 10, 2);
		fh_put32(&w, 36, fh_get32(&w, 36) | i);
		assert_int_equal(check(f, &w, NULL), FH_UNSUPPORTED);
	}
	/* without the flag the fields mean nothing */
	make(&w, FH_WRITE, 0, 1);
	fh_put32(&w, 36, ~0u);
	assert_int_equal(check(f, &w, NULL), FH_OK);
	/* inline, and with one of several SGEs at fault */
	fh_inline(&w, FH_WRITE, 0, 64, "0123456", 6);
	fh_reduce(&w, 10, 7);
	assert_int_equal(check(f, &w, NULL), FH_LOC_LEN);
	make(&w, FH_READ, 0, 6);
	fh_reduce(&w, 8, 5);
	assert_int_equal(check(f, &w, NULL), FH_OK);
	fh_put32(&w, 48 + 16 * 5, 10);
	assert_int_equal(check(f, &w, NULL), FH_LOC_LEN);
}

static void atomic_sizes(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 len, at;

	for (len = 0; len < 40; len++)
		for (at = 0; at < 32; at++) {
			bool cas = len == 4 || len == 8 || len == 16, faa = len == 4 || len == 8;
			u32 off = !len || at % len ? FH_REM_REQ : FH_OK;

			make(&w, FH_CAS, 0, 1);
			fh_put32(&w, 48, len);
			fh_put64(&w, 40, FH_PEER_VA + at);
			assert_int_equal(check(f, &w, NULL), cas ? off : FH_LOC_LEN);
			fh_put32(&w, 4, FH_FAA << 8);
			assert_int_equal(check(f, &w, NULL), faa ? off : FH_LOC_LEN);
		}
}

static void words_after_the_payload(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u64 len;
	u32 at, n;

	for (at = 0; at < 16; at++) {
		fh_notify(&w, 0, 0, 0, 8, at, 1);
		assert_int_equal(check(f, &w, NULL), at % 8 ? FH_REM_REQ : FH_OK);
		fh_write_add(&w, 0, 0, 0, 8, at, 1);
		assert_int_equal(check(f, &w, NULL), at % 8 ? FH_REM_REQ : FH_OK);
	}
	/* 18 bits of length, in two places; whatever is there, it is one block */
	for (n = 0; n < 1u << 18; n += n < 3000 ? 1 : 1023) {
		fh_write_add(&w, 0, 0, 0, n, 8, 1);
		assert_int_equal(check(f, &w, &len), FH_OK);
		assert_int_equal(len, n);
		assert_int_equal(blocks(f, &w), WRITE_ADD_BLOCKS);
	}
}

static void message_lengths(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u64 len;

	make(&w, FH_WRITE, 0, 1);
	fh_put32(&w, 48, ~0u);
	assert_int_equal(check(f, &w, &len), FH_OK);
	assert_int_equal(len, 0xffffffffu);
	make(&w, FH_WRITE, 0, 2);
	fh_put32(&w, 48, 0xfffffff0u);
	fh_put32(&w, 64, 15);
	assert_int_equal(check(f, &w, &len), FH_OK);
	assert_int_equal(len, 0xffffffffu);
	fh_put32(&w, 64, 16);
	assert_int_equal(check(f, &w, NULL), FH_LOC_LEN);
}

static void sdma_fields(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u32 op, bit;

	for (op = 0; op < 256; op++) {
		fh_sdma(&w, op, 0, FH_VA, FH_VA + 4096, 8);
		if (op == FH_SDMA_FILL)
			fh_pitch(&w, 0, 8, 0);
		if (op == FH_SDMA_COPY_2D)
			fh_pitch(&w, 1, 8, 8);
		if (op == FH_SDMA_REDUCE)
			fh_put32(&w, 8, 10 << 4 | 2);
		assert_int_equal(blocks(f, &w), 1);
		assert_int_equal(check(f, &w, NULL), op <= FH_SDMA_NOTIFY ? FH_OK : FH_UNSUPPORTED);
		if (op > FH_SDMA_NOTIFY)
			continue;
		/* bits that mean nothing here must be zero */
		for (bit = 24; bit <= 26; bit++) {
			fh_put32(&w, 0, 1u << bit);
			assert_int_equal(check(f, &w, NULL), FH_UNSUPPORTED);
		}
		fh_put32(&w, 0, 3u << 16);
		assert_int_equal(check(f, &w, NULL), FH_UNSUPPORTED);
		fh_put32(&w, 0, FH_STRONG | FH_FENCE | FH_CQE | FH_OWNER);
		assert_int_equal(check(f, &w, NULL), FH_OK);
		fh_put64(&w, 56, 1);
		assert_int_equal(check(f, &w, NULL), FH_UNSUPPORTED);
		fh_put64(&w, 56, 0);
		if (op != FH_SDMA_REDUCE) {
			fh_put32(&w, 8, 1);
			assert_int_equal(check(f, &w, NULL), FH_UNSUPPORTED);
			fh_put32(&w, 8, 0);
		}
		if (op != FH_SDMA_COPY_2D) {
			fh_put32(&w, 12, 1);
			assert_int_equal(check(f, &w, NULL), FH_UNSUPPORTED);
			fh_put32(&w, 12, 0);
			fh_put64(&w, 48, 1);
			assert_int_equal(check(f, &w, NULL), FH_UNSUPPORTED);
			fh_put64(&w, 48, 0);
		}
		if (op != FH_SDMA_COPY_2D && op != FH_SDMA_FILL) {
			fh_put64(&w, 40, 8);
			assert_int_equal(check(f, &w, NULL), FH_UNSUPPORTED);
		}
	}
}

static void sdma_limits(void **state)
{
	static const u32 bytes[16] = { 1, 2, 4, 1, 2, 4, 2, 4, 2 };
	struct fh_queue *f = *state;
	struct fh_wqe w;
	u64 i, len;
	u32 op, type;

	for (i = 0; i < 300; i++) {
		fh_sdma(&w, FH_SDMA_FILL, 0, FH_VA, 0, 8);
		fh_pitch(&w, 0, i, 0);
		assert_int_equal(check(f, &w, NULL), i == 1 || i == 2 || i == 4 || i == 8 ? FH_OK :
				 FH_LOC_LEN);
		fh_sdma(&w, FH_SDMA_NOTIFY, 0, FH_VA + i, 0, 8);
		assert_int_equal(check(f, &w, NULL), i % 8 ? FH_LOC_LEN : FH_OK);
		fh_sdma(&w, FH_SDMA_NOTIFY, 0, FH_VA, 0, i);
		assert_int_equal(check(f, &w, NULL), i != 8 ? FH_LOC_LEN : FH_OK);
		for (op = 0; op < 32; op++)
			for (type = 0; type < 16; type++) {
				bool known = op >= 8 && op <= 10 && bytes[type];

				fh_sdma(&w, FH_SDMA_REDUCE, 0, FH_VA, FH_VA + 4096, i);
				fh_put32(&w, 8, op << 4 | type);
				assert_int_equal(check(f, &w, NULL), !known ? FH_UNSUPPORTED :
						 i % bytes[type] ? FH_LOC_LEN : FH_OK);
			}
	}
	fh_sdma(&w, FH_SDMA_COPY_2D, 0, FH_VA, FH_VA + 4096, 16);
	fh_pitch(&w, 3, 16, 16);
	assert_int_equal(check(f, &w, &len), FH_OK);
	assert_int_equal(len, 48);
	fh_pitch(&w, 3, 15, 16);
	assert_int_equal(check(f, &w, NULL), FH_LOC_LEN);
	fh_pitch(&w, 3, 16, 15);
	assert_int_equal(check(f, &w, NULL), FH_LOC_LEN);
	fh_pitch(&w, ~0u, 0x7fffffff, 0x7fffffff);
	assert_int_equal(check(f, &w, NULL), FH_OK);
	fh_pitch(&w, 3, 0x80000000, 16);
	assert_int_equal(check(f, &w, NULL), FH_LOC_LEN);
	fh_pitch(&w, 3, 16, 0x80000000);
	assert_int_equal(check(f, &w, NULL), FH_LOC_LEN);
	fh_put64(&w, 32, ~0ull);
	fh_pitch(&w, 3, ~0ull, ~0ull);
	assert_int_equal(check(f, &w, NULL), FH_LOC_LEN);
}

/* The walk over the ring counts blocks as the format does: the WQE behind is found. */
static void walk_agrees(void **state)
{
	struct fh_queue *f = *state;
	struct fh_wqe w, next;
	u32 i, n, status;

	fh_nop(&next, FH_CQE);
	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (rules[i].op <= FH_SEND_IMM)		/* needs a receiver: test_recv */
			continue;
		for (n = 0; n <= (u32)rules[i].sges + 2; n++) {
			make(&w, rules[i].op, FH_CQE, n);
			if (rules[i].blocks)
				w.nbb = (u32)rules[i].blocks;
			else if (n > (u32)rules[i].sges && rules[i].op != FH_READ)
				w.nbb = 1;	/* five blocks: there is no such thing */
			status = n > (u32)rules[i].sges ||
				 (rules[i].blocks == 2 && n != 1) ? FH_LOC_LEN : FH_OK;
			fh_post(f, &w);
			fh_post(f, &next);
			fh_run(f);
			assert_cqe(f, f->pi - 2, status);
			assert_cqe(f, f->pi - 1, status ? FH_FLUSH : FH_OK);
			if (status) {
				assert_flush_done(f);
				fh_recover(f);
			}
			assert_no_cqe(f);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(opcodes_and_sge_counts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(inline_lengths, set_up, tear_down),
		cmocka_unit_test_setup_teardown(control_bits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reduce_codes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(atomic_sizes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(words_after_the_payload, set_up, tear_down),
		cmocka_unit_test_setup_teardown(message_lengths, set_up, tear_down),
		cmocka_unit_test_setup_teardown(sdma_fields, set_up_sdma, tear_down),
		cmocka_unit_test_setup_teardown(sdma_limits, set_up_sdma, tear_down),
		cmocka_unit_test_setup_teardown(walk_agrees, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
