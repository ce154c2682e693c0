// SPDX-License-Identifier: MIT
/*
 * What communicators give operators that programs bring along: channels between ranks,
 * memory with names, threads.  Data is compared with what a plain loop gives; ranks are
 * threads and processes, over both paths; ranks that do not come, leave or die are told of.
 */
#include <hccl/hccl_channel.h>
#include <hccl/hccl_res.h>
#include <hcomm_primitives.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hccltest.h"

#define ENGINE	COMM_ENGINE_CPU_TS
#define UB	COMM_PROTOCOL_UB_CTP
#define BLOCK	(64u << 10)
#define ROUNDS	6u
#define LONG	120u			/* seconds of a wait that ends before */

#define hc_ok(expr) sys_eq((expr), 0)

static HcclComm comm_of(struct ht_rank *r)
{
	HcclCommConfig config;

	HcclCommConfigInit(&config);
	config.hcclBufferSize = 1;
	return ht_comm(r, &config);
}

static HcclChannelDesc to(uint32_t rank, uint32_t notifies)
{
	HcclChannelDesc d;

	ht_ok(HcclChannelDescInit(&d, 1));
	d.remoteRank = rank;
	d.channelProtocol = UB;
	d.notifyNum = notifies;
	return d;
}

static uint8_t at(uint32_t seed, uint32_t i)
{
	return (uint8_t)(seed * 37 + i * 7 + (i >> 8));
}

static void make(uint8_t *host, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < BLOCK; i++)
		host[i] = at(seed, i);
}

/* Over both paths, as threads and as processes. */
static void everywhere(ht_fn fn, uint32_t ranks)
{
	static const char *const paths[] = { "queue", "mapped", NULL };
	size_t i;

	for (i = 0; i < 3; i++) {
		ht_env("NPUEMU_TRANSPORT", paths[i]);
		ht_run_both(fn, ranks, true);
	}
	ht_env_restore();
}

/* ---- A ring ---------------------------------------------------------------------------- */

/*
 * Blocks go round.  In each round a rank adds its number to what it has and writes it
 * into its right neighbour's buffer, once that has said that it is through with it.
 */
static void ring_rank(struct ht_rank *r)
{
	uint32_t right = (r->rank + 1) % r->ranks, left = (r->rank + r->ranks - 1) % r->ranks, n, i, k;
	HcclChannelDesc d[2] = { to(right, 2), to(left, 2) };
	uint8_t *host = malloc(BLOCK), *want = malloc(BLOCK);
	HcclComm comm = comm_of(r);
	ChannelHandle ch[2], again[2];
	void *own, *far, *far_left;
	uint64_t size, far_size;
	aclrtStream stream;
	ThreadHandle th;

	ht_fails(HcclChannelQuery(comm, ENGINE, d, 2, ch), HCCL_E_NOT_FOUND);
	/* in a ring of two both are the same channel */
	ht_ok(HcclChannelAcquire(comm, ENGINE, d, 2, ch));
	sys_eq(ch[0] == ch[1], right == left);
	ht_ok(HcclChannelQuery(comm, ENGINE, d, 2, again));
	sys_true(again[0] == ch[0] && again[1] == ch[1], "others than were made");
	ht_ok(HcclChannelAcquire(comm, ENGINE, d, 2, again));
	sys_true(again[0] == ch[0] && again[1] == ch[1], "made twice");
	ht_ok(HcclGetHcclBuffer(comm, &own, &size));
	ht_ok(HcclChannelGetHcclBuffer(comm, ch[0], &far, &far_size));
	sys_eq(size, far_size);
	ht_ok(HcclChannelGetHcclBuffer(comm, ch[1], &far_left, &far_size));
	ht_ok(HcclThreadAcquire(comm, ENGINE, 1, 0, &th));
	ht_ok(HcclThreadResGetInfo(comm, th, THREAD_RES_TYPE_STREAM, sizeof(stream), (void **)&stream));
	make(host, r->rank);
	acl_ok(aclrtMemcpy(own, BLOCK, host, BLOCK, ACL_MEMCPY_HOST_TO_DEVICE));
	for (n = 0; n < ROUNDS; n++) {
		uint8_t *in = (uint8_t *)own + BLOCK * (1 + n % 2), *out = (uint8_t *)own + (n ? BLOCK * (1 + (n - 1) % 2) : 0);

		hc_ok(HcommChannelNotifyRecordOnThread(th, ch[1], 1));	/* mine has room */
		hc_ok(HcommChannelNotifyWaitOnThread(th, ch[0], 1, LONG));
		hc_ok(HcommWriteOnThread(th, ch[0], (uint8_t *)far + BLOCK * (1 + n % 2), out, BLOCK));
		hc_ok(HcommChannelNotifyRecordOnThread(th, ch[0], 0));
		hc_ok(HcommChannelNotifyWaitOnThread(th, ch[1], 0, LONG));
		acl_ok(aclrtSynchronizeStreamWithTimeout(stream, SYS_PATIENCE_MS));
		acl_ok(aclrtMemcpy(host, BLOCK, in, BLOCK, ACL_MEMCPY_DEVICE_TO_HOST));
		for (i = 0; i < BLOCK; i++) {
			uint32_t from = (r->rank + r->ranks * ROUNDS - n - 1) % r->ranks;

			want[i] = at(from, i);
			/* whoever had it on the way has added its number */
			for (k = 1; k <= n; k++)
				want[i] = (uint8_t)(want[i] + (from + k) % r->ranks + 1);
		}
		sys_true(!memcmp(host, want, BLOCK), "rank %u, round %u", r->rank, n);
		for (i = 0; i < BLOCK; i++)
			host[i] = (uint8_t)(host[i] + r->rank + 1);
		acl_ok(aclrtMemcpy(in, BLOCK, host, BLOCK, ACL_MEMCPY_HOST_TO_DEVICE));
		ht_progress();
	}
	/* and the left one's, as it stands */
	ht_barrier(r);
	hc_ok(HcommReadOnThread(th, ch[1], (uint8_t *)own + 3 * BLOCK, far_left, BLOCK));
	acl_ok(aclrtSynchronizeStreamWithTimeout(stream, SYS_PATIENCE_MS));
	make(want, left);
	ht_compare("read", (uint8_t *)own + 3 * BLOCK, want, BLOCK);
	ht_barrier(r);
	/* everything is left to the communicator's end */
	ht_ok(HcclCommDestroy(comm));
	free(host);
	free(want);
}

static void ring(void **state)
{
	(void)state;
	everywhere(ring_rank, 2);
	everywhere(ring_rank, 3);
	ht_run_both(ring_rank, 4, true);
}

/* ---- Memory with names --------------------------------------------------------------------- */

static void named_rank(struct ht_rank *r)
{
	uint32_t peer = 1 - r->rank, num, i, found = 0;
	char tag[32], long_tag[257];
	HcclComm comm = comm_of(r);
	HcclMemHandle h[3];
	HcclChannelDesc d = to(peer, 1);
	CommMem mem = { .type = COMM_MEM_TYPE_DEVICE, .size = BLOCK }, *remote;
	uint8_t *mine[3], *host = malloc(BLOCK);
	ChannelHandle ch, second;
	ThreadHandle th;
	aclrtStream stream;
	char **tags;

	for (i = 0; i < 3; i++) {
		make(host, r->rank * 3 + i);
		mine[i] = ht_device(BLOCK, host);
		mem.addr = mine[i];
		snprintf(tag, sizeof(tag), "of %u: %u", r->rank, i);
		ht_ok(HcclCommMemReg(comm, tag, &mem, &h[i]));
		ht_says(HcclCommMemReg(comm, tag, &mem, &h[i]), HCCL_E_PARA, "already");
	}
	/* the peer is told of two of them */
	d.memHandles = h;
	d.memHandleNum = 2;
	ht_ok(HcclChannelAcquire(comm, ENGINE, &d, 1, &ch));
	ht_ok(HcclChannelGetRemoteMems(comm, ch, &num, &remote, &tags));
	sys_eq(num, 2);
	ht_ok(HcclThreadAcquire(comm, ENGINE, 1, 0, &th));
	ht_ok(HcclThreadResGetInfo(comm, th, THREAD_RES_TYPE_STREAM, sizeof(stream), (void **)&stream));
	snprintf(tag, sizeof(tag), "of %u: 1", peer);
	for (i = 0; i < num; i++) {
		if (strcmp(tags[i], tag))
			continue;
		found++;
		sys_eq(remote[i].size, BLOCK);
		sys_eq(remote[i].type, COMM_MEM_TYPE_DEVICE);
		hc_ok(HcommReadOnThread(th, ch, mine[2], remote[i].addr, BLOCK));
	}
	sys_eq(found, 1);
	acl_ok(aclrtSynchronizeStreamWithTimeout(stream, SYS_PATIENCE_MS));
	make(host, peer * 3 + 1);
	ht_compare("by its name", mine[2], host, BLOCK);
	/* more than was told of, or more notifies, is another channel */
	d.memHandleNum = 3;
	ht_says(HcclChannelAcquire(comm, ENGINE, &d, 1, &second), HCCL_E_PARA, "memHandles[2]");
	ht_says(HcclChannelQuery(comm, ENGINE, &d, 1, &second), HCCL_E_PARA, "memHandles[2]");
	d.memHandleNum = 1;
	d.notifyNum = 2;
	ht_says(HcclChannelAcquire(comm, ENGINE, &d, 1, &second), HCCL_E_PARA, "2 notifies");
	ht_barrier(r);
	ht_ok(HcclChannelDestroy(comm, &ch, 1));
	ht_fails(HcclChannelDestroy(comm, &ch, 1), HCCL_E_NOT_FOUND);
	ht_fails(HcclChannelQuery(comm, ENGINE, &d, 1, &second), HCCL_E_NOT_FOUND);
	ht_fails(HcclChannelGetRemoteMems(comm, ch, &num, &remote, &tags), HCCL_E_NOT_FOUND);
	ht_ok(HcclChannelAcquire(comm, ENGINE, &d, 1, &ch));
	ht_ok(HcclChannelGetRemoteMems(comm, ch, &num, &remote, &tags));
	sys_eq(num, 1);
	/* the longest name goes along; and so does what is registered when there is an endpoint */
	memset(long_tag, 'x', sizeof(long_tag));
	long_tag[256] = 0;
	mem.addr = mine[0];
	ht_says(HcclCommMemReg(comm, long_tag, &mem, &h[1]), HCCL_E_PARA, "1 to 255");
	long_tag[255] = 0;
	ht_ok(HcclCommMemReg(comm, long_tag, &mem, &h[1]));
	ht_barrier(r);
	ht_ok(HcclChannelDestroy(comm, &ch, 1));
	d.memHandles = &h[1];
	ht_ok(HcclChannelAcquire(comm, ENGINE, &d, 1, &ch));
	ht_ok(HcclChannelGetRemoteMems(comm, ch, &num, &remote, &tags));
	sys_eq(num, 1);
	sys_true(!strcmp(tags[0], long_tag), "it is called %s", tags[0]);
	ht_barrier(r);
	ht_ok(HcclCommDestroy(comm));
	for (i = 0; i < 3; i++)
		acl_ok(aclrtFree(mine[i]));
	free(host);
}

static void named(void **state)
{
	(void)state;
	everywhere(named_rank, 2);
}

/* ---- Threads ------------------------------------------------------------------------------------ */

/* Kinds of threads signal each other; the program's stream is one, in order with its copies. */
static void threads_rank(struct ht_rank *r)
{
	uint32_t peer = 1 - r->rank, i;
	HcclChannelDesc d = to(peer, 1);
	HcclComm comm = comm_of(r);
	uint8_t *host = malloc(BLOCK), *dev = ht_device(BLOCK, NULL);
	ThreadHandle mine, again, many[3], use, use2, conf[2];
	ThreadConfig config[2];
	aclrtStream stream, other;
	ChannelHandle ch;
	void *own, *far, *info;
	uint64_t size;

	acl_ok(aclrtCreateStream(&other));
	ht_ok(HcclThreadAcquireWithStream(comm, ENGINE, r->stream, 2, &mine));
	ht_ok(HcclThreadAcquireWithStream(comm, ENGINE, r->stream, 1, &again));
	sys_true(mine == again, "a stream is two threads");
	ht_says(HcclThreadAcquireWithStream(comm, ENGINE, r->stream, 3, &again), HCCL_E_PARA, "with 2");
	ht_ok(HcclThreadAcquireWithStream(comm, ENGINE, other, 1, &again));
	sys_true(mine != again, "two streams are one thread");
	ht_ok(HcclThreadResGetInfo(comm, mine, THREAD_RES_TYPE_STREAM, sizeof(stream), &info));
	sys_true(info == r->stream, "another stream");
	ht_ok(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 3, 2, many));
	ht_ok(ThreadConfigInit(config, 2) ? HCCL_E_PTR : HCCL_SUCCESS);
	config[1].notifyNumPerThread = 5;
	ht_ok(HcclThreadAcquireWithConfig(comm, ENGINE, 2, THREAD_TYPE_TS, config, conf));
	ht_ok(HcclDedicatedThreadAcquire(comm, HCCL_DED_THREAD_TYPE_AICPU_LAUNCH, 2, &use));
	ht_ok(HcclDedicatedThreadAcquire(comm, HCCL_DED_THREAD_TYPE_AICPU_LAUNCH, 1, &use2));
	sys_true(use == use2, "two for a use");
	ht_ok(HcclDedicatedThreadAcquire(comm, HCCL_DED_THREAD_TYPE_AICPU_ORDER_LAUNCH_GE, 1, &use2));
	sys_true(use != use2, "one for two uses");
	ht_says(HcclDedicatedThreadAcquire(comm, HCCL_DED_THREAD_TYPE_AICPU_LAUNCH, 3, &use2), HCCL_E_PARA, "with 2");
	ht_ok(HcclChannelAcquire(comm, ENGINE, &d, 1, &ch));
	ht_ok(HcclGetHcclBuffer(comm, &own, &size));
	ht_ok(HcclChannelGetHcclBuffer(comm, ch, &far, &size));
	/* a copy of the program's, a write after it; at the peer the copy after the wait */
	make(host, 50 + r->rank);
	acl_ok(aclrtMemcpyAsync(own, BLOCK, host, BLOCK, ACL_MEMCPY_HOST_TO_DEVICE, r->stream));
	hc_ok(HcommWriteOnThread(mine, ch, (uint8_t *)far + BLOCK, own, BLOCK));
	hc_ok(HcommChannelNotifyRecordOnThread(mine, ch, 0));
	hc_ok(HcommChannelNotifyWaitOnThread(mine, ch, 0, LONG));
	acl_ok(aclrtMemcpyAsync(dev, BLOCK, (uint8_t *)own + BLOCK, BLOCK, ACL_MEMCPY_DEVICE_TO_DEVICE, r->stream));
	/* and on to each of the others, one after the other */
	hc_ok(HcommThreadNotifyRecordOnThread(mine, many[0], 1));
	for (i = 0; i < 3; i++) {
		hc_ok(HcommThreadNotifyWaitOnThread(many[i], 1, LONG));
		hc_ok(HcommThreadNotifyRecordOnThread(many[i], i < 2 ? many[i + 1] : conf[1], i < 2 ? 1 : 4));
	}
	hc_ok(HcommThreadNotifyWaitOnThread(conf[1], 4, LONG));
	hc_ok(HcommThreadNotifyRecordOnThread(conf[1], use, 1));
	hc_ok(HcommThreadNotifyWaitOnThread(use, 1, LONG));
	hc_ok(HcommThreadNotifyRecordOnThread(use, mine, 1));
	hc_ok(HcommThreadNotifyWaitOnThread(mine, 1, LONG));
	acl_ok(aclrtMemsetAsync(own, BLOCK, 0, BLOCK, r->stream));
	ht_sync(r);
	make(host, 50 + peer);
	ht_compare("after the wait", dev, host, BLOCK);
	hc_ok(HcommThreadNotifyRecordOnThread(conf[0], conf[1], 4));
	sys_true(HcommThreadNotifyRecordOnThread(mine, conf[0], 0), "a notify that it does not have");
	/* a stream that is gone takes its thread with it */
	acl_ok(aclrtDestroyStream(other));
	acl_ok(aclrtCreateStream(&other));
	ht_ok(HcclThreadAcquireWithStream(comm, ENGINE, other, 7, &again));
	ht_barrier(r);
	/* operations that are not over; then they are */
	if (!r->rank) {
		hc_ok(HcommThreadNotifyWaitOnThread(mine, 1, LONG));
		ht_says(HcclCommDestroy(comm), HCCL_E_AGAIN, "channels and threads");
		hc_ok(HcommThreadNotifyRecordOnThread(again, mine, 1));
		ht_sync(r);
	}
	ht_ok(HcclCommDestroy(comm));
	/* the streams are the program's */
	acl_ok(aclrtMemcpyAsync(dev, BLOCK, host, BLOCK, ACL_MEMCPY_HOST_TO_DEVICE, r->stream));
	ht_sync(r);
	acl_ok(aclrtDestroyStream(other));
	sys_true(HcommThreadNotifyWaitOnThread(mine, 1, 1), "a thread is there after its communicator");
	acl_ok(aclrtFree(dev));
	free(host);
}

static void threads(void **state)
{
	(void)state;
	everywhere(threads_rank, 2);
}

/* ---- Those that do not come, leave, die ------------------------------------------------------- */

static void alone_rank(struct ht_rank *r)
{
	HcclChannelDesc d[2] = { to(1, 1), to(2, 1) };
	HcclComm comm = comm_of(r);
	int64_t began;
	ChannelHandle ch[2], other;

	/* rank 1 comes for one of the calls, rank 2 for none */
	if (!r->rank) {
		began = npuemu_now_ns();
		ht_says(HcclChannelAcquire(comm, ENGINE, d, 2, ch), HCCL_E_TIMEOUT, "rank 2");
		began = npuemu_now_ns() - began;
		sys_true(began > 900000000 && began < (sys_slow() ? 30 : 10) * 1000000000ll, "after %lld ms",
			 (long long)began / 1000000);
		/* all of them or none */
		ht_fails(HcclChannelQuery(comm, ENGINE, d, 1, &other), HCCL_E_NOT_FOUND);
	} else if (r->rank == 1) {
		d[0].remoteRank = 0;
		ht_ok(HcclChannelAcquire(comm, ENGINE, d, 1, ch));
	}
	ht_barrier(r);
	/* other engines are other channels */
	if (r->rank == 1) {
		d[0].remoteRank = 2;
		ht_says(HcclChannelAcquire(comm, COMM_ENGINE_CPU, d, 1, ch), HCCL_E_TIMEOUT, "HCCL_CONNECT_TIMEOUT");
	} else if (r->rank == 2) {
		ht_says(HcclChannelAcquire(comm, ENGINE, d, 1, ch), HCCL_E_TIMEOUT, "rank 1");
	}
	ht_barrier(r);
	/* nobody is the worse for it */
	ht_proves(r, comm, 3);
	ht_ok(HcclCommDestroy(comm));
}

static void left_rank(struct ht_rank *r)
{
	HcclChannelDesc d = to(1, 1);
	HcclComm comm = comm_of(r);
	ChannelHandle ch;

	if (!r->rank)
		ht_says(HcclChannelAcquire(comm, ENGINE, &d, 1, &ch), HCCL_E_REMOTE, "destroyed");
	ht_ok(HcclCommDestroy(comm));
}

static void alone(void **state)
{
	(void)state;
	ht_env("HCCL_CONNECT_TIMEOUT", "1");
	ht_run_both(alone_rank, 3, true);
	ht_env_restore();
	ht_run_both(left_rank, 2, true);
}

/* Rank 1 is killed: while rank 0 waits for a notify of it, and rank 2 for its channel. */
static void dies_rank(struct ht_rank *r)
{
	HcclChannelDesc d = to(1, 1);
	HcclComm comm = comm_of(r);
	ChannelHandle ch;
	ThreadHandle th;

	if (r->rank < 2) {
		d.remoteRank = 1 - r->rank;
		ht_ok(HcclChannelAcquire(comm, ENGINE, &d, 1, &ch));
		ht_ok(HcclThreadAcquireWithStream(comm, ENGINE, r->stream, 1, &th));
		hc_ok(HcommChannelNotifyWaitOnThread(th, ch, 0, LONG));
	}
	ht_add(0, 1);
	if (r->rank == 1)
		for (;;)
			sys_nap(100);
	if (r->rank == 2) {
		ht_says(HcclChannelAcquire(comm, ENGINE, &d, 1, &ch), HCCL_E_REMOTE, "rank 1");
		ht_says(HcclThreadAcquire(comm, ENGINE, 1, 0, &th), HCCL_E_REMOTE, "died");
	} else {
		ht_sync_fails(r);
		/* what is left on threads of it is broken off */
		ht_await(1, 1);
		ht_ok(HcclChannelDestroy(comm, &ch, 1));
	}
	ht_add(1, 1);
	ht_ok(HcclCommDestroy(comm));
	ht_add(2, 1);
}

static void dies(void **state)
{
	struct ht_job job = { .ranks = 3, .processes = true, .bare = true, .fn = dies_rank };
	struct npuemu *ctx = sys_open();

	(void)state;
	ht_begin(&job);
	ht_await(0, 3);
	sys_nap(200);
	ht_kill(&job, 1);
	ht_end(&job);
	sys_eq(ht_get(2), 2);
	sys_nothing_left(ctx, 1);
	sys_rc(npuemu_close(ctx));
}

/* A failed communicator, with operations on threads of its own that nobody will ever end. */
static void failed_rank(struct ht_rank *r)
{
	HcclChannelDesc d = to(1 - r->rank, 1);
	HcclComm comm = comm_of(r);
	int32_t *buf = ht_device(4096, NULL);
	ThreadHandle th[2], mine;
	ChannelHandle ch;

	ht_ok(HcclChannelAcquire(comm, ENGINE, &d, 1, &ch));
	ht_ok(HcclThreadAcquire(comm, ENGINE, 2, 1, th));
	ht_ok(HcclThreadAcquireWithStream(comm, ENGINE, r->stream, 1, &mine));
	hc_ok(HcommThreadNotifyWaitOnThread(th[0], 0, LONG));
	hc_ok(HcommChannelNotifyWaitOnThread(th[1], ch, 0, LONG));
	ht_barrier(r);
	/* they do not agree */
	ht_ok(HcclAllReduce(buf, buf, 8 + r->rank, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, comm, r->stream));
	ht_sync_fails(r);
	ht_barrier(r);
	sys_true(HcclThreadAcquire(comm, ENGINE, 1, 1, &mine), "a failed communicator goes on");
	ht_ok(HcclCommDestroy(comm));
	acl_ok(aclrtFree(buf));
}

static void failed(void **state)
{
	(void)state;
	ht_run_both(failed_rank, 2, true);
}

/* ---- Wrong arguments ------------------------------------------------------------------------------ */

static void wrong_channels(struct ht_rank *r, HcclComm comm)
{
	HcclChannelDesc d = to(1 - r->rank, 1), bad;
	ChannelHandle ch, two[2];
	HcclMemHandle none = &d, *handles = &none;
	void *ptr;
	uint64_t size;
	CommMem *mems;
	char **tags;
	uint32_t n;

	ht_says(HcclChannelAcquire(NULL, ENGINE, &d, 1, &ch), HCCL_E_PTR, "comm");
	ht_says(HcclChannelAcquire((HcclComm)&d, ENGINE, &d, 1, &ch), HCCL_E_PARA, "communicator");
	ht_says(HcclChannelAcquire(comm, ENGINE, NULL, 1, &ch), HCCL_E_PTR, "channelDescs");
	ht_says(HcclChannelAcquire(comm, ENGINE, &d, 1, NULL), HCCL_E_PTR, "channels");
	ht_says(HcclChannelAcquire(comm, ENGINE, &d, 0, &ch), HCCL_E_PARA, "channelNum");
	ht_says(HcclChannelAcquire(comm, COMM_ENGINE_AIV, &d, 1, &ch), HCCL_E_NOT_SUPPORT, "AIV");
	ht_says(HcclChannelAcquire(comm, (CommEngine)17, &d, 1, &ch), HCCL_E_PARA, "engine 17");
#define REFUSED(member, value, code, word)					\
	do {									\
		bad = d;							\
		bad.member = (value);						\
		ht_says(HcclChannelAcquire(comm, ENGINE, &bad, 1, &ch), code, word);	\
	} while (0)
	REFUSED(header.magicWord, 1, HCCL_E_PARA, "HcclChannelDescInit");
	REFUSED(header.version, 9, HCCL_E_PARA, "version 9");
	REFUSED(header.size, 8, HCCL_E_PARA, "8 bytes");
	REFUSED(remoteRank, 2, HCCL_E_PARA, "ranks 0 to 1");
	REFUSED(remoteRank, r->rank, HCCL_E_PARA, "itself");
	REFUSED(channelProtocol, COMM_PROTOCOL_ROCE, HCCL_E_NOT_SUPPORT, "ROCE");
	REFUSED(channelProtocol, COMM_PROTOCOL_HCCS, HCCL_E_NOT_SUPPORT, "HCCS");
	REFUSED(channelProtocol, COMM_PROTOCOL_RESERVED, HCCL_E_PARA, "protocol -1");
	REFUSED(channelProtocol, (CommProtocol)10, HCCL_E_PARA, "protocol 10");
	REFUSED(localEndpoint.protocol, COMM_PROTOCOL_UB_MEM, HCCL_E_PARA, "localEndpoint");
	REFUSED(notifyNum, 1u << 20, HCCL_E_PARA, "notifies");
	REFUSED(memHandleNum, 1, HCCL_E_PTR, "memHandles");
	bad = d;
	bad.remoteEndpoint.loc.locType = ENDPOINT_LOC_TYPE_DEVICE;
	bad.remoteEndpoint.loc.device.devPhyId = 7;
	ht_says(HcclChannelAcquire(comm, ENGINE, &bad, 1, &ch), HCCL_E_PARA, "device 7");
	bad = d;
	bad.memHandles = handles;
	bad.memHandleNum = 1;
	ht_says(HcclChannelAcquire(comm, ENGINE, &bad, 1, &ch), HCCL_E_NOT_FOUND, "memHandles[0]");
	ht_fails(HcclChannelQuery(comm, ENGINE, NULL, 1, &ch), HCCL_E_PTR);
	ht_fails(HcclChannelQuery(comm, ENGINE, &d, 1, &ch), HCCL_E_NOT_FOUND);
	acl_ok(aclrtSetDevice(5));
	ht_says(HcclChannelAcquire(comm, ENGINE, &d, 1, &ch), HCCL_E_PARA, "aclrtSetDevice");
	acl_ok(aclrtResetDevice(5));
	acl_ok(aclrtSetDevice(r->device));
	/* of one that is there */
	ht_ok(HcclChannelAcquire(comm, ENGINE, &d, 1, &ch));
	two[0] = ch;
	two[1] = ch;
	ht_says(HcclChannelDestroy(comm, two, 2), HCCL_E_PARA, "the same");
	two[1] = 4096;
	ht_fails(HcclChannelDestroy(comm, two, 2), HCCL_E_NOT_FOUND);
	ht_fails(HcclChannelDestroy(comm, NULL, 1), HCCL_E_PTR);
	ht_fails(HcclChannelDestroy(comm, two, 0), HCCL_E_PARA);
	ht_fails(HcclChannelGetHcclBuffer(comm, ch, NULL, &size), HCCL_E_PTR);
	ht_fails(HcclChannelGetHcclBuffer(comm, ch, &ptr, NULL), HCCL_E_PTR);
	ht_fails(HcclChannelGetHcclBuffer(comm, 0, &ptr, &size), HCCL_E_NOT_FOUND);
	ht_fails(HcclChannelGetRemoteMems(comm, ch, NULL, &mems, &tags), HCCL_E_PTR);
	ht_fails(HcclChannelGetRemoteMems(comm, ch, &n, NULL, &tags), HCCL_E_PTR);
	ht_fails(HcclChannelGetRemoteMems(comm, ch, &n, &mems, NULL), HCCL_E_PTR);
	ht_fails(HcclChannelGetRemoteMems(comm, 77, &n, &mems, &tags), HCCL_E_NOT_FOUND);
	ht_ok(HcclChannelGetRemoteMems(comm, ch, &n, &mems, &tags));
	sys_eq(n, 0);
}

static void wrong_config(struct ht_rank *r, HcclComm comm)
{
	HcclChannelDesc d = to(1 - r->rank, 1);
	HcclChannelConfig x, none = &d;
	ChannelHandle ch;
	char text[300];

	memset(text, 'y', sizeof(text));
	text[256] = 0;
	ht_fails(HcclChannelConfigCreate(NULL), HCCL_E_PTR);
	ht_ok(HcclChannelConfigCreate(&x));
	ht_ok(HcclChannelConfigSetInt(x, HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE, 1));
	ht_fails(HcclChannelConfigSetInt(x, HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE, 2), HCCL_E_PARA);
	ht_fails(HcclChannelConfigSetInt(x, HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG, 1), HCCL_E_PARA);
	ht_fails(HcclChannelConfigSetInt(none, HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE, 1), HCCL_E_NOT_FOUND);
	ht_fails(HcclChannelConfigSetInt(NULL, HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE, 1), HCCL_E_PTR);
	ht_fails(HcclChannelConfigSetStr(x, HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE, "a"), HCCL_E_PARA);
	ht_fails(HcclChannelConfigSetStr(x, HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG, NULL), HCCL_E_PTR);
	ht_fails(HcclChannelConfigSetStr(x, HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG, text), HCCL_E_PARA);
	text[255] = 0;
	ht_ok(HcclChannelConfigSetStr(x, HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG, text));
	ht_fails(HcclChannelAcquireWithConfig(comm, ENGINE, &d, 1, none, &ch), HCCL_E_NOT_FOUND);
	ht_fails(HcclChannelAcquireWithConfig(comm, ENGINE, &d, 1, NULL, &ch), HCCL_E_PTR);
	ht_ok(HcclChannelAcquireWithConfig(comm, ENGINE, &d, 1, x, &ch));
	ht_ok(HcclChannelConfigDestroy(x));
	ht_fails(HcclChannelConfigDestroy(x), HCCL_E_NOT_FOUND);
}

static void wrong_memory(HcclComm comm, aclrtStream stream)
{
	uint8_t *dev = ht_device(BLOCK, NULL);
	CommMem mem = { .type = COMM_MEM_TYPE_DEVICE, .addr = dev, .size = BLOCK }, bad = mem;
	HcclMemHandle h;

	(void)stream;
	ht_says(HcclCommMemReg(comm, NULL, &mem, &h), HCCL_E_PTR, "memTag");
	ht_says(HcclCommMemReg(comm, "a", NULL, &h), HCCL_E_PTR, "mem");
	ht_says(HcclCommMemReg(comm, "a", &mem, NULL), HCCL_E_PTR, "memHandle");
	ht_says(HcclCommMemReg(comm, "", &mem, &h), HCCL_E_PARA, "0 letters");
	bad.addr = NULL;
	ht_says(HcclCommMemReg(comm, "a", &bad, &h), HCCL_E_PTR, "addr");
	bad = mem;
	bad.size = 0;
	ht_says(HcclCommMemReg(comm, "a", &bad, &h), HCCL_E_PARA, "0 bytes");
	bad.size = 1ull << 40;
	ht_fails(HcclCommMemReg(comm, "a", &bad, &h), HCCL_E_PARA);
	bad = mem;
	bad.type = COMM_MEM_TYPE_HOST;
	ht_says(HcclCommMemReg(comm, "a", &bad, &h), HCCL_E_PARA, "device memory");
	bad.type = (CommMemType)5;
	ht_says(HcclCommMemReg(comm, "a", &bad, &h), HCCL_E_PARA, "type of memory 5");
	acl_ok(aclrtFree(dev));
}

static void wrong_threads(struct ht_rank *r, HcclComm comm)
{
	ThreadConfig config;
	ThreadHandle th, none = 64;
	void *info;

	ThreadConfigInit(&config, 1);
	ht_says(HcclThreadAcquire(NULL, ENGINE, 1, 0, &th), HCCL_E_PTR, "comm");
	ht_fails(HcclThreadAcquire(comm, ENGINE, 1, 0, NULL), HCCL_E_PTR);
	ht_says(HcclThreadAcquire(comm, ENGINE, 0, 0, &th), HCCL_E_PARA, "threadNum");
	ht_says(HcclThreadAcquire(comm, ENGINE, 1, 1u << 20, &th), HCCL_E_PARA, "notifies");
	ht_says(HcclThreadAcquire(comm, COMM_ENGINE_CCU, 1, 0, &th), HCCL_E_NOT_SUPPORT, "CCU");
	ht_says(HcclThreadAcquire(comm, (CommEngine)17, 1, 0, &th), HCCL_E_PARA, "engine 17");
	ht_fails(HcclThreadAcquireWithConfig(comm, ENGINE, 1, THREAD_TYPE_TS, NULL, &th), HCCL_E_PTR);
	ht_says(HcclThreadAcquireWithConfig(comm, ENGINE, 1, THREAD_TYPE_INVALID, &config, &th), HCCL_E_PARA, "type of threads -1");
	config.header.magicWord = 3;
	ht_says(HcclThreadAcquireWithConfig(comm, ENGINE, 1, THREAD_TYPE_TS, &config, &th), HCCL_E_PARA, "ThreadConfigInit");
	ht_says(HcclThreadAcquireWithStream(comm, ENGINE, NULL, 1, &th), HCCL_E_PTR, "stream");
	ht_fails(HcclThreadAcquireWithStream(comm, ENGINE, &config, 1, &th), HCCL_E_PARA);
	ht_fails(HcclThreadAcquireWithStream(comm, ENGINE, r->stream, 1, NULL), HCCL_E_PTR);
	ht_says(HcclThreadAcquireWithStream(comm, COMM_ENGINE_AIV, r->stream, 1, &th), HCCL_E_NOT_SUPPORT, "AIV");
	ht_says(HcclThreadAcquireWithStream(comm, ENGINE, r->stream, 1u << 20, &th), HCCL_E_PARA, "notifies");
	ht_says(HcclDedicatedThreadAcquire(comm, HCCL_DED_THREAD_TYPE_INVALID, 1, &th), HCCL_E_PARA, "no use -1");
	ht_says(HcclDedicatedThreadAcquire(comm, (HcclDedicatedThreadType)6, 1, &th), HCCL_E_PARA, "no use 6");
	ht_ok(HcclThreadAcquire(comm, ENGINE, 1, 0, &th));
	ht_fails(HcclThreadResGetInfo(comm, none, THREAD_RES_TYPE_STREAM, 8, &info), HCCL_E_NOT_FOUND);
	ht_fails(HcclThreadResGetInfo(comm, th, THREAD_RES_TYPE_STREAM, 7, &info), HCCL_E_PARA);
	ht_fails(HcclThreadResGetInfo(comm, th, THREAD_RES_TYPE_INVALID, 8, &info), HCCL_E_PARA);
	ht_fails(HcclThreadResGetInfo(comm, th, THREAD_RES_TYPE_STREAM, 8, NULL), HCCL_E_PTR);
}

static void wrong_rank(struct ht_rank *r)
{
	HcclComm comm = comm_of(r);

	wrong_threads(r, comm);
	wrong_memory(comm, r->stream);
	wrong_channels(r, comm);
	wrong_config(r, comm);
	/* what was given out is not any more */
	ht_ok(HcclCommSuspend(comm));
	ht_fails(HcclThreadAcquireWithStream(comm, ENGINE, r->stream, 1, &(ThreadHandle){ 0 }), HCCL_E_SUSPENDING);
	ht_ok(HcclCommResume(comm));
	ht_barrier(r);
	ht_ok(HcclCommDestroy(comm));
}

static void wrong(void **state)
{
	(void)state;
	ht_run_both(wrong_rank, 2, true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ht_test(ring),
		ht_test(named),
		ht_test(threads),
		ht_test(alone),
		ht_test(dies),
		ht_test(failed),
		ht_test(wrong),
	};

	ht_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
