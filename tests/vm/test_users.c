// SPDX-License-Identifier: MIT
/*
 * Two users who want each other no good: names, tokens, offsets, queues, messages,
 * doorbells, contexts, faults and debugfs.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "raw.h"

#define ALICE	1000
#define MALLORY	1001

/* Everything Alice's process could have told. */
struct secrets {
	uint32_t slot;
	struct npuemu_ioc_query q;
	uint64_t name[4];
	struct raw_seg seg;
	uint64_t bo_offset;
	uint32_t bo_handle;
	uint32_t queue;
	uint32_t cq;
	uint64_t va;
	uint32_t device;
};

static void alice(int fd, void *unused)
{
	struct npuemu_ioc_bo_name name = { 0 };
	struct secrets s = { 0 };
	struct raw_bo bo;
	struct raw_cq cq;
	struct raw_q q;
	struct raw r;

	(void)unused;
	raw_become(ALICE);
	raw_open(&r, 0);
	raw_bo_make(&r, &bo, 64 * KIB);
	memset(bo.p, 0x77, bo.room);
	raw_seg_make(&bo, &s.seg, SYS_RWA);
	raw_cq_make(&r, &cq, 64);
	raw_q_make(&r, &q, &cq, 0, RAW_UDMA, 64);
	name.handle = bo.handle;
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_BO_NAME, &name), 0);
	memcpy(s.name, name.name, sizeof(s.name));
	s.q = r.q;
	s.slot = r.q.slot;
	s.bo_offset = bo.offset;
	s.bo_handle = bo.handle;
	s.queue = q.id;
	s.cq = cq.handle;
	s.va = (uintptr_t)bo.p;
	sys_put(fd, &s, sizeof(s));
	sys_wait_go(fd);
	/* nothing happened to her */
	sys_is_byte("Alice's memory", bo.p, bo.room, 0x77);
	sys_eq(raw_query(&q).state, NPUEMU_QS_READY);
	raw_post_write(&q, bo.p, 64, &s.seg, 4096);
	raw_completes(&q, NPUEMU_ST_SUCCESS);
	sys_eq(*raw_record(&r, 0, NPUEMU_REC_BROKEN), 0);
}

/* Runs what Mallory does, with Alice's secrets. */
static void attack(raw_child_fn mallory)
{
	struct raw_child a, m;
	struct secrets s;

	raw_fork(&a, alice, NULL);
	sys_get(a.fd, &s, sizeof(s));
	raw_fork(&m, mallory, &s);
	raw_join(&m);
	sys_go(a.fd);
	raw_join(&a);
}

struct mine {
	struct raw r;
	struct raw_bo bo;
	struct raw_cq cq;
	struct raw_q q;
};

static void mallory_opens(struct mine *m)
{
	raw_become(MALLORY);
	raw_open(&m->r, 0);
	raw_bo_make(&m->r, &m->bo, 64 * KIB);
	memset(m->bo.p, 0x66, m->bo.room);
	raw_cq_make(&m->r, &m->cq, 64);
	raw_q_make(&m->r, &m->q, &m->cq, 0, RAW_UDMA, 64);
}

/* The queue stops at an error; make it go again. */
static void revive(struct mine *m)
{
	struct npuemu_cqe cqe;

	raw_is(raw_modify(&m->q, NPUEMU_QS_RESET), 0);
	raw_is(raw_modify(&m->q, NPUEMU_QS_READY), 0);
	sys_nap(2);
	while (raw_poll(&m->cq, &cqe))
		;
}

/* ---- Names and offsets ----------------------------------------------------------------- */

static void mallory_names(int fd, void *arg)
{
	struct npuemu_ioc_bo_open op = { 0 };
	struct secrets *s = arg;
	struct mine m;

	(void)fd;
	mallory_opens(&m);
	memcpy(op.name, s->name, sizeof(op.name));
	raw_is(raw_ioctl(m.r.fd, NPUEMU_IOC_BO_OPEN, &op), -EACCES);
	/* guessing tells nothing: neither who has something, nor whether it is close */
	for (int bit = 0; bit < 128; bit++) {
		memcpy(op.name, s->name, sizeof(op.name));
		op.name[1 + bit / 64] ^= 1ull << bit % 64;
		raw_is(raw_ioctl(m.r.fd, NPUEMU_IOC_BO_OPEN, &op), -ESTALE);
	}
}

static void names(void **state)
{
	(void)state;
	attack(mallory_names);
}

static void mallory_maps(int fd, void *arg)
{
	struct secrets *s = arg;
	uint64_t at[] = {
		s->bo_offset, s->bo_offset + 4096, s->q.ring_offset, s->q.ring_offset + 4096,
		s->q.db_offset, s->q.db_offset + 4096 * (s->queue & 4095), s->q.rec_offset, 0,
	};
	struct mine m;

	(void)fd;
	mallory_opens(&m);
	for (unsigned int i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		raw_is(raw_sys(mmap(NULL, 4096, PROT_READ, MAP_SHARED, m.r.fd, (off_t)at[i])),
		       -EINVAL);
		raw_is(raw_sys(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, m.r.fd,
				    (off_t)at[i])), -EINVAL);
	}
	/* her addresses mean nothing here */
	if (s->va != (uintptr_t)m.bo.p) {
		struct raw_seg own;

		raw_seg_make(&m.bo, &own, SYS_RWA);
		raw_post_write(&m.q, (void *)(uintptr_t)s->va, 64, &own, 0);
		raw_completes(&m.q, NPUEMU_ST_LOC_ACCESS);
	}
}

static void mappings(void **state)
{
	(void)state;
	attack(mallory_maps);
}

/* ---- Segments ----------------------------------------------------------------------------- */

static void denied(struct mine *m, const struct raw_seg *t)
{
	unsigned char before[64];

	memcpy(before, m->bo.p, 64);
	raw_post_write(&m->q, m->bo.p, 64, t, 0);
	raw_completes(&m->q, NPUEMU_ST_REM_ACCESS_ABORT);
	revive(m);
	raw_post_read(&m->q, m->bo.p, 64, t, 0);
	raw_completes(&m->q, NPUEMU_ST_REM_ACCESS_ABORT);
	revive(m);
	sys_same("Mallory's memory", m->bo.p, before, 64);
}

static void mallory_segments(int fd, void *arg)
{
	struct npuemu_ioc_seg_rotate rot = { 0 };
	struct npuemu_ioc_seg_destroy des = { 0 };
	struct secrets *s = arg;
	struct raw_seg t;
	struct mine m;

	(void)fd;
	mallory_opens(&m);
	/* a wrong token and a wrong id look alike */
	t = s->seg;
	t.token_value ^= 1;
	denied(&m, &t);
	t = s->seg;
	t.token_value = 0;
	denied(&m, &t);
	t = s->seg;
	t.token_id += 1;
	denied(&m, &t);
	t = s->seg;
	t.token_id ^= 1 << 12;
	denied(&m, &t);
	t = s->seg;
	t.va += t.bytes;
	denied(&m, &t);
	t = s->seg;
	t.va -= 8;
	denied(&m, &t);
	t = s->seg;
	t.va += t.bytes - 63;
	denied(&m, &t);
	/* another process, by its endpoint: this one's own segment is not there */
	raw_seg_make(&m.bo, &t, SYS_RWA);
	memcpy(t.eid, s->seg.eid, sizeof(t.eid));
	if (t.token_id != s->seg.token_id || t.token_value != s->seg.token_value)
		denied(&m, &t);
	/* who does not own it, does not change it: a small number may be Mallory's own */
	raw_seg_make(&m.bo, &t, NPUEMU_ACCESS_READ);
	rot.token_id = s->seg.token_id + 2048;
	raw_is(raw_ioctl(m.r.fd, NPUEMU_IOC_SEG_ROTATE, &rot), -ENOENT);
	des.token_id = s->seg.token_id + 2048;
	raw_is(raw_ioctl(m.r.fd, NPUEMU_IOC_SEG_DESTROY, &des), -ENOENT);
}

static void segments(void **state)
{
	(void)state;
	attack(mallory_segments);
}

static void mallory_invited(int fd, void *arg)
{
	struct secrets *s = arg;
	struct mine m;

	(void)fd;
	mallory_opens(&m);
	/* told the token, it may be read: that is what tokens are for */
	raw_post_read(&m.q, m.bo.p, 4096, &s->seg, 0);
	raw_completes(&m.q, NPUEMU_ST_SUCCESS);
	sys_is_byte("what was read", m.bo.p, 4096, 0x77);
}

static void invited(void **state)
{
	(void)state;
	attack(mallory_invited);
}

/* ---- Queues ---------------------------------------------------------------------------------- */

static void mallory_queues(int fd, void *arg)
{
	struct npuemu_ioc_queue_query list[8];
	struct npuemu_ioc_queue_modify mod = { .state = NPUEMU_QS_ERROR };
	struct npuemu_ioc_queue_query query = { 0 };
	struct npuemu_ioc_list l = { .list = (uintptr_t)list, .nr = 8 };
	struct npuemu_ioc_handle h = { 0 };
	struct secrets *s = arg;
	struct npuemu_cqe cqe;
	struct mine m;

	(void)fd;
	mallory_opens(&m);
	/* not her queue, even if it has the same number as Mallory's own */
	if (s->queue == m.q.id) {
		raw_is(raw_q_destroy(&m.q), 0);
		raw_q_make(&m.r, &m.q, &m.cq, 0, RAW_UDMA, 64);
	}
	h.handle = mod.id = query.id = s->queue;
	if (s->queue != m.q.id) {
		raw_is(raw_ioctl(m.r.fd, NPUEMU_IOC_QUEUE_QUERY, &query), -ENOENT);
		raw_is(raw_ioctl(m.r.fd, NPUEMU_IOC_QUEUE_MODIFY, &mod), -ENOENT);
		raw_is(raw_ioctl(m.r.fd, NPUEMU_IOC_QUEUE_DESTROY, &h), -ENOENT);
	}
	/* all doorbells of Mallory's own window: pages only where there are queues */
	for (uint32_t i = 0; i < 64; i++) {
		volatile uint32_t *db = (void *)(m.r.doorbells + i * 4096 + NPUEMU_DB_PI);

		if (!raw_touch(db, true) && (uint32_t *)db != m.q.db)
			sys_fail(__FILE__, __LINE__, "page %u is there", i);
	}
	/* a doorbell value that is nonsense stops the own queue, and only that */
	*m.q.db = 0x80000000;
	for (int64_t end = sys_deadline(); raw_query(&m.q).state != NPUEMU_QS_ERROR;)
		sys_true(sys_retry(end), "a doorbell value that is nonsense is taken");
	while (raw_poll(&m.cq, &cqe))
		;
	/* looking is allowed (npuemu-smi); changing is not */
	l.slot = s->slot;
	raw_is(raw_ioctl(m.r.fd, NPUEMU_IOC_QUEUES, &l), 0);
	sys_eq(l.total, 1);
	sys_eq(list[0].state, NPUEMU_QS_READY);
}

static void queues(void **state)
{
	(void)state;
	attack(mallory_queues);
}

/* ---- Messages ------------------------------------------------------------------------- */

/* A receive queue of Alice's that wants its token; she tells who may know it, id and all. */
static void alice_receives(int fd, void *unused)
{
	struct npuemu_ioc_rq_create a = {
		.depth = 64, .max_sge = 1, .flags = NPUEMU_RQF_TOKEN,
	};
	struct npuemu_ioc_rq_query q = { 0 };
	struct npuemu_sge *ring;
	struct npuemu_cqe cqe;
	struct raw_seg to;
	struct raw_bo bo;
	struct raw_cq cq;
	struct raw r;

	(void)unused;
	raw_become(ALICE);
	raw_open(&r, 0);
	raw_bo_make(&r, &bo, 64 * KIB);
	memset(bo.p, 0x77, bo.room);
	raw_cq_make(&r, &cq, 64);
	a.cq = cq.handle;
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_RQ_CREATE, &a), 0);
	sys_true(a.token_value, "a random token is 0");
	ring = (void *)(r.rings + a.ring);
	for (int i = 0; i < 2; i++)
		ring[i] = (struct npuemu_sge){ .len = 4096, .va = (uintptr_t)bo.p + i * 4096 };
	__atomic_store_n(raw_record(&r, a.record, NPUEMU_REC_INDEX), 2, __ATOMIC_RELEASE);
	memset(&to, 0, sizeof(to));
	memcpy(to.eid, a.eid, sizeof(to.eid));
	to.token_id = a.id;
	to.token_value = a.token_value;
	sys_put(fd, &to, sizeof(to));
	/* strangers have tried */
	sys_wait_go(fd);
	q.id = a.id;
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_RQ_QUERY, &q), 0);
	sys_eq(q.consumed, 0);
	sys_true(!raw_poll(&cq, &cqe), "a completion of a message that was refused");
	sys_is_byte("Alice's memory", bo.p, bo.room, 0x77);
	sys_go(fd);
	/* and one who knows it */
	sys_wait_go(fd);
	sys_true(raw_poll(&cq, &cqe), "no message");
	raw_status_is(__FILE__, __LINE__, raw_status(&cqe), NPUEMU_ST_SUCCESS);
	sys_is_byte("the message", bo.p, 64, 0x66);
	sys_is_byte("Alice's memory", bo.p + 64, bo.room - 64, 0x77);
	sys_true(!raw_poll(&cq, &cqe), "two messages");
}

static void not_received(struct mine *m, const struct raw_seg *to, bool token)
{
	raw_post_send(&m->q, m->bo.p, 64, to, token);
	raw_completes(&m->q, NPUEMU_ST_REM_ACCESS_ABORT);
	revive(m);
}

static void mallory_sends(int fd, void *arg)
{
	struct raw_seg *right = arg, to = *right;
	char cause[2][NPUEMU_CAUSE_LEN];
	struct mine m;

	mallory_opens(&m);
	for (uint32_t bit = 0; bit < 32; bit++) {
		to.token_value = right->token_value ^ 1u << bit;
		not_received(&m, &to, true);
	}
	to.token_value = 0;
	not_received(&m, &to, true);
	not_received(&m, right, false);
	/* a wrong token and no such queue look alike, in words as well */
	for (int i = 0; i < 2; i++) {
		to = *right;
		to.token_value ^= !i;
		to.token_id ^= i << 12;
		raw_post_send(&m.q, m.bo.p, 64, &to, true);
		raw_completes(&m.q, NPUEMU_ST_REM_ACCESS_ABORT);
		memcpy(cause[i], raw_query(&m.q).cause, sizeof(cause[i]));
		revive(&m);
	}
	sys_true(cause[0][0] && !strcmp(cause[0], cause[1]), "\"%s\" and \"%s\"", cause[0],
		 cause[1]);
	sys_go(fd);
	sys_wait_go(fd);
	raw_post_send(&m.q, m.bo.p, 64, right, true);
	raw_completes(&m.q, NPUEMU_ST_SUCCESS);
}

static void messages(void **state)
{
	struct raw_child a, m;
	struct raw_seg to;

	(void)state;
	raw_fork(&a, alice_receives, NULL);
	sys_get(a.fd, &to, sizeof(to));
	raw_fork(&m, mallory_sends, &to);
	sys_wait_go(m.fd);
	sys_go(a.fd);
	sys_wait_go(a.fd);
	sys_go(m.fd);
	raw_join(&m);
	sys_go(a.fd);
	raw_join(&a);
}

/* ---- Contexts ------------------------------------------------------------------------- */

#define HALF	128

/* All that one user can get. */
static void mallory_hogs(int fd, void *unused)
{
	static const char *const nodes[] = { "/dev/npuemu0", "/dev/npuemu1" };
	int f[HALF + 1], n;

	(void)unused;
	raw_become(MALLORY);
	for (n = 0; n <= HALF; n++) {
		f[n] = open(nodes[n & 1], O_RDWR | O_CLOEXEC);
		if (f[n] < 0)
			break;
	}
	raw_is(-errno, -EUSERS);
	sys_eq(n, HALF);
	/* another process of the same user, and looking around, which needs none */
	sys_go(fd);
	sys_wait_go(fd);
	close(raw_ctl());
	close(f[--n]);
	f[n++] = raw_node(0);
	sys_true(open(nodes[0], O_RDWR) < 0 && errno == EUSERS, "one more: %s", strerror(errno));
}

static void one_more(int fd, void *arg)
{
	uid_t *uid = arg;
	int f;

	(void)fd;
	if (*uid)
		raw_become(*uid);
	f = open("/dev/npuemu0", O_RDWR | O_CLOEXEC);
	if (*uid == MALLORY)
		sys_true(f < 0 && errno == EUSERS, "the same user: %s", strerror(errno));
	else
		sys_true(f >= 0, "user %u: %s", *uid, strerror(errno));
}

static void hog(void **state)
{
	static uid_t who[] = { ALICE, 0, MALLORY };
	struct raw_child m, c;

	(void)state;
	raw_fork(&m, mallory_hogs, NULL);
	sys_wait_go(m.fd);
	for (unsigned int i = 0; i < sizeof(who) / sizeof(who[0]); i++) {
		raw_fork(&c, one_more, &who[i]);
		raw_join(&c);
	}
	sys_go(m.fd);
	raw_join(&m);
}

/* ---- The rest --------------------------------------------------------------------------------- */

static void mallory_admin(int fd, void *arg)
{
	static const char *const files[] = {
		"devices", "engines", "contexts", "queues", "segments", "buffers", "leaks",
	};
	struct npuemu_ioc_device_ctl d = { .device = NPUEMU_ALL_DEVICES };
	struct npuemu_ioc_fault fault = {
		.kind = NPUEMU_FAULT_DROP, .slot = NPUEMU_ANY, .queue = NPUEMU_ANY,
		.device = NPUEMU_ANY, .rate_ppm = 1000000,
	};
	char path[128];
	struct mine m;
	int ctl;

	(void)fd;
	(void)arg;
	mallory_opens(&m);
	ctl = raw_ctl();
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_FAULT_INJECT, &fault), -EPERM);
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_FAULT_CLEAR, NULL), -EPERM);
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_DEVICE_RESET, &d), -EPERM);
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_DEVICE_UNPLUG, &d), -EPERM);
	close(ctl);
	for (unsigned int i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/npuemu/%s", files[i]);
		sys_true(open(path, O_RDONLY) < 0 && errno == EACCES, "%s: %s", path,
			 strerror(errno));
	}
	sys_true(open("/sys/module/npuemu/parameters/poll_us", O_WRONLY) < 0 && errno == EACCES,
		 "poll_us can be written");
}

static void debugfs_modes(void)
{
	static const char dir[] = "/sys/kernel/debug/npuemu";
	DIR *d = opendir(dir);
	unsigned int n = 0;
	struct dirent *e;

	sys_true(d, "%s: %s", dir, strerror(errno));
	while ((e = readdir(d))) {
		struct stat st;
		char path[512];

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		sys_true(!stat(path, &st), "%s", path);
		sys_true(!(st.st_mode & 077), "%s: mode %o", path, (unsigned int)st.st_mode);
		n++;
	}
	closedir(d);
	sys_true(n, "%s is empty", dir);
}

static void rights(void **state)
{
	(void)state;
	debugfs_modes();
	attack(mallory_admin);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(names),
		raw_test(mappings),
		raw_test(segments),
		raw_test(invited),
		raw_test(queues),
		raw_test(messages),
		raw_test(hog),
		raw_test(rights),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
