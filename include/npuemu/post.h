/* SPDX-License-Identifier: MIT */
/*
 * Posting, inlined into the caller: a WQE is built in place, eight bytes at a
 * time, and nothing is executed before npuemu_doorbell().
 *
 * Every npuemu_post_*() returns 0, -EAGAIN when the ring has no room (poll the
 * CQ and try again), or -EINVAL.  @flags are DW0 bits: NPUEMU_SQE_CQE for a
 * completion, NPUEMU_RELAXED, NPUEMU_STRONG, NPUEMU_SQE_FENCE.  After a post,
 * npuemu_last_wqe() is the index its completion will carry.  Lengths are in
 * bytes, remote addresses are the owner's VAs.
 */
#ifndef NPUEMU_POST_H
#define NPUEMU_POST_H

#include <errno.h>
#include <string.h>
#include <npuemu/npuemu.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NPUEMU_RELAXED	(NPUEMU_ORDER_RELAXED << NPUEMU_SQE_ORDER_SHIFT)
#define NPUEMU_STRONG	(NPUEMU_ORDER_STRONG << NPUEMU_SQE_ORDER_SHIFT)

/* The part of a queue that posting needs; the first member of the handle. */
struct npuemu_post_view {
	uint64_t *ring;
	uint32_t pi;		/* next basic block, free-running */
	uint32_t ci;		/* oldest basic block not yet retired; moved by polling */
	uint32_t mask;		/* depth - 1 */
	uint32_t depth;		/* 0: the queue takes nothing (destroyed; full in a forked child) */
};

/* Where a remote operation goes.  Fill it from a npuemu_seg_info. */
struct npuemu_target {
	uint32_t eid[4];
	uint32_t token_id;
	uint32_t token_value;
};

static inline struct npuemu_target npuemu_target_of(const struct npuemu_seg_info *s)
{
	struct npuemu_target t;

	memcpy(t.eid, s->eid.w, sizeof(t.eid));
	t.token_id = s->token_id;
	t.token_value = s->token_value;
	return t;
}

/* Publish what was posted and let it run: helps in this thread, or wakes the
 * engine.  0 or a negative errno.
 */
int npuemu_doorbell(struct npuemu_queue *q);

static inline struct npuemu_post_view *npuemu_view(struct npuemu_queue *q)
{
	return (struct npuemu_post_view *)(void *)q;
}

/* Index of the last basic block posted: @wqe of that WQE's completion. */
static inline uint32_t npuemu_last_wqe(struct npuemu_queue *q)
{
	return npuemu_view(q)->pi - 1;
}

/* Blocks not yet retired.  Another thread may be polling: what it has retired is
 * free to be written over.
 */
static inline uint32_t npuemu_used(const struct npuemu_post_view *v)
{
	return v->pi - __atomic_load_n(&v->ci, __ATOMIC_ACQUIRE);
}

static inline void npuemu_posted(struct npuemu_post_view *v, uint32_t n)
{
	__atomic_store_n(&v->pi, v->pi + n, __ATOMIC_RELAXED);
}

static inline uint32_t npuemu_sq_space(struct npuemu_queue *q)
{
	struct npuemu_post_view *v = npuemu_view(q);

	return v->depth - npuemu_used(v);
}

static inline uint64_t npuemu_u64(uint32_t lo, uint32_t hi)
{
	return (uint64_t)hi << 32 | lo;
}

static inline void npuemu_put(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

static inline uint64_t *npuemu_bb(struct npuemu_post_view *v, uint32_t i)
{
	return v->ring + (size_t)(i & v->mask) * 8;
}

/* 1 on even laps. */
static inline uint32_t npuemu_owner(struct npuemu_post_view *v, uint32_t i)
{
	return i & v->depth ? 0 : NPUEMU_SQE_OWNER;
}

/* The 48 bytes every WQE starts with. */
static inline void npuemu_put_sqe(uint64_t *p, uint32_t dw0, uint32_t op,
				  uint32_t nsge, const struct npuemu_target *t,
				  uint32_t dw9, uint64_t raddr)
{
	npuemu_put(p, npuemu_u64(dw0, op << NPUEMU_SQE_OPCODE_SHIFT));
	npuemu_put(p + 1, npuemu_u64(nsge << NPUEMU_SQE_SGE_NUM_SHIFT, t->token_id));
	npuemu_put(p + 2, npuemu_u64(t->eid[0], t->eid[1]));
	npuemu_put(p + 3, npuemu_u64(t->eid[2], t->eid[3]));
	npuemu_put(p + 4, npuemu_u64(t->token_value, dw9));
	npuemu_put(p + 5, raddr);
}

static inline void npuemu_put_sge(uint64_t *p, const void *va, uint32_t len)
{
	npuemu_put(p, len);
	npuemu_put(p + 1, (uint64_t)(uintptr_t)va);
}

/* One basic block: WRITE, READ and their reducing forms. */
static inline int npuemu_post_rma(struct npuemu_queue *q, uint32_t op,
				  const void *local, uint32_t len,
				  const struct npuemu_target *t, uint64_t raddr,
				  uint32_t dw9, uint32_t flags)
{
	struct npuemu_post_view *v = npuemu_view(q);
	uint64_t *p;

	if (npuemu_used(v) >= v->depth)
		return -EAGAIN;
	p = npuemu_bb(v, v->pi);
	npuemu_put_sqe(p, flags | NPUEMU_SQE_TOKEN_EN | npuemu_owner(v, v->pi), op,
		       1, t, dw9, raddr);
	npuemu_put_sge(p + 6, local, len);
	npuemu_posted(v, 1);
	return 0;
}

static inline int npuemu_post_write(struct npuemu_queue *q, const void *src,
				    uint32_t len, const struct npuemu_target *t,
				    uint64_t raddr, uint32_t flags)
{
	return npuemu_post_rma(q, NPUEMU_OP_WRITE, src, len, t, raddr, 0, flags);
}

static inline int npuemu_post_read(struct npuemu_queue *q, void *dst,
				   uint32_t len, const struct npuemu_target *t,
				   uint64_t raddr, uint32_t flags)
{
	return npuemu_post_rma(q, NPUEMU_OP_READ, dst, len, t, raddr, 0, flags);
}

static inline uint32_t npuemu_reduce_dw9(enum npuemu_reduce_op op,
					 enum npuemu_dtype type)
{
	return (uint32_t)op << NPUEMU_SQE_RED_OP_SHIFT |
	       (uint32_t)type << NPUEMU_SQE_RED_TYPE_SHIFT;
}

/* remote = remote op local */
static inline int npuemu_post_write_reduce(struct npuemu_queue *q, const void *src,
					   uint32_t len, const struct npuemu_target *t,
					   uint64_t raddr, enum npuemu_reduce_op op,
					   enum npuemu_dtype type, uint32_t flags)
{
	return npuemu_post_rma(q, NPUEMU_OP_WRITE, src, len, t, raddr,
			       npuemu_reduce_dw9(op, type), flags | NPUEMU_SQE_UDF);
}

/* local = local op remote */
static inline int npuemu_post_read_reduce(struct npuemu_queue *q, void *dst,
					  uint32_t len, const struct npuemu_target *t,
					  uint64_t raddr, enum npuemu_reduce_op op,
					  enum npuemu_dtype type, uint32_t flags)
{
	return npuemu_post_rma(q, NPUEMU_OP_READ, dst, len, t, raddr,
			       npuemu_reduce_dw9(op, type), flags | NPUEMU_SQE_UDF);
}

/*
 * Any WQE of @n basic blocks (1..4), built by the caller; the owner bit is set
 * here.  May straddle the end of the ring.
 */
static inline int npuemu_post_raw(struct npuemu_queue *q, const void *wqe, uint32_t n)
{
	struct npuemu_post_view *v = npuemu_view(q);
	uint64_t block[8];
	uint32_t i, j;

	if (n < 1 || n > NPUEMU_WQE_MAX_BB)
		return -EINVAL;
	if (v->depth - npuemu_used(v) < n)
		return -EAGAIN;
	for (i = 0; i < n; i++) {
		uint64_t *p = npuemu_bb(v, v->pi + i);

		memcpy(block, (const char *)wqe + i * sizeof(block), sizeof(block));
		if (i == 0)
			block[0] = (block[0] & ~(uint64_t)NPUEMU_SQE_OWNER) |
				   npuemu_owner(v, v->pi);
		for (j = 0; j < 8; j++)
			npuemu_put(p + j, block[j]);
	}
	npuemu_posted(v, n);
	return 0;
}

/* Payload first, then the 8-byte store of @ndata at @naddr. */
static inline int npuemu_post_write_notify(struct npuemu_queue *q, const void *src,
					   uint32_t len, const struct npuemu_target *t,
					   uint64_t raddr, const struct npuemu_target *nt,
					   uint64_t naddr, uint64_t ndata, uint32_t flags)
{
	struct npuemu_post_view *v = npuemu_view(q);
	uint64_t *p;

	if (v->depth - npuemu_used(v) < 2)
		return -EAGAIN;
	p = npuemu_bb(v, v->pi);
	npuemu_put_sqe(p, flags | NPUEMU_SQE_TOKEN_EN | npuemu_owner(v, v->pi),
		       NPUEMU_OP_WRITE_NOTIFY, 1, t, 0, raddr);
	npuemu_put(p + 6, npuemu_u64(nt->token_id, nt->token_value));
	npuemu_put(p + 7, naddr);
	p = npuemu_bb(v, v->pi + 1);
	npuemu_put(p, ndata);
	npuemu_put(p + 1, 0);
	npuemu_put_sge(p + 2, src, len);
	npuemu_posted(v, 2);
	return 0;
}

/* CAS and FAA of @len 4 or 8; the old value lands at @result. */
static inline int npuemu_post_atomic(struct npuemu_queue *q, uint32_t op, void *result,
				     uint32_t len, const struct npuemu_target *t,
				     uint64_t raddr, uint64_t operand0,
				     uint64_t operand1, uint32_t flags)
{
	struct npuemu_post_view *v = npuemu_view(q);
	uint64_t *p;

	if (v->depth - npuemu_used(v) < 2)
		return -EAGAIN;
	p = npuemu_bb(v, v->pi);
	npuemu_put_sqe(p, flags | NPUEMU_SQE_TOKEN_EN | npuemu_owner(v, v->pi), op, 1,
		       t, 0, raddr);
	npuemu_put_sge(p + 6, result, len);
	p = npuemu_bb(v, v->pi + 1);
	npuemu_put(p, operand0);
	npuemu_put(p + 1, operand1);
	npuemu_posted(v, 2);
	return 0;
}

static inline int npuemu_post_faa(struct npuemu_queue *q, void *result, uint32_t len,
				  const struct npuemu_target *t, uint64_t raddr,
				  uint64_t add, uint32_t flags)
{
	return npuemu_post_atomic(q, NPUEMU_OP_FAA, result, len, t, raddr, add, 0, flags);
}

static inline int npuemu_post_cas(struct npuemu_queue *q, void *result, uint32_t len,
				  const struct npuemu_target *t, uint64_t raddr,
				  uint64_t swap, uint64_t compare, uint32_t flags)
{
	/* each operand has the operation's length */
	if (len == 4)
		return npuemu_post_atomic(q, NPUEMU_OP_CAS, result, len, t, raddr,
					  npuemu_u64((uint32_t)swap, (uint32_t)compare),
					  0, flags);
	return npuemu_post_atomic(q, NPUEMU_OP_CAS, result, len, t, raddr, swap, compare,
				  flags);
}

/* One block: payload, then an atomic add to a remote 8-byte word.  @len < 2^18. */
static inline int npuemu_post_write_add(struct npuemu_queue *q, const void *src,
					uint32_t len, const struct npuemu_target *t,
					uint64_t raddr, const struct npuemu_target *at,
					uint64_t aaddr, uint64_t add, uint32_t flags)
{
	struct npuemu_post_view *v = npuemu_view(q);
	uint64_t *p;

	if (len >> 18)
		return -EINVAL;
	if (npuemu_used(v) >= v->depth)
		return -EAGAIN;
	p = npuemu_bb(v, v->pi);
	npuemu_put(p, npuemu_u64(flags | NPUEMU_SQE_TOKEN_EN | npuemu_owner(v, v->pi),
				 NPUEMU_OP_WRITE_ATOMIC_ADD << NPUEMU_SQE_OPCODE_SHIFT));
	npuemu_put(p + 1, npuemu_u64((len >> 10) << NPUEMU_SQE_SGE_NUM_SHIFT,
				     t->token_id | (len & NPUEMU_SQE_WRITE_LEN_MASK) <<
				     NPUEMU_SQE_WRITE_LEN_SHIFT));
	npuemu_put(p + 2, npuemu_u64(t->eid[3], t->token_value));
	npuemu_put(p + 3, raddr);
	npuemu_put(p + 4, npuemu_u64(at->token_value, at->token_id));
	npuemu_put(p + 5, aaddr);
	npuemu_put(p + 6, add);
	npuemu_put(p + 7, (uint64_t)(uintptr_t)src);
	npuemu_posted(v, 1);
	return 0;
}

/*
 * SEND to a jetty or RQ: @t->token_id is its id, @t->token_value that of the RQ (any,
 * if it has none), the eid is its device's.
 * @jetty: 1 for a queue's id (npuemu_queue_query), 0 for an RQ's (npuemu_rq_query).
 * At most 16 MiB; more than 208 bytes must lie in device memory of this process.
 */
static inline int npuemu_post_send(struct npuemu_queue *q, const void *src, uint32_t len,
				   const struct npuemu_target *t, uint32_t jetty,
				   uint32_t flags)
{
	return npuemu_post_rma(q, NPUEMU_OP_SEND, src, len, t, 0, 0,
			       flags | jetty << NPUEMU_SQE_RMT_TYPE_SHIFT);
}

static inline int npuemu_post_send_imm(struct npuemu_queue *q, const void *src,
				       uint32_t len, const struct npuemu_target *t,
				       uint32_t jetty, uint64_t imm, uint32_t flags)
{
	return npuemu_post_rma(q, NPUEMU_OP_SEND_IMM, src, len, t, imm, 0,
			       flags | jetty << NPUEMU_SQE_RMT_TYPE_SHIFT);
}

static inline int npuemu_post_nop(struct npuemu_queue *q, uint32_t flags)
{
	struct npuemu_target none;

	memset(&none, 0, sizeof(none));
	return npuemu_post_rma(q, NPUEMU_OP_NOP, NULL, 0, &none, 0, 0, flags);
}

/* ---- SDMA queues: addresses are this process's own ---------------------- */

static inline int npuemu_post_sdma(struct npuemu_queue *q, struct npuemu_sdma *d,
				   uint32_t op, uint32_t flags)
{
	d->dw0 = flags;
	d->dw1 = op << NPUEMU_SQE_OPCODE_SHIFT;
	return npuemu_post_raw(q, d, 1);
}

static inline int npuemu_post_copy(struct npuemu_queue *q, void *dst, const void *src,
				   uint64_t len, uint32_t flags)
{
	struct npuemu_sdma d;

	memset(&d, 0, sizeof(d));
	d.dst = (uint64_t)(uintptr_t)dst;
	d.src = (uint64_t)(uintptr_t)src;
	d.len = len;
	return npuemu_post_sdma(q, &d, NPUEMU_SDMA_COPY, flags);
}

static inline int npuemu_post_copy_2d(struct npuemu_queue *q, void *dst,
				      uint64_t dst_pitch, const void *src,
				      uint64_t src_pitch, uint64_t width,
				      uint32_t height, uint32_t flags)
{
	struct npuemu_sdma d;

	memset(&d, 0, sizeof(d));
	d.dst = (uint64_t)(uintptr_t)dst;
	d.src = (uint64_t)(uintptr_t)src;
	d.len = width;
	d.height = height;
	d.dst_pitch = dst_pitch;
	d.src_pitch = src_pitch;
	return npuemu_post_sdma(q, &d, NPUEMU_SDMA_COPY_2D, flags);
}

static inline int npuemu_post_fill(struct npuemu_queue *q, void *dst, uint64_t pattern,
				   uint32_t width, uint64_t len, uint32_t flags)
{
	struct npuemu_sdma d;

	memset(&d, 0, sizeof(d));
	d.dst = (uint64_t)(uintptr_t)dst;
	d.src = pattern;
	d.len = len;
	d.dst_pitch = width;
	return npuemu_post_sdma(q, &d, NPUEMU_SDMA_FILL, flags);
}

static inline int npuemu_post_reduce(struct npuemu_queue *q, void *dst, const void *src,
				     uint64_t len, enum npuemu_reduce_op op,
				     enum npuemu_dtype type, uint32_t flags)
{
	struct npuemu_sdma d;

	memset(&d, 0, sizeof(d));
	d.type = (uint32_t)op << 4 | (uint32_t)type;
	d.dst = (uint64_t)(uintptr_t)dst;
	d.src = (uint64_t)(uintptr_t)src;
	d.len = len;
	return npuemu_post_sdma(q, &d, NPUEMU_SDMA_REDUCE, flags);
}

/* An 8-byte store of @value after everything posted before it. */
static inline int npuemu_post_sdma_notify(struct npuemu_queue *q, uint64_t *word,
					  uint64_t value, uint32_t flags)
{
	struct npuemu_sdma d;

	memset(&d, 0, sizeof(d));
	d.dst = (uint64_t)(uintptr_t)word;
	d.src = value;
	d.len = 8;
	return npuemu_post_sdma(q, &d, NPUEMU_SDMA_NOTIFY, flags);
}

#ifdef __cplusplus
}
#endif

#endif
