// SPDX-License-Identifier: MIT
/*
 * The group: device memory that all ranks of a communicator see, each through its
 * own mapping.  Who is in it, who is alive, and what went wrong.
 *
 * A rank may die at any instruction.  Others notice while they wait, since its process
 * is gone from the board, and fail the group: whoever says first why is heard, and
 * every rank ends with that.  A failed group stays so; a new communicator is a new one.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "comm.h"

#define LOOK_NS		100000000ll	/* are they alive? */

static struct {
	pthread_mutex_t lock;
	struct hccl_local *first;
} here = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- Groups of this process ----------------------------------------------------------- */

static void add(struct hccl_local *l)
{
	pthread_mutex_init(&l->lock, NULL);
	l->refs = 1;
	l->next = here.first;
	here.first = l;
}

HcclResult hccl_group_make(const char *what, struct npuacl_device *dev, const char *name, struct hccl_local **out)
{
	struct hccl_local *l = calloc(1, sizeof(*l));
	struct npuacl_window w;
	aclError ret;
	int err;

	hccl_begin();
	if (!l)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	err = npuemu_buf_alloc(npuacl.board, dev->phys, sizeof(*l->group), 0, &l->buf);
	if (err) {
		free(l);
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: %zu bytes for a communicator on device %u: %s", what,
				 sizeof(*l->group), dev->id, npuemu_errmsg());
	}
	ret = npuacl_window_offer(what, l->buf, sizeof(*l->group), dev->phys, &w);
	if (ret) {
		npuemu_buf_free(l->buf);
		free(l);
		return hccl_fail_acl(ret, what);
	}
	l->key = w.key;
	l->group = npuemu_buf_ptr(l->buf);
	hccl_slots_begin(l->group);
	snprintf(l->group->name, sizeof(l->group->name), "%s", name);
	l->group->version = HCCL_VERSION;
	smp_store_release(&l->group->magic, HCCL_MAGIC);
	pthread_mutex_lock(&here.lock);
	add(l);
	pthread_mutex_unlock(&here.lock);
	*out = l;
	return HCCL_SUCCESS;
}

/* here.lock held */
static HcclResult import(const char *what, const struct npuacl_key *key, struct hccl_local **out)
{
	struct hccl_local *l = calloc(1, sizeof(*l));
	aclError ret;
	u8 *ptr;

	hccl_begin();
	if (!l)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	ret = npuacl_window_open(what, key, &l->import, &ptr);
	if (ret) {
		free(l);
		return hccl_fail_acl(ret, what);
	}
	l->key = *key;
	l->group = (struct hccl_group *)ptr;
	if (smp_load_acquire(&l->group->magic) != HCCL_MAGIC || l->group->version != HCCL_VERSION) {
		npuacl_import_put(l->import);
		free(l);
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: what the root info stands for is no communicator, or another version's",
				 what);
	}
	add(l);
	*out = l;
	return HCCL_SUCCESS;
}

HcclResult hccl_group_open(const char *what, const struct npuacl_key *key, struct hccl_local **out)
{
	HcclResult ret = HCCL_SUCCESS;
	struct hccl_local *l;

	pthread_mutex_lock(&here.lock);
	for (l = here.first; l && (l->key.id != key->id || l->key.secret != key->secret); l = l->next)
		;
	if (l)
		WRITE_ONCE(l->refs, l->refs + 1);	/* read without the lock by hccl_wake_local() */
	else
		ret = import(what, key, &l);
	pthread_mutex_unlock(&here.lock);
	if (!ret)
		*out = l;
	return ret;
}

void hccl_local_put(struct hccl_local *l)
{
	struct hccl_local **at = &here.first;

	pthread_mutex_lock(&here.lock);
	WRITE_ONCE(l->refs, l->refs - 1);
	if (l->refs) {
		pthread_mutex_unlock(&here.lock);
		return;
	}
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	pthread_mutex_unlock(&here.lock);
	hccl_plans_free(l);
	if (l->import) {
		npuacl_import_put(l->import);
	} else {
		npuacl_export_drop(l->key.id);
		npuemu_buf_free(l->buf);
	}
	free(l);
}

void hccl_locals_fork(void)
{
	memset(&here, 0, sizeof(here));
	pthread_mutex_init(&here.lock, NULL);
}

void hccl_wake_local(struct hccl_comm *c)
{
	struct npuacl_stream *s;
	struct hccl_comm *other;
	u32 i;

	/* one rank here: nobody else */
	if (READ_ONCE(c->local->refs) < 2)
		return;
	for (i = 0; i < c->ranks; i++) {
		other = smp_load_acquire(&c->local->rank[i]);
		if (!other || other == c || !READ_ONCE(other->parked))
			continue;
		s = __atomic_exchange_n(&other->parked, NULL, __ATOMIC_ACQ_REL);
		if (s)
			npuacl_wake_soon(s);
	}
}

/* ---- Joining ---------------------------------------------------------------------------- */

HcclResult hccl_group_join(const char *what, struct hccl_comm *c)
{
	struct hccl_group *g = c->group;
	struct hccl_member *m = &g->member[c->rank];
	u32 none = 0;
	size_t n;

	if (!__atomic_compare_exchange_n(&g->ranks, &none, c->ranks, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
	    none != c->ranks)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: rank %u says there are %u ranks, others say %u", what, c->rank,
				 c->ranks, none);
	if (!npuemu_cas(&m->state, HCCL_ABSENT, HCCL_JOINING))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: rank %u has joined already, as process %u on device %u", what,
				 c->rank, READ_ONCE(m->pid), READ_ONCE(m->logical));
	m->pid = (u32)getpid();
	m->device = c->dev->phys;
	m->logical = c->dev->id;
	m->can_queue = c->jetty != NULL;
	m->ccl.va = (u64)(uintptr_t)c->ccl_ptr;
	m->ccl.key = c->ccl_window.key.id;
	m->ccl.secret = c->ccl_window.key.secret;
	if (c->jetty && hccl_ref_segment(what, &c->ccl_window, &m->ccl))
		m->can_queue = 0;
	hccl_config_text(&c->cfg, m->settings, sizeof(m->settings));
	n = strlen(m->settings);
	snprintf(m->settings + n, sizeof(m->settings) - n, " transport=%s", c->wants_queue ? "queue" : "mapped");
	smp_store_release(&m->state, HCCL_MEMBER);
	smp_store_release(&c->local->rank[c->rank], c);
	npuemu_fetch_add(&g->joined, 1);
	return HCCL_SUCCESS;
}

static void missing(const struct hccl_comm *c, char *buf, size_t size)
{
	size_t n = 0;
	u32 i;

	buf[0] = 0;
	for (i = 0; i < c->ranks && n < size; i++)
		if (READ_ONCE(c->group->member[i].state) < HCCL_MEMBER)
			n += (size_t)snprintf(buf + n, size - n, "%s%u", n ? ", " : "", i);
}

static void came(const struct hccl_comm *c, char *buf, size_t size)
{
	size_t n = 0;
	u32 i;

	buf[0] = 0;
	for (i = 0; i < c->ranks && n < size; i++)
		if (READ_ONCE(c->group->member[i].state) >= HCCL_MEMBER)
			n += (size_t)snprintf(buf + n, size - n, "%s%u (process %u, device %u)", n ? ", " : "", i,
					      c->group->member[i].pid, c->group->member[i].logical);
}

static HcclResult check_settings(const char *what, struct hccl_comm *c)
{
	struct hccl_group *g = c->group;
	char ours[HCCL_CONFIG_TEXT], theirs[HCCL_CONFIG_TEXT], why[256];
	u32 i;

	memcpy(ours, g->member[0].settings, sizeof(ours));
	ours[sizeof(ours) - 1] = 0;
	for (i = 1; i < c->ranks; i++) {
		memcpy(theirs, g->member[i].settings, sizeof(theirs));
		theirs[sizeof(theirs) - 1] = 0;
		if (!hccl_config_agree(ours, theirs, why, sizeof(why)))
			return hccl_fail(HCCL_E_PARA, "EI0003", "%s: ranks 0 and %u have different settings: of rank 0 %s", what, i,
					 why);
	}
	return HCCL_SUCCESS;
}

HcclResult hccl_group_meet(const char *what, struct hccl_comm *c)
{
	s64 begin = npuemu_now_ns(), look = begin + LOOK_NS, report = begin + npuacl_report_ns(), now;
	struct timespec nap = { .tv_nsec = 200000 };
	char who[256], there[512], why[512], family[8];
	HcclResult ret;

	while (smp_load_acquire(&c->group->joined) < c->ranks) {
		ret = hccl_group_failed(c, why, sizeof(why), family);
		if (ret)
			return hccl_fail(ret, family, "%s: %s", what, why);
		now = npuemu_now_ns();
		if (c->cfg.connect_ns && now - begin >= c->cfg.connect_ns) {
			missing(c, who, sizeof(who));
			came(c, there, sizeof(there));
			return hccl_fail(HCCL_E_TIMEOUT, "EI0015",
					 "%s: %u of %u ranks came within %.0f s (HCCL_CONNECT_TIMEOUT); still missing: %s; there are: %s",
					 what, READ_ONCE(c->group->joined), c->ranks, (double)(now - begin) / 1e9, who, there);
		}
		if (now >= look) {
			hccl_group_check(c);
			look = now + LOOK_NS;
		}
		if (hccl_report_due(now, &report)) {
			missing(c, who, sizeof(who));
			npuemu_log(NPUEMU_LOG_WARN, "%s: rank %u has waited %.0f s for ranks %s", what, c->rank,
				   (double)(now - begin) / 1e9, who);
		}
		if (now - begin < 2000000)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
	return check_settings(what, c);
}

void hccl_group_leave(struct hccl_comm *c)
{
	smp_store_release(&c->local->rank[c->rank], NULL);
	if (npuemu_cas(&c->group->member[c->rank].state, HCCL_MEMBER, HCCL_LEFT))
		npuemu_fetch_add(&c->group->left, 1);
}

/* ---- What went wrong ---------------------------------------------------------------------- */

void hccl_group_fail(struct hccl_comm *c, HcclResult code, const char *family, const char *fmt, ...)
{
	struct hccl_group *g = c->group;
	char text[sizeof(g->why)];
	u64 none = 0;
	va_list ap;
	u32 i;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	npuemu_log(NPUEMU_LOG_ERROR, "hccl: communicator %.64s, rank %u: %s", g->name, c->rank, text);
	if (!__atomic_compare_exchange_n(&g->failed, &none, (u64)(c->rank + 1) << 32 | (u32)code, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return;
	memcpy(g->why, text, sizeof(g->why));
	snprintf(g->family, sizeof(g->family), "%s", family);
	smp_store_release(&g->failed_ready, 1);
	npuacl_ring(&g->bell, INT32_MAX);
	for (i = 0; i < c->ranks; i++)
		npuacl_ring(&g->bells[i].bell, INT32_MAX);
	hccl_wake_local(c);
}

#define SAY_TRIES	50000u	/* 10 s */

/* Its process is there. */
static bool is_there(struct hccl_comm *c, u32 rank)
{
	struct npuacl_slots slots;

	if (rank >= c->ranks)	/* a damaged group says so */
		return false;
	if (c->all_here || smp_load_acquire(&c->local->rank[rank]))
		return true;
	npuacl_slots_look(&slots);
	return npuacl_export_alive_in(&slots, c->group->member[rank].ccl.key);
}

HcclResult hccl_group_failed(struct hccl_comm *c, char *why, size_t size, char family[8])
{
	struct timespec nap = { .tv_nsec = 200000 };
	struct hccl_group *g = c->group;
	u64 failed = smp_load_acquire(&g->failed);
	u32 tries;

	if (likely(!failed))
		return HCCL_SUCCESS;
	/* it is being written; who does it may have lost the processor there, or died */
	for (tries = 0; tries < SAY_TRIES && !smp_load_acquire(&g->failed_ready); tries++) {
		if (tries < 1000)
			sched_yield();
		else if (!is_there(c, (u32)(failed >> 32) - 1))
			break;
		else
			nanosleep(&nap, NULL);
	}
	if (smp_load_acquire(&g->failed_ready)) {
		snprintf(why, size, "%.*s", (int)sizeof(g->why) - 1, g->why);
		snprintf(family, 8, "%.7s", g->family);
	} else {
		snprintf(why, size, "rank %u gave up, and died or was stopped before it could say why",
			 (u32)(failed >> 32) - 1);
		snprintf(family, 8, "EI9999");
	}
	return (HcclResult)(u32)failed;
}

void hccl_group_check(struct hccl_comm *c)
{
	struct hccl_group *g = c->group;
	struct npuacl_slots slots;
	char text[160];
	u32 i, state;

	if (c->all_here)
		return;
	npuacl_slots_look(&slots);
	for (i = 0; i < c->ranks; i++) {
		struct hccl_member *m = &g->member[i];

		state = smp_load_acquire(&m->state);
		if (i == c->rank || state != HCCL_MEMBER || smp_load_acquire(&c->local->rank[i]))
			continue;
		if (npuacl_export_alive_in(&slots, m->ccl.key))
			continue;
		/* it may have left in good order meanwhile */
		if (smp_load_acquire(&m->state) == HCCL_LEFT)
			continue;
		hccl_want_text(hccl_want_of(c, i, hccl_is_at(m)), text, sizeof(text));
		hccl_group_fail(c, HCCL_E_REMOTE, "EI0006",
				"rank %u (process %u, device %u) has died; it had finished %" PRIu64 " collectives and come to %" PRIu64 "; it was at: %s",
				i, m->pid, m->logical, READ_ONCE(m->finished), READ_ONCE(m->begun), text);
		return;
	}
}
