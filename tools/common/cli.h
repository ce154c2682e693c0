/* SPDX-License-Identifier: MIT */
/*
 * What every command-line tool does the same way: exit codes, options, messages,
 * opening a board.
 */
#ifndef NPUEMU_TOOLS_CLI_H
#define NPUEMU_TOOLS_CLI_H

#include <getopt.h>
#include <stdint.h>
#include <npuemu/npuemu.h>

/* The exit codes of all tools. */
enum npuemu_exit {
	NPUEMU_EXIT_OK = 0,
	NPUEMU_EXIT_DATA = 1,		/* it ran, but bytes were wrong */
	NPUEMU_EXIT_USAGE = 2,		/* the command line makes no sense */
	NPUEMU_EXIT_RUNTIME = 3,	/* it could not be done */
};

/* The name that starts every message; call it first. */
void npuemu_cli_init(const char *tool);
const char *npuemu_cli_tool(void);

/* "TOOL: MESSAGE" on stderr. */
void npuemu_cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void npuemu_cli_say_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void npuemu_cli_say_failed(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same and where to find help; it is NPUEMU_EXIT_USAGE. */
#define npuemu_cli_usage(...)						\
	__extension__ ({						\
		npuemu_cli_say_usage(__VA_ARGS__);			\
		(int)NPUEMU_EXIT_USAGE;					\
	})
/* A library call failed with @err (negative); adds npuemu_errmsg() and what to
 * do about it.  It is NPUEMU_EXIT_RUNTIME.
 */
#define npuemu_cli_failed(err, ...)					\
	__extension__ ({						\
		npuemu_cli_say_failed((err), __VA_ARGS__);		\
		(int)NPUEMU_EXIT_RUNTIME;				\
	})

/*
 * getopt_long() that explains itself: '?' comes back after the message is out.
 * Never let @opts use '?' as a value.
 */
int npuemu_cli_getopt(int argc, char **argv, const char *shorts,
		      const struct option *opts);
int npuemu_cli_version(void);

/* Read the argument of an option; 0, or NPUEMU_EXIT_USAGE with the message out. */
int npuemu_cli_u64(const char *opt, const char *arg, uint64_t min, uint64_t max,
		   uint64_t *out);
int npuemu_cli_u32(const char *opt, const char *arg, uint32_t min, uint32_t max,
		   uint32_t *out);
int npuemu_cli_double(const char *opt, const char *arg, double min, double max,
		      double *out);

/* The board that NULL stands for. */
const char *npuemu_cli_board(const char *board);
/* Join the board without changing it: 0, or an exit code with the message out. */
int npuemu_cli_open(const char *board, uint32_t flags, struct npuemu **out);

/* The index of @word in the NULL-terminated @list, or -1. */
int npuemu_cli_choice(const char *word, const char *const *list);

#endif
