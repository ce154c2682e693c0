// SPDX-License-Identifier: MIT
/*
 * Ranks come to collectives ahead of their turn (lib/hccl/run.c).  Nobody may see that but
 * by the clock: each still has what the one before has left, whatever is between them in
 * the stream is done between them, one that is wrong spoils none before it, and who is
 * waited for has the right name.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hccltest.h"

#define U32	HCCL_DATA_TYPE_UINT32
#define SUM	HCCL_REDUCE_SUM
#define LEN	60u		/* elements: has parts for 2 to 6 ranks */

/* ---- One after the other -------------------------------------------------------------- */

enum kind {
	ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, BROADCAST, BARRIER, ALLGATHERV, ALLTOALLV, KINDS,
};

/* What a rank has: each step is on @v, some by way of @w. */
struct vectors {
	uint32_t v[HT_RANKS][LEN];
	uint32_t w[HT_RANKS][LEN];
};

/* Parts of different lengths, all of them LEN elements together: of @k's rotation, rank @r's. */
static uint64_t part(uint32_t ranks, uint32_t k, uint32_t r, uint64_t *displ)
{
	uint64_t at = 0, n = 0;
	uint32_t i;

	for (i = 0; i <= r; i++) {
		at += n;
		n = i + 1 < ranks ? (i + k) % ranks * 3 : LEN - at;
	}
	*displ = at;
	return n;
}

static void swap(struct vectors *x)
{
	uint32_t t[HT_RANKS][LEN];

	memcpy(t, x->v, sizeof(t));
	memcpy(x->v, x->w, sizeof(t));
	memcpy(x->w, t, sizeof(t));
}

/* All ranks' step in a plain loop. */
static void reference(struct vectors *x, uint32_t ranks, enum kind kind, uint32_t k)
{
	uint32_t slice = LEN / ranks, i, r, s, sum[LEN] = { 0 };
	uint64_t displ, n;

	for (i = 0; i < LEN; i++)
		for (r = 0; r < ranks; r++)
			sum[i] += x->v[r][i];
	for (r = 0; r < ranks; r++) {
		for (i = 0; i < LEN && kind == ALLREDUCE; i++)
			x->v[r][i] = sum[i];
		for (i = r * slice; i < (r + 1) * slice && kind == REDUCESCATTER; i++)
			x->v[r][i] = sum[i];
		if (kind == BROADCAST)
			memmove(x->v[r], x->v[k % ranks], sizeof(x->v[r]));
		for (s = 0; s < ranks; s++) {
			if (kind == ALLGATHER)
				memcpy(x->w[r] + s * slice, x->v[s] + s * slice, slice * 4);
			if (kind == ALLTOALL || kind == ALLTOALLV)
				memcpy(x->w[r] + s * slice, x->v[s] + r * slice, slice * 4);
			n = part(ranks, k, s, &displ);
			if (kind == ALLGATHERV)
				memcpy(x->w[r] + displ, x->v[s] + displ, n * 4);
		}
	}
	if (kind == ALLGATHER || kind == ALLTOALL || kind == ALLTOALLV || kind == ALLGATHERV)
		swap(x);
}

/* The same by HCCL; true: what was @w is @v now. */
static bool issue(struct ht_rank *r, uint32_t *v, uint32_t *w, enum kind kind, uint32_t k)
{
	uint64_t counts[HT_RANKS], displs[HT_RANKS], slices[HT_RANKS], at[HT_RANKS];
	uint32_t slice = LEN / r->ranks, i;

	for (i = 0; i < r->ranks; i++) {
		counts[i] = part(r->ranks, k, i, &displs[i]);
		slices[i] = slice;
		at[i] = i * slice;
	}
	switch (kind) {
	case ALLREDUCE:
		ht_ok(HcclAllReduce(v, v, LEN, U32, SUM, r->comm, r->stream));
		return false;
	case REDUCESCATTER:
		ht_ok(HcclReduceScatter(v, v + r->rank * slice, slice, U32, SUM, r->comm, r->stream));
		return false;
	case BROADCAST:
		ht_ok(HcclBroadcast(v, LEN, U32, k % r->ranks, r->comm, r->stream));
		return false;
	case BARRIER:
		ht_ok(HcclBarrier(r->comm, r->stream));
		return false;
	case ALLGATHER:
		ht_ok(HcclAllGather(v + r->rank * slice, w, slice, U32, r->comm, r->stream));
		return true;
	case ALLTOALL:
		ht_ok(HcclAlltoAll(v, slice, U32, w, slice, U32, r->comm, r->stream));
		return true;
	case ALLGATHERV:
		ht_ok(HcclAllGatherV(v + displs[r->rank], counts[r->rank], w, counts, displs, U32, r->comm,
				     r->stream));
		return true;
	default:
		ht_ok(HcclAlltoAllV(v, slices, at, U32, w, slices, at, U32, r->comm, r->stream));
		return true;
	}
}

static void start_with(struct vectors *x)
{
	uint32_t r, i;

	for (r = 0; r < HT_RANKS; r++)
		for (i = 0; i < LEN; i++) {
			x->v[r][i] = r * 1000 + i * i + 1;
			x->w[r][i] = 0;
		}
}

/*
 * Each reads what the one before it wrote.  Ranks are late at random, and wait at random:
 * one is behind now, another one then.
 */
static void chain(struct ht_rank *r)
{
	static __thread struct vectors x;
	uint64_t same = 42, own = 7 + r->rank;
	uint32_t *v, *w, *t, k;
	enum kind kind;

	start_with(&x);
	v = ht_device(sizeof(x.v[0]), x.v[r->rank]);
	w = ht_device(sizeof(x.w[0]), x.w[r->rank]);
	for (k = 0; k < 400; k++) {
		kind = (enum kind)(sys_rand(&same) % KINDS);
		reference(&x, r->ranks, kind, k);
		if (issue(r, v, w, kind, k)) {
			t = v;
			v = w;
			w = t;
		}
		if (!(sys_rand(&own) % 40))
			usleep((useconds_t)(sys_rand(&own) % 2000));
		if (!(sys_rand(&own) % 40)) {
			ht_sync(r);
			ht_compare("half way", v, x.v[r->rank], sizeof(x.v[0]));
		}
	}
	ht_sync(r);
	ht_compare("in the end", v, x.v[r->rank], sizeof(x.v[0]));
	acl_ok(aclrtFree(v));
	acl_ok(aclrtFree(w));
}

static void chained(void **state)
{
	uint32_t n;

	(void)state;
	for (n = 1; n <= 6; n++)
		ht_run_both(chain, n, false);
}

/* A lane is its rank's there: nobody gets on alone. */
static void chained_queue(void **state)
{
	(void)state;
	ht_env("NPUEMU_TRANSPORT", "queue");
	ht_run_both(chain, 3, false);
	ht_env_restore();
}

/* ---- Something is between ------------------------------------------------------------------- */

/* A copy after each sum makes the next one's input; only the copy knows it. */
static void copies_between(struct ht_rank *r)
{
	uint32_t host[LEN], want[LEN], i, k;
	void *in, *out;

	for (i = 0; i < LEN; i++) {
		host[i] = i + r->rank;
		want[i] = r->ranks * i + r->ranks * (r->ranks - 1) / 2;
	}
	in = ht_device(sizeof(host), host);
	out = ht_device(sizeof(host), NULL);
	for (k = 0; k < 60; k++) {
		ht_ok(HcclAllReduce(in, out, LEN, U32, SUM, r->comm, r->stream));
		/* one or two that nothing is between, and then the copy */
		if (k % 3)
			ht_ok(HcclBarrier(r->comm, r->stream));
		acl_ok(aclrtMemcpyAsync(in, sizeof(host), out, sizeof(host), ACL_MEMCPY_DEVICE_TO_DEVICE, r->stream));
		if (k % 20 == r->rank)
			usleep(1000);
		for (i = 0; k && i < LEN; i++)
			want[i] *= r->ranks;
	}
	ht_sync(r);
	ht_compare("60 sums, and copies", out, want, sizeof(want));
	acl_ok(aclrtFree(in));
	acl_ok(aclrtFree(out));
}

/* An event that another stream records, when its rank likes to: what is behind it waits. */
static void waits_between(struct ht_rank *r)
{
	uint32_t before[LEN] = { 0 }, after[LEN], want[LEN], i;
	aclrtStream other;
	aclrtEvent event;
	void *buf;

	for (i = 0; i < LEN; i++) {
		after[i] = i + r->rank;
		want[i] = r->ranks * i + r->ranks * (r->ranks - 1) / 2;
	}
	buf = ht_device(sizeof(before), before);
	acl_ok(aclrtCreateStream(&other));
	acl_ok(aclrtCreateEvent(&event));
	for (i = 0; i < 5; i++)
		ht_ok(HcclAllReduce(buf, buf, LEN, U32, SUM, r->comm, r->stream));
	/* zeros so far; the numbers come by another stream, and rank by rank */
	ht_barrier(r);
	ht_sync(r);
	if (r->rank)
		ht_await(0, r->rank);
	acl_ok(aclrtMemcpyAsync(buf, sizeof(after), after, sizeof(after), ACL_MEMCPY_HOST_TO_DEVICE, other));
	acl_ok(aclrtRecordEvent(event, other));
	ht_ok(HcclBarrier(r->comm, r->stream));
	acl_ok(aclrtStreamWaitEvent(r->stream, event));
	ht_ok(HcclAllReduce(buf, buf, LEN, U32, SUM, r->comm, r->stream));
	ht_ok(HcclBarrier(r->comm, r->stream));
	ht_add(0, 1);
	ht_sync(r);
	ht_compare("after the event", buf, want, sizeof(want));
	acl_ok(aclrtDestroyEvent(event));
	acl_ok(aclrtDestroyStream(other));
	acl_ok(aclrtFree(buf));
}

static void between(void **state)
{
	(void)state;
	ht_run_both(copies_between, 3, false);
	ht_run_both(waits_between, 3, false);
}

/* ---- Something is wrong ------------------------------------------------------------------------ */

/* Of @before sums and one more that a rank wants to be a maximum: the sums are there. */
static void differs_behind(struct ht_rank *r)
{
	static const uint32_t some[] = { 0, 1, 2, 6, 7, 8, 9, 15, 16, 17, 40 };
	uint32_t host[LEN], want[LEN], i, k, n;
	char words[32];
	void *buf;

	for (n = 0; n < sizeof(some) / sizeof(some[0]); n++) {
		for (i = 0; i < LEN; i++) {
			host[i] = i + r->rank;
			want[i] = some[n] ? r->ranks * i + r->ranks * (r->ranks - 1) / 2 : host[i];
			for (k = 1; k < some[n]; k++)
				want[i] *= r->ranks;
		}
		buf = ht_device(sizeof(host), host);
		for (k = 0; k < some[n]; k++)
			ht_ok(HcclAllReduce(buf, buf, LEN, U32, SUM, r->comm, r->stream));
		ht_ok(HcclAllReduce(buf, buf, LEN, U32, r->rank == 1 ? HCCL_REDUCE_MAX : SUM, r->comm, r->stream));
		snprintf(words, sizeof(words), "op %u ", some[n] + 1);
		ht_words(ht_sync_fails(r), "EI0005", "rank 1", words, "max");
		acl_ok(aclrtDestroyStream(r->stream));
		acl_ok(aclrtCreateStream(&r->stream));
		ht_compare("what came before", buf, want, sizeof(want));
		acl_ok(aclrtFree(buf));
		ht_barrier(r);
		ht_ok(HcclCommDestroy(r->comm));
		r->comm = ht_comm(r, NULL);
	}
}

static void wrong_behind(void **state)
{
	(void)state;
	ht_run_both(differs_behind, 3, false);
}

/* ---- A rank stands still ------------------------------------------------------------------------ */

struct still {
	uint32_t victim;
};

static HcclResult one_of(struct ht_rank *r, uint32_t n, char *in, char *out)
{
	switch (n % 4) {
	case 0:
		return HcclAllReduce(in, out, 50000, U32, SUM, r->comm, r->stream);
	case 1:
		return HcclBarrier(r->comm, r->stream);
	case 2:
		return HcclAllReduce(in, out, 2, U32, SUM, r->comm, r->stream);
	default:
		return HcclAlltoAll(in, 40000, U32, out, 40000, U32, r->comm, r->stream);
	}
}

/* Until the limit: then all others tell its name, wherever it stands. */
static void goes_on(struct ht_rank *r)
{
	const struct still *s = r->arg;
	char *in = ht_device(1000000, NULL), *out = ht_device(1000000, NULL), name[16];
	HcclResult ret = HCCL_SUCCESS;
	aclError err = ACL_SUCCESS;
	const char *text;
	uint32_t n;

	for (n = 0; !ret && !err; n++) {
		ret = one_of(r, n, in, out);
		if (!ret && n % 20 == 19)
			err = aclrtSynchronizeStream(r->stream);
		if (n == 40)
			ht_add(0, 1);
		ht_progress();
	}
	text = aclGetRecentErrMsg();
	sys_true(text, "%d, %d: no message", ret, err);
	if (r->rank != s->victim) {
		snprintf(name, sizeof(name), "; rank %u ", s->victim);
		ht_words(text, "EI0002", "HCCL_EXEC_TIMEOUT", name);
	}
	ht_add(1, 1);
	aclrtSynchronizeStream(r->stream);
	acl_ok(aclrtFree(in));
	acl_ok(aclrtFree(out));
}

static void still(void **state)
{
	struct npuemu *ctx = sys_open();
	uint32_t moments = sys_slow() ? 3 : 12, i;
	uint64_t rnd = 3;

	(void)state;
	/* what comes before has to be done in it, too */
	ht_env("HCCL_EXEC_TIMEOUT", sys_slow() ? "5.5" : "0.7");
	for (i = 0; i < moments; i++) {
		struct still s = { .victim = i % 4 };
		struct ht_job job = {
			.ranks = 4, .processes = true, .fn = goes_on, .arg = &s, .bytes = sizeof(s),
		};

		ht_begin(&job);
		ht_await(0, 4);
		usleep((useconds_t)(sys_rand(&rnd) % 20000));
		sys_eq(kill(job.child[s.victim].pid, SIGSTOP), 0);
		ht_await(1, 3);
		sys_eq(kill(job.child[s.victim].pid, SIGCONT), 0);
		ht_end(&job);
		sys_eq(ht_get(1), 4);
		sys_nothing_left(ctx, 1);
	}
	ht_env_restore();
	sys_rc(npuemu_close(ctx));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ht_test(chained),
		ht_test(chained_queue),
		ht_test(between),
		ht_test(wrong_behind),
		ht_test(still),
	};

	setenv("NPUEMU_LOG", "error:/dev/null", 0);	/* errors are what some of it is about */
	ht_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
