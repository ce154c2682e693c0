// SPDX-License-Identifier: MIT
/*
 * What the user sees: the progress line, and the result as a table or as JSON.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>
#include <json-c/json.h>

#include "replay.h"

#define TTY_EVERY_NS	100000000LL	/* the line is drawn over */
#define LOG_EVERY_NS	5000000000LL	/* a line each time */

const char *replay_size(uint64_t bytes, char buf[32])
{
	static const char *const unit[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	double v = (double)bytes;
	int i = 0;

	for (; v >= 1024 && i < 4; i++)
		v /= 1024;
	snprintf(buf, 32, v == (double)(uint64_t)v ? "%.0f %s" : "%.2f %s", v, unit[i]);
	return buf;
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static double gbytes_per_s(const struct replay_result *res)
{
	return res->seconds > 0 ? (double)res->bytes_moved / 1e9 / res->seconds : 0;
}

static void print_progress(const struct replay_job *job, const struct replay_result *res,
			   const char *before, const char *after)
{
	uint64_t bytes = res->blocks_moved * replay_block_bytes(job->opt.model);
	char moved[32];

	fprintf(stderr, "%s%u/%u requests, %.2f %% hits, %s moved, %.2f GB/s, %" PRIu64
		" wrong blocks%s", before, res->requests, job->trace.n,
		percent(res->hits, res->refs), replay_size(bytes, moved),
		res->seconds > 0 ? (double)bytes / 1e9 / res->seconds : 0,
		res->verify_errors, after);
}

void replay_progress(const struct replay_job *job, const struct replay_result *res)
{
	bool tty = isatty(STDERR_FILENO), end = res->requests == job->trace.n;
	static int64_t last;
	int64_t now = npuemu_now_ns();

	/* a script that asks for JSON wants nothing else */
	if (!tty && job->opt.json)
		return;
	if (!res->requests || (!end && now - last < (tty ? TTY_EVERY_NS : LOG_EVERY_NS))) {
		if (!last)
			last = now;
		return;
	}
	last = now;
	if (tty)
		print_progress(job, res, "\r\033[K", end ? "\n" : "");
	else
		print_progress(job, res, "", "\n");
}

static void add_double(struct json_object *o, const char *name, double v)
{
	struct json_object *d = json_object_new_double(v);

	json_object_set_serializer(d, json_object_double_to_json_string, (void *)"%.6f",
				   NULL);
	json_object_object_add(o, name, d);
}

static void print_json(const struct replay_job *job, const struct replay_result *res)
{
	struct json_object *o = json_object_new_object();

#define ADD(name, value) \
	json_object_object_add(o, name, json_object_new_uint64(value))
	json_object_object_add(o, "trace", json_object_new_string(job->trace_path));
	json_object_object_add(o, "model", json_object_new_string(job->opt.model->name));
	ADD("block_bytes", replay_block_bytes(job->opt.model));
	ADD("pool_blocks", job->slots);
	ADD("prefill_device", job->opt.prefill_dev);
	ADD("decode_device", job->opt.decode_dev);
	ADD("requests", res->requests);
	ADD("block_refs", res->refs);
	ADD("block_hits", res->hits);
	ADD("token_refs", res->token_refs);
	ADD("token_hits", res->token_hits);
	ADD("blocks_moved", res->blocks_moved);
	ADD("bytes_moved", res->bytes_moved);
	ADD("bytes_verified", res->bytes_verified);
	ADD("wqes", res->wqes);
	ADD("doorbells", res->doorbells);
	ADD("cqes", res->cqes);
	ADD("verify_errors", res->verify_errors);
	add_double(o, "seconds", res->seconds);
	add_double(o, "gbytes_per_s", gbytes_per_s(res));
#undef ADD
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
					       JSON_C_TO_STRING_SPACED |
					       JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

static void row(const char *name, uint64_t value, const char *note)
{
	printf("  %-18s %14" PRIu64 "%s%s\n", name, value, *note ? "   " : "", note);
}

static void print_table(const struct replay_job *job, const struct replay_result *res)
{
	const struct replay_model *m = job->opt.model;
	uint64_t bytes = replay_block_bytes(m);
	char note[128], a[32], b[32];

	printf("model %s: %u x %u bytes = %s a block; prefill on device %u, decode on device %u\n",
	       m->name, m->layers, m->layer_bytes, replay_size(bytes, a),
	       job->opt.prefill_dev, job->opt.decode_dev);
	row("requests", res->requests, "");
	row("block references", res->refs, "");
	snprintf(note, sizeof(note), "%.2f %%", percent(res->hits, res->refs));
	row("  hits", res->hits, note);
	row("tokens", res->token_refs, "");
	snprintf(note, sizeof(note), "%.2f %%", percent(res->token_hits, res->token_refs));
	row("  hits", res->token_hits, note);
	row("pool blocks", job->slots, replay_size(job->slots * bytes, a));
	row("blocks moved", res->blocks_moved, "");
	row("bytes moved", res->bytes_moved, replay_size(res->bytes_moved, a));
	row("bytes verified", res->bytes_verified, replay_size(res->bytes_verified, b));
	row("WQEs", res->wqes, "");
	row("doorbells", res->doorbells, "");
	row("CQEs", res->cqes, "");
	printf("  %-18s %14.2f   produced, moved, verified\n", "seconds", res->seconds);
	printf("  %-18s %14.2f\n", "GB/s", gbytes_per_s(res));
	row("verify errors", res->verify_errors, res->verify_errors ? "blocks" : "");
}

void replay_report(const struct replay_job *job, const struct replay_result *res)
{
	if (job->opt.json)
		print_json(job, res);
	else
		print_table(job, res);
}
