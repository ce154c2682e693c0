/* SPDX-License-Identifier: MIT */
/*
 * Rank tables: which rank is which device of which server, in a JSON file of
 * version 1.0 (servers), 1.2 (servers in super pods) or 2.0 (ranks with net layers).
 *
 * Results are HcclResult's.  A failure leaves one line in the caller's buffer: its
 * code (EI0004: the file, EI0014: a value, EI0017: something is missing), the file,
 * the place in it, what is there, what is expected.
 */
#ifndef NPUEMU_HCCL_RANKTABLE_H
#define NPUEMU_HCCL_RANKTABLE_H

#include "core.h"
#include <hccl/hccl_types.h>

#define HCCL_RANKS_MAX		4096
#define HCCL_SERVER_NAME	64	/* characters of one */

struct hccl_rankent {
	u32 rank;
	u32 device;		/* physical id, in its host */
	u32 local;		/* unique in its server; 1.x: the same as device */
	u32 server_index;	/* servers count by their lowest rank */
	u32 superpod;		/* counted the same way; 0 where the table has none */
	u32 super_device;	/* 1.2: device in the super pod; else as local */
	char server[HCCL_SERVER_NAME + 1];	/* 2.0: the beginning of net layer 0's instance */
};

struct hccl_ranktable {
	u32 nranks;
	u32 nservers;
	u32 nsuperpods;
	struct hccl_rankent *rank;	/* by rank: rank[i].rank == i */
	char version[8];
	/*
	 * Of all that is said of the ranks.  Two tables that differ in spaces, in the order
	 * of keys, servers or devices, or in what is said of no rank have the same.
	 */
	u64 hash;
};

int hccl_ranktable_load(const char *path, struct hccl_ranktable *t, char *why, size_t room);
/* @name: for messages.  @text needs no NUL behind it. */
int hccl_ranktable_parse(const char *name, const char *text, size_t len, struct hccl_ranktable *t,
			 char *why, size_t room);
void hccl_ranktable_free(struct hccl_ranktable *t);

/* Is @rank, as the program gives it, one of the table's? */
int hccl_ranktable_has(const struct hccl_ranktable *t, const char *name, u32 rank, char *why,
		       size_t room);
/* Did @peer read the same table as this rank, which read @name? */
int hccl_ranktable_same(const struct hccl_ranktable *t, const char *name, u64 peer_hash, u32 peer,
			char *why, size_t room);

#endif
