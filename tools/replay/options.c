// SPDX-License-Identifier: MIT
/*
 * The command line of npuemu-replay.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"

static void print_help(void)
{
	const struct replay_model *m;
	char buf[32];

	fputs("Usage: npuemu-replay [OPTION]...\n"
	      "Move the KV-cache blocks of a request trace from a prefill NPU to a decode NPU,\n"
	      "in two processes, through UDMA queues, and check every byte on arrival.\n"
	      "\n"
	      "  --trace FILE        JSON lines in Mooncake's format (default: the shipped one,\n"
	      "                      one hour of a production chat service)\n"
	      "  --requests N        only the first N requests (default: all)\n"
	      "  --model NAME        size of a block, see below (default: tiny)\n"
	      "  --pool-blocks N     blocks the decode device holds, least recently used ones\n"
	      "                      are evicted; 0 = all (default: 1 GiB worth of blocks)\n"
	      "  --devices P,D       device numbers of prefill and decode (default: 0,1)\n"
	      "  --depth N           requests in flight, 1..64 (default: 4)\n"
	      "  --seed N            key of the blocks' contents (default: 1)\n"
	      "  --chaos SEED        the chip may do all that hardware does not rule out:\n"
	      "                      reorder, split, place late (sets NPUEMU_CHAOS)\n"
	      "  --timeout SECONDS   give up when nothing moves for so long (default: 30)\n"
	      "  --sabotage N        flip one byte in the pool before request N is verified\n"
	      "                      (a test of the verification: must end with code 1)\n"
	      "  --json              print one JSON object instead of the table\n"
	      "  --help, --version\n"
	      "\n"
	      "Models:\n", stdout);
	for (m = replay_models; m->name; m++)
		printf("  %-8s %2u layer%s x %6u bytes = %s a block; %s\n", m->name,
		       m->layers, m->layers == 1 ? " " : "s", m->layer_bytes,
		       replay_size(replay_block_bytes(m), buf), m->what);
	fputs("\n"
	      "Exit codes: 0 all blocks arrived intact, 1 some did not, 2 bad options or a bad\n"
	      "trace, 3 the replay could not be carried out.\n"
	      "\n"
	      "Example: the whole trace, nothing evicted, small blocks:\n"
	      "  npuemu-replay --model micro --pool-blocks 0\n", stdout);
}

/* A decimal number @min..@max, all of @s. */
static int number(const char *what, const char *s, uint64_t min, uint64_t max,
		  uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(s, &end, 10);
	if (s[0] < '0' || s[0] > '9' || *end || errno || *out < min || *out > max) {
		fprintf(stderr,
			"npuemu-replay: --%s '%s': must be a number %" PRIu64
			"..%" PRIu64 "\n", what, s, min, max);
		return -1;
	}
	return 0;
}

static int number32(const char *what, const char *s, uint32_t min, uint32_t max,
		    uint32_t *out)
{
	uint64_t v = 0;

	if (number(what, s, min, max, &v))
		return -1;
	*out = (uint32_t)v;
	return 0;
}

static int device_pair(const char *s, uint32_t *a, uint32_t *b)
{
	char first[16];
	const char *comma = strchr(s, ',');

	if (!comma || (size_t)(comma - s) >= sizeof(first)) {
		fprintf(stderr,
			"npuemu-replay: --devices '%s': must be two numbers, as in 0,1\n",
			s);
		return -1;
	}
	memcpy(first, s, (size_t)(comma - s));
	first[comma - s] = 0;
	return number32("devices", first, 0, 65535, a) ||
	       number32("devices", comma + 1, 0, 65535, b) ? -1 : 0;
}

static int model_named(struct replay_options *o, const char *name)
{
	const struct replay_model *m;

	o->model = replay_model_find(name);
	if (o->model)
		return 0;
	fprintf(stderr, "npuemu-replay: --model '%s': there is", name);
	for (m = replay_models; m->name; m++)
		fprintf(stderr, " %s", m->name);
	fputc('\n', stderr);
	return -1;
}

enum {
	OPT_TRACE = 256, OPT_REQUESTS, OPT_MODEL, OPT_POOL, OPT_DEVICES, OPT_DEPTH,
	OPT_SEED, OPT_CHAOS, OPT_TIMEOUT, OPT_SABOTAGE, OPT_JSON, OPT_HELP, OPT_VERSION,
};

static const struct option longopts[] = {
	{ "trace", required_argument, NULL, OPT_TRACE },
	{ "requests", required_argument, NULL, OPT_REQUESTS },
	{ "model", required_argument, NULL, OPT_MODEL },
	{ "pool-blocks", required_argument, NULL, OPT_POOL },
	{ "devices", required_argument, NULL, OPT_DEVICES },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "chaos", required_argument, NULL, OPT_CHAOS },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "sabotage", required_argument, NULL, OPT_SABOTAGE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static int set_option(struct replay_options *o, int c, const char *arg)
{
	uint64_t v;

	switch (c) {
	case OPT_TRACE:
		o->trace = arg;
		return 0;
	case OPT_REQUESTS:
		return number32("requests", arg, 1, UINT32_MAX, &o->requests);
	case OPT_MODEL:
		return model_named(o, arg);
	case OPT_POOL:
		return number("pool-blocks", arg, 0, 1u << 31, &o->pool_blocks);
	case OPT_DEVICES:
		return device_pair(arg, &o->prefill_dev, &o->decode_dev);
	case OPT_DEPTH:
		return number32("depth", arg, 1, REPLAY_MAX_DEPTH, &o->depth);
	case OPT_SEED:
		return number("seed", arg, 0, UINT64_MAX, &o->seed);
	case OPT_CHAOS:
		o->chaos = arg;
		return number("chaos", arg, 0, UINT64_MAX, &v);
	case OPT_TIMEOUT:
		return number32("timeout", arg, 1, 86400, &o->timeout_s);
	case OPT_SABOTAGE:
		return number32("sabotage", arg, 1, UINT32_MAX, &o->sabotage);
	case OPT_JSON:
		o->json = true;
		return 0;
	default:
		return -1;
	}
}

int replay_options_parse(struct replay_options *o, int argc, char **argv, int *code)
{
	int c;

	*o = (struct replay_options){
		.pool_blocks = REPLAY_POOL_DEFAULT,
		.prefill_dev = 0,
		.decode_dev = 1,
		.model = replay_model_find("tiny"),
		.depth = 4,
		.seed = 1,
		.timeout_s = 30,
	};
	*code = REPLAY_USAGE;
	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		if (c == OPT_HELP || c == OPT_VERSION) {
			if (c == OPT_HELP)
				print_help();
			else
				printf("npuemu-replay %s\n", npuemu_version());
			*code = REPLAY_OK;
			return -1;
		}
		if (c == '?') {
			fputs("npuemu-replay: try --help\n", stderr);
			return -1;
		}
		if (set_option(o, c, optarg))
			return -1;
	}
	if (optind < argc) {
		fprintf(stderr, "npuemu-replay: '%s': no such argument; try --help\n",
			argv[optind]);
		return -1;
	}
	return 0;
}
