// SPDX-License-Identifier: MIT
/*
 * Profiling: what was submitted, counted here, is what npuemu-trace's reader finds in the
 * files, task by task; of other devices, and of before and after, there is nothing.
 */
#include <acl/acl.h>
#include <acl/acl_prof.h>
#include <dirent.h>
#include <json-c/json.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acltest.h"
#include "core.h"
#include "sys.h"
#include "../../tools/trace/read.c"

#define ALL	(ACL_PROF_TASK_TIME | ACL_PROF_MSPROFTX | ACL_PROF_TRAINING_TRACE)

static char dir[256];

static int prof_begin(void **state)
{
	const char *tmp = getenv("TMPDIR");
	int rc = acl_begin(state);

	snprintf(dir, sizeof(dir), "%s/prof-XXXXXX", tmp ? tmp : "/tmp");
	return rc ? rc : mkdtemp(dir) ? 0 : -1;
}

static int prof_end(void **state)
{
	char cmd[300];

	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	sys_eq(system(cmd), 0);
	return acl_end(state);
}

#define prof_test(fn) cmocka_unit_test_setup_teardown(fn, prof_begin, prof_end)

static void init(void)
{
	acl_ok(aclprofInit(dir, strlen(dir)));
}

static aclprofConfig *config(uint32_t device, uint64_t types)
{
	aclprofConfig *c = aclprofCreateConfig(&device, 1, ACL_AICORE_NONE, NULL, types);

	sys_true(c, "aclprofCreateConfig: %s", aclGetRecentErrMsg());
	return c;
}

/* The folder that the start with this number made; there has to be one. */
static void folder(int number, char *path, size_t size)
{
	char begin[32];
	struct dirent *e;
	DIR *d = opendir(dir);
	int n = 0;

	sys_true(d, "%s", dir);
	snprintf(begin, sizeof(begin), "PROF_%06d_", number);
	while ((e = readdir(d)))
		if (!strncmp(e->d_name, begin, strlen(begin))) {
			snprintf(path, size, "%s/%s", dir, e->d_name);
			n++;
		}
	closedir(d);
	sys_true(n == 1, "%d folders %s in %s", n, begin, dir);
}

/* The folders are numbered in a process from its first start on. */
static int starts;

static void read_last(struct trace *t)
{
	char path[600], err[TRACE_ERR];

	folder(starts, path, sizeof(path));
	sys_true(!trace_read(t, path, err), "%s", err);
	sys_eq(t->lost, 0);
}

static void start(aclprofConfig *c)
{
	acl_ok(aclprofStart(c));
	starts++;
}

static unsigned int count(const struct trace *t, uint32_t event)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < t->n; i++)
		n += NPUEMU_TRACE_EVENT(&t->item[i].r) == event;
	return n;
}

/* ---- What was submitted ------------------------------------------------------------- */

struct task {
	uint32_t stream, id, kind, device;
	uint64_t about;		/* bytes; 0: not compared */
	bool seen;
};

static struct task expected[4096];
static unsigned int nexpected, ndescriptors;

static uint32_t stream_id(aclrtStream s)
{
	int32_t id;

	acl_ok(aclrtStreamGetId(s, &id));
	return (uint32_t)id;
}

/* The call before was a submission of this kind. */
static void submitted(aclrtStream s, uint32_t kind, uint64_t about)
{
	struct task *t = &expected[nexpected++];

	memset(t, 0, sizeof(*t));
	acl_ok(aclrtGetThreadLastTaskId(&t->id));
	t->stream = stream_id(s);
	t->kind = kind;
	t->about = about;
	ndescriptors += kind <= NPUEMU_TT_STORE;
}

static void forget(void)
{
	nexpected = 0;
	ndescriptors = 0;
}

static struct task *find(uint32_t stream, uint32_t id)
{
	unsigned int i;

	for (i = 0; i < nexpected; i++)
		if (expected[i].stream == stream && expected[i].id == id)
			return &expected[i];
	return NULL;
}

/* Each of them once, right, in its stream's order, between these times; nothing else. */
static void is_expected(const struct trace *t, uint64_t from, uint64_t to)
{
	uint64_t end[64] = { 0 };
	struct task *x;
	size_t i;

	for (i = 0; i < t->n; i++) {
		const struct trace_item *it = &t->item[i];
		const struct npuemu_trace_record *r = &it->r;

		if (NPUEMU_TRACE_EVENT(r) != NPUEMU_TR_TASK)
			continue;
		x = find(r->queue, r->index);
		sys_true(x && !x->seen, "task %u of stream %u is there twice, or was not submitted", r->index,
			 r->queue);
		x->seen = true;
		sys_eq(NPUEMU_TRACE_OF(r), x->kind);
		sys_eq(r->device, 0);
		sys_true(it->told == (x->kind != NPUEMU_TT_HOST_FUNC), "task %u of stream %u: about what?", r->index,
			 r->queue);
		sys_true(!x->about || it->about == x->about, "task %u of stream %u: %llu, not %llu", r->index,
			 r->queue, (unsigned long long)it->about, (unsigned long long)x->about);
		sys_eq(r->event & NPUEMU_TRACE_FAILED, 0);
		sys_true(r->ns >= from && r->ns + r->arg <= to, "task %u of stream %u: not when it ran", r->index,
			 r->queue);
		sys_true(r->ns >= end[r->queue % 64], "task %u of stream %u begins before the one before ends",
			 r->index, r->queue);
		end[r->queue % 64] = r->ns + r->arg;
	}
	sys_eq(count(t, NPUEMU_TR_TASK), nexpected);
}

static void nap_3_ms(void *arg)
{
	(void)arg;
	usleep(3000);
}

static void *device_memory(size_t bytes)
{
	void *p = NULL;

	acl_ok(aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	return p;
}

static aclrtStream new_stream(void)
{
	aclrtStream s = NULL;

	acl_ok(aclrtCreateStream(&s));
	return s;
}

/* Two streams: copies, fills, a function of the host's that the other one waits for. */
static void submit(unsigned char *d, aclrtStream a, aclrtStream b, aclrtEvent e, int copies)
{
	int i;

	for (i = 0; i < copies; i++) {
		acl_ok(aclrtMemcpyAsync(d + 65536, 64 + (size_t)i, d, 64 + (size_t)i, ACL_MEMCPY_DEVICE_TO_DEVICE, a));
		submitted(a, NPUEMU_TT_COPY, 64 + (uint64_t)i);
		acl_ok(aclrtMemsetAsync(d + 131072, 32, i, 32, b));
		submitted(b, NPUEMU_TT_FILL, 32);
	}
	acl_ok(aclrtLaunchHostFunc(a, nap_3_ms, NULL));
	submitted(a, NPUEMU_TT_HOST_FUNC, 0);
	acl_ok(aclrtRecordEvent(e, a));
	submitted(a, NPUEMU_TT_EVENT_RECORD, 0);
	acl_ok(aclrtStreamWaitEvent(b, e));
	submitted(b, NPUEMU_TT_EVENT_WAIT, 0);
	acl_ok(aclrtMemcpyAsync(d, 4096, d + 8192, 4096, ACL_MEMCPY_DEVICE_TO_DEVICE, b));
	submitted(b, NPUEMU_TT_COPY, 4096);
	acl_ok(aclrtSynchronizeStream(a));
	acl_ok(aclrtSynchronizeStream(b));
}

/* What queues did: each descriptor was fetched, on this device, and no queue failed. */
static void queues_did(const struct trace *t, unsigned int fetched)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < t->n; i++) {
		const struct npuemu_trace_record *r = &t->item[i].r;

		if (!trace_is_engine(&t->item[i]))
			continue;
		n += r->event == NPUEMU_TR_EXECUTE;
		sys_eq(r->device, 0);
		sys_true(r->event != NPUEMU_TR_COMPLETE || !r->arg, "a WQE failed");
	}
	sys_eq(n, sys_kernel() ? 0 : fetched);
	sys_true(sys_kernel() || count(t, NPUEMU_TR_DOORBELL), "no doorbells");
}

static void what_was_submitted(void **state)
{
	const int copies = sys_slow() ? 70 : 300;
	unsigned char *d = device_memory(1 << 20);
	aclrtStream a = new_stream(), b = new_stream();
	aclprofConfig *c = config(0, ALL);
	uint64_t from, to;
	struct trace t;
	aclrtEvent e;
	size_t i;
	int round;

	(void)state;
	acl_ok(aclrtCreateEventWithFlag(&e, ACL_EVENT_SYNC));
	init();
	for (round = 0; round < 2; round++) {
		submit(d, a, b, e, 3);	/* before: nothing of it is there */
		forget();
		start(c);
		from = (uint64_t)npuemu_now_ns();
		submit(d, a, b, e, copies + round);
		to = (uint64_t)npuemu_now_ns();
		acl_ok(aclprofStop(c));
		read_last(&t);
		is_expected(&t, from, to);
		queues_did(&t, ndescriptors);
		for (i = 0; i < t.n; i++) {
			const struct npuemu_trace_record *r = &t.item[i].r;
			const uint32_t kind = NPUEMU_TRACE_OF(r);

			if (NPUEMU_TRACE_EVENT(r) != NPUEMU_TR_TASK)
				continue;
			if (kind == NPUEMU_TT_HOST_FUNC)
				sys_true(r->arg >= 3000000, "the function took %llu ns", (unsigned long long)r->arg);
		}
		trace_free(&t);
	}
	submit(d, a, b, e, 3);	/* after it: likewise, and the file does not grow */
	read_last(&t);
	sys_eq(count(&t, NPUEMU_TR_TASK), 2 * ((unsigned int)copies + 1) + 4);
	trace_free(&t);
	acl_ok(aclprofFinalize());
	acl_ok(aclprofDestroyConfig(c));
	acl_ok(aclrtDestroyEvent(e));
	acl_ok(aclrtDestroyStream(a));
	acl_ok(aclrtDestroyStream(b));
	acl_ok(aclrtFree(d));
}

/* ---- Devices ------------------------------------------------------------------------------ */

static void fill_on(int device, int n)
{
	unsigned char *d;
	aclrtStream s;
	int i;

	acl_ok(aclrtSetDevice(device));
	d = device_memory(4096);
	s = new_stream();
	for (i = 0; i < n; i++)
		acl_ok(aclrtMemsetAsync(d, 4096, i, 4096, s));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtFree(d));
	acl_ok(aclrtSetDevice(0));
}

static void tasks_of(int number, uint32_t device, unsigned int n)
{
	char path[600], err[TRACE_ERR];
	struct trace t;
	size_t i;

	folder(number, path, sizeof(path));
	sys_true(!trace_read(&t, path, err), "%s", err);
	sys_eq(count(&t, NPUEMU_TR_TASK), n);
	for (i = 0; i < t.n; i++)
		sys_true(t.item[i].r.device == device || t.item[i].r.device == NPUEMU_TRACE_HOST,
			 "a record of device %u in the trace of device %u", t.item[i].r.device, device);
	trace_free(&t);
}

static void devices(void **state)
{
	aclprofConfig *c0 = config(0, ALL), *c1 = config(1, ALL), *again = config(1, ALL);
	uint32_t both[2] = { 0, 1 };
	aclprofConfig *c01 = aclprofCreateConfig(both, 2, ACL_AICORE_NONE, NULL, ALL);

	(void)state;
	init();
	start(c0);
	fill_on(1, 20);
	fill_on(0, 3);
	start(c1);	/* beside it */
	acl_fails(aclprofStart(c01), ACL_ERROR_PROF_ALREADY_RUN);
	acl_fails(aclprofStart(again), ACL_ERROR_PROF_ALREADY_RUN);
	fill_on(1, 5);
	fill_on(0, 4);
	acl_fails(aclprofStop(again), ACL_ERROR_INVALID_PROFILING_CONFIG);
	acl_ok(aclprofStop(c0));
	fill_on(0, 6);
	fill_on(1, 7);
	acl_ok(aclprofFinalize());	/* stops the other one */
	tasks_of(starts - 1, 0, 7);
	tasks_of(starts, 1, 12);
	acl_ok(aclprofDestroyConfig(c0));
	acl_ok(aclprofDestroyConfig(c1));
	acl_ok(aclprofDestroyConfig(again));
	acl_ok(aclprofDestroyConfig(c01));
	acl_ok(aclrtResetDevice(1));
}

/* ---- Marks, ranges, steps ------------------------------------------------------------------- */

static void *stop_range(void *arg)
{
	acl_ok(aclprofRangeStop(*(uint32_t *)arg));
	return NULL;
}

static void *stamp(const char *text)
{
	void *s = aclprofCreateStamp();

	sys_true(s, "aclprofCreateStamp: %s", aclGetRecentErrMsg());
	acl_ok(aclprofSetStampTraceMessage(s, text, (uint32_t)strlen(text)));
	return s;
}

static const struct trace_item *named(const struct trace *t, uint32_t event, const char *text)
{
	const struct trace_item *found = NULL;
	size_t i;

	for (i = 0; i < t->n; i++) {
		if (NPUEMU_TRACE_EVENT(&t->item[i].r) != event || !t->item[i].text ||
		    strcmp(t->item[i].text, text))
			continue;
		sys_true(!found || event == NPUEMU_TR_MARK, "\"%s\" is there twice", text);
		found = &t->item[i];
	}
	sys_true(found, "\"%s\" is not there", text);
	return found;
}

static void note_all(aclrtStream s)
{
	static const char longest[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
				      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde";
	void *outer = stamp("outer"), *inner = stamp("inner \"one\""), *wide = stamp(longest);
	aclprofTensorInfo info = { .opNameId = aclprofStr2Id("MatMul") };
	aclprofEventAttributes attr = { .version = 1, .size = sizeof(attr), .message.tensorInfo = &info };
	aclprofStepInfo *step = aclprofCreateStepInfo();
	pthread_t thread;
	uint32_t id;

	sys_eq(strlen(longest), 127);
	acl_ok(aclprofPush(outer));
	acl_ok(aclprofPush(inner));
	acl_ok(aclprofRangeStart(wide, &id));
	acl_ok(aclprofMark(inner));
	sys_eq(aclprofStr2Id("MatMul"), info.opNameId);
	acl_ok(aclprofRangePushEx(&attr));
	acl_ok(aclprofGetStepTimestamp(step, ACL_STEP_START, s));
	acl_ok(aclprofMarkEx("on the stream", 13, s));
	acl_ok(aclprofGetStepTimestamp(step, ACL_STEP_END, s));
	acl_ok(aclrtSynchronizeStream(s));
	usleep(1000);
	acl_ok(aclprofRangePop());
	acl_ok(aclprofPop());
	acl_ok(aclprofPop());
	sys_eq(pthread_create(&thread, NULL, stop_range, &id), 0);
	pthread_join(thread, NULL);
	aclprofDestroyStamp(outer);
	aclprofDestroyStamp(inner);
	aclprofDestroyStamp(wide);
	aclprofDestroyStepInfo(step);
}

static void are_noted(const struct trace *t, uint32_t stream)
{
	const struct trace_item *outer = named(t, NPUEMU_TR_RANGE, "outer");
	const struct trace_item *inner = named(t, NPUEMU_TR_RANGE, "inner \"one\"");
	const struct trace_item *op = named(t, NPUEMU_TR_RANGE, "MatMul");
	const struct trace_item *mark = named(t, NPUEMU_TR_MARK, "inner \"one\"");
	unsigned int there = 0, begins = 0, ends = 0;
	size_t i;

	sys_eq(count(t, NPUEMU_TR_RANGE), 4);
	sys_eq(count(t, NPUEMU_TR_MARK), 3);
	sys_true(inner->r.ns >= outer->r.ns && inner->r.ns + inner->r.arg <= outer->r.ns + outer->r.arg,
		 "the inner range is not in the outer one");
	sys_true(op->r.arg >= 1000000 && inner->r.arg >= op->r.arg, "a range has not its time");
	sys_true(mark->r.ns >= inner->r.ns && mark->r.ns <= op->r.ns, "the mark is not where it was");
	sys_eq(NPUEMU_TRACE_OF(&op->r), NPUEMU_TG_OPERATOR);
	for (i = 0; i < t->n; i++) {
		const struct trace_item *it = &t->item[i];
		const bool here = it->r.device == 0 && it->r.index == stream;

		if (NPUEMU_TRACE_EVENT(&it->r) == NPUEMU_TR_MARK && it->text && !strcmp(it->text, "on the stream"))
			there += here;
		if (NPUEMU_TRACE_EVENT(&it->r) == NPUEMU_TR_STEP && here) {
			begins += NPUEMU_TRACE_OF(&it->r) == ACL_STEP_START;
			ends += NPUEMU_TRACE_OF(&it->r) == ACL_STEP_END;
		}
	}
	sys_true(there == 1 && begins == 1 && ends == 1, "%u marks, %u begins, %u ends on the stream", there, begins,
		 ends);
}

static void notes(void **state)
{
	aclprofConfig *all = config(0, ALL), *tasks = config(0, ACL_PROF_TASK_TIME);
	aclrtStream s = new_stream();
	uint32_t before, after;
	struct trace t;

	(void)state;
	init();
	start(all);
	note_all(s);
	acl_ok(aclprofStop(all));
	read_last(&t);
	are_noted(&t, stream_id(s));
	trace_free(&t);
	start(tasks);	/* allowed, and without effect */
	acl_ok(aclrtGetThreadLastTaskId(&before));
	note_all(s);
	acl_ok(aclrtGetThreadLastTaskId(&after));
	sys_eq(after, before);
	acl_ok(aclprofStop(tasks));
	read_last(&t);
	sys_eq(count(&t, NPUEMU_TR_MARK) + count(&t, NPUEMU_TR_RANGE) + count(&t, NPUEMU_TR_STEP), 0);
	trace_free(&t);
	acl_ok(aclprofFinalize());
	acl_ok(aclprofDestroyConfig(all));
	acl_ok(aclprofDestroyConfig(tasks));
	acl_ok(aclrtDestroyStream(s));
}

/* ---- Models, failures, many, ends --------------------------------------------------------------- */

static unsigned int of_kind(const struct trace *t, uint32_t kind, bool failed)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < t->n; i++)
		n += NPUEMU_TRACE_EVENT(&t->item[i].r) == NPUEMU_TR_TASK &&
		     NPUEMU_TRACE_OF(&t->item[i].r) == kind &&
		     !!(t->item[i].r.event & NPUEMU_TRACE_FAILED) == failed;
	return n;
}

/* Recorded tasks are there each time that they run. */
static void models(void **state)
{
	unsigned char *d = device_memory(4096);
	aclprofConfig *c = config(0, ALL);
	aclrtStream s = new_stream();
	struct trace t;
	aclmdlRI ri;
	int i;

	(void)state;
	init();
	acl_ok(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
	for (i = 0; i < 5; i++)
		acl_ok(aclrtMemsetAsync(d, 4096, i, 4096, s));
	acl_ok(aclrtLaunchHostFunc(s, nap_3_ms, NULL));
	acl_ok(aclmdlRICaptureEnd(s, &ri));
	start(c);
	for (i = 0; i < 3; i++)
		acl_ok(aclmdlRIExecuteAsync(ri, s));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclprofStop(c));
	read_last(&t);
	sys_eq(of_kind(&t, NPUEMU_TT_FILL, false), 15);
	sys_eq(of_kind(&t, NPUEMU_TT_HOST_FUNC, false), 3);
	sys_eq(of_kind(&t, NPUEMU_TT_MODEL, false), 3);
	sys_eq(count(&t, NPUEMU_TR_TASK), 21);
	trace_free(&t);
	acl_ok(aclprofFinalize());
	acl_ok(aclprofDestroyConfig(c));
	acl_ok(aclmdlRIDestroy(ri));
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtFree(d));
}

/* A file that is complete although nobody stopped: aclFinalize does. */
static void failures(void **state)
{
	struct npuemu *board = sys_open();
	struct npuemu_fault f = {
		.size = sizeof(f), .kind = NPUEMU_FAULT_STATUS, .slot = NPUEMU_ANY, .queue = NPUEMU_ANY,
		.device = NPUEMU_ANY, .status = NPUEMU_ST_LOC_ACCESS, .rate_ppm = 1000000, .count = 1,
	};
	unsigned char *d = device_memory(4096);
	aclprofConfig *c = config(0, ALL);
	aclrtStream s = new_stream();
	struct trace t;

	(void)state;
	init();
	start(c);
	sys_rc(npuemu_fault_inject(board, &f));
	acl_ok(aclrtMemsetAsync(d, 64, 1, 64, s));
	acl_ok(aclrtMemsetAsync(d, 64, 1, 64, s));
	acl_fails(aclrtSynchronizeStream(s), ACL_ERROR_RT_SYS_DMA);
	sys_rc(npuemu_fault_clear(board));
	sys_rc(npuemu_close(board));
	acl_ok(aclFinalize());
	read_last(&t);
	sys_eq(of_kind(&t, NPUEMU_TT_FILL, true), 1);
	sys_eq(of_kind(&t, NPUEMU_TT_FILL, false), 1);
	trace_free(&t);
	acl_ok(aclInit(NULL));
	acl_ok(aclrtSetDevice(0));
	acl_fails(aclprofStop(c), ACL_ERROR_PROF_NOT_RUN);
	acl_ok(aclprofFinalize());
	acl_ok(aclprofDestroyConfig(c));
}

/* ---- By the file that aclInit is given ------------------------------------------------ */

/* @ stands for the folder */
static const char *settings(const char *text)
{
	const char *at = strchr(text, '@');
	static char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/acl.json", dir);
	f = fopen(path, "w");
	sys_true(f, "%s", path);
	if (at)
		fprintf(f, "%.*s%s%s", (int)(at - text), text, dir, at + 1);
	else
		fputs(text, f);
	sys_eq(fclose(f), 0);
	return path;
}

static void one_fill(void)
{
	unsigned char *d;
	aclrtStream s;

	acl_ok(aclrtSetDevice(0));
	d = device_memory(4096);
	s = new_stream();
	acl_ok(aclrtMemsetAsync(d, 64, 1, 64, s));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtFree(d));
}

static void by_file(void **state)
{
	static const struct {
		const char *text;
		aclError want;
	} wrong[] = {
		{ "{\"profiler\": []}", ACL_ERROR_INVALID_PROFILING_CONFIG },
		{ "{\"profiler\": {\"switch\": true}}", ACL_ERROR_INVALID_PROFILING_CONFIG },
		{ "{\"profiler\": {\"switch\": \"on\", \"output\": \"@/acl.json\"}}", ACL_ERROR_INVALID_FILE },
		{ "{\"profiler\": {\"switch\": \"on\", \"output\": \"@\", \"storage_limit\": \"1MB\"}}",
		  ACL_ERROR_INVALID_PROFILING_CONFIG },
		{ "{\"profiler\": {\"switch\": \"on\", \"output\": \"@\"}, \"defaultDevice\": {\"default_device\": \"99\"}}",
		  ACL_ERROR_INVALID_PARAM },
	};
	struct trace t;
	size_t i;

	(void)state;
	acl_ok(aclFinalize());
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		acl_fails(aclInit(settings(wrong[i].text)), wrong[i].want);
	/* nothing of a refused file is left */
	acl_ok(aclInit(NULL));
	init();
	acl_ok(aclprofFinalize());
	acl_ok(aclFinalize());
	acl_ok(aclInit(settings("{\"profiler\": {\"switch\": \"on\", \"output\": \"@\", \"aicpu\": \"on\"}}")));
	starts++;
	acl_fails(aclprofInit(dir, strlen(dir)), ACL_ERROR_REPEAT_INITIALIZE);
	acl_fails(aclprofFinalize(), ACL_ERROR_PROF_NOT_RUN);
	one_fill();
	acl_ok(aclFinalize());
	read_last(&t);
	sys_eq(of_kind(&t, NPUEMU_TT_FILL, false), 1);
	trace_free(&t);
	/* off, or not said; and then a program may profile itself */
	acl_ok(aclInit(settings("{\"profiler\": {\"output\": \"@\"}}")));
	one_fill();
	init();
	acl_ok(aclprofFinalize());
	acl_ok(aclFinalize());
	read_last(&t);	/* still the one before: folder() wants one of each number */
	sys_eq(of_kind(&t, NPUEMU_TT_FILL, false), 1);
	trace_free(&t);
	acl_ok(aclInit(NULL));
	acl_ok(aclrtSetDevice(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		prof_test(what_was_submitted),
		prof_test(devices),
		prof_test(notes),
		prof_test(models),
		prof_test(failures),
		prof_test(by_file),
	};

	sys_start();
	return cmocka_run_group_tests_name("acl_prof", tests, NULL, NULL);
}
