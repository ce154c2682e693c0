// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Pageable host memory: copied to and from bounce buffers in its owner's
 * context, never by an engine.
 *
 * There are two copiers.  The context's kernel thread may block in a page fault
 * for as long as the one who serves it (userfaultfd, FUSE) likes.  A thread of
 * the owner in WAIT copies only what is there, and leaves the rest to the
 * other.  A copier holds no lock, no queue and no SRCU section, but a reference
 * to the pair of buffers.
 *
 * Getting the thread out of a fault: it allows SIGKILL, and so leaves every
 * fault that can be killed when it is sent one.  That happens when the request
 * is not wanted any more, and at the end.  A fault that cannot be killed (a FUSE
 * request already on its way) is left alone: the thread has references to all it
 * touches, to the module as well, and finishes whenever it can.
 *
 * While it copies it also holds the address space, and with it mappings of the
 * device and so the device's files: release() would come too late for an owner
 * that was killed.  Hence npuemu_pager_flush().
 */
#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include "npuemu_pager.h"

#define PATIENCE	HZ	/* for the end of the thread */
#define HELP_MAX	16	/* requests served by one npuemu_pager_help() */

static void pager_free(struct kref *ref)
{
	struct npuemu_pager *p = container_of(ref, struct npuemu_pager, ref);

	if (p->task)
		put_task_struct(p->task);
	mem_cgroup_put(p->memcg);
	mmdrop(p->mm);
	kfree(p);
}

void npuemu_pager_put(struct npuemu_pager *p)
{
	kref_put(&p->ref, pager_free);
}

void npuemu_pager_interrupt(struct npuemu_pager *p)
{
	send_sig(SIGKILL, p->task, 1);
}

/* ---- Copying ---------------------------------------------------------------------------- */

/* The next request, now busy, with a reference; @fast: that can do without faults. */
static struct npuemu_page_buf *take(struct npuemu_pager *p, bool fast)
{
	struct npuemu_page_buf *buf, *found = NULL;

	spin_lock(&p->lock);
	list_for_each_entry(buf, &p->asked, node) {
		if (fast && buf->slow)
			continue;
		buf->state = NPUEMU_PAGE_BUSY;
		list_move_tail(&buf->node, &p->busy);
		kref_get(&buf->bounce->ref);
		found = buf;
		break;
	}
	spin_unlock(&p->lock);
	return found;
}

/* No longer busy; @err: 0, an error, or -EAGAIN for the thread. */
static void done(struct npuemu_pager *p, struct npuemu_page_buf *buf, int err)
{
	struct npuemu_bounce *b = buf->bounce;

	spin_lock(&p->lock);
	list_del_init(&buf->node);
	if (err == -EAGAIN && !p->dead && !b->orphan && !buf->abandoned) {
		buf->slow = true;
		buf->state = NPUEMU_PAGE_WANT;
		list_add(&buf->node, &p->asked);
		wake_up(&p->wait);
	} else {
		buf->state = buf->out ? NPUEMU_PAGE_WRITTEN : NPUEMU_PAGE_FULL;
		if (err)
			buf->state = NPUEMU_PAGE_FAILED;
		npuemu_bounce_tell(b);
	}
	spin_unlock(&p->lock);
	wake_up_all(&p->drained);
	npuemu_bounce_put(b);
}

/* Zeroed: nothing of the kernel's is ever in it. */
static int have_mem(struct npuemu_page_buf *buf)
{
	if (!buf->mem)
		buf->mem = kvzalloc(NPUEMU_BOUNCE_BYTES, GFP_KERNEL_ACCOUNT);
	return buf->mem ? 0 : -ENOMEM;
}

static bool copy(u8 *k, u64 va, u64 len, bool out, bool fast)
{
	void __user *u = u64_to_user_ptr(va);
	unsigned long left = len;

	if (!fast)
		return !(out ? copy_to_user(u, k, len) : copy_from_user(k, u, len));
	if (!access_ok(u, len))
		return false;
	pagefault_disable();
	left = out ? __copy_to_user_inatomic(u, k, len) : __copy_from_user_inatomic(k, u, len);
	pagefault_enable();
	return !left;
}

/* In the owner's address space. */
static bool copy_all(struct npuemu_page_buf *buf, bool fast)
{
	u64 at = buf->gathered ? 0 : buf->r[0].va & 15;
	u32 i;

	if (buf->out)
		return copy(buf->mem + npuemu_page_at(buf, buf->out_va), buf->out_va, buf->out_len,
			    true, fast);
	for (i = 0; buf->fill && i < buf->nr; i++) {
		if (!copy(buf->mem + at, buf->r[i].va, buf->r[i].len, false, fast))
			return false;
		at += buf->r[i].len;
	}
	return true;
}

bool npuemu_pager_help(struct npuemu_ctx *ctx)
{
	struct npuemu_pager *p = smp_load_acquire(&ctx->pager); /* it is complete */
	struct npuemu_page_buf *buf;
	bool any = false;
	u32 n;

	if (!p || current->mm != p->mm)
		return false;
	for (n = 0; n < HELP_MAX; n++) {
		buf = take(p, true);
		if (!buf)
			break;
		if (!have_mem(buf) && copy_all(buf, true)) {
			done(p, buf, 0);
			any = true;
		} else {
			done(p, buf, -EAGAIN);
		}
	}
	return any;
}

/* In the thread, as if it were one of the owner's. */
static bool copy_there(struct npuemu_pager *p, struct npuemu_page_buf *buf)
{
	bool ok;

	if (!mmget_not_zero(p->mm))
		return false;
	kthread_use_mm(p->mm);
	for (;;) {
		ok = copy_all(buf, false);
		if (ok || !signal_pending(current))
			break;
		/* in this order: who gives up sets the flag, then sends the signal */
		flush_signals(current);
		if (READ_ONCE(p->dead) || READ_ONCE(buf->abandoned))
			break;
		/* meant for something else, or from outside (kill -9 -1): again */
	}
	kthread_unuse_mm(p->mm);
	mmput(p->mm);
	return ok;
}

static void serve(struct npuemu_pager *p, struct npuemu_page_buf *buf)
{
	struct mem_cgroup *old = set_active_memcg(p->memcg);
	int err = have_mem(buf);

	set_active_memcg(old);
	if (!err && !copy_there(p, buf))
		err = -EFAULT;
	done(p, buf, err);
}

static int pager_main(void *arg)
{
	struct npuemu_pager *p = arg;
	struct npuemu_page_buf *buf;

	allow_signal(SIGKILL);
	for (;;) {
		wait_event_interruptible(p->wait, READ_ONCE(p->dead) || !list_empty(&p->asked));
		if (READ_ONCE(p->dead))
			break;
		if (signal_pending(current))
			flush_signals(current);
		buf = take(p, false);
		if (buf)
			serve(p, buf);
		cond_resched();
	}
	complete_all(&p->ended);
	npuemu_pager_put(p);
	module_put_and_kthread_exit(0);
	return 0;
}

/* ---- Its life ------------------------------------------------------------------------------ */

int npuemu_pager_start(struct npuemu_ctx *ctx)
{
	struct npuemu_pager *p;
	struct task_struct *task;

	if (ctx->pager)
		return 0;
	p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		return -ENOMEM;
	kref_init(&p->ref);
	spin_lock_init(&p->lock);
	INIT_LIST_HEAD(&p->asked);
	INIT_LIST_HEAD(&p->busy);
	init_waitqueue_head(&p->wait);
	init_waitqueue_head(&p->drained);
	init_completion(&p->ended);
	p->mm = ctx->mm;
	mmgrab(p->mm);
	p->memcg = get_mem_cgroup_from_mm(p->mm);
	__module_get(THIS_MODULE);
	task = kthread_create(pager_main, p, "npuemu-page/%u", ctx->slot);
	if (IS_ERR(task))
		goto no_thread;
	get_task_struct(task);
	p->task = task;
	kref_get(&p->ref);	/* the thread's */
	wake_up_process(task);
	smp_store_release(&ctx->pager, p); /* only now: it is complete */
	return 0;

no_thread:
	module_put(THIS_MODULE);
	npuemu_pager_put(p);
	return PTR_ERR(task);
}

static void fail_asked(struct npuemu_page_buf *buf)
{
	list_del_init(&buf->node);
	buf->state = NPUEMU_PAGE_FAILED;
	npuemu_bounce_tell(buf->bounce);
}

/* Nothing is served from here on; the thread gets out of its fault, if it can. */
static void pager_cut(struct npuemu_pager *p)
{
	struct npuemu_page_buf *buf, *next;

	spin_lock(&p->lock);
	WRITE_ONCE(p->dead, true);
	list_for_each_entry_safe(buf, next, &p->asked, node)
		fail_asked(buf);
	spin_unlock(&p->lock);
	npuemu_pager_interrupt(p);
	wake_up(&p->wait);
}

void npuemu_pager_flush(struct npuemu_ctx *ctx)
{
	struct npuemu_pager *p = smp_load_acquire(&ctx->pager); /* it is complete */

	if (!p || !(current->flags & PF_EXITING) || task_tgid_nr(current) != ctx->pid)
		return;
	/*
	 * The owner, whose memory has gone before its files; not one thread of it
	 * that ends and had files of its own (unshare).
	 */
	if (current->signal->flags & SIGNAL_GROUP_EXIT || !atomic_read(&current->signal->live))
		pager_cut(p);
}

void npuemu_pager_stop(struct npuemu_ctx *ctx)
{
	struct npuemu_pager *p = ctx->pager;

	if (!p)
		return;
	WRITE_ONCE(ctx->pager, NULL);
	pager_cut(p);
	/* senders may be about to ask for pages of the inbox */
	npuemu_grace();
	npuemu_bounce_forget(&ctx->inbox_bounce, true);
	if (!wait_for_completion_timeout(&p->ended, PATIENCE))
		pr_notice_ratelimited("npuemu: %s waits for a page that does not come; it is left alone\n",
				      p->task->comm);
	npuemu_pager_put(p);
}

/* Of the range [va, +len), or, if @len is 0, of the addresses without an entry? */
static bool range_hits(struct npuemu_ctx *ctx, u64 va2, u64 len2, u64 va, u64 len)
{
	if (!len)
		return !mtree_load(&ctx->places, va2);
	return va < va2 + len2 && va2 < va + len;
}

static bool touches(struct npuemu_ctx *ctx, const struct npuemu_page_buf *buf, u64 va, u64 len)
{
	u32 i;

	if (buf->out)
		return range_hits(ctx, buf->out_va, buf->out_len, va, len);
	for (i = 0; i < buf->nr; i++)
		if (range_hits(ctx, buf->r[i].va, buf->r[i].len, va, len))
			return true;
	return false;
}

static bool busy_in(struct npuemu_ctx *ctx, struct npuemu_pager *p, u64 va, u64 len)
{
	struct npuemu_page_buf *buf;
	bool found = false;

	spin_lock(&p->lock);
	list_for_each_entry(buf, &p->busy, node)
		found |= touches(ctx, buf, va, len);
	spin_unlock(&p->lock);
	return found;
}

/*
 * What is wanted or being copied there fails.  A copy whose fault cannot be killed is
 * waited for, until the caller is: it is the caller's own memory.
 */
int npuemu_pager_drain(struct npuemu_ctx *ctx, u64 va, u64 len)
{
	struct npuemu_pager *p = READ_ONCE(ctx->pager);
	struct npuemu_page_buf *buf, *next;
	bool busy = false;

	if (!p)
		return 0;
	spin_lock(&p->lock);
	list_for_each_entry_safe(buf, next, &p->asked, node)
		if (touches(ctx, buf, va, len))
			fail_asked(buf);
	list_for_each_entry(buf, &p->busy, node) {
		if (!touches(ctx, buf, va, len))
			continue;
		WRITE_ONCE(buf->abandoned, true);
		busy = true;
	}
	spin_unlock(&p->lock);
	if (!busy)
		return 0;
	npuemu_pager_interrupt(p);
	return wait_event_killable(p->drained, !busy_in(ctx, p, va, len)) ? -EINTR : 0;
}
