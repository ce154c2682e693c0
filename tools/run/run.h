/* SPDX-License-Identifier: MIT */
/*
 * npuemu-run: a job of N ranks on this host.
 *
 * The launcher is one thread: it starts the ranks, then poll()s for their output,
 * for signals and for their ends.  Three things see to it that nothing of a job
 * outlives it: each rank dies with the launcher (PR_SET_PDEATHSIG), the launcher
 * adopts what ranks leave behind (PR_SET_CHILD_SUBREAPER) and kills it in the end,
 * and a guard, a small process beside it, does the same should the launcher itself
 * be killed.
 */
#ifndef NPUEMU_TOOLS_RUN_H
#define NPUEMU_TOOLS_RUN_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

#define NPUEMU_RUN_MAX_RANKS	1024
#define NPUEMU_RUN_MAX_DEVICES	64
#define NPUEMU_RUN_LIST		1024

/* Exit codes on top of those of all tools, as timeout, env and the shell have them. */
enum npuemu_run_exit {
	NPUEMU_RUN_TIMEOUT = 124,
	NPUEMU_RUN_NO_EXEC = 126,
	NPUEMU_RUN_NOT_FOUND = 127,
	NPUEMU_RUN_SIGNAL = 128,	/* and the signal's number */
};

enum npuemu_run_table { NPUEMU_TABLE_1_0, NPUEMU_TABLE_1_2, NPUEMU_TABLE_2_0, NPUEMU_TABLE_NONE };
enum npuemu_run_visible { NPUEMU_VISIBLE_BOARD, NPUEMU_VISIBLE_JOB, NPUEMU_VISIBLE_SERVER };

/* "0,1,4-7" */
struct npuemu_run_list {
	uint32_t n;
	uint32_t v[NPUEMU_RUN_LIST];
};

struct npuemu_run_options {
	uint32_t ranks;			/* 0: one for each device */
	const char *board;
	struct npuemu_run_list devices;	/* none: all */
	struct npuemu_run_list servers;
	enum npuemu_run_visible visible;
	enum npuemu_run_table table;
	uint32_t port;			/* 0: a free one */
	const char *output_dir;
	int no_prefix;
	int mpi_env;
	int keep_going;
	int json;
	double grace;
	double timeout;			/* 0: none */
	char **argv;			/* the program */
};

/* Where lines go: stdout or stderr of the launcher, and what it has not taken yet. */
struct npuemu_run_sink {
	int fd;
	int whole;			/* a file: takes any amount without waiting */
	int colour;
	int broken;			/* errno of the write that failed */
	char *buf;
	size_t head, tail, room;
};

/* Where lines come from: a pipe of a rank, and the line it has not ended yet. */
struct npuemu_run_stream {
	int fd;				/* -1: it ended */
	char *buf;
	size_t len, room;
	size_t seen;			/* no end of line before this */
};

struct npuemu_run_rank {
	uint32_t rank;
	uint32_t device;		/* the board's number */
	uint32_t device_id;		/* the number among the devices the rank sees */
	uint32_t server;
	uint32_t local_rank;
	uint32_t local_size;
	pid_t pid;
	int running;
	int status;			/* as wait() has it, once it ran and is not running */
	int stopped;			/* it ended after it was told to */
	int killed;			/* and that took a SIGKILL */
	uint64_t start_ns, end_ns;
	struct rusage usage;
	struct npuemu_run_stream stream[2];	/* stdout, stderr */
};

/* The pids the guard has to look after, shared with it. */
struct npuemu_run_guard {
	pid_t pid;
	int fd;				/* closing it without a word sets the guard off */
	volatile pid_t *group;		/* one for each rank, 0: ended */
};

struct npuemu_run_job {
	const struct npuemu_run_options *o;
	char id[64];
	char machine[32];
	uint32_t devices, servers;	/* of the board */
	uint32_t per_server;
	uint8_t visible[NPUEMU_RUN_MAX_DEVICES];	/* to a rank, before VISIBLE_SERVER */
	int restricted;			/* not all are visible */
	uint32_t size;
	struct npuemu_run_rank *rank;
	uint32_t running;
	char folder[128];		/* of the rank table; "" without */
	char table[160];
	uint32_t port;
	int port_lock;
	struct npuemu_run_guard guard;
	sigset_t signals;		/* what the launcher takes by signalfd */
	sigset_t old_mask;		/* what ranks start with */
	struct sigaction old_pipe;
	struct rlimit old_files;
	int signal_fd;
	int null_fd;
	int in_fd;			/* to rank 0, when stdin is a terminal; else -1 */
	int in_paused;
	char in_buf[4096];
	size_t in_head, in_tail;
	struct npuemu_run_sink sink[2];
	uint64_t start_ns, end_ns;
	uint64_t deadline_ns;		/* of the whole job */
	uint64_t kill_ns;		/* when to stop asking; 0: nobody was asked */
	uint64_t drain_ns;		/* when to stop writing; 0: never */
	int stopping;
	int timed_out;
	int give_up;			/* output is wanted no more */
	int user_signal;		/* the last one that ends programs */
	int user_signals;
	int culprit;			/* rank that failed first, or -1 */
	uint32_t unfinished;		/* how many ran when time was up */
	int failure;			/* exit code for what is no rank's fault */
};

/* options.c: -1: go on; otherwise the exit code */
int npuemu_run_parse(int argc, char **argv, struct npuemu_run_options *o);
int npuemu_run_list(const char *opt, const char *text, const char *word,
		    struct npuemu_run_list *list);

/* place.c: who gets what; 0 or an exit code with the message out */
int npuemu_run_place(struct npuemu_run_job *j);
int npuemu_run_sees(const struct npuemu_run_job *j, const struct npuemu_run_rank *r,
		    uint32_t device);

/* table.c */
int npuemu_run_table_write(struct npuemu_run_job *j);
void npuemu_run_table_remove(const struct npuemu_run_job *j);

/* environ.c */
void npuemu_run_new_id(char *buf, size_t len);
int npuemu_run_port(struct npuemu_run_job *j);
void npuemu_run_environ(const struct npuemu_run_job *j, const struct npuemu_run_rank *r);

/* guard.c */
int npuemu_run_guard_start(struct npuemu_run_job *j);
void npuemu_run_guard_stop(struct npuemu_run_job *j);
/* Kill what the launcher adopted. */
void npuemu_run_sweep(const struct npuemu_run_job *j);

/* spawn.c: 0 or an exit code with the message out */
int npuemu_run_spawn(struct npuemu_run_job *j, struct npuemu_run_rank *r);

/* output.c */
void npuemu_run_sinks(struct npuemu_run_job *j);
int npuemu_run_sink_full(const struct npuemu_run_sink *s);
int npuemu_run_flush(struct npuemu_run_sink *s);
void npuemu_run_take(struct npuemu_run_job *j, struct npuemu_run_rank *r, int which);
void npuemu_run_close(struct npuemu_run_job *j, struct npuemu_run_rank *r, int which);

/* loop.c, stop.c */
void npuemu_run_loop(struct npuemu_run_job *j);
void npuemu_run_signal_all(struct npuemu_run_job *j, int sig);
void npuemu_run_stop(struct npuemu_run_job *j);
void npuemu_run_reap(struct npuemu_run_job *j);
void npuemu_run_handle_signals(struct npuemu_run_job *j);
void npuemu_run_check_time(struct npuemu_run_job *j, uint64_t now);

/* report.c: the exit code */
int npuemu_run_report(const struct npuemu_run_job *j);

uint64_t npuemu_run_now(void);

#endif
