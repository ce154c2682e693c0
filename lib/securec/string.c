// SPDX-License-Identifier: MIT
/*
 * String functions that know how large their destination is.
 */
#include <string.h>
#include "range.h"

static errno_t reset(char *dest, errno_t code)
{
	*dest = '\0';
	return code;
}

/* EOK: both are there, and the destination has a size. */
static errno_t check(char *dest, size_t dest_max, const char *src)
{
	if (securec_no_size(dest_max))
		return ERANGE;
	if (!dest)
		return EINVAL;
	return src ? EOK : reset(dest, EINVAL_AND_RESET);
}

/*
 * Put @n characters of @src and a byte that ends them at @dest[@at].  @read is how many
 * bytes of @src that looks at.
 */
static errno_t put(char *dest, size_t dest_max, size_t at, const char *src, size_t n, size_t read)
{
	if (n >= dest_max - at)
		return reset(dest, ERANGE_AND_RESET);
	if (securec_overlap(dest, at + n + 1, src, read))
		return reset(dest, EOVERLAP_AND_RESET);
	memcpy(dest + at, src, n);
	dest[at + n] = '\0';
	return EOK;
}

/* At most @count characters of @src: as many as there are, and as can matter. */
static errno_t append(char *dest, size_t dest_max, size_t at, const char *src, size_t count)
{
	size_t most = count < dest_max ? count : dest_max;
	size_t n = strnlen(src, most);

	return put(dest, dest_max, at, src, n, n < most ? n + 1 : n);
}

errno_t strcpy_s(char *strDest, size_t destMax, const char *strSrc)
{
	errno_t err = check(strDest, destMax, strSrc);

	if (err != EOK)
		return err;
	if (strDest == strSrc && strnlen(strSrc, destMax) < destMax)
		return EOK;
	return append(strDest, destMax, 0, strSrc, destMax);
}

errno_t strncpy_s(char *strDest, size_t destMax, const char *strSrc, size_t count)
{
	errno_t err = check(strDest, destMax, strSrc);

	if (err != EOK)
		return err;
	if (count > SECUREC_STRING_MAX_LEN)
		return reset(strDest, ERANGE_AND_RESET);
	return append(strDest, destMax, 0, strSrc, count);
}

static errno_t concatenate(char *dest, size_t dest_max, const char *src, size_t count)
{
	size_t at = strnlen(dest, dest_max);

	if (at == dest_max)
		return reset(dest, EINVAL_AND_RESET);
	return append(dest, dest_max, at, src, count);
}

errno_t strcat_s(char *strDest, size_t destMax, const char *strSrc)
{
	errno_t err = check(strDest, destMax, strSrc);

	return err == EOK ? concatenate(strDest, destMax, strSrc, destMax) : err;
}

errno_t strncat_s(char *strDest, size_t destMax, const char *strSrc, size_t count)
{
	errno_t err = check(strDest, destMax, strSrc);

	if (err != EOK)
		return err;
	if (count > SECUREC_STRING_MAX_LEN)
		return reset(strDest, ERANGE_AND_RESET);
	return concatenate(strDest, destMax, strSrc, count);
}

char *strtok_s(char *strToken, const char *strDelimit, char **context)
{
	if (!strDelimit || !context || (!strToken && !*context))
		return NULL;
	return strtok_r(strToken, strDelimit, context);
}
