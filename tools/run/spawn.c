// SPDX-License-Identifier: MIT
/* Starting one rank. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"

/* The launcher's ends of what a rank has as 0, 1 and 2, and the rank's. */
struct ends {
	int here[3];
	int there[3];
	int word[2];		/* errno of an exec that failed */
};

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void shut_all(struct ends *e)
{
	int i;

	for (i = 0; i < 3; i++) {
		shut(&e->here[i]);
		shut(&e->there[i]);
	}
	shut(&e->word[0]);
	shut(&e->word[1]);
}

static int make_pipe(int *reader, int *writer)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		return npuemu_cli_failed(-errno, "cannot make a pipe");
	*reader = fd[0];
	*writer = fd[1];
	return 0;
}

static int make_file(const struct npuemu_run_job *j, uint32_t rank, int which, int *fd)
{
	char path[4096];
	int n;

	n = snprintf(path, sizeof(path), "%s/rank.%u.%s", j->o->output_dir, rank,
		     which ? "err" : "out");
	*fd = -1;
	errno = ENAMETOOLONG;
	if (n < (int)sizeof(path))
		*fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (*fd >= 0)
		return 0;
	return npuemu_cli_failed(-errno, "cannot write %s (--output-dir)", path);
}

static int make_ends(const struct npuemu_run_job *j, uint32_t rank, struct ends *e)
{
	int i, rc;

	memset(e, -1, sizeof(*e));
	rc = make_pipe(&e->word[0], &e->word[1]);
	for (i = 1; i < 3 && !rc; i++) {
		if (j->o->output_dir)
			rc = make_file(j, rank, i - 1, &e->there[i]);
		else
			rc = make_pipe(&e->here[i], &e->there[i]);
	}
	/* a terminal is of no use to a rank: it is not in the foreground's group */
	if (!rc && !rank && isatty(STDIN_FILENO))
		rc = make_pipe(&e->there[0], &e->here[0]);
	if (rc)
		shut_all(e);
	return rc;
}

static void be_rank(const struct npuemu_run_job *j, const struct npuemu_run_rank *r,
		    const struct ends *e, pid_t launcher)
{
	int err;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher)
		_exit(NPUEMU_RUN_SIGNAL + SIGKILL);
	if (e->there[0] >= 0)
		dup2(e->there[0], STDIN_FILENO);
	else if (r->rank)
		dup2(j->null_fd, STDIN_FILENO);
	npuemu_run_environ(j, r);
	dup2(e->there[1], STDOUT_FILENO);
	dup2(e->there[2], STDERR_FILENO);
	setrlimit(RLIMIT_NOFILE, &j->old_files);
	sigaction(SIGPIPE, &j->old_pipe, NULL);
	sigprocmask(SIG_SETMASK, &j->old_mask, NULL);
	execvp(j->o->argv[0], j->o->argv);
	err = errno;
	if (write(e->word[1], &err, sizeof(err)) != sizeof(err))
		_exit(NPUEMU_RUN_NOT_FOUND);
	_exit(err == ENOENT ? NPUEMU_RUN_NOT_FOUND : NPUEMU_RUN_NO_EXEC);
}

static int no_exec(const struct npuemu_run_job *j, int err)
{
	const char *name = j->o->argv[0];

	if (err == ENOENT && !strchr(name, '/')) {
		npuemu_cli_say("there is no program '%s' in PATH: to run a file of this folder write ./%s",
			       name, name);
		return NPUEMU_RUN_NOT_FOUND;
	}
	npuemu_cli_say("cannot start '%s': %s", name, strerror(err));
	return err == ENOENT ? NPUEMU_RUN_NOT_FOUND : NPUEMU_RUN_NO_EXEC;
}

/* Waits until the program runs: an exec that fails is said once, not by each rank. */
static int await_exec(struct npuemu_run_job *j, pid_t pid, struct ends *e)
{
	ssize_t n;
	int err = 0;

	shut(&e->word[1]);
	do {
		n = read(e->word[0], &err, sizeof(err));
	} while (n < 0 && errno == EINTR);
	shut(&e->word[0]);
	if (n != sizeof(err))
		return 0;	/* it runs; or it died on the way there, which reaping will tell */
	waitpid(pid, NULL, 0);
	return no_exec(j, err);
}

int npuemu_run_spawn(struct npuemu_run_job *j, struct npuemu_run_rank *r)
{
	pid_t launcher = getpid();
	struct ends e;
	int i, rc = make_ends(j, r->rank, &e);

	if (rc)
		return rc;
	r->pid = fork();
	if (!r->pid)
		be_rank(j, r, &e, launcher);
	if (r->pid < 0) {
		rc = npuemu_cli_failed(-errno, "cannot start rank %u of %u", r->rank, j->size);
		r->pid = 0;
		shut_all(&e);
		return rc;
	}
	setpgid(r->pid, r->pid);
	j->guard.group[r->rank] = r->pid;
	r->start_ns = npuemu_run_now();
	for (i = 0; i < 3; i++)
		shut(&e.there[i]);
	rc = await_exec(j, r->pid, &e);
	if (rc) {
		j->guard.group[r->rank] = 0;
		r->pid = 0;
		shut_all(&e);
		return rc;
	}
	r->running = 1;
	j->running++;
	if (!r->rank)
		j->in_fd = e.here[0];
	for (i = 0; i < 2; i++)
		r->stream[i].fd = e.here[i + 1];
	return 0;
}
