/* SPDX-License-Identifier: MIT */
/*
 * What the tests of communicators share: one function run by all ranks of a job, as
 * threads of the test or as processes of their own; checks of HCCL calls; and a plain
 * reference for every collective, data type and reduction (hcclref.c).
 *
 * Ranks meet in a piece of memory that all of them see: it carries the root info, a
 * barrier, how far each has come, and whatever a test has to tell the parent.  A job in
 * which nobody gets on for SYS_PATIENCE_MS has failed.
 */
#ifndef TESTS_COMMON_HCCLTEST_H
#define TESTS_COMMON_HCCLTEST_H

#include <hccl/hccl.h>
#include <pthread.h>
#include "acltest.h"

#define HT_RANKS	8u		/* of a job, at most */
#define HT_ROOTS	8u
#define HT_SLOTS	64u
#define HT_TEXT		1024u

/* ---- Checks --------------------------------------------------------------- */

void ht_is(const char *file, int line, const char *what, HcclResult got, HcclResult want);
/* @word is in the thread's message, else @what has failed. */
void ht_said(const char *file, int line, const char *what, const char *word);

/* The call succeeds. */
#define ht_ok(expr) ht_is(__FILE__, __LINE__, #expr, (expr), HCCL_SUCCESS)

/* The call gives @want, and says @word. */
#define ht_says(expr, want, word)						\
	do {									\
		aclGetRecentErrMsg();						\
		ht_is(__FILE__, __LINE__, #expr, (expr), (want));		\
		ht_said(__FILE__, __LINE__, #expr, word);			\
	} while (0)

#define ht_fails(expr, want)	ht_says(expr, want, "EI")

/* ---- What all ranks see ------------------------------------------------------ */

struct ht_shared {
	uint64_t progress;		/* anybody who gets on adds to it */
	uint32_t come, round;		/* the barrier */
	HcclRootInfo root[HT_ROOTS];
	uint64_t word[HT_SLOTS];	/* what a test likes; atomic */
	char text[HT_RANKS][HT_TEXT];
};

extern struct ht_shared *ht_shared;

uint64_t ht_get(uint32_t slot);
void ht_set(uint32_t slot, uint64_t value);
uint64_t ht_add(uint32_t slot, uint64_t value);	/* the value before */
/* Until it is @value at least. */
void ht_await(uint32_t slot, uint64_t value);

/* ---- Jobs -------------------------------------------------------------------- */

struct ht_rank {
	uint32_t rank, ranks;
	bool process;			/* it is one */
	int32_t device;
	HcclComm comm;			/* unless the job is bare */
	aclrtStream stream;
	const void *arg;
};

typedef void (*ht_fn)(struct ht_rank *r);

struct ht_job {
	uint32_t ranks;
	bool processes;
	bool bare;			/* no communicator: the function makes what it wants */
	uint32_t stride;		/* rank i has device i * stride; 0: 1 */
	uint32_t split;			/* ranks of the first server, on machine 950-2x8; 0: all */
	ht_fn fn;
	const void *arg;		/* a copy of it */
	size_t bytes;
	struct sys_child child[HT_RANKS];
	/* threads */
	pthread_t thread[HT_RANKS];
	uint32_t over;			/* atomic */
};

/* First thing in main(), instead of sys_start(). */
void ht_start(void);
/* A test on a board of its own with 8 devices, or with two servers of 8. */
int ht_setup(void **state);
int ht_setup_servers(void **state);
#define ht_test(fn) cmocka_unit_test_setup_teardown(fn, ht_setup, sys_teardown)
#define ht_test_servers(fn) cmocka_unit_test_setup_teardown(fn, ht_setup_servers, sys_teardown)

/* Start it and wait for its end.  Without a rank that fails. */
void ht_run(struct ht_job *job);
/* As threads, then as processes. */
void ht_run_both(ht_fn fn, uint32_t ranks, bool bare);
/* The two halves of it; of processes the test may kill one in between. */
void ht_begin(struct ht_job *job);
void ht_end(struct ht_job *job);
void ht_kill(struct ht_job *job, uint32_t rank);

/* All ranks of the job have come here. */
void ht_barrier(struct ht_rank *r);
void ht_progress(void);
/* A communicator of all ranks; @config may be NULL. */
HcclComm ht_comm(struct ht_rank *r, const HcclCommConfig *config);
/* An AllReduce of everybody's rank + @more gives what it has to. */
void ht_proves(struct ht_rank *r, HcclComm comm, uint32_t more);
/* The stream is done, and well. */
void ht_sync(struct ht_rank *r);
/* The stream has failed: what it says, in text[rank] as well. */
const char *ht_sync_fails(struct ht_rank *r);
/* @text has all of the words, up to NULL. */
void ht_has(const char *file, int line, const char *text, ...) __attribute__((__sentinel__));
#define ht_words(text, ...) ht_has(__FILE__, __LINE__, text, __VA_ARGS__, NULL)

/* A variable for the jobs to come, as long as the test runs; NULL: not set. */
void ht_env(const char *name, const char *value);
void ht_env_restore(void);

/* Device memory with the bytes of @host, or zeros. */
void *ht_device(size_t bytes, const void *host);
/* @bytes at @device are @host. */
void ht_compare(const char *what, const void *device, const void *host, size_t bytes);

/* ---- The reference (hcclref.c) -------------------------------------------------- */

enum ht_coll {
	HT_ALLREDUCE, HT_REDUCE, HT_REDUCESCATTER, HT_REDUCESCATTERV, HT_ALLGATHER, HT_ALLGATHERV,
	HT_BROADCAST, HT_SCATTER, HT_ALLTOALL, HT_ALLTOALLV, HT_ALLTOALLVC, HT_COLLS,
};

#define HT_TYPES	17u		/* ht_type() numbers them from 0 */

struct ht_case {
	enum ht_coll coll;
	HcclDataType type;
	HcclReduceOp op;
	uint32_t ranks, root;
	uint64_t count;			/* elements; of a V form, of the largest part */
	bool in_place;			/* if the collective can be */
	bool exact;			/* floats whose results do not depend on the order */
	uint64_t seed;
	const char *note;		/* to be told when it goes wrong */
};

HcclDataType ht_type(uint32_t i);
const char *ht_type_name(HcclDataType type);
const char *ht_coll_name(enum ht_coll coll);
uint32_t ht_size(HcclDataType type);
bool ht_reduces(enum ht_coll coll);
bool ht_rooted(enum ht_coll coll);
bool ht_reducible(HcclDataType type);
bool ht_may_be_in_place(enum ht_coll coll);
void ht_case_text(const struct ht_case *k, char *buf, size_t size);

/* @n elements of what @rank has, from @first on. */
void ht_values(const struct ht_case *k, uint32_t rank, uint64_t first, uint64_t n, void *out);
/* acc = acc op in, rounded to the type, integers wrap */
void ht_reduce(HcclDataType type, HcclReduceOp op, void *acc, const void *in, uint64_t n);

/* Counts and displacements, in elements, of the V forms: [sender][receiver] for AlltoAll. */
struct ht_layout {
	uint64_t send[HT_RANKS], sdispl[HT_RANKS];
	uint64_t recv[HT_RANKS], rdispl[HT_RANKS];
	uint64_t matrix[HT_RANKS * HT_RANKS];
	uint64_t in, out;		/* elements of its buffers */
};

void ht_layout(const struct ht_case *k, uint32_t rank, struct ht_layout *l);
/*
 * What @rank has before in its output (or only) buffer, @l->out elements, and has to have
 * there afterwards: bytes that nobody receives stay as they were.
 */
void ht_expected(const struct ht_case *k, uint32_t rank, const struct ht_layout *l, void *out);

/* The call, and its check: buffers with guards, IN untouched. */
void ht_collective(struct ht_rank *r, const struct ht_case *k);

#endif
