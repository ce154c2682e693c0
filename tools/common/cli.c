// SPDX-License-Identifier: MIT
/*
 * What every command-line tool does the same way.  A message says what was
 * wrong, where, and what to do; a misspelt option gets the nearest real one.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char *cli_tool = "npuemu";

void npuemu_cli_init(const char *tool)
{
	cli_tool = tool;
	opterr = 0;
}

const char *npuemu_cli_tool(void)
{
	return cli_tool;
}

__attribute__((format(printf, 1, 0)))
static void say(const char *fmt, va_list ap)
{
	fflush(stdout);
	fprintf(stderr, "%s: ", cli_tool);
	vfprintf(stderr, fmt, ap);
}

void npuemu_cli_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void npuemu_cli_say_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nTry '%s --help'.\n", cli_tool);
}

void npuemu_cli_say_failed(int err, const char *fmt, ...)
{
	const char *why = npuemu_errmsg();
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	if (why && *why)
		fprintf(stderr, ": %s\n", why);
	else
		fprintf(stderr, ": %s\n", strerror(-err));
}

/* Edits between two words, each at most 31 characters; more counts as far. */
static unsigned int distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b), i, j;
	unsigned int row[32], diag, up, best;

	if (la > 31 || lb > 31)
		return 99;
	for (j = 0; j <= lb; j++)
		row[j] = (unsigned int)j;
	for (i = 1; i <= la; i++) {
		diag = row[0];
		row[0] = (unsigned int)i;
		for (j = 1; j <= lb; j++) {
			up = row[j];
			best = diag + (a[i - 1] != b[j - 1]);
			if (up + 1 < best)
				best = up + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diag = up;
			row[j] = best;
		}
	}
	return row[lb];
}

static void unknown_long(const char *arg, const struct option *opts)
{
	const struct option *o, *near = NULL;
	unsigned int d, best = 4;
	char word[64];

	snprintf(word, sizeof(word), "%s", arg + 2);
	word[strcspn(word, "=")] = '\0';
	for (o = opts; o->name; o++) {
		d = distance(word, o->name);
		if (d < best) {
			best = d;
			near = o;
		}
	}
	if (near)
		npuemu_cli_usage("unknown option '--%s'; did you mean '--%s'?", word,
				 near->name);
	else
		npuemu_cli_usage("unknown option '--%s'", word);
}

/* What getopt was looking at when it gave up. */
static int explain(int c, char **argv, const struct option *opts)
{
	const char *arg = optind > 0 ? argv[optind - 1] : "";
	const struct option *o;
	int is_long = !strncmp(arg, "--", 2);

	if (c == ':') {
		if (is_long)
			npuemu_cli_usage("option '%s' needs a value", arg);
		else
			npuemu_cli_usage("option '-%c' needs a value", optopt);
		return '?';
	}
	for (o = opts; is_long && optopt && o->name; o++) {
		if (o->val == optopt) {
			npuemu_cli_usage("option '--%s' takes no value", o->name);
			return '?';
		}
	}
	if (is_long)
		unknown_long(arg, opts);
	else
		npuemu_cli_usage("unknown option '-%c'", optopt);
	return '?';
}

int npuemu_cli_getopt(int argc, char **argv, const char *shorts,
		      const struct option *opts)
{
	int c = getopt_long(argc, argv, shorts, opts, NULL);

	if (c == '?' || c == ':')
		return explain(c, argv, opts);
	return c;
}

int npuemu_cli_version(void)
{
	printf("%s %s\n", cli_tool, npuemu_version());
	return NPUEMU_EXIT_OK;
}

int npuemu_cli_u64(const char *opt, const char *arg, uint64_t min, uint64_t max,
		   uint64_t *out)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(arg, &end, 0);
	if (end == arg || *end || errno || strchr(arg, '-'))
		return npuemu_cli_usage("%s: '%s' is not a whole number", opt, arg);
	if (v < min || v > max)
		return npuemu_cli_usage("%s: %llu is not in %llu..%llu", opt, v,
					(unsigned long long)min,
					(unsigned long long)max);
	*out = v;
	return 0;
}

int npuemu_cli_u32(const char *opt, const char *arg, uint32_t min, uint32_t max,
		   uint32_t *out)
{
	uint64_t v = 0;
	int rc = npuemu_cli_u64(opt, arg, min, max, &v);

	if (!rc)
		*out = (uint32_t)v;
	return rc;
}

int npuemu_cli_double(const char *opt, const char *arg, double min, double max,
		      double *out)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(arg, &end);
	if (end == arg || *end || errno || !isfinite(v))
		return npuemu_cli_usage("%s: '%s' is not a number", opt, arg);
	if (v < min || v > max)
		return npuemu_cli_usage("%s: %s is not in %g..%g", opt, arg, min, max);
	*out = v;
	return 0;
}

const char *npuemu_cli_board(const char *board)
{
	if (!board)
		board = getenv("NPUEMU_BOARD");
	return board && *board ? board : "default";
}

int npuemu_cli_open(const char *board, uint32_t flags, struct npuemu **out)
{
	struct npuemu_open_attr attr;
	int rc;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.flags = flags;
	attr.board = board;
	rc = npuemu_open(&attr, out);
	if (!rc)
		return 0;
	if (rc == -ENOENT) {
		npuemu_cli_say("there is no board '%s': it appears when a program opens it; 'npuemu-ctl list' shows those there are",
			       npuemu_cli_board(board));
		return NPUEMU_EXIT_RUNTIME;
	}
	npuemu_cli_failed(rc, "cannot open board '%s'", npuemu_cli_board(board));
	if (rc == -EUCLEAN)
		fprintf(stderr, "To remove it: npuemu-ctl reset --board %s\n",
			npuemu_cli_board(board));
	return NPUEMU_EXIT_RUNTIME;
}

int npuemu_cli_choice(const char *word, const char *const *list)
{
	int i;

	for (i = 0; list[i]; i++)
		if (!strcmp(word, list[i]))
			return i;
	return -1;
}
