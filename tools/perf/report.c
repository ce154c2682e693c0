// SPDX-License-Identifier: MIT
/* npuemu-perf's results: a table, or JSON. */
#include <stdio.h>

#include "../common/json.h"
#include "../common/text.h"
#include "perf.h"

static void head(const struct npuemu_perf_opts *o, const struct npuemu_perf_shared *sh)
{
	int stream = o->mode != NPUEMU_PERF_LATENCY;

	printf("npuemu-perf %s, %s: board %s, machine %s, host %s\n", o->test->name,
	       npuemu_perf_mode_name(o->mode), sh->info.board, sh->info.machine,
	       sh->info.host);
	printf("device %u to device %u%s, %s, %u process%s of %u thread%s",
	       sh->device_a, sh->device_b, o->processes > 1 ? " and further pairs" : "",
	       o->self ? "both of one process" : "each of its own process", o->processes,
	       o->processes > 1 ? "es" : "", o->threads, o->threads > 1 ? "s" : "");
	if (stream) {
		printf(", depth %u, ", o->depth);
		if (o->batch)
			printf("batch %u", o->batch);
		else
			printf("batch by size");
		printf(", a completion every %u", o->signal);
	}
	printf("\ndata check %s, median of %u repeats%s\n", o->check ? "passed" : "off",
	       o->repeats, !stream && o->test->peer_latency ? ", half a round trip" : "");
}

static void print_latency(const struct npuemu_perf_row *row, int rows)
{
	char heads[] = "size|count|p50 us|p99 us|max us|min us|mean us";
	char size[NPUEMU_TEXT_SIZE];
	struct npuemu_table t;
	int i;

	npuemu_table_init(&t, heads, "rrrrrrr", 0);
	for (i = 0; i < rows; i++) {
		npuemu_table_add(&t, "%s", npuemu_size_text(size, row[i].size));
		npuemu_table_add(&t, "%llu", (unsigned long long)row[i].count);
		npuemu_table_add(&t, "%.3f", row[i].p50_ns / 1000);
		npuemu_table_add(&t, "%.3f", row[i].p99_ns / 1000);
		npuemu_table_add(&t, "%.3f", row[i].max_ns / 1000);
		npuemu_table_add(&t, "%.3f", row[i].min_ns / 1000);
		npuemu_table_add(&t, "%.3f", row[i].mean_ns / 1000);
	}
	npuemu_table_print(&t, stdout);
	npuemu_table_free(&t);
}

static void print_stream(const struct npuemu_perf_row *row, int rows)
{
	char heads[] = "size|count|MB/s|Mmsg/s|min Mmsg/s|max Mmsg/s";
	char size[NPUEMU_TEXT_SIZE];
	struct npuemu_table t;
	int i;

	npuemu_table_init(&t, heads, "rrrrrr", 0);
	for (i = 0; i < rows; i++) {
		npuemu_table_add(&t, "%s", npuemu_size_text(size, row[i].size));
		npuemu_table_add(&t, "%llu", (unsigned long long)row[i].count);
		npuemu_table_add(&t, "%.1f", row[i].rate * row[i].size / 1e6);
		npuemu_table_add(&t, "%.4f", row[i].rate / 1e6);
		npuemu_table_add(&t, "%.4f", row[i].rate_min / 1e6);
		npuemu_table_add(&t, "%.4f", row[i].rate_max / 1e6);
	}
	npuemu_table_print(&t, stdout);
	npuemu_table_free(&t);
}

static struct json_object *row_json(const struct npuemu_perf_opts *o,
				    const struct npuemu_perf_row *r)
{
	struct json_object *j = json_object_new_object();

	npuemu_json_u64(j, "size", r->size);
	npuemu_json_u64(j, "count", r->count);
	npuemu_json_num(j, "seconds", r->seconds, 6);
	if (o->mode == NPUEMU_PERF_LATENCY) {
		npuemu_json_num(j, "p50_ns", r->p50_ns, 1);
		npuemu_json_num(j, "p99_ns", r->p99_ns, 1);
		npuemu_json_num(j, "max_ns", r->max_ns, 1);
		npuemu_json_num(j, "min_ns", r->min_ns, 1);
		npuemu_json_num(j, "mean_ns", r->mean_ns, 1);
		return j;
	}
	npuemu_json_num(j, "mbytes_per_s", r->rate * r->size / 1e6, 3);
	npuemu_json_num(j, "mmsg_per_s", r->rate / 1e6, 6);
	npuemu_json_num(j, "mmsg_per_s_min", r->rate_min / 1e6, 6);
	npuemu_json_num(j, "mmsg_per_s_max", r->rate_max / 1e6, 6);
	return j;
}

static void print_json(const struct npuemu_perf_opts *o,
		       const struct npuemu_perf_shared *sh,
		       const struct npuemu_perf_row *row, int rows, double tick_cost_ns)
{
	struct json_object *j = json_object_new_object();
	struct json_object *list = json_object_new_array();
	int i;

	npuemu_json_str(j, "version", npuemu_version());
	npuemu_json_str(j, "test", o->test->name);
	npuemu_json_str(j, "engine", o->test->sdma ? "sdma" : "udma");
	npuemu_json_str(j, "mode", npuemu_perf_mode_name(o->mode));
	npuemu_json_str(j, "board", sh->info.board);
	npuemu_json_str(j, "machine", sh->info.machine);
	npuemu_json_str(j, "host", sh->info.host);
	npuemu_json_u64(j, "device", sh->device_a);
	npuemu_json_u64(j, "peer_device", sh->device_b);
	npuemu_json_bool(j, "self", o->self);
	npuemu_json_u64(j, "processes", o->processes);
	npuemu_json_u64(j, "threads", o->threads);
	npuemu_json_u64(j, "depth", o->depth);
	npuemu_json_u64(j, "batch", o->batch);
	npuemu_json_u64(j, "signal", o->signal);
	npuemu_json_u64(j, "slots", o->slots);
	npuemu_json_u64(j, "repeats", o->repeats);
	npuemu_json_bool(j, "half_round_trip",
			 o->mode == NPUEMU_PERF_LATENCY && o->test->peer_latency);
	npuemu_json_str(j, "data_check", o->check ? "passed" : "off");
	npuemu_json_str(j, "clock", npuemu_ticks_tsc ? "tsc" : "clock_gettime");
	npuemu_json_num(j, "clock_read_ns", tick_cost_ns, 1);
	for (i = 0; i < rows; i++)
		json_object_array_add(list, row_json(o, &row[i]));
	json_object_object_add(j, "results", list);
	npuemu_json_print(j, 0);
}

void npuemu_perf_report(const struct npuemu_perf_opts *o,
			const struct npuemu_perf_shared *sh,
			const struct npuemu_perf_row *row, int rows, double tick_cost_ns)
{
	if (o->json) {
		print_json(o, sh, row, rows, tick_cost_ns);
		return;
	}
	head(o, sh);
	if (o->mode == NPUEMU_PERF_LATENCY)
		print_latency(row, rows);
	else
		print_stream(row, rows);
	fflush(stdout);
}
