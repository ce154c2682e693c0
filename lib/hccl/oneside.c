// SPDX-License-Identifier: MIT
/*
 * Memory for transfers by one side: registered for a peer, told to it, enabled there.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include "oneside.h"

#define MAGIC	0x4d454d4445534349ull

/* ---- Descriptions ------------------------------------------------------------------------ */

static u64 sum_of(const struct hccl_desc *d)
{
	const u64 *w = (const u64 *)d;
	u64 sum = MAGIC;
	size_t i;

	for (i = 0; i < offsetof(struct hccl_desc, sum) / sizeof(*w); i++) {
		sum ^= w[i];
		sum = npuemu_random(&sum);
	}
	return sum;
}

void hccl_desc_fill(struct hccl_comm *c, const struct hccl_mem *m, struct hccl_desc *d)
{
	memset(d, 0, sizeof(*d));
	d->magic = MAGIC;
	d->group = c->local->key.id;
	d->owner = c->rank;
	d->peer = m->rank;
	d->type = m->type;
	d->va = m->va;
	d->bytes = m->bytes;
	d->ref = m->ref;
	d->sum = sum_of(d);
}

HcclResult hccl_desc_check(struct hccl_comm *c, const char *what, const void *bytes, struct hccl_desc *d)
{
	memcpy(d, bytes, sizeof(*d));
	if (d->magic != MAGIC || d->sum != sum_of(d) || d->owner >= c->ranks || !d->bytes)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: these bytes are no description as HcclRegisterMem gave it: all %zu have to be passed on",
				 what, sizeof(HcclMemDesc));
	if (d->group != c->local->key.id)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: the description is of memory that rank %u registered with another communicator", what,
				 d->owner);
	return HCCL_SUCCESS;
}

/* ---- The list -------------------------------------------------------------------------------- */

static bool is(const struct hccl_mem *m, const struct hccl_mem *by)
{
	return m->ours == by->ours && m->global == by->global &&
	       (by->global || (m->rank == by->rank && m->va == by->va && m->bytes == by->bytes));
}

/* res.lock held */
static struct hccl_mem **find(struct hccl_comm *c, const struct hccl_mem *by)
{
	struct hccl_mem **at = &c->res.mems;

	while (*at && !is(*at, by))
		at = &(*at)->next;
	return at;
}

static void mem_free(struct hccl_comm *c, struct hccl_mem *m)
{
	if (m->ours)
		hccl_ref_drop(c, &m->ref);
	npuacl_import_put(m->import);
	npuacl_span_close(m->span);
	free(m);
}

static HcclResult host_memory(const char *what, void *addr)
{
	u64 va = (u64)(uintptr_t)addr;
	struct npuacl_place p;
	char text[192];

	npuacl_place_of(va, &p);
	if (!npuacl_on_device(&p))
		return HCCL_SUCCESS;
	return hccl_fail(HCCL_E_PARA, "EI0003", "%s: type is host memory (1), but %p is %s", what, addr,
			 npuacl_explain(va, text, sizeof(text)));
}

HcclResult hccl_mem_add(struct hccl_comm *c, const char *what, u32 rank, int type, void *addr, u64 size,
			const void *global, struct hccl_mem **out)
{
	struct hccl_mem *m = calloc(1, sizeof(*m)), *old;
	HcclResult ret;

	if (!m)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	m->ours = true;
	m->rank = rank;
	m->type = (u32)type;
	m->va = (u64)(uintptr_t)addr;
	m->bytes = size;
	m->ptr = addr;
	m->global = global;
	m->ref.va = m->va;
	ret = type == COMM_MEM_TYPE_HOST ? host_memory(what, addr) : hccl_ref_make(c, what, "addr", addr, size, &m->ref);
	if (ret) {
		free(m);
		return ret;
	}
	pthread_mutex_lock(&c->res.lock);
	old = *find(c, m);
	if (!old) {
		m->next = c->res.mems;
		c->res.mems = m;
	}
	*out = old ? old : m;
	(*out)->times++;
	pthread_mutex_unlock(&c->res.lock);
	if (old)
		mem_free(c, m);
	return HCCL_SUCCESS;
}

static HcclResult busy(const char *what, const struct hccl_mem *m)
{
	return hccl_fail(HCCL_E_AGAIN, "EI0003", "%s: %u transfers that use the %" PRIu64 " bytes at %#" PRIx64 " are not over: synchronize their streams before",
			 what, m->uses, m->bytes, m->va);
}

HcclResult hccl_mem_remove(struct hccl_comm *c, const char *what, const struct hccl_mem *by)
{
	struct hccl_mem **at, *m;
	HcclResult ret = HCCL_SUCCESS;

	pthread_mutex_lock(&c->res.lock);
	at = find(c, by);
	m = *at;
	if (!m)
		ret = hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: the %" PRIu64 " bytes at %#" PRIx64 " of rank %u are not %s (any more)", what,
				by->bytes, by->va, by->ours ? c->rank : by->rank, by->ours ? "registered" : "enabled");
	else if (m->times == 1 && READ_ONCE(m->uses))
		ret = busy(what, m);
	else if (--m->times)
		m = NULL;
	else
		*at = m->next;
	pthread_mutex_unlock(&c->res.lock);
	if (!ret && m)
		mem_free(c, m);
	return ret;
}

struct hccl_mem *hccl_mem_use(struct hccl_comm *c, bool ours, u32 rank, u64 va, u64 bytes)
{
	struct hccl_mem *m;

	pthread_mutex_lock(&c->res.lock);
	for (m = c->res.mems; m; m = m->next) {
		if (m->ours != ours || (m->rank != rank && m->rank != HCCL_ALL_RANKS))
			continue;
		if (va - m->va < m->bytes && bytes <= m->bytes - (va - m->va))
			break;
	}
	if (m)
		npuemu_fetch_add(&m->uses, 1);
	pthread_mutex_unlock(&c->res.lock);
	return m;
}

void hccl_mems_free(struct hccl_comm *c)
{
	struct hccl_mem *m;

	while ((m = c->res.mems)) {
		c->res.mems = m->next;
		mem_free(c, m);
	}
}

/* ---- Bytes for others --------------------------------------------------------------------------- */

HcclResult hccl_blob_make(struct hccl_comm *c, const char *what, u64 bytes, struct hccl_blob *b)
{
	aclError err;

	memset(b, 0, sizeof(*b));
	if (npuemu_buf_alloc(npuacl.board, c->dev->phys, bytes ? bytes : 1, 0, &b->buf)) {
		b->buf = NULL;
		return hccl_fail(HCCL_E_OOM, "EI0011", "%s: %s", what, npuemu_errmsg());
	}
	b->ptr = npuemu_buf_ptr(b->buf);
	err = npuacl_window_offer(what, b->buf, npuemu_buf_bytes(b->buf), c->dev->phys, &b->window);
	if (!err)
		return HCCL_SUCCESS;
	hccl_blob_free(b);
	return hccl_fail_acl(err, what);
}

void hccl_blob_free(struct hccl_blob *b)
{
	if (!b->buf)
		return;
	npuacl_export_drop(b->window.key.id);
	npuemu_buf_free(b->buf);
	b->buf = NULL;
}

HcclResult hccl_blob_read(const char *what, u64 id, u64 secret, u64 bytes, void **out)
{
	struct npuacl_key key = { .id = id, .secret = secret };
	struct npuemu_buf *buf = npuacl_export_buf(id);
	struct npuacl_import *import;
	aclError err;
	u8 *ptr;

	*out = calloc(1, bytes ? bytes : 1);
	if (!*out)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	err = npuacl_window_open(what, &key, &import, &ptr);
	if (!err && bytes > npuemu_buf_bytes(import ? import->buf : buf))
		err = npuacl_fail(ACL_ERROR_RT_IPC_ERROR, "%s: what the other rank wrote is damaged", what);
	else if (!err)
		memcpy(*out, ptr, bytes);
	if (!err)
		npuacl_import_put(import);
	if (!err)
		return HCCL_SUCCESS;
	free(*out);
	*out = NULL;
	return hccl_fail_acl(err, what);
}

/* ---- Registered ----------------------------------------------------------------------------------- */

static HcclResult peer(const char *what, HcclComm comm, u32 rank, struct hccl_comm **c)
{
	HcclResult ret = hccl_comm(comm, what, c);

	if (!ret && rank >= (*c)->ranks)
		ret = hccl_fail(HCCL_E_PARA, "EI0003", "%s: rank %u; the communicator has ranks 0 to %u", what, rank, (*c)->ranks - 1);
	return ret;
}

HcclResult HcclRegisterMem(HcclComm comm, uint32_t remoteRank, int type, void *addr, uint64_t size, HcclMemDesc *desc)
{
	static const char what[] = "HcclRegisterMem";
	struct hccl_desc d;
	struct hccl_comm *c;
	struct hccl_mem *m;
	HcclResult ret = peer(what, comm, remoteRank, &c);

	if (ret)
		return ret;
	if (!addr || !desc)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, addr ? "desc" : "addr");
	if (!size || (type != COMM_MEM_TYPE_DEVICE && type != COMM_MEM_TYPE_HOST))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: type %d, size %" PRIu64 "; device memory (0) or host memory (1), and a size", what,
				 type, size);
	ret = hccl_mem_add(c, what, remoteRank, type, addr, size, NULL, &m);
	if (ret)
		return ret;
	hccl_desc_fill(c, m, &d);
	memset(desc, 0, sizeof(*desc));
	memcpy(desc, &d, sizeof(d));
	return HCCL_SUCCESS;
}

HcclResult HcclDeregisterMem(HcclComm comm, HcclMemDesc *desc)
{
	static const char what[] = "HcclDeregisterMem";
	struct hccl_mem by = { .ours = true };
	struct hccl_desc d;
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, what, &c);

	if (ret)
		return ret;
	if (!desc)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: desc is NULL", what);
	ret = hccl_desc_check(c, what, desc, &d);
	if (!ret && d.owner != c->rank)
		ret = hccl_fail(HCCL_E_PARA, "EI0003", "%s: rank %u registered it, the caller is rank %u", what, d.owner, c->rank);
	if (ret)
		return ret;
	by.rank = d.peer;
	by.va = d.va;
	by.bytes = d.bytes;
	return hccl_mem_remove(c, what, &by);
}

/* ---- Exchanged --------------------------------------------------------------------------------------- */

static HcclResult wait_word(struct hccl_comm *c, const char *what, u32 rank, const u64 *word, u64 value)
{
	s64 begin = npuemu_now_ns(), look = begin + 100000000, now;
	struct timespec nap = { .tv_nsec = 100000 };
	HcclResult ret;

	while (smp_load_acquire(word) < value) {
		ret = hccl_broken(c, what);
		if (ret)
			return ret;
		now = npuemu_now_ns();
		if (READ_ONCE(c->group->member[rank].state) == HCCL_LEFT)
			return hccl_fail(HCCL_E_REMOTE, "EI0006", "%s: rank %u has destroyed the communicator", what, rank);
		if (c->cfg.connect_ns && now - begin > c->cfg.connect_ns) {
			hccl_group_fail(c, HCCL_E_TIMEOUT, "EI0006", "%s: rank %u waited %.1f s for rank %u", what, c->rank,
					(double)(now - begin) / 1e9, rank);
			return hccl_fail(HCCL_E_TIMEOUT, "EI0006", "%s: rank %u did not come within %.1f s (HCCL_CONNECT_TIMEOUT)", what,
					 rank, (double)(now - begin) / 1e9);
		}
		if (now >= look) {
			hccl_group_check(c);
			look = now + 100000000;
		}
		if (now - begin < 2000000)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
	return HCCL_SUCCESS;
}

static HcclResult take(struct hccl_comm *c, const char *what, u32 rank, u64 n, HcclMemDescs *remote, u32 *actual)
{
	struct hccl_swap *s = &c->group->swap[rank][c->rank];
	void *bytes = NULL;
	HcclResult ret;
	u64 count;

	ret = wait_word(c, what, rank, &s->sent, n);
	if (ret)
		return ret;
	count = s->count;
	if (count > UINT32_MAX)
		return hccl_fail(HCCL_E_INTERNAL, "EI9999", "%s: rank %u tells of %" PRIu64 " descriptions", what, rank, count);
	if (count > remote->arrayLength)
		ret = hccl_fail(HCCL_E_PARA, "EI0003", "%s: rank %u tells of %" PRIu64 " pieces of memory, remote has room for %u", what, rank,
				count, remote->arrayLength);
	if (!ret && count)
		ret = hccl_blob_read(what, s->key, s->secret, count * sizeof(HcclMemDesc), &bytes);
	if (!ret && count)
		memcpy(remote->array, bytes, count * sizeof(HcclMemDesc));
	*actual = ret ? 0 : (u32)count;
	free(bytes);
	smp_store_release(&s->taken, n);
	return ret;
}

static HcclResult swap(struct hccl_comm *c, const char *what, u32 rank, const HcclMemDescs *local, HcclMemDescs *remote,
		       u32 *actual)
{
	struct hccl_swap *s = &c->group->swap[c->rank][rank];
	u64 n, bytes = (u64)local->arrayLength * sizeof(HcclMemDesc);
	HcclResult ret, ret2;
	struct hccl_blob b;

	ret = hccl_blob_make(c, what, bytes, &b);
	if (ret)
		return ret;
	if (bytes)
		memcpy(b.ptr, local->array, bytes);
	pthread_mutex_lock(&c->res.meet_lock);
	n = ++c->res.swaps[rank];
	s->key = b.window.key.id;
	s->secret = b.window.key.secret;
	s->count = local->arrayLength;
	smp_store_release(&s->sent, n);
	ret = take(c, what, rank, n, remote, actual);
	/* what we told has to be there until it was read */
	if (!ret || ret == HCCL_E_PARA) {
		ret2 = wait_word(c, what, rank, &s->taken, n);
		ret = ret ? ret : ret2;
	}
	pthread_mutex_unlock(&c->res.meet_lock);
	hccl_blob_free(&b);
	return ret;
}

HcclResult HcclExchangeMemDesc(HcclComm comm, uint32_t remoteRank, HcclMemDescs *local, int timeout, HcclMemDescs *remote,
			       uint32_t *actualNum)
{
	static const char what[] = "HcclExchangeMemDesc";
	struct hccl_desc d;
	struct hccl_comm *c;
	HcclResult ret = peer(what, comm, remoteRank, &c);
	u32 i;

	(void)timeout;
	if (ret)
		return ret;
	if (!local || !remote || !actualNum || (local->arrayLength && !local->array) || (remote->arrayLength && !remote->array))
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, !local || !local->array ? "local, or its array" :
				 actualNum ? "remote, or its array" : "actualNum");
	for (i = 0; i < local->arrayLength && !ret; i++) {
		ret = hccl_desc_check(c, what, &local->array[i], &d);
		if (!ret && (d.owner != c->rank || d.peer != remoteRank))
			ret = hccl_fail(HCCL_E_PARA, "EI0003", "%s: entry %u was registered by rank %u for rank %u; the caller is rank %u, and tells rank %u",
					what, i, d.owner, d.peer, c->rank, remoteRank);
	}
	return ret ? ret : swap(c, what, remoteRank, local, remote, actualNum);
}

/* ---- Enabled -------------------------------------------------------------------------------------------- */

static HcclResult open_mem(struct hccl_comm *c, const char *what, struct hccl_mem *m)
{
	struct npuacl_key key = { .id = m->ref.key, .secret = m->ref.secret };
	struct npuacl_span *span = NULL;
	aclError err;
	u8 *ptr;

	if (smp_load_acquire(&c->local->rank[m->rank])) {
		m->ptr = (u8 *)(uintptr_t)m->va;
		return HCCL_SUCCESS;
	}
	if (m->type == COMM_MEM_TYPE_HOST)
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: rank %u is another process, and host memory of other processes cannot be reached: register device memory",
				 what, m->rank);
	if (m->ref.off & HCCL_PARTS) {
		err = hccl_parts_open(what, &m->ref, npuacl_logical(c->group->member[m->rank].device, c->dev->id), &span);
		ptr = err ? NULL : span->ptr;
	} else {
		err = npuacl_window_open(what, &key, &m->import, &ptr);
	}
	if (err)
		return hccl_fail_acl(err, what);
	m->span = span;
	m->ptr = ptr + (m->ref.off & ~HCCL_PARTS);
	return HCCL_SUCCESS;
}

HcclResult hccl_mem_enable(struct hccl_comm *c, const char *what, const struct hccl_desc *d, bool again)
{
	struct hccl_mem *m = calloc(1, sizeof(*m)), *old;
	HcclResult ret = HCCL_SUCCESS;

	if (!m)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	m->rank = d->owner;
	m->type = d->type;
	m->va = d->va;
	m->bytes = d->bytes;
	m->ref = d->ref;
	pthread_mutex_lock(&c->res.lock);
	old = *find(c, m);
	/* the peer may have other memory there by now */
	if (old && old->ref.key == m->ref.key && old->ref.secret == m->ref.secret)
		old->times += again;
	else
		ret = open_mem(c, what, m);
	if (!ret && (!old || m->ptr)) {
		m->times = 1;
		m->next = c->res.mems;
		c->res.mems = m;
		m = NULL;
	}
	pthread_mutex_unlock(&c->res.lock);
	free(m);
	return ret;
}

static HcclResult theirs(const char *what, HcclComm comm, const HcclMemDesc *desc, struct hccl_comm **c,
			 struct hccl_desc *d)
{
	HcclResult ret = hccl_comm(comm, what, c);

	if (ret)
		return ret;
	if (!desc)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: remoteMemDesc is NULL", what);
	ret = hccl_desc_check(*c, what, desc, d);
	if (!ret && d->peer != (*c)->rank)
		ret = hccl_fail(HCCL_E_PARA, "EI0003", "%s: rank %u registered it for rank %u, the caller is rank %u", what, d->owner,
				d->peer, (*c)->rank);
	return ret;
}

HcclResult HcclEnableMemAccess(HcclComm comm, HcclMemDesc *remoteMemDesc, CommMem *remoteMem)
{
	static const char what[] = "HcclEnableMemAccess";
	struct hccl_desc d;
	struct hccl_comm *c;
	HcclResult ret = theirs(what, comm, remoteMemDesc, &c, &d);

	if (ret)
		return ret;
	if (!remoteMem)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: remoteMem is NULL", what);
	ret = hccl_mem_enable(c, what, &d, true);
	if (ret)
		return ret;
	remoteMem->type = (CommMemType)d.type;
	remoteMem->addr = (void *)(uintptr_t)d.va;
	remoteMem->size = d.bytes;
	return HCCL_SUCCESS;
}

HcclResult HcclDisableMemAccess(HcclComm comm, HcclMemDesc *remoteMemDesc)
{
	static const char what[] = "HcclDisableMemAccess";
	struct hccl_mem by = { .ours = false };
	struct hccl_desc d;
	struct hccl_comm *c;
	HcclResult ret = theirs(what, comm, remoteMemDesc, &c, &d);

	if (ret)
		return ret;
	by.rank = d.owner;
	by.va = d.va;
	by.bytes = d.bytes;
	return hccl_mem_remove(c, what, &by);
}
