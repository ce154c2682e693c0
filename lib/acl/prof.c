// SPDX-License-Identifier: MIT
/*
 * Profiling as programs start and stop it.  aclprofStart() makes a folder PROF_... in the
 * one that aclprofInit() was given, with one file in it: a trace of the devices of its
 * configuration (lib/core/trace.h), which aclprofStop() completes.  npuemu-trace shows it.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "devinfo.h"
#include "prof.h"
#include "trace.h"

#define MAX_CONFIGS	4096
#define LEAST_LIMIT_MB	200
#define MB		(1ull << 20)

#define TASKS	(ACL_PROF_TASK_TIME | ACL_PROF_TASK_TIME_L0 | ACL_PROF_TASK_TIME_L2 | ACL_PROF_TASK_TIME_L3)
#define KNOWN	(TASKS | ACL_PROF_ACL_API | ACL_PROF_AICORE_METRICS | ACL_PROF_AICPU | ACL_PROF_L2CACHE |	\
		 ACL_PROF_HCCL_TRACE | ACL_PROF_TRAINING_TRACE | ACL_PROF_MSPROFTX | ACL_PROF_RUNTIME_API |	\
		 ACL_PROF_GE_API_L0 | ACL_PROF_GE_API_L1 | ACL_PROF_TASK_MEMORY | ACL_PROF_OP_ATTR |		\
		 ACL_PROF_API_STATS | ACL_PROF_AICORE_SHAPE)

struct aclprofConfig {
	uint64_t types;
	u32 n;
	u32 device[NPUACL_DEVICES];
	/* while it runs; prof.lock */
	bool running;
	int trace;		/* npuemu_trace_start()'s */
	u64 board_devices;	/* bits */
	char file[PATH_MAX + 64];
};

static struct npuemu_slab configs = {
	.what = "profiling configuration", .size = NPUEMU_SLAB_SIZE(struct aclprofConfig), .max = MAX_CONFIGS,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static struct {
	pthread_mutex_t lock;
	u32 turn;		/* atomic: odd between aclprofInit() and aclprofFinalize() */
	char dir[PATH_MAX];
	u64 most;		/* bytes of a trace */
	u32 folders;		/* made so far */
	struct aclprofConfig *running[NPUACL_DEVICES];
	u32 nrunning;
	struct aclprofConfig *by_file;	/* aclInit's file asked for it */
} prof = { .lock = PTHREAD_MUTEX_INITIALIZER, .most = UINT64_MAX };

u32 npuacl_prof_turn(void)
{
	const u32 turn = smp_load_acquire(&prof.turn);

	return turn & 1 ? turn : 0;
}

aclError npuacl_prof_on(const char *what)
{
	if (npuacl_prof_turn())
		return ACL_SUCCESS;
	return npuacl_fail(ACL_ERROR_PROF_NOT_RUN, "%s: profiling is not on: call aclprofInit first", what);
}

/* ---- Where it goes ------------------------------------------------------------------ */

static aclError check_text(const char *what, const char *name, const char *text, size_t n)
{
	if (!text)
		return npuacl_null(what, name);
	if (!n || strnlen(text, n + 1) != n)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s has not the %zu bytes that its length says", what,
				   name, n);
	return ACL_SUCCESS;
}

/* A folder, and those above it. */
static int make_dirs(char *dir)
{
	char *at = dir;
	struct stat st;
	int err = 0;

	while (!err && (at = strchr(at + 1, '/'))) {
		*at = 0;
		err = mkdir(dir, 0750) && errno != EEXIST;
		*at = '/';
	}
	if (err || (mkdir(dir, 0750) && errno != EEXIST) || stat(dir, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return access(dir, W_OK | X_OK) ? -errno : 0;
}

static aclError use_dir(const char *what, const char *path, size_t n)
{
	char dir[PATH_MAX];
	aclError ret = check_text(what, "the path", path, n);
	int err;

	if (ret)
		return ret;
	if (n >= sizeof(dir))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the path has %zu bytes; %zu are the most", what, n,
				   sizeof(dir) - 1);
	memcpy(dir, path, n + 1);
	err = make_dirs(dir);
	if (err)
		return npuacl_fail(ACL_ERROR_INVALID_FILE, "%s: %s is no folder to write to: %s", what, dir,
				   strerror(-err));
	memcpy(prof.dir, dir, n + 1);
	return ACL_SUCCESS;
}

/* PROF_000001_20261130121530123_4711; prof.lock held. */
static aclError make_folder(const char *what, struct aclprofConfig *c)
{
	struct timespec now;
	char when[32];
	struct tm tm;
	int tries;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(when, sizeof(when), "%Y%m%d%H%M%S", &tm);
	for (tries = 0; tries < 100; tries++) {
		int n = snprintf(c->file, sizeof(c->file), "%.*s/PROF_%06u_%s%03ld_%d", PATH_MAX - 1, prof.dir,
				 ++prof.folders, when, now.tv_nsec / 1000000, (int)getpid());

		if (!mkdir(c->file, 0750)) {
			snprintf(c->file + n, sizeof(c->file) - (size_t)n, "/%s", NPUEMU_TRACE_NAME);
			return ACL_SUCCESS;
		}
		if (errno != EEXIST)
			break;
	}
	return npuacl_fail(ACL_ERROR_PROFILING_FAILURE, "%s: the folder %s cannot be made: %s", what, c->file,
			   strerror(errno));
}

/* ---- Start and stop: prof.lock held --------------------------------------------------- */

static aclError stop(struct aclprofConfig *c)
{
	u64 lost;
	u32 i;
	int err = npuemu_trace_stop(c->trace, &lost);

	c->running = false;
	for (i = 0; prof.running[i] != c; i++)
		;
	prof.running[i] = prof.running[--prof.nrunning];
	if (npuacl.board && npuacl.board->host->trace && !READ_ONCE(npuemu_trace_tasks))
		npuacl.board->host->trace(npuacl.board, false);
	if (lost)
		npuemu_log(NPUEMU_LOG_WARN, "acl: %s has reached its limit: %llu records are not in it", c->file,
			   (unsigned long long)lost);
	if (err)
		return npuacl_fail(ACL_ERROR_PROFILING_FAILURE, "%s: %s", c->file, npuemu_errmsg());
	npuemu_log(NPUEMU_LOG_INFO, "acl: profile written: %s", c->file);
	return ACL_SUCCESS;
}

static aclError stop_all(void)
{
	aclError ret = ACL_SUCCESS;

	while (prof.nrunning) {
		aclError one = stop(prof.running[0]);

		ret = ret ? ret : one;
	}
	return ret;
}

static u32 kinds(uint64_t types)
{
	return (types & TASKS ? NPUEMU_TRACE_TASKS : 0) | (types & ACL_PROF_MSPROFTX ? NPUEMU_TRACE_MARKS : 0) |
	       (types & ACL_PROF_TRAINING_TRACE ? NPUEMU_TRACE_STEPS : 0);
}

/* Its devices on the board, none of which another one has. */
static aclError find_devices(struct aclprofConfig *c)
{
	struct npuacl_device *d;
	aclError ret;
	u32 i, k;

	c->board_devices = 0;
	for (i = 0; i < c->n; i++) {
		ret = npuacl_device((s32)c->device[i], &d);
		if (ret)
			return ret;
		c->board_devices |= 1ull << d->phys;
		for (k = 0; k < prof.nrunning; k++)
			if (prof.running[k]->board_devices >> d->phys & 1)
				return npuacl_fail(ACL_ERROR_PROF_ALREADY_RUN,
						   "aclprofStart: device %u is being profiled already, into %s: stop that first",
						   d->id, prof.running[k]->file);
	}
	return ACL_SUCCESS;
}

static aclError start(const char *what, struct aclprofConfig *c)
{
	aclError ret;

	if (c->running)
		return npuacl_fail(ACL_ERROR_PROF_ALREADY_RUN,
				   "aclprofStart: this configuration runs already, into %s: stop it first", c->file);
	ret = find_devices(c);
	if (!ret)
		ret = make_folder(what, c);
	if (ret)
		return ret;
	c->trace = npuemu_trace_start(c->file, c->board_devices, kinds(c->types), prof.most);
	if (c->trace < 0)
		return npuacl_fail(ACL_ERROR_PROFILING_FAILURE, "%s: %s", what, npuemu_errmsg());
	c->running = true;
	prof.running[prof.nrunning++] = c;
	if (npuacl.board->host->trace && READ_ONCE(npuemu_trace_tasks))
		npuacl.board->host->trace(npuacl.board, true);
	return ACL_SUCCESS;
}

/* prof.lock held */
static void drop_by_file(void)
{
	if (!prof.by_file)
		return;
	npuemu_slab_retire(&configs, prof.by_file);
	npuemu_slab_free(&configs, prof.by_file);
	prof.by_file = NULL;
	prof.most = UINT64_MAX;
	smp_store_release(&prof.turn, prof.turn + 1);
}

void npuacl_prof_release(void)
{
	pthread_mutex_lock(&prof.lock);
	stop_all();
	drop_by_file();
	pthread_mutex_unlock(&prof.lock);
}

/* The files are the parent's; so are its handles. */
void npuacl_prof_fork(void)
{
	pthread_mutex_init(&prof.lock, NULL);
	prof.turn = 0;
	prof.nrunning = 0;
	prof.by_file = NULL;
	prof.most = UINT64_MAX;
	npuemu_slab_fork(&configs);
	npuacl_stamps_fork();
	npuemu_trace_fork();
}

/* ---- What programs call ------------------------------------------------------------------ */

aclError aclprofInit(const char *profilerResultPath, size_t length)
{
	aclError ret;

	pthread_mutex_lock(&prof.lock);
	if (prof.by_file)
		ret = npuacl_fail(ACL_ERROR_REPEAT_INITIALIZE,
				  "aclprofInit: the file given to aclInit has a profiler that is on, and writes to %s", prof.dir);
	else if (prof.turn & 1)
		ret = npuacl_fail(ACL_ERROR_REPEAT_INITIALIZE,
				  "aclprofInit was called already, for %s: call aclprofFinalize first", prof.dir);
	else
		ret = use_dir("aclprofInit", profilerResultPath, length);
	if (!ret)
		smp_store_release(&prof.turn, prof.turn + 1);
	pthread_mutex_unlock(&prof.lock);
	return ret;
}

aclError aclprofFinalize(void)
{
	aclError ret;

	pthread_mutex_lock(&prof.lock);
	ret = npuacl_prof_on("aclprofFinalize");
	if (!ret && prof.by_file)
		ret = npuacl_fail(ACL_ERROR_PROF_NOT_RUN, "aclprofFinalize: what runs is of the file given to aclInit, until aclFinalize");
	if (!ret) {
		ret = stop_all();
		prof.most = UINT64_MAX;
		smp_store_release(&prof.turn, prof.turn + 1);
	}
	pthread_mutex_unlock(&prof.lock);
	return ret;
}

static aclError find_config(const char *what, const aclprofConfig *handle, struct aclprofConfig **out)
{
	if (!handle)
		return npuacl_null(what, "profilerConfig");
	if (!npuemu_slab_alive(&configs, handle))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %p is not a configuration, or no longer", what,
				   (const void *)handle);
	*out = (struct aclprofConfig *)(uintptr_t)handle;
	return ACL_SUCCESS;
}

aclError aclprofStart(const aclprofConfig *profilerConfig)
{
	static const char what[] = "aclprofStart";
	struct aclprofConfig *c;
	aclError ret = npuacl_open();

	if (ret)
		return ret;
	pthread_mutex_lock(&prof.lock);
	ret = find_config(what, profilerConfig, &c);
	if (!ret)
		ret = npuacl_prof_on(what);
	if (!ret)
		ret = start(what, c);
	pthread_mutex_unlock(&prof.lock);
	return ret;
}

aclError aclprofStop(const aclprofConfig *profilerConfig)
{
	static const char what[] = "aclprofStop";
	struct aclprofConfig *c;
	aclError ret;

	pthread_mutex_lock(&prof.lock);
	ret = find_config(what, profilerConfig, &c);
	if (!ret)
		ret = npuacl_prof_on(what);
	if (!ret && !c->running)
		ret = prof.nrunning ?
			npuacl_fail(ACL_ERROR_INVALID_PROFILING_CONFIG,
				    "%s: what runs was started with another configuration: stop with that one", what) :
			npuacl_fail(ACL_ERROR_PROF_NOT_RUN, "%s: nothing runs: aclprofStart begins it", what);
	if (!ret)
		ret = stop(c);
	pthread_mutex_unlock(&prof.lock);
	return ret;
}

static bool metrics_known(aclprofAicoreMetrics m)
{
	return m == ACL_AICORE_NONE || (u32)m <= ACL_AICORE_MEMORY_ACCESS;
}

static aclError check_config(const uint32_t *list, u32 n, aclprofAicoreMetrics metrics,
			     const aclprofAicoreEvents *events, uint64_t types)
{
	static const char what[] = "aclprofCreateConfig";
	u32 i, k;

	if (!list)
		return npuacl_null(what, "deviceIdList");
	if (!n || n > NPUACL_DEVICES)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: deviceNums is %u; 1 to %u are possible", what, n,
				   NPUACL_DEVICES);
	if (events)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: aicoreEvents is reserved: pass NULL", what);
	if (!metrics_known(metrics))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %d is none of aclprofAicoreMetrics", what,
				   (int)metrics);
	if (types & ~KNOWN)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %#llx in dataTypeConfig is no ACL_PROF_ type", what,
				   (unsigned long long)(types & ~KNOWN));
	for (i = 0; i < n; i++)
		for (k = 0; k < i; k++)
			if (list[i] == list[k])
				return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: device %u is in the list twice", what,
						   list[i]);
	return ACL_SUCCESS;
}

aclprofConfig *aclprofCreateConfig(uint32_t *deviceIdList, uint32_t deviceNums,
				   aclprofAicoreMetrics aicoreMetrics, const aclprofAicoreEvents *aicoreEvents,
				   uint64_t dataTypeConfig)
{
	struct aclprofConfig *c;

	if (check_config(deviceIdList, deviceNums, aicoreMetrics, aicoreEvents, dataTypeConfig))
		return NULL;
	c = npuemu_slab_alloc(&configs);
	if (!c) {
		npuacl_fail_say(ACL_ERROR_STORAGE_OVER_LIMIT,
				"aclprofCreateConfig: there are %u configurations, the most there can be", MAX_CONFIGS);
		return NULL;
	}
	c->types = dataTypeConfig;
	c->n = deviceNums;
	memcpy(c->device, deviceIdList, deviceNums * sizeof(*c->device));
	npuemu_slab_publish(&configs, c);
	return c;
}

aclError aclprofDestroyConfig(const aclprofConfig *profilerConfig)
{
	static const char what[] = "aclprofDestroyConfig";
	struct aclprofConfig *c;
	aclError ret;

	pthread_mutex_lock(&prof.lock);
	ret = find_config(what, profilerConfig, &c);
	if (!ret && c->running)
		ret = npuacl_fail(ACL_ERROR_PROF_ALREADY_RUN, "%s: it runs: call aclprofStop first", what);
	if (!ret) {
		npuemu_slab_retire(&configs, c);
		npuemu_slab_free(&configs, c);
	}
	pthread_mutex_unlock(&prof.lock);
	return ret;
}

/* "200MB" */
static aclError set_limit(const char *what, const char *text)
{
	char *end;
	unsigned long long mb;

	errno = 0;
	mb = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || strcmp(end, "MB") || mb < LEAST_LIMIT_MB || mb > UINT32_MAX)
		return npuacl_fail(ACL_ERROR_INVALID_PROFILING_CONFIG,
				   "%s: the limit \"%s\" is none: %uMB to %uMB are possible", what, text,
				   LEAST_LIMIT_MB, UINT32_MAX);
	prof.most = mb * MB;
	return ACL_SUCCESS;
}

/* prof.lock held */
static aclError set_config(aclprofConfigType type, const char *text, size_t n)
{
	switch ((u32)type) {
	case ACL_PROF_STORAGE_LIMIT:
		return set_limit("aclprofSetConfig", text);
	case ACL_PROF_PATH:
		return use_dir("aclprofSetConfig", text, n);
	default:
		npuemu_log(NPUEMU_LOG_WARN, "aclprofSetConfig: option %d (\"%s\") has nothing to measure here",
			   (int)type, text);
		return ACL_SUCCESS;
	}
}

aclError aclprofSetConfig(aclprofConfigType configType, const char *config, size_t configLength)
{
	static const char what[] = "aclprofSetConfig";
	const int type = (int)configType;
	aclError ret = check_text(what, "config", config, configLength);

	if (ret)
		return ret;
	if (type <= ACL_PROF_ARGS_MIN || type >= ACL_PROF_ARGS_MAX || type == ACL_PROF_STORAGE_LIMIT + 1)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %d is none of aclprofConfigType", what, type);
	pthread_mutex_lock(&prof.lock);
	ret = npuacl_prof_on(what);
	if (!ret)
		ret = set_config(configType, config, configLength);
	pthread_mutex_unlock(&prof.lock);
	return ret;
}

/* ---- By aclInit's file -------------------------------------------------------------------- */

/* prof.lock held */
static aclError start_all(const char *what, const char *limit, uint64_t types)
{
	struct aclprofConfig *c;
	aclError ret = limit ? set_limit(what, limit) : ACL_SUCCESS;
	u32 i;

	if (ret)
		return ret;
	c = npuemu_slab_alloc(&configs);
	if (!c)
		return npuacl_fail(ACL_ERROR_STORAGE_OVER_LIMIT, "%s: there are %u profiling configurations, the most there can be",
				   what, MAX_CONFIGS);
	c->types = types;
	c->n = npuacl.devices;
	for (i = 0; i < c->n; i++)
		c->device[i] = i;
	npuemu_slab_publish(&configs, c);
	smp_store_release(&prof.turn, prof.turn + 1);
	prof.by_file = c;
	ret = start(what, c);
	if (ret)
		drop_by_file();
	return ret;
}

aclError npuacl_prof_all(const char *dir, const char *limit, uint64_t types)
{
	static const char what[] = "aclInit: profiler";
	aclError ret = ACL_SUCCESS;

	pthread_mutex_lock(&prof.lock);
	if (prof.turn & 1)
		ret = npuacl_fail(ACL_ERROR_REPEAT_INITIALIZE, "%s: aclprofInit was called before, for %s", what, prof.dir);
	if (!ret)
		ret = use_dir(what, dir, strlen(dir));
	if (!ret)
		ret = start_all(what, limit, types);
	pthread_mutex_unlock(&prof.lock);
	return ret;
}
