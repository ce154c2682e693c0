/* SPDX-License-Identifier: MIT */
/*
 * The request trace: JSON lines, one request a line, in the format Mooncake
 * published (timestamp, input_length, output_length, hash_ids).
 */
#ifndef REPLAY_TRACE_H
#define REPLAY_TRACE_H

#include <stddef.h>
#include <stdint.h>

#define REPLAY_BLOCK_TOKENS	512	/* tokens behind one hash id */
#define REPLAY_TRACE_ERR	512	/* room for a message */

struct replay_request {
	uint64_t timestamp;	/* ms */
	uint32_t tokens;	/* of the prompt: input_length */
	uint32_t blocks;	/* of the prompt, the last may be partial */
	const uint64_t *ids;	/* one a block */
	uint32_t line;		/* in the file, from 1 */
};

struct replay_trace {
	struct replay_request *req;
	uint32_t n;
	uint32_t longest;	/* blocks of the longest request */
	uint32_t longest_line;
	uint64_t refs;		/* blocks of all requests */
	uint64_t distinct;	/* ids that occur */
	uint64_t *ids;		/* what the requests point into */
};

/*
 * Read the first @max requests (0: all) of @path.  0, or -1 with
 * "file:line:column: what is wrong" in @err.
 */
int replay_trace_load(struct replay_trace *t, const char *path, uint32_t max,
		      char err[REPLAY_TRACE_ERR]);
void replay_trace_free(struct replay_trace *t);

/* Tokens behind block @i: all but the last block are full. */
static inline uint32_t replay_block_tokens(const struct replay_request *r, uint32_t i)
{
	if (i + 1 < r->blocks)
		return REPLAY_BLOCK_TOKENS;
	return r->tokens - (r->blocks - 1) * REPLAY_BLOCK_TOKENS;
}

#endif
