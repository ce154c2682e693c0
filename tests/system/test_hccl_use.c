// SPDX-License-Identifier: MIT
/*
 * Communicators in use: several beside each other, found by name, destroyed; collectives
 * that are queued deep, and those that a model has recorded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hccltest.h"

#define COUNT	1000u

/* ---- Several ---------------------------------------------------------------------------------------- */

/* Two communicators, two streams, one order of calls; a stream of its own for each. */
static void interleave(struct ht_rank *r)
{
	uint32_t ones[COUNT], want[2][COUNT], i, k;
	HcclComm comm[2] = { r->comm, ht_comm(r, NULL) };
	aclrtStream stream[2] = { r->stream, NULL };
	void *buf[2];

	acl_ok(aclrtCreateStream(&stream[1]));
	for (i = 0; i < COUNT; i++) {
		ones[i] = i + r->rank;
		want[0][i] = r->ranks * i + r->ranks * (r->ranks - 1) / 2;
		want[1][i] = want[0][i];
	}
	for (k = 0; k < 2; k++)
		buf[k] = ht_device(sizeof(ones), ones);
	for (i = 0; i < 30; i++)
		for (k = 0; k < 2; k++)
			ht_ok(HcclAllReduce(buf[k], buf[k], COUNT - k, HCCL_DATA_TYPE_UINT32,
					    HCCL_REDUCE_SUM, comm[k], stream[(k + i) & 1]));
	for (k = 0; k < 2; k++)
		acl_ok(aclrtSynchronizeStream(stream[k]));
	for (k = 0; k < 2; k++) {
		for (i = 0; i < COUNT - k; i++)
			for (int n = 1; n < 30; n++)
				want[k][i] *= r->ranks;
		want[k][COUNT - 1] = k ? ones[COUNT - 1] : want[k][COUNT - 1];
		ht_compare("30 sums", buf[k], want[k], sizeof(want[k]));
		acl_ok(aclrtFree(buf[k]));
	}
	acl_ok(aclrtDestroyStream(stream[1]));
	ht_ok(HcclCommDestroy(comm[1]));
}

static void interleaved(void **state)
{
	(void)state;
	ht_run_both(interleave, 3, false);
}

static void names(struct ht_rank *r)
{
	char name[COMM_NAME_MAX_LENGTH];
	HcclComm found = NULL, other;
	HcclCommStatus status;
	HcclCommConfig c;

	ht_ok(HcclGetCommName(r->comm, name));
	ht_ok(HcclCommGetHandleWithName(name, &found));
	assert_ptr_equal(found, r->comm);
	HcclCommConfigInit(&c);
	snprintf(c.hcclCommName, sizeof(c.hcclCommName), "by its own name");
	other = ht_comm(r, &c);
	ht_ok(HcclCommGetHandleWithName("by its own name", &found));
	assert_ptr_equal(found, other);
	ht_ok(HcclCommGetStatus("by its own name", &status));
	sys_eq(status, HCCL_COMM_STATUS_READY);
	ht_barrier(r);
	ht_ok(HcclCommDestroy(other));
	ht_barrier(r);
	ht_fails(HcclCommGetHandleWithName("by its own name", &found), HCCL_E_NOT_FOUND);
	ht_ok(HcclCommGetHandleWithName(name, &found));
	assert_ptr_equal(found, r->comm);
	ht_fails(HcclCommGetHandleWithName(NULL, &found), HCCL_E_PTR);
	ht_fails(HcclCommGetHandleWithName(name, NULL), HCCL_E_PTR);
	ht_fails(HcclCommGetStatus(name, NULL), HCCL_E_PTR);
}

static void by_name(void **state)
{
	(void)state;
	ht_run_both(names, 3, false);
}

/* ---- Destroyed ------------------------------------------------------------------------------------------ */

static void destroy(struct ht_rank *r)
{
	HcclComm old = r->comm, other = ht_comm(r, NULL);
	HcclResult async;
	uint32_t v;

	/* not while somebody has yet to come to what is queued */
	if (!r->rank) {
		ht_ok(HcclBarrier(r->comm, r->stream));
		ht_says(HcclCommDestroy(r->comm), HCCL_E_AGAIN, "HcclCommDestroy");
		ht_set(0, 1);
	} else {
		ht_await(0, 1);
		ht_ok(HcclBarrier(r->comm, r->stream));
	}
	ht_sync(r);
	/* what is queued, and goes on, is waited for */
	ht_ok(HcclBarrier(r->comm, r->stream));
	ht_barrier(r);
	ht_ok(HcclCommDestroy(r->comm));
	r->comm = NULL;
	acl_ok(aclrtSynchronizeStream(r->stream));
	ht_fails(HcclCommDestroy(old), HCCL_E_PARA);
	ht_fails(HcclGetRankSize(old, &v), HCCL_E_PARA);
	ht_fails(HcclGetCommAsyncError(old, &async), HCCL_E_PARA);
	ht_fails(HcclBarrier(old, r->stream), HCCL_E_PARA);
	ht_proves(r, other, 1);
	ht_ok(HcclCommDestroy(other));
}

static void destroyed(void **state)
{
	(void)state;
	ht_run_both(destroy, 3, false);
}

/* ---- Deep queues, and models --------------------------------------------------------------------------------- */

/* The others come when this rank has issued all. */
static void deep(struct ht_rank *r)
{
	uint32_t host[64], want[64], i, k;
	void *buf;

	for (i = 0; i < 64; i++) {
		host[i] = i + r->rank;
		want[i] = 3 * i + 3;
		for (k = 1; k < 200; k++)
			want[i] *= 3;
	}
	buf = ht_device(sizeof(host), host);
	if (r->rank)
		ht_await(0, r->rank);
	for (k = 0; k < 200; k++)
		ht_ok(HcclAllReduce(buf, buf, 64, HCCL_DATA_TYPE_UINT32, HCCL_REDUCE_SUM, r->comm,
				    r->stream));
	ht_add(0, 1);
	ht_sync(r);
	ht_compare("200 sums", buf, want, sizeof(want));
	acl_ok(aclrtFree(buf));
}

static void deep_queue(void **state)
{
	(void)state;
	ht_run_both(deep, 3, false);
}

static void sum(struct ht_rank *r, void *buf)
{
	ht_ok(HcclAllReduce(buf, buf, 64, HCCL_DATA_TYPE_UINT32, HCCL_REDUCE_SUM, r->comm,
			    r->stream));
}

/* Recorded: sum, sum, broadcast of rank 1's.  Eager: a sum before each run, and after all. */
static void model(struct ht_rank *r)
{
	uint32_t host[64], want[64], i, k;
	aclmdlRI ri = NULL;
	void *buf, *copy;

	for (i = 0; i < 64; i++) {
		host[i] = i + r->rank;
		want[i] = r->ranks * i + r->ranks * (r->ranks - 1) / 2;
		for (k = 1; k < 3 * 3 + 1; k++)
			want[i] *= r->ranks;
	}
	buf = ht_device(sizeof(host), host);
	copy = ht_device(sizeof(host), NULL);
	acl_ok(aclmdlRICaptureBegin(r->stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
	sum(r, buf);
	sum(r, buf);
	ht_ok(HcclAllGather(buf, copy, 64 / r->ranks, HCCL_DATA_TYPE_UINT32, r->comm, r->stream));
	ht_ok(HcclBroadcast(buf, 64, HCCL_DATA_TYPE_UINT32, 1, r->comm, r->stream));
	acl_ok(aclmdlRICaptureEnd(r->stream, &ri));
	/* it was recorded, and has not run */
	ht_compare("before the first run", buf, host, sizeof(host));
	for (k = 0; k < 3; k++) {
		sum(r, buf);
		acl_ok(aclmdlRIExecuteAsync(ri, r->stream));
	}
	sum(r, buf);
	ht_sync(r);
	ht_compare("10 sums", buf, want, sizeof(want));
	/* the last AllGather was one sum before */
	for (k = 0; k < 64 / r->ranks; k++) {
		acl_ok(aclrtMemcpy(&i, sizeof(i), (uint32_t *)copy + k + 64 / r->ranks, sizeof(i),
				   ACL_MEMCPY_DEVICE_TO_HOST));
		sys_eq(i * r->ranks, want[k]);
	}
	/* its communicator is needed until the model is gone */
	ht_fails(HcclCommDestroy(r->comm), HCCL_E_AGAIN);
	acl_ok(aclmdlRIDestroy(ri));
	acl_ok(aclrtFree(buf));
	acl_ok(aclrtFree(copy));
}

static void models(void **state)
{
	(void)state;
	ht_run_both(model, 4, false);
	ht_run_both(model, 2, false);
}

/* More buffers than a process keeps open of a peer, in any order: none is closed under an operation. */
#define BUFFERS	40u

static void many_buffers(struct ht_rank *r)
{
	void *buf[BUFFERS];
	uint32_t mine[COUNT], want[COUNT], i, k, in, out, seed = 1;

	for (k = 0; k < BUFFERS; k++) {
		for (i = 0; i < COUNT; i++)
			mine[i] = (r->rank + 1) * (k + 1) + i;
		buf[k] = ht_device(sizeof(mine), mine);
	}
	for (k = 0; k < 200; k++) {
		seed = seed * 1103515245u + 12345u;
		in = (seed >> 16) % (BUFFERS / 2);
		out = BUFFERS / 2 + (seed >> 24) % (BUFFERS / 2);
		for (i = 0; i < COUNT; i++)
			want[i] = r->ranks * (r->ranks + 1) / 2 * (in + 1) + r->ranks * i;
		ht_ok(HcclAllReduce(buf[in], buf[out], COUNT, HCCL_DATA_TYPE_UINT32, HCCL_REDUCE_SUM, r->comm,
				    r->stream));
		ht_sync(r);
		ht_compare("a sum", buf[out], want, sizeof(want));
	}
	for (k = 0; k < BUFFERS; k++)
		acl_ok(aclrtFree(buf[k]));
}

static void buffers(void **state)
{
	(void)state;
	ht_run_both(many_buffers, 3, false);
}

/*
 * One rank has all there is to do, long enough that it is left to it for a while, and
 * the last to come is another.
 */
#define LONG	(512u << 10)

static void one_works(struct ht_rank *r)
{
	uint32_t *mine = malloc(LONG * 4), *want = malloc(LONG * 4), root, i;
	void *in, *out;

	sys_true(mine && want, "out of memory");
	for (i = 0; i < LONG; i++) {
		mine[i] = r->rank + 3 + i % 5;
		want[i] = 1;
		for (uint32_t k = 0; k < r->ranks; k++)
			want[i] *= k + 3 + i % 5;
	}
	in = ht_device(LONG * 4, mine);
	for (root = 0; root < r->ranks; root++) {
		out = ht_device(LONG * 4, NULL);
		ht_barrier(r);
		if (r->rank == (root + 1) % r->ranks)
			sys_nap(30);
		ht_ok(HcclReduce(in, out, LONG, HCCL_DATA_TYPE_UINT32, HCCL_REDUCE_PROD, root, r->comm, r->stream));
		ht_sync(r);
		if (r->rank == root)
			ht_compare("a product", out, want, LONG * 4);
		acl_ok(aclrtFree(out));
	}
	acl_ok(aclrtFree(in));
	free(mine);
	free(want);
}

static void one_lane(void **state)
{
	(void)state;
	ht_env("HCCL_ALGO", "level0:mesh_oneshot");
	ht_run_both(one_works, 4, false);
	ht_env_restore();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ht_test(interleaved),
		ht_test(by_name),
		ht_test(destroyed),
		ht_test(deep_queue),
		ht_test(models),
		ht_test(buffers),
		ht_test(one_lane),
	};

	ht_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
