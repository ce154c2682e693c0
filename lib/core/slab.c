// SPDX-License-Identifier: MIT
/* Handles: typed ranges of objects, never unmapped, so any pointer can be checked. */
#include <sys/mman.h>
#include "core.h"

struct npuemu_slab npuemu_bufs = NPUEMU_SLAB_INIT("buffer", struct npuemu_buf, 65536);
struct npuemu_slab npuemu_mems = NPUEMU_SLAB_INIT("registered memory", struct npuemu_mem, 65536);
struct npuemu_slab npuemu_segs = NPUEMU_SLAB_INIT("segment", struct npuemu_seg, 16384);
struct npuemu_slab npuemu_cqs = NPUEMU_SLAB_INIT("completion queue", struct npuemu_cq, 16384);
struct npuemu_slab npuemu_rqs = NPUEMU_SLAB_INIT("receive queue", struct npuemu_rq, 16384);
struct npuemu_slab npuemu_queues = NPUEMU_SLAB_INIT("queue", struct npuemu_queue, 16384);

static void *reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

#define STALE	64u	/* so many others come before a freed one's place is given away again */

static void *take(struct npuemu_slab *s)
{
	u32 i, k, live, among;

	if (!s->base) {
		u8 *base = reserve(s->size * s->max);
		u32 *state = reserve(sizeof(*state) * s->max);

		if (!base || !state)
			return NULL;
		WRITE_ONCE(s->state, state);
		smp_store_release(&s->base, base);
	}
	live = READ_ONCE(s->live) + 1;
	if (live > s->most)
		s->most = live;
	/* in turn, and no more than that many: memory that was once used stays with the process */
	among = s->most + STALE < s->max ? s->most + STALE : s->max;
	for (i = 0; i < among; i++) {
		k = (s->next + i) % among;
		if (READ_ONCE(s->state[k]))
			continue;
		WRITE_ONCE(s->state[k], 1);
		npuemu_fetch_add(&s->live, 1);
		s->next = k + 1;
		if (k >= s->used)
			WRITE_ONCE(s->used, k + 1);
		return s->base + s->size * k;
	}
	return NULL;
}

void *npuemu_slab_alloc(struct npuemu_slab *s)
{
	void *p;

	pthread_mutex_lock(&s->lock);
	p = take(s);
	pthread_mutex_unlock(&s->lock);
	if (p)
		memset(p, 0, s->size);
	return p;
}

static u32 *state_of(struct npuemu_slab *s, void *obj)
{
	return &s->state[(size_t)((u8 *)obj - s->base) / s->size];
}

void npuemu_slab_publish(struct npuemu_slab *s, void *obj)
{
	smp_store_release(state_of(s, obj), 2);
}

bool npuemu_slab_retire(struct npuemu_slab *s, void *obj)
{
	return npuemu_slab_alive(s, obj) && npuemu_cas(state_of(s, obj), 2, 1);
}

void npuemu_slab_free(struct npuemu_slab *s, void *obj)
{
	smp_store_release(state_of(s, obj), 0);
	npuemu_fetch_add(&s->live, -1u);
}

void npuemu_slab_forget(struct npuemu_slab *s, const struct npuemu *ctx)
{
	u32 i;

	for (i = 0; i < READ_ONCE(s->used); i++) {
		u8 *obj = s->base + s->size * i;

		if (npuemu_slab_alive(s, obj) &&
		    *(const struct npuemu **)(void *)(obj + s->ctx_at) == ctx &&
		    npuemu_slab_retire(s, obj))
			npuemu_slab_free(s, obj);
	}
}

void npuemu_slab_fork(struct npuemu_slab *s)
{
	s->base = NULL;
	s->used = 0;
	s->live = 0;
	s->most = 0;
	s->next = 0;
	pthread_mutex_init(&s->lock, NULL);
}
