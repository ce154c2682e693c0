// SPDX-License-Identifier: MIT
/*
 * Suspended and resumed.  A rank that suspends takes no more operations.  If the
 * communicator has failed meanwhile (a stream was aborted, say), resuming makes it as
 * new: all ranks come together for that, with nothing of theirs on the way any more.
 */
#include <hccl/hccl_comm.h>
#include "comm.h"

HcclResult hccl_suspended(struct hccl_comm *c, const char *what)
{
	return hccl_fail(HCCL_E_SUSPENDING, "EI0003", "%s: rank %u of communicator %.64s is suspended: HcclCommResume comes first", what,
			 c->rank, c->group->name);
}

HcclResult HcclCommSuspend(HcclComm comm)
{
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, "HcclCommSuspend", &c);

	if (!ret)
		WRITE_ONCE(c->res.suspended, 1);
	return ret;
}

/* ---- As new ------------------------------------------------------------------------------ */

static void reset_ours(struct hccl_comm *c)
{
	struct hccl_member *m = &c->group->member[c->rank];
	u32 i;

	c->ticket = 0;
	c->ticket_done = 0;
	c->begun = 0;
	c->now = NULL;
	c->ahead = 0;
	memset(c->box, 0, 2 * (size_t)c->ranks * sizeof(*c->box));
	m->issued = 0;
	m->finished = 0;
	WRITE_ONCE(m->begun, 0);
	for (i = 0; i < c->ranks; i++)
		memset(&c->group->mail[c->rank][i], 0, sizeof(c->group->mail[0][0]));
	WRITE_ONCE(c->error, 0);
}

static void reset_group(struct hccl_comm *c)
{
	struct hccl_group *g = c->group;

	hccl_slots_clear(c);
	smp_store_release(&g->failed_ready, 0);
	smp_store_release(&g->failed, 0);
}

/* One after the other: nobody uses it, it is made anew, it may be used. */
static HcclResult renew(struct hccl_comm *c, const char *what)
{
	struct hccl_note all[HCCL_MAX_RANKS], mine = { .kind = HCCL_NOTE_RESUME };
	HcclResult ret;

	ret = hccl_exchange(c, what, &mine, 0, all);
	if (ret)
		return ret;
	reset_ours(c);
	/* an error has left it flushed, and its CQ with what came after */
	hccl_jetty_unmake(c);
	if (c->queued && hccl_jetty_make(c))
		return hccl_fail(HCCL_E_RUNTIME, "EI9999", "%s: rank %u has no UDMA queue any more: %s", what, c->rank, npuemu_errmsg());
	ret = hccl_exchange(c, what, &mine, 0, all);
	if (ret)
		return ret;
	if (!c->rank)
		reset_group(c);
	return hccl_exchange(c, what, &mine, 0, all);
}

static bool everybody(struct hccl_comm *c)
{
	u32 i;

	hccl_group_check(c);
	for (i = 0; i < c->ranks; i++)
		if (READ_ONCE(c->group->member[i].state) != HCCL_MEMBER ||
		    (!smp_load_acquire(&c->local->rank[i]) && !npuacl_export_alive(c->group->member[i].ccl.key)))
			return false;
	return true;
}

HcclResult HcclCommResume(HcclComm comm)
{
	static const char what[] = "HcclCommResume";
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, what, &c);

	if (ret)
		return ret;
	if (!READ_ONCE(c->res.suspended))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: the communicator is not suspended: HcclCommSuspend comes first", what);
	if (hccl_group_broken(c) && READ_ONCE(c->in_flight))
		return hccl_fail(HCCL_E_AGAIN, "EI0003", "%s: %u operations of it are not over, or recorded in models: synchronize or abort their streams before",
				 what, READ_ONCE(c->in_flight));
	if (hccl_group_broken(c) && !everybody(c))
		return hccl_fail(HCCL_E_REMOTE, "EI0006", "%s: a rank has died or destroyed the communicator: it cannot be resumed any more", what);
	hccl_state_tell(comm, HCCL_COMM_STATE_PHASE_RESUME_PRE);
	if (hccl_group_broken(c))
		ret = renew(c, what);
	if (ret)
		return ret;
	WRITE_ONCE(c->res.suspended, 0);
	hccl_state_tell(comm, HCCL_COMM_STATE_PHASE_RESUME_POST);
	return HCCL_SUCCESS;
}

/* ---- Networks -------------------------------------------------------------------------------- */

HcclResult HcclCommWorkingDevNicSet(HcclComm comm, uint32_t *ranks, bool *useBackup, uint32_t nRanks)
{
	static const char what[] = "HcclCommWorkingDevNicSet";
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, what, &c);
	u32 i, k;

	if (ret)
		return ret;
	if (!ranks || !useBackup)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, ranks ? "useBackup" : "ranks");
	if (!nRanks || nRanks > c->ranks)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %u ranks; the communicator has %u", what, nRanks, c->ranks);
	for (i = 0; i < nRanks; i++) {
		if (ranks[i] >= c->ranks)
			return hccl_fail(HCCL_E_PARA, "EI0003", "%s: ranks[%u] is %u; the communicator has ranks 0 to %u", what, i, ranks[i],
					 c->ranks - 1);
		for (k = 0; k < i; k++)
			if (ranks[k] == ranks[i])
				return hccl_fail(HCCL_E_PARA, "EI0003", "%s: ranks[%u] and ranks[%u] are both %u", what, k, i, ranks[i]);
	}
	/* so does the real library where there are no RDMA links */
	npuemu_log(NPUEMU_LOG_WARN, "%s: there is one way to each rank, and nothing to switch to; nothing was changed", what);
	return HCCL_SUCCESS;
}
