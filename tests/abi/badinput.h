/* SPDX-License-Identifier: MIT */
/*
 * What badinput.c, badrules.c, badworld.c and the table that gen-badinput makes share.
 */
#ifndef TESTS_ABI_BADINPUT_H
#define TESTS_ABI_BADINPUT_H

#include <acl/acl.h>
#include <acl/acl_prof.h>
#include <acl/acl_rt_allocator.h>
#include <acl/acl_rt_memory_soma.h>
#include <hccl/hccl.h>
#include <stdbool.h>
#include <stdint.h>

#define BAD_ARGS	12
#define BAD_PAGE	65536u		/* bytes of a scratch page */

union bad_arg {
	void *p;
	uint64_t u;
	void (*f)(void);
};

enum bad_kind {
	BAD_NUMBER,
	BAD_SIZE,	/* a size_t: one that is too large has to be refused */
	BAD_FLOAT,
	BAD_STRUCT,	/* passed by value; the argument points to it */
	BAD_ANY,	/* whatever the program likes */
	BAD_DATA,	/* a pointer to something with a type */
	BAD_TEXT,
	BAD_MEMORY,	/* void * */
	BAD_FUNCTION,
	/* handles from here on */
	BAD_STREAM,
	BAD_HANDLES = BAD_STREAM,
	BAD_EVENT,
	BAD_CONTEXT,
	BAD_NOTIFY,
	BAD_CNT_NOTIFY,
	BAD_LABEL,
	BAD_LABEL_LIST,
	BAD_MODEL,
	BAD_TASK,
	BAD_GROUP,
	BAD_COND,
	BAD_PHYSICAL,
	BAD_POOL,
	BAD_DESC,
	BAD_BUFFER,
	BAD_STREAM_CONFIG,
	BAD_PROF_CONFIG,
	BAD_STEP,
	BAD_STAMP,
	BAD_EXCEPTION,	/* only callbacks get one */
	BAD_COMM,
	BAD_KINDS,
};

enum bad_result {
	BAD_ACL,
	BAD_HCCL,
	BAD_VOID,
	BAD_POINTER,
	BAD_VALUE,
};

struct bad_function {
	const char *name;
	enum bad_result result;
	unsigned int args;
	enum bad_kind kind[BAD_ARGS];
	unsigned int bits[BAD_ARGS];	/* of a number */
	long (*call)(const union bad_arg *a);
	void (*right)(union bad_arg *a);	/* what defaults are not right for */
};

/* A row of badinput.tsv. */
struct bad_excuse {
	const char *name;
	unsigned int arg;
	const char *pattern;
	const char *why;
};

extern const struct bad_function bad_functions[];
extern const unsigned int bad_functions_n;
extern const struct bad_excuse bad_excuses[];
extern const unsigned int bad_excuses_n;

/* ---- badworld.c: arguments ------------------------------------------------------------ */

/* What right arguments are made of: rows of badinput.tsv name these. */
struct bad_world {
	bool made;
	char *page[BAD_ARGS];		/* host memory, zeroed */
	char *device, *device2;		/* of device 0 */
	char *pinned;
	char *reserved;			/* an address range of aclrtReserveMemAddress() */
	char *gone;			/* device memory that was freed */
	char *pooled;			/* of aclrtMemPoolMallocAsync(); for who takes a pool */
	char *mapped;			/* of aclrtMapMem() */
	void *list[2][2];		/* arrays of buffers to copy between */
	size_t sizes[1];
	uint64_t counts[1];
	const char *package, *soc, *bus;
	aclrtPhysicalMemProp prop;
	aclrtMemPoolProps pool_props;
	aclrtMemAccessDesc access;
	aclrtMemcpyBatchAttr batch;
	char key[128];			/* of device memory */
	uint64_t shareable;
	HcclRootInfo root;
	char comm_name[128];
	aclrtEvent ipc_event;
	aclrtContext ctx;
	aclrtContext other_ctx;		/* of another device, if there is one */
	void *live[BAD_KINDS], *freed[BAD_KINDS];
};

extern struct bad_world bad_world;

/* Pages alone, zeroed once more. */
void bad_pages(void);
/* aclInit, a device, and a handle of each kind that @f takes: one alive, one freed. */
void bad_world_make(const struct bad_function *f);
/* The right argument; in a world that was not made, a page for all pointers. */
union bad_arg bad_right(const struct bad_function *f, unsigned int i);
/* A handle that is alive, but of another kind. */
void *bad_other(enum bad_kind kind);

/* ---- badrules.c: which calls are made, and what may come of them -------------------------- */

#define ALL		BAD_ARGS	/* instead of an argument */
#define CASES		512

enum phase {
	BEFORE,		/* aclInit */
	NO_DEVICE,	/* in a thread that has none */
	LIVE,
	OTHER_CONTEXT,
	AFTER,		/* aclFinalize */
	PHASES,
};

enum pattern {
	RIGHT,
	ZERO,
	PAGE,		/* zeroed host memory; as a handle, what is none */
	WILD,		/* an address where nothing is */
	FREED,
	OTHER,		/* a handle of another kind */
	ODD,		/* misaligned */
	HUGE_NUMBER,	/* all ones */
	TOP,		/* the highest bit: the smallest of signed numbers */
	EMPTY,		/* text */
	LONG_TEXT,
	PATTERNS,
};

struct bad_case {
	enum phase phase;
	enum pattern pattern;
	unsigned int arg;
};

extern const char *const bad_phases[], *const bad_patterns[];

/* All calls of a function, CASES at most. */
unsigned int bad_cases(const struct bad_function *f, struct bad_case *c);
void bad_arguments(const struct bad_function *f, const struct bad_case *c, union bad_arg *a);
bool bad_must_fail(const struct bad_function *f, const struct bad_case *c);
bool bad_tells(const char *msg, const struct bad_function *f, const struct bad_case *c,
	       const union bad_arg *a);
/* @right_code: what it gives when all is right. */
bool bad_code_fits(const struct bad_function *f, const struct bad_case *c, long code,
		   long right_code);

#endif
