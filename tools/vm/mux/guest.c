// SPDX-License-Identifier: MIT
/*
 * npuemu-vm-guest PORT COMMAND [ARGS]: runs COMMAND in the guest, with its
 * stdin, stdout, stderr and exit code carried over PORT to npuemu-vm-host.
 * Linked statically; started by the guest's init script.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>

#include "mux.h"

/* A tty drops what does not fit into its 4 KiB line buffer; a port blocks. */
#define PORT_WINDOW 65536u
#define TTY_WINDOW 2048u

struct guest {
	int port;
	int in;			/* to COMMAND; -1 when closed */
	int out, err;		/* from COMMAND; -1 at the end */
	int child;		/* tells of SIGCHLD; -1 when COMMAND has ended */
	pid_t pid;
	int code;
	bool in_eof;		/* no more will come: close in once it has all */
	bool bye;

	char pending[PORT_WINDOW];	/* stdin that COMMAND has not taken yet */
	size_t pending_len;

	char rx[2 * (sizeof(struct npuemu_vm_frame) + NPUEMU_VM_CHUNK)];
	size_t rx_len;
};

static struct guest g;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void open_port(const char *path)
{
	struct termios tio;
	uint32_t window = PORT_WINDOW;

	g.port = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (g.port < 0)
		die(path);
	if (!tcgetattr(g.port, &tio)) {
		cfmakeraw(&tio);
		cfsetspeed(&tio, B115200);
		tio.c_cflag |= CLOCAL | CREAD;
		if (tcsetattr(g.port, TCSANOW, &tio))
			die(path);
		window = TTY_WINDOW;
	}
	if (npuemu_vm_write(g.port, NPUEMU_VM_HELLO, sizeof(NPUEMU_VM_HELLO) - 1) ||
	    npuemu_vm_send(g.port, NPUEMU_VM_CREDIT, window, NULL))
		die(path);
}

static void start(char **argv)
{
	int in[2], out[2], err[2];
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	g.child = signalfd(-1, &chld, SFD_CLOEXEC);
	if (g.child < 0 || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		die("npuemu-vm-guest: pipes");
	g.pid = fork();
	if (g.pid < 0)
		die("npuemu-vm-guest: fork");
	if (!g.pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		sigprocmask(SIG_UNBLOCK, &chld, NULL);
		setsid();
		execvp(argv[0], argv);
		dprintf(2, "npuemu-vm: cannot run %s in the guest: %s\n", argv[0],
			strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	close(in[0]);
	close(out[1]);
	close(err[1]);
	g.in = in[1];
	g.out = out[0];
	g.err = err[0];
	fcntl(g.in, F_SETFL, O_NONBLOCK);
	signal(SIGPIPE, SIG_IGN);
}

/* One line of a file of /proc/PID, without its end. */
static int read_line(const char *pid, const char *name, char *line, size_t room)
{
	char path[300];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, line, room - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return -1;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	return 0;
}

/* Not dprintf(): it asks for the file's position, which /dev/kmsg refuses to tell. */
static void say(int log, const char *pid, const char *comm, const char *where)
{
	char line[256];
	int n = snprintf(line, sizeof(line), "npuemu-vm: %s %s: %s\n", pid, comm, where);

	if (npuemu_vm_write(log, line, (size_t)n))
		perror("/dev/kmsg");
}

/* On request of the host, at its deadline: who sleeps where, into the kernel log. */
static void dump(void)
{
	int log = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	int key = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	if (log < 0 || key < 0 || !proc) {
		perror("npuemu-vm-guest: cannot log what blocks");
		return;
	}
	say(log, "deadline", "user processes", "where they sleep");
	while ((entry = readdir(proc))) {
		char args[64], comm[64], where[128];

		/* threads of the kernel have no arguments */
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    read_line(entry->d_name, "cmdline", args, sizeof(args)))
			continue;
		if (read_line(entry->d_name, "comm", comm, sizeof(comm)) ||
		    read_line(entry->d_name, "wchan", where, sizeof(where)))
			continue;
		say(log, entry->d_name, comm, where);
	}
	closedir(proc);
	/* tasks that cannot be interrupted, then what each CPU does */
	if (write(key, "w", 1) < 0 || write(key, "l", 1) < 0)
		perror("/proc/sysrq-trigger");
	close(key);
	close(log);
}

static void take_frame(const struct npuemu_vm_frame *frame, const char *data)
{
	switch (frame->type) {
	case NPUEMU_VM_STDIN:
		if (!frame->value) {
			g.in_eof = true;
		} else if (g.in >= 0 && frame->value <= sizeof(g.pending) - g.pending_len) {
			memcpy(g.pending + g.pending_len, data, frame->value);
			g.pending_len += frame->value;
		}
		break;
	case NPUEMU_VM_BYE:
		g.bye = true;
		break;
	case NPUEMU_VM_DUMP:
		dump();
		if (npuemu_vm_send(g.port, NPUEMU_VM_DUMPED, 0, NULL))
			die("npuemu-vm-guest: port");
		break;
	}
}

static void read_port(void)
{
	struct npuemu_vm_frame frame;
	size_t at = 0;
	ssize_t n = read(g.port, g.rx + g.rx_len, sizeof(g.rx) - g.rx_len);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		die("npuemu-vm-guest: the host is gone");
	g.rx_len += (size_t)n;
	while (g.rx_len - at >= sizeof(frame)) {
		size_t len;

		memcpy(&frame, g.rx + at, sizeof(frame));
		len = npuemu_vm_has_data(&frame) ? frame.value : 0;
		if (len > NPUEMU_VM_CHUNK) {
			fprintf(stderr, "npuemu-vm-guest: the line from the host is damaged\n");
			exit(1);
		}
		if (g.rx_len - at < sizeof(frame) + len)
			break;
		take_frame(&frame, g.rx + at + sizeof(frame));
		at += sizeof(frame) + len;
	}
	memmove(g.rx, g.rx + at, g.rx_len - at);
	g.rx_len -= at;
}

static void feed_command(void)
{
	ssize_t n = 0;

	if (g.pending_len) {
		n = write(g.in, g.pending, g.pending_len);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
	}
	if (n > 0) {
		g.pending_len -= (size_t)n;
		memmove(g.pending, g.pending + n, g.pending_len);
		if (npuemu_vm_send(g.port, NPUEMU_VM_CREDIT, (uint32_t)n, NULL))
			die("npuemu-vm-guest: port");
	}
	/* COMMAND closed its stdin, or there is no more to say */
	if (n < 0 || (g.in_eof && !g.pending_len)) {
		close(g.in);
		g.in = -1;
		g.pending_len = 0;
	}
}

static void forward(int *fd, enum npuemu_vm_type type)
{
	char data[NPUEMU_VM_CHUNK];
	ssize_t n = read(*fd, data, sizeof(data));

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		close(*fd);
		*fd = -1;
	} else if (npuemu_vm_send(g.port, type, (uint32_t)n, data)) {
		die("npuemu-vm-guest: port");
	}
}

static void reap(void)
{
	struct signalfd_siginfo info;
	int status;

	if (read(g.child, &info, sizeof(info)) < 0 && errno != EINTR)
		die("npuemu-vm-guest: signalfd");
	if (waitpid(g.pid, &status, WNOHANG) != g.pid)
		return;
	g.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	close(g.child);
	g.child = -1;
	/*
	 * The VM ends with COMMAND.  What it left behind would keep the pipes,
	 * and the module, open.
	 */
	kill(-1, SIGKILL);
}

static void serve(void)
{
	while (g.child >= 0 || g.out >= 0 || g.err >= 0) {
		struct pollfd fds[] = {
			{ .fd = g.port, .events = POLLIN },
			{ .fd = g.pending_len || g.in_eof ? g.in : -1, .events = POLLOUT },
			{ .fd = g.out, .events = POLLIN },
			{ .fd = g.err, .events = POLLIN },
			{ .fd = g.child, .events = POLLIN },
		};

		if (poll(fds, 5, -1) < 0) {
			if (errno == EINTR)
				continue;
			die("npuemu-vm-guest: poll");
		}
		if (fds[0].revents)
			read_port();
		if (fds[1].revents)
			feed_command();
		if (fds[2].revents)
			forward(&g.out, NPUEMU_VM_STDOUT);
		if (fds[3].revents)
			forward(&g.err, NPUEMU_VM_STDERR);
		if (fds[4].revents)
			reap();
	}
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: npuemu-vm-guest PORT COMMAND [ARGS]\n");
		return 2;
	}
	open_port(argv[1]);
	start(argv + 2);
	serve();
	if (npuemu_vm_send(g.port, NPUEMU_VM_EXIT, (uint32_t)g.code, NULL))
		die("npuemu-vm-guest: port");
	/* Going down now would take what QEMU has not read yet along. */
	while (!g.bye)
		read_port();
	return 0;
}
