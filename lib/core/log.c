// SPDX-License-Identifier: MIT
/*
 * The log.  NPUEMU_LOG=error|warn|info|debug[:FILE] (default warn, stderr);
 * without it ASCEND_GLOBAL_LOG_LEVEL 0 debug, 1 info, 2 warn, 3 error, 4 none.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "core.h"

int npuemu_log_at = NPUEMU_LOG_WARN;
static int log_fd = STDERR_FILENO;

static const char *const names[] = { "error", "warn", "info", "debug" };

static void from_ascend(const char *v)
{
	if (v[0] >= '0' && v[0] <= '4' && !v[1])
		npuemu_log_at = NPUEMU_LOG_DEBUG - (v[0] - '0');
}

void npuemu_log_init(void)
{
	static int done;
	const char *v = npuemu_getenv("NPUEMU_LOG");
	size_t n;
	int i;

	if (__atomic_exchange_n(&done, 1, __ATOMIC_ACQ_REL))
		return;
	if (!v) {
		v = npuemu_getenv("ASCEND_GLOBAL_LOG_LEVEL");
		if (v)
			from_ascend(v);
		return;
	}
	n = strcspn(v, ":");
	for (i = 0; i < (int)ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == n && !memcmp(v, names[i], n))
			break;
	if (i < (int)ARRAY_SIZE(names))
		npuemu_log_at = i;
	if (v[n] == ':' && v[n + 1]) {
		int fd = open(v + n + 1, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

		if (fd >= 0)
			log_fd = fd;
	}
	if (i == (int)ARRAY_SIZE(names))
		npuemu_log_write(NPUEMU_LOG_WARN,
				 "NPUEMU_LOG=%s is not error, warn, info or debug; using warn", v);
}

void npuemu_log_write(int level, const char *fmt, ...)
{
	char line[768];
	struct timespec t;
	va_list ap;
	ssize_t r;
	int n, m;

	clock_gettime(CLOCK_MONOTONIC, &t);
	n = snprintf(line, sizeof(line), "npuemu[%d.%ld] %lld.%06ld %s: ", (int)getpid(),
		     (long)syscall(SYS_gettid), (long long)t.tv_sec, t.tv_nsec / 1000,
		     names[level]);
	va_start(ap, fmt);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	n += m;
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	/* one write a line: lines of several processes do not mix */
	r = write(log_fd, line, (size_t)n);
	(void)r;
}
