// SPDX-License-Identifier: MIT
/*
 * Operations on a thread are carried out: as work of its stream, which is asked again
 * until it is over (npuacl.h).  Items come one after the other; those in a row that one
 * engine does are one batch.  After one that fails the rest of its operation is left out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "transport.h"

#define SLOW_NS		2000000ll	/* in a step */

/* ---- Saying what it is ---------------------------------------------------------------------- */

void hcomm_item_text(const struct hcomm_item *it, char *buf, size_t size)
{
	static const char *const verb[] = {
		[HCOMM_COPY] = "copy of", [HCOMM_REDUCE] = "reduction of", [HCOMM_WRITE] = "write of",
		[HCOMM_WRITE_REDUCE] = "write-reduce of", [HCOMM_READ] = "read of", [HCOMM_READ_REDUCE] = "read-reduce of",
	};
	char to[96] = "a thread of this process";

	if (it->ch)
		hcomm_channel_text(it->ch, to, sizeof(to));
	switch ((enum hcomm_kind)it->kind) {
	case HCOMM_RECORD:
		snprintf(buf, size, "record of notify %u over %s", it->index, to);
		break;
	case HCOMM_WAIT:
		snprintf(buf, size, "wait for notify %u of %s", it->index, to);
		break;
	case HCOMM_DRAIN:
		snprintf(buf, size, "drain of %s", to);
		break;
	default:
		snprintf(buf, size, "%s %" PRIu64 " bytes from %#" PRIx64 " to %#" PRIx64 "%s%s", verb[it->kind], it->len,
			 it->src, it->dst, it->ch ? " over " : "", it->ch ? to : "");
		break;
	}
}

static void text(struct npuacl_work *w, char *buf, size_t size)
{
	struct hcomm_op *op = container_of(w, struct hcomm_op, work);
	u32 at = READ_ONCE(op->at);

	hcomm_item_text(&op->item[at < op->n ? at : 0], buf, size);
}

/* ---- Its end ----------------------------------------------------------------------------------- */

/* As new: a model's comes again. */
static void rewind_op(struct hcomm_op *op)
{
	WRITE_ONCE(op->at, 0);
	op->next_at = 0;
	op->piece = 0;
	op->waits = false;
	op->since = 0;
	WRITE_ONCE(op->look_at, 0);
}

static void failed(struct hcomm_op *op, struct npuacl_stream *s, u32 task, HcclResult code, const char *why)
{
	char what[256];

	hcomm_item_text(&op->item[op->at], what, sizeof(what));
	npuacl_stream_error(s, task, code == HCCL_E_TIMEOUT ? ACL_ERROR_RT_FFTS_PLUS_TIMEOUT : ACL_ERROR_RT_SUSPECT_REMOTE_ERROR,
			    "task %u, %s: %s", task, what, why);
	WRITE_ONCE(op->at, op->n);
}

/* ---- Waits --------------------------------------------------------------------------------------- */

bool hcomm_take(volatile u64 *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) && __atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL);
}

/* False: not yet. */
static bool wait_for(struct hcomm_op *op, struct npuacl_stream *s, u32 task)
{
	const struct hcomm_item *it = &op->item[op->at];
	char why[96];
	s64 now, look;

	if (hcomm_take(it->word)) {
		op->since = 0;
		WRITE_ONCE(op->at, op->at + 1);
		return true;
	}
	now = npuemu_now_ns();
	if (!op->since)
		op->since = now;
	if (it->timeout_ns && now - op->since >= it->timeout_ns) {
		snprintf(why, sizeof(why), "nothing came for %.3f s", (double)it->timeout_ns / 1e9);
		failed(op, s, task, HCCL_E_TIMEOUT, why);
		return true;
	}
	if (it->ch && !hcomm_channel_whole(it->ch)) {
		/* its last words may have come just before */
		if (hcomm_take(it->word)) {
			op->since = 0;
			WRITE_ONCE(op->at, op->at + 1);
			return true;
		}
		failed(op, s, task, (HcclResult)it->ch->broken, it->ch->why);
		return true;
	}
	look = now + HCOMM_LOOK_NS;
	if (it->timeout_ns && look > op->since + it->timeout_ns)
		look = op->since + it->timeout_ns;
	WRITE_ONCE(op->look_at, look);
	return false;
}

/* ---- Over a queue --------------------------------------------------------------------------------- */

static bool is_queued(const struct hcomm_item *it, const struct hcomm_channel *ch)
{
	return it->ch == ch && ch->path == HCOMM_QUEUE && it->kind != HCOMM_WAIT && it->kind != HCOMM_DRAIN;
}

/* Those in a row.  False: the queue has no more room just now. */
static bool post(struct hcomm_op *op, struct hcomm_channel *ch, bool *posted)
{
	while (op->next_at < op->n && is_queued(&op->item[op->next_at], ch)) {
		u64 before = op->piece;

		if (!hcomm_queue_post(ch, &op->item[op->next_at], &op->piece)) {
			*posted |= op->piece != before;
			return false;
		}
		*posted = true;
		if (!op->item[op->next_at].nbi)
			op->waits = true;
		op->piece = 0;
		op->next_at++;
	}
	return true;
}

/* ch->lock held.  True: what was in a row is over, or posted if nobody waits for it. */
static bool over_queue(struct hcomm_op *op, struct hcomm_channel *ch)
{
	s64 deadline = npuemu_now_ns() + SLOW_NS;
	bool posted = false, all;

	if (op->next_at < op->at)
		op->next_at = op->at;
	do {
		all = post(op, ch, &posted);
		if (posted)
			hcomm_queue_ring(ch);
		posted = false;
		op->upto = hcomm_queue_head(ch);
		if (all)
			break;
		/* some room, then the next */
		if (!hcomm_queue_over(ch, ch->done + 1, deadline))
			return false;
	} while (!READ_ONCE(ch->broken));
	return !op->waits || hcomm_queue_over(ch, op->upto, deadline);
}

/* The other end, and the memory: what the engine sees by itself it is left to. */
static bool may_go(struct hcomm_op *op, struct npuacl_stream *s, u32 task)
{
	struct hcomm_channel *ch = op->item[op->at].ch;

	if (hcomm_channel_whole(ch))
		return true;
	failed(op, s, task, (HcclResult)ch->broken, ch->why);
	return false;
}

static bool queue(struct hcomm_op *op, struct npuacl_stream *s, u32 task)
{
	struct hcomm_channel *ch = op->item[op->at].ch;
	bool over;

	if (op->next_at <= op->at && !op->piece && !may_go(op, s, task))
		return true;
	pthread_mutex_lock(&ch->lock);
	if (op->next_at > op->at && op->waits && (op->next_at == op->n || !is_queued(&op->item[op->next_at], ch)))
		over = hcomm_queue_over(ch, op->upto, npuemu_now_ns() + SLOW_NS);
	else
		over = over_queue(op, ch);
	pthread_mutex_unlock(&ch->lock);
	if (!over)
		return false;
	if (READ_ONCE(ch->broken)) {
		failed(op, s, task, (HcclResult)ch->broken, ch->why);
		return true;
	}
	WRITE_ONCE(op->at, op->next_at);
	op->waits = false;
	op->piece = 0;
	return true;
}

/* What is under way of the channel when it is come to. */
static bool drain(struct hcomm_op *op, struct npuacl_stream *s, u32 task)
{
	struct hcomm_channel *ch = op->item[op->at].ch;
	bool over;

	if (ch->path == HCOMM_MAPPED) {
		WRITE_ONCE(op->at, op->at + 1);
		return true;
	}
	pthread_mutex_lock(&ch->lock);
	if (!op->waits)
		op->upto = hcomm_queue_head(ch);
	op->waits = true;
	over = hcomm_queue_over(ch, op->upto, npuemu_now_ns() + SLOW_NS);
	pthread_mutex_unlock(&ch->lock);
	if (!over)
		return false;
	op->waits = false;
	if (READ_ONCE(ch->broken))
		failed(op, s, task, (HcclResult)ch->broken, ch->why);
	else
		WRITE_ONCE(op->at, op->at + 1);
	return true;
}

/* ---- As work of a stream ----------------------------------------------------------------------------- */

static bool mapped(struct hcomm_op *op, struct npuacl_stream *s, u32 task)
{
	HcclResult bad;
	char why[256];
	u32 n;

	n = hcomm_mapped_run(s->dev, &op->item[op->at], op->n - op->at, &bad, why, sizeof(why));
	WRITE_ONCE(op->at, op->at + n);
	if (bad)
		failed(op, s, task, bad, why);
	return true;
}

static bool step(struct npuacl_work *w, struct npuacl_stream *s, u32 task)
{
	struct hcomm_op *op = container_of(w, struct hcomm_op, work);
	bool on = true;

	while (on && op->at < op->n) {
		const struct hcomm_item *it = &op->item[op->at];

		if (it->kind == HCOMM_WAIT)
			on = wait_for(op, s, task);
		else if (it->kind == HCOMM_DRAIN)
			on = drain(op, s, task);
		else if (it->ch && it->ch->path == HCOMM_QUEUE)
			on = queue(op, s, task);
		else
			on = mapped(op, s, task);
	}
	if (!on)
		return false;
	rewind_op(op);
	return true;
}

/* Maybe in the midst of a step, by another thread: what it says then is no matter. */
static bool due(struct npuacl_work *w)
{
	struct hcomm_op *op = container_of(w, struct hcomm_op, work);
	u32 at = READ_ONCE(op->at);

	if (at >= op->n || op->item[at].kind != HCOMM_WAIT)
		return true;
	return __atomic_load_n(op->item[at].word, __ATOMIC_RELAXED) || npuemu_now_ns() >= READ_ONCE(op->look_at);
}

static void drop(struct npuacl_work *w, struct npuacl_stream *s)
{
	struct hcomm_op *op = container_of(w, struct hcomm_op, work);

	(void)s;
	rewind_op(op);
}

void hcomm_op_free(struct hcomm_op *op)
{
	hcomm_items_put(op->item, op->n);
	free(op->item);
	if (op->th)
		hcomm_thread_put(op->th);
	free(op);
}

static void release(struct npuacl_work *w)
{
	hcomm_op_free(container_of(w, struct hcomm_op, work));
}

const struct npuacl_work_ops hcomm_work = {
	.step = step, .due = due, .drop = drop, .release = release, .text = text,
};
