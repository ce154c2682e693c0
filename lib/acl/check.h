/* SPDX-License-Identifier: MIT */
/*
 * The checker (NPUEMU_CHECK): what a program does with memory and handles that no
 * NPU would let it do, or that is right by luck.
 *
 * Each hook is one predictable branch while it is off: NPUACL_CHECK(call).
 *
 *   check.c         on and off, reports and how many, handles that are never destroyed
 *   check_site.c    where a call came from
 *   check_memory.c  ranges: what is where, where it was made and freed
 *   check_task.c    tasks that are queued, and what they use
 *   check_fault.c   accesses by the program's own code
 */
#ifndef NPUACL_CHECK_H
#define NPUACL_CHECK_H

#include "memory.h"

extern bool npuacl_check_on;

#define NPUACL_CHECK(call)					\
	do {							\
		if (unlikely(npuacl_check_on))			\
			call;					\
	} while (0)

/* ---- What the rest of lib/acl tells ------------------------------------------------------- */

enum npuacl_object {
	NPUACL_OBJ_CONTEXT,
	NPUACL_OBJ_STREAM,
	NPUACL_OBJ_EVENT,
	NPUACL_OBJ_NOTIFY,
	NPUACL_OBJ_POOL,
	NPUACL_OBJECTS,
};

/* The board is about to be opened; is closed; npuacl_fault_init() in between. */
void npuacl_check_begin(void);
void npuacl_check_closed(void);
/* aclFinalize(), before it gives back what is left. */
void npuacl_check_leaks(void);
void npuacl_check_fork(void);
/* A handle that the program has to destroy; @device, @id: for the report. */
void npuacl_check_object(enum npuacl_object kind, const void *handle, u32 device, u32 id);
void npuacl_check_object_gone(enum npuacl_object kind, const void *handle);
/* A range came into the map, or has gone; the program is about to free it. */
void npuacl_check_made(struct npuacl_range *r);
void npuacl_check_gone(const struct npuacl_range *r);
void npuacl_check_freeing(const char *what, const struct npuacl_range *r);
/* It frees what it cannot. */
void npuacl_check_no_buffer(const char *what, u64 va);
/* One side of a call that was refused, or is memory that acl does not know. */
void npuacl_check_side(const char *what, const char *role, u64 va, u64 len);
/* s->lock held; the task is number @n, and not to be seen yet. */
void npuacl_check_submitted(struct npuacl_stream *s, const struct npuacl_task *t, u64 n);
void npuacl_check_failed(struct npuacl_stream *s, const struct npuacl_task *t);
void npuacl_check_stream_gone(struct npuacl_stream *s);
/* The program may know now that what is done is done. */
void npuacl_check_synced(void);
/* A function of the program's begins in a stream's order, in this thread, or has ended. */
void npuacl_check_function(bool begins);
/* Pages for pinned memory at @p, and where engines see them; NULL: only there. */
void *npuacl_check_pages(void *p, u64 bytes);
/* A word of the program's, for this library to read and write. */
volatile u64 *npuacl_check_word(volatile u64 *word);

/* The program has asked, and what it asked about is over or not. */
static inline void npuacl_polled(bool over)
{
	if (over)
		NPUACL_CHECK(npuacl_check_synced());
	else
		npuacl_nudge();
}

static inline volatile u64 *npuacl_word(volatile u64 *word)
{
	return likely(!npuacl_check_on) ? word : npuacl_check_word(word);
}

/* ---- Between its parts ---------------------------------------------------------------------- */

#define NPUACL_SITE_DEPTH	16u

struct npuacl_site {
	u32 n;
	void *pc[NPUACL_SITE_DEPTH];
};

/* An allocation, live or freed. */
struct npuacl_known {
	u64 base, size, room;
	u32 kind, device, flags;
	bool closed;			/* the program's own code cannot get at it */
	void *alias;			/* PINNED: for engines */
	struct npuacl_site made, gone;
};

/* All that the parts know; taken after every other lock of lib/acl. */
extern pthread_mutex_t npuacl_check_lock;
extern bool npuacl_check_resume;	/* NPUEMU_CHECK=warn: go on after an access */

/* check_site.c */
void npuacl_site_take(struct npuacl_site *site);
void npuacl_site_init(void);
/* "function+0x12 (file)" of an address; gives @buf back. */
const char *npuacl_site_name(const void *pc, char *buf, size_t size);
/* How many innermost frames are this library's own. */
u32 npuacl_site_skip(const struct npuacl_site *site);

/* check.c: one report at a time; the check lock may be held. */
void npuacl_report_begin(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void npuacl_report_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void npuacl_report_site(const char *title, const struct npuacl_site *site);
void npuacl_report_buffer(const struct npuacl_known *r);
void npuacl_report_task(const struct npuacl_stream *s, u64 n, const struct npuacl_task *t,
			const struct npuacl_site *site);
void npuacl_report_end(void);

/* check_memory.c; the check lock held */
const char *npuacl_known_text(const struct npuacl_known *r, u64 va, char *buf, size_t size);
/* The live one of device, pinned, mapped or imported memory that holds @va. */
struct npuacl_known *npuacl_known_at(u64 va);
/* The one that was freed last of those that held @va; NULL. */
struct npuacl_known *npuacl_known_freed(u64 va);
/* The live ones before and after @va; NULL. */
void npuacl_known_around(u64 va, struct npuacl_known **before, struct npuacl_known **after);
void npuacl_known_each(void (*fn)(struct npuacl_known *r));
void npuacl_known_clear(void);
void npuacl_known_forget(void);
/* Is [va, +len) wholly in live memory, or none of acl's?  If not, report it: true. */
bool npuacl_bad_range(const char *what, const char *role, u64 va, u64 len, bool refused);

/* check_task.c; the check lock held */
/* The last task that uses [va, +len), reported as such. */
void npuacl_report_last_use(u64 va, u64 len);
void npuacl_tasks_clear(void);
void npuacl_tasks_forget(void);
/* Access to a page with pinned memory: false, it is none of ours. */
bool npuacl_pinned_fault(u64 va, bool write, const struct npuacl_site *site);

/* check_fault.c */
void npuacl_fault_init(void);

#endif
