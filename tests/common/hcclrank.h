/* SPDX-License-Identifier: MIT */
/*
 * Ranks of a job for tests of what they have beside collectives: one function, run by
 * all of them, as threads of the test or as processes.  What they tell each other goes
 * through memory that all see; processes are forked before they know of any device.
 */
#ifndef TESTS_COMMON_HCCLRANK_H
#define TESTS_COMMON_HCCLRANK_H

#include <hccl/hccl.h>
#include "acltest.h"

#define HR_RANKS	8u

struct hr_rank {
	uint32_t rank, ranks;
	bool process;
	HcclComm comm;
	aclrtStream stream;
};

typedef void (*hr_fn)(struct hr_rank *r);

struct hr_shared {
	HcclRootInfo root;
	uint32_t come, round;		/* a barrier */
	uint64_t word[HR_RANKS];
	char bytes[HR_RANKS][4096];
};

extern struct hr_shared *hr_shared;

void hr_is(const char *file, int line, const char *what, HcclResult got, HcclResult want, const char *word);
#define hr_ok(expr) hr_is(__FILE__, __LINE__, #expr, (expr), HCCL_SUCCESS, NULL)
/* The call gives @want, and says @word. */
#define hr_says(expr, want, word)						\
	do {									\
		aclGetRecentErrMsg();						\
		hr_is(__FILE__, __LINE__, #expr, (expr), (want), (word));	\
	} while (0)

/* First thing in main(), instead of sys_start(). */
void hr_start(void);
/* On a board with 8 devices, or with two servers of 8. */
int hr_setup(void **state);
int hr_setup_servers(void **state);
#define hr_test(fn) cmocka_unit_test_setup_teardown(fn, hr_setup, sys_teardown)
#define hr_test_servers(fn) cmocka_unit_test_setup_teardown(fn, hr_setup_servers, sys_teardown)

/* With a communicator of all ranks, buffers of 1 MB; rank i has device i * @stride. */
void hr_run(uint32_t ranks, bool processes, uint32_t stride, hr_fn fn);
/* Without one. */
void hr_run_bare(uint32_t ranks, bool processes, hr_fn fn);
void hr_barrier(const struct hr_rank *r);
HcclComm hr_comm(struct hr_rank *r);	/* one more; all ranks call */
void hr_sync(struct hr_rank *r);

#define HR_PAGES	(2ul << 20)
#define HR_PARTS	3u

/* Memory that is mapped side by side into reserved addresses. */
struct hr_mapped {
	uint8_t *va;
	size_t bytes;
	uint32_t n;
	aclrtDrvMemHandle handle[HR_PARTS];
};

aclrtDrvMemHandle hr_physical(int32_t device);	/* HR_PAGES of it */
struct hr_mapped hr_map(uint32_t n);		/* on the thread's device */
void hr_unmap(struct hr_mapped *m);

/* What @rank has at place @i of its buffer. */
static inline float hr_value(uint32_t rank, uint64_t i)
{
	return (float)(rank * 1000 + i % 997);
}

#endif
