// SPDX-License-Identifier: MIT
/*
 * Threads of one process: each with a queue of its own, several queues on one CQ,
 * opening and closing at the same time, making and destroying things while others
 * write.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "sys.h"

#define THREADS	4

struct worker {
	pthread_t thread;
	struct npuemu *ctx;
	unsigned int id;
	unsigned int rounds;
	struct sys_mem *far;
	struct npuemu_queue *q;
	uint32_t *stop;
};

static void run_all(struct worker *w, unsigned int n, void *(*fn)(void *))
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		w[i].id = i;
		sys_true(!pthread_create(&w[i].thread, NULL, fn, &w[i]), "pthread_create");
	}
	for (i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
}

static unsigned int rounds(unsigned int n)
{
	return sys_slow() ? n / 4 : n;
}

/* ---- A queue each --------------------------------------------------------------- */

static void *own_queue(void *arg)
{
	struct worker *w = arg;
	struct npuemu_queue *q = sys_queue(w->ctx, w->id & 1, 64);
	uint64_t base = 65536ull * w->id;
	struct sys_mem m;
	unsigned int i, k;

	sys_mem_make(w->ctx, &m, w->id & 1, 65536, NPUEMU_ACCESS_LOCAL);
	for (i = 0; i < w->rounds; i++) {
		uint32_t n = 1 + i * 97 % 3000;

		sys_fill(m.p, n, i ^ (uint64_t)w->id << 32);
		for (k = 0; k < 4; k++)
			sys_rc(npuemu_post_write(q, m.p, n, &w->far->t,
						 w->far->va + base + k * 4096,
						 k == 3 ? NPUEMU_SQE_CQE | NPUEMU_STRONG :
						 NPUEMU_RELAXED));
		sys_run(q);
		sys_rc(npuemu_post_read(q, m.p + 8192, n, &w->far->t,
					w->far->va + base + 4096ull * (i & 3), NPUEMU_SQE_CQE));
		sys_run(q);
		sys_is_filled("back again", m.p + 8192, n, i ^ (uint64_t)w->id << 32);
		sys_rc(npuemu_post_faa(q, m.p, 8, &w->far->t, w->far->va + 65536ull * THREADS, 1,
				       NPUEMU_SQE_CQE));
		sys_run(q);
	}
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&m);
	return NULL;
}

static void queue_each(void **state)
{
	struct worker w[THREADS];
	struct npuemu *ctx = sys_open();
	struct sys_mem far;
	int i;

	(void)state;
	sys_mem_make(ctx, &far, 1, 65536ull * THREADS + 4096, SYS_RWA);
	for (i = 0; i < THREADS; i++)
		w[i] = (struct worker){ .ctx = ctx, .far = &far, .rounds = rounds(800) };
	run_all(w, THREADS, own_queue);
	sys_eq(*(uint64_t *)(far.p + 65536ull * THREADS), w[0].rounds * THREADS);
	sys_mem_drop(&far);
	sys_rc(npuemu_close(ctx));
}

/* ---- One CQ for all ---------------------------------------------------------------- */

/* Posts, and leaves polling, which makes room, to another thread. */
static void *poster(void *arg)
{
	struct worker *w = arg;
	unsigned int i;

	for (i = 0; i < w->rounds; i++) {
		int64_t deadline = sys_deadline();

		while (npuemu_post_write(w->q, w->far->p + 8ull * w->id, 8, &w->far->t,
					 w->far->va + 64 + 8ull * w->id, NPUEMU_SQE_CQE)) {
			sys_rc(npuemu_doorbell(w->q));
			sys_true(sys_retry(deadline), "the ring stays full");
		}
		if (i % 8 == 7 || i + 1 == w->rounds)
			sys_rc(npuemu_doorbell(w->q));
	}
	return NULL;
}

static void one_cq(void **state)
{
	unsigned int got[THREADS] = { 0 }, sum = 0, i;
	struct npuemu *ctx = sys_open();
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct worker w[THREADS];
	struct sys_mem far;
	struct npuemu_wc wc[16];
	int n, k;

	(void)state;
	sys_mem_make(ctx, &far, 0, 4096, SYS_RWA);
	qa.cq = sys_cq(ctx, 512, NPUEMU_CQ_SHARED);
	for (i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ .ctx = ctx, .far = &far, .id = i, .rounds = rounds(2000) };
		qa.user_data = i;
		sys_rc(npuemu_queue_create(ctx, &qa, &w[i].q));
	}
	for (i = 0; i < THREADS; i++)
		sys_true(!pthread_create(&w[i].thread, NULL, poster, &w[i]), "pthread_create");
	while (sum < THREADS * w[0].rounds) {
		sys_rc(npuemu_wait(qa.cq, sys_deadline()));
		n = (int)sys_rc(npuemu_poll(qa.cq, wc, 16));
		for (k = 0; k < n; k++, sum++) {
			sys_is_status(&wc[k], NPUEMU_ST_SUCCESS);
			sys_true(wc[k].user_data < THREADS, "user data");
			sys_eq(wc[k].wqe, got[wc[k].user_data]++);
		}
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		sys_eq(got[i], w[i].rounds);
		sys_rc(npuemu_queue_destroy(w[i].q));
	}
	sys_rc(npuemu_cq_destroy(qa.cq));
	sys_mem_drop(&far);
	sys_rc(npuemu_close(ctx));
}

/* ---- Opening and closing -------------------------------------------------------------- */

static void *open_close(void *arg)
{
	struct worker *w = arg;
	struct npuemu_info info = { .size = sizeof(info) };
	unsigned int i;

	for (i = 0; i < w->rounds; i++) {
		struct npuemu *ctx = sys_open();
		struct sys_mem m;

		sys_rc(npuemu_query(ctx, &info));
		if ((i + w->id) % 3 == 0) {
			struct npuemu_queue *q = sys_queue(ctx, 0, 64);

			sys_mem_make(ctx, &m, 0, 4096, SYS_RWA);
			sys_rc(npuemu_post_write(q, m.p, 8, &m.t, m.va + 64, NPUEMU_SQE_CQE));
			sys_run(q);
			sys_rc(npuemu_queue_destroy(q));
			sys_mem_drop(&m);
		}
		sys_rc(npuemu_close(ctx));
	}
	return NULL;
}

static void open_storm(void **state)
{
	struct worker w[THREADS];
	int i;

	(void)state;
	for (i = 0; i < THREADS; i++)
		w[i] = (struct worker){ .rounds = rounds(60) };
	run_all(w, THREADS, open_close);
}

static void references(void **state)
{
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu *a = sys_open(), *b = sys_open();
	struct npuemu_buf *buf;

	(void)state;
	sys_true(a == b, "two handles for one board");
	sys_rc(npuemu_close(a));
	sys_rc(npuemu_query(b, &info));
	sys_rc(npuemu_buf_alloc(b, 0, 4096, 0, &buf));
	/* the last one takes everything along */
	sys_rc(npuemu_close(b));
	sys_err(npuemu_query(a, &info), -EBADF);
	sys_err(npuemu_close(a), -EBADF);
	sys_err(npuemu_buf_free(buf), -EBADF);
}

/* Close with everything still there: it destroys what is left, with work in it. */
static void close_with_all(void **state)
{
	int round, i;

	(void)state;
	for (round = 0; round < 10; round++) {
		struct npuemu *ctx = sys_open();
		struct npuemu_queue *q = sys_queue(ctx, 0, 1024);
		struct npuemu_rq_attr ra = { .size = sizeof(ra), .depth = 64 };
		struct npuemu_mem *reg;
		struct npuemu_rq *rq;
		static char host[4096];
		struct sys_mem m;

		sys_mem_make(ctx, &m, 0, 1 << 20, SYS_RWA);
		sys_rc(npuemu_mem_register(ctx, host, sizeof(host), &reg));
		ra.cq = sys_cq(ctx, 64, 0);
		sys_rc(npuemu_rq_create(ctx, &ra, &rq));
		for (i = 0; i < 500; i++)
			sys_rc(npuemu_post_write(q, m.p, 65536, &m.t, m.va + 65536, 0));
		if (round & 1)
			sys_rc(npuemu_doorbell(q));
		sys_rc(npuemu_close(ctx));
		sys_err(npuemu_queue_destroy(q), -EBADF);
		sys_err(npuemu_rq_destroy(rq), -EBADF);
		sys_err(npuemu_cq_destroy(ra.cq), -EBADF);
		sys_err(npuemu_seg_unregister(m.seg), -EBADF);
		sys_err(npuemu_buf_free(m.buf), -EBADF);
		sys_err(npuemu_mem_unregister(reg), -EBADF);
	}
}

/* ---- Making and destroying while others write ------------------------------------------- */

static void *churn(void *arg)
{
	struct worker *w = arg;
	uint64_t rnd = w->id;
	unsigned int i;

	for (i = 0; i < w->rounds; i++) {
		struct npuemu_seg_attr sa = { .size = sizeof(sa), .access = SYS_RWA };
		uint64_t n = 4096 + sys_rand(&rnd) % (3 << 20);
		struct npuemu_queue *q = NULL;
		struct npuemu_mem *reg;
		struct npuemu_buf *buf;
		struct npuemu_seg *seg;
		static char host[THREADS][8192];
		unsigned char *p;

		sys_rc(npuemu_buf_alloc(w->ctx, w->id & 1, n, 0, &buf));
		p = npuemu_buf_ptr(buf);
		if (p[0] || p[n - 1] || p[n / 2])
			sys_fail(__FILE__, __LINE__, "fresh memory is not zero");
		p[0] = p[n - 1] = p[n / 2] = 1;
		sys_rc(npuemu_seg_register(buf, &sa, &seg));
		sys_rc(npuemu_mem_register(w->ctx, host[w->id], 8192, &reg));
		if (i % 3 == 0) {
			struct npuemu_seg_info info;
			struct npuemu_target t;

			q = sys_queue(w->ctx, 0, 64);
			sys_rc(npuemu_seg_query(seg, &info));
			t = npuemu_target_of(&info);
			host[w->id][5] = (char)i;
			sys_rc(npuemu_post_write(q, host[w->id] + 5, 1, &t, info.va + n / 2,
						 NPUEMU_SQE_CQE));
			sys_run(q);
			sys_eq(p[n / 2], (unsigned char)i);
		}
		sys_rc(npuemu_seg_rotate(seg, 0));
		sys_rc(npuemu_seg_unregister(seg));
		sys_rc(npuemu_mem_unregister(reg));
		sys_rc(npuemu_buf_free(buf));
		if (q)
			sys_rc(npuemu_queue_destroy(q));
	}
	__atomic_fetch_add(w->stop, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void *steady(void *arg)
{
	struct worker *w = arg;
	struct npuemu_queue *q = sys_queue(w->ctx, 0, 64);
	struct sys_mem m;
	uint64_t i;

	sys_mem_make(w->ctx, &m, 0, 1 << 20, SYS_RWA);
	for (i = 0; __atomic_load_n(w->stop, __ATOMIC_RELAXED) < THREADS - 2; i++) {
		sys_fill(m.p, 40000, i);
		sys_rc(npuemu_post_write(q, m.p, 40000, &m.t, m.va + 100000, NPUEMU_SQE_CQE));
		sys_run(q);
		sys_is_filled("written meanwhile", m.p + 100000, 40000, i);
	}
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&m);
	return NULL;
}

static void *by_turns(void *arg)
{
	struct worker *w = arg;

	return w->id < 2 ? steady(arg) : churn(arg);
}

static void make_while_writing(void **state)
{
	struct worker w[THREADS];
	struct npuemu *ctx = sys_open();
	uint32_t stop = 0;
	int i;

	(void)state;
	for (i = 0; i < THREADS; i++)
		w[i] = (struct worker){ .ctx = ctx, .rounds = rounds(300), .stop = &stop };
	run_all(w, THREADS, by_turns);
	sys_rc(npuemu_close(ctx));
}

/* ---- Waiting ------------------------------------------------------------------------------ */

static void *word_waiter(void *arg)
{
	struct worker *w = arg;
	uint64_t i;

	for (i = 1; i <= w->rounds; i++)
		sys_rc(npuemu_wait_word(w->ctx, (uint64_t *)(w->far->p + 8ull * w->id),
					NPUEMU_CMP_GE, i, sys_deadline()));
	return NULL;
}

/* Each waits on a word of its own, one thread notifies them all. */
static void waiters(void **state)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_queue *q = sys_queue(ctx, 0, 64);
	struct worker w[THREADS];
	struct sys_mem far;
	unsigned int i, k;

	(void)state;
	sys_mem_make(ctx, &far, 1, 4096, SYS_RWA);
	for (k = 0; k < THREADS; k++) {
		w[k] = (struct worker){ .ctx = ctx, .far = &far, .id = k, .rounds = rounds(200) };
		sys_true(!pthread_create(&w[k].thread, NULL, word_waiter, &w[k]), "pthread_create");
	}
	for (i = 1; i <= w[0].rounds; i++) {
		for (k = 0; k < THREADS; k++)
			sys_rc(npuemu_post_write_notify(q, far.p + 1024, 8, &far.t, far.va + 2048,
							&far.t, far.va + 8ull * k, i,
							k == THREADS - 1 ? NPUEMU_SQE_CQE : 0));
		sys_run(q);
		if (i % 50 == 0)
			sys_nap(3);
	}
	for (k = 0; k < THREADS; k++)
		pthread_join(w[k].thread, NULL);
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&far);
	sys_rc(npuemu_close(ctx));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(queue_each),
		sys_test(one_cq),
		sys_test(open_storm),
		sys_test(references),
		sys_test(close_with_all),
		sys_test(make_while_writing),
		sys_test(waiters),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
