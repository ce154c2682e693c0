// SPDX-License-Identifier: MIT
/*
 * What addresses mean: regions of this process, segments it offers; and the
 * grace period after which nobody uses what was taken away.
 *
 * Readers are queue owners and never block.  A writer replaces the table, moves
 * the epoch, and waits until each owner word was seen free or has moved on: a
 * turn is short (64 KiB) and starts with a look at the epoch.  This is RCU with
 * the ownership that exists anyway as its read side; it also works across
 * processes, which no library's does.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#include "user.h"

/* ---- Grace periods ---------------------------------------------------------- */

static int wait_owner(struct user *u, u32 slot, u64 life, u32 *owner, u32 seen, s64 deadline)
{
	u32 n;

	/* pairs with npuemu_owner_put(): what the turn read comes before what follows */
	for (n = 0; smp_load_acquire(owner) == seen; n++) {
		if (n < 64) {
			sched_yield();
			continue;
		}
		usleep(50);
		if (n % 2000 == 0 && slot != u->slot_index && !slot_alive(u, slot, life))
			return 0;
		if (npuemu_now_ns() > deadline)
			return npuemu_fail(-ETIMEDOUT, "process %u (slot %u) has been in one turn of a queue for 10 s (stopped?)",
					   LIFE_PID(life), slot);
	}
	return 0;
}

static int quiesce_slot(struct user *u, u32 slot, s64 deadline)
{
	struct slot_head *h = slot_head(u, slot);
	struct slot_queue *q = slot_queues(u, slot);
	u64 life = READ_ONCE(h->life);
	u32 i, hi = READ_ONCE(h->queues_hi);
	int err;

	if (LIFE_STATE(life) != SLOT_LIVE && slot != u->slot_index)
		return 0;
	for (i = 0; i < hi && i < SLOT_QUEUES; i++) {
		u32 v = smp_load_acquire(&q[i].owner);

		if (!(v & 1))
			continue;
		err = wait_owner(u, slot, life, &q[i].owner, v, deadline);
		if (err)
			return err;
	}
	return 0;
}

int quiesce_own(struct user *u)
{
	smp_mb(); /* what was taken away, before the owner words */
	return quiesce_slot(u, u->slot_index, npuemu_now_ns() + GRACE_NS);
}

int quiesce_all(struct user *u)
{
	s64 deadline = npuemu_now_ns() + GRACE_NS;
	u32 s;
	int err, first = 0;

	smp_mb(); /* likewise */
	for (s = 0; s < NPUEMU_MAX_SLOTS; s++) {
		err = quiesce_slot(u, s, deadline);
		if (err && !first)
			first = err;
	}
	return first;
}

/* ---- Regions ------------------------------------------------------------------ */

/* The region that holds va, or the place where it would be. */
static u32 region_search(const struct regions *t, u64 va)
{
	u32 lo = 0, hi = t ? t->n : 0;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (t->r[mid].va + t->r[mid].len <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int regions_replace(struct user *u, struct regions *t)
{
	struct regions *old = u->regions;
	int err;

	smp_store_release(&u->regions, t);
	npuemu_fetch_add(&u->chip.epoch, 1);
	err = quiesce_own(u);
	if (!err)
		free(old);
	return err;
}

static int region_insert(struct user *u, const struct region *r)
{
	struct regions *old = u->regions, *t;
	u32 n = old ? old->n : 0, at = region_search(old, r->va);

	if (at < n && old->r[at].va < r->va + r->len)
		return npuemu_fail(-EEXIST, "[%#" PRIx64 ", +%" PRIu64 ") overlaps %s at %#" PRIx64,
				   r->va, r->len,
				   old->r[at].arena || old->r[at].buf ? "device memory" : "memory registered already",
				   old->r[at].va);
	t = malloc(sizeof(*t) + (n + 1) * sizeof(t->r[0]));
	if (!t)
		return npuemu_fail(-ENOMEM, "out of memory");
	t->n = n + 1;
	if (old) {
		memcpy(t->r, old->r, at * sizeof(t->r[0]));
		memcpy(t->r + at + 1, old->r + at, (n - at) * sizeof(t->r[0]));
	}
	t->r[at] = *r;
	regions_replace(u, t);
	return 0;
}

int region_add(struct user *u, u64 va, u64 len, struct user_arena *arena, bool readonly)
{
	struct region r = { .va = va, .len = len, .arena = arena, .readonly = readonly };

	return region_insert(u, &r);
}

int region_remove(struct user *u, u64 va)
{
	struct regions *old = u->regions, *t;
	u32 at = region_search(old, va);

	if (!old || at == old->n || old->r[at].va != va)
		return 0;
	t = malloc(sizeof(*t) + old->n * sizeof(t->r[0]));
	if (!t)
		return npuemu_fail(-ENOMEM, "out of memory");
	t->n = old->n - 1;
	memcpy(t->r, old->r, at * sizeof(t->r[0]));
	memcpy(t->r + at, old->r + at + 1, (t->n - at) * sizeof(t->r[0]));
	return regions_replace(u, t);
}

static const struct region *region_of(struct user *u, u64 va)
{
	const struct regions *t = smp_load_acquire(&u->regions);
	u32 at = region_search(t, va);

	return t && at < t->n && va >= t->r[at].va ? &t->r[at] : NULL;
}

static struct npuemu_buf *buffer_in(const struct region *r, u64 va, u64 len)
{
	u32 page = READ_ONCE(r->arena->pagemap[(va - r->va) / PAGE]);
	struct npuemu_buf *b;
	u64 in;

	if (!page)
		return NULL;
	b = (void *)(npuemu_bufs.base + (size_t)(page - 1) * npuemu_bufs.size);
	in = va - r->va - b->off;
	return in < b->bytes && len <= b->bytes - in ? b : NULL;
}

struct npuemu_buf *place_buffer(struct user *u, u64 va, u64 len)
{
	const struct region *r = region_of(u, va);

	if (r && r->buf)
		return va - r->va < r->buf->bytes && len <= r->buf->bytes - (va - r->va) ? r->buf : NULL;
	return r && r->arena ? buffer_in(r, va, len) : NULL;
}

/* ---- Buffers at other addresses, too ------------------------------------------- */

int user_buf_map(struct npuemu_buf *buf, u64 va)
{
	struct region r = { .va = va, .len = buf->room, .buf = buf };
	struct user *u = user_of(buf->ctx);
	void *p = (void *)(uintptr_t)va;
	int err;

	pthread_mutex_lock(&u->lock);
	err = region_insert(u, &r);
	/* of size 0: the same pages once more.  No descriptor is needed, so it goes for the
	 * memory of a process that has died as well
	 */
	if (!err && mremap(buf->arena->a.base + buf->off, 0, buf->room, MREMAP_MAYMOVE | MREMAP_FIXED, p) == MAP_FAILED) {
		err = npuemu_fail(-ENOMEM, "cannot map %" PRIu64 " bytes of device %u at %p: %s (ulimit -v, or vm.max_map_count?)",
				  buf->room, buf->device, p, strerror(errno));
		region_remove(u, va);
		npuemu_reserve(p, buf->room, MAP_FIXED);
	} else if (!err) {
		madvise(p, buf->room, MADV_DONTFORK);
	}
	pthread_mutex_unlock(&u->lock);
	return err;
}

int user_buf_unmap(struct npuemu_buf *buf, u64 va)
{
	struct user *u = user_of(buf->ctx);
	const struct region *r;
	int err = -ENOENT;

	pthread_mutex_lock(&u->lock);
	r = region_of(u, va);
	if (r && r->buf == buf && r->va == va)
		err = region_remove(u, va);
	pthread_mutex_unlock(&u->lock);
	return err;
}

/* ---- Memory that is not registered -------------------------------------------- */

#define ANY_FROM	65536ull		/* below: NULL and what lies near it */
#define ANY_STEP	NPUEMU_TURN_BYTES	/* looked at in one call: no more is moved in a turn */

/* Is all of it there for this use?  Brings the pages in, as using them would. */
static bool populate(u64 va, u64 len, int how)
{
	u64 from = va & ~(u64)(PAGE - 1);

	return !madvise((void *)(uintptr_t)from, va + len - from, how);
}

/* PROCMAP_QUERY of Linux 6.11 and newer, which the headers of Debian 12 do not have. */
struct map_query {
	u64 size;
	u64 flags;
	u64 at;			/* in; the rest is the answer for what is mapped there */
	u64 start, end;
	u64 prot;
	u64 page_size;
	u64 offset;
	u64 inode;
	u32 major, minor;
	u32 name_size, id_size;	/* none wanted */
	u64 name, id;
};

#define MAP_QUERY	_IOWR('f', 17, struct map_query)
#define MAP_READ	0x1
#define MAP_WRITE	0x2
#define ANY_WINDOW	(64ull << 20)

/*
 * A long stretch of anonymous memory, by two questions instead of one a turn: what
 * is mapped there, and for what use; and is it there.  What is not may be a guard
 * (MADV_GUARD_INSTALL), which only a look page by page tells.  Nothing else than
 * taking it away can make a touch of the rest fail, so it is good for this WQE.
 */
static u64 any_stretch(struct user *u, u64 va, u64 len, bool write)
{
	struct map_query q = { .size = sizeof(q), .at = va };
	u8 there[ANY_WINDOW / PAGE];
	u64 from = va & ~(u64)(PAGE - 1), n, i;

	if (ioctl(u->maps_fd, MAP_QUERY, &q) || q.inode || !(q.prot & MAP_READ) ||
	    (write && !(q.prot & MAP_WRITE)))
		return 0;
	if (len > q.end - va)
		len = q.end - va;
	if (len > ANY_WINDOW - PAGE)
		len = ((va + ANY_WINDOW - PAGE) & ~15ull) - va;
	n = (va + len - from + PAGE - 1) / PAGE;
	if (mincore((void *)(uintptr_t)from, n * PAGE, there))
		return 0;
	for (i = 0; i < n; i++)
		if (!(there[i] & 1))
			return 0;
	return len;
}

/* The first bytes of a place between the regions: the process may take it away at any
 * time, so the answer is for one WQE, and a touch must not be the first to notice.
 */
static int any_local(struct user *u, u64 va, u64 len, struct npuemu_local *out)
{
	const struct regions *t = smp_load_acquire(&u->regions);
	u32 at = region_search(t, va);

	if (!READ_ONCE(u->any) || va < ANY_FROM || va + len < va)
		return -EFAULT;
	if (t && at < t->n && t->r[at].va < va + len)
		return -EFAULT;
	if (len > ANY_STEP && u->maps_fd >= 0) {
		u64 n = any_stretch(u, va, len, out->write);

		if (n) {
			len = n;
			goto good;
		}
	}
	if (len > ANY_STEP)
		len = ((va + ANY_STEP) & ~15ull) - va;
	if (!populate(va, len, out->write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ)) {
		if (!out->write || !populate(va, len, MADV_POPULATE_READ))
			return -EFAULT;
		out->readonly = true;
	}
good:
	out->va = va;
	out->len = len;
	out->ptr = (u8 *)(uintptr_t)va;
	out->once = true;
	return 0;
}

int user_mem_any(struct npuemu *ctx, bool on)
{
	struct user *u = user_of(ctx);
	u64 here = (u64)(uintptr_t)&here;

	if (on && !populate(here, sizeof(here), MADV_POPULATE_WRITE))
		return npuemu_fail(-EOPNOTSUPP, "memory cannot be used unregistered: madvise(MADV_POPULATE_WRITE): %s (Linux 5.14 or newer has it)",
				   strerror(errno));
	/* kept until the board is closed: somebody may be asking it */
	if (on && u->maps_fd < 0)
		u->maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	WRITE_ONCE(u->any, on);
	return on ? 0 : quiesce_own(u);
}

/* ---- Looking one up ------------------------------------------------------------ */

/* Whatever it is called, the engine goes to the buffer's own address. */
static void place_of_buf(u64 va, const struct npuemu_buf *b, struct npuemu_local *out)
{
	out->va = va;
	out->len = b->bytes;
	out->ptr = b->arena->a.base + b->off;	/* what the program sees may be closed */
	out->arena = &b->arena->a;
	out->off = b->off;
	out->share = READ_ONCE(b->share);
}

int place_local(struct npuemu_chip *chip, u64 va, u64 len, struct npuemu_local *out)
{
	struct user *u = chip->host;
	const struct region *r = region_of(u, va);
	const struct npuemu_buf *b;

	if (!r)
		return any_local(u, va, len, out);
	out->readonly = r->readonly;
	if (r->buf) {
		b = r->buf;
		if (va - r->va >= b->bytes || len > b->bytes - (va - r->va))
			return -EFAULT;
		place_of_buf(r->va, b, out);
		return 0;
	}
	if (!r->arena) {
		if (len > r->len - (va - r->va))
			return -EFAULT;
		out->va = r->va;
		out->len = r->len;
		out->ptr = r->ptr ? r->ptr : (u8 *)(uintptr_t)r->va;
		return 0;
	}
	b = buffer_in(r, va, len);
	if (!b)
		return -EFAULT;
	place_of_buf(r->va + b->off, b, out);
	return 0;
}

void *place_alias(struct user *u, u64 va, bool *device)
{
	const struct region *r = region_of(u, va);
	u64 in = r ? va - r->va : 0;

	*device = r && (r->arena || r->buf);
	if (r && r->buf)
		return r->buf->arena->a.base + r->buf->off + in;
	if (r && r->arena)
		return r->arena->a.base + in;
	return r && r->ptr ? r->ptr + in : (void *)(uintptr_t)va;
}

/* ---- Registered memory --------------------------------------------------------- */

/* Is all of it mapped, and writable?  -1: unknown (no /proc). */
static int mapping_check(u64 va, u64 len, bool *readonly)
{
	FILE *f = fopen("/proc/self/maps", "re");
	u64 at = va, lo, hi;
	char line[512], perm[8];

	*readonly = false;
	if (!f)
		return -1;
	while (at < va + len && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &lo, &hi, perm) != 3 || hi <= at)
			continue;
		if (lo > at || perm[0] != 'r')
			break;
		if (perm[1] != 'w')
			*readonly = true;
		at = hi;
	}
	fclose(f);
	return at >= va + len;
}

int user_mem_register(struct npuemu_mem *mem)
{
	struct region r = { .va = mem->va, .len = mem->bytes, .ptr = mem->alias };
	struct user *u = user_of(mem->ctx);
	int err;

	if (!mapping_check(mem->va, mem->bytes, &r.readonly))
		return npuemu_fail(-EFAULT, "[%#" PRIx64 ", +%" PRIu64 ") is not all mapped and readable",
				   mem->va, mem->bytes);
	pthread_mutex_lock(&u->lock);
	err = region_insert(u, &r);
	pthread_mutex_unlock(&u->lock);
	return err;
}

int user_mem_unregister(struct npuemu_mem *mem)
{
	struct user *u = user_of(mem->ctx);
	int err;

	pthread_mutex_lock(&u->lock);
	err = region_remove(u, mem->va);
	pthread_mutex_unlock(&u->lock);
	return err;
}

/* ---- Segments ------------------------------------------------------------------- */

u32 user_random_token(void)
{
	u32 v = 0;

	while (!v)
		if (getrandom(&v, sizeof(v), 0) != sizeof(v))
			v = (u32)npuemu_now_ns();
	return v;
}

static int seg_index(struct user *u)
{
	u32 i;

	for (i = 0; i < u->segs_hi; i++)
		if (!slot_segs(u, u->slot_index)[i].seq && u->seg_gen[i] != 0xff)
			return (int)i;
	/* generations used up: the oldest ids come round again */
	for (i = 0; i < u->segs_hi && u->segs_hi == SLOT_SEGS; i++)
		if (!slot_segs(u, u->slot_index)[i].seq)
			return (int)i;
	if (u->segs_hi == SLOT_SEGS)
		return npuemu_fail(-ENOSPC, "this process offers %u segments, the most it can", SLOT_SEGS);
	i = u->segs_hi;
	if (board_back(u, u->slot_index, OFF_SEGS + i * sizeof(struct npuemu_seg_rec),
		       sizeof(struct npuemu_seg_rec)))
		return -ENOSPC;
	u->segs_hi = i + 1;
	WRITE_ONCE(u->slot->segs_hi, i + 1);
	return (int)i;
}

/* The even value after the last one this index had, never 0. */
static u32 next_seq(struct user *u, u32 i)
{
	u->seg_seq[i] += 2;
	if (!u->seg_seq[i])
		u->seg_seq[i] = 2;
	return u->seg_seq[i];
}

int user_seg_register(struct npuemu_seg *seg, u64 off, u32 flags)
{
	struct user *u = user_of(seg->ctx);
	struct npuemu_buf *buf = seg->buf;
	struct npuemu_seg_rec *r;
	int i;

	pthread_mutex_lock(&u->lock);
	i = seg_index(u);
	if (i < 0) {
		pthread_mutex_unlock(&u->lock);
		return i;
	}
	seg->index = (u32)i;
	u->seg_gen[i]++;
	seg->info.token_id = (u32)u->seg_gen[i] << 12 | (u32)i;
	if (!seg->info.token_value)
		seg->info.token_value = user_random_token();
	seg->info.eid.w[0] = NPUEMU_EID_MAGIC;
	seg->info.eid.w[1] = u->chip.board_id;
	seg->info.eid.w[2] = buf->device;
	seg->info.eid.w[3] = NPUEMU_EID3(u->slot_index, LIFE_GEN(u->life), buf->device);
	r = &slot_segs(u, u->slot_index)[i];
	WRITE_ONCE(r->token_id, seg->info.token_id);
	WRITE_ONCE(r->token_value, seg->info.token_value);
	WRITE_ONCE(r->access, seg->info.access | (flags & NPUEMU_SEG_NO_TOKEN ? NPUEMU_SEGREC_NO_TOKEN : 0));
	WRITE_ONCE(r->va, seg->info.va);
	WRITE_ONCE(r->len, seg->info.bytes);
	WRITE_ONCE(r->off, buf->off + off);
	WRITE_ONCE(r->device, buf->device);
	WRITE_ONCE(r->buf, buf->index);
	smp_store_release(&r->seq, next_seq(u, (u32)i));
	pthread_mutex_unlock(&u->lock);
	return 0;
}

int user_seg_rotate(struct npuemu_seg *seg, u32 token_value)
{
	struct user *u = user_of(seg->ctx);
	struct npuemu_seg_rec *r = &slot_segs(u, u->slot_index)[seg->index];

	pthread_mutex_lock(&u->lock);
	smp_store_release(&r->seq, u->seg_seq[seg->index] + 1);
	smp_mb(); /* odd before the change */
	WRITE_ONCE(r->token_value, token_value ? token_value : user_random_token());
	seg->info.token_value = r->token_value;
	smp_store_release(&r->seq, next_seq(u, seg->index));
	pthread_mutex_unlock(&u->lock);
	return 0;
}

int user_seg_unregister(struct npuemu_seg *seg)
{
	struct user *u = user_of(seg->ctx);
	struct npuemu_seg_rec *r = &slot_segs(u, u->slot_index)[seg->index];

	pthread_mutex_lock(&u->lock);
	WRITE_ONCE(r->seq, 0);
	pthread_mutex_unlock(&u->lock);
	/* an engine that saw the record good is in a turn now: wait those out */
	return quiesce_all(u);
}
