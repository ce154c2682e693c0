/* SPDX-License-Identifier: MIT */
/*
 * What the files of fuzz_ioctl share: a worker's picture of what it has in the
 * driver, random choices, and the memory in which workers tell the parent what
 * they are doing.
 */
#ifndef NPUEMU_TESTS_VM_FUZZ_H
#define NPUEMU_TESTS_VM_FUZZ_H

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <npuemu/ioctl.h>
#include <npuemu/udma.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#define FZ_PROCS	8
#define FZ_OPS		64
#define FZ_SET		24		/* objects of a kind that a worker knows */
#define FZ_FILES	4		/* devices of a worker */
#define FZ_BYTES	(256u << 10)	/* of each of a rig's places */
#define FZ_ROOM		65536u		/* for what calls give back */
#define FZ_DEPTH	256u		/* of a rig's queues */
#define FZ_CQ_DEPTH	1024u
#define FZ_QUEUES	3
#define FZ_SEGS		4
#define NOBODY		0x7ffffff0u	/* no handle of anything */

#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))

/* ---- Shared with the parent and the other workers ------------------------ */

/* A segment for others to aim at. */
struct fz_target {
	u32 eid[4];
	u32 token_id;
	u32 token_value;
	u64 va;
	u64 len;
	u32 rq;			/* to send to; 0: none */
	u32 rq_token;
};

struct fz_proc {
	int pid;
	u64 generation;
	u64 calls;
	u64 wqes;		/* executed or flushed, as the queues count them */
	u64 stores;		/* into rings, by the second thread */
	u64 done[FZ_OPS];
	u64 good[FZ_OPS];	/* ... that succeeded */
	u64 took[FZ_OPS];	/* ... all of them, in ms */
	u64 since;		/* ms, monotonic: when it began */
	u32 op;			/* what it does */
	u32 cmd;		/* which ioctl, or 0 */
	u8 arg[64];		/* ... and the beginning of its argument */
	struct fz_target target[FZ_SEGS];
	u64 name[4][4];		/* of buffers */
};

struct fz_shared {
	bool stop;
	bool no_reset;
	struct fz_proc proc[FZ_PROCS];
};

/* ---- A worker ------------------------------------------------------------ */

struct fz_thing {
	u32 id;
	u32 file;		/* index of a descriptor it goes with */
	u64 at;
	u64 len;
};

struct fz_set {
	u32 n;
	struct fz_thing thing[FZ_SET];
};

/* Queues that really run, and what they work on. */
struct fz_queue {
	u32 id;
	u32 type;
	u32 pi;
	u8 *ring;
	u32 *db;
	u64 counted;		/* of its WQEs, so far */
};

struct fz_rig {
	bool up;
	u8 *windows[3];		/* rings, doorbells, records */
	struct fz_queue queue[FZ_QUEUES];
	u32 cq, rcq;
	u8 *cq_ring;
	u32 *cq_rec, *rcq_rec;
	u32 cq_ci;
	u32 rq;
	struct npuemu_sge *rq_ring;
	u32 *rq_rec;
	u32 rq_pi;
	u32 broken;		/* looks in a row that found an error */
	u64 place[4];		/* two buffers, pinned and pageable memory */
	u8 *host;		/* of the latter two */
};

struct fz {
	struct fz_shared *shared;
	struct fz_proc *me;
	u32 index;
	u64 rng;
	u64 generation;
	int fd[FZ_FILES];
	u32 dev[FZ_FILES];
	u32 nfd;
	int ctl;
	int file;		/* in memory, to read from and write to */
	struct npuemu_ioc_query about;
	struct fz_set bo, cq, rq, queue, seg, place, buf, event, map;
	u8 *arg;		/* a page, with none behind it */
	u8 *readonly;		/* a page */
	u8 *room;		/* of FZ_ROOM bytes */
	u32 lost;		/* calls in a row that said ENODEV */
	/* the second thread works on the rig while it has this */
	pthread_mutex_t lock;
	bool calm;		/* it should leave the rings alone */
	struct fz_rig rig;
};

/* ---- fuzz_ioctl.c -------------------------------------------------------- */

extern __thread sigjmp_buf fz_escape;
extern __thread volatile bool fz_guarded;

/* True the first time; again, with false, when memory touched since then faulted. */
#define fz_guard()	(fz_guarded = true, !sigsetjmp(fz_escape, 1))
#define fz_unguard()	(fz_guarded = false)

u64 fz_ms(void);
/* Says what is done from now on, for the watchdog, and counts a call. */
void fz_begin(struct fz *z, u32 cmd, const void *arg, size_t bytes);
void fz_close_all(struct fz *z);
bool fz_open_all(struct fz *z);

/* ---- Choices ------------------------------------------------------------- */

static inline u64 fz_next(u64 *rng)
{
	u64 v = *rng += 0x9e3779b97f4a7c15ull;

	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
	v = (v ^ v >> 27) * 0x94d049bb133111ebull;
	return v ^ v >> 31;
}

static inline u32 fz_below(struct fz *z, u32 n)
{
	return n ? (u32)(fz_next(&z->rng) >> 32) % n : 0;
}

static inline bool fz_one_in(struct fz *z, u32 n)
{
	return !fz_below(z, n);
}

static inline struct fz_thing *fz_any(struct fz *z, struct fz_set *s)
{
	return s->n ? &s->thing[fz_below(z, s->n)] : NULL;
}

static inline void fz_add(struct fz_set *s, u32 id, u32 file, u64 at, u64 len)
{
	if (s->n < FZ_SET)
		s->thing[s->n++] = (struct fz_thing){ id, file, at, len };
}

static inline void fz_drop(struct fz_set *s, struct fz_thing *t)
{
	*t = s->thing[--s->n];
}

u64 fz_number(struct fz *z);		/* of those that like to be wrong */

/* ---- fuzz_calls.c, fuzz_objects.c: ioctls -------------------------------- */

/* @arg may be spoiled on the way, and is what came back when it returns 0. */
int fz_ioctl(struct fz *z, int fd, u32 cmd, void *arg);
/*
 * Memory where the kernel, or an engine, is asked to write.  They write elsewhere when half
 * of the address is spoiled, so nothing else of this program is in the same 4 GiB.
 */
u8 *fz_alone(u64 bytes);
/* Exactly as it is. */
int fz_plain(struct fz *z, int fd, u32 cmd, void *arg);
int fz_fd(struct fz *z);		/* one of the worker's */

/* ---- fuzz_rings.c -------------------------------------------------------- */

void fz_rig_up(struct fz *z);
void fz_rig_down(struct fz *z);
int fz_rig_burst(struct fz *z);
void *fz_second_thread(void *z);

/* Operations: 0 when it worked, else -errno. */
struct fz_op {
	const char *name;
	int (*fn)(struct fz *z);
	u32 weight;
	u32 times;		/* in a row: up to so often */
	bool hard;		/* need not ever succeed */
};

extern const struct fz_op fz_call_ops[];	/* each ends with one without name */
extern const struct fz_op fz_object_ops[];
extern const struct fz_op fz_map_ops[];
extern const struct fz_op fz_ring_ops[];

#endif
