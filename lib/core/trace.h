/* SPDX-License-Identifier: MIT */
/*
 * The form of a trace file (Documentation/architecture.md tells it in words), for those
 * who write one and for npuemu-trace, which reads them.
 */
#ifndef NPUEMU_TRACE_FORMAT_H
#define NPUEMU_TRACE_FORMAT_H

#include "engine.h"

#define NPUEMU_TRACE_VERSION	1u
#define NPUEMU_TRACE_NAME	"npuemu.trace"	/* in a folder of aclprofStart() */
#define NPUEMU_TRACE_HOST	0xffffffffu	/* no device, no stream */
#define NPUEMU_TRACE_TEXT_MAX	256u
#define NPUEMU_TRACE_PIECE	16u		/* bytes of a text in one record */

/* Little endian.  What the fields mean beyond this depends on the event. */
struct npuemu_trace_record {
	u64 ns;			/* CLOCK_MONOTONIC */
	u32 event;		/* which, in the low byte; above it what it is of */
	u32 queue;
	u32 index;
	u32 device;		/* on the board */
	u64 arg;
};

/* From 1 on: enum npuemu_trace_event, the engine's. */
enum npuemu_trace_more {
	/* ns: records lost; queue: pid; index: thread; device: version; arg: records that follow */
	NPUEMU_TR_RUN = 0,
	/* ns: when it began; queue: stream; index: task; arg: ns that it took; << 8: which kind */
	NPUEMU_TR_TASK = 16,
	/* arg: what the next TASK of this stream is about: bytes, an event, a word, a model */
	NPUEMU_TR_ABOUT,
	/* queue: number of the text; index: of its byte; device: bytes here, in ns and arg */
	NPUEMU_TR_TEXT,
	/* queue: text; index: stream */
	NPUEMU_TR_MARK,
	/* ns: when it began; queue: text; index: range, or depth in its thread; arg: ns; << 8: which */
	NPUEMU_TR_RANGE,
	/* queue: step; index: stream; << 8: 0 for its begin, 1 for its end */
	NPUEMU_TR_STEP,
	/* arg: CLOCK_REALTIME then */
	NPUEMU_TR_CLOCK,
};

#define NPUEMU_TRACE_EVENT(r)	((r)->event & 0xff)
#define NPUEMU_TRACE_OF(r)	((r)->event >> 8 & 0xff)
#define NPUEMU_TRACE_FAILED	0x10000u	/* a TASK that did */

enum npuemu_trace_task {
	NPUEMU_TT_COPY = 1,
	NPUEMU_TT_COPY_2D,
	NPUEMU_TT_FILL,
	NPUEMU_TT_REDUCE,
	NPUEMU_TT_STORE,
	NPUEMU_TT_EVENT_RECORD,
	NPUEMU_TT_EVENT_WAIT,
	NPUEMU_TT_EVENT_RESET,
	NPUEMU_TT_VALUE_WAIT,
	NPUEMU_TT_NOTIFY_WAIT,
	NPUEMU_TT_HOST_FUNC,
	NPUEMU_TT_CALL,
	NPUEMU_TT_MODEL,
	NPUEMU_TT_BRANCH,
	NPUEMU_TT_COLLECTIVE,	/* about: which << 8 | algorithm, by lib/hccl/names.h */
};

enum npuemu_trace_range {
	NPUEMU_TG_THREAD,	/* pushed and popped */
	NPUEMU_TG_PROCESS,	/* started and stopped */
	NPUEMU_TG_OPERATOR,	/* pushed with a structured message */
};

#endif
