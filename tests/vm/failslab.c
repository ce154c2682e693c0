// SPDX-License-Identifier: MIT
/*
 * Lets the first, the second, the third ... allocation (or copy from and to user
 * space) of every call into the driver fail, until the call gets through without
 * one.  Each failure must be told as one, leave the context usable (the same call
 * works at once), and leave nothing behind after close.
 *
 * Needs a kernel with fault injection: tools/debug-kernel makes one.
 *
 * Usage: failslab [STEP]...		all, or those whose name contains STEP
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "failslab.h"

#define MAX_N	2000

static int nth_fd = -1;
static u32 bad, total;

/* ---- Injection ----------------------------------------------------------- */

static bool put(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, value, strlen(value)) == (ssize_t)strlen(value);
	close(fd);
	return ok;
}

/* Where a function of the kernel begins, and the next one. */
static bool find_function(const char *name, char *from, char *to)
{
	char line[256], symbol[128], at[32];
	FILE *f = fopen("/proc/kallsyms", "r");
	bool found = false;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%31s %*c %127s", at, symbol) != 2)
			continue;
		if (found && strcmp(at, from + 2)) {
			sprintf(to, "0x%s", at);
			break;
		}
		if (!found && !strcmp(symbol, name)) {
			sprintf(from, "0x%s", at);
			found = true;
		}
	}
	if (f)
		fclose(f);
	return found && *to;
}

static bool injection_init(void)
{
	static const char *const kinds[] = { "failslab", "fail_page_alloc", "fail_usercopy" };
	char path[128], from[40] = "", to[40] = "";
	u32 i;

	/* it warns whenever the one that it asks has no memory */
	if (!find_function("dma_buf_vmap", from, to))
		printf("failslab: there is no dma_buf_vmap\n");
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/verbose", kinds[i]);
		if (!put(path, "0") && i < 2)
			return false;
		/* also what may sleep; also single pages */
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-wait", kinds[i]);
		put(path, "N");
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-highmem", kinds[i]);
		put(path, "N");
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/min-order", kinds[i]);
		put(path, "0");
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/reject-start", kinds[i]);
		put(path, from);
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/reject-end", kinds[i]);
		put(path, to);
	}
	snprintf(path, sizeof(path), "/proc/self/task/%ld/fail-nth", syscall(SYS_gettid));
	nth_fd = open(path, O_RDWR);
	return nth_fd >= 0;
}

static void inject(u32 n)
{
	char s[16];
	int len = snprintf(s, sizeof(s), "%u", n);

	/* what is still to come may come in this very call: then once more */
	if (pwrite(nth_fd, s, len, 0) != len && pwrite(nth_fd, s, len, 0) != len)
		abort();
}

/* No more from here on; did it? */
static bool injected(void)
{
	char s[16] = "";

	if (pread(nth_fd, s, sizeof(s) - 1, 0) < 0)
		return false;	/* it was left for this call */
	inject(0);
	return atoi(s) == 0;
}

static bool leaked(void)
{
	char buf[2048], *line, *save;
	bool left = false;
	int tries, fd;
	ssize_t n;

	for (tries = 0; tries < 50; tries++) {
		fd = open(LEAKS, O_RDONLY);
		n = read(fd, buf, sizeof(buf) - 1);
		close(fd);
		if (n <= 0)
			return false;	/* tests/vm/guest would have said so */
		buf[n] = '\0';
		left = false;
		for (line = strtok_r(buf, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
			if (strrchr(line, ' ') && atol(strrchr(line, ' '))) {
				left = true;
				if (tries == 49)
					printf("failslab: left in the driver: %s\n", line);
			}
		if (!left)
			return false;
		usleep(20000);
	}
	return left;
}

/* ---- The loop ------------------------------------------------------------ */

static void wrong(const struct step *s, u32 n, const char *what, int rc)
{
	printf("failslab: %s, allocation %u: %s: %s\n", s->name, n, what, rc ? strerror(-rc) : "0");
	bad++;
}

/* One context, one injection; false: it was not needed any more. */
static bool one(const struct step *s, u32 n, u32 *failures, u32 *survived)
{
	bool fired;
	int rc;

	set_up();
	inject(n);
	rc = s->fn();
	fired = injected();
	if (!fired) {
		if (rc && rc != s->ok)
			wrong(s, n, "fails without an injected failure", rc);
	} else if (!rc || rc == s->ok) {
		++*survived;
	} else {
		++*failures;
		if (rc != -ENOMEM && rc != -EFAULT && rc != s->also)
			wrong(s, n, "says", rc);
		/* what failed was undone: once more, and it works */
		rc = s->once && rc == -EFAULT ? 0 : s->fn();
		if (rc && rc != s->ok)
			wrong(s, n, "does not work after it failed", rc);
	}
	take_down();
	if (leaked())
		wrong(s, n, "leaks", 0);
	return fired;
}

static void run(const struct step *s)
{
	u32 n, failures = 0, survived = 0;

	for (n = 1; n < MAX_N && bad < 50; n++)
		if (!one(s, n, &failures, &survived))
			break;
	total += n - 1;
	printf("failslab: %-28s %3u injected: %u failed, %u got along\n", s->name, n - 1, failures,
	       survived);
	fflush(stdout);
}

static void on_bus(int sig)
{
	(void)sig;
	siglongjmp(escape, 1);
}

int main(int argc, char **argv)
{
	u32 i;
	int k;

	if (!injection_init()) {
		printf("failslab: this kernel has no fault injection (failslab, fail_page_alloc, fail-nth): boot one that tools/debug-kernel made\n");
		return 77;
	}
	if (access("/dev/npuemu1", R_OK)) {
		printf("failslab: there is no /dev/npuemu1: load the module with at least 2 devices\n");
		return 2;
	}
	signal(SIGBUS, on_bus);
	for (i = 0; steps[i].name; i++) {
		bool want = argc < 2;

		for (k = 1; k < argc; k++)
			want |= !!strstr(steps[i].name, argv[k]);
		if (want)
			run(&steps[i]);
	}
	if (!total) {
		printf("failslab: nothing was made to fail\n");
		bad++;
	}
	printf("note: failslab: %u failures injected, %u wrong\n", total, bad);
	return !!bad;
}
