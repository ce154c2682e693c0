// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Moving bytes: copies and fills.
 *
 * The memory belongs to users, who may read and write it at the same time, so
 * nothing read here is ever used as an index or a length.  A word that fits one
 * store is stored once, and below NPUEMU_VECTOR_BYTES each byte is stored once:
 * a receiver that polls its payload and clears it again must not see it twice.
 *
 * In the kernel the bulk goes word by word or by memcpy(), which is rep movsb on
 * most machines, whichever is faster: neither needs the FPU.  In user space it
 * depends on the size:
 *
 *	up to 255 B	16-byte moves in registers every x86-64 has, no dispatch
 *	from 256 B	AVX2 loop: no start-up cost, which rep movsb has
 *	from 8 KiB	AVX2 loop or memcpy(), see npuemu_choose_bulk()
 *	stream		AVX2 loop with non-temporal stores
 */
#include "copy.h"

#if defined(__SANITIZE_THREAD__)
#define NPUEMU_TSAN	1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NPUEMU_TSAN	1
#endif
#endif

/*
 * These race with the users of the memory by design.  memcpy() and memset() are
 * watched by TSan whoever calls them, so a TSan build does without.
 */
#define NPUEMU_RACY	__attribute__((__no_sanitize__("thread")))

/* The same words, where the address may be odd and the type another's. */
typedef u16 npuemu_u16u __attribute__((__aligned__(1), __may_alias__));
typedef u32 npuemu_u32u __attribute__((__aligned__(1), __may_alias__));
typedef u64 npuemu_u64u __attribute__((__aligned__(1), __may_alias__));
typedef u16 npuemu_u16a __attribute__((__may_alias__));
typedef u32 npuemu_u32a __attribute__((__may_alias__));
typedef u64 npuemu_u64a __attribute__((__may_alias__));

#define NPUEMU_ALIGNED(p, n)	(((unsigned long)(p) & ((n) - 1)) == 0)

/* One store if @len bytes at @dst are one aligned word; else false. */
static __always_inline NPUEMU_RACY bool
npuemu_copy_word(void *dst, const void *src, size_t len)
{
	if (likely(len == 8 && NPUEMU_ALIGNED(dst, 8)))
		WRITE_ONCE(*(npuemu_u64a *)dst, *(const npuemu_u64u *)src);
	else if (len > 4)
		return false;
	else if (len == 4 && NPUEMU_ALIGNED(dst, 4))
		WRITE_ONCE(*(npuemu_u32a *)dst, *(const npuemu_u32u *)src);
	else if (len == 2 && NPUEMU_ALIGNED(dst, 2))
		WRITE_ONCE(*(npuemu_u16a *)dst, *(const npuemu_u16u *)src);
	else if (len == 1)
		WRITE_ONCE(*(u8 *)dst, *(const u8 *)src);
	else
		return false;
	return true;
}

/* The last @len < 8 bytes of a fill: the start of the pattern once more. */
static __always_inline NPUEMU_RACY void
npuemu_fill_tail(u8 *dst, u64 word, size_t len)
{
	if (len & 4) {
		*(npuemu_u32u *)dst = (u32)word;
		dst += 4;
		word >>= 32;
	}
	if (len & 2) {
		*(npuemu_u16u *)dst = (u16)word;
		dst += 2;
		word >>= 16;
	}
	if (len & 1)
		*dst = (u8)word;
}

#ifdef __x86_64__

#ifdef __KERNEL__
#define NPUEMU_ROOM	16384u
#else
#define NPUEMU_ROOM	65536u
#endif

typedef void npuemu_copier(u8 *dst, const u8 *src, size_t len);

enum npuemu_bulk {
	NPUEMU_BULK_UNKNOWN,
	NPUEMU_BULK_OWN,	/* a loop of ours */
	NPUEMU_BULK_MEMCPY,
};

#ifdef NPUEMU_TSAN
static int npuemu_bulk = NPUEMU_BULK_OWN;
#else
static int npuemu_bulk;		/* enum npuemu_bulk */
#endif

/* Ticks of one copy, if that is fewer than @best. */
static void npuemu_time_copy(npuemu_copier *copy, u8 *dst, const u8 *src, size_t len, u64 *best)
{
	u64 start = __builtin_ia32_rdtsc();
	u64 took;

	copy(dst, src, len);
	took = __builtin_ia32_rdtsc() - start;
	if (took < *best)
		*best = took;
}

/*
 * The first caller tries both on memory of our own (some 50 us, once); whoever
 * comes in meanwhile takes ours.
 */
static void npuemu_choose(npuemu_copier *ours, npuemu_copier *theirs)
{
	static u64 from_room[NPUEMU_ROOM / 8] __aligned(64), to_room[NPUEMU_ROOM / 8] __aligned(64);
	u8 *from = (u8 *)from_room, *to = (u8 *)to_room;
	u64 own = ~0ull, other = ~0ull;
	size_t len = sizeof(from_room);
	unsigned int i;

	if (!npuemu_cas(&npuemu_bulk, NPUEMU_BULK_UNKNOWN, NPUEMU_BULK_OWN))
		return;
	for (i = 0; i < len; i += 4096)
		WRITE_ONCE(from[i], 1);		/* off the shared zero page */
	for (i = 0; i < 6; i++) {
		npuemu_time_copy(ours, to, from, len, &own);
		npuemu_time_copy(theirs, to, from, len, &other);
	}
	if (other < own)
		WRITE_ONCE(npuemu_bulk, NPUEMU_BULK_MEMCPY);
}

#endif /* __x86_64__ */

#ifdef __KERNEL__

#define NPUEMU_BULK_BYTES	512u	/* from here on what rep movsb takes to start is little */

#define NPUEMU_MOVE(d, s, type)						\
	do {								\
		WRITE_ONCE(*(type *)(d), READ_ONCE(*(const type *)(s)));	\
		(d) += sizeof(type);					\
		(s) += sizeof(type);					\
	} while (0)

static void npuemu_copy_words(u8 *dst, const u8 *src, size_t len)
{
	for (; len >= 32; len -= 32) {
		NPUEMU_MOVE(dst, src, npuemu_u64u);
		NPUEMU_MOVE(dst, src, npuemu_u64u);
		NPUEMU_MOVE(dst, src, npuemu_u64u);
		NPUEMU_MOVE(dst, src, npuemu_u64u);
	}
	for (; len >= 8; len -= 8)
		NPUEMU_MOVE(dst, src, npuemu_u64u);
	if (len & 4)
		NPUEMU_MOVE(dst, src, npuemu_u32u);
	if (len & 2)
		NPUEMU_MOVE(dst, src, npuemu_u16u);
	if (len & 1)
		NPUEMU_MOVE(dst, src, u8);
}

static void npuemu_copy_memcpy(u8 *dst, const u8 *src, size_t len)
{
	memcpy(dst, src, len);
}

/* An emulator takes rep movsb byte by byte, hardware a line at a time. */
static noinline __cold void npuemu_choose_bulk(void)
{
	npuemu_choose(npuemu_copy_words, npuemu_copy_memcpy);
}

static void npuemu_copy_bulk(u8 *dst, const u8 *src, size_t len, bool stream)
{
	if (len >= NPUEMU_BULK_BYTES) {
		if (unlikely(READ_ONCE(npuemu_bulk) == NPUEMU_BULK_UNKNOWN))
			npuemu_choose_bulk();
		if (READ_ONCE(npuemu_bulk) == NPUEMU_BULK_MEMCPY) {
			memcpy(dst, src, len);
			return;
		}
	}
	npuemu_copy_words(dst, src, len);
}

static void npuemu_fill_bulk(u8 *dst, u64 word, size_t len)
{
	for (; len >= 8; dst += 8, len -= 8)
		*(npuemu_u64u *)dst = word;
	npuemu_fill_tail(dst, word, len);
}

#else /* the user-space host */

#define NPUEMU_VECTOR_BYTES	256u	/* AVX2 from here on */
#define NPUEMU_STREAM_MIN	1024u	/* a shorter piece is not worth a fence */
#define NPUEMU_BULK_BYTES	8192u	/* the choice of npuemu_choose_bulk() */
#define NPUEMU_MEMSET_BYTES	4096u

typedef u64 npuemu_v16 __attribute__((__vector_size__(16), __aligned__(1),
				      __may_alias__));

/* Move one @type from @s to @d, and step over it. */
#define NPUEMU_MOVE(d, s, type)						\
	do {								\
		*(type *)(d) = *(const type *)(s);			\
		(d) += sizeof(type);					\
		(s) += sizeof(type);					\
	} while (0)

static __always_inline NPUEMU_RACY void
npuemu_copy_64(u8 *dst, const u8 *src)
{
	NPUEMU_MOVE(dst, src, npuemu_v16);
	NPUEMU_MOVE(dst, src, npuemu_v16);
	NPUEMU_MOVE(dst, src, npuemu_v16);
	NPUEMU_MOVE(dst, src, npuemu_v16);
}

/* Copy @len % 256 bytes: one move for each bit of the length, rising. */
static __always_inline NPUEMU_RACY void
npuemu_copy_short(u8 *dst, const u8 *src, size_t len)
{
	if (len & 128) {
		npuemu_copy_64(dst, src);
		npuemu_copy_64(dst + 64, src + 64);
		dst += 128;
		src += 128;
	}
	if (len & 64) {
		npuemu_copy_64(dst, src);
		dst += 64;
		src += 64;
	}
	if (len & 32) {
		NPUEMU_MOVE(dst, src, npuemu_v16);
		NPUEMU_MOVE(dst, src, npuemu_v16);
	}
	if (len & 16)
		NPUEMU_MOVE(dst, src, npuemu_v16);
	if (len & 8)
		NPUEMU_MOVE(dst, src, npuemu_u64u);
	if (len & 4)
		NPUEMU_MOVE(dst, src, npuemu_u32u);
	if (len & 2)
		NPUEMU_MOVE(dst, src, npuemu_u16u);
	if (len & 1)
		*dst = *src;
}

/* What any machine can do. */
static NPUEMU_RACY void
npuemu_copy_plain(u8 *dst, const u8 *src, size_t len)
{
#ifdef NPUEMU_TSAN
	for (; len >= 64; dst += 64, src += 64, len -= 64)
		npuemu_copy_64(dst, src);
	npuemu_copy_short(dst, src, len);
#else
	/* A user may name ranges that overlap.  What comes out is open, but it must
	 * be defined C; where it counts memmove() is the same code as memcpy().
	 */
	memmove(dst, src, len);
#endif
}

static NPUEMU_RACY void
npuemu_fill_plain(u8 *dst, u64 word, size_t len)
{
	npuemu_v16 v = { word, word };

	for (; len >= 16; dst += 16, len -= 16)
		*(npuemu_v16 *)dst = v;
	if (len & 8) {
		*(npuemu_u64u *)dst = word;
		dst += 8;
	}
	npuemu_fill_tail(dst, word, len & 7);
}

#ifdef __x86_64__

#define NPUEMU_AVX2	__attribute__((__target__("avx2")))

typedef long long npuemu_v32 __attribute__((__vector_size__(32), __aligned__(1),
					    __may_alias__));
typedef long long npuemu_v32a __attribute__((__vector_size__(32),
					     __may_alias__));

#ifdef __clang__
#define npuemu_store_nt(p, v)	__builtin_nontemporal_store((v), (p))
#else
#define npuemu_store_nt(p, v)	__builtin_ia32_movntdq256((p), (v))
#endif

/* How far ahead of a streaming copy the source is fetched: one page, so that
 * the next page's translation is under way too.
 */
#define NPUEMU_AHEAD		4096ul

static NPUEMU_AVX2 NPUEMU_RACY void
npuemu_copy_avx2(u8 *dst, const u8 *src, size_t len)
{
	size_t head = -(unsigned long)dst & 31;

	if (head && head < len) {
		npuemu_copy_short(dst, src, head);
		dst += head;
		src += head;
		len -= head;
	}
	for (; len >= 128; dst += 128, src += 128, len -= 128) {
		const npuemu_v32 *s = (const npuemu_v32 *)src;
		npuemu_v32 a = s[0], b = s[1], c = s[2], d = s[3];

		((npuemu_v32 *)dst)[0] = a;
		((npuemu_v32 *)dst)[1] = b;
		((npuemu_v32 *)dst)[2] = c;
		((npuemu_v32 *)dst)[3] = d;
	}
	npuemu_copy_short(dst, src, len);
}

/* Around the caches, whole lines at a time.  The fence puts the stores before
 * the completion that the caller will write.
 */
static NPUEMU_AVX2 NPUEMU_RACY void
npuemu_copy_nt(u8 *dst, const u8 *src, size_t len)
{
	size_t head = -(unsigned long)dst & 63;

	if (head > len)
		head = len;
	npuemu_copy_short(dst, src, head);
	dst += head;
	src += head;
	len -= head;
	for (; len >= 128; dst += 128, src += 128, len -= 128) {
		const npuemu_v32 *s = (const npuemu_v32 *)src;
		unsigned long ahead = (unsigned long)src + NPUEMU_AHEAD;
		npuemu_v32a *to = (npuemu_v32a *)dst;
		npuemu_v32 a, b, c, d;

		/* A prefetch of what is not there does nothing. */
		__builtin_prefetch((const void *)ahead, 0, 0);
		__builtin_prefetch((const void *)(ahead + 64), 0, 0);
		a = s[0];
		b = s[1];
		c = s[2];
		d = s[3];
		npuemu_store_nt(to, a);
		npuemu_store_nt(to + 1, b);
		npuemu_store_nt(to + 2, c);
		npuemu_store_nt(to + 3, d);
	}
	npuemu_copy_short(dst, src, len);
	__builtin_ia32_sfence();
}

static NPUEMU_AVX2 NPUEMU_RACY void
npuemu_fill_avx2(u8 *dst, u64 word, size_t len)
{
	long long w = (long long)word;
	npuemu_v32 v = { w, w, w, w };

	for (; len >= 128; dst += 128, len -= 128) {
		((npuemu_v32 *)dst)[0] = v;
		((npuemu_v32 *)dst)[1] = v;
		((npuemu_v32 *)dst)[2] = v;
		((npuemu_v32 *)dst)[3] = v;
	}
	npuemu_fill_plain(dst, word, len);
}

/*
 * On one machine memcpy() is a third faster than AVX2 at 64 KiB, on another a third
 * slower, and no CPU flag tells them apart.
 */
static noinline __cold void npuemu_choose_bulk(void)
{
	npuemu_choose(npuemu_copy_avx2, npuemu_copy_plain);
}

static bool npuemu_copy_x86(u8 *dst, const u8 *src, size_t len, bool stream)
{
	if (!__builtin_cpu_supports("avx2"))
		return false;
	if (stream && len >= NPUEMU_STREAM_MIN) {
		npuemu_copy_nt(dst, src, len);
		return true;
	}
	if (len >= NPUEMU_BULK_BYTES) {
		if (unlikely(READ_ONCE(npuemu_bulk) == NPUEMU_BULK_UNKNOWN))
			npuemu_choose_bulk();
		if (READ_ONCE(npuemu_bulk) == NPUEMU_BULK_MEMCPY)
			return false;
	}
	npuemu_copy_avx2(dst, src, len);
	return true;
}

static bool npuemu_fill_x86(u8 *dst, u64 word, size_t len)
{
	if (!__builtin_cpu_supports("avx2"))
		return false;
	npuemu_fill_avx2(dst, word, len);
	return true;
}

#else /* other machines have nothing better than plain */

#define npuemu_copy_x86(dst, src, len, stream)	((void)(stream), false)
#define npuemu_fill_x86(dst, word, len)		false

#endif /* __x86_64__ */

static noinline void npuemu_copy_long(u8 *dst, const u8 *src, size_t len,
				      bool stream)
{
	if (!npuemu_copy_x86(dst, src, len, stream))
		npuemu_copy_plain(dst, src, len);
}

static __always_inline NPUEMU_RACY void
npuemu_copy_bulk(u8 *dst, const u8 *src, size_t len, bool stream)
{
	if (len < NPUEMU_VECTOR_BYTES)
		npuemu_copy_short(dst, src, len);
	else
		npuemu_copy_long(dst, src, len, stream);
}

static void npuemu_fill_bulk(u8 *dst, u64 word, size_t len)
{
#ifndef NPUEMU_TSAN
	if (len >= NPUEMU_MEMSET_BYTES && word == (u8)word * 0x0101010101010101ull) {
		memset(dst, (u8)word, len);
		return;
	}
#endif
	if (len < NPUEMU_VECTOR_BYTES || !npuemu_fill_x86(dst, word, len))
		npuemu_fill_plain(dst, word, len);
}

#endif /* __KERNEL__ */

NPUEMU_RACY void
npuemu_copy(void *dst, const void *src, size_t len, bool stream)
{
	if (!npuemu_copy_word(dst, src, len))
		npuemu_copy_bulk(dst, src, len, stream);
}

NPUEMU_RACY void
npuemu_fill(void *dst, u64 pattern, unsigned int width, size_t len)
{
	u64 word = pattern;

	if (width == 1)
		word = (u8)pattern * 0x0101010101010101ull;
	else if (width == 2)
		word = (u16)pattern * 0x0001000100010001ull;
	else if (width == 4)
		word = (u32)pattern * 0x0000000100000001ull;
	if (!npuemu_copy_word(dst, &word, len))
		npuemu_fill_bulk(dst, word, len);
}
