// SPDX-License-Identifier: MIT
/*
 * Who pays for memory, and how much there is: the limit that the rings of all
 * contexts have together, and the cgroup of who made a buffer or a ring.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "raw.h"

#define PAGE	4096ull

/* ---- Rings of all contexts --------------------------------------------------------- */

static int cq_try(struct raw *r, uint32_t depth, uint32_t *handle)
{
	struct npuemu_ioc_cq_create a = { .depth = depth };
	int rc = raw_ioctl(r->fd, NPUEMU_IOC_CQ_CREATE, &a);

	if (!rc)
		*handle = a.handle;
	return rc;
}

static int cq_drop(struct raw *r, uint32_t handle)
{
	struct npuemu_ioc_handle a = { .handle = handle };

	return raw_ioctl(r->fd, NPUEMU_IOC_CQ_DESTROY, &a);
}

/* As many as there may be, the largest first, in two contexts by turns: pages of them all. */
static uint64_t all_rings(struct raw r[2])
{
	uint64_t pages = 0;
	uint32_t handle;
	int rc = 0;

	for (uint32_t depth = NPUEMU_CQ_MAX, n = 0; depth >= NPUEMU_CQ_MIN; depth /= 2) {
		while (!(rc = cq_try(&r[n & 1], depth, &handle))) {
			pages += depth * sizeof(struct npuemu_cqe) / PAGE;
			n++;
		}
		raw_is(rc, -ENOMEM);
	}
	return pages;
}

static uint64_t pages_of_ram(void)
{
	struct sysinfo s;

	raw_is(raw_sys(sysinfo(&s)), 0);
	return (uint64_t)s.totalram * s.mem_unit / PAGE;
}

/* Nothing with a ring can be made; everything else can. */
static void full(struct raw *r, struct raw_cq *cq)
{
	struct npuemu_ioc_queue_create q = { .depth = NPUEMU_SQ_MIN_BB, .cq = cq->handle };
	struct npuemu_ioc_rq_create rq = {
		.depth = NPUEMU_RQ_MIN, .max_sge = 1, .cq = cq->handle,
	};
	uint32_t handle;
	struct raw_bo bo;

	/* what is refused counts for nothing, however often */
	for (int i = 0; i < 1000; i++) {
		raw_is(cq_try(r, NPUEMU_CQ_MIN, &handle), -ENOMEM);
		raw_is(cq_try(r, NPUEMU_CQ_MAX, &handle), -ENOMEM);
		raw_is(raw_ioctl(r->fd, NPUEMU_IOC_QUEUE_CREATE, &q), -ENOMEM);
		raw_is(raw_ioctl(r->fd, NPUEMU_IOC_RQ_CREATE, &rq), -ENOMEM);
	}
	raw_bo_make(r, &bo, 64 * KIB);
	memset(bo.p, 1, bo.room);
	raw_bo_drop(&bo);
}

static void rings_together(void **state)
{
	struct raw_cq cq, small;
	struct raw r[2], third;
	uint32_t handle[2];
	uint64_t pages;

	(void)state;
	raw_open(&r[0], 0);
	raw_open(&r[1], 1);
	raw_open(&third, 0);
	raw_cq_make(&third, &cq, NPUEMU_CQ_MIN);
	raw_cq_make(&r[0], &small, NPUEMU_CQ_MIN);
	pages = all_rings(r) + 2;
	sys_eq(pages, pages_of_ram() / 4);
	full(&third, &cq);
	/* a page that one gives back, another may have, and nobody a second one */
	raw_is(raw_cq_destroy(&small), 0);
	raw_is(cq_try(&third, NPUEMU_CQ_MIN, &handle[0]), 0);
	raw_is(cq_try(&third, NPUEMU_CQ_MIN, &handle[1]), -ENOMEM);
	raw_is(cq_drop(&third, handle[0]), 0);
	raw_is(cq_try(&r[1], NPUEMU_CQ_MIN, &handle[0]), 0);
	/* half of them by a close, and then all */
	raw_close(&r[0]);
	raw_is(cq_try(&third, NPUEMU_CQ_MAX, &handle[0]), 0);
	raw_is(cq_drop(&third, handle[0]), 0);
	raw_close(&r[1]);
	raw_open(&r[0], 1);
	raw_open(&r[1], 0);
	sys_eq(all_rings(r) + 1, pages);
	raw_close(&r[0]);
	raw_close(&r[1]);
	raw_close(&third);
}

/* ---- cgroups ----------------------------------------------------------------------- */

/* What counters of a cgroup may be behind, or other memory of the same process. */
#define SLACK		(1 * MIB)
#define GROUP_MAX	(64 * MIB)

static char root[64], group[80];

static const char *in(const char *dir, const char *file)
{
	static __thread char path[160];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return path;
}

static bool group_make(void)
{
	const char *tmp = getenv("TMPDIR");
	char max[32];

	/* an earlier test may have left it behind */
	snprintf(root, sizeof(root), "%.40s/cgroup", tmp ? tmp : "/tmp");
	umount2(root, MNT_DETACH);
	rmdir(root);
	snprintf(group, sizeof(group), "%s/maker", root);
	raw_is(raw_sys(mkdir(root, 0700)), 0);
	raw_is(raw_sys(mount("cgroup", root, "cgroup2", 0, NULL)), 0);
	if (!raw_write_file(in(root, "cgroup.subtree_control"), "+memory"))
		return false;
	raw_is(mkdir(group, 0700) && errno != EEXIST ? -errno : 0, 0);
	snprintf(max, sizeof(max), "%llu", GROUP_MAX);
	sys_true(raw_write_file(in(group, "memory.max"), max), "%s has no memory.max", group);
	return true;
}

static void group_drop(void)
{
	int64_t deadline = sys_deadline();

	/* a child that has just ended is in it a moment longer */
	while (rmdir(group) && errno == EBUSY)
		sys_true(sys_retry(deadline), "%s: %s", group, strerror(errno));
	raw_is(raw_sys(umount2(root, MNT_DETACH)), 0);
	raw_is(raw_sys(rmdir(root)), 0);
}

static void enter(const char *dir)
{
	sys_true(raw_write_file(in(dir, "cgroup.procs"), "0"), "%s: %s", dir, strerror(errno));
}

static uint64_t charged(void)
{
	long n = raw_number(in(group, "memory.current"));

	sys_true(n >= 0, "%s cannot be read", in(group, "memory.current"));
	return (uint64_t)n;
}

static void charged_is(uint64_t from, uint64_t bytes, const char *what)
{
	uint64_t now = charged();

	sys_true(now + SLACK >= from + bytes && now <= from + bytes + SLACK,
		 "%s: %llu KiB more are charged, not %llu", what,
		 (unsigned long long)(now - from) / KIB, (unsigned long long)bytes / KIB);
}

/* Nobody was killed for it. */
static void nobody_killed(void)
{
	FILE *f = fopen(in(group, "memory.events"), "r");
	unsigned long long n, kills = 1;
	char name[32];

	sys_true(f, "%s has no memory.events", group);
	while (fscanf(f, "%31s %llu", name, &n) == 2)
		if (!strcmp(name, "oom_kill"))
			kills = n;
	fclose(f);
	sys_eq(kills, 0);
}

/* The whole of it is touched, a page a chunk; the signal if there was one. */
static int touch_all(unsigned char *p, uint64_t bytes)
{
	int sig = 0;

	for (uint64_t at = 0; at < bytes && !sig; at += 2 * MIB)
		sig = raw_touch(p + at, true);
	return sig;
}

/*
 * Makes the buffer in the group, and leaves it: nobody is in there when its memory runs
 * out, so nobody can be killed for it.
 */
static void maker(int fd, void *unused)
{
	struct npuemu_ioc_bo_name name = { 0 };
	uint64_t before;
	struct raw_bo bo, other;
	struct raw_cq cq;
	struct raw_q q;
	struct raw r;

	(void)unused;
	raw_open(&r, 0);
	enter(group);
	raw_bo_make(&r, &bo, 256 * MIB);
	enter(root);
	raw_bo_make(&r, &other, 16 * MIB);
	raw_cq_make(&r, &cq, 64);
	raw_q_make(&r, &q, &cq, 0, RAW_SDMA, 64);
	before = charged();
	/* by its own processor, and by an engine */
	raw_is(touch_all(bo.p, 16 * MIB), 0);
	charged_is(before, 16 * MIB, "touched by its maker");
	raw_post_fill(&q, bo.p + 16 * MIB, 0x11, 8 * MIB);
	raw_completes(&q, NPUEMU_ST_SUCCESS);
	charged_is(before, 24 * MIB, "touched by an engine");
	/* made outside, and so not paid for here */
	raw_is(touch_all(other.p, other.room), 0);
	charged_is(before, 24 * MIB, "another buffer");
	name.handle = bo.handle;
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_BO_NAME, &name), 0);
	sys_put(fd, name.name, sizeof(name.name));
	sys_put(fd, &before, sizeof(before));
	sys_wait_go(fd);
	/* 40 MiB are there; of the rest the group has not enough */
	raw_is(touch_all(bo.p, 40 * MIB), 0);
	raw_is(touch_all(bo.p + 40 * MIB, 40 * MIB), SIGBUS);
	raw_post_fill(&q, bo.p + 128 * MIB, 0x22, 64 * MIB);
	raw_completes(&q, NPUEMU_ST_LOC_ACCESS);
	sys_true(strstr(raw_query(&q).cause, "out of memory"), "\"%s\" names no memory",
		 raw_query(&q).cause);
	sys_true(charged() <= GROUP_MAX, "more than there may be");
	nobody_killed();
	/* the buffer it made elsewhere goes on, and so does what it has */
	raw_is(touch_all(other.p, other.room), 0);
	raw_is(touch_all(bo.p, 40 * MIB), 0);
	raw_bo_drop(&bo);
	charged_is(before, 0, "after it was closed");
}

/* Somebody else, in no group, touches what the maker has to pay. */
static void guest_of(const uint64_t *name, uint64_t before)
{
	struct npuemu_ioc_bo_open op = { 0 };
	unsigned char *p;
	struct raw r;

	raw_open(&r, 0);
	memcpy(op.name, name, sizeof(op.name));
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_BO_OPEN, &op), 0);
	p = mmap(NULL, op.room, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, (off_t)op.map_offset);
	sys_true(p != MAP_FAILED, "mmap: %s", strerror(errno));
	raw_is(touch_all(p + 24 * MIB, 16 * MIB), 0);
	charged_is(before, 40 * MIB, "touched by another process");
	munmap(p, op.room);
	raw_close(&r);
}

static void hbm_in_a_cgroup(void **state)
{
	uint64_t name[4], before;
	struct raw_child c;

	(void)state;
	if (!group_make())
		raw_skip("the kernel counts no memory of cgroups");
	raw_fork(&c, maker, NULL);
	sys_get(c.fd, name, sizeof(name));
	sys_get(c.fd, &before, sizeof(before));
	guest_of(name, before);
	sys_go(c.fd);
	raw_join(&c);
	group_drop();
}

/*
 * Large ones, so that there is room for everything else that is needed in the group when
 * the next one is refused.
 */
static void ring_maker(int fd, void *unused)
{
	uint64_t before, each = NPUEMU_CQ_MAX * sizeof(struct npuemu_cqe);
	uint32_t handle[64], n;
	struct raw r;
	int rc = 0;

	(void)fd;
	(void)unused;
	enter(group);
	raw_open(&r, 0);
	before = charged();
	for (n = 0; n < 64 && !(rc = cq_try(&r, NPUEMU_CQ_MAX, &handle[n])); n++)
		if (n < 8)
			charged_is(before, (n + 1) * each, "rings");
	enter(root);
	raw_is(rc, -ENOMEM);
	sys_true(n >= 12 && n <= GROUP_MAX / each, "%u rings of 4 MiB fit in 64 MiB", n);
	nobody_killed();
	/* outside there is no such limit */
	raw_is(cq_try(&r, NPUEMU_CQ_MAX, &handle[n]), 0);
	raw_is(cq_drop(&r, handle[n]), 0);
	while (n)
		raw_is(cq_drop(&r, handle[--n]), 0);
	sys_true(charged() <= before + SLACK, "%llu KiB stay",
		 (unsigned long long)(charged() - before) / KIB);
}

static void rings_in_a_cgroup(void **state)
{
	struct raw_child c;

	(void)state;
	if (!group_make())
		raw_skip("the kernel counts no memory of cgroups");
	raw_fork(&c, ring_maker, NULL);
	raw_join(&c);
	group_drop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(rings_together),
		raw_test(hbm_in_a_cgroup),
		raw_test(rings_in_a_cgroup),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
