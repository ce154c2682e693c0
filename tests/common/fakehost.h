/* SPDX-License-Identifier: MIT */
/*
 * A host for the engine that a test can see through: plain memory as arenas, one
 * peer, segment records, a clock that stands still, and a count of every call.
 * No thread, no file, nothing shared.  WQEs are built and CQEs are read here by
 * byte and bit numbers written out by hand, so that a wrong macro of the engine's
 * headers does not agree with itself.
 */
#ifndef NPUEMU_TESTS_FAKEHOST_H
#define NPUEMU_TESTS_FAKEHOST_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"

/* ---- Numbers from the format tables, not from the headers ----------------- */

#define FH_RELAXED	(1u << 16)
#define FH_STRONG	(2u << 16)
#define FH_COMP_ORDER	(1u << 18)
#define FH_FENCE	(1u << 19)
#define FH_SOLICITED	(1u << 20)
#define FH_CQE		(1u << 21)
#define FH_INLINE	(1u << 22)
#define FH_UDF		(1u << 23)
#define FH_NF		(1u << 27)
#define FH_TOKEN	(1u << 28)
#define FH_OWNER	(1u << 31)

enum {
	FH_SEND = 0, FH_SEND_IMM = 1, FH_WRITE = 3, FH_NOTIFY = 5, FH_READ = 6,
	FH_CAS = 7, FH_FAA = 11, FH_NOP = 17, FH_WRITE_ADD = 25,
};

enum {
	FH_SDMA_NOP = 0, FH_SDMA_COPY = 1, FH_SDMA_COPY_2D = 2, FH_SDMA_FILL = 3,
	FH_SDMA_REDUCE = 4, FH_SDMA_NOTIFY = 5,
};

/* status * 256 + substatus */
enum {
	FH_OK = 0x000, FH_UNSUPPORTED = 0x100, FH_LOC_LEN = 0x201, FH_LOC_ACCESS = 0x202,
	FH_RESP_LEN = 0x203, FH_LOC_POISON = 0x204, FH_REM_REQ = 0x301, FH_REM_ACCESS = 0x302,
	FH_REM_POISON = 0x304, FH_RNR = 0x400, FH_TIMEOUT = 0x500, FH_FLUSH = 0x600,
};

/* rights of a segment */
#define FH_LOCAL_ONLY	1u
#define FH_R		2u
#define FH_RW		6u
#define FH_RWA		14u
#define FH_NO_TOKEN	0x80000000u

/* ---- The host ------------------------------------------------------------- */

#define FH_ARENA_BYTES	(8ull << 20)
#define FH_VA		0x100000000000ull	/* of our arena; never a pointer */
#define FH_PEER_VA	0x200000000000ull	/* of the peer's */
#define FH_RO_VA	0x300000000000ull	/* of memory we may only read */
#define FH_RO_BYTES	65536u
#define FH_SHARES	4u
#define FH_SEGS		16u
#define FH_BOARD	0x51u
#define FH_SLOT		3u
#define FH_PEER_SLOT	9u
#define FH_PEER_GEN	0x123u
#define FH_TOKEN_ID	0x5001u		/* the peer's first segment, all of its arena */
#define FH_TOKEN_VALUE	0xabcd1234u
#define FH_MESSAGE	256
#define FH_CHUNK	(2ull << 20)
#define FH_MAX_CHUNKS	20u
#define FH_PG_VA	0x400000000000ull	/* of pageable memory */
#define FH_PG_BYTES	(1ull << 20)
#define FH_BOUNCE	65536u

struct fh_arena {
	struct npuemu_arena a;
	struct npuemu_share shares[FH_SHARES];
	u64 backed;		/* a bit for each 2 MiB */
	u8 *chunks[FH_MAX_CHUNKS];	/* fh_chunked(): each somewhere else */
	u8 *shadow;		/* what the first @watch bytes should be */
};

/* Pageable memory: the engine sees it through two small buffers only. */
struct fh_bounce {
	u8 *p;
	u64 va, len;		/* what it stands for; len 0: nothing */
	u32 wqe;		/* for whom */
	bool asked;		/* but not there yet */
};

struct fh_pager {
	u8 *memory;		/* FH_PG_BYTES */
	u8 *shadow;
	struct fh_bounce bounce[2];	/* reading, writing */
	u64 room;		/* bytes of a bounce buffer */
	u64 gone_from;		/* memory from this offset on has been unmapped */
	u64 out_gone_from;	/* likewise, but only writing out finds it */
	bool out_asked;
	u32 in, out, cancel, waits;	/* calls; answers that made a WQE wait */
};

struct fakehost {
	struct npuemu_chip chip;
	struct npuemu_host_ops ops;
	struct npuemu_machine machine;
	struct npuemu_link_counters links[NPUEMU_MAX_DEVICES * NPUEMU_MAX_DEVICES];
	struct fh_arena mine, theirs;
	u64 arena_bytes;
	u64 mine_from;		/* what of our arena is a buffer: from here to its end */
	u64 mine_piece;		/* that are many buffers, each of so many bytes; 0: one */
	u8 *ro;
	struct fh_pager pg;
	struct npuemu_peer peer;
	struct npuemu_seg_rec segs[FH_SEGS];
	u64 life;
	bool out_of_reach;	/* the arena op says NULL */
	u32 arena_index;	/* which peer arena the record is of */
	s32 back_left;		/* backings that work before one fails; < 0: all */
	bool others_live;	/* what alive says */
	struct npuemu_fault_rec faults[NPUEMU_MAX_FAULTS];
	u32 nfaults;
	u32 fault_gen;
	struct npuemu_jfr *jfr;	/* where SENDs go; NULL: nobody is there */
	struct npuemu_jfs *lender;	/* whose caches the receiver uses */
	struct npuemu_message message;	/* being delivered, if @message_len */
	u8 *message_copy;
	u64 message_len;
	char said[FH_MESSAGE];	/* the last explanation */
	struct {
		u32 local, peer, arena, back, wake, wake_cq, alive, send, cancel;
		u32 faults, explain, trace, zalloc, free;
	} n;
	void (*on_back)(struct fakehost *fh);	/* called before memory is backed */
	void (*on_trace)(struct npuemu_jfs *q, u32 event, u32 index, u64 arg);
};

extern u64 fh_now;		/* ns */

/* The test itself is wrong, or the engine broke its contract with the host. */
void fh_die(const char *what) __attribute__((__noreturn__));

extern bool fh_no_memory;	/* for the engine, where it can do without */
struct fakehost *fh_new(void);
struct fakehost *fh_new_small(u64 arena_bytes);
void fh_free(struct fakehost *fh);

/* Bytes of ours and of the peer's, by offset. */
u8 *fh_mine(struct fakehost *fh, u64 off);
u8 *fh_theirs(struct fakehost *fh, u64 off);
void fh_eid(struct fakehost *fh, u32 eid[4]);

/* Publish segment @index of the peer; its token id. */
u32 fh_segment(struct fakehost *fh, u32 index, u64 off, u64 len, u32 access, u32 value);
/* Take it away, or change it, as an owner does it. */
void fh_segment_gone(struct fakehost *fh, u32 index);
void fh_segment_rotate(struct fakehost *fh, u32 index, u32 value);

/* From now on chunks are backed when asked for only. */
void fh_lazy(struct fakehost *fh);
/* Both arenas anew, chunked: each chunk lies between pages nobody may touch.
 * @backed: all of them are there; else they come, zeroed, when asked for.
 */
void fh_chunked(struct fakehost *fh, bool backed);
/* There is pageable memory at FH_PG_VA, with noise in it. */
void fh_pageable(struct fakehost *fh, u64 seed);
void fh_pageable_free(struct fakehost *fh);
u8 *fh_page(struct npuemu_jfs *q, struct npuemu_wqe *w, u64 va, u64 *len, bool write, bool fill);
enum npuemu_step fh_page_out(struct npuemu_jfs *q, struct npuemu_wqe *w);
void fh_page_cancel(struct npuemu_jfs *q);
/* Memory between two pages nobody may touch. */
u8 *fh_guarded(size_t bytes);
void fh_unguard(u8 *p, size_t bytes);
/* Where byte @off is; NULL: not backed. */
u8 *fh_at(const struct fh_arena *a, u64 off);
/* Faults changed: queues load them before their next turn. */
void fh_faults(struct fakehost *fh, u32 n);

/* Fill the first @watch bytes of both arenas with noise (chunks that are not
 * backed: remember zeros) and remember them.
 */
void fh_watch(struct fakehost *fh, u64 watch, u64 seed);
/* Offset of the first byte that is not as remembered; ~0: none. */
u64 fh_differs(const struct fh_arena *a, u64 watch);
u64 fh_random(u64 *state);

/* ---- WQEs ----------------------------------------------------------------- */

struct fh_wqe {
	u8 b[256];
	u32 nbb;
};

void fh_put32(struct fh_wqe *w, u32 off, u32 v);
void fh_put64(struct fh_wqe *w, u32 off, u64 v);
u32 fh_get32(const struct fh_wqe *w, u32 off);
/* A control part with everything good in it: token, peer, address. */
void fh_sqe(struct fh_wqe *w, u32 op, u32 flags, u32 nsge, u64 raddr);
void fh_sge(struct fh_wqe *w, u32 off, u64 va, u32 len);
void fh_token(struct fh_wqe *w, u32 id, u32 value);
/* Complete WQEs; offsets are those in the two arenas. */
void fh_rma(struct fh_wqe *w, u32 op, u32 flags, u64 mine, u64 theirs, u32 len);
void fh_reduce(struct fh_wqe *w, u32 op, u32 type);	/* on top of fh_rma() */
void fh_inline(struct fh_wqe *w, u32 op, u32 flags, u64 theirs, const void *data, u32 len);
void fh_notify(struct fh_wqe *w, u32 flags, u64 mine, u64 theirs, u32 len, u64 word, u64 value);
void fh_write_add(struct fh_wqe *w, u32 flags, u64 mine, u64 theirs, u32 len, u64 word, u64 add);
void fh_faa(struct fh_wqe *w, u32 flags, u64 mine, u64 theirs, u32 len, u64 add);
void fh_cas(struct fh_wqe *w, u32 flags, u64 mine, u64 theirs, u32 len, const void *swap,
	    const void *compare);
void fh_nop(struct fh_wqe *w, u32 flags);
void fh_sdma(struct fh_wqe *w, u32 op, u32 flags, u64 dst, u64 src, u64 len);
void fh_pitch(struct fh_wqe *w, u32 height, u64 dst_pitch, u64 src_pitch);

/* ---- Queues --------------------------------------------------------------- */

/* A CQE, taken apart. */
struct fh_cqe {
	u32 recv, jetty, owner, inline_en, opcode, fd, substatus, status;
	u32 entry_idx, local_num, rmt_idx, tpn, bytes;
	u64 user_data;
	u32 rmt_eid[4];
	u64 imm;
	u32 code;		/* status * 256 + substatus */
};

struct fh_cq {
	struct npuemu_jfc jfc;
	u32 ci_rec;
	u32 ci;
};

struct fh_queue {
	struct npuemu_jfs q;
	struct fakehost *fh;
	struct fh_cq *cq;
	struct fh_cq own;
	u64 *ring;
	u32 *page;		/* the doorbell page */
	u32 depth;
	u32 pi;			/* posted */
	u32 owner;
	struct npuemu_jfs_counters cnt;
	char cause[NPUEMU_CAUSE_BYTES];
	bool waiting;		/* what the last turn said */
};

#define FH_QUEUE_ID	0x7a5c3u
#define FH_USER_DATA	0x1122334455667788ull

void fh_cq_init(struct fh_cq *cq, u32 depth);
void fh_cq_free(struct fh_cq *cq);
/* Take the next entry. */
bool fh_poll(struct fh_cq *cq, struct fh_cqe *c);

/* @cq NULL: one of its own, of @cq_depth. */
struct fh_queue *fh_queue(struct fakehost *fh, u32 depth, u32 cq_depth, u32 type,
			  struct fh_cq *cq);
void fh_queue_free(struct fh_queue *f);
void fh_chaos(struct fh_queue *f, u64 seed);
/* All indices start at @at, as after a long life. */
void fh_start_at(struct fh_queue *f, u32 at);
void fh_post(struct fh_queue *f, const struct fh_wqe *w);
/* The same with the wrong owner bit. */
void fh_post_stale(struct fh_queue *f, const struct fh_wqe *w);
void fh_bell(struct fh_queue *f);
/* One turn, owned and released as a host does it: is there more at once? */
bool fh_turn(struct fh_queue *f);
/* Ring, and turn until nothing is left to do at once, and no page is on its way.
 * The number of turns.
 */
u32 fh_run(struct fh_queue *f);
/* Post, run, and take the completion; its code, or ~0 if there was none. */
u32 fh_do(struct fh_queue *f, const struct fh_wqe *w, struct fh_cqe *c);

#endif
