/* SPDX-License-Identifier: MIT */
/* What the engine's unit tests say again and again, in cmocka's words. */
#ifndef NPUEMU_TESTS_FHASSERT_H
#define NPUEMU_TESTS_FHASSERT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fakehost.h"

/*
 * The engine has a fast path for plain work, which a queue that is traced does
 * not take.  A test that is registered with BOTH_WAYS() runs on either.
 */
#define BOTH_WAYS(name)							\
	{ #name, name, set_up, tear_down, NULL },			\
	{ #name " (long walk)", name, set_up_long, tear_down, NULL }

/* fail_msg() does not know that it never returns. */
#define fh_fail(...)	do { fail_msg(__VA_ARGS__); abort(); } while (0)

/* Both arenas are as their shadows say. */
#define assert_memory(fh, bytes) fh_assert_memory((fh), (bytes), __FILE__, __LINE__)

static inline void fh_assert_memory(struct fakehost *fh, u64 watch, const char *file, int line)
{
	u64 m = fh_differs(&fh->mine, watch), t = fh_differs(&fh->theirs, watch);

	if (m != ~0ull || t != ~0ull) {
		print_error("%s bytes from offset %#llx on are not as expected\n",
			    m != ~0ull ? "our" : "the peer's",
			    (unsigned long long)(m != ~0ull ? m : t));
		_fail(file, line);
	}
}

/* The next entry completes the WQE whose last block is @idx with @code. */
#define assert_cqe(f, idx, code) fh_assert_cqe((f), (idx), (code), __FILE__, __LINE__)

static inline struct fh_cqe fh_assert_cqe(struct fh_queue *f, u32 idx, u32 code,
					  const char *file, int line)
{
	struct fh_cqe c;

	if (!fh_poll(f->cq, &c)) {
		print_error("no completion; last said: %s\n", f->fh->said);
		_fail(file, line);
		abort();
	}
	if (c.code != code || c.entry_idx != (idx & (f->depth - 1) & 0xffff) || c.recv || c.fd) {
		print_error("completion of block %#x with %#x%s, not of %#x with %#x; said: %s\n",
			    c.entry_idx, c.code, c.fd ? " (flush done)" : "", idx, code,
			    f->fh->said);
		_fail(file, line);
	}
	return c;
}

#define assert_flush_done(f) fh_assert_flush_done((f), __FILE__, __LINE__)

static inline void fh_assert_flush_done(struct fh_queue *f, const char *file, int line)
{
	struct fh_cqe c;

	if (!fh_poll(f->cq, &c) || !c.fd || c.code != FH_FLUSH) {
		print_error("the next completion is not the flush-done one\n");
		_fail(file, line);
	}
}

#define assert_no_cqe(f) fh_assert_no_cqe((f), __FILE__, __LINE__)

static inline void fh_assert_no_cqe(struct fh_queue *f, const char *file, int line)
{
	struct fh_cqe c;

	if (fh_poll(f->cq, &c)) {
		print_error("a completion too many: block %#x, %#x, flush done %u\n",
			    c.entry_idx, c.code, c.fd);
		_fail(file, line);
	}
}

/* Post it, run it: it completes with @code. */
#define assert_do(f, w, code) fh_assert_do((f), (w), (code), __FILE__, __LINE__)

static inline struct fh_cqe fh_assert_do(struct fh_queue *f, const struct fh_wqe *w, u32 code,
					 const char *file, int line)
{
	fh_post(f, w);
	fh_run(f);
	return fh_assert_cqe(f, f->pi - 1, code, file, line);
}

/* After an error: back to work. */
static inline void fh_recover(struct fh_queue *f)
{
	struct fh_cqe c;

	while (fh_poll(f->cq, &c))
		;
	assert_int_equal(npuemu_jfs_modify(&f->q, NPUEMU_QS_RESET), 0);
	f->page[32] = 0;
	f->page[0] = 0;
	f->pi = 0;
	assert_int_equal(npuemu_jfs_modify(&f->q, NPUEMU_QS_READY), 0);
}

/* Post it, run it: an error that costs the queue; start afresh. */
#define assert_refused(f, w, code) fh_assert_refused((f), (w), (code), __FILE__, __LINE__)

static inline void fh_assert_refused(struct fh_queue *f, const struct fh_wqe *w, u32 code,
				     const char *file, int line)
{
	fh_assert_do(f, w, code, file, line);
	fh_assert_flush_done(f, file, line);
	if (!f->fh->said[0]) {
		print_error("nothing was said about the error\n");
		_fail(file, line);
	}
	f->fh->said[0] = '\0';
	fh_recover(f);
}

#endif
