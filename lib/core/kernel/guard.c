// SPDX-License-Identifier: MIT
/*
 * Device memory under guard (npuemu_guarded), for checkers above, as the driver's buffers
 * allow it: each is mapped a second time, for this library; what the program sees can be
 * closed, as engines need no mapping at all; behind it lies a page of nobody's; and the
 * addresses of freed buffers stay without access until many more were freed.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "kernel.h"

#define HELD		1024u	/* freed ranges that are kept back */

/* Before its place is added. */
void npuemu_k_guard_new(struct npuemu_buf *buf, int fd)
{
	void *p;

	buf->own_view = NULL;
	if (!npuemu_guarded || buf->imported)
		return;
	p = mmap(NULL, buf->room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)buf->off);
	if (p == MAP_FAILED)
		npuemu_log(NPUEMU_LOG_WARN, "no second view of the buffer at %p, which stays open to the program (NPUEMU_CHECK): %s",
			   (void *)buf->ptr, strerror(errno));
	else
		buf->own_view = p;
}

/* k->lock held */
static void let_go(struct npuemu_kernel *k)
{
	u64 va = k->held[k->held_first];
	u32 at = npuemu_k_place_search(k, va);

	k->held_first = (k->held_first + 1) % HELD;
	k->held_n--;
	munmap((void *)(uintptr_t)va, k->places[at].room + k->places[at].gap);
	npuemu_k_place_delete(k, at);
}

/* Its addresses, which no queue knows any more, stay taken; false: they cannot. */
bool npuemu_k_guard_hold(struct npuemu_buf *buf)
{
	struct npuemu_kernel *k = npuemu_kernel_of(buf->ctx);
	u64 va = (u64)(uintptr_t)buf->ptr;
	bool held = false, known;
	u32 at;

	if (!buf->own_view)
		return false;
	pthread_mutex_lock(&k->lock);
	at = npuemu_k_place_search(k, va);
	known = at < k->nplaces && k->places[at].va == va;
	/* npuemu_k_alias() is not to name what goes next */
	if (known)
		k->places[at].own_view = NULL;
	munmap(buf->own_view, buf->room);
	buf->own_view = NULL;
	if (!k->held)
		k->held = calloc(HELD, sizeof(*k->held));
	if (known && k->held && npuemu_reserve(buf->ptr, buf->room, MAP_FIXED) != MAP_FAILED) {
		k->places[at].bytes = 0;
		if (k->held_n == HELD)
			let_go(k);
		k->held[(k->held_first + k->held_n++) % HELD] = va;
		held = true;
	}
	pthread_mutex_unlock(&k->lock);
	return held;
}

int npuemu_k_buf_close(struct npuemu_buf *buf, bool closed)
{
	if (!buf->own_view)
		return -EOPNOTSUPP;
	return mprotect(buf->ptr, buf->room, closed ? PROT_NONE : PROT_READ | PROT_WRITE) ? -errno : 0;
}

void *npuemu_k_alias(struct npuemu *ctx, u64 va, bool *device)
{
	struct npuemu_kernel *k = npuemu_kernel_of(ctx);
	void *p = (void *)(uintptr_t)va;
	u32 at;

	pthread_mutex_lock(&k->lock);
	at = npuemu_k_place_search(k, va);
	*device = at < k->nplaces && va >= k->places[at].va;
	if (*device && k->places[at].own_view && va - k->places[at].va < k->places[at].room)
		p = k->places[at].own_view + (va - k->places[at].va);
	pthread_mutex_unlock(&k->lock);
	return p;
}
