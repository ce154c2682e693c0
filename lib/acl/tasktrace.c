// SPDX-License-Identifier: MIT
/* The tasks of streams in a trace: what each was, when it began, how long it took. */
#include "graph.h"
#include "trace.h"

static enum npuemu_trace_task sdma_kind(const struct npuemu_sdma *d)
{
	switch (d->dw1 >> NPUEMU_SQE_OPCODE_SHIFT) {
	case NPUEMU_SDMA_COPY:
		return NPUEMU_TT_COPY;
	case NPUEMU_SDMA_COPY_2D:
		return NPUEMU_TT_COPY_2D;
	case NPUEMU_SDMA_FILL:
		return NPUEMU_TT_FILL;
	case NPUEMU_SDMA_REDUCE:
		return NPUEMU_TT_REDUCE;
	default:
		return NPUEMU_TT_STORE;
	}
}

/* 0: nothing of the program's.  In a model an event between its streams is one, too. */
static u32 kind_of(const struct npuacl_task *t)
{
	switch ((enum npuacl_kind)t->kind) {
	case NPUACL_SDMA:
		return sdma_kind(&t->sdma);
	case NPUACL_EVENT_RECORD:
	case NPUACL_EDGE_RECORD:
		return NPUEMU_TT_EVENT_RECORD;
	case NPUACL_EVENT_WAIT:
	case NPUACL_EDGE_WAIT:
		return NPUEMU_TT_EVENT_WAIT;
	case NPUACL_EVENT_RESET:
		return NPUEMU_TT_EVENT_RESET;
	case NPUACL_VALUE_WAIT:
		return NPUEMU_TT_VALUE_WAIT;
	case NPUACL_NOTIFY_WAIT:
		return NPUEMU_TT_NOTIFY_WAIT;
	case NPUACL_HOST_FUNC:
		return NPUEMU_TT_HOST_FUNC;
	case NPUACL_CALL:
		return NPUEMU_TT_CALL;
	case NPUACL_WORK:
		return NPUEMU_TT_COLLECTIVE;
	case NPUACL_GRAPH:
		return NPUEMU_TT_MODEL;
	case NPUACL_BRANCH:
		return NPUEMU_TT_BRANCH;
	default:
		return 0;
	}
}

static u64 about(const struct npuacl_task *t)
{
	switch ((enum npuacl_kind)t->kind) {
	case NPUACL_SDMA:
		return t->sdma.height ? t->sdma.len * t->sdma.height : t->sdma.len;
	case NPUACL_EVENT_RECORD:
	case NPUACL_EVENT_WAIT:
	case NPUACL_EVENT_RESET:
		return t->event.event->id;
	case NPUACL_EDGE_RECORD:
	case NPUACL_EDGE_WAIT:
		return t->node->event->id;
	case NPUACL_VALUE_WAIT:
	case NPUACL_NOTIFY_WAIT:
		return (u64)(uintptr_t)t->word.word;
	case NPUACL_GRAPH:
		return t->run->id;
	default:
		return 0;
	}
}

static bool is_traced(const struct npuacl_stream *s)
{
	return READ_ONCE(npuemu_trace_tasks) >> s->dev->phys & 1;
}

/* A task that waits comes here each time it is looked at: the first one counts. */
void npuacl_trace_begin(struct npuacl_stream *s, const struct npuacl_task *t)
{
	if (s->traced.ns || !is_traced(s) || !kind_of(t))
		return;
	s->traced.about = about(t);
	s->traced.failed = false;
	s->traced.ns = npuemu_now_ns();
}

void npuacl_trace_end(struct npuacl_stream *s)
{
	const struct npuacl_task *t = npuacl_task_at(s, 0);
	struct npuemu_trace_record r = {
		.ns = (u64)s->traced.ns, .event = NPUEMU_TR_ABOUT, .queue = s->id, .index = t->id,
		.device = s->dev->phys, .arg = s->traced.about,
	};
	const u64 end = (u64)npuemu_now_ns();
	const u32 kind = kind_of(t);

	s->traced.ns = 0;
	if (!is_traced(s))
		return;
	if (r.arg || (kind >= NPUEMU_TT_EVENT_RECORD && kind <= NPUEMU_TT_EVENT_RESET))
		npuemu_trace_put(&r);
	r.event = NPUEMU_TR_TASK | kind << 8 | (s->traced.failed ? NPUEMU_TRACE_FAILED : 0);
	r.arg = end - r.ns;
	npuemu_trace_put(&r);
}
