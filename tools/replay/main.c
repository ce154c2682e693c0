// SPDX-License-Identifier: MIT
/*
 * npuemu-replay: moves the KV-cache blocks of a request trace from a prefill
 * NPU to a decode NPU and checks every byte.  Here: find the trace, size the
 * pool, fork, report.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "replay.h"

#define TRACE_NAME	"mooncake_fast25_conversation_trace.jsonl"
#define POOL_BYTES	(1ull << 30)	/* what the default pool may take */

#ifndef NPUEMU_DATADIR
#define NPUEMU_DATADIR	"/usr/local/share/npuemu"
#endif

/* ---- The shipped trace -------------------------------------------------------- */

static bool try_dir(char *path, size_t size, const char *dir, const char *below)
{
	char full[PATH_MAX], real[PATH_MAX];
	int n = snprintf(full, sizeof(full), "%s/%s%s", dir, below, TRACE_NAME);

	if (n <= 0 || (size_t)n >= sizeof(full) || access(full, R_OK) ||
	    !realpath(full, real) || strlen(real) >= size)
		return false;
	snprintf(path, size, "%s", real);
	return true;
}

/* $NPUEMU_DATA, then what belongs to this binary, then the usual prefix. */
static const char *find_trace(char *path, size_t size)
{
	const char *data = getenv("NPUEMU_DATA");
	char dir[PATH_MAX];
	ssize_t n;
	char *p;

	if (data && *data && try_dir(path, size, data, ""))
		return path;
	n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	if (n > 0) {
		dir[n] = 0;
		p = strrchr(dir, '/');
		if (p)
			*p = 0;
		if (try_dir(path, size, dir, "../share/npuemu/"))
			return path;
	}
	if (try_dir(path, size, NPUEMU_DATADIR, ""))
		return path;
	fprintf(stderr, "npuemu-replay: cannot find %s in $NPUEMU_DATA (%s), %s/../share/npuemu or %s; set NPUEMU_DATA or give --trace FILE\n",
		TRACE_NAME, data ? data : "not set", n > 0 ? dir : "?", NPUEMU_DATADIR);
	return NULL;
}

/* ---- The pool ------------------------------------------------------------------ */

/*
 * No more slots than there are distinct blocks: the rest would never be used.
 * At least one request must fit, as it is verified as a whole.
 */
static int size_pool(struct replay_job *job)
{
	const struct replay_trace *t = &job->trace;
	uint64_t slots = job->opt.pool_blocks;

	if (slots == REPLAY_POOL_DEFAULT) {
		slots = POOL_BYTES / replay_block_bytes(job->opt.model);
		if (slots < t->longest)
			slots = t->longest;
	}
	if (slots && slots < t->longest) {
		fprintf(stderr, "npuemu-replay: --pool-blocks %" PRIu64 ": the request in line %u of %s has %u blocks, so the pool needs at least %u\n",
			slots, t->longest_line, job->trace_path, t->longest, t->longest);
		return -1;
	}
	if (!slots || slots > t->distinct)
		slots = t->distinct;
	if (!slots || slots > 1u << 31) {
		fprintf(stderr, "npuemu-replay: %s: %s\n", job->trace_path, slots ?
			"too many distinct blocks" : "no request has any blocks");
		return -1;
	}
	job->slots = (uint32_t)slots;
	return 0;
}

static int load(struct replay_job *job, char *path, size_t size)
{
	char err[REPLAY_TRACE_ERR];

	job->trace_path = job->opt.trace ? job->opt.trace : find_trace(path, size);
	if (!job->trace_path)
		return -1;
	if (replay_trace_load(&job->trace, job->trace_path, job->opt.requests, err)) {
		fprintf(stderr, "npuemu-replay: %s\n", err);
		return -1;
	}
	if (job->opt.requests > job->trace.n)
		fprintf(stderr, "npuemu-replay: %s has only %u requests\n",
			job->trace_path, job->trace.n);
	if (job->opt.sabotage > job->trace.n) {
		fprintf(stderr,
			"npuemu-replay: --sabotage %u: only %u requests are replayed\n",
			job->opt.sabotage, job->trace.n);
		return -1;
	}
	if (job->opt.sabotage && !job->trace.req[job->opt.sabotage - 1].blocks) {
		fprintf(stderr,
			"npuemu-replay: --sabotage %u: that request has no blocks\n",
			job->opt.sabotage);
		return -1;
	}
	return size_pool(job);
}

/* ---- Two processes -------------------------------------------------------------- */

static int run(struct replay_job *job, struct replay_result *res)
{
	struct replay_link l = { .timeout_s = job->opt.timeout_s };
	pid_t parent = getpid();
	int fd[2];

	if (job->opt.chaos)
		setenv("NPUEMU_CHAOS", job->opt.chaos, 1);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd)) {
		fprintf(stderr, "npuemu-replay: socketpair: %s\n", strerror(errno));
		return REPLAY_FAILED;
	}
	replay_catch_signals();
	/* before anything of the board exists: handles do not survive a fork */
	l.pid = fork();
	if (l.pid < 0) {
		fprintf(stderr, "npuemu-replay: fork: %s\n", strerror(errno));
		return REPLAY_FAILED;
	}
	l.parent = l.pid > 0;
	l.fd = fd[l.parent ? 0 : 1];
	close(fd[l.parent ? 1 : 0]);
	l.me = l.parent ? "decode" : "prefill";
	l.other = l.parent ? "prefill" : "decode";
	if (l.parent)
		return replay_decode(job, &l, res);
	l.pid = parent;
	prctl(PR_SET_NAME, "replay-prefill");	/* what npuemu-smi shows */
	/* exit(), so that sanitizers look for leaks here too */
	exit(replay_prefill(job, &l));
}

int main(int argc, char **argv)
{
	struct replay_job job = { .slots = 0 };
	struct replay_result res = { .requests = 0 };
	char path[PATH_MAX];
	int code;

	if (replay_options_parse(&job.opt, argc, argv, &code))
		return code;
	if (load(&job, path, sizeof(path))) {
		replay_trace_free(&job.trace);
		return REPLAY_USAGE;
	}
	code = run(&job, &res);
	if (code == REPLAY_OK || code == REPLAY_VERIFY)
		replay_report(&job, &res);
	replay_trace_free(&job.trace);
	return code;
}
