// SPDX-License-Identifier: MIT
/*
 * Waiting: for a word that a peer's engine or a plain store changes, for a
 * completion, with every comparison, with deadlines in the past and ahead, and
 * when the one waited for dies.
 */
#include <errno.h>
#include <string.h>

#include "sys.h"

/* What two processes tell each other about their memory. */
struct card {
	struct npuemu_handle handle;
	struct npuemu_seg_info info;
};

static struct card card_of(const struct sys_mem *m)
{
	struct card c;

	memset(&c, 0, sizeof(c));
	sys_rc(npuemu_buf_export(m->buf, &c.handle));
	c.info = m->info;
	return c;
}

/* ---- Words ---------------------------------------------------------------------- */

static void comparisons(void **state)
{
	static const struct {
		enum npuemu_cmp cmp;
		uint64_t word, value;
		bool holds;
	} cases[] = {
		{ NPUEMU_CMP_EQ, 5, 5, true }, { NPUEMU_CMP_EQ, 5, 6, false },
		{ NPUEMU_CMP_NE, 5, 6, true }, { NPUEMU_CMP_NE, 5, 5, false },
		{ NPUEMU_CMP_GE, 5, 5, true }, { NPUEMU_CMP_GE, 4, 5, false },
		{ NPUEMU_CMP_GT, 6, 5, true }, { NPUEMU_CMP_GT, 5, 5, false },
		{ NPUEMU_CMP_LE, 5, 5, true }, { NPUEMU_CMP_LE, 6, 5, false },
		{ NPUEMU_CMP_LT, 4, 5, true }, { NPUEMU_CMP_LT, 5, 5, false },
		{ NPUEMU_CMP_AND, 6, 4, true }, { NPUEMU_CMP_AND, 3, 4, false },
		/* unsigned, and all 64 bits */
		{ NPUEMU_CMP_GT, 1ull << 63, 1, true }, { NPUEMU_CMP_LT, 1ull << 63, 1, false },
		{ NPUEMU_CMP_EQ, 1ull << 32, 0, false }, { NPUEMU_CMP_AND, 1ull << 40, 1ull << 40, true },
	};
	struct npuemu *ctx = sys_open();
	struct npuemu_buf *buf;
	uint64_t *word;

	(void)state;
	sys_rc(npuemu_buf_alloc(ctx, 0, 4096, 0, &buf));
	word = npuemu_buf_ptr(buf);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t before = npuemu_now_ns(), end = npuemu_deadline_ms(3);

		word[511] = cases[i].word;
		if (cases[i].holds) {
			sys_rc(npuemu_wait_word(ctx, word + 511, cases[i].cmp, cases[i].value, 0));
			sys_rc(npuemu_wait_word(ctx, word + 511, cases[i].cmp, cases[i].value,
						NPUEMU_FOREVER));
			continue;
		}
		/* asked for a look only: it says no more than that */
		sys_eq(-npuemu_wait_word(ctx, word + 511, cases[i].cmp, cases[i].value, 0),
		       ETIMEDOUT);
		sys_err(npuemu_wait_word(ctx, word + 511, cases[i].cmp, cases[i].value, before),
			-ETIMEDOUT);
		sys_err(npuemu_wait_word(ctx, word + 511, cases[i].cmp, cases[i].value, end),
			-ETIMEDOUT);
		sys_true(npuemu_now_ns() >= end, "too early");
	}
	sys_rc(npuemu_buf_free(buf));
	sys_err(npuemu_wait_word(ctx, word, NPUEMU_CMP_EQ, 0, 0), -EFAULT);
	sys_rc(npuemu_close(ctx));
}

#define ROUNDS	300u

/* Answers each notify with one of its own. */
static void ponger(int fd, const void *arg)
{
	const struct card *ping = arg;
	struct npuemu *ctx = sys_open();
	struct npuemu_target t = npuemu_target_of(&ping->info);
	struct npuemu_queue *q = sys_queue(ctx, 1, 64);
	struct sys_mem m;
	uint64_t i;

	sys_mem_make(ctx, &m, 1, 65536, SYS_RWA);
	sys_put(fd, &(struct card){ .info = m.info }, sizeof(struct card));
	for (i = 1; i <= ROUNDS; i++) {
		sys_rc(npuemu_wait_word(ctx, (uint64_t *)m.p, NPUEMU_CMP_GE, i, sys_deadline()));
		sys_eq(*(uint64_t *)m.p, i);
		sys_is_filled("ping", m.p + 64, 1000 + i, i);
		sys_rc(npuemu_post_write_notify(q, m.p + 64, (uint32_t)(1000 + i), &t,
						ping->info.va + 64, &t, ping->info.va, i,
						NPUEMU_SQE_CQE));
		sys_run(q);
	}
	sys_wait_go(fd);
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

static void ping_pong(void **state)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_queue *q = sys_queue(ctx, 0, 64);
	struct npuemu_target t;
	struct sys_mem m, tx;
	struct sys_child c;
	struct card mine, pong;
	struct npuemu_wc wc;
	uint64_t i;

	(void)state;
	sys_mem_make(ctx, &m, 0, 65536, SYS_RWA);
	sys_mem_make(ctx, &tx, 0, 65536, SYS_RWA);
	mine = card_of(&m);
	sys_spawn(&c, ponger, &mine, sizeof(mine));
	sys_get(c.fd, &pong, sizeof(pong));
	t = npuemu_target_of(&pong.info);
	for (i = 1; i <= ROUNDS; i++) {
		sys_fill(tx.p, 1000 + i, i);
		memset(m.p + 64, 0, 2000);
		sys_rc(npuemu_post_write_notify(q, tx.p, (uint32_t)(1000 + i), &t,
						pong.info.va + 64, &t, pong.info.va, i,
						NPUEMU_SQE_CQE));
		sys_rc(npuemu_doorbell(q));
		sys_rc(npuemu_wait_word(ctx, (uint64_t *)m.p, NPUEMU_CMP_EQ, i, sys_deadline()));
		sys_is_filled("pong", m.p + 64, 1000 + i, i);
		sys_one(npuemu_queue_cq(q), &wc);
		sys_is_status(&wc, NPUEMU_ST_SUCCESS);
	}
	sys_go(c.fd);
	sys_join(&c);
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&m);
	sys_mem_drop(&tx);
	sys_rc(npuemu_close(ctx));
}

/* Changes the imported word with plain stores, and with an engine's store. */
static void storer(int fd, const void *arg)
{
	const struct card *card = arg;
	struct npuemu *ctx = sys_open();
	struct npuemu_queue_attr attr = sys_queue_attr(0, 64);
	struct npuemu_queue *q;
	struct npuemu_buf *buf;
	volatile uint64_t *word;
	uint64_t i;

	sys_rc(npuemu_buf_import(ctx, &card->handle, &buf));
	word = npuemu_buf_ptr(buf);
	for (i = 1; i <= 20; i++) {
		sys_wait_go(fd);
		sys_nap((unsigned int)(i % 4));
		__atomic_store_n(word, i, __ATOMIC_RELEASE);
	}
	attr.type = NPUEMU_QUEUE_SDMA;
	sys_rc(npuemu_queue_create(ctx, &attr, &q));
	for (; i <= 40; i++) {
		sys_wait_go(fd);
		sys_nap((unsigned int)(i % 4));
		sys_rc(npuemu_post_sdma_notify(q, (uint64_t *)word, i, NPUEMU_SQE_CQE));
		sys_run(q);
	}
	sys_wait_go(fd);
	sys_rc(npuemu_queue_destroy(q));
	sys_rc(npuemu_buf_free(buf));
	sys_rc(npuemu_close(ctx));
}

static void stores(void **state)
{
	struct npuemu *ctx = sys_open();
	struct sys_child c;
	struct sys_mem m;
	struct card card;
	uint64_t i;

	(void)state;
	sys_mem_make(ctx, &m, 0, 4096, SYS_RWA);
	card = card_of(&m);
	sys_spawn(&c, storer, &card, sizeof(card));
	for (i = 1; i <= 40; i++) {
		sys_go(c.fd);
		sys_rc(npuemu_wait_word(ctx, (uint64_t *)m.p, NPUEMU_CMP_GE, i, sys_deadline()));
	}
	sys_go(c.fd);
	sys_join(&c);
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

/* Offers its memory and says nothing more. */
static void silent(int fd, const void *arg)
{
	struct npuemu *ctx = sys_open();
	struct sys_mem m;
	struct card card;

	(void)arg;
	sys_mem_make(ctx, &m, 1, 4096, SYS_RWA);
	card = card_of(&m);
	sys_put(fd, &card, sizeof(card));
	/* until it is killed */
	npuemu_wait_word(ctx, (uint64_t *)m.p, NPUEMU_CMP_NE, 0, NPUEMU_FOREVER);
}

static void owner_dies(void **state)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_buf *buf;
	struct sys_child c;
	struct card card;
	uint64_t *word;

	(void)state;
	sys_spawn(&c, silent, NULL, 0);
	sys_get(c.fd, &card, sizeof(card));
	sys_rc(npuemu_buf_import(ctx, &card.handle, &buf));
	word = npuemu_buf_ptr(buf);
	sys_err(npuemu_wait_word(ctx, word, NPUEMU_CMP_EQ, 1, npuemu_deadline_ms(20)), -ETIMEDOUT);
	sys_kill(&c);
	sys_err(npuemu_wait_word(ctx, word, NPUEMU_CMP_EQ, 1, sys_deadline()), -EOWNERDEAD);
	/* what is true already needs no owner */
	sys_rc(npuemu_wait_word(ctx, word, NPUEMU_CMP_EQ, 0, sys_deadline()));
	sys_rc(npuemu_buf_free(buf));
	sys_rc(npuemu_close(ctx));
}

/* ---- Completions ----------------------------------------------------------------- */

static void completion(void **state)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_queue *q = sys_queue(ctx, 0, 64);
	struct npuemu_cq *cq = npuemu_queue_cq(q);
	struct npuemu_wc wc[4];
	int64_t end;

	(void)state;
	sys_eq(-npuemu_wait(cq, 0), ETIMEDOUT);
	sys_err(npuemu_wait(cq, npuemu_now_ns()), -ETIMEDOUT);
	end = npuemu_deadline_ms(30);
	sys_err(npuemu_wait(cq, end), -ETIMEDOUT);
	sys_true(npuemu_now_ns() >= end, "too early");
	sys_rc(npuemu_post_nop(q, NPUEMU_SQE_CQE));
	/* not rung: nothing may come */
	sys_err(npuemu_wait(cq, npuemu_deadline_ms(20)), -ETIMEDOUT);
	sys_eq(npuemu_poll(cq, wc, 4), 0);
	sys_rc(npuemu_doorbell(q));
	sys_rc(npuemu_wait(cq, sys_deadline()));
	/* it is still there */
	sys_rc(npuemu_wait(cq, 0));
	sys_eq(npuemu_poll(cq, wc, 4), 1);
	sys_is_status(&wc[0], NPUEMU_ST_SUCCESS);
	sys_eq(wc[0].wqe, 0);
	sys_eq(npuemu_poll(cq, wc, 4), 0);
	sys_rc(npuemu_queue_destroy(q));
	sys_rc(npuemu_close(ctx));
}

/* In order to see modelled time, one asks for it. */
static void modelled_time(void **state)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_queue_attr attr = sys_queue_attr(0, 64);
	struct npuemu_queue *q;
	struct npuemu_wc wc;
	struct sys_mem m, far;
	uint64_t last = 0;
	int i, timed;

	(void)state;
	sys_mem_make(ctx, &m, 0, 1 << 20, SYS_RWA);
	sys_mem_make(ctx, &far, 1, 1 << 20, SYS_RWA);
	for (timed = 0; timed < 2; timed++) {
		attr.cq = sys_cq(ctx, 64, timed ? NPUEMU_CQ_TIMED : 0);
		sys_rc(npuemu_queue_create(ctx, &attr, &q));
		for (i = 0; i < 4; i++) {
			sys_rc(npuemu_post_write(q, m.p, 1 << 20, &far.t, far.va, NPUEMU_SQE_CQE));
			sys_rc(npuemu_doorbell(q));
			sys_one(attr.cq, &wc);
			sys_is_status(&wc, NPUEMU_ST_SUCCESS);
			if (!timed) {
				sys_eq(wc.model_ns, 0);
				continue;
			}
			/* 1 MiB over 400 GB/s takes 2.6 us */
			sys_true(wc.model_ns >= last + 2600, "modelled time went from %llu to %llu",
				 (unsigned long long)last, (unsigned long long)wc.model_ns);
			last = wc.model_ns;
		}
		sys_rc(npuemu_queue_destroy(q));
		sys_rc(npuemu_cq_destroy(attr.cq));
	}
	sys_mem_drop(&m);
	sys_mem_drop(&far);
	sys_rc(npuemu_close(ctx));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(comparisons),
		sys_test(ping_pong),
		sys_test(stores),
		sys_test(owner_dies),
		sys_test(completion),
		sys_test(modelled_time),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
