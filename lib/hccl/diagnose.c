// SPDX-License-Identifier: MIT
/*
 * Who waits for whom, and who wants something else than the others.
 */
#include <inttypes.h>
#include <stdio.h>
#include "comm.h"
#include "support.h"

static bool reduces(u32 coll)
{
	return coll == HCCL_ALLREDUCE || coll == HCCL_REDUCE_TO || coll == HCCL_REDUCESCATTER || coll == HCCL_REDUCESCATTERV;
}

static bool rooted(u32 coll)
{
	return coll == HCCL_REDUCE_TO || coll == HCCL_BROADCAST || coll == HCCL_SCATTER;
}

void hccl_want_text(const struct hccl_want *w, char *buf, size_t size)
{
	size_t n = 0;

	if (w->coll >= HCCL_COLLS || (!w->seq && !w->count && !w->sum && w->coll != HCCL_BARRIER)) {
		snprintf(buf, size, "nothing");
		return;
	}
	if (w->seq)	/* or it has not begun */
		n = (size_t)snprintf(buf, size, "op %" PRIu64 " ", w->seq);
	if (n < size)
		n += (size_t)snprintf(buf + n, size - n, "%s(", hccl_coll_name(w->coll));
	if (w->coll == HCCL_BARRIER) {
		snprintf(buf + (n < size ? n : size), n < size ? size - n : 0, ")");
		return;
	}
	if (n < size)
		n += (size_t)snprintf(buf + n, size - n, "%s, ", hccl_type_name(w->type));
	if (n < size && (w->count || !w->sum))
		n += (size_t)snprintf(buf + n, size - n, "%" PRIu64, w->count);
	else if (n < size)
		n += (size_t)snprintf(buf + n, size - n, "counts");
	if (n < size && reduces(w->coll))
		n += (size_t)snprintf(buf + n, size - n, ", %s", hccl_op_name(w->op));
	if (n < size && rooted(w->coll))
		n += (size_t)snprintf(buf + n, size - n, ", root %u", w->root);
	if (n < size)
		snprintf(buf + n, size - n, ")");
}

static const char *differs(const struct hccl_want *a, const struct hccl_want *b)
{
	if (a->coll != b->coll)
		return "operation";
	if (a->count != b->count)
		return "count";
	if (a->type != b->type)
		return "data type";
	if (a->op != b->op)
		return "reduction";
	if (a->root != b->root)
		return "root";
	if (a->sum != b->sum)
		return "counts and displacements";
	return NULL;
}

/* The one that most ranks agree with is taken to be right. */
static u32 usual(const struct hccl_slot *slot, u32 ranks)
{
	u32 i, k, n, best = 0, most = 0;

	for (i = 0; i < ranks && most <= ranks / 2; i++) {
		for (k = 0, n = 0; k < ranks; k++)
			n += !differs(&slot->want[i], &slot->want[k]);
		if (n > most) {
			most = n;
			best = i;
		}
	}
	return best;
}

/* What a rank sends another has to be what that one expects. */
static bool pairs_agree(struct hccl_comm *c, struct hccl_slot *slot)
{
	u32 i, k;

	for (i = 0; i < c->ranks; i++)
		for (k = 0; k < c->ranks; k++) {
			if (slot->array[i][0][k] == slot->array[k][2][i])
				continue;
			hccl_group_fail(c, HCCL_E_PARA, "EI0005",
					"op %" PRIu64 " alltoallv on communicator %.64s: rank %u sends %" PRIu64 " elements to rank %u, which expects %" PRIu64 " of it",
					slot->want[i].seq, c->group->name, i, slot->array[i][0][k], k, slot->array[k][2][i]);
			return false;
		}
	return true;
}

bool hccl_wants_agree(struct hccl_comm *c, struct hccl_slot *slot)
{
	char ours[96], theirs[96];
	const char *what;
	u32 i, k;

	for (i = 1; i < c->ranks; i++)
		if (slot->want[i].seq != slot->want[0].seq || differs(&slot->want[0], &slot->want[i]))
			break;
	if (i == c->ranks)
		return slot->want[0].coll != HCCL_ALLTOALLV || pairs_agree(c, slot);
	k = usual(slot, c->ranks);
	for (i = 0; i < c->ranks; i++) {
		what = differs(&slot->want[k], &slot->want[i]);
		if (!what)
			continue;
		hccl_want_text(&slot->want[k], theirs, sizeof(theirs));
		hccl_want_text(&slot->want[i], ours, sizeof(ours));
		hccl_group_fail(c, HCCL_E_PARA, "EI0005", "ranks disagree on communicator %.64s: rank %u issued %s, but rank %u %s: another %s",
				c->group->name, i, ours, k, theirs, what);
		return false;
	}
	hccl_group_fail(c, HCCL_E_INTERNAL, "EI9999", "ranks are at different operations of communicator %.64s", c->group->name);
	return false;
}

/* "rank 3 has not issued it; it is at op 16 broadcast(...)" */
static size_t rank_text(struct hccl_comm *c, u32 r, u64 seq, char *buf, size_t size)
{
	struct hccl_member *m = &c->group->member[r];
	u64 begun = READ_ONCE(m->begun), finished = READ_ONCE(m->finished), is_at = hccl_is_at(m);
	char text[96];

	if (begun >= seq)
		return (size_t)snprintf(buf, size, "; rank %u is at it", r);
	if (READ_ONCE(m->state) == HCCL_LEFT)
		return (size_t)snprintf(buf, size, "; rank %u has destroyed the communicator after op %" PRIu64, r, finished);
	if (!begun)
		return (size_t)snprintf(buf, size, "; rank %u has not issued any", r);
	hccl_want_text(hccl_want_of(c, r, is_at), text, sizeof(text));
	if (finished == begun)
		return (size_t)snprintf(buf, size, "; rank %u has not issued it: its last, %s, is over", r, text);
	return (size_t)snprintf(buf, size, "; rank %u has not issued it: it is at %s", r, text);
}

/*
 * Whom it waits for at rank @i's part; itself: nobody.  Who is at a lane comes @first: lanes
 * that nobody is at may wait for that one.
 */
static u32 waited_for(const struct hccl_comm *c, const struct hccl_op *op, const struct hccl_slot *slot, u32 i, bool first)
{
	u32 owner;

	if (op->phase == HCCL_ARRIVED)
		return READ_ONCE(c->group->member[i].begun) < op->seq ? i : c->rank;
	if (!op->plan || hccl_steps_done(&slot->lane[i], op->seq) >= op->plan->lane[i].n)
		return c->rank;
	owner = hccl_tagged_rank(READ_ONCE(slot->lane[i].owner), op->seq);
	if (first)
		return owner ? owner - 1 : c->rank;
	return owner ? c->rank : i;
}

void hccl_waits_text(struct hccl_comm *c, const struct hccl_op *op, char *buf, size_t size)
{
	struct hccl_slot *slot = &c->group->slot[op->seq % HCCL_SLOTS];
	bool named[HCCL_MAX_RANKS] = { false };
	char text[96];
	u32 i, r, told = 0;
	size_t n;

	hccl_want_text(&op->want, text, sizeof(text));
	if (op->phase == HCCL_BEGIN) {
		snprintf(buf, size, "rank %u of communicator %.64s: %s waits for an earlier operation of this rank", c->rank,
			 c->group->name, op->what);
		return;
	}
	n = (size_t)snprintf(buf, size, "rank %u waits in %s on communicator %.64s", c->rank, text, c->group->name);
	for (i = 0; i < 2 * c->ranks && n < size && told < 4; i++) {
		r = waited_for(c, op, slot, i < c->ranks ? i : i - c->ranks, i < c->ranks);
		if (r >= c->ranks || r == c->rank || named[r])
			continue;
		named[r] = true;
		n += rank_text(c, r, op->seq, buf + n, size - n);
		told++;
	}
	/* all have come to it */
	r = op->phase == HCCL_ARRIVED ? hccl_tagged_rank(READ_ONCE(slot->opener), op->seq) : 0;
	if (r && !told && n < size)
		snprintf(buf + n, size - n, "; rank %u has to start it", r - 1);
}
