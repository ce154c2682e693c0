/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Moving and combining bytes: copies, fills and reductions. */
#ifndef NPUEMU_ENGINE_COPY_H
#define NPUEMU_ENGINE_COPY_H

#include "engine_port.h"

/* From this many bytes in one transfer on, stores go around the caches. */
#define NPUEMU_STREAM_BYTES	(6u << 20)

/*
 * Copy @len bytes.  Ranges may overlap only when equal.  An aligned 1, 2, 4 or
 * 8 byte copy is one store, so that a peer who polls the word sees it whole.
 * @stream: the transfer this piece belongs to is too large for the caches.  The
 * stores are in order before whatever the caller stores next all the same.
 */
void npuemu_copy(void *dst, const void *src, size_t len, bool stream);

/* Fill @len bytes with a pattern of @width (1, 2, 4, 8) bytes; the last repeat
 * may be cut short.  The pattern is in the low bytes of @pattern.  One aligned
 * word is one store here too.
 */
void npuemu_fill(void *dst, u64 pattern, unsigned int width, size_t len);

/* Bytes of an element of enum npuemu_dtype, or 0 if there is no such type. */
unsigned int npuemu_dtype_size(unsigned int dtype);

/*
 * dst[i] = dst[i] op src[i] for @n elements; pointers aligned to the element.
 * @op: enum npuemu_reduce_op, @dtype: enum npuemu_dtype.  Integers wrap on SUM.
 * Floats: round to nearest even; fp16 and bf16 are widened to fp32, combined
 * and rounded once; subnormals are kept.  MAX and MIN order -0 below +0.  If
 * either side is NaN so is the result, and every NaN that comes out is the same
 * one: 0x7e00, 0x7fc00000, 0x7fc0.  Results are bitwise equal on every host.
 * False when there is no such operation or type; nothing is written then.
 */
bool npuemu_reduce(void *dst, const void *src, size_t n, unsigned int op,
		   unsigned int dtype);

#endif
