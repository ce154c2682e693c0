/* SPDX-License-Identifier: MIT */
/* What is known of the machine and its devices; shared by what answers questions. */
#ifndef NPUACL_DEVINFO_H
#define NPUACL_DEVINFO_H

#include "npuacl.h"

/* The driver's numbering has a bit for Unified Bus; the public header does not name it. */
#define NPUACL_TOPOLOGY_UB	0x80ULL

/* The SIMT part of the API, and what else only the 950 has. */
#define NPUACL_GENERATION_SIMT	950u

/*
 * The machine's description, of an open board.  207000 if this process cannot
 * find it: the board was made by another one, from a file of its own.
 */
aclError npuacl_machine(const char *what, const struct npuemu_machine **m);
/* Between two devices: ACL_RT_DEVS_TOPOLOGY_*, or NPUACL_TOPOLOGY_UB. */
aclError npuacl_topology(const char *what, struct npuacl_device *a, struct npuacl_device *b,
			 u64 *bit);
/* Both can do loads and stores in the other's memory. */
bool npuacl_topology_is_memory(u64 bit);
/* Cores of a kind in one device, as the hardware has them. */
aclError npuacl_cores(const char *what, aclrtDevResLimitType type, u32 *n);
/* Also checked: has anybody set it? */
aclError npuacl_device_in_use(const char *what, s32 id, struct npuacl_device **out);

/* limits.c: the device is as it came */
void npuacl_limits_forget(struct npuacl_device *d);

/* The caller's pointer @arg of function @what is NULL. */
static inline aclError npuacl_null(const char *what, const char *arg)
{
	return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", what, arg);
}

#endif
