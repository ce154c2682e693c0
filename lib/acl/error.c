// SPDX-License-Identifier: MIT
/*
 * What went wrong, for the thread that asks: a code (aclrtGetLastError) and a
 * message (aclGetRecentErrMsg), which starts with the code of its family as the
 * real runtime's do: EE1001 bad argument, EE1002 a wait that timed out, EL0004
 * out of memory, EE9999 the rest; EH0001 where acl itself found it.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "npuacl.h"

__thread struct npuacl_thread npuacl_self;

static const char *family(aclError code)
{
	switch (code) {
	case ACL_ERROR_RT_STREAM_SYNC_TIMEOUT:
	case ACL_ERROR_RT_EVENT_SYNC_TIMEOUT:
	case ACL_ERROR_RT_WAIT_TIMEOUT:
	case ACL_ERROR_RT_REPORT_TIMEOUT:
		return "EE1002";
	case ACL_ERROR_RT_MEMORY_ALLOCATION:
	case ACL_ERROR_BAD_ALLOC:
	case ACL_ERROR_RT_DEVICE_OOM:
		return "EL0004";
	default:
		if (code >= 100000 && code < 107000)
			return "EH0001";
		return code >= 107000 && code < 108000 ? "EE1001" : "EE9999";
	}
}

static size_t head(struct npuacl_thread *t, const char *name, int code)
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	n = (size_t)snprintf(t->message, sizeof(t->message), "%s: [PID: %d] ", name, (int)getpid());
	n += strftime(t->message + n, sizeof(t->message) - n, "%Y-%m-%d-%H:%M:%S", &tm);
	n += (size_t)snprintf(t->message + n, sizeof(t->message) - n, ".%03ld (%d) ",
			      now.tv_nsec / 1000000, code);
	t->told = false;
	return n;
}

void npuacl_message(const char *name, int code, const char *text)
{
	struct npuacl_thread *t = &npuacl_self;
	size_t n = head(t, name, code);

	snprintf(t->message + n, sizeof(t->message) - n, "%s", text);
}

void npuacl_fail_say(aclError code, const char *fmt, ...)
{
	struct npuacl_thread *t = &npuacl_self;
	size_t n = head(t, family(code), code);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->message + n, sizeof(t->message) - n, fmt, ap);
	va_end(ap);
	t->last = code;
	npuemu_log(NPUEMU_LOG_INFO, "acl: %s", t->message);
}

aclError npuacl_fail_core_say(int err, aclError code, const char *what)
{
	switch (err) {
	case -ENOMEM:
	case -ENOSPC:
		if (code == ACL_ERROR_RT_INTERNAL_ERROR)
			code = ACL_ERROR_RT_MEMORY_ALLOCATION;
		break;
	case -EOPNOTSUPP:
		code = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
		break;
	case -ENODEV:
		code = ACL_ERROR_RT_LOST_HEARTBEAT;
		break;
	}
	return npuacl_fail(code, "%s: %s", what, npuemu_errmsg());
}

void npuacl_unsupported(const char *name)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static const char *said[1024];
	u32 i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < ARRAY_SIZE(said) && said[i] && said[i] != name; i++)
		;
	if (i < ARRAY_SIZE(said) && !said[i]) {
		said[i] = name;
		npuemu_log(NPUEMU_LOG_WARN, "%s is not supported by npuemu (Documentation/compatibility.md)",
			   name);
	}
	pthread_mutex_unlock(&lock);
}

aclError npuemu_acl_unsupported(const char *name, aclError code)
{
	npuacl_unsupported(name);
	return npuacl_fail(code, "%s is not supported by npuemu: see Documentation/compatibility.md",
			   name);
}

aclError npuacl_status_code(u32 status, const char *cause)
{
	/* a page that could not be had completes as an address that is none */
	if (status == NPUEMU_ST_LOC_ACCESS && strstr(cause, "out of memory backing"))
		return ACL_ERROR_RT_DEVICE_OOM;
	switch (status) {
	case NPUEMU_ST_SUCCESS:
		return ACL_SUCCESS;
	case NPUEMU_ST_LOC_DATA_POISON:
	case NPUEMU_ST_REM_DATA_POISON:
		return ACL_ERROR_RT_DEVICE_MEM_ERROR;
	case NPUEMU_ST_ACK_TIMEOUT:
		return ACL_ERROR_RT_LINK_ERROR;
	case NPUEMU_ST_WR_FLUSH_ERR:
		return ACL_ERROR_RT_DEVICE_TASK_ABORT;
	default:
		return ACL_ERROR_RT_SYS_DMA;
	}
}

/* ---- what programs call --------------------------------------------------------- */

const char *aclGetRecentErrMsg(void)
{
	struct npuacl_thread *t = &npuacl_self;

	if (t->told || !t->message[0])
		return NULL;
	memcpy(t->shown, t->message, sizeof(t->shown));
	t->message[0] = 0;
	t->told = true;
	return t->shown;
}

/* To ask wrongly does not make the last error another one. */
static aclError no_level(const char *what, aclrtLastErrLevel level)
{
	char text[96];

	snprintf(text, sizeof(text), "%s: there is no level %d; ACL_RT_THREAD_LEVEL is %d", what,
		 (int)level, ACL_RT_THREAD_LEVEL);
	npuacl_message(family(ACL_ERROR_INVALID_PARAM), ACL_ERROR_INVALID_PARAM, text);
	return ACL_ERROR_INVALID_PARAM;
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level)
{
	return level == ACL_RT_THREAD_LEVEL ? npuacl_self.last : no_level("aclrtPeekAtLastError", level);
}

aclError aclrtGetLastError(aclrtLastErrLevel level)
{
	aclError last = npuacl_self.last;

	if (level != ACL_RT_THREAD_LEVEL)
		return no_level("aclrtGetLastError", level);
	npuacl_self.last = ACL_SUCCESS;
	return last;
}

aclError aclrtGetThreadLastTaskId(uint32_t *taskId)
{
	if (!taskId)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetThreadLastTaskId: taskId is NULL");
	*taskId = npuacl_self.last_task;
	return ACL_SUCCESS;
}
