// SPDX-License-Identifier: MIT
/*
 * What goes wrong among ranks: they disagree, one does not come, one is killed at any
 * moment, a stream is aborted.  All others are told who and at what, within the deadline;
 * the communicator can be destroyed, a new one works, and nothing is left on the board.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hccltest.h"

#define I32	HCCL_DATA_TYPE_INT32
#define F32	HCCL_DATA_TYPE_FP32
#define SUM	HCCL_REDUCE_SUM
#define COUNT	1000u

static void run(ht_fn fn, uint32_t ranks, const void *arg, size_t bytes)
{
	struct ht_job job = { .ranks = ranks, .fn = fn, .arg = arg, .bytes = bytes };

	ht_run(&job);
	job.processes = true;
	ht_run(&job);
}

static void fresh_stream(struct ht_rank *r)
{
	acl_ok(aclrtDestroyStream(r->stream));
	acl_ok(aclrtCreateStream(&r->stream));
}

/* Its stream has failed, with these words; what comes next is refused with the same. */
static void failed(struct ht_rank *r, void *buf, const char *const *words)
{
	const char *text = ht_sync_fails(r), *msg;
	HcclResult async = HCCL_SUCCESS;

	for (; *words; words++)
		ht_words(text, *words);
	ht_ok(HcclGetCommAsyncError(r->comm, &async));
	sys_eq(async, HCCL_E_REMOTE);
	fresh_stream(r);
	sys_true(HcclAllReduce(buf, buf, 1, I32, SUM, r->comm, r->stream), "it goes on as if nothing was");
	msg = aclGetRecentErrMsg();
	sys_true(msg && strstr(msg, "HcclAllReduce"), "refused with: %s", msg ? msg : "nothing");
	acl_ok(aclrtSynchronizeStream(r->stream));
}

/* A new communicator, as all ranks have heard of the failure, and it works. */
static void again(struct ht_rank *r, void *buf)
{
	uint32_t one = 1, all = r->ranks;

	ht_barrier(r);
	ht_ok(HcclCommDestroy(r->comm));
	r->comm = ht_comm(r, NULL);
	acl_ok(aclrtMemcpy(buf, 4, &one, 4, ACL_MEMCPY_HOST_TO_DEVICE));
	ht_ok(HcclAllReduce(buf, buf, 1, I32, SUM, r->comm, r->stream));
	ht_sync(r);
	ht_compare("after a failure", buf, &all, 4);
}

/* ---- Ranks disagree -------------------------------------------------------------------- */

struct differ {
	const char *what;
	const char *odd, *others;	/* as the message has them */
};

static HcclResult issue(struct ht_rank *r, int what, bool odd, char *in, char *out)
{
	uint64_t counts[HT_RANKS], displs[HT_RANKS], i;

	for (i = 0; i < HT_RANKS; i++) {
		counts[i] = odd && i == 1 ? 9 : 10;
		displs[i] = 10 * i;
	}
	switch (what) {
	case 0:
		if (odd)
			return HcclBroadcast(out, 100, F32, 1, r->comm, r->stream);
		return HcclAllReduce(in, out, 100, F32, SUM, r->comm, r->stream);
	case 1:
		return HcclAllReduce(in, out, odd ? 99 : 100, F32, SUM, r->comm, r->stream);
	case 2:
		return HcclAllGather(in, out, 100, odd ? I32 : F32, r->comm, r->stream);
	case 3:
		return HcclReduceScatter(in, out, 10, F32, odd ? HCCL_REDUCE_MAX : SUM, r->comm,
					 r->stream);
	case 4:
		return HcclBroadcast(out, 100, F32, odd ? 2 : 0, r->comm, r->stream);
	case 5:
		return HcclReduce(in, out, 100, F32, SUM, odd ? 3 : 0, r->comm, r->stream);
	case 6:
		return HcclScatter(in, out, 10, F32, odd ? 1 : 0, r->comm, r->stream);
	case 7:
		return odd ? HcclBarrier(r->comm, r->stream) :
			     HcclAlltoAll(in, 10, F32, out, 10, F32, r->comm, r->stream);
	case 8:
		return HcclAllGatherV(in, counts[r->rank], out, counts, displs, F32, r->comm, r->stream);
	default:
		return HcclAlltoAllV(in, counts, displs, F32, out, counts, displs, F32, r->comm,
				     r->stream);
	}
}

static const struct differ differ[] = {
	{ "operation", "broadcast(fp32, 100, root 1)", "allreduce(fp32, 100, sum)" },
	{ "count", "allreduce(fp32, 99, sum)", "allreduce(fp32, 100, sum)" },
	{ "type", "allgather(int32, 100)", "allgather(fp32, 100)" },
	{ "reduction", "reducescatter(fp32, 10, max)", "reducescatter(fp32, 10, sum)" },
	{ "root", "broadcast(fp32, 100, root 2)", "broadcast(fp32, 100, root 0)" },
	{ "root", "reduce(fp32, 100, sum, root 3)", "reduce(fp32, 100, sum, root 0)" },
	{ "root", "scatter(fp32, 10, root 1)", "scatter(fp32, 10, root 0)" },
	{ "operation", "barrier", "alltoall(fp32, 10)" },
	{ "counts", "fp32", "rank" },
	/* what it sends, or gets, is another number than its peer has */
	{ "sends", "expects", "rank 1" },
};

#define DIFFER	((int)(sizeof(differ) / sizeof(differ[0])))

static void disagrees(struct ht_rank *r)
{
	char *in = ht_device(COUNT * 8, NULL), *out = ht_device(COUNT * 8, NULL);
	int what, before;

	for (what = 0; what < DIFFER; what++) {
		const char *words[] = {
			"EI0005", "rank 2", differ[what].what, differ[what].odd, differ[what].others, NULL,
		};

		/* some good ones before it */
		for (before = 0; before < what % 3; before++)
			ht_ok(HcclAllReduce(in, in, 5, F32, SUM, r->comm, r->stream));
		ht_ok(issue(r, what, r->rank == 2, in, out));
		failed(r, out, words);
		again(r, out);
	}
	acl_ok(aclrtFree(in));
	acl_ok(aclrtFree(out));
}

static void disagree(void **state)
{
	(void)state;
	run(disagrees, 4, NULL, 0);
}

/* Of two ranks nobody is in the majority, and both are named. */
static void two_disagree(struct ht_rank *r)
{
	static const char *const words[] = { "rank 0", "rank 1", "max", "sum", NULL };
	void *buf = ht_device(COUNT * 4, NULL);

	ht_ok(HcclAllReduce(buf, buf, 10, F32, r->rank ? HCCL_REDUCE_MAX : SUM, r->comm, r->stream));
	failed(r, buf, words);
	again(r, buf);
	acl_ok(aclrtFree(buf));
}

static void disagree_two(void **state)
{
	(void)state;
	run(two_disagree, 2, NULL, 0);
}

/* ---- A rank does not come ------------------------------------------------------------------ */

static void one_idle(struct ht_rank *r)
{
	static const char *const words[] = {
		"EI0002", "rank 3 has not issued it", "op 3 allreduce(fp32, 100, sum)", "op 2 broadcast",
		"HCCL_EXEC_TIMEOUT", NULL,
	};
	void *buf = ht_device(COUNT * 4, NULL);
	time_t begin;

	ht_ok(HcclAllReduce(buf, buf, 7, F32, SUM, r->comm, r->stream));
	ht_ok(HcclBroadcast(buf, 100, F32, 1, r->comm, r->stream));
	ht_sync(r);
	ht_barrier(r);
	begin = time(NULL);
	if (r->rank != 3) {
		ht_ok(HcclAllReduce(buf, buf, 100, F32, SUM, r->comm, r->stream));
		failed(r, buf, words);
		sys_true(time(NULL) - begin < 20, "it took %ld s", (long)(time(NULL) - begin));
		ht_add(0, 1);
	} else {
		ht_await(0, 3);
		/* it comes too late, and is told why */
		sys_true(HcclAllReduce(buf, buf, 100, F32, SUM, r->comm, r->stream), "it works");
		ht_said(__FILE__, __LINE__, "late", "rank 3 has not issued it");
	}
	again(r, buf);
	acl_ok(aclrtFree(buf));
}

static void not_issued(void **state)
{
	(void)state;
	/* it is the limit of what comes before, too, and that is to work */
	ht_env("HCCL_EXEC_TIMEOUT", sys_slow() ? "5.5" : "0.5");
	run(one_idle, 4, NULL, 0);
	ht_env_restore();
}

/* 0 is no limit; nor is one that is long enough. */
static void late(struct ht_rank *r)
{
	uint32_t one = 1, want = r->ranks;
	void *buf = ht_device(4, &one);

	if (r->rank == 1)
		sys_nap(1200);
	ht_ok(HcclAllReduce(buf, buf, 1, I32, SUM, r->comm, r->stream));
	ht_sync(r);
	ht_compare("late, but there", buf, &want, 4);
	acl_ok(aclrtFree(buf));
}

static void no_limit(void **state)
{
	(void)state;
	ht_env("HCCL_EXEC_TIMEOUT", "0");
	run(late, 3, NULL, 0);
	ht_env_restore();
}

/* ---- A rank is killed --------------------------------------------------------------------------- */

struct killed {
	uint32_t victim;
	bool p2p;
};

/* One of several kinds; the same at all ranks. */
static HcclResult some(struct ht_rank *r, uint32_t n, char *in, char *out)
{
	switch (n % 5) {
	case 0:
		return HcclAllReduce(in, out, 3 * COUNT, F32, SUM, r->comm, r->stream);
	case 1:
		return HcclAllGather(in, out, COUNT, F32, r->comm, r->stream);
	case 2:
		return HcclBarrier(r->comm, r->stream);
	case 3:
		return HcclAlltoAll(in, 100 * COUNT, I32, out, 100 * COUNT, I32, r->comm, r->stream);
	default:
		return HcclBroadcast(out, 50 * COUNT, F32, n % r->ranks, r->comm, r->stream);
	}
}

static HcclResult round_about(struct ht_rank *r, char *in, char *out)
{
	HcclSendRecvItem items[2] = {
		{ HCCL_SEND, in, 40 * COUNT, F32, (r->rank + 1) % r->ranks },
		{ HCCL_RECV, out, 40 * COUNT, F32, (r->rank + r->ranks - 1) % r->ranks },
	};

	return HcclBatchSendRecv(items, 2, r->comm, r->stream);
}

/* Until it fails: at a call, or at a sync.  Then with what words. */
static const char *until_it_fails(struct ht_rank *r, bool p2p, char *in, char *out)
{
	HcclResult ret = HCCL_SUCCESS;
	aclError err = ACL_SUCCESS;
	const char *msg;
	uint32_t n;

	for (n = 0; !ret && !err; n++) {
		ret = p2p ? round_about(r, in, out) : some(r, n, in, out);
		if (!ret && n % 8 == 7)
			err = aclrtSynchronizeStream(r->stream);
		if (n == 8)
			ht_add(0, 1);
		ht_progress();
	}
	msg = aclGetRecentErrMsg();
	sys_true(msg, "%d, %d: no message", ret, err);
	snprintf(ht_shared->text[r->rank], HT_TEXT, "%s", msg);
	return ht_shared->text[r->rank];
}

static void survive(struct ht_rank *r)
{
	const struct killed *k = r->arg;
	char *in = ht_device(2000000, NULL), *out = ht_device(2000000, NULL), who[32];
	HcclResult async = HCCL_SUCCESS;
	const char *text;

	text = until_it_fails(r, k->p2p, in, out);
	snprintf(who, sizeof(who), "rank %u ", k->victim);
	ht_words(text, "EI0006", who, "has died");
	ht_ok(HcclGetCommAsyncError(r->comm, &async));
	sys_eq(async, HCCL_E_REMOTE);
	ht_add(1, 1);
	/* whatever is queued ends as well */
	aclrtSynchronizeStream(r->stream);
	acl_ok(aclrtFree(in));
	acl_ok(aclrtFree(out));
}

static void works(struct ht_rank *r)
{
	void *buf = ht_device(4, &(uint32_t){ 1 });

	ht_ok(HcclAllReduce(buf, buf, 1, I32, SUM, r->comm, r->stream));
	ht_sync(r);
	ht_compare("the sum", buf, &r->ranks, 4);
	acl_ok(aclrtFree(buf));
}

static void kill_at(struct npuemu *ctx, uint32_t victim, bool p2p, uint32_t us)
{
	struct killed k = { .victim = victim, .p2p = p2p };
	struct ht_job job = {
		.ranks = 4, .processes = true, .fn = survive, .arg = &k, .bytes = sizeof(k),
	};
	struct ht_job next = { .ranks = 4, .processes = us & 1, .fn = works };
	int64_t began;

	ht_begin(&job);
	ht_await(0, 4);
	usleep(us);
	began = npuemu_now_ns();
	ht_kill(&job, victim);
	ht_end(&job);
	sys_eq(ht_get(1), 3);
	sys_true(npuemu_now_ns() - began < (sys_slow() ? 30 : 10) * 1000000000ll, "it took %lld ms",
		 (long long)(npuemu_now_ns() - began) / 1000000);
	sys_nothing_left(ctx, 1);
	ht_run(&next);
	sys_nothing_left(ctx, 1);
}

static void kill_some(uint32_t moments, bool p2p)
{
	struct npuemu *ctx = sys_open();
	uint64_t rnd = p2p ? 77 : 7;
	uint32_t i;

	if (sys_slow())
		moments /= 3;
	for (i = 0; i < moments; i++)
		kill_at(ctx, i % 4, p2p, (uint32_t)(sys_rand(&rnd) % 20000));
	sys_rc(npuemu_close(ctx));
}

static void killed(void **state)
{
	(void)state;
	kill_some(20, false);
}

static void killed_p2p(void **state)
{
	(void)state;
	kill_some(6, true);
}

/* Rank 2 has come to the meeting and dies there; rank 3 never comes. */
static void meeting(struct ht_rank *r)
{
	HcclComm c = NULL;
	HcclResult ret;

	if (!r->rank)
		ht_ok(HcclGetRootInfo(&ht_shared->root[0]));
	ht_barrier(r);
	ht_add(0, 1);
	ret = HcclCommInitRootInfo(4, &ht_shared->root[0], r->rank, &c);
	ht_is(__FILE__, __LINE__, "rank 2 died", ret, HCCL_E_REMOTE);
	ht_said(__FILE__, __LINE__, "rank 2 died", "rank 2 ");
	ht_add(1, 1);
}

/* Processes of the board that have at least @n buffers: the last thing that a rank makes before it joins. */
static uint32_t with_buffers(struct npuemu *ctx, uint32_t n)
{
	struct npuemu_process_info list[16];
	int found = npuemu_process_list(ctx, list, 16), i;
	uint32_t count = 0;

	for (i = 0; i < found && i < 16; i++)
		count += list[i].buffers >= n;
	return count;
}

static void killed_meeting(void **state)
{
	struct ht_job job = { .ranks = 3, .processes = true, .bare = true, .fn = meeting };
	struct npuemu *ctx = sys_open();
	int64_t end;

	(void)state;
	ht_begin(&job);
	ht_await(0, 3);
	for (end = sys_deadline(); with_buffers(ctx, 1) < 3;)
		sys_true(sys_retry(end), "the ranks do not come to their meeting");
	sys_nap(500);
	ht_kill(&job, 2);
	ht_end(&job);
	sys_eq(ht_get(1), 2);
	sys_nothing_left(ctx, 1);
	sys_rc(npuemu_close(ctx));
}

/* ---- A rank is stopped --------------------------------------------------------------------------- */

#define LONG	(768u << 10)	/* long enough for lanes that are left to their ranks: lib/hccl/run.c */

/* It has come, and then does not do its part: after a while the others do it. */
static void part_of(struct ht_rank *r)
{
	float *host = malloc(LONG * sizeof(*host)), *want = malloc(LONG * sizeof(*want));
	uint32_t i, k;
	void *buf;

	sys_true(host && want, "no memory");
	for (i = 0; i < LONG; i++) {
		host[i] = (float)(r->rank + i % 100);
		for (want[i] = 0, k = 0; k < r->ranks; k++)
			want[i] += (float)(k + i % 100);
	}
	buf = ht_device(LONG * sizeof(*host), host);
	if (r->rank != 2)
		ht_await(0, 1);
	ht_ok(HcclAllReduce(buf, buf, LONG, F32, SUM, r->comm, r->stream));
	if (r->rank == 2) {
		sys_eq(aclrtSynchronizeStreamWithTimeout(r->stream, 50), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
		aclGetRecentErrMsg();
		ht_add(0, 1);
		raise(SIGSTOP);
	}
	ht_sync(r);
	ht_compare("without rank 2", buf, want, LONG * sizeof(*want));
	ht_add(1, 1);
	acl_ok(aclrtFree(buf));
	free(host);
	free(want);
}

static void stopped(void **state)
{
	struct ht_job job = { .ranks = 4, .processes = true, .fn = part_of };

	(void)state;
	ht_begin(&job);
	ht_await(1, 3);
	sys_eq(kill(job.child[2].pid, SIGCONT), 0);
	ht_end(&job);
	sys_eq(ht_get(1), 4);
}

/* ---- A stream is aborted ----------------------------------------------------------------------------- */

static void aborts(struct ht_rank *r)
{
	char *in = ht_device(2000000, NULL), *out = ht_device(2000000, NULL);
	HcclResult async = HCCL_SUCCESS;
	uint32_t n;

	for (n = 0; n < 10; n++)
		ht_ok(some(r, n, in, out));
	/* what rank 1 has beside the others' is in the middle of its stream */
	if (r->rank == 1)
		ht_ok(HcclSend(in, 10, F32, 0, r->comm, r->stream));
	ht_ok(some(r, 10, in, out));
	ht_barrier(r);
	if (r->rank == 1) {
		sys_nap(20);
		acl_ok(aclrtStreamAbort(r->stream));
		aclrtSynchronizeStream(r->stream);
		aclGetRecentErrMsg();
		ht_ok(HcclGetCommAsyncError(r->comm, &async));
		sys_eq(async, HCCL_E_REMOTE);
		fresh_stream(r);
	} else {
		failed(r, out, (const char *const[]){ "rank 1", "aborted", NULL });
	}
	again(r, out);
	acl_ok(aclrtFree(in));
	acl_ok(aclrtFree(out));
}

static void aborted(void **state)
{
	(void)state;
	run(aborts, 3, NULL, 0);
}

/* The later one of two streams is: the earlier one, not yet begun, ends as well. */
static void aborts_later(struct ht_rank *r)
{
	char *buf = ht_device(4096, NULL);
	aclrtStream later;

	acl_ok(aclrtCreateStream(&later));
	/* nobody sends it: what is behind it does not begin */
	ht_ok(HcclRecv(buf, 10, F32, (r->rank + 1) % r->ranks, r->comm, r->stream));
	ht_ok(HcclAllReduce(buf, buf, 10, F32, SUM, r->comm, r->stream));
	ht_ok(HcclAllReduce(buf, buf, 20, F32, SUM, r->comm, later));
	ht_barrier(r);
	if (!r->rank)
		acl_ok(aclrtStreamAbort(later));
	failed(r, buf, (const char *const[]){ "rank 0", "aborted", NULL });
	sys_true(r->rank == 0 || aclrtSynchronizeStream(later), "the later stream goes on");
	aclGetRecentErrMsg();
	acl_ok(aclrtDestroyStream(later));
	again(r, buf);
	acl_ok(aclrtFree(buf));
}

static void aborted_later(void **state)
{
	(void)state;
	run(aborts_later, 2, NULL, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ht_test(disagree),
		ht_test(disagree_two),
		ht_test(not_issued),
		ht_test(no_limit),
		ht_test(killed),
		ht_test(killed_p2p),
		ht_test(killed_meeting),
		ht_test(stopped),
		ht_test(aborted),
		ht_test(aborted_later),
	};

	setenv("NPUEMU_LOG", "error:/dev/null", 0);	/* they are what this is about */
	ht_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
