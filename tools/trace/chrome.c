// SPDX-License-Identifier: MIT
/*
 * The JSON of chrome://tracing and Perfetto.  A device of a process is a "process" there,
 * its streams and queues are the "threads"; marks and ranges are in one for the host.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "show.h"

#define QUEUES	1000000u	/* numbers of queues, beside those of streams */

/* Where in the picture. */
struct track {
	u64 process;
	u32 thread;
	const struct trace_item *of;
};

static struct track track_of(const struct trace_item *i)
{
	const u32 event = NPUEMU_TRACE_EVENT(&i->r);
	const bool host = i->r.device == NPUEMU_TRACE_HOST;
	struct track t = { .process = (u64)i->pid * 128 + (host ? 0 : 1 + i->r.device % 127), .of = i };

	if (host)
		t.thread = i->tid;
	else if (event == NPUEMU_TR_TASK)
		t.thread = i->r.queue;
	else
		t.thread = trace_is_engine(i) ? QUEUES + i->r.queue : i->r.index;
	return t;
}

/* Bytes that follow the first of a character: -1: it is none of UTF-8. */
static int follow(const u8 *s)
{
	const int n = *s < 0x80 ? 0 : *s >= 0xc2 && *s < 0xe0 ? 1 : *s >= 0xe0 && *s < 0xf0 ? 2 :
		      *s >= 0xf0 && *s < 0xf5 ? 3 : -1;
	int i;

	for (i = 1; i <= n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return -1;
	/* written longer than need be, half of a pair, beyond the last */
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) || (*s == 0xf0 && s[1] < 0x90) ||
	    (*s == 0xf4 && s[1] > 0x8f))
		return -1;
	return n;
}

static void quoted(const char *s)
{
	int n;

	putchar('"');
	for (; *s; s++) {
		const u8 c = (u8)*s;

		n = follow((const u8 *)s);
		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (n < 0)		/* texts are bytes, and JSON is UTF-8 */
			printf("\\ufffd");
		else if (c < 0x20 || c == 0x7f)
			printf("\\u%04x", c);
		else
			fwrite(s, 1, (size_t)n + 1, stdout);
		s += n > 0 ? n : 0;
	}
	putchar('"');
}

static int by_track(const void *a, const void *b)
{
	const struct track *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static void name_thread(const struct track *t)
{
	const struct trace_item *i = t->of;

	if (i->r.device == NPUEMU_TRACE_HOST)
		printf("\"thread %u\"", i->tid);
	else if (trace_is_engine(i))
		printf("\"queue %u\"", i->r.queue);
	else
		printf("\"stream %u\"", t->thread);
}

/* Each process and each thread once. */
static int names(const struct trace *t)
{
	struct track *all = malloc((t->n + 1) * sizeof(*all));
	size_t i;

	if (!all)
		return -1;
	for (i = 0; i < t->n; i++)
		all[i] = track_of(&t->item[i]);
	qsort(all, t->n, sizeof(*all), by_track);
	for (i = 0; i < t->n; i++) {
		if (i && !by_track(&all[i - 1], &all[i]))
			continue;
		if (!i || all[i - 1].process != all[i].process) {
			printf("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%" PRIu64 ",\"args\":{\"name\":",
			       all[i].process);
			if (all[i].of->r.device == NPUEMU_TRACE_HOST)
				printf("\"process %u\"}},\n", all[i].of->pid);
			else
				printf("\"process %u, device %u\"}},\n", all[i].of->pid, all[i].of->r.device);
		}
		printf("{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%" PRIu64 ",\"tid\":%u,\"args\":{\"name\":",
		       all[i].process, all[i].thread);
		name_thread(&all[i]);
		printf("}},\n");
	}
	free(all);
	return 0;
}

static void one(const struct trace_item *i, u64 from)
{
	const u32 event = NPUEMU_TRACE_EVENT(&i->r);
	const struct track t = track_of(i);
	char name[NPUEMU_TRACE_TEXT_MAX + 32];

	trace_name(i, name, sizeof(name));
	printf("{\"name\":");
	quoted(name);
	printf(",\"pid\":%" PRIu64 ",\"tid\":%u,\"ts\":%.3f", t.process, t.thread, (double)(i->r.ns - from) / 1e3);
	if (event == NPUEMU_TR_TASK || event == NPUEMU_TR_RANGE)
		printf(",\"ph\":\"X\",\"dur\":%.3f", (double)i->r.arg / 1e3);
	else
		printf(",\"ph\":\"i\",\"s\":\"t\"");
	if (event == NPUEMU_TR_TASK)
		printf(",\"cat\":\"task\",\"args\":{\"task\":%u,\"about\":%" PRIu64 ",\"failed\":%s}", i->r.index,
		       i->about, i->r.event & NPUEMU_TRACE_FAILED ? "true" : "false");
	else if (trace_is_engine(i))
		printf(",\"cat\":\"wqe\",\"args\":{\"block\":%u,\"arg\":%" PRIu64 "}", i->r.index, i->r.arg);
	else
		printf(",\"cat\":\"user\"");
	putchar('}');
}

int trace_show_json(const struct trace *t)
{
	size_t i;

	printf("{\"displayTimeUnit\":\"ns\",\"lost\":%" PRIu64 ",\"traceEvents\":[\n", t->lost);
	if (names(t))
		return -1;
	for (i = 0; i < t->n; i++) {
		one(&t->item[i], t->item[0].r.ns);
		printf(i + 1 < t->n ? ",\n" : "\n");
	}
	printf("]}\n");
	return 0;
}
