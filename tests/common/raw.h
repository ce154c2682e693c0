/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the driver itself share (tests/vm/test_*.c): a context by
 * plain system calls, without the library; buffers, queues and doorbells in it;
 * children, signals and memory that faults.
 *
 * They are root in a VM that has the module, machine "small", all to themselves.
 * After each test nothing may be left in the driver, and no descriptor or thread
 * in the program.
 */
#ifndef TESTS_COMMON_RAW_H
#define TESTS_COMMON_RAW_H

#include <npuemu/ioctl.h>
#include <npuemu/udma.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "sys.h"

#define KIB	1024ull
#define MIB	(1024 * KIB)
#define GIB	(1024 * MIB)

/* ---- The program ------------------------------------------------------------ */

/* First thing in main(); ends the program where there is no module. */
void raw_start(void);
int raw_setup(void **state);
int raw_teardown(void **state);

#define raw_test(fn) \
	cmocka_unit_test_setup_teardown(fn, raw_setup, raw_teardown)

/* The rest of the test cannot be done here. */
#define raw_skip(...) \
	do { \
		print_message("%s: skipped: ", __func__); \
		print_message(__VA_ARGS__); \
		print_message("\n"); \
		skip(); \
	} while (0)

/* ---- Calls ------------------------------------------------------------------- */

/* 0 or a negative errno; signals are not hidden. */
int raw_ioctl(int fd, unsigned long cmd, void *arg);
/* A system call's value, or a negative errno. */
#define raw_sys(expr)	({ long raw_rc_ = (long)(expr); raw_rc_ < 0 ? -errno : raw_rc_; })

void raw_wrong(const char *file, int line, const char *expr, long rc, long want)
	__attribute__((__noreturn__));

/* The value is exactly @want: 0, or a negative errno. */
#define raw_is(expr, want) \
	do { \
		long rc_ = (expr), want_ = (want); \
		if (rc_ != want_) \
			raw_wrong(__FILE__, __LINE__, #expr, rc_, want_); \
	} while (0)

/* It is no error; its value. */
#define raw_ok(expr) \
	({ \
		long rc_ = (expr); \
		if (rc_ < 0) \
			raw_wrong(__FILE__, __LINE__, #expr, rc_, 0); \
		rc_; \
	})

int raw_node(uint32_t device);		/* /dev/npuemuN, opened */
int raw_ctl(void);			/* /dev/npuemu-ctl, opened */
uint64_t raw_missed(void);		/* doorbells the watchdog had to find */
/* Of /sys/kernel/debug/npuemu/leaks; root only. */
long raw_leaks(const char *name);
/* A number in a file such as a module's parameter; -1: it is not there. */
long raw_number(const char *path);
/* False: there is no such file. */
bool raw_write_file(const char *path, const char *text);

/* ---- A context ----------------------------------------------------------------- */

struct raw {
	int fd;
	uint32_t device;
	struct npuemu_ioc_query q;
	unsigned char *rings;
	unsigned char *doorbells;
	unsigned char *records;
};

void raw_open(struct raw *r, uint32_t device);
void raw_unmap(struct raw *r);
void raw_close(struct raw *r);
uint32_t *raw_record(struct raw *r, uint32_t record, uint32_t at);

/* A buffer, mapped, and in the address table where it is mapped. */
struct raw_bo {
	struct raw *r;
	uint32_t handle;
	uint64_t room;
	uint64_t offset;	/* for mmap */
	unsigned char *p;
};

void raw_bo_create(struct raw *r, struct raw_bo *b, uint64_t bytes);	/* only the handle */
void raw_bo_map(struct raw_bo *b);
void raw_bo_make(struct raw *r, struct raw_bo *b, uint64_t bytes);	/* both */
void raw_bo_drop(struct raw_bo *b);
int raw_bo_close(struct raw *r, uint32_t handle);
int raw_va_map(struct raw *r, uint64_t va, uint64_t bytes, uint32_t handle, uint64_t offset,
	       uint32_t flags);
int raw_va_unmap(struct raw *r, uint64_t va);

/* What a peer has to know of a segment. */
struct raw_seg {
	uint32_t eid[4];
	uint32_t token_id;
	uint32_t token_value;
	uint64_t va;
	uint64_t bytes;
};

/* Over all of the buffer, at the addresses it is mapped at. */
void raw_seg_make(struct raw_bo *b, struct raw_seg *s, uint32_t access);

/* ---- Queues ----------------------------------------------------------------------- */

struct raw_cq {
	struct raw *r;
	uint32_t handle;
	uint32_t depth;
	uint32_t ci;
	uint32_t *ci_rec;
	struct npuemu_cqe *ring;
};

struct raw_q {
	struct raw *r;
	struct raw_cq *cq;
	uint32_t id;
	uint32_t depth;
	uint32_t pi;		/* as posted */
	uint64_t *ring;
	uint32_t *db;
	uint32_t eid[4];
};

enum { RAW_UDMA = 0, RAW_SDMA = 1 };

void raw_cq_make(struct raw *r, struct raw_cq *cq, uint32_t depth);
/* On a device; depth 64 at least; READY. */
void raw_q_make(struct raw *r, struct raw_q *q, struct raw_cq *cq, uint32_t device,
		uint32_t type, uint32_t depth);
int raw_q_destroy(struct raw_q *q);
int raw_cq_destroy(struct raw_cq *cq);
int raw_modify(struct raw_q *q, uint32_t state);
struct npuemu_ioc_queue_query raw_query(struct raw_q *q);

/* Posting: into the ring, not yet announced.  A completion is always wanted. */
void raw_post_nop(struct raw_q *q);				/* SDMA */
void raw_post_copy(struct raw_q *q, void *dst, const void *src, uint64_t len);
void raw_post_fill(struct raw_q *q, void *dst, uint64_t pattern, uint64_t len);
void raw_post_write(struct raw_q *q, const void *src, uint32_t len, const struct raw_seg *s,
		    uint64_t off);
void raw_post_read(struct raw_q *q, void *dst, uint32_t len, const struct raw_seg *s,
		   uint64_t off);
/* To an RQ: @to's token id is its id. */
void raw_post_send(struct raw_q *q, const void *src, uint32_t len, const struct raw_seg *to,
		   bool token);
/* The plain store. */
void raw_ring(struct raw_q *q);

/* False: there is no completion. */
bool raw_poll(struct raw_cq *cq, struct npuemu_cqe *cqe);
/* The next one, found by looking only; false: not within @ms. */
bool raw_spin(struct raw_cq *cq, struct npuemu_cqe *cqe, unsigned int ms);
uint32_t raw_status(const struct npuemu_cqe *cqe);	/* enum npuemu_status */
/* Ring, and one completion: its status. */
uint32_t raw_finish(struct raw_q *q);
void raw_status_is(const char *file, int line, uint32_t got, uint32_t want);
#define raw_completes(q, want)	raw_status_is(__FILE__, __LINE__, raw_finish(q), want)

int raw_wait_cq(struct raw_cq *cq, unsigned int ms);
int raw_wait(struct raw *r, struct npuemu_ioc_wait_item *items, uint32_t nr, int64_t deadline,
	     uint32_t *ready);

/* ---- Processes ---------------------------------------------------------------------- */

/* Runs in a forked child, with its end of a channel (sys_put, sys_get ...). */
typedef void (*raw_child_fn)(int fd, void *arg);

struct raw_child {
	pid_t pid;
	int fd;
};

/* A plain fork: the child has the descriptors and memory of the test. */
void raw_fork(struct raw_child *c, raw_child_fn fn, void *arg);
/* It ends by itself, without a complaint. */
void raw_join(struct raw_child *c);
void raw_kill(struct raw_child *c);
void raw_kill_all(void);
void raw_send_fd(int channel, int fd);
int raw_recv_fd(int channel);
void raw_become(uid_t uid);

/* ---- Memory that may fault ------------------------------------------------------------ */

/* Read, or write, a byte: 0 or the signal it brought. */
int raw_touch(volatile void *p, bool write);

#endif
