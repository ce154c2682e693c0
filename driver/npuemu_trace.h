/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Tracepoints: /sys/kernel/tracing/events/npuemu/.  See Documentation/driver.md.
 *
 * Posting is a plain store of user space, so there is no event for it: there is
 * npuemu_doorbell, when the chip sees what was posted, and npuemu_wake, when the
 * store found the queue parked.
 *
 * doorbell, execute, complete and state come from the chip, which asks
 * chip->trace first; while one of the four is on, chips leave their fast path.
 * The others cost nothing when off, and nothing more than themselves when on.
 *
 * Numbers are translated with numbers, not with the names of enums: tools that
 * read the format files know only those.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM npuemu

#if !defined(NPUEMU_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define NPUEMU_TRACE_H

#include <linux/tracepoint.h>
#include "npuemu.h"

#ifndef NPUEMU_TRACE_ONCE
#define NPUEMU_TRACE_ONCE

/* Somebody begins, or ends, to listen to one of the chip's events. */
int npuemu_trace_reg(void);
void npuemu_trace_unreg(void);

enum npuemu_wake_why {
	NPUEMU_WAKE_FAULT,	/* a store to the doorbell page */
	NPUEMU_WAKE_KICK,	/* the queue's state was changed */
	NPUEMU_WAKE_MISSED,	/* the watchdog: a store was lost */
};

/* 0: it was made so */
static inline u64 npuemu_parked_us(const struct npuemu_queue *q)
{
	return q->parked_at ? div_u64(ktime_get_ns() - q->parked_at, NSEC_PER_USEC) : 0;
}

#endif

#define npuemu_show_state(state)	\
	__print_symbolic(state, { 0, "RESET" }, { 1, "READY" }, { 2, "SUSPENDED" }, { 3, "ERROR" })

#define npuemu_show_why(why)	\
	__print_symbolic(why, { 0, "fault" }, { 1, "kick" }, { 2, "missed" })

/* enum npuemu_opcode; with bit 8, enum npuemu_sdma_opcode */
#define npuemu_show_op(op)							\
	__print_symbolic(op, { 0, "SEND" }, { 1, "SEND_IMM" }, { 2, "SEND_INVALIDATE" },	\
			 { 3, "WRITE" }, { 4, "WRITE_IMM" }, { 5, "WRITE_NOTIFY" },	\
			 { 6, "READ" }, { 7, "CAS" }, { 8, "SWAP" }, { 9, "STORE" },	\
			 { 10, "LOAD" }, { 11, "FAA" }, { 17, "NOP" },			\
			 { 25, "WRITE_ATOMIC_ADD" }, { 256, "SDMA_NOP" },		\
			 { 257, "SDMA_COPY" }, { 258, "SDMA_COPY_2D" },			\
			 { 259, "SDMA_FILL" }, { 260, "SDMA_REDUCE" },			\
			 { 261, "SDMA_NOTIFY" })

/* enum npuemu_status */
#define npuemu_show_status(status)						\
	__print_symbolic(status, { 0x000, "SUCCESS" }, { 0x100, "UNSUPPORTED_OPCODE" },	\
			 { 0x201, "LOC_LEN" }, { 0x202, "LOC_ACCESS" },			\
			 { 0x203, "REM_RESP_LEN" }, { 0x204, "LOC_DATA_POISON" },	\
			 { 0x301, "REM_UNSUPPORTED_REQ" }, { 0x302, "REM_ACCESS_ABORT" },	\
			 { 0x304, "REM_DATA_POISON" }, { 0x400, "RNR_RETRY_CNT_EXC" },	\
			 { 0x500, "ACK_TIMEOUT" }, { 0x600, "WR_FLUSH_ERR" })

TRACE_EVENT_FN(npuemu_doorbell,
	       TP_PROTO(const struct npuemu_jfs *q, u32 pi),
	       TP_ARGS(q, pi),
	       TP_STRUCT__entry(__field(u32, slot)
				__field(u32, queue)
				__field(u32, device)
				__field(u32, pi)
				__field(u32, blocks)
				__field(bool, helper)),
	       TP_fast_assign(__entry->slot = q->chip->slot;
			      __entry->queue = q->id;
			      __entry->device = q->device;
			      __entry->pi = pi;
			      __entry->blocks = pi - q->ci;
			      __entry->helper = q->helper;),
	       TP_printk("slot=%u queue=%u device=%u pi=%u blocks=%u helper=%d",
			 __entry->slot, __entry->queue, __entry->device, __entry->pi,
			 __entry->blocks, __entry->helper),
	       npuemu_trace_reg, npuemu_trace_unreg);

TRACE_EVENT_FN(npuemu_execute,
	       TP_PROTO(const struct npuemu_jfs *q, u32 index, u64 arg),
	       TP_ARGS(q, index, arg),
	       TP_STRUCT__entry(__field(u64, len)
				__field(u32, slot)
				__field(u32, queue)
				__field(u32, device)
				__field(u32, index)
				__field(u32, op)
				__field(bool, helper)),
	       TP_fast_assign(__entry->len = arg >> 8;
			      __entry->slot = q->chip->slot;
			      __entry->queue = q->id;
			      __entry->device = q->device;
			      __entry->index = index;
			      __entry->op = (arg & 0xff) | (q->type ? 0x100 : 0);
			      __entry->helper = q->helper;),
	       TP_printk("slot=%u queue=%u device=%u index=%u op=%s len=%llu helper=%d",
			 __entry->slot, __entry->queue, __entry->device, __entry->index,
			 npuemu_show_op(__entry->op), __entry->len, __entry->helper),
	       npuemu_trace_reg, npuemu_trace_unreg);

TRACE_EVENT_FN(npuemu_complete,
	       TP_PROTO(const struct npuemu_jfs *q, u32 index, u32 status),
	       TP_ARGS(q, index, status),
	       TP_STRUCT__entry(__field(u32, slot)
				__field(u32, queue)
				__field(u32, device)
				__field(u32, index)
				__field(u32, status)),
	       TP_fast_assign(__entry->slot = q->chip->slot;
			      __entry->queue = q->id;
			      __entry->device = q->device;
			      __entry->index = index;
			      __entry->status = status;),
	       TP_printk("slot=%u queue=%u device=%u index=%u status=%s",
			 __entry->slot, __entry->queue, __entry->device, __entry->index,
			 npuemu_show_status(__entry->status)),
	       npuemu_trace_reg, npuemu_trace_unreg);

TRACE_EVENT_FN(npuemu_state,
	       TP_PROTO(const struct npuemu_jfs *q, u32 index, u32 state),
	       TP_ARGS(q, index, state),
	       TP_STRUCT__entry(__field(u32, slot)
				__field(u32, queue)
				__field(u32, device)
				__field(u32, index)
				__field(u32, state)),
	       TP_fast_assign(__entry->slot = q->chip->slot;
			      __entry->queue = q->id;
			      __entry->device = q->device;
			      __entry->index = index;
			      __entry->state = state;),
	       TP_printk("slot=%u queue=%u device=%u index=%u state=%s",
			 __entry->slot, __entry->queue, __entry->device, __entry->index,
			 npuemu_show_state(__entry->state)),
	       npuemu_trace_reg, npuemu_trace_unreg);

TRACE_EVENT(npuemu_park,
	    TP_PROTO(const struct npuemu_queue *q),
	    TP_ARGS(q),
	    TP_STRUCT__entry(__field(u64, poll_us)
			     __field(u32, slot)
			     __field(u32, queue)
			     __field(u32, device)
			     __field(u32, index)),
	    TP_fast_assign(__entry->poll_us = div_u64(q->poll_ns, NSEC_PER_USEC);
			   __entry->slot = q->ctx->slot;
			   __entry->queue = q->jfs.id;
			   __entry->device = q->jfs.device;
			   __entry->index = READ_ONCE(q->jfs.ci);),
	    TP_printk("slot=%u queue=%u device=%u index=%u poll_us=%llu",
		      __entry->slot, __entry->queue, __entry->device, __entry->index,
		      __entry->poll_us));

TRACE_EVENT(npuemu_wake,
	    TP_PROTO(const struct npuemu_queue *q, u32 why),
	    TP_ARGS(q, why),
	    TP_STRUCT__entry(__field(u64, parked_us)
			     __field(u32, slot)
			     __field(u32, queue)
			     __field(u32, device)
			     __field(u32, why)),
	    TP_fast_assign(__entry->parked_us = npuemu_parked_us(q);
			   __entry->slot = q->ctx->slot;
			   __entry->queue = q->jfs.id;
			   __entry->device = q->jfs.device;
			   __entry->why = why;),
	    TP_printk("slot=%u queue=%u device=%u why=%s parked_us=%llu",
		      __entry->slot, __entry->queue, __entry->device,
		      npuemu_show_why(__entry->why), __entry->parked_us));

/* A queue stopped by itself: it is in ERROR, or suspended by what failed. */
TRACE_EVENT(npuemu_error,
	    TP_PROTO(const struct npuemu_jfs *q),
	    TP_ARGS(q),
	    TP_STRUCT__entry(__field(u32, slot)
			     __field(u32, queue)
			     __field(u32, device)
			     __field(u32, index)
			     __field(u32, state)
			     __field(u32, status)
			     __array(char, cause, NPUEMU_CAUSE_BYTES)),
	    TP_fast_assign(__entry->slot = q->chip->slot;
			   __entry->queue = q->id;
			   __entry->device = q->device;
			   __entry->index = q->ci;
			   __entry->state = q->state;
			   __entry->status = q->last_status;
			   strscpy_pad(__entry->cause, q->cause, NPUEMU_CAUSE_BYTES);),
	    TP_printk("slot=%u queue=%u device=%u index=%u state=%s status=%s cause=\"%s\"",
		      __entry->slot, __entry->queue, __entry->device, __entry->index,
		      npuemu_show_state(__entry->state), npuemu_show_status(__entry->status),
		      __entry->cause));

#endif /* NPUEMU_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE npuemu_trace
#include <trace/define_trace.h>
