// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * /sys/kernel/debug/npuemu/: everything there is, for root.  Not an interface;
 * the leak counters are what tests read.
 *
 * Any of it may go away while it is read.  So what lies in contexts is copied
 * out, one object at a time, in the section or under the lock that keeps it, and
 * printed afterwards; a position is a slot and an index in it, which mean
 * something whatever came or went in between.  Neither addresses of the kernel
 * nor token values are shown.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/user_namespace.h>
#include "npuemu.h"

/* Positions: 0 is the heading, then slot * TABLE + index. */
#define TABLE		4096u
#define POS(slot, i)	((loff_t)(slot) * TABLE + (i) + 1)
#define POS_SLOT(pos)	((u32)(((pos) - 1) / TABLE))
#define POS_INDEX(pos)	((u32)(((pos) - 1) % TABLE))

static_assert(NPUEMU_CTX_QUEUES <= TABLE && NPUEMU_CTX_SEGS <= TABLE);

static struct dentry *dir;

/* ---- devices, engines, leaks -------------------------------------------------------- */

static int devices_show(struct seq_file *m, void *unused)
{
	struct npuemu_dev *dev;
	u32 i;

	seq_puts(m, "device server state resets hbm_bytes hbm_used hbm_backed queues\n");
	for (i = 0; i < npuemu_machine.devices; i++) {
		dev = &npuemu_devs[i];
		seq_printf(m, "%u %u %s %u %llu %lld %lld %u\n", i,
			   i / npuemu_machine.devices_per_server,
			   READ_ONCE(dev->dead) ? "unplugged" : "running", READ_ONCE(dev->resets),
			   npuemu_machine.hbm_bytes, atomic64_read(&dev->hbm_used),
			   atomic64_read(&dev->hbm_backed), npuemu_dev_queues(dev));
		cond_resched();
	}
	seq_printf(m, "backed %lld of %llu\n", atomic64_read(&npuemu_backed_bytes), npuemu_budget);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(devices);

static int engines_show(struct seq_file *m, void *unused)
{
	static const char *const kinds[] = { "udma", "sdma" };
	struct npuemu_worker *w;
	u32 i, k;

	seq_puts(m, "device engine hot turns parks sleeps db_faults\n");
	for (i = 0; i < npuemu_machine.devices; i++)
		for (k = 0; k < ARRAY_SIZE(kinds); k++) {
			w = &npuemu_devs[i].worker[k];
			seq_printf(m, "%u %s %u %llu %llu %llu %llu\n", i, kinds[k],
				   READ_ONCE(w->nhot), READ_ONCE(w->turns), READ_ONCE(w->parks),
				   READ_ONCE(w->sleeps), READ_ONCE(w->db_faults));
		}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(engines);

static int leaks_show(struct seq_file *m, void *unused)
{
	static const char *const names[] = {
		[NPUEMU_LEAK_CTX] = "contexts",
		[NPUEMU_LEAK_BO] = "buffers",
		[NPUEMU_LEAK_HANDLE] = "handles",
		[NPUEMU_LEAK_PLACE] = "places",
		[NPUEMU_LEAK_PINNED] = "pinned_pages",
		[NPUEMU_LEAK_SEG] = "segments",
		[NPUEMU_LEAK_CQ] = "cqs",
		[NPUEMU_LEAK_RQ] = "rqs",
		[NPUEMU_LEAK_QUEUE] = "queues",
		[NPUEMU_LEAK_CHUNK] = "chunks",
		[NPUEMU_LEAK_DMABUF] = "dmabufs",
	};
	u32 i;

	static_assert(ARRAY_SIZE(names) == NPUEMU_LEAKS);
	for (i = 0; i < NPUEMU_LEAKS; i++)
		seq_printf(m, "%s %d\n", names[i], atomic_read(&npuemu_leaks[i]));
	seq_printf(m, "db_missed %lld\n", atomic64_read(&npuemu_db_missed));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(leaks);

/* ---- contexts ----------------------------------------------------------------------- */

/* The context at or after the position, referenced. */
static struct npuemu_ctx *context_at(loff_t *pos)
{
	struct npuemu_ctx *ctx;

	for (; *pos <= NPUEMU_MAX_SLOTS; ++*pos) {
		ctx = npuemu_ctx_get(*pos - 1);
		if (ctx)
			return ctx;
	}
	return NULL;
}

static void *contexts_start(struct seq_file *m, loff_t *pos)
{
	return *pos ? context_at(pos) : SEQ_START_TOKEN;
}

static void contexts_stop(struct seq_file *m, void *v)
{
	if (v && v != SEQ_START_TOKEN)
		npuemu_ctx_put(v);
}

static void *contexts_next(struct seq_file *m, void *v, loff_t *pos)
{
	contexts_stop(m, v);
	++*pos;
	return context_at(pos);
}

static const char *life_name(const struct npuemu_ctx *ctx)
{
	if (READ_ONCE(ctx->closing))
		return "closing";
	return READ_ONCE(ctx->broken) ? "broken" : "live";
}

/* Printing into a seq_file does not sleep. */
static void sleepers_show(struct seq_file *m, struct npuemu_ctx *ctx)
{
	struct npuemu_sleeper *s;
	u64 now = ktime_get_ns(), ms;

	spin_lock(&ctx->sleepers_lock);
	list_for_each_entry(s, &ctx->sleepers, node) {
		ms = now > s->since_ns ? div_u64(now - s->since_ns, NSEC_PER_MSEC) : 0;
		if (s->kind == NPUEMU_WAIT_CQ)
			seq_printf(m, "  waits for CQ %u beyond entry %llu, for %llu ms\n", s->id,
				   s->expected, ms);
		else
			seq_printf(m, "  waits for word %#llx to compare with %#llx, for %llu ms\n",
				   s->object, s->expected, ms);
	}
	spin_unlock(&ctx->sleepers_lock);
}

static int contexts_show(struct seq_file *m, void *v)
{
	struct npuemu_usage u;
	struct npuemu_ctx *ctx = v;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "slot gen pid uid state device trace queues cqs rqs segments buffers imports places pinned_pages hbm_used hbm_backed hbm_imported wqes cqes bytes doorbells errors flushed helped faults rnr comm\n");
		return 0;
	}
	npuemu_ctx_usage(ctx, &u);
	seq_printf(m, "%u %u %d %u %s %u %d ", ctx->slot, ctx->gen, ctx->pid,
		   from_kuid_munged(seq_user_ns(m), ctx->uid), life_name(ctx), ctx->home->index,
		   READ_ONCE(ctx->chip.trace));
	seq_printf(m, "%u %u %u %u %u %u %u %llu %llu %llu %llu ", u.queues, u.cqs, u.rqs,
		   u.segments, u.buffers, u.imports, u.places, u.pinned_pages, u.hbm_used,
		   u.hbm_backed, u.hbm_imported);
	seq_printf(m, "%llu %llu %llu %llu %llu %llu %llu %llu %llu ", u.cnt.wqes, u.cnt.cqes,
		   u.cnt.bytes, u.cnt.doorbells, u.cnt.errors, u.cnt.flushed, u.cnt.helped,
		   u.cnt.faults, u.cnt.rnr);
	seq_escape(m, ctx->comm, " \t\n\\");
	seq_putc(m, '\n');
	sleepers_show(m, ctx);
	return 0;
}

static const struct seq_operations contexts_sops = {
	.start = contexts_start,
	.next = contexts_next,
	.stop = contexts_stop,
	.show = contexts_show,
};
DEFINE_SEQ_ATTRIBUTE(contexts);

/* ---- queues ------------------------------------------------------------------------- */

struct queue_seen {
	struct npuemu_ioc_queue_query stat;
	u32 slot;
	u32 doorbell;		/* as it is stored in the page just now */
	u32 db_state;
	u64 parked_at;
	const char *waits;
	u32 rq;
	u32 cq;
	u32 cq_pi;
	u32 cq_ci;
	u32 cq_depth;
};

/* What the last turn ended with; not owned, so it may be a mixture of two. */
static const char *waits_for(const struct npuemu_queue *q)
{
	const struct npuemu_wqe *w = &q->jfs.cur;

	if (!READ_ONCE(q->waits))
		return "-";
	if (READ_ONCE(q->pages))
		return "pager";
	if (READ_ONCE(q->jfs.busy) && !READ_ONCE(w->executed)) {
		if (READ_ONCE(w->deadline) || READ_ONCE(w->retry_at))
			return "receiver";
		return READ_ONCE(w->not_before) ? "injected-delay" : "other";
	}
	return READ_ONCE(q->cq->jfc.starved) ? "room-in-cq" : "other";
}

/* In an npuemu_turns section. */
static void queue_copy(struct npuemu_queue *q, struct queue_seen *s)
{
	npuemu_queue_stat(q, &s->stat);
	s->slot = q->ctx->slot;
	s->doorbell = READ_ONCE(*q->jfs.db_pi);
	s->db_state = READ_ONCE(q->db_state);
	s->parked_at = READ_ONCE(q->parked_at);
	s->waits = waits_for(q);
	s->rq = q->rq ? q->rq->id : 0;
	s->cq = q->cq->handle;
	s->cq_pi = READ_ONCE(q->cq->jfc.pi);
	s->cq_ci = READ_ONCE(*q->cq->jfc.ci_rec);
	s->cq_depth = q->cq->jfc.mask + 1;
}

static struct queue_seen *queue_at(struct seq_file *m, loff_t *pos)
{
	struct queue_seen *s = m->private;
	struct npuemu_queue *q = NULL;
	struct npuemu_ctx *ctx;
	unsigned long i;
	u32 slot;
	int idx;

	for (slot = POS_SLOT(*pos), i = POS_INDEX(*pos); slot < NPUEMU_MAX_SLOTS; slot++, i = 0) {
		idx = srcu_read_lock(&npuemu_turns);
		ctx = npuemu_ctx_slot(slot);
		if (ctx)
			q = xa_find(&ctx->queues, &i, TABLE - 1, XA_PRESENT);
		if (q)
			queue_copy(q, s);
		srcu_read_unlock(&npuemu_turns, idx);
		if (q) {
			*pos = POS(slot, i);
			return s;
		}
	}
	*pos = POS(NPUEMU_MAX_SLOTS, 0);
	return NULL;
}

static void *queues_start(struct seq_file *m, loff_t *pos)
{
	return *pos ? (void *)queue_at(m, pos) : SEQ_START_TOKEN;
}

static void *queues_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return queue_at(m, pos);
}

static void nothing_stop(struct seq_file *m, void *v)
{
}

static void parked_show(struct seq_file *m, const struct queue_seen *s)
{
	static const char *const names[] = {
		[NPUEMU_DB_PARKED] = "parked",
		[NPUEMU_DB_RUN] = "run",
		[NPUEMU_DB_LOST] = "lost",
		[NPUEMU_DB_DEAD] = "dead",
	};
	u64 now = ktime_get_ns();

	seq_printf(m, " %s", s->db_state < ARRAY_SIZE(names) ? names[s->db_state] : "?");
	/* 0: not since it was made */
	if (s->db_state == NPUEMU_DB_PARKED && s->parked_at && now > s->parked_at)
		seq_printf(m, " %llu", div_u64(now - s->parked_at, NSEC_PER_MSEC));
	else
		seq_puts(m, " -");
}

static int queues_show(struct seq_file *m, void *v)
{
	static const char *const states[] = { "RESET", "READY", "SUSPENDED", "ERROR" };
	const struct queue_seen *s = v;
	const struct npuemu_ioc_queue_query *q = &s->stat;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "slot queue device type state depth pi ci doorbell page parked_ms waits status cq cq_pi cq_ci cq_depth rq wqes cqes bytes doorbells errors flushed helped faults rnr cause\n");
		return 0;
	}
	seq_printf(m, "%u %u %u %s %s %u %u %u %u", s->slot, q->id, q->device,
		   q->type ? "sdma" : "udma",
		   q->state < ARRAY_SIZE(states) ? states[q->state] : "?", q->depth, q->pi, q->ci,
		   s->doorbell);
	parked_show(m, s);
	seq_printf(m, " %s %u/%u %u %u %u %u %u", s->waits, q->last_status >> 8,
		   q->last_status & 0xff, s->cq, s->cq_pi, s->cq_ci, s->cq_depth, s->rq);
	seq_printf(m, " %llu %llu %llu %llu %llu %llu %llu %llu %llu ", q->cnt.wqes, q->cnt.cqes,
		   q->cnt.bytes, q->cnt.doorbells, q->cnt.errors, q->cnt.flushed, q->cnt.helped,
		   q->cnt.faults, q->cnt.rnr);
	seq_printf(m, "%s\n", q->cause[0] ? q->cause : "-");
	return 0;
}

static const struct seq_operations queues_sops = {
	.start = queues_start,
	.next = queues_next,
	.stop = nothing_stop,
	.show = queues_show,
};

static int queues_open(struct inode *inode, struct file *file)
{
	return seq_open_private(file, &queues_sops, sizeof(struct queue_seen));
}

static const struct file_operations queues_fops = {
	.owner = THIS_MODULE,
	.open = queues_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = seq_release_private,
};

/* ---- segments ----------------------------------------------------------------------- */

struct segment_seen {
	struct npuemu_seg_rec rec;
	u32 slot;
	u32 handle;
	bool live;
	bool revoked;
};

/* The first at or after @i that exists, into @s: its index, or TABLE. */
static u32 segment_copy(struct npuemu_ctx *ctx, u32 i, struct segment_seen *s)
{
	const struct npuemu_segment *block, *seg;

	mutex_lock(&ctx->lock);
	for (; ctx->segs && i < NPUEMU_CTX_SEGS; i++) {
		block = ctx->segments[i / 64];
		if (!block) {
			i |= 63;
			continue;
		}
		seg = &block[i % 64];
		if (!seg->bo)
			continue;
		s->rec = ctx->segs[i];
		s->rec.token_value = 0;
		s->slot = ctx->slot;
		s->handle = seg->handle;
		s->live = seg->live;
		s->revoked = READ_ONCE(seg->bo->revoked);
		mutex_unlock(&ctx->lock);
		return i;
	}
	mutex_unlock(&ctx->lock);
	return TABLE;
}

/* The reference, not an npuemu_turns section: holders of ctx->lock wait for those. */
static struct segment_seen *segment_at(struct seq_file *m, loff_t *pos)
{
	struct segment_seen *s = m->private;
	struct npuemu_ctx *ctx;
	u32 slot, i;

	for (slot = POS_SLOT(*pos), i = POS_INDEX(*pos); slot < NPUEMU_MAX_SLOTS; slot++, i = 0) {
		ctx = npuemu_ctx_get(slot);
		if (!ctx)
			continue;
		i = segment_copy(ctx, i, s);
		npuemu_ctx_put(ctx);
		if (i < TABLE) {
			*pos = POS(slot, i);
			return s;
		}
	}
	*pos = POS(NPUEMU_MAX_SLOTS, 0);
	return NULL;
}

static void *segments_start(struct seq_file *m, loff_t *pos)
{
	return *pos ? (void *)segment_at(m, pos) : SEQ_START_TOKEN;
}

static void *segments_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return segment_at(m, pos);
}

static int segments_show(struct seq_file *m, void *v)
{
	const struct segment_seen *s = v;
	u32 access;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "slot token_id device handle va len offset access token state\n");
		return 0;
	}
	access = s->rec.access;
	seq_printf(m, "%u %u %u %u %#llx %llu %llu ", s->slot, s->rec.token_id, s->rec.device,
		   s->handle, s->rec.va, s->rec.len, s->rec.off);
	seq_printf(m, "%s%s%s%s %s %s\n", access & NPUEMU_ACCESS_LOCAL ? "l" : "",
		   access & NPUEMU_ACCESS_READ ? "r" : "", access & NPUEMU_ACCESS_WRITE ? "w" : "",
		   access & NPUEMU_ACCESS_ATOMIC ? "a" : "",
		   access & NPUEMU_SEGREC_NO_TOKEN ? "no" : "yes",
		   !s->live ? "going" : s->revoked ? "revoked" : "live");
	return 0;
}

static const struct seq_operations segments_sops = {
	.start = segments_start,
	.next = segments_next,
	.stop = nothing_stop,
	.show = segments_show,
};

static int segments_open(struct inode *inode, struct file *file)
{
	return seq_open_private(file, &segments_sops, sizeof(struct segment_seen));
}

static const struct file_operations segments_fops = {
	.owner = THIS_MODULE,
	.open = segments_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = seq_release_private,
};

/* ---- buffers ------------------------------------------------------------------------ */

/*
 * The lock keeps what is in the list, even one whose last reference has gone:
 * it leaves the list before it is taken apart.
 */
static void *buffers_start(struct seq_file *m, loff_t *pos)
{
	mutex_lock(&npuemu_bo_list_lock);
	return seq_list_start_head(&npuemu_bo_list, *pos);
}

static void *buffers_next(struct seq_file *m, void *v, loff_t *pos)
{
	return seq_list_next(v, &npuemu_bo_list, pos);
}

static void buffers_stop(struct seq_file *m, void *v)
{
	mutex_unlock(&npuemu_bo_list_lock);
}

/* Made by a context that is there, by one that is gone, or by somebody else. */
static void maker_show(struct seq_file *m, const struct npuemu_bo *bo)
{
	struct npuemu_ctx *ctx;
	int idx;

	if (!bo->owner_life) {
		seq_puts(m, " - foreign");
		return;
	}
	idx = srcu_read_lock(&npuemu_turns);
	ctx = npuemu_ctx_slot(bo->owner_slot);
	seq_printf(m, " %u %s", bo->owner_slot,
		   ctx && READ_ONCE(ctx->life) == bo->owner_life ? "alive" : "gone");
	srcu_read_unlock(&npuemu_turns, idx);
}

static int buffers_show(struct seq_file *m, void *v)
{
	const struct npuemu_bo *bo = list_entry(v, struct npuemu_bo, node);

	if (v == &npuemu_bo_list) {
		seq_puts(m, "device bytes room backed refs map_offset slot maker uid named freed revoked\n");
		return 0;
	}
	seq_printf(m, "%u %llu %llu %llu %u %#llx", bo->dev->index, bo->bytes, bo->room,
		   npuemu_bo_backed(bo), kref_read(&bo->ref), bo->map_offset);
	maker_show(m, bo);
	seq_printf(m, " %u %s %s %s\n", from_kuid_munged(seq_user_ns(m), bo->uid),
		   READ_ONCE(bo->name_id) ? "yes" : "no", READ_ONCE(bo->freed) ? "yes" : "no",
		   READ_ONCE(bo->revoked) ? "yes" : "no");
	cond_resched();
	return 0;
}

static const struct seq_operations buffers_sops = {
	.start = buffers_start,
	.next = buffers_next,
	.stop = buffers_stop,
	.show = buffers_show,
};
DEFINE_SEQ_ATTRIBUTE(buffers);

/* ---- The folder --------------------------------------------------------------------- */

/* Without debugfs there is nothing to see, and nothing wrong. */
void npuemu_debugfs_init(void)
{
	dir = debugfs_create_dir("npuemu", NULL);
	debugfs_create_file("devices", 0400, dir, NULL, &devices_fops);
	debugfs_create_file("engines", 0400, dir, NULL, &engines_fops);
	debugfs_create_file("contexts", 0400, dir, NULL, &contexts_fops);
	debugfs_create_file("queues", 0400, dir, NULL, &queues_fops);
	debugfs_create_file("segments", 0400, dir, NULL, &segments_fops);
	debugfs_create_file("buffers", 0400, dir, NULL, &buffers_fops);
	debugfs_create_file("leaks", 0400, dir, NULL, &leaks_fops);
}

void npuemu_debugfs_exit(void)
{
	debugfs_remove(dir);
}
