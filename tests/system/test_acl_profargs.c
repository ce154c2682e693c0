// SPDX-License-Identifier: MIT
/*
 * Profiling beyond the usual: wrong arguments, wrong order, more records than a ring has,
 * a full disk's limit, processes that end without a word, damaged files, the tool.
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

static aclprofConfig *config(uint32_t device, uint64_t types)
{
	aclprofConfig *c = aclprofCreateConfig(&device, 1, ACL_AICORE_NONE, NULL, types);

	sys_true(c, "aclprofCreateConfig: %s", aclGetRecentErrMsg());
	return c;
}

/* The one file below @in. */
static void find_file(const char *in, char *path, size_t size)
{
	DIR *d = opendir(in);
	struct dirent *e;
	int n = 0;

	sys_true(d, "%s", in);
	while ((e = readdir(d)))
		if (!strncmp(e->d_name, "PROF_", 5)) {
			snprintf(path, size, "%s/%s/%s", in, e->d_name, NPUEMU_TRACE_NAME);
			n++;
		}
	closedir(d);
	sys_true(n == 1, "%d folders in %s", n, in);
}

static unsigned int count(const struct trace *t, uint32_t event)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < t->n; i++)
		n += NPUEMU_TRACE_EVENT(&t->item[i].r) == event;
	return n;
}

static void stamped(void)
{
	void *s = aclprofCreateStamp();

	acl_ok(aclprofSetStampTraceMessage(s, "here", 4));
	acl_ok(aclprofMark(s));
	aclprofDestroyStamp(s);
}

/* ---- Wrong arguments ------------------------------------------------------------------- */

#define STR(s)	(s), strlen(s)

static aclprofConfig *gone, *good;
static void *stamp;
static aclprofStepInfo *step;
static aclprofEventAttributes attr;
static aclprofTensorInfo tensors;
static uint32_t range, devices[65];
static char text[200];

ACL_CALL(init_null, aclprofInit(NULL, 3));
ACL_CALL(init_empty, aclprofInit(dir, 0));
ACL_CALL(init_short, aclprofInit(dir, strlen(dir) + 1));
ACL_CALL(init_long, aclprofInit(dir, strlen(dir) - 1));
ACL_CALL(start_null, aclprofStart(NULL));
ACL_CALL(start_gone, aclprofStart(gone));
ACL_CALL(start_foreign, aclprofStart((aclprofConfig *)(void *)text));
ACL_CALL(start_inside, aclprofStart((aclprofConfig *)(void *)((char *)good + 8)));
ACL_CALL(stop_null, aclprofStop(NULL));
ACL_CALL(stop_gone, aclprofStop(gone));
ACL_CALL(destroy_null, aclprofDestroyConfig(NULL));
ACL_CALL(destroy_gone, aclprofDestroyConfig(gone));
ACL_CALL(set_null, aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, NULL, 3));
ACL_CALL(set_empty, aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, "", 0));
ACL_CALL(set_length, aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, "200MB", 4));
ACL_CALL(set_min, aclprofSetConfig(ACL_PROF_ARGS_MIN, STR("1")));
ACL_CALL(set_hole, aclprofSetConfig((aclprofConfigType)2, STR("1")));
ACL_CALL(set_max, aclprofSetConfig(ACL_PROF_ARGS_MAX, STR("1")));
ACL_CALL(message_null, aclprofSetStampTraceMessage(stamp, NULL, 3));
ACL_CALL(message_empty, aclprofSetStampTraceMessage(stamp, "", 0));
ACL_CALL(message_length, aclprofSetStampTraceMessage(stamp, "abc", 4));
ACL_CALL(message_long, aclprofSetStampTraceMessage(stamp, text, 128));
ACL_CALL(message_stamp, aclprofSetStampTraceMessage(NULL, "abc", 3));
ACL_CALL(message_foreign, aclprofSetStampTraceMessage(text, "abc", 3));
ACL_CALL(mark_null, aclprofMark(NULL));
ACL_CALL(mark_foreign, aclprofMark(text));
ACL_CALL(mark_ex_null, aclprofMarkEx(NULL, 1, NULL));
ACL_CALL(mark_ex_long, aclprofMarkEx(text, 128, NULL));
ACL_CALL(push_null, aclprofPush(NULL));
ACL_CALL(push_foreign, aclprofPush(text));
ACL_CALL(range_null, aclprofRangeStart(NULL, &range));
ACL_CALL(range_id, aclprofRangeStart(stamp, NULL));
ACL_CALL(range_none, aclprofRangeStop(4711));
ACL_CALL(push_ex_null, aclprofRangePushEx(NULL));
ACL_CALL(step_null, aclprofGetStepTimestamp(NULL, ACL_STEP_START, NULL));
ACL_CALL(step_foreign, aclprofGetStepTimestamp((aclprofStepInfo *)(void *)text, ACL_STEP_START, NULL));
ACL_CALL(step_tag, aclprofGetStepTimestamp(step, (aclprofStepTag)2, NULL));

static const struct acl_call *const bad_arguments[] = {
	&start_null, &start_gone, &start_foreign, &start_inside, &stop_null, &stop_gone, &destroy_null,
	&destroy_gone, &set_null, &set_empty, &set_length, &set_min, &set_hole, &set_max, &message_null,
	&message_empty, &message_length, &message_long, &message_stamp, &message_foreign, &mark_null,
	&mark_foreign, &mark_ex_null, &mark_ex_long, &push_null, &push_foreign, &range_null, &range_id,
	&range_none, &push_ex_null, &step_null, &step_foreign, &step_tag,
};

static const struct acl_call *const bad_inits[] = { &init_null, &init_empty, &init_short, &init_long };

ACL_CALL(off_start, aclprofStart(good));
ACL_CALL(off_stop, aclprofStop(good));
ACL_CALL(off_finalize, aclprofFinalize());
ACL_CALL(off_set, aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, STR("200MB")));
ACL_CALL(off_message, aclprofSetStampTraceMessage(stamp, "abc", 3));
ACL_CALL(off_mark, aclprofMark(stamp));
ACL_CALL(off_mark_ex, aclprofMarkEx("abc", 3, NULL));
ACL_CALL(off_push, aclprofPush(stamp));
ACL_CALL(off_pop, aclprofPop());
ACL_CALL(off_range, aclprofRangeStart(stamp, &range));
ACL_CALL(off_range_stop, aclprofRangeStop(1));
ACL_CALL(off_push_ex, aclprofRangePushEx(&attr));
ACL_CALL(off_range_pop, aclprofRangePop());
ACL_CALL(off_step, aclprofGetStepTimestamp(step, ACL_STEP_END, NULL));

static const struct acl_call *const before_and_after[] = {
	&off_start, &off_stop, &off_finalize, &off_set, &off_message, &off_mark, &off_mark_ex, &off_push,
	&off_pop, &off_range, &off_range_stop, &off_push_ex, &off_range_pop, &off_step,
};

#define fails_all(list, code) acl_all_fail(list, sizeof(list) / sizeof((list)[0]), code)

/* NULL, with a message about @word. */
static void no_config(uint32_t *list, uint32_t n, int metrics, const void *events, uint64_t types,
		      const char *word)
{
	const char *msg;

	aclGetRecentErrMsg();
	sys_true(!aclprofCreateConfig(list, n, (aclprofAicoreMetrics)metrics, events, types), "%s", word);
	msg = aclGetRecentErrMsg();
	sys_true(msg && strstr(msg, word), "nothing about %s: %s", word, msg ? msg : "no message");
}

static void wrong_configs(void)
{
	uint32_t i;

	for (i = 0; i < 65; i++)
		devices[i] = i;
	no_config(NULL, 1, ACL_AICORE_NONE, NULL, ALL, "deviceIdList");
	no_config(devices, 0, ACL_AICORE_NONE, NULL, ALL, "deviceNums");
	no_config(devices, 65, ACL_AICORE_NONE, NULL, ALL, "deviceNums");
	no_config(devices, 1, 9, NULL, ALL, "aclprofAicoreMetrics");
	no_config(devices, 1, -1, NULL, ALL, "aclprofAicoreMetrics");
	no_config(devices, 1, ACL_AICORE_NONE, text, ALL, "aicoreEvents");
	no_config(devices, 1, ACL_AICORE_NONE, NULL, ALL | 0x400, "0x400");
	devices[1] = 0;
	no_config(devices, 2, ACL_AICORE_NONE, NULL, ALL, "twice");
}

static void wrong_attributes(void)
{
	attr = (aclprofEventAttributes){ .version = 2, .size = sizeof(attr), .message.tensorInfo = &tensors };
	acl_fails(aclprofRangePushEx(&attr), ACL_ERROR_INVALID_PARAM);
	attr.version = 1;
	attr.size--;
	acl_fails(aclprofRangePushEx(&attr), ACL_ERROR_INVALID_PARAM);
	attr.size++;
	attr.messageType = 1;
	acl_fails(aclprofRangePushEx(&attr), ACL_ERROR_INVALID_PARAM);
	attr.messageType = 0;
	attr.message.tensorInfo = NULL;
	acl_fails(aclprofRangePushEx(&attr), ACL_ERROR_INVALID_PARAM);
	attr.message.tensorInfo = &tensors;
	aclGetRecentErrMsg();
	sys_eq(aclprofStr2Id(NULL), 0);
	sys_true(aclGetRecentErrMsg(), "no message");
	sys_eq(aclprofStr2Id(""), 0);
	sys_true(aclGetRecentErrMsg(), "no message");
}

/* Of functions that return nothing: a message, and no crash. */
static void wrong_handles(void)
{
	void *s = aclprofCreateStamp();
	aclprofStepInfo *p = aclprofCreateStepInfo();
	int i;

	aclprofDestroyStamp(s);
	aclprofDestroyStepInfo(p);
	acl_fails(aclprofMark(s), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclprofGetStepTimestamp(p, ACL_STEP_START, NULL), ACL_ERROR_INVALID_PARAM);
	for (i = 0; i < 3; i++) {
		aclGetRecentErrMsg();
		aclprofDestroyStamp(i == 0 ? s : i == 1 ? NULL : text);
		sys_true(aclGetRecentErrMsg(), "DestroyStamp: no message");
		aclprofDestroyStepInfo(i == 0 ? p : i == 1 ? NULL : (void *)text);
		sys_true(aclGetRecentErrMsg(), "DestroyStepInfo: no message");
	}
}

static void order(void)
{
	aclprofConfig *other = config(63, ALL);
	int i;

	acl_fails(aclprofInit(dir, strlen(dir)), ACL_ERROR_REPEAT_INITIALIZE);
	acl_fails(aclprofStop(good), ACL_ERROR_PROF_NOT_RUN);
	sys_true(aclprofStart(other), "a device that is not there");
	acl_ok(aclprofStart(good));
	acl_fails(aclprofStart(good), ACL_ERROR_PROF_ALREADY_RUN);
	acl_fails(aclprofDestroyConfig(good), ACL_ERROR_PROF_ALREADY_RUN);
	acl_fails(aclprofStop(other), ACL_ERROR_INVALID_PROFILING_CONFIG);
	acl_ok(aclprofStop(good));
	acl_fails(aclprofStop(good), ACL_ERROR_PROF_NOT_RUN);
	acl_fails(aclprofPop(), ACL_ERROR_PROFILING_FAILURE);
	acl_fails(aclprofRangePop(), ACL_ERROR_PROFILING_FAILURE);
	acl_ok(aclprofRangeStart(stamp, &range));
	acl_ok(aclprofRangeStop(range));
	acl_fails(aclprofRangeStop(range), ACL_ERROR_INVALID_PARAM);
	for (i = 0; i < 64; i++)
		acl_ok(aclprofPush(stamp));
	acl_fails(aclprofPush(stamp), ACL_ERROR_STORAGE_OVER_LIMIT);
	/* the ranges that are open end with it */
	acl_ok(aclprofRangeStart(stamp, &range));
	acl_ok(aclprofFinalize());
	acl_ok(aclprofInit(dir, strlen(dir)));
	acl_fails(aclprofPop(), ACL_ERROR_PROFILING_FAILURE);
	acl_fails(aclprofRangeStop(range), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclprofDestroyConfig(other));
}

static void wrong_use(void **state)
{
	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	gone = config(0, ALL);
	acl_ok(aclprofDestroyConfig(gone));
	good = config(0, ALL);
	step = aclprofCreateStepInfo();
	aclGetRecentErrMsg();
	sys_true(!aclprofCreateStamp() && aclGetRecentErrMsg(), "a stamp before aclprofInit");
	fails_all(bad_inits, ACL_ERROR_INVALID_PARAM);
	acl_fails(aclprofInit("/proc/no", 8), ACL_ERROR_INVALID_FILE);
	acl_fails(aclprofInit("/dev/null", 9), ACL_ERROR_INVALID_FILE);
	acl_ok(aclprofInit(dir, strlen(dir)));
	stamp = aclprofCreateStamp();
	sys_true(stamp, "no stamp");
	acl_ok(aclprofFinalize());
	wrong_attributes();
	fails_all(before_and_after, ACL_ERROR_PROF_NOT_RUN);
	acl_ok(aclprofInit(dir, strlen(dir)));
	fails_all(bad_arguments, ACL_ERROR_INVALID_PARAM);
	wrong_configs();
	wrong_handles();
	order();
	acl_fails(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, STR("199MB")), ACL_ERROR_INVALID_PROFILING_CONFIG);
	acl_fails(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, STR("200")), ACL_ERROR_INVALID_PROFILING_CONFIG);
	acl_fails(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, STR("-1MB")), ACL_ERROR_INVALID_PROFILING_CONFIG);
	acl_fails(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, STR("4294967296MB")), ACL_ERROR_INVALID_PROFILING_CONFIG);
	acl_ok(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, STR("200MB")));
	acl_ok(aclprofSetConfig(ACL_PROF_SYS_IO_FREQ, STR("50")));
	acl_fails(aclprofSetConfig(ACL_PROF_PATH, STR("/dev/null")), ACL_ERROR_INVALID_FILE);
	acl_ok(aclprofFinalize());
	fails_all(before_and_after, ACL_ERROR_PROF_NOT_RUN);
	aclprofDestroyStamp(stamp);
	aclprofDestroyStepInfo(step);
	acl_ok(aclprofDestroyConfig(good));
}

/* ---- Many ----------------------------------------------------------------------------------- */

/* More than a ring holds, of three threads, and threads that come and go. */
static void *many_marks(void *arg)
{
	void *s = aclprofCreateStamp();
	int i, n = *(int *)arg;

	acl_ok(aclprofSetStampTraceMessage(s, "here", 4));
	for (i = 0; i < n; i++)
		acl_ok(aclprofMark(s));
	aclprofDestroyStamp(s);
	return NULL;
}

static void many(void **state)
{
	int few = 7, lots = sys_slow() ? 70000 : 150000, i;
	aclprofConfig *c = config(0, ALL);
	char path[600], err[TRACE_ERR];
	unsigned int same = 0;
	pthread_t t[3];
	struct trace tr;

	(void)state;
	acl_ok(aclprofInit(dir, strlen(dir)));
	acl_ok(aclprofStart(c));
	for (i = 0; i < 3; i++)
		sys_eq(pthread_create(&t[i], NULL, many_marks, &lots), 0);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	for (i = 0; i < 50; i++) {
		sys_eq(pthread_create(&t[0], NULL, many_marks, &few), 0);
		pthread_join(t[0], NULL);
	}
	acl_ok(aclprofFinalize());
	find_file(dir, path, sizeof(path));
	sys_true(!trace_read(&tr, path, err), "%s", err);
	sys_eq(tr.lost, 0);
	sys_eq(count(&tr, NPUEMU_TR_MARK), 3 * lots + 50 * few);
	/* none of them twice in the place of another */
	for (i = 1; (size_t)i < tr.n; i++)
		same += tr.item[i].r.ns == tr.item[i - 1].r.ns && tr.item[i].tid == tr.item[i - 1].tid;
	sys_true(same < tr.n / 100, "%u of %zu records have the time of another one", same, tr.n);
	trace_free(&tr);
	acl_ok(aclprofDestroyConfig(c));
}

#define ADDED	1000u

/* Starts and stops while others add: each trace is whole. */
static bool adders_stop;

static void *adder(void *arg)
{
	struct npuemu_trace_record r = { .event = NPUEMU_TR_MARK, .device = NPUEMU_TRACE_HOST };
	unsigned int *n = arg;

	while (!READ_ONCE(adders_stop)) {
		r.ns = (uint64_t)npuemu_now_ns();
		npuemu_trace_put(&r);
		WRITE_ONCE(*n, *n + 1);
	}
	return NULL;
}

/* Each has added that many more. */
static void wait_for_adders(const unsigned int *n)
{
	const unsigned int a = READ_ONCE(n[0]), b = READ_ONCE(n[1]);
	const int64_t deadline = sys_deadline();

	while (READ_ONCE(n[0]) - a < ADDED || READ_ONCE(n[1]) - b < ADDED)
		sys_true(sys_retry(deadline), "the threads that add do not get on");
}

static void starts_and_stops(void **state)
{
	char path[300], err[TRACE_ERR];
	unsigned int added[2] = { 0 };
	struct trace tr;
	pthread_t t[2];
	uint64_t lost;
	int i, k;

	(void)state;
	for (i = 0; i < 2; i++)
		sys_eq(pthread_create(&t[i], NULL, adder, &added[i]), 0);
	for (i = 0; i < 20; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		/* every other one has room for 99 marks, behind the record of their run */
		k = npuemu_trace_start(path, 1, NPUEMU_TRACE_MARKS, i & 1 ? 100 * 32 : UINT64_MAX);
		sys_true(k >= 0, "%s", npuemu_errmsg());
		wait_for_adders(added);
		sys_rc(npuemu_trace_stop(k, &lost));
		sys_true(!trace_read(&tr, path, err), "%s", err);
		sys_true(tr.lost == lost && !!lost == (i & 1), "%llu lost in round %d", (unsigned long long)lost, i);
		sys_true(lost ? count(&tr, NPUEMU_TR_MARK) <= 99 : count(&tr, NPUEMU_TR_MARK) >= 2 * ADDED, "round %d: %u", i,
			 count(&tr, NPUEMU_TR_MARK));
		trace_free(&tr);
		unlink(path);
	}
	WRITE_ONCE(adders_stop, true);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
}

/* ---- Ends, damage, the tool ---------------------------------------------------------------------- */

/* It calls exit() in the middle, and has a file of NPUEMU_TRACE beside it. */
static void leaver(int fd, const void *arg)
{
	aclprofConfig *c;
	void *d;

	(void)fd;
	setenv("NPUEMU_TRACE", (const char *)arg + strlen(arg) + 1, 1);
	acl_ok(aclInit(NULL));
	acl_ok(aclrtSetDevice(0));
	acl_ok(aclrtMalloc(&d, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
	acl_ok(aclrtMemsetAsync(d, 4096, 1, 4096, NULL));
	acl_ok(aclrtSynchronizeStream(NULL));
	acl_ok(aclrtResetDevice(0));
	acl_ok(aclprofInit(arg, strlen(arg)));
	c = config(0, ALL);
	acl_ok(aclprofStart(c));
	stamped();
	exit(0);
}

static void left_in_the_middle(void **state)
{
	char path[600], err[TRACE_ERR], inside[600];
	struct sys_child child;
	struct trace tr;
	int n;

	(void)state;
	/* a folder that is not there yet */
	n = snprintf(inside, sizeof(inside), "%s/a/b", dir) + 1;
	snprintf(path, sizeof(path), "%s/all", dir);
	strcpy(inside + n, path);
	sys_spawn(&child, leaver, inside, (size_t)n + strlen(path) + 1);
	sys_join(&child);
	if (!sys_kernel()) {
		sys_true(!trace_read(&tr, path, err), "%s", err);
		sys_eq(count(&tr, NPUEMU_TR_MARK), 1);
		sys_eq(count(&tr, NPUEMU_TR_TASK), 1);
		sys_true(count(&tr, NPUEMU_TR_EXECUTE), "no WQE");
		trace_free(&tr);
	}
	find_file(inside, path, sizeof(path));
	sys_true(!trace_read(&tr, path, err), "%s", err);
	sys_eq(count(&tr, NPUEMU_TR_MARK), 1);
	sys_eq(count(&tr, NPUEMU_TR_TASK), 0);
	sys_eq(tr.ntexts, 1);
	sys_eq(tr.item[0].pid, (uint32_t)child.pid);
	trace_free(&tr);
}

static void small_trace(char *path, size_t size)
{
	aclprofConfig *c = config(0, ALL);
	void *d;

	acl_ok(aclprofInit(dir, strlen(dir)));
	acl_ok(aclprofStart(c));
	acl_ok(aclrtMalloc(&d, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
	acl_ok(aclrtMemsetAsync(d, 4096, 1, 4096, NULL));
	acl_ok(aclprofMarkEx("a \"quoted\" \\ mark", 17, NULL));
	acl_ok(aclprofMarkEx("\xc3\xa4 and \xff", 8, NULL));
	stamped();
	acl_ok(aclrtSynchronizeStream(NULL));
	acl_ok(aclprofFinalize());
	acl_ok(aclprofDestroyConfig(c));
	acl_ok(aclrtFree(d));
	find_file(dir, path, size);
}

static void write_file(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "we");

	sys_true(f, "%s", path);
	sys_eq(fwrite(bytes, 1, n, f), n);
	sys_eq(fclose(f), 0);
}

/* Cut off anywhere, or with any one byte changed: read, or refused with a message. */
static void damaged(void **state)
{
	char path[600], cut[300], err[TRACE_ERR];
	static unsigned char all[65536];
	size_t n, i, tried = 0, refused = 0;
	struct trace tr;
	FILE *f;

	(void)state;
	small_trace(path, sizeof(path));
	f = fopen(path, "re");
	sys_true(f, "%s", path);
	n = fread(all, 1, sizeof(all), f);
	fclose(f);
	sys_true(n > 10 * 32 && n < sizeof(all), "%zu bytes", n);
	snprintf(cut, sizeof(cut), "%s/cut", dir);
	for (i = 0; i < n; i += 1 + i % 7) {
		write_file(cut, all, i);
		tried++;
		memset(err, 0, sizeof(err));
		if (!trace_read(&tr, cut, err)) {
			trace_free(&tr);
			continue;
		}
		sys_true(strstr(err, cut), "%zu bytes: %s", i, err);
		refused++;
	}
	sys_true(refused > tried - tried / 16, "only %zu of %zu were refused", refused, tried);
	for (i = 0; i < n; i += 1 + i % 3) {
		all[i] ^= 0x55;
		write_file(cut, all, n);
		if (!trace_read(&tr, cut, err))
			trace_free(&tr);
		all[i] ^= 0x55;
	}
	sys_eq(trace_read(&tr, "/nowhere", err), -1);
	sys_true(strstr(err, "/nowhere"), "%s", err);
}

static void the_tool(void **state)
{
	const char *build = getenv("BUILD");
	char path[600], cmd[1400], err[TRACE_ERR];
	struct json_object *o, *list, *ph;
	size_t i, n = 0, lines = 0;
	struct trace tr;
	char line[4096];
	FILE *f;

	(void)state;
	if (!build) {
		print_message("skipped: BUILD is not set\n");
		skip();
	}
	small_trace(path, sizeof(path));
	sys_true(!trace_read(&tr, path, err), "%s", err);
	*strrchr(path, '/') = 0;	/* a folder will do */
	snprintf(cmd, sizeof(cmd), "%s/bin/npuemu-trace --json '%s' >'%s/json'", build, path, dir);
	sys_eq(system(cmd), 0);
	snprintf(cmd, sizeof(cmd), "%s/json", dir);
	o = json_object_from_file(cmd);
	sys_true(o && json_object_object_get_ex(o, "traceEvents", &list), "%s: no JSON", cmd);
	for (i = 0; i < json_object_array_length(list); i++)
		if (json_object_object_get_ex(json_object_array_get_idx(list, i), "ph", &ph))
			n += strcmp(json_object_get_string(ph), "M") != 0;
	sys_eq(n, tr.n);
	json_object_put(o);
	snprintf(cmd, sizeof(cmd), "%s/bin/npuemu-trace '%s'", build, path);
	f = popen(cmd, "re");
	sys_true(f, "%s", cmd);
	for (n = 0; fgets(line, sizeof(line), f); n++)
		lines += strstr(line, ": task: fill, ") && strstr(line, ", 4096 bytes");
	sys_eq(pclose(f), 0);
	sys_eq(n, tr.n);
	sys_eq(lines, 1);
	trace_free(&tr);
	snprintf(cmd, sizeof(cmd), "%s/bin/npuemu-trace /nowhere 2>'%s/said'", build, dir);
	sys_eq(system(cmd), 3 << 8);
	snprintf(cmd, sizeof(cmd), "%s/bin/npuemu-trace 2>'%s/said'", build, dir);
	sys_eq(system(cmd), 2 << 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		prof_test(wrong_use),
		prof_test(many),
		prof_test(starts_and_stops),
		prof_test(left_in_the_middle),
		prof_test(damaged),
		prof_test(the_tool),
	};

	sys_start();
	return cmocka_run_group_tests_name("acl_profargs", tests, NULL, NULL);
}
