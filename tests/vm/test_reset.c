// SPDX-License-Identifier: MIT
/*
 * Resetting a device under load: what is lost and how one learns it, what goes on,
 * and that the device is as new afterwards.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "busy.h"

static int reset(uint32_t device)
{
	struct npuemu_ioc_device_ctl a = { .device = device };
	int ctl = raw_ctl(), rc;

	rc = raw_ioctl(ctl, NPUEMU_IOC_DEVICE_RESET, &a);
	close(ctl);
	return rc;
}

/* Each WQE is completed: done, or flushed, or stopped where it was. */
static void all_accounted_for(struct busy *b)
{
	uint32_t n = 0, flushed = 0, status;
	struct npuemu_cqe cqe;

	while (raw_spin(&b->cq, &cqe, 500)) {
		status = raw_status(&cqe);
		flushed += status == NPUEMU_ST_WR_FLUSH_ERR;
		if (cqe.dw0 & NPUEMU_CQE_FD)
			break;
		sys_true(status == NPUEMU_ST_SUCCESS || status == NPUEMU_ST_WR_FLUSH_ERR ||
			 status == NPUEMU_ST_LOC_ACCESS, "WQE %u: %s", n,
			 npuemu_status_str(status));
		n++;
	}
	sys_eq(n, 64);
	sys_true(flushed, "nothing was flushed");
	sys_true(cqe.dw0 & NPUEMU_CQE_FD, "no word that the flush is done");
}

static void works(uint32_t device)
{
	struct busy b;

	busy_open(&b, device);
	sys_is_byte("fresh memory", b.bo.p, b.bo.room, 0);
	busy_post(&b);
	for (int i = 0; i < 64; i++) {
		struct npuemu_cqe cqe;

		sys_true(raw_spin(&b.cq, &cqe, SYS_PATIENCE_MS), "no completion %d", i);
		raw_status_is(__FILE__, __LINE__, raw_status(&cqe), NPUEMU_ST_SUCCESS);
	}
	busy_close(&b);
}

static void lost(struct busy *v, struct raw_bo *theirs)
{
	struct npuemu_ioc_bo_create bo = { .bytes = 4096 };
	struct npuemu_ioc_query q = { 0 };

	raw_is(raw_touch(v->bo.p, false), SIGBUS);
	raw_is(raw_touch(v->bo.p + 3 * MIB, true), SIGBUS);
	raw_is(raw_touch(theirs->p, true), SIGBUS);
	sys_true(*raw_record(&v->r, 0, NPUEMU_REC_BROKEN), "record 0 does not say so");
	raw_is(raw_ioctl(v->r.fd, NPUEMU_IOC_QUERY, &q), -ENODEV);
	raw_is(raw_ioctl(v->r.fd, NPUEMU_IOC_BO_CREATE, &bo), -ENODEV);
	raw_is(raw_wait_cq(&v->cq, 10), -ENODEV);
	sys_true(mmap(NULL, 4096, PROT_READ, MAP_SHARED, v->r.fd, (off_t)v->bo.offset) ==
		 MAP_FAILED && errno == ENODEV, "mmap: %s", strerror(errno));
	/* nobody looks, and nothing happens */
	raw_ring(&v->q);
}

/* A context at home on device 1, one on device 0 that uses both, one that does not. */
static void reset_under_load(void **state)
{
	struct npuemu_ioc_bo_export ex = { .flags = O_RDWR | O_CLOEXEC };
	struct npuemu_ioc_bo_import im = { 0 };
	struct busy victim, user, other;
	struct raw_seg seg;
	struct raw_cq cq1;
	struct raw_q q1, w;
	struct raw_bo shared;
	int dev1;

	(void)state;
	busy_open(&victim, 1);
	busy_open(&user, 0);
	busy_open(&other, 0);
	raw_seg_make(&victim.bo, &seg, SYS_RWA);
	ex.handle = victim.bo.handle;
	raw_is(raw_ioctl(victim.r.fd, NPUEMU_IOC_BO_EXPORT, &ex), 0);
	/* the dma-buf of the victim, through a file of its device */
	dev1 = raw_node(1);
	raw_is(raw_ioctl(dev1, NPUEMU_IOC_JOIN, &(struct npuemu_ioc_join){ .fd = user.r.fd }), 0);
	im.fd = ex.fd;
	raw_is(raw_ioctl(dev1, NPUEMU_IOC_BO_IMPORT, &im), 0);
	sys_eq(im.device, 1);
	shared.r = &user.r;
	shared.room = im.room;
	shared.p = mmap(NULL, im.room, PROT_READ | PROT_WRITE, MAP_SHARED, dev1,
			(off_t)im.map_offset);
	sys_true(shared.p != MAP_FAILED, "mmap: %s", strerror(errno));
	raw_is(raw_va_map(&user.r, (uintptr_t)shared.p, im.room, im.handle, 0, 0), 0);
	shared.p[0] = 1;
	raw_cq_make(&user.r, &cq1, 64);
	raw_q_make(&user.r, &q1, &cq1, 1, RAW_SDMA, 64);
	raw_q_make(&user.r, &w, &cq1, 0, RAW_UDMA, 64);
	busy_post(&user);
	busy_post(&other);
	busy_post(&victim);
	raw_is(reset(1), 0);

	all_accounted_for(&victim);
	lost(&victim, &shared);
	raw_is(raw_sys(mmap(NULL, 4096, PROT_READ, MAP_SHARED, ex.fd, 0)), -ENODEV);
	/* what is on device 0 goes on */
	for (int i = 0; i < 64; i++) {
		struct npuemu_cqe cqe;

		sys_true(raw_spin(&user.cq, &cqe, SYS_PATIENCE_MS), "user: %d", i);
		raw_status_is(__FILE__, __LINE__, raw_status(&cqe), NPUEMU_ST_SUCCESS);
		sys_true(raw_spin(&other.cq, &cqe, SYS_PATIENCE_MS), "other: %d", i);
		raw_status_is(__FILE__, __LINE__, raw_status(&cqe), NPUEMU_ST_SUCCESS);
	}
	sys_eq(raw_query(&q1).state, NPUEMU_QS_ERROR);
	sys_eq(raw_query(&user.q).state, NPUEMU_QS_READY);
	/* the peer's segment, and the memory that was shared, are gone */
	raw_post_write(&w, user.bo.p, 4096, &seg, 0);
	sys_true(raw_finish(&w) != NPUEMU_ST_SUCCESS, "a write to memory that is lost");
	raw_post_copy(&user.q, user.bo.p, shared.p, 4096);
	raw_completes(&user.q, NPUEMU_ST_LOC_ACCESS);
	works(1);
	works(0);
	munmap(shared.p, shared.room);
	close(dev1);
	close(ex.fd);
	busy_close(&other);
	busy_close(&user);
	busy_close(&victim);
	works(1);
}

/* Whoever sleeps is told: by the end of a queue, or that there is nothing to wait for. */
static void reset_wakes(void **state)
{
	struct sleeper s, idle;
	struct npuemu_cqe cqe;
	struct raw_cq unused;
	struct busy b;

	(void)state;
	busy_open(&b, 1);
	raw_cq_make(&b.r, &unused, 64);
	sleeper_start(&s, &b.r, &b.cq, SYS_PATIENCE_MS);
	sleeper_start(&idle, &b.r, &unused, SYS_PATIENCE_MS);
	raw_is(reset(1), 0);
	raw_is(sleeper_end(&s), 0);
	sys_true(raw_poll(&b.cq, &cqe) && cqe.dw0 & NPUEMU_CQE_FD, "no word of the queue's end");
	raw_is(sleeper_end(&idle), -ENODEV);
	busy_close(&b);
}

/* ---- A completion queue that is full ------------------------------------------------------ */

#define NOPS	96u	/* more than the CQ has entries */

/* Its ring and its CQ are full of what nobody has polled. */
static void fill_up(struct raw *r, struct raw_cq *cq, struct raw_q *q, uint32_t device)
{
	raw_cq_make(r, cq, 64);
	raw_q_make(r, q, cq, device, RAW_SDMA, 128);
	while (q->pi < NOPS)
		raw_post_nop(q);
	raw_ring(q);
	for (int64_t end = sys_deadline(); raw_query(q).state != NPUEMU_QS_ERROR;)
		sys_true(sys_retry(end), "the CQ of 64 is not full of %u", NOPS);
}

/* The rest comes as there is room, and then the end. */
static void drains(struct raw_cq *cq)
{
	uint32_t n, flushed = 0;
	struct npuemu_cqe cqe;

	for (n = 0; raw_spin(cq, &cqe, SYS_PATIENCE_MS); n++) {
		if (cqe.dw0 & NPUEMU_CQE_FD)
			break;
		flushed += raw_status(&cqe) == NPUEMU_ST_WR_FLUSH_ERR;
	}
	sys_true(cqe.dw0 & NPUEMU_CQE_FD, "no word that the flush is done, after %u entries", n);
	sys_eq(n, NOPS);
	sys_true(flushed && flushed < NOPS, "%u were flushed", flushed);
	sys_true(!raw_poll(cq, &cqe), "an entry after the last");
}

/* A context that stays, of a queue that is lost; and one that is lost itself. */
static void reset_with_full_cq(void **state)
{
	struct raw_cq cq[3];
	struct raw_q q[3];
	struct raw here, lost;
	int dev1;

	(void)state;
	raw_open(&here, 0);
	dev1 = raw_node(1);
	raw_is(raw_ioctl(dev1, NPUEMU_IOC_JOIN, &(struct npuemu_ioc_join){ .fd = here.fd }), 0);
	raw_open(&lost, 1);
	fill_up(&here, &cq[0], &q[0], 1);
	fill_up(&here, &cq[1], &q[1], 1);
	fill_up(&lost, &cq[2], &q[2], 1);
	raw_is(reset(1), 0);
	/* it takes its time to poll; nothing else can be done with the queue */
	sys_nap(50);
	for (uint32_t s = NPUEMU_QS_RESET; s <= NPUEMU_QS_ERROR; s++)
		raw_is(raw_modify(&q[0], s), -ENODEV);
	sys_eq(raw_query(&q[0]).state, NPUEMU_QS_ERROR);
	drains(&cq[0]);
	drains(&cq[2]);
	raw_is(raw_modify(&q[0], NPUEMU_QS_RESET), -ENODEV);
	raw_is(raw_q_destroy(&q[0]), 0);
	raw_is(raw_q_destroy(&q[1]), 0);	/* its CQ still full */
	/* dead is dead: what is stored does nothing, also after the flush */
	q[2].pi += 4;
	raw_ring(&q[2]);
	sys_nap(50);
	sys_true(!raw_poll(&cq[2], &(struct npuemu_cqe){ 0 }), "an entry of a dead queue");
	works(1);
	raw_close(&lost);
	close(dev1);
	raw_close(&here);
}

/* Asleep on the full CQ, while another thread makes room. */
static void full_cq_wakes(void **state)
{
	struct raw_cq cq, end;
	struct sleeper s;
	struct raw here;
	struct raw_q q;
	int dev1;

	(void)state;
	raw_open(&here, 0);
	dev1 = raw_node(1);
	raw_is(raw_ioctl(dev1, NPUEMU_IOC_JOIN, &(struct npuemu_ioc_join){ .fd = here.fd }), 0);
	fill_up(&here, &cq, &q, 1);
	raw_is(reset(1), 0);
	end = cq;
	end.ci = 63;	/* all there are, but for the one that is kept */
	sleeper_start(&s, &here, &end, SYS_PATIENCE_MS);
	drains(&cq);
	raw_is(sleeper_end(&s), 0);
	close(dev1);
	raw_close(&here);
}

/* Any step may meet the reset: an error, SIGBUS or an end that is as it should be. */
static void __attribute__((__noreturn__)) life(uint32_t device)
{
	struct npuemu_cqe cqe;
	struct busy b;

	if (!freopen("/dev/null", "w", stderr))
		_exit(1);
	busy_open(&b, device);
	busy_post(&b);
	while (b.cq.ci < 64)
		if (!raw_spin(&b.cq, &cqe, 2000) || raw_status(&cqe) != NPUEMU_ST_SUCCESS)
			_exit(1);
	_exit(0);
}

/* One life after the other until told to stop; how many were spoilt. */
static void lives(int fd, void *arg)
{
	uint32_t device = *(uint32_t *)arg, n[2] = { 0 };
	int status;
	pid_t pid;
	char c;

	sys_go(fd);
	while (recv(fd, &c, 1, MSG_DONTWAIT) != 1) {
		pid = fork();
		sys_true(pid >= 0, "fork");
		if (!pid)
			life(device);
		raw_is(raw_sys(waitpid(pid, &status, 0)), pid);
		n[!!status]++;
	}
	sys_put(fd, n, sizeof(n));
}

static void resets_in_a_row(void **state)
{
	uint32_t devices[2] = { 0, 1 }, n[2], spoilt = 0;
	struct raw_child c[2];
	uint64_t rnd = 5;

	(void)state;
	for (int i = 0; i < 2; i++) {
		raw_fork(&c[i], lives, &devices[i]);
		sys_wait_go(c[i].fd);
	}
	for (int i = 0; i < 16; i++) {
		usleep((useconds_t)(sys_rand(&rnd) % 150000));
		raw_is(reset(i % 4 == 3 ? NPUEMU_ALL_DEVICES : (uint32_t)i & 1), 0);
	}
	for (int i = 0; i < 2; i++) {
		sys_go(c[i].fd);
		sys_get(c[i].fd, n, sizeof(n));
		spoilt += n[1];
		raw_join(&c[i]);
	}
	sys_true(spoilt, "no reset was felt by anybody");
	works(0);
	works(1);
}

/* ---- Posting all the time ------------------------------------------------------------------ */

#define AT_ONCE_MS	10000	/* what the driver gives a turn, at most; a reset takes some ms */

static void flushed_to_the_end(struct poster *p)
{
	struct npuemu_cqe cqe = { 0 };

	while (!p->ended) {
		sys_true(raw_spin(&p->cq, &cqe, SYS_PATIENCE_MS), "no word that the flush is done");
		p->ended += !!(cqe.dw0 & NPUEMU_CQE_FD);
	}
	sys_eq(raw_query(&p->q).state, NPUEMU_QS_ERROR);
}

/*
 * The queue is lost, or stopped, while a thread posts to it and goes on with that: neither
 * takes as long as it does.
 */
static void posting_on(void **state)
{
	struct poster p;
	int64_t start;
	struct raw here;
	int dev1;

	(void)state;
	for (int round = 0; round < 6; round++) {
		raw_open(&here, 0);
		dev1 = raw_node(1);
		raw_is(raw_ioctl(dev1, NPUEMU_IOC_JOIN,
				 &(struct npuemu_ioc_join){ .fd = here.fd }), 0);
		poster_start(&p, &here, 1, NPUEMU_SQ_MAX_BB);
		start = npuemu_now_ns();
		raw_is(round & 1 ? raw_modify(&p.q, NPUEMU_QS_ERROR) : reset(1), 0);
		sys_true(npuemu_now_ns() - start < AT_ONCE_MS * 1000000ll,
			 "it took %lld ms while a thread posted",
			 (long long)(npuemu_now_ns() - start) / 1000000);
		/* as long as something comes it is flushed, maybe for ever */
		poster_end(&p);
		flushed_to_the_end(&p);
		raw_is(raw_q_destroy(&p.q), 0);
		close(dev1);
		raw_close(&here);
	}
	works(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(reset_under_load),
		raw_test(reset_wakes),
		raw_test(reset_with_full_cq),
		raw_test(full_cq_wakes),
		raw_test(resets_in_a_row),
		raw_test(posting_on),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
