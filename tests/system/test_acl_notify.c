// SPDX-License-Identifier: MIT
/*
 * Notifies, counting ones, and values that streams write to device memory and
 * wait for: every comparison, order with copies, time running out, an abort.
 */
#include <acl/acl.h>
#include <string.h>

#include "acltest.h"
#include "sys.h"

static void *device_memory(size_t bytes)
{
	void *p = NULL;

	acl_ok(aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	return p;
}

static aclrtStream stream(void)
{
	aclrtStream s;

	acl_ok(aclrtCreateStream(&s));
	return s;
}

static bool finished(aclrtStream s)
{
	aclrtStreamStatus st;

	acl_ok(aclrtStreamQuery(s, &st));
	return st == ACL_STREAM_STATUS_COMPLETE;
}

/* Payload, then notify; wait, then copy on: two streams, many rounds, nothing is torn. */
static void ping_pong(void **state)
{
	enum { ROUNDS = 200, WORDS = 512 };
	uint32_t *a = device_memory(WORDS * 4), *b = device_memory(WORDS * 4);
	static uint32_t got[ROUNDS][WORDS];
	aclrtStream s = stream(), t = stream();
	aclrtNotify full, empty;
	uint32_t i, k;

	(void)state;
	acl_ok(aclrtCreateNotify(&full, ACL_NOTIFY_DEFAULT));
	acl_ok(aclrtCreateNotify(&empty, ACL_NOTIFY_DEFAULT));
	for (i = 0; i < ROUNDS; i++) {
		if (i)
			acl_ok(aclrtWaitAndResetNotify(empty, s, 0));
		acl_ok(aclrtMemsetD32Async(a, WORDS * 4, i, WORDS, s));
		acl_ok(aclrtRecordNotify(full, s));
		acl_ok(aclrtWaitAndResetNotify(full, t, 0));
		acl_ok(aclrtMemcpyAsync(b, WORDS * 4, a, WORDS * 4, ACL_MEMCPY_DEVICE_TO_DEVICE, t));
		acl_ok(aclrtRecordNotify(empty, t));
		/* pageable: comes back when it is done */
		acl_ok(aclrtMemcpyAsync(got[i], sizeof(got[i]), b, WORDS * 4, ACL_MEMCPY_DEVICE_TO_HOST, t));
	}
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtSynchronizeStream(t));
	for (i = 0; i < ROUNDS; i++)
		for (k = 0; k < WORDS; k++)
			sys_eq(got[i][k], i);
	acl_ok(aclrtDestroyNotify(full));
	acl_ok(aclrtDestroyNotify(empty));
	acl_fails(aclrtDestroyNotify(empty), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtDestroyStream(t));
	acl_ok(aclrtFree(a));
	acl_ok(aclrtFree(b));
}

/* One bit: two records before a wait are one; the wait takes it, so a second one waits. */
static void binary(void **state)
{
	aclrtStream s = stream();
	aclrtNotify n, m;
	uint32_t id, other;

	(void)state;
	acl_ok(aclrtCreateNotify(&n, ACL_NOTIFY_DEFAULT));
	acl_ok(aclrtCreateNotify(&m, ACL_NOTIFY_DEVICE_USE_ONLY));
	acl_ok(aclrtGetNotifyId(n, &id));
	acl_ok(aclrtGetNotifyId(m, &other));
	sys_true(id != other, "two notifies have the id %u", id);
	acl_ok(aclrtRecordNotify(n, s));
	acl_ok(aclrtRecordNotify(n, s));
	acl_ok(aclrtWaitAndResetNotify(n, s, 0));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtWaitAndResetNotify(n, s, 0));
	acl_fails(aclrtSynchronizeStreamWithTimeout(s, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	acl_ok(aclrtRecordNotify(n, NULL));
	acl_ok(aclrtSynchronizeStream(s));
	/* reset from the host */
	acl_ok(aclrtRecordNotify(n, s));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtNotifyBatchReset(&n, 1));
	acl_ok(aclrtWaitAndResetNotify(n, s, 1));
	acl_fails(aclrtSynchronizeStream(s), ACL_ERROR_RT_FFTS_PLUS_TIMEOUT);
	acl_ok(aclrtSynchronizeStream(s));
	/* aborted while it waits */
	acl_ok(aclrtWaitAndResetNotify(n, s, 0));
	acl_ok(aclrtStreamAbort(s));
	acl_ok(aclrtSynchronizeStream(s));
	acl_fails(aclrtCreateNotify(NULL, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtCreateNotify(&m, 0x80), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtRecordNotify(NULL, s), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtRecordNotify(s, s), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtNotifyBatchReset(NULL, 1), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetNotifyId(n, NULL), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtDestroyNotify(n));
	acl_ok(aclrtDestroyNotify(m));
	acl_ok(aclrtDestroyStream(s));
}

/* As many as there may be, and one more. */
static void all_notifies(void **state)
{
	static aclrtNotify n[8193];
	uint32_t i;

	(void)state;
	for (i = 0; i < 8192; i++)
		acl_ok(aclrtCreateNotify(&n[i], 0));
	acl_fails(aclrtCreateNotify(&n[i], 0), ACL_ERROR_RT_NO_NOTIFY_RESOURCE);
	acl_ok(aclrtDestroyNotify(n[77]));
	acl_ok(aclrtCreateNotify(&n[77], 0));
	for (i = 0; i < 8192; i++)
		acl_ok(aclrtDestroyNotify(n[i]));
}

static void counting(void **state)
{
	static const struct {
		aclrtCntNotifyWaitMode mode;
		uint32_t value;		/* of the wait */
		uint32_t no, yes;	/* counts that do not and that do */
	} cases[] = {
		{ ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE, 5, 5, 4 },
		{ ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 5, 6, 5 },
		{ ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE, 5, 5, 6 },
		{ ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE, 5, 4, 5 },
		{ ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE, 6, 0x12, 0x17 },
	};
	aclrtCntNotifyRecordInfo r = { .mode = ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE };
	aclrtCntNotifyWaitInfo w = { 0 };
	aclrtStream s = stream(), t = stream();
	aclrtCntNotify n;
	size_t i;

	(void)state;
	acl_ok(aclrtCntNotifyCreate(&n, 0));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		r.value = cases[i].no;
		acl_ok(aclrtCntNotifyRecord(n, s, &r));
		acl_ok(aclrtSynchronizeStream(s));
		w.mode = cases[i].mode;
		w.value = cases[i].value;
		acl_ok(aclrtCntNotifyWaitWithTimeout(n, t, &w));
		sys_nap(5);
		sys_true(!finished(t), "case %zu: it did not wait", i);
		r.value = cases[i].yes;
		acl_ok(aclrtCntNotifyRecord(n, s, &r));
		acl_ok(aclrtSynchronizeStream(t));
	}
	/* set, add, or, and; with a wait that clears */
	acl_ok(aclrtCntNotifyReset(n, s));
	r.mode = ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE;
	r.value = 0xfffffff0;
	acl_ok(aclrtCntNotifyRecord(n, s, &r));
	r.value = 0x1f;			/* 32 bits: 0xf */
	acl_ok(aclrtCntNotifyRecord(n, s, &r));
	r.mode = ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE;
	r.value = 0x70;			/* 0x7f */
	acl_ok(aclrtCntNotifyRecord(n, s, &r));
	r.mode = ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE;
	r.value = 0x3c;			/* 0x3c */
	acl_ok(aclrtCntNotifyRecord(n, s, &r));
	w.mode = ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE;
	w.value = 0x3c;
	w.isClear = 1;
	acl_ok(aclrtCntNotifyWaitWithTimeout(n, s, &w));
	w.value = 0;
	w.isClear = 0;
	acl_ok(aclrtCntNotifyWaitWithTimeout(n, s, &w));
	acl_ok(aclrtSynchronizeStream(s));
	w.value = 1;
	w.timeout = 1;
	acl_ok(aclrtCntNotifyWaitWithTimeout(n, s, &w));
	acl_fails(aclrtSynchronizeStream(s), ACL_ERROR_RT_WAIT_TIMEOUT);
	/* wrong ones */
	r.mode = (aclrtCntNotifyRecordMode)3;
	acl_fails(aclrtCntNotifyRecord(n, s, &r), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtCntNotifyRecord(n, s, NULL), ACL_ERROR_INVALID_PARAM);
	w.mode = (aclrtCntNotifyWaitMode)9;
	acl_fails(aclrtCntNotifyWaitWithTimeout(n, s, &w), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtRecordNotify(n, s), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtCntNotifyDestroy(n));
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtDestroyStream(t));
}

static void values(void **state)
{
	static const struct {
		uint32_t flag;
		uint64_t value, no, yes;
	} cases[] = {
		{ ACL_STREAM_WAIT_VALUE_GEQ, 5, 4, 5 },
		/* round the end */
		{ ACL_STREAM_WAIT_VALUE_GEQ, 2, ~0ull - 3, 3 },
		{ ACL_STREAM_WAIT_VALUE_EQ, 1ull << 40, 1ull << 41, 1ull << 40 },
		{ ACL_STREAM_WAIT_VALUE_AND, 0x30, 0x4f, 0x10 },
		{ ACL_STREAM_WAIT_VALUE_NOR, 0xf0, ~0xf0ull, 0x0f },
	};
	uint64_t *d = device_memory(64), got;
	aclrtStream s = stream(), t = stream();
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		acl_ok(aclrtValueWrite(d, cases[i].no, 0, s));
		acl_ok(aclrtSynchronizeStream(s));
		acl_ok(aclrtValueWait(d, cases[i].value, cases[i].flag, t));
		sys_nap(5);
		sys_true(!finished(t), "case %zu: it did not wait", i);
		acl_ok(aclrtValueWrite(d, cases[i].yes, 0, s));
		acl_ok(aclrtSynchronizeStream(t));
	}
	acl_ok(aclrtMemcpy(&got, 8, d, 8, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_eq(got, 0x0f);
	/* by a copy, and by an ordinary one at that */
	got = 77;
	acl_ok(aclrtValueWait(d, 77, ACL_STREAM_WAIT_VALUE_EQ, t));
	acl_ok(aclrtMemcpy(d, 8, &got, 8, ACL_MEMCPY_HOST_TO_DEVICE));
	acl_ok(aclrtSynchronizeStream(t));
	acl_fails(aclrtValueWait(d, 0, 4, t), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtValueWait(NULL, 0, 0, t), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtValueWait((char *)d + 4, 0, 0, t), ACL_ERROR_RT_ADDR_UNALIGNED);
	acl_fails(aclrtValueWrite(d + 100000000, 0, 0, t), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtValueWrite(&got, 0, 0, t), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtValueWrite(d, 0, 1, t), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtDestroyStream(t));
	acl_ok(aclrtFree(d));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		acl_test(ping_pong),
		acl_test(binary),
		acl_test(all_notifies),
		acl_test(counting),
		acl_test(values),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
