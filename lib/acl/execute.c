// SPDX-License-Identifier: MIT
/*
 * What a stream's tasks do.  The caller owns the stream; a task that waits
 * arranges for being woken, and the stream is parked with it still in front.
 */
#include <inttypes.h>
#include <stdio.h>
#include "check.h"
#include "graph.h"
#include "hooks.h"
#include "share.h"

#define SLOW_NS		2000000ll	/* a batch that takes longer is looked after now and again */

/* ---- Saying what it is ------------------------------------------------------------ */

static void sdma_text(const struct npuemu_sdma *d, char *buf, size_t size)
{
	switch (d->dw1 >> NPUEMU_SQE_OPCODE_SHIFT) {
	case NPUEMU_SDMA_COPY:
		snprintf(buf, size, "copy of %" PRIu64 " bytes from %#" PRIx64 " to %#" PRIx64,
			 (u64)d->len, (u64)d->src, (u64)d->dst);
		break;
	case NPUEMU_SDMA_COPY_2D:
		snprintf(buf, size, "copy of %u rows of %" PRIu64 " bytes from %#" PRIx64 " to %#" PRIx64,
			 d->height, (u64)d->len, (u64)d->src, (u64)d->dst);
		break;
	case NPUEMU_SDMA_FILL:
		snprintf(buf, size, "fill of %" PRIu64 " bytes at %#" PRIx64, (u64)d->len, (u64)d->dst);
		break;
	case NPUEMU_SDMA_REDUCE:
		snprintf(buf, size, "reduction of %" PRIu64 " bytes from %#" PRIx64 " into %#" PRIx64,
			 (u64)d->len, (u64)d->src, (u64)d->dst);
		break;
	default:
		snprintf(buf, size, "store of %#" PRIx64 " at %#" PRIx64, (u64)d->src, (u64)d->dst);
		break;
	}
}

/* False: it was taken away.  Words of notifies are this library's, and stay. */
static bool word_read(const struct npuacl_task *t, u64 *value)
{
	if (unlikely(t->flags & NPUACL_VALUE))
		return npuacl_word_at((u64)(uintptr_t)t->word.word, value);
	*value = __atomic_load_n(npuacl_word(t->word.word), __ATOMIC_ACQUIRE);
	return true;
}

void npuacl_task_text(const struct npuacl_task *t, char *buf, size_t size)
{
	u64 word;

	switch ((enum npuacl_kind)t->kind) {
	case NPUACL_SDMA:
		sdma_text(&t->sdma, buf, size);
		break;
	case NPUACL_EVENT_RECORD:
	case NPUACL_EVENT_WAIT:
	case NPUACL_EVENT_RESET:
		snprintf(buf, size, "%s of event %u",
			 t->kind == NPUACL_EVENT_RECORD ? "record" :
			 t->kind == NPUACL_EVENT_WAIT ? "wait" : "reset", t->event.event->id);
		break;
	case NPUACL_NOTIFY_WAIT:
		snprintf(buf, size, "wait for the notify at %p to be recorded",
			 (void *)(uintptr_t)t->word.word);
		break;
	case NPUACL_VALUE_WAIT:
		if (word_read(t, &word))
			snprintf(buf, size, "wait for the word at %p (now %#" PRIx64 ") to match %#" PRIx64,
				 (void *)(uintptr_t)t->word.word, word, t->word.value);
		else
			snprintf(buf, size, "wait for the word at %p, which is not there any more",
				 (void *)(uintptr_t)t->word.word);
		break;
	case NPUACL_HOST_FUNC:
		snprintf(buf, size, "host function");
		break;
	case NPUACL_WORK:
		t->work->ops->text(t->work, buf, size);
		break;
	default:
		if (t->kind >= NPUACL_FIRST_GRAPH)
			npuacl_replay_text(t, buf, size);
		else
			snprintf(buf, size, "call of the library's");
		break;
	}
}

/* ---- Errors ---------------------------------------------------------------------------- */

void npuacl_stream_error(struct npuacl_stream *s, u32 task, aclError code, const char *fmt, ...)
{
	char text[sizeof(s->cause)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	npuemu_log(NPUEMU_LOG_ERROR, "acl: stream %u of device %u: %s (%d)", s->id, s->dev->id, text,
		   code);
	pthread_mutex_lock(&s->error_lock);
	if (!s->error) {
		memcpy(s->cause, text, sizeof(text));
		WRITE_ONCE(s->error, code);
	}
	pthread_mutex_unlock(&s->error_lock);
	if (READ_ONCE(s->stop_on_error))
		WRITE_ONCE(s->ctx->stopped, code);
	npuacl_exception(s, task, code);
}

static bool has_stopped(struct npuacl_stream *s)
{
	return READ_ONCE(s->aborting) || (READ_ONCE(s->stop_on_error) && READ_ONCE(s->ctx->stopped));
}

/* ---- Descriptors ------------------------------------------------------------------------- */

/* A batch has ended: @n of it, or an error at @bad. */
static void batch_ended(struct npuacl_stream *s, struct npuacl_sdma *q, int got, u32 n, u32 bad,
			u32 status)
{
	char cause[sizeof(q->cause)];
	bool words = false;
	u32 i, good = got ? bad : n;

	memcpy(cause, q->cause, sizeof(cause));
	npuacl_sdma_put(s->dev, q);
	for (i = 0; i < good; i++)
		words |= npuacl_task_at(s, i)->sdma.dw1 >> NPUEMU_SQE_OPCODE_SHIFT == NPUEMU_SDMA_NOTIFY;
	if (unlikely(s->traced.ns)) {
		s->traced.failed = got;
		npuacl_trace_end(s);
	}
	if (got) {
		const struct npuacl_task *t = npuacl_task_at(s, bad);
		char text[160];

		NPUACL_CHECK(npuacl_check_failed(s, t));
		npuacl_task_text(t, text, sizeof(text));
		npuacl_stream_error(s, t->id, npuacl_status_code(status, cause), "task %u, %s: %s; %s", t->id,
				    text, npuemu_status_str(status), cause);
		good = bad + 1;
	}
	npuacl_task_retire(s, good);
	if (words)
		npuacl_look();
}

static u64 desc_bytes(const struct npuemu_sdma *d)
{
	return d->height ? d->len * d->height : d->len;
}

static enum npuacl_outcome batch_begin(struct npuacl_stream *s)
{
	int got, err;
	struct npuacl_sdma *q = npuacl_sdma_try(s->dev, &err);
	struct npuacl_task *t = npuacl_task_at(s, 0), *next;
	/* one by one if it is to be known how long each took */
	const u32 most = unlikely(s->traced.ns) ? 1 : NPUACL_BATCH;
	u32 n = 0, last, bad = 0, status = 0;
	u64 have = npuacl_pending(s), bytes = 0;

	if (!q) {
		s->wants_queue = true;
		npuacl_watch(s);
		return NPUACL_WAIT;
	}
	if (unlikely(s->traced.ns))	/* not from when all queues were busy */
		s->traced.ns = npuemu_now_ns();
	for (;;) {
		bytes += desc_bytes(&t->sdma);
		next = ++n < most ? npuacl_task_of(s, n, have) : NULL;
		/* no more than a turn of the queue: else its engine is called for the rest */
		if (next && (next->kind != NPUACL_SDMA || bytes + desc_bytes(&next->sdma) > NPUEMU_TURN_BYTES))
			next = NULL;
		npuacl_sdma_post(q, &t->sdma, !next);
		if (!next)
			break;
		t = next;
	}
	last = npuacl_sdma_ring(q);
	got = npuacl_sdma_poll(q, last, n, npuemu_now_ns() + SLOW_NS + (s64)bytes, &bad, &status);
	if (got == -EAGAIN) {
		s->in_flight_n = n;
		s->in_flight_last = last;
		s->in_flight = q;
		npuacl_watch(s);
		return NPUACL_WAIT;
	}
	batch_ended(s, q, got, n, bad, status);
	return NPUACL_DONE;
}

static enum npuacl_outcome batch_again(struct npuacl_stream *s)
{
	struct npuacl_sdma *q = s->in_flight;
	u32 bad = 0, status = 0;
	int got;

	npuacl_unwatch(s);	/* who looks at it there may look at the tasks */
	got = npuacl_sdma_poll(q, s->in_flight_last, s->in_flight_n, npuemu_now_ns(), &bad, &status);
	if (got == -EAGAIN) {
		npuacl_watch(s);
		return NPUACL_WAIT;
	}
	s->in_flight = NULL;
	batch_ended(s, q, got, s->in_flight_n, bad, status);
	return NPUACL_DONE;
}

/* ---- Waits --------------------------------------------------------------------------------- */

static bool compare(u64 word, u32 cmp, u64 value)
{
	switch (cmp) {
	case NPUACL_CMP_NOR:
		return ~(word | value) != 0;
	case NPUACL_CMP_CYCLIC_GE:
		return (s64)(word - value) >= 0;
	case NPUACL_CMP_MASK:
		return (word & value) == value;
	default:
		return npuemu_compare(word, cmp, value);
	}
}

static bool timed_out(const struct npuacl_stream *s, const struct npuacl_task *t, s64 now)
{
	return t->timeout_ns && s->parked_since && now - s->parked_since >= t->timeout_ns;
}

bool npuacl_due(struct npuacl_stream *s, s64 now)
{
	const struct npuacl_task *t = npuacl_task_at(s, 0);
	u64 word;
	u32 i;

	if (s->in_flight)
		return npuemu_cq_ready(s->in_flight->cq);
	if (!t || READ_ONCE(s->aborting) || timed_out(s, t, now))
		return true;
	switch ((enum npuacl_kind)t->kind) {
	case NPUACL_SDMA:
		for (i = 0; i < NPUACL_SDMA_QUEUES; i++)
			if (!READ_ONCE(s->dev->sdma[i].busy))
				return true;
		return false;
	case NPUACL_EVENT_WAIT:
		return npuacl_event_reached(t->event.event, t->event.generation);
	case NPUACL_VALUE_WAIT:
	case NPUACL_NOTIFY_WAIT:
		return !word_read(t, &word) || compare(word, t->word.cmp, t->word.value);
	case NPUACL_HOST_FUNC:
		return smp_load_acquire(&s->func) == NPUACL_FUNC_DONE;
	case NPUACL_WORK:
		return t->work->ops->due(t->work);
	case NPUACL_EDGE_WAIT:
		return npuacl_edge_reached(t->node);
	default:
		return true;
	}
}

/* The one before it is over: not over again. */
void npuacl_waited(struct npuacl_stream *s)
{
	s->parked_since = 0;
	npuacl_unwatch(s);
}

enum npuacl_outcome npuacl_wait_begin(struct npuacl_stream *s, const struct npuacl_task *t, bool watch)
{
	if (!s->parked_since)
		s->parked_since = npuemu_now_ns();
	if (watch || t->timeout_ns)
		npuacl_watch(s);
	return NPUACL_WAIT;
}

bool npuacl_wait_expired(struct npuacl_stream *s, const struct npuacl_task *t, aclError code)
{
	char text[160];

	if (!timed_out(s, t, npuemu_now_ns()))
		return false;
	s->traced.failed = true;
	npuacl_task_text(t, text, sizeof(text));
	npuacl_stream_error(s, t->id, code, "task %u, %s: nothing came for %.3f s", t->id, text,
			    (double)t->timeout_ns / 1e9);
	return true;
}

/* A recorded task keeps its event for the next time. */
static void event_put(struct npuacl_stream *s, struct npuacl_task *t)
{
	if (!s->replaying)
		npuacl_event_put(t->event.event);
}

static enum npuacl_outcome event_wait(struct npuacl_stream *s, struct npuacl_task *t)
{
	struct npuacl_event *e = t->event.event;

	if (!npuacl_event_reached(e, t->event.generation)) {
		if (!npuacl_wait_expired(s, t, ACL_ERROR_RT_WAIT_TIMEOUT)) {
			npuacl_event_park(e, s);
			/* others' records wake nobody here */
			return npuacl_wait_begin(s, t, e->ipc);
		}
	} else if (npuacl_event_ipc_lost(e)) {
		npuacl_stream_error(s, t->id, ACL_ERROR_RT_IPC_ERROR, "task %u, wait of event %u: the process that made it has ended before its record",
				    t->id, e->id);
	}
	/*
	 * Once it has waited it may still be on the list, if it went there after the record, and
	 * would not get on the next event's; or a record is at it just now, and it could be gone.
	 */
	if (s->parked_since)
		npuacl_event_unpark(e, s);
	npuacl_waited(s);
	npuacl_event_waited(e);
	event_put(s, t);
	return NPUACL_DONE;
}

static enum npuacl_outcome word_wait(struct npuacl_stream *s, struct npuacl_task *t)
{
	bool there;
	char text[160];
	u64 value;

	if (unlikely(!word_read(t, &value))) {
		s->traced.failed = true;
		npuacl_stream_error(s, t->id, ACL_ERROR_RT_SYS_DMA, "task %u, wait for the word at %p: that is no device memory any more, but %s", t->id,
				    (void *)(uintptr_t)t->word.word,
				    npuacl_explain((u64)(uintptr_t)t->word.word, text, sizeof(text)));
		npuacl_waited(s);
		return NPUACL_DONE;
	}
	there = compare(value, t->word.cmp, t->word.value);
	/* a notify is taken by whoever sees it first */
	if (there && t->kind == NPUACL_NOTIFY_WAIT)
		there = __atomic_exchange_n(npuacl_word(t->word.word), 0, __ATOMIC_ACQ_REL) != 0;
	if (!there && !npuacl_wait_expired(s, t, t->kind == NPUACL_NOTIFY_WAIT ? ACL_ERROR_RT_FFTS_PLUS_TIMEOUT :
				    ACL_ERROR_RT_WAIT_TIMEOUT))
		return npuacl_wait_begin(s, t, true);
	if (there && t->word.clear)
		__atomic_store_n(npuacl_word(t->word.word), 0, __ATOMIC_RELEASE);
	npuacl_waited(s);
	return NPUACL_DONE;
}

static enum npuacl_outcome host_func(struct npuacl_stream *s, struct npuacl_task *t)
{
	switch (smp_load_acquire(&s->func)) {
	case NPUACL_FUNC_NONE:
		WRITE_ONCE(s->func, NPUACL_FUNC_GIVEN);
		npuacl_func_give(s, t);
		return npuacl_wait_begin(s, t, false);
	case NPUACL_FUNC_GIVEN:
		return npuacl_wait_begin(s, t, false);
	default:
		WRITE_ONCE(s->func, NPUACL_FUNC_NONE);
		npuacl_waited(s);
		return NPUACL_DONE;
	}
}

static void call_release(struct npuacl_stream *s, struct npuacl_task *t)
{
	if (t->own.release && !s->replaying)
		t->own.release(t->own.arg);
}

static void work_over(struct npuacl_stream *s, struct npuacl_task *t)
{
	WRITE_ONCE(s->works, NPUACL_NO_WORK);
	npuacl_waited(s);	/* who goes through the watch list is not at it any more */
	if (unlikely(s->traced.ns))
		s->traced.about = t->work->ops->about(t->work);
	if (!s->replaying)
		t->work->ops->release(t->work);
}

static enum npuacl_outcome work(struct npuacl_stream *s, struct npuacl_task *t)
{
	struct npuacl_bell *b = t->work->bell;

	if (b && s->sleepy) {
		WRITE_ONCE(s->bell_seen, smp_load_acquire(&b->word));
		WRITE_ONCE(b->sleeping, 1);
		smp_mb(); /* said, before the look at what there is to do: pairs with npuacl_ring() */
	}
	if (!t->work->ops->step(t->work, s, t->id)) {
		WRITE_ONCE(s->bell_of, s->sleepy && b == t->work->bell ? b : NULL);
		s->sleepy = false;
		WRITE_ONCE(s->works, t->work->spins ? NPUACL_WORK_SPINS : NPUACL_WORK_YIELDS);
		return NPUACL_WAIT;	/* npuacl_run() sees to the rest; how long is its own affair */
	}
	work_over(s, t);
	return NPUACL_DONE;
}

/* ---- One task after the other ---------------------------------------------------------------- */

static enum npuacl_outcome execute(struct npuacl_stream *s, struct npuacl_task *t)
{
	switch ((enum npuacl_kind)t->kind) {
	case NPUACL_EVENT_RECORD:
		npuacl_event_recorded(t->event.event, t->event.generation, ACL_SUCCESS);
		event_put(s, t);
		return NPUACL_DONE;
	case NPUACL_EVENT_RESET:
		npuacl_event_reset(t->event.event);
		event_put(s, t);
		return NPUACL_DONE;
	case NPUACL_EVENT_WAIT:
		return event_wait(s, t);
	case NPUACL_VALUE_WAIT:
	case NPUACL_NOTIFY_WAIT:
		return word_wait(s, t);
	case NPUACL_HOST_FUNC:
		return host_func(s, t);
	case NPUACL_CALL:
		if (t->own.fn)
			t->own.fn(s, t->id, t->own.arg);
		call_release(s, t);
		return NPUACL_DONE;
	case NPUACL_WORK:
		return work(s, t);
	default:
		return npuacl_replay_execute(s, t);
	}
}

/* Instead: an abort, or a stream that has stopped. */
static void drop(struct npuacl_stream *s, struct npuacl_task *t)
{
	switch ((enum npuacl_kind)t->kind) {
	case NPUACL_EVENT_RECORD:
		npuacl_event_recorded(t->event.event, t->event.generation,
				      READ_ONCE(s->aborting) ? ACL_ERROR_RT_STREAM_ABORT : s->ctx->stopped);
		event_put(s, t);
		break;
	case NPUACL_EVENT_WAIT:
		npuacl_event_unpark(t->event.event, s);
		event_put(s, t);
		break;
	case NPUACL_EVENT_RESET:
		event_put(s, t);
		break;
	case NPUACL_HOST_FUNC:
		if (READ_ONCE(s->func) != NPUACL_FUNC_NONE)
			npuacl_func_cancel(s);
		WRITE_ONCE(s->func, NPUACL_FUNC_NONE);
		break;
	case NPUACL_CALL:
		call_release(s, t);
		break;
	case NPUACL_WORK:
		t->work->ops->drop(t->work, s);
		work_over(s, t);
		break;
	default:
		if (t->kind >= NPUACL_FIRST_GRAPH)
			npuacl_replay_drop(s, t);
		break;
	}
	npuacl_waited(s);
}

enum npuacl_outcome npuacl_progress(struct npuacl_stream *s)
{
	enum npuacl_outcome out = NPUACL_DONE;
	struct npuacl_task *t;

	if (s->wants_queue) {
		s->wants_queue = false;
		npuacl_unwatch(s);
	}
	while (out == NPUACL_DONE) {
		if (s->in_flight) {
			out = batch_again(s);
			continue;
		}
		t = npuacl_task_at(s, 0);
		if (!t)
			break;
		if (unlikely(READ_ONCE(npuemu_trace_tasks)))
			npuacl_trace_begin(s, t);
		/* the tasks of a lane are dropped one by one, too: others may wait for them */
		if (has_stopped(s) && t->kind != NPUACL_REPLAY) {
			s->traced.ns = 0;
			drop(s, t);
		} else if (t->kind == NPUACL_SDMA) {
			out = batch_begin(s);
			continue;
		} else {
			out = execute(s, t);
		}
		if (out == NPUACL_DONE) {
			if (unlikely(s->traced.ns))
				npuacl_trace_end(s);
			npuacl_task_retire(s, 1);
		} else if (out == NPUACL_AGAIN) {
			s->traced.ns = 0;
			out = NPUACL_DONE;
		}
	}
	return out;
}
