// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The opcode tables and the one checker that reads them: what a WQE of each
 * kind may contain, how long it is, what it wants of the remote segment.
 */
#include "engine.h"
#include "copy.h"

#define R	NPUEMU_ACCESS_READ
#define W	NPUEMU_ACCESS_WRITE
#define A	NPUEMU_ACCESS_ATOMIC
#define INL	NPUEMU_OPF_INLINE
#define RED	NPUEMU_OPF_REDUCE
#define LOAD	NPUEMU_OPF_LOAD
#define REM	NPUEMU_OPF_REMOTE

/* Opcodes that are not here are UNSUPPORTED_OPCODE, as on the real device. */
const struct npuemu_opinfo npuemu_opcodes[32] = {
	/*				name, control, fixed, sges, inline, flags, access, run */
	[NPUEMU_OP_SEND]	  = { "SEND", 48, 0, 13, 192, INL | REM, 0,
				      npuemu_run_send },
	[NPUEMU_OP_SEND_IMM]	  = { "SEND_IMM", 48, 0, 13, 192, INL | REM, 0,
				      npuemu_run_send },
	[NPUEMU_OP_WRITE]	  = { "WRITE", 48, 0, 13, 208, INL | RED | REM, W,
				      npuemu_run_write },
	[NPUEMU_OP_WRITE_NOTIFY]  = { "WRITE_NOTIFY", 80, 0, 11, 176, INL | RED | REM, W,
				      npuemu_run_write },
	[NPUEMU_OP_READ]	  = { "READ", 48, 0, 6, 0, RED | LOAD | REM, R,
				      npuemu_run_read },
	[NPUEMU_OP_CAS]		  = { "CAS", 48, 2, 1, 0, LOAD | REM, A,
				      npuemu_run_atomic },
	[NPUEMU_OP_FAA]		  = { "FAA", 48, 2, 1, 0, LOAD | REM, A,
				      npuemu_run_atomic },
	[NPUEMU_OP_NOP]		  = { "NOP", 48, 1, 13, 0, 0, 0, npuemu_run_nop },
	[NPUEMU_OP_WRITE_ATOMIC_ADD] = { "WRITE_ATOMIC_ADD", 56, 1, 1, 0,
					 REM | NPUEMU_OPF_WRITE_ADD, W, npuemu_run_write },
};

const struct npuemu_opinfo npuemu_sdma_opcodes[8] = {
	[NPUEMU_SDMA_NOP]	= { "NOP", 64, 1, 0, 0, 0, 0, npuemu_run_nop },
	[NPUEMU_SDMA_COPY]	= { "COPY", 64, 1, 0, 0, 0, 0, npuemu_run_sdma_copy },
	[NPUEMU_SDMA_COPY_2D]	= { "COPY_2D", 64, 1, 0, 0, 0, 0, npuemu_run_sdma_copy_2d },
	[NPUEMU_SDMA_FILL]	= { "FILL", 64, 1, 0, 0, 0, 0, npuemu_run_sdma_fill },
	[NPUEMU_SDMA_REDUCE]	= { "REDUCE", 64, 1, 0, 0, 0, 0, npuemu_run_sdma_copy },
	[NPUEMU_SDMA_NOTIFY]	= { "NOTIFY", 64, 1, 0, 0, 0, 0, npuemu_run_sdma_notify },
};

static const struct npuemu_opinfo *lookup(const struct npuemu_jfs *q, u64 w0)
{
	u32 op = (u32)(w0 >> (32 + NPUEMU_SQE_OPCODE_SHIFT)) & 0xff;
	const struct npuemu_opinfo *o;

	/* masked as well: whatever is speculated stays in the table */
	if (q->type)
		o = op < ARRAY_SIZE(npuemu_sdma_opcodes) ?
		    &npuemu_sdma_opcodes[op & (ARRAY_SIZE(npuemu_sdma_opcodes) - 1)] : NULL;
	else
		o = op < ARRAY_SIZE(npuemu_opcodes) ?
		    &npuemu_opcodes[op & (ARRAY_SIZE(npuemu_opcodes) - 1)] : NULL;
	return o && o->name ? o : NULL;
}

u32 npuemu_wqe_blocks(const struct npuemu_jfs *q, u64 w0, u64 w1)
{
	const struct npuemu_opinfo *o = lookup(q, w0);
	u32 bytes;

	if (!o)
		return 1;
	if (o->fixed_bb)
		return o->fixed_bb;
	if ((u32)w0 & NPUEMU_SQE_INLINE)
		bytes = o->control + (u32)(w0 >> (32 + NPUEMU_SQE_INLINE_LEN_SHIFT));
	else
		bytes = o->control + ((u32)w1 >> NPUEMU_SQE_SGE_NUM_SHIFT) *
			(u32)sizeof(struct npuemu_sge);
	bytes = (bytes + NPUEMU_BB_SIZE - 1) / NPUEMU_BB_SIZE;
	/* too long is found by the checker; walking the ring it counts as one */
	return bytes > NPUEMU_WQE_MAX_BB ? 1 : bytes;
}

static u32 malformed(struct npuemu_jfs *q, struct npuemu_wqe *w, u32 status, const char *why)
{
	q->chip->ops->explain(q, "WQE at block %u: %s", w->first, why);
	return status;
}

static u32 check_reduce(struct npuemu_jfs *q, struct npuemu_wqe *w, u32 op, u32 type)
{
	u32 size = npuemu_dtype_size(type);

	if (!size || op < NPUEMU_REDUCE_MAX || op > NPUEMU_REDUCE_SUM)
		return malformed(q, w, NPUEMU_ST_UNSUPPORTED_OPCODE,
				 "no such reduce operation or data type");
	w->elem = size;
	return 0;
}

static u32 check_sges(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	u64 total = 0;
	u32 i;

	for (i = 0; i < w->nsge; i++) {
		total += w->sge[i].len;
		if (w->elem && w->sge[i].len % w->elem)
			return malformed(q, w, NPUEMU_ST_LOC_LEN,
					 "an SGE cuts a reduce element in two");
	}
	if (total > 0xffffffffu)
		return malformed(q, w, NPUEMU_ST_LOC_LEN, "message of 4 GiB or more");
	w->len = total;
	return 0;
}

static u32 check_atomic(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	const struct npuemu_sqe *s = (const void *)w->bb;
	u32 len = w->sge[0].len;
	bool cas = w->op == &npuemu_opcodes[NPUEMU_OP_CAS];

	if (w->nsge != 1 || !(len == 4 || len == 8 || (len == 16 && cas)))
		return malformed(q, w, NPUEMU_ST_LOC_LEN,
				 "an atomic takes one SGE of 4 or 8 bytes, CAS also 16");
	if (s->rmt_addr & (len - 1))
		return malformed(q, w, NPUEMU_ST_REM_UNSUPPORTED_REQ,
				 "remote address of the atomic is not aligned");
	w->len = len;
	return 0;
}

static u32 check_sdma(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	const struct npuemu_sdma *d = (const void *)w->bb;
	u32 op = (d->dw1 >> NPUEMU_SQE_OPCODE_SHIFT) & 0xff;

	w->len = op == NPUEMU_SDMA_NOP ? 0 : d->len;
	if (d->dw0 & NPUEMU_SQE_DW0_RESERVED ||
	    (d->dw0 & NPUEMU_SQE_ORDER_MASK) == NPUEMU_SQE_ORDER_MASK)
		return malformed(q, w, NPUEMU_ST_UNSUPPORTED_OPCODE,
				 "reserved bits of the descriptor are not zero");
	if (d->reserved || (op != NPUEMU_SDMA_REDUCE && d->type) ||
	    (op != NPUEMU_SDMA_COPY_2D && (d->height || d->src_pitch)) ||
	    (op != NPUEMU_SDMA_COPY_2D && op != NPUEMU_SDMA_FILL && d->dst_pitch))
		return malformed(q, w, NPUEMU_ST_UNSUPPORTED_OPCODE,
				 "a field this SDMA operation does not use is not zero");
	switch (op) {
	case NPUEMU_SDMA_COPY_2D:
		if (d->len > d->dst_pitch || d->len > d->src_pitch)
			return malformed(q, w, NPUEMU_ST_LOC_LEN,
					 "2D copy: rows wider than the pitch");
		if (d->dst_pitch >> 31 || d->src_pitch >> 31)
			return malformed(q, w, NPUEMU_ST_LOC_LEN,
					 "2D copy: pitch of 2 GiB or more");
		w->len = d->len * d->height;
		return 0;
	case NPUEMU_SDMA_FILL:
		if (d->dst_pitch != 1 && d->dst_pitch != 2 && d->dst_pitch != 4 &&
		    d->dst_pitch != 8)
			return malformed(q, w, NPUEMU_ST_LOC_LEN,
					 "fill: the pattern has 1, 2, 4 or 8 bytes");
		return 0;
	case NPUEMU_SDMA_REDUCE:
		w->status = check_reduce(q, w, d->type >> 4, d->type & 0xf);
		if (!w->status && d->len % w->elem)
			return malformed(q, w, NPUEMU_ST_LOC_LEN,
					 "length is not a multiple of the element");
		return w->status;
	case NPUEMU_SDMA_NOTIFY:
		if (d->len != 8 || d->dst & 7)
			return malformed(q, w, NPUEMU_ST_LOC_LEN,
					 "notify: an aligned 8-byte word");
		return 0;
	default:
		return 0;
	}
}

static u32 check_inline(struct npuemu_jfs *q, struct npuemu_wqe *w, u32 len)
{
	if (!(w->op->flags & NPUEMU_OPF_INLINE))
		return malformed(q, w, NPUEMU_ST_UNSUPPORTED_OPCODE,
				 "this opcode takes no inline data");
	if (len > w->op->max_inline)
		return malformed(q, w, NPUEMU_ST_LOC_LEN, "too much inline data");
	if (w->elem && len % w->elem)
		return malformed(q, w, NPUEMU_ST_LOC_LEN,
				 "inline data cuts a reduce element in two");
	w->sge = NULL;
	w->nsge = 0;
	w->len = len;
	return 0;
}

/* Everything but the plain one-SGE WRITE or READ, which the caller did. */
static noinline u32 check_rest(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	const struct npuemu_sqe *s = (const void *)w->bb;
	u32 dw0 = s->dw0, status;

	if (dw0 & NPUEMU_SQE_DW0_RESERVED ||
	    (dw0 & NPUEMU_SQE_ORDER_MASK) == NPUEMU_SQE_ORDER_MASK)
		return malformed(q, w, NPUEMU_ST_UNSUPPORTED_OPCODE,
				 "reserved bits of the control part are not zero");
	if (w->op->flags & NPUEMU_OPF_WRITE_ADD) {
		const struct npuemu_sqe_write_add *a = (const void *)w->bb;

		if (dw0 & (NPUEMU_SQE_INLINE | NPUEMU_SQE_UDF))
			return malformed(q, w, NPUEMU_ST_UNSUPPORTED_OPCODE,
					 "WRITE_ATOMIC_ADD takes neither inline nor reduce");
		if (a->add_addr & 7)
			return malformed(q, w, NPUEMU_ST_REM_UNSUPPORTED_REQ,
					 "address of the counter is not aligned");
		w->len = (a->dw2 >> NPUEMU_SQE_SGE_NUM_SHIFT) << 10 |
			 (a->dw3 >> NPUEMU_SQE_WRITE_LEN_SHIFT & NPUEMU_SQE_WRITE_LEN_MASK);
		/* sge_num is a part of the length here */
		w->sge = NULL;
		w->nsge = 0;
		return 0;
	}
	if (dw0 & NPUEMU_SQE_UDF) {
		if (!(w->op->flags & NPUEMU_OPF_REDUCE) || s->dw9 & NPUEMU_SQE_UDF_TYPE_MASK)
			return malformed(q, w, NPUEMU_ST_UNSUPPORTED_OPCODE,
					 "reduce goes with WRITE, WRITE_NOTIFY and READ only");
		status = check_reduce(q, w, s->dw9 >> NPUEMU_SQE_RED_OP_SHIFT & 0xf,
				      s->dw9 >> NPUEMU_SQE_RED_TYPE_SHIFT & 0xf);
		if (status)
			return status;
	}
	if (w->op == &npuemu_opcodes[NPUEMU_OP_WRITE_NOTIFY]) {
		const struct npuemu_sqe_notify *n = (const void *)&w->bb[6];

		if (n->addr & 7)
			return malformed(q, w, NPUEMU_ST_REM_UNSUPPORTED_REQ,
					 "notify address is not aligned to 8 bytes");
	}
	if (dw0 & NPUEMU_SQE_INLINE)
		return check_inline(q, w, s->dw1 >> NPUEMU_SQE_INLINE_LEN_SHIFT);
	if (w->nsge > w->op->max_sge)
		return malformed(q, w, NPUEMU_ST_LOC_LEN, "too many SGEs for this opcode");
	if (w->op->run == npuemu_run_nop) {
		w->len = 0;
		return 0;
	}
	if (w->op->fixed_bb)
		return check_atomic(q, w);
	return check_sges(q, w);
}

u32 npuemu_wqe_check(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	u64 w0 = w->bb[0];
	u32 dw0 = (u32)w0;

	w->op = lookup(q, w0);
	w->elem = 0;
	w->len = 0;
	if (unlikely(!w->op))
		return malformed(q, w, NPUEMU_ST_UNSUPPORTED_OPCODE, "no such opcode");
	if (q->type)
		return check_sdma(q, w);
	w->nsge = (u32)w->bb[1] >> NPUEMU_SQE_SGE_NUM_SHIFT;
	w->sge = (const void *)((const u8 *)w->bb + w->op->control);
	if (likely(w->nsge == 1 && w->op->control == 48 && !w->op->fixed_bb &&
		   !(dw0 & (NPUEMU_SQE_INLINE | NPUEMU_SQE_UDF |
			    NPUEMU_SQE_DW0_RESERVED)) &&
		   (dw0 & NPUEMU_SQE_ORDER_MASK) != NPUEMU_SQE_ORDER_MASK)) {
		w->len = w->sge[0].len;
		return 0;
	}
	return check_rest(q, w);
}
