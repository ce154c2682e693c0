/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The chip: queues, segments, places, and what a host must give it.
 *
 * A WQE's walk: queue.c fetches and copies it, opcode.c checks it, order.c says
 * when (chaos only; otherwise in posted order, which satisfies every order
 * bit), execute.c asks segment.c for the place and copy.c, reduce.c or notify.c
 * for the work, complete.c writes the CQE.  No step looks back up.
 *
 * Ownership: everything in struct npuemu_jfs is touched only by whoever holds
 * its owner word (npuemu_jfs_try), for at most 64 KiB or 64 WQEs at a time.
 * What a queue caches of the world is dropped when chip->epoch has moved, so
 * taking something away is: unpublish, bump the epoch, wait until every owner
 * word was seen free or moved.  That is the only grace period there is.
 */
#ifndef NPUEMU_ENGINE_H
#define NPUEMU_ENGINE_H

#include "engine_port.h"
#include <npuemu/udma.h>
#include "machine.h"

#define NPUEMU_TURN_BYTES	(64u << 10)	/* moved before ownership is handed back */
#define NPUEMU_TURN_WQES	64u
#define NPUEMU_CHUNK_SHIFT	21		/* backing comes in 2 MiB steps */
#define NPUEMU_CHUNK_BYTES	((u64)1 << NPUEMU_CHUNK_SHIFT)
#define NPUEMU_MAX_SLOTS	256u
#define NPUEMU_MAX_SGE		13u
#define NPUEMU_MAX_TOUCHED	8u
#define NPUEMU_MAX_FAULTS	16u
#define NPUEMU_WINDOW		8u		/* WQEs in flight in chaos mode */

/* ---- What lies in memory shared between hosts' processes ----------------- */

/* A segment as its owner publishes it.  @seq is odd while it changes, and
 * different after each change; 0 means free.
 */
struct npuemu_seg_rec {
	u32 seq;
	u32 token_id;
	u32 token_value;
	u32 access;		/* NPUEMU_ACCESS_* | NPUEMU_SEGREC_NO_TOKEN */
	u64 va;
	u64 len;
	u64 off;		/* of va in the arena of @device */
	u32 device;
	u32 buf;		/* index of the buffer's npuemu_share */
	u64 reserved[2];
};

#define NPUEMU_SEGREC_NO_TOKEN	0x80000000u

/* What everybody who writes into a buffer shares about it. */
struct npuemu_share {
	u64 waiters[NPUEMU_MAX_SLOTS / 64];	/* processes asleep on a word in it */
	u64 reducer;		/* who combines into it just now, 0 nobody */
	u64 reserved[3];
};

struct npuemu_link_counters {
	u64 wqes;
	u64 bytes;
};

/* The counters of a queue; the owner of the queue writes, anybody reads. */
struct npuemu_jfs_counters {
	u64 wqes;
	u64 cqes;
	u64 bytes;
	u64 doorbells;
	u64 errors;
	u64 flushed;
	u64 helped;
	u64 faults;
	u64 rnr;
	/* what goes to one device is added to its link when another one's turn
	 * comes; who reads link counters adds these
	 */
	u64 link_to;
	u64 link_wqes;
	u64 link_bytes;
};

struct npuemu_fault_rec {
	u32 kind;
	u32 slot;
	u32 queue;
	u32 device;
	u32 peer_slot;
	u32 status;
	u32 delay_us;
	u32 rate_ppm;
	u32 count;
	u32 serial;		/* of this injection: the same fault again is another one */
	u64 seed;
};

enum {
	NPUEMU_FK_STATUS,
	NPUEMU_FK_DELAY,
	NPUEMU_FK_DROP,
	NPUEMU_FK_POISON,
	NPUEMU_FK_DEAD_PEER,
	NPUEMU_FK_KINDS
};

#define NPUEMU_FAULT_ANY	0xffffffffu
#define NPUEMU_BOARD_GONE	0xffffffffu	/* instead of a number of faults: it was reset */

/*
 * Endpoint ids.  The first two words tell a board, the third is the device,
 * the last is short for the rest: WRITE_ATOMIC_ADD has room for no more.
 */
#define NPUEMU_EID_MAGIC	0x554d5055u		/* "UPMU" */
#define NPUEMU_EID3(slot, gen, dev) \
	((u32)(slot) << 24 | ((u32)(gen) & 0xffffu) << 8 | (u32)(dev))
#define NPUEMU_EID_LO(board)	((u64)(board) << 32 | NPUEMU_EID_MAGIC)
static inline u64 npuemu_eid_hi(u32 eid3)
{
	return (u64)eid3 << 32 | (eid3 & 0xffu);
}

#define NPUEMU_EID3_SLOT(w)	((w) >> 24)
#define NPUEMU_EID3_GEN(w)	((w) >> 8 & 0xffffu)
#define NPUEMU_EID3_DEV(w)	((w) & 0xffu)

/* ---- Places -------------------------------------------------------------- */

/*
 * A device's memory of one process (or one buffer of it), as this one reaches
 * it.  Linear: byte i is base[i].  Chunked: @chunk is not NULL, and byte i is
 * byte i % 2 MiB of chunk[i / 2 MiB], which is NULL while not backed.  A chunk is
 * zeroed before it is published; it goes away as everything else does: see
 * above.  @base and chunks are aligned to 16 bytes at least.
 */
struct npuemu_arena {
	u8 *base;
	u8 **chunk;		/* read with acquire; @base and @backed are NULL then */
	u64 bytes;
	u64 *backed;		/* a bit per chunk, shared; NULL: all backed */
	struct npuemu_share *shares;	/* of its owner's buffers; @nshares of them */
	u32 nshares;
	u32 device;
};

/*
 * Memory local to the process that a queue has found good.  @ptr, or @off, and
 * @va are the same modulo 16: an element aligned at one is so at the other.
 */
struct npuemu_local {
	u64 va;
	u64 len;
	u8 *ptr;			/* of va; NULL: chunked or pageable */
	const struct npuemu_arena *arena;	/* NULL: host memory */
	u64 off;			/* of va in the arena */
	struct npuemu_share *share;	/* NULL: nobody waits for words in it */
	bool readonly;
	bool pageable;			/* host memory reached through ops->page only */
	bool write;			/* in: it is a target */
	bool once;			/* good for this WQE only, maybe less than asked for */
};

#define NPUEMU_PLACES		32u	/* a collective of 8 ranks has 16 buffers, and 8 of its own */
#define NPUEMU_PLACE_BITS	7u	/* of a key to them */

/* Those that a queue has found good; a queue with two needs none of it. */
struct npuemu_places {
	u32 n;			/* since the last drop */
	u32 next;		/* to be written to */
	u8 at[1u << NPUEMU_PLACE_BITS];	/* by some bits of an address: which it was last */
	struct npuemu_local place[NPUEMU_PLACES];
};

/* A segment of a peer that a queue has found good. */
struct npuemu_remote {
	u64 eid[2];
	u32 token_id;
	u32 token_value;
	const u32 *seq;		/* valid while *seq == seq_val ... */
	u32 seq_val;
	u32 access;
	const u64 *life;	/* ... and *life == life_val */
	u64 life_val;
	u64 va;
	u64 len;
	u8 *ptr;			/* of va; NULL: chunked */
	const struct npuemu_arena *arena;
	u64 off;
	struct npuemu_share *share;
};

/* What the host knows of the process behind an endpoint id. */
struct npuemu_peer {
	const u64 *life;
	u64 life_val;
	const struct npuemu_seg_rec *segs;
	u32 nsegs;
	const struct npuemu_arena *arena[NPUEMU_MAX_DEVICES];
};

/* ---- Queues -------------------------------------------------------------- */

struct npuemu_jfc {			/* completion queue */
	/* the producers' line */
	struct npuemu_cqe *ring;
	u64 *times;		/* modelled ns of each entry, or NULL */
	const u32 *ci_rec;	/* consumer index record, 24 bits at least */
	u32 mask;
	u32 pi;			/* private producer index */
	u32 ci;			/* consumer index as last seen */
	u32 attached;		/* queues: one entry each is kept for flush-done */
	u32 lock;		/* taken for an entry when @shared */
	bool shared;
	/* both sides look here, few write */
	u32 starved __aligned(64);	/* a queue waits for room; the poller clears it */
	u32 waiters;		/* threads of this process asleep on it */
	void *host;
};

struct npuemu_jfr {			/* receive queue */
	const struct npuemu_sge *ring;
	const u32 *pi_rec;
	u32 *ci_out;		/* where the poster reads ci, if not here */
	struct npuemu_jfc *jfc;
	u32 mask;
	u32 max_sge;
	u32 ci;
	u32 id;
	u32 jetty;		/* CQEs name a jetty rather than a JFR */
	u32 token_value;
	bool token;		/* only for who knows @token_value */
	u64 user_data;
};

/* A WQE after it was copied and checked. */
struct npuemu_wqe {
	u64 bb[8 * NPUEMU_WQE_MAX_BB];
	const struct npuemu_sge *sge;	/* in bb; NULL: inline */
	const struct npuemu_opinfo *op;
	u32 first;		/* index of the first basic block */
	u32 nbb;
	u32 nsge;
	u32 status;
	u32 phase;		/* execute.c's own: 0 before anything moved */
	u32 elem;		/* reduce: bytes of an element, else 0 */
	u64 len;		/* payload bytes */
	u64 done;
	u64 not_before;		/* ns; fault injection */
	u32 fault_status;	/* what it completes with then */
	bool fault_seen;
	/* the host's, for a SEND under way */
	u64 token;
	u64 deadline;
	u64 retry_at;
	u32 retries;
	bool executed;
	bool backwards;		/* chaos: payload from its end */
	/* pageable memory */
	bool paging;		/* ops->page gave NULL because it is fetching */
	bool page_dirty;	/* [page_va, +page_len) waits in a bounce buffer */
	bool page_write;	/* the last place to be written is pageable */
	bool held;		/* waits for the host to page in or out */
	bool ran;		/* all done but for writing out */
	u64 page_va;
	u64 page_len;
};

enum npuemu_step {
	NPUEMU_STEP_DONE,	/* executed; see status */
	NPUEMU_STEP_MORE,	/* turn used up */
	NPUEMU_STEP_WAIT,	/* for somebody else, or for a time */
};

/* fast.c: bytes that are backed; @last is the highest good start of a piece. */
struct npuemu_span {
	u64 va;
	u64 last;
	u8 *ptr;
};

/* fast.c: what a run of plain WQEs has in common; good while the epoch, *seq
 * and *life are what they were.
 */
struct npuemu_plain {
	u64 w[8];		/* the first WQE of the run, copied once */
	u32 len;		/* 0: nothing is open */
	u32 blocks;		/* of a WQE: 1, FAA 2 */
	u32 to;			/* device, whose link is being counted */
	bool read;		/* the near side is written */
	struct npuemu_span near, far;
	struct npuemu_share *touch[2];
	const u32 *seq;
	u32 seq_val;
	const u64 *life;
	u64 life_val;
};

struct npuemu_jfs {
	/* what every WQE touches */
	const u64 *ring;
	u32 mask;
	u32 ci;			/* next basic block to fetch */
	u32 pi;			/* as last seen and found good */
	u32 pi_raw;		/* as last seen */
	u32 state;		/* enum npuemu_queue_state */
	const u32 *db_pi;
	u32 *owner;		/* even: free; odd: owned; moves with every turn */
	struct npuemu_jfc *jfc;
	struct npuemu_chip *chip;
	u64 turn_bytes;		/* left of this turn */
	u32 epoch;
	u32 fault_gen;
	u32 nfaults;
	u32 ntouched;
	bool busy;		/* cur holds an unfinished WQE */
	bool flush_done_due;	/* ERROR entered, its last CQE not yet written */
	bool raw;		/* the doorbell page is out in the open */
	bool error_suspend;
	bool chaos;
	bool helper;		/* this turn is not the engine thread's */
	bool completed;		/* this turn wrote a CQE */
	u32 dwqe_seen;
	bool dwqe_used;
	u32 link_to;		/* = cnt->link_to */
	u64 cqe_fixed[2];	/* what is the same in every CQE of this queue */
	struct npuemu_plain plain;
	struct npuemu_local *local[2];	/* the latest first: of own[], or of many */
	struct npuemu_local own[2];
	struct npuemu_places *many;	/* from the third on: zalloc; NULL */
	struct npuemu_local once[2];	/* of the WQE's sources, of its targets */
	struct npuemu_remote remote[8];
	struct npuemu_share *touched[NPUEMU_MAX_TOUCHED];
	struct npuemu_jfs_counters *cnt;
	/* what few touch */
	u32 id;
	u32 device;
	u32 type;		/* 0 UDMA, 1 SDMA */
	u32 rnr_retry;
	u32 last_status;
	u64 ack_timeout_ns;
	u64 user_data;
	u64 model_ns;		/* when the modelled queue is free again */
	char *cause;		/* NPUEMU_CAUSE_BYTES, for people */
	void *host;
	struct npuemu_wqe cur;
	struct npuemu_window *win;	/* chaos */
	struct npuemu_armed_fault *fault;	/* NPUEMU_MAX_FAULTS, once there was one */
};

struct npuemu_armed_fault {
	struct npuemu_fault_rec rec;
	u64 rng;
	u32 hits;
};

#define NPUEMU_CAUSE_BYTES	96

/* One process's share of the chip. */
struct npuemu_chip {
	const struct npuemu_host_ops *ops;
	void *host;
	const struct npuemu_machine *machine;
	struct npuemu_link_counters *links;	/* [from * NPUEMU_MAX_DEVICES + to] */
	const u32 *fault_gen;
	u32 epoch;
	u32 slot;
	u32 board_id;		/* second word of every endpoint id here */
	u64 me;			/* nonzero and unique among live processes: the reducer word */
	u64 chaos_seed;
	bool trace;
};

enum npuemu_trace_event {
	NPUEMU_TR_DOORBELL = 1,		/* index: PI */
	NPUEMU_TR_EXECUTE,		/* index: first block; arg: opcode byte, length << 8 */
	NPUEMU_TR_COMPLETE,		/* index: last block; arg: status */
	NPUEMU_TR_PARK,
	NPUEMU_TR_WAKE,
	NPUEMU_TR_STATE,		/* arg: new state */
};

struct npuemu_host_ops {
	/* The buffer or registered memory around va: 0, or -EFAULT.  @out is zero but
	 * for @write; marked "once" it may be shorter than @len, at a multiple of 16.
	 */
	int (*local)(struct npuemu_chip *chip, u64 va, u64 len,
		     struct npuemu_local *out);
	/* The peer behind an endpoint: NULL if none ever was, or it is dead. */
	const struct npuemu_peer *(*peer)(struct npuemu_chip *chip, const u64 *eid);
	/* The arena of a live peer's segment, mapped if need be: NULL: out of reach.
	 * @rec is a consistent copy, its device below NPUEMU_MAX_DEVICES; the rest
	 * of it is checked against the arena afterwards.
	 */
	const struct npuemu_arena *(*arena)(struct npuemu_chip *chip,
					    const struct npuemu_peer *peer,
					    const struct npuemu_seg_rec *rec);
	/* Back the chunks of [off, off+len), no further than [lo, hi): 0, or
	 * -ENOMEM (budget).
	 */
	int (*back)(struct npuemu_chip *chip, const struct npuemu_arena *arena,
		    u64 off, u64 len, u64 lo, u64 hi);
	/* Wake the processes in @share->waiters. */
	void (*wake)(struct npuemu_chip *chip, struct npuemu_share *share);
	/* Wake this process's threads that wait for the CQ. */
	void (*wake_cq)(struct npuemu_chip *chip, struct npuemu_jfc *jfc);
	/* Is the process that wrote this reducer word alive? */
	bool (*alive)(struct npuemu_chip *chip, u64 who);
	/* Hand a SEND to the receiver; STEP_WAIT until it answered. */
	enum npuemu_step (*send)(struct npuemu_jfs *q, struct npuemu_wqe *w);
	/* Forget a SEND under way. */
	void (*send_cancel)(struct npuemu_jfs *q, struct npuemu_wqe *w);
	/*
	 * Pageable memory; all three are NULL in a host that has none.
	 *
	 * @page: a bounce buffer that stands for [va, +*len) of the queue's process,
	 * at a pointer that is @va modulo 16.  *len may come back smaller, but not
	 * below 16 and only so that va + *len is a multiple of 16.  @fill: it holds
	 * what memory holds.  NULL with w->status: the memory is not there.  NULL
	 * with w->paging: asked for; the WQE waits and asks again later, for the
	 * same @va and maybe another length: what is held from @va on will do.
	 * Held bytes are good for one WQE, and until the next call with the same
	 * @write: a source and a target are wanted at once.  Never called while
	 * w->page_dirty, nor for another WQE of the queue while one waits.
	 */
	u8 *(*page)(struct npuemu_jfs *q, struct npuemu_wqe *w, u64 va, u64 *len,
		    bool write, bool fill);
	/*
	 * Bring [w->page_va, +w->page_len), which was written into the buffer that
	 * @page gave last for writing, to where it belongs: STEP_WAIT until it has
	 * arrived, then STEP_DONE, with w->status if it could not.
	 */
	enum npuemu_step (*page_out)(struct npuemu_jfs *q, struct npuemu_wqe *w);
	/* Forget what is held, asked for, and not yet written out. */
	void (*page_cancel)(struct npuemu_jfs *q);
	/* Up to NPUEMU_MAX_FAULTS records, consistent; their number, or
	 * NPUEMU_BOARD_GONE.
	 */
	u32 (*faults)(struct npuemu_chip *chip, struct npuemu_fault_rec *out);
	u64 (*now)(void);
	/* Only called while chip->trace. */
	void (*trace)(struct npuemu_jfs *q, u32 event, u32 index, u64 arg);
	/* A page of zeroed private memory and its return. */
	void *(*zalloc)(size_t bytes);
	void (*free)(void *p);
	/* Put words to a queue's trouble: printf-like. */
	void (*explain)(struct npuemu_jfs *q, const char *fmt, ...) __printf(2, 3);
};

/* ---- opcode.c ------------------------------------------------------------ */

struct npuemu_opinfo {
	const char *name;	/* NULL: not supported */
	u8 control;		/* bytes before SGEs or inline data */
	u8 fixed_bb;		/* 0: from the SGEs */
	u8 max_sge;
	u8 max_inline;
	u8 flags;
	u8 access;		/* rights wanted at the remote segment */
	enum npuemu_step (*run)(struct npuemu_jfs *q, struct npuemu_wqe *w);
};

#define NPUEMU_OPF_INLINE	0x01	/* may carry its payload */
#define NPUEMU_OPF_REDUCE	0x02	/* may combine */
#define NPUEMU_OPF_LOAD		0x04	/* brings data back: fences wait for it */
#define NPUEMU_OPF_REMOTE	0x08
#define NPUEMU_OPF_WRITE_ADD	0x10	/* its own layout */

extern const struct npuemu_opinfo npuemu_opcodes[32];
extern const struct npuemu_opinfo npuemu_sdma_opcodes[8];

/* How many basic blocks the WQE claims; 1 for what cannot be told. */
u32 npuemu_wqe_blocks(const struct npuemu_jfs *q, u64 w0, u64 w1);
/* Check a copied WQE and fill in what execution wants; its status. */
u32 npuemu_wqe_check(struct npuemu_jfs *q, struct npuemu_wqe *w);

/* ---- segment.c ----------------------------------------------------------- */

/* Where a WQE's remote side is. */
struct npuemu_far {
	u64 eid[2];
	u32 token_id;
	u32 token_value;
	bool token_en;
	u64 va;
};

/*
 * Of [va, +len) of this process: is it a place, with this right?  False with
 * w->status.  Looks only.
 */
bool npuemu_local_check(struct npuemu_jfs *q, struct npuemu_wqe *w, u64 va, u64 len,
			bool write);
/*
 * A pointer to the first bytes of [va, +*len), which are backed; *len > 0 comes
 * back as how many there are.  Fewer at the end of a chunk or of a bounce buffer:
 * at least one, and no aligned 16 bytes are cut.  NULL: see npuemu_no_place().
 */
u8 *npuemu_local_at(struct npuemu_jfs *q, struct npuemu_wqe *w, u64 va, u64 *len,
		    bool write, struct npuemu_share **share);
/* [t->va + off, +len) of a peer's segment, likewise. */
bool npuemu_remote_check(struct npuemu_jfs *q, struct npuemu_wqe *w,
			 const struct npuemu_far *t, u64 off, u64 len, u32 access);
u8 *npuemu_remote_at(struct npuemu_jfs *q, struct npuemu_wqe *w,
		     const struct npuemu_far *t, u64 off, u64 *len, u32 access,
		     struct npuemu_share **share);

/* What to do after *_at gave NULL: w->status is set, or the WQE waits for a page. */
static inline enum npuemu_step npuemu_no_place(struct npuemu_wqe *w)
{
	if (likely(!w->paging))
		return NPUEMU_STEP_DONE;
	w->paging = false;
	w->held = true;
	return NPUEMU_STEP_WAIT;
}

/* [va, +len), which npuemu_local_at() gave last for writing, was written. */
static inline void npuemu_wrote(struct npuemu_wqe *w, u64 va, u64 len)
{
	if (likely(!w->page_write))
		return;
	w->page_dirty = true;
	w->page_va = va;
	w->page_len = len;
}

void npuemu_places_drop(struct npuemu_jfs *q);

/* ---- execute.c, sdma.c: the run members of the tables --------------------- */

enum npuemu_step npuemu_run_write(struct npuemu_jfs *q, struct npuemu_wqe *w);
enum npuemu_step npuemu_run_read(struct npuemu_jfs *q, struct npuemu_wqe *w);
enum npuemu_step npuemu_run_atomic(struct npuemu_jfs *q, struct npuemu_wqe *w);
enum npuemu_step npuemu_run_send(struct npuemu_jfs *q, struct npuemu_wqe *w);
enum npuemu_step npuemu_run_nop(struct npuemu_jfs *q, struct npuemu_wqe *w);
enum npuemu_step npuemu_run_sdma_copy(struct npuemu_jfs *q, struct npuemu_wqe *w);
enum npuemu_step npuemu_run_sdma_copy_2d(struct npuemu_jfs *q, struct npuemu_wqe *w);
enum npuemu_step npuemu_run_sdma_fill(struct npuemu_jfs *q, struct npuemu_wqe *w);
enum npuemu_step npuemu_run_sdma_notify(struct npuemu_jfs *q, struct npuemu_wqe *w);

/* One piece of a payload, copied or combined.  STEP_WAIT: somebody else is
 * combining into the same buffer.
 */
enum npuemu_step npuemu_piece(struct npuemu_jfs *q, struct npuemu_wqe *w, u8 *dst,
			      const u8 *src, u64 len, struct npuemu_share *share,
			      u32 reduce);
/* Fault injection, the opcode's own run, and what it left in a bounce buffer. */
enum npuemu_step npuemu_execute(struct npuemu_jfs *q, struct npuemu_wqe *w);

/* ---- notify.c ------------------------------------------------------------ */

/* Something was written there: look for sleepers before the turn ends. */
void npuemu_touch_slow(struct npuemu_jfs *q, struct npuemu_share *share);

static inline void npuemu_touch(struct npuemu_jfs *q, struct npuemu_share *share)
{
	if (!share || (q->ntouched && q->touched[q->ntouched - 1] == share))
		return;
	npuemu_touch_slow(q, share);
}

/* Wake who sleeps on what this turn wrote.  A full fence must come before. */
void npuemu_wake_touched(struct npuemu_chip *chip, struct npuemu_share **touched, u32 n);

/* ---- fast.c ----------------------------------------------------------------- */

/*
 * Run plain WRITEs and READs whose places the queue remembers, up to @budget;
 * how many.  Stops, having touched nothing, in front of anything else.
 */
u32 npuemu_run_plain(struct npuemu_jfs *q, u32 budget);

/* Byte @off of an arena; NULL: not backed (chunked ones only, linear ones say
 * nothing about it).
 */
static inline u8 *npuemu_arena_at(const struct npuemu_arena *a, u64 off)
{
	u8 *c;

	if (!a->chunk)
		return a->base + off;
	/* the zeros in it were there before it was published */
	c = smp_load_acquire(&a->chunk[off >> NPUEMU_CHUNK_SHIFT]);
	return c ? c + (off & (NPUEMU_CHUNK_BYTES - 1)) : NULL;
}

/* Chunks of an arena, all backed?  len > 0. */
static inline bool npuemu_backed(const struct npuemu_arena *a, u64 off, u64 len)
{
	u64 c = off >> NPUEMU_CHUNK_SHIFT, last = (off + len - 1) >> NPUEMU_CHUNK_SHIFT;
	const u64 *bits;

	if (!a)
		return true;
	if (a->chunk) {
		for (; c <= last; c++)
			if (!npuemu_arena_at(a, c << NPUEMU_CHUNK_SHIFT))
				return false;
		return true;
	}
	/* once: it goes away under an arena whose owner has died */
	bits = READ_ONCE(a->backed);
	if (!bits)
		return true;
	for (; c <= last; c++)
		if (!(READ_ONCE(bits[c / 64]) >> (c % 64) & 1))
			return false;
	return true;
}

/* Another WQE begins, or everything is forgotten. */
static inline void npuemu_once_drop(struct npuemu_jfs *q)
{
	q->once[0].len = 0;
	q->once[1].len = 0;
}

/* Is a remembered place still what it was, and does it hold [va, +len)? */
static inline bool npuemu_local_hit(const struct npuemu_local *l, u64 va, u64 len)
{
	return va - l->va < l->len && len <= l->len - (va - l->va);
}

static inline bool npuemu_remote_valid(const struct npuemu_remote *r, u64 eid0, u64 eid1,
				       u32 token_id)
{
	return r->seq && r->token_id == token_id && r->eid[1] == eid1 && r->eid[0] == eid0 &&
	       READ_ONCE(*r->seq) == r->seq_val;
}

static inline bool npuemu_remote_holds(const struct npuemu_remote *r, u64 va, u64 len)
{
	return va >= r->va && va - r->va <= r->len && len <= r->len - (va - r->va);
}

#define NPUEMU_REMOTE_SLOT(token_id, eid1)	(((token_id) ^ (eid1) >> 56) & 7)

/* ---- complete.c ---------------------------------------------------------- */

/* Body first, the dwords with the owner bit last.  @e: 8 words without it. */
static inline void npuemu_publish(struct npuemu_jfc *jfc, const u64 *e)
{
	u64 *slot = (u64 *)&jfc->ring[jfc->pi & jfc->mask];
	u32 i;

	for (i = 1; i < 8; i++)
		WRITE_ONCE(slot[i], e[i]);
	/* the owner bit after the body: the poller loads it first, with acquire */
	smp_store_release(&slot[0],
			  e[0] | (jfc->pi & (jfc->mask + 1) ? 0 : NPUEMU_CQE_OWNER));
	jfc->pi++;
}

/* False when the CQ has no room (one entry per queue is kept for flush-done). */
bool npuemu_jfc_room(struct npuemu_jfc *jfc, bool flush_done);
/* Write the CQE of a WQE; there must be room (checked again if shared): false
 * if not.
 */
bool npuemu_complete(struct npuemu_jfs *q, u32 last_bb, u32 status, u32 bytes,
		     bool flush_done);
struct npuemu_recv_done {
	u32 status;
	u32 opcode;
	u32 bytes;
	u32 rmt_idx;
	u32 rmt_eid[4];
	u32 jetty_id;		/* the jetty it was sent to; 0: to the RQ itself */
	u64 imm;
};

bool npuemu_complete_recv(struct npuemu_jfr *r, u32 index, const struct npuemu_recv_done *d);

/* ---- jfr.c --------------------------------------------------------------- */

/*
 * Pieces of a message: 13 SGEs, and each may lie across the ends of chunks.  One of
 * L bytes crosses at most 1 + (L - 2) / 2 MiB of them; with 16 MiB in all that
 * makes 13 + 13 + 7.
 */
#define NPUEMU_MAX_PIECES	33u
#define NPUEMU_DELIVER_AGAIN	0xffffffffu	/* no status */

struct npuemu_message {			/* a SEND as it reaches the receiver */
	const u8 *piece[NPUEMU_MAX_PIECES];
	u32 piece_len[NPUEMU_MAX_PIECES];
	u32 pieces;
	u64 at;			/* bytes delivered; 0 at first, then jfr.c's own */
	u32 token_value;	/* as the sender's WQE has it */
	bool token_en;
	struct npuemu_recv_done done;
};

/* The token of a SEND, from its first basic block. */
static inline bool npuemu_send_token(const struct npuemu_sqe *s, u32 *value)
{
	*value = s->rmt_token_value;
	return s->dw0 & NPUEMU_SQE_TOKEN_EN;
}

/* May who gives this token put anything into @r? */
static inline bool npuemu_jfr_admits(const struct npuemu_jfr *r, bool token_en, u32 token_value)
{
	return !r->token || (token_en && token_value == r->token_value);
}

/*
 * Put a message into the next receive buffer of @r and complete it.  The
 * sender's status; NPUEMU_ST_REM_ACCESS_ABORT, with nothing touched, when it has
 * not the token of @r; NPUEMU_ST_RNR_RETRY_CNT_EXC when there is no buffer (or no
 * room for the CQE), which the sender may try again.  @q lends its caches.
 * NPUEMU_DELIVER_AGAIN: the receive buffer is pageable and the host is writing to
 * it; to be called again with the same message, before any other is given to @r
 * or @q (or with ops->page_cancel(q) to forget it).
 */
u32 npuemu_jfr_deliver(struct npuemu_jfr *r, struct npuemu_jfs *q,
		       struct npuemu_message *m);

/* ---- fault.c ------------------------------------------------------------- */

void npuemu_faults_load(struct npuemu_jfs *q);
/* STEP_DONE: a fault gave w->status (or none did: w->phase says go on). */
bool npuemu_fault_hit(struct npuemu_jfs *q, struct npuemu_wqe *w, enum npuemu_step *step);
u64 npuemu_random(u64 *state);		/* splitmix64 */

/* ---- order.c ------------------------------------------------------------- */

/* May WQE @i of the window execute, given what came before it? */
bool npuemu_order_ready(const struct npuemu_wqe *const *w, u32 i);
bool npuemu_run_window(struct npuemu_jfs *q, bool *waiting);
/* Complete the head of the window with WR_FLUSH_ERR (or its own status, if it
 * executed); false if there is no room, *empty when nothing is left.
 */
bool npuemu_flush_window(struct npuemu_jfs *q, bool *empty);
void npuemu_drop_window(struct npuemu_jfs *q);

struct npuemu_window {
	struct npuemu_wqe w[NPUEMU_WINDOW];
	u32 head;
	u32 count;
	u64 rng;
};

/* ---- queue.c ------------------------------------------------------------- */

/* Take what this owner word stands for; false if somebody has it. */
static inline bool npuemu_owner_try(u32 *owner)
{
	u32 v = READ_ONCE(*owner);

	return !(v & 1) && npuemu_cas(owner, v, v + 1);
}

/* Give it back: a full fence. */
static inline void npuemu_owner_put(u32 *owner)
{
	xchg(owner, READ_ONCE(*owner) + 1);
}

/* Hand it back, and wake who waits for what was written. */
void npuemu_jfs_release(struct npuemu_jfs *q);
/*
 * One turn, owner only: true if there is more to do at once.  *@waiting is set
 * when the queue has work that waits for somebody or some time.
 */
bool npuemu_jfs_turn(struct npuemu_jfs *q, bool helper, bool *waiting);
/* Is there anything the queue could do?  Owner or not. */
static inline bool npuemu_jfs_has_news(const struct npuemu_jfs *q)
{
	return READ_ONCE(*q->db_pi) != READ_ONCE(q->pi_raw) ||
	       READ_ONCE(q->pi) != READ_ONCE(q->ci) ||
	       (READ_ONCE(q->raw) && READ_ONCE(*(q->db_pi - NPUEMU_DB_PI / 4)) !=
		READ_ONCE(q->dwqe_seen));
}

/* Set up the queue's own part once the host has filled in the rest. */
void npuemu_jfs_init(struct npuemu_jfs *q);
/* Owner only.  0 or -EINVAL. */
int npuemu_jfs_modify(struct npuemu_jfs *q, u32 state);
/* Give up on a WQE that will not finish: it completes as flushed. */
bool npuemu_flush_one(struct npuemu_jfs *q, struct npuemu_wqe *w);
/* For order.c: fetch and check the next WQE; false if there is none. */
bool npuemu_fetch(struct npuemu_jfs *q, struct npuemu_wqe *w);
/* The WQE has executed: complete it, enter ERROR if it failed.  False: no room. */
bool npuemu_retire(struct npuemu_jfs *q, struct npuemu_wqe *w);

#endif
