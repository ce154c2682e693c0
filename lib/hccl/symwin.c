// SPDX-License-Identifier: MIT
/*
 * Symmetric windows: memory that all ranks register together, each its own, and reach
 * by a pointer: copies and kernels of this process take it as they take memory of its own.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <hccl/hccl_sym_win.h>
#include "comm.h"

#define WINDOWS	65536u

/* A rank's part of it, from here. */
struct side {
	u8 *ptr;
	struct npuacl_import *import;
	struct npuacl_span *span;
};

struct hccl_win {
	struct hccl_win *next;
	struct hccl_comm *comm;
	u64 va, bytes;
	struct hccl_ref ref;
	struct side *side;		/* [ranks] */
};

static struct npuemu_slab wins = {
	.what = "symmetric window", .size = NPUEMU_SLAB_SIZE(struct hccl_win), .max = WINDOWS,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* ---- Made -------------------------------------------------------------------------------- */

static void close_side(struct side *s)
{
	if (s->import) {
		npuacl_ipc_unshow(s->import);
		npuacl_import_put(s->import);
	}
	npuacl_span_close(s->span);
}

static void win_free(struct hccl_win *w)
{
	struct hccl_comm *c = w->comm;
	u32 i;

	for (i = 0; w->side && i < c->ranks; i++)
		close_side(&w->side[i]);
	free(w->side);
	hccl_ref_drop(c, &w->ref);
	npuemu_slab_free(&wins, w);
}

static aclError open_side(const char *what, const struct hccl_ref *ref, u32 device, struct side *s)
{
	struct npuacl_key key = { .id = ref->key, .secret = ref->secret };
	aclError ret;
	u8 *ptr;

	if (ref->off & HCCL_PARTS) {
		ret = hccl_parts_open(what, ref, device, &s->span);
		if (!ret)
			s->ptr = s->span->ptr + (ref->off & ~HCCL_PARTS);
		return ret;
	}
	ret = npuacl_window_open(what, &key, &s->import, &ptr);
	if (!ret && s->import) {
		ret = npuacl_ipc_show(what, s->import, device);
		if (ret) {
			npuacl_import_put(s->import);
			s->import = NULL;
		}
	}
	s->ptr = ptr + ref->off;
	return ret;
}

static HcclResult open_all(const char *what, struct hccl_win *w, const struct hccl_note *all)
{
	struct hccl_comm *c = w->comm;
	aclError err = ACL_SUCCESS;
	u32 i;

	for (i = 0; i < c->ranks && !err; i++) {
		struct hccl_ref ref = { .va = all[i].va, .key = all[i].key, .secret = all[i].secret, .off = all[i].off };

		/* ranks of this process have it where it is */
		if (smp_load_acquire(&c->local->rank[i]))
			w->side[i].ptr = (u8 *)(uintptr_t)ref.va;
		else
			err = open_side(what, &ref, npuacl_logical(c->group->member[i].device, c->dev->id), &w->side[i]);
	}
	return err ? hccl_fail_acl(err, what) : HCCL_SUCCESS;
}

/* As the real library, which reserves that many addresses for each rank. */
static HcclResult fits(const char *what, struct hccl_comm *c, u64 bytes)
{
	struct hccl_win *w;
	u64 sum = 0;

	pthread_mutex_lock(&c->res.lock);
	for (w = c->res.wins; w; w = w->next)
		sum += w->bytes;
	pthread_mutex_unlock(&c->res.lock);
	if (bytes <= c->cfg.symwin_bytes && sum <= c->cfg.symwin_bytes - bytes)
		return HCCL_SUCCESS;
	return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: %" PRIu64 " bytes, beside the %" PRIu64 " that are registered, are more than hcclSymWinMaxMemSizePerRank allows: %" PRIu64 " GB",
			 what, bytes, sum, c->cfg.symwin_bytes >> 30);
}

/* With its part of the message already said if it fails. */
static HcclResult ours(const char *what, struct hccl_comm *c, void *addr, u64 bytes, struct hccl_win **out)
{
	struct hccl_win *w = npuemu_slab_alloc(&wins);
	HcclResult ret;

	*out = w;
	if (!w)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: this process has %u windows, the most it can", what, WINDOWS);
	w->comm = c;
	w->va = (u64)(uintptr_t)addr;
	w->bytes = bytes;
	w->side = calloc(c->ranks, sizeof(*w->side));
	if (!w->side)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	ret = fits(what, c, bytes);
	if (!ret)
		ret = hccl_ref_make(c, what, "addr", addr, bytes, &w->ref);
	/* ranks of this process have it by the same address, on other devices */
	if (!ret)
		npuacl_window_for_all(w->va, bytes);
	return ret;
}

/* All do this, also one that has failed: it tells the others so. */
static HcclResult meet(const char *what, struct hccl_comm *c, struct hccl_win *w, u64 bytes, HcclResult failed)
{
	struct hccl_note all[HCCL_MAX_RANKS], mine = { .kind = HCCL_NOTE_SYMWIN, .size = bytes, .failed = failed };
	struct npuacl_thread said = npuacl_self;
	HcclResult ret;

	if (!failed) {
		mine.va = w->ref.va;
		mine.key = w->ref.key;
		mine.secret = w->ref.secret;
		mine.off = w->ref.off;
	}
	ret = hccl_exchange(c, what, &mine, 0, all);
	if (!failed && ret)
		return ret;
	if (!failed) {
		/* it is there on all of them, or on none */
		failed = open_all(what, w, all);
		said = npuacl_self;
		mine = (struct hccl_note){ .kind = HCCL_NOTE_OPENED, .failed = failed };
		ret = hccl_exchange(c, what, &mine, 0, all);
	}
	if (failed)
		npuacl_self = said;
	return failed ? failed : ret;
}

HcclResult HcclCommSymWinRegister(HcclComm comm, void *addr, uint64_t size, HcclCommSymWindow *winHandle, uint32_t flag)
{
	static const char what[] = "HcclCommSymWinRegister";
	struct hccl_win *w;
	struct hccl_comm *c;
	HcclResult ret = hccl_comm(comm, what, &c);

	if (ret)
		return ret;
	if (!addr || !winHandle)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, addr ? "winHandle" : "addr");
	if (!size || flag != 1)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: size %" PRIu64 ", flag %u; a size, and flag 1", what, size, flag);
	ret = hccl_broken(c, what);
	if (ret)
		return ret;
	/* from here on the others wait for us */
	ret = ours(what, c, addr, size, &w);
	ret = meet(what, c, w, size, ret);
	if (ret) {
		if (w)
			win_free(w);
		return ret;
	}
	pthread_mutex_lock(&c->res.lock);
	w->next = c->res.wins;
	c->res.wins = w;
	pthread_mutex_unlock(&c->res.lock);
	npuemu_slab_publish(&wins, w);
	*winHandle = w;
	return HCCL_SUCCESS;
}

/* ---- Used ---------------------------------------------------------------------------------- */

static HcclResult win_of(const char *what, HcclCommSymWindow handle, struct hccl_win **out)
{
	if (!handle)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: winHandle is NULL", what);
	if (!npuemu_slab_holds(&wins, handle, NPUEMU_SLAB_SIZE(struct hccl_win)))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %p is no window, or has been deregistered", what, handle);
	*out = handle;
	return HCCL_SUCCESS;
}

HcclResult HcclSymWinGetPeerPointer(HcclCommSymWindow winHandle, size_t offset, uint32_t peerRank, void **ptr)
{
	static const char what[] = "HcclSymWinGetPeerPointer";
	struct hccl_win *w;
	HcclResult ret = win_of(what, winHandle, &w);

	if (ret)
		return ret;
	if (!ptr)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: ptr is NULL", what);
	if (peerRank >= w->comm->ranks)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: rank %u; the communicator has ranks 0 to %u", what, peerRank,
				 w->comm->ranks - 1);
	if (offset >= w->bytes)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: offset %zu; the window has %" PRIu64 " bytes", what, offset, w->bytes);
	*ptr = w->side[peerRank].ptr + offset;
	return HCCL_SUCCESS;
}

HcclResult HcclCommSymWinGet(HcclComm comm, void *ptr, size_t size, HcclCommSymWindow *winHandle, size_t *offset)
{
	static const char what[] = "HcclCommSymWinGet";
	u64 va = (u64)(uintptr_t)ptr;
	struct hccl_comm *c;
	struct hccl_win *w;
	HcclResult ret = hccl_comm(comm, what, &c);

	if (ret)
		return ret;
	if (!ptr || !winHandle || !offset)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, !ptr ? "ptr" : winHandle ? "offset" : "winHandle");
	if (!size)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: size is 0", what);
	pthread_mutex_lock(&c->res.lock);
	for (w = c->res.wins; w && (va - w->va >= w->bytes || size > w->bytes - (va - w->va)); w = w->next)
		;
	/* none is no error: it is asked for every buffer */
	*winHandle = w;
	*offset = w ? va - w->va : 0;
	pthread_mutex_unlock(&c->res.lock);
	return HCCL_SUCCESS;
}

HcclResult HcclCommSymWinDeregister(HcclCommSymWindow winHandle)
{
	static const char what[] = "HcclCommSymWinDeregister";
	struct hccl_win *w, **at;
	HcclResult ret = win_of(what, winHandle, &w);

	if (ret)
		return ret;
	/* of two threads one does */
	if (!npuemu_slab_retire(&wins, w))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %p has been deregistered already", what, winHandle);
	pthread_mutex_lock(&w->comm->res.lock);
	for (at = &w->comm->res.wins; *at != w; at = &(*at)->next)
		;
	*at = w->next;
	pthread_mutex_unlock(&w->comm->res.lock);
	win_free(w);
	return HCCL_SUCCESS;
}

void hccl_wins_free(struct hccl_comm *c)
{
	struct hccl_win *w;

	while ((w = c->res.wins)) {
		c->res.wins = w->next;
		npuemu_slab_retire(&wins, w);
		win_free(w);
	}
}

void hccl_wins_fork(void)
{
	npuemu_slab_fork(&wins);
}
