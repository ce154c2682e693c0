// SPDX-License-Identifier: MIT
/*
 * Device memory, notifies and events of other processes, by their keys: bytes, order and
 * times are right, who may not does not get them, and it holds when either side dies.
 */
#include <acl/acl.h>
#include <string.h>
#include <sys/socket.h>

#include "acltest.h"
#include "sys.h"

#define KEY	65
#define BYTES	(1ul << 20)

static const uint64_t any = ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION;

static uint8_t *device_memory(size_t bytes)
{
	void *p = NULL;

	acl_ok(aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	return p;
}

static aclrtStream stream(void)
{
	aclrtStream s;

	acl_ok(aclrtCreateStream(&s));
	return s;
}

static void child_begin(int32_t device)
{
	acl_ok(aclInit(NULL));
	acl_ok(aclrtSetDevice(device));
}

/* ---- Memory -------------------------------------------------------------------- */

struct order {
	char key[KEY];
	int32_t device;
	uint32_t peer;		/* import with ENABLE_PEER_ACCESS */
	uint64_t bytes;
};

/* Seed 1 becomes seed 2, by engines. */
static void child_use(int fd, const void *arg)
{
	static uint8_t host[BYTES];
	const struct order *o = arg;
	uint8_t *own, *p = NULL, *again = NULL;
	aclrtPtrAttributes attr;
	aclrtStream s;

	child_begin(o->device);
	own = device_memory(BYTES);
	s = stream();
	acl_ok(aclrtIpcMemImportByKey((void **)&p, o->key, o->peer));
	acl_ok(aclrtIpcMemImportByKey((void **)&again, o->key, o->peer));
	sys_true(p == again, "%p and %p", (void *)p, (void *)again);
	acl_ok(aclrtPointerGetAttributes(p, &attr));
	sys_eq(attr.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
	sys_eq(attr.location.id, 0);
	if (o->device && !o->peer) {
		acl_fails(aclrtMemcpyAsync(own, BYTES, p, o->bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, s),
			  ACL_ERROR_RT_PARAM_INVALID);
		acl_ok(aclrtDeviceEnablePeerAccess(0, 0));
	}
	acl_ok(aclrtMemcpyAsync(own, BYTES, p, o->bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, s));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtMemcpy(host, BYTES, own, o->bytes, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_is_filled("what the exporter wrote", host, o->bytes, 1);
	sys_fill(host, o->bytes, 2);
	acl_ok(aclrtMemcpy(own, BYTES, host, o->bytes, ACL_MEMCPY_HOST_TO_DEVICE));
	acl_ok(aclrtMemcpyAsync(p, o->bytes, own, o->bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, s));
	acl_ok(aclrtSynchronizeStream(s));
	acl_fails(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
	/* opened twice, closed twice */
	acl_ok(aclrtIpcMemClose(o->key));
	acl_ok(aclrtMemset(p, 1, p[0], 1));
	acl_ok(aclrtIpcMemClose(o->key));
	acl_fails(aclrtIpcMemClose(o->key), ACL_ERROR_RT_INVALID_HANDLE);
	acl_fails(aclrtMemset(p, 1, 1, 1), ACL_ERROR_RT_PARAM_INVALID);
	sys_go(fd);
	acl_ok(aclFinalize());
}

/* All of a buffer, and a part in its middle; on the same device and on another. */
static void memory(void **state)
{
	static const struct {
		uint64_t at, bytes;
		int32_t device;
		uint32_t peer;
	} list[] = {
		{ 0, BYTES, 0, 0 }, { 0, BYTES, 1, 0 }, { 0, BYTES, 1, 1 }, { 12345, 70001, 0, 1 }, { BYTES - 64, 64, 1, 1 },
	};
	uint8_t *p = device_memory(BYTES);
	struct sys_child c;
	struct order o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		memset(&o, 'x', sizeof(o));
		o.device = list[i].device;
		o.peer = list[i].peer;
		o.bytes = list[i].bytes;
		acl_ok(aclrtMemset(p, BYTES, 0x99, BYTES));
		sys_fill(p + list[i].at, list[i].bytes, 1);
		acl_ok(aclrtIpcMemGetExportKey(p + list[i].at, list[i].bytes, o.key, KEY, any));
		sys_true(memchr(o.key, 0, KEY), "the key has no end");
		sys_spawn(&c, child_use, &o, sizeof(o));
		sys_wait_go(c.fd);
		sys_join(&c);
		sys_is_filled("what the importer wrote", p + list[i].at, list[i].bytes, 2);
		sys_is_byte("beside it", p, list[i].at, 0x99);
		acl_ok(aclrtIpcMemClose(o.key));
		acl_fails(aclrtIpcMemClose(o.key), ACL_ERROR_RT_INVALID_HANDLE);
	}
	acl_ok(aclrtFree(p));
}

/* Tries as often as it is asked to, says what came of it. */
static void child_try(int fd, const void *arg)
{
	const struct order *o = arg;
	aclError ret;
	int32_t pid;
	void *p;
	char c;

	child_begin(0);
	acl_ok(aclrtDeviceGetBareTgid(&pid));
	sys_put(fd, &pid, sizeof(pid));
	while (sys_try_get(fd, &c, 1)) {
		aclGetRecentErrMsg();
		ret = aclrtIpcMemImportByKey(&p, o->key, 0);
		sys_true(!ret || aclGetRecentErrMsg(), "%d without a message", ret);
		if (!ret)
			acl_ok(aclrtIpcMemClose(o->key));
		sys_put(fd, &ret, sizeof(ret));
	}
	acl_ok(aclFinalize());
}

static aclError ask(struct sys_child *c)
{
	aclError ret;

	sys_go(c->fd);
	sys_get(c->fd, &ret, sizeof(ret));
	return ret;
}

static void stop(struct sys_child *c)
{
	shutdown(c->fd, SHUT_WR);
	sys_join(c);
}

static void whitelist(void **state)
{
	uint8_t *p = device_memory(4096);
	struct sys_child a, b;
	int32_t first, second;
	aclrtServerPid server = { .sdid = 0, .pid = &second, .num = 1 };
	int32_t many[200];
	struct order o;
	int i;

	(void)state;
	acl_ok(aclrtIpcMemGetExportKey(p, 4096, o.key, KEY, 0));
	sys_spawn(&a, child_try, &o, sizeof(o));
	sys_spawn(&b, child_try, &o, sizeof(o));
	sys_get(a.fd, &first, sizeof(first));
	sys_get(b.fd, &second, sizeof(second));
	sys_eq(ask(&a), ACL_ERROR_RT_NO_PERMISSION);
	acl_ok(aclrtIpcMemSetImportPid(o.key, &first, 1));
	sys_eq(ask(&a), ACL_SUCCESS);
	sys_eq(ask(&b), ACL_ERROR_RT_NO_PERMISSION);
	acl_ok(aclrtIpcMemImportPidInterServer(o.key, &server, 1));
	sys_eq(ask(&b), ACL_SUCCESS);
	for (i = 0; i < 200; i++)
		many[i] = i + 1;
	acl_fails(aclrtIpcMemSetImportPid(o.key, many, 200), ACL_ERROR_RT_OVER_LIMIT);
	sys_eq(ask(&a), ACL_SUCCESS);
	/* freed, before it was closed */
	acl_ok(aclrtFree(p));
	sys_eq(ask(&a), ACL_ERROR_RT_INVALID_HANDLE);
	acl_fails(aclrtIpcMemSetImportPid(o.key, &first, 1), ACL_ERROR_RT_INVALID_HANDLE);
	acl_fails(aclrtIpcMemClose(o.key), ACL_ERROR_RT_INVALID_HANDLE);
	stop(&a);
	stop(&b);
}

static void wrong_keys(void **state)
{
	uint8_t *p = device_memory(4096), stack[64];
	char key[KEY], bent[KEY], small[16];
	int32_t pid = 1;
	void *q;
	size_t i;

	(void)state;
	acl_fails(aclrtIpcMemGetExportKey(p, 4096, small, sizeof(small), any), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtIpcMemGetExportKey(p, 8192, key, KEY, any), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtIpcMemGetExportKey(p + 4000, 100, key, KEY, any), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtIpcMemGetExportKey(stack, 4, key, KEY, any), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtIpcMemGetExportKey(p, 0, key, KEY, any), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtIpcMemGetExportKey(NULL, 1, key, KEY, any), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtIpcMemGetExportKey(p, 1, NULL, KEY, any), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtIpcMemGetExportKey(p, 1, key, KEY, 0x10), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtIpcMemGetExportKey(p, 4096, key, KEY, any));
	/* a character changed, wherever it is */
	for (i = 0; key[i]; i++) {
		memcpy(bent, key, KEY);
		bent[i] = key[i] == '0' ? '1' : '0';
		aclGetRecentErrMsg();
		sys_true(aclrtIpcMemImportByKey(&q, bent, 0) && aclGetRecentErrMsg(), "character %zu does not matter", i);
		bent[i] = 0;
		acl_fails(aclrtIpcMemImportByKey(&q, bent, 0), ACL_ERROR_RT_PARAM_INVALID);
	}
	memset(bent, 'f', KEY);
	acl_fails(aclrtIpcMemImportByKey(&q, bent, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtIpcMemImportByKey(&q, "", 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtIpcMemImportByKey(&q, NULL, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtIpcMemImportByKey(NULL, key, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtIpcMemImportByKey(&q, key, 0x40), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtIpcMemClose(bent), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtIpcMemClose(NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtIpcMemSetImportPid(bent, &pid, 1), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtIpcMemSetAttr(key, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS));
	acl_fails(aclrtIpcMemSetAttr(key, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK, 9), ACL_ERROR_RT_PARAM_INVALID);
	/* in the process itself it is the pointer that it has; closed, it is a key no more */
	acl_ok(aclrtIpcMemImportByKey(&q, key, 0));
	sys_true(q == p, "%p, not %p", q, (void *)p);
	acl_ok(aclrtIpcMemClose(key));
	acl_ok(aclrtIpcMemClose(key));
	acl_fails(aclrtIpcMemImportByKey(&q, key, 0), ACL_ERROR_RT_INVALID_HANDLE);
	acl_ok(aclrtFree(p));
}

/* Two keys of one buffer; it exports, and is killed or ends. */
static void child_export(int fd, const void *arg)
{
	struct order o[2];
	uint8_t *p;

	(void)arg;
	child_begin(0);
	p = device_memory(BYTES);
	sys_fill(p, BYTES, 1);
	acl_ok(aclrtIpcMemGetExportKey(p, BYTES, o[0].key, KEY, any));
	acl_ok(aclrtIpcMemGetExportKey(p + 4096, 8192, o[1].key, KEY, any));
	sys_put(fd, o, sizeof(o));
	sys_wait_go(fd);
	acl_ok(aclFinalize());
}

static void exporter_gone(struct sys_child *c, void (*gone)(struct sys_child *c))
{
	static uint8_t host[BYTES], want[BYTES];
	uint8_t *p, *part, *own = device_memory(BYTES);
	struct order o[2];
	void *q;

	sys_spawn(c, child_export, NULL, 0);
	sys_get(c->fd, o, sizeof(o));
	acl_ok(aclrtIpcMemImportByKey((void **)&p, o[0].key, 0));
	acl_ok(aclrtIpcMemImportByKey((void **)&part, o[1].key, 0));
	sys_true(part == p + 4096, "%p is not in %p", (void *)part, (void *)p);
	gone(c);
	acl_ok(aclrtMemcpy(own, BYTES, p, BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE));
	acl_ok(aclrtMemcpy(host, BYTES, own, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_fill(want, BYTES, 1);
	sys_same("what it left", host, want, BYTES);
	acl_ok(aclrtMemset(part, 8192, 0x21, 8192));
	sys_is_byte("written after its end", p + 4096, 8192, 0x21);
	/* one is closed, the other stays; none can be opened again */
	acl_ok(aclrtIpcMemClose(o[0].key));
	acl_fails(aclrtIpcMemImportByKey(&q, o[0].key, 0), ACL_ERROR_RT_INVALID_HANDLE);
	acl_ok(aclrtMemset(part, 8192, 0x22, 8192));
	acl_ok(aclrtIpcMemClose(o[1].key));
	acl_fails(aclrtMemset(part, 8192, 0x22, 8192), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtFree(own));
}

static void let_end(struct sys_child *c)
{
	sys_go(c->fd);
	sys_join(c);
}

static void exporter_ends(void **state)
{
	struct sys_child c;

	(void)state;
	exporter_gone(&c, let_end);
}

static void exporter_killed(void **state)
{
	struct sys_child c;

	(void)state;
	exporter_gone(&c, sys_kill);
}

static void child_hold(int fd, const void *arg)
{
	const struct order *o = arg;
	void *p;

	child_begin(1);
	acl_ok(aclrtIpcMemImportByKey(&p, o->key, ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS));
	acl_ok(aclrtMemset(p, 64, 1, 64));
	sys_go(fd);
	sys_wait_go(fd);
}

static void importer_killed(void **state)
{
	uint8_t *p = device_memory(BYTES);
	struct sys_child c;
	struct order o;

	(void)state;
	acl_ok(aclrtIpcMemGetExportKey(p, BYTES, o.key, KEY, any));
	sys_spawn(&c, child_hold, &o, sizeof(o));
	sys_wait_go(c.fd);
	sys_kill(&c);
	acl_ok(aclrtMemset(p, BYTES, 7, BYTES));
	acl_ok(aclrtFree(p));
	/* teardown: all of it has been given back */
}

/* ---- Notifies --------------------------------------------------------------------- */

struct ring {
	char full[KEY], empty[KEY], data[KEY];
};

#define ROUNDS	100
#define WORDS	256

/* Takes what comes, and says that it has. */
static void child_echo(int fd, const void *arg)
{
	static uint32_t got[ROUNDS][WORDS];
	const struct ring *r = arg;
	aclrtNotify full, empty;
	aclrtStream s;
	uint32_t *p;
	int i, k;

	child_begin(1);
	s = stream();
	acl_ok(aclrtNotifyImportByKey(&full, r->full, 0));
	acl_ok(aclrtNotifyImportByKey(&empty, r->empty, ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS));
	acl_ok(aclrtIpcMemImportByKey((void **)&p, r->data, ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS));
	for (i = 0; i < ROUNDS; i++) {
		acl_ok(aclrtWaitAndResetNotify(full, s, 30));
		acl_ok(aclrtMemcpyAsync(got[i], sizeof(got[i]), p, sizeof(got[i]), ACL_MEMCPY_DEVICE_TO_HOST, s));
		acl_ok(aclrtRecordNotify(empty, s));
	}
	acl_ok(aclrtSynchronizeStream(s));
	for (i = 0; i < ROUNDS; i++)
		for (k = 0; k < WORDS; k++)
			sys_eq(got[i][k], i);
	acl_ok(aclrtDestroyNotify(full));
	acl_ok(aclrtDestroyNotify(empty));
	acl_ok(aclrtIpcMemClose(r->data));
	sys_go(fd);
	acl_ok(aclFinalize());
}

static void notifies(void **state)
{
	uint32_t *p = (uint32_t *)(void *)device_memory(WORDS * 4), i;
	aclrtNotify full, empty;
	aclrtStream s = stream();
	struct sys_child c;
	struct ring r;

	(void)state;
	acl_ok(aclrtCreateNotify(&full, ACL_NOTIFY_DEFAULT));
	acl_ok(aclrtCreateNotify(&empty, ACL_NOTIFY_DEFAULT));
	acl_ok(aclrtNotifyGetExportKey(full, r.full, KEY, ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
	acl_ok(aclrtNotifyGetExportKey(empty, r.empty, KEY, ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
	acl_ok(aclrtIpcMemGetExportKey(p, WORDS * 4, r.data, KEY, any));
	sys_spawn(&c, child_echo, &r, sizeof(r));
	for (i = 0; i < ROUNDS; i++) {
		acl_ok(aclrtMemsetD32Async(p, WORDS * 4, i, WORDS, s));
		acl_ok(aclrtRecordNotify(full, s));
		acl_ok(aclrtWaitAndResetNotify(empty, s, 30));
	}
	acl_ok(aclrtSynchronizeStream(s));
	sys_wait_go(c.fd);
	sys_join(&c);
	acl_ok(aclrtDestroyNotify(full));
	acl_ok(aclrtDestroyNotify(empty));
	acl_ok(aclrtFree(p));
	acl_ok(aclrtDestroyStream(s));
}

static void child_notify(int fd, const void *arg)
{
	const struct order *o = arg;
	aclrtNotify n;
	aclError ret;
	int32_t pid;
	char c;

	child_begin(0);
	acl_ok(aclrtDeviceGetBareTgid(&pid));
	sys_put(fd, &pid, sizeof(pid));
	while (sys_try_get(fd, &c, 1)) {
		aclGetRecentErrMsg();
		ret = aclrtNotifyImportByKey(&n, o->key, 0);
		sys_true(!ret || aclGetRecentErrMsg(), "%d without a message", ret);
		if (!ret) {
			acl_ok(aclrtRecordNotify(n, NULL));
			acl_ok(aclrtSynchronizeStream(NULL));
			acl_ok(aclrtDestroyNotify(n));
		}
		sys_put(fd, &ret, sizeof(ret));
	}
	acl_ok(aclFinalize());
}

static void notify_rights(void **state)
{
	aclrtNotify n, mine;
	aclrtStream s = stream();
	struct sys_child a, b;
	aclrtServerPid server;
	int32_t first, second;
	char key[KEY];
	struct order o;

	(void)state;
	acl_ok(aclrtCreateNotify(&n, ACL_NOTIFY_DEFAULT));
	acl_fails(aclrtNotifySetImportPid(n, &first, 1), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtNotifyGetExportKey(n, o.key, 64, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtNotifyGetExportKey(n, NULL, KEY, 0), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtNotifyGetExportKey(n, o.key, KEY, 0));
	sys_spawn(&a, child_notify, &o, sizeof(o));
	sys_spawn(&b, child_notify, &o, sizeof(o));
	sys_get(a.fd, &first, sizeof(first));
	sys_get(b.fd, &second, sizeof(second));
	sys_eq(ask(&a), ACL_ERROR_RT_NO_PERMISSION);
	acl_ok(aclrtNotifySetImportPid(n, &first, 1));
	sys_eq(ask(&a), ACL_SUCCESS);
	sys_eq(ask(&b), ACL_ERROR_RT_NO_PERMISSION);
	server = (aclrtServerPid){ .pid = &second, .num = 1 };
	acl_ok(aclrtNotifySetImportPidInterServer(n, &server, 1));
	sys_eq(ask(&b), ACL_SUCCESS);
	acl_ok(aclrtWaitAndResetNotify(n, s, 10));
	acl_ok(aclrtSynchronizeStream(s));
	/* in the process itself: another handle of the same */
	acl_ok(aclrtNotifyImportByKey(&mine, o.key, 0));
	acl_ok(aclrtRecordNotify(mine, s));
	acl_ok(aclrtWaitAndResetNotify(n, s, 10));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtDestroyNotify(mine));
	memcpy(key, o.key, KEY);
	key[7] = 'm';
	acl_fails(aclrtIpcMemImportByKey((void **)&mine, o.key, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtNotifyImportByKey(&mine, key, 0), ACL_ERROR_RT_PARAM_INVALID);
	acl_ok(aclrtDestroyNotify(n));
	sys_eq(ask(&a), ACL_ERROR_RT_INVALID_HANDLE);
	stop(&a);
	stop(&b);
	acl_ok(aclrtDestroyStream(s));
}

/* ---- Events ------------------------------------------------------------------------ */

struct event_order {
	aclrtIpcEventHandle handle;
	char data[KEY];
};

/* Waits, in a stream and on the host, for what is recorded elsewhere. */
static void child_wait(int fd, const void *arg)
{
	const struct event_order *o = arg;
	aclrtEventRecordedStatus st;
	aclrtStream s, t;
	uint64_t us = 0;
	aclrtEvent e;
	uint32_t *p, got = 0, i;

	child_begin(1);
	s = stream();
	t = stream();
	acl_ok(aclrtIpcMemImportByKey((void **)&p, o->data, ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS));
	acl_ok(aclrtIpcOpenEventHandle(o->handle, &e));
	/* never recorded: complete */
	acl_ok(aclrtQueryEventStatus(e, &st));
	sys_eq(st, ACL_EVENT_RECORDED_STATUS_COMPLETE);
	acl_ok(aclrtSynchronizeEvent(e));
	for (i = 1; i <= 20; i++) {
		sys_go(fd);
		sys_wait_go(fd);	/* a record was asked for; it cannot happen yet */
		acl_ok(aclrtQueryEventStatus(e, &st));
		sys_eq(st, ACL_EVENT_RECORDED_STATUS_NOT_READY);
		acl_fails(aclrtSynchronizeEventWithTimeout(e, 1), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
		acl_ok(aclrtStreamWaitEvent(s, e));
		acl_ok(aclrtMemcpyAsync(&got, sizeof(got), p, sizeof(got), ACL_MEMCPY_DEVICE_TO_HOST, t));
		sys_eq(got, i - 1);
		sys_go(fd);
		acl_ok(aclrtMemcpyAsync(&got, sizeof(got), p, sizeof(got), ACL_MEMCPY_DEVICE_TO_HOST, s));
		sys_eq(got, i);
		acl_ok(aclrtSynchronizeEvent(e));
		acl_ok(aclrtQueryEventStatus(e, &st));
		sys_eq(st, ACL_EVENT_RECORDED_STATUS_COMPLETE);
	}
	acl_ok(aclrtEventGetTimestamp(e, &us));
	sys_put(fd, &us, sizeof(us));
	sys_wait_go(fd);	/* or it might be the next record's that the other one sees */
	/* the other way round */
	acl_ok(aclrtRecordEvent(e, s));
	acl_ok(aclrtSynchronizeStream(s));
	sys_go(fd);
	sys_wait_go(fd);
	acl_ok(aclrtDestroyEvent(e));
	acl_ok(aclFinalize());
}

static void events(void **state)
{
	uint32_t *p = (uint32_t *)(void *)device_memory(4096), i;
	aclrtStream s = stream();
	aclrtNotify hold;
	struct event_order o;
	struct sys_child c;
	aclrtEvent e;
	uint64_t us = 0, theirs, before;

	(void)state;
	acl_ok(aclrtCreateEventExWithFlag(&e, ACL_EVENT_IPC));
	acl_ok(aclrtCreateNotify(&hold, ACL_NOTIFY_DEFAULT));
	acl_ok(aclrtMemset(p, 4096, 0, 4096));
	acl_ok(aclrtIpcGetEventHandle(e, &o.handle));
	acl_ok(aclrtIpcMemGetExportKey(p, 4096, o.data, KEY, any));
	sys_spawn(&c, child_wait, &o, sizeof(o));
	for (i = 1; i <= 20; i++) {
		sys_wait_go(c.fd);
		acl_ok(aclrtWaitAndResetNotify(hold, s, 0));
		acl_ok(aclrtMemsetD32Async(p, 4096, i, 4, s));
		acl_ok(aclrtRecordEvent(e, s));
		sys_go(c.fd);
		sys_wait_go(c.fd);
		acl_ok(aclrtRecordNotify(hold, NULL));
	}
	acl_ok(aclrtSynchronizeEvent(e));
	acl_ok(aclrtEventGetTimestamp(e, &us));
	sys_get(c.fd, &theirs, sizeof(theirs));
	sys_eq(theirs, us);
	sys_go(c.fd);
	sys_wait_go(c.fd);
	/* what it recorded is the latest now */
	before = us;
	acl_ok(aclrtEventGetTimestamp(e, &us));
	sys_true(us >= before, "%llu before %llu", (unsigned long long)us, (unsigned long long)before);
	acl_ok(aclrtStreamWaitEvent(s, e));
	acl_ok(aclrtSynchronizeStream(s));
	acl_ok(aclrtDestroyEvent(e));
	sys_go(c.fd);
	sys_join(&c);
	acl_ok(aclrtDestroyNotify(hold));
	acl_ok(aclrtDestroyStream(s));
	acl_ok(aclrtFree(p));
}

/* It is to record, and is killed before. */
static void child_never(int fd, const void *arg)
{
	aclrtIpcEventHandle h;
	aclrtStream s;
	aclrtNotify n;
	aclrtEvent e;

	(void)arg;
	child_begin(0);
	s = stream();
	acl_ok(aclrtCreateEventExWithFlag(&e, ACL_EVENT_IPC));
	acl_ok(aclrtIpcGetEventHandle(e, &h));
	acl_ok(aclrtCreateNotify(&n, ACL_NOTIFY_DEFAULT));
	acl_ok(aclrtWaitAndResetNotify(n, s, 0));
	acl_ok(aclrtRecordEvent(e, s));
	sys_put(fd, &h, sizeof(h));
	sys_wait_go(fd);
}

static void event_lost(void **state)
{
	aclrtIpcEventHandle h;
	aclrtStream s = stream();
	struct sys_child c;
	aclrtEvent e, late;

	(void)state;
	sys_spawn(&c, child_never, NULL, 0);
	sys_get(c.fd, &h, sizeof(h));
	acl_ok(aclrtIpcOpenEventHandle(h, &e));
	acl_ok(aclrtStreamWaitEvent(s, e));
	acl_fails(aclrtSynchronizeStreamWithTimeout(s, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	sys_kill(&c);
	acl_fails(aclrtSynchronizeStreamWithTimeout(s, SYS_PATIENCE_MS), ACL_ERROR_RT_IPC_ERROR);
	acl_fails(aclrtSynchronizeEventWithTimeout(e, SYS_PATIENCE_MS), ACL_ERROR_RT_IPC_ERROR);
	acl_fails(aclrtIpcOpenEventHandle(h, &late), ACL_ERROR_RT_INVALID_HANDLE);
	acl_ok(aclrtDestroyEvent(e));
	acl_ok(aclrtDestroyStream(s));
}

static void event_rules(void **state)
{
	aclrtIpcEventHandle h, bent;
	aclrtEvent plain, e, other;
	aclrtStream s = stream();
	uint32_t bit;
	float ms;

	(void)state;
	acl_ok(aclrtCreateEventExWithFlag(&plain, ACL_EVENT_SYNC));
	acl_fails(aclrtIpcGetEventHandle(plain, &h), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtCreateEventExWithFlag(&e, ACL_EVENT_IPC | ACL_EVENT_SYNC), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtCreateEventWithFlag(&e, ACL_EVENT_IPC));
	acl_fails(aclrtIpcGetEventHandle(e, NULL), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtIpcGetEventHandle(e, &h));
	for (bit = 0; bit < 40 * 8; bit += 7) {
		bent = h;
		bent.reserved[bit / 8] ^= (char)(1 << bit % 8);
		acl_fails(aclrtIpcOpenEventHandle(bent, &other), ACL_ERROR_RT_PARAM_INVALID);
	}
	acl_fails(aclrtIpcOpenEventHandle(h, NULL), ACL_ERROR_INVALID_PARAM);
	/* in the process itself: another handle of the same */
	acl_ok(aclrtIpcOpenEventHandle(h, &other));
	acl_fails(aclrtEventElapsedTime(&ms, e, other), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
	acl_ok(aclrtRecordEvent(e, s));
	acl_ok(aclrtStreamWaitEvent(NULL, other));
	acl_ok(aclrtSynchronizeEvent(other));
	acl_ok(aclrtEventElapsedTime(&ms, e, other));
	sys_true(ms == 0.0f, "%f ms between an event and itself", (double)ms);
	acl_fails(aclrtResetEvent(e, s), ACL_ERROR_RT_PARAM_INVALID);
	/* whoever made it has destroyed it */
	acl_ok(aclrtSynchronizeStream(NULL));
	acl_ok(aclrtDestroyEvent(e));
	acl_fails(aclrtRecordEvent(other, s), ACL_ERROR_RT_INVALID_HANDLE);
	acl_fails(aclrtStreamWaitEvent(s, other), ACL_ERROR_RT_INVALID_HANDLE);
	acl_ok(aclrtDestroyEvent(other));
	acl_fails(aclrtIpcOpenEventHandle(h, &other), ACL_ERROR_RT_INVALID_HANDLE);
	acl_ok(aclrtDestroyEvent(plain));
	acl_ok(aclrtDestroyStream(s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		acl_test(memory), acl_test(whitelist), acl_test(wrong_keys), acl_test(exporter_ends),
		acl_test(exporter_killed), acl_test(importer_killed), acl_test(notifies), acl_test(notify_rights),
		acl_test(events), acl_test(event_lost), acl_test(event_rules),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
