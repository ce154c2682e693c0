/* SPDX-License-Identifier: MIT */
/*
 * What the system tests share: checks that work in the test, in its child
 * processes and in threads alike; child processes; memory, queues and
 * completions with deadlines.
 *
 * Children are not forked by the test, which has threads once it opened a board,
 * but by a helper process made at the start (sys_start).  They are children of
 * the test all the same: it waits for them, and they die with it.
 *
 * Each test has a board of its own.  After the test nothing may be left on it:
 * no memory, no queue, no process; and no descriptor or thread in the test.
 *
 * They run on either host, whichever NPUEMU_HOST says.  The kernel's board is one,
 * so there they are the only ones to use it, as root, on machine "small".
 */
#ifndef TESTS_COMMON_SYS_H
#define TESTS_COMMON_SYS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <cmocka.h>
#include <npuemu/npuemu.h>

/*
 * No test waits longer for anything.  Long, for sanitizers on a busy machine;
 * NPUEMU_TEST_PATIENCE (seconds) makes it longer, for debug kernels on an emulated one.
 */
#define SYS_PATIENCE_MS		sys_patience_ms()
int sys_patience_ms(void);

/* ---- Checks --------------------------------------------------------------- */

void __attribute__((__format__(__printf__, 3, 4), __noreturn__))
sys_fail(const char *file, int line, const char *fmt, ...);
void sys_failed_call(const char *file, int line, const char *expr, long rc, long want)
	__attribute__((__noreturn__));
void sys_compare(const char *file, int line, const char *what, const void *got,
		 const void *want, size_t n);

/* @cond holds, or @... says what is wrong. */
#define sys_true(cond, ...) \
	do { \
		if (!(cond)) \
			sys_fail(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

/* The call succeeds; its value. */
#define sys_rc(expr) \
	({ \
		long rc_ = (expr); \
		if (rc_ < 0) \
			sys_failed_call(__FILE__, __LINE__, #expr, rc_, 0); \
		rc_; \
	})

/* The call fails with @want and leaves a message. */
#define sys_err(expr, want) \
	do { \
		long rc_ = (expr); \
		if (rc_ != (want) || !npuemu_errmsg()[0]) \
			sys_failed_call(__FILE__, __LINE__, #expr, rc_, (want)); \
	} while (0)

#define sys_eq(got, want) \
	do { \
		unsigned long long got_ = (unsigned long long)(got); \
		unsigned long long want_ = (unsigned long long)(want); \
		if (got_ != want_) \
			sys_fail(__FILE__, __LINE__, "%s is %llu (%#llx), not %llu (%#llx)", \
				 #got, got_, got_, want_, want_); \
	} while (0)

/* @n bytes are equal, else the first difference is named. */
#define sys_same(what, got, want, n) \
	sys_compare(__FILE__, __LINE__, what, got, want, n)

/* ---- The test program ----------------------------------------------------- */

/* First thing in main(). */
void sys_start(void);
int sys_setup(void **state);
int sys_teardown(void **state);
/* For a test that leaves a damaged board: only removes it. */
int sys_teardown_reset(void **state);

#define sys_test(fn) \
	cmocka_unit_test_setup_teardown(fn, sys_setup, sys_teardown)
#define sys_test_damage(fn) \
	cmocka_unit_test_setup_teardown(fn, sys_setup, sys_teardown_reset)

bool sys_kernel(void);		/* this is the kernel host */
/* For a test, or what is left of one, that only the user-space host can do. */
#define sys_user_only(why) \
	do { \
		if (sys_kernel()) { \
			print_message("%s: skipped on the kernel host: %s\n", __func__, why); \
			skip(); \
		} \
	} while (0)

bool sys_tsan(void);		/* built with ThreadSanitizer */
bool sys_slow(void);		/* built with any sanitizer, or emulated: do less */
int64_t sys_deadline(void);
void sys_nap(unsigned int ms);
/* False once the deadline has passed; sleeps a little in between. */
bool sys_retry(int64_t deadline);
/* Nothing of dead processes is left on the board of this test. */
void sys_nothing_left(struct npuemu *ctx, unsigned int processes);
/* Bytes allocated on all devices. */
uint64_t sys_hbm_used(struct npuemu *ctx);
/* A board of the user-space host is a file; NULL on other hosts. */
const char *sys_board_file(const char *board);
const char *sys_board(void);

/* ---- Children ------------------------------------------------------------- */

#define SYS_ARG_MAX	1024

struct sys_child {
	pid_t pid;
	int fd;			/* to and from the child */
};

/* Runs in the child; its end of the channel, and a copy of the argument. */
typedef void (*sys_child_fn)(int fd, const void *arg);

void sys_spawn(struct sys_child *c, sys_child_fn fn, const void *arg, size_t bytes);
/* The child ends by itself, without a complaint. */
void sys_join(struct sys_child *c);
/* The child is killed, now. */
void sys_kill(struct sys_child *c);
/* Whole messages over a channel; an end that is gone is a failure. */
void sys_put(int fd, const void *data, size_t n);
void sys_get(int fd, void *data, size_t n);
/* The same, but false when the other end is gone. */
bool sys_try_get(int fd, void *data, size_t n);
/* Tell the other side to go on; wait for it. */
void sys_go(int fd);
void sys_wait_go(int fd);

/* ---- Pseudo-random bytes -------------------------------------------------- */

uint64_t sys_rand(uint64_t *state);
void sys_fill(void *p, size_t n, uint64_t seed);
void sys_is_filled(const char *what, const void *p, size_t n, uint64_t seed);
void sys_is_byte(const char *what, const void *p, size_t n, unsigned char byte);

/* ---- Things on a board ---------------------------------------------------- */

#define SYS_RWA		(NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE | NPUEMU_ACCESS_ATOMIC)

/* Device memory with a segment over all of it. */
struct sys_mem {
	struct npuemu_buf *buf;
	struct npuemu_seg *seg;
	unsigned char *p;
	uint64_t va;
	struct npuemu_seg_info info;
	struct npuemu_target t;
};

struct npuemu *sys_open(void);
void sys_mem_make(struct npuemu *ctx, struct sys_mem *m, uint32_t device,
		  uint64_t bytes, uint32_t access);
void sys_mem_drop(struct sys_mem *m);

struct npuemu_queue_attr sys_queue_attr(uint32_t device, uint32_t depth);
struct npuemu_queue *sys_queue(struct npuemu *ctx, uint32_t device, uint32_t depth);
struct npuemu_cq *sys_cq(struct npuemu *ctx, uint32_t depth, uint32_t flags);
struct npuemu_queue_stat sys_stat(struct npuemu_queue *q);

/* One completion, within the deadline. */
void sys_one(struct npuemu_cq *cq, struct npuemu_wc *wc);
/* Ring, then take completions up to that of the last WQE posted; its status. */
uint32_t sys_finish(struct npuemu_queue *q);
/* The same, and it must be a success. */
void sys_run(struct npuemu_queue *q);
/* The status of a completion is the one meant. */
void sys_is_status(const struct npuemu_wc *wc, uint32_t want);
/* Give back ERROR and go on: RESET, READY, and no old completion is left. */
void sys_revive(struct npuemu_queue *q);

#endif
