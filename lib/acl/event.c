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
 *                             is complete; neither ResetEvent nor the old queries;
 *                             with ACL_EVENT_IPC for several processes: eventipc.c
 */
#include <inttypes.h>
#include "check.h"
#include "graph.h"
#include "share.h"

#define EVENTS_OF_DEVICE	65536u
#define KNOWN_FLAGS		(ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE | \
				 ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL)

struct npuemu_slab npuacl_events = {
	.what = "event", .size = NPUEMU_SLAB_SIZE(struct npuacl_event), .max = 1u << 20,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* ---- Life ------------------------------------------------------------------------- */

aclError npuacl_event_find(aclrtEvent handle, struct npuacl_event **out, const char *what)
{
	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the event is NULL", what);
	if (!npuemu_slab_alive(&npuacl_events, handle))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not an event, or no longer", what,
				   handle);
	*out = handle;
	return ACL_SUCCESS;
}

/* Not published yet. */
static aclError make(struct npuacl_device *d, enum npuacl_flavour flavour, u32 flags, struct npuacl_event **out,
		     const char *what)
{
	struct npuacl_event *e;

	if (npuemu_fetch_add(&d->nevents, 1) >= EVENTS_OF_DEVICE) {
		npuemu_fetch_add(&d->nevents, -1u);
		return npuacl_fail(ACL_ERROR_RT_NO_EVENT_RESOURCE,
				   "%s: device %u has %u events, the most it can: destroy some", what, d->id,
				   EVENTS_OF_DEVICE);
	}
	e = npuemu_slab_alloc(&npuacl_events);
	if (!e) {
		npuemu_fetch_add(&d->nevents, -1u);
		return npuacl_fail(ACL_ERROR_RT_NO_EVENT_RESOURCE, "%s: this process has %u events, the most it can", what,
				   npuacl_events.max);
	}
	e->dev = d;
	e->id = (u32)(((u8 *)e - npuacl_events.base) / npuacl_events.size);
	e->flavour = flavour;
	e->flags = flags;
	e->refs = 1;
	pthread_mutex_init(&e->lock, NULL);
	*out = e;
	return ACL_SUCCESS;
}

static aclError create(aclrtEvent *out, enum npuacl_flavour flavour, u32 flags, const char *what)
{
	struct npuacl_event *e;
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!out)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: event is NULL", what);
	if (flags & ACL_EVENT_IPC && flags != ACL_EVENT_IPC)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: flags %#x: ACL_EVENT_IPC goes with no other", what, flags);
	if (flags & ~(KNOWN_FLAGS | ACL_EVENT_IPC) || (flavour != NPUACL_EVENT_PLAIN && !flags))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: flags %#x are not ACL_EVENT_ ones", what, flags);
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	ret = make(ctx->dev, flags & ACL_EVENT_IPC ? NPUACL_EVENT_EX : flavour, flags, &e, what);
	if (ret)
		return ret;
	if (flags & ACL_EVENT_IPC)
		ret = npuacl_event_ipc_make(e);
	if (ret) {
		npuacl_event_put(e);
		return ret;
	}
	npuemu_slab_publish(&npuacl_events, e);
	NPUACL_CHECK(npuacl_check_object(NPUACL_OBJ_EVENT, e, e->dev->id, e->id));
	*out = e;
	return ACL_SUCCESS;
}

aclError npuacl_event_opened(struct npuacl_device *d, struct npuacl_event_ipc *ipc, aclrtEvent *out, const char *what)
{
	struct npuacl_event *e;
	aclError ret = make(d, NPUACL_EVENT_EX, ACL_EVENT_IPC, &e, what);

	if (ret)
		return ret;
	e->ipc = ipc;
	npuemu_slab_publish(&npuacl_events, e);
	NPUACL_CHECK(npuacl_check_object(NPUACL_OBJ_EVENT, e, e->dev->id, e->id));
	*out = e;
	return ACL_SUCCESS;
}

void npuacl_event_get(struct npuacl_event *e)
{
	npuemu_fetch_add(&e->refs, 1);
}

void npuacl_event_put(struct npuacl_event *e)
{
	if (npuemu_fetch_add(&e->refs, -1u) != 1)
		return;
	npuacl_event_ipc_free(e);
	pthread_mutex_destroy(&e->lock);
	npuemu_fetch_add(&e->dev->nevents, -1u);
	npuemu_slab_free(&npuacl_events, e);
}

/* A handle that is still held by the program names nothing any more. */
void npuacl_events_release(void)
{
	struct npuacl_event *e;
	u32 i;

	for (i = 0; i < npuacl_events.used; i++) {
		e = (void *)(npuacl_events.base + (size_t)i * npuacl_events.size);
		if (!npuemu_slab_retire(&npuacl_events, e))
			continue;
		NPUACL_CHECK(npuacl_check_object_gone(NPUACL_OBJ_EVENT, e));
		npuacl_event_put(e);
	}
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
	aclError ret = npuacl_event_find(handle, &e, "aclrtDestroyEvent");

	if (ret)
		return ret;
	if (!npuemu_slab_retire(&npuacl_events, e))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtDestroyEvent: %p was destroyed already", handle);
	NPUACL_CHECK(npuacl_check_object_gone(NPUACL_OBJ_EVENT, e));
	npuacl_event_put(e);
	return ACL_SUCCESS;
}

aclError aclrtGetEventId(aclrtEvent handle, uint32_t *eventId)
{
	struct npuacl_event *e;
	aclError ret = npuacl_event_find(handle, &e, "aclrtGetEventId");

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

/* ---- What tasks do with it ------------------------------------------------------------ */

bool npuacl_event_has_flag(const struct npuacl_event *e)
{
	return e->flavour == NPUACL_EVENT_FLAGGED && e->flags & (ACL_EVENT_SYNC | ACL_EVENT_EXTERNAL);
}

/* The records after @done that were executed, and follow on it, count.  e->lock held. */
static void absorb(struct npuacl_event *e)
{
	u64 done = e->done;
	u32 i;

	for (i = 0; i < e->nearly;) {
		if (e->early[i] > done + 1) {
			i++;
			continue;
		}
		if (e->early[i] == done + 1)
			done++;
		e->early[i] = e->early[e->nearly - 1];
		WRITE_ONCE(e->nearly, e->nearly - 1);
		i = 0;
	}
	smp_store_release(&e->done, done);
}

/* Records in several streams come in any order: an earlier one is not done with a later. */
static void executed(struct npuacl_event *e, u64 generation)
{
	u64 least = generation;
	u32 i;

	if (generation <= e->done)
		return;
	if (generation == e->done + 1) {
		smp_store_release(&e->done, generation);
	} else if (e->nearly < NPUACL_EARLY) {
		e->early[e->nearly] = generation;
		WRITE_ONCE(e->nearly, e->nearly + 1);
	} else {
		/* so many that what is before them is given up */
		for (i = 0; i < e->nearly; i++)
			least = e->early[i] < least ? e->early[i] : least;
		smp_store_release(&e->done, least);
		if (least != generation) {
			absorb(e);
			executed(e, generation);
		}
	}
	absorb(e);
}

/* e->lock held */
static bool is_early(const struct npuacl_event *e, u64 generation)
{
	u32 i;

	for (i = 0; i < e->nearly; i++)
		if (e->early[i] == generation)
			return true;
	return e->done >= generation;
}

void npuacl_event_recorded(struct npuacl_event *e, u64 generation, aclError error)
{
	struct npuacl_stream *s, *next;
	bool asleep;

	pthread_mutex_lock(&e->lock);
	if (generation > e->latest) {
		e->latest = generation;
		e->done_ns = (u64)npuemu_now_ns();
		e->error = error;
	}
	if (e->ipc)
		npuacl_event_ipc_recorded(e, generation, error);
	else
		executed(e, generation);
	WRITE_ONCE(e->set, true);
	s = e->waiters;
	e->waiters = NULL;
	smp_mb(); /* the record, before the look for sleepers: pairs with sync_event() of eventlook.c */
	asleep = READ_ONCE(e->sleepers);
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

bool npuacl_event_executed(struct npuacl_event *e, u64 generation)
{
	bool early;

	if (e->ipc)
		return npuacl_event_ipc_reached(e, generation);
	if (smp_load_acquire(&e->done) >= generation)
		return true;
	if (!READ_ONCE(e->nearly))
		return false;
	pthread_mutex_lock(&e->lock);
	early = is_early(e, generation);
	pthread_mutex_unlock(&e->lock);
	return early;
}

bool npuacl_event_reached(struct npuacl_event *e, u64 generation)
{
	if (npuacl_event_has_flag(e))
		return READ_ONCE(e->set);
	return npuacl_event_executed(e, generation);
}

void npuacl_event_park(struct npuacl_event *e, struct npuacl_stream *s)
{
	u64 generation;

	pthread_mutex_lock(&e->lock);
	if (!s->on_event) {
		s->on_event = true;
		s->wait_next = e->waiters;
		e->waiters = s;
	}
	/* reached just before: nobody else would wake it */
	generation = npuacl_task_at(s, 0)->event.generation;
	if (npuacl_event_has_flag(e) ? e->set : e->ipc ? npuacl_event_ipc_reached(e, generation) :
	    is_early(e, generation))
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

static aclError submit(struct npuacl_event *e, aclrtStream stream, enum npuacl_kind kind, s64 timeout_ns,
		       bool external)
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
	if (e->ipc)
		ret = npuacl_event_ipc_check(e, "ACL_EVENT_IPC");
	if (ret)
		return ret;
	if (unlikely(npuacl_records(s) || READ_ONCE(e->captured)) &&
	    npuacl_capture_event(e, s, kind, timeout_ns, external, &ret))
		return ret;
	npuacl_event_get(e);
	pthread_mutex_lock(&e->lock);
	if (kind == NPUACL_EVENT_RECORD)
		e->recorded++;
	t.event.generation = e->ipc ? npuacl_event_ipc_asked(e, kind == NPUACL_EVENT_RECORD) : e->recorded;
	pthread_mutex_unlock(&e->lock);
	if (kind == NPUACL_EVENT_WAIT)
		npuemu_fetch_add(&e->waits, 1);
	ret = npuacl_submit(s, &t, NULL);
	if (ret)
		npuacl_event_put(e);
	return ret;
}

static aclError record(aclrtEvent handle, aclrtStream stream, bool external, const char *what)
{
	struct npuacl_event *e;
	aclError ret = npuacl_event_find(handle, &e, what);

	return ret ? ret : submit(e, stream, NPUACL_EVENT_RECORD, 0, external);
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
	return record(event, stream, false, "aclrtRecordEvent");
}

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag)
{
	if (flag & ~ACL_EVENT_RECORD_EXTERNAL)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtRecordEventWithFlag: unknown flags %#x", flag);
	return record(event, stream, flag, "aclrtRecordEventWithFlag");
}

static aclError wait_for(aclrtStream stream, aclrtEvent handle, s64 timeout_ns, bool external,
			 const char *what)
{
	struct npuacl_event *e;
	aclError ret = npuacl_event_find(handle, &e, what);

	if (ret)
		return ret;
	if (e->flavour == NPUACL_EVENT_FLAGGED && !npuacl_event_has_flag(e) &&
	    !(e->flags & ACL_EVENT_CAPTURE_STREAM_PROGRESS))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: event %u was made for times only (ACL_EVENT_TIME_LINE)", what, e->id);
	if (!timeout_ns)
		timeout_ns = (s64)READ_ONCE(npuacl.wait_timeout_s) * 1000000000;
	return submit(e, stream, NPUACL_EVENT_WAIT, timeout_ns, external);
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
	return wait_for(stream, event, 0, false, "aclrtStreamWaitEvent");
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout)
{
	if (timeout < 0)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "aclrtStreamWaitEventWithTimeout: %d s; 0 means for ever", timeout);
	return wait_for(stream, event, (s64)timeout * 1000000000, false, "aclrtStreamWaitEventWithTimeout");
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout, uint32_t flag)
{
	if (flag & ~ACL_EVENT_WAIT_EXTERNAL)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtStreamWaitEventWithFlag: unknown flags %#x", flag);
	return wait_for(stream, event, (s64)timeout * 1000000000, flag, "aclrtStreamWaitEventWithFlag");
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout)
{
	WRITE_ONCE(npuacl.wait_timeout_s, timeout);
	return ACL_SUCCESS;
}

aclError aclrtResetEvent(aclrtEvent handle, aclrtStream stream)
{
	struct npuacl_event *e;
	aclError ret = npuacl_event_find(handle, &e, "aclrtResetEvent");

	if (ret)
		return ret;
	if (!npuacl_event_has_flag(e))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "aclrtResetEvent: event %u cannot be reset: only those of aclrtCreateEventWithFlag with ACL_EVENT_SYNC or ACL_EVENT_EXTERNAL can",
				   e->id);
	return submit(e, stream, NPUACL_EVENT_RESET, 0, false);
}
