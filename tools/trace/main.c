// SPDX-License-Identifier: MIT
/* npuemu-trace: show what a trace has recorded. */
#include <stdio.h>
#include <string.h>

#include "../common/cli.h"
#include "show.h"

static const char help[] =
"Usage: npuemu-trace [--json] FILE|FOLDER\n"
"Show a trace: what streams and queues did, and the marks and ranges of the program.\n"
"\n"
"  FILE        of NPUEMU_TRACE, or one that aclprofStart() has made\n"
"  FOLDER      a PROF_... folder that aclprofStart() has made\n"
"\n"
"      --json  for chrome://tracing and https://ui.perfetto.dev\n"
"      --help, --version\n"
"\n"
"Without --json there is a line for each record, in the order of their times.\n"
"Exit code: 0 done, 2 wrong command line, 3 it cannot be read, or is damaged.\n"
"\n"
"Example: which tasks took how long:\n"
"  npuemu-trace /tmp/prof/PROF_000001_* | grep ': task:'\n";

enum { OPT_JSON = 256, OPT_HELP, OPT_VERSION };

/* -1: go on; otherwise the exit code. */
static int parse(int argc, char **argv, int *json)
{
	static const struct option opts[] = {
		{ "json", no_argument, NULL, OPT_JSON },
		{ "help", no_argument, NULL, OPT_HELP },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ NULL, 0, NULL, 0 }
	};
	int c;

	while ((c = npuemu_cli_getopt(argc, argv, ":", opts)) != -1) {
		switch (c) {
		case OPT_JSON:
			*json = 1;
			break;
		case OPT_HELP:
			fputs(help, stdout);
			return NPUEMU_EXIT_OK;
		case OPT_VERSION:
			return npuemu_cli_version();
		default:
			return NPUEMU_EXIT_USAGE;
		}
	}
	if (optind + 1 != argc)
		return npuemu_cli_usage(optind == argc ? "which trace? Name a file or a folder" :
					"one trace at a time: name one file or folder");
	return -1;
}

int main(int argc, char **argv)
{
	char err[TRACE_ERR];
	struct trace t;
	int rc, json = 0;

	npuemu_cli_init("npuemu-trace");
	rc = parse(argc, argv, &json);
	if (rc >= 0)
		return rc;
	if (trace_read(&t, argv[optind], err)) {
		npuemu_cli_say("%s", err);
		return NPUEMU_EXIT_RUNTIME;
	}
	if (json)
		rc = trace_show_json(&t) ? NPUEMU_EXIT_RUNTIME : NPUEMU_EXIT_OK;
	else
		trace_show(&t);
	if (fflush(stdout) || ferror(stdout)) {
		npuemu_cli_say("the output cannot be written");
		rc = NPUEMU_EXIT_RUNTIME;
	}
	trace_free(&t);
	return rc > 0 ? rc : NPUEMU_EXIT_OK;
}
