// SPDX-License-Identifier: MIT
/*
 * Arbitrary bytes as the contents of a send ring, and an arbitrary doorbell,
 * through a whole queue: nothing crashes, nothing is written where nobody may
 * write, and each WQE is accounted for: executed, failed or flushed, with a
 * completion where one is due, in posted order, and one flush-done in ERROR.
 *
 * Input: 16 bytes that set the scene, then basic blocks.
 */
#include "rig.h"

struct scene {
	u8 flags;	/* see below */
	u8 bells;	/* blocks to a doorbell; 0: all at once */
	u16 seed;
	u32 start;	/* where the indices start */
	u32 jump;	/* what the doorbell says too much: mostly nothing */
	u32 more;	/* the rest of the dice */
};

#define F_SDMA		1
#define F_CHAOS		2
#define F_LONG		4	/* not the fast path */
#define F_LAZY		8
#define F_SUSPEND	16
#define F_MEND		32	/* make WQEs plausible */
#define F_FAULTS	64
#define F_DIRECT	128	/* the doorbell page is out in the open */

/* What is expected of the ring, found by walking it the way the format says. */
struct account {
	u32 n;			/* WQEs that the doorbells cover */
	u32 last[DEPTH];	/* each one's last block */
	bool signalled[DEPTH];
	u32 at;			/* of the next completion */
	bool failed;
	u32 done;		/* flush-done entries */
	u32 cqes;
};

/* @from..@to became visible with one doorbell: cut at its end. */
static void walk(struct account *a, const struct fh_queue *f, u32 from, u32 to, u32 type)
{
	u32 n;

	for (; from != to; from += n) {
		const u64 *wqe = &f->ring[(from & (DEPTH - 1)) * 8];

		n = rig_blocks(type, wqe);
		if (n > to - from)
			n = to - from;
		a->last[a->n] = from + n - 1;
		a->signalled[a->n++] = *wqe >> 21 & 1;
	}
}

static void take(struct account *a, struct fh_queue *f)
{
	struct fh_cqe c;

	while (fh_poll(f->cq, &c)) {
		a->cqes++;
		require(!c.recv && c.jetty && rig_known_status(c.code));
		require(c.local_num == FH_QUEUE_ID && c.user_data == FH_USER_DATA);
		if (c.fd) {
			require(c.code == FH_FLUSH);
			a->done++;
			continue;
		}
		/* what is posted after flush-done is flushed, too */
		require(!a->done || c.code == FH_FLUSH);
		/* those passed over asked for nothing and went well; without chaos
		 * nothing goes well behind a failure
		 */
		while (a->at < a->n && (a->last[a->at] & (DEPTH - 1)) != c.entry_idx) {
			require(!a->signalled[a->at] && (!a->failed || f->q.win));
			a->at++;
		}
		require(a->at < a->n);
		require(c.code || a->signalled[a->at]);
		require(c.code != FH_OK || a->signalled[a->at]);
		a->at++;
		if (c.code && (!f->q.error_suspend || c.code == FH_FLUSH))
			a->failed = true;
	}
}

/* Run until nothing moves any more, polling now and then. */
static void run(struct account *a, struct fh_queue *f, u64 *rng)
{
	u32 still = 0, turns = 0;

	while (still < 3) {
		u32 ci = f->q.ci, pi = f->cq->jfc.pi;
		bool more = fh_turn(f);

		require(++turns < 100000);
		if (f->waiting || fh_random(rng) >> 60 == 0)
			take(a, f);
		if (f->waiting)
			fh_now += 1000000;
		if (f->q.state == NPUEMU_QS_SUSPENDED && !more) {
			take(a, f);
			require(!npuemu_jfs_modify(&f->q, NPUEMU_QS_READY));
			more = f->q.pi != f->q.ci || f->page[32] != f->q.pi_raw;
		}
		still = more || ci != f->q.ci || pi != f->cq->jfc.pi ? 0 : still + 1;
		/* a SEND that nobody will ever take */
		if (still == 3 && f->waiting) {
			npuemu_jfs_modify(&f->q, NPUEMU_QS_ERROR);
			still = 0;
		}
	}
	take(a, f);
}

static void set_scene(struct fh_queue *f, const struct scene *s)
{
	struct fakehost *fh = f->fh;
	u32 i;

	fh->chip.trace = s->flags & F_LONG;
	if (s->flags & F_CHAOS)
		fh_chaos(f, s->seed);
	if (s->flags & F_LAZY) {
		fh_lazy(fh);
		fh->back_left = s->more & 8 ? -1 : (s32)(s->more & 3);
	}
	f->q.error_suspend = s->flags & F_SUSPEND;
	f->q.raw = s->flags & F_DIRECT;
	f->q.rnr_retry = s->more >> 4 & 7;
	if (s->flags & F_FAULTS) {
		for (i = 0; i < 3; i++)
			fh->faults[i] = (struct npuemu_fault_rec){
				.kind = (s->more >> (8 + 3 * i)) & 7, .slot = NPUEMU_FAULT_ANY,
				.queue = NPUEMU_FAULT_ANY, .device = NPUEMU_FAULT_ANY,
				.peer_slot = FH_PEER_SLOT, .status = FH_REM_ACCESS, .delay_us = 100,
				.rate_ppm = 100000, .seed = s->seed + i,
			};
		fh_faults(fh, 3);
	}
	fh_start_at(f, s->start);
}

/* Fill the ring from its start on; blocks used. */
static u32 load(struct fh_queue *f, const struct scene *s, const u8 *data, size_t size)
{
	u32 n = (u32)(size / 64 < DEPTH ? size / 64 : DEPTH), i, type = s->flags & F_SDMA, last = 0;

	for (i = 0; i < n; i++)
		memcpy(&f->ring[((s->start + i) & (DEPTH - 1)) * 8], data + 64 * i, 64);
	for (i = 0; i < n && s->flags & F_MEND;) {
		u32 at = (s->start + i) & (DEPTH - 1);
		const u64 *wqe = &f->ring[at * 8];
		u32 owner = (s->start + i) & DEPTH ? 0 : FH_OWNER;

		if (i && last == 1 && wqe[1] >> 16 & 1 && !type)
			rig_repeat((u8 *)f->ring, s->start + i, owner);
		else
			rig_mend((u8 *)f->ring, at, type, owner);
		last = rig_blocks(type, wqe);
		i += last;
	}
	return n;
}

/* A doorbell, by index or by direct WQE. */
static void bell(struct fh_queue *f, const struct scene *s, u32 pi)
{
	if (s->flags & F_DIRECT && pi & 1) {
		f->page[0] = (f->page[0] + 0x10000) & 0xffff0000u;
		f->page[0] |= pi & 0xffff;
	} else {
		f->page[32] = pi;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct account a = { .n = 0 };
	struct rig_receiver recv;
	struct fh_queue *f, *lender;
	struct scene s;
	u32 n, seen, step;
	u64 rng = 1;

	if (size < sizeof(s) + 64)
		return 0;
	memcpy(&s, data, sizeof(s));
	rng += s.seed;
	rig_init();
	rig_reset();
	f = fh_queue(rig_host, DEPTH, s.more >> 24 & 7 ? 64 : 4, s.flags & F_SDMA, NULL);
	lender = fh_queue(rig_host, DEPTH, 64, 0, NULL);
	rig_host->lender = &lender->q;
	rig_receiver_init(&recv, s.more >> 16);
	set_scene(f, &s);
	n = load(f, &s, data + sizeof(s), size - sizeof(s));
	step = s.bells % 8 ? s.bells % 8 : n;
	for (seen = 0; seen < n; seen += step) {
		if (step > n - seen)
			step = n - seen;
		bell(f, &s, s.start + seen + step);
		walk(&a, f, s.start + seen, s.start + seen + step, s.flags & F_SDMA);
		run(&a, f, &rng);
	}
	require(f->q.ci == s.start + n);
	require(f->cnt.wqes + f->cnt.flushed == a.n);
	if (s.jump % 16 == 1) {		/* now a doorbell that cannot be */
		f->q.raw = false;
		f->page[32] = s.start + n + DEPTH + 1 + s.jump % 0xffff0000u % (~0u - 2 * DEPTH);
		run(&a, f, &rng);
		require(f->q.state == NPUEMU_QS_ERROR && f->q.ci == s.start + n);
	}
	if (f->q.state == NPUEMU_QS_READY) {
		for (; a.at < a.n; a.at++)
			require(!a.signalled[a.at]);
		require(!a.done);
	} else {
		require(f->q.state == NPUEMU_QS_ERROR && a.done == 1 && !f->q.flush_done_due);
	}
	require(f->cnt.cqes == a.cqes);
	rig_check_memory();
	fh_cq_free(&recv.cq);
	fh_queue_free(lender);
	fh_queue_free(f);
	return 0;
}
