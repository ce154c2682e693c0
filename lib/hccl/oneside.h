/* SPDX-License-Identifier: MIT */
/*
 * Memory for transfers by one side, as a communicator keeps it: what this rank has
 * registered, and what of its peers it has enabled.
 */
#ifndef HCCL_ONESIDE_H
#define HCCL_ONESIDE_H

#include <hccl_one_sided_services.h>
#include "comm.h"

#define HCCL_ALL_RANKS	(~0u)

struct hccl_mem {
	struct hccl_mem *next;
	bool ours;
	u32 rank;		/* for whom, or HCCL_ALL_RANKS; whose */
	u32 type;		/* CommMemType */
	u64 va, bytes;		/* as its rank knows it */
	u32 times;		/* registered, enabled */
	u32 uses;		/* transfers; atomic */
	struct hccl_ref ref;
	u8 *ptr;		/* from here */
	struct npuacl_import *import;
	struct npuacl_span *span;
	const void *global;	/* bound */
};

/* What a HcclMemDesc holds. */
struct hccl_desc {
	u64 magic;
	u64 group;		/* key of the communicator */
	u32 owner, peer;
	u32 type;
	u32 pad;
	u64 va, bytes;
	struct hccl_ref ref;
	u64 sum;
};

_Static_assert(sizeof(struct hccl_desc) <= sizeof(HcclMemDesc), "it has room");

/* Bytes that others can read, for a while. */
struct hccl_blob {
	struct npuemu_buf *buf;
	struct npuacl_window window;
	u8 *ptr;
};

HcclResult hccl_blob_make(struct hccl_comm *c, const char *what, u64 bytes, struct hccl_blob *b);
void hccl_blob_free(struct hccl_blob *b);
/* @bytes of another rank's, copied: to be freed. */
HcclResult hccl_blob_read(const char *what, u64 key, u64 secret, u64 bytes, void **out);

void hccl_desc_fill(struct hccl_comm *c, const struct hccl_mem *m, struct hccl_desc *d);
/* Of this communicator, and whole. */
HcclResult hccl_desc_check(struct hccl_comm *c, const char *what, const void *bytes, struct hccl_desc *d);
/* Registered here; res.lock is not held in any of these. */
HcclResult hccl_mem_add(struct hccl_comm *c, const char *what, u32 rank, int type, void *addr, u64 size,
			const void *global, struct hccl_mem **out);
/* One time less; @by: its va, bytes and rank, or what it was bound by. */
HcclResult hccl_mem_remove(struct hccl_comm *c, const char *what, const struct hccl_mem *by);
HcclResult hccl_mem_enable(struct hccl_comm *c, const char *what, const struct hccl_desc *d, bool again);
/* What holds [va, +bytes), with one use more; NULL. */
struct hccl_mem *hccl_mem_use(struct hccl_comm *c, bool ours, u32 rank, u64 va, u64 bytes);

#endif
