// SPDX-License-Identifier: MIT
/*
 * The checker: ranges of memory that acl knows, or knew, with where they were made
 * and freed; and whether what a call or a task uses lies in one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "check.h"

#define REMEMBERED	4096u
#define PAGE		4096ull

/* Blocks do not overlap; registered and reserved ranges may lie around or in them. */
struct list {
	struct npuacl_known **r;	/* by address */
	u32 n, room;
};

static struct list blocks, others;
static struct npuacl_known *freed[REMEMBERED];
static u32 next_freed;

static struct list *list_of(u32 kind)
{
	return kind == NPUACL_REGISTERED || kind == NPUACL_RESERVED ? &others : &blocks;
}

/* How many begin at @va or before. */
static u32 upto(const struct list *l, u64 va)
{
	u32 lo = 0, hi = l->n;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (l->r[mid]->base <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct npuacl_known *npuacl_known_at(u64 va)
{
	u32 i = upto(&blocks, va);

	return i && va - blocks.r[i - 1]->base < blocks.r[i - 1]->room ? blocks.r[i - 1] : NULL;
}

void npuacl_known_around(u64 va, struct npuacl_known **before, struct npuacl_known **after)
{
	u32 i = upto(&blocks, va);

	*before = i ? blocks.r[i - 1] : NULL;
	*after = i < blocks.n ? blocks.r[i] : NULL;
}

struct npuacl_known *npuacl_known_freed(u64 va)
{
	struct npuacl_known *r;
	u32 i;

	for (i = 1; i <= REMEMBERED; i++) {
		r = freed[(next_freed + REMEMBERED - i) % REMEMBERED];
		if (!r)
			break;
		if (r->kind != NPUACL_REGISTERED && r->kind != NPUACL_RESERVED && va - r->base < r->room)
			return r;
	}
	return NULL;
}

void npuacl_known_each(void (*fn)(struct npuacl_known *r))
{
	u32 i;

	for (i = 0; i < blocks.n; i++)
		fn(blocks.r[i]);
	for (i = 0; i < others.n; i++)
		fn(others.r[i]);
}

static void list_clear(struct list *l)
{
	u32 i;

	for (i = 0; i < l->n; i++)
		free(l->r[i]);
	free(l->r);
	memset(l, 0, sizeof(*l));
}

void npuacl_known_clear(void)
{
	u32 i;

	list_clear(&blocks);
	list_clear(&others);
	for (i = 0; i < REMEMBERED; i++) {
		free(freed[i]);
		freed[i] = NULL;
	}
	next_freed = 0;
}

void npuacl_known_forget(void)
{
	memset(&blocks, 0, sizeof(blocks));
	memset(&others, 0, sizeof(others));
	memset(freed, 0, sizeof(freed));
	next_freed = 0;
}

const char *npuacl_known_text(const struct npuacl_known *r, u64 va, char *buf, size_t size)
{
	static const char *const text[] = {
		[NPUACL_DEVICE] = "device buffer", [NPUACL_PINNED] = "pinned host memory",
		[NPUACL_MAPPED] = "mapped device memory", [NPUACL_IMPORTED] = "imported device memory",
		[NPUACL_REGISTERED] = "registered host memory", [NPUACL_RESERVED] = "reserved addresses",
	};
	int n = va == r->base ? 0 : snprintf(buf, size, "%" PRIu64 " bytes into ", va - r->base);

	n += snprintf(buf + n, size - (size_t)n, "the %s of %" PRIu64 " bytes at %#" PRIx64, text[r->kind], r->size,
		      r->base);
	if (r->kind != NPUACL_PINNED && r->kind != NPUACL_REGISTERED && r->kind != NPUACL_RESERVED)
		snprintf(buf + n, size - (size_t)n, ", device %u", r->device);
	return buf;
}

/* ---- Made and gone ------------------------------------------------------------------------ */

static bool insert(struct list *l, struct npuacl_known *r)
{
	u32 at = upto(l, r->base), room = l->room ? 2 * l->room : 64;

	if (l->n == l->room) {
		void *bigger = realloc(l->r, room * sizeof(struct npuacl_known *));

		if (!bigger)
			return false;
		l->r = bigger;
		l->room = room;
	}
	memmove(&l->r[at + 1], &l->r[at], (l->n - at) * sizeof(struct npuacl_known *));
	l->r[at] = r;
	l->n++;
	return true;
}

/* Nothing that the program may use in its own code is closed. */
static bool close_it(const struct npuacl_range *r)
{
	if (r->kind == NPUACL_DEVICE)
		return !npuemu_buf_close(r->buf, true);
	if (r->kind != NPUACL_MAPPED || r->flags & NPUACL_PLACE_HOST || npuemu_buf_close(r->buf, true))
		return false;
	return !mprotect((void *)(uintptr_t)r->base, (r->room + PAGE - 1) & ~(PAGE - 1), PROT_NONE);
}

void npuacl_check_made(struct npuacl_range *r)
{
	struct npuacl_known *c = calloc(1, sizeof(*c));
	bool kept;

	if (!c)
		return;
	*c = (struct npuacl_known){
		.base = r->base, .size = r->size, .room = r->room, .kind = r->kind, .device = r->device,
		.flags = r->flags, .alias = r->alias,
	};
	npuacl_site_take(&c->made);
	c->closed = close_it(r);
	npuacl_fault_init();
	pthread_mutex_lock(&npuacl_check_lock);
	kept = insert(list_of(c->kind), c);
	pthread_mutex_unlock(&npuacl_check_lock);
	if (!kept)
		free(c);
}

void npuacl_check_gone(const struct npuacl_range *r)
{
	struct list *l = list_of(r->kind);
	struct npuacl_known *c = NULL;
	struct npuacl_site site;
	u32 i;

	npuacl_site_take(&site);
	pthread_mutex_lock(&npuacl_check_lock);
	for (i = upto(l, r->base); i && l->r[i - 1]->base == r->base && !c; i--) {
		if (l->r[i - 1]->kind != r->kind)
			continue;
		c = l->r[i - 1];
		memmove(&l->r[i - 1], &l->r[i], (l->n - i) * sizeof(struct npuacl_known *));
		l->n--;
		break;
	}
	if (c) {
		c->gone = site;
		free(freed[next_freed]);
		freed[next_freed] = c;
		next_freed = (next_freed + 1) % REMEMBERED;
	}
	pthread_mutex_unlock(&npuacl_check_lock);
}

volatile u64 *npuacl_check_word(volatile u64 *word)
{
	bool device;

	return npuemu_alias(npuacl.board, (u64)(uintptr_t)word, &device);
}

/* ---- Is a range good? ------------------------------------------------------------------------ */

static bool is_reserved(u64 va)
{
	u32 i = upto(&others, va);

	/* registered ranges may begin in between, but not many */
	for (; i; i--) {
		if (others.r[i - 1]->kind != NPUACL_RESERVED)
			continue;
		return va - others.r[i - 1]->base < others.r[i - 1]->room;
	}
	return false;
}

/* Memory of a device, or that was: what lies there now is not the program's own. */
static bool is_ours(u64 va, const struct npuacl_known *was)
{
	bool device;

	npuemu_alias(npuacl.board, va, &device);
	return device || is_reserved(va) || (was && !npuacl_is_mapped(va));
}

/* How far it is good; mappings may go on in the next one. */
static u64 good_upto(const struct npuacl_known *r, u64 last)
{
	const struct npuacl_known *next;
	u64 end = r->base + r->room;

	while (end <= last) {
		next = npuacl_known_at(end);
		if (!next || r->kind != NPUACL_MAPPED || next->kind != NPUACL_MAPPED)
			break;
		end = next->base + next->room;
	}
	return end;
}

static void say_nearest(u64 va)
{
	struct npuacl_known *before, *after;
	char text[192];

	npuacl_known_around(va, &before, &after);
	if (before && before->kind == NPUACL_PINNED)
		before = NULL;
	if (before && (!after || va - before->base - before->room <= after->base - va)) {
		npuacl_report_line("that is %" PRIu64 " bytes behind the end of %s", va - before->base - before->room,
				   npuacl_known_text(before, before->base, text, sizeof(text)));
		npuacl_report_buffer(before);
	} else if (after) {
		npuacl_report_line("that is %" PRIu64 " bytes before %s", after->base - va,
				   npuacl_known_text(after, after->base, text, sizeof(text)));
		npuacl_report_buffer(after);
	}
}

bool npuacl_bad_range(const char *what, const char *role, u64 va, u64 len, bool refused)
{
	struct npuacl_known *r = npuacl_known_at(va), *was;
	u64 end;
	char text[192];

	if (r) {
		end = good_upto(r, va + len - 1);
		if (va + len <= end)
			return false;
		npuacl_report_begin("%s: out of bounds: the %s, %" PRIu64 " bytes from %#" PRIx64 " on, overruns %s by %" PRIu64 " bytes",
				    what, role, len, va, npuacl_known_text(r, r->base, text, sizeof(text)), va + len - end);
		npuacl_report_buffer(r);
		return true;
	}
	was = npuacl_known_freed(va);
	if (!is_ours(va, was)) {
		struct npuacl_known *before, *after;

		/* host memory that reaches into a buffer */
		npuacl_known_around(va, &before, &after);
		if (!refused || !after || va + len <= after->base)
			return false;
		npuacl_report_begin("%s: out of bounds: the %s, %" PRIu64 " bytes of host memory from %#" PRIx64 " on, reaches %" PRIu64 " bytes into %s",
				    what, role, len, va, va + len - after->base,
				    npuacl_known_text(after, after->base, text, sizeof(text)));
		npuacl_report_buffer(after);
		return true;
	}
	if (was) {
		npuacl_report_begin("%s: use after free: the %s, %" PRIu64 " bytes from %#" PRIx64 " on, is %s, which was freed",
				    what, role, len, va, npuacl_known_text(was, va, text, sizeof(text)));
		npuacl_report_buffer(was);
		return true;
	}
	npuacl_report_begin("%s: out of bounds: the %s, %" PRIu64 " bytes from %#" PRIx64 " on, is in no live buffer", what,
			    role, len, va);
	say_nearest(va);
	return true;
}

void npuacl_check_side(const char *what, const char *role, u64 va, u64 len)
{
	struct npuacl_site site;

	npuacl_site_take(&site);
	pthread_mutex_lock(&npuacl_check_lock);
	if (npuacl_bad_range(what, role, va, len, true)) {
		npuacl_report_site("called at", &site);
		npuacl_report_end();
	}
	pthread_mutex_unlock(&npuacl_check_lock);
}

void npuacl_check_no_buffer(const char *what, u64 va)
{
	struct npuacl_known *was, *r;
	struct npuacl_site site;
	char text[192];

	npuacl_site_take(&site);
	pthread_mutex_lock(&npuacl_check_lock);
	r = npuacl_known_at(va);
	was = r ? NULL : npuacl_known_freed(va);
	if (r)
		npuacl_report_begin("%s: bad free: %#" PRIx64 " is %s", what, va,
				    npuacl_known_text(r, va, text, sizeof(text)));
	else if (was)
		npuacl_report_begin("%s: double free: %#" PRIx64 " is %s, which was freed already", what, va,
				    npuacl_known_text(was, va, text, sizeof(text)));
	else
		npuacl_report_begin("%s: bad free: %#" PRIx64 " is no memory that acl knows", what, va);
	if (r || was)
		npuacl_report_buffer(r ? r : was);
	npuacl_report_site("called at", &site);
	npuacl_report_end();
	pthread_mutex_unlock(&npuacl_check_lock);
}

/* The same pages twice: at @p, where they can be closed, and elsewhere for engines. */
void *npuacl_check_pages(void *p, u64 bytes)
{
	int fd = memfd_create("npuemu-pinned", MFD_CLOEXEC);
	void *alias = MAP_FAILED;

	if (fd < 0)
		goto out;
	if (ftruncate(fd, (off_t)bytes))
		goto out;
	alias = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (alias == MAP_FAILED)
		goto out;
	if (mmap(p, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) == MAP_FAILED) {
		munmap(alias, bytes);
		alias = MAP_FAILED;
	}
out:
	if (fd >= 0)
		close(fd);
	return alias == MAP_FAILED ? NULL : alias;
}
