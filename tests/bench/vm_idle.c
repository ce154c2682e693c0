// SPDX-License-Identifier: MIT
/*
 * An idle board on the kernel host: 64 queues over 8 devices, each used once.
 * Prints how often any of the engines' kernel threads was switched to or away
 * from in 5 idle seconds (switches), how many there are (engines), then how long
 * after a plain store to a doorbell the completion is in the ring (wake_ns).
 */
#include "idle.h"
#include "vm.h"

static void add_switches(int pid, void *arg)
{
	double *sum = arg;
	char text[64];

	vm_proc(pid, "status", "voluntary_ctxt_switches:", text, sizeof(text));
	*sum += atof(text);
	vm_proc(pid, "status", "nonvoluntary_ctxt_switches:", text, sizeof(text));
	*sum += atof(text);
}

static double switches(unsigned int *engines)
{
	double sum = 0;

	*engines = vm_kthreads("npuemu", add_switches, &sum);
	return sum;
}

int main(void)
{
	double seconds = bench_env("BENCH_IDLE_SECONDS", 5), before;
	uint32_t devices, i;
	unsigned int engines;
	struct npuemu *ctx;

	devices = idle_open(&ctx);
	idle_sleep(1);
	before = switches(&engines);
	if (engines < 2 * devices || before < engines)
		bench_die("%u kernel threads npuemu... with %g context switches, for %u devices",
			  engines, before, devices);
	idle_sleep(seconds);
	bench_emit("switches", 0, switches(&engines) - before);
	bench_emit("engines", 0, engines);
	for (i = 0; i < 5; i++) {
		bench_emit("wake_ns", i, idle_wake(&idle_all[i * 13]));
		idle_sleep(0.2);
	}
	bench_try(npuemu_close(ctx));
	return 0;
}
