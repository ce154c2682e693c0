/* SPDX-License-Identifier: MIT */
/*
 * Which block lies in which slot of the decode device's pool, and which slot
 * is given up next (least recently used).
 */
#ifndef REPLAY_BLOCKTABLE_H
#define REPLAY_BLOCKTABLE_H

#include <stdbool.h>
#include <stdint.h>

#define REPLAY_NO_SLOT	UINT32_MAX

/* One block of a request: where it is, and whether it was there already. */
struct replay_ref {
	uint64_t id;
	uint32_t slot;
	bool hit;
};

struct replay_table;

/* NULL: out of memory.  @slots is 1..2^31. */
struct replay_table *replay_table_new(uint32_t slots);
void replay_table_free(struct replay_table *t);

/* The slot that holds @id, or REPLAY_NO_SLOT.  Changes nothing. */
uint32_t replay_table_find(const struct replay_table *t, uint64_t id);

/*
 * Give every block of request @request a slot.  First all blocks that are held
 * are pinned (a request never evicts what it needs itself), then, in order, a
 * held block is a hit and any other takes a free slot or the least recently
 * used one.
 *
 * Requests before @done are finished; slots of later ones are still being
 * filled or read.  If this request would evict such a slot, it must wait: false
 * is returned, and the same call succeeds once @done has moved on, with the
 * result it would have had at once.  So the outcome does not depend on how
 * many requests are in flight.
 *
 * @n must not exceed the number of slots; requests come in order, @done never
 * exceeds @request.
 */
bool replay_table_request(struct replay_table *t, uint64_t request, uint64_t done,
			  const uint64_t *ids, uint32_t n, struct replay_ref *refs);

#endif
