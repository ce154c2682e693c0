// SPDX-License-Identifier: MIT
/*
 * An idle program of the ACL runtime: 8 devices (or what the machine has) and 64
 * streams, each used once.  Prints the cpu time of 5 idle seconds in percent of a
 * core (cpu_pct), of all its threads.
 */
#include "acl.h"
#include <sys/resource.h>

#define DEVICES	8u
#define STREAMS	64u

static double cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return 1e9 * (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e3 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void idle_for(double seconds)
{
	struct timespec nap = { (time_t)seconds, 0 };

	nap.tv_nsec = (long)(1e9 * (seconds - (double)nap.tv_sec));
	while (nanosleep(&nap, &nap) && errno == EINTR)
		;
}

/* A copy, an event, and another stream's wait for it, which makes everything be there. */
static void use(aclrtStream first, aclrtStream second)
{
	uint64_t from = 0x1234, to = 0;
	aclrtEvent event;
	void *p;

	acl_try(aclrtCreateEvent(&event));
	acl_try(aclrtMalloc(&p, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
	acl_try(aclrtMemcpyAsync(p, 4096, &from, sizeof(from), ACL_MEMCPY_HOST_TO_DEVICE, first));
	acl_try(aclrtRecordEvent(event, first));
	acl_try(aclrtStreamWaitEvent(second, event));
	acl_try(aclrtMemcpyAsync(&to, sizeof(to), p, sizeof(to), ACL_MEMCPY_DEVICE_TO_HOST, second));
	acl_try(aclrtSynchronizeStream(first));
	acl_try(aclrtSynchronizeStream(second));
	bench_equal("a copy there and back", to, from);
	acl_try(aclrtFree(p));
	acl_try(aclrtDestroyEvent(event));
}

int main(void)
{
	double seconds = bench_env("BENCH_IDLE_SECONDS", 5), cpu, t;
	aclrtStream stream[STREAMS];
	uint32_t devices, i;

	acl_try(aclInit(NULL));
	acl_try(aclrtGetDeviceCount(&devices));
	if (devices > DEVICES)
		devices = DEVICES;
	for (i = 0; i < STREAMS; i += 2) {
		acl_try(aclrtSetDevice((int32_t)(i / 2 % devices)));
		acl_try(aclrtCreateStream(&stream[i]));
		acl_try(aclrtCreateStream(&stream[i + 1]));
		use(stream[i], stream[i + 1]);
	}
	idle_for(0.5);
	cpu = cpu_ns();
	t = bench_now();
	idle_for(seconds);
	t = bench_now() - t;
	bench_emit("devices", 0, devices);
	bench_emit("cpu_pct", 0, 100 * (cpu_ns() - cpu) / t);
	acl_try(aclFinalize());
	return bench_end();
}
