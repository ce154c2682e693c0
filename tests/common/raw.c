// SPDX-License-Identifier: MIT
/* The driver by plain system calls, for its own tests; see raw.h. */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "raw.h"

#define LEAKS		"/sys/kernel/debug/npuemu/leaks"

static unsigned int fds_before, threads_before;

/* ---- The program ------------------------------------------------------------ */

static unsigned int count_dir(const char *path)
{
	DIR *d = opendir(path);
	unsigned int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

void raw_start(void)
{
	if (access("/dev/npuemu-ctl", F_OK)) {
		fprintf(stderr, "no /dev/npuemu-ctl: run it in a VM: tests/run -k NAME vm-6.12\n");
		exit(77);
	}
	signal(SIGPIPE, SIG_IGN);
}

int raw_setup(void **state)
{
	(void)state;
	fds_before = count_dir("/proc/self/fd");
	threads_before = count_dir("/proc/self/task");
	return 0;
}

/* "name number" lines: is any of them not 0?  Its line. */
static bool something_left(char *line, size_t room)
{
	FILE *f = fopen(LEAKS, "r");
	bool found = false;
	char name[64];
	long n;

	sys_true(f, "%s: %s", LEAKS, strerror(errno));
	while (!found && fgets(line, (int)room, f))
		found = sscanf(line, "%63s %ld", name, &n) == 2 && n && strcmp(name, "db_missed");
	fclose(f);
	return found;
}

int raw_teardown(void **state)
{
	int64_t deadline = sys_deadline();
	char line[128];

	(void)state;
	raw_kill_all();
	while (count_dir("/proc/self/task") != threads_before && sys_retry(deadline))
		;
	sys_eq(count_dir("/proc/self/task"), threads_before);
	sys_eq(count_dir("/proc/self/fd"), fds_before);
	/* the last reference to something may go a moment later */
	deadline = npuemu_deadline_ms(10000);
	while (something_left(line, sizeof(line)))
		sys_true(sys_retry(deadline), "left in the driver: %s", line);
	return 0;
}

/* ---- Calls ------------------------------------------------------------------- */

int raw_ioctl(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

void raw_wrong(const char *file, int line, const char *expr, long rc, long want)
{
	sys_fail(file, line, "%s: %ld (%s), not %ld (%s)", expr, rc,
		 rc < 0 ? strerror((int)-rc) : "no error", want,
		 want < 0 ? strerror((int)-want) : "no error");
}

int raw_node(uint32_t device)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/npuemu%u", device);
	fd = open(path, O_RDWR | O_CLOEXEC);
	sys_true(fd >= 0, "%s: %s", path, strerror(errno));
	return fd;
}

int raw_ctl(void)
{
	int fd = open("/dev/npuemu-ctl", O_RDWR | O_CLOEXEC);

	sys_true(fd >= 0, "/dev/npuemu-ctl: %s", strerror(errno));
	return fd;
}

uint64_t raw_missed(void)
{
	struct npuemu_ioc_device d = { 0 };
	int fd = raw_ctl();

	raw_is(raw_ioctl(fd, NPUEMU_IOC_DEVICE, &d), 0);
	close(fd);
	return d.db_missed;
}

long raw_leaks(const char *name)
{
	FILE *f = fopen(LEAKS, "r");
	char is[64];
	long n;

	sys_true(f, "%s: %s", LEAKS, strerror(errno));
	while (fscanf(f, "%63s %ld", is, &n) == 2) {
		if (strcmp(is, name))
			continue;
		fclose(f);
		return n;
	}
	fclose(f);
	sys_fail(__FILE__, __LINE__, "%s does not count %s", LEAKS, name);
}

long raw_number(const char *path)
{
	FILE *f = fopen(path, "r");
	long n = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%ld", &n) != 1)
		n = -1;
	fclose(f);
	return n;
}

bool raw_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = write(fd, text, strlen(text));
	close(fd);
	sys_true(n == (ssize_t)strlen(text), "cannot write \"%s\" to %s", text, path);
	return true;
}

/* ---- A context ----------------------------------------------------------------- */

static unsigned char *window(struct raw *r, uint64_t offset, uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, (off_t)offset);

	sys_true(p != MAP_FAILED, "a window of %llu bytes at %#llx: %s",
		 (unsigned long long)bytes, (unsigned long long)offset, strerror(errno));
	return p;
}

void raw_open(struct raw *r, uint32_t device)
{
	memset(r, 0, sizeof(*r));
	r->device = device;
	r->fd = raw_node(device);
	raw_is(raw_ioctl(r->fd, NPUEMU_IOC_QUERY, &r->q), 0);
	r->rings = window(r, r->q.ring_offset, r->q.ring_bytes);
	r->doorbells = window(r, r->q.db_offset, r->q.db_bytes);
	r->records = window(r, r->q.rec_offset, r->q.rec_bytes);
}

void raw_unmap(struct raw *r)
{
	munmap(r->rings, r->q.ring_bytes);
	munmap(r->doorbells, r->q.db_bytes);
	munmap(r->records, r->q.rec_bytes);
}

void raw_close(struct raw *r)
{
	raw_unmap(r);
	close(r->fd);
	r->fd = -1;
}

uint32_t *raw_record(struct raw *r, uint32_t record, uint32_t at)
{
	return (uint32_t *)(void *)(r->records + (size_t)record * NPUEMU_REC_BYTES + at);
}

void raw_bo_create(struct raw *r, struct raw_bo *b, uint64_t bytes)
{
	struct npuemu_ioc_bo_create a = { .bytes = bytes };

	raw_is(raw_ioctl(r->fd, NPUEMU_IOC_BO_CREATE, &a), 0);
	memset(b, 0, sizeof(*b));
	b->r = r;
	b->handle = a.handle;
	b->room = a.room;
	b->offset = a.map_offset;
}

void raw_bo_map(struct raw_bo *b)
{
	b->p = mmap(NULL, b->room, PROT_READ | PROT_WRITE, MAP_SHARED, b->r->fd,
		    (off_t)b->offset);
	sys_true(b->p != MAP_FAILED, "mmap of a buffer: %s", strerror(errno));
	raw_is(raw_va_map(b->r, (uintptr_t)b->p, b->room, b->handle, 0, 0), 0);
}

void raw_bo_make(struct raw *r, struct raw_bo *b, uint64_t bytes)
{
	raw_bo_create(r, b, bytes);
	raw_bo_map(b);
}

int raw_bo_close(struct raw *r, uint32_t handle)
{
	struct npuemu_ioc_handle a = { .handle = handle };

	return raw_ioctl(r->fd, NPUEMU_IOC_BO_CLOSE, &a);
}

void raw_bo_drop(struct raw_bo *b)
{
	if (b->p)
		munmap(b->p, b->room);
	raw_is(raw_bo_close(b->r, b->handle), 0);
	memset(b, 0, sizeof(*b));
}

int raw_va_map(struct raw *r, uint64_t va, uint64_t bytes, uint32_t handle, uint64_t offset,
	       uint32_t flags)
{
	struct npuemu_ioc_va_map a = {
		.va = va, .bytes = bytes, .offset = offset, .handle = handle, .flags = flags,
	};

	return raw_ioctl(r->fd, NPUEMU_IOC_VA_MAP, &a);
}

int raw_va_unmap(struct raw *r, uint64_t va)
{
	struct npuemu_ioc_va_unmap a = { .va = va };

	return raw_ioctl(r->fd, NPUEMU_IOC_VA_UNMAP, &a);
}

void raw_seg_make(struct raw_bo *b, struct raw_seg *s, uint32_t access)
{
	struct npuemu_ioc_seg_create a = {
		.handle = b->handle, .access = access, .bytes = b->room, .va = (uintptr_t)b->p,
	};

	raw_is(raw_ioctl(b->r->fd, NPUEMU_IOC_SEG_CREATE, &a), 0);
	memcpy(s->eid, a.eid, sizeof(s->eid));
	s->token_id = a.token_id;
	s->token_value = a.token_value;
	s->va = a.va;
	s->bytes = a.bytes;
}

/* ---- Queues ----------------------------------------------------------------------- */

void raw_cq_make(struct raw *r, struct raw_cq *cq, uint32_t depth)
{
	struct npuemu_ioc_cq_create a = { .depth = depth, .flags = NPUEMU_CQF_SHARED };

	raw_is(raw_ioctl(r->fd, NPUEMU_IOC_CQ_CREATE, &a), 0);
	memset(cq, 0, sizeof(*cq));
	cq->r = r;
	cq->handle = a.handle;
	cq->depth = depth;
	cq->ci_rec = raw_record(r, a.record, NPUEMU_REC_INDEX);
	cq->ring = (void *)(r->rings + a.ring);
}

void raw_q_make(struct raw *r, struct raw_q *q, struct raw_cq *cq, uint32_t device,
		uint32_t type, uint32_t depth)
{
	struct npuemu_ioc_queue_create a = {
		.device = device, .type = type, .depth = depth, .cq = cq->handle,
	};

	raw_is(raw_ioctl(r->fd, NPUEMU_IOC_QUEUE_CREATE, &a), 0);
	memset(q, 0, sizeof(*q));
	q->r = r;
	q->cq = cq;
	q->id = a.id;
	q->depth = depth;
	q->ring = (void *)(r->rings + a.ring);
	q->db = (void *)(r->doorbells + (size_t)a.db_page * NPUEMU_DB_PAGE_SIZE + NPUEMU_DB_PI);
	memcpy(q->eid, a.eid, sizeof(q->eid));
	if (raw_query(q).state == NPUEMU_QS_RESET)
		raw_is(raw_modify(q, NPUEMU_QS_READY), 0);
}

int raw_q_destroy(struct raw_q *q)
{
	struct npuemu_ioc_handle a = { .handle = q->id };

	return raw_ioctl(q->r->fd, NPUEMU_IOC_QUEUE_DESTROY, &a);
}

int raw_cq_destroy(struct raw_cq *cq)
{
	struct npuemu_ioc_handle a = { .handle = cq->handle };

	return raw_ioctl(cq->r->fd, NPUEMU_IOC_CQ_DESTROY, &a);
}

int raw_modify(struct raw_q *q, uint32_t state)
{
	struct npuemu_ioc_queue_modify a = { .id = q->id, .state = state };
	int rc = raw_ioctl(q->r->fd, NPUEMU_IOC_QUEUE_MODIFY, &a);

	if (!rc && state == NPUEMU_QS_RESET)
		q->pi = 0;
	return rc;
}

struct npuemu_ioc_queue_query raw_query(struct raw_q *q)
{
	struct npuemu_ioc_queue_query a = { .id = q->id };

	raw_is(raw_ioctl(q->r->fd, NPUEMU_IOC_QUEUE_QUERY, &a), 0);
	return a;
}

/* One basic block, its first word last: that is how the engine tells it is there. */
static void post(struct raw_q *q, const void *block)
{
	uint64_t *to = q->ring + (size_t)(q->pi & (q->depth - 1)) * 8, b[8];

	memcpy(b, block, sizeof(b));
	if (!(q->pi & q->depth))
		b[0] |= NPUEMU_SQE_OWNER;
	for (int i = 7; i >= 0; i--)
		__atomic_store_n(to + i, b[i], __ATOMIC_RELEASE);
	q->pi++;
}

static void post_sdma(struct raw_q *q, uint32_t op, void *dst, uint64_t src, uint64_t len,
		      uint64_t pitch)
{
	struct npuemu_sdma d = {
		.dw0 = NPUEMU_SQE_CQE, .dw1 = op << NPUEMU_SQE_OPCODE_SHIFT,
		.dst = (uintptr_t)dst, .src = src, .len = len, .dst_pitch = pitch,
	};

	_Static_assert(sizeof(d) == NPUEMU_BB_SIZE, "one basic block");
	post(q, &d);
}

void raw_post_nop(struct raw_q *q)
{
	post_sdma(q, NPUEMU_SDMA_NOP, NULL, 0, 0, 0);
}

void raw_post_copy(struct raw_q *q, void *dst, const void *src, uint64_t len)
{
	post_sdma(q, NPUEMU_SDMA_COPY, dst, (uintptr_t)src, len, 0);
}

void raw_post_fill(struct raw_q *q, void *dst, uint64_t pattern, uint64_t len)
{
	post_sdma(q, NPUEMU_SDMA_FILL, dst, pattern, len, 8);
}

static void post_rma(struct raw_q *q, uint32_t op, const void *local, uint32_t len,
		     const struct raw_seg *s, uint64_t off, uint32_t dw0)
{
	struct {
		struct npuemu_sqe sqe;
		struct npuemu_sge sge;
	} w = {
		.sqe = {
			.dw0 = NPUEMU_SQE_CQE | dw0,
			.dw1 = op << NPUEMU_SQE_OPCODE_SHIFT,
			.dw2 = 1u << NPUEMU_SQE_SGE_NUM_SHIFT,
			.dw3 = s->token_id,
			.rmt_token_value = s->token_value,
			.rmt_addr = s->va + off,
		},
		.sge = { .len = len, .va = (uintptr_t)local },
	};

	memcpy(w.sqe.rmt_eid, s->eid, sizeof(s->eid));
	post(q, &w);
}

void raw_post_write(struct raw_q *q, const void *src, uint32_t len, const struct raw_seg *s,
		    uint64_t off)
{
	post_rma(q, NPUEMU_OP_WRITE, src, len, s, off, NPUEMU_SQE_TOKEN_EN);
}

void raw_post_read(struct raw_q *q, void *dst, uint32_t len, const struct raw_seg *s,
		   uint64_t off)
{
	post_rma(q, NPUEMU_OP_READ, dst, len, s, off, NPUEMU_SQE_TOKEN_EN);
}

void raw_post_send(struct raw_q *q, const void *src, uint32_t len, const struct raw_seg *to,
		   bool token)
{
	post_rma(q, NPUEMU_OP_SEND, src, len, to, 0, token ? NPUEMU_SQE_TOKEN_EN : 0);
}

void raw_ring(struct raw_q *q)
{
	__atomic_store_n(q->db, q->pi, __ATOMIC_RELEASE);
}

bool raw_poll(struct raw_cq *cq, struct npuemu_cqe *cqe)
{
	struct npuemu_cqe *e = &cq->ring[cq->ci & (cq->depth - 1)];
	uint32_t dw0 = __atomic_load_n(&e->dw0, __ATOMIC_ACQUIRE);

	/* 1 on the first lap */
	if (!(dw0 & NPUEMU_CQE_OWNER) != !!(cq->ci & cq->depth))
		return false;
	memcpy(cqe, e, sizeof(*cqe));
	cq->ci++;
	__atomic_store_n(cq->ci_rec, cq->ci, __ATOMIC_RELEASE);
	return true;
}

bool raw_spin(struct raw_cq *cq, struct npuemu_cqe *cqe, unsigned int ms)
{
	int64_t end = npuemu_deadline_ms(ms);

	while (!raw_poll(cq, cqe)) {
		if (npuemu_now_ns() >= end)
			return raw_poll(cq, cqe);
		/* there may be one CPU, and the engine needs it */
		sched_yield();
	}
	return true;
}

uint32_t raw_status(const struct npuemu_cqe *cqe)
{
	return NPUEMU_STATUS(cqe->dw0 >> NPUEMU_CQE_STATUS_SHIFT,
			     cqe->dw0 >> NPUEMU_CQE_SUBSTATUS_SHIFT & 0xff);
}

uint32_t raw_finish(struct raw_q *q)
{
	struct npuemu_cqe cqe;
	bool there;

	raw_ring(q);
	there = raw_spin(q->cq, &cqe, SYS_PATIENCE_MS);
	sys_true(there, "no completion of queue %u: PI %u, CI %u, state %u, %s", q->id,
		 q->pi, raw_query(q).ci, raw_query(q).state, raw_query(q).cause);
	return raw_status(&cqe);
}

void raw_status_is(const char *file, int line, uint32_t got, uint32_t want)
{
	char is[128];

	if (got == want)
		return;
	snprintf(is, sizeof(is), "%s", npuemu_status_str(got));
	sys_fail(file, line, "completed with %s, not %s", is, npuemu_status_str(want));
}

int raw_wait(struct raw *r, struct npuemu_ioc_wait_item *items, uint32_t nr, int64_t deadline,
	     uint32_t *ready)
{
	struct npuemu_ioc_wait a = {
		.items = (uintptr_t)items, .nr = nr, .deadline_ns = deadline, .ready = ~0u,
	};
	int rc = raw_ioctl(r->fd, NPUEMU_IOC_WAIT, &a);

	if (ready)
		*ready = a.ready;
	return rc;
}

int raw_wait_cq(struct raw_cq *cq, unsigned int ms)
{
	struct npuemu_ioc_wait_item it = {
		.kind = NPUEMU_WAIT_CQ, .handle = cq->handle, .ci = cq->ci,
	};

	return raw_wait(cq->r, &it, 1, npuemu_deadline_ms(ms), NULL);
}
