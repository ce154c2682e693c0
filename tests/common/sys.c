// SPDX-License-Identifier: MIT
/* The checks, boards, queues and patterns of the system tests; see sys.h. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys.h"
#include "sys_spawn.h"

static char base[64];		/* what the names of the boards start with */
static char board[80];
static unsigned int boards;
static unsigned int fds_before, threads_before;
static bool kernel;

/* ---- Checks --------------------------------------------------------------- */

void sys_fail(const char *file, int line, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!sys_in_child && (pid_t)syscall(SYS_gettid) == getpid()) {
		print_error("%s:%d: %s\n", file, line, text);
		_fail(file, line);
	}
	/* Not where cmocka could catch it: its jump is for the main thread. */
	fprintf(stderr, "%s:%d: %s, pid %d: %s\n", file, line,
		sys_in_child ? "child" : "thread", (int)getpid(), text);
	fflush(stderr);
	_exit(SYS_EXIT_FAILED);
}

void sys_failed_call(const char *file, int line, const char *expr, long rc, long want)
{
	const char *msg = npuemu_errmsg();

	if (!want)
		sys_fail(file, line, "%s: %ld (%s): %s", expr, rc, strerror((int)-rc), msg);
	if (rc == want)
		sys_fail(file, line, "%s: %ld as it should, but without a message", expr, rc);
	sys_fail(file, line, "%s: %ld (%s), not %ld (%s): %s", expr, rc,
		 rc < 0 ? strerror((int)-rc) : "no error", want, strerror((int)-want), msg);
}

void sys_compare(const char *file, int line, const char *what, const void *got,
		 const void *want, size_t n)
{
	const unsigned char *g = got, *w = want;
	size_t i = 0;

	if (!memcmp(g, w, n))
		return;
	while (i + 1 < n && g[i] == w[i])
		i++;
	sys_fail(file, line, "%s: byte %zu of %zu is %#x, not %#x", what, i, n, g[i], w[i]);
}

/* ---- The test program ----------------------------------------------------- */

static unsigned int count_dir(const char *path)
{
	DIR *d = opendir(path);
	unsigned int n = 0;

	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void *say_tid(void *arg)
{
	*(pid_t *)arg = (pid_t)syscall(SYS_gettid);
	return NULL;
}

/* A thread that was joined is in /proc a moment longer, and would be counted. */
static void wait_gone(pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d", (int)tid);
	while (!access(path, F_OK))
		usleep(500);
}

/* Without making a board. */
static bool on_kernel(void)
{
	struct npuemu_open_attr attr = {
		.size = sizeof(attr), .flags = NPUEMU_OPEN_OBSERVE | NPUEMU_OPEN_EXISTING,
	};
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu *ctx;
	bool yes;

	if (npuemu_open(&attr, &ctx))
		return false;
	yes = !npuemu_query(ctx, &info) && !strcmp(info.host, "kernel");
	npuemu_close(ctx);
	return yes;
}

bool sys_kernel(void)
{
	return kernel;
}

void sys_start(void)
{
	const char *name = getenv("NPUEMU_BOARD");
	pid_t tid = 0;
	pthread_t t;

	if (name && *name)
		snprintf(base, sizeof(base), "%s", name);
	else
		snprintf(base, sizeof(base), "systest-%d", (int)getpid());
	setenv("NPUEMU_MACHINE", "small", 1);
	kernel = on_kernel();
	sys_spawn_start();
	/* A sanitizer may start a thread of its own with the first one. */
	if (pthread_create(&t, NULL, say_tid, &tid) || pthread_join(t, NULL)) {
		perror("sys_start: pthread_create");
		exit(1);
	}
	wait_gone(tid);
}

int sys_setup(void **state)
{
	(void)state;
	snprintf(board, sizeof(board), "%s-%u", base, ++boards);
	setenv("NPUEMU_BOARD", board, 1);
	setenv("NPUEMU_MACHINE", "small", 1);
	fds_before = count_dir("/proc/self/fd");
	threads_before = count_dir("/proc/self/task");
	return 0;
}

static void same_as_before(void)
{
	int64_t deadline = sys_deadline();

	/* A thread that was joined is in /proc a moment longer. */
	while (count_dir("/proc/self/task") != threads_before && sys_retry(deadline))
		;
	sys_eq(count_dir("/proc/self/task"), threads_before);
	sys_eq(count_dir("/proc/self/fd"), fds_before);
}

int sys_teardown(void **state)
{
	struct npuemu_open_attr attr = {
		.size = sizeof(attr), .flags = NPUEMU_OPEN_EXISTING,
	};
	struct npuemu *ctx;
	int rc;

	(void)state;
	sys_spawn_kill_all();
	rc = npuemu_open(&attr, &ctx);
	if (!rc) {
		sys_nothing_left(ctx, 1);
		sys_rc(npuemu_close(ctx));
	} else {
		sys_eq(-rc, ENOENT);
	}
	same_as_before();
	rc = npuemu_board_reset(NULL);
	sys_true(!rc || rc == -ENOENT, "npuemu_board_reset: %d: %s", rc, npuemu_errmsg());
	return 0;
}

int sys_teardown_reset(void **state)
{
	int rc;

	(void)state;
	sys_spawn_kill_all();
	setenv("NPUEMU_BOARD", board, 1);
	rc = npuemu_board_reset(NULL);
	sys_true(!rc || rc == -ENOENT, "npuemu_board_reset: %d: %s", rc, npuemu_errmsg());
	return 0;
}

bool sys_tsan(void)
{
#ifdef __SANITIZE_THREAD__
	return true;
#else
	return false;
#endif
}

bool sys_slow(void)
{
#ifdef __SANITIZE_ADDRESS__
	return true;
#else
	/* a guest whose instructions are translated says so */
	return sys_tsan() || getenv("NPUEMU_TEST_SLOW");
#endif
}

int sys_patience_ms(void)
{
	const char *seconds = getenv("NPUEMU_TEST_PATIENCE");

	return 1000 * (seconds && atoi(seconds) > 0 ? atoi(seconds) : 40);
}

int64_t sys_deadline(void)
{
	return npuemu_deadline_ms(SYS_PATIENCE_MS);
}

void sys_nap(unsigned int ms)
{
	int64_t end = npuemu_deadline_ms(ms), left;

	/* one look at the clock: below 0 poll() would never return */
	while ((left = end - npuemu_now_ns()) > 0)
		poll(NULL, 0, (int)(left / 1000000) + 1);
}

bool sys_retry(int64_t deadline)
{
	if (npuemu_now_ns() >= deadline)
		return false;
	usleep(500);
	return true;
}

const char *sys_board(void)
{
	return board;
}

const char *sys_board_file(const char *name)
{
	static char path[160];

	if (kernel)
		return NULL;
	sys_rc(npuemu_close(sys_open()));	/* makes it */
	snprintf(path, sizeof(path), "/dev/shm/npuemu-%u-%s", (unsigned int)geteuid(), name);
	return path;
}

uint64_t sys_hbm_used(struct npuemu *ctx)
{
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu_device_info dev = { .size = sizeof(dev) };
	uint64_t sum = 0;
	uint32_t d;

	sys_rc(npuemu_query(ctx, &info));
	for (d = 0; d < info.devices; d++) {
		sys_rc(npuemu_device_query(ctx, d, &dev));
		sum += dev.hbm_used;
	}
	return sum;
}

void sys_nothing_left(struct npuemu *ctx, unsigned int processes)
{
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu_device_info dev = { .size = sizeof(dev) };
	struct npuemu_process_info list[64];
	int64_t deadline = sys_deadline();
	uint32_t d;

	/* A killed process may still be on its way out. */
	do {
		sys_rc(npuemu_reap(ctx));
	} while (sys_rc(npuemu_process_list(ctx, list, 64)) != (long)processes &&
		 sys_retry(deadline));
	sys_eq(npuemu_process_list(ctx, list, 64), processes);
	sys_rc(npuemu_query(ctx, &info));
	for (d = 0; d < info.devices; d++) {
		sys_rc(npuemu_device_query(ctx, d, &dev));
		sys_eq(dev.hbm_used, 0);
		sys_eq(dev.hbm_backed, 0);
		sys_eq(dev.queues, 0);
	}
	sys_rc(npuemu_query(ctx, &info));
	sys_eq(info.backed_bytes, 0);
}

/* ---- Pseudo-random bytes -------------------------------------------------- */

/* splitmix64 */
uint64_t sys_rand(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

void sys_fill(void *p, size_t n, uint64_t seed)
{
	unsigned char *b = p;
	uint64_t v;

	for (; n >= 8; n -= 8, b += 8) {
		v = sys_rand(&seed);
		memcpy(b, &v, 8);
	}
	v = sys_rand(&seed);
	memcpy(b, &v, n);
}

void sys_is_filled(const char *what, const void *p, size_t n, uint64_t seed)
{
	const unsigned char *b = p;
	size_t at = 0;
	uint64_t v;

	for (; at < n; at += 8) {
		size_t part = n - at < 8 ? n - at : 8;

		v = sys_rand(&seed);
		if (memcmp(b + at, &v, part))
			sys_fail(__FILE__, __LINE__, "%s: differs in bytes %zu to %zu of %zu",
				 what, at, at + part - 1, n);
	}
}

void sys_is_byte(const char *what, const void *p, size_t n, unsigned char byte)
{
	const unsigned char *b = p;
	size_t i;

	if (!n || (b[0] == byte && !memcmp(b, b + 1, n - 1)))
		return;
	for (i = 0; b[i] == byte;)
		i++;
	sys_fail(__FILE__, __LINE__, "%s: byte %zu of %zu is %#x, not %#x", what, i, n,
		 b[i], byte);
}

/* ---- Things on a board ---------------------------------------------------- */

struct npuemu *sys_open(void)
{
	struct npuemu *ctx;

	sys_rc(npuemu_open(NULL, &ctx));
	return ctx;
}

void sys_mem_make(struct npuemu *ctx, struct sys_mem *m, uint32_t device,
		  uint64_t bytes, uint32_t access)
{
	struct npuemu_seg_attr attr = { .size = sizeof(attr), .access = access };

	sys_rc(npuemu_buf_alloc(ctx, device, bytes, 0, &m->buf));
	m->p = npuemu_buf_ptr(m->buf);
	sys_true(m->p, "no pointer: %s", npuemu_errmsg());
	sys_rc(npuemu_seg_register(m->buf, &attr, &m->seg));
	sys_rc(npuemu_seg_query(m->seg, &m->info));
	m->va = m->info.va;
	m->t = npuemu_target_of(&m->info);
}

void sys_mem_drop(struct sys_mem *m)
{
	sys_rc(npuemu_seg_unregister(m->seg));
	sys_rc(npuemu_buf_free(m->buf));
	memset(m, 0, sizeof(*m));
}

struct npuemu_queue_attr sys_queue_attr(uint32_t device, uint32_t depth)
{
	struct npuemu_queue_attr attr = {
		.size = sizeof(attr), .device = device, .depth = depth,
	};

	return attr;
}

struct npuemu_queue *sys_queue(struct npuemu *ctx, uint32_t device, uint32_t depth)
{
	struct npuemu_queue_attr attr = sys_queue_attr(device, depth);
	struct npuemu_queue *q;

	sys_rc(npuemu_queue_create(ctx, &attr, &q));
	return q;
}

struct npuemu_cq *sys_cq(struct npuemu *ctx, uint32_t depth, uint32_t flags)
{
	struct npuemu_cq_attr attr = {
		.size = sizeof(attr), .flags = flags, .depth = depth,
	};
	struct npuemu_cq *cq;

	sys_rc(npuemu_cq_create(ctx, &attr, &cq));
	return cq;
}

struct npuemu_queue_stat sys_stat(struct npuemu_queue *q)
{
	struct npuemu_queue_stat st = { .size = sizeof(st) };

	sys_rc(npuemu_queue_query(q, &st));
	return st;
}

void sys_one(struct npuemu_cq *cq, struct npuemu_wc *wc)
{
	int64_t deadline = sys_deadline();
	int n;

	while ((n = npuemu_poll(cq, wc, 1)) == 0)
		sys_rc(npuemu_wait(cq, deadline));
	sys_eq(n, 1);
}

uint32_t sys_finish(struct npuemu_queue *q)
{
	struct npuemu_cq *cq = npuemu_queue_cq(q);
	struct npuemu_wc wc;

	sys_true(cq, "no CQ: %s", npuemu_errmsg());
	sys_rc(npuemu_doorbell(q));
	do {
		sys_one(cq, &wc);
	} while (wc.wqe != npuemu_last_wqe(q) && wc.status == NPUEMU_ST_SUCCESS);
	return wc.status;
}

void sys_run(struct npuemu_queue *q)
{
	uint32_t status = sys_finish(q);

	sys_true(status == NPUEMU_ST_SUCCESS, "%s: %s", npuemu_status_str(status),
		 sys_stat(q).cause);
}

void sys_is_status(const struct npuemu_wc *wc, uint32_t want)
{
	char is[128];

	if (wc->status == want)
		return;
	snprintf(is, sizeof(is), "%s", npuemu_status_str(wc->status));
	sys_fail(__FILE__, __LINE__, "WQE %u of queue %u: %s, not %s", wc->wqe, wc->queue, is,
		 npuemu_status_str(want));
}

void sys_revive(struct npuemu_queue *q)
{
	struct npuemu_cq *cq = npuemu_queue_cq(q);
	struct npuemu_wc wc;

	sys_rc(npuemu_queue_modify(q, NPUEMU_QS_RESET));
	while (sys_rc(npuemu_poll(cq, &wc, 1)))
		;
	sys_rc(npuemu_queue_modify(q, NPUEMU_QS_READY));
}
