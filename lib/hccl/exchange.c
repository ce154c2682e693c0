// SPDX-License-Identifier: MIT
/*
 * All ranks come together, each in a thread of its program, and tell the others
 * something: what a window is made of, say.  Each has a place in the group for that.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include "comm.h"

#define LOOK_NS		100000000ll

static const char *const kinds[HCCL_NOTE_KINDS] = {
	[HCCL_NOTE_SYMWIN] = "a window is registered", [HCCL_NOTE_OPENED] = "what the others told is opened",
	[HCCL_NOTE_PREPARE] = "the communicator is prepared", [HCCL_NOTE_RESUME] = "the communicator is resumed",
};

static void tell(struct hccl_comm *c, const struct hccl_note *mine, u64 seq)
{
	struct hccl_note *n = &c->group->note[seq % 2][c->rank];

	n->kind = mine->kind;
	n->failed = mine->failed;
	n->size = mine->size;
	n->va = mine->va;
	n->key = mine->key;
	n->secret = mine->secret;
	n->off = mine->off;
	smp_store_release(&n->seq, seq);
}

/* The first that is not there; c->ranks: all are. */
static u32 missing(struct hccl_comm *c, u64 seq)
{
	u32 i;

	/* its place may be of the next time already: then it was there */
	for (i = 0; i < c->ranks; i++)
		if (smp_load_acquire(&c->group->note[seq % 2][i].seq) < seq)
			break;
	return i;
}

/* After an error that ends the communicator, resuming is what comes together. */
static HcclResult broken(struct hccl_comm *c, const char *what, const struct hccl_note *mine)
{
	char why[512], family[8];
	HcclResult ret;

	if (mine->kind == HCCL_NOTE_RESUME)
		return HCCL_SUCCESS;
	ret = hccl_group_failed(c, why, sizeof(why), family);
	return ret ? hccl_fail(ret, family, "%s: %s", what, why) : HCCL_SUCCESS;
}

static HcclResult wait_for_all(struct hccl_comm *c, const char *what, const struct hccl_note *mine, u64 seq, s64 limit)
{
	s64 begin = npuemu_now_ns(), look = begin + LOOK_NS, report = begin + npuacl_report_ns(), now;
	struct timespec nap = { .tv_nsec = 200000 };
	HcclResult ret;
	u32 who;

	while ((who = missing(c, seq)) < c->ranks) {
		ret = broken(c, what, mine);
		if (ret)
			return ret;
		now = npuemu_now_ns();
		if (READ_ONCE(c->group->member[who].state) == HCCL_LEFT)
			return hccl_fail(HCCL_E_REMOTE, "EI0006", "%s: rank %u has destroyed the communicator", what, who);
		if (limit && now - begin > limit) {
			hccl_group_fail(c, HCCL_E_TIMEOUT, "EI0006", "%s: rank %u did not come within %.1f s, rank %u waited for it", what, who,
					(double)(now - begin) / 1e9, c->rank);
			return hccl_fail(HCCL_E_TIMEOUT, "EI0006", "%s: rank %u did not come within %.1f s", what, who,
					 (double)(now - begin) / 1e9);
		}
		if (now >= look) {
			hccl_group_check(c);
			look = now + LOOK_NS;
		}
		if (hccl_report_due(now, &report))
			npuemu_log(NPUEMU_LOG_WARN, "%s: rank %u of communicator %.64s has waited %.0f s for rank %u, and maybe others%s", what, c->rank,
				   c->name, (double)(now - begin) / 1e9, who,
				   mine->failed ? ", to tell that its own part has failed" : "");
		if (now - begin < 2000000)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
	return HCCL_SUCCESS;
}

/* Everybody sees the same, and so comes to the same end. */
static HcclResult compare(struct hccl_comm *c, const char *what, const struct hccl_note *all)
{
	u32 i;

	for (i = 1; i < c->ranks; i++)
		if (all[i].kind != all[0].kind)
			return hccl_fail(HCCL_E_PARA, "EI0005", "%s: ranks disagree: on rank 0 %s, but on rank %u %s", what,
					 all[0].kind < HCCL_NOTE_KINDS ? kinds[all[0].kind] : "?", i,
					 all[i].kind < HCCL_NOTE_KINDS ? kinds[all[i].kind] : "?");
	for (i = 0; i < c->ranks; i++)
		if (all[i].failed && i != c->rank)
			return hccl_fail((HcclResult)all[i].failed, "EI0005", "%s: rank %u could not do its part (%s): see its message", what, i,
					 HcclGetErrorString((HcclResult)all[i].failed));
	for (i = 1; i < c->ranks; i++)
		if (all[i].size != all[0].size)
			return hccl_fail(HCCL_E_PARA, "EI0005", "%s: ranks disagree: %" PRIu64 " bytes on rank 0, but %" PRIu64 " on rank %u",
					 what, all[0].size, all[i].size, i);
	return HCCL_SUCCESS;
}

HcclResult hccl_exchange(struct hccl_comm *c, const char *what, const struct hccl_note *mine, s64 limit_ns,
			 struct hccl_note *all)
{
	const struct hccl_note *from;
	HcclResult ret;
	u64 seq;
	u32 i;

	pthread_mutex_lock(&c->res.meet_lock);
	seq = ++c->res.meets;
	tell(c, mine, seq);
	ret = wait_for_all(c, what, mine, seq, limit_ns ? limit_ns : c->cfg.connect_ns);
	for (i = 0; i < c->ranks && !ret; i++) {
		from = &c->group->note[seq % 2][i];
		/* nobody writes there again before we come the next time */
		all[i] = *from;
	}
	pthread_mutex_unlock(&c->res.meet_lock);
	return ret ? ret : compare(c, what, all);
}
