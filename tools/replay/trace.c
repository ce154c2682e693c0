// SPDX-License-Identifier: MIT
/*
 * Reads a request trace and checks it, so that the replay itself can trust
 * it.  json-c parses the values; it does not say where a value stood, so
 * column_of() finds that in the line once something is wrong.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <json-c/json.h>

#include "trace.h"

/* json-c saturates what does not fit, so the largest int64 means "too large". */
#define MAX_INT		(INT64_MAX - 1)
#define MAX_TOKENS	(1 << 30)
#define MAX_LINE	(64 << 20)

struct reader {
	const char *path;
	char *err;
	char *line;
	size_t len;
	uint32_t line_no;
	struct json_tokener *tok;
	struct replay_trace *t;
	size_t req_room;
	size_t ids_room;
	uint64_t last_time;
};

static int __attribute__((format(printf, 3, 4)))
fail_at(struct reader *r, size_t offset, const char *fmt, ...)
{
	va_list ap;
	int n;

	n = snprintf(r->err, REPLAY_TRACE_ERR, "%s:%u:%zu: ", r->path, r->line_no,
		     offset + 1);
	if (n < 0 || n >= REPLAY_TRACE_ERR)
		return -1;
	va_start(ap, fmt);
	vsnprintf(r->err + n, (size_t)(REPLAY_TRACE_ERR - n), fmt, ap);
	va_end(ap);
	return -1;
}

/* ---- Where a value stands ---------------------------------------------- */

static size_t skip_space(const struct reader *r, size_t i)
{
	while (i < r->len && strchr(" \t\r\n", r->line[i]))
		i++;
	return i;
}

/* Past the string whose opening quote is at @i. */
static size_t skip_string(const struct reader *r, size_t i)
{
	for (i++; i < r->len && r->line[i] != '"'; i++)
		if (r->line[i] == '\\')
			i++;
	return i < r->len ? i + 1 : r->len;
}

/* Past the value that begins at @i: up to the comma or bracket behind it. */
static size_t skip_value(const struct reader *r, size_t i)
{
	int depth = 0;

	while (i < r->len) {
		char c = r->line[i];

		if (c == '"') {
			i = skip_string(r, i);
			continue;
		}
		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && depth-- == 0)
			break;
		else if (c == ',' && depth == 0)
			break;
		i++;
	}
	return i;
}

/* Does the string at @i spell @key?  (No escapes: a key that has some is
 * legal, its column is then that of the object.)
 */
static bool is_key(const struct reader *r, size_t i, const char *key)
{
	size_t n = strlen(key);

	return i + n + 1 < r->len && !memcmp(r->line + i + 1, key, n) &&
	       r->line[i + 1 + n] == '"';
}

/*
 * The offset of the value of @key in the object of this line, which json-c
 * found to be well formed.  Of its element @index if that is not negative.
 * @count, if not NULL, is how often the key occurs.
 */
static size_t column_of(const struct reader *r, const char *key, long index, int *count)
{
	size_t i = skip_space(r, 0), found = i;
	int n = 0;

	for (i++; i < r->len;) {
		size_t name = skip_space(r, i), value;

		if (name >= r->len || r->line[name] != '"')
			break;
		value = skip_space(r, skip_string(r, name));
		value = skip_space(r, value + 1);	/* the colon */
		if (is_key(r, name, key)) {
			found = value;
			n++;
		}
		i = skip_value(r, value) + 1;
	}
	if (count)
		*count = n;
	if (index < 0 || found >= r->len || r->line[found] != '[')
		return found;
	for (i = skip_space(r, found + 1); index > 0 && i < r->len; index--)
		i = skip_space(r, skip_value(r, i) + 1);
	return i;
}

/* ---- One line ----------------------------------------------------------- */

static const char *type_name(struct json_object *o)
{
	switch (json_object_get_type(o)) {
	case json_type_null:
		return "null";
	case json_type_boolean:
		return "true or false";
	case json_type_double:
		return "a number with a fraction or an exponent";
	case json_type_int:
		return "an integer";
	case json_type_object:
		return "an object";
	case json_type_array:
		return "a list";
	default:
		return "a string";
	}
}

/* The integer @o (element @index of @key, or @key itself), 0..@max. */
static int get_int(struct reader *r, struct json_object *o, const char *key, long index,
		   int64_t max, uint64_t *out)
{
	char name[64];
	int64_t v;

	if (json_object_get_type(o) == json_type_int) {
		v = json_object_get_int64(o);
		if (v >= 0 && v <= max) {
			*out = (uint64_t)v;
			return 0;
		}
	}
	if (index < 0)
		snprintf(name, sizeof(name), "%s", key);
	else
		snprintf(name, sizeof(name), "%s[%ld]", key, index);
	if (json_object_get_type(o) != json_type_int)
		return fail_at(r, column_of(r, key, index, NULL),
			       "%s is %s; it must be an integer", name, type_name(o));
	return fail_at(r, column_of(r, key, index, NULL),
		       "%s is out of range; it must be 0..%" PRId64, name, max);
}

/* The value of @key; NULL and an error if it is missing, or there twice. */
static struct json_object *get_key(struct reader *r, struct json_object *line,
				   const char *key, bool needed)
{
	struct json_object *o = NULL;
	size_t at;
	int n;

	if (!json_object_object_get_ex(line, key, &o)) {
		if (needed)
			fail_at(r, skip_space(r, 0), "the request has no \"%s\"", key);
		return NULL;
	}
	at = column_of(r, key, -1, &n);
	if (n > 1) {
		fail_at(r, at, "\"%s\" occurs %d times in one request", key, n);
		return NULL;
	}
	/* json-c keeps null as NULL */
	if (!o)
		fail_at(r, at, "%s is null; give it a value", key);
	return o;
}

static int get_key_int(struct reader *r, struct json_object *line, const char *key,
		       bool needed, int64_t max, uint64_t *out)
{
	struct json_object *o;

	r->err[0] = 0;
	o = get_key(r, line, key, needed);
	if (!o)
		return r->err[0] ? -1 : 0;
	return get_int(r, o, key, -1, max, out);
}

static int grow(void **p, size_t *room, size_t need, size_t size)
{
	size_t n = *room ? *room : 1024;
	void *q;

	if (need <= *room)
		return 0;
	while (n < need)
		n *= 2;
	q = realloc(*p, n * size);
	if (!q)
		return -1;
	*p = q;
	*room = n;
	return 0;
}

static int add_ids(struct reader *r, struct json_object *list, struct replay_request *q)
{
	struct replay_trace *t = r->t;
	uint32_t i;

	if (grow((void **)&t->ids, &r->ids_room, t->refs + q->blocks, sizeof(*t->ids)))
		return fail_at(r, 0, "out of memory");
	for (i = 0; i < q->blocks; i++)
		if (get_int(r, json_object_array_get_idx(list, i), "hash_ids", i, MAX_INT,
			    &t->ids[t->refs + i]))
			return -1;
	t->refs += q->blocks;
	return 0;
}

static int add_request(struct reader *r, struct json_object *line)
{
	struct replay_request q = { .line = r->line_no };
	struct replay_trace *t = r->t;
	uint64_t tokens = 0, out = 0;
	struct json_object *list;
	size_t n;

	if (get_key_int(r, line, "timestamp", true, MAX_INT, &q.timestamp) ||
	    get_key_int(r, line, "input_length", true, MAX_TOKENS, &tokens) ||
	    get_key_int(r, line, "output_length", false, MAX_TOKENS, &out))
		return -1;
	if (q.timestamp < r->last_time)
		return fail_at(r, column_of(r, "timestamp", -1, NULL),
			       "timestamp %" PRIu64 " is before the %" PRIu64
			       " of the line above; sort the lines by time",
			       q.timestamp, r->last_time);
	list = get_key(r, line, "hash_ids", true);
	if (!list)
		return -1;
	if (json_object_get_type(list) != json_type_array)
		return fail_at(r, column_of(r, "hash_ids", -1, NULL),
			       "hash_ids is %s; it must be a list of integers",
			       type_name(list));
	n = json_object_array_length(list);
	q.tokens = (uint32_t)tokens;
	q.blocks = (uint32_t)((tokens + REPLAY_BLOCK_TOKENS - 1) / REPLAY_BLOCK_TOKENS);
	if (n != q.blocks)
		return fail_at(r, column_of(r, "hash_ids", -1, NULL),
			       "hash_ids has %zu entries, but input_length %u makes %u blocks of %d tokens",
			       n, q.tokens, q.blocks, REPLAY_BLOCK_TOKENS);
	if (add_ids(r, list, &q))
		return -1;
	if (grow((void **)&t->req, &r->req_room, (size_t)t->n + 1, sizeof(*t->req)))
		return fail_at(r, 0, "out of memory");
	if (q.blocks > t->longest) {
		t->longest = q.blocks;
		t->longest_line = q.line;
	}
	t->req[t->n++] = q;
	r->last_time = q.timestamp;
	return 0;
}

/* json-c takes 'single quotes' even when strict; nobody else does. */
static size_t find_single_quote(const struct reader *r)
{
	size_t i = 0;

	while (i < r->len && r->line[i] != '\'')
		i = r->line[i] == '"' ? skip_string(r, i) : i + 1;
	return i;
}

static int parse_line(struct reader *r)
{
	size_t start = skip_space(r, 0), end;
	struct json_object *o;
	const char *nul;
	int rc;

	nul = memchr(r->line, 0, r->len);
	if (nul)
		return fail_at(r, (size_t)(nul - r->line),
			       "a zero byte; this is not a text file");
	if (start == r->len)
		return fail_at(r, 0, "an empty line; each line must hold one request");
	if (r->line[start] != '{')
		return fail_at(r, start,
			       "a request must be a JSON object: {\"timestamp\": ...}");
	if (r->len > MAX_LINE)
		return fail_at(r, MAX_LINE, "the line is longer than %d MiB",
			       MAX_LINE >> 20);

	end = find_single_quote(r);
	if (end < r->len)
		return fail_at(r, end, "not JSON: strings take double quotes");
	json_tokener_reset(r->tok);
	o = json_tokener_parse_ex(r->tok, r->line, (int)r->len);
	end = json_tokener_get_parse_end(r->tok);
	if (!o && json_tokener_get_error(r->tok) == json_tokener_continue)
		return fail_at(r, r->len, "the line ends before the JSON object does");
	if (!o)
		return fail_at(r, end, "not JSON: %s",
			       json_tokener_error_desc(json_tokener_get_error(r->tok)));
	end = skip_space(r, end);
	if (end < r->len)
		rc = fail_at(r, end, "more text after the request; put one a line");
	else
		rc = add_request(r, o);
	json_object_put(o);
	return rc;
}

/* ---- The file ------------------------------------------------------------ */

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Count the distinct ids, and point each request to its own. */
static int finish(struct reader *r)
{
	struct replay_trace *t = r->t;
	uint64_t *sorted, i, at = 0;

	if (!t->n)
		return fail_at(r, 0, "there is no request in this file");
	for (i = 0; i < t->n; i++) {
		t->req[i].ids = t->ids + at;
		at += t->req[i].blocks;
	}
	if (!t->refs)
		return 0;
	sorted = malloc(t->refs * sizeof(*sorted));
	if (!sorted)
		return fail_at(r, 0, "out of memory");
	memcpy(sorted, t->ids, t->refs * sizeof(*sorted));
	qsort(sorted, t->refs, sizeof(*sorted), compare_ids);
	t->distinct = 1;
	for (i = 1; i < t->refs; i++)
		t->distinct += sorted[i] != sorted[i - 1];
	free(sorted);
	return 0;
}

static int read_lines(struct reader *r, FILE *f, uint32_t max)
{
	size_t room = 0;
	ssize_t n;

	while (!max || r->t->n < max) {
		errno = 0;
		n = getline(&r->line, &room, f);
		if (n < 0) {
			if (feof(f) && !ferror(f))
				break;
			r->line_no++;
			return fail_at(r, 0, "cannot read: %s", strerror(errno));
		}
		r->line_no++;
		r->len = (size_t)n;
		if (r->len && r->line[r->len - 1] == '\n')
			r->line[--r->len] = 0;
		if (r->len && r->line[r->len - 1] == '\r')
			r->line[--r->len] = 0;
		if (parse_line(r))
			return -1;
	}
	if (!r->line_no)
		r->line_no = 1;
	return finish(r);
}

int replay_trace_load(struct replay_trace *t, const char *path, uint32_t max,
		      char err[REPLAY_TRACE_ERR])
{
	struct reader r = { .path = path, .err = err, .t = t };
	int rc;
	FILE *f;

	memset(t, 0, sizeof(*t));
	err[0] = 0;
	f = fopen(path, "re");
	if (!f) {
		snprintf(err, REPLAY_TRACE_ERR, "%s: cannot open: %s", path,
			 strerror(errno));
		return -1;
	}
	r.tok = json_tokener_new();
	if (r.tok) {
		json_tokener_set_flags(r.tok, JSON_TOKENER_STRICT |
				       JSON_TOKENER_ALLOW_TRAILING_CHARS |
				       JSON_TOKENER_VALIDATE_UTF8);
		rc = read_lines(&r, f, max);
		json_tokener_free(r.tok);
	} else {
		rc = fail_at(&r, 0, "out of memory");
	}
	free(r.line);
	fclose(f);
	if (rc)
		replay_trace_free(t);
	return rc;
}

void replay_trace_free(struct replay_trace *t)
{
	free(t->req);
	free(t->ids);
	memset(t, 0, sizeof(*t));
}
