/* SPDX-License-Identifier: MIT */
/*
 * What the parts of lib/hccl share.
 *
 * The ranks of a communicator, whichever processes they are of, meet in a piece of
 * memory that all of them see: the group.  A rank that comes to a collective says in
 * it what it wants done and with which buffers; when all have, the collective is a
 * plan of lanes (plan.h), and every rank that waits carries out lanes, its own or
 * others'.  So a collective needs nobody to be switched to: who comes last can do it all.
 *
 *   hccl.c       the collectives' public functions: arguments checked
 *   issue.c      a collective put on a stream
 *   stage.c      buffers that overlap
 *   run.c        a collective begins, opens and ends
 *   lanes.c      what it does is carried out
 *   plans.c      the plan that a collective goes by
 *   p2p.c        Send, Recv, BatchSendRecv
 *   mail.c       a message between two ranks
 *   buffer.c     buffers of other ranks
 *   jetty.c      the queue path
 *   aicpu.c      reductions that no engine has
 *   group.c      the group: who is in it, who is alive, what went wrong
 *   comm.c       communicators: made, asked about, destroyed
 *   meet.c       how ranks find each other: root info, rank tables, sub-communicators
 *   job.c        which job this is
 *   error.c      results in words (what went wrong: fail.h of lib/transport)
 *   diagnose.c   who waits for whom
 *   res.h        what else a rank has: windows, one-sided memory, contexts, channels, threads
 *
 * Order of locks: res.meet_lock, comm->lock, res.ends_lock, those of lib/transport, res.lock,
 * hccl_local.lock, those of lib/acl.
 */
#ifndef HCCL_COMM_H
#define HCCL_COMM_H

#include <sched.h>
#include <hccl/hccl.h>
#include <hccl/hccl_comm.h>
#include <hccl/hccl_types.h>
#include "config.h"
#include "fail.h"
#include "npuacl.h"
#include "plan.h"
#include "res.h"
#include "share.h"

#define HCCL_MAGIC	0x4c434348555044eeull
#define HCCL_VERSION	5u
#define HCCL_AHEAD	8u		/* collectives that a rank may have come to and not seen the end of */
#define HCCL_SLOTS	(2 * HCCL_AHEAD)	/* run.c says why */
#define HCCL_MAILS	4u		/* messages between two ranks that either may have come to and not seen the end of */
#define HCCL_NAME	128u
#define HCCL_SUBS	64u		/* sub-communicators that are being made at a time */
#define HCCL_RANGES	16u		/* for operations without copies */
#define HCCL_ENTRIES	(1u << 20)	/* of one call with a list: more is a wrong count */

/* ---- The group: shared, so everything in it is read as others' word ------------------- */

/* A buffer, as its rank tells the others. */
struct hccl_ref {
	u64 va;			/* in its process; 0: none */
	u64 key, secret;	/* of the window that it lies in */
	u64 off;		/* in there; HCCL_PARTS: see parts.c */
	/* as UDMA reaches it; 0 if it need not */
	u64 remote;
	u32 token_id, token_value;
	u32 eid[4];
};

/* What a rank wants done. */
struct hccl_want {
	u64 seq;
	u32 coll;		/* enum hccl_coll */
	u32 type;		/* HcclDataType */
	u32 op;			/* HcclReduceOp */
	u32 root;
	u64 count;
	u64 sum;		/* of the arrays of a V form that all ranks have to give alike */
	u64 drops;		/* npuacl_export_drops() of its process */
	/* not of a barrier; in lines of their own: mostly they are what they were a round before */
	struct hccl_ref in __attribute__((aligned(64)));
	struct hccl_ref out;
};

/*
 * Slots come round again and again.  What is in one from an earlier round is told by the
 * round, so that nobody has to clear lines that are in other cpus' caches.
 */
struct hccl_lane_state {
	u64 owner;		/* round, and rank + 1 that carries it out */
	u64 done;		/* round, and steps */
	u64 pad[6];
};

#define HCCL_RANK_BITS	16	/* of @owner, and of a slot's @opener */
#define HCCL_STEP_BITS	24	/* of @done */
_Static_assert(HCCL_MAX_STEPS < 1u << HCCL_STEP_BITS, "a lane's steps can be counted");

struct hccl_slot {
	u64 seq;		/* the collective that it is for, once that goes */
	u32 arrived;		/* ranks, and the end of the one before; never less again */
	u32 lanes;		/* that are done */
	u32 over;		/* all are */
	u32 algo;		/* enum hccl_algo: what they were, for who comes when they are */
	u64 opener;		/* round, and rank + 1 that opens it, once it can be */
	u32 pad[8];
	/* each in lines of its own */
	struct hccl_lane_state lane[HCCL_MAX_RANKS];
	struct hccl_want want[HCCL_MAX_RANKS];
	u64 array[HCCL_MAX_RANKS][4][HCCL_MAX_RANKS];	/* V forms: counts and displs */
};

enum hccl_member_state {
	HCCL_ABSENT,
	HCCL_JOINING,
	HCCL_MEMBER,
	HCCL_LEFT,
};

struct hccl_member {
	u32 state;		/* enum hccl_member_state */
	u32 pid;
	u32 device;		/* on the board */
	u32 logical;		/* as its program calls it */
	u32 can_queue;		/* it has a UDMA queue */
	struct hccl_ref ccl;	/* its buffer; also shows that its process lives */
	/* for diagnosis */
	u64 issued;		/* collectives that its program has asked for */
	u64 begun, finished;
	u64 range[HCCL_RANGES];	/* sizes, as HcclCommSetMemoryRange named them */
	char settings[HCCL_CONFIG_TEXT];
};

/* One side of a message. */
struct hccl_side {
	struct hccl_ref ref;
	u64 count;
	u64 drops;		/* npuacl_export_drops() of its process */
	u32 type;
	u32 pad;
};

struct hccl_message {
	struct hccl_side from, to;
};

/* One direction between two ranks. */
struct hccl_mail {
	u64 sent, wanted;	/* messages that the sender, the receiver has come to */
	u64 taken;		/* that somebody copies, or has */
	u64 done;
	struct hccl_message at[HCCL_MAILS];
};

/* A line of its own. */
struct hccl_bell {
	struct npuacl_bell bell;
} __attribute__((aligned(64)));

/* What a rank has for another one, and that takes it: oneside.c. */
struct hccl_swap {
	u64 sent, taken;	/* how often */
	u64 key, secret;
	u64 count;
};

struct hccl_sub {
	u32 state;		/* 0 free, 1 being written, 2 there, 3 being read */
	u32 left;		/* ranks that have not fetched it */
	u64 id;
	u64 key, secret;
};

struct hccl_group {
	u64 magic;
	u32 version;
	u32 ranks;		/* 0: nobody has joined yet */
	u32 joined;		/* HCCL_MEMBER, and ever were */
	u32 left;
	u64 failed;		/* rank + 1 << 32 | HcclResult of the first that went wrong */
	u32 failed_ready;	/* @why is written */
	u32 pad;
	char family[8];
	char why[512];
	char name[HCCL_NAME];
	struct npuacl_bell bell __attribute__((aligned(64)));	/* something has come, is over, or has failed */
	struct hccl_bell bells[HCCL_MAX_RANKS];		/* likewise, of messages: each rank's */
	struct hccl_sub sub[HCCL_SUBS];
	struct hccl_member member[HCCL_MAX_RANKS];
	struct hccl_slot slot[HCCL_SLOTS];
	struct hccl_mail mail[HCCL_MAX_RANKS][HCCL_MAX_RANKS];	/* [from][to] */
	struct hccl_note note[2][HCCL_MAX_RANKS];	/* exchange.c: a rank is at most one ahead */
	struct hccl_swap swap[HCCL_MAX_RANKS][HCCL_MAX_RANKS];	/* [from][to] */
};

/* The first collective of all has none before it that could end. */
static inline void hccl_slots_begin(struct hccl_group *g)
{
	g->slot[1].arrived = 1;
}

/* From 1 on; the first collective is 1, too. */
static inline u64 hccl_round(u64 seq)
{
	return (seq - 1) / HCCL_SLOTS + 1;
}

static inline u64 hccl_rank_tag(u64 seq, u32 rank)
{
	return hccl_round(seq) << HCCL_RANK_BITS | (rank + 1);
}

/* rank + 1 of a word that may be of an earlier round; 0: nobody yet */
static inline u32 hccl_tagged_rank(u64 word, u64 seq)
{
	return word >> HCCL_RANK_BITS == (hccl_round(seq) & UINT64_MAX >> HCCL_RANK_BITS) ? (u16)word : 0;
}

static inline u64 hccl_steps_tag(u64 seq, u32 steps)
{
	return hccl_round(seq) << HCCL_STEP_BITS | steps;
}

/* Steps of a lane that are done. */
static inline u32 hccl_steps_done(const struct hccl_lane_state *lane, u64 seq)
{
	u64 done = smp_load_acquire(&lane->done);

	return done >> HCCL_STEP_BITS == (hccl_round(seq) & UINT64_MAX >> HCCL_STEP_BITS) ? (u32)done & ((1u << HCCL_STEP_BITS) - 1) : 0;
}

/* ---- In this process ---------------------------------------------------------------------- */

struct hccl_comm;

/* A group as this process sees it: its own, or imported; shared by the ranks here. */
struct hccl_local {
	struct hccl_local *next;
	struct npuacl_key key;
	struct hccl_group *group;
	struct npuemu_buf *buf;		/* this process made it */
	struct npuacl_import *import;
	u32 refs;			/* ranks of this process, and who has it to give away */
	pthread_mutex_t lock;		/* plans */
	struct hccl_made *plans;
	struct hccl_comm *rank[HCCL_MAX_RANKS];	/* atomic */
};

/* A buffer of another rank's, opened here. */
struct hccl_open {
	u64 key;
	u64 used;
	struct npuacl_import *import;
	u8 *ptr;
	struct npuacl_span *span;	/* of several parts: instead of an import */
};

#define HCCL_OPENS	16u		/* of one rank */

struct hccl_peer {
	u64 drops;			/* what it had taken back when we looked last */
	u64 clock;			/* uses, so far */
	struct hccl_open open[HCCL_OPENS];
};

struct hccl_op;

/* Messages of one direction, as this rank counts them. */
struct hccl_box {
	u64 ticket, ticket_begun;	/* issued; begun of those */
	u64 begun;			/* likewise, models' among them: the mail's count */
};

struct hccl_comm {
	u32 rank, ranks;
	struct npuacl_device *dev;
	struct hccl_local *local;
	struct hccl_group *group;
	struct hccl_config cfg;
	pthread_mutex_t lock;		/* who issues: order of collectives */
	bool all_here;			/* all ranks are of this process */
	bool spins;			/* each rank has a cpu, as far as we know */
	u32 cpus;			/* of this process */
	u16 cpu_at[CPU_SETSIZE];	/* by its number: which of these it is */
	u64 cache;			/* twice the bytes that their own caches hold */
	u32 beside;			/* ranks that share them: those of the communicator that this is a part of; 0: its own */
	bool wants_queue;		/* NPUEMU_TRANSPORT=queue */
	bool queued;			/* the queue path: jetty.c */
	struct npuemu_queue *jetty;
	pthread_mutex_t wire;		/* the jetty */
	u32 jetty_last;			/* WQE posted last, when it was flushed */
	u64 ticket, ticket_done;	/* collectives issued, and over */
	u64 begun;			/* likewise, models' among them: the group's count */
	u32 in_flight;			/* of all kinds, issued and not over; atomic */
	u32 taking;			/* somebody is at @spare; atomic */
	struct hccl_op *spare;		/* collectives that are over, to be issued again */
	struct hccl_op *back;		/* likewise, given back meanwhile; atomic */
	struct hccl_op *now;		/* the one at which this rank is */
	struct hccl_op *newest;		/* and to which it has come, ahead of that; who runs @now uses it */
	u32 ahead;			/* how many are between; likewise */
	struct hccl_made *plan;		/* of the latest that had one; likewise */
	struct npuacl_stream *parked;	/* runs it; woken by ranks of this process; atomic */
	u8 **base;			/* [ranks * 3]: where its places are from here; NULL: not known yet */
	struct hccl_box *box;		/* [ranks * 2]: messages to each peer, from each */
	struct npuemu_buf *ccl;		/* CCL buffer, in and out */
	struct npuacl_window ccl_window;
	u8 *ccl_ptr;
	u64 ccl_bytes;
	struct hccl_peer *peer;		/* [ranks * 2]: as collectives know them, as messages do */
	pthread_mutex_t moving;		/* the latter, and what is copied by them: streams are beside each other */
	u32 server[HCCL_MAX_RANKS];
	u32 servers;
	bool is_sub;			/* of HcclCreateSubCommConfig */
	bool by_table;			/* of a rank table */
	struct hccl_res res;
	u32 error;			/* told by HcclGetCommAsyncError: HcclResult */
	char name[HCCL_NAME + 1];	/* HcclCommConfig's need not end */
};

extern struct npuemu_slab hccl_comms;

/* ---- error.c ------------------------------------------------------------------------------------ */

/* A function that npuemu does not have: says so in the log, once a name. */
HcclResult npuemu_hccl_unsupported(const char *name, HcclResult code);

/* ---- group.c ------------------------------------------------------------------------------------ */

/* A new one, empty, offered to others; @local has a reference. */
HcclResult hccl_group_make(const char *what, struct npuacl_device *dev, const char *name, struct hccl_local **out);
HcclResult hccl_group_open(const char *what, const struct npuacl_key *key, struct hccl_local **out);
void hccl_local_put(struct hccl_local *l);
/* Take the place of a rank: this only says so. */
HcclResult hccl_group_join(const char *what, struct hccl_comm *c);
/* Is it time to tell for whom we wait, again? */
static inline bool hccl_report_due(s64 now, s64 *report)
{
	if (now < *report)
		return false;
	*report = now + 60000000000ll;
	return true;
}
/* Until all have: HCCL_E_TIMEOUT tells who has not. */
HcclResult hccl_group_meet(const char *what, struct hccl_comm *c);
void hccl_group_leave(struct hccl_comm *c);
/* It cannot go on: the first to say so is heard. */
void hccl_group_fail(struct hccl_comm *c, HcclResult code, const char *family, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Has somebody?  The code, and the text if there is one to take. */
HcclResult hccl_group_failed(struct hccl_comm *c, char *why, size_t size, char family[8]);
static inline bool hccl_group_broken(const struct hccl_comm *c)
{
	return unlikely(READ_ONCE(c->group->failed));
}
/* Look whether the ranks in @waits (all: NULL) are alive; one that is not fails the group. */
void hccl_group_check(struct hccl_comm *c);
void hccl_locals_fork(void);
/* Streams of this process that are parked at a collective of this group go on. */
void hccl_wake_local(struct hccl_comm *c);

/* ---- buffer.c -------------------------------------------------------------------------------------- */

/* Where @va can be found by others; @bytes of it are there. */
HcclResult hccl_ref_make(struct hccl_comm *c, const char *what, const char *role, const void *va, u64 bytes,
			 struct hccl_ref *ref);
/* What was made for it beside. */
static inline void hccl_ref_drop(struct hccl_comm *c, const struct hccl_ref *ref)
{
	if (unlikely(ref->off & HCCL_PARTS) && ref->key)
		hccl_parts_put(c, ref->key);
}
/* The same, from here; NULL: it cannot be reached, and the group has been failed.  @message: c->moving held. */
u8 *hccl_ref_open(struct hccl_comm *c, u32 rank, bool message, const struct hccl_ref *ref, u64 drops);
void hccl_peers_close(struct hccl_comm *c);

/* ---- jetty.c --------------------------------------------------------------------------------------- */

int hccl_jetty_make(struct hccl_comm *c);
void hccl_jetty_unmake(struct hccl_comm *c);
/* @ref is of @w, a window of this process: others' queues may reach it from now on. */
HcclResult hccl_ref_segment(const char *what, const struct npuacl_window *w, struct hccl_ref *ref);
/* READ into, or WRITE from, @local; @code: of a reduction, as hccl_sdma_reduces() gives it. */
bool hccl_jetty_post(struct hccl_comm *c, bool write, void *local, const struct hccl_ref *ref, u64 off, u64 bytes, bool reduce,
		     u32 code);
bool hccl_jetty_flush(struct hccl_comm *c);

/* ---- job.c ------------------------------------------------------------------------------------------ */

/* A text that all ranks of a job have, and no other job at the time; "" if nothing tells.  Maybe in @buf. */
const char *hccl_job(char *buf, size_t size);

/* ---- comm.c ----------------------------------------------------------------------------------------- */

HcclResult hccl_comm(HcclComm handle, const char *what, struct hccl_comm **out);
HcclResult hccl_comm_make(const char *what, struct npuacl_device *dev, u32 ranks, u32 rank,
			  const HcclCommConfig *config, struct hccl_local *local, struct hccl_comm **out);
/* Something is made that aclFinalize and fork have to know of. */
void hccl_begin(void);
/* All have come to a group of this process's: nobody needs it to find it any more.  NULL: all. */
void hccl_roots_release(const struct hccl_local *l);
void hccl_roots_fork(void);
/* A device takes part in one communicator of a rank table at a time. */
HcclResult hccl_first_by_table(const char *what, const struct npuacl_device *dev);
/* After all have joined. */
HcclResult hccl_comm_ready(const char *what, struct hccl_comm *c);
void hccl_comm_unmake(struct hccl_comm *c);

/* ---- issue.c, run.c, lanes.c, plans.c ------------------------------------------------------------------------------ */

enum hccl_phase {
	HCCL_BEGIN,			/* its stream has not come to it */
	HCCL_ARRIVED,			/* said what it wants; others have not all */
	HCCL_GOES,
};

/* A collective, from its call to its end. */
struct hccl_op {
	struct npuacl_work work;
	struct hccl_comm *comm;
	const char *what;		/* the public function */
	bool once;			/* not of a model */
	bool last;			/* who comes to it opens it: nothing is missing any more */
	bool split;			/* a buffer has several parts */
	bool taken;			/* each lane is done, or somebody is at it until it is: there is nothing to look for */
	u64 ticket;			/* its place among those issued; 0: of a model */
	u64 seq;			/* among those begun */
	struct hccl_op *next;		/* this rank has come to it ahead of its turn; or the next that is spare */
	enum hccl_phase phase;
	struct hccl_want want;
	struct npuemu_buf *stage;	/* copy of what is sent: stage.c */
	u64 staged, stage_bytes;	/* where that is */
	u64 *array;			/* V forms: 4 of ranks: counts and displs to send, to receive; NULL */
	struct hccl_plan *plan;
	enum hccl_algo ran;		/* the plan's */
	u32 lanes;			/* of the plan that have steps */
	u32 asked;			/* whether it gets on with them, so often */
	bool here;			/* its turn has come */
	bool queueless;			/* all SDMA queues were busy */
	bool waits;			/* somebody else has to get on with it first */
	s64 began;			/* when it had to wait; 0: it did not */
	s64 look_at;
	s64 others_at;			/* from when on it takes lanes of others, too; 0: at once */
};

extern const struct npuacl_work_ops hccl_collective;

/* As before the first collective. */
void hccl_slots_clear(struct hccl_comm *c);
/* lanes.c: those that nobody is at, our own first.  Are all done? */
bool hccl_lanes_carry(struct hccl_op *op, struct hccl_slot *slot);
/* All lanes are done, or there are none. */
void hccl_op_over(struct hccl_op *op, struct hccl_slot *slot);

/* What a rank wanted in one of the latest collectives that it has begun. */
static inline const struct hccl_want *hccl_want_of(const struct hccl_comm *c, u32 rank, u64 seq)
{
	return &c->group->slot[seq % HCCL_SLOTS].want[rank];
}

/* The one that a rank is at; it may have come to later ones, too. */
static inline u64 hccl_is_at(const struct hccl_member *m)
{
	u64 begun = READ_ONCE(m->begun), finished = READ_ONCE(m->finished);

	return finished < begun ? finished + 1 : begun;
}

struct hccl_op *hccl_op_new(struct hccl_comm *c, const char *what);
void hccl_op_free(struct hccl_op *op);
/* All that are spare, when nothing is issued any more. */
void hccl_ops_drop(struct hccl_comm *c);
/* To a stream; takes @op, also if it fails. */
HcclResult hccl_issue(struct hccl_op *op, aclrtStream stream);

/* ---- stage.c -------------------------------------------------------------------------------------------------- */

/* Where a rank has its buffers, and how much of them counts. */
struct hccl_ends {
	u64 in, in_bytes, out, out_bytes;
};

/* What is sent is copied before, if it has to be. */
HcclResult hccl_stage(struct hccl_op *op, const struct hccl_ends *e);
/* That copy, on the stream. */
aclError hccl_stage_fill(struct hccl_op *op, struct npuacl_stream *s);
void hccl_stage_drop(struct hccl_op *op);

/* The stream's error, after the group has failed. */
void hccl_op_failed(struct hccl_comm *c, struct npuacl_stream *s, u32 task, const char *text);
/* NULL: no memory.  The ranks of a process share plans. */
struct hccl_plan *hccl_plan_of(struct hccl_comm *c, const struct hccl_op *op, struct hccl_slot *slot);
void hccl_plan_drop(struct hccl_comm *c);
void hccl_plans_free(struct hccl_local *l);

HcclResult hccl_stream(struct hccl_comm *c, const char *what, aclrtStream stream, struct npuacl_stream **out);
HcclResult hccl_broken(struct hccl_comm *c, const char *what);	/* has it failed? */
/* @self: a rank may be its own peer. */
HcclResult hccl_p2p(struct hccl_comm *c, const char *what, const HcclSendRecvItem *items, u32 n, bool self,
		    aclrtStream stream);

/* Those that were put off in this thread's group. */
HcclResult hccl_p2p_together(void);

/* ---- aicpu.c -------------------------------------------------------------------------------------------- */

/* dst = dst op src */
bool hccl_aicpu_reduce(void *dst, const void *src, u64 bytes, u32 type, u32 op);
/* Does the SDMA engine have it?  Its code in a descriptor's type. */
bool hccl_sdma_reduces(u32 type, u32 op, u32 *code);

/* ---- diagnose.c --------------------------------------------------------------------------------------------- */

/* "allreduce(fp32, 1024, sum)" */
void hccl_want_text(const struct hccl_want *w, char *buf, size_t size);
/* Do all want the same?  If not, the group is failed. */
bool hccl_wants_agree(struct hccl_comm *c, struct hccl_slot *slot);
/* Who is not there yet. */
void hccl_waits_text(struct hccl_comm *c, const struct hccl_op *op, char *buf, size_t size);

#endif
