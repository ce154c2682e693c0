// SPDX-License-Identifier: MIT
/* The command line of npuemu-perf collectives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/cli.h"
#include "../common/text.h"
#include "coll.h"

#define MOST_BYTES	(1ull << 34)
#define EVERY		0xffffffffu

static const char help_head[] =
"Usage: npuemu-perf collectives [NAME]... [OPTION]...\n"
"Measure HCCL's collectives and compare every byte of every rank with a plain reference.\n"
"\n"
"Names (default: all):\n";

static const char help_tail[] =
"\n"
"  -n, --ranks N        ranks, 1 to 128 (default 2); rank i is on device i, modulo devices\n"
"      --processes      a process for each (the default)\n"
"      --threads        threads of one process\n"
"  -s, --sizes LIST     like 8,64,4K or 8..16M (powers of two; default 8,4K,64K,1M); or\n"
"  -b, --min SIZE       from this size (default 8)\n"
"  -e, --max SIZE       to this one (default: the same)\n"
"  -f, --factor N       times N each (default 2)\n"
"  -d, --type LIST      int8 int16 int32 int64 uint8 uint16 uint32 uint64 fp16 bfp16 fp32 fp64;\n"
"                       only moved: int128 hif8 fp8e4m3 fp8e5m2 fp8e8m0; or all (default fp32)\n"
"  -o, --op LIST        sum, prod, max, min, or all (default sum)\n"
"  -r, --root N         of those that have one, or all (default 0)\n"
"      --algo NAME      ring, rhd, nhr, nb, pairwise, mesh-one-shot, mesh-two-shot, or what\n"
"                       HCCL_ALGO takes (default: HCCL_ALGO, else by size and topology)\n"
"  -i, --iterations N   operations of one repeat (default 20)\n"
"  -w, --warmup N       operations before the first (default 10)\n"
"      --repeats N      the median of N is reported (default 5)\n"
"      --deep           measure also N calls with one synchronization at their end\n"
"      --check          compare data (default)\n"
"      --no-check       do not\n"
"      --board NAME     the board (default: $NPUEMU_BOARD, else \"default\")\n"
"      --timeout S      give up when ranks wait for so long (default 60)\n"
"      --flip-byte OFF  damage the byte OFF of an output before it is compared, to see the\n"
"      --flip-rank N    check fail; on this rank (default 0)\n"
"      --json, --help, --version\n"
"\n"
"A size is the bytes of the longest buffer of a rank, as hccl_test has it: all-gather's\n"
"output, reduce-scatter's and all-to-all's input.  alg GB/s is size / time; bus GB/s is that\n"
"times 2(n-1)/n for all-reduce, (n-1)/n for those that share a buffer out, else 1.\n"
"Exit code: 0 done, 1 wrong data, 2 wrong command line, 3 it could not be done.\n"
"\n"
"Example: all-reduce from 8 bytes to 16 MiB, 8 processes:\n"
"  npuemu-perf collectives allreduce -n 8 -b 8 -e 16M -f 8\n";

enum {
	OPT_PROCESSES = 256, OPT_THREADS, OPT_ALGO, OPT_REPEATS, OPT_DEEP, OPT_CHECK, OPT_NO_CHECK,
	OPT_BOARD, OPT_TIMEOUT, OPT_FLIP, OPT_FLIP_RANK, OPT_JSON, OPT_HELP, OPT_VERSION
};

static const struct option long_options[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "processes", no_argument, NULL, OPT_PROCESSES },
	{ "threads", no_argument, NULL, OPT_THREADS },
	{ "sizes", required_argument, NULL, 's' },
	{ "min", required_argument, NULL, 'b' },
	{ "max", required_argument, NULL, 'e' },
	{ "factor", required_argument, NULL, 'f' },
	{ "type", required_argument, NULL, 'd' },
	{ "op", required_argument, NULL, 'o' },
	{ "root", required_argument, NULL, 'r' },
	{ "algo", required_argument, NULL, OPT_ALGO },
	{ "iterations", required_argument, NULL, 'i' },
	{ "warmup", required_argument, NULL, 'w' },
	{ "repeats", required_argument, NULL, OPT_REPEATS },
	{ "deep", no_argument, NULL, OPT_DEEP },
	{ "check", no_argument, NULL, OPT_CHECK },
	{ "no-check", no_argument, NULL, OPT_NO_CHECK },
	{ "board", required_argument, NULL, OPT_BOARD },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "flip-byte", required_argument, NULL, OPT_FLIP },
	{ "flip-rank", required_argument, NULL, OPT_FLIP_RANK },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 }
};

/* Short for what HCCL_ALGO says of ranks of one server. */
static const struct {
	const char *name;
	const char *algo;
} algos[] = {
	{ "ring", "level0:NA;level1:ring" },
	{ "rhd", "level0:NA;level1:H-D_R" },
	{ "nhr", "level0:NA;level1:NHR" },
	{ "nb", "level0:NA;level1:NB" },
	{ "pairwise", "level0:NA;level1:pairwise" },
	{ "mesh-one-shot", "level0:mesh_oneshot" },
	{ "mesh-two-shot", "level0:mesh_twoshot" },
};

/* What is put together only when all options are known. */
struct raw {
	struct npuemu_coll_asked a;
	const char *sizes;
	const char *min, *max, *factor;
	const char *root;
	int how;		/* --processes or --threads was said */
	int flip_rank_given;
};

static int print_help(void)
{
	uint32_t i;

	fputs(help_head, stdout);
	for (i = 0; i < npuemu_coll_count; i++)
		printf("  %-15s %s\n", npuemu_colls[i].name, npuemu_colls[i].what);
	fputs(help_tail, stdout);
	return NPUEMU_EXIT_OK;
}

/* ---- Lists ------------------------------------------------------------------- */

/* Words of @list, or "all", as bits: 0 or an exit code. */
static int set_list(const char *opt, const char *list, const char *const *names, uint32_t n,
		    uint32_t *set, int *all)
{
	char word[32];
	size_t len;
	int i;

	for (*set = 0; ; list += len + 1) {
		len = strcspn(list, ",");
		snprintf(word, sizeof(word), "%.*s", (int)len, list);
		i = npuemu_cli_choice(word, names);
		if (!strcmp(word, "all")) {
			*set |= (1u << n) - 1;
			*all = 1;
		} else if (i < 0 || !strcmp(word, "?")) {
			return npuemu_cli_usage("%s: '%s' is unknown; --help lists them", opt, word);
		} else {
			*set |= 1u << i;
		}
		if (!list[len])
			return 0;
	}
}

static int set_names(struct npuemu_coll_asked *a, int argc, char **argv)
{
	uint32_t i;

	for (; optind < argc; optind++) {
		for (i = 0; i < npuemu_coll_count; i++)
			if (!strcmp(npuemu_colls[i].name, argv[optind]))
				break;
		if (!strcmp(argv[optind], "all"))
			a->all_colls = 1;
		else if (i == npuemu_coll_count)
			return npuemu_cli_usage("'%s' is no collective; npuemu-perf collectives --help lists them",
						argv[optind]);
		else
			a->colls |= 1u << i;
	}
	if (!a->colls)
		a->all_colls = 1;
	if (a->all_colls)
		a->colls = EVERY;
	return 0;
}

/* ---- Sizes --------------------------------------------------------------------- */

static int one_size(const char *opt, const char *text, uint64_t *out)
{
	if (text && (npuemu_size_parse(text, out) || !*out || *out > MOST_BYTES))
		return npuemu_cli_usage("%s: '%s' is no size like 8, 64K or 16M, up to 16G", opt, text);
	return 0;
}

static int set_range(struct raw *raw)
{
	struct npuemu_coll_asked *a = &raw->a;
	uint64_t min = 8, max, factor = 2, v;
	int rc = one_size("--min", raw->min, &min);

	max = min;
	if (!rc)
		rc = one_size("--max", raw->max, &max);
	if (!rc && raw->factor)
		rc = npuemu_cli_u64("--factor", raw->factor, 2, 1u << 20, &factor);
	if (rc)
		return rc;
	if (max < min)
		return npuemu_cli_usage("--max %llu is less than --min %llu",
					(unsigned long long)max, (unsigned long long)min);
	for (v = min; v <= max; v *= factor) {
		if (a->sizes == NPUEMU_COLL_SIZES)
			return npuemu_cli_usage("--min, --max, --factor: more than %d sizes",
						NPUEMU_COLL_SIZES);
		a->size[a->sizes++] = v;
	}
	return 0;
}

static int set_sizes(struct raw *raw)
{
	struct npuemu_coll_asked *a = &raw->a;
	char why[128];
	int i;

	if (raw->min || raw->max || raw->factor) {
		if (raw->sizes)
			return npuemu_cli_usage("--sizes, or --min, --max and --factor: choose");
		return set_range(raw);
	}
	a->sizes = npuemu_sizes_parse(raw->sizes ? raw->sizes : "8,4K,64K,1M", a->size,
				      NPUEMU_COLL_SIZES, why, sizeof(why));
	if (a->sizes < 0)
		return npuemu_cli_usage("--sizes: %s", why);
	for (i = 0; i < a->sizes; i++)
		if (!a->size[i] || a->size[i] > MOST_BYTES)
			return npuemu_cli_usage("--sizes: %llu is not in 1..16G",
						(unsigned long long)a->size[i]);
	return 0;
}

static int set_roots(struct npuemu_coll_opts *o, struct raw *raw)
{
	struct npuemu_coll_asked *a = &raw->a;

	if (!raw->root)
		return 0;
	a->roots_given = 1;
	a->last_root = o->ranks - 1;
	if (!strcmp(raw->root, "all"))
		return 0;
	if (npuemu_cli_u32("--root", raw->root, 0, o->ranks - 1, &a->first_root))
		return NPUEMU_EXIT_USAGE;
	a->last_root = a->first_root;
	return 0;
}

/* ---- One by one ------------------------------------------------------------------ */

static int set_how(struct npuemu_coll_opts *o, struct raw *raw, int threads)
{
	if (raw->how && o->threads != threads)
		return npuemu_cli_usage("--processes and --threads: choose one");
	raw->how = 1;
	o->threads = threads;
	return 0;
}

static int number_option(struct npuemu_coll_opts *o, struct raw *raw, int c, const char *a)
{
	switch (c) {
	case 'n':
		return npuemu_cli_u32("--ranks", a, 1, NPUEMU_COLL_RANKS, &o->ranks);
	case 'i':
		return npuemu_cli_u32("--iterations", a, 1, 100000000, &o->iterations);
	case 'w':
		return npuemu_cli_u32("--warmup", a, 0, 100000000, &o->warmup);
	case OPT_REPEATS:
		return npuemu_cli_u32("--repeats", a, 1, NPUEMU_COLL_REPEATS, &o->repeats);
	case OPT_TIMEOUT:
		return npuemu_cli_u32("--timeout", a, 1, 86400, &o->timeout_s);
	case OPT_FLIP:
		o->flip = 1;
		return npuemu_cli_u64("--flip-byte", a, 0, MOST_BYTES, &o->flip_at);
	case OPT_FLIP_RANK:
		raw->flip_rank_given = 1;
		return npuemu_cli_u32("--flip-rank", a, 0, NPUEMU_COLL_RANKS - 1, &o->flip_rank);
	}
	return NPUEMU_EXIT_USAGE;
}

static int word_option(struct npuemu_coll_opts *o, struct raw *raw, int c, const char *a)
{
	switch (c) {
	case 's':
		raw->sizes = a;
		return 0;
	case 'b':
		raw->min = a;
		return 0;
	case 'e':
		raw->max = a;
		return 0;
	case 'f':
		raw->factor = a;
		return 0;
	case 'r':
		raw->root = a;
		return 0;
	case 'd':
		return set_list("--type", a, npuemu_coll_type_names, NPUEMU_COLL_TYPES, &raw->a.types,
				&raw->a.all_types);
	case 'o':
		raw->a.ops_given = 1;
		return set_list("--op", a, npuemu_coll_op_names, NPUEMU_COLL_OPS, &raw->a.ops,
				&raw->a.all_ops);
	case OPT_ALGO:
		o->algo = a;
		return 0;
	case OPT_BOARD:
		o->board = a;
		return 0;
	}
	return number_option(o, raw, c, a);
}

/* -1: go on; otherwise the exit code. */
static int one_option(struct npuemu_coll_opts *o, struct raw *raw, int c)
{
	int rc = 0;

	switch (c) {
	case OPT_PROCESSES:
	case OPT_THREADS:
		rc = set_how(o, raw, c == OPT_THREADS);
		break;
	case OPT_DEEP:
		o->deep = 1;
		break;
	case OPT_CHECK:
	case OPT_NO_CHECK:
		o->check = c == OPT_CHECK;
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

/* ---- All together ------------------------------------------------------------------ */

static int check_flip(const struct npuemu_coll_opts *o, const struct raw *raw)
{
	const struct npuemu_coll_row *k = &o->row[0];
	uint64_t bytes;

	if (raw->flip_rank_given && !o->flip)
		return npuemu_cli_usage("--flip-rank is of --flip-byte");
	if (!o->flip)
		return 0;
	if (!o->check)
		return npuemu_cli_usage("--flip-byte is for the data check, which --no-check turned off");
	if (o->flip_rank >= o->ranks)
		return npuemu_cli_usage("--flip-rank: %u is not in 0..%u", o->flip_rank, o->ranks - 1);
	bytes = k->coll->out(k, o->ranks, o->flip_rank) * k->elem;
	if (o->flip_at >= bytes)
		return npuemu_cli_usage("--flip-byte: the first output, of %s on rank %u, has %llu bytes",
					k->coll->name, o->flip_rank, (unsigned long long)bytes);
	return 0;
}

/* What the ranks' libraries read. */
static int set_environment(const struct npuemu_coll_opts *o)
{
	const char *algo = o->algo;
	char text[16];
	size_t i;
	int bad = 0;

	for (i = 0; algo && i < sizeof(algos) / sizeof(algos[0]); i++)
		if (!strcmp(algo, algos[i].name))
			algo = algos[i].algo;
	if (algo && !strchr(algo, ':'))
		return npuemu_cli_usage("--algo: '%s' is neither ring, rhd, nhr, nb, pairwise, mesh-one-shot, mesh-two-shot nor like level0:NA;level1:ring",
					algo);
	snprintf(text, sizeof(text), "%u", o->timeout_s);
	if (algo)
		bad |= setenv("HCCL_ALGO", algo, 1);
	if (o->board)
		bad |= setenv("NPUEMU_BOARD", o->board, 1);
	bad |= setenv("HCCL_EXEC_TIMEOUT", text, 0);
	if (!bad)
		return 0;
	npuemu_cli_say("no memory for the environment");
	return NPUEMU_EXIT_RUNTIME;
}

static void defaults(struct npuemu_coll_opts *o, struct raw *raw)
{
	memset(o, 0, sizeof(*o));
	memset(raw, 0, sizeof(*raw));
	o->ranks = 2;
	o->iterations = 20;
	o->warmup = 10;
	o->repeats = 5;
	o->timeout_s = 60;
	o->check = 1;
	raw->a.types = 1u << HCCL_DATA_TYPE_FP32;
	raw->a.ops = 1u << HCCL_REDUCE_SUM;
}

int npuemu_coll_options(int argc, char **argv, struct npuemu_coll_opts *o)
{
	struct raw raw;
	int c, rc;

	defaults(o, &raw);
	while ((c = npuemu_cli_getopt(argc, argv, ":n:s:b:e:f:d:o:r:i:w:", long_options)) != -1) {
		rc = one_option(o, &raw, c);
		if (rc >= 0)
			return rc;
	}
	rc = set_names(&raw.a, argc, argv);
	if (!rc)
		rc = set_sizes(&raw);
	if (!rc)
		rc = set_roots(o, &raw);
	/* there is no type 13 */
	raw.a.types &= ~(1u << 13);
	if (!rc)
		rc = npuemu_coll_rows(o, &raw.a);
	if (!rc)
		rc = check_flip(o, &raw);
	if (!rc)
		rc = set_environment(o);
	return rc ? rc : -1;
}
