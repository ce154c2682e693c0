// SPDX-License-Identifier: MIT
/*
 * A stream's queue of tasks: chunks in a chain, so that it is as long as it has
 * to be.  Who submits holds the stream's lock; the runner, of whom there is one,
 * takes from the other end without it.
 */
#include <stdlib.h>
#include "check.h"
#include "graph.h"

static struct npuacl_chunk *chunk_get(struct npuacl_stream *s)
{
	struct npuacl_chunk *c = __atomic_exchange_n(&s->spare, NULL, __ATOMIC_ACQUIRE);

	if (!c)
		c = malloc(sizeof(*c));
	if (c)
		c->next = NULL;
	return c;
}

static void chunk_put(struct npuacl_stream *s, struct npuacl_chunk *c)
{
	free(__atomic_exchange_n(&s->spare, c, __ATOMIC_RELEASE));
}

/* s->lock held */
static struct npuacl_task *slot(struct npuacl_stream *s)
{
	struct npuacl_chunk *c;

	if (s->tail && s->tail_at < NPUACL_CHUNK_TASKS)
		return &s->tail->task[s->tail_at++];
	c = chunk_get(s);
	if (!c)
		return NULL;
	/* the runner follows once it has seen @issued move */
	if (s->tail)
		smp_store_release(&s->tail->next, c);
	else
		s->head = c;
	s->tail = c;
	s->tail_at = 1;
	return &c->task[0];
}

aclError npuacl_submit(struct npuacl_stream *s, struct npuacl_task *t, u64 *seq)
{
	if (unlikely(smp_load_acquire(&s->lane)))
		return npuacl_record(s, t, seq);
	return npuacl_append(s, t, seq);
}

aclError npuacl_append(struct npuacl_stream *s, struct npuacl_task *t, u64 *seq)
{
	struct npuacl_task *at;
	u64 n;

	pthread_mutex_lock(&s->lock);
	at = slot(s);
	if (!at) {
		pthread_mutex_unlock(&s->lock);
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "out of host memory");
	}
	n = s->issued + 1;
	t->id = (u32)n;
	*at = *t;
	NPUACL_CHECK(npuacl_check_submitted(s, t, n));
	smp_store_release(&s->issued, n);
	pthread_mutex_unlock(&s->lock);
	npuacl_self.last_task = (u32)n;
	if (seq)
		*seq = n;
	npuacl_wake_idle(s);
	return ACL_SUCCESS;
}

struct npuacl_task *npuacl_task_of(struct npuacl_stream *s, u32 n, u64 have)
{
	struct npuacl_chunk *c = s->head;
	u32 at = s->head_at + n;

	if (unlikely(s->replaying))
		return npuacl_lane_task(s->plays, s->replay_at + n);
	if (n >= have)
		return NULL;
	while (at >= NPUACL_CHUNK_TASKS) {
		at -= NPUACL_CHUNK_TASKS;
		c = c->next;
	}
	return &c->task[at];
}

struct npuacl_task *npuacl_task_at(struct npuacl_stream *s, u32 n)
{
	return npuacl_task_of(s, n, npuacl_pending(s));
}

/* A chunk is given back once there is a next one: the last is still written to. */
void npuacl_task_retire(struct npuacl_stream *s, u32 n)
{
	struct npuacl_chunk *c;

	if (unlikely(s->replaying)) {
		npuacl_replay_retire(s, n);
		return;
	}
	s->head_at += n;
	while (s->head_at >= NPUACL_CHUNK_TASKS) {
		c = s->head;
		if (!smp_load_acquire(&c->next))
			break;
		s->head = c->next;
		s->head_at -= NPUACL_CHUNK_TASKS;
		chunk_put(s, c);
	}
	smp_store_release(&s->done, s->done + n);
	smp_mb(); /* @done, before the look for sleepers: pairs with sleep_for() */
	if (READ_ONCE(s->sleepers) && s->done >= READ_ONCE(s->wanted)) {
		npuemu_fetch_add(&s->bell, 1);
		npuemu_futex_wake(&s->bell, INT32_MAX);
	}
}

void npuacl_tasks_free(struct npuacl_stream *s)
{
	struct npuacl_chunk *c = s->head, *next;

	for (; c; c = next) {
		next = c->next;
		free(c);
	}
	free(s->spare);
	s->head = NULL;
	s->tail = NULL;
	s->spare = NULL;
}
