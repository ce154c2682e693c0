// SPDX-License-Identifier: MIT
/*
 * Other processes: who is behind an endpoint id, their arenas mapped here,
 * handles to their buffers, and forgetting them once they are gone.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "user.h"

/* For the next sweep.  peers_lock held. */
static void peer_gone(struct user *u, struct user_peer *p)
{
	WRITE_ONCE(p->gone, true);
	p->listed = true;
	p->next_gone = u->gone;
	u->gone = p;
}

/* peers_lock held */
static struct user_peer *peer_make(struct user *u, u32 slot, u64 life)
{
	struct user_peer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->slot = slot;
	p->life = life;
	p->p.life = &slot_head(u, slot)->life;
	p->p.life_val = life;
	p->p.segs = slot_segs(u, slot);
	if (u->peers[slot]) {
		/* unmapped by the sweep, when no queue remembers it */
		peer_gone(u, u->peers[slot]);
	}
	smp_store_release(&u->peers[slot], p);
	return p;
}

struct user_peer *peer_by_life(struct user *u, u32 slot, u64 life)
{
	struct user_peer *p = smp_load_acquire(&u->peers[slot]);

	if (p && p->life == life)
		return p;
	pthread_mutex_lock(&u->peers_lock);
	p = u->peers[slot];
	if (!p || p->life != life)
		p = peer_make(u, slot, life);
	pthread_mutex_unlock(&u->peers_lock);
	return p;
}

const struct npuemu_peer *peer_find(struct npuemu_chip *chip, const u64 *eid)
{
	struct user *u = chip->host;
	u32 w3 = (u32)(eid[1] >> 32), slot = NPUEMU_EID3_SLOT(w3);
	struct user_peer *p;
	u64 life;
	u32 hi;

	if (eid[0] != NPUEMU_EID_LO(chip->board_id) || (u32)eid[1] != NPUEMU_EID3_DEV(w3))
		return NULL;
	life = READ_ONCE(slot_head(u, slot)->life);
	if (LIFE_STATE(life) != SLOT_LIVE || (LIFE_GEN(life) & 0xffff) != NPUEMU_EID3_GEN(w3))
		return NULL;
	p = peer_by_life(u, slot, life);
	if (!p)
		return NULL;
	/* beyond it the table has no pages yet */
	hi = READ_ONCE(slot_head(u, slot)->segs_hi);
	WRITE_ONCE(p->p.nsegs, hi < SLOT_SEGS ? hi : SLOT_SEGS);
	return &p->p;
}

/* The fd of a live peer's arena: through /proc, else over its socket. */
static int arena_fd(struct user *u, u32 slot, u64 life, u32 device)
{
	struct slot_head *s = slot_head(u, slot);
	u64 head[3], start;
	char path[64];
	u32 number = READ_ONCE(s->arena[device].fd);
	int fd;

	if (!number)
		return -1;
	snprintf(path, sizeof(path), "/proc/%u/fd/%u", LIFE_PID(life), number - 1);
	fd = npuemu_env_flag("NPUEMU_NO_PROC") ? -1 : open(path, O_RDWR | O_CLOEXEC);
	start = fd < 0 ? 0 : process_start_time(LIFE_PID(life));
	if (fd < 0)
		fd = fdpass_fetch(u, slot, life, device);
	if (fd < 0)
		return -1;
	/* the pid may have been reused, the number as well: the secret tells */
	if ((start && start != s->start_time) ||
	    pread(fd, head, sizeof(head), (off_t)u->machine.hbm_bytes) != sizeof(head) ||
	    head[0] != BOARD_MAGIC || head[1] != s->secret[0] || head[2] != s->secret[1]) {
		close(fd);
		return -1;
	}
	return fd;
}

static struct user_arena *arena_map(struct user *u, u32 slot, u64 life, u32 device)
{
	struct user_arena *a;
	void *p;
	int fd = arena_fd(u, slot, life, device);

	if (fd < 0)
		return NULL;
	a = calloc(1, sizeof(*a));
	p = mmap(NULL, u->machine.hbm_bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (!a || p == MAP_FAILED) {
		if (p != MAP_FAILED)
			munmap(p, u->machine.hbm_bytes);
		free(a);
		close(fd);
		return NULL;
	}
	close(fd);
	madvise(p, u->machine.hbm_bytes, MADV_DONTFORK);
	a->fd = -1;
	a->a.base = p;
	a->a.bytes = u->machine.hbm_bytes;
	a->a.device = device;
	a->a.backed = slot_backed(u, slot, device);
	a->a.shares = slot_shares(u, slot);
	a->a.nshares = SLOT_BUFS;
	return a;
}

const struct npuemu_arena *peer_arena(struct npuemu_chip *chip, const struct npuemu_peer *peer,
				      u32 device)
{
	struct user *u = chip->host;
	struct user_peer *p = (struct user_peer *)(uintptr_t)peer;
	struct user_arena *a, *other;

	if (device >= u->machine.devices)
		return NULL;
	if (p->life == u->life) {
		a = smp_load_acquire(&u->arena[device]);
		return a ? &a->a : NULL;
	}
	a = smp_load_acquire(&p->arena[device]);
	if (a)
		return &a->a;
	/* it may have to ask over a socket: not under a lock */
	a = arena_map(u, p->slot, p->life, device);
	if (!a)
		return NULL;
	pthread_mutex_lock(&u->peers_lock);
	other = p->arena[device];
	if (!other)
		smp_store_release(&p->arena[device], a);
	pthread_mutex_unlock(&u->peers_lock);
	if (!other)
		return &a->a;
	arena_unmap(a);	/* another thread was first */
	return &other->a;
}

static void peer_unmap(struct user_peer *p)
{
	u32 d;

	for (d = 0; d < NPUEMU_MAX_DEVICES; d++)
		arena_unmap(p->arena[d]);
	free(p);
}

void peers_look(struct user *u)
{
	u32 s;

	for (s = 0; s < NPUEMU_MAX_SLOTS; s++) {
		struct user_peer *p = smp_load_acquire(&u->peers[s]);
		u64 life = p ? READ_ONCE(slot_head(u, s)->life) : 0;

		/* not through p: a sweep may free it meanwhile */
		if (LIFE_STATE(life) == SLOT_LIVE && life != u->life)
			slot_alive(u, s, life);
	}
}

/* No queue remembers it: take it out of the regions and unmap.  u->lock held. */
static void peer_forget(struct user *u, struct user_peer *p)
{
	u32 d;

	for (d = 0; d < NPUEMU_MAX_DEVICES; d++)
		if (p->arena[d] && p->arena[d]->pagemap &&
		    region_remove(u, (u64)(uintptr_t)p->arena[d]->a.base))
			return;	/* still in use by a stuck turn: leave it mapped */
	peer_unmap(p);
}

/* Of a dead peer's memory only what somebody imported stays. */
static void punch_unimported(struct user *u, struct user_peer *p, u32 device)
{
	u64 at = 0, end = u->machine.hbm_bytes;

	while (at < end) {
		u64 lo = end, hi = end;
		u32 s, i;

		/* the lowest import that ends behind @at */
		for (s = 0; s < NPUEMU_MAX_SLOTS; s++) {
			const struct slot_import *imp = slot_imports(u, s);
			u32 n = READ_ONCE(slot_head(u, s)->imports_hi);

			if (LIFE_STATE(READ_ONCE(slot_head(u, s)->life)) != SLOT_LIVE)
				continue;
			for (i = 0; i < n && i < SLOT_IMPORTS; i++)
				if (READ_ONCE(imp[i].used) && imp[i].slot == p->slot &&
				    imp[i].gen == LIFE_GEN(p->life) && imp[i].device == device &&
				    imp[i].off + imp[i].room > at && imp[i].off < lo) {
					lo = imp[i].off;
					hi = imp[i].off + imp[i].room;
				}
		}
		if (lo > at)
			madvise(p->arena[device]->a.base + at, lo - at, MADV_REMOVE);
		at = hi;
	}
}

/*
 * A dead peer whose buffers are imported here: its slot, and with it the tables
 * of backed chunks and of waiters, will be somebody else's.
 */
static void peer_orphan(struct user *u, struct user_peer *p)
{
	u32 d, i;

	for (d = 0; d < NPUEMU_MAX_DEVICES; d++) {
		if (!p->arena[d])
			continue;
		punch_unimported(u, p, d);
		WRITE_ONCE(p->arena[d]->a.backed, NULL);
		p->arena[d]->a.shares = NULL;
	}
	for (i = 0; i < READ_ONCE(npuemu_bufs.used); i++) {
		struct npuemu_buf *b = (void *)(npuemu_bufs.base + i * npuemu_bufs.size);

		if (npuemu_slab_alive(&npuemu_bufs, b) && b->imported && b->host == p)
			WRITE_ONCE(b->share, &p->orphan);
	}
	/* queues drop what they remember of both */
	npuemu_fetch_add(&u->chip.epoch, 1);
}

/*
 * Forget peers that have died: their arenas are unmapped once no queue here
 * can remember them, but for buffers that were imported.  u->lock held.
 */
void peers_sweep(struct user *u)
{
	struct user_peer *list = NULL, *p, *next;
	u32 s;

	pthread_mutex_lock(&u->peers_lock);
	for (s = 0; s < NPUEMU_MAX_SLOTS; s++) {
		p = u->peers[s];
		if (!p || READ_ONCE(slot_head(u, s)->life) == p->life)
			continue;
		WRITE_ONCE(u->peers[s], NULL);
		peer_gone(u, p);
	}
	list = u->gone;
	u->gone = NULL;
	pthread_mutex_unlock(&u->peers_lock);
	if (!list)
		return;
	npuemu_fetch_add(&u->chip.epoch, 1);
	if (quiesce_own(u)) {
		for (p = list; p->next_gone; p = p->next_gone)
			;
		pthread_mutex_lock(&u->peers_lock);
		p->next_gone = u->gone;
		u->gone = list;
		pthread_mutex_unlock(&u->peers_lock);
		return;
	}
	for (p = list; p; p = next) {
		next = p->next_gone;
		if (!p->imports) {
			peer_forget(u, p);
			continue;
		}
		peer_orphan(u, p);
		p->listed = false;
		p->next_gone = u->kept;
		u->kept = p;
	}
}

void peers_destroy(struct user *u)
{
	struct user_peer *p, *next;
	u32 s;

	for (s = 0; s < NPUEMU_MAX_SLOTS; s++) {
		if (u->peers[s])
			peer_unmap(u->peers[s]);
		u->peers[s] = NULL;
	}
	for (p = u->gone; p; p = next) {
		next = p->next_gone;
		peer_unmap(p);
	}
	for (p = u->kept; p; p = next) {
		next = p->next_gone;
		peer_unmap(p);
	}
	u->gone = NULL;
	u->kept = NULL;
}

/* ---- Handles to buffers -------------------------------------------------------- */

#define HANDLE_MAGIC 0x4c444e484d45504eull	/* "NPEMHNDL" */

/* w: magic, life, board | device, index, offset, bytes, room, nonce */
int user_buf_export(struct npuemu_buf *buf, struct npuemu_handle *h)
{
	struct user *u = user_of(buf->ctx);
	struct slot_buf *b = &slot_bufs(u, u->slot_index)[buf->index];

	if (buf->imported)
		return npuemu_fail(-EINVAL, "this buffer was imported: hand on its owner's handle instead");
	pthread_mutex_lock(&u->lock);
	if (!b->nonce) {
		u64 rng = u->slot->secret[0] ^ u->slot->secret[1] ^ (u64)npuemu_now_ns() ^ buf->off;

		WRITE_ONCE(b->nonce, npuemu_random(&rng) | 1);
	}
	h->w[0] = HANDLE_MAGIC;
	h->w[1] = u->life;
	h->w[2] = (u64)u->chip.board_id << 32 | (u64)u->slot_index << 8 | buf->device;
	h->w[3] = buf->index;
	h->w[4] = buf->off;
	h->w[5] = buf->bytes;
	h->w[6] = buf->room;
	h->w[7] = b->nonce;
	pthread_mutex_unlock(&u->lock);
	return 0;
}

/* ---- Names given out --------------------------------------------------------------- */

int user_exports_own(struct npuemu *ctx, u32 bytes, void **table)
{
	struct user *u = user_of(ctx);
	int err = 0;

	pthread_mutex_lock(&u->lock);
	if (bytes > u->exports_hi)
		err = board_back(u, u->slot_index, OFF_EXPORTS, bytes);
	if (!err && bytes > u->exports_hi) {
		u->exports_hi = bytes;
		smp_store_release(&u->slot->exports_hi, bytes);
	}
	pthread_mutex_unlock(&u->lock);
	*table = slot_at(u, u->slot_index) + OFF_EXPORTS;
	return err;
}

int user_exports_of(struct npuemu *ctx, u32 slot, const void **table, u32 *bytes)
{
	struct user *u = user_of(ctx);
	u32 hi = smp_load_acquire(&slot_head(u, slot)->exports_hi);
	bool live = LIFE_STATE(READ_ONCE(slot_head(u, slot)->life)) == SLOT_LIVE;

	/* beyond it the table has no pages yet */
	*bytes = !live ? 0 : hi < NPUEMU_EXPORT_BYTES ? hi : NPUEMU_EXPORT_BYTES;
	*table = slot_at(u, slot) + OFF_EXPORTS;
	return 0;
}

/* ---- Importing ----------------------------------------------------------------------- */

static int import_index(struct user *u)
{
	struct slot_import *imp = slot_imports(u, u->slot_index);
	u32 i;

	for (i = 0; i < u->imports_hi; i++)
		if (!imp[i].used)
			return (int)i;
	if (i == SLOT_IMPORTS)
		return npuemu_fail(-ENOSPC, "this process imports %u buffers, the most it can",
				   SLOT_IMPORTS);
	if (board_back(u, u->slot_index, OFF_IMPORTS + i * sizeof(*imp), sizeof(*imp)))
		return -ENOSPC;
	u->imports_hi = i + 1;
	WRITE_ONCE(u->slot->imports_hi, i + 1);
	return (int)i;
}

/* The exporter's record still says what the handle says. */
static bool still_exported(struct user *u, u32 slot, const struct npuemu_handle *h)
{
	struct slot_buf *b = &slot_bufs(u, slot)[h->w[3]];

	return READ_ONCE(slot_head(u, slot)->life) == h->w[1] &&
	       smp_load_acquire(&b->state) == BUF_LIVE && READ_ONCE(b->nonce) == h->w[7] &&
	       b->off == h->w[4] && b->bytes == h->w[5] && b->room == h->w[6] &&
	       b->device == (h->w[2] & 0xff);
}

static int import_map(struct user *u, u32 slot, const struct npuemu_handle *h,
		      struct npuemu_buf *buf)
{
	struct user_peer *p = peer_by_life(u, slot, h->w[1]);
	u32 device = h->w[2] & 0xff, id;
	struct user_arena *a;
	u64 i;

	if (!p || !peer_arena(&u->chip, &p->p, device))
		return npuemu_fail(-ESTALE, "the exporter's memory cannot be reached (process %u gone?)",
				   LIFE_PID(h->w[1]));
	a = p->life == u->life ? u->arena[device] : p->arena[device];
	if (p->life == u->life)
		return npuemu_fail(-EINVAL, "the buffer is this process's own: use it as it is");
	if (!a->pagemap) {
		void *m = mmap(NULL, a->a.bytes / PAGE * sizeof(u32), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (m == MAP_FAILED)
			return npuemu_fail(-ENOMEM, "no address space for a page map");
		a->pagemap = m;
		if (region_add(u, (u64)(uintptr_t)a->a.base, a->a.bytes, a, false)) {
			a->pagemap = NULL;
			munmap(m, a->a.bytes / PAGE * sizeof(u32));
			return -ENOMEM;
		}
	}
	if (READ_ONCE(a->pagemap[h->w[4] / PAGE]))
		return npuemu_fail(-EEXIST, "this process has imported the buffer already");
	buf->device = device;
	buf->index = (u32)h->w[3];
	buf->off = h->w[4];
	buf->bytes = h->w[5];
	buf->room = h->w[6];
	buf->ptr = a->a.base + buf->off;
	buf->arena = a;
	buf->imported = true;
	buf->share = &slot_shares(u, slot)[buf->index];
	buf->host = p;
	p->imports++;
	id = (u32)((size_t)((u8 *)buf - npuemu_bufs.base) / npuemu_bufs.size) + 1;
	for (i = buf->off / PAGE; i < (buf->off + buf->room) / PAGE; i++)
		WRITE_ONCE(a->pagemap[i], id);
	return 0;
}

int user_buf_import(struct npuemu *ctx, const struct npuemu_handle *h, struct npuemu_buf *buf)
{
	struct user *u = user_of(ctx);
	u32 slot = h->w[2] >> 8 & 0xffffff;
	struct slot_import *rec;
	int i, err;

	if (h->w[0] != HANDLE_MAGIC || h->w[2] >> 32 != u->chip.board_id ||
	    slot >= NPUEMU_MAX_SLOTS || h->w[3] >= SLOT_BUFS || !h->w[7] ||
	    (h->w[2] & 0xff) >= u->machine.devices || h->w[4] % PAGE || h->w[6] % PAGE ||
	    h->w[6] > u->machine.hbm_bytes || h->w[5] > h->w[6] ||
	    h->w[4] > u->machine.hbm_bytes - h->w[6])
		return npuemu_fail(-EINVAL, "not a handle of a buffer on board \"%s\"", u->name);
	if (!still_exported(u, slot, h))
		return npuemu_fail(-ESTALE, "the exporter (process %u) has freed the buffer or is gone",
				   LIFE_PID(h->w[1]));
	pthread_mutex_lock(&u->lock);
	i = import_index(u);
	if (i < 0) {
		pthread_mutex_unlock(&u->lock);
		return i;
	}
	rec = &slot_imports(u, u->slot_index)[i];
	/* all but @used, at which others look meanwhile */
	rec->slot = slot;
	rec->gen = LIFE_GEN(h->w[1]);
	rec->buf = (u32)h->w[3];
	rec->device = h->w[2] & 0xff;
	rec->off = h->w[4];
	rec->room = h->w[6];
	/* the exporter's free either sees this record, or we see the free */
	smp_store_release(&rec->used, 1);
	smp_mb();
	if (!still_exported(u, slot, h))
		err = npuemu_fail(-ESTALE, "the exporter (process %u) has freed the buffer just now",
				  LIFE_PID(h->w[1]));
	else
		err = import_map(u, slot, h, buf);
	buf->import_index = (u32)i;
	if (err)
		smp_store_release(&rec->used, 0);
	pthread_mutex_unlock(&u->lock);
	return err;
}

/* One import fewer of a dead peer.  One still listed is the next sweep's. */
static void kept_release(struct user *u, struct user_peer *p, u32 device)
{
	struct user_peer **at = &u->kept;

	if (p->imports) {
		punch_unimported(u, p, device);
		return;
	}
	while (*at && *at != p)
		at = &(*at)->next_gone;
	if (*at)
		*at = p->next_gone;
	peer_forget(u, p);
}

int import_free(struct npuemu_buf *buf)
{
	struct user *u = user_of(buf->ctx);
	struct user_peer *p = buf->host;
	struct user_arena *a;
	int err;
	u64 i;

	pthread_mutex_lock(&u->lock);
	a = p->arena[buf->device];
	for (i = buf->off / PAGE; i < (buf->off + buf->room) / PAGE; i++)
		WRITE_ONCE(a->pagemap[i], 0);
	npuemu_fetch_add(&u->chip.epoch, 1);
	err = quiesce_own(u);
	if (!err)
		smp_store_release(&slot_imports(u, u->slot_index)[buf->import_index].used, 0);
	/* its owner may have freed it long ago, and waits for this to give it back */
	if (READ_ONCE(slot_head(u, p->slot)->life) == p->life)
		bell_ring_engine(slot_head(u, p->slot));
	p->imports--;
	if (p->gone && !p->listed && !err)
		kept_release(u, p, buf->device);
	pthread_mutex_unlock(&u->lock);
	return err;
}
