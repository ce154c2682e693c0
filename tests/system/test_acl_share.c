// SPDX-License-Identifier: MIT
/*
 * Physical memory shared between processes, by number and by 128 bytes: the bytes are the
 * same ones, whoever may have it gets it and nobody else, and it outlives whoever dies.
 */
#include <acl/acl.h>
#include <string.h>
#include <sys/socket.h>

#include "acltest.h"
#include "sys.h"

#define PIECE	(2ul << 20)

static uint8_t *reserve(size_t bytes)
{
	void *p = NULL;

	acl_ok(aclrtReserveMemAddress(&p, bytes, 0, NULL, 1));
	return p;
}

/* Memory of a device, mapped, and its handle. */
static uint8_t *make(uint32_t device, aclrtDrvMemHandle *h)
{
	aclrtPhysicalMemProp p = {
		.handleType = ACL_MEM_HANDLE_TYPE_NONE, .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
		.memAttr = ACL_HBM_MEM_HUGE, .location = { .id = device, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};
	uint8_t *va = reserve(PIECE);

	acl_ok(aclrtMallocPhysical(h, PIECE, &p, 0));
	acl_ok(aclrtMapMem(va, PIECE, 0, *h, 0));
	return va;
}

static void drop(uint8_t *va, aclrtDrvMemHandle h)
{
	acl_ok(aclrtUnmapMem(va));
	acl_ok(aclrtFreePhysical(h));
	acl_ok(aclrtReleaseMemAddress(va));
}

static uint8_t *map(aclrtDrvMemHandle h)
{
	uint8_t *va = reserve(PIECE);

	acl_ok(aclrtMapMem(va, PIECE, 0, h, 0));
	return va;
}

/* ---- Children ----------------------------------------------------------------- */

/* What a child is to import, and how. */
struct order {
	uint32_t v1;		/* by aclrtMemImportFromShareableHandle */
	uint32_t device;
	aclrtMemSharedHandleType type;
	uint64_t number;
	aclrtMemFabricHandle fabric;
};

static void child_begin(uint32_t device)
{
	acl_ok(aclInit(NULL));
	acl_ok(aclrtSetDevice((int32_t)device));
}

static aclError import(struct order *o, aclrtDrvMemHandle *h)
{
	if (o->v1)
		return aclrtMemImportFromShareableHandle(o->number, (int32_t)o->device, h);
	return aclrtMemImportFromShareableHandleV2(o->type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC ? (void *)&o->fabric :
						   (void *)&o->number, o->type, 0, h);
}

/* Seed 1 is there; seed 2 is there afterwards, written by an engine, and a byte by the CPU. */
static void child_use(int fd, const void *arg)
{
	static uint8_t host[PIECE];
	struct order o = *(const struct order *)arg;
	aclrtDrvMemHandle h;
	aclrtPtrAttributes attr;
	uint8_t *va;

	child_begin(o.device);
	acl_ok(import(&o, &h));
	va = map(h);
	sys_is_filled("what the exporter wrote", va, PIECE, 1);
	acl_ok(aclrtMemcpy(host, PIECE, va, PIECE, ACL_MEMCPY_DEFAULT));
	sys_is_filled("the same by an engine", host, PIECE, 1);
	acl_ok(aclrtPointerGetAttributes(va, &attr));
	sys_eq(attr.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
	sys_eq(attr.location.id, 0);
	sys_fill(host, PIECE, 2);
	acl_ok(aclrtMemcpy(va, PIECE, host, PIECE, ACL_MEMCPY_DEFAULT));
	va[17] = 0xab;
	sys_go(fd);
	sys_wait_go(fd);
	drop(va, h);
	acl_ok(aclFinalize());
}

static void is_used(uint8_t *va)
{
	static uint8_t want[PIECE], got[PIECE];

	sys_fill(want, PIECE, 2);
	want[17] = 0xab;
	sys_same("what the importer wrote", va, want, PIECE);
	acl_ok(aclrtMemcpy(got, PIECE, va, PIECE, ACL_MEMCPY_DEFAULT));
	sys_same("the same by an engine", got, want, PIECE);
}

/* Each form, for the memory's own device and for another one. */
static void forms(void **state)
{
	struct order list[] = {
		{ .v1 = 1 },
		{ .v1 = 1, .device = 1 },
		{ .type = ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT },
		{ .type = ACL_MEM_SHARE_HANDLE_TYPE_FABRIC },
		{ .type = ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, .device = 1 },
	};
	const uint64_t any = ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
	struct sys_child c;
	aclrtDrvMemHandle h;
	uint8_t *va;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		va = make(0, &h);
		sys_fill(va, PIECE, 1);
		if (list[i].v1)
			acl_ok(aclrtMemExportToShareableHandle(h, ACL_MEM_HANDLE_TYPE_NONE, any, &list[i].number));
		else if (list[i].type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT)
			acl_ok(aclrtMemExportToShareableHandleV2(h, any, list[i].type, &list[i].number));
		else
			acl_ok(aclrtMemExportToShareableHandleV2(h, any, list[i].type, &list[i].fabric));
		sys_spawn(&c, child_use, &list[i], sizeof(list[i]));
		sys_wait_go(c.fd);
		is_used(va);
		sys_go(c.fd);
		sys_join(&c);
		drop(va, h);
	}
}

/* ---- Who may -------------------------------------------------------------------- */

/* Tries as often as it is asked to, says what came of it. */
static void child_try(int fd, const void *arg)
{
	struct order o = *(const struct order *)arg;
	aclrtDrvMemHandle h;
	aclError ret;
	int32_t pid;
	char c;

	child_begin(o.device);
	acl_ok(aclrtDeviceGetBareTgid(&pid));
	sys_put(fd, &pid, sizeof(pid));
	while (sys_try_get(fd, &c, 1)) {
		aclGetRecentErrMsg();
		ret = import(&o, &h);
		sys_true(!ret || aclGetRecentErrMsg(), "%d without a message", ret);
		if (!ret)
			acl_ok(aclrtFreePhysical(h));
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
	struct order o = { .type = ACL_MEM_SHARE_HANDLE_TYPE_FABRIC }, n = { .v1 = 1 };
	int32_t first, second, bad = -3;
	struct sys_child a, b;
	aclrtDrvMemHandle h;
	uint8_t *va = make(0, &h);

	(void)state;
	acl_ok(aclrtMemExportToShareableHandleV2(h, 0, o.type, &o.fabric));
	acl_ok(aclrtMemExportToShareableHandle(h, ACL_MEM_HANDLE_TYPE_NONE, 0, &n.number));
	sys_spawn(&a, child_try, &o, sizeof(o));
	sys_spawn(&b, child_try, &n, sizeof(n));
	sys_get(a.fd, &first, sizeof(first));
	sys_get(b.fd, &second, sizeof(second));
	sys_eq(ask(&a), ACL_ERROR_RT_NO_PERMISSION);
	sys_eq(ask(&b), ACL_ERROR_RT_NO_PERMISSION);
	/* both forms name one thing */
	acl_ok(aclrtMemSetPidToShareableHandle(n.number, &first, 1));
	sys_eq(ask(&a), ACL_SUCCESS);
	sys_eq(ask(&b), ACL_ERROR_RT_NO_PERMISSION);
	acl_ok(aclrtMemSetPidToShareableHandleV2(&o.fabric, o.type, &second, 1));
	sys_eq(ask(&b), ACL_SUCCESS);
	sys_eq(ask(&a), ACL_SUCCESS);
	acl_fails(aclrtMemSetPidToShareableHandle(n.number, &bad, 1), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemSetPidToShareableHandle(n.number, NULL, 1), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemSetPidToShareableHandle(n.number, &first, 0), ACL_ERROR_INVALID_PARAM);
	/* freed: nothing is left of it for those who come late */
	drop(va, h);
	sys_eq(ask(&a), ACL_ERROR_RT_INVALID_HANDLE);
	sys_eq(ask(&b), ACL_ERROR_RT_INVALID_HANDLE);
	acl_fails(aclrtMemSetPidToShareableHandle(n.number, &first, 1), ACL_ERROR_RT_INVALID_HANDLE);
	stop(&a);
	stop(&b);
}

static void forged(void **state)
{
	const uint64_t any = ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
	struct order o = { .type = ACL_MEM_SHARE_HANDLE_TYPE_FABRIC };
	struct sys_child c;
	aclrtDrvMemHandle h, none;
	uint8_t *va = make(0, &h);
	uint64_t number, bent;
	int32_t pid;
	uint32_t bit;

	(void)state;
	acl_ok(aclrtMemExportToShareableHandleV2(h, any, o.type, &o.fabric));
	acl_ok(aclrtMemExportToShareableHandleV2(h, any, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &number));
	/* a bit of it turned round, in each byte that counts */
	for (bit = 0; bit < 40 * 8; bit += 5) {
		o.fabric.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		acl_fails(import(&o, &none), ACL_ERROR_RT_PARAM_INVALID);
		o.fabric.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (bit = 0; bit < 64; bit++) {
		bent = number ^ 1ull << bit;
		acl_fails(aclrtMemImportFromShareableHandle(bent, 0, &none), ACL_ERROR_RT_INVALID_HANDLE);
	}
	acl_fails(aclrtMemImportFromShareableHandle(0, 0, &none), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemImportFromShareableHandle(number, 77, &none), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtMemImportFromShareableHandle(number, 0, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemImportFromShareableHandleV2(NULL, o.type, 0, &none), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemImportFromShareableHandleV2(&o.fabric, (aclrtMemSharedHandleType)9, 0, &none),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemImportFromShareableHandleV2(&o.fabric, o.type, 1, &none), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemExportToShareableHandleV2(h, 2, o.type, &o.fabric), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtMemExportToShareableHandleV2(NULL, any, o.type, &o.fabric), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemExportToShareableHandleV2(h, any, o.type, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtMemExportToShareableHandle(h, ACL_MEM_HANDLE_TYPE_POSIX, any, &number),
		  ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	/* of a process that is gone */
	sys_spawn(&c, child_try, &o, sizeof(o));
	sys_get(c.fd, &pid, sizeof(pid));
	sys_eq(ask(&c), ACL_SUCCESS);
	stop(&c);
	drop(va, h);
}

/* Server and client in one process. */
static void same_process(void **state)
{
	struct order o = { .type = ACL_MEM_SHARE_HANDLE_TYPE_FABRIC };
	aclrtDrvMemHandle h, again, third;
	uint8_t *va = make(1, &h), *second;

	(void)state;
	acl_ok(aclrtMemExportToShareableHandleV2(h, 0, o.type, &o.fabric));
	acl_ok(import(&o, &again));
	sys_true(again != h, "the handle itself");
	second = map(again);
	memset(va, 0x61, PIECE);
	sys_is_byte("the other mapping", second, PIECE, 0x61);
	/* it was imported for device 0: no peer access is needed */
	acl_ok(aclrtMemset(second, PIECE, 0x62, PIECE));
	/* the memory stays as long as somebody has it, and so does its name */
	drop(va, h);
	sys_is_byte("after the first one let go", second, PIECE, 0x62);
	acl_ok(import(&o, &third));
	acl_ok(aclrtFreePhysical(third));
	drop(second, again);
	acl_fails(import(&o, &third), ACL_ERROR_RT_INVALID_HANDLE);
}

/* ---- The exporter's end ------------------------------------------------------------ */

static void child_export(int fd, const void *arg)
{
	struct order o = { .type = ACL_MEM_SHARE_HANDLE_TYPE_FABRIC };
	aclrtDrvMemHandle h;
	uint8_t *va;

	(void)arg;
	child_begin(1);
	va = make(1, &h);
	sys_fill(va, PIECE, 1);
	acl_ok(aclrtMemExportToShareableHandleV2(h, ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION, o.type, &o.fabric));
	sys_put(fd, &o, sizeof(o));
	sys_wait_go(fd);
	/* its mapping and handle go; who has imported it keeps it */
	drop(va, h);
	sys_go(fd);
	sys_wait_go(fd);
	acl_ok(aclFinalize());
}

static void check_and_change(uint8_t *va, uint8_t *own)
{
	static uint8_t host[PIECE];

	sys_is_filled("still there", va, PIECE, 1);
	acl_ok(aclrtMemcpy(own, PIECE, va, PIECE, ACL_MEMCPY_DEFAULT));
	acl_ok(aclrtMemcpy(host, PIECE, own, PIECE, ACL_MEMCPY_DEFAULT));
	sys_is_filled("and for engines", host, PIECE, 1);
	acl_ok(aclrtMemset(va, PIECE, 0x77, 4096));
	sys_is_byte("and to be written", va, 4096, 0x77);
	sys_fill(va, PIECE, 1);
}

static void exporter_frees(void **state)
{
	aclrtDrvMemHandle h, own_handle, late;
	struct sys_child c;
	struct order o;
	uint8_t *va, *own = make(0, &own_handle);

	(void)state;
	sys_spawn(&c, child_export, NULL, 0);
	sys_get(c.fd, &o, sizeof(o));
	acl_ok(import(&o, &h));
	va = map(h);
	check_and_change(va, own);
	sys_go(c.fd);
	sys_wait_go(c.fd);
	check_and_change(va, own);
	acl_fails(import(&o, &late), ACL_ERROR_RT_INVALID_HANDLE);
	sys_go(c.fd);
	sys_join(&c);
	check_and_change(va, own);
	drop(va, h);
	drop(own, own_handle);
}

static void exporter_killed(void **state)
{
	aclrtDrvMemHandle h, unmapped, own_handle, late;
	struct sys_child c;
	struct order o;
	uint8_t *va, *second, *own = make(0, &own_handle);

	(void)state;
	sys_spawn(&c, child_export, NULL, 0);
	sys_get(c.fd, &o, sizeof(o));
	acl_ok(import(&o, &h));
	acl_ok(import(&o, &unmapped));
	va = map(h);
	check_and_change(va, own);
	sys_kill(&c);
	check_and_change(va, own);
	/* what was imported can be mapped; there is nothing new to be had */
	second = map(unmapped);
	check_and_change(second, own);
	acl_fails(import(&o, &late), ACL_ERROR_RT_INVALID_HANDLE);
	drop(va, h);
	check_and_change(second, own);
	drop(second, unmapped);
	drop(own, own_handle);
}

static void child_hold(int fd, const void *arg)
{
	struct order o = *(const struct order *)arg;
	aclrtDrvMemHandle h;

	child_begin(0);
	acl_ok(import(&o, &h));
	map(h);
	sys_go(fd);
	sys_wait_go(fd);
}

static void importer_killed(void **state)
{
	struct order o = { .type = ACL_MEM_SHARE_HANDLE_TYPE_FABRIC };
	struct sys_child c[2];
	aclrtDrvMemHandle h;
	uint8_t *va = make(0, &h);
	int i;

	(void)state;
	acl_ok(aclrtMemExportToShareableHandleV2(h, ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION, o.type, &o.fabric));
	for (i = 0; i < 2; i++) {
		sys_spawn(&c[i], child_hold, &o, sizeof(o));
		sys_wait_go(c[i].fd);
	}
	sys_kill(&c[0]);
	acl_ok(aclrtMemset(va, PIECE, 5, PIECE));
	drop(va, h);
	sys_kill(&c[1]);
	/* teardown: all of it has been given back */
}

/* One writes, one reads, one has made it. */
static void three(void **state)
{
	struct order o = { .type = ACL_MEM_SHARE_HANDLE_TYPE_FABRIC };
	struct sys_child maker, user;
	aclrtDrvMemHandle h;
	uint8_t *va;

	(void)state;
	sys_spawn(&maker, child_export, NULL, 0);
	sys_get(maker.fd, &o, sizeof(o));
	acl_ok(import(&o, &h));
	va = map(h);
	sys_spawn(&user, child_hold, &o, sizeof(o));
	sys_wait_go(user.fd);
	acl_ok(aclrtMemset(va, PIECE, 0x19, PIECE));
	sys_go(maker.fd);
	sys_wait_go(maker.fd);
	sys_kill(&user);
	sys_is_byte("mine", va, PIECE, 0x19);
	sys_kill(&maker);
	sys_is_byte("mine alone", va, PIECE, 0x19);
	drop(va, h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		acl_test(forms), acl_test(whitelist), acl_test(forged), acl_test(same_process),
		acl_test(exporter_frees), acl_test(exporter_killed), acl_test(importer_killed), acl_test(three),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
