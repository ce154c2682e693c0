/* SPDX-License-Identifier: MIT */
/*
 * npuemu-perf collectives: what its files share.
 *
 * A row is one collective with one size, type, reduction and root.  The list of rows
 * is made before the ranks are (coll_options.c), so all ranks have the same one and go
 * through it in step: fill the buffers, one collective, look at every byte on every
 * rank, warm up, the timed repeats, look again.  What they tell each other beside HCCL
 * is in memory that is shared from before the first fork (struct npuemu_coll_shared).
 */
#ifndef NPUEMU_TOOLS_COLL_H
#define NPUEMU_TOOLS_COLL_H

#include <stdint.h>
#include <acl/acl.h>
#include <hccl/hccl.h>

#include "../common/hist.h"

#define NPUEMU_COLL_RANKS	128u
#define NPUEMU_COLL_SIZES	64
#define NPUEMU_COLL_REPEATS	101
#define NPUEMU_COLL_MSG		400
#define NPUEMU_COLL_GUARD	512u	/* bytes before and after each buffer */
#define NPUEMU_COLL_GAP		3u	/* elements between the parts of V forms */
#define NPUEMU_COLL_ALL		NPUEMU_COLL_RANKS	/* reduced over all ranks */
#define NPUEMU_COLL_TYPES	18u	/* HcclDataType, from 0 */
#define NPUEMU_COLL_OPS		4u	/* HcclReduceOp, from 0 */

struct npuemu_coll_rank;
struct npuemu_coll_row;

/* So many elements of a rank's output come from there. */
struct npuemu_coll_part {
	uint64_t out;		/* elements */
	uint64_t in;
	uint64_t n;
	uint32_t from;		/* the rank whose input it is, or NPUEMU_COLL_ALL */
};

struct npuemu_coll {
	const char *name;
	const char *what;	/* a line for --help */
	int reduces;
	int rooted;
	int shared_out;		/* its size is that of all ranks' parts together */
	int uneven;		/* parts differ in length */
	int empty;		/* moves nothing: one row, whatever the sizes */
	int in_place;		/* the root's output is its input */
	uint32_t min_ranks;
	/* the share of the links that a byte of its size uses, for n ranks */
	double (*bus)(uint32_t ranks);
	/* a HcclResult */
	int (*call)(struct npuemu_coll_rank *r);
	/* what arrives at a rank: how many parts, at most as many as there are ranks */
	uint32_t (*parts)(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
			  struct npuemu_coll_part *p);
	/* elements of a rank's buffers, parts and gaps */
	uint64_t (*in)(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank);
	uint64_t (*out)(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank);
};

extern const struct npuemu_coll npuemu_colls[];
extern const uint32_t npuemu_coll_count;

struct npuemu_coll_row {
	const struct npuemu_coll *coll;
	uint32_t index;
	uint32_t type;		/* HcclDataType */
	uint32_t op;		/* HcclReduceOp */
	uint32_t root;
	uint32_t elem;		/* bytes of one */
	uint64_t count;		/* elements, as the call has it; V forms: of a part, about */
	uint64_t size;		/* bytes, as in the table */
};

struct npuemu_coll_opts {
	uint32_t ranks;
	int threads;		/* of one process, not processes */
	int deep;
	int check;
	int json;
	int flip;
	uint64_t flip_at;
	uint32_t flip_rank;
	uint32_t iterations;
	uint32_t warmup;
	uint32_t repeats;
	uint32_t timeout_s;
	const char *algo;	/* as the user has it; NULL: not given */
	const char *board;
	struct npuemu_coll_row *row;
	uint32_t rows;
};

/* What a row came to.  Rank 0 writes it, but for @wrong. */
struct npuemu_coll_result {
	double ns[NPUEMU_COLL_REPEATS];		/* an operation: call and sync */
	double deep_ns[NPUEMU_COLL_REPEATS];	/* many calls, one sync */
	uint32_t wrong;				/* ranks whose data were */
	uint32_t done;
};

/* One rank's part of the shared memory; only it writes there. */
struct npuemu_coll_said {
	int rc;					/* an exit code */
	int pid;
	int64_t ns;				/* of the latest timed run */
	char msg[NPUEMU_COLL_MSG];		/* what failed */
	char wrong[NPUEMU_COLL_MSG];		/* the first wrong byte */
};

struct npuemu_coll_shared {
	uint32_t arrived;			/* at the barrier */
	uint32_t turn;
	uint32_t failed;			/* somebody gave up */
	HcclRootInfo root;
	char soc[64];
	uint32_t devices;
	struct npuemu_coll_said said[NPUEMU_COLL_RANKS];
	struct npuemu_coll_result result[];
};

struct npuemu_coll_rank {
	const struct npuemu_coll_opts *o;
	struct npuemu_coll_shared *sh;
	struct npuemu_coll_said *said;
	const struct npuemu_coll_row *k;
	uint32_t rank;
	uint32_t device;
	HcclComm comm;
	aclrtStream stream;
	char *in;				/* on the device, between guards */
	char *out;
	uint64_t in_bytes;			/* of this row */
	uint64_t out_bytes;
	unsigned char *want;			/* the output as it has to be, with its guards */
	unsigned char *have;
	int wrong;				/* noted for this row already */
	uint64_t *matrix;			/* of AlltoAllVC */
	uint64_t send_counts[NPUEMU_COLL_RANKS];
	uint64_t send_displs[NPUEMU_COLL_RANKS];
	uint64_t recv_counts[NPUEMU_COLL_RANKS];
	uint64_t recv_displs[NPUEMU_COLL_RANKS];
};

/* coll_options.c: -1 to go on, else the exit code */
int npuemu_coll_options(int argc, char **argv, struct npuemu_coll_opts *o);

/* What the command line asks for; each is a set of bits. */
struct npuemu_coll_asked {
	uint32_t colls;
	uint32_t types;
	uint32_t ops;
	int all_colls;				/* "all": leave out what cannot be */
	int all_types;
	int all_ops;
	int ops_given;
	int roots_given;
	uint64_t size[NPUEMU_COLL_SIZES];
	int sizes;
	uint32_t first_root;
	uint32_t last_root;
};

/* coll_rows.c: all of it times each other; 0 or an exit code with the message out */
int npuemu_coll_rows(struct npuemu_coll_opts *o, const struct npuemu_coll_asked *a);

/* coll_ref.c: types, data, and what a reduction of them comes to, done plainly */
extern const char *const npuemu_coll_type_names[];
extern const char *const npuemu_coll_op_names[];
uint32_t npuemu_coll_type_bytes(uint32_t type);	/* 0: there is none of that number */
int npuemu_coll_type_reduces(uint32_t type);
/* Elements @first.. of the input of @rank. */
void npuemu_coll_fill(const struct npuemu_coll_row *k, uint32_t ranks, uint32_t rank,
		      uint64_t first, uint64_t n, void *to);
/* The same, reduced over all ranks. */
void npuemu_coll_reduced(const struct npuemu_coll_row *k, uint32_t ranks, uint64_t first,
			 uint64_t n, void *to);

/* coll_ops.c */
uint64_t npuemu_coll_size(const struct npuemu_coll_row *k, uint32_t ranks);
void npuemu_coll_prepare(struct npuemu_coll_rank *r);

/*
 * coll_check.c: 0, or an exit code with said->msg; wrong data are noted, and are no failure.
 * Of a row: begin, then as often as wanted arm, collectives, verify.
 */
int npuemu_coll_check_setup(struct npuemu_coll_rank *r);
void npuemu_coll_check_free(struct npuemu_coll_rank *r);
int npuemu_coll_begin(struct npuemu_coll_rank *r);
int npuemu_coll_arm(struct npuemu_coll_rank *r);
int npuemu_coll_verify(struct npuemu_coll_rank *r);

/* coll_rank.c: a rank from its beginning to its end */
int npuemu_coll_work(struct npuemu_coll_rank *r);
int npuemu_coll_fail(struct npuemu_coll_rank *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int npuemu_coll_fail_acl(struct npuemu_coll_rank *r, const char *what, int code);

/* coll_run.c */
int npuemu_coll_main(int argc, char **argv);

/* coll_report.c */
void npuemu_coll_report(const struct npuemu_coll_opts *o, struct npuemu_coll_shared *sh);

#endif
