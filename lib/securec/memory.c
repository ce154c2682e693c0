// SPDX-License-Identifier: MIT
/*
 * Memory functions that know how large their destination is.
 */
#include <string.h>
#include "range.h"

errno_t memset_s(void *dest, size_t destMax, int c, size_t count)
{
	if (securec_no_size(destMax))
		return ERANGE;
	if (!dest)
		return EINVAL;
	if (count > destMax) {
		memset(dest, c, destMax);
		return ERANGE_AND_RESET;
	}
	memset(dest, c, count);
	return EOK;
}

static errno_t reset(void *dest, size_t destMax, errno_t code)
{
	memset(dest, 0, destMax);
	return code;
}

/* EOK: there is something to copy, and room for it. */
static errno_t check(void *dest, size_t destMax, const void *src, size_t count)
{
	if (securec_no_size(destMax))
		return ERANGE;
	if (!dest)
		return EINVAL;
	if (!src)
		return reset(dest, destMax, EINVAL_AND_RESET);
	if (count > destMax)
		return reset(dest, destMax, ERANGE_AND_RESET);
	return EOK;
}

errno_t memcpy_s(void *dest, size_t destMax, const void *src, size_t count)
{
	errno_t err = check(dest, destMax, src, count);

	if (err != EOK || dest == src || !count)
		return err;
	if (securec_overlap(dest, count, src, count))
		return reset(dest, destMax, EOVERLAP_AND_RESET);
	memcpy(dest, src, count);
	return EOK;
}

errno_t memmove_s(void *dest, size_t destMax, const void *src, size_t count)
{
	errno_t err = check(dest, destMax, src, count);

	if (err == EOK && dest != src)
		memmove(dest, src, count);
	return err;
}
