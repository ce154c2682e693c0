// SPDX-License-Identifier: MIT
/*
 * Traces: records of 32 bytes (trace.h) in a ring for each thread.
 *
 * NPUEMU_TRACE=FILE keeps the last 64 Ki of each thread, and appends them to FILE when
 * the process exits.  npuemu_trace_start() makes a file of what comes from then on, of
 * some devices and some kinds: rings are written out when they are full, and at its end.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "core.h"
#include "trace.h"

#define RING	(1u << 16)
#define PIECE	256u			/* records that are written at a time */

struct ring {
	struct ring *next;
	pthread_mutex_t lock;	/* @n and @r; its thread's but for who writes it out */
	u64 n;
	u64 written;		/* of @n, to the sinks */
	u32 tid;
	bool over;		/* its thread has ended */
	struct npuemu_trace_record r[RING];
};

/* A file of npuemu_trace_start(). */
struct sink {
	bool used;
	int fd;
	int err;		/* the first of its writes */
	u32 what;
	u64 devices;
	u64 left;		/* bytes that it may still get */
	u64 lost;
};

u64 npuemu_trace_tasks;
u32 npuemu_trace_marks;

static const char *path;
static struct ring *rings;
static struct sink sinks[NPUEMU_MAX_DEVICES];
/* The lists, and who writes; then a ring's lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t keyed = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static __thread struct ring *mine;

/* ---- Writing: the lock held ----------------------------------------------------- */

static int put(int fd, const void *p, size_t n)
{
	while (n) {
		ssize_t r = write(fd, p, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r ? -errno : -EIO;
		p = (const char *)p + r;
		n -= (size_t)r;
	}
	return 0;
}

static void sink_put(struct sink *k, const struct npuemu_trace_record *r, u64 n)
{
	if (!k->err)
		k->err = put(k->fd, r, (size_t)n * sizeof(*r));
}

static bool wants(const struct sink *k, const struct npuemu_trace_record *r)
{
	u32 what;

	switch (NPUEMU_TRACE_EVENT(r)) {
	case NPUEMU_TR_MARK:
	case NPUEMU_TR_RANGE:
		what = NPUEMU_TRACE_MARKS;
		break;
	case NPUEMU_TR_STEP:
		what = NPUEMU_TRACE_STEPS;
		break;
	default:
		what = NPUEMU_TRACE_TASKS;
		break;
	}
	if (!(k->what & what))
		return false;
	return r->device == NPUEMU_TRACE_HOST ||
	       (r->device < NPUEMU_MAX_DEVICES && k->devices >> r->device & 1);
}

/* What a sink wants of the records of a ring that nobody has written yet. */
static void ring_to_sink(struct ring *t, struct sink *k)
{
	struct npuemu_trace_record out[PIECE];
	struct npuemu_trace_record head = {
		.queue = (u32)getpid(), .index = t->tid, .device = NPUEMU_TRACE_VERSION,
	};
	u64 i, n = 0, room;
	u32 have = 0;

	for (i = t->written; i < t->n; i++)
		n += wants(k, &t->r[i % RING]);
	if (!n)
		return;
	room = k->left / sizeof(head) > 1 ? k->left / sizeof(head) - 1 : 0;
	head.arg = n < room ? n : room;
	k->lost += n - head.arg;
	if (!head.arg)
		return;
	k->left -= (head.arg + 1) * sizeof(head);
	sink_put(k, &head, 1);
	for (i = t->written, n = head.arg; n; i++) {
		if (!wants(k, &t->r[i % RING]))
			continue;
		out[have++] = t->r[i % RING];
		n--;
		if (have == PIECE || !n) {
			sink_put(k, out, have);
			have = 0;
		}
	}
}

/* @t->lock held, too */
static void ring_out(struct ring *t)
{
	u32 i;

	for (i = 0; i < NPUEMU_MAX_DEVICES; i++)
		if (sinks[i].used)
			ring_to_sink(t, &sinks[i]);
	WRITE_ONCE(t->written, t->n);
}

static void all_out(void)
{
	struct ring *t;

	for (t = rings; t; t = t->next) {
		pthread_mutex_lock(&t->lock);
		ring_out(t);
		pthread_mutex_unlock(&t->lock);
	}
}

/* A run with the texts and with what was lost ends a file. */
static int tail(int fd, u64 lost)
{
	struct npuemu_trace_record *texts;
	struct npuemu_trace_record head = {
		.ns = lost, .queue = (u32)getpid(), .device = NPUEMU_TRACE_VERSION,
	};
	int err;

	texts = npuemu_trace_texts(&head.arg);
	err = put(fd, &head, sizeof(head));
	if (!err)
		err = put(fd, texts, (size_t)head.arg * sizeof(*texts));
	free(texts);
	return err;
}

/* ---- The file of NPUEMU_TRACE ------------------------------------------------------ */

/* The last ones of a ring. */
static int ring_last(int fd, struct ring *t)
{
	u64 n = t->n < RING ? t->n : RING;
	u64 first = (t->n - n) % RING, end = n < RING - first ? n : RING - first;
	struct npuemu_trace_record head = {
		.ns = t->n - n, .queue = (u32)getpid(), .index = t->tid,
		.device = NPUEMU_TRACE_VERSION, .arg = n,
	};
	int err = put(fd, &head, sizeof(head));

	if (!err)
		err = put(fd, &t->r[first], (size_t)end * sizeof(t->r[0]));
	return err ? err : put(fd, t->r, (size_t)(n - end) * sizeof(t->r[0]));
}

static void append_all(void)
{
	struct ring *t;
	int fd, err;

	fd = rings ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	if (fd < 0)
		return;
	err = 0;
	for (t = rings; t && !err; t = t->next) {
		pthread_mutex_lock(&t->lock);
		err = ring_last(fd, t);
		pthread_mutex_unlock(&t->lock);
	}
	if (!err)
		err = tail(fd, 0);
	if (err)
		npuemu_log(NPUEMU_LOG_WARN, "NPUEMU_TRACE: %s cannot be written: %s", path, strerror(-err));
	close(fd);
}

static int sink_close(struct sink *k);

static void at_exit(void)
{
	u32 i;

	pthread_mutex_lock(&lock);
	all_out();
	for (i = 0; i < NPUEMU_MAX_DEVICES; i++)
		if (sinks[i].used)
			sink_close(&sinks[i]);
	if (path)
		append_all();
	pthread_mutex_unlock(&lock);
}

/* ---- Files that begin and end ---------------------------------------------------------- */

/* What is looked at before a record is made.  The lock held. */
static void set_switches(void)
{
	u64 devices = path ? ~0ull : 0;
	u32 i, marks = path ? NPUEMU_TRACE_MARKS | NPUEMU_TRACE_STEPS : 0;

	for (i = 0; i < NPUEMU_MAX_DEVICES; i++) {
		if (!sinks[i].used)
			continue;
		if (sinks[i].what & NPUEMU_TRACE_TASKS)
			devices |= sinks[i].devices;
		marks |= sinks[i].what & (NPUEMU_TRACE_MARKS | NPUEMU_TRACE_STEPS);
	}
	WRITE_ONCE(npuemu_trace_tasks, devices);
	WRITE_ONCE(npuemu_trace_marks, marks);
}

static u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec;
}

static void clocks_to_sink(struct sink *k)
{
	struct npuemu_trace_record r[2] = {
		{ .queue = (u32)getpid(), .device = NPUEMU_TRACE_VERSION, .arg = 1 },
		{ .ns = clock_ns(CLOCK_MONOTONIC), .event = NPUEMU_TR_CLOCK,
		  .device = NPUEMU_TRACE_HOST, .arg = clock_ns(CLOCK_REALTIME) },
	};

	sink_put(k, r, 2);
}

static void arm_exit(void)
{
	static int done;

	if (!__atomic_exchange_n(&done, 1, __ATOMIC_ACQ_REL))
		atexit(at_exit);
}

int npuemu_trace_start(const char *file, u64 devices, u32 what, u64 most)
{
	struct sink *k = NULL;
	u32 i;
	int fd;

	fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return npuemu_fail(-errno, "%s cannot be made: %s", file, strerror(errno));
	pthread_mutex_lock(&lock);
	all_out();	/* what was before is not for it */
	for (i = 0; i < NPUEMU_MAX_DEVICES && !k; i++)
		if (!sinks[i].used)
			k = &sinks[i];
	if (k) {
		*k = (struct sink){ .used = true, .fd = fd, .devices = devices, .what = what,
				    .left = most };
		clocks_to_sink(k);
		set_switches();
		arm_exit();
	}
	pthread_mutex_unlock(&lock);
	if (k)
		return (int)(k - sinks);
	close(fd);
	unlink(file);
	return npuemu_fail(-EMFILE, "%u traces are being written, the most there can be",
			   NPUEMU_MAX_DEVICES);
}

/* The lock held. */
static int sink_close(struct sink *k)
{
	int err = k->err;

	if (!err)
		err = tail(k->fd, k->lost);
	if (close(k->fd) && !err)
		err = -errno;
	k->used = false;
	set_switches();
	return err;
}

int npuemu_trace_stop(int number, u64 *lost)
{
	struct sink *k = &sinks[number];
	int err;

	pthread_mutex_lock(&lock);
	all_out();
	*lost = k->lost;
	err = sink_close(k);
	pthread_mutex_unlock(&lock);
	return err ? npuemu_fail(err, "the trace cannot be written: %s", strerror(-err)) : 0;
}

bool npuemu_trace_init(void)
{
	static int done;

	if (!__atomic_exchange_n(&done, 1, __ATOMIC_ACQ_REL) && npuemu_getenv("NPUEMU_TRACE")) {
		pthread_mutex_lock(&lock);
		path = npuemu_getenv("NPUEMU_TRACE");
		set_switches();
		pthread_mutex_unlock(&lock);
		arm_exit();
	}
	return READ_ONCE(npuemu_trace_tasks);
}

void npuemu_trace_fork(void)
{
	u32 i;

	for (i = 0; i < NPUEMU_MAX_DEVICES; i++)
		if (sinks[i].used)
			close(sinks[i].fd);
	memset(sinks, 0, sizeof(sinks));
	rings = NULL;
	mine = NULL;
	pthread_mutex_init(&lock, NULL);
	npuemu_trace_texts_fork();
	set_switches();
}

/* ---- A thread's ring ---------------------------------------------------------------------- */

static void thread_over(void *arg)
{
	struct ring *t = arg;

	mine = NULL;	/* for what else ends with the thread */
	pthread_mutex_lock(&lock);
	t->over = true;
	pthread_mutex_unlock(&lock);
}

static void make_key(void)
{
	pthread_key_create(&key, thread_over);
}

/* One of a thread that has ended, unless its last records are wanted at exit.  The lock held. */
static struct ring *used_ring(void)
{
	struct ring *t;

	for (t = rings; t && !path; t = t->next) {
		if (!t->over)
			continue;
		pthread_mutex_lock(&t->lock);
		ring_out(t);
		t->n = 0;
		WRITE_ONCE(t->written, 0);
		t->over = false;
		pthread_mutex_unlock(&t->lock);
		return t;
	}
	return NULL;
}

static struct ring *get_ring(void)
{
	struct ring *t;

	pthread_once(&keyed, make_key);
	pthread_mutex_lock(&lock);
	t = used_ring();
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (t) {
			pthread_mutex_init(&t->lock, NULL);
			t->next = rings;
			rings = t;
		}
	}
	if (t)
		t->tid = (u32)syscall(SYS_gettid);
	pthread_mutex_unlock(&lock);
	if (t)
		pthread_setspecific(key, t);
	return t;
}

/* Nobody else adds to it meanwhile: it is this thread's. */
static void make_room(struct ring *t)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&t->lock);
	ring_out(t);
	pthread_mutex_unlock(&t->lock);
	pthread_mutex_unlock(&lock);
}

void npuemu_trace_put(const struct npuemu_trace_record *r)
{
	struct ring *t = mine;

	if (!t) {
		t = get_ring();
		if (!t)
			return;
		mine = t;
	}
	/* @written is changed by others only forwards */
	if (unlikely(t->n - READ_ONCE(t->written) >= RING))
		make_room(t);
	pthread_mutex_lock(&t->lock);
	t->r[t->n++ % RING] = *r;
	pthread_mutex_unlock(&t->lock);
}

void npuemu_trace_add(u32 queue, u32 event, u32 index, u32 device, u64 arg)
{
	struct npuemu_trace_record r = {
		.event = event, .queue = queue, .index = index, .device = device, .arg = arg,
	};

	if (device < NPUEMU_MAX_DEVICES && !(READ_ONCE(npuemu_trace_tasks) >> device & 1))
		return;
	r.ns = clock_ns(CLOCK_MONOTONIC);
	npuemu_trace_put(&r);
}
