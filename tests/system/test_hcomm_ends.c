// SPDX-License-Identifier: MIT
/*
 * Channels: memory of all kinds, queues that are full, models, aborts, errors of engines;
 * ends that disagree, go or die.
 */
#include "hcommtest.h"

/* ---- Memory that comes later, and goes ------------------------------------------------------------------ */

static void later(struct end *e)
{
	CommMem mem = { .type = COMM_MEM_TYPE_DEVICE, .size = 4096 }, got;
	uint8_t theirs[256], host[4096];
	uint32_t len;
	HcommMemHandle h;
	void *desc;

	acl_ok((aclError)HcommMemAlloc(&mem.addr, mem.size));
	acl_ok((aclError)HcommMemReg(e->ep, "later", &mem, &h));
	acl_ok((aclError)HcommMemExport(e->ep, h, &desc, &len));
	exchange(e, desc, theirs, len);
	if (!e->rank) {
		sys_fill(host, sizeof(host), 5);
		upload(e->mem, host, sizeof(host));
		acl_ok((aclError)HcommMemImport(e->ep, theirs, len, &got));
		sys_eq(got.size, 4096);
		sys_eq(got.type, COMM_MEM_TYPE_DEVICE);
		acl_ok((aclError)HcommWriteOnThread(e->th, e->ch, got.addr, e->mem, 4096));
		acl_ok(aclrtSynchronizeStream(e->stream));
	}
	meet(e);
	if (e->rank) {
		download(host, mem.addr, 4096);
		sys_is_filled("imported later", host, 4096, 5);
	}
	acl_ok((aclError)HcommMemUnreg(e->ep, h));
	meet(e);
	if (!e->rank) {
		acl_fails((aclError)HcommWriteOnThread(e->th, e->ch, got.addr, e->mem, 4096), (aclError)HCCL_E_NOT_FOUND);
		acl_ok((aclError)HcommMemUnimport(e->ep, theirs, len));
		acl_fails((aclError)HcommMemUnimport(e->ep, theirs, len), (aclError)HCCL_E_NOT_FOUND);
		/* what else there is can be reached yet */
		acl_ok((aclError)HcommWriteOnThread(e->th, e->ch, e->far, e->mem, 64));
		acl_ok(aclrtSynchronizeStream(e->stream));
	}
	meet(e);
	acl_ok((aclError)HcommMemFree(mem.addr));
}

static void memory_later(void **state)
{
	(void)state;
	everywhere(later);
}

/* Host memory: one's own over every channel, the peer's only within a process and mapped. */
static void host_side(struct end *e)
{
	CommMem mem = { .type = COMM_MEM_TYPE_HOST, .size = 8192 }, got;
	uint8_t theirs[256], *host = malloc(8192), copy[4096];
	bool reaches = e->here && path_of(e->ch) == HCOMM_MAPPED;
	uint32_t len;
	HcommMemHandle h;
	void *desc;

	mem.addr = host;
	acl_ok((aclError)HcommMemReg(e->ep, "host", &mem, &h));
	acl_ok((aclError)HcommMemExport(e->ep, h, &desc, &len));
	exchange(e, desc, theirs, len);
	acl_ok((aclError)HcommMemImport(e->ep, theirs, len, &got));
	sys_eq(got.type, COMM_MEM_TYPE_HOST);
	sys_fill(host, 4096, 10 + (uint64_t)e->rank);
	meet(e);
	if (!e->rank) {
		acl_ok((aclError)HcommWriteOnThread(e->th, e->ch, e->far, host, 4096));
		acl_ok((aclError)HcommReadOnThread(e->th, e->ch, host + 4096, e->far, 4096));
		acl_ok(aclrtSynchronizeStream(e->stream));
		sys_is_filled("there and back", host + 4096, 4096, 10);
		if (reaches) {
			acl_ok((aclError)HcommReadOnThread(e->th, e->ch, e->mem, got.addr, 4096));
			acl_ok(aclrtSynchronizeStream(e->stream));
			download(copy, e->mem, 4096);
			sys_is_filled("the peer's host memory", copy, 4096, 11);
		} else {
			acl_says((aclError)HcommReadOnThread(e->th, e->ch, e->mem, got.addr, 4096),
				 (aclError)HCCL_E_NOT_SUPPORT, e->here ? "segment" : path_of(e->ch) == HCOMM_QUEUE ? "segment" : "host memory");
		}
	}
	meet(e);
	acl_ok((aclError)HcommMemUnimport(e->ep, theirs, len));
	acl_ok((aclError)HcommMemUnreg(e->ep, h));
	free(host);
}

static void host_memory(void **state)
{
	(void)state;
	everywhere(host_side);
}

/* Memory of the runtime that is mapped where the program wants it. */
static void vmm_side(struct end *e)
{
	aclrtPhysicalMemProp prop = {
		.handleType = ACL_MEM_HANDLE_TYPE_NONE, .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
		.memAttr = ACL_HBM_MEM_HUGE, .location = { .id = (uint32_t)e->rank, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};
	CommMem mem = { .type = COMM_MEM_TYPE_DEVICE, .size = 1 << 20 }, got;
	uint8_t theirs[256], *host = malloc(1 << 20), *va;
	aclrtDrvMemHandle phys;
	HcommMemHandle h;
	uint32_t len;
	void *desc;

	acl_ok(aclrtReserveMemAddress((void **)&va, 2 << 20, 0, NULL, 1));
	acl_ok(aclrtMallocPhysical(&phys, 2 << 20, &prop, 0));
	acl_ok(aclrtMapMem(va, 2 << 20, 0, phys, 0));
	mem.addr = va + 4096;
	acl_ok((aclError)HcommMemReg(e->ep, NULL, &mem, &h));
	acl_ok((aclError)HcommMemExport(e->ep, h, &desc, &len));
	exchange(e, desc, theirs, len);
	acl_ok((aclError)HcommMemImport(e->ep, theirs, len, &got));
	sys_fill(host, 1 << 20, 20 + (uint64_t)e->rank);
	upload(mem.addr, host, 1 << 20);
	meet(e);
	if (!e->rank) {
		acl_ok((aclError)HcommWriteOnThread(e->th, e->ch, (uint8_t *)got.addr + 100, va + 4096, 5000));
		acl_ok(aclrtSynchronizeStream(e->stream));
	}
	meet(e);
	if (e->rank) {
		download(host + 8192, va + 4096, 8192);
		sys_same("before it", host + 8192, host, 100);
		sys_is_filled("written", host + 8192 + 100, 5000, 20);
		sys_same("after it", host + 8192 + 5100, host + 5100, 8192 - 5100);
	}
	meet(e);
	acl_ok((aclError)HcommMemUnimport(e->ep, theirs, len));
	acl_ok((aclError)HcommMemUnreg(e->ep, h));
	acl_ok(aclrtUnmapMem(va));
	acl_ok(aclrtFreePhysical(phys));
	acl_ok(aclrtReleaseMemAddress(va));
	free(host);
}

static void vmm_memory(void **state)
{
	(void)state;
	everywhere(vmm_side);
}

/* More than a queue has room for, in one operation, and one by one. */
static void deep(struct end *e)
{
	enum { N = 3000, PIECE = 64 };
	HcommBatchTransferDesc *d = calloc(N, sizeof(*d));
	int i;

	prepare(e, 0, (size_t)N * PIECE, 30 + (uint64_t)e->rank);
	meet(e);
	for (i = 0; i < N && !e->rank; i++) {
		/* backwards, so that one that is lost leaves a hole */
		size_t at = (size_t)(N - 1 - i) * PIECE;

		d[i].transType = HCOMM_TRANSFER_TYPE_WRITE;
		d[i].transferInfo.write.dst = e->far + BYTES + at;
		d[i].transferInfo.write.src = e->mem + at;
		d[i].transferInfo.write.len = PIECE;
	}
	if (!e->rank) {
		acl_ok((aclError)HcommBatchTransferOnThread(e->th, e->ch, d, N));
		acl_ok((aclError)HcommChannelNotifyRecordOnThread(e->th, e->ch, 0));
		acl_ok((aclError)HcommChannelNotifyWaitOnThread(e->th, e->ch, 0, 30));
		acl_ok(aclrtSynchronizeStream(e->stream));
		prepare(e, 0, (size_t)N * PIECE, 32);
		for (i = 0; i < N; i++)
			acl_ok((aclError)HcommWriteNbi(e->ch, d[i].transferInfo.write.dst, d[i].transferInfo.write.src, PIECE));
		acl_ok((aclError)HcommChannelNotifyRecord(e->ch, 0));
		acl_ok((aclError)HcommChannelFence(e->ch));
	} else {
		acl_ok((aclError)HcommChannelNotifyWait(e->ch, 0, 30));
		landed(e, 0, (size_t)N * PIECE, 30);
		acl_ok((aclError)HcommChannelNotifyRecord(e->ch, 0));
		acl_ok((aclError)HcommChannelNotifyWait(e->ch, 0, 30));
		landed(e, 0, (size_t)N * PIECE, 32);
	}
	free(d);
}

static void deep_queues(void **state)
{
	(void)state;
	everywhere(deep);
}

/* A stream that waits is aborted, and goes on with what comes then. */
static void aborted(struct end *e)
{
	if (!e->rank) {
		acl_ok((aclError)HcommChannelNotifyWaitOnThread(e->th, e->ch, 2, 0));
		acl_ok((aclError)HcommWriteOnThread(e->th, e->ch, e->far, e->mem, 64));
		sys_nap(5);
		acl_ok(aclrtStreamAbort(e->stream));
		acl_ok((aclError)HcommChannelNotifyRecordOnThread(e->th, e->ch, 3));
		acl_ok(aclrtSynchronizeStream(e->stream));
	} else {
		acl_ok((aclError)HcommChannelNotifyWait(e->ch, 3, 30));
	}
	meet(e);
}

static void aborts(void **state)
{
	(void)state;
	as_threads(aborted, "mapped");
	as_processes(aborted, "queue");
}

/* An error of the engine is an error: the channel stays broken, and does not go another way. */
static void faulty(struct end *e)
{
	struct npuemu_queue_stat stat = { .size = sizeof(stat) };
	struct npuemu_fault f = {
		.size = sizeof(f), .kind = NPUEMU_FAULT_STATUS, .slot = NPUEMU_ANY, .device = NPUEMU_ANY,
		.peer_slot = NPUEMU_ANY, .status = NPUEMU_ST_REM_ACCESS_ABORT, .rate_ppm = 1000000, .count = 1,
	};
	struct hcomm_channel *ch = (struct hcomm_channel *)(uintptr_t)e->ch;

	prepare(e, 0, 64, 40);
	meet(e);
	if (e->rank) {
		meet(e);
		landed(e, 0, 0, 0);	/* nothing has come */
		return;
	}
	sys_rc(npuemu_queue_query(ch->q, &stat));
	f.queue = stat.id;
	sys_rc(npuemu_fault_inject(npuacl.board, &f));
	acl_ok((aclError)HcommWriteOnThread(e->th, e->ch, e->far + BYTES, e->mem, 64));
	sys_eq(aclrtSynchronizeStream(e->stream), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
	sys_rc(npuemu_fault_clear(npuacl.board));
	acl_says((aclError)HcommWriteOnThread(e->th, e->ch, e->far + BYTES, e->mem, 64), (aclError)HCCL_E_REMOTE,
		 "REM_ACCESS_ABORT");
	acl_fails((aclError)HcommWriteNbi(e->ch, e->far + BYTES, e->mem, 64), (aclError)HCCL_E_REMOTE);
	acl_fails((aclError)HcommChannelFence(e->ch), (aclError)HCCL_E_REMOTE);
	sys_eq(status_of(e->ch), HCCL_E_REMOTE);
	sys_eq(path_of(e->ch), HCOMM_QUEUE);
	meet(e);
}

static void engine_errors(void **state)
{
	(void)state;
	as_threads(faulty, "queue");
	as_processes(faulty, "queue");
}

/* Recorded once, run again and again. */
static void recorded(struct end *e)
{
	uint8_t *buf = malloc(BYTES);
	aclrtStream s = NULL;
	aclmdlRI model;
	int i;

	acl_ok(aclrtCreateStream(&s));
	if (!e->rank) {
		acl_ok(aclmdlRICaptureBegin(e->stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
		acl_ok((aclError)HcommWriteOnThread(e->th, e->ch, e->far + BYTES, e->mem, BYTES / 2));
		acl_ok((aclError)HcommWriteWithNotifyOnThread(e->th, e->ch, e->far + BYTES + BYTES / 2, e->mem + BYTES / 2,
							      BYTES / 2, 0));
		acl_ok((aclError)HcommChannelNotifyWaitOnThread(e->th, e->ch, 1, 30));
		acl_ok(aclmdlRICaptureEnd(e->stream, &model));
	}
	for (i = 1; i <= 5; i++) {
		if (e->rank) {
			acl_ok((aclError)HcommChannelNotifyWait(e->ch, 0, 30));
			download(buf, e->mem + BYTES, BYTES);
			sys_is_filled("by a model", buf, BYTES, (uint64_t)i);
			acl_ok((aclError)HcommChannelNotifyRecord(e->ch, 1));
			continue;
		}
		sys_fill(buf, BYTES, (uint64_t)i);
		upload(e->mem, buf, BYTES);
		acl_ok(aclmdlRIExecuteAsync(model, s));
		acl_ok(aclrtSynchronizeStream(s));
	}
	if (!e->rank)
		acl_ok(aclmdlRIDestroy(model));
	acl_ok(aclrtDestroyStream(s));
	free(buf);
}

static void models(void **state)
{
	(void)state;
	as_threads(recorded, "mapped");
	as_processes(recorded, "queue");
}

/* ---- Ends that disagree, go, or die ------------------------------------------------------------------------ */

/* One of the ends is not as the other thinks: @why is what both are told. */
static void refused(struct end *e, HcommChannelDesc *d, CommProtocol protocol, int32_t want, const char *why)
{
	EndpointDesc own = describe(e->rank, protocol), remote;

	acl_ok((aclError)HcommEndpointCreate(&own, &e->ep));
	exchange(e, &own, &remote, sizeof(own));
	d->remoteEndpoint = remote;
	acl_ok((aclError)HcommChannelCreate(e->ep, COMM_ENGINE_CPU_TS, d, 1, &e->ch));
	aclGetRecentErrMsg();
	sys_eq(status_of(e->ch), want);
	if (want) {
		const char *m = aclGetRecentErrMsg();

		sys_true(m && strstr(m, why), "nothing about \"%s\": %s", why, m ? m : "no message");
		acl_fails((aclError)HcommChannelNotifyRecord(e->ch, 0), (aclError)HCCL_E_AGAIN);
	}
	meet(e);
	acl_ok((aclError)HcommChannelDestroy(&e->ch, 1));
	acl_ok((aclError)HcommEndpointDestroy(e->ep));
}

/* Two that listen do not meet; each is met by who connects. */
static void roles(struct end *e)
{
	EndpointDesc own = describe(e->rank, COMM_PROTOCOL_UB_CTP), remote;
	HcommChannelDesc d[2];
	ChannelHandle ch[2];
	int32_t status[2];
	int i;

	acl_ok((aclError)HcommEndpointCreate(&own, &e->ep));
	exchange(e, &own, &remote, sizeof(own));
	for (i = 0; i < 2; i++) {
		d[i] = channel_desc(&remote);
		d[i].role = i ? HCOMM_SOCKET_ROLE_CLIENT : HCOMM_SOCKET_ROLE_SERVER;
	}
	acl_ok((aclError)HcommChannelCreate(e->ep, COMM_ENGINE_CPU_TS, &d[0], 1, &ch[0]));
	meet(e);
	for (i = 0; i < 20; i++) {
		acl_ok((aclError)HcommChannelGetStatus(ch, 1, status));
		sys_eq(status[0], HCCL_E_AGAIN);
		sys_nap(2);
	}
	meet(e);
	acl_ok((aclError)HcommChannelCreate(e->ep, COMM_ENGINE_CPU_TS, &d[1], 1, &ch[1]));
	sys_eq(status_of(ch[0]), 0);
	sys_eq(status_of(ch[1]), 0);
	/* mine that listens is the other's that connects */
	acl_ok((aclError)HcommChannelNotifyRecord(ch[0], 2));
	acl_ok((aclError)HcommChannelNotifyRecord(ch[1], 3));
	acl_ok((aclError)HcommChannelNotifyWait(ch[1], 2, 30));
	acl_ok((aclError)HcommChannelNotifyWait(ch[0], 3, 30));
	meet(e);
	acl_ok((aclError)HcommChannelDestroy(ch, 2));
	acl_ok((aclError)HcommEndpointDestroy(e->ep));
}

static void other_setting(struct end *e)
{
	HcommChannelDesc d;
	EndpointDesc none;

	set_path(e->rank ? "mapped" : "queue");
	EndpointDescInit(&none, 1);
	d = channel_desc(&none);
	refused(e, &d, COMM_PROTOCOL_UB_CTP, HCCL_E_PARA, "NPUEMU_TRANSPORT");
}

static void one_setting(struct end *e)
{
	HcommChannelDesc d;
	EndpointDesc none;

	set_path(e->rank ? "mapped" : "");
	EndpointDescInit(&none, 1);
	d = channel_desc(&none);
	refused(e, &d, COMM_PROTOCOL_UB_CTP, HCCL_E_PARA, "not set");
}

/* Loads and stores: mapped, without being told to. */
static void by_protocol(struct end *e)
{
	begin_with(e, COMM_PROTOCOL_UB_MEM);
	sys_eq(path_of(e->ch), HCOMM_MAPPED);
	ping(e);
	end_all(e);
	begin_with(e, COMM_PROTOCOL_UB_RTP);
	sys_eq(path_of(e->ch), HCOMM_QUEUE);
	ping(e);
	end_all(e);
}

static void bare_child(int fd, const void *arg)
{
	struct task t = *(const struct task *)arg;

	t.fd = fd;
	acl_ok(aclInit(NULL));
	run_end(&t, false);
	acl_ok(aclFinalize());
}

static void bare(scenario_fn fn)
{
	struct task t = { .fn = fn, .rank = 1, .bare = true };
	struct sys_child c;

	sys_spawn(&c, bare_child, &t, sizeof(t));
	t.rank = 0;
	t.fd = c.fd;
	run_end(&t, false);
	sys_join(&c);
	unsetenv("NPUEMU_TRANSPORT");
}

/* A machine without UDMA has other protocols, and one path. */
static void older(struct end *e)
{
	EndpointDesc own = describe(e->rank, COMM_PROTOCOL_HCCS);
	HcommChannelDesc d = channel_desc(&own);
	EndpointHandle ep;
	ChannelHandle ch;

	acl_ok((aclError)HcommEndpointCreate(&own, &ep));
	set_path("queue");
	acl_says((aclError)HcommChannelCreate(ep, COMM_ENGINE_CPU, &d, 1, &ch), (aclError)HCCL_E_NOT_SUPPORT, "no UDMA");
	set_path("");
	acl_ok((aclError)HcommEndpointDestroy(ep));
	own.protocol = COMM_PROTOCOL_UB_CTP;
	acl_says((aclError)HcommEndpointCreate(&own, &ep), (aclError)HCCL_E_NOT_SUPPORT, "HCCS");
	begin_with(e, COMM_PROTOCOL_HCCS);
	sys_eq(path_of(e->ch), HCOMM_MAPPED);
	ping(e);
	end_all(e);
}

static int older_begin(void **state)
{
	int rc = sys_setup(state);

	if (rc || sys_kernel())
		return rc;
	setenv("NPUEMU_MACHINE", "910b", 1);
	acl_ok(aclInit(NULL));
	return 0;
}

static int older_end(void **state)
{
	if (!sys_kernel())
		acl_ok(aclFinalize());
	return sys_teardown(state);
}

static void without_udma(void **state)
{
	(void)state;
	sys_user_only("its machine is the module's");
	bare(older);
}

static void disagreement(void **state)
{
	(void)state;
	bare(roles);
	bare(other_setting);
	bare(one_setting);
	bare(by_protocol);
}

/* Several between the same ends: the first here is the first there. */
static void several(struct end *e)
{
	enum { N = 12 };
	EndpointDesc own = describe(e->rank, COMM_PROTOCOL_UB_MEM), remote;
	HcommChannelDesc d[N];
	EndpointHandle ep;
	ChannelHandle ch[N];
	int i;

	acl_ok((aclError)HcommEndpointCreate(&own, &ep));
	exchange(e, &own, &remote, sizeof(own));
	for (i = 0; i < N; i++) {
		d[i] = channel_desc(&remote);
		d[i].channelName = i < 4 ? NULL : "named";
		d[i].port = i < 8 ? 0 : (uint16_t)(1000 + i);
	}
	acl_ok((aclError)HcommChannelCreate(ep, COMM_ENGINE_CPU, d, N, ch));
	/* asked in another order at each end */
	for (i = 0; i < N; i++)
		sys_eq(status_of(ch[e->rank ? i : N - 1 - i]), 0);
	for (i = 0; i < N && !e->rank; i++)
		acl_ok((aclError)HcommChannelNotifyRecord(ch[i], (uint32_t)i % NOTIFIES));
	for (i = 0; i < N && e->rank; i++)
		acl_ok((aclError)HcommChannelNotifyWait(ch[i], (uint32_t)i % NOTIFIES, 20));
	meet(e);
	acl_ok((aclError)HcommChannelDestroy(ch, N));
	acl_ok((aclError)HcommEndpointDestroy(ep));
}

static void many_channels(void **state)
{
	(void)state;
	as_threads(several, "mapped");
	as_processes(several, "mapped");
}

/* The peer's end is destroyed: what comes after it fails, what came before does not. */
static void goes(struct end *e)
{
	int64_t begin;

	if (e->rank) {
		acl_ok((aclError)HcommChannelNotifyRecord(e->ch, 1));
		acl_ok((aclError)HcommChannelFence(e->ch));
		acl_ok((aclError)HcommChannelDestroy(&e->ch, 1));
		meet(e);
		begin_with(e, COMM_PROTOCOL_UB_MEM);	/* for run_end() to take down: see below */
		return;
	}
	meet(e);
	acl_ok((aclError)HcommChannelNotifyWait(e->ch, 1, 30));
	begin = npuemu_now_ns();
	acl_says((aclError)HcommChannelNotifyWait(e->ch, 1, 30), (aclError)HCCL_E_REMOTE, "destroyed");
	sys_true(npuemu_now_ns() - begin < 5000000000, "it took %lld ns", (long long)(npuemu_now_ns() - begin));
	acl_fails((aclError)HcommWriteOnThread(e->th, e->ch, e->far, e->mem, 8), (aclError)HCCL_E_REMOTE);
	acl_fails((aclError)HcommChannelNotifyRecord(e->ch, 1), (aclError)HCCL_E_REMOTE);
	sys_eq(status_of(e->ch), HCCL_E_REMOTE);
	begin_with(e, COMM_PROTOCOL_UB_MEM);
}

/* What begin_with() made first, before it is made again. */
static void end_goes(struct end *e)
{
	struct end old = *e;

	goes(e);
	meet(e);
	acl_ok((aclError)HcommThreadFree(&old.th, 1));
	if (!old.rank)
		acl_ok((aclError)HcommChannelDestroy(&old.ch, 1));
	acl_ok((aclError)HcommMemUnreg(old.ep, old.mem_handle));
	acl_ok((aclError)HcommEndpointDestroy(old.ep));
	acl_ok((aclError)HcommMemFree(old.mem));
}

static void peer_goes(void **state)
{
	(void)state;
	as_threads(end_goes, "mapped");
	as_processes(end_goes, "mapped");
}

static void dying(struct end *e)
{
	char c;

	meet(e);
	/* until it is killed */
	sys_try_get(e->fd, &c, 1);
	sys_nap(60000);
}

struct death {
	char path[8];
	bool on_thread;
};

static void one_death(const struct death *d)
{
	struct task t = { .fn = dying, .rank = 1 };
	struct end e = { .rank = 0 };
	struct sys_child c;
	int64_t begin;
	aclError got;

	set_path(d->path);
	strcpy(t.path, d->path);
	sys_spawn(&c, child, &t, sizeof(t));
	e.fd = c.fd;
	begin_with(&e, COMM_PROTOCOL_UB_CTP);
	meet(&e);
	if (d->on_thread)
		acl_ok((aclError)HcommChannelNotifyWaitOnThread(e.th, e.ch, 0, 0));
	sys_nap(20);
	sys_kill(&c);
	begin = npuemu_now_ns();
	if (d->on_thread) {
		got = aclrtSynchronizeStream(e.stream);
		sys_eq(got, ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
	} else {
		acl_says((aclError)HcommChannelNotifyWait(e.ch, 0, 0), (aclError)HCCL_E_REMOTE, "has ended");
	}
	sys_true(npuemu_now_ns() - begin < 10000000000, "it took %lld ns", (long long)(npuemu_now_ns() - begin));
	/* and so does all that comes after */
	acl_fails((aclError)HcommWriteOnThread(e.th, e.ch, e.far, e.mem, 8), (aclError)HCCL_E_REMOTE);
	acl_ok((aclError)HcommThreadFree(&e.th, 1));
	acl_ok((aclError)HcommChannelDestroy(&e.ch, 1));
	acl_ok((aclError)HcommMemUnreg(e.ep, e.mem_handle));
	acl_ok((aclError)HcommEndpointDestroy(e.ep));
	acl_ok((aclError)HcommMemFree(e.mem));
}

static void peer_killed(void **state)
{
	const struct death list[] = { { "mapped", true }, { "mapped", false }, { "queue", true }, { "queue", false } };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(list) / sizeof(*list); i++)
		one_death(&list[i]);
	unsetenv("NPUEMU_TRANSPORT");
	/* the board is none the worse for it */
	as_processes(ping, "queue");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		acl_test(memory_later), acl_test(host_memory), acl_test(vmm_memory), acl_test(models),
		acl_test(deep_queues), acl_test(aborts), acl_test(engine_errors), acl_test(disagreement),
		cmocka_unit_test_setup_teardown(without_udma, older_begin, older_end),
		acl_test(many_channels), acl_test(peer_goes), acl_test(peer_killed),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
