/* SPDX-License-Identifier: MIT */
/* Building the --json output: json-c with the project's conventions. */
#ifndef NPUEMU_TOOLS_JSON_H
#define NPUEMU_TOOLS_JSON_H

#include <stdint.h>
#include <json-c/json.h>
#include <npuemu/npuemu.h>

void npuemu_json_str(struct json_object *o, const char *key, const char *value);
void npuemu_json_u64(struct json_object *o, const char *key, uint64_t value);
void npuemu_json_bool(struct json_object *o, const char *key, int value);
/* With @digits after the point; not a number becomes null. */
void npuemu_json_num(struct json_object *o, const char *key, double value, int digits);
void npuemu_json_counters(struct json_object *o, const struct npuemu_counters *c);
/* Print, one object on one line or in the pretty form, and drop it. */
int npuemu_json_print(struct json_object *o, int one_line);

#endif
