// SPDX-License-Identifier: MIT
/*
 * Buffers of other ranks.  A rank of this process has its address; one of another
 * process is opened once and kept, so that a collective on the same buffers costs
 * nothing here.  When the other process has taken something back since, what is kept
 * of it is looked through: memory that was freed there is not held here for long.
 */
#include <inttypes.h>
#include "comm.h"

HcclResult hccl_ref_make(struct hccl_comm *c, const char *what, const char *role, const void *va, u64 bytes,
			 struct hccl_ref *ref)
{
	u64 at = (u64)(uintptr_t)va, end;
	struct npuacl_window w;
	struct npuacl_place p;
	char text[192];
	aclError ret;

	memset(ref, 0, sizeof(*ref));
	if (!bytes)
		return HCCL_SUCCESS;
	npuacl_place_of(at, &p);
	if (!npuacl_on_device(&p))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %s %p is no device memory, but %s", what, role, va,
				 npuacl_explain(at, text, sizeof(text)));
	end = p.end;
	ref->va = at;
	if (!c->all_here || c->queued) {
		ret = npuacl_window_of(what, at, &w);
		if (ret)
			return hccl_fail_acl(ret, what);
		ref->key = w.key.id;
		ref->secret = w.key.secret;
		ref->off = at - w.base;
		end = w.end;
		if (c->queued && hccl_ref_segment(what, &w, ref))
			return HCCL_E_NOT_SUPPORT;
	}
	if (unlikely(bytes > end - at) && c->queued)
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: %s lies in several mappings or goes beyond its own: the queue path (NPUEMU_TRANSPORT) takes one", what,
				 role);
	if (unlikely(bytes > end - at))
		return hccl_parts_make(c, what, role, at, bytes, ref);
	return HCCL_SUCCESS;
}

static void forget(struct hccl_open *o)
{
	npuacl_import_put(o->import);
	npuacl_span_close(o->span);
	memset(o, 0, sizeof(*o));
}

static void look_through(struct hccl_peer *p)
{
	u32 i;

	for (i = 0; i < HCCL_OPENS; i++)
		if (p->open[i].key && (!npuacl_export_holds(p->open[i].key) ||
				       (p->open[i].span && !npuacl_span_holds(p->open[i].span))))
			forget(&p->open[i]);
}

static aclError open_buffer(struct hccl_comm *c, u32 rank, const struct hccl_ref *ref, struct hccl_open *o)
{
	struct npuacl_key key = { .id = ref->key, .secret = ref->secret };
	aclError ret;

	if (likely(!(ref->off & HCCL_PARTS)))
		return npuacl_window_open("hccl", &key, &o->import, &o->ptr);
	ret = hccl_parts_open("hccl", ref, npuacl_logical(c->group->member[rank].device, c->dev->id), &o->span);
	if (!ret)
		o->ptr = o->span->ptr;
	return ret;
}

/* What was not used for longest: an operation has no more than three buffers of a rank at a time. */
static struct hccl_open *oldest(struct hccl_peer *p)
{
	u32 i, best = 0;

	for (i = 1; i < HCCL_OPENS; i++)
		if (p->open[i].used < p->open[best].used)
			best = i;
	return &p->open[best];
}

u8 *hccl_ref_open(struct hccl_comm *c, u32 rank, bool message, const struct hccl_ref *ref, u64 drops)
{
	struct hccl_peer *p = &c->peer[message ? c->ranks + rank : rank];
	struct hccl_open *o, new = { .key = ref->key };
	u64 off = ref->off & ~HCCL_PARTS;
	aclError ret;
	u32 i;

	if (!ref->va)
		return NULL;
	if (smp_load_acquire(&c->local->rank[rank]))
		return (u8 *)(uintptr_t)ref->va;
	if (p->drops != drops) {
		look_through(p);
		p->drops = drops;
	}
	for (i = 0; i < HCCL_OPENS; i++)
		if (p->open[i].key == ref->key) {
			p->open[i].used = ++p->clock;
			return p->open[i].ptr + off;
		}
	ret = open_buffer(c, rank, ref, &new);
	if (ret) {
		hccl_group_check(c);	/* most likely it has died, and that is what to say */
		if (!hccl_group_broken(c))
			hccl_group_fail(c, HCCL_E_REMOTE, "EI0006", "a buffer of rank %u cannot be reached from rank %u: %s", rank,
					c->rank, npuacl_self.message);
		return NULL;
	}
	o = oldest(p);
	if (o->key)
		forget(o);
	new.used = ++p->clock;
	*o = new;
	return o->ptr + off;
}

void hccl_peers_close(struct hccl_comm *c)
{
	u32 r, i;

	for (r = 0; r < 2 * c->ranks; r++)
		for (i = 0; i < HCCL_OPENS; i++)
			if (c->peer[r].open[i].key)
				forget(&c->peer[r].open[i]);
}
