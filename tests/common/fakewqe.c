// SPDX-License-Identifier: MIT
/*
 * WQEs for the fake host, put together by the byte offsets of the format table.
 * See fakehost.h.
 */
#include <stdlib.h>
#include <string.h>

#include "fakehost.h"

void fh_put32(struct fh_wqe *w, u32 off, u32 v)
{
	memcpy(w->b + off, &v, 4);
}

void fh_put64(struct fh_wqe *w, u32 off, u64 v)
{
	memcpy(w->b + off, &v, 8);
}

u32 fh_get32(const struct fh_wqe *w, u32 off)
{
	u32 v;

	memcpy(&v, w->b + off, 4);
	return v;
}

void fh_sqe(struct fh_wqe *w, u32 op, u32 flags, u32 nsge, u64 raddr)
{
	u32 eid[4], i;

	memset(w, 0, sizeof(*w));
	w->nbb = 1;
	fh_eid(NULL, eid);
	fh_put32(w, 0, flags | FH_TOKEN);
	fh_put32(w, 4, op << 8);
	fh_put32(w, 8, nsge << 24);
	for (i = 0; i < 4; i++)
		fh_put32(w, 16 + 4 * i, eid[i]);
	fh_token(w, FH_TOKEN_ID, FH_TOKEN_VALUE);
	fh_put64(w, 40, raddr);
}

void fh_token(struct fh_wqe *w, u32 id, u32 value)
{
	fh_put32(w, 12, id);
	fh_put32(w, 32, value);
}

void fh_sge(struct fh_wqe *w, u32 off, u64 va, u32 len)
{
	fh_put32(w, off, len);
	fh_put64(w, off + 8, va);
	if (w->nbb < (off + 16 + 63) / 64)
		w->nbb = (off + 16 + 63) / 64;
}

void fh_rma(struct fh_wqe *w, u32 op, u32 flags, u64 mine, u64 theirs, u32 len)
{
	fh_sqe(w, op, flags, 1, FH_PEER_VA + theirs);
	fh_sge(w, 48, FH_VA + mine, len);
}

void fh_reduce(struct fh_wqe *w, u32 op, u32 type)
{
	fh_put32(w, 0, fh_get32(w, 0) | FH_UDF);
	fh_put32(w, 36, op << 12 | type << 8);
}

void fh_inline(struct fh_wqe *w, u32 op, u32 flags, u64 theirs, const void *data, u32 len)
{
	u32 control = op == FH_NOTIFY ? 80 : 48;

	fh_sqe(w, op, flags | FH_INLINE, 0, FH_PEER_VA + theirs);
	fh_put32(w, 4, op << 8 | len << 22);
	memcpy(w->b + control, data, len);
	w->nbb = (control + len + 63) / 64;
}

void fh_notify(struct fh_wqe *w, u32 flags, u64 mine, u64 theirs, u32 len, u64 word, u64 value)
{
	fh_sqe(w, FH_NOTIFY, flags, 1, FH_PEER_VA + theirs);
	fh_put32(w, 48, FH_TOKEN_ID);
	fh_put32(w, 52, FH_TOKEN_VALUE);
	fh_put64(w, 56, FH_PEER_VA + word);
	fh_put64(w, 64, value);
	fh_sge(w, 80, FH_VA + mine, len);
}

void fh_write_add(struct fh_wqe *w, u32 flags, u64 mine, u64 theirs, u32 len, u64 word, u64 add)
{
	u32 eid[4];

	memset(w, 0, sizeof(*w));
	w->nbb = 1;
	fh_eid(NULL, eid);
	fh_put32(w, 0, flags | FH_TOKEN);
	fh_put32(w, 4, FH_WRITE_ADD << 8);
	fh_put32(w, 8, (len >> 10) << 24);
	fh_put32(w, 12, FH_TOKEN_ID | (len & 0x3ff) << 20);
	fh_put32(w, 16, eid[3]);
	fh_put32(w, 20, FH_TOKEN_VALUE);
	fh_put64(w, 24, FH_PEER_VA + theirs);
	fh_put32(w, 32, FH_TOKEN_VALUE);
	fh_put32(w, 36, FH_TOKEN_ID);
	fh_put64(w, 40, FH_PEER_VA + word);
	fh_put64(w, 48, add);
	fh_put64(w, 56, FH_VA + mine);
}

void fh_faa(struct fh_wqe *w, u32 flags, u64 mine, u64 theirs, u32 len, u64 add)
{
	fh_rma(w, FH_FAA, flags, mine, theirs, len);
	fh_put64(w, 64, add);
	w->nbb = 2;
}

void fh_cas(struct fh_wqe *w, u32 flags, u64 mine, u64 theirs, u32 len, const void *swap,
	    const void *compare)
{
	fh_rma(w, FH_CAS, flags, mine, theirs, len);
	memcpy(w->b + 64, swap, len);
	memcpy(w->b + 64 + len, compare, len);
	w->nbb = 2;
}

void fh_nop(struct fh_wqe *w, u32 flags)
{
	memset(w, 0, sizeof(*w));
	w->nbb = 1;
	fh_put32(w, 0, flags);
	fh_put32(w, 4, FH_NOP << 8);
}

void fh_sdma(struct fh_wqe *w, u32 op, u32 flags, u64 dst, u64 src, u64 len)
{
	memset(w, 0, sizeof(*w));
	w->nbb = 1;
	fh_put32(w, 0, flags);
	fh_put32(w, 4, op << 8);
	fh_put64(w, 16, dst);
	fh_put64(w, 24, src);
	fh_put64(w, 32, len);
}

void fh_pitch(struct fh_wqe *w, u32 height, u64 dst_pitch, u64 src_pitch)
{
	fh_put32(w, 12, height);
	fh_put64(w, 40, dst_pitch);
	fh_put64(w, 48, src_pitch);
}
