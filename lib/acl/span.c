// SPDX-License-Identifier: MIT
/*
 * Several pieces of another process's memory, shown side by side.
 *
 * What a program mapped one after the other into reserved addresses is one buffer to
 * it, so it has to be one here, too.  Each piece is a buffer of lib/core that is imported
 * once, and shown a second time at its place in the row.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "share.h"

#define PAGE	4096u

/* From where a huge page can begin: then the pieces, which are whole ones, can as well. */
static aclError addresses(const char *what, struct npuacl_span *span)
{
	u64 at;

	/* so there is something behind it, too, that is not part of it */
	span->room = span->bytes + NPUACL_PAGE_HUGE;
	span->reserved = npuemu_reserve(NULL, span->room, 0);
	if (span->reserved == MAP_FAILED) {
		span->reserved = NULL;
		return npuacl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: no %" PRIu64 " bytes of addresses are left (ulimit -v?)", what,
				   span->room);
	}
	at = (u64)(uintptr_t)span->reserved;
	span->ptr = (u8 *)span->reserved + (-at & (NPUACL_PAGE_HUGE - 1));
	return ACL_SUCCESS;
}

static aclError note(const char *what, struct npuacl_span_piece *p, u32 device)
{
	struct npuacl_range *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (r) {
		r->base = (u64)(uintptr_t)p->ptr;
		r->size = p->bytes;
		r->room = p->bytes;
		r->kind = NPUACL_IMPORTED;
		r->device = device;
		r->flags = NPUACL_PLACE_PEER | NPUACL_PLACE_PART;
		r->buf = p->import->buf;
		err = npuacl_range_add(r);
	}
	if (!err)
		return ACL_SUCCESS;
	free(r);
	return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: the memory cannot be noted (%s)", what, strerror(-err));
}

static aclError show(const char *what, const struct npuacl_told *t, struct npuacl_span_piece *p, u32 device)
{
	struct npuacl_key key = { .id = t->key, .secret = t->secret };
	u8 *ptr;
	aclError ret = npuacl_window_open(what, &key, &p->import, &ptr);
	int err;

	if (ret)
		return ret;
	/* other people's word */
	if (!p->import || ptr != p->import->ptr || npuemu_buf_bytes(p->import->buf) != t->bytes) {
		npuacl_import_put(p->import);
		return npuacl_fail(ACL_ERROR_RT_IPC_ERROR, "%s: a piece of %" PRIu64 " bytes is not as its process says", what,
				   t->bytes);
	}
	err = npuemu_buf_map(p->import->buf, p->ptr);
	ret = err ? npuacl_fail_core(err, ACL_ERROR_RT_MEMORY_ALLOCATION, what) : note(what, p, device);
	if (ret && !err)
		npuemu_buf_unmap(p->import->buf, p->ptr);
	if (ret)
		npuacl_import_put(p->import);
	return ret;
}

aclError npuacl_span_open(const char *what, const struct npuacl_told *list, u32 n, u32 device,
			  struct npuacl_span **out)
{
	struct npuacl_span *span = calloc(1, sizeof(*span) + n * sizeof(span->piece[0]));
	aclError ret = ACL_SUCCESS;
	u8 *at;
	u32 i;

	if (!span)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	for (i = 0; i < n && !ret; i++) {
		if (!list[i].bytes || list[i].bytes % PAGE || list[i].bytes >> 47 || span->bytes >> 47)
			ret = npuacl_fail(ACL_ERROR_RT_IPC_ERROR, "%s: a piece of %" PRIu64 " bytes cannot be", what, list[i].bytes);
		span->bytes += list[i].bytes;
	}
	if (!ret)
		ret = addresses(what, span);
	for (i = 0, at = span->ptr; i < n && !ret; i++) {
		span->piece[i].key = list[i].key;
		span->piece[i].bytes = list[i].bytes;
		span->piece[i].ptr = at;
		ret = show(what, &list[i], &span->piece[i], device);
		at += list[i].bytes;
		span->n += !ret;
	}
	if (ret)
		npuacl_span_close(span);
	else
		*out = span;
	return ret;
}

void npuacl_span_close(struct npuacl_span *span)
{
	struct npuacl_range *r;
	u32 i;

	for (i = 0; span && i < span->n; i++) {
		struct npuacl_span_piece *p = &span->piece[i];

		r = npuacl_range_take((u64)(uintptr_t)p->ptr, NPUACL_BIT(NPUACL_IMPORTED));
		if (r)
			npuacl_range_gone(r);
		if (npuemu_buf_unmap(p->import->buf, p->ptr))
			npuemu_log(NPUEMU_LOG_WARN, "acl: memory of process %u is shown still: %s", p->import->exporter,
				   npuemu_errmsg());
		npuacl_import_put(p->import);
	}
	if (span && span->reserved)
		munmap(span->reserved, span->room);
	free(span);
}

bool npuacl_span_holds(const struct npuacl_span *span)
{
	u32 i;

	for (i = 0; i < span->n; i++)
		if (!npuacl_export_holds(span->piece[i].key))
			return false;
	return true;
}
