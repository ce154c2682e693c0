// SPDX-License-Identifier: MIT
/*
 * Device memory of other processes, by a key: a pointer to use like one's own, as long
 * as the key is open.  Keys of parts of one buffer show it once; in the process that
 * exported it the key gives the pointer that it has.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "share.h"

struct opened {
	struct opened *next;
	u64 id;
	void *ptr;
	u32 device;
	u32 times;
	struct npuacl_import *import;	/* NULL: this process's own memory */
};

static struct {
	pthread_mutex_t lock;
	struct opened *first;
} ipc = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- Giving out ---------------------------------------------------------------------------- */

struct request {
	const char *what;
	u64 va, size;
	bool any;
	struct npuacl_key key;
	aclError ret;
};

/* Under the lock of address.c: nobody frees it meanwhile. */
static void export_part(struct npuacl_range *r, void *arg)
{
	struct request *q = arg;
	struct npuacl_record rec = { .kind = NPUACL_EXPORT_MEMORY };

	rec.offset = q->va - r->base;
	rec.size = q->size;
	rec.device = npuacl.dev[r->device].phys;
	rec.any_process = q->any;
	if (q->size > r->room || rec.offset > r->room - q->size) {
		q->ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				     "%s: %" PRIu64 " bytes at %#" PRIx64 " go beyond the buffer of %" PRIu64 " bytes at %#" PRIx64,
				     q->what, q->size, q->va, r->size, r->base);
		return;
	}
	q->ret = npuacl_export_add(q->what, r->buf, &rec, &q->key);
	if (!q->ret)
		r->owner = r;	/* memory.c: keys stand for it */
}

aclError aclrtIpcMemGetExportKey(void *devPtr, size_t size, char *key, size_t len, uint64_t flags)
{
	struct request q = {
		.what = "aclrtIpcMemGetExportKey", .va = (u64)(uintptr_t)devPtr, .size = size,
		.any = flags & ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
	};
	struct npuacl_ctx *ctx;
	char text[192];
	aclError ret;

	if (!devPtr || !key || !size)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", q.what, !devPtr ? "devPtr is NULL" : key ? "size is 0" :
				   "key is NULL");
	if (len < NPUACL_KEY_TEXT)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: len is %zu; a key takes %u bytes", q.what, len, NPUACL_KEY_TEXT);
	if (flags & ~(u64)ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: unknown flags %#" PRIx64, q.what, flags);
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	if (!npuacl_range_with(NPUACL_BIT(NPUACL_DEVICE), q.va, export_part, &q))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not memory of aclrtMalloc, but %s", q.what, devPtr,
				   npuacl_explain(q.va, text, sizeof(text)));
	if (!q.ret)
		npuacl_key_write(key, NPUACL_EXPORT_MEMORY, &q.key);
	return q.ret;
}

static aclError read_key(const char *what, const char *text, struct npuacl_key *key)
{
	aclError ret = npuacl_key_read(what, text, NPUACL_EXPORT_MEMORY, key);

	return ret ? ret : npuacl_open();
}

aclError aclrtIpcMemSetImportPid(const char *key, int32_t *pid, size_t num)
{
	static const char what[] = "aclrtIpcMemSetImportPid";
	struct npuacl_key k;
	aclError ret = read_key(what, key, &k);

	return ret ? ret : npuacl_export_allow(what, &k, NPUACL_EXPORT_MEMORY, pid, num);
}

aclError aclrtIpcMemImportPidInterServer(const char *key, aclrtServerPid *serverPids, size_t num)
{
	static const char what[] = "aclrtIpcMemImportPidInterServer";
	struct npuacl_key k;
	aclError ret = read_key(what, key, &k);

	return ret ? ret : npuacl_export_allow_servers(what, &k, NPUACL_EXPORT_MEMORY, serverPids, num);
}

aclError aclrtIpcMemSetAttr(const char *key, aclrtIpcMemAttrType type, uint64_t attr)
{
	static const char what[] = "aclrtIpcMemSetAttr";
	struct npuacl_key k;
	aclError ret = read_key(what, key, &k);

	if (ret)
		return ret;
	if (type != ACL_RT_IPC_MEM_ATTR_ACCESS_LINK || attr > ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no attribute %d with the value %" PRIu64, what,
				   (int)type, attr);
	/* all memory is reached in one way, whatever it is to be called */
	return ACL_SUCCESS;
}

/* ---- Taking ------------------------------------------------------------------------------------- */

static void keep(struct npuacl_range *r, void *arg)
{
	*(struct npuacl_range **)arg = r;
}

/* ipc.lock held: the buffer is known to the address map, once for all keys. */
static aclError show(const char *what, struct npuacl_import *imp, u32 device, bool peer)
{
	struct npuacl_range *r = NULL;
	u64 va = (u64)(uintptr_t)imp->ptr;
	int err;

	if (imp->shown) {
		npuacl_range_with(NPUACL_BIT(NPUACL_IMPORTED), va, keep, &r);
		if (r && peer)
			npuacl_range_flags(r, r->flags | NPUACL_PLACE_PEER);
		imp->shown++;
		return ACL_SUCCESS;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	r->base = va;
	r->size = npuemu_buf_bytes(imp->buf);
	r->room = r->size;
	r->kind = NPUACL_IMPORTED;
	r->device = device;
	r->flags = peer ? NPUACL_PLACE_PEER : 0;
	r->buf = imp->buf;
	err = npuacl_range_add(r);
	if (err) {
		free(r);
		return npuacl_fail(ACL_ERROR_RT_INTERNAL_ERROR, "%s: the memory cannot be noted (%s)", what, strerror(-err));
	}
	imp->shown = 1;
	return ACL_SUCCESS;
}

static void unshow(struct npuacl_import *imp)
{
	struct npuacl_range *r;

	if (imp && !--imp->shown) {
		r = npuacl_range_take((u64)(uintptr_t)imp->ptr, NPUACL_BIT(NPUACL_IMPORTED));
		if (r)
			npuacl_range_gone(r);
	}
}

aclError npuacl_ipc_show(const char *what, struct npuacl_import *imp, u32 device)
{
	aclError ret;

	pthread_mutex_lock(&ipc.lock);
	ret = show(what, imp, device, true);
	pthread_mutex_unlock(&ipc.lock);
	return ret;
}

void npuacl_ipc_unshow(struct npuacl_import *imp)
{
	pthread_mutex_lock(&ipc.lock);
	unshow(imp);
	pthread_mutex_unlock(&ipc.lock);
}

static aclError open_foreign(const char *what, const struct npuacl_record *r, struct npuacl_device *dev, bool peer,
			     struct opened *o)
{
	u32 device = npuacl_logical(r->device, ~0u);
	aclError ret = npuacl_import_get(what, r, &o->import);

	if (ret)
		return ret;
	/* one that this process does not see is reached as if it were the current one */
	o->device = device == ~0u ? dev->id : device;
	ret = show(what, o->import, o->device, peer || device == ~0u);
	if (ret)
		npuacl_import_put(o->import);
	else
		o->ptr = o->import->ptr + r->offset;
	return ret;
}

/* ipc.lock held */
static aclError open_key(const char *what, const struct npuacl_key *key, const struct npuacl_record *r,
			 struct npuacl_device *dev, bool peer, struct opened **out)
{
	struct opened *o = calloc(1, sizeof(*o));
	struct npuemu_buf *own = npuacl_export_buf(key->id);
	aclError ret = ACL_SUCCESS;

	if (!o)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	o->id = key->id;
	if (own) {
		o->ptr = (u8 *)npuemu_buf_ptr(own) + r->offset;
		o->device = npuacl_logical(r->device, dev->id);
	} else {
		ret = open_foreign(what, r, dev, peer, o);
	}
	if (ret) {
		free(o);
		return ret;
	}
	o->next = ipc.first;
	ipc.first = o;
	*out = o;
	return ACL_SUCCESS;
}

static struct opened **find(u64 id)
{
	struct opened **at = &ipc.first;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

aclError aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flags)
{
	static const char what[] = "aclrtIpcMemImportByKey";
	bool peer = flags & ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS;
	struct npuacl_record r;
	struct npuacl_key k;
	struct npuacl_ctx *ctx;
	struct opened *o;
	aclError ret;

	if (!devPtr)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: devPtr is NULL", what);
	if (flags & ~(u64)ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: unknown flags %#" PRIx64, what, flags);
	ret = npuacl_key_read(what, key, NPUACL_EXPORT_MEMORY, &k);
	if (!ret)
		ret = npuacl_current(&ctx);
	if (!ret)
		ret = npuacl_export_find(what, &k, NPUACL_EXPORT_MEMORY, &r);
	if (ret)
		return ret;
	pthread_mutex_lock(&ipc.lock);
	o = *find(k.id);
	if (!o)
		ret = open_key(what, &k, &r, ctx->dev, peer, &o);
	if (!ret) {
		o->times++;
		*devPtr = o->ptr;
	}
	pthread_mutex_unlock(&ipc.lock);
	return ret;
}

/* It is off the list. */
static void let_go(struct opened *o)
{
	unshow(o->import);
	npuacl_import_put(o->import);
	free(o);
}

aclError aclrtIpcMemClose(const char *key)
{
	static const char what[] = "aclrtIpcMemClose";
	struct opened **at, *o;
	struct npuacl_key k;
	aclError ret = read_key(what, key, &k);

	if (ret)
		return ret;
	pthread_mutex_lock(&ipc.lock);
	at = find(k.id);
	o = *at;
	if (o && !--o->times) {
		*at = o->next;
		let_go(o);
	} else if (!o && npuacl_export_buf(k.id)) {
		npuacl_export_drop(k.id);
	} else if (!o) {
		ret = npuacl_fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: this process has neither imported nor exported this key, or closed it already",
				  what);
	}
	pthread_mutex_unlock(&ipc.lock);
	return ret;
}

aclError npuacl_ipc_window(const char *what, u64 va, struct npuacl_window *w)
{
	struct npuacl_record r;
	struct opened *o;
	aclError ret;

	pthread_mutex_lock(&ipc.lock);
	for (o = ipc.first; o; o = o->next) {
		struct npuacl_key key = { .id = o->id };

		if (!o->import || va - (u64)(uintptr_t)o->import->ptr >= npuemu_buf_bytes(o->import->buf))
			continue;
		ret = npuacl_export_find(what, &key, NPUACL_EXPORT_MEMORY, &r);
		if (ret)
			break;
		w->base = (u64)(uintptr_t)o->ptr;
		w->end = w->base + r.size;
		if (va < w->base || va >= w->end)
			continue;
		w->key.id = o->id;
		w->key.secret = r.secret;
		break;
	}
	if (!o)
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the key that gave %#" PRIx64 " is closed", what, va);
	pthread_mutex_unlock(&ipc.lock);
	return ret;
}

/* ---- The end ----------------------------------------------------------------------------------------- */

void npuacl_ipc_release(s32 device)
{
	struct opened **at = &ipc.first, *o;

	pthread_mutex_lock(&ipc.lock);
	while ((o = *at)) {
		if (device >= 0 && o->device != (u32)device) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		let_go(o);
	}
	pthread_mutex_unlock(&ipc.lock);
}

void npuacl_ipc_fork(void)
{
	memset(&ipc, 0, sizeof(ipc));
	pthread_mutex_init(&ipc.lock, NULL);
}
