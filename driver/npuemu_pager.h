/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Pageable host memory, between the queues' side (npuemu_bounce.c) and the
 * copiers' (npuemu_pager.c).
 *
 * A queue has a bounce buffer to read from and one to be written to.  Each is a
 * small state machine under the pager's spinlock:
 *
 *   IDLE -> WANT -> BUSY -> FULL		brought in
 *   FULL -> WANT -> BUSY -> WRITTEN -> IDLE	brought out
 *   BUSY -> FAILED -> IDLE
 *
 * The queue's owner makes the steps from IDLE, FULL, WRITTEN and FAILED, inside
 * its turn, and never waits.  WANT to BUSY and on is the copier's.
 */
#ifndef NPUEMU_DRIVER_PAGER_H
#define NPUEMU_DRIVER_PAGER_H

#include <linux/completion.h>
#include "npuemu.h"

#define NPUEMU_BOUNCE_BYTES	65536u

struct npuemu_range {
	u64 va;
	u64 len;
};

enum npuemu_page_state {
	NPUEMU_PAGE_IDLE,
	NPUEMU_PAGE_WANT,	/* on pager->asked */
	NPUEMU_PAGE_BUSY,	/* on pager->busy */
	NPUEMU_PAGE_FULL,
	NPUEMU_PAGE_WRITTEN,
	NPUEMU_PAGE_FAILED,
};

struct npuemu_pager {
	struct kref ref;	/* the context, the thread, every bounce */
	spinlock_t lock;	/* before worker->lock */
	struct list_head asked;
	struct list_head busy;
	bool dead;		/* nothing is served any more */
	wait_queue_head_t wait;		/* the thread */
	wait_queue_head_t drained;	/* npuemu_pager_drain() */
	struct completion ended;
	struct mm_struct *mm;
	struct mem_cgroup *memcg;
	struct task_struct *task;
};

/* One of a queue's two buffers.  What a request is does not change while it is
 * wanted or busy, so a copier reads it without the lock.
 */
struct npuemu_page_buf {
	struct npuemu_bounce *bounce;
	struct list_head node;
	enum npuemu_page_state state;
	bool out;		/* the last request: bring out [out_va, +out_len) */
	bool fill;		/* ... bring in, and not only have a buffer */
	bool slow;		/* not all there: for the thread */
	bool abandoned;		/* nobody wants it any more: get out of the fault */
	bool gathered;		/* ranges lie one after the other, from 0 */
	u32 first;		/* of the WQE it is for ... */
	u64 retired;		/* ... and how many went before: indices come again */
	u32 nr;
	struct npuemu_range r[NPUEMU_MAX_SGE];
	u64 out_va;
	u64 out_len;
	u8 *mem;		/* NPUEMU_BOUNCE_BYTES, aligned to 16 at least */
};

struct npuemu_bounce {
	struct kref ref;	/* its queue, and a copier for each busy buffer */
	struct npuemu_pager *pager;
	struct npuemu_queue *queue;	/* NULL: of an inbox, or forgotten */
	struct npuemu_worker *worker;	/* who goes on when something has come */
	bool orphan;			/* left to a copier: whatever comes is dropped */
	struct npuemu_page_buf buf[2];		/* to read from, to be written to */
};

/*
 * Ranges of pageable memory, NPUEMU_BOUNCE_BYTES in all, one after the other: as
 * npuemu_op_page() for a source.
 */
const u8 *npuemu_pager_gather(struct npuemu_jfs *q, struct npuemu_wqe *w,
			      const struct npuemu_range *r, u32 nr);
void npuemu_pager_put(struct npuemu_pager *p);
/* Something in the thread's hands is not wanted any more. */
void npuemu_pager_interrupt(struct npuemu_pager *p);
void npuemu_bounce_put(struct npuemu_bounce *b);
/* Something has come, or will not: the queue can go on.  pager->lock held. */
void npuemu_bounce_tell(struct npuemu_bounce *b);
/*
 * Nothing of a pair is wanted any more; @whole: nor is the pair.  What is being
 * copied at this moment is left to its copier, and the pair with it.
 */
void npuemu_bounce_forget(struct npuemu_bounce **at, bool whole);

/* Where @va of what is held lies in the buffer. */
static inline u64 npuemu_page_at(const struct npuemu_page_buf *buf, u64 va)
{
	return (buf->r[0].va & 15) + (va - buf->r[0].va);
}

#endif
