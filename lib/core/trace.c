// SPDX-License-Identifier: MIT
/*
 * Per-thread binary trace rings.  NPUEMU_TRACE=FILE turns them on; every
 * thread keeps its last 64 Ki events, and the process appends all of them to
 * FILE when it exits.  A record has 32 bytes (struct trace_record); a thread's
 * run of records starts with one of event 0 that names process and thread.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "core.h"

#define RING (1u << 16)

struct trace_record {
	u64 ns;			/* CLOCK_MONOTONIC */
	u32 event;		/* enum npuemu_trace_event; 0: header */
	u32 queue;		/* header: pid */
	u32 index;		/* header: thread id */
	u32 reserved;
	u64 arg;		/* header: records that follow */
};

struct trace_ring {
	struct trace_ring *next;
	u64 n;
	u32 tid;
	struct trace_record r[RING];
};

static const char *path;
static struct trace_ring *rings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct trace_ring *mine;

static void put(int fd, const void *p, size_t n)
{
	while (n) {
		ssize_t r = write(fd, p, n);

		if (r <= 0)
			return;
		p = (const char *)p + r;
		n -= (size_t)r;
	}
}

static void write_all(void)
{
	struct trace_ring *t;
	int fd;

	pthread_mutex_lock(&lock);
	fd = rings ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	for (t = rings; t && fd >= 0; t = t->next) {
		u64 total = READ_ONCE(t->n), n = total < RING ? total : RING;
		u64 first = (total - n) % RING, tail = n < RING - first ? n : RING - first;
		struct trace_record head = {
			.queue = (u32)getpid(), .index = t->tid, .arg = n,
		};

		put(fd, &head, sizeof(head));
		put(fd, &t->r[first], (size_t)tail * sizeof(t->r[0]));
		put(fd, t->r, (size_t)(n - tail) * sizeof(t->r[0]));
	}
	if (fd >= 0)
		close(fd);
	pthread_mutex_unlock(&lock);
}

bool npuemu_trace_init(void)
{
	static int done;

	if (!__atomic_exchange_n(&done, 1, __ATOMIC_ACQ_REL)) {
		path = npuemu_getenv("NPUEMU_TRACE");
		if (path)
			atexit(write_all);
	}
	return path;
}

void npuemu_trace_fork(void)
{
	rings = NULL;
	mine = NULL;
	pthread_mutex_init(&lock, NULL);
}

void npuemu_trace_add(u32 queue, u32 event, u32 index, u64 arg)
{
	struct trace_ring *t = mine;
	struct trace_record *r;
	struct timespec ts;

	if (!path)
		return;
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			return;
		t->tid = (u32)syscall(SYS_gettid);
		pthread_mutex_lock(&lock);
		t->next = rings;
		rings = t;
		pthread_mutex_unlock(&lock);
		mine = t;
	}
	clock_gettime(CLOCK_MONOTONIC, &ts);
	r = &t->r[t->n % RING];
	r->ns = (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec;
	r->event = event;
	r->queue = queue;
	r->index = index;
	r->arg = arg;
	WRITE_ONCE(t->n, t->n + 1);
}
