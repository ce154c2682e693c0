/* SPDX-License-Identifier: MIT */
/* For test_life.c, test_reset.c and others: a context that has a lot to do, sleepers, posters. */
#ifndef TESTS_VM_BUSY_H
#define TESTS_VM_BUSY_H

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "raw.h"

/* A context with memory and a queue that has a lot to do. */
struct busy {
	struct raw r;
	struct raw_bo bo;
	struct raw_cq cq;
	struct raw_q q;
};

#define PIECE	(1 * MIB)

static inline void busy_open(struct busy *b, uint32_t device)
{
	raw_open(&b->r, device);
	raw_bo_make(&b->r, &b->bo, 4 * MIB);
	raw_cq_make(&b->r, &b->cq, 128);
	raw_q_make(&b->r, &b->q, &b->cq, device, RAW_SDMA, 64);
}

static inline void busy_post(struct busy *b)
{
	while (b->q.pi < 64)
		raw_post_copy(&b->q, b->bo.p + b->q.pi % 2 * PIECE, b->bo.p + 2 * PIECE, PIECE);
	raw_ring(&b->q);
}

static inline void busy_close(struct busy *b)
{
	munmap(b->bo.p, b->bo.room);
	raw_close(&b->r);
}

struct sleeper {
	struct raw *r;
	struct npuemu_ioc_wait_item item;
	int64_t deadline;
	int rc;
	pid_t tid;		/* once it runs */
	pthread_t thread;
};

static inline void *sleep_in_wait(void *arg)
{
	struct sleeper *s = arg;

	__atomic_store_n(&s->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	s->rc = raw_wait(s->r, &s->item, 1, s->deadline, NULL);
	return NULL;
}

/* In the ioctl, and asleep there?  "16 0x...", where a thread that runs is "running". */
static inline bool sleeper_sleeps(const struct sleeper *s)
{
	pid_t tid = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE);
	char path[64], line[32] = "";
	long nr;
	FILE *f;

	if (!tid)
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	return sscanf(line, "%ld ", &nr) == 1 && nr == SYS_ioctl;
}

static inline void sleeper_start(struct sleeper *s, struct raw *r, struct raw_cq *cq, unsigned int ms)
{
	s->r = r;
	s->item = (struct npuemu_ioc_wait_item){
		.kind = NPUEMU_WAIT_CQ, .handle = cq->handle, .ci = cq->ci,
	};
	s->deadline = npuemu_deadline_ms(ms);
	s->rc = 1;
	s->tid = 0;
	sys_true(!pthread_create(&s->thread, NULL, sleep_in_wait, s), "pthread_create");
	/* it helps first, and then sleeps in pieces: for a moment is not enough */
	for (int64_t end = sys_deadline(), asleep = 0; asleep < 5;) {
		asleep = sleeper_sleeps(s) ? asleep + 1 : 0;
		sys_nap(10);
		sys_true(npuemu_now_ns() < end, "a thread does not get into WAIT");
	}
}

static inline int sleeper_end(struct sleeper *s)
{
	pthread_join(s->thread, NULL);
	return s->rc;
}

/* Posts all the time, and makes room in its CQ for what becomes of it. */
struct poster {
	struct raw_cq cq;
	struct raw_q q;
	bool stop;
	uint32_t posted;
	uint32_t done;
	uint32_t ended;		/* flush-done entries */
	pthread_t thread;
};

/* The block that has been there a lap before, with the other owner bit: that is quick. */
static inline void poster_post(struct raw_q *q)
{
	uint64_t *to = q->ring + (size_t)(q->pi & (q->depth - 1)) * 8;

	if (q->pi < q->depth) {
		raw_post_nop(q);
		return;
	}
	__atomic_store_n(to, *to ^ NPUEMU_SQE_OWNER, __ATOMIC_RELEASE);
	q->pi++;
}

static inline void *keep_posting(void *arg)
{
	struct poster *p = arg;
	struct npuemu_cqe cqe;

	while (!__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE)) {
		while (raw_poll(&p->cq, &cqe)) {
			if (cqe.dw0 & NPUEMU_CQE_FD)
				p->ended++;
			else
				p->done++;
		}
		while (p->q.pi - p->done < p->q.depth)
			poster_post(&p->q);
		__atomic_store_n(&p->posted, p->q.pi, __ATOMIC_RELEASE);
		raw_ring(&p->q);
	}
	return NULL;
}

static inline void poster_start(struct poster *p, struct raw *r, uint32_t device, uint32_t depth)
{
	memset(p, 0, sizeof(*p));
	raw_cq_make(r, &p->cq, 2 * depth);
	raw_q_make(r, &p->q, &p->cq, device, RAW_SDMA, depth);
	sys_true(!pthread_create(&p->thread, NULL, keep_posting, p), "pthread_create");
	/* it gets somewhere: more than twice around */
	for (int64_t end = sys_deadline();
	     __atomic_load_n(&p->posted, __ATOMIC_ACQUIRE) < 3 * depth;)
		sys_true(sys_retry(end), "a thread does not get to post");
}

static inline void poster_end(struct poster *p)
{
	__atomic_store_n(&p->stop, true, __ATOMIC_RELEASE);
	pthread_join(p->thread, NULL);
}

#endif
