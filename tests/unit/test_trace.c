// SPDX-License-Identifier: MIT
/*
 * The trace reader of npuemu-replay: what it accepts, and that it says file,
 * line and column of everything it does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../tools/replay/trace.c"

#define GOOD	"{\"timestamp\": 10, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [7, 8]}\n"

static char path[256];
static char err[REPLAY_TRACE_ERR];

static int load_bytes(struct replay_trace *t, const char *text, size_t n, uint32_t max)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	return replay_trace_load(t, path, max, err);
}

static int load(struct replay_trace *t, const char *text)
{
	return load_bytes(t, text, strlen(text), 0);
}

/* ---- What is accepted ----------------------------------------------------------- */

static void good_lines(void **state)
{
	struct replay_trace t;

	(void)state;
	assert_int_equal(load(&t, GOOD
			      /* another order, unknown fields, no final newline */
			      "{\"hash_ids\":[7,9,9223372036854775806],\"more\":{\"a\":[1,\"]}\"]},"
			      "\"input_length\":1025,\"timestamp\":10}"), 0);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.refs, 5);
	assert_int_equal(t.distinct, 4);
	assert_int_equal(t.longest, 3);
	assert_int_equal(t.longest_line, 2);
	assert_int_equal(t.req[0].timestamp, 10);
	assert_int_equal(t.req[0].tokens, 600);
	assert_int_equal(t.req[0].blocks, 2);
	assert_int_equal(t.req[0].line, 1);
	assert_int_equal(t.req[0].ids[1], 8);
	assert_int_equal(t.req[1].ids[0], 7);
	assert_true(t.req[1].ids[2] == 9223372036854775806u);
	assert_int_equal(replay_block_tokens(&t.req[0], 0), 512);
	assert_int_equal(replay_block_tokens(&t.req[0], 1), 88);
	assert_int_equal(replay_block_tokens(&t.req[1], 2), 1);
	replay_trace_free(&t);
	assert_null(t.req);
}

static void edges(void **state)
{
	struct replay_trace t;

	(void)state;
	/* full last block; no block at all; CR LF */
	assert_int_equal(load(&t, "{\"timestamp\":0,\"input_length\":1024,\"hash_ids\":[1,1]}\r\n"
			      "{\"timestamp\":0,\"input_length\":0,\"hash_ids\":[]}\r\n"), 0);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.distinct, 1);
	assert_int_equal(replay_block_tokens(&t.req[0], 1), 512);
	assert_int_equal(t.req[1].blocks, 0);
	replay_trace_free(&t);
}

/* What lies behind the requests asked for is not looked at. */
static void only_the_first(void **state)
{
	const char *text = GOOD GOOD "rubbish\n";
	struct replay_trace t;

	(void)state;
	assert_int_equal(load_bytes(&t, text, strlen(text), 2), 0);
	assert_int_equal(t.n, 2);
	replay_trace_free(&t);
	assert_int_equal(load_bytes(&t, text, strlen(text), 3), -1);
}

static void many_requests(void **state)
{
	char *text = malloc(3000 * 100), *p = text;
	struct replay_trace t;
	int i;

	(void)state;
	assert_non_null(text);
	for (i = 0; i < 3000; i++)
		p += sprintf(p, "{\"timestamp\":%d,\"input_length\":1024,\"hash_ids\":[%d,%d]}\n",
			     i, i, i + 1);
	assert_int_equal(load(&t, text), 0);
	assert_int_equal(t.n, 3000);
	assert_int_equal(t.refs, 6000);
	assert_int_equal(t.distinct, 3001);
	for (i = 0; i < 3000; i++) {
		assert_int_equal(t.req[i].ids[0], i);
		assert_int_equal(t.req[i].ids[1], i + 1);
	}
	replay_trace_free(&t);
	free(text);
}

/* ---- What is not ------------------------------------------------------------------ */

/* @line and @column of the complaint, and a part of what it says. */
struct bad {
	const char *text;
	unsigned int line, column;
	const char *says;
};

static const struct bad bads[] = {
	/* not JSON */
	{ "", 1, 1, "no request" },
	{ "\n", 1, 1, "empty line" },
	{ GOOD "\n" GOOD, 2, 1, "empty line" },
	{ GOOD "  \t \n", 2, 1, "empty line" },
	{ "hello\n", 1, 1, "JSON object" },
	{ "  [1]\n", 1, 3, "JSON object" },
	{ GOOD "{\"timestamp\": 1", 2, 16, "ends before" },
	{ GOOD "{\"timestamp\": \"abc\n", 2, 19, "ends before" },
	{ "{\"timestamp\" 1}\n", 1, 14, "not JSON" },
	{ "{\"timestamp\": tru}\n", 1, 18, "not JSON" },
	{ "{\"timestamp\": 01}\n", 1, 17, "not JSON" },
	{ "{\"a\": [1 2]}\n", 1, 10, "not JSON" },
	{ "{\"a\": 1,}\n", 1, 9, "not JSON" },
	{ "{'timestamp': 1}\n", 1, 2, "double quotes" },
	{ "{\"a\": \"it's\", \"b\": 'c'}\n", 1, 20, "double quotes" },
	{ "{\"a\": \"\xff\"}\n", 1, 8, "utf-8" },
	{ GOOD "{\"timestamp\": 10, \"input_length\": 1, \"hash_ids\": [1]} {}\n", 2, 55,
	  "more text" },
	{ "{\"timestamp\": 10, \"input_length\": 1, \"hash_ids\": [1]},\n", 1, 54,
	  "more text" },
	/* fields missing or twice */
	{ " {}\n", 1, 2, "no \"timestamp\"" },
	{ "{\"timestamp\": 1}\n", 1, 1, "no \"input_length\"" },
	{ "{\"timestamp\": 1, \"input_length\": 5}\n", 1, 1, "no \"hash_ids\"" },
	{ "{\"timestamp\": 1, \"input_length\": 1, \"timestamp\": 2, \"hash_ids\": [1]}\n",
	  1, 50, "2 times" },
	/* wrong types */
	{ "{\"timestamp\": \"1\", \"input_length\": 5}\n", 1, 15, "a string" },
	{ "{\"x\": [{\"timestamp\": 3}], \"timestamp\": null}\n", 1, 40, "null" },
	{ "{\"timestamp\": 1.5}\n", 1, 15, "fraction" },
	{ "{\"timestamp\": 1e3}\n", 1, 15, "exponent" },
	{ "{\"timestamp\": NaN}\n", 1, 15, "integer" },
	{ "{\"timestamp\": true}\n", 1, 15, "true or false" },
	{ "{\"timestamp\": 1, \"input_length\":\t[5]}\n", 1, 34, "a list" },
	{ "{\"timestamp\": 1, \"input_length\": 5, \"output_length\": {}}\n", 1, 54,
	  "an object" },
	{ "{\"timestamp\": 1, \"input_length\": 5, \"hash_ids\": 5}\n", 1, 49, "a list" },
	{ "{\"timestamp\": 1, \"input_length\": 5, \"hash_ids\": null}\n", 1, 49, "null" },
	{ "{\"timestamp\": 1, \"input_length\": 600, \"hash_ids\": [5, \"a,b]\"]}\n", 1, 55,
	  "hash_ids[1] is a string" },
	{ "{\"hash_ids\": [ \"a,]\\\"\" , [1,{}], null ,1], \"timestamp\": 1, \"input_length\": 2000}\n",
	  1, 16, "hash_ids[0]" },
	{ "{\"hash_ids\": [ 4 , [1,{}], null ,1], \"timestamp\": 1, \"input_length\": 2000}\n",
	  1, 20, "hash_ids[1] is a list" },
	{ "{\"hash_ids\": [ 4 , 5, null ,1], \"timestamp\": 1, \"input_length\": 2000}\n",
	  1, 23, "hash_ids[2] is null" },
	/* out of range */
	{ "{\"timestamp\": -1}\n", 1, 15, "out of range" },
	{ "{\"timestamp\": 9223372036854775807}\n", 1, 15, "out of range" },
	{ "{\"timestamp\": 99999999999999999999999}\n", 1, 15, "out of range" },
	{ "{\"timestamp\": -99999999999999999999999}\n", 1, 15, "out of range" },
	{ "{\"timestamp\": 1, \"input_length\": -5}\n", 1, 34, "out of range" },
	{ "{\"timestamp\": 1, \"input_length\": 4294967808}\n", 1, 34, "out of range" },
	{ "{\"timestamp\": 1, \"input_length\": 5, \"output_length\": -1}\n", 1, 54,
	  "output_length is out of range" },
	{ "{\"timestamp\": 1, \"input_length\": 600, \"hash_ids\": [5, -6]}\n", 1, 55,
	  "hash_ids[1] is out of range" },
	{ "{\"timestamp\": 1, \"input_length\": 600, \"hash_ids\": [18446744073709551616, 6]}\n",
	  1, 52, "hash_ids[0] is out of range" },
	/* what does not fit together */
	{ GOOD "{\"timestamp\": 9, \"input_length\": 5, \"hash_ids\": [1]}\n", 2, 15,
	  "before the 10" },
	{ "{\"timestamp\": 1, \"input_length\": 512, \"hash_ids\": [5, 6]}\n", 1, 51,
	  "2 entries" },
	{ "{\"timestamp\": 1, \"input_length\": 513, \"hash_ids\": [5]}\n", 1, 51,
	  "makes 2 blocks" },
	{ "{\"timestamp\": 1, \"input_length\": 0, \"hash_ids\": [5]}\n", 1, 49, "0 blocks" },
	{ "{\"timestamp\": 1, \"input_length\": 1, \"hash_ids\": []}\n", 1, 49, "0 entries" },
};

static void expect(const char *text, size_t n, unsigned int line, unsigned int column,
		   const char *says)
{
	struct replay_trace t;
	char where[sizeof(path) + 32];

	assert_int_equal(load_bytes(&t, text, n, 0), -1);
	assert_null(t.req);
	assert_null(t.ids);
	snprintf(where, sizeof(where), "%s:%u:%u: ", path, line, column);
	if (strncmp(err, where, strlen(where)) || !strstr(err, says))
		fail_msg("%.*s\n  expected %s...%s...\n  got      %s", (int)n, text, where,
			 says, err);
}

static void bad_lines(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bads) / sizeof(bads[0]); i++)
		expect(bads[i].text, strlen(bads[i].text), bads[i].line, bads[i].column,
		       bads[i].says);
}

static void zero_byte(void **state)
{
	static const char text[] = GOOD "{\"timestamp\":\0 1}\n";

	(void)state;
	expect(text, sizeof(text) - 1, 2, 14, "zero byte");
}

/* Every prefix of a good line is an error, never a crash. */
static void every_prefix(void **state)
{
	size_t n, all = strlen(GOOD);
	struct replay_trace t;

	(void)state;
	for (n = 0; n < all - 1; n++)
		assert_int_equal(load_bytes(&t, GOOD, n, 0), -1);
	assert_int_equal(load_bytes(&t, GOOD, all - 1, 0), 0);
	replay_trace_free(&t);
}

/* Any one byte changed: accepted or refused with a place, never a crash. */
static void every_byte(void **state)
{
	size_t i, all = strlen(GOOD), n = strlen(path);
	struct replay_trace t;
	char text[256];
	int c;

	(void)state;
	for (i = 0; i < all - 1; i++) {
		for (c = 0; c < 256; c += 3) {
			memcpy(text, GOOD, all);
			text[i] = (char)c;
			if (!load_bytes(&t, text, all, 0)) {
				replay_trace_free(&t);
				continue;
			}
			assert_memory_equal(err, path, n);
			assert_int_equal(err[n], ':');
		}
	}
}

static void bad_files(void **state)
{
	struct replay_trace t;

	(void)state;
	assert_int_equal(replay_trace_load(&t, "/nonexistent/trace", 0, err), -1);
	assert_string_equal(err, "/nonexistent/trace: cannot open: No such file or directory");
	assert_int_equal(replay_trace_load(&t, "/", 0, err), -1);
	assert_string_equal(err, "/:1:1: cannot read: Is a directory");
}

static int make_file(void **state)
{
	const char *dir = getenv("TMPDIR");
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/trace-XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_lines),
		cmocka_unit_test(edges),
		cmocka_unit_test(only_the_first),
		cmocka_unit_test(many_requests),
		cmocka_unit_test(bad_lines),
		cmocka_unit_test(zero_byte),
		cmocka_unit_test(every_prefix),
		cmocka_unit_test(every_byte),
		cmocka_unit_test(bad_files),
	};

	return cmocka_run_group_tests_name("trace", tests, make_file, remove_file);
}
