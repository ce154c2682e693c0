// SPDX-License-Identifier: MIT
/*
 * A live ring: while the engine executes it, a second thread keeps rewriting it,
 * as user space can at any time, and with it the doorbell, the owner's segment
 * records and the buffers posted to a receive queue.  Whatever is read twice could
 * differ, so nothing may be: nothing crashes, nothing is written where nobody may
 * write, and what completes is in order and adds up.
 *
 * Input: 8 bytes that set the scene, then 12 bytes for each store of the second
 * thread, over and over; the ring starts with the same bytes made plausible.
 */
#include <pthread.h>
#include <sched.h>

#include "rig.h"

struct scene {
	u8 flags;
	u8 turns;
	u16 seed;
	u32 start;
};

#define F_SDMA		1
#define F_CHAOS		2
#define F_LONG		4	/* not the fast path */
#define F_SUSPEND	8
#define F_LAZY		16
#define F_REPEAT	32	/* runs of like WQEs */

struct store {
	u16 where;
	u16 what;
	u64 value;
} __attribute__((__packed__));

/* What the second thread works on.  @round modulo 4: 0 nothing, 1 go, 2 stop, 3 stopped. */
static struct {
	u32 round;
	u32 made;		/* stores so far */
	struct fh_queue *f;
	struct rig_receiver *recv;
	const u8 *stores;
	u32 n;
	u64 good[DEPTH * 8];	/* the ring as it was at first */
} job;

/* The owner bit that block @i has when the engine comes to it next. */
static u64 owner_of(u32 i)
{
	u32 ci = READ_ONCE(job.f->q.ci), at = (ci & ~(DEPTH - 1)) + i;

	if (at - ci > DEPTH)	/* passed already: its next lap */
		at += DEPTH;
	return at & DEPTH ? 0 : FH_OWNER;
}

/* Some of the ring: mostly as it was at first, or another place that is good. */
static void store_ring(const struct store *s, u32 what)
{
	u64 *block = &job.f->ring[s->where % DEPTH * 8], v = s->value;
	const u64 *good = &job.good[v % DEPTH * 8];
	u32 i;

	switch (what) {
	case 0:
	case 1:
		WRITE_ONCE(block[7], near(FH_VA + MINE_FROM, ARENA - MINE_FROM - 500, v) & ~7ull);
		break;
	case 2:
		WRITE_ONCE(block[5], near(FH_PEER_VA, RW_BYTES - 500, v) & ~7ull);
		break;
	case 3:		/* a whole block, of this WQE or another one */
	case 4:
		for (i = 1; i < 8; i++)
			WRITE_ONCE(block[i], good[i]);
		WRITE_ONCE(block[0], (good[0] & ~(u64)FH_OWNER) | owner_of(s->where % DEPTH));
		break;
	case 5:
		WRITE_ONCE(block[6], v % 70000);
		break;
	case 6:		/* opcode, flags and lengths change, the owner bit stays */
		if (s->where >> 12 == 0)
			WRITE_ONCE(block[0], (READ_ONCE(block[0]) & FH_OWNER) |
				   (v & ~(u64)FH_OWNER));
		break;
	default:
		if (s->where >> 13 == 0)
			WRITE_ONCE(block[s->where / DEPTH % 8], v);
		break;
	}
}

/* The owner of a segment moves it, or writes nonsense; @seq says so. */
static void store_segment(const struct store *s)
{
	struct npuemu_seg_rec *r = &rig_host->segs[1 + (s->where & 1)];
	u32 seq = READ_ONCE(r->seq) | 1;

	smp_store_release(&r->seq, seq);
	smp_mb();
	if (s->where >> 12) {	/* all as it was */
		WRITE_ONCE(r->off, s->where & 1 ? RO_FROM : 0);
		WRITE_ONCE(r->len, s->where & 1 ? ARENA - RO_FROM : RW_BYTES);
		WRITE_ONCE(r->va, FH_PEER_VA + (s->where & 1 ? RO_FROM : 0));
		WRITE_ONCE(r->token_value, FH_TOKEN_VALUE);
		smp_store_release(&r->seq, seq + 1);
		return;
	}
	/* only within what this owner may give away: the record is its own */
	WRITE_ONCE(r->off, s->value % 4096 * 16 + (s->where & 1 ? RO_FROM : 0));
	WRITE_ONCE(r->len, s->value >> 16 & 0x7fff);
	WRITE_ONCE(r->va, FH_PEER_VA + (s->value & 0xffff) * 16);
	WRITE_ONCE(r->token_value, s->value >> 62 ? FH_TOKEN_VALUE : (u32)s->value);
	smp_store_release(&r->seq, seq + 1);
}

static void one_store(const struct store *s)
{
	switch (s->what % 32) {
	case 0:		/* seldom: what cannot be ends in ERROR, and all is flushed */
		if (s->where % 128 == 1)
			WRITE_ONCE(job.f->page[32], (u32)s->value);
		break;
	case 4:
		store_segment(s);
		break;
	case 5:
		WRITE_ONCE(rig_recv[s->where % RQ_DEPTH].len, (u32)s->value);
		WRITE_ONCE(rig_recv[s->where % RQ_DEPTH].va,
			   near(FH_VA + MINE_FROM, ARENA - MINE_FROM, s->value >> 20));
		break;
	case 6:
		WRITE_ONCE(job.recv->pi, (u32)s->value % 100);
		break;
	default:
		store_ring(s, s->what / 32 % 8);
		break;
	}
}

static void *second_thread(void *arg)
{
	struct store s;
	u32 round, i;

	(void)arg;
	for (;;) {
		while (((round = smp_load_acquire(&job.round)) & 3) != 1)
			sched_yield();
		for (i = 0; smp_load_acquire(&job.round) == round; i++) {
			memcpy(&s, job.stores + i % job.n * sizeof(s), sizeof(s));
			one_store(&s);
			WRITE_ONCE(job.made, i + 1);
			if (i % 64 == 63)	/* both may be on one CPU */
				sched_yield();
		}
		smp_store_release(&job.round, round + 2);
	}
	return NULL;
}

static void begin(void)
{
	static bool running;
	pthread_t t;

	if (!running) {
		require(!pthread_create(&t, NULL, second_thread, NULL));
		pthread_detach(t);
		running = true;
	}
	job.made = 0;
	smp_store_release(&job.round, job.round + 1);
	while (!READ_ONCE(job.made))
		sched_yield();
}

static void end(void)
{
	u32 round = job.round;

	smp_store_release(&job.round, round + 1);
	while (smp_load_acquire(&job.round) != round + 2)
		sched_yield();
	smp_store_release(&job.round, round + 3);
}

/* Blocks that completions retire go one way only, never beyond what was fetched. */
static void take(struct fh_queue *f, u32 *last, u32 *cqes, u32 *done)
{
	struct fh_cqe c;

	while (fh_poll(f->cq, &c)) {
		++*cqes;
		require(!c.recv && c.jetty && rig_known_status(c.code));
		require(c.local_num == FH_QUEUE_ID && c.user_data == FH_USER_DATA);
		if (c.fd) {
			require(c.code == FH_FLUSH && !*done);
			*done = 1;
			continue;
		}
		*last += ((c.entry_idx - *last - 1) & (DEPTH - 1)) + 1;
		require((s32)(f->q.ci - *last) > 0);
	}
}

static void run(struct fh_queue *f, const struct scene *s)
{
	u32 last = s->start - 1, cqes = 0, done = 0, i, pi;
	u64 rng = s->seed + 1;

	for (i = 0; i < 4u + s->turns % 32; i++) {
		fh_turn(f);
		pi = f->q.pi;
		require(pi - f->q.ci <= DEPTH);
		if (f->waiting) {
			fh_now += 1000000;
			sched_yield();
		}
		if (fh_random(&rng) >> 62)
			take(f, &last, &cqes, &done);
		if (f->q.state == NPUEMU_QS_SUSPENDED)
			require(!npuemu_jfs_modify(&f->q, NPUEMU_QS_READY));
		/* the next blocks are there to be had */
		if (f->q.state == NPUEMU_QS_READY && f->q.pi == f->q.ci)
			WRITE_ONCE(f->page[32], f->q.ci + 1 + (u32)(fh_random(&rng) >> 58));
	}
	end();
	if (f->q.state != NPUEMU_QS_ERROR)
		require(!npuemu_jfs_modify(&f->q, NPUEMU_QS_ERROR));
	for (i = 0; fh_turn(f) || f->waiting; i++) {
		require(i < 1000);
		take(f, &last, &cqes, &done);
	}
	take(f, &last, &cqes, &done);
	require(done == 1 && f->q.ci == f->q.pi);
	require(f->cnt.cqes == cqes);
	/* the last WQE was told: it was flushed or failed, or all went well */
	require(f->cnt.wqes + f->cnt.flushed <= f->q.ci - s->start);
	require(f->cnt.errors + f->cnt.flushed <= cqes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rig_receiver recv;
	struct fh_queue *f, *lender;
	struct scene s;
	u32 i, last = 0;

	if (size < sizeof(s) + 64)
		return 0;
	memcpy(&s, data, sizeof(s));
	rig_init();
	rig_reset();
	f = fh_queue(rig_host, DEPTH, 256, s.flags & F_SDMA, NULL);
	lender = fh_queue(rig_host, DEPTH, 64, 0, NULL);
	rig_host->lender = &lender->q;
	rig_receiver_init(&recv, s.seed);
	rig_host->chip.trace = s.flags & F_LONG;
	if (s.flags & F_CHAOS)
		fh_chaos(f, s.seed);
	if (s.flags & F_LAZY)
		fh_lazy(rig_host);
	f->q.error_suspend = s.flags & F_SUSPEND || s.seed & 3;
	fh_start_at(f, s.start);
	for (i = 0; i < DEPTH * 64; i++)
		((u8 *)f->ring)[i] = data[sizeof(s) + i % (size - sizeof(s))];
	for (i = 0; i < DEPTH; i += last) {
		u32 at = (s.start + i) & (DEPTH - 1), owner = (s.start + i) & DEPTH ? 0 : FH_OWNER;

		if (last == 1 && i % 8 && s.flags & F_REPEAT && !(s.flags & F_SDMA))
			rig_repeat((u8 *)f->ring, at, owner);
		else
			rig_mend((u8 *)f->ring, at, s.flags & F_SDMA, owner);
		last = rig_blocks(s.flags & F_SDMA, &f->ring[at * 8]);
	}
	f->page[32] = s.start + DEPTH / 2;
	memcpy(job.good, f->ring, sizeof(job.good));
	job.f = f;
	job.recv = &recv;
	job.stores = data + sizeof(s);
	job.n = (u32)((size - sizeof(s)) / sizeof(struct store));
	begin();
	run(f, &s);
	rig_check_memory();
	fh_cq_free(&recv.cq);
	fh_queue_free(lender);
	fh_queue_free(f);
	return 0;
}
