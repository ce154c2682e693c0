// SPDX-License-Identifier: MIT
/*
 * Every function with every argument wrong, one by one: the documented errno and
 * a message, never a crash.  Then many random calls, and nothing is left behind.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys.h"

/* One of each kind of handle, all alive. */
struct world {
	struct npuemu *ctx;
	struct sys_mem m;
	struct npuemu_mem *mem;
	struct npuemu_cq *cq;
	struct npuemu_rq *rq;
	struct npuemu_queue *q;
};

static char host[65536];

static void world_make(struct world *w)
{
	struct npuemu_rq_attr ra = { .size = sizeof(ra), .depth = 64 };

	w->ctx = sys_open();
	sys_mem_make(w->ctx, &w->m, 0, 65536, SYS_RWA);
	sys_rc(npuemu_mem_register(w->ctx, host, sizeof(host), &w->mem));
	w->cq = sys_cq(w->ctx, 64, 0);
	ra.cq = w->cq;
	sys_rc(npuemu_rq_create(w->ctx, &ra, &w->rq));
	w->q = sys_queue(w->ctx, 0, 64);
}

static void world_drop(struct world *w)
{
	sys_rc(npuemu_queue_destroy(w->q));
	sys_rc(npuemu_rq_destroy(w->rq));
	sys_rc(npuemu_cq_destroy(w->cq));
	sys_rc(npuemu_mem_unregister(w->mem));
	sys_mem_drop(&w->m);
	sys_rc(npuemu_close(w->ctx));
}

/* ---- Handles ------------------------------------------------------------------------- */

enum kind { CTX, BUF, MEM, SEG, CQ, RQ, QUEUE, KINDS };

/* Every function that takes a handle, with all else right. */
#define CALL(name, type, ...) \
	static long call_##name(void *h) \
	{ \
		type *x = h; \
		__VA_ARGS__; \
	}

CALL(close, struct npuemu, return npuemu_close(x))
CALL(query, struct npuemu, struct npuemu_info i = { .size = sizeof(i) };
     return npuemu_query(x, &i))
CALL(device_query, struct npuemu, struct npuemu_device_info i = { .size = sizeof(i) };
     return npuemu_device_query(x, 0, &i))
CALL(buf_alloc, struct npuemu, struct npuemu_buf *b; return npuemu_buf_alloc(x, 0, 8, 0, &b))
CALL(buf_free, struct npuemu_buf, return npuemu_buf_free(x))
CALL(buf_ptr, struct npuemu_buf, return npuemu_buf_ptr(x) ? 0 : -EBADF)
CALL(buf_bytes, struct npuemu_buf, return npuemu_buf_bytes(x) ? 0 : -EBADF)
CALL(buf_export, struct npuemu_buf, struct npuemu_handle e; return npuemu_buf_export(x, &e))
CALL(buf_import, struct npuemu, struct npuemu_handle e = { { 0 } }; struct npuemu_buf *b;
     return npuemu_buf_import(x, &e, &b))
CALL(mem_register, struct npuemu, struct npuemu_mem *m;
     return npuemu_mem_register(x, host, 8, &m))
CALL(mem_unregister, struct npuemu_mem, return npuemu_mem_unregister(x))
CALL(mem_any, struct npuemu, return npuemu_mem_any(x, 1))
CALL(seg_register, struct npuemu_buf, struct npuemu_seg_attr a =
     { .size = sizeof(a), .access = NPUEMU_ACCESS_READ }; struct npuemu_seg *s;
     return npuemu_seg_register(x, &a, &s))
CALL(seg_query, struct npuemu_seg, struct npuemu_seg_info i; return npuemu_seg_query(x, &i))
CALL(seg_rotate, struct npuemu_seg, return npuemu_seg_rotate(x, 5))
CALL(seg_unregister, struct npuemu_seg, return npuemu_seg_unregister(x))
CALL(cq_create, struct npuemu, struct npuemu_cq_attr a = { .size = sizeof(a), .depth = 64 };
     struct npuemu_cq *c; return npuemu_cq_create(x, &a, &c))
CALL(cq_destroy, struct npuemu_cq, return npuemu_cq_destroy(x))
CALL(poll, struct npuemu_cq, struct npuemu_wc wc; return npuemu_poll(x, &wc, 1))
CALL(wait, struct npuemu_cq, return npuemu_wait(x, 0))
CALL(wait_word, struct npuemu, uint64_t v = 0;
     return npuemu_wait_word(x, &v, NPUEMU_CMP_EQ, 0, 0))
CALL(rq_create, struct npuemu, struct npuemu_rq_attr a = { .size = sizeof(a), .depth = 64 };
     struct npuemu_rq *r; return npuemu_rq_create(x, &a, &r))
CALL(rq_destroy, struct npuemu_rq, return npuemu_rq_destroy(x))
CALL(post_recv, struct npuemu_rq, struct npuemu_sge s = { .len = 8 };
     return npuemu_post_recv(x, &s, 1))
CALL(queue_create, struct npuemu, struct npuemu_queue_attr a = sys_queue_attr(0, 64);
     struct npuemu_queue *q; return npuemu_queue_create(x, &a, &q))
CALL(queue_destroy, struct npuemu_queue, return npuemu_queue_destroy(x))
CALL(queue_cq, struct npuemu_queue, return npuemu_queue_cq(x) ? 0 : -EBADF)
CALL(queue_modify, struct npuemu_queue, return npuemu_queue_modify(x, NPUEMU_QS_ERROR))
CALL(queue_map, struct npuemu_queue, struct npuemu_queue_map m = { .size = sizeof(m) };
     return npuemu_queue_map(x, &m))
CALL(queue_query, struct npuemu_queue, struct npuemu_queue_stat s = { .size = sizeof(s) };
     return npuemu_queue_query(x, &s))
CALL(doorbell, struct npuemu_queue, return npuemu_doorbell(x))
CALL(link_query, struct npuemu, struct npuemu_link_info i = { .size = sizeof(i) };
     return npuemu_link_query(x, 0, 1, &i))
CALL(process_list, struct npuemu, struct npuemu_process_info p;
     return npuemu_process_list(x, &p, 1))
CALL(queue_list, struct npuemu, struct npuemu_queue_stat s; return npuemu_queue_list(x, 0, &s, 1))
CALL(fault_inject, struct npuemu, struct npuemu_fault f =
     { .size = sizeof(f), .slot = NPUEMU_ANY, .queue = 5, .device = NPUEMU_ANY,
       .kind = NPUEMU_FAULT_DELAY, .rate_ppm = 1 }; return npuemu_fault_inject(x, &f))
CALL(fault_clear, struct npuemu, return npuemu_fault_clear(x))
CALL(reap, struct npuemu, return npuemu_reap(x))

static const struct {
	const char *name;
	enum kind kind;
	long (*call)(void *h);
} calls[] = {
#define ROW(name, kind) { #name, kind, call_##name }
	ROW(close, CTX), ROW(query, CTX), ROW(device_query, CTX), ROW(buf_alloc, CTX),
	ROW(buf_free, BUF), ROW(buf_ptr, BUF), ROW(buf_bytes, BUF), ROW(buf_export, BUF),
	ROW(buf_import, CTX), ROW(mem_register, CTX), ROW(mem_unregister, MEM),
	ROW(mem_any, CTX),
	ROW(seg_register, BUF), ROW(seg_query, SEG), ROW(seg_rotate, SEG),
	ROW(seg_unregister, SEG), ROW(cq_create, CTX), ROW(cq_destroy, CQ), ROW(poll, CQ),
	ROW(wait, CQ), ROW(wait_word, CTX), ROW(rq_create, CTX), ROW(rq_destroy, RQ),
	ROW(post_recv, RQ), ROW(queue_create, CTX), ROW(queue_destroy, QUEUE),
	ROW(queue_cq, QUEUE), ROW(queue_modify, QUEUE), ROW(queue_map, QUEUE),
	ROW(queue_query, QUEUE), ROW(doorbell, QUEUE), ROW(process_list, CTX),
	ROW(queue_list, CTX), ROW(fault_inject, CTX), ROW(fault_clear, CTX), ROW(reap, CTX),
	ROW(link_query, CTX),
};

#define N_CALLS	(sizeof(calls) / sizeof(calls[0]))

/* A message of another call may not pass for one of this. */
static void forget_message(void)
{
	npuemu_open(NULL, NULL);
}

static void refused(size_t i, void *h, const char *what)
{
	char before[512];
	long rc;

	forget_message();
	snprintf(before, sizeof(before), "%s", npuemu_errmsg());
	rc = calls[i].call(h);
	sys_true(rc == -EBADF, "npuemu_%s with %s: %ld: %s", calls[i].name, what, rc,
		 npuemu_errmsg());
	sys_true(npuemu_errmsg()[0] && strcmp(npuemu_errmsg(), before),
		 "npuemu_%s with %s leaves no message", calls[i].name, what);
}

static void handles(void **state)
{
	static const char *const names[] = {
		"a board", "a buffer", "host memory", "a segment", "a CQ", "an RQ", "a queue",
	};
	static uint64_t garbage[256];
	void *live[KINDS], *dead[KINDS];
	struct world w, old;
	size_t i;
	int k;

	(void)state;
	world_make(&old);
	dead[BUF] = old.m.buf;
	dead[MEM] = old.mem;
	dead[SEG] = old.m.seg;
	dead[CQ] = old.cq;
	dead[RQ] = old.rq;
	dead[QUEUE] = old.q;
	dead[CTX] = old.ctx;
	world_drop(&old);
	for (i = 0; i < N_CALLS; i++)
		refused(i, dead[calls[i].kind], "a handle that is gone, with no board open");
	world_make(&w);
	live[CTX] = w.ctx;
	live[BUF] = w.m.buf;
	live[MEM] = w.mem;
	live[SEG] = w.m.seg;
	live[CQ] = w.cq;
	live[RQ] = w.rq;
	live[QUEUE] = w.q;
	sys_fill(garbage, sizeof(garbage), 3);
	for (i = 0; i < N_CALLS; i++) {
		refused(i, NULL, "NULL");
		refused(i, garbage, "garbage");
		refused(i, (char *)garbage + 3, "garbage at an odd address");
		refused(i, (void *)16, "a small number");
		refused(i, (void *)~0ul, "a large number");
		refused(i, (void *)0x8000000000000000ul, "no address at all");
		refused(i, w.m.p, "device memory");
		for (k = 0; k < KINDS; k++)
			if ((enum kind)k != calls[i].kind) {
				refused(i, live[k], names[k]);
				refused(i, (char *)live[k] + 8, "the midst of something");
			}
	}
	/* All of it is as it was. */
	w.m.p[0] = 9;
	sys_rc(npuemu_post_write(w.q, w.m.p, 1, &w.m.t, w.m.va + 100, NPUEMU_SQE_CQE));
	sys_run(w.q);
	sys_eq(w.m.p[100], 9);
	/* A handle that is gone stays so when others were made. */
	for (k = BUF; k < KINDS; k++)
		for (i = 0; i < N_CALLS; i++)
			if (calls[i].kind == (enum kind)k && dead[k] != live[k])
				refused(i, dead[k], "a handle that is gone");
	world_drop(&w);
}

/* ---- Everything else -------------------------------------------------------------------- */

/* Each wrong value of a field in turn; the attribute is right again afterwards. */
#define WRONG(call, field, value, want) \
	do { \
		__typeof__(field) right_ = (field); \
		(field) = (value); \
		forget_message(); \
		sys_err(call, want); \
		(field) = right_; \
	} while (0)

static void queries(void **state)
{
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu_device_info dev = { .size = sizeof(dev) };
	struct npuemu_link_info link = { .size = sizeof(link) };
	struct npuemu_process_info pi;
	struct npuemu_queue_stat qs;
	struct world w;

	(void)state;
	world_make(&w);
	sys_err(npuemu_query(w.ctx, NULL), -EINVAL);
	WRONG(npuemu_query(w.ctx, &info), info.size, 0, -EINVAL);
	WRONG(npuemu_query(w.ctx, &info), info.size, 3, -EINVAL);
	sys_err(npuemu_device_query(w.ctx, 0, NULL), -EINVAL);
	sys_err(npuemu_device_query(w.ctx, 2, &dev), -EINVAL);
	sys_err(npuemu_device_query(w.ctx, NPUEMU_ANY, &dev), -EINVAL);
	WRONG(npuemu_device_query(w.ctx, 0, &dev), dev.size, 0, -EINVAL);
	sys_err(npuemu_link_query(w.ctx, 0, 1, NULL), -EINVAL);
	sys_err(npuemu_link_query(w.ctx, 0, 2, &link), -EINVAL);
	sys_err(npuemu_link_query(w.ctx, NPUEMU_ANY, 0, &link), -EINVAL);
	WRONG(npuemu_link_query(w.ctx, 0, 1, &link), link.size, 0, -EINVAL);
	sys_err(npuemu_process_list(w.ctx, &pi, -1), -EINVAL);
	sys_err(npuemu_process_list(w.ctx, NULL, 1), -EINVAL);
	sys_eq(npuemu_process_list(w.ctx, NULL, 0), 1);
	sys_err(npuemu_queue_list(w.ctx, 0, &qs, -1), -EINVAL);
	sys_err(npuemu_queue_list(w.ctx, 0, NULL, 1), -EINVAL);
	sys_err(npuemu_queue_list(w.ctx, 0x7fffffff, &qs, 1), -ESRCH);
	sys_err(npuemu_seg_query(w.m.seg, NULL), -EINVAL);
	sys_err(npuemu_queue_query(w.q, NULL), -EINVAL);
	qs.size = 0;
	sys_err(npuemu_queue_query(w.q, &qs), -EINVAL);
	sys_err(npuemu_queue_map(w.q, NULL), -EINVAL);
	world_drop(&w);
}

static void memory(void **state)
{
	struct npuemu_seg_attr sa = { .size = sizeof(sa), .access = SYS_RWA };
	struct npuemu_handle h;
	struct npuemu_seg *seg;
	struct npuemu_buf *buf;
	struct npuemu_mem *mem;
	struct world w;

	(void)state;
	world_make(&w);
	sys_err(npuemu_buf_alloc(w.ctx, 0, 4096, 0, NULL), -EINVAL);
	sys_err(npuemu_buf_alloc(w.ctx, 0, 0, 0, &buf), -EINVAL);
	sys_err(npuemu_buf_alloc(w.ctx, 2, 4096, 0, &buf), -EINVAL);
	sys_err(npuemu_buf_alloc(w.ctx, 0, 4096, 0x80000000u, &buf), -EINVAL);
	sys_err(npuemu_buf_export(w.m.buf, NULL), -EINVAL);
	sys_rc(npuemu_buf_export(w.m.buf, &h));
	sys_err(npuemu_buf_import(w.ctx, NULL, &buf), -EINVAL);
	sys_err(npuemu_buf_import(w.ctx, &h, NULL), -EINVAL);
	sys_err(npuemu_mem_register(w.ctx, host, 8, NULL), -EINVAL);
	sys_err(npuemu_mem_register(w.ctx, NULL, 8, &mem), -EINVAL);
	sys_err(npuemu_mem_register(w.ctx, host, 0, &mem), -EINVAL);
	sys_err(npuemu_mem_register(w.ctx, (void *)~0ul, 8, &mem), -EINVAL);
	sys_err(npuemu_seg_register(w.m.buf, NULL, &seg), -EINVAL);
	sys_err(npuemu_seg_register(w.m.buf, &sa, NULL), -EINVAL);
	WRONG(npuemu_seg_register(w.m.buf, &sa, &seg), sa.size, 0, -EINVAL);
	WRONG(npuemu_seg_register(w.m.buf, &sa, &seg), sa.size, 7, -EINVAL);
	WRONG(npuemu_seg_register(w.m.buf, &sa, &seg), sa.flags, 2, -EINVAL);
	WRONG(npuemu_seg_register(w.m.buf, &sa, &seg), sa.flags, 0x80000000u, -EINVAL);
	WRONG(npuemu_seg_register(w.m.buf, &sa, &seg), sa.access, 0, -EINVAL);
	WRONG(npuemu_seg_register(w.m.buf, &sa, &seg), sa.offset, 65536, -EINVAL);
	WRONG(npuemu_seg_register(w.m.buf, &sa, &seg), sa.bytes, 65537, -EINVAL);
	WRONG(npuemu_seg_register(w.m.buf, &sa, &seg), sa.bytes, UINT64_MAX, -EINVAL);
	world_drop(&w);
}

static void queues(void **state)
{
	struct npuemu_cq_attr ca = { .size = sizeof(ca), .depth = 64 };
	struct npuemu_rq_attr ra = { .size = sizeof(ra), .depth = 64 };
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct npuemu_queue *q;
	struct npuemu_cq *cq;
	struct npuemu_rq *rq;
	struct world w;

	(void)state;
	world_make(&w);
	sys_err(npuemu_cq_create(w.ctx, NULL, &cq), -EINVAL);
	sys_err(npuemu_cq_create(w.ctx, &ca, NULL), -EINVAL);
	WRONG(npuemu_cq_create(w.ctx, &ca, &cq), ca.size, 0, -EINVAL);
	WRONG(npuemu_cq_create(w.ctx, &ca, &cq), ca.flags, 4, -EINVAL);
	WRONG(npuemu_cq_create(w.ctx, &ca, &cq), ca.reserved, 1, -EINVAL);
	WRONG(npuemu_cq_create(w.ctx, &ca, &cq), ca.depth, 0, -EINVAL);
	WRONG(npuemu_cq_create(w.ctx, &ca, &cq), ca.depth, 32, -EINVAL);
	WRONG(npuemu_cq_create(w.ctx, &ca, &cq), ca.depth, 65, -EINVAL);
	WRONG(npuemu_cq_create(w.ctx, &ca, &cq), ca.depth, 2 * NPUEMU_CQ_MAX, -EINVAL);

	ra.cq = w.cq;
	sys_err(npuemu_rq_create(w.ctx, NULL, &rq), -EINVAL);
	sys_err(npuemu_rq_create(w.ctx, &ra, NULL), -EINVAL);
	WRONG(npuemu_rq_create(w.ctx, &ra, &rq), ra.size, 0, -EINVAL);
	WRONG(npuemu_rq_create(w.ctx, &ra, &rq), ra.device, 2, -EINVAL);
	WRONG(npuemu_rq_create(w.ctx, &ra, &rq), ra.depth, 0, -EINVAL);
	WRONG(npuemu_rq_create(w.ctx, &ra, &rq), ra.depth, 100, -EINVAL);
	WRONG(npuemu_rq_create(w.ctx, &ra, &rq), ra.depth, 2 * NPUEMU_RQ_MAX, -EINVAL);
	WRONG(npuemu_rq_create(w.ctx, &ra, &rq), ra.max_sge, 3, -EINVAL);
	WRONG(npuemu_rq_create(w.ctx, &ra, &rq), ra.max_sge, 16, -EINVAL);
	WRONG(npuemu_rq_create(w.ctx, &ra, &rq), ra.cq, (void *)w.q, -EBADF);
	WRONG(npuemu_rq_create(w.ctx, &ra, &rq), ra.flags, 2, -EINVAL);
	WRONG(npuemu_rq_create(w.ctx, &ra, &rq), ra.flags, 0x80000001, -EINVAL);
	WRONG(npuemu_rq_create(w.ctx, &ra, &rq), ra.token_value, 1, -EINVAL);
	sys_err(npuemu_post_recv(w.rq, NULL, 1), -EINVAL);
	sys_err(npuemu_post_recv(w.rq, &(struct npuemu_sge){ .len = 8 }, 9), -EINVAL);

	sys_err(npuemu_queue_create(w.ctx, NULL, &q), -EINVAL);
	sys_err(npuemu_queue_create(w.ctx, &qa, NULL), -EINVAL);
	WRONG(npuemu_queue_create(w.ctx, &qa, &q), qa.size, 0, -EINVAL);
	WRONG(npuemu_queue_create(w.ctx, &qa, &q), qa.size, 5, -EINVAL);
	WRONG(npuemu_queue_create(w.ctx, &qa, &q), qa.flags, 1, -EINVAL);
	WRONG(npuemu_queue_create(w.ctx, &qa, &q), qa.device, 2, -EINVAL);
	WRONG(npuemu_queue_create(w.ctx, &qa, &q), qa.type, 2, -EINVAL);
	WRONG(npuemu_queue_create(w.ctx, &qa, &q), qa.depth, 0, -EINVAL);
	WRONG(npuemu_queue_create(w.ctx, &qa, &q), qa.depth, 63, -EINVAL);
	WRONG(npuemu_queue_create(w.ctx, &qa, &q), qa.depth, 2 * NPUEMU_SQ_MAX_BB, -EINVAL);
	WRONG(npuemu_queue_create(w.ctx, &qa, &q), qa.rnr_retry, 8, -EINVAL);
	WRONG(npuemu_queue_create(w.ctx, &qa, &q), qa.error_suspend, 2, -EINVAL);
	WRONG(npuemu_queue_create(w.ctx, &qa, &q), qa.cq, (void *)w.rq, -EBADF);
	WRONG(npuemu_queue_create(w.ctx, &qa, &q), qa.rq, (void *)w.cq, -EBADF);
	sys_err(npuemu_poll(w.cq, NULL, 1), -EINVAL);
	sys_err(npuemu_poll(w.cq, &(struct npuemu_wc){ 0 }, -1), -EINVAL);
	sys_eq(npuemu_poll(w.cq, NULL, 0), 0);
	sys_err(npuemu_wait_word(w.ctx, NULL, NPUEMU_CMP_EQ, 0, 0), -EINVAL);
	sys_err(npuemu_wait_word(w.ctx, (uint64_t *)host, NPUEMU_CMP_EQ, 0, 0), -EFAULT);
	sys_err(npuemu_wait_word(w.ctx, (uint64_t *)(w.m.p + 65536), NPUEMU_CMP_EQ, 0, 0),
		-EFAULT);
	sys_err(npuemu_wait_word(w.ctx, (uint64_t *)(w.m.p + 1), NPUEMU_CMP_EQ, 0, 0), -EINVAL);
	sys_err(npuemu_wait_word(w.ctx, (uint64_t *)w.m.p, (enum npuemu_cmp)7, 0, 0), -EINVAL);
	sys_err(npuemu_wait_word(w.ctx, (uint64_t *)w.m.p, (enum npuemu_cmp)-1, 0, 0), -EINVAL);
	world_drop(&w);
}

static void faults_and_open(void **state)
{
	struct npuemu_fault f = {
		.size = sizeof(f), .slot = NPUEMU_ANY, .queue = NPUEMU_ANY,
		.device = NPUEMU_ANY, .kind = NPUEMU_FAULT_DELAY, .rate_ppm = 1000,
	};
	struct npuemu_open_attr oa = { .size = sizeof(oa) };
	struct npuemu *ctx;
	struct world w;

	(void)state;
	world_make(&w);
	sys_err(npuemu_fault_inject(w.ctx, NULL), -EINVAL);
	WRONG(npuemu_fault_inject(w.ctx, &f), f.size, 0, -EINVAL);
	WRONG(npuemu_fault_inject(w.ctx, &f), f.kind, 5, -EINVAL);
	WRONG(npuemu_fault_inject(w.ctx, &f), f.rate_ppm, 1000001, -EINVAL);
	WRONG(npuemu_fault_inject(w.ctx, &f), f.device, 2, -EINVAL);
	sys_err(npuemu_open(NULL, NULL), -EINVAL);
	sys_err(npuemu_open(&oa, NULL), -EINVAL);
	WRONG(npuemu_open(&oa, &ctx), oa.size, 0, -EINVAL);
	WRONG(npuemu_open(&oa, &ctx), oa.size, 5, -EINVAL);
	WRONG(npuemu_open(&oa, &ctx), oa.flags, 4, -EINVAL);
	world_drop(&w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(handles),
		sys_test(queries),
		sys_test(memory),
		sys_test(queues),
		sys_test(faults_and_open),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
