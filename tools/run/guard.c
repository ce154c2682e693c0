// SPDX-License-Identifier: MIT
/*
 * Nothing of a job is left behind.
 *
 * In the ordinary end the launcher kills what it adopted.  If the launcher itself is
 * killed, its ranks go with it, but not what they started: that is the guard's work.
 * It is a process of its own, out of reach of the terminal and of signals to the
 * launcher's group, and waits at a pipe for the launcher's end.  What belongs to the
 * job it knows by process group, and by NPUEMU_JOB in the environment.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"

#define ROUNDS		200
#define ROUND_MS	5

/* The whole file, up to @max bytes, NUL behind it; NULL if there is none. */
static char *slurp(pid_t pid, const char *name, size_t max, size_t *len)
{
	size_t room = 0;
	char path[64], *buf = NULL, *more;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	*len = 0;
	while (fd >= 0 && *len < max) {
		if (room - *len < 4096) {
			room = room ? room * 2 : 8192;
			more = realloc(buf, room);
			if (!more)
				break;
			buf = more;
		}
		n = read(fd, buf + *len, room - *len - 1);
		if (n <= 0)
			break;
		*len += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	if (buf)
		buf[*len] = '\0';
	return buf;
}

/* Alive, and a child of this process? */
static int is_child(pid_t pid)
{
	char *text, *p, state = 'Z';
	long parent = 0;
	size_t len;

	text = slurp(pid, "stat", 8191, &len);
	p = text ? strrchr(text, ')') : NULL;
	if (p && sscanf(p + 1, " %c %ld", &state, &parent) != 2)
		parent = 0;
	free(text);
	return parent == (long)getpid() && state != 'Z';
}

static int has_job(pid_t pid, const char *id)
{
	char want[96], *text, *p;
	size_t len, n;
	int found = 0;

	n = (size_t)snprintf(want, sizeof(want), "NPUEMU_JOB=%s", id) + 1;
	text = slurp(pid, "environ", 4 << 20, &len);
	for (p = text; p && !found && (size_t)(text + len - p) >= n; p++) {
		found = !memcmp(p, want, n) && (p == text || !p[-1]);
		p = memchr(p, 0, (size_t)(text + len - p));
		if (!p)
			break;
	}
	free(text);
	return found;
}

/* One kill for each process that belongs to the job; how many there were. */
static unsigned int kill_round(const struct npuemu_run_job *j, int adopted)
{
	unsigned int n = 0;
	struct dirent *e;
	pid_t pid;
	DIR *d;
	int fd;

	d = opendir("/proc");
	while (d && (e = readdir(d))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		pid = (pid_t)strtol(e->d_name, NULL, 10);
		if (pid == getpid() || pid == j->guard.pid)
			continue;
		/* first the handle, then the look: the number may be another's by then */
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (fd < 0)
			continue;
		if (adopted ? is_child(pid) : has_job(pid, j->id)) {
			syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
			n++;
		}
		close(fd);
	}
	if (d)
		closedir(d);
	return n;
}

void npuemu_run_sweep(const struct npuemu_run_job *j)
{
	int i;

	for (i = 0; i < ROUNDS && kill_round(j, 1); i++)
		poll(NULL, 0, ROUND_MS);
	/* the guard alone is left, if it is: its end is guard_stop()'s */
}

static void launcher_died(const struct npuemu_run_job *j)
{
	uint32_t i;
	int round;

	for (i = 0; i < j->size; i++)
		if (j->guard.group[i] > 1)
			kill(-j->guard.group[i], SIGKILL);
	npuemu_run_table_remove(j);
	for (round = 0; round < ROUNDS && kill_round(j, 0); round++)
		poll(NULL, 0, ROUND_MS);
}

static void be_guard(const struct npuemu_run_job *j, int fd)
{
	char word;
	ssize_t n;

	setsid();
	prctl(PR_SET_NAME, "npuemu-guard");
	if (chdir("/"))
		_exit(1);
	dup2(j->null_fd, STDIN_FILENO);
	dup2(j->null_fd, STDOUT_FILENO);
	dup2(j->null_fd, STDERR_FILENO);
	if (fd != 3)
		dup2(fd, 3);
	syscall(SYS_close_range, 4u, ~0u, 0);
	do {
		n = read(3, &word, 1);
	} while (n < 0 && errno == EINTR);
	if (!n)
		launcher_died(j);
	_exit(0);
}

int npuemu_run_guard_start(struct npuemu_run_job *j)
{
	size_t bytes = j->size * sizeof(*j->guard.group);
	void *shared;
	int fd[2];

	j->guard.fd = -1;
	shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || pipe2(fd, O_CLOEXEC))
		return npuemu_cli_failed(-errno, "cannot start the guard of the job");
	j->guard.group = shared;
	j->guard.fd = fd[1];
	j->guard.pid = fork();
	if (!j->guard.pid) {
		close(fd[1]);
		be_guard(j, fd[0]);
	}
	close(fd[0]);
	if (j->guard.pid > 0)
		return 0;
	j->guard.pid = 0;
	return npuemu_cli_failed(-errno, "cannot start the guard of the job");
}

void npuemu_run_guard_stop(struct npuemu_run_job *j)
{
	if (!j->guard.pid)
		return;
	if (write(j->guard.fd, "q", 1) != 1)
		npuemu_cli_say("the guard of the job was killed");
	close(j->guard.fd);
	waitpid(j->guard.pid, NULL, 0);
	munmap((void *)(uintptr_t)j->guard.group, j->size * sizeof(*j->guard.group));
}
