// SPDX-License-Identifier: MIT
/*
 * Ends: closing with work in flight, with a sleeper, with mappings; being killed;
 * descriptors in the wrong hands; the module while it is in use.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "busy.h"

/* ---- close() ------------------------------------------------------------------------ */

static void in_flight(void **state)
{
	struct busy b;

	(void)state;
	for (unsigned int i = 0; i < 10; i++) {
		busy_open(&b, i & 1);
		busy_post(&b);
		sys_nap(i);
		busy_close(&b);
	}
}

/* Everything in it is taken away while its queue works. */
static void in_flight_piecewise(void **state)
{
	struct npuemu_ioc_handle h = { 0 };
	struct busy b;

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		busy_open(&b, 0);
		busy_post(&b);
		sys_nap(i);
		if (i & 1) {
			raw_is(raw_q_destroy(&b.q), 0);
			raw_is(raw_cq_destroy(&b.cq), 0);
			raw_bo_drop(&b.bo);
		} else {
			raw_is(raw_va_unmap(&b.r, (uintptr_t)b.bo.p), 0);
			raw_bo_drop(&b.bo);
			raw_is(raw_cq_destroy(&b.cq), -EBUSY);
			h.handle = b.q.id;
			raw_is(raw_ioctl(b.r.fd, NPUEMU_IOC_QUEUE_DESTROY, &h), 0);
		}
		raw_close(&b.r);
	}
}

/* The call holds the file: the context ends when it does. */
static void with_sleeper(void **state)
{
	struct sleeper s;
	struct busy b;

	(void)state;
	busy_open(&b, 0);
	sleeper_start(&s, &b.r, &b.cq, 1500);
	busy_close(&b);
	sys_eq(raw_leaks("contexts"), 1);
	raw_is(sleeper_end(&s), -ETIMEDOUT);
	sys_true(npuemu_now_ns() >= s.deadline, "it woke early");
}

/* What it waits for is destroyed. */
static void with_sleeper_on_nothing(void **state)
{
	struct sleeper s;
	struct raw_cq cq;
	struct raw r;

	(void)state;
	raw_open(&r, 0);
	raw_cq_make(&r, &cq, 64);
	sleeper_start(&s, &r, &cq, SYS_PATIENCE_MS);
	raw_is(raw_cq_destroy(&cq), 0);
	raw_is(sleeper_end(&s), -ENOENT);
	raw_close(&r);
}

static void with_dmabuf(void **state)
{
	struct npuemu_ioc_bo_export ex = { .flags = O_RDWR | O_CLOEXEC };
	unsigned char *p;
	struct busy b;

	(void)state;
	busy_open(&b, 1);
	b.bo.p[3 * MIB] = 42;
	ex.handle = b.bo.handle;
	raw_is(raw_ioctl(b.r.fd, NPUEMU_IOC_BO_EXPORT, &ex), 0);
	busy_post(&b);
	busy_close(&b);
	p = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, ex.fd, 0);
	sys_true(p != MAP_FAILED, "mmap of a dma-buf: %s", strerror(errno));
	sys_eq(p[3 * MIB], 42);
	p[0] = 1;
	close(ex.fd);
	p[1] = 1;
	sys_eq(raw_leaks("buffers"), 1);
	munmap(p, 4 * MIB);
}

/* ---- SIGKILL -------------------------------------------------------------------------- */

/* Posts into its peer's memory as fast as it can, and to its own, and never stops. */
static void poster(int fd, void *arg)
{
	uint32_t device = *(uint32_t *)arg;
	struct raw_seg mine, theirs;
	struct raw_cq cq, cq2;
	struct npuemu_cqe cqe;
	struct raw_q q, own;
	struct raw_bo bo;
	struct raw r;

	raw_open(&r, device);
	raw_bo_make(&r, &bo, 1 * MIB);
	raw_seg_make(&bo, &mine, SYS_RWA);
	raw_cq_make(&r, &cq, 256);
	raw_cq_make(&r, &cq2, 256);
	raw_q_make(&r, &q, &cq, device, RAW_UDMA, 64);
	raw_q_make(&r, &own, &cq2, device, RAW_SDMA, 64);
	sys_put(fd, &mine, sizeof(mine));
	sys_get(fd, &theirs, sizeof(theirs));
	sys_go(fd);
	for (;;) {
		if (q.pi - cq.ci < 60)
			raw_post_write(&q, bo.p + q.pi % 64 * 4096, 16384, &theirs,
				       q.pi % 60 * 4096);
		if (own.pi - cq2.ci < 60)
			raw_post_copy(&own, bo.p, bo.p + 512 * KIB, 65536);
		raw_ring(&q);
		raw_ring(&own);
		/* a peer that is gone leaves the queue in ERROR; it goes on all the same */
		while (raw_poll(&cq, &cqe) || raw_poll(&cq2, &cqe))
			;
		if (!(q.pi % 16))
			raw_wait_cq(&cq, 1);
	}
}

static void killed(void **state)
{
	uint32_t devices[2] = { 0, 1 };
	struct raw_child c[2];
	struct raw_seg s[2];
	uint64_t rnd = 3;

	(void)state;
	for (int n = 0; n < 50; n++) {
		for (int i = 0; i < 2; i++)
			raw_fork(&c[i], poster, &devices[(n >> i) & 1]);
		for (int i = 0; i < 2; i++)
			sys_get(c[i].fd, &s[i], sizeof(s[i]));
		for (int i = 0; i < 2; i++)
			sys_put(c[i].fd, &s[!i], sizeof(s[!i]));
		for (int i = 0; i < 2; i++)
			sys_wait_go(c[i].fd);
		usleep((useconds_t)(sys_rand(&rnd) % 30000));
		raw_kill(&c[n & 1]);
		usleep((useconds_t)(sys_rand(&rnd) % 10000));
		raw_kill(&c[!(n & 1)]);
	}
}

#define POSTERS	3

/* On both devices, each as fast as it can, without a pause for anything. */
static void posters(int fd, void *unused)
{
	struct poster p[POSTERS];
	struct raw r;

	(void)unused;
	raw_open(&r, 0);
	for (uint32_t i = 0; i < POSTERS; i++)
		poster_start(&p[i], &r, i & 1, 1024);
	sys_go(fd);
	for (;;)
		pause();
}

/* Gone, and its context with it, while its threads do nothing but post. */
static void killed_posting(void **state)
{
	int64_t deadline;
	struct raw_child c;
	uint64_t rnd = 4;

	(void)state;
	for (int n = 0; n < 12; n++) {
		raw_fork(&c, posters, NULL);
		sys_wait_go(c.fd);
		usleep((useconds_t)(sys_rand(&rnd) % 10000));
		deadline = npuemu_deadline_ms(10000);
		raw_kill(&c);
		while (raw_leaks("contexts"))
			sys_true(sys_retry(deadline), "its context stays");
	}
}

static void sleeping_child(int fd, void *unused)
{
	struct busy b;

	(void)unused;
	busy_open(&b, 0);
	sys_go(fd);
	raw_wait_cq(&b.cq, 10 * SYS_PATIENCE_MS);
}

static void killed_asleep(void **state)
{
	struct raw_child c;

	(void)state;
	raw_fork(&c, sleeping_child, NULL);
	sys_wait_go(c.fd);
	sys_nap(100);
	raw_kill(&c);
}

/* ---- Descriptors ------------------------------------------------------------------------- */

static void stranger(int fd)
{
	struct npuemu_ioc_bo_create bo = { .bytes = 4096 };
	struct npuemu_ioc_join join = { .fd = fd };
	struct npuemu_ioc_query q = { 0 };
	struct npuemu_ioc_wait w = { 0 };
	int mine = raw_node(0);

	raw_is(raw_ioctl(fd, NPUEMU_IOC_QUERY, &q), -EPERM);
	raw_is(raw_ioctl(fd, NPUEMU_IOC_BO_CREATE, &bo), -EPERM);
	raw_is(raw_ioctl(fd, NPUEMU_IOC_WAIT, &w), -EPERM);
	raw_is(raw_ioctl(mine, NPUEMU_IOC_JOIN, &join), -EXDEV);
	join.fd = mine;
	raw_is(raw_ioctl(fd, NPUEMU_IOC_JOIN, &join), -EPERM);
	/* wherever its windows are: nothing of it is mapped */
	sys_true(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EPERM,
		 "mmap: %s", strerror(errno));
	close(mine);
}

static int unjoined;

static void heir(int fd, void *arg)
{
	struct busy *b = arg;

	(void)fd;
	stranger(b->r.fd);
	sys_true(mmap(NULL, 4096, PROT_READ, MAP_SHARED, b->r.fd, (off_t)b->bo.offset) ==
		 MAP_FAILED && errno == EPERM, "mmap of the buffer: %s", strerror(errno));
	close(b->r.fd);
	/* a file of the parent that is nobody's yet */
	stranger(unjoined);
}

static void receiver(int fd, void *unused)
{
	int got;

	(void)unused;
	sys_wait_go(fd);
	got = raw_recv_fd(fd);
	stranger(got);
	close(got);
}

static void in_other_hands(void **state)
{
	struct npuemu_ioc_join join;
	struct raw_child c, d;
	struct busy b;

	(void)state;
	raw_fork(&d, receiver, NULL);
	busy_open(&b, 0);
	unjoined = raw_node(1);
	raw_fork(&c, heir, &b);
	raw_join(&c);
	sys_go(d.fd);
	raw_send_fd(d.fd, b.r.fd);
	raw_join(&d);
	/* none of that did it any harm */
	join.fd = b.r.fd;
	join.pad = 0;
	raw_is(raw_ioctl(unjoined, NPUEMU_IOC_JOIN, &join), 0);
	close(unjoined);
	busy_post(&b);
	for (int i = 0; i < 64; i++) {
		struct npuemu_cqe cqe;

		sys_true(raw_spin(&b.cq, &cqe, SYS_PATIENCE_MS), "no completion %d", i);
		raw_status_is(__FILE__, __LINE__, raw_status(&cqe), NPUEMU_ST_SUCCESS);
	}
	busy_close(&b);
}

/* Its opener is gone, a copy of the descriptor is not. */
static void opener(int fd, void *unused)
{
	struct busy b;
	pid_t pid;

	(void)unused;
	busy_open(&b, 0);
	busy_post(&b);
	pid = fork();
	sys_true(pid >= 0, "fork");
	if (pid) {
		sys_put(fd, &pid, sizeof(pid));
		pause();
	}
	pause();
}

static void orphaned(void **state)
{
	int64_t deadline = sys_deadline();
	struct raw_child c;
	pid_t pid;

	(void)state;
	raw_fork(&c, opener, NULL);
	sys_get(c.fd, &pid, sizeof(pid));
	raw_kill(&c);
	sys_nap(200);
	kill(pid, SIGKILL);
	while (!kill(pid, 0))
		if (!sys_retry(deadline))
			break;	/* nobody reaps it: what counts is what it held */
		else if (!raw_leaks("contexts"))
			break;
}

static void duplicated(void **state)
{
	struct npuemu_ioc_query q = { 0 };
	struct raw_bo more;
	struct busy b;
	int fd;

	(void)state;
	busy_open(&b, 0);
	fd = dup(b.r.fd);
	sys_true(fd >= 0, "dup");
	close(b.r.fd);
	raw_is(raw_ioctl(fd, NPUEMU_IOC_QUERY, &q), 0);
	sys_eq(q.slot, b.r.q.slot);
	b.r.fd = fd;
	raw_bo_make(&b.r, &more, 8192);
	raw_post_copy(&b.q, more.p, b.bo.p, 8192);
	raw_completes(&b.q, NPUEMU_ST_SUCCESS);
	munmap(more.p, more.room);
	busy_close(&b);
}

/* ---- The module ----------------------------------------------------------------------------- */

static int unload(void)
{
	return syscall(SYS_delete_module, "npuemu", O_NONBLOCK) ? -errno : 0;
}

static void module_in_use(void **state)
{
	struct npuemu_ioc_bo_export ex = { .flags = O_RDWR | O_CLOEXEC };
	struct busy b;
	int ctl;

	(void)state;
	ctl = raw_ctl();
	raw_is(unload(), -EWOULDBLOCK);
	close(ctl);
	busy_open(&b, 0);
	busy_post(&b);
	raw_is(unload(), -EWOULDBLOCK);
	ex.handle = b.bo.handle;
	raw_is(raw_ioctl(b.r.fd, NPUEMU_IOC_BO_EXPORT, &ex), 0);
	/* by a mapping alone */
	close(b.r.fd);
	raw_is(unload(), -EWOULDBLOCK);
	raw_unmap(&b.r);
	munmap(b.bo.p, b.bo.room);
	/* by a dma-buf alone */
	raw_is(unload(), -EWOULDBLOCK);
	close(ex.fd);
	sys_true(!access("/dev/npuemu0", F_OK), "it is gone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(in_flight),
		raw_test(in_flight_piecewise),
		raw_test(with_sleeper),
		raw_test(with_sleeper_on_nothing),
		raw_test(with_dmabuf),
		raw_test(killed),
		raw_test(killed_posting),
		raw_test(killed_asleep),
		raw_test(in_other_hands),
		raw_test(orphaned),
		raw_test(duplicated),
		raw_test(module_in_use),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
