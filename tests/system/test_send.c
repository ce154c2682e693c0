// SPDX-License-Identifier: MIT
/*
 * SEND and SEND_IMM between processes: data, order, immediate, receive buffers of
 * several pieces, one CQ for all, and what happens without a receive buffer, with
 * too small a one, and without a receiver.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sys.h"

#define SLOT	8192u
#define DEPTH	64u

/* What a receiver does; also how to reach it, once it answers. */
struct plan {
	uint32_t give;		/* receive buffers at the start */
	uint32_t more;		/* given after a message from the sender */
	uint32_t len;		/* of each buffer */
	uint32_t sges;
	uint32_t expect;	/* messages */
	uint32_t again;		/* each buffer goes back at once */
	uint32_t until_killed;
	uint32_t token;		/* NPUEMU_RQ_TOKEN or not */
	uint32_t token_value;
};

struct address {
	struct npuemu_target t;		/* the jetty */
	struct npuemu_target rq;	/* itself */
};

/* Message @i: its bytes, its length, its immediate. */
static uint32_t length_of(uint32_t i, uint32_t most)
{
	static const uint32_t lens[] = { 0, 1, 7, 8, 64, 65, 1000, 4096, 4097 };

	return lens[i % 9] < most ? lens[i % 9] : most;
}

static uint64_t imm_of(uint32_t i)
{
	return 0xfeed000000000000u | i;
}

static void give(struct npuemu_rq *rq, const struct sys_mem *m, const struct plan *p,
		 uint32_t slot)
{
	struct npuemu_sge sge[8];
	uint32_t i, part = p->len / p->sges;

	for (i = 0; i < p->sges; i++) {
		sge[i].len = i + 1 == p->sges ? p->len - part * i : part;
		sge[i].token_id = 0;
		/* pieces lie apart */
		sge[i].va = (uintptr_t)m->p + (uint64_t)slot * SLOT * 2 + i * (part + 64);
	}
	memset(m->p + (size_t)slot * SLOT * 2, 0xee, SLOT * 2);
	sys_rc(npuemu_post_recv(rq, sge, p->sges));
}

/* The pieces of slot @slot hold message @i, and nothing lies around it. */
static void check_message(const struct sys_mem *m, const struct plan *p, uint32_t slot,
			  uint32_t i, uint32_t n)
{
	static unsigned char want[SLOT];
	const unsigned char *at = m->p + (size_t)slot * SLOT * 2;
	uint32_t k, part = p->len / p->sges, done = 0, here;

	sys_fill(want, n, i);
	for (k = 0; k < p->sges; k++, at += part + 64) {
		here = k + 1 == p->sges ? p->len - part * k : part;
		if (here > n - done)
			here = n - done;
		sys_same("a piece", at, want + done, here);
		sys_is_byte("behind a piece", at + here, 64, 0xee);
		done += here;
	}
	sys_eq(done, n);
}

static void receiver(int fd, const void *arg)
{
	const struct plan *p = arg;
	struct npuemu *ctx = sys_open();
	struct npuemu_rq_attr ra = {
		.size = sizeof(ra), .device = 1, .depth = DEPTH, .max_sge = p->sges,
		.user_data = 0xabcdef0123456789u,
		.flags = p->token, .token_value = p->token_value,
	};
	struct npuemu_rq_info info = { .size = sizeof(info) };
	struct npuemu_queue_attr qa = sys_queue_attr(1, 64);
	struct npuemu_queue_map map = { .size = sizeof(map) };
	struct npuemu_queue *q;
	struct npuemu_rq *rq;
	struct address a;
	struct npuemu_wc wc;
	struct sys_mem m;
	uint32_t i;

	sys_mem_make(ctx, &m, 1, (uint64_t)DEPTH * SLOT * 2, NPUEMU_ACCESS_LOCAL);
	ra.cq = sys_cq(ctx, 2 * DEPTH, 0);
	sys_rc(npuemu_rq_create(ctx, &ra, &rq));
	qa.rq = rq;
	sys_rc(npuemu_queue_create(ctx, &qa, &q));
	sys_rc(npuemu_queue_map(q, &map));
	memset(&a, 0, sizeof(a));
	memcpy(a.t.eid, map.eid.w, sizeof(a.t.eid));
	a.t.token_id = map.id;
	sys_rc(npuemu_rq_query(rq, &info));
	sys_eq(info.flags, p->token);
	if (p->token && !p->token_value)
		sys_true(info.token_value, "a random token is 0");
	else
		sys_eq(info.token_value, p->token_value);
	memcpy(a.rq.eid, info.eid.w, sizeof(a.rq.eid));
	a.rq.token_id = info.id;
	a.rq.token_value = a.t.token_value = info.token_value;
	for (i = 0; i < p->give; i++)
		give(rq, &m, p, i);
	sys_put(fd, &a, sizeof(a));
	if (p->more) {
		sys_wait_go(fd);
		sys_nap(30);
		for (i = 0; i < p->more; i++)
			give(rq, &m, p, p->give + i);
	}
	for (i = 0; i < p->expect; i++) {
		sys_one(ra.cq, &wc);
		sys_is_status(&wc, NPUEMU_ST_SUCCESS);
		sys_true(wc.flags & NPUEMU_WC_RECV, "flags %#x", wc.flags);
		sys_eq(wc.user_data, ra.user_data);
		sys_eq(wc.byte_cnt, length_of(i, p->len));
		sys_eq(wc.opcode, i & 1 ? NPUEMU_OP_SEND_IMM : NPUEMU_OP_SEND);
		sys_eq(!!(wc.flags & NPUEMU_WC_IMM), i & 1);
		if (i & 1)
			sys_eq(wc.imm, imm_of(i));
		check_message(&m, p, wc.wqe % DEPTH, i, wc.byte_cnt);
		if (p->again)
			give(rq, &m, p, wc.wqe % DEPTH);
	}
	if (p->until_killed)
		npuemu_wait(ra.cq, NPUEMU_FOREVER);
	sys_wait_go(fd);
	/* what was refused took no buffer */
	sys_rc(npuemu_rq_query(rq, &info));
	if (p->token)
		sys_eq(info.consumed, p->expect);
	/* A message that was too long may have left a completion here. */
	sys_rc(npuemu_queue_destroy(q));
	sys_rc(npuemu_rq_destroy(rq));
	sys_rc(npuemu_cq_destroy(ra.cq));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

struct sender {
	struct npuemu *ctx;
	struct sys_child c;
	struct address a;
	struct sys_mem m;
	struct npuemu_queue *q;
};

static void sender_open(struct sender *s, const struct plan *p, const struct npuemu_queue_attr *qa)
{
	s->ctx = sys_open();
	sys_spawn(&s->c, receiver, p, sizeof(*p));
	sys_get(s->c.fd, &s->a, sizeof(s->a));
	sys_mem_make(s->ctx, &s->m, 0, (uint64_t)DEPTH * SLOT, NPUEMU_ACCESS_LOCAL);
	sys_rc(npuemu_queue_create(s->ctx, qa, &s->q));
}

static void sender_close(struct sender *s)
{
	sys_rc(npuemu_queue_destroy(s->q));
	sys_mem_drop(&s->m);
	sys_rc(npuemu_close(s->ctx));
}

/* Message @i from slot @i of the sender's memory; they stay in order. */
static void post(struct sender *s, const struct plan *p, uint32_t i, uint32_t flags)
{
	unsigned char *src = s->m.p + (size_t)(i % DEPTH) * SLOT;
	uint32_t n = length_of(i, p->len);

	sys_fill(src, n, i);
	if (i & 1)
		sys_rc(npuemu_post_send_imm(s->q, src, n, &s->a.t, 1, imm_of(i),
					    flags | NPUEMU_STRONG));
	else
		sys_rc(npuemu_post_send(s->q, src, n, &s->a.t, 1, flags | NPUEMU_STRONG));
}

static void messages(const struct plan *p, uint32_t batch)
{
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct sender s;
	uint32_t i;

	qa.rnr_retry = 7;
	sender_open(&s, p, &qa);
	for (i = 0; i < p->expect; i++) {
		bool last = i % batch == batch - 1 || i + 1 == p->expect;

		post(&s, p, i, last ? NPUEMU_SQE_CQE : 0);
		if (last)
			sys_run(s.q);
	}
	sys_go(s.c.fd);
	sys_join(&s.c);
	sender_close(&s);
}

static void one_by_one(void **state)
{
	struct plan p = { .give = DEPTH, .len = SLOT, .sges = 1, .expect = 64 };

	(void)state;
	messages(&p, 1);
}

static void stream(void **state)
{
	struct plan p = { .give = DEPTH, .len = SLOT, .sges = 1, .expect = 1500, .again = 1 };

	(void)state;
	messages(&p, 16);
}

static void pieces(void **state)
{
	static const uint32_t sges[] = { 2, 4, 8 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct plan p = {
			.give = DEPTH, .len = 5003, .sges = sges[i], .expect = 100, .again = 1,
		};

		messages(&p, 8);
	}
}

/* The receive queue takes as many as it has room for. */
static void full(void **state)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_rq_attr ra = { .size = sizeof(ra), .depth = 64 };
	struct npuemu_sge sge[2] = { { .len = 64 }, { .len = 64 } };
	struct npuemu_rq *rq;
	struct sys_mem m;
	int i;

	(void)state;
	sys_mem_make(ctx, &m, 0, 4096, NPUEMU_ACCESS_LOCAL);
	ra.cq = sys_cq(ctx, 64, 0);
	sys_rc(npuemu_rq_create(ctx, &ra, &rq));
	sge[0].va = sge[1].va = (uintptr_t)m.p;
	sys_err(npuemu_post_recv(rq, sge, 2), -EINVAL);
	for (i = 0; i < 64; i++)
		sys_rc(npuemu_post_recv(rq, sge, 1));
	sys_eq(npuemu_post_recv(rq, sge, 1), (unsigned long long)-EAGAIN);
	sys_err(npuemu_cq_destroy(ra.cq), -EBUSY);
	sys_rc(npuemu_rq_destroy(rq));
	sys_rc(npuemu_cq_destroy(ra.cq));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

/* The longest message, at odd addresses, into two pieces that lie apart. */
static void longest(void **state)
{
	const uint32_t n = 16u << 20, part = (7u << 20) + 5;
	struct npuemu *ctx = sys_open();
	struct npuemu_rq_attr ra = { .size = sizeof(ra), .depth = 64, .max_sge = 2 };
	struct npuemu_rq_info info = { .size = sizeof(info) };
	struct npuemu_queue *q = sys_queue(ctx, 0, 64);
	unsigned char *src, *dst[2];
	struct npuemu_target t;
	struct npuemu_sge sge[2];
	struct npuemu_rq *rq;
	struct npuemu_wc wc;
	struct sys_mem m;

	(void)state;
	sys_mem_make(ctx, &m, 0, 40u << 20, NPUEMU_ACCESS_LOCAL);
	src = m.p + 3;
	dst[0] = m.p + (17u << 20) + 1;
	dst[1] = dst[0] + part + 4096 + 9;
	memset(m.p + (17u << 20), 0xee, 23u << 20);
	sys_fill(src, n, 7);
	ra.cq = sys_cq(ctx, 64, 0);
	sys_rc(npuemu_rq_create(ctx, &ra, &rq));
	sge[0] = (struct npuemu_sge){ .len = part, .va = (uintptr_t)dst[0] };
	sge[1] = (struct npuemu_sge){ .len = n - part, .va = (uintptr_t)dst[1] };
	sys_rc(npuemu_post_recv(rq, sge, 2));
	sys_rc(npuemu_rq_query(rq, &info));
	memset(&t, 0, sizeof(t));
	memcpy(t.eid, info.eid.w, sizeof(t.eid));
	t.token_id = info.id;
	sys_rc(npuemu_post_send(q, src, n, &t, 0, NPUEMU_SQE_CQE));
	sys_run(q);
	sys_one(ra.cq, &wc);
	sys_is_status(&wc, NPUEMU_ST_SUCCESS);
	sys_eq(wc.byte_cnt, n);
	sys_same("the first piece", dst[0], src, part);
	sys_is_byte("behind it", dst[0] + part, 4096 + 9, 0xee);
	sys_same("the second piece", dst[1], src + part, n - part);
	sys_is_byte("behind that", dst[1] + n - part, 4096, 0xee);
	sys_rc(npuemu_queue_destroy(q));
	sys_rc(npuemu_rq_destroy(rq));
	sys_rc(npuemu_cq_destroy(ra.cq));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

/* ---- No receive buffer ------------------------------------------------------------- */

static void rnr(void **state)
{
	struct plan p = { .len = SLOT, .sges = 1 };
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct npuemu_queue_stat st;
	struct npuemu_wc wc;
	struct sender s;
	uint32_t retry;

	(void)state;
	qa.rnr_retry = 0;
	sender_open(&s, &p, &qa);
	for (retry = 0; retry <= 2; retry++) {
		if (retry) {
			sys_rc(npuemu_queue_destroy(s.q));
			qa.rnr_retry = retry;
			sys_rc(npuemu_queue_create(s.ctx, &qa, &s.q));
		}
		post(&s, &p, 2, NPUEMU_SQE_CQE);
		sys_rc(npuemu_doorbell(s.q));
		sys_one(npuemu_queue_cq(s.q), &wc);
		sys_is_status(&wc, NPUEMU_ST_RNR_RETRY_CNT_EXC);
		st = sys_stat(s.q);
		sys_eq(st.state, NPUEMU_QS_ERROR);
		sys_true(st.cnt.rnr >= 1, "rnr counter %llu", (unsigned long long)st.cnt.rnr);
	}
	sys_go(s.c.fd);
	sys_join(&s.c);
	sender_close(&s);
}

/* It retries for ever; the buffers come later. */
static void rnr_then_buffer(void **state)
{
	struct plan p = { .more = 4, .len = SLOT, .sges = 1, .expect = 4 };
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct npuemu_wc wc;
	struct sender s;
	uint32_t i;

	(void)state;
	qa.rnr_retry = 7;
	sender_open(&s, &p, &qa);
	for (i = 0; i < 4; i++)
		post(&s, &p, i, NPUEMU_SQE_CQE);
	sys_rc(npuemu_doorbell(s.q));
	sys_err(npuemu_wait(npuemu_queue_cq(s.q), npuemu_deadline_ms(30)), -ETIMEDOUT);
	sys_go(s.c.fd);
	for (i = 0; i < 4; i++) {
		sys_one(npuemu_queue_cq(s.q), &wc);
		sys_is_status(&wc, NPUEMU_ST_SUCCESS);
		sys_eq(wc.wqe, i);
	}
	sys_go(s.c.fd);
	sys_join(&s.c);
	sender_close(&s);
}

static void too_long(void **state)
{
	struct plan p = { .give = 4, .len = 64, .sges = 1, .expect = 2 };
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct npuemu_wc wc;
	struct sender s;

	(void)state;
	sender_open(&s, &p, &qa);
	post(&s, &p, 0, NPUEMU_SQE_CQE);
	sys_run(s.q);
	post(&s, &p, 1, NPUEMU_SQE_CQE);
	sys_run(s.q);
	sys_rc(npuemu_post_send(s.q, s.m.p, 65, &s.a.t, 1, NPUEMU_SQE_CQE));
	sys_rc(npuemu_doorbell(s.q));
	sys_one(npuemu_queue_cq(s.q), &wc);
	sys_is_status(&wc, NPUEMU_ST_REM_RESP_LEN);
	sys_eq(sys_stat(s.q).state, NPUEMU_QS_ERROR);
	sys_go(s.c.fd);
	sys_join(&s.c);
	sender_close(&s);
}

/* ---- No receiver ------------------------------------------------------------------- */

static void wrong_address(void **state)
{
	struct plan p = { .give = 4, .len = 64, .sges = 1 };
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct npuemu_target t;
	struct sender s;

	(void)state;
	qa.ack_timeout_ms = 100;
	sender_open(&s, &p, &qa);
	t = s.a.t;
	t.token_id ^= 0x155;
	sys_rc(npuemu_post_send(s.q, s.m.p, 8, &t, 1, NPUEMU_SQE_CQE));
	sys_true(sys_finish(s.q), "a jetty that does not exist");
	sys_revive(s.q);
	t = s.a.t;
	t.eid[0] ^= 0xffff;
	t.eid[3] ^= 0xffff;
	sys_rc(npuemu_post_send(s.q, s.m.p, 8, &t, 1, NPUEMU_SQE_CQE));
	sys_true(sys_finish(s.q), "an EID that does not exist");
	sys_revive(s.q);
	/* a jetty's id is not an RQ's */
	sys_rc(npuemu_post_send(s.q, s.m.p, 8, &s.a.t, 2, NPUEMU_SQE_CQE));
	sys_true(sys_finish(s.q), "a group");
	sys_go(s.c.fd);
	sys_join(&s.c);
	sender_close(&s);
}

/* ---- Tokens ------------------------------------------------------------------------ */

/* As npuemu_post_send(), but without the token. */
static void post_bare(struct sender *s, const struct npuemu_target *t, uint32_t jetty)
{
	struct {
		struct npuemu_sqe sqe;
		struct npuemu_sge sge;
	} w = {
		.sqe = {
			.dw0 = NPUEMU_SQE_CQE | jetty << NPUEMU_SQE_RMT_TYPE_SHIFT,
			.dw1 = NPUEMU_OP_SEND << NPUEMU_SQE_OPCODE_SHIFT,
			.dw2 = 1u << NPUEMU_SQE_SGE_NUM_SHIFT,
			.dw3 = t->token_id,
			.rmt_token_value = t->token_value,
		},
		.sge = { .len = 8, .va = (uintptr_t)s->m.p },
	};

	memcpy(w.sqe.rmt_eid, t->eid, sizeof(t->eid));
	sys_rc(npuemu_post_raw(s->q, &w, 1));
}

static void refused(struct sender *s)
{
	struct npuemu_wc wc;

	sys_rc(npuemu_doorbell(s->q));
	sys_one(npuemu_queue_cq(s->q), &wc);
	sys_is_status(&wc, NPUEMU_ST_REM_ACCESS_ABORT);
	sys_revive(s->q);
}

static void wrong_tokens(struct sender *s, const struct npuemu_target *right, uint32_t jetty)
{
	static const uint32_t flips[] = { 1, 0x80000000, 0x10000, 0xffffffff };
	struct npuemu_target t = *right;

	for (unsigned int i = 0; i < sizeof(flips) / sizeof(flips[0]); i++) {
		t.token_value = right->token_value ^ flips[i];
		sys_rc(npuemu_post_send(s->q, s->m.p, 8, &t, jetty, NPUEMU_SQE_CQE));
		refused(s);
		/* where the payload does not lie in the message */
		sys_rc(npuemu_post_send_imm(s->q, s->m.p, SLOT, &t, jetty, 1, NPUEMU_SQE_CQE));
		refused(s);
	}
	t.token_value = 0;
	sys_rc(npuemu_post_send(s->q, s->m.p, 8, &t, jetty, NPUEMU_SQE_CQE));
	refused(s);
	post_bare(s, right, jetty);
	refused(s);
}

/* Nothing but the right token gets anything through, by the jetty or to the RQ itself. */
static void tokens(void **state)
{
	static const uint32_t values[] = { 0, 0x80000001 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct plan p = {
			.give = 4, .len = SLOT, .sges = 1, .expect = 4, .token = NPUEMU_RQ_TOKEN,
			.token_value = values[i],
		};
		struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
		struct sender s;

		sender_open(&s, &p, &qa);
		for (uint32_t k = 0; k < p.expect; k++) {
			wrong_tokens(&s, &s.a.t, 1);
			wrong_tokens(&s, &s.a.rq, 0);
			post(&s, &p, k, NPUEMU_SQE_CQE);
			sys_run(s.q);
		}
		sys_go(s.c.fd);
		sys_join(&s.c);
		sender_close(&s);
	}
}

/* No buffer is given: a stranger is not told so. */
static void token_before_rnr(void **state)
{
	struct plan p = { .len = SLOT, .sges = 1, .token = NPUEMU_RQ_TOKEN };
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct npuemu_wc wc;
	struct sender s;

	(void)state;
	qa.rnr_retry = 0;
	sender_open(&s, &p, &qa);
	wrong_tokens(&s, &s.a.t, 1);
	sys_eq(sys_stat(s.q).cnt.rnr, 0);
	post(&s, &p, 2, NPUEMU_SQE_CQE);
	sys_rc(npuemu_doorbell(s.q));
	sys_one(npuemu_queue_cq(s.q), &wc);
	sys_is_status(&wc, NPUEMU_ST_RNR_RETRY_CNT_EXC);
	sys_go(s.c.fd);
	sys_join(&s.c);
	sender_close(&s);
}

/* Who asks for none gets whatever is sent. */
static void no_token(void **state)
{
	struct plan p = { .give = 4, .len = SLOT, .sges = 1, .expect = 4 };
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct sender s;

	(void)state;
	sender_open(&s, &p, &qa);
	for (uint32_t k = 0; k < p.expect; k++) {
		s.a.t.token_value = k * 0x12345677;
		post(&s, &p, k, NPUEMU_SQE_CQE);
		sys_run(s.q);
	}
	sys_go(s.c.fd);
	sys_join(&s.c);
	sender_close(&s);
}

static void dead_receiver(void **state)
{
	struct plan p = { .give = 4, .len = SLOT, .sges = 1, .until_killed = 1 };
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct npuemu_wc wc;
	struct sender s;

	(void)state;
	qa.ack_timeout_ms = 200;
	sender_open(&s, &p, &qa);
	post(&s, &p, 0, NPUEMU_SQE_CQE);
	sys_run(s.q);
	sys_kill(&s.c);
	sys_rc(npuemu_post_send(s.q, s.m.p, 8, &s.a.t, 1, NPUEMU_SQE_CQE));
	sys_rc(npuemu_doorbell(s.q));
	sys_one(npuemu_queue_cq(s.q), &wc);
	sys_is_status(&wc, NPUEMU_ST_ACK_TIMEOUT);
	sys_eq(sys_stat(s.q).state, NPUEMU_QS_ERROR);
	sender_close(&s);
}

/* ---- One CQ for all ---------------------------------------------------------------- */

static void shared_cq(void **state)
{
	enum { N = 40 };
	struct npuemu *ctx = sys_open();
	struct npuemu_rq_attr ra = { .size = sizeof(ra), .depth = 64, .user_data = 3 };
	struct npuemu_queue_map map = { .size = sizeof(map) };
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct npuemu_queue *q[2];
	uint32_t sent[2] = { 0, 0 }, got = 0, i;
	struct npuemu_rq *rq;
	struct npuemu_target t;
	struct sys_mem m;
	struct npuemu_wc wc;

	(void)state;
	sys_mem_make(ctx, &m, 0, 65536, NPUEMU_ACCESS_LOCAL);
	/* not meant for several: refused */
	ra.cq = sys_cq(ctx, 256, 0);
	sys_rc(npuemu_rq_create(ctx, &ra, &rq));
	qa.cq = ra.cq;
	sys_err(npuemu_queue_create(ctx, &qa, &q[0]), -EBUSY);
	sys_rc(npuemu_rq_destroy(rq));
	sys_rc(npuemu_cq_destroy(ra.cq));

	ra.cq = sys_cq(ctx, 256, NPUEMU_CQ_SHARED);
	sys_rc(npuemu_rq_create(ctx, &ra, &rq));
	qa.cq = ra.cq;
	qa.rq = rq;
	for (i = 0; i < 2; i++) {
		qa.user_data = i + 1;
		sys_rc(npuemu_queue_create(ctx, &qa, &q[i]));
		sys_true(npuemu_queue_cq(q[i]) == ra.cq, "another CQ");
	}
	for (i = 0; i < 64; i++) {
		struct npuemu_sge sge = { .len = 64, .va = (uintptr_t)m.p + 4096 + i * 64 };

		sys_rc(npuemu_post_recv(rq, &sge, 1));
	}
	sys_rc(npuemu_queue_map(q[0], &map));
	memset(&t, 0, sizeof(t));
	memcpy(t.eid, map.eid.w, sizeof(t.eid));
	t.token_id = map.id;
	for (i = 0; i < N; i++)
		sys_rc(npuemu_post_send(q[i & 1], m.p, 64, &t, 1, NPUEMU_SQE_CQE));
	sys_rc(npuemu_doorbell(q[0]));
	sys_rc(npuemu_doorbell(q[1]));
	for (i = 0; i < 2 * N; i++) {
		sys_one(ra.cq, &wc);
		sys_is_status(&wc, NPUEMU_ST_SUCCESS);
		if (wc.flags & NPUEMU_WC_RECV) {
			sys_eq(wc.user_data, 3);
			sys_eq(wc.byte_cnt, 64);
			got++;
			continue;
		}
		sys_true(wc.user_data == 1 || wc.user_data == 2, "user data %llu",
			 (unsigned long long)wc.user_data);
		sys_eq(wc.wqe, sent[wc.user_data - 1]);
		sys_eq(wc.queue, sys_stat(q[wc.user_data - 1]).id);
		sent[wc.user_data - 1]++;
	}
	sys_eq(got, N);
	sys_eq(sent[0], N / 2);
	sys_eq(sent[1], N / 2);
	sys_eq(npuemu_poll(ra.cq, &wc, 1), 0);
	sys_err(npuemu_rq_destroy(rq), -EBUSY);
	sys_rc(npuemu_queue_destroy(q[0]));
	sys_rc(npuemu_queue_destroy(q[1]));
	sys_err(npuemu_cq_destroy(ra.cq), -EBUSY);
	sys_rc(npuemu_rq_destroy(rq));
	sys_rc(npuemu_cq_destroy(ra.cq));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(one_by_one),
		sys_test(stream),
		sys_test(pieces),
		sys_test(full),
		sys_test(longest),
		sys_test(rnr),
		sys_test(rnr_then_buffer),
		sys_test(too_long),
		sys_test(wrong_address),
		sys_test(tokens),
		sys_test(token_before_rnr),
		sys_test(no_token),
		sys_test(dead_receiver),
		sys_test(shared_cq),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
