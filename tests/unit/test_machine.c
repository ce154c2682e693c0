// SPDX-License-Identifier: MIT
/*
 * Machine descriptions: the shipped files against a table made by hand, every
 * refusal with its exact place and words, limits on both sides, and texts that
 * are cut or damaged.  Texts lie in buffers of exactly their size, so that a
 * sanitizer sees a read behind the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "machine.h"
#include "machine_refusals.h"

#ifndef MACHINES_DIR
#define MACHINES_DIR "machines"
#endif

#define MAX_FILE	65536

/* --- a good text, and ways to spoil it --- */

static const char *const good[] = {
	"name t",
	"soc Chip1",
	"generation 950",
	"servers 2",
	"devices_per_server 4",
	"devices_per_module 2",
	"hbm 4 GiB",
	"hbm_mbytes_per_s 1000",
	"cube_cores 1",
	"vector_cores 2",
	"ub 192 KiB",
	"l2 8 MiB",
	"engine sdma count 1 submit_ns 2 mbytes_per_s 3",
	"link a latency_ns 4 mbytes_per_s 50",
	"link b latency_ns 5 mbytes_per_s 60 pair_mbytes_per_s 7",
	"path self a",
	"path module b",
	"path server b",
	"path net a",
	"path host a",
};

#define GOOD_LINES	ARRAY_SIZE(good)

static int parse(const char *text, size_t len, struct npuemu_machine *m,
		 struct npuemu_machine_error *err)
{
	static const struct npuemu_machine zero;
	char *exact = malloc(len ? len : 1);
	int ret;

	assert_non_null(exact);
	memcpy(exact, text, len);
	memset(m, 0xa5, sizeof(*m));
	memset(err, 0xa5, sizeof(*err));
	ret = npuemu_machine_parse(exact, len, m, err);
	free(exact);

	assert_true(ret == 0 || ret == -EINVAL);
	assert_non_null(memchr(err->what, 0, sizeof(err->what)));
	if (ret) {
		assert_memory_equal(m, &zero, sizeof(zero));
		assert_true(err->what[0] != 0);
		/* As long as the field: it was probably cut. */
		assert_true(strlen(err->what) < sizeof(err->what) - 1);
		assert_int_equal(err->line == 0, err->column == 0);
	} else {
		assert_int_equal(err->line, 0);
		assert_int_equal(err->column, 0);
		assert_int_equal(err->what[0], 0);
	}
	return ret;
}

/* The good text with line @at (from 1) replaced; NULL leaves it out. */
static size_t spoil(char *to, u32 at, const char *line)
{
	size_t n = 0;
	u32 i;

	for (i = 0; i < GOOD_LINES; i++) {
		const char *s = i + 1 == at ? line : good[i];

		if (s)
			n += (size_t)sprintf(to + n, "%s\n", s);
	}
	if (at > GOOD_LINES)
		n += (size_t)sprintf(to + n, "%s\n", line);
	return n;
}

static void expect(const char *text, size_t len, u32 line, u32 column,
		   const char *what)
{
	struct npuemu_machine_error err;
	struct npuemu_machine m;

	if (!parse(text, len, &m, &err))
		fail_msg("accepted, expected: %s", what);
	if (err.line != line || err.column != column || strcmp(err.what, what))
		fail_msg("got %u:%u %s\nexpected %u:%u %s", err.line,
			 err.column, err.what, line, column, what);
}

/* --- shipped files --- */

static char *read_shipped(const char *name, size_t *len)
{
	char path[512];
	char *text = malloc(MAX_FILE);
	FILE *f;

	assert_non_null(text);
	snprintf(path, sizeof(path), "%s/%s.txt", MACHINES_DIR, name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("cannot open %s", path);
	*len = fread(text, 1, MAX_FILE, f);
	assert_true(*len > 0 && *len < MAX_FILE);
	fclose(f);
	return text;
}

struct link_row {
	const char *name;
	u32 latency, bandwidth, pair;
};

struct engine_row {
	u32 count, submit, bandwidth;	/* count 0: the machine has none */
};

struct machine_row {
	const char *name, *soc;
	u32 generation, servers, per_server, per_module, devices;
	u64 hbm;
	u32 hbm_mb, cube, vector, ub, l2;
	struct engine_row engine[NPUEMU_ENGINE_KINDS];
	struct link_row self, module, server, net, host;
};

static const struct machine_row rows[] = {
	{ "950", "Ascend950PR_9589", 950, 1, 8, 1, 8,
	  137438953472, 1600000, 32, 64, 253952, 134217728,
	  { { 2, 300, 0 }, { 2, 500, 0 }, { 64, 100, 26400 }, { 0, 0, 0 } },
	  { "local", 200, 800000, 800000 }, { "ub", 600, 400000, 400000 },
	  { "ub", 600, 400000, 400000 }, { "uboe", 2100, 50000, 50000 },
	  { "pcie", 1000, 54400, 54400 } },
	{ "950-2x8", "Ascend950PR_9589", 950, 2, 8, 1, 16,
	  137438953472, 1600000, 32, 64, 253952, 134217728,
	  { { 2, 300, 0 }, { 2, 500, 0 }, { 64, 100, 26400 }, { 0, 0, 0 } },
	  { "local", 200, 800000, 800000 }, { "ub", 600, 400000, 400000 },
	  { "ub", 600, 400000, 400000 }, { "uboe", 2100, 50000, 50000 },
	  { "pcie", 1000, 54400, 54400 } },
	{ "910b", "Ascend910B1", 910, 1, 8, 1, 8,
	  68719476736, 1600000, 24, 48, 196608, 201326592,
	  { { 0, 0, 0 }, { 2, 500, 0 }, { 48, 100, 29600 }, { 1, 500, 0 } },
	  { "local", 200, 800000, 800000 }, { "hccs", 800, 196000, 28000 },
	  { "hccs", 800, 196000, 28000 }, { "roce", 3000, 25000, 25000 },
	  { "pcie", 1000, 54400, 54400 } },
	{ "910c", "Ascend910_9391", 910, 1, 16, 2, 16,
	  68719476736, 1600000, 24, 48, 196608, 201326592,
	  { { 0, 0, 0 }, { 2, 500, 0 }, { 48, 100, 29600 }, { 1, 500, 0 } },
	  { "local", 200, 800000, 800000 }, { "sio", 400, 270000, 270000 },
	  { "hccs", 800, 196000, 196000 }, { "roce", 3000, 25000, 25000 },
	  { "pcie", 1000, 54400, 54400 } },
	{ "small", "Ascend950PR_9589", 950, 1, 2, 1, 2,
	  1073741824, 1600000, 2, 4, 253952, 16777216,
	  { { 1, 300, 0 }, { 1, 500, 0 }, { 4, 100, 26400 }, { 0, 0, 0 } },
	  { "local", 200, 800000, 800000 }, { "ub", 600, 400000, 400000 },
	  { "ub", 600, 400000, 400000 }, { "uboe", 2100, 50000, 50000 },
	  { "pcie", 1000, 54400, 54400 } },
};

static void parse_shipped(const char *name, struct npuemu_machine *m)
{
	struct npuemu_machine_error err;
	size_t len;
	char *text = read_shipped(name, &len);

	if (parse(text, len, m, &err))
		fail_msg("%s.txt:%u:%u: %s", name, err.line, err.column,
			 err.what);
	free(text);
}

static void check_link(const struct npuemu_link_class *l,
		       const struct link_row *r)
{
	assert_string_equal(l->name, r->name);
	assert_int_equal(l->latency_ns, r->latency);
	assert_int_equal(l->mbytes_per_s, r->bandwidth);
	assert_int_equal(l->pair_mbytes_per_s, r->pair);
}

static void check_row(const struct npuemu_machine *m,
		      const struct machine_row *r)
{
	u32 i;

	assert_string_equal(m->name, r->name);
	assert_string_equal(m->soc, r->soc);
	assert_int_equal(m->generation, r->generation);
	assert_int_equal(m->servers, r->servers);
	assert_int_equal(m->devices_per_server, r->per_server);
	assert_int_equal(m->devices_per_module, r->per_module);
	assert_int_equal(m->devices, r->devices);
	assert_int_equal(m->hbm_bytes, r->hbm);
	assert_int_equal(m->hbm_mbytes_per_s, r->hbm_mb);
	assert_int_equal(m->cube_cores, r->cube);
	assert_int_equal(m->vector_cores, r->vector);
	assert_int_equal(m->ub_bytes, r->ub);
	assert_int_equal(m->l2_bytes, r->l2);
	for (i = 0; i < NPUEMU_ENGINE_KINDS; i++) {
		assert_int_equal(m->engine[i].present, r->engine[i].count > 0);
		assert_int_equal(m->engine[i].count, r->engine[i].count);
		assert_int_equal(m->engine[i].submit_ns, r->engine[i].submit);
		assert_int_equal(m->engine[i].mbytes_per_s,
				 r->engine[i].bandwidth);
	}
	check_link(&m->link[m->link_self], &r->self);
	check_link(&m->link[m->link_module], &r->module);
	check_link(&m->link[m->link_server], &r->server);
	check_link(&m->link[m->link_net], &r->net);
	check_link(&m->link[m->link_host], &r->host);
}

static void shipped_values(void **state)
{
	struct npuemu_machine m;
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		parse_shipped(rows[i].name, &m);
		check_row(&m, &rows[i]);
	}
}

static const char *between(const struct npuemu_machine *m, u32 a, u32 b)
{
	const char *name = npuemu_machine_link(m, a, b)->name;

	assert_ptr_equal(name, npuemu_machine_link(m, b, a)->name);
	return name;
}

static void shipped_distances(void **state)
{
	struct npuemu_machine m;

	(void)state;
	parse_shipped("910c", &m);
	assert_string_equal(between(&m, 0, 0), "local");
	assert_string_equal(between(&m, 0, 1), "sio");
	assert_string_equal(between(&m, 1, 2), "hccs");
	assert_string_equal(between(&m, 14, 15), "sio");
	assert_string_equal(between(&m, 0, 15), "hccs");
	parse_shipped("950-2x8", &m);
	assert_string_equal(between(&m, 15, 15), "local");
	assert_string_equal(between(&m, 0, 7), "ub");
	assert_string_equal(between(&m, 7, 8), "uboe");
	assert_string_equal(between(&m, 8, 15), "ub");
	parse_shipped("910b", &m);
	assert_string_equal(between(&m, 6, 7), "hccs");
}

/* --- what is accepted --- */

static void accepts_good_text(void **state)
{
	struct npuemu_machine_error err;
	struct npuemu_machine m;
	char text[2048];
	size_t n = spoil(text, 0, NULL);

	(void)state;
	assert_int_equal(parse(text, n, &m, &err), 0);
	assert_int_equal(m.devices, 8);
	assert_int_equal(m.links, 2);
	assert_int_equal(m.link[0].pair_mbytes_per_s, 50);
	assert_int_equal(m.link[1].pair_mbytes_per_s, 7);
	assert_int_equal(m.link_self, 0);
	assert_int_equal(m.link_module, 1);
	assert_int_equal(npuemu_machine_parse(text, n, &m, NULL), 0);
	text[0] = 'x';
	assert_int_equal(npuemu_machine_parse(text, n, &m, NULL), -EINVAL);
}

static void accepts_layout(void **state)
{
	static const char *const lines[] = {
		"", "#", "   \t ", "# \xc3\xa4\xff caf\xc3\xa9", "\r",
		"# engine udma count 0",
	};
	static const struct {
		u32 at;
		const char *line;
	} same[] = {
		{ 1, "\t name\t t \t" }, { 1, "name t#c" }, { 1, "name t\r" },
		{ 4, "servers 0002" }, { 7, "hbm 4096 MiB" },
		{ 7, "hbm 4294967296 B" }, { 11, "ub 196608 B # x # y" },
		{ 13, "engine sdma submit_ns 2 mbytes_per_s 3 count 1" },
		{ 14, "link a mbytes_per_s 50 latency_ns 4\t" },
	};
	struct npuemu_machine_error err;
	struct npuemu_machine want, m;
	char text[2048];
	size_t n = spoil(text, 0, NULL);
	u32 i;

	(void)state;
	assert_int_equal(parse(text, n, &want, &err), 0);
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		n = spoil(text, GOOD_LINES + 1, lines[i]);
		assert_int_equal(parse(text, n, &m, &err), 0);
		assert_memory_equal(&m, &want, sizeof(m));
	}
	for (i = 0; i < ARRAY_SIZE(same); i++) {
		n = spoil(text, same[i].at, same[i].line);
		assert_int_equal(parse(text, n, &m, &err), 0);
		assert_memory_equal(&m, &want, sizeof(m));
	}
}

/* Places that no pair of the machine has need no path. */
static void accepts_unneeded_paths_left_out(void **state)
{
	struct npuemu_machine_error err;
	struct npuemu_machine m;
	char text[2048];
	size_t n = spoil(text, 0, NULL);

	(void)state;
	memcpy(strstr(text, "servers 2"), "servers 1", 9);
	memcpy(strstr(text, "devices_per_module 2"), "devices_per_module 1", 20);
	memset(strstr(text, "path module b"), ' ', 13);
	memset(strstr(text, "path net a"), ' ', 10);
	assert_int_equal(parse(text, n, &m, &err), 0);
	assert_int_equal(m.link_module, m.link_server);
	assert_int_equal(m.link_net, m.link_server);
}

/* --- what is refused --- */

static void refuses_with_place_and_advice(void **state)
{
	char text[2048];
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(refusals); i++) {
		const struct refusal *r = &refusals[i];
		size_t n = spoil(text, r->at, r->text);

		expect(text, n, r->line, r->column, r->what);
	}
}

static void refuses_nul(void **state)
{
	static const char what[] =
		"NUL byte: a description is plain text, remove it";
	char text[2048];
	size_t n = spoil(text, 5, "devices_per_server 4 # 4");

	(void)state;
	strstr(text, "server 4 #")[6] = 0;
	expect(text, n, 5, 19, what);
	n = spoil(text, 5, "devices_per_server 4 # 4");
	strstr(text, "# 4")[2] = 0;
	expect(text, n, 5, 24, what);
	expect("\0", 1, 1, 1, what);
}

static void refuses_unfinished_text(void **state)
{
	static const char what[] =
		"no newline after the last line: complete the file, or add one";
	char text[2048];
	size_t n = spoil(text, 0, NULL);

	(void)state;
	expect(text, n - 1, 20, 12, what);
	expect("#", 1, 1, 2, what);
	/* Without its newline a carriage return ends nothing. */
	expect("name t\r", 7, 1, 7, "control character: replace it by a space");
	expect("", 0, 0, 0,
	       "name is missing: add a line with it and a name of up to 31 characters");
}

static void refuses_long_text(void **state)
{
	struct npuemu_machine_error err;
	struct npuemu_machine m;
	char *text = malloc(MAX_FILE + 1);
	size_t n;

	(void)state;
	assert_non_null(text);
	n = spoil(text, 0, NULL);
	memset(text + n, '#', MAX_FILE + 1 - n);
	text[MAX_FILE - 1] = '\n';
	assert_int_equal(parse(text, MAX_FILE, &m, &err), 0);
	text[MAX_FILE] = '\n';
	expect(text, MAX_FILE + 1, 0, 0,
	       "longer than 65536 bytes: is this the right file? shorten its comments");
	free(text);
}

static void refuses_too_many_links(void **state)
{
	struct npuemu_machine_error err;
	struct npuemu_machine m;
	char text[4096];
	size_t n = spoil(text, 0, NULL);
	u32 i;

	(void)state;
	for (i = 2; i < 16; i++)
		n += (size_t)sprintf(text + n, "link l%u latency_ns 0 mbytes_per_s 1\n", i);
	assert_int_equal(parse(text, n, &m, &err), 0);
	assert_int_equal(m.links, 16);
	n += (size_t)sprintf(text + n, " link l16 latency_ns 0 mbytes_per_s 1\n");
	expect(text, n, 35, 2, "more than 16 links: remove one");
}

/* --- limits: the least and the most are in, one beyond is out --- */

static const struct {
	u32 at;
	const char *before, *after;
	u64 min, max;
} limits[] = {
	{ 3, "generation ", "", 1, 65535 },
	{ 8, "hbm_mbytes_per_s ", "", 1, 100000000 },
	{ 9, "cube_cores ", "", 0, 1024 },
	{ 10, "vector_cores ", "", 1, 1024 },
	{ 4, "servers ", "", 1, 16 },
	{ 7, "hbm ", " B", 2097152, 1099511627776 },
	{ 7, "hbm ", " TiB", 1, 1 },
	{ 11, "ub ", " KiB", 4, 16384 },
	{ 12, "l2 ", " MiB", 1, 2048 },
	{ 13, "engine mte submit_ns 0 mbytes_per_s 0 count ", "", 1, 1024 },
	{ 13, "engine mte count 1 mbytes_per_s 0 submit_ns ", "", 0, 1000000000 },
	{ 13, "engine mte count 1 submit_ns 0 mbytes_per_s ", "", 0, 100000000 },
	{ 14, "link a mbytes_per_s 9 latency_ns ", "", 0, 1000000000 },
	{ 14, "link a latency_ns 0 mbytes_per_s ", "", 1, 100000000 },
	{ 14, "link a latency_ns 0 mbytes_per_s 9 pair_mbytes_per_s ", "", 1, 9 },
};

static int try_limit(u32 i, u64 v, struct npuemu_machine_error *err)
{
	struct npuemu_machine m;
	char text[2048], line[128];

	snprintf(line, sizeof(line), "%s%llu%s", limits[i].before,
		 (unsigned long long)v, limits[i].after);
	return parse(text, spoil(text, limits[i].at, line), &m, err);
}

static void refuse_limit(u32 i, u64 v)
{
	struct npuemu_machine_error err;

	assert_int_equal(try_limit(i, v, &err), -EINVAL);
	assert_int_equal(err.line, limits[i].at);
	assert_int_equal(err.column, strlen(limits[i].before) + 1);
}

static void limits_are_exact(void **state)
{
	struct npuemu_machine_error err;
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		assert_int_equal(try_limit(i, limits[i].min, &err), 0);
		assert_int_equal(try_limit(i, limits[i].max, &err), 0);
		if (limits[i].min)
			refuse_limit(i, limits[i].min - 1);
		refuse_limit(i, limits[i].max + 1);
		refuse_limit(i, limits[i].max + (1ULL << 32));
		refuse_limit(i, UINT64_MAX);
		refuse_limit(i, UINT64_MAX - limits[i].max);
	}
}

static void device_limits(void **state)
{
	struct npuemu_machine_error err;
	struct npuemu_machine m;
	char text[2048];
	size_t n;

	(void)state;
	n = spoil(text, 5, "devices_per_server 32");
	assert_int_equal(parse(text, n, &m, &err), 0);
	assert_int_equal(m.devices, 64);
	n = spoil(text, 5, "devices_per_server 65");
	expect(text, n, 5, 20,
	       "'65' is out of range: devices_per_server takes 1 to 64");
	n = spoil(text, 5, "devices_per_server 0");
	expect(text, n, 5, 20,
	       "'0' is out of range: devices_per_server takes 1 to 64");
	n = spoil(text, 6, "devices_per_module 0");
	expect(text, n, 6, 20,
	       "'0' is out of range: devices_per_module takes 1 to 64");
}

/* --- cut and damaged texts --- */

/* What holds for every accepted machine, so that users need not check. */
static void check_sane(const struct npuemu_machine *m)
{
	u32 i;

	assert_in_range(m->devices, 1, NPUEMU_MAX_DEVICES);
	assert_in_range(m->servers, 1, NPUEMU_MAX_SERVERS);
	assert_int_equal(m->devices, m->servers * m->devices_per_server);
	assert_true(m->devices_per_module > 0);
	assert_int_equal(m->devices_per_server % m->devices_per_module, 0);
	assert_in_range(m->links, 1, NPUEMU_MAX_LINKS);
	assert_true(m->link_self < m->links && m->link_module < m->links &&
		    m->link_server < m->links && m->link_net < m->links &&
		    m->link_host < m->links);
	assert_true(m->hbm_bytes >= 2 << 20 && m->vector_cores);
	assert_non_null(memchr(m->name, 0, sizeof(m->name)));
	assert_non_null(memchr(m->soc, 0, sizeof(m->soc)));
	for (i = 0; i < m->links; i++) {
		assert_true(m->link[i].mbytes_per_s > 0);
		assert_in_range(m->link[i].pair_mbytes_per_s, 1,
				m->link[i].mbytes_per_s);
		assert_non_null(memchr(m->link[i].name, 0,
				       sizeof(m->link[i].name)));
	}
	for (i = 0; i < NPUEMU_ENGINE_KINDS; i++)
		assert_int_equal(m->engine[i].present, m->engine[i].count > 0);
}

/* The last line is needed, so each shorter text must be refused. */
static void cut_texts(void **state)
{
	struct npuemu_machine_error err;
	struct npuemu_machine m;
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len, n;
		char *text = read_shipped(rows[i].name, &len);

		for (n = 0; n < len; n++)
			assert_int_equal(parse(text, n, &m, &err), -EINVAL);
		assert_int_equal(parse(text, len, &m, &err), 0);
		free(text);
	}
}

static u64 random_state;

static u32 roll(u32 below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (u32)(random_state >> 33) % below;
}

static size_t damage(char *text, size_t len)
{
	static const char likely_bytes[] = "0123456789 \t\n\r#abMiB_-\0\xff";
	size_t at = roll((u32)len), n = 1 + roll(40);

	if (n > len - at)
		n = len - at;
	switch (roll(4)) {
	case 0:			/* any byte */
		text[at] = (char)roll(256);
		return len;
	case 1:			/* a byte that means something */
		text[at] = likely_bytes[roll(sizeof(likely_bytes) - 1)];
		return len;
	case 2:			/* a piece less */
		memmove(text + at, text + at + n, len - at - n);
		return len - n ? len - n : 1;
	default:		/* a piece twice */
		memmove(text + at + n, text + at, len - at);
		return len + n;
	}
}

static void damaged_texts(void **state)
{
	struct npuemu_machine_error err;
	struct npuemu_machine m;
	char text[4096];
	u32 i, k, accepted = 0;

	(void)state;
	random_state = 0x6e707565;
	for (i = 0; i < 200000; i++) {
		size_t n = spoil(text, 0, NULL);

		for (k = 1 + roll(3); k; k--)
			n = damage(text, n);
		if (!parse(text, n, &m, &err)) {
			check_sane(&m);
			accepted++;
		}
	}
	/* Both happen often, or this test would show little. */
	assert_in_range(accepted, 1000, 199000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shipped_values),
		cmocka_unit_test(shipped_distances),
		cmocka_unit_test(accepts_good_text),
		cmocka_unit_test(accepts_layout),
		cmocka_unit_test(accepts_unneeded_paths_left_out),
		cmocka_unit_test(refuses_with_place_and_advice),
		cmocka_unit_test(refuses_nul),
		cmocka_unit_test(refuses_unfinished_text),
		cmocka_unit_test(refuses_long_text),
		cmocka_unit_test(refuses_too_many_links),
		cmocka_unit_test(limits_are_exact),
		cmocka_unit_test(device_limits),
		cmocka_unit_test(cut_texts),
		cmocka_unit_test(damaged_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
