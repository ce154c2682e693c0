// SPDX-License-Identifier: MIT
/*
 * An idle board: one process with 64 queues over 8 devices, every one used once
 * and mapped for device code.  Prints the cpu time of 5 idle seconds in percent
 * of a core (cpu_pct), then how long after a plain store to a doorbell the
 * completion is in the ring (wake_ns), found without calling the library.  Last,
 * what a thread costs that does nothing but nap 10 ms at a time (nap10_pct): no
 * look-out that naps so can be cheaper on this machine.
 */
#include "idle.h"
#include <sys/resource.h>

static double cpu_ns(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return 1e9 * (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e3 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double naps_pct(void)
{
	struct timespec nap = { 0, 10 * 1000 * 1000 };
	double t = bench_now(), cpu = cpu_ns(RUSAGE_THREAD);
	int i;

	for (i = 0; i < 50; i++)
		nanosleep(&nap, NULL);
	return 100 * (cpu_ns(RUSAGE_THREAD) - cpu) / (bench_now() - t);
}

int main(void)
{
	double seconds = bench_env("BENCH_IDLE_SECONDS", 5), cpu, t;
	struct timespec nap = { 0, 200 * 1000 * 1000 };
	struct npuemu *ctx;
	uint32_t devices, i;

	devices = idle_open(&ctx);
	nanosleep(&nap, NULL);

	cpu = cpu_ns(RUSAGE_SELF);
	t = bench_now();
	idle_sleep(seconds);
	t = bench_now() - t;
	bench_emit("devices", 0, devices);
	bench_emit("cpu_pct", 0, 100 * (cpu_ns(RUSAGE_SELF) - cpu) / t);
	for (i = 0; i < 5; i++) {
		bench_emit("wake_ns", i, idle_wake(&idle_all[i * 13]));
		nanosleep(&nap, NULL);
	}
	bench_emit("nap10_pct", 0, naps_pct());
	bench_try(npuemu_close(ctx));
	return bench_end();
}
