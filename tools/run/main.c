// SPDX-License-Identifier: MIT
/* npuemu-run: start ranks on this host, and see to their ends. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"

uint64_t npuemu_run_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Started without one of 0, 1 and 2, a pipe would get its number. */
static int open_std(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -errno;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

/* What was ignored when the launcher started (nohup, &) stays so, here and in ranks. */
static int take_signals(struct npuemu_run_job *j)
{
	static const int taken[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2,
				     SIGTSTP, SIGCONT };
	struct sigaction old, plain = { .sa_handler = SIG_DFL }, ignore = { .sa_handler = SIG_IGN };
	sigset_t blocked;
	size_t i;

	sigemptyset(&j->signals);
	sigaddset(&j->signals, SIGCHLD);
	sigaction(SIGCHLD, &plain, NULL);	/* ignored, ends would not be told */
	for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (!sigaction(taken[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaddset(&j->signals, taken[i]);
	blocked = j->signals;
	sigaddset(&blocked, SIGTTIN);		/* read() tells */
	sigprocmask(SIG_BLOCK, &blocked, &j->old_mask);
	sigaction(SIGPIPE, &ignore, &j->old_pipe);
	j->signal_fd = signalfd(-1, &j->signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (j->signal_fd < 0)
		return npuemu_cli_failed(-errno, "cannot watch for signals");
	return 0;
}

static int take_files(struct npuemu_run_job *j)
{
	struct rlimit want;
	uint64_t need = 2 * (uint64_t)j->size + 64;

	if (getrlimit(RLIMIT_NOFILE, &j->old_files))
		return npuemu_cli_failed(-errno, "cannot read the limit of open files");
	if (j->old_files.rlim_cur >= need)
		return 0;
	want = j->old_files;
	want.rlim_cur = want.rlim_max < need ? want.rlim_max : need;
	setrlimit(RLIMIT_NOFILE, &want);
	if (want.rlim_cur >= need)
		return 0;
	npuemu_cli_say("%u ranks need %llu open files, but the limit is %llu: raise it with ulimit -Hn",
		       j->size, (unsigned long long)need, (unsigned long long)want.rlim_cur);
	return NPUEMU_EXIT_RUNTIME;
}

static int make_output_dir(const struct npuemu_run_job *j)
{
	const char *dir = j->o->output_dir;

	if (!dir || !mkdir(dir, 0777) || errno == EEXIST)
		return 0;
	return npuemu_cli_failed(-errno, "cannot make the folder %s (--output-dir)", dir);
}

static int set_up(struct npuemu_run_job *j)
{
	int rc = npuemu_run_place(j);

	if (!rc)
		rc = take_files(j);
	if (!rc)
		rc = make_output_dir(j);
	if (!rc)
		rc = npuemu_run_port(j);
	if (!rc)
		rc = take_signals(j);
	if (!rc && prctl(PR_SET_CHILD_SUBREAPER, 1))
		rc = npuemu_cli_failed(-errno, "cannot adopt what ranks leave behind");
	if (!rc)
		rc = npuemu_run_table_write(j);
	if (!rc)
		rc = npuemu_run_guard_start(j);
	if (rc)
		npuemu_run_table_remove(j);
	return rc;
}

static int run(struct npuemu_run_job *j)
{
	uint32_t i;
	int rc = 0;

	npuemu_run_sinks(j);
	j->start_ns = npuemu_run_now();
	if (j->o->timeout > 0)
		j->deadline_ns = j->start_ns + (uint64_t)(j->o->timeout * 1e9);
	for (i = 0; i < j->size && !rc; i++)
		rc = npuemu_run_spawn(j, &j->rank[i]);
	if (rc) {
		j->failure = rc;
		npuemu_run_stop(j);
	}
	npuemu_run_loop(j);
	j->end_ns = npuemu_run_now();
	npuemu_run_guard_stop(j);
	npuemu_run_table_remove(j);
	return npuemu_run_report(j);
}

int main(int argc, char **argv)
{
	static struct npuemu_run_options o;
	static struct npuemu_run_job j;
	int rc;

	npuemu_cli_init("npuemu-run");
	rc = npuemu_run_parse(argc, argv, &o);
	if (rc >= 0)
		return rc;
	j.o = &o;
	j.in_fd = -1;
	j.culprit = -1;
	j.null_fd = open_std();
	if (j.null_fd < 0)
		return npuemu_cli_failed(j.null_fd, "cannot open /dev/null");
	npuemu_run_new_id(j.id, sizeof(j.id));
	rc = set_up(&j);
	if (!rc)
		rc = run(&j);
	free(j.sink[0].buf);
	free(j.sink[1].buf);
	free(j.rank);
	return rc;
}
