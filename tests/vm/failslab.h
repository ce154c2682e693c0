/* SPDX-License-Identifier: MIT */
/*
 * What the two files of failslab share: the calls that are made to fail, and what
 * they find set up.
 */
#ifndef NPUEMU_TESTS_VM_FAILSLAB_H
#define NPUEMU_TESTS_VM_FAILSLAB_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;

#define LEAKS	"/sys/kernel/debug/npuemu/leaks"

struct step {
	const char *name;
	int (*fn)(void);	/* 0 or -errno */
	int ok;			/* what it says when nothing fails: 0 or this */
	int also;		/* a failure it may have beside ENOMEM and EFAULT */
	bool once;		/* it cannot be repeated after it failed half */
};

extern const struct step steps[];	/* ends with one without name */
extern sigjmp_buf escape;		/* where a step wants to be after SIGBUS */

void set_up(void);
void take_down(void);

#endif
