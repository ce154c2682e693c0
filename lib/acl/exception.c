// SPDX-License-Identifier: MIT
/*
 * Failed tasks: telling the program's functions, what kind of failure the device
 * had last, and going on after it.
 */
#include <sys/syscall.h>
#include <unistd.h>
#include "check.h"
#include "devinfo.h"
#include "hooks.h"

#define MAX_CALLBACKS	64
#define OF_DEVICE	0xffffffffu

/* aclrtExceptionInfo: lives as long as the call that it is handed to. */
struct rtExceptionInfo {
	u32 task;
	u32 stream;
	u32 thread;
	u32 device;
	u32 code;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static aclrtExceptionInfoCallback callbacks[MAX_CALLBACKS];
static u32 ncallbacks;
static aclrtExceptionInfoCallback single;	/* aclrtSetExceptionInfoCallback */
static aclError last_fault[NPUACL_DEVICES];	/* by the user's number; atomic */
/* What the callbacks that this thread is in were handed: nothing else is such a thing. */
static __thread const aclrtExceptionInfo *handed;

/* ---- Who is told ------------------------------------------------------------------------ */

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback)
{
	pthread_mutex_lock(&lock);
	single = callback;
	pthread_mutex_unlock(&lock);
	return ACL_SUCCESS;
}

/* Its place among them; @ncallbacks: not there.  lock held */
static u32 find(aclrtExceptionInfoCallback callback)
{
	u32 i;

	for (i = 0; i < ncallbacks && callbacks[i] != callback; i++)
		;
	return i;
}

aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback)
{
	static const char what[] = "aclrtExceptionInfoCallbackRegister";
	aclError ret = ACL_SUCCESS;

	if (!callback)
		return npuacl_null(what, "callback");
	pthread_mutex_lock(&lock);
	if (find(callback) < ncallbacks)
		;	/* once is enough, and no mistake */
	else if (ncallbacks == MAX_CALLBACKS)
		ret = npuacl_fail(ACL_ERROR_STORAGE_OVER_LIMIT, "%s: %u are registered, the most there can be",
				  what, ncallbacks);
	else
		callbacks[ncallbacks++] = callback;
	pthread_mutex_unlock(&lock);
	return ret;
}

aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback)
{
	u32 i;

	if (!callback)
		return npuacl_null("aclrtExceptionInfoCallbackUnregister", "callback");
	pthread_mutex_lock(&lock);
	i = find(callback);
	if (i < ncallbacks) {
		ncallbacks--;
		memmove(&callbacks[i], &callbacks[i + 1], (ncallbacks - i) * sizeof(*callbacks));
	}
	pthread_mutex_unlock(&lock);
	return ACL_SUCCESS;
}

void npuacl_exception(struct npuacl_stream *s, u32 task, aclError code)
{
	aclrtExceptionInfoCallback list[MAX_CALLBACKS + 1];
	struct rtExceptionInfo info = {
		.task = task,
		.stream = task == OF_DEVICE ? OF_DEVICE : s->id,
		.thread = task == OF_DEVICE ? OF_DEVICE : (u32)syscall(SYS_gettid),
		.device = s->dev->id,
		.code = (u32)code,
	};
	const aclrtExceptionInfo *outer;
	u32 i, n;

	__atomic_store_n(&last_fault[s->dev->id], code, __ATOMIC_RELEASE);
	NPUACL_CHECK(npuacl_check_synced());
	/* they may register and unregister others, or themselves */
	pthread_mutex_lock(&lock);
	n = ncallbacks;
	memcpy(list, callbacks, n * sizeof(*list));
	if (single)
		list[n++] = single;
	pthread_mutex_unlock(&lock);
	outer = handed;
	handed = &info;
	for (i = 0; i < n; i++)
		list[i](&info);
	handed = outer;
}

/* ---- What they can ask -------------------------------------------------------------------- */

static bool is_info(const char *what, const aclrtExceptionInfo *info)
{
	if (!info)
		npuacl_null(what, "info");
	else if (info != handed)
		npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %p is not what this callback was handed; it lasts no longer than the callback",
			    what, (const void *)info);
	return info && info == handed;
}

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo *info)
{
	return is_info(__func__, info) ? info->task : OF_DEVICE;
}

uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo *info)
{
	return is_info(__func__, info) ? info->stream : OF_DEVICE;
}

uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo *info)
{
	return is_info(__func__, info) ? info->thread : OF_DEVICE;
}

uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo *info)
{
	return is_info(__func__, info) ? info->device : OF_DEVICE;
}

uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo *info)
{
	return is_info(__func__, info) ? info->code : OF_DEVICE;
}

/* ---- What kind of failure it was ------------------------------------------------------------ */

static aclrtErrorType error_type(aclError code)
{
	switch (code) {
	case ACL_SUCCESS:
		return ACL_RT_NO_ERROR;
	case ACL_ERROR_RT_DEVICE_MEM_ERROR:
	case ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR:
	case ACL_ERROR_RT_SUSPECT_DEVICE_MEM_ERROR:
		return ACL_RT_ERROR_MEMORY;
	case ACL_ERROR_RT_LINK_ERROR:
		return ACL_RT_ERROR_LINK;
	default:
		return ACL_RT_ERROR_OTHERS;
	}
}

aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo *errorInfo)
{
	struct npuacl_device *d;
	aclError ret;

	if (!errorInfo)
		return npuacl_null("aclrtGetErrorVerbose", "errorInfo");
	ret = npuacl_device(deviceId, &d);
	if (ret)
		return ret;
	memset(errorInfo, 0, sizeof(*errorInfo));
	errorInfo->errorType = error_type(__atomic_load_n(&last_fault[d->id], __ATOMIC_ACQUIRE));
	errorInfo->tryRepair = errorInfo->errorType == ACL_RT_ERROR_MEMORY ||
			       errorInfo->errorType == ACL_RT_ERROR_LINK;
	return ACL_SUCCESS;
}

/* Data marked bad and links that are cut are injected, and are over once they have hit. */
aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo *errorInfo)
{
	static const char what[] = "aclrtRepairError";
	struct npuacl_device *d;
	aclError ret;

	if (!errorInfo)
		return npuacl_null(what, "errorInfo");
	ret = npuacl_device_in_use(what, deviceId, &d);
	if (ret)
		return ret;
	if (errorInfo->errorType != ACL_RT_NO_ERROR &&
	    errorInfo->errorType != ACL_RT_ERROR_MEMORY &&
	    errorInfo->errorType != ACL_RT_ERROR_LINK)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: error type %d cannot be repaired; 0 (none), 1 (memory) or 4 (link) can",
				   what, (int)errorInfo->errorType);
	__atomic_store_n(&last_fault[d->id], ACL_SUCCESS, __ATOMIC_RELEASE);
	return ACL_SUCCESS;
}
