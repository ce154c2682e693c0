// SPDX-License-Identifier: MIT
/*
 * Buffers of other processes.  Several keys may stand for parts of one, and lib/core
 * imports it once, so it is kept here for all of them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "share.h"

static struct {
	pthread_mutex_t lock;
	struct npuacl_import *first;
} im = { .lock = PTHREAD_MUTEX_INITIALIZER };

static aclError import_failed(const char *what, const struct npuacl_record *r, int err)
{
	switch (err) {
	case -ESTALE:
		return npuacl_fail(ACL_ERROR_RT_INVALID_HANDLE,
				   "%s: process %u, which offers it, has ended or freed the memory (%s)", what, r->exporter,
				   npuemu_errmsg());
	case -EACCES:
		return npuacl_fail(ACL_ERROR_RT_NO_PERMISSION, "%s: %s", what, npuemu_errmsg());
	case -ENOSPC:
	case -ENOMEM:
		return npuacl_fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: %s", what, npuemu_errmsg());
	default:
		return npuacl_fail_core(err, ACL_ERROR_RT_IPC_ERROR, what);
	}
}

/* im.lock held */
static aclError import(const char *what, const struct npuacl_record *r, struct npuacl_import **out)
{
	struct npuacl_import *imp = calloc(1, sizeof(*imp));
	int err;

	if (!imp)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	err = npuemu_buf_import(npuacl.board, &r->buf, &imp->buf);
	if (err) {
		free(imp);
		return import_failed(what, r, err);
	}
	imp->name = r->buf;
	imp->ptr = npuemu_buf_ptr(imp->buf);
	imp->exporter = r->exporter;
	imp->next = im.first;
	im.first = imp;
	*out = imp;
	return ACL_SUCCESS;
}

/* The record is other people's word: is there such a part? */
static bool fits(const struct npuacl_record *r, const struct npuacl_import *imp)
{
	u64 bytes = npuemu_buf_bytes(imp->buf);

	return r->size && r->size <= bytes && r->offset <= bytes - r->size;
}

aclError npuacl_import_get(const char *what, const struct npuacl_record *r, struct npuacl_import **out)
{
	struct npuacl_import *imp;
	aclError ret = ACL_SUCCESS;

	pthread_mutex_lock(&im.lock);
	for (imp = im.first; imp && memcmp(&imp->name, &r->buf, sizeof(r->buf)); imp = imp->next)
		;
	if (!imp)
		ret = import(what, r, &imp);
	if (!ret)
		imp->refs++;
	pthread_mutex_unlock(&im.lock);
	if (!ret && !fits(r, imp)) {
		npuacl_import_put(imp);
		ret = npuacl_fail(ACL_ERROR_RT_IPC_ERROR, "%s: the record of process %u is damaged", what, r->exporter);
	}
	if (!ret)
		*out = imp;
	return ret;
}

void npuacl_import_put(struct npuacl_import *imp)
{
	struct npuacl_import **at = &im.first;

	if (!imp)
		return;
	/* to the end under the lock: who imports it again has to find it gone */
	pthread_mutex_lock(&im.lock);
	if (!--imp->refs) {
		while (*at != imp)
			at = &(*at)->next;
		*at = imp->next;
		if (npuemu_buf_free(imp->buf))
			npuemu_log(NPUEMU_LOG_WARN, "acl: memory of process %u was not given back: %s", imp->exporter,
				   npuemu_errmsg());
		free(imp);
	}
	pthread_mutex_unlock(&im.lock);
}

u32 npuacl_logical(u32 phys, u32 otherwise)
{
	u32 i;

	for (i = 0; i < npuacl.devices; i++)
		if (npuacl.dev[i].phys == phys)
			return i;
	return otherwise;
}

void npuacl_import_fork(void)
{
	memset(&im, 0, sizeof(im));
	pthread_mutex_init(&im.lock, NULL);
}
