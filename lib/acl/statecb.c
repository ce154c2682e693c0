// SPDX-License-Identifier: MIT
/*
 * Functions of the program's that want to know of devices, streams and aborts:
 * registered under a name, once, and called in that order without any lock.
 */
#include <stdlib.h>
#include "devinfo.h"
#include "hooks.h"

#define MAX_NAMES	64
#define LONGEST_ABORT_MS	(36u * 60 * 1000)

struct entry {
	char *name;
	void (*fn)(void);	/* as its registry calls it */
	void *args;
};

struct registry {
	u32 n;
	struct entry list[MAX_NAMES];
};

static struct registry on_device, on_stream, on_abort;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* lock held */
static void take_out(struct registry *r, u32 i)
{
	free(r->list[i].name);
	r->n--;
	memmove(&r->list[i], &r->list[i + 1], (r->n - i) * sizeof(*r->list));
}

/* lock held */
static aclError put_in(const char *what, struct registry *r, const char *name, void (*fn)(void),
		       void *args)
{
	struct entry *e = &r->list[r->n];

	if (r->n == MAX_NAMES)
		return npuacl_fail(ACL_ERROR_STORAGE_OVER_LIMIT, "%s: %u are registered, the most there can be",
				   what, r->n);
	e->name = strdup(name);
	if (!e->name)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	e->fn = fn;
	e->args = args;
	r->n++;
	return ACL_SUCCESS;
}

/* @fn NULL: take @name out, which need not be there. */
static aclError enter(const char *what, struct registry *r, const char *name, void (*fn)(void),
		      void *args)
{
	aclError ret = ACL_SUCCESS;
	u32 i;

	if (!name)
		return npuacl_null(what, "regName");
	if (!*name)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: regName is empty", what);
	pthread_mutex_lock(&lock);
	for (i = 0; i < r->n && strcmp(r->list[i].name, name); i++)
		;
	if (!fn) {
		if (i < r->n)
			take_out(r, i);
	} else if (i < r->n) {
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				  "%s: \"%s\" is registered already: register NULL under that name first",
				  what, name);
	} else {
		ret = put_in(what, r, name, fn, args);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

/* Those of now, for calls without the lock. */
static void snapshot(const struct registry *r, struct registry *out)
{
	pthread_mutex_lock(&lock);
	out->n = r->n;
	memcpy(out->list, r->list, r->n * sizeof(*r->list));
	pthread_mutex_unlock(&lock);
}

aclError aclrtRegDeviceStateCallback(const char *regName, aclrtDeviceStateCallback callback,
				     void *args)
{
	return enter("aclrtRegDeviceStateCallback",
		     &on_device, regName, (void (*)(void))callback, args);
}

aclError aclrtRegStreamStateCallback(const char *regName, aclrtStreamStateCallback callback,
				     void *args)
{
	return enter("aclrtRegStreamStateCallback",
		     &on_stream, regName, (void (*)(void))callback, args);
}

aclError aclrtSetDeviceTaskAbortCallback(const char *regName, aclrtDeviceTaskAbortCallback callback,
					 void *args)
{
	return enter("aclrtSetDeviceTaskAbortCallback",
		     &on_abort, regName, (void (*)(void))callback, args);
}

void npuacl_device_state(struct npuacl_device *d, aclrtDeviceState state)
{
	struct registry now;
	u32 i;

	if (state == ACL_RT_DEVICE_STATE_RESET_POST && !READ_ONCE(d->contexts))
		npuacl_limits_forget(d);
	snapshot(&on_device, &now);
	for (i = 0; i < now.n; i++)
		((aclrtDeviceStateCallback)now.list[i].fn)((s32)d->id, state, now.list[i].args);
}

void npuacl_stream_state(struct npuacl_stream *s, aclrtStreamState state)
{
	struct registry now;
	u32 i;

	snapshot(&on_stream, &now);
	for (i = 0; i < now.n; i++)
		((aclrtStreamStateCallback)now.list[i].fn)(s, state, now.list[i].args);
}

/* ---- Aborting all that a device does for this process ---------------------------------------- */

static aclError call_abort(struct npuacl_device *d, aclrtDeviceTaskAbortStage stage, u32 timeout)
{
	struct registry now;
	u32 i;
	s32 rc;

	snapshot(&on_abort, &now);
	for (i = 0; i < now.n; i++) {
		rc = ((aclrtDeviceTaskAbortCallback)now.list[i].fn)((s32)d->id, stage, timeout,
								    now.list[i].args);
		if (rc)
			return npuacl_fail(ACL_ERROR_RT_TASK_ABORT_STOP,
					   "aclrtDeviceTaskAbort: device %u: callback %u gave %d in stage %d",
					   d->id, i, rc, (int)stage);
	}
	return ACL_SUCCESS;
}

/* npuacl.lock held: none of them is unmade meanwhile. */
static aclError drop_all(struct npuacl_device *d, s64 deadline)
{
	struct npuacl_stream *s;
	u32 i;

	for (i = 0; i < npuacl_streams.used; i++) {
		s = (void *)(npuacl_streams.base + (size_t)i * npuacl_streams.size);
		if (!npuemu_slab_alive(&npuacl_streams, s) || s->dev != d)
			continue;
		if (npuemu_now_ns() >= deadline)
			return npuacl_fail(ACL_ERROR_RT_WAIT_TIMEOUT,
					   "aclrtDeviceTaskAbort: device %u: not all streams had stopped when the time was over",
					   d->id);
		npuacl_stream_drop(s);
	}
	return ACL_SUCCESS;
}

aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout)
{
	static const char what[] = "aclrtDeviceTaskAbort";
	struct npuacl_device *d;
	s64 deadline;
	aclError ret;

	if (timeout > LONGEST_ABORT_MS)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %u ms; at most %u, 0 means for ever",
				   what, timeout, LONGEST_ABORT_MS);
	ret = npuacl_device_in_use(what, deviceId, &d);
	if (ret)
		return ret;
	deadline = npuacl_deadline_ms(timeout ? (s32)timeout : -1);
	ret = call_abort(d, ACL_RT_DEVICE_TASK_ABORT_PRE, timeout);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl.lock);
	ret = drop_all(d, deadline);
	pthread_mutex_unlock(&npuacl.lock);
	return ret ? ret : call_abort(d, ACL_RT_DEVICE_TASK_ABORT_POST, timeout);
}
