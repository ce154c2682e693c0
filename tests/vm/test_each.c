// SPDX-License-Identifier: MIT
/*
 * Each ioctl, mmap and open on its own, again and again in two threads, while the device
 * is reset or pulled out.  Two contexts do so at a time: one that was opened through the
 * device, and is lost with it, and one of another device, which goes on.
 */
#include <sys/eventfd.h>

#include "each.h"
#include "reload.h"

/* ---- A party ---------------------------------------------------------------------------- */

static void own_make(struct own *o, struct party *p, unsigned int nr)
{
	struct npuemu_ioc_bo_export ex = { .flags = O_RDWR | O_CLOEXEC };
	struct npuemu_ioc_rq_create rq = { .device = p->device, .depth = 64, .max_sge = 1 };
	struct npuemu_ioc_bo_name name = { 0 };
	struct raw_bo theirs;

	memset(o, 0, sizeof(*o));
	o->p = p;
	o->state = NPUEMU_QS_READY;
	o->va = 0x100000000000 + nr * GIB;
	raw_bo_make(&p->via, &o->bo, 64 * KIB);
	raw_seg_make(&o->bo, &o->seg, SYS_RWA);
	raw_cq_make(&p->r, &o->cq, 64);
	raw_cq_make(&p->r, &o->idle, 64);
	raw_q_make(&p->r, &o->q, &o->cq, p->device, RAW_SDMA, 64);
	rq.cq = o->cq.handle;
	raw_is(raw_ioctl(p->r.fd, NPUEMU_IOC_RQ_CREATE, &rq), 0);
	o->rq = rq.id;
	raw_bo_create(&p->far_via, &theirs, 8 * KIB);
	ex.handle = name.handle = theirs.handle;
	raw_is(raw_ioctl(p->far.fd, NPUEMU_IOC_BO_EXPORT, &ex), 0);
	o->dmabuf = ex.fd;
	raw_is(raw_ioctl(p->far.fd, NPUEMU_IOC_BO_NAME, &name), 0);
	memcpy(o->name, name.name, sizeof(o->name));
	o->event = eventfd(0, EFD_CLOEXEC);
	o->host = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sys_true(o->event >= 0 && o->host != MAP_FAILED, "eventfd, mmap");
}

/* The context of @r, through another file of it, of the device. */
static void joined(const struct raw *r, struct raw *via, uint32_t device)
{
	struct npuemu_ioc_join j = { .fd = r->fd };

	*via = *r;
	via->fd = raw_node(device);
	raw_is(raw_ioctl(via->fd, NPUEMU_IOC_JOIN, &j), 0);
}

static void *run(void *arg)
{
	struct own *o = arg;

	while (!__atomic_load_n(&o->p->stop, __ATOMIC_ACQUIRE))
		steps[o->p->step](o);
	/* once more, when it is over */
	steps[o->p->step](o);
	return NULL;
}

/* Nothing but ENODEV, whatever is asked for. */
static void stays_lost(struct party *p)
{
	static const unsigned long cmds[] = {
		NPUEMU_IOC_QUERY, NPUEMU_IOC_BO_CREATE, NPUEMU_IOC_BO_CLOSE, NPUEMU_IOC_BO_EXPORT,
		NPUEMU_IOC_BO_IMPORT, NPUEMU_IOC_BO_NAME, NPUEMU_IOC_BO_OPEN,
		NPUEMU_IOC_SEG_CREATE, NPUEMU_IOC_SEG_ROTATE, NPUEMU_IOC_SEG_DESTROY,
		NPUEMU_IOC_CQ_CREATE, NPUEMU_IOC_CQ_DESTROY, NPUEMU_IOC_CQ_EVENTFD,
		NPUEMU_IOC_RQ_CREATE, NPUEMU_IOC_RQ_DESTROY, NPUEMU_IOC_RQ_QUERY,
		NPUEMU_IOC_QUEUE_CREATE, NPUEMU_IOC_QUEUE_DESTROY, NPUEMU_IOC_QUEUE_MODIFY,
		NPUEMU_IOC_QUEUE_QUERY, NPUEMU_IOC_WAIT, NPUEMU_IOC_DEVICE, NPUEMU_IOC_LINK,
	};
	struct npuemu_ioc_query q = { 0 };
	uint64_t arg[512 / 8];
	struct raw late;

	for (unsigned int i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++) {
		int rc;

		memset(arg, 0, sizeof(arg));
		rc = raw_ioctl(p->r.fd, cmds[i], arg);
		sys_true(rc == -ENODEV, "call %#x in a context that is lost: %d (%s)",
			 (unsigned int)_IOC_NR(cmds[i]), rc, strerror(-rc));
	}
	raw_is(raw_sys(mmap(NULL, 4096, PROT_READ, MAP_SHARED, p->r.fd,
			    (off_t)p->r.q.ring_offset)), -ENODEV);
	/* another file may join it, and has lost everything, too */
	joined(&p->r, &late, 0);
	raw_is(raw_ioctl(late.fd, NPUEMU_IOC_QUERY, &q), -ENODEV);
}

/* The other one goes on; on the device as well, if that is there again. */
static void goes_on(struct party *p)
{
	static struct own again;
	struct raw_bo bo;

	raw_bo_make(&p->r, &bo, 64 * KIB);
	memset(bo.p, 1, bo.room);
	raw_bo_drop(&bo);
	if (p->unplug || p->step == RESETS)
		return;
	own_make(&again, p, THREADS);
	steps[p->step](&again);
	for (unsigned int i = 0; i < NRS; i++)
		sys_true(!again.gone[i], "call %#x does not work any more", i);
	raw_post_fill(&again.q, again.bo.p, 0x4242424242424242, again.bo.room);
	if (steps[p->step] == s_modify)
		raw_is(raw_modify(&again.q, NPUEMU_QS_READY), 0);
	raw_completes(&again.q, NPUEMU_ST_SUCCESS);
	sys_is_byte("filled", again.bo.p, again.bo.room, 0x42);
}

static void party(int fd, void *arg)
{
	static uint32_t sum[2][NRS];
	struct party *p = arg;

	raw_open(&p->r, p->home ? p->device : 0);
	raw_open(&p->far, 0);
	joined(&p->far, &p->far_via, p->device);
	if (p->home)
		p->via = p->r;
	else
		joined(&p->r, &p->via, p->device);
	p->ctl = raw_ctl();
	for (unsigned int i = 0; i < THREADS; i++)
		own_make(&p->own[i], p, i);
	sys_go(fd);
	sys_wait_go(fd);
	for (unsigned int i = 0; i < THREADS; i++)
		sys_true(!pthread_create(&p->own[i].thread, NULL, run, &p->own[i]),
			 "pthread_create");
	sys_go(fd);
	sys_wait_go(fd);
	__atomic_store_n(&p->stop, true, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(p->own[i].thread, NULL);
		for (unsigned int nr = 0; nr < NRS; nr++) {
			sum[0][nr] += p->own[i].ok[nr];
			sum[1][nr] += p->own[i].gone[nr];
		}
	}
	sys_put(fd, sum, sizeof(sum));
	sys_wait_go(fd);
	if (p->home)
		stays_lost(p);
	else
		goes_on(p);
}

/* ---- The storm -------------------------------------------------------------------------- */

static uint32_t seen[2][NRS];	/* worked, and found the device gone */

static void both_ready(struct raw_child c[2])
{
	for (int i = 0; i < 2; i++)
		sys_wait_go(c[i].fd);
}

static void both_go(struct raw_child c[2])
{
	for (int i = 0; i < 2; i++)
		sys_go(c[i].fd);
}

static void one_step(unsigned int step, uint32_t device, bool unplug, uint64_t *rnd)
{
	struct npuemu_ioc_device_ctl a = { .device = device };
	static struct party p[2];
	uint32_t sum[2][NRS];
	struct raw_child c[2];
	int ctl, rc;

	for (int i = 0; i < 2; i++) {
		p[i].home = !i;
		p[i].unplug = unplug;
		p[i].device = device;
		p[i].step = step;
		raw_fork(&c[i], party, &p[i]);
	}
	both_ready(c);
	both_go(c);
	both_ready(c);
	usleep((useconds_t)(1000 + sys_rand(rnd) % 8000));
	ctl = raw_ctl();
	rc = raw_ioctl(ctl, unplug ? NPUEMU_IOC_DEVICE_UNPLUG : NPUEMU_IOC_DEVICE_RESET, &a);
	close(ctl);
	/* unless one of them did it */
	sys_true(!rc || (unplug && step == RESETS && rc == -ENODEV), "%s: %s",
		 unplug ? "unplug" : "reset", strerror(-rc));
	both_go(c);
	for (int i = 0; i < 2; i++) {
		sys_get(c[i].fd, sum, sizeof(sum));
		for (unsigned int nr = 0; nr < NRS; nr++) {
			seen[0][nr] += sum[0][nr];
			seen[1][nr] += sum[1][nr];
		}
	}
	both_go(c);
	for (int i = 0; i < 2; i++)
		raw_join(&c[i]);
}

/* Else the test was none: each of them was met before and after. */
static void all_met(bool unplug)
{
	static const unsigned long cmds[] = {
		NPUEMU_IOC_QUERY, NPUEMU_IOC_BO_CREATE, NPUEMU_IOC_BO_EXPORT,
		NPUEMU_IOC_BO_IMPORT, NPUEMU_IOC_BO_NAME, NPUEMU_IOC_BO_OPEN, NPUEMU_IOC_VA_MAP,
		NPUEMU_IOC_SEG_CREATE, NPUEMU_IOC_SEG_ROTATE, NPUEMU_IOC_CQ_CREATE,
		NPUEMU_IOC_CQ_EVENTFD, NPUEMU_IOC_RQ_CREATE, NPUEMU_IOC_RQ_QUERY,
		NPUEMU_IOC_QUEUE_CREATE, NPUEMU_IOC_QUEUE_MODIFY, NPUEMU_IOC_QUEUE_QUERY,
		NPUEMU_IOC_WAIT, NPUEMU_IOC_DEVICE, NPUEMU_IOC_LINK,
	}, anyway[] = {
		NPUEMU_IOC_JOIN, NPUEMU_IOC_BO_CLOSE, NPUEMU_IOC_VA_UNMAP,
		NPUEMU_IOC_SEG_DESTROY, NPUEMU_IOC_CQ_DESTROY, NPUEMU_IOC_RQ_DESTROY,
		NPUEMU_IOC_QUEUE_DESTROY, NPUEMU_IOC_PROCESSES, NPUEMU_IOC_QUEUES,
		NPUEMU_IOC_FAULT_INJECT, NPUEMU_IOC_FAULT_CLEAR,
	};

	for (unsigned int i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++) {
		unsigned int nr = _IOC_NR(cmds[i]);

		sys_true(seen[0][nr] && seen[1][nr], "call %#x: %u times it worked, %u times not",
			 nr, seen[0][nr], seen[1][nr]);
	}
	for (unsigned int i = 0; i < sizeof(anyway) / sizeof(anyway[0]); i++)
		sys_true(seen[0][_IOC_NR(anyway[i])], "call %#x never worked",
			 (unsigned int)_IOC_NR(anyway[i]));
	sys_true(seen[0][MMAP] && seen[1][MMAP] && seen[0][OPEN], "mmap or open");
	sys_true(seen[0][_IOC_NR(unplug ? NPUEMU_IOC_DEVICE_UNPLUG : NPUEMU_IOC_DEVICE_RESET)],
		 "only the test itself was let do it");
}

#define ROUNDS	3

static void each_and_reset(void **state)
{
	uint64_t rnd = 21;

	(void)state;
	memset(seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < ROUNDS * STEPS; i++)
		one_step(i % STEPS, 1, false, &rnd);
	all_met(false);
}

/* A device for each. */
static void each_and_unplug(void **state)
{
	struct reload m = reload_find();
	uint64_t rnd = 22;

	(void)state;
	_Static_assert(STEPS < 32, "machine small has 32 devices at most");
	reload_as(&m, "topology=small devices=32");
	memset(seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < STEPS; i++)
		one_step(i, i + 1, true, &rnd);
	all_met(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(each_and_reset),
		reload_test(each_and_unplug),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
