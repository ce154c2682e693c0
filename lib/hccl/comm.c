// SPDX-License-Identifier: MIT
/*
 * Communicators: made, asked about, destroyed.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "comm.h"

struct npuemu_slab hccl_comms = {
	.what = "communicator", .size = NPUEMU_SLAB_SIZE(struct hccl_comm), .max = 4096,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

HcclResult hccl_comm(HcclComm handle, const char *what, struct hccl_comm **out)
{
	if (!handle)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: comm is NULL", what);
	if (!npuemu_slab_holds(&hccl_comms, handle, NPUEMU_SLAB_SIZE(struct hccl_comm)))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %p is no communicator, or has been destroyed", what, handle);
	*out = handle;
	return HCCL_SUCCESS;
}

/* ---- Made -------------------------------------------------------------------------------- */

static HcclResult settings(const char *what, struct hccl_comm *c, const HcclCommConfig *config)
{
	const char *soc = aclrtGetSocName();
	char why[300];
	int ret;

	ret = hccl_config_load(&c->cfg, soc ? soc : "", why, sizeof(why));
	if (!ret)
		hccl_process_config(&c->cfg);
	if (!ret && config)
		ret = hccl_config_apply(&c->cfg, config, why, sizeof(why));
	return ret ? hccl_fail_why((HcclResult)ret, what, why) : HCCL_SUCCESS;
}

/* Those of this process, one after the other; NULL: the first, or no more. */
static struct hccl_comm *next_of(const struct hccl_comm *c)
{
	u32 i = c ? (u32)((size_t)((const u8 *)c - hccl_comms.base) / hccl_comms.size) + 1 : 0;
	struct hccl_comm *next;

	for (; i < READ_ONCE(hccl_comms.used); i++) {
		next = (struct hccl_comm *)(hccl_comms.base + (size_t)i * hccl_comms.size);
		if (npuemu_slab_alive(&hccl_comms, next))
			return next;
	}
	return NULL;
}

static HcclResult own_name(const char *what, const struct hccl_comm *c, const struct hccl_local *local)
{
	const char *name = c->cfg.name[0] ? c->cfg.name : local->group->name;
	const struct hccl_comm *other = NULL;

	while ((other = next_of(other)))
		if (other->dev == c->dev && !strcmp(other->name, name))
			return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is a communicator \"%s\" on device %u: each needs a name of its own (hcclCommName, or subCommId)",
					 what, name, c->dev->id);
	return HCCL_SUCCESS;
}

HcclResult hccl_first_by_table(const char *what, const struct npuacl_device *dev)
{
	const struct hccl_comm *c = NULL;

	while ((c = next_of(c)))
		if (c->dev == dev && c->by_table)
			return hccl_fail(HCCL_E_UNAVAIL, "EI0003", "%s: device %u has a communicator of a rank table already, as rank %u of %u: HcclCommDestroy comes first",
					 what, dev->id, c->rank, c->ranks);
	return HCCL_SUCCESS;
}

static HcclResult buffers(const char *what, struct hccl_comm *c)
{
	aclError ret;
	int err;

	c->peer = calloc(2 * (size_t)c->ranks, sizeof(*c->peer));
	c->base = calloc(3 * (size_t)c->ranks, sizeof(*c->base));
	c->box = calloc(2 * (size_t)c->ranks, sizeof(*c->box));
	if (!c->peer || !c->base || !c->box)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	/* the one to send from and the one to receive into, in one; memory comes with the first touch */
	c->ccl_bytes = 2 * c->cfg.buffer_bytes;
	err = npuemu_buf_alloc(npuacl.board, c->dev->phys, c->ccl_bytes, 0, &c->ccl);
	if (err)
		return hccl_fail(HCCL_E_OOM, "EI0011", "%s: two buffers of %" PRIu64 " MB (HCCL_BUFFSIZE) on device %u: %s", what,
				 c->cfg.buffer_bytes >> 20, c->dev->id, npuemu_errmsg());
	c->ccl_ptr = npuemu_buf_ptr(c->ccl);
	ret = npuacl_window_offer(what, c->ccl, c->ccl_bytes, c->dev->phys, &c->ccl_window);
	return ret ? hccl_fail_acl(ret, what) : HCCL_SUCCESS;
}

static HcclResult transport(const char *what, struct hccl_comm *c)
{
	const char *name = npuemu_getenv("NPUEMU_TRANSPORT");

	if (!name || !strcmp(name, "mapped") || !strcmp(name, "auto"))
		return HCCL_SUCCESS;
	if (strcmp(name, "queue"))
		return hccl_fail(HCCL_E_PARA, "EI0001", "%s: NPUEMU_TRANSPORT is \"%s\"; queue, mapped or auto", what, name);
	c->wants_queue = true;
	if (hccl_jetty_make(c))
		npuemu_log(NPUEMU_LOG_WARN, "hccl: rank %u has no UDMA queue, so that no rank will use any: %s", c->rank,
			   npuemu_errmsg());
	return HCCL_SUCCESS;
}

HcclResult hccl_comm_make(const char *what, struct npuacl_device *dev, u32 ranks, u32 rank,
			  const HcclCommConfig *config, struct hccl_local *local, struct hccl_comm **out)
{
	struct hccl_comm *c;
	HcclResult ret;

	if (!ranks || ranks > HCCL_MAX_RANKS)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %u ranks; 1 to %u can be", what, ranks, HCCL_MAX_RANKS);
	if (rank >= ranks)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: rank %u of %u ranks; they count from 0", what, rank, ranks);
	c = npuemu_slab_alloc(&hccl_comms);
	if (!c)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: this process has %u communicators, the most it can", what,
				 hccl_comms.max);
	c->rank = rank;
	c->ranks = ranks;
	c->dev = dev;
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->moving, NULL);
	pthread_mutex_init(&c->wire, NULL);
	ret = hccl_res_make(c, what);
	if (!ret)
		ret = settings(what, c, config);
	if (!ret)
		ret = own_name(what, c, local);
	if (!ret)
		ret = transport(what, c);
	if (!ret)
		ret = buffers(what, c);
	if (!ret) {
		c->local = local;
		c->group = local->group;
		ret = hccl_group_join(what, c);
		if (ret)
			c->local = NULL;
	}
	if (ret) {
		hccl_comm_unmake(c);
		return ret;
	}
	*out = c;
	return HCCL_SUCCESS;
}

/* Servers, in the order of their first rank. */
static void place(struct hccl_comm *c)
{
	struct npuemu_device_info info = { .size = sizeof(info) };
	u32 id[HCCL_MAX_RANKS], servers = 0, i, k;

	for (i = 0; i < c->ranks; i++) {
		if (npuemu_device_query(npuacl.board, c->group->member[i].device, &info))
			info.server = 0;
		for (k = 0; k < servers && id[k] != info.server; k++)
			;
		if (k == servers)
			id[servers++] = info.server;
		c->server[i] = k;
	}
	c->servers = servers;
}

/* Those that this process may use. */
static void count_cpus(struct hccl_comm *c)
{
	long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
	cpu_set_t set;
	u32 k;

	c->cpus = 0;
	if (sched_getaffinity(0, sizeof(set), &set))
		CPU_ZERO(&set);
	for (k = 0; k < CPU_SETSIZE; k++)
		if (CPU_ISSET(k, &set))
			c->cpu_at[k] = (u16)c->cpus++;
	c->cpus += !c->cpus;
	/* not all systems tell */
	c->cache = 2 * c->cpus * (cache > 0 ? (u64)cache : 1u << 20);
}

HcclResult hccl_comm_ready(const char *what, struct hccl_comm *c)
{
	HcclResult ret = hccl_group_meet(what, c);
	u32 i;

	if (ret)
		return ret;
	c->all_here = true;
	c->queued = c->wants_queue;
	for (i = 0; i < c->ranks; i++) {
		c->queued &= c->group->member[i].can_queue;
		c->all_here &= c->group->member[i].pid == c->group->member[c->rank].pid;
	}
	place(c);
	count_cpus(c);
	c->spins = (c->beside ? c->beside : c->ranks) <= c->cpus;
	memcpy(c->name, c->cfg.name[0] ? c->cfg.name : c->group->name, sizeof(c->name) - 1);
	npuemu_slab_publish(&hccl_comms, c);
	npuemu_log(NPUEMU_LOG_INFO, "hccl: communicator %s: rank %u of %u on device %u, %u servers%s; %s", c->name, c->rank,
		   c->ranks, c->dev->id, c->servers, c->all_here ? ", all in this process" : "",
		   c->group->member[c->rank].settings);
	return HCCL_SUCCESS;
}

void hccl_comm_unmake(struct hccl_comm *c)
{
	struct hccl_local *local = c->local;

	if (local)
		hccl_group_leave(c);
	hccl_plan_drop(c);
	hccl_ops_drop(c);
	hccl_res_unmake(c);
	if (c->peer && c->local)
		hccl_peers_close(c);
	hccl_jetty_unmake(c);
	if (c->ccl)
		npuacl_window_forget(c->ccl);
	if (c->ccl && npuemu_buf_free(c->ccl))
		npuemu_log(NPUEMU_LOG_WARN, "hccl: the buffers of rank %u were not given back: %s", c->rank, npuemu_errmsg());
	free(c->peer);
	free(c->base);
	free(c->box);
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->moving);
	pthread_mutex_destroy(&c->wire);
	npuemu_slab_free(&hccl_comms, c);
	if (local)
		hccl_local_put(local);
}

/* ---- Left at the end ------------------------------------------------------------------------ */

static void close_all(void)
{
	struct hccl_comm *c;
	u32 i, n = 0;

	for (i = 0; i < hccl_comms.used; i++) {
		c = (struct hccl_comm *)(hccl_comms.base + (size_t)i * hccl_comms.size);
		if (!npuemu_slab_alive(&hccl_comms, c) || !npuemu_slab_retire(&hccl_comms, c))
			continue;
		hccl_comm_unmake(c);
		n++;
	}
	if (n)
		npuemu_log(NPUEMU_LOG_WARN, "hccl: %u communicators were there at aclFinalize; HcclCommDestroy was to come before", n);
	hccl_roots_release(NULL);
}

/* Threads and mappings do not survive a fork: the child has no communicators. */
static void forked(void)
{
	npuemu_slab_fork(&hccl_comms);
	hccl_locals_fork();
	hccl_roots_fork();
	hccl_ranges_fork();
	hccl_wins_fork();
	hccl_globals_fork();
}

void hccl_begin(void)
{
	WRITE_ONCE(npuacl_above.close, close_all);
	WRITE_ONCE(npuacl_above.fork, forked);
}

/* ---- Destroyed ------------------------------------------------------------------------------ */

/* Over channels and on threads of it; if it has failed they are broken off. */
static u32 busy(struct hccl_comm *c)
{
	return hccl_group_broken(c) ? 0 : hccl_chans_busy(c) + hccl_threads_busy(c);
}

/* What its streams have left of it: soon over if it has failed. */
static bool idle(struct hccl_comm *c)
{
	struct timespec nap = { .tv_nsec = 1000000 };
	u32 tries;

	for (tries = 0; (READ_ONCE(c->in_flight) || busy(c)) && tries < (hccl_group_broken(c) ? 2000 : 100); tries++) {
		npuacl_look();
		nanosleep(&nap, NULL);
	}
	return !smp_load_acquire(&c->in_flight) && !busy(c);
}

HcclResult HcclCommDestroy(HcclComm comm)
{
	static const char what[] = "HcclCommDestroy";
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, what, &c);

	if (!ret)
		ret = hccl_together(what, HCCL_TOGETHER_MANAGE);
	if (ret)
		return ret;
	if (!idle(c))
		return READ_ONCE(c->in_flight) ?
			hccl_fail(HCCL_E_AGAIN, "EI0003", "%s: %u of its operations are not over, or recorded in models: synchronize their streams before",
				  what, READ_ONCE(c->in_flight)) :
			hccl_fail(HCCL_E_AGAIN, "EI0003", "%s: operations of %u of its channels and threads are not over, or recorded in models: synchronize their streams before",
				  what, busy(c));
	hccl_state_tell(comm, HCCL_COMM_STATE_PHASE_DESTROY_PRE);
	/* of two threads that destroy it one does */
	if (!npuemu_slab_retire(&hccl_comms, c))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %p has been destroyed already", what, comm);
	hccl_comm_unmake(c);
	hccl_state_tell(comm, HCCL_COMM_STATE_PHASE_DESTROY_POST);
	return HCCL_SUCCESS;
}

/* ---- Asked about ------------------------------------------------------------------------------ */

HcclResult HcclGetRankSize(HcclComm comm, uint32_t *rankSize)
{
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, "HcclGetRankSize", &c);

	if (ret)
		return ret;
	if (!rankSize)
		return hccl_fail(HCCL_E_PTR, "EI0003", "HcclGetRankSize: rankSize is NULL");
	*rankSize = c->ranks;
	return HCCL_SUCCESS;
}

HcclResult HcclGetRankId(HcclComm comm, uint32_t *rank)
{
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, "HcclGetRankId", &c);

	if (ret)
		return ret;
	if (!rank)
		return hccl_fail(HCCL_E_PTR, "EI0003", "HcclGetRankId: rank is NULL");
	*rank = c->rank;
	return HCCL_SUCCESS;
}

HcclResult HcclGetCommName(HcclComm comm, char *commName)
{
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, "HcclGetCommName", &c);

	if (ret)
		return ret;
	if (!commName)
		return hccl_fail(HCCL_E_PTR, "EI0003", "HcclGetCommName: commName is NULL");
	if (strlen(c->name) >= COMM_NAME_MAX_LENGTH)
		return hccl_fail(HCCL_E_PARA, "EI0003", "HcclGetCommName: \"%s\" has %u characters, and no room for its end: hcclCommName has to be shorter for that", c->name,
				 COMM_NAME_MAX_LENGTH);
	memcpy(commName, c->name, COMM_NAME_MAX_LENGTH);
	return HCCL_SUCCESS;
}

static struct hccl_comm *named(const char *name)
{
	struct hccl_comm *c = NULL, *found = NULL;
	struct npuacl_ctx *ctx = npuacl_self.ctx;

	while ((c = next_of(c))) {
		if (strcmp(c->name, name))
			continue;
		/* the ranks of a process have it by one name: the caller's device says which */
		if (!found || (ctx && c->dev == ctx->dev))
			found = c;
	}
	return found;
}

HcclResult HcclCommGetHandleWithName(const char *commName, HcclComm *comm)
{
	static const char what[] = "HcclCommGetHandleWithName";
	struct hccl_comm *c;

	if (!commName || !comm)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, commName ? "comm" : "commName");
	c = named(commName);
	if (!c)
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: this process has no communicator \"%.127s\"", what, commName);
	*comm = c;
	return HCCL_SUCCESS;
}

HcclResult HcclCommGetStatus(const char *commName, HcclCommStatus *status)
{
	static const char what[] = "HcclCommGetStatus";
	struct hccl_comm *c;

	if (!commName || !status)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, commName ? "status" : "commName");
	c = named(commName);
	*status = !c ? HCCL_COMM_STATUS_INVALID : READ_ONCE(c->res.suspended) ? HCCL_COMM_STATUS_SUSPENDING :
		  HCCL_COMM_STATUS_READY;
	return HCCL_SUCCESS;
}

HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult *asyncError)
{
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, "HcclGetCommAsyncError", &c);

	if (ret)
		return ret;
	if (!asyncError)
		return hccl_fail(HCCL_E_PTR, "EI0003", "HcclGetCommAsyncError: asyncError is NULL");
	*asyncError = READ_ONCE(c->error) || hccl_group_broken(c) ? HCCL_E_REMOTE : HCCL_SUCCESS;
	return HCCL_SUCCESS;
}

static const HcclOpExpansionMode *mode_of(const struct hccl_comm *c, HcclOpExpansionMode *mode)
{
	*mode = (HcclOpExpansionMode)hccl_mode_public(c->cfg.mode);
	return mode;
}

HcclResult HcclConfigGetInfo(HcclComm comm, HcclConfigType configType, uint32_t infoLen, void *info)
{
	static const char what[] = "HcclConfigGetInfo";
	HcclOpExpansionMode mode;
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, what, &c);

	if (ret)
		return ret;
	if (!info)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: info is NULL", what);
	if (configType == HCCL_CONFIG_TYPE_OP_EXPANSION_MODE && infoLen >= sizeof(mode)) {
		memcpy(info, mode_of(c, &mode), sizeof(mode));
		return HCCL_SUCCESS;
	}
	if (configType == HCCL_CONFIG_TYPE_HCCL_ALGO && infoLen) {
		snprintf(info, infoLen, "%s", c->cfg.algo);
		return HCCL_SUCCESS;
	}
	return hccl_fail(HCCL_E_PARA, "EI0003", "%s: type %d in %u bytes", what, (int)configType, infoLen);
}
