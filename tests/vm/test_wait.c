// SPDX-License-Identifier: MIT
/*
 * WAIT by itself: several items, deadlines, signals, eventfds, words that peers
 * and plain stores change, and the end of their owner.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "raw.h"

struct wt {
	struct raw r;
	struct raw_bo bo;
	struct raw_cq cq;
	struct raw_q q;
	volatile uint64_t *word;
};

static void wt_open(struct wt *w, uint32_t device)
{
	raw_open(&w->r, device);
	raw_bo_make(&w->r, &w->bo, 64 * KIB);
	raw_cq_make(&w->r, &w->cq, 64);
	raw_q_make(&w->r, &w->q, &w->cq, device, RAW_UDMA, 64);
	w->word = (void *)w->bo.p;
}

static void wt_close(struct wt *w)
{
	munmap(w->bo.p, w->bo.room);
	raw_close(&w->r);
}

static struct npuemu_ioc_wait_item cq_item(const struct raw_cq *cq)
{
	return (struct npuemu_ioc_wait_item){
		.kind = NPUEMU_WAIT_CQ, .handle = cq->handle, .ci = cq->ci,
	};
}

static struct npuemu_ioc_wait_item word_item(volatile uint64_t *word, uint64_t value)
{
	return (struct npuemu_ioc_wait_item){
		.kind = NPUEMU_WAIT_WORD, .va = (uintptr_t)word, .value = value,
	};
}

/* ---- Deadlines and items --------------------------------------------------------- */

static void deadlines(void **state)
{
	static const int64_t past[] = { 0, 1, -1, INT64_MIN };
	struct npuemu_ioc_wait_item it;
	uint32_t ready;
	struct wt w;

	(void)state;
	wt_open(&w, 0);
	for (int i = 0; i < 4; i++) {
		it = word_item(w.word, 1);
		raw_is(raw_wait(&w.r, &it, 1, past[i], NULL), -ETIMEDOUT);
		it = cq_item(&w.cq);
		raw_is(raw_wait(&w.r, &it, 1, past[i], NULL), -ETIMEDOUT);
		/* what is ready is ready, whatever the time */
		it = word_item(w.word, 0);
		raw_is(raw_wait(&w.r, &it, 1, past[i], &ready), 0);
		sys_eq(ready, 0);
	}
	for (unsigned int ms = 1; ms < 200; ms *= 5) {
		int64_t end = npuemu_deadline_ms(ms);

		it = ms & 4 ? cq_item(&w.cq) : word_item(w.word, 1);
		raw_is(raw_wait(&w.r, &it, 1, end, NULL), -ETIMEDOUT);
		sys_true(npuemu_now_ns() >= end, "it woke %lld ns early",
			 (long long)(end - npuemu_now_ns()));
		sys_true(npuemu_now_ns() < end + 5000000000, "it woke very late");
	}
	/* nothing to help with */
	raw_is(raw_wait(&w.r, NULL, 0, 0, NULL), -EAGAIN);
	wt_close(&w);
}

struct later {
	volatile uint64_t *word;
	uint64_t value;
	unsigned int ms;
};

static void *store_later(void *arg)
{
	struct later *l = arg;

	sys_nap(l->ms);
	__atomic_store_n(l->word, l->value, __ATOMIC_RELEASE);
	return NULL;
}

/* The first that is ready is named, whichever it is. */
static void several(void **state)
{
	struct npuemu_ioc_wait_item it[5];
	struct npuemu_cqe cqe;
	struct later l;
	uint32_t ready;
	pthread_t t;
	struct wt w;

	(void)state;
	wt_open(&w, 0);
	for (uint32_t n = 0; n < 4; n++) {
		for (int i = 0; i < 4; i++)
			it[i] = word_item(w.word + 8 * i, 100 + n);
		it[4] = cq_item(&w.cq);
		l = (struct later){ .word = w.word + 8 * n, .value = 100 + n, .ms = 30 };
		sys_true(!pthread_create(&t, NULL, store_later, &l), "pthread_create");
		raw_is(raw_wait(&w.r, it, 5, n ? sys_deadline() : INT64_MAX, &ready), 0);
		sys_eq(ready, n);
		pthread_join(t, NULL);
	}
	/* a completion among them */
	raw_post_write(&w.q, w.bo.p, 0, &(struct raw_seg){ 0 }, 0);
	raw_ring(&w.q);
	for (int i = 0; i < 4; i++)
		it[i].value = 1;
	raw_is(raw_wait(&w.r, it, 5, sys_deadline(), &ready), 0);
	sys_eq(ready, 4);
	sys_true(raw_poll(&w.cq, &cqe), "WAIT saw a completion that is not there");
	wt_close(&w);
}

struct crowd {
	struct raw *r;
	struct npuemu_ioc_wait_item item;
	pthread_t t;
	int rc;
};

static void *wait_in_crowd(void *arg)
{
	struct crowd *c = arg;

	c->rc = raw_wait(c->r, &c->item, 1, sys_deadline(), NULL);
	return NULL;
}

/* Twelve threads, of which no one is forgotten. */
static void many_threads(void **state)
{
	struct raw_seg seg;
	struct crowd c[12];
	struct wt w;

	(void)state;
	wt_open(&w, 0);
	raw_seg_make(&w.bo, &seg, SYS_RWA);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 12; i++) {
			c[i].r = &w.r;
			c[i].item = i & 1 ? cq_item(&w.cq) : word_item(w.word, 7 + round);
			sys_true(!pthread_create(&c[i].t, NULL, wait_in_crowd, &c[i]),
				 "pthread_create");
		}
		sys_nap(50);
		w.word[512] = 7 + round;
		raw_post_write(&w.q, (void *)(w.word + 512), 8, &seg, 0);
		raw_ring(&w.q);
		for (int i = 0; i < 12; i++) {
			pthread_join(c[i].t, NULL);
			raw_is(c[i].rc, 0);
		}
		w.cq.ci++;
		__atomic_store_n(w.cq.ci_rec, w.cq.ci, __ATOMIC_RELEASE);
	}
	wt_close(&w);
}

/* ---- Signals ------------------------------------------------------------------------ */

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void alarms_every(unsigned int ms, int flags)
{
	struct itimerval t = { .it_interval.tv_usec = ms * 1000, .it_value.tv_usec = ms * 1000 };
	struct sigaction act = { .sa_handler = ms ? on_alarm : SIG_DFL, .sa_flags = flags };

	alarms = 0;
	if (ms)
		sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
	if (!ms)
		sigaction(SIGALRM, &act, NULL);
}

static void signals(void **state)
{
	struct npuemu_ioc_wait_item it;
	int64_t end;
	struct wt w;

	(void)state;
	wt_open(&w, 0);
	for (int kind = 0; kind < 2; kind++) {
		it = kind ? cq_item(&w.cq) : word_item(w.word, 1);
		alarms_every(40, 0);
		raw_is(raw_wait(&w.r, &it, 1, sys_deadline(), NULL), -EINTR);
		sys_true(alarms >= 1, "EINTR without a signal");
		/* restarted, with the same deadline: that is why it is absolute */
		alarms_every(40, SA_RESTART);
		end = npuemu_deadline_ms(400);
		raw_is(raw_wait(&w.r, &it, 1, end, NULL), -ETIMEDOUT);
		sys_true(npuemu_now_ns() >= end, "it woke early");
		sys_true(alarms >= 3, "%d signals in 400 ms", (int)alarms);
		alarms_every(0, 0);
	}
	wt_close(&w);
}

/* ---- eventfds ------------------------------------------------------------------------- */

static bool signalled(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t n;

	if (poll(&p, 1, ms) != 1)
		return false;
	raw_is(raw_sys(read(fd, &n, sizeof(n))), (long)sizeof(n));
	sys_true(n, "an eventfd of 0");
	return true;
}

static void set_eventfd(struct raw_cq *cq, int fd)
{
	struct npuemu_ioc_cq_eventfd a = { .handle = cq->handle, .fd = fd };

	raw_is(raw_ioctl(cq->r->fd, NPUEMU_IOC_CQ_EVENTFD, &a), 0);
}

static void complete_one(struct wt *w, const struct raw_seg *s)
{
	raw_post_write(&w->q, w->bo.p + 4096, 64, s, 0);
	raw_completes(&w->q, NPUEMU_ST_SUCCESS);
}

static void eventfds(void **state)
{
	struct raw_seg seg;
	struct wt w;
	int a, b;

	(void)state;
	wt_open(&w, 0);
	raw_seg_make(&w.bo, &seg, SYS_RWA);
	a = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	b = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sys_true(a >= 0 && b >= 0, "eventfd");
	complete_one(&w, &seg);
	sys_true(!signalled(a, 20), "not asked for");
	set_eventfd(&w.cq, a);
	for (int i = 0; i < 5; i++) {
		complete_one(&w, &seg);
		sys_true(signalled(a, SYS_PATIENCE_MS), "completion %d is not announced", i);
	}
	/* another in its place */
	set_eventfd(&w.cq, b);
	complete_one(&w, &seg);
	sys_true(signalled(b, SYS_PATIENCE_MS), "the second eventfd");
	sys_true(!signalled(a, 20), "the first is signalled still");
	set_eventfd(&w.cq, -1);
	complete_one(&w, &seg);
	sys_true(!signalled(b, 50), "taken away, and signalled");
	/* the driver keeps it, and lets go of it once */
	set_eventfd(&w.cq, a);
	set_eventfd(&w.cq, a);
	close(a);
	complete_one(&w, &seg);
	set_eventfd(&w.cq, b);
	complete_one(&w, &seg);
	raw_is(raw_q_destroy(&w.q), 0);
	raw_is(raw_cq_destroy(&w.cq), 0);
	close(b);
	wt_close(&w);
}

/* ---- Peers ------------------------------------------------------------------------------ */

struct told {
	struct raw_seg seg;
	uint64_t name[4];
};

/* Makes the word true, by engine and by a store, when told to. */
static void peer(int fd, void *unused)
{
	struct npuemu_ioc_bo_open op = { 0 };
	struct npuemu_ioc_join join = { 0 };
	uint64_t *word;
	struct told t;
	struct wt w;
	int dev0;

	(void)unused;
	sys_get(fd, &t, sizeof(t));
	wt_open(&w, 1);
	memcpy(op.name, t.name, sizeof(op.name));
	raw_is(raw_ioctl(w.r.fd, NPUEMU_IOC_BO_OPEN, &op), 0);
	/* it is on device 0, and this file is device 1's */
	raw_is(raw_sys(mmap(NULL, op.room, PROT_READ, MAP_SHARED, w.r.fd, (off_t)op.map_offset)),
	       -EINVAL);
	join.fd = w.r.fd;
	dev0 = raw_node(0);
	raw_is(raw_ioctl(dev0, NPUEMU_IOC_JOIN, &join), 0);
	word = mmap(NULL, op.room, PROT_READ | PROT_WRITE, MAP_SHARED, dev0,
		    (off_t)op.map_offset);
	sys_true(word != MAP_FAILED, "mmap: %s", strerror(errno));
	for (uint64_t n = 1;; n++) {
		sys_wait_go(fd);
		sys_nap(20);
		if (n & 1) {
			*w.word = n;
			raw_post_write(&w.q, w.bo.p, 8, &t.seg, 0);
			raw_completes(&w.q, NPUEMU_ST_SUCCESS);
		} else {
			__atomic_store_n(word, n, __ATOMIC_RELEASE);
		}
	}
}

static void woken_by_peers(void **state)
{
	struct npuemu_ioc_bo_name name = { 0 };
	struct npuemu_ioc_wait_item it;
	struct told t = { 0 };
	struct raw_child c;
	struct wt w;

	(void)state;
	raw_fork(&c, peer, NULL);
	wt_open(&w, 0);
	raw_seg_make(&w.bo, &t.seg, SYS_RWA);
	name.handle = w.bo.handle;
	raw_is(raw_ioctl(w.r.fd, NPUEMU_IOC_BO_NAME, &name), 0);
	memcpy(t.name, name.name, sizeof(t.name));
	sys_put(c.fd, &t, sizeof(t));
	for (uint64_t n = 1; n <= 20; n++) {
		sys_go(c.fd);
		it = word_item(w.word, n);
		raw_is(raw_wait(&w.r, &it, 1, sys_deadline(), NULL), 0);
		sys_eq(*w.word, n);
	}
	raw_kill(&c);
	wt_close(&w);
}

static void maker(int fd, void *unused)
{
	struct npuemu_ioc_bo_name name = { 0 };
	struct wt w;

	(void)unused;
	wt_open(&w, 0);
	w.word[1] = 5;
	name.handle = w.bo.handle;
	raw_is(raw_ioctl(w.r.fd, NPUEMU_IOC_BO_NAME, &name), 0);
	sys_put(fd, name.name, sizeof(name.name));
	pause();
}

static void *kill_later(void *arg)
{
	sys_nap(100);
	kill(*(pid_t *)arg, SIGKILL);
	return NULL;
}

static void owner_dies(void **state)
{
	struct npuemu_ioc_bo_open op = { 0 };
	struct npuemu_ioc_wait_item it[2];
	struct raw_child c;
	struct raw_bo b;
	uint32_t ready;
	pthread_t t;
	struct wt w;

	(void)state;
	raw_fork(&c, maker, NULL);
	sys_get(c.fd, op.name, sizeof(op.name));
	wt_open(&w, 0);
	raw_is(raw_ioctl(w.r.fd, NPUEMU_IOC_BO_OPEN, &op), 0);
	b = (struct raw_bo){ .r = &w.r, .handle = op.handle, .room = op.room,
			     .offset = op.map_offset };
	raw_bo_map(&b);
	it[0] = word_item((uint64_t *)(void *)b.p, 1);
	it[1] = word_item(w.word, 1);
	sys_true(!pthread_create(&t, NULL, kill_later, &c.pid), "pthread_create");
	raw_is(raw_wait(&w.r, it, 2, sys_deadline(), NULL), -EOWNERDEAD);
	pthread_join(t, NULL);
	raw_kill(&c);
	/* what it left behind is there, and true or not */
	it[0] = word_item((uint64_t *)(void *)b.p + 1, 5);
	raw_is(raw_wait(&w.r, it, 1, 0, &ready), 0);
	it[0].value = 6;
	raw_is(raw_wait(&w.r, it, 1, sys_deadline(), NULL), -EOWNERDEAD);
	/* one's own words are of no concern to it */
	it[0] = word_item(w.word, 1);
	raw_is(raw_wait(&w.r, it, 1, npuemu_deadline_ms(20), NULL), -ETIMEDOUT);
	raw_bo_drop(&b);
	wt_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(deadlines),
		raw_test(several),
		raw_test(many_threads),
		raw_test(signals),
		raw_test(eventfds),
		raw_test(woken_by_peers),
		raw_test(owner_dies),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
