// SPDX-License-Identifier: MIT
/*
 * Events, from the host: waiting for one, looking at it, and the times between two.
 * What they are, and what streams do with them, is in event.c.
 */
#include <inttypes.h>
#include "check.h"
#include "graph.h"
#include "share.h"

/* ---- Waiting ----------------------------------------------------------------------------------- */

static u64 asked(struct npuacl_event *e)
{
	u64 n;

	if (e->ipc)
		return npuacl_event_ipc_asked(e, false);
	pthread_mutex_lock(&e->lock);
	n = e->recorded;
	pthread_mutex_unlock(&e->lock);
	return n;
}

/* How long to sleep: a record of another process rings no bell here. */
static s64 nap_ns(const struct npuacl_event *e, s64 until, s64 now)
{
	return e->ipc && until - now > 1000000 ? 1000000 : until - now;
}

static aclError sync_event(struct npuacl_event *e, s64 deadline)
{
	s64 now, begin = npuemu_now_ns(), report = begin + npuacl_report_ns();
	u64 generation = asked(e);
	u32 seen;

	while (!npuacl_event_executed(e, generation)) {
		if (npuacl_help())
			continue;
		now = npuemu_now_ns();
		if (now >= deadline)
			return npuacl_fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
					   "event %u: its record was not reached in time", e->id);
		if (now >= report) {
			npuemu_log(NPUEMU_LOG_WARN, "acl: a thread has waited %.0f s for event %u (device %u): the stream that is to record it has not come so far",
				   (double)(now - begin) / 1e9, e->id, e->dev->id);
			report = now + 60000000000ll;
		}
		seen = smp_load_acquire(&e->bell);
		npuemu_fetch_add(&e->sleepers, 1);
		smp_mb(); /* a sleeper, before the look */
		if (!npuacl_event_executed(e, generation))
			npuemu_futex_wait(&e->bell, seen, nap_ns(e, deadline < report ? deadline : report, now));
		npuemu_fetch_add(&e->sleepers, -1u);
	}
	NPUACL_CHECK(npuacl_check_synced());
	if (npuacl_event_ipc_lost(e))
		return npuacl_fail(ACL_ERROR_RT_IPC_ERROR, "event %u: the process that made it has ended before its record", e->id);
	if (e->ipc && npuacl_event_ipc_error(e))
		return npuacl_fail(npuacl_event_ipc_error(e), "event %u: the stream that was to record it was aborted or had stopped",
				   e->id);
	if (e->error)
		return npuacl_fail(e->error, "event %u: its stream was aborted or had stopped before the record", e->id);
	return ACL_SUCCESS;
}

static aclError synchronize(const char *what, aclrtEvent handle, s32 timeout)
{
	struct npuacl_event *e;
	aclError ret = npuacl_event_find(handle, &e, what);

	if (ret)
		return ret;
	if (timeout < -1)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %d ms; -1 means for ever", what, timeout);
	if (e->flavour == NPUACL_EVENT_FLAGGED && e->flags == ACL_EVENT_EXTERNAL)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "%s: event %u is for changes of models (ACL_EVENT_EXTERNAL): streams wait for it",
				   what, e->id);
	if (unlikely(READ_ONCE(e->captured)))
		return npuacl_capture_event_asked(e, what);
	npuacl_event_get(e);
	ret = sync_event(e, npuacl_deadline_ms(timeout));
	npuacl_event_put(e);
	return ret;
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout)
{
	return synchronize("aclrtSynchronizeEventWithTimeout", event, timeout);
}

aclError aclrtSynchronizeEvent(aclrtEvent event)
{
	return synchronize("aclrtSynchronizeEvent", event, -1);
}

/* ---- Looking ----------------------------------------------------------------------------------- */

aclError aclrtQueryEventStatus(aclrtEvent handle, aclrtEventRecordedStatus *status)
{
	struct npuacl_event *e;
	aclError ret = npuacl_event_find(handle, &e, "aclrtQueryEventStatus");

	if (ret)
		return ret;
	if (!status)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtQueryEventStatus: status is NULL");
	if (unlikely(READ_ONCE(e->captured)))
		return npuacl_capture_event_asked(e, "aclrtQueryEventStatus");
	/* one that was never recorded: complete for EX, not so for the others */
	if (e->flavour != NPUACL_EVENT_EX && !asked(e))
		*status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
	else
		*status = npuacl_event_executed(e, asked(e)) ? ACL_EVENT_RECORDED_STATUS_COMPLETE :
			  ACL_EVENT_RECORDED_STATUS_NOT_READY;
	npuacl_polled(*status == ACL_EVENT_RECORDED_STATUS_COMPLETE);
	return ACL_SUCCESS;
}

static aclError old_query(aclrtEvent handle, struct npuacl_event **e, const void *status, const char *what)
{
	aclError ret = npuacl_event_find(handle, e, what);

	if (ret)
		return ret;
	if (!status)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: status is NULL", what);
	if ((*e)->flavour == NPUACL_EVENT_EX)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: event %u is of aclrtCreateEventExWithFlag: aclrtQueryEventStatus is for it", what,
				   (*e)->id);
	return unlikely(READ_ONCE((*e)->captured)) ? npuacl_capture_event_asked(*e, what) : ACL_SUCCESS;
}

aclError aclrtQueryEvent(aclrtEvent handle, aclrtEventStatus *status)
{
	struct npuacl_event *e;
	aclError ret = old_query(handle, &e, status, "aclrtQueryEvent");
	u64 n;

	if (ret)
		return ret;
	n = asked(e);
	*status = n && npuacl_event_executed(e, n) ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
	npuacl_polled(*status == ACL_EVENT_STATUS_COMPLETE);
	return ACL_SUCCESS;
}

aclError aclrtQueryEventWaitStatus(aclrtEvent handle, aclrtEventWaitStatus *status)
{
	struct npuacl_event *e;
	aclError ret = old_query(handle, &e, status, "aclrtQueryEventWaitStatus");

	if (ret)
		return ret;
	*status = READ_ONCE(e->waits_done) >= READ_ONCE(e->waits) ? ACL_EVENT_WAIT_STATUS_COMPLETE :
		  ACL_EVENT_WAIT_STATUS_NOT_READY;
	npuacl_polled(*status == ACL_EVENT_WAIT_STATUS_COMPLETE);
	return ACL_SUCCESS;
}

/* ---- Times ------------------------------------------------------------------------------------- */

/* The time of the latest record; 107006 when there is none. */
static aclError when(aclrtEvent handle, u64 *ns, const char *what)
{
	struct npuacl_event *e;
	aclError ret = npuacl_event_find(handle, &e, what);
	u64 n;

	if (ret)
		return ret;
	if (!(e->flags & ACL_EVENT_TIME_LINE) && e->flavour != NPUACL_EVENT_PLAIN && !e->ipc)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: event %u keeps no time: ACL_EVENT_TIME_LINE asks for it", what, e->id);
	n = asked(e);
	if (!n || !npuacl_event_executed(e, n))
		ret = ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID;
	pthread_mutex_lock(&e->lock);
	if (e->error)
		ret = ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID;
	*ns = e->done_ns;
	if (e->ipc)
		ret = npuacl_event_ipc_when(e, ns);
	pthread_mutex_unlock(&e->lock);
	if (!ret)
		NPUACL_CHECK(npuacl_check_synced());
	return ret ? npuacl_fail(ret, "%s: event %u has not been recorded, or its stream has not come so far", what,
				 e->id) : ACL_SUCCESS;
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent)
{
	u64 begin, end;
	aclError ret;

	if (!ms)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtEventElapsedTime: ms is NULL");
	ret = when(startEvent, &begin, "aclrtEventElapsedTime (start)");
	if (!ret)
		ret = when(endEvent, &end, "aclrtEventElapsedTime (end)");
	if (ret)
		return ret;
	if (end < begin)
		return npuacl_fail(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL,
				   "aclrtEventElapsedTime: the end was recorded %" PRIu64 " us before the start",
				   (begin - end) / 1000);
	*ms = (float)((double)(end - begin) / 1e6);
	return ACL_SUCCESS;
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp)
{
	u64 ns;
	aclError ret;

	if (!timestamp)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtEventGetTimestamp: timestamp is NULL");
	ret = when(event, &ns, "aclrtEventGetTimestamp");
	if (!ret)
		*timestamp = ns / 1000;
	return ret;
}
