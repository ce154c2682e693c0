/* SPDX-License-Identifier: MIT */
/* What the parts of lib/securec ask of a destination. */
#ifndef SECUREC_RANGE_H
#define SECUREC_RANGE_H

#include <stdbool.h>
#include <stdint.h>
#include <securec.h>

/* A size that no destination has. */
static inline bool securec_no_size(size_t dest_max)
{
	return !dest_max || dest_max > SECUREC_MEM_MAX_LEN;
}

/* Do two ranges of these lengths have a byte in common? */
static inline bool securec_overlap(const void *a, size_t na, const void *b, size_t nb)
{
	uintptr_t pa = (uintptr_t)a, pb = (uintptr_t)b;

	return na && nb && (pa < pb ? pb - pa < na : pa - pb < nb);
}

#endif
