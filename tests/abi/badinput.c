// SPDX-License-Identifier: MIT
/*
 * Every function of the libraries with bad arguments, of every kind, one by one and all
 * at once: before aclInit, in a thread without a device, where all is as it should be,
 * in another context and after aclFinalize.  It may not crash or hang; what is no
 * pointer or no handle may not succeed; and what fails has to say which function it was,
 * give a code that the API has, and leave nothing behind.
 *
 * Usage: badinput [-v] [-t SECONDS] [FUNCTION]...	(all; 10 s a call)
 *
 * A child makes the calls and says in shared memory which it is at.  After one that
 * succeeded the world may have changed: the next is for a new child.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "badinput.h"

#define WORKERS		2
#define AGAIN		3	/* exit code of a child: the world may have changed */
#define EXCUSES		1024

/* What the processes share. */
static struct shared {
	unsigned int at;	/* the call that a worker's child makes */
	unsigned long calls, failed, succeeded, right, right_ok, bad, skipped, children;
	unsigned char used[EXCUSES];
	long right_code;		/* what the function gives when all is right */
} *shared;

static struct shared *mine;	/* this worker's */
static unsigned int seconds = 10;	/* of a call, and of what is made for it */
static bool verbose;

/* Finds the row for it, @skip or not, and notes that there was use for it. */
static bool excused(const struct bad_function *f, const struct bad_case *c, bool skip)
{
	unsigned int i, arg = c->arg < ALL ? c->arg + 1 : 0;
	const char *p;
	bool found = false;

	for (i = 0; i < bad_excuses_n; i++) {
		p = bad_excuses[i].pattern;
		if (!strncmp(p, "skip:", 5) != skip)
			continue;
		p += skip ? 5 : 0;
		if (strcmp(bad_excuses[i].name, f->name) || strcmp(p, bad_patterns[c->pattern]) ||
		    bad_excuses[i].arg != arg)
			continue;
		mine->used[i] = 1;
		found = true;
	}
	return found;
}

/* ---- What is told ------------------------------------------------------------------------ */

static void text_of(const struct bad_function *f, const struct bad_case *c, char *buf, size_t size)
{
	char arg[24] = "all arguments";

	if (c->arg < ALL)
		snprintf(arg, sizeof(arg), "argument %u", c->arg + 1);
	snprintf(buf, size, "%s: %s %s%s%s", f->name, arg, bad_patterns[c->pattern],
		 *bad_phases[c->phase] ? " " : "", bad_phases[c->phase]);
}

static void __attribute__((format(printf, 3, 4)))
bad(const struct bad_function *f, const struct bad_case *c, const char *fmt, ...)
{
	char what[160], why[1400];
	va_list ap;

	text_of(f, c, what, sizeof(what));
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	printf("FAILED: %s: %s\n", what, why);
	fflush(stdout);
	mine->bad++;
}

/* ---- In the child ------------------------------------------------------------------------ */

/* What a call that failed may not change. */
struct holdings {
	size_t free_bytes, total;
	uint32_t streams, events, files;
};

static uint32_t open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static struct holdings count_holdings(void)
{
	struct holdings h = { .files = open_files() };

	if (aclrtSetCurrentContext(bad_world.ctx))
		return h;
	aclrtGetMemInfo(ACL_HBM_MEM, &h.free_bytes, &h.total);
	aclrtGetStreamAvailableNum(&h.streams);
	aclrtGetEventAvailNum(&h.events);
	return h;
}

static void check_failure(const struct bad_function *f, const struct bad_case *c, long code,
			  const union bad_arg *a)
{
	const char *msg = aclGetRecentErrMsg();

	if (!bad_code_fits(f, c, code, mine->right_code))
		bad(f, c, "%ld is not the code for that: %s", code, msg ? msg : "no message");
	if (!msg)
		bad(f, c, "failed with %ld, but left no message", code);
	else if (!bad_tells(msg, f, c, a))
		bad(f, c, "failed with %ld, but names neither the function nor the argument: %s",
		    code, msg);
	if (verbose)
		printf("%s: %d %d: %ld %s\n", f->name, (int)c->arg + 1, (int)c->pattern, code,
		       msg ? msg : "");
}

/* May a call that succeeds have taken away what the next ones need? */
static bool changes(const struct bad_function *f)
{
	static const char *const words[] = {
		"Init", "Finalize", "SetDevice", "Reset", "Destroy", "Free", "Release", "Unmap",
		"Abort", "Capture", "Build", "Wait", "Context", "Close", "Unregister", "EndTask",
		"SendRecv",
	};
	unsigned int i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strstr(f->name, words[i]))
			return true;
	return false;
}

enum came {
	REFUSED,
	DONE,
	CHANGED,	/* the world may be another now */
};

static enum came one_call(const struct bad_function *f, const struct bad_case *c)
{
	union bad_arg a[BAD_ARGS];
	long ret;

	bad_arguments(f, c, a);
	aclGetRecentErrMsg();
	alarm(seconds);
	ret = f->call(a);
	alarm(seconds);
	mine->calls++;
	if (c->pattern == RIGHT && c->phase == LIVE) {
		const char *msg = ret ? aclGetRecentErrMsg() : NULL;

		mine->right++;
		mine->right_ok += !ret;
		mine->right_code = ret;
		if (verbose && ret)
			printf("%s: right arguments: %ld %s\n", f->name, ret, msg ? msg : "");
		return changes(f) ? CHANGED : DONE;
	}
	if (f->result != BAD_ACL && f->result != BAD_HCCL)
		return changes(f) ? CHANGED : DONE;
	if (!ret) {
		mine->succeeded++;
		if (bad_must_fail(f, c) && !excused(f, c, false))
			bad(f, c, "succeeded");
		return changes(f) ? CHANGED : DONE;
	}
	mine->failed++;
	check_failure(f, c, ret, a);
	return REFUSED;
}

struct job {
	const struct bad_function *f;
	const struct bad_case *c;
	enum came came;
};

static void *in_thread(void *arg)
{
	struct job *j = arg;

	j->came = one_call(j->f, j->c);
	return NULL;
}

static enum came in_phase(const struct bad_function *f, const struct bad_case *c)
{
	struct job j = { f, c, CHANGED };
	struct holdings was, is;
	pthread_t t;

	if (c->phase == BEFORE || c->phase == AFTER)
		return one_call(f, c);
	was = count_holdings();
	if (c->phase == OTHER_CONTEXT)
		aclrtSetCurrentContext(bad_world.other_ctx);
	if (c->phase != NO_DEVICE)
		in_thread(&j);
	else if (pthread_create(&t, NULL, in_thread, &j) || pthread_join(t, NULL))
		exit(2);
	if (j.came != REFUSED)
		return j.came;
	is = count_holdings();
	if (was.free_bytes != is.free_bytes)
		bad(f, c, "failed, but %zd bytes are gone", (ssize_t)(was.free_bytes - is.free_bytes));
	if (was.streams != is.streams || was.events != is.events || was.files != is.files)
		bad(f, c, "failed, but streams went from %u to %u, events from %u to %u, files from %u to %u",
		    was.streams, is.streams, was.events, is.events, was.files, is.files);
	return REFUSED;
}

static void enter(const struct bad_function *f, enum phase phase, enum phase was)
{
	alarm(seconds);
	if (phase != BEFORE && !bad_world.made)
		bad_world_make(f);
	if (phase != AFTER || was == AFTER)
		return;
	if (aclFinalize()) {
		printf("badinput: %s: aclFinalize after it failed\n", f->name);
		exit(2);
	}
}

static void __attribute__((noreturn))
child(const struct bad_function *f, const struct bad_case *cases, unsigned int from, unsigned int n)
{
	const struct rlimit no_core = { 0, 0 };
	enum phase phase = BEFORE;
	unsigned int i;

	setrlimit(RLIMIT_CORE, &no_core);
	signal(SIGALRM, SIG_DFL);
	for (i = from; i < n; i++) {
		mine->at = i;
		enter(f, cases[i].phase, phase);
		phase = cases[i].phase;
		if (excused(f, &cases[i], true)) {
			mine->skipped++;
			continue;
		}
		if (in_phase(f, &cases[i]) == CHANGED)
			break;
	}
	fflush(stdout);
	_exit(AGAIN);
}

/* ---- In the worker ----------------------------------------------------------------------- */

static void one_function(const struct bad_function *f)
{
	struct bad_case cases[CASES];
	unsigned int n = bad_cases(f, cases), from = 0;
	int status;
	pid_t pid;

	mine->right_code = 0;
	while (from < n) {
		mine->at = from;
		mine->children++;
		fflush(stdout);
		pid = fork();
		if (!pid)
			child(f, cases, from, n);
		if (pid < 0 || waitpid(pid, &status, 0) != pid) {
			perror("badinput: fork");
			exit(2);
		}
		from = mine->at + 1;
		if (WIFEXITED(status) && WEXITSTATUS(status) == AGAIN)
			continue;
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
			bad(f, &cases[mine->at], "no end after %u s", seconds);
		else if (WIFSIGNALED(status))
			bad(f, &cases[mine->at], "died of signal %d, %s", WTERMSIG(status),
			    strsignal(WTERMSIG(status)));
		else
			bad(f, &cases[mine->at], "ended the process with %d", WEXITSTATUS(status));
	}
}

static bool named(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (!strcmp(name, *names))
			return true;
	return false;
}

static void work(unsigned int worker, char **names)
{
	const char *board = getenv("NPUEMU_BOARD");
	unsigned int i;
	char name[64];

	/* what the other worker has is not to count as this one's */
	snprintf(name, sizeof(name), "%s-%u", board ? board : "badinput", worker);
	setenv("NPUEMU_BOARD", name, 1);
	mine = &shared[worker];
	for (i = worker; i < bad_functions_n; i += WORKERS)
		if (named(bad_functions[i].name, names))
			one_function(&bad_functions[i]);
	fflush(stdout);
	_exit(0);
}

/* An excuse that nobody needs hides a mistake to come. */
static unsigned int idle_excuses(void)
{
	unsigned int i, k, n = 0;

	for (i = 0; i < bad_excuses_n; i++) {
		bool used = false;

		for (k = 0; k < WORKERS; k++)
			used |= shared[k].used[i];
		if (used)
			continue;
		printf("FAILED: badinput.tsv: %s %u %s: nothing needs that row\n", bad_excuses[i].name,
		       bad_excuses[i].arg, bad_excuses[i].pattern);
		n++;
	}
	return n;
}

static int usage(void)
{
	puts("usage: badinput [-v] [-t SECONDS] [FUNCTION]...");
	return 2;
}

int main(int argc, char **argv)
{
	struct shared sum = { 0 };
	unsigned int i, k, broken = 0, functions = 0;
	int status;
	pid_t pid[WORKERS];

	(void)argc;
	argv++;
	while (*argv && **argv == '-') {
		if (!strcmp(*argv, "-v"))
			verbose = true;
		else if (!strcmp(*argv, "-t") && argv[1] && atoi(argv[1]) > 0)
			seconds = (unsigned int)atoi(*++argv);
		else
			return usage();
		argv++;
	}
	for (i = 0; i < bad_functions_n; i++)
		functions += named(bad_functions[i].name, argv);
	if (!functions || bad_excuses_n > EXCUSES) {
		puts("badinput: no such function, or EXCUSES is too small");
		return 2;
	}
	shared = mmap(NULL, WORKERS * sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 2;
	for (i = 0; i < WORKERS; i++) {
		fflush(stdout);
		pid[i] = fork();
		if (!pid[i])
			work(i, argv);
	}
	for (i = 0; i < WORKERS; i++)
		broken += waitpid(pid[i], &status, 0) != pid[i] || status;
	for (k = 0; k < WORKERS; k++) {
		sum.calls += shared[k].calls;
		sum.failed += shared[k].failed;
		sum.succeeded += shared[k].succeeded;
		sum.right += shared[k].right;
		sum.right_ok += shared[k].right_ok;
		sum.bad += shared[k].bad;
		sum.skipped += shared[k].skipped;
		sum.children += shared[k].children;
	}
	if (!*argv)
		sum.bad += idle_excuses();
	printf("badinput: %u functions, %lu calls (%lu refused, %lu succeeded, %lu not made) in %lu processes; %lu of %lu succeed when all is right; %lu mistakes\n",
	       functions, sum.calls, sum.failed, sum.succeeded, sum.skipped, sum.children,
	       sum.right_ok, sum.right, sum.bad);
	/* those that need a peer or a state are the rest */
	if (!*argv && sum.right_ok < sum.right / 5 * 3) {
		puts("FAILED: too few calls succeed when all is right: the others show little");
		sum.bad++;
	}
	return broken || sum.bad || !sum.failed;
}
