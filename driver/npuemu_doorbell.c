// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Doorbells: a plain store to a mapped page wakes a sleeping engine.
 *
 * A queue nobody posts to is parked: its page is zapped from every address
 * space, so the next store faults, and the fault handler makes the queue hot
 * again before the store goes on.  Two conditions make this exact; with either
 * broken, a store is lost (the debug knobs below show it):
 *
 *  - {PARKED, zap} and {RUN, insert the page} exclude each other (db_lock).
 *    Else the handler could install the page after the zap of a park that it
 *    overlapped with, and a later store would land in silence.
 *  - the producer index is read again after the zap.  A store just before it
 *    went through the old translation, and no fault will tell.
 *
 * The kernel reads the index through its own mapping of the page, of the same
 * memory type; once unmap_mapping_range() has returned, every store through an
 * old translation is visible.
 */
#include <linux/delay.h>
#include <linux/workqueue.h>
#include "npuemu.h"
#include "npuemu_trace.h"

#define POLL_MAX_NS	(20ull * NSEC_PER_MSEC)
#define WATCH_MS	100
#define WATCH_ROUNDS	20	/* after the last park */

/*
 * For the regression test: widen the two windows, and leave out either
 * condition.  Not in ordinary builds (make modules NPUEMU_DEBUG=1).
 */
#ifdef NPUEMU_DEBUG
static unsigned int db_park_delay_us;
module_param(db_park_delay_us, uint, 0644);
static unsigned int db_fault_delay_us;
module_param(db_fault_delay_us, uint, 0644);
static bool db_no_recheck;
module_param(db_no_recheck, bool, 0644);
static bool db_no_lock;
module_param(db_no_lock, bool, 0644);
static void widen(unsigned int us)
{
	if (us)
		fsleep(us);
}
#else
#define db_park_delay_us	0
#define db_fault_delay_us	0
#define db_no_recheck		false
#define db_no_lock		false
static void widen(unsigned int us)
{
}
#endif

static void lock(struct npuemu_queue *q)
{
	if (!db_no_lock)
		mutex_lock(&q->db_lock);
}

static void unlock(struct npuemu_queue *q)
{
	if (!db_no_lock)
		mutex_unlock(&q->db_lock);
}

static void zap(struct npuemu_queue *q)
{
	unmap_mapping_range(npuemu_mapping(q->ctx->home),
			    q->ctx->window + NPUEMU_RING_WINDOW +
			    (u64)q->index * NPUEMU_DB_PAGE_SIZE, NPUEMU_DB_PAGE_SIZE, 1);
}

int npuemu_doorbell_init(struct npuemu_queue *q)
{
	q->db_page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!q->db_page)
		return -ENOMEM;
	mutex_init(&q->db_lock);
	q->jfs.db_pi = page_address(q->db_page) + NPUEMU_DB_PI;
	q->db_state = NPUEMU_DB_PARKED;
	q->poll_ns = (u64)READ_ONCE(npuemu_poll_us) * NSEC_PER_USEC;
	return 0;
}

void npuemu_doorbell_exit(struct npuemu_queue *q)
{
	if (!q->db_page)
		return;
	zap(q);
	__free_page(q->db_page);
	q->db_page = NULL;
	mutex_destroy(&q->db_lock);
}

/* db_lock held: npuemu_heat(), saying why. */
static void wake(struct npuemu_queue *q, u32 why)
{
	if (q->db_state == NPUEMU_DB_PARKED) {
		trace_npuemu_wake(q, why);
		WRITE_ONCE(q->db_state, NPUEMU_DB_RUN);
	}
	npuemu_heat(q);
}

/*
 * In a turn, or the owner of @q cannot go.  A lost or dead queue's page is mapped all
 * the same: what is stored there means nothing any more, and harms nobody.
 */
vm_fault_t npuemu_doorbell_fault(struct npuemu_queue *q, struct vm_fault *vmf)
{
	u64 min_ns = (u64)READ_ONCE(npuemu_poll_us) * NSEC_PER_USEC, asleep;
	vm_fault_t ret;

	lock(q);
	if (q->db_state < NPUEMU_DB_LOST) {
		asleep = ktime_get_ns() - q->parked_at;
		/* parked for less than it was watched: that does not pay */
		if (q->db_state == NPUEMU_DB_PARKED && q->parked_at) {
			if (asleep < q->poll_ns)
				q->poll_ns = min(q->poll_ns * 2, max(POLL_MAX_NS, min_ns));
			else
				q->poll_ns = min_ns;
		}
		wake(q, NPUEMU_WAKE_FAULT);
		WRITE_ONCE(q->worker->db_faults, q->worker->db_faults + 1);
	}
	widen(db_fault_delay_us);
	ret = vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(q->db_page));
	unlock(q);
	return ret;
}

/*
 * Nothing to do, and nobody is, or was meanwhile, in a turn: within one, a WQE that
 * will have to wait is for a moment neither in the ring nor under way.
 */
static bool quiet(const struct npuemu_queue *q)
{
	u32 owner = smp_load_acquire(&q->owner);	/* what the last turn left behind */
	bool news = npuemu_queue_news(q);

	smp_rmb(); /* and look again after all of that */
	return !news && !(owner & 1) && READ_ONCE(q->owner) == owner;
}

bool npuemu_doorbell_park(struct npuemu_queue *q)
{
	bool parked = false;

	lock(q);
	if (q->db_state != NPUEMU_DB_RUN)
		goto out;
	WRITE_ONCE(q->db_state, NPUEMU_DB_PARKED);
	q->parked_at = ktime_get_ns();
	widen(db_park_delay_us);
	zap(q);
	/* only now, with every way to store closed: did something come in between? */
	if (!db_no_recheck && !quiet(q)) {
		WRITE_ONCE(q->db_state, NPUEMU_DB_RUN);
		goto out;
	}
	npuemu_cool(q);
	trace_npuemu_park(q);
	parked = true;
out:
	unlock(q);
	if (parked)
		npuemu_watchdog_poke();
	return parked;
}

/* Hot from now on, and never parked: its CQ may be full, and then it has to wait. */
void npuemu_doorbell_lose(struct npuemu_queue *q)
{
	mutex_lock(&q->db_lock);
	if (q->db_state < NPUEMU_DB_LOST) {
		npuemu_heat(q);
		WRITE_ONCE(q->db_state, NPUEMU_DB_LOST);
	}
	mutex_unlock(&q->db_lock);
}

/* Nobody looks at it any more, whatever is stored. */
void npuemu_doorbell_kill(struct npuemu_queue *q)
{
	mutex_lock(&q->db_lock);
	/* a reset may come second here, when a close has hot_node in a list of its own */
	if (q->db_state != NPUEMU_DB_DEAD) {
		WRITE_ONCE(q->db_state, NPUEMU_DB_DEAD);
		npuemu_cool(q);
	}
	mutex_unlock(&q->db_lock);
}

/* ---- The watchdog ------------------------------------------------------------------- */

/*
 * It finds what the protocol above lost: a bug, or a processor that reorders
 * what it should not.  A hang becomes a counted error.  It runs for a while
 * after the last park, then there is nothing to find.
 */
static void watch(struct work_struct *work);
static DECLARE_DELAYED_WORK(watchdog, watch);
static atomic_t rounds;
static bool stopped = true;

/* Whoever owns it makes it hot before he lets go, if that is needed. */
static bool missed(const struct npuemu_queue *q)
{
	return READ_ONCE(q->db_state) == NPUEMU_DB_PARKED && npuemu_queue_news(q) &&
	       /* what the last owner did, before the second look: npuemu_owner_put() */
	       !(smp_load_acquire(&q->owner) & 1) && npuemu_queue_news(q);
}

static void look(struct npuemu_queue *q)
{
	if (!missed(q))
		return;
	mutex_lock(&q->db_lock);
	if (missed(q)) {
		atomic64_inc(&npuemu_db_missed);
		wake(q, NPUEMU_WAKE_MISSED);
	}
	mutex_unlock(&q->db_lock);
}

static void watch(struct work_struct *work)
{
	struct npuemu_queue *q;
	struct npuemu_ctx *ctx;
	unsigned long i;
	u32 slot;
	int idx;

	for (slot = 0; slot < NPUEMU_MAX_SLOTS; slot++) {
		idx = srcu_read_lock(&npuemu_turns);
		ctx = npuemu_ctx_slot(slot);
		if (ctx)
			xa_for_each(&ctx->queues, i, q)
				look(q);
		srcu_read_unlock(&npuemu_turns, idx);
		cond_resched();
	}
	if (atomic_dec_if_positive(&rounds) > 0 && !READ_ONCE(stopped))
		schedule_delayed_work(&watchdog, msecs_to_jiffies(WATCH_MS));
}

void npuemu_watchdog_poke(void)
{
	if (atomic_xchg(&rounds, WATCH_ROUNDS) > 0 || READ_ONCE(stopped))
		return;
	schedule_delayed_work(&watchdog, msecs_to_jiffies(WATCH_MS));
}

void npuemu_watchdog_start(void)
{
	WRITE_ONCE(stopped, false);
}

void npuemu_watchdog_stop(void)
{
	WRITE_ONCE(stopped, true);
	cancel_delayed_work_sync(&watchdog);
}
