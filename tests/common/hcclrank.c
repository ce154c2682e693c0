// SPDX-License-Identifier: MIT
/*
 * Ranks of a job, as threads or processes: see the header.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include "hcclrank.h"

struct hr_shared *hr_shared;

struct order {
	hr_fn fn;
	uint32_t rank, ranks, stride;
	bool bare, process;
};

void hr_is(const char *file, int line, const char *what, HcclResult got, HcclResult want, const char *word)
{
	const char *msg = got || word ? aclGetRecentErrMsg() : NULL;

	if (got != want)
		sys_fail(file, line, "%s: %d, not %d: %s", what, (int)got, (int)want, msg ? msg : "no message");
	if (word && (!msg || !strstr(msg, word)))
		sys_fail(file, line, "%s: nothing about \"%s\": %s", what, word, msg ? msg : "no message");
}

void hr_start(void)
{
	hr_shared = mmap(NULL, sizeof(*hr_shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sys_start();
}

int hr_setup(void **state)
{
	int rc = sys_setup(state);

	setenv("NPUEMU_MACHINE", "950", 1);
	setenv("HCCL_CONNECT_TIMEOUT", "120", 1);
	return rc;
}

int hr_setup_servers(void **state)
{
	int rc = sys_setup(state);

	/* the module is one server; tests skip there */
	setenv("NPUEMU_MACHINE", sys_kernel() ? "950" : "950-2x8", 1);
	return rc;
}

void hr_barrier(const struct hr_rank *r)
{
	uint32_t round = __atomic_load_n(&hr_shared->round, __ATOMIC_ACQUIRE);
	int64_t deadline = sys_deadline();

	if (__atomic_add_fetch(&hr_shared->come, 1, __ATOMIC_ACQ_REL) == r->ranks) {
		__atomic_store_n(&hr_shared->come, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&hr_shared->round, round + 1, __ATOMIC_RELEASE);
		return;
	}
	while (__atomic_load_n(&hr_shared->round, __ATOMIC_ACQUIRE) == round)
		sys_true(sys_retry(deadline), "rank %u: the others do not come", r->rank);
}

HcclComm hr_comm(struct hr_rank *r)
{
	HcclCommConfig config;
	HcclComm comm = NULL;

	HcclCommConfigInit(&config);
	config.hcclBufferSize = 1;
	if (!r->rank)
		hr_ok(HcclGetRootInfo(&hr_shared->root));
	hr_barrier(r);
	hr_ok(HcclCommInitRootInfoConfig(r->ranks, &hr_shared->root, r->rank, &config, &comm));
	hr_barrier(r);
	return comm;
}

void hr_sync(struct hr_rank *r)
{
	acl_ok(aclrtSynchronizeStreamWithTimeout(r->stream, SYS_PATIENCE_MS));
}

static void run_one(const struct order *o)
{
	struct hr_rank r = { .rank = o->rank, .ranks = o->ranks, .process = o->process };

	acl_ok(aclrtSetDevice((int32_t)(o->rank * o->stride)));
	acl_ok(aclrtCreateStream(&r.stream));
	if (!o->bare)
		r.comm = hr_comm(&r);
	o->fn(&r);
	hr_barrier(&r);
	if (r.comm)
		hr_ok(HcclCommDestroy(r.comm));
	acl_ok(aclrtDestroyStream(r.stream));
	acl_ok(aclrtResetDevice((int32_t)(o->rank * o->stride)));
}

static void *thread(void *arg)
{
	run_one(arg);
	return NULL;
}

static void child(int fd, const void *arg)
{
	(void)fd;
	acl_ok(aclInit(NULL));
	run_one(arg);
	acl_ok(aclFinalize());
}

static void run(struct order *all, uint32_t ranks, bool processes)
{
	struct sys_child c[HR_RANKS];
	pthread_t t[HR_RANKS];
	uint32_t i;

	memset(hr_shared, 0, sizeof(*hr_shared));
	if (!processes)
		acl_ok(aclInit(NULL));
	for (i = 0; i < ranks; i++) {
		if (processes)
			sys_spawn(&c[i], child, &all[i], sizeof(all[i]));
		else
			sys_true(!pthread_create(&t[i], NULL, thread, &all[i]), "no threads are left");
	}
	for (i = 0; i < ranks; i++) {
		if (processes)
			sys_join(&c[i]);
		else
			pthread_join(t[i], NULL);
	}
	if (!processes)
		acl_ok(aclFinalize());
}

static void start(uint32_t ranks, bool processes, uint32_t stride, bool bare, hr_fn fn)
{
	struct order all[HR_RANKS];
	uint32_t i;

	memset(all, 0, sizeof(all));
	for (i = 0; i < ranks; i++)
		all[i] = (struct order){ .fn = fn, .rank = i, .ranks = ranks, .stride = stride, .bare = bare, .process = processes };
	run(all, ranks, processes);
}

void hr_run(uint32_t ranks, bool processes, uint32_t stride, hr_fn fn)
{
	start(ranks, processes, stride, false, fn);
}

void hr_run_bare(uint32_t ranks, bool processes, hr_fn fn)
{
	start(ranks, processes, 1, true, fn);
}

/* ---- Memory -------------------------------------------------------------------- */

aclrtDrvMemHandle hr_physical(int32_t device)
{
	aclrtPhysicalMemProp prop = {
		.handleType = ACL_MEM_HANDLE_TYPE_NONE, .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
		.memAttr = ACL_HBM_MEM_HUGE, .location = { .id = (uint32_t)device, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};
	aclrtDrvMemHandle h;

	acl_ok(aclrtMallocPhysical(&h, HR_PAGES, &prop, 0));
	return h;
}

struct hr_mapped hr_map(uint32_t n)
{
	struct hr_mapped m = { .n = n, .bytes = n * HR_PAGES };
	int32_t device;
	void *va;
	uint32_t i;

	acl_ok(aclrtGetDevice(&device));
	acl_ok(aclrtReserveMemAddress(&va, m.bytes, 0, NULL, 1));
	m.va = va;
	for (i = 0; i < n; i++) {
		m.handle[i] = hr_physical(device);
		acl_ok(aclrtMapMem(m.va + i * HR_PAGES, HR_PAGES, 0, m.handle[i], 0));
	}
	return m;
}

void hr_unmap(struct hr_mapped *m)
{
	uint32_t i;

	for (i = 0; i < m->n; i++) {
		acl_ok(aclrtUnmapMem(m->va + i * HR_PAGES));
		acl_ok(aclrtFreePhysical(m->handle[i]));
	}
	acl_ok(aclrtReleaseMemAddress(m->va));
}
