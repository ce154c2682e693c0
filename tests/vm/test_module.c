// SPDX-License-Identifier: MIT
/*
 * The module comes and goes: parameters that it takes and that it refuses, nodes opened
 * meanwhile, loading that is broken off, and a device with more than 4 GiB.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "reload.h"

/* ---- Parameters ---------------------------------------------------------------------- */

#define PARAM(name)	"/sys/module/npuemu/parameters/" name

/* What is wrong, and what the kernel log has to name; ERANGE is of the kernel's parser. */
static const struct {
	const char *params;
	const char *says;
	int err;
} refused[] = {
	{ "topology=small devices=33", "devices=33", -EINVAL },
	{ "topology=950 devices=65", "devices=65", -EINVAL },
	{ "devices=4294967295", "devices=4294967295", -EINVAL },
	{ "devices=4294967296", "`devices'", -ERANGE },
	{ "devices=-1", "`devices'", -EINVAL },
	{ "devices=two", "`devices'", -EINVAL },
	{ "devices=", "`devices'", -EINVAL },
	{ "hbm_mb=1048577", "hbm_mb=1048577", -EINVAL },
	{ "hbm_mb=4294967295", "hbm_mb=4294967295", -EINVAL },
	{ "hbm_mb=4294967296", "`hbm_mb'", -ERANGE },
	{ "hbm_mb=-1", "`hbm_mb'", -EINVAL },
	{ "hbm_mb=1G", "`hbm_mb'", -EINVAL },
	{ "budget_mb=4294967296", "`budget_mb'", -ERANGE },
	{ "budget_mb=-1", "`budget_mb'", -EINVAL },
	{ "budget_mb=half", "`budget_mb'", -EINVAL },
	{ "topology=", "topology=", -EINVAL },
	{ "topology=951", "topology=951", -EINVAL },
	{ "topology=SMALL", "topology=SMALL", -EINVAL },
	{ "topology=small.txt", "topology=small.txt", -EINVAL },
	{ "topology=/share/npuemu/machines/small.txt", "topology=/share", -EINVAL },
	{ "poll_us=0", "`poll_us'", -EINVAL },
	{ "poll_us=1000001", "`poll_us'", -EINVAL },
	{ "poll_us=4294967296", "`poll_us'", -ERANGE },
	{ "poll_us=-1", "`poll_us'", -EINVAL },
	{ "poll_us=500us", "`poll_us'", -EINVAL },
	{ "chaos=18446744073709551616", "`chaos'", -ERANGE },
	{ "chaos=-1", "`chaos'", -EINVAL },
	{ "chaos=yes", "`chaos'", -EINVAL },
};

/* The kernel log from now on. */
static int log_here(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	sys_true(fd >= 0, "/dev/kmsg: %s", strerror(errno));
	lseek(fd, 0, SEEK_END);
	return fd;
}

/* Is there a line of ours with the words? */
static bool log_says(int fd, const char *words)
{
	char line[2048];
	ssize_t n;

	while ((n = read(fd, line, sizeof(line) - 1)) > 0 || errno == EPIPE) {
		if (n <= 0)
			continue;
		line[n] = 0;
		if (strstr(line, "npuemu: ") && strstr(line, words))
			return true;
	}
	return false;
}

static void out_of_range(void **state)
{
	struct reload m = reload_find();
	char params[800];

	(void)state;
	reload_unload();
	for (unsigned int i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		int log = log_here(), rc;

		/* what is not named is as it should be */
		snprintf(params, sizeof(params), "topology=small %s", refused[i].params);
		rc = reload_load(&m, params);
		sys_true(rc == refused[i].err, "%s: %d (%s), not %s", params, rc, strerror(-rc),
			 strerror(-refused[i].err));
		sys_true(log_says(log, refused[i].says), "%s: no \"%s\" in the kernel log",
			 params, refused[i].says);
		close(log);
		sys_true(!reload_loaded() && access("/dev/npuemu-ctl", F_OK), "%s left something",
			 params);
	}
	raw_is(reload_load(&m, m.params), 0);
}

static struct npuemu_ioc_query query(void)
{
	struct npuemu_ioc_query q = { 0 };
	int fd = raw_node(0);

	raw_is(raw_ioctl(fd, NPUEMU_IOC_QUERY, &q), 0);
	close(fd);
	return q;
}

/* The first and last values that are right, and what comes of them. */
static void limits(void **state)
{
	struct reload m = reload_find();
	struct npuemu_ioc_query q;

	(void)state;
	reload_as(&m, "topology=small devices=1 hbm_mb=1 budget_mb=1 poll_us=1 chaos=1");
	q = query();
	sys_eq(q.devices, 1);
	sys_eq(q.hbm_bytes, 1 * MIB);
	sys_eq(q.budget_bytes, 1 * MIB);
	sys_eq(q.poll_us, 1);
	reload_as(&m, "topology=small devices=32 hbm_mb=1048576 budget_mb=4294967295 poll_us=1000000 chaos=18446744073709551615");
	q = query();
	sys_eq(q.devices, 32);
	sys_eq(q.hbm_bytes, 1024 * GIB);
	sys_eq(q.budget_bytes, 4294967295 * MIB);
	sys_eq(q.poll_us, 1000000);
	reload_as(&m, "topology=950 devices=64");
	sys_eq(query().devices, 64);
	/* 0 is what the machine has */
	reload_as(&m, "topology=small devices=0 hbm_mb=0 budget_mb=0 chaos=0");
	q = query();
	sys_eq(q.devices, 2);
	sys_eq(q.hbm_bytes, 1 * GIB);
	sys_true(q.budget_bytes > 1 * MIB, "a budget of %llu", q.budget_bytes);
}

static int write_number(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc;

	sys_true(fd >= 0, "%s: %s", path, strerror(errno));
	rc = (int)raw_sys(write(fd, text, strlen(text)));
	close(fd);
	return rc < 0 ? rc : 0;
}

/* poll_us alone may be changed later, within its range. */
static void at_run_time(void **state)
{
	static const char *const bad[] = { "0", "1000001", "-1", "x", "1 2" };
	static const char *const fixed[] = {
		PARAM("devices"), PARAM("hbm_mb"), PARAM("budget_mb"), PARAM("topology"),
		PARAM("chaos"),
	};
	long before = raw_number(PARAM("poll_us"));
	char text[32];
	struct stat st;

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		raw_is(write_number(PARAM("poll_us"), bad[i]), -EINVAL);
		sys_eq(raw_number(PARAM("poll_us")), before);
	}
	raw_is(write_number(PARAM("poll_us"), "4294967297"), -ERANGE);
	sys_eq(raw_number(PARAM("poll_us")), before);
	raw_is(write_number(PARAM("poll_us"), "1000000"), 0);
	sys_eq(query().poll_us, 1000000);
	raw_is(write_number(PARAM("poll_us"), "1"), 0);
	sys_eq(query().poll_us, 1);
	snprintf(text, sizeof(text), "%ld", before);
	raw_is(write_number(PARAM("poll_us"), text), 0);
	for (unsigned int i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		sys_true(!stat(fixed[i], &st), "%s: %s", fixed[i], strerror(errno));
		sys_true(!(st.st_mode & 0222), "%s: mode %o", fixed[i],
			 (unsigned int)st.st_mode);
	}
}

/* ---- Opening meanwhile ------------------------------------------------------------------- */

struct opener {
	pthread_t thread;
	unsigned int nr;
	unsigned long tried;
	unsigned long opened;
};

static bool openers_stop;

/* Once it is open, it is all there. */
static void use(int fd, bool ctl)
{
	struct npuemu_ioc_bo_create bo = { .bytes = 8192 };
	struct npuemu_ioc_device d = { 0 };
	struct npuemu_ioc_query q = { 0 };
	void *p;

	raw_is(raw_ioctl(fd, NPUEMU_IOC_QUERY, &q), 0);
	raw_is(raw_ioctl(fd, NPUEMU_IOC_DEVICE, &d), 0);
	sys_true(q.devices && q.board_id && d.hbm_bytes == q.hbm_bytes, "%u devices of board %#x",
		 q.devices, q.board_id);
	if (ctl)
		return;
	raw_is(raw_ioctl(fd, NPUEMU_IOC_BO_CREATE, &bo), 0);
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)bo.map_offset);
	sys_true(p != MAP_FAILED, "mmap: %s", strerror(errno));
	*(volatile char *)p = 1;
	munmap(p, 8192);
}

/* Each node in turn: it is not there, or nobody is behind it, or it works. */
static void *open_nodes(void *arg)
{
	struct opener *o = arg;
	char path[32];
	int fd;

	for (unsigned int i = o->nr; !__atomic_load_n(&openers_stop, __ATOMIC_ACQUIRE); i++) {
		bool ctl = !(i % 3);

		if (ctl)
			snprintf(path, sizeof(path), "/dev/npuemu-ctl");
		else
			snprintf(path, sizeof(path), "/dev/npuemu%u", i % 4);
		fd = open(path, O_RDWR | O_CLOEXEC);
		__atomic_fetch_add(&o->tried, 1, __ATOMIC_RELEASE);
		if (fd < 0) {
			sys_true(errno == ENOENT || errno == ENXIO, "%s: %s", path,
				 strerror(errno));
			sched_yield();
			continue;
		}
		__atomic_fetch_add(&o->opened, 1, __ATOMIC_RELEASE);
		use(fd, ctl);
		close(fd);
		/* else nobody could ever unload it */
		usleep(500);
	}
	return NULL;
}

#define OPENERS	3

static void openers_start(struct opener o[OPENERS])
{
	memset(o, 0, OPENERS * sizeof(*o));
	__atomic_store_n(&openers_stop, false, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < OPENERS; i++) {
		o[i].nr = i;
		sys_true(!pthread_create(&o[i].thread, NULL, open_nodes, &o[i]), "pthread_create");
	}
}

static void openers_end(struct opener o[OPENERS])
{
	__atomic_store_n(&openers_stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < OPENERS; i++)
		pthread_join(o[i].thread, NULL);
}

static unsigned long opened(struct opener o[OPENERS])
{
	unsigned long n = 0;

	for (int i = 0; i < OPENERS; i++)
		n += __atomic_load_n(&o[i].opened, __ATOMIC_ACQUIRE);
	return n;
}

static void opened_meanwhile(void **state)
{
	struct reload m = reload_find();
	struct opener o[OPENERS];
	unsigned long before;
	int64_t deadline;

	(void)state;
	reload_unload();
	openers_start(o);
	for (int i = 0; i < 20; i++) {
		before = opened(o);
		raw_is(reload_load(&m, "topology=small devices=4"), 0);
		deadline = sys_deadline();
		while (opened(o) < before + 5)
			sys_true(sys_retry(deadline), "nobody gets in");
		reload_unload();
	}
	openers_end(o);
	for (int i = 0; i < OPENERS; i++)
		sys_true(o[i].tried > o[i].opened, "opener %d never came too early", i);
}

/* Loads it, and is killed before it is done. */
static void loader(int fd, void *arg)
{
	(void)fd;
	reload_load(arg, "topology=950 devices=64");
	pause();
}

/* Killed when node @nr is there: false if that was too late, and it is loaded. */
static bool broken_off(struct reload *m, unsigned int nr)
{
	int64_t end = sys_deadline();
	struct raw_child c;
	char path[32];

	snprintf(path, sizeof(path), "/dev/npuemu%u", nr);
	raw_fork(&c, loader, m);
	while (access(path, F_OK)) {
		sys_true(npuemu_now_ns() < end, "%s does not come", path);
		sched_yield();
	}
	raw_kill(&c);
	return !reload_loaded();
}

/*
 * Making a thread can be interrupted by SIGKILL: init fails after some of the devices
 * are there.  Nobody may have opened one of them, for its file would outlive the module.
 */
static void load_broken_off(void **state)
{
	struct reload m = reload_find();
	struct opener o[OPENERS];
	unsigned int undone = 0;
	unsigned long before;
	int64_t deadline;
	uint64_t rnd = 1;

	(void)state;
	reload_unload();
	openers_start(o);
	deadline = sys_deadline();
	/* whether the signal comes in time is a matter of luck, more so on a busy machine */
	for (unsigned int i = 0; i < 12 || undone < 3; i++) {
		sys_true(i < 12 || sys_retry(deadline), "only %u of %u were broken off", undone, i);
		before = opened(o);
		if (broken_off(&m, (unsigned int)(sys_rand(&rnd) % 48))) {
			undone++;
			sys_eq(opened(o), before);
			sys_true(access("/sys/class/npuemu", F_OK) &&
				 access("/sys/kernel/debug/npuemu", F_OK), "something is left");
		} else {
			reload_unload();
		}
	}
	openers_end(o);
	/* nothing of it stands in the way */
	raw_is(reload_load(&m, "topology=950 devices=64"), 0);
	sys_eq(query().devices, 64);
}

/* ---- Above 4 GiB --------------------------------------------------------------------------- */

#define LARGE	(6 * GIB)

struct large {
	struct raw r;
	struct raw_bo bo;
	struct raw_bo small;
	struct raw_seg seg;
	struct raw_cq cq[2];
	struct raw_q udma;
	struct raw_q sdma;
};

/* Where a number that is too narrow would have ended up: still untouched. */
static void no_alias(struct large *l, uint64_t off, uint64_t len)
{
	static const uint64_t wrong[] = { 1ull << 31, 1ull << 32 };

	for (int i = 0; i < 2; i++)
		if (off >= wrong[i])
			sys_is_byte("an alias", l->bo.p + off % wrong[i], len, 0);
}

static void large_write(struct large *l, uint64_t off, uint32_t len, uint64_t seed)
{
	sys_fill(l->small.p, len, seed);
	raw_post_write(&l->udma, l->small.p, len, &l->seg, off);
	raw_completes(&l->udma, NPUEMU_ST_SUCCESS);
	sys_is_filled("written by an engine", l->bo.p + off, len, seed);
	no_alias(l, off, len);
	memset(l->small.p, 0, len);
	raw_post_read(&l->udma, l->small.p, len, &l->seg, off);
	raw_completes(&l->udma, NPUEMU_ST_SUCCESS);
	sys_is_filled("read by an engine", l->small.p, len, seed);
}

/* Within the buffer, both ends above 4 GiB, or across it. */
static void large_copy(struct large *l, uint64_t to, uint64_t from, uint64_t len)
{
	sys_fill(l->bo.p + from, len, to);
	raw_post_copy(&l->sdma, l->bo.p + to, l->bo.p + from, len);
	raw_completes(&l->sdma, NPUEMU_ST_SUCCESS);
	sys_is_filled("copied", l->bo.p + to, len, to);
	no_alias(l, to, len);
}

/* A window of the end, mapped and named on its own, through a dma-buf as well. */
static void large_window(struct large *l)
{
	struct npuemu_ioc_bo_export ex = { .handle = l->bo.handle, .flags = O_RDWR | O_CLOEXEC };
	const uint64_t off = 5 * GIB + 16 * KIB, va = 0x100000000000;
	unsigned char *p[2];

	raw_is(raw_ioctl(l->r.fd, NPUEMU_IOC_BO_EXPORT, &ex), 0);
	p[0] = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, l->r.fd,
		    (off_t)(l->bo.offset + off));
	p[1] = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, ex.fd, (off_t)off);
	sys_true(p[0] != MAP_FAILED && p[1] != MAP_FAILED, "mmap: %s", strerror(errno));
	sys_fill(p[0], 64 * KIB, 77);
	sys_is_filled("through the dma-buf", p[1], 64 * KIB, 77);
	sys_is_filled("at its place", l->bo.p + off, 64 * KIB, 77);
	no_alias(l, off, 64 * KIB);
	raw_is(raw_va_map(&l->r, va, 64 * KIB, l->bo.handle, off, 0), 0);
	raw_post_copy(&l->sdma, l->small.p, (void *)va, 64 * KIB);
	raw_completes(&l->sdma, NPUEMU_ST_SUCCESS);
	sys_is_filled("by the other address", l->small.p, 64 * KIB, 77);
	/* to the last page, and not one further */
	raw_is(raw_va_map(&l->r, va + GIB, 4096, l->bo.handle, LARGE - 4096, 0), 0);
	raw_is(raw_va_map(&l->r, va + 2 * GIB, 8192, l->bo.handle, LARGE - 4096, 0), -EINVAL);
	raw_is(raw_sys(mmap(NULL, 8192, PROT_READ, MAP_SHARED, l->r.fd,
			    (off_t)(l->bo.offset + LARGE - 4096))), -EINVAL);
	raw_is(raw_sys(mmap(NULL, 8192, PROT_READ, MAP_SHARED, ex.fd, (off_t)(LARGE - 4096))),
	       -EINVAL);
	munmap(p[0], 64 * KIB);
	munmap(p[1], 64 * KIB);
	close(ex.fd);
}

static void above_4_gib(void **state)
{
	/* no two alike in their last 31 bits before the last one; 2 and 4 GiB are crossed */
	static const uint64_t at[] = {
		4 * GIB - 30000, 4 * GIB + 200000, 5 * GIB + 2 * MIB - 8, LARGE - 60000,
		2 * GIB - 4096,
	};
	struct reload m = reload_find();
	struct npuemu_ioc_query q = { 0 };
	struct large l;

	(void)state;
	reload_as(&m, "topology=small hbm_mb=8192");
	raw_open(&l.r, 0);
	raw_bo_make(&l.r, &l.bo, LARGE);
	raw_bo_make(&l.r, &l.small, 64 * KIB);
	raw_seg_make(&l.bo, &l.seg, SYS_RWA);
	for (int i = 0; i < 2; i++)
		raw_cq_make(&l.r, &l.cq[i], 64);
	raw_q_make(&l.r, &l.udma, &l.cq[0], 0, RAW_UDMA, 64);
	raw_q_make(&l.r, &l.sdma, &l.cq[1], 0, RAW_SDMA, 64);
	for (unsigned int i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		large_write(&l, at[i], 60000, i + 1);
	large_copy(&l, 4 * GIB + 8 * MIB, 5 * GIB + 8 * MIB, 100000);
	large_copy(&l, 5 * GIB + 16 * MIB, 4 * GIB - 50000, 100000);
	large_copy(&l, 4 * GIB - 8 * MIB - 3, 64 * MIB + 1, 3 * MIB);
	large_window(&l);
	/* it ends where it ends */
	raw_post_write(&l.udma, l.small.p, 4096, &l.seg, LARGE - 4095);
	raw_completes(&l.udma, NPUEMU_ST_REM_ACCESS_ABORT);
	raw_post_copy(&l.sdma, l.small.p, l.bo.p + LARGE - 4095, 4096);
	raw_completes(&l.sdma, NPUEMU_ST_LOC_ACCESS);
	/* only what was touched is there */
	raw_is(raw_ioctl(l.r.fd, NPUEMU_IOC_QUERY, &q), 0);
	sys_true(q.backed_bytes < 256 * MIB, "%llu bytes are backed", q.backed_bytes);
	munmap(l.bo.p, l.bo.room);
	munmap(l.small.p, l.small.room);
	raw_close(&l.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		reload_test(out_of_range),
		reload_test(limits),
		reload_test(at_run_time),
		reload_test(opened_meanwhile),
		reload_test(load_broken_off),
		reload_test(above_4_gib),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
