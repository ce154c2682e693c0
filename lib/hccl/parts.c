// SPDX-License-Identifier: MIT
/*
 * Buffers that several mappings make up: what a program mapped side by side into
 * reserved addresses (aclrtReserveMemAddress, aclrtMapMem) is one buffer to it.
 *
 * The rank that has it writes down the parts in memory that others can read, and names
 * that in the place of the buffer.  Who reads it shows the parts side by side as well.  A
 * list is kept for as long as operations name it, and the latest beyond that, so that the
 * others need not look at them again; one whose memory is gone goes with it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "comm.h"

#define MAGIC		0x7374726170ull		/* "parts" */
#define MOST		(1u << 20)		/* parts of one buffer */
#define KEPT		8u

struct table {
	u64 magic;
	u64 n;
	struct npuacl_told part[];
};

struct hccl_parts {
	struct hccl_parts *next;
	u64 base;
	u32 refs;			/* operations, windows */
	u64 used;			/* when */
	struct npuemu_buf *buf;
	struct npuacl_window window;
	u32 n;
	struct npuacl_told part[];
};

/* ---- The one who has it ---------------------------------------------------------------- */

static HcclResult ends(const char *what, const char *role, u64 va, u64 bytes, u64 at)
{
	char text[192], next[192];

	return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %s: %" PRIu64 " bytes from %#" PRIx64 " on, but it is %s%s%s", what, role, bytes, va,
			 npuacl_explain(va, text, sizeof(text)), at - va ? "; what follows is " : "",
			 at - va ? npuacl_explain(at, next, sizeof(next)) : "");
}

/* The mappings from @va on; how many, and where they begin and end. */
static HcclResult walk(const char *what, const char *role, u64 va, u64 bytes, u32 *n, u64 *base)
{
	struct npuacl_place p, first = { .base = va };
	u64 at = va;

	for (*n = 0; at - va < bytes; at = p.end, ++*n) {
		npuacl_place_of(at, &p);
		if (!*n)
			first = p;
		/* only what was mapped is one buffer; of one device, for that is who moves it */
		if (p.kind != NPUACL_MAPPED || p.flags & (NPUACL_PLACE_HOST | NPUACL_PLACE_NOACCESS) ||
		    p.device != first.device || *n == MOST)
			return ends(what, role, va, bytes, *n ? at : first.end);
	}
	*base = first.base;
	return HCCL_SUCCESS;
}

static HcclResult fill(const char *what, struct hccl_parts *l, u32 n)
{
	struct npuacl_window w;
	u64 at = l->base;
	aclError ret;

	for (l->n = 0; l->n < n; l->n++) {
		ret = npuacl_window_of(what, at, &w);
		if (ret)
			return hccl_fail_acl(ret, what);
		l->part[l->n].key = w.key.id;
		l->part[l->n].secret = w.key.secret;
		l->part[l->n].bytes = w.end - w.base;
		at = w.end;
	}
	return HCCL_SUCCESS;
}

static HcclResult publish(struct hccl_comm *c, const char *what, struct hccl_parts *l)
{
	u64 bytes = sizeof(struct table) + l->n * sizeof(struct npuacl_told);
	struct table *t;
	aclError ret;

	if (npuemu_buf_alloc(npuacl.board, c->dev->phys, bytes, 0, &l->buf)) {
		l->buf = NULL;
		return hccl_fail(HCCL_E_OOM, "EI0011", "%s: a list of %u mappings: %s", what, l->n, npuemu_errmsg());
	}
	t = npuemu_buf_ptr(l->buf);
	t->n = l->n;
	memcpy(t->part, l->part, l->n * sizeof(l->part[0]));
	smp_store_release(&t->magic, MAGIC);
	ret = npuacl_window_offer(what, l->buf, bytes, c->dev->phys, &l->window);
	return ret ? hccl_fail_acl(ret, what) : HCCL_SUCCESS;
}

static void drop(struct hccl_parts *l)
{
	if (l->buf) {
		npuacl_export_drop(l->window.key.id);
		npuemu_buf_free(l->buf);
	}
	free(l);
}

static bool stale(const struct hccl_parts *l)
{
	u32 i;

	for (i = 0; i < l->n; i++)
		if (!npuacl_export_holds(l->part[i].key))
			return true;
	return false;
}

/* res.lock held: of those that nobody names, the ones whose memory is gone, and all but the latest. */
static void trim(struct hccl_comm *c)
{
	struct hccl_parts **at = &c->res.parts, *l;
	u32 idle = 0;

	while ((l = *at)) {
		if (l->refs || (idle++ < KEPT && !stale(l))) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		drop(l);
	}
}

/* res.lock held: to the front, where the latest are. */
static struct hccl_parts *known(struct hccl_comm *c, const struct hccl_parts *like)
{
	struct hccl_parts **at = &c->res.parts, *l;

	for (; (l = *at); at = &l->next) {
		if (l->base != like->base || l->n < like->n || memcmp(l->part, like->part, like->n * sizeof(l->part[0])))
			continue;
		*at = l->next;
		l->next = c->res.parts;
		c->res.parts = l;
		return l;
	}
	return NULL;
}

/* Its key goes into @ref, and holds until hccl_parts_put(). */
static HcclResult list(struct hccl_comm *c, const char *what, u64 base, u32 n, struct hccl_ref *ref)
{
	struct hccl_parts *l = calloc(1, sizeof(*l) + n * sizeof(l->part[0])), *old;
	HcclResult ret;

	if (!l)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	l->base = base;
	ret = fill(what, l, n);
	if (ret) {
		free(l);
		return ret;
	}
	pthread_mutex_lock(&c->res.lock);
	old = known(c, l);
	if (old) {
		free(l);
		l = old;
	} else {
		ret = publish(c, what, l);
		if (ret) {
			drop(l);
			goto out;
		}
		l->next = c->res.parts;
		c->res.parts = l;
	}
	l->refs++;
	ref->key = l->window.key.id;
	ref->secret = l->window.key.secret;
	trim(c);
out:
	pthread_mutex_unlock(&c->res.lock);
	return ret;
}

HcclResult hccl_parts_make(struct hccl_comm *c, const char *what, const char *role, u64 va, u64 bytes,
			   struct hccl_ref *ref)
{
	HcclResult ret;
	u64 base;
	u32 n;

	memset(ref, 0, sizeof(*ref));
	ret = walk(what, role, va, bytes, &n, &base);
	if (ret)
		return ret;
	ref->va = va;
	ref->off = (va - base) | HCCL_PARTS;
	/* ranks of this process take it as it is */
	if (c->all_here)
		return HCCL_SUCCESS;
	ret = list(c, what, base, n, ref);
	if (ret)
		memset(ref, 0, sizeof(*ref));
	return ret;
}

void hccl_parts_put(struct hccl_comm *c, u64 key)
{
	struct hccl_parts *l;

	pthread_mutex_lock(&c->res.lock);
	for (l = c->res.parts; l && l->window.key.id != key; l = l->next)
		;
	if (l)
		l->refs--;
	pthread_mutex_unlock(&c->res.lock);
}

void hccl_parts_free(struct hccl_comm *c)
{
	struct hccl_parts *l;

	while ((l = c->res.parts)) {
		c->res.parts = l->next;
		drop(l);
	}
}

/* ---- The others ------------------------------------------------------------------------------ */

aclError hccl_parts_open(const char *what, const struct hccl_ref *ref, u32 device, struct npuacl_span **out)
{
	struct npuacl_key key = { .id = ref->key, .secret = ref->secret };
	struct npuacl_import *import;
	struct npuacl_told *copy;
	struct table *t;
	aclError ret;
	u64 n, room;
	u8 *ptr;

	ret = npuacl_window_open(what, &key, &import, &ptr);
	if (ret)
		return ret;
	t = (struct table *)ptr;
	room = import ? npuemu_buf_bytes(import->buf) : 0;
	n = room >= sizeof(*t) && smp_load_acquire(&t->magic) == MAGIC ? READ_ONCE(t->n) : 0;
	copy = n && n <= (room - sizeof(*t)) / sizeof(*copy) ? malloc(n * sizeof(*copy)) : NULL;
	if (copy) {
		memcpy(copy, t->part, n * sizeof(*copy));
		ret = npuacl_span_open(what, copy, (u32)n, device, out);
	} else {
		ret = npuacl_fail(ACL_ERROR_RT_IPC_ERROR, "%s: the list of a buffer's mappings is damaged", what);
	}
	free(copy);
	npuacl_import_put(import);
	if (!ret && (ref->off & ~HCCL_PARTS) >= (*out)->bytes) {
		npuacl_span_close(*out);
		ret = npuacl_fail(ACL_ERROR_RT_IPC_ERROR, "%s: the list of a buffer's mappings is too short", what);
	}
	return ret;
}

static u64 rest(const u8 *ptr)
{
	u64 va = (u64)(uintptr_t)ptr;
	struct npuacl_place p;

	npuacl_place_of(va, &p);
	return p.end - va;
}

u64 hccl_stretch(const u8 *dst, const u8 *src, u64 bytes)
{
	u64 to = rest(dst), from = rest(src), n = to < from ? to : from;

	return n < bytes ? n : bytes;
}
