// SPDX-License-Identifier: MIT
/*
 * The simulator of plans: memory, the plain reference, orders, races.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "plansim.h"

#define MAX		HCCL_MAX_RANKS
#define GUARD		64u

/* ---- Chance ------------------------------------------------------------------------- */

static u64 seed = 1;

u32 plansim_dice(u32 n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(seed >> 33) % n;
}

/* ---- One collective, and its memory ---------------------------------------------------- */

struct plansim plansim;

#define J	plansim

struct memory {
	u8 *now, *begin, *want;	/* IN, a guard, OUT, a guard; or both in one */
	u8 *ccl;
	u64 size, in, out, in_size, out_size;
};

static struct memory mem[MAX];

static void complain(const char *what, u32 lane, u32 at)
{
	print_error("%s, %s (inter %s): %u ranks, count %llu x %u, root %u, ccl %llu, chunk %llu, placing %u: lane %u step %u\n",
		    hccl_coll_name(J.s.coll), hccl_algo_name(J.algo), hccl_algo_name(J.s.inter),
		    J.s.ranks, (unsigned long long)J.s.count, J.s.elem, J.s.root,
		    (unsigned long long)J.s.ccl_bytes, (unsigned long long)J.s.chunk, J.placing,
		    lane, at);
	fail_msg("%s", what);
}

/* Elements of IN and OUT of a rank. */
static u64 elements(u32 r, bool out)
{
	const struct hccl_shape *s = &J.s;
	u64 most = 0;

	switch (s->coll) {
	case HCCL_ALLREDUCE:
		return s->count;
	case HCCL_REDUCE_TO:
		return out && r != s->root ? 0 : s->count;
	case HCCL_REDUCESCATTER:
		return out ? s->count : s->count * s->ranks;
	case HCCL_ALLGATHER:
		return out ? s->count * s->ranks : s->count;
	case HCCL_BROADCAST:
		return out ? s->count : 0;
	case HCCL_SCATTER:
		return out ? s->count : r == s->root ? s->count * s->ranks : 0;
	case HCCL_ALLTOALL:
		return s->count * s->ranks;
	case HCCL_REDUCESCATTERV:
	case HCCL_ALLGATHERV:
		if (out == (s->coll == HCCL_REDUCESCATTERV))
			return J.counts[r];
		return J.displs[s->ranks - 1] + J.counts[s->ranks - 1] + 3;
	case HCCL_ALLTOALLV:
		for (u32 q = 0; q < s->ranks; q++) {
			u64 end = out ? J.recv[r * s->ranks + q] + J.counts[q * s->ranks + r]
				      : J.send[r * s->ranks + q] + J.counts[r * s->ranks + q];

			most = end > most ? end : most;
		}
		return most;
	default:
		return 0;
	}
}

/* Where OUT lies in IN, or IN in OUT, in elements. */
static u64 inside(u32 r)
{
	switch (J.s.coll) {
	case HCCL_REDUCESCATTER:
	case HCCL_ALLGATHER:
	case HCCL_SCATTER:
		return r * J.s.count;
	case HCCL_REDUCESCATTERV:
	case HCCL_ALLGATHERV:
		return J.displs[r];
	default:
		return 0;
	}
}

static bool may_be_in_place(u32 r)
{
	switch (J.s.coll) {
	case HCCL_ALLTOALL:
	case HCCL_ALLTOALLV:
	case HCCL_BROADCAST:
	case HCCL_BARRIER:
		return false;
	case HCCL_SCATTER:
	case HCCL_REDUCE_TO:
		return r == J.s.root;
	default:
		return true;
	}
}

static void *get(u64 bytes)
{
	void *at = malloc(bytes ? bytes : 1);

	assert_non_null(at);
	return at;
}

static void lay_out(u32 r)
{
	struct memory *m = &mem[r];
	u64 in = elements(r, false) * J.s.elem, out = elements(r, true) * J.s.elem;
	u64 off = inside(r) * J.s.elem;

	m->in_size = in;
	m->out_size = out;
	if (may_be_in_place(r) && (J.placing == PLANSIM_IN_PLACE ||
				   (J.placing == PLANSIM_MIXED && plansim_dice(2)))) {
		m->in = out > in ? off : 0;
		m->out = out > in ? 0 : off;
		m->size = (in > out ? in : out) + GUARD;
		if (in == out)
			m->in = m->out = 0;
	} else {
		m->in = 0;
		m->out = in + GUARD;
		m->size = in + out + 2 * GUARD;
	}
	m->now = get(m->size);
	m->begin = get(m->size);
	m->want = get(m->size);
	m->ccl = get(J.s.ccl_bytes);
	for (u64 i = 0; i < m->size; i += 4) {
		u32 any = plansim_dice(~0u);

		memcpy(m->begin + i, &any, m->size - i < 4 ? m->size - i : 4);
	}
	if (J.floats)	/* of sizes so different that the order of a sum shows */
		for (u64 i = 0; i + 4 <= m->size; i += 4) {
			float v = (float)((int)plansim_dice(2000) - 1000);

			v *= plansim_dice(2) ? 1e6f : 1.0f / 3;

			memcpy(m->begin + i, &v, 4);
		}
	memcpy(m->want, m->begin, m->size);
}

static void let_go(void)
{
	for (u32 r = 0; r < J.s.ranks; r++) {
		free(mem[r].now);
		free(mem[r].begin);
		free(mem[r].want);
		free(mem[r].ccl);
	}
}

/* ---- The plain reference --------------------------------------------------------------- */

static void add(void *dst, const void *src, u32 elem)
{
	u64 a = 0, b = 0;
	float x, y;

	if (J.floats) {
		memcpy(&x, dst, 4);
		memcpy(&y, src, 4);
		x += y;
		memcpy(dst, &x, 4);
		return;
	}
	memcpy(&a, dst, elem);
	memcpy(&b, src, elem);
	a += b;
	memcpy(dst, &a, elem);
}

static const u8 *sent(u32 r, u64 i)
{
	return mem[r].begin + mem[r].in + i * J.s.elem;
}

static u8 *wanted(u32 r, u64 i)
{
	return mem[r].want + mem[r].out + i * J.s.elem;
}

static void want_sum(u32 to, u64 out, u64 in, u64 n)
{
	for (u64 i = 0; i < n; i++) {
		u8 sum[16];

		memcpy(sum, sent(0, in + i), J.s.elem);
		for (u32 q = 1; q < J.s.ranks; q++)
			add(sum, sent(q, in + i), J.s.elem);
		memcpy(wanted(to, out + i), sum, J.s.elem);
	}
}

static void want(u32 r)
{
	const struct hccl_shape *s = &J.s;
	u32 n = s->ranks, e = s->elem;

	switch (s->coll) {
	case HCCL_ALLREDUCE:
		want_sum(r, 0, 0, s->count);
		return;
	case HCCL_REDUCE_TO:
		if (r == s->root)
			want_sum(r, 0, 0, s->count);
		return;
	case HCCL_REDUCESCATTER:
		want_sum(r, 0, r * s->count, s->count);
		return;
	case HCCL_REDUCESCATTERV:
		want_sum(r, 0, J.displs[r], J.counts[r]);
		return;
	case HCCL_BROADCAST:
		memcpy(wanted(r, 0), mem[s->root].begin + mem[s->root].out, s->count * e);
		return;
	case HCCL_SCATTER:
		memcpy(wanted(r, 0), sent(s->root, r * s->count), s->count * e);
		return;
	default:
		break;
	}
	for (u32 q = 0; q < n; q++)
		switch (s->coll) {
		case HCCL_ALLGATHER:
			memcpy(wanted(r, q * s->count), sent(q, 0), s->count * e);
			break;
		case HCCL_ALLGATHERV:
			memcpy(wanted(r, J.displs[q]), sent(q, 0), J.counts[q] * e);
			break;
		case HCCL_ALLTOALL:
			memcpy(wanted(r, q * s->count), sent(q, r * s->count), s->count * e);
			break;
		case HCCL_ALLTOALLV:
			memcpy(wanted(r, J.recv[r * n + q]), sent(q, J.send[q * n + r]),
			       J.counts[q * n + r] * e);
			break;
		default:
			break;
		}
}

/* ---- Carrying out ---------------------------------------------------------------------- */

static u8 *at(struct hccl_place at, u64 bytes, u32 lane, u32 step)
{
	struct memory *m = &mem[at.rank];
	u64 size = at.area == HCCL_IN ? m->in_size :
		   at.area == HCCL_OUT ? m->out_size : J.s.ccl_bytes;

	if (at.rank >= J.s.ranks || at.area > HCCL_CCL || at.off + bytes > size)
		complain("a place that is not there", lane, step);
	if (at.off % J.s.elem || bytes % J.s.elem)
		complain("a part of an element", lane, step);
	if (at.area == HCCL_CCL)
		return m->ccl + at.off;
	return m->now + (at.area == HCCL_IN ? m->in : m->out) + at.off;
}

static u32 done[MAX];

static bool can(const struct hccl_plan *p, u32 lane)
{
	const struct hccl_step *s = &p->lane[lane].step[done[lane]];

	return done[lane] < p->lane[lane].n && (s->kind != HCCL_WAIT || done[s->peer] >= s->count);
}

static void carry_out(const struct hccl_step *s, u32 lane)
{
	u8 *dst, *src;

	if (s->kind == HCCL_WAIT)
		return;
	dst = at(s->dst, s->bytes, lane, done[lane]);
	src = at(s->src, s->bytes, lane, done[lane]);
	if (!s->bytes)
		complain("a step of no bytes", lane, done[lane]);
	if (s->dst.area == HCCL_IN)
		complain("writes IN", lane, done[lane]);
	if (J.s.coll == HCCL_BROADCAST && s->dst.area == HCCL_OUT && s->dst.rank == J.s.root)
		complain("writes what the root sends", lane, done[lane]);
	if (s->dst.rank != lane && s->src.rank != lane)
		complain("neither side is its own", lane, done[lane]);
	if (dst < src + s->bytes && src < dst + s->bytes && (dst != src || s->kind == HCCL_REDUCE))
		complain("overlaps itself", lane, done[lane]);
	if (s->kind == HCCL_COPY)
		memmove(dst, src, s->bytes);
	else
		for (u64 i = 0; i < s->bytes; i += J.s.elem)
			add(dst + i, src + i, J.s.elem);
}

static u32 pick(const struct hccl_plan *p, u32 order)
{
	u32 best = MAX, n = 0;

	for (u32 r = 0; r < p->ranks; r++) {
		if (!can(p, r))
			continue;
		n++;
		if (best == MAX || order == PLANSIM_LAST ||
		    (order == PLANSIM_RANDOM && !plansim_dice(n)) ||
		    (order == PLANSIM_DEEPEST && done[r] > done[best]) ||
		    (order == PLANSIM_SHALLOWEST && done[r] < done[best]))
			best = r;
		if (order == PLANSIM_FIRST)
			break;
	}
	return best;
}

/* ---- What happens before what ---------------------------------------------------------- */

struct clock {
	u32 of[MAX];
};

struct access {
	const u8 *from, *end;
	const struct clock *knows;
	u32 lane, step;
	bool write;
};

static struct clock *clocks;
static u32 nr_clocks;
static struct access *accesses;
static u32 nr_accesses;
static const struct clock **known[MAX];	/* after each step of a lane */

static void clocks_begin(const struct hccl_plan *p)
{
	static struct clock nothing;
	u32 waits = 0, steps = 0;

	for (u32 r = 0; r < p->ranks; r++) {
		known[r] = get((p->lane[r].n + 1) * sizeof(known[r][0]));
		known[r][0] = &nothing;
		steps += p->lane[r].n;
		for (u32 i = 0; i < p->lane[r].n; i++)
			waits += p->lane[r].step[i].kind == HCCL_WAIT;
	}
	clocks = get(waits * sizeof(*clocks));
	accesses = get(2 * steps * sizeof(*accesses));
	nr_clocks = nr_accesses = 0;
}

static void clock_step(const struct hccl_step *s, u32 lane)
{
	u32 i = done[lane];
	const struct clock *mine = known[lane][i], *peers;
	struct clock *now;

	known[lane][i + 1] = mine;
	if (s->kind != HCCL_WAIT) {
		const u8 *dst = at(s->dst, s->bytes, lane, i), *src = at(s->src, s->bytes, lane, i);

		if (dst == src)
			return;
		accesses[nr_accesses++] = (struct access){
			dst, dst + s->bytes, mine, lane, i, true };
		accesses[nr_accesses++] = (struct access){
			src, src + s->bytes, mine, lane, i, false };
		return;
	}
	peers = known[s->peer][s->count];
	now = &clocks[nr_clocks++];
	for (u32 r = 0; r < J.s.ranks; r++)
		now->of[r] = mine->of[r] > peers->of[r] ? mine->of[r] : peers->of[r];
	now->of[s->peer] = s->count > now->of[s->peer] ? s->count : now->of[s->peer];
	known[lane][i + 1] = now;
}

static int by_address(const void *a, const void *b)
{
	const struct access *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static bool before(const struct access *a, const struct access *b)
{
	return b->knows->of[a->lane] > a->step;
}

static u32 busy_lanes(const struct hccl_plan *p)
{
	u32 busy = 0;

	for (u32 r = 0; r < p->ranks; r++)
		busy += p->lane[r].n > 0;
	return busy;
}

static void clocks_end(const struct hccl_plan *p)
{
	if (busy_lanes(p) < 2)
		nr_accesses = 0;
	qsort(accesses, nr_accesses, sizeof(*accesses), by_address);
	for (u32 i = 0; i < nr_accesses; i++)
		for (u32 k = i + 1; k < nr_accesses && accesses[k].from < accesses[i].end; k++) {
			const struct access *a = &accesses[i], *b = &accesses[k];

			if (a->lane != b->lane && (a->write || b->write) && !before(a, b) &&
			    !before(b, a)) {
				print_error("lane %u step %u\n", a->lane, a->step);
				complain("races with that", b->lane, b->step);
			}
		}
	for (u32 r = 0; r < p->ranks; r++)
		free(known[r]);
	free(clocks);
	free(accesses);
}

/* ---- A job ------------------------------------------------------------------------------ */

static void run(const struct hccl_plan *p, u32 order, bool with_clocks)
{
	u32 lane;

	for (u32 r = 0; r < p->ranks; r++) {
		memcpy(mem[r].now, mem[r].begin, mem[r].size);
		memset(mem[r].ccl, 0xa5, J.s.ccl_bytes);
		done[r] = 0;
	}
	if (with_clocks)
		clocks_begin(p);
	while ((lane = pick(p, order)) < MAX) {
		const struct hccl_step *s = &p->lane[lane].step[done[lane]];

		carry_out(s, lane);
		if (with_clocks)
			clock_step(s, lane);
		done[lane]++;
	}
	for (u32 r = 0; r < p->ranks; r++)
		if (done[r] != p->lane[r].n)
			complain("waits for ever", r, done[r]);
	if (with_clocks)
		clocks_end(p);
}

/* The right sum, but for the order in which it was made; nothing else has changed. */
static bool closely(const struct memory *m)
{
	for (u64 i = 0; i + 4 <= m->size; i += 4) {
		float now, want;

		memcpy(&now, m->now + i, 4);
		memcpy(&want, m->want + i, 4);
		if (!(now - want < 2000 && want - now < 2000))
			return false;
		if (now != want && (i < m->out || i >= m->out + m->out_size))
			return false;
	}
	return true;
}

static void check(u32 order, bool exact)
{
	for (u32 r = 0; r < J.s.ranks; r++) {
		struct memory *m = &mem[r];
		u64 i = 0;

		if (!exact && closely(m))	/* says what the other runs have to give */
			memcpy(m->want, m->now, m->size);
		if (!memcmp(m->now, m->want, m->size))
			continue;
		while (m->now[i] == m->want[i])
			i++;
		print_error("rank %u, byte %llu of %llu (OUT is %llu at %llu), order %u\n", r,
			    (unsigned long long)i, (unsigned long long)m->size,
			    (unsigned long long)m->out_size, (unsigned long long)m->out, order);
		complain("wrong bytes", r, 0);
	}
}

static bool rank_order(enum hccl_algo algo)
{
	return algo == HCCL_ALGO_ONE_LANE || algo == HCCL_ALGO_MESH_ONE ||
	       algo == HCCL_ALGO_MESH_TWO;
}

void plansim_run(void)
{
	struct hccl_plan *p;

	J.s.counts = J.counts;
	J.s.displs = J.displs;
	J.s.send_displs = J.send;
	J.s.recv_displs = J.recv;
	p = hccl_plan_make(&J.s, J.algo);
	assert_non_null(p);
	assert_int_equal(p->ranks, J.s.ranks);
	assert_true(hccl_plan_has(J.s.coll, p->algo));
	for (u32 r = 0; r < J.s.ranks; r++)
		lay_out(r);
	for (u32 r = 0; r < J.s.ranks; r++)
		want(r);
	for (u32 i = 0; i < J.runs; i++) {
		u32 order = PLANSIM_RANDOM;

		if (i < PLANSIM_ORDERS)
			order = (order + i) % PLANSIM_ORDERS;
		run(p, order, !i);
		check(order, !J.floats || i || rank_order(p->algo));
	}
	if (J.floats && J.s.coll == HCCL_ALLREDUCE)
		for (u32 r = 1; r < J.s.ranks; r++)
			assert_memory_equal(mem[r].now + mem[r].out, mem[0].now + mem[0].out,
					    mem[0].out_size);
	let_go();
	hccl_plan_free(p);
}
