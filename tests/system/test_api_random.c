// SPDX-License-Identifier: MIT
/*
 * Twenty thousand calls with arguments from a fixed seed, right ones and wrong
 * ones mixed: each returns, none crashes, and in the end nothing is left.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys.h"

#define CALLS	20000u
#define POOL	12u

enum kind { BUF, MEM, SEG, CQ, RQ, QUEUE, KINDS };

/* Handles that live, and some that are gone. */
static void *pool[KINDS][POOL];
static void *gone[KINDS][POOL];
static struct npuemu_seg_info info[POOL];
static struct npuemu *ctx;
static unsigned int opens, succeeded, refused;
static uint64_t rnd;
static char host[1 << 16];

static uint64_t pick(uint64_t n)
{
	return sys_rand(&rnd) % n;
}

/* Mostly one that lives; else one that is gone, of another kind, or nonsense. */
static void *any(enum kind k)
{
	static uint64_t garbage[64];

	switch (pick(12)) {
	case 0:
		return gone[k][pick(POOL)];
	case 1:
		return pool[pick(KINDS)][pick(POOL)];
	case 2:
		return pick(2) ? NULL : (void *)sys_rand(&rnd);
	case 3:
		sys_fill(garbage, sizeof(garbage), rnd);
		return pick(2) ? (void *)garbage : (void *)ctx;
	default:
		return pool[k][pick(POOL)];
	}
}

static struct npuemu *any_ctx(void)
{
	return pick(20) ? ctx : any((enum kind)pick(KINDS));
}

static uint64_t any_number(void)
{
	static const uint64_t edges[] = {
		0, 1, 2, 3, 7, 8, 63, 64, 65, 128, 256, 4095, 4096, 4097, 65536, 1 << 20,
		1 << 30, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, 1ull << 63, UINT64_MAX,
	};

	return pick(4) ? edges[pick(sizeof(edges) / 8)] : sys_rand(&rnd) >> pick(64);
}

static void remember(enum kind k, void *h)
{
	uint64_t i;

	for (i = 0; i < POOL && pool[k][i]; i++)
		;
	if (i == POOL)
		sys_fail(__FILE__, __LINE__, "pool of kind %d is full", (int)k);
	pool[k][i] = h;
	if (k == SEG)
		sys_rc(npuemu_seg_query(h, &info[i]));
}

static bool room(enum kind k)
{
	for (uint64_t i = 0; i < POOL; i++)
		if (!pool[k][i])
			return true;
	return false;
}

static void forget(enum kind k, void *h)
{
	for (uint64_t i = 0; i < POOL; i++)
		if (pool[k][i] == h) {
			gone[k][pick(POOL)] = h;
			pool[k][i] = NULL;
		}
}

/* What may be returned, and with what. */
static void look(long rc, const char *name)
{
	sys_true(rc >= -133 && rc < 1 << 20, "npuemu_%s returns %ld", name, rc);
	if (rc < 0)
		sys_true(npuemu_errmsg()[0], "npuemu_%s: %ld without a message", name, rc);
	succeeded += rc >= 0;
	refused += rc < 0;
}

/* ---- Making and destroying ------------------------------------------------------------- */

static void make_buf(void)
{
	struct npuemu_buf *b;
	int rc;

	if (!room(BUF))
		return;
	rc = npuemu_buf_alloc(any_ctx(), (uint32_t)pick(3), pick(3) ? 65536 : any_number(),
			      pick(20) ? 0 : (uint32_t)any_number(), &b);
	look(rc, "buf_alloc");
	if (!rc)
		remember(BUF, b);
}

static void make_mem(void)
{
	uint64_t off = pick(sizeof(host));
	struct npuemu_mem *m;
	int rc;

	if (!room(MEM))
		return;
	/* memory that is not there is not for a test that goes on */
	rc = npuemu_mem_register(any_ctx(), host + off, pick(sizeof(host) - off + 1), &m);
	look(rc, "mem_register");
	if (!rc)
		remember(MEM, m);
}

static void make_seg(void)
{
	struct npuemu_seg_attr a = {
		.size = pick(20) ? sizeof(a) : (uint32_t)pick(100),
		.flags = pick(10) ? 0 : (uint32_t)any_number(),
		.access = pick(4) ? SYS_RWA : (uint32_t)pick(32),
		.token_value = (uint32_t)any_number(),
		.offset = pick(3) ? 0 : any_number(),
		.bytes = pick(3) ? 0 : any_number(),
	};
	struct npuemu_seg *s;
	int rc;

	if (!room(SEG))
		return;
	rc = npuemu_seg_register(any(BUF), &a, &s);
	look(rc, "seg_register");
	if (!rc)
		remember(SEG, s);
}

static void make_cq(void)
{
	struct npuemu_cq_attr a = {
		.size = sizeof(a), .flags = (uint32_t)pick(pick(9) ? 4 : 8),
		.depth = pick(4) ? 128 : (uint32_t)any_number(), .reserved = !pick(20),
	};
	struct npuemu_cq *c;
	int rc;

	if (!room(CQ))
		return;
	rc = npuemu_cq_create(any_ctx(), &a, &c);
	look(rc, "cq_create");
	if (!rc)
		remember(CQ, c);
}

static void make_rq(void)
{
	struct npuemu_rq_attr a = {
		.size = sizeof(a), .device = (uint32_t)pick(3),
		.depth = pick(4) ? 64 : (uint32_t)any_number(), .max_sge = (uint32_t)pick(5),
		.cq = any(CQ), .user_data = rnd, .flags = (uint32_t)pick(pick(5) ? 2 : 4),
		.token_value = pick(2) ? (uint32_t)any_number() : 0,
	};
	struct npuemu_rq *r;
	int rc;

	if (!room(RQ))
		return;
	rc = npuemu_rq_create(any_ctx(), &a, &r);
	look(rc, "rq_create");
	if (!rc)
		remember(RQ, r);
}

static void make_queue(void)
{
	struct npuemu_queue_attr a = {
		.size = sizeof(a), .flags = !pick(20), .device = (uint32_t)pick(3),
		.type = (uint32_t)pick(pick(5) ? 2 : 4),
		.depth = pick(4) ? 64 : (uint32_t)any_number(), .rnr_retry = (uint32_t)pick(9),
		.ack_timeout_ms = 1 + (uint32_t)pick(20), .error_suspend = (uint32_t)pick(3),
		.cq = pick(2) ? NULL : any(CQ), .rq = pick(2) ? NULL : any(RQ),
	};
	struct npuemu_queue *q;
	int rc;

	if (!room(QUEUE))
		return;
	rc = npuemu_queue_create(any_ctx(), &a, &q);
	look(rc, "queue_create");
	if (!rc)
		remember(QUEUE, q);
}

static void destroy(void)
{
	static int (*const fns[KINDS])(void *) = {
		(int (*)(void *))npuemu_buf_free, (int (*)(void *))npuemu_mem_unregister,
		(int (*)(void *))npuemu_seg_unregister, (int (*)(void *))npuemu_cq_destroy,
		(int (*)(void *))npuemu_rq_destroy, (int (*)(void *))npuemu_queue_destroy,
	};
	enum kind k = (enum kind)pick(KINDS);
	void *h = any(k);
	int rc = fns[k](h);

	look(rc, "destroy");
	if (!rc)
		forget(k, h);
}

/* ---- Using ---------------------------------------------------------------------------- */

static const void *local(void)
{
	struct npuemu_buf *b = any(BUF);

	if (pick(4) == 0)
		return host + pick(sizeof(host));
	if (pick(6) == 0)
		return (const void *)any_number();
	b = npuemu_buf_ptr(b);
	return b ? (const char *)b + pick(5000) : NULL;
}

static void post(void)
{
	struct npuemu_queue *q = pool[QUEUE][pick(POOL)];
	const struct npuemu_seg_info *s = &info[pick(POOL)];
	struct npuemu_target t = npuemu_target_of(s);
	uint64_t wqe[4 * 8], va = s->va + pick(9000);
	uint32_t len = (uint32_t)pick(3) ? (uint32_t)pick(5000) : (uint32_t)any_number();
	uint32_t flags = (uint32_t)sys_rand(&rnd) & (NPUEMU_SQE_CQE | NPUEMU_STRONG | NPUEMU_SQE_FENCE);

	if (!q)
		return;
	if (!pick(8))
		t.token_value++;
	if (!pick(8))
		t.eid[pick(4)] ^= 1u << pick(32);
	switch (pick(9)) {
	case 0:
		npuemu_post_write(q, local(), len, &t, va, flags);
		break;
	case 1:
		npuemu_post_read(q, (void *)(uintptr_t)local(), len, &t, va, flags);
		break;
	case 2:
		npuemu_post_write_notify(q, local(), len, &t, va, &t, va & ~7ull, rnd, flags);
		break;
	case 3:
		npuemu_post_faa(q, (void *)(uintptr_t)local(), 8, &t, va & ~7ull, 1, flags);
		break;
	case 4:
		npuemu_post_send(q, local(), len, &t, (uint32_t)pick(4), flags);
		break;
	case 5:
		npuemu_post_write_add(q, local(), len, &t, va, &t, va & ~7ull, 1, flags);
		break;
	case 6:
		npuemu_post_write_reduce(q, local(), len & ~3u, &t, va & ~3ull,
					 (enum npuemu_reduce_op)(7 + pick(5)),
					 (enum npuemu_dtype)pick(10), flags);
		break;
	default:
		sys_fill(wqe, sizeof(wqe), rnd);
		npuemu_post_raw(q, wqe, 1 + (uint32_t)pick(4));
	}
	if (pick(3))
		look(npuemu_doorbell(q), "doorbell");
}

static void use(void)
{
	struct npuemu_sge sge[8];
	struct npuemu_wc wc[8];
	int n = (int)pick(10) - 1;

	switch (pick(9)) {
	case 0:
		look(npuemu_poll(any(CQ), wc, n > 8 ? 8 : n), "poll");
		break;
	case 1:
		look(npuemu_wait(any(CQ), npuemu_now_ns() + (int64_t)pick(200000)), "wait");
		break;
	case 2:
		look(npuemu_wait_word(any_ctx(), local(), (enum npuemu_cmp)pick(8), any_number(),
				      npuemu_now_ns() + (int64_t)pick(200000)), "wait_word");
		break;
	case 3:
		for (int i = 0; i < 8; i++)
			sge[i] = (struct npuemu_sge){ .len = (uint32_t)pick(9000),
						      .va = (uintptr_t)local() };
		look(npuemu_post_recv(any(RQ), sge, (uint32_t)pick(9)), "post_recv");
		break;
	case 4:
		look(npuemu_queue_modify(any(QUEUE), (enum npuemu_queue_state)pick(6)),
		     "queue_modify");
		break;
	case 5:
		look(npuemu_seg_rotate(any(SEG), (uint32_t)any_number()), "seg_rotate");
		break;
	case 6:
		look(npuemu_doorbell(any(QUEUE)), "doorbell");
		break;
	default:
		post();
	}
}

static void ask(void)
{
	struct npuemu_device_info di = { .size = pick(9) ? sizeof(di) : (uint32_t)pick(200) };
	struct npuemu_queue_map map = { .size = pick(9) ? sizeof(map) : (uint32_t)pick(200) };
	struct npuemu_queue_stat st = { .size = pick(9) ? sizeof(st) : (uint32_t)pick(300) };
	struct npuemu_info in = { .size = sizeof(in) };
	struct npuemu_process_info list[4];
	struct npuemu_seg_info si;
	struct npuemu_handle h;
	struct npuemu_buf *b;
	int rc;

	switch (pick(11)) {
	case 0:
		look(npuemu_query(any_ctx(), &in), "query");
		break;
	case 1:
		look(npuemu_device_query(any_ctx(), (uint32_t)any_number(), &di), "device_query");
		break;
	case 2:
		look(npuemu_queue_map(any(QUEUE), &map), "queue_map");
		break;
	case 3:
		look(npuemu_queue_query(any(QUEUE), &st), "queue_query");
		break;
	case 4:
		look(npuemu_process_list(any_ctx(), list, (int)pick(6) - 1), "process_list");
		break;
	case 5:
		look(npuemu_queue_list(any_ctx(), (uint32_t)any_number(), &st, (int)pick(3) - 1),
		     "queue_list");
		break;
	case 6:
		look(npuemu_seg_query(any(SEG), &si), "seg_query");
		break;
	case 7:
		rc = npuemu_buf_export(any(BUF), &h);
		look(rc, "buf_export");
		if (rc || pick(2))
			sys_fill(&h, sizeof(h), rnd);
		h.w[pick(8)] ^= pick(3) ? 1ull << pick(64) : 0;
		rc = room(BUF) ? npuemu_buf_import(any_ctx(), &h, &b) : 1;
		look(rc, "buf_import");
		if (!rc)
			remember(BUF, b);
		break;
	case 8:
		look(npuemu_reap(any_ctx()), "reap");
		break;
	case 9:
		(void)npuemu_buf_bytes(any(BUF));
		(void)npuemu_queue_cq(any(QUEUE));
		(void)npuemu_status_str((uint32_t)any_number());
		break;
	default:
		if (pick(2)) {
			struct npuemu *again;

			look(npuemu_open(NULL, &again), "open");
			sys_true(again == ctx, "another handle");
			opens++;
		} else if (opens > 1) {
			look(npuemu_close(ctx), "close");
			opens--;
		}
	}
}

static void disturb(void)
{
	struct npuemu_fault f = {
		.size = sizeof(f), .kind = (uint32_t)pick(6), .slot = NPUEMU_ANY,
		.queue = pick(2) ? NPUEMU_ANY : (uint32_t)pick(8), .device = NPUEMU_ANY,
		.peer_slot = (uint32_t)any_number(),
		.status = pick(2) ? NPUEMU_ST_LOC_LEN : (uint32_t)any_number(),
		.delay_us = (uint32_t)pick(300), .rate_ppm = (uint32_t)any_number(),
		.count = (uint32_t)pick(5), .seed = rnd,
	};

	if (pick(2))
		look(npuemu_fault_inject(any_ctx(), &f), "fault_inject");
	else
		look(npuemu_fault_clear(any_ctx()), "fault_clear");
}

static unsigned int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned int n = 0;
	int c;

	sys_true(f, "no /proc/self/maps");
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static void storm(uint64_t seed, unsigned int calls)
{
	unsigned int i;

	rnd = seed;
	memset(pool, 0, sizeof(pool));
	memset(gone, 0, sizeof(gone));
	memset(info, 0, sizeof(info));
	ctx = sys_open();
	opens = 1;
	for (i = 0; i < calls; i++) {
		static void (*const makers[])(void) = {
			make_buf, make_mem, make_seg, make_cq, make_rq, make_queue,
		};
		uint64_t what = pick(100);

		if (what < 15)
			makers[pick(6)]();
		else if (what < 22)
			destroy();
		else if (what < 75)
			use();
		else if (what < 99)
			ask();
		else
			disturb();
	}
	/* Half of it is destroyed in order, the rest by closing. */
	if (seed & 1)
		for (i = 0; i < POOL; i++)
			if (pool[QUEUE][i])
				sys_rc(npuemu_queue_destroy(pool[QUEUE][i]));
	npuemu_fault_clear(ctx);
	while (opens--)
		sys_rc(npuemu_close(ctx));
	sys_err(npuemu_close(ctx), -EBADF);
}

static void random_calls(void **state)
{
	unsigned int part = sys_slow() ? CALLS / 8 : CALLS / 4, before, i;

	(void)state;
	/* what the first use of everything maps for good is not a leak */
	storm(1, 500);
	storm(2, 500);
	before = mappings();
	for (i = 0; i < 4; i++)
		storm(100 + i, part);
	/* some of both, else it was no test */
	sys_true(succeeded > CALLS / 20 && refused > CALLS / 20, "%u succeeded, %u refused",
		 succeeded, refused);
	/* malloc may keep an arena or two */
	sys_true(sys_slow() || mappings() <= before + 8, "mappings went from %u to %u", before,
		 mappings());
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(random_calls),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
