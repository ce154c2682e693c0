// SPDX-License-Identifier: MIT
/*
 * The checker: which tasks are queued, and where they were submitted.
 *
 * A stream's own queue cannot be looked at by others than its runner, so each
 * stream has a log beside it, of tasks with addresses.  An entry can go when its
 * task is done, and, if pages of pinned memory were closed for it, opened again.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "check.h"

#define PAGE		4096ull
#define SETTLE_MS	200	/* for a batch that the program may know to be done, before its end was noted */

struct entry {
	u64 n;			/* the stream's count of tasks */
	struct npuacl_task t;
	bool closed;		/* the pages of its target are */
	bool told;		/* it was in a report */
	struct npuacl_site site;
};

struct log {
	struct npuacl_stream *s;
	struct log *next;
	struct entry *e;
	u32 n, room;
};

static struct log *logs;
static u32 nclosed;
/* Copies that are queued behind a function are closed, but none of its business. */
static __thread bool in_function;

/* ---- What a task uses -------------------------------------------------------------------- */

static u64 rows(u64 width, u32 height, u64 pitch)
{
	return height ? (height - 1) * pitch + width : width;
}

/* Bytes at @dst and @src; 0: that is no address. */
static void uses(const struct npuacl_task *t, u64 *dst, u64 *dst_len, u64 *src, u64 *src_len)
{
	const struct npuemu_sdma *d = &t->sdma;
	u32 op = d->dw1 >> NPUEMU_SQE_OPCODE_SHIFT;

	*src = 0;
	*src_len = 0;
	if (t->kind != NPUACL_SDMA) {
		*dst = (u64)(uintptr_t)t->word.word;
		*dst_len = sizeof(u64);
		return;
	}
	*dst = d->dst;
	*dst_len = op == NPUEMU_SDMA_COPY_2D ? rows(d->len, d->height, d->dst_pitch) : d->len;
	if (op != NPUEMU_SDMA_COPY && op != NPUEMU_SDMA_COPY_2D && op != NPUEMU_SDMA_REDUCE)
		return;
	*src = d->src;
	*src_len = op == NPUEMU_SDMA_COPY_2D ? rows(d->len, d->height, d->src_pitch) : d->len;
}

static bool hits(u64 a, u64 alen, u64 b, u64 blen)
{
	return alen && blen && a < b + blen && b < a + alen;
}

static bool entry_uses(const struct entry *e, u64 va, u64 len)
{
	u64 dst, dst_len, src, src_len;

	uses(&e->t, &dst, &dst_len, &src, &src_len);
	return hits(va, len, dst, dst_len) || hits(va, len, src, src_len);
}

static bool is_done(const struct log *l, const struct entry *e)
{
	return e->n <= smp_load_acquire(&l->s->done);
}

/* ---- Pages of pinned memory ---------------------------------------------------------------- */

static void target_pages(const struct entry *e, u64 *from, u64 *len)
{
	u64 dst, dst_len, src, src_len;

	uses(&e->t, &dst, &dst_len, &src, &src_len);
	*from = dst & ~(PAGE - 1);
	*len = ((dst + dst_len + PAGE - 1) & ~(PAGE - 1)) - *from;
}

static void close_pages(struct entry *e)
{
	u64 from, len;

	target_pages(e, &from, &len);
	e->closed = !mprotect((void *)(uintptr_t)from, len, PROT_NONE);
	nclosed += e->closed;
}

/* Other copies to the same pages keep them closed. */
static void open_pages(struct entry *e)
{
	u64 from, len, from2, len2;
	struct log *l;
	u32 i;

	if (!e->closed)
		return;
	e->closed = false;
	nclosed--;
	target_pages(e, &from, &len);
	mprotect((void *)(uintptr_t)from, len, PROT_READ | PROT_WRITE);
	for (l = logs; l && nclosed; l = l->next)
		for (i = 0; i < l->n; i++) {
			if (!l->e[i].closed)
				continue;
			target_pages(&l->e[i], &from2, &len2);
			if (hits(from, len, from2, len2))
				mprotect((void *)(uintptr_t)from2, len2, PROT_NONE);
		}
}

/* What is written to pinned memory of ours, which engines reach by another address. */
static bool is_for_host(const struct npuacl_task *t)
{
	const struct npuacl_known *r;

	if (t->kind != NPUACL_SDMA || t->sdma.dw1 >> NPUEMU_SQE_OPCODE_SHIFT == NPUEMU_SDMA_NOTIFY)
		return false;
	r = npuacl_known_at(t->sdma.dst);
	return r && r->kind == NPUACL_PINNED && r->alias;
}

/*
 * A store by the stream behind it, which is done as well: the program may have seen
 * that, and know.
 */
static bool is_signalled(const struct log *l, const struct entry *e)
{
	const struct entry *k;

	for (k = e + 1; k < l->e + l->n; k++)
		if (k->t.kind == NPUACL_SDMA && k->t.sdma.dw1 >> NPUEMU_SQE_OPCODE_SHIFT == NPUEMU_SDMA_NOTIFY)
			return true;
	return false;
}

bool npuacl_pinned_fault(u64 va, bool write, const struct npuacl_site *site)
{
	struct npuacl_known *r = npuacl_known_at(va);
	u64 dst, dst_len, src, src_len, from, len;
	bool ours = false;
	struct log *l;
	u32 i;

	if (!r)
		return false;
	for (l = logs; l; l = l->next)
		for (i = 0; i < l->n; i++) {
			struct entry *e = &l->e[i];
			bool done;

			if (!e->closed)
				continue;
			target_pages(e, &from, &len);
			if (!hits(va, 1, from, len))
				continue;
			ours = true;
			uses(&e->t, &dst, &dst_len, &src, &src_len);
			done = is_done(l, e);
			/* beside it in a page is fine */
			if (hits(va, 1, dst, dst_len) && !in_function && !(done && is_signalled(l, e))) {
				npuacl_report_begin("host %s of %#" PRIx64 ", where a copy that was not synchronised %s",
						    write ? "write" : "read", va,
						    done ? "has written by chance in time" : "writes");
				npuacl_report_site("access at", site);
				npuacl_report_buffer(r);
				npuacl_report_task(l->s, e->n, &e->t, &e->site);
				npuacl_report_line("aclrtSynchronizeStream, aclrtSynchronizeEvent or a query that says complete comes first");
				npuacl_report_end();
			}
			open_pages(e);
		}
	/* another thread opened them just now */
	return ours || (r->kind == NPUACL_PINNED && r->alias);
}

void npuacl_check_synced(void)
{
	struct log *l;
	u32 i;

	pthread_mutex_lock(&npuacl_check_lock);
	for (l = logs; l && nclosed; l = l->next)
		for (i = 0; i < l->n; i++)
			if (l->e[i].closed && is_done(l, &l->e[i]))
				open_pages(&l->e[i]);
	pthread_mutex_unlock(&npuacl_check_lock);
}

void npuacl_check_function(bool begins)
{
	if (begins)
		npuacl_check_synced();
	in_function = begins;
}

/* ---- The logs --------------------------------------------------------------------------------- */

static struct log *log_of(struct npuacl_stream *s)
{
	struct log *l = s->check;

	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->s = s;
	l->next = logs;
	logs = l;
	s->check = l;
	return l;
}

/* Room for one more: by what is done, or else by twice the memory. */
static bool make_room(struct log *l)
{
	u32 i, k = 0, room = l->room ? 2 * l->room : 64;
	struct entry *bigger;

	if (l->n < l->room)
		return true;
	for (i = 0; i < l->n; i++)
		if (l->e[i].closed || !is_done(l, &l->e[i]))
			l->e[k++] = l->e[i];
	l->n = k;
	if (l->n <= l->room / 2 && l->room)
		return true;
	bigger = realloc(l->e, room * sizeof(*l->e));
	if (!bigger)
		return false;
	l->e = bigger;
	l->room = room;
	return true;
}

void npuacl_check_submitted(struct npuacl_stream *s, const struct npuacl_task *t, u64 n)
{
	struct npuacl_site site;
	struct entry *e;
	struct log *l;

	if (t->kind != NPUACL_SDMA && t->kind != NPUACL_VALUE_WAIT)
		return;
	npuacl_site_take(&site);
	pthread_mutex_lock(&npuacl_check_lock);
	l = log_of(s);
	if (l && make_room(l)) {
		e = &l->e[l->n++];
		*e = (struct entry){ .n = n, .t = *t, .site = site };
		e->t.id = (u32)n;
		if (is_for_host(t))
			close_pages(e);
	}
	pthread_mutex_unlock(&npuacl_check_lock);
}

static void log_free(struct log *l)
{
	u32 i;

	for (i = 0; i < l->n; i++)
		open_pages(&l->e[i]);
	free(l->e);
	l->n = 0;
	l->e = NULL;
}

void npuacl_check_stream_gone(struct npuacl_stream *s)
{
	struct log **at;

	pthread_mutex_lock(&npuacl_check_lock);
	for (at = &logs; *at; at = &(*at)->next)
		if ((*at)->s == s) {
			struct log *l = *at;

			log_free(l);
			*at = l->next;
			free(l);
			break;
		}
	s->check = NULL;
	pthread_mutex_unlock(&npuacl_check_lock);
}

void npuacl_tasks_clear(void)
{
	struct log *l;

	while ((l = logs)) {
		log_free(l);
		logs = l->next;
		free(l);
	}
}

void npuacl_tasks_forget(void)
{
	logs = NULL;
	nclosed = 0;
}

void npuacl_report_last_use(u64 va, u64 len)
{
	const struct entry *best = NULL;
	const struct log *of = NULL, *l;
	u32 i;

	for (l = logs; l; l = l->next)
		for (i = 0; i < l->n; i++)
			if (entry_uses(&l->e[i], va, len) && (!best || !is_done(l, &l->e[i]))) {
				best = &l->e[i];
				of = l;
			}
	if (best)
		npuacl_report_task(of->s, best->n, &best->t, &best->site);
	else
		npuacl_report_line("task: none that uses it was queued lately");
}

/* ---- Buffers that go too early ------------------------------------------------------------------ */

/* Some may only seem to be queued: their batch has stored what the program waited for. */
static bool may_settle(u64 va, u64 len)
{
	const struct log *l;
	u32 i;

	for (l = logs; l; l = l->next)
		for (i = 0; i < l->n; i++)
			if (!is_done(l, &l->e[i]) && entry_uses(&l->e[i], va, len) &&
			    is_signalled(l, &l->e[i]) && READ_ONCE(l->s->run) == NPUACL_RUNNING)
				return true;
	return false;
}

static void report_queued(const char *what, const struct npuacl_range *r, const struct npuacl_site *site)
{
	struct npuacl_known *c = npuacl_known_at(r->base);
	struct log *l;
	char text[192];
	u32 i;

	for (l = logs; l; l = l->next)
		for (i = 0; i < l->n; i++) {
			struct entry *e = &l->e[i];

			if (e->told || is_done(l, e) || !entry_uses(e, r->base, r->room))
				continue;
			e->told = true;
			npuacl_report_begin("%s: freed while in use: a task that is queued uses %s", what,
					    c ? npuacl_known_text(c, r->base, text, sizeof(text)) : "the buffer");
			npuacl_report_site("called at", site);
			if (c)
				npuacl_report_buffer(c);
			npuacl_report_task(l->s, e->n, &e->t, &e->site);
			npuacl_report_end();
		}
}

/* Its memory goes: there are no pages to open any more. */
static void forget_pages(const struct npuacl_range *r)
{
	u64 from, len;
	struct log *l;
	u32 i;

	for (l = logs; l && nclosed; l = l->next)
		for (i = 0; i < l->n; i++) {
			if (!l->e[i].closed)
				continue;
			target_pages(&l->e[i], &from, &len);
			if (hits(from, len, r->base, r->room)) {
				l->e[i].closed = false;
				nclosed--;
			}
		}
}

void npuacl_check_freeing(const char *what, const struct npuacl_range *r)
{
	static const struct timespec ms = { .tv_nsec = 1000000 };
	struct npuacl_site site;
	u32 tries = 0;

	npuacl_site_take(&site);
	pthread_mutex_lock(&npuacl_check_lock);
	while (may_settle(r->base, r->room) && tries++ < SETTLE_MS) {
		pthread_mutex_unlock(&npuacl_check_lock);
		nanosleep(&ms, NULL);
		pthread_mutex_lock(&npuacl_check_lock);
	}
	report_queued(what, r, &site);
	if (r->kind == NPUACL_PINNED)
		forget_pages(r);
	pthread_mutex_unlock(&npuacl_check_lock);
}

/* ---- Tasks that failed ---------------------------------------------------------------------------- */

static struct entry *entry_of(struct npuacl_stream *s, u32 id)
{
	struct log *l = s->check;
	u32 i;

	/* a recorded task has a number of its own */
	for (i = 0; l && !s->replaying && i < l->n; i++)
		if ((u32)l->e[i].n == id)
			return &l->e[i];
	return NULL;
}

void npuacl_check_failed(struct npuacl_stream *s, const struct npuacl_task *t)
{
	u64 dst, dst_len, src, src_len;
	struct entry *e;

	pthread_mutex_lock(&npuacl_check_lock);
	e = entry_of(s, t->id);
	uses(t, &dst, &dst_len, &src, &src_len);
	if ((!e || !e->told) && (npuacl_bad_range("a task", "target", dst, dst_len, false) ||
				 (src_len && npuacl_bad_range("a task", "source", src, src_len, false)))) {
		npuacl_report_task(s, t->id, t, e ? &e->site : NULL);
		npuacl_report_end();
		if (e)
			e->told = true;
	}
	pthread_mutex_unlock(&npuacl_check_lock);
}
