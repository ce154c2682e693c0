// SPDX-License-Identifier: MIT
/* Building the --json output. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

/* Names of processes may hold any byte; JSON text may not. */
static void clean(char *to, size_t room, const char *from)
{
	size_t i;

	for (i = 0; i + 1 < room && from[i]; i++)
		to[i] = (unsigned char)from[i] < 0x80 ? from[i] : '?';
	to[i] = '\0';
}

void npuemu_json_str(struct json_object *o, const char *key, const char *value)
{
	char text[512];

	clean(text, sizeof(text), value);
	json_object_object_add(o, key, json_object_new_string(text));
}

void npuemu_json_u64(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_uint64(value));
}

void npuemu_json_bool(struct json_object *o, const char *key, int value)
{
	json_object_object_add(o, key, json_object_new_boolean(value));
}

void npuemu_json_num(struct json_object *o, const char *key, double value, int digits)
{
	char text[48];

	if (!isfinite(value)) {
		json_object_object_add(o, key, NULL);
		return;
	}
	snprintf(text, sizeof(text), "%.*f", digits, value);
	json_object_object_add(o, key, json_object_new_double_s(value, text));
}

void npuemu_json_counters(struct json_object *o, const struct npuemu_counters *c)
{
	npuemu_json_u64(o, "wqes", c->wqes);
	npuemu_json_u64(o, "cqes", c->cqes);
	npuemu_json_u64(o, "bytes", c->bytes);
	npuemu_json_u64(o, "doorbells", c->doorbells);
	npuemu_json_u64(o, "errors", c->errors);
	npuemu_json_u64(o, "flushed", c->flushed);
	npuemu_json_u64(o, "helped", c->helped);
	npuemu_json_u64(o, "faults", c->faults);
	npuemu_json_u64(o, "rnr", c->rnr);
}

int npuemu_json_print(struct json_object *o, int one_line)
{
	int flags = one_line ? JSON_C_TO_STRING_PLAIN :
		    JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED;

	puts(json_object_to_json_string_ext(o, flags | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
	return fflush(stdout) ? -1 : 0;
}
