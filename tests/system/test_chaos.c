// SPDX-License-Identifier: MIT
/*
 * Chaos mode: a program that orders what must be ordered is right with every
 * seed; one that relies on luck is caught by some.  Both look only at results
 * after completion, so how fast anything is does not matter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys.h"

#define SEEDS	20
#define CHAOS_IS	"chaos is a parameter of the module"
#define WORDS	16u

struct bench {
	struct npuemu *ctx;
	struct npuemu_queue *q;
	struct sys_mem near, far;
};

static void start(struct bench *b, unsigned int seed)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", seed);
	setenv("NPUEMU_CHAOS", text, 1);
	b->ctx = sys_open();
	sys_mem_make(b->ctx, &b->near, 0, 1 << 20, SYS_RWA);
	sys_mem_make(b->ctx, &b->far, 1, 1 << 20, SYS_RWA);
	b->q = sys_queue(b->ctx, 0, 64);
}

static void stop(struct bench *b)
{
	sys_rc(npuemu_queue_destroy(b->q));
	sys_mem_drop(&b->near);
	sys_mem_drop(&b->far);
	sys_rc(npuemu_close(b->ctx));
	unsetenv("NPUEMU_CHAOS");
}

/* Two stores to each word, the second one ordered after the first or not. */
static unsigned int overtaken(struct bench *b, uint32_t order)
{
	uint64_t *src = (uint64_t *)b->near.p, *dst = (uint64_t *)b->far.p;
	unsigned int i, wrong = 0;

	for (i = 0; i < WORDS; i++) {
		src[2 * i] = 1;
		src[2 * i + 1] = 2;
		dst[i] = 0;
		sys_rc(npuemu_post_write(b->q, &src[2 * i], 8, &b->far.t, b->far.va + 8ull * i,
					 order ? NPUEMU_RELAXED : 0));
		sys_rc(npuemu_post_write(b->q, &src[2 * i + 1], 8, &b->far.t,
					 b->far.va + 8ull * i, order | NPUEMU_SQE_CQE));
	}
	sys_run(b->q);
	/* each was asked for: all of them are done */
	for (i = 0; i < WORDS; i++) {
		sys_true(dst[i] == 1 || dst[i] == 2, "word %u is %llu", i,
			 (unsigned long long)dst[i]);
		wrong += dst[i] != 2;
	}
	return wrong;
}

/* A READ that must see an earlier WRITE. */
static unsigned int read_too_early(struct bench *b, uint32_t order)
{
	uint64_t *src = (uint64_t *)b->near.p, *dst = src + 4096;
	unsigned int i, wrong = 0;

	for (i = 0; i < WORDS; i++) {
		src[i] = i + 100;
		dst[i] = 0;
		((uint64_t *)b->far.p)[i] = 5;
		sys_rc(npuemu_post_write(b->q, &src[i], 8, &b->far.t, b->far.va + 8ull * i,
					 order ? NPUEMU_RELAXED : 0));
		sys_rc(npuemu_post_read(b->q, &dst[i], 8, &b->far.t, b->far.va + 8ull * i,
					order | NPUEMU_SQE_CQE));
	}
	sys_run(b->q);
	for (i = 0; i < WORDS; i++)
		wrong += dst[i] != i + 100;
	return wrong;
}

/* An SDMA notify comes after everything before it, ordered or not. */
static unsigned int notified_early(struct bench *b)
{
	struct npuemu_queue_attr attr = sys_queue_attr(0, 64);
	uint64_t *src = (uint64_t *)b->near.p, *dst = (uint64_t *)b->far.p;
	unsigned int i, wrong = 0;
	struct npuemu_queue *q;

	attr.type = NPUEMU_QUEUE_SDMA;
	sys_rc(npuemu_queue_create(b->ctx, &attr, &q));
	for (i = 0; i < WORDS; i++) {
		src[i] = 1;
		sys_rc(npuemu_post_copy(q, &dst[i], &src[i], 8, 0));
		sys_rc(npuemu_post_sdma_notify(q, &dst[i], 2, NPUEMU_SQE_CQE));
	}
	sys_run(q);
	for (i = 0; i < WORDS; i++)
		wrong += dst[i] != 2;
	sys_rc(npuemu_queue_destroy(q));
	return wrong;
}

static void ordered(void **state)
{
	struct bench b;
	unsigned int seed;
	int k;

	(void)state;
	sys_user_only(CHAOS_IS);
	for (seed = 1; seed <= SEEDS; seed++) {
		start(&b, seed);
		for (k = 0; k < 3; k++) {
			sys_eq(overtaken(&b, NPUEMU_STRONG), 0);
			sys_eq(read_too_early(&b, NPUEMU_STRONG), 0);
			sys_eq(notified_early(&b), 0);
		}
		stop(&b);
	}
}

static void unordered(void **state)
{
	unsigned int seed, stores = 0, loads = 0;
	struct bench b;
	int k;

	(void)state;
	sys_user_only(CHAOS_IS);
	for (seed = 1; seed <= SEEDS && (!stores || !loads); seed++) {
		start(&b, seed);
		for (k = 0; k < 3; k++) {
			stores += overtaken(&b, 0);
			loads += read_too_early(&b, 0);
		}
		stop(&b);
	}
	sys_true(stores, "no seed catches two stores that nobody ordered");
	sys_true(loads, "no seed catches a load that nobody ordered");
}

/* Messages of several relaxed pieces, published by a strong notify; the reader. */
struct reader_arg {
	unsigned int seed;
	uint32_t rounds;
};

#define PIECE	5000u
#define PIECES	5u

static void reader(int fd, const void *arg)
{
	const struct reader_arg *a = arg;
	struct npuemu *ctx = sys_open();
	struct sys_mem m;
	uint32_t i, k;

	sys_mem_make(ctx, &m, 1, 65536, SYS_RWA);
	sys_put(fd, &m.info, sizeof(m.info));
	for (i = 1; i <= a->rounds; i++) {
		sys_rc(npuemu_wait_word(ctx, (uint64_t *)m.p, NPUEMU_CMP_EQ, i, sys_deadline()));
		for (k = 0; k < PIECES; k++)
			sys_is_filled("a piece", m.p + 64 + k * PIECE, PIECE, i * 100 + k);
		sys_is_filled("the last piece", m.p + 64 + PIECES * PIECE, 777, i);
		sys_go(fd);
	}
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

static void published(void **state)
{
	struct reader_arg a = { .rounds = 5 };
	struct npuemu_seg_info info;
	struct npuemu_target t;
	struct sys_child c;
	struct bench b;
	uint32_t i, k;

	(void)state;
	sys_user_only(CHAOS_IS);
	for (a.seed = 1; a.seed <= SEEDS; a.seed++) {
		start(&b, a.seed);
		sys_spawn(&c, reader, &a, sizeof(a));
		sys_get(c.fd, &info, sizeof(info));
		t = npuemu_target_of(&info);
		for (i = 1; i <= a.rounds; i++) {
			for (k = 0; k < PIECES; k++) {
				sys_fill(b.near.p + k * PIECE, PIECE, i * 100 + k);
				sys_rc(npuemu_post_write(b.q, b.near.p + k * PIECE, PIECE, &t,
							 info.va + 64 + k * PIECE,
							 NPUEMU_RELAXED));
			}
			sys_fill(b.near.p + PIECES * PIECE, 777, i);
			sys_rc(npuemu_post_write_notify(b.q, b.near.p + PIECES * PIECE, 777, &t,
							info.va + 64 + PIECES * PIECE, &t,
							info.va, i,
							NPUEMU_STRONG | NPUEMU_SQE_CQE));
			sys_run(b.q);
			sys_wait_go(c.fd);
		}
		sys_join(&c);
		stop(&b);
	}
}

/* A completion comes after its bytes, and every completion comes. */
static void completions(void **state)
{
	unsigned int seed;
	struct npuemu_wc wc;
	struct bench b;
	uint32_t i, k, next;
	bool done[60];

	(void)state;
	sys_user_only(CHAOS_IS);
	for (seed = 1; seed <= SEEDS; seed++) {
		start(&b, seed);
		for (i = 0; i < 60; i++) {
			sys_fill(b.near.p + i * 4096, 4000, i);
			sys_rc(npuemu_post_write(b.q, b.near.p + i * 4096, 4000, &b.far.t,
						 b.far.va + i * 4096, NPUEMU_SQE_CQE));
			done[i] = false;
		}
		sys_rc(npuemu_doorbell(b.q));
		for (next = 0; next < 60;) {
			sys_one(npuemu_queue_cq(b.q), &wc);
			sys_is_status(&wc, NPUEMU_ST_SUCCESS);
			sys_true(wc.wqe >= next && wc.wqe < 60 && !done[wc.wqe], "WQE %u again",
				 wc.wqe);
			/* it retires all before it as well */
			for (k = next; k <= wc.wqe; k++)
				sys_is_filled("complete", b.far.p + k * 4096, 4000, k);
			done[wc.wqe] = true;
			next = wc.wqe + 1;
		}
		stop(&b);
	}
}

/* The same seed does the same to one queue. */
static void repeatable(void **state)
{
	unsigned char runs[2][3 * WORDS];
	uint64_t *src, *dst;
	struct bench b;
	unsigned int r, k, i;

	(void)state;
	sys_user_only(CHAOS_IS);
	for (r = 0; r < 2; r++) {
		start(&b, 7);
		src = (uint64_t *)b.near.p;
		dst = (uint64_t *)b.far.p;
		for (k = 0; k < 3; k++) {
			/* a batch of one doorbell, looked at when it is done */
			for (i = 0; i < WORDS; i++) {
				src[2 * i] = 1;
				src[2 * i + 1] = 2;
				sys_rc(npuemu_post_write(b.q, &src[2 * i], 8, &b.far.t,
							 b.far.va + 8ull * i, 0));
				sys_rc(npuemu_post_write(b.q, &src[2 * i + 1], 8, &b.far.t,
							 b.far.va + 8ull * i, NPUEMU_SQE_CQE));
			}
			sys_run(b.q);
			for (i = 0; i < WORDS; i++)
				runs[r][k * WORDS + i] = (unsigned char)dst[i];
		}
		stop(&b);
	}
	sys_same("the second run", runs[1], runs[0], sizeof(runs[0]));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(ordered),
		sys_test(unordered),
		sys_test(published),
		sys_test(completions),
		sys_test(repeatable),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
