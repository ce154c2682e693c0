// SPDX-License-Identifier: MIT
/*
 * npuemu-vm-host STATUS LOG DEADLINE BOOT QEMU [ARGS]: runs QEMU and carries
 * stdin, stdout, stderr and the exit code of the guest's COMMAND.  Ends QEMU at
 * the deadline (seconds), on a signal, when the guest has not come up within
 * BOOT seconds, and when its own parent dies.  QEMU's messages go to LOG; how it
 * ended goes to STATUS as shell assignments: state (exit, died, noboot, timeout
 * or signal), code, boot_ms, run_ms, total_ms.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "mux.h"

/* What the guest gets to write into the log where it hangs; it says when it has. */
#define DUMP_MS 10000

struct host {
	int mux;
	pid_t qemu;
	uint64_t start, deadline, boot_limit;	/* ms */
	uint64_t dump_limit;			/* 0: the guest has not been asked */
	bool dumped;
	uint64_t hello, exit;			/* when they came; 0: not yet */
	uint64_t credit;
	bool in_eof;
	int code;

	char rx[2 * (sizeof(struct npuemu_vm_frame) + NPUEMU_VM_CHUNK)];
	size_t rx_len;
};

static struct host h;
static _Atomic int got_signal;

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void on_signal(int sig)
{
	if (sig != SIGALRM)
		got_signal = sig;
}

/* The alarm ticks only to get writes to a stuck stdout out of the kernel. */
static void setup_signals(void)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, 0 };
	struct itimerval tick = { { 0, 200000 }, { 0, 200000 } };
	struct sigaction sa = { .sa_handler = on_signal };

	for (size_t i = 0; sigs[i]; i++)
		sigaction(sigs[i], &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	setitimer(ITIMER_REAL, &tick, NULL);
}

static void start_qemu(const char *log, int argc, char **argv)
{
	static char option[] = "-chardev";
	char chardev[64];
	char **args = calloc((size_t)argc + 3, sizeof(*args));
	int pair[2];

	if (!args || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		perror("npuemu-vm-host");
		exit(126);
	}
	memcpy(args, argv, (size_t)argc * sizeof(*args));
	snprintf(chardev, sizeof(chardev), "socket,id=mux,fd=%d", pair[1]);
	args[argc] = option;
	args[argc + 1] = chardev;
	h.qemu = fork();
	if (h.qemu < 0) {
		perror("npuemu-vm-host: fork");
		exit(126);
	}
	if (!h.qemu) {
		int null = open("/dev/null", O_RDONLY);
		int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

		/* no terminal: ^C is for us to handle; and never outlive us */
		setsid();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (null < 0 || fd < 0 || dup2(null, 0) < 0 || dup2(fd, 1) < 0 ||
		    dup2(fd, 2) < 0 || fcntl(pair[1], F_SETFD, 0))
			_exit(126);
		execvp(args[0], args);
		dprintf(2, "%s: %s\n", args[0], strerror(errno));
		_exit(126);
	}
	close(pair[1]);
	h.mux = pair[0];
	free(args);
}

static void finish(const char *status, const char *state, int code)
{
	uint64_t end = now_ms();
	uint64_t boot = h.hello ? h.hello - h.start : 0;
	uint64_t run = h.hello ? (h.exit ? h.exit : end) - h.hello : 0;
	FILE *f;

	kill(h.qemu, SIGKILL);
	waitpid(h.qemu, NULL, 0);
	f = fopen(status, "w");
	if (!f) {
		perror(status);
		exit(126);
	}
	fprintf(f, "state=%s\ncode=%d\nended=%d\nboot_ms=%llu\nrun_ms=%llu\ntotal_ms=%llu\n",
		state, code, h.exit != 0, (unsigned long long)boot, (unsigned long long)run,
		(unsigned long long)(end - h.start));
	exit(fclose(f) ? 126 : 0);
}

/* Ends with the reason, if there is one. */
static void check_limits(const char *status)
{
	uint64_t now = now_ms();

	if (got_signal)
		finish(status, "signal", 128 + got_signal);
	if (now >= h.deadline && !h.dump_limit) {
		h.dump_limit = now + DUMP_MS;
		if (!h.hello || h.exit || npuemu_vm_send(h.mux, NPUEMU_VM_DUMP, 0, NULL))
			finish(status, "timeout", 124);
	}
	if (h.dump_limit && (h.dumped || now >= h.dump_limit))
		finish(status, "timeout", 124);
	if (!h.hello && now >= h.boot_limit)
		finish(status, "noboot", 126);
}

/* To the user; may block for as long as the user likes, or the deadline. */
static void put(const char *status, int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		check_limits(status);
		if (n < 0 && errno == EAGAIN) {
			struct pollfd p = { .fd = fd, .events = POLLOUT };

			poll(&p, 1, 200);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)	/* nobody reads: what a program of the host would get */
			finish(status, "signal", 128 + SIGPIPE);
		data += n;
		len -= (size_t)n;
	}
}

static void take_frame(const char *status, const struct npuemu_vm_frame *frame,
		       const char *data)
{
	switch (frame->type) {
	case NPUEMU_VM_STDOUT:
		put(status, 1, data, frame->value);
		break;
	case NPUEMU_VM_STDERR:
		put(status, 2, data, frame->value);
		break;
	case NPUEMU_VM_CREDIT:
		h.credit += frame->value;
		break;
	case NPUEMU_VM_DUMPED:
		h.dumped = true;
		break;
	case NPUEMU_VM_EXIT:
		h.exit = now_ms();
		h.code = (int)frame->value;
		npuemu_vm_send(h.mux, NPUEMU_VM_BYE, 0, NULL);
		break;
	}
}

/* Skips to behind the guest's first words; 0: they have not come yet. */
static size_t find_hello(void)
{
	static const size_t len = sizeof(NPUEMU_VM_HELLO) - 1;
	char *at = memmem(h.rx, h.rx_len, NPUEMU_VM_HELLO, len);

	if (!at) {
		size_t keep = h.rx_len < len ? h.rx_len : len;

		memmove(h.rx, h.rx + h.rx_len - keep, keep);
		h.rx_len = keep;
		return 0;
	}
	h.hello = now_ms();
	return (size_t)(at - h.rx) + len;
}

/* False at the end of QEMU. */
static bool read_mux(const char *status)
{
	struct npuemu_vm_frame frame;
	size_t at = 0;
	ssize_t n = read(h.mux, h.rx + h.rx_len, sizeof(h.rx) - h.rx_len);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	h.rx_len += (size_t)n;
	if (!h.hello) {
		at = find_hello();
		if (!at)
			return true;
	}
	while (h.rx_len - at >= sizeof(frame)) {
		size_t len;

		memcpy(&frame, h.rx + at, sizeof(frame));
		len = npuemu_vm_has_data(&frame) ? frame.value : 0;
		if (len > NPUEMU_VM_CHUNK) {
			fprintf(stderr, "npuemu-vm: the line from the guest is damaged\n");
			return false;
		}
		if (h.rx_len - at < sizeof(frame) + len)
			break;
		take_frame(status, &frame, h.rx + at + sizeof(frame));
		at += sizeof(frame) + len;
	}
	memmove(h.rx, h.rx + at, h.rx_len - at);
	h.rx_len -= at;
	return true;
}

static void read_stdin(void)
{
	char data[NPUEMU_VM_CHUNK];
	size_t want = h.credit < sizeof(data) ? h.credit : sizeof(data);
	ssize_t n = read(0, data, want);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		n = 0;
		h.in_eof = true;
	}
	h.credit -= (uint64_t)n;
	npuemu_vm_send(h.mux, NPUEMU_VM_STDIN, (uint32_t)n, data);
}

int main(int argc, char **argv)
{
	pid_t parent = getppid();

	if (argc < 6) {
		fprintf(stderr, "usage: npuemu-vm-host STATUS LOG DEADLINE BOOT QEMU [ARGS]\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		return 126;
	h.start = now_ms();
	h.deadline = h.start + strtoull(argv[3], NULL, 10) * 1000;
	h.boot_limit = h.start + strtoull(argv[4], NULL, 10) * 1000;
	setup_signals();
	start_qemu(argv[2], argc - 5, argv + 5);
	for (;;) {
		bool want_in = h.credit && !h.in_eof && !h.exit;
		struct pollfd fds[] = {
			{ .fd = h.mux, .events = POLLIN },
			{ .fd = want_in ? 0 : -1, .events = POLLIN },
		};

		check_limits(argv[1]);
		if (poll(fds, 2, 200) < 0)
			continue;
		if (fds[0].revents && !read_mux(argv[1]))
			break;
		if (fds[1].revents)
			read_stdin();
	}
	if (h.exit)
		finish(argv[1], "exit", h.code);
	finish(argv[1], h.hello ? "died" : "noboot", h.hello ? 125 : 126);
}
