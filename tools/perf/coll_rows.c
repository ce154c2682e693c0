// SPDX-License-Identifier: MIT
/* The rows of npuemu-perf collectives: what was asked for, times each other. */
#include <stdlib.h>
#include <string.h>

#include "../common/cli.h"
#include "coll.h"

#define MOST_ROWS	20000u

static int refuse(const struct npuemu_coll_opts *o, const struct npuemu_coll *c,
		  const struct npuemu_coll_asked *a, uint32_t type, int *leave_out)
{
	*leave_out = 0;
	if (c->min_ranks > o->ranks) {
		*leave_out = a->all_colls;
		return *leave_out ? 0 :
			npuemu_cli_usage("%s takes at least %u ranks: --ranks", c->name,
					 c->min_ranks);
	}
	if (c->reduces && !npuemu_coll_type_reduces(type)) {
		*leave_out = a->all_types || a->all_colls;
		return *leave_out ? 0 :
			npuemu_cli_usage("%s: %s can be moved, but not reduced", c->name,
					 npuemu_coll_type_names[type]);
	}
	return 0;
}

static int add(struct npuemu_coll_opts *o, struct npuemu_coll_row *k, uint64_t size)
{
	struct npuemu_coll_row *more;
	uint64_t share = k->coll->shared_out ? size / o->ranks : size;

	if (o->rows == MOST_ROWS)
		return npuemu_cli_usage("that would be more than %u rows: ask for less at a time",
					MOST_ROWS);
	k->index = o->rows;
	k->elem = npuemu_coll_type_bytes(k->type);
	k->count = share / k->elem;
	/* of so little, one element a rank */
	if (!k->count)
		k->count = 1;
	if (k->coll->empty)
		k->count = 0;
	k->size = npuemu_coll_size(k, o->ranks);
	more = realloc(o->row, (o->rows + 1) * sizeof(*more));
	if (!more) {
		npuemu_cli_say("out of memory for %u rows", o->rows);
		return NPUEMU_EXIT_RUNTIME;
	}
	o->row = more;
	o->row[o->rows++] = *k;
	return 0;
}

static int add_sizes(struct npuemu_coll_opts *o, const struct npuemu_coll_asked *a,
		     struct npuemu_coll_row *k)
{
	int i, rc = 0;

	if (k->coll->empty)
		return add(o, k, 0);
	for (i = 0; i < a->sizes && !rc; i++)
		rc = add(o, k, a->size[i]);
	return rc;
}

static int add_roots(struct npuemu_coll_opts *o, const struct npuemu_coll_asked *a,
		     struct npuemu_coll_row *k)
{
	uint32_t first = k->coll->rooted ? a->first_root : 0;
	uint32_t last = k->coll->rooted ? a->last_root : 0;
	int rc = 0;

	for (k->root = first; k->root <= last && !rc; k->root++)
		rc = add_sizes(o, a, k);
	return rc;
}

static int add_ops(struct npuemu_coll_opts *o, const struct npuemu_coll_asked *a,
		   struct npuemu_coll_row *k)
{
	int rc = 0;

	k->op = HCCL_REDUCE_SUM;
	if (!k->coll->reduces)
		return add_roots(o, a, k);
	for (; k->op < NPUEMU_COLL_OPS && !rc; k->op++)
		if (a->ops >> k->op & 1)
			rc = add_roots(o, a, k);
	return rc;
}

static int add_types(struct npuemu_coll_opts *o, const struct npuemu_coll_asked *a,
		     const struct npuemu_coll *c)
{
	struct npuemu_coll_row k = { .coll = c };
	int rc = 0, leave_out, first = 1;

	for (k.type = 0; k.type < NPUEMU_COLL_TYPES && !rc; k.type++) {
		if (!(a->types >> k.type & 1) || (c->empty && !first))
			continue;
		first = 0;
		rc = refuse(o, c, a, k.type, &leave_out);
		if (!rc && !leave_out)
			rc = add_ops(o, a, &k);
	}
	return rc;
}

/* Options that mean nothing for what is measured are mistakes. */
static int check_given(const struct npuemu_coll_asked *a)
{
	uint32_t i, reduce = 0, root = 0;

	for (i = 0; i < npuemu_coll_count; i++)
		if (a->colls >> i & 1) {
			reduce |= npuemu_colls[i].reduces;
			root |= npuemu_colls[i].rooted;
		}
	if (a->ops_given && !reduce)
		return npuemu_cli_usage("--op: none of these collectives reduces");
	if (a->roots_given && !root)
		return npuemu_cli_usage("--root: none of these collectives has a root");
	return 0;
}

int npuemu_coll_rows(struct npuemu_coll_opts *o, const struct npuemu_coll_asked *a)
{
	int rc = check_given(a);
	uint32_t i;

	for (i = 0; i < npuemu_coll_count && !rc; i++)
		if (a->colls >> i & 1)
			rc = add_types(o, a, &npuemu_colls[i]);
	if (!rc && !o->rows)
		rc = npuemu_cli_usage("nothing is left to be measured");
	return rc;
}
