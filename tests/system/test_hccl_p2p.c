// SPDX-License-Identifier: MIT
/*
 * Send, Recv and BatchSendRecv: what is sent arrives, in order, between any two ranks;
 * rings, self, both directions at once; who disagrees, or is gone, is named.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hccltest.h"

#define U8	HCCL_DATA_TYPE_UINT8
#define MIB	(1u << 20)

static void run(ht_fn fn, uint32_t ranks)
{
	struct ht_job job = { .ranks = ranks, .fn = fn };

	ht_run(&job);
	job.processes = true;
	ht_run(&job);
}

/* And where the receiver reads what was sent by its own UDMA queue. */
static void run_paths(ht_fn fn, uint32_t ranks)
{
	run(fn, ranks);
	ht_env("NPUEMU_TRANSPORT", "queue");
	run(fn, ranks);
	ht_env_restore();
}

static uint64_t seed(uint32_t from, uint32_t to, uint32_t n)
{
	return from * 1000003ull + to * 1009 + n;
}

/* Device memory with the bytes of a message, or with none yet. */
static void *filled(size_t bytes, uint64_t s)
{
	void *host = malloc(bytes), *p;

	sys_true(host, "no memory");
	sys_fill(host, bytes, s);
	p = ht_device(bytes, host);
	free(host);
	return p;
}

static void arrived(const char *what, void *p, size_t bytes, uint64_t s)
{
	void *host = malloc(bytes);

	sys_true(host, "no memory");
	acl_ok(aclrtMemcpy(host, bytes, p, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_is_filled(what, host, bytes, s);
	free(host);
	acl_ok(aclrtFree(p));
}

static void fresh_stream(struct ht_rank *r)
{
	acl_ok(aclrtDestroyStream(r->stream));
	acl_ok(aclrtCreateStream(&r->stream));
}

/* ---- One message -------------------------------------------------------------------- */

static void one(struct ht_rank *r)
{
	static const uint64_t counts[] = { 1, 7, 4096, 65537, 196613 };
	uint32_t i, t, size, to = r->ranks - 1;
	uint64_t bytes;
	void *p;

	for (i = 0; i < 5; i++)
		for (t = i % 3; t < HT_TYPES; t += 3) {
			size = ht_size(ht_type(t));
			bytes = counts[i] * size;
			if (r->rank == 0) {
				p = filled(bytes, seed(0, to, i));
				ht_ok(HcclSend(p, counts[i], ht_type(t), to, r->comm, r->stream));
				ht_sync(r);
				acl_ok(aclrtFree(p));
			} else if (r->rank == to) {
				p = ht_device(bytes, NULL);
				ht_ok(HcclRecv(p, counts[i], ht_type(t), 0, r->comm, r->stream));
				ht_sync(r);
				arrived("message", p, bytes, seed(0, to, i));
			}
		}
	/* who has no part in it is not held up */
	ht_ok(HcclBarrier(r->comm, r->stream));
	ht_sync(r);
}

static void one_message(void **state)
{
	(void)state;
	run(one, 3);
}

static void guarded(struct ht_rank *r)
{
	uint8_t host[300];
	void *p;

	memset(host, 0x11 * (int)(r->rank + 1), sizeof(host));
	p = ht_device(sizeof(host), host);
	if (!r->rank)
		ht_ok(HcclSend((char *)p + 3, 101, U8, 1, r->comm, r->stream));
	else
		ht_ok(HcclRecv((char *)p + 99, 101, U8, 0, r->comm, r->stream));
	ht_sync(r);
	if (r->rank)
		memset(host + 99, 0x11, 101);
	ht_compare("around a message", p, host, sizeof(host));
	acl_ok(aclrtFree(p));
}

static void guards(void **state)
{
	(void)state;
	run(guarded, 2);
}

/* ---- Several ------------------------------------------------------------------------- */

/* Queued without a sync, of different lengths; both ways, so each rank has its turns. */
static void sequence(struct ht_rank *r)
{
	uint32_t n, other = 1 - r->rank;
	void *out[40], *in[40];
	size_t bytes;

	for (n = 0; n < 40; n++) {
		bytes = 1 + n * n * 37;
		out[n] = filled(bytes, seed(r->rank, other, n));
		in[n] = ht_device(bytes, NULL);
		if (r->rank)
			ht_ok(HcclRecv(in[n], bytes, U8, other, r->comm, r->stream));
		ht_ok(HcclSend(out[n], bytes, U8, other, r->comm, r->stream));
		if (!r->rank)
			ht_ok(HcclRecv(in[n], bytes, U8, other, r->comm, r->stream));
	}
	ht_sync(r);
	for (n = 0; n < 40; n++) {
		arrived("message in a row", in[n], 1 + n * n * 37, seed(other, r->rank, n));
		acl_ok(aclrtFree(out[n]));
	}
}

static void in_order(void **state)
{
	(void)state;
	run(sequence, 2);
}

#define CHAIN	50u

/* Nothing, a few, and so many that others could overtake it, the last but one too. */
static size_t chain_bytes(uint32_t n)
{
	return n % 7 == 3 ? 0 : n % 16 == 0 ? MIB + 5 : 1 + n * n * 11;
}

/* One way and nothing between, so either side may be ahead; who is, changes.  One call, or a batch of all. */
static void one_way(struct ht_rank *r, bool batch)
{
	HcclSendRecvItem items[CHAIN];
	void *p[CHAIN];
	size_t bytes;
	uint32_t n;

	for (n = 0; n < CHAIN; n++) {
		bytes = chain_bytes(n);
		p[n] = r->rank ? ht_device(bytes + 1, NULL) : filled(bytes + 1, seed(0, 1, n));
		items[n] = (HcclSendRecvItem){ r->rank ? HCCL_RECV : HCCL_SEND, p[n], bytes, U8, 1 - r->rank };
		if (batch)
			continue;
		if (n % 10 == r->rank * 5)
			usleep(3000);
		if (r->rank)
			ht_ok(HcclRecv(p[n], bytes, U8, 0, r->comm, r->stream));
		else
			ht_ok(HcclSend(p[n], bytes, U8, 1, r->comm, r->stream));
		if (n % 25 == 17)
			ht_sync(r);
	}
	if (batch)
		ht_ok(HcclBatchSendRecv(items, CHAIN, r->comm, r->stream));
	ht_sync(r);
	for (n = 0; n < CHAIN; n++) {
		bytes = chain_bytes(n);
		if (r->rank)
			arrived("one of a chain", p[n], bytes, seed(0, 1, n));
		else
			acl_ok(aclrtFree(p[n]));
	}
}

static void calls(struct ht_rank *r)
{
	one_way(r, false);
}

static void one_batch(struct ht_rank *r)
{
	one_way(r, true);
}

static void chain(void **state)
{
	(void)state;
	run_paths(calls, 2);
	run_paths(one_batch, 2);
}

/* What came is sent on from the same buffer, by the next task: it must not go before it came. */
static void pass_on(struct ht_rank *r)
{
	uint32_t n, last = r->ranks - 1;
	void *p[30];

	for (n = 0; n < 30; n++) {
		p[n] = !r->rank ? filled(3001, seed(0, last, n)) :
		       n && r->rank < last ? p[0] : ht_device(3001, NULL);
		if (r->rank)
			ht_ok(HcclRecv(p[n], 3001, U8, r->rank - 1, r->comm, r->stream));
		if (r->rank < last)
			ht_ok(HcclSend(p[n], 3001, U8, r->rank + 1, r->comm, r->stream));
	}
	ht_sync(r);
	for (n = 0; n < 30; n++) {
		if (r->rank == last)
			arrived("passed on", p[n], 3001, seed(0, last, n));
		else if (!n || !r->rank)
			acl_ok(aclrtFree(p[n]));
	}
}

static void passed_on(void **state)
{
	(void)state;
	run_paths(pass_on, 4);
}

/* Who waits so long that it sleeps gets what comes, by either path.  (How soon is what a bench could tell.) */
static void waits(struct ht_rank *r)
{
	uint32_t n;
	void *p;

	for (n = 0; n < 6; n++) {
		bool late = (n + r->rank) & 1;

		if (late)
			sys_nap(30);
		p = r->rank ? ht_device(70000, NULL) : filled(70000, seed(0, 1, n));
		if (r->rank)
			ht_ok(HcclRecv(p, 70000, U8, 0, r->comm, r->stream));
		else
			ht_ok(HcclSend(p, 70000, U8, 1, r->comm, r->stream));
		ht_sync(r);
		if (r->rank)
			arrived("late", p, 70000, seed(0, 1, n));
		else
			acl_ok(aclrtFree(p));
	}
}

static void late(void **state)
{
	(void)state;
	run_paths(waits, 2);
}

/* A stream for each direction: both ranks send first, and nobody waits for ever. */
static void two_streams(struct ht_rank *r)
{
	uint32_t n, other = 1 - r->rank;
	void *out[20], *in[20];
	aclrtStream back;

	acl_ok(aclrtCreateStream(&back));
	for (n = 0; n < 20; n++) {
		out[n] = filled(5000, seed(r->rank, other, n));
		in[n] = ht_device(5000, NULL);
		ht_ok(HcclSend(out[n], 5000, U8, other, r->comm, r->stream));
	}
	for (n = 0; n < 20; n++)
		ht_ok(HcclRecv(in[n], 5000, U8, other, r->comm, back));
	acl_ok(aclrtSynchronizeStream(back));
	ht_sync(r);
	for (n = 0; n < 20; n++) {
		arrived("message on the way back", in[n], 5000, seed(other, r->rank, n));
		acl_ok(aclrtFree(out[n]));
	}
	acl_ok(aclrtDestroyStream(back));
}

static void both_directions(void **state)
{
	(void)state;
	run(two_streams, 2);
}

/* ---- Batches --------------------------------------------------------------------------- */

static HcclSendRecvItem item(HcclSendRecvType type, void *buf, uint64_t count, uint32_t peer)
{
	return (HcclSendRecvItem){ type, buf, count, U8, peer };
}

/* Everybody sends to the right and receives from the left, in whichever order. */
static void go_round(struct ht_rank *r)
{
	uint32_t n, right = (r->rank + 1) % r->ranks, left = (r->rank + r->ranks - 1) % r->ranks;
	void *out[20], *in[20];
	size_t bytes;

	for (n = 0; n < 20; n++) {
		HcclSendRecvItem items[2];

		bytes = n == 7 ? 2 * MIB + 3 : 100 + n;
		out[n] = filled(bytes, seed(r->rank, right, n));
		in[n] = ht_device(bytes, NULL);
		items[(r->rank + n) & 1] = item(HCCL_SEND, out[n], bytes, right);
		items[(r->rank + n + 1) & 1] = item(HCCL_RECV, in[n], bytes, left);
		ht_ok(HcclBatchSendRecv(items, 2, r->comm, r->stream));
		memset(items, 0xff, sizeof(items));	/* the call has a copy */
	}
	ht_sync(r);
	for (n = 0; n < 20; n++) {
		arrived("message of the ring", in[n], n == 7 ? 2 * MIB + 3 : 100 + n,
			seed(left, r->rank, n));
		acl_ok(aclrtFree(out[n]));
	}
}

static void ring(void **state)
{
	(void)state;
	run_paths(go_round, 5);
	run_paths(go_round, 2);
}

/* With everybody at once, oneself too, two messages each, which keep their order. */
static void everybody(struct ht_rank *r)
{
	void *out[HT_RANKS][2], *in[HT_RANKS][2];
	HcclSendRecvItem items[HT_RANKS * 4];
	uint32_t p, k, n = 0;

	for (k = 0; k < 2; k++)
		for (p = 0; p < r->ranks; p++) {
			out[p][k] = filled(1000 + k, seed(r->rank, p, k));
			in[p][k] = ht_device(1000 + k, NULL);
			items[n++] = item(HCCL_RECV, in[p][k], 1000 + k, p);
			items[n++] = item(HCCL_SEND, out[p][k], 1000 + k, p);
		}
	ht_ok(HcclBatchSendRecv(items, n, r->comm, r->stream));
	ht_sync(r);
	for (p = 0; p < r->ranks; p++)
		for (k = 0; k < 2; k++) {
			arrived("message of a batch", in[p][k], 1000 + k, seed(p, r->rank, k));
			acl_ok(aclrtFree(out[p][k]));
		}
}

static void all_at_once(void **state)
{
	(void)state;
	run(everybody, 1);
	run_paths(everybody, 4);
}

/* Between collectives of the same stream. */
static void mixed(struct ht_rank *r)
{
	uint32_t ones[256], want[256], i, n;
	uint32_t right = (r->rank + 1) % r->ranks, left = (r->rank + r->ranks - 1) % r->ranks;
	void *buf, *in;

	for (i = 0; i < 256; i++) {
		ones[i] = i;
		want[i] = i;
		for (n = 0; n < 10; n++)
			want[i] *= r->ranks;
	}
	buf = ht_device(sizeof(ones), ones);
	in = ht_device(sizeof(ones), NULL);
	for (n = 0; n < 10; n++) {
		HcclSendRecvItem items[2] = {
			item(HCCL_SEND, buf, sizeof(ones), right), item(HCCL_RECV, in, sizeof(ones), left),
		};

		ht_ok(HcclAllReduce(buf, buf, 256, HCCL_DATA_TYPE_UINT32, HCCL_REDUCE_SUM, r->comm,
				    r->stream));
		ht_ok(HcclBatchSendRecv(items, 2, r->comm, r->stream));
	}
	ht_sync(r);
	ht_compare("the sums", buf, want, sizeof(want));
	ht_compare("the neighbour's", in, want, sizeof(want));
	acl_ok(aclrtFree(buf));
	acl_ok(aclrtFree(in));
}

static void with_collectives(void **state)
{
	(void)state;
	run(mixed, 3);
}

/* Recorded, and run three times between eager ones: a word goes round and grows. */
static void recorded(struct ht_rank *r)
{
	uint32_t right = (r->rank + 1) % r->ranks, left = (r->rank + r->ranks - 1) % r->ranks;
	uint32_t i, word[16], want[16];
	aclmdlRI ri = NULL;
	void *a, *b;

	for (i = 0; i < 16; i++) {
		word[i] = i + 1000 * r->rank;
		/* each run takes all two places on, each eager one, one */
		want[i] = i + 1000 * ((r->rank + r->ranks * 9 - 9) % r->ranks);
	}
	a = ht_device(sizeof(word), word);
	b = ht_device(sizeof(word), NULL);
	for (i = 0; i < 4; i++) {
		HcclSendRecvItem there[2] = {
			item(HCCL_SEND, a, sizeof(word), right), item(HCCL_RECV, b, sizeof(word), left),
		};
		HcclSendRecvItem again[2] = {
			item(HCCL_RECV, a, sizeof(word), left), item(HCCL_SEND, b, sizeof(word), right),
		};

		if (!i)
			acl_ok(aclmdlRICaptureBegin(r->stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
		ht_ok(HcclBatchSendRecv(there, 2, r->comm, r->stream));
		if (!i) {
			ht_ok(HcclBatchSendRecv(again, 2, r->comm, r->stream));
			acl_ok(aclmdlRICaptureEnd(r->stream, &ri));
			continue;
		}
		acl_ok(aclrtMemcpyAsync(a, sizeof(word), b, sizeof(word), ACL_MEMCPY_DEVICE_TO_DEVICE,
					r->stream));
		acl_ok(aclmdlRIExecuteAsync(ri, r->stream));
	}
	ht_sync(r);
	ht_compare("what has gone round", a, want, sizeof(want));
	acl_ok(aclmdlRIDestroy(ri));
	acl_ok(aclrtFree(a));
	acl_ok(aclrtFree(b));
}

static void models(void **state)
{
	(void)state;
	run(recorded, 4);
}

/* ---- What goes wrong ------------------------------------------------------------------------ */

static void failed(struct ht_rank *r, const char *const *words)
{
	const char *text = ht_sync_fails(r);
	HcclResult async = HCCL_SUCCESS;

	for (; *words; words++)
		ht_words(text, *words);
	ht_ok(HcclGetCommAsyncError(r->comm, &async));
	sys_eq(async, HCCL_E_REMOTE);
	fresh_stream(r);
}

/* A new communicator in place of one that has failed. */
static void again(struct ht_rank *r)
{
	ht_barrier(r);
	ht_ok(HcclCommDestroy(r->comm));
	r->comm = ht_comm(r, NULL);
}

static void differ(struct ht_rank *r)
{
	static const char *const count[] = { "rank 0 sends 100 of uint8", "rank 1", "expects 99", NULL };
	static const char *const type[] = { "uint8", "int8 ", "message 1 from 0 to 1", NULL };
	void *p = ht_device(4096, NULL);

	if (!r->rank)
		ht_ok(HcclSend(p, 100, U8, 1, r->comm, r->stream));
	else
		ht_ok(HcclRecv(p, 99, U8, 0, r->comm, r->stream));
	failed(r, count);
	again(r);
	if (!r->rank)
		ht_ok(HcclSend(p, 100, U8, 1, r->comm, r->stream));
	else
		ht_ok(HcclRecv(p, 100, HCCL_DATA_TYPE_INT8, 0, r->comm, r->stream));
	failed(r, type);
	/* it has failed, and says so at once */
	ht_is(__FILE__, __LINE__, "after a failure", HcclSend(p, 1, U8, 1 - r->rank, r->comm, r->stream),
	      HCCL_E_PARA);
	again(r);
	guarded(r);
	acl_ok(aclrtFree(p));
}

static void disagree(void **state)
{
	(void)state;
	run(differ, 2);
}

/* Both send first, on one stream. */
static void deadlock(struct ht_rank *r)
{
	const char *words[] = { "send 1 to rank", "HCCL_EXEC_TIMEOUT", NULL };
	void *p = ht_device(4096, NULL);

	ht_ok(HcclSend(p, 100, U8, 1 - r->rank, r->comm, r->stream));
	ht_ok(HcclRecv(p, 100, U8, 1 - r->rank, r->comm, r->stream));
	failed(r, words);
	again(r);
	guarded(r);
	acl_ok(aclrtFree(p));
}

static void deadlocked(void **state)
{
	(void)state;
	ht_env("HCCL_EXEC_TIMEOUT", "0.5");
	run(deadlock, 2);
	ht_env_restore();
}

/* Some that are written down already are dropped: the other rank is told who did, and why. */
static void drop(struct ht_rank *r)
{
	void *p = ht_device(4096, NULL);
	const char *text;
	uint32_t n;

	for (n = 0; n < 6 && r->rank; n++)
		ht_ok(HcclRecv(p, 100, U8, 0, r->comm, r->stream));
	if (r->rank) {
		sys_nap(20);
		acl_ok(aclrtStreamAbort(r->stream));
		aclrtSynchronizeStream(r->stream);
		aclGetRecentErrMsg();
		fresh_stream(r);
	}
	ht_barrier(r);
	if (!r->rank) {
		ht_is(__FILE__, __LINE__, "after a drop", HcclSend(p, 100, U8, 1, r->comm, r->stream), HCCL_E_REMOTE);
		text = aclGetRecentErrMsg();
		ht_words(text, "rank 1");
		ht_words(text, "dropped it");
		ht_words(text, "aborted");
	}
	again(r);
	guarded(r);
	acl_ok(aclrtFree(p));
}

static void dropped(void **state)
{
	(void)state;
	run_paths(drop, 2);
}

/* Rank 1 destroys its communicator, and rank 0 waits for a message of it. */
static void leave(struct ht_rank *r)
{
	const char *words[] = { "rank 1 has destroyed", "rank 0", NULL };
	void *p = ht_device(64, NULL);

	if (r->rank) {
		ht_ok(HcclCommDestroy(r->comm));
		r->comm = NULL;
	} else {
		ht_ok(HcclRecv(p, 64, U8, 1, r->comm, r->stream));
		failed(r, words);
	}
	acl_ok(aclrtFree(p));
}

static void left(void **state)
{
	(void)state;
	run(leave, 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ht_test(one_message),
		ht_test(guards),
		ht_test(in_order),
		ht_test(chain),
		ht_test(passed_on),
		ht_test(late),
		ht_test(both_directions),
		ht_test(ring),
		ht_test(all_at_once),
		ht_test(with_collectives),
		ht_test(models),
		ht_test(disagree),
		ht_test(deadlocked),
		ht_test(dropped),
		ht_test(left),
	};

	setenv("NPUEMU_LOG", "error:/dev/null", 0);	/* they are what some of it is about */
	ht_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
