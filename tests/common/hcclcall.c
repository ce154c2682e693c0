// SPDX-License-Identifier: MIT
/*
 * One collective of a test, checked: what comes out, what is around it, and that nobody
 * touches what goes in.
 */
#include <stdlib.h>
#include <string.h>

#include "hccltest.h"

#define GUARD	96u
#define POISON	0xa5

/* Device memory with guards, and what the host knows to be in it. */
struct region {
	uint8_t *device, *image;
	size_t front, bytes, all;
};

/* Aligned as an element has to be, and no better. */
static void make(struct region *g, uint32_t size, uint64_t n)
{
	g->front = GUARD + size;
	g->bytes = n * size;
	g->all = g->front + g->bytes + GUARD;
	g->image = malloc(g->all);
	sys_true(g->image, "no memory");
	memset(g->image, POISON, g->all);
	g->device = NULL;
}

static void upload(struct region *g)
{
	g->device = ht_device(g->all, g->image);
}

static void check(struct region *g, const char *what)
{
	ht_compare(what, g->device, g->image, g->all);
	acl_ok(aclrtFree(g->device));
	free(g->image);
}

static HcclResult move(struct ht_rank *r, const struct ht_case *k, const struct ht_layout *l,
		       void *in, void *out)
{
	switch (k->coll) {
	case HT_ALLGATHER:
		return HcclAllGather(in, out, k->count, k->type, r->comm, r->stream);
	case HT_ALLGATHERV:
		return HcclAllGatherV(in, l->in, out, l->recv, l->rdispl, k->type, r->comm,
				      r->stream);
	case HT_BROADCAST:
		return HcclBroadcast(out, k->count, k->type, k->root, r->comm, r->stream);
	case HT_SCATTER:
		return HcclScatter(in, out, k->count, k->type, k->root, r->comm, r->stream);
	case HT_ALLTOALL:
		return HcclAlltoAll(in, k->count, k->type, out, k->count, k->type, r->comm,
				    r->stream);
	case HT_ALLTOALLV:
		return HcclAlltoAllV(in, l->send, l->sdispl, k->type, out, l->recv, l->rdispl,
				     k->type, r->comm, r->stream);
	default:
		return HcclAlltoAllVC(in, l->matrix, k->type, out, k->type, r->comm, r->stream);
	}
}

static HcclResult call(struct ht_rank *r, const struct ht_case *k, const struct ht_layout *l,
		       void *in, void *out)
{
	switch (k->coll) {
	case HT_ALLREDUCE:
		return HcclAllReduce(in, out, k->count, k->type, k->op, r->comm, r->stream);
	case HT_REDUCE:
		return HcclReduce(in, out, k->count, k->type, k->op, k->root, r->comm, r->stream);
	case HT_REDUCESCATTER:
		return HcclReduceScatter(in, out, k->count, k->type, k->op, r->comm, r->stream);
	case HT_REDUCESCATTERV:
		return HcclReduceScatterV(in, l->send, l->sdispl, out, l->out, k->type, k->op,
					  r->comm, r->stream);
	default:
		return move(r, k, l, in, out);
	}
}

/* In place: where the output lies in the input, or the input in the output. */
static uint64_t own_slice(struct ht_rank *r, const struct ht_case *k)
{
	if (k->coll == HT_ALLREDUCE || k->coll == HT_REDUCE)
		return 0;
	return r->rank * k->count * ht_size(k->type);
}

static void in_place(struct ht_rank *r, const struct ht_case *k, struct ht_layout *l, const char *what)
{
	bool larger_out = l->out > l->in;
	uint64_t at = own_slice(r, k);
	struct region g;
	uint8_t *in, *out;

	make(&g, ht_size(k->type), larger_out ? l->out : l->in);
	in = g.image + g.front + (larger_out ? at : 0);
	out = g.image + g.front + (larger_out ? 0 : at);
	ht_values(k, r->rank, 0, l->in, in);
	upload(&g);
	in = g.device + (in - g.image);
	out = g.device + (out - g.image);
	ht_is(__FILE__, __LINE__, what, call(r, k, l, in, out), HCCL_SUCCESS);
	ht_sync(r);
	ht_expected(k, r->rank, l, g.image + (out - g.device));
	check(&g, what);
}

static void out_of_place(struct ht_rank *r, const struct ht_case *k, struct ht_layout *l,
			 const char *what)
{
	struct region a, b;
	bool none = k->coll == HT_SCATTER && r->rank != k->root && k->seed & 1;
	struct ht_layout given = *l;

	make(&a, ht_size(k->type), l->in);
	make(&b, ht_size(k->type), l->out);
	ht_values(k, r->rank, 0, l->in, a.image + a.front);
	if (k->coll == HT_BROADCAST && r->rank == k->root)
		ht_values(k, r->rank, 0, l->out, b.image + b.front);
	upload(&a);
	upload(&b);
	ht_is(__FILE__, __LINE__, what, call(r, k, &given, none ? NULL : a.device + a.front,
					     b.device + b.front), HCCL_SUCCESS);
	/* the call has made a copy of its arrays */
	memset(&given, 0xff, sizeof(given));
	ht_sync(r);
	ht_expected(k, r->rank, l, b.image + b.front);
	check(&b, what);
	check(&a, "what went in");
}

void ht_collective(struct ht_rank *r, const struct ht_case *k)
{
	struct ht_layout l;
	char what[200];

	ht_case_text(k, what, sizeof(what));
	ht_layout(k, r->rank, &l);
	if (k->in_place)
		in_place(r, k, &l, what);
	else
		out_of_place(r, k, &l, what);
	ht_progress();
}
