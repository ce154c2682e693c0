// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * SDMA descriptors: copy, 2D copy, fill, reduce, notify.  Both sides are
 * addresses of the poster's own process, imported buffers among them.
 */
#include "engine.h"
#include "copy.h"

static inline const struct npuemu_sdma *desc_of(const struct npuemu_wqe *w)
{
	return (const void *)w->bb;
}

static bool overlap(u64 a, u64 b, u64 len)
{
	return a - b < len;
}

/*
 * Two ranges have bytes in common: so have the rows in them?  Not if they are
 * blocks of columns of one matrix.  @height is 0 or 1 where there are no rows.
 */
static bool rows_overlap(const struct npuemu_sdma *d)
{
	u64 by = d->dst > d->src ? d->dst - d->src : d->src - d->dst;

	if (d->height > 1 && d->dst_pitch != d->src_pitch)
		return true;
	if (!by)	/* a copy onto itself changes nothing */
		return false;
	if (d->height < 2)
		return true;
	by %= d->dst_pitch;
	return by < d->len || d->dst_pitch - by < d->len;
}

/* Both ranges good, before the first byte moves. */
static bool check(struct npuemu_jfs *q, struct npuemu_wqe *w, u64 dst_bytes, u64 src_bytes)
{
	const struct npuemu_sdma *d = desc_of(w);
	const u8 *dst = npuemu_local_check(q, w, d->dst, dst_bytes, true);
	const u8 *src;

	if (!dst)
		return false;
	if (!src_bytes)
		return true;
	src = npuemu_local_check(q, w, d->src, src_bytes, false);
	if (!src)
		return false;
	if ((overlap(d->dst, d->src, src_bytes) || overlap(d->src, d->dst, dst_bytes)) &&
	    rows_overlap(d)) {
		q->chip->ops->explain(q, "descriptor at block %u: source and target overlap",
				      w->first);
		w->status = NPUEMU_ST_LOC_LEN;
		return false;
	}
	if (w->elem && (((uintptr_t)dst | (uintptr_t)src) & (w->elem - 1))) {
		q->chip->ops->explain(q, "descriptor at block %u: reduce operands are not aligned to their %u-byte elements",
				      w->first, w->elem);
		w->status = NPUEMU_ST_LOC_LEN;
		return false;
	}
	return true;
}

/* Copy or combine [dst, +want) from [src, +want). */
static enum npuemu_step piece(struct npuemu_jfs *q, struct npuemu_wqe *w, u64 dst, u64 src,
			      u64 want)
{
	struct npuemu_share *dshare, *sshare;
	u8 *d, *s;

	d = npuemu_local_at(q, w, dst, want, true, &dshare);
	if (!d)
		return NPUEMU_STEP_DONE;
	s = npuemu_local_at(q, w, src, want, false, &sshare);
	if (!s)
		return NPUEMU_STEP_DONE;
	return npuemu_piece(q, w, d, s, want, dshare, desc_of(w)->type);
}

enum npuemu_step npuemu_run_sdma_copy(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	const struct npuemu_sdma *d = desc_of(w);

	if (!w->len)
		return NPUEMU_STEP_DONE;
	if (!w->phase && !check(q, w, w->len, w->len))
		return NPUEMU_STEP_DONE;
	w->phase = 1;
	while (w->done < w->len) {
		u64 want = w->len - w->done;

		if (!q->turn_bytes)
			return NPUEMU_STEP_MORE;
		if (want > q->turn_bytes)
			want = q->turn_bytes;
		switch (piece(q, w, d->dst + w->done, d->src + w->done, want)) {
		case NPUEMU_STEP_WAIT:
			return NPUEMU_STEP_WAIT;
		case NPUEMU_STEP_DONE:
			return NPUEMU_STEP_DONE;
		case NPUEMU_STEP_MORE:
			break;
		}
	}
	return NPUEMU_STEP_DONE;
}

enum npuemu_step npuemu_run_sdma_copy_2d(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	const struct npuemu_sdma *d = desc_of(w);

	if (!w->len)
		return NPUEMU_STEP_DONE;
	if (!w->phase && !check(q, w, (u64)(d->height - 1) * d->dst_pitch + d->len,
				(u64)(d->height - 1) * d->src_pitch + d->len))
		return NPUEMU_STEP_DONE;
	w->phase = 1;
	while (w->done < w->len) {
		u64 row = w->done / d->len, col = w->done - row * d->len;
		u64 want = d->len - col;

		if (!q->turn_bytes)
			return NPUEMU_STEP_MORE;
		if (want > q->turn_bytes)
			want = q->turn_bytes;
		if (piece(q, w, d->dst + row * d->dst_pitch + col,
			  d->src + row * d->src_pitch + col, want) == NPUEMU_STEP_DONE)
			return NPUEMU_STEP_DONE;
	}
	return NPUEMU_STEP_DONE;
}

enum npuemu_step npuemu_run_sdma_fill(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	const struct npuemu_sdma *d = desc_of(w);

	if (!w->len)
		return NPUEMU_STEP_DONE;
	if (!w->phase && !check(q, w, w->len, 0))
		return NPUEMU_STEP_DONE;
	w->phase = 1;
	while (w->done < w->len) {
		struct npuemu_share *share;
		u64 want = w->len - w->done;
		u8 *p;

		if (!q->turn_bytes)
			return NPUEMU_STEP_MORE;
		/* turns are multiples of 8, so every piece starts the pattern anew */
		if (want > q->turn_bytes)
			want = q->turn_bytes;
		p = npuemu_local_at(q, w, d->dst + w->done, want, true, &share);
		if (!p)
			return NPUEMU_STEP_DONE;
		npuemu_fill(p, d->src, (u32)d->dst_pitch, want);
		npuemu_touch(q, share);
		w->done += want;
		q->turn_bytes -= want;
	}
	return NPUEMU_STEP_DONE;
}

enum npuemu_step npuemu_run_sdma_notify(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	struct npuemu_share *share;
	u64 *word = (u64 *)npuemu_local_at(q, w, desc_of(w)->dst, 8, true, &share);

	if (!word)
		return NPUEMU_STEP_DONE;
	smp_store_release(word, desc_of(w)->src); /* after all that came before it */
	w->done = 8;
	npuemu_touch(q, share);
	return NPUEMU_STEP_DONE;
}
