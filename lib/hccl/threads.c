// SPDX-License-Identifier: MIT
/*
 * Threads of a communicator: those of lib/transport, which end with it.  A stream of the
 * program's is one thread, however often it is asked for, and so is each use that there
 * is one for.
 */
#include <hccl/hccl_res.h>
#include <hcomm_res.h>
#include <inttypes.h>
#include <stdlib.h>
#include "comm.h"

#define MOST	16384u			/* of one call */

struct hccl_thread {
	struct hccl_thread *next;
	ThreadHandle handle;
	struct npuacl_stream *stream;	/* the program's; NULL: its own */
	CommEngine engine;
	int use;			/* HcclDedicatedThreadType; -1: none */
	u32 notifies;
};

/* ---- The list: ends_lock held ---------------------------------------------------------------- */

static HcclResult add(struct hccl_comm *c, const char *what, const struct hccl_thread *like)
{
	struct hccl_thread *t = malloc(sizeof(*t));

	if (!t)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	*t = *like;
	t->next = c->res.threads;
	c->res.threads = t;
	return HCCL_SUCCESS;
}

/* Enough notifies?  Those of a thread are made with it. */
static HcclResult enough(struct hccl_comm *c, const char *what, const struct hccl_thread *t, u32 notifies)
{
	if (notifies <= t->notifies)
		return HCCL_SUCCESS;
	return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %u notifies: rank %u of communicator %.64s has that thread already, with %u", what,
			 notifies, c->rank, c->name, t->notifies);
}

/* All of them, or none. */
static HcclResult alloc(struct hccl_comm *c, const char *what, struct hccl_thread *like, u32 n, const u32 *notifies,
			ThreadHandle *threads)
{
	struct hccl_thread *old = c->res.threads, *t;
	HcclResult ret;
	u32 i;

	ret = hccl_said(c, what, -1, (HcclResult)HcommThreadAlloc(like->engine, n, notifies, threads));
	if (ret)
		return ret;
	for (i = 0; i < n && !ret; i++) {
		like->handle = threads[i];
		like->notifies = notifies[i];
		ret = add(c, what, like);
	}
	if (ret) {
		while ((t = c->res.threads) != old) {
			c->res.threads = t->next;
			free(t);
		}
		for (i = 0; i < n; i++)
			hcomm_thread_drop(threads[i]);
	}
	return ret;
}

/* ---- Asked for ---------------------------------------------------------------------------------- */

static HcclResult begin(const char *what, HcclComm comm, const void *out, struct hccl_comm **c)
{
	HcclResult ret = hccl_comm(comm, what, c);

	if (ret)
		return ret;
	if (!out)
		return hccl_null(what, "thread");
	ret = hccl_broken(*c, what);
	return ret ? ret : hccl_on_device(*c, what);
}

static HcclResult several(const char *what, struct hccl_comm *c, CommEngine engine, u32 n, const u32 *notifies,
			  ThreadHandle *threads)
{
	struct hccl_thread like = { .engine = engine, .use = -1 };
	HcclResult ret;

	pthread_mutex_lock(&c->res.ends_lock);
	ret = alloc(c, what, &like, n, notifies, threads);
	pthread_mutex_unlock(&c->res.ends_lock);
	return ret;
}

static HcclResult counted(const char *what, u32 n, u32 **notifies)
{
	if (!n || n > MOST)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: threadNum is %u; 1 to %u", what, n, MOST);
	*notifies = calloc(n, sizeof(**notifies));
	return *notifies ? HCCL_SUCCESS : hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
}

HcclResult HcclThreadAcquire(HcclComm comm, CommEngine engine, uint32_t threadNum, uint32_t notifyNumPerThread,
			     ThreadHandle *threads)
{
	static const char what[] = "HcclThreadAcquire";
	struct hccl_comm *c;
	u32 *notifies, i;
	HcclResult ret = begin(what, comm, threads, &c);

	if (!ret)
		ret = counted(what, threadNum, &notifies);
	if (ret)
		return ret;
	for (i = 0; i < threadNum; i++)
		notifies[i] = notifyNumPerThread;
	ret = several(what, c, engine, threadNum, notifies, threads);
	free(notifies);
	return ret;
}

HcclResult HcclThreadAcquireWithConfig(HcclComm comm, CommEngine engine, uint32_t threadNum, ThreadType type,
				       const ThreadConfig *config, ThreadHandle *threads)
{
	static const char what[] = "HcclThreadAcquireWithConfig";
	struct hccl_comm *c;
	u32 *notifies, i;
	HcclResult ret = begin(what, comm, threads, &c);

	if (!ret && !config)
		ret = hccl_null(what, "config");
	if (!ret && type != THREAD_TYPE_TS)
		ret = hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no type of threads %d; 0 (TS)", what, (int)type);
	if (!ret)
		ret = counted(what, threadNum, &notifies);
	if (ret)
		return ret;
	for (i = 0; i < threadNum && !ret; i++) {
		const CommAbiHeader *h = &config[i].header;

		if (h->magicWord != HCOMM_THREAD_CONFIG_MAGIC_WORD || h->version != HCOMM_THREAD_CONFIG_VERSION ||
		    h->size != sizeof(*config))
			ret = hccl_fail(HCCL_E_PARA, "EI0003", "%s: config[%u] is of version %u, magic word %#x, %u bytes: ThreadConfigInit() prepares it",
					what, i, h->version, h->magicWord, h->size);
		notifies[i] = config[i].notifyNumPerThread;
	}
	if (!ret)
		ret = several(what, c, engine, threadNum, notifies, threads);
	free(notifies);
	return ret;
}

/* ends_lock held.  Streams that are gone take their threads with them. */
static struct hccl_thread *on_stream(struct hccl_comm *c, const struct npuacl_stream *s, CommEngine engine)
{
	struct hccl_thread **at = &c->res.threads, *t;

	while ((t = *at)) {
		if (t->stream && !hcomm_thread_lasts(t->handle)) {
			*at = t->next;
			hcomm_thread_drop(t->handle);
			free(t);
			continue;
		}
		if (t->stream == s && t->engine == engine)
			return t;
		at = &t->next;
	}
	return NULL;
}

HcclResult HcclThreadAcquireWithStream(HcclComm comm, CommEngine engine, aclrtStream stream, uint32_t notifyNum,
				       ThreadHandle *thread)
{
	static const char what[] = "HcclThreadAcquireWithStream";
	struct hccl_thread new = { .engine = engine, .use = -1, .notifies = notifyNum }, *t;
	struct hccl_comm *c;
	HcclResult ret = begin(what, comm, thread, &c);

	if (!ret)
		ret = hcomm_engine(what, engine);
	if (!ret)
		ret = hccl_stream(c, what, stream, &new.stream);
	if (ret)
		return ret;
	pthread_mutex_lock(&c->res.ends_lock);
	t = on_stream(c, new.stream, engine);
	if (t) {
		ret = enough(c, what, t, notifyNum);
		new.handle = t->handle;
	} else {
		ret = hcomm_thread_wrap(what, engine, new.stream, notifyNum, &new.handle);
		if (!ret) {
			ret = add(c, what, &new);
			if (ret)
				hcomm_thread_drop(new.handle);
		}
	}
	pthread_mutex_unlock(&c->res.ends_lock);
	if (!ret)
		*thread = new.handle;
	return ret;
}

HcclResult HcclDedicatedThreadAcquire(HcclComm comm, HcclDedicatedThreadType useType, uint32_t notifyNumPerThread,
				      ThreadHandle *thread)
{
	static const char what[] = "HcclDedicatedThreadAcquire";
	/* they launch kernels: tasks that the host issues */
	struct hccl_thread like = { .engine = COMM_ENGINE_CPU_TS, .use = (int)useType }, *t;
	ThreadHandle handle = 0;
	struct hccl_comm *c;
	HcclResult ret = begin(what, comm, thread, &c);

	if (ret)
		return ret;
	if (useType < HCCL_DED_THREAD_TYPE_AICPU_LAUNCH || useType > HCCL_DED_THREAD_TYPE_AICPU_ORDER_LAUNCH_DEVICE)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no use %d; 0 to %d", what, (int)useType,
				 (int)HCCL_DED_THREAD_TYPE_AICPU_ORDER_LAUNCH_DEVICE);
	pthread_mutex_lock(&c->res.ends_lock);
	for (t = c->res.threads; t && t->use != (int)useType; t = t->next)
		;
	if (t) {
		ret = enough(c, what, t, notifyNumPerThread);
		handle = t->handle;
	} else {
		ret = alloc(c, what, &like, 1, &notifyNumPerThread, &handle);
	}
	pthread_mutex_unlock(&c->res.ends_lock);
	if (!ret)
		*thread = handle;
	return ret;
}

HcclResult HcclThreadResGetInfo(HcclComm comm, ThreadHandle thread, ThreadResType resType, uint32_t infoLen, void **info)
{
	static const char what[] = "HcclThreadResGetInfo";
	struct hccl_thread *t;
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, what, &c);

	if (ret)
		return ret;
	pthread_mutex_lock(&c->res.ends_lock);
	for (t = c->res.threads; t && t->handle != thread; t = t->next)
		;
	if (!t)
		ret = hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %#" PRIx64 " is no thread of rank %u of communicator %.64s", what,
				(u64)thread, c->rank, c->name);
	else
		ret = hccl_said(c, what, -1, (HcclResult)HcommThreadResGetInfo(thread, resType, infoLen, info));
	pthread_mutex_unlock(&c->res.ends_lock);
	return ret;
}

/* ---- At the end ----------------------------------------------------------------------------------- */

u32 hccl_threads_busy(struct hccl_comm *c)
{
	const struct hccl_thread *t;
	u32 n = 0;

	pthread_mutex_lock(&c->res.ends_lock);
	for (t = c->res.threads; t; t = t->next)
		n += hcomm_thread_busy(t->handle);
	pthread_mutex_unlock(&c->res.ends_lock);
	return n;
}

void hccl_threads_free(struct hccl_comm *c)
{
	struct hccl_thread *t;

	while ((t = c->res.threads)) {
		c->res.threads = t->next;
		hcomm_thread_drop(t->handle);
		free(t);
	}
}
