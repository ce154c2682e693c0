/* SPDX-License-Identifier: MIT */
/* What every public call asks of its arguments; each failure leaves a message. */
#ifndef NPUEMU_CHECK_H
#define NPUEMU_CHECK_H

#include "core.h"

/* The board still stands, and this is not a forked child. */
int npuemu_check_whole(struct npuemu *ctx, const char *what);
int npuemu_check_ctx(struct npuemu *ctx, const char *what);
int npuemu_check_size(u32 size, size_t want, const char *what);
int npuemu_check_device(struct npuemu *ctx, u32 device, const char *what);
/* An object of a slab, not yet published; NULL with a message. */
void *npuemu_new_obj(struct npuemu_slab *slab);

/* A struct of the caller's, which says itself how large the caller thinks it is. */
#define CHECK_STRUCT(p, fn)							\
	((p) ? npuemu_check_size((p)->size, sizeof(*(p)), (fn)) :		\
	 npuemu_fail(-EINVAL, "%s: NULL argument", (fn)))

#define CHECK_OBJ(slab, obj, fn)						\
	(!npuemu_slab_alive(&(slab), (obj)) ?					\
	 npuemu_fail(-EBADF, "%s: not a %s, or it was destroyed", (fn), (slab).what) : \
	 npuemu_check_whole((obj)->ctx, (fn)))

/* The same on a broken board too: what is this process's own is still there. */
#define CHECK_HANDLE(slab, obj, fn)						\
	(npuemu_slab_alive(&(slab), (obj)) && READ_ONCE((obj)->ctx->broken) != -EPERM ? \
	 0 : CHECK_OBJ(slab, obj, fn))

#endif
