// SPDX-License-Identifier: MIT
/*
 * Model geometries.  A trace says which blocks a request needs, not how many
 * bytes they have; that is the model's: layers x 512 tokens x bytes a token.
 */
#include <string.h>

#include "replay.h"

const struct replay_model replay_models[] = {
	{ "micro", 1, 4 << 10, "the whole trace fits in 1 GiB" },
	{ "tiny", 4, 32 << 10, "the default" },
	{ "small", 16, 64 << 10, "more layers, larger WRITEs" },
	/* one latent vector of 576 bf16 values per token and layer */
	{ "mla-61", 61, REPLAY_BLOCK_TOKENS * 576 * 2, "DeepSeek-R1, full size" },
	{ NULL, 0, 0, NULL },
};

const struct replay_model *replay_model_find(const char *name)
{
	const struct replay_model *m;

	for (m = replay_models; m->name; m++)
		if (!strcmp(m->name, name))
			return m;
	return NULL;
}
