// SPDX-License-Identifier: MIT
/*
 * The "profiler" of the file that aclInit() is given, as the profiling guide of CANN
 * describes it: {"switch": "on", "output": FOLDER, "storage_limit": "200MB", ...}.  From
 * aclInit() to aclFinalize(), for all devices.  What has nothing to measure here is named
 * in the log.
 */
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "prof.h"

/* Between the two calls of aclInit(), which only the first of a process makes: its lock. */
static struct {
	bool on;
	char dir[PATH_MAX];
	char limit[24];
	uint64_t types;
} asked;

static bool is_on(const char *value)
{
	return !strcmp(value, "on") || !strcmp(value, "l0") || !strcmp(value, "l1");
}

/* Where the program is, as the guide has it. */
static aclError default_dir(void)
{
	ssize_t n = readlink("/proc/self/exe", asked.dir, sizeof(asked.dir) - 1);
	char *slash;

	asked.dir[n > 0 ? n : 0] = 0;
	slash = strrchr(asked.dir, '/');
	if (!slash)
		return npuacl_fail(ACL_ERROR_INVALID_FILE, "aclInit: profiler: no \"output\", and the program's own folder is not known");
	slash[slash == asked.dir] = 0;
	return ACL_SUCCESS;
}

static aclError set_text(const char *path, const char *key, const char *value, char *out, size_t size)
{
	if ((size_t)snprintf(out, size, "%s", value) < size)
		return ACL_SUCCESS;
	return npuacl_fail(ACL_ERROR_INVALID_PROFILING_CONFIG, "aclInit: %s: profiler: \"%s\" is longer than %zu characters", path, key,
			   size - 1);
}

static aclError use_key(const char *path, const char *key, const char *value)
{
	if (!strcmp(key, "switch"))
		asked.on = !strcmp(value, "on");
	else if (!strcmp(key, "output"))
		return set_text(path, key, value, asked.dir, sizeof(asked.dir));
	else if (!strcmp(key, "storage_limit"))
		return set_text(path, key, value, asked.limit, sizeof(asked.limit));
	else if (!strcmp(key, "msproftx"))
		asked.types |= is_on(value) ? ACL_PROF_MSPROFTX : 0;
	else if (!strcmp(key, "task_time"))
		asked.types &= is_on(value) ? UINT64_MAX : ~(uint64_t)ACL_PROF_TASK_TIME;
	else if (strcmp(value, "off"))
		npuemu_log(NPUEMU_LOG_WARN, "aclInit: %s: profiler: \"%s\" has nothing to measure here", path, key);
	return ACL_SUCCESS;
}

aclError npuacl_prof_read(const char *path, struct json_object *profiler)
{
	aclError ret = ACL_SUCCESS;

	memset(&asked, 0, sizeof(asked));
	asked.types = ACL_PROF_TASK_TIME;
	if (!json_object_is_type(profiler, json_type_object))
		return npuacl_fail(ACL_ERROR_INVALID_PROFILING_CONFIG, "aclInit: %s: \"profiler\" is not an object", path);
	json_object_object_foreach(profiler, key, value) {
		if (!json_object_is_type(value, json_type_string))
			ret = npuacl_fail(ACL_ERROR_INVALID_PROFILING_CONFIG, "aclInit: %s: profiler: \"%s\" is not a string", path, key);
		else
			ret = use_key(path, key, json_object_get_string(value));
		if (ret)
			break;
	}
	if (!ret && asked.on && !asked.dir[0])
		ret = default_dir();
	asked.on = asked.on && !ret;
	return ret;
}

aclError npuacl_prof_begin(void)
{
	if (!asked.on)
		return ACL_SUCCESS;
	asked.on = false;
	return npuacl_prof_all(asked.dir, asked.limit[0] ? asked.limit : NULL, asked.types);
}
