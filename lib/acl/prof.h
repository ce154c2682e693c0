/* SPDX-License-Identifier: MIT */
/* Between prof.c, which starts and stops, and stamp.c: what programs note themselves. */
#ifndef NPUACL_PROF_H
#define NPUACL_PROF_H

#include <acl/acl_prof.h>
#include "npuacl.h"

/* Not 0 between aclprofInit() and aclprofFinalize(), and another number each time. */
u32 npuacl_prof_turn(void);
/* An error with a message else. */
aclError npuacl_prof_on(const char *what);
void npuacl_stamps_fork(void);

/* By aclInit's file, for all devices and until aclFinalize: prof_file.c asks prof.c. */
aclError npuacl_prof_all(const char *dir, const char *limit, uint64_t types);

#endif
