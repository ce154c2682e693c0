// SPDX-License-Identifier: MIT
/*
 * Windows: device memory as other processes of a job can reach it, whichever function
 * it came from.  A whole range is offered once, however many parts of it are used.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "share.h"

#define OFFERED		64u

struct segment {
	struct segment *next;
	struct npuemu_buf *buf;
	struct npuemu_seg *seg;
	struct npuemu_seg_info info;
};

static struct {
	pthread_mutex_t lock;
	struct segment *segs;
	struct offered {
		struct npuemu_buf *buf;
		u64 bytes;
		struct npuacl_key key;
	} slot[OFFERED];
} win = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A buffer is offered once; if its place in the table was taken meanwhile, once more. */
aclError npuacl_window_offer(const char *what, struct npuemu_buf *buf, u64 bytes, u32 phys,
			     struct npuacl_window *w)
{
	struct npuacl_record rec = { .kind = NPUACL_EXPORT_MEMORY, .any_process = 1 };
	struct offered *o = &win.slot[((uintptr_t)buf >> 6) % OFFERED];
	aclError ret = ACL_SUCCESS;

	pthread_mutex_lock(&win.lock);
	if (o->buf != buf || o->bytes != bytes || npuacl_export_buf(o->key.id) != buf) {
		rec.size = bytes;
		rec.device = phys;
		ret = npuacl_export_add(what, buf, &rec, &o->key);
		o->buf = ret ? NULL : buf;
		o->bytes = bytes;
	}
	w->key = o->key;
	w->buf = buf;
	pthread_mutex_unlock(&win.lock);
	return ret;
}

/* win.lock held */
static int segment_make(struct npuemu_buf *buf, struct segment **out)
{
	struct npuemu_seg_attr attr = { .size = sizeof(attr), .access = NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE };
	struct segment *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	err = npuemu_seg_register(buf, &attr, &s->seg);
	if (!err)
		err = npuemu_seg_query(s->seg, &s->info);
	if (err) {
		free(s);
		return err;
	}
	s->buf = buf;
	s->next = win.segs;
	win.segs = s;
	*out = s;
	return 0;
}

aclError npuacl_window_segment(const char *what, const struct npuacl_window *w, struct npuemu_seg_info *info)
{
	struct segment *s;
	int err = 0;

	if (!w->buf)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: memory of another process is no segment of this one", what);
	pthread_mutex_lock(&win.lock);
	for (s = win.segs; s && s->buf != w->buf; s = s->next)
		;
	if (!s)
		err = segment_make(w->buf, &s);
	if (!err)
		*info = s->info;
	pthread_mutex_unlock(&win.lock);
	return err ? npuacl_fail_core(err, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, what) : ACL_SUCCESS;
}

void npuacl_window_forget(struct npuemu_buf *buf)
{
	struct segment **at = &win.segs, *s = NULL;

	npuacl_export_drop_buf(buf);
	pthread_mutex_lock(&win.lock);
	while (*at && (*at)->buf != buf)
		at = &(*at)->next;
	if (*at) {
		s = *at;
		*at = s->next;
	}
	pthread_mutex_unlock(&win.lock);
	if (s && npuemu_seg_unregister(s->seg))
		npuemu_log(NPUEMU_LOG_WARN, "acl: a segment of freed memory: %s", npuemu_errmsg());
	free(s);
}

struct request {
	const char *what;
	struct npuacl_window *w;
	aclError ret;
};

/* Under the lock of address.c: nobody frees it meanwhile. */
static void offer(struct npuacl_range *r, void *arg)
{
	struct request *q = arg;

	q->w->base = r->base;
	q->w->end = r->base + r->room;
	r->owner = r;	/* memory.c: keys stand for it */
	q->ret = npuacl_window_offer(q->what, r->buf, r->room, npuacl.dev[r->device].phys, q->w);
}

/* Memory of this process that is not the program's, but known to the map: a layer above says so. */
static void offer_own(struct npuacl_range *r, void *arg)
{
	struct request *q = arg;

	if (r->owner)
		offer(r, arg);
	else
		q->w = NULL;
}

aclError npuacl_window_of(const char *what, u64 va, struct npuacl_window *w)
{
	struct request q = { .what = what, .w = w };
	struct npuacl_place p;
	char text[192];

	memset(w, 0, sizeof(*w));
	if (npuacl_range_with(NPUACL_BIT(NPUACL_DEVICE), va, offer, &q))
		return q.ret;
	npuacl_place_of(va, &p);
	if (p.kind == NPUACL_MAPPED && !(p.flags & NPUACL_PLACE_HOST))
		return npuacl_vmm_window(what, va, w);
	if (npuacl_range_with(NPUACL_BIT(NPUACL_IMPORTED), va, offer_own, &q) && q.w)
		return q.ret;
	if (p.kind == NPUACL_IMPORTED)
		return npuacl_ipc_window(what, va, w);
	return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %#" PRIx64 " is no device memory, but %s", what, va,
			   npuacl_explain(va, text, sizeof(text)));
}

aclError npuacl_window_open(const char *what, const struct npuacl_key *key, struct npuacl_import **imp, u8 **ptr)
{
	struct npuemu_buf *own = npuacl_export_buf(key->id);
	struct npuacl_record r;
	aclError ret;

	*imp = NULL;
	ret = npuacl_export_find(what, key, NPUACL_EXPORT_MEMORY, &r);
	if (ret)
		return ret;
	if (own) {
		*ptr = (u8 *)npuemu_buf_ptr(own) + r.offset;
		return ACL_SUCCESS;
	}
	ret = npuacl_import_get(what, &r, imp);
	if (!ret)
		*ptr = (*imp)->ptr + r.offset;
	return ret;
}

static void keep(struct npuacl_range *r, void *arg)
{
	*(struct npuacl_range **)arg = r;
}

void npuacl_window_for_all(u64 va, u64 bytes)
{
	u32 kinds = NPUACL_BIT(NPUACL_DEVICE) | NPUACL_BIT(NPUACL_MAPPED) | NPUACL_BIT(NPUACL_IMPORTED);
	struct npuacl_range *r = NULL;
	u64 at;

	/* the caller uses it, so it is not freed meanwhile */
	for (at = va; at - va < bytes && npuacl_range_with(kinds, at, keep, &r); at = r->base + r->room)
		npuacl_range_flags(r, r->flags | NPUACL_PLACE_PEER);
}

void npuacl_window_fork(void)
{
	memset(&win, 0, sizeof(win));
	pthread_mutex_init(&win.lock, NULL);
}
