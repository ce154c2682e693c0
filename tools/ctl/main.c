// SPDX-License-Identifier: MIT
/* npuemu-ctl: disturb boards on purpose, and clean up after them. */
#include <stdio.h>
#include <string.h>

#include "../common/cli.h"
#include "ctl.h"

static const char help[] =
"Usage: npuemu-ctl COMMAND [--board NAME] [--json] [OPTION]...\n"
"\n"
"Commands:\n"
"  list     the boards of this user\n"
"  inject   make WQEs fail, late or get lost, in any process of the board\n"
"  clear    stop all that\n"
"  reap     free what dead processes left\n"
"  reset    remove the board, damaged or not; programs on it get an error.\n"
"           The kernel's: all devices are as new (root)\n"
"  load     load the kernel module: load [OPTION]... [MODULE.ko] (root)\n"
"  unload   unload it (root)\n"
"  unplug N take device N of the module away for good (root)\n"
"\n"
"  -b, --board NAME     the board (default: $NPUEMU_BOARD, else \"default\")\n"
"      --json, --help, --version\n"
"\n"
"inject takes:\n"
"      --kind KIND      status      complete with an error, nothing moved\n"
"                       delay       execute later\n"
"                       drop        lost on the way: ACK_TIMEOUT\n"
"                       poison      source data marked bad\n"
"                       dead-peer   the process --peer-pid does not answer\n"
"      --status ST      status: which, like REM_ACCESS_ABORT or 3.2\n"
"      --delay-us N     delay: how long\n"
"      --peer-pid PID   dead-peer: who\n"
"      --queue ID       only this queue (npuemu-smi --queues)\n"
"      --pid PID        only queues of this process\n"
"      --device N       only queues of this device\n"
"      --rate R         this part of the WQEs, 0.01 = one in a hundred (default 1)\n"
"      --count N        stop after N in each queue (default: never)\n"
"      --seed N         which ones --rate picks (default 1)\n"
"\n"
"load takes:\n"
"      --devices N      so many devices (default: as the machine has)\n"
"      --machine NAME   950, 950-2x8, 910b, 910c, small (default 950)\n"
"      --param K=V      any parameter of the module ('modinfo npuemu')\n"
"\n"
"reset asks nothing and says what it removed.\n"
"Exit code: 0 done, 2 wrong command line, 3 it could not be done.\n"
"\n"
"Example: one WRITE in a thousand finds its token refused:\n"
"  npuemu-ctl inject --kind status --status REM_ACCESS_ABORT --rate 0.001\n";

enum { OPT_JSON = 256, OPT_HELP, OPT_VERSION };

static const struct option long_options[] = {
	{ "board", required_argument, NULL, 'b' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 }
};

/* -1: go on; otherwise the exit code. */
static int parse(int argc, char **argv, struct npuemu_ctl_common *c)
{
	int o;

	/* '+': what follows the command belongs to the command */
	while ((o = npuemu_cli_getopt(argc, argv, "+:b:", long_options)) != -1) {
		switch (o) {
		case 'b':
			c->board = optarg;
			break;
		case OPT_JSON:
			c->json = 1;
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
	return -1;
}

static int simple(const char *name, int (*run)(const struct npuemu_ctl_common *c),
		  int argc, char **argv, struct npuemu_ctl_common *c)
{
	int rc = parse(argc, argv, c);

	if (rc >= 0)
		return rc;
	if (optind < argc)
		return npuemu_cli_usage("%s: '%s' is not understood", name, argv[optind]);
	return run(c);
}

static int with_device(const char *name, int argc, char **argv, struct npuemu_ctl_common *c)
{
	int rc = parse(argc, argv, c);

	if (rc >= 0)
		return rc;
	if (optind + 1 != argc)
		return npuemu_cli_usage("%s: say which device, and nothing else", name);
	return npuemu_ctl_unplug(c, argv[optind]);
}

/* inject and load read their own options; those of all commands may stand among them. */
static int wants_help(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help"))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	struct npuemu_ctl_common c = { NULL, 0 };
	const char *name;
	int rc;

	npuemu_cli_init("npuemu-ctl");
	rc = parse(argc, argv, &c);
	if (rc >= 0)
		return rc;
	if (optind >= argc)
		return npuemu_cli_usage("which command? list, inject, clear, reap, reset, load, unload or unplug");
	name = argv[optind];
	argc -= optind;
	argv += optind;
	optind = 1;
	if (!strcmp(name, "list"))
		return simple(name, npuemu_ctl_list, argc, argv, &c);
	if (!strcmp(name, "clear"))
		return simple(name, npuemu_ctl_clear, argc, argv, &c);
	if (!strcmp(name, "reap"))
		return simple(name, npuemu_ctl_reap, argc, argv, &c);
	if (!strcmp(name, "reset"))
		return simple(name, npuemu_ctl_reset, argc, argv, &c);
	if (!strcmp(name, "unload"))
		return simple(name, npuemu_ctl_unload, argc, argv, &c);
	if (!strcmp(name, "unplug"))
		return with_device(name, argc, argv, &c);
	if (!strcmp(name, "inject") || !strcmp(name, "load")) {
		if (!wants_help(argc, argv))
			return name[0] == 'i' ? npuemu_ctl_inject(argc, argv, &c) :
						npuemu_ctl_load(argc, argv, &c);
		fputs(help, stdout);
		return NPUEMU_EXIT_OK;
	}
	return npuemu_cli_usage("'%s' is no command: list, inject, clear, reap, reset, load, unload or unplug",
				name);
}
