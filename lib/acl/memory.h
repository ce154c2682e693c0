/* SPDX-License-Identifier: MIT */
/*
 * What the memory functions share: which address is what, and the checks that
 * copies, fills and reductions have in common.
 *
 *   address.c    the map of this process's ranges
 *   memory.c     device memory: malloc, free, what there is
 *   hostmem.c    host memory: pinned, and registered
 *   copy.c       copies, one at a time
 *   batch.c      many in one call
 *   indirect.c   copies whose addresses are found in device memory when they run
 *   fill.c       memset
 *   reduce.c     reductions
 */
#ifndef NPUACL_MEMORY_H
#define NPUACL_MEMORY_H

#include "npuacl.h"

/* ---- address.c --------------------------------------------------------------------- */

enum npuacl_place_kind {
	NPUACL_PAGEABLE,	/* none of ours: host memory of the program's */
	NPUACL_DEVICE,		/* aclrtMalloc */
	NPUACL_PINNED,		/* aclrtMallocHost */
	NPUACL_MAPPED,		/* device memory mapped into a reserved range */
	NPUACL_IMPORTED,	/* another process's, by an IPC key */
	NPUACL_REGISTERED,	/* host memory, aclrtHostRegister; may lie in a PINNED block */
	NPUACL_RESERVED,	/* addresses only: aclrtReserveMemAddress */
};

#define NPUACL_PLACE_HUGE	0x1u	/* as if of 2 MiB pages */
#define NPUACL_PLACE_HUGE1G	0x2u
#define NPUACL_PLACE_DEVPTR	0x4u	/* REGISTERED: aclrtHostGetDevicePointer answers */
#define NPUACL_PLACE_PEER	0x8u	/* any device may reach it, peer access or not */
#define NPUACL_PLACE_HOST	0x10u	/* MAPPED: host memory */
#define NPUACL_PLACE_READONLY	0x20u	/* MAPPED: not to be written */
#define NPUACL_PLACE_NOACCESS	0x40u	/* MAPPED: nor read */
#define NPUACL_PLACE_PART	0x80u	/* IMPORTED: one buffer with what lies beside it: span.c */

/* A range, as its maker gives it to the map, which keeps it until it is taken out. */
struct npuacl_range {
	u64 base;
	u64 size;		/* as asked for */
	u64 room;		/* bytes that may be used */
	u32 kind;
	u32 device;		/* logical; host memory: 0 */
	u32 flags;
	u32 chunk;		/* PINNED: of which chunk, less 1; 0: of its own */
	struct npuemu_buf *buf;
	struct npuemu_mem *mem;	/* may be NULL: not registered with lib/core */
	void *alias;		/* PINNED: where engines see it (check.h); NULL: at @base */
	void *owner;		/* its maker's */
};

/* What an address is; a copy, so it may be old news if another thread frees it. */
struct npuacl_place {
	u64 base;
	u64 end;		/* base + room; PAGEABLE: where the next of ours begins */
	u64 size;
	u32 kind;
	u32 device;
	u32 flags;
};

/* The innermost of DEVICE, PINNED, MAPPED, IMPORTED and REGISTERED that holds @va. */
void npuacl_place_of(u64 va, struct npuacl_place *out);
/* An aligned word of the program's device memory, which may be taken away at any time; false: it was. */
bool npuacl_word_at(u64 va, u64 *value);
/* Only that kind. */
bool npuacl_place_in(enum npuacl_place_kind kind, u64 va, struct npuacl_place *out);
/* 0; -EEXIST: some of it is in the map already (in that layer); -ENOMEM. */
int npuacl_range_add(struct npuacl_range *r);
/* Out of the map, if one of @kinds (bits) begins at @base; NULL. That it was there is remembered. */
struct npuacl_range *npuacl_range_take(u64 base, u32 kinds);
/* The first of a kind that begins in [from, to), and is on @device (-1: any). */
struct npuacl_range *npuacl_range_take_in(enum npuacl_place_kind kind, u64 from, u64 to, s32 device);
/* Call @fn for the range of one of @kinds (bits) that holds @va, under the lock: false, there is none. */
bool npuacl_range_with(u32 kinds, u64 va, void (*fn)(struct npuacl_range *r, void *arg), void *arg);
/* Change the flags of a range that is in the map, and stays there. */
void npuacl_range_flags(struct npuacl_range *r, u32 flags);
/* Its memory is given back: free @r. */
void npuacl_range_gone(struct npuacl_range *r);
/* "16 bytes into the device buffer of 64 bytes at 0x..., device 0"; gives @buf back. */
const char *npuacl_explain(u64 va, char *buf, size_t size);
/* Lately, by who took it out of the map, and nothing of the program's has come there since. */
bool npuacl_was_freed(u64 va);
/* Something is mapped there, by whomever. */
bool npuacl_is_mapped(u64 va);
/* In the child of a fork: nothing is known. */
void npuacl_address_fork(void);

#define NPUACL_BIT(kind)	(1u << (kind))

static inline bool npuacl_on_device(const struct npuacl_place *p)
{
	return NPUACL_BIT(p->kind) & (NPUACL_BIT(NPUACL_DEVICE) | NPUACL_BIT(NPUACL_MAPPED) |
				      NPUACL_BIT(NPUACL_IMPORTED)) && !(p->flags & NPUACL_PLACE_HOST);
}

/* ---- memory.c, hostmem.c ------------------------------------------------------------- */

/* All device memory of a device that is reset (-1: of all), freed. */
void npuacl_memory_release(s32 device);
/* Host memory, too: the board is about to be closed. */
void npuacl_hostmem_release(void);
/* Count memory of a device that this process has, or no longer has (negative). */
void npuacl_memory_use(u32 device, u64 bytes);
/* In the child of a fork. */
void npuacl_memory_fork(void);
void npuacl_hostmem_fork(void);

/* ---- copy.c ------------------------------------------------------------------------------ */

/* One side of an operation: where, and what that is. */
struct npuacl_side {
	u64 va;
	struct npuacl_place at;
	bool split;		/* more than one range */
	const char *role;	/* "source", "target" */
};

/* Is [va, +len) of one kind, and all there? */
aclError npuacl_side(const char *what, const char *role, u64 va, u64 len, struct npuacl_side *s);
/* May an engine of @dev move between them?  Peer access, overlap. */
aclError npuacl_sides(const char *what, const struct npuacl_device *dev, const struct npuacl_side *dst,
		      const struct npuacl_side *src);
/* The next descriptor of a copy or fill: how many of @len bytes from @done on lie in one range. */
u64 npuacl_piece(struct npuacl_side *dst, struct npuacl_side *src, u64 done, u64 len);
aclError npuacl_check_kind(const char *what, aclrtMemcpyKind kind);
/* At once; the message says what the addresses are if it fails. */
aclError npuacl_now(const char *what, struct npuacl_device *dev, const struct npuemu_sdma *d, u32 n);
/* A copy with all its checks. */
aclError npuacl_copy_now(const char *what, struct npuacl_device *dev, u64 dst, u64 src, u64 len);
/* To a stream, both sides checked; @seq: as of npuacl_submit(), for the last piece. */
aclError npuacl_copy_submit(struct npuacl_stream *s, struct npuacl_side *dst, struct npuacl_side *src,
			    u64 len, u64 *seq);

#endif
