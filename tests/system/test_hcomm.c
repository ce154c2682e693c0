// SPDX-License-Identifier: MIT
/*
 * Operations over channels, each against a plain loop, over both paths, with the ranks as
 * threads of a process and as processes; notifies and their order, timeouts, threads,
 * batches.
 */
#include "hcommtest.h"

static const size_t sizes[] = { 1, 7, 64, 4096, 65537, BYTES - 128 };

enum way { WRITE, READ, WRITE_NOTIFY, WRITE_NBI, READ_NBI, WRITE_NOTIFY_NBI, DIRECT_WRITE, DIRECT_READ, DIRECT_NOTIFY,
	   BATCH_WRITE, BATCH_READ, WAYS };

static bool reads(enum way w)
{
	return w == READ || w == READ_NBI || w == DIRECT_READ || w == BATCH_READ;
}

static bool notifies(enum way w)
{
	return w == WRITE_NOTIFY || w == WRITE_NOTIFY_NBI || w == DIRECT_NOTIFY || w == BATCH_WRITE;
}

static void by_batch(struct end *e, enum way w, uint8_t *far, uint8_t *near, size_t n)
{
	HcommBatchTransferDesc d[3] = { { .transType = HCOMM_TRANSFER_TYPE_INVALID } };
	uint32_t k = 0;
	size_t half = n / 2;

	if (w == BATCH_READ) {
		for (; k < 2; k++) {
			d[k].transType = HCOMM_TRANSFER_TYPE_READ;
			d[k].transferInfo.read.dst = near + (k ? half : 0);
			d[k].transferInfo.read.src = far + (k ? half : 0);
			d[k].transferInfo.read.len = k ? n - half : half;
		}
	} else {
		d[0].transType = HCOMM_TRANSFER_TYPE_WRITE;
		d[0].transferInfo.write.dst = far;
		d[0].transferInfo.write.src = near;
		d[0].transferInfo.write.len = half;
		d[1].transType = HCOMM_TRANSFER_TYPE_WRITE_WITH_NOTIFY;
		d[1].transferInfo.writeWithNotify.dst = far + half;
		d[1].transferInfo.writeWithNotify.src = near + half;
		d[1].transferInfo.writeWithNotify.len = n - half;
		d[1].transferInfo.writeWithNotify.notifyIdx = 3;
		k = 2;
	}
	acl_ok((aclError)HcommBatchTransferOnThread(e->th, e->ch, d, k));
}

/* Rank 0 moves, one way. */
static void move(struct end *e, enum way w, size_t at, size_t n)
{
	uint8_t *src = e->mem + at, *dst = e->far + BYTES + at;

	switch (w) {
	case WRITE:
		acl_ok((aclError)HcommWriteOnThread(e->th, e->ch, dst, src, n));
		break;
	case WRITE_NOTIFY:
		acl_ok((aclError)HcommWriteWithNotifyOnThread(e->th, e->ch, dst, src, n, 3));
		break;
	case WRITE_NBI:
		acl_ok((aclError)HcommWriteNbiOnThread(e->th, e->ch, dst, src, n));
		acl_ok((aclError)HcommChannelDrainOnThread(e->th, e->ch));
		break;
	case WRITE_NOTIFY_NBI:
		acl_ok((aclError)HcommWriteWithNotifyNbiOnThread(e->th, e->ch, dst, src, n, 3));
		acl_ok((aclError)HcommChannelFenceOnThread(e->th, e->ch));
		break;
	case DIRECT_WRITE:
		acl_ok((aclError)HcommWriteNbi(e->ch, dst, src, n));
		acl_ok((aclError)HcommChannelFence(e->ch));
		break;
	case DIRECT_NOTIFY:
		acl_ok((aclError)HcommWriteWithNotifyNbi(e->ch, dst, src, n, 3));
		break;
	case READ:
		acl_ok((aclError)HcommReadOnThread(e->th, e->ch, e->mem + BYTES + at, e->far + at, n));
		break;
	case READ_NBI:
		acl_ok((aclError)HcommReadNbiOnThread(e->th, e->ch, e->mem + BYTES + at, e->far + at, n));
		acl_ok((aclError)HcommFenceOnThread(e->th));
		break;
	case DIRECT_READ:
		acl_ok((aclError)HcommReadNbi(e->ch, e->mem + BYTES + at, e->far + at, n));
		acl_ok((aclError)HcommChannelFence(e->ch));
		break;
	case BATCH_WRITE:
		by_batch(e, w, dst, src, n);
		break;
	default:
		by_batch(e, w, e->far + at, e->mem + BYTES + at, n);
		break;
	}
	acl_ok(aclrtSynchronizeStream(e->stream));
}

static void data(struct end *e)
{
	size_t i, at = 40;
	int w;

	for (w = 0; w < WAYS; w++) {
		for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			uint64_t seed = (uint64_t)w * 100 + i + 1;

			prepare(e, at, sizes[i], seed + (uint64_t)e->rank);
			meet(e);
			if (!e->rank)
				move(e, (enum way)w, at, sizes[i]);
			else if (notifies((enum way)w))
				acl_ok((aclError)HcommChannelNotifyWait(e->ch, 3, 30));
			if (!notifies((enum way)w))
				meet(e);
			if (e->rank == !reads((enum way)w))
				landed(e, at, sizes[i], seed + !e->rank);
			meet(e);
		}
	}
}

static void data_ops(void **state)
{
	(void)state;
	everywhere(data);
}

/* ---- Reductions ------------------------------------------------------------------------------ */

static uint16_t half_of(int v)	/* 0 to 100 */
{
	int e = 0, m = v;

	if (!v)
		return 0;
	while (m >> (e + 1))
		e++;
	return (uint16_t)((e + 15) << 10 | ((m << (10 - e)) & 0x3ff));
}

static uint16_t bf_of(int v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return (uint16_t)(bits >> 16);
}

static size_t put_value(void *p, size_t i, HcommDataType t, int v)
{
	switch (t) {
	case HCOMM_DATA_TYPE_INT8:
	case HCOMM_DATA_TYPE_UINT8:
		((uint8_t *)p)[i] = (uint8_t)v;
		return 1;
	case HCOMM_DATA_TYPE_INT16:
	case HCOMM_DATA_TYPE_UINT16:
		((uint16_t *)p)[i] = (uint16_t)v;
		return 2;
	case HCOMM_DATA_TYPE_FP16:
		((uint16_t *)p)[i] = half_of(v);
		return 2;
	case HCOMM_DATA_TYPE_BFP16:
		((uint16_t *)p)[i] = bf_of(v);
		return 2;
	case HCOMM_DATA_TYPE_FP32:
		((float *)p)[i] = (float)v;
		return 4;
	default:
		((uint32_t *)p)[i] = (uint32_t)v;
		return 4;
	}
}

static int value(int rank, size_t i)
{
	return (int)((i * 7 + (size_t)rank * 5 + i / 11) % 60);
}

static int reduced(HcommReduceOp op, int a, int b)
{
	if (op == HCOMM_REDUCE_SUM)
		return a + b;
	return (op == HCOMM_REDUCE_MAX) == (a > b) ? a : b;
}

static const HcommDataType types[] = {
	HCOMM_DATA_TYPE_INT8, HCOMM_DATA_TYPE_INT16, HCOMM_DATA_TYPE_INT32, HCOMM_DATA_TYPE_UINT8,
	HCOMM_DATA_TYPE_UINT16, HCOMM_DATA_TYPE_UINT32, HCOMM_DATA_TYPE_FP16, HCOMM_DATA_TYPE_FP32,
	HCOMM_DATA_TYPE_BFP16,
};

static const HcommReduceOp reductions[] = { HCOMM_REDUCE_SUM, HCOMM_REDUCE_MAX, HCOMM_REDUCE_MIN };

enum { RED_WRITE, RED_NOTIFY, RED_READ, RED_LOCAL, RED_BATCH, RED_WAYS };

static void reduce_by(struct end *e, int way, size_t n, HcommDataType t, HcommReduceOp op)
{
	HcommBatchTransferDesc d = { .transType = HCOMM_TRANSFER_TYPE_WRITE_REDUCE };

	switch (way) {
	case RED_WRITE:
		acl_ok((aclError)HcommWriteReduceOnThread(e->th, e->ch, e->far + BYTES, e->mem, n, t, op));
		break;
	case RED_NOTIFY:
		acl_ok((aclError)HcommWriteReduceWithNotifyOnThread(e->th, e->ch, e->far + BYTES, e->mem, n, t, op, 1));
		break;
	case RED_READ:
		acl_ok((aclError)HcommReadReduceOnThread(e->th, e->ch, e->mem + BYTES, e->far, n, t, op));
		break;
	case RED_LOCAL:
		acl_ok((aclError)HcommLocalReduceOnThread(e->th, e->mem + BYTES, e->mem, n, t, op));
		break;
	default:
		d.transferInfo.reduce.dst = e->far + BYTES;
		d.transferInfo.reduce.src = e->mem;
		d.transferInfo.reduce.count = n;
		d.transferInfo.reduce.dataType = t;
		d.transferInfo.reduce.reduceOp = op;
		acl_ok((aclError)HcommBatchTransferOnThread(e->th, e->ch, &d, 1));
		break;
	}
	acl_ok(aclrtSynchronizeStream(e->stream));
}

/* Rank r's source is value(r), its target value(r + 2). */
static void one_reduction(struct end *e, int way, HcommDataType t, HcommReduceOp op, size_t n)
{
	int holder = way == RED_READ || way == RED_LOCAL ? 0 : 1, source = way == RED_READ;
	uint8_t *got = malloc(BYTES), *want = malloc(BYTES);
	size_t i, size = 0;

	memset(got, 0, BYTES);
	for (i = 0; i < n; i++)
		size = put_value(got, i, t, value(e->rank, i));
	upload(e->mem, got, n * size);
	for (i = 0; i < n; i++)
		put_value(got, i, t, value(e->rank + 2, i));
	upload(e->mem + BYTES, got, n * size);
	meet(e);
	if (!e->rank)
		reduce_by(e, way, n, t, op);
	else if (way == RED_NOTIFY)
		acl_ok((aclError)HcommChannelNotifyWait(e->ch, 1, 30));
	if (way != RED_NOTIFY)
		meet(e);
	if (e->rank == holder) {
		for (i = 0; i < n; i++)
			put_value(want, i, t, reduced(op, value(holder + 2, i), value(source, i)));
		download(got, e->mem + BYTES, n * size);
		sys_same("reduced", got, want, n * size);
	}
	meet(e);
	free(got);
	free(want);
}

static void reductions_of(struct end *e)
{
	size_t t, o;
	int way;

	for (way = 0; way < RED_WAYS; way++)
		for (t = 0; t < sizeof(types) / sizeof(*types); t++)
			for (o = 0; o < 3; o++)
				one_reduction(e, way, types[t], reductions[o], t % 2 ? 1000 : 33);
}

static void reduce_ops(void **state)
{
	(void)state;
	everywhere(reductions_of);
}

/* ---- Notifies ------------------------------------------------------------------------------------ */

/* Data without a wait, then a notify without data: in that order. */
static void nbi_then_notify(struct end *e)
{
	uint8_t *got = malloc(BYTES);
	int i, k;

	for (i = 1; i <= ROUNDS / 4; i++) {
		if (!e->rank) {
			prepare(e, 0, BYTES, (uint64_t)i);
			for (k = 0; k < 8; k++)
				acl_ok((aclError)HcommWriteNbi(e->ch, e->far + BYTES + k * (BYTES / 8), e->mem + k * (BYTES / 8),
							       BYTES / 8));
			acl_ok((aclError)HcommChannelNotifyRecord(e->ch, 2));
			acl_ok((aclError)HcommChannelNotifyWait(e->ch, 4, 30));
			acl_ok((aclError)HcommChannelFence(e->ch));
		} else {
			acl_ok((aclError)HcommChannelNotifyWait(e->ch, 2, 30));
			download(got, e->mem + BYTES, BYTES);
			sys_is_filled("before its notify", got, BYTES, (uint64_t)i);
			acl_ok((aclError)HcommChannelNotifyRecord(e->ch, 4));
		}
	}
	free(got);
}

/* Waits that others end, and those that nobody does. */
static void waits(struct end *e)
{
	int64_t begin = npuemu_now_ns();
	aclError got;

	if (e->rank) {
		meet(e);
		return;
	}
	acl_says((aclError)HcommChannelNotifyWait(e->ch, 5, 1), (aclError)HCCL_E_TIMEOUT, "notify 5");
	sys_true(npuemu_now_ns() - begin >= 1000000000, "a timeout of 1 s took %lld ns", (long long)(npuemu_now_ns() - begin));
	begin = npuemu_now_ns();
	acl_ok((aclError)HcommSetNotifyWaitTimeOut(0.25f));
	acl_ok((aclError)HcommChannelNotifyWaitOnThreadWithDefaultTimeout(e->th, e->ch, 6));
	got = aclrtSynchronizeStream(e->stream);
	sys_eq(got, ACL_ERROR_RT_FFTS_PLUS_TIMEOUT);
	sys_true(npuemu_now_ns() - begin >= 250000000, "it did not wait");
	acl_ok((aclError)HcommThreadNotifyWaitOnThreadWithDefaultTimeout(e->th, 0));
	sys_eq(aclrtSynchronizeStream(e->stream), ACL_ERROR_RT_FFTS_PLUS_TIMEOUT);
	acl_ok((aclError)HcommThreadNotifyWaitOnThread(e->th, 0, 1));
	sys_eq(aclrtSynchronizeStream(e->stream), ACL_ERROR_RT_FFTS_PLUS_TIMEOUT);
	acl_ok((aclError)HcommSetNotifyWaitTimeOut(1836));
	/* it is not the worse for it */
	acl_ok((aclError)HcommWriteOnThread(e->th, e->ch, e->far + BYTES, e->mem, 100));
	acl_ok(aclrtSynchronizeStream(e->stream));
	meet(e);
}

static void notify_order(void **state)
{
	(void)state;
	everywhere(ping);
	everywhere(nbi_then_notify);
}

static void timeouts(void **state)
{
	(void)state;
	as_threads(waits, "mapped");
	as_processes(waits, "queue");
}

/* ---- Threads -------------------------------------------------------------------------------------- */

static void local_threads(void **state)
{
	uint32_t n[2] = { 2, 3 }, id;
	uint8_t *a, *b, *host = malloc(BYTES);
	ThreadHandle th[2], direct;
	aclrtStream s[2];
	aclrtNotify rt;
	int i;

	(void)state;
	acl_ok((aclError)HcommThreadAlloc(COMM_ENGINE_AICPU_TS, 2, n, th));
	acl_ok((aclError)HcommThreadAlloc(COMM_ENGINE_CPU, 1, n, &direct));
	for (i = 0; i < 2; i++)
		acl_ok((aclError)HcommThreadResGetInfo(th[i], THREAD_RES_TYPE_STREAM, sizeof(s[i]), &s[i]));
	acl_ok((aclError)HcommMemAlloc((void **)&a, BYTES));
	acl_ok((aclError)HcommMemAlloc((void **)&b, BYTES));
	sys_fill(host, BYTES, 9);
	upload(a, host, BYTES);
	/* the second copies what the first has copied */
	acl_ok((aclError)HcommThreadNotifyWaitOnThread(th[1], 2, 30));
	acl_ok((aclError)HcommLocalCopyOnThread(th[1], a, b, BYTES / 2));
	acl_ok((aclError)HcommLocalCopyOnThread(th[0], b, a + BYTES / 2, BYTES / 2));
	acl_ok((aclError)HcommThreadNotifyRecordOnThread(th[0], th[1], 2));
	acl_ok(aclrtSynchronizeStream(s[1]));
	acl_ok(aclrtSynchronizeStream(s[0]));
	download(host + BYTES / 2, a, BYTES / 2);
	sys_fill(host, BYTES, 9);
	download(host, a, BYTES / 2);
	sys_same("copied twice", host, host + BYTES / 2, BYTES / 2);
	/* directly: over when the call returns */
	acl_ok((aclError)HcommLocalCopyOnThread(direct, b, a, BYTES / 2));
	sys_same("at once", b, host, BYTES / 2);
	acl_ok((aclError)HcommThreadNotifyRecordOnThread(direct, direct, 1));
	acl_ok((aclError)HcommThreadNotifyWaitOnThread(direct, 1, 30));
	acl_fails((aclError)HcommThreadNotifyWaitOnThread(direct, 1, 1), (aclError)HCCL_E_TIMEOUT);
	/* the runtime's */
	acl_ok(aclrtCreateNotify(&rt, 0));
	acl_ok(aclrtGetNotifyId(rt, &id));
	acl_ok((aclError)HcommAclrtNotifyRecordOnThread(th[0], id));
	acl_ok(aclrtWaitAndResetNotify(rt, s[1], 30));
	acl_ok(aclrtSynchronizeStream(s[1]));
	acl_ok(aclrtRecordNotify(rt, s[1]));
	acl_ok((aclError)HcommAclrtNotifyWaitOnThread(th[0], id, 30));
	acl_ok(aclrtSynchronizeStream(s[0]));
	acl_fails((aclError)HcommAclrtNotifyWaitOnThread(th[0], 1u << 20, 1), (aclError)HCCL_E_NOT_FOUND);
	acl_ok(aclrtDestroyNotify(rt));
	acl_ok((aclError)HcommThreadFree(th, 2));
	acl_ok((aclError)HcommThreadFree(&direct, 1));
	acl_fails((aclError)HcommThreadFree(th, 1), (aclError)HCCL_E_NOT_FOUND);
	acl_ok((aclError)HcommMemFree(a));
	acl_ok((aclError)HcommMemFree(b));
	free(host);
}

/* A notify that is to be recorded outlives its thread: nobody else's is taken for it. */
static void recorded_late(void **state)
{
	uint32_t one = 1, i;
	ThreadHandle first, gone, direct, later[2];
	aclrtStream s;

	(void)state;
	acl_ok((aclError)HcommThreadAlloc(COMM_ENGINE_CPU, 1, &one, &direct));
	for (i = 0; i < 20; i++) {
		uint32_t n[2] = { 1, 1 }, k;

		acl_ok((aclError)HcommThreadAlloc(COMM_ENGINE_CPU_TS, 1, &one, &first));
		acl_ok((aclError)HcommThreadAlloc(COMM_ENGINE_CPU_TS, 1, &one, &gone));
		acl_ok((aclError)HcommThreadResGetInfo(first, THREAD_RES_TYPE_STREAM, sizeof(s), &s));
		acl_ok((aclError)HcommThreadNotifyWaitOnThread(first, 0, 30));
		acl_ok((aclError)HcommThreadNotifyRecordOnThread(first, gone, 0));
		acl_ok((aclError)HcommThreadFree(&gone, 1));
		acl_ok((aclError)HcommThreadAlloc(COMM_ENGINE_CPU, 2, n, later));
		acl_ok((aclError)HcommThreadNotifyRecordOnThread(direct, first, 0));
		acl_ok(aclrtSynchronizeStream(s));
		/* nothing has come; what is recorded now does */
		for (k = 0; k < 2 && i % 10 == 0; k++)
			acl_fails((aclError)HcommThreadNotifyWaitOnThread(later[k], 0, 1), (aclError)HCCL_E_TIMEOUT);
		acl_ok((aclError)HcommThreadFree(later, 2));
		acl_ok((aclError)HcommThreadFree(&first, 1));
	}
	acl_ok((aclError)HcommThreadFree(&direct, 1));
}

/* Held back until the end, then in order. */
static void batch(struct end *e)
{
	uint8_t *got = malloc(BYTES);
	int i;

	prepare(e, 0, BYTES, 77 + (uint64_t)e->rank);
	meet(e);
	if (!e->rank) {
		acl_ok((aclError)HcommBatchModeStart("b"));
		acl_fails((aclError)HcommBatchModeStart("c"), (aclError)HCCL_E_PARA);
		for (i = 0; i < 200; i++)
			acl_ok((aclError)HcommWriteOnThread(e->th, e->ch, e->far + BYTES + i * 1000, e->mem + i * 1000, 1000));
		acl_ok((aclError)HcommChannelNotifyRecordOnThread(e->th, e->ch, 7));
		acl_ok((aclError)HcommChannelNotifyWaitOnThread(e->th, e->ch, 7, 30));
		acl_ok(aclrtSynchronizeStream(e->stream));	/* nothing is there yet */
		meet(e);
		meet(e);
		acl_fails((aclError)HcommBatchModeEnd("c"), (aclError)HCCL_E_PARA);
		acl_ok((aclError)HcommBatchModeEnd("b"));
		acl_fails((aclError)HcommBatchModeEnd("b"), (aclError)HCCL_E_PARA);
		acl_ok(aclrtSynchronizeStream(e->stream));
	} else {
		meet(e);
		download(got, e->mem + BYTES, BYTES);
		sys_is_byte("held back", got, BYTES, 0x5a);
		meet(e);
		acl_ok((aclError)HcommChannelNotifyWait(e->ch, 7, 30));
		landed(e, 0, 200000, 77);
		acl_ok((aclError)HcommChannelNotifyRecordOnThread(e->th, e->ch, 7));
		acl_ok(aclrtSynchronizeStream(e->stream));
	}
	free(got);
}

static void batch_mode(void **state)
{
	(void)state;
	everywhere(batch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		acl_test(data_ops), acl_test(reduce_ops), acl_test(notify_order), acl_test(timeouts),
		acl_test(local_threads), acl_test(recorded_late), acl_test(batch_mode),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
