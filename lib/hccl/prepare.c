// SPDX-License-Identifier: MIT
/*
 * Memory for transfers by one side that the process registers once, and binds to as
 * many communicators as it likes.  When a communicator is prepared all of its ranks tell
 * each other what they have bound, and enable it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "oneside.h"

#define GLOBALS	65536u

struct global {
	CommMem mem;
	u32 bound;		/* to communicators; atomic */
};

static struct npuemu_slab globals = {
	.what = "global memory", .size = NPUEMU_SLAB_SIZE(struct global), .max = GLOBALS,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

void hccl_globals_fork(void)
{
	npuemu_slab_fork(&globals);
}

static HcclResult global_of(const char *what, void *handle, struct global **out)
{
	if (!handle)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: memHandle is NULL", what);
	if (!npuemu_slab_holds(&globals, handle, NPUEMU_SLAB_SIZE(struct global)))
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %p is no handle of HcclRegisterGlobalMem, or has been deregistered", what,
				 handle);
	*out = handle;
	return HCCL_SUCCESS;
}

HcclResult HcclRegisterGlobalMem(const CommMem *mem, void **memHandle)
{
	static const char what[] = "HcclRegisterGlobalMem";
	struct npuacl_place p;
	struct global *g;
	char text[192];

	if (!mem || !memHandle || !mem->addr)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, !mem ? "mem" : memHandle ? "mem->addr" : "memHandle");
	if (!mem->size || (mem->type != COMM_MEM_TYPE_DEVICE && mem->type != COMM_MEM_TYPE_HOST))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: type %d, size %" PRIu64 "; device memory (0) or host memory (1), and a size", what,
				 (int)mem->type, mem->size);
	npuacl_place_of((u64)(uintptr_t)mem->addr, &p);
	if (npuacl_on_device(&p) != (mem->type == COMM_MEM_TYPE_DEVICE))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: type is %s memory, but %p is %s", what,
				 mem->type == COMM_MEM_TYPE_DEVICE ? "device" : "host", mem->addr,
				 npuacl_explain((u64)(uintptr_t)mem->addr, text, sizeof(text)));
	g = npuemu_slab_alloc(&globals);
	if (!g)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: this process has registered %u times, the most it can", what, GLOBALS);
	hccl_begin();
	g->mem = *mem;
	npuemu_slab_publish(&globals, g);
	*memHandle = g;
	return HCCL_SUCCESS;
}

HcclResult HcclDeregisterGlobalMem(void *memHandle)
{
	static const char what[] = "HcclDeregisterGlobalMem";
	struct global *g;
	HcclResult ret = global_of(what, memHandle, &g);

	if (ret)
		return ret;
	if (READ_ONCE(g->bound))
		return hccl_fail(HCCL_E_AGAIN, "EI0003", "%s: it is bound to %u communicator(s): HcclCommUnbindMem comes first", what,
				 READ_ONCE(g->bound));
	if (!npuemu_slab_retire(&globals, g))
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: %p has been deregistered already", what, memHandle);
	npuemu_slab_free(&globals, g);
	return HCCL_SUCCESS;
}

HcclResult HcclCommBindMem(HcclComm comm, void *memHandle)
{
	static const char what[] = "HcclCommBindMem";
	struct hccl_comm *c;
	struct hccl_mem *m;
	struct global *g;
	HcclResult ret = hccl_comm(comm, what, &c);

	if (!ret)
		ret = global_of(what, memHandle, &g);
	if (!ret)
		ret = hccl_mem_add(c, what, HCCL_ALL_RANKS, (int)g->mem.type, g->mem.addr, g->mem.size, g, &m);
	if (!ret)
		npuemu_fetch_add(&g->bound, 1);
	return ret;
}

HcclResult HcclCommUnbindMem(HcclComm comm, void *memHandle)
{
	static const char what[] = "HcclCommUnbindMem";
	struct hccl_mem by = { .ours = true, .rank = HCCL_ALL_RANKS };
	struct hccl_comm *c;
	struct global *g;
	HcclResult ret = hccl_comm(comm, what, &c);

	if (!ret)
		ret = global_of(what, memHandle, &g);
	if (ret)
		return ret;
	by.global = g;
	by.va = (u64)(uintptr_t)g->mem.addr;
	by.bytes = g->mem.size;
	ret = hccl_mem_remove(c, what, &by);
	if (!ret)
		npuemu_fetch_add(&g->bound, -1u);
	return ret;
}

/* What a communicator had bound when it was destroyed. */
void hccl_globals_unbind(struct hccl_comm *c)
{
	struct hccl_mem *m;

	for (m = c->res.mems; m; m = m->next)
		if (m->global && npuemu_slab_alive(&globals, m->global))
			npuemu_fetch_add(&((struct global *)(uintptr_t)m->global)->bound, -m->times);
}

/* ---- Told to all --------------------------------------------------------------------------- */

static HcclResult write_ours(struct hccl_comm *c, const char *what, struct hccl_blob *b, u64 *count)
{
	struct hccl_mem *m;
	HcclResult ret;
	u64 n = 0;

	pthread_mutex_lock(&c->res.lock);
	for (m = c->res.mems; m; m = m->next)
		n += m->ours && m->global;
	ret = hccl_blob_make(c, what, n * sizeof(struct hccl_desc), b);
	*count = 0;
	for (m = c->res.mems; m && !ret; m = m->next)
		if (m->ours && m->global)
			hccl_desc_fill(c, m, (struct hccl_desc *)b->ptr + (*count)++);
	pthread_mutex_unlock(&c->res.lock);
	return ret;
}

static HcclResult enable(struct hccl_comm *c, const char *what, const struct hccl_note *n, u32 rank)
{
	struct hccl_desc *list = NULL, d;
	HcclResult ret = HCCL_SUCCESS;
	u64 i;

	if (n->off > GLOBALS)
		return hccl_fail(HCCL_E_INTERNAL, "EI9999", "%s: rank %u tells of %" PRIu64 " pieces of memory", what, rank, n->off);
	ret = hccl_blob_read(what, n->key, n->secret, n->off * sizeof(*list), (void **)&list);
	for (i = 0; i < n->off && !ret; i++) {
		ret = hccl_desc_check(c, what, &list[i], &d);
		/* host memory of other processes stays out of reach, the rest is enabled */
		if (!ret && (d.type == COMM_MEM_TYPE_DEVICE || smp_load_acquire(&c->local->rank[rank])))
			ret = hccl_mem_enable(c, what, &d, false);
	}
	free(list);
	return ret;
}

static HcclResult prepare(struct hccl_comm *c, const char *what, s64 limit_ns)
{
	struct hccl_note all[HCCL_MAX_RANKS], mine = { .kind = HCCL_NOTE_PREPARE };
	struct npuacl_thread said;
	struct hccl_blob b = { NULL };
	HcclResult ret, failed;
	u32 i;

	failed = write_ours(c, what, &b, &mine.off);
	mine.failed = failed;
	mine.key = b.window.key.id;
	mine.secret = b.window.key.secret;
	said = npuacl_self;
	ret = hccl_exchange(c, what, &mine, limit_ns, all);
	if (!failed && !ret) {
		for (i = 0; i < c->ranks && !failed; i++)
			failed = enable(c, what, &all[i], i);
		said = npuacl_self;
		/* from here on nobody reads the lists any more */
		mine = (struct hccl_note){ .kind = HCCL_NOTE_OPENED, .failed = failed };
		ret = hccl_exchange(c, what, &mine, limit_ns, all);
	}
	hccl_blob_free(&b);
	if (failed)
		npuacl_self = said;
	return failed ? failed : ret;
}

HcclResult HcclCommPrepare(HcclComm comm, const HcclPrepareConfig *prepareConfig, const int timeout)
{
	static const char what[] = "HcclCommPrepare";
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, what, &c);

	if (ret)
		return ret;
	if (!prepareConfig)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: prepareConfig is NULL", what);
	if (prepareConfig->topoType != HCCL_TOPO_FULLMESH || timeout < 0)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: topoType %d, timeout %d; 0 (full mesh), and seconds", what,
				 (int)prepareConfig->topoType, timeout);
	ret = hccl_broken(c, what);
	return ret ? ret : prepare(c, what, (s64)timeout * 1000000000ll);
}
