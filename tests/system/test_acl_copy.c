// SPDX-License-Identifier: MIT
/*
 * Copies, fills and reductions of the ACL runtime against plain loops: every
 * direction, with sizes and alignments at which something changes; rows, batches,
 * addresses in device memory; and everything that has to be refused.
 */
#include <acl/acl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "acltest.h"
#include "sys.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- Places ------------------------------------------------------------------------------- */

enum where { DEVICE, PEER, PINNED, REGISTERED, PAGEABLE, PLACES };

static const char *const where_text[PLACES] = { "device", "peer", "pinned", "registered", "pageable" };

static unsigned char *place_get(enum where w, size_t n)
{
	void *p = NULL, *dev;

	switch (w) {
	case PEER:
		acl_ok(aclrtSetDevice(1));
		acl_ok(aclrtMalloc(&p, n, ACL_MEM_MALLOC_HUGE_FIRST));
		acl_ok(aclrtSetDevice(0));
		break;
	case DEVICE:
		acl_ok(aclrtMalloc(&p, n, ACL_MEM_MALLOC_HUGE_FIRST));
		break;
	case PINNED:
		acl_ok(aclrtMallocHost(&p, n));
		break;
	default:
		p = aligned_alloc(4096, (n + 4095) & ~(size_t)4095);
		sys_true(p, "out of memory");
		if (w == REGISTERED)
			acl_ok(aclrtHostRegister(p, n, ACL_HOST_REGISTER_MAPPED, &dev));
		break;
	}
	return p;
}

static void place_put(enum where w, unsigned char *p)
{
	switch (w) {
	case DEVICE:
	case PEER:
		acl_ok(aclrtFree(p));
		break;
	case PINNED:
		acl_ok(aclrtFreeHost(p));
		break;
	case REGISTERED:
		acl_ok(aclrtHostUnregister(p));
		free(p);
		break;
	default:
		free(p);
		break;
	}
}

static bool on_device(enum where w)
{
	return w == DEVICE || w == PEER;
}

static void put(void *to, const void *from, size_t n)
{
	acl_ok(aclrtMemcpy(to, n, from, n, ACL_MEMCPY_DEFAULT));
}

/* ---- Bytes ---------------------------------------------------------------------------------- */

static const size_t sizes[] = { 1, 31, 32, 4095, 4096, 65536, (1 << 20) + 3 };
static const size_t offsets[] = { 0, 1, 63 };

#define GUARD	64u

struct copy {
	enum where to, from;
	unsigned char *dst, *src;	/* room for the largest, offsets and guards */
	unsigned char *want, *got;
};

/* What is around the target stays as it was. */
static void one_copy(struct copy *c, size_t n, size_t to, size_t from, aclrtStream stream)
{
	size_t all = to + n + 2 * GUARD;
	char what[100];

	sys_fill(c->want, from + n, n + from + 1);
	put(c->src, c->want, from + n);
	memmove(c->got, c->want + from, n);
	memset(c->want, 0xa5, all);
	put(c->dst, c->want, all);
	memcpy(c->want + GUARD + to, c->got, n);
	if (stream) {
		acl_ok(aclrtMemcpyAsync(c->dst + GUARD + to, n, c->src + from, n, ACL_MEMCPY_DEFAULT, stream));
		/* pageable memory is the caller's again */
		if (c->from == PAGEABLE)
			memset(c->src + from, 0, n);
		if (c->to != PAGEABLE)
			acl_ok(aclrtSynchronizeStream(stream));
	} else {
		acl_ok(aclrtMemcpy(c->dst + GUARD + to, n, c->src + from, n, ACL_MEMCPY_DEFAULT));
	}
	memset(c->got, 0, all);
	put(c->got, c->dst, all);
	snprintf(what, sizeof(what), "%s to %s, %zu bytes, at %zu from %zu%s", where_text[c->from], where_text[c->to],
		 n, to, from, stream ? ", in a stream" : "");
	sys_same(what, c->got, c->want, all);
}

static void directions(bool async)
{
	const size_t room = sizes[COUNT(sizes) - 1] + 4 * GUARD;
	unsigned char *dst[PLACES], *src[PLACES];
	aclrtStream stream = NULL;
	struct copy c;
	unsigned int t, f, i, k;

	if (async)
		acl_ok(aclrtCreateStream(&stream));
	acl_ok(aclrtDeviceEnablePeerAccess(1, 0));
	c.want = malloc(room);
	c.got = malloc(room);
	for (t = 0; t < PLACES; t++) {
		dst[t] = place_get((enum where)t, room);
		src[t] = place_get((enum where)t, room);
	}
	for (t = 0; t < PLACES; t++)
		for (f = 0; f < PLACES; f++) {
			c.to = (enum where)t;
			c.from = (enum where)f;
			c.dst = dst[t];
			c.src = src[f];
			if (async && !on_device(c.to) && !on_device(c.from)) {
				acl_fails(aclrtMemcpyAsync(c.dst, 16, c.src, 16, ACL_MEMCPY_DEFAULT, stream),
				      ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
				continue;
			}
			for (i = 0; i < COUNT(sizes); i++)
				for (k = 0; k < (sys_slow() ? 2 : 9); k++)
					one_copy(&c, sizes[i], offsets[(k + i) % 3], offsets[k / 3], stream);
		}
	for (t = 0; t < PLACES; t++) {
		place_put((enum where)t, dst[t]);
		place_put((enum where)t, src[t]);
	}
	free(c.want);
	free(c.got);
	if (async)
		acl_ok(aclrtDestroyStream(stream));
	acl_ok(aclrtResetDevice(1));
}

static void at_once(void **state)
{
	(void)state;
	directions(false);
}

static void in_a_stream(void **state)
{
	(void)state;
	directions(true);
}

/* Unregistered, registered, unregistered: one array, and one copy. */
static void across_ranges(void **state)
{
	enum { N = 5 * 4096 };
	unsigned char *h = place_get(PAGEABLE, N), *d = place_get(DEVICE, N), *got = malloc(N);
	aclrtStream s;
	void *dev;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtHostRegister(h + 4096, 4096, ACL_HOST_REGISTER_MAPPED, &dev));
	acl_ok(aclrtHostRegister(h + 3 * 4096, 4096, ACL_HOST_REGISTER_MAPPED, &dev));
	sys_fill(h, N, 1);
	acl_ok(aclrtMemcpy(d, N, h, N, ACL_MEMCPY_HOST_TO_DEVICE));
	acl_ok(aclrtMemcpy(got, N, d, N, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_same("an array registered in parts", got, h, N);
	sys_fill(h, N, 2);
	memcpy(got, h, N);
	acl_ok(aclrtMemcpyAsync(d + 1, N - 1, h + 5, N - 5, ACL_MEMCPY_HOST_TO_DEVICE, s));
	memset(h, 0, N);
	acl_ok(aclrtMemcpyAsync(h, N, d + 1, N - 5, ACL_MEMCPY_DEVICE_TO_HOST, s));
	sys_same("there and back", h, got + 5, N - 5);
	acl_ok(aclrtMemsetD32(h + 2, N - 2, 0x01020304, (N - 2) / 4));
	sys_true(h[2] == 4 && h[3] == 3 && !memcmp(h + 2, h + 6, N - 8), "words across ranges");
	acl_ok(aclrtMemcpy2d(d, 100, h + 2, 101, 99, 150, ACL_MEMCPY_HOST_TO_DEVICE));
	acl_ok(aclrtMemcpy2dAsync(d, 100, h + 2, 101, 99, 150, ACL_MEMCPY_HOST_TO_DEVICE, s));
	acl_ok(aclrtMemcpy(got, N, d, 150 * 100, ACL_MEMCPY_DEFAULT));
	sys_same("the last row", got + 149 * 100, h + 2 + 149 * 101, 99);
	acl_ok(aclrtHostUnregister(h + 4096));
	acl_ok(aclrtHostUnregister(h + 3 * 4096));
	acl_ok(aclrtDestroyStream(s));
	place_put(DEVICE, d);
	free(h);
	free(got);
}

/* The source may change at once, and the copy waits for its turn. */
static void through_a_buffer(void **state)
{
	unsigned char *d = place_get(DEVICE, 8192), *h = place_get(PINNED, 4096), got[8192];
	aclrtStream s, other;
	aclrtEvent e;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtCreateStream(&other));
	acl_ok(aclrtCreateEventWithFlag(&e, ACL_EVENT_SYNC));
	acl_ok(aclrtMemset(d, 8192, 0, 8192));
	acl_ok(aclrtStreamWaitEvent(s, e));
	sys_fill(h, 4096, 5);
	acl_ok(aclrtMemcpyAsync(d, 4096, h, 4096, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, s));
	sys_fill(h, 4096, 6);
	acl_ok(aclrtMemcpyAsync(d + 4096, 4096, h, 4096, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, s));
	memset(h, 0, 4096);
	acl_ok(aclrtMemcpy(got, 8192, d, 8192, ACL_MEMCPY_DEFAULT));
	sys_is_byte("not yet copied", got, 8192, 0);
	acl_ok(aclrtRecordEvent(e, other));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtMemcpy(got, 8192, d, 8192, ACL_MEMCPY_DEFAULT));
	sys_is_filled("the first", got, 4096, 5);
	sys_is_filled("the second", got + 4096, 4096, 6);
	/* dropped, it leaks nothing */
	acl_ok(aclrtResetEvent(e, other));
	acl_ok(aclrtSynchronizeStream(other));
	acl_ok(aclrtStreamWaitEvent(s, e));
	acl_ok(aclrtMemcpyAsync(d, 4096, h, 4096, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, s));
	acl_ok(aclrtDestroyStreamForce(s));
	acl_ok(aclrtDestroyStream(other));
	acl_ok(aclrtDestroyEvent(e));
	place_put(PINNED, h);
	place_put(DEVICE, d);
}

/* ---- Refused ---------------------------------------------------------------------------------- */

static void wrong_copies(void **state)
{
	unsigned char *d = place_get(DEVICE, 1000), *e = place_get(DEVICE, 1000), *h = place_get(PINNED, 1000);
	unsigned char host[2048] = { 0 }, *gone, *hole;
	aclrtStream s;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	acl_fails(aclrtMemcpy(NULL, 8, d, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpy(d, 8, NULL, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpy(d, 7, e, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpy(d, 8, e, 8, (aclrtMemcpyKind)8), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpy(d, 8, e, 8, (aclrtMemcpyKind)-1), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpyAsync(NULL, 8, d, 8, ACL_MEMCPY_DEFAULT, s), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpyAsync(d, 7, e, 8, ACL_MEMCPY_DEFAULT, s), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpyAsync(d, 8, e, 8, ACL_MEMCPY_DEFAULT, (aclrtStream)d), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemcpyAsyncWithCondition(h, 8, host, 8, ACL_MEMCPY_DEFAULT, s), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_fails(aclrtMemcpyAsync(d, 8, e, 8, ACL_MEMCPY_HOST_TO_HOST, s), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	/* nothing to do */
	acl_ok(aclrtMemcpy(d, 0, e, 0, ACL_MEMCPY_DEFAULT));
	acl_ok(aclrtMemcpyAsync(d, 0, e, 0, ACL_MEMCPY_DEFAULT, s));
	acl_ok(aclrtMemset(d, 0, 1, 0));
	/* a kind that is not what the addresses say */
	acl_ok(aclrtMemcpy(d, 8, host, 8, ACL_MEMCPY_DEVICE_TO_HOST));
	acl_ok(aclrtMemcpy(d, 8, e, 8, ACL_MEMCPY_HOST_TO_HOST));
	/* 1000 is 1024 with what it is rounded up to */
	acl_ok(aclrtMemcpy(d, 1024, host, 1024, ACL_MEMCPY_DEFAULT));
	acl_says(aclrtMemcpy(d, 1025, host, 1025, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, "1 bytes too long");
	acl_says(aclrtMemcpy(d + 1000, 100, host, 100, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, "too long");
	acl_says(aclrtMemcpy(host, 2000, d, 2000, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, "source");
	acl_says(aclrtMemcpy(d, 2000, h, 2000, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, "too long");
	acl_says(aclrtMemcpyAsync(h, 2000, d, 2000, ACL_MEMCPY_DEFAULT, s), ACL_ERROR_RT_PARAM_INVALID, "too long");
	acl_fails(aclrtMemcpy(d, SIZE_MAX, host, SIZE_MAX, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemcpy((void *)(~0ul - 5), 100, host, 100, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID);
	acl_says(aclrtMemcpy(d + 10, 900, d, 900, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, "overlap");
	acl_says(aclrtMemcpyAsync(d, 900, d + 899, 900, ACL_MEMCPY_DEFAULT, s), ACL_ERROR_RT_PARAM_INVALID, "too long");
	acl_ok(aclrtMemcpy(d, 900, d, 900, ACL_MEMCPY_DEFAULT));
	/* not there */
	hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(hole, 4096);
	acl_fails(aclrtMemcpy(d, 8, hole, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemcpy(hole, 8, d, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemcpy(d, 8, (void *)8, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID);
	munmap(hole + 4096, 4096);
	/* freed */
	gone = place_get(DEVICE, 4096);
	place_put(DEVICE, gone);
	acl_says(aclrtMemcpy(gone, 8, host, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, "freed");
	acl_says(aclrtMemcpy(host, 8, gone + 100, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, "freed");
	acl_says(aclrtMemset(gone, 8, 0, 8), ACL_ERROR_RT_PARAM_INVALID, "freed");
	acl_fails(aclrtMemcpyAsync(gone, 8, h, 8, ACL_MEMCPY_DEFAULT, s), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	gone = place_get(PINNED, 1 << 20);
	place_put(PINNED, gone);
	acl_says(aclrtMemcpy(d, 8, gone, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, "freed");
	/* all of that has left the stream alone */
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtDestroyStream(s));
	place_put(DEVICE, d);
	place_put(DEVICE, e);
	place_put(PINNED, h);
}

/* Buffers freed under a stream's feet: an error, or too late for one; never worse. */
static void freed_while_queued(void **state)
{
	unsigned char *d = place_get(DEVICE, 65536), *gone, *h;
	aclrtStream s, other;
	aclrtEvent e;
	aclError ret;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	acl_ok(aclrtCreateStream(&other));
	acl_ok(aclrtCreateEventWithFlag(&e, ACL_EVENT_SYNC));
	gone = place_get(DEVICE, 65536);
	h = place_get(PINNED, 1 << 20);
	acl_ok(aclrtStreamWaitEvent(s, e));
	acl_ok(aclrtMemcpyAsync(d, 65536, gone, 65536, ACL_MEMCPY_DEFAULT, s));
	acl_ok(aclrtMemcpyAsync(d, 65536, h, 65536, ACL_MEMCPY_DEFAULT, s));
	place_put(DEVICE, gone);
	place_put(PINNED, h);
	acl_ok(aclrtRecordEvent(e, other));
	ret = aclrtSynchronizeStream(s);
	sys_eq(ret, ACL_ERROR_RT_SYS_DMA);
	/* it goes on */
	acl_ok(aclrtMemsetAsync(d, 65536, 7, 65536, s));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtDestroyStream(other));
	acl_ok(aclrtDestroyEvent(e));
	place_put(DEVICE, d);
}

static void peers(void **state)
{
	unsigned char *a = place_get(DEVICE, 4096), *b = place_get(PEER, 4096), host[4096];
	aclrtStream s;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	sys_fill(host, 4096, 3);
	put(a, host, 4096);
	acl_says(aclrtMemcpy(b, 4096, a, 4096, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, "aclrtDeviceEnablePeerAccess");
	acl_says(aclrtMemcpyAsync(a, 4096, b, 4096, ACL_MEMCPY_DEFAULT, s), ACL_ERROR_RT_PARAM_INVALID,
	     "aclrtDeviceEnablePeerAccess");
	acl_ok(aclrtDeviceEnablePeerAccess(1, 0));
	acl_ok(aclrtMemcpy(b, 4096, a, 4096, ACL_MEMCPY_DEFAULT));
	acl_ok(aclrtMemset(a, 4096, 0, 4096));
	acl_ok(aclrtMemcpyAsync(a, 4096, b, 4096, ACL_MEMCPY_INTER_DEVICE_TO_DEVICE, s));
	acl_ok(aclrtSynchronizeStream(s));
	memset(host, 0, 4096);
	put(host, a, 4096);
	sys_is_filled("to the peer and back", host, 4096, 3);
	/* one way: the peer has not been told */
	acl_ok(aclrtSetDevice(1));
	acl_fails(aclrtMemcpy(b, 4096, a, 4096, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtSetDevice(0));
	acl_ok(aclrtDeviceDisablePeerAccess(1));
	acl_fails(aclrtMemcpy(b, 4096, a, 4096, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDestroyStream(s));
	place_put(DEVICE, a);
	place_put(PEER, b);
}

/* ---- Rows ------------------------------------------------------------------------------------- */

static void rows(void **state)
{
	enum { ROOM = 1 << 20 };
	static const struct { size_t dp, sp, w, h; } shape[] = {
		{ 1, 1, 1, 1 }, { 64, 48, 33, 17 }, { 4096, 4097, 4095, 100 }, { 100, 100, 100, 1000 },
		{ 70000, 65536, 65536, 14 },
	};
	unsigned char *dst = place_get(DEVICE, ROOM), *src = place_get(DEVICE, ROOM), *pin = place_get(PINNED, ROOM);
	unsigned char *want = malloc(ROOM), *got = malloc(ROOM), *from = malloc(ROOM);
	aclrtStream s;
	size_t i, y;
	int k;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	sys_fill(from, ROOM, 1);
	put(src, from, ROOM);
	put(pin, from, ROOM);
	for (i = 0; i < COUNT(shape); i++)
		for (k = 0; k < 5; k++) {
			size_t dp = shape[i].dp, sp = shape[i].sp, w = shape[i].w, h = shape[i].h;

			memset(want, 0xee, ROOM);
			put(dst, want, ROOM);
			memset(got, 0xee, ROOM);
			for (y = 0; y < h; y++)
				memcpy(want + y * dp, from + y * sp, w);
			if (k == 0)
				acl_ok(aclrtMemcpy2d(dst, dp, from, sp, w, h, ACL_MEMCPY_HOST_TO_DEVICE));
			else if (k == 1)
				acl_ok(aclrtMemcpy2d(got, dp, src, sp, w, h, ACL_MEMCPY_DEFAULT));
			else if (k == 2)
				acl_ok(aclrtMemcpy2dAsync(dst, dp, src, sp, w, h, ACL_MEMCPY_DEVICE_TO_DEVICE, s));
			else if (k == 3)
				acl_ok(aclrtMemcpy2dAsync(dst, dp, pin, sp, w, h, ACL_MEMCPY_HOST_TO_DEVICE, s));
			else
				acl_ok(aclrtMemcpy2dAsync(got, dp, src, sp, w, h, ACL_MEMCPY_DEVICE_TO_HOST, s));
			if (k == 2 || k == 3)
				acl_ok(aclrtSynchronizeStream(s));
			if (k != 1 && k != 4)
				put(got, dst, ROOM);
			sys_same("rows", got, want, ROOM);
		}
	acl_ok(aclrtMemcpy2d(dst, 10, from, 10, 0, 5, ACL_MEMCPY_DEFAULT));
	acl_ok(aclrtMemcpy2dAsync(dst, 10, from, 10, 5, 0, ACL_MEMCPY_DEFAULT, s));
	acl_fails(aclrtMemcpy2d(NULL, 10, from, 10, 5, 5, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpy2d(dst, 10, NULL, 10, 5, 5, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpy2d(dst, 4, from, 10, 5, 5, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpy2d(dst, 10, from, 4, 5, 5, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpy2d(dst, 6000000, from, 6000000, 5000001, 1, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpy2d(dst, 1, from, 1, 1, 5242881, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpy2dAsync(dst, 3ul << 30, from, 10, 5, 2, ACL_MEMCPY_DEFAULT, s), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpy2d(dst, 10, src, 10, 5, 5, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpy2d(dst, 10, src, 10, 5, 5, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_fails(aclrtMemcpy2dAsync(got, 10, from, 10, 5, 5, ACL_MEMCPY_DEFAULT, s), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_says(aclrtMemcpy2d(dst, 70000, from, 10, 5, 16, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, "too long");
	acl_says(aclrtMemcpy2dAsync(dst, 10, src, 70000, 5, 16, ACL_MEMCPY_DEFAULT, s), ACL_ERROR_RT_PARAM_INVALID,
	     "too long");
	acl_ok(aclrtMemcpy2d(dst, 70000, from, 10, 5, 15, ACL_MEMCPY_DEFAULT));
	acl_ok(aclrtDestroyStream(s));
	place_put(DEVICE, dst);
	place_put(DEVICE, src);
	place_put(PINNED, pin);
	free(want);
	free(got);
	free(from);
}

/* ---- Batches ----------------------------------------------------------------------------------- */

#define ENTRIES	150

struct list {
	void *dst[ENTRIES], *src[ENTRIES];
	size_t max[ENTRIES], n[ENTRIES];
	aclrtMemcpyBatchAttr attr[2];
	size_t from[2];
	size_t nattrs;
	size_t fail;
};

static aclError batch(struct list *l, size_t n, aclrtStream s)
{
	l->fail = 12345;
	return s ? aclrtMemcpyBatchAsync(l->dst, l->max, l->src, l->n, n, l->attr, l->from, l->nattrs, &l->fail, s) :
		   aclrtMemcpyBatch(l->dst, l->max, l->src, l->n, n, l->attr, l->from, l->nattrs, &l->fail);
}

static void batches(void **state)
{
	enum { STEP = 1000, ROOM = ENTRIES * STEP };
	unsigned char *d = place_get(DEVICE, ROOM), *h = place_get(PINNED, ROOM), *m = malloc(ROOM), *got = malloc(ROOM);
	const aclrtMemcpyBatchAttr down = {
		.dstLoc = { 0, ACL_MEM_LOCATION_TYPE_DEVICE }, .srcLoc = { 0, ACL_MEM_LOCATION_TYPE_HOST },
	};
	const aclrtMemcpyBatchAttr up = {
		.dstLoc = { 0, ACL_MEM_LOCATION_TYPE_HOST }, .srcLoc = { 0, ACL_MEM_LOCATION_TYPE_DEVICE },
	};
	struct list l = { .attr = { down, down }, .from = { 0, 70 }, .nattrs = 2 };
	aclrtStream s;
	size_t i;
	int k;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	for (k = 0; k < 4; k++) {
		unsigned char *host = k & 1 ? m : h;

		sys_fill(host, ROOM, (uint64_t)k + 9);
		l.attr[0] = down;
		l.attr[1] = down;
		for (i = 0; i < ENTRIES; i++) {
			l.dst[i] = d + i * STEP;
			l.src[i] = host + i * STEP;
			l.max[i] = STEP;
			l.n[i] = i % 5 ? STEP : 0;
		}
		acl_ok(aclrtMemset(d, ROOM, 0x11, ROOM));
		acl_ok(batch(&l, ENTRIES, k & 2 ? s : NULL));
		sys_eq(l.fail, SIZE_MAX);
		acl_ok(aclrtSynchronizeStream(s));
		put(got, d, ROOM);
		for (i = 0; i < ENTRIES; i++)
			if (i % 5)
				sys_same("an entry", got + i * STEP, host + i * STEP, STEP);
			else
				sys_is_byte("an empty entry", got + i * STEP, STEP, 0x11);
		/* and back */
		memcpy(got, host, ROOM);
		memset(host, 0, ROOM);
		l.attr[0] = up;
		l.attr[1] = up;
		for (i = 0; i < ENTRIES; i++) {
			l.dst[i] = host + i * STEP;
			l.src[i] = d + i * STEP;
			l.n[i] = i % 5 ? STEP : 0;
		}
		if (k & 2)
			acl_ok(aclrtMemcpyBatchAsyncV2(l.dst, l.max, l.src, l.n, ENTRIES, l.attr, l.from, 2, s));
		else
			acl_ok(aclrtMemcpyBatchV2(l.dst, l.max, l.src, l.n, ENTRIES, l.attr, l.from, 2));
		if (host == h)
			acl_ok(aclrtSynchronizeStream(s));
		for (i = 1; i < ENTRIES; i += i % 5 == 4 ? 2 : 1)
			sys_same("an entry back", host + i * STEP, got + i * STEP, STEP);
	}
	/* which one is wrong, and that nothing was copied */
	sys_fill(h, ROOM, 1);
	acl_ok(aclrtMemset(d, ROOM, 0x22, ROOM));
	for (i = 0; i < ENTRIES; i++) {
		l.dst[i] = d + i * STEP;
		l.src[i] = h + i * STEP;
		l.n[i] = STEP;
	}
	l.attr[0] = down;
	l.attr[1] = down;
	l.n[77] = STEP + 1;
	acl_says(batch(&l, ENTRIES, NULL), ACL_ERROR_INVALID_PARAM, "copy 77");
	sys_eq(l.fail, 77);
	l.n[77] = STEP;
	l.src[140] = NULL;
	acl_fails(batch(&l, ENTRIES, s), ACL_ERROR_INVALID_PARAM);
	sys_eq(l.fail, 140);
	l.src[140] = d;			/* device to device */
	l.dst[140] = d + STEP;
	acl_fails(batch(&l, ENTRIES, s), ACL_ERROR_INVALID_PARAM);
	sys_eq(l.fail, 140);
	l.dst[140] = h;			/* the other direction, and so is said */
	l.attr[1] = up;
	l.from[1] = 140;
	acl_says(batch(&l, 141, NULL), ACL_ERROR_RT_PARAM_INVALID, "direction");
	sys_eq(l.fail, 140);
	l.attr[0].dstLoc.id = 1;
	acl_fails(batch(&l, 10, NULL), ACL_ERROR_INVALID_PARAM);
	sys_eq(l.fail, SIZE_MAX);	/* attributes begin beyond the end: nobody's in particular */
	l.nattrs = 1;
	acl_fails(batch(&l, 10, NULL), ACL_ERROR_INVALID_PARAM);
	sys_eq(l.fail, 0);
	l.attr[0].dstLoc.id = 0;
	l.dst[5] = d + ROOM - 1;
	acl_says(batch(&l, 10, NULL), ACL_ERROR_RT_PARAM_INVALID, "too long");
	sys_eq(l.fail, 5);
	put(got, d, ROOM);
	sys_is_byte("nothing was copied", got, ROOM, 0x22);
	l.dst[5] = d + 5 * STEP;
	l.nattrs = 0;
	acl_fails(batch(&l, 10, NULL), ACL_ERROR_INVALID_PARAM);
	sys_eq(l.fail, SIZE_MAX);
	l.nattrs = 11;
	acl_fails(batch(&l, 10, s), ACL_ERROR_INVALID_PARAM);
	l.nattrs = 2;
	l.from[1] = 0;
	acl_fails(batch(&l, 10, s), ACL_ERROR_INVALID_PARAM);
	l.from[0] = 1;
	l.from[1] = 2;
	acl_fails(batch(&l, 10, s), ACL_ERROR_INVALID_PARAM);
	l.from[0] = 0;
	acl_fails(batch(&l, 0, s), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpyBatch(NULL, l.max, l.src, l.n, 1, l.attr, l.from, 1, &l.fail), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpyBatch(l.dst, NULL, l.src, l.n, 1, l.attr, l.from, 1, &l.fail), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpyBatchV2(l.dst, l.max, NULL, l.n, 1, l.attr, l.from, 1), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpyBatchV2(l.dst, l.max, l.src, NULL, 1, l.attr, l.from, 1), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpyBatchAsyncV2(l.dst, l.max, l.src, l.n, 1, NULL, l.from, 1, s), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpyBatchAsyncV2(l.dst, l.max, l.src, l.n, 1, l.attr, NULL, 1, s), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpyBatch(l.dst, l.max, l.src, l.n, 1, l.attr, l.from, 1, NULL), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtDestroyStream(s));
	place_put(DEVICE, d);
	place_put(PINNED, h);
	free(m);
	free(got);
}

/* ---- Addresses in device memory ------------------------------------------------------------------ */

static void indirect(void **state)
{
	unsigned char *d = place_get(DEVICE, 8192), *e = place_get(DEVICE, 8192), host[8192], got[8192];
	void **at = (void **)(void *)place_get(DEVICE, 64), *list[2];
	aclrtStream s;
	size_t size;
	void *desc;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	sys_fill(host, 8192, 1);
	put(d, host, 8192);
	acl_ok(aclrtMemset(e, 8192, 0, 8192));
	/* the addresses come with the stream, after the call */
	list[0] = e;
	list[1] = d;
	acl_ok(aclrtMemcpyAsync(at, 16, list, 16, ACL_MEMCPY_HOST_TO_DEVICE, s));
	acl_ok(aclrtMemcpyAsyncWithOffset(at, 1000, 100, (const void **)(at + 1), 1000, 50,
				      ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, s));
	acl_ok(aclrtSynchronizeStream(s));
	put(got, e, 8192);
	sys_is_byte("before", got, 100, 0);
	sys_same("copied", got + 100, host + 50, 1000);
	sys_is_byte("behind", got + 1100, 8192 - 1100, 0);
	/* wrong ones are found when it runs */
	acl_ok(aclrtMemcpyAsyncWithOffset(at, 1000, 7500, (const void **)(at + 1), 1000, 0,
				      ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, s));
	acl_fails(aclrtSynchronizeStream(s), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemcpyAsyncWithOffset(NULL, 1, 0, (const void **)at, 1, 0, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, s),
	      ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpyAsyncWithOffset(at, 1, 0, NULL, 1, 0, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, s),
	      ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpyAsyncWithOffset(at, 1, 0, (const void **)at, 2, 0, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, s),
	      ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpyAsyncWithOffset(at, 1, 0, (const void **)at, 1, 0, ACL_MEMCPY_DEVICE_TO_HOST, s),
	      ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_fails(aclrtMemcpyAsyncWithOffset(list, 1, 0, (const void **)at, 1, 0, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, s),
	      ACL_ERROR_RT_PARAM_INVALID);

	acl_ok(aclrtGetMemcpyDescSize(ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, &size));
	acl_fails(aclrtGetMemcpyDescSize(ACL_MEMCPY_DEVICE_TO_HOST, &size), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_fails(aclrtGetMemcpyDescSize(ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, NULL), ACL_ERROR_INVALID_PARAM);
	desc = place_get(DEVICE, size);
	acl_ok(aclrtMemset(desc, size, 0, size));
	acl_ok(aclrtMemcpyAsyncWithDesc(desc, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, s));
	acl_says(aclrtSynchronizeStream(s), ACL_ERROR_RT_PARAM_INVALID, "no descriptor");
	acl_ok(aclrtSetMemcpyDesc(desc, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, d, e, 8192, NULL));
	acl_ok(aclrtMemcpyAsyncWithDesc(desc, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, s));
	acl_ok(aclrtSynchronizeStream(s));
	put(got, e, 8192);
	sys_same("by descriptor", got, host, 8192);
	acl_fails(aclrtSetMemcpyDesc(NULL, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, d, e, 8, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetMemcpyDesc(desc, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, NULL, e, 8, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetMemcpyDesc(desc, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, d, NULL, 8, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetMemcpyDesc(desc, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, d, e, 0, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetMemcpyDesc(desc, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, d, e, 8, desc), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetMemcpyDesc(desc, ACL_MEMCPY_HOST_TO_DEVICE, d, e, 8, NULL), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_fails(aclrtSetMemcpyDesc(desc, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, d, e, 8193, NULL), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtSetMemcpyDesc(host, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, d, e, 8, NULL), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemcpyAsyncWithDesc(NULL, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, s), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemcpyAsyncWithDesc((char *)desc + 4, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, s),
	      ACL_ERROR_RT_PARAM_INVALID);
	place_put(DEVICE, desc);
	acl_ok(aclrtDestroyStream(s));
	place_put(DEVICE, (void *)at);
	place_put(DEVICE, d);
	place_put(DEVICE, e);
}

/* ---- Fills ------------------------------------------------------------------------------------------ */

static void fills(void **state)
{
	static const int32_t values[] = { 0, 1, 0xff, -1, 0x12345678 };
	enum { ROOM = 200000 };
	unsigned char *d = place_get(DEVICE, ROOM), *h = place_get(PINNED, ROOM), *m = malloc(ROOM), *got = malloc(ROOM);
	unsigned char *want = malloc(ROOM), *place[] = { d, h, m };
	static const size_t n[] = { 1, 3, 31, 4096, 65537, 150000 };
	uint32_t word = 0xdeadbeef;
	aclrtStream s;
	size_t i, k, p;
	unsigned int w;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	for (p = 0; p < 3; p++)
		for (i = 0; i < COUNT(n); i++)
			for (k = 0; k < COUNT(values); k++) {
				memset(want, 0x77, ROOM);
				put(place[p], want, ROOM);
				memset(want + 64 + k, values[k] & 0xff, n[i]);
				if (i & 1) {
					acl_ok(aclrtMemsetAsync(place[p] + 64 + k, n[i], values[k], n[i], s));
					acl_ok(aclrtSynchronizeStream(s));
				} else {
					acl_ok(aclrtMemset(place[p] + 64 + k, n[i], values[k], n[i]));
				}
				put(got, place[p], ROOM);
				sys_same("bytes set", got, want, ROOM);
				for (w = 0; w < n[i] / 4; w++)
					memcpy(want + 128 + k + 4 * w, &word, 4);
				if (k & 1) {
					acl_ok(aclrtMemsetD32Async(place[p] + 128 + k, n[i], word, n[i] / 4, s));
					acl_ok(aclrtSynchronizeStream(s));
				} else {
					acl_ok(aclrtMemsetD32(place[p] + 128 + k, n[i], word, n[i] / 4));
				}
				put(got, place[p], ROOM);
				sys_same("words set", got, want, ROOM);
			}
	acl_fails(aclrtMemset(NULL, 8, 0, 8), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemset(d, 7, 0, 8), ACL_ERROR_INVALID_PARAM);
	acl_says(aclrtMemset(d + ROOM - 8, 100, 0, 100), ACL_ERROR_RT_PARAM_INVALID, "too long");
	acl_fails(aclrtMemsetAsync(NULL, 8, 0, 8, s), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemsetAsync(d, 7, 0, 8, s), ACL_ERROR_INVALID_PARAM);
	acl_says(aclrtMemsetAsync(h, ROOM + 4096, 0, ROOM + 4096, s), ACL_ERROR_RT_PARAM_INVALID, "too long");
	acl_fails(aclrtMemsetD32(NULL, 8, 0, 2), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemsetD32(d, 7, 0, 2), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemsetD32(d, SIZE_MAX, 0, SIZE_MAX / 2), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemsetD32Async(d, 7, 0, 2, s), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemsetD32Async(d, 8, 0, 2, (aclrtStream)d), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDestroyStream(s));
	place_put(DEVICE, d);
	place_put(PINNED, h);
	free(m);
	free(got);
	free(want);
}

/* ---- Reductions -------------------------------------------------------------------------------------- */

static float from_bf16(uint16_t v)
{
	uint32_t bits = (uint32_t)v << 16;
	float f;

	memcpy(&f, &bits, 4);
	return f;
}

static uint16_t to_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	if (isnan(f))
		return 0x7fc0;
	bits += 0x7fff + (bits >> 16 & 1);
	return (uint16_t)(bits >> 16);
}

#define COMBINE(kind, a, b) \
	((kind) == ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM ? (a) + (b) : \
	 (kind) == ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX ? ((a) > (b) ? (a) : (b)) : \
	 (kind) == ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN ? ((a) < (b) ? (a) : (b)) : (b))

#define LOOP(ctype, wide) \
	for (i = 0; i < n / sizeof(ctype); i++) { \
		ctype a, b, r; \
		memcpy(&a, dst + i * sizeof(a), sizeof(a)); \
		memcpy(&b, src + i * sizeof(b), sizeof(b)); \
		r = (ctype)COMBINE(kind, (wide)a, (wide)b); \
		memcpy(dst + i * sizeof(r), &r, sizeof(r)); \
	} \
	break

static void plain(aclrtReduceKind kind, aclDataType type, unsigned char *dst, const unsigned char *src, size_t n)
{
	size_t i;

	switch (type) {
	case ACL_INT8:
		LOOP(int8_t, int64_t);
	case ACL_INT16:
		LOOP(int16_t, int64_t);
	case ACL_INT32:
		LOOP(int32_t, int64_t);
	case ACL_UINT32:
		LOOP(uint32_t, uint64_t);
	case ACL_FLOAT16:
		LOOP(_Float16, float);
	case ACL_FLOAT:
		LOOP(float, float);
	default:
		for (i = 0; i < n / 2; i++) {
			uint16_t a, b;

			memcpy(&a, dst + i * 2, 2);
			memcpy(&b, src + i * 2, 2);
			a = to_bf16(COMBINE(kind, from_bf16(a), from_bf16(b)));
			memcpy(dst + i * 2, &a, 2);
		}
		break;
	}
}

static const struct {
	aclDataType type;
	size_t bytes;
} types[] = {
	{ ACL_INT8, 1 }, { ACL_INT16, 2 }, { ACL_INT32, 4 }, { ACL_UINT32, 4 }, { ACL_FLOAT16, 2 }, { ACL_FLOAT, 4 },
	{ ACL_BF16, 2 },
};

/* Floats: subnormal, largest, rounded to even both ways, signed zeros, infinite; not NaN, whose bits are free. */
static const uint16_t edge_half[] = {
	0x0001, 0x03ff, 0x7bff, 0x3c00, 0x3c01, 0x1000, 0x8000, 0x0000, 0x7c00, 0xbc00, 0x6800, 0x0401,
};
static const uint16_t edge_bf16[] = {
	0x0001, 0x007f, 0x7f7f, 0x3f80, 0x3f81, 0x3b80, 0x8000, 0x0000, 0x7f80, 0xbf80, 0x4380, 0x0081,
};

static void numbers(aclDataType type, unsigned char *p, size_t n, uint64_t seed)
{
	size_t i;

	sys_fill(p, n, seed);
	if (type == ACL_FLOAT)
		for (i = 0; i < n / 4; i++) {
			float f = (float)((int)(sys_rand(&seed) % 2000001) - 1000000) / 7;

			memcpy(p + 4 * i, &f, 4);
		}
	if (type == ACL_FLOAT16 || type == ACL_BF16)
		for (i = 0; i < n / 2; i++)
			memcpy(p + 2 * i, &(type == ACL_BF16 ? edge_bf16 : edge_half)[sys_rand(&seed) % COUNT(edge_half)], 2);
}

static void reductions(void **state)
{
	enum { ROOM = 70000 };
	unsigned char *d = place_get(DEVICE, ROOM), *e = place_get(DEVICE, ROOM), *peer = place_get(PEER, 64);
	unsigned char *want = malloc(ROOM), *from = malloc(ROOM), *got = malloc(ROOM);
	static const size_t count[] = { 1, 15, 4096, 16000 };
	aclrtStream s;
	size_t i, k;
	int kind;

	(void)state;
	acl_ok(aclrtCreateStream(&s));
	for (i = 0; i < COUNT(types); i++)
		for (k = 0; k < COUNT(count); k++)
			for (kind = ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM; kind <= ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL; kind++) {
				size_t n = count[k] * types[i].bytes;

				numbers(types[i].type, want, ROOM, i * 10 + k);
				numbers(types[i].type, from, ROOM, i * 10 + k + 5);
				put(d, want, ROOM);
				put(e, from, ROOM);
				plain((aclrtReduceKind)kind, types[i].type, want + 8, from + 16, n);
				acl_ok(aclrtReduceAsync(d + 8, e + 16, n, (aclrtReduceKind)kind, types[i].type, s, NULL));
				acl_ok(aclrtSynchronizeStream(s));
				put(got, d, ROOM);
				/* an infinity less an infinity is some NaN */
				if (types[i].type == ACL_FLOAT16 || types[i].type == ACL_BF16) {
					uint16_t inf = types[i].type == ACL_BF16 ? 0x7f80 : 0x7c00, g, v;
					size_t at;

					for (at = 8; at < 8 + n; at += 2) {
						memcpy(&g, got + at, 2);
						memcpy(&v, want + at, 2);
						if ((v & 0x7fff) > inf && (g & 0x7fff) > inf)
							memcpy(got + at, &v, 2);
						/* which zero a maximum takes is not said */
						if (!(v & 0x7fff) && !(g & 0x7fff))
							memcpy(got + at, &v, 2);
					}
				}
				sys_same("a reduction", got, want, ROOM);
			}
	/* in the order of the stream: it adds up */
	acl_ok(aclrtMemsetD32(d, 64, 0, 16));
	acl_ok(aclrtMemsetD32(e, 64, 3, 16));
	for (i = 0; i < 200; i++)
		acl_ok(aclrtReduceAsync(d, e, 64, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, s, NULL));
	acl_ok(aclrtSynchronizeStream(s));
	put(got, d, 64);
	for (i = 0; i < 16; i++)
		sys_eq(((int32_t *)(void *)got)[i], 600);
	acl_ok(aclrtReduceAsync(d, e, 0, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, s, NULL));
	acl_fails(aclrtReduceAsync(NULL, e, 8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, s, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtReduceAsync(d, NULL, 8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, s, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtReduceAsync(d, e, 8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, s, d), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtReduceAsync(d, e, 8, (aclrtReduceKind)9, ACL_INT32, s, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtReduceAsync(d, e, 8, (aclrtReduceKind)14, ACL_INT32, s, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtReduceAsync(d, e, 8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT64, s, NULL),
	      ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_fails(aclrtReduceAsync(d, e, 8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_DT_UNDEFINED, s, NULL),
	      ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_fails(aclrtReduceAsync(d, e, 7, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, s, NULL), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtReduceAsync(d + 2, e, 8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, s, NULL),
	      ACL_ERROR_RT_ADDR_UNALIGNED);
	acl_says(aclrtReduceAsync(d, e, ROOM + 4096, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, s, NULL),
	     ACL_ERROR_RT_PARAM_INVALID, "too long");
	acl_says(aclrtReduceAsync(d, d + 4, 8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, s, NULL),
	     ACL_ERROR_RT_PARAM_INVALID, "overlap");
	acl_says(aclrtReduceAsync(d, from, 8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, s, NULL),
	     ACL_ERROR_RT_PARAM_INVALID, "stream's device");
	acl_fails(aclrtReduceAsync(peer, e, 8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, s, NULL),
	      ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDestroyStream(s));
	place_put(DEVICE, d);
	place_put(DEVICE, e);
	place_put(PEER, peer);
	free(want);
	free(from);
	free(got);
}

/* ---- All at once --------------------------------------------------------------------------------------- */

struct soak {
	int device;
	uint64_t seed;
};

/* A model of two buffers in host memory; each step is done to both. */
static void *soak(void *arg)
{
	enum { ROOM = 200000 };
	struct soak *k = arg;
	unsigned char *d[2], *pin, *model[2], *host = malloc(ROOM), *got = malloc(ROOM);
	uint64_t rnd = k->seed;
	aclrtStream s;
	int i, a, b;

	acl_ok(aclrtSetDevice(k->device));
	acl_ok(aclrtCreateStream(&s));
	for (i = 0; i < 2; i++) {
		acl_ok(aclrtMalloc((void **)&d[i], ROOM, ACL_MEM_MALLOC_HUGE_FIRST));
		acl_ok(aclrtMemset(d[i], ROOM, 0, ROOM));
		model[i] = calloc(1, ROOM);
	}
	acl_ok(aclrtMallocHost((void **)&pin, ROOM));
	for (i = 0; i < (sys_slow() ? 150 : 1500); i++) {
		size_t n = 1 + sys_rand(&rnd) % (1u << sys_rand(&rnd) % 17), x = sys_rand(&rnd) % (ROOM - n);
		size_t y = sys_rand(&rnd) % (ROOM - n);
		uint64_t seed = rnd;

		a = (int)(sys_rand(&rnd) % 2);
		b = !a;
		switch (sys_rand(&rnd) % 8) {
		case 0:
			acl_ok(aclrtMemcpyAsync(d[a] + x, n, d[b] + y, n, ACL_MEMCPY_DEVICE_TO_DEVICE, s));
			memcpy(model[a] + x, model[b] + y, n);
			break;
		case 1:
			sys_fill(host, n, seed);
			acl_ok(aclrtMemcpyAsync(d[a] + x, n, host, n, ACL_MEMCPY_HOST_TO_DEVICE, s));
			memcpy(model[a] + x, host, n);
			memset(host, 0, n);
			break;
		case 2:
			acl_ok(aclrtSynchronizeStream(s));
			sys_fill(pin, n, seed);
			acl_ok(aclrtMemcpyAsync(d[a] + x, n, pin, n, ACL_MEMCPY_HOST_TO_DEVICE, s));
			memcpy(model[a] + x, pin, n);
			break;
		case 3:
			acl_ok(aclrtMemcpyAsync(got, n, d[a] + x, n, ACL_MEMCPY_DEVICE_TO_HOST, s));
			sys_same("what is in a buffer", got, model[a] + x, n);
			break;
		case 4:
			acl_ok(aclrtMemsetAsync(d[a] + x, n, (int)(seed & 0xff), n, s));
			memset(model[a] + x, (int)(seed & 0xff), n);
			break;
		case 5:
			acl_ok(aclrtSynchronizeStream(s));
			acl_ok(aclrtMemcpy(d[a] + x, n, d[b] + y, n, ACL_MEMCPY_DEFAULT));
			memcpy(model[a] + x, model[b] + y, n);
			break;
		case 6:
			n = n < 40000 ? n & ~3ul : 40000;
			x &= ~3ul;
			y &= ~3ul;
			if (!n)
				break;
			acl_ok(aclrtReduceAsync(d[a] + x, d[b] + y, n, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, s, NULL));
			plain(ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, model[a] + x, model[b] + y, n);
			break;
		default:
			acl_ok(aclrtSynchronizeStream(s));	/* nothing queued may use what is freed */
			acl_ok(aclrtFree(d[a]));	/* another one in its place, with what was in it */
			acl_ok(aclrtMalloc((void **)&d[a], ROOM, ACL_MEM_MALLOC_HUGE_FIRST));
			acl_ok(aclrtMemcpy(d[a], ROOM, model[a], ROOM, ACL_MEMCPY_HOST_TO_DEVICE));
			break;
		}
	}
	acl_ok(aclrtSynchronizeStream(s));
	for (i = 0; i < 2; i++) {
		acl_ok(aclrtMemcpy(got, ROOM, d[i], ROOM, ACL_MEMCPY_DEFAULT));
		sys_same("a buffer in the end", got, model[i], ROOM);
		acl_ok(aclrtFree(d[i]));
		free(model[i]);
	}
	acl_ok(aclrtFreeHost(pin));
	acl_ok(aclrtDestroyStream(s));
	free(host);
	free(got);
	return NULL;
}

static void soaked(void **state)
{
	struct soak k[4];
	pthread_t t[4];
	int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		k[i] = (struct soak){ .device = i % 2, .seed = (uint64_t)i + 1 };
		sys_true(!pthread_create(&t[i], NULL, soak, &k[i]), "a thread");
	}
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		acl_test(at_once),
		acl_test(in_a_stream),
		acl_test(across_ranges),
		acl_test(through_a_buffer),
		acl_test(wrong_copies),
		acl_test(freed_while_queued),
		acl_test(peers),
		acl_test(rows),
		acl_test(batches),
		acl_test(indirect),
		acl_test(fills),
		acl_test(reductions),
		acl_test(soaked),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
