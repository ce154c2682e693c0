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

	if (!npuemu_local_check(q, w, d->dst, dst_bytes, true))
		return false;
	if (!src_bytes)
		return true;
	if (!npuemu_local_check(q, w, d->src, src_bytes, false))
		return false;
	if ((overlap(d->dst, d->src, src_bytes) || overlap(d->src, d->dst, dst_bytes)) &&
	    rows_overlap(d)) {
		q->chip->ops->explain(q, "descriptor at block %u: source and target overlap",
				      w->first);
		w->status = NPUEMU_ST_LOC_LEN;
		return false;
	}
	if (w->elem && ((d->dst | d->src) & (w->elem - 1))) {
		q->chip->ops->explain(q, "descriptor at block %u: reduce operands are not aligned to their %u-byte elements",
				      w->first, w->elem);
		w->status = NPUEMU_ST_LOC_LEN;
		return false;
	}
	return true;
}

/* Copy or combine [dst, +want) from [src, +want), or less of it.  STEP_MORE: done. */
static enum npuemu_step piece(struct npuemu_jfs *q, struct npuemu_wqe *w, u64 dst, u64 src,
			      u64 want)
{
	struct npuemu_share *dshare, *sshare;
	enum npuemu_step step;
	u8 *d, *s;

	/* each may have less in one stretch than the other */
	d = npuemu_local_at(q, w, dst, &want, true, &dshare);
	if (!d)
		return npuemu_no_place(w);
	s = npuemu_local_at(q, w, src, &want, false, &sshare);
	if (!s)
		return npuemu_no_place(w);
	step = npuemu_piece(q, w, d, s, want, dshare, desc_of(w)->type);
	if (step == NPUEMU_STEP_MORE)
		npuemu_wrote(w, dst, want);
	return step;
}

enum npuemu_step npuemu_run_sdma_copy(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	const struct npuemu_sdma *d = desc_of(w);
	enum npuemu_step step;

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
		step = piece(q, w, d->dst + w->done, d->src + w->done, want);
		if (step != NPUEMU_STEP_MORE)
			return step;
	}
	return NPUEMU_STEP_DONE;
}

enum npuemu_step npuemu_run_sdma_copy_2d(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	const struct npuemu_sdma *d = desc_of(w);
	enum npuemu_step step;

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
		step = piece(q, w, d->dst + row * d->dst_pitch + col,
			     d->src + row * d->src_pitch + col, want);
		if (step != NPUEMU_STEP_MORE)
			return step;
	}
	return NPUEMU_STEP_DONE;
}

/* A pattern as it reads from its byte @at % @width on; the low bytes count. */
static u64 pattern_from(u64 pattern, u32 width, u64 at)
{
	u32 skip = (u32)(at & (width - 1)) * 8;

	if (likely(!skip))
		return pattern;
	if (width < 8)
		pattern &= (1ull << width * 8) - 1;
	return pattern >> skip | pattern << (width * 8 - skip);
}

enum npuemu_step npuemu_run_sdma_fill(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	const struct npuemu_sdma *d = desc_of(w);
	u32 width = (u32)d->dst_pitch;

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
		if (want > q->turn_bytes)
			want = q->turn_bytes;
		p = npuemu_local_at(q, w, d->dst + w->done, &want, true, &share);
		if (!p)
			return npuemu_no_place(w);
		npuemu_fill(p, pattern_from(d->src, width, w->done), width, want);
		npuemu_wrote(w, d->dst + w->done, want);
		npuemu_touch(q, share);
		w->done += want;
		q->turn_bytes -= want;
	}
	return NPUEMU_STEP_DONE;
}

enum npuemu_step npuemu_run_sdma_notify(struct npuemu_jfs *q, struct npuemu_wqe *w)
{
	struct npuemu_share *share;
	u64 len = 8;	/* aligned, so it stays 8 */
	u64 *word = (u64 *)npuemu_local_at(q, w, desc_of(w)->dst, &len, true, &share);

	if (!word)
		return npuemu_no_place(w);
	smp_store_release(word, desc_of(w)->src); /* after all that came before it */
	npuemu_wrote(w, desc_of(w)->dst, 8);
	w->done = 8;
	npuemu_touch(q, share);
	return NPUEMU_STEP_DONE;
}
