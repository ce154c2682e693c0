// SPDX-License-Identifier: MIT
/*
 * What of HCCL needs no communicator: results in words, messages, configurations and
 * descriptions as they are prepared, functions that are not there.
 */
#include <hccl/hccl.h>
#include <hccl/hccl_rank_graph.h>
#include <hccl/hccl_team.h>
#include <hcomm_primitives.h>
#include <limits.h>

#include "acltest.h"
#include "comm.h"

/* ---- Results ------------------------------------------------------------- */

static const char *said(int code)
{
	const char *s = HcclGetErrorString((HcclResult)code);

	sys_true(s && *s, "code %d: no words", code);
	return s;
}

static void error_strings(void **state)
{
	static const int beyond[] = { HCCL_E_RESERVED, HCCL_E_RESERVED + 1, INT_MAX, -1, INT_MIN };
	static const int holes[] = { HCCL_E_OOM + 1, 100, HCCL_E_IN_STATUS - 1 };
	int a, b;

	(void)state;
	assert_string_equal(said(HCCL_SUCCESS), "no error");
	assert_string_equal(said(HCCL_E_PARA), "parameter error");
	assert_string_equal(said(HCCL_E_PTR), "empty pointer");
	assert_string_equal(said(HCCL_E_TIMEOUT), "timeout");
	/* each code has words of its own */
	for (a = HCCL_SUCCESS; a <= HCCL_E_OOM; a++) {
		sys_true(strncmp(said(a), "unknown", 7), "code %d: %s", a, said(a));
		sys_true(strcmp(said(a), said(HCCL_E_IN_STATUS)), "code %d: %s", a, said(a));
		for (b = HCCL_SUCCESS; b < a; b++)
			sys_true(strcmp(said(a), said(b)), "codes %d, %d: %s", a, b, said(a));
	}
	sys_true(strncmp(said(HCCL_E_IN_STATUS), "unknown", 7), "1041 is unknown");
	for (a = 0; a < (int)(sizeof(holes) / sizeof(*holes)); a++)
		assert_string_equal(said(holes[a]), "unknown err");
	for (a = 0; a < (int)(sizeof(beyond) / sizeof(*beyond)); a++)
		assert_string_equal(said(beyond[a]), "unknown error");
	assert_ptr_equal(said(HCCL_E_OOM), said(HCCL_E_OOM));
}

/* The thread's message begins with @family and says @word. */
static void message_is(const char *family, const char *word)
{
	const char *m = aclGetRecentErrMsg();

	sys_true(m && !strncmp(m, family, strlen(family)) && strstr(m, word),
		 "neither %s nor \"%s\" in: %s", family, word, m ? m : "no message");
	sys_true(!aclGetRecentErrMsg(), "the message is there twice");
}

static void messages(void **state)
{
	char big[4096];

	(void)state;
	aclGetRecentErrMsg();
	sys_eq(hccl_fail(HCCL_E_PARA, "EI0003", "rank %d of %d", 8, 4), HCCL_E_PARA);
	message_is("EI0003: ", "(1) rank 8 of 4");
	sys_eq(hccl_fail(HCCL_E_TIMEOUT, "EI0015", "ranks 1, 3 are missing"), HCCL_E_TIMEOUT);
	message_is("EI0015: ", "(9) ranks 1, 3 are missing");
	hccl_fail(HCCL_E_OOM, "EI0011", "no room");
	message_is("EI0011: ", "no room");
	hccl_fail(HCCL_E_INTERNAL, "EI9999", "odd");
	message_is("EI9999: ", "odd");
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	hccl_fail(HCCL_E_TCP_CONNECT, "EI0006", "%s", big);
	message_is("EI0006: ", "xxxx");
}

/* It says so, in a code and in words, and is no error of the runtime's. */
static void unsupported(void **state)
{
	(void)state;
	aclGetRecentErrMsg();
	sys_eq(HcclAicpuKernelLaunch(NULL, NULL, NULL, 0, NULL, NULL), HCCL_E_NOT_SUPPORT);
	message_is("EI0003: ", "HcclAicpuKernelLaunch is not supported");
	sys_eq(HcommAicpuTsTaskCacheClear("tag"), HCCL_E_NOT_SUPPORT);
	message_is("EI0003: ", "HcommAicpuTsTaskCacheClear is not supported");
	sys_eq(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
}

/* ---- Configurations ------------------------------------------------------ */

static void capability(void **state)
{
	(void)state;
	sys_eq(HcclGetCommConfigCapability(), 12);
	sys_true(HcclGetCommConfigCapability() > HCCL_COMM_CONFIG_BUFFER_NAME, "too small");
}

static uint64_t number_at(const void *p, size_t at, size_t bytes)
{
	uint64_t v = 0;

	memcpy(&v, (const char *)p + at, bytes);
	return v;
}

static void comm_config(void **state)
{
	HcclCommConfig c, again;

	(void)state;
	memset(&c, 0x5a, sizeof(c));
	memset(&again, 0xa5, sizeof(again));
	HcclCommConfigInit(&c);
	HcclCommConfigInit(&again);
	assert_memory_equal(&c, &again, sizeof(c));	/* every byte is set */
	HcclCommConfigInit(NULL);

	/* the head: size, magic, version, nothing */
	sys_eq(number_at(&c, 0, 8), 2248);
	sys_eq(number_at(&c, 8, 4), 0xf0f0f0f0);
	sys_eq(number_at(&c, 12, 4), 11);
	sys_eq(number_at(&c, 16, 8), 0);

	sys_eq(number_at(&c, 24, 4), 0xffffffff);	/* buffer size */
	sys_eq(number_at(&c, 28, 4), 0xffffffff);	/* deterministic */
	sys_eq(c.hcclCommName[0], 0);
	sys_eq(c.hcclUdi[0], 0);
	sys_eq(number_at(&c, 288, 4), 0);		/* expansion mode */
	sys_eq(number_at(&c, 292, 4), 0xffffffff);	/* traffic class */
	sys_eq(number_at(&c, 296, 4), 0xffffffff);	/* service level */
	sys_eq(c.hcclWorldRankID, 0);
	sys_eq(c.hcclJobID, 0);
	sys_eq(c.aclGraphZeroCopyEnable, 0);
	sys_eq(number_at(&c, 316, 4), 0xffffffff);	/* timeout */
	sys_true(c.hcclExecTimeOut == HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET, "%d", c.hcclExecTimeOut);
	sys_eq(c.hcclAlgo[0], 0);
	sys_eq(c.hcclRetryEnable[0], 0);
	sys_eq(c.hcclRetryParams[0], 0);
	sys_eq(c.hcclBufferName[0], 0);
	sys_eq(number_at(&c, 2228, 4), 0xffffffff);	/* qos */
	sys_eq(number_at(&c, 2232, 8), 16);		/* symmetric windows, GB */
	sys_eq(number_at(&c, 2240, 4), 0xffffffff);	/* queue depth */
}

/* ---- Descriptions -------------------------------------------------------- */

static void head_is(const CommAbiHeader *h, uint32_t version, uint32_t magic, size_t size)
{
	sys_eq(h->version, version);
	sys_eq(h->magicWord, magic);
	sys_eq(h->size, size);
	sys_eq(h->reserved, 0);
}

static void endpoint_is_unset(const EndpointDesc *e)
{
	sys_true(e->protocol == COMM_PROTOCOL_RESERVED, "protocol %d", (int)e->protocol);
	sys_true(e->commAddr.type == COMM_ADDR_TYPE_RESERVED, "type %d", (int)e->commAddr.type);
	sys_true(e->loc.locType == ENDPOINT_LOC_TYPE_RESERVED, "place %d", (int)e->loc.locType);
}

static void channel_descriptions(void **state)
{
	HcommChannelDesc m[2];
	HcclChannelDesc c[2];
	int i;

	(void)state;
	memset(m, 0, sizeof(m));
	memset(c, 0, sizeof(c));
	sys_eq(HcommChannelDescInit(m, 2), 0);
	sys_eq(HcclChannelDescInit(c, 2), HCCL_SUCCESS);
	for (i = 0; i < 2; i++) {
		head_is(&m[i].header, 4, 0x0fcf0f0f, 360);
		endpoint_is_unset(&m[i].remoteEndpoint);
		sys_true(!m[i].notifyNum && !m[i].exchangeAllMems && !m[i].memHandles &&
			 !m[i].memHandleNum && !m[i].socket && !m[i].port, "%d: not empty", i);
		sys_true(m[i].role == HCOMM_SOCKET_ROLE_RESERVED, "role %d", (int)m[i].role);
		sys_eq(m[i].roceAttr.queueNum, 0xffffffff);
		sys_eq(m[i].roceAttr.sl, 0xff);
		sys_true(!m[i].roceAttr.srcPortList && !m[i].channelName, "%d: wild pointers", i);
		sys_eq(m[i].qos, 0xffffffff);

		head_is(&c[i].header, 1, 0x0f0f0f0f, 496);
		endpoint_is_unset(&c[i].localEndpoint);
		endpoint_is_unset(&c[i].remoteEndpoint);
		sys_eq(c[i].remoteRank, 0xffffffff);
		sys_true(c[i].channelProtocol == COMM_PROTOCOL_RESERVED, "a protocol");
		sys_true(!c[i].notifyNum && !c[i].memHandles && !c[i].memHandleNum, "not empty");
		sys_eq(c[i].ubMemAttr.pathMode, 0xff);
	}
	sys_eq(HcommChannelDescInit(NULL, 1), HCCL_E_PTR);
	sys_eq(HcclChannelDescInit(NULL, 1), HCCL_E_PTR);
}

static void other_descriptions(void **state)
{
	ThreadConfig t[2] = { { .notifyNumPerThread = 7 }, { .notifyNumPerThread = 7 } };
	HcclTeamCreateChannelsDesc channels;
	HcclTeamCreateDesc team;
	HcclKernelLaunchCfg launch;
	EndpointDesc e = { .protocol = COMM_PROTOCOL_HCCS };
	CommLink links[2];
	HcclOpDesc op;
	int i;

	(void)state;
	sys_eq(EndpointDescInit(&e, 1), 0);
	endpoint_is_unset(&e);
	sys_eq(EndpointDescInit(NULL, 1), HCCL_E_PTR);
	sys_eq(ThreadConfigInit(t, 2), 0);
	sys_eq(CommLinkInit(links, 2), HCCL_SUCCESS);
	for (i = 0; i < 2; i++) {
		head_is(&t[i].header, 1, 0x0f0f0f2f, 32);
		sys_eq(t[i].notifyNumPerThread, 0);
		head_is(&links[i].header, 1, 0x0f0e0f0f, 464);
		endpoint_is_unset(&links[i].srcEndpointDesc);
		endpoint_is_unset(&links[i].dstEndpointDesc);
		sys_true(links[i].linkAttr.linkProtocol == COMM_PROTOCOL_RESERVED, "a protocol");
		sys_eq(links[i].linkAttr.hop, 1);
	}
	sys_eq(HcclOpDescInit(&op), HCCL_SUCCESS);
	head_is(&op.header, 1, 0x0f0f0f0f, 360);
	sys_eq(HcclKernelLaunchCfgInit(&launch), HCCL_SUCCESS);
	head_is(&launch.header, 1, 0x0f0f0f0f, 128);
	sys_eq(HcclTeamCreateDescInit(&team), HCCL_SUCCESS);
	head_is(&team.header, 1, 0x0fcf0f14, 88);
	sys_true(!team.rankIds && !team.rankNum && team.protocol == COMM_PROTOCOL_RESERVED &&
		 !team.requirement.barrierCount && !team.reserved[3], "a team of somebody");
	sys_eq(HcclTeamCreateChannelsDescInit(&channels), HCCL_SUCCESS);
	head_is(&channels.header, 1, 0x0fcf0f15, 48);
	sys_true(channels.engine == COMM_ENGINE_RESERVED && !channels.notifyNum &&
		 channels.protocol == COMM_PROTOCOL_RESERVED && !channels.channelCnt, "channels");

	sys_eq(ThreadConfigInit(NULL, 1), HCCL_E_PTR);
	sys_eq(CommLinkInit(NULL, 1), HCCL_E_PTR);
	sys_eq(HcclOpDescInit(NULL), HCCL_E_PTR);
	sys_eq(HcclKernelLaunchCfgInit(NULL), HCCL_E_PTR);
	sys_eq(HcclTeamCreateDescInit(NULL), HCCL_E_PTR);
	sys_eq(HcclTeamCreateChannelsDescInit(NULL), HCCL_E_PTR);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(error_strings),
		cmocka_unit_test(messages),
		cmocka_unit_test(unsupported),
		cmocka_unit_test(capability),
		cmocka_unit_test(comm_config),
		cmocka_unit_test(channel_descriptions),
		cmocka_unit_test(other_descriptions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
