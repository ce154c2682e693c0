// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What everybody may see: /sys/class/npuemu/npuemuN/ of a device, and
 * /proc/PID/fdinfo/FD of a file.  Both are interfaces: names stay.
 */
#include <linux/seq_file.h>
#include <linux/sysfs.h>
#include "npuemu.h"

/* ---- Counting ----------------------------------------------------------------------- */

static void usage_queues(struct npuemu_ctx *ctx, struct npuemu_usage *u)
{
	int idx = srcu_read_lock(&npuemu_turns);
	struct npuemu_queue *q;
	struct npuemu_rq *rq;
	unsigned long i;

	xa_for_each(&ctx->queues, i, q) {
		u->queues++;
		npuemu_counters_add(&q->cnt, &u->cnt);
	}
	xa_for_each(&ctx->rqs, i, rq)
		u->rqs++;
	srcu_read_unlock(&npuemu_turns, idx);
}

u64 npuemu_bo_backed(const struct npuemu_bo *bo)
{
	u64 at, n = 0;

	if (!bo->arena.chunk)
		return 0;
	for (at = 0; at < bo->room; at += NPUEMU_CHUNK_BYTES)
		if (READ_ONCE(bo->arena.chunk[at >> NPUEMU_CHUNK_SHIFT]))
			n += min(bo->room - at, NPUEMU_CHUNK_BYTES);
	return n;
}

/* ctx->lock held */
static void usage_memory(struct npuemu_ctx *ctx, struct npuemu_usage *u)
{
	struct npuemu_bo_handle *h;
	struct npuemu_place *p;
	struct npuemu_cq *cq;
	unsigned long i;

	xa_for_each(&ctx->bos, i, h) {
		if (h->imported) {
			u->imports++;
			u->hbm_imported += h->bo->room;
		} else {
			u->buffers++;
			u->hbm_used += h->bo->room;
			u->hbm_backed += npuemu_bo_backed(h->bo);
		}
		cond_resched();
	}
	u->places = ctx->rest;
	i = 0;
	mt_for_each(&ctx->places, p, i, ULONG_MAX) {
		u->places++;
		if (p->pages)
			u->pinned_pages += p->npages;
	}
	xa_for_each(&ctx->cqs, i, cq)
		u->cqs++;
}

void npuemu_ctx_usage(struct npuemu_ctx *ctx, struct npuemu_usage *u)
{
	memset(u, 0, sizeof(*u));
	usage_queues(ctx, u);
	u->segments = npuemu_segs_count(ctx);
	/* not inside an npuemu_turns section: holders of the lock wait for those */
	mutex_lock(&ctx->lock);
	usage_memory(ctx, u);
	mutex_unlock(&ctx->lock);
}

u32 npuemu_dev_queues(const struct npuemu_dev *dev)
{
	struct npuemu_queue *q;
	struct npuemu_ctx *ctx;
	u32 slot, n = 0;
	unsigned long i;
	int idx;

	for (slot = 0; slot < NPUEMU_MAX_SLOTS; slot++) {
		idx = srcu_read_lock(&npuemu_turns);
		ctx = npuemu_ctx_slot(slot);
		if (ctx)
			xa_for_each(&ctx->queues, i, q)
				n += q->dev == dev;
		srcu_read_unlock(&npuemu_turns, idx);
	}
	return n;
}

/* ---- sysfs -------------------------------------------------------------------------- */

static struct npuemu_dev *dev_of(struct device *d)
{
	return dev_get_drvdata(d);
}

static ssize_t soc_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", npuemu_machine.soc);
}
static DEVICE_ATTR_RO(soc);

static ssize_t machine_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", npuemu_machine.name);
}
static DEVICE_ATTR_RO(machine);

static ssize_t generation_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", npuemu_machine.generation);
}
static DEVICE_ATTR_RO(generation);

static ssize_t server_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", dev_of(d)->index / npuemu_machine.devices_per_server);
}
static DEVICE_ATTR_RO(server);

static ssize_t hbm_bytes_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", npuemu_machine.hbm_bytes);
}
static DEVICE_ATTR_RO(hbm_bytes);

static ssize_t hbm_used_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lld\n", atomic64_read(&dev_of(d)->hbm_used));
}
static DEVICE_ATTR_RO(hbm_used);

static ssize_t hbm_backed_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lld\n", atomic64_read(&dev_of(d)->hbm_backed));
}
static DEVICE_ATTR_RO(hbm_backed);

static ssize_t queues_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", npuemu_dev_queues(dev_of(d)));
}
static DEVICE_ATTR_RO(queues);

static ssize_t engine_parks_show(struct device *d, struct device_attribute *attr, char *buf)
{
	struct npuemu_dev *dev = dev_of(d);
	u64 n = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(dev->worker); i++)
		n += READ_ONCE(dev->worker[i].parks);
	return sysfs_emit(buf, "%llu\n", n);
}
static DEVICE_ATTR_RO(engine_parks);

static ssize_t resets_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(dev_of(d)->resets));
}
static DEVICE_ATTR_RO(resets);

/* While a reset is under way it is "unplugged", too: nobody gets in. */
static ssize_t state_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", READ_ONCE(dev_of(d)->dead) ? "unplugged" : "running");
}
static DEVICE_ATTR_RO(state);

static struct attribute *dev_attrs[] = {
	&dev_attr_soc.attr,
	&dev_attr_machine.attr,
	&dev_attr_generation.attr,
	&dev_attr_server.attr,
	&dev_attr_hbm_bytes.attr,
	&dev_attr_hbm_used.attr,
	&dev_attr_hbm_backed.attr,
	&dev_attr_queues.attr,
	&dev_attr_engine_parks.attr,
	&dev_attr_resets.attr,
	&dev_attr_state.attr,
	NULL,
};

static const struct attribute_group dev_group = {
	.attrs = dev_attrs,
};

const struct attribute_group *npuemu_dev_groups[] = { &dev_group, NULL };

/* ---- fdinfo ------------------------------------------------------------------------- */

/*
 * Files that joined one context show the same numbers: tools that add up count
 * each npuemu-context once.
 */
void npuemu_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct npuemu_file *f = file->private_data;
	struct npuemu_usage u;
	struct npuemu_ctx *ctx;

	if (!f->dev) {
		seq_puts(m, "npuemu-device:\tctl\n");
		return;
	}
	/* it may be joining another one */
	mutex_lock(&f->lock);
	ctx = f->ctx;
	npuemu_ctx_usage(ctx, &u);
	seq_printf(m, "npuemu-device:\t%u\n", f->dev->index);
	seq_printf(m, "npuemu-context:\t%u.%u\n", ctx->slot, ctx->gen);
	seq_printf(m, "npuemu-slot:\t%u\n", ctx->slot);
	seq_printf(m, "npuemu-hbm-used:\t%llu\n", u.hbm_used);
	seq_printf(m, "npuemu-hbm-backed:\t%llu\n", u.hbm_backed);
	seq_printf(m, "npuemu-hbm-imported:\t%llu\n", u.hbm_imported);
	seq_printf(m, "npuemu-pinned-pages:\t%llu\n", u.pinned_pages);
	seq_printf(m, "npuemu-queues:\t%u\n", u.queues);
	seq_printf(m, "npuemu-wqes:\t%llu\n", u.cnt.wqes);
	seq_printf(m, "npuemu-bytes:\t%llu\n", u.cnt.bytes);
	mutex_unlock(&f->lock);
}
