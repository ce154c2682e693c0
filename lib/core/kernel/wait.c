// SPDX-License-Identifier: MIT
/*
 * The doorbell, helping and sleeping.  A doorbell is a plain store: the page is
 * mapped as long as the engine looks, and the fault of the first store after
 * that wakes it.  Nothing here enters the kernel while the engine is awake and
 * completions come.
 */
#include <stdlib.h>
#include <unistd.h>
#include "kernel.h"

/*
 * Empty polls in a row before a thread helps: more than an engine on another cpu
 * takes to get there, or polling would be system calls for nothing.  With one cpu
 * only the poller itself stands in the way.
 */
#define HELP_EVERY	1024u
#define HELP_EVERY_ALONE	64u

int npuemu_k_doorbell(struct npuemu_queue *q, bool through)
{
	(void)through;
	smp_store_release(q->db, q->view.pi); /* pairs with the engine's read of the index */
	return 0;
}

u32 npuemu_k_help_every(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN) > 1 ? HELP_EVERY : HELP_EVERY_ALONE;
}

/* An awake engine is about to be done: only who keeps finding nothing helps. */
bool npuemu_k_help(struct npuemu *ctx, struct npuemu_cq *cq)
{
	struct npuemu_kernel *k = npuemu_kernel_of(ctx);
	struct npuemu_ioc_wait a = { 0 };
	int err;

	if (cq->dry_ci != cq->ci) {
		cq->dry_ci = cq->ci;
		cq->dry = 0;
	}
	if (++cq->dry % k->help_every || k->async)
		return false;
	err = npuemu_k_ioctl(k->home, NPUEMU_IOC_WAIT, &a);
	if (err == -ENODEV)
		npuemu_k_check(ctx);	/* the next call says so */
	return !err;
}

/* The engine itself looks again at a queue that found no room. */
void npuemu_k_unstarve(struct npuemu_cq *cq)
{
	(void)cq;
}

/* ---- One wait, for a CQ or a word --------------------------------------------- */

struct waiting {
	struct npuemu_kernel *k;
	struct npuemu_cq *cq;		/* or */
	const volatile u64 *word;
	u32 cmp;
	u64 value;
	u32 owner_slot;			/* of the maker of the word's buffer */
	s64 start;
	s64 next_report;
};

static bool ready(const struct waiting *w)
{
	if (w->cq)
		return npuemu_cq_ready(w->cq);
	return npuemu_compare(__atomic_load_n(w->word, __ATOMIC_ACQUIRE), w->cmp, w->value);
}

static bool spin(const struct waiting *w, s64 until)
{
	u32 n;

	do {
		for (n = 0; n < 50; n++) {
			if (ready(w))
				return true;
			npuemu_relax();
		}
	} while (npuemu_now_ns() < until);
	return false;
}

/* For a message; 0: nobody is there (any more). */
static u32 pid_of(struct npuemu_kernel *k, u32 slot)
{
	struct npuemu_process_info *list = calloc(NPUEMU_MAX_SLOTS, sizeof(*list));
	int n = list ? npuemu_k_process_list(&k->base, list, NPUEMU_MAX_SLOTS) : 0, i;
	u32 pid = 0;

	for (i = 0; i < n && i < (int)NPUEMU_MAX_SLOTS; i++)
		if (list[i].slot == slot)
			pid = list[i].pid;
	free(list);
	return pid;
}

static void report(const struct waiting *w, s64 now)
{
	struct npuemu_queue *q = w->cq ? w->cq->only : NULL;
	double sec = (double)(now - w->start) / 1e9;
	struct npuemu_queue_stat s = { 0 };

	if (!w->cq)
		npuemu_log(NPUEMU_LOG_WARN, "still waiting after %.0f s: word %p is %#llx, wanted %#llx (cmp %u); it lies in memory of process %u (slot %u): see npuemu-smi",
			   sec, (const void *)w->word, (unsigned long long)*w->word,
			   (unsigned long long)w->value, w->cmp, pid_of(w->k, w->owner_slot),
			   w->owner_slot);
	else if (q && !npuemu_k_queue_query(q, &s))
		npuemu_log(NPUEMU_LOG_WARN, "still waiting after %.0f s: queue %u (device %u) has posted up to block %u and executed up to %u, state %u%s%s",
			   sec, s.id, s.device, q->view.pi, s.ci, s.state,
			   s.cause[0] ? ": " : "", s.cause);
	else
		npuemu_log(NPUEMU_LOG_WARN, "still waiting after %.0f s for a completion on a shared CQ: see npuemu-smi --queues",
			   sec);
}

static int wait_failed(const struct waiting *w, int err)
{
	u32 slot;

	/* it was in a buffer when we began */
	if (err == -EFAULT && npuemu_k_place_find(w->k, (u64)(uintptr_t)w->word,
						  sizeof(*w->word), &slot))
		err = -ENODEV;
	switch (err) {
	case -EFAULT:
		return npuemu_fail(err, "the buffer with word %p was freed meanwhile",
				   (const void *)w->word);
	case -EOWNERDEAD:
		return npuemu_fail(err, "the process in slot %u, which owns the awaited word, has died",
				   w->owner_slot);
	case -ENOENT:
		return npuemu_fail(-EBADF, "the completion queue was destroyed meanwhile");
	default:
		return npuemu_k_failed(&w->k->base, err, "cannot wait");
	}
}

static s64 earlier(s64 a, s64 b)
{
	return a < b ? a : b;
}

/* One sleep in the driver, no longer than until the next report. */
static int doze(const struct waiting *w, s64 deadline)
{
	struct npuemu_ioc_wait_item item = {
		.kind = w->cq ? NPUEMU_WAIT_CQ : NPUEMU_WAIT_WORD,
	};
	struct npuemu_ioc_wait a = {
		.items = (u64)(uintptr_t)&item,
		.nr = 1,
		.flags = w->k->async ? NPUEMU_WAITF_NO_HELP : 0,
		.deadline_ns = earlier(deadline, w->next_report),
	};

	if (w->cq) {
		item.handle = w->cq->handle;
		item.ci = READ_ONCE(w->cq->ci);
	} else {
		item.va = (u64)(uintptr_t)w->word;
		item.cmp = w->cmp;
		item.value = w->value;
	}
	if (a.deadline_ns < 0)
		a.deadline_ns = 0;
	return npuemu_k_ioctl(w->k->home, NPUEMU_IOC_WAIT, &a);
}

/* The deadline first: who asks whether something is there does not want to spin. */
static int wait_until(struct waiting *w, s64 deadline)
{
	s64 now;
	int err;

	w->start = npuemu_now_ns();
	w->next_report = w->k->hang_report_ns ? w->start + w->k->hang_report_ns : INT64_MAX;
	if (w->k->spin_ns && deadline > w->start &&
	    spin(w, earlier(deadline, w->start + w->k->spin_ns)))
		return 0;
	for (;;) {
		err = doze(w, deadline);
		/* a word may have changed again: that it was met is what counts */
		if (!err && (!w->cq || ready(w)))
			return 0;
		if (err && err != -ETIMEDOUT)
			return wait_failed(w, err);
		now = npuemu_now_ns();
		if (now >= deadline)
			return ready(w) ? 0 : -ETIMEDOUT;
		if (now >= w->next_report) {
			w->next_report = now + 60000000000ll;
			report(w, now);
		}
	}
}

int npuemu_k_wait_cq(struct npuemu_cq *cq, s64 deadline)
{
	struct waiting w = { .k = npuemu_kernel_of(cq->ctx), .cq = cq };
	int err = wait_until(&w, deadline);
	struct npuemu_queue_stat s = { 0 };
	struct npuemu_queue *q = cq->only;

	if (err != -ETIMEDOUT || !deadline)
		return err;
	if (!q || npuemu_k_queue_query(q, &s))
		return npuemu_fail(err, "no completion on the shared CQ within the deadline");
	return npuemu_fail(err, "no completion within the deadline: queue %u (device %u) has executed block %u of %u posted%s%s",
			   s.id, s.device, s.ci, q->view.pi, s.cause[0] ? ": " : "", s.cause);
}

int npuemu_k_wait_word(struct npuemu *ctx, const volatile u64 *word, u32 cmp, u64 value,
		       s64 deadline)
{
	struct npuemu_kernel *k = npuemu_kernel_of(ctx);
	struct waiting w = { .k = k, .word = word, .cmp = cmp, .value = value };
	int err;

	if (!npuemu_k_place_find(k, (u64)(uintptr_t)word, sizeof(*word), &w.owner_slot))
		return npuemu_fail(-EFAULT, "word %p is not in a buffer of this process",
				   (const void *)word);
	if (ready(&w))
		return 0;
	err = wait_until(&w, deadline);
	if (err == -ETIMEDOUT && deadline)
		return npuemu_fail(err, "word %p is %#llx after the deadline, wanted %#llx (cmp %u)",
				   (const void *)word, (unsigned long long)*word,
				   (unsigned long long)value, cmp);
	return err;
}
