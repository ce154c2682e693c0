// SPDX-License-Identifier: MIT
/*
 * Events of several processes.  Their counts, and the time of the latest record, lie in
 * device memory of the process that made them; whoever has opened one counts there as
 * well.  Who waits looks every millisecond.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "share.h"

#define CELLS		512u
#define ALIVE_NS	1000000000ll	/* so often it is asked whether the maker still lives */

struct cell {			/* 64 bytes, for all processes alike */
	u64 nonce;		/* of the event that it is; 0: destroyed */
	u64 recorded;
	u64 done;
	u64 done_ns;
	u64 error;		/* of the latest record */
	u64 reserved[3];
};

struct block {
	struct block *next;
	u32 device;
	struct npuemu_buf *buf;
	struct cell *cell;
	u32 at;
	u64 taken[CELLS / 64];
};

struct npuacl_event_ipc {
	struct cell *cell;
	u64 nonce;
	struct block *block;		/* made here */
	u32 index;
	struct npuacl_import *import;	/* opened here */
	struct npuacl_key key;
	s64 next_look;
	bool lost;			/* its maker has ended */
};

static struct {
	pthread_mutex_t lock;
	struct block *first;
} cells = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* What is left of an event whose device was reset: all is over. */
static struct cell over = { .done = ~0ull };

/* ---- Cells ----------------------------------------------------------------------------- */

/* cells.lock held */
static aclError block_make(struct npuacl_device *d)
{
	struct block *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "out of host memory");
	err = npuemu_buf_alloc(npuacl.board, d->phys, CELLS * sizeof(struct cell), 0, &b->buf);
	if (err) {
		free(b);
		return npuacl_fail_core(err, ACL_ERROR_RT_NO_EVENT_RESOURCE, "memory for events of several processes");
	}
	b->cell = npuemu_buf_ptr(b->buf);
	b->device = d->id;
	b->next = cells.first;
	cells.first = b;
	return ACL_SUCCESS;
}

/* The one that was free for the longest time, or nearly so: others may still look at it. */
static bool take_of(struct block *b, u32 *index)
{
	u32 n, i;

	for (n = 0; n < CELLS; n++) {
		i = (b->at + n) % CELLS;
		if (b->taken[i / 64] >> i % 64 & 1)
			continue;
		b->taken[i / 64] |= 1ull << i % 64;
		b->at = i + 1;
		*index = i;
		return true;
	}
	return false;
}

static aclError cell_take(struct npuacl_device *d, struct npuacl_event_ipc *x)
{
	aclError ret = ACL_SUCCESS;
	struct block *b;

	pthread_mutex_lock(&cells.lock);
	while (!ret) {
		for (b = cells.first; b && (b->device != d->id || !take_of(b, &x->index)); b = b->next)
			;
		x->block = b;
		if (b)
			break;
		ret = block_make(d);
	}
	pthread_mutex_unlock(&cells.lock);
	if (!ret)
		x->cell = &x->block->cell[x->index];
	return ret;
}

aclError npuacl_event_ipc_make(struct npuacl_event *e)
{
	struct npuacl_event_ipc *x = calloc(1, sizeof(*x));
	static u64 serial;
	aclError ret;

	if (!x)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "out of host memory");
	ret = cell_take(e->dev, x);
	if (ret) {
		free(x);
		return ret;
	}
	memset(x->cell, 0, sizeof(*x->cell));
	x->nonce = npuemu_fetch_add(&serial, 1) + 1;
	smp_store_release(&x->cell->nonce, x->nonce);
	e->ipc = x;
	return ACL_SUCCESS;
}

void npuacl_event_ipc_free(struct npuacl_event *e)
{
	struct npuacl_event_ipc *x = e->ipc;

	if (!x)
		return;
	e->ipc = NULL;
	npuacl_export_drop(x->key.id);
	pthread_mutex_lock(&cells.lock);
	if (x->block && x->cell != &over) {
		WRITE_ONCE(x->cell->nonce, 0);
		x->block->taken[x->index / 64] &= ~(1ull << x->index % 64);
	}
	pthread_mutex_unlock(&cells.lock);
	npuacl_import_put(x->import);
	free(x);
}

/* ---- What event.c asks for ---------------------------------------------------------------- */

static bool is_gone(const struct npuacl_event_ipc *x, const struct cell *c)
{
	return c != &over && smp_load_acquire(&c->nonce) != x->nonce;
}

u64 npuacl_event_ipc_asked(struct npuacl_event *e, bool record)
{
	struct cell *c = READ_ONCE(e->ipc->cell);

	if (record && !is_gone(e->ipc, c) && c != &over)
		return __atomic_add_fetch(&c->recorded, 1, __ATOMIC_ACQ_REL);
	return smp_load_acquire(&c->recorded);
}

void npuacl_event_ipc_recorded(struct npuacl_event *e, u64 generation, aclError error)
{
	struct cell *c = READ_ONCE(e->ipc->cell);
	u64 done;

	if (c == &over || is_gone(e->ipc, c))
		return;
	done = smp_load_acquire(&c->done);
	while (done < generation) {
		/* before: who sees the count may look at them */
		WRITE_ONCE(c->done_ns, (u64)npuemu_now_ns());
		WRITE_ONCE(c->error, (u64)(u32)error);
		if (__atomic_compare_exchange_n(&c->done, &done, generation, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			break;
	}
}

bool npuacl_event_ipc_lost(const struct npuacl_event *e)
{
	return e->ipc && READ_ONCE(e->ipc->lost);
}

/* Now and again: a maker that has been killed will not record any more. */
static bool look_alive(struct npuacl_event_ipc *x)
{
	s64 now = npuemu_now_ns(), next = READ_ONCE(x->next_look);

	if (!x->import || now < next)
		return true;
	WRITE_ONCE(x->next_look, now + ALIVE_NS);
	if (!next || npuacl_export_alive(x->key.id))
		return true;
	WRITE_ONCE(x->lost, true);
	return false;
}

bool npuacl_event_ipc_reached(struct npuacl_event *e, u64 generation)
{
	struct npuacl_event_ipc *x = e->ipc;
	struct cell *c = READ_ONCE(x->cell);

	if (smp_load_acquire(&c->done) >= generation || is_gone(x, c))
		return true;
	return READ_ONCE(x->lost) || !look_alive(x);
}

aclError npuacl_event_ipc_check(struct npuacl_event *e, const char *what)
{
	struct cell *c = READ_ONCE(e->ipc->cell);

	if (c == &over)
		return npuacl_fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: the device of event %u was reset", what, e->id);
	if (is_gone(e->ipc, c))
		return npuacl_fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: event %u was destroyed by process %u, which made it", what,
				   e->id, e->ipc->import ? e->ipc->import->exporter : 0);
	return ACL_SUCCESS;
}

aclError npuacl_event_ipc_when(struct npuacl_event *e, u64 *ns)
{
	struct cell *c = READ_ONCE(e->ipc->cell);
	u64 asked = smp_load_acquire(&c->recorded);

	*ns = READ_ONCE(c->done_ns);
	return !asked || smp_load_acquire(&c->done) < asked || READ_ONCE(c->error) ?
		ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID : ACL_SUCCESS;
}

aclError npuacl_event_ipc_error(struct npuacl_event *e)
{
	return (aclError)READ_ONCE(READ_ONCE(e->ipc->cell)->error);
}

/* ---- Other processes -------------------------------------------------------------------------- */

aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle *handle)
{
	static const char what[] = "aclrtIpcGetEventHandle";
	struct npuacl_record r = { .kind = NPUACL_EXPORT_EVENT, .size = sizeof(struct cell), .any_process = 1 };
	struct npuacl_event_ipc *x;
	struct npuacl_event *e;
	aclError ret = npuacl_event_find(event, &e, what);

	if (ret)
		return ret;
	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: handle is NULL", what);
	x = e->ipc;
	if (!x)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: event %u was not made with ACL_EVENT_IPC", what, e->id);
	ret = npuacl_event_ipc_check(e, what);
	if (!ret && x->import)
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				  "%s: event %u was opened here: hand on the handle that process %u gave out", what, e->id,
				  x->import->exporter);
	pthread_mutex_lock(&e->lock);
	if (!ret && !x->key.id && x->block) {
		r.offset = x->index * sizeof(struct cell);
		r.device = e->dev->phys;
		ret = npuacl_export_add(what, x->block->buf, &r, &x->key);
	}
	if (!ret)
		npuacl_key_pack(handle, NPUACL_EXPORT_EVENT, &x->key);
	pthread_mutex_unlock(&e->lock);
	return ret;
}

/* In the process that made it, the cell is at hand. */
static aclError cell_find(const char *what, const struct npuacl_key *key, struct npuacl_event_ipc *x)
{
	struct npuacl_record r;
	struct npuemu_buf *own;
	aclError ret = npuacl_export_find(what, key, NPUACL_EXPORT_EVENT, &r);
	u8 *base;

	if (ret)
		return ret;
	own = npuacl_export_buf(key->id);
	if (!own) {
		ret = npuacl_import_get(what, &r, &x->import);
		if (ret)
			return ret;
	}
	base = own ? npuemu_buf_ptr(own) : x->import->ptr;
	if (r.size != sizeof(struct cell) || r.offset % sizeof(struct cell)) {
		npuacl_import_put(x->import);
		return npuacl_fail(ACL_ERROR_RT_IPC_ERROR, "%s: the record of process %u is damaged", what, r.exporter);
	}
	x->cell = (struct cell *)(void *)(base + r.offset);
	x->nonce = smp_load_acquire(&x->cell->nonce);
	if (x->nonce)
		return ACL_SUCCESS;
	npuacl_import_put(x->import);
	return npuacl_fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: the event was destroyed just now", what);
}

aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent *event)
{
	static const char what[] = "aclrtIpcOpenEventHandle";
	struct npuacl_event_ipc *x;
	struct npuacl_key key;
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!event)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: event is NULL", what);
	ret = npuacl_key_unpack(what, &handle, NPUACL_EXPORT_EVENT, &key);
	if (!ret)
		ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	x = calloc(1, sizeof(*x));
	if (!x)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	ret = cell_find(what, &key, x);
	if (!ret) {
		x->key = key;
		ret = npuacl_event_opened(ctx->dev, x, event, what);
		if (ret)
			npuacl_import_put(x->import);
	}
	if (ret)
		free(x);
	return ret;
}

/* ---- The end ---------------------------------------------------------------------------------------- */

/* Handles are dead; who still waits, on another device, finds that all is over. */
static void events_end(s32 device)
{
	struct npuacl_event *e;
	u32 i;

	for (i = 0; i < READ_ONCE(npuacl_events.used); i++) {
		e = (void *)(npuacl_events.base + (size_t)i * npuacl_events.size);
		if (!npuemu_slab_alive(&npuacl_events, e) || !e->ipc || (device >= 0 && e->dev->id != (u32)device))
			continue;
		if (!npuemu_slab_retire(&npuacl_events, e))
			continue;
		npuacl_export_drop(e->ipc->key.id);
		pthread_mutex_lock(&cells.lock);
		if (!e->ipc->import)
			WRITE_ONCE(e->ipc->cell->nonce, 0);
		WRITE_ONCE(e->ipc->cell, &over);
		pthread_mutex_unlock(&cells.lock);
		npuacl_event_put(e);
	}
}

void npuacl_event_cells_release(s32 device)
{
	struct block **at = &cells.first, *b;

	events_end(device);
	pthread_mutex_lock(&cells.lock);
	while ((b = *at)) {
		if (device >= 0 && b->device != (u32)device) {
			at = &b->next;
			continue;
		}
		*at = b->next;
		npuemu_buf_free(b->buf);
		free(b);
	}
	pthread_mutex_unlock(&cells.lock);
}

void npuacl_event_cells_fork(void)
{
	memset(&cells, 0, sizeof(cells));
	pthread_mutex_init(&cells.lock, NULL);
}
