// SPDX-License-Identifier: MIT
/*
 * Processes killed at any moment: the board goes on, nothing of them is left once
 * they are reaped, and those who deal with them are told.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys.h"

#define SLOT	512u

/* What the victims may use of the survivor. */
struct survivor {
	struct npuemu_handle handle;
	struct npuemu_seg_info info;
	struct npuemu_target jetty;
	uint64_t seed;
	uint32_t act;		/* what this one does */
};

enum act {
	ACT_ALLOC, ACT_REGISTER, ACT_POST, ACT_IMPORT, ACT_SEND, ACT_OPEN, ACT_QUEUES, ACT_ATOMIC,
	ACT_ALL, ACTS,
};

/* ---- The victims -------------------------------------------------------------------- */

static void act_alloc(struct npuemu *ctx, uint64_t *rnd)
{
	struct npuemu_buf *buf[4];
	int i;

	for (i = 0; i < 4; i++) {
		sys_rc(npuemu_buf_alloc(ctx, (uint32_t)i & 1, 1 + sys_rand(rnd) % (4 << 20), 0,
					&buf[i]));
		*(char *)npuemu_buf_ptr(buf[i]) = 1;
	}
	for (i = 0; i < 4; i++)
		sys_rc(npuemu_buf_free(buf[i]));
}

static void act_register(struct npuemu *ctx, uint64_t *rnd)
{
	static char host[8192];
	struct npuemu_mem *reg;
	struct sys_mem m;

	sys_mem_make(ctx, &m, 0, 8192, SYS_RWA);
	sys_rc(npuemu_mem_register(ctx, host + sys_rand(rnd) % 4096, 4096, &reg));
	sys_rc(npuemu_seg_rotate(m.seg, 0));
	sys_rc(npuemu_mem_unregister(reg));
	sys_mem_drop(&m);
}

static void act_post(struct npuemu *ctx, const struct survivor *s, uint64_t *rnd)
{
	struct npuemu_target t = npuemu_target_of(&s->info);
	struct npuemu_queue *q = sys_queue(ctx, 0, 64);
	struct sys_mem m;
	int i, k;

	sys_mem_make(ctx, &m, 0, 1 << 20, SYS_RWA);
	for (i = 0; i < 20; i++) {
		for (k = 0; k < 10; k++)
			sys_rc(npuemu_post_write(q, m.p, (uint32_t)(sys_rand(rnd) % 100000), &t,
						 s->info.va + 65536, k == 9 ? NPUEMU_SQE_CQE : 0));
		sys_run(q);
	}
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&m);
}

static void act_import(struct npuemu *ctx, const struct survivor *s)
{
	struct npuemu_buf *buf;

	sys_rc(npuemu_buf_import(ctx, &s->handle, &buf));
	((volatile char *)npuemu_buf_ptr(buf))[400000] = 1;
	sys_rc(npuemu_buf_free(buf));
}

/* Messages that say how long they are and of what. */
static void act_send(struct npuemu *ctx, const struct survivor *s, uint64_t *rnd)
{
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct npuemu_queue *q;
	struct sys_mem m;
	uint32_t i, n;

	qa.rnr_retry = 7;
	sys_rc(npuemu_queue_create(ctx, &qa, &q));
	sys_mem_make(ctx, &m, 0, 65536, NPUEMU_ACCESS_LOCAL);
	for (i = 0; i < 50; i++) {
		n = (uint32_t)(sys_rand(rnd) % (SLOT - 8));
		memcpy(m.p, &n, 4);
		memset(m.p + 4, (int)n, n);
		sys_rc(npuemu_post_send(q, m.p, n + 4, &s->jetty, 1, NPUEMU_SQE_CQE));
		sys_run(q);
	}
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&m);
}

static void act_queues(struct npuemu *ctx)
{
	struct npuemu_rq_attr ra = { .size = sizeof(ra), .depth = 64 };
	struct npuemu_queue *q = sys_queue(ctx, 1, 256);
	struct npuemu_queue_map map = { .size = sizeof(map) };
	struct npuemu_rq *rq;

	ra.cq = sys_cq(ctx, 64, 0);
	sys_rc(npuemu_rq_create(ctx, &ra, &rq));
	sys_rc(npuemu_queue_map(q, &map));
	sys_rc(npuemu_queue_modify(q, NPUEMU_QS_ERROR));
	sys_rc(npuemu_queue_modify(q, NPUEMU_QS_RESET));
	sys_rc(npuemu_rq_destroy(rq));
	sys_rc(npuemu_cq_destroy(ra.cq));
	sys_rc(npuemu_queue_destroy(q));
}

static void act_atomic(struct npuemu *ctx, const struct survivor *s)
{
	struct npuemu_target t = npuemu_target_of(&s->info);
	struct npuemu_queue *q = sys_queue(ctx, 0, 64);
	struct sys_mem m;
	int i;

	sys_mem_make(ctx, &m, 0, 8192, NPUEMU_ACCESS_LOCAL);
	for (i = 0; i < 50; i++) {
		sys_rc(npuemu_post_faa(q, m.p, 8, &t, s->info.va, 1, 0));
		sys_rc(npuemu_post_write_reduce(q, m.p + 4096, 4096, &t, s->info.va + 4096,
						NPUEMU_REDUCE_SUM, NPUEMU_FP32, 0));
		sys_rc(npuemu_post_write_notify(q, m.p, 8, &t, s->info.va + 16384, &t,
						s->info.va + 16384 + 64, 1, NPUEMU_SQE_CQE));
		sys_run(q);
	}
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&m);
}

static void do_act(struct npuemu *ctx, const struct survivor *s, uint32_t act, uint64_t *rnd)
{
	switch (act) {
	case ACT_ALLOC:
		act_alloc(ctx, rnd);
		break;
	case ACT_REGISTER:
		act_register(ctx, rnd);
		break;
	case ACT_POST:
		act_post(ctx, s, rnd);
		break;
	case ACT_IMPORT:
		act_import(ctx, s);
		break;
	case ACT_SEND:
		act_send(ctx, s, rnd);
		break;
	case ACT_QUEUES:
		act_queues(ctx);
		break;
	case ACT_ATOMIC:
		act_atomic(ctx, s);
		break;
	default:
		break;
	}
}

static void victim(int fd, const void *arg)
{
	const struct survivor *s = arg;
	uint64_t rnd = s->seed;
	struct npuemu *ctx;

	sys_go(fd);
	if (s->act == ACT_OPEN)
		for (;;)
			sys_rc(npuemu_close(sys_open()));
	ctx = sys_open();
	for (;;)
		do_act(ctx, s, s->act == ACT_ALL ? (uint32_t)(sys_rand(&rnd) % ACT_ALL) : s->act,
		       &rnd);
}

/* ---- The survivor --------------------------------------------------------------------- */

struct host {
	struct npuemu *ctx;
	struct sys_mem m, tx, rx;
	struct npuemu_queue *q;
	struct npuemu_rq *rq;
	struct npuemu_cq *rcq;
	struct survivor s;
	uint64_t mine;		/* bytes */
};

static void give(struct host *h, uint32_t slot)
{
	struct npuemu_sge sge = { .len = SLOT, .va = (uintptr_t)h->rx.p + slot * SLOT };

	memset(h->rx.p + slot * SLOT, 0xee, SLOT);
	sys_rc(npuemu_post_recv(h->rq, &sge, 1));
}

static void host_start(struct host *h)
{
	struct npuemu_rq_attr ra = { .size = sizeof(ra), .depth = 64 };
	struct npuemu_queue_map map = { .size = sizeof(map) };
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	uint32_t i;

	memset(h, 0, sizeof(*h));
	h->ctx = sys_open();
	sys_mem_make(h->ctx, &h->m, 1, 1 << 20, SYS_RWA);
	sys_mem_make(h->ctx, &h->tx, 0, 65536, SYS_RWA);
	sys_mem_make(h->ctx, &h->rx, 1, 64 * SLOT, NPUEMU_ACCESS_LOCAL);
	ra.cq = sys_cq(h->ctx, 128, 0);
	h->rcq = ra.cq;
	sys_rc(npuemu_rq_create(h->ctx, &ra, &h->rq));
	qa.rq = h->rq;
	qa.ack_timeout_ms = 200;
	sys_rc(npuemu_queue_create(h->ctx, &qa, &h->q));
	for (i = 0; i < 64; i++)
		give(h, i);
	sys_rc(npuemu_queue_map(h->q, &map));
	memcpy(h->s.jetty.eid, map.eid.w, sizeof(map.eid.w));
	h->s.jetty.token_id = map.id;
	h->s.info = h->m.info;
	sys_rc(npuemu_buf_export(h->m.buf, &h->s.handle));
	h->mine = sys_hbm_used(h->ctx);
}

static void host_stop(struct host *h)
{
	sys_rc(npuemu_queue_destroy(h->q));
	sys_rc(npuemu_rq_destroy(h->rq));
	sys_rc(npuemu_cq_destroy(h->rcq));
	sys_mem_drop(&h->m);
	sys_mem_drop(&h->tx);
	sys_mem_drop(&h->rx);
	sys_rc(npuemu_close(h->ctx));
}

/* Every message that came is whole. */
static void take_messages(struct host *h)
{
	struct npuemu_wc wc;
	uint32_t n;

	while (sys_rc(npuemu_poll(h->rcq, &wc, 1))) {
		unsigned char *p = h->rx.p + wc.wqe % 64 * SLOT;

		sys_is_status(&wc, NPUEMU_ST_SUCCESS);
		memcpy(&n, p, 4);
		sys_eq(wc.byte_cnt, n + 4);
		sys_is_byte("a message", p + 4, n, (unsigned char)n);
		sys_is_byte("behind a message", p + 4 + n, SLOT - 4 - n, 0xee);
		give(h, wc.wqe % 64);
	}
}

/* The board works for those who are left, and only they are on it. */
static void all_is_well(struct host *h, unsigned int processes, uint64_t value)
{
	struct npuemu_process_info list[8];
	int64_t deadline = sys_deadline();
	struct sys_mem m;

	take_messages(h);
	*(uint64_t *)h->tx.p = value;
	sys_rc(npuemu_post_write(h->q, h->tx.p, 8, &h->m.t, h->m.va + 512, NPUEMU_SQE_CQE));
	sys_run(h->q);
	sys_eq(*(uint64_t *)(h->m.p + 512), value);
	sys_mem_make(h->ctx, &m, 0, 4096, SYS_RWA);
	sys_eq(*(uint64_t *)m.p, 0);
	sys_mem_drop(&m);
	do {
		sys_rc(npuemu_reap(h->ctx));
	} while (npuemu_process_list(h->ctx, list, 8) != (int)processes && sys_retry(deadline));
	sys_eq(npuemu_process_list(h->ctx, list, 8), processes);
	if (processes == 1)
		sys_eq(sys_hbm_used(h->ctx), h->mine);
}

static void random_moments(uint32_t act, unsigned int n, uint64_t seed)
{
	unsigned int longest = sys_slow() ? 60000 : 12000;
	struct sys_child c;
	struct host h;
	unsigned int i;

	host_start(&h);
	for (i = 0; i < n; i++) {
		h.s.act = act;
		h.s.seed = seed + i;
		sys_spawn(&c, victim, &h.s, sizeof(h.s));
		sys_wait_go(c.fd);
		/* somebody must take the messages meanwhile */
		for (int64_t end = npuemu_now_ns() + 1000 * (int64_t)(sys_rand(&seed) % longest);
		     npuemu_now_ns() < end;) {
			take_messages(&h);
			usleep(200);
		}
		sys_kill(&c);
		all_is_well(&h, 1, i + 1);
	}
	host_stop(&h);
}

#define KILL_TEST(name, act, n) \
	static void name(void **state) \
	{ \
		(void)state; \
		random_moments(act, sys_slow() ? (n) / 2 : (n), 1000 * (act)); \
	}

KILL_TEST(in_alloc, ACT_ALLOC, 20)
KILL_TEST(in_register, ACT_REGISTER, 20)
KILL_TEST(in_post, ACT_POST, 20)
KILL_TEST(in_import, ACT_IMPORT, 20)
KILL_TEST(in_send, ACT_SEND, 24)
KILL_TEST(in_open, ACT_OPEN, 24)
KILL_TEST(in_queues, ACT_QUEUES, 16)
KILL_TEST(in_atomic, ACT_ATOMIC, 20)
KILL_TEST(in_all, ACT_ALL, 24)

/* Several at once, and one that lives on does not notice. */
static void bystander(int fd, const void *arg)
{
	const struct survivor *s = arg;
	struct npuemu *ctx = sys_open();
	uint64_t rnd = s->seed;
	char stop;

	sys_go(fd);
	do {
		do_act(ctx, s, (uint32_t)(sys_rand(&rnd) % ACT_ALL), &rnd);
		sys_go(fd);
		sys_get(fd, &stop, 1);
	} while (stop == 'g');
	sys_rc(npuemu_close(ctx));
}

static void together(void **state)
{
	struct sys_child c[3], by;
	uint64_t seed = 5;
	unsigned int i, k;
	struct host h;
	struct pollfd p;

	(void)state;
	host_start(&h);
	h.s.act = ACT_ALL;
	sys_spawn(&by, bystander, &h.s, sizeof(h.s));
	sys_wait_go(by.fd);
	p = (struct pollfd){ .fd = by.fd, .events = POLLIN };
	for (i = 0; i < (sys_slow() ? 4 : 10); i++) {
		for (k = 0; k < 3; k++) {
			h.s.seed = sys_rand(&seed);
			sys_spawn(&c[k], victim, &h.s, sizeof(h.s));
			sys_wait_go(c[k].fd);
		}
		for (k = 0; k < 3; k++) {
			for (int64_t end = npuemu_deadline_ms((int64_t)(sys_rand(&seed) % 15));
			     npuemu_now_ns() < end; usleep(200))
				take_messages(&h);
			sys_kill(&c[k]);
		}
		all_is_well(&h, 2, i + 1);
		/* it gets through a whole round */
		for (int64_t end = sys_deadline(); poll(&p, 1, 1) == 0;) {
			take_messages(&h);
			sys_true(npuemu_now_ns() < end, "the bystander hangs");
		}
		sys_wait_go(by.fd);
		sys_go(by.fd);
	}
	for (int64_t end = sys_deadline(); poll(&p, 1, 1) == 0;) {
		take_messages(&h);
		sys_true(npuemu_now_ns() < end, "the bystander hangs");
	}
	sys_wait_go(by.fd);
	sys_put(by.fd, "e", 1);
	sys_join(&by);
	all_is_well(&h, 1, 77);
	host_stop(&h);
}

/* ---- Those who deal with the dead -------------------------------------------------------- */

static void target(int fd, const void *arg)
{
	struct npuemu *ctx = sys_open();
	struct sys_mem m;

	(void)arg;
	sys_mem_make(ctx, &m, 1, 1 << 20, SYS_RWA);
	sys_put(fd, &m.info, sizeof(m.info));
	for (;;)
		pause();
}

static void writer_is_told(void **state)
{
	struct npuemu_seg_info info;
	struct npuemu_target t;
	struct sys_child c;
	uint32_t status;
	struct host h;
	int64_t end;
	int i, k;

	(void)state;
	host_start(&h);
	for (i = 0; i < 6; i++) {
		sys_spawn(&c, target, NULL, 0);
		sys_get(c.fd, &info, sizeof(info));
		t = npuemu_target_of(&info);
		for (k = 0; k < 20; k++) {
			sys_rc(npuemu_post_write(h.q, h.tx.p, 65536, &t, info.va, NPUEMU_SQE_CQE));
			sys_run(h.q);
		}
		/* with work in flight, and without */
		for (k = 0; i & 1 && k < 30; k++)
			sys_rc(npuemu_post_write(h.q, h.tx.p, 65536, &t, info.va, 0));
		sys_kill(&c);
		/* until somebody has noticed, its memory is still there */
		end = sys_deadline();
		do {
			sys_rc(npuemu_post_write(h.q, h.tx.p, 8, &t, info.va, NPUEMU_SQE_CQE));
			status = sys_finish(h.q);
		} while (!status && sys_retry(end));
		sys_true(status == NPUEMU_ST_ACK_TIMEOUT, "%s: %s", npuemu_status_str(status),
			 sys_stat(h.q).cause);
		sys_revive(h.q);
		/* still, when it is reaped */
		all_is_well(&h, 1, (uint64_t)i);
		sys_rc(npuemu_post_write(h.q, h.tx.p, 8, &t, info.va, NPUEMU_SQE_CQE));
		sys_true(sys_finish(h.q), "written to memory of a reaped process");
		sys_revive(h.q);
	}
	host_stop(&h);
}

static void exporter(int fd, const void *arg)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_handle handle;
	struct sys_mem m;

	(void)arg;
	sys_mem_make(ctx, &m, 1, 4096, SYS_RWA);
	sys_rc(npuemu_buf_export(m.buf, &handle));
	sys_put(fd, &handle, sizeof(handle));
	for (;;)
		pause();
}

struct waiting {
	struct npuemu_handle handle;
	int report;		/* the channel is standard error */
};

/* Waits without end for a word of the exporter; standard error goes to the test. */
static void waiter(int fd, const void *arg)
{
	const struct waiting *w = arg;
	struct npuemu_buf *buf;
	struct npuemu *ctx;
	int rc;

	if (w->report) {
		setenv("NPUEMU_HANG_REPORT", "1", 1);
		dup2(fd, STDERR_FILENO);
	}
	ctx = sys_open();
	sys_rc(npuemu_buf_import(ctx, &w->handle, &buf));
	if (!w->report)
		sys_go(fd);
	rc = npuemu_wait_word(ctx, npuemu_buf_ptr(buf), NPUEMU_CMP_EQ, 77, NPUEMU_FOREVER);
	if (rc != -EOWNERDEAD)
		_exit(1);
	sys_rc(npuemu_buf_free(buf));
	sys_rc(npuemu_close(ctx));
}

static void waiter_is_told(void **state)
{
	struct sys_child ex, w;
	struct waiting arg = { .report = 0 };

	(void)state;
	sys_spawn(&ex, exporter, NULL, 0);
	sys_get(ex.fd, &arg.handle, sizeof(arg.handle));
	sys_spawn(&w, waiter, &arg, sizeof(arg));
	sys_wait_go(w.fd);
	sys_nap(50);
	sys_kill(&ex);
	sys_join(&w);
}

/* Who waits for whom is said after the time asked for. */
static void hang_report(void **state)
{
	struct waiting arg = { .report = 1 };
	int64_t end = sys_deadline();
	struct sys_child ex, w;
	char text[4096] = "", pid[32];
	struct pollfd p;
	size_t n = 0;
	ssize_t got;

	(void)state;
	sys_spawn(&ex, exporter, NULL, 0);
	sys_get(ex.fd, &arg.handle, sizeof(arg.handle));
	sys_spawn(&w, waiter, &arg, sizeof(arg));
	p = (struct pollfd){ .fd = w.fd, .events = POLLIN };
	/* the one waited for is named */
	snprintf(pid, sizeof(pid), "%d", (int)ex.pid);
	while (!(strstr(text, "wait") && strstr(text, pid) && strchr(text, '\n'))) {
		sys_true(npuemu_now_ns() < end && n < sizeof(text) - 1,
			 "no report of who waits for process %s, but: '%s'", pid, text);
		if (poll(&p, 1, 100) <= 0)
			continue;
		got = read(w.fd, text + n, sizeof(text) - 1 - n);
		sys_true(got > 0, "it ended with '%s'", text);
		n += (size_t)got;
		text[n] = 0;
	}
	sys_kill(&ex);
	sys_join(&w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(in_alloc),
		sys_test(in_register),
		sys_test(in_post),
		sys_test(in_import),
		sys_test(in_send),
		sys_test(in_open),
		sys_test(in_queues),
		sys_test(in_atomic),
		sys_test(in_all),
		sys_test(together),
		sys_test(writer_is_told),
		sys_test(waiter_is_told),
		sys_test(hang_report),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
