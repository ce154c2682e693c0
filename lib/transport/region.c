// SPDX-License-Identifier: MIT
/*
 * Registered memory: what peers may reach.  It is written down in the endpoint's desk,
 * with the window by which it can be opened, and where the machine has UDMA a segment.
 * A description for a peer names that place and what it has to find there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "transport.h"

#define DESC_MAGIC	0x4d454d434d4d4348ull

struct npuemu_slab hcomm_mems = {
	.what = "registration", .size = NPUEMU_SLAB_SIZE(struct hcomm_mem), .max = 65536,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* What HcommMemExport() gives out. */
struct desc {
	u64 magic;
	u64 desk, secret;
	u64 at, gen;
	u64 va, bytes;
	u64 type;
	u64 sum;
};

/* ---- Registering ------------------------------------------------------------------------- */

static HcclResult device_memory(const char *what, const CommMem *mem, struct hcomm_region *r, struct npuemu_seg **seg)
{
	struct npuemu_seg_attr attr = {
		.size = sizeof(attr), .access = NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE | NPUEMU_ACCESS_ATOMIC,
		.bytes = mem->size,
	};
	u64 va = (u64)(uintptr_t)mem->addr;
	struct npuacl_window w;
	struct npuemu_buf *buf;
	char text[192];
	aclError err;

	err = npuacl_window_of(what, va, &w);
	if (err)
		return hccl_fail_acl(err, what);
	if (mem->size > w.end - va)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %" PRIu64 " bytes from %p on, but it is %s", what, mem->size,
				  mem->addr, npuacl_explain(va, text, sizeof(text)));
	r->key = w.key.id;
	r->secret = w.key.secret;
	r->off = va - w.base;
	buf = npuacl_export_buf(w.key.id);
	if (!npuacl.info.has_udma || !buf)
		return HCCL_SUCCESS;	/* another process's: it can be mapped, not given tokens for */
	attr.offset = r->off;
	if (npuemu_seg_register(buf, &attr, seg) || npuemu_seg_query(*seg, &r->seg))
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: no segment for %" PRIu64 " bytes at %p: %s", what, mem->size,
				  mem->addr, npuemu_errmsg());
	r->has_seg = 1;
	return HCCL_SUCCESS;
}

static HcclResult check(const char *what, const char *tag, const CommMem *mem)
{
	u64 va = (u64)(uintptr_t)mem->addr;
	struct npuacl_side side;
	aclError err;

	if (!mem->addr)
		return hccl_null(what, "mem->addr");
	if (!mem->size || va + mem->size < va)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %" PRIu64 " bytes from %p on", what, mem->size, mem->addr);
	if (tag && strnlen(tag, HCOMM_TAG) == HCOMM_TAG)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: memTag has more than %u characters: \"%.20s...\"", what,
				  HCOMM_TAG - 1, tag);
	if (mem->type != COMM_MEM_TYPE_DEVICE && mem->type != COMM_MEM_TYPE_HOST)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no type of memory %d; it is device (0) or host (1)", what,
				  (int)mem->type);
	err = npuacl_side(what, "memory", va, mem->size, &side);
	if (err)
		return hccl_fail_acl(err, what);
	if (npuacl_on_device(&side.at) != (mem->type == COMM_MEM_TYPE_DEVICE))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %p is %s memory, not %s memory", what, mem->addr,
				  npuacl_on_device(&side.at) ? "device" : "host",
				  npuacl_on_device(&side.at) ? "host" : "device");
	if (side.split)
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: %" PRIu64 " bytes from %p on are of several mappings: register each",
				  what, mem->size, mem->addr);
	return HCCL_SUCCESS;
}

/* ep->lock held */
static HcclResult place(const char *what, struct hcomm_endpoint *ep, u32 *at)
{
	struct hcomm_public *p = ep->desk->pub;
	u32 i;

	for (i = 0; i < HCOMM_REGIONS && READ_ONCE(p->region[i].gen); i++)
		;
	if (i == HCOMM_REGIONS)
		return hccl_fail(HCCL_E_UNAVAIL, "EI0003", "%s: the endpoint has %u registrations, the most it can", what,
				  HCOMM_REGIONS);
	*at = i;
	return HCCL_SUCCESS;
}

/* ep->lock held */
static HcclResult enter(const char *what, struct hcomm_endpoint *ep, struct hcomm_mem *m, const struct hcomm_region *r)
{
	struct hcomm_public *p = ep->desk->pub;
	HcclResult ret = place(what, ep, &m->at);

	if (ret)
		return ret;
	m->gen = hcomm_number();
	p->region[m->at] = *r;
	if (m->at >= p->regions)
		WRITE_ONCE(p->regions, m->at + 1);
	smp_store_release(&p->region[m->at].gen, m->gen);
	m->next = ep->mems;
	ep->mems = m;
	return HCCL_SUCCESS;
}

HcommResult HcommMemReg(EndpointHandle endpointHandle, const char *memTag, const CommMem *mem, HcommMemHandle *memHandle)
{
	static const char what[] = "HcommMemReg";
	struct hcomm_region r = { 0 };
	struct hcomm_endpoint *ep;
	struct hcomm_mem *m;
	HcclResult ret = hcomm_endpoint(what, endpointHandle, &ep);

	if (ret)
		return ret;
	if (!mem || !memHandle)
		return hccl_null(what, mem ? "memHandle" : "mem");
	ret = check(what, memTag, mem);
	if (ret)
		return ret;
	m = npuemu_slab_alloc(&hcomm_mems);
	if (!m)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: this process has %u registrations, the most it can", what,
				  hcomm_mems.max);
	m->ep = ep;
	m->va = (u64)(uintptr_t)mem->addr;
	m->bytes = mem->size;
	r.va = m->va;
	r.bytes = m->bytes;
	r.type = (u32)mem->type;
	snprintf(r.tag, sizeof(r.tag), "%s", memTag ? memTag : "");
	if (mem->type == COMM_MEM_TYPE_DEVICE)
		ret = device_memory(what, mem, &r, &m->seg);
	if (!ret) {
		pthread_mutex_lock(&ep->lock);
		ret = enter(what, ep, m, &r);
		pthread_mutex_unlock(&ep->lock);
	}
	if (ret) {
		if (m->seg)
			npuemu_seg_unregister(m->seg);
		npuemu_slab_free(&hcomm_mems, m);
		return ret;
	}
	npuemu_slab_publish(&hcomm_mems, m);
	*memHandle = m;
	return HCCL_SUCCESS;
}

static HcclResult registration(const char *what, struct hcomm_endpoint *ep, HcommMemHandle handle, struct hcomm_mem **out)
{
	struct hcomm_mem *m = handle;

	if (!m)
		return hccl_null(what, "memHandle");
	if (!npuemu_slab_holds(&hcomm_mems, m, NPUEMU_SLAB_SIZE(*m)) || m->ep != ep)
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %p is no registration of this endpoint, or no longer", what,
				  handle);
	*out = m;
	return HCCL_SUCCESS;
}

HcommResult HcommMemUnreg(EndpointHandle endpointHandle, HcommMemHandle memHandle)
{
	static const char what[] = "HcommMemUnreg";
	struct hcomm_mem *m, **at;
	struct hcomm_endpoint *ep;
	HcclResult ret = hcomm_endpoint(what, endpointHandle, &ep);

	if (!ret)
		ret = registration(what, ep, memHandle, &m);
	if (ret)
		return ret;
	if (!npuemu_slab_retire(&hcomm_mems, m))
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %p was unregistered already", what, memHandle);
	pthread_mutex_lock(&ep->lock);
	for (at = &ep->mems; *at != m; at = &(*at)->next)
		;
	*at = m->next;
	smp_store_release(&ep->desk->pub->region[m->at].gen, 0);
	pthread_mutex_unlock(&ep->lock);
	/* when it is gone no engine of anybody writes there */
	if (m->seg && npuemu_seg_unregister(m->seg))
		ret = hccl_fail(HCCL_E_REMOTE, "EI0006", "%s: %s", what, npuemu_errmsg());
	free(m->desc);
	npuemu_slab_free(&hcomm_mems, m);
	return ret;
}

bool hcomm_registered(struct hcomm_endpoint *ep, u64 va, u64 len)
{
	const struct hcomm_mem *m;

	pthread_mutex_lock(&ep->lock);
	for (m = ep->mems; m; m = m->next)
		if (va - m->va < m->bytes && len <= m->bytes - (va - m->va))
			break;
	pthread_mutex_unlock(&ep->lock);
	return m;
}

HcclResult hcomm_regions_of(const char *what, struct hcomm_endpoint *ep, const HcommChannelDesc *d, u64 *mems)
{
	struct hcomm_mem *m;
	HcclResult ret;
	u32 i;

	if (!d->exchangeAllMems && d->memHandleNum && !d->memHandles)
		return hccl_null(what, "memHandles");
	for (i = 0; !d->exchangeAllMems && i < d->memHandleNum; i++) {
		ret = registration(what, ep, d->memHandles[i], &m);
		if (ret)
			return ret;
		mems[m->at / 64] |= 1ull << m->at % 64;
	}
	pthread_mutex_lock(&ep->lock);
	for (m = d->exchangeAllMems ? ep->mems : NULL; m; m = m->next)
		mems[m->at / 64] |= 1ull << m->at % 64;
	pthread_mutex_unlock(&ep->lock);
	return HCCL_SUCCESS;
}

/* ---- To peers, and from them ---------------------------------------------------------------- */

static u64 sum_of(const struct desc *d)
{
	u64 sum = DESC_MAGIC;
	const u64 *p = &d->magic;

	for (; p != &d->sum; p++)
		sum = npuemu_random(&sum) ^ *p;
	return npuemu_random(&sum);
}

HcommResult HcommMemExport(EndpointHandle endpointHandle, HcommMemHandle memHandle, void **memDesc, uint32_t *memDescLen)
{
	static const char what[] = "HcommMemExport";
	struct hcomm_endpoint *ep;
	struct hcomm_mem *m;
	struct desc *d = NULL;
	HcclResult ret = hcomm_endpoint(what, endpointHandle, &ep);

	if (!ret)
		ret = registration(what, ep, memHandle, &m);
	if (ret)
		return ret;
	if (!memDesc || !memDescLen)
		return hccl_null(what, memDesc ? "memDescLen" : "memDesc");
	pthread_mutex_lock(&ep->lock);
	if (!m->desc)
		m->desc = calloc(1, sizeof(*d));
	d = m->desc;
	if (d) {
		d->magic = DESC_MAGIC;
		d->desk = ep->desk->key.id;
		d->secret = ep->desk->key.secret;
		d->at = m->at;
		d->gen = m->gen;
		d->va = m->va;
		d->bytes = m->bytes;
		d->type = ep->desk->pub->region[m->at].type;
		d->sum = sum_of(d);
	}
	pthread_mutex_unlock(&ep->lock);
	if (!d)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	*memDesc = d;
	*memDescLen = sizeof(*d);
	return HCCL_SUCCESS;
}

static HcclResult read_desc(const char *what, const void *bytes, u32 len, struct desc *d)
{
	if (!bytes)
		return hccl_null(what, "memDesc");
	if (len != sizeof(*d))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: a description has %zu bytes, not %u", what, sizeof(*d), len);
	memcpy(d, bytes, sizeof(*d));
	if (d->magic != DESC_MAGIC || d->sum != sum_of(d) || d->at >= HCOMM_REGIONS)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: these bytes are no description by HcommMemExport()", what);
	return HCCL_SUCCESS;
}

/* ep->lock held: where the pointer to it is. */
static struct hcomm_import **find(struct hcomm_endpoint *ep, const struct desc *d)
{
	struct hcomm_import **i = &ep->imports;

	while (*i && ((*i)->desk->key.id != d->desk || (*i)->at != d->at || (*i)->gen != d->gen))
		i = &(*i)->next;
	return i;
}

/* ep->lock held */
static HcclResult import(const char *what, struct hcomm_endpoint *ep, const struct desc *d)
{
	struct npuacl_key key = { .id = d->desk, .secret = d->secret };
	struct hcomm_import *i = *find(ep, d);
	struct hcomm_desk *desk;
	HcclResult ret;
	u32 pid;

	if (i) {
		i->refs++;
		return HCCL_SUCCESS;
	}
	ret = hcomm_desk_open(what, &key, &desk);
	if (ret)
		return ret;
	if (smp_load_acquire(&desk->pub->region[d->at].gen) != d->gen) {
		pid = desk->pub->pid;
		hcomm_desk_put(desk);
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: process %u has unregistered the memory", what, pid);
	}
	i = calloc(1, sizeof(*i));
	if (!i) {
		hcomm_desk_put(desk);
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	}
	i->desk = desk;
	i->at = (u32)d->at;
	i->gen = d->gen;
	i->refs = 1;
	i->next = ep->imports;
	ep->imports = i;
	return HCCL_SUCCESS;
}

HcommResult HcommMemImport(EndpointHandle endpointHandle, const void *memDesc, uint32_t descLen, CommMem *outMem)
{
	static const char what[] = "HcommMemImport";
	struct hcomm_endpoint *ep;
	struct desc d;
	HcclResult ret = hcomm_endpoint(what, endpointHandle, &ep);

	if (!ret)
		ret = read_desc(what, memDesc, descLen, &d);
	if (ret)
		return ret;
	if (!outMem)
		return hccl_null(what, "outMem");
	pthread_mutex_lock(&ep->lock);
	ret = import(what, ep, &d);
	pthread_mutex_unlock(&ep->lock);
	if (ret)
		return ret;
	outMem->type = (CommMemType)d.type;
	outMem->addr = (void *)(uintptr_t)d.va;
	outMem->size = d.bytes;
	return HCCL_SUCCESS;
}

HcommResult HcommMemUnimport(EndpointHandle endpointHandle, const void *memDesc, uint32_t descLen)
{
	static const char what[] = "HcommMemUnimport";
	struct hcomm_import **at, *gone = NULL;
	struct hcomm_endpoint *ep;
	bool there;
	struct desc d;
	HcclResult ret = hcomm_endpoint(what, endpointHandle, &ep);

	if (!ret)
		ret = read_desc(what, memDesc, descLen, &d);
	if (ret)
		return ret;
	pthread_mutex_lock(&ep->lock);
	at = find(ep, &d);
	there = *at;
	if (there && !--(*at)->refs) {
		gone = *at;
		*at = gone->next;
	}
	pthread_mutex_unlock(&ep->lock);
	if (gone) {
		hcomm_desk_put(gone->desk);
		free(gone);
	}
	return there ? HCCL_SUCCESS : hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: it was not imported here, or no longer is", what);
}

/* ---- Memory of the library's own -------------------------------------------------------------- */

HcommResult HcommMemAlloc(void **ptr, size_t size)
{
	static const char what[] = "HcommMemAlloc";

	if (!ptr)
		return hccl_null(what, "ptr");
	return hccl_from_acl(aclrtMalloc(ptr, size, ACL_MEM_MALLOC_HUGE_FIRST), what);
}

HcommResult HcommMemFree(void *ptr)
{
	static const char what[] = "HcommMemFree";

	if (!ptr)
		return hccl_null(what, "ptr");
	return hccl_from_acl(aclrtFree(ptr), what);
}
