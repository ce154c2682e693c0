/* SPDX-License-Identifier: MIT */
/*
 * What the bench programs share: a clock, pinning, a probe of how far apart
 * the two cpus are, a runner that interleaves what it measures, and a peer
 * process that owns the memory the others write to.
 *
 * A program prints "name repetition value" lines, nanoseconds per operation
 * unless its name says otherwise; tests/bench/run turns them into ratios.
 */
#ifndef NPUEMU_BENCH_H
#define NPUEMU_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <npuemu/npuemu.h>

#ifndef BENCH_RING
#define BENCH_RING	1024u	/* basic blocks of a queue and of the bare ring */
#endif
#define BENCH_BATCH	32u	/* WQEs of one doorbell */
#define BENCH_MAX_CASES	24

#define bench_load(p)		__atomic_load_n((p), __ATOMIC_RELAXED)
#define bench_store(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define bench_acquire(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define bench_release(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)

__attribute__((format(printf, 1, 2), noreturn))
static inline void bench_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

/* A call of the library that must work. */
#define bench_try(call)							\
	do {								\
		int bench_ret = (call);					\
									\
		if (bench_ret < 0)					\
			bench_die("%s:%d: %s: %s (%s)", __FILE__, __LINE__, \
				  #call, strerror(-bench_ret),		\
				  npuemu_errmsg());			\
	} while (0)

static inline double bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static inline unsigned int bench_env(const char *name, unsigned int def)
{
	const char *s = getenv(name);

	return s && *s ? (unsigned int)strtoul(s, NULL, 0) : def;
}

static inline void bench_emit(const char *name, unsigned int rep, double value)
{
	printf("%s %u %.17g\n", name, rep, value);
	fflush(stdout);
}

/*
 * Leave no board behind, if it is one that tests/bench/run made for this program.
 * Last thing of main(), when nobody has it open any more.
 */
static inline int bench_end(void)
{
	const char *board = getenv("NPUEMU_BOARD");

	if (board && !strncmp(board, "bench-", 6))
		(void)npuemu_board_reset(board);
	return 0;
}

/* ---- Where threads run ------------------------------------------------- */

/* The nth cpu this process was given; the last one if there are not so many. */
static inline int bench_cpu(int nth)
{
	static cpu_set_t given;
	static bool known;
	int cpu, last = 0;

	if (!known) {
		sched_getaffinity(0, sizeof(given), &given);
		known = true;
	}
	for (cpu = 0; cpu < CPU_SETSIZE && nth >= 0; cpu++)
		if (CPU_ISSET(cpu, &given)) {
			last = cpu;
			nth--;
		}
	return last;
}

static inline void bench_pin_tid(int tid, int nth)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(bench_cpu(nth), &set);
	sched_setaffinity(tid, sizeof(set), &set);
}

/* This thread to the first cpu; every other one, the engines, to the second. */
static inline void bench_place(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	int self = (int)syscall(SYS_gettid);

	while (dir && (e = readdir(dir))) {
		int tid = atoi(e->d_name);

		if (tid > 0 && tid != self)
			bench_pin_tid(tid, 1);
	}
	if (dir)
		closedir(dir);
	bench_pin_tid(0, 0);
}

/* Before anything is pinned: note which cpus there are. */
static inline void bench_start(void)
{
	bench_cpu(0);
}

/* ---- One-way time of a cache line between the two cpus ------------------ */

struct bench_line {
	_Alignas(64) uint64_t word;
	_Alignas(64) uint64_t rounds;
};

static inline void *bench_line_echo(void *arg)
{
	struct bench_line *l = arg;
	uint64_t i;

	bench_pin_tid(0, 1);
	for (i = 1; i <= l->rounds; i++) {
		while (bench_acquire(&l->word) != 2 * i - 1)
			;
		bench_release(&l->word, 2 * i);
	}
	return NULL;
}

static inline double bench_line_ns(void)
{
	struct bench_line l = { .word = 0, .rounds = 10000 };
	pthread_t thread;
	double t = 0;
	uint64_t i;

	bench_pin_tid(0, 0);
	if (pthread_create(&thread, NULL, bench_line_echo, &l))
		bench_die("line probe: no thread");
	for (i = 1; i <= l.rounds; i++) {
		if (i == l.rounds / 10)
			t = bench_now();
		bench_release(&l.word, 2 * i - 1);
		while (bench_acquire(&l.word) != 2 * i)
			;
	}
	t = bench_now() - t;
	pthread_join(thread, NULL);
	return t / (double)(l.rounds - l.rounds / 10) / 2;
}

/* ---- The runner ---------------------------------------------------------- */

struct bench_case {
	const char *name;
	double (*run)(void *arg, uint64_t n);	/* ns that @n operations took */
	void *arg;
	uint64_t step;		/* @n is a multiple of it */
	uint64_t n;		/* set by bench_run() */
};

static inline void bench_calibrate(struct bench_case *c, double want_ns)
{
	double ns;

	if (!c->step)
		c->step = 1;
	c->n = c->step;
	c->run(c->arg, c->n);	/* warm */
	for (;;) {
		ns = c->run(c->arg, c->n);
		if (ns >= want_ns / 8)
			break;
		c->n *= 2;
	}
	c->n = (uint64_t)((double)c->n * want_ns / ns) / c->step * c->step;
	if (!c->n)
		c->n = c->step;
}

/* A B C, A B C, ...: what is compared is measured side by side. */
static inline void bench_run(struct bench_case *c, unsigned int count, bool probe)
{
	unsigned int reps = bench_env("BENCH_REPS", 5);
	double want = 1e6 * bench_env("BENCH_SAMPLE_MS", 6);
	unsigned int r, i;

	for (i = 0; i < count; i++)
		bench_calibrate(&c[i], want);
	for (r = 0; r < reps; r++) {
		if (probe)
			bench_emit("line", r, bench_line_ns());
		for (i = 0; i < count; i++)
			bench_emit(c[i].name, r,
				   c[i].run(c[i].arg, c[i].n) / (double)c[i].n);
	}
	if (probe)
		bench_emit("line", r, bench_line_ns());
}

/* ---- The process that owns the remote memory ----------------------------- */

struct bench_peer {
	int to, from;
	pid_t pid;
	struct npuemu_seg_info seg;
};

static inline void bench_read_all(int fd, void *p, size_t n)
{
	char *c = p;
	ssize_t got;

	for (; n; n -= (size_t)got, c += got) {
		got = read(fd, c, n);
		if (got <= 0)
			bench_die("the peer process went away");
	}
}

/* Main of the peer: register, say where, answer with the words asked for. */
static inline int bench_peer_main(uint64_t bytes)
{
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu_seg_attr attr = {
		.size = sizeof(attr),
		.access = NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE | NPUEMU_ACCESS_ATOMIC,
	};
	struct npuemu_seg_info seg;
	struct npuemu_buf *buf;
	struct npuemu_seg *s;
	struct npuemu *ctx;
	uint64_t at;

	bench_try(npuemu_open(NULL, &ctx));
	bench_try(npuemu_query(ctx, &info));
	bench_try(npuemu_buf_alloc(ctx, info.devices > 1, bytes, 0, &buf));
	memset(npuemu_buf_ptr(buf), 0, bytes);
	bench_try(npuemu_seg_register(buf, &attr, &s));
	bench_try(npuemu_seg_query(s, &seg));
	if (write(1, &seg, sizeof(seg)) != sizeof(seg))
		return 1;
	while (read(0, &at, sizeof(at)) == sizeof(at)) {
		const volatile char *p = npuemu_buf_ptr(buf);

		if (write(1, (const void *)(uintptr_t)(p + at), 8) != 8)
			return 1;
	}
	return npuemu_close(ctx) ? 1 : 0;
}

/* main() hands over here first; returns when this process is not the peer. */
static inline void bench_peer_check(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--peer"))
		exit(bench_peer_main(strtoull(argv[2], NULL, 0)));
}

static inline void bench_peer_start(struct bench_peer *p, uint64_t bytes)
{
	int to[2], from[2];
	char arg[32], self[4096];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		bench_die("peer: /proc/self/exe: %s", strerror(errno));
	self[len] = '\0';
	snprintf(arg, sizeof(arg), "%llu", (unsigned long long)bytes);
	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		bench_die("peer: no pipe");
	p->pid = fork();
	if (p->pid < 0)
		bench_die("peer: no process");
	if (!p->pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execl(self, self, "--peer", arg, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	p->to = to[1];
	p->from = from[0];
	bench_read_all(p->from, &p->seg, sizeof(p->seg));
}

static inline uint64_t bench_peer_word(struct bench_peer *p, uint64_t at)
{
	uint64_t v;

	if (write(p->to, &at, sizeof(at)) != sizeof(at))
		bench_die("the peer process went away");
	bench_read_all(p->from, &v, sizeof(v));
	return v;
}

static inline void bench_peer_stop(struct bench_peer *p)
{
	int status;

	close(p->to);
	waitpid(p->pid, &status, 0);
	if (status)
		fprintf(stderr, "the peer process ended with status %#x\n", status);
}

/* ---- A queue to somebody else's memory ----------------------------------- */

struct bench_queue {
	struct npuemu *ctx;
	struct npuemu_buf *buf;		/* local, device 0 */
	struct npuemu_queue *q;
	struct npuemu_cq *cq;
	uint64_t *src;
	struct npuemu_target target;
	uint64_t raddr;
	uint64_t posted;		/* operations since the last check of the data */
	uint32_t bad;			/* statuses, or-ed */
};

static inline struct npuemu_queue *bench_queue_new(struct npuemu *ctx, uint32_t type,
						   uint32_t depth)
{
	struct npuemu_queue_attr attr = {
		.size = sizeof(attr), .type = type, .depth = depth,
	};
	struct npuemu_queue *q;

	bench_try(npuemu_queue_create(ctx, &attr, &q));
	return q;
}

/* Open the board with @bytes of local memory and one queue. */
static inline void bench_queue_open(struct bench_queue *b, uint64_t bytes)
{
	memset(b, 0, sizeof(*b));
	bench_try(npuemu_open(NULL, &b->ctx));
	bench_try(npuemu_buf_alloc(b->ctx, 0, bytes, 0, &b->buf));
	b->src = npuemu_buf_ptr(b->buf);
	memset(b->src, 0, bytes);
	b->q = bench_queue_new(b->ctx, NPUEMU_QUEUE_UDMA, BENCH_RING);
	b->cq = npuemu_queue_cq(b->q);
}

static inline void bench_queue_to(struct bench_queue *b, const struct npuemu_seg_info *s)
{
	b->target = npuemu_target_of(s);
	b->raddr = s->va;
}

/* Take all of @n completions. */
static inline void bench_drain(struct npuemu_cq *cq, uint32_t n, uint32_t *bad)
{
	struct npuemu_wc wc[BENCH_BATCH];
	int i, got;

	while (n) {
		got = npuemu_poll(cq, wc, n < BENCH_BATCH ? (int)n : (int)BENCH_BATCH);
		for (i = 0; i < got; i++)
			*bad |= wc[i].status;
		if (got < 0)
			bench_die("npuemu_poll: %s (%s)", strerror(-got), npuemu_errmsg());
		n -= (uint32_t)got;
	}
}

static inline void bench_good(const char *what, uint32_t bad)
{
	if (bad)
		bench_die("%s: completions with an error, or-ed status %#x (%s)", what,
			  bad, npuemu_status_str(bad));
}

static inline void bench_equal(const char *what, uint64_t have, uint64_t want)
{
	if (have != want)
		bench_die("%s: the remote word is %#llx, not %#llx", what,
			  (unsigned long long)have, (unsigned long long)want);
}

#endif
