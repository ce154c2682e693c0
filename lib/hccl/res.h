/* SPDX-License-Identifier: MIT */
/*
 * What a rank of a communicator has beside its operations: lists of the parts of its
 * buffers, windows, memory for one-sided transfers, contexts of engines.
 *
 *   parts.c      buffers that several mappings make up
 *   exchange.c   all ranks come together in their programs' threads, and tell something
 *   zerocopy.c   ranges for operations without copies
 *   symwin.c     symmetric windows
 *   oneside.c    memory of peers: registered, exchanged, enabled
 *   prepare.c    the same for all ranks at once, of memory that the process registered
 *   putget.c     transfers by one side alone
 *   together.c   calls between HcclGroupStart and HcclGroupEnd
 *   recover.c    suspended and resumed
 *   statecb.c    whom to tell of that, and of the end
 *   engctx.c     contexts of engines; the communicator's buffer
 *   ends.c       its endpoints, and memory that peers of channels are told of
 *   channels.c   channels to other ranks
 *   chanconf.c   configurations of those
 *   threads.c    threads
 *   rankgraph.c  how ranks are wired
 *   setconfig.c  what is set for the whole process
 */
#ifndef HCCL_RES_H_
#define HCCL_RES_H_

#include "core.h"
#include "inside.h"
#include "share.h"
#include <hccl/hccl_types.h>

struct hccl_comm;
struct hccl_config;
struct hccl_ref;
struct hccl_parts;
struct hccl_win;
struct hccl_mem;
struct hccl_engctx;
struct hccl_graph;
struct hccl_chan;
struct hccl_memreg;
struct hccl_thread;

#define HCCL_PROTOCOLS	10u		/* of CommProtocol */

/* Where its channels of a protocol begin: made with the first of them. */
struct hccl_end {
	EndpointHandle ep;		/* NULL: not made */
	HcommMemHandle buffer;		/* the communicator's */
};

struct hccl_res {
	pthread_mutex_t lock;		/* of the lists; nothing else is locked below it but lib/acl */
	pthread_mutex_t meet_lock;	/* who comes together with the other ranks */
	struct hccl_parts *parts;
	u64 parts_used;			/* a clock */
	u64 meets;			/* comings together, so far */
	u64 *swaps;			/* [ranks]: exchanges with each, so far */
	struct hccl_win *wins;
	struct hccl_mem *mems;		/* registered, and enabled ones of peers */
	struct hccl_engctx *ctxs;
	struct hccl_graph *graph;
	pthread_mutex_t ends_lock;	/* of the next four */
	struct hccl_end end[HCCL_PROTOCOLS];
	struct hccl_memreg *memregs;
	struct hccl_chan *chans;
	struct hccl_thread *threads;
	struct npuacl_range *shown;	/* the communicator's buffer in the address map; NULL */
	u64 *range;			/* [HCCL_RANGES]: bases of those that this rank has set */
	u32 suspended;			/* atomic */
	s64 looked;			/* when the peers of transfers were looked at; atomic */
	u64 born;			/* no two communicators of a process have the same */
};

HcclResult hccl_res_make(struct hccl_comm *c, const char *what);
/* Once others know that we leave. */
void hccl_res_unmake(struct hccl_comm *c);

/* ---- parts.c ---------------------------------------------------------------------------- */

#define HCCL_PARTS	(1ull << 63)	/* in hccl_ref.off: the window is a list of parts */

/* Of more than one mapping, from @va on; @role for messages. */
HcclResult hccl_parts_make(struct hccl_comm *c, const char *what, const char *role, u64 va, u64 bytes,
			   struct hccl_ref *ref);
/* It is not used any more. */
void hccl_parts_put(struct hccl_comm *c, u64 key);
void hccl_parts_free(struct hccl_comm *c);
/* Another process's, to be closed; the list is what @ref names. */
aclError hccl_parts_open(const char *what, const struct hccl_ref *ref, u32 device, struct npuacl_span **out);
/* How much of @bytes lies in one mapping on both sides. */
u64 hccl_stretch(const u8 *dst, const u8 *src, u64 bytes);

/* ---- exchange.c ------------------------------------------------------------------------- */

enum hccl_note_kind {
	HCCL_NOTE_NONE,
	HCCL_NOTE_SYMWIN,
	HCCL_NOTE_OPENED,	/* what the others told, or not */
	HCCL_NOTE_PREPARE,
	HCCL_NOTE_RESUME,
	HCCL_NOTE_KINDS,
};

/* What a rank tells all others. */
struct hccl_note {
	u64 seq;
	u32 kind;
	u32 failed;		/* HcclResult */
	u64 size;		/* has to be the same on all */
	u64 va, key, secret, off;
};

/*
 * Tell @mine, wait for all, get what they told: an array of as many as there are ranks.
 * Fails on all of them if one did, or told another kind or size.  @limit_ns: 0, as the
 * communicator's; a rank that does not come fails the group.
 */
HcclResult hccl_exchange(struct hccl_comm *c, const char *what, const struct hccl_note *mine, s64 limit_ns,
			 struct hccl_note *all);

/* ---- engctx.c ------------------------------------------------------------------------------ */

/* Device memory of this process's own is known to the address map, but not the program's to free. */
HcclResult hccl_show(struct hccl_comm *c, const char *what, struct npuemu_buf *buf, struct npuacl_range **out);
void hccl_hide(struct npuacl_range *r);	/* NULL: nothing */

/* The communicator's buffer is in the address map: from the first time on that somebody asks for it. */
HcclResult hccl_buffer_show(struct hccl_comm *c, const char *what);

/* ---- ends.c, channels.c, threads.c ----------------------------------------------------------- */

/* Memory that HcclCommMemReg() gave a name. */
struct hccl_memreg {
	struct hccl_memreg *next;
	CommMem mem;
	HcommMemHandle at[HCCL_PROTOCOLS];	/* NULL: that end is not made */
	char tag[256];
};

/* The thread has set the communicator's device. */
HcclResult hccl_on_device(struct hccl_comm *c, const char *what);
/* A function of lib/transport has given @code and said why: the same, for whom (to @peer, if it is one). */
HcclResult hccl_said(const struct hccl_comm *c, const char *what, s32 peer, HcclResult code);
struct HcclChannelDesc;
HcclResult hccl_chan_check(struct hccl_comm *c, const char *what, const struct HcclChannelDesc *d);
/* ends_lock held for these three. */
HcclResult hccl_end_make(struct hccl_comm *c, const char *what, CommProtocol protocol, struct hccl_end **out);
void hccl_end_describe(const struct hccl_comm *c, u32 rank, CommProtocol protocol, EndpointDesc *d);
struct hccl_memreg *hccl_memreg_of(struct hccl_comm *c, const void *handle);
/* Channels first: what still goes over them fails. */
void hccl_chans_free(struct hccl_comm *c);
void hccl_threads_free(struct hccl_comm *c);
void hccl_ends_free(struct hccl_comm *c);
/* Of how many channels and threads operations are not over, unless it has failed. */
u32 hccl_chans_busy(struct hccl_comm *c);
u32 hccl_threads_busy(struct hccl_comm *c);

/* ---- the others --------------------------------------------------------------------------- */

void hccl_wins_free(struct hccl_comm *c);
void hccl_wins_fork(void);
void hccl_mems_free(struct hccl_comm *c);
void hccl_engctxs_free(struct hccl_comm *c);
void hccl_graph_free(struct hccl_comm *c);
void hccl_ranges_free(struct hccl_comm *c);
void hccl_ranges_fork(void);
void hccl_globals_unbind(struct hccl_comm *c);
void hccl_globals_fork(void);
/* Determinism, if the program set it for the process. */
void hccl_process_config(struct hccl_config *cfg);
void hccl_state_tell(HcclComm handle, HcclCommStatePhase phase);
/* HCCL_E_SUSPENDING with a message. */
HcclResult hccl_suspended(struct hccl_comm *c, const char *what);

/* ---- together.c ----------------------------------------------------------------------------- */

enum hccl_together {
	HCCL_ALONE,
	HCCL_TOGETHER_MANAGE,	/* communicators are made, or destroyed */
	HCCL_TOGETHER_COLL,
	HCCL_TOGETHER_P2P,
};

extern __thread u32 hccl_together_depth;

/*
 * Making a communicator waits, so in a group it is put off to the end.  @path: of a rank
 * table; NULL: by @info.
 */
HcclResult hccl_later(const char *what, const char *path, const HcclRootInfo *info, u32 ranks, u32 rank,
		      const HcclCommConfig *config, HcclComm *comm);
/* Fails in a group. */
HcclResult hccl_together_not(const char *what);
/* May a call of this class be made here?  Only in a group. */
HcclResult hccl_together_class(const char *what, enum hccl_together class);
static inline HcclResult hccl_together(const char *what, enum hccl_together class)
{
	return likely(!hccl_together_depth) ? HCCL_SUCCESS : hccl_together_class(what, class);
}

#endif
