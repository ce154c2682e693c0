// SPDX-License-Identifier: MIT
/*
 * Buffers to send from and to receive into that overlap.  In the usual places one may be
 * a part of the other, and algorithms see to that.  Anywhere else ranks would write what
 * others have yet to read; on hardware all is copied to buffers of the communicator
 * first, and it works.  So here, too, what is sent is copied first, just then.
 */
#include "comm.h"
#include "graph.h"
#include "support.h"

static bool apart(const struct hccl_ends *e)
{
	return e->in + e->in_bytes <= e->out || e->out + e->out_bytes <= e->in;
}

/* Row @row of the arrays of a V form, for this rank, in bytes. */
static u64 own(const struct hccl_op *op, u32 row)
{
	const struct hccl_comm *c = op->comm;

	return op->array[(size_t)row * c->ranks + c->rank] * hccl_type_bytes(op->want.type);
}

/* Is one in the other where it is expected? */
static bool in_place(const struct hccl_op *op, const struct hccl_ends *e)
{
	u32 rank = op->comm->rank;

	switch (op->want.coll) {
	case HCCL_ALLREDUCE:
	case HCCL_REDUCE_TO:
		return e->in == e->out;
	case HCCL_REDUCESCATTER:
	case HCCL_SCATTER:
		return e->out == e->in + rank * e->out_bytes;
	case HCCL_REDUCESCATTERV:
		return e->out == e->in + own(op, 1) && e->out_bytes == own(op, 0);
	case HCCL_ALLGATHER:
		return e->in == e->out + rank * e->in_bytes;
	case HCCL_ALLTOALLV:	/* as AllGatherV has it: all that is sent is what this rank receives of itself */
		return e->in == e->out + own(op, 3) && e->in_bytes == own(op, 2);
	default:
		return false;
	}
}

HcclResult hccl_stage(struct hccl_op *op, const struct hccl_ends *e)
{
	struct hccl_comm *c = op->comm;
	struct hccl_ref *ref = &op->want.in;
	struct npuacl_window w = { .buf = NULL };
	aclError ret;

	if (!e->in_bytes || !e->out_bytes || apart(e) || in_place(op, e))
		return HCCL_SUCCESS;
	if (npuemu_buf_alloc(npuacl.board, c->dev->phys, e->in_bytes, 0, &op->stage)) {
		op->stage = NULL;
		return hccl_fail(HCCL_E_OOM, "EI0011", "%s: the buffers to send from and to receive into overlap, and there is no memory for a copy of the first: %s",
				 op->what, npuemu_errmsg());
	}
	op->staged = e->in;
	op->stage_bytes = e->in_bytes;
	hccl_ref_drop(c, ref);
	memset(ref, 0, sizeof(*ref));
	ref->va = (u64)(uintptr_t)npuemu_buf_ptr(op->stage);
	if (c->all_here && !c->queued)
		return HCCL_SUCCESS;
	ret = npuacl_window_offer(op->what, op->stage, e->in_bytes, c->dev->phys, &w);
	if (ret)
		return hccl_fail_acl(ret, op->what);
	ref->key = w.key.id;
	ref->secret = w.key.secret;
	return c->queued ? hccl_ref_segment(op->what, &w, ref) : HCCL_SUCCESS;
}

aclError hccl_stage_fill(struct hccl_op *op, struct npuacl_stream *s)
{
	const u8 *src = (const u8 *)(uintptr_t)op->staged;
	u8 *dst = (u8 *)(uintptr_t)op->want.in.va;
	struct npuacl_task t = { .kind = NPUACL_SDMA };
	struct npuacl_place p;
	u64 done, n;
	aclError ret;

	for (done = 0; op->stage && done < op->stage_bytes; done += n) {
		/* a descriptor has its bytes in one mapping */
		npuacl_place_of(op->staged + done, &p);
		n = p.end - (op->staged + done);
		n = n < op->stage_bytes - done ? n : op->stage_bytes - done;
		npuacl_desc(&t.sdma, NPUEMU_SDMA_COPY);
		t.sdma.dst = (u64)(uintptr_t)(dst + done);
		t.sdma.src = (u64)(uintptr_t)(src + done);
		t.sdma.len = n;
		ret = npuacl_submit(s, &t, NULL);
		if (ret) {
			if (done)	/* one is on the stream: its target stays */
				op->stage = NULL;
			return ret;
		}
	}
	return ACL_SUCCESS;
}

void hccl_stage_drop(struct hccl_op *op)
{
	if (!op->stage)
		return;
	npuacl_window_forget(op->stage);
	if (npuemu_buf_free(op->stage))
		npuemu_log(NPUEMU_LOG_WARN, "hccl: a copy of what rank %u sent was not given back: %s", op->comm->rank, npuemu_errmsg());
	op->stage = NULL;
}
