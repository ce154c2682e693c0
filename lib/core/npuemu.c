// SPDX-License-Identifier: MIT
/*
 * The public API: arguments are checked here, once, then the host does it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "core.h"

#ifndef NPUEMU_VERSION
#define NPUEMU_VERSION "0.1.0"
#endif

NPUEMU_API const char *npuemu_version(void)
{
	return NPUEMU_VERSION;
}

NPUEMU_API int64_t npuemu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

NPUEMU_API int64_t npuemu_deadline_ms(int64_t ms)
{
	int64_t now = npuemu_now_ns();

	if (ms <= 0)
		return now;
	return ms > (INT64_MAX - now) / 1000000 ? INT64_MAX : now + ms * 1000000;
}

/* ---- Checks -------------------------------------------------------------------- */

/* Contexts are few: a table of them tells a live one from anything else. */
static struct npuemu *contexts[32];
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

static bool context_known(const struct npuemu *ctx)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(contexts); i++)
		if (ctx && READ_ONCE(contexts[i]) == ctx)
			return true;
	return false;
}

static int context_broken(struct npuemu *ctx, const char *what)
{
	if (unlikely(READ_ONCE(ctx->broken) == -EPERM))
		return npuemu_fail(-EPERM, "%s: the board was opened by process %d; after fork() the child must npuemu_open() again",
				   what, ctx->pid);
	if (unlikely(READ_ONCE(ctx->broken) || ctx->host->check(ctx)))
		return npuemu_fail(-EUCLEAN, "%s: board \"%s\" was reset or is damaged: close it, and open it again (npuemu-ctl reset if that fails)",
				   what, ctx->board);
	return 0;
}

static int check_ctx(struct npuemu *ctx, const char *what)
{
	if (!context_known(ctx))
		return npuemu_fail(-EBADF, "%s: not an open board", what);
	return context_broken(ctx, what);
}

int npuemu_check_worker(struct npuemu *ctx, const char *what)
{
	int err = check_ctx(ctx, what);

	if (!err && ctx->observer)
		return npuemu_fail(-EACCES, "%s: the board was opened with NPUEMU_OPEN_OBSERVE", what);
	return err;
}

#define CHECK_OBJ(slab, obj, fn)						\
	(!npuemu_slab_alive(&(slab), (obj)) ?					\
	 npuemu_fail(-EBADF, "%s: not a %s, or it was destroyed", (fn), (slab).what) : \
	 context_broken((obj)->ctx, (fn)))

/* The same on a broken board too: what is this process's own is still there. */
#define CHECK_HANDLE(slab, obj, fn)						\
	(npuemu_slab_alive(&(slab), (obj)) && READ_ONCE((obj)->ctx->broken) != -EPERM ? \
	 0 : CHECK_OBJ(slab, obj, fn))

static int check_size(const void *p, u32 size, size_t want, const char *what)
{
	if (!p)
		return npuemu_fail(-EINVAL, "%s: NULL argument", what);
	if (size != want)
		return npuemu_fail(-EINVAL, "%s: size is %u, this library's struct has %zu: set it to sizeof()",
				   what, size, want);
	return 0;
}

static int check_device(struct npuemu *ctx, u32 device, const char *what)
{
	if (device >= ctx->devices)
		return npuemu_fail(-EINVAL, "%s: device %u does not exist: a %s has 0..%u", what, device,
				   ctx->machine, ctx->devices - 1);
	return 0;
}

static bool is_pow2(u32 v)
{
	return v && !(v & (v - 1));
}

/* ---- Opening --------------------------------------------------------------------- */

static const struct npuemu_host *host_by_name(const char *name)
{
	if (!name)
		name = npuemu_getenv("NPUEMU_HOST");
	if (!name || !strcmp(name, "user"))
		return &npuemu_user_host;
	if (!strcmp(name, "kernel"))
		npuemu_fail(-ENODEV, "host \"kernel\": this library has the user-space host only; unset NPUEMU_HOST");
	else
		npuemu_fail(-EINVAL, "host \"%.40s\": there are \"user\" and \"kernel\"", name);
	return NULL;
}

/* contexts_lock held, as it is from taking a reference to dropping the last one */
static int context_add(struct npuemu *ctx)
{
	u32 i;

	if (context_known(ctx))
		return 0;
	for (i = 0; i < ARRAY_SIZE(contexts); i++)
		if (!contexts[i]) {
			WRITE_ONCE(contexts[i], ctx);
			return 0;
		}
	return npuemu_fail(-EMFILE, "too many boards open in this process");
}

/* In the child of a fork: whoever held a lock is not there. */
void npuemu_core_fork(void)
{
	struct npuemu_slab *const slabs[] = {
		&npuemu_bufs, &npuemu_mems, &npuemu_segs, &npuemu_cqs, &npuemu_rqs, &npuemu_queues,
	};
	u32 i;

	pthread_mutex_init(&contexts_lock, NULL);
	for (i = 0; i < ARRAY_SIZE(slabs); i++)
		pthread_mutex_init(&slabs[i]->lock, NULL);
}

NPUEMU_API int npuemu_open(const struct npuemu_open_attr *attr, struct npuemu **out)
{
	struct npuemu_open_attr none = { .size = sizeof(none) };
	const struct npuemu_host *host;
	int err;

	if (!out)
		return npuemu_fail(-EINVAL, "npuemu_open: NULL argument");
	*out = NULL;
	if (!attr)
		attr = &none;
	err = check_size(attr, attr->size, sizeof(*attr), "npuemu_open");
	if (err)
		return err;
	if (attr->flags & ~(NPUEMU_OPEN_OBSERVE | NPUEMU_OPEN_EXISTING))
		return npuemu_fail(-EINVAL, "npuemu_open: unknown flags %#x", attr->flags);
	host = host_by_name(attr->host);
	if (!host)
		return attr->host || npuemu_getenv("NPUEMU_HOST") ?
		       (strcmp(attr->host ? attr->host : npuemu_getenv("NPUEMU_HOST"), "kernel") ?
			-EINVAL : -ENODEV) : -EINVAL;
	pthread_mutex_lock(&contexts_lock);
	err = host->open(attr, out);
	if (!err) {
		err = context_add(*out);
		if (err) {
			host->close(*out);
			*out = NULL;
		}
	}
	pthread_mutex_unlock(&contexts_lock);
	return err;
}

NPUEMU_API int npuemu_close(struct npuemu *ctx)
{
	bool last = false;
	int err;
	u32 i;

	pthread_mutex_lock(&contexts_lock);
	if (!context_known(ctx)) {
		err = npuemu_fail(-EBADF, "npuemu_close: not an open board");
	} else if (ctx->broken == -EPERM) {
		err = context_broken(ctx, "npuemu_close");
	} else {
		last = READ_ONCE(ctx->refs) == 1;
		for (i = 0; i < ARRAY_SIZE(contexts) && last; i++)
			if (contexts[i] == ctx)
				WRITE_ONCE(contexts[i], NULL);
		err = ctx->host->close(ctx);
	}
	if (last) {
		npuemu_slab_forget(&npuemu_bufs, ctx);
		npuemu_slab_forget(&npuemu_mems, ctx);
		npuemu_slab_forget(&npuemu_segs, ctx);
		npuemu_slab_forget(&npuemu_cqs, ctx);
		npuemu_slab_forget(&npuemu_rqs, ctx);
	}
	pthread_mutex_unlock(&contexts_lock);
	return err;
}

NPUEMU_API int npuemu_query(struct npuemu *ctx, struct npuemu_info *info)
{
	int err = check_ctx(ctx, "npuemu_query");

	if (!err)
		err = check_size(info, info ? info->size : 0, sizeof(*info), "npuemu_query");
	if (err)
		return err;
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return ctx->host->query(ctx, info);
}

NPUEMU_API int npuemu_device_query(struct npuemu *ctx, uint32_t device,
				   struct npuemu_device_info *info)
{
	int err = check_ctx(ctx, "npuemu_device_query");

	if (!err)
		err = check_size(info, info ? info->size : 0, sizeof(*info), "npuemu_device_query");
	if (!err)
		err = check_device(ctx, device, "npuemu_device_query");
	if (err)
		return err;
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return ctx->host->device_query(ctx, device, info);
}

/* ---- Memory ------------------------------------------------------------------------ */

static void *new_obj(struct npuemu_slab *slab)
{
	void *p = npuemu_slab_alloc(slab);

	if (!p)
		npuemu_fail(-ENOMEM, "no %s handle left in this process (%u at most)", slab->what,
			    slab->max);
	return p;
}

NPUEMU_API int npuemu_buf_alloc(struct npuemu *ctx, uint32_t device, uint64_t bytes,
				uint32_t flags, struct npuemu_buf **out)
{
	int err = npuemu_check_worker(ctx, "npuemu_buf_alloc");
	struct npuemu_buf *buf;

	if (err)
		return err;
	if (!out || flags || !bytes)
		return npuemu_fail(-EINVAL, "npuemu_buf_alloc: %s",
				   !out ? "NULL argument" : flags ? "flags must be 0" : "0 bytes");
	err = check_device(ctx, device, "npuemu_buf_alloc");
	if (err)
		return err;
	if (bytes >> 48)
		return npuemu_fail(-ENOMEM, "npuemu_buf_alloc: %llu bytes are more than any device has",
				   (unsigned long long)bytes);
	buf = new_obj(&npuemu_bufs);
	if (!buf)
		return -ENOMEM;
	buf->ctx = ctx;
	err = ctx->host->buf_alloc(ctx, device, bytes, buf);
	if (err) {
		npuemu_slab_free(&npuemu_bufs, buf);
		return err;
	}
	npuemu_slab_publish(&npuemu_bufs, buf);
	*out = buf;
	return 0;
}

NPUEMU_API int npuemu_buf_free(struct npuemu_buf *buf)
{
	int err = CHECK_OBJ(npuemu_bufs, buf, "npuemu_buf_free");

	if (err)
		return err;
	if (READ_ONCE(buf->segs))
		return npuemu_fail(-EBUSY, "npuemu_buf_free: %u segment(s) of the buffer are registered: unregister them first",
				   buf->segs);
	if (!npuemu_slab_retire(&npuemu_bufs, buf))
		return npuemu_fail(-EBADF, "npuemu_buf_free: freed by another thread just now");
	err = buf->ctx->host->buf_free(buf);
	npuemu_slab_free(&npuemu_bufs, buf);
	return err;
}

NPUEMU_API void *npuemu_buf_ptr(const struct npuemu_buf *buf)
{
	return CHECK_HANDLE(npuemu_bufs, buf, "npuemu_buf_ptr") ? NULL : buf->ptr;
}

NPUEMU_API uint64_t npuemu_buf_bytes(const struct npuemu_buf *buf)
{
	return CHECK_HANDLE(npuemu_bufs, buf, "npuemu_buf_bytes") ? 0 : buf->bytes;
}

NPUEMU_API int npuemu_buf_export(struct npuemu_buf *buf, struct npuemu_handle *handle)
{
	int err = CHECK_OBJ(npuemu_bufs, buf, "npuemu_buf_export");

	if (!err && !handle)
		err = npuemu_fail(-EINVAL, "npuemu_buf_export: NULL argument");
	return err ? err : buf->ctx->host->buf_export(buf, handle);
}

NPUEMU_API int npuemu_buf_import(struct npuemu *ctx, const struct npuemu_handle *handle,
				 struct npuemu_buf **out)
{
	int err = npuemu_check_worker(ctx, "npuemu_buf_import");
	struct npuemu_buf *buf;

	if (!err && (!handle || !out))
		err = npuemu_fail(-EINVAL, "npuemu_buf_import: NULL argument");
	if (err)
		return err;
	buf = new_obj(&npuemu_bufs);
	if (!buf)
		return -ENOMEM;
	buf->ctx = ctx;
	err = ctx->host->buf_import(ctx, handle, buf);
	if (err) {
		npuemu_slab_free(&npuemu_bufs, buf);
		return err;
	}
	npuemu_slab_publish(&npuemu_bufs, buf);
	*out = buf;
	return 0;
}

NPUEMU_API int npuemu_mem_register(struct npuemu *ctx, void *ptr, uint64_t bytes,
				   struct npuemu_mem **out)
{
	int err = npuemu_check_worker(ctx, "npuemu_mem_register");
	struct npuemu_mem *mem;

	if (!err && (!out || !ptr || !bytes || (u64)(uintptr_t)ptr + bytes < bytes))
		err = npuemu_fail(-EINVAL, "npuemu_mem_register: NULL, empty or wrapping range");
	if (err)
		return err;
	mem = new_obj(&npuemu_mems);
	if (!mem)
		return -ENOMEM;
	mem->ctx = ctx;
	mem->va = (u64)(uintptr_t)ptr;
	mem->bytes = bytes;
	err = ctx->host->mem_register(mem);
	if (err) {
		npuemu_slab_free(&npuemu_mems, mem);
		return err;
	}
	npuemu_slab_publish(&npuemu_mems, mem);
	*out = mem;
	return 0;
}

NPUEMU_API int npuemu_mem_unregister(struct npuemu_mem *mem)
{
	int err = CHECK_OBJ(npuemu_mems, mem, "npuemu_mem_unregister");

	if (err)
		return err;
	if (!npuemu_slab_retire(&npuemu_mems, mem))
		return npuemu_fail(-EBADF, "npuemu_mem_unregister: done by another thread just now");
	err = mem->ctx->host->mem_unregister(mem);
	npuemu_slab_free(&npuemu_mems, mem);
	return err;
}

/* ---- Segments -------------------------------------------------------------------------- */

static bool access_legal(u32 a)
{
	const u32 r = NPUEMU_ACCESS_READ, w = NPUEMU_ACCESS_WRITE, at = NPUEMU_ACCESS_ATOMIC;

	return a == NPUEMU_ACCESS_LOCAL || a == r || a == (r | w) || a == (r | w | at);
}

NPUEMU_API int npuemu_seg_register(struct npuemu_buf *buf, const struct npuemu_seg_attr *attr,
				   struct npuemu_seg **out)
{
	int err = CHECK_OBJ(npuemu_bufs, buf, "npuemu_seg_register");
	struct npuemu_seg *seg;
	u64 bytes;

	if (!err)
		err = check_size(attr, attr ? attr->size : 0, sizeof(*attr), "npuemu_seg_register");
	if (err)
		return err;
	if (!out || attr->flags & ~NPUEMU_SEG_NO_TOKEN)
		return npuemu_fail(-EINVAL, "npuemu_seg_register: NULL argument or unknown flags");
	if (buf->imported)
		return npuemu_fail(-EINVAL, "npuemu_seg_register: the buffer belongs to another process, which must register it");
	if (!access_legal(attr->access))
		return npuemu_fail(-EINVAL, "npuemu_seg_register: access %#x is not legal: LOCAL alone, READ, READ|WRITE, or READ|WRITE|ATOMIC",
				   attr->access);
	if (attr->offset >= buf->bytes || attr->bytes > buf->bytes - attr->offset)
		return npuemu_fail(-EINVAL, "npuemu_seg_register: [%llu, +%llu) is not in a buffer of %llu bytes",
				   (unsigned long long)attr->offset, (unsigned long long)attr->bytes,
				   (unsigned long long)buf->bytes);
	bytes = attr->bytes ? attr->bytes : buf->bytes - attr->offset;
	seg = new_obj(&npuemu_segs);
	if (!seg)
		return -ENOMEM;
	seg->ctx = buf->ctx;
	seg->buf = buf;
	seg->info.token_value = attr->token_value;
	seg->info.va = (u64)(uintptr_t)buf->ptr + attr->offset;
	seg->info.bytes = bytes;
	seg->info.access = attr->access;
	seg->info.device = buf->device;
	err = buf->ctx->host->seg_register(seg, attr->offset, attr->flags);
	if (err) {
		npuemu_slab_free(&npuemu_segs, seg);
		return err;
	}
	npuemu_fetch_add(&buf->segs, 1);
	npuemu_slab_publish(&npuemu_segs, seg);
	*out = seg;
	return 0;
}

NPUEMU_API int npuemu_seg_query(const struct npuemu_seg *seg, struct npuemu_seg_info *info)
{
	int err = CHECK_OBJ(npuemu_segs, seg, "npuemu_seg_query");

	if (!err && !info)
		err = npuemu_fail(-EINVAL, "npuemu_seg_query: NULL argument");
	if (!err)
		*info = seg->info;
	return err;
}

NPUEMU_API int npuemu_seg_rotate(struct npuemu_seg *seg, uint32_t token_value)
{
	int err = CHECK_OBJ(npuemu_segs, seg, "npuemu_seg_rotate");

	return err ? err : seg->ctx->host->seg_rotate(seg, token_value);
}

NPUEMU_API int npuemu_seg_unregister(struct npuemu_seg *seg)
{
	int err = CHECK_OBJ(npuemu_segs, seg, "npuemu_seg_unregister");

	if (err)
		return err;
	if (!npuemu_slab_retire(&npuemu_segs, seg))
		return npuemu_fail(-EBADF, "npuemu_seg_unregister: done by another thread just now");
	err = seg->ctx->host->seg_unregister(seg);
	/* a peer that did not let go may still write: then the buffer stays busy */
	if (!err)
		npuemu_fetch_add(&seg->buf->segs, -1u);
	npuemu_slab_free(&npuemu_segs, seg);
	return err;
}

/* ---- Queues -------------------------------------------------------------------------------- */

static int cq_new(struct npuemu *ctx, u32 depth, u32 flags, struct npuemu_cq **out)
{
	struct npuemu_cq *cq = new_obj(&npuemu_cqs);
	bool timed = flags & NPUEMU_CQ_TIMED || npuemu_env_flag("NPUEMU_TIME");
	int err;

	if (!cq)
		return -ENOMEM;
	cq->ctx = ctx;
	cq->shared = flags & NPUEMU_CQ_SHARED;
	cq->own_form.e0 = ~0ull;	/* no entry looks like that */
	err = ctx->host->cq_create(cq, depth, timed);
	if (err) {
		npuemu_slab_free(&npuemu_cqs, cq);
		return err;
	}
	*out = cq;
	return 0;
}

NPUEMU_API int npuemu_cq_create(struct npuemu *ctx, const struct npuemu_cq_attr *attr,
				struct npuemu_cq **out)
{
	int err = npuemu_check_worker(ctx, "npuemu_cq_create");

	if (!err)
		err = check_size(attr, attr ? attr->size : 0, sizeof(*attr), "npuemu_cq_create");
	if (err)
		return err;
	if (!out || attr->reserved || attr->flags & ~(NPUEMU_CQ_TIMED | NPUEMU_CQ_SHARED))
		return npuemu_fail(-EINVAL, "npuemu_cq_create: NULL argument, unknown flags or reserved field not 0");
	if (!is_pow2(attr->depth) || attr->depth < NPUEMU_CQ_MIN || attr->depth > NPUEMU_CQ_MAX)
		return npuemu_fail(-EINVAL, "npuemu_cq_create: depth %u is not a power of two from %u to %u",
				   attr->depth, NPUEMU_CQ_MIN, NPUEMU_CQ_MAX);
	err = cq_new(ctx, attr->depth, attr->flags, out);
	if (!err)
		npuemu_slab_publish(&npuemu_cqs, *out);
	return err;
}

static void cq_free(struct npuemu_cq *cq)
{
	cq->ctx->host->cq_destroy(cq);
	npuemu_slab_free(&npuemu_cqs, cq);
}

NPUEMU_API int npuemu_cq_destroy(struct npuemu_cq *cq)
{
	int err = CHECK_OBJ(npuemu_cqs, cq, "npuemu_cq_destroy");

	if (err)
		return err;
	if (READ_ONCE(cq->users) || cq->own)
		return npuemu_fail(-EBUSY, "npuemu_cq_destroy: %s",
				   cq->own ? "it belongs to its queue and goes with it" :
				   "queues or receive queues still use it");
	if (!npuemu_slab_retire(&npuemu_cqs, cq))
		return npuemu_fail(-EBADF, "npuemu_cq_destroy: done by another thread just now");
	cq_free(cq);
	return 0;
}

/* One more user; the second needs a CQ made for it. */
static int cq_attach(struct npuemu_cq *cq, struct npuemu *ctx, const char *what)
{
	int err = CHECK_OBJ(npuemu_cqs, cq, what);

	if (err)
		return err;
	if (cq->ctx != ctx)
		return npuemu_fail(-EINVAL, "%s: the CQ is of another board", what);
	if (npuemu_fetch_add(&cq->users, 1) && !cq->shared) {
		npuemu_fetch_add(&cq->users, -1u);
		return npuemu_fail(-EBUSY, "%s: the CQ has a user already: make it with NPUEMU_CQ_SHARED",
				   what);
	}
	return 0;
}

NPUEMU_API int npuemu_rq_create(struct npuemu *ctx, const struct npuemu_rq_attr *attr,
				struct npuemu_rq **out)
{
	int err = npuemu_check_worker(ctx, "npuemu_rq_create");
	struct npuemu_rq *rq;

	if (!err)
		err = check_size(attr, attr ? attr->size : 0, sizeof(*attr), "npuemu_rq_create");
	if (!err && (!out || !attr->cq))
		err = npuemu_fail(-EINVAL, "npuemu_rq_create: NULL argument");
	if (!err)
		err = check_device(ctx, attr->device, "npuemu_rq_create");
	if (err)
		return err;
	if (!is_pow2(attr->depth) || attr->depth < NPUEMU_RQ_MIN || attr->depth > NPUEMU_RQ_MAX ||
	    (attr->max_sge && (!is_pow2(attr->max_sge) || attr->max_sge > 8)))
		return npuemu_fail(-EINVAL, "npuemu_rq_create: depth %u (a power of two from %u to %u) or max_sge %u (1, 2, 4, 8)",
				   attr->depth, NPUEMU_RQ_MIN, NPUEMU_RQ_MAX, attr->max_sge);
	err = cq_attach(attr->cq, ctx, "npuemu_rq_create");
	if (err)
		return err;
	rq = new_obj(&npuemu_rqs);
	if (rq) {
		rq->ctx = ctx;
		rq->cq = attr->cq;
		err = ctx->host->rq_create(rq, attr);
		if (!err) {
			npuemu_slab_publish(&npuemu_rqs, rq);
			*out = rq;
			return 0;
		}
		npuemu_slab_free(&npuemu_rqs, rq);
	}
	npuemu_fetch_add(&attr->cq->users, -1u);
	return rq ? err : -ENOMEM;
}

NPUEMU_API int npuemu_rq_destroy(struct npuemu_rq *rq)
{
	int err = CHECK_OBJ(npuemu_rqs, rq, "npuemu_rq_destroy");

	if (err)
		return err;
	if (READ_ONCE(rq->users))
		return npuemu_fail(-EBUSY, "npuemu_rq_destroy: a queue still names it");
	if (!npuemu_slab_retire(&npuemu_rqs, rq))
		return npuemu_fail(-EBADF, "npuemu_rq_destroy: done by another thread just now");
	err = rq->ctx->host->rq_destroy(rq);
	if (err)
		return err;	/* stuck: it stays, and so does its CQ */
	npuemu_fetch_add(&rq->cq->users, -1u);
	npuemu_slab_free(&npuemu_rqs, rq);
	return 0;
}

NPUEMU_API int npuemu_rq_query(struct npuemu_rq *rq, struct npuemu_rq_info *info)
{
	int err = CHECK_OBJ(npuemu_rqs, rq, "npuemu_rq_query");

	if (!err)
		err = check_size(info, info ? info->size : 0, sizeof(*info), "npuemu_rq_query");
	return err ? err : rq->ctx->host->rq_query(rq, info);
}

NPUEMU_API int npuemu_post_recv(struct npuemu_rq *rq, const struct npuemu_sge *sge, uint32_t n)
{
	int err = CHECK_OBJ(npuemu_rqs, rq, "npuemu_post_recv");
	u32 i;

	if (err)
		return err;
	if (n > rq->jfr.max_sge || (n && !sge))
		return npuemu_fail(-EINVAL, "npuemu_post_recv: %u SGEs, the queue takes %u", n,
				   rq->jfr.max_sge);
	if (rq->pi - READ_ONCE(rq->jfr.ci) > rq->jfr.mask)
		return -EAGAIN;
	for (i = 0; i < rq->jfr.max_sge; i++) {
		struct npuemu_sge *e = &rq->ring[(size_t)(rq->pi & rq->jfr.mask) * rq->jfr.max_sge + i];
		struct npuemu_sge s = { 0 };

		if (i < n)
			s = sge[i];
		WRITE_ONCE(*(u64 *)(void *)e, (u64)s.token_id << 32 | s.len);
		WRITE_ONCE(e->va, s.va);
	}
	smp_store_release(rq->pi_rec, ++rq->pi);
	return 0;
}

static int queue_check(struct npuemu *ctx, const struct npuemu_queue_attr *a)
{
	int err = check_device(ctx, a->device, "npuemu_queue_create");

	if (err)
		return err;
	if (a->flags || a->type > NPUEMU_QUEUE_SDMA || a->rnr_retry > 7 || a->error_suspend > 1)
		return npuemu_fail(-EINVAL, "npuemu_queue_create: flags must be 0, type UDMA or SDMA, rnr_retry 0..7, error_suspend 0 or 1");
	if (!is_pow2(a->depth) || a->depth < NPUEMU_SQ_MIN_BB || a->depth > NPUEMU_SQ_MAX_BB)
		return npuemu_fail(-EINVAL, "npuemu_queue_create: depth %u is not a power of two from %u to %u basic blocks",
				   a->depth, NPUEMU_SQ_MIN_BB, NPUEMU_SQ_MAX_BB);
	if (a->rq) {
		err = CHECK_OBJ(npuemu_rqs, a->rq, "npuemu_queue_create");
		if (!err && a->rq->ctx != ctx)
			err = npuemu_fail(-EINVAL, "npuemu_queue_create: the RQ is of another board");
	}
	return err;
}

/* The CQ of a new queue: the one given, or one with room for everything. */
static int queue_cq(struct npuemu *ctx, const struct npuemu_queue_attr *a, struct npuemu_cq **cq)
{
	int err;

	if (a->cq) {
		*cq = a->cq;
		return cq_attach(a->cq, ctx, "npuemu_queue_create");
	}
	/* every WQE may complete, and the flush-done entry comes on top */
	err = cq_new(ctx, a->depth * 2, 0, cq);
	if (err)
		return err;
	(*cq)->own = true;
	(*cq)->users = 1;
	npuemu_slab_publish(&npuemu_cqs, *cq);
	return 0;
}

static void queue_cq_drop(struct npuemu_cq *cq)
{
	npuemu_fetch_add(&cq->users, -1u);
	if (cq->own && npuemu_slab_retire(&npuemu_cqs, cq))
		cq_free(cq);
}

NPUEMU_API int npuemu_queue_create(struct npuemu *ctx, const struct npuemu_queue_attr *attr,
				   struct npuemu_queue **out)
{
	int err = npuemu_check_worker(ctx, "npuemu_queue_create");
	struct npuemu_queue *q;
	struct npuemu_cq *cq;

	if (!err)
		err = check_size(attr, attr ? attr->size : 0, sizeof(*attr), "npuemu_queue_create");
	if (!err && !out)
		err = npuemu_fail(-EINVAL, "npuemu_queue_create: NULL argument");
	if (!err)
		err = queue_check(ctx, attr);
	if (!err)
		err = queue_cq(ctx, attr, &cq);
	if (err)
		return err;
	q = new_obj(&npuemu_queues);
	if (!q) {
		queue_cq_drop(cq);
		return -ENOMEM;
	}
	q->ctx = ctx;
	q->cq = cq;
	q->rq = attr->rq;
	if (!cq->shared)
		cq->only = q;
	err = ctx->host->queue_create(q, attr);
	if (!err && !cq->shared && !cq->times)
		cq->own_form = (struct npuemu_cq_own){
			q->jfs.cqe_fixed[0], (u32)q->jfs.cqe_fixed[1], q->jfs.id,
			q->jfs.user_data, &q->view,
		};
	if (err) {
		cq->only = NULL;
		queue_cq_drop(cq);
		npuemu_slab_free(&npuemu_queues, q);
		return err;
	}
	if (q->rq)
		npuemu_fetch_add(&q->rq->users, 1);
	npuemu_slab_publish(&npuemu_queues, q);
	*out = q;
	return 0;
}

NPUEMU_API int npuemu_queue_destroy(struct npuemu_queue *q)
{
	struct npuemu_cq *cq;
	int err;

	err = CHECK_HANDLE(npuemu_queues, q, "npuemu_queue_destroy");
	if (err)
		return err;
	if (!npuemu_slab_retire(&npuemu_queues, q))
		return npuemu_fail(-EBADF, "npuemu_queue_destroy: done by another thread just now");
	cq = q->cq;
	err = q->ctx->host->queue_destroy(q);
	if (err)
		return err;	/* stuck: neither the queue nor its CQ can go */
	cq->only = NULL;
	cq->own_form.e0 = ~0ull;
	queue_cq_drop(cq);
	if (q->rq)
		npuemu_fetch_add(&q->rq->users, -1u);
	npuemu_slab_free(&npuemu_queues, q);
	return 0;
}

NPUEMU_API struct npuemu_cq *npuemu_queue_cq(struct npuemu_queue *q)
{
	return CHECK_HANDLE(npuemu_queues, q, "npuemu_queue_cq") ? NULL : q->cq;
}

NPUEMU_API int npuemu_queue_modify(struct npuemu_queue *q, enum npuemu_queue_state state)
{
	int err = CHECK_OBJ(npuemu_queues, q, "npuemu_queue_modify");

	if (!err && (u32)state > NPUEMU_QS_ERROR)
		err = npuemu_fail(-EINVAL, "npuemu_queue_modify: no state %u", (u32)state);
	return err ? err : q->ctx->host->queue_modify(q, state);
}

NPUEMU_API int npuemu_queue_map(struct npuemu_queue *q, struct npuemu_queue_map *map)
{
	int err = CHECK_OBJ(npuemu_queues, q, "npuemu_queue_map");

	if (!err)
		err = check_size(map, map ? map->size : 0, sizeof(*map), "npuemu_queue_map");
	return err ? err : q->ctx->host->queue_map(q, map);
}

NPUEMU_API int npuemu_queue_query(struct npuemu_queue *q, struct npuemu_queue_stat *stat)
{
	int err = CHECK_OBJ(npuemu_queues, q, "npuemu_queue_query");

	if (!err)
		err = check_size(stat, stat ? stat->size : 0, sizeof(*stat), "npuemu_queue_query");
	return err ? err : q->ctx->host->queue_query(q, stat);
}

NPUEMU_API int npuemu_doorbell(struct npuemu_queue *q)
{
	/* the hot path: the handle, and whether the board still stands */
	if (unlikely(!npuemu_slab_holds(&npuemu_queues, q, NPUEMU_SLAB_SIZE(*q))))
		return npuemu_fail(-EBADF, "npuemu_doorbell: not a queue, or it was destroyed");
	if (unlikely(READ_ONCE(q->ctx->broken)))
		return context_broken(q->ctx, "npuemu_doorbell");
	return q->ctx->host->doorbell(q);
}

/* ---- Looking and disturbing ------------------------------------------------------------------ */

NPUEMU_API int npuemu_link_query(struct npuemu *ctx, uint32_t from, uint32_t to,
				 struct npuemu_link_info *info)
{
	int err = check_ctx(ctx, "npuemu_link_query");

	if (!err)
		err = check_size(info, info ? info->size : 0, sizeof(*info), "npuemu_link_query");
	if (!err)
		err = check_device(ctx, from > to ? from : to, "npuemu_link_query");
	if (err)
		return err;
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return ctx->host->link_query(ctx, from, to, info);
}

NPUEMU_API int npuemu_process_list(struct npuemu *ctx, struct npuemu_process_info *list, int n)
{
	int err = check_ctx(ctx, "npuemu_process_list");

	if (!err && (n < 0 || (n && !list)))
		err = npuemu_fail(-EINVAL, "npuemu_process_list: no room given");
	return err ? err : ctx->host->process_list(ctx, list, n);
}

NPUEMU_API int npuemu_queue_list(struct npuemu *ctx, uint32_t slot,
				 struct npuemu_queue_stat *list, int n)
{
	int err = check_ctx(ctx, "npuemu_queue_list");

	if (!err && (n < 0 || (n && !list)))
		err = npuemu_fail(-EINVAL, "npuemu_queue_list: no room given");
	return err ? err : ctx->host->queue_list(ctx, slot, list, n);
}

NPUEMU_API int npuemu_fault_inject(struct npuemu *ctx, const struct npuemu_fault *f)
{
	struct npuemu_fault_rec r = { 0 };
	int err = check_ctx(ctx, "npuemu_fault_inject");

	if (!err)
		err = check_size(f, f ? f->size : 0, sizeof(*f), "npuemu_fault_inject");
	if (err)
		return err;
	if (f->kind > NPUEMU_FAULT_DEAD_PEER || f->rate_ppm > 1000000 || !f->rate_ppm)
		return npuemu_fail(-EINVAL, "npuemu_fault_inject: kind %u or rate %u ppm (1..1000000) is not possible",
				   f->kind, f->rate_ppm);
	if (f->kind == NPUEMU_FAULT_STATUS && npuemu_status_str(f->status)[0] == 'n')
		return npuemu_fail(-EINVAL, "npuemu_fault_inject: %u.%u is no status of this device",
				   f->status >> 8, f->status & 0xff);
	if (f->device != NPUEMU_ANY && check_device(ctx, f->device, "npuemu_fault_inject"))
		return -EINVAL;
	r.kind = f->kind;
	r.slot = f->slot;
	r.queue = f->queue;
	r.device = f->device;
	r.peer_slot = f->peer_slot;
	r.status = f->status;
	r.delay_us = f->delay_us;
	r.rate_ppm = f->rate_ppm;
	r.count = f->count;
	r.seed = f->seed;
	return ctx->host->fault_inject(ctx, &r);
}

NPUEMU_API int npuemu_fault_clear(struct npuemu *ctx)
{
	int err = check_ctx(ctx, "npuemu_fault_clear");

	return err ? err : ctx->host->fault_clear(ctx);
}

NPUEMU_API int npuemu_reap(struct npuemu *ctx)
{
	int err = check_ctx(ctx, "npuemu_reap");

	return err ? err : ctx->host->reap(ctx);
}

NPUEMU_API int npuemu_board_reset(const char *board)
{
	npuemu_log_init();
	return npuemu_user_host.board_reset(board);
}
