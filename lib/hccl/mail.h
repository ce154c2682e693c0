/* SPDX-License-Identifier: MIT */
/*
 * One side of a message between two ranks: mail.c.
 */
#ifndef HCCL_MAIL_H
#define HCCL_MAIL_H

#include "comm.h"

enum hccl_item_state {
	HCCL_ITEM_BEGIN,
	HCCL_ITEM_PUT,		/* its side is written down */
	HCCL_ITEM_DONE,
};

struct hccl_item {
	bool send;
	u32 peer;
	u32 type;
	u64 count, bytes;
	struct hccl_ref ref;
	u64 ticket;		/* 0: of a model */
	u64 n;			/* message of its box; 0: not yet */
	enum hccl_item_state state;
};

/* Its place among those issued; the communicator's lock is held. */
u64 hccl_item_ticket(struct hccl_comm *c, const struct hccl_item *i);
/* Our side, if there is room and it is its turn; maybe ahead of its task. */
bool hccl_item_put(struct hccl_comm *c, struct hccl_item *i);
/* Put, if it was not; copied, if that can be and is ours to do.  Is it over? */
bool hccl_item_advance(struct hccl_comm *c, struct hccl_item *i);
bool hccl_item_over(struct hccl_comm *c, const struct hccl_item *i);
void hccl_item_text(const struct hccl_item *i, char *buf, size_t size);

#endif
