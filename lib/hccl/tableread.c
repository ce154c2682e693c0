// SPDX-License-Identifier: MIT
/* Reading a rank table's JSON, field by field, with messages that name the place. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "tableread.h"

#define FOUND	64	/* characters of what was found that a message shows */

/* ---- Messages --------------------------------------------------------------- */

void table_say(struct table *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->why, t->room, fmt, ap);
	va_end(ap);
}

static const char *show(struct json_object *json, char *text, size_t room)
{
	const char *s;
	size_t n, i;

	if (json_object_is_type(json, json_type_array)) {
		snprintf(text, room, "a list of %zu", json_object_array_length(json));
		return text;
	}
	if (json_object_is_type(json, json_type_object))
		return "an object";
	s = json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	n = strlen(s);
	snprintf(text, room, "%s", s);
	if (n >= room)
		memcpy(text + room - 4, "...", 4);
	/* one line, and nothing that a terminal would obey */
	for (i = 0; text[i]; i++)
		if ((u8)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
	return text;
}

int table_bad(const struct table_obj *o, const char *key, const char *fmt, ...)
{
	const char *dot = o->path[0] ? "." : "";
	struct json_object *json;
	char expected[160], found[FOUND];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(expected, sizeof(expected), fmt, ap);
	va_end(ap);
	if (!json_object_object_get_ex(o->json, key, &json))
		return table_fail(o->t, HCCL_E_PARA, "EI0017: rank table %s: %s%s%s is missing; expected %s",
				  o->t->file, o->path, dot, key, expected);
	return table_fail(o->t, HCCL_E_PARA, "EI0014: rank table %s: %s%s%s is %s; expected %s",
			  o->t->file, o->path, dot, key, show(json, found, sizeof(found)), expected);
}

/* ---- Fields ----------------------------------------------------------------- */

/* 1: it is there, 0: it is not and need not be; else a failure, to be said by the caller. */
static int get(const struct table_obj *o, const char *key, u32 flags, struct json_object **json)
{
	if (json_object_object_get_ex(o->json, key, json))
		return 1;
	return flags & TABLE_MUST ? -1 : 0;
}

int table_string(const struct table_obj *o, const char *key, u32 flags, u32 max, const char **out)
{
	struct json_object *json = NULL;
	int there = get(o, key, flags, &json);
	size_t n, i;
	const char *s;

	if (!there)
		return HCCL_SUCCESS;
	if (there < 0 || !json_object_is_type(json, json_type_string))
		return table_bad(o, key, "a string of 1 to %u characters", max);
	s = json_object_get_string(json);
	n = (size_t)json_object_get_string_len(json);
	for (i = 0; i < n && (u8)s[i] >= ' ' && s[i] != 0x7f; i++)
		;
	if (!n || n > max || i < n)
		return table_bad(o, key, "a string of 1 to %u characters, none of them a control character",
				 max);
	*out = s;
	return HCCL_SUCCESS;
}

static bool digits(const char *s, size_t n, u64 *v)
{
	size_t i;

	*v = 0;
	for (i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		/* stays too large once it is */
		if (*v < UINT32_MAX)
			*v = *v * 10 + (u64)(s[i] - '0');
	}
	return n > 0;
}

int table_number(const struct table_obj *o, const char *key, u32 flags, u32 min, u32 max, u32 *out)
{
	struct json_object *json = NULL;
	int there = get(o, key, flags, &json);
	bool good = false;
	u64 v = 0;

	if (!there)
		return HCCL_SUCCESS;
	if (there > 0 && json_object_is_type(json, json_type_string)) {
		good = digits(json_object_get_string(json), (size_t)json_object_get_string_len(json), &v);
	} else if (there > 0 && !(flags & TABLE_TEXT) && json_object_is_type(json, json_type_int)) {
		good = json_object_get_int64(json) >= 0;
		v = json_object_get_uint64(json);
	}
	if (!good || v < min || v > max)
		return table_bad(o, key, flags & TABLE_TEXT ? "a number from %u to %u, in quotes" :
				 "a number from %u to %u", min, max);
	*out = (u32)v;
	return HCCL_SUCCESS;
}

int table_list(const struct table_obj *o, const char *key, u32 flags, u32 min, u32 max,
	       struct json_object **out)
{
	struct json_object *json = NULL;
	int there = get(o, key, flags, &json);
	size_t n;

	if (!there)
		return HCCL_SUCCESS;
	n = there > 0 && json_object_is_type(json, json_type_array) ? json_object_array_length(json) : SIZE_MAX;
	if (n < min || n > max)
		return table_bad(o, key, "a list of %u to %u", min, max);
	*out = json;
	return HCCL_SUCCESS;
}

int table_entry(const struct table_obj *o, const char *key, struct json_object *list, u32 i,
		struct table_obj *out)
{
	char found[FOUND];

	out->t = o->t;
	out->json = json_object_array_get_idx(list, i);
	snprintf(out->path, sizeof(out->path), "%.60s%s%s[%u]", o->path, o->path[0] ? "." : "", key, i);
	if (json_object_is_type(out->json, json_type_object))
		return HCCL_SUCCESS;
	return table_fail(o->t, HCCL_E_PARA, "EI0014: rank table %s: %s is %s; expected an object",
			  o->t->file, out->path, show(out->json, found, sizeof(found)));
}

static bool is_address(const char *s, size_t n)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr a;

	if (!n || n >= sizeof(text))
		return false;
	memcpy(text, s, n);
	text[n] = '\0';
	return inet_pton(AF_INET, text, &a) == 1 || inet_pton(AF_INET6, text, &a) == 1;
}

int table_address(const struct table_obj *o, const char *key)
{
	struct json_object *json;
	const char *s;
	size_t n;

	if (!json_object_object_get_ex(o->json, key, &json))
		return HCCL_SUCCESS;
	if (!json_object_is_type(json, json_type_string))
		goto bad;
	s = json_object_get_string(json);
	if (strlen(s) != (size_t)json_object_get_string_len(json))
		goto bad;
	if (!*s)
		return HCCL_SUCCESS;
	for (;; s += n + 1) {
		n = strcspn(s, ",");
		if (!is_address(s, n))
			goto bad;
		if (!s[n])
			return HCCL_SUCCESS;
	}
bad:
	return table_bad(o, key, "an IPv4 or IPv6 address");
}

int table_port(const struct table_obj *o, const char *key, u32 flags)
{
	u32 port;

	return table_number(o, key, flags, 1, 65535, &port);
}

/* ---- Comparing tables ------------------------------------------------------- */

u64 table_hash(u64 h, const void *data, size_t n)
{
	const u8 *p = data;
	size_t i;

	/* the length first: "ab" "c" is not "a" "bc" */
	h = (h ^ n) * 0x9e3779b97f4a7c15ull;
	for (i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return h ^ h >> 29;
}

u64 table_hash_text(u64 h, const char *s)
{
	return table_hash(h, s, strlen(s));
}

u64 table_hash_json(struct json_object *json)
{
	enum json_type type = json_object_get_type(json);
	u64 h = 0, v, sum = 0;
	size_t i;

	if (type == json_type_array) {
		for (i = 0; i < json_object_array_length(json); i++) {
			v = table_hash_json(json_object_array_get_idx(json, i));
			h = table_hash(h, &v, sizeof(v));
		}
		return table_hash_text(h, "list");
	}
	if (type == json_type_object) {
		json_object_object_foreach(json, key, value) {
			v = table_hash_json(value);
			sum += table_hash_text(table_hash(h, &v, sizeof(v)), key);
		}
		return table_hash(sum, "object", 6);
	}
	if (type == json_type_null)
		return table_hash_text(h, "null");
	return table_hash_text(h, json_object_get_string(json));
}

/* ---- Ranks ------------------------------------------------------------------ */

struct table_rank *table_add(struct table *t)
{
	struct table_rank *more;
	u32 max;

	if (t->n == HCCL_RANKS_MAX) {
		table_fail(t, HCCL_E_PARA, "EI0014: rank table %s: it has more than %d ranks; expected 1 to %d",
			   t->file, HCCL_RANKS_MAX, HCCL_RANKS_MAX);
		return NULL;
	}
	if (t->n == t->max) {
		max = t->max ? t->max * 2 : 64;
		more = realloc(t->rank, max * sizeof(*more));
		if (!more) {
			table_oom(t);
			return NULL;
		}
		t->rank = more;
		t->max = max;
	}
	more = &t->rank[t->n++];
	memset(more, 0, sizeof(*more));
	return more;
}

void table_rank_path(const struct table *t, const struct table_rank *r, char *path, size_t room)
{
	if (t->v2)
		snprintf(path, room, "rank_list[%u]", r->at[0]);
	else
		snprintf(path, room, "server_list[%u].device[%u]", r->at[0], r->at[1]);
}
