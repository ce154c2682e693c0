// SPDX-License-Identifier: MIT
/*
 * aclInit and aclFinalize, and the board behind them, which is opened at the
 * first call that needs it: a few calls work before aclInit.
 */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check.h"
#include "graph.h"

#define MAX_CALLBACKS	64
#define MAX_NESTING	10
#define MAX_CONFIG	(10 << 20)

struct npuacl_runtime npuacl = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.default_device = -1,
};

struct npuacl_layer npuacl_above;

/* ---- The board ----------------------------------------------------------------- */

/* "0,2,5": rising, up to the first entry that is not a device. */
static u32 visible(u32 *phys, u32 n)
{
	const char *list = getenv("ASCEND_RT_VISIBLE_DEVICES");
	u32 count = 0;
	char *end;
	long v;

	if (!list) {
		for (count = 0; count < n; count++)
			phys[count] = count;
		return n;
	}
	while (count < n) {
		v = strtol(list, &end, 10);
		if (end == list || v < 0 || v >= (long)n || (count && v <= (long)phys[count - 1]))
			break;
		phys[count++] = (u32)v;
		if (*end != ',')
			break;
		list = end + 1;
	}
	return count;
}

/* Threads, queues and devices do not survive a fork: to the child nothing was ever opened. */
static void child(void)
{
	static struct npuemu_slab *const slabs[] = { &npuacl_ctxs, &npuacl_streams, &npuacl_events };
	size_t i;

	memset(&npuacl, 0, sizeof(npuacl));
	pthread_mutex_init(&npuacl.lock, NULL);
	npuacl.default_device = -1;
	memset(&npuacl_self, 0, sizeof(npuacl_self));
	for (i = 0; i < ARRAY_SIZE(slabs); i++) {
		/* what the parent had is not ours: handles that are not handles */
		npuemu_slab_fork(slabs[i]);
	}
	npuacl_notifies_fork();
	npuacl_graphs_fork();
	npuacl_pools_fork();
	npuacl_allocators_fork();
	npuacl_memory_fork();
	npuacl_hostmem_fork();
	npuacl_address_fork();
	npuacl_scheduler_fork();
	npuacl_func_fork();
	if (npuacl_above.fork)
		npuacl_above.fork();
	NPUACL_CHECK(npuacl_check_fork());
	npuacl_prof_fork();
}

static aclError make_devices(void)
{
	u32 phys[NPUACL_DEVICES], i, n;

	n = visible(phys, npuacl.info.devices < NPUACL_DEVICES ? npuacl.info.devices : NPUACL_DEVICES);
	if (n && posix_memalign((void **)&npuacl.dev, 64, n * sizeof(*npuacl.dev)))
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "out of host memory");
	for (i = 0; i < n; i++) {
		struct npuacl_device *d = &npuacl.dev[i];

		memset(d, 0, sizeof(*d));
		d->id = i;
		d->phys = phys[i];
		pthread_mutex_init(&d->sdma_lock, NULL);
		pthread_cond_init(&d->sdma_free, NULL);
	}
	npuacl.devices = n;
	return ACL_SUCCESS;
}

/* npuacl.lock held */
static aclError open_board(void)
{
	struct npuemu_open_attr attr = { .size = sizeof(attr) };
	static bool registered;
	struct npuemu *board;
	aclError ret;
	int err;

	npuacl_check_begin();
	err = npuemu_open(&attr, &board);
	if (err)
		return npuacl_fail_core(err, ACL_ERROR_RT_NO_DEVICE, "the emulated board cannot be opened");
	npuacl.info.size = sizeof(npuacl.info);
	err = npuemu_query(board, &npuacl.info);
	if (!err)
		err = npuemu_mem_any(board, 1);
	ret = err ? npuacl_fail_core(err, ACL_ERROR_RT_INTERNAL_ERROR, "the emulated board") : make_devices();
	if (ret) {
		npuemu_close(board);
		return ret;
	}
	if (!registered)
		pthread_atfork(NULL, NULL, child);
	registered = true;
	NPUACL_CHECK(npuacl_fault_init());
	smp_store_release(&npuacl.board, board);
	return ACL_SUCCESS;
}

/* Nothing of a program's lasts beyond aclFinalize.  npuacl.lock held. */
static void close_board(void)
{
	struct npuemu *board = npuacl.board;
	u32 i;

	if (!board)
		return;
	if (npuacl_above.close)
		npuacl_above.close();
	npuacl_labels_release();
	npuacl_events_release();
	npuacl_memory_release(-1);
	npuacl_hostmem_release();
	for (i = 0; i < npuacl.devices; i++) {
		npuacl_notifies_release(&npuacl.dev[i]);
		npuacl_sdma_destroy(&npuacl.dev[i]);
		pthread_mutex_destroy(&npuacl.dev[i].sdma_lock);
		pthread_cond_destroy(&npuacl.dev[i].sdma_free);
	}
	NPUACL_CHECK(npuacl_check_closed());
	smp_store_release(&npuacl.board, NULL);
	free(npuacl.dev);
	npuacl.dev = NULL;
	npuacl.devices = 0;
	npuemu_mem_any(board, 0);
	npuemu_close(board);
}

aclError npuacl_open(void)
{
	aclError ret = ACL_SUCCESS;

	if (smp_load_acquire(&npuacl.board))
		return ACL_SUCCESS;
	pthread_mutex_lock(&npuacl.lock);
	if (!npuacl.board)
		ret = open_board();
	pthread_mutex_unlock(&npuacl.lock);
	return ret;
}

bool npuacl_is_open(void)
{
	return smp_load_acquire(&npuacl.board);
}

/* ---- Callbacks --------------------------------------------------------------------- */

struct callback {
	aclRegisterCallbackType type;
	aclInitCallbackFunc init;
	aclFinalizeCallbackFunc finalize;
	void *user;
};

static struct callback callbacks[MAX_CALLBACKS];
static u32 ncallbacks;

static aclError add_callback(const char *what, const struct callback *c, bool given)
{
	aclError ret = ACL_SUCCESS;
	u32 i;

	if (!given)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the callback is NULL", what);
	pthread_mutex_lock(&npuacl.lock);
	for (i = 0; i < ncallbacks && !ret; i++)
		if (callbacks[i].type == c->type && callbacks[i].init == c->init &&
		    callbacks[i].finalize == c->finalize)
			ret = npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: this callback is registered already", what);
	if (!ret && ncallbacks == MAX_CALLBACKS)
		ret = npuacl_fail(ACL_ERROR_STORAGE_OVER_LIMIT, "%s: %u callbacks are registered, the most there can be",
				  what, ncallbacks);
	if (!ret)
		callbacks[ncallbacks++] = *c;
	pthread_mutex_unlock(&npuacl.lock);
	return ret;
}

static aclError remove_callback(const char *what, const struct callback *c)
{
	aclError ret = ACL_SUCCESS;
	u32 i;

	pthread_mutex_lock(&npuacl.lock);
	for (i = 0; i < ncallbacks; i++)
		if (callbacks[i].type == c->type && callbacks[i].init == c->init &&
		    callbacks[i].finalize == c->finalize)
			break;
	if (i == ncallbacks) {
		ret = npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: no such callback is registered", what);
	} else {
		ncallbacks--;
		memmove(&callbacks[i], &callbacks[i + 1], (ncallbacks - i) * sizeof(*c));
	}
	pthread_mutex_unlock(&npuacl.lock);
	return ret;
}

aclError aclInitCallbackRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc, void *userData)
{
	struct callback c = { .type = type, .init = cbFunc, .user = userData };

	return add_callback(__func__, &c, cbFunc);
}

aclError aclInitCallbackUnRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc)
{
	struct callback c = { .type = type, .init = cbFunc };

	return remove_callback(__func__, &c);
}

aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc,
				     void *userData)
{
	struct callback c = { .type = type, .finalize = cbFunc, .user = userData };

	return add_callback(__func__, &c, cbFunc);
}

aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc)
{
	struct callback c = { .type = type, .finalize = cbFunc };

	return remove_callback(__func__, &c);
}

/* Without the lock: they may call us. */
static aclError run_callbacks(bool init, const char *config)
{
	struct callback list[MAX_CALLBACKS];
	aclError ret = ACL_SUCCESS;
	u32 i, n;

	pthread_mutex_lock(&npuacl.lock);
	n = ncallbacks;
	memcpy(list, callbacks, n * sizeof(*list));
	pthread_mutex_unlock(&npuacl.lock);
	for (i = 0; i < n && !ret; i++) {
		if (init && list[i].init)
			ret = list[i].init(config, config ? strlen(config) : 0, list[i].user);
		else if (!init && list[i].finalize)
			ret = list[i].finalize(list[i].user);
	}
	return ret;
}

/* ---- aclInit's file -------------------------------------------------------------------- */

/* How deep braces and brackets go, outside strings. */
static int nesting(const char *text)
{
	int depth = 0, most = 0;
	bool string = false;

	for (; *text; text++) {
		if (string) {
			if (*text == '\\' && text[1])
				text++;
			else if (*text == '"')
				string = false;
		} else if (*text == '"') {
			string = true;
		} else if (*text == '{' || *text == '[') {
			depth++;
			most = depth > most ? depth : most;
		} else if (*text == '}' || *text == ']') {
			depth--;
		}
	}
	return most;
}

static aclError read_file(const char *path, char **text)
{
	struct stat st;
	FILE *f;
	size_t n;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return npuacl_fail(ACL_ERROR_INVALID_FILE, "aclInit: %s is not a file", path);
	if (st.st_size > MAX_CONFIG)
		return npuacl_fail(ACL_ERROR_INVALID_FILE_SIZE, "aclInit: %s has %lld bytes; at most %d are read",
				   path, (long long)st.st_size, MAX_CONFIG);
	f = fopen(path, "re");
	if (!f)
		return npuacl_fail(ACL_ERROR_INVALID_FILE, "aclInit: %s cannot be read: %s", path,
				   strerror(errno));
	*text = malloc((size_t)st.st_size + 1);
	if (!*text) {
		fclose(f);
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "out of host memory");
	}
	n = fread(*text, 1, (size_t)st.st_size, f);
	(*text)[n] = 0;
	fclose(f);
	return ACL_SUCCESS;
}

static const char *const known_keys[] = {
	"dump", "profiler", "max_opqueue_num", "err_msg_mode", "defaultDevice", "StackSize",
	"acl_graph", "ge", "simt_printf_fifo_size", "simd_printf_fifo_size",
};

static aclError use_config(const char *path, struct json_object *root)
{
	struct json_object *v, *id;
	size_t i;

	if (!json_object_is_type(root, json_type_object))
		return npuacl_fail(ACL_ERROR_PARSE_FILE, "aclInit: %s is not a JSON object", path);
	json_object_object_foreach(root, key, value) {
		for (i = 0; i < ARRAY_SIZE(known_keys) && strcmp(key, known_keys[i]); i++)
			;
		if (i == ARRAY_SIZE(known_keys))
			npuemu_log(NPUEMU_LOG_WARN, "aclInit: %s: nothing is known of \"%s\"", path, key);
		(void)value;
	}
	if (json_object_object_get_ex(root, "defaultDevice", &v) &&
	    json_object_object_get_ex(v, "default_device", &id)) {
		const char *s = json_object_get_string(id);
		char *end;
		long n = strtol(s, &end, 10);

		if (end == s || *end || n < 0 || n >= (long)npuacl.devices)
			return npuacl_fail(ACL_ERROR_INVALID_PARAM,
					   "aclInit: %s: default_device \"%s\" is none of the %u devices", path, s,
					   npuacl.devices);
		npuacl.default_device = (s32)n;
	}
	/* the last that can be wrong: what a refused file asks for must not begin with the next one */
	return json_object_object_get_ex(root, "profiler", &v) ? npuacl_prof_read(path, v) : ACL_SUCCESS;
}

static aclError load_config(const char *path)
{
	struct json_object *root;
	char *text = NULL;
	aclError ret;

	if (!path || !*path)
		return ACL_SUCCESS;
	ret = read_file(path, &text);
	if (ret)
		return ret;
	if (!text[strspn(text, " \t\r\n")]) {	/* an empty file asks for nothing */
		free(text);
		return ACL_SUCCESS;
	}
	root = nesting(text) <= MAX_NESTING ? json_tokener_parse(text) : NULL;
	free(text);
	if (!root)
		return npuacl_fail(ACL_ERROR_PARSE_FILE,
				   "aclInit: %s is no JSON, or nested deeper than %d", path, MAX_NESTING);
	ret = use_config(path, root);
	json_object_put(root);
	return ret;
}

/* ---- What programs call ------------------------------------------------------------------ */

aclError aclInit(const char *configPath)
{
	aclError ret = npuacl_open();
	bool again;

	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl.lock);
	again = npuacl.inits;
	if (!again)
		ret = load_config(configPath);
	if (!ret)
		npuacl.inits++;
	pthread_mutex_unlock(&npuacl.lock);
	if (!ret && !again) {
		ret = npuacl_prof_begin();
		if (ret) {
			pthread_mutex_lock(&npuacl.lock);
			npuacl.inits--;
			npuacl.default_device = -1;
			pthread_mutex_unlock(&npuacl.lock);
		}
	}
	if (ret)
		return ret;
	if (again)
		return npuacl_fail(ACL_ERROR_REPEAT_INITIALIZE,
				   "aclInit was called already; this can be ignored, and counts for aclFinalizeReference");
	return run_callbacks(true, configPath);
}

static aclError finalize(void)
{
	aclError ret = run_callbacks(false, NULL);

	NPUACL_CHECK(npuacl_check_leaks());
	pthread_mutex_lock(&npuacl.lock);
	npuacl.inits = 0;
	npuacl.default_device = -1;
	npuacl_devices_release();
	pthread_mutex_unlock(&npuacl.lock);
	npuacl_func_stop();
	npuacl_scheduler_stop();
	npuacl_prof_release();
	pthread_mutex_lock(&npuacl.lock);
	close_board();
	npuacl.finalized = true;
	pthread_mutex_unlock(&npuacl.lock);
	return ret;
}

aclError aclFinalize(void)
{
	if (!READ_ONCE(npuacl.inits))
		return npuacl_fail(ACL_ERROR_REPEAT_FINALIZE, "aclFinalize without aclInit before it");
	return finalize();
}

aclError aclFinalizeReference(uint64_t *refCount)
{
	u64 left;

	pthread_mutex_lock(&npuacl.lock);
	left = npuacl.inits;
	if (left > 1)
		npuacl.inits = left - 1;
	pthread_mutex_unlock(&npuacl.lock);
	if (!left) {
		if (refCount)
			*refCount = 0;
		return npuacl_fail(ACL_ERROR_REPEAT_FINALIZE, "aclFinalizeReference without aclInit before it");
	}
	if (refCount)
		*refCount = left - 1;
	return left > 1 ? ACL_SUCCESS : finalize();
}

const char *aclrtGetSocName(void)
{
	const char *name = npuemu_getenv("NPUEMU_SOC_NAME");

	if (name)
		return name;
	return npuacl_open() ? NULL : npuacl.info.soc;
}

aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion)
{
	if (!majorVersion || !minorVersion || !patchVersion)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetVersion: an argument is NULL");
	*majorVersion = ACL_MAJOR_VERSION;
	*minorVersion = ACL_MINOR_VERSION;
	*patchVersion = ACL_PATCH_VERSION;
	return ACL_SUCCESS;
}

aclError aclrtGetRunMode(aclrtRunMode *runMode)
{
	if (!runMode)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetRunMode: runMode is NULL");
	*runMode = ACL_HOST;
	return ACL_SUCCESS;
}
