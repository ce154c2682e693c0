// SPDX-License-Identifier: MIT
/*
 * Queues driven as device code does: WQEs and CQEs by their layout, plain stores
 * to the doorbell page, no call of the library after npuemu_queue_map().  Every
 * case runs with an engine that has gone to sleep, in the modes a board can be
 * opened in.
 */
#include <stdlib.h>
#include <string.h>

#include "sys.h"

/* Until an engine surely sleeps. */
#define SLEEP_MS	300

struct mode {
	const char *no_uffd, *async;
	void (*fn)(void);
};

/* ---- The rings, by hand ------------------------------------------------------------ */

struct raw_queue {
	struct npuemu_queue *q;
	struct npuemu_queue_map map;
	uint32_t pi;		/* blocks posted */
	uint32_t ci;		/* CQEs taken */
};

static void raw_make(struct npuemu *ctx, struct raw_queue *r, uint32_t depth)
{
	memset(r, 0, sizeof(*r));
	r->q = sys_queue(ctx, 0, depth);
	r->map.size = sizeof(r->map);
	sys_rc(npuemu_queue_map(r->q, &r->map));
	sys_eq(r->map.sq_depth, depth);
	sys_true(r->map.cq_depth > depth, "a CQ of %u for %u blocks and flush-done",
		 r->map.cq_depth, depth);
	sys_true((unsigned char *)r->map.db == (unsigned char *)r->map.db_page + NPUEMU_DB_PI,
		 "the doorbell is not at %#x of its page", NPUEMU_DB_PI);
}

/* A WRITE of @len bytes, one block. */
static void raw_write(struct raw_queue *r, const struct sys_mem *m, uint64_t from, uint64_t to,
		      uint32_t len)
{
	uint32_t depth = r->map.sq_depth;
	uint32_t *dw = (uint32_t *)((unsigned char *)r->map.sq +
				    (size_t)(r->pi & (depth - 1)) * NPUEMU_BB_SIZE);
	uint32_t block[16];
	uint64_t va = (uintptr_t)m->p + from, raddr = m->va + to;

	memset(block, 0, sizeof(block));
	block[0] = NPUEMU_SQE_CQE | NPUEMU_SQE_TOKEN_EN | (r->pi & depth ? 0 : NPUEMU_SQE_OWNER);
	block[1] = NPUEMU_OP_WRITE << NPUEMU_SQE_OPCODE_SHIFT;
	block[2] = 1u << NPUEMU_SQE_SGE_NUM_SHIFT;
	block[3] = m->info.token_id;
	memcpy(block + 4, m->info.eid.w, 16);
	block[8] = m->info.token_value;
	memcpy(block + 10, &raddr, 8);
	block[12] = len;
	memcpy(block + 14, &va, 8);
	for (int i = 0; i < 16; i++)
		__atomic_store_n(dw + i, block[i], __ATOMIC_RELAXED);
	r->pi++;
}

static void raw_ring(struct raw_queue *r)
{
	__atomic_store_n(r->map.db, r->pi, __ATOMIC_RELEASE);
}

/* The next CQE, by its owner bit; no call of the library but for the clock. */
static void raw_cqe(struct raw_queue *r, struct npuemu_cqe *out)
{
	const uint32_t *dw = (const uint32_t *)((unsigned char *)r->map.cq +
						(size_t)(r->ci & (r->map.cq_depth - 1)) *
						NPUEMU_CQE_SIZE);
	uint32_t valid = r->ci & r->map.cq_depth ? 0 : NPUEMU_CQE_OWNER;
	int64_t deadline = sys_deadline();

	while ((__atomic_load_n(dw, __ATOMIC_ACQUIRE) & NPUEMU_CQE_OWNER) != valid)
		sys_true(sys_retry(deadline), "queue %u: no CQE %u", r->map.id, r->ci);
	memcpy(out, dw, sizeof(*out));
	r->ci++;
	__atomic_store_n(r->map.cq_db, r->ci & 0xffffff, __ATOMIC_RELEASE);
}

static void raw_success(struct raw_queue *r, uint32_t wqe)
{
	struct npuemu_cqe e;

	raw_cqe(r, &e);
	sys_eq(e.dw0 >> NPUEMU_CQE_SUBSTATUS_SHIFT, 0);
	sys_eq(e.dw0 & (NPUEMU_CQE_RECV | NPUEMU_CQE_FD), 0);
	sys_eq(e.dw1 & NPUEMU_CQE_ENTRY_IDX_MASK, wqe & (r->map.sq_depth - 1));
	sys_eq(e.dw1 >> NPUEMU_CQE_LOCAL_LO_SHIFT |
	       (e.dw2 & NPUEMU_CQE_LOCAL_HI_MASK) << 16, r->map.id);
}

/* ---- The cases ----------------------------------------------------------------------- */

/* One store wakes a sleeping engine, again and again. */
static void wakes(void)
{
	struct npuemu *ctx = sys_open();
	struct raw_queue r;
	struct sys_mem m;
	uint32_t i;

	sys_mem_make(ctx, &m, 0, 65536, SYS_RWA);
	raw_make(ctx, &r, 64);
	for (i = 0; i < 6; i++) {
		sys_nap(i == 5 ? 0 : SLEEP_MS);
		sys_fill(m.p, 1000, i);
		raw_write(&r, &m, 0, 32768, 1000);
		raw_ring(&r);
		raw_success(&r, i);
		sys_is_filled("written", m.p + 32768, 1000, i);
	}
	sys_rc(npuemu_queue_destroy(r.q));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

/* A WQE stored whole in the page is a doorbell; the ring has the WQE as well. */
static void direct_wqe(void)
{
	struct npuemu *ctx = sys_open();
	struct raw_queue r;
	struct sys_mem m;
	uint64_t block[8];
	uint32_t i, k;

	sys_mem_make(ctx, &m, 0, 65536, SYS_RWA);
	raw_make(ctx, &r, 64);
	for (i = 0; i < 70; i++) {
		if (i % 33 == 0)
			sys_nap(SLEEP_MS);
		sys_fill(m.p, 1000, i);
		raw_write(&r, &m, 0, 32768, 1000);
		memcpy(block, (unsigned char *)r.map.sq + (size_t)(i & 63) * 64, 64);
		block[0] |= r.pi & NPUEMU_SQE_IDX_MASK;
		for (k = 7; k > 0; k--)
			__atomic_store_n((uint64_t *)r.map.db_page + k, block[k],
					 __ATOMIC_RELAXED);
		__atomic_store_n((uint64_t *)r.map.db_page, block[0], __ATOMIC_RELEASE);
		raw_success(&r, i);
		sys_is_filled("written", m.p + 32768, 1000, i);
	}
	sys_rc(npuemu_queue_destroy(r.q));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

/* Many laps of ring and CQ, in bursts. */
static void laps(void)
{
	struct npuemu *ctx = sys_open();
	uint32_t posted = 0, done = 0, burst, i;
	struct raw_queue r;
	struct sys_mem m;

	sys_mem_make(ctx, &m, 0, 65536, SYS_RWA);
	raw_make(ctx, &r, 64);
	for (i = 0; i < 40; i++) {
		if (i == 20)
			sys_nap(SLEEP_MS);
		for (burst = i % 3 ? 64 : 17; burst; burst--, posted++) {
			__atomic_store_n((uint32_t *)m.p + (posted & 63), posted,
					 __ATOMIC_RELAXED);
			raw_write(&r, &m, 4 * (posted & 63), 32768 + 4 * (posted & 63), 4);
		}
		raw_ring(&r);
		for (; done < posted; done++)
			raw_success(&r, done);
		sys_eq(__atomic_load_n((uint32_t *)(m.p + 32768) + ((posted - 1) & 63),
				       __ATOMIC_RELAXED), posted - 1);
	}
	sys_rc(npuemu_queue_destroy(r.q));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

#define MANY	64

static void many_queues(void)
{
	static struct raw_queue r[MANY];
	struct npuemu *ctx = sys_open();
	struct sys_mem m;
	uint32_t i, round;

	sys_mem_make(ctx, &m, 0, 1 << 20, SYS_RWA);
	for (i = 0; i < MANY; i++)
		raw_make(ctx, &r[i], 64);
	for (round = 0; round < 4; round++) {
		sys_nap(SLEEP_MS);
		/* one alone, in the midst of sleeping ones; then all of them */
		i = round * 21 % MANY;
		sys_fill(m.p + 4096, 512, round);
		raw_write(&r[i], &m, 4096, 500000, 512);
		raw_ring(&r[i]);
		raw_success(&r[i], r[i].pi - 1);
		sys_is_filled("written", m.p + 500000, 512, round);
		for (i = 0; i < MANY; i++) {
			__atomic_store_n((uint64_t *)(m.p + 8ull * i), round * 1000 + i,
					 __ATOMIC_RELAXED);
			raw_write(&r[i], &m, 8ull * i, 600000 + 8ull * i, 8);
			raw_ring(&r[i]);
		}
		for (i = 0; i < MANY; i++) {
			raw_success(&r[i], r[i].pi - 1);
			sys_eq(__atomic_load_n((uint64_t *)(m.p + 600000 + 8ull * i),
					       __ATOMIC_RELAXED), round * 1000 + i);
		}
	}
	for (i = 0; i < MANY; i++)
		sys_rc(npuemu_queue_destroy(r[i].q));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

/* By hand and by the library, one after the other, on one ring. */
static void taking_turns(void)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_queue_map map = { .size = sizeof(map) };
	struct npuemu_queue *q;
	struct sys_mem m;
	uint32_t i;

	sys_mem_make(ctx, &m, 0, 65536, SYS_RWA);
	q = sys_queue(ctx, 0, 64);
	sys_rc(npuemu_queue_map(q, &map));
	for (i = 0; i < 100; i++) {
		struct npuemu_wc wc;

		if (i == 50)
			sys_nap(SLEEP_MS);
		sys_fill(m.p, 100, i);
		sys_rc(npuemu_post_write(q, m.p, 100, &m.t, m.va + 32768, NPUEMU_SQE_CQE));
		if (i & 1)
			sys_rc(npuemu_doorbell(q));
		else
			__atomic_store_n(map.db, i + 1, __ATOMIC_RELEASE);
		sys_one(npuemu_queue_cq(q), &wc);
		sys_is_status(&wc, NPUEMU_ST_SUCCESS);
		sys_eq(wc.wqe, i);
		sys_is_filled("written", m.p + 32768, 100, i);
	}
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

/*
 * Doorbells that jump or go backwards, and garbage in the ring: an error or
 * nothing, and the other queue does not notice.
 */
static void nonsense(void)
{
	static const uint32_t jumps[] = { 65, 1000, 0x80000000u, 0xffffffffu, 0x7fffffffu };
	struct npuemu *ctx = sys_open();
	struct raw_queue good, bad;
	uint64_t rnd = 1;
	struct sys_mem m;
	uint32_t i, k;

	sys_mem_make(ctx, &m, 0, 65536, SYS_RWA);
	raw_make(ctx, &good, 64);
	for (i = 0; i < 10; i++) {
		raw_make(ctx, &bad, 64);
		if (i < 5) {
			__atomic_store_n(bad.map.db, jumps[i], __ATOMIC_RELEASE);
		} else {
			for (k = 0; k < 64 * 8; k++)
				__atomic_store_n((uint64_t *)bad.map.sq + k, sys_rand(&rnd),
						 __ATOMIC_RELAXED);
			__atomic_store_n(bad.map.db, 64, __ATOMIC_RELEASE);
			sys_nap(5);
			/* backwards */
			__atomic_store_n(bad.map.db, 3, __ATOMIC_RELEASE);
		}
		sys_fill(m.p, 1000, i);
		raw_write(&good, &m, 0, 32768, 1000);
		raw_ring(&good);
		raw_success(&good, i);
		sys_is_filled("written", m.p + 32768, 1000, i);
		sys_rc(npuemu_queue_destroy(bad.q));
	}
	sys_rc(npuemu_queue_destroy(good.q));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

/* ---- In each mode ---------------------------------------------------------------------- */

static void in_mode(int fd, const void *arg)
{
	const struct mode *m = arg;

	(void)fd;
	if (m->no_uffd)
		setenv("NPUEMU_NO_UFFD", m->no_uffd, 1);
	if (m->async)
		setenv("NPUEMU_ASYNC", m->async, 1);
	m->fn();
}

static void in_all_modes(void (*fn)(void))
{
	static const struct mode modes[] = {
		{ NULL, NULL, NULL }, { "1", NULL, NULL }, { NULL, "1", NULL }, { "1", "1", NULL },
	};
	struct sys_child c[4];
	int i;

	/* They mostly sleep: side by side. */
	for (i = 0; i < 4; i++) {
		struct mode m = modes[i];

		m.fn = fn;
		sys_spawn(&c[i], in_mode, &m, sizeof(m));
	}
	for (i = 0; i < 4; i++)
		sys_join(&c[i]);
}

#define IN_ALL_MODES(name) \
	static void name##_test(void **state) \
	{ \
		(void)state; \
		in_all_modes(name); \
	}

IN_ALL_MODES(wakes)
IN_ALL_MODES(direct_wqe)
IN_ALL_MODES(laps)
IN_ALL_MODES(many_queues)
IN_ALL_MODES(taking_turns)
IN_ALL_MODES(nonsense)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(wakes_test),
		sys_test(direct_wqe_test),
		sys_test(laps_test),
		sys_test(many_queues_test),
		sys_test(taking_turns_test),
		sys_test(nonsense_test),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
