/* SPDX-License-Identifier: MIT */
/*
 * What is in a block: every 8-byte word is a hash of (seed, block id, layer,
 * position), so a byte that is wrong, or right but in the wrong place, shows.
 *
 * The key of a layer is mixed thoroughly; the words are a counter under that
 * key with one multiplication each, as both sides compute every byte and the
 * replay should be bound by moving them.
 */
#ifndef REPLAY_CONTENT_H
#define REPLAY_CONTENT_H

#include <stddef.h>
#include <stdint.h>

#define REPLAY_STEP	0x9e3779b97f4a7c15u	/* 2^64 / golden ratio */

static inline uint64_t replay_mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 29;
	x *= 0xa3b195354a39b70du;
	return x ^ x >> 32;
}

static inline uint64_t replay_key(uint64_t seed, uint64_t id, uint32_t layer)
{
	uint64_t k = replay_mix(seed + REPLAY_STEP);

	k = replay_mix(k ^ (id + 1) * REPLAY_STEP);
	return replay_mix(k + (layer + 1) * REPLAY_STEP);
}

static inline uint64_t replay_word(uint64_t key, size_t i)
{
	uint64_t x = key + i * REPLAY_STEP;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

static inline void replay_fill(void *dst, size_t bytes, uint64_t key)
{
	uint64_t *p = dst;
	size_t i;

	for (i = 0; i < bytes / 8; i++)
		p[i] = replay_word(key, i);
}

/* The first byte that differs, or @bytes. */
static inline size_t replay_compare(const void *src, size_t bytes, uint64_t key)
{
	const uint64_t *p = src;
	size_t i, j, n = bytes / 8;

	for (i = 0; i < n; i = j) {
		uint64_t diff = 0;

		/* 512 bytes at a time: no branch for each word */
		for (j = i; j < n && j < i + 64; j++)
			diff |= p[j] ^ replay_word(key, j);
		if (diff)
			break;
	}
	for (; i < n; i++) {
		uint64_t diff = p[i] ^ replay_word(key, i);

		if (diff)	/* little endian: the lowest bit is in the first byte */
			return i * 8 + (size_t)__builtin_ctzll(diff) / 8;
	}
	return bytes;
}

#endif
