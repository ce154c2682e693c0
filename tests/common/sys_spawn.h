/* SPDX-License-Identifier: MIT */
/* The process that forks the children of a system test; only for sys.c. */
#ifndef TESTS_COMMON_SYS_SPAWN_H
#define TESTS_COMMON_SYS_SPAWN_H

#include <stdbool.h>

#define SYS_EXIT_FAILED	101	/* a check failed in a child or thread */

extern bool sys_in_child;

void sys_spawn_start(void);
void sys_spawn_kill_all(void);

#endif
