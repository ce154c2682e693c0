// SPDX-License-Identifier: MIT
/*
 * Events: a count of the records asked for and of those that were executed.  A
 * wait is for the records asked for before it; the flavours differ in what else
 * may be done with them:
 *
 *   aclrtCreateEvent          times and waits; no ResetEvent
 *   aclrtCreateEventWithFlag  SYNC: a flag that a record sets and ResetEvent
 *                             clears, and that a wait may come to before the
 *                             record; TIME_LINE: times only
 *   aclrtCreateEventExWithFlag  waits for the latest record; one never recorded
 *                             is complete; neither ResetEvent nor the old queries
 */
#include <inttypes.h>
#include "npuacl.h"

#define EVENTS_OF_DEVICE	65536u
#define KNOWN_FLAGS		(ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE | \
				 ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL)

struct npuemu_slab npuacl_events = {
	.what = "event", .size = NPUEMU_SLAB_SIZE(struct npuacl_event), .max = 1u << 20,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* ---- Life ------------------------------------------------------------------------- */

static aclError event(aclrtEvent handle, struct npuacl_event **out, const char *what)
{
	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the event is NULL", what);
	if (!npuemu_slab_alive(&npuacl_events, handle))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not an event, or no longer", what,
				   handle);
	*out = handle;
	return ACL_SUCCESS;
}

static aclError create(aclrtEvent *out, enum npuacl_flavour flavour, u32 flags, const char *what)
{
	struct npuacl_event *e;
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!out)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: event is NULL", what);
	if (flags & ACL_EVENT_IPC)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: events across processes (ACL_EVENT_IPC) are not supported by npuemu yet",
				   what);
	if (flags & ~KNOWN_FLAGS || (flavour != NPUACL_EVENT_PLAIN && !flags))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: flags %#x are not ACL_EVENT_ ones", what, flags);
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	if (npuemu_fetch_add(&ctx->dev->nevents, 1) >= EVENTS_OF_DEVICE) {
		npuemu_fetch_add(&ctx->dev->nevents, -1u);
		return npuacl_fail(ACL_ERROR_RT_NO_EVENT_RESOURCE,
				   "device %u has %u events, the most it can: destroy some", ctx->dev->id,
				   EVENTS_OF_DEVICE);
	}
	e = npuemu_slab_alloc(&npuacl_events);
	if (!e) {
		npuemu_fetch_add(&ctx->dev->nevents, -1u);
		return npuacl_fail(ACL_ERROR_RT_NO_EVENT_RESOURCE, "this process has %u events, the most it can",
				   npuacl_events.max);
	}
	e->dev = ctx->dev;
	e->id = (u32)(((u8 *)e - npuacl_events.base) / npuacl_events.size);
	e->flavour = flavour;
	e->flags = flags;
	e->refs = 1;
	pthread_mutex_init(&e->lock, NULL);
	npuemu_slab_publish(&npuacl_events, e);
	*out = e;
	return ACL_SUCCESS;
}

static void get(struct npuacl_event *e)
{
	npuemu_fetch_add(&e->refs, 1);
}

void npuacl_event_put(struct npuacl_event *e)
{
	if (npuemu_fetch_add(&e->refs, -1u) != 1)
		return;
	pthread_mutex_destroy(&e->lock);
	npuemu_fetch_add(&e->dev->nevents, -1u);
	npuemu_slab_free(&npuacl_events, e);
}

aclError aclrtCreateEvent(aclrtEvent *event)
{
	return create(event, NPUACL_EVENT_PLAIN, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE, "aclrtCreateEvent");
}

aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag)
{
	return create(event, NPUACL_EVENT_FLAGGED, flag, "aclrtCreateEventWithFlag");
}

aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag)
{
	return create(event, NPUACL_EVENT_EX, flag, "aclrtCreateEventExWithFlag");
}

/* Tasks that name it go on: it is gone with the last of them. */
aclError aclrtDestroyEvent(aclrtEvent handle)
{
	struct npuacl_event *e;
	aclError ret = event(handle, &e, "aclrtDestroyEvent");

	if (ret)
		return ret;
	if (!npuemu_slab_retire(&npuacl_events, e))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtDestroyEvent: %p was destroyed already", handle);
	npuacl_event_put(e);
	return ACL_SUCCESS;
}

/* ---- What tasks do with it ------------------------------------------------------------ */

static bool has_flag(const struct npuacl_event *e)
{
	return e->flavour == NPUACL_EVENT_FLAGGED && e->flags & ACL_EVENT_SYNC;
}

void npuacl_event_recorded(struct npuacl_event *e, u64 generation, aclError error)
{
	struct npuacl_stream *s, *next;
	bool asleep;

	pthread_mutex_lock(&e->lock);
	if (generation > e->done) {
		e->done_ns = (u64)npuemu_now_ns();
		e->error = error;
		smp_store_release(&e->done, generation);
	}
	WRITE_ONCE(e->set, true);
	s = e->waiters;
	e->waiters = NULL;
	asleep = e->sleepers;
	if (asleep)
		npuemu_fetch_add(&e->bell, 1);
	/* under the lock: a stream that gives up takes itself off the list first */
	for (; s; s = next) {
		next = s->wait_next;
		s->on_event = false;
		npuacl_wake_parked(s);
	}
	pthread_mutex_unlock(&e->lock);
	if (asleep)
		npuemu_futex_wake(&e->bell, INT32_MAX);
}

bool npuacl_event_reached(struct npuacl_event *e, u64 generation)
{
	if (has_flag(e))
		return READ_ONCE(e->set);
	return smp_load_acquire(&e->done) >= generation;
}

void npuacl_event_park(struct npuacl_event *e, struct npuacl_stream *s)
{
	pthread_mutex_lock(&e->lock);
	if (!s->on_event) {
		s->on_event = true;
		s->wait_next = e->waiters;
		e->waiters = s;
	}
	/* reached just before: nobody else would wake it */
	if (npuacl_event_reached(e, npuacl_task_at(s, 0)->event.generation))
		WRITE_ONCE(s->woken, true);
	pthread_mutex_unlock(&e->lock);
}

void npuacl_event_unpark(struct npuacl_event *e, struct npuacl_stream *s)
{
	struct npuacl_stream **at;

	pthread_mutex_lock(&e->lock);
	for (at = &e->waiters; s->on_event && *at; at = &(*at)->wait_next)
		if (*at == s) {
			*at = s->wait_next;
			s->on_event = false;
			break;
		}
	pthread_mutex_unlock(&e->lock);
}

void npuacl_event_waited(struct npuacl_event *e)
{
	npuemu_fetch_add(&e->waits_done, 1);
}

void npuacl_event_reset(struct npuacl_event *e)
{
	pthread_mutex_lock(&e->lock);
	WRITE_ONCE(e->set, false);
	pthread_mutex_unlock(&e->lock);
}

/* ---- Asking for it ------------------------------------------------------------------------ */

static aclError submit(struct npuacl_event *e, aclrtStream stream, enum npuacl_kind kind, s64 timeout_ns)
{
	struct npuacl_task t = { .kind = (u16)kind, .timeout_ns = timeout_ns, .event.event = e };
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(stream, &s);

	if (ret)
		return ret;
	if (s->dev != e->dev && kind != NPUACL_EVENT_WAIT)
		return npuacl_fail(ACL_ERROR_RT_STREAM_CONTEXT,
				   "event %u was made on device %u, stream %u is of device %u", e->id,
				   e->dev->id, s->id, s->dev->id);
	get(e);
	pthread_mutex_lock(&e->lock);
	if (kind == NPUACL_EVENT_RECORD)
		e->recorded++;
	t.event.generation = e->recorded;
	pthread_mutex_unlock(&e->lock);
	if (kind == NPUACL_EVENT_WAIT)
		npuemu_fetch_add(&e->waits, 1);
	ret = npuacl_submit(s, &t, NULL);
	if (ret)
		npuacl_event_put(e);
	return ret;
}

static aclError record(aclrtEvent handle, aclrtStream stream, const char *what)
{
	struct npuacl_event *e;
	aclError ret = event(handle, &e, what);

	return ret ? ret : submit(e, stream, NPUACL_EVENT_RECORD, 0);
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
	return record(event, stream, "aclrtRecordEvent");
}

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag)
{
	if (flag & ~ACL_EVENT_EXTERNAL)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtRecordEventWithFlag: unknown flags %#x", flag);
	return record(event, stream, "aclrtRecordEventWithFlag");
}

static aclError wait_for(aclrtStream stream, aclrtEvent handle, s64 timeout_ns, const char *what)
{
	struct npuacl_event *e;
	aclError ret = event(handle, &e, what);

	if (ret)
		return ret;
	if (e->flavour == NPUACL_EVENT_FLAGGED && !(e->flags & (ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS)))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: event %u was made for times only (ACL_EVENT_TIME_LINE)", what, e->id);
	if (!timeout_ns)
		timeout_ns = (s64)READ_ONCE(npuacl.wait_timeout_s) * 1000000000;
	return submit(e, stream, NPUACL_EVENT_WAIT, timeout_ns);
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
	return wait_for(stream, event, 0, "aclrtStreamWaitEvent");
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout)
{
	if (timeout < 0)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "aclrtStreamWaitEventWithTimeout: %d s; 0 means for ever", timeout);
	return wait_for(stream, event, (s64)timeout * 1000000000, "aclrtStreamWaitEventWithTimeout");
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout, uint32_t flag)
{
	if (flag & ~ACL_EVENT_EXTERNAL)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtStreamWaitEventWithFlag: unknown flags %#x", flag);
	return wait_for(stream, event, (s64)timeout * 1000000000, "aclrtStreamWaitEventWithFlag");
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout)
{
	WRITE_ONCE(npuacl.wait_timeout_s, timeout);
	return ACL_SUCCESS;
}

aclError aclrtResetEvent(aclrtEvent handle, aclrtStream stream)
{
	struct npuacl_event *e;
	aclError ret = event(handle, &e, "aclrtResetEvent");

	if (ret)
		return ret;
	if (!has_flag(e))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "aclrtResetEvent: event %u cannot be reset: only those of aclrtCreateEventWithFlag(ACL_EVENT_SYNC) can",
				   e->id);
	return submit(e, stream, NPUACL_EVENT_RESET, 0);
}

/* ---- Waiting on the host, and looking ------------------------------------------------------- */

static u64 asked(struct npuacl_event *e)
{
	u64 n;

	pthread_mutex_lock(&e->lock);
	n = e->recorded;
	pthread_mutex_unlock(&e->lock);
	return n;
}

static aclError sync_event(struct npuacl_event *e, s64 deadline)
{
	s64 now, begin = npuemu_now_ns(), report = begin + npuacl_report_ns();
	u64 generation = asked(e);
	u32 seen;

	while (smp_load_acquire(&e->done) < generation) {
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
		if (smp_load_acquire(&e->done) < generation)
			npuemu_futex_wait(&e->bell, seen, (deadline < report ? deadline : report) - now);
		npuemu_fetch_add(&e->sleepers, -1u);
	}
	if (e->error)
		return npuacl_fail(e->error, "event %u: its stream was aborted or had stopped before the record", e->id);
	return ACL_SUCCESS;
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent handle, int32_t timeout)
{
	struct npuacl_event *e;
	aclError ret = event(handle, &e, "aclrtSynchronizeEvent");

	if (ret)
		return ret;
	if (timeout < -1)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "aclrtSynchronizeEventWithTimeout: %d ms; -1 means for ever", timeout);
	get(e);
	ret = sync_event(e, npuacl_deadline_ms(timeout));
	npuacl_event_put(e);
	return ret;
}

aclError aclrtSynchronizeEvent(aclrtEvent event)
{
	return aclrtSynchronizeEventWithTimeout(event, -1);
}

aclError aclrtQueryEventStatus(aclrtEvent handle, aclrtEventRecordedStatus *status)
{
	struct npuacl_event *e;
	aclError ret = event(handle, &e, "aclrtQueryEventStatus");

	if (ret)
		return ret;
	if (!status)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtQueryEventStatus: status is NULL");
	/* one that was never recorded: complete for EX, not so for the others */
	if (e->flavour != NPUACL_EVENT_EX && !asked(e))
		*status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
	else
		*status = smp_load_acquire(&e->done) >= asked(e) ? ACL_EVENT_RECORDED_STATUS_COMPLETE :
			  ACL_EVENT_RECORDED_STATUS_NOT_READY;
	return ACL_SUCCESS;
}

static aclError old_query(aclrtEvent handle, struct npuacl_event **e, const void *status, const char *what)
{
	aclError ret = event(handle, e, what);

	if (ret)
		return ret;
	if (!status)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: status is NULL", what);
	if ((*e)->flavour == NPUACL_EVENT_EX)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: event %u is of aclrtCreateEventExWithFlag: aclrtQueryEventStatus is for it", what,
				   (*e)->id);
	return ACL_SUCCESS;
}

aclError aclrtQueryEvent(aclrtEvent handle, aclrtEventStatus *status)
{
	struct npuacl_event *e;
	aclError ret = old_query(handle, &e, status, "aclrtQueryEvent");
	u64 n;

	if (ret)
		return ret;
	n = asked(e);
	*status = n && smp_load_acquire(&e->done) >= n ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
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
	return ACL_SUCCESS;
}

/* The time of the latest record; 107006 when there is none. */
static aclError when(aclrtEvent handle, u64 *ns, const char *what)
{
	struct npuacl_event *e;
	aclError ret = event(handle, &e, what);

	if (ret)
		return ret;
	if (!(e->flags & ACL_EVENT_TIME_LINE) && e->flavour != NPUACL_EVENT_PLAIN)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: event %u keeps no time: ACL_EVENT_TIME_LINE asks for it", what, e->id);
	pthread_mutex_lock(&e->lock);
	if (!e->recorded || e->done < e->recorded || e->error)
		ret = ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID;
	*ns = e->done_ns;
	pthread_mutex_unlock(&e->lock);
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

aclError aclrtGetEventId(aclrtEvent handle, uint32_t *eventId)
{
	struct npuacl_event *e;
	aclError ret = event(handle, &e, "aclrtGetEventId");

	if (ret)
		return ret;
	if (!eventId)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetEventId: eventId is NULL");
	*eventId = e->id;
	return ACL_SUCCESS;
}

aclError aclrtGetEventAvailNum(uint32_t *eventCount)
{
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!eventCount)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetEventAvailNum: eventCount is NULL");
	ret = npuacl_current(&ctx);
	if (!ret)
		*eventCount = EVENTS_OF_DEVICE - READ_ONCE(ctx->dev->nevents);
	return ret;
}
