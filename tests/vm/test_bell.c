// SPDX-License-Identifier: MIT
/*
 * Doorbells are plain stores: none is lost, whenever it comes, and an engine with
 * nothing to do does nothing.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "raw.h"

#define PARAM(name)	"/sys/module/npuemu/parameters/" #name
#define LOST_MS		2000	/* a store whose completion takes longer was lost */
#define MAX_US		20000u	/* an idle queue is looked at for so long, whatever happens */

struct bell {
	struct raw r;
	struct raw_bo bo;
	struct raw_cq cq;
	struct raw_q q;
};

static void bell_open(struct bell *b, uint32_t device, uint32_t type)
{
	raw_open(&b->r, device);
	raw_bo_make(&b->r, &b->bo, 64 * KIB);
	raw_cq_make(&b->r, &b->cq, 64);
	raw_q_make(&b->r, &b->q, &b->cq, device, type, 64);
}

static void bell_close(struct bell *b)
{
	munmap(b->bo.p, b->bo.room);
	raw_close(&b->r);
}

static void spin_us(uint64_t us)
{
	int64_t end = npuemu_now_ns() + (int64_t)us * 1000;

	while (npuemu_now_ns() < end)
		;
}

/* Post, store, look: false if it took so long that only the watchdog can have found it. */
static bool one(struct bell *b, uint64_t value)
{
	struct npuemu_cqe cqe;

	raw_post_fill(&b->q, b->bo.p, value, 8);
	raw_ring(&b->q);
	if (!raw_spin(&b->cq, &cqe, LOST_MS))
		return false;
	raw_status_is(__FILE__, __LINE__, raw_status(&cqe), NPUEMU_ST_SUCCESS);
	sys_eq(*(uint64_t *)(void *)b->bo.p, value);
	return true;
}

/* Gaps around the limit at which an idle queue is parked: from awake to asleep. */
static unsigned int random_gaps(struct bell *b, unsigned int n, uint64_t seed)
{
	uint64_t limit = b->r.q.poll_us, rnd = seed, gap;
	unsigned int lost = 0;

	for (unsigned int i = 0; i < n; i++) {
		gap = sys_rand(&rnd) % (2 * limit + 1);
		/* now and then much longer, when it is surely asleep, and for long */
		if (!(sys_rand(&rnd) % 32))
			gap += 3 * MAX_US;
		if (gap > 2 * limit)
			usleep((useconds_t)gap);
		else
			spin_us(gap);
		lost += !one(b, i + 1);
	}
	return lost;
}

static void none_lost(uint32_t type, unsigned int n)
{
	struct npuemu_ioc_device before = { 0 }, after = { 0 };
	uint64_t missed = raw_missed();
	struct bell b;

	bell_open(&b, 0, type);
	raw_is(raw_ioctl(b.r.fd, NPUEMU_IOC_DEVICE, &before), 0);
	sys_eq(random_gaps(&b, n, type + 1), 0);
	raw_is(raw_ioctl(b.r.fd, NPUEMU_IOC_DEVICE, &after), 0);
	sys_eq(raw_missed(), missed);
	/* else the test was none: it was asleep, and woke by a fault, many times */
	sys_true(after.engine_parks - before.engine_parks >= n / 50 &&
		 after.db_faults - before.db_faults >= n / 50, "%llu parks and %llu faults in %u",
		 (unsigned long long)(after.engine_parks - before.engine_parks),
		 (unsigned long long)(after.db_faults - before.db_faults), n);
	sys_eq(raw_query(&b.q).cnt.wqes, n);
	bell_close(&b);
}

static void sdma_gaps(void **state)
{
	(void)state;
	none_lost(RAW_SDMA, 1000);
}

/* The same with two contexts at a time, one of them on the other engine. */
static void rival(int fd, void *unused)
{
	struct raw_seg s;
	struct bell b;
	uint64_t rnd = 9;
	char c;

	(void)unused;
	bell_open(&b, 0, RAW_UDMA);
	raw_seg_make(&b.bo, &s, SYS_RWA);
	sys_go(fd);
	while (recv(fd, &c, 1, MSG_DONTWAIT) != 1) {
		struct npuemu_cqe cqe;

		raw_post_write(&b.q, b.bo.p, 64, &s, 4096);
		raw_ring(&b.q);
		sys_true(raw_spin(&b.cq, &cqe, LOST_MS), "WQE %u was lost", b.q.pi);
		usleep((useconds_t)(sys_rand(&rnd) % (2 * b.r.q.poll_us + 1)));
	}
}

static void gaps_with_a_rival(void **state)
{
	struct raw_child c;

	(void)state;
	raw_fork(&c, rival, NULL);
	sys_wait_go(c.fd);
	none_lost(RAW_SDMA, 1000);
	sys_go(c.fd);
	raw_join(&c);
}

/* Several blocks a store, more than twice around the ring; the index goes on. */
static void around_the_ring(void **state)
{
	struct npuemu_cqe cqe;
	uint64_t rnd = 11;
	struct bell b;

	(void)state;
	bell_open(&b, 1, RAW_SDMA);
	while (b.q.pi < 3 * b.q.depth + 5) {
		uint32_t n = 1 + (uint32_t)(sys_rand(&rnd) % b.q.depth);

		for (uint32_t i = 0; i < n; i++)
			raw_post_fill(&b.q, b.bo.p + 8 * i, b.q.pi, 8);
		raw_ring(&b.q);
		for (uint32_t i = 0; i < n; i++) {
			sys_true(raw_spin(&b.cq, &cqe, LOST_MS), "%u of %u at %u", i, n, b.q.pi);
			raw_status_is(__FILE__, __LINE__, raw_status(&cqe), NPUEMU_ST_SUCCESS);
		}
		for (uint32_t i = 0; i < n; i++)
			sys_eq(((uint64_t *)(void *)b.bo.p)[i], b.q.pi - n + i);
	}
	sys_eq(raw_query(&b.q).ci, b.q.pi);
	bell_close(&b);
}

/* Rung again and again without anything new: not counted, not lost, not executed. */
static void nothing_new(void **state)
{
	struct npuemu_cqe cqe;
	struct bell b;

	(void)state;
	bell_open(&b, 0, RAW_SDMA);
	sys_true(one(&b, 1), "lost");
	for (int i = 0; i < 2000; i++) {
		raw_ring(&b.q);
		if (!(i % 100))
			usleep(3000);
	}
	sys_true(!raw_poll(&b.cq, &cqe), "a completion of nothing");
	sys_eq(raw_query(&b.q).cnt.wqes, 1);
	sys_true(one(&b, 2), "lost");
	bell_close(&b);
}

/* An index that cannot be: the queue stops, and says why. */
static void nonsense(void **state)
{
	static const uint32_t jumps[] = { 65, 1000, 0x80000000, 0xffffffff };
	struct npuemu_cqe cqe;
	int64_t deadline;
	struct bell b;

	(void)state;
	for (unsigned int i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
		bell_open(&b, 0, RAW_SDMA);
		sys_true(one(&b, 1), "lost");
		__atomic_store_n(b.q.db, b.q.pi + jumps[i], __ATOMIC_RELEASE);
		deadline = sys_deadline();
		while (raw_query(&b.q).state != NPUEMU_QS_ERROR)
			sys_true(sys_retry(deadline), "PI + %#x: still in state %u", jumps[i],
				 raw_query(&b.q).state);
		sys_true(raw_query(&b.q).cause[0], "PI + %#x: no cause", jumps[i]);
		/* after a reset it is as good as new */
		raw_is(raw_modify(&b.q, NPUEMU_QS_RESET), 0);
		raw_is(raw_modify(&b.q, NPUEMU_QS_READY), 0);
		while (raw_poll(&b.cq, &cqe))
			;
		sys_true(one(&b, 3), "lost after a reset");
		bell_close(&b);
	}
}

/* ---- Idle -------------------------------------------------------------------------- */

/* Context switches so far of all engine threads; how many there are. */
static uint64_t switches(unsigned int *threads)
{
	unsigned long long n, sum = 0;
	char path[300], line[200];
	DIR *d = opendir("/proc");
	struct dirent *e;

	*threads = 0;
	while ((e = readdir(d))) {
		bool ours = false;
		FILE *f;

		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/status", e->d_name);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			if (!strncmp(line, "Name:\tnpuemu", 12) && strstr(line, "dma"))
				ours = true;
			if (ours && (sscanf(line, "voluntary_ctxt_switches: %llu", &n) == 1 ||
				     sscanf(line, "nonvoluntary_ctxt_switches: %llu", &n) == 1))
				sum += n;
		}
		if (f)
			fclose(f);
		*threads += ours;
	}
	closedir(d);
	return sum;
}

static void idle_post(struct raw_q *q, struct raw_bo *bo, const struct raw_seg *seg)
{
	if (raw_query(q).type == RAW_SDMA)
		raw_post_fill(q, bo->p, 77, 8);
	else
		raw_post_write(q, bo->p, 8, seg, 4096);
}

static void idle(void **state)
{
	enum { QUEUES = 32 };
	struct raw_cq cq[2];
	struct raw_q q[QUEUES];
	struct npuemu_cqe cqe;
	unsigned int threads;
	struct raw_seg seg;
	struct raw_bo bo;
	uint64_t before;
	struct raw r;

	(void)state;
	raw_open(&r, 0);
	raw_bo_make(&r, &bo, 64 * KIB);
	raw_seg_make(&bo, &seg, SYS_RWA);
	for (int i = 0; i < 2; i++)
		raw_cq_make(&r, &cq[i], 256);
	/* on each of the engines */
	for (uint32_t i = 0; i < QUEUES; i++)
		raw_q_make(&r, &q[i], &cq[i & 1], i & 1, i >> 1 & 1, 64);
	/* all of them have worked, and are parked */
	for (int i = 0; i < QUEUES; i++) {
		idle_post(&q[i], &bo, &seg);
		raw_completes(&q[i], NPUEMU_ST_SUCCESS);
	}
	sys_nap(1500);
	before = switches(&threads);
	sys_true(threads == 2 * r.q.devices, "%u engine threads", threads);
	sys_nap(5000);
	sys_eq(switches(&threads), before);
	/* and the first store wakes one */
	for (int i = 0; i < QUEUES; i += 7) {
		idle_post(&q[i], &bo, &seg);
		raw_ring(&q[i]);
		sys_true(raw_spin(q[i].cq, &cqe, LOST_MS), "queue %d does not wake", i);
	}
	munmap(bo.p, bo.room);
	raw_close(&r);
}

/* ---- How long an idle queue is looked at --------------------------------------------- */

#define TRACING		"/sys/kernel/tracing"
#define INSTANCE	TRACING "/instances/npuemu-test"
#define NAPPED		"the test has slept"	/* its mark in the trace */
/* On a debug kernel it takes longer from a park to the next store. */
#define MIN_US		(getenv("NPUEMU_TEST_PATIENCE") ? 9000u : 2000u)

static void knob(const char *path, const char *value)
{
	sys_true(raw_write_file(path, value), "%s: %s", path, strerror(errno));
}

static uint64_t parks(struct bell *b)
{
	struct npuemu_ioc_device d = { 0 };

	raw_is(raw_ioctl(b->r.fd, NPUEMU_IOC_DEVICE, &d), 0);
	return d.engine_parks;
}

/* A store, and the queue is parked again when it returns. */
static void one_until_parked(struct bell *b)
{
	uint64_t before = parks(b);
	int64_t end = sys_deadline();

	sys_true(one(b, b->q.pi + 1), "lost");
	while (parks(b) == before)
		sys_true(npuemu_now_ns() < end, "it is never parked");
}

/* The number behind a name in a line of the trace. */
static uint64_t traced(const char *line, const char *name)
{
	const char *at = strstr(line, name);

	sys_true(at, "no \"%s\" in \"%s\"", name, line);
	return strtoull(at + strlen(name), NULL, 10);
}

struct limits {
	unsigned int doubled;
	unsigned int at_most;	/* stayed at the maximum */
	unsigned int back;	/* at the minimum again */
};

/*
 * What the limit has to be after a sleep of @asleep us, from the limit @was: twice as
 * much if that was shorter, else the minimum.  @asleep is more than the driver looked at,
 * by as much as it was kept from tracing that; @napped: the test has slept for longer
 * than any limit, with the queue parked.
 */
static void limit_is(struct limits *l, uint64_t was, uint64_t asleep, bool napped, uint64_t now)
{
	uint64_t twice = was * 2 < MAX_US ? was * 2 : MAX_US;
	bool may_double = !napped, may_fall = asleep >= was;

	sys_true((may_double && now == twice) || (may_fall && now == MIN_US),
		 "%llu us after a %s of %llu, and %llu before", (unsigned long long)now,
		 napped ? "nap" : "sleep", (unsigned long long)asleep, (unsigned long long)was);
	l->doubled += now == was * 2;
	l->at_most += now == was && now == MAX_US;
	l->back += now < was;
}

static struct limits limits_read(const struct bell *b)
{
	FILE *f = fopen(INSTANCE "/trace", "re");
	bool woken = false, nap = false, napped = false;
	uint64_t was = 0, asleep = 0;
	struct limits l = { 0 };
	char line[400];

	sys_true(f, "%s: %s", INSTANCE "/trace", strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		bool park = strstr(line, "npuemu_park: ");

		nap |= !!strstr(line, NAPPED);
		if ((!park && !strstr(line, "npuemu_wake: ")) ||
		    traced(line, "slot=") != b->r.q.slot || traced(line, "queue=") != b->q.id)
			continue;
		if (!park) {
			woken = strstr(line, "why=fault");
			asleep = traced(line, "parked_us=");
			napped = nap;
			nap = false;
			continue;
		}
		/* the first time it had never slept */
		if (was && woken)
			limit_is(&l, was, asleep, napped, traced(line, "poll_us="));
		was = traced(line, "poll_us=");
	}
	fclose(f);
	return l;
}

/* Woken at once after it was parked: that did not pay, so the next time it waits longer. */
static void limit_doubles(void **state)
{
	int64_t deadline = sys_deadline();
	long before = raw_number(PARAM(poll_us));
	struct limits l = { 0 };
	char text[32];
	struct bell b;

	(void)state;
	if (access(TRACING "/instances", F_OK))
		raw_skip("the kernel has no tracing");
	raw_is(raw_sys(mkdir(INSTANCE, 0700)), 0);
	knob(INSTANCE "/events/npuemu/npuemu_park/enable", "1");
	knob(INSTANCE "/events/npuemu/npuemu_wake/enable", "1");
	snprintf(text, sizeof(text), "%u", MIN_US);
	knob(PARAM(poll_us), text);
	bell_open(&b, 0, RAW_SDMA);
	/* a busy machine may be too slow for it, now and then */
	while ((!l.at_most || !l.back || l.doubled < 4) && sys_retry(deadline)) {
		for (int i = 0; i < 8; i++)
			one_until_parked(&b);
		usleep(3 * MAX_US);
		knob(INSTANCE "/trace_marker", NAPPED);
		one_until_parked(&b);
		l = limits_read(&b);
	}
	snprintf(text, sizeof(text), "%ld", before);
	knob(PARAM(poll_us), text);
	bell_close(&b);
	raw_is(raw_sys(rmdir(INSTANCE)), 0);
	sys_true(l.doubled >= 4 && l.at_most && l.back,
		 "doubled %u times, %u times at its maximum, %u times back", l.doubled, l.at_most,
		 l.back);
}

/* ---- The two conditions, with their windows opened wide ---------------------------------- */

static void knobs_reset(void)
{
	knob(PARAM(db_park_delay_us), "0");
	knob(PARAM(db_fault_delay_us), "0");
	knob(PARAM(db_no_recheck), "N");
	knob(PARAM(db_no_lock), "N");
}

/* Stores timed so that they fall into the windows; how many the watchdog had to find. */
static uint64_t in_the_window(const char *window, const char *width, const char *without,
			      unsigned int n)
{
	uint64_t before = raw_missed(), rnd = 1;
	struct bell b;

	bell_open(&b, 0, RAW_SDMA);
	knob(window, width);
	if (without)
		knob(without, "Y");
	for (unsigned int i = 0; i < n && (!without || raw_missed() == before); i++) {
		/* at random from awake to well asleep */
		spin_us(b.r.q.poll_us / 2 + sys_rand(&rnd) % (4 * b.r.q.poll_us));
		one(&b, i + 1);
	}
	/* the watchdog looks every 100 ms */
	sys_nap(300);
	knobs_reset();
	bell_close(&b);
	return raw_missed() - before;
}

static void both_needed(void **state)
{
	(void)state;
	if (access(PARAM(db_no_recheck), F_OK))
		raw_skip("the module was built without NPUEMU_DEBUG=1");
	sys_eq(in_the_window(PARAM(db_park_delay_us), "500", NULL, 300), 0);
	sys_eq(in_the_window(PARAM(db_fault_delay_us), "3000", NULL, 60), 0);
	sys_true(in_the_window(PARAM(db_park_delay_us), "500", PARAM(db_no_recheck), 2000),
		 "without the second look no store was lost: the test shows nothing");
	sys_true(in_the_window(PARAM(db_fault_delay_us), "3000", PARAM(db_no_lock), 2000),
		 "without the lock no store was lost: the test shows nothing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(sdma_gaps),
		raw_test(gaps_with_a_rival),
		raw_test(around_the_ring),
		raw_test(nothing_new),
		raw_test(nonsense),
		raw_test(idle),
		raw_test(limit_doubles),
		raw_test(both_needed),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
