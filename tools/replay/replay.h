/* SPDX-License-Identifier: MIT */
/*
 * npuemu-replay: what its parts share.
 *
 * Two processes, forked before either opens the board:
 *
 *   decode (parent)                         prefill (child)
 *   owns the pool and the block table       owns the staging buffers
 *   places the blocks of request k   -----> fills staging with their contents,
 *     (WRITE_NOTIFY into prefill's HBM)     layer by layer
 *   waits for the notify of k       <-----  WRITEs them into the pool, the last
 *   verifies every block of k               one a WRITE_NOTIFY carrying k
 *
 * The decode side owns the table because only it knows when a slot is free
 * again: it places request k when no unfinished request needs a slot that k
 * evicts.  A placement is thus also the permission to write, nothing needs
 * acknowledging apart from it, and prefill needs neither trace nor table.
 * Staging is reused when the completion of its WRITE is in.
 *
 * Bytes of blocks and placements go through UDMA; the socket between the two
 * carries segment infos at the start, counters at the end, and its end of file
 * tells that the other process has died.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <npuemu/npuemu.h>

#include "blocktable.h"
#include "trace.h"

/* Exit codes. */
#define REPLAY_OK	0
#define REPLAY_VERIFY	1	/* a block arrived with wrong bytes */
#define REPLAY_USAGE	2	/* bad options or a bad trace */
#define REPLAY_FAILED	3	/* anything that went wrong while running */

#define REPLAY_MAX_DEPTH	64

/* ---- model.c: how large a block is -------------------------------------- */

struct replay_model {
	const char *name;
	uint32_t layers;
	uint32_t layer_bytes;	/* of one block: REPLAY_BLOCK_TOKENS tokens */
	const char *what;
};

/* Ends with a NULL name. */
extern const struct replay_model replay_models[];
const struct replay_model *replay_model_find(const char *name);

static inline uint64_t replay_block_bytes(const struct replay_model *m)
{
	return (uint64_t)m->layers * m->layer_bytes;
}

/* ---- options.c ------------------------------------------------------------ */

#define REPLAY_POOL_DEFAULT	UINT64_MAX	/* --pool-blocks not given */

struct replay_options {
	const char *trace;	/* NULL: the shipped one */
	uint32_t requests;	/* 0: all */
	uint64_t pool_blocks;	/* 0: unbounded */
	uint32_t prefill_dev;
	uint32_t decode_dev;
	const struct replay_model *model;
	const char *chaos;
	uint32_t depth;		/* requests in flight */
	uint64_t seed;
	uint32_t sabotage;	/* request to spoil, from 1; 0: none */
	uint32_t timeout_s;
	bool json;
};

/* 0: go on; else -1, and the process ends with @code. */
int replay_options_parse(struct replay_options *o, int argc, char **argv, int *code);

/* ---- The job, as both sides know it from before the fork ------------------ */

struct replay_job {
	struct replay_options opt;
	struct replay_trace trace;
	const char *trace_path;
	uint32_t slots;		/* of the pool */
};

/* Where layer @layer of the block in @slot lies in the pool: paged, by layer. */
static inline uint64_t replay_pool_offset(const struct replay_job *job, uint32_t layer,
					  uint32_t slot)
{
	return ((uint64_t)layer * job->slots + slot) * job->opt.model->layer_bytes;
}

/* A placement, as decode writes it into prefill's HBM. */
struct replay_place {
	uint64_t id;
	uint64_t slot;
};

struct replay_placement {
	uint64_t request;
	uint64_t n;		/* blocks to produce: those that missed */
	struct replay_place block[];
};

static inline uint64_t replay_placement_bytes(const struct replay_job *job)
{
	return sizeof(struct replay_placement) +
	       (uint64_t)job->trace.longest * sizeof(struct replay_place);
}

/* ---- link.c: the other process --------------------------------------------- */

struct replay_link {
	int fd;
	pid_t pid;
	bool parent;		/* the other side is our child */
	bool gone;		/* it ended, and that has been said */
	const char *me;		/* "decode" */
	const char *other;
	uint32_t timeout_s;
	uint64_t work;		/* bytes since the last look */
};

enum replay_msg_type {
	REPLAY_MSG_SETUP = 1,	/* decode: go ahead; its segments */
	REPLAY_MSG_HELLO,	/* prefill: ready; its segments */
	REPLAY_MSG_DONE,	/* prefill: all moved; its counters */
	REPLAY_MSG_STOP,	/* decode: end now */
};

struct replay_msg {
	uint32_t type;
	uint32_t reserved;
	union {
		struct {
			struct npuemu_seg_info pool;
			struct npuemu_seg_info ctrl;
		} setup;
		struct {
			struct npuemu_seg_info ctrl;
		} hello;
		struct {
			uint64_t blocks;
			uint64_t bytes;
			uint64_t wqes;
			uint64_t doorbells;
			uint64_t cqes;
		} done;
	};
};

/* "npuemu-replay: decode: ..." on stderr. */
void replay_say(const struct replay_link *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same for a failed npuemu call; names the peer instead if that has died. */
int replay_fail(struct replay_link *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

void replay_catch_signals(void);
int replay_send(struct replay_link *l, const struct replay_msg *m);
/* Waits for a message of this type; -1, reported, if there will be none. */
int replay_recv(struct replay_link *l, uint32_t type, struct replay_msg *m);
/* Is the other side alive, and are we to go on?  -1, reported, if not. */
int replay_check(struct replay_link *l);
/* To be called after work on @bytes: looks at the other side now and then. */
int replay_tick(struct replay_link *l, uint64_t bytes);
/* Wait for word >= value; reports who waits for what when it takes too long. */
int replay_wait_word(struct replay_link *l, struct npuemu *ctx,
		     const volatile uint64_t *word, uint64_t value, const char *what);
/* Wait for completions; 0, or -1, reported. */
int replay_wait_cq(struct replay_link *l, struct npuemu_cq *cq, const char *what);
/* Parent: end the child if it has not ended, and reap it.  Its exit code or -1. */
int replay_end_child(struct replay_link *l);

/* ---- The two sides ---------------------------------------------------------- */

struct replay_result {
	uint32_t requests;
	uint64_t refs;
	uint64_t hits;
	uint64_t token_refs;
	uint64_t token_hits;
	uint64_t blocks_moved;
	uint64_t bytes_moved;
	uint64_t bytes_verified;
	uint64_t wqes;
	uint64_t doorbells;
	uint64_t cqes;
	uint64_t verify_errors;	/* blocks */
	double seconds;
};

/* Both return an exit code. */
int replay_prefill(const struct replay_job *job, struct replay_link *l);
int replay_decode(const struct replay_job *job, struct replay_link *l,
		  struct replay_result *res);

/* ---- report.c ----------------------------------------------------------------- */

/* "1.50 GiB" */
const char *replay_size(uint64_t bytes, char buf[32]);
void replay_progress(const struct replay_job *job, const struct replay_result *res);
void replay_report(const struct replay_job *job, const struct replay_result *res);

#endif
