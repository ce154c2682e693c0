// SPDX-License-Identifier: MIT
/* npuemu-perf's command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/cli.h"
#include "../common/text.h"
#include "perf.h"

const struct npuemu_perf_test *const npuemu_perf_tests[] = {
	&npuemu_perf_write, &npuemu_perf_read, &npuemu_perf_faa, &npuemu_perf_cas,
	&npuemu_perf_notify, &npuemu_perf_send, &npuemu_perf_copy, &npuemu_perf_reduce,
	NULL
};

static const char *const mode_names[] = { "latency", "bandwidth", "rate", NULL };
static const char *const op_names[] = { "max", "min", "sum", NULL };
static const char *const type_names[] = {
	"int8", "int16", "int32", "uint8", "uint16", "uint32", "fp16", "fp32", "bf16", NULL
};
static const char *const engine_names[] = { "sdma", "udma", NULL };

/* What --latency, --bandwidth and --rate measure unless --sizes says otherwise. */
static const char *const default_sizes[] = {
	"8,64,512,4K,64K,1M", "4K,64K,1M,16M", "8,64,512,4K"
};

static const char help_head[] =
"Usage: npuemu-perf TEST [--latency | --bandwidth | --rate] [OPTION]...\n"
"       npuemu-perf collectives [NAME]... [OPTION]...\n"
"Measure the emulated engines between two devices, or HCCL's collectives (which have options\n"
"of their own: npuemu-perf collectives --help), and check every byte moved.\n"
"\n"
"Tests:\n";

static const char help_tail[] =
"\n"
"      --latency        one WQE at a time: p50, p99, max (the default)\n"
"      --bandwidth      ring kept full, large sizes: MB/s\n"
"      --rate           ring kept full, small sizes: million messages a second\n"
"  -s, --sizes LIST     like 8,64,4K or 8..16M (powers of two)\n"
"      --depth N        basic blocks of the ring, a power of two (default 256)\n"
"      --batch N        WQEs a doorbell (default 32, fewer for large sizes)\n"
"      --signal N       ask for a completion every N WQEs (default 1)\n"
"      --threads N      threads of a process, a queue each (default 1)\n"
"      --processes N    initiators, each with a device pair of its own (default 1)\n"
"  -n, --iterations N   messages of a thread in one repeat; or\n"
"      --seconds S      time for all repeats of one size (default 1)\n"
"      --repeats N      the median of N is reported (default 5)\n"
"      --warmup N       messages before each timed run (default 1000)\n"
"      --slots N        places to move from and to in turn, a power of two (default 1)\n"
"      --check          compare source, destination and the bytes around (default)\n"
"      --no-check       do not\n"
"      --self           the initiator owns the target too: no peer process\n"
"      --sleep          sleep until something comes instead of polling\n"
"      --op OP          reduce: sum, max or min (default sum)\n"
"      --type T         reduce: int8 int16 int32 uint8 uint16 uint32 fp16 bf16 fp32\n"
"      --engine E       reduce: sdma or udma (default sdma)\n"
"      --devices A,B    the first pair (default 0,1)\n"
"  -b, --board NAME     the board (default: $NPUEMU_BOARD, else \"default\")\n"
"      --timeout S      give up when nothing comes for so long (default 30)\n"
"      --flip-byte OFF  damage the byte OFF of the first destination before it is\n"
"                       compared, to see the check fail; negative: before it\n"
"      --json, --help, --version\n"
"\n"
"notify and send measure half a round trip with --latency.  NPUEMU_ASYNC=1 leaves\n"
"the work to the engine threads.\n"
"Exit code: 0 done, 1 wrong data, 2 wrong command line, 3 it could not be done.\n"
"\n"
"Example: rate of 8-byte writes, 32 a doorbell, on two threads:\n"
"  npuemu-perf write --rate --sizes 8 --batch 32 --threads 2\n";

const char *npuemu_perf_mode_name(enum npuemu_perf_mode mode)
{
	return mode_names[mode];
}

enum {
	OPT_LATENCY = 256, OPT_BANDWIDTH, OPT_RATE, OPT_DEPTH, OPT_BATCH, OPT_SIGNAL,
	OPT_THREADS, OPT_PROCESSES, OPT_SECONDS, OPT_REPEATS, OPT_WARMUP, OPT_SLOTS,
	OPT_CHECK, OPT_NO_CHECK, OPT_SELF, OPT_SLEEP, OPT_OP, OPT_TYPE, OPT_ENGINE,
	OPT_DEVICES, OPT_TIMEOUT, OPT_FLIP, OPT_JSON, OPT_HELP, OPT_VERSION
};

static const struct option long_options[] = {
	{ "latency", no_argument, NULL, OPT_LATENCY },
	{ "bandwidth", no_argument, NULL, OPT_BANDWIDTH },
	{ "rate", no_argument, NULL, OPT_RATE },
	{ "sizes", required_argument, NULL, 's' },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "batch", required_argument, NULL, OPT_BATCH },
	{ "signal", required_argument, NULL, OPT_SIGNAL },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "processes", required_argument, NULL, OPT_PROCESSES },
	{ "iterations", required_argument, NULL, 'n' },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "repeats", required_argument, NULL, OPT_REPEATS },
	{ "warmup", required_argument, NULL, OPT_WARMUP },
	{ "slots", required_argument, NULL, OPT_SLOTS },
	{ "check", no_argument, NULL, OPT_CHECK },
	{ "no-check", no_argument, NULL, OPT_NO_CHECK },
	{ "self", no_argument, NULL, OPT_SELF },
	{ "sleep", no_argument, NULL, OPT_SLEEP },
	{ "op", required_argument, NULL, OPT_OP },
	{ "type", required_argument, NULL, OPT_TYPE },
	{ "engine", required_argument, NULL, OPT_ENGINE },
	{ "devices", required_argument, NULL, OPT_DEVICES },
	{ "board", required_argument, NULL, 'b' },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "flip-byte", required_argument, NULL, OPT_FLIP },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 }
};

/* What is put together only when all options are known. */
struct raw {
	const char *sizes;
	int mode_given;
	int typed_given;
	int udma;
};

static int print_help(void)
{
	int i;

	fputs(help_head, stdout);
	for (i = 0; npuemu_perf_tests[i]; i++)
		printf("  %-8s %s\n", npuemu_perf_tests[i]->name,
		       npuemu_perf_tests[i]->what);
	fputs(help_tail, stdout);
	return NPUEMU_EXIT_OK;
}

static int set_mode(struct npuemu_perf_opts *o, struct raw *raw, enum npuemu_perf_mode mode)
{
	if (raw->mode_given && o->mode != mode)
		return npuemu_cli_usage("--%s and --%s: choose one", mode_names[o->mode],
					mode_names[mode]);
	raw->mode_given = 1;
	o->mode = mode;
	return 0;
}

static int set_devices(struct npuemu_perf_opts *o, const char *arg)
{
	char extra;

	if (sscanf(arg, "%u,%u%c", &o->device_a, &o->device_b, &extra) != 2)
		return npuemu_cli_usage("--devices: '%s' is not two numbers like 0,1", arg);
	o->devices_given = 1;
	return 0;
}

static int set_flip(struct npuemu_perf_opts *o, const char *arg)
{
	char *end;
	long v = strtol(arg, &end, 0);

	if (end == arg || *end)
		return npuemu_cli_usage("--flip-byte: '%s' is not an offset", arg);
	o->flip_at = v;
	o->flip = 1;
	return 0;
}

static int set_choice(const char *opt, const char *arg, const char *const *list,
		      uint32_t first, uint32_t *out)
{
	int i = npuemu_cli_choice(arg, list);

	if (i < 0)
		return npuemu_cli_usage("%s: '%s' is unknown", opt, arg);
	*out = first + (uint32_t)i;
	return 0;
}

static int number_option(struct npuemu_perf_opts *o, int c, const char *a)
{
	switch (c) {
	case OPT_DEPTH:
		return npuemu_cli_u32("--depth", a, NPUEMU_SQ_MIN_BB, NPUEMU_SQ_MAX_BB,
				      &o->depth);
	case OPT_BATCH:
		return npuemu_cli_u32("--batch", a, 1, NPUEMU_SQ_MAX_BB, &o->batch);
	case OPT_SIGNAL:
		return npuemu_cli_u32("--signal", a, 1, NPUEMU_SQ_MAX_BB, &o->signal);
	case OPT_THREADS:
		return npuemu_cli_u32("--threads", a, 1, NPUEMU_PERF_LANES, &o->threads);
	case OPT_PROCESSES:
		return npuemu_cli_u32("--processes", a, 1, NPUEMU_PERF_PAIRS,
				      &o->processes);
	case OPT_SECONDS:
		return npuemu_cli_double("--seconds", a, 0.001, 3600, &o->seconds);
	case OPT_REPEATS:
		return npuemu_cli_u32("--repeats", a, 1, NPUEMU_PERF_MAX_REPEATS,
				      &o->repeats);
	case OPT_WARMUP:
		return npuemu_cli_u32("--warmup", a, 0, 100000000, &o->warmup);
	case OPT_SLOTS:
		return npuemu_cli_u32("--slots", a, 1, NPUEMU_PERF_RQ_DEPTH, &o->slots);
	case OPT_TIMEOUT:
		return npuemu_cli_u32("--timeout", a, 1, 86400, &o->timeout_s);
	case 'n':
		return npuemu_cli_u64("--iterations", a, 1, UINT64_MAX / 2,
				      &o->iterations);
	}
	return NPUEMU_EXIT_USAGE;
}

static int word_option(struct npuemu_perf_opts *o, struct raw *raw, int c, const char *a)
{
	uint32_t v = 0;
	int rc;

	switch (c) {
	case OPT_OP:
		raw->typed_given = 1;
		return set_choice("--op", a, op_names, NPUEMU_REDUCE_MAX, &o->op);
	case OPT_TYPE:
		raw->typed_given = 1;
		return set_choice("--type", a, type_names, NPUEMU_INT8, &o->type);
	case OPT_ENGINE:
		rc = set_choice("--engine", a, engine_names, 0, &v);
		if (rc)
			return rc;
		raw->typed_given = 1;
		raw->udma = v == 1;
		return 0;
	case OPT_DEVICES:
		return set_devices(o, a);
	case OPT_FLIP:
		return set_flip(o, a);
	}
	return number_option(o, c, a);
}

/* -1: go on; otherwise the exit code. */
static int one_option(struct npuemu_perf_opts *o, struct raw *raw, int c)
{
	int rc = 0;

	switch (c) {
	case OPT_LATENCY:
	case OPT_BANDWIDTH:
	case OPT_RATE:
		rc = set_mode(o, raw, (enum npuemu_perf_mode)(c - OPT_LATENCY));
		break;
	case 's':
		raw->sizes = optarg;
		break;
	case 'b':
		o->board = optarg;
		break;
	case OPT_CHECK:
	case OPT_NO_CHECK:
		o->check = c == OPT_CHECK;
		break;
	case OPT_SELF:
		o->self = 1;
		break;
	case OPT_SLEEP:
		o->sleep = 1;
		break;
	case OPT_JSON:
		o->json = 1;
		break;
	case OPT_HELP:
		return print_help();
	case OPT_VERSION:
		return npuemu_cli_version();
	case '?':
		return NPUEMU_EXIT_USAGE;
	default:
		rc = word_option(o, raw, c, optarg);
	}
	return rc ? rc : -1;
}

static int find_test(struct npuemu_perf_opts *o, int argc, char **argv)
{
	int i;

	if (optind >= argc)
		return npuemu_cli_usage("which test? write, read, faa, cas, notify, send, copy, reduce or collectives");
	if (optind + 1 < argc)
		return npuemu_cli_usage("'%s': one test at a time", argv[optind + 1]);
	if (!strcmp(argv[optind], "collectives"))
		return npuemu_cli_usage("collectives comes first: npuemu-perf collectives [OPTION]...");
	for (i = 0; npuemu_perf_tests[i]; i++)
		if (!strcmp(npuemu_perf_tests[i]->name, argv[optind]))
			o->test = npuemu_perf_tests[i];
	if (!o->test)
		return npuemu_cli_usage("'%s' is no test: write, read, faa, cas, notify, send, copy, reduce or collectives",
					argv[optind]);
	return 0;
}

static uint32_t size_step(const struct npuemu_perf_opts *o)
{
	static const uint32_t bytes[] = { 1, 2, 4, 1, 2, 4, 2, 4, 2 };

	return o->test->typed ? bytes[o->type] : 1;
}

static int check_size(const struct npuemu_perf_opts *o, uint64_t size)
{
	const struct npuemu_perf_test *t = o->test;

	if (t->atomic && size != 4 && size != 8)
		return npuemu_cli_usage("--sizes: %s works on 4 or 8 bytes, not %llu",
					t->name, (unsigned long long)size);
	if (size < t->size_min || size > t->size_max)
		return npuemu_cli_usage("--sizes: %llu is not in %u..%u, what %s can do",
					(unsigned long long)size, t->size_min, t->size_max,
					t->name);
	if (size % size_step(o))
		return npuemu_cli_usage("--sizes: %llu is no whole number of %s",
					(unsigned long long)size, type_names[o->type]);
	return 0;
}

static int set_sizes(struct npuemu_perf_opts *o, const struct raw *raw)
{
	const char *list = raw->sizes;
	char why[128];
	int i, rc = 0;

	if (!list)
		list = o->test->atomic ? "8" : default_sizes[o->mode];
	o->sizes = npuemu_sizes_parse(list, o->size, NPUEMU_PERF_SIZES, why, sizeof(why));
	if (o->sizes < 0)
		return npuemu_cli_usage("--sizes: %s", why);
	for (i = 0; i < o->sizes && !rc; i++)
		rc = check_size(o, o->size[i]);
	return rc;
}

static int is_power_of_two(uint32_t v)
{
	return v && !(v & (v - 1));
}

/* A ring that waits for a completion nobody asked for would wait for ever. */
static int check_ring(const struct npuemu_perf_opts *o)
{
	uint32_t batch = o->batch ? o->batch : 32, bbs = o->test->bbs;

	if (!is_power_of_two(o->depth))
		return npuemu_cli_usage("--depth: %u is not a power of two", o->depth);
	if (!is_power_of_two(o->slots))
		return npuemu_cli_usage("--slots: %u is not a power of two", o->slots);
	if ((batch + o->signal) * bbs > o->depth)
		return npuemu_cli_usage("--batch %u and --signal %u need a ring of at least %u blocks for %s; --depth is %u",
					batch, o->signal, (batch + o->signal) * bbs,
					o->test->name, o->depth);
	return 0;
}

static int check_all(struct npuemu_perf_opts *o, const struct raw *raw)
{
	int rc = check_ring(o);

	if (rc)
		return rc;
	if (raw->typed_given && !o->test->typed)
		return npuemu_cli_usage("--op, --type and --engine belong to reduce, not to %s",
					o->test->name);
	if (o->self && npuemu_perf_active(o))
		return npuemu_cli_usage("--self: %s --%s needs a peer process",
					o->test->name, mode_names[o->mode]);
	if (o->flip && !o->check)
		return npuemu_cli_usage("--flip-byte is for the data check, which --no-check turned off");
	if (o->flip && (o->flip_at < -64 || o->flip_at >= (int64_t)o->size[0] + 64))
		return npuemu_cli_usage("--flip-byte: %lld is not in -64..%lld",
					(long long)o->flip_at,
					(long long)o->size[0] + 63);
	if (o->slots > 1 && o->test->atomic)
		return npuemu_cli_usage("--slots: %s has one word a thread", o->test->name);
	return 0;
}

static void defaults(struct npuemu_perf_opts *o)
{
	memset(o, 0, sizeof(*o));
	o->mode = NPUEMU_PERF_LATENCY;
	o->depth = 256;
	o->signal = 1;
	o->threads = 1;
	o->processes = 1;
	o->repeats = 5;
	o->slots = 1;
	o->warmup = 1000;
	o->timeout_s = 30;
	o->op = NPUEMU_REDUCE_SUM;
	o->type = NPUEMU_FP32;
	o->seconds = 1;
	o->check = 1;
}

int npuemu_perf_options(int argc, char **argv, struct npuemu_perf_opts *o)
{
	struct raw raw;
	int c, rc;

	defaults(o);
	memset(&raw, 0, sizeof(raw));
	while ((c = npuemu_cli_getopt(argc, argv, ":s:n:b:", long_options)) != -1) {
		rc = one_option(o, &raw, c);
		if (rc >= 0)
			return rc;
	}
	rc = find_test(o, argc, argv);
	if (!rc && raw.udma && o->test == &npuemu_perf_reduce)
		o->test = &npuemu_perf_reduce_udma;
	if (!rc)
		rc = set_sizes(o, &raw);
	if (!rc)
		rc = check_all(o, &raw);
	return rc ? rc : -1;
}
