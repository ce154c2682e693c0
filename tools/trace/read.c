// SPDX-License-Identifier: MIT
/*
 * Reads traces.  A file is a sequence of runs, of one or several processes: a record that
 * says whose it is and how many follow, and those.  See Documentation/architecture.md.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "read.h"

/* ---- Names -------------------------------------------------------------------------- */

static const char *const engine_names[] = {
	[NPUEMU_TR_DOORBELL] = "doorbell", [NPUEMU_TR_EXECUTE] = "fetched",
	[NPUEMU_TR_COMPLETE] = "completed", [NPUEMU_TR_PARK] = "parked", [NPUEMU_TR_WAKE] = "woken",
	[NPUEMU_TR_STATE] = "state",
};

static const char *const task_names[] = {
	[NPUEMU_TT_COPY] = "copy", [NPUEMU_TT_COPY_2D] = "copy of rows", [NPUEMU_TT_FILL] = "fill",
	[NPUEMU_TT_REDUCE] = "reduction", [NPUEMU_TT_STORE] = "store",
	[NPUEMU_TT_EVENT_RECORD] = "event record", [NPUEMU_TT_EVENT_WAIT] = "event wait",
	[NPUEMU_TT_EVENT_RESET] = "event reset", [NPUEMU_TT_VALUE_WAIT] = "value wait",
	[NPUEMU_TT_NOTIFY_WAIT] = "notify wait", [NPUEMU_TT_HOST_FUNC] = "host function",
	[NPUEMU_TT_CALL] = "call", [NPUEMU_TT_MODEL] = "model", [NPUEMU_TT_BRANCH] = "branch",
	[NPUEMU_TT_COLLECTIVE] = "collective",
};

static const char *of(const char *const *list, size_t n, u32 i)
{
	return i < n ? list[i] : NULL;
}

#define NAME(list, i)	of(list, sizeof(list) / sizeof((list)[0]), i)

bool trace_is_engine(const struct trace_item *i)
{
	const u32 event = NPUEMU_TRACE_EVENT(&i->r);

	return event && event < NPUEMU_TR_TASK;
}

void trace_name(const struct trace_item *i, char *buf, size_t size)
{
	const u32 event = NPUEMU_TRACE_EVENT(&i->r), kind = NPUEMU_TRACE_OF(&i->r);
	const char *name = NULL;

	switch (event) {
	case NPUEMU_TR_TASK:
		name = NAME(task_names, kind);
		if (name)
			break;
		snprintf(buf, size, "task of kind %u", kind);
		return;
	case NPUEMU_TR_MARK:
	case NPUEMU_TR_RANGE:
		name = i->text ? i->text : event == NPUEMU_TR_MARK ? "mark" : "range";
		break;
	case NPUEMU_TR_STEP:
		snprintf(buf, size, "step %u %s", i->r.queue, kind ? "ends" : "begins");
		return;
	case NPUEMU_TR_CLOCK:
		name = "clock";
		break;
	default:
		name = NAME(engine_names, event);
		break;
	}
	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "event %u", event);
}

/* ---- Texts ---------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	const struct trace_text *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* A piece; those of one text follow each other. */
static const char *add_text(struct trace *t, u32 pid, const struct npuemu_trace_record *r)
{
	struct trace_text *x = t->ntexts ? &t->text[t->ntexts - 1] : NULL;
	char piece[NPUEMU_TRACE_PIECE];

	if (!r->index) {
		x = &t->text[t->ntexts++];
		memset(x, 0, sizeof(*x));
		x->pid = pid;
		x->id = r->queue;
	}
	if (!x || x->pid != pid || x->id != r->queue || x->n != r->index)
		return "a piece of a text is not where it belongs";
	if (!r->device || r->device > sizeof(piece) || x->n + r->device > NPUEMU_TRACE_TEXT_MAX)
		return "a text has more bytes than there can be";
	memcpy(piece, &r->ns, 8);
	memcpy(piece + 8, &r->arg, 8);
	memcpy(x->s + x->n, piece, r->device);
	x->n += r->device;
	return NULL;
}

static void find_texts(struct trace *t)
{
	size_t i;

	if (!t->ntexts)
		return;
	qsort(t->text, t->ntexts, sizeof(*t->text), by_number);
	for (i = 0; i < t->n; i++) {
		const u32 event = NPUEMU_TRACE_EVENT(&t->item[i].r);
		struct trace_text want = { .pid = t->item[i].pid, .id = t->item[i].r.queue };
		const struct trace_text *x;

		if (event != NPUEMU_TR_MARK && event != NPUEMU_TR_RANGE)
			continue;
		x = bsearch(&want, t->text, t->ntexts, sizeof(want), by_number);
		t->item[i].text = x ? x->s : NULL;
	}
}

/* ---- Records ------------------------------------------------------------------------------ */

struct run {
	u32 pid, tid;
	u64 left;
	struct npuemu_trace_record about;	/* of the task that comes next; event 0: none */
};

static const char *begin_run(struct trace *t, struct run *run, const struct npuemu_trace_record *r,
			     u64 left)
{
	if (NPUEMU_TRACE_EVENT(r) != NPUEMU_TR_RUN)
		return "it does not begin with a run of records: not a trace";
	if (r->device > NPUEMU_TRACE_VERSION)
		return "it is of a later version than this tool knows";
	if (r->arg > left)
		return "it is cut off: a run has fewer records than it says";
	t->lost += r->ns;
	*run = (struct run){ .pid = r->queue, .tid = r->index, .left = r->arg };
	return NULL;
}

static const char *add(struct trace *t, struct run *run, const struct npuemu_trace_record *r)
{
	struct trace_item *i;

	switch (NPUEMU_TRACE_EVENT(r)) {
	case NPUEMU_TR_RUN:
		return "a run begins inside another";
	case NPUEMU_TR_TEXT:
		return add_text(t, run->pid, r);
	case NPUEMU_TR_ABOUT:
		run->about = *r;
		return NULL;
	default:
		break;
	}
	i = &t->item[t->n];
	*i = (struct trace_item){ .r = *r, .pid = run->pid, .tid = run->tid, .seq = t->n };
	t->n++;
	if (NPUEMU_TRACE_EVENT(r) != NPUEMU_TR_TASK)
		return NULL;
	i->told = run->about.event && run->about.queue == r->queue && run->about.index == r->index &&
		  run->about.device == r->device;
	i->about = i->told ? run->about.arg : 0;
	memset(&run->about, 0, sizeof(run->about));
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct trace_item *x = a, *y = b;

	if (x->r.ns != y->r.ns)
		return x->r.ns < y->r.ns ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int refuse(char err[TRACE_ERR], const char *path, u64 record, const char *why)
{
	snprintf(err, TRACE_ERR, "%.300s: at byte %llu: %s", path,
		 (unsigned long long)record * sizeof(struct npuemu_trace_record), why);
	return -1;
}

static int parse(struct trace *t, const char *path, const struct npuemu_trace_record *r, u64 n,
		 char err[TRACE_ERR])
{
	struct run run = { .left = 0 };
	const char *why;
	u64 i, texts = 0;

	for (i = 0; i < n; i++)
		texts += NPUEMU_TRACE_EVENT(&r[i]) == NPUEMU_TR_TEXT && !r[i].index;
	t->item = calloc(n + 1, sizeof(*t->item));
	t->text = calloc(texts + 1, sizeof(*t->text));
	if (!t->item || !t->text)
		return refuse(err, path, 0, "out of memory");
	for (i = 0; i < n; i++) {
		if (run.left) {
			run.left--;
			why = add(t, &run, &r[i]);
		} else {
			why = begin_run(t, &run, &r[i], n - i - 1);
		}
		if (why)
			return refuse(err, path, i, why);
	}
	find_texts(t);
	qsort(t->item, t->n, sizeof(*t->item), by_time);
	return 0;
}

static struct npuemu_trace_record *load(const char *path, u64 *n, char err[TRACE_ERR])
{
	FILE *f = fopen(path, "re");
	struct npuemu_trace_record *r;
	struct stat st;
	size_t bytes;

	if (!f || fstat(fileno(f), &st)) {
		snprintf(err, TRACE_ERR, "%.300s: cannot open: %s", path, strerror(errno));
		if (f)
			fclose(f);
		return NULL;
	}
	bytes = (size_t)st.st_size;
	r = S_ISREG(st.st_mode) ? malloc(bytes + 1) : NULL;
	if (!r || fread(r, 1, bytes, f) != bytes) {
		snprintf(err, TRACE_ERR, "%.300s: cannot read: %s", path,
			 S_ISREG(st.st_mode) ? strerror(errno) : "not a file");
		free(r);
		r = NULL;
	} else if (!bytes || bytes % sizeof(*r)) {
		refuse(err, path, bytes / sizeof(*r), bytes ? "it is cut off: half a record" : "it is empty");
		free(r);
		r = NULL;
	}
	fclose(f);
	*n = bytes / sizeof(*r);
	return r;
}

int trace_read(struct trace *t, const char *path, char err[TRACE_ERR])
{
	struct npuemu_trace_record *r;
	char inside[4096];
	struct stat st;
	u64 n;
	int rc;

	memset(t, 0, sizeof(*t));
	if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
		if (snprintf(inside, sizeof(inside), "%s/%s", path, NPUEMU_TRACE_NAME) >= (int)sizeof(inside)) {
			snprintf(err, TRACE_ERR, "the path is too long");
			return -1;
		}
		path = inside;
	}
	r = load(path, &n, err);
	if (!r)
		return -1;
	rc = parse(t, path, r, n, err);
	free(r);
	if (rc)
		trace_free(t);
	return rc;
}

void trace_free(struct trace *t)
{
	free(t->item);
	free(t->text);
	memset(t, 0, sizeof(*t));
}
