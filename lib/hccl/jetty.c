// SPDX-License-Identifier: MIT
/*
 * The queue path: a rank's lane on a UDMA queue of its own, as READ and WRITE, with
 * reductions where the step is one, of segments that the other ranks registered.
 * Only the rank itself can do its lane then, and bytes go through the ring, the checks
 * of tokens and ranges, and the counters of the link, as they would on the wire.
 *
 * All ranks of a communicator use it, or none: NPUEMU_TRANSPORT=queue asks for it, and
 * the machine has to have UDMA for every rank.
 */
#include <inttypes.h>
#include "comm.h"

#define DEPTH	256u

int hccl_jetty_make(struct hccl_comm *c)
{
	struct npuemu_queue_attr attr = {
		.size = sizeof(attr), .device = c->dev->phys, .type = NPUEMU_QUEUE_UDMA, .depth = DEPTH,
	};
	int err = npuemu_queue_create(npuacl.board, &attr, &c->jetty);

	if (!err)
		c->jetty_last = npuemu_last_wqe(c->jetty);
	return err;
}

void hccl_jetty_unmake(struct hccl_comm *c)
{
	if (c->jetty)
		npuemu_queue_destroy(c->jetty);
	c->jetty = NULL;
}

HcclResult hccl_ref_segment(const char *what, const struct npuacl_window *w, struct hccl_ref *ref)
{
	struct npuemu_seg_info info;
	aclError err = npuacl_window_segment(what, w, &info);

	if (err)
		return hccl_fail_acl(err, what);
	memcpy(ref->eid, info.eid.w, sizeof(ref->eid));
	ref->token_id = info.token_id;
	ref->token_value = info.token_value;
	ref->remote = info.va + ref->off;
	return HCCL_SUCCESS;
}

/* Where a step of the lane goes: UDMA has the other numbers for types than SDMA's field. */
bool hccl_jetty_post(struct hccl_comm *c, bool write, void *local, const struct hccl_ref *ref, u64 off, u64 bytes, bool reduce,
		     u32 code)
{
	struct npuemu_target t = { .token_id = ref->token_id, .token_value = ref->token_value };
	u32 op = write ? NPUEMU_OP_WRITE : NPUEMU_OP_READ, dw9 = 0, flags = NPUEMU_STRONG | NPUEMU_SQE_CQE;

	memcpy(t.eid, ref->eid, sizeof(t.eid));
	if (reduce) {
		dw9 = npuemu_reduce_dw9((enum npuemu_reduce_op)(code >> 4), (enum npuemu_dtype)(code & 15));
		flags |= NPUEMU_SQE_UDF;
	}
	return bytes <= UINT32_MAX && !npuemu_post_rma(c->jetty, op, local, (u32)bytes, &t, ref->remote + off, dw9, flags);
}

/* All that was posted is over; false: the group has failed. */
bool hccl_jetty_flush(struct hccl_comm *c)
{
	struct npuemu_cq *cq = npuemu_queue_cq(c->jetty);
	struct npuemu_queue_stat stat = { .size = sizeof(stat) };
	u32 last = npuemu_last_wqe(c->jetty);
	struct npuemu_wc wc;
	int got;

	if (c->jetty_last == last)
		return true;
	c->jetty_last = last;
	npuemu_doorbell(c->jetty);
	for (;;) {
		got = npuemu_poll(cq, &wc, 1);
		if (!got)
			got = npuemu_wait(cq, npuemu_deadline_ms(20000));
		else if (got == 1 && wc.status == NPUEMU_ST_SUCCESS && wc.wqe == last)
			return true;
		if (got < 0 || (got == 1 && wc.status != NPUEMU_ST_SUCCESS))
			break;
	}
	if (npuemu_queue_query(c->jetty, &stat))
		stat.cause[0] = 0;
	hccl_group_check(c);	/* whose memory it was may have died: then that is said */
	hccl_group_fail(c, HCCL_E_REMOTE, "EI9999", "rank %u: WQE %u of its queue %u: %s; %s", c->rank, got == 1 ? wc.wqe : last, stat.id,
			got < 0 ? npuemu_errmsg() : npuemu_status_str(wc.status), stat.cause);
	return false;
}
