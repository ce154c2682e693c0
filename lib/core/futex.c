// SPDX-License-Identifier: MIT
/* Sleeping on a word, and waking who does. */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "core.h"

int npuemu_futex_wait(u32 *word, u32 seen, s64 ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };

	return (int)syscall(SYS_futex, word, FUTEX_WAIT, seen, ns == INT64_MAX ? NULL : &t, NULL, 0);
}

void npuemu_futex_wake(u32 *word, int n)
{
	syscall(SYS_futex, word, FUTEX_WAKE, n, NULL, NULL, 0);
}
