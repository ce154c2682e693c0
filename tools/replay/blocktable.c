// SPDX-License-Identifier: MIT
/*
 * The block table: a hash from block id to slot, and a list of the used slots
 * from least to most recently used.  Everything lives in one array of slots;
 * links are slot numbers, so the table never allocates after it was made.
 */
#include <stdlib.h>

#include "blocktable.h"

struct slot {
	uint64_t id;
	uint64_t user;		/* the last request that needs the block */
	uint32_t chain;		/* next slot in the same hash bucket */
	uint32_t older;
	uint32_t newer;
};

struct replay_table {
	uint32_t slots;
	uint32_t used;		/* slots 0..used-1 hold something */
	uint32_t oldest;
	uint32_t newest;
	uint32_t mask;		/* buckets - 1 */
	uint32_t *bucket;
	struct slot slot[];
};

struct replay_table *replay_table_new(uint32_t slots)
{
	struct replay_table *t;
	uint64_t buckets = 1;
	uint64_t i;

	if (!slots || slots > 1u << 31)
		return NULL;
	while (buckets < slots)
		buckets *= 2;
	t = malloc(sizeof(*t) + slots * sizeof(t->slot[0]));
	if (!t)
		return NULL;
	t->bucket = malloc(buckets * sizeof(*t->bucket));
	if (!t->bucket) {
		free(t);
		return NULL;
	}
	for (i = 0; i < buckets; i++)
		t->bucket[i] = REPLAY_NO_SLOT;
	t->slots = slots;
	t->used = 0;
	t->oldest = REPLAY_NO_SLOT;
	t->newest = REPLAY_NO_SLOT;
	t->mask = (uint32_t)(buckets - 1);
	return t;
}

void replay_table_free(struct replay_table *t)
{
	if (!t)
		return;
	free(t->bucket);
	free(t);
}

static uint32_t *bucket_of(const struct replay_table *t, uint64_t id)
{
	/* ids of a trace are often dense: one multiplication spreads them */
	return &t->bucket[(id * 0x9e3779b97f4a7c15u >> 32) & t->mask];
}

uint32_t replay_table_find(const struct replay_table *t, uint64_t id)
{
	uint32_t s = *bucket_of(t, id);

	while (s != REPLAY_NO_SLOT && t->slot[s].id != id)
		s = t->slot[s].chain;
	return s;
}

static void unlink_slot(struct replay_table *t, uint32_t s)
{
	struct slot *p = &t->slot[s];

	if (p->older != REPLAY_NO_SLOT)
		t->slot[p->older].newer = p->newer;
	else
		t->oldest = p->newer;
	if (p->newer != REPLAY_NO_SLOT)
		t->slot[p->newer].older = p->older;
	else
		t->newest = p->older;
}

static void link_newest(struct replay_table *t, uint32_t s)
{
	struct slot *p = &t->slot[s];

	p->older = t->newest;
	p->newer = REPLAY_NO_SLOT;
	if (t->newest != REPLAY_NO_SLOT)
		t->slot[t->newest].newer = s;
	else
		t->oldest = s;
	t->newest = s;
}

static void touch(struct replay_table *t, uint32_t s)
{
	if (t->newest == s)
		return;
	unlink_slot(t, s);
	link_newest(t, s);
}

static void forget(struct replay_table *t, uint32_t s)
{
	uint32_t *p = bucket_of(t, t->slot[s].id);

	while (*p != s)
		p = &t->slot[*p].chain;
	*p = t->slot[s].chain;
	unlink_slot(t, s);
}

static uint32_t place(struct replay_table *t, uint64_t id)
{
	uint32_t *b, s;

	if (t->used < t->slots) {
		s = t->used++;
	} else {
		s = t->oldest;
		forget(t, s);
	}
	b = bucket_of(t, id);
	t->slot[s].id = id;
	t->slot[s].chain = *b;
	*b = s;
	link_newest(t, s);
	return s;
}

/* Would @n evictions take a slot that a request from @done on still needs? */
static bool victims_done(const struct replay_table *t, uint32_t n, uint64_t done)
{
	uint32_t s = t->oldest;

	for (; n && s != REPLAY_NO_SLOT; n--, s = t->slot[s].newer)
		if (t->slot[s].user >= done)
			return false;
	return true;
}

bool replay_table_request(struct replay_table *t, uint64_t request, uint64_t done,
			  const uint64_t *ids, uint32_t n, struct replay_ref *refs)
{
	uint32_t i, s, missing = 0, unused = t->slots - t->used;

	/*
	 * Pinning is moving to the newest end: the pool is at least as large as
	 * the request, so there are enough older slots for what is missing.
	 */
	for (i = 0; i < n; i++) {
		s = replay_table_find(t, ids[i]);
		if (s != REPLAY_NO_SLOT)
			touch(t, s);
		else
			missing++;
	}
	/* With nothing in flight no slot is in use, whatever @missing counts twice. */
	if (request > done && missing > unused &&
	    !victims_done(t, missing - unused, done))
		return false;

	for (i = 0; i < n; i++) {
		s = replay_table_find(t, ids[i]);
		refs[i].id = ids[i];
		refs[i].hit = s != REPLAY_NO_SLOT;
		if (refs[i].hit)
			touch(t, s);
		else
			s = place(t, ids[i]);
		t->slot[s].user = request;
		refs[i].slot = s;
	}
	return true;
}
