// SPDX-License-Identifier: MIT
/*
 * What is left of HCCL's own functions: configuration of the process, groups of calls,
 * the communicator's buffer, contexts of engines, how ranks are wired, suspending and
 * resuming, callbacks.
 */
#include <hccl/hccl_rank_graph.h>
#include <stdio.h>
#include "hcclrank.h"

#define N	4096u

/* ---- Configuration of the process --------------------------------------------- */

static int32_t configured(void)
{
	HcclConfigValue v = { .value = -7 };

	hr_ok(HcclGetConfig(HCCL_DETERMINISTIC, &v));
	return v.value;
}

static void config_rank(struct hr_rank *r)
{
	HcclConfigValue v = { .value = 1 };
	HcclCommConfig config;
	HcclComm comm;

	/* of one process: rank 1 does not set it, and disagrees with a communicator made then */
	if (!r->rank)
		hr_ok(HcclSetConfig(HCCL_DETERMINISTIC, v));
	hr_barrier(r);
	if (!r->rank)
		hr_ok(HcclGetRootInfo(&hr_shared->root));
	hr_barrier(r);
	hr_says(HcclCommInitRootInfo(2, &hr_shared->root, r->rank, &comm), HCCL_E_PARA, "deterministic");
	hr_barrier(r);
	/* what the communicator's own configuration says is nearer */
	HcclCommConfigInit(&config);
	config.hcclBufferSize = 1;
	config.hcclDeterministic = 2;
	if (!r->rank)
		hr_ok(HcclGetRootInfo(&hr_shared->root));
	hr_barrier(r);
	hr_ok(HcclCommInitRootInfoConfig(2, &hr_shared->root, r->rank, &config, &comm));
	hr_ok(HcclCommDestroy(comm));
	if (r->rank)
		hr_ok(HcclSetConfig(HCCL_DETERMINISTIC, v));
	hr_barrier(r);
	comm = hr_comm(r);
	hr_ok(HcclCommDestroy(comm));
}

static void config_process(struct hr_rank *r)
{
	HcclConfigValue v = { .value = 3 };

	(void)r;
	sys_eq(configured(), 0);
	setenv("HCCL_DETERMINISTIC", "strict", 1);
	sys_eq(configured(), 2);
	hr_says(HcclSetConfig(HCCL_DETERMINISTIC, v), HCCL_E_PARA, "is 3");
	hr_says(HcclSetConfig(HCCL_CONFIG_RESERVED, v), HCCL_E_PARA, "no configuration 1");
	hr_says(HcclGetConfig(HCCL_DETERMINISTIC, NULL), HCCL_E_PTR, "configValue");
	v.value = 1;
	hr_ok(HcclSetConfig(HCCL_DETERMINISTIC, v));
	sys_eq(configured(), 1);
	v.value = 0;
	hr_ok(HcclSetConfig(HCCL_DETERMINISTIC, v));
	sys_eq(configured(), 0);
}

static void config(void **state)
{
	(void)state;
	hr_run_bare(1, true, config_process);
	hr_run_bare(2, true, config_rank);
}

/* ---- Groups of calls -------------------------------------------------------------- */

static int32_t *numbers(size_t n, int32_t first)
{
	int32_t *host = malloc(n * sizeof(*host));
	void *dev;
	size_t i;

	for (i = 0; i < n; i++)
		host[i] = first + (int32_t)i;
	acl_ok(aclrtMalloc(&dev, n * sizeof(*host), ACL_MEM_MALLOC_HUGE_FIRST));
	acl_ok(aclrtMemcpy(dev, n * sizeof(*host), host, n * sizeof(*host), ACL_MEMCPY_HOST_TO_DEVICE));
	free(host);
	return dev;
}

static void are(const char *what, const int32_t *dev, size_t n, int32_t first, int32_t times)
{
	int32_t *host = malloc(n * sizeof(*host));
	size_t i;

	acl_ok(aclrtMemcpy(host, n * sizeof(*host), dev, n * sizeof(*host), ACL_MEMCPY_DEVICE_TO_HOST));
	for (i = 0; i < n; i++)
		sys_true(host[i] == first + times * (int32_t)i, "%s: element %zu is %d, not %d", what, i, host[i],
			 first + times * (int32_t)i);
	free(host);
}

/* Sends before receives, to everybody, oneself too, on one stream: alone that hangs. */
static void group_p2p(struct hr_rank *r)
{
	int32_t *in = numbers(N, (int32_t)r->rank * 10000), *out = numbers(N * r->ranks, 0);
	aclrtStream second;
	bool inside = true;
	uint32_t i, times;

	acl_ok(aclrtCreateStream(&second));
	hr_ok(HcclGroupStatusGet(&inside));
	sys_true(!inside, "in a group that nobody started");
	for (times = 0; times < 3; times++) {
		hr_ok(HcclGroupStart());
		hr_ok(HcclGroupStart());
		hr_ok(HcclGroupStatusGet(&inside));
		sys_true(inside, "not in a group");
		for (i = 0; i < r->ranks; i++)
			hr_ok(HcclSend(in, N, HCCL_DATA_TYPE_INT32, i, r->comm, r->stream));
		hr_ok(HcclGroupEnd());
		for (i = 0; i < r->ranks; i++)
			hr_ok(HcclRecv(out + i * N, N, HCCL_DATA_TYPE_INT32, i, r->comm, i % 2 ? r->stream : second));
		/* arguments are looked at at once, and the rest goes on */
		hr_says(HcclSend(in, N, HCCL_DATA_TYPE_INT32, r->ranks, r->comm, r->stream), HCCL_E_PARA, "has ranks 0 to");
		hr_says(HcclBatchSendRecv(NULL, 1, r->comm, r->stream), HCCL_E_NOT_SUPPORT, "HcclGroupStart");
		hr_says(HcclAllReduce(in, out, N, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, r->comm, r->stream), HCCL_E_PARA,
			"sends and receives");
		hr_says(HcclCommDestroy(r->comm), HCCL_E_PARA, "does not mix");
		hr_ok(HcclGroupEnd());
		hr_sync(r);
		acl_ok(aclrtSynchronizeStreamWithTimeout(second, SYS_PATIENCE_MS));
		for (i = 0; i < r->ranks; i++)
			are("received in a group", out + i * N, N, (int32_t)i * 10000, 1);
		acl_ok(aclrtMemset(out, N * r->ranks * sizeof(*out), 0, N * r->ranks * sizeof(*out)));
	}
	hr_says(HcclGroupEnd(), HCCL_E_PARA, "HcclGroupStart comes first");
	hr_says(HcclGroupStatusGet(NULL), HCCL_E_PTR, "inGroup");
	/* nothing at all */
	hr_ok(HcclGroupStart());
	hr_ok(HcclGroupEnd());
	/* what was put off says at the end that it cannot be done */
	hr_ok(HcclGroupStart());
	hr_ok(HcclSend(in, N, HCCL_DATA_TYPE_INT32, (r->rank + 1) % r->ranks, r->comm, second));
	acl_ok(aclrtDestroyStream(second));
	hr_says(HcclGroupEnd(), HCCL_E_PARA, "stream");
	hr_barrier(r);
	acl_ok(aclrtFree(in));
	acl_ok(aclrtFree(out));
}

static void group_coll(struct hr_rank *r)
{
	int32_t *in = numbers(N, 0), *mid = numbers(N, 0), *out = numbers(N, 0);

	hr_ok(HcclGroupStart());
	hr_ok(HcclAllReduce(in, mid, N, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, r->comm, r->stream));
	hr_ok(HcclAllReduce(mid, out, N, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, r->comm, r->stream));
	hr_says(HcclSend(in, N, HCCL_DATA_TYPE_INT32, 1 - r->rank, r->comm, r->stream), HCCL_E_PARA, "collectives are issued");
	hr_ok(HcclGroupEnd());
	hr_sync(r);
	are("two at once", out, N, 0, (int32_t)(r->ranks * r->ranks));
	hr_barrier(r);
	acl_ok(aclrtFree(in));
	acl_ok(aclrtFree(mid));
	acl_ok(aclrtFree(out));
}

/* One thread makes the communicators of all its devices, and destroys them. */
static void group_manage(struct hr_rank *r)
{
	HcclComm comm[4] = { NULL }, one;
	aclrtStream s[4];
	HcclRootInfo root;
	int32_t *buf[4];
	uint32_t i, n;

	(void)r;
	hr_ok(HcclGetRootInfo(&root));
	hr_ok(HcclGroupStart());
	for (i = 0; i < 4; i++) {
		acl_ok(aclrtSetDevice((int32_t)i));
		hr_ok(HcclCommInitRootInfo(4, &root, i, &comm[i]));
		sys_true(!comm[i], "made before the group's end");
	}
	hr_says(HcclCommInitAll(1, (int32_t[]){ 5 }, &one), HCCL_E_NOT_SUPPORT, "cannot be called between");
	hr_ok(HcclGroupEnd());
	for (i = 0; i < 4; i++) {
		hr_ok(HcclGetRankId(comm[i], &n));
		sys_eq(n, i);
		acl_ok(aclrtSetDevice((int32_t)i));
		acl_ok(aclrtCreateStream(&s[i]));
		buf[i] = numbers(N, 5);
		hr_ok(HcclAllReduce(buf[i], buf[i], N, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, comm[i], s[i]));
	}
	for (i = 0; i < 4; i++) {
		acl_ok(aclrtSetDevice((int32_t)i));
		acl_ok(aclrtSynchronizeStreamWithTimeout(s[i], SYS_PATIENCE_MS));
		are("by one thread", buf[i], N, 20, 4);
		acl_ok(aclrtFree(buf[i]));
		acl_ok(aclrtDestroyStream(s[i]));
	}
	hr_ok(HcclGroupStart());
	for (i = 0; i < 4; i++)
		hr_ok(HcclCommDestroy(comm[i]));
	hr_ok(HcclGroupEnd());
	/* what goes wrong in one of them is told at the end */
	hr_ok(HcclGetRootInfo(&root));
	hr_ok(HcclGroupStart());
	hr_ok(HcclCommInitRootInfo(2, &root, 2, &comm[0]));
	hr_says(HcclGroupEnd(), HCCL_E_PARA, "rank 2 of 2 ranks");
	for (i = 0; i < 4; i++)
		acl_ok(aclrtResetDevice((int32_t)i));
	acl_ok(aclrtSetDevice(0));
}

static void groups(void **state)
{
	(void)state;
	hr_run(3, true, 1, group_p2p);
	hr_run(3, false, 1, group_p2p);
	hr_run(2, true, 1, group_coll);
	hr_run_bare(1, false, group_manage);
}

/* ---- Buffers and contexts ------------------------------------------------------------- */

static void buffer_rank(struct hr_rank *r)
{
	void *buf, *again, *part;
	uint64_t size, size2;
	int32_t *in = numbers(N, 3);

	hr_says(HcclGetHcclBuffer(r->comm, NULL, &size), HCCL_E_PTR, "buffer");
	hr_ok(HcclGetHcclBuffer(r->comm, &buf, &size));
	sys_eq(size, 2ul << 20);
	hr_ok(HcclGetHcclBuffer(r->comm, &again, &size2));
	sys_true(buf == again && size == size2, "another one");
	/* copies take it, and operations; the program cannot free it */
	acl_ok(aclrtMemcpy(buf, size, in, N * sizeof(*in), ACL_MEMCPY_DEVICE_TO_DEVICE));
	part = (char *)buf + 4;
	are("in the buffer", part, N - 1, 4, 1);
	acl_fails(aclrtFree(buf), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtMemset(in, N * sizeof(*in), 0, N * sizeof(*in)));
	if (r->rank)
		hr_ok(HcclRecv(in, N, HCCL_DATA_TYPE_INT32, 0, r->comm, r->stream));
	else
		hr_ok(HcclSend(buf, N, HCCL_DATA_TYPE_INT32, 1, r->comm, r->stream));
	hr_sync(r);
	if (r->rank)
		are("from the buffer", in, N, 3, 1);
	hr_barrier(r);
	hr_ok(HcclGetHcclBufferCleared(r->comm, &again, &size2));
	sys_true(buf == again && size == size2, "another one");
	sys_is_byte("cleared", buf, size, 0);
	hr_barrier(r);
	acl_ok(aclrtFree(in));
}

static void context_rank(struct hr_rank *r)
{
	static const CommEngine engines[] = {
		COMM_ENGINE_CPU, COMM_ENGINE_CPU_TS, COMM_ENGINE_AICPU, COMM_ENGINE_AICPU_TS, COMM_ENGINE_AIV, COMM_ENGINE_CCU,
	};
	uint8_t host[100], back[100];
	aclrtPtrAttributes attr;
	uint64_t size;
	char tag[300];
	bool dev;
	void *ctx, *same;
	size_t i;

	sys_fill(host, sizeof(host), 9);
	for (i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		CommEngine e = engines[i];

		dev = e == COMM_ENGINE_AICPU || e == COMM_ENGINE_AICPU_TS || e == COMM_ENGINE_AIV;
		hr_says(HcclEngineCtxGet(r->comm, "mine", e, &ctx, &size), HCCL_E_NOT_FOUND, "\"mine\"");
		hr_ok(HcclEngineCtxCreate(r->comm, "mine", e, 200, &ctx));
		hr_says(HcclEngineCtxCreate(r->comm, "mine", e, 200, &ctx), HCCL_E_PARA, "already");
		hr_ok(HcclEngineCtxGet(r->comm, "mine", e, &same, &size));
		sys_true(ctx == same && size == 200, "%p and %p, %lu bytes", ctx, same, (unsigned long)size);
		acl_ok(aclrtPointerGetAttributes(ctx, &attr));
		sys_eq(attr.location.type == ACL_MEM_LOCATION_TYPE_DEVICE, dev);
		hr_ok(HcclEngineCtxCopy(r->comm, e, "mine", host, 100, 100));
		if (dev)
			acl_ok(aclrtMemcpy(back, 100, (char *)ctx + 100, 100, ACL_MEMCPY_DEVICE_TO_HOST));
		else
			memcpy(back, (char *)ctx + 100, 100);
		sys_is_filled("a context", back, 100, 9);
		hr_says(HcclEngineCtxCopy(r->comm, e, "mine", host, 100, 101), HCCL_E_PARA, "has 200");
		hr_says(HcclEngineCtxCopy(r->comm, e, "yours", host, 1, 0), HCCL_E_NOT_FOUND, "\"yours\"");
		hr_says(HcclEngineCtxDestroy(r->comm, "yours", e), HCCL_E_NOT_FOUND, "\"yours\"");
	}
	hr_ok(HcclEngineCtxDestroy(r->comm, "mine", COMM_ENGINE_AIV));
	hr_ok(HcclEngineCtxDestroy(r->comm, "mine", COMM_ENGINE_CPU));
	hr_says(HcclEngineCtxGet(r->comm, "mine", COMM_ENGINE_CPU, &ctx, &size), HCCL_E_NOT_FOUND, "\"mine\"");
	memset(tag, 'x', sizeof(tag));
	tag[255] = 0;
	hr_ok(HcclEngineCtxCreate(r->comm, tag, COMM_ENGINE_CPU, 1, &ctx));
	tag[255] = 'x';
	tag[256] = 0;
	hr_says(HcclEngineCtxCreate(r->comm, tag, COMM_ENGINE_CPU, 1, &ctx), HCCL_E_PARA, "letters");
	hr_says(HcclEngineCtxCreate(r->comm, "", COMM_ENGINE_CPU, 1, &ctx), HCCL_E_PARA, "0 letters");
	hr_says(HcclEngineCtxCreate(r->comm, "a", (CommEngine)6, 1, &ctx), HCCL_E_PARA, "no engine 6");
	hr_says(HcclEngineCtxCreate(r->comm, "a", COMM_ENGINE_CPU, 0, &ctx), HCCL_E_PARA, "size is 0");
	/* the rest goes with the communicator */
}

static void memory(void **state)
{
	(void)state;
	hr_run(2, true, 1, buffer_rank);
	hr_run(2, false, 1, buffer_rank);
	hr_run(2, false, 1, context_rank);
}

/* ---- How ranks are wired -------------------------------------------------------------------- */

static void graph_of(struct hr_rank *r, uint32_t servers)
{
	uint32_t *list, n, k, per = r->ranks / servers, own = r->rank / per, layer, i;
	EndpointDesc desc[2];
	uint32_t value;
	CommLink *links;
	HcclHeterogMode mode;
	CommTopo topo;

	hr_ok(HcclRankGraphGetLayers(r->comm, &list, &n));
	sys_eq(n, servers > 1 ? 2 : 1);
	for (i = 0; i < n; i++)
		sys_eq(list[i], i);
	for (layer = 0; layer < n; layer++) {
		uint32_t have = layer ? r->ranks : per, first = layer ? 0 : own * per;

		hr_ok(HcclRankGraphGetRanksByLayer(r->comm, layer, &list, &k));
		sys_eq(k, have);
		for (i = 0; i < k; i++)
			sys_eq(list[i], first + i);
		hr_ok(HcclRankGraphGetRankSizeByLayer(r->comm, layer, &k));
		sys_eq(k, have);
		hr_ok(HcclRankGraphGetInstSizeListByLayer(r->comm, layer, &list, &k));
		sys_eq(k, layer ? 1 : servers);
		for (i = 0; i < k; i++)
			sys_eq(list[i], have);
		hr_ok(HcclRankGraphGetTopoTypeByLayer(r->comm, layer, &topo));
		sys_eq(topo, layer ? COMM_TOPO_CLOS : COMM_TOPO_1DMESH);
		hr_ok(HcclRankGraphGetTopoInstsByLayer(r->comm, layer, &list, &k));
		sys_eq(k, 1);
		hr_ok(HcclRankGraphGetTopoType(r->comm, layer, list[0], &topo));
		sys_eq(topo, layer ? COMM_TOPO_CLOS : COMM_TOPO_1DMESH);
		hr_ok(HcclRankGraphGetRanksByTopoInst(r->comm, layer, list[0], &list, &k));
		sys_eq(k, have);
		hr_ok(HcclRankGraphGetEndpointNum(r->comm, layer, 0, &k));
		sys_eq(k, 1);
		k = 2;
		hr_ok(HcclRankGraphGetEndpointDesc(r->comm, layer, 0, &k, desc));
		sys_eq(k, 1);
		sys_eq(desc[0].protocol, layer ? COMM_PROTOCOL_UBOE : COMM_PROTOCOL_UB_CTP);
		sys_eq(desc[0].loc.device.serverIdx, own);
		hr_ok(HcclRankGraphGetEndpointInfo(r->comm, r->rank, desc, ENDPOINT_ATTR_BW_COEFF, 4, &value));
		sys_eq(value, 1);
		hr_ok(HcclRankGraphGetEndpointInfo(r->comm, r->rank, desc, ENDPOINT_ATTR_LOCATION, 4, &value));
		sys_eq(value, ENDPOINT_LOC_TYPE_DEVICE);
		hr_says(HcclRankGraphGetEndpointInfo(r->comm, r->rank, desc, ENDPOINT_ATTR_LOCATION, 8, &value), HCCL_E_PARA, "infoLen");
		hr_says(HcclRankGraphGetEndpointInfo(r->comm, (r->rank + 1) % r->ranks, desc, ENDPOINT_ATTR_DIE_ID, 4, &value),
			HCCL_E_NOT_FOUND, "no such endpoint");
		for (i = 0; i < r->ranks; i++) {
			bool joined = i != r->rank && (i / per != own) == layer;

			hr_ok(HcclRankGraphGetLinks(r->comm, layer, r->rank, i, &links, &k));
			sys_eq(k, joined);
			if (!joined)
				continue;
			sys_eq(links[0].linkAttr.linkProtocol, layer ? COMM_PROTOCOL_UBOE : COMM_PROTOCOL_UB_CTP);
			sys_eq(links[0].dstEndpointDesc.loc.device.serverIdx, i / per);
			sys_same("an end of it", &links[0].srcEndpointDesc, desc, sizeof(desc[0]));
		}
	}
	hr_says(HcclRankGraphGetTopoTypeByLayer(r->comm, n, &topo), HCCL_E_PARA, "from 0 on");
	hr_says(HcclRankGraphGetTopoType(r->comm, 0, 1, &topo), HCCL_E_PARA, "no topology 1");
	hr_says(HcclRankGraphGetLinks(r->comm, 0, 0, r->ranks, &links, &k), HCCL_E_PARA, "has ranks 0 to");
	hr_says(HcclRankGraphGetLayers(r->comm, NULL, &k), HCCL_E_PTR, "NULL");
	hr_ok(HcclGetHeterogMode(r->comm, &mode));
	sys_eq(mode, HCCL_HETEROG_MODE_HOMOGENEOUS);
}

static void graph_one(struct hr_rank *r)
{
	graph_of(r, 1);
}

static void graph_two(struct hr_rank *r)
{
	graph_of(r, 2);
}

static void graph(void **state)
{
	(void)state;
	hr_run(3, false, 1, graph_one);
}

/* Devices 0, 4, 8, 12: two on each server. */
static void graph_servers(void **state)
{
	(void)state;
	sys_user_only("the module is one machine, of one server");
	hr_run(4, false, 4, graph_two);
}

/* ---- Suspended, resumed, told -------------------------------------------------------------------- */

struct told {
	uint32_t phase[4];
	HcclComm last;
};

static HcclResult tell(HcclComm comm, HcclCommStatePhase phase, void *args)
{
	struct told *t = args;

	t->phase[phase]++;
	t->last = comm;
	return HCCL_SUCCESS;
}

static void suspend_rank(struct hr_rank *r)
{
	int32_t *buf = numbers(N, 1), *plain = numbers(N, 1);
	struct told told = { .last = NULL };
	HcclCommStatus status;
	char name[128];
	HcclComm more;

	hr_says(HcclCommRegCommStateCallback(NULL, tell, NULL), HCCL_E_PTR, "regName");
	hr_says(HcclCommRegCommStateCallback("a", NULL, NULL), HCCL_E_PTR, "callback");
	hr_says(HcclCommRegCommStateCallback("", tell, NULL), HCCL_E_PARA, "0 letters");
	hr_ok(HcclCommRegCommStateCallback("test", tell, NULL));
	hr_ok(HcclCommRegCommStateCallback("test", tell, &told));
	hr_ok(HcclGetCommName(r->comm, name));
	hr_says(HcclCommResume(r->comm), HCCL_E_PARA, "not suspended");
	hr_ok(HcclCommSuspend(r->comm));
	hr_ok(HcclCommGetStatus(name, &status));
	sys_eq(status, HCCL_COMM_STATUS_SUSPENDING);
	hr_says(HcclAllReduce(buf, buf, N, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, r->comm, r->stream), HCCL_E_SUSPENDING, "is suspended");
	hr_says(HcclSend(buf, N, HCCL_DATA_TYPE_INT32, 1 - r->rank, r->comm, r->stream), HCCL_E_SUSPENDING, "is suspended");
	hr_ok(HcclCommResume(r->comm));
	sys_true(told.phase[HCCL_COMM_STATE_PHASE_RESUME_PRE] == 1 && told.phase[HCCL_COMM_STATE_PHASE_RESUME_POST] == 1 &&
		 told.last == r->comm, "told %u and %u times", told.phase[2], told.phase[3]);
	hr_ok(HcclCommGetStatus(name, &status));
	sys_eq(status, HCCL_COMM_STATUS_READY);
	hr_barrier(r);
	hr_ok(HcclAllReduce(buf, buf, N, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, r->comm, r->stream));
	hr_sync(r);
	are("after it was resumed", buf, N, 2, 2);
	more = hr_comm(r);
	hr_ok(HcclCommDestroy(more));
	sys_true(told.phase[HCCL_COMM_STATE_PHASE_DESTROY_PRE] == 1 && told.phase[HCCL_COMM_STATE_PHASE_DESTROY_POST] == 1,
		 "told %u and %u times", told.phase[0], told.phase[1]);
	hr_ok(HcclCommRegCommStateCallback("test", tell, &told));
	hr_barrier(r);
	acl_ok(aclrtFree(buf));
	acl_ok(aclrtFree(plain));
	/* nothing of this function is there when the communicator goes */
	static struct told later;

	hr_ok(HcclCommRegCommStateCallback("test", tell, &later));
}

/* A stream is aborted in the middle of an operation: all fail, suspend, resume, go on. */
static void recover_rank(struct hr_rank *r)
{
	int32_t *buf = numbers(N, 1);
	uint32_t times;

	for (times = 0; times < 3; times++) {
		HcclResult async;

		/* some that are well before it, of both kinds */
		hr_ok(HcclBroadcast(buf, N, HCCL_DATA_TYPE_INT32, 0, r->comm, r->stream));
		hr_ok(HcclGroupStart());
		hr_ok(HcclSend(buf, N, HCCL_DATA_TYPE_INT32, (r->rank + 1) % r->ranks, r->comm, r->stream));
		hr_ok(HcclRecv(buf, N, HCCL_DATA_TYPE_INT32, (r->rank + r->ranks - 1) % r->ranks, r->comm, r->stream));
		hr_ok(HcclGroupEnd());
		hr_sync(r);
		hr_barrier(r);
		if (!r->rank)
			hr_ok(HcclBarrier(r->comm, r->stream));
		else if (times == 1)
			hr_ok(HcclRecv(buf, N, HCCL_DATA_TYPE_INT32, 0, r->comm, r->stream));
		hr_barrier(r);
		if (!r->rank)
			acl_ok(aclrtStreamAbort(r->stream));
		hr_barrier(r);
		if (r->rank && times == 1)
			sys_true(aclrtSynchronizeStreamWithTimeout(r->stream, SYS_PATIENCE_MS), "nothing failed");
		hr_ok(HcclGetCommAsyncError(r->comm, &async));
		sys_eq(async, HCCL_E_REMOTE);
		sys_true(HcclBarrier(r->comm, r->stream) != HCCL_SUCCESS, "it goes on");
		hr_ok(HcclCommSuspend(r->comm));
		hr_ok(HcclCommResume(r->comm));
		hr_ok(HcclGetCommAsyncError(r->comm, &async));
		sys_eq(async, HCCL_SUCCESS);
		hr_barrier(r);
	}
	acl_ok(aclrtFree(buf));
	buf = numbers(N, 1);
	hr_ok(HcclAllReduce(buf, buf, N, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, r->comm, r->stream));
	hr_sync(r);
	are("as new", buf, N, (int32_t)r->ranks, (int32_t)r->ranks);
	hr_barrier(r);
	acl_ok(aclrtFree(buf));
}

static void nic_rank(struct hr_rank *r)
{
	uint32_t ranks[] = { 0, 1 }, twice[] = { 1, 1 }, wrong[] = { 0, 2 };
	bool backup[] = { true, false };

	hr_ok(HcclCommWorkingDevNicSet(r->comm, ranks, backup, 2));
	hr_says(HcclCommWorkingDevNicSet(r->comm, twice, backup, 2), HCCL_E_PARA, "both 1");
	hr_says(HcclCommWorkingDevNicSet(r->comm, wrong, backup, 2), HCCL_E_PARA, "ranks[1] is 2");
	hr_says(HcclCommWorkingDevNicSet(r->comm, ranks, backup, 3), HCCL_E_PARA, "3 ranks");
	hr_says(HcclCommWorkingDevNicSet(r->comm, ranks, NULL, 2), HCCL_E_PTR, "useBackup");
}

static void recovery(void **state)
{
	(void)state;
	hr_run(2, true, 1, suspend_rank);
	hr_run(2, true, 1, recover_rank);
	hr_run(3, false, 1, recover_rank);
	hr_run(2, false, 1, nic_rank);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		hr_test(config),
		hr_test(groups),
		hr_test(memory),
		hr_test(graph),
		hr_test_servers(graph_servers),
		hr_test(recovery),
	};

	hr_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
