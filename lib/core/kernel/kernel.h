/* SPDX-License-Identifier: MIT */
/*
 * The kernel host: one process's share of the board that npuemu.ko drives.
 *
 * The driver holds everything; here is what it takes to reach it: a file for
 * each device in use, the three windows (rings, doorbells, records) and a note
 * of each buffer that is mapped.  The first file opened makes the context and
 * is its home; the others join it when they are first needed.
 */
#ifndef NPUEMU_KERNEL_H
#define NPUEMU_KERNEL_H

#include <npuemu/ioctl.h>
#include "core.h"

/* A mapped buffer, by address. */
struct npuemu_kplace {
	u64 va;
	u64 bytes;		/* as asked for; 0: freed, and held by a guard */
	u64 room;		/* as mapped */
	u64 gap;		/* under guard: behind it */
	u8 *own_view;		/* under guard: the same, for this library */
	u32 slot;		/* of its maker */
};

struct npuemu_kernel {
	struct npuemu base;
	int fd[NPUEMU_MAX_DEVICES];	/* -1: not open; all devices are one context */
	int home;			/* the file it was made with; observers: npuemu-ctl */
	struct npuemu_ioc_query about;	/* as it was at the open */
	u8 *rings;
	u8 *doorbells;
	u8 *records;
	bool async;			/* no helping */
	u32 help_every;			/* empty polls in a row */
	s64 spin_ns;
	s64 hang_report_ns;
	pthread_mutex_t lock;		/* all below, and opening further devices */
	struct npuemu_kplace *places;	/* sorted */
	u32 nplaces;
	u32 places_room;
	u64 *held;			/* places of freed buffers, the longest held first */
	u32 held_first;
	u32 held_n;
	int exports_fd;			/* -1: not yet needed */
	u32 exports_bytes;		/* of the own part */
	u8 *exports;
	struct npuemu_eid eid[NPUEMU_MAX_DEVICES];	/* noted as queues are made */
	struct npuemu_queue *queues[NPUEMU_CTX_QUEUES];
	struct npuemu_rq *rqs[NPUEMU_CTX_QUEUES];
};

static inline struct npuemu_kernel *npuemu_kernel_of(struct npuemu *ctx)
{
	return (struct npuemu_kernel *)(void *)ctx;
}

static inline u32 *npuemu_k_record(const struct npuemu_kernel *k, u32 record, u32 at)
{
	return (u32 *)(void *)(k->records + (size_t)record * NPUEMU_REC_BYTES + at);
}

/* ---- host.c ------------------------------------------------------------------- */

/* 0 or a negative errno; a signal is no reason to give up. */
int npuemu_k_ioctl(int fd, unsigned long nr, void *arg);
/* "WHAT: why", with -EUCLEAN in place of @err when the context is lost. */
int npuemu_k_failed(struct npuemu *ctx, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The file of a device, opened and joined when first asked for; -errno. */
int npuemu_k_device(struct npuemu_kernel *k, u32 device);
int npuemu_k_check(struct npuemu *ctx);
int npuemu_k_query(struct npuemu *ctx, struct npuemu_info *info);
/* npuemu-ctl, which no context is needed for. */
int npuemu_k_open_ctl(void);

/* ---- memory.c ------------------------------------------------------------------- */

int npuemu_k_buf_alloc(struct npuemu *ctx, u32 device, u64 bytes, struct npuemu_buf *buf);
int npuemu_k_buf_free(struct npuemu_buf *buf);
int npuemu_k_buf_export(struct npuemu_buf *buf, struct npuemu_handle *handle);
int npuemu_k_buf_import(struct npuemu *ctx, const struct npuemu_handle *handle,
			struct npuemu_buf *buf);
int npuemu_k_buf_map(struct npuemu_buf *buf, u64 va);
int npuemu_k_buf_unmap(struct npuemu_buf *buf, u64 va);
int npuemu_k_mem_register(struct npuemu_mem *mem);
int npuemu_k_mem_unregister(struct npuemu_mem *mem);
int npuemu_k_mem_any(struct npuemu *ctx, bool on);
int npuemu_k_seg_register(struct npuemu_seg *seg, u64 off, u32 flags);
int npuemu_k_seg_rotate(struct npuemu_seg *seg, u32 token_value);
int npuemu_k_seg_unregister(struct npuemu_seg *seg);
/* The slot that made the buffer around [va, +len); false: there is none. */
bool npuemu_k_place_find(struct npuemu_kernel *k, u64 va, u64 len, u32 *slot);
void npuemu_k_places_unmap(struct npuemu_kernel *k);
/* The first place that ends beyond @va; out of the table.  k->lock held. */
u32 npuemu_k_place_search(const struct npuemu_kernel *k, u64 va);
void npuemu_k_place_delete(struct npuemu_kernel *k, u32 at);

/* ---- guard.c -------------------------------------------------------------------- */

void npuemu_k_guard_new(struct npuemu_buf *buf, int fd);
bool npuemu_k_guard_hold(struct npuemu_buf *buf);
int npuemu_k_buf_close(struct npuemu_buf *buf, bool closed);
void *npuemu_k_alias(struct npuemu *ctx, u64 va, bool *device);

/* ---- exports.c ------------------------------------------------------------------ */

int npuemu_k_exports_own(struct npuemu *ctx, u32 bytes, void **table);
int npuemu_k_exports_of(struct npuemu *ctx, u32 slot, const void **table, u32 *bytes);
void npuemu_k_exports_close(struct npuemu_kernel *k);

/* ---- queues.c -------------------------------------------------------------------- */

int npuemu_k_cq_create(struct npuemu_cq *cq, u32 depth, bool timed);
void npuemu_k_cq_destroy(struct npuemu_cq *cq);
int npuemu_k_rq_create(struct npuemu_rq *rq, const struct npuemu_rq_attr *attr);
int npuemu_k_rq_destroy(struct npuemu_rq *rq);
int npuemu_k_rq_query(struct npuemu_rq *rq, struct npuemu_rq_info *info);
int npuemu_k_queue_create(struct npuemu_queue *q, const struct npuemu_queue_attr *attr);
int npuemu_k_queue_destroy(struct npuemu_queue *q);
int npuemu_k_queue_modify(struct npuemu_queue *q, u32 state);
int npuemu_k_queue_map(struct npuemu_queue *q, struct npuemu_queue_map *map);
int npuemu_k_queue_query(struct npuemu_queue *q, struct npuemu_queue_stat *stat);
struct npuemu_queue *npuemu_k_queue_by_id(struct npuemu *ctx, u32 id);
void npuemu_k_queues_drop(struct npuemu_kernel *k);
/* What the driver says of a queue, as people and programs read it. */
void npuemu_k_stat(const struct npuemu_ioc_queue_query *from, struct npuemu_queue_stat *stat);

/* ---- wait.c ----------------------------------------------------------------------- */

int npuemu_k_doorbell(struct npuemu_queue *q, bool through);
u32 npuemu_k_help_every(void);
bool npuemu_k_help(struct npuemu *ctx, struct npuemu_cq *cq);
void npuemu_k_unstarve(struct npuemu_cq *cq);
int npuemu_k_wait_cq(struct npuemu_cq *cq, s64 deadline);
int npuemu_k_wait_word(struct npuemu *ctx, const volatile u64 *word, u32 cmp, u64 value,
		       s64 deadline);

/* ---- info.c ------------------------------------------------------------------------ */

int npuemu_k_device_query(struct npuemu *ctx, u32 device, struct npuemu_device_info *info);
int npuemu_k_link_query(struct npuemu *ctx, u32 from, u32 to, struct npuemu_link_info *info);
int npuemu_k_process_list(struct npuemu *ctx, struct npuemu_process_info *list, int n);
int npuemu_k_queue_list(struct npuemu *ctx, u32 slot, struct npuemu_queue_stat *list, int n);
int npuemu_k_fault_inject(struct npuemu *ctx, const struct npuemu_fault_rec *fault);
int npuemu_k_fault_clear(struct npuemu *ctx);
int npuemu_k_reap(struct npuemu *ctx);
int npuemu_k_board_reset(const char *board);

#endif
