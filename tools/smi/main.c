// SPDX-License-Identifier: MIT
/* npuemu-smi: what is on a board right now. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../common/cli.h"
#include "smi.h"

static const char help[] =
"Usage: npuemu-smi [--board NAME] [--queues] [--links] [--watch SEC] [--json]\n"
"Show the devices of a board, the processes on it and their queues.\n"
"\n"
"  -b, --board NAME    the board (default: $NPUEMU_BOARD, else \"default\")\n"
"  -q, --queues        list every queue: state, indices, counters, cause of error\n"
"  -l, --links         list the links between devices that carried something\n"
"  -w, --watch SEC     show it again every SEC seconds until interrupted\n"
"  -n, --count N       with --watch: stop after N times\n"
"      --json          everything as JSON; with --watch one object a line\n"
"      --help, --version\n"
"\n"
"Looking changes nothing: the board is not made, no memory or queue is taken.\n"
"Exit code: 0 done, 2 wrong command line, 3 there is no such board or it is damaged.\n"
"\n"
"Example: what is each queue doing, once a second:\n"
"  npuemu-smi --queues --watch 1\n";

struct options {
	const char *board;
	int queues;
	int links;
	int json;
	double watch;		/* 0: once */
	uint64_t count;		/* 0: for ever */
};

enum { OPT_JSON = 256, OPT_HELP, OPT_VERSION };

/* -1: go on; otherwise the exit code. */
static int one_option(struct options *o, int c)
{
	int rc;

	switch (c) {
	case 'b':
		o->board = optarg;
		return -1;
	case 'q':
		o->queues = 1;
		return -1;
	case 'l':
		o->links = 1;
		return -1;
	case 'w':
		rc = npuemu_cli_double("--watch", optarg, 0.05, 86400, &o->watch);
		return rc ? rc : -1;
	case 'n':
		rc = npuemu_cli_u64("--count", optarg, 1, UINT64_MAX, &o->count);
		return rc ? rc : -1;
	case OPT_JSON:
		o->json = 1;
		return -1;
	case OPT_HELP:
		fputs(help, stdout);
		return NPUEMU_EXIT_OK;
	case OPT_VERSION:
		return npuemu_cli_version();
	}
	return NPUEMU_EXIT_USAGE;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option opts[] = {
		{ "board", required_argument, NULL, 'b' },
		{ "queues", no_argument, NULL, 'q' },
		{ "links", no_argument, NULL, 'l' },
		{ "watch", required_argument, NULL, 'w' },
		{ "count", required_argument, NULL, 'n' },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "help", no_argument, NULL, OPT_HELP },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ NULL, 0, NULL, 0 }
	};
	int c, rc;

	memset(o, 0, sizeof(*o));
	while ((c = npuemu_cli_getopt(argc, argv, ":b:qlw:n:", opts)) != -1) {
		rc = one_option(o, c);
		if (rc >= 0)
			return rc;
	}
	if (optind < argc)
		return npuemu_cli_usage("'%s' is not understood: npuemu-smi takes options only",
					argv[optind]);
	if (o->count && o->watch == 0.0)
		return npuemu_cli_usage("--count needs --watch");
	return -1;
}

static int show_once(struct npuemu *ctx, const struct options *o)
{
	struct npuemu_smi_view v;
	int rc = npuemu_smi_look(ctx, &v);

	if (rc)
		return rc;
	if (o->json) {
		npuemu_smi_print_json(&v, o->watch != 0.0);
	} else {
		if (o->watch != 0.0 && isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", stdout);
		npuemu_smi_print(&v, o->queues, o->links);
	}
	npuemu_smi_free(&v);
	return ferror(stdout) ? NPUEMU_EXIT_RUNTIME : 0;
}

static void nap(double seconds)
{
	struct timespec ts;

	ts.tv_sec = (time_t)seconds;
	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

int main(int argc, char **argv)
{
	struct npuemu *ctx;
	struct options o;
	uint64_t i;
	int rc;

	npuemu_cli_init("npuemu-smi");
	rc = parse(argc, argv, &o);
	if (rc >= 0)
		return rc;
	rc = npuemu_cli_open(o.board, NPUEMU_OPEN_OBSERVE | NPUEMU_OPEN_EXISTING, &ctx);
	if (rc)
		return rc;
	for (i = 1; ; i++) {
		rc = show_once(ctx, &o);
		if (rc || o.watch == 0.0 || i == o.count)
			break;
		nap(o.watch);
	}
	npuemu_close(ctx);
	return rc;
}
