/* SPDX-License-Identifier: MIT */
/* For test_life.c and test_reset.c: a context that has a lot to do, and a sleeper. */
#ifndef TESTS_VM_BUSY_H
#define TESTS_VM_BUSY_H

#include <pthread.h>
#include <sys/mman.h>
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
	pthread_t thread;
};

static inline void *sleep_in_wait(void *arg)
{
	struct sleeper *s = arg;

	s->rc = raw_wait(s->r, &s->item, 1, s->deadline, NULL);
	return NULL;
}

static inline void sleeper_start(struct sleeper *s, struct raw *r, struct raw_cq *cq, unsigned int ms)
{
	s->r = r;
	s->item = (struct npuemu_ioc_wait_item){
		.kind = NPUEMU_WAIT_CQ, .handle = cq->handle, .ci = cq->ci,
	};
	s->deadline = npuemu_deadline_ms(ms);
	s->rc = 1;
	sys_true(!pthread_create(&s->thread, NULL, sleep_in_wait, s), "pthread_create");
	sys_nap(100);
}

static inline int sleeper_end(struct sleeper *s)
{
	pthread_join(s->thread, NULL);
	return s->rc;
}

#endif
