// SPDX-License-Identifier: MIT
/* A communicator's settings as one line of key=value, and whether two of them fit together. */
#include <inttypes.h>
#include <stdio.h>
#include "confparse.h"

/* One of each group of operations that HCCL_ALGO sets together. */
static const struct {
	const char *name;
	u32 cmd;
} shown[] = {
	{ "allreduce", HCCL_CMD_ALLREDUCE },
	{ "reduce", HCCL_CMD_REDUCE },
	{ "reducescatter", HCCL_CMD_REDUCE_SCATTER },
	{ "allgather", HCCL_CMD_ALLGATHER },
	{ "broadcast", HCCL_CMD_BROADCAST },
	{ "scatter", HCCL_CMD_SCATTER },
	{ "gather", HCCL_CMD_GATHER },
	{ "alltoall", HCCL_CMD_ALLTOALL },
	{ "send", HCCL_CMD_SEND },
	{ "receive", HCCL_CMD_RECEIVE },
	{ "sendrecv", HCCL_CMD_BATCH_SEND_RECV },
	{ "others", HCCL_CMD_INVALID },
};

struct line {
	char *text;
	size_t room;
	size_t n;
};

static void add(struct line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->text + l->n, l->room - l->n, fmt, ap);
	va_end(ap);
	l->n += (size_t)n;
	if (l->n >= l->room)
		l->n = l->room - 1;
}

/* 1836s, 0.05s, never */
static void add_time(struct line *l, const char *key, s64 ns)
{
	char part[16];
	size_t n;

	if (!ns) {
		add(l, " %s=never", key);
		return;
	}
	snprintf(part, sizeof(part), ".%09" PRId64, ns % 1000000000);
	for (n = strlen(part); n && (part[n - 1] == '0' || part[n - 1] == '.'); n--)
		;
	part[n] = '\0';
	add(l, " %s=%" PRId64 "%ss", key, ns / 1000000000, part);
}

/* level0/level1/...: - where nothing is set */
static void add_levels(struct line *l, const u8 *levels)
{
	u32 i, n = HCCL_ALG_LEVELS;

	while (n > 1 && levels[n - 1] == HCCL_ALG_DEFAULT)
		n--;
	for (i = 0; i < n; i++)
		add(l, "%s%s", i ? "/" : "", hccl_alg_name(levels[i]));
}

static void add_algs(struct line *l, const struct hccl_config *c)
{
	const u8 *others = c->alg[HCCL_CMD_INVALID];
	u32 i;

	/* what most of them do, then those that differ */
	add(l, " algo=");
	add_levels(l, others);
	for (i = 0; i < ARRAY_SIZE(shown); i++) {
		const u8 *levels = c->alg[shown[i].cmd];

		if (!memcmp(levels, others, HCCL_ALG_LEVELS))
			continue;
		add(l, ",%s:", shown[i].name);
		add_levels(l, levels);
	}
}

void hccl_config_text(const struct hccl_config *c, char *text, size_t room)
{
	static const char *const det[] = { "false", "true", "strict" };
	static const char *const check[] = { "off", "on", "first" };
	struct line l = { .text = text, .room = room };

	if (!room)
		return;
	add(&l, "mode=%s", hccl_mode_name(c->mode));
	add(&l, " buffer=%" PRIu64 "MB", c->buffer_bytes >> 20);
	add(&l, " deterministic=%s", det[c->deterministic]);
	add_algs(&l, c);
	add(&l, " intra=%s", c->intra_roce ? "roce" : "pcie");
	if (c->inter_hccs_off)
		add(&l, " inter_hccs=off");
	add(&l, " check=%s", check[c->check]);
	add(&l, " retry=%u%u%u", c->retry[0], c->retry[1], c->retry[2]);
	add(&l, " zero_copy=%u", c->zero_copy);
	add(&l, " symwin=%" PRIu64 "GB", c->symwin_bytes >> 30);
	add(&l, " strict=%s", c->strict ? c->soc : "no");
	add_time(&l, "connect_timeout", c->connect_ns);
	add_time(&l, "exec_timeout", c->exec_ns);
}

static bool own_business(struct span key)
{
	return conf_is(key, "connect_timeout") || conf_is(key, "exec_timeout");
}

static bool find(const char *text, struct span key, struct span *value)
{
	struct span rest = conf_span(text), item, k;

	while (conf_next(&rest, ' ', &item)) {
		*value = item;
		conf_next(value, '=', &k);
		if (value->s && k.n == key.n && !memcmp(k.s, key.s, key.n))
			return true;
	}
	*value = (struct span){ "nothing", 7 };
	return false;
}

/* Everything that @a says, does @b say the same? */
static bool covers(const char *a, const char *b, bool swapped, char *why, size_t room)
{
	struct span rest = conf_span(a), item, key, x, y;

	while (conf_next(&rest, ' ', &item)) {
		x = item;
		conf_next(&x, '=', &key);
		if (!x.s || own_business(key))
			continue;
		if (find(b, key, &y) && x.n == y.n && !memcmp(x.s, y.s, x.n))
			continue;
		snprintf(why, room, "%.*s is %.*s, but %.*s on the other side", (int)key.n, key.s,
			 (int)(swapped ? y.n : x.n), swapped ? y.s : x.s,
			 (int)(swapped ? x.n : y.n), swapped ? x.s : y.s);
		return false;
	}
	return true;
}

bool hccl_config_agree(const char *ours, const char *theirs, char *why, size_t room)
{
	return covers(ours, theirs, false, why, room) && covers(theirs, ours, true, why, room);
}
