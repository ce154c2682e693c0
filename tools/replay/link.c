// SPDX-License-Identifier: MIT
/*
 * The other process: messages over the socket, noticing that it has died, and
 * the waits, which all look after it while they sleep.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "replay.h"

#define SLICE_MS	100	/* how long a wait sleeps between looks */
#define END_MS		5000	/* how long the child may take to end */
#define TICK_BYTES	(64u << 20)

static volatile sig_atomic_t caught;

static void on_signal(int sig)
{
	caught = sig;
}

/* So that ^C and kill leave nothing on the board: every wait ends, we close. */
void replay_catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
}

__attribute__((format(printf, 2, 0)))
static void say(const struct replay_link *l, const char *fmt, va_list ap)
{
	char text[1024];

	/* one write, as both processes have the same stderr; over the progress line */
	vsnprintf(text, sizeof(text), fmt, ap);
	fprintf(stderr, "%snpuemu-replay: %s: %s\n",
		isatty(STDERR_FILENO) ? "\r\033[K" : "", l->me, text);
}

void replay_say(const struct replay_link *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(l, fmt, ap);
	va_end(ap);
}

/* The other side's end of the socket is closed: it has exited, or is about to. */
static void say_gone(struct replay_link *l)
{
	siginfo_t si = { .si_pid = 0 };
	int64_t end = npuemu_deadline_ms(1000);

	if (l->gone)
		return;
	l->gone = true;
	if (!l->parent) {
		replay_say(l, "%s (pid %d) has died; ending", l->other, l->pid);
		return;
	}
	/* WNOWAIT: replay_end_child() reaps it */
	while (!waitid(P_PID, (id_t)l->pid, &si, WEXITED | WNOHANG | WNOWAIT) &&
	       !si.si_pid && npuemu_now_ns() < end)
		usleep(1000);
	if (!si.si_pid)
		replay_say(l, "%s (pid %d) has hung up; ending", l->other, l->pid);
	else if (si.si_code == CLD_EXITED)
		replay_say(l, "%s (pid %d) gave up with code %d; ending", l->other,
			   l->pid, si.si_status);
	else
		replay_say(l, "%s (pid %d) was killed by signal %d (%s); ending",
			   l->other, l->pid, si.si_status, strsignal(si.si_status));
}

/*
 * An error of ours may only be the echo of the other side's death, and then
 * that is the thing to report: give the news a moment to arrive.
 */
int replay_fail(struct replay_link *l, const char *fmt, ...)
{
	struct pollfd p = { .fd = l->fd, .events = POLLRDHUP };
	va_list ap;

	if (poll(&p, 1, 200) > 0 && p.revents & (POLLHUP | POLLRDHUP)) {
		say_gone(l);
		return -1;
	}
	va_start(ap, fmt);
	say(l, fmt, ap);
	va_end(ap);
	return -1;
}

int replay_send(struct replay_link *l, const struct replay_msg *m)
{
	if (send(l->fd, m, sizeof(*m), MSG_NOSIGNAL) == (ssize_t)sizeof(*m))
		return 0;
	return replay_fail(l, "cannot send to %s: %s", l->other, strerror(errno));
}

/*
 * Something has come while we work.  STOP means that the other side has said
 * why; anything else is left for replay_recv(), as prefill may be done early.
 */
static int look(struct replay_link *l)
{
	struct replay_msg m;
	ssize_t n;

	n = recv(l->fd, &m, sizeof(m), MSG_DONTWAIT | MSG_PEEK);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		say_gone(l);
	else if (n == (ssize_t)sizeof(m) && m.type != REPLAY_MSG_STOP)
		return 0;
	return -1;
}

int replay_check(struct replay_link *l)
{
	struct pollfd p = { .fd = l->fd, .events = POLLIN };

	l->work = 0;
	if (caught) {
		/* one of the two is enough to say so */
		if (l->parent)
			replay_say(l, "signal %d (%s): ending", (int)caught,
				   strsignal(caught));
		return -1;
	}
	if (poll(&p, 1, 0) <= 0)
		return 0;
	return look(l);
}

int replay_tick(struct replay_link *l, uint64_t bytes)
{
	l->work += bytes;
	if (l->work < TICK_BYTES && !caught)
		return 0;
	return replay_check(l);
}

static const char *const msg_name[] = {
	[REPLAY_MSG_SETUP] = "to set up",
	[REPLAY_MSG_HELLO] = "to be ready",
	[REPLAY_MSG_DONE] = "to finish",
	[REPLAY_MSG_STOP] = "to say that all is verified",
};

int replay_recv(struct replay_link *l, uint32_t type, struct replay_msg *m)
{
	int64_t end = npuemu_deadline_ms((int64_t)l->timeout_s * 1000);
	struct pollfd p = { .fd = l->fd, .events = POLLIN };
	ssize_t n;

	while (npuemu_now_ns() < end) {
		if (caught)
			return replay_check(l);
		if (poll(&p, 1, SLICE_MS) <= 0)
			continue;
		n = recv(l->fd, m, sizeof(*m), MSG_DONTWAIT);
		if (n == (ssize_t)sizeof(*m) && m->type == type)
			return 0;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			say_gone(l);
		else if (n != (ssize_t)sizeof(*m) || m->type != REPLAY_MSG_STOP)
			replay_say(l, "%s sent something unexpected; ending", l->other);
		return -1;
	}
	return replay_fail(l, "waited %u s for %s (pid %d) %s", l->timeout_s, l->other,
			   l->pid, msg_name[type]);
}

int replay_wait_word(struct replay_link *l, struct npuemu *ctx,
		     const volatile uint64_t *word, uint64_t value, const char *what)
{
	int64_t end = npuemu_deadline_ms((int64_t)l->timeout_s * 1000);
	int rc;

	for (;;) {
		rc = npuemu_wait_word(ctx, word, NPUEMU_CMP_GE, value,
				      npuemu_deadline_ms(SLICE_MS));
		if (!rc)
			return 0;
		if (rc != -ETIMEDOUT && rc != -EINTR)
			return replay_fail(l, "waiting for the %s %" PRIu64 ": %s", what,
					   value, npuemu_errmsg());
		if (replay_check(l))
			return -1;
		if (npuemu_now_ns() >= end)
			return replay_fail(l, "waited %u s for the %s %" PRIu64
				" of %s (pid %d); the notify word is %" PRIu64
				"; npuemu-smi shows what that process is doing",
				l->timeout_s, what, value, l->other, l->pid, *word);
	}
}

int replay_wait_cq(struct replay_link *l, struct npuemu_cq *cq, const char *what)
{
	int64_t end = npuemu_deadline_ms((int64_t)l->timeout_s * 1000);
	int rc;

	for (;;) {
		rc = npuemu_wait(cq, npuemu_deadline_ms(SLICE_MS));
		if (!rc)
			return 0;
		if (rc != -ETIMEDOUT && rc != -EINTR)
			return replay_fail(l, "waiting for the completion of %s: %s",
					   what, npuemu_errmsg());
		if (replay_check(l))
			return -1;
		if (npuemu_now_ns() >= end)
			return replay_fail(l, "waited %u s for the completion of %s",
					   l->timeout_s, what);
	}
}

int replay_end_child(struct replay_link *l)
{
	int64_t end = npuemu_deadline_ms(END_MS);
	int status = 0;
	pid_t pid;

	for (;;) {
		pid = waitpid(l->pid, &status, WNOHANG);
		if (pid)
			break;
		if (npuemu_now_ns() >= end) {
			replay_say(l, "%s (pid %d) does not end; killing it", l->other,
				   l->pid);
			kill(l->pid, SIGKILL);
			pid = waitpid(l->pid, &status, 0);
			break;
		}
		usleep(1000);
	}
	if (pid != l->pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}
