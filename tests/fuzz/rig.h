/* SPDX-License-Identifier: MIT */
/*
 * What the fuzz targets of the ring share: a small fake host with places that may
 * be written and places that must not, WQEs made half plausible, and the account
 * of what came out.  The fake host is included, not linked: fuzz targets are made
 * of one file and the library.
 */
#ifndef NPUEMU_TESTS_FUZZ_RIG_H
#define NPUEMU_TESTS_FUZZ_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "fakehost.c"
#include "fakepage.c"
#include "fakequeue.c"
#include "fakewqe.c"

#define KIB		1024ull
#define ARENA		(256 * KIB)
#define MINE_FROM	(64 * KIB)	/* our buffer: from here to the arena's end */
#define RW_BYTES	(128 * KIB)	/* the peer's segment 1: all rights */
#define RO_FROM		(160 * KIB)	/* its segment 2: reading only, to the end */
#define DEPTH		64u
#define RQ_DEPTH	64u
#define GUARD		0xa5

static struct fakehost *rig_host;
static struct npuemu_sge rig_recv[RQ_DEPTH * 8];

#define require(cond)	do { if (!(cond)) rig_broken(#cond, __LINE__); } while (0)

static inline void rig_broken(const char *what, int line)
{
	fprintf(stderr, "fuzz: line %d: not so: %s; last said: %s\n", line, what, rig_host->said);
	abort();
}

static inline void rig_init(void)
{
	if (rig_host)
		return;
	rig_host = fh_new_small(ARENA);
	rig_host->mine_from = MINE_FROM;
	memset(rig_host->mine.a.base, GUARD, ARENA);
	memset(rig_host->theirs.a.base, GUARD, ARENA);
}

/* The host as new, but for the bytes in its buffers. */
static inline void rig_reset(void)
{
	struct fakehost *fh = rig_host;

	fh->chip.epoch++;
	fh->chip.trace = false;
	fh->back_left = -1;
	fh->out_of_reach = false;
	fh->life = 0x1001;
	fh->mine.a.backed = NULL;
	fh->theirs.a.backed = NULL;
	fh->jfr = NULL;
	fh->said[0] = '\0';
	fh_faults(fh, 0);
	fh_segment(fh, 1, 0, RW_BYTES, FH_RWA, FH_TOKEN_VALUE);
	fh_segment(fh, 2, RO_FROM, ARENA - RO_FROM, FH_R, FH_TOKEN_VALUE);
}

static inline bool all_guard(const u8 *p, u64 n)
{
	return p[0] == GUARD && !memcmp(p, p + 1, n - 1);
}

/* Nothing was written where nobody may. */
static inline void rig_check_memory(void)
{
	require(all_guard(rig_host->mine.a.base, MINE_FROM));
	require(all_guard(rig_host->theirs.a.base + RW_BYTES, ARENA - RW_BYTES));
}

/* ---- WQEs ------------------------------------------------------------------- */

/* Blocks a WQE claims, by the format: @type 1 is SDMA. */
static inline u32 rig_blocks(u32 type, const void *wqe)
{
	u32 dw[3], op, control, payload, max;

	memcpy(dw, wqe, sizeof(dw));
	op = dw[1] >> 8 & 0xff;

	if (type)
		return 1;
	switch (op) {
	case FH_SEND:
	case FH_SEND_IMM:
	case FH_WRITE:
	case FH_READ:
		control = 48;
		break;
	case FH_NOTIFY:
		control = 80;
		break;
	case FH_CAS:
	case FH_FAA:
		return 2;
	default:
		return 1;
	}
	payload = dw[0] >> 22 & 1 ? dw[1] >> 22 : 16 * (dw[2] >> 24);
	max = (control + payload + 63) / 64;
	return max > 4 ? 1 : max;
}

/* Fold an address to one near good places: good more often than not. */
static inline u64 near(u64 base, u64 bytes, u64 v)
{
	return base + v % (bytes + 64);
}

/* An SDMA descriptor that could be one. */
static inline void mend_sdma(struct fh_wqe *w, u8 keep)
{
	u64 v;
	u32 i;

	if (!(keep & 2))
		w->b[5] %= 6;
	if (!(keep & 4)) {
		fh_put64(w, 56, 0);
		fh_put32(w, 8, w->b[5] == FH_SDMA_REDUCE ?
			 (8 + fh_get32(w, 8) % 3) << 4 | fh_get32(w, 8) / 3 % 9 : 0);
		memcpy(&v, w->b + 32, 8);
		v %= w->b[5] == FH_SDMA_COPY_2D ? 100 : v >> 63 ? 1000 : 90000;
		fh_put64(w, 32, w->b[5] == FH_SDMA_NOTIFY ? 8 : v & ~3ull);
		if (w->b[5] == FH_SDMA_COPY_2D)
			fh_pitch(w, fh_get32(w, 12) % 50, 90 + fh_get32(w, 40) % 500,
				 90 + fh_get32(w, 48) % 500);
		else
			fh_pitch(w, 0, w->b[5] == FH_SDMA_FILL ? 1 << w->b[40] % 4 : 0, 0);
	}
	for (i = 16; i <= 24 && !(keep & 8); i += 8) {
		memcpy(&v, w->b + i, 8);
		fh_put64(w, i, near(FH_VA + MINE_FROM, ARENA - MINE_FROM - 50000, v) & ~7ull);
	}
}

/* The control part of a UDMA WQE. */
static inline void mend_control(struct fh_wqe *w, u8 keep)
{
	static const u8 ops[] = {
		FH_WRITE, FH_READ, FH_NOTIFY, FH_CAS, FH_FAA, FH_NOP, FH_WRITE_ADD, FH_SEND,
		FH_SEND_IMM, FH_WRITE, FH_READ, FH_WRITE, FH_FAA, FH_WRITE, FH_READ, FH_NOTIFY,
	};
	u32 eid[4], i, op, dw0 = fh_get32(w, 0);
	u64 v;

	if (!(keep & 2))
		w->b[5] = ops[w->b[5] % sizeof(ops)];
	op = w->b[5];
	if (!(keep & 4)) {
		dw0 |= FH_TOKEN;
		fh_token(w, fh_get32(w, 12) % 8 || op != FH_READ ? 0x5001 : 0x5002, FH_TOKEN_VALUE);
	}
	if (!(keep & 8)) {
		fh_eid(rig_host, eid);
		for (i = 0; i < 4; i++)
			fh_put32(w, 16 + 4 * i, eid[i]);
	}
	memcpy(&v, w->b + 40, 8);
	if (!(keep & 16))
		fh_put64(w, 40, near(FH_PEER_VA, RW_BYTES - 16000, v) &
			 (v >> 61 || op == FH_CAS || op == FH_FAA ? ~15ull : ~0ull));
	if (keep & 32)
		return;
	w->b[11] = w->b[11] % 4 && op != FH_SEND ? 1 : w->b[11] / 4 % 7;
	if (op == FH_CAS || op == FH_FAA)
		w->b[11] = 1;
	if (w->b[9] & 7 || (op != FH_WRITE && op != FH_NOTIFY && op != FH_SEND))
		dw0 &= ~FH_INLINE;
	else
		fh_put32(w, 4, (fh_get32(w, 4) & 0x3fffff) | fh_get32(w, 4) % 176 << 22);
	if (w->b[9] & 0x18 || (op != FH_WRITE && op != FH_NOTIFY && op != FH_READ))
		dw0 &= ~FH_UDF;
	else
		fh_put32(w, 36, (8 + w->b[36] % 3) << 12 | w->b[37] % 9 << 8);
	if (op == FH_SEND || op == FH_SEND_IMM)
		dw0 &= ~(1u << 30);	/* there are no groups */
	fh_put32(w, 0, dw0);
}

/*
 * Make the WQE at block @at plausible, except where it says itself not to: now and
 * then, by its bytes 8 and 9, which mean nothing else.
 */
static inline void rig_mend(u8 *ring, u32 at, u32 type, u32 lap_owner)
{
	u8 *b = ring + at * 64, keep = b[9] < 20 ? b[8] : 0;
	struct fh_wqe w;
	u32 i, n, control, len;
	u64 v;

	memset(&w, 0, sizeof(w));
	for (i = 0; i < 4; i++)
		memcpy(w.b + 64 * i, ring + (at + i) % DEPTH * 64, 64);
	if (!(keep & 1)) {
		fh_put32(&w, 0, (fh_get32(&w, 0) & ~(FH_OWNER | 7u << 24)) | lap_owner);
		if (w.b[2] % 4 == 3)
			w.b[2] ^= 2;
	}
	if (type) {
		mend_sdma(&w, keep);
		memcpy(b, w.b, 64);
		return;
	}
	mend_control(&w, keep);
	if (w.b[5] == FH_NOTIFY && !(keep & 64)) {
		fh_put32(&w, 48, 0x5001);
		fh_put32(&w, 52, FH_TOKEN_VALUE);
		fh_put64(&w, 56, FH_PEER_VA + (fh_get32(&w, 56) % RW_BYTES & ~7u));
	}
	if (w.b[5] == FH_WRITE_ADD && !(keep & 64)) {
		fh_write_add(&w, fh_get32(&w, 0) & ~(FH_INLINE | FH_UDF),
			     MINE_FROM + fh_get32(&w, 56) % 60000, fh_get32(&w, 24) % 60000,
			     fh_get32(&w, 32) % 70000, fh_get32(&w, 40) % 100000 & ~7u,
			     fh_get32(&w, 48));
	}
	control = w.b[5] == FH_NOTIFY ? 80 : 48;
	n = w.b[5] == FH_WRITE_ADD || fh_get32(&w, 0) & FH_INLINE ? 0 : w.b[11];
	for (i = 0; i < n && control + 16 * (i + 1) <= 256 && !(keep & 128); i++) {
		len = fh_get32(&w, control + 16 * i);
		if (w.b[5] == FH_CAS || w.b[5] == FH_FAA)
			len = w.b[5] == FH_CAS ? 4 << len % 3 : 4 << len % 2;
		else
			len = len % (len >> 29 ? 600 : 40000) & (len >> 27 & 1 ? ~3u : ~0u);
		memcpy(&v, w.b + control + 16 * i + 8, 8);
		v = near(FH_VA + MINE_FROM, ARENA - MINE_FROM - 30000, v);
		fh_sge(&w, control + 16 * i, len & 3 ? v : v & ~3ull, len);
	}
	n = rig_blocks(0, w.b);
	for (i = 0; i < n; i++)
		memcpy(ring + (at + i) % DEPTH * 64, w.b + 64 * i, 64);
}

/* Block @at like the one before it, elsewhere: what the fast path waits for. */
static inline void rig_repeat(u8 *ring, u32 at, u32 owner)
{
	u8 *b = ring + at % DEPTH * 64, *last = ring + (at - 1) % DEPTH * 64;
	u32 dw0;
	u64 v[2];

	memcpy(&v[0], b + 40, 8);
	memcpy(&v[1], b + 56, 8);
	memcpy(b, last, 64);
	memcpy(&dw0, b, 4);
	dw0 = (dw0 & ~FH_OWNER) | owner;
	memcpy(b, &dw0, 4);
	v[0] = near(FH_PEER_VA, RW_BYTES - 500, v[0]) & ~7ull;
	v[1] = near(FH_VA + MINE_FROM, ARENA - MINE_FROM - 500, v[1]) & ~7ull;
	memcpy(b + 40, &v[0], 8);
	memcpy(b + 56, &v[1], 8);
}

/* ---- Completions -------------------------------------------------------------- */

static inline bool rig_known_status(u32 code)
{
	switch (code) {
	case FH_OK:
	case FH_UNSUPPORTED:
	case FH_LOC_LEN:
	case FH_LOC_ACCESS:
	case FH_RESP_LEN:
	case FH_LOC_POISON:
	case FH_REM_REQ:
	case FH_REM_ACCESS:
	case FH_REM_POISON:
	case FH_RNR:
	case FH_TIMEOUT:
	case FH_FLUSH:
		return true;
	default:
		return false;
	}
}

/* A receive queue for SENDs, some buffers in it. */
struct rig_receiver {
	struct npuemu_jfr r;
	struct fh_cq cq;
	u32 pi;
};

static inline void rig_receiver_init(struct rig_receiver *v, u32 seed)
{
	u32 i, sges = 1 << (seed & 3);

	memset(v, 0, sizeof(*v));
	fh_cq_init(&v->cq, 64);
	v->cq.jfc.attached = 1;
	v->r.ring = rig_recv;
	v->r.pi_rec = &v->pi;
	v->r.jfc = &v->cq.jfc;
	v->r.mask = RQ_DEPTH - 1;
	v->r.max_sge = sges;
	for (i = 0; i < RQ_DEPTH * sges; i++) {
		rig_recv[i].len = (seed >> 2) * (i + 3) * 7 % 3000;
		rig_recv[i].va = near(FH_VA + MINE_FROM, ARENA - MINE_FROM, (u64)i * 4099 * seed);
	}
	v->pi = seed >> 4 & 63;
	rig_host->jfr = &v->r;
}

#endif
