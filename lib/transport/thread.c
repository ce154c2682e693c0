// SPDX-License-Identifier: MIT
/*
 * Threads: a stream each, with words of device memory as its notifies.  On a direct one
 * the caller waits for what it issues, and is told what came of it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "transport.h"

#define NOTIFIES	8192u		/* of a thread */
#define DEFAULT_S	1836.0f		/* as of HCCL_EXEC_TIMEOUT */
#define LONGEST_S	2147483.0f

struct npuemu_slab hcomm_threads = {
	.what = "thread", .size = NPUEMU_SLAB_SIZE(struct hcomm_thread), .max = 16384,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static __thread struct {
	bool set;
	float wait_s, room_s;
} times;

s64 hcomm_default_timeout(void)
{
	return (s64)((double)(times.set ? times.wait_s : DEFAULT_S) * 1e9);
}

/* ---- Made -------------------------------------------------------------------------------- */

static bool is_direct(CommEngine engine)
{
	return engine == COMM_ENGINE_CPU || engine == COMM_ENGINE_AICPU;
}

/* Its device may have been reset meanwhile. */
static bool has_stream(const struct hcomm_thread *th)
{
	return th->stream && npuemu_slab_alive(&npuacl_streams, th->stream) && th->stream->id == th->stream_id;
}

void hcomm_thread_put(struct hcomm_thread *th)
{
	if (npuemu_fetch_add(&th->refs, -1u) != 1)
		return;
	if (th->buf && npuemu_buf_free(th->buf))
		npuemu_log(NPUEMU_LOG_WARN, "hcomm: notifies of a thread were not given back: %s", npuemu_errmsg());
	free(th->under);
	pthread_mutex_destroy(&th->lock);
	npuemu_slab_free(&hcomm_threads, th);
}

/* What is left of its operations: @force, not waited for. */
static void unmake(struct hcomm_thread *th, bool force)
{
	if (has_stream(th) && !th->borrowed && force)
		aclrtDestroyStreamForce(th->stream);
	else if (has_stream(th) && !th->borrowed)
		aclrtDestroyStream(th->stream);
	/* a stream of the program's may come to some of them yet, and so may a model */
	hcomm_thread_put(th);
}

/* @stream: NULL, one of its own. */
static HcclResult make(const char *what, struct npuacl_device *dev, bool direct, u32 notifies, aclrtStream stream,
		       ThreadHandle *out)
{
	struct hcomm_thread *th;
	aclError err = ACL_SUCCESS;

	if (notifies > NOTIFIES)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %u notifies; a thread has at most %u", what, notifies, NOTIFIES);
	th = npuemu_slab_alloc(&hcomm_threads);
	if (!th)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: this process has %u threads, the most it can", what,
				  hcomm_threads.max);
	pthread_mutex_init(&th->lock, NULL);
	th->board = npuacl.board;
	th->dev = dev;
	th->direct = direct;
	th->borrowed = stream;
	th->refs = 1;
	th->notifies = notifies;
	if (!stream)
		err = aclrtCreateStream(&stream);
	if (err) {
		unmake(th, false);
		return hccl_fail_acl(err, what);
	}
	th->stream = stream;
	th->stream_id = th->stream->id;
	if (notifies && npuemu_buf_alloc(npuacl.board, dev->phys, notifies * sizeof(u64), 0, &th->buf)) {
		unmake(th, false);
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: %u notifies on device %u: %s", what, notifies, dev->id,
				  npuemu_errmsg());
	}
	th->word = th->buf ? npuemu_buf_ptr(th->buf) : NULL;
	npuemu_slab_publish(&hcomm_threads, th);
	*out = (ThreadHandle)(uintptr_t)th;
	return HCCL_SUCCESS;
}

HcommResult HcommThreadAlloc(CommEngine engine, uint32_t threadNum, const uint32_t *notifyNumPerThread,
			     ThreadHandle *threads)
{
	static const char what[] = "HcommThreadAlloc";
	struct npuacl_ctx *ctx;
	HcclResult ret = hcomm_engine(what, engine);
	aclError err;
	u32 i;

	if (ret)
		return ret;
	if (!notifyNumPerThread || !threads)
		return hccl_null(what, threads ? "notifyNumPerThread" : "threads");
	if (!threadNum)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: threadNum is 0", what);
	err = npuacl_current(&ctx);
	if (err)
		return hccl_fail_acl(err, what);
	hcomm_watch_forks();
	for (i = 0; i < threadNum && !ret; i++)
		ret = make(what, ctx->dev, is_direct(engine), notifyNumPerThread[i], NULL, &threads[i]);
	/* all of them, or none */
	if (ret)
		while (--i > 0)
			unmake((struct hcomm_thread *)(uintptr_t)threads[i - 1], false);
	return ret;
}

static HcclResult find(const char *what, ThreadHandle handle, struct hcomm_thread **out)
{
	struct hcomm_thread *th = (struct hcomm_thread *)(uintptr_t)handle;

	if (!npuemu_slab_holds(&hcomm_threads, th, NPUEMU_SLAB_SIZE(*th)) || th->board != npuacl.board)
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %#" PRIx64 " is no thread, or has been freed", what,
				  (u64)handle);
	*out = th;
	return HCCL_SUCCESS;
}

HcclResult hcomm_thread(const char *what, ThreadHandle handle, struct hcomm_thread **out)
{
	HcclResult ret = find(what, handle, out);

	if (!ret && unlikely(!has_stream(*out)))
		ret = hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: the stream of the thread is gone: its device was reset", what);
	return ret;
}

HcommResult HcommThreadFree(const ThreadHandle *threads, uint32_t threadNum)
{
	static const char what[] = "HcommThreadFree";
	struct hcomm_thread *th;
	HcclResult ret = HCCL_SUCCESS;
	u32 i;

	if (!threads)
		return hccl_null(what, "threads");
	for (i = 0; i < threadNum && !ret; i++)
		ret = find(what, threads[i], &th);
	for (i = 0; i < threadNum && !ret; i++) {
		ret = find(what, threads[i], &th);
		if (!ret && !npuemu_slab_retire(&hcomm_threads, th))
			ret = hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: thread %u of the list has been freed already", what, i);
		if (!ret)
			unmake(th, false);
	}
	return ret;
}

/* ---- For communicators --------------------------------------------------------------------- */

HcclResult hcomm_thread_wrap(const char *what, CommEngine engine, struct npuacl_stream *stream, u32 notifies,
			     ThreadHandle *out)
{
	HcclResult ret = hcomm_engine(what, engine);

	hcomm_watch_forks();
	return ret ? ret : make(what, stream->dev, is_direct(engine), notifies, stream, out);
}

bool hcomm_thread_lasts(ThreadHandle handle)
{
	struct hcomm_thread *th = (struct hcomm_thread *)(uintptr_t)handle;

	return npuemu_slab_holds(&hcomm_threads, th, NPUEMU_SLAB_SIZE(*th)) && has_stream(th);
}

bool hcomm_thread_busy(ThreadHandle handle)
{
	return smp_load_acquire(&((struct hcomm_thread *)(uintptr_t)handle)->refs) > 1;
}

void hcomm_thread_drop(ThreadHandle handle)
{
	struct hcomm_thread *th = (struct hcomm_thread *)(uintptr_t)handle;

	if (npuemu_slab_retire(&hcomm_threads, th))
		unmake(th, true);
}

HcommResult HcommThreadResGetInfo(ThreadHandle thread, ThreadResType resType, uint32_t infoLen, void **info)
{
	static const char what[] = "HcommThreadResGetInfo";
	struct hcomm_thread *th;
	HcclResult ret = hcomm_thread(what, thread, &th);

	if (ret)
		return ret;
	if (!info)
		return hccl_null(what, "info");
	if (resType != THREAD_RES_TYPE_STREAM)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no type %d; a thread has a stream (0)", what, (int)resType);
	if (infoLen != sizeof(aclrtStream))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: infoLen is %u; a stream has %zu bytes", what, infoLen,
				  sizeof(aclrtStream));
	*info = th->stream;
	return HCCL_SUCCESS;
}

/* ---- What may be under way --------------------------------------------------------------------- */

struct hcomm_item *hcomm_under_take(struct hcomm_thread *th, u32 *n)
{
	struct hcomm_item *it = NULL;
	u32 i;

	*n = 0;
	pthread_mutex_lock(&th->lock);
	if (th->nunder)
		it = calloc(th->nunder, sizeof(*it));
	for (i = 0; it && i < th->nunder; i++) {
		struct hcomm_channel *ch = th->under[i].ch;

		if (npuemu_slab_holds(&hcomm_channels, ch, NPUEMU_SLAB_SIZE(*ch)) && ch->gen == th->under[i].gen)
			hcomm_item_drain(ch, &it[(*n)++]);
	}
	if (it)
		th->nunder = 0;
	pthread_mutex_unlock(&th->lock);
	return it;
}

/* ---- Times --------------------------------------------------------------------------------------- */

static HcclResult seconds(const char *what, float v)
{
	if (isnan(v) || v < 0 || v > LONGEST_S)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %g s; 0 (for ever) to %.0f", what, (double)v, (double)LONGEST_S);
	return HCCL_SUCCESS;
}

int32_t HcommSetNotifyWaitTimeOut(float timeOut)
{
	HcclResult ret = seconds("HcommSetNotifyWaitTimeOut", timeOut);

	if (!ret) {
		times.set = true;
		times.wait_s = timeOut;
	}
	return ret;
}

int32_t HcommThreadResAcquireTimeOut(float timeOut)
{
	HcclResult ret = seconds("HcommThreadResAcquireTimeOut", timeOut);

	/* a stream is as long as it has to be: nobody waits for room */
	if (!ret)
		times.room_s = timeOut;
	return ret;
}
