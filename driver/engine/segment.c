// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * From an address in a WQE to a pointer: local memory by VA, a peer's memory
 * by endpoint, token and the owner's VA.
 *
 * A queue remembers the places it found good.  A local place stays good for
 * the chip's epoch; a remote one while the owner's record and the owner's life
 * word read as they did.  Both words are looked at for every piece moved.
 *
 * A host whose process may take memory away without telling marks its answer
 * "once".  Such a place is remembered for one WQE, and apart from the others.
 */
#include "engine.h"

void npuemu_places_drop(struct npuemu_jfs *q)
{
	u32 i;

	q->plain.len = 0;
	for (i = 0; i < ARRAY_SIZE(q->own); i++) {
		q->own[i].len = 0;
		q->local[i] = &q->own[i];
	}
	for (i = 0; q->many && i < q->many->n; i++)
		q->many->place[i].len = 0;
	if (q->many)
		q->many->n = 0;
	npuemu_once_drop(q);
	for (i = 0; i < ARRAY_SIZE(q->remote); i++)
		q->remote[i].seq = NULL;
}

static noinline bool back(struct npuemu_jfs *q, struct npuemu_wqe *w,
			  const struct npuemu_arena *a, u64 off, u64 len, u64 lo, u64 size,
			  u32 status)
{
	if (!q->chip->ops->back(q->chip, a, off, len, lo, lo + size))
		return true;
	q->chip->ops->explain(q, "WQE at block %u: out of memory backing %llu bytes of HBM",
			      w->first, (unsigned long long)len);
	w->status = status;
	return false;
}

static struct npuemu_local *latest(struct npuemu_jfs *q, struct npuemu_local *l)
{
	q->local[1] = q->local[0];
	q->local[0] = l;
	return l;
}

/* Which place it was when the like of this address was asked for.  64 KiB are a lane's step. */
static u8 *place_key(struct npuemu_places *p, u64 va)
{
	return &p->at[(va >> 16) * 0x9e3779b97f4a7c15ull >> (64 - NPUEMU_PLACE_BITS)];
}

/* Not the latest two: one from before? */
static struct npuemu_local *place_find(struct npuemu_places *p, u64 va, u64 len)
{
	u8 *key = place_key(p, va);
	u32 i;

	if (likely(npuemu_local_hit(&p->place[*key], va, len)))
		return &p->place[*key];
	for (i = 0; i < p->n; i++) {
		if (!npuemu_local_hit(&p->place[i], va, len))
			continue;
		*key = (u8)i;
		return &p->place[i];
	}
	return NULL;
}

/* In turns: each new one takes the oldest's room. */
static struct npuemu_local *place_add(struct npuemu_places *p, const struct npuemu_local *l)
{
	u32 i = p->next;

	p->next = (i + 1) % NPUEMU_PLACES;
	if (p->n <= i)
		p->n = i + 1;
	p->place[i] = *l;
	*place_key(p, l->va) = (u8)i;
	return &p->place[i];
}

static struct npuemu_local *place_keep(struct npuemu_jfs *q, const struct npuemu_local *l)
{
	/* the older of the two is free, or makes room if there is no memory for more */
	struct npuemu_local *older = q->local[1];

	if (q->many)
		return place_add(q->many, l);
	if (older->len) {
		q->many = q->chip->ops->zalloc(sizeof(*q->many));
		if (q->many) {
			place_add(q->many, q->local[1]);
			place_add(q->many, q->local[0]);
			return place_add(q->many, l);
		}
	}
	*older = *l;
	return older;
}

static noinline struct npuemu_local *local_slow(struct npuemu_jfs *q, struct npuemu_wqe *w,
						u64 va, u64 len, bool write)
{
	struct npuemu_local *known, l;

	if (npuemu_local_hit(&q->once[write], va, len))
		return &q->once[write];
	known = q->many ? place_find(q->many, va, len) : NULL;
	if (known)
		return latest(q, known);
	memset(&l, 0, sizeof(l));
	l.write = write;
	if (q->chip->ops->local(q->chip, va, len, &l)) {
		q->chip->ops->explain(q, "WQE at block %u: local [%#llx, +%llu) is not in a buffer or registered memory",
				      w->first, (unsigned long long)va,
				      (unsigned long long)len);
		w->status = NPUEMU_ST_LOC_ACCESS;
		return NULL;
	}
	if (l.once) {
		q->once[write] = l;
		return &q->once[write];
	}
	return latest(q, place_keep(q, &l));
}

static inline struct npuemu_local *local_find(struct npuemu_jfs *q, struct npuemu_wqe *w,
					      u64 va, u64 len, bool write)
{
	struct npuemu_local *l = q->local[0];

	if (!npuemu_local_hit(l, va, len)) {
		l = q->local[1];
		if (!npuemu_local_hit(l, va, len)) {
			l = local_slow(q, w, va, len, write);
			if (!l)
				return NULL;
		}
	}
	if (unlikely(write && l->readonly)) {
		q->chip->ops->explain(q, "WQE at block %u: local %#llx is read-only memory",
				      w->first, (unsigned long long)va);
		w->status = NPUEMU_ST_LOC_ACCESS;
		return NULL;
	}
	return l;
}

bool npuemu_local_check(struct npuemu_jfs *q, struct npuemu_wqe *w, u64 va, u64 len,
			bool write)
{
	return local_find(q, w, va, len, write);
}

/* As _at, in a chunked arena whose place is [lo, +size). */
static noinline u8 *chunk_at(struct npuemu_jfs *q, struct npuemu_wqe *w,
			     const struct npuemu_arena *a, u64 off, u64 *len, u64 lo, u64 size,
			     u32 status)
{
	u64 room = NPUEMU_CHUNK_BYTES - (off & (NPUEMU_CHUNK_BYTES - 1));
	u8 *p = npuemu_arena_at(a, off);

	if (*len > room)
		*len = room;
	if (likely(p))
		return p;
	if (!back(q, w, a, off, *len, lo, size, status))
		return NULL;
	p = npuemu_arena_at(a, off);
	if (!p) {
		q->chip->ops->explain(q, "WQE at block %u: the memory is being given back by its owner",
				      w->first);
		w->status = status;
	}
	return p;
}

static noinline u8 *page_at(struct npuemu_jfs *q, struct npuemu_wqe *w, u64 va, u64 *len,
			    bool write)
{
	/* there is one buffer to write to, and it is full */
	if (w->page_dirty) {
		w->paging = true;
		return NULL;
	}
	return q->chip->ops->page(q, w, va, len, write, !write || w->elem);
}

u8 *npuemu_local_at(struct npuemu_jfs *q, struct npuemu_wqe *w, u64 va, u64 *len,
		    bool write, struct npuemu_share **share)
{
	struct npuemu_local *l = local_find(q, w, va, *len, write);
	u64 off;

	if (!l)
		return NULL;
	*share = l->share;
	if (write)
		w->page_write = l->pageable;
	if (unlikely(l->pageable))
		return page_at(q, w, va, len, write);
	if (unlikely(l->once) && *len > l->len - (va - l->va))
		*len = l->len - (va - l->va);
	off = l->off + (va - l->va);
	if (l->arena && l->arena->chunk)
		return chunk_at(q, w, l->arena, off, len, l->off, l->len, NPUEMU_ST_LOC_ACCESS);
	if (unlikely(!npuemu_backed(l->arena, off, *len)) &&
	    !back(q, w, l->arena, off, *len, l->off, l->len, NPUEMU_ST_LOC_ACCESS))
		return NULL;
	return l->ptr + (va - l->va);
}

/* One text for both: a wrong token does not tell that there is something behind it. */
static const char no_segment[] = "no such segment, or wrong token";

static noinline __cold void *refuse(struct npuemu_jfs *q, struct npuemu_wqe *w, u32 status,
				    const struct npuemu_far *t, u64 va, u64 len,
				    const char *why)
{
	q->chip->ops->explain(q, "WQE at block %u: remote [%#llx, +%llu) token id %u: %s",
			      w->first, (unsigned long long)va, (unsigned long long)len,
			      t->token_id, why);
	w->status = status;
	return NULL;
}

/*
 * A consistent copy of the owner's record, or false.  The owner makes @seq odd
 * while it changes the rest.
 */
static bool read_record(const struct npuemu_seg_rec *rec, struct npuemu_seg_rec *out)
{
	const u64 *from = (const u64 *)rec;
	u64 *to = (u64 *)out;
	u32 tries, i, seq;

	for (tries = 0; tries < 100; tries++) {
		/* pairs with the owner's release of @seq */
		seq = smp_load_acquire(&rec->seq);
		if (!seq)
			return false;
		if (seq & 1) {
			npuemu_relax();
			continue;
		}
		for (i = 0; i < sizeof(*rec) / 8; i++)
			to[i] = smp_load_acquire(&from[i]); /* in order, before the second look */
		if (READ_ONCE(rec->seq) == seq && out->seq == seq)
			return true;
	}
	return false;
}

static inline bool token_opens(const struct npuemu_far *t, u32 access, u32 value)
{
	return (access & NPUEMU_SEGREC_NO_TOKEN) || (t->token_en && t->token_value == value);
}

/*
 * Fill @r from the owner's side; NULL or why not.  The token comes before what is behind
 * it: what is wrong there is told to those alone who may use it.
 */
static noinline const char *remote_slow(struct npuemu_jfs *q, struct npuemu_remote *r,
					const struct npuemu_far *t, u32 *status)
{
	const struct npuemu_host_ops *ops = q->chip->ops;
	const struct npuemu_peer *peer = ops->peer(q->chip, t->eid);
	const struct npuemu_arena *arena;
	struct npuemu_seg_rec rec;
	u32 index = t->token_id & 0xfff;

	*status = NPUEMU_ST_ACK_TIMEOUT;
	if (!peer || READ_ONCE(*peer->life) != peer->life_val)
		return "nobody answers at this endpoint (the process is gone?)";
	*status = NPUEMU_ST_REM_ACCESS_ABORT;
	if (index >= READ_ONCE(peer->nsegs))
		return "no such segment at the owner";
	if (!read_record(&peer->segs[index], &rec) || rec.token_id != t->token_id ||
	    rec.device != (u32)t->eid[1] || !token_opens(t, rec.access, rec.token_value))
		return no_segment;
	arena = rec.device < NPUEMU_MAX_DEVICES ? ops->arena(q->chip, peer, &rec) : NULL;
	if (!arena) {
		*status = NPUEMU_ST_ACK_TIMEOUT;
		return "the owner's memory cannot be reached";
	}
	/* the owner's record is not believed either */
	if (rec.len > arena->bytes || rec.off > arena->bytes - rec.len ||
	    rec.va + rec.len < rec.va || rec.buf >= arena->nshares ||
	    (rec.va ^ rec.off) & 15)	/* a word aligned there must be so here */
		return "the owner's segment record is damaged";
	r->eid[0] = t->eid[0];
	r->eid[1] = t->eid[1];
	r->token_id = t->token_id;
	r->token_value = rec.token_value;
	r->seq_val = rec.seq;
	r->access = rec.access;
	r->life = peer->life;
	r->life_val = peer->life_val;
	r->va = rec.va;
	r->len = rec.len;
	r->ptr = arena->chunk ? NULL : arena->base + rec.off;
	r->arena = arena;
	r->off = rec.off;
	r->share = arena->shares ? &arena->shares[rec.buf] : NULL;
	r->seq = &peer->segs[index].seq;
	return NULL;
}

static inline struct npuemu_remote *remote_find(struct npuemu_jfs *q, struct npuemu_wqe *w,
						const struct npuemu_far *t, u64 va,
						u64 len, u32 access)
{
	struct npuemu_remote *r = &q->remote[NPUEMU_REMOTE_SLOT(t->token_id, t->eid[1])];

	if (unlikely(!npuemu_remote_valid(r, t->eid[0], t->eid[1], t->token_id))) {
		u32 status;
		const char *why;

		r->seq = NULL;
		why = remote_slow(q, r, t, &status);
		if (why)
			return refuse(q, w, status, t, va, len, why);
	}
	if (unlikely(READ_ONCE(*r->life) != r->life_val)) {
		r->seq = NULL;
		return refuse(q, w, NPUEMU_ST_ACK_TIMEOUT, t, va, len, "the owner has died");
	}
	if (unlikely(!token_opens(t, r->access, r->token_value)))
		return refuse(q, w, NPUEMU_ST_REM_ACCESS_ABORT, t, va, len, no_segment);
	if (unlikely((r->access & access) != access))
		return refuse(q, w, NPUEMU_ST_REM_ACCESS_ABORT, t, va, len,
			      "the segment does not grant this right");
	if (unlikely(!npuemu_remote_holds(r, va, len)))
		return refuse(q, w, NPUEMU_ST_REM_ACCESS_ABORT, t, va, len,
			      "outside the segment");
	return r;
}

bool npuemu_remote_check(struct npuemu_jfs *q, struct npuemu_wqe *w,
			 const struct npuemu_far *t, u64 off, u64 len, u32 access)
{
	return remote_find(q, w, t, t->va + off, len, access);
}

u8 *npuemu_remote_at(struct npuemu_jfs *q, struct npuemu_wqe *w,
		     const struct npuemu_far *t, u64 off, u64 *len, u32 access,
		     struct npuemu_share **share)
{
	u64 va = t->va + off, at;
	struct npuemu_remote *r = remote_find(q, w, t, va, *len, access);

	if (!r)
		return NULL;
	*share = r->share;
	at = r->off + (va - r->va);
	if (r->arena->chunk)
		return chunk_at(q, w, r->arena, at, len, r->off, r->len,
				NPUEMU_ST_REM_ACCESS_ABORT);
	if (unlikely(!npuemu_backed(r->arena, at, *len)) &&
	    !back(q, w, r->arena, at, *len, r->off, r->len, NPUEMU_ST_REM_ACCESS_ABORT))
		return NULL;
	return r->ptr + (va - r->va);
}
