// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The tracepoints themselves, and telling chips whether anybody listens.
 *
 * A chip looks at one word of its own, so that it costs nothing while nobody
 * does.  {change the number of listeners, tell everybody} and {be new, be told}
 * exclude each other, so a new context that the former did not see yet asks
 * after it.
 */
#include "npuemu.h"

#define CREATE_TRACE_POINTS
#include "npuemu_trace.h"

static DEFINE_MUTEX(lock);
static u32 listeners;		/* events of the chip that are on */

static void tell_all(void)
{
	int idx = srcu_read_lock(&npuemu_turns);
	struct npuemu_ctx *ctx;
	u32 i;

	for (i = 0; i < NPUEMU_MAX_SLOTS; i++) {
		ctx = npuemu_ctx_slot(i);
		if (ctx)
			WRITE_ONCE(ctx->chip.trace, listeners);
	}
	srcu_read_unlock(&npuemu_turns, idx);
}

int npuemu_trace_reg(void)
{
	mutex_lock(&lock);
	if (!listeners++)
		tell_all();
	mutex_unlock(&lock);
	return 0;
}

void npuemu_trace_unreg(void)
{
	mutex_lock(&lock);
	if (!--listeners)
		tell_all();
	mutex_unlock(&lock);
}

void npuemu_trace_ctx(struct npuemu_ctx *ctx)
{
	mutex_lock(&lock);
	WRITE_ONCE(ctx->chip.trace, listeners);
	mutex_unlock(&lock);
}

/* By the owner of the queue, in a turn or while it is modified. */
void npuemu_op_trace(struct npuemu_jfs *q, u32 event, u32 index, u64 arg)
{
	switch (event) {
	case NPUEMU_TR_DOORBELL:
		trace_npuemu_doorbell(q, index);
		break;
	case NPUEMU_TR_EXECUTE:
		trace_npuemu_execute(q, index, arg);
		break;
	case NPUEMU_TR_COMPLETE:
		trace_npuemu_complete(q, index, arg);
		break;
	case NPUEMU_TR_STATE:
		trace_npuemu_state(q, index, arg);
		break;
	default:	/* park and wake are the host's own: npuemu_doorbell.c */
		break;
	}
}
