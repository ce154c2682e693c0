// SPDX-License-Identifier: MIT
/* A line for each record. */
#include <inttypes.h>
#include <stdio.h>

#include "../../lib/hccl/names.h"
#include "show.h"

static void where(const struct trace_item *i)
{
	const u32 event = NPUEMU_TRACE_EVENT(&i->r);

	if (i->r.device == NPUEMU_TRACE_HOST)
		printf(" host");
	else
		printf(" device %u", i->r.device);
	switch (event) {
	case NPUEMU_TR_TASK:
		printf(" stream %u task %u", i->r.queue, i->r.index);
		break;
	case NPUEMU_TR_MARK:
	case NPUEMU_TR_STEP:
		if (i->r.index != NPUEMU_TRACE_HOST)
			printf(" stream %u", i->r.index);
		break;
	default:
		if (trace_is_engine(i))
			printf(" queue %u block %u", i->r.queue, i->r.index);
		break;
	}
}

#define NAME(list, n)	((n) < sizeof(list) / sizeof((list)[0]) ? (list)[n] : "?")

static void task(const struct trace_item *i)
{
	const u32 kind = NPUEMU_TRACE_OF(&i->r);

	printf(", %.3f us", (double)i->r.arg / 1e3);
	if (i->told && kind <= NPUEMU_TT_REDUCE)
		printf(", %" PRIu64 " bytes", i->about);
	else if (i->told && kind >= NPUEMU_TT_EVENT_RECORD && kind <= NPUEMU_TT_EVENT_RESET)
		printf(", event %" PRIu64, i->about);
	else if (i->told && kind == NPUEMU_TT_MODEL)
		printf(", model %" PRIu64, i->about);
	else if (i->told && kind == NPUEMU_TT_COLLECTIVE)
		printf(", %s by %s", NAME(hccl_coll_names, i->about >> 8), NAME(hccl_algo_names, i->about & 0xff));
	if (i->r.event & NPUEMU_TRACE_FAILED)
		printf(", failed");
}

static void details(const struct trace_item *i)
{
	switch (NPUEMU_TRACE_EVENT(&i->r)) {
	case NPUEMU_TR_TASK:
		task(i);
		break;
	case NPUEMU_TR_RANGE:
		printf(", %.3f us", (double)i->r.arg / 1e3);
		break;
	case NPUEMU_TR_EXECUTE:
		printf(", opcode %#" PRIx64 ", %" PRIu64 " bytes", i->r.arg & 0xff, i->r.arg >> 8);
		break;
	case NPUEMU_TR_COMPLETE:
		printf(", status %" PRIu64, i->r.arg);
		break;
	case NPUEMU_TR_STATE:
		printf(" %" PRIu64, i->r.arg);
		break;
	case NPUEMU_TR_CLOCK:
		printf(", %.6f s since 1970", (double)i->r.arg / 1e9);
		break;
	default:
		break;
	}
}

static const char *sort_of(const struct trace_item *i)
{
	switch (NPUEMU_TRACE_EVENT(&i->r)) {
	case NPUEMU_TR_TASK:
		return "task";
	case NPUEMU_TR_MARK:
		return "mark";
	case NPUEMU_TR_RANGE:
		return "range";
	case NPUEMU_TR_STEP:
		return "step";
	default:
		return trace_is_engine(i) ? "wqe" : "note";
	}
}

void trace_show(const struct trace *t)
{
	char name[NPUEMU_TRACE_TEXT_MAX + 32];
	size_t i;

	for (i = 0; i < t->n; i++) {
		const struct trace_item *it = &t->item[i];

		printf("%14.3f us pid %u thread %u", (double)(it->r.ns - t->item[0].r.ns) / 1e3, it->pid,
		       it->tid);
		where(it);
		trace_name(it, name, sizeof(name));
		printf(": %s: %s", sort_of(it), name);
		details(it);
		putchar('\n');
	}
	if (t->lost)
		printf("%" PRIu64 " records are lost: there was no room for them\n", t->lost);
}
