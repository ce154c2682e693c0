/* SPDX-License-Identifier: MIT */
/*
 * What the parts of lib/transport share: the public Hcomm functions, and below them two
 * ways to move data under one interface.
 *
 * An endpoint has a desk, a piece of device memory that other processes see: what it has
 * registered, which channels it wants to whom, and the words of their notifies.  Of two
 * channels that name each other's endpoints one end writes into both desks that they are
 * linked, and which path they go: queue (UDMA, by segment and token) or mapped (the
 * peer's memory opened here, moved by SDMA).  That holds as long as the channel does.
 *
 *   endpoint.c   endpoints, and their descriptions
 *   desk.c       desks: made, found, opened
 *   region.c     registered memory, exported and imported
 *   channel.c    channels: made, asked, unmade
 *   link.c       how two ends find each other, and agree
 *   reach.c      memory of the peer, as it can be reached over a channel
 *   thread.c     threads and their notifies
 *   issue.c      operations checked, and put on a thread, or held back in a batch
 *   primitives.c the operations' public functions
 *   run.c        operations on a thread are carried out
 *   direct.c     operations that the caller issues itself
 *   mapped.c     the mapped path
 *   queue.c      the queue path
 *   fail.c       what went wrong, for the thread that asks
 *
 * Order of locks: thread->lock, channel->lock, endpoint->lock, the one of desk.c, those of lib/acl.
 */
#ifndef HCOMM_TRANSPORT_H
#define HCOMM_TRANSPORT_H

#include <hccl/hccl_types.h>
#include <hcomm_channel.h>
#include <hcomm_primitives.h>
#include <hcomm_res.h>
#include "fail.h"
#include "inside.h"
#include "npuacl.h"
#include "share.h"

#define HCOMM_MAGIC	0x4b5344434d4d4348ull
#define HCOMM_VERSION	2u
#define HCOMM_CHANNELS	512u		/* of one endpoint */
#define HCOMM_REGIONS	1024u		/* likewise */
#define HCOMM_NOTIFIES	16384u		/* of all its channels */
#define HCOMM_TAG	256u
#define HCOMM_LOOK_NS	100000000ll	/* is the peer alive? */

/* ---- The desk: shared, so everything in it is read as others' word ---------------------- */

/* What an endpoint is known by: all that others need to say to mean it. */
struct hcomm_ident {
	u32 protocol;
	u32 addr_type;
	u8 addr[36];		/* only the bytes that count for its type; else 0 */
	u32 loc_type;
	u32 loc_id;		/* physical device, or number of the host */
};

struct hcomm_region {
	u64 gen;		/* a number of its own; 0: none */
	u64 va, bytes;		/* in its process */
	u64 key, secret, off;	/* of the window that it lies in; key 0: of this process only */
	u32 type;		/* CommMemType */
	u32 has_seg;
	struct npuemu_seg_info seg;
	char tag[HCOMM_TAG];
};

enum hcomm_state {
	HCOMM_FREE,
	HCOMM_OPEN,		/* looks for the other end */
	HCOMM_BUSY,		/* is being linked, by one of the two */
	HCOMM_LINKED,
	HCOMM_REFUSED,		/* @why says why */
	HCOMM_GONE,
};

enum hcomm_path {
	HCOMM_ANY,
	HCOMM_QUEUE,
	HCOMM_MAPPED,
};

/* A channel, as its end wants it, and what came of it. */
struct hcomm_offer {
	u32 state;		/* enum hcomm_state */
	u32 pid;
	u64 gen;		/* tells it from others that had the place */
	struct hcomm_ident remote;
	u32 port, role;
	u32 notifies, notify_at;	/* words, and the first */
	u32 queue;		/* this end has a queue for it */
	u32 forced;		/* enum hcomm_path, by NPUEMU_TRANSPORT */
	u32 path;		/* enum hcomm_path; linked */
	u32 code;		/* refused: HcclResult */
	u64 peer, peer_secret;	/* the other end's desk, place and number */
	u32 peer_at, pad;
	u64 peer_gen;
	u64 mems[HCOMM_REGIONS / 64];	/* regions that the peer may reach */
	char name[HCOMM_CHANNEL_NAME_MAX_LEN + 1];
	char why[256];
};

struct hcomm_public {
	u64 magic;
	u32 version, pid;
	struct hcomm_ident self;
	u32 device;		/* on the board */
	u32 has_seg;
	struct npuemu_seg_info seg;	/* of @word */
	u32 offers, regions;	/* places in use, or once used */
	struct hcomm_offer offer[HCOMM_CHANNELS];
	struct hcomm_region region[HCOMM_REGIONS];
	u64 word[HCOMM_NOTIFIES];
};

/* ---- In this process ------------------------------------------------------------------------ */

/* A desk, of this process or another; one for all who use it. */
struct hcomm_desk {
	struct hcomm_desk *next;
	struct npuacl_key key;
	struct hcomm_public *pub;
	struct npuemu_buf *buf;		/* this process's */
	struct npuemu_seg *seg;
	struct npuacl_import *import;	/* another's */
	u32 refs;
};

/* Memory that is registered here. */
struct hcomm_mem {
	struct hcomm_mem *next;
	struct hcomm_endpoint *ep;
	u32 at;				/* in the desk */
	u64 gen;
	u64 va, bytes;
	struct npuemu_seg *seg;
	void *desc;			/* of HcommMemExport(); NULL: not asked for */
};

/* A peer's memory that was imported. */
struct hcomm_import {
	struct hcomm_import *next;
	struct hcomm_desk *desk;
	u32 at;
	u64 gen;
	u32 refs;
};

struct hcomm_endpoint {
	struct npuemu *board;
	struct npuacl_device *dev;
	struct hcomm_ident self;
	struct hcomm_desk *desk;
	bool prefers_queue;		/* by its protocol */
	pthread_mutex_t lock;
	u32 channels;
	u32 port;
	struct hcomm_mem *mems;
	struct hcomm_import *imports;
	u64 taken[HCOMM_NOTIFIES / 64];	/* words */
};

/* A part of the peer's memory, over a channel. */
struct hcomm_reach {
	u32 at;
	u64 gen;
	struct hcomm_region r;		/* as it was when it was found */
	u8 *ptr;			/* mapped: where it is from here; NULL: not asked for yet */
	struct npuacl_import *import;
};

struct hcomm_channel {
	struct hcomm_endpoint *ep;
	struct hcomm_desk *own, *peer;
	struct hcomm_offer *offer, *other;	/* in the desks; other: linked */
	u32 at;					/* of @offer */
	u64 gen, other_gen;
	u32 pid;				/* the peer's */
	u32 notifies;
	u32 other_notifies, other_notify_at;	/* the peer's */
	u32 refs;				/* the handle, and each operation; atomic */
	bool ready;				/* linked, and all is here; atomic */
	bool closing;				/* destroyed; atomic */
	enum hcomm_path path;
	pthread_mutex_t lock;
	s64 seek_at, busy_since, open_since;
	bool reported;
	struct hcomm_reach *reach;
	u32 reaches, room, last;
	/* what broke it, for good */
	u32 broken;				/* HcclResult; atomic, after @why */
	char why[256];
	s64 look_at;				/* atomic */
	/* queue.c */
	struct npuemu_queue *q;
	struct npuemu_cq *cq;
	u32 done;				/* blocks before it are over */
};

/* A channel, which may have been destroyed since. */
struct hcomm_under {
	struct hcomm_channel *ch;
	u64 gen;
};

struct hcomm_thread {
	struct npuemu *board;
	struct npuacl_device *dev;
	struct npuacl_stream *stream;
	u32 stream_id;
	bool direct;			/* the caller waits for each operation */
	bool borrowed;			/* the stream is the program's */
	u32 refs;			/* the handle, and each operation; atomic */
	u32 notifies;
	struct npuemu_buf *buf;
	volatile u64 *word;
	pthread_mutex_t lock;
	struct hcomm_under *under;	/* over which something may be under way */
	u32 nunder, room;
};

extern struct npuemu_slab hcomm_endpoints, hcomm_mems, hcomm_channels, hcomm_threads, hcomm_configs;

/* ---- desk.c, endpoint.c ------------------------------------------------------------------------- */

HcclResult hcomm_desk_make(const char *what, struct npuacl_device *dev, const struct hcomm_ident *self,
			   struct hcomm_desk **out);
HcclResult hcomm_desk_open(const char *what, const struct npuacl_key *key, struct hcomm_desk **out);
struct hcomm_desk *hcomm_desk_get(struct hcomm_desk *d);
void hcomm_desk_put(struct hcomm_desk *d);
void hcomm_desks_fork(void);
/* Numbers that tell offers and regions apart; never 0. */
u64 hcomm_number(void);

HcclResult hcomm_endpoint(const char *what, EndpointHandle handle, struct hcomm_endpoint **out);
HcclResult hcomm_identify(const char *what, const EndpointDesc *d, struct hcomm_ident *id);
void hcomm_ident_text(const struct hcomm_ident *id, char *buf, size_t size);
/* Before the first handle is given out. */
void hcomm_watch_forks(void);

/* ---- region.c, reach.c ---------------------------------------------------------------------------- */

/* Regions for the peer of a channel, by what its description says. */
HcclResult hcomm_regions_of(const char *what, struct hcomm_endpoint *ep, const HcommChannelDesc *d, u64 *mems);
/* Local memory of an operation over a queue: is it registered? */
bool hcomm_registered(struct hcomm_endpoint *ep, u64 va, u64 len);

/* Where a range of the peer's is.  The region still holds as long as *@gen is @want. */
struct hcomm_spot {
	u64 va;			/* mapped: from here */
	const u64 *gen;
	u64 want;
	struct npuemu_target target;
	u64 remote;		/* queue: in the segment */
};

/* channel->lock held. */
HcclResult hcomm_reach(const char *what, struct hcomm_channel *ch, u64 va, u64 len, struct hcomm_spot *spot);
HcclResult hcomm_reach_link(struct hcomm_channel *ch);
void hcomm_reach_free(struct hcomm_channel *ch);

/* ---- channel.c, link.c -------------------------------------------------------------------------------- */

/* A channel that is ready. */
HcclResult hcomm_channel(const char *what, ChannelHandle handle, struct hcomm_channel **out);
void hcomm_channel_get(struct hcomm_channel *ch);
void hcomm_channel_put(struct hcomm_channel *ch);
void hcomm_channel_break(struct hcomm_channel *ch, HcclResult code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Is it whole, and the other end there?  If not, why. */
bool hcomm_channel_whole(struct hcomm_channel *ch);
void hcomm_channel_text(const struct hcomm_channel *ch, char *buf, size_t size);

/* A step further: HCCL_SUCCESS when it is ready, HCCL_E_AGAIN, or what has failed. */
HcclResult hcomm_link(const char *what, struct hcomm_channel *ch);
void hcomm_unlink(struct hcomm_channel *ch);

/* ---- Operations -------------------------------------------------------------------------------------------- */

enum hcomm_kind {
	HCOMM_COPY,		/* what moves data: on this device */
	HCOMM_REDUCE,
	HCOMM_WRITE,		/* over a channel */
	HCOMM_WRITE_REDUCE,
	HCOMM_READ,
	HCOMM_READ_REDUCE,
	HCOMM_RECORD,		/* a word becomes 1, at the peer's end or (no channel) here */
	HCOMM_WAIT,		/* until a word is not 0; and clear it */
	HCOMM_DRAIN,
};

struct hcomm_item {
	u8 kind;		/* enum hcomm_kind */
	bool nbi;		/* nobody waits for its end */
	u32 code;		/* of a reduction, as in a descriptor */
	u32 elem;		/* bytes of an element */
	u32 index;		/* of a notify, for messages */
	u64 dst, src, len;	/* as they were given */
	struct hcomm_channel *ch;	/* with a reference; NULL: none */
	struct hcomm_thread *to;	/* whose notify @word is, with a reference; NULL: its own, or no thread's */
	struct hcomm_spot spot;
	volatile u64 *word;
	s64 timeout_ns;		/* 0: none */
};

struct hcomm_op {
	struct npuacl_work work;
	struct hcomm_op *next;		/* held back */
	struct hcomm_thread *th;
	u32 n, room;
	struct hcomm_item *item;
	/* while it runs */
	u32 at;
	u64 piece;			/* bytes of the one at @at that were posted */
	bool waits;			/* for @upto of the channel at @at */
	u32 upto, next_at;
	s64 since, look_at;
};

extern const struct npuacl_work_ops hcomm_work;
void hcomm_op_free(struct hcomm_op *op);
void hcomm_item_text(const struct hcomm_item *it, char *buf, size_t size);
/* The word of a notify was seen, and is 0 again. */
bool hcomm_take(volatile u64 *word);

/* issue.c */
HcclResult hcomm_thread(const char *what, ThreadHandle handle, struct hcomm_thread **out);
void hcomm_thread_put(struct hcomm_thread *th);
/* Make an item.  Those over a channel have a reference to it if they succeed. */
HcclResult hcomm_item_data(const char *what, struct hcomm_channel *ch, struct npuacl_device *dev, enum hcomm_kind kind,
			   void *dst, const void *src, u64 len, struct hcomm_item *it);
HcclResult hcomm_item_reduce(const char *what, struct hcomm_channel *ch, struct npuacl_device *dev, enum hcomm_kind kind,
			     void *dst, const void *src, u64 count, u32 type, u32 op, struct hcomm_item *it);
HcclResult hcomm_item_record(const char *what, struct hcomm_channel *ch, u32 index, struct hcomm_item *it);
HcclResult hcomm_item_wait(const char *what, struct hcomm_channel *ch, u32 index, s64 timeout_ns, struct hcomm_item *it);
void hcomm_item_drain(struct hcomm_channel *ch, struct hcomm_item *it);
void hcomm_items_put(struct hcomm_item *it, u32 n);
/* To a thread, in one piece; takes the references, also if it fails. */
HcclResult hcomm_issue(const char *what, struct hcomm_thread *th, struct hcomm_item *it, u32 n);
s64 hcomm_default_timeout(void);
/* Take what may be under way of a thread: drains, one a channel, to be freed; NULL if there is none. */
struct hcomm_item *hcomm_under_take(struct hcomm_thread *th, u32 *n);

/* mapped.c: items [0, n) that SDMA does, in order; how many are over, and 0 or what was wrong with the next. */
u32 hcomm_mapped_run(struct npuacl_device *dev, struct hcomm_item *it, u32 n, HcclResult *bad, char *why, size_t size);

/* queue.c */
HcclResult hcomm_queue_make(const char *what, struct hcomm_channel *ch, u32 depth);
void hcomm_queue_free(struct hcomm_channel *ch);
/* channel->lock held for all of these. */
/* Post what is left of an item: true; false: no room just now. */
bool hcomm_queue_post(struct hcomm_channel *ch, const struct hcomm_item *it, u64 *piece);
void hcomm_queue_ring(struct hcomm_channel *ch);
/* Take completions, for at most that long until @upto is over. */
bool hcomm_queue_over(struct hcomm_channel *ch, u32 upto, s64 deadline);
u32 hcomm_queue_head(struct hcomm_channel *ch);

#endif
