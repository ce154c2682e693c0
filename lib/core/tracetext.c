// SPDX-License-Identifier: MIT
/*
 * The texts of traces: each is kept once, for as long as the process lives, and records
 * have its number.  A file gets all of them at its end.
 */
#include <stdlib.h>
#include "core.h"
#include "trace.h"

#define TEXTS	65536u
#define SLOTS	(2 * TEXTS)	/* of the table by hash: a number each, 0 for none */

struct text {
	u32 n;
	char s[];
};

static struct text *texts[TEXTS];	/* number 1 is the first */
static u32 ntexts;
static u64 nrecords;
static u32 slots[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static u32 hash(const char *s, size_t n)
{
	u64 h = 1469598103934665603u;

	while (n--)
		h = (h ^ (u8)*s++) * 1099511628211u;
	return (u32)(h ^ h >> 32) % SLOTS;
}

static u64 pieces(const struct text *t)
{
	return t->n / NPUEMU_TRACE_PIECE + !!(t->n % NPUEMU_TRACE_PIECE);
}

/* The lock held. */
static u32 keep(const char *s, size_t n)
{
	struct text *t;

	t = ntexts < TEXTS ? malloc(sizeof(*t) + n) : NULL;
	if (!t)
		return 0;
	t->n = (u32)n;
	memcpy(t->s, s, n);
	texts[ntexts++] = t;
	nrecords += pieces(t);
	return ntexts;
}

u32 npuemu_trace_text(const char *s, size_t n)
{
	u32 at, number = 0;

	if (!n || n > NPUEMU_TRACE_TEXT_MAX)
		return 0;
	at = hash(s, n);
	pthread_mutex_lock(&lock);
	for (; slots[at] && !number; at = (at + 1) % SLOTS) {
		const struct text *t = texts[slots[at] - 1];

		if (t->n == n && !memcmp(t->s, s, n))
			number = slots[at];
	}
	if (!number) {
		number = keep(s, n);
		slots[at] = number;
	}
	pthread_mutex_unlock(&lock);
	return number;
}

struct npuemu_trace_record *npuemu_trace_texts(u64 *n)
{
	struct npuemu_trace_record *list, *r;
	u32 i, at, part;

	*n = 0;
	pthread_mutex_lock(&lock);
	list = nrecords ? calloc(nrecords, sizeof(*list)) : NULL;
	for (i = 0; list && i < ntexts; i++) {
		const struct text *t = texts[i];

		for (at = 0; at < t->n; at += part) {
			part = t->n - at < NPUEMU_TRACE_PIECE ? t->n - at : NPUEMU_TRACE_PIECE;
			r = &list[(*n)++];
			r->event = NPUEMU_TR_TEXT;
			r->queue = i + 1;
			r->index = at;
			r->device = part;
			memcpy(&r->ns, t->s + at, part < 8 ? part : 8);
			if (part > 8)
				memcpy(&r->arg, t->s + at + 8, part - 8);
		}
	}
	pthread_mutex_unlock(&lock);
	return list;
}

void npuemu_trace_texts_fork(void)
{
	pthread_mutex_init(&lock, NULL);
}
