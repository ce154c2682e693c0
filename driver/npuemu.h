/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The kernel host of the chip: what its files share.
 *
 * Who owns what.  A device (npuemu_dev) lives as long as the module.  A context
 * (npuemu_ctx) is one process's share of the board; the files that joined it
 * hold references, and the last close takes it apart.  A buffer (npuemu_bo) is
 * held by the handles, mappings (VMAs), places, segments and dma-bufs that name
 * it.  CQs, RQs and queues belong to their context alone.
 *
 * Lock order (outermost first): mmap_lock; ctx->lock; queue->db_lock;
 * bo->lock; pager->lock; worker->lock.  A queue's owner word is only ever tried, so it has
 * no place in that order.  See Documentation/locking.md.
 *
 * The one grace period: engines, helpers and senders use what they looked up
 * inside an npuemu_turns read section.  Taking something away is: unpublish it,
 * npuemu_grace() (which moves every context's epoch, so caches are dropped),
 * then free.
 */
#ifndef NPUEMU_DRIVER_H
#define NPUEMU_DRIVER_H

#include <linux/cdev.h>
#include <linux/dma-buf.h>
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/log2.h>
#include <linux/maple_tree.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include <npuemu/ioctl.h>
#include "npuemu_compat.h"
#include "engine.h"

/* A machine description, as text in the module. */
#define NPUEMU_MACHINE(sym, file)							\
	asm("	.pushsection .rodata, \"a\"\n"					\
	    "	.globl npuemu_machine_" #sym ", npuemu_machine_" #sym "_end\n"	\
	    "npuemu_machine_" #sym ": .incbin \"" NPUEMU_MACHINES "/" file "\"\n"	\
	    "npuemu_machine_" #sym "_end: .byte 0\n"				\
	    "	.popsection\n");						\
	extern const char npuemu_machine_##sym[], npuemu_machine_##sym##_end[]

#define NPUEMU_BO_MAX		BIT_ULL(40)
#define NPUEMU_RING_WINDOW	(4ull << 30)
#define NPUEMU_DB_WINDOW	((u64)NPUEMU_CTX_QUEUES * NPUEMU_DB_PAGE_SIZE)
#define NPUEMU_RECORDS		16384u
#define NPUEMU_REC_WINDOW	((u64)NPUEMU_RECORDS * NPUEMU_REC_BYTES)
#define NPUEMU_REC_PAGES	(NPUEMU_RECORDS * NPUEMU_REC_BYTES / PAGE_SIZE)
#define NPUEMU_WINDOW_BYTES	(NPUEMU_RING_WINDOW + NPUEMU_DB_WINDOW + NPUEMU_REC_WINDOW)
#define NPUEMU_GRACE_MS		10000

struct npuemu_ctx;

/* ---- Devices ---------------------------------------------------------------- */

/* An engine: the kthread that runs the hot queues of one kind of one device. */
struct npuemu_worker {
	struct npuemu_dev *dev;
	struct task_struct *task;
	spinlock_t lock;	/* hot, and the hot_node of its queues */
	struct list_head hot;
	u32 nhot;
	bool kicked;		/* something happened since the thread last looked */
	u64 turns;
	u64 parks;
	u64 sleeps;
	u64 db_faults;
};

struct npuemu_dev {
	u32 index;
	struct cdev *cdev;
	struct device *dev;
	struct inode *inode;		/* all mappings of the device go through it */
	struct srcu_struct guard;	/* entries that are inside */
	bool dead;			/* unplugged */
	u32 resets;
	atomic64_t hbm_used;
	atomic64_t hbm_backed;
	struct npuemu_worker worker[2];	/* UDMA, SDMA */
};

/* ---- Buffers ------------------------------------------------------------------- */

struct npuemu_bo {
	struct kref ref;
	struct npuemu_dev *dev;
	struct npuemu_arena arena;	/* chunked; linear if foreign */
	struct npuemu_share share;	/* arena.shares */
	u64 bytes;			/* as asked for */
	u64 room;
	u64 map_offset;			/* in the device's address space */
	u32 resets;			/* of the device, when it was made */
	u32 owner_slot;
	u64 owner_life;			/* value of the maker's life word; 0: foreign */
	kuid_t uid;
	struct mutex lock;		/* backing, name, revoking */
	u64 name[2];			/* 0 until asked for */
	u32 name_id;			/* index in the table of names */
	bool revoked;			/* the device went or was reset: faults get SIGBUS */
	bool freed;			/* by its maker: cannot be opened by name any more */
	struct mem_cgroup *memcg;
	struct dma_buf *foreign;	/* imported from somebody else's driver */
	struct dma_buf_attachment *attach;
	struct iosys_map vmap;
	struct list_head node;		/* all buffers, for debugfs and resets */
};

/* A context's handle of a buffer. */
struct npuemu_bo_handle {
	struct npuemu_bo *bo;
	u32 handle;
	bool imported;
	u32 segs;			/* segments in it; ctx->lock */
	u32 places;			/* likewise */
};

/* What a range of local addresses means. */
struct npuemu_place {
	u64 va;
	u64 len;
	u64 off;			/* of va in the buffer */
	struct npuemu_bo *bo;		/* NULL: host memory */
	u32 handle;			/* of the buffer, in this context */
	u32 flags;			/* NPUEMU_VA_* */
	/* pinned host memory */
	struct mm_struct *mm;
	struct page **pages;
	unsigned long npages;
	u8 *ptr;			/* of va, in the kernel's address space */
	struct npuemu_place *next;	/* of those being removed */
};

/* One index of a context's segments; stays for the next one that gets it. */
struct npuemu_segment {
	u32 token_id;			/* index | generation << 12 */
	u32 handle;
	u32 seq;			/* of the record, the last even one: never used again */
	bool live;			/* can be found by its token id */
	struct npuemu_bo *bo;		/* NULL: free */
	const struct npuemu_arena *arena;
};

/* ---- Queues ------------------------------------------------------------------------ */

/* Memory shared with user space through the ring window. */
struct npuemu_ring_mem {
	void *ptr;
	u64 bytes;
	u64 at;				/* offset in the window */
};

struct npuemu_cq {
	u32 handle;
	u32 users;			/* ctx->lock */
	u32 record;
	struct npuemu_ctx *ctx;
	struct npuemu_ring_mem mem;
	struct eventfd_ctx *eventfd;	/* readers: npuemu_turns */
	struct npuemu_jfc jfc;
};

struct npuemu_rq {
	u32 id;
	u32 device;
	u32 users;			/* queues that name it; ctx->lock */
	u32 record;
	u32 owner;			/* taken while something is delivered */
	struct npuemu_ctx *ctx;
	struct npuemu_cq *cq;
	struct npuemu_ring_mem mem;
	struct npuemu_jfr jfr;
};

enum npuemu_db_state {
	NPUEMU_DB_PARKED,		/* page zapped, nobody looks */
	NPUEMU_DB_RUN,			/* on its worker's hot list */
	NPUEMU_DB_LOST,			/* likewise, with its device: all that is done is flushed */
	NPUEMU_DB_DEAD,
};

struct npuemu_bounce;			/* npuemu_pager.c */
struct npuemu_pager;

struct npuemu_queue {
	struct npuemu_jfs jfs;
	u32 owner;			/* jfs.owner */
	u32 index;			/* in ctx->queues, and of its doorbell page */
	u32 depth;
	struct npuemu_ctx *ctx;
	struct npuemu_dev *dev;
	struct npuemu_worker *worker;
	struct npuemu_cq *cq;
	struct npuemu_rq *rq;
	struct npuemu_ring_mem mem;
	/* the doorbell */
	struct mutex db_lock;		/* {state, zap} and {state, insert} */
	u32 db_state;
	struct page *db_page;
	u64 parked_at;
	u64 poll_ns;			/* grows when parking does not pay */
	u64 idle_since;			/* worker's own; 0: not idle */
	struct list_head hot_node;	/* worker->lock */
	bool waits;			/* the last turn waits for somebody or some time */
	bool pages;			/* ... namely for the context's pager */
	struct npuemu_bounce *bounce;
	struct npuemu_jfs_counters cnt;
	char cause[NPUEMU_CAUSE_BYTES];
};

/* ---- Contexts -------------------------------------------------------------------------- */

/* life: generation << 8 | 1; 0 once it is over */
#define NPUEMU_LIFE(gen)	((u64)(gen) << 8 | 1)

struct npuemu_sleeper {			/* who waits for what, for people */
	struct list_head node;
	u32 kind;			/* NPUEMU_WAIT_* */
	u32 id;				/* queue or slot */
	u64 object;
	u64 expected;
	u64 since_ns;
};

struct npuemu_ctx {
	struct kref ref;		/* files, and whoever looks at it from outside */
	u32 files;			/* joined; npuemu_ctxs_lock */
	u32 slot;
	u32 gen;
	u64 life;			/* peers compare it */
	bool broken;			/* its home device was reset or unplugged */
	bool closing;
	struct npuemu_dev *home;
	u32 home_resets;
	struct mm_struct *mm;		/* mmgrab()bed: only its address is compared */
	pid_t pid;
	kuid_t uid;
	char comm[TASK_COMM_LEN];

	struct npuemu_chip chip;
	struct npuemu_peer peer;
	struct mutex lock;		/* every table below; slow paths only */
	struct xarray bos;		/* handle -> npuemu_bo_handle */
	struct maple_tree maps;		/* mmap page offset -> npuemu_bo_handle */
	struct maple_tree places;	/* va -> npuemu_place; readers: npuemu_turns */
	u32 nplaces;
	bool rest;			/* NPUEMU_VA_REST is mapped; likewise */
	u32 bo_next;
	u32 nbos;
	struct npuemu_seg_rec *segs;	/* [NPUEMU_CTX_SEGS], from the first one on */
	struct npuemu_segment *segments[NPUEMU_CTX_SEGS / 64];	/* blocks of 64, on demand */
	u32 seg_next;
	u32 nsegs;
	struct xarray cqs;		/* handle -> npuemu_cq */
	u32 cq_next;
	u32 ncqs;
	struct xarray rqs;		/* index -> npuemu_rq; readers: npuemu_turns */
	struct xarray queues;		/* index -> npuemu_queue; likewise */
	u8 *queue_gen;			/* [NPUEMU_CTX_QUEUES] of both */

	/* what user space maps */
	u64 window;			/* of rings, doorbells, records: in home's address space */
	struct maple_tree ring_mems;	/* ring window page -> npuemu_ring_mem */
	struct mutex ring_lock;		/* {ring_mems, zap} and {ring_mems, insert} */
	struct page *rec_pages[NPUEMU_REC_PAGES];
	unsigned long rec_used[BITS_TO_LONGS(NPUEMU_RECORDS)];

	wait_queue_head_t bell;		/* every sleeper of the context */
	spinlock_t sleepers_lock;
	struct list_head sleepers;
	struct npuemu_jfs inbox;	/* a queue only in that it is owned and has caches */
	u32 inbox_owner;
	struct npuemu_jfs_counters inbox_cnt;
	char inbox_cause[NPUEMU_CAUSE_BYTES];
	u64 inbox_who;			/* npuemu_send.c: whose message is half delivered */
	u64 inbox_at;			/* ... and how much of it; inbox_owner */
	struct npuemu_worker *inbox_worker;	/* ... and who goes on with it; inbox_owner */
	struct npuemu_bounce *inbox_bounce;	/* inbox_owner */

	struct npuemu_pager *pager;	/* npuemu_pager.c, once there is pageable memory */
};

struct npuemu_file {
	struct npuemu_dev *dev;		/* NULL: npuemu-ctl */
	struct npuemu_ctx *ctx;		/* NULL: npuemu-ctl; stays what it is once @used */
	bool used;			/* something was done with it: no JOIN any more */
	struct mutex lock;		/* ctx, used */
};

/* ---- npuemu_drv.c: the module, its devices, entries ---------------------------------------- */

extern struct npuemu_dev *npuemu_devs;	/* [npuemu_machine.devices] */
extern struct npuemu_machine npuemu_machine;
extern struct npuemu_link_counters *npuemu_links;
extern u32 npuemu_board_id;
extern u64 npuemu_budget;		/* bytes that may be backed */
extern atomic64_t npuemu_backed_bytes;
extern atomic64_t npuemu_db_missed;
extern unsigned int npuemu_poll_us;

/* Inside from a true enter to the exit; false: unplugged. */
bool npuemu_dev_enter(struct npuemu_dev *dev, int *idx);
void npuemu_dev_exit(struct npuemu_dev *dev, int idx);
/* A range of the device's address space that was never used before, in bytes. */
u64 npuemu_dev_range(struct npuemu_dev *dev, u64 bytes);
int npuemu_dev_reset(struct npuemu_dev *dev, bool unplug);
u64 npuemu_chaos_seed(void);
static inline struct address_space *npuemu_mapping(struct npuemu_dev *dev)
{
	return dev->inode->i_mapping;
}

/* ---- npuemu_file.c: open, release, ioctl, mmap --------------------------------------------- */

extern const struct file_operations npuemu_fops;
struct npuemu_file *npuemu_file_of(struct file *file);	/* NULL: not ours */

/* ---- npuemu_ctx.c: contexts and the grace period ------------------------------------------- */

extern struct srcu_struct npuemu_turns;
struct npuemu_ctx *npuemu_ctx_new(struct npuemu_dev *home);
/* Another file holds it: false if it is closing. */
bool npuemu_ctx_hold(struct npuemu_ctx *ctx);
void npuemu_ctx_release(struct npuemu_ctx *ctx);	/* a file lets go */
void npuemu_ctx_put(struct npuemu_ctx *ctx);
/* A reference, or NULL. */
struct npuemu_ctx *npuemu_ctx_get(u32 slot);
/* The live context in a slot, or NULL; good within an npuemu_turns section. */
struct npuemu_ctx *npuemu_ctx_slot(u32 slot);
/* The context's own view: may it do things?  0, -ENODEV. */
int npuemu_ctx_check(struct npuemu_ctx *ctx);
void npuemu_ctx_break(struct npuemu_ctx *ctx);		/* lost its home */
/* After something was unpublished: nobody uses it when this returns. */
void npuemu_grace(void);
void npuemu_eid(const struct npuemu_ctx *ctx, u32 device, u32 *eid);
int npuemu_join(struct npuemu_file *f, struct npuemu_ioc_join *a);
/* Queues look at faults and epochs: move them all. */
void npuemu_epochs_bump(void);

/* ---- npuemu_bo.c ----------------------------------------------------------------------------- */

/* bo->node of all; a buffer in it may be just going, so kref_get_unless_zero(). */
extern struct list_head npuemu_bo_list;
extern struct mutex npuemu_bo_list_lock;	/* inside ctx->lock, outside bo->lock */

struct npuemu_bo *npuemu_bo_new(struct npuemu_dev *dev, u64 bytes, struct npuemu_ctx *maker);
/* For npuemu_dmabuf.c: one without memory, then into the list; NULL: no memory. */
struct npuemu_bo *npuemu_bo_alloc(struct npuemu_dev *dev, u64 bytes, struct npuemu_ctx *maker);
void npuemu_bo_publish(struct npuemu_bo *bo);
/* The user's buffer that this dma-buf already is on the device, referenced, or NULL. */
struct npuemu_bo *npuemu_bo_find_foreign(struct npuemu_dev *dev, struct dma_buf *dmabuf,
					 kuid_t uid);
/* May sleep, and take its time when it is the last. */
void npuemu_bo_put(struct npuemu_bo *bo);
static inline void npuemu_bo_get(struct npuemu_bo *bo)
{
	kref_get(&bo->ref);
}

/* Back every chunk in [off, off+len): 0, -ENOMEM, -ENODEV (revoked). */
int npuemu_bo_back(struct npuemu_bo *bo, u64 off, u64 len);
/* The op of the engine: like arena_back() of the other host. */
int npuemu_op_back(struct npuemu_chip *chip, const struct npuemu_arena *arena, u64 off, u64 len,
		   u64 lo, u64 hi);
int npuemu_bo_mmap(struct npuemu_bo *bo, struct vm_area_struct *vma, u64 off);
/* Mappings fault with SIGBUS from here on; memory goes with the last reference. */
void npuemu_bos_revoke(struct npuemu_dev *dev);
int npuemu_bo_init(void);
void npuemu_bo_exit(void);

/* ---- npuemu_handle.c: handles and names of buffers --------------------------------------- */

/* Give the context a handle; takes a reference of its own.  The handle, or -errno. */
int npuemu_handle_add(struct npuemu_ctx *ctx, struct npuemu_bo *bo, bool imported);
struct npuemu_bo_handle *npuemu_handle_find(struct npuemu_ctx *ctx, u32 handle); /* ctx->lock */
/* A reference to the buffer of a handle, or -ENOENT; takes ctx->lock. */
struct npuemu_bo *npuemu_handle_bo(struct npuemu_ctx *ctx, u32 handle);
void npuemu_handles_drop(struct npuemu_ctx *ctx);	/* on close */
int npuemu_ioc_bo_create(struct npuemu_file *f, struct npuemu_ioc_bo_create *a);
int npuemu_ioc_bo_close(struct npuemu_file *f, struct npuemu_ioc_handle *a);
int npuemu_ioc_bo_name(struct npuemu_file *f, struct npuemu_ioc_bo_name *a);
int npuemu_ioc_bo_open(struct npuemu_file *f, struct npuemu_ioc_bo_open *a);
/* The last reference is gone. */
void npuemu_name_drop(struct npuemu_bo *bo);
void npuemu_names_exit(void);

/* ---- npuemu_dmabuf.c --------------------------------------------------------------------- */

/*
 * Export only reserves the descriptor: @a is the first member of this.  The
 * caller copies it out, then tells whether that went well; not before is the
 * descriptor there for other threads.
 */
struct npuemu_export_arg {
	struct npuemu_ioc_bo_export a;
	struct dma_buf *dmabuf;
};

int npuemu_ioc_bo_export(struct npuemu_file *f, struct npuemu_ioc_bo_export *a);
void npuemu_export_done(struct npuemu_export_arg *arg, bool told);
int npuemu_ioc_bo_import(struct npuemu_file *f, struct npuemu_ioc_bo_import *a);
void npuemu_foreign_release(struct npuemu_bo *bo);

/* ---- npuemu_place.c: the address table --------------------------------------------------- */

int npuemu_ioc_va_map(struct npuemu_file *f, struct npuemu_ioc_va_map *a);
int npuemu_ioc_va_unmap(struct npuemu_file *f, struct npuemu_ioc_va_unmap *a);
int npuemu_op_local(struct npuemu_chip *chip, u64 va, u64 len, struct npuemu_local *out);
/* Remove every place of a buffer handle (~0: of all); ctx->lock held, waits. */
void npuemu_places_remove(struct npuemu_ctx *ctx, u32 handle);

/* ---- npuemu_pager.c: pageable host memory ------------------------------------------------ */

u8 *npuemu_op_page(struct npuemu_jfs *q, struct npuemu_wqe *w, u64 va, u64 *len, bool write,
		   bool fill);
enum npuemu_step npuemu_op_page_out(struct npuemu_jfs *q, struct npuemu_wqe *w);
void npuemu_op_page_cancel(struct npuemu_jfs *q);
int npuemu_pager_start(struct npuemu_ctx *ctx);		/* at the first pageable place; ctx->lock */
void npuemu_pager_stop(struct npuemu_ctx *ctx);
/* fops->flush: if the owner is on its way out, no page of its is waited for. */
void npuemu_pager_flush(struct npuemu_ctx *ctx);
/* After [va, +len) was unpublished: nothing touches it when this returns.  -EINTR. */
int npuemu_pager_drain(struct npuemu_ctx *ctx, u64 va, u64 len);	/* 0: of VA_REST */
void npuemu_pager_forget(struct npuemu_queue *q);	/* its queue is being freed */
/* In a thread of the owner (WAIT): serve what is asked for; did any? */
bool npuemu_pager_help(struct npuemu_ctx *ctx);

/* ---- npuemu_seg.c: segments and peers ---------------------------------------------------- */

int npuemu_ioc_seg_create(struct npuemu_file *f, struct npuemu_ioc_seg_create *a);
int npuemu_ioc_seg_rotate(struct npuemu_file *f, struct npuemu_ioc_seg_rotate *a);
int npuemu_ioc_seg_destroy(struct npuemu_file *f, struct npuemu_ioc_seg_destroy *a);
u32 npuemu_token_or_random(u32 token);		/* 0 is none: a random one */
void npuemu_segs_drop(struct npuemu_ctx *ctx);
u32 npuemu_segs_count(struct npuemu_ctx *ctx);
/* The live context behind an endpoint id, or NULL; in an npuemu_turns section. */
struct npuemu_ctx *npuemu_peer_ctx(const u64 *eid);
const struct npuemu_peer *npuemu_op_peer(struct npuemu_chip *chip, const u64 *eid);
const struct npuemu_arena *npuemu_op_arena(struct npuemu_chip *chip, const struct npuemu_peer *peer,
					   const struct npuemu_seg_rec *rec);

/* ---- npuemu_ring.c: what user space maps of queues --------------------------------------- */

int npuemu_rings_init(struct npuemu_ctx *ctx);
void npuemu_rings_exit(struct npuemu_ctx *ctx);
int npuemu_ring_alloc(struct npuemu_ctx *ctx, struct npuemu_ring_mem *m, u64 bytes);
void npuemu_ring_free(struct npuemu_ctx *ctx, struct npuemu_ring_mem *m);
int npuemu_record_take(struct npuemu_ctx *ctx);
void npuemu_record_give(struct npuemu_ctx *ctx, u32 record);
static inline u32 *npuemu_record(struct npuemu_ctx *ctx, u32 record, u32 at)
{
	const u32 per_page = PAGE_SIZE / NPUEMU_REC_BYTES;

	return page_address(ctx->rec_pages[record / per_page]) +
	       record % per_page * NPUEMU_REC_BYTES + at;
}

/* @off: in the context's window. */
int npuemu_ring_mmap(struct npuemu_ctx *ctx, struct vm_area_struct *vma, u64 off, u64 len);

/* ---- npuemu_cq.c ------------------------------------------------------------------------- */

int npuemu_ioc_cq_create(struct npuemu_file *f, struct npuemu_ioc_cq_create *a);
int npuemu_ioc_cq_destroy(struct npuemu_file *f, struct npuemu_ioc_handle *a);
int npuemu_ioc_cq_eventfd(struct npuemu_file *f, struct npuemu_ioc_cq_eventfd *a);
/* One more user; the second needs a CQ made for it.  Both with ctx->lock held. */
struct npuemu_cq *npuemu_cq_attach(struct npuemu_ctx *ctx, u32 handle);
void npuemu_cq_detach(struct npuemu_cq *cq);
/* Nobody finds it any more; ctx->lock held, or at the context's end. */
void npuemu_cq_free(struct npuemu_cq *cq);

/* ---- npuemu_queue.c ---------------------------------------------------------------------- */

static inline bool npuemu_pow2_within(u32 v, u32 lo, u32 hi)
{
	return is_power_of_2(v) && v >= lo && v <= hi;
}

int npuemu_ioc_rq_create(struct npuemu_file *f, struct npuemu_ioc_rq_create *a);
int npuemu_ioc_rq_destroy(struct npuemu_file *f, struct npuemu_ioc_handle *a);
int npuemu_ioc_rq_query(struct npuemu_file *f, struct npuemu_ioc_rq_query *a);
int npuemu_ioc_queue_create(struct npuemu_file *f, struct npuemu_ioc_queue_create *a);
int npuemu_ioc_queue_destroy(struct npuemu_file *f, struct npuemu_ioc_handle *a);
int npuemu_ioc_queue_modify(struct npuemu_file *f, struct npuemu_ioc_queue_modify *a);
int npuemu_ioc_queue_query(struct npuemu_file *f, struct npuemu_ioc_queue_query *a);
void npuemu_queue_stat(struct npuemu_queue *q, struct npuemu_ioc_queue_query *out);
/* Adds. */
void npuemu_counters_add(const struct npuemu_jfs_counters *c, struct npuemu_ioc_counters *out);
void npuemu_queues_drop(struct npuemu_ctx *ctx);	/* on close: queues, RQs, CQs */
/* The device went away under them: ERROR, and their doorbells are dead. */
void npuemu_queues_kill(struct npuemu_ctx *ctx, struct npuemu_dev *dev);
/* Own it, however long a turn takes; -EINTR, -ETIMEDOUT. */
int npuemu_queue_own(struct npuemu_queue *q);
void npuemu_queue_free(struct npuemu_queue *q);

/* ---- npuemu_doorbell.c ------------------------------------------------------------------- */

int npuemu_doorbell_init(struct npuemu_queue *q);
vm_fault_t npuemu_doorbell_fault(struct npuemu_queue *q, struct vm_fault *vmf);
/* Its device is gone: from now on every turn flushes, until the flush is done. */
void npuemu_doorbell_lose(struct npuemu_queue *q);
/* Stop looking at the queue unless there is something to do; true: parked. */
bool npuemu_doorbell_park(struct npuemu_queue *q);
void npuemu_doorbell_kill(struct npuemu_queue *q);
void npuemu_doorbell_exit(struct npuemu_queue *q);
/* The net below: find parked queues whose doorbell moved. */
void npuemu_watchdog_start(void);
void npuemu_watchdog_stop(void);
void npuemu_watchdog_poke(void);

/* ---- npuemu_worker.c --------------------------------------------------------------------- */

int npuemu_worker_start(struct npuemu_worker *w, struct npuemu_dev *dev, const char *kind);
void npuemu_worker_stop(struct npuemu_worker *w);
/* db_lock held: put it on the hot list, wake the worker. */
void npuemu_heat(struct npuemu_queue *q);
void npuemu_cool(struct npuemu_queue *q);	/* take it off */
void npuemu_worker_kick(struct npuemu_worker *w);
/* One turn, in an npuemu_turns section; did it get anywhere, is there more? */
bool npuemu_queue_turn(struct npuemu_queue *q, bool helper);
/* Owner or not: is there anything it could do now? */
bool npuemu_queue_news(const struct npuemu_queue *q);
bool npuemu_queue_todo(const struct npuemu_queue *q);
extern const struct npuemu_host_ops npuemu_ops;

/* ---- npuemu_wait.c ----------------------------------------------------------------------- */

int npuemu_ioc_wait(struct npuemu_file *f, struct npuemu_ioc_wait *a);
void npuemu_op_wake(struct npuemu_chip *chip, struct npuemu_share *share);
void npuemu_op_wake_cq(struct npuemu_chip *chip, struct npuemu_jfc *jfc);
bool npuemu_help(struct npuemu_ctx *ctx);

/* ---- npuemu_send.c ----------------------------------------------------------------------- */

enum npuemu_step npuemu_op_send(struct npuemu_jfs *q, struct npuemu_wqe *w);
void npuemu_op_send_cancel(struct npuemu_jfs *q, struct npuemu_wqe *w);
void npuemu_inbox_init(struct npuemu_ctx *ctx);

/* ---- npuemu_info.c: lists, links, faults ------------------------------------------------- */

int npuemu_ioc_query(struct npuemu_file *f, struct npuemu_ioc_query *a);
int npuemu_ioc_device(struct npuemu_file *f, struct npuemu_ioc_device *a);
int npuemu_ioc_link(struct npuemu_file *f, struct npuemu_ioc_link *a);
int npuemu_ioc_processes(struct npuemu_file *f, struct npuemu_ioc_list *a);
int npuemu_ioc_queues(struct npuemu_file *f, struct npuemu_ioc_list *a);
int npuemu_ioc_fault_inject(struct npuemu_file *f, struct npuemu_ioc_fault *a);
int npuemu_ioc_fault_clear(struct npuemu_file *f, void *a);
u32 npuemu_op_faults(struct npuemu_chip *chip, struct npuemu_fault_rec *out);
extern u32 npuemu_fault_gen;
void npuemu_describe_sleeper(struct npuemu_ctx *ctx, char *out, size_t room);

/* ---- npuemu_trace.c, npuemu_debugfs.c, npuemu_sysfs.c ------------------------------------ */

void npuemu_op_trace(struct npuemu_jfs *q, u32 event, u32 index, u64 arg);
/* A new context, once it is in its slot: does anybody listen to its chip? */
void npuemu_trace_ctx(struct npuemu_ctx *ctx);
void npuemu_debugfs_init(void);
void npuemu_debugfs_exit(void);

/* What a context has and did. */
struct npuemu_usage {
	u32 queues;
	u32 cqs;
	u32 rqs;
	u32 segments;
	u32 buffers;			/* made by it */
	u32 imports;
	u32 places;
	u64 pinned_pages;
	u64 hbm_used;			/* bytes, of buffers made by it */
	u64 hbm_backed;
	u64 hbm_imported;
	struct npuemu_ioc_counters cnt;
};

/* With a reference; takes ctx->lock. */
void npuemu_ctx_usage(struct npuemu_ctx *ctx, struct npuemu_usage *u);
/* Bytes; with a reference, or in the list and npuemu_bo_list_lock held. */
u64 npuemu_bo_backed(const struct npuemu_bo *bo);
u32 npuemu_dev_queues(const struct npuemu_dev *dev);
void npuemu_show_fdinfo(struct seq_file *m, struct file *file);
extern const struct attribute_group *npuemu_dev_groups[];

/* Objects that exist; a test expects them back at 0. */
enum npuemu_leak {
	NPUEMU_LEAK_CTX,
	NPUEMU_LEAK_BO,
	NPUEMU_LEAK_HANDLE,
	NPUEMU_LEAK_PLACE,
	NPUEMU_LEAK_PINNED,	/* pages */
	NPUEMU_LEAK_SEG,
	NPUEMU_LEAK_CQ,
	NPUEMU_LEAK_RQ,
	NPUEMU_LEAK_QUEUE,
	NPUEMU_LEAK_CHUNK,
	NPUEMU_LEAK_DMABUF,
	NPUEMU_LEAKS
};

extern atomic_t npuemu_leaks[NPUEMU_LEAKS];
static inline void npuemu_leak(enum npuemu_leak what, int n)
{
	atomic_add(n, &npuemu_leaks[what]);
}

#endif
