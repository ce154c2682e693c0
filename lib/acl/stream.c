// SPDX-License-Identifier: MIT
/* Streams: made, asked about, waited for, aborted. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include "check.h"
#include "graph.h"
#include "hooks.h"

#define LOWEST_PRIORITY	7	/* 0 is the highest */

struct npuemu_slab npuacl_streams = {
	.what = "stream", .size = NPUEMU_SLAB_SIZE(struct npuacl_stream), .max = 131072,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* ---- Handles ------------------------------------------------------------------------ */

aclError npuacl_stream(aclrtStream handle, struct npuacl_stream **out)
{
	struct npuacl_stream *s = handle;
	struct npuacl_ctx *ctx;
	aclError ret = npuacl_current(&ctx);

	if (ret)
		return ret;
	if (!s) {
		*out = ctx->def;
		return ACL_SUCCESS;
	}
	if (!npuemu_slab_alive(&npuacl_streams, s))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%p is not a stream, or no longer", handle);
	if (s->ctx != ctx)
		return npuacl_fail(ACL_ERROR_RT_STREAM_CONTEXT,
				   "stream %u (device %u) belongs to another context than this thread's (device %u): aclrtSetCurrentContext or aclrtSetDevice first",
				   s->id, s->dev->id, ctx->dev->id);
	*out = s;
	return ACL_SUCCESS;
}

aclError npuacl_stream_make(struct npuacl_ctx *ctx, u32 flags, s32 priority, bool implicit,
			    struct npuacl_stream **out)
{
	struct npuacl_device *d = ctx->dev;
	struct npuacl_stream *s;

	if (npuemu_fetch_add(&d->nstreams, 1) >= NPUACL_STREAMS) {
		npuemu_fetch_add(&d->nstreams, -1u);
		return npuacl_fail(ACL_ERROR_RT_NO_STREAM_RESOURCE,
				   "device %u has %u streams, the most it can: destroy some", d->id,
				   NPUACL_STREAMS);
	}
	s = npuemu_slab_alloc(&npuacl_streams);
	if (!s) {
		npuemu_fetch_add(&d->nstreams, -1u);
		return npuacl_fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, "this process has %u streams, the most it can",
				   npuacl_streams.max);
	}
	s->ctx = ctx;
	s->dev = d;
	s->flags = flags;
	s->priority = priority;
	s->implicit = implicit;
	s->id = npuemu_fetch_add(&d->next_stream_id, 1);
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->error_lock, NULL);
	s->next = ctx->streams;
	ctx->streams = s;
	npuemu_slab_publish(&npuacl_streams, s);
	*out = s;
	return ACL_SUCCESS;
}

void npuacl_stream_unmake(struct npuacl_stream *s)
{
	struct npuacl_stream **at = &s->ctx->streams;

	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		*at = s->next;
	if (!npuemu_slab_retire(&npuacl_streams, s))
		return;
	NPUACL_CHECK(npuacl_check_stream_gone(s));
	NPUACL_CHECK(npuacl_check_object_gone(NPUACL_OBJ_STREAM, s));
	npuacl_allocator_drop(s);
	npuacl_unlist(s);
	npuacl_unwatch(s);
	npuacl_tasks_free(s);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->error_lock);
	npuemu_fetch_add(&s->dev->nstreams, -1u);
	npuemu_slab_free(&npuacl_streams, s);
}

/* ---- Waiting -------------------------------------------------------------------------- */

s64 npuacl_deadline_ms(s32 ms)
{
	return ms < 0 ? NPUEMU_FOREVER : npuemu_deadline_ms(ms);
}

s64 npuacl_report_ns(void)
{
	static s64 ns = -1;
	s64 v = READ_ONCE(ns);

	if (v < 0) {
		v = npuemu_env_number("NPUEMU_HANG_REPORT", 10);
		v = (v ? v : INT32_MAX) * 1000000000;
		WRITE_ONCE(ns, v);
	}
	return v;
}

/* Nothing may be touched that the runner frees: what it said when it parked will do. */
static void report(struct npuacl_stream *s, s64 since, u64 upto)
{
	char text[160] = "its tasks";

	if (READ_ONCE(s->run) == NPUACL_PARKED && npuemu_cas(&s->run, NPUACL_PARKED, NPUACL_RUNNING)) {
		struct npuacl_task *t = npuacl_task_at(s, 0);

		if (t)
			npuacl_task_text(t, text, sizeof(text));
		npuacl_run(s);
	}
	npuemu_log(NPUEMU_LOG_WARN, "acl: a thread has waited %.0f s for stream %u of device %u: %" PRIu64 " of %" PRIu64 " tasks are done, the next is: %s",
		   (double)(npuemu_now_ns() - since) / 1e9, s->id, s->dev->id, READ_ONCE(s->done),
		   upto, text);
}

/* @nap: and there is nobody to wake us but the clock. */
static void sleep_for(struct npuacl_stream *s, u64 upto, s64 until, bool nap)
{
	u32 seen = smp_load_acquire(&s->bell);
	s64 ns = until - npuemu_now_ns();

	/* not for each batch before that: a wake-up costs more than many a batch */
	pthread_mutex_lock(&s->lock);
	if (!s->sleepers || upto < s->wanted)
		WRITE_ONCE(s->wanted, upto);
	npuemu_fetch_add(&s->sleepers, 1);
	pthread_mutex_unlock(&s->lock);
	smp_mb(); /* a sleeper, before the looks: pairs with npuacl_task_retire(), and npuacl_run() */
	if (ns > 0 && smp_load_acquire(&s->done) < upto && (nap || !READ_ONCE(s->works)))
		npuemu_futex_wait(&s->bell, seen, until == NPUEMU_FOREVER ? INT64_MAX : ns);
	pthread_mutex_lock(&s->lock);
	npuemu_fetch_add(&s->sleepers, -1u);
	pthread_mutex_unlock(&s->lock);
}

#define YIELD_NS	500000ll	/* work is asked without sleep for so long, if no bell is rung for it */
#define TIRED_NS	100000ll	/* likewise, if one is: sleep and a wake-up take up to as long; switches are cheaper */
#define WORK_NAP_NS	1000000ll
#define SPINS		40u		/* looks before the first time it gives way: a few us */

/* Until its work can get on; false: there is no bell.  Ends in time also if nobody rings. */
static bool sleep_by_bell(struct npuacl_stream *s, u64 upto, s64 ns)
{
	struct npuacl_bell *b = READ_ONCE(s->bell_of);
	u32 seen = READ_ONCE(s->bell_seen);

	/* who owns it meanwhile may take long, and what is there of a bell is then an earlier one's */
	if (!b || READ_ONCE(s->run) != NPUACL_PARKED)
		return false;
	if (smp_load_acquire(&s->done) >= upto)
		return true;
	/* memory that a process cannot sleep on, as the module's, says so at once */
	return !npuemu_futex_wait(&b->word, seen, ns < WORK_NAP_NS ? ns : WORK_NAP_NS) || errno != EFAULT;
}

/*
 * Its first task is work that others have to get on with: give them the processor
 * before it is asked again; that is quicker than any wake-up where ranks share a cpu.
 * Then sleep, if a bell will tell; or, after a while, nap in proportion.
 * @idle_ns: since when nothing came of it.  @tired: the bell knows of us.
 */
static void give_way(struct npuacl_stream *s, u64 upto, s64 idle_ns, s64 now, s64 until, bool tired)
{
	s64 nap = (now - idle_ns) / 8;

	if (tired && sleep_by_bell(s, upto, until - now))
		return;
	if (now - idle_ns < YIELD_NS) {
		sched_yield();
		return;
	}
	nap = nap < WORK_NAP_NS ? nap : WORK_NAP_NS;
	sleep_for(s, upto, now + nap < until ? now + nap : until, true);
}

/* What went wrong in it: told once, or each time if it has stopped for good. */
static aclError told(struct npuacl_stream *s)
{
	char cause[sizeof(s->cause)];
	aclError code;

	if (!READ_ONCE(s->error) && !READ_ONCE(s->ctx->stopped))
		return ACL_SUCCESS;
	pthread_mutex_lock(&s->error_lock);
	code = s->error;
	memcpy(cause, s->cause, sizeof(cause));
	if (!READ_ONCE(s->stop_on_error))
		WRITE_ONCE(s->error, ACL_SUCCESS);
	pthread_mutex_unlock(&s->error_lock);
	if (code)
		return npuacl_fail(code, "stream %u of device %u: %s", s->id, s->dev->id, cause);
	if (READ_ONCE(s->stop_on_error))
		return npuacl_fail(s->ctx->stopped, "stream %u of device %u has stopped: another stream of its context failed",
				   s->id, s->dev->id);
	return ACL_SUCCESS;
}

static aclError wait_loop(struct npuacl_stream *s, u64 upto, s64 deadline)
{
	s64 begin = 0, report_at = 0, idle = 0, now = 0, until;
	u32 aborts = READ_ONCE(s->aborts), spins = 0;
	bool tired, gave = false;

	while (smp_load_acquire(&s->done) < upto && READ_ONCE(s->aborts) == aborts) {
		if (npuacl_try_own(s)) {
			npuacl_run(s);
			idle = 0;
			spins = 0;
			continue;
		}
		/* it may wait for another one that nobody runs */
		if (READ_ONCE(s->run) == NPUACL_PARKED && npuacl_help())
			continue;
		tired = idle && now - idle >= TIRED_NS;
		if (READ_ONCE(s->works) && npuacl_ask(s, tired)) {
			idle = 0;
			spins = 0;
			continue;
		}
		if (READ_ONCE(s->works) == NPUACL_WORK_SPINS && spins++ < SPINS) {
			npuemu_relax();
			continue;
		}
		/* most often that is all there is to it, and no clock is needed */
		if (READ_ONCE(s->works) && !gave) {
			gave = true;
			sched_yield();
			continue;
		}
		now = npuemu_now_ns();
		if (!begin) {
			begin = now;
			report_at = now + npuacl_report_ns();
		}
		if (now >= deadline)
			return npuacl_fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
					   "stream %u of device %u: %" PRIu64 " of %" PRIu64 " tasks were done when the time was over",
					   s->id, s->dev->id, smp_load_acquire(&s->done), upto);
		if (now >= report_at) {
			report(s, begin, upto);
			report_at = now + 60000000000ll;
		}
		until = deadline < report_at ? deadline : report_at;
		if (!READ_ONCE(s->works)) {
			sleep_for(s, upto, until, false);
			continue;
		}
		if (!idle)
			idle = now;
		give_way(s, upto, idle, now, until, tired);
	}
	NPUACL_CHECK(npuacl_check_synced());
	if (READ_ONCE(s->aborts) != aborts)
		return npuacl_fail(ACL_ERROR_RT_STREAM_ABORT, "stream %u of device %u was aborted", s->id,
				   s->dev->id);
	return told(s);
}

aclError npuacl_stream_wait(struct npuacl_stream *s, u64 upto, s64 deadline)
{
	aclError ret;

	npuacl_attend(s);
	ret = wait_loop(s, upto, deadline);
	npuacl_leave(s);
	return ret;
}

void npuacl_stream_drop(struct npuacl_stream *s)
{
	static const u32 free_states[] = { NPUACL_IDLE, NPUACL_QUEUED, NPUACL_PARKED };
	u32 i;

	WRITE_ONCE(s->aborting, 1);
	npuemu_fetch_add(&s->aborts, 1);
	smp_mb(); /* said, before the look at who runs it */
	for (;;) {
		for (i = 0; i < ARRAY_SIZE(free_states); i++)
			if (npuemu_cas(&s->run, free_states[i], NPUACL_RUNNING)) {
				npuacl_run(s);
				break;
			}
		if (!npuacl_pending(s) && smp_load_acquire(&s->run) == NPUACL_IDLE)
			break;
		npuemu_futex_wait(&s->bell, READ_ONCE(s->bell), 100000);
	}
	WRITE_ONCE(s->aborting, 0);
	NPUACL_CHECK(npuacl_check_synced());
	npuemu_fetch_add(&s->bell, 1);
	npuemu_futex_wake(&s->bell, INT32_MAX);
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout)
{
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(stream, &s);

	if (ret)
		return ret;
	if (timeout < -1)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "aclrtSynchronizeStreamWithTimeout: %d ms; -1 means for ever", timeout);
	ret = npuacl_capture_refuses(s, "aclrtSynchronizeStream");
	return ret ? ret : npuacl_stream_wait(s, smp_load_acquire(&s->issued), npuacl_deadline_ms(timeout));
}

aclError aclrtSynchronizeStream(aclrtStream stream)
{
	return aclrtSynchronizeStreamWithTimeout(stream, -1);
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status)
{
	struct npuacl_stream *s;
	aclError ret;

	if (!status)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtStreamQuery: status is NULL");
	ret = npuacl_stream(stream, &s);
	if (!ret)
		ret = npuacl_capture_refuses(s, "aclrtStreamQuery");
	if (!ret)
		*status = npuacl_pending(s) ? ACL_STREAM_STATUS_NOT_READY : ACL_STREAM_STATUS_COMPLETE;
	if (!ret)
		npuacl_polled(*status == ACL_STREAM_STATUS_COMPLETE);
	return ret;
}

aclError aclrtStreamAbort(aclrtStream stream)
{
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(stream, &s);

	if (!ret)
		npuacl_stream_drop(s);
	return ret;
}

/* ---- Made and unmade --------------------------------------------------------------------- */

#define KNOWN_FLAGS (ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT | \
		     ACL_STREAM_HUGE | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY)

static aclError create(aclrtStream *stream, u32 priority, u32 flags, const char *what)
{
	struct npuacl_stream *s;
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!stream)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: stream is NULL", what);
	if (flags & ~KNOWN_FLAGS)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: unknown flags %#x", what, flags & ~KNOWN_FLAGS);
	if (priority > LOWEST_PRIORITY)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: priority %u; 0 (highest) to %d", what, priority,
				   LOWEST_PRIORITY);
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl.lock);
	ret = npuacl_stream_make(ctx, flags, (s32)priority, false, &s);
	pthread_mutex_unlock(&npuacl.lock);
	if (ret)
		return ret;
	*stream = s;
	NPUACL_CHECK(npuacl_check_object(NPUACL_OBJ_STREAM, s, s->dev->id, s->id));
	npuacl_stream_state(s, ACL_RT_STREAM_STATE_CREATE_POST);
	return ACL_SUCCESS;
}

aclError aclrtCreateStream(aclrtStream *stream)
{
	return create(stream, 0, 0, "aclrtCreateStream");
}

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
	/* @priority is reserved there: streams get one through their attributes */
	return create(stream, priority <= LOWEST_PRIORITY ? priority : 0, flag,
		      "aclrtCreateStreamWithConfig");
}

/* A model's stream stays as long as the model, or the capture, does. */
static aclError in_model(struct npuacl_stream *s, const char *what)
{
	aclError ret = npuacl_capture_refuses(s, what);

	if (ret || likely(!npuacl_records(s)))
		return ret;
	return npuacl_fail(ACL_ERROR_RT_STREAM_MODEL,
			   "%s: stream %u is bound to a model (aclmdlRIUnbindStream), or changes a task group (aclmdlRICaptureTaskUpdateEnd)",
			   what, s->id);
}

static aclError destroy(aclrtStream stream, bool force, const char *what)
{
	struct npuacl_stream *s = stream;
	aclError ret;

	if (!s)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: stream is NULL", what);
	if (!npuemu_slab_alive(&npuacl_streams, s))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not a stream, or no longer", what, stream);
	if (s->implicit)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: this is a default stream: it ends with its context",
				   what);
	ret = in_model(s, what);
	if (ret)
		return ret;
	npuacl_stream_state(s, ACL_RT_STREAM_STATE_DESTROY_PRE);
	if (!force)
		npuacl_stream_wait(s, smp_load_acquire(&s->issued), NPUEMU_FOREVER);
	npuacl_stream_drop(s);
	pthread_mutex_lock(&npuacl.lock);
	npuacl_stream_unmake(s);
	pthread_mutex_unlock(&npuacl.lock);
	return ACL_SUCCESS;
}

aclError aclrtDestroyStream(aclrtStream stream)
{
	return destroy(stream, false, "aclrtDestroyStream");
}

aclError aclrtDestroyStreamForce(aclrtStream stream)
{
	return destroy(stream, true, "aclrtDestroyStreamForce");
}

/* ---- Asked about ---------------------------------------------------------------------------- */

aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId)
{
	struct npuacl_stream *s;
	aclError ret;

	if (!streamId)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtStreamGetId: streamId is NULL");
	ret = npuacl_stream(stream, &s);
	if (!ret)
		*streamId = (s32)s->id;
	return ret;
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority)
{
	struct npuacl_stream *s;
	aclError ret;

	if (!priority)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtStreamGetPriority: priority is NULL");
	ret = npuacl_stream(stream, &s);
	if (!ret)
		*priority = (u32)s->priority;
	return ret;
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags)
{
	struct npuacl_stream *s;
	aclError ret;

	if (!flags)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtStreamGetFlags: flags is NULL");
	ret = npuacl_stream(stream, &s);
	if (!ret)
		*flags = s->flags;
	return ret;
}

aclError aclrtGetStreamAvailableNum(uint32_t *streamCount)
{
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!streamCount)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtGetStreamAvailableNum: streamCount is NULL");
	ret = npuacl_current(&ctx);
	if (!ret)
		*streamCount = NPUACL_STREAMS - READ_ONCE(ctx->dev->nstreams);
	return ret;
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority)
{
	struct npuacl_ctx *ctx;
	aclError ret = npuacl_current(&ctx);

	if (ret)
		return ret;
	if (leastPriority)
		*leastPriority = LOWEST_PRIORITY;
	if (greatestPriority)
		*greatestPriority = 0;
	return ACL_SUCCESS;
}

aclError npuacl_stream_failure_mode(const char *what, aclrtStream stream, u64 mode)
{
	struct npuacl_stream *s;
	aclError ret;

	if (!stream)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the failure mode is not for the default stream", what);
	if (mode != ACL_CONTINUE_ON_FAILURE && mode != ACL_STOP_ON_FAILURE)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM,
				   "%s: mode %" PRIu64 "; 0 (continue) or 1 (stop)", what, mode);
	ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	if (s->mode_set)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: stream %u has a failure mode already; it can be set once", what, s->id);
	s->mode_set = true;
	WRITE_ONCE(s->stop_on_error, mode == ACL_STOP_ON_FAILURE);
	return ACL_SUCCESS;
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode)
{
	return npuacl_stream_failure_mode("aclrtSetStreamFailureMode", stream, mode);
}
