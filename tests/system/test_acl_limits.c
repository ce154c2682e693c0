// SPDX-License-Identifier: MIT
/*
 * What a program may set of a device, and ask: access to peers, cores, stacks, floats
 * that overflow, how long an operator may take.  And who asks without having a device.
 */
#include <pthread.h>
#include <string.h>

#include "acltest.h"

/* ---- Peers --------------------------------------------------------------- */

static int can_reach(int a, int b)
{
	int32_t can = -1;

	acl_ok(aclrtDeviceCanAccessPeer(&can, a, b));
	return can;
}

static int32_t peer_status(int a, int b)
{
	int32_t s = -1;

	acl_ok(aclrtDevicePeerAccessStatus(a, b, &s));
	return s;
}

static void *enable_from_1(void *arg)
{
	(void)arg;
	acl_ok(aclrtSetDevice(1));
	acl_ok(aclrtDeviceEnablePeerAccess(0, 0));
	return NULL;
}

static void peers(void **state)
{
	pthread_t t;

	(void)state;
	sys_eq(can_reach(0, 1), 1);
	sys_eq(peer_status(0, 1), 0);
	acl_fails(aclrtDeviceDisablePeerAccess(1), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDeviceEnablePeerAccess(1, 0));
	acl_ok(aclrtDeviceEnablePeerAccess(1, 0));
	sys_eq(peer_status(0, 1), 1);
	sys_eq(peer_status(1, 0), 0);
	/* of the device, whichever thread asked */
	assert_int_equal(pthread_create(&t, NULL, enable_from_1, NULL), 0);
	pthread_join(t, NULL);
	sys_eq(peer_status(1, 0), 1);
	acl_ok(aclrtDeviceDisablePeerAccess(1));
	sys_eq(peer_status(0, 1), 0);
	sys_eq(peer_status(1, 0), 1);
	acl_fails(aclrtDeviceDisablePeerAccess(1), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtSetDevice(1));
	acl_ok(aclrtDeviceDisablePeerAccess(0));
	sys_eq(peer_status(1, 0), 0);
	acl_ok(aclrtSetDevice(0));
}

static void bad_peers(void **state)
{
	int32_t v;

	(void)state;
	acl_fails(aclrtDeviceCanAccessPeer(NULL, 0, 1), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDeviceCanAccessPeer(&v, 1, 1), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDeviceCanAccessPeer(&v, 0, 2), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtDeviceCanAccessPeer(&v, -1, 0), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtDeviceEnablePeerAccess(0, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDeviceEnablePeerAccess(1, 1), ACL_ERROR_FEATURE_UNSUPPORTED);
	acl_fails(aclrtDeviceEnablePeerAccess(2, 0), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtDeviceEnablePeerAccess(-1, 0), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtDeviceDisablePeerAccess(0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDeviceDisablePeerAccess(2), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtDevicePeerAccessStatus(0, 1, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDevicePeerAccessStatus(0, 2, &v), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtDevicePeerAccessStatus(-1, 0, &v), ACL_ERROR_RT_PARAM_INVALID);
}

/* ---- Without a device: before aclrtSetDevice, in a new thread, after aclFinalize --- */

static uint32_t w32;
static uint64_t w64;
static aclrtFloatOverflowMode w_mode;

ACL_CALL(n_enable, aclrtDeviceEnablePeerAccess(1, 0));
ACL_CALL(n_disable, aclrtDeviceDisablePeerAccess(1));
ACL_CALL(n_sat, aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN));
ACL_CALL(n_get_sat, aclrtGetDeviceSatMode(&w_mode));
ACL_CALL(n_overflow, aclrtSetStreamOverflowSwitch(NULL, 1));
ACL_CALL(n_get_overflow, aclrtGetStreamOverflowSwitch(NULL, &w32));
ACL_CALL(n_stream_set, aclrtSetStreamResLimit(NULL, ACL_RT_DEV_RES_CUBE_CORE, 1));
ACL_CALL(n_stream_get, aclrtGetStreamResLimit(NULL, ACL_RT_DEV_RES_CUBE_CORE, &w32));
ACL_CALL(n_stream_reset, aclrtResetStreamResLimit(NULL));
ACL_CALL(n_use, aclrtUseStreamResInCurrentThread(NULL));
ACL_CALL(n_unuse, aclrtUnuseStreamResInCurrentThread(NULL));
ACL_CALL(n_res, aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &w32));
ACL_CALL(n_timeout, aclrtSetOpExecuteTimeOutV2(1, &w64));
ACL_CALL(n_interval, aclrtGetOpTimeOutInterval(&w64));
/* of a device that nobody has set */
ACL_CALL(n_device_set, aclrtSetDeviceResLimit(1, ACL_RT_DEV_RES_CUBE_CORE, 1));
ACL_CALL(n_device_get, aclrtGetDeviceResLimit(1, ACL_RT_DEV_RES_CUBE_CORE, &w32));
ACL_CALL(n_device_reset, aclrtResetDeviceResLimit(1));

static const struct acl_call *const needs_device[] = {
	&n_enable, &n_disable, &n_sat, &n_get_sat, &n_overflow, &n_get_overflow, &n_stream_set,
	&n_stream_get, &n_stream_reset, &n_use, &n_unuse, &n_res, &n_timeout, &n_interval,
	&n_device_set, &n_device_get, &n_device_reset,
};

#define NEED	(sizeof(needs_device) / sizeof(*needs_device))

static void *without(void *arg)
{
	(void)arg;
	acl_all_fail(needs_device, NEED, ACL_ERROR_RT_CONTEXT_NULL);
	return NULL;
}

static void no_device(void **state)
{
	pthread_t t;

	(void)state;
	/* this thread has one, another has not */
	assert_int_equal(pthread_create(&t, NULL, without, NULL), 0);
	pthread_join(t, NULL);
	acl_ok(aclFinalize());
	without(NULL);
	acl_ok(aclInit(NULL));
	without(NULL);
	acl_ok(aclrtSetDevice(0));
}

/* ---- Limits -------------------------------------------------------------- */

static uint32_t device_has(int32_t id, aclrtDevResLimitType type)
{
	uint32_t v = 99;

	acl_ok(aclrtGetDeviceResLimit(id, type, &v));
	return v;
}

static uint32_t stream_has(aclrtStream s, aclrtDevResLimitType type)
{
	uint32_t v = 99;

	acl_ok(aclrtGetStreamResLimit(s, type, &v));
	return v;
}

static uint32_t thread_has(aclrtDevResLimitType type)
{
	uint32_t v = 99;

	acl_ok(aclrtGetResInCurrentThread(type, &v));
	return v;
}

#define CUBE	ACL_RT_DEV_RES_CUBE_CORE
#define VECTOR	ACL_RT_DEV_RES_VECTOR_CORE

static void core_limits(void **state)
{
	aclrtStream s, s2;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	sys_eq(device_has(0, CUBE), 2);
	sys_eq(device_has(0, VECTOR), 4);
	acl_ok(aclrtSetDeviceResLimit(0, VECTOR, 3));
	sys_eq(device_has(0, VECTOR), 3);
	sys_eq(device_has(0, CUBE), 2);
	sys_eq(stream_has(s, VECTOR), 3);
	sys_eq(thread_has(VECTOR), 3);
	acl_ok(aclrtSetStreamResLimit(s, VECTOR, 2));
	sys_eq(stream_has(s, VECTOR), 2);
	sys_eq(stream_has(NULL, VECTOR), 3);
	sys_eq(thread_has(VECTOR), 3);
	acl_ok(aclrtUseStreamResInCurrentThread(s));
	sys_eq(thread_has(VECTOR), 2);
	sys_eq(thread_has(CUBE), 2);
	acl_ok(aclrtUnuseStreamResInCurrentThread(NULL));	/* another's */
	sys_eq(thread_has(VECTOR), 2);
	acl_ok(aclrtUnuseStreamResInCurrentThread(s));
	sys_eq(thread_has(VECTOR), 3);
	acl_ok(aclrtUseStreamResInCurrentThread(s));
	acl_ok(aclrtResetStreamResLimit(s));
	sys_eq(thread_has(VECTOR), 3);
	acl_ok(aclrtSetStreamResLimit(s, VECTOR, 1));
	sys_eq(thread_has(VECTOR), 1);
	/* with the stream goes what it had, even from its successor in the same place */
	acl_ok(aclrtDestroyStream(s));
	sys_eq(thread_has(VECTOR), 3);
	acl_ok(aclrtCreateStream(&s2));
	sys_eq(stream_has(s2, VECTOR), 3);
	acl_ok(aclrtDestroyStream(s2));
	acl_ok(aclrtResetDeviceResLimit(0));
	sys_eq(device_has(0, VECTOR), 4);
	sys_eq(thread_has(VECTOR), 4);
}

static void bad_core_limits(void **state)
{
	aclrtStream s, gone;
	uint32_t v;

	(void)state;
	acl_ok(aclrtCreateStream(&gone));
	acl_ok(aclrtDestroyStream(gone));
	acl_ok(aclrtCreateStream(&s));
	acl_fails(aclrtSetDeviceResLimit(0, CUBE, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtSetDeviceResLimit(0, CUBE, 3), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtSetDeviceResLimit(0, (aclrtDevResLimitType)2, 1),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtSetDeviceResLimit(2, CUBE, 1), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtGetDeviceResLimit(0, (aclrtDevResLimitType)-1, &v),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtGetDeviceResLimit(0, CUBE, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetDeviceResLimit(-1, CUBE, &v), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtResetDeviceResLimit(2), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtSetStreamResLimit(s, VECTOR, 5), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtSetStreamResLimit(s, (aclrtDevResLimitType)2, 1),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtGetStreamResLimit(s, (aclrtDevResLimitType)2, &v),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtGetStreamResLimit(s, CUBE, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetResInCurrentThread((aclrtDevResLimitType)2, &v),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtGetResInCurrentThread(CUBE, NULL), ACL_ERROR_INVALID_PARAM);
	if (gone != s) {
		acl_fails(aclrtSetStreamResLimit(gone, CUBE, 1), ACL_ERROR_RT_PARAM_INVALID);
		acl_fails(aclrtGetStreamResLimit(gone, CUBE, &v), ACL_ERROR_RT_PARAM_INVALID);
		acl_fails(aclrtResetStreamResLimit(gone), ACL_ERROR_RT_PARAM_INVALID);
		acl_fails(aclrtUseStreamResInCurrentThread(gone), ACL_ERROR_RT_PARAM_INVALID);
		acl_fails(aclrtUnuseStreamResInCurrentThread(gone), ACL_ERROR_RT_PARAM_INVALID);
	}
	acl_fails(aclrtSetStreamResLimit(&v, CUBE, 1), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDestroyStream(s));
}

static size_t limit(aclrtDeviceLimit l)
{
	size_t v = 0;

	acl_ok(aclrtDeviceGetLimit(l, &v));
	return v;
}

static void device_limits(void **state)
{
	static const struct {
		aclrtDeviceLimit l;
		size_t set, get;
	} t[] = {
		{ ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE, 256, 8192 },
		{ ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE, 257, 384 * 32 },
		{ ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE, 1152, 36864 },
		{ ACL_RT_DEV_LIMIT_SIMT_DVG_WARP_STACK_SIZE, 512, 512 },
		{ ACL_RT_DEV_LIMIT_SIMT_DVG_WARP_STACK_SIZE, 1, 128 },
		{ ACL_RT_DEV_LIMIT_SIMT_DVG_WARP_STACK_SIZE, 1024, 1024 },
		{ ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, 40000, 48 << 10 },
		{ ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, 128 << 10, 128 << 10 },
		{ ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, 0, 32 << 10 },
		{ ACL_RT_DEV_LIMIT_SIMD_PRINTF_FIFO_SIZE_PER_CORE, 1025, 1032 },
		{ ACL_RT_DEV_LIMIT_SIMD_PRINTF_FIFO_SIZE_PER_CORE, 64 << 20, 64 << 20 },
		{ ACL_RT_DEV_LIMIT_SIMD_PRINTF_FIFO_SIZE_PER_CORE, 32 << 10, 32 << 10 },
		{ ACL_RT_DEV_LIMIT_SIMT_PRINTF_FIFO_SIZE, 1 << 20, 1 << 20 },
		{ ACL_RT_DEV_LIMIT_SIMT_PRINTF_FIFO_SIZE, 2 << 20, 2 << 20 },
	};
	static const struct {
		aclrtDeviceLimit l;
		size_t v;
		aclError want;
	} bad[] = {
		{ ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, (128 << 10) + 1, ACL_ERROR_RT_PARAM_INVALID },
		{ ACL_RT_DEV_LIMIT_SIMD_PRINTF_FIFO_SIZE_PER_CORE, 1023, ACL_ERROR_RT_PARAM_INVALID },
		{ ACL_RT_DEV_LIMIT_SIMD_PRINTF_FIFO_SIZE_PER_CORE, (64 << 20) + 1, ACL_ERROR_RT_PARAM_INVALID },
		{ ACL_RT_DEV_LIMIT_SIMT_PRINTF_FIFO_SIZE, (1 << 20) - 1, ACL_ERROR_RT_PARAM_INVALID },
		{ ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE, UINT32_MAX, ACL_ERROR_RT_PARAM_INVALID },
		{ ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE, (size_t)UINT32_MAX + 1, ACL_ERROR_INVALID_PARAM },
		{ (aclrtDeviceLimit)5, 1, ACL_ERROR_INVALID_PARAM },
		{ (aclrtDeviceLimit)-1, 1, ACL_ERROR_INVALID_PARAM },
	};
	size_t i, v;

	(void)state;
	sys_eq(limit(ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE), 1152 * 32);
	sys_eq(limit(ACL_RT_DEV_LIMIT_SIMT_DVG_WARP_STACK_SIZE), 1024);
	sys_eq(limit(ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE), 32 << 10);
	sys_eq(limit(ACL_RT_DEV_LIMIT_SIMD_PRINTF_FIFO_SIZE_PER_CORE), 32 << 10);
	sys_eq(limit(ACL_RT_DEV_LIMIT_SIMT_PRINTF_FIFO_SIZE), 2 << 20);
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		acl_ok(aclrtDeviceSetLimit(t[i].l, t[i].set));
		sys_true(limit(t[i].l) == t[i].get,
			 "%zu for limit %d: %zu", t[i].set, (int)t[i].l, limit(t[i].l));
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		acl_fails(aclrtDeviceSetLimit(bad[i].l, bad[i].v), bad[i].want);
	/* one of the two stacks of SIMT there must be */
	acl_ok(aclrtDeviceSetLimit(ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE, 0));
	acl_fails(aclrtDeviceSetLimit(ACL_RT_DEV_LIMIT_SIMT_DVG_WARP_STACK_SIZE, 0),
		  ACL_ERROR_RT_PARAM_INVALID);
	sys_eq(limit(ACL_RT_DEV_LIMIT_SIMT_DVG_WARP_STACK_SIZE), 1024);
	acl_ok(aclrtDeviceSetLimit(ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE, 1152));
	acl_fails(aclrtDeviceGetLimit((aclrtDeviceLimit)5, &v), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDeviceGetLimit(ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, NULL),
		  ACL_ERROR_INVALID_PARAM);
}

/* ---- Overflow and time --------------------------------------------------- */

static void overflow(void **state)
{
	aclrtFloatOverflowMode mode;
	aclrtStream s;
	uint32_t on;

	(void)state;
	acl_ok(aclrtGetDeviceSatMode(&mode));
	sys_eq(mode, ACL_RT_OVERFLOW_MODE_INFNAN);
	acl_ok(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN));
	acl_fails(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION),
		  ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_fails(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_UNDEF), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtSetDeviceSatMode((aclrtFloatOverflowMode)-1), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtGetDeviceSatMode(NULL), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtGetStreamOverflowSwitch(s, &on));
	sys_eq(on, 0);
	acl_ok(aclrtSetStreamOverflowSwitch(s, 1));
	acl_ok(aclrtGetStreamOverflowSwitch(s, &on));
	sys_eq(on, 1);
	acl_ok(aclrtGetStreamOverflowSwitch(NULL, &on));
	sys_eq(on, 0);
	acl_fails(aclrtSetStreamOverflowSwitch(s, 2), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtGetStreamOverflowSwitch(s, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetStreamOverflowSwitch(&on, 1), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtGetStreamOverflowSwitch(&on, &on), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDestroyStream(s));
}

static uint32_t timeout_ms(void)
{
	uint32_t ms = 0;

	acl_ok(aclrtGetOpExecuteTimeout(&ms));
	return ms;
}

static void op_timeout(void **state)
{
	uint64_t tick, us;

	(void)state;
	acl_ok(aclrtGetOpTimeOutInterval(&tick));
	sys_eq(tick, 4294967);
	sys_eq(timeout_ms(), 1090921);		/* documented as 1091 s */
	acl_ok(aclrtSetOpExecuteTimeOutV2(1, &us));
	sys_eq(us, tick);
	sys_eq(timeout_ms(), 4294);
	acl_ok(aclrtSetOpExecuteTimeOutV2(tick + 1, &us));
	sys_eq(us, 8589934);
	acl_ok(aclrtSetOpExecuteTimeOutV2(UINT64_MAX, &us));
	sys_eq(us, 1090921693);
	acl_ok(aclrtSetOpExecuteTimeOut(10));
	sys_eq(timeout_ms(), 12884);
	acl_ok(aclrtSetOpExecuteTimeOutWithMs(20000));
	sys_eq(timeout_ms(), 21474);
	acl_ok(aclrtSetOpExecuteTimeOut(UINT32_MAX));
	sys_eq(timeout_ms(), 1090921);
	acl_ok(aclrtSetOpExecuteTimeOutWithMs(1));
	acl_ok(aclrtSetOpExecuteTimeOutV2(0, &us));
	sys_eq(us, 1090921693);
	acl_fails(aclrtSetOpExecuteTimeOutV2(1, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetOpTimeOutInterval(NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetOpExecuteTimeout(NULL), ACL_ERROR_INVALID_PARAM);
	sys_eq(timeout_ms(), 1090921);
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
		acl_board_test(peers),
		acl_board_test(bad_peers),
		acl_board_test(no_device),
		acl_board_test(core_limits),
		acl_board_test(bad_core_limits),
		acl_board_test(device_limits),
		acl_board_test(overflow),
		acl_board_test(op_timeout),
	};

	sys_start();
	return cmocka_run_group_tests(tests, sys_setup, sys_teardown_reset);
}
