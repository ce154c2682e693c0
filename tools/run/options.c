// SPDX-License-Identifier: MIT
/* The command line of npuemu-run. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "run.h"

static const char help[] =
"Usage: npuemu-run [OPTION]... PROGRAM [ARGUMENT]...\n"
"Start a job: N ranks of PROGRAM on this host, each with a device of the board.\n"
"\n"
"  -n, --ranks N           how many (default: one for each device chosen)\n"
"  -d, --devices LIST      devices of the board, like 0,1,4-7: rank i gets the i-th,\n"
"                          starting over when there are more ranks (default: all)\n"
"  -s, --servers LIST      only devices of these servers of the machine, like 0,server1\n"
"  -b, --board NAME        the board (default: $NPUEMU_BOARD, else \"default\")\n"
"      --visible WHAT      devices a rank sees: board (all, the default), job (those of\n"
"                          the job) or server (those of its own server; LOCAL_RANK\n"
"                          counts within the server then)\n"
"      --rank-table V      version of the rank table: 1.0 (default), 1.2 or 2.0\n"
"      --no-rank-table     write none, set no RANK_TABLE_FILE\n"
"      --port N            MASTER_PORT (default: a free one)\n"
"      --mpi-env           set OMPI_COMM_WORLD_* and PMI_* as well\n"
"      --no-prefix         pass bytes on as they are, without \"[rank] \"\n"
"  -o, --output-dir DIR    write DIR/rank.N.out and DIR/rank.N.err instead\n"
"  -k, --keep-going        when a rank fails let the others end by themselves\n"
"  -g, --grace SEC         from asking a rank to end until it is killed (default 5)\n"
"  -t, --timeout SEC       stop the job after SEC seconds\n"
"      --json              a report as the last line of standard output\n"
"      --help, --version\n"
"\n"
"Ranks find in the environment: NPUEMU_RANK, NPUEMU_RANK_SIZE, NPUEMU_LOCAL_RANK,\n"
"NPUEMU_DEVICE, NPUEMU_SERVER, NPUEMU_JOB, and what programs for such devices read:\n"
"RANK_ID, RANK_SIZE, DEVICE_ID, RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,\n"
"MASTER_ADDR, MASTER_PORT, RANK_TABLE_FILE.\n"
"\n"
"Exit code: that of the first rank that failed (128 + N: killed by signal N), 0 if\n"
"none did; 124 time was up; 126, 127 PROGRAM cannot be started, is not there;\n"
"2 wrong command line; 3 it could not be done.\n"
"\n"
"Example: eight ranks on the first two servers, a minute at most:\n"
"  NPUEMU_MACHINE=950-2x8 npuemu-run -n 8 --devices 0-3,8-11 --timeout 60 ./all_reduce\n";

enum {
	OPT_VISIBLE = 256, OPT_TABLE, OPT_NO_TABLE, OPT_PORT, OPT_MPI, OPT_NO_PREFIX, OPT_JSON,
	OPT_HELP, OPT_VERSION
};

static int number(const char **p, uint32_t *out)
{
	uint32_t v = 0;
	const char *s = *p;

	if (*s < '0' || *s > '9')
		return -1;
	for (; *s >= '0' && *s <= '9'; s++) {
		if (v > 99999)
			return -1;
		v = v * 10 + (uint32_t)(*s - '0');
	}
	*p = s;
	*out = v;
	return 0;
}

/* @word may stand before a number: "server1" is 1. */
static int element(const char **p, const char *word, uint32_t *out)
{
	size_t n = strlen(word);

	if (n && !strncmp(*p, word, n))
		*p += n;
	return number(p, out);
}

int npuemu_run_list(const char *opt, const char *text, const char *word,
		    struct npuemu_run_list *list)
{
	const char *p = text;
	uint32_t a, b;

	list->n = 0;
	for (;;) {
		if (element(&p, word, &a))
			return npuemu_cli_usage("%s: '%s': a number is missing or too large at '%s'; write a list like 0,1,4-7",
						opt, text, p);
		b = a;
		if (*p == '-') {
			p++;
			if (element(&p, word, &b))
				return npuemu_cli_usage("%s: '%s': the range has no end at '%s'",
							opt, text, p);
			if (b < a)
				return npuemu_cli_usage("%s: '%s': the range %u-%u runs backwards",
							opt, text, a, b);
		}
		if (b - a >= NPUEMU_RUN_LIST - list->n)
			return npuemu_cli_usage("%s: '%s' has more than %d entries", opt, text,
						NPUEMU_RUN_LIST);
		while (a <= b)
			list->v[list->n++] = a++;
		if (!*p)
			return 0;
		if (*p != ',')
			return npuemu_cli_usage("%s: '%s': '%s' is not understood; write a list like 0,1,4-7",
						opt, text, p);
		p++;
	}
}

static int choice(const char *opt, const char *word, const char *const *list, int *out)
{
	int i = npuemu_cli_choice(word, list);

	if (i < 0)
		return npuemu_cli_usage("%s: '%s' is not one of %s, %s, %s", opt, word, list[0],
					list[1], list[2]);
	*out = i;
	return 0;
}

static int with_value(struct npuemu_run_options *o, int c)
{
	static const char *const visible[] = { "board", "job", "server", NULL };
	static const char *const table[] = { "1.0", "1.2", "2.0", NULL };
	int i = 0, rc = 0;

	switch (c) {
	case 'n':
		return npuemu_cli_u32("--ranks", optarg, 1, NPUEMU_RUN_MAX_RANKS, &o->ranks);
	case 'd':
		return npuemu_run_list("--devices", optarg, "", &o->devices);
	case 's':
		return npuemu_run_list("--servers", optarg, "server", &o->servers);
	case 'b':
		o->board = optarg;
		break;
	case 'o':
		if (!*optarg)
			return npuemu_cli_usage("--output-dir: the name is empty");
		o->output_dir = optarg;
		break;
	case 'g':
		return npuemu_cli_double("--grace", optarg, 0, 86400, &o->grace);
	case 't':
		return npuemu_cli_double("--timeout", optarg, 0.01, 1e7, &o->timeout);
	case OPT_PORT:
		return npuemu_cli_u32("--port", optarg, 1, 65535, &o->port);
	case OPT_VISIBLE:
		rc = choice("--visible", optarg, visible, &i);
		o->visible = (enum npuemu_run_visible)i;
		break;
	case OPT_TABLE:
		rc = choice("--rank-table", optarg, table, &i);
		o->table = (enum npuemu_run_table)i;
		break;
	default:
		return NPUEMU_EXIT_USAGE;
	}
	return rc;
}

/* -1: go on; otherwise the exit code. */
static int one_option(struct npuemu_run_options *o, int c)
{
	int rc;

	switch (c) {
	case 'k':
		o->keep_going = 1;
		return -1;
	case OPT_NO_TABLE:
		o->table = NPUEMU_TABLE_NONE;
		return -1;
	case OPT_MPI:
		o->mpi_env = 1;
		return -1;
	case OPT_NO_PREFIX:
		o->no_prefix = 1;
		return -1;
	case OPT_JSON:
		o->json = 1;
		return -1;
	case OPT_HELP:
		fputs(help, stdout);
		return NPUEMU_EXIT_OK;
	case OPT_VERSION:
		return npuemu_cli_version();
	}
	rc = with_value(o, c);
	return rc ? rc : -1;
}

int npuemu_run_parse(int argc, char **argv, struct npuemu_run_options *o)
{
	static const struct option opts[] = {
		{ "ranks", required_argument, NULL, 'n' },
		{ "devices", required_argument, NULL, 'd' },
		{ "servers", required_argument, NULL, 's' },
		{ "board", required_argument, NULL, 'b' },
		{ "visible", required_argument, NULL, OPT_VISIBLE },
		{ "rank-table", required_argument, NULL, OPT_TABLE },
		{ "no-rank-table", no_argument, NULL, OPT_NO_TABLE },
		{ "port", required_argument, NULL, OPT_PORT },
		{ "mpi-env", no_argument, NULL, OPT_MPI },
		{ "no-prefix", no_argument, NULL, OPT_NO_PREFIX },
		{ "output-dir", required_argument, NULL, 'o' },
		{ "keep-going", no_argument, NULL, 'k' },
		{ "grace", required_argument, NULL, 'g' },
		{ "timeout", required_argument, NULL, 't' },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "help", no_argument, NULL, OPT_HELP },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ NULL, 0, NULL, 0 }
	};
	int c, rc;

	memset(o, 0, sizeof(*o));
	o->grace = 5;
	/* '+': what follows PROGRAM is its own */
	while ((c = npuemu_cli_getopt(argc, argv, "+:n:d:s:b:o:kg:t:", opts)) != -1) {
		rc = one_option(o, c);
		if (rc >= 0)
			return rc;
	}
	if (optind == argc)
		return npuemu_cli_usage("which PROGRAM is to be run?");
	if (!*argv[optind])
		return npuemu_cli_usage("the name of PROGRAM is empty");
	o->argv = argv + optind;
	return -1;
}
