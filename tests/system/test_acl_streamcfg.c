// SPDX-License-Identifier: MIT
/* Streams made from a configuration, attributes of streams, aborting a device. */
#include <pthread.h>
#include <string.h>

#include "acltest.h"

/* ---- Configurations ------------------------------------------------------ */

static uint32_t flags_of(aclrtStream s)
{
	uint32_t v = 99;

	acl_ok(aclrtStreamGetFlags(s, &v));
	return v;
}

static uint32_t priority_of(aclrtStream s)
{
	uint32_t v = 99;

	acl_ok(aclrtStreamGetPriority(s, &v));
	return v;
}

static void from_config(void **state)
{
	size_t flags = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC, work = 4096;
	uint32_t flags32 = ACL_STREAM_HUGE, priority = 5;
	aclrtStreamConfigHandle *c, *d;
	void *addr = &work;
	aclrtStream s;

	(void)state;
	c = aclrtCreateStreamConfigHandle();
	d = aclrtCreateStreamConfigHandle();
	sys_true(c && d && c != d, "handles");
	sys_true(!c->workptr && !c->workSize && !c->flag && !c->priority, "not all zeroes");
	acl_ok(aclrtCreateStreamV2(&s, c));
	sys_eq(flags_of(s), 0);
	sys_eq(priority_of(s), 0);
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtSetStreamConfigOpt(c, ACL_RT_STREAM_FLAG, &flags, sizeof(flags)));
	acl_ok(aclrtSetStreamConfigOpt(c, ACL_RT_STREAM_PRIORITY, &priority, sizeof(priority)));
	acl_ok(aclrtSetStreamConfigOpt(c, ACL_RT_STREAM_WORK_SIZE, &work, sizeof(work)));
	acl_ok(aclrtSetStreamConfigOpt(c, ACL_RT_STREAM_WORK_ADDR_PTR, &addr, sizeof(addr)));
	sys_true(c->workptr == addr && c->workSize == 4096 && c->flag == 3 && c->priority == 5,
		 "options");
	sys_true(!d->flag, "another one's options");
	acl_ok(aclrtCreateStreamV2(&s, c));
	sys_eq(flags_of(s), 3);
	sys_eq(priority_of(s), 5);
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtSetStreamConfigOpt(c, ACL_RT_STREAM_FLAG, &flags32, sizeof(flags32)));
	sys_eq(c->flag, ACL_STREAM_HUGE);
	acl_ok(aclrtDestroyStreamConfigHandle(c));
	/* the stream has what it was made with */
	sys_eq(flags_of(s), 3);
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtDestroyStreamConfigHandle(d));
}

static void bad_config(void **state)
{
	aclrtStreamConfigHandle *c = aclrtCreateStreamConfigHandle(), *gone, mine;
	uint32_t eight = 8, flag32 = 0x40;
	size_t flag = 0x40, n = 1;
	aclrtStreamConfigHandle *bad[4];
	aclrtStream s = NULL;
	size_t i;

	(void)state;
	memset(&mine, 0, sizeof(mine));
	gone = aclrtCreateStreamConfigHandle();
	acl_ok(aclrtDestroyStreamConfigHandle(gone));
	bad[0] = NULL;
	bad[1] = gone;
	bad[2] = &mine;
	bad[3] = (aclrtStreamConfigHandle *)((char *)c + 8);
	for (i = 0; i < 4; i++) {
		acl_fails(aclrtDestroyStreamConfigHandle(bad[i]), ACL_ERROR_INVALID_PARAM);
		acl_fails(aclrtSetStreamConfigOpt(bad[i], ACL_RT_STREAM_WORK_SIZE, &n, sizeof(n)),
			  ACL_ERROR_INVALID_PARAM);
		acl_fails(aclrtCreateStreamV2(&s, bad[i]), ACL_ERROR_INVALID_PARAM);
	}
	acl_fails(aclrtCreateStreamV2(NULL, c), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetStreamConfigOpt(c, ACL_RT_STREAM_WORK_SIZE, NULL, sizeof(n)),
		  ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetStreamConfigOpt(c, ACL_RT_STREAM_WORK_SIZE, &n, 4),
		  ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetStreamConfigOpt(c, ACL_RT_STREAM_PRIORITY, &n, 8),
		  ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetStreamConfigOpt(c, ACL_RT_STREAM_FLAG, &n, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetStreamConfigOpt(c, (aclrtStreamConfigAttr)4, &n, 8),
		  ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetStreamConfigOpt(c, (aclrtStreamConfigAttr)-1, &n, 8),
		  ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetStreamConfigOpt(c, ACL_RT_STREAM_PRIORITY, &eight, 4),
		  ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetStreamConfigOpt(c, ACL_RT_STREAM_FLAG, &flag, 8),
		  ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetStreamConfigOpt(c, ACL_RT_STREAM_FLAG, &flag32, 4),
		  ACL_ERROR_INVALID_PARAM);
	/* the struct is open: what a program writes into it is looked at, too */
	c->priority = 8;
	acl_fails(aclrtCreateStreamV2(&s, c), ACL_ERROR_INVALID_PARAM);
	c->priority = 0;
	c->flag = (size_t)1 << 40;
	acl_fails(aclrtCreateStreamV2(&s, c), ACL_ERROR_INVALID_PARAM);
	c->flag = 0;
	sys_true(!s, "a stream after all");
	acl_ok(aclrtDestroyStreamConfigHandle(c));
}

/* ---- Attributes ---------------------------------------------------------- */

static aclrtStreamAttrValue get(aclrtStream s, aclrtStreamAttr attr)
{
	aclrtStreamAttrValue v;

	memset(&v, 0x55, sizeof(v));
	acl_ok(aclrtGetStreamAttribute(s, attr, &v));
	return v;
}

static void set(aclrtStream s, aclrtStreamAttr attr, uint64_t value)
{
	aclrtStreamAttrValue v;

	memset(&v, 0, sizeof(v));
	v.failureMode = value;
	acl_ok(aclrtSetStreamAttribute(s, attr, &v));
}

static void attributes(void **state)
{
	aclrtStream s, other;
	uint32_t on;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtCreateStream(&other));
	sys_eq(get(s, ACL_STREAM_ATTR_FAILURE_MODE).failureMode, ACL_CONTINUE_ON_FAILURE);
	sys_eq(get(s, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK).overflowSwitch, 0);
	sys_eq(get(s, ACL_STREAM_ATTR_USER_CUSTOM_TAG).userCustomTag, 0);
	sys_eq(get(s, ACL_STREAM_ATTR_CACHE_OP_INFO).cacheOpInfoSwitch, 0);
	sys_eq(get(s, ACL_STREAM_ATTR_PRIORITY).streamPriority, 0);
	set(s, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, 1);
	set(s, ACL_STREAM_ATTR_USER_CUSTOM_TAG, UINT32_MAX);
	set(s, ACL_STREAM_ATTR_CACHE_OP_INFO, 1);
	set(s, ACL_STREAM_ATTR_PRIORITY, 7);
	set(s, ACL_STREAM_ATTR_FAILURE_MODE, ACL_STOP_ON_FAILURE);
	sys_eq(get(s, ACL_STREAM_ATTR_FAILURE_MODE).failureMode, ACL_STOP_ON_FAILURE);
	sys_eq(get(s, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK).overflowSwitch, 1);
	sys_eq(get(s, ACL_STREAM_ATTR_USER_CUSTOM_TAG).userCustomTag, UINT32_MAX);
	sys_eq(get(s, ACL_STREAM_ATTR_CACHE_OP_INFO).cacheOpInfoSwitch, 1);
	sys_eq(get(s, ACL_STREAM_ATTR_PRIORITY).streamPriority, 7);
	/* by their other names */
	sys_eq(priority_of(s), 7);
	acl_ok(aclrtGetStreamOverflowSwitch(s, &on));
	sys_eq(on, 1);
	/* another stream has its own */
	sys_eq(get(other, ACL_STREAM_ATTR_USER_CUSTOM_TAG).userCustomTag, 0);
	sys_eq(get(other, ACL_STREAM_ATTR_CACHE_OP_INFO).cacheOpInfoSwitch, 0);
	sys_eq(get(NULL, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK).overflowSwitch, 0);
	set(NULL, ACL_STREAM_ATTR_USER_CUSTOM_TAG, 3);
	sys_eq(get(NULL, ACL_STREAM_ATTR_USER_CUSTOM_TAG).userCustomTag, 3);
	acl_ok(aclrtDestroyStream(other));
	acl_ok(aclrtDestroyStream(s));
	/* and so has one in the place of an old one */
	acl_ok(aclrtCreateStream(&s));
	sys_eq(get(s, ACL_STREAM_ATTR_CACHE_OP_INFO).cacheOpInfoSwitch, 0);
	acl_ok(aclrtDestroyStream(s));
}

static void bad_attributes(void **state)
{
	aclrtStreamAttrValue v;
	aclrtStream s;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	memset(&v, 0, sizeof(v));
	acl_fails(aclrtSetStreamAttribute(s, ACL_STREAM_ATTR_PRIORITY, NULL),
		  ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetStreamAttribute(s, ACL_STREAM_ATTR_PRIORITY, NULL),
		  ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetStreamAttribute(s, (aclrtStreamAttr)0, &v), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtGetStreamAttribute(s, (aclrtStreamAttr)6, &v), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtSetStreamAttribute(&v, ACL_STREAM_ATTR_PRIORITY, &v),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtGetStreamAttribute(&v, ACL_STREAM_ATTR_PRIORITY, &v),
		  ACL_ERROR_RT_PARAM_INVALID);
	v.failureMode = 8;
	acl_fails(aclrtSetStreamAttribute(s, ACL_STREAM_ATTR_PRIORITY, &v),
		  ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetStreamAttribute(s, ACL_STREAM_ATTR_CACHE_OP_INFO, &v),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtSetStreamAttribute(s, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &v),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtSetStreamAttribute(s, ACL_STREAM_ATTR_FAILURE_MODE, &v),
		  ACL_ERROR_INVALID_PARAM);
	v.failureMode = ACL_STOP_ON_FAILURE;
	acl_fails(aclrtSetStreamAttribute(NULL, ACL_STREAM_ATTR_FAILURE_MODE, &v),
		  ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtDestroyStream(s));
	acl_fails(aclrtGetStreamAttribute(s, ACL_STREAM_ATTR_PRIORITY, &v),
		  ACL_ERROR_RT_PARAM_INVALID);
}

/* ---- Without a device ---------------------------------------------------- */

static aclrtStreamConfigHandle *w_config;
static aclrtStreamAttrValue w_value;
static aclrtStream w_stream;

ACL_CALL(n_v2, aclrtCreateStreamV2(&w_stream, w_config));
ACL_CALL(n_set, aclrtSetStreamAttribute(NULL, ACL_STREAM_ATTR_PRIORITY, &w_value));
ACL_CALL(n_get, aclrtGetStreamAttribute(NULL, ACL_STREAM_ATTR_PRIORITY, &w_value));
ACL_CALL(n_abort, aclrtDeviceTaskAbort(1, 0));

static const struct acl_call *const needs_device[] = { &n_v2, &n_set, &n_get, &n_abort };

static void *without(void *arg)
{
	(void)arg;
	acl_all_fail(needs_device, 4, ACL_ERROR_RT_CONTEXT_NULL);
	return NULL;
}

static void no_device(void **state)
{
	pthread_t t;

	(void)state;
	w_config = aclrtCreateStreamConfigHandle();
	assert_int_equal(pthread_create(&t, NULL, without, NULL), 0);
	pthread_join(t, NULL);
	acl_ok(aclFinalize());
	without(NULL);
	acl_ok(aclInit(NULL));
	without(NULL);
	acl_ok(aclrtSetDevice(0));
	acl_ok(aclrtDestroyStreamConfigHandle(w_config));
}

/* ---- Aborting ------------------------------------------------------------ */

struct aborts {
	int32_t device[8];
	aclrtDeviceTaskAbortStage stage[8];
	uint32_t timeout[8];
	int32_t answer;
	int n;
};

static int32_t on_abort(int32_t device, aclrtDeviceTaskAbortStage stage, uint32_t timeout, void *args)
{
	struct aborts *a = args;

	a->device[a->n] = device;
	a->stage[a->n] = stage;
	a->timeout[a->n++] = timeout;
	return a->answer;
}

/* A stream that waits for what does not come. */
static aclrtStream blocked(aclrtEvent *e)
{
	aclrtStream s;

	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtCreateEventWithFlag(e, ACL_EVENT_SYNC));
	acl_ok(aclrtStreamWaitEvent(s, *e));
	return s;
}

static aclrtStreamStatus query(aclrtStream s)
{
	aclrtStreamStatus v = ACL_STREAM_STATUS_RESERVED;

	acl_ok(aclrtStreamQuery(s, &v));
	return v;
}

static void aborted(void **state)
{
	aclrtEvent e, e2, e3;
	static struct aborts a;
	aclrtStream s, s2, elsewhere;

	(void)state;
	acl_ok(aclrtSetDevice(1));
	elsewhere = blocked(&e3);
	acl_ok(aclrtSetDevice(0));
	s = blocked(&e);
	s2 = blocked(&e2);
	sys_nap(20);
	sys_eq(query(s), ACL_STREAM_STATUS_NOT_READY);
	acl_ok(aclrtSetDeviceTaskAbortCallback("test", on_abort, &a));
	acl_ok(aclrtDeviceTaskAbort(0, 5000));
	sys_eq(a.n, 2);
	sys_eq(a.device[0] | a.device[1], 0);
	sys_eq(a.stage[0], ACL_RT_DEVICE_TASK_ABORT_PRE);
	sys_eq(a.stage[1], ACL_RT_DEVICE_TASK_ABORT_POST);
	sys_eq(a.timeout[0], 5000);
	sys_eq(query(s), ACL_STREAM_STATUS_COMPLETE);
	sys_eq(query(s2), ACL_STREAM_STATUS_COMPLETE);
	/* it goes on working; and the neighbour never noticed */
	acl_ok(aclrtRecordEvent(e, s));
	acl_ok(aclrtSynchronizeStreamWithTimeout(s, 20000));
	acl_ok(aclrtSetDevice(1));
	sys_eq(query(elsewhere), ACL_STREAM_STATUS_NOT_READY);
	acl_ok(aclrtDeviceTaskAbort(1, 0));
	sys_eq(a.n, 4);
	sys_eq(a.device[3], 1);
	sys_eq(query(elsewhere), ACL_STREAM_STATUS_COMPLETE);
	acl_ok(aclrtSetDeviceTaskAbortCallback("test", NULL, NULL));
	acl_ok(aclrtDeviceTaskAbort(1, 0));
	sys_eq(a.n, 4);
	acl_ok(aclrtDestroyStream(elsewhere));
	acl_ok(aclrtDestroyEvent(e3));
	acl_ok(aclrtSetDevice(0));
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtDestroyStream(s2));
	acl_ok(aclrtDestroyEvent(e));
	acl_ok(aclrtDestroyEvent(e2));
}

static void abort_refused(void **state)
{
	static struct aborts a = { .answer = 3 };
	aclrtStream s;
	aclrtEvent e;

	(void)state;
	s = blocked(&e);
	acl_ok(aclrtSetDeviceTaskAbortCallback("no", on_abort, &a));
	acl_fails(aclrtDeviceTaskAbort(0, 0), ACL_ERROR_RT_TASK_ABORT_STOP);
	sys_eq(a.n, 1);
	sys_eq(query(s), ACL_STREAM_STATUS_NOT_READY);
	acl_ok(aclrtSetDeviceTaskAbortCallback("no", NULL, NULL));
	acl_fails(aclrtDeviceTaskAbort(2, 0), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtDeviceTaskAbort(-1, 0), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtDeviceTaskAbort(0, 36 * 60 * 1000 + 1), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDeviceTaskAbort(0, 36 * 60 * 1000));
	sys_eq(query(s), ACL_STREAM_STATUS_COMPLETE);
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtDestroyEvent(e));
}

/* ---- All of them --------------------------------------------------------- */

static int begin(void **state)
{
	(void)state;
	acl_ok(aclInit(NULL));
	acl_ok(aclrtSetDevice(0));
	return 0;
}

static int end(void **state)
{
	(void)state;
	acl_ok(aclFinalize());
	return 0;
}

#define acl_board_test(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		acl_board_test(from_config),
		acl_board_test(bad_config),
		acl_board_test(attributes),
		acl_board_test(bad_attributes),
		acl_board_test(no_device),
		acl_board_test(aborted),
		acl_board_test(abort_refused),
	};

	sys_start();
	return cmocka_run_group_tests(tests, sys_setup, sys_teardown_reset);
}
