// SPDX-License-Identifier: MIT
/*
 * What the addresses of this process are: device buffers, pinned and registered
 * host memory, mappings.
 *
 * Every copy asks, so readers take no lock.  A map is an ordered one of two
 * levels, so that neither a change nor a search moves much; its parts are never
 * given back, so that a reader who comes in the middle of a change reads
 * nonsense, never elsewhere.  A generation that is odd during a change tells,
 * and it tells each thread whether what it found last still holds.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "check.h"

#define LEAF		64u
#define CACHED		4u
#define REMEMBERED	1024u

#define GET(x)		smp_load_acquire(&(x))
#define SET(x, v)	smp_store_release(&(x), (v))

struct entry {
	u64 base;
	u64 end;
	u64 info;		/* kind, flags, device, and how much the room is above the size */
	struct npuacl_range *r;	/* under the lock */
};

struct leaf {
	u32 n;
	struct leaf *next;	/* of the spare ones; under the lock */
	struct entry e[LEAF];
};

struct slot {
	u64 first;		/* base of the leaf's first entry */
	struct leaf *leaf;
};

struct top {
	u32 n;
	u32 room;
	struct top *older;	/* the smaller one before it: for leak checkers */
	struct slot slot[];
};

struct map {
	struct top *top;
};

/* Those of one map do not overlap. */
enum { BLOCKS, REGISTERED, RESERVED, MAPS };

struct freed {
	u64 base, size;
	u32 kind, device;
};

static struct {
	pthread_mutex_t lock;
	pthread_rwlock_t looks;	/* at words that the program may take away */
	u64 gen;		/* odd: a change is under way */
	struct map map[MAPS];
	struct top *inherited[MAPS];	/* a parent's: not used, nor safe to free */
	struct leaf *spare;
	struct freed freed[REMEMBERED];
	u32 next_freed;
} as = { .lock = PTHREAD_MUTEX_INITIALIZER, .looks = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP, .gen = 2 };

static struct map *map_of(u32 kind)
{
	return &as.map[kind == NPUACL_REGISTERED ? REGISTERED : kind == NPUACL_RESERVED ? RESERVED : BLOCKS];
}

/* ---- Searching ------------------------------------------------------------------------ */

/* How many begin at @va or before. */
static u32 slots_upto(const struct top *t, u32 n, u64 va)
{
	u32 lo = 0, hi = n;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (GET(t->slot[mid].first) <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static u32 entries_upto(const struct leaf *l, u32 n, u64 va)
{
	u32 lo = 0, hi = n;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (GET(l->e[mid].base) <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The entry that holds @va; where the next one begins. */
static bool seek(const struct map *m, u64 va, struct entry *hit, u64 *next)
{
	const struct top *t = GET(m->top);
	const struct leaf *l;
	u32 i, k, n;

	*next = ~0ull;
	if (!t)
		return false;
	n = GET(t->n);
	i = slots_upto(t, n, va);
	if (i < n)
		*next = GET(t->slot[i].first);
	l = i ? GET(t->slot[i - 1].leaf) : NULL;
	if (!l)
		return false;
	n = GET(l->n);
	k = entries_upto(l, n, va);
	if (k < n)
		*next = GET(l->e[k].base);
	if (!k)
		return false;
	hit->base = GET(l->e[k - 1].base);
	hit->end = GET(l->e[k - 1].end);
	hit->info = GET(l->e[k - 1].info);
	hit->r = GET(l->e[k - 1].r);
	return va < hit->end;
}

static u64 pack(const struct npuacl_range *r)
{
	return r->kind | (u64)r->flags << 8 | (u64)r->device << 16 | (r->room - r->size) << 32;
}

static void unpack(const struct entry *e, struct npuacl_place *p)
{
	p->base = e->base;
	p->end = e->end;
	p->size = e->end - e->base - (e->info >> 32);
	p->kind = e->info & 0xff;
	p->flags = e->info >> 8 & 0xff;
	p->device = e->info >> 16 & 0xffff;
}

static void look(u64 va, struct npuacl_place *p)
{
	u64 next, next2;
	struct entry e;

	if (seek(&as.map[BLOCKS], va, &e, &next)) {
		unpack(&e, p);
		return;
	}
	if (seek(&as.map[REGISTERED], va, &e, &next2)) {
		unpack(&e, p);
		if (p->end > next)	/* cannot be, unless a block came later: that is nearer */
			p->end = next;
		return;
	}
	memset(p, 0, sizeof(*p));
	p->end = next < next2 ? next : next2;
}

static __thread struct {
	struct {
		u64 gen;
		struct npuacl_place p;
	} c[CACHED];
	u32 next;
} cache;

void npuacl_place_of(u64 va, struct npuacl_place *out)
{
	u64 gen = GET(as.gen);
	u32 i;

	for (i = 0; i < CACHED; i++)
		if (cache.c[i].gen == gen && va - cache.c[i].p.base < cache.c[i].p.end - cache.c[i].p.base) {
			*out = cache.c[i].p;
			return;
		}
	for (i = 0; i < 2; i++, gen = GET(as.gen)) {
		if (gen & 1)
			continue;
		look(va, out);
		if (READ_ONCE(as.gen) == gen)
			break;
	}
	if (i == 2) {
		pthread_mutex_lock(&as.lock);
		gen = as.gen;
		look(va, out);
		pthread_mutex_unlock(&as.lock);
	}
	if (out->kind == NPUACL_PAGEABLE)
		return;
	cache.c[cache.next].gen = gen;
	cache.c[cache.next].p = *out;
	cache.next = (cache.next + 1) % CACHED;
}

bool npuacl_word_at(u64 va, u64 *value)
{
	struct npuacl_place p;
	bool there;

	pthread_rwlock_rdlock(&as.looks);
	npuacl_place_of(va, &p);
	there = npuacl_on_device(&p) && p.end - va >= sizeof(*value);
	if (there)
		*value = __atomic_load_n(npuacl_word((volatile u64 *)(uintptr_t)va), __ATOMIC_ACQUIRE);
	pthread_rwlock_unlock(&as.looks);
	return there;
}

/* Of the lock's holder: with the map's change, as whoever misses it in the map asks here next. */
static void remember(const struct entry *e)
{
	as.freed[as.next_freed] = (struct freed){
		.base = e->base, .size = e->r->size, .kind = e->r->kind, .device = e->r->device,
	};
	as.next_freed = (as.next_freed + 1) % REMEMBERED;
}

/* What was taken out of a map may be unmapped now: nobody looks at a word there any more. */
static void looks_are_over(void)
{
	pthread_rwlock_wrlock(&as.looks);
	pthread_rwlock_unlock(&as.looks);
}

bool npuacl_place_in(enum npuacl_place_kind kind, u64 va, struct npuacl_place *out)
{
	struct entry e;
	bool found;
	u64 next;

	pthread_mutex_lock(&as.lock);
	found = seek(map_of(kind), va, &e, &next);
	pthread_mutex_unlock(&as.lock);
	if (found)
		unpack(&e, out);
	return found && out->kind == kind;
}

/* ---- Changing --------------------------------------------------------------------------- */

/* Of the lock's holder. */
static void begin(void)
{
	SET(as.gen, as.gen + 1);
}

static void end(void)
{
	SET(as.gen, as.gen + 1);
}

static void put(struct entry *to, const struct entry *e)
{
	SET(to->base, e->base);
	SET(to->end, e->end);
	SET(to->info, e->info);
	SET(to->r, e->r);
}

/* A slot more may be had, and a leaf. */
static bool reserve(struct map *m)
{
	struct top *t = m->top, *bigger;
	u32 i, room;

	if (!as.spare) {
		as.spare = calloc(1, sizeof(*as.spare));
		if (!as.spare)
			return false;
	}
	if (t && t->n < t->room)
		return true;
	room = t ? 2 * t->room : 16;
	bigger = calloc(1, sizeof(*bigger) + room * sizeof(bigger->slot[0]));
	if (!bigger)
		return false;
	bigger->room = room;
	bigger->older = t;
	for (i = 0; t && i < t->n; i++)
		bigger->slot[i] = t->slot[i];
	bigger->n = t ? t->n : 0;
	/* the old one stays: somebody may be reading it */
	SET(m->top, bigger);
	return true;
}

static void slot_insert(struct top *t, u32 at, u64 first, struct leaf *l)
{
	u32 i;

	for (i = t->n; i > at; i--) {
		SET(t->slot[i].first, t->slot[i - 1].first);
		SET(t->slot[i].leaf, t->slot[i - 1].leaf);
	}
	SET(t->slot[at].first, first);
	SET(t->slot[at].leaf, l);
	SET(t->n, t->n + 1);
}

static struct leaf *leaf_take(void)
{
	struct leaf *l = as.spare;

	as.spare = l->next;
	SET(l->n, 0);
	return l;
}

/* The upper half of a full leaf, or nothing if it is the last of all that grows, to a new one. */
static void split(struct top *t, u32 at, u64 base)
{
	struct leaf *l = t->slot[at].leaf, *right = leaf_take();
	u32 keep = at + 1 == t->n && base > l->e[LEAF - 1].base ? LEAF : LEAF / 2, i;

	for (i = keep; i < LEAF; i++)
		put(&right->e[i - keep], &l->e[i]);
	SET(right->n, LEAF - keep);
	SET(l->n, keep);
	slot_insert(t, at + 1, right->n ? right->e[0].base : base, right);
}

static void insert(struct map *m, const struct entry *e)
{
	struct top *t = m->top;
	struct leaf *l;
	u32 at, k, i;

	begin();
	if (!t->n)
		slot_insert(t, 0, e->base, leaf_take());
	at = slots_upto(t, t->n, e->base);
	at -= at > 0;
	if (t->slot[at].leaf->n == LEAF) {
		split(t, at, e->base);
		at += e->base >= t->slot[at + 1].first;
	}
	l = t->slot[at].leaf;
	k = entries_upto(l, l->n, e->base);
	for (i = l->n; i > k; i--)
		put(&l->e[i], &l->e[i - 1]);
	put(&l->e[k], e);
	SET(l->n, l->n + 1);
	if (!k)
		SET(t->slot[at].first, e->base);
	end();
}

/* There is one that begins at @base. */
static void delete(struct map *m, u64 base)
{
	struct top *t = m->top;
	u32 at = slots_upto(t, t->n, base) - 1, i;
	struct leaf *l = t->slot[at].leaf;

	begin();
	for (i = entries_upto(l, l->n, base); i < l->n; i++)
		put(&l->e[i - 1], &l->e[i]);
	SET(l->n, l->n - 1);
	if (l->n) {
		SET(t->slot[at].first, l->e[0].base);
	} else {
		for (i = at + 1; i < t->n; i++) {
			SET(t->slot[i - 1].first, t->slot[i].first);
			SET(t->slot[i - 1].leaf, t->slot[i].leaf);
		}
		SET(t->n, t->n - 1);
		l->next = as.spare;
		as.spare = l;
	}
	end();
}

int npuacl_range_add(struct npuacl_range *r)
{
	struct entry e = { .base = r->base, .end = r->base + r->room, .info = pack(r), .r = r }, hit;
	struct map *m = map_of(r->kind);
	int err = 0;
	u64 next;

	pthread_mutex_lock(&as.lock);
	if (seek(m, r->base, &hit, &next) || next < e.end)
		err = -EEXIST;
	else if (!reserve(m))
		err = -ENOMEM;
	else
		insert(m, &e);
	pthread_mutex_unlock(&as.lock);
	if (!err)
		NPUACL_CHECK(npuacl_check_made(r));
	return err;
}

struct npuacl_range *npuacl_range_take(u64 base, u32 kinds)
{
	struct npuacl_range *r = NULL;
	struct entry e;
	u64 next;
	u32 i;

	pthread_mutex_lock(&as.lock);
	for (i = 0; i < MAPS && !r; i++) {
		if (!seek(&as.map[i], base, &e, &next) || e.base != base || !(NPUACL_BIT(e.r->kind) & kinds))
			continue;
		remember(&e);
		delete(&as.map[i], base);
		r = e.r;
	}
	pthread_mutex_unlock(&as.lock);
	if (r)
		looks_are_over();
	return r;
}

struct npuacl_range *npuacl_range_take_in(enum npuacl_place_kind kind, u64 from, u64 to, s32 device)
{
	struct map *m = map_of(kind);
	struct npuacl_range *r = NULL;
	u64 at = from, next;
	struct entry e;

	pthread_mutex_lock(&as.lock);
	while (!r && at < to) {
		if (!seek(m, at, &e, &next)) {
			at = next;
			continue;
		}
		if (e.base >= from && e.r->kind == kind && (device < 0 || e.r->device == (u32)device)) {
			remember(&e);
			delete(m, e.base);
			r = e.r;
		}
		at = e.end;
	}
	pthread_mutex_unlock(&as.lock);
	if (r)
		looks_are_over();
	return r;
}

bool npuacl_range_with(u32 kinds, u64 va, void (*fn)(struct npuacl_range *r, void *arg), void *arg)
{
	bool found = false;
	struct entry e;
	u64 next;
	u32 i;

	pthread_mutex_lock(&as.lock);
	for (i = 0; i < MAPS && !found; i++) {
		found = seek(&as.map[i], va, &e, &next) && NPUACL_BIT(e.r->kind) & kinds;
		if (found)
			fn(e.r, arg);
	}
	pthread_mutex_unlock(&as.lock);
	return found;
}

void npuacl_range_flags(struct npuacl_range *r, u32 flags)
{
	struct map *m = map_of(r->kind);
	struct top *t;
	struct leaf *l;
	u32 at, k;

	pthread_mutex_lock(&as.lock);
	t = m->top;
	at = t ? slots_upto(t, t->n, r->base) : 0;
	l = at ? t->slot[at - 1].leaf : NULL;
	k = l ? entries_upto(l, l->n, r->base) : 0;
	r->flags = flags;
	if (k && l->e[k - 1].r == r) {
		begin();
		SET(l->e[k - 1].info, pack(r));
		end();
	}
	pthread_mutex_unlock(&as.lock);
}

void npuacl_address_fork(void)
{
	u32 i;

	for (i = 0; i < MAPS; i++) {
		if (as.map[i].top)
			as.inherited[i] = as.map[i].top;
		as.map[i].top = NULL;
	}
	memset(as.freed, 0, sizeof(as.freed));
	as.gen = (as.gen | 1) + 1;
	pthread_mutex_init(&as.lock, NULL);
	as.looks = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
}

/* ---- Saying what an address is ------------------------------------------------------------ */

void npuacl_range_gone(struct npuacl_range *r)
{
	NPUACL_CHECK(npuacl_check_gone(r));
	free(r);
}

/* The last one of those that are gone. */
static bool find_freed(u64 va, struct freed *f)
{
	u32 i, k;

	for (i = 1; i <= REMEMBERED; i++) {
		k = (as.next_freed + REMEMBERED - i) % REMEMBERED;
		if (as.freed[k].size && va - as.freed[k].base < as.freed[k].size) {
			*f = as.freed[k];
			return true;
		}
	}
	return false;
}

bool npuacl_is_mapped(u64 va)
{
	return !msync((void *)(uintptr_t)(va & ~4095ull), 1, MS_ASYNC) || errno != ENOMEM;
}

bool npuacl_was_freed(u64 va)
{
	struct freed f;
	bool found;

	pthread_mutex_lock(&as.lock);
	found = find_freed(va, &f);
	pthread_mutex_unlock(&as.lock);
	/* host memory and reserved addresses are the system's or the program's again: so is what is there now */
	return found && !((f.kind == NPUACL_PINNED || f.kind == NPUACL_RESERVED || f.kind == NPUACL_REGISTERED) &&
			  npuacl_is_mapped(va));
}

static const char *kind_text(u32 kind, u32 flags)
{
	static const char *const text[] = {
		[NPUACL_DEVICE] = "the device buffer", [NPUACL_PINNED] = "the pinned host memory",
		[NPUACL_MAPPED] = "the mapped device memory", [NPUACL_IMPORTED] = "the imported device memory",
		[NPUACL_REGISTERED] = "the registered host memory",
		[NPUACL_RESERVED] = "the reserved addresses",
	};

	return flags & NPUACL_PLACE_HOST ? "the mapped host memory" : text[kind];
}

const char *npuacl_explain(u64 va, char *buf, size_t size)
{
	struct npuacl_place p;
	struct freed f;
	const char *how;
	bool found;
	int n;

	npuacl_place_of(va, &p);
	if (p.kind != NPUACL_PAGEABLE || npuacl_place_in(NPUACL_RESERVED, va, &p)) {
		n = va == p.base ? 0 : snprintf(buf, size, "%" PRIu64 " bytes into ", va - p.base);
		n += snprintf(buf + n, size - (size_t)n, "%s of %" PRIu64 " bytes at %#" PRIx64,
			      kind_text(p.kind, p.flags), p.size, p.base);
		if (npuacl_on_device(&p) && (size_t)n < size)
			snprintf(buf + n, size - (size_t)n, ", device %u", p.device);
		return buf;
	}
	pthread_mutex_lock(&as.lock);
	found = find_freed(va, &f);
	pthread_mutex_unlock(&as.lock);
	how = found && f.kind == NPUACL_REGISTERED ? "unregistered" : "freed";
	if (!found)
		snprintf(buf, size, "memory that acl knows nothing of");
	else if (va == f.base)
		snprintf(buf, size, "%s of %" PRIu64 " bytes that was %s already", kind_text(f.kind, 0), f.size, how);
	else
		snprintf(buf, size, "%" PRIu64 " bytes into %s of %" PRIu64 " bytes at %#" PRIx64 " that was %s",
			 va - f.base, kind_text(f.kind, 0), f.size, f.base, how);
	return buf;
}
