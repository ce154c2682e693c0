// SPDX-License-Identifier: MIT
/*
 * Fault injection: each kind, each status, by queue, by device, by process, by
 * rate and count, from a seed; and that nothing else is hit.
 */
#include <errno.h>
#include <string.h>

#include "sys.h"

struct bench {
	struct npuemu *ctx;
	struct npuemu_queue *q;
	struct sys_mem near, far;
};

static void start(struct bench *b, uint32_t ack_timeout_ms, uint32_t error_suspend)
{
	struct npuemu_queue_attr attr = sys_queue_attr(0, 64);

	b->ctx = sys_open();
	sys_mem_make(b->ctx, &b->near, 0, 65536, SYS_RWA);
	sys_mem_make(b->ctx, &b->far, 1, 65536, SYS_RWA);
	attr.ack_timeout_ms = ack_timeout_ms;
	attr.error_suspend = error_suspend;
	sys_rc(npuemu_queue_create(b->ctx, &attr, &b->q));
}

static void stop(struct bench *b)
{
	sys_rc(npuemu_fault_clear(b->ctx));
	sys_rc(npuemu_queue_destroy(b->q));
	sys_mem_drop(&b->near);
	sys_mem_drop(&b->far);
	sys_rc(npuemu_close(b->ctx));
}

static struct npuemu_fault fault_of(uint32_t kind)
{
	struct npuemu_fault f = {
		.size = sizeof(f), .kind = kind, .slot = NPUEMU_ANY, .queue = NPUEMU_ANY,
		.device = NPUEMU_ANY, .rate_ppm = 1000000, .seed = 1,
	};

	return f;
}

/* One WRITE; its status.  An error leaves the queue as it may. */
static uint32_t do_write(struct bench *b, struct npuemu_queue *q)
{
	sys_rc(npuemu_post_write(q, b->near.p, 8, &b->far.t, b->far.va, NPUEMU_SQE_CQE));
	return sys_finish(q);
}

static uint32_t do_read(struct bench *b)
{
	sys_rc(npuemu_post_read(b->q, b->near.p, 8, &b->far.t, b->far.va, NPUEMU_SQE_CQE));
	return sys_finish(b->q);
}

static void statuses(void **state)
{
	static const uint32_t all[] = {
		NPUEMU_ST_UNSUPPORTED_OPCODE, NPUEMU_ST_LOC_LEN, NPUEMU_ST_LOC_ACCESS,
		NPUEMU_ST_REM_RESP_LEN, NPUEMU_ST_LOC_DATA_POISON, NPUEMU_ST_REM_UNSUPPORTED_REQ,
		NPUEMU_ST_REM_ACCESS_ABORT, NPUEMU_ST_REM_DATA_POISON,
		NPUEMU_ST_RNR_RETRY_CNT_EXC, NPUEMU_ST_ACK_TIMEOUT, NPUEMU_ST_WR_FLUSH_ERR,
	};
	struct npuemu_fault f = fault_of(NPUEMU_FAULT_STATUS);
	struct npuemu_queue_stat st;
	struct bench b;
	size_t i;

	(void)state;
	start(&b, 0, 0);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		f.status = all[i];
		sys_rc(npuemu_fault_inject(b.ctx, &f));
		memset(b.near.p, 0x11, 8);
		memset(b.far.p, 0, 8);
		sys_eq(do_write(&b, b.q), all[i]);
		sys_is_byte("nothing moved", b.far.p, 8, 0);
		st = sys_stat(b.q);
		sys_eq(st.state, NPUEMU_QS_ERROR);
		sys_eq(st.last_status, all[i]);
		sys_eq(st.cnt.faults, i + 1);
		sys_rc(npuemu_fault_clear(b.ctx));
		sys_revive(b.q);
		sys_eq(do_write(&b, b.q), 0);
		sys_is_byte("moved", b.far.p, 8, 0x11);
	}
	/* this is none */
	f.status = 0x777;
	sys_err(npuemu_fault_inject(b.ctx, &f), -EINVAL);
	stop(&b);
}

/* What @status_str says of each status, and of none. */
static void names(void **state)
{
	static const struct { uint32_t status; const char *name; } all[] = {
		{ NPUEMU_ST_SUCCESS, "SUCCESS (0.0)" },
		{ NPUEMU_ST_UNSUPPORTED_OPCODE, "UNSUPPORTED_OPCODE (1.0)" },
		{ NPUEMU_ST_LOC_LEN, "LOC_LEN (2.1)" },
		{ NPUEMU_ST_LOC_ACCESS, "LOC_ACCESS (2.2)" },
		{ NPUEMU_ST_REM_RESP_LEN, "REM_RESP_LEN (2.3)" },
		{ NPUEMU_ST_LOC_DATA_POISON, "LOC_DATA_POISON (2.4)" },
		{ NPUEMU_ST_REM_UNSUPPORTED_REQ, "REM_UNSUPPORTED_REQ (3.1)" },
		{ NPUEMU_ST_REM_ACCESS_ABORT, "REM_ACCESS_ABORT (3.2)" },
		{ NPUEMU_ST_REM_DATA_POISON, "REM_DATA_POISON (3.4)" },
		{ NPUEMU_ST_RNR_RETRY_CNT_EXC, "RNR_RETRY_CNT_EXC (4.0)" },
		{ NPUEMU_ST_ACK_TIMEOUT, "ACK_TIMEOUT (5.0)" },
		{ NPUEMU_ST_WR_FLUSH_ERR, "WR_FLUSH_ERR (6.0)" },
	};
	const char *text;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		text = npuemu_status_str(all[i].status);
		sys_true(!strncmp(text, all[i].name, strlen(all[i].name)), "%s", text);
	}
	text = npuemu_status_str(0x12345678);
	sys_true(text && text[0], "no text for a status that is none");
	sys_true(npuemu_version()[0], "no version");
}

static void delay(void **state)
{
	struct npuemu_fault f = fault_of(NPUEMU_FAULT_DELAY);
	struct npuemu_wc wc;
	struct bench b;
	int64_t begin;
	int i;

	(void)state;
	start(&b, 0, 0);
	f.delay_us = 40000;
	sys_rc(npuemu_fault_inject(b.ctx, &f));
	for (i = 0; i < 3; i++) {
		*(uint64_t *)b.near.p = (uint64_t)i + 1;
		begin = npuemu_now_ns();
		sys_rc(npuemu_post_write(b.q, b.near.p, 8, &b.far.t, b.far.va, NPUEMU_SQE_CQE));
		sys_rc(npuemu_doorbell(b.q));
		sys_one(npuemu_queue_cq(b.q), &wc);
		sys_is_status(&wc, NPUEMU_ST_SUCCESS);
		sys_true(npuemu_now_ns() - begin >= 40000000, "done after %lld ns",
			 (long long)(npuemu_now_ns() - begin));
		sys_eq(*(uint64_t *)b.far.p, i + 1);
	}
	sys_eq(sys_stat(b.q).cnt.faults, 3);
	sys_rc(npuemu_fault_clear(b.ctx));
	sys_eq(do_write(&b, b.q), 0);
	stop(&b);
}

static void drop(void **state)
{
	struct npuemu_fault f = fault_of(NPUEMU_FAULT_DROP);
	struct bench b;
	int64_t begin;

	(void)state;
	start(&b, 60, 0);
	f.count = 1;
	sys_rc(npuemu_fault_inject(b.ctx, &f));
	begin = npuemu_now_ns();
	memset(b.near.p, 0x11, 8);
	sys_eq(do_write(&b, b.q), NPUEMU_ST_ACK_TIMEOUT);
	sys_true(npuemu_now_ns() - begin >= 60000000, "lost after %lld ns",
		 (long long)(npuemu_now_ns() - begin));
	sys_is_byte("nothing moved", b.far.p, 8, 0);
	sys_revive(b.q);
	/* once is enough */
	sys_eq(do_write(&b, b.q), 0);
	stop(&b);
}

static void poison(void **state)
{
	struct npuemu_fault f = fault_of(NPUEMU_FAULT_POISON);
	struct bench b;

	(void)state;
	start(&b, 0, 0);
	sys_rc(npuemu_fault_inject(b.ctx, &f));
	sys_eq(do_write(&b, b.q), NPUEMU_ST_LOC_DATA_POISON);
	sys_revive(b.q);
	sys_eq(do_read(&b), NPUEMU_ST_REM_DATA_POISON);
	sys_revive(b.q);
	sys_rc(npuemu_fault_clear(b.ctx));
	sys_eq(do_read(&b), 0);
	stop(&b);
}

/* A peer that lives, but is said not to answer; others do. */
static void peer(int fd, const void *arg)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_info info = { .size = sizeof(info) };
	struct sys_mem m;

	(void)arg;
	sys_mem_make(ctx, &m, 1, 4096, SYS_RWA);
	sys_rc(npuemu_query(ctx, &info));
	sys_put(fd, &m.info, sizeof(m.info));
	sys_put(fd, &info.pid_slot, sizeof(info.pid_slot));
	sys_wait_go(fd);
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

static void dead_peer(void **state)
{
	struct npuemu_fault f = fault_of(NPUEMU_FAULT_DEAD_PEER);
	struct npuemu_seg_info info;
	struct npuemu_target t;
	struct sys_child c;
	struct bench b;

	(void)state;
	start(&b, 50, 0);
	sys_spawn(&c, peer, NULL, 0);
	sys_get(c.fd, &info, sizeof(info));
	sys_get(c.fd, &f.peer_slot, sizeof(f.peer_slot));
	t = npuemu_target_of(&info);
	sys_rc(npuemu_post_write(b.q, b.near.p, 8, &t, info.va, NPUEMU_SQE_CQE));
	sys_run(b.q);
	sys_rc(npuemu_fault_inject(b.ctx, &f));
	sys_rc(npuemu_post_write(b.q, b.near.p, 8, &t, info.va, NPUEMU_SQE_CQE));
	sys_eq(sys_finish(b.q), NPUEMU_ST_ACK_TIMEOUT);
	sys_revive(b.q);
	/* only that one */
	sys_eq(do_write(&b, b.q), 0);
	sys_rc(npuemu_fault_clear(b.ctx));
	sys_rc(npuemu_post_write(b.q, b.near.p, 8, &t, info.va, NPUEMU_SQE_CQE));
	sys_run(b.q);
	sys_go(c.fd);
	sys_join(&c);
	stop(&b);
}

static void by_queue(void **state)
{
	struct npuemu_fault f = fault_of(NPUEMU_FAULT_STATUS);
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu_queue *other, *far;
	struct bench b;

	(void)state;
	start(&b, 0, 0);
	other = sys_queue(b.ctx, 0, 64);
	far = sys_queue(b.ctx, 1, 64);
	sys_rc(npuemu_query(b.ctx, &info));
	f.status = NPUEMU_ST_LOC_LEN;
	f.queue = sys_stat(b.q).id;
	sys_rc(npuemu_fault_inject(b.ctx, &f));
	sys_eq(do_write(&b, other), 0);
	sys_eq(do_write(&b, b.q), NPUEMU_ST_LOC_LEN);
	sys_revive(b.q);
	sys_rc(npuemu_fault_clear(b.ctx));

	f.queue = NPUEMU_ANY;
	f.device = 1;
	sys_rc(npuemu_fault_inject(b.ctx, &f));
	sys_eq(do_write(&b, b.q), 0);
	sys_eq(do_write(&b, far), NPUEMU_ST_LOC_LEN);
	sys_revive(far);
	sys_rc(npuemu_fault_clear(b.ctx));

	f.device = NPUEMU_ANY;
	f.slot = info.pid_slot + 1;
	sys_rc(npuemu_fault_inject(b.ctx, &f));
	sys_eq(do_write(&b, b.q), 0);
	f.slot = info.pid_slot;
	sys_rc(npuemu_fault_inject(b.ctx, &f));
	sys_eq(do_write(&b, b.q), NPUEMU_ST_LOC_LEN);
	sys_revive(b.q);
	sys_rc(npuemu_fault_clear(b.ctx));
	sys_rc(npuemu_queue_destroy(other));
	sys_rc(npuemu_queue_destroy(far));
	stop(&b);
}

#define WQES	2000u

/* Which of @WQES writes are hit, on a queue that goes on after an error. */
static unsigned int hits(struct npuemu_fault *f, unsigned char *map)
{
	unsigned int i, n = 0;
	struct bench b;

	start(&b, 0, 1);
	sys_rc(npuemu_fault_inject(b.ctx, f));
	for (i = 0; i < WQES; i++) {
		map[i] = do_write(&b, b.q) != 0;
		n += map[i];
		if (map[i])
			sys_rc(npuemu_queue_modify(b.q, NPUEMU_QS_READY));
	}
	sys_eq(sys_stat(b.q).cnt.faults, n);
	stop(&b);
	return n;
}

static void by_rate(void **state)
{
	static unsigned char a[WQES], b[WQES], c[WQES];
	struct npuemu_fault f = fault_of(NPUEMU_FAULT_STATUS);
	unsigned int n;

	(void)state;
	f.status = NPUEMU_ST_REM_ACCESS_ABORT;
	f.rate_ppm = 100000;
	f.seed = 42;
	/* 200 expected, standard deviation 13 */
	n = hits(&f, a);
	sys_true(n > 100 && n < 300, "%u of %u at a rate of 10 %%", n, WQES);
	hits(&f, b);
	sys_same("the same seed", b, a, WQES);
	f.seed = 43;
	hits(&f, c);
	sys_true(memcmp(a, c, WQES), "another seed picks the same ones");
	f.count = 7;
	sys_eq(hits(&f, b), 7);
	f.count = 0;
	f.rate_ppm = 1000000;
	sys_eq(hits(&f, b), WQES);
}

static void sixteen(void **state)
{
	struct npuemu_fault f = fault_of(NPUEMU_FAULT_STATUS);
	struct bench b;
	int i, round;

	(void)state;
	start(&b, 0, 0);
	f.status = NPUEMU_ST_LOC_LEN;
	f.queue = 0xfffff;
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 16; i++)
			sys_rc(npuemu_fault_inject(b.ctx, &f));
		sys_err(npuemu_fault_inject(b.ctx, &f), -ENOSPC);
		sys_eq(do_write(&b, b.q), 0);
		sys_rc(npuemu_fault_clear(b.ctx));
		sys_rc(npuemu_fault_clear(b.ctx));
	}
	f.kind = 99;
	sys_err(npuemu_fault_inject(b.ctx, &f), -EINVAL);
	f = fault_of(NPUEMU_FAULT_STATUS);
	f.status = NPUEMU_ST_LOC_LEN;
	f.rate_ppm = 1000001;
	sys_err(npuemu_fault_inject(b.ctx, &f), -EINVAL);
	f.rate_ppm = 1000000;
	f.device = 77;
	sys_err(npuemu_fault_inject(b.ctx, &f), -EINVAL);
	stop(&b);
}

/* A fault set by one process reaches a queue of another that was there before. */
static void injector(int fd, const void *arg)
{
	const struct npuemu_fault *f = arg;
	struct npuemu_open_attr attr = { .size = sizeof(attr), .flags = NPUEMU_OPEN_OBSERVE };
	struct npuemu *ctx;

	sys_rc(npuemu_open(&attr, &ctx));
	sys_rc(npuemu_fault_inject(ctx, f));
	sys_go(fd);
	sys_wait_go(fd);
	sys_rc(npuemu_fault_clear(ctx));
	sys_rc(npuemu_close(ctx));
}

static void from_outside(void **state)
{
	struct npuemu_fault f = fault_of(NPUEMU_FAULT_STATUS);
	struct sys_child c;
	struct bench b;

	(void)state;
	start(&b, 0, 0);
	sys_eq(do_write(&b, b.q), 0);
	f.status = NPUEMU_ST_REM_UNSUPPORTED_REQ;
	sys_spawn(&c, injector, &f, sizeof(f));
	sys_wait_go(c.fd);
	sys_eq(do_write(&b, b.q), NPUEMU_ST_REM_UNSUPPORTED_REQ);
	sys_revive(b.q);
	sys_go(c.fd);
	sys_join(&c);
	sys_eq(do_write(&b, b.q), 0);
	stop(&b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(statuses),
		sys_test(names),
		sys_test(delay),
		sys_test(drop),
		sys_test(poison),
		sys_test(dead_peer),
		sys_test(by_queue),
		sys_test(by_rate),
		sys_test(sixteen),
		sys_test(from_outside),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
