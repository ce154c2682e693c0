// SPDX-License-Identifier: MIT
/*
 * Formatted strings that know how large their destination is.
 */
#include <stdio.h>
#include "range.h"

/* An empty string, if there is a place for it; -1. */
static int fail(char *dest, size_t dest_max)
{
	if (dest && !securec_no_size(dest_max))
		*dest = '\0';
	return -1;
}

int vsnprintf_s(char *strDest, size_t destMax, size_t count, const char *format, va_list argList)
{
	size_t room = count < destMax ? count + 1 : destMax;
	int n;

	/* (size_t)-1: as many as there are */
	if (!strDest || !format || securec_no_size(destMax) ||
	    (count > SECUREC_STRING_MAX_LEN && count != (size_t)-1))
		return fail(strDest, destMax);
	n = vsnprintf(strDest, room, format, argList);
	if (n >= 0 && (size_t)n < room)
		return n;
	return n >= 0 && count < destMax ? -1 : fail(strDest, destMax);
}

int snprintf_s(char *strDest, size_t destMax, size_t count, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf_s(strDest, destMax, count, format, ap);
	va_end(ap);
	return n;
}

int vsprintf_s(char *strDest, size_t destMax, const char *format, va_list argList)
{
	return vsnprintf_s(strDest, destMax, (size_t)-1, format, argList);
}

int sprintf_s(char *strDest, size_t destMax, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsprintf_s(strDest, destMax, format, ap);
	va_end(ap);
	return n;
}

int vsnprintf_truncated_s(char *strDest, size_t destMax, const char *format, va_list argList)
{
	int n;

	if (!strDest || !format || securec_no_size(destMax))
		return fail(strDest, destMax);
	n = vsnprintf(strDest, destMax, format, argList);
	if (n < 0)
		return fail(strDest, destMax);
	return (size_t)n < destMax ? n : (int)destMax - 1;
}

int snprintf_truncated_s(char *strDest, size_t destMax, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf_truncated_s(strDest, destMax, format, ap);
	va_end(ap);
	return n;
}
