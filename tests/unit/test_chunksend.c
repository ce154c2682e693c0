// SPDX-License-Identifier: MIT
/*
 * SEND where memory comes in chunks: messages and receive buffers that lie across
 * the ends of chunks, and the message of the most pieces.
 */
#include "fhassert.h"

#define KIB	1024ull
#define MIB	(1024 * KIB)
#define END	(2 * MIB)	/* of the first chunk */
#define WATCH	(6 * MIB)
#define DEPTH	16u

struct rig {
	struct fh_queue *f, *lender;
	struct fh_cq cq;
	struct npuemu_jfr r;
	struct npuemu_sge ring[DEPTH * 8];
	u32 pi;
};

static void rig_init(struct rig *g, u64 arena, u32 max_sge)
{
	struct fakehost *fh = fh_new_small(arena);

	memset(g, 0, sizeof(*g));
	fh_chunked(fh, true);
	fh_watch(fh, arena, 5);
	g->f = fh_queue(fh, 64, 128, 0, NULL);
	g->lender = fh_queue(fh, 64, 128, 0, NULL);
	fh_cq_init(&g->cq, DEPTH);
	g->cq.jfc.attached = 1;
	g->r.ring = g->ring;
	g->r.pi_rec = &g->pi;
	g->r.jfc = &g->cq.jfc;
	g->r.mask = DEPTH - 1;
	g->r.max_sge = max_sge;
	fh->jfr = &g->r;
	fh->lender = &g->lender->q;
}

static void rig_exit(struct rig *g)
{
	struct fakehost *fh = g->f->fh;

	fh_queue_free(g->f);
	fh_queue_free(g->lender);
	fh_cq_free(&g->cq);
	fh_free(fh);
}

/* Post the SEND, run it, look at the receive completion. */
static void send(struct rig *g, const struct fh_wqe *w, u32 len)
{
	struct fh_cqe c;

	g->pi++;
	assert_do(g->f, w, FH_OK);
	assert_true(fh_poll(&g->cq, &c));
	assert_int_equal(c.code, FH_OK);
	assert_int_equal(c.bytes, len);
}

static void sends(void **state)
{
	struct fakehost *fh;
	struct fh_wqe w;
	u32 i, k, at, left;
	struct rig g;

	(void)state;
	rig_init(&g, WATCH, 4);
	fh = g.f->fh;
	for (k = 0; k < 30; k++) {
		u8 copy[2000];

		/* three SGEs around the end of our first chunk */
		fh_sqe(&w, FH_SEND, FH_CQE, 3, FH_PEER_VA);
		for (i = at = 0; i < 3; i++) {
			u32 len = 200 + i * 50 + k;

			fh_sge(&w, 48 + 16 * i, FH_VA + END - 20 * (i + 1) - k * 7, len);
			memcpy(copy + at, fh->mine.shadow + END - 20 * (i + 1) - k * 7, len);
			at += len;
		}
		/* to four around that of the second */
		left = at;
		for (i = 0; i < 4; i++) {
			u32 len = i == 3 ? left : 100 + k * 3;
			u64 to = 2 * END - 60 - k + i * 1000 * (i & 1) - (i == 2 ? 500 : 0);

			g.ring[(g.pi & (DEPTH - 1)) * 4 + i] =
				(struct npuemu_sge){ .len = len, .va = FH_VA + to };
			memcpy(fh->mine.shadow + to, copy + at - left, len);
			left -= len;
		}
		send(&g, &w, at);
		assert_memory(fh, WATCH);
	}
	rig_exit(&g);
}

/* As many pieces as there can be: 13 SGEs, 16 MiB, all across as many ends as possible. */
static void most_pieces(void **state)
{
	const u64 arena = 40 * MIB, from = 21 * MIB - MIB + END;
	const u32 long_one = (16 << 20) - 24;
	struct fakehost *fh;
	struct fh_wqe w;
	struct rig g;
	u32 i;

	(void)state;
	rig_init(&g, arena, 1);
	fh = g.f->fh;
	fh_sqe(&w, FH_SEND, FH_CQE, 13, FH_PEER_VA);
	for (i = 0; i < 12; i++) {
		fh_sge(&w, 48 + 16 * i, FH_VA + from - 1, 2);
		memcpy(fh->mine.shadow + 3 + 2 * i, fh->mine.shadow + from - 1, 2);
	}
	fh_sge(&w, 48 + 16 * 12, FH_VA + from - 1, long_one);
	memcpy(fh->mine.shadow + 3 + 24, fh->mine.shadow + from - 1, long_one);
	g.ring[0] = (struct npuemu_sge){ .len = 16 << 20, .va = FH_VA + 3 };
	send(&g, &w, 16 << 20);
	assert_memory(fh, arena);
	assert_int_equal(fh->message.pieces, NPUEMU_MAX_PIECES);
	rig_exit(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends), cmocka_unit_test(most_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
