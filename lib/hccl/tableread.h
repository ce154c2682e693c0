/* SPDX-License-Identifier: MIT */
/* Reading a rank table's JSON, field by field, with messages that name the place. */
#ifndef NPUEMU_HCCL_TABLEREAD_H
#define NPUEMU_HCCL_TABLEREAD_H

#include <json-c/json.h>
#include "ranktable.h"

#define TABLE_PATH	96	/* of a place in the file */

/* One rank as found, in the order of the file. */
struct table_rank {
	struct hccl_rankent ent;
	u32 at[2];		/* 1.x: of server_list, of its device; 2.0: of rank_list */
	const char *server;	/* whole names, in the JSON */
	const char *superpod;	/* NULL: there are none */
	u64 hash;		/* of what is said of it */
};

struct table {
	const char *file;
	char *why;
	size_t room;
	char version[8];
	bool v2;
	u32 n;
	u32 max;
	struct table_rank *rank;
};

/* An object in the file. */
struct table_obj {
	struct table *t;
	struct json_object *json;
	char path[TABLE_PATH];	/* "" at the top */
};

#define TABLE_MUST	1	/* the key has to be there */
#define TABLE_TEXT	2	/* a number is not taken for a string of digits, nor the other way */

void table_say(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Note the message, give the code back. */
#define table_fail(t, code, ...)							\
	__extension__ ({							\
		table_say((t), __VA_ARGS__);					\
		(int)(code);							\
	})

static inline int table_oom(struct table *t)
{
	return table_fail(t, HCCL_E_MEMORY, "EI0011: rank table %s: out of host memory", t->file);
}

/* EI0014 about @key of @o as it stands there, EI0017 if it does not */
int table_bad(const struct table_obj *o, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Each leaves *@out alone if the key is not there. */
int table_string(const struct table_obj *o, const char *key, u32 flags, u32 max, const char **out);
int table_number(const struct table_obj *o, const char *key, u32 flags, u32 min, u32 max, u32 *out);
/* A list of @min to @max objects, or of strings. */
int table_list(const struct table_obj *o, const char *key, u32 flags, u32 min, u32 max,
	       struct json_object **out);
/* The object that is entry @i of @list, which is @key of @o. */
int table_entry(const struct table_obj *o, const char *key, struct json_object *list, u32 i,
		struct table_obj *out);
/* "", or one address, or several with commas between them */
int table_address(const struct table_obj *o, const char *key);
int table_port(const struct table_obj *o, const char *key, u32 flags);

u64 table_hash(u64 h, const void *data, size_t n);
u64 table_hash_text(u64 h, const char *s);
/* Blind to the order of keys, and to whether a scalar is in quotes. */
u64 table_hash_json(struct json_object *json);

/* A place for one more rank; NULL with a message. */
struct table_rank *table_add(struct table *t);
void table_rank_path(const struct table *t, const struct table_rank *r, char *path, size_t room);

int table_read_v1(const struct table_obj *root);	/* ranktable_v1.c */
int table_read_v2(const struct table_obj *root);	/* ranktable_v2.c */

#endif
