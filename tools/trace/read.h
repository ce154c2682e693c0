/* SPDX-License-Identifier: MIT */
/* A trace in memory, in the order of its times. */
#ifndef NPUEMU_TRACE_READ_H
#define NPUEMU_TRACE_READ_H

#include <stdbool.h>
#include "trace.h"

#define TRACE_ERR	512

struct trace_item {
	struct npuemu_trace_record r;
	u32 pid;
	u32 tid;
	bool told;		/* of a TASK: there is an @about, as in trace.h */
	u64 about;
	u64 seq;		/* in the file */
	const char *text;	/* of a MARK or RANGE; NULL: it has none, or it is lost */
};

struct trace_text {
	u32 pid;
	u32 id;
	u32 n;
	char s[NPUEMU_TRACE_TEXT_MAX + 1];
};

struct trace {
	size_t n;
	struct trace_item *item;
	size_t ntexts;
	struct trace_text *text;	/* by process and number */
	u64 lost;
};

/* @path: a file, or a folder with one in it.  0, or -1 with a message. */
int trace_read(struct trace *t, const char *path, char err[TRACE_ERR]);
void trace_free(struct trace *t);

/* Words for what a record is; "event 99" for one that is not known. */
void trace_name(const struct trace_item *i, char *buf, size_t size);
bool trace_is_engine(const struct trace_item *i);

#endif
