// SPDX-License-Identifier: MIT
/*
 * Streams and events of the ACL runtime: order inside a stream, waits between
 * streams that hold no thread, timeouts in their units, aborts, what a failed
 * task leaves behind, functions of the program's in between.
 */
#include <acl/acl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acltest.h"
#include "sys.h"

static void *device_memory(size_t bytes)
{
	void *p = NULL;

	acl_ok(aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	return p;
}

static unsigned int threads(void)
{
	char line[128];
	unsigned int n = 0;
	FILE *f = fopen("/proc/self/status", "re");

	sys_true(f, "/proc/self/status");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Threads: %u", &n) == 1)
			break;
	fclose(f);
	return n;
}

/* ---- Order --------------------------------------------------------------------------- */

/* Each task overwrites what the one before wrote: only order gives the last value. */
static void fifo(void **state)
{
	enum { N = 2000, BYTES = 256 };
	unsigned char *d = device_memory(BYTES), got[BYTES];
	aclrtStream s;
	int i;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	for (i = 0; i < N; i++)
		acl_ok(aclrtMemsetAsync(d, BYTES, i & 0xff, BYTES, s));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtMemcpy(got, BYTES, d, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_is_byte("the last value", got, BYTES, (N - 1) & 0xff);
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtFree(d));
}

/* Bytes go from one block to the next, a stream each; submitted last first. */
static void chain(void **state)
{
	const int n = sys_slow() ? 300 : 1900;
	aclrtStream *s = calloc((size_t)n, sizeof(*s));
	aclrtEvent *e = calloc((size_t)n + 1, sizeof(*e));
	uint64_t *d = device_memory(((size_t)n + 1) * 8), want = 0x1234567890abcdef, got = 0;
	unsigned int before;
	int i;

	(void)state;
	for (i = 0; i < n; i++)
		acl_ok(aclrtCreateStream(&s[i]));
	for (i = 0; i <= n; i++)
		acl_ok(aclrtCreateEventWithFlag(&e[i], ACL_EVENT_SYNC));
	before = threads();
	for (i = n - 1; i >= 0; i--) {
		acl_ok(aclrtStreamWaitEvent(s[i], e[i]));
		acl_ok(aclrtMemcpyAsync(&d[i + 1], 8, &d[i], 8, ACL_MEMCPY_DEVICE_TO_DEVICE, s[i]));
		acl_ok(aclrtRecordEvent(e[i + 1], s[i]));
	}
	acl_fails(aclrtSynchronizeStreamWithTimeout(s[n - 1], 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	sys_true(threads() <= before + 2, "%u threads became %u", before, threads());
	acl_ok(aclrtMemcpy(d, 8, &want, 8, ACL_MEMCPY_HOST_TO_DEVICE));
	acl_ok(aclrtRecordEvent(e[0], NULL));
	acl_ok(aclrtSynchronizeStream(s[n - 1]));
	acl_ok(aclrtMemcpy(&got, 8, &d[n], 8, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_eq(got, want);
	for (i = 0; i < n; i++)
		acl_ok(aclrtDestroyStream(s[i]));
	for (i = 0; i <= n; i++)
		acl_ok(aclrtDestroyEvent(e[i]));
	acl_ok(aclrtFree(d));
	free(s);
	free(e);
}

struct feeder {
	aclrtContext ctx;
	aclrtStream stream;
	uint32_t *d;
	uint32_t from;
	uint32_t one[64];
};

static void *feed(void *arg)
{
	struct feeder *f = arg;
	uint32_t i;

	acl_ok(aclrtSetCurrentContext(f->ctx));
	for (i = 0; i < 64; i++) {
		f->one[i] = f->from + i;
		acl_ok(aclrtMemcpyAsync(&f->d[f->from + i], 4, &f->one[i], 4, ACL_MEMCPY_HOST_TO_DEVICE,
				    f->stream));
	}
	return NULL;
}

/* Several threads submit to one stream; each word arrives. */
static void many_feeders(void **state)
{
	enum { N = 4 };
	uint32_t *d = device_memory(N * 64 * 4), got[N * 64], i;
	static struct feeder f[N];
	pthread_t t[N];
	aclrtStream s;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	for (i = 0; i < N; i++) {
		acl_ok(aclrtGetCurrentContext(&f[i].ctx));
		f[i].stream = s;
		f[i].d = d;
		f[i].from = i * 64;
		sys_eq(pthread_create(&t[i], NULL, feed, &f[i]), 0);
	}
	for (i = 0; i < N; i++)
		pthread_join(t[i], NULL);
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtMemcpy(got, sizeof(got), d, sizeof(got), ACL_MEMCPY_DEVICE_TO_HOST));
	for (i = 0; i < N * 64; i++)
		sys_eq(got[i], i);
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtFree(d));
}

/* ---- Events ---------------------------------------------------------------------------- */

static void flavours(void **state)
{
	aclrtEvent plain, sync, line, ex;
	aclrtEventRecordedStatus st;
	aclrtEventStatus old;
	aclrtEventWaitStatus ws;
	aclrtStream s;
	uint64_t us;
	float ms;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtCreateEvent(&plain));
	acl_ok(aclrtCreateEventWithFlag(&sync, ACL_EVENT_SYNC));
	acl_ok(aclrtCreateEventWithFlag(&line, ACL_EVENT_TIME_LINE));
	acl_ok(aclrtCreateEventExWithFlag(&ex, ACL_EVENT_SYNC));
	/* never recorded */
	acl_ok(aclrtQueryEventStatus(plain, &st));
	sys_eq(st, ACL_EVENT_RECORDED_STATUS_NOT_READY);
	acl_ok(aclrtQueryEventStatus(ex, &st));
	sys_eq(st, ACL_EVENT_RECORDED_STATUS_COMPLETE);
	acl_ok(aclrtSynchronizeEvent(ex));
	acl_fails(aclrtEventElapsedTime(&ms, plain, line), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
	acl_fails(aclrtQueryEvent(ex, &old), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtQueryEventWaitStatus(ex, &ws), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtResetEvent(plain, s), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtResetEvent(ex, s), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtStreamWaitEvent(s, line), ACL_ERROR_RT_PARAM_INVALID);
	/* times */
	acl_ok(aclrtRecordEvent(plain, s));
	acl_ok(aclrtSynchronizeEvent(plain));
	sys_nap(5);
	acl_ok(aclrtRecordEvent(line, s));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtQueryEvent(line, &old));
	sys_eq(old, ACL_EVENT_STATUS_COMPLETE);
	acl_ok(aclrtEventElapsedTime(&ms, plain, line));
	sys_true(ms >= 5 && ms < SYS_PATIENCE_MS, "%f ms", (double)ms);
	acl_fails(aclrtEventElapsedTime(&ms, line, plain), ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL);
	acl_ok(aclrtEventGetTimestamp(line, &us));
	acl_fails(aclrtEventGetTimestamp(sync, &us), ACL_ERROR_RT_PARAM_INVALID);
	/* the classic order, and twice round */
	for (int i = 0; i < 2; i++) {
		aclrtStream b;

		acl_ok(aclrtCreateStream(&b));
		acl_ok(aclrtStreamWaitEvent(b, sync));
		acl_ok(aclrtResetEvent(sync, b));
		acl_fails(aclrtSynchronizeStreamWithTimeout(b, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
		acl_ok(aclrtQueryEventWaitStatus(sync, &ws));
		sys_eq(ws, ACL_EVENT_WAIT_STATUS_NOT_READY);
		acl_ok(aclrtRecordEvent(sync, s));
		acl_ok(aclrtSynchronizeStream(b));
		acl_ok(aclrtQueryEventWaitStatus(sync, &ws));
		sys_eq(ws, ACL_EVENT_WAIT_STATUS_COMPLETE);
		acl_ok(aclrtDestroyStream(b));
	}
	acl_ok(aclrtDestroyEvent(plain));
	acl_ok(aclrtDestroyEvent(sync));
	acl_ok(aclrtDestroyEvent(line));
	acl_ok(aclrtDestroyEvent(ex));
	acl_fails(aclrtDestroyEvent(ex), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDestroyStream(s));
}

/* A wait is for the record before it, not for a later one; the event may go first. */
static void latest_record(void **state)
{
	aclrtEvent gate, e;
	aclrtStream a, b;

	(void)state;
	acl_ok(aclrtCreateStream(&a));
	acl_ok(aclrtCreateStream(&b));
	acl_ok(aclrtCreateEventWithFlag(&gate, ACL_EVENT_SYNC));
	acl_ok(aclrtCreateEventExWithFlag(&e, ACL_EVENT_SYNC));
	acl_ok(aclrtRecordEvent(e, a));
	acl_ok(aclrtStreamWaitEvent(b, e));
	/* the second record stands behind a gate that is closed */
	acl_ok(aclrtStreamWaitEvent(a, gate));
	acl_ok(aclrtRecordEvent(e, a));
	acl_ok(aclrtSynchronizeStream(b));
	acl_ok(aclrtStreamWaitEvent(b, e));
	acl_fails(aclrtSynchronizeStreamWithTimeout(b, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	acl_fails(aclrtSynchronizeEventWithTimeout(e, 10), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
	acl_ok(aclrtDestroyEvent(e));
	acl_ok(aclrtRecordEvent(gate, NULL));
	acl_ok(aclrtSynchronizeStream(b));
	acl_ok(aclrtSynchronizeStream(a));
	acl_ok(aclrtDestroyEvent(gate));
	acl_ok(aclrtDestroyStream(a));
	acl_ok(aclrtDestroyStream(b));
}

/* Recorded in two streams, the second of which gets there first: that ends no wait for the first. */
static void two_recorders(void **state)
{
	aclrtEvent gate, e;
	aclrtStream a, b, c;
	float ms;

	(void)state;
	acl_ok(aclrtCreateStream(&a));
	acl_ok(aclrtCreateStream(&b));
	acl_ok(aclrtCreateStream(&c));
	acl_ok(aclrtCreateEventWithFlag(&gate, ACL_EVENT_SYNC));
	acl_ok(aclrtCreateEvent(&e));
	acl_ok(aclrtStreamWaitEvent(a, gate));
	acl_ok(aclrtRecordEvent(e, a));
	acl_ok(aclrtStreamWaitEvent(c, e));
	for (int i = 0; i < 40; i++) {	/* more than are kept apart */
		acl_ok(aclrtRecordEvent(e, b));
		acl_ok(aclrtSynchronizeEvent(e));
		if (i == 10)
			acl_fails(aclrtSynchronizeStreamWithTimeout(c, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	}
	acl_ok(aclrtEventElapsedTime(&ms, e, e));
	acl_ok(aclrtRecordEvent(gate, NULL));
	acl_ok(aclrtSynchronizeStream(a));
	acl_ok(aclrtSynchronizeStream(c));
	acl_ok(aclrtSynchronizeEvent(e));
	acl_ok(aclrtDestroyEvent(gate));
	acl_ok(aclrtDestroyEvent(e));
	acl_ok(aclrtDestroyStream(a));
	acl_ok(aclrtDestroyStream(b));
	acl_ok(aclrtDestroyStream(c));
}

static void wait_expires(void **state)
{
	aclrtEvent never;
	aclrtStream s;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtCreateEventWithFlag(&never, ACL_EVENT_SYNC));
	acl_ok(aclrtStreamWaitEventWithTimeout(s, never, 1));
	acl_fails(aclrtSynchronizeStream(s), ACL_ERROR_RT_WAIT_TIMEOUT);
	/* told once: the stream goes on */
	acl_ok(aclrtSynchronizeStream(s));
	acl_fails(aclrtStreamWaitEventWithTimeout(s, never, -1), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDestroyEvent(never));
	acl_ok(aclrtDestroyStream(s));
}

/* ---- Aborts and errors --------------------------------------------------------------------- */

static void *sync_aborted(void *arg)
{
	struct feeder *f = arg;

	acl_ok(aclrtSetCurrentContext(f->ctx));
	acl_fails(aclrtSynchronizeStream(f->stream), ACL_ERROR_RT_STREAM_ABORT);
	return NULL;
}

static void aborted(void **state)
{
	unsigned char *d = device_memory(64), got[64];
	struct feeder f;
	aclrtEvent never;
	pthread_t t;

	(void)state;
	acl_ok(aclrtMemset(d, 64, 1, 64));
	acl_ok(aclrtCreateStream(&f.stream));
	acl_ok(aclrtGetCurrentContext(&f.ctx));
	acl_ok(aclrtCreateEventWithFlag(&never, ACL_EVENT_SYNC));
	acl_ok(aclrtStreamWaitEvent(f.stream, never));
	acl_ok(aclrtMemsetAsync(d, 64, 2, 64, f.stream));
	sys_eq(pthread_create(&t, NULL, sync_aborted, &f), 0);
	sys_nap(50);
	acl_ok(aclrtStreamAbort(f.stream));
	pthread_join(t, NULL);
	/* what was queued is gone, the stream is not */
	acl_ok(aclrtSynchronizeStream(f.stream));
	acl_ok(aclrtMemcpy(got, 64, d, 64, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_is_byte("after the abort", got, 64, 1);
	acl_ok(aclrtMemsetAsync(d, 64, 3, 64, f.stream));
	acl_ok(aclrtSynchronizeStream(f.stream));
	acl_ok(aclrtMemcpy(got, 64, d, 64, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_is_byte("a task after it", got, 64, 3);
	/* destroyed by force while it waits */
	acl_ok(aclrtStreamWaitEvent(f.stream, never));
	acl_ok(aclrtDestroyStreamForce(f.stream));
	acl_fails(aclrtSynchronizeStream(f.stream), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDestroyEvent(never));
	acl_ok(aclrtFree(d));
}

static void inject(uint32_t status, uint32_t count)
{
	struct npuemu *board = sys_open();
	struct npuemu_fault f = {
		.size = sizeof(f), .kind = NPUEMU_FAULT_STATUS, .slot = NPUEMU_ANY, .queue = NPUEMU_ANY,
		.device = NPUEMU_ANY, .status = status, .rate_ppm = 1000000, .count = count,
	};

	if (count)
		sys_rc(npuemu_fault_inject(board, &f));
	else
		sys_rc(npuemu_fault_clear(board));
	sys_rc(npuemu_close(board));
}

/* One of three copies fails: the others arrive, and the error is told once, later. */
static void error_goes_on(void **state)
{
	unsigned char *d = device_memory(192), got[192];
	aclrtStream s;

	(void)state;
	acl_ok(aclrtMemset(d, 192, 9, 192));
	acl_ok(aclrtCreateStream(&s));
	inject(NPUEMU_ST_LOC_DATA_POISON, 1);
	acl_ok(aclrtMemsetAsync(d, 64, 1, 64, s));
	acl_ok(aclrtMemsetAsync(d + 64, 64, 2, 64, s));
	acl_ok(aclrtMemsetAsync(d + 128, 64, 3, 64, s));
	acl_fails(aclrtSynchronizeStream(s), ACL_ERROR_RT_DEVICE_MEM_ERROR);
	acl_ok(aclrtSynchronizeStream(s));
	inject(0, 0);
	acl_ok(aclrtMemcpy(got, 192, d, 192, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_is_byte("the one that failed", got, 64, 9);
	sys_is_byte("the next", got + 64, 64, 2);
	sys_is_byte("and the last", got + 128, 64, 3);
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtFree(d));
}

/* STOP: nothing after it, in no stream of the context that stops, and it sticks. */
static void error_stops(void **state)
{
	unsigned char *d = device_memory(128), got[128];
	aclrtStream s, t;
	aclrtContext ctx;

	(void)state;
	acl_ok(aclrtMemset(d, 128, 9, 128));
	acl_ok(aclrtCreateContext(&ctx, 0));
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtCreateStream(&t));
	acl_ok(aclrtSetStreamFailureMode(s, ACL_STOP_ON_FAILURE));
	acl_ok(aclrtSetStreamFailureMode(t, ACL_STOP_ON_FAILURE));
	acl_fails(aclrtSetStreamFailureMode(s, ACL_STOP_ON_FAILURE), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtSetStreamFailureMode(NULL, ACL_STOP_ON_FAILURE), ACL_ERROR_INVALID_PARAM);
	inject(NPUEMU_ST_LOC_ACCESS, 1);
	acl_ok(aclrtMemsetAsync(d, 64, 1, 64, s));
	acl_fails(aclrtSynchronizeStream(s), ACL_ERROR_RT_SYS_DMA);
	inject(0, 0);
	acl_ok(aclrtMemsetAsync(d + 64, 64, 2, 64, s));
	acl_fails(aclrtSynchronizeStream(s), ACL_ERROR_RT_SYS_DMA);
	acl_ok(aclrtMemsetAsync(d + 64, 64, 2, 64, t));
	acl_fails(aclrtSynchronizeStream(t), ACL_ERROR_RT_SYS_DMA);
	acl_ok(aclrtDestroyContext(ctx));
	acl_ok(aclrtSetDevice(0));
	acl_ok(aclrtMemcpy(got, 128, d, 128, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_is_byte("nothing was written", got, 128, 9);
	acl_ok(aclrtFree(d));
	acl_ok(aclrtResetDevice(0));
}

/* ---- Functions of the program's --------------------------------------------------------------- */

struct note {
	unsigned char *d;
	int seen[8];
	int n;
};

static struct note note;

static void look(void *arg)
{
	/* device memory is mapped: what the task before wrote is there, the next has not been */
	note.seen[note.n++] = note.d[0] * 16 + (int)(intptr_t)arg;
}

static void host_functions(void **state)
{
	aclrtStream s;
	int i;

	(void)state;
	note.d = device_memory(64);
	note.n = 0;
	acl_ok(aclrtCreateStream(&s));
	for (i = 0; i < 5; i++) {
		acl_ok(aclrtMemsetAsync(note.d, 64, i + 1, 64, s));
		acl_ok(aclrtLaunchHostFunc(s, look, (void *)(intptr_t)i));
	}
	acl_ok(aclrtSynchronizeStream(s));
	sys_eq(note.n, 5);
	for (i = 0; i < 5; i++)
		sys_eq(note.seen[i], (i + 1) * 16 + i);
	acl_fails(aclrtLaunchHostFunc(s, NULL, NULL), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtFree(note.d));
}

static volatile int stop_reporting;

static void *reporter(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop_reporting, __ATOMIC_ACQUIRE))
		aclrtProcessReport(10);
	return NULL;
}

static void callbacks(void **state)
{
	aclrtStream s;
	pthread_t t;
	int i;

	(void)state;
	note.d = device_memory(64);
	note.n = 0;
	stop_reporting = 0;
	acl_ok(aclrtCreateStream(&s));
	acl_fails(aclrtLaunchCallback(look, NULL, ACL_CALLBACK_BLOCK, s), ACL_ERROR_RT_STREAM_NO_CB_REG);
	acl_fails(aclrtProcessReport(5), ACL_ERROR_WAIT_CALLBACK_TIMEOUT);
	sys_eq(pthread_create(&t, NULL, reporter, NULL), 0);
	acl_ok(aclrtSubscribeReport((uint64_t)t, s));
	acl_fails(aclrtSubscribeReport((uint64_t)t, s), ACL_ERROR_RT_THREAD_SUBSCRIBE);
	for (i = 0; i < 4; i++) {
		acl_ok(aclrtMemsetAsync(note.d, 64, i + 1, 64, s));
		acl_ok(aclrtLaunchCallback(look, (void *)(intptr_t)i, ACL_CALLBACK_BLOCK, s));
	}
	acl_ok(aclrtSynchronizeStream(s));
	sys_eq(note.n, 4);
	for (i = 0; i < 4; i++)
		sys_eq(note.seen[i], (i + 1) * 16 + i);
	acl_ok(aclrtUnSubscribeReport((uint64_t)t, s));
	acl_fails(aclrtUnSubscribeReport((uint64_t)t, s), ACL_ERROR_RT_STREAM_NO_CB_REG);
	__atomic_store_n(&stop_reporting, 1, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtFree(note.d));
}

/* ---- Handles ------------------------------------------------------------------------------------ */

static void handles(void **state)
{
	aclrtContext first, second;
	aclrtStream s, junk = &first;
	aclrtStreamStatus st;
	uint32_t n;
	int32_t id;

	(void)state;
	acl_ok(aclrtGetCurrentContext(&first));
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtStreamGetId(s, &id));
	acl_ok(aclrtStreamQuery(s, &st));
	sys_eq(st, ACL_STREAM_STATUS_COMPLETE);
	acl_ok(aclrtGetStreamAvailableNum(&n));
	acl_ok(aclrtCreateContext(&second, 0));
	acl_fails(aclrtSynchronizeStream(s), ACL_ERROR_RT_STREAM_CONTEXT);
	acl_ok(aclrtSetCurrentContext(first));
	acl_ok(aclrtSynchronizeStream(s));
	acl_fails(aclrtSynchronizeStream(junk), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtDestroyStream(junk), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtDestroyStream(NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtCreateStream(NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtStreamQuery(s, NULL), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtCtxGetCurrentDefaultStream(&junk));
	acl_fails(aclrtDestroyStream(junk), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDestroyContext(first), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtDestroyContext(second));
	acl_fails(aclrtDestroyContext(second), ACL_ERROR_RT_CONTEXT_NULL);
	acl_ok(aclrtDestroyStream(s));
	acl_fails(aclrtDestroyStream(s), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtResetDevice(0));
	acl_fails(aclrtGetCurrentContext(&first), ACL_ERROR_RT_CONTEXT_NULL);
	acl_fails(aclrtSynchronizeDevice(), ACL_ERROR_RT_CONTEXT_NULL);
	acl_fails(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_NULL);
	acl_fails(aclrtSetDevice(1000), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
}

/* What a program did not destroy is gone with aclFinalize, and can be told. */
static void left_over(void **state)
{
	aclrtEvent e, timed;
	aclrtContext ctx;
	aclrtStream s;

	(void)state;
	acl_ok(aclrtCreateEvent(&timed));
	acl_ok(aclrtCreateContext(&ctx, 0));
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtCreateEventWithFlag(&e, ACL_EVENT_SYNC));
	acl_ok(aclrtStreamWaitEvent(s, e));
	acl_ok(aclrtRecordEvent(e, NULL));
	acl_ok(aclFinalize());
	acl_fails(aclrtSynchronizeStream(s), ACL_ERROR_RT_CONTEXT_NULL);
	acl_fails(aclrtSetCurrentContext(ctx), ACL_ERROR_RT_CONTEXT_NULL);
	acl_fails(aclrtDestroyContext(ctx), ACL_ERROR_RT_CONTEXT_NULL);
	acl_fails(aclrtDestroyStream(s), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtRecordEvent(e, NULL), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtDestroyEvent(e), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtDestroyEvent(timed), ACL_ERROR_RT_PARAM_INVALID);
	/* and once more from the start */
	acl_ok(aclInit(NULL));
	acl_ok(aclrtSetDevice(0));
	acl_fails(aclrtDestroyEvent(e), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtSynchronizeDevice());
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		acl_test(fifo),
		acl_test(chain),
		acl_test(many_feeders),
		acl_test(flavours),
		acl_test(latest_record),
		acl_test(two_recorders),
		acl_test(wait_expires),
		acl_test(aborted),
		acl_test(error_goes_on),
		acl_test(error_stops),
		acl_test(host_functions),
		acl_test(callbacks),
		acl_test(handles),
		acl_test(left_over),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
