// SPDX-License-Identifier: MIT
/*
 * The collectives: how each is called, how long its buffers are, and which part of whose
 * input has to arrive where.
 */
#include <string.h>

#include "coll.h"

/* ---- Lengths ---------------------------------------------------------------- */

/* Part @i where parts differ: some a quarter longer, some a quarter shorter. */
static uint64_t uneven(const struct npuemu_coll_row *k, uint32_t i)
{
	uint64_t quarter = k->count / 4;

	return i % 3 == 0 ? k->count + quarter : i % 3 == 1 ? k->count - quarter : k->count;
}

/* Where part @n begins, if part 0 has the length of uneven part @first. */
static uint64_t begins(const struct npuemu_coll_row *k, uint32_t first, uint32_t n, uint32_t gap)
{
	uint64_t at = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		at += uneven(k, first + i) + gap;
	return at;
}

static uint64_t one(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank)
{
	(void)ranks;
	(void)rank;
	return k->count;
}

static uint64_t all(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank)
{
	(void)rank;
	return k->count * ranks;
}

static uint64_t at_root(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank)
{
	return rank == k->root ? k->count * ranks : 0;
}

static uint64_t none(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank)
{
	(void)k;
	(void)ranks;
	(void)rank;
	return 0;
}

static uint64_t own_part(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank)
{
	(void)ranks;
	return uneven(k, rank);
}

static uint64_t all_parts(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank)
{
	(void)rank;
	return begins(k, 0, ranks, NPUEMU_COLL_GAP);
}

/* What ranks i and j have for each other: uneven part i + j. */
static uint64_t to_each(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank)
{
	return begins(k, rank, ranks, NPUEMU_COLL_GAP);
}

static uint64_t to_each_close(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank)
{
	return begins(k, rank, ranks, 0);
}

/* ---- What arrives ----------------------------------------------------------- */

static uint32_t part(struct npuemu_coll_part *p, uint64_t out, uint64_t in, uint64_t n,
		     uint32_t from)
{
	*p = (struct npuemu_coll_part){ .out = out, .in = in, .n = n, .from = from };
	return 1;
}

static uint32_t reduced(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
			struct npuemu_coll_part *p)
{
	(void)ranks;
	(void)rank;
	return part(p, 0, 0, k->count, NPUEMU_COLL_ALL);
}

static uint32_t reduced_at_root(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
				struct npuemu_coll_part *p)
{
	return rank == k->root ? reduced(k, ranks, rank, p) : 0;
}

static uint32_t reduced_slice(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
			      struct npuemu_coll_part *p)
{
	(void)ranks;
	return part(p, 0, rank * k->count, k->count, NPUEMU_COLL_ALL);
}

static uint32_t reduced_part(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
			     struct npuemu_coll_part *p)
{
	(void)ranks;
	return part(p, 0, begins(k, 0, rank, NPUEMU_COLL_GAP), uneven(k, rank), NPUEMU_COLL_ALL);
}

static uint32_t of_root(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
			struct npuemu_coll_part *p)
{
	(void)ranks;
	(void)rank;
	return part(p, 0, 0, k->count, k->root);
}

static uint32_t slice_of_root(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
			      struct npuemu_coll_part *p)
{
	(void)ranks;
	return part(p, 0, rank * k->count, k->count, k->root);
}

static uint32_t gathered(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
			 struct npuemu_coll_part *p)
{
	uint32_t i;

	(void)rank;
	for (i = 0; i < ranks; i++)
		part(&p[i], i * k->count, 0, k->count, i);
	return ranks;
}

static uint32_t gathered_parts(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
			       struct npuemu_coll_part *p)
{
	uint32_t i;

	(void)rank;
	for (i = 0; i < ranks; i++)
		part(&p[i], begins(k, 0, i, NPUEMU_COLL_GAP), 0, uneven(k, i), i);
	return ranks;
}

static uint32_t exchanged(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
			  struct npuemu_coll_part *p)
{
	uint32_t i;

	for (i = 0; i < ranks; i++)
		part(&p[i], i * k->count, rank * k->count, k->count, i);
	return ranks;
}

static uint32_t exchanged_with(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
			       struct npuemu_coll_part *p, uint32_t gap)
{
	uint32_t i;

	for (i = 0; i < ranks; i++)
		part(&p[i], begins(k, rank, i, gap), begins(k, i, rank, gap), uneven(k, i + rank),
		     i);
	return ranks;
}

static uint32_t exchanged_parts(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
				struct npuemu_coll_part *p)
{
	return exchanged_with(k, ranks, rank, p, NPUEMU_COLL_GAP);
}

static uint32_t exchanged_close(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
				struct npuemu_coll_part *p)
{
	return exchanged_with(k, ranks, rank, p, 0);
}

static uint32_t from_left(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
			  struct npuemu_coll_part *p)
{
	return part(p, 0, 0, k->count, (rank + ranks - 1) % ranks);
}

static uint32_t nothing(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
			struct npuemu_coll_part *p)
{
	(void)k;
	(void)ranks;
	(void)rank;
	(void)p;
	return 0;
}

/* ---- Calls -------------------------------------------------------------------- */

#define TYPE(r)	((HcclDataType)(r)->k->type)
#define OP(r)	((HcclReduceOp)(r)->k->op)

static int all_reduce(struct npuemu_coll_rank *r)
{
	return HcclAllReduce(r->in, r->out, r->k->count, TYPE(r), OP(r), r->comm, r->stream);
}

static int reduce(struct npuemu_coll_rank *r)
{
	return HcclReduce(r->in, r->out, r->k->count, TYPE(r), OP(r), r->k->root, r->comm,
			  r->stream);
}

static int reduce_scatter(struct npuemu_coll_rank *r)
{
	return HcclReduceScatter(r->in, r->out, r->k->count, TYPE(r), OP(r), r->comm, r->stream);
}

static int reduce_scatter_v(struct npuemu_coll_rank *r)
{
	return HcclReduceScatterV(r->in, r->send_counts, r->send_displs, r->out,
				  r->send_counts[r->rank], TYPE(r), OP(r), r->comm, r->stream);
}

static int broadcast(struct npuemu_coll_rank *r)
{
	return HcclBroadcast(r->out, r->k->count, TYPE(r), r->k->root, r->comm, r->stream);
}

static int scatter(struct npuemu_coll_rank *r)
{
	return HcclScatter(r->rank == r->k->root ? r->in : NULL, r->out, r->k->count, TYPE(r),
			   r->k->root, r->comm, r->stream);
}

static int all_gather(struct npuemu_coll_rank *r)
{
	return HcclAllGather(r->in, r->out, r->k->count, TYPE(r), r->comm, r->stream);
}

static int all_gather_v(struct npuemu_coll_rank *r)
{
	return HcclAllGatherV(r->in, r->recv_counts[r->rank], r->out, r->recv_counts,
			      r->recv_displs, TYPE(r), r->comm, r->stream);
}

static int all_to_all(struct npuemu_coll_rank *r)
{
	return HcclAlltoAll(r->in, r->k->count, TYPE(r), r->out, r->k->count, TYPE(r), r->comm,
			    r->stream);
}

static int all_to_all_v(struct npuemu_coll_rank *r)
{
	return HcclAlltoAllV(r->in, r->send_counts, r->send_displs, TYPE(r), r->out,
			     r->recv_counts, r->recv_displs, TYPE(r), r->comm, r->stream);
}

static int all_to_all_vc(struct npuemu_coll_rank *r)
{
	return HcclAlltoAllVC(r->in, r->matrix, TYPE(r), r->out, TYPE(r), r->comm, r->stream);
}

static int barrier(struct npuemu_coll_rank *r)
{
	return HcclBarrier(r->comm, r->stream);
}

static int send_right(struct npuemu_coll_rank *r)
{
	return HcclSend(r->in, r->k->count, TYPE(r), (r->rank + 1) % r->o->ranks, r->comm,
			r->stream);
}

static int recv_left(struct npuemu_coll_rank *r)
{
	return HcclRecv(r->out, r->k->count, TYPE(r), (r->rank + r->o->ranks - 1) % r->o->ranks,
			r->comm, r->stream);
}

/* A send waits for its receive: not all may begin with one. */
static int send_recv(struct npuemu_coll_rank *r)
{
	int ret = r->rank % 2 ? recv_left(r) : send_right(r);

	if (ret)
		return ret;
	return r->rank % 2 ? send_right(r) : recv_left(r);
}

static int batch_send_recv(struct npuemu_coll_rank *r)
{
	uint32_t n = r->o->ranks;
	HcclSendRecvItem item[2] = {
		{ HCCL_SEND, r->in, r->k->count, TYPE(r), (r->rank + 1) % n },
		{ HCCL_RECV, r->out, r->k->count, TYPE(r), (r->rank + n - 1) % n },
	};

	return HcclBatchSendRecv(item, 2, r->comm, r->stream);
}

/* ---- The table ------------------------------------------------------------------ */

static double bus_whole(uint32_t ranks)
{
	(void)ranks;
	return 1;
}

static double bus_others(uint32_t ranks)
{
	return (double)(ranks - 1) / ranks;
}

static double bus_twice(uint32_t ranks)
{
	return 2.0 * (ranks - 1) / ranks;
}

const struct npuemu_coll npuemu_colls[] = {
	{ .name = "allreduce", .what = "HcclAllReduce", .reduces = 1, .bus = bus_twice,
	  .call = all_reduce, .parts = reduced, .in = one, .out = one },
	{ .name = "reduce", .what = "HcclReduce", .reduces = 1, .rooted = 1, .bus = bus_whole,
	  .call = reduce, .parts = reduced_at_root, .in = one, .out = one },
	{ .name = "reducescatter", .what = "HcclReduceScatter", .reduces = 1, .shared_out = 1,
	  .bus = bus_others, .call = reduce_scatter, .parts = reduced_slice, .in = all,
	  .out = one },
	{ .name = "reducescatterv", .what = "HcclReduceScatterV, parts of different lengths",
	  .reduces = 1, .shared_out = 1, .uneven = 1, .bus = bus_others,
	  .call = reduce_scatter_v, .parts = reduced_part, .in = all_parts, .out = own_part },
	{ .name = "broadcast", .what = "HcclBroadcast", .rooted = 1, .in_place = 1,
	  .bus = bus_whole, .call = broadcast, .parts = of_root, .in = none, .out = one },
	{ .name = "scatter", .what = "HcclScatter", .rooted = 1, .shared_out = 1,
	  .bus = bus_others, .call = scatter, .parts = slice_of_root, .in = at_root, .out = one },
	{ .name = "allgather", .what = "HcclAllGather", .shared_out = 1, .bus = bus_others,
	  .call = all_gather, .parts = gathered, .in = one, .out = all },
	{ .name = "allgatherv", .what = "HcclAllGatherV, parts of different lengths",
	  .shared_out = 1, .uneven = 1, .bus = bus_others, .call = all_gather_v,
	  .parts = gathered_parts, .in = own_part, .out = all_parts },
	{ .name = "alltoall", .what = "HcclAlltoAll", .shared_out = 1, .bus = bus_others,
	  .call = all_to_all, .parts = exchanged, .in = all, .out = all },
	{ .name = "alltoallv", .what = "HcclAlltoAllV, parts of different lengths",
	  .shared_out = 1, .uneven = 1, .bus = bus_others, .call = all_to_all_v,
	  .parts = exchanged_parts, .in = to_each, .out = to_each },
	{ .name = "alltoallvc", .what = "HcclAlltoAllVC, the same with a matrix of counts",
	  .shared_out = 1, .uneven = 1, .bus = bus_others, .call = all_to_all_vc,
	  .parts = exchanged_close, .in = to_each_close, .out = to_each_close },
	{ .name = "barrier", .what = "HcclBarrier", .empty = 1, .bus = bus_whole, .call = barrier,
	  .parts = nothing, .in = none, .out = none },
	{ .name = "sendrecv", .what = "HcclSend to the next rank, HcclRecv from the one before",
	  .min_ranks = 2, .bus = bus_whole, .call = send_recv, .parts = from_left, .in = one,
	  .out = one },
	{ .name = "batchsendrecv", .what = "HcclBatchSendRecv, the same in one call",
	  .bus = bus_whole, .call = batch_send_recv, .parts = from_left, .in = one, .out = one },
};

const uint32_t npuemu_coll_count = sizeof(npuemu_colls) / sizeof(npuemu_colls[0]);

uint64_t npuemu_coll_size(const struct npuemu_coll_row *k, uint32_t ranks)
{
	if (k->coll->uneven)
		return begins(k, 0, ranks, 0) * k->elem;
	return k->count * (k->coll->shared_out ? ranks : 1) * k->elem;
}

static void exchange_arrays(struct npuemu_coll_rank *r)
{
	uint32_t i, j, n = r->o->ranks;

	for (i = 0; i < n; i++) {
		r->send_counts[i] = uneven(r->k, r->rank + i);
		r->send_displs[i] = begins(r->k, r->rank, i, NPUEMU_COLL_GAP);
		for (j = 0; j < n; j++)
			r->matrix[i * n + j] = uneven(r->k, i + j);
	}
	memcpy(r->recv_counts, r->send_counts, sizeof(r->recv_counts));
	memcpy(r->recv_displs, r->send_displs, sizeof(r->recv_displs));
}

void npuemu_coll_prepare(struct npuemu_coll_rank *r)
{
	uint32_t i;

	if (!r->k->coll->uneven)
		return;
	if (r->k->coll->call == all_to_all_v || r->k->coll->call == all_to_all_vc) {
		exchange_arrays(r);
		return;
	}
	for (i = 0; i < r->o->ranks; i++) {
		r->send_counts[i] = uneven(r->k, i);
		r->send_displs[i] = begins(r->k, 0, i, NPUEMU_COLL_GAP);
	}
	memcpy(r->recv_counts, r->send_counts, sizeof(r->recv_counts));
	memcpy(r->recv_displs, r->send_displs, sizeof(r->recv_displs));
}
