// SPDX-License-Identifier: MIT
/*
 * Calls between HcclGroupStart and HcclGroupEnd.  Collectives are queued at once, since
 * that does not wait.  Sends and receives become a batch for each stream (p2p.c).
 * Communicators are made at the end, each in a thread of its own: all of them wait.
 */
#include <stdlib.h>
#include "comm.h"

/* A call that was put off, with what it was given. */
struct later {
	struct later *next;
	struct npuacl_ctx *ctx;		/* the caller's */
	char *path;			/* of a rank table; NULL: by root info */
	HcclRootInfo info;
	HcclCommConfig config;
	bool has_config;
	u32 ranks, rank;
	HcclComm *comm;
	pthread_t thread;
	bool started;
	HcclResult ret;
	char message[sizeof(npuacl_self.message)];	/* the thread's */
};

__thread u32 hccl_together_depth;
static __thread enum hccl_together class;
static __thread struct later *first, **last;

static const char *const classes[] = {
	[HCCL_TOGETHER_MANAGE] = "communicators are made or destroyed", [HCCL_TOGETHER_COLL] = "collectives are issued",
	[HCCL_TOGETHER_P2P] = "sends and receives are issued",
};

HcclResult hccl_together_class(const char *what, enum hccl_together of)
{
	if (class != HCCL_ALONE && class != of)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: in this group %s; that does not mix: HcclGroupEnd comes first", what,
				 classes[class]);
	class = of;
	return HCCL_SUCCESS;
}

HcclResult hccl_together_not(const char *what)
{
	if (!hccl_together_depth)
		return HCCL_SUCCESS;
	return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s cannot be called between HcclGroupStart and HcclGroupEnd", what);
}

/* ---- Later -------------------------------------------------------------------------------- */

static struct later *later_new(const char *path, const HcclRootInfo *info, const HcclCommConfig *config)
{
	struct later *l = calloc(1, sizeof(*l));
	size_t size;

	if (l && path)
		l->path = strdup(path);
	if (!l || (path && !l->path)) {
		free(l);
		return NULL;
	}
	if (info)
		l->info = *info;
	if (config) {
		/* as much as the program's version of it has */
		memcpy(&size, config, sizeof(size));
		l->has_config = true;
		memcpy(&l->config, config, size < sizeof(l->config) ? size : sizeof(l->config));
	}
	return l;
}

static void later_free(struct later *l)
{
	free(l->path);
	free(l);
}

HcclResult hccl_later(const char *what, const char *path, const HcclRootInfo *info, u32 ranks, u32 rank,
		      const HcclCommConfig *config, HcclComm *comm)
{
	struct later *l;
	HcclResult ret = hccl_together(what, HCCL_TOGETHER_MANAGE);

	if (ret)
		return ret;
	if ((!path && !info) || !comm)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, comm ? "where ranks are to meet" : "comm");
	l = later_new(path, info, config);
	if (!l)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	l->ctx = npuacl_self.ctx;
	l->ranks = ranks;
	l->rank = rank;
	l->comm = comm;
	if (!first)
		last = &first;
	*last = l;
	last = &l->next;
	return HCCL_SUCCESS;
}

/* In a thread of its own, which is in no group. */
static HcclResult now(struct later *l)
{
	if (l->path && l->has_config)
		return HcclCommInitClusterInfoConfig(l->path, l->rank, &l->config, l->comm);
	if (l->path)
		return HcclCommInitClusterInfo(l->path, l->rank, l->comm);
	if (l->has_config)
		return HcclCommInitRootInfoConfig(l->ranks, &l->info, l->rank, &l->config, l->comm);
	return HcclCommInitRootInfo(l->ranks, &l->info, l->rank, l->comm);
}

static void *later_thread(void *arg)
{
	struct later *l = arg;

	npuacl_self.ctx = l->ctx;
	l->ret = now(l);
	memcpy(l->message, npuacl_self.message, sizeof(l->message));
	npuacl_self.ctx = NULL;
	return NULL;
}

static HcclResult run_later(const char *what)
{
	struct later *l, *list = first;
	HcclResult ret = HCCL_SUCCESS;

	first = NULL;
	for (l = list; l; l = l->next) {
		l->started = !pthread_create(&l->thread, NULL, later_thread, l);
		/* the others wait for it, and say that it is missing */
		if (!l->started)
			ret = hccl_fail(HCCL_E_SYSCALL, "EI9999", "%s: no more threads can be made", what);
	}
	while ((l = list)) {
		list = l->next;
		if (l->started)
			pthread_join(l->thread, NULL);
		if (l->started && l->ret && !ret) {
			ret = l->ret;
			memcpy(npuacl_self.message, l->message, sizeof(l->message));
			npuacl_self.told = false;
		}
		later_free(l);
	}
	return ret;
}

/* ---- The group ------------------------------------------------------------------------------- */

HcclResult HcclGroupStart(void)
{
	if (!hccl_together_depth++)
		class = HCCL_ALONE;
	return HCCL_SUCCESS;
}

HcclResult HcclGroupEnd(void)
{
	static const char what[] = "HcclGroupEnd";

	if (!hccl_together_depth)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: this thread is in no group: HcclGroupStart comes first", what);
	if (--hccl_together_depth)
		return HCCL_SUCCESS;
	return class == HCCL_TOGETHER_P2P ? hccl_p2p_together() : class == HCCL_TOGETHER_MANAGE ? run_later(what) : HCCL_SUCCESS;
}

HcclResult HcclGroupStatusGet(bool *inGroup)
{
	if (!inGroup)
		return hccl_fail(HCCL_E_PTR, "EI0003", "HcclGroupStatusGet: inGroup is NULL");
	*inGroup = hccl_together_depth;
	return HCCL_SUCCESS;
}
