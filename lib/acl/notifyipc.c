// SPDX-License-Identifier: MIT
/*
 * Notifies of other processes: words of their memory, to record and to wait for like
 * one's own.  Each side destroys its handle.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "share.h"

/* Memory that tasks may still look at after their notify was destroyed: one entry each. */
struct kept {
	struct kept *next;
	struct npuacl_import *import;
};

static struct {
	pthread_mutex_t lock;
	struct kept *first;
	bool closing;		/* nothing runs any more, on any device */
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

aclError aclrtNotifyGetExportKey(aclrtNotify handle, char *key, size_t len, uint64_t flags)
{
	static const char what[] = "aclrtNotifyGetExportKey";
	struct npuacl_record r = { .kind = NPUACL_EXPORT_NOTIFY, .size = sizeof(u64) };
	struct npuemu_buf *words;
	struct npuacl_notify *n;
	aclError ret = npuacl_notify_find(handle, &n, what);

	if (ret)
		return ret;
	if (!key)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: key is NULL", what);
	if (len < NPUACL_KEY_TEXT)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: len is %zu; a key takes %u bytes", what, len, NPUACL_KEY_TEXT);
	if (flags & ~(u64)ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: unknown flags %#" PRIx64, what, flags);
	if (n->import)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: the notify was imported: hand on the key that process %u gave out", what, n->import->exporter);
	words = npuacl_notify_buf(n->dev);
	pthread_mutex_lock(&kept.lock);
	if (!n->key.id) {
		r.offset = n->index * sizeof(u64);
		r.device = n->dev->phys;
		r.any_process = !!(flags & ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION);
		ret = npuacl_export_add(what, words, &r, &n->key);
	} else if (flags & ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION) {
		npuacl_export_open(n->key.id);
	}
	if (!ret)
		npuacl_key_write(key, NPUACL_EXPORT_NOTIFY, &n->key);
	pthread_mutex_unlock(&kept.lock);
	return ret;
}

static aclError exported(const char *what, aclrtNotify handle, struct npuacl_notify **n)
{
	aclError ret = npuacl_notify_find(handle, n, what);

	if (!ret && !(*n)->key.id)
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: notify %u has no key yet: aclrtNotifyGetExportKey comes first", what,
				  (*n)->index);
	return ret;
}

aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t *pid, size_t num)
{
	static const char what[] = "aclrtNotifySetImportPid";
	struct npuacl_notify *n;
	aclError ret = exported(what, notify, &n);

	return ret ? ret : npuacl_export_allow(what, &n->key, NPUACL_EXPORT_NOTIFY, pid, num);
}

aclError aclrtNotifySetImportPidInterServer(aclrtNotify notify, aclrtServerPid *serverPids, size_t num)
{
	static const char what[] = "aclrtNotifySetImportPidInterServer";
	struct npuacl_notify *n;
	aclError ret = exported(what, notify, &n);

	return ret ? ret : npuacl_export_allow_servers(what, &n->key, NPUACL_EXPORT_NOTIFY, serverPids, num);
}

aclError aclrtNotifyImportByKey(aclrtNotify *notify, const char *key, uint64_t flags)
{
	static const char what[] = "aclrtNotifyImportByKey";
	struct npuacl_import *import = NULL;
	struct npuacl_key k = { 0 };
	struct npuacl_record r;
	struct npuemu_buf *own;
	struct npuacl_ctx *ctx;
	aclError ret;
	u8 *base;

	if (!notify)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the place for the handle is NULL", what);
	if (flags & ~(u64)ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: unknown flags %#" PRIx64, what, flags);
	ret = npuacl_key_read(what, key, NPUACL_EXPORT_NOTIFY, &k);
	if (!ret)
		ret = npuacl_current(&ctx);
	if (!ret)
		ret = npuacl_export_find(what, &k, NPUACL_EXPORT_NOTIFY, &r);
	if (ret)
		return ret;
	own = npuacl_export_buf(k.id);
	if (!own)
		ret = npuacl_import_get(what, &r, &import);
	if (ret)
		return ret;
	pthread_mutex_lock(&kept.lock);
	kept.closing = false;
	pthread_mutex_unlock(&kept.lock);
	base = own ? npuemu_buf_ptr(own) : import->ptr;
	if (r.size != sizeof(u64) || r.offset % sizeof(u64))
		ret = npuacl_fail(ACL_ERROR_RT_IPC_ERROR, "%s: the record of process %u is damaged", what, r.exporter);
	else
		ret = npuacl_notify_opened(ctx->dev, (volatile u64 *)(void *)(base + r.offset), (u32)(r.offset / sizeof(u64)),
					   import, notify);
	if (ret)
		npuacl_import_put(import);
	return ret;
}

/* A task may be polling the word: the memory stays until nothing runs. */
void npuacl_notify_keep(struct npuacl_import *import)
{
	struct kept *k;

	if (!import)
		return;
	pthread_mutex_lock(&kept.lock);
	for (k = kept.first; k && k->import != import; k = k->next)
		;
	if (!k && !kept.closing) {
		k = calloc(1, sizeof(*k));
		if (k) {
			k->import = import;
			k->next = kept.first;
			kept.first = k;
			import = NULL;
		}
	}
	pthread_mutex_unlock(&kept.lock);
	npuacl_import_put(import);
}

void npuacl_notify_kept_release(bool closing)
{
	struct kept *k;

	pthread_mutex_lock(&kept.lock);
	kept.closing |= closing;
	while ((k = kept.first)) {
		kept.first = k->next;
		npuacl_import_put(k->import);
		free(k);
	}
	pthread_mutex_unlock(&kept.lock);
}

void npuacl_notify_kept_fork(void)
{
	memset(&kept, 0, sizeof(kept));
	pthread_mutex_init(&kept.lock, NULL);
}
