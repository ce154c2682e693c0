// SPDX-License-Identifier: MIT
/* Signals, ends of ranks, and time: what makes a job end. */
#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"

static uint64_t ns(double seconds)
{
	return (uint64_t)(seconds * 1e9);
}

/* A rank that was not waited for is there, and so is its group: no pid is reused. */
void npuemu_run_signal_all(struct npuemu_run_job *j, int sig)
{
	uint32_t i;

	for (i = 0; i < j->size; i++)
		if (j->rank[i].running)
			kill(-j->rank[i].pid, sig);
}

void npuemu_run_stop(struct npuemu_run_job *j)
{
	if (j->stopping)
		return;
	j->stopping = 1;
	j->kill_ns = npuemu_run_now() + ns(j->o->grace);
	/* the user's signal asked them already */
	if (!j->user_signal)
		npuemu_run_signal_all(j, SIGTERM);
	npuemu_run_signal_all(j, SIGCONT);	/* a stopped one would not notice */
}

static void rank_ended(struct npuemu_run_job *j, struct npuemu_run_rank *r, int status,
		       const struct rusage *usage)
{
	r->running = 0;
	r->status = status;
	r->end_ns = npuemu_run_now();
	r->usage = *usage;
	r->stopped = j->stopping;
	j->guard.group[r->rank] = 0;
	j->running--;
	if (status && !j->stopping && j->culprit < 0)
		j->culprit = (int)r->rank;
	if (!j->running && j->timed_out)
		j->drain_ns = r->end_ns + ns(j->o->grace);
}

void npuemu_run_reap(struct npuemu_run_job *j)
{
	struct rusage usage;
	uint32_t i;
	int status;
	pid_t pid;

	for (;;) {
		pid = wait4(-1, &status, WNOHANG, &usage);
		if (pid <= 0)
			break;
		if (pid == j->guard.pid) {
			close(j->guard.fd);
			j->guard.pid = 0;
			continue;
		}
		for (i = 0; i < j->size; i++)
			if (j->rank[i].running && j->rank[i].pid == pid)
				rank_ended(j, &j->rank[i], status, &usage);
		/* anybody else was adopted from a rank */
	}
	if (j->culprit >= 0 && !j->o->keep_going)
		npuemu_run_stop(j);
}

/* Once is passed on, twice sets the clock, three times is enough. */
static void end_signal(struct npuemu_run_job *j, int sig)
{
	j->user_signal = sig;
	j->user_signals++;
	if (!j->running)
		j->give_up = 1;
	npuemu_run_signal_all(j, sig);
	npuemu_run_signal_all(j, SIGCONT);
	if (j->user_signals == 2)
		npuemu_run_stop(j);
	else if (j->user_signals > 2)
		j->kill_ns = npuemu_run_now();
}

/* The terminal stops the launcher alone: ranks have groups of their own. */
static void suspend(struct npuemu_run_job *j)
{
	sigset_t set;

	npuemu_run_signal_all(j, SIGSTOP);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);	/* here it stops */
	sigprocmask(SIG_BLOCK, &set, NULL);
	npuemu_run_signal_all(j, SIGCONT);
	j->in_paused = 0;
}

void npuemu_run_handle_signals(struct npuemu_run_job *j)
{
	struct signalfd_siginfo si;

	while (read(j->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		switch (si.ssi_signo) {
		case SIGCHLD:
			npuemu_run_reap(j);
			break;
		case SIGTSTP:
			suspend(j);
			break;
		case SIGCONT:
			npuemu_run_signal_all(j, SIGCONT);
			j->in_paused = 0;
			break;
		case SIGUSR1:
		case SIGUSR2:
			npuemu_run_signal_all(j, (int)si.ssi_signo);
			break;
		default:
			end_signal(j, (int)si.ssi_signo);
		}
	}
}

void npuemu_run_check_time(struct npuemu_run_job *j, uint64_t now)
{
	uint32_t i;

	if (!j->running)
		return;
	if (j->deadline_ns && now >= j->deadline_ns && !j->stopping) {
		j->timed_out = 1;
		npuemu_run_stop(j);
	}
	if (!j->kill_ns || now < j->kill_ns)
		return;
	for (i = 0; i < j->size; i++)
		j->rank[i].killed |= j->rank[i].running;
	npuemu_run_signal_all(j, SIGKILL);
	j->kill_ns = 0;
}
