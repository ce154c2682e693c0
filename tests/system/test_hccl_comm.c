// SPDX-License-Identifier: MIT
/*
 * Communicators: how they are made, by root info, all at once, by rank table, of another
 * one; configured; and who is named when ranks do not come, or disagree about settings.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hccltest.h"

#define COUNT	1000u

/* ---- Root info ------------------------------------------------------------------ */

static void asks(struct ht_rank *r)
{
	HcclResult async = HCCL_E_INTERNAL;
	char name[COMM_NAME_MAX_LENGTH], other[COMM_NAME_MAX_LENGTH];
	uint32_t v = 99;

	ht_ok(HcclGetRankSize(r->comm, &v));
	sys_eq(v, r->ranks);
	ht_ok(HcclGetRankId(r->comm, &v));
	sys_eq(v, r->rank);
	ht_ok(HcclGetCommAsyncError(r->comm, &async));
	sys_eq(async, HCCL_SUCCESS);
	ht_ok(HcclGetCommName(r->comm, name));
	sys_true(name[0] && memchr(name, 0, sizeof(name)), "no name");
	/* all ranks know it by the same one */
	snprintf(ht_shared->text[r->rank], HT_TEXT, "%s", name);
	ht_barrier(r);
	snprintf(other, sizeof(other), "%.127s", ht_shared->text[0]);
	sys_true(!strcmp(other, name), "%s, but %s at rank 0", name, other);
	ht_proves(r, r->comm, 1);
}

static void root_info(void **state)
{
	uint32_t n;

	(void)state;
	for (n = 1; n <= HT_RANKS; n += n == 3 ? 2 : 1 + (n > 4) * 2)
		ht_run_both(asks, n, false);
}

/* Two meetings at once, the second one first; both are used. */
static void two(struct ht_rank *r)
{
	HcclComm a, b;
	char ip[64];
	int i;

	if (!r->rank)
		for (i = 0; i < 2; i++)
			ht_ok(HcclGetRootInfo(&ht_shared->root[i]));
	ht_barrier(r);
	sys_true(memcmp(&ht_shared->root[0], &ht_shared->root[1], sizeof(HcclRootInfo)), "the same");
	/* it begins with an address in letters */
	snprintf(ip, sizeof(ip), "%.63s", ht_shared->root[0].internal);
	sys_true(ip[0] && strspn(ip, "0123456789abcdef.:") == strlen(ip), "address: %s", ip);
	ht_ok(HcclCommInitRootInfo(r->ranks, &ht_shared->root[1], r->rank, &b));
	ht_ok(HcclCommInitRootInfo(r->ranks, &ht_shared->root[0], r->ranks - 1 - r->rank, &a));
	ht_proves(r, a, 1);
	ht_proves(r, b, 2);
	ht_ok(HcclCommDestroy(a));
	ht_proves(r, b, 3);
	ht_ok(HcclCommDestroy(b));
}

static void two_meetings(void **state)
{
	(void)state;
	ht_run_both(two, 3, true);
}

static void wrong_root(struct ht_rank *r)
{
	HcclRootInfo bent, *root = &ht_shared->root[0];
	HcclComm c = NULL;

	ht_ok(HcclGetRootInfo(root));
	memset(&bent, 0, sizeof(bent));
	ht_fails(HcclCommInitRootInfo(1, &bent, 0, &c), HCCL_E_PARA);
	memset(&bent, 0x61, sizeof(bent));
	ht_fails(HcclCommInitRootInfo(1, &bent, 0, &c), HCCL_E_PARA);
	ht_fails(HcclCommInitRootInfo(1, NULL, 0, &c), HCCL_E_PTR);
	ht_fails(HcclCommInitRootInfo(1, root, 0, NULL), HCCL_E_PTR);
	ht_fails(HcclGetRootInfo(NULL), HCCL_E_PTR);
	ht_says(HcclCommInitRootInfo(1, root, 1, &c), HCCL_E_PARA, "rank 1 of 1");
	ht_fails(HcclCommInitRootInfo(0, root, 0, &c), HCCL_E_PARA);
	ht_fails(HcclCommInitRootInfo(1000000, root, 0, &c), HCCL_E_PARA);
	ht_fails(HcclCommInitRootInfoConfig(1, root, 0, NULL, &c), HCCL_E_PTR);
	sys_true(!c, "a communicator after all");
	/* none of these has used it up; and it is good for one */
	ht_ok(HcclCommInitRootInfo(1, root, 0, &r->comm));
	ht_fails(HcclCommInitRootInfo(1, root, 0, &c), HCCL_E_PARA);
	ht_proves(r, r->comm, 0);
}

static void wrong_root_info(void **state)
{
	(void)state;
	ht_run_both(wrong_root, 1, true);
}

/* They do not agree how many there are: who comes second is told, the first waits in vain. */
static void numbers(struct ht_rank *r)
{
	HcclResult ret;
	HcclComm c;

	if (!r->rank)
		ht_ok(HcclGetRootInfo(&ht_shared->root[0]));
	ht_barrier(r);
	ret = HcclCommInitRootInfo(2 + r->rank, &ht_shared->root[0], r->rank, &c);
	sys_true(ret == HCCL_E_PARA || ret == HCCL_E_TIMEOUT, "ranks differ: %d", ret);
	if (ret == HCCL_E_PARA)
		ht_said(__FILE__, __LINE__, "ranks differ", "others say");
	ht_add(ret == HCCL_E_PARA, 1);
	ht_barrier(r);
	sys_eq(ht_get(0), 1);
	sys_eq(ht_get(1), 1);
}

static void numbers_differ(void **state)
{
	(void)state;
	ht_env("HCCL_CONNECT_TIMEOUT", "1");
	ht_run_both(numbers, 2, true);
	ht_env_restore();
}

static void no_device(void **state)
{
	HcclRootInfo root;

	(void)state;
	acl_ok(aclInit(NULL));
	ht_says(HcclGetRootInfo(&root), HCCL_E_RUNTIME, "aclrtSetDevice");
	acl_ok(aclFinalize());
}

/* ---- All at once ------------------------------------------------------------------- */

static void init_all(void **state)
{
	int32_t devices[5] = { 3, 0, 7, 1, 2 }, twice[2] = { 1, 1 }, far[2] = { 0, 99 };
	uint32_t host[COUNT], want[COUNT], v, i;
	aclrtStream stream[5];
	HcclComm comm[5];
	void *buf[5];

	(void)state;
	acl_ok(aclInit(NULL));
	acl_ok(aclrtSetDevice(0));
	ht_says(HcclCommInitAll(2, twice, comm), HCCL_E_PARA, "devices[1]");
	sys_true(HcclCommInitAll(2, far, comm), "device 99 is there");
	ht_fails(HcclCommInitAll(0, devices, comm), HCCL_E_PARA);
	ht_fails(HcclCommInitAll(2, NULL, comm), HCCL_E_PTR);
	ht_fails(HcclCommInitAll(2, devices, NULL), HCCL_E_PTR);
	ht_ok(HcclCommInitAll(5, devices, comm));
	for (i = 0; i < COUNT; i++)
		want[i] = 5 * i + 10;
	for (v = 0; v < 5; v++) {
		uint32_t rank = 9;

		ht_ok(HcclGetRankId(comm[v], &rank));
		sys_eq(rank, v);
		for (i = 0; i < COUNT; i++)
			host[i] = i + v;
		acl_ok(aclrtSetDevice(devices[v]));
		acl_ok(aclrtCreateStream(&stream[v]));
		buf[v] = ht_device(sizeof(host), host);
		ht_ok(HcclAllReduce(buf[v], buf[v], COUNT, HCCL_DATA_TYPE_UINT32, HCCL_REDUCE_SUM,
				    comm[v], stream[v]));
	}
	for (v = 0; v < 5; v++) {
		acl_ok(aclrtSetDevice(devices[v]));
		acl_ok(aclrtSynchronizeStream(stream[v]));
		ht_compare("the sum", buf[v], want, sizeof(want));
		acl_ok(aclrtFree(buf[v]));
		acl_ok(aclrtDestroyStream(stream[v]));
		ht_ok(HcclCommDestroy(comm[v]));
	}
	acl_ok(aclFinalize());
}

/* ---- Configuration --------------------------------------------------------------------- */

static void config(struct ht_rank *r)
{
	HcclOpExpansionMode mode = HCCL_OP_EXPANSION_MODE_INVALID;
	char name[COMM_NAME_MAX_LENGTH], algo[HCCL_COMM_ALGO_MAX_LENGTH];
	HcclCommConfig c;
	HcclComm comm;

	HcclCommConfigInit(&c);
	c.hcclBufferSize = 3;
	c.hcclDeterministic = 1;
	c.hcclOpExpansionMode = 3;
	snprintf(c.hcclCommName, sizeof(c.hcclCommName), "the ring of %u", r->ranks);
	snprintf(c.hcclAlgo, sizeof(c.hcclAlgo), "level0:ring");
	r->comm = ht_comm(r, &c);
	ht_ok(HcclGetCommName(r->comm, name));
	sys_true(!strcmp(name, c.hcclCommName), "named %s", name);
	ht_ok(HcclConfigGetInfo(r->comm, HCCL_CONFIG_TYPE_OP_EXPANSION_MODE, sizeof(mode), &mode));
	sys_eq(mode, HCCL_OP_EXPANSION_MODE_AIV);
	ht_ok(HcclConfigGetInfo(r->comm, HCCL_CONFIG_TYPE_HCCL_ALGO, sizeof(algo), algo));
	sys_true(strstr(algo, "ring"), "the algorithm: %s", algo);
	ht_fails(HcclConfigGetInfo(r->comm, HCCL_CONFIG_TYPE_INVALID, sizeof(algo), algo), HCCL_E_PARA);
	ht_fails(HcclConfigGetInfo(r->comm, HCCL_CONFIG_TYPE_HCCL_ALGO, sizeof(algo), NULL), HCCL_E_PTR);
	ht_fails(HcclConfigGetInfo(r->comm, HCCL_CONFIG_TYPE_OP_EXPANSION_MODE, 1, algo), HCCL_E_PARA);
	ht_proves(r, r->comm, 4);
	/* an early version of it ends behind the second member */
	memset(&c.hcclCommName, 0x7f, sizeof(c) - offsetof(HcclCommConfig, hcclCommName));
	memcpy(c.reserved, &(size_t){ 32 }, sizeof(size_t));
	memcpy(c.reserved + 12, &(uint32_t){ 1 }, sizeof(uint32_t));
	comm = ht_comm(r, &c);
	ht_proves(r, comm, 5);
	ht_ok(HcclCommDestroy(comm));
}

static void configured(void **state)
{
	(void)state;
	ht_run_both(config, 4, true);
}

#define REFUSED(change, word)							\
	do {									\
		HcclCommConfigInit(&c);						\
		change;								\
		ht_says(HcclCommInitRootInfoConfig(1, root, 0, &c, &comm), HCCL_E_PARA, word);	\
	} while (0)

static void bad(struct ht_rank *r)
{
	HcclRootInfo *root = &ht_shared->root[0];
	HcclComm comm = NULL;
	HcclCommConfig c;

	ht_ok(HcclGetRootInfo(root));
	REFUSED(c.reserved[9] ^= 1, "magic");
	REFUSED(c.hcclBufferSize = 0, "hcclBufferSize is 0");
	REFUSED(c.hcclDeterministic = 3, "hcclDeterministic is 3");
	REFUSED(c.hcclOpExpansionMode = 7, "hcclOpExpansionMode is 7");
	REFUSED(c.hcclExecTimeOut = -2, "hcclExecTimeOut is -2");
	REFUSED(strcpy(c.hcclAlgo, "level0:circle"), "circle");
	REFUSED(strcpy(c.hcclRetryEnable, "L7:1"), "hcclRetryEnable");
	sys_true(!comm, "a communicator after all");
	HcclCommConfigInit(&c);
	ht_ok(HcclCommInitRootInfoConfig(1, root, 0, &c, &r->comm));
}

static void bad_config(void **state)
{
	(void)state;
	ht_run_both(bad, 1, true);
}

static void bad_env(struct ht_rank *r)
{
	HcclComm c = NULL;

	(void)r;
	ht_ok(HcclGetRootInfo(&ht_shared->root[0]));
	ht_says(HcclCommInitRootInfo(1, &ht_shared->root[0], 0, &c), HCCL_E_PARA, "HCCL_BUFFSIZE");
}

static void bad_environment(void **state)
{
	(void)state;
	ht_env("HCCL_BUFFSIZE", "none");
	ht_run_both(bad_env, 1, true);
	ht_env_restore();
}

/* Rank 1 is configured in another way: all are told by whom, and what it is. */
static void differs(struct ht_rank *r)
{
	HcclCommConfig c;
	HcclComm comm = NULL;
	int what;

	for (what = 0; what < 3; what++) {
		HcclCommConfigInit(&c);
		if (r->rank == 1) {
			if (what == 0)
				c.hcclDeterministic = 1;
			else if (what == 1)
				c.hcclBufferSize = 7;
			else
				strcpy(c.hcclAlgo, "level0:NHR");
		}
		if (!r->rank)
			ht_ok(HcclGetRootInfo(&ht_shared->root[what]));
		ht_barrier(r);
		ht_is(__FILE__, __LINE__, "settings differ",
		      HcclCommInitRootInfoConfig(3, &ht_shared->root[what], r->rank, &c, &comm),
		      HCCL_E_PARA);
		snprintf(ht_shared->text[r->rank], HT_TEXT, "%s", aclGetRecentErrMsg());
		ht_words(ht_shared->text[r->rank], "1", what == 0 ? "deterministic" :
			 what == 1 ? "buffer" : "NHR");
		ht_barrier(r);
	}
	sys_true(!comm, "a communicator after all");
}

static void settings_differ(void **state)
{
	(void)state;
	ht_run_both(differs, 3, true);
}

/* ---- Who does not come ------------------------------------------------------------------- */

static void absent(struct ht_rank *r)
{
	HcclComm c = NULL;
	time_t begin = time(NULL);

	if (!r->rank)
		ht_ok(HcclGetRootInfo(&ht_shared->root[0]));
	ht_barrier(r);
	if (r->rank != 2) {
		ht_is(__FILE__, __LINE__, "rank 2 is missing",
		      HcclCommInitRootInfo(4, &ht_shared->root[0], r->rank, &c), HCCL_E_TIMEOUT);
		snprintf(ht_shared->text[r->rank], HT_TEXT, "%s", aclGetRecentErrMsg());
		ht_words(ht_shared->text[r->rank], "EI0015", "missing: 2", "HCCL_CONNECT_TIMEOUT");
		sys_true(time(NULL) - begin < 30, "it took %ld s", (long)(time(NULL) - begin));
	}
	ht_barrier(r);
	sys_true(!c, "a communicator after all");
}

static void missing_rank(void **state)
{
	(void)state;
	ht_env("HCCL_CONNECT_TIMEOUT", "0.7");
	ht_run_both(absent, 4, true);
	ht_env_restore();
}

/* ---- Rank table ------------------------------------------------------------------------------ */

static void write_table(char *path, size_t size, uint32_t ranks, const char *server)
{
	const char *dir = getenv("TMPDIR");
	FILE *f;

	snprintf(path, size, "%s/table-%s-%u.json", dir ? dir : "/tmp", server, ranks);
	f = fopen(path, "w");
	sys_true(f, "%s cannot be written", path);
	fprintf(f, "{\"status\":\"completed\",\"version\":\"1.0\",\"server_count\":\"%u\",\"server_list\":[", (ranks + 7) / 8);
	for (uint32_t i = 0; i < ranks; i++) {
		if (i % 8 == 0)
			fprintf(f, "%s{\"server_id\":\"%s%.*u\",\"device\":[", i ? "]}," : "", server, i ? 2 : 0, i / 8);
		fprintf(f, "%s{\"device_id\":\"%u\",\"device_ip\":\"192.168.%u.%u\",\"rank_id\":\"%u\"}",
			i % 8 ? "," : "", i % 8, i / 8 + 1, i % 8 + 1, i);
	}
	fprintf(f, "]}]}\n");
	fclose(f);
}

static void by_table(struct ht_rank *r)
{
	const char *path = r->arg;
	char none[200];
	HcclCommConfig c;
	HcclComm comm = NULL;

	ht_ok(HcclCommInitClusterInfo(path, r->rank, &r->comm));
	ht_proves(r, r->comm, 6);
	/* the same table again: not while the first is there */
	HcclCommConfigInit(&c);
	snprintf(c.hcclCommName, sizeof(c.hcclCommName), "second");
	ht_says(HcclCommInitClusterInfoConfig(path, r->rank, &c, &comm), HCCL_E_UNAVAIL, "already");
	ht_barrier(r);
	ht_ok(HcclCommDestroy(r->comm));
	ht_barrier(r);
	ht_ok(HcclCommInitClusterInfoConfig(path, r->rank, &c, &comm));
	ht_proves(r, comm, 7);
	ht_ok(HcclCommDestroy(comm));
	r->comm = NULL;
	comm = NULL;
	/* another rank's device */
	if (r->ranks > 1)
		ht_says(HcclCommInitClusterInfo(path, (r->rank + 1) % r->ranks, &comm), HCCL_E_UNAVAIL, "EI0014");
	ht_says(HcclCommInitClusterInfo(path, r->ranks, &comm), HCCL_E_PARA, "EI0014");
	snprintf(none, sizeof(none), "%s.none", path);
	ht_says(HcclCommInitClusterInfo(none, r->rank, &comm), HCCL_E_OPEN_FILE_FAILURE, "EI0004");
	if (!r->rank) {
		write_table(none, sizeof(none), 129, "large");
		ht_says(HcclCommInitClusterInfo(none, 0, &comm), HCCL_E_PARA, "129 ranks");
		sys_eq(unlink(none), 0);
	}
	/* this program is no JSON */
	ht_says(HcclCommInitClusterInfo("/proc/self/exe", r->rank, &comm), HCCL_E_PARA, "EI0004");
	ht_fails(HcclCommInitClusterInfo(NULL, r->rank, &comm), HCCL_E_PTR);
	ht_fails(HcclCommInitClusterInfo(path, r->rank, NULL), HCCL_E_PTR);
	ht_fails(HcclCommInitClusterInfoConfig(path, r->rank, NULL, &comm), HCCL_E_PTR);
	sys_true(!comm, "a communicator after all");
}

static void rank_table(void **state)
{
	char path[160];
	struct ht_job job = { .bare = true, .fn = by_table, .arg = path, .bytes = sizeof(path) };

	(void)state;
	for (job.ranks = 1; job.ranks <= 4; job.ranks += 3) {
		write_table(path, sizeof(path), job.ranks, "one");
		for (int i = 0; i < 3; i++) {
			job.processes = i < 2;	/* the same twice: what the first left is not taken */
			ht_run(&job);
		}
		unlink(path);
	}
}

/* ---- Two jobs with one rank table -------------------------------------------------------------- */

struct mpich {
	char table[160];
	uint32_t job;
};

static void mpich_rank(const struct mpich *m, uint32_t rank, int fd)
{
	struct ht_rank r = { .rank = rank, .ranks = 2, .process = true };
	static const char *const others[] = {
		"NPUEMU_JOB", "PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID", "OMPI_MCA_ess_base_jobid",
	};
	char text[16];

	for (uint32_t i = 0; i < 5; i++)
		unsetenv(others[i]);
	snprintf(text, sizeof(text), "%d", fd);
	setenv("PMI_FD", text, 1);
	setenv("HCCL_CONNECT_TIMEOUT", "60", 1);
	/* of the other job, too, rank 0 has come by then, and left its note */
	if (rank)
		sys_nap(500);
	acl_ok(aclInit(NULL));
	acl_ok(aclrtSetDevice((int32_t)rank));
	acl_ok(aclrtCreateStream(&r.stream));
	ht_ok(HcclCommInitClusterInfo(m->table, rank, &r.comm));
	ht_proves(&r, r.comm, 1000 * m->job);
	ht_ok(HcclCommDestroy(r.comm));
	acl_ok(aclrtDestroyStream(r.stream));
	acl_ok(aclFinalize());
	_exit(0);
}

/* As MPICH's launcher: nothing but a socket to this process tells its ranks which job they are of. */
static void mpich_proxy(int fd, const void *arg)
{
	int fds[2][2], status, good = 0;
	uint32_t rank;
	pid_t pid;

	(void)fd;
	sys_eq(prctl(PR_SET_NAME, "hydra_pmi_proxy"), 0);
	for (rank = 0; rank < 2; rank++) {
		sys_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[rank]), 0);
		pid = fork();
		sys_true(pid >= 0, "fork");
		if (!pid)
			mpich_rank(arg, rank, fds[rank][1]);
	}
	while ((pid = wait(&status)) > 0)
		good += WIFEXITED(status) && !WEXITSTATUS(status);
	sys_eq(good, 2);
}

static void two_jobs(void **state)
{
	struct sys_child c[2];
	struct mpich m;
	uint32_t i;

	(void)state;
	write_table(m.table, sizeof(m.table), 2, "mpich");
	for (m.job = 0; m.job < 2; m.job++)
		sys_spawn(&c[m.job], mpich_proxy, &m, sizeof(m));
	for (i = 0; i < 2; i++)
		sys_join(&c[i]);
	unlink(m.table);
}

/* ---- Sub-communicators -------------------------------------------------------------------------- */

static void make_sub(struct ht_rank *r, HcclComm *sub)
{
	uint32_t even[] = { 4, 0, 2 }, odd[] = { 1, 3 }, i;
	HcclCommConfig c;

	HcclCommConfigInit(&c);
	if (r->rank == 5) {
		ht_ok(HcclCreateSubCommConfig(&r->comm, 0, NULL, 0xffffffff, 0, &c, sub));
		sys_true(!*sub, "a communicator for a rank outside");
		return;
	}
	for (i = 0; i < 3; i++) {
		if (even[i] == r->rank)
			ht_ok(HcclCreateSubCommConfig(&r->comm, 3, even, 17, i, &c, sub));
		if (i < 2 && odd[i] == r->rank)
			ht_ok(HcclCreateSubCommConfig(&r->comm, 2, odd, 18, i, &c, sub));
	}
}

static void subs(struct ht_rank *r)
{
	char world[COMM_NAME_MAX_LENGTH], name[COMM_NAME_MAX_LENGTH], want[COMM_NAME_MAX_LENGTH + 16];
	uint32_t self[] = { 0 }, twice[] = { 0, 0 }, far[] = { 0, 6 };
	HcclComm sub = NULL, none = NULL;
	HcclCommConfig c;
	uint32_t v;

	make_sub(r, &sub);
	if (sub) {
		static const uint32_t sizes[] = { 3, 2 }, places[] = { 1, 0, 2, 1, 0 };

		ht_ok(HcclGetRankSize(sub, &v));
		sys_eq(v, sizes[r->rank & 1]);
		ht_ok(HcclGetRankId(sub, &v));
		sys_eq(v, places[r->rank]);
		ht_ok(HcclGetCommName(r->comm, world));
		ht_ok(HcclGetCommName(sub, name));
		snprintf(want, sizeof(want), "%s_sub_%u", world, 17 + (r->rank & 1));
		sys_true(!strcmp(name, want), "%s, not %s", name, want);
		for (v = 0; v < 20; v++)
			ht_proves(r, sub, v);
	}
	ht_proves(r, r->comm, 1);
	/* an id, and a name, once at a time */
	HcclCommConfigInit(&c);
	if (sub && r->rank == 0) {
		ht_says(HcclCreateSubCommConfig(&r->comm, 1, self, 17, 0, &c, &none), HCCL_E_PARA, "_sub_17");
		memcpy(c.hcclCommName, name, sizeof(name));
		ht_says(HcclCreateSubCommConfig(&r->comm, 1, self, 3, 0, &c, &none), HCCL_E_PARA, "_sub_17");
		ht_fails(HcclCreateSubCommConfig(&sub, 1, self, 3, 0, &c, &none), HCCL_E_NOT_SUPPORT);
		ht_fails(HcclCreateSubCommConfig(&r->comm, 2, twice, 3, 0, &c, &none), HCCL_E_PARA);
		ht_fails(HcclCreateSubCommConfig(&r->comm, 2, far, 3, 0, &c, &none), HCCL_E_PARA);
		ht_fails(HcclCreateSubCommConfig(&r->comm, 2, far, 3, 2, &c, &none), HCCL_E_PARA);
		ht_fails(HcclCreateSubCommConfig(&r->comm, 0, self, 3, 0, &c, &none), HCCL_E_PARA);
		ht_fails(HcclCreateSubCommConfig(&r->comm, 1, NULL, 3, 0, &c, &none), HCCL_E_PARA);
		ht_fails(HcclCreateSubCommConfig(&r->comm, 1, self, 0xffffffff, 0, &c, &none), HCCL_E_PARA);
		ht_fails(HcclCreateSubCommConfig(&r->comm, 1, self, 3, 0, NULL, &none), HCCL_E_PTR);
		ht_fails(HcclCreateSubCommConfig(NULL, 1, self, 3, 0, &c, &none), HCCL_E_PTR);
		ht_fails(HcclCreateSubCommConfig(&r->comm, 1, self, 3, 0, &c, NULL), HCCL_E_PTR);
		sys_true(!none, "a communicator after all");
	}
	if (sub)
		ht_ok(HcclCommDestroy(sub));
	/* the same id again */
	sub = NULL;
	make_sub(r, &sub);
	if (sub) {
		ht_proves(r, sub, 30);
		ht_ok(HcclCommDestroy(sub));
	}
	ht_proves(r, r->comm, 2);
}

static void sub_communicators(void **state)
{
	(void)state;
	ht_run_both(subs, 6, false);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ht_test(root_info),
		ht_test(two_meetings),
		ht_test(wrong_root_info),
		ht_test(numbers_differ),
		ht_test(no_device),
		ht_test(init_all),
		ht_test(configured),
		ht_test(bad_config),
		ht_test(bad_environment),
		ht_test(settings_differ),
		ht_test(missing_rank),
		ht_test(rank_table),
		ht_test(two_jobs),
		ht_test(sub_communicators),
	};

	ht_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
