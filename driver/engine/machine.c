// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The parser of machine descriptions: plain text in, struct npuemu_machine
 * out.  It is strict, because a topology with a silent typo models a machine
 * that nobody meant.  The kernel host calls it too, hence no C library.
 */
#include "machine_text.h"

#define MAX_TEXT_BYTES	65536u
#define MAX_BANDWIDTH	100000000u	/* MB/s */
#define MAX_NS		1000000000u

#define BANDWIDTH_RANGE	"1 to 100000000"
#define NS_RANGE	"0 to 1000000000"

enum value_kind {
	VALUE_NUMBER,		/* u32 */
	VALUE_SIZE32,		/* u32 of bytes, written with a unit */
	VALUE_SIZE64,
	VALUE_NAME
};

/* One key: where its value goes and what the value may be. */
struct field {
	const char *key;
	enum value_kind kind;
	u32 offset;
	u64 min;
	u64 max;		/* of a name: bytes, with the NUL */
	u64 step;		/* power of two; sizes only */
	const char *range;	/* the same for people */
};

enum {
	KEY_NAME,
	KEY_SOC,
	KEY_GENERATION,
	KEY_SERVERS,
	KEY_DEVICES_PER_SERVER,
	KEY_DEVICES_PER_MODULE,
	KEY_HBM,
	KEY_HBM_MBYTES_PER_S,
	KEY_CUBE_CORES,
	KEY_VECTOR_CORES,
	KEY_UB,
	KEY_L2,
	KEYS
};

enum {
	PLACE_SELF,
	PLACE_MODULE,
	PLACE_SERVER,
	PLACE_NET,
	PLACE_HOST,
	PLACES
};

#define IN_MACHINE(member)	offsetof(struct npuemu_machine, member)
#define IN_ENGINE(member)	offsetof(struct npuemu_engine_desc, member)
#define IN_LINK(member)		offsetof(struct npuemu_link_class, member)

static const struct field keys[KEYS] = {
	[KEY_NAME] = { "name", VALUE_NAME, IN_MACHINE(name), 1,
		sizeof(((struct npuemu_machine *)0)->name), 1,
		"a name of up to 31 characters" },
	[KEY_SOC] = { "soc", VALUE_NAME, IN_MACHINE(soc), 1,
		sizeof(((struct npuemu_machine *)0)->soc), 1,
		"a name of up to 31 characters" },
	[KEY_GENERATION] = { "generation", VALUE_NUMBER,
		IN_MACHINE(generation), 1, 65535, 1, "1 to 65535" },
	[KEY_SERVERS] = { "servers", VALUE_NUMBER, IN_MACHINE(servers),
		1, NPUEMU_MAX_SERVERS, 1, "1 to 16" },
	[KEY_DEVICES_PER_SERVER] = { "devices_per_server", VALUE_NUMBER,
		IN_MACHINE(devices_per_server), 1, NPUEMU_MAX_DEVICES, 1,
		"1 to 64" },
	[KEY_DEVICES_PER_MODULE] = { "devices_per_module", VALUE_NUMBER,
		IN_MACHINE(devices_per_module), 1, NPUEMU_MAX_DEVICES, 1,
		"1 to 64" },
	[KEY_HBM] = { "hbm", VALUE_SIZE64, IN_MACHINE(hbm_bytes),
		2ULL << 20, 1ULL << 40, 2ULL << 20,
		"2 MiB to 1 TiB in steps of 2 MiB" },
	[KEY_HBM_MBYTES_PER_S] = { "hbm_mbytes_per_s", VALUE_NUMBER,
		IN_MACHINE(hbm_mbytes_per_s), 1, MAX_BANDWIDTH, 1,
		BANDWIDTH_RANGE },
	[KEY_CUBE_CORES] = { "cube_cores", VALUE_NUMBER,
		IN_MACHINE(cube_cores), 0, 1024, 1, "0 to 1024" },
	[KEY_VECTOR_CORES] = { "vector_cores", VALUE_NUMBER,
		IN_MACHINE(vector_cores), 1, 1024, 1, "1 to 1024" },
	[KEY_UB] = { "ub", VALUE_SIZE32, IN_MACHINE(ub_bytes),
		4 << 10, 16 << 20, 1 << 10,
		"4 KiB to 16 MiB in steps of 1 KiB" },
	[KEY_L2] = { "l2", VALUE_SIZE32, IN_MACHINE(l2_bytes),
		1 << 20, 2ULL << 30, 1 << 20,
		"1 MiB to 2 GiB in steps of 1 MiB" },
};

static const struct field engine_keys[] = {
	{ "count", VALUE_NUMBER, IN_ENGINE(count), 1, 1024, 1, "1 to 1024" },
	{ "submit_ns", VALUE_NUMBER, IN_ENGINE(submit_ns), 0, MAX_NS, 1,
		NS_RANGE },
	{ "mbytes_per_s", VALUE_NUMBER, IN_ENGINE(mbytes_per_s), 0,
		MAX_BANDWIDTH, 1, "0 to 100000000" },
};

/* The last one may be left out. */
static const struct field link_keys[] = {
	{ "latency_ns", VALUE_NUMBER, IN_LINK(latency_ns), 0, MAX_NS, 1,
		NS_RANGE },
	{ "mbytes_per_s", VALUE_NUMBER, IN_LINK(mbytes_per_s), 1,
		MAX_BANDWIDTH, 1, BANDWIDTH_RANGE },
	{ "pair_mbytes_per_s", VALUE_NUMBER, IN_LINK(pair_mbytes_per_s), 1,
		MAX_BANDWIDTH, 1, BANDWIDTH_RANGE },
};

#define PAIR_KEY	2	/* its place in link_keys */
#define MAX_PAIRS	3	/* keys of an engine or link line */

static const struct field link_name = {
	"link", VALUE_NAME, IN_LINK(name), 1,
	sizeof(((struct npuemu_link_class *)0)->name), 1,
	"a name of up to 15 characters"
};

static const char *const engine_names[NPUEMU_ENGINE_KINDS] = {
	[NPUEMU_ENGINE_UDMA] = "udma",
	[NPUEMU_ENGINE_SDMA] = "sdma",
	[NPUEMU_ENGINE_MTE] = "mte",
	[NPUEMU_ENGINE_RDMA] = "rdma",
};

static const char *const place_names[PLACES] = {
	[PLACE_SELF] = "self",
	[PLACE_MODULE] = "module",
	[PLACE_SERVER] = "server",
	[PLACE_NET] = "net",
	[PLACE_HOST] = "host",
};

static const u32 place_offsets[PLACES] = {
	[PLACE_SELF] = IN_MACHINE(link_self),
	[PLACE_MODULE] = IN_MACHINE(link_module),
	[PLACE_SERVER] = IN_MACHINE(link_server),
	[PLACE_NET] = IN_MACHINE(link_net),
	[PLACE_HOST] = IN_MACHINE(link_host),
};

struct parser {
	struct npuemu_text x;
	struct npuemu_machine *m;
	struct npuemu_token value[KEYS];	/* len 0: not given yet */
	u32 engine_line[NPUEMU_ENGINE_KINDS];
	u32 link_line[NPUEMU_MAX_LINKS];
	u32 place_line[PLACES];
};

static void say(struct parser *p, const char *words)
{
	npuemu_text_say(&p->x, words);
}

static void say_number(struct parser *p, u32 n)
{
	npuemu_text_say_number(&p->x, n);
}

static void say_token(struct parser *p, const struct npuemu_token *t)
{
	npuemu_text_say_token(&p->x, t);
}

static int refuse(struct parser *p, const struct npuemu_token *t)
{
	return npuemu_text_refuse(&p->x, t);
}

static int refuse_twice(struct parser *p, const struct npuemu_token *t, u32 first)
{
	say_token(p, t);
	say(p, " is given twice: first on line ");
	say_number(p, first);
	say(p, ", keep one of them");
	return refuse(p, t);
}

/* --- values --- */

static int refuse_range(struct parser *p, const struct npuemu_token *t,
			const struct field *f, const char *why)
{
	say_token(p, t);
	say(p, why);
	say(p, f->key);
	say(p, " takes ");
	say(p, f->range);
	return refuse(p, t);
}

/*
 * Far above every limit is as good as any number above it, so the value stops
 * growing there instead of wrapping.
 */
static int parse_number(struct parser *p, const struct npuemu_token *t,
			const struct field *f, u64 *number)
{
	const u64 enough = 100000000000000000ULL;
	u64 v = 0;
	u32 i;

	for (i = 0; i < t->len; i++) {
		char c = t->text[i];

		if (c < '0' || c > '9')
			return refuse_range(p, t, f,
					    " is not a whole decimal number: ");
		if (v < enough)
			v = v * 10 + (u64)(c - '0');
	}
	*number = v;
	return 0;
}

static int parse_unit(struct parser *p, const struct field *f, u32 *shift)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	struct npuemu_token t = npuemu_text_word(&p->x);
	u32 i;

	if (!t.len) {
		say(p, f->key);
		say(p, " has no unit: write B, KiB, MiB, GiB or TiB after the number");
		return refuse(p, &t);
	}
	i = npuemu_token_index(&t, units, ARRAY_SIZE(units));
	if (i == ARRAY_SIZE(units)) {
		say_token(p, &t);
		say(p, " is not a unit: write B, KiB, MiB, GiB or TiB");
		return refuse(p, &t);
	}
	*shift = 10 * i;
	return 0;
}

static int parse_quantity(struct parser *p, const struct npuemu_token *t,
			  const struct field *f, u8 *to)
{
	u32 shift = 0;
	u32 narrow;
	u64 v = 0;

	if (parse_number(p, t, f, &v))
		return -EINVAL;
	if (f->kind != VALUE_NUMBER && parse_unit(p, f, &shift))
		return -EINVAL;
	if (v > f->max >> shift || v << shift < f->min)
		return refuse_range(p, t, f, " is out of range: ");
	v <<= shift;
	if (v & (f->step - 1))
		return refuse_range(p, t, f, " is between two steps: ");
	narrow = (u32)v;
	if (f->kind == VALUE_SIZE64)
		memcpy(to, &v, sizeof(v));
	else
		memcpy(to, &narrow, sizeof(narrow));
	return 0;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

static int parse_name(struct parser *p, const struct npuemu_token *t,
		      const struct field *f, u8 *to)
{
	u32 i;

	for (i = 0; i < t->len; i++) {
		if (is_name_char(t->text[i]))
			continue;
		say_token(p, t);
		say(p, " has a character that a name may not have: use letters, digits, . _ -");
		return npuemu_text_refuse_at(&p->x, t->line, t->column + i);
	}
	if (t->len >= f->max)
		return refuse_range(p, t, f, " is too long: ");
	memset(to, 0, f->max);
	memcpy(to, t->text, t->len);
	return 0;
}

/* The value of @f at the cursor, into the structure at @base. */
static int parse_value(struct parser *p, const struct field *f, void *base,
		       struct npuemu_token *value)
{
	u8 *to = (u8 *)base + f->offset;

	*value = npuemu_text_word(&p->x);
	if (!value->len) {
		say(p, f->key);
		say(p, " has no value: give ");
		say(p, f->range);
		return refuse(p, value);
	}
	if (f->kind == VALUE_NAME)
		return parse_name(p, value, f, to);
	return parse_quantity(p, value, f, to);
}

static int parse_line_end(struct parser *p)
{
	struct npuemu_token t = npuemu_text_word(&p->x);

	if (!t.len)
		return 0;
	say_token(p, &t);
	say(p, " is too much on this line: remove it, or put # before a comment");
	return refuse(p, &t);
}

/* --- the four kinds of lines --- */

static int parse_key_line(struct parser *p, const struct npuemu_token *key)
{
	u32 i;

	for (i = 0; i < KEYS; i++)
		if (npuemu_token_is(key, keys[i].key))
			break;
	if (i == KEYS) {
		say_token(p, key);
		say(p, " is not a key: correct it; Documentation/machines.md lists all keys");
		return refuse(p, key);
	}
	if (p->value[i].len)
		return refuse_twice(p, key, p->value[i].line);
	if (parse_value(p, &keys[i], p->m, &p->value[i]))
		return -EINVAL;
	return parse_line_end(p);
}

static int refuse_pair_key(struct parser *p, const struct npuemu_token *t,
			   const struct field *fields, u32 n)
{
	u32 i;

	say_token(p, t);
	say(p, " does not belong here: use");
	for (i = 0; i < n; i++) {
		say(p, i ? ", " : " ");
		say(p, fields[i].key);
	}
	return refuse(p, t);
}

/*
 * The rest of an engine or link line: key and value, in any order, each once,
 * the first @needed of them always.
 */
static int parse_pairs(struct parser *p, const struct field *fields, u32 n,
		       u32 needed, void *base, struct npuemu_token value[])
{
	struct npuemu_token t;
	u32 i;

	for (i = 0; i < n; i++)
		value[i].len = 0;
	for (t = npuemu_text_word(&p->x); t.len; t = npuemu_text_word(&p->x)) {
		for (i = 0; i < n; i++)
			if (npuemu_token_is(&t, fields[i].key))
				break;
		if (i == n)
			return refuse_pair_key(p, &t, fields, n);
		if (value[i].len)
			return refuse_twice(p, &t, t.line);
		if (parse_value(p, &fields[i], base, &value[i]))
			return -EINVAL;
	}
	for (i = 0; i < needed; i++) {
		if (value[i].len)
			continue;
		say(p, fields[i].key);
		say(p, " is missing on this line: add it with ");
		say(p, fields[i].range);
		return refuse(p, &t);
	}
	return 0;
}

static int parse_engine_line(struct parser *p)
{
	struct npuemu_token value[MAX_PAIRS];
	struct npuemu_token t = npuemu_text_word(&p->x);
	u32 kind = npuemu_token_index(&t, engine_names, NPUEMU_ENGINE_KINDS);

	if (kind == NPUEMU_ENGINE_KINDS) {
		say_token(p, &t);
		say(p, " is not an engine: use udma, sdma, mte or rdma");
		return refuse(p, &t);
	}
	if (p->engine_line[kind])
		return refuse_twice(p, &t, p->engine_line[kind]);
	p->engine_line[kind] = p->x.line;
	p->m->engine[kind].present = 1;
	return parse_pairs(p, engine_keys, ARRAY_SIZE(engine_keys),
			   ARRAY_SIZE(engine_keys), &p->m->engine[kind],
			   value);
}

/* Its index, or the number of links. */
static u32 find_link(const struct npuemu_machine *m, const struct npuemu_token *t)
{
	u32 i;

	for (i = 0; i < m->links; i++)
		if (npuemu_token_is(t, m->link[i].name))
			break;
	return i;
}

static int parse_link_line(struct parser *p, const struct npuemu_token *key)
{
	struct npuemu_machine *m = p->m;
	struct npuemu_link_class *link;
	struct npuemu_token value[MAX_PAIRS];
	struct npuemu_token t;
	u32 i;

	if (m->links == NPUEMU_MAX_LINKS) {
		say(p, "more than ");
		say_number(p, NPUEMU_MAX_LINKS);
		say(p, " links: remove one");
		return refuse(p, key);
	}
	link = &m->link[m->links];
	if (parse_value(p, &link_name, link, &t))
		return -EINVAL;
	i = find_link(m, &t);
	if (i < m->links)
		return refuse_twice(p, &t, p->link_line[i]);
	if (parse_pairs(p, link_keys, ARRAY_SIZE(link_keys), PAIR_KEY, link,
			value))
		return -EINVAL;
	if (!value[PAIR_KEY].len)
		link->pair_mbytes_per_s = link->mbytes_per_s;
	if (link->pair_mbytes_per_s > link->mbytes_per_s) {
		say_token(p, &value[PAIR_KEY]);
		say(p, " is more than the device reaches: lower it to mbytes_per_s or below");
		return refuse(p, &value[PAIR_KEY]);
	}
	p->link_line[m->links++] = p->x.line;
	return 0;
}

static int parse_path_line(struct parser *p)
{
	struct npuemu_token t = npuemu_text_word(&p->x);
	u32 place = npuemu_token_index(&t, place_names, PLACES);
	u32 i;

	if (place == PLACES) {
		say_token(p, &t);
		say(p, " is not a place: use self, module, server, net or host");
		return refuse(p, &t);
	}
	if (p->place_line[place])
		return refuse_twice(p, &t, p->place_line[place]);
	t = npuemu_text_word(&p->x);
	i = find_link(p->m, &t);
	if (i == p->m->links) {
		say_token(p, &t);
		say(p, " is not a link defined above: correct it, or move its link line up");
		return refuse(p, &t);
	}
	p->place_line[place] = p->x.line;
	((u8 *)p->m)[place_offsets[place]] = (u8)i;
	return parse_line_end(p);
}

static int parse_line(struct parser *p)
{
	struct npuemu_token key = npuemu_text_word(&p->x);

	if (!key.len)
		return 0;
	if (npuemu_token_is(&key, "engine"))
		return parse_engine_line(p);
	if (npuemu_token_is(&key, "link"))
		return parse_link_line(p, &key);
	if (npuemu_token_is(&key, "path"))
		return parse_path_line(p);
	return parse_key_line(p, &key);
}

/* --- the whole --- */

static int refuse_missing(struct parser *p, const char *before,
			  const char *key, const char *add, const char *what)
{
	say(p, before);
	say(p, key);
	say(p, " is missing: ");
	say(p, add);
	say(p, what);
	return npuemu_text_refuse_at(&p->x, 0, 0);
}

static int check_complete(struct parser *p)
{
	bool needed[PLACES] = {
		[PLACE_SELF] = true,
		[PLACE_MODULE] = p->m->devices_per_module > 1,
		[PLACE_SERVER] = true,
		[PLACE_NET] = p->m->servers > 1,
		[PLACE_HOST] = true,
	};
	bool engines = false;
	u32 i;

	for (i = 0; i < KEYS; i++)
		if (!p->value[i].len)
			return refuse_missing(p, "", keys[i].key,
					      "add a line with it and ",
					      keys[i].range);
	for (i = 0; i < NPUEMU_ENGINE_KINDS; i++)
		engines |= p->engine_line[i] != 0;
	if (!engines)
		return refuse_missing(p, "", "engine", "add an engine line, ",
				      "such as engine sdma ...");
	for (i = 0; i < PLACES; i++)
		if (needed[i] && !p->place_line[i])
			return refuse_missing(p, "path ", place_names[i],
					      "add a path line with it and ",
					      "the name of a link");
	return 0;
}

/* What two keys must not say together; blames the later key of the list. */
static int check_topology(struct parser *p)
{
	struct npuemu_machine *m = p->m;
	const struct npuemu_token *t;

	m->devices = m->servers * m->devices_per_server;
	if (m->devices > NPUEMU_MAX_DEVICES) {
		say(p, "servers times devices_per_server is ");
		say_number(p, m->devices);
		say(p, ": lower one of them, at most ");
		say_number(p, NPUEMU_MAX_DEVICES);
		say(p, " devices");
		t = &p->value[KEY_DEVICES_PER_SERVER];
		return refuse(p, t);
	}
	if (m->devices_per_server % m->devices_per_module) {
		t = &p->value[KEY_DEVICES_PER_MODULE];
		say_token(p, t);
		say(p, " does not divide devices_per_server: choose a divisor of ");
		say_number(p, m->devices_per_server);
		return refuse(p, t);
	}
	/* A class that no pair of this machine uses still names a real one. */
	if (!p->place_line[PLACE_MODULE])
		m->link_module = m->link_server;
	if (!p->place_line[PLACE_NET])
		m->link_net = m->link_server;
	return 0;
}

static int parse_text(struct parser *p)
{
	int more;

	while ((more = npuemu_text_line(&p->x)) > 0)
		if (parse_line(p))
			return -EINVAL;
	if (more < 0 || check_complete(p))
		return -EINVAL;
	return check_topology(p);
}

int npuemu_machine_parse(const char *text, size_t len, struct npuemu_machine *m,
			 struct npuemu_machine_error *err)
{
	struct npuemu_machine_error unread = { 0 };
	struct parser p;
	int ret;

	memset(&p, 0, sizeof(p));
	memset(m, 0, sizeof(*m));
	p.m = m;
	p.x.err = err ? err : &unread;
	memset(p.x.err, 0, sizeof(*p.x.err));
	if (len > MAX_TEXT_BYTES) {
		say(&p, "longer than ");
		say_number(&p, MAX_TEXT_BYTES);
		say(&p, " bytes: is this the right file? shorten its comments");
		return npuemu_text_refuse_at(&p.x, 0, 0);
	}
	p.x.next = text;
	p.x.end = text + len;
	ret = parse_text(&p);
	if (ret)
		memset(m, 0, sizeof(*m));
	return ret;
}
