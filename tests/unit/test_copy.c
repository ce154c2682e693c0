// SPDX-License-Identifier: MIT
/*
 * Unit tests of driver/engine/copy.c: every alignment and length of every way to
 * copy or fill, the bytes around, whole words, and the end of mapped memory.
 * The file is included, not linked, to reach the ways this machine would not
 * choose by itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/mman.h>

#include "copy.c"

#define GUARD	0xee
#define EDGE	64u		/* guard bytes on each side */

typedef void (*copy_fn)(u8 *dst, const u8 *src, size_t len);

static void copy_public(u8 *dst, const u8 *src, size_t len)
{
	npuemu_copy(dst, src, len, false);
}

static void copy_stream(u8 *dst, const u8 *src, size_t len)
{
	npuemu_copy(dst, src, len, true);
}

#ifdef __x86_64__
static void copy_as(enum npuemu_bulk bulk, u8 *dst, const u8 *src, size_t len)
{
	int before = npuemu_bulk;

	npuemu_bulk = bulk;
	npuemu_copy(dst, src, len, false);
	npuemu_bulk = before;
}

static void copy_bulk_avx2(u8 *dst, const u8 *src, size_t len)
{
	copy_as(NPUEMU_BULK_OWN, dst, src, len);
}

static void copy_bulk_memcpy(u8 *dst, const u8 *src, size_t len)
{
	copy_as(NPUEMU_BULK_MEMCPY, dst, src, len);
}
#endif

static const struct way {
	const char *name;
	copy_fn copy;
	bool needs_avx2;
} ways[] = {
	{ "npuemu_copy", copy_public, false },
	{ "npuemu_copy, stream", copy_stream, false },
	{ "plain", npuemu_copy_plain, false },
#ifdef __x86_64__
	{ "npuemu_copy, bulk by AVX2", copy_bulk_avx2, false },
	{ "npuemu_copy, bulk by memcpy", copy_bulk_memcpy, false },
	{ "AVX2", npuemu_copy_avx2, true },
	{ "non-temporal", npuemu_copy_nt, true },
#endif
};

static bool can_run(const struct way *way)
{
#ifdef __x86_64__
	return !way->needs_avx2 || __builtin_cpu_supports("avx2");
#else
	return !way->needs_avx2;
#endif
}

static u64 random_state = 0x9e3779b97f4a7c15ull;

static u64 random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void fill_random(u8 *p, size_t len)
{
	while (len--)
		*p++ = (u8)(random64() >> 32);
}

static u8 *buffer(size_t len)
{
	void *p = NULL;

	assert_int_equal(posix_memalign(&p, 4096, len), 0);
	return p;
}

static void check_filled(const char *what, const u8 *p, u8 value, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != value)
			fail_msg("%s: guard byte %zu of %zu is %#x, not %#x", what,
				 i, len, p[i], value);
}

/* Copy @len bytes from offset @from to offset @to, and look at all of dst. */
static void check_copy(const struct way *way, u8 *dst, size_t to, const u8 *src,
		       size_t from, size_t len)
{
	u8 *start = dst + EDGE + to;

	memset(dst, GUARD, EDGE + to + len + EDGE);
	way->copy(start, src + from, len);
	if (memcmp(start, src + from, len))
		fail_msg("%s: %zu bytes from offset %zu to %zu are wrong",
			 way->name, len, from, to);
	check_filled(way->name, dst, GUARD, EDGE + to);
	check_filled(way->name, start + len, GUARD, EDGE);
}

static void test_every_alignment(void **state)
{
	static const size_t src_offset[] = { 0, 1, 8, 31, 64 };
	u8 *dst = buffer(1024), *src = buffer(1024), *keep = buffer(1024);
	size_t w, to, len, k;

	(void)state;
	fill_random(src, 1024);
	memcpy(keep, src, 1024);
	for (w = 0; w < ARRAY_SIZE(ways); w++) {
		if (!can_run(&ways[w]))
			continue;
		for (to = 0; to < 64; to++) {
			for (len = 0; len <= 300; len++) {
				for (k = 0; k < ARRAY_SIZE(src_offset); k++)
					check_copy(&ways[w], dst, to, src,
						   src_offset[k], len);
				check_copy(&ways[w], dst, to, src, to, len);
			}
		}
		assert_memory_equal(src, keep, 1024);
	}
	free(dst);
	free(src);
	free(keep);
}

/* Both sides of each length where another way takes over, and some pages. */
static void test_around_thresholds(void **state)
{
	static const size_t centre[] = {
		NPUEMU_VECTOR_BYTES, 512, NPUEMU_STREAM_MIN, NPUEMU_MEMSET_BYTES,
		NPUEMU_BULK_BYTES, 65536, 1 << 20, (3 << 20) + 4711,
	};
	static const size_t offset[] = { 0, 1, 8, 33, 63 };
	size_t most = (4 << 20) + 4096;
	u8 *dst = buffer(most), *src = buffer(most), *keep = buffer(most);
	size_t w, c, d, a;

	(void)state;
	fill_random(src, most);
	memcpy(keep, src, most);
	for (w = 0; w < ARRAY_SIZE(ways); w++) {
		if (!can_run(&ways[w]))
			continue;
		for (c = 0; c < ARRAY_SIZE(centre); c++) {
			for (d = 0; d < 3; d++) {
				for (a = 0; a < ARRAY_SIZE(offset); a++)
					check_copy(&ways[w], dst, offset[a], src,
						   offset[(a + d) % 5],
						   centre[c] + d - 1);
			}
		}
		assert_memory_equal(src, keep, most);
	}
	free(dst);
	free(src);
	free(keep);
}

static void test_equal_ranges(void **state)
{
	u8 *p = buffer(65536), *keep = buffer(65536);
	size_t w, len;

	(void)state;
	fill_random(p, 65536);
	memcpy(keep, p, 65536);
	for (w = 0; w < ARRAY_SIZE(ways); w++) {
		if (!can_run(&ways[w]))
			continue;
		for (len = 1; len <= 65536; len *= 2)
			ways[w].copy(p, p, len);
		assert_memory_equal(p, keep, 65536);
	}
	free(p);
	free(keep);
}

/* @len bytes that end where a page without any rights begins. */
static u8 *before_the_end(size_t room)
{
	u8 *p = mmap(NULL, room + 8192, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p, 4096, PROT_NONE), 0);
	assert_int_equal(mprotect(p + 4096 + room, 4096, PROT_NONE), 0);
	return p + 4096;
}

/* Nothing outside is touched, not even read: it would be a fault. */
static void test_end_of_memory(void **state)
{
	size_t room = 16384, w, len;
	u8 *dst = before_the_end(room), *src = before_the_end(room);

	(void)state;
	fill_random(src, room);
	for (w = 0; w < ARRAY_SIZE(ways); w++) {
		if (!can_run(&ways[w]))
			continue;
		for (len = 0; len <= room; len += len < 400 ? 1 : 997) {
			ways[w].copy(dst + room - len, src + room - len, len);
			assert_memory_equal(dst + room - len, src + room - len, len);
			ways[w].copy(dst, src, len);
			assert_memory_equal(dst, src, len);
			memset(dst, 0, room);
		}
	}
	for (len = 0; len <= 400; len++) {
		npuemu_fill(dst + room - len, 0x1122334455667788ull, 8, len);
		npuemu_fill(dst, 0x1122334455667788ull, 8, len);
	}
	munmap(dst - 4096, room + 8192);
	munmap(src - 4096, room + 8192);
}

static u8 pattern_byte(u64 pattern, unsigned int width, size_t i)
{
	return (u8)(pattern >> (8 * (i % width)));
}

static void check_fill(u8 *dst, size_t to, u64 pattern, unsigned int width,
		       size_t len)
{
	u8 *start = dst + EDGE + to;
	size_t i;

	memset(dst, GUARD, EDGE + to + len + EDGE);
	npuemu_fill(start, pattern, width, len);
	for (i = 0; i < len; i++)
		if (start[i] != pattern_byte(pattern, width, i))
			fail_msg("fill: width %u, %zu bytes at offset %zu: byte %zu is %#x",
				 width, len, to, i, start[i]);
	check_filled("fill", dst, GUARD, EDGE + to);
	check_filled("fill", start + len, GUARD, EDGE);
}

static void test_fill(void **state)
{
	static const u64 pattern[] = {
		0x8877665544332211ull, 0, ~0ull, 0x4242424242424242ull,
	};
	static const size_t large[] = {
		511, 4095, 4096, 4097, 8191, 65535, 65536, 65537, 1000003,
	};
	u8 *dst = buffer(1 << 20);
	unsigned int width;
	size_t p, to, len;

	(void)state;
	for (p = 0; p < ARRAY_SIZE(pattern); p++) {
		for (width = 1; width <= 8; width *= 2) {
			for (to = 0; to < 64; to++)
				for (len = 0; len <= 300; len++)
					check_fill(dst, to, pattern[p], width, len);
			for (len = 0; len < ARRAY_SIZE(large); len++)
				check_fill(dst, len * 7 % 64, pattern[p], width,
					   large[len]);
		}
	}
	free(dst);
}

#if defined(__x86_64__) && !defined(NPUEMU_TSAN)

/*
 * Single steps: with the trap flag set the handler runs after every instruction,
 * and sees all that a peer could see.
 */
static struct {
	u64 dst[32];
	size_t len;
	unsigned int steps, halves;
	unsigned int seen[256];
	bool take;		/* clear what has come, as a receiver would */
} step;

static void look(void)
{
	volatile u8 *p = (volatile u8 *)step.dst;
	size_t i, here = 0;

	for (i = 0; i < step.len; i++) {
		if (!p[i])
			continue;
		here++;
		step.seen[i]++;
		if (step.take)
			p[i] = 0;
	}
	step.steps++;
	step.halves += here && here < step.len;
}

static void on_trap(int sig)
{
	(void)sig;
	look();
}

/* Past the red zone, where the compiler may keep something. */
static __always_inline void trap_flag_on(void)
{
	__asm__ __volatile__("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp);"
			     "popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc");
}

static __always_inline void trap_flag_off(void)
{
	__asm__ __volatile__("lea -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp);"
			     "popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc");
}

/* Copy or fill @len bytes of ones over zeros, step by step. */
static void run_steps(size_t len, bool fill, bool take)
{
	static u8 ones[257];
	u8 *volatile dst = (u8 *)step.dst;

	memset(ones, 0xff, sizeof(ones));
	memset(&step, 0, sizeof(step));
	step.len = len;
	step.take = take;
	trap_flag_on();
	if (fill)
		npuemu_fill(dst, 0xff, 1, len);
	else
		npuemu_copy(dst, ones + 1, len, false);
	trap_flag_off();
	look();
	assert_true(step.steps > 5);
}

static void catch_traps(void (*handler)(int))
{
	struct sigaction act = { .sa_handler = handler };

	assert_int_equal(sigaction(SIGTRAP, &act, NULL), 0);
}

/* A peer who polls a word must never see half of it. */
static void test_word_is_whole(void **state)
{
	size_t len;

	(void)state;
	catch_traps(on_trap);
	for (len = 1; len <= 8; len *= 2) {
		run_steps(len, false, false);
		assert_int_equal(step.halves, 0);
		run_steps(len, true, false);
		assert_int_equal(step.halves, 0);
	}
	run_steps(7, false, false);	/* the test sees what there is to see */
	assert_int_not_equal(step.halves, 0);
	catch_traps(SIG_DFL);
}

/* A byte that a peer took from a short copy must not come again. */
static void test_bytes_come_once(void **state)
{
	size_t len, i;

	(void)state;
	catch_traps(on_trap);
	for (len = 1; len < NPUEMU_VECTOR_BYTES; len++) {
		run_steps(len, false, true);
		for (i = 0; i < len; i++)
			if (step.seen[i] != 1)
				fail_msg("byte %zu of %zu came %u times", i, len,
					 step.seen[i]);
	}
	catch_traps(SIG_DFL);
}

/* The first large copy settles on a way, and copies what it was asked to. */
static void test_choice(void **state)
{
	u8 *dst = buffer(65536), *src = buffer(65536);

	(void)state;
	if (!__builtin_cpu_supports("avx2"))
		skip();
	npuemu_bulk = NPUEMU_BULK_UNKNOWN;
	fill_random(src, 65536);
	npuemu_copy(dst, src, NPUEMU_BULK_BYTES - 1, false);
	assert_int_equal(npuemu_bulk, NPUEMU_BULK_UNKNOWN);
	npuemu_copy(dst, src, 65536, false);
	assert_int_not_equal(npuemu_bulk, NPUEMU_BULK_UNKNOWN);
	assert_memory_equal(dst, src, 65536);
	free(dst);
	free(src);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_alignment),
		cmocka_unit_test(test_around_thresholds),
		cmocka_unit_test(test_equal_ranges),
		cmocka_unit_test(test_end_of_memory),
		cmocka_unit_test(test_fill),
#if defined(__x86_64__) && !defined(NPUEMU_TSAN)
		cmocka_unit_test(test_word_is_whole),
		cmocka_unit_test(test_bytes_come_once),
		cmocka_unit_test(test_choice),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
