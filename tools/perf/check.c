// SPDX-License-Identifier: MIT
/*
 * The data check.  Every byte of a lane's memory has a value that follows from a
 * seed and its place: slots hold the pattern of a message, everything else the
 * guard pattern.  So a byte that is lost, stale, shifted or written beside its
 * place shows, with its address.
 */
#include <string.h>

#include "../common/cli.h"
#include "loops.h"

#define GUARD_SEED	0x67756172642e2e2eull
#define CHUNK		256u	/* words compared at a time */

static inline uint64_t mix(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15ull;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

/* Words @first.. of the pattern. */
static void words(uint64_t *w, uint64_t first, uint32_t n, uint64_t seed)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		w[i] = mix(seed + first + i);
}

static void fill_from(char *p, uint64_t bytes, uint64_t seed, uint64_t flip)
{
	uint64_t w[CHUNK], at, n;
	uint32_t i;

	for (at = 0; at < bytes; at += n) {
		words(w, at / 8, CHUNK, seed);
		for (i = 0; i < CHUNK; i++)
			w[i] ^= flip;
		n = bytes - at < sizeof(w) ? bytes - at : sizeof(w);
		memcpy(p + at, w, n);
	}
}

void npuemu_perf_fill(void *p, uint64_t bytes, uint64_t seed)
{
	fill_from(p, bytes, seed, 0);
}

void npuemu_perf_fill_other(void *p, uint64_t bytes, uint64_t seed)
{
	fill_from(p, bytes, seed, ~0ull);
}

int npuemu_perf_check_bytes(struct npuemu_perf_lane *l, const void *p, const void *want,
			    uint64_t bytes, uint64_t offset, const char *where)
{
	const unsigned char *have = p, *exp = want;
	uint64_t i;

	if (!memcmp(p, want, bytes))
		return 0;
	for (i = 0; i + 1 < bytes && have[i] == exp[i]; i++)
		;
	return npuemu_perf_fail(l, NPUEMU_EXIT_DATA,
				"wrong data in %s: address %p, offset %llu: expected 0x%02x, found 0x%02x",
				where, (const void *)(have + i),
				(unsigned long long)offset + i, exp[i], have[i]);
}

int npuemu_perf_check(struct npuemu_perf_lane *l, const void *p, uint64_t bytes,
		      uint64_t seed, const char *where)
{
	uint64_t w[CHUNK], at, n;
	int rc = 0;

	for (at = 0; at < bytes && !rc; at += n) {
		words(w, at / 8, CHUNK, seed);
		n = bytes - at < sizeof(w) ? bytes - at : sizeof(w);
		rc = npuemu_perf_check_bytes(l, (const char *)p + at, w, n, at, where);
	}
	return rc;
}

int npuemu_perf_check_word(struct npuemu_perf_lane *l, const void *p, uint64_t want,
			   uint32_t bytes, const char *where)
{
	uint64_t have = 0;

	if (bytes == 4)
		want = (uint32_t)want;
	memcpy(&have, p, bytes);
	if (have == want)
		return 0;
	return npuemu_perf_fail(l, NPUEMU_EXIT_DATA,
				"wrong data in %s: address %p, offset 0: expected %#llx, found %#llx",
				where, p, (unsigned long long)want,
				(unsigned long long)have);
}

typedef int (*each_guard)(struct npuemu_perf_lane *l, char *p, uint64_t bytes,
			  uint64_t seed, const char *where);

static int fill_guard(struct npuemu_perf_lane *l, char *p, uint64_t bytes, uint64_t seed,
		      const char *where)
{
	(void)l;
	(void)where;
	npuemu_perf_fill(p, bytes, seed);
	return 0;
}

static int check_guard(struct npuemu_perf_lane *l, char *p, uint64_t bytes, uint64_t seed,
		       const char *where)
{
	return npuemu_perf_check(l, p, bytes, seed, where);
}

/* All guards of a region, in order of address. */
static int walk_guards(struct npuemu_perf_lane *l, const struct npuemu_perf_region *r,
		       const struct npuemu_perf_layout *lay, each_guard each,
		       const char *where)
{
	uint64_t gap = lay->stride - lay->size, at;
	uint32_t i;
	int rc;

	/* the first eight bytes are the notify word */
	rc = each(l, r->map + 8, NPUEMU_PERF_GUARD - 8, GUARD_SEED, where);
	for (i = 0; i < 2 * lay->slots && !rc; i++) {
		at = NPUEMU_PERF_GUARD + i * lay->stride + lay->size;
		rc = each(l, r->map + at, gap, GUARD_SEED + at, where);
	}
	if (!rc) {
		at = NPUEMU_PERF_GUARD + 2 * lay->area;
		rc = each(l, r->map + at, NPUEMU_PERF_GUARD, GUARD_SEED + at, where);
	}
	return rc;
}

void npuemu_perf_guards(const struct npuemu_perf_region *r,
			const struct npuemu_perf_layout *lay)
{
	walk_guards(NULL, r, lay, fill_guard, "");
}

int npuemu_perf_check_guards(struct npuemu_perf_lane *l,
			     const struct npuemu_perf_region *r, const char *where)
{
	return walk_guards(l, r, &l->lay, check_guard, where);
}

void npuemu_perf_arm_push(struct npuemu_perf_lane *l, uint64_t seed, uint32_t timed)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);
	uint64_t i;

	(void)timed;
	for (i = 0; i <= h.mask; i++) {
		npuemu_perf_fill(h.near_tx + i * h.stride, h.size, seed + (i << 32));
		if (h.far_rx)
			npuemu_perf_fill_other(h.far_rx + i * h.stride, h.size,
					       seed + (i << 32));
	}
}

int npuemu_perf_verify_push(struct npuemu_perf_lane *l, uint64_t seed, uint64_t n,
			    uint32_t timed)
{
	const struct npuemu_perf_hot h = npuemu_perf_hot(l);
	uint64_t i;
	int rc = 0;

	(void)timed;
	for (i = 0; i <= h.mask && i < n && !rc; i++) {
		rc = npuemu_perf_check(l, h.near_tx + i * h.stride, h.size,
				       seed + (i << 32), "the source");
		if (!rc && h.far_rx)
			rc = npuemu_perf_check(l, h.far_rx + i * h.stride, h.size,
					       seed + (i << 32), "the destination");
	}
	return rc;
}
