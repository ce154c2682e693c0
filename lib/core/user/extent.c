// SPDX-License-Identifier: MIT
/* Free ranges of an arena or of the ring area: sorted, coalesced, first fit. */
#include <stdlib.h>
#include "user.h"

static bool grow(struct extents *x)
{
	struct extent *e;
	u32 room = x->room ? x->room * 2 : 16;

	if (x->n < x->room)
		return true;
	e = realloc(x->e, room * sizeof(*e));
	if (!e)
		return false;
	x->e = e;
	x->room = room;
	return true;
}

int extents_init(struct extents *x, u64 len)
{
	memset(x, 0, sizeof(*x));
	if (!grow(x))
		return -ENOMEM;
	x->e[x->n++] = (struct extent){ 0, len };
	return 0;
}

void extents_destroy(struct extents *x)
{
	free(x->e);
	memset(x, 0, sizeof(*x));
}

static void insert(struct extents *x, u32 i, u64 off, u64 len)
{
	memmove(&x->e[i + 1], &x->e[i], (x->n - i) * sizeof(x->e[0]));
	x->e[i] = (struct extent){ off, len };
	x->n++;
}

static void delete(struct extents *x, u32 i)
{
	x->n--;
	memmove(&x->e[i], &x->e[i + 1], (x->n - i) * sizeof(x->e[0]));
}

u64 extents_take(struct extents *x, u64 len, u64 align)
{
	u32 i;

	for (i = 0; i < x->n; i++) {
		struct extent *e = &x->e[i];
		u64 at = (e->off + align - 1) & ~(align - 1);
		u64 skip = at - e->off;

		if (e->len < len || e->len - len < skip)
			continue;
		/* a hole on both sides needs one entry more, and so may giving back */
		if (!grow(x))
			return ~0ull;
		e = &x->e[i];
		if (skip && e->len > skip + len)
			insert(x, i + 1, at + len, e->len - skip - len);
		else if (!skip && e->len > len)
			insert(x, i + 1, at + len, e->len - len);
		if (skip)
			x->e[i].len = skip;
		else
			delete(x, i);
		return at;
	}
	return ~0ull;
}

void extents_give(struct extents *x, u64 off, u64 len)
{
	u32 i = 0;

	while (i < x->n && x->e[i].off < off)
		i++;
	if (i > 0 && x->e[i - 1].off + x->e[i - 1].len == off) {
		i--;
		x->e[i].len += len;
	} else {
		if (!grow(x))
			return;	/* lost to this process, not to the board */
		insert(x, i, off, len);
	}
	if (i + 1 < x->n && x->e[i].off + x->e[i].len == x->e[i + 1].off) {
		x->e[i].len += x->e[i + 1].len;
		delete(x, i + 1);
	}
}
