// SPDX-License-Identifier: MIT
/*
 * The receiving side of SEND: buffers of one and several SGEs, messages that are
 * too long, buffers that are not there, the receive CQE bit by bit, and SENDs
 * through a queue with inline data, immediates and retries.
 */
#include "fhassert.h"

#define WATCH	65536u
#define DEPTH	64u
#define RQ_ID	0x9b2d4u

struct rig {
	struct fakehost *fh;
	struct fh_queue *f;	/* sends */
	struct fh_queue *lender;
	struct fh_cq cq;	/* of the receive queue */
	struct npuemu_jfr r;
	struct npuemu_sge ring[DEPTH * 8];
	u32 pi;
};

static int set_up(void **state)
{
	struct rig *g = calloc(1, sizeof(*g));

	assert_non_null(g);
	g->fh = fh_new();
	fh_watch(g->fh, WATCH, 51);
	g->f = fh_queue(g->fh, 64, 128, 0, NULL);
	g->lender = fh_queue(g->fh, 64, 128, 0, NULL);
	fh_cq_init(&g->cq, 64);
	g->cq.jfc.attached = 1;
	g->r.ring = g->ring;
	g->r.pi_rec = &g->pi;
	g->r.jfc = &g->cq.jfc;
	g->r.mask = DEPTH - 1;
	g->r.max_sge = 1;
	g->r.id = RQ_ID;
	g->r.user_data = 0xa0a1a2a3b0b1b2b3ull;
	g->fh->jfr = &g->r;
	g->fh->lender = &g->lender->q;
	*state = g;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *g = *state;

	fh_queue_free(g->f);
	fh_queue_free(g->lender);
	fh_cq_free(&g->cq);
	fh_free(g->fh);
	free(g);
	return 0;
}

/* A receive buffer; lens end with the queue's max_sge. */
static void post_recv(struct rig *g, const u64 *va, const u32 *len)
{
	struct npuemu_sge *e = g->ring + (size_t)(g->pi & (DEPTH - 1)) * g->r.max_sge;
	u32 i;

	for (i = 0; i < g->r.max_sge; i++)
		e[i] = (struct npuemu_sge){ .len = len[i], .va = FH_VA + va[i] };
	g->pi++;
}

static void post_recv1(struct rig *g, u64 va, u32 len)
{
	post_recv(g, &va, &len);
}

static u32 deliver(struct rig *g, const void *data, u32 len)
{
	struct npuemu_message m = { .pieces = 1 };
	u32 status;

	m.piece[0] = data;
	m.piece_len[0] = len;
	assert_true(npuemu_owner_try(&g->lender->owner));
	status = npuemu_jfr_deliver(&g->r, &g->lender->q, &m);
	npuemu_jfs_release(&g->lender->q);
	return status;
}

static void cqe_bits(void **state)
{
	struct rig *g = *state;
	struct npuemu_message m = { .pieces = 1 };
	const u8 *data = (const u8 *)"0123456789";
	u32 want[16] = {
		0x00000015,		/* receive, owner of the first lap, opcode 1 */
		0xb2d40000,		/* low 16 bits of the RQ, entry 0 */
		0xc3579u << 4 | 9,	/* the sender, high 4 bits of the RQ */
		0,
		10,
		0xb0b1b2b3, 0xa0a1a2a3,
		0x11111111, 0x22222222, 0x33333333, 0x44444444,
		0x55667788, 0x11223344,
	};

	post_recv1(g, 100, 64);
	post_recv1(g, 200, 4);
	m.piece[0] = data;
	m.piece_len[0] = 10;
	m.done.opcode = 1;
	m.done.rmt_idx = 0xfc3579;	/* 20 bits have a place */
	m.done.imm = 0x1122334455667788ull;
	m.done.rmt_eid[0] = 0x11111111;
	m.done.rmt_eid[1] = 0x22222222;
	m.done.rmt_eid[2] = 0x33333333;
	m.done.rmt_eid[3] = 0x44444444;
	assert_int_equal(npuemu_jfr_deliver(&g->r, &g->lender->q, &m), FH_OK);
	assert_memory_equal(&g->cq.jfc.ring[0], want, 64);
	/* a jetty's, and too long */
	g->r.jetty = 1;
	assert_int_equal(npuemu_jfr_deliver(&g->r, &g->lender->q, &m), FH_RESP_LEN);
	want[0] = 0x02010017;
	want[1] = 0xb2d40001;
	want[4] = 0;
	assert_memory_equal(&g->cq.jfc.ring[1], want, 64);
	memcpy(g->fh->mine.shadow + 100, data, 10);
	assert_memory(g->fh, WATCH);
}

/* Every split of a message over buffers of one to eight SGEs. */
static void scattered(void **state)
{
	struct rig *g = *state;
	u32 n, len, i, at;
	struct fh_cqe c;
	u8 data[600];

	for (i = 0; i < sizeof(data); i++)
		data[i] = (u8)(i * 31 + 7);
	for (n = 1; n <= 8; n *= 2)
		for (len = 0; len <= 64 * n; len += len < 70 ? 1 : 17) {
			u64 va[8];
			u32 lens[8];

			g->r.max_sge = n;
			g->r.ci = g->pi;
			for (i = 0; i < n; i++) {
				va[i] = 1000 + (n - i) * 1000;
				/* uneven, some empty, together 64 * n */
				lens[i] = i % 4 == 1 ? 0 : i % 4 == 0 ? 64 : 96;
				if (n == 2)
					lens[i] = i ? 100 : 28;
			}
			post_recv(g, va, lens);
			assert_int_equal(deliver(g, data, len), FH_OK);
			for (i = at = 0; i < n && at < len; at += lens[i++])
				memcpy(g->fh->mine.shadow + va[i], data + at,
				       lens[i] < len - at ? lens[i] : len - at);
			assert_memory(g->fh, WATCH);
			assert_true(fh_poll(&g->cq, &c));
			assert_int_equal(c.code, FH_OK);
			assert_int_equal(c.bytes, len);
			assert_int_equal(c.entry_idx, (g->pi - 1) & 0xffff);
			assert_int_equal(g->r.ci, g->pi);
		}
}

static void no_buffer(void **state)
{
	struct rig *g = *state;
	struct fh_cqe c;
	u32 i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(deliver(g, "abcd", 4), FH_RNR);
		assert_false(fh_poll(&g->cq, &c));
		assert_int_equal(g->r.ci, i);
		post_recv1(g, 64 * i, 4);
		assert_int_equal(deliver(g, "abcd", 4), FH_OK);
		assert_true(fh_poll(&g->cq, &c));
		memcpy(g->fh->mine.shadow + 64 * i, "abcd", 4);
	}
	/* an index that cannot be is no buffer either */
	g->pi = g->r.ci + DEPTH + 1;
	assert_int_equal(deliver(g, "abcd", 4), FH_RNR);
	g->pi = g->r.ci - 1;
	assert_int_equal(deliver(g, "abcd", 4), FH_RNR);
	assert_memory(g->fh, WATCH);
	assert_false(fh_poll(&g->cq, &c));
}

/* Too long: nothing is written, the buffer is used up, both sides are told. */
static void too_long(void **state)
{
	struct rig *g = *state;
	u64 va[4] = { 0, 100, 200, 300 };
	u32 lens[4] = { 10, 0, 10, 10 };
	struct fh_cqe c;
	u8 data[64] = { 1 };
	u32 len;

	g->r.max_sge = 4;
	for (len = 31; len < 64; len++) {
		post_recv(g, va, lens);
		assert_int_equal(deliver(g, data, len), FH_RESP_LEN);
		assert_true(fh_poll(&g->cq, &c));
		assert_int_equal(c.code, FH_LOC_LEN);
		assert_int_equal(c.bytes, 0);
		assert_int_equal(c.recv, 1);
		assert_int_equal(g->r.ci, g->pi);
	}
	assert_memory(g->fh, WATCH);
}

/* A buffer that is not ours to write. */
static void bad_buffer(void **state)
{
	static const u64 bad[] = {
		0, FH_RO_VA - FH_VA, FH_ARENA_BYTES, FH_ARENA_BYTES - 3, FH_PEER_VA - FH_VA,
	};
	struct rig *g = *state;
	struct fh_cqe c;
	u32 i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		post_recv1(g, bad[i], 4);
		if (!i)		/* at address 0 */
			g->ring[g->pi - 1].va = 0;
		assert_int_equal(deliver(g, "abcd", 4), FH_REM_ACCESS);
		assert_true(fh_poll(&g->cq, &c));
		assert_int_equal(c.code, FH_LOC_ACCESS);
		assert_int_equal(c.bytes, 0);
	}
	assert_memory(g->fh, WATCH);
	fh_lazy(g->fh);
	g->fh->back_left = 0;
	post_recv1(g, 0, 4);
	assert_int_equal(deliver(g, "abcd", 4), FH_REM_ACCESS);
	assert_true(fh_poll(&g->cq, &c));
	assert_int_equal(c.code, FH_LOC_ACCESS);
}

/* No room to say so: not delivered, tried again, delivered once. */
static void full_cq(void **state)
{
	struct rig *g = *state;
	struct fh_cqe c;
	u32 i;

	for (i = 0; i < 64; i++)
		post_recv1(g, 64 * i, 4);
	for (i = 0; i < 63; i++)
		assert_int_equal(deliver(g, "abcd", 4), FH_OK);
	memset(fh_mine(g->fh, 64 * 63), 0, 4);
	assert_int_equal(deliver(g, "abcd", 4), FH_RNR);
	assert_int_equal(g->cq.jfc.starved, 1);
	assert_int_equal(*fh_mine(g->fh, 64 * 63), 0);
	assert_int_equal(g->r.ci, 63);
	for (i = 0; i < 63; i++)
		assert_true(fh_poll(&g->cq, &c));
	assert_int_equal(deliver(g, "abcd", 4), FH_OK);
	assert_int_equal(*fh_mine(g->fh, 64 * 63), 'a');
	assert_true(fh_poll(&g->cq, &c));
	assert_false(fh_poll(&g->cq, &c));
}

/* The ring of receive buffers, many times around and over 32 bits. */
static void around(void **state)
{
	struct rig *g = *state;
	struct fh_cqe c;
	u32 i;

	g->pi = 0xffffff80;
	g->r.ci = g->pi;
	for (i = 0; i < 1000; i++) {
		post_recv1(g, i * 8, 8);
		assert_int_equal(deliver(g, &i, 4), FH_OK);
		assert_true(fh_poll(&g->cq, &c));
		assert_int_equal(c.entry_idx, (0xffffff80 + i) & 0xffff);
		memcpy(g->fh->mine.shadow + i * 8, &i, 4);
	}
	assert_memory(g->fh, WATCH);
}

/* Sleepers on the receiver's memory are woken. */
static void waking(void **state)
{
	struct rig *g = *state;

	g->fh->mine.shares[0].waiters[1] = 1;
	post_recv1(g, 0, 8);
	assert_int_equal(deliver(g, "abcd", 4), FH_OK);
	assert_int_equal(g->fh->n.wake, 1);
}

/* From WQE to CQE on both sides. */
static void through_a_queue(void **state)
{
	struct rig *g = *state;
	struct fh_cqe c, s;
	u32 i, nsge, total;
	struct fh_wqe w;
	u8 data[192];

	for (i = 0; i < sizeof(data); i++)
		data[i] = (u8)(i + 1);
	for (i = 0; i <= 192; i += 8) {
		post_recv1(g, 20000, 192);
		fh_inline(&w, FH_SEND_IMM, FH_CQE, 0, data, i);
		fh_put64(&w, 40, 0xfeedfacecafe0000ull + i);	/* the immediate */
		s = assert_do(g->f, &w, FH_OK);
		assert_int_equal(s.bytes, i);
		assert_true(fh_poll(&g->cq, &c));
		assert_int_equal(c.opcode, FH_SEND_IMM);
		assert_int_equal(c.imm, 0xfeedfacecafe0000ull + i);
		assert_int_equal(c.bytes, i);
		assert_int_equal(c.rmt_idx, FH_QUEUE_ID);
		memcpy(g->fh->mine.shadow + 20000, data, i);
		assert_memory(g->fh, WATCH);
	}
	for (nsge = 0; nsge <= 13; nsge++) {
		post_recv1(g, 30000, 2000);
		fh_sqe(&w, FH_SEND, FH_CQE, nsge, 0);
		for (i = total = 0; i < nsge; i++) {
			fh_sge(&w, 48 + 16 * i, FH_VA + 500 * i, 10 * i);
			memcpy(g->fh->mine.shadow + 30000 + total, g->fh->mine.shadow + 500 * i,
			       10 * i);
			total += 10 * i;
		}
		s = assert_do(g->f, &w, FH_OK);
		assert_int_equal(s.bytes, total);
		assert_true(fh_poll(&g->cq, &c));
		assert_int_equal(c.opcode, FH_SEND);
		assert_int_equal(c.bytes, total);
		assert_memory(g->fh, WATCH);
	}
	/* to a jetty, or an RQ; to a group there is no way */
	for (i = 0; i < 4; i++) {
		fh_rma(&w, FH_SEND, FH_CQE | i << 29, 0, 0, 0);
		if (i >= 2) {
			assert_refused(g->f, &w, FH_REM_REQ);
			continue;
		}
		post_recv1(g, 30000, 2000);
		assert_do(g->f, &w, FH_OK);
		assert_true(fh_poll(&g->cq, &c));
	}
	/* a source that is not ours */
	fh_rma(&w, FH_SEND, FH_CQE, FH_ARENA_BYTES, 0, 8);
	assert_refused(g->f, &w, FH_LOC_ACCESS);
	assert_int_equal(g->r.ci, g->pi);
}

static void retries(void **state)
{
	struct rig *g = *state;
	struct fh_cqe c;
	struct fh_wqe w;
	u32 i;

	fh_rma(&w, FH_SEND, FH_CQE, 0, 0, 8);
	g->f->q.rnr_retry = 3;
	fh_post(g->f, &w);
	fh_run(g->f);
	for (i = 0; i < 2; i++) {
		assert_true(g->f->waiting);
		fh_run(g->f);
	}
	assert_true(g->f->waiting);
	fh_run(g->f);
	assert_cqe(g->f, 0, FH_RNR);
	assert_flush_done(g->f);
	fh_recover(g->f);
	g->f->q.rnr_retry = 7;	/* for ever */
	fh_post(g->f, &w);
	for (i = 0; i < 100; i++) {
		fh_run(g->f);
		assert_true(g->f->waiting);
	}
	post_recv1(g, 8192, 8);
	fh_run(g->f);
	assert_cqe(g->f, 0, FH_OK);
	assert_true(fh_poll(&g->cq, &c));
	/* too long for the buffer: the sender gets the remote length error */
	post_recv1(g, 8192, 7);
	assert_refused(g->f, &w, FH_RESP_LEN);
	assert_true(fh_poll(&g->cq, &c));
}

#define TOKEN	0x80000001u

struct given {
	bool en;
	u32 value;
	bool good;
};

static u32 deliver_as(struct rig *g, const struct given *t)
{
	struct npuemu_message m = {
		.piece = { (const u8 *)"abcd" }, .piece_len = { 4 }, .pieces = 1,
		.token_en = t->en, .token_value = t->value,
	};
	u32 status;

	assert_true(npuemu_owner_try(&g->lender->owner));
	status = npuemu_jfr_deliver(&g->r, &g->lender->q, &m);
	assert_int_equal(g->lender->q.ntouched, t->good);
	npuemu_jfs_release(&g->lender->q);
	return status;
}

/* Refused, or delivered once: then by the buffer that is next. */
static void gives(struct rig *g, const struct given *t)
{
	u32 ci = g->r.ci;
	struct fh_cqe c;

	if (t->good) {
		assert_int_equal(deliver_as(g, t), FH_OK);
		assert_true(fh_poll(&g->cq, &c));
		assert_int_equal(c.bytes, 4);
		memcpy(g->fh->mine.shadow + 64 * (ci & (DEPTH - 1)), "abcd", 4);
		post_recv1(g, 64 * (g->pi & (DEPTH - 1)), 64);
	} else {
		assert_int_equal(deliver_as(g, t), FH_REM_ACCESS);
	}
	assert_int_equal(g->r.ci, ci + t->good);
	assert_false(fh_poll(&g->cq, &c));
	assert_memory(g->fh, WATCH);
}

/* With a token: only who gives it, whole.  Without one: everybody. */
static void tokens(void **state)
{
	static const struct given all[] = {
		{ true, TOKEN, true }, { true, TOKEN ^ 1, false }, { true, 0, false },
		{ true, TOKEN ^ 0x80000000u, false }, { true, TOKEN ^ 0x100, false },
		{ true, ~0u, false }, { false, TOKEN, false }, { false, 0, false },
	};
	static const struct given zero[] = {
		{ true, 0, true }, { false, 0, false }, { true, 1, false },
	};
	struct rig *g = *state;
	u32 i;

	g->fh->mine.shares[0].waiters[1] = 1;	/* each write is touched, and seen */
	for (i = 0; i < 4; i++)
		post_recv1(g, 64 * i, 64);
	g->r.token_value = TOKEN;
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		struct given open = { all[i].en, all[i].value, true };

		g->r.token = false;
		gives(g, &open);
		g->r.token = true;
		gives(g, &all[i]);
	}
	g->r.token_value = 0;	/* a value like any other */
	for (i = 0; i < ARRAY_SIZE(zero); i++)
		gives(g, &zero[i]);
}

/* A stranger does not learn whether there is a buffer, or room in the CQ. */
static void strangers(void **state)
{
	static const struct given wrong = { true, TOKEN ^ 2, false };
	static const struct given right = { true, TOKEN, true };
	struct rig *g = *state;
	u32 i;

	g->r.token = true;
	g->r.token_value = TOKEN;
	gives(g, &wrong);
	g->fh->mine.shares[0].waiters[1] = 1;
	for (i = 0; i < 64; i++)
		post_recv1(g, 0, 4);
	for (i = 0; i < 63; i++)
		assert_int_equal(deliver_as(g, &right), FH_OK);
	assert_int_equal(deliver_as(g, &wrong), FH_REM_ACCESS);
	assert_int_equal(g->cq.jfc.starved, 0);
	assert_int_equal(g->r.ci, 63);
	/* a message that would be too long takes no buffer either */
	g->ring[63].len = 3;
	assert_int_equal(deliver_as(g, &wrong), FH_REM_ACCESS);
	assert_int_equal(g->r.ci, 63);
}

/* The WQE's token, of a SEND with SGEs and of an inline SEND_IMM. */
static void token_in_a_wqe(void **state)
{
	struct rig *g = *state;
	struct fh_wqe w[2];
	struct fh_cqe c;
	u32 i;

	g->r.token = true;
	g->r.token_value = FH_TOKEN_VALUE;
	for (i = 0; i < 2; i++)
		post_recv1(g, 4096 + 64 * i, 8);
	fh_rma(&w[0], FH_SEND, FH_CQE, 0, 0, 8);
	fh_inline(&w[1], FH_SEND_IMM, FH_CQE, 0, "12345678", 8);
	for (i = 0; i < 2; i++) {
		u32 dw0 = fh_get32(&w[i], 0);

		fh_token(&w[i], FH_TOKEN_ID, FH_TOKEN_VALUE ^ 0x10000);
		assert_refused(g->f, &w[i], FH_REM_ACCESS);
		fh_token(&w[i], FH_TOKEN_ID, FH_TOKEN_VALUE);
		fh_put32(&w[i], 0, dw0 & ~FH_TOKEN);
		assert_refused(g->f, &w[i], FH_REM_ACCESS);
		assert_int_equal(g->r.ci, i);
		assert_memory(g->fh, WATCH);
		fh_put32(&w[i], 0, dw0);
		assert_do(g->f, &w[i], FH_OK);
		assert_true(fh_poll(&g->cq, &c));
		memcpy(g->fh->mine.shadow + 4096 + 64 * i,
		       i ? (const u8 *)"12345678" : g->fh->mine.shadow, 8);
		assert_memory(g->fh, WATCH);
	}
}

#define T(name)	cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(cqe_bits), T(scattered), T(no_buffer), T(too_long), T(bad_buffer), T(full_cq),
		T(around), T(waking), T(through_a_queue), T(retries), T(tokens), T(strangers),
		T(token_in_a_wqe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
