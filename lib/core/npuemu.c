// SPDX-License-Identifier: MIT
/*
 * The public API: boards, and looking at them.  Arguments are checked here and
 * in memory.c and queues.c, once; then the host does it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "check.h"

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

int npuemu_check_whole(struct npuemu *ctx, const char *what)
{
	if (unlikely(READ_ONCE(ctx->broken) == -EPERM))
		return npuemu_fail(-EPERM, "%s: the board was opened by process %d; after fork() the child must npuemu_open() again",
				   what, ctx->pid);
	if (unlikely(READ_ONCE(ctx->broken) || ctx->host->check(ctx)))
		return npuemu_fail(-EUCLEAN, "%s: board \"%s\" was reset or is damaged: close it, and open it again (npuemu-ctl reset if that fails)",
				   what, ctx->board);
	return 0;
}

int npuemu_check_ctx(struct npuemu *ctx, const char *what)
{
	if (!context_known(ctx))
		return npuemu_fail(-EBADF, "%s: not an open board", what);
	return npuemu_check_whole(ctx, what);
}

int npuemu_check_worker(struct npuemu *ctx, const char *what)
{
	int err = npuemu_check_ctx(ctx, what);

	if (!err && ctx->observer)
		return npuemu_fail(-EACCES, "%s: the board was opened with NPUEMU_OPEN_OBSERVE", what);
	return err;
}

int npuemu_check_size(u32 size, size_t want, const char *what)
{
	if (size != want)
		return npuemu_fail(-EINVAL, "%s: size is %u, this library's struct has %zu: set it to sizeof()",
				   what, size, want);
	return 0;
}

int npuemu_check_device(struct npuemu *ctx, u32 device, const char *what)
{
	if (device >= ctx->devices)
		return npuemu_fail(-EINVAL, "%s: device %u does not exist: a %s has 0..%u", what, device,
				   ctx->machine, ctx->devices - 1);
	return 0;
}

void *npuemu_new_obj(struct npuemu_slab *slab)
{
	void *p = npuemu_slab_alloc(slab);

	if (!p)
		npuemu_fail(-ENOMEM, "no %s handle left in this process (%u at most)", slab->what,
			    slab->max);
	return p;
}

/* ---- Opening --------------------------------------------------------------------- */

/* The host asked for; else the kernel's, if it has devices for this user. */
static int host_find(const char *name, const struct npuemu_host **host)
{
	npuemu_log_init();
	if (!name)
		name = npuemu_getenv("NPUEMU_HOST");
	if (name ? !strcmp(name, "kernel") : npuemu_kernel_present())
		*host = &npuemu_kernel_host;
	else if (!name || !strcmp(name, "user"))
		*host = &npuemu_user_host;
	else
		return npuemu_fail(-EINVAL, "host \"%.40s\": there are \"user\" and \"kernel\"", name);
	return 0;
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
	for (i = 0; i < ARRAY_SIZE(contexts); i++)
		if (contexts[i])
			contexts[i]->broken = -EPERM;
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
	err = CHECK_STRUCT(attr, "npuemu_open");
	if (err)
		return err;
	if (attr->flags & ~(NPUEMU_OPEN_OBSERVE | NPUEMU_OPEN_EXISTING))
		return npuemu_fail(-EINVAL, "npuemu_open: unknown flags %#x", attr->flags);
	err = host_find(attr->host, &host);
	if (err)
		return err;
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
	} else if (READ_ONCE(ctx->broken) == -EPERM) {
		err = npuemu_check_whole(ctx, "npuemu_close");
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
	int err = npuemu_check_ctx(ctx, "npuemu_query");

	if (!err)
		err = CHECK_STRUCT(info, "npuemu_query");
	if (err)
		return err;
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return ctx->host->query(ctx, info);
}

NPUEMU_API int npuemu_device_query(struct npuemu *ctx, uint32_t device,
				   struct npuemu_device_info *info)
{
	int err = npuemu_check_ctx(ctx, "npuemu_device_query");

	if (!err)
		err = CHECK_STRUCT(info, "npuemu_device_query");
	if (!err)
		err = npuemu_check_device(ctx, device, "npuemu_device_query");
	if (err)
		return err;
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return ctx->host->device_query(ctx, device, info);
}

/* ---- Looking and disturbing ------------------------------------------------------------------ */

NPUEMU_API int npuemu_link_query(struct npuemu *ctx, uint32_t from, uint32_t to,
				 struct npuemu_link_info *info)
{
	int err = npuemu_check_ctx(ctx, "npuemu_link_query");

	if (!err)
		err = CHECK_STRUCT(info, "npuemu_link_query");
	if (!err)
		err = npuemu_check_device(ctx, from > to ? from : to, "npuemu_link_query");
	if (err)
		return err;
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return ctx->host->link_query(ctx, from, to, info);
}

NPUEMU_API int npuemu_process_list(struct npuemu *ctx, struct npuemu_process_info *list, int n)
{
	int err = npuemu_check_ctx(ctx, "npuemu_process_list");

	if (!err && (n < 0 || (n && !list)))
		err = npuemu_fail(-EINVAL, "npuemu_process_list: no room given");
	return err ? err : ctx->host->process_list(ctx, list, n);
}

NPUEMU_API int npuemu_queue_list(struct npuemu *ctx, uint32_t slot,
				 struct npuemu_queue_stat *list, int n)
{
	int err = npuemu_check_ctx(ctx, "npuemu_queue_list");

	if (!err && (n < 0 || (n && !list)))
		err = npuemu_fail(-EINVAL, "npuemu_queue_list: no room given");
	return err ? err : ctx->host->queue_list(ctx, slot, list, n);
}

NPUEMU_API int npuemu_fault_inject(struct npuemu *ctx, const struct npuemu_fault *f)
{
	struct npuemu_fault_rec r = { 0 };
	int err = npuemu_check_ctx(ctx, "npuemu_fault_inject");

	if (!err)
		err = CHECK_STRUCT(f, "npuemu_fault_inject");
	if (err)
		return err;
	if (f->kind > NPUEMU_FAULT_DEAD_PEER || f->rate_ppm > 1000000 || !f->rate_ppm)
		return npuemu_fail(-EINVAL, "npuemu_fault_inject: kind %u or rate %u ppm (1..1000000) is not possible",
				   f->kind, f->rate_ppm);
	if (f->kind == NPUEMU_FAULT_STATUS && npuemu_status_str(f->status)[0] == 'n')
		return npuemu_fail(-EINVAL, "npuemu_fault_inject: %u.%u is no status of this device",
				   f->status >> 8, f->status & 0xff);
	if (f->device != NPUEMU_ANY && npuemu_check_device(ctx, f->device, "npuemu_fault_inject"))
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
	int err = npuemu_check_ctx(ctx, "npuemu_fault_clear");

	return err ? err : ctx->host->fault_clear(ctx);
}

NPUEMU_API int npuemu_reap(struct npuemu *ctx)
{
	int err = npuemu_check_ctx(ctx, "npuemu_reap");

	return err ? err : ctx->host->reap(ctx);
}

NPUEMU_API int npuemu_board_reset(const char *board)
{
	const struct npuemu_host *host;
	int err = host_find(NULL, &host);

	return err ? err : host->board_reset(board);
}
