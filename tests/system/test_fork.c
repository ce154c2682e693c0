// SPDX-License-Identifier: MIT
/*
 * fork() with a board open: the child gets -EPERM for everything it inherited and
 * may open a board of its own; what it does leaves the parent alone.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys.h"
#include "sys_spawn.h"

struct all {
	struct npuemu *ctx;
	struct sys_mem m;
	struct npuemu_mem *reg;
	struct npuemu_cq *cq;
	struct npuemu_rq *rq;
	struct npuemu_queue *q;
	struct npuemu_handle handle;
};

static char host[4096];

static void make(struct all *a)
{
	struct npuemu_rq_attr ra = { .size = sizeof(ra), .depth = 64 };

	a->ctx = sys_open();
	sys_mem_make(a->ctx, &a->m, 0, 65536, SYS_RWA);
	sys_rc(npuemu_buf_export(a->m.buf, &a->handle));
	sys_rc(npuemu_mem_register(a->ctx, host, sizeof(host), &a->reg));
	a->cq = sys_cq(a->ctx, 64, 0);
	ra.cq = a->cq;
	sys_rc(npuemu_rq_create(a->ctx, &ra, &a->rq));
	a->q = sys_queue(a->ctx, 0, 64);
}

static void drop(struct all *a)
{
	sys_rc(npuemu_queue_destroy(a->q));
	sys_rc(npuemu_rq_destroy(a->rq));
	sys_rc(npuemu_cq_destroy(a->cq));
	sys_rc(npuemu_mem_unregister(a->reg));
	sys_mem_drop(&a->m);
	sys_rc(npuemu_close(a->ctx));
}

static void works(struct all *a, uint64_t value)
{
	*(uint64_t *)a->m.p = value;
	sys_rc(npuemu_post_write(a->q, a->m.p, 8, &a->m.t, a->m.va + 4096, NPUEMU_SQE_CQE));
	sys_run(a->q);
	sys_eq(((uint64_t *)a->m.p)[512], value);
}

/* Runs @fn in a child made by fork() itself. */
static void in_fork(void (*fn)(struct all *a), struct all *a)
{
	int64_t deadline = sys_deadline();
	int status = -1;
	pid_t pid, got;

	fflush(NULL);
	pid = fork();
	sys_true(pid >= 0, "fork");
	if (!pid) {
		sys_in_child = true;
		fn(a);
		_exit(0);
	}
	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && sys_retry(deadline))
		;
	sys_true(got == pid, "the child does not end");
	sys_true(WIFEXITED(status) && !WEXITSTATUS(status), "wait status %#x", (unsigned int)status);
}

static void nothing_inherited(struct all *a)
{
	struct npuemu_seg_attr sa = { .size = sizeof(sa), .access = SYS_RWA };
	struct npuemu_device_info di = { .size = sizeof(di) };
	struct npuemu_queue_map map = { .size = sizeof(map) };
	struct npuemu_queue_stat st = { .size = sizeof(st) };
	struct npuemu_rq_attr ra = { .size = sizeof(ra), .depth = 64, .cq = a->cq };
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct npuemu_cq_attr ca = { .size = sizeof(ca), .depth = 64 };
	struct npuemu_fault fault = {
		.size = sizeof(fault), .slot = NPUEMU_ANY, .queue = NPUEMU_ANY,
		.device = NPUEMU_ANY, .kind = NPUEMU_FAULT_DELAY, .rate_ppm = 1,
	};
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu_sge sge = { .len = 8 };
	struct npuemu_process_info pi;
	struct npuemu_seg_info si;
	struct npuemu_handle h;
	struct npuemu_queue *q;
	struct npuemu_buf *buf;
	struct npuemu_mem *reg;
	struct npuemu_seg *seg;
	struct npuemu_cq *cq;
	struct npuemu_rq *rq;
	struct npuemu_wc wc;
	uint64_t word = 0;

	sys_err(npuemu_query(a->ctx, &info), -EPERM);
	sys_err(npuemu_device_query(a->ctx, 0, &di), -EPERM);
	sys_err(npuemu_buf_alloc(a->ctx, 0, 4096, 0, &buf), -EPERM);
	sys_err(npuemu_buf_free(a->m.buf), -EPERM);
	sys_true(!npuemu_buf_ptr(a->m.buf), "a pointer");
	sys_err(npuemu_buf_export(a->m.buf, &h), -EPERM);
	sys_err(npuemu_buf_import(a->ctx, &a->handle, &buf), -EPERM);
	sys_err(npuemu_mem_register(a->ctx, host, 64, &reg), -EPERM);
	sys_err(npuemu_mem_unregister(a->reg), -EPERM);
	sys_err(npuemu_seg_register(a->m.buf, &sa, &seg), -EPERM);
	sys_err(npuemu_seg_query(a->m.seg, &si), -EPERM);
	sys_err(npuemu_seg_rotate(a->m.seg, 1), -EPERM);
	sys_err(npuemu_seg_unregister(a->m.seg), -EPERM);
	sys_err(npuemu_cq_create(a->ctx, &ca, &cq), -EPERM);
	sys_err(npuemu_cq_destroy(a->cq), -EPERM);
	sys_err(npuemu_poll(a->cq, &wc, 1), -EPERM);
	sys_err(npuemu_wait(a->cq, 0), -EPERM);
	sys_err(npuemu_wait_word(a->ctx, &word, NPUEMU_CMP_EQ, 0, 0), -EPERM);
	sys_err(npuemu_rq_create(a->ctx, &ra, &rq), -EPERM);
	sys_err(npuemu_rq_destroy(a->rq), -EPERM);
	sys_err(npuemu_post_recv(a->rq, &sge, 1), -EPERM);
	sys_err(npuemu_queue_create(a->ctx, &qa, &q), -EPERM);
	sys_err(npuemu_queue_destroy(a->q), -EPERM);
	sys_err(npuemu_queue_modify(a->q, NPUEMU_QS_ERROR), -EPERM);
	sys_err(npuemu_queue_map(a->q, &map), -EPERM);
	sys_err(npuemu_queue_query(a->q, &st), -EPERM);
	/* the inline helpers find no room, and nothing to write to */
	sys_eq(npuemu_post_nop(a->q, NPUEMU_SQE_CQE), (unsigned long long)-EAGAIN);
	sys_err(npuemu_doorbell(a->q), -EPERM);
	sys_err(npuemu_process_list(a->ctx, &pi, 1), -EPERM);
	sys_err(npuemu_queue_list(a->ctx, 0, &st, 1), -EPERM);
	sys_err(npuemu_fault_inject(a->ctx, &fault), -EPERM);
	sys_err(npuemu_fault_clear(a->ctx), -EPERM);
	sys_err(npuemu_reap(a->ctx), -EPERM);
	sys_err(npuemu_close(a->ctx), -EPERM);
}

static void inherits_nothing(void **state)
{
	struct all a;

	(void)state;
	make(&a);
	works(&a, 1);
	in_fork(nothing_inherited, &a);
	works(&a, 2);
	drop(&a);
}

/* The same board: another process of it. */
static void opens_same(struct all *old)
{
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu_process_info list[4];
	struct npuemu_buf *buf;
	struct all a;

	make(&a);
	sys_true(a.ctx != old->ctx, "the parent's handle");
	works(&a, 3);
	sys_rc(npuemu_query(a.ctx, &info));
	sys_eq(npuemu_process_list(a.ctx, list, 4), 2);
	/* and a peer of the parent */
	sys_rc(npuemu_buf_import(a.ctx, &old->handle, &buf));
	((uint64_t *)npuemu_buf_ptr(buf))[1] = 0x600d;
	sys_rc(npuemu_buf_free(buf));
	sys_rc(npuemu_post_write(a.q, a.m.p, 8, &old->m.t, old->m.va + 16, NPUEMU_SQE_CQE));
	sys_run(a.q);
	drop(&a);
}

static void opens_other(struct all *old)
{
	char name[100];
	struct npuemu_open_attr attr = { .size = sizeof(attr), .board = name };
	struct npuemu *ctx;

	(void)old;
	snprintf(name, sizeof(name), "%s-own", sys_board());
	sys_rc(npuemu_open(&attr, &ctx));
	sys_eq(sys_hbm_used(ctx), 0);
	sys_rc(npuemu_close(ctx));
	sys_rc(npuemu_board_reset(name));
}

/* It exits, runs destructors, is killed by a signal: the parent does not notice. */
static void only_exits(struct all *a)
{
	(void)a;
}

static void opens_its_own(void **state)
{
	struct all a;
	int i;

	(void)state;
	/* TSan cannot follow threads made by the child of a process with threads. */
	if (sys_tsan())
		skip();
	make(&a);
	works(&a, 1);
	in_fork(opens_same, &a);
	sys_eq(((uint64_t *)a.m.p)[1], 0x600d);
	sys_eq(((uint64_t *)a.m.p)[2], 3);
	works(&a, 2);
	if (!sys_kernel())	/* which has one board */
		in_fork(opens_other, &a);
	works(&a, 3);
	for (i = 0; i < 20; i++) {
		in_fork(only_exits, &a);
		works(&a, 4);
	}
	drop(&a);
}

/* Forked between posting and the doorbell, and with completions outstanding. */
static void in_the_middle(void **state)
{
	struct all a;
	struct npuemu_wc wc;
	uint32_t i;

	(void)state;
	make(&a);
	for (i = 0; i < 40; i++) {
		((uint64_t *)a.m.p)[i] = i + 1;
		sys_rc(npuemu_post_write(a.q, a.m.p + 8ull * i, 8, &a.m.t, a.m.va + 4096 + 8ull * i,
					 NPUEMU_SQE_CQE));
		if (i % 10 == 5)
			in_fork(i & 16 ? nothing_inherited : only_exits, &a);
		if (i % 10 == 7)
			sys_rc(npuemu_doorbell(a.q));
	}
	sys_rc(npuemu_doorbell(a.q));
	for (i = 0; i < 40; i++) {
		sys_one(npuemu_queue_cq(a.q), &wc);
		sys_is_status(&wc, NPUEMU_ST_SUCCESS);
		sys_eq(wc.wqe, i);
		sys_eq(((uint64_t *)a.m.p)[512 + i], i + 1);
	}
	drop(&a);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(inherits_nothing),
		sys_test(opens_its_own),
		sys_test(in_the_middle),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
