// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Contexts: one process's share of the board, and the grace period after which
 * nobody uses what was taken from one.
 *
 * A context lives in a slot, whose number and generation are part of its
 * endpoint ids.  Peers find it by slot inside an npuemu_turns section and
 * compare its life word; so when the last file lets go, the word becomes 0,
 * caches are made void, and after a grace period everything can be freed.
 */
#include <linux/file.h>
#include <linux/sched/mm.h>
#include "npuemu.h"

#define USER_SLOTS	(NPUEMU_MAX_SLOTS / 2)	/* of one user, but for CAP_SYS_RESOURCE */

DEFINE_SRCU(npuemu_turns);

static struct npuemu_ctx *ctxs[NPUEMU_MAX_SLOTS];	/* changed under ctxs_lock */
static u32 gens[NPUEMU_MAX_SLOTS];
static u32 next_slot;
static DEFINE_MUTEX(ctxs_lock);

/* ---- The grace period -------------------------------------------------------------- */

void npuemu_epochs_bump(void)
{
	int idx = srcu_read_lock(&npuemu_turns);
	struct npuemu_ctx *ctx;
	u32 i;

	for (i = 0; i < NPUEMU_MAX_SLOTS; i++) {
		ctx = npuemu_ctx_slot(i);
		if (ctx)
			npuemu_fetch_add(&ctx->chip.epoch, 1);
	}
	srcu_read_unlock(&npuemu_turns, idx);
}

/*
 * A turn begins with a look at the epoch and ends within 64 KiB; whoever began
 * before the epoch moved is waited for.
 */
void npuemu_grace(void)
{
	npuemu_epochs_bump();
	synchronize_srcu_expedited(&npuemu_turns);
}

/* ---- Slots ------------------------------------------------------------------------------ */

struct npuemu_ctx *npuemu_ctx_slot(u32 slot)
{
	/* pairs with the release in slot_take(): the context is complete */
	return slot < NPUEMU_MAX_SLOTS ? smp_load_acquire(&ctxs[slot]) : NULL;
}

struct npuemu_ctx *npuemu_ctx_get(u32 slot)
{
	struct npuemu_ctx *ctx;
	int idx = srcu_read_lock(&npuemu_turns);

	ctx = npuemu_ctx_slot(slot);
	if (ctx && !kref_get_unless_zero(&ctx->ref))
		ctx = NULL;
	srcu_read_unlock(&npuemu_turns, idx);
	return ctx;
}

/* One user leaves slots for the others.  ctxs_lock held. */
static bool has_enough(kuid_t uid)
{
	u32 n = 0, i;

	for (i = 0; i < NPUEMU_MAX_SLOTS; i++)
		if (ctxs[i] && uid_eq(ctxs[i]->uid, uid))
			n++;
	return n >= USER_SLOTS && !capable(CAP_SYS_RESOURCE);
}

static int slot_take(struct npuemu_ctx *ctx)
{
	u32 n, i;

	mutex_lock(&ctxs_lock);
	if (has_enough(ctx->uid)) {
		mutex_unlock(&ctxs_lock);
		return -EUSERS;
	}
	for (n = 0; n < NPUEMU_MAX_SLOTS; n++) {
		i = (next_slot + n) % NPUEMU_MAX_SLOTS;
		if (ctxs[i])
			continue;
		next_slot = (i + 1) % NPUEMU_MAX_SLOTS;
		ctx->slot = i;
		gens[i]++;
		ctx->gen = gens[i] & 0xffff;
		ctx->life = NPUEMU_LIFE(gens[i]);
		ctx->chip.slot = i;
		ctx->chip.me = (u64)gens[i] << 32 | (i + 1);
		ctx->peer.life = &ctx->life;
		ctx->peer.life_val = ctx->life;
		smp_store_release(&ctxs[i], ctx); /* only now: it is complete */
		mutex_unlock(&ctxs_lock);
		return 0;
	}
	mutex_unlock(&ctxs_lock);
	return -ENOSPC;
}

void npuemu_eid(const struct npuemu_ctx *ctx, u32 device, u32 *eid)
{
	eid[0] = NPUEMU_EID_MAGIC;
	eid[1] = npuemu_board_id;
	eid[2] = device;
	eid[3] = NPUEMU_EID3(ctx->slot, ctx->gen, device);
}

/* ---- Making one ---------------------------------------------------------------------------- */

static void ctx_free(struct kref *ref)
{
	struct npuemu_ctx *ctx = container_of(ref, struct npuemu_ctx, ref);

	/* not on close: a reset may still write the BROKEN record */
	npuemu_rings_exit(ctx);
	mtree_destroy(&ctx->maps);
	mtree_destroy(&ctx->places);
	xa_destroy(&ctx->bos);
	xa_destroy(&ctx->cqs);
	xa_destroy(&ctx->rqs);
	xa_destroy(&ctx->queues);
	kvfree(ctx->queue_gen);
	mmdrop(ctx->mm);
	mutex_destroy(&ctx->lock);
	kvfree(ctx);
	npuemu_leak(NPUEMU_LEAK_CTX, -1);
}

void npuemu_ctx_put(struct npuemu_ctx *ctx)
{
	kref_put(&ctx->ref, ctx_free);
}

static void ctx_tables(struct npuemu_ctx *ctx)
{
	mutex_init(&ctx->lock);
	mt_init(&ctx->maps);
	mt_init_flags(&ctx->places, MT_FLAGS_USE_RCU);
	xa_init_flags(&ctx->bos, XA_FLAGS_ALLOC1);
	xa_init_flags(&ctx->cqs, XA_FLAGS_ALLOC1);
	xa_init_flags(&ctx->rqs, XA_FLAGS_ALLOC1);
	xa_init_flags(&ctx->queues, XA_FLAGS_ALLOC1);
	init_waitqueue_head(&ctx->bell);
	spin_lock_init(&ctx->sleepers_lock);
	INIT_LIST_HEAD(&ctx->sleepers);
}

static void ctx_chip(struct npuemu_ctx *ctx)
{
	struct npuemu_chip *c = &ctx->chip;

	c->ops = &npuemu_ops;
	c->host = ctx;
	c->machine = &npuemu_machine;
	c->links = npuemu_links;
	c->fault_gen = &npuemu_fault_gen;
	c->epoch = 1;
	c->board_id = npuemu_board_id;
	c->chaos_seed = npuemu_chaos_seed();
}

struct npuemu_ctx *npuemu_ctx_new(struct npuemu_dev *home)
{
	struct npuemu_ctx *ctx;
	int err;

	if (!current->mm)
		return ERR_PTR(-EINVAL);
	ctx = kvzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return ERR_PTR(-ENOMEM);
	kref_init(&ctx->ref);
	npuemu_leak(NPUEMU_LEAK_CTX, 1);
	ctx->files = 1;
	ctx->home = home;
	ctx->home_resets = READ_ONCE(home->resets);
	ctx->mm = current->mm;
	mmgrab(ctx->mm);
	ctx->pid = task_tgid_nr(current);
	ctx->uid = current_fsuid();
	get_task_comm(ctx->comm, current->group_leader);
	ctx_tables(ctx);
	ctx_chip(ctx);
	ctx->window = npuemu_dev_range(home, NPUEMU_WINDOW_BYTES);
	npuemu_inbox_init(ctx);
	err = npuemu_rings_init(ctx);	/* before anything that fails: see ctx_free() */
	if (err)
		goto failed;
	err = -ENOMEM;
	ctx->queue_gen = kvzalloc(NPUEMU_CTX_QUEUES, GFP_KERNEL_ACCOUNT);
	if (!ctx->queue_gen)
		goto failed;
	err = slot_take(ctx);
	if (err)
		goto failed;
	npuemu_trace_ctx(ctx);
	/* reset in between: it may not have seen us */
	if (READ_ONCE(home->resets) != ctx->home_resets)
		npuemu_ctx_break(ctx);
	return ctx;

failed:
	npuemu_ctx_put(ctx);
	return ERR_PTR(err);
}

/* ---- Files come and go ------------------------------------------------------------------- */

bool npuemu_ctx_hold(struct npuemu_ctx *ctx)
{
	bool ok;

	mutex_lock(&ctxs_lock);
	ok = ctx->files > 0;
	if (ok)
		ctx->files++;
	mutex_unlock(&ctxs_lock);
	return ok;
}

/*
 * The order matters: queues stop, the life word ends, nobody is inside any
 * more, and then what they worked on goes.
 */
static void ctx_close(struct npuemu_ctx *ctx)
{
	WRITE_ONCE(ctx->closing, true);
	WRITE_ONCE(ctx->life, 0);
	npuemu_queues_drop(ctx);
	npuemu_grace();
	npuemu_pager_stop(ctx);
	mutex_lock(&ctx->lock);
	npuemu_places_remove(ctx, ~0u);
	npuemu_segs_drop(ctx);
	mutex_unlock(&ctx->lock);
	npuemu_handles_drop(ctx);
	mutex_lock(&ctxs_lock);
	/* who still finds it finds it empty; pairs with the acquire of who looks */
	smp_store_release(&ctxs[ctx->slot], NULL);
	mutex_unlock(&ctxs_lock);
	/* somebody may be just about to take a reference */
	synchronize_srcu_expedited(&npuemu_turns);
	npuemu_ctx_put(ctx);
}

void npuemu_ctx_release(struct npuemu_ctx *ctx)
{
	bool last;

	mutex_lock(&ctxs_lock);
	last = --ctx->files == 0;
	mutex_unlock(&ctxs_lock);
	if (last)
		ctx_close(ctx);
}

/* The context of @other, held for one more file. */
static struct npuemu_ctx *ctx_to_join(struct npuemu_file *other)
{
	struct npuemu_ctx *ctx;

	mutex_lock(&other->lock);
	ctx = other->ctx;
	if (ctx->mm != current->mm)
		ctx = ERR_PTR(-EXDEV);
	else if (!npuemu_ctx_hold(ctx))
		ctx = ERR_PTR(-EBADF);
	else
		WRITE_ONCE(other->used, true);	/* it has to stay where it is */
	mutex_unlock(&other->lock);
	return ctx;
}

static int join(struct npuemu_file *f, struct npuemu_file *other)
{
	struct npuemu_ctx *ctx, *old = NULL;
	int err = 0;

	if (other == f)
		return -EBUSY;
	/* here, not only below: @other would count as used, and in vain */
	if (smp_load_acquire(&f->used))	/* the context it stays with */
		return READ_ONCE(f->ctx)->mm == current->mm ? -EBUSY : -EPERM;
	/* one lock at a time: two files may be told to join each other */
	ctx = ctx_to_join(other);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	mutex_lock(&f->lock);
	if (f->used)
		err = -EBUSY;
	else if (f->ctx->mm != current->mm)
		err = -EPERM;
	if (!err) {
		old = f->ctx;
		WRITE_ONCE(f->ctx, ctx);
		/* pairs with ctx_use(): who sees it sees the new context, for the old one goes */
		smp_store_release(&f->used, true);
	}
	mutex_unlock(&f->lock);
	npuemu_ctx_release(err ? ctx : old);
	return err;
}

int npuemu_join(struct npuemu_file *f, struct npuemu_ioc_join *a)
{
	struct npuemu_file *other;
	struct file *file;
	int err = -EBADF;

	file = fget(a->fd);
	if (!file)
		return -EBADF;
	other = npuemu_file_of(file);
	if (other && other->dev)
		err = join(f, other);
	fput(file);
	return err;
}

/* ---- Losing the home device -------------------------------------------------------------- */

int npuemu_ctx_check(struct npuemu_ctx *ctx)
{
	return READ_ONCE(ctx->broken) ? -ENODEV : 0;
}

void npuemu_ctx_break(struct npuemu_ctx *ctx)
{
	/* who makes a queue right now is either seen below, or sees it */
	mutex_lock(&ctx->lock);
	WRITE_ONCE(ctx->broken, true);
	mutex_unlock(&ctx->lock);
	WRITE_ONCE(*npuemu_record(ctx, 0, NPUEMU_REC_BROKEN), 1);
	npuemu_queues_kill(ctx, NULL);
	wake_up_all(&ctx->bell);
}
