// SPDX-License-Identifier: MIT
/*
 * Are the bytes right?  An output, and 512 bytes before and after it, is filled with a
 * pattern; what has to arrive is put together on the host, from the plain reference.
 * After the collective all of it is fetched and compared, the gaps and guards as well.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/cli.h"
#include "../common/text.h"
#include "coll.h"

#define SIDES	(2ull * NPUEMU_COLL_GUARD)

static uint64_t bytes_in(const struct npuemu_coll_rank *r, const struct npuemu_coll_row *k)
{
	return k->coll->in(k, r->o->ranks, r->rank) * k->elem;
}

static uint64_t bytes_out(const struct npuemu_coll_rank *r, const struct npuemu_coll_row *k)
{
	return k->coll->out(k, r->o->ranks, r->rank) * k->elem;
}

/* With guards, in multiples that every type goes into. */
static int buffer(struct npuemu_coll_rank *r, uint64_t bytes, char **p)
{
	char size[NPUEMU_TEXT_SIZE];
	void *got;
	aclError err = aclrtMalloc(&got, bytes + SIDES, ACL_MEM_MALLOC_HUGE_FIRST);

	if (err) {
		snprintf(r->said->msg, sizeof(r->said->msg), "%s on device %u",
			 npuemu_size_text(size, bytes + SIDES), r->device);
		return npuemu_coll_fail_acl(r, r->said->msg, err);
	}
	*p = (char *)got + NPUEMU_COLL_GUARD;
	return 0;
}

int npuemu_coll_check_setup(struct npuemu_coll_rank *r)
{
	uint64_t in = 0, out = 0, v;
	uint32_t i, n = r->o->ranks;
	int rc;

	for (i = 0; i < r->o->rows; i++) {
		v = bytes_in(r, &r->o->row[i]);
		in = v > in ? v : in;
		v = bytes_out(r, &r->o->row[i]);
		out = v > out ? v : out;
	}
	rc = buffer(r, in, &r->in);
	if (!rc)
		rc = buffer(r, out, &r->out);
	if (rc)
		return rc;
	r->want = r->o->check ? malloc(out + SIDES) : malloc(1);
	r->have = malloc((in > out ? in : out) + SIDES);
	r->matrix = malloc(sizeof(*r->matrix) * n * n);
	if (!r->want || !r->have || !r->matrix)
		return npuemu_coll_fail(r, "out of memory: %llu bytes for the data check",
					2ull * out + in);
	return 0;
}

void npuemu_coll_check_free(struct npuemu_coll_rank *r)
{
	free(r->want);
	free(r->have);
	free(r->matrix);
	if (r->in)
		aclrtFree(r->in - NPUEMU_COLL_GUARD);
	if (r->out)
		aclrtFree(r->out - NPUEMU_COLL_GUARD);
}

/* Before anything arrives; none of it is zero. */
static void pattern(const struct npuemu_coll_rank *r, unsigned char *p, uint64_t n)
{
	uint64_t i, x = (r->k->index + 1) * 0x9e3779b97f4a7c15ull + r->rank;

	for (i = 0; i < n; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		p[i] = (unsigned char)(x >> 56 | 1);
	}
}

static int copy(struct npuemu_coll_rank *r, void *to, const void *from, uint64_t n, int up)
{
	aclError err = ACL_SUCCESS;

	if (n)
		err = aclrtMemcpy(to, n, from, n,
				  up ? ACL_MEMCPY_HOST_TO_DEVICE : ACL_MEMCPY_DEVICE_TO_HOST);
	return err ? npuemu_coll_fail_acl(r, "aclrtMemcpy", err) : 0;
}

static void expect(struct npuemu_coll_rank *r)
{
	const struct npuemu_coll_row *k = r->k;
	struct npuemu_coll_part part[NPUEMU_COLL_RANKS];
	uint32_t i, n = k->coll->parts(k, r->o->ranks, r->rank, part);
	unsigned char *to;

	pattern(r, r->want, r->out_bytes + SIDES);
	for (i = 0; i < n; i++) {
		to = r->want + NPUEMU_COLL_GUARD + part[i].out * k->elem;
		if (part[i].from == NPUEMU_COLL_ALL)
			npuemu_coll_reduced(k, r->o->ranks, part[i].in, part[i].n, to);
		else
			npuemu_coll_fill(k, r->o->ranks, part[i].from, part[i].in, part[i].n, to);
	}
}

int npuemu_coll_begin(struct npuemu_coll_rank *r)
{
	const struct npuemu_coll_row *k = r->k;

	r->wrong = 0;
	r->in_bytes = bytes_in(r, k);
	r->out_bytes = bytes_out(r, k);
	npuemu_coll_prepare(r);
	if (r->o->check)
		expect(r);
	npuemu_coll_fill(k, r->o->ranks, r->rank, 0, r->in_bytes / k->elem, r->have);
	return copy(r, r->in, r->have, r->in_bytes, 1);
}

int npuemu_coll_arm(struct npuemu_coll_rank *r)
{
	const struct npuemu_coll_row *k = r->k;

	pattern(r, r->have, r->out_bytes + SIDES);
	if (k->coll->in_place && r->rank == k->root)
		npuemu_coll_fill(k, r->o->ranks, r->rank, 0, r->out_bytes / k->elem,
				 r->have + NPUEMU_COLL_GUARD);
	return copy(r, r->out - NPUEMU_COLL_GUARD, r->have, r->out_bytes + SIDES, 1);
}

static void words(char *text, size_t len, const unsigned char *p, uint32_t n)
{
	size_t at = 0;
	uint32_t i;

	for (i = 0; i < n && at < len; i++)
		at += (size_t)snprintf(text + at, len - at, "%02x", p[n - 1 - i]);
}

/* Byte @at is wrong; @want and @have are where the bytes begin that @at counts from. */
static void note(struct npuemu_coll_rank *r, uint64_t at, const char *where,
		 const unsigned char *want, const unsigned char *have)
{
	const struct npuemu_coll_row *k = r->k;
	uint64_t first = at - at % k->elem;
	char is[40], ought[40], size[NPUEMU_TEXT_SIZE];

	if (!r->wrong)
		__atomic_fetch_add(&r->sh->result[k->index].wrong, 1, __ATOMIC_RELAXED);
	r->wrong = 1;
	if (r->said->wrong[0])
		return;
	words(ought, sizeof(ought), want + first, k->elem);
	words(is, sizeof(is), have + first, k->elem);
	snprintf(r->said->wrong, sizeof(r->said->wrong),
		 "wrong data on rank %u: %s %s%s%s %s, in %s: byte %llu (element %llu): expected 0x%s, found 0x%s",
		 r->rank, k->coll->name, npuemu_coll_type_names[k->type],
		 k->coll->reduces ? " " : "",
		 k->coll->reduces ? npuemu_coll_op_names[k->op] : "",
		 npuemu_size_text(size, k->size), where, (unsigned long long)at,
		 (unsigned long long)(at / k->elem), ought, is);
}

static void compare(struct npuemu_coll_rank *r, uint64_t n, const char *where,
		    const unsigned char *want, const unsigned char *have)
{
	uint64_t i;

	if (!memcmp(want, have, n))
		return;
	for (i = 0; want[i] == have[i]; i++)
		;
	note(r, i, where, want, have);
}

static void compare_out(struct npuemu_coll_rank *r)
{
	const uint64_t begin = NPUEMU_COLL_GUARD, end = NPUEMU_COLL_GUARD + r->out_bytes;

	compare(r, begin, "the guard before the output", r->want, r->have);
	compare(r, r->out_bytes, "the output", r->want + begin, r->have + begin);
	compare(r, NPUEMU_COLL_GUARD, "the guard after the output", r->want + end,
		r->have + end);
}

/* An input is nobody's to write. */
static int compare_in(struct npuemu_coll_rank *r)
{
	const struct npuemu_coll_row *k = r->k;
	unsigned char *want = malloc(r->in_bytes + 1);
	int rc;

	if (!want)
		return npuemu_coll_fail(r, "out of memory for the data check");
	rc = copy(r, r->have, r->in, r->in_bytes, 0);
	if (!rc) {
		npuemu_coll_fill(k, r->o->ranks, r->rank, 0, r->in_bytes / k->elem, want);
		compare(r, r->in_bytes, "its input, which has changed", want, r->have);
	}
	free(want);
	return rc;
}

int npuemu_coll_verify(struct npuemu_coll_rank *r)
{
	int rc;

	if (!r->o->check)
		return 0;
	rc = copy(r, r->have, r->out - NPUEMU_COLL_GUARD, r->out_bytes + SIDES, 0);
	if (rc)
		return rc;
	if (r->o->flip && !r->k->index && r->rank == r->o->flip_rank)
		r->have[NPUEMU_COLL_GUARD + r->o->flip_at] ^= 0x20;
	compare_out(r);
	return compare_in(r);
}
