/* SPDX-License-Identifier: MIT */
/*
 * Values of HCCL's settings.  A parser returns whether a value is good; if not, it may
 * say in @bad which part of it is not (the caller says what is expected of the whole).
 */
#ifndef NPUEMU_HCCL_CONFPARSE_H
#define NPUEMU_HCCL_CONFPARSE_H

#include "config.h"

struct span {
	const char *s;		/* NULL: nothing (more) */
	size_t n;
};

struct conf_out {
	char *bad;
	size_t room;
};

bool conf_bad(struct conf_out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline struct span conf_span(const char *s)
{
	return (struct span){ s, strlen(s) };
}

/* The next piece of @rest, up to @sep; pieces may be empty. */
bool conf_next(struct span *rest, char sep, struct span *piece);
bool conf_is(struct span v, const char *word);
bool conf_is_nocase(struct span v, const char *word);
/* "key:value", spaces around both removed */
bool conf_pair(struct span item, struct span *key, struct span *value);

bool conf_number(struct span v, u64 min, u64 max, u64 *out);	/* decimal digits only */
bool conf_u32(struct span v, u32 min, u32 max, u32 *out);
bool conf_seconds(struct span v, u64 max, s64 *ns);		/* rounded up; only 0 is 0 */

bool conf_ip(const char *s);
bool conf_ports(struct hccl_ports *p, const char *s, struct conf_out *o);
bool conf_names(const char *s, struct conf_out *o);
bool conf_dfs(struct hccl_config *c, const char *s, struct conf_out *o);
bool conf_debug(struct hccl_config *c, const char *s, struct conf_out *o);
bool conf_retry(struct hccl_config *c, const char *s, struct conf_out *o);
bool conf_retry_params(struct hccl_config *c, const char *s, struct conf_out *o);

#define CONF_BUFFER_MAX	(1u << 20)	/* MB: a terabyte */
#define CONF_EXEC_MAX	2147483647u	/* s */

#define CONF_ALGO_WANT	"level0:NA;level1:ALGORITHM;..., or OPERATION=level0:NA;level1:ALGORITHM.../..."
#define CONF_RETRY_WANT	"L0:0,L1:0,L2:0, each 0 or 1"
#define CONF_PARAM_WANT	"MaxCnt:1..10,HoldTime:0..60000,IntervalTime:0..60000"

#endif
