// SPDX-License-Identifier: MIT
/*
 * Models: order among runs, events that reach in from outside, tasks that change, runs
 * that are stopped or fail, models built by hand, branches, what a model tells of itself.
 */
#include <acl/acl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acltest.h"
#include "sys.h"

#define BYTES		1024u
#define RELAXED		ACL_MODEL_RI_CAPTURE_MODE_RELAXED
#define WHEN_ACTIVATED	0x7fffffffu

static void *device_memory(size_t bytes)
{
	void *p = NULL;

	acl_ok(aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	acl_ok(aclrtMemset(p, bytes, 0, bytes));
	return p;
}

static aclrtStream new_stream(void)
{
	aclrtStream s = NULL;

	acl_ok(aclrtCreateStream(&s));
	return s;
}

static aclrtStream new_persistent(void)
{
	aclrtStream s = NULL;

	acl_ok(aclrtCreateStreamWithConfig(&s, 0, ACL_STREAM_PERSISTENT));
	return s;
}

static aclmdlRI capture_end(aclrtStream s)
{
	aclmdlRI ri = NULL;

	acl_ok(aclmdlRICaptureEnd(s, &ri));
	return ri;
}

static uint32_t word(const void *p)
{
	uint32_t v = 0;

	acl_ok(aclrtMemcpy(&v, sizeof(v), p, sizeof(v), ACL_MEMCPY_DEVICE_TO_HOST));
	return v;
}

static void set_word(void *p, uint32_t v)
{
	acl_ok(aclrtMemcpy(p, sizeof(v), &v, sizeof(v), ACL_MEMCPY_HOST_TO_DEVICE));
}

/* *to += *from, a 32-bit word each. */
static void add(void *to, void *from, aclrtStream s)
{
	acl_ok(aclrtReduceAsync(to, from, 4, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, s, NULL));
}

static void set(void *p, uint32_t v, aclrtStream s)
{
	acl_ok(aclrtMemsetD32Async(p, 4, v, 1, s));
}

static unsigned int held;	/* times that hold() has begun */

static void hold(void *arg)
{
	__atomic_fetch_add(&held, 1, __ATOMIC_RELEASE);
	sem_wait(arg);
}

/* ---- Order among runs ----------------------------------------------------------------------- */

/* x = x * 2 + 1: any other order of the tasks, or two runs at once, gives something else. */
static aclmdlRI doubler(aclrtStream s, void *x, void *tmp, void *one)
{
	acl_ok(aclmdlRICaptureBegin(s, RELAXED));
	acl_ok(aclrtMemcpyAsync(tmp, 4, x, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, s));
	add(x, tmp, s);
	add(x, one, s);
	return capture_end(s);
}

static void in_order(void **state)
{
	char *d = device_memory(BYTES);
	aclrtStream a = new_stream(), b = new_stream();
	aclmdlRI ri;
	int i;

	(void)state;
	set_word(d + 8, 1);
	ri = doubler(a, d, d + 4, d + 8);
	sys_eq(word(d), 0);
	for (i = 0; i < 10; i++)
		acl_ok(aclmdlRIExecuteAsync(ri, a));
	acl_ok(aclrtSynchronizeStream(a));
	sys_eq(word(d), 1023);
	/* what came before, and what comes after, on the same stream */
	for (i = 0; i < 5; i++) {
		set(d, 7, a);
		acl_ok(aclmdlRIExecuteAsync(ri, a));
		acl_ok(aclrtMemcpyAsync(d + 64, 4, d, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, a));
		set(d, 0, a);
	}
	acl_ok(aclrtSynchronizeStream(a));
	sys_eq(word(d + 64), 15);
	/* two streams: never two runs at once */
	for (i = 0; i < 10; i++)
		acl_ok(aclmdlRIExecuteAsync(ri, i & 1 ? a : b));
	acl_ok(aclrtSynchronizeStream(a));
	acl_ok(aclrtSynchronizeStream(b));
	sys_eq(word(d), 1023);
	acl_ok(aclmdlRIDestroy(ri));
	acl_ok(aclrtDestroyStream(a));
	acl_ok(aclrtDestroyStream(b));
	acl_ok(aclrtFree(d));
}

/* ---- While it runs ------------------------------------------------------------------------------ */

static int ended[3];

static void on_end(void *arg)
{
	ended[*(int *)arg]++;
}

static void on_end_too(void *arg)
{
	ended[*(int *)arg]++;
}

static void running(void **state)
{
	static int zero, one = 1;
	int64_t deadline = sys_deadline();
	char *d = device_memory(BYTES);
	aclrtStream a = new_stream(), b = new_stream();
	aclrtStreamStatus status;
	aclmdlRI ri;
	sem_t gate;

	(void)state;
	memset(ended, 0, sizeof(ended));
	sem_init(&gate, 0, 0);
	acl_ok(aclmdlRICaptureBegin(a, RELAXED));
	acl_ok(aclrtLaunchHostFunc(a, hold, &gate));
	set(d, 3, a);
	ri = capture_end(a);
	acl_ok(aclmdlRIDestroyRegisterCallback(ri, on_end, &zero));
	acl_ok(aclmdlRIDestroyRegisterCallback(ri, on_end_too, &one));
	acl_fails(aclmdlRIDestroyRegisterCallback(ri, on_end, &one), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclmdlRIDestroyUnregisterCallback(ri, on_end_too));
	acl_fails(aclmdlRIDestroyUnregisterCallback(ri, on_end_too), ACL_ERROR_RT_PARAM_INVALID);
	held = 0;
	acl_ok(aclmdlRIExecuteAsync(ri, a));
	/* streams have no order among them: it has to be a that runs it, and b that waits */
	while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
		sys_true(sys_retry(deadline), "the model does not run");
	acl_ok(aclmdlRIExecuteAsync(ri, b));
	acl_fails(aclmdlRIDestroy(ri), ACL_ERROR_RT_MODEL_RUNNING);
	acl_fails(aclmdlRIUpdate(ri), ACL_ERROR_RT_MODEL_RUNNING);
	acl_fails(aclrtSynchronizeStreamWithTimeout(a, 30), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	acl_ok(aclrtStreamQuery(a, &status));
	sys_eq(status, ACL_STREAM_STATUS_NOT_READY);
	sys_eq(word(d), 0);
	/* the one that waits for its turn is given up, the other goes on */
	acl_ok(aclrtStreamAbort(b));
	acl_ok(aclrtSynchronizeStream(b));
	sem_post(&gate);
	acl_ok(aclrtSynchronizeStream(a));
	sys_eq(word(d), 3);
	acl_fails(aclmdlRIExecute(ri, 30), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	sem_post(&gate);
	acl_fails(aclmdlRIAbort(ri), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_ok(aclmdlRIDestroy(ri));
	sys_eq(ended[0], 1);
	sys_eq(ended[1], 0);
	sem_destroy(&gate);
	acl_ok(aclrtDestroyStream(a));
	acl_ok(aclrtDestroyStream(b));
	acl_ok(aclrtFree(d));
}

static void stopped(void **state)
{
	uint64_t *d = device_memory(BYTES);
	aclrtStream a = new_stream(), b = new_stream();
	aclrtEvent e;
	aclmdlRI ri;
	int i;

	(void)state;
	acl_ok(aclrtCreateEventExWithFlag(&e, ACL_EVENT_SYNC));
	acl_ok(aclmdlRICaptureBegin(a, RELAXED));
	acl_ok(aclrtRecordEvent(e, a));
	acl_ok(aclrtStreamWaitEvent(b, e));
	acl_ok(aclrtValueWait(d, 1, ACL_STREAM_WAIT_VALUE_EQ, b));
	set(d + 1, 9, b);
	acl_ok(aclrtRecordEvent(e, b));
	acl_ok(aclrtStreamWaitEvent(a, e));
	set(d + 2, 9, a);
	ri = capture_end(a);
	for (i = 0; i < 3; i++) {
		acl_ok(aclmdlRIExecuteAsync(ri, a));
		acl_ok(aclmdlRIExecuteAsync(ri, b));
		acl_fails(aclrtSynchronizeStreamWithTimeout(a, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
		acl_ok(aclrtStreamAbort(a));	/* the one of @b begins */
		acl_fails(aclrtSynchronizeStreamWithTimeout(b, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
		acl_ok(aclrtStreamAbort(b));
		sys_eq(word(d + 1), 0);
		sys_eq(word(d + 2), 0);
	}
	acl_ok(aclrtValueWrite(d, 1, 0, b));
	acl_ok(aclmdlRIExecuteAsync(ri, a));
	acl_ok(aclrtSynchronizeStream(a));
	sys_eq(word(d + 2), 9);
	acl_ok(aclmdlRIDestroy(ri));
	acl_ok(aclrtDestroyEvent(e));
	acl_ok(aclrtDestroyStream(a));
	acl_ok(aclrtDestroyStream(b));
	acl_ok(aclrtFree(d));
}

/* A task that fails is an error of the stream that executes, and the rest goes on. */
static void failing(void **state)
{
	char *d = device_memory(BYTES), *gone = device_memory(BYTES);
	aclrtStream a = new_stream(), b = new_stream();
	aclError got;
	aclmdlRI ri;

	(void)state;
	acl_ok(aclmdlRICaptureBegin(a, RELAXED));
	acl_ok(aclrtMemcpyAsync(gone, 64, d, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, a));
	set(d, 5, a);
	ri = capture_end(a);
	acl_ok(aclrtFree(gone));
	acl_ok(aclmdlRIExecuteAsync(ri, b));
	got = aclrtSynchronizeStream(b);
	sys_true(got, "a copy to memory that was freed went well");
	sys_true(strstr(aclGetRecentErrMsg(), "model"), "the model is not named");
	sys_eq(word(d), 5);
	acl_ok(aclrtSynchronizeStream(b));
	acl_ok(aclmdlRIDestroy(ri));
	acl_ok(aclrtDestroyStream(a));
	acl_ok(aclrtDestroyStream(b));
	acl_ok(aclrtFree(d));
}

/* ---- Events from outside -------------------------------------------------------------------------- */

static void external(void **state)
{
	const int k = sys_slow() ? 20 : 200;
	char *d = device_memory(BYTES);
	aclrtStream a = new_stream(), b = new_stream(), c = new_stream();
	aclrtEvent e, f;
	aclmdlRI first, second;
	sem_t gate;
	int i;

	(void)state;
	sem_init(&gate, 0, 0);
	acl_ok(aclrtCreateEventExWithFlag(&e, ACL_EVENT_SYNC));
	acl_ok(aclrtCreateEventExWithFlag(&f, ACL_EVENT_SYNC));
	set_word(d + 4, 1);
	/* c: wait (f); x += 1; record (e).  One model, then two that meet by e. */
	acl_ok(aclmdlRICaptureBegin(a, RELAXED));
	acl_ok(aclrtStreamWaitEventWithFlag(a, f, 0, ACL_EVENT_WAIT_EXTERNAL));
	add(d, d + 4, a);
	acl_ok(aclrtRecordEventWithFlag(e, a, ACL_EVENT_RECORD_EXTERNAL));
	first = capture_end(a);
	acl_ok(aclmdlRICaptureBegin(b, RELAXED));
	acl_ok(aclrtStreamWaitEventWithFlag(b, e, 0, ACL_EVENT_WAIT_EXTERNAL));
	acl_ok(aclrtMemcpyAsync(d + 8, 4, d, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, b));
	second = capture_end(b);
	for (i = 0; i < k; i++) {
		if (!(i % 10))
			acl_ok(aclrtLaunchHostFunc(c, hold, &gate));
		acl_ok(aclrtRecordEvent(f, c));
		acl_ok(aclmdlRIExecuteAsync(first, a));
		acl_ok(aclmdlRIExecuteAsync(second, b));
		if (!(i % 10))
			sem_post(&gate);
		acl_ok(aclrtSynchronizeStream(b));
		sys_eq(word(d + 8), i + 1);
		acl_ok(aclrtStreamWaitEvent(c, e));
	}
	acl_ok(aclrtSynchronizeEvent(e));
	acl_ok(aclmdlRIDestroy(first));	/* whose stream nobody has waited for */
	acl_ok(aclmdlRIDestroy(second));
	acl_ok(aclrtSynchronizeDevice());
	acl_ok(aclrtDestroyEvent(e));
	acl_ok(aclrtDestroyEvent(f));
	acl_ok(aclrtDestroyStream(a));
	acl_ok(aclrtDestroyStream(b));
	acl_ok(aclrtDestroyStream(c));
	acl_ok(aclrtFree(d));
	sem_destroy(&gate);
}

/* ---- Tasks that change ------------------------------------------------------------------------------ */

/* The way serving frameworks do it: the run waits for an event that the change ends with. */
static void updated(void **state)
{
	const int k = sys_slow() ? 50 : 1000;
	char *d = device_memory(BYTES), *pins;
	aclrtStream a = new_stream(), b = new_stream();
	aclrtTaskGrp grp, none = &grp;
	aclrtEvent e;
	aclmdlRI ri;
	int i;

	(void)state;
	acl_ok(aclrtMallocHost((void **)&pins, BYTES));
	acl_ok(aclrtCreateEventWithFlag(&e, ACL_EVENT_EXTERNAL));
	acl_fails(aclrtSynchronizeEvent(e), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_fails(aclmdlRICaptureTaskGrpBegin(a), ACL_ERROR_RT_STREAM_NOT_CAPTURED);
	acl_ok(aclmdlRICaptureBegin(a, RELAXED));
	acl_ok(aclrtStreamWaitEvent(a, e));
	acl_ok(aclrtResetEvent(e, a));
	acl_ok(aclmdlRICaptureTaskGrpBegin(a));
	acl_fails(aclmdlRICaptureTaskGrpBegin(a), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
	acl_fails(aclrtRecordEvent(e, a), ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT);
	set(d, 1, a);
	acl_ok(aclrtMemcpyAsync(d + 4, 4, d, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, a));
	acl_ok(aclmdlRICaptureTaskGrpEnd(a, &grp));
	acl_fails(aclmdlRICaptureTaskGrpEnd(a, &none), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
	set(d + 8, 2, a);
	acl_fails(aclmdlRICaptureTaskUpdateBegin(b, grp), ACL_ERROR_RT_MODEL_CAPTURED);
	ri = capture_end(a);

	acl_fails(aclmdlRICaptureTaskUpdateBegin(b, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclmdlRICaptureTaskUpdateBegin(b, none), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclmdlRICaptureTaskUpdateEnd(b), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
	acl_ok(aclmdlRICaptureTaskUpdateBegin(b, grp));
	acl_fails(aclmdlRICaptureTaskUpdateBegin(b, grp), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
	acl_fails(aclmdlRICaptureTaskUpdateBegin(a, grp), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
	acl_fails(aclrtMemcpyAsync(d + 4, 4, d, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, b), ACL_ERROR_RT_MODEL_UPDATE_FAILED);
	acl_fails(aclrtRecordEvent(e, b), ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT);
	acl_fails(aclmdlRIDestroy(ri), ACL_ERROR_RT_MODEL_RUNNING);
	acl_fails(aclrtDestroyStream(b), ACL_ERROR_RT_STREAM_MODEL);
	set(d, 3, b);
	acl_fails(aclmdlRICaptureTaskUpdateEnd(b), ACL_ERROR_RT_MODEL_UPDATE_FAILED);
	acl_ok(aclrtRecordEvent(e, b));
	acl_ok(aclmdlRIExecuteAsync(ri, a));
	acl_ok(aclrtSynchronizeStream(a));
	sys_eq(word(d + 4), 1);
	for (i = 0; i < k; i++) {
		if (i & 1)
			acl_ok(aclmdlRIExecuteAsync(ri, a));
		acl_ok(aclmdlRICaptureTaskUpdateBegin(b, grp));
		set(d + 16, 100 + (uint32_t)i, b);
		acl_ok(aclrtMemcpyAsync(d + 4, 4, d + 16, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, b));
		acl_ok(aclmdlRICaptureTaskUpdateEnd(b));
		acl_ok(aclrtRecordEvent(e, b));
		if (!(i & 1))
			acl_ok(aclmdlRIExecuteAsync(ri, a));
		acl_ok(aclrtMemcpyAsync(pins, 8, d + 4, 8, ACL_MEMCPY_DEVICE_TO_HOST, a));
		acl_ok(aclrtSynchronizeStream(a));
		sys_eq(*(uint32_t *)pins, 100 + i);
		sys_eq(*(uint32_t *)(pins + 4), 2);
	}
	acl_ok(aclmdlRIDestroy(ri));
	acl_fails(aclmdlRICaptureTaskUpdateBegin(b, grp), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDestroyEvent(e));
	acl_ok(aclrtDestroyStream(a));
	acl_ok(aclrtDestroyStream(b));
	acl_ok(aclrtFreeHost(pins));
	acl_ok(aclrtFree(d));
}

static void told(void **state)
{
	uint64_t *d = device_memory(BYTES);
	char name[64] = "x", text[65536] = "", path[] = "/tmp/npuemu-model-XXXXXX";
	aclrtStream a = new_stream(), b = new_stream(), lanes[4];
	aclmdlRITask t[8];
	aclmdlRITaskParams p;
	aclmdlRITaskType type;
	uint32_t n = 0, id = 0;
	aclrtEvent e;
	aclmdlRI ri;
	FILE *f;

	(void)state;
	acl_ok(aclrtCreateEventExWithFlag(&e, ACL_EVENT_SYNC));
	acl_ok(aclmdlRICaptureBegin(a, RELAXED));
	acl_ok(aclrtValueWrite(d, 4, 0, a));
	acl_ok(aclrtValueWait(d, 4, ACL_STREAM_WAIT_VALUE_GEQ, a));
	acl_ok(aclrtRecordEvent(e, a));
	set(d + 2, 6, a);
	acl_ok(aclrtStreamWaitEvent(b, e));
	acl_ok(aclrtRecordEvent(e, b));
	acl_ok(aclrtStreamWaitEvent(a, e));
	ri = capture_end(a);
	acl_ok(aclmdlRIGetStreams(ri, NULL, &n));
	sys_eq(n, 2);
	n = 1;
	acl_fails(aclmdlRIGetStreams(ri, lanes, &n), ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY);
	n = 4;
	acl_ok(aclmdlRIGetStreams(ri, lanes, &n));
	sys_eq(n, 2);
	n = 8;
	acl_ok(aclmdlRIGetTasksByStream(lanes[0], t, &n));
	sys_eq(n, 5);
	acl_fails(aclmdlRIGetTasksByStream(a, t, &n), ACL_ERROR_RT_STREAM_MODEL);
	acl_fails(aclrtDestroyStream(lanes[0]), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclmdlRITaskGetType(t[0], &type));
	sys_eq(type, ACL_MODEL_RI_TASK_VALUE_WRITE);
	acl_ok(aclmdlRITaskGetType(t[2], &type));
	sys_eq(type, ACL_MODEL_RI_TASK_EVENT_RECORD);
	acl_ok(aclmdlRITaskGetType(t[4], &type));
	sys_eq(type, ACL_MODEL_RI_TASK_EVENT_WAIT);
	acl_ok(aclmdlRITaskGetSeqId(t[3], &id));
	sys_eq(id, 3);
	acl_ok(aclmdlRITaskGetParams(t[2], &p));
	sys_true(p.eventRecordTaskParams.event == e, "another event");
	acl_ok(aclmdlRITaskGetParams(t[1], &p));
	sys_true(p.type == ACL_MODEL_RI_TASK_VALUE_WAIT && p.valueWaitTaskParams.devAddr == d &&
		 p.valueWaitTaskParams.value == 4, "not what was waited for");
	p.valueWaitTaskParams.value = 5;
	acl_ok(aclmdlRITaskSetParams(t[1], &p));
	acl_fails(aclmdlRITaskSetParams(t[0], &p), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclmdlRITaskGetParams(t[0], &p));
	sys_eq(p.valueWriteTaskParams.value, 4);
	p.valueWriteTaskParams.value = 5;
	p.valueWriteTaskParams.devAddr = (char *)d + 1;
	acl_fails(aclmdlRITaskSetParams(t[0], &p), ACL_ERROR_RT_ADDR_UNALIGNED);
	p.valueWriteTaskParams.devAddr = d;
	acl_ok(aclmdlRITaskSetParams(t[0], &p));
	acl_fails(aclmdlRITaskDisable(t[2]), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_ok(aclmdlRITaskDisable(t[3]));
	acl_ok(aclmdlRIExecute(ri, -1));	/* nothing of it is in force yet */
	sys_eq(word(d), 4);
	sys_eq(word(d + 2), 6);
	set_word(d + 2, 0);
	acl_ok(aclmdlRIUpdate(ri));
	acl_ok(aclmdlRIExecute(ri, -1));
	sys_eq(word(d), 5);
	sys_eq(word(d + 2), 0);

	acl_ok(aclmdlRIGetName(ri, sizeof(name), name));
	sys_true(!*name, "a name without one");
	acl_ok(aclmdlRISetName(ri, "a \"name\""));
	acl_ok(aclmdlRIGetName(ri, 4, name));
	sys_true(!strcmp(name, "a \""), "name is %s", name);
	acl_ok(aclmdlRIGetId(ri, &id));
	close(mkstemp(path));
	acl_ok(aclmdlRIDebugPrint(ri));
	acl_ok(aclmdlRIDebugJsonPrint(ri, path, ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE));
	acl_fails(aclmdlRIDebugJsonPrint(ri, "/no/such/place", 0), ACL_ERROR_RT_FILE_OPEN);
	acl_fails(aclmdlRIDebugJsonPrint(ri, path, 2), ACL_ERROR_INVALID_PARAM);
	f = fopen(path, "re");
	sys_true(f, "%s is not there", path);
	sys_true(fread(text, 1, sizeof(text) - 1, f) > 100, "it is short");
	fclose(f);
	unlink(path);
	sys_true(*text == '[' && strstr(text, "a \\\"name\\\"") && strstr(text, "EVENT_RECORD"), "not that: %.200s", text);
	acl_ok(aclmdlRIDestroy(ri));
	acl_fails(aclmdlRITaskGetType(t[0], &type), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclmdlRITaskDisable(NULL), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtDestroyEvent(e));
	acl_ok(aclrtDestroyStream(a));
	acl_ok(aclrtDestroyStream(b));
	acl_ok(aclrtFree(d));
}

/* ---- Conditions --------------------------------------------------------------------------------------- */

static aclmdlRI conditional(aclrtStream s, aclrtStream sub, char *d, aclmdlRICondTaskType type, uint32_t n,
			    uint64_t **cond)
{
	aclmdlRICaptureStatus status;
	aclmdlRICondTaskParams p = { .type = type, .size = n };
	aclmdlRI ri, branch[4];
	uint32_t i;

	acl_ok(aclmdlRICaptureBegin(s, RELAXED));
	acl_ok(aclmdlRICaptureGetInfo(s, &status, &ri));
	acl_ok(aclmdlRICondHandleCreate(ri, 1, type == ACL_MODEL_RI_COND_TYPE_WHILE ?
					ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT : (aclmdlRICondHandleFlag)0, &p.handle));
	acl_ok(aclmdlRICondHandleGetCondPtr(p.handle, cond));
	p.modelRIArray = branch;
	add(d, d + 4, s);
	acl_ok(aclmdlRIAddCondTask(p, s, 0));
	acl_fails(aclmdlRIAddCondTask(p, s, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclmdlRICaptureEnd(s, &ri), ACL_ERROR_RT_SUB_ACLGRAPH_IS_CAPTURING);
	for (i = 0; i < n; i++) {
		acl_ok(aclmdlRICaptureToModelRIBegin(sub, branch[i], RELAXED));
		set(d + 16, 10 + i, sub);
		if (type == ACL_MODEL_RI_COND_TYPE_WHILE) {
			add(d + 20, d + 4, sub);	/* how often */
			add(*cond, d + 8, sub);
		}
		sys_true(capture_end(sub) == branch[i], "another model");
		acl_fails(aclmdlRIDestroy(branch[i]), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
		acl_fails(aclmdlRIExecuteAsync(branch[i], s), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	}
	add(d, d + 4, s);
	return capture_end(s);
}

static void conditions(void **state)
{
	char *d = device_memory(BYTES);
	aclrtStream s = new_stream(), sub = new_stream();
	uint64_t *cond = NULL;
	aclmdlRI ri;
	uint32_t i;

	(void)state;
	set_word(d + 4, 1);
	ri = conditional(s, sub, d, ACL_MODEL_RI_COND_TYPE_IF, 2, &cond);
	for (i = 0; i < 4; i++) {
		set_word(cond, i & 1);
		acl_ok(aclmdlRIExecuteAsync(ri, s));
		acl_ok(aclrtSynchronizeStream(s));
		sys_eq(word(d + 16), i & 1 ? 10 : 11);
		sys_eq(word(d), 2 * (i + 1));
	}
	acl_ok(aclmdlRIDestroy(ri));
	ri = conditional(s, sub, d, ACL_MODEL_RI_COND_TYPE_SWITCH, 3, &cond);
	for (i = 0; i < 5; i++) {
		set_word(d + 16, 0);
		set_word(cond, i);
		acl_ok(aclmdlRIExecuteAsync(ri, s));
		acl_ok(aclrtSynchronizeStream(s));
		sys_eq(word(d + 16), i < 3 ? 10 + i : 0);
	}
	acl_ok(aclmdlRIDestroy(ri));
	/* the condition is 1 at the beginning of each run, -3 is added until it is 0 */
	ri = conditional(s, sub, d, ACL_MODEL_RI_COND_TYPE_WHILE, 1, &cond);
	set_word(d + 8, (uint32_t)-1);
	for (i = 0; i < 3; i++) {
		acl_ok(aclmdlRIExecuteAsync(ri, s));
		acl_ok(aclrtSynchronizeStream(s));
		sys_eq(word(d + 20), i + 1);
	}
	/* without an end: it is stopped */
	set_word(d + 8, 0);
	acl_ok(aclmdlRIExecuteAsync(ri, s));
	acl_fails(aclrtSynchronizeStreamWithTimeout(s, 30), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	acl_ok(aclrtStreamAbort(s));
	set_word(d + 8, (uint32_t)-1);
	set_word(d + 20, 0);
	acl_ok(aclmdlRIExecuteAsync(ri, s));
	acl_ok(aclrtSynchronizeStream(s));
	sys_eq(word(d + 20), 1);
	acl_ok(aclmdlRIDestroy(ri));
	acl_fails(aclmdlRICondHandleGetCondPtr(d, &cond), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtDestroyStream(sub));
	acl_ok(aclrtFree(d));
}

/* ---- Built by hand --------------------------------------------------------------------------------------- */

static void built(void **state)
{
	char *d = device_memory(BYTES);
	aclrtStream head = new_persistent(), yes = new_persistent(), no = new_persistent(), run = new_stream();
	aclrtEvent e;
	aclmdlRI ri;
	int i;

	(void)state;
	set_word(d + 4, 1);
	set_word(d + 8, 3);
	acl_ok(aclrtCreateEventWithFlag(&e, ACL_EVENT_SYNC));
	acl_fails(aclmdlRIBuildBegin(NULL, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclmdlRIBuildBegin(&ri, 1), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclmdlRIBuildBegin(&ri, 0));
	acl_fails(aclmdlRIBindStream(ri, run, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclmdlRIBindStream(ri, NULL, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclmdlRIBindStream(ri, head, 5), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclmdlRIBindStream(ri, head, 0));
	acl_fails(aclmdlRIBindStream(ri, head, 0), ACL_ERROR_RT_STREAM_MODEL);
	acl_ok(aclmdlRIBindStream(ri, yes, WHEN_ACTIVATED));
	acl_ok(aclmdlRIBindStream(ri, no, WHEN_ACTIVATED));
	/* x += 1; x == 3: y += 1, else z += 1 */
	add(d, d + 4, head);
	acl_ok(aclrtSwitchStream(d, ACL_RT_EQUAL, d + 8, ACL_RT_SWITCH_INT32, yes, no, head));
	add(d + 16, d + 4, yes);
	acl_ok(aclrtRecordEvent(e, yes));
	add(d + 20, d + 4, no);
	acl_ok(aclrtRecordEvent(e, no));
	acl_ok(aclrtStreamWaitEvent(head, e));
	acl_ok(aclrtResetEvent(e, head));
	acl_fails(aclrtActiveStream(run, head), ACL_ERROR_RT_STREAM_MODEL);
	acl_fails(aclrtActiveStream(yes, run), ACL_ERROR_RT_STREAM_MODEL);
	acl_fails(aclrtSwitchStream(&i, ACL_RT_EQUAL, d + 8, ACL_RT_SWITCH_INT32, yes, no, head),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclmdlRIBuildEnd(ri, NULL), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclmdlRIEndTask(ri, head));
	acl_fails(aclmdlRIExecuteAsync(ri, run), ACL_ERROR_RT_MODEL_EXECUTE);
	acl_ok(aclmdlRIBuildEnd(ri, NULL));
	acl_fails(aclmdlRIBuildEnd(ri, NULL), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemsetAsync(d, 4, 0, 4, head), ACL_ERROR_RT_STREAM_MODEL);
	acl_fails(aclrtDestroyStream(head), ACL_ERROR_RT_STREAM_MODEL);
	for (i = 0; i < 5; i++)
		acl_ok(aclmdlRIExecuteAsync(ri, run));
	acl_ok(aclrtSynchronizeStream(run));
	sys_eq(word(d), 5);
	sys_eq(word(d + 16), 1);
	sys_eq(word(d + 20), 4);
	acl_ok(aclmdlRIExecute(ri, -1));
	sys_eq(word(d), 6);
	acl_ok(aclmdlRIAbort(ri));	/* nothing runs */
	acl_ok(aclmdlRIUnbindStream(ri, head));
	acl_fails(aclmdlRIUnbindStream(ri, head), ACL_ERROR_RT_STREAM_MODEL);
	acl_fails(aclmdlRIExecuteAsync(ri, run), ACL_ERROR_RT_MODEL_EXECUTE);
	acl_ok(aclmdlRIDestroy(ri));
	/* they are ordinary streams again */
	set(d, 9, head);
	set(d + 4, 9, yes);
	acl_ok(aclrtSynchronizeStream(head));
	acl_ok(aclrtSynchronizeStream(yes));
	sys_eq(word(d), 9);
	acl_ok(aclrtDestroyEvent(e));
	acl_ok(aclrtDestroyStream(head));
	acl_ok(aclrtDestroyStream(yes));
	acl_ok(aclrtDestroyStream(no));
	acl_ok(aclrtDestroyStream(run));
	acl_ok(aclrtFree(d));
}

static void model_stopped(void **state)
{
	uint64_t *d = device_memory(BYTES);
	aclrtStream head = new_persistent(), run = new_stream();
	aclmdlRI ri;

	(void)state;
	acl_ok(aclmdlRIBuildBegin(&ri, 0));
	acl_ok(aclmdlRIBindStream(ri, head, 0));
	acl_ok(aclrtValueWait(d, 1, ACL_STREAM_WAIT_VALUE_EQ, head));
	set(d + 1, 4, head);
	acl_ok(aclmdlRIEndTask(ri, head));
	acl_ok(aclmdlRIBuildEnd(ri, NULL));
	acl_ok(aclmdlRIExecuteAsync(ri, run));
	acl_fails(aclrtSynchronizeStreamWithTimeout(run, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	acl_fails(aclmdlRIUnbindStream(ri, head), ACL_ERROR_RT_MODEL_RUNNING);
	acl_ok(aclmdlRIAbort(ri));
	acl_fails(aclrtSynchronizeStream(run), ACL_ERROR_RT_MODEL_ABORT_NORMAL);
	sys_eq(word(d + 1), 0);
	acl_ok(aclrtValueWrite(d, 1, 0, run));
	acl_ok(aclmdlRIExecuteAsync(ri, run));
	acl_ok(aclrtSynchronizeStream(run));
	sys_eq(word(d + 1), 4);
	acl_ok(aclmdlRIDestroy(ri));
	acl_ok(aclrtDestroyStream(head));
	acl_ok(aclrtDestroyStream(run));
	acl_ok(aclrtFree(d));
}

static void labels(void **state)
{
	char *d = device_memory(BYTES);
	aclrtStream s = new_persistent(), run = new_stream();
	aclrtLabel l[3];
	aclrtLabelList list;
	aclmdlRI ri;
	uint32_t i;

	(void)state;
	set_word(d + 4, 1);
	for (i = 0; i < 3; i++)
		acl_ok(aclrtCreateLabel(&l[i]));
	acl_fails(aclrtSetLabel(l[0], run), ACL_ERROR_RT_STREAM_MODEL);
	acl_ok(aclrtCreateLabelList(l, 3, &list));
	acl_ok(aclmdlRIBuildBegin(&ri, 0));
	acl_ok(aclmdlRIBindStream(ri, s, 0));
	acl_fails(aclrtSwitchLabelByIndex(d, 4, list, s), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtSwitchLabelByIndex(d, 3, list, s));
	set(d + 8, 77, s);	/* jumped over */
	for (i = 0; i < 3; i++) {
		acl_ok(aclrtSetLabel(l[i], s));
		add(d + 16 + 4 * i, d + 4, s);
	}
	acl_fails(aclrtSetLabel(l[0], s), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclmdlRIEndTask(ri, s));
	acl_ok(aclmdlRIBuildEnd(ri, NULL));
	for (i = 0; i < 4; i++) {	/* 3 is more than there are: the last */
		set(d, i, run);
		acl_ok(aclmdlRIExecuteAsync(ri, run));
	}
	acl_ok(aclrtSynchronizeStream(run));
	sys_eq(word(d + 8), 0);
	sys_eq(word(d + 16), 1);
	sys_eq(word(d + 20), 2);
	sys_eq(word(d + 24), 4);
	acl_ok(aclrtDestroyLabel(l[1]));
	set(d, 1, run);
	acl_ok(aclmdlRIExecuteAsync(ri, run));
	acl_fails(aclrtSynchronizeStream(run), ACL_ERROR_RT_LABEL_CONTEXT);
	acl_ok(aclmdlRIDestroy(ri));
	acl_ok(aclrtDestroyLabelList(list));
	acl_fails(aclrtDestroyLabelList(list), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDestroyLabel(l[0]));
	acl_ok(aclrtDestroyLabel(l[2]));
	acl_fails(aclrtDestroyLabel(l[1]), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtDestroyStream(run));
	acl_ok(aclrtFree(d));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		acl_test(in_order),
		acl_test(running),
		acl_test(stopped),
		acl_test(failing),
		acl_test(external),
		acl_test(updated),
		acl_test(told),
		acl_test(conditions),
		acl_test(built),
		acl_test(model_stopped),
		acl_test(labels),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
