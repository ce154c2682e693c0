// SPDX-License-Identifier: MIT
/*
 * Segments: which sets of rights there are and what each lets a peer do, ranges,
 * token values and their rotation, and that memory does not change any more once
 * its segment is unregistered, however busy a peer is writing to it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "sys.h"

#define BYTES	65536u

struct bench {
	struct npuemu *ctx;
	struct npuemu_queue *q;
	struct sys_mem local;
	struct npuemu_buf *buf;
	unsigned char *p;
};

static void start(struct bench *b)
{
	b->ctx = sys_open();
	sys_mem_make(b->ctx, &b->local, 0, BYTES, NPUEMU_ACCESS_LOCAL);
	sys_rc(npuemu_buf_alloc(b->ctx, 1, BYTES, 0, &b->buf));
	b->p = npuemu_buf_ptr(b->buf);
	b->q = sys_queue(b->ctx, 0, 64);
}

static void stop(struct bench *b)
{
	sys_rc(npuemu_queue_destroy(b->q));
	sys_rc(npuemu_buf_free(b->buf));
	sys_mem_drop(&b->local);
	sys_rc(npuemu_close(b->ctx));
}

static struct npuemu_seg_attr access_attr(uint32_t access)
{
	struct npuemu_seg_attr attr = { .size = sizeof(attr), .access = access };

	return attr;
}

static struct npuemu_seg *segment(struct bench *b, const struct npuemu_seg_attr *attr,
				  struct npuemu_seg_info *info)
{
	struct npuemu_seg *seg;

	sys_rc(npuemu_seg_register(b->buf, attr, &seg));
	sys_rc(npuemu_seg_query(seg, info));
	return seg;
}

/* The status of what was posted; the queue is ready again. */
static uint32_t outcome(struct bench *b)
{
	uint32_t status = sys_finish(b->q);

	if (status)
		sys_revive(b->q);
	return status;
}

static uint32_t try_write(struct bench *b, const struct npuemu_target *t, uint64_t va, uint32_t n)
{
	sys_rc(npuemu_post_write(b->q, b->local.p, n, t, va, NPUEMU_SQE_CQE));
	return outcome(b);
}

static uint32_t try_read(struct bench *b, const struct npuemu_target *t, uint64_t va, uint32_t n)
{
	sys_rc(npuemu_post_read(b->q, b->local.p, n, t, va, NPUEMU_SQE_CQE));
	return outcome(b);
}

/* ---- Rights --------------------------------------------------------------------------- */

static void legal_sets(void **state)
{
	struct npuemu_seg_info info;
	struct npuemu_seg_attr attr;
	struct npuemu_seg *seg;
	struct bench b;
	uint32_t access;

	(void)state;
	start(&b);
	for (access = 0; access < 64; access++) {
		attr = access_attr(access);
		if (access == NPUEMU_ACCESS_LOCAL || access == NPUEMU_ACCESS_READ ||
		    access == (NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE) || access == SYS_RWA) {
			seg = segment(&b, &attr, &info);
			sys_eq(info.access, access);
			sys_eq(info.bytes, BYTES);
			sys_eq(info.device, 1);
			sys_true(info.token_id < 1u << 20, "token id %#x", info.token_id);
			sys_rc(npuemu_seg_unregister(seg));
		} else {
			sys_err(npuemu_seg_register(b.buf, &attr, &seg), -EINVAL);
		}
	}
	stop(&b);
}

static void rights(void **state)
{
	static const struct {
		uint32_t access;
		bool read, write, atomic;
	} sets[] = {
		{ NPUEMU_ACCESS_LOCAL, false, false, false },
		{ NPUEMU_ACCESS_READ, true, false, false },
		{ NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE, true, true, false },
		{ SYS_RWA, true, true, true },
	};
	const uint32_t no = NPUEMU_ST_REM_ACCESS_ABORT;
	struct npuemu_seg_info info;
	struct npuemu_seg_attr attr;
	struct npuemu_seg *seg;
	struct npuemu_target t;
	struct bench b;

	(void)state;
	start(&b);
	for (int i = 0; i < 4; i++) {
		attr = access_attr(sets[i].access);
		seg = segment(&b, &attr, &info);
		t = npuemu_target_of(&info);
		memset(b.p, 0, 64);
		memset(b.local.p, 0x5a, 64);
		sys_eq(try_write(&b, &t, info.va, 8), sets[i].write ? 0 : no);
		sys_eq(*(uint64_t *)b.p, sets[i].write ? 0x5a5a5a5a5a5a5a5au : 0);
		sys_eq(try_read(&b, &t, info.va, 8), sets[i].read ? 0 : no);
		memset(b.p, 0, 64);
		sys_rc(npuemu_post_faa(b.q, b.local.p, 8, &t, info.va, 3, NPUEMU_SQE_CQE));
		sys_eq(outcome(&b), sets[i].atomic ? 0 : no);
		sys_eq(*(uint64_t *)b.p, sets[i].atomic ? 3 : 0);
		memset(b.p, 0, 64);
		sys_rc(npuemu_post_cas(b.q, b.local.p, 8, &t, info.va, 9, 0, NPUEMU_SQE_CQE));
		sys_eq(outcome(&b), sets[i].atomic ? 0 : no);
		sys_eq(*(uint64_t *)b.p, sets[i].atomic ? 9 : 0);
		memset(b.p, 0, 64);
		sys_rc(npuemu_post_write_notify(b.q, b.local.p, 8, &t, info.va + 16, &t,
						info.va + 8, 1, NPUEMU_SQE_CQE));
		sys_eq(outcome(&b), sets[i].write ? 0 : no);
		sys_eq(((uint64_t *)b.p)[1], sets[i].write);
		memset(b.p, 0, 64);
		memset(b.local.p, 0x5a, 64);
		sys_rc(npuemu_post_write_reduce(b.q, b.local.p, 8, &t, info.va,
						NPUEMU_REDUCE_SUM, NPUEMU_UINT8,
						NPUEMU_SQE_CQE));
		sys_eq(outcome(&b), sets[i].write ? 0 : no);
		sys_eq(!!*(uint64_t *)b.p, sets[i].write);
		sys_rc(npuemu_seg_unregister(seg));
	}
	stop(&b);
}

/* ---- Ranges and values ------------------------------------------------------------------ */

static void ranges(void **state)
{
	const uint32_t no = NPUEMU_ST_REM_ACCESS_ABORT;
	struct npuemu_seg_attr attr = access_attr(SYS_RWA);
	struct npuemu_seg_info info;
	struct npuemu_target t;
	struct npuemu_seg *seg;
	struct bench b;

	(void)state;
	start(&b);
	attr.offset = 8192;
	attr.bytes = 4096;
	seg = segment(&b, &attr, &info);
	sys_eq(info.bytes, 4096);
	sys_eq(info.va, (uintptr_t)b.p + 8192);
	t = npuemu_target_of(&info);
	memset(b.p, 0xee, BYTES);
	memset(b.local.p, 0x11, BYTES);
	sys_eq(try_write(&b, &t, info.va, 4096), 0);
	sys_eq(try_write(&b, &t, info.va + 4095, 1), 0);
	sys_is_byte("before", b.p, 8192, 0xee);
	sys_is_byte("in it", b.p + 8192, 4096, 0x11);
	memset(b.p + 8192, 0xee, 4096);
	sys_eq(try_write(&b, &t, info.va, 4097), no);
	sys_eq(try_write(&b, &t, info.va - 1, 1), no);
	sys_eq(try_write(&b, &t, info.va - 1, 2), no);
	sys_eq(try_write(&b, &t, info.va + 4096, 1), no);
	sys_eq(try_write(&b, &t, info.va + 4095, 2), no);
	sys_eq(try_write(&b, &t, info.va - 4096, 4096), no);
	sys_eq(try_write(&b, &t, 0, 8), no);
	sys_eq(try_write(&b, &t, UINT64_MAX, 1), no);
	sys_eq(try_write(&b, &t, UINT64_MAX - 3, 8), no);
	sys_eq(try_write(&b, &t, info.va + (1ull << 63), 8), no);
	sys_eq(try_read(&b, &t, info.va - 1, 8), no);
	sys_eq(try_read(&b, &t, info.va + 4089, 8), no);
	sys_rc(npuemu_post_faa(b.q, b.local.p, 8, &t, info.va + 4096, 1, NPUEMU_SQE_CQE));
	sys_eq(outcome(&b), no);
	/* the payload is fine, the word is not */
	sys_rc(npuemu_post_write_notify(b.q, b.local.p, 8, &t, info.va, &t, info.va + 4096, 1,
					NPUEMU_SQE_CQE));
	sys_eq(outcome(&b), no);
	sys_is_byte("before", b.p, 8192, 0xee);
	sys_is_byte("behind", b.p + 12288, BYTES - 12288, 0xee);
	sys_rc(npuemu_seg_unregister(seg));

	attr.offset = BYTES;
	attr.bytes = 0;
	sys_err(npuemu_seg_register(b.buf, &attr, &seg), -EINVAL);
	attr.offset = BYTES - 4096;
	attr.bytes = 4097;
	sys_err(npuemu_seg_register(b.buf, &attr, &seg), -EINVAL);
	attr.offset = UINT64_MAX - 4095;
	attr.bytes = 8192;
	sys_err(npuemu_seg_register(b.buf, &attr, &seg), -EINVAL);
	stop(&b);
}

static void token_values(void **state)
{
	const uint32_t no = NPUEMU_ST_REM_ACCESS_ABORT;
	struct npuemu_seg_attr attr = access_attr(SYS_RWA);
	struct npuemu_seg_info info, other;
	struct npuemu_seg *seg, *free_seg;
	struct npuemu_target t, bad;
	struct bench b;
	uint32_t i;

	(void)state;
	start(&b);
	attr.token_value = 0x12345678;
	seg = segment(&b, &attr, &info);
	sys_eq(info.token_value, 0x12345678);
	t = npuemu_target_of(&info);
	sys_eq(try_write(&b, &t, info.va, 8), 0);
	for (i = 0; i < 32; i++) {
		bad = t;
		bad.token_value ^= 1u << i;
		sys_eq(try_write(&b, &bad, info.va, 8), no);
	}
	for (i = 0; i < 20; i++) {
		bad = t;
		bad.token_id ^= 1u << i;
		sys_eq(try_write(&b, &bad, info.va, 8), no);
	}
	/* not even a token */
	sys_rc(npuemu_post_write(b.q, b.local.p, 8, &t, info.va, NPUEMU_SQE_CQE));
	*(uint32_t *)npuemu_bb(npuemu_view(b.q), npuemu_last_wqe(b.q)) &= ~NPUEMU_SQE_TOKEN_EN;
	sys_eq(outcome(&b), no);
	/* a segment that asks for none takes any */
	attr.flags = NPUEMU_SEG_NO_TOKEN;
	attr.token_value = 0;
	free_seg = segment(&b, &attr, &other);
	bad = npuemu_target_of(&other);
	for (i = 0; i < 3; i++) {
		bad.token_value = i * 0x7777;
		sys_eq(try_write(&b, &bad, other.va, 8), 0);
	}
	sys_true(other.token_id != info.token_id, "the same token id twice");
	sys_rc(npuemu_seg_unregister(free_seg));
	sys_rc(npuemu_seg_unregister(seg));
	sys_eq(try_write(&b, &t, info.va, 8), no);
	sys_eq(try_write(&b, &bad, other.va, 8), no);
	stop(&b);
}

static void rotation(void **state)
{
	const uint32_t no = NPUEMU_ST_REM_ACCESS_ABORT;
	struct npuemu_seg_attr attr = access_attr(SYS_RWA);
	struct npuemu_seg_info info;
	struct npuemu_target t, old;
	struct npuemu_seg *seg;
	struct bench b;
	int i;

	(void)state;
	start(&b);
	seg = segment(&b, &attr, &info);
	t = npuemu_target_of(&info);
	for (i = 0; i < 20; i++) {
		old = t;
		sys_eq(try_write(&b, &old, info.va, 8), 0);
		sys_rc(npuemu_seg_rotate(seg, i % 3 ? 0 : 1000u + (uint32_t)i));
		sys_eq(try_write(&b, &old, info.va, 8), no);
		sys_rc(npuemu_seg_query(seg, &info));
		if (i % 3 == 0)
			sys_eq(info.token_value, 1000 + i);
		t = npuemu_target_of(&info);
		sys_eq(t.token_id, old.token_id);
		sys_eq(try_write(&b, &t, info.va, 8), 0);
		sys_eq(try_write(&b, &old, info.va, 8), no);
	}
	sys_rc(npuemu_seg_unregister(seg));
	sys_err(npuemu_seg_rotate(seg, 0), -EBADF);
	sys_err(npuemu_seg_query(seg, &info), -EBADF);
	sys_err(npuemu_seg_unregister(seg), -EBADF);
	stop(&b);
}

/* Random values differ from one segment to the next. */
static void random_values(void **state)
{
	enum { N = 64 };
	struct npuemu_seg_attr attr = access_attr(NPUEMU_ACCESS_READ);
	struct npuemu_seg_info info[N];
	struct npuemu_seg *seg[N];
	int i, k, same = 0;
	struct bench b;

	(void)state;
	start(&b);
	for (i = 0; i < N; i++) {
		seg[i] = segment(&b, &attr, &info[i]);
		for (k = 0; k < i; k++) {
			sys_true(info[k].token_id != info[i].token_id, "token id %#x twice",
				 info[i].token_id);
			same += info[k].token_value == info[i].token_value;
		}
	}
	sys_true(same <= 1, "%d pairs of equal token values", same);
	for (i = 0; i < N; i++)
		sys_rc(npuemu_seg_unregister(seg[i]));
	stop(&b);
}

/* ---- Revocation under fire ----------------------------------------------------------------- */

/* Writes as fast as it can until the segment is gone, then asks for the next one. */
static void writer(int fd, const void *arg)
{
	struct npuemu *ctx = sys_open();
	struct npuemu_queue *q = sys_queue(ctx, 0, 64);
	struct npuemu_seg_info info;
	struct npuemu_target t;
	struct sys_mem m;
	uint64_t n = 0;
	uint32_t status, k;

	(void)arg;
	sys_mem_make(ctx, &m, 0, BYTES, NPUEMU_ACCESS_LOCAL);
	while (sys_try_get(fd, &info, sizeof(info))) {
		t = npuemu_target_of(&info);
		do {
			n++;
			memset(m.p, (int)n, BYTES);
			for (k = 0; k < 8; k++)
				sys_rc(npuemu_post_write(q, m.p, BYTES - k, &t, info.va + k,
							 k == 7 ? NPUEMU_SQE_CQE : 0));
			status = sys_finish(q);
			if (n % 16 == 1 && !status)
				sys_go(fd);
		} while (!status);
		sys_eq(status, NPUEMU_ST_REM_ACCESS_ABORT);
		sys_revive(q);
		sys_put(fd, "e", 1);
	}
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&m);
	sys_rc(npuemu_close(ctx));
}

static void revoked_while_written(void **state)
{
	static unsigned char snapshot[BYTES];
	struct npuemu_seg_attr attr = access_attr(SYS_RWA);
	struct npuemu_seg_info info;
	struct npuemu_seg *seg;
	struct sys_child c;
	struct bench b;
	uint64_t rnd = 11;
	int round;
	char what;

	(void)state;
	start(&b);
	sys_spawn(&c, writer, NULL, 0);
	for (round = 0; round < 30; round++) {
		seg = segment(&b, &attr, &info);
		sys_put(c.fd, &info, sizeof(info));
		/* It writes: that has been seen. */
		sys_wait_go(c.fd);
		for (uint64_t k = sys_rand(&rnd) % 20000; k; k--)
			__asm__ volatile("");
		if (round & 1) {
			sys_rc(npuemu_seg_rotate(seg, 0));
			/* peers with the old one are out */
			do {
				sys_get(c.fd, &what, 1);
			} while (what == 'g');
			sys_eq(what, 'e');
			sys_rc(npuemu_seg_unregister(seg));
			continue;
		}
		sys_rc(npuemu_seg_unregister(seg));
		memcpy(snapshot, b.p, BYTES);
		memset(b.p, 0xcc, 4096);
		memset(snapshot, 0xcc, 4096);
		do {
			sys_get(c.fd, &what, 1);
			sys_same("after it was revoked", b.p, snapshot, BYTES);
		} while (what == 'g');
		sys_eq(what, 'e');
		sys_nap(2);
		sys_same("after it was revoked", b.p, snapshot, BYTES);
	}
	shutdown(c.fd, SHUT_WR);
	sys_join(&c);
	stop(&b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(legal_sets),
		sys_test(rights),
		sys_test(ranges),
		sys_test(token_values),
		sys_test(rotation),
		sys_test(random_values),
		sys_test(revoked_while_written),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
