/* SPDX-License-Identifier: MIT */
/*
 * The user-space host: a board shared by processes, and one process's share.
 *
 * The board is a file in shared memory: a header and an array of process
 * slots.  A process writes only its own slot, but for: bits in waiter and inbox
 * masks, bell words, chunk bits of backed memory, reducer words, and its own
 * ring in a receiver's inbox.  What the whole holds (capacity, references) is
 * derived by reading live slots, so a process killed at any instruction leaves
 * nothing that somebody has to undo.
 */
#ifndef NPUEMU_USER_H
#define NPUEMU_USER_H

#include <pthread.h>
#include "core.h"

#define BOARD_MAGIC		0x44524f424d45504eull	/* "NPEMBORD" */
#define BOARD_VERSION		3u
#define SLOT_STRIDE		(8ull << 20)
#define BOARD_HEAD		(64ull << 10)
#define BOARD_BYTES		(BOARD_HEAD + NPUEMU_MAX_SLOTS * SLOT_STRIDE)

#define SLOT_BUFS		16384u
#define SLOT_SEGS		4096u	/* 12 bits of a token id; 8 more are a generation */
#define SLOT_QUEUES		4096u	/* likewise of a queue id; 0 is the inbox */
#define SLOT_IMPORTS		4096u
#define SLOT_SLEEPERS		16u
#define BACKED_WORDS		2048u	/* of a device: 256 GiB in 2 MiB chunks */
#define INBOX_ENTRIES		8u
#define PAGE			4096u
#define GRACE_NS		10000000000ll	/* what is owned for longer is stuck */

/* ---- What lies on the board ------------------------------------------------ */

/* life: state | generation << 8 | pid << 32 */
enum slot_state {
	SLOT_FREE,
	SLOT_CLAIMED,		/* being set up by the pid in the word */
	SLOT_LIVE,
	SLOT_REAPING,		/* being emptied by the pid in the word */
};

#define LIFE(state, gen, pid)	((u64)(state) | (u64)((gen) & 0xffffffu) << 8 | (u64)(u32)(pid) << 32)
#define LIFE_STATE(l)		((u32)(l) & 0xffu)
#define LIFE_GEN(l)		((u32)(l) >> 8)
#define LIFE_PID(l)		((u32)((l) >> 32))

struct slot_arena {
	u32 fd;			/* the memfd's number in its process, + 1; 0: none */
	u32 reserved;
	u64 used;		/* bytes allocated */
};

struct slot_sleeper {		/* who waits for what: for people */
	u32 kind;		/* 0: none; enum sleep_kind */
	u32 id;
	u64 object;		/* address, or index */
	u64 expected;
	u64 since_ns;
};

enum sleep_kind {
	SLEEP_NONE,
	SLEEP_CQ,		/* id: a queue's, or ~0 */
	SLEEP_WORD,		/* id: the owner's slot */
};

struct slot_head {
	u64 life;
	u64 start_time;		/* of the process, clock ticks since boot */
	u64 secret[2];		/* also at the end of every arena */
	char comm[16];
	u32 bell;		/* futex: waiters of this process sleep here */
	u32 sleepers;
	u32 ebell;		/* futex: its engine sleeps here */
	u32 esleep;		/* enum engine_sleep */
	u32 queues_hi;		/* queue records in use lie below */
	u32 bufs_hi;
	u32 segs_hi;
	u32 imports_hi;
	u64 inbox[NPUEMU_MAX_SLOTS / 64];	/* senders with something for us */
	u64 engine_turns;
	u64 engine_parks;
	u64 engine_sleeps;
	u64 doorbell_faults;
	struct slot_arena arena[NPUEMU_MAX_DEVICES];
	struct slot_sleeper sleeper[SLOT_SLEEPERS];
	pthread_mutex_t alive;	/* robust: held by the engine thread as long as it lives */
	u32 exports_hi;		/* bytes of the table of exports that there are */
};

enum engine_sleep {
	ENGINE_AWAKE,
	ENGINE_NAPS,		/* 100 us: a helper may well be faster */
	ENGINE_DOZES,		/* until its next tick */
	ENGINE_SLEEPS,		/* until somebody rings */
};

enum buf_state {
	BUF_FREE,
	BUF_LIVE,
	BUF_ZOMBIE,		/* freed, but somebody imported it */
	BUF_STUCK,		/* freed, but an engine did not let go: never used again */
};

struct slot_buf {
	u32 state;
	u32 device;
	u64 off;
	u64 bytes;		/* as asked for */
	u64 room;
	u64 nonce;		/* a handle without it is refused */
	u32 exported;
	u32 reserved[5];
};

struct slot_import {
	u32 used;
	u32 slot;
	u32 gen;
	u32 buf;
	u32 device;
	u32 reserved;
	u64 off;
	u64 room;
};

struct slot_queue {
	u32 owner;		/* npuemu_jfs.owner */
	u32 used;
	u32 id;
	u32 device;
	u32 type;
	u32 state;
	u32 pi;
	u32 ci;
	u32 depth;
	u32 last_status;
	u32 pi_raw;		/* doorbell as last read */
	u32 todo;		/* the last turn left something */
	u32 dwqe;		/* direct WQE's first word as last read */
	u32 reserved;
	struct npuemu_jfs_counters cnt;
	char cause[NPUEMU_CAUSE_BYTES];
} __attribute__((aligned(64)));	/* no two queues' owner words on a line */

/* inbox: a ring of entries for every possible sender */
enum entry_state {
	ENTRY_FREE,
	ENTRY_POSTED,		/* sender -> receiver */
	ENTRY_TAKEN,		/* receiver works on it */
	ENTRY_DONE,		/* receiver -> sender, status valid */
	ENTRY_CANCELLED,	/* sender gave up; the receiver frees it */
};

struct inbox_piece {
	u32 len;
	u32 device;		/* of the sender's arena */
	u64 off;
};

struct inbox_entry {		/* 512 bytes */
	u32 state;
	u32 seq;
	u32 status;
	u32 target;		/* jetty or RQ id */
	u32 jetty;
	u32 opcode;
	u32 rmt_idx;
	u32 pieces;
	u32 eid[4];		/* the sender's */
	u64 imm;
	u64 sender_life;
	u64 receiver_life;
	u32 inline_len;		/* pieces == 0 */
	u32 token_value;
	union {
		struct inbox_piece piece[NPUEMU_MAX_SGE];
		u8 data[208];
	};
	u32 token_en;
	u8 pad[512 - 80 - 208 - 4];
};

/* Tables of a slot, at page offsets. */
#define OFF_HEAD	0ull
#define OFF_BUFS	(1ull << 20)			/* 1 MiB */
#define OFF_SHARES	(2ull << 20)			/* 1 MiB */
#define OFF_SEGS	(3ull << 20)			/* 256 KiB */
#define OFF_IMPORTS	((3ull << 20) + (256u << 10))	/* 192 KiB */
#define OFF_LINKS	((3ull << 20) + (512u << 10))	/* 64 KiB */
#define OFF_QUEUES	(4ull << 20)			/* 1 MiB */
#define OFF_BACKED	(5ull << 20)			/* 1 MiB */
#define OFF_INBOX	(6ull << 20)			/* 1 MiB */
#define OFF_EXPORTS	(7ull << 20)			/* 1 MiB: npuemu_exports_own() */

struct board_faults {
	u32 gen;		/* odd while it changes */
	u32 n;
	struct npuemu_fault_rec rec[NPUEMU_MAX_FAULTS];
};

struct board_head {
	u64 magic;
	u32 version;
	u32 board_id;
	u32 uid;
	u32 dead;		/* reset: everybody off */
	u64 budget;		/* bytes that may be backed */
	struct board_faults faults;
	struct npuemu_machine machine;
};

_Static_assert(sizeof(struct slot_head) <= PAGE, "a slot's head is one page");
_Static_assert(sizeof(struct slot_buf) * SLOT_BUFS <= OFF_SHARES - OFF_BUFS, "buffers fit");
_Static_assert(sizeof(struct npuemu_share) * SLOT_BUFS <= OFF_SEGS - OFF_SHARES, "shares fit");
_Static_assert(sizeof(struct npuemu_seg_rec) * SLOT_SEGS <= OFF_IMPORTS - OFF_SEGS,
	       "segments fit");
_Static_assert(sizeof(struct slot_import) * SLOT_IMPORTS <= OFF_LINKS - OFF_IMPORTS,
	       "imports fit");
_Static_assert(sizeof(struct slot_queue) * SLOT_QUEUES <= OFF_BACKED - OFF_QUEUES,
	       "queues fit");
_Static_assert(sizeof(struct inbox_entry) == 512, "an inbox entry is 512 bytes");
_Static_assert(sizeof(struct inbox_entry) * INBOX_ENTRIES * NPUEMU_MAX_SLOTS <=
	       OFF_EXPORTS - OFF_INBOX, "inboxes fit");
_Static_assert(NPUEMU_EXPORT_BYTES <= SLOT_STRIDE - OFF_EXPORTS, "exports fit");
_Static_assert(sizeof(struct board_head) <= BOARD_HEAD, "the board's head fits");

/* ---- One process's share ---------------------------------------------------- */

struct extent {
	u64 off;
	u64 len;
};

struct extents {		/* free ranges, sorted, coalesced */
	struct extent *e;
	u32 n;
	u32 room;
};

struct user_arena {		/* own, or a peer's as mapped here */
	struct npuemu_arena a;
	int fd;			/* own: the memfd; peer: -1 */
	u32 *pagemap;		/* page -> buffer handle's slab index + 1 */
	struct extents free;	/* own */
	u64 used;		/* own: bytes allocated */
	u8 *shown;		/* own: where the program sees it: @a.base, or a view of its own (guard.c) */
	struct guard_held *held;	/* guard.c: freed ranges, a ring; NULL: no guard */
	u32 held_first, held_n;
	u64 held_bytes;
};

/* An own buffer as this process knows it. */
struct own_buf {
	u32 state;
	u32 device;
	u64 off;
	u64 room;
	u64 gap;		/* behind it, nobody's */
};

struct user_peer {
	struct npuemu_peer p;
	u32 slot;
	u64 life;
	u32 imports;		/* of its buffers held by this process */
	bool gone;
	u32 inbox_used;		/* a bit per entry of our ring in its inbox */
	u32 inbox_lost;		/* of those: cancelled while it worked on them */
	u32 inbox_backed;
	struct user_arena *arena[NPUEMU_MAX_DEVICES];
	struct user_peer *next_gone;
	bool listed;		/* on u->gone */
	struct npuemu_share orphan;	/* what its imports share, now that it is dead */
};

struct region {			/* what local addresses may name */
	u64 va;
	u64 len;
	struct user_arena *arena;	/* NULL: registered host memory, or @buf */
	bool readonly;
	struct npuemu_buf *buf;	/* shown here as well: npuemu_buf_map() */
	u8 *ptr;		/* registered memory: where engines reach it; NULL: @va */
};

struct regions {
	u32 n;
	struct region r[];
};

struct uffd_state;

struct user {
	struct npuemu base;
	struct npuemu_chip chip;
	int board_fd;
	u8 *map;
	struct board_head *head;
	u32 slot_index;
	u64 life;
	struct slot_head *slot;
	char path[128];
	char name[64];
	u8 *touched_pages;	/* of the own slot: already allocated */

	/* what the board said when it was joined, and what it says of us: what lies
	 * there may be scribbled on, so these are what we go by
	 */
	struct npuemu_machine machine;
	u64 budget;
	struct own_buf *bufs;
	u32 bufs_hi;
	u32 segs_hi;
	u32 imports_hi;
	u32 exports_hi;

	pthread_mutex_t lock;	/* slow paths; never taken inside a turn */
	pthread_mutex_t peers_lock;	/* taken inside turns; never held while waiting */
	struct user_arena *arena[NPUEMU_MAX_DEVICES];
	struct regions *regions;
	bool any;		/* npuemu_mem_any(): place.c */
	int maps_fd;		/* /proc/self/maps, to ask; -1 */
	struct user_peer *peers[NPUEMU_MAX_SLOTS];
	struct user_peer *gone;	/* replaced, to be unmapped */
	struct user_peer *kept;	/* gone, but buffers of theirs are imported */
	u32 seg_seq[SLOT_SEGS];
	u8 seg_gen[SLOT_SEGS];
	u8 queue_gen[SLOT_QUEUES];
	u32 rq_next;

	/* rings and doorbells */
	u8 *ring_base;
	struct extents ring_free;
	u32 *records;		/* CQ consumer and RQ producer records, 64 B apart */
	u32 records_used;
	u32 *records_free;
	u32 records_nfree;
	u32 rec_of_cq;
	int db_fd;
	u8 *db_alias;		/* the library's */
	u8 *db_user;		/* device code's; write-protected while parked */
	struct npuemu_queue *queues[SLOT_QUEUES];
	struct npuemu_rq *rqs[SLOT_QUEUES];
	u64 hot[SLOT_QUEUES / 64];
	u64 raw[SLOT_QUEUES / 64];

	/* the engine */
	pthread_t engine;
	bool engine_started;
	u32 engine_ready;	/* 1 ready, 2 failed */
	u32 stop;
	u32 posted;		/* since the engine last looked */
	u64 waiting[SLOT_QUEUES / 64];	/* hot, but nothing to do before some event */
	bool async;		/* no helping */
	s64 poll_ns;
	s64 hang_report_ns;
	struct npuemu_jfs inbox;	/* a queue only in that it is owned and has caches */

	/* the service thread: doorbell faults and handing out arena fds */
	pthread_t service;
	bool service_started;
	int uffd;		/* -1: poll raw doorbells */
	int listen_fd;
	int wake_fd;
};

static inline struct user *user_of(struct npuemu *ctx)
{
	return (struct user *)(void *)ctx;
}

static inline u8 *slot_at(const struct user *u, u32 slot)
{
	return u->map + BOARD_HEAD + slot * SLOT_STRIDE;
}

static inline struct slot_head *slot_head(const struct user *u, u32 slot)
{
	return (void *)slot_at(u, slot);
}

#define SLOT_TABLE(name, type, off)						\
	static inline type *name(const struct user *u, u32 slot)		\
	{									\
		return (type *)(void *)(slot_at(u, slot) + (off));		\
	}
SLOT_TABLE(slot_bufs, struct slot_buf, OFF_BUFS)
SLOT_TABLE(slot_shares, struct npuemu_share, OFF_SHARES)
SLOT_TABLE(slot_segs, struct npuemu_seg_rec, OFF_SEGS)
SLOT_TABLE(slot_imports, struct slot_import, OFF_IMPORTS)
SLOT_TABLE(slot_queues, struct slot_queue, OFF_QUEUES)

static inline u64 *slot_backed(const struct user *u, u32 slot, u32 device)
{
	return (u64 *)(void *)(slot_at(u, slot) + OFF_BACKED) + (size_t)device * BACKED_WORDS;
}

static inline struct inbox_entry *slot_inbox(const struct user *u, u32 to, u32 from)
{
	return (struct inbox_entry *)(void *)(slot_at(u, to) + OFF_INBOX) +
	       (size_t)from * INBOX_ENTRIES;
}

/* ---- board.c ----------------------------------------------------------------- */

int board_open(struct user *u, const struct npuemu_open_attr *attr);
void board_unmap(struct user *u);
int board_claim(struct user *u);	/* a slot; LIVE once the engine holds its mutex */
void board_leave(struct user *u);
int board_check(struct npuemu *ctx);
/* Allocate the pages behind a part of a slot: -ENOSPC rather than SIGBUS. */
int board_back(struct user *u, u32 slot, u64 off, u64 len);
int board_reset(const char *board);
/* Is the process in this slot alive?  Looks at the mutex, so not for hot paths. */
bool slot_alive(struct user *u, u32 slot, u64 life);
int board_reap(struct user *u);
u64 board_backed(const struct user *u);	/* bytes */
u64 hbm_used(const struct user *u, u32 device);
u64 slot_hbm_backed(const struct user *u, u32 slot, u32 device);
u64 process_start_time(u32 pid);
void board_ring_all(struct user *u);
int fault_inject(struct npuemu *ctx, const struct npuemu_fault_rec *fault);
int fault_clear(struct npuemu *ctx);
u32 faults_read(struct npuemu_chip *chip, struct npuemu_fault_rec *out);

/* ---- info.c -------------------------------------------------------------------- */

int user_query(struct npuemu *ctx, struct npuemu_info *info);
int user_device_query(struct npuemu *ctx, u32 device, struct npuemu_device_info *info);
int user_link_query(struct npuemu *ctx, u32 from, u32 to, struct npuemu_link_info *info);
int user_process_list(struct npuemu *ctx, struct npuemu_process_info *list, int n);
int user_queue_list(struct npuemu *ctx, u32 slot, struct npuemu_queue_stat *list, int n);
void queue_stat_fill(const struct slot_queue *s, struct npuemu_queue_stat *stat);
void sleeper_describe(const struct user *u, const struct slot_sleeper *s, char *out,
		      size_t room);

/* ---- extent.c ------------------------------------------------------------------ */

int extents_init(struct extents *x, u64 len);
/* First fit; ~0: none (or no memory). */
u64 extents_take(struct extents *x, u64 len, u64 align);
void extents_give(struct extents *x, u64 off, u64 len);
void extents_destroy(struct extents *x);

/* ---- arena.c: HBM ---------------------------------------------------------------- */

int user_buf_alloc(struct npuemu *ctx, u32 device, u64 bytes, struct npuemu_buf *buf);
int user_buf_free(struct npuemu_buf *buf);
int arena_back(struct npuemu_chip *chip, const struct npuemu_arena *arena, u64 off, u64 len,
	       u64 lo, u64 hi);
struct user_arena *arena_own(struct user *u, u32 device);
void arena_unmap(struct user_arena *a);
void arena_sweep_zombies(struct user *u);
void arenas_destroy(struct user *u);

/* ---- guard.c: what the program sees, closed; u->lock held ------------------------- */

int guard_init(struct user_arena *a);
void guard_exit(struct user_arena *a);
/* -EOPNOTSUPP: there is one view for all. */
int guard_close(struct user_arena *a, u64 off, u64 room, bool closed);
u64 guard_take(struct user_arena *a, u64 room, u64 align, u64 *gap);
void guard_give(struct user_arena *a, u64 off, u64 len);
int user_buf_close(struct npuemu_buf *buf, bool closed);
void *user_alias(struct npuemu *ctx, u64 va, bool *device);

/* ---- place.c: addresses, grace periods ------------------------------------------- */

/* The buffer around [va, +len), or NULL.  u->lock held, or in a turn. */
struct npuemu_buf *place_buffer(struct user *u, u64 va, u64 len);
int place_local(struct npuemu_chip *chip, u64 va, u64 len, struct npuemu_local *out);
/* Where engines reach it, or @va; is it HBM?  u->lock held. */
void *place_alias(struct user *u, u64 va, bool *device);
int region_add(struct user *u, u64 va, u64 len, struct user_arena *arena, bool readonly);
/* Waits until no queue of this process can still use it. */
int region_remove(struct user *u, u64 va);
/* Own queues let go of what they remembered: 0 or -ETIMEDOUT with a message. */
int quiesce_own(struct user *u);
/* Queues of every process on the board. */
int quiesce_all(struct user *u);
int user_mem_register(struct npuemu_mem *mem);
int user_mem_unregister(struct npuemu_mem *mem);
int user_mem_any(struct npuemu *ctx, bool on);
int user_buf_map(struct npuemu_buf *buf, u64 va);
int user_buf_unmap(struct npuemu_buf *buf, u64 va);
int user_seg_register(struct npuemu_seg *seg, u64 off, u32 flags);
int user_seg_rotate(struct npuemu_seg *seg, u32 token_value);
u32 user_random_token(void);	/* never 0 */
int user_seg_unregister(struct npuemu_seg *seg);

/* ---- peer.c: other processes' memory ----------------------------------------------- */

const struct npuemu_peer *peer_find(struct npuemu_chip *chip, const u64 *eid);
struct user_peer *peer_by_life(struct user *u, u32 slot, u64 life);
const struct npuemu_arena *peer_arena(struct npuemu_chip *chip, const struct npuemu_peer *peer,
				      u32 device);
void peers_sweep(struct user *u);
/* Reap those of our peers that have died: their queues' work then ends. */
void peers_look(struct user *u);
void peers_destroy(struct user *u);
int user_buf_export(struct npuemu_buf *buf, struct npuemu_handle *handle);
int user_buf_import(struct npuemu *ctx, const struct npuemu_handle *handle,
		    struct npuemu_buf *buf);
int import_free(struct npuemu_buf *buf);
int user_exports_own(struct npuemu *ctx, u32 bytes, void **table);
int user_exports_of(struct npuemu *ctx, u32 slot, const void **table, u32 *bytes);

/* ---- fdpass.c: arena descriptors over a socket, where /proc is closed --------------- */

int fdpass_listen(struct user *u);
void fdpass_serve(struct user *u);
int fdpass_fetch(struct user *u, u32 slot, u64 life, u32 device);

/* ---- bell.c --------------------------------------------------------------------------- */

void bell_wake_share(struct npuemu_chip *chip, struct npuemu_share *share);
void bell_wake_cq(struct npuemu_chip *chip, struct npuemu_jfc *jfc);
void bell_ring_engine(struct slot_head *s);
void bell_ring(struct slot_head *s);
int user_wait_cq(struct npuemu_cq *cq, s64 deadline);
int user_wait_word(struct npuemu *ctx, const volatile u64 *word, u32 cmp, u64 value,
		   s64 deadline);

/* ---- doorbell.c ------------------------------------------------------------------------ */

int doorbell_init(struct user *u);
void doorbell_exit(struct user *u);
void doorbell_protect(struct user *u, u32 queue, bool on);
int service_start(struct user *u);
void service_stop(struct user *u);

/* ---- worker.c -------------------------------------------------------------------------- */

int worker_start(struct user *u);
void worker_stop(struct user *u);
int user_doorbell(struct npuemu_queue *q, bool through);
bool user_help(struct npuemu *ctx, struct npuemu_cq *cq);
void user_unstarve(struct npuemu_cq *cq);
/* Let the engine look at the queue. */
void queue_heat(struct user *u, struct npuemu_queue *q);
/* Try one turn of the queue with this index; did it get anywhere? */
bool queue_turn(struct user *u, u32 index, bool helper);
/* Own the queue, waiting for whoever has it: 0 or -ETIMEDOUT. */
int queue_own(struct npuemu_queue *q);
void queue_publish(struct npuemu_queue *q);

/* ---- queue.c: rings and queue objects ---------------------------------------------------- */

int rings_init(struct user *u);
void rings_exit(struct user *u);
int user_cq_create(struct npuemu_cq *cq, u32 depth, bool timed);
void user_cq_destroy(struct npuemu_cq *cq);
int user_rq_create(struct npuemu_rq *rq, const struct npuemu_rq_attr *attr);
int user_rq_destroy(struct npuemu_rq *rq);
int user_rq_query(struct npuemu_rq *rq, struct npuemu_rq_info *info);
int user_queue_create(struct npuemu_queue *q, const struct npuemu_queue_attr *attr);
int user_queue_destroy(struct npuemu_queue *q);
int user_queue_modify(struct npuemu_queue *q, u32 state);
int user_queue_map(struct npuemu_queue *q, struct npuemu_queue_map *map);
int user_queue_query(struct npuemu_queue *q, struct npuemu_queue_stat *stat);
struct npuemu_queue *user_queue_by_id(struct npuemu *ctx, u32 id);

/* ---- inbox.c: SEND ------------------------------------------------------------------------ */

void inbox_init(struct user *u);
bool inbox_run(struct user *u);		/* deliver what has arrived; anything? */
enum npuemu_step inbox_send(struct npuemu_jfs *q, struct npuemu_wqe *w);
void inbox_send_cancel(struct npuemu_jfs *q, struct npuemu_wqe *w);

/* ---- host.c ------------------------------------------------------------------------------- */

extern const struct npuemu_host_ops npuemu_user_ops;
void user_explain(struct npuemu_jfs *q, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
