// SPDX-License-Identifier: MIT
/* The launcher at work: one poll() for everything, until the job has ended. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"

#define QUIET_MS	500

enum { FD_SIGNAL, FD_SINK, FD_STDIN = FD_SINK + 2, FD_TO_RANK, FD_RANKS };

static int streams_open(const struct npuemu_run_job *j)
{
	uint32_t i;

	for (i = 0; i < j->size; i++)
		if (j->rank[i].stream[0].fd >= 0 || j->rank[i].stream[1].fd >= 0)
			return 1;
	return 0;
}

static int queued(const struct npuemu_run_job *j)
{
	return j->sink[0].head != j->sink[0].tail || j->sink[1].head != j->sink[1].tail;
}

static void close_streams(struct npuemu_run_job *j, int which)
{
	uint32_t i;

	for (i = 0; i < j->size; i++)
		npuemu_run_close(j, &j->rank[i], which);
}

/* ---- A terminal as the input of rank 0 ---------------------------------------------- */

static void close_input(struct npuemu_run_job *j)
{
	close(j->in_fd);
	j->in_fd = -1;
}

static void read_input(struct npuemu_run_job *j)
{
	ssize_t n = read(STDIN_FILENO, j->in_buf, sizeof(j->in_buf));

	j->in_head = 0;
	j->in_tail = n > 0 ? (size_t)n : 0;
	if (n < 0 && errno == EINTR)
		return;
	if (n < 0 && errno == EIO)
		j->in_paused = 1;	/* in the background: until SIGCONT */
	else if (n <= 0)
		close_input(j);
}

static void write_input(struct npuemu_run_job *j)
{
	ssize_t n = write(j->in_fd, j->in_buf + j->in_head, j->in_tail - j->in_head);

	if (n >= 0)
		j->in_head += (size_t)n;
	else if (errno != EINTR)
		close_input(j);
}

/* ---- poll() --------------------------------------------------------------------------- */

static void watch(struct pollfd *p, int fd, short events, int wanted)
{
	p->fd = wanted ? fd : -1;
	p->events = events;
	p->revents = 0;
}

static nfds_t prepare(const struct npuemu_run_job *j, struct pollfd *p)
{
	int pending = j->in_head != j->in_tail;
	nfds_t n = FD_RANKS;
	uint32_t i;
	int k;

	watch(&p[FD_SIGNAL], j->signal_fd, POLLIN, 1);
	for (k = 0; k < 2; k++)
		watch(&p[FD_SINK + k], j->sink[k].fd, POLLOUT, j->sink[k].head != j->sink[k].tail);
	watch(&p[FD_STDIN], STDIN_FILENO, POLLIN, j->in_fd >= 0 && !j->in_paused && !pending);
	/* without pending bytes too: to see that it was closed */
	watch(&p[FD_TO_RANK], j->in_fd, pending ? POLLOUT : 0, j->in_fd >= 0);
	for (i = 0; i < j->size; i++)
		for (k = 0; k < 2; k++)
			watch(&p[n++], j->rank[i].stream[k].fd, POLLIN,
			      !npuemu_run_sink_full(&j->sink[k]));
	return n;
}

static int sooner(int ms, uint64_t when, uint64_t now)
{
	uint64_t left;

	if (!when)
		return ms;
	left = when > now ? (when - now) / 1000000 + 1 : 0;
	if (left > 3600000)
		left = 3600000;
	return ms < 0 || (int)left < ms ? (int)left : ms;
}

static int how_long(const struct npuemu_run_job *j, uint64_t now)
{
	int ms = -1;

	if (j->running) {
		ms = sooner(ms, j->kill_ns, now);
		return j->stopping ? ms : sooner(ms, j->deadline_ns, now);
	}
	ms = sooner(ms, j->drain_ns, now);
	if (!queued(j) && (ms < 0 || ms > QUIET_MS))
		ms = QUIET_MS;
	return ms;
}

/* The output takes no more. */
static void sink_broke(struct npuemu_run_job *j, int which, int err)
{
	close_streams(j, which);	/* what writes on gets a SIGPIPE of its own */
	if (err == EPIPE)
		return;
	npuemu_cli_failed(-err, "cannot write to standard %s", which ? "error" : "output");
	j->failure = NPUEMU_EXIT_RUNTIME;
	npuemu_run_stop(j);
}

static void serve(struct npuemu_run_job *j, const struct pollfd *p)
{
	int k, err;
	uint32_t i;

	if (p[FD_SIGNAL].revents)
		npuemu_run_handle_signals(j);
	for (k = 0; k < 2; k++) {
		err = p[FD_SINK + k].revents ? npuemu_run_flush(&j->sink[k]) : 0;
		if (err)
			sink_broke(j, k, err);
	}
	if (p[FD_STDIN].revents && j->in_fd >= 0)
		read_input(j);
	if (p[FD_TO_RANK].revents & (POLLERR | POLLNVAL))
		close_input(j);
	else if (p[FD_TO_RANK].revents & POLLOUT)
		write_input(j);
	for (i = 0; i < j->size; i++)
		for (k = 0; k < 2; k++)
			if (p[FD_RANKS + 2 * i + (uint32_t)k].revents &&
			    j->rank[i].stream[k].fd >= 0)
				npuemu_run_take(j, &j->rank[i], k);
}

/* All ranks have ended.  What they left behind must not hold the pipes open. */
static int drained(struct npuemu_run_job *j, int *swept)
{
	if (j->running)
		return 0;
	if (!*swept)
		npuemu_run_sweep(j);
	*swept = 1;
	return j->give_up || (!streams_open(j) && !queued(j)) ||
	       (j->drain_ns && npuemu_run_now() >= j->drain_ns);
}

void npuemu_run_loop(struct npuemu_run_job *j)
{
	struct pollfd *p = calloc(FD_RANKS + 2 * (size_t)j->size, sizeof(*p));
	int n, swept = 0;
	uint64_t now;

	if (!p) {
		j->failure = npuemu_cli_failed(-ENOMEM, "no memory for %u ranks", j->size);
		return;
	}
	while (!drained(j, &swept)) {
		now = npuemu_run_now();
		npuemu_run_check_time(j, now);
		n = poll(p, prepare(j, p), how_long(j, now));
		if (n > 0)
			serve(j, p);
		if (n || j->running || queued(j))
			continue;
		/* somebody out of reach holds a pipe, and has nothing to say */
		close_streams(j, 0);
		close_streams(j, 1);
	}
	close_streams(j, 0);
	close_streams(j, 1);
	if (j->in_fd >= 0)
		close_input(j);
	free(p);
}
