// SPDX-License-Identifier: MIT
/*
 * Arbitrary bytes as a rank table.  What is taken is within its limits, no two ranks are
 * the same device, and its hash is the same the next time; what is refused leaves nothing
 * behind and says why in one line.
 *
 * Input: a text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "../../lib/hccl/ranktable.h"

#define require(cond)	do { if (!(cond)) broken(#cond, __LINE__); } while (0)

static void broken(const char *what, int line)
{
	fprintf(stderr, "fuzz: line %d: not so: %s\n", line, what);
	abort();
}

static void check_taken(const struct hccl_ranktable *t)
{
	u32 i, k;

	require(t->nranks >= 1 && t->nranks <= HCCL_RANKS_MAX);
	require(t->nservers >= 1 && t->nservers <= t->nranks);
	require(t->nsuperpods >= 1 && t->nsuperpods <= t->nranks);
	for (i = 0; i < t->nranks; i++) {
		const struct hccl_rankent *e = &t->rank[i];

		require(e->rank == i && e->device <= 64 && e->local <= 64);
		require(e->server_index < t->nservers && e->superpod < t->nsuperpods);
		require(e->server[0] && memchr(e->server, 0, sizeof(e->server)));
		for (k = 0; k < i; k++)
			require(t->rank[k].server_index != e->server_index || t->rank[k].local != e->local);
	}
}

static void check_refused(const struct hccl_ranktable *t, const char *why, size_t room)
{
	static const struct hccl_ranktable zero;
	size_t i;

	require(!memcmp(t, &zero, sizeof(zero)));
	require(memchr(why, 0, room));
	require(!strncmp(why, "EI00", 4));
	for (i = 0; why[i]; i++)
		require((unsigned char)why[i] >= ' ');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hccl_ranktable t, again;
	char why[256], other[32];
	int ret;

	memset(&t, 0xa5, sizeof(t));
	memset(why, 0xff, sizeof(why));
	ret = hccl_ranktable_parse("T", (const char *)data, size, &t, why, sizeof(why));
	require(ret == HCCL_SUCCESS || ret == HCCL_E_PARA);
	require(hccl_ranktable_parse("T", (const char *)data, size, &again, other, sizeof(other)) == ret);
	if (ret) {
		check_refused(&t, why, sizeof(why));
	} else {
		check_taken(&t);
		require(t.hash == again.hash);
	}
	hccl_ranktable_free(&t);
	hccl_ranktable_free(&again);
	return 0;
}
