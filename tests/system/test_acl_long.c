// SPDX-License-Identifier: MIT
/*
 * Long copies at once, which go by two queues: every byte of both halves, nothing around
 * them, an error in either half, more threads than there are queues, and a device whose
 * memory the first touch brings in.
 */
#include <acl/acl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "acltest.h"
#include "sys.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIB	(1ul << 20)
#define EDGE	(4 * MIB)	/* from here on a copy is halved */
#define GUARD	64u

static const size_t sizes[] = {
	EDGE - 1, EDGE, EDGE + 1, EDGE + 4095, EDGE + 8191, EDGE + 8192, 9 * MIB + 5,
};

static unsigned char *device_memory(size_t n)
{
	void *p;

	acl_ok(aclrtMalloc(&p, n, ACL_MEM_MALLOC_HUGE_FIRST));
	return p;
}

/* By pieces that are not halved. */
static void put(unsigned char *to, const unsigned char *from, size_t n)
{
	size_t at, k;

	for (at = 0; at < n; at += k) {
		k = n - at < MIB ? n - at : MIB;
		acl_ok(aclrtMemcpy(to + at, k, from + at, k, ACL_MEMCPY_DEFAULT));
	}
}

static void lengths(void **state)
{
	enum { ROOM = 10 * MIB };
	unsigned char *want = malloc(ROOM), *got = malloc(ROOM), *to[2], *from[2];
	unsigned int i, t, f;
	void *pinned;

	(void)state;
	acl_ok(aclrtMallocHost(&pinned, ROOM));
	to[0] = device_memory(ROOM);
	to[1] = malloc(ROOM);
	from[0] = device_memory(ROOM);
	from[1] = pinned;
	for (i = 0; i < COUNT(sizes); i++)
		for (t = 0; t < COUNT(to); t++)
			for (f = 0; f < COUNT(from); f++) {
				size_t n = sizes[i], x = i % 3 * 17, y = (t + f) * 9;

				sys_fill(want, y + n, n + t);
				put(from[f], want, y + n);
				memmove(want + GUARD + x, want + y, n);
				memset(want, 0x5a, GUARD + x);
				memset(want + GUARD + x + n, 0x5a, GUARD);
				memset(got, 0x5a, x + n + 2 * GUARD);
				put(to[t], got, x + n + 2 * GUARD);
				acl_ok(aclrtMemcpy(to[t] + GUARD + x, n, from[f] + y, n, ACL_MEMCPY_DEFAULT));
				put(got, to[t], x + n + 2 * GUARD);
				sys_same("a long copy and what is around it", got, want, x + n + 2 * GUARD);
			}
	acl_ok(aclrtFree(to[0]));
	acl_ok(aclrtFree(from[0]));
	acl_ok(aclrtFreeHost(pinned));
	free(to[1]);
	free(want);
	free(got);
}

/* A page is missing in one half or the other, or its first or its last one. */
static void holes(void **state)
{
	static const size_t at[] = { 0, MIB, EDGE - 4096, EDGE, 7 * MIB, 2 * EDGE - 4096 };
	unsigned char *d = device_memory(2 * EDGE), *got = malloc(2 * EDGE), *h;
	unsigned int i;

	(void)state;
	for (i = 0; i < COUNT(at); i++) {
		h = mmap(NULL, 2 * EDGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		sys_true(h != MAP_FAILED, "memory");
		sys_fill(h, 2 * EDGE, i);
		/* mapped, or somebody else may come there */
		sys_true(!mprotect(h + at[i], 4096, PROT_NONE), "mprotect");
		acl_says(aclrtMemcpy(d, 2 * EDGE, h, 2 * EDGE, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_SYS_DMA, "8388608 bytes");
		acl_says(aclrtMemcpy(h, 2 * EDGE, d, 2 * EDGE, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_SYS_DMA, "8388608 bytes");
		/* both queues are as new */
		sys_true(!mprotect(h + at[i], 4096, PROT_READ | PROT_WRITE), "mprotect");
		sys_fill(h, 2 * EDGE, i + 100);
		acl_ok(aclrtMemcpy(d, 2 * EDGE, h, 2 * EDGE, ACL_MEMCPY_DEFAULT));
		put(got, d, 2 * EDGE);
		sys_same("after an error", got, h, 2 * EDGE);
		munmap(h, 2 * EDGE);
	}
	acl_ok(aclrtFree(d));
	free(got);
}

#define THREADS		10u	/* a device has 8 queues */

static void *copier(void *arg)
{
	size_t n = EDGE + (size_t)(uintptr_t)arg * 4097;
	unsigned char *want = malloc(n), *got = malloc(n), *d, *e;
	int i;

	acl_ok(aclrtSetDevice(0));
	d = device_memory(n);
	e = device_memory(n);
	for (i = 0; i < (sys_slow() ? 3 : 10); i++) {
		sys_fill(want, n, n + (size_t)i);
		memset(got, 0, n);
		acl_ok(aclrtMemcpy(d, n, want, n, ACL_MEMCPY_HOST_TO_DEVICE));
		acl_ok(aclrtMemcpy(e, n, d, n, ACL_MEMCPY_DEVICE_TO_DEVICE));
		acl_ok(aclrtMemcpy(got, n, e, n, ACL_MEMCPY_DEVICE_TO_HOST));
		sys_same("there and back", got, want, n);
	}
	acl_ok(aclrtFree(d));
	acl_ok(aclrtFree(e));
	free(want);
	free(got);
	return NULL;
}

static void crowd(void **state)
{
	pthread_t t[THREADS];
	unsigned int i;

	(void)state;
	for (i = 0; i < THREADS; i++)
		sys_true(!pthread_create(&t[i], NULL, copier, (void *)(uintptr_t)i), "a thread");
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		acl_test(lengths), acl_test(holes), acl_test(crowd),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
