// SPDX-License-Identifier: MIT
/* The first process: forks the others, leads them through the rounds, adds up. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/cli.h"
#include "perf.h"

#define GRACE_MS	3000	/* for the others to leave after one failed */

struct crew {
	const struct npuemu_perf_opts *o;
	struct npuemu_perf_shared *sh;
	size_t sh_bytes;
	uint32_t n;			/* processes */
	pid_t pid[2 * NPUEMU_PERF_PAIRS];
	int fd[2 * NPUEMU_PERF_PAIRS];
	double ns_per_tick;
};

static void child(struct crew *c, uint32_t i, uint32_t pair, int boss, int mate)
{
	struct npuemu_perf_worker w;
	uint32_t j;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (j = 0; j < i; j++)
		close(c->fd[j]);
	memset(&w, 0, sizeof(w));
	w.o = c->o;
	w.sh = c->sh;
	w.res = &c->sh->r[i];
	w.other = &c->sh->r[pair];
	w.pair = pair;
	w.is_peer = i >= c->o->processes;
	w.boss = boss;
	w.mate = mate;
	exit(npuemu_perf_work(&w));
}

static int fork_one(struct crew *c, uint32_t i, uint32_t pair, int mate, int other_mate)
{
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		return -errno;
	fflush(NULL);
	c->pid[i] = fork();
	if (c->pid[i] < 0)
		return -errno;
	if (!c->pid[i]) {
		close(sv[0]);
		if (other_mate >= 0)
			close(other_mate);
		child(c, i, pair, sv[1], mate);
	}
	close(sv[1]);
	c->fd[i] = sv[0];
	c->n = i + 1;
	c->sh->r[i].pid = c->pid[i];
	return 0;
}

/* Initiators come first, then their peers; the socket of a pair joins two. */
static int fork_all(struct crew *c)
{
	uint32_t pairs = c->o->processes, i;
	int mates[NPUEMU_PERF_PAIRS][2], rc = 0;

	for (i = 0; i < pairs; i++) {
		mates[i][0] = -1;
		mates[i][1] = -1;
		if (!c->o->self &&
		    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, mates[i]))
			return -errno;
	}
	for (i = 0; i < pairs && !rc; i++)
		rc = fork_one(c, i, i, mates[i][0], mates[i][1]);
	for (i = 0; i < pairs && !rc && !c->o->self; i++)
		rc = fork_one(c, pairs + i, i, mates[i][1], mates[i][0]);
	for (i = 0; i < pairs && !c->o->self; i++) {
		close(mates[i][0]);
		close(mates[i][1]);
	}
	return rc;
}

/* Wait until every process said something: 0, -1 after a failure, 1 when
 * @timeout_ms passed first.  @said remembers who did.
 */
static int hear_all(struct crew *c, char *said, int timeout_ms)
{
	int64_t end = npuemu_now_ns() + (int64_t)timeout_ms * 1000000, left;
	struct pollfd p[2 * NPUEMU_PERF_PAIRS];
	uint32_t i, missing;
	char what;

	for (;;) {
		missing = 0;
		for (i = 0; i < c->n; i++) {
			p[i].fd = said[i] ? -1 : c->fd[i];
			p[i].events = POLLIN;
			p[i].revents = 0;
			missing += !said[i];
		}
		if (!missing)
			return 0;
		left = timeout_ms < 0 ? -1 : (end - npuemu_now_ns() + 999999) / 1000000;
		if (timeout_ms >= 0 && left <= 0)
			return 1;
		if (poll(p, c->n, (int)left) <= 0)
			continue;
		for (i = 0; i < c->n; i++) {
			if (!p[i].revents)
				continue;
			if (recv(c->fd[i], &what, 1, 0) != 1 || what == 'E')
				return -1;
			said[i] = 1;
		}
	}
}

static int all_said(struct crew *c)
{
	char said[2 * NPUEMU_PERF_PAIRS] = { 0 };

	return hear_all(c, said, -1);
}

static void tell_all(struct crew *c, const void *what, size_t bytes)
{
	uint32_t i;

	for (i = 0; i < c->n; i++)
		if (send(c->fd[i], what, bytes, MSG_NOSIGNAL) < 0)
			continue;	/* seen when it is heard */
}

/* One size, once. */
static int one_round(struct crew *c, struct npuemu_perf_round *round)
{
	char said[2 * NPUEMU_PERF_PAIRS] = { 0 };
	int ms, rc;

	atomic_store(&c->sh->stop, 0);
	tell_all(c, round, sizeof(*round));
	round->index++;
	if (all_said(c))
		return -1;
	tell_all(c, "G", 1);
	if (c->o->iterations)
		return all_said(c);
	ms = (int)(c->o->seconds * 1000 / c->o->repeats);
	/* who only answers may be done already, who measures is not */
	rc = hear_all(c, said, ms > 0 ? ms : 1);
	atomic_store(&c->sh->stop, 1);
	return rc <= 0 ? rc : hear_all(c, said, -1);
}

struct samples {
	double p50[NPUEMU_PERF_MAX_REPEATS];
	double p99[NPUEMU_PERF_MAX_REPEATS];
	double rate[NPUEMU_PERF_MAX_REPEATS];
	double sum_ns;
};

static void add_latency(const struct crew *c, int repeat, struct samples *s,
			struct npuemu_hist *all, struct npuemu_perf_row *row)
{
	double unit = c->ns_per_tick;
	uint32_t i;

	if (c->o->test->peer_latency)
		unit /= 2;	/* one way */
	memset(all, 0, sizeof(*all));
	for (i = 0; i < c->o->processes; i++)
		npuemu_hist_merge(all, &c->sh->r[i].hist);
	s->p50[repeat] = (double)npuemu_hist_at(all, 500) * unit;
	s->p99[repeat] = (double)npuemu_hist_at(all, 990) * unit;
	s->sum_ns += (double)all->sum * unit;
	if ((double)all->max * unit > row->max_ns)
		row->max_ns = (double)all->max * unit;
	if (!repeat || (double)all->min * unit < row->min_ns)
		row->min_ns = (double)all->min * unit;
}

static void add_rate(const struct crew *c, int repeat, struct samples *s,
		     struct npuemu_perf_row *row)
{
	const struct npuemu_perf_result *r = c->sh->r;
	int64_t start = r[0].start_ns, end = r[0].end_ns;
	uint64_t count = 0;
	uint32_t i;

	for (i = 0; i < c->o->processes; i++) {
		count += r[i].count;
		if (r[i].start_ns < start)
			start = r[i].start_ns;
		if (r[i].end_ns > end)
			end = r[i].end_ns;
	}
	row->count += count;
	row->seconds += (double)(end - start) / 1e9;
	s->rate[repeat] = end > start ? (double)count * 1e9 / (double)(end - start) : 0;
}

static int one_size(struct crew *c, struct npuemu_perf_round *round,
		    struct npuemu_perf_row *row)
{
	static struct npuemu_hist all;
	struct samples s;
	int k, n = (int)c->o->repeats;

	memset(&s, 0, sizeof(s));
	memset(row, 0, sizeof(*row));
	row->size = round->size;
	for (k = 0; k < n; k++) {
		if (one_round(c, round))
			return -1;
		add_rate(c, k, &s, row);
		add_latency(c, k, &s, &all, row);
	}
	row->p50_ns = npuemu_median(s.p50, n);
	row->p99_ns = npuemu_median(s.p99, n);
	row->rate = npuemu_median(s.rate, n);
	row->rate_min = s.rate[0];	/* sorted by now */
	row->rate_max = s.rate[n - 1];
	row->mean_ns = row->count ? s.sum_ns / (double)row->count : 0;
	return 0;
}

static void leave(struct crew *c)
{
	struct npuemu_perf_round last = { .last = 1 };

	tell_all(c, &last, sizeof(last));
}

static void died(struct crew *c, uint32_t i, int status)
{
	struct npuemu_perf_result *r = &c->sh->r[i];

	if (!WIFSIGNALED(status) || r->msg[0])
		return;
	r->rc = NPUEMU_EXIT_RUNTIME;
	snprintf(r->msg, sizeof(r->msg), "process %d (%s %u) was killed by signal %d",
		 (int)c->pid[i], i < c->o->processes ? "initiator" : "peer",
		 i < c->o->processes ? i : i - c->o->processes, WTERMSIG(status));
}

/* Collect every process; those that do not leave in time are ended. */
static void reap_all(struct crew *c)
{
	int64_t end = npuemu_now_ns() + GRACE_MS * 1000000ll;
	uint32_t i;
	int status;
	pid_t got;

	for (i = 0; i < c->n; i++) {
		while (!(got = waitpid(c->pid[i], &status, WNOHANG))) {
			if (npuemu_now_ns() > end)
				break;
			poll(NULL, 0, 2);
		}
		if (got == c->pid[i]) {
			died(c, i, status);
			continue;
		}
		npuemu_cli_say("process %d does not leave; ending it", (int)c->pid[i]);
		kill(c->pid[i], SIGKILL);
		waitpid(c->pid[i], NULL, 0);
	}
}

/* Say what went wrong.  Several may have something to say; wrong data weighs
 * most, since the rest may follow from it.
 */
static int explain(struct crew *c)
{
	int rc = NPUEMU_EXIT_RUNTIME;
	uint32_t i, said = 0;

	for (i = 0; i < c->n; i++) {
		if (!c->sh->r[i].msg[0])
			continue;
		npuemu_cli_say("%s", c->sh->r[i].msg);
		if (!said++ || c->sh->r[i].rc == NPUEMU_EXIT_DATA)
			rc = c->sh->r[i].rc;
	}
	if (!said)
		npuemu_cli_say("a process left without saying why");
	return rc;
}

static int lead(struct crew *c)
{
	struct npuemu_perf_row row[NPUEMU_PERF_SIZES];
	struct npuemu_perf_round round;
	double cost = (double)npuemu_ticks_cost() * c->ns_per_tick;
	int i, rc;

	memset(&round, 0, sizeof(round));
	rc = fork_all(c);
	if (rc) {
		npuemu_cli_say("cannot start a process: %s", strerror(-rc));
	} else {
		rc = all_said(c);
		for (i = 0; i < c->o->sizes && !rc; i++) {
			round.size = (uint32_t)c->o->size[i];
			rc = one_size(c, &round, &row[i]);
		}
	}
	if (rc)
		atomic_store(&c->sh->abort, 1);
	leave(c);
	for (i = 0; rc && i < (int)c->n; i++)
		shutdown(c->fd[i], SHUT_WR);
	reap_all(c);
	if (rc)
		return explain(c);
	npuemu_perf_report(c->o, c->sh, row, c->o->sizes, cost);
	return ferror(stdout) ? NPUEMU_EXIT_RUNTIME : NPUEMU_EXIT_OK;
}

int npuemu_perf_run(const struct npuemu_perf_opts *o, double ns_per_tick)
{
	struct crew c;
	uint32_t i;
	int rc;

	memset(&c, 0, sizeof(c));
	c.o = o;
	c.ns_per_tick = ns_per_tick;
	c.sh_bytes = sizeof(*c.sh) + 2 * o->processes * sizeof(c.sh->r[0]);
	c.sh = mmap(NULL, c.sh_bytes, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c.sh == MAP_FAILED) {
		npuemu_cli_say("out of memory: %s", strerror(errno));
		return NPUEMU_EXIT_RUNTIME;
	}
	rc = lead(&c);
	for (i = 0; i < c.n; i++)
		close(c.fd[i]);
	munmap(c.sh, c.sh_bytes);
	return rc;
}
