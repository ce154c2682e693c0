/* SPDX-License-Identifier: MIT */
/*
 * Two ranks with a channel between them, as threads of a process or as processes, over
 * either path; what a test has them do is a function that both run.
 */
#ifndef TESTS_COMMON_HCOMMTEST_H
#define TESTS_COMMON_HCOMMTEST_H

#include <hccl/hccl_types.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "acltest.h"
#include "transport.h"

#define BYTES		(256u << 10)
#define NOTIFIES	8u

/* ---- Two ends ------------------------------------------------------------------------ */

struct end {
	int rank, fd;
	bool here;		/* both ranks are of this process */
	EndpointHandle ep;
	ChannelHandle ch;
	ThreadHandle th;
	aclrtStream stream;
	HcommMemHandle mem_handle;
	uint8_t *mem, *far;	/* half to send from, half to be sent to */
};

typedef void (*scenario_fn)(struct end *e);

struct task {
	scenario_fn fn;
	int rank, fd;
	bool bare;		/* only an endpoint, and the peer's description */
	char path[8];
};

static inline int32_t status_of(ChannelHandle ch)
{
	int64_t deadline = sys_deadline();
	int32_t status;

	do {
		acl_ok((aclError)HcommChannelGetStatus(&ch, 1, &status));
	} while (status == HCCL_E_AGAIN && sys_retry(deadline));
	return status;
}

static inline EndpointDesc describe(int device, CommProtocol protocol)
{
	EndpointDesc d[8];
	uint32_t n = 8, i;

	acl_ok((aclError)HcommEndpointGetDescs(device, &n, d));
	for (i = 0; i < n; i++)
		if (d[i].protocol == protocol)
			return d[i];
	sys_fail(__FILE__, __LINE__, "device %d has no endpoint of protocol %d", device, protocol);
}

/* What both tell each other. */
static inline void exchange(struct end *e, const void *mine, void *theirs, size_t n)
{
	sys_put(e->fd, mine, n);
	sys_get(e->fd, theirs, n);
}

static inline void meet(struct end *e)
{
	char a = 'm', b;

	exchange(e, &a, &b, 1);
}

static inline HcommChannelDesc channel_desc(const EndpointDesc *remote)
{
	HcommChannelDesc d;

	HcommChannelDescInit(&d, 1);
	d.remoteEndpoint = *remote;
	d.notifyNum = NOTIFIES;
	d.exchangeAllMems = true;
	return d;
}

static inline void begin_with(struct end *e, CommProtocol protocol)
{
	EndpointDesc own = describe(e->rank, protocol), remote;
	CommMem mem = { .type = COMM_MEM_TYPE_DEVICE, .size = 2 * BYTES };
	uint32_t notifies = NOTIFIES;
	HcommChannelDesc d;

	acl_ok((aclError)HcommEndpointCreate(&own, &e->ep));
	acl_ok((aclError)HcommMemAlloc((void **)&e->mem, 2 * BYTES));
	mem.addr = e->mem;
	acl_ok((aclError)HcommMemReg(e->ep, "mem", &mem, &e->mem_handle));
	exchange(e, &own, &remote, sizeof(own));
	exchange(e, &e->mem, &e->far, sizeof(e->mem));
	d = channel_desc(&remote);
	d.role = e->rank ? HCOMM_SOCKET_ROLE_CLIENT : HCOMM_SOCKET_ROLE_SERVER;
	d.channelName = "test";
	acl_ok((aclError)HcommChannelCreate(e->ep, COMM_ENGINE_CPU_TS, &d, 1, &e->ch));
	sys_eq(status_of(e->ch), 0);
	acl_ok((aclError)HcommThreadAlloc(COMM_ENGINE_CPU_TS, 1, &notifies, &e->th));
	acl_ok((aclError)HcommThreadResGetInfo(e->th, THREAD_RES_TYPE_STREAM, sizeof(e->stream), &e->stream));
}

static inline void end_all(struct end *e)
{
	meet(e);
	acl_ok((aclError)HcommThreadFree(&e->th, 1));
	acl_ok((aclError)HcommChannelDestroy(&e->ch, 1));
	acl_ok((aclError)HcommMemUnreg(e->ep, e->mem_handle));
	acl_ok((aclError)HcommEndpointDestroy(e->ep));
	acl_ok((aclError)HcommMemFree(e->mem));
}

static inline enum hcomm_path path_of(ChannelHandle ch)
{
	return ((struct hcomm_channel *)(uintptr_t)ch)->path;
}

static inline void run_end(const struct task *t, bool here)
{
	struct end e = { .rank = t->rank, .fd = t->fd, .here = here };

	acl_ok(aclrtSetDevice(t->rank));
	if (t->bare) {
		t->fn(&e);
		return;
	}
	begin_with(&e, COMM_PROTOCOL_UB_CTP);
	if (t->path[0])
		sys_eq(path_of(e.ch), t->path[0] == 'q' ? HCOMM_QUEUE : HCOMM_MAPPED);
	t->fn(&e);
	end_all(&e);
}

static inline void set_path(const char *path)
{
	if (path[0])
		setenv("NPUEMU_TRANSPORT", path, 1);
	else
		unsetenv("NPUEMU_TRANSPORT");
}

static inline void child(int fd, const void *arg)
{
	struct task t = *(const struct task *)arg;

	t.fd = fd;
	set_path(t.path);
	acl_ok(aclInit(NULL));
	run_end(&t, false);
	acl_ok(aclFinalize());
}

static inline void *thread(void *arg)
{
	run_end(arg, true);
	return NULL;
}

static inline void as_threads(scenario_fn fn, const char *path)
{
	struct task t[2] = { { .fn = fn, .rank = 0 }, { .fn = fn, .rank = 1 } };
	pthread_t other;
	int fd[2], i;

	set_path(path);
	sys_rc(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	for (i = 0; i < 2; i++) {
		t[i].fd = fd[i];
		strcpy(t[i].path, path);
	}
	sys_eq(pthread_create(&other, NULL, thread, &t[1]), 0);
	run_end(&t[0], true);
	pthread_join(other, NULL);
	close(fd[0]);
	close(fd[1]);
	unsetenv("NPUEMU_TRANSPORT");
}

static inline void as_processes(scenario_fn fn, const char *path)
{
	struct task t = { .fn = fn, .rank = 1 };
	struct sys_child c;

	set_path(path);
	strcpy(t.path, path);
	sys_spawn(&c, child, &t, sizeof(t));
	t.rank = 0;
	t.fd = c.fd;
	run_end(&t, false);
	sys_join(&c);
	unsetenv("NPUEMU_TRANSPORT");
}

/* Both ways, both paths. */
static inline void everywhere(scenario_fn fn)
{
	as_threads(fn, "mapped");
	as_threads(fn, "queue");
	as_processes(fn, "mapped");
	as_processes(fn, "queue");
}

/* ---- Bytes ------------------------------------------------------------------------------- */

static inline void upload(void *dst, const void *src, size_t n)
{
	acl_ok(aclrtMemcpy(dst, n, src, n, ACL_MEMCPY_HOST_TO_DEVICE));
}

static inline void download(void *dst, const void *src, size_t n)
{
	acl_ok(aclrtMemcpy(dst, n, src, n, ACL_MEMCPY_DEVICE_TO_HOST));
}

/* The half that is sent to holds @seed's bytes at @at, and what it was filled with around them. */
static inline void landed(struct end *e, size_t at, size_t n, uint64_t seed)
{
	uint8_t *got = malloc(BYTES);

	download(got, e->mem + BYTES, BYTES);
	sys_is_byte("before", got, at, 0x5a);
	sys_is_filled("what was sent", got + at, n, seed);
	sys_is_byte("after", got + at + n, BYTES - at - n, 0x5a);
	free(got);
}

static inline void prepare(struct end *e, size_t at, size_t n, uint64_t seed)
{
	uint8_t *buf = malloc(BYTES);

	memset(buf, 0x5a, BYTES);
	upload(e->mem + BYTES, buf, BYTES);
	memset(buf, 0xa5, BYTES);
	sys_fill(buf + at, n, seed);
	upload(e->mem, buf, BYTES);
	free(buf);
}

/* ---- There and back ------------------------------------------------------------------------ */

#define ROUNDS	(sys_slow() ? 60 : 300)

/* The other's number is there, and no older one. */
static inline void hear(struct end *e, int i)
{
	uint64_t v = 0;

	acl_ok((aclError)HcommChannelNotifyWaitOnThread(e->th, e->ch, 0, 30));
	acl_ok(aclrtMemcpyAsync(&v, 8, e->mem + BYTES, 8, ACL_MEMCPY_DEVICE_TO_HOST, e->stream));
	acl_ok(aclrtSynchronizeStream(e->stream));
	sys_eq(v, (uint64_t)i << 8 | !e->rank);
}

/* There and back. */
static inline void ping(struct end *e)
{
	uint64_t *near = (uint64_t *)(void *)e->mem, v;
	uint8_t *dst = e->far + BYTES;
	int i;

	for (i = 1; i <= ROUNDS; i++) {
		v = (uint64_t)i << 8 | (uint64_t)e->rank;
		if (e->rank)
			hear(e, i);
		acl_ok(aclrtMemcpyAsync(near, 8, &v, 8, ACL_MEMCPY_HOST_TO_DEVICE, e->stream));
		/* large enough to be on its way for a while */
		acl_ok((aclError)HcommWriteWithNotifyOnThread(e->th, e->ch, dst, e->mem, i % 16 ? 8 : BYTES, 0));
		if (!e->rank)
			hear(e, i);
		acl_ok(aclrtSynchronizeStream(e->stream));
	}
}

#endif
