// SPDX-License-Identifier: MIT
/*
 * The fake host's pageable memory, which the engine sees through two buffers.  The
 * first time it asks for bytes it is told to wait, whether they are to be read or
 * written, and so it is the first time it wants some written back.  A buffer that
 * is to be written only is full of garbage, so that a byte too many shows.
 */
#include <stdlib.h>
#include <string.h>

#include "fakehost.h"

#define PAGE	4096u

static struct fakehost *page_host(struct npuemu_jfs *q)
{
	return q->chip->host;
}

#define GARBAGE	0xc3	/* in a buffer that is to be written only */

static void page_fill(struct fh_pager *pg, struct fh_bounce *b, bool fill)
{
	memset(b->p, GARBAGE, FH_BOUNCE + 16);
	if (fill)
		memcpy(b->p + b->va % 16, pg->memory + (b->va - FH_PG_VA), b->len);
}

u8 *fh_page(struct npuemu_jfs *q, struct npuemu_wqe *w, u64 va, u64 *len, bool write,
	    bool fill)
{
	struct fakehost *fh = page_host(q);
	struct fh_pager *pg = &fh->pg;
	struct fh_bounce *b = &pg->bounce[write];
	u64 off = va - FH_PG_VA, end;

	pg->in++;
	if (w->page_dirty)
		fh_die("asked for a page while another waits to be written");
	if (w->paging || w->status || !*len || off >= FH_PG_BYTES || *len > FH_PG_BYTES - off)
		fh_die("asked for a page that cannot be");
	if (fill != (!write || w->elem))
		fh_die("asked for a source without its bytes, or for bytes to be overwritten");
	if (off + *len > pg->gone_from) {
		w->status = FH_LOC_ACCESS;
		q->chip->ops->explain(q, "not mapped");
		return NULL;
	}
	if (b->len && b->wqe == w->first && va >= b->va && va - b->va < b->len) {
		if (b->asked)
			page_fill(pg, b, fill);
		b->asked = false;
		end = b->va + b->len;
		if (*len > end - va)
			*len = end - va;
		return b->p + b->va % 16 + (va - b->va);
	}
	end = va + *len;
	if (*len > pg->room)
		end = (va + pg->room) & ~15ull;
	b->va = va;
	b->len = end - va;
	b->wqe = w->first;
	b->asked = true;
	w->paging = true;
	pg->waits++;
	return NULL;
}

enum npuemu_step fh_page_out(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	struct fakehost *fh = page_host(q);
	struct fh_pager *pg = &fh->pg;
	struct fh_bounce *b = &pg->bounce[1];

	pg->out++;
	if (!w->page_dirty || !b->len || b->asked || w->page_va < b->va ||
	    !w->page_len || w->page_va + w->page_len > b->va + b->len)
		fh_die("told to write out what was never handed out");
	if (!pg->out_asked) {
		pg->out_asked = true;
		pg->waits++;
		return NPUEMU_STEP_WAIT;
	}
	pg->out_asked = false;
	b->len = 0;
	if (w->page_va + w->page_len - FH_PG_VA > pg->out_gone_from) {
		w->status = FH_LOC_ACCESS;
		q->chip->ops->explain(q, "not mapped any more");
	} else {
		memcpy(pg->memory + (w->page_va - FH_PG_VA),
		       b->p + b->va % 16 + (w->page_va - b->va), w->page_len);
	}
	return NPUEMU_STEP_DONE;
}

void fh_page_cancel(struct npuemu_jfs *q)
{
	struct fh_pager *pg = &page_host(q)->pg;

	pg->cancel++;
	pg->bounce[0].len = 0;
	pg->bounce[1].len = 0;
	pg->out_asked = false;
}

void fh_pageable(struct fakehost *fh, u64 seed)
{
	struct fh_pager *pg = &fh->pg;
	u64 i;

	pg->memory = fh_guarded(FH_PG_BYTES);
	pg->shadow = malloc(FH_PG_BYTES);
	pg->bounce[0].p = fh_guarded(FH_BOUNCE + PAGE);
	pg->bounce[1].p = fh_guarded(FH_BOUNCE + PAGE);
	if (!pg->shadow)
		fh_die("no memory");
	pg->room = FH_BOUNCE;
	pg->gone_from = FH_PG_BYTES;
	pg->out_gone_from = FH_PG_BYTES;
	for (i = 0; i < FH_PG_BYTES; i++)
		pg->memory[i] = (u8)(fh_random(&seed) >> 32);
	memcpy(pg->shadow, pg->memory, FH_PG_BYTES);
}

void fh_pageable_free(struct fakehost *fh)
{
	if (!fh->pg.memory)
		return;
	fh_unguard(fh->pg.memory, FH_PG_BYTES);
	fh_unguard(fh->pg.bounce[0].p, FH_BOUNCE + PAGE);
	fh_unguard(fh->pg.bounce[1].p, FH_BOUNCE + PAGE);
	free(fh->pg.shadow);
}
