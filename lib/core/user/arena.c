// SPDX-License-Identifier: MIT
/*
 * HBM: one memfd per process and device, as large as the device and empty.
 * Buffers are ranges of it.  Memory is backed 2 MiB at a time by whoever first
 * works on it, within the board's budget; a freed range is punched out, so
 * what is handed out is always zero.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "user.h"

#define CHUNK (1ull << NPUEMU_CHUNK_SHIFT)

static u64 max64(u64 a, u64 b)
{
	return a > b ? a : b;
}

static u64 min64(u64 a, u64 b)
{
	return a < b ? a : b;
}

void arena_unmap(struct user_arena *a)
{
	if (!a)
		return;
	guard_exit(a);
	if (a->a.base)
		munmap(a->a.base, a->a.bytes);
	if (a->pagemap)
		munmap(a->pagemap, a->a.bytes / PAGE * sizeof(u32));
	if (a->fd >= 0)
		close(a->fd);
	extents_destroy(&a->free);
	free(a);
}

static int arena_make(struct user *u, u32 device, struct user_arena *a)
{
	u64 bytes = u->machine.hbm_bytes;
	u64 head[3] = { BOARD_MAGIC, u->slot->secret[0], u->slot->secret[1] };
	void *p;

	a->a.device = device;
	a->fd = memfd_create("npuemu-hbm", MFD_CLOEXEC);
	if (a->fd < 0 || ftruncate(a->fd, (off_t)(bytes + PAGE)) ||
	    pwrite(a->fd, head, sizeof(head), (off_t)bytes) != sizeof(head))
		return npuemu_fail(-ENOMEM, "cannot make HBM of device %u: %s", device,
				   strerror(errno));
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, a->fd, 0);
	if (p == MAP_FAILED)
		return npuemu_fail(-ENOMEM, "no address space for %llu MiB of HBM of device %u: %s (a smaller NPUEMU_MACHINE, or ulimit -v?)",
				   (unsigned long long)bytes >> 20, device, strerror(errno));
	a->a.base = p;
	a->a.bytes = bytes;
	madvise(p, bytes, MADV_DONTFORK);
	if (guard_init(a))
		return -ENOMEM;
	p = mmap(NULL, bytes / PAGE * sizeof(u32), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return npuemu_fail(-ENOMEM, "no address space for the page map of device %u", device);
	a->pagemap = p;
	if (extents_init(&a->free, bytes))
		return npuemu_fail(-ENOMEM, "out of memory");
	if (board_back(u, u->slot_index, OFF_BACKED + device * BACKED_WORDS * sizeof(u64),
		       (bytes >> NPUEMU_CHUNK_SHIFT) / 8 + 8))
		return -ENOSPC;
	a->a.backed = slot_backed(u, u->slot_index, device);
	a->a.shares = slot_shares(u, u->slot_index);
	a->a.nshares = SLOT_BUFS;
	return region_add(u, (u64)(uintptr_t)a->shown, bytes, a, false);
}

/* Own arena of a device, made when first asked for.  u->lock held. */
struct user_arena *arena_own(struct user *u, u32 device)
{
	struct user_arena *a = u->arena[device];

	if (a)
		return a;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->fd = -1;
	if (arena_make(u, device, a)) {
		arena_unmap(a);
		return NULL;
	}
	smp_store_release(&u->slot->arena[device].fd, (u32)a->fd + 1);
	smp_store_release(&u->arena[device], a);
	return a;
}

void arenas_destroy(struct user *u)
{
	u32 d;

	for (d = 0; d < NPUEMU_MAX_DEVICES; d++) {
		arena_unmap(u->arena[d]);
		u->arena[d] = NULL;
	}
}

/* One chunk: claim its bit, look at the budget, have it populated. */
static int back_chunk(struct user *u, const struct npuemu_arena *a, u64 *bits, u64 c, u64 lo,
		      u64 hi)
{
	u64 bit = 1ull << (c % 64), from, to;

	if (npuemu_fetch_or(&bits[c / 64], bit) & bit)
		return 0;	/* being done by somebody else: page by page until then */
	/* over the limit: is some of it a dead process's? */
	if (board_backed(u) > u->budget && (!board_reap(u) || board_backed(u) > u->budget))
		goto nomem;
	from = max64(c << NPUEMU_CHUNK_SHIFT, lo) & ~(u64)(PAGE - 1);
	to = (min64((c + 1) << NPUEMU_CHUNK_SHIFT, hi) + PAGE - 1) & ~(u64)(PAGE - 1);
	/* all pages at once: twice as fast as fault by fault; without it, faults do */
	if (madvise(a->base + from, to - from, MADV_POPULATE_WRITE) && errno != EINVAL)
		goto nomem;
	return 0;

nomem:
	npuemu_fetch_and(&bits[c / 64], ~bit);
	npuemu_log(NPUEMU_LOG_WARN, "physical budget of the board (%llu MiB) is used up: work completes with an error; NPUEMU_BUDGET_MB sets another one when a board is made",
		   (unsigned long long)u->budget >> 20);
	return -ENOMEM;
}

int arena_back(struct npuemu_chip *chip, const struct npuemu_arena *a, u64 off, u64 len,
	       u64 lo, u64 hi)
{
	u64 c, last = (off + len - 1) >> NPUEMU_CHUNK_SHIFT;
	u64 *bits = READ_ONCE(a->backed);	/* none: its owner has died */
	int err;

	for (c = off >> NPUEMU_CHUNK_SHIFT; c <= last; c++) {
		if (!bits || READ_ONCE(bits[c / 64]) >> (c % 64) & 1)
			continue;
		err = back_chunk(chip->host, a, bits, c, lo, hi);
		if (err)
			return err;
	}
	return 0;
}

static void pagemap_set(struct user_arena *a, u64 off, u64 room, u32 value)
{
	u64 p;

	for (p = off / PAGE; p < (off + room) / PAGE; p++)
		WRITE_ONCE(a->pagemap[p], value);
}

static bool chunk_empty(const struct user_arena *a, u64 c)
{
	u64 p = c << (NPUEMU_CHUNK_SHIFT - 12), end = p + CHUNK / PAGE;

	for (; p < end && p < a->a.bytes / PAGE; p++)
		if (a->pagemap[p])
			return false;
	return true;
}

/* Give the memory of a range back; whole chunks also their place in the budget. */
static void punch(struct user_arena *a, u64 off, u64 room)
{
	u64 c, last = (off + room - 1) >> NPUEMU_CHUNK_SHIFT;

	fallocate(a->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)room);
	for (c = off >> NPUEMU_CHUNK_SHIFT; c <= last; c++)
		if (READ_ONCE(a->a.backed[c / 64]) >> (c % 64) & 1 && chunk_empty(a, c))
			npuemu_fetch_and(&a->a.backed[c / 64], ~(1ull << (c % 64)));
}

static bool imported_somewhere(struct user *u, u32 index)
{
	u32 s, i;

	for (s = 0; s < NPUEMU_MAX_SLOTS; s++) {
		const struct slot_import *imp = slot_imports(u, s);
		u32 hi = READ_ONCE(slot_head(u, s)->imports_hi);

		if (LIFE_STATE(READ_ONCE(slot_head(u, s)->life)) != SLOT_LIVE)
			continue;
		for (i = 0; i < hi && i < SLOT_IMPORTS; i++)
			if (READ_ONCE(imp[i].used) && imp[i].slot == u->slot_index &&
			    imp[i].gen == LIFE_GEN(u->life) && imp[i].buf == index)
				return true;
	}
	return false;
}

/* What the board says of our buffers is for others: we go by our own notes. */
static void range_release(struct user *u, u32 i)
{
	struct own_buf *o = &u->bufs[i];
	struct user_arena *a = u->arena[o->device];

	punch(a, o->off, o->room);
	guard_give(a, o->off, o->room + o->gap);
	a->used -= o->room;
	WRITE_ONCE(u->slot->arena[o->device].used, a->used);
	o->state = BUF_FREE;
	WRITE_ONCE(slot_bufs(u, u->slot_index)[i].state, BUF_FREE);
}

/* Freed buffers whose importers have let go meanwhile.  u->lock held. */
void arena_sweep_zombies(struct user *u)
{
	u32 i;

	for (i = 0; i < u->bufs_hi; i++)
		if (u->bufs[i].state == BUF_ZOMBIE && !imported_somewhere(u, i))
			range_release(u, i);
}

static int buf_index(struct user *u)
{
	u32 i;

	for (i = 0; i < u->bufs_hi; i++)
		if (u->bufs[i].state == BUF_FREE)
			return (int)i;
	if (i == SLOT_BUFS)
		return npuemu_fail(-ENOSPC, "this process holds %u buffers, the most it can", SLOT_BUFS);
	if (board_back(u, u->slot_index, OFF_BUFS + i * sizeof(struct slot_buf),
		       sizeof(struct slot_buf)) ||
	    board_back(u, u->slot_index, OFF_SHARES + i * sizeof(struct npuemu_share),
		       sizeof(struct npuemu_share)))
		return -ENOSPC;
	u->bufs_hi = i + 1;
	WRITE_ONCE(u->slot->bufs_hi, i + 1);
	return (int)i;
}

/* Claim first, then look at the sum: two at once may both fail, never both fit. */
static int charge(struct user *u, u32 device, u64 room)
{
	struct user_arena *a = u->arena[device];
	u64 *used = &u->slot->arena[device].used, total, hbm = u->machine.hbm_bytes;

	a->used += room;
	WRITE_ONCE(*used, a->used);
	smp_mb(); /* our claim, before the look at the others' */
	total = hbm_used(u, device);
	/* too much: is some of it a dead process's? */
	if (total > hbm && board_reap(u))
		total = hbm_used(u, device);
	if (total <= hbm)
		return 0;
	a->used -= room;
	WRITE_ONCE(*used, a->used);
	return npuemu_fail(-ENOMEM, "out of device memory: %llu bytes asked for, %llu of %llu free on device %u",
			   (unsigned long long)room,
			   (unsigned long long)(total - room < hbm ? hbm - (total - room) : 0),
			   (unsigned long long)hbm, device);
}

static int buf_alloc(struct user *u, u32 device, u64 bytes, struct npuemu_buf *buf)
{
	u64 room = (bytes + PAGE - 1) & ~(u64)(PAGE - 1), off, gap;
	struct user_arena *a = arena_own(u, device);
	struct slot_buf *b;
	int i, err;

	if (!a)
		return -ENOMEM;
	arena_sweep_zombies(u);
	i = buf_index(u);
	if (i < 0)
		return i;
	err = charge(u, device, room);
	if (err)
		return err;
	off = guard_take(a, room, room >= CHUNK ? CHUNK : PAGE, &gap);
	if (off == ~0ull) {
		a->used -= room;
		WRITE_ONCE(u->slot->arena[device].used, a->used);
		return npuemu_fail(-ENOMEM, "device %u has no contiguous %llu bytes left in this process",
				   device, (unsigned long long)room);
	}
	b = &slot_bufs(u, u->slot_index)[i];
	b->device = device;
	b->off = off;
	b->bytes = bytes;
	b->room = room;
	b->nonce = 0;
	b->exported = 0;
	u->bufs[i] = (struct own_buf){ BUF_LIVE, device, off, room, gap };
	guard_close(a, off, room, false);
	memset(&slot_shares(u, u->slot_index)[i], 0, sizeof(struct npuemu_share));
	buf->index = (u32)i;
	buf->device = device;
	buf->bytes = bytes;
	buf->room = room;
	buf->off = off;
	buf->ptr = a->shown + off;
	buf->arena = a;
	buf->share = &slot_shares(u, u->slot_index)[i];
	buf->imported = false;
	pagemap_set(a, off, room,
		    (u32)((size_t)((u8 *)buf - npuemu_bufs.base) / npuemu_bufs.size) + 1);
	smp_store_release(&b->state, BUF_LIVE);
	return 0;
}

int user_buf_alloc(struct npuemu *ctx, u32 device, u64 bytes, struct npuemu_buf *buf)
{
	struct user *u = user_of(ctx);
	int err;

	pthread_mutex_lock(&u->lock);
	err = buf_alloc(u, device, bytes, buf);
	pthread_mutex_unlock(&u->lock);
	return err;
}

int user_buf_free(struct npuemu_buf *buf)
{
	struct user *u = user_of(buf->ctx);
	struct slot_buf *b;
	int err;

	if (buf->imported)
		return import_free(buf);
	pthread_mutex_lock(&u->lock);
	b = &slot_bufs(u, u->slot_index)[buf->index];
	pagemap_set(u->arena[buf->device], buf->off, buf->room, 0);
	guard_close(u->arena[buf->device], buf->off, buf->room, true);
	WRITE_ONCE(b->nonce, 0);
	/* an importer either sees that, or we see its record */
	smp_store_release(&b->state, BUF_ZOMBIE);
	smp_mb();
	npuemu_fetch_add(&u->chip.epoch, 1);
	err = quiesce_own(u);
	/* after a time-out somebody may still write there: out of use for good */
	u->bufs[buf->index].state = err ? BUF_STUCK : BUF_ZOMBIE;
	if (!err && !imported_somewhere(u, buf->index))
		range_release(u, buf->index);
	pthread_mutex_unlock(&u->lock);
	return err;
}
