// SPDX-License-Identifier: MIT
/*
 * One-sided operations between two processes, against memcpy and plain loops:
 * every size and alignment that has an edge, bytes on both sides of source and
 * destination, inline data, many SGEs, notify, atomics.
 *
 * The child owns the remote memory; this process has imported it as well, and
 * looks at it directly.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sys.h"

#define GUARD		64u
#define BIG		(16u << 20)
#define AREA		(BIG + (1u << 20))

static const uint32_t sizes[] = {
	0, 1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097,
	65535, 65536, 65537, (2u << 20) - 1, 2u << 20, (2u << 20) + 1, BIG,
};

#define N_SIZES		(sizeof(sizes) / sizeof(sizes[0]))

/* What the child hands over. */
struct offer {
	struct npuemu_handle handle;
	struct npuemu_seg_info info;
};

struct pair {
	struct npuemu *ctx;
	struct sys_child child;
	struct npuemu_buf *far_buf;
	unsigned char *far;	/* the remote memory, as this process sees it */
	uint64_t va;		/* as its owner does */
	struct npuemu_target t;
	struct sys_mem near;
	struct npuemu_queue *q;
};

static void owner(int fd, const void *arg)
{
	struct npuemu *ctx = sys_open();
	struct offer o;
	struct sys_mem m;

	(void)arg;
	sys_mem_make(ctx, &m, 1, AREA, SYS_RWA);
	sys_rc(npuemu_buf_export(m.buf, &o.handle));
	o.info = m.info;
	sys_put(fd, &o, sizeof(o));
	sys_wait_go(fd);
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

static void pair_open(struct pair *p, uint32_t depth)
{
	struct offer o;

	p->ctx = sys_open();
	sys_spawn(&p->child, owner, NULL, 0);
	sys_get(p->child.fd, &o, sizeof(o));
	sys_rc(npuemu_buf_import(p->ctx, &o.handle, &p->far_buf));
	p->far = npuemu_buf_ptr(p->far_buf);
	p->va = o.info.va;
	p->t = npuemu_target_of(&o.info);
	sys_mem_make(p->ctx, &p->near, 0, AREA, SYS_RWA);
	p->q = sys_queue(p->ctx, 0, depth);
}

static void pair_close(struct pair *p)
{
	sys_rc(npuemu_queue_destroy(p->q));
	sys_mem_drop(&p->near);
	sys_rc(npuemu_buf_free(p->far_buf));
	sys_go(p->child.fd);
	sys_join(&p->child);
	sys_rc(npuemu_close(p->ctx));
}

/* ---- WRITE and READ --------------------------------------------------------- */

/*
 * Moves @n bytes from @from to @to at the offsets given and looks at them, at
 * @GUARD bytes on both sides of the target and at the source.
 */
static void move(struct pair *p, bool read, uint32_t n, uint32_t near_off, uint32_t far_off)
{
	unsigned char *near = p->near.p + GUARD + near_off;
	unsigned char *far = p->far + GUARD + far_off;
	uint64_t seed = (uint64_t)n << 16 | near_off << 4 | far_off;
	unsigned char *src = read ? far : near, *dst = read ? near : far;

	sys_fill(src - GUARD, n + 2 * GUARD, seed);
	memset(dst - GUARD, 0xee, n + 2 * GUARD);
	if (read)
		sys_rc(npuemu_post_read(p->q, near, n, &p->t, p->va + GUARD + far_off,
					NPUEMU_SQE_CQE));
	else
		sys_rc(npuemu_post_write(p->q, near, n, &p->t, p->va + GUARD + far_off,
					 NPUEMU_SQE_CQE));
	sys_run(p->q);
	sys_is_filled("the source", src - GUARD, n + 2 * GUARD, seed);
	sys_is_byte("before the target", dst - GUARD, GUARD, 0xee);
	sys_same("the target", dst, src, n);
	sys_is_byte("behind the target", dst + n, GUARD, 0xee);
}

static void move_all(bool read)
{
	struct pair p;
	uint32_t i, a;

	pair_open(&p, 64);
	for (i = 0; i < N_SIZES; i++) {
		uint32_t n = sizes[i];
		uint32_t step = n <= 9 ? 1 : n <= 65537 ? 5 : 21;

		if (n > 65537 && sys_slow())
			step = 63;
		/* all pairs of alignments in a word for the small ones */
		for (a = 0; a < 64; a += step)
			move(&p, read, n, a & 7, a >> 3);
	}
	/* within a cache line, and across lines and pages */
	for (a = 0; a < 64; a += 3)
		move(&p, read, 200, a, 63 - a);
	for (a = 0; a < 200; a++)
		move(&p, read, a, 4096 - GUARD - a / 2, 8192 - GUARD - a / 3);
	pair_close(&p);
}

static void writes(void **state)
{
	(void)state;
	move_all(false);
}

static void reads(void **state)
{
	(void)state;
	move_all(true);
}

/* Local source and remote target in one process, in one buffer: no overlap. */
static void loopback(void **state)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_queue *q;
	struct sys_mem m;

	(void)state;
	sys_mem_make(ctx, &m, 0, 1 << 20, SYS_RWA);
	q = sys_queue(ctx, 0, 64);
	sys_fill(m.p, 1000, 5);
	sys_rc(npuemu_post_write(q, m.p, 1000, &m.t, m.va + 5001, NPUEMU_SQE_CQE));
	sys_run(q);
	sys_is_filled("written", m.p + 5001, 1000, 5);
	sys_is_byte("before", m.p + 1000, 4001, 0);
	sys_is_byte("behind", m.p + 6001, 100, 0);
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

/* ---- Inline data and SGEs ---------------------------------------------------- */

struct raw {
	struct npuemu_sqe sqe;
	unsigned char body[NPUEMU_WQE_MAX_BB * NPUEMU_BB_SIZE - sizeof(struct npuemu_sqe)];
};

static void raw_init(struct raw *w, const struct pair *p, uint32_t op, uint64_t raddr)
{
	memset(w, 0, sizeof(*w));
	w->sqe.dw0 = NPUEMU_SQE_CQE | NPUEMU_SQE_TOKEN_EN;
	w->sqe.dw1 = op << NPUEMU_SQE_OPCODE_SHIFT;
	w->sqe.dw3 = p->t.token_id;
	memcpy(w->sqe.rmt_eid, p->t.eid, sizeof(w->sqe.rmt_eid));
	w->sqe.rmt_token_value = p->t.token_value;
	w->sqe.rmt_addr = raddr;
}

static void raw_run(struct pair *p, const struct raw *w, uint32_t bytes)
{
	sys_rc(npuemu_post_raw(p->q, w, (bytes + NPUEMU_BB_SIZE - 1) / NPUEMU_BB_SIZE));
	sys_run(p->q);
}

static void inline_data(void **state)
{
	uint32_t most = sizeof(((struct raw *)0)->body), n;
	struct pair p;
	struct raw w;

	(void)state;
	pair_open(&p, 64);
	/* All lengths; an odd number of blocks now and then straddles the ring end. */
	for (n = 1; n <= most; n++) {
		memset(p.far, 0xee, 512);
		raw_init(&w, &p, NPUEMU_OP_WRITE, p.va + 100 + n % 8);
		w.sqe.dw0 |= NPUEMU_SQE_INLINE;
		w.sqe.dw1 |= n << NPUEMU_SQE_INLINE_LEN_SHIFT;
		sys_fill(w.body, n, n);
		raw_run(&p, &w, sizeof(w.sqe) + n);
		sys_is_byte("before", p.far, 100 + n % 8, 0xee);
		sys_is_filled("inline", p.far + 100 + n % 8, n, n);
		sys_is_byte("behind", p.far + 100 + n % 8 + n, 100, 0xee);
	}
	pair_close(&p);
}

/* @n pieces of the local memory, of odd sizes, empty ones among them. */
static uint32_t cut(struct pair *p, struct raw *w, uint32_t n, uint64_t seed)
{
	struct npuemu_sge *sge = (struct npuemu_sge *)w->body;
	uint32_t i, sum = 0;

	w->sqe.dw2 = n << NPUEMU_SQE_SGE_NUM_SHIFT;
	for (i = 0; i < n; i++) {
		sge[i].len = (uint32_t)(sys_rand(&seed) % (i % 4 == 3 ? 1 : 3000));
		sge[i].va = (uintptr_t)p->near.p + i * 4096 + sys_rand(&seed) % 1000;
		sum += sge[i].len;
	}
	return sum;
}

static void many_sges(void **state)
{
	static unsigned char want[13 * 3000], before[13 * 4096];
	uint32_t n, i, sum, at, round;
	struct npuemu_sge *sge;
	struct pair p;
	struct raw w;

	(void)state;
	pair_open(&p, 64);
	for (n = 1; n <= 13; n++) {
		raw_init(&w, &p, NPUEMU_OP_WRITE, p.va + 777);
		sum = cut(&p, &w, n, n);
		sys_fill(p.near.p, n * 4096, n);
		memset(p.far, 0xee, 60000);
		sge = (struct npuemu_sge *)w.body;
		for (i = at = 0; i < n; at += sge[i++].len)
			memcpy(want + at, (void *)(uintptr_t)sge[i].va, sge[i].len);
		raw_run(&p, &w, (uint32_t)(sizeof(w.sqe) + n * sizeof(*sge)));
		sys_is_byte("before", p.far, 777, 0xee);
		sys_same("gathered", p.far + 777, want, sum);
		sys_is_byte("behind", p.far + 777 + sum, 1000, 0xee);
	}
	for (round = 0; round < 12; round++) {
		n = round % 6 + 1;
		raw_init(&w, &p, NPUEMU_OP_READ, p.va + 333);
		sum = cut(&p, &w, n, 100 + round);
		sys_fill(p.far, 60000, round);
		sys_fill(p.near.p, n * 4096, 99);
		memcpy(before, p.near.p, n * 4096);
		sge = (struct npuemu_sge *)w.body;
		for (i = at = 0; i < n; at += sge[i++].len)
			memcpy(before + (sge[i].va - (uintptr_t)p.near.p), p.far + 333 + at,
			       sge[i].len);
		raw_run(&p, &w, (uint32_t)(sizeof(w.sqe) + n * sizeof(*sge)));
		sys_same("scattered", p.near.p, before, n * 4096);
	}
	pair_close(&p);
}

/* ---- Notify and atomics ------------------------------------------------------- */

static void notify(void **state)
{
	static const uint32_t lens[] = { 0, 1, 8, 4096, 100001 };
	struct pair p;
	uint64_t *word;
	uint32_t i;

	(void)state;
	pair_open(&p, 64);
	word = (uint64_t *)(p.far + BIG);
	/* two blocks each, over the ring's end at an odd place as well */
	for (i = 0; i < 200; i++) {
		uint32_t n = lens[i % 5];

		if (i == 50)
			sys_rc(npuemu_post_nop(p.q, 0));
		sys_fill(p.near.p, n, i);
		memset(p.far, 0xee, n + 16);
		word[0] = word[1] = word[2] = ~0ull;
		sys_rc(npuemu_post_write_notify(p.q, p.near.p, n, &p.t, p.va + 3, &p.t,
						p.va + BIG + 8, 0x123456789abc0000u + i,
						NPUEMU_SQE_CQE));
		sys_run(p.q);
		sys_is_byte("before", p.far, 3, 0xee);
		sys_is_filled("payload", p.far + 3, n, i);
		sys_is_byte("behind", p.far + 3 + n, 13, 0xee);
		sys_eq(word[0], ~0ull);
		sys_eq(word[1], 0x123456789abc0000u + i);
		sys_eq(word[2], ~0ull);
	}
	/* the adding form; its length has 18 bits */
	word[1] = 5;
	for (i = 0; i < 100; i++) {
		uint32_t n = i == 99 ? (1u << 18) - 1 : i * 1237 % 5000;

		sys_fill(p.near.p, n, i);
		memset(p.far, 0xee, n + 16);
		sys_rc(npuemu_post_write_add(p.q, p.near.p, n, &p.t, p.va + 5, &p.t,
					     p.va + BIG + 8, i, NPUEMU_SQE_CQE));
		sys_run(p.q);
		sys_is_byte("before", p.far, 5, 0xee);
		sys_is_filled("payload", p.far + 5, n, i);
		sys_is_byte("behind", p.far + 5 + n, 11, 0xee);
	}
	sys_eq(word[0], ~0ull);
	sys_eq(word[1], 5 + 99 * 100 / 2);
	sys_eq(word[2], ~0ull);
	pair_close(&p);
}

static void atomics(void **state)
{
	struct pair p;
	uint64_t *far, *near;
	uint32_t *far4, *near4;
	uint32_t i;

	(void)state;
	pair_open(&p, 64);
	far = (uint64_t *)p.far;
	near = (uint64_t *)p.near.p;
	far4 = (uint32_t *)p.far;
	near4 = (uint32_t *)p.near.p;
	for (i = 0; i < 100; i++) {
		uint64_t old = 0xfffffffffffffff0u + i;

		memset(near, 0xee, 32);
		memset(far, 0xee, 32);
		far[1] = old;
		sys_rc(npuemu_post_faa(p.q, near + 1, 8, &p.t, p.va + 8, 7, NPUEMU_SQE_CQE));
		sys_run(p.q);
		sys_eq(near[1], old);
		sys_eq(far[1], old + 7);
		/* hits, then misses */
		sys_rc(npuemu_post_cas(p.q, near + 1, 8, &p.t, p.va + 8, 99, old + 7,
				       NPUEMU_SQE_CQE));
		sys_run(p.q);
		sys_eq(near[1], old + 7);
		sys_eq(far[1], 99);
		sys_rc(npuemu_post_cas(p.q, near + 1, 8, &p.t, p.va + 8, 1, 98, NPUEMU_SQE_CQE));
		sys_run(p.q);
		sys_eq(near[1], 99);
		sys_eq(far[1], 99);
		/* four bytes: no carry into the next */
		far4[2] = 0xffffffffu;
		far4[3] = 0x77777777u;
		sys_rc(npuemu_post_faa(p.q, near4 + 3, 4, &p.t, p.va + 8, 3, NPUEMU_SQE_CQE));
		sys_run(p.q);
		sys_eq(near4[3], 0xffffffffu);
		sys_eq(far4[2], 2);
		sys_rc(npuemu_post_cas(p.q, near4 + 3, 4, &p.t, p.va + 8, 0x55555555u, 2,
				       NPUEMU_SQE_CQE));
		sys_run(p.q);
		sys_eq(near4[3], 2);
		sys_eq(far4[2], 0x55555555u);
		sys_eq(far4[3], 0x77777777u);
		sys_is_byte("before", far, 8, 0xee);
		sys_is_byte("behind", far + 2, 16, 0xee);
		sys_is_byte("before the result", near, 8, 0xee);
		sys_is_byte("behind the result", near + 2, 16, 0xee);
	}
	pair_close(&p);
}

/* An atomic works on an aligned word, or not at all. */
static void atomics_unaligned(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, 64);
	for (uint32_t i = 1; i < 8; i++) {
		memset(p.far, 0, 64);
		sys_rc(npuemu_post_faa(p.q, p.near.p, 8, &p.t, p.va + i, 1, NPUEMU_SQE_CQE));
		sys_true(sys_finish(p.q), "fetch-add at an offset of %u", i);
		sys_is_byte("untouched", p.far, 64, 0);
		sys_revive(p.q);
	}
	pair_close(&p);
}

#define ADDS		2000u

/* Adds one to the word over and over; the old values come back. */
static void adder(int fd, const void *arg)
{
	const struct npuemu_seg_info *info = arg;
	struct npuemu *ctx = sys_open();
	struct npuemu_target t = npuemu_target_of(info);
	struct npuemu_queue *q = sys_queue(ctx, 0, 1024);
	struct sys_mem m;
	uint32_t i, j;

	sys_mem_make(ctx, &m, 0, ADDS * 8, SYS_RWA);
	sys_wait_go(fd);
	for (i = 0; i < ADDS; i += 100) {
		for (j = i; j < i + 100; j++)
			sys_rc(npuemu_post_faa(q, m.p + 8ull * j, 8, &t, info->va, 1,
					       j == i + 99 ? NPUEMU_SQE_CQE | NPUEMU_STRONG :
					       NPUEMU_RELAXED));
		sys_run(q);
	}
	sys_put(fd, m.p, ADDS * 8);
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

/* Three processes add to a word of a fourth: each sum is seen once. */
static void atomics_contended(void **state)
{
	static unsigned char seen[3 * ADDS];
	static uint64_t old[ADDS];
	struct npuemu *ctx = sys_open();
	struct sys_child c[3];
	struct sys_mem m;
	uint32_t i, j;

	(void)state;
	memset(seen, 0, sizeof(seen));
	sys_mem_make(ctx, &m, 1, 4096, SYS_RWA);
	for (i = 0; i < 3; i++)
		sys_spawn(&c[i], adder, &m.info, sizeof(m.info));
	for (i = 0; i < 3; i++)
		sys_go(c[i].fd);
	for (i = 0; i < 3; i++) {
		sys_get(c[i].fd, old, sizeof(old));
		for (j = 0; j < ADDS; j++) {
			sys_true(old[j] < 3 * ADDS, "old value %llu",
				 (unsigned long long)old[j]);
			sys_true(!seen[old[j]]++, "old value %llu twice",
				 (unsigned long long)old[j]);
		}
		sys_join(&c[i]);
	}
	sys_eq(*(uint64_t *)m.p, 3 * ADDS);
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

/* ---- Ring edges ---------------------------------------------------------------- */

static void ring_edges(void **state)
{
	enum { DEPTH = 64 };
	static const uint32_t counts[] = { DEPTH - 1, DEPTH, 1, DEPTH, DEPTH - 1, 2 };
	struct pair p;
	uint32_t i, c, at = 0;

	(void)state;
	pair_open(&p, DEPTH);
	for (c = 0; c < 6; c++) {
		sys_eq(npuemu_sq_space(p.q), DEPTH);
		memset(p.far, 0, DEPTH * 8);
		for (i = 0; i < counts[c]; i++, at++) {
			((uint64_t *)p.near.p)[i] = at + 1;
			sys_rc(npuemu_post_write(p.q, p.near.p + 8ull * i, 8, &p.t, p.va + 8ull * i,
						 i + 1 == counts[c] ?
						 NPUEMU_SQE_CQE | NPUEMU_STRONG :
						 NPUEMU_RELAXED));
			sys_eq(npuemu_last_wqe(p.q), at);
		}
		if (counts[c] == DEPTH) {
			sys_eq(npuemu_sq_space(p.q), 0);
			sys_eq(npuemu_post_nop(p.q, 0), (unsigned long long)-EAGAIN);
			sys_eq(npuemu_post_write_notify(p.q, p.near.p, 8, &p.t, p.va, &p.t,
							p.va, 0, 0), (unsigned long long)-EAGAIN);
		} else if (counts[c] == DEPTH - 1) {
			sys_eq(npuemu_post_write_notify(p.q, p.near.p, 8, &p.t, p.va, &p.t,
							p.va, 0, 0), (unsigned long long)-EAGAIN);
		}
		sys_run(p.q);
		for (i = 0; i < counts[c]; i++)
			sys_eq(((uint64_t *)p.far)[i], at - counts[c] + i + 1);
		sys_is_byte("behind", p.far + 8ull * counts[c], 64, 0);
	}
	/* many laps, a doorbell now and then, room always awaited */
	for (i = 0; i < 40 * DEPTH; i++) {
		struct npuemu_wc wc;

		((uint64_t *)p.near.p)[i] = i ^ 0xabcdef;
		while (npuemu_post_write(p.q, p.near.p + 8ull * i, 8, &p.t, p.va + 8ull * i,
					 NPUEMU_RELAXED |
					 (i % 7 ? 0 : NPUEMU_SQE_CQE)) == -EAGAIN) {
			sys_rc(npuemu_doorbell(p.q));
			sys_one(npuemu_queue_cq(p.q), &wc);
			sys_is_status(&wc, NPUEMU_ST_SUCCESS);
		}
		if (i % 13 == 0)
			sys_rc(npuemu_doorbell(p.q));
	}
	sys_rc(npuemu_doorbell(p.q));
	while (npuemu_post_nop(p.q, NPUEMU_SQE_CQE | NPUEMU_STRONG) == -EAGAIN) {
		struct npuemu_wc wc;

		sys_one(npuemu_queue_cq(p.q), &wc);
	}
	sys_run(p.q);
	for (i = 0; i < 40 * DEPTH; i++)
		sys_eq(((volatile uint64_t *)p.far)[i], i ^ 0xabcdef);
	pair_close(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(writes),
		sys_test(reads),
		sys_test(loopback),
		sys_test(inline_data),
		sys_test(many_sges),
		sys_test(notify),
		sys_test(atomics),
		sys_test(atomics_unaligned),
		sys_test(atomics_contended),
		sys_test(ring_edges),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
