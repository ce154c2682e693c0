// SPDX-License-Identifier: MIT
/*
 * Capture: what a recorded model leaves in memory after some runs is what a loop that
 * submits the same leaves; streams join and join back; what is refused meanwhile, and
 * with which code; runs in a row, on two streams, stopped; changes; the end.
 */
#include <acl/acl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "acltest.h"
#include "sys.h"

#define BYTES	4096u
#define GLOBAL	ACL_MODEL_RI_CAPTURE_MODE_GLOBAL
#define LOCAL	ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL
#define RELAXED	ACL_MODEL_RI_CAPTURE_MODE_RELAXED

static void *device_memory(size_t bytes)
{
	void *p = NULL;

	acl_ok(aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	acl_ok(aclrtMemset(p, bytes, 0, bytes));
	return p;
}

static void *pinned_memory(size_t bytes)
{
	void *p = NULL;

	acl_ok(aclrtMallocHost(&p, bytes));
	memset(p, 0, bytes);
	return p;
}

static aclrtStream new_stream(void)
{
	aclrtStream s = NULL;

	acl_ok(aclrtCreateStream(&s));
	return s;
}

static aclrtEvent new_event(void)
{
	aclrtEvent e = NULL;

	acl_ok(aclrtCreateEventExWithFlag(&e, ACL_EVENT_SYNC));
	return e;
}

static uint64_t word_at(const void *p)
{
	uint64_t v = 0;

	acl_ok(aclrtMemcpy(&v, sizeof(v), p, sizeof(v), ACL_MEMCPY_DEVICE_TO_HOST));
	return v;
}

static aclmdlRI capture_end(aclrtStream s)
{
	aclmdlRI ri = NULL;

	acl_ok(aclmdlRICaptureEnd(s, &ri));
	sys_true(ri, "a capture ended without a model");
	return ri;
}

/* ---- Every kind of task ------------------------------------------------------------------ */

struct set {
	unsigned char *a, *b;		/* of a device */
	unsigned char *in, *out;	/* pinned */
	uint64_t *word;
	aclrtNotify notify;
	aclrtCntNotify count;
	unsigned int calls;
};

static void set_make(struct set *s)
{
	memset(s, 0, sizeof(*s));
	s->a = device_memory(BYTES);
	s->b = device_memory(BYTES);
	s->in = pinned_memory(BYTES);
	s->out = pinned_memory(BYTES);
	s->word = device_memory(64);
	acl_ok(aclrtCreateNotify(&s->notify, 0));
	acl_ok(aclrtCntNotifyCreate(&s->count, 0));
	sys_fill(s->in, BYTES, 7);
}

static void set_drop(struct set *s)
{
	acl_ok(aclrtDestroyNotify(s->notify));
	acl_ok(aclrtCntNotifyDestroy(s->count));
	acl_ok(aclrtFree(s->a));
	acl_ok(aclrtFree(s->b));
	acl_ok(aclrtFree(s->word));
	acl_ok(aclrtFreeHost(s->in));
	acl_ok(aclrtFreeHost(s->out));
}

/* In order with the tasks, or what it reads of the pinned memory is not there yet. */
static void count_call(void *arg)
{
	struct set *s = arg;

	s->calls += 1 + s->out[5];
	s->in[0]++;
}

static void all_kinds(aclrtStream st, struct set *s, int timed)
{
	aclrtCntNotifyRecordInfo add = { ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 3 };
	aclrtCntNotifyWaitInfo wait = { ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE, 3, 0, false, { 0 } };
	unsigned char plain[64];

	memset(plain, 0x11, sizeof(plain));
	acl_ok(aclrtMemcpyAsync(s->b, BYTES, s->in, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, st));
	acl_ok(aclrtReduceAsync(s->a, s->b, BYTES, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT8, st, NULL));
	acl_ok(aclrtMemsetAsync(s->b + 100, BYTES - 100, 0x5a, 300, st));
	acl_ok(aclrtMemcpyAsync(s->a + 64, BYTES - 64, plain, sizeof(plain), ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE,
				st));
	memset(plain, 0x22, sizeof(plain));
	acl_ok(aclrtMemcpy2dAsync(s->a + 2048, 128, s->b, 64, 32, 12, ACL_MEMCPY_DEVICE_TO_DEVICE, st));
	acl_ok(aclrtRecordNotify(s->notify, st));
	acl_ok(aclrtWaitAndResetNotify(s->notify, st, timed ? 30 : 0));
	acl_ok(aclrtCntNotifyRecord(s->count, st, &add));
	acl_ok(aclrtCntNotifyWaitWithTimeout(s->count, st, &wait));
	acl_ok(aclrtCntNotifyReset(s->count, st));
	acl_ok(aclrtValueWrite(s->word, 77, 0, st));
	acl_ok(aclrtValueWait(s->word, 77, ACL_STREAM_WAIT_VALUE_EQ, st));
	acl_ok(aclrtValueWrite(s->word, 78, 0, st));
	acl_ok(aclrtMemcpyAsync(s->out, BYTES, s->a, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, st));
	acl_ok(aclrtLaunchHostFunc(st, count_call, s));
}

static void sets_same(struct set *x, struct set *y)
{
	unsigned char got[BYTES], want[BYTES];

	sys_same("pinned memory", y->out, x->out, BYTES);
	acl_ok(aclrtMemcpy(want, BYTES, x->a, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
	acl_ok(aclrtMemcpy(got, BYTES, y->a, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_same("the first buffer", got, want, BYTES);
	acl_ok(aclrtMemcpy(want, BYTES, x->b, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
	acl_ok(aclrtMemcpy(got, BYTES, y->b, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_same("the second buffer", got, want, BYTES);
	sys_eq(y->calls, x->calls);
	sys_eq(word_at(y->word), word_at(x->word));
}

static void kinds(void **state)
{
	const int k = 5;
	struct set x, y;
	aclrtStream s = new_stream();
	aclmdlRI ri;
	int i;

	(void)state;
	set_make(&x);
	set_make(&y);
	for (i = 0; i < k; i++)
		all_kinds(s, &x, i & 1);
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclmdlRICaptureBegin(s, RELAXED));
	all_kinds(s, &y, 0);
	ri = capture_end(s);
	sys_eq(y.calls, 0);
	for (i = 0; i < k; i++)
		acl_ok(aclmdlRIExecuteAsync(ri, s));
	acl_ok(aclrtSynchronizeStream(s));
	sets_same(&x, &y);
	acl_ok(aclmdlRIExecute(ri, 30000));
	all_kinds(s, &x, 0);
	acl_ok(aclrtSynchronizeStream(s));
	sets_same(&x, &y);
	acl_ok(aclmdlRIDestroy(ri));
	set_drop(&x);
	set_drop(&y);
	acl_ok(aclrtDestroyStream(s));
}

/* Longer than any batch, chunk or array of a first size. */
static void thousands(void **state)
{
	const int n = sys_slow() ? 3000 : 20000;
	unsigned char *d = device_memory(BYTES), got[BYTES], want[BYTES] = { 0 };
	aclrtStream s = new_stream();
	aclmdlRI ri, empty;
	int i;

	(void)state;
	acl_ok(aclmdlRICaptureBegin(s, GLOBAL));
	for (i = 0; i < n; i++) {
		memset(want + i % (BYTES - 16), i & 0xff, 16);
		acl_ok(aclrtMemsetAsync(d + i % (BYTES - 16), 16, i & 0xff, 16, s));
	}
	ri = capture_end(s);
	acl_ok(aclmdlRICaptureBegin(s, GLOBAL));
	empty = capture_end(s);
	for (i = 0; i < 3; i++) {
		acl_ok(aclrtMemsetAsync(d, BYTES, 0, BYTES, s));
		acl_ok(aclmdlRIExecuteAsync(empty, s));
		acl_ok(aclmdlRIExecuteAsync(ri, s));
	}
	acl_ok(aclrtMemsetAsync(d, BYTES, 0xee, 1, s));
	want[0] = 0xee;
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtMemcpy(got, BYTES, d, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_same("the memory", got, want, BYTES);
	acl_ok(aclmdlRIDestroy(ri));
	acl_ok(aclmdlRIDestroy(empty));
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtFree(d));
}

/* ---- Forks and joins ------------------------------------------------------------------------- */

#define LANES	6

struct dag {
	aclrtStream s[LANES];
	aclrtEvent e[LANES];	/* of a stream each */
	int *d[LANES];		/* each is written in its own stream only */
};

static void meet(struct dag *g, int from, int to)
{
	acl_ok(aclrtRecordEvent(g->e[from], g->s[from]));
	acl_ok(aclrtStreamWaitEvent(g->s[to], g->e[from]));
}

/* The one stream reads what the other has, and the other waits for that before it goes on. */
static void dag_submit(struct dag *g, uint64_t seed, int ops)
{
	int i, from, to;

	for (i = 1; i < LANES; i++)
		meet(g, 0, i);
	while (ops--) {
		from = (int)(sys_rand(&seed) % LANES);
		to = (int)(sys_rand(&seed) % LANES);
		if (from == to) {
			acl_ok(aclrtMemsetAsync((char *)g->d[to] + 8 * (ops % 64), 8, ops & 0x7f, 3, g->s[to]));
			continue;
		}
		meet(g, from, to);
		acl_ok(aclrtReduceAsync(g->d[to], g->d[from], 1024,
					ops & 1 ? ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM : ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX,
					ACL_INT32, g->s[to], NULL));
		meet(g, to, from);
	}
	for (i = 1; i < LANES; i++)
		meet(g, i, 0);
	acl_ok(aclrtMemcpyAsync((char *)g->d[0] + 2048, 1024, g->d[LANES - 1], 1024, ACL_MEMCPY_DEVICE_TO_DEVICE,
				g->s[0]));
}

static void dag_make(struct dag *g)
{
	int i, k, init[512];

	for (i = 0; i < LANES; i++) {
		g->s[i] = new_stream();
		g->e[i] = new_event();
		g->d[i] = device_memory(BYTES);
		for (k = 0; k < 512; k++)
			init[k] = i + k;
		acl_ok(aclrtMemcpy(g->d[i], BYTES, init, sizeof(init), ACL_MEMCPY_HOST_TO_DEVICE));
	}
}

static void dag_drop(struct dag *g)
{
	int i;

	for (i = 0; i < LANES; i++) {
		acl_ok(aclrtDestroyStream(g->s[i]));
		acl_ok(aclrtDestroyEvent(g->e[i]));
		acl_ok(aclrtFree(g->d[i]));
	}
}

static void dags_same(struct dag *x, struct dag *y)
{
	unsigned char got[BYTES], want[BYTES];
	int i;

	for (i = 0; i < LANES; i++) {
		acl_ok(aclrtMemcpy(want, BYTES, x->d[i], BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
		acl_ok(aclrtMemcpy(got, BYTES, y->d[i], BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
		sys_same("a buffer", got, want, BYTES);
	}
}

static void fork_join(void **state)
{
	const int rounds = sys_slow() ? 3 : 10, k = 3;
	struct dag x, y;
	int r, i, ops;
	aclmdlRI ri;

	(void)state;
	for (r = 0; r < rounds; r++) {
		ops = 20 + 40 * r;
		dag_make(&x);
		dag_make(&y);
		for (i = 0; i < k; i++)
			dag_submit(&x, (uint64_t)r + 1, ops);
		acl_ok(aclmdlRICaptureBegin(y.s[0], r & 1 ? GLOBAL : RELAXED));
		dag_submit(&y, (uint64_t)r + 1, ops);
		ri = capture_end(y.s[0]);
		/* the streams that joined are the program's again, the model has its own */
		acl_ok(aclrtDestroyStream(y.s[LANES - 1]));
		for (i = 0; i < k; i++)
			acl_ok(aclmdlRIExecuteAsync(ri, y.s[i % 2]));
		acl_ok(aclrtSynchronizeDevice());
		dags_same(&x, &y);
		acl_ok(aclmdlRIDestroy(ri));
		y.s[LANES - 1] = new_stream();
		dag_drop(&x);
		dag_drop(&y);
	}
}

/* ---- What is refused ------------------------------------------------------------------------------ */

static aclrtStream st, other;
static aclrtEvent ev;
static void *mem, *host;
static unsigned char plain[64];
static aclrtStreamStatus stream_status;
static aclrtEventRecordedStatus event_status;

ACL_CALL(sync_copy, aclrtMemcpy(mem, 64, plain, 64, ACL_MEMCPY_HOST_TO_DEVICE));
ACL_CALL(sync_copy_2d, aclrtMemcpy2d(mem, 16, plain, 16, 16, 2, ACL_MEMCPY_HOST_TO_DEVICE));
ACL_CALL(sync_set, aclrtMemset(mem, 64, 1, 64));
ACL_CALL(sync_words, aclrtMemsetD32(mem, 64, 1, 4));
ACL_CALL(pageable, aclrtMemcpyAsync(mem, 64, plain, 64, ACL_MEMCPY_HOST_TO_DEVICE, st));
ACL_CALL(pageable_back, aclrtMemcpyAsync(plain, 64, mem, 64, ACL_MEMCPY_DEVICE_TO_HOST, st));
ACL_CALL(pageable_2d, aclrtMemcpy2dAsync(mem, 16, plain, 16, 16, 2, ACL_MEMCPY_HOST_TO_DEVICE, st));
ACL_CALL(sync_stream, aclrtSynchronizeStream(st));
ACL_CALL(sync_timed, aclrtSynchronizeStreamWithTimeout(st, 10));
ACL_CALL(query_stream, aclrtStreamQuery(st, &stream_status));
ACL_CALL(sync_device, aclrtSynchronizeDevice());
ACL_CALL(destroy, aclrtDestroyStream(st));
ACL_CALL(destroy_force, aclrtDestroyStreamForce(st));
ACL_CALL(again, aclmdlRICaptureBegin(st, RELAXED));
ACL_CALL(sync_event, aclrtSynchronizeEvent(ev));
ACL_CALL(query_event, aclrtQueryEventStatus(ev, &event_status));

static const struct acl_call *const at_once[] = { &sync_copy, &sync_copy_2d, &sync_set, &sync_words };
static const struct acl_call *const blocking[] = { &pageable, &pageable_back, &pageable_2d };
static const struct acl_call *const of_stream[] = {
	&sync_stream, &sync_timed, &query_stream, &sync_device, &destroy, &destroy_force, &again,
};
static const struct acl_call *const of_event[] = { &sync_event, &query_event };

static void refused_make(void)
{
	st = new_stream();
	other = new_stream();
	ev = new_event();
	mem = device_memory(64);
	host = pinned_memory(64);
}

static void refused_drop(void)
{
	acl_ok(aclrtDestroyStream(st));
	acl_ok(aclrtDestroyStream(other));
	acl_ok(aclrtDestroyEvent(ev));
	acl_ok(aclrtFree(mem));
	acl_ok(aclrtFreeHost(host));
}

static void refused(void **state)
{
	aclmdlRICaptureMode mode = RELAXED;
	aclmdlRICaptureStatus status;
	aclmdlRI ri, now;

	(void)state;
	refused_make();
	acl_fails(aclmdlRICaptureBegin(NULL, GLOBAL), ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT);
	acl_fails(aclmdlRICaptureBegin(st, (aclmdlRICaptureMode)3), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclmdlRICaptureBegin(&mode, GLOBAL), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclmdlRICaptureEnd(st, &ri), ACL_ERROR_RT_STREAM_NOT_CAPTURED);
	acl_fails(aclmdlRICaptureEnd(st, NULL), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclmdlRICaptureGetInfo(st, &status, &now));
	sys_eq(status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);

	acl_ok(aclmdlRICaptureBegin(st, GLOBAL));
	acl_ok(aclmdlRICaptureGetInfo(st, &status, &now));
	sys_eq(status, ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
	acl_ok(aclrtRecordEvent(ev, st));
	acl_all_fail(at_once, 4, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT);
	acl_all_fail(blocking, 3, ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC);
	acl_all_fail(of_stream, 7, ACL_ERROR_RT_STREAM_CAPTURED);
	acl_all_fail(of_event, 2, ACL_ERROR_RT_EVENT_CAPTURED);
	acl_fails(aclmdlRIExecuteAsync(now, other), ACL_ERROR_RT_MODEL_CAPTURED);
	acl_fails(aclmdlRIDestroy(now), ACL_ERROR_RT_MODEL_CAPTURED);
	acl_fails(aclmdlRICaptureToModelRIBegin(other, now, GLOBAL), ACL_ERROR_RT_MODEL_CAPTURED);
	/* other streams go on; at once is allowed to whoever asks for it */
	acl_ok(aclrtMemsetAsync(mem, 64, 5, 64, other));
	acl_ok(aclrtSynchronizeStream(other));
	acl_ok(aclmdlRICaptureThreadExchangeMode(&mode));
	sys_eq(mode, GLOBAL);
	acl_ok(aclrtMemset(mem, 64, 6, 64));
	memset(plain, 7, 64);
	acl_ok(aclrtMemcpyAsync(mem, 64, plain, 64, ACL_MEMCPY_HOST_TO_DEVICE, st));
	sys_eq(word_at(mem), 0x0707070707070707ull);
	acl_ok(aclmdlRICaptureThreadExchangeMode(&mode));
	sys_eq(mode, RELAXED);
	acl_all_fail(at_once, 4, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT);
	ri = capture_end(st);
	sys_true(ri == now, "not the model that was captured into");

	/* none of all that is part of it, and nothing is refused any more */
	acl_ok(aclrtMemset(mem, 64, 9, 64));
	acl_ok(aclmdlRIExecuteAsync(ri, st));
	acl_ok(aclrtSynchronizeStream(st));
	sys_eq(word_at(mem), 0x0909090909090909ull);
	acl_ok(aclmdlRIDestroy(ri));
	acl_fails(aclmdlRIDestroy(ri), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclmdlRIExecuteAsync(ri, st), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclmdlRIDestroy(NULL), ACL_ERROR_INVALID_PARAM);
	refused_drop();
}

/* ---- Modes and threads ----------------------------------------------------------------------------- */

struct row {
	aclmdlRICaptureMode capture, own;	/* of the capture, of the thread that copies */
	bool beginner;				/* it is the one that began */
	bool allowed;
};

static const struct row rows[] = {
	{ GLOBAL, GLOBAL, true, false }, { GLOBAL, LOCAL, true, false }, { GLOBAL, RELAXED, true, true },
	{ GLOBAL, GLOBAL, false, false }, { GLOBAL, LOCAL, false, true }, { GLOBAL, RELAXED, false, true },
	{ LOCAL, GLOBAL, true, false }, { LOCAL, LOCAL, true, false }, { LOCAL, RELAXED, true, true },
	{ LOCAL, GLOBAL, false, true }, { LOCAL, LOCAL, false, true }, { LOCAL, RELAXED, false, true },
	{ RELAXED, GLOBAL, true, true }, { RELAXED, LOCAL, true, true }, { RELAXED, GLOBAL, false, true },
	{ RELAXED, LOCAL, false, true },
};

static void *copier(void *arg)
{
	const struct row *r = arg;
	aclmdlRICaptureMode mode = r->own;

	acl_ok(aclrtSetDevice(0));
	acl_ok(aclmdlRICaptureThreadExchangeMode(&mode));
	if (r->allowed)
		acl_ok(sync_copy.fn());
	else
		acl_fails(sync_copy.fn(), ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT);
	acl_ok(aclmdlRICaptureThreadExchangeMode(&mode));
	acl_ok(aclrtResetDevice(0));
	return NULL;
}

static void in_thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	sys_eq(pthread_create(&t, NULL, fn, arg), 0);
	sys_eq(pthread_join(t, NULL), 0);
}

static void *ender(void *arg)
{
	bool allowed = *(bool *)arg;
	aclmdlRI ri;

	acl_ok(aclrtSetDevice(0));
	if (allowed) {
		acl_ok(aclmdlRICaptureEnd(st, &ri));
		acl_ok(aclmdlRIDestroy(ri));
	} else {
		acl_fails(aclmdlRICaptureEnd(st, &ri), ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD);
	}
	acl_ok(aclrtResetDevice(0));
	return NULL;
}

static void modes(void **state)
{
	bool yes = true, no = false;
	size_t i;

	(void)state;
	refused_make();
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct row r = rows[i];

		acl_ok(aclmdlRICaptureBegin(st, r.capture));
		if (r.beginner)
			copier(&r);
		else
			in_thread(copier, &r);
		acl_ok(aclmdlRIDestroy(capture_end(st)));
	}
	acl_ok(aclmdlRICaptureBegin(st, LOCAL));
	in_thread(ender, &no);
	acl_ok(aclmdlRIDestroy(capture_end(st)));
	acl_ok(aclmdlRICaptureBegin(st, RELAXED));
	in_thread(ender, &yes);
	acl_fails(aclmdlRICaptureThreadExchangeMode(NULL), ACL_ERROR_INVALID_PARAM);
	refused_drop();
}

/* ---- Captures that go wrong ----------------------------------------------------------------------- */

static void spoiled(aclError code)
{
	aclmdlRICaptureStatus status;
	aclmdlRI ri = &status;

	acl_ok(aclmdlRICaptureGetInfo(st, &status, NULL));
	sys_eq(status, code == ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED ? ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED :
	       ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
	acl_fails(aclmdlRICaptureEnd(st, &ri), code);
	sys_true(!ri, "a model came of a capture that went wrong");
	acl_ok(aclmdlRICaptureGetInfo(st, &status, NULL));
	sys_eq(status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
	acl_ok(aclrtSynchronizeStream(st));
	acl_ok(aclrtSynchronizeStream(other));
}

static void wrong(void **state)
{
	aclrtEvent old = new_event();
	aclmdlRI ri;

	(void)state;
	refused_make();
	/* joined, with work after its record, or without one */
	acl_ok(aclmdlRICaptureBegin(st, RELAXED));
	acl_ok(aclrtRecordEvent(ev, st));
	acl_ok(aclrtStreamWaitEvent(other, ev));
	acl_fails(aclmdlRICaptureEnd(other, &ri), ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED);
	spoiled(ACL_ERROR_RT_STREAM_UNJOINED);
	acl_ok(aclmdlRICaptureBegin(st, RELAXED));
	acl_ok(aclrtRecordEvent(ev, st));
	acl_ok(aclrtStreamWaitEvent(other, ev));
	acl_ok(aclrtRecordEvent(old, other));
	acl_ok(aclrtStreamWaitEvent(st, old));
	acl_ok(aclrtMemsetAsync(mem, 64, 1, 64, other));
	spoiled(ACL_ERROR_RT_STREAM_UNJOINED);
	/* a wait for what was recorded outside; what was never recorded is complete */
	acl_ok(aclmdlRICaptureBegin(st, RELAXED));
	acl_ok(aclrtDestroyEvent(ev));
	ev = new_event();
	acl_ok(aclrtStreamWaitEvent(st, ev));
	acl_ok(aclrtRecordEvent(old, other));
	acl_fails(aclrtStreamWaitEvent(st, old), ACL_ERROR_RT_CAPTURE_DEPENDENCY);
	acl_fails(aclrtMemsetAsync(mem, 64, 1, 64, st), ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
	spoiled(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
	/* two captures have nothing to do with each other: both are spoilt */
	acl_ok(aclmdlRICaptureBegin(st, RELAXED));
	acl_ok(aclmdlRICaptureBegin(other, RELAXED));
	acl_ok(aclrtRecordEvent(ev, other));
	acl_fails(aclrtStreamWaitEvent(st, ev), ACL_ERROR_STREAM_CAPTURE_CONFLICT);
	acl_fails(aclmdlRICaptureEnd(other, &ri), ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
	spoiled(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
	/* a default stream does not join */
	acl_ok(aclmdlRICaptureBegin(st, RELAXED));
	acl_ok(aclrtRecordEvent(ev, st));
	acl_fails(aclrtStreamWaitEvent(NULL, ev), ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT);
	acl_ok(aclmdlRIDestroy(capture_end(st)));
	acl_ok(aclrtDestroyEvent(old));
	refused_drop();
}

/* Nothing is ended: the reset takes it all. */
static void left_open(void **state)
{
	aclrtTaskGrp grp;
	aclmdlRI ri;

	(void)state;
	refused_make();
	acl_ok(aclmdlRICaptureBegin(st, GLOBAL));
	acl_ok(aclmdlRICaptureTaskGrpBegin(st));
	acl_ok(aclrtMemsetAsync(mem, 64, 1, 64, st));
	acl_ok(aclmdlRICaptureTaskGrpEnd(st, &grp));
	ri = capture_end(st);
	acl_ok(aclmdlRIExecuteAsync(ri, st));
	acl_ok(aclmdlRICaptureTaskUpdateBegin(other, grp));
	acl_ok(aclmdlRICaptureBegin(st, GLOBAL));
	acl_ok(aclrtRecordEvent(ev, st));
	acl_ok(aclrtLaunchHostFunc(st, count_call, NULL));
	acl_ok(aclrtResetDevice(0));
	acl_ok(aclrtSetDevice(0));
	acl_fails(aclmdlRIExecuteAsync(ri, NULL), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclmdlRIDestroy(ri), ACL_ERROR_RT_PARAM_INVALID);
	mem = device_memory(64);	/* nothing is captured any more */
	acl_ok(aclrtFree(mem));
	acl_ok(aclrtFreeHost(host));
	acl_ok(aclrtDestroyEvent(ev));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		acl_test(kinds),
		acl_test(thousands),
		acl_test(fork_join),
		acl_test(refused),
		acl_test(modes),
		acl_test(wrong),
		acl_test(left_open),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
