// SPDX-License-Identifier: MIT
/*
 * A collective is put on a stream.  It begins in the order of the calls, whichever
 * streams they named; one that a model recorded has its place when the model runs.
 */
#include <stdlib.h>
#include "comm.h"
#include "graph.h"

#define SPARE	128u	/* a rank keeps about so many, at most */

/*
 * Who issues takes, and whoever carries out gives back: often another thread, and malloc() is
 * slow at that.  Of two who take at the same time one goes without.
 */
static struct hccl_op *take_spare(struct hccl_comm *c)
{
	struct hccl_op *op;

	if (xchg(&c->taking, 1))
		return NULL;
	op = c->spare ? c->spare : xchg(&c->back, NULL);
	c->spare = op ? op->next : NULL;
	smp_store_release(&c->taking, 0);
	return op;
}

static void give_back(struct hccl_comm *c, struct hccl_op *op)
{
	struct hccl_op *head = READ_ONCE(c->back);

	if (READ_ONCE(c->in_flight) > SPARE) {
		free(op);
		return;
	}
	do {
		op->next = head;
	} while (!__atomic_compare_exchange_n(&c->back, &head, op, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static void free_list(struct hccl_op *op)
{
	struct hccl_op *next;

	for (; op; op = next) {
		next = op->next;
		free(op);
	}
}

void hccl_ops_drop(struct hccl_comm *c)
{
	free_list(c->spare);
	free_list(c->back);
}

struct hccl_op *hccl_op_new(struct hccl_comm *c, const char *what)
{
	struct hccl_op *op = take_spare(c);

	if (!op)
		op = aligned_alloc(_Alignof(struct hccl_op), sizeof(*op));
	if (!op) {
		hccl_fail_say(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
		return NULL;
	}
	memset(op, 0, sizeof(*op));
	op->work.ops = &hccl_collective;
	op->work.spins = c->spins;
	op->comm = c;
	op->what = what;
	return op;
}

void hccl_op_free(struct hccl_op *op)
{
	if (!op)
		return;
	hccl_ref_drop(op->comm, &op->want.in);
	hccl_ref_drop(op->comm, &op->want.out);
	hccl_stage_drop(op);
	free(op->array);
	give_back(op->comm, op);
}

HcclResult hccl_stream(struct hccl_comm *c, const char *what, aclrtStream stream, struct npuacl_stream **out)
{
	char text[sizeof(npuacl_self.message)];
	aclError err;

	if (!stream)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: stream is NULL: it takes one of aclrtCreateStream", what);
	err = npuacl_stream(stream, out);
	if (err) {
		memcpy(text, npuacl_self.message, sizeof(text));
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: stream: %s", what, text);
	}
	if ((*out)->dev != c->dev)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: the stream is of device %u, rank %u of the communicator is on device %u", what,
				 (*out)->dev->id, c->rank, c->dev->id);
	return HCCL_SUCCESS;
}

HcclResult hccl_broken(struct hccl_comm *c, const char *what)
{
	char why[sizeof(c->group->why)], family[8];
	HcclResult ret = hccl_group_failed(c, why, sizeof(why), family);

	if (unlikely(READ_ONCE(c->res.suspended)))
		return hccl_suspended(c, what);
	if (!ret)
		return HCCL_SUCCESS;
	return hccl_fail(ret, family, "%s: the communicator has failed and can only be destroyed: %s", what, why);
}

HcclResult hccl_issue(struct hccl_op *op, aclrtStream stream)
{
	struct npuacl_task t = { .kind = NPUACL_WORK, .work = &op->work };
	struct hccl_comm *c = op->comm;
	const char *what = op->what;
	struct npuacl_stream *s;
	HcclResult ret;
	aclError err;
	bool once;

	ret = hccl_stream(c, what, stream, &s);
	if (!ret)
		ret = hccl_broken(c, what);
	if (ret) {
		hccl_op_free(op);
		return ret;
	}
	once = !npuacl_records(s);
	op->once = once;
	/* the ticket and the place in the stream, in one order */
	pthread_mutex_lock(&c->lock);
	npuemu_fetch_add(&c->in_flight, 1);
	if (once)
		op->ticket = c->ticket + 1;
	err = hccl_stage_fill(op, s);
	/* once it is submitted it may be over, and gone */
	if (!err) {
		err = npuacl_submit(s, &t, NULL);
		if (err)	/* the copy is on the stream: its target stays */
			op->stage = NULL;
	}
	if (!err && once)
		c->ticket++;
	pthread_mutex_unlock(&c->lock);
	if (!err)
		return HCCL_SUCCESS;
	hccl_op_free(op);
	npuemu_fetch_add(&c->in_flight, -1u);	/* the last use of the communicator, as in release() */
	return hccl_fail_acl(err, what);
}
