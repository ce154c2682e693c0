/* SPDX-License-Identifier: MIT */
/*
 * securec.h - memory and string functions that know how large their destination is.
 *
 * The names, arguments and codes of the bounds-checking library that Ascend programs
 * use, for the narrow-character functions that write (see lib/securec).
 *
 * - @destMax is the size of the destination in bytes, with the byte that ends a string.
 *   Above 2^31 - 1, or 0, it is ERANGE, and nothing is touched.
 * - NULL is EINVAL.  Where the destination is good and something else is not, it is
 *   reset (memory: to zeros; a string: to an empty one) and the code says so.
 */
#ifndef SECUREC_H
#define SECUREC_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 or one of these, EINVAL, ERANGE. */
typedef int errno_t;

#ifndef EOK
#define EOK			0
#endif
#define EINVAL_AND_RESET	150
#define ERANGE_AND_RESET	162
#define EOVERLAP_AND_RESET	182	/* source and destination overlap */

#define SECUREC_MEM_MAX_LEN	(0x7fffffffUL)
#define SECUREC_STRING_MAX_LEN	(0x7fffffffUL)

#ifdef __GNUC__
#define SECUREC_PRINTF(f, a)	__attribute__((format(printf, f, a)))
#else
#define SECUREC_PRINTF(f, a)
#endif

#pragma GCC visibility push(default)

/* --- Memory -------------------------------------------------------------- */

/* @count bytes become @c.  More than @destMax: all of it, and ERANGE_AND_RESET. */
errno_t memset_s(void *dest, size_t destMax, int c, size_t count);

/* Copy @count bytes; ranges that overlap are an error here, and none for memmove_s(). */
errno_t memcpy_s(void *dest, size_t destMax, const void *src, size_t count);
errno_t memmove_s(void *dest, size_t destMax, const void *src, size_t count);

/* --- Strings ------------------------------------------------------------- */

errno_t strcpy_s(char *strDest, size_t destMax, const char *strSrc);

/* At most @count characters of it, and the byte that ends them. */
errno_t strncpy_s(char *strDest, size_t destMax, const char *strSrc, size_t count);

/* Append; what is there must end within @destMax bytes. */
errno_t strcat_s(char *strDest, size_t destMax, const char *strSrc);
errno_t strncat_s(char *strDest, size_t destMax, const char *strSrc, size_t count);

/* The next piece of a string, as strtok_r() gives it. */
char *strtok_s(char *strToken, const char *strDelimit, char **context);

/* --- Formats ------------------------------------------------------------- */

/*
 * The number of characters written.  -1 for arguments that are wrong, or where the
 * result does not fit, which leaves an empty string.
 */
int sprintf_s(char *strDest, size_t destMax, const char *format, ...) SECUREC_PRINTF(3, 4);
int vsprintf_s(char *strDest, size_t destMax, const char *format, va_list argList)
	SECUREC_PRINTF(3, 0);

/*
 * At most @count characters.  If there would be more: -1, with the first @count of them
 * written where @count is below @destMax, else an empty string.
 */
int snprintf_s(char *strDest, size_t destMax, size_t count, const char *format, ...)
	SECUREC_PRINTF(4, 5);
int vsnprintf_s(char *strDest, size_t destMax, size_t count, const char *format, va_list argList)
	SECUREC_PRINTF(4, 0);

/* As many as fit, without an error: then the result is @destMax - 1. */
int snprintf_truncated_s(char *strDest, size_t destMax, const char *format, ...)
	SECUREC_PRINTF(3, 4);
int vsnprintf_truncated_s(char *strDest, size_t destMax, const char *format, va_list argList)
	SECUREC_PRINTF(3, 0);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
