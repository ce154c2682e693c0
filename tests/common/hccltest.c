// SPDX-License-Identifier: MIT
/* Jobs of ranks, what they share, and checks of HCCL calls; see hccltest.h. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hccltest.h"
#include "sys_spawn.h"

#define ENV_MAX		5
#define ENV_TEXT	128

struct ht_shared *ht_shared;

static struct {
	char name[48];
	char value[128];
	bool set, was_set;
	char was[128];
} env[ENV_MAX];

static struct ht_job *running;		/* threads find theirs here */

/* ---- Checks --------------------------------------------------------------- */

void ht_is(const char *file, int line, const char *what, HcclResult got, HcclResult want)
{
	const char *msg;

	if (got == want)
		return;
	msg = aclGetRecentErrMsg();
	sys_fail(file, line, "%s: %d, not %d: %s", what, got, want, msg ? msg : "no message");
}

void ht_said(const char *file, int line, const char *what, const char *word)
{
	const char *msg = aclGetRecentErrMsg();

	if (!msg || !strstr(msg, word))
		sys_fail(file, line, "%s: nothing about \"%s\": %s", what, word,
			 msg ? msg : "no message");
}

void ht_has(const char *file, int line, const char *text, ...)
{
	const char *word;
	va_list ap;

	va_start(ap, text);
	while ((word = va_arg(ap, const char *)))
		if (!strstr(text, word))
			sys_fail(file, line, "nothing about \"%s\": %s", word, text);
	va_end(ap);
}

/* ---- What all ranks see ------------------------------------------------------ */

void ht_progress(void)
{
	__atomic_fetch_add(&ht_shared->progress, 1, __ATOMIC_RELAXED);
}

uint64_t ht_get(uint32_t slot)
{
	return __atomic_load_n(&ht_shared->word[slot], __ATOMIC_ACQUIRE);
}

void ht_set(uint32_t slot, uint64_t value)
{
	__atomic_store_n(&ht_shared->word[slot], value, __ATOMIC_RELEASE);
	ht_progress();
}

uint64_t ht_add(uint32_t slot, uint64_t value)
{
	ht_progress();
	return __atomic_fetch_add(&ht_shared->word[slot], value, __ATOMIC_ACQ_REL);
}

/* The parent decides when it takes too long. */
void ht_await(uint32_t slot, uint64_t value)
{
	while (ht_get(slot) < value)
		usleep(200);
}

void ht_barrier(struct ht_rank *r)
{
	uint32_t round = __atomic_load_n(&ht_shared->round, __ATOMIC_ACQUIRE);

	ht_progress();
	if (__atomic_add_fetch(&ht_shared->come, 1, __ATOMIC_ACQ_REL) == r->ranks) {
		__atomic_store_n(&ht_shared->come, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&ht_shared->round, round + 1, __ATOMIC_RELEASE);
		return;
	}
	while (__atomic_load_n(&ht_shared->round, __ATOMIC_ACQUIRE) == round)
		usleep(100);
}

/* ---- Environment ------------------------------------------------------------- */

void ht_env(const char *name, const char *value)
{
	const char *was = getenv(name);
	int i;

	for (i = 0; i < ENV_MAX && env[i].name[0] && strcmp(env[i].name, name); i++)
		;
	sys_true(i < ENV_MAX, "too many variables");
	if (!env[i].name[0]) {
		snprintf(env[i].name, sizeof(env[i].name), "%s", name);
		env[i].was_set = was;
		snprintf(env[i].was, sizeof(env[i].was), "%s", was ? was : "");
	}
	env[i].set = value;
	snprintf(env[i].value, sizeof(env[i].value), "%s", value ? value : "");
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

void ht_env_restore(void)
{
	for (int i = 0; i < ENV_MAX && env[i].name[0]; i++) {
		if (env[i].was_set)
			setenv(env[i].name, env[i].was, 1);
		else
			unsetenv(env[i].name);
	}
	memset(env, 0, sizeof(env));
}

/* ---- Ranks -------------------------------------------------------------------- */

/* What a child is told; the environment of the test is not that of its helper. */
struct order {
	ht_fn fn;
	uint32_t rank, ranks;
	int32_t device;
	bool bare;
	size_t bytes;
	char env[ENV_MAX][ENV_TEXT];
	char arg[256];
};

static int32_t device_of(const struct ht_job *job, uint32_t rank)
{
	uint32_t stride = job->stride ? job->stride : 1;

	if (job->split && rank >= job->split)
		return (int32_t)(8 + (rank - job->split) * stride);
	return (int32_t)(rank * stride);
}

static void one_rank(struct ht_rank *r, ht_fn fn, bool bare)
{
	acl_ok(aclrtSetDevice(r->device));
	acl_ok(aclrtCreateStream(&r->stream));
	if (!bare)
		r->comm = ht_comm(r, NULL);
	fn(r);
	ht_progress();
	if (r->comm)
		ht_ok(HcclCommDestroy(r->comm));
	if (r->stream)
		acl_ok(aclrtDestroyStream(r->stream));
	acl_ok(aclrtResetDevice(r->device));
}

static void child(int fd, const void *arg)
{
	const struct order *o = arg;
	struct ht_rank r = {
		.rank = o->rank, .ranks = o->ranks, .device = o->device, .process = true,
		.arg = o->arg,
	};
	char *value, text[ENV_TEXT];
	int i;

	(void)fd;
	for (i = 0; i < ENV_MAX && o->env[i][0]; i++) {
		snprintf(text, sizeof(text), "%s", o->env[i]);
		value = strchr(text, '=');
		if (value) {
			*value++ = '\0';
			setenv(text, value, 1);
		} else {
			unsetenv(text);
		}
	}
	acl_ok(aclInit(NULL));
	one_rank(&r, o->fn, o->bare);
	acl_ok(aclFinalize());
	ht_progress();
}

static void *thread(void *arg)
{
	uint32_t rank = (uint32_t)(uintptr_t)arg;
	struct ht_job *job = running;
	struct ht_rank r = {
		.rank = rank, .ranks = job->ranks, .device = device_of(job, rank), .arg = job->arg,
	};

	one_rank(&r, job->fn, job->bare);
	__atomic_fetch_add(&job->over, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- Jobs -------------------------------------------------------------------- */

void ht_start(void)
{
	ht_shared = mmap(NULL, sizeof(*ht_shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ht_shared == MAP_FAILED) {
		perror("ht_start: mmap");
		exit(1);
	}
	sys_start();
}

int ht_setup(void **state)
{
	int rc = sys_setup(state);

	ht_env_restore();	/* of a test that failed */
	setenv("NPUEMU_MACHINE", "950", 1);
	return rc;
}

int ht_setup_servers(void **state)
{
	int rc = ht_setup(state);

	/* the module is one server; tests skip there */
	setenv("NPUEMU_MACHINE", sys_kernel() ? "950" : "950-2x8", 1);
	return rc;
}

static void begin_process(struct ht_job *job, uint32_t rank)
{
	struct order o;
	int i;

	memset(&o, 0, sizeof(o));
	o.fn = job->fn;
	o.rank = rank;
	o.ranks = job->ranks;
	o.device = device_of(job, rank);
	o.bare = job->bare;
	o.bytes = job->bytes;
	sys_true(job->bytes <= sizeof(o.arg), "argument of %zu bytes", job->bytes);
	if (job->bytes)
		memcpy(o.arg, job->arg, job->bytes);
	for (i = 0; i < ENV_MAX && env[i].name[0]; i++)
		snprintf(o.env[i], sizeof(o.env[i]), "%.40s%s%.80s", env[i].name,
			 env[i].set ? "=" : "", env[i].value);
	sys_spawn(&job->child[rank], child, &o, sizeof(o));
}

void ht_begin(struct ht_job *job)
{
	uint32_t i;

	sys_true(job->ranks && job->ranks <= HT_RANKS, "%u ranks", job->ranks);
	memset(ht_shared, 0, sizeof(*ht_shared));
	job->over = 0;
	running = job;
	if (!job->processes)
		acl_ok(aclInit(NULL));
	for (i = 0; i < job->ranks; i++) {
		if (job->processes)
			begin_process(job, i);
		else
			sys_true(!pthread_create(&job->thread[i], NULL, thread,
						 (void *)(uintptr_t)i), "no thread");
	}
}

/* The watchdog: somebody has to get on. */
static void get_on(uint64_t *last, int64_t *deadline, const char *what)
{
	uint64_t now = __atomic_load_n(&ht_shared->progress, __ATOMIC_RELAXED);

	if (now != *last) {
		*last = now;
		*deadline = sys_deadline();
	}
	sys_true(sys_retry(*deadline), "%s: no rank has got on for %d s", what,
		 SYS_PATIENCE_MS / 1000);
}

/* Its process has ended: its end of the channel is closed. */
static bool hung_up(const struct sys_child *c)
{
	struct pollfd p = { .fd = c->fd };

	return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
}

/* Whoever ends is looked at at once: one that failed says why, others then only follow. */
static bool join_ended(struct ht_job *job)
{
	bool left = false;
	uint32_t i;

	for (i = 0; i < job->ranks; i++) {
		if (job->child[i].pid <= 0)
			continue;
		left = true;
		if (!hung_up(&job->child[i]))
			continue;
		sys_join(&job->child[i]);
		job->child[i].pid = 0;
	}
	return left;
}

void ht_end(struct ht_job *job)
{
	int64_t deadline = sys_deadline();
	uint64_t last = 0;
	uint32_t i;

	if (job->processes) {
		while (join_ended(job))
			get_on(&last, &deadline, "processes");
		return;
	}
	while (__atomic_load_n(&job->over, __ATOMIC_ACQUIRE) < job->ranks)
		get_on(&last, &deadline, "threads");
	for (i = 0; i < job->ranks; i++)
		pthread_join(job->thread[i], NULL);
	acl_ok(aclFinalize());
}

void ht_run(struct ht_job *job)
{
	ht_begin(job);
	ht_end(job);
}

void ht_run_both(ht_fn fn, uint32_t ranks, bool bare)
{
	struct ht_job job = { .ranks = ranks, .bare = bare, .fn = fn };

	ht_run(&job);
	job.processes = true;
	ht_run(&job);
}

void ht_kill(struct ht_job *job, uint32_t rank)
{
	sys_kill(&job->child[rank]);
	job->child[rank].pid = 0;
}

/* ---- Communicators, streams, memory ----------------------------------------------- */

HcclComm ht_comm(struct ht_rank *r, const HcclCommConfig *config)
{
	HcclRootInfo *root = &ht_shared->root[0];
	HcclComm comm = NULL;

	if (!r->rank)
		ht_ok(HcclGetRootInfo(root));
	ht_barrier(r);
	if (config)
		ht_ok(HcclCommInitRootInfoConfig(r->ranks, root, r->rank, config, &comm));
	else
		ht_ok(HcclCommInitRootInfo(r->ranks, root, r->rank, &comm));
	sys_true(comm, "no communicator");
	/* the next one's root info goes to the same place */
	ht_barrier(r);
	return comm;
}

void ht_sync(struct ht_rank *r)
{
	acl_ok(aclrtSynchronizeStream(r->stream));
	ht_progress();
}

const char *ht_sync_fails(struct ht_rank *r)
{
	char *text = ht_shared->text[r->rank];
	aclError err = aclrtSynchronizeStream(r->stream);
	const char *msg = aclGetRecentErrMsg();

	ht_progress();
	sys_true(err, "rank %u: the stream has not failed", r->rank);
	sys_true(msg, "rank %u: %d without a message", r->rank, err);
	snprintf(text, HT_TEXT, "%s", msg);
	return text;
}

void *ht_device(size_t bytes, const void *host)
{
	void *p = NULL;

	acl_ok(aclrtMalloc(&p, bytes ? bytes : 1, ACL_MEM_MALLOC_HUGE_FIRST));
	if (host && bytes)
		acl_ok(aclrtMemcpy(p, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
	else
		acl_ok(aclrtMemset(p, bytes ? bytes : 1, 0, bytes ? bytes : 1));
	return p;
}

void ht_compare(const char *what, const void *device, const void *host, size_t bytes)
{
	void *got = malloc(bytes ? bytes : 1);

	sys_true(got, "no memory");
	if (bytes)
		acl_ok(aclrtMemcpy(got, bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
	sys_same(what, got, host, bytes);
	free(got);
}

#define PROOF	1000u

void ht_proves(struct ht_rank *r, HcclComm comm, uint32_t more)
{
	uint32_t ranks, rank, host[PROOF], want[PROOF], i;
	void *buf;

	ht_ok(HcclGetRankSize(comm, &ranks));
	ht_ok(HcclGetRankId(comm, &rank));
	for (i = 0; i < PROOF; i++) {
		host[i] = rank + more + i;
		want[i] = ranks * (ranks - 1) / 2 + ranks * (more + i);
	}
	buf = ht_device(sizeof(host), host);
	ht_ok(HcclAllReduce(buf, buf, PROOF, HCCL_DATA_TYPE_UINT32, HCCL_REDUCE_SUM, comm,
			    r->stream));
	ht_sync(r);
	ht_compare("the sum", buf, want, sizeof(want));
	acl_ok(aclrtFree(buf));
}
