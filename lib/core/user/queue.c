// SPDX-License-Identifier: MIT
/*
 * Rings and the objects around them.  All rings of a process lie in one range,
 * all doorbells in another, all index records in a third, so that thousands of
 * queues take three mappings.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "user.h"

#define RING_BYTES	(16ull << 30)	/* of address space */
#define RECORDS		32768u
#define RECORD_U32	16u		/* 64 bytes apart: no two share a line */

static void *reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_DONTFORK);
	return p;
}

int rings_init(struct user *u)
{
	u->ring_base = reserve(RING_BYTES);
	u->records = reserve((size_t)RECORDS * RECORD_U32 * 4);
	u->records_free = malloc(RECORDS * sizeof(u32));
	if (!u->ring_base || !u->records || !u->records_free ||
	    extents_init(&u->ring_free, RING_BYTES))
		return npuemu_fail(-ENOMEM, "no address space for rings (16 GiB, unbacked): ulimit -v?");
	return 0;
}

void rings_exit(struct user *u)
{
	if (u->ring_base)
		munmap(u->ring_base, RING_BYTES);
	if (u->records)
		munmap(u->records, (size_t)RECORDS * RECORD_U32 * 4);
	free(u->records_free);
	extents_destroy(&u->ring_free);
}

static u64 ring_take(struct user *u, u64 bytes)
{
	return extents_take(&u->ring_free, (bytes + PAGE - 1) & ~(u64)(PAGE - 1), PAGE);
}

/* Back to zero, and back to the system. */
static void ring_give(struct user *u, u64 off, u64 bytes)
{
	bytes = (bytes + PAGE - 1) & ~(u64)(PAGE - 1);
	madvise(u->ring_base + off, bytes, MADV_DONTNEED);
	extents_give(&u->ring_free, off, bytes);
}

static u32 *record_take(struct user *u)
{
	u32 i;

	if (u->records_nfree)
		i = u->records_free[--u->records_nfree];
	else if (u->records_used < RECORDS)
		i = u->records_used++;
	else
		return NULL;
	u->records[i * RECORD_U32] = 0;
	return &u->records[i * RECORD_U32];
}

static void record_give(struct user *u, u32 *rec)
{
	if (rec)
		u->records_free[u->records_nfree++] = (u32)(rec - u->records) / RECORD_U32;
}

/* ---- Completion queues ----------------------------------------------------------- */

int user_cq_create(struct npuemu_cq *cq, u32 depth, bool timed)
{
	struct user *u = user_of(cq->ctx);
	u64 bytes = (u64)depth * NPUEMU_CQE_SIZE, off;

	pthread_mutex_lock(&u->lock);
	cq->times_bytes = timed ? depth * sizeof(u64) : 0;
	off = ring_take(u, bytes + cq->times_bytes);
	cq->ci_rec = off == ~0ull ? NULL : record_take(u);
	if (off != ~0ull && !cq->ci_rec)
		ring_give(u, off, bytes + cq->times_bytes);
	pthread_mutex_unlock(&u->lock);
	if (!cq->ci_rec)
		return npuemu_fail(-ENOSPC, "no room for another completion queue of %u entries in this process",
				   depth);
	cq->ring_off = off;
	cq->mask = depth - 1;
	cq->jfc.ring = (void *)(u->ring_base + off);
	cq->ring = (const u64 *)(void *)(u->ring_base + off);
	cq->jfc.times = timed ? (u64 *)(void *)(u->ring_base + off + bytes) : NULL;
	cq->times = cq->jfc.times;
	cq->jfc.ci_rec = cq->ci_rec;
	cq->jfc.mask = depth - 1;
	cq->jfc.shared = cq->shared;
	cq->jfc.host = cq;
	return 0;
}

void user_cq_destroy(struct npuemu_cq *cq)
{
	struct user *u = user_of(cq->ctx);

	pthread_mutex_lock(&u->lock);
	ring_give(u, cq->ring_off, (u64)(cq->mask + 1) * NPUEMU_CQE_SIZE + cq->times_bytes);
	record_give(u, cq->ci_rec);
	pthread_mutex_unlock(&u->lock);
}

/* ---- Receive queues ---------------------------------------------------------------- */

/* A free index of a table; ids carry a generation above it.  u->lock held. */
static u32 free_index(void *const *table)
{
	u32 i;

	for (i = 1; i < SLOT_QUEUES; i++)
		if (!READ_ONCE(table[i]))
			return i;
	return 0;
}

int user_rq_create(struct npuemu_rq *rq, const struct npuemu_rq_attr *attr)
{
	struct user *u = user_of(rq->ctx);
	u32 sge = attr->max_sge ? attr->max_sge : 1;
	u64 bytes = (u64)attr->depth * sge * sizeof(struct npuemu_sge), off;
	u32 i;

	pthread_mutex_lock(&u->lock);
	i = free_index((void *const *)u->rqs);
	off = i ? ring_take(u, bytes) : ~0ull;
	rq->pi_rec = off == ~0ull ? NULL : record_take(u);
	if (!rq->pi_rec) {
		if (off != ~0ull)
			ring_give(u, off, bytes);
		pthread_mutex_unlock(&u->lock);
		return npuemu_fail(-ENOSPC, "no room for another receive queue in this process");
	}
	u->queue_gen[i]++;
	rq->index = i;
	rq->device = attr->device;
	rq->ring_off = off;
	rq->ring = (void *)(u->ring_base + off);
	rq->jfr.ring = rq->ring;
	rq->jfr.pi_rec = rq->pi_rec;
	rq->consumed = &rq->jfr.ci;
	rq->jfr.jfc = &rq->cq->jfc;
	rq->jfr.mask = attr->depth - 1;
	rq->jfr.max_sge = sge;
	rq->jfr.token = attr->flags & NPUEMU_RQ_TOKEN;
	rq->jfr.token_value = rq->jfr.token && !attr->token_value ? user_random_token() :
			      attr->token_value;
	rq->jfr.id = (u32)u->queue_gen[i] << 12 | i;
	rq->jfr.user_data = attr->user_data;
	npuemu_fetch_add(&rq->cq->jfc.attached, 1);
	smp_store_release(&u->rqs[i], rq);
	pthread_mutex_unlock(&u->lock);
	return 0;
}

/* Nobody is in the middle of delivering when this returns true. */
static bool inbox_own(struct user *u)
{
	s64 deadline = npuemu_now_ns() + GRACE_NS;

	while (!npuemu_owner_try(u->inbox.owner)) {
		npuemu_relax();
		if (npuemu_now_ns() > deadline)
			return false;
	}
	return true;
}

int user_rq_destroy(struct npuemu_rq *rq)
{
	struct user *u = user_of(rq->ctx);

	if (!inbox_own(u))
		return npuemu_fail(-ETIMEDOUT, "a delivery into receive queue %u has not ended for 10 s",
				   rq->jfr.id);
	smp_store_release(&u->rqs[rq->index], NULL);
	npuemu_owner_put(u->inbox.owner);
	pthread_mutex_lock(&u->lock);
	npuemu_fetch_add(&rq->cq->jfc.attached, -1u);
	ring_give(u, rq->ring_off, (u64)(rq->jfr.mask + 1) * rq->jfr.max_sge * sizeof(struct npuemu_sge));
	record_give(u, rq->pi_rec);
	pthread_mutex_unlock(&u->lock);
	return 0;
}

static void eid_fill(const struct user *u, u32 device, struct npuemu_eid *eid)
{
	eid->w[0] = NPUEMU_EID_MAGIC;
	eid->w[1] = u->chip.board_id;
	eid->w[2] = device;
	eid->w[3] = NPUEMU_EID3(u->slot_index, LIFE_GEN(u->life), device);
}

int user_rq_query(struct npuemu_rq *rq, struct npuemu_rq_info *info)
{
	info->id = rq->jfr.id;
	info->device = rq->device;
	info->depth = rq->jfr.mask + 1;
	info->posted = READ_ONCE(*rq->pi_rec);
	info->consumed = READ_ONCE(rq->jfr.ci);
	eid_fill(user_of(rq->ctx), rq->device, &info->eid);
	return 0;
}

/* ---- Send queues --------------------------------------------------------------------- */

static u32 *db_word(struct user *u, u32 index)
{
	return (u32 *)(void *)(u->db_alias + (size_t)index * NPUEMU_DB_PAGE_SIZE + NPUEMU_DB_PI);
}

static int chaos_window(struct npuemu_queue *q, u64 seed)
{
	q->jfs.win = calloc(1, sizeof(*q->jfs.win));
	if (!q->jfs.win)
		return npuemu_fail(-ENOMEM, "out of memory");
	q->jfs.win->rng = seed ^ (u64)q->jfs.id << 32;
	q->jfs.chaos = true;
	return 0;
}

/* The record on the board, and everything the engine needs.  u->lock held. */
static int queue_setup(struct user *u, struct npuemu_queue *q,
		       const struct npuemu_queue_attr *attr, u32 i)
{
	struct slot_queue *s = &slot_queues(u, u->slot_index)[i];
	struct npuemu_jfs *j = &q->jfs;
	const size_t rest = offsetof(struct slot_queue, used);

	if (board_back(u, u->slot_index, OFF_QUEUES + i * sizeof(*s), sizeof(*s)))
		return -ENOSPC;
	/* the owner word goes on counting from where it was: others may look at it */
	memset((u8 *)s + rest, 0, sizeof(*s) - rest);
	u->queue_gen[i]++;
	q->index = i;
	q->db = db_word(u, i);
	memset(u->db_alias + (size_t)i * NPUEMU_DB_PAGE_SIZE, 0, 192);
	q->view.ring = (void *)(u->ring_base + q->ring_off);
	q->view.mask = attr->depth - 1;
	q->view.depth = attr->depth;
	q->cold = 1;
	j->ring = q->view.ring;
	j->mask = attr->depth - 1;
	j->db_pi = q->db;
	j->owner = &s->owner;
	j->jfc = &q->cq->jfc;
	j->chip = &u->chip;
	j->error_suspend = attr->error_suspend;
	j->cnt = &s->cnt;
	j->id = (u32)u->queue_gen[i] << 12 | i;
	j->device = attr->device;
	j->type = attr->type;
	j->rnr_retry = attr->rnr_retry;
	j->ack_timeout_ns = (attr->ack_timeout_ms ? attr->ack_timeout_ms : 8000) * 1000000ull;
	j->user_data = attr->user_data;
	j->cause = s->cause;
	j->host = q;
	j->link_to = attr->device;
	q->stale = true;
	q->fresh = READ_ONCE(q->cq->jfc.pi);
	if (u->chip.chaos_seed && chaos_window(q, u->chip.chaos_seed))
		return -ENOMEM;
	npuemu_jfs_init(j);
	s->id = j->id;
	WRITE_ONCE(s->device, attr->device);
	s->type = attr->type;
	s->depth = attr->depth;
	s->state = j->state;
	WRITE_ONCE(s->used, 1);
	if (i >= u->slot->queues_hi)
		WRITE_ONCE(u->slot->queues_hi, i + 1);
	return 0;
}

int user_queue_create(struct npuemu_queue *q, const struct npuemu_queue_attr *attr)
{
	struct user *u = user_of(q->ctx);
	u32 kind = attr->type == NPUEMU_QUEUE_SDMA ? NPUEMU_ENGINE_SDMA : NPUEMU_ENGINE_UDMA, i;
	u64 bytes = (u64)attr->depth * NPUEMU_BB_SIZE;
	int err;

	if (!u->machine.engine[kind].present)
		return npuemu_fail(-EOPNOTSUPP, "a %.31s has no %s engine (NPUEMU_MACHINE=950 has)",
				   u->machine.name, kind == NPUEMU_ENGINE_SDMA ? "SDMA" : "UDMA");
	pthread_mutex_lock(&u->lock);
	i = free_index((void *const *)u->queues);
	q->ring_off = i ? ring_take(u, bytes) : ~0ull;
	if (q->ring_off == ~0ull) {
		pthread_mutex_unlock(&u->lock);
		return npuemu_fail(-ENOSPC, "no room for another queue in this process (%u at most)",
				   SLOT_QUEUES - 1);
	}
	err = queue_setup(u, q, attr, i);
	if (err) {
		ring_give(u, q->ring_off, bytes);
	} else {
		npuemu_fetch_add(&q->cq->jfc.attached, 1);
		smp_store_release(&u->queues[i], q);
	}
	pthread_mutex_unlock(&u->lock);
	return err;
}

int user_queue_destroy(struct npuemu_queue *q)
{
	struct user *u = user_of(q->ctx);
	u64 bit = 1ull << (q->index % 64);
	struct slot_queue *s = &slot_queues(u, u->slot_index)[q->index];
	bool inbox;
	int err;

	/* until all of it is gone nobody may be given its index */
	pthread_mutex_lock(&u->lock);
	/* a stuck owner: leave the queue's memory alone rather than pull it away */
	err = queue_own(q);
	inbox = !err && q->rq && inbox_own(u);
	if (!err && q->rq && !inbox) {
		npuemu_jfs_release(&q->jfs);
		err = npuemu_fail(-ETIMEDOUT, "a delivery to queue %u has not ended for 10 s",
				  q->jfs.id);
	}
	if (err) {
		pthread_mutex_unlock(&u->lock);
		return err;
	}
	npuemu_jfs_modify(&q->jfs, NPUEMU_QS_RESET);
	/* a post through the dead handle finds no room */
	q->view.pi = 0;
	q->view.ci = 0;
	smp_store_release(&u->queues[q->index], NULL);
	if (inbox)
		npuemu_owner_put(u->inbox.owner);
	WRITE_ONCE(s->used, 0);
	npuemu_fetch_and(&u->hot[q->index / 64], ~bit);
	npuemu_fetch_and(&u->raw[q->index / 64], ~bit);
	npuemu_fetch_and(&u->waiting[q->index / 64], ~bit);
	if (q->jfs.raw)
		doorbell_protect(u, q->index, false);
	npuemu_jfs_release(&q->jfs);
	npuemu_fetch_add(&q->cq->jfc.attached, -1u);
	ring_give(u, q->ring_off, (u64)q->view.depth * NPUEMU_BB_SIZE);
	q->view.depth = 0;
	pthread_mutex_unlock(&u->lock);
	free(q->jfs.fault);
	free(q->jfs.many);
	free(q->jfs.win);
	return 0;
}

int user_queue_modify(struct npuemu_queue *q, u32 state)
{
	static const char *const names[] = { "RESET", "READY", "SUSPENDED", "ERROR" };
	u32 was;
	int err = queue_own(q);

	if (err)
		return err;
	was = q->jfs.state;
	err = npuemu_jfs_modify(&q->jfs, state);
	if (!err && state == NPUEMU_QS_RESET) {
		smp_store_release(q->db, 0);
		smp_store_release(q->db - NPUEMU_DB_PI / 4, 0);
		q->view.pi = 0;
		q->view.ci = 0;
		q->stale = true;
		q->fresh = READ_ONCE(q->cq->jfc.pi);
	}
	queue_publish(q);
	npuemu_jfs_release(&q->jfs);
	if (err)
		return npuemu_fail(err, "queue %u: %s -> %s is not a legal change (RESET -> READY <-> SUSPENDED, any -> ERROR, any -> RESET)",
				   q->jfs.id, names[was & 3], names[state & 3]);
	queue_heat(user_of(q->ctx), q);
	return 0;
}

int user_queue_map(struct npuemu_queue *q, struct npuemu_queue_map *map)
{
	struct user *u = user_of(q->ctx);
	u8 *page = u->db_user + (size_t)q->index * NPUEMU_DB_PAGE_SIZE;
	int err = queue_own(q);

	if (err)
		return err;
	q->jfs.raw = true;
	npuemu_fetch_or(&u->raw[q->index / 64], 1ull << (q->index % 64));
	npuemu_jfs_release(&q->jfs);
	map->id = q->jfs.id;
	eid_fill(u, q->jfs.device, &map->eid);
	map->sq = q->view.ring;
	map->sq_depth = q->view.depth;
	map->cq = q->cq->jfc.ring;
	map->cq_depth = q->cq->mask + 1;
	map->db = (u32 *)(void *)(page + NPUEMU_DB_PI);
	map->db_page = page;
	map->cq_db = q->cq->ci_rec;
	/* hot now; when the engine cools it, the page is armed */
	queue_heat(u, q);
	return 0;
}

int user_queue_query(struct npuemu_queue *q, struct npuemu_queue_stat *stat)
{
	struct user *u = user_of(q->ctx);

	queue_stat_fill(&slot_queues(u, u->slot_index)[q->index], stat);
	/* others read what the last turn published; ours as it is now, no older than the CQEs that are there */
	stat->state = READ_ONCE(q->jfs.state);
	stat->pi = READ_ONCE(q->jfs.pi);
	stat->ci = READ_ONCE(q->jfs.ci);
	stat->last_status = READ_ONCE(q->jfs.last_status);
	return 0;
}

struct npuemu_queue *user_queue_by_id(struct npuemu *ctx, u32 id)
{
	struct npuemu_queue *q = smp_load_acquire(&user_of(ctx)->queues[id & (SLOT_QUEUES - 1)]);

	return q && q->jfs.id == id ? q : NULL;
}
