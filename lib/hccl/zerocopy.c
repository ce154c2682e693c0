// SPDX-License-Identifier: MIT
/*
 * Ranges for operations without copies.  Here every operation reads and writes the
 * peers' buffers where they are, so nothing becomes faster; what the real library checks
 * is checked, and a program that is wrong there is wrong here.
 *
 * A range and what is activated in it are known to all communicators of the process.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "comm.h"

struct active {
	struct active *next;
	u64 va, bytes;
};

struct range {
	struct range *next;
	u64 base, bytes;
	struct npuacl_device *dev;
	struct active *active;
};

static struct {
	pthread_mutex_t lock;
	struct range *first;
} zero = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool overlap(u64 a, u64 an, u64 b, u64 bn)
{
	return a < b + bn && b < a + an;
}

/* zero.lock held */
static struct range **range_of(u64 va)
{
	struct range **at = &zero.first;

	while (*at && va - (*at)->base >= (*at)->bytes)
		at = &(*at)->next;
	return at;
}

static HcclResult check(const char *what, HcclComm comm, const void *va, struct hccl_comm **out)
{
	HcclResult ret = hccl_comm(comm, what, out);

	if (ret)
		return ret;
	if (!va)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: the address is NULL", what);
	if ((*out)->servers > 1)
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: the ranks of the communicator are on %u servers; it is for one", what,
				 (*out)->servers);
	return HCCL_SUCCESS;
}

static HcclResult idle(const char *what, const struct hccl_comm *c)
{
	u32 n = READ_ONCE(c->in_flight);

	if (!n)
		return HCCL_SUCCESS;
	return hccl_fail(HCCL_E_AGAIN, "EI0003", "%s: %u operations of the communicator are not over, or recorded in models: synchronize their streams before",
			 what, n);
}

static HcclResult unknown(const char *what, u64 va)
{
	char text[192];

	return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %#" PRIx64 " lies in no range of HcclCommSetMemoryRange; it is %s", what, va,
			 npuacl_explain(va, text, sizeof(text)));
}

/* ---- Ranges ------------------------------------------------------------------------------ */

/* Has another rank named another size in this place? */
static HcclResult sizes_agree(const char *what, struct hccl_comm *c, u32 k, u64 bytes)
{
	u64 theirs;
	u32 i;

	for (i = 0; i < c->ranks; i++) {
		theirs = smp_load_acquire(&c->group->member[i].range[k]);
		if (i != c->rank && theirs && theirs != bytes)
			return hccl_fail(HCCL_E_PARA, "EI0005", "%s: ranks disagree: range %u has %" PRIu64 " bytes on rank %u, but %" PRIu64 " on rank %u",
					 what, k, bytes, c->rank, theirs, i);
	}
	return HCCL_SUCCESS;
}

/* zero.lock held */
static HcclResult range_add(const char *what, struct hccl_comm *c, u64 base, u64 bytes)
{
	struct range *r;
	HcclResult ret;
	u32 k;

	for (r = zero.first; r; r = r->next)
		if (overlap(base, bytes, r->base, r->bytes))
			return hccl_fail(HCCL_E_PARA, "EI0003", "%s: [%#" PRIx64 ", +%" PRIu64 ") overlaps the range of %" PRIu64 " bytes at %#" PRIx64 " that is set already",
					 what, base, bytes, r->bytes, r->base);
	for (k = 0; k < HCCL_RANGES && c->res.range[k]; k++)
		;
	if (k == HCCL_RANGES)
		return hccl_fail(HCCL_E_UNAVAIL, "EI0003", "%s: %u ranges are set, the most there can be", what, k);
	ret = sizes_agree(what, c, k, bytes);
	if (ret)
		return ret;
	r = calloc(1, sizeof(*r));
	if (!r)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	r->base = base;
	r->bytes = bytes;
	r->dev = c->dev;
	r->next = zero.first;
	zero.first = r;
	c->res.range[k] = base;
	smp_store_release(&c->group->member[c->rank].range[k], bytes);
	return HCCL_SUCCESS;
}

HcclResult HcclCommSetMemoryRange(HcclComm comm, void *baseVirPtr, size_t size, size_t alignment, uint64_t flags)
{
	static const char what[] = "HcclCommSetMemoryRange";
	u64 base = (u64)(uintptr_t)baseVirPtr;
	struct npuacl_place p;
	struct hccl_comm *c;
	char text[192];
	HcclResult ret = check(what, comm, baseVirPtr, &c);

	if (ret)
		return ret;
	if (!size || alignment || flags)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: size %zu, alignment %zu, flags %#" PRIx64 "; a size, and 0 for the others", what,
				 size, alignment, flags);
	if (!npuacl_place_in(NPUACL_RESERVED, base, &p) || p.base != base)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: baseVirPtr is %s; it takes what aclrtReserveMemAddress gave", what,
				 npuacl_explain(base, text, sizeof(text)));
	if (size > p.end - p.base)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %zu bytes, but %" PRIu64 " are reserved at %p", what, size, p.size,
				 baseVirPtr);
	pthread_mutex_lock(&zero.lock);
	ret = range_add(what, c, base, size);
	pthread_mutex_unlock(&zero.lock);
	return ret;
}

static void range_forget(struct hccl_comm *c, u64 base)
{
	u32 k;

	for (k = 0; k < HCCL_RANGES; k++)
		if (c->res.range[k] == base) {
			c->res.range[k] = 0;
			smp_store_release(&c->group->member[c->rank].range[k], 0);
		}
}

static void range_free(struct range *r)
{
	struct active *a;

	while ((a = r->active)) {
		r->active = a->next;
		free(a);
	}
	free(r);
}

/* zero.lock held */
static HcclResult range_remove(const char *what, struct hccl_comm *c, u64 base)
{
	struct range **at = range_of(base), *r = *at;
	u32 k;

	if (!r || r->base != base)
		return unknown(what, base);
	for (k = 0; k < HCCL_RANGES && c->res.range[k] != base; k++)
		;
	if (k == HCCL_RANGES)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: the range at %#" PRIx64 " was set by another communicator, which has to unset it",
				 what, base);
	if (r->active)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %" PRIu64 " bytes at %#" PRIx64 " in it are active: HcclCommDeactivateCommMemory comes first",
				 what, r->active->bytes, r->active->va);
	*at = r->next;
	range_free(r);
	range_forget(c, base);
	return HCCL_SUCCESS;
}

HcclResult HcclCommUnsetMemoryRange(HcclComm comm, void *baseVirPtr)
{
	static const char what[] = "HcclCommUnsetMemoryRange";
	struct hccl_comm *c;
	HcclResult ret = check(what, comm, baseVirPtr, &c);

	if (!ret)
		ret = idle(what, c);
	if (ret)
		return ret;
	pthread_mutex_lock(&zero.lock);
	ret = range_remove(what, c, (u64)(uintptr_t)baseVirPtr);
	pthread_mutex_unlock(&zero.lock);
	return ret;
}

/* ---- What is active in them ------------------------------------------------------------------ */

/* zero.lock held */
static HcclResult activate(const char *what, struct hccl_comm *c, u64 va, u64 bytes)
{
	struct range *r = *range_of(va);
	HcclResult ret = HCCL_SUCCESS;
	struct active *a;
	u32 k;

	if (!r)
		return unknown(what, va);
	if (bytes > r->bytes - (va - r->base))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: [%#" PRIx64 ", +%" PRIu64 ") goes beyond the range of %" PRIu64 " bytes at %#" PRIx64,
				 what, va, bytes, r->bytes, r->base);
	for (k = 0; k < HCCL_RANGES && !ret; k++)
		if (c->res.range[k] == r->base)
			ret = sizes_agree(what, c, k, r->bytes);
	if (ret)
		return ret;
	for (a = r->active; a; a = a->next)
		if (overlap(va, bytes, a->va, a->bytes))
			return hccl_fail(HCCL_E_PARA, "EI0003", "%s: [%#" PRIx64 ", +%" PRIu64 ") overlaps the %" PRIu64 " bytes at %#" PRIx64 " that are active already",
					 what, va, bytes, a->bytes, a->va);
	a = calloc(1, sizeof(*a));
	if (!a)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	a->va = va;
	a->bytes = bytes;
	a->next = r->active;
	r->active = a;
	return HCCL_SUCCESS;
}

HcclResult HcclCommActivateCommMemory(HcclComm comm, void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
				      uint64_t flags)
{
	static const char what[] = "HcclCommActivateCommMemory";
	struct hccl_comm *c;
	HcclResult ret = check(what, comm, virPtr, &c);
	aclError err;

	if (ret)
		return ret;
	if (!size || offset || flags)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: size %zu, offset %zu, flags %#" PRIx64 "; a size, and 0 for the others", what,
				 size, offset, flags);
	if (!handle)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: handle is NULL", what);
	pthread_mutex_lock(&zero.lock);
	if (!*range_of((u64)(uintptr_t)virPtr))
		ret = unknown(what, (u64)(uintptr_t)virPtr);
	err = ret ? ACL_SUCCESS : npuacl_vmm_is(what, (u64)(uintptr_t)virPtr, size, handle);
	if (err) {
		ret = hccl_fail_acl(err, what);
		ret = ret == HCCL_E_RUNTIME ? HCCL_E_PARA : ret;	/* it is the arguments that do not fit */
	}
	if (!ret)
		ret = activate(what, c, (u64)(uintptr_t)virPtr, size);
	pthread_mutex_unlock(&zero.lock);
	return ret;
}

HcclResult HcclCommDeactivateCommMemory(HcclComm comm, void *virPtr)
{
	static const char what[] = "HcclCommDeactivateCommMemory";
	u64 va = (u64)(uintptr_t)virPtr;
	struct active **at, *a = NULL;
	struct hccl_comm *c;
	struct range *r;
	HcclResult ret = check(what, comm, virPtr, &c);

	if (!ret)
		ret = idle(what, c);
	if (ret)
		return ret;
	pthread_mutex_lock(&zero.lock);
	r = *range_of(va);
	for (at = r ? &r->active : NULL; r && (a = *at) && a->va != va; at = &a->next)
		;
	if (a) {
		*at = a->next;
		free(a);
	} else {
		ret = r ? hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: nothing that begins at %p is active", what, virPtr) : unknown(what, va);
	}
	pthread_mutex_unlock(&zero.lock);
	return ret;
}

/* ---- The end ------------------------------------------------------------------------------------ */

void hccl_ranges_free(struct hccl_comm *c)
{
	struct range **at, *r;
	u32 k;

	pthread_mutex_lock(&zero.lock);
	for (k = 0; c->res.range && k < HCCL_RANGES; k++) {
		if (!c->res.range[k])
			continue;
		at = range_of(c->res.range[k]);
		r = *at;
		if (r) {
			*at = r->next;
			range_free(r);
		}
		range_forget(c, c->res.range[k]);
	}
	pthread_mutex_unlock(&zero.lock);
}

void hccl_ranges_fork(void)
{
	memset(&zero, 0, sizeof(zero));
	pthread_mutex_init(&zero.lock, NULL);
}
