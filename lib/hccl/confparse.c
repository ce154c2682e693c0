// SPDX-License-Identifier: MIT
/* The parts that HCCL's settings are made of: numbers, lists, key:value. */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <strings.h>
#include "confparse.h"

bool conf_bad(struct conf_out *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(o->bad, o->room, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- Pieces ----------------------------------------------------------------- */

bool conf_next(struct span *rest, char sep, struct span *piece)
{
	const char *end;

	if (!rest->s)
		return false;
	*piece = *rest;
	end = memchr(rest->s, sep, rest->n);
	if (!end) {
		rest->s = NULL;
		rest->n = 0;
		return true;
	}
	piece->n = (size_t)(end - rest->s);
	rest->s += piece->n + 1;
	rest->n -= piece->n + 1;
	return true;
}

bool conf_is(struct span v, const char *word)
{
	return v.n == strlen(word) && !memcmp(v.s, word, v.n);
}

bool conf_is_nocase(struct span v, const char *word)
{
	return v.n == strlen(word) && !strncasecmp(v.s, word, v.n);
}

static struct span trim(struct span v)
{
	while (v.n && *v.s == ' ') {
		v.s++;
		v.n--;
	}
	while (v.n && v.s[v.n - 1] == ' ')
		v.n--;
	return v;
}

bool conf_pair(struct span item, struct span *key, struct span *value)
{
	const char *colon = memchr(item.s, ':', item.n);

	if (!colon)
		return false;
	*key = trim((struct span){ item.s, (size_t)(colon - item.s) });
	*value = trim((struct span){ colon + 1, item.n - (size_t)(colon - item.s) - 1 });
	return key->n && value->n;
}

/* ---- Numbers ---------------------------------------------------------------- */

bool conf_number(struct span v, u64 min, u64 max, u64 *out)
{
	u64 n = 0;
	size_t i;

	for (i = 0; i < v.n; i++) {
		if (v.s[i] < '0' || v.s[i] > '9')
			return false;
		/* stays too large once it is: no limit is near */
		if (n < UINT64_MAX / 16)
			n = n * 10 + (u64)(v.s[i] - '0');
	}
	if (!v.n || n < min || n > max)
		return false;
	*out = n;
	return true;
}

bool conf_u32(struct span v, u32 min, u32 max, u32 *out)
{
	u64 n;

	if (!conf_number(v, min, max, &n))
		return false;
	*out = (u32)n;
	return true;
}

bool conf_seconds(struct span v, u64 max, s64 *ns)
{
	struct span whole, part = { NULL, 0 }, rest = v;
	s64 sum = 0, unit = 1000000000;
	u64 seconds = 0;
	size_t i;

	if (!conf_next(&rest, '.', &whole))
		return false;
	if (rest.s)
		part = rest;
	/* ".5" and "5." are numbers, "." is none */
	if ((!whole.n && !part.n) || (whole.n && !conf_number(whole, 0, max, &seconds)))
		return false;
	for (i = 0; i < part.n; i++) {
		if (part.s[i] < '0' || part.s[i] > '9')
			return false;
		unit /= 10;
		sum += (part.s[i] - '0') * unit;
		/* beyond a nanosecond: something is not nothing */
		if (!unit && part.s[i] != '0') {
			sum++;
			break;
		}
	}
	for (; i < part.n; i++)
		if (part.s[i] < '0' || part.s[i] > '9')
			return false;
	if (seconds == max && sum)
		return false;
	*ns = (s64)seconds * 1000000000 + sum;
	return true;
}

/* ---- Network ---------------------------------------------------------------- */

/* An address, of an interface after a % or of any. */
bool conf_ip(const char *s)
{
	struct span rest = conf_span(s), ip;
	char text[INET6_ADDRSTRLEN];
	struct in6_addr a;

	conf_next(&rest, '%', &ip);
	if (!ip.n || ip.n >= sizeof(text) || (rest.s && (!rest.n || rest.n >= IF_NAMESIZE)))
		return false;
	memcpy(text, ip.s, ip.n);
	text[ip.n] = '\0';
	return inet_pton(AF_INET, text, &a) == 1 || inet_pton(AF_INET6, text, &a) == 1;
}

static bool port_range(struct hccl_ports *p, struct span item, struct conf_out *o)
{
	struct span first, last = item;
	u32 low, high, i;

	conf_next(&last, '-', &first);
	if (!last.s)
		last = first;
	if (!conf_u32(first, 1, 65535, &low) || !conf_u32(last, 1, 65535, &high) || high < low)
		return conf_bad(o, "\"%.*s\" is no range of ports", (int)item.n, item.s);
	for (i = 0; i < p->n; i++)
		if (low <= p->range[i].high && high >= p->range[i].low)
			return conf_bad(o, "\"%.*s\" overlaps %u-%u", (int)item.n, item.s, p->range[i].low,
					p->range[i].high);
	if (p->n == HCCL_PORT_RANGES)
		return conf_bad(o, "it has more than %d ranges", HCCL_PORT_RANGES);
	p->range[p->n].low = (u16)low;
	p->range[p->n++].high = (u16)high;
	return true;
}

bool conf_ports(struct hccl_ports *p, const char *s, struct conf_out *o)
{
	struct span rest = conf_span(s), item;

	memset(p, 0, sizeof(*p));
	if (!strcmp(s, "auto")) {
		p->automatic = true;
		return true;
	}
	while (conf_next(&rest, ',', &item))
		if (!port_range(p, item, o))
			return false;
	return true;
}

/* [^][=]NAME,NAME... */
bool conf_names(const char *s, struct conf_out *o)
{
	struct span rest, name;

	s += *s == '^';
	s += *s == '=';
	rest = conf_span(s);
	while (conf_next(&rest, ',', &name)) {
		size_t i;

		for (i = 0; i < name.n && name.s[i] > ' ' && name.s[i] < 0x7f && !strchr("/^=", name.s[i]); i++)
			;
		if (!name.n || name.n >= IF_NAMESIZE || i < name.n)
			return conf_bad(o, "\"%.*s\" is no interface's name", (int)name.n, name.s);
	}
	return true;
}

/* ---- Diagnosis -------------------------------------------------------------- */

static bool on_off(struct span v, u8 *out)
{
	if (!conf_is_nocase(v, "on") && !conf_is_nocase(v, "off"))
		return false;
	*out = v.n == 2;
	return true;
}

static bool dfs_item(struct hccl_config *c, struct span key, struct span v)
{
	if (conf_is_nocase(key, "cluster_heartbeat"))
		return on_off(v, &c->heartbeat);
	if (conf_is_nocase(key, "stuck_detection"))
		return on_off(v, &c->stuck_detection);
	if (conf_is_nocase(key, "task_exception"))
		return on_off(v, &c->task_exception);
	if (conf_is_nocase(key, "task_monitor_interval"))
		return conf_u32(v, 0, 7200000, &c->task_monitor_ms);
	if (conf_is_nocase(key, "connection_fault_detection_time"))
		return conf_u32(v, 0, 0, &c->fault_detection_s) ||
		       conf_u32(v, 20, 7200, &c->fault_detection_s);
	if (!conf_is_nocase(key, "inconsistent_check"))
		return false;
	if (conf_is_nocase(v, "first")) {
		c->check = HCCL_CHECK_FIRST;
		return true;
	}
	return on_off(v, &c->check);	/* 0 and 1 are HCCL_CHECK_OFF and _ON */
}

bool conf_dfs(struct hccl_config *c, const char *s, struct conf_out *o)
{
	struct span rest = conf_span(s), item, key, value;

	while (conf_next(&rest, ',', &item))
		if (!conf_pair(item, &key, &value) || !dfs_item(c, key, value))
			return conf_bad(o, "\"%.*s\" is not known", (int)item.n, item.s);
	return true;
}

bool conf_debug(struct hccl_config *c, const char *s, struct conf_out *o)
{
	static const char *const words[] = { "alg", "task", "resource" };
	struct span rest, word;
	u8 bits = 0;
	size_t i;

	rest = conf_span(s + (*s == '^'));
	while (conf_next(&rest, ',', &word)) {
		for (i = 0; i < ARRAY_SIZE(words) && !conf_is_nocase(word, words[i]); i++)
			;
		if (i == ARRAY_SIZE(words))
			return conf_bad(o, "\"%.*s\" is not known", (int)word.n, word.s);
		bits |= (u8)(1 << i);
	}
	/* ^: all but these */
	c->debug = *s == '^' ? bits ^ (HCCL_DEBUG_ALG | HCCL_DEBUG_TASK | HCCL_DEBUG_RESOURCE) : bits;
	return true;
}

/* ---- Retries ---------------------------------------------------------------- */

bool conf_retry(struct hccl_config *c, const char *s, struct conf_out *o)
{
	struct span rest = conf_span(s), item, key, value;
	u32 seen = 0, level, on;

	while (conf_next(&rest, ',', &item)) {
		if (!conf_pair(item, &key, &value) || key.n != 2 || key.s[0] != 'L' ||
		    !conf_u32((struct span){ key.s + 1, 1 }, 0, 2, &level) || !conf_u32(value, 0, 1, &on))
			return conf_bad(o, "\"%.*s\" is no level's", (int)item.n, item.s);
		if (seen >> level & 1)
			return conf_bad(o, "L%u is there twice", level);
		seen |= 1u << level;
		c->retry[level] = (u8)on;
	}
	return true;
}

bool conf_retry_params(struct hccl_config *c, const char *s, struct conf_out *o)
{
	static const struct {
		const char *key;
		size_t at;
		u32 min, max;
	} params[] = {
		{ "MaxCnt", offsetof(struct hccl_config, retry_max), 1, 10 },
		{ "HoldTime", offsetof(struct hccl_config, retry_hold_ms), 0, 60000 },
		{ "IntervalTime", offsetof(struct hccl_config, retry_interval_ms), 0, 60000 },
	};
	struct span rest = conf_span(s), item, key = { NULL, 0 }, value = key;
	u32 seen = 0;
	size_t i;

	while (conf_next(&rest, ',', &item)) {
		for (i = 0; i < ARRAY_SIZE(params); i++)
			if (conf_pair(item, &key, &value) && conf_is(key, params[i].key))
				break;
		if (i == ARRAY_SIZE(params) ||
		    !conf_u32(value, params[i].min, params[i].max, (u32 *)((char *)c + params[i].at)))
			return conf_bad(o, "\"%.*s\" is not one of them", (int)item.n, item.s);
		if (seen >> i & 1)
			return conf_bad(o, "%s is there twice", params[i].key);
		seen |= 1u << i;
	}
	return true;
}
