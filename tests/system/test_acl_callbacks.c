// SPDX-License-Identifier: MIT
/*
 * Functions of the program's that hear of failed tasks, and of devices and streams
 * that come and go; and what the device says of its last failure.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "acltest.h"

/* ---- Devices and streams ------------------------------------------------- */

#define MOST	32

struct heard {
	int n;
	int state[MOST];
	int32_t device[MOST];
	aclrtStream stream[MOST];
};

static void on_device(int32_t device, aclrtDeviceState state, void *args)
{
	struct heard *h = args;

	if (h->n == MOST)
		return;
	h->device[h->n] = device;
	h->state[h->n++] = state;
}

static void on_stream(aclrtStream s, aclrtStreamState state, void *args)
{
	struct heard *h = args;
	int32_t id;

	/* it can be used: that is what PRE and POST are for */
	if (state == ACL_RT_STREAM_STATE_CREATE_POST)
		(void)aclrtStreamGetId(s, &id);
	if (h->n == MOST)
		return;
	h->stream[h->n] = s;
	h->state[h->n++] = state;
}

static void device_states(void **state)
{
	static struct heard h, other;

	(void)state;
	acl_ok(aclrtRegDeviceStateCallback("a", on_device, &h));
	acl_ok(aclrtRegDeviceStateCallback("b", on_device, &other));
	acl_ok(aclrtSetDevice(1));
	sys_eq(h.n, 2);
	sys_eq(h.state[0], ACL_RT_DEVICE_STATE_SET_PRE);
	sys_eq(h.state[1], ACL_RT_DEVICE_STATE_SET_POST);
	sys_true(h.device[0] == 1 && h.device[1] == 1, "device");
	acl_ok(aclrtResetDevice(1));
	sys_eq(h.n, 4);
	sys_eq(h.state[2], ACL_RT_DEVICE_STATE_RESET_PRE);
	sys_eq(h.state[3], ACL_RT_DEVICE_STATE_RESET_POST);
	sys_eq(other.n, 4);
	acl_ok(aclrtRegDeviceStateCallback("a", NULL, NULL));
	acl_ok(aclrtSetDevice(1));
	acl_ok(aclrtResetDeviceForce(1));
	sys_eq(h.n, 4);
	sys_eq(other.n, 8);
	acl_ok(aclrtRegDeviceStateCallback("b", NULL, NULL));
	acl_ok(aclrtSetDevice(0));
}

/* Limits are the device's: with it they go. */
static void device_comes_new(void **state)
{
	uint32_t v;

	(void)state;
	acl_ok(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, 1));
	acl_ok(aclrtSetDevice(0));
	acl_ok(aclrtResetDevice(0));
	acl_ok(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, &v));
	sys_eq(v, 1);
	acl_ok(aclrtResetDevice(0));
	acl_ok(aclrtSetDevice(0));
	acl_ok(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, &v));
	sys_eq(v, 4);
}

static void stream_states(void **state)
{
	static struct heard h;
	aclrtStream s, def;
	aclrtContext ctx, old;

	(void)state;
	acl_ok(aclrtRegStreamStateCallback("s", on_stream, &h));
	acl_ok(aclrtCreateStream(&s));
	sys_eq(h.n, 1);
	sys_true(h.stream[0] == s && h.state[0] == ACL_RT_STREAM_STATE_CREATE_POST, "created");
	acl_ok(aclrtDestroyStream(s));
	sys_eq(h.n, 2);
	sys_true(h.stream[1] == s && h.state[1] == ACL_RT_STREAM_STATE_DESTROY_PRE, "destroyed");
	/* default streams are streams */
	acl_ok(aclrtGetCurrentContext(&old));
	acl_ok(aclrtCreateContext(&ctx, 0));
	acl_ok(aclrtCtxGetCurrentDefaultStream(&def));
	sys_eq(h.n, 3);
	sys_true(h.stream[2] == def && h.state[2] == ACL_RT_STREAM_STATE_CREATE_POST,
		 "default, created");
	acl_ok(aclrtDestroyContext(ctx));
	sys_eq(h.n, 4);
	sys_true(h.stream[3] == def && h.state[3] == ACL_RT_STREAM_STATE_DESTROY_PRE,
		 "default, destroyed");
	acl_ok(aclrtSetCurrentContext(old));
	acl_ok(aclrtRegStreamStateCallback("s", NULL, NULL));
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtDestroyStreamForce(s));
	sys_eq(h.n, 4);
}

static int32_t never(int32_t device, aclrtDeviceTaskAbortStage stage, uint32_t timeout, void *args)
{
	(void)device;
	(void)stage;
	(void)timeout;
	(void)args;
	return 0;
}

static void registries(void **state)
{
	struct heard h;
	char name[16];
	int i;

	(void)state;
	acl_fails(aclrtRegDeviceStateCallback(NULL, on_device, &h), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtRegDeviceStateCallback("", on_device, &h), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtRegStreamStateCallback(NULL, on_stream, &h), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtRegStreamStateCallback("", NULL, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetDeviceTaskAbortCallback(NULL, never, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetDeviceTaskAbortCallback("", never, NULL), ACL_ERROR_INVALID_PARAM);
	/* one function a name, in each of the three */
	acl_ok(aclrtSetDeviceTaskAbortCallback("x", never, NULL));
	acl_fails(aclrtSetDeviceTaskAbortCallback("x", never, NULL), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtRegDeviceStateCallback("x", on_device, &h));
	acl_fails(aclrtRegDeviceStateCallback("x", on_device, &h), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtRegDeviceStateCallback("x", NULL, NULL));
	acl_ok(aclrtRegDeviceStateCallback("x", NULL, NULL));
	acl_ok(aclrtSetDeviceTaskAbortCallback("x", NULL, NULL));
	for (i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		acl_ok(aclrtSetDeviceTaskAbortCallback(name, never, NULL));
	}
	acl_fails(aclrtSetDeviceTaskAbortCallback("one more", never, NULL),
		  ACL_ERROR_STORAGE_OVER_LIMIT);
	for (i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		acl_ok(aclrtSetDeviceTaskAbortCallback(name, NULL, NULL));
	}
}

/* ---- Failed tasks -------------------------------------------------------- */

static struct {
	atomic_int n;
	uint32_t task, stream, thread, device, code;
} got;
static atomic_int got_b;

static void on_exception(aclrtExceptionInfo *e)
{
	got.task = aclrtGetTaskIdFromExceptionInfo(e);
	got.stream = aclrtGetStreamIdFromExceptionInfo(e);
	got.thread = aclrtGetThreadIdFromExceptionInfo(e);
	got.device = aclrtGetDeviceIdFromExceptionInfo(e);
	got.code = aclrtGetErrorCodeFromExceptionInfo(e);
	atomic_fetch_add(&got.n, 1);
}

static void on_exception_b(aclrtExceptionInfo *e)
{
	(void)e;
	atomic_fetch_add(&got_b, 1);
}

/* A wait that is over after a second, without what it waited for. */
static uint32_t fail_once(aclrtStream s)
{
	int64_t begin = npuemu_now_ns();
	uint32_t task = 0;
	aclrtEvent e;

	acl_ok(aclrtCreateEventWithFlag(&e, ACL_EVENT_SYNC));
	acl_ok(aclrtStreamWaitEventWithTimeout(s, e, 1));
	acl_ok(aclrtGetThreadLastTaskId(&task));
	sys_true(aclrtSynchronizeStream(s) != ACL_SUCCESS, "nothing failed");
	sys_true(npuemu_now_ns() - begin < 8000000000ll || sys_slow(), "it was over after %lld ms",
		 (long long)(npuemu_now_ns() - begin) / 1000000);
	acl_ok(aclrtDestroyEvent(e));
	return task;
}

static void exceptions(void **state)
{
	aclrtErrorInfo info;
	aclrtStream s;
	uint32_t task;
	int32_t id;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtStreamGetId(s, &id));
	memset(&info, 0x55, sizeof(info));
	acl_ok(aclrtGetErrorVerbose(0, &info));
	sys_true(info.errorType == ACL_RT_NO_ERROR && !info.tryRepair && !info.hasDetail,
		 "error before");
	acl_ok(aclrtExceptionInfoCallbackRegister(on_exception));
	acl_ok(aclrtExceptionInfoCallbackRegister(on_exception));	/* once all the same */
	acl_ok(aclrtSetExceptionInfoCallback(on_exception_b));
	task = fail_once(s);
	sys_eq(atomic_load(&got.n), 1);
	sys_eq(atomic_load(&got_b), 1);
	sys_eq(got.task, task);
	sys_eq(got.stream, id);
	sys_eq(got.device, 0);
	sys_true(got.thread && got.thread != UINT32_MAX, "thread %u", got.thread);
	sys_true(got.code >= 107000 && got.code < 600000, "code %u", got.code);
	acl_ok(aclrtGetErrorVerbose(0, &info));
	sys_eq(info.errorType, ACL_RT_ERROR_OTHERS);
	acl_ok(aclrtGetErrorVerbose(1, &info));
	sys_eq(info.errorType, ACL_RT_NO_ERROR);
	acl_ok(aclrtRepairError(0, &info));
	acl_ok(aclrtGetErrorVerbose(0, &info));
	sys_eq(info.errorType, ACL_RT_NO_ERROR);
	/* two of the same function, in the two places, are two calls */
	acl_ok(aclrtSetExceptionInfoCallback(on_exception));
	fail_once(s);
	sys_eq(atomic_load(&got.n), 3);
	acl_ok(aclrtSetExceptionInfoCallback(NULL));
	acl_ok(aclrtExceptionInfoCallbackUnregister(on_exception));
	acl_ok(aclrtExceptionInfoCallbackUnregister(on_exception));
	fail_once(s);
	sys_eq(atomic_load(&got.n), 3);
	sys_eq(atomic_load(&got_b), 1);
	acl_ok(aclrtGetErrorVerbose(0, &info));
	info.errorType = ACL_RT_NO_ERROR;
	acl_ok(aclrtRepairError(0, &info));
	acl_ok(aclrtDestroyStream(s));
}

static void bad_exceptions(void **state)
{
	aclrtErrorInfo info;

	(void)state;
	sys_eq(aclrtGetTaskIdFromExceptionInfo(NULL), UINT32_MAX);
	sys_eq(aclrtGetStreamIdFromExceptionInfo(NULL), UINT32_MAX);
	sys_eq(aclrtGetThreadIdFromExceptionInfo(NULL), UINT32_MAX);
	sys_eq(aclrtGetDeviceIdFromExceptionInfo(NULL), UINT32_MAX);
	sys_eq(aclrtGetErrorCodeFromExceptionInfo(NULL), UINT32_MAX);
	acl_fails(aclrtExceptionInfoCallbackRegister(NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtExceptionInfoCallbackUnregister(NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetErrorVerbose(0, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetErrorVerbose(2, &info), ACL_ERROR_RT_INVALID_DEVICEID);
	memset(&info, 0, sizeof(info));
	acl_fails(aclrtRepairError(0, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtRepairError(-1, &info), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtRepairError(1, &info), ACL_ERROR_RT_CONTEXT_NULL);
	info.errorType = ACL_RT_ERROR_OTHERS;
	acl_fails(aclrtRepairError(0, &info), ACL_ERROR_RT_PARAM_INVALID);
	info.errorType = ACL_RT_ERROR_LINK;
	acl_ok(aclrtRepairError(0, &info));
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
		acl_board_test(device_states),
		acl_board_test(device_comes_new),
		acl_board_test(stream_states),
		acl_board_test(registries),
		acl_board_test(exceptions),
		acl_board_test(bad_exceptions),
	};

	sys_start();
	return cmocka_run_group_tests(tests, sys_setup, sys_teardown_reset);
}
