// SPDX-License-Identifier: MIT
/*
 * Device memory under guard (npuemu_guarded), for checkers above: what the program sees
 * of HBM is a second view of it, which can be closed while engines go on with theirs;
 * between buffers lies a page of nobody's; and freed ranges are not given to others
 * until many more were freed.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "user.h"

#define HELD		1024u	/* freed ranges that are kept back */

struct guard_held {
	u64 off, len;
};

/* The second view, closed; without a guard there is one for both. */
int guard_init(struct user_arena *a)
{
	void *p;

	a->shown = a->a.base;
	if (!npuemu_guarded)
		return 0;
	a->held = calloc(HELD, sizeof(*a->held));
	p = mmap(NULL, a->a.bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, a->fd, 0);
	if (!a->held || p == MAP_FAILED) {
		if (p != MAP_FAILED)
			munmap(p, a->a.bytes);
		return npuemu_fail(-ENOMEM, "no address space for a second view of device %u (NPUEMU_CHECK): %s",
				   a->a.device, strerror(errno));
	}
	madvise(p, a->a.bytes, MADV_DONTFORK);
	a->shown = p;
	return 0;
}

void guard_exit(struct user_arena *a)
{
	if (a->shown && a->shown != a->a.base)
		munmap(a->shown, a->a.bytes);
	free(a->held);
}

int guard_close(struct user_arena *a, u64 off, u64 room, bool closed)
{
	if (a->shown == a->a.base)
		return -EOPNOTSUPP;
	return mprotect(a->shown + off, room, closed ? PROT_NONE : PROT_READ | PROT_WRITE) ? -errno : 0;
}

/* The range that has been held back longest; false: there is none. */
static bool let_go(struct user_arena *a)
{
	struct guard_held *h = &a->held[a->held_first];

	if (!a->held_n)
		return false;
	a->held_first = (a->held_first + 1) % HELD;
	a->held_n--;
	a->held_bytes -= h->len;
	extents_give(&a->free, h->off, h->len);
	return true;
}

/* A range, and a page of nobody's behind it if there is room for that. */
u64 guard_take(struct user_arena *a, u64 room, u64 align, u64 *gap)
{
	u64 off;

	/* larger buffers lie close together, so that all of HBM can be had */
	*gap = a->held ? npuemu_guard_gap(room) : 0;
	do {
		off = extents_take(&a->free, room + *gap, align);
	} while (off == ~0ull && a->held && let_go(a));
	if (off != ~0ull || !*gap)
		return off;
	*gap = 0;
	return extents_take(&a->free, room, align);
}

void guard_give(struct user_arena *a, u64 off, u64 len)
{
	if (!a->held) {
		extents_give(&a->free, off, len);
		return;
	}
	while (a->held_n == HELD || (a->held_n && a->held_bytes + len > a->a.bytes / 4))
		let_go(a);
	a->held[(a->held_first + a->held_n++) % HELD] = (struct guard_held){ off, len };
	a->held_bytes += len;
}

/* ---- For lib/core/memory.c -------------------------------------------------------------- */

int user_buf_close(struct npuemu_buf *buf, bool closed)
{
	if (buf->imported)
		return -EOPNOTSUPP;
	return guard_close(buf->arena, buf->off, buf->room, closed);
}

void *user_alias(struct npuemu *ctx, u64 va, bool *device)
{
	struct user *u = user_of(ctx);
	u8 *p;

	pthread_mutex_lock(&u->lock);
	p = place_alias(u, va, device);
	pthread_mutex_unlock(&u->lock);
	return p;
}
