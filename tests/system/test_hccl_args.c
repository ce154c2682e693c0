// SPDX-License-Identifier: MIT
/*
 * Arguments that collectives and transfers refuse, each with its code and words that say
 * what is wrong; none of them leaves anything behind on the communicator.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hccltest.h"

#define COUNT	64u
#define I32	HCCL_DATA_TYPE_INT32
#define SUM	HCCL_REDUCE_SUM

/* Of rank 0 of 2, which has device 0; nobody needs rank 1 for what is refused. */
static HcclComm comm, comms[2];
static aclrtStream s, far;
static void *a, *b;
static uint64_t four[2] = { 4, 4 }, displs[2] = { 0, 4 }, matrix[4] = { 4, 4, 4, 4 };

/* What all calls have in common is replaced by what is wrong; each row is one function. */
struct with {
	HcclComm comm;
	aclrtStream stream;
	void *in, *out;
	uint64_t count;
	HcclDataType type;
	HcclReduceOp op;
	uint32_t root;
};

typedef HcclResult (*call_fn)(const struct with *w);

static HcclResult all_reduce(const struct with *w)
{
	return HcclAllReduce(w->in, w->out, w->count, w->type, w->op, w->comm, w->stream);
}

static HcclResult reduce(const struct with *w)
{
	return HcclReduce(w->in, w->out, w->count, w->type, w->op, w->root, w->comm, w->stream);
}

static HcclResult reduce_scatter(const struct with *w)
{
	return HcclReduceScatter(w->in, w->out, w->count, w->type, w->op, w->comm, w->stream);
}

static HcclResult reduce_scatter_v(const struct with *w)
{
	uint64_t counts[2] = { w->count, w->count };

	return HcclReduceScatterV(w->in, counts, displs, w->out, w->count, w->type, w->op, w->comm,
				  w->stream);
}

static HcclResult broadcast(const struct with *w)
{
	return HcclBroadcast(w->out, w->count, w->type, w->root, w->comm, w->stream);
}

static HcclResult scatter(const struct with *w)
{
	return HcclScatter(w->in, w->out, w->count, w->type, w->root, w->comm, w->stream);
}

static HcclResult all_gather(const struct with *w)
{
	return HcclAllGather(w->in, w->out, w->count, w->type, w->comm, w->stream);
}

static HcclResult all_gather_v(const struct with *w)
{
	uint64_t counts[2] = { w->count, w->count };

	return HcclAllGatherV(w->in, w->count, w->out, counts, displs, w->type, w->comm, w->stream);
}

static HcclResult all_to_all(const struct with *w)
{
	return HcclAlltoAll(w->in, w->count, w->type, w->out, w->count, w->type, w->comm, w->stream);
}

static HcclResult all_to_all_v(const struct with *w)
{
	uint64_t counts[2] = { w->count, w->count };

	return HcclAlltoAllV(w->in, counts, displs, w->type, w->out, counts, displs, w->type,
			     w->comm, w->stream);
}

static HcclResult all_to_all_vc(const struct with *w)
{
	uint64_t counts[4] = { w->count, w->count, w->count, w->count };

	return HcclAlltoAllVC(w->in, counts, w->type, w->out, w->type, w->comm, w->stream);
}

/* Its peer is 1 - root, which is another rank if the root is the first. */
static HcclResult send_one(const struct with *w)
{
	return HcclSend(w->in, w->count, w->type, 1 - w->root, w->comm, w->stream);
}

static HcclResult recv_one(const struct with *w)
{
	return HcclRecv(w->out, w->count, w->type, 1 - w->root, w->comm, w->stream);
}

static HcclResult batch(const struct with *w)
{
	HcclSendRecvItem item[2] = {
		{ HCCL_SEND, w->in, w->count, w->type, 1 - w->root },
		{ HCCL_RECV, w->out, w->count, w->type, 1 - w->root },
	};

	return HcclBatchSendRecv(item, 2, w->comm, w->stream);
}

#define REDUCES	1u
#define ROOTED	2u
#define NO_IN	4u
#define NO_OUT	8u

static const struct {
	const char *name;
	call_fn fn;
	uint32_t flags;
} calls[] = {
	{ "HcclAllReduce", all_reduce, REDUCES },
	{ "HcclReduce", reduce, REDUCES | ROOTED },
	{ "HcclReduceScatter", reduce_scatter, REDUCES },
	{ "HcclReduceScatterV", reduce_scatter_v, REDUCES },
	{ "HcclBroadcast", broadcast, ROOTED | NO_IN },
	{ "HcclScatter", scatter, ROOTED },
	{ "HcclAllGather", all_gather, 0 },
	{ "HcclAllGatherV", all_gather_v, 0 },
	{ "HcclAlltoAll", all_to_all, 0 },
	{ "HcclAlltoAllV", all_to_all_v, 0 },
	{ "HcclAlltoAllVC", all_to_all_vc, 0 },
	{ "HcclSend", send_one, ROOTED | NO_OUT },
	{ "HcclRecv", recv_one, ROOTED | NO_IN },
	{ "HcclBatchSendRecv", batch, ROOTED },
};

#define CALLS	(sizeof(calls) / sizeof(calls[0]))

static struct with good(void)
{
	return (struct with){
		.comm = comm, .stream = s, .in = a, .out = b, .count = 4, .type = I32, .op = SUM,
	};
}

static void refused(uint32_t i, const struct with *w, HcclResult want, const char *word, const char *why)
{
	const char *msg;
	HcclResult got;

	aclGetRecentErrMsg();
	got = calls[i].fn(w);
	msg = aclGetRecentErrMsg();
	sys_true(got == want && msg && strstr(msg, calls[i].name) && strstr(msg, word),
		 "%s, %s: %d, not %d, or no \"%s\": %s", calls[i].name, why, got, want, word,
		 msg ? msg : "no message");
}

/* Those that have all of @has and none of @lacks; @change: what is wrong of w. */
#define SOME(has, lacks, change, want, word)					\
	do {									\
		for (uint32_t i_ = 0; i_ < CALLS; i_++) {			\
			struct with w = good();					\
										\
			if ((calls[i_].flags & (has)) != (has) || calls[i_].flags & (lacks))	\
				continue;					\
			change;							\
			refused(i_, &w, want, word, #change);			\
		}								\
	} while (0)

#define ALL(lacks, change, want, word)	SOME(0u, lacks, change, want, word)
#define ONLY(has, change, want, word)	SOME(has, 0u, change, want, word)

/* ---- The test's board ---------------------------------------------------------------- */

static int begin(void **state)
{
	int32_t devices[2] = { 0, 1 };
	int rc = ht_setup(state);

	acl_ok(aclInit(NULL));
	acl_ok(aclrtSetDevice(1));
	acl_ok(aclrtCreateStream(&far));
	acl_ok(aclrtSetDevice(0));
	acl_ok(aclrtCreateStream(&s));
	a = ht_device(COUNT * 4, NULL);
	b = ht_device(COUNT * 4, NULL);
	ht_ok(HcclCommInitAll(2, devices, comms));
	comm = comms[0];
	return rc;
}

/* Both ranks go on as if nothing had been. */
static void still_works(void)
{
	uint32_t i;
	void *x;

	for (i = 0; i < 2; i++) {
		acl_ok(aclrtSetDevice((int32_t)i));
		x = i ? b : a;
		ht_ok(HcclAllReduce(x, x, COUNT, I32, SUM, comms[i], i ? far : s));
	}
	acl_ok(aclrtSynchronizeStream(far));
	acl_ok(aclrtSetDevice(0));
	acl_ok(aclrtSynchronizeStream(s));
}

static int end(void **state)
{
	void *other;

	acl_ok(aclrtSetDevice(1));
	other = ht_device(COUNT * 4, NULL);
	acl_ok(aclrtFree(b));
	b = other;
	still_works();
	ht_ok(HcclCommDestroy(comms[0]));
	ht_ok(HcclCommDestroy(comms[1]));
	acl_ok(aclFinalize());
	return sys_teardown(state);
}

/* ---- What is refused ------------------------------------------------------------------- */

static void handles(void **state)
{
	uint64_t place[64] = { 0 };

	(void)state;
	ALL(0, w.comm = NULL, HCCL_E_PTR, "comm is NULL");
	ALL(0, w.comm = place, HCCL_E_PARA, "no communicator");
	ALL(0, w.comm = s, HCCL_E_PARA, "no communicator");
	ALL(0, w.comm = (void *)0x10, HCCL_E_PARA, "no communicator");
	ALL(0, w.comm = (char *)comm + 8, HCCL_E_PARA, "no communicator");
	ALL(0, w.stream = NULL, HCCL_E_PTR, "stream is NULL");
	ALL(0, w.stream = (void *)place, HCCL_E_PARA, "stream");
	ALL(0, w.stream = far, HCCL_E_PARA, "stream");
	ALL(0, w.stream = comm, HCCL_E_PARA, "stream");
	ht_says(HcclBarrier(NULL, s), HCCL_E_PTR, "HcclBarrier");
	ht_says(HcclBarrier(comm, NULL), HCCL_E_PTR, "stream is NULL");
	ht_says(HcclBarrier(comm, far), HCCL_E_PARA, "stream");
	ht_says(HcclBarrier(place, s), HCCL_E_PARA, "no communicator");
}

static void gone(void **state)
{
	HcclComm old = NULL;
	aclrtStream dead;
	int32_t one = 5;

	(void)state;
	ht_ok(HcclCommInitAll(1, &one, &old));
	ht_ok(HcclCommDestroy(old));
	ALL(0, w.comm = old, HCCL_E_PARA, "destroyed");
	acl_ok(aclrtSetDevice(0));
	acl_ok(aclrtCreateStream(&dead));
	acl_ok(aclrtDestroyStream(dead));
	ALL(0, w.stream = dead, HCCL_E_PARA, "stream");
}

/* The stream of a rank on another device, given by a thread that has that device. */
static void another_device(void **state)
{
	(void)state;
	acl_ok(aclrtSetDevice(1));
	ALL(0, w.stream = far, HCCL_E_PARA, "device");
	acl_ok(aclrtSetDevice(0));
}

static void buffers(void **state)
{
	static int host[COUNT];
	void *freed = ht_device(COUNT * 4, NULL);

	(void)state;
	acl_ok(aclrtFree(freed));
	ALL(NO_IN, w.in = NULL, HCCL_E_PTR, "NULL");
	ALL(NO_OUT, w.out = NULL, HCCL_E_PTR, "NULL");
	ALL(NO_IN, w.in = host, HCCL_E_PARA, "no device memory");
	ALL(NO_OUT, w.out = host, HCCL_E_PARA, "no device memory");
	ALL(NO_IN, w.in = freed, HCCL_E_PARA, "no device memory");
	ALL(NO_OUT, w.out = freed, HCCL_E_PARA, "no device memory");
	ALL(NO_IN, w.in = (void *)8, HCCL_E_PARA, "no device memory");
	ht_says(HcclAlltoAll(a, 4, I32, a, 4, I32, comm, s), HCCL_E_PARA, "both");
	ht_says(HcclAlltoAllV(a, four, displs, I32, a, four, displs, I32, comm, s), HCCL_E_PARA, "both");
	ht_says(HcclAlltoAllVC(a, matrix, I32, a, I32, comm, s), HCCL_E_PARA, "both");
	ht_says(HcclAllGatherV(a, 4, a, four, displs, I32, comm, s), HCCL_E_PARA, "both");
	ht_says(HcclReduceScatterV(a, four, displs, a, 4, I32, SUM, comm, s), HCCL_E_PARA, "both");
}

static void sizes(void **state)
{
	(void)state;
	ALL(0, w.count = UINT64_MAX, HCCL_E_PARA, "");
	ALL(0, w.count = UINT64_MAX / 4, HCCL_E_PARA, "");
	ALL(0, w.count = UINT64_MAX / 4 + 1, HCCL_E_PARA, "");
	ALL(0, w.count = 1ull << 61, HCCL_E_PARA, "");
	ALL(0, w.count = 1ull << 40, HCCL_E_PARA, "bytes from");
}

static void types(void **state)
{
	(void)state;
	ALL(0, w.type = (HcclDataType)13, HCCL_E_PARA, "13");
	ALL(0, w.type = (HcclDataType)18, HCCL_E_PARA, "18");
	ALL(0, w.type = HCCL_DATA_TYPE_RESERVED, HCCL_E_PARA, "255");
	ALL(0, w.type = (HcclDataType)-1, HCCL_E_PARA, "");
	ONLY(REDUCES, w.op = (HcclReduceOp)4, HCCL_E_PARA, "4");
	ONLY(REDUCES, w.op = HCCL_REDUCE_RESERVED, HCCL_E_PARA, "255");
	ONLY(REDUCES, w.type = HCCL_DATA_TYPE_INT128, HCCL_E_NOT_SUPPORT, "int128");
	ONLY(REDUCES, w.type = HCCL_DATA_TYPE_FP8E4M3, HCCL_E_NOT_SUPPORT, "fp8e4m3");
	ONLY(REDUCES, w.type = HCCL_DATA_TYPE_HIF8, HCCL_E_NOT_SUPPORT, "hif8");
	ht_says(HcclAlltoAll(a, 4, I32, b, 4, HCCL_DATA_TYPE_FP32, comm, s), HCCL_E_PARA, "fp32");
	ht_says(HcclAlltoAll(a, 4, I32, b, 5, I32, comm, s), HCCL_E_PARA, "5");
	ht_says(HcclAlltoAllV(a, four, displs, I32, b, four, displs, HCCL_DATA_TYPE_FP32, comm, s),
		HCCL_E_PARA, "fp32");
	ht_says(HcclAlltoAllVC(a, matrix, I32, b, HCCL_DATA_TYPE_FP32, comm, s), HCCL_E_PARA, "fp32");
}

static void ranks(void **state)
{
	HcclSendRecvItem item = { (HcclSendRecvType)2, a, 4, I32, 1 };

	(void)state;
	ONLY(ROOTED, w.root = 0xfffffffe, HCCL_E_PARA, "ranks 0 to 1");
	ONLY(ROOTED | REDUCES, w.root = 2, HCCL_E_PARA, "ranks 0 to 1");
	ht_says(HcclBroadcast(a, 4, I32, 2, comm, s), HCCL_E_PARA, "root 2");
	ht_says(HcclSend(a, 4, I32, 0, comm, s), HCCL_E_PARA, "itself");
	ht_says(HcclRecv(a, 4, I32, 0, comm, s), HCCL_E_PARA, "itself");
	ht_says(HcclBatchSendRecv(&item, 1, comm, s), HCCL_E_PARA, "type 2");
	ht_says(HcclBatchSendRecv(NULL, 1, comm, s), HCCL_E_PTR, "NULL");
	ht_says(HcclBatchSendRecv(&item, 0x80000000u, comm, s), HCCL_E_PARA, "2147483648 entries");
}

static void arrays(void **state)
{
	uint64_t much[2] = { UINT64_MAX, 1 }, wide[2] = { 1ull << 62, 0 };

	(void)state;
	ht_says(HcclAlltoAllV(a, NULL, displs, I32, b, four, displs, I32, comm, s), HCCL_E_PTR, "sendCounts");
	ht_says(HcclAlltoAllV(a, four, NULL, I32, b, four, displs, I32, comm, s), HCCL_E_PTR, "sdispls");
	ht_says(HcclAlltoAllV(a, four, displs, I32, b, NULL, displs, I32, comm, s), HCCL_E_PTR, "recvCounts");
	ht_says(HcclAlltoAllV(a, four, displs, I32, b, four, NULL, I32, comm, s), HCCL_E_PTR, "rdispls");
	ht_says(HcclAlltoAllVC(a, NULL, I32, b, I32, comm, s), HCCL_E_PTR, "sendCountMatrix");
	ht_says(HcclAllGatherV(a, 4, b, NULL, displs, I32, comm, s), HCCL_E_PTR, "recvCounts");
	ht_says(HcclAllGatherV(a, 4, b, four, NULL, I32, comm, s), HCCL_E_PTR, "recvDispls");
	ht_says(HcclAllGatherV(a, 5, b, four, displs, I32, comm, s), HCCL_E_PARA, "sendCount is 5");
	ht_says(HcclReduceScatterV(a, NULL, displs, b, 4, I32, SUM, comm, s), HCCL_E_PTR, "sendCounts");
	ht_says(HcclReduceScatterV(a, four, NULL, b, 4, I32, SUM, comm, s), HCCL_E_PTR, "sendDispls");
	ht_says(HcclReduceScatterV(a, four, displs, b, 3, I32, SUM, comm, s), HCCL_E_PARA, "recvCount is 3");
	ht_fails(HcclAlltoAllV(a, much, displs, I32, b, four, displs, I32, comm, s), HCCL_E_PARA);
	ht_fails(HcclAlltoAllV(a, four, much, I32, b, four, displs, I32, comm, s), HCCL_E_PARA);
	ht_fails(HcclAlltoAllV(a, four, displs, I32, b, four, wide, I32, comm, s), HCCL_E_PARA);
	ht_fails(HcclReduceScatterV(a, four, wide, b, 4, I32, SUM, comm, s), HCCL_E_PARA);
	matrix[1] = 1ull << 62;
	ht_fails(HcclAlltoAllVC(a, matrix, I32, b, I32, comm, s), HCCL_E_PARA);
	matrix[1] = UINT64_MAX - 2;	/* 4 and that are 1 */
	ht_fails(HcclAlltoAllVC(a, matrix, I32, b, I32, comm, s), HCCL_E_PARA);
	matrix[1] = 4;
}

/* Nothing is looked at, and nobody waits. */
static void nothing(void **state)
{
	(void)state;
	ht_ok(HcclAllReduce(NULL, NULL, 0, I32, SUM, comm, s));
	ht_ok(HcclReduce(NULL, NULL, 0, I32, SUM, 0, comm, s));
	ht_ok(HcclReduceScatter(NULL, NULL, 0, I32, SUM, comm, s));
	ht_ok(HcclBroadcast(NULL, 0, I32, 0, comm, s));
	ht_ok(HcclScatter(NULL, NULL, 0, I32, 0, comm, s));
	ht_ok(HcclAllGather(NULL, NULL, 0, I32, comm, s));
	ht_ok(HcclAlltoAll(NULL, 0, I32, NULL, 0, I32, comm, s));
	ht_ok(HcclSend(NULL, 0, I32, 1, comm, s));
	ht_ok(HcclRecv(NULL, 0, I32, 1, comm, s));
	ht_ok(HcclBatchSendRecv(NULL, 0, comm, s));
	acl_ok(aclrtSynchronizeStream(s));
}

static void questions(void **state)
{
	char name[COMM_NAME_MAX_LENGTH];
	uint64_t place[64] = { 0 };
	HcclResult async;
	uint32_t v;

	(void)state;
	ht_fails(HcclGetRankSize(NULL, &v), HCCL_E_PTR);
	ht_fails(HcclGetRankSize(comm, NULL), HCCL_E_PTR);
	ht_fails(HcclGetRankSize(place, &v), HCCL_E_PARA);
	ht_fails(HcclGetRankId(NULL, &v), HCCL_E_PTR);
	ht_fails(HcclGetRankId(comm, NULL), HCCL_E_PTR);
	ht_fails(HcclGetRankId(place, &v), HCCL_E_PARA);
	ht_fails(HcclGetCommName(NULL, name), HCCL_E_PTR);
	ht_fails(HcclGetCommName(comm, NULL), HCCL_E_PTR);
	ht_fails(HcclGetCommName(place, name), HCCL_E_PARA);
	ht_fails(HcclGetCommAsyncError(NULL, &async), HCCL_E_PTR);
	ht_fails(HcclGetCommAsyncError(comm, NULL), HCCL_E_PTR);
	ht_fails(HcclGetCommAsyncError(place, &async), HCCL_E_PARA);
	ht_fails(HcclCommDestroy(NULL), HCCL_E_PTR);
	ht_fails(HcclCommDestroy(place), HCCL_E_PARA);
	ht_fails(HcclCommDestroy(s), HCCL_E_PARA);
}

#define args_test(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		args_test(handles),
		args_test(gone),
		args_test(another_device),
		args_test(buffers),
		args_test(sizes),
		args_test(types),
		args_test(ranks),
		args_test(arrays),
		args_test(nothing),
		args_test(questions),
	};

	ht_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
