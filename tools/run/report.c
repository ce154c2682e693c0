// SPDX-License-Identifier: MIT
/* How the job went: the exit code, a line for whoever reads, an object for programs. */
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>

#include "cli.h"
#include "json.h"
#include "run.h"

#define FAILED_MAX	16	/* ranks that are told of one by one */

struct words {
	char text[1024];
	size_t len;
};

__attribute__((format(printf, 2, 3)))
static void add(struct words *w, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(w->text + w->len, sizeof(w->text) - w->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		w->len += (size_t)n;
	if (w->len >= sizeof(w->text))
		w->len = sizeof(w->text) - 1;
}

static int code_of(int status)
{
	return WIFSIGNALED(status) ? NPUEMU_RUN_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static double seconds(uint64_t from, uint64_t to)
{
	return (double)(to - from) / 1e9;
}

static void add_end(struct words *w, const struct npuemu_run_rank *r)
{
	add(w, "rank %u (pid %ld, device %u) ", r->rank, (long)r->pid, r->device);
	if (WIFSIGNALED(r->status))
		add(w, "was killed by signal %d (%s%s)", WTERMSIG(r->status),
		    strsignal(WTERMSIG(r->status)),
		    WCOREDUMP(r->status) ? ", core dumped" : "");
	else
		add(w, "exited with code %d", WEXITSTATUS(r->status));
	add(w, " after %.1f s", seconds(r->start_ns, r->end_ns));
}

/* It failed by itself: nobody had told it to end. */
static int failed(const struct npuemu_run_rank *r)
{
	return r->pid && r->status && !r->stopped;
}

static uint32_t count_stopped(const struct npuemu_run_job *j, uint32_t *killed)
{
	uint32_t i, n = 0;

	*killed = 0;
	for (i = 0; i < j->size; i++) {
		n += j->rank[i].pid && j->rank[i].stopped;
		*killed += j->rank[i].pid && j->rank[i].killed;
	}
	return n;
}

static void add_others(const struct npuemu_run_job *j, struct words *w)
{
	uint32_t killed, stopped = count_stopped(j, &killed), others = j->size - 1;

	if (!stopped)
		return;
	if (stopped == others && stopped == 1)
		add(w, "; the other one was stopped");
	else if (stopped == others)
		add(w, "; the other %u were stopped", stopped);
	else
		add(w, "; %u of the other %u were stopped, %u had ended", stopped, others,
		    others - stopped);
	if (killed)
		add(w, " (%u had to be killed after %g s)", killed, j->o->grace);
}

/* "rank 3", "ranks 0-2, 5" of those that were stopped. */
static void add_stopped(const struct npuemu_run_job *j, struct words *w)
{
	uint32_t killed, i, k;
	const char *sep = "";

	add(w, count_stopped(j, &killed) == 1 ? "rank " : "ranks ");
	for (i = 0; i < j->size; i = k + 1) {
		for (k = i; k < j->size && j->rank[k].stopped; k++)
			;
		if (k == i)
			continue;
		add(w, k - i > 1 ? "%s%u-%u" : "%s%u", sep, i, k - 1);
		sep = ", ";
	}
}

static void say_failures(const struct npuemu_run_job *j)
{
	uint32_t i, n = 0;
	struct words w;

	for (i = 0; i < j->size; i++) {
		if (!failed(&j->rank[i]) || (int)i == j->culprit || n++ >= FAILED_MAX)
			continue;
		w.len = 0;
		add_end(&w, &j->rank[i]);
		npuemu_cli_say("%s", w.text);
	}
	if (n > FAILED_MAX)
		npuemu_cli_say("and %u more failed", n - FAILED_MAX);
}

static int say_timeout(const struct npuemu_run_job *j)
{
	uint32_t killed, n = count_stopped(j, &killed);
	struct words w = { .len = 0 };

	add(&w, "the job did not end within %g s: ", j->o->timeout);
	if (n) {
		add_stopped(j, &w);
		add(&w, n == 1 ? " was still running and was stopped" :
		    " were still running and were stopped");
	}
	if (killed)
		add(&w, " (%u had to be killed after %g s)", killed, j->o->grace);
	npuemu_cli_say("%s", w.text);
	return NPUEMU_RUN_TIMEOUT;
}

/* The user sent a signal, and ranks ended by it. */
static int say_signal(const struct npuemu_run_job *j)
{
	uint32_t i, n = 0, killed;
	struct words w = { .len = 0 };

	count_stopped(j, &killed);
	for (i = 0; i < j->size; i++)
		n += j->rank[i].pid && WIFSIGNALED(j->rank[i].status) && !j->rank[i].killed &&
		     WTERMSIG(j->rank[i].status) == j->user_signal;
	add(&w, "signal %d (%s) was passed on: it ended %u of %u ranks", j->user_signal,
	    strsignal(j->user_signal), n, j->size);
	if (killed)
		add(&w, "; %u had to be killed", killed);
	npuemu_cli_say("%s", w.text);
	return NPUEMU_RUN_SIGNAL + j->user_signal;
}

static int by_user(const struct npuemu_run_job *j)
{
	int status;

	if (!j->user_signal)
		return 0;
	if (j->culprit < 0)
		return j->stopping || j->give_up;
	status = j->rank[j->culprit].status;
	return WIFSIGNALED(status) && WTERMSIG(status) == j->user_signal;
}

static int say(const struct npuemu_run_job *j, const char **reason)
{
	struct words w = { .len = 0 };

	*reason = "error";
	if (j->failure)
		return j->failure;
	*reason = "timeout";
	if (j->timed_out) {
		if (j->culprit >= 0) {
			add_end(&w, &j->rank[j->culprit]);
			npuemu_cli_say("%s", w.text);
			say_failures(j);
		}
		return say_timeout(j);
	}
	*reason = "signal";
	if (by_user(j))
		return say_signal(j);
	*reason = "done";
	if (j->culprit < 0)
		return 0;
	*reason = "failed";
	add_end(&w, &j->rank[j->culprit]);
	add_others(j, &w);
	npuemu_cli_say("%s", w.text);
	say_failures(j);
	return code_of(j->rank[j->culprit].status);
}

/* ---- JSON ----------------------------------------------------------------------------- */

static void null(struct json_object *o, const char *key)
{
	json_object_object_add(o, key, NULL);
}

static double tv(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static struct json_object *rank_json(const struct npuemu_run_rank *r)
{
	struct json_object *o = json_object_new_object();

	npuemu_json_u64(o, "rank", r->rank);
	npuemu_json_u64(o, "device", r->device);
	npuemu_json_u64(o, "server", r->server);
	npuemu_json_u64(o, "local_rank", r->local_rank);
	npuemu_json_bool(o, "started", r->pid != 0);
	if (!r->pid)
		return o;
	npuemu_json_u64(o, "pid", (uint64_t)r->pid);
	if (WIFSIGNALED(r->status)) {
		null(o, "exit_code");
		npuemu_json_u64(o, "signal", (uint64_t)WTERMSIG(r->status));
	} else {
		npuemu_json_u64(o, "exit_code", (uint64_t)WEXITSTATUS(r->status));
		null(o, "signal");
	}
	npuemu_json_bool(o, "stopped", r->stopped);
	npuemu_json_bool(o, "killed", r->killed);
	npuemu_json_num(o, "seconds", seconds(r->start_ns, r->end_ns), 6);
	npuemu_json_num(o, "user_seconds", tv(&r->usage.ru_utime), 6);
	npuemu_json_num(o, "system_seconds", tv(&r->usage.ru_stime), 6);
	npuemu_json_u64(o, "max_rss_kib", (uint64_t)r->usage.ru_maxrss);
	return o;
}

static int print_json(const struct npuemu_run_job *j, const char *reason, int code)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	uint32_t i;

	npuemu_json_str(o, "version", npuemu_version());
	npuemu_json_str(o, "program", j->o->argv[0]);
	npuemu_json_str(o, "job", j->id);
	npuemu_json_str(o, "machine", j->machine);
	npuemu_json_u64(o, "size", j->size);
	npuemu_json_str(o, "end", reason);
	npuemu_json_u64(o, "exit_code", (uint64_t)code);
	if (j->culprit >= 0)
		npuemu_json_u64(o, "first_failed", (uint64_t)j->culprit);
	else
		null(o, "first_failed");
	npuemu_json_num(o, "seconds", seconds(j->start_ns, j->end_ns), 6);
	for (i = 0; i < j->size; i++)
		json_object_array_add(list, rank_json(&j->rank[i]));
	json_object_object_add(o, "ranks", list);
	return npuemu_json_print(o, 1);
}

int npuemu_run_report(const struct npuemu_run_job *j)
{
	const char *reason;
	int code = say(j, &reason);

	if (j->o->json && print_json(j, reason, code) && !code)
		code = NPUEMU_EXIT_RUNTIME;
	return code;
}
