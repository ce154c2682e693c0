// SPDX-License-Identifier: MIT
/*
 * The SDMA queues of a device: a few, which its streams and the synchronous
 * calls of this process share, one batch at a time.  A batch is a run of
 * descriptors in order: one doorbell, one completion.
 */
#include "npuacl.h"

static int make(struct npuacl_device *dev, struct npuacl_sdma *s)
{
	struct npuemu_queue_attr attr = {
		.size = sizeof(attr), .device = dev->phys, .type = NPUEMU_QUEUE_SDMA,
		.depth = NPUACL_SDMA_DEPTH,
	};
	int err = npuemu_queue_create(npuacl.board, &attr, &s->q);

	if (!err)
		s->cq = npuemu_queue_cq(s->q);
	return err;
}

static bool grab(struct npuacl_sdma *s)
{
	return !READ_ONCE(s->busy) && npuemu_cas(&s->busy, 0, 1);
}

/* The one this thread had last is likely to be free, and warm. */
static __thread u32 favourite;

struct npuacl_sdma *npuacl_sdma_try(struct npuacl_device *dev, int *err)
{
	u32 i, k;

	*err = 0;
	for (i = 0; i < NPUACL_SDMA_QUEUES; i++) {
		struct npuacl_sdma *s;

		k = (favourite + i) % NPUACL_SDMA_QUEUES;
		s = &dev->sdma[k];
		if (!grab(s))
			continue;
		if (!s->q)
			*err = make(dev, s);
		if (s->q) {
			favourite = k;
			*err = 0;
			return s;
		}
		smp_store_release(&s->busy, 0);
	}
	return NULL;
}

struct npuacl_sdma *npuacl_sdma_take(struct npuacl_device *dev, aclError *ret)
{
	struct npuacl_sdma *s;
	int err;

	*ret = ACL_SUCCESS;
	s = npuacl_sdma_try(dev, &err);
	if (s)
		return s;
	pthread_mutex_lock(&dev->sdma_lock);
	WRITE_ONCE(dev->sdma_wanted, dev->sdma_wanted + 1);
	smp_mb(); /* wanted, before the look: pairs with npuacl_sdma_put() */
	for (;;) {
		s = npuacl_sdma_try(dev, &err);
		if (s || err)
			break;
		pthread_cond_wait(&dev->sdma_free, &dev->sdma_lock);
	}
	WRITE_ONCE(dev->sdma_wanted, dev->sdma_wanted - 1);
	pthread_mutex_unlock(&dev->sdma_lock);
	if (!s)
		*ret = npuacl_fail_core(err, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "no SDMA queue");
	return s;
}

void npuacl_sdma_put(struct npuacl_device *dev, struct npuacl_sdma *s)
{
	smp_store_release(&s->busy, 0);
	smp_mb(); /* free, before the look for who wants one */
	if (!READ_ONCE(dev->sdma_wanted))
		return;
	pthread_mutex_lock(&dev->sdma_lock);
	pthread_cond_signal(&dev->sdma_free);
	pthread_mutex_unlock(&dev->sdma_lock);
}

void npuacl_sdma_destroy(struct npuacl_device *dev)
{
	u32 i;

	for (i = 0; i < NPUACL_SDMA_QUEUES; i++) {
		struct npuacl_sdma *s = &dev->sdma[i];

		if (!s->q)
			continue;
		npuemu_queue_destroy(s->q);
		s->q = NULL;
		s->cq = NULL;
	}
}

/* ---- A batch -------------------------------------------------------------------- */

void npuacl_sdma_post(struct npuacl_sdma *s, const struct npuemu_sdma *d, bool last)
{
	struct npuemu_sdma copy = *d;

	/* strong, each after the one before: a stream promises that */
	copy.dw0 = NPUEMU_STRONG | (last ? NPUEMU_SQE_CQE : 0);
	/* a batch fits: it is posted to an empty queue */
	npuemu_post_raw(s->q, &copy, 1);
}

u32 npuacl_sdma_ring(struct npuacl_sdma *s)
{
	u32 last = npuemu_last_wqe(s->q);

	npuemu_doorbell_through(s->q);
	return last;
}

/*
 * An error leaves the queue in ERROR, and what came after it flushed.  When the
 * last of that is out of the CQ the queue is made as new for the next batch.
 */
static void recover(struct npuacl_sdma *s)
{
	struct npuemu_queue_stat stat = { .size = sizeof(stat) };
	s64 deadline = npuemu_deadline_ms(10000);
	struct npuemu_wc wc;
	int got;

	s->cause[0] = 0;
	if (!npuemu_queue_query(s->q, &stat))
		memcpy(s->cause, stat.cause, sizeof(s->cause));
	do {
		got = npuemu_poll(s->cq, &wc, 1);
		if (got == 1 && wc.flags & NPUEMU_WC_FLUSH_DONE)
			break;
		if (!got)
			got = npuemu_wait(s->cq, deadline);
	} while (got >= 0);
	npuemu_queue_modify(s->q, NPUEMU_QS_RESET);
	npuemu_queue_modify(s->q, NPUEMU_QS_READY);
}

/* One look, which helps: 0, 1 with what failed, or -EAGAIN. */
static int look(struct npuacl_sdma *s, u32 last, u32 n, u32 *bad, u32 *status)
{
	struct npuemu_wc wc;
	int got;

	while ((got = npuemu_poll(s->cq, &wc, 1)) == 1) {
		if (wc.status == NPUEMU_ST_SUCCESS && wc.wqe == last)
			return 0;
		if (wc.status == NPUEMU_ST_SUCCESS || wc.flags & NPUEMU_WC_FLUSH_DONE)
			continue;
		*bad = n - 1 - (last - wc.wqe);
		*status = wc.status;
		recover(s);
		return 1;
	}
	if (!got)
		return -EAGAIN;
	*bad = 0;
	*status = NPUEMU_ST_WR_FLUSH_ERR;
	return 1;
}

int npuacl_sdma_poll(struct npuacl_sdma *s, u32 last, u32 n, s64 deadline, u32 *bad, u32 *status)
{
	int got;

	while ((got = look(s, last, n, bad, status)) == -EAGAIN) {
		got = npuemu_wait(s->cq, deadline);
		if (got == -ETIMEDOUT)
			return -EAGAIN;
		if (got) {
			*bad = 0;
			*status = NPUEMU_ST_WR_FLUSH_ERR;
			return 1;
		}
	}
	return got;
}

/*
 * A copy that is long enough for the engine to wake up: half of it on a second queue, if
 * one is free.  The engine works on the queue that this thread is not in.
 */
#define HALVE_FROM	(4ull << 20)
#define IDLE_NS		2000	/* a look that helps takes longer */
#define IDLE_LOOKS	200u	/* then sleep: the engine may not have got a processor */

static int by_halves(struct npuacl_sdma *s, struct npuacl_sdma *second, const struct npuemu_sdma *d,
		     char *cause, u32 *status)
{
	struct npuacl_sdma *of[2] = { s, second };
	int got[2] = { -EAGAIN, -EAGAIN };
	u64 half = d->len / 2 & ~4095ull;
	u32 last[2], bad, st, k, idle = 0;
	s64 before = 0, now;

	for (k = 0; k < 2; k++) {
		struct npuemu_sdma part = *d;

		part.dst += k * half;
		part.src += k * half;
		part.len = k ? d->len - half : half;
		npuacl_sdma_post(of[k], &part, true);
		last[k] = npuemu_last_wqe(of[k]->q);
	}
	npuemu_doorbell(second->q);	/* begun here, and left to the engine */
	npuacl_sdma_ring(s);
	while (got[0] == -EAGAIN || got[1] == -EAGAIN) {
		now = npuemu_now_ns();
		idle = now - before < IDLE_NS ? idle + 1 : 0;
		before = now;
		for (k = 0; k < 2; k++) {
			if (got[k] != -EAGAIN)
				continue;
			if (idle < IDLE_LOOKS)
				got[k] = look(of[k], last[k], 1, &bad, &st);
			else
				got[k] = npuacl_sdma_poll(of[k], last[k], 1, NPUEMU_FOREVER, &bad, &st);
			if (got[k] == 1) {
				*status = st;
				memcpy(cause, of[k]->cause, sizeof(of[k]->cause));
			}
		}
	}
	return got[0] | got[1];
}

/* In batches, on one queue. */
static int by_one(struct npuacl_sdma *s, const struct npuemu_sdma *d, u32 n, char *cause, u32 *bad,
		  u32 *status)
{
	u32 at, i, last;
	int got = 0;

	for (at = 0; at < n && !got; at += i) {
		for (i = 0; i < NPUACL_BATCH && at + i < n; i++)
			npuacl_sdma_post(s, &d[at + i], i + 1 == NPUACL_BATCH || at + i + 1 == n);
		last = npuacl_sdma_ring(s);
		got = npuacl_sdma_poll(s, last, i, NPUEMU_FOREVER, bad, status);
		if (got)
			*bad += at;
	}
	if (got)
		memcpy(cause, s->cause, sizeof(s->cause));
	return got;
}

aclError npuacl_sdma_now(struct npuacl_device *dev, const struct npuemu_sdma *d, u32 n, u32 *bad)
{
	struct npuacl_sdma *s, *second = NULL;
	struct npuacl_task t;
	char cause[sizeof(s->cause)], text[160];
	u32 status = NPUEMU_ST_WR_FLUSH_ERR;
	aclError ret;
	int got, err;

	s = npuacl_sdma_take(dev, &ret);
	if (!s)
		return ret;
	if (n == 1 && d->len >= HALVE_FROM && d->dw1 >> NPUEMU_SQE_OPCODE_SHIFT == NPUEMU_SDMA_COPY)
		second = npuacl_sdma_try(dev, &err);
	*bad = 0;
	got = second ? by_halves(s, second, d, cause, &status) : by_one(s, d, n, cause, bad, &status);
	if (second)
		npuacl_sdma_put(dev, second);
	npuacl_sdma_put(dev, s);
	if (!got)
		return ACL_SUCCESS;
	t = (struct npuacl_task){ .kind = NPUACL_SDMA, .sdma = d[*bad] };
	npuacl_task_text(&t, text, sizeof(text));
	ret = npuacl_status_code(status, cause);
	return npuacl_fail(ret, "%s on device %u failed: %s; %s", text, dev->id,
			   npuemu_status_str(status), cause);
}
