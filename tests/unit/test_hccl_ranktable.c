// SPDX-License-Identifier: MIT
/*
 * Rank tables: good ones of each version, each field spoiled with the exact words of its
 * refusal, limits, the hash that tells tables apart, files, and texts that are cut or damaged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../lib/hccl/ranktable.h"
#include "hccl_tables.h"

#define WHY	512

static char why[WHY];

/* In a buffer of exactly its size, so that a sanitizer sees a read behind the end. */
static int parse_n(const char *text, size_t n, struct hccl_ranktable *t)
{
	static const struct hccl_ranktable zero;
	char *exact = malloc(n ? n : 1);
	int ret;

	assert_non_null(exact);
	memcpy(exact, text, n);
	memset(t, 0xa5, sizeof(*t));
	memset(why, 'x', sizeof(why));
	ret = hccl_ranktable_parse("T", exact, n, t, why, sizeof(why));
	free(exact);
	assert_non_null(memchr(why, 0, sizeof(why)));
	if (ret)
		assert_memory_equal(t, &zero, sizeof(zero));
	else
		assert_string_equal(why, "");
	return ret;
}

static int parse(const char *text, struct hccl_ranktable *t)
{
	return parse_n(text, strlen(text), t);
}

static void good(const char *text, struct hccl_ranktable *t)
{
	if (parse(text, t))
		fail_msg("%s", why);
}

/* @table with its first @from replaced; the caller frees it. */
static char *spoil(const char *table, const char *from, const char *to)
{
	const char *at = strstr(table, from);
	size_t room = strlen(table) + strlen(to) + 1;
	char *text = malloc(room);

	assert_non_null(text);
	if (!at)
		fail_msg("no %s in the table", from);
	snprintf(text, room, "%.*s%s%s", (int)(at - table), table, to, at + strlen(from));
	return text;
}

/* ---- What is accepted ------------------------------------------------------- */

static void check_ent(const struct hccl_ranktable *t, const struct hccl_rankent *want)
{
	const struct hccl_rankent *e = &t->rank[want->rank];

	assert_int_equal(e->rank, want->rank);
	assert_int_equal(e->device, want->device);
	assert_int_equal(e->local, want->local);
	assert_int_equal(e->server_index, want->server_index);
	assert_int_equal(e->superpod, want->superpod);
	assert_int_equal(e->super_device, want->super_device);
	assert_string_equal(e->server, want->server);
}

static void accepts_each_version(void **state)
{
	static const struct {
		const char *text, *version;
		u32 servers, pods;
		struct hccl_rankent ent[3];
	} rows[] = {
		{ v10, "1.0", 2, 1, { { 0, 0, 0, 0, 0, 0, "east" }, { 1, 7, 7, 1, 0, 7, "west" },
				      { 2, 1, 1, 0, 0, 1, "east" } } },
		{ v12, "1.2", 2, 2, { { 0, 0, 0, 0, 0, 4, "a" }, { 1, 1, 1, 0, 0, 5, "a" },
				      { 2, 0, 0, 1, 1, 4, "b" } } },
		/* rank 1 has no layer 1, and 2 neither: a pod without a name */
		{ v20, "2.0", 2, 2, { { 0, 3, 8, 0, 0, 8, "rack0" }, { 1, 4, 8, 1, 1, 8, "rack1" },
				      { 2, 3, 9, 0, 1, 9, "rack0" } } },
	};
	struct hccl_ranktable t;
	u32 i, k;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		good(rows[i].text, &t);
		assert_string_equal(t.version, rows[i].version);
		assert_int_equal(t.nranks, 3);
		assert_int_equal(t.nservers, rows[i].servers);
		assert_int_equal(t.nsuperpods, rows[i].pods);
		for (k = 0; k < 3; k++)
			check_ent(&t, &rows[i].ent[k]);
		hccl_ranktable_free(&t);
		assert_null(t.rank);
	}
}

static void accepts_variants(void **state)
{
	static const struct spoiled rows[] = {
		{ v10, ", \"server_count\": \"2\"", "", 0, NULL },
		{ v10, "192.168.1.8", "", 0, NULL },
		{ v10, "192.168.1.8", "192.168.1.8,fe80::1", 0, NULL },
		{ v10, "\"7\"", "\"63\"", 0, NULL },
		{ v10, "\"7\"", "\"007\"", 0, NULL },
		{ v10, "16667", "1", 0, NULL },
		{ v10, "16667", "65535", 0, NULL },
		{ v10, "\"status\"", "\"comment\": [1, null], \"status\"", 0, NULL },
		{ v12, "\"5\"", "\"4294967294\"", 0, NULL },
		{ v12, "\"version\"", "\"server_count\": \"2\", \"version\"", 0, NULL },
		{ v20, ", \"status\": \"completed\"", "", 0, NULL },
		{ v20, "\"rank_count\": 3", "\"rank_count\": \"3\"", 0, NULL },
		{ v20, "\"net_layer\": 2", "\"net_layer\": 7", 0, NULL },
		{ v20, "\"device_id\": 3", "\"device_id\": 64", 0, NULL },
		{ v20, "000000000000002000100000dfdf0001", "::2000:1000:0:dfdf:1", 0, NULL },
		{ v20, "223.0.0.10\"", "10.0.0.1\", \"backup\": \"x\"", 0, NULL },
	};
	struct hccl_ranktable t;
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char *text = spoil(rows[i].table, rows[i].from, rows[i].to);

		good(text, &t);
		assert_int_equal(t.nranks, 3);
		hccl_ranktable_free(&t);
		free(text);
	}
}

/* Instances of a net layer may have long names: what differs late is still another server. */
static void long_instances(void **state)
{
	char first[1100], second[1100], *text, *both;
	struct hccl_ranktable t;

	(void)state;
	memset(first, 'r', 1025);
	first[1024] = '\0';
	strcpy(second, first);
	second[1023] = 's';
	text = spoil(v20, "rack0", first);
	both = spoil(text, "rack0", second);
	good(both, &t);
	assert_int_equal(t.nservers, 3);
	assert_int_equal(strlen(t.rank[0].server), HCCL_SERVER_NAME);
	assert_string_equal(t.rank[0].server, t.rank[2].server);
	assert_int_not_equal(t.rank[0].server_index, t.rank[2].server_index);
	hccl_ranktable_free(&t);
	free(text);
	free(both);
	strcpy(first + 1024, "r");
	text = spoil(v20, "rack0", first);
	assert_int_equal(parse(text, &t), HCCL_E_PARA);
	free(text);
}

/* ---- What is refused -------------------------------------------------------- */

static bool check_refusal(const struct spoiled *s)
{
	char *text = spoil(s->table, s->from, s->to), want[WHY];
	struct hccl_ranktable t;
	int ret = parse(text, &t);

	free(text);
	snprintf(want, sizeof(want), "%.6s: rank table T%s", s->what, s->what + 7);
	if (ret == s->ret && !strcmp(why, want))
		return true;
	print_error("got      %d %s\nexpected %d %s\n", ret, why, s->ret, want);
	return false;
}

static void refuses_with_place_and_advice(void **state)
{
	u32 i, wrong = 0;

	(void)state;
	for (i = 0; i < sizeof(spoiled_all) / sizeof(*spoiled_all); i++)
		wrong += !check_refusal(&spoiled_all[i]);
	assert_int_equal(wrong, 0);
}

static void refuses_nul(void **state)
{
	struct hccl_ranktable t;
	char *text = spoil(v10, "\"status\"", "\"stat!s\"");

	(void)state;
	*strchr(text, '!') = '\0';
	assert_int_equal(parse_n(text, sizeof(v10) - 1, &t), HCCL_E_PARA);
	assert_string_equal(why, "EI0004: rank table T is no JSON: line 2, column 7: a NUL byte");
	free(text);
}

/* ---- Limits ----------------------------------------------------------------- */

/* @n ranks, 64 for each server; rank ids fall. */
static char *many(u32 n, size_t *len)
{
	char *text = malloc(n * 64 + 1024);
	u32 i;

	assert_non_null(text);
	*len = (size_t)sprintf(text, "{\"version\":\"1.0\",\"status\":\"completed\",\"server_list\":[");
	for (i = 0; i < n; i++) {
		if (i % 64 == 0)
			*len += (size_t)sprintf(text + *len, "%s{\"server_id\":\"s%u\",\"device\":[",
						i ? "," : "", i / 64);
		*len += (size_t)sprintf(text + *len, "%s{\"device_id\":\"%u\",\"rank_id\":\"%u\"}",
					i % 64 ? "," : "", i % 64, n - 1 - i);
		if (i % 64 == 63 || i == n - 1)
			*len += (size_t)sprintf(text + *len, "]}");
	}
	*len += (size_t)sprintf(text + *len, "]}");
	return text;
}

static void limits_of_ranks(void **state)
{
	static const u32 rows[] = { 1, 2, 64, 65, 4095, 4096 };
	struct hccl_ranktable t;
	size_t len;
	char *text;
	u32 i, k;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const u32 n = rows[i], servers = (n + 63) / 64;

		text = many(n, &len);
		assert_int_equal(parse_n(text, len, &t), HCCL_SUCCESS);
		assert_int_equal(t.nranks, n);
		assert_int_equal(t.nservers, servers);
		for (k = 0; k < n; k++) {
			assert_int_equal(t.rank[k].rank, k);
			assert_int_equal(t.rank[k].device, (n - 1 - k) % 64);
			/* servers count by their lowest rank: the last of the file is 0 */
			assert_int_equal(t.rank[k].server_index, servers - 1 - (n - 1 - k) / 64);
		}
		hccl_ranktable_free(&t);
		free(text);
	}
	text = many(4097, &len);
	assert_int_equal(parse_n(text, len, &t), HCCL_E_PARA);
	assert_non_null(strstr(why, "server_list[0].device[0].rank_id is \"4096\"; expected"));
	/* 4,097 ranks whose ids are all possible */
	memcpy(strstr(text, "\"4096\""), "\"4095\"", 6);
	assert_int_equal(parse_n(text, len, &t), HCCL_E_PARA);
	assert_string_equal(why, "EI0014: rank table T: it has more than 4096 ranks; expected 1 to 4096");
	free(text);
}

/* ---- The hash --------------------------------------------------------------- */

static u64 hash_of(const char *table, const char *from, const char *to)
{
	char *text = spoil(table, from, to);
	struct hccl_ranktable t;
	u64 hash;

	good(text, &t);
	hash = t.hash;
	hccl_ranktable_free(&t);
	free(text);
	return hash;
}

static void hash_tells_tables_apart(void **state)
{
	/* the same but for its looks */
	static const struct spoiled same[] = {
		{ v10, "\n", "\n\n\t ", 0, NULL },
		{ v10, "\"status\": \"completed\", \"version\": \"1.0\"", "\"version\": \"1.0\", \"status\": \"completed\"", 0, NULL },
		{ v10, "\"device_id\": \"7\", \"rank_id\": \"1\"", "\"rank_id\": \"1\", \"device_id\": \"7\"", 0, NULL },
		{ v10, ", \"server_count\": \"2\"", ", \"comment\": \"ours\"", 0, NULL },
		{ v20, "\"device_id\": 3", "\"device_id\": \"3\"", 0, NULL },
	}, other[] = {
		{ v10, "east", "easts", 0, NULL },
		{ v10, "10.0.0.1", "10.0.0.2", 0, NULL },
		{ v10, "192.168.1.8", "192.168.1.9", 0, NULL },
		{ v10, "16667", "16668", 0, NULL },
		{ v10, "\"7\"", "\"6\"", 0, NULL },
		{ v12, "p1", "p2", 0, NULL },
		{ v12, "\"5\"", "\"6\"", 0, NULL },
		{ v20, "rack1", "rack2", 0, NULL },
		{ v20, "223.0.0.10", "223.0.0.11", 0, NULL },
		{ v20, "\"0/0\", \"1/12\"", "\"1/12\", \"0/0\"", 0, NULL },
	};
	struct hccl_ranktable t;
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(same) / sizeof(*same); i++)
		assert_true(hash_of(same[i].table, "{", "{") == hash_of(same[i].table, same[i].from, same[i].to));
	for (i = 0; i < sizeof(other) / sizeof(*other); i++)
		assert_true(hash_of(other[i].table, "{", "{") != hash_of(other[i].table, other[i].from, other[i].to));
	good(v10, &t);
	assert_int_equal(hccl_ranktable_same(&t, "T", t.hash, 5, why, sizeof(why)), HCCL_SUCCESS);
	assert_int_equal(hccl_ranktable_same(&t, "T", t.hash + 1, 5, why, sizeof(why)), HCCL_E_PARA);
	assert_non_null(strstr(why, "EI0014: rank table T: rank 5 has read another one"));
	assert_int_equal(hccl_ranktable_has(&t, "T", 2, why, sizeof(why)), HCCL_SUCCESS);
	assert_int_equal(hccl_ranktable_has(&t, "T", 3, why, sizeof(why)), HCCL_E_PARA);
	assert_string_equal(why, "EI0014: rank table T: rank 3 is not in it; expected 0 to 2");
	hccl_ranktable_free(&t);
}

/* The order of servers and devices in the file says nothing. */
static void hash_of_another_order(void **state)
{
	static const char east[] =
		"{ \"server_id\": \"east\", \"host_ip\": \"10.0.0.1\", \"device\": ["
		"{ \"device_id\": \"1\", \"device_port\": \"16667\", \"rank_id\": \"2\" },"
		"{ \"device_id\": \"0\", \"device_ip\": \"192.168.1.8\", \"rank_id\": \"0\" } ] }";
	static const char west[] =
		"{ \"server_id\": \"west\", \"device\": [ { \"device_id\": \"7\", \"rank_id\": \"1\" } ] }";
	struct hccl_ranktable a, b;
	char text[1024];

	(void)state;
	snprintf(text, sizeof(text), "{\"version\":\"1.0\",\"status\":\"completed\",\"server_list\":[%s,%s]}",
		 west, east);
	good(text, &a);
	good(v10, &b);
	assert_true(a.hash == b.hash);
	assert_memory_equal(a.rank, b.rank, 3 * sizeof(*a.rank));
	hccl_ranktable_free(&a);
	hccl_ranktable_free(&b);
}

/* ---- Files ------------------------------------------------------------------ */

static void loads_files(void **state)
{
	char path[] = "/tmp/npuemu-ranktable-XXXXXX", want[WHY];
	struct hccl_ranktable t;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, v12, sizeof(v12) - 1), sizeof(v12) - 1);
	assert_int_equal(hccl_ranktable_load(path, &t, why, sizeof(why)), HCCL_SUCCESS);
	assert_int_equal(t.nsuperpods, 2);
	hccl_ranktable_free(&t);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(hccl_ranktable_load(path, &t, why, sizeof(why)), HCCL_E_PARA);
	snprintf(want, sizeof(want), "EI0004: rank table %s is no JSON: line 1, column 1: it ends too early", path);
	assert_string_equal(why, want);
	assert_int_equal(ftruncate(fd, (32 << 20) + 1), 0);
	assert_int_equal(hccl_ranktable_load(path, &t, why, sizeof(why)), HCCL_E_PARA);
	assert_non_null(strstr(why, "has 33554433 bytes; at most 33554432 are read"));
	close(fd);
	unlink(path);
	assert_int_equal(hccl_ranktable_load(path, &t, why, sizeof(why)), HCCL_E_OPEN_FILE_FAILURE);
	snprintf(want, sizeof(want),
		 "EI0004: rank table %s cannot be opened: No such file or directory; give the path of a JSON file",
		 path);
	assert_string_equal(why, want);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(hccl_ranktable_load(path, &t, why, sizeof(why)), HCCL_E_OPEN_FILE_FAILURE);
	unlink(path);
	assert_int_equal(hccl_ranktable_load("/tmp", &t, why, sizeof(why)), HCCL_E_OPEN_FILE_FAILURE);
	assert_string_equal(why, "EI0004: rank table /tmp is not a file; give the path of a JSON file");
	assert_int_equal(hccl_ranktable_load(NULL, &t, why, sizeof(why)), HCCL_E_PTR);
}

/* A buffer that is too small cuts the message, and nothing else. */
static void small_buffers(void **state)
{
	struct hccl_ranktable t;
	char small[8];
	size_t room;

	(void)state;
	for (room = 0; room <= sizeof(small); room++) {
		memset(small, 'x', sizeof(small));
		assert_int_equal(hccl_ranktable_parse("T", "{}", 2, &t, small, room), HCCL_E_PARA);
		if (room)
			assert_int_equal(strlen(small), room - 1);
		if (room < sizeof(small))
			assert_int_equal(small[room], 'x');
	}
}

/* ---- Cut and damaged texts -------------------------------------------------- */

static void check_sane(const struct hccl_ranktable *t)
{
	u32 i;

	assert_in_range(t->nranks, 1, HCCL_RANKS_MAX);
	assert_in_range(t->nservers, 1, t->nranks);
	assert_in_range(t->nsuperpods, 1, t->nranks);
	for (i = 0; i < t->nranks; i++) {
		assert_int_equal(t->rank[i].rank, i);
		assert_in_range(t->rank[i].device, 0, 64);
		assert_in_range(t->rank[i].server_index, 0, t->nservers - 1);
		assert_in_range(t->rank[i].superpod, 0, t->nsuperpods - 1);
		assert_true(t->rank[i].server[0]);
	}
}

static u64 random_state = 0x6e707565;

static u32 roll(u32 below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (u32)(random_state >> 33) % below;
}

static void cut_and_damaged_texts(void **state)
{
	static const char *const tables[] = { v10, v12, v20 };
	static const char likely[] = "0123456789\"{}[]:,. \\-enul";
	u32 i, k, accepted = 0, rounds = 20000;
	struct hccl_ranktable t;
	char text[4096];
	size_t n;

	(void)state;
	for (i = 0; i < 3; i++)
		for (n = 0; n < strlen(tables[i]) - 1; n++)
			if (tables[i][n + 1] != '\n' || n + 2 < strlen(tables[i]))
				assert_int_equal(parse_n(tables[i], n, &t), HCCL_E_PARA);
	for (i = 0; i < rounds; i++) {
		n = strlen(tables[i % 3]);
		memcpy(text, tables[i % 3], n);
		for (k = 1 + roll(3); k; k--)
			text[roll((u32)n)] = likely[roll(sizeof(likely) - 1)];
		if (parse_n(text, n, &t))
			continue;
		check_sane(&t);
		hccl_ranktable_free(&t);
		accepted++;
	}
	/* Both happen often, or this test would show little. */
	assert_in_range(accepted, rounds / 50, rounds - rounds / 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_each_version),
		cmocka_unit_test(accepts_variants),
		cmocka_unit_test(long_instances),
		cmocka_unit_test(refuses_with_place_and_advice),
		cmocka_unit_test(refuses_nul),
		cmocka_unit_test(limits_of_ranks),
		cmocka_unit_test(hash_tells_tables_apart),
		cmocka_unit_test(hash_of_another_order),
		cmocka_unit_test(loads_files),
		cmocka_unit_test(small_buffers),
		cmocka_unit_test(cut_and_damaged_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
