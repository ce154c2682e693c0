// SPDX-License-Identifier: MIT
/*
 * Runs a command as an ordinary user would in a default container: another
 * uid, its own 64 MiB /dev/shm, its own pids, 1,024 files, 8 MiB of locked
 * memory, and no userfaultfd, io_uring, ptrace or pidfd_getfd.
 *
 * Usage: sandbox [--uid N] COMMAND [ARG]...
 *        sandbox --probe		says which of it works here
 *
 * The ids, the limits and the filter are a must.  Namespaces are not, since a
 * container that runs this may not be allowed to make any; what is missing is
 * then missing, and --probe says so.
 */
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_SANDBOX	125	/* the sandbox failed, not the command */
#define EXIT_LEFT	70	/* the command left processes behind */

#if defined(__x86_64__)
#define ARCH		AUDIT_ARCH_X86_64
#define FIRST_ALIEN	0x40000000u	/* x32 calls have numbers of their own */
#elif defined(__aarch64__)
#define ARCH		AUDIT_ARCH_AARCH64
#define FIRST_ALIEN	0xffffffffu
#else
#error "sandbox.c: add the audit architecture of this machine"
#endif

/* How much of a container there is, best first. */
static const struct level {
	unsigned long flags;
	const char *what;
} levels[] = {
	{ CLONE_NEWNS | CLONE_NEWPID, "own /dev/shm of 64 MiB, own pids" },
	{ CLONE_NEWNS, "own /dev/shm of 64 MiB, pids of the host" },
	{ CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID,
	  "own /dev/shm of 64 MiB, own pids, user namespace" },
	{ 0, "/dev/shm and pids of the host: no right to make namespaces" },
};

static const int forbidden[] = {
	SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter,
	SYS_io_uring_register, SYS_ptrace, SYS_pidfd_getfd,
};

#define FORBIDDEN	(sizeof(forbidden) / sizeof(forbidden[0]))

static uid_t uid = 1000;

static void __attribute__((__format__(__printf__, 1, 2), __noreturn__))
die(const char *fmt, ...)
{
	va_list ap;

	fputs("sandbox: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, ": %s\n", strerror(errno));
	_exit(EXIT_SANDBOX);
}

static void limit(int what, rlim_t most, const char *name)
{
	struct rlimit r;

	if (getrlimit(what, &r))
		die("getrlimit %s", name);
	if (r.rlim_max > most)
		r.rlim_max = most;
	r.rlim_cur = r.rlim_max;
	if (setrlimit(what, &r))
		die("setrlimit %s", name);
}

/* Forbidden calls give EPERM, as the filter of a container engine does. */
static void filter_calls(void)
{
	struct sock_filter code[6 + FORBIDDEN + 2], *c = code;
	struct sock_fprog prog = { .filter = code };
	const unsigned int load = BPF_LD | BPF_W | BPF_ABS;
	const unsigned int eq = BPF_JMP | BPF_JEQ | BPF_K;
	const unsigned int ge = BPF_JMP | BPF_JGE | BPF_K;
	const unsigned int ret = BPF_RET | BPF_K;

	*c++ = (struct sock_filter)BPF_STMT(load, offsetof(struct seccomp_data, arch));
	*c++ = (struct sock_filter)BPF_JUMP(eq, ARCH, 0, FORBIDDEN + 3);
	*c++ = (struct sock_filter)BPF_STMT(load, offsetof(struct seccomp_data, nr));
	*c++ = (struct sock_filter)BPF_JUMP(ge, FIRST_ALIEN, FORBIDDEN + 1, 0);
	for (size_t i = 0; i < FORBIDDEN; i++)
		*c++ = (struct sock_filter)BPF_JUMP(eq, (unsigned int)forbidden[i],
						    FORBIDDEN - i, 0);
	*c++ = (struct sock_filter)BPF_STMT(ret, SECCOMP_RET_ALLOW);
	*c++ = (struct sock_filter)BPF_STMT(ret, SECCOMP_RET_ERRNO | EPERM);
	prog.len = (unsigned short)(c - code);

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("no_new_privs");
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		die("seccomp filter");
}

/* Leave root behind; somebody else's ordinary user stays who he is. */
static void drop_root(void)
{
	if (geteuid() != 0)
		return;
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		die("becoming uid %u", (unsigned int)uid);
	errno = EPERM;
	if (setuid(0) == 0)
		die("uid %u can become root again", (unsigned int)uid);
}

static void __attribute__((__noreturn__)) run_command(char **argv, bool userns)
{
	/* A user namespace maps only the caller, under his own uid. */
	if (!userns)
		drop_root();
	/* After setuid, which clears it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	limit(RLIMIT_NOFILE, 1024, "NOFILE");
	limit(RLIMIT_MEMLOCK, 8 << 20, "MEMLOCK");
	limit(RLIMIT_CORE, 0, "CORE");
	filter_calls();
	execvp(argv[0], argv);
	die("%s", argv[0]);
}

static bool write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	bool ok;

	if (!f)
		return false;
	ok = fputs(text, f) >= 0;
	return !fclose(f) && ok;
}

static bool map_self(uid_t me, gid_t group)
{
	char map[64];

	snprintf(map, sizeof(map), "%u %u 1", (unsigned int)me, (unsigned int)me);
	if (!write_file("/proc/self/uid_map", map))
		return false;
	snprintf(map, sizeof(map), "%u %u 1", (unsigned int)group, (unsigned int)group);
	return write_file("/proc/self/setgroups", "deny") &&
	       write_file("/proc/self/gid_map", map);
}

static bool furnish(unsigned long flags, uid_t me, gid_t group)
{
	const unsigned long mnt = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	if ((flags & CLONE_NEWUSER) && !map_self(me, group))
		return false;
	if (!(flags & CLONE_NEWNS))
		return true;
	/* Nothing mounted here may show outside. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	if (mount("tmpfs", "/dev/shm", "tmpfs", mnt, "size=64m,mode=1777"))
		return false;
	return !(flags & CLONE_NEWPID) || !mount("proc", "/proc", "proc", mnt, NULL);
}

static int exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* With pids of our own, whoever is left is a descendant of the command. */
static bool anybody_left(void)
{
	for (int i = 0; i < 20; i++) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (kill(-1, 0) && errno == ESRCH)
			return false;
		usleep(50000);
	}
	return true;
}

/*
 * The first process inside: it collects orphans, and all die with it.
 * @report: a byte written there says that this level does not work; it closes
 * when the command starts.
 */
static void __attribute__((__noreturn__))
supervise(char **argv, unsigned long flags, int report, uid_t me, gid_t group)
{
	int status, code;
	pid_t pid, got;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!furnish(flags, me, group)) {
		if (write(report, "x", 1) != 1)
			die("report");
		_exit(EXIT_SANDBOX);
	}
	close(report);
	if (!argv)
		_exit(0);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		run_command(argv, flags & CLONE_NEWUSER);
	do {
		got = wait(&status);
	} while (got != pid && (got > 0 || errno == EINTR));
	code = got == pid ? exit_code(status) : EXIT_SANDBOX;
	if ((flags & CLONE_NEWPID) && anybody_left()) {
		fprintf(stderr, "sandbox: %s left processes behind\n", argv[0]);
		code = code ? code : EXIT_LEFT;
	}
	_exit(code);
}

/* True if the level works here; *@code is then the command's exit code. */
static bool try_level(unsigned long flags, char **argv, int *code)
{
	uid_t me = geteuid();
	gid_t group = getegid();
	int fds[2], status;
	char byte;
	pid_t pid;
	bool ok;

	if (pipe(fds))
		die("pipe");
	/* Like fork(): no stack is given. */
	pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid < 0) {
		close(fds[0]);
		close(fds[1]);
		return false;
	}
	if (!pid) {
		close(fds[0]);
		supervise(argv, flags, fds[1], me, group);
	}
	close(fds[1]);
	ok = read(fds[0], &byte, 1) == 0;
	close(fds[0]);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid");
	*code = exit_code(status);
	return ok;
}

int main(int argc, char **argv)
{
	bool probe = argc == 2 && !strcmp(argv[1], "--probe");
	int code = EXIT_SANDBOX;

	argv++;
	if (argc > 3 && !strcmp(argv[0], "--uid")) {
		uid = (uid_t)strtoul(argv[1], NULL, 10);
		argv += 2;
	}
	if (!argv[0] || (argv[0][0] == '-' && !probe) || !uid) {
		fputs("usage: sandbox [--uid N] COMMAND [ARG]...\n"
		      "       sandbox --probe\n", stderr);
		return EXIT_SANDBOX;
	}
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		/* There root would stay root, and only look like a user. */
		if ((levels[i].flags & CLONE_NEWUSER) && geteuid() == 0)
			continue;
		if (!try_level(levels[i].flags, probe ? NULL : argv, &code))
			continue;
		if (probe)
			printf("uid %u, %s\n", geteuid() ? geteuid() : uid, levels[i].what);
		return code;
	}
	errno = EAGAIN;
	die("no process could be started");
}
