// SPDX-License-Identifier: MIT
/* The results of npuemu-perf collectives: a table, or JSON. */
#include <stdio.h>
#include <string.h>

#include "../common/cli.h"
#include "../common/json.h"
#include "../common/text.h"
#include "coll.h"

/* Numbers of one row; bandwidths in GB/s. */
struct numbers {
	double us, us_min, us_max;
	double alg, bus;
};

static struct numbers reckon(const struct npuemu_coll_opts *o, const struct npuemu_coll_row *k,
			     double *ns)
{
	struct numbers x;

	x.us = npuemu_median(ns, (int)o->repeats) / 1e3;	/* sorts them */
	x.us_min = ns[0] / 1e3;
	x.us_max = ns[o->repeats - 1] / 1e3;
	x.alg = x.us > 0 ? (double)k->size / x.us / 1e3 : 0;
	x.bus = x.alg * k->coll->bus(o->ranks);
	return x;
}

static const char *op_of(const struct npuemu_coll_row *k)
{
	return k->coll->reduces ? npuemu_coll_op_names[k->op] : "-";
}

static const char *verdict(const struct npuemu_coll_opts *o, const struct npuemu_coll_result *res)
{
	if (!o->check)
		return "off";
	return res->wrong ? "failed" : "passed";
}

static void print_head(const struct npuemu_coll_opts *o, const struct npuemu_coll_shared *sh)
{
	printf("npuemu-perf collectives: %u rank%s as %s of board %s, %u device%s (%s)\n", o->ranks,
	       o->ranks > 1 ? "s" : "", o->threads ? "threads" : "processes",
	       npuemu_cli_board(o->board), sh->devices, sh->devices > 1 ? "s" : "", sh->soc);
	printf("%u operations%s%s%s, median of %u repeats, slowest rank%s\n", o->iterations,
	       o->deep ? " with a synchronization each, then with one for all (deep)" :
	       " with a synchronization each",
	       o->algo ? ", algorithm " : "", o->algo ? o->algo : "", o->repeats,
	       o->check ? ", every byte of every rank compared" : "");
}

static void print_row(struct npuemu_table *t, const struct npuemu_coll_opts *o,
		      const struct npuemu_coll_row *k, struct npuemu_coll_result *res)
{
	struct numbers x = reckon(o, k, res->ns);
	char size[NPUEMU_TEXT_SIZE];

	npuemu_table_add(t, "%s", k->coll->name);
	npuemu_table_add(t, "%s", k->coll->empty ? "-" : npuemu_size_text(size, k->size));
	npuemu_table_add(t, "%llu", (unsigned long long)k->count);
	npuemu_table_add(t, "%s", k->coll->empty ? "-" : npuemu_coll_type_names[k->type]);
	npuemu_table_add(t, "%s", op_of(k));
	if (k->coll->rooted)
		npuemu_table_add(t, "%u", k->root);
	else
		npuemu_table_add(t, "-");
	npuemu_table_add(t, "%.2f", x.us);
	npuemu_table_add(t, "%.3f", x.alg);
	npuemu_table_add(t, "%.3f", x.bus);
	if (o->deep) {
		x = reckon(o, k, res->deep_ns);
		npuemu_table_add(t, "%.2f", x.us);
		npuemu_table_add(t, "%.3f", x.alg);
		npuemu_table_add(t, "%.3f", x.bus);
	}
	npuemu_table_add(t, "%s", verdict(o, res));
}

static void print_table(const struct npuemu_coll_opts *o, struct npuemu_coll_shared *sh)
{
	char heads[] = "collective|size|count|type|op|root|time us|alg GB/s|bus GB/s|check";
	char deep_heads[] = "collective|size|count|type|op|root|time us|alg GB/s|bus GB/s|"
		"deep us|deep alg|deep bus|check";
	struct npuemu_table t;
	uint32_t i;

	print_head(o, sh);
	if (o->deep)
		npuemu_table_init(&t, deep_heads, "lrrllrrrrrrrl", 0);
	else
		npuemu_table_init(&t, heads, "lrrllrrrrl", 0);
	for (i = 0; i < o->rows; i++)
		if (sh->result[i].done)
			print_row(&t, o, &o->row[i], &sh->result[i]);
	npuemu_table_print(&t, stdout);
	npuemu_table_free(&t);
	fflush(stdout);
}

static void add_numbers(struct json_object *j, const char *prefix, const struct numbers *x)
{
	char key[32];

	snprintf(key, sizeof(key), "%stime_us", prefix);
	npuemu_json_num(j, key, x->us, 6);
	snprintf(key, sizeof(key), "%stime_us_min", prefix);
	npuemu_json_num(j, key, x->us_min, 6);
	snprintf(key, sizeof(key), "%stime_us_max", prefix);
	npuemu_json_num(j, key, x->us_max, 6);
	snprintf(key, sizeof(key), "%salg_gb_s", prefix);
	npuemu_json_num(j, key, x->alg, 9);
	snprintf(key, sizeof(key), "%sbus_gb_s", prefix);
	npuemu_json_num(j, key, x->bus, 9);
}

static struct json_object *row_json(const struct npuemu_coll_opts *o,
				    const struct npuemu_coll_row *k,
				    struct npuemu_coll_result *res)
{
	struct json_object *j = json_object_new_object();
	struct numbers x = reckon(o, k, res->ns);

	npuemu_json_str(j, "collective", k->coll->name);
	npuemu_json_u64(j, "size", k->size);
	npuemu_json_u64(j, "count", k->count);
	if (!k->coll->empty)
		npuemu_json_str(j, "type", npuemu_coll_type_names[k->type]);
	if (k->coll->reduces)
		npuemu_json_str(j, "op", npuemu_coll_op_names[k->op]);
	if (k->coll->rooted)
		npuemu_json_u64(j, "root", k->root);
	add_numbers(j, "", &x);
	if (o->deep) {
		x = reckon(o, k, res->deep_ns);
		add_numbers(j, "deep_", &x);
	}
	npuemu_json_str(j, "check", verdict(o, res));
	if (o->check)
		npuemu_json_u64(j, "wrong_ranks", res->wrong);
	return j;
}

static void print_json(const struct npuemu_coll_opts *o, struct npuemu_coll_shared *sh)
{
	struct json_object *j = json_object_new_object();
	struct json_object *list = json_object_new_array();
	uint32_t i;

	npuemu_json_str(j, "version", npuemu_version());
	npuemu_json_str(j, "test", "collectives");
	npuemu_json_u64(j, "ranks", o->ranks);
	npuemu_json_str(j, "ranks_are", o->threads ? "threads" : "processes");
	npuemu_json_str(j, "board", npuemu_cli_board(o->board));
	npuemu_json_u64(j, "devices", sh->devices);
	npuemu_json_str(j, "soc", sh->soc);
	npuemu_json_str(j, "algo", o->algo ? o->algo : "auto");
	npuemu_json_u64(j, "iterations", o->iterations);
	npuemu_json_u64(j, "warmup", o->warmup);
	npuemu_json_u64(j, "repeats", o->repeats);
	npuemu_json_bool(j, "complete", !sh->failed);
	for (i = 0; i < o->rows; i++)
		if (sh->result[i].done)
			json_object_array_add(list, row_json(o, &o->row[i], &sh->result[i]));
	json_object_object_add(j, "results", list);
	npuemu_json_print(j, 0);
}

void npuemu_coll_report(const struct npuemu_coll_opts *o, struct npuemu_coll_shared *sh)
{
	if (o->json)
		print_json(o, sh);
	else
		print_table(o, sh);
}
