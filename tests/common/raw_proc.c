// SPDX-License-Identifier: MIT
/* Children, descriptors on their way, and faults that are expected; see raw.h. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw.h"
#include "sys_spawn.h"

#define CHILDREN	64

static pid_t children[CHILDREN];

/* ---- Processes ---------------------------------------------------------------------- */

void raw_fork(struct raw_child *c, raw_child_fn fn, void *arg)
{
	int fds[2], i;

	for (i = 0; i < CHILDREN && children[i]; i++)
		;
	sys_true(i < CHILDREN, "too many children");
	sys_true(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "socketpair");
	fflush(NULL);
	c->pid = fork();
	sys_true(c->pid >= 0, "fork: %s", strerror(errno));
	if (!c->pid) {
		sys_in_child = true;
		memset(children, 0, sizeof(children));
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		fn(fds[1], arg);
		_exit(0);
	}
	close(fds[1]);
	c->fd = fds[0];
	children[i] = c->pid;
}

static void show(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		print_error("%s: %s", path, line);
	if (f)
		fclose(f);
}

/* What helps to find out why. */
static void show_hang(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stack", (int)pid);
	show(path);
	show("/sys/kernel/debug/npuemu/contexts");
	show("/sys/kernel/debug/npuemu/queues");
	show("/sys/kernel/debug/npuemu/engines");
}

static int child_end(struct raw_child *c)
{
	/* longer than the child itself waits for anything: it has more to say */
	int64_t deadline = npuemu_deadline_ms(SYS_PATIENCE_MS + 5000);
	int status = 0;

	while (waitpid(c->pid, &status, WNOHANG) != c->pid) {
		if (sys_retry(deadline))
			continue;
		show_hang(c->pid);
		sys_fail(__FILE__, __LINE__, "child %d does not end", (int)c->pid);
	}
	for (int i = 0; i < CHILDREN; i++)
		if (children[i] == c->pid)
			children[i] = 0;
	close(c->fd);
	return status;
}

void raw_join(struct raw_child *c)
{
	int status = child_end(c);

	sys_true(WIFEXITED(status) && !WEXITSTATUS(status), "child %d: %s %d", (int)c->pid,
		 WIFSIGNALED(status) ? "signal" : "exit code",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void raw_kill(struct raw_child *c)
{
	int status;

	kill(c->pid, SIGKILL);
	status = child_end(c);
	sys_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		 "child %d ended before it was killed: %s %d", (int)c->pid,
		 WIFSIGNALED(status) ? "signal" : "exit code",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void raw_kill_all(void)
{
	for (int i = 0; i < CHILDREN; i++) {
		if (!children[i])
			continue;
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
		children[i] = 0;
	}
}

void raw_send_fd(int channel, int fd)
{
	char ctl[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'f';
	struct iovec iov = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = ctl, .msg_controllen = sizeof(ctl),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	sys_true(sendmsg(channel, &m, MSG_NOSIGNAL) == 1, "sendmsg: %s", strerror(errno));
}

int raw_recv_fd(int channel)
{
	char ctl[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = ctl, .msg_controllen = sizeof(ctl),
	};
	struct pollfd p = { .fd = channel, .events = POLLIN };
	int fd;

	sys_true(poll(&p, 1, SYS_PATIENCE_MS) == 1, "no descriptor came");
	sys_true(recvmsg(channel, &m, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&m),
		 "no descriptor came");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

void raw_become(uid_t uid)
{
	raw_is(raw_sys(setgid(uid)), 0);
	raw_is(raw_sys(setuid(uid)), 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* ---- Memory that may fault ------------------------------------------------------------ */

static __thread sigjmp_buf on_fault;

static void fault(int sig)
{
	siglongjmp(on_fault, sig);
}

int raw_touch(volatile void *p, bool write)
{
	struct sigaction act = { .sa_handler = fault }, bus, segv;
	volatile char *c = p;
	int sig;

	sigaction(SIGBUS, &act, &bus);
	sigaction(SIGSEGV, &act, &segv);
	sig = sigsetjmp(on_fault, 1);
	if (!sig) {
		if (write)
			*c = *c;
		else
			(void)*c;
	}
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	return sig;
}
