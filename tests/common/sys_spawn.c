// SPDX-License-Identifier: MIT
/*
 * Child processes for the system tests.  A process with threads is no good
 * parent of processes that go on to use a library, and a sanitizer's runtime
 * forbids it; so a helper that never has a thread forks them on request.  It
 * forks twice and the test adopts the grandchild, being a subreaper: the child is
 * then the test's own to wait for.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys.h"
#include "sys_spawn.h"

#define CHILDREN_MAX	64

struct order {
	sys_child_fn fn;
	size_t bytes;
	char board[80];
	char machine[256];
	char arg[SYS_ARG_MAX];
};

bool sys_in_child;
static pid_t test_pid;
static int helper_fd = -1;
static pid_t children[CHILDREN_MAX];

static void __attribute__((__noreturn__)) run_child(const struct order *o, int fd)
{
	sys_in_child = true;
	while (getppid() != test_pid) {
		/* Or the test is gone, and nobody will adopt this. */
		if (kill(test_pid, 0))
			_exit(0);
		usleep(200);
	}
	/*
	 * The kernel gives an orphan its new parent first and looks for this signal then,
	 * under the lock that a signal to a group takes: after that it is not the old one's.
	 */
	kill(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != test_pid)
		_exit(0);
	setenv("NPUEMU_BOARD", o->board, 1);
	setenv("NPUEMU_MACHINE", o->machine, 1);
	o->fn(fd, o->arg);
	_exit(0);
}

static pid_t fork_twice(const struct order *o, int fd)
{
	int pipefd[2], status;
	pid_t pid, child = -1;

	if (pipe(pipefd))
		return -1;
	pid = fork();
	if (!pid) {
		child = fork();
		if (!child) {
			close(pipefd[0]);
			close(pipefd[1]);
			close(helper_fd);
			run_child(o, fd);
		}
		_exit(write(pipefd[1], &child, sizeof(child)) != sizeof(child));
	}
	close(pipefd[1]);
	if (pid < 0 || read(pipefd[0], &child, sizeof(child)) != sizeof(child))
		child = -1;
	close(pipefd[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return child;
}

static void __attribute__((__noreturn__)) serve(void)
{
	char ctl[CMSG_SPACE(sizeof(int))];
	struct order o;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != test_pid)
		_exit(0);
	for (;;) {
		struct iovec iov = { &o, sizeof(o) };
		struct msghdr m = {
			.msg_iov = &iov, .msg_iovlen = 1,
			.msg_control = ctl, .msg_controllen = sizeof(ctl),
		};
		pid_t child;
		int fd;

		if (recvmsg(helper_fd, &m, 0) != (ssize_t)sizeof(o) || !CMSG_FIRSTHDR(&m))
			_exit(0);
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
		child = fork_twice(&o, fd);
		close(fd);
		if (send(helper_fd, &child, sizeof(child), MSG_NOSIGNAL) != sizeof(child))
			_exit(0);
	}
}

void sys_spawn_start(void)
{
	int fds[2];
	pid_t pid;

	test_pid = getpid();
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
		perror("sys_start");
		exit(1);
	}
	pid = fork();
	if (pid < 0) {
		perror("sys_start: fork");
		exit(1);
	}
	helper_fd = fds[!pid];
	close(fds[!!pid]);
	if (!pid)
		serve();
}

static void send_order(const struct order *o, int fd)
{
	char ctl[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { (void *)o, sizeof(*o) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = ctl, .msg_controllen = sizeof(ctl),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	sys_true(sendmsg(helper_fd, &m, MSG_NOSIGNAL) == (ssize_t)sizeof(*o),
		 "no helper: %s", strerror(errno));
}

void sys_spawn(struct sys_child *c, sys_child_fn fn, const void *arg, size_t bytes)
{
	static struct order o;
	int fds[2], i;

	sys_true(!sys_in_child, "only the test has children");
	sys_true(bytes <= sizeof(o.arg), "argument of %zu bytes", bytes);
	memset(&o, 0, sizeof(o));
	o.fn = fn;
	o.bytes = bytes;
	snprintf(o.board, sizeof(o.board), "%s", getenv("NPUEMU_BOARD"));
	snprintf(o.machine, sizeof(o.machine), "%s", getenv("NPUEMU_MACHINE"));
	if (bytes)
		memcpy(o.arg, arg, bytes);
	sys_true(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "socketpair");
	send_order(&o, fds[1]);
	close(fds[1]);
	c->fd = fds[0];
	sys_true(recv(helper_fd, &c->pid, sizeof(c->pid), 0) == sizeof(c->pid) &&
		 c->pid > 0, "no child");
	for (i = 0; i < CHILDREN_MAX && children[i]; i++)
		;
	sys_true(i < CHILDREN_MAX, "too many children");
	children[i] = c->pid;
}

static void forget(pid_t pid)
{
	for (int i = 0; i < CHILDREN_MAX; i++)
		if (children[i] == pid)
			children[i] = 0;
}

/* Until the intermediate process is gone, the child is not yet ours. */
static pid_t wait_pid(pid_t pid, int *status)
{
	int64_t deadline = sys_deadline();
	pid_t got;

	do {
		got = waitpid(pid, status, WNOHANG);
		if (got == pid)
			return got;
	} while (sys_retry(deadline));
	return 0;
}

void sys_join(struct sys_child *c)
{
	int status = 0;

	sys_true(wait_pid(c->pid, &status) == c->pid, "child %d does not end", (int)c->pid);
	forget(c->pid);
	close(c->fd);
	sys_true(WIFEXITED(status) && !WEXITSTATUS(status), "child %d: %s %d", (int)c->pid,
		 WIFSIGNALED(status) ? "signal" : "exit code",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void sys_kill(struct sys_child *c)
{
	int status = 0;

	kill(c->pid, SIGKILL);
	sys_true(wait_pid(c->pid, &status) == c->pid, "child %d does not die", (int)c->pid);
	forget(c->pid);
	close(c->fd);
	sys_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		 "child %d ended before it was killed: %s %d", (int)c->pid,
		 WIFSIGNALED(status) ? "signal" : "exit code",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void sys_spawn_kill_all(void)
{
	int status;

	for (int i = 0; i < CHILDREN_MAX; i++) {
		if (!children[i])
			continue;
		kill(children[i], SIGKILL);
		wait_pid(children[i], &status);
		children[i] = 0;
	}
}

/* ---- Channels --------------------------------------------------------------- */

void sys_put(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		ssize_t got = send(fd, p, n, MSG_NOSIGNAL);

		if (got < 0 && errno == EINTR)
			continue;
		sys_true(got > 0, "the other end of the channel is gone");
		p += got;
		n -= (size_t)got;
	}
}

bool sys_try_get(int fd, void *data, size_t n)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char *p = data;

	while (n) {
		int ready = poll(&pfd, 1, SYS_PATIENCE_MS);
		ssize_t got;

		if (ready < 0 && errno == EINTR)
			continue;
		sys_true(ready > 0, "nothing came from the other end of the channel");
		got = recv(fd, p, n, 0);
		if (got <= 0)
			return false;
		p += got;
		n -= (size_t)got;
	}
	return true;
}

void sys_get(int fd, void *data, size_t n)
{
	sys_true(sys_try_get(fd, data, n), "the other end of the channel is gone");
}

void sys_go(int fd)
{
	sys_put(fd, "g", 1);
}

void sys_wait_go(int fd)
{
	char c;

	sys_get(fd, &c, 1);
	sys_eq(c, 'g');
}
