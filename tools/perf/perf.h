/* SPDX-License-Identifier: MIT */
/*
 * npuemu-perf: what the files share.
 *
 * The process the user starts (run.c) opens no board: it forks one initiator a
 * device pair and, unless the initiator is its own target, one peer.  They
 * report through memory shared from before the fork (struct npuemu_perf_shared)
 * and are led through rounds over socket pairs.  A round is one size, once: get
 * the memory ready, warm up, check some single messages byte by byte, then on a
 * common signal the timed run, then look at every byte again.
 */
#ifndef NPUEMU_TOOLS_PERF_H
#define NPUEMU_TOOLS_PERF_H

#include <stdatomic.h>
#include <stdint.h>
#include <npuemu/npuemu.h>

#include "../common/hist.h"

#define NPUEMU_PERF_SIZES	64
#define NPUEMU_PERF_LANES	64	/* threads of a process */
#define NPUEMU_PERF_PAIRS	32
#define NPUEMU_PERF_GUARD	4096u	/* bytes before the first and after the last slot */
#define NPUEMU_PERF_MSG		400
#define NPUEMU_PERF_RQ_DEPTH	256u
#define NPUEMU_PERF_MAX_REPEATS	101

enum npuemu_perf_mode {
	NPUEMU_PERF_LATENCY,
	NPUEMU_PERF_BANDWIDTH,
	NPUEMU_PERF_RATE,
};

struct npuemu_perf_lane;

struct npuemu_perf_test {
	const char *name;
	const char *what;		/* a line for --help */
	uint32_t bbs;			/* basic blocks of one WQE */
	uint32_t sdma;			/* an SDMA queue, not UDMA */
	uint32_t size_min;
	uint32_t size_max;
	uint32_t atomic;		/* only 4 and 8 bytes */
	uint32_t typed;			/* --op and --type mean something */
	uint32_t receives;		/* needs receive queues */
	uint32_t peer_latency;		/* the peer answers: half the round trip counts */
	uint32_t peer_stream;		/* the peer takes part in the stream */
	/* post one WQE with a completion; the lane's next one */
	int (*once)(struct npuemu_perf_lane *l, uint32_t flags);
	int (*latency)(struct npuemu_perf_lane *l, uint64_t n);
	int (*stream)(struct npuemu_perf_lane *l, uint64_t n);
	/* where the peer takes part: its halves, and what comes before the timed run */
	int (*pong)(struct npuemu_perf_lane *l);
	int (*drain)(struct npuemu_perf_lane *l);
	int (*ping_n)(struct npuemu_perf_lane *l, uint32_t n, int check);
	int (*pong_n)(struct npuemu_perf_lane *l, uint32_t n, int check);
	/* fill source and destination for the messages from now on */
	void (*arm)(struct npuemu_perf_lane *l, uint64_t seed, uint32_t timed);
	/* are the bytes as @n messages after arm() must leave them? */
	int (*verify)(struct npuemu_perf_lane *l, uint64_t seed, uint64_t n, uint32_t timed);
};

extern const struct npuemu_perf_test *const npuemu_perf_tests[];
extern const struct npuemu_perf_test npuemu_perf_write, npuemu_perf_read,
	npuemu_perf_faa, npuemu_perf_cas, npuemu_perf_notify, npuemu_perf_send,
	npuemu_perf_copy, npuemu_perf_reduce, npuemu_perf_reduce_udma;

struct npuemu_perf_opts {
	const struct npuemu_perf_test *test;
	enum npuemu_perf_mode mode;
	const char *board;
	uint64_t size[NPUEMU_PERF_SIZES];
	int sizes;
	uint32_t depth;
	uint32_t batch;
	uint32_t signal;
	uint32_t threads;
	uint32_t processes;
	uint32_t repeats;
	uint32_t slots;
	uint32_t warmup;
	uint32_t timeout_s;
	uint32_t op;			/* reduce */
	uint32_t type;
	uint32_t device_a;
	uint32_t device_b;
	uint32_t devices_given;
	uint64_t iterations;		/* a repeat and thread; 0: by time */
	double seconds;			/* a size */
	int check;
	int sleep;			/* wait rather than poll */
	int self;			/* no peer process */
	int json;
	int flip;			/* damage a byte before the check */
	int64_t flip_at;
};

/* What one lane does with memory in a round. */
struct npuemu_perf_layout {
	uint32_t size;
	uint32_t slots;			/* power of two */
	uint64_t stride;
	uint64_t area;			/* all slots */
	uint64_t bytes;			/* guard, tx area, rx area, guard */
};

/*
 * A lane's share of a buffer: messages leave from tx slots and arrive in rx
 * slots; all other bytes are guards, but for the notify word at the start.
 */
struct npuemu_perf_region {
	char *map;			/* here */
	uint64_t va;			/* for the owner */
};

struct npuemu_perf_lane {
	struct npuemu_perf_worker *w;
	uint32_t index;
	struct npuemu_queue *q;
	struct npuemu_cq *cq;
	struct npuemu_rq *rq;
	struct npuemu_cq *rcq;
	struct npuemu_perf_region near;
	struct npuemu_perf_region far;	/* .map is NULL where we may not look */
	struct npuemu_target target;	/* far's segment */
	struct npuemu_target jetty;	/* SEND: the peer's queue */
	struct npuemu_perf_layout lay;
	uint32_t batch;			/* WQEs a doorbell */
	uint32_t window;		/* basic blocks in flight at most */
	uint64_t seed;
	uint64_t next;			/* messages posted in this round */
	uint64_t got;			/* messages received in this round */
	uint64_t armed_at;		/* .next when the memory was armed */
	uint64_t count;			/* of the timed run */
	int64_t start_ns;
	int64_t end_ns;
	int rc;				/* exit code */
	char msg[NPUEMU_PERF_MSG];
	struct npuemu_hist hist;
};

/* One process's part of the shared memory; only it writes there. */
struct npuemu_perf_result {
	int pid;
	int rc;
	char msg[NPUEMU_PERF_MSG];
	uint64_t count;
	int64_t start_ns;
	int64_t end_ns;
	struct npuemu_hist hist;
	/* messages of each lane in all, once it has ended: the peer stops there */
	_Atomic uint64_t total[NPUEMU_PERF_LANES];
};

struct npuemu_perf_shared {
	_Atomic int stop;		/* time is up */
	_Atomic int abort;		/* somebody failed */
	struct npuemu_info info;	/* from the first initiator */
	uint32_t device_a;		/* of the first pair */
	uint32_t device_b;
	struct npuemu_perf_result r[];	/* initiators, then peers */
};

struct npuemu_perf_round {
	uint32_t index;			/* counts on over sizes and repeats */
	uint32_t size;
	uint32_t last;			/* no more rounds: leave */
};

/* What the two processes of a pair tell each other. */
struct npuemu_perf_card {
	struct npuemu_seg_info seg;
	struct npuemu_handle handle;
	uint32_t queue[NPUEMU_PERF_LANES];
};

struct npuemu_perf_worker {
	const struct npuemu_perf_opts *o;
	struct npuemu_perf_shared *sh;
	struct npuemu_perf_result *res;
	const struct npuemu_perf_result *other;	/* the initiator of this peer */
	uint32_t pair;
	int is_peer;
	int boss;			/* socket to the first process */
	int mate;			/* socket to the other one of the pair, or -1 */
	struct npuemu *ctx;
	struct npuemu_buf *near_buf;
	struct npuemu_buf *far_buf;
	struct npuemu_seg *near_seg;
	struct npuemu_seg *far_seg;	/* without a peer */
	struct npuemu_perf_card card;
	struct npuemu_perf_card mate_card;
	uint32_t dev_near;
	uint32_t dev_far;
	struct npuemu_perf_lane *lane;
};

/* Numbers of one size, from all processes: medians over the repeats. */
struct npuemu_perf_row {
	uint32_t size;
	uint64_t count;
	double seconds;
	double p50_ns, p99_ns, max_ns, min_ns, mean_ns;
	double rate, rate_min, rate_max;	/* messages a second */
};

/* options.c: -1 to go on, else the exit code */
int npuemu_perf_options(int argc, char **argv, struct npuemu_perf_opts *o);
const char *npuemu_perf_mode_name(enum npuemu_perf_mode mode);

/* run.c */
int npuemu_perf_run(const struct npuemu_perf_opts *o, double ns_per_tick);

/* worker.c: a forked process from here on; returns its exit code */
int npuemu_perf_work(struct npuemu_perf_worker *w);
int npuemu_perf_fail(struct npuemu_perf_lane *l, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Does the peer take part in this mode? */
static inline int npuemu_perf_active(const struct npuemu_perf_opts *o)
{
	return o->mode == NPUEMU_PERF_LATENCY ? o->test->peer_latency : o->test->peer_stream;
}

/* side.c: what a process needs on the board; 0 or an exit code with res->msg set */
int npuemu_perf_side_open(struct npuemu_perf_worker *w);
void npuemu_perf_side_close(struct npuemu_perf_worker *w);
void npuemu_perf_layout(const struct npuemu_perf_opts *o, uint32_t size,
			struct npuemu_perf_layout *lay);

/* Give the receive queue the buffer of its entry @index. */
int npuemu_perf_give(struct npuemu_perf_lane *l, uint32_t index);

/* report.c */
void npuemu_perf_report(const struct npuemu_perf_opts *o,
			const struct npuemu_perf_shared *sh,
			const struct npuemu_perf_row *row, int rows, double tick_cost_ns);

/* check.c: patterns, guards and finding what differs */
void npuemu_perf_fill(void *p, uint64_t bytes, uint64_t seed);
void npuemu_perf_guards(const struct npuemu_perf_region *r,
			const struct npuemu_perf_layout *lay);
int npuemu_perf_check_guards(struct npuemu_perf_lane *l,
			     const struct npuemu_perf_region *r, const char *where);
/* Compare with the pattern of @seed. */
int npuemu_perf_check(struct npuemu_perf_lane *l, const void *p, uint64_t bytes,
		      uint64_t seed, const char *where);
int npuemu_perf_check_word(struct npuemu_perf_lane *l, const void *p, uint64_t want,
			   uint32_t bytes, const char *where);
int npuemu_perf_check_bytes(struct npuemu_perf_lane *l, const void *p, const void *want,
			    uint64_t bytes, uint64_t offset, const char *where);
/* The destination before a message: none of its bytes is the pattern's. */
void npuemu_perf_fill_other(void *p, uint64_t bytes, uint64_t seed);

/* Arming and verifying for tests that move tx slots to rx slots. */
void npuemu_perf_arm_push(struct npuemu_perf_lane *l, uint64_t seed, uint32_t timed);
int npuemu_perf_verify_push(struct npuemu_perf_lane *l, uint64_t seed, uint64_t n,
			    uint32_t timed);

#endif
