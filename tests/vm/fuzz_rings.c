// SPDX-License-Identifier: MIT
/*
 * fuzz_ioctl: queues that run.  The worker fills rings with WQEs that mostly make
 * sense and rings doorbells; meanwhile a second thread rewrites the rings, doorbells,
 * consumer indices and receive buffers, as user space can at any time.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fuzz.h"

#define BB	NPUEMU_BB_SIZE

/* ---- Setting up ---------------------------------------------------------- */

static void *window(struct fz *z, u64 off, u64 bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, z->fd[0], (off_t)off);

	return p == MAP_FAILED ? NULL : p;
}

static bool rig_buffer(struct fz *z, u32 i, u32 file)
{
	struct npuemu_ioc_bo_create bo = { .bytes = FZ_BYTES };
	struct npuemu_ioc_va_map map = { 0 };
	struct npuemu_ioc_seg_create seg = {
		.access = NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE | NPUEMU_ACCESS_ATOMIC,
	};
	struct fz_target *t = &z->me->target[0];
	void *p;

	if (fz_plain(z, z->fd[file], NPUEMU_IOC_BO_CREATE, &bo))
		return false;
	p = mmap(NULL, bo.room, PROT_READ | PROT_WRITE, MAP_SHARED, z->fd[file],
		 (off_t)bo.map_offset);
	if (p == MAP_FAILED)
		return false;
	z->rig.place[i] = (u64)p;
	map.va = (u64)p;
	map.bytes = FZ_BYTES;
	map.handle = bo.handle;
	if (fz_plain(z, z->fd[0], NPUEMU_IOC_VA_MAP, &map))
		return false;
	if (!i)
		return true;
	seg.handle = bo.handle;
	seg.bytes = FZ_BYTES;
	seg.va = map.va;
	if (fz_plain(z, z->fd[0], NPUEMU_IOC_SEG_CREATE, &seg))
		return false;
	t->token_id = seg.token_id;
	t->token_value = seg.token_value;
	t->va = seg.va;
	t->len = seg.bytes;
	memcpy(t->eid, seg.eid, sizeof(t->eid));
	return true;
}

static bool rig_host(struct fz *z, u32 i, u32 flags)
{
	struct npuemu_ioc_va_map map = {
		.va = (u64)z->rig.host + (i - 2) * FZ_BYTES,
		.bytes = FZ_BYTES,
		.flags = flags,
	};

	z->rig.place[i] = map.va;
	return !fz_plain(z, z->fd[0], NPUEMU_IOC_VA_MAP, &map);
}

static bool rig_cq(struct fz *z, u32 *handle, u8 **ring, u32 **rec)
{
	struct npuemu_ioc_cq_create a = {
		.depth = FZ_CQ_DEPTH,
		.flags = NPUEMU_CQF_SHARED | (fz_one_in(z, 2) ? NPUEMU_CQF_TIMED : 0),
	};

	if (fz_plain(z, z->fd[0], NPUEMU_IOC_CQ_CREATE, &a))
		return false;
	*handle = a.handle;
	if (ring)
		*ring = z->rig.windows[0] + a.ring;
	*rec = (u32 *)(void *)(z->rig.windows[2] + a.record * NPUEMU_REC_BYTES +
			       NPUEMU_REC_INDEX);
	return true;
}

static bool rig_queue(struct fz *z, u32 i, u32 type, u32 rq)
{
	struct npuemu_ioc_queue_create a = {
		.device = z->dev[fz_below(z, z->nfd)],
		.type = type,
		.depth = FZ_DEPTH,
		.flags = fz_one_in(z, 3) ? 0 : NPUEMU_QF_ERROR_SUSPEND,
		.cq = z->rig.cq,
		.rq = rq,
		.rnr_retry = fz_below(z, 3),
		.ack_timeout_ms = 1 + fz_below(z, 30),
	};
	struct fz_queue *q = &z->rig.queue[i];

	if (fz_plain(z, z->fd[0], NPUEMU_IOC_QUEUE_CREATE, &a))
		return false;
	q->id = a.id;
	q->type = type;
	q->pi = 0;
	q->counted = 0;
	q->ring = z->rig.windows[0] + a.ring;
	q->db = (u32 *)(void *)(z->rig.windows[1] + (u64)a.db_page * NPUEMU_DB_PAGE_SIZE);
	return true;
}

static bool rig_make(struct fz *z)
{
	const struct npuemu_ioc_query *about = &z->about;
	struct npuemu_ioc_rq_create rq = { .depth = 64, .max_sge = 2, .device = z->dev[0] };
	struct fz_rig *r = &z->rig;

	r->windows[0] = window(z, about->ring_offset, about->ring_bytes);
	r->windows[1] = window(z, about->db_offset, about->db_bytes);
	r->windows[2] = window(z, about->rec_offset, about->rec_bytes);
	if (!r->windows[0] || !r->windows[1] || !r->windows[2])
		return false;
	if (!rig_buffer(z, 0, 0) || !rig_buffer(z, 1, z->nfd - 1) ||
	    !rig_host(z, 2, NPUEMU_VA_PINNED) || !rig_host(z, 3, NPUEMU_VA_PAGEABLE) ||
	    !rig_cq(z, &r->cq, &r->cq_ring, &r->cq_rec) ||
	    !rig_cq(z, &r->rcq, NULL, &r->rcq_rec))
		return false;
	rq.cq = r->rcq;
	rq.flags = fz_below(z, 2) ? NPUEMU_RQF_TOKEN : 0;
	if (fz_plain(z, z->fd[0], NPUEMU_IOC_RQ_CREATE, &rq))
		return false;
	r->rq = rq.id;
	r->rq_ring = (struct npuemu_sge *)(void *)(r->windows[0] + rq.ring);
	r->rq_rec = (u32 *)(void *)(r->windows[2] + rq.record * NPUEMU_REC_BYTES);
	z->me->target[0].rq = rq.id;
	z->me->target[0].rq_token = rq.token_value;
	return rig_queue(z, 0, 0, 0) && rig_queue(z, 1, 1, 0) && rig_queue(z, 2, 0, r->rq);
}

/* Without one the worker does the rest. */
void fz_rig_up(struct fz *z)
{
	u8 *host = z->rig.host;

	memset(&z->rig, 0, sizeof(z->rig));
	z->rig.host = host;
	if (!z->nfd)
		return;
	pthread_mutex_lock(&z->lock);
	z->rig.up = rig_make(z);
	pthread_mutex_unlock(&z->lock);
}

/* Its mappings; the rest goes when the files are closed. */
void fz_rig_down(struct fz *z)
{
	struct fz_rig *r = &z->rig;
	const u64 bytes[] = { z->about.ring_bytes, z->about.db_bytes, z->about.rec_bytes };
	u32 i;

	pthread_mutex_lock(&z->lock);
	r->up = false;
	pthread_mutex_unlock(&z->lock);
	for (i = 0; i < 3; i++) {
		if (r->windows[i])
			munmap(r->windows[i], bytes[i]);
		r->windows[i] = NULL;
	}
	for (i = 0; i < 2; i++) {
		if (r->place[i])
			munmap((void *)r->place[i], FZ_BYTES);
		r->place[i] = 0;
	}
}

/* ---- WQEs ---------------------------------------------------------------- */

static u64 near_place(struct fz *z, u64 align)
{
	u32 off = fz_below(z, FZ_BYTES - (fz_one_in(z, 64) ? 0 : 32768));

	return (z->rig.place[fz_below(z, 4)] + off) & ~(align - 1);
}

static u32 any_len(struct fz *z)
{
	switch (fz_below(z, 16)) {
	case 0:
		return fz_below(z, 20000);
	case 1:
		return 0;
	default:
		return fz_below(z, 128);
	}
}

static const u32 ops[] = {
	NPUEMU_OP_WRITE, NPUEMU_OP_READ, NPUEMU_OP_WRITE_NOTIFY, NPUEMU_OP_CAS, NPUEMU_OP_FAA,
	NPUEMU_OP_NOP, NPUEMU_OP_WRITE_ATOMIC_ADD, NPUEMU_OP_SEND, NPUEMU_OP_SEND_IMM,
	NPUEMU_OP_WRITE, NPUEMU_OP_READ, NPUEMU_OP_NOP, NPUEMU_OP_NOP, NPUEMU_OP_WRITE,
	NPUEMU_OP_WRITE, NPUEMU_OP_READ, NPUEMU_OP_NOP, NPUEMU_OP_FAA, NPUEMU_OP_WRITE_NOTIFY,
};

struct wqe {
	union {
		u8 b[4 * BB];
		struct npuemu_sqe s;
		struct npuemu_sqe_write_add add;
		struct npuemu_sdma sdma;
		u64 words[4 * BB / 8];
	};
	u32 blocks;
};

static void aim(struct fz *z, struct wqe *w, u32 op, u64 align)
{
	u32 who = fz_one_in(z, 8) ? fz_below(z, FZ_PROCS) : z->index;
	const struct fz_target *t =
		&z->shared->proc[who].target[fz_one_in(z, 32) ? fz_below(z, FZ_SEGS) : 0];

	if (!t->len && fz_below(z, 64))
		t = &z->me->target[0];

	memcpy(w->s.rmt_eid, t->eid, sizeof(t->eid));
	w->s.rmt_token_value = t->token_value;
	w->s.dw3 = t->token_id & NPUEMU_SQE_RMT_ID_MASK;
	w->s.rmt_addr = t->va & ~(align - 1);
	if (t->len > 65536)
		w->s.rmt_addr += fz_next(&z->rng) % (t->len - (fz_one_in(z, 64) ? 0 : 40000)) &
				 ~(align - 1);
	if (op == NPUEMU_OP_SEND || op == NPUEMU_OP_SEND_IMM) {
		w->s.dw3 = t->rq & NPUEMU_SQE_RMT_ID_MASK;
		w->s.rmt_token_value = fz_one_in(z, 64) ? t->token_value : t->rq_token;
	}
}

static u32 flags(struct fz *z)
{
	u32 dw0 = NPUEMU_SQE_TOKEN_EN | fz_below(z, 3) << NPUEMU_SQE_ORDER_SHIFT;

	if (fz_below(z, 4))
		dw0 |= NPUEMU_SQE_CQE;
	if (fz_one_in(z, 8))
		dw0 |= NPUEMU_SQE_FENCE;
	if (fz_one_in(z, 8))
		dw0 |= NPUEMU_SQE_COMP_ORDER;
	return dw0;
}

static void make_udma(struct fz *z, struct wqe *w)
{
	u32 op = ops[fz_below(z, sizeof(ops) / sizeof(ops[0]))], n, i, at = 48;
	bool atomic = op == NPUEMU_OP_CAS || op == NPUEMU_OP_FAA;
	struct npuemu_sge sge = { 0 };
	struct npuemu_sqe_notify *nt = (void *)(w->b + 48);

	w->s.dw0 = flags(z);
	w->s.dw1 = op << NPUEMU_SQE_OPCODE_SHIFT;
	w->blocks = 1;
	if (op == NPUEMU_OP_NOP)
		return;
	aim(z, w, op, atomic ? 16 : 1);
	if (op == NPUEMU_OP_WRITE_ATOMIC_ADD) {
		w->add.rmt_eid3 = w->s.rmt_eid[3];
		w->add.rmt_token_value = z->me->target[0].token_value;
		w->add.rmt_addr = z->me->target[0].va + fz_below(z, FZ_BYTES);
		w->add.add_token_value = z->me->target[0].token_value;
		w->add.add_token_id = z->me->target[0].token_id & NPUEMU_SQE_RMT_ID_MASK;
		w->add.add_addr = z->me->target[0].va + (fz_below(z, FZ_BYTES) & ~7u);
		w->add.va = near_place(z, 1);
		w->add.dw3 |= fz_below(z, 200) << NPUEMU_SQE_WRITE_LEN_SHIFT;
		return;
	}
	n = atomic ? 1 : 1 + (fz_one_in(z, 4) ? fz_below(z, 5) : 0);
	if (op == NPUEMU_OP_WRITE_NOTIFY) {
		nt->token_id = z->me->target[0].token_id & NPUEMU_SQE_RMT_ID_MASK;
		nt->token_value = z->me->target[0].token_value;
		nt->addr = z->me->target[0].va + (fz_below(z, FZ_BYTES) & ~7u);
		nt->data = fz_next(&z->rng);
		at = 80;
	}
	if (!atomic && op != NPUEMU_OP_READ && fz_one_in(z, 4)) {
		w->s.dw0 |= NPUEMU_SQE_INLINE;
		i = fz_below(z, 256 - at);
		w->s.dw1 |= i << NPUEMU_SQE_INLINE_LEN_SHIFT;
		w->blocks = (at + i + BB - 1) / BB;
		return;
	}
	if ((op == NPUEMU_OP_WRITE || op == NPUEMU_OP_READ) && fz_one_in(z, 6)) {
		w->s.rmt_addr &= ~3ull;
		w->s.dw0 |= NPUEMU_SQE_UDF;
		w->s.dw9 = (8 + fz_below(z, 3)) << NPUEMU_SQE_RED_OP_SHIFT |
			   fz_below(z, 9) << NPUEMU_SQE_RED_TYPE_SHIFT;
	}
	w->s.dw2 |= n << NPUEMU_SQE_SGE_NUM_SHIFT;
	for (i = 0; i < n; i++, at += sizeof(sge)) {
		sge.len = op == NPUEMU_OP_CAS ? 4u << fz_below(z, 3) :
			  op == NPUEMU_OP_FAA ? 4u << fz_below(z, 2) :
			  w->s.dw0 & NPUEMU_SQE_UDF ? any_len(z) & ~3u : any_len(z);
		sge.va = near_place(z, fz_one_in(z, 2) ? 16 : 4);
		memcpy(w->b + at, &sge, sizeof(sge));
	}
	if (atomic) {
		for (i = 64; i < 96; i += 8)
			memcpy(w->b + i, &(u64){ fz_below(z, 4) }, 8);
		at = 96;
	}
	w->blocks = (at + BB - 1) / BB;
}

static void make_sdma(struct fz *z, struct wqe *w)
{
	u32 op = fz_below(z, 6);

	w->blocks = 1;
	w->sdma.dw0 = flags(z) & ~NPUEMU_SQE_TOKEN_EN;
	w->sdma.dw1 = op << NPUEMU_SQE_OPCODE_SHIFT;
	w->sdma.dst = near_place(z, 8);
	w->sdma.src = op == NPUEMU_SDMA_FILL || op == NPUEMU_SDMA_NOTIFY ? fz_next(&z->rng) :
		      near_place(z, 8);
	w->sdma.len = op == NPUEMU_SDMA_NOTIFY ? 8 : any_len(z) & ~7u;
	switch (op) {
	case NPUEMU_SDMA_NOP:
		w->sdma.dst = 0;
		w->sdma.src = 0;
		w->sdma.len = 0;
		break;
	case NPUEMU_SDMA_COPY_2D:
		w->sdma.height = fz_below(z, 20);
		w->sdma.dst_pitch = w->sdma.len + fz_below(z, 100);
		w->sdma.src_pitch = w->sdma.len + fz_below(z, 100);
		break;
	case NPUEMU_SDMA_FILL:
		w->sdma.dst_pitch = 1u << fz_below(z, 4);
		break;
	case NPUEMU_SDMA_REDUCE:
		w->sdma.type = (8 + fz_below(z, 3)) << 4 | fz_below(z, 9);
		break;
	}
}

/* Puts it into the ring; the owner bit says on which lap. */
static void put(struct fz_queue *q, struct wqe *w)
{
	u32 i, k;

	if (q->pi & FZ_DEPTH)
		w->s.dw0 &= ~NPUEMU_SQE_OWNER;
	else
		w->s.dw0 |= NPUEMU_SQE_OWNER;
	for (i = 0; i < w->blocks; i++) {
		u64 *to = (u64 *)(void *)(q->ring + (q->pi + i) % FZ_DEPTH * BB);

		for (k = 0; k < BB / 8; k++)
			WRITE_ONCE(to[k], w->words[i * (BB / 8) + k]);
	}
	q->pi += w->blocks;
}

/* ---- A burst ------------------------------------------------------------- */

static void post_receives(struct fz *z)
{
	struct fz_rig *r = &z->rig;
	/* what was taken, the driver says next to where we say what was posted */
	u32 taken = READ_ONCE(r->rq_rec[NPUEMU_REC_CONSUMED / 4]), i, n = 64 - (r->rq_pi - taken);

	for (i = 0; i < n && n <= 64; i++, r->rq_pi++) {
		struct npuemu_sge *s = &r->rq_ring[r->rq_pi % 64 * 2];

		WRITE_ONCE(s->len, 500 + fz_below(z, 500));
		WRITE_ONCE(s->va, near_place(z, 1));
		WRITE_ONCE(s[1].len, fz_below(z, 500));
		WRITE_ONCE(s[1].va, near_place(z, 1));
	}
	__atomic_store_n(r->rq_rec, r->rq_pi, __ATOMIC_RELEASE);
}

static void fill(struct fz *z, struct fz_queue *q, u32 room)
{
	u32 n = 1 + fz_below(z, 200), blocks = 0;
	struct wqe w = { .blocks = 0 };

	while (n-- && blocks + 4 <= room) {
		memset(&w, 0, sizeof(w));
		if (q->type)
			make_sdma(z, &w);
		else
			make_udma(z, &w);
		if (fz_one_in(z, 256))
			w.b[fz_below(z, sizeof(w.b))] ^= 1u << fz_below(z, 8);
		put(q, &w);
		blocks += w.blocks;
	}
	if (fz_one_in(z, 64)) {	/* a direct WQE, or what looks like one */
		WRITE_ONCE(q->db[0], (w.s.dw0 & ~NPUEMU_SQE_IDX_MASK) | (q->pi & 0xffff));
		return;
	}
	__atomic_store_n(q->db + NPUEMU_DB_PI / 4,
			 fz_one_in(z, 200) ? (u32)fz_next(&z->rng) : q->pi, __ATOMIC_RELEASE);
}

/* Take what has completed, by owner bits. */
static void drain(struct fz *z)
{
	struct fz_rig *r = &z->rig;
	u32 n, dw;
	u8 *at;

	for (n = 0; n < FZ_CQ_DEPTH; n++, r->cq_ci++) {
		at = r->cq_ring + r->cq_ci % FZ_CQ_DEPTH * NPUEMU_CQE_SIZE;
		dw = READ_ONCE(*(u32 *)(void *)at);
		if (!!(dw & NPUEMU_CQE_OWNER) != !(r->cq_ci & FZ_CQ_DEPTH))
			break;
	}
	__atomic_store_n(r->cq_rec, r->cq_ci, __ATOMIC_RELEASE);
}

/* What it did; if it is in no state to go on, from the start.  Its room in blocks. */
static u32 look_after(struct fz *z, struct fz_queue *q)
{
	struct npuemu_ioc_queue_query a = { .id = q->id };
	struct npuemu_ioc_queue_modify m = { .id = q->id };

	if (fz_plain(z, z->fd[0], NPUEMU_IOC_QUEUE_QUERY, &a))
		return 0;
	z->me->wqes += a.cnt.wqes + a.cnt.flushed - q->counted;
	q->counted = a.cnt.wqes + a.cnt.flushed;
	z->rig.broken = a.last_status ? z->rig.broken + 1 : 0;
	m.state = NPUEMU_QS_READY;
	if (a.state == NPUEMU_QS_READY || (a.state == NPUEMU_QS_SUSPENDED && fz_below(z, 8) &&
					   !fz_plain(z, z->fd[0], NPUEMU_IOC_QUEUE_MODIFY, &m))) {
		/* full for the third time or so: it waits for something, or lost its way */
		if (q->pi - a.ci + 8 <= FZ_DEPTH || (q->pi - a.ci <= FZ_DEPTH && fz_below(z, 8)))
			return FZ_DEPTH - (q->pi - a.ci);
	}
	m.state = NPUEMU_QS_RESET;
	if (fz_plain(z, z->fd[0], NPUEMU_IOC_QUEUE_MODIFY, &m))
		return 0;
	/* entries that were rewritten may have led us astray */
	z->rig.cq_ci = m.cq_pi;
	m.state = NPUEMU_QS_READY;
	q->pi = 0;
	return fz_plain(z, z->fd[0], NPUEMU_IOC_QUEUE_MODIFY, &m) ? 0 : FZ_DEPTH;
}

int fz_rig_burst(struct fz *z)
{
	struct npuemu_ioc_wait_item item = { .kind = NPUEMU_WAIT_CQ, .handle = z->rig.cq };
	struct npuemu_ioc_wait a = { .items = (u64)&item, .nr = 1 };
	volatile int rc = 0;
	u32 i;

	if (!z->rig.up)
		return -ENODEV;
	fz_begin(z, 0, NULL, 0);
	WRITE_ONCE(z->calm, !fz_one_in(z, 3));
	if (fz_guard()) {
		post_receives(z);
		for (i = 0; i < FZ_QUEUES; i++)
			fill(z, &z->rig.queue[i], look_after(z, &z->rig.queue[i]));
		item.ci = z->rig.cq_ci;
		a.deadline_ns = (int64_t)(fz_ms() + 2) * 1000000;
		if (fz_below(z, 2))
			fz_plain(z, z->fd[0], NPUEMU_IOC_WAIT, &a);
		else
			sched_yield();
		drain(z);
	} else {
		rc = -EFAULT;
	}
	fz_unguard();
	WRITE_ONCE(z->calm, false);
	return rc;
}

/* ---- The second thread --------------------------------------------------- */

static void store(struct fz *z, u64 *rng)
{
	struct fz_rig *r = &z->rig;
	u64 v = fz_next(rng), what = fz_next(rng);
	struct fz_queue *q = &r->queue[what % FZ_QUEUES];
	u64 *block = (u64 *)(void *)(q->ring + v % FZ_DEPTH * BB);

	switch (what / FZ_QUEUES % 64) {
	case 0:		/* seldom: these mostly stop everything */
		if (v >> 57)
			break;
		switch (v % 6) {
		case 0:
			WRITE_ONCE(q->db[NPUEMU_DB_PI / 4], (u32)(v >> 8));
			break;
		case 1:
			WRITE_ONCE(*r->cq_rec, (u32)(v >> 8));
			break;
		case 2:
			WRITE_ONCE(*r->rq_rec, (u32)(v >> 8));
			break;
		case 3:
			WRITE_ONCE(*r->rcq_rec, (u32)(v >> 8));
			break;
		case 4:	/* what the driver writes there, it must not read */
			WRITE_ONCE(*(u32 *)(void *)(r->cq_ring + v % FZ_CQ_DEPTH * NPUEMU_CQE_SIZE),
				   (u32)v);
			break;
		default:
			WRITE_ONCE(q->db[0], (u32)(v >> 8));
			break;
		}
		break;
	case 1:		/* of the doorbell page, what means nothing */
		WRITE_ONCE(q->db[64 + v % 960], (u32)(v >> 20));
		break;
	case 2:
		WRITE_ONCE(*r->cq_rec, r->cq_ci - (u32)(v % 8));
		break;
	case 3:
		WRITE_ONCE(*r->rq_rec, r->rq_pi + (u32)(v % 8));
		break;
	case 4 ... 9:
		WRITE_ONCE(r->rq_ring[v % 128].len, (u32)(v >> (v & 1 ? 32 : 52)));
		break;
	/* lengths and addresses: of the first SGE, the remote one; source and destination */
	case 10 ... 30:
		WRITE_ONCE(block[q->type ? 4 : 6],
			   v >> 62 ? 8 : v >> 58 ? v % 4096 & ~7ull : v % 70000);
		break;
	case 31 ... 45:
		WRITE_ONCE(block[q->type ? 2 : 7],
			   r->place[v % 4] + (v % (FZ_BYTES - 8192) & ~15ull));
		break;
	case 46 ... 55:
		WRITE_ONCE(block[q->type ? 3 : 5],
			   r->place[1] + (v % (FZ_BYTES - 8192) & ~15ull));
		break;
	case 56:	/* opcode, flags, number of SGEs; the owner bit stays */
		if (!(v >> 60))
			WRITE_ONCE(block[0], (READ_ONCE(block[0]) & NPUEMU_SQE_OWNER) |
				   (v & ~(u64)NPUEMU_SQE_OWNER));
		break;
	case 57:
		if (!(v >> 60))
			WRITE_ONCE(((u32 *)block)[2], (u32)v);
		break;
	case 58:
		if (!(v >> 60))
			WRITE_ONCE(block[v >> 8 & 7], v);
		break;
	default:	/* what another one has there */
		memcpy(block + 2, q->ring + (v >> 8) % FZ_DEPTH * BB + 16, 48);
		break;
	}
}

void *fz_second_thread(void *arg)
{
	struct fz *z = arg;
	u64 rng = z->rng ^ 0x5ec0cd;
	u32 i;

	for (;;) {
		if (READ_ONCE(z->calm) || !READ_ONCE(z->rig.up)) {
			usleep(200);
			continue;
		}
		pthread_mutex_lock(&z->lock);
		if (z->rig.up && fz_guard())
			for (i = 0; i < 16; i++)
				store(z, &rng);
		fz_unguard();
		pthread_mutex_unlock(&z->lock);
		__atomic_add_fetch(&z->me->stores, 16, __ATOMIC_RELAXED);
		sched_yield();
	}
	return NULL;
}

const struct fz_op fz_ring_ops[] = {
	{ "a burst of WQEs", fz_rig_burst, 500, 1, false },
	{ NULL, NULL, 0, 0, false }
};
