// SPDX-License-Identifier: MIT
/*
 * From the ranks' pipes to the launcher's output, a whole line at a time.
 *
 * A rank that writes faster than the output takes is made to wait, by its pipe: what
 * is queued here is bounded.  Writing never blocks the launcher, which has signals to
 * forward: a pipe that poll() found writable takes PIPE_BUF bytes at once.  (Making
 * the output non-blocking would make it so for everybody who shares it.)
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"

#define PIECE		65536u
#define QUEUE_MAX	(4u << 20)	/* more than this: no reading */
#define LINE_MAX_BYTES	(64u << 20)	/* a longer line is cut */

static void *must_grow(void *p, size_t bytes)
{
	p = realloc(p, bytes);
	if (p)
		return p;
	/* the ranks die with the launcher */
	npuemu_cli_say("no memory for %zu bytes of output that nobody takes", bytes);
	_exit(NPUEMU_EXIT_RUNTIME);
}

void npuemu_run_sinks(struct npuemu_run_job *j)
{
	const char *no_colour = getenv("NO_COLOR");
	struct stat st;
	int i;

	for (i = 0; i < 2; i++) {
		j->sink[i].fd = i ? STDERR_FILENO : STDOUT_FILENO;
		j->sink[i].whole = !fstat(j->sink[i].fd, &st) && S_ISREG(st.st_mode);
		j->sink[i].colour = isatty(j->sink[i].fd) && !(no_colour && *no_colour);
	}
}

int npuemu_run_sink_full(const struct npuemu_run_sink *s)
{
	return !s->broken && s->tail - s->head > QUEUE_MAX;
}

static void put(struct npuemu_run_sink *s, const char *p, size_t n)
{
	if (s->broken)
		return;
	if (s->head == s->tail) {
		s->head = 0;
		s->tail = 0;
	}
	if (s->room - s->tail < n && s->head) {
		memmove(s->buf, s->buf + s->head, s->tail - s->head);
		s->tail -= s->head;
		s->head = 0;
	}
	if (s->room - s->tail < n) {
		s->room = (s->tail + n) * 2;
		s->buf = must_grow(s->buf, s->room);
	}
	memcpy(s->buf + s->tail, p, n);
	s->tail += n;
}

/* To be called when the output can be written; 0, or the errno that ends it. */
int npuemu_run_flush(struct npuemu_run_sink *s)
{
	size_t n = s->tail - s->head;
	ssize_t done;

	if (!n || s->broken)
		return 0;
	if (n > PIPE_BUF && !s->whole)
		n = PIPE_BUF;
	done = write(s->fd, s->buf + s->head, n);
	if (done >= 0) {
		s->head += (size_t)done;
		return 0;
	}
	if (errno == EINTR || errno == EAGAIN)
		return 0;
	s->broken = errno;
	s->head = 0;
	s->tail = 0;
	return s->broken;
}

static void put_line(const struct npuemu_run_job *j, struct npuemu_run_sink *s, uint32_t rank,
		     const char *line, size_t n)
{
	static const char hue[] = { '2', '3', '6', '5', '4', '1' };
	char prefix[40];
	int len;

	if (!j->o->no_prefix) {
		if (s->colour)
			len = snprintf(prefix, sizeof(prefix), "\033[3%cm[%u]\033[0m ",
				       hue[rank % sizeof(hue)], rank);
		else
			len = snprintf(prefix, sizeof(prefix), "[%u] ", rank);
		put(s, prefix, (size_t)len);
	}
	put(s, line, n);
	if (!j->o->no_prefix && line[n - 1] != '\n')
		put(s, "\n", 1);
}

/* Every whole line of the buffer; with @all also the one without an end. */
static void put_lines(struct npuemu_run_job *j, struct npuemu_run_rank *r, int which, int all)
{
	struct npuemu_run_stream *st = &r->stream[which];
	char *line = st->buf, *end = st->buf + st->len, *nl;

	while (line < end) {
		nl = memchr(line + st->seen, '\n', (size_t)(end - line) - st->seen);
		st->seen = 0;
		if (!nl)
			break;
		put_line(j, &j->sink[which], r->rank, line, (size_t)(nl + 1 - line));
		line = nl + 1;
	}
	st->len = (size_t)(end - line);
	if (st->len && (all || st->len >= LINE_MAX_BYTES)) {
		put_line(j, &j->sink[which], r->rank, line, st->len);
		st->len = 0;
	}
	if (line != st->buf)
		memmove(st->buf, line, st->len);
	st->seen = st->len;
}

void npuemu_run_close(struct npuemu_run_job *j, struct npuemu_run_rank *r, int which)
{
	struct npuemu_run_stream *st = &r->stream[which];

	if (st->fd < 0)
		return;
	if (st->len)
		put_lines(j, r, which, 1);
	close(st->fd);
	free(st->buf);
	memset(st, 0, sizeof(*st));
	st->fd = -1;
}

/* To be called when the pipe can be read. */
void npuemu_run_take(struct npuemu_run_job *j, struct npuemu_run_rank *r, int which)
{
	struct npuemu_run_stream *st = &r->stream[which];
	ssize_t n;

	if (st->room - st->len < PIECE) {
		st->room = st->room ? st->room * 2 : 2 * PIECE;
		st->buf = must_grow(st->buf, st->room);
	}
	n = read(st->fd, st->buf + st->len, st->room - st->len);
	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		npuemu_run_close(j, r, which);
		return;
	}
	st->len += (size_t)n;
	put_lines(j, r, which, 0);
}
