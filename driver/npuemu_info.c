// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Looking around: the board, its devices, links, processes and queues; and the
 * table of injected faults, which every engine reads when its generation moves.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>
#include "npuemu.h"

/* ---- The board and its devices ------------------------------------------------------ */

/* The lock keeps the context: a JOIN may be about to replace it. */
static int query_ctx(struct npuemu_file *f, struct npuemu_ioc_query *a)
{
	struct npuemu_ctx *ctx;
	int err;

	mutex_lock(&f->lock);
	ctx = f->ctx;
	err = ctx->mm != current->mm ? -EPERM : npuemu_ctx_check(ctx);
	if (!err && READ_ONCE(f->dev->dead))
		err = -ENODEV;
	a->slot = ctx->slot;
	a->ring_offset = ctx->window;
	a->ring_bytes = NPUEMU_RING_WINDOW;
	a->db_offset = a->ring_offset + NPUEMU_RING_WINDOW;
	a->db_bytes = NPUEMU_DB_WINDOW;
	a->rec_offset = a->db_offset + NPUEMU_DB_WINDOW;
	a->rec_bytes = NPUEMU_REC_WINDOW;
	mutex_unlock(&f->lock);
	return err;
}

int npuemu_ioc_query(struct npuemu_file *f, struct npuemu_ioc_query *a)
{
	const struct npuemu_machine *m = &npuemu_machine;

	memset(a, 0, sizeof(*a));
	a->version = NPUEMU_UAPI_VERSION;
	a->caps = NPUEMU_CAP_PAGEABLE | NPUEMU_CAP_DMABUF | NPUEMU_CAP_EVENTFD;
	a->device = f->dev ? f->dev->index : ~0u;
	a->devices = m->devices;
	a->servers = m->servers;
	a->generation = m->generation;
	a->has_udma = m->engine[NPUEMU_ENGINE_UDMA].present;
	a->slot = ~0u;
	a->board_id = npuemu_board_id;
	a->poll_us = READ_ONCE(npuemu_poll_us);
	a->hbm_bytes = m->hbm_bytes;
	a->budget_bytes = npuemu_budget;
	a->backed_bytes = atomic64_read(&npuemu_backed_bytes);
	strscpy(a->machine, m->name, sizeof(a->machine));
	strscpy(a->soc, m->soc, sizeof(a->soc));
	return f->dev ? query_ctx(f, a) : 0;
}

static u32 queues_count(struct npuemu_ctx *ctx, const struct npuemu_dev *dev)
{
	int idx = srcu_read_lock(&npuemu_turns);
	struct npuemu_queue *q;
	unsigned long i;
	u32 n = 0;

	xa_for_each(&ctx->queues, i, q)
		n += q->dev == dev;
	srcu_read_unlock(&npuemu_turns, idx);
	return n;
}

static bool has_bo_on(struct npuemu_ctx *ctx, const struct npuemu_dev *dev)
{
	struct npuemu_bo_handle *h;
	bool found = false;
	unsigned long i;

	mutex_lock(&ctx->lock);
	xa_for_each(&ctx->bos, i, h) {
		found = h->bo->dev == dev;
		if (found)
			break;
	}
	mutex_unlock(&ctx->lock);
	return found;
}

int npuemu_ioc_device(struct npuemu_file *f, struct npuemu_ioc_device *a)
{
	struct npuemu_dev *dev;
	struct npuemu_ctx *ctx;
	u32 i, n;

	if (a->device >= npuemu_machine.devices)
		return -EINVAL;
	dev = &npuemu_devs[array_index_nospec(a->device, npuemu_machine.devices)];
	memset(a, 0, sizeof(*a));
	a->device = dev->index;
	a->server = dev->index / npuemu_machine.devices_per_server;
	a->hbm_bytes = npuemu_machine.hbm_bytes;
	a->hbm_used = atomic64_read(&dev->hbm_used);
	a->hbm_backed = atomic64_read(&dev->hbm_backed);
	for (i = 0; i < ARRAY_SIZE(dev->worker); i++) {
		a->engine_turns += READ_ONCE(dev->worker[i].turns);
		a->engine_parks += READ_ONCE(dev->worker[i].parks);
		a->engine_sleeps += READ_ONCE(dev->worker[i].sleeps);
		a->db_faults += READ_ONCE(dev->worker[i].db_faults);
	}
	a->db_missed = atomic64_read(&npuemu_db_missed);
	a->dead = READ_ONCE(dev->dead);
	for (i = 0; i < NPUEMU_MAX_SLOTS; i++) {
		ctx = npuemu_ctx_get(i);
		if (!ctx)
			continue;
		n = queues_count(ctx, dev);
		a->queues += n;
		a->processes += n || has_bo_on(ctx, dev);
		npuemu_ctx_put(ctx);
	}
	return 0;
}

int npuemu_ioc_link(struct npuemu_file *f, struct npuemu_ioc_link *a)
{
	const struct npuemu_machine *m = &npuemu_machine;
	const struct npuemu_link_class *l;
	struct npuemu_link_counters *c;
	struct npuemu_queue *q;
	struct npuemu_ctx *ctx;
	unsigned long i;
	u32 slot;
	int idx;

	if (a->from >= m->devices || a->to >= m->devices)
		return -EINVAL;
	a->from = array_index_nospec(a->from, m->devices);
	a->to = array_index_nospec(a->to, m->devices);
	l = npuemu_machine_link(m, a->from, a->to);
	c = &npuemu_links[a->from * NPUEMU_MAX_DEVICES + a->to];
	a->latency_ns = l->latency_ns;
	a->mbytes_per_s = l->pair_mbytes_per_s;
	a->wqes = READ_ONCE(c->wqes);
	a->bytes = READ_ONCE(c->bytes);
	memset(a->name, 0, sizeof(a->name));
	strscpy(a->name, l->name, sizeof(a->name));
	/* and what queues have not added yet */
	for (slot = 0; slot < NPUEMU_MAX_SLOTS; slot++) {
		idx = srcu_read_lock(&npuemu_turns);
		ctx = npuemu_ctx_slot(slot);
		if (ctx)
			xa_for_each(&ctx->queues, i, q)
				if (q->jfs.device == a->from &&
				    READ_ONCE(q->cnt.link_to) == a->to) {
					a->wqes += READ_ONCE(q->cnt.link_wqes);
					a->bytes += READ_ONCE(q->cnt.link_bytes);
				}
		srcu_read_unlock(&npuemu_turns, idx);
	}
	return 0;
}

/* ---- Lists ---------------------------------------------------------------------------------- */

/* Everybody may see who is there and how much he does; addresses are his own. */
static bool may_see_addresses(const struct npuemu_ctx *ctx)
{
	return uid_eq(ctx->uid, current_fsuid()) || capable(CAP_SYS_ADMIN);
}

static void process_fill(struct npuemu_ctx *ctx, struct npuemu_ioc_process *p)
{
	struct npuemu_usage u;

	npuemu_ctx_usage(ctx, &u);
	memset(p, 0, sizeof(*p));
	p->slot = ctx->slot;
	p->pid = ctx->pid;
	p->queues = u.queues;
	p->segments = u.segments;
	p->buffers = u.buffers;
	p->imports = u.imports;
	p->hbm_used = u.hbm_used;
	p->hbm_backed = u.hbm_backed;
	p->cnt = u.cnt;
	strscpy(p->comm, ctx->comm, sizeof(p->comm));
	if (may_see_addresses(ctx))
		npuemu_describe_sleeper(ctx, p->waits, sizeof(p->waits));
}

int npuemu_ioc_processes(struct npuemu_file *f, struct npuemu_ioc_list *a)
{
	struct npuemu_ioc_process __user *to = u64_to_user_ptr(a->list);
	struct npuemu_ioc_process *p;
	struct npuemu_ctx *ctx;
	u32 i, n = 0;
	int err = 0;

	if (a->pad || a->slot)
		return -EINVAL;
	p = kmalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		return -ENOMEM;
	for (i = 0; i < NPUEMU_MAX_SLOTS && !err; i++) {
		ctx = npuemu_ctx_get(i);
		if (!ctx)
			continue;
		if (READ_ONCE(ctx->life)) {
			if (n < a->nr) {
				process_fill(ctx, p);
				if (copy_to_user(&to[n], p, sizeof(*p)))
					err = -EFAULT;
			}
			n++;
		}
		npuemu_ctx_put(ctx);
	}
	kfree(p);
	a->total = n;
	return err;
}

/* The next queue at or after @at. */
static bool queue_next(struct npuemu_ctx *ctx, unsigned long *at,
		       struct npuemu_ioc_queue_query *out)
{
	int idx = srcu_read_lock(&npuemu_turns);
	struct npuemu_queue *q = xa_find(&ctx->queues, at, ULONG_MAX, XA_PRESENT);

	if (q)
		npuemu_queue_stat(q, out);
	srcu_read_unlock(&npuemu_turns, idx);
	return q;
}

int npuemu_ioc_queues(struct npuemu_file *f, struct npuemu_ioc_list *a)
{
	struct npuemu_ioc_queue_query __user *to = u64_to_user_ptr(a->list);
	struct npuemu_ioc_queue_query *p;
	struct npuemu_ctx *ctx;
	unsigned long at;
	bool causes;
	u32 n = 0;
	int err = 0;

	if (a->pad)
		return -EINVAL;
	ctx = npuemu_ctx_get(a->slot);
	if (!ctx)
		return -ESRCH;
	p = kmalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		err = -ENOMEM;
	causes = may_see_addresses(ctx);
	for (at = 0; !err && queue_next(ctx, &at, p); at++, n++) {
		if (!causes)
			memset(p->cause, 0, sizeof(p->cause));
		if (n < a->nr && copy_to_user(&to[n], p, sizeof(*p)))
			err = -EFAULT;
		cond_resched();
	}
	kfree(p);
	npuemu_ctx_put(ctx);
	a->total = n;
	return err;
}

/* ---- Injected faults --------------------------------------------------------------------- */

u32 npuemu_fault_gen;
static struct npuemu_fault_rec faults[NPUEMU_MAX_FAULTS];
static u32 nfaults;
static u32 serial;
static DEFINE_MUTEX(faults_lock);

/* Queues load the table anew; who sees the generation sees the table, under the lock. */
static void faults_changed(void)
{
	smp_store_release(&npuemu_fault_gen, npuemu_fault_gen + 1); /* after the table */
}

int npuemu_ioc_fault_inject(struct npuemu_file *f, struct npuemu_ioc_fault *a)
{
	struct npuemu_fault_rec r = {
		.kind = a->kind, .slot = a->slot, .queue = a->queue, .device = a->device,
		.peer_slot = a->peer_slot, .status = a->status, .delay_us = a->delay_us,
		.rate_ppm = a->rate_ppm, .count = a->count, .seed = a->seed,
	};
	int err = -ENOSPC;

	if (a->pad || a->kind >= NPUEMU_FK_KINDS || a->rate_ppm > 1000000 ||
	    a->delay_us > 60000000 || a->status > 0xffff)
		return -EINVAL;
	mutex_lock(&faults_lock);
	if (nfaults < NPUEMU_MAX_FAULTS) {
		r.serial = ++serial;
		faults[nfaults++] = r;
		faults_changed();
		err = 0;
	}
	mutex_unlock(&faults_lock);
	return err;
}

int npuemu_ioc_fault_clear(struct npuemu_file *f, void *a)
{
	mutex_lock(&faults_lock);
	nfaults = 0;
	faults_changed();
	mutex_unlock(&faults_lock);
	return 0;
}

/* In a turn: a consistent copy. */
u32 npuemu_op_faults(struct npuemu_chip *chip, struct npuemu_fault_rec *out)
{
	u32 n;

	mutex_lock(&faults_lock);
	n = nfaults;
	memcpy(out, faults, n * sizeof(*out));
	mutex_unlock(&faults_lock);
	return n;
}
