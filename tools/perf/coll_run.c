// SPDX-License-Identifier: MIT
/*
 * npuemu-perf collectives: starts the ranks, as processes or as threads, and says what
 * became of them.  Ranks that are processes are forked before anything of the board is
 * open here.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <npuemu/npuemu.h>

#include "../common/cli.h"
#include "../common/text.h"
#include "coll.h"

#define GRACE_MS	10000	/* for the others to leave after one failed */
#define MOST_WORDS	4u	/* ranks that may say what is wrong */

struct crew {
	const struct npuemu_coll_opts *o;
	struct npuemu_coll_shared *sh;
	struct npuemu_coll_rank rank[NPUEMU_COLL_RANKS];
	pthread_t thread[NPUEMU_COLL_RANKS];
	pid_t pid[NPUEMU_COLL_RANKS];
	uint32_t n;		/* that were started */
};

static void failed(struct crew *c, uint32_t i, const char *what, int code)
{
	struct npuemu_coll_said *said = &c->sh->said[i];

	__atomic_store_n(&c->sh->failed, 1, __ATOMIC_RELEASE);
	if (said->rc)
		return;
	said->rc = NPUEMU_EXIT_RUNTIME;
	snprintf(said->msg, sizeof(said->msg), "rank %u: %s %d", i, what, code);
}

/* ---- Room --------------------------------------------------------------------- */

/* What all ranks' buffers take, and the copies that the check makes. */
static uint64_t bytes_needed(const struct npuemu_coll_opts *o)
{
	uint64_t sum = 0, in, out, v;
	uint32_t i, r;

	for (r = 0; r < o->ranks; r++) {
		for (i = 0, in = 0, out = 0; i < o->rows; i++) {
			v = o->row[i].coll->in(&o->row[i], o->ranks, r) * o->row[i].elem;
			in = v > in ? v : in;
			v = o->row[i].coll->out(&o->row[i], o->ranks, r) * o->row[i].elem;
			out = v > out ? v : out;
		}
		sum += in + out + (in > out ? in : out) + (o->check ? in + out : 0);
	}
	return sum;
}

static uint64_t bytes_available(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	unsigned long long kib = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib ? kib << 10 : UINT64_MAX;
}

/* Better said before than felt by everybody on the machine. */
static int room(const struct npuemu_coll_opts *o)
{
	uint64_t need = bytes_needed(o), have = bytes_available();
	char a[NPUEMU_TEXT_SIZE], b[NPUEMU_TEXT_SIZE];

	if (need <= have)
		return 0;
	npuemu_cli_say("%u ranks would take %s of memory, and %s are available: ask for fewer ranks or smaller sizes%s",
		       o->ranks, npuemu_size_text(a, need), npuemu_size_text(b, have),
		       o->check ? ", or say --no-check" : "");
	return NPUEMU_EXIT_RUNTIME;
}

/* ---- Threads ---------------------------------------------------------------- */

static void *thread_main(void *arg)
{
	struct npuemu_coll_rank *r = arg;

	npuemu_coll_work(r);
	return NULL;
}

static void run_threads(struct crew *c)
{
	aclError err = aclInit(NULL);
	uint32_t i;
	int rc;

	if (err) {
		npuemu_coll_fail_acl(&c->rank[0], "aclInit", err);
		return;
	}
	for (i = 0; i < c->o->ranks; i++, c->n++) {
		rc = pthread_create(&c->thread[i], NULL, thread_main, &c->rank[i]);
		if (rc) {
			failed(c, i, "cannot start a thread, error", rc);
			break;
		}
	}
	for (i = 0; i < c->n; i++)
		pthread_join(c->thread[i], NULL);
	aclFinalize();
}

/* ---- Processes -------------------------------------------------------------- */

static void start(struct crew *c)
{
	pid_t parent = getpid();
	uint32_t i;

	for (i = 0; i < c->o->ranks; i++) {
		fflush(NULL);
		c->pid[i] = fork();
		if (c->pid[i] < 0) {
			failed(c, i, "cannot start a process, error", errno);
			return;
		}
		if (!c->pid[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(NPUEMU_EXIT_RUNTIME);
			exit(npuemu_coll_work(&c->rank[i]));
		}
		c->sh->said[i].pid = c->pid[i];
		c->n = i + 1;
	}
}

static uint32_t which(const struct crew *c, pid_t pid)
{
	uint32_t i;

	for (i = 0; i < c->n && c->pid[i] != pid; i++)
		;
	return i;
}

static void ended(struct crew *c, pid_t pid, int status)
{
	uint32_t i = which(c, pid);

	if (i == c->n)
		return;
	c->pid[i] = 0;
	if (WIFSIGNALED(status))
		failed(c, i, "was killed by signal", WTERMSIG(status));
	else if (WEXITSTATUS(status) && !c->sh->failed)
		failed(c, i, "ended with exit code", WEXITSTATUS(status));
}

static void kill_all(struct crew *c)
{
	uint32_t i;

	for (i = 0; i < c->n; i++)
		if (c->pid[i])
			kill(c->pid[i], SIGKILL);
}

static void run_processes(struct crew *c)
{
	struct timespec nap = { .tv_nsec = 2000000 };
	int64_t end = 0;
	uint32_t left;
	int status;
	pid_t pid;

	start(c);
	for (left = c->n; left;) {
		pid = waitpid(-1, &status, end ? WNOHANG : 0);
		if (pid > 0) {
			left -= which(c, pid) < c->n;
			ended(c, pid, status);
		} else if (pid < 0 && errno != EINTR) {
			break;
		}
		if (!__atomic_load_n(&c->sh->failed, __ATOMIC_ACQUIRE))
			continue;
		if (!end)
			end = npuemu_now_ns() + GRACE_MS * 1000000ll;
		if (npuemu_now_ns() > end)
			kill_all(c);
		if (!pid)
			nanosleep(&nap, NULL);
	}
}

/* ---- The end ---------------------------------------------------------------- */

/* The few that say most: a rank that failed first says why, the others mostly that it did. */
static int explain(const struct crew *c)
{
	uint32_t i, said = 0, more = 0, wrong = 0;

	for (i = 0; i < c->o->ranks; i++) {
		if (!c->sh->said[i].wrong[0])
			continue;
		if (wrong++ < MOST_WORDS)
			npuemu_cli_say("%s", c->sh->said[i].wrong);
	}
	if (wrong > MOST_WORDS)
		npuemu_cli_say("wrong data on %u more ranks", wrong - MOST_WORDS);
	for (i = 0; i < c->o->ranks; i++) {
		if (!c->sh->said[i].msg[0])
			continue;
		if (said++ < MOST_WORDS)
			npuemu_cli_say("%s", c->sh->said[i].msg);
		else
			more++;
	}
	if (more)
		npuemu_cli_say("%u more ranks failed", more);
	if (c->sh->failed && !said)
		npuemu_cli_say("a rank left without saying why");
	/* what failed may follow from wrong data, not the other way round */
	if (wrong)
		return NPUEMU_EXIT_DATA;
	return c->sh->failed ? NPUEMU_EXIT_RUNTIME : NPUEMU_EXIT_OK;
}

static int lead(struct crew *c)
{
	uint32_t i, done = 0;
	int rc;

	for (i = 0; i < c->o->ranks; i++) {
		c->rank[i].o = c->o;
		c->rank[i].sh = c->sh;
		c->rank[i].said = &c->sh->said[i];
		c->rank[i].rank = i;
	}
	if (c->o->threads)
		run_threads(c);
	else
		run_processes(c);
	for (i = 0; i < c->o->rows; i++)
		done += c->sh->result[i].done;
	rc = explain(c);
	if (done)
		npuemu_coll_report(c->o, c->sh);
	if (ferror(stdout) && !rc)
		rc = NPUEMU_EXIT_RUNTIME;
	return rc;
}

int npuemu_coll_main(int argc, char **argv)
{
	static struct npuemu_coll_opts o;
	static struct crew c;
	size_t bytes;
	int rc = npuemu_coll_options(argc, argv, &o);

	if (rc >= 0)
		return rc;
	rc = room(&o);
	if (rc) {
		free(o.row);
		return rc;
	}
	bytes = sizeof(*c.sh) + o.rows * sizeof(c.sh->result[0]);
	c.o = &o;
	c.sh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c.sh == MAP_FAILED) {
		npuemu_cli_say("out of memory: %s", strerror(errno));
		return NPUEMU_EXIT_RUNTIME;
	}
	rc = lead(&c);
	munmap(c.sh, bytes);
	free(o.row);
	return rc;
}
