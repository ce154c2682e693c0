// SPDX-License-Identifier: MIT
/* npuemu-ctl inject and clear. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../common/cli.h"
#include "../common/json.h"
#include "ctl.h"

/* In the order of enum npuemu_fault_kind. */
static const char *const kind_names[] = {
	"status", "delay", "drop", "poison", "dead-peer", NULL
};

static const uint32_t statuses[] = {
	NPUEMU_ST_UNSUPPORTED_OPCODE, NPUEMU_ST_LOC_LEN, NPUEMU_ST_LOC_ACCESS,
	NPUEMU_ST_REM_RESP_LEN, NPUEMU_ST_LOC_DATA_POISON, NPUEMU_ST_REM_UNSUPPORTED_REQ,
	NPUEMU_ST_REM_ACCESS_ABORT, NPUEMU_ST_REM_DATA_POISON, NPUEMU_ST_RNR_RETRY_CNT_EXC,
	NPUEMU_ST_ACK_TIMEOUT, NPUEMU_ST_WR_FLUSH_ERR,
};

#define STATUSES	(sizeof(statuses) / sizeof(statuses[0]))

struct order {
	struct npuemu_fault fault;
	uint32_t pid;		/* 0: any */
	uint32_t peer_pid;
	int kind_given;
	int status_given;
	int delay_given;
};

enum {
	OPT_JSON = 256, OPT_VERSION, OPT_KIND, OPT_STATUS, OPT_QUEUE, OPT_PID, OPT_DEVICE,
	OPT_RATE, OPT_COUNT, OPT_DELAY, OPT_PEER, OPT_SEED
};

static const struct option long_options[] = {
	{ "board", required_argument, NULL, 'b' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "kind", required_argument, NULL, OPT_KIND },
	{ "status", required_argument, NULL, OPT_STATUS },
	{ "queue", required_argument, NULL, OPT_QUEUE },
	{ "pid", required_argument, NULL, OPT_PID },
	{ "device", required_argument, NULL, OPT_DEVICE },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ "delay-us", required_argument, NULL, OPT_DELAY },
	{ "peer-pid", required_argument, NULL, OPT_PEER },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ NULL, 0, NULL, 0 }
};

/* The name the library has for it: what stands before " (3.2)". */
static int has_name(uint32_t status, const char *name)
{
	const char *text = npuemu_status_str(status);
	size_t n = strcspn(text, " ");

	return strlen(name) == n && !strncasecmp(text, name, n);
}

static int set_status(struct order *o, const char *arg)
{
	unsigned int major, minor;
	char extra;
	size_t i;

	if (sscanf(arg, "%u.%u%c", &major, &minor, &extra) == 2 && major < 256 &&
	    minor < 256)
		o->fault.status = NPUEMU_STATUS(major, minor);
	else
		o->fault.status = NPUEMU_ST_SUCCESS;
	for (i = 0; i < STATUSES; i++) {
		if (o->fault.status != statuses[i] && !has_name(statuses[i], arg))
			continue;
		o->fault.status = statuses[i];
		o->status_given = 1;
		return 0;
	}
	npuemu_cli_say("--status: '%s' is no status; there are:", arg);
	for (i = 0; i < STATUSES; i++)
		fprintf(stderr, "  %s\n", npuemu_status_str(statuses[i]));
	return NPUEMU_EXIT_USAGE;
}

static int set_rate(struct order *o, const char *arg)
{
	double rate;
	int rc = npuemu_cli_double("--rate", arg, 0, 1, &rate);

	if (rc)
		return rc;
	o->fault.rate_ppm = (uint32_t)(rate * 1e6 + 0.5);
	if (!o->fault.rate_ppm)
		return npuemu_cli_usage("--rate: less than one in a million is none; 'npuemu-ctl clear' stops a fault");
	return 0;
}

static int set_kind(struct order *o, const char *arg)
{
	int k = npuemu_cli_choice(arg, kind_names);

	if (k < 0)
		return npuemu_cli_usage("--kind: '%s' is none of status, delay, drop, poison, dead-peer",
					arg);
	o->fault.kind = (uint32_t)k;
	o->kind_given = 1;
	return 0;
}

static int one_option(struct order *o, int c, const char *a)
{
	struct npuemu_fault *f = &o->fault;

	switch (c) {
	case OPT_KIND:
		return set_kind(o, a);
	case OPT_STATUS:
		return set_status(o, a);
	case OPT_RATE:
		return set_rate(o, a);
	case OPT_QUEUE:
		return npuemu_cli_u32("--queue", a, 0, 0xfffff, &f->queue);
	case OPT_PID:
		return npuemu_cli_u32("--pid", a, 1, INT32_MAX, &o->pid);
	case OPT_DEVICE:
		return npuemu_cli_u32("--device", a, 0, UINT32_MAX - 1, &f->device);
	case OPT_COUNT:
		return npuemu_cli_u32("--count", a, 1, UINT32_MAX, &f->count);
	case OPT_DELAY:
		o->delay_given = 1;
		return npuemu_cli_u32("--delay-us", a, 1, 60000000, &f->delay_us);
	case OPT_PEER:
		return npuemu_cli_u32("--peer-pid", a, 1, INT32_MAX, &o->peer_pid);
	case OPT_SEED:
		return npuemu_cli_u64("--seed", a, 0, UINT64_MAX, &f->seed);
	}
	return NPUEMU_EXIT_USAGE;
}

/* An option that the kind does not use is a mistake, and so is one it lacks. */
static int check_order(const struct order *o)
{
	uint32_t kind = o->fault.kind;

	if (!o->kind_given)
		return npuemu_cli_usage("inject: --kind is missing");
	if (o->status_given != (kind == NPUEMU_FAULT_STATUS))
		return npuemu_cli_usage("inject: --status %s --kind %s",
					o->status_given ? "does not go with" : "is missing for",
					kind_names[kind]);
	if (o->delay_given != (kind == NPUEMU_FAULT_DELAY))
		return npuemu_cli_usage("inject: --delay-us %s --kind %s",
					o->delay_given ? "does not go with" : "is missing for",
					kind_names[kind]);
	if (!o->peer_pid != (kind != NPUEMU_FAULT_DEAD_PEER))
		return npuemu_cli_usage("inject: --peer-pid %s --kind %s",
					o->peer_pid ? "does not go with" : "is missing for",
					kind_names[kind]);
	return 0;
}

/* -1: go on; otherwise the exit code. */
static int parse(int argc, char **argv, struct npuemu_ctl_common *common, struct order *o)
{
	int c, rc = 0;

	memset(o, 0, sizeof(*o));
	o->fault.size = sizeof(o->fault);
	o->fault.slot = NPUEMU_ANY;
	o->fault.queue = NPUEMU_ANY;
	o->fault.device = NPUEMU_ANY;
	o->fault.peer_slot = NPUEMU_ANY;
	o->fault.rate_ppm = 1000000;
	o->fault.seed = 1;
	while (!rc && (c = npuemu_cli_getopt(argc, argv, ":b:", long_options)) != -1) {
		if (c == '?')
			return NPUEMU_EXIT_USAGE;
		if (c == OPT_VERSION)
			return npuemu_cli_version();
		if (c == 'b')
			common->board = optarg;
		else if (c == OPT_JSON)
			common->json = 1;
		else
			rc = one_option(o, c, optarg);
	}
	if (!rc && optind < argc)
		rc = npuemu_cli_usage("inject: '%s' is not understood", argv[optind]);
	if (!rc)
		rc = check_order(o);
	return rc ? rc : -1;
}

/* The slot of a process on the board. */
static int find_slot(struct npuemu *ctx, uint32_t pid, const char *opt, uint32_t *slot)
{
	struct npuemu_process_info *list;
	int room = 4096, n, i, rc;

	list = calloc((size_t)room, sizeof(*list));
	if (!list) {
		npuemu_cli_say("out of memory");
		return NPUEMU_EXIT_RUNTIME;
	}
	n = npuemu_process_list(ctx, list, room);
	rc = n < 0 ? npuemu_cli_failed(n, "cannot list the processes") : -1;
	for (i = 0; i < n && i < room && rc; i++) {
		if (list[i].pid == pid) {
			*slot = list[i].slot;
			rc = 0;
		}
	}
	free(list);
	if (rc >= 0)
		return rc;
	npuemu_cli_say("%s: process %u is not on the board; 'npuemu-smi' shows who is", opt,
		       pid);
	return NPUEMU_EXIT_RUNTIME;
}

static void show(const struct order *o, const struct npuemu_ctl_common *c, const char *board)
{
	const struct npuemu_fault *f = &o->fault;
	struct json_object *j;

	if (!c->json) {
		printf("board %s: %s", board, kind_names[f->kind]);
		if (o->status_given)
			printf(" %s", npuemu_status_str(f->status));
		if (o->delay_given)
			printf(" of %u us", f->delay_us);
		printf(", %g %% of the WQEs", f->rate_ppm / 1e4);
		if (f->count)
			printf(", at most %u in each queue", f->count);
		puts("; 'npuemu-ctl clear' ends it");
		return;
	}
	j = json_object_new_object();
	npuemu_json_str(j, "board", board);
	npuemu_json_str(j, "kind", kind_names[f->kind]);
	if (o->status_given)
		npuemu_json_str(j, "status", npuemu_status_str(f->status));
	if (o->delay_given)
		npuemu_json_u64(j, "delay_us", f->delay_us);
	if (f->queue != NPUEMU_ANY)
		npuemu_json_u64(j, "queue", f->queue);
	if (f->device != NPUEMU_ANY)
		npuemu_json_u64(j, "device", f->device);
	if (o->pid)
		npuemu_json_u64(j, "pid", o->pid);
	if (o->peer_pid)
		npuemu_json_u64(j, "peer_pid", o->peer_pid);
	npuemu_json_u64(j, "rate_ppm", f->rate_ppm);
	npuemu_json_u64(j, "count", f->count);
	npuemu_json_u64(j, "seed", f->seed);
	npuemu_json_print(j, 0);
}

static int inject(struct npuemu *ctx, struct order *o)
{
	int rc = 0;

	if (o->pid)
		rc = find_slot(ctx, o->pid, "--pid", &o->fault.slot);
	if (!rc && o->peer_pid)
		rc = find_slot(ctx, o->peer_pid, "--peer-pid", &o->fault.peer_slot);
	if (rc)
		return rc;
	rc = npuemu_fault_inject(ctx, &o->fault);
	if (rc == -ENOSPC)
		npuemu_cli_say("too many faults at a time; 'npuemu-ctl clear' ends them all");
	return rc ? npuemu_cli_failed(rc, "cannot inject") : 0;
}

int npuemu_ctl_inject(int argc, char **argv, const struct npuemu_ctl_common *common)
{
	struct npuemu_ctl_common c = *common;
	char board[NPUEMU_CTL_BOARD];
	struct npuemu *ctx;
	struct order o;
	int rc;

	rc = parse(argc, argv, &c, &o);
	if (rc >= 0)
		return rc;
	rc = npuemu_cli_open(c.board, NPUEMU_OPEN_OBSERVE | NPUEMU_OPEN_EXISTING, &ctx);
	if (rc)
		return rc;
	npuemu_ctl_board(ctx, board, sizeof(board));
	rc = inject(ctx, &o);
	if (!rc)
		show(&o, &c, board);
	npuemu_close(ctx);
	return rc;
}

int npuemu_ctl_clear(const struct npuemu_ctl_common *c)
{
	char board[NPUEMU_CTL_BOARD];
	struct json_object *j;
	struct npuemu *ctx;
	int rc;

	rc = npuemu_cli_open(c->board, NPUEMU_OPEN_OBSERVE | NPUEMU_OPEN_EXISTING, &ctx);
	if (rc)
		return rc;
	npuemu_ctl_board(ctx, board, sizeof(board));
	rc = npuemu_fault_clear(ctx);
	npuemu_close(ctx);
	if (rc)
		return npuemu_cli_failed(rc, "cannot clear the faults of board '%s'", board);
	if (!c->json) {
		printf("board %s: no more faults are injected\n", board);
		return 0;
	}
	j = json_object_new_object();
	npuemu_json_str(j, "board", board);
	npuemu_json_bool(j, "cleared", 1);
	npuemu_json_print(j, 0);
	return 0;
}
