// SPDX-License-Identifier: MIT
/*
 * The checker: on and off, its reports, and handles that are never destroyed.
 *
 * NPUEMU_CHECK=1 (or another word that is not 0) turns it on, abort ends the program
 * after its first report, warn lets it go on after an access of its own code, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"

#define BUCKETS		4096u

bool npuacl_check_on;
bool npuacl_check_resume;
pthread_mutex_t npuacl_check_lock = PTHREAD_MUTEX_INITIALIZER;

static bool aborts;
static u32 findings, told;	/* atomic; under the lock of reports */

struct object {
	struct object *next;
	const void *handle;
	enum npuacl_object kind;
	u32 device, id;
	struct npuacl_site made;
};

static struct object *bucket[BUCKETS];

/* ---- Reports ---------------------------------------------------------------------------- */

/* Lines of two do not mix, and a signal handler's stack may be small. */
static struct {
	pthread_mutex_t lock;
	char text[512];
} out = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void __attribute__((format(printf, 2, 0))) line(const char *indent, const char *fmt, va_list ap)
{
	vsnprintf(out.text, sizeof(out.text), fmt, ap);
	npuemu_log_write(NPUEMU_LOG_ERROR, "check %u: %s%s", READ_ONCE(findings), indent, out.text);
}

void npuacl_report_begin(const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&out.lock);
	npuemu_fetch_add(&findings, 1);
	va_start(ap, fmt);
	line("", fmt, ap);
	va_end(ap);
}

void npuacl_report_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line("  ", fmt, ap);
	va_end(ap);
}

void npuacl_report_site(const char *title, const struct npuacl_site *site)
{
	u32 i = npuacl_site_skip(site);
	char name[256];

	npuacl_report_line("%s:", title);
	for (; i < site->n; i++) {
		npuacl_report_line("    %s", npuacl_site_name(site->pc[i], name, sizeof(name)));
		if (!strncmp(name, "main+", 5))
			break;
	}
}

void npuacl_report_buffer(const struct npuacl_known *r)
{
	char text[192];

	npuacl_report_line("buffer: %s", npuacl_known_text(r, r->base, text, sizeof(text)));
	npuacl_report_site("allocated at", &r->made);
	if (r->gone.n)
		npuacl_report_site("freed at", &r->gone);
}

void npuacl_report_task(const struct npuacl_stream *s, u64 n, const struct npuacl_task *t,
			const struct npuacl_site *site)
{
	char text[192];

	npuacl_task_text(t, text, sizeof(text));
	npuacl_report_line("task: stream %u of device %u, task %" PRIu64 ": %s", s->id, s->dev->id, n, text);
	if (site)
		npuacl_report_site("submitted at", site);
}

void npuacl_report_end(void)
{
	pthread_mutex_unlock(&out.lock);
	if (aborts)
		abort();
}

/* At aclFinalize(), and at the end of a process that has more to tell then. */
static void summary(void)
{
	u32 n = READ_ONCE(findings);

	if (n == told)
		return;
	told = n;
	npuemu_log_write(NPUEMU_LOG_ERROR, "check: %u finding%s; Documentation/check.md says what they mean", n,
			 n == 1 ? "" : "s");
}

/* ---- On and off --------------------------------------------------------------------------- */

static void read_mode(void)
{
	const char *mode = npuemu_getenv("NPUEMU_CHECK");

	if (!mode || !strcmp(mode, "0"))
		return;
	npuemu_log_init();
	aborts = !strcmp(mode, "abort");
	npuacl_check_resume = !strcmp(mode, "warn");
	if (!aborts && !npuacl_check_resume && strcmp(mode, "1"))
		npuemu_log(NPUEMU_LOG_WARN, "NPUEMU_CHECK=%s is not 0, 1, abort or warn; using 1", mode);
	npuacl_site_init();
	atexit(summary);
	npuemu_guarded = true;
	WRITE_ONCE(npuacl_check_on, true);
}

/* npuacl.lock held */
void npuacl_check_begin(void)
{
	static bool done;

	if (!done)
		read_mode();
	done = true;
}

static void objects_clear(void)
{
	struct object *o, *next;
	u32 i;

	for (i = 0; i < BUCKETS; i++) {
		for (o = bucket[i]; o; o = next) {
			next = o->next;
			free(o);
		}
		bucket[i] = NULL;
	}
}

static void clear(void)
{
	npuacl_tasks_clear();
	npuacl_known_clear();
	objects_clear();
}

static void forget(void)
{
	npuacl_tasks_forget();
	npuacl_known_forget();
	memset(bucket, 0, sizeof(bucket));
}

void npuacl_check_closed(void)
{
	pthread_mutex_lock(&npuacl_check_lock);
	clear();
	pthread_mutex_unlock(&npuacl_check_lock);
}

/* The parent's are the parent's.  A thread of its own may have been in the middle of a change. */
void npuacl_check_fork(void)
{
	if (!pthread_mutex_trylock(&npuacl_check_lock))
		clear();
	else
		forget();
	pthread_mutex_init(&npuacl_check_lock, NULL);
	pthread_mutex_init(&out.lock, NULL);
	findings = 0;
	told = 0;
}

/* ---- Handles -------------------------------------------------------------------------------- */

static struct object **bucket_of(const void *handle)
{
	return &bucket[(uintptr_t)handle / 64 % BUCKETS];
}

void npuacl_check_object(enum npuacl_object kind, const void *handle, u32 device, u32 id)
{
	struct object *o = calloc(1, sizeof(*o)), **at = bucket_of(handle);

	if (!o)
		return;
	*o = (struct object){ .handle = handle, .kind = kind, .device = device, .id = id };
	npuacl_site_take(&o->made);
	pthread_mutex_lock(&npuacl_check_lock);
	o->next = *at;
	*at = o;
	pthread_mutex_unlock(&npuacl_check_lock);
}

void npuacl_check_object_gone(enum npuacl_object kind, const void *handle)
{
	struct object **at, *o;

	pthread_mutex_lock(&npuacl_check_lock);
	for (at = bucket_of(handle); (o = *at); at = &o->next)
		if (o->handle == handle && o->kind == kind) {
			*at = o->next;
			free(o);
			break;
		}
	pthread_mutex_unlock(&npuacl_check_lock);
}

/* ---- The end --------------------------------------------------------------------------------- */

static const char *const ends_with[NPUACL_OBJECTS] = {
	[NPUACL_OBJ_CONTEXT] = "context", [NPUACL_OBJ_STREAM] = "stream", [NPUACL_OBJ_EVENT] = "event",
	[NPUACL_OBJ_NOTIFY] = "notify", [NPUACL_OBJ_POOL] = "memory pool",
};

static const char *const destroyed_by[NPUACL_OBJECTS] = {
	[NPUACL_OBJ_CONTEXT] = "aclrtDestroyContext", [NPUACL_OBJ_STREAM] = "aclrtDestroyStream",
	[NPUACL_OBJ_EVENT] = "aclrtDestroyEvent", [NPUACL_OBJ_NOTIFY] = "aclrtDestroyNotify or aclrtCntNotifyDestroy",
	[NPUACL_OBJ_POOL] = "aclrtMemPoolDestroy",
};

static void leaked_object(const struct object *o)
{
	npuacl_report_begin("aclFinalize: %s %u of device %u was never destroyed (%s)", ends_with[o->kind], o->id,
			    o->device, destroyed_by[o->kind]);
	npuacl_report_site("created at", &o->made);
	npuacl_report_end();
}

static void leaked_range(struct npuacl_known *r)
{
	static const char *const freed_by[] = {
		[NPUACL_DEVICE] = "aclrtFree", [NPUACL_PINNED] = "aclrtFreeHost", [NPUACL_MAPPED] = "aclrtUnmapMem",
		[NPUACL_IMPORTED] = "aclrtIpcMemClose", [NPUACL_REGISTERED] = "aclrtHostUnregister",
		[NPUACL_RESERVED] = "aclrtReleaseMemAddress",
	};
	char text[192];

	if (r->kind == NPUACL_DEVICE && npuacl_pool_keeps((void *)(uintptr_t)r->base))
		return;
	npuacl_report_begin("aclFinalize: %s was never freed (%s)", npuacl_known_text(r, r->base, text, sizeof(text)),
			    freed_by[r->kind]);
	npuacl_report_site("allocated at", &r->made);
	npuacl_report_end();
}

void npuacl_check_leaks(void)
{
	const struct object *o;
	u32 i;

	pthread_mutex_lock(&npuacl_check_lock);
	for (i = 0; i < BUCKETS; i++)
		for (o = bucket[i]; o; o = o->next)
			leaked_object(o);
	npuacl_known_each(leaked_range);
	pthread_mutex_unlock(&npuacl_check_lock);
	summary();
}
