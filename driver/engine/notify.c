// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Telling sleepers.  A waiter sets its process's bit in the waiter mask of the
 * buffer that holds the awaited word, reads the word again, then sleeps.  An
 * engine that wrote there remembers the buffer and, once its turn has ended
 * with a full fence, reads the mask.  One of the two sees the other.
 */
#include "engine.h"

void npuemu_wake_touched(struct npuemu_chip *chip, struct npuemu_share **touched, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		u64 *w = touched[i]->waiters;

		if (unlikely(READ_ONCE(w[0]) | READ_ONCE(w[1]) | READ_ONCE(w[2]) |
			     READ_ONCE(w[3])))
			chip->ops->wake(chip, touched[i]);
	}
}

void npuemu_touch_slow(struct npuemu_jfs *q, struct npuemu_share *share)
{
	u32 i;

	for (i = 0; i < q->ntouched; i++)
		if (q->touched[i] == share)
			return;
	if (q->ntouched == NPUEMU_MAX_TOUCHED) {
		smp_mb(); /* pairs with the waiter's, between its bit and its re-read */
		npuemu_wake_touched(q->chip, q->touched, q->ntouched);
		q->ntouched = 0;
	}
	q->touched[q->ntouched++] = share;
}
