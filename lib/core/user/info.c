// SPDX-License-Identifier: MIT
/*
 * What a board holds, derived from its live slots: capacity in use, memory
 * backed, processes, queues, who waits for what.  And faults, which are the
 * one thing on it that everybody shares.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "user.h"

static bool live(const struct user *u, u32 slot, u64 *life)
{
	*life = READ_ONCE(slot_head(u, slot)->life);
	return LIFE_STATE(*life) == SLOT_LIVE;
}

u64 slot_hbm_backed(const struct user *u, u32 slot, u32 device)
{
	const u64 *w = slot_backed(u, slot, device);
	u64 n = 0, words = (u->machine.hbm_bytes >> NPUEMU_CHUNK_SHIFT) / 64 + 1;
	u64 i;

	if (!READ_ONCE(slot_head(u, slot)->arena[device].fd))
		return 0;
	for (i = 0; i < words && i < BACKED_WORDS; i++)
		n += (u64)__builtin_popcountll(READ_ONCE(w[i]));
	return n << NPUEMU_CHUNK_SHIFT;
}

u64 board_backed(const struct user *u)
{
	u64 n = 0, life;
	u32 s, d;

	for (s = 0; s < NPUEMU_MAX_SLOTS; s++)
		if (live(u, s, &life))
			for (d = 0; d < u->machine.devices; d++)
				n += slot_hbm_backed(u, s, d);
	return n;
}

static u32 bounded(u32 n, u32 max)
{
	return n < max ? n : max;
}

/* Memory of exporters that are gone, kept by importers: each buffer once. */
static u64 orphans_used(const struct user *u, u32 device)
{
	u64 used = 0, life;
	u32 s, i, t, j;

	for (s = 0; s < NPUEMU_MAX_SLOTS; s++) {
		const struct slot_import *imp = slot_imports(u, s);

		if (!live(u, s, &life))
			continue;
		for (i = 0; i < bounded(READ_ONCE(slot_head(u, s)->imports_hi), SLOT_IMPORTS); i++) {
			u64 owner;
			bool first = true;

			if (!READ_ONCE(imp[i].used) || imp[i].device != device ||
			    imp[i].slot >= NPUEMU_MAX_SLOTS)
				continue;
			owner = READ_ONCE(slot_head(u, imp[i].slot)->life);
			if (LIFE_STATE(owner) == SLOT_LIVE && LIFE_GEN(owner) == imp[i].gen)
				continue;
			for (t = 0; t <= s && first; t++) {
				const struct slot_import *o = slot_imports(u, t);
				u32 hi = t == s ? i : bounded(READ_ONCE(slot_head(u, t)->imports_hi),
							      SLOT_IMPORTS);
				if (!live(u, t, &life))
					continue;
				for (j = 0; j < hi; j++)
					if (READ_ONCE(o[j].used) && o[j].slot == imp[i].slot &&
					    o[j].gen == imp[i].gen && o[j].device == device &&
					    o[j].off == imp[i].off)
						first = false;
			}
			if (first)
				used += imp[i].room;
		}
	}
	return used;
}

u64 hbm_used(const struct user *u, u32 device)
{
	u64 used = 0, life;
	u32 s;

	for (s = 0; s < NPUEMU_MAX_SLOTS; s++)
		if (live(u, s, &life))
			used += READ_ONCE(slot_head(u, s)->arena[device].used);
	return used + orphans_used(u, device);
}

int user_query(struct npuemu *ctx, struct npuemu_info *info)
{
	struct user *u = user_of(ctx);
	const struct npuemu_machine *m = &u->machine;

	info->devices = m->devices;
	info->servers = m->servers;
	info->pid_slot = ctx->observer ? NPUEMU_ANY : u->slot_index;
	snprintf(info->host, sizeof(info->host), "user");
	snprintf(info->board, sizeof(info->board), "%s", u->name);
	snprintf(info->machine, sizeof(info->machine), "%.31s", m->name);
	snprintf(info->soc, sizeof(info->soc), "%.31s", m->soc);
	info->has_udma = m->engine[NPUEMU_ENGINE_UDMA].present != 0;
	info->generation = m->generation;
	info->budget_bytes = u->head->budget;
	info->backed_bytes = board_backed(u);
	return 0;
}

static u32 queues_on(const struct user *u, u32 slot, u32 device)
{
	const struct slot_queue *q = slot_queues(u, slot);
	u32 i, n = 0;

	for (i = 1; i < bounded(READ_ONCE(slot_head(u, slot)->queues_hi), SLOT_QUEUES); i++)
		n += READ_ONCE(q[i].used) && (device == NPUEMU_ANY || READ_ONCE(q[i].device) == device);
	return n;
}

int user_device_query(struct npuemu *ctx, u32 device, struct npuemu_device_info *info)
{
	struct user *u = user_of(ctx);
	u64 life;
	u32 s;

	info->device = device;
	info->server = device / u->machine.devices_per_server;
	info->hbm_bytes = u->machine.hbm_bytes;
	for (s = 0; s < NPUEMU_MAX_SLOTS; s++) {
		u32 n;

		if (!live(u, s, &life))
			continue;
		n = queues_on(u, s, device);
		info->queues += n;
		info->processes += n || READ_ONCE(slot_head(u, s)->arena[device].used);
		info->hbm_backed += slot_hbm_backed(u, s, device);
	}
	info->hbm_used = hbm_used(u, device);
	return 0;
}

void sleeper_describe(const struct user *u, const struct slot_sleeper *s, char *out,
		      size_t room)
{
	double sec = (double)(npuemu_now_ns() - (s64)READ_ONCE(s->since_ns)) / 1e9;
	u32 id = READ_ONCE(s->id);

	(void)u;
	switch (READ_ONCE(s->kind)) {
	case SLEEP_CQ:
		if (id != NPUEMU_ANY)
			snprintf(out, room, "a completion of queue %u, for %.1f s", id, sec);
		else
			snprintf(out, room, "a completion on a shared CQ, for %.1f s", sec);
		break;
	case SLEEP_WORD:
		snprintf(out, room, "word %#llx (of slot %u) to meet %#llx, for %.1f s",
			 (unsigned long long)READ_ONCE(s->object), id,
			 (unsigned long long)READ_ONCE(s->expected), sec);
		break;
	default:
		out[0] = '\0';
	}
}

static void add_counters(struct npuemu_counters *sum, const struct npuemu_jfs_counters *c)
{
	const u64 *from = (const u64 *)c;
	u64 *to = (u64 *)sum;
	u32 i;

	_Static_assert(sizeof(*sum) == sizeof(*c), "public and private counters are one layout");
	/* the last three are the queue's own, see link_of_queue() */
	for (i = 0; i < sizeof(*c) / 8 - 3; i++)
		to[i] += READ_ONCE(from[i]);
}

/* What a queue has sent over a link and not yet added to its counters. */
static void link_of_queue(const struct slot_queue *q, u32 from, u32 to,
			  struct npuemu_link_info *info)
{
	if (!READ_ONCE(q->used) || q->device != from || READ_ONCE(q->cnt.link_to) != to)
		return;
	info->wqes += READ_ONCE(q->cnt.link_wqes);
	info->bytes += READ_ONCE(q->cnt.link_bytes);
}

int user_link_query(struct npuemu *ctx, u32 from, u32 to, struct npuemu_link_info *info)
{
	struct user *u = user_of(ctx);
	const struct npuemu_link_class *c = npuemu_machine_link(&u->machine, from, to);
	u64 life;
	u32 s, i;

	info->from = from;
	info->to = to;
	info->latency_ns = c->latency_ns;
	info->mbytes_per_s = c->pair_mbytes_per_s;
	snprintf(info->name, sizeof(info->name), "%.15s", c->name);
	for (s = 0; s < NPUEMU_MAX_SLOTS; s++) {
		const struct npuemu_link_counters *l = (void *)(slot_at(u, s) + OFF_LINKS);

		if (!live(u, s, &life))
			continue;
		l += from * NPUEMU_MAX_DEVICES + to;
		info->wqes += READ_ONCE(l->wqes);
		info->bytes += READ_ONCE(l->bytes);
		for (i = 1; i < bounded(READ_ONCE(slot_head(u, s)->queues_hi), SLOT_QUEUES); i++)
			link_of_queue(&slot_queues(u, s)[i], from, to, info);
	}
	return 0;
}

static void process_fill(const struct user *u, u32 s, u64 life, struct npuemu_process_info *p)
{
	struct slot_head *h = slot_head(u, s);
	const struct slot_queue *q = slot_queues(u, s);
	u32 i;

	memset(p, 0, sizeof(*p));
	p->slot = s;
	p->pid = LIFE_PID(life);
	p->queues = queues_on(u, s, NPUEMU_ANY);
	memcpy(p->comm, h->comm, sizeof(p->comm));
	p->comm[15] = '\0';
	for (i = 0; i < bounded(READ_ONCE(h->segs_hi), SLOT_SEGS); i++)
		p->segments += READ_ONCE(slot_segs(u, s)[i].seq) != 0;
	for (i = 0; i < bounded(READ_ONCE(h->bufs_hi), SLOT_BUFS); i++)
		p->buffers += READ_ONCE(slot_bufs(u, s)[i].state) == BUF_LIVE;
	for (i = 0; i < bounded(READ_ONCE(h->imports_hi), SLOT_IMPORTS); i++)
		p->imports += READ_ONCE(slot_imports(u, s)[i].used) != 0;
	for (i = 0; i < u->machine.devices; i++) {
		p->hbm_used += READ_ONCE(h->arena[i].used);
		p->hbm_backed += slot_hbm_backed(u, s, i);
	}
	for (i = 1; i < bounded(READ_ONCE(h->queues_hi), SLOT_QUEUES); i++)
		if (READ_ONCE(q[i].used))
			add_counters(&p->cnt, &q[i].cnt);
	p->engine_turns = READ_ONCE(h->engine_turns);
	p->engine_parks = READ_ONCE(h->engine_parks);
	p->engine_sleeps = READ_ONCE(h->engine_sleeps);
	p->doorbell_faults = READ_ONCE(h->doorbell_faults);
	for (i = 0; i < SLOT_SLEEPERS; i++)
		if (READ_ONCE(h->sleeper[i].kind)) {
			sleeper_describe(u, &h->sleeper[i], p->waits, sizeof(p->waits));
			break;
		}
}

int user_process_list(struct npuemu *ctx, struct npuemu_process_info *list, int n)
{
	struct user *u = user_of(ctx);
	int all = 0;
	u64 life;
	u32 s;

	for (s = 0; s < NPUEMU_MAX_SLOTS; s++) {
		if (!live(u, s, &life) || !slot_alive(u, s, life))
			continue;
		if (all < n)
			process_fill(u, s, life, &list[all]);
		all++;
	}
	return all;
}

void queue_stat_fill(const struct slot_queue *s, struct npuemu_queue_stat *stat)
{
	stat->id = READ_ONCE(s->id);
	stat->device = READ_ONCE(s->device);
	stat->type = READ_ONCE(s->type);
	stat->state = READ_ONCE(s->state);
	stat->pi = READ_ONCE(s->pi);
	stat->ci = READ_ONCE(s->ci);
	stat->depth = READ_ONCE(s->depth);
	stat->last_status = READ_ONCE(s->last_status);
	memset(&stat->cnt, 0, sizeof(stat->cnt));
	add_counters(&stat->cnt, &s->cnt);
	memcpy(stat->cause, s->cause, sizeof(stat->cause));
	stat->cause[sizeof(stat->cause) - 1] = '\0';
}

int user_queue_list(struct npuemu *ctx, u32 slot, struct npuemu_queue_stat *list, int n)
{
	struct user *u = user_of(ctx);
	const struct slot_queue *q;
	int all = 0;
	u64 life;
	u32 i;

	if (slot >= NPUEMU_MAX_SLOTS || !live(u, slot, &life))
		return npuemu_fail(-ESRCH, "no live process in slot %u", slot);
	q = slot_queues(u, slot);
	for (i = 1; i < bounded(READ_ONCE(slot_head(u, slot)->queues_hi), SLOT_QUEUES); i++) {
		if (!READ_ONCE(q[i].used))
			continue;
		if (all < n) {
			memset(&list[all], 0, sizeof(list[all]));
			list[all].size = sizeof(list[all]);
			queue_stat_fill(&q[i], &list[all]);
		}
		all++;
	}
	return all;
}

/* Make the generation odd; somebody who died with it odd is pushed aside. */
static u32 faults_begin(struct board_faults *f)
{
	u32 gen, tries;

	for (tries = 0;; tries++) {
		gen = READ_ONCE(f->gen);
		if ((!(gen & 1) || tries > 1000) && npuemu_cas(&f->gen, gen, (gen | 1) + (gen & 1) * 2))
			return (gen | 1) + (gen & 1) * 2;
		usleep(100);
	}
}

int fault_inject(struct npuemu *ctx, const struct npuemu_fault_rec *fault)
{
	struct user *u = user_of(ctx);
	struct board_faults *f = &u->head->faults;
	u32 gen = faults_begin(f), n = READ_ONCE(f->n);
	int err = 0;

	if (n >= NPUEMU_MAX_FAULTS) {
		err = npuemu_fail(-ENOSPC, "%u faults are armed already: clear them first",
				  NPUEMU_MAX_FAULTS);
	} else {
		f->rec[n] = *fault;
		f->rec[n].serial = gen;
		WRITE_ONCE(f->n, n + 1);
	}
	smp_store_release(&f->gen, gen + 1);
	return err;
}

int fault_clear(struct npuemu *ctx)
{
	struct board_faults *f = &user_of(ctx)->head->faults;
	u32 gen = faults_begin(f);

	WRITE_ONCE(f->n, 0);
	smp_store_release(&f->gen, gen + 1);
	return 0;
}

u32 faults_read(struct npuemu_chip *chip, struct npuemu_fault_rec *out)
{
	struct user *u = chip->host;
	struct board_faults *f = &u->head->faults;
	u32 tries, gen, n, i, k;

	if (board_check(&u->base))
		return NPUEMU_BOARD_GONE;
	for (tries = 0; tries < 1000; tries++) {
		gen = smp_load_acquire(&f->gen);
		n = READ_ONCE(f->n);
		if (gen & 1 || n > NPUEMU_MAX_FAULTS) {
			npuemu_relax();
			continue;
		}
		for (i = 0; i < n; i++)
			for (k = 0; k < sizeof(*out) / 4; k++)
				((u32 *)&out[i])[k] = smp_load_acquire(&((u32 *)&f->rec[i])[k]);
		if (READ_ONCE(f->gen) == gen)
			return n;
	}
	return 0;
}
