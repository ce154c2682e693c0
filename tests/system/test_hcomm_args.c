// SPDX-License-Identifier: MIT
/* Channels and what they go between: wrong arguments of each function. */
#include "hcommtest.h"

/* ---- What is wrong ---------------------------------------------------------------------------------- */

static void wrong_ops(struct end *e)
{
	uint8_t *far = e->far + BYTES, *near = e->mem, host[64], *other = NULL;
	HcommBatchTransferDesc d = { .transType = (HcommTransferType)17 };
	const ThreadHandle th = e->th, no_th = 64;
	const ChannelHandle ch = e->ch, no_ch = 64;
	bool queue = path_of(ch) == HCOMM_QUEUE;

	if (e->rank) {
		meet(e);
		return;
	}
	acl_fails((aclError)HcommWriteOnThread(no_th, ch, far, near, 8), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommWriteOnThread(th, no_ch, far, near, 8), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommWriteOnThread(0, ch, far, near, 8), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommWriteOnThread(th, ch, NULL, near, 8), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommWriteOnThread(th, ch, far, NULL, 8), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommReadOnThread(th, ch, NULL, far, 8), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommReadOnThread(th, ch, near, NULL, 8), (aclError)HCCL_E_PTR);
	/* one byte too many, one before, and nowhere */
	acl_says((aclError)HcommWriteOnThread(th, ch, far, near, BYTES + 1), (aclError)HCCL_E_NOT_FOUND, "registered no memory");
	acl_fails((aclError)HcommReadOnThread(th, ch, near, e->far - 1, 8), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommReadNbi(ch, near, host, 8), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommWriteNbi(ch, far + BYTES - 7, near, 8), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommWriteOnThread(th, ch, far, near, UINT64_MAX), (aclError)HCCL_E_PARA);
	/* ours: a queue wants it registered */
	acl_ok((aclError)HcommMemAlloc((void **)&other, BYTES));
	acl_is(__FILE__, __LINE__, "not registered here", (aclError)HcommWriteOnThread(th, ch, far, other, 8),
	       (aclError)(queue ? HCCL_E_PARA : 0));
	acl_ok(aclrtSynchronizeStream(e->stream));
	acl_ok((aclError)HcommMemFree(other));
	/* notifies */
	acl_says((aclError)HcommChannelNotifyRecord(ch, NOTIFIES), (aclError)HCCL_E_PARA, "notify 8");
	acl_fails((aclError)HcommChannelNotifyRecordOnThread(th, ch, UINT32_MAX), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommWriteWithNotifyOnThread(th, ch, far, near, 8, NOTIFIES), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommWriteWithNotifyNbi(ch, far, near, 8, NOTIFIES), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommChannelNotifyWait(ch, NOTIFIES, 1), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommChannelNotifyWaitOnThread(th, ch, NOTIFIES, 1), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommThreadNotifyRecordOnThread(th, th, NOTIFIES), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommThreadNotifyRecordOnThread(th, no_th, 0), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommThreadNotifyWaitOnThread(th, NOTIFIES, 1), (aclError)HCCL_E_PARA);
	/* reductions */
	acl_fails((aclError)HcommWriteReduceOnThread(th, ch, far, near, 1, HCOMM_DATA_TYPE_FP64, HCOMM_REDUCE_SUM),
		  (aclError)HCCL_E_NOT_SUPPORT);
	acl_fails((aclError)HcommWriteReduceOnThread(th, ch, far, near, 1, HCOMM_DATA_TYPE_FP32, HCOMM_REDUCE_PROD),
		  (aclError)HCCL_E_NOT_SUPPORT);
	acl_fails((aclError)HcommReadReduceOnThread(th, ch, near, far, 1, HCOMM_DATA_TYPE_RESERVED, HCOMM_REDUCE_SUM),
		  (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommReadReduceOnThread(th, ch, near, far, 1, HCOMM_DATA_TYPE_FP32, HCOMM_REDUCE_RESERVED),
		  (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommReadReduceOnThread(th, ch, near + 1, far, 1, HCOMM_DATA_TYPE_FP32, HCOMM_REDUCE_SUM),
		  (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommLocalReduceOnThread(th, near, near + 4, UINT64_MAX, HCOMM_DATA_TYPE_FP32, HCOMM_REDUCE_SUM),
		  (aclError)HCCL_E_PARA);
	/* on this device */
	acl_fails((aclError)HcommLocalCopyOnThread(th, near, NULL, 8), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommLocalCopyOnThread(th, near, near + 4, 8), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommLocalCopyOnThread(th, near, near + BYTES, BYTES + 1), (aclError)HCCL_E_PARA);
	/* several */
	acl_fails((aclError)HcommBatchTransferOnThread(th, ch, &d, 1), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommBatchTransferOnThread(th, ch, &d, 0), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommBatchTransferOnThread(th, ch, NULL, 1), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommChannelFence(no_ch), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommChannelFenceOnThread(th, no_ch), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommFenceOnThread(no_th), (aclError)HCCL_E_NOT_FOUND);
	/* the endpoint is in use */
	acl_fails((aclError)HcommEndpointDestroy(e->ep), (aclError)HCCL_E_AGAIN);
	/* nothing of it has done any harm */
	acl_ok((aclError)HcommWriteOnThread(th, ch, far, near, 8));
	acl_ok((aclError)HcommWriteOnThread(th, ch, far, near, 0));
	acl_ok(aclrtSynchronizeStream(e->stream));
	meet(e);
}

static void wrong_arguments(void **state)
{
	(void)state;
	as_threads(wrong_ops, "mapped");
	as_processes(wrong_ops, "queue");
}

static void wrong_channels(EndpointHandle ep, const EndpointDesc *own)
{
	HcommChannelConfig c;
	HcommChannelDesc d;
	ChannelHandle ch, none = 64;
	int32_t status;

	d = channel_desc(own);
	acl_fails((aclError)HcommChannelCreate(NULL, COMM_ENGINE_CPU, &d, 1, &ch), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommChannelCreate(&d, COMM_ENGINE_CPU, &d, 1, &ch), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommChannelCreate(ep, COMM_ENGINE_CPU, NULL, 1, &ch), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommChannelCreate(ep, COMM_ENGINE_CPU, &d, 1, NULL), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommChannelCreate(ep, COMM_ENGINE_CPU, &d, 0, &ch), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommChannelCreate(ep, COMM_ENGINE_AIV, &d, 1, &ch), (aclError)HCCL_E_NOT_SUPPORT);
	acl_fails((aclError)HcommChannelCreate(ep, (CommEngine)44, &d, 1, &ch), (aclError)HCCL_E_PARA);
	d.header.magicWord = 1;
	acl_fails((aclError)HcommChannelCreate(ep, COMM_ENGINE_CPU, &d, 1, &ch), (aclError)HCCL_E_PARA);
	d = channel_desc(own);
	d.header.version = 99;
	acl_fails((aclError)HcommChannelCreate(ep, COMM_ENGINE_CPU, &d, 1, &ch), (aclError)HCCL_E_PARA);
	d = channel_desc(own);
	d.socket = &d;
	acl_fails((aclError)HcommChannelCreate(ep, COMM_ENGINE_CPU, &d, 1, &ch), (aclError)HCCL_E_NOT_SUPPORT);
	d = channel_desc(own);
	d.notifyNum = 1u << 20;
	acl_fails((aclError)HcommChannelCreate(ep, COMM_ENGINE_CPU, &d, 1, &ch), (aclError)HCCL_E_PARA);
	d = channel_desc(own);
	d.exchangeAllMems = false;
	d.memHandleNum = 1;
	acl_fails((aclError)HcommChannelCreate(ep, COMM_ENGINE_CPU, &d, 1, &ch), (aclError)HCCL_E_PTR);
	d = channel_desc(own);
	d.ubAttr.sqDepth = 1u << 20;
	acl_fails((aclError)HcommChannelCreate(ep, COMM_ENGINE_CPU, &d, 1, &ch), (aclError)HCCL_E_PARA);
	setenv("NPUEMU_TRANSPORT", "qeue", 1);
	d = channel_desc(own);
	acl_says((aclError)HcommChannelCreate(ep, COMM_ENGINE_CPU, &d, 1, &ch), (aclError)HCCL_E_PARA, "qeue");
	unsetenv("NPUEMU_TRANSPORT");
	acl_fails((aclError)HcommChannelGetStatus(&none, 1, &status), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommChannelGetStatus(NULL, 1, &status), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommChannelDestroy(&none, 1), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommChannelDestroy(NULL, 1), (aclError)HCCL_E_PTR);
	/* alone it is not ready, and can be destroyed all the same */
	acl_ok((aclError)HcommChannelConfigCreate(&c));
	acl_ok((aclError)HcommChannelConfigSetInt(c, HCOMM_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE, 1));
	acl_fails((aclError)HcommChannelConfigSetInt(c, HCOMM_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE, 2), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommChannelConfigSetInt(c, HCOMM_CHANNEL_CONFIG_TYPE_INVALID, 1), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommChannelConfigCreate(NULL), (aclError)HCCL_E_PTR);
	acl_ok((aclError)HcommChannelCreateWithConfig(ep, COMM_ENGINE_CPU, &d, 1, c, &ch));
	acl_ok((aclError)HcommChannelConfigDestroy(c));
	acl_fails((aclError)HcommChannelConfigDestroy(c), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommChannelCreateWithConfig(ep, COMM_ENGINE_CPU, &d, 1, c, &ch), (aclError)HCCL_E_NOT_FOUND);
	acl_ok((aclError)HcommChannelGetStatus(&ch, 1, &status));
	sys_eq(status, HCCL_E_AGAIN);
	acl_fails((aclError)HcommChannelNotifyRecord(ch, 0), (aclError)HCCL_E_AGAIN);
	acl_ok((aclError)HcommChannelDestroy(&ch, 1));
	acl_fails((aclError)HcommChannelDestroy(&ch, 1), (aclError)HCCL_E_NOT_FOUND);
}

static void wrong_memory(EndpointHandle ep)
{
	CommMem mem = { .type = COMM_MEM_TYPE_DEVICE, .size = BYTES }, out;
	uint32_t len, i;
	HcommMemHandle h;
	void *desc;
	uint8_t copy[256];

	acl_fails((aclError)HcommMemReg(ep, NULL, NULL, &h), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommMemReg(ep, NULL, &mem, &h), (aclError)HCCL_E_PTR);
	acl_ok((aclError)HcommMemAlloc(&mem.addr, BYTES));
	acl_fails((aclError)HcommMemReg(ep, NULL, &mem, NULL), (aclError)HCCL_E_PTR);
	mem.size = BYTES * 64;
	acl_fails((aclError)HcommMemReg(ep, NULL, &mem, &h), (aclError)HCCL_E_PARA);
	mem.size = 0;
	acl_fails((aclError)HcommMemReg(ep, NULL, &mem, &h), (aclError)HCCL_E_PARA);
	mem.size = BYTES;
	mem.type = COMM_MEM_TYPE_HOST;
	acl_says((aclError)HcommMemReg(ep, NULL, &mem, &h), (aclError)HCCL_E_PARA, "device memory");
	mem.type = (CommMemType)5;
	acl_fails((aclError)HcommMemReg(ep, NULL, &mem, &h), (aclError)HCCL_E_PARA);
	mem.type = COMM_MEM_TYPE_DEVICE;
	acl_ok((aclError)HcommMemReg(ep, NULL, &mem, &h));
	acl_fails((aclError)HcommMemExport(ep, &mem, &desc, &len), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommMemExport(ep, NULL, &desc, &len), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommMemExport(ep, h, NULL, &len), (aclError)HCCL_E_PTR);
	acl_ok((aclError)HcommMemExport(ep, h, &desc, &len));
	sys_true(len <= sizeof(copy), "%u bytes", len);
	acl_fails((aclError)HcommMemImport(ep, NULL, len, &out), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommMemImport(ep, desc, len - 1, &out), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommMemImport(ep, desc, len, NULL), (aclError)HCCL_E_PTR);
	for (i = 0; i < len * 8; i += 7) {
		memcpy(copy, desc, len);
		copy[i / 8] ^= (uint8_t)(1 << i % 8);
		acl_fails((aclError)HcommMemImport(ep, copy, len, &out), (aclError)HCCL_E_PARA);
	}
	acl_fails((aclError)HcommMemUnimport(ep, desc, len), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommEndpointDestroy(ep), (aclError)HCCL_E_AGAIN);
	memcpy(copy, desc, len);
	acl_ok((aclError)HcommMemUnreg(ep, h));
	acl_fails((aclError)HcommMemUnreg(ep, h), (aclError)HCCL_E_NOT_FOUND);
	/* it stands for nothing any more */
	acl_fails((aclError)HcommMemImport(ep, copy, len, &out), (aclError)HCCL_E_NOT_FOUND);
	acl_ok((aclError)HcommMemFree(mem.addr));
	acl_fails((aclError)HcommMemFree(NULL), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommMemAlloc(NULL, 8), (aclError)HCCL_E_PTR);
}

static void wrong_resources(void **state)
{
	EndpointDesc own, bad;
	uint32_t n = 1, notifies[1] = { 1u << 20 };
	EndpointHandle ep;
	ThreadHandle th;
	bool can = true;
	void *info;

	(void)state;
	acl_fails((aclError)HcommEndpointGetDescNum(0, NULL), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommEndpointGetDescNum(77, &n), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommEndpointGetDescs(0, &n, &own), (aclError)HCCL_E_PARA);
	acl_ok((aclError)HcommEndpointGetDescNum(0, &n));
	sys_true(n >= 2, "%u endpoints", n);
	own = describe(0, COMM_PROTOCOL_UB_CTP);
	acl_ok((aclError)HcommEndpointCheckFeature(HCOMM_ENDPOINT_FEATURE_NDA, &own, &can));
	sys_true(!can, "NDA");
	acl_fails((aclError)HcommEndpointCheckFeature((HcommEndpointFeatureType)9, &own, &can), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommEndpointCreate(NULL, &ep), (aclError)HCCL_E_PTR);
	bad = describe(1, COMM_PROTOCOL_UB_CTP);
	acl_says((aclError)HcommEndpointCreate(&bad, &ep), (aclError)HCCL_E_PARA, "aclrtSetDevice");
	bad = own;
	bad.protocol = COMM_PROTOCOL_HCCS;
	acl_says((aclError)HcommEndpointCreate(&bad, &ep), (aclError)HCCL_E_NOT_SUPPORT, "UB_CTP");
	bad.protocol = COMM_PROTOCOL_ROCE;
	acl_fails((aclError)HcommEndpointCreate(&bad, &ep), (aclError)HCCL_E_NOT_SUPPORT);
	EndpointDescInit(&bad, 1);
	acl_fails((aclError)HcommEndpointCreate(&bad, &ep), (aclError)HCCL_E_PARA);
	bad = own;
	bad.commAddr.type = (CommAddrType)8;
	acl_fails((aclError)HcommEndpointCreate(&bad, &ep), (aclError)HCCL_E_PARA);
	bad = own;
	bad.loc.locType = (EndpointLocType)8;
	acl_fails((aclError)HcommEndpointCreate(&bad, &ep), (aclError)HCCL_E_PARA);
	acl_ok((aclError)HcommEndpointCreate(&own, &ep));
	acl_ok((aclError)HcommEndpointGetListenPort(ep, &n));
	sys_true(n && n < 65536, "port %u", n);
	acl_fails((aclError)HcommEndpointGetListenPort(ep, NULL), (aclError)HCCL_E_PTR);
	wrong_channels(ep, &own);
	wrong_memory(ep);
	acl_ok((aclError)HcommEndpointDestroy(ep));
	acl_fails((aclError)HcommEndpointDestroy(ep), (aclError)HCCL_E_NOT_FOUND);
	acl_fails((aclError)HcommThreadAlloc(COMM_ENGINE_CPU_TS, 1, notifies, &th), (aclError)HCCL_E_PARA);
	notifies[0] = 0;
	acl_fails((aclError)HcommThreadAlloc(COMM_ENGINE_CPU_TS, 0, notifies, &th), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommThreadAlloc(COMM_ENGINE_CPU_TS, 1, NULL, &th), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommThreadAlloc(COMM_ENGINE_CCU, 1, notifies, &th), (aclError)HCCL_E_NOT_SUPPORT);
	acl_fails((aclError)HcommThreadAlloc((CommEngine)9, 1, notifies, &th), (aclError)HCCL_E_PARA);
	acl_ok((aclError)HcommThreadAlloc(COMM_ENGINE_CPU_TS, 1, notifies, &th));
	acl_fails((aclError)HcommThreadResGetInfo(th, THREAD_RES_TYPE_INVALID, 8, &info), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommThreadResGetInfo(th, THREAD_RES_TYPE_STREAM, 4, &info), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommThreadResGetInfo(th, THREAD_RES_TYPE_STREAM, 8, NULL), (aclError)HCCL_E_PTR);
	acl_ok((aclError)HcommThreadFree(&th, 1));
	acl_fails((aclError)HcommThreadFree(NULL, 1), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommSetNotifyWaitTimeOut(-1), (aclError)HCCL_E_PARA);
	acl_fails((aclError)HcommThreadResAcquireTimeOut(-1), (aclError)HCCL_E_PARA);
	acl_ok((aclError)HcommThreadResAcquireTimeOut(2));
	acl_fails((aclError)HcommBatchModeStart(NULL), (aclError)HCCL_E_PTR);
	acl_fails((aclError)HcommBatchModeEnd("x"), (aclError)HCCL_E_PARA);
}

/* The peer's memory is gone, and there is nothing else here of that endpoint of its own. */
static void too_late(struct end *e)
{
	EndpointDesc own = describe(e->rank, COMM_PROTOCOL_UB_MEM);
	CommMem mem = { .type = COMM_MEM_TYPE_DEVICE, .addr = e->mem, .size = BYTES }, out;
	uint8_t theirs[256];
	EndpointHandle ep;
	HcommMemHandle h;
	uint32_t len;
	void *desc;

	acl_ok((aclError)HcommEndpointCreate(&own, &ep));
	acl_ok((aclError)HcommMemReg(ep, NULL, &mem, &h));
	acl_ok((aclError)HcommMemExport(ep, h, &desc, &len));
	sys_true(len <= sizeof(theirs), "%u bytes", len);
	exchange(e, desc, theirs, len);
	acl_ok((aclError)HcommMemUnreg(ep, h));
	meet(e);
	acl_says((aclError)HcommMemImport(ep, theirs, len, &out), (aclError)HCCL_E_NOT_FOUND, "has unregistered");
	meet(e);
	acl_ok((aclError)HcommEndpointDestroy(ep));
}

static void unregistered_before(void **state)
{
	(void)state;
	as_processes(too_late, "mapped");
	as_threads(too_late, "mapped");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		acl_test(wrong_arguments), acl_test(wrong_resources), acl_test(unregistered_before),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
