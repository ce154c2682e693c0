// SPDX-License-Identifier: MIT
/*
 * The collectives: arguments checked, and what is wanted written down.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "comm.h"
#include "support.h"

/* A collective that is being put together; @op is NULL where there is nothing to do. */
struct call {
	const char *what;
	struct hccl_comm *c;
	struct hccl_op *op;
	aclrtStream stream;
	struct hccl_ends ends;
	HcclResult ret;
};

static HcclResult fits(const char *what, u64 count, u32 times, u32 size)
{
	if (count > UINT64_MAX / size / (times ? times : 1) / 2)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: a count of %" PRIu64, what, count);
	return HCCL_SUCCESS;
}

static void begin(struct call *k, const char *what, HcclComm comm, aclrtStream stream, enum hccl_coll coll, u64 count,
		  HcclDataType type)
{
	char why[200];

	memset(k, 0, sizeof(*k));
	k->what = what;
	k->stream = stream;
	k->ret = hccl_comm(comm, what, &k->c);
	if (!k->ret)
		k->ret = hccl_together(what, HCCL_TOGETHER_COLL);
	if (!k->ret && hccl_move_ok((u32)type, hccl_config_strict_soc(&k->c->cfg), why, sizeof(why)))
		k->ret = hccl_fail(hccl_type_bytes((u32)type) ? HCCL_E_NOT_SUPPORT : HCCL_E_PARA, "EI0003", "%s: %s", what, why);
	if (!k->ret)
		k->ret = fits(what, count, k->c->ranks, hccl_type_bytes((u32)type));
	if (k->ret)
		return;
	k->op = hccl_op_new(k->c, what);
	if (!k->op) {
		k->ret = HCCL_E_MEMORY;
		return;
	}
	k->op->want.coll = coll;
	k->op->want.count = count;
	k->op->want.type = (u32)type;
}

static void fail(struct call *k, HcclResult ret)
{
	if (!k->ret)
		k->ret = ret;
}

static void reduction(struct call *k, HcclReduceOp op)
{
	u32 type;
	char why[200];
	int ret;

	if (k->ret)
		return;
	type = k->op->want.type;
	ret = k->op->want.coll == HCCL_REDUCESCATTERV ?
		hccl_reduce_scatter_v_ok(type, (u32)op, hccl_config_strict_soc(&k->c->cfg), why, sizeof(why)) :
		hccl_reduce_ok(type, (u32)op, hccl_config_strict_soc(&k->c->cfg), why, sizeof(why));
	if (ret)
		fail(k, hccl_fail((HcclResult)ret, "EI0003", "%s: %s", k->what, why));
	k->op->want.op = (u32)op;
}

static void root(struct call *k, u32 rank)
{
	if (k->ret)
		return;
	if (rank >= k->c->ranks)
		fail(k, hccl_fail(HCCL_E_PARA, "EI0003", "%s: root %u; the communicator has ranks 0 to %u", k->what, rank,
				  k->c->ranks - 1));
	k->op->want.root = rank;
}

#define IN(k)	(&(k)->op->want.in)
#define OUT(k)	(&(k)->op->want.out)

/* A buffer of @count elements times @times. */
static void buffer(struct call *k, const char *role, const void *buf, u64 count, u32 times, struct hccl_ref *ref)
{
	u64 bytes;

	if (k->ret)
		return;
	bytes = count * times * hccl_type_bytes(k->op->want.type);
	if (!buf)
		fail(k, hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", k->what, role));
	else
		fail(k, hccl_ref_make(k->c, k->what, role, buf, bytes, ref));
	if (ref == IN(k)) {
		k->ends.in = (u64)(uintptr_t)buf;
		k->ends.in_bytes = bytes;
	} else {
		k->ends.out = (u64)(uintptr_t)buf;
		k->ends.out_bytes = bytes;
	}
}

static HcclResult end(struct call *k)
{
	if (!k->ret)
		k->ret = hccl_stage(k->op, &k->ends);
	if (k->ret) {
		hccl_op_free(k->op);
		return k->ret;
	}
	return hccl_issue(k->op, k->stream);
}

/* ---- One count for all ---------------------------------------------------------------------- */

HcclResult HcclAllReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
			 HcclComm comm, aclrtStream stream)
{
	struct call k;

	if (!count)
		return HCCL_SUCCESS;
	begin(&k, "HcclAllReduce", comm, stream, HCCL_ALLREDUCE, count, dataType);
	reduction(&k, op);
	if (!k.ret) {
		buffer(&k, "sendBuf", sendBuf, count, 1, IN(&k));
		buffer(&k, "recvBuf", recvBuf, count, 1, OUT(&k));
	}
	return end(&k);
}

HcclResult HcclReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op, uint32_t rank,
		      HcclComm comm, aclrtStream stream)
{
	struct call k;

	if (!count)
		return HCCL_SUCCESS;
	begin(&k, "HcclReduce", comm, stream, HCCL_REDUCE_TO, count, dataType);
	reduction(&k, op);
	root(&k, rank);
	if (!k.ret) {
		buffer(&k, "sendBuf", sendBuf, count, 1, IN(&k));
		buffer(&k, "recvBuf", recvBuf, k.c->rank == rank ? count : 0, 1, OUT(&k));
	}
	return end(&k);
}

HcclResult HcclReduceScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType, HcclReduceOp op,
			     HcclComm comm, aclrtStream stream)
{
	struct call k;

	if (!recvCount)
		return HCCL_SUCCESS;
	begin(&k, "HcclReduceScatter", comm, stream, HCCL_REDUCESCATTER, recvCount, dataType);
	reduction(&k, op);
	if (!k.ret) {
		buffer(&k, "sendBuf", sendBuf, recvCount, k.c->ranks, IN(&k));
		buffer(&k, "recvBuf", recvBuf, recvCount, 1, OUT(&k));
	}
	return end(&k);
}

HcclResult HcclAllGather(void *sendBuf, void *recvBuf, uint64_t sendCount, HcclDataType dataType, HcclComm comm,
			 aclrtStream stream)
{
	struct call k;

	if (!sendCount)
		return HCCL_SUCCESS;
	begin(&k, "HcclAllGather", comm, stream, HCCL_ALLGATHER, sendCount, dataType);
	if (!k.ret) {
		buffer(&k, "sendBuf", sendBuf, sendCount, 1, IN(&k));
		buffer(&k, "recvBuf", recvBuf, sendCount, k.c->ranks, OUT(&k));
	}
	return end(&k);
}

HcclResult HcclBroadcast(void *buf, uint64_t count, HcclDataType dataType, uint32_t rank, HcclComm comm, aclrtStream stream)
{
	struct call k;

	if (!count)
		return HCCL_SUCCESS;
	begin(&k, "HcclBroadcast", comm, stream, HCCL_BROADCAST, count, dataType);
	root(&k, rank);
	if (!k.ret)
		buffer(&k, "buf", buf, count, 1, OUT(&k));
	return end(&k);
}

HcclResult HcclScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType, uint32_t rank, HcclComm comm,
		       aclrtStream stream)
{
	struct call k;

	if (!recvCount)
		return HCCL_SUCCESS;
	begin(&k, "HcclScatter", comm, stream, HCCL_SCATTER, recvCount, dataType);
	root(&k, rank);
	/* of the others only what they receive matters */
	if (!k.ret && k.c->rank == rank)
		buffer(&k, "sendBuf", sendBuf, recvCount, k.c->ranks, IN(&k));
	if (!k.ret)
		buffer(&k, "recvBuf", recvBuf, recvCount, 1, OUT(&k));
	return end(&k);
}

HcclResult HcclAlltoAll(const void *sendBuf, uint64_t sendCount, HcclDataType sendType, const void *recvBuf,
			uint64_t recvCount, HcclDataType recvType, HcclComm comm, aclrtStream stream)
{
	struct call k;

	if (!sendCount && !recvCount)
		return HCCL_SUCCESS;
	begin(&k, "HcclAlltoAll", comm, stream, HCCL_ALLTOALL, sendCount, sendType);
	if (!k.ret && (sendCount != recvCount || sendType != recvType))
		fail(&k, hccl_fail(HCCL_E_PARA, "EI0003", "HcclAlltoAll: sends %" PRIu64 " of %s to each rank, but expects %" PRIu64 " of %s", sendCount,
				   hccl_type_name((u32)sendType), recvCount, hccl_type_name((u32)recvType)));
	if (!k.ret && sendBuf == recvBuf)
		fail(&k, hccl_fail(HCCL_E_PARA, "EI0003", "HcclAlltoAll: sendBuf and recvBuf are both %p", sendBuf));
	if (!k.ret) {
		buffer(&k, "sendBuf", sendBuf, sendCount, k.c->ranks, IN(&k));
		buffer(&k, "recvBuf", recvBuf, sendCount, k.c->ranks, OUT(&k));
	}
	return end(&k);
}

HcclResult HcclBarrier(HcclComm comm, aclrtStream stream)
{
	struct call k;

	begin(&k, "HcclBarrier", comm, stream, HCCL_BARRIER, 0, HCCL_DATA_TYPE_INT8);
	return end(&k);
}

/* ---- Counts and displacements ------------------------------------------------------------------ */

/* Row @row of the arrays: counts to send, their displs, counts to receive, theirs. */
static u64 *row(struct call *k, u32 n)
{
	return k->op->array + (size_t)n * k->c->ranks;
}

static void arrays(struct call *k)
{
	if (k->ret)
		return;
	k->op->array = calloc(4 * (size_t)k->c->ranks, sizeof(u64));
	if (!k->op->array)
		fail(k, hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", k->what));
}

static void fill(struct call *k, const char *role, u32 n, const void *from)
{
	if (k->ret)
		return;
	if (!from) {
		fail(k, hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", k->what, role));
		return;
	}
	memcpy(row(k, n), from, k->c->ranks * sizeof(u64));
}

/* How many elements a buffer needs so that all of the parts are in it. */
static u64 extent(struct call *k, u32 n)
{
	u32 size = hccl_type_bytes(k->op->want.type), i;
	u64 most = 0;

	for (i = 0; i < k->c->ranks && !k->ret; i++) {
		u64 count = row(k, n)[i], displ = row(k, n + 1)[i];

		if (count > UINT64_MAX / size / 4 || displ > UINT64_MAX / size / 4)
			fail(k, hccl_fail(HCCL_E_PARA, "EI0003", "%s: %" PRIu64 " elements from %" PRIu64 " on for rank %u", k->what, count,
					  displ, i));
		else if (count && count + displ > most)
			most = count + displ;
	}
	return most;
}

static u64 sum_rows(struct call *k, u32 from, u32 n)
{
	u64 sum = 1;
	u32 i;

	for (i = 0; i < n * k->c->ranks; i++) {
		sum ^= row(k, from)[i];
		sum = npuemu_random(&sum);
	}
	return sum;
}

/* A buffer that may be NULL if nothing of it is used. */
static void part(struct call *k, const char *role, const void *buf, u32 n, struct hccl_ref *ref)
{
	u64 need = k->ret ? 0 : extent(k, n);

	if (!k->ret && need)
		buffer(k, role, buf, need, 1, ref);
}

HcclResult HcclAlltoAllV(const void *sendBuf, const void *sendCounts, const void *sdispls, HcclDataType sendType,
			 const void *recvBuf, const void *recvCounts, const void *rdispls, HcclDataType recvType,
			 HcclComm comm, aclrtStream stream)
{
	struct call k;

	begin(&k, "HcclAlltoAllV", comm, stream, HCCL_ALLTOALLV, 0, sendType);
	if (!k.ret && sendType != recvType)
		fail(&k, hccl_fail(HCCL_E_PARA, "EI0003", "HcclAlltoAllV: sends %s, but expects %s", hccl_type_name((u32)sendType),
				   hccl_type_name((u32)recvType)));
	if (!k.ret && sendBuf && sendBuf == recvBuf)
		fail(&k, hccl_fail(HCCL_E_PARA, "EI0003", "HcclAlltoAllV: sendBuf and recvBuf are both %p", sendBuf));
	arrays(&k);
	fill(&k, "sendCounts", 0, sendCounts);
	fill(&k, "sdispls", 1, sdispls);
	fill(&k, "recvCounts", 2, recvCounts);
	fill(&k, "rdispls", 3, rdispls);
	part(&k, "sendBuf", sendBuf, 0, k.op ? IN(&k) : NULL);
	part(&k, "recvBuf", recvBuf, 2, k.op ? OUT(&k) : NULL);
	if (!k.ret)
		k.op->want.sum = 1;
	return end(&k);
}

HcclResult HcclAlltoAllVC(const void *sendBuf, const void *sendCountMatrix, HcclDataType sendType, const void *recvBuf,
			  HcclDataType recvType, HcclComm comm, aclrtStream stream)
{
	const u64 *matrix = sendCountMatrix;
	struct call k;
	u32 n, me, i;

	begin(&k, "HcclAlltoAllVC", comm, stream, HCCL_ALLTOALLV, 0, sendType);
	if (!k.ret && sendType != recvType)
		fail(&k, hccl_fail(HCCL_E_PARA, "EI0003", "HcclAlltoAllVC: sends %s, but expects %s", hccl_type_name((u32)sendType),
				   hccl_type_name((u32)recvType)));
	if (!k.ret && !matrix)
		fail(&k, hccl_fail(HCCL_E_PTR, "EI0003", "HcclAlltoAllVC: sendCountMatrix is NULL"));
	if (!k.ret && sendBuf && sendBuf == recvBuf)
		fail(&k, hccl_fail(HCCL_E_PARA, "EI0003", "HcclAlltoAllVC: sendBuf and recvBuf are both %p", sendBuf));
	arrays(&k);
	if (!k.ret) {
		n = k.c->ranks;
		me = k.c->rank;
		for (i = 0; i < n; i++) {
			row(&k, 0)[i] = matrix[me * n + i];
			row(&k, 2)[i] = matrix[i * n + me];
			if (i) {	/* one after the other */
				row(&k, 1)[i] = row(&k, 1)[i - 1] + row(&k, 0)[i - 1];
				row(&k, 3)[i] = row(&k, 3)[i - 1] + row(&k, 2)[i - 1];
			}
		}
		k.op->want.sum = 1;
	}
	part(&k, "sendBuf", sendBuf, 0, k.op ? IN(&k) : NULL);
	part(&k, "recvBuf", recvBuf, 2, k.op ? OUT(&k) : NULL);
	return end(&k);
}

/* Every rank sends all the same, and says itself where it wants what it gets. */
HcclResult HcclAllGatherV(void *sendBuf, uint64_t sendCount, void *recvBuf, const void *recvCounts, const void *recvDispls,
			  HcclDataType dataType, HcclComm comm, aclrtStream stream)
{
	struct call k;
	u32 i;

	begin(&k, "HcclAllGatherV", comm, stream, HCCL_ALLTOALLV, 0, dataType);
	if (!k.ret && sendBuf && sendBuf == recvBuf)
		fail(&k, hccl_fail(HCCL_E_PARA, "EI0003", "HcclAllGatherV: sendBuf and recvBuf are both %p", sendBuf));
	arrays(&k);
	fill(&k, "recvCounts", 2, recvCounts);
	fill(&k, "recvDispls", 3, recvDispls);
	if (!k.ret && row(&k, 2)[k.c->rank] != sendCount)
		fail(&k, hccl_fail(HCCL_E_PARA, "EI0003", "HcclAllGatherV: sendCount is %" PRIu64 ", but recvCounts[%u], this rank's, %" PRIu64, sendCount,
				   k.c->rank, row(&k, 2)[k.c->rank]));
	for (i = 0; !k.ret && i < k.c->ranks; i++)
		row(&k, 0)[i] = sendCount;
	part(&k, "sendBuf", sendBuf, 0, k.op ? IN(&k) : NULL);
	part(&k, "recvBuf", recvBuf, 2, k.op ? OUT(&k) : NULL);
	if (!k.ret)
		k.op->want.sum = sum_rows(&k, 2, 1);
	return end(&k);
}

HcclResult HcclReduceScatterV(void *sendBuf, const void *sendCounts, const void *sendDispls, void *recvBuf,
			      uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm, aclrtStream stream)
{
	struct call k;

	begin(&k, "HcclReduceScatterV", comm, stream, HCCL_REDUCESCATTERV, 0, dataType);
	reduction(&k, op);
	if (!k.ret && sendBuf && sendBuf == recvBuf)
		fail(&k, hccl_fail(HCCL_E_PARA, "EI0003", "HcclReduceScatterV: sendBuf and recvBuf are both %p", sendBuf));
	arrays(&k);
	fill(&k, "sendCounts", 0, sendCounts);
	fill(&k, "sendDispls", 1, sendDispls);
	if (!k.ret && row(&k, 0)[k.c->rank] != recvCount)
		fail(&k, hccl_fail(HCCL_E_PARA, "EI0003", "HcclReduceScatterV: recvCount is %" PRIu64 ", but sendCounts[%u], this rank's, %" PRIu64, recvCount,
				   k.c->rank, row(&k, 0)[k.c->rank]));
	part(&k, "sendBuf", sendBuf, 0, k.op ? IN(&k) : NULL);
	if (!k.ret && recvCount)
		buffer(&k, "recvBuf", recvBuf, recvCount, 1, OUT(&k));
	if (!k.ret)
		k.op->want.sum = sum_rows(&k, 0, 2);
	return end(&k);
}

/* ---- Between two ------------------------------------------------------------------------------------ */

HcclResult HcclSend(void *sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm,
		    aclrtStream stream)
{
	HcclSendRecvItem item = {
		.sendRecvType = HCCL_SEND, .buf = sendBuf, .count = count, .dataType = dataType, .remoteRank = destRank,
	};
	struct hccl_comm *c;
	HcclResult ret;

	if (!count)
		return HCCL_SUCCESS;
	ret = hccl_comm(comm, "HcclSend", &c);
	return ret ? ret : hccl_p2p(c, "HcclSend", &item, 1, false, stream);
}

HcclResult HcclRecv(void *recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm,
		    aclrtStream stream)
{
	HcclSendRecvItem item = {
		.sendRecvType = HCCL_RECV, .buf = recvBuf, .count = count, .dataType = dataType, .remoteRank = srcRank,
	};
	struct hccl_comm *c;
	HcclResult ret;

	if (!count)
		return HCCL_SUCCESS;
	ret = hccl_comm(comm, "HcclRecv", &c);
	return ret ? ret : hccl_p2p(c, "HcclRecv", &item, 1, false, stream);
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem *sendRecvInfo, uint32_t itemNum, HcclComm comm, aclrtStream stream)
{
	static const char what[] = "HcclBatchSendRecv";
	struct hccl_comm *c;
	HcclResult ret;
	u32 i;

	if (!itemNum)
		return HCCL_SUCCESS;
	ret = hccl_comm(comm, what, &c);
	/* as of the real library: a group makes a batch itself */
	if (!ret)
		ret = hccl_together_not(what);
	if (ret)
		return ret;
	if (!sendRecvInfo)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: sendRecvInfo is NULL", what);
	if (itemNum > HCCL_ENTRIES)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %u entries; one call takes %u", what, itemNum, HCCL_ENTRIES);
	for (i = 0; i < itemNum; i++)
		if (sendRecvInfo[i].sendRecvType != HCCL_SEND && sendRecvInfo[i].sendRecvType != HCCL_RECV)
			return hccl_fail(HCCL_E_PARA, "EI0003", "%s: item %u has type %d; HCCL_SEND or HCCL_RECV", what, i,
					 (int)sendRecvInfo[i].sendRecvType);
	return hccl_p2p(c, what, sendRecvInfo, itemNum, true, stream);
}
