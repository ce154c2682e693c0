// SPDX-License-Identifier: MIT
/*
 * Looking at the board: devices, links, processes, queues.  And disturbing it,
 * which goes through npuemu-ctl and takes root.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "kernel.h"

int npuemu_k_device_query(struct npuemu *ctx, u32 device, struct npuemu_device_info *info)
{
	struct npuemu_ioc_device a = { .device = device };
	int err = npuemu_k_ioctl(npuemu_kernel_of(ctx)->home, NPUEMU_IOC_DEVICE, &a);

	if (err)
		return npuemu_k_failed(ctx, err, "cannot look at device %u", device);
	info->device = device;
	info->server = a.server;
	info->queues = a.queues;
	info->processes = a.processes;
	info->hbm_bytes = a.hbm_bytes;
	info->hbm_used = a.hbm_used;
	info->hbm_backed = a.hbm_backed;
	return 0;
}

int npuemu_k_link_query(struct npuemu *ctx, u32 from, u32 to, struct npuemu_link_info *info)
{
	struct npuemu_ioc_link a = { .from = from, .to = to };
	int err = npuemu_k_ioctl(npuemu_kernel_of(ctx)->home, NPUEMU_IOC_LINK, &a);

	if (err)
		return npuemu_k_failed(ctx, err, "cannot look at the link from %u to %u", from, to);
	info->from = from;
	info->to = to;
	info->latency_ns = a.latency_ns;
	info->mbytes_per_s = a.mbytes_per_s;
	info->wqes = a.wqes;
	info->bytes = a.bytes;
	memcpy(info->name, a.name, sizeof(info->name));
	info->name[sizeof(info->name) - 1] = '\0';
	return 0;
}

/* The public struct is the driver's, member by member. */
#define SAME(member)	\
	_Static_assert(offsetof(struct npuemu_process_info, member) ==	\
		       offsetof(struct npuemu_ioc_process, member), "one layout")
SAME(imports);
SAME(hbm_used);
SAME(cnt);
SAME(engine_turns);
SAME(comm);
SAME(waits);
_Static_assert(sizeof(struct npuemu_process_info) == sizeof(struct npuemu_ioc_process),
	       "one layout");

int npuemu_k_process_list(struct npuemu *ctx, struct npuemu_process_info *list, int n)
{
	struct npuemu_ioc_list a = { .list = (u64)(uintptr_t)list, .nr = (u32)n };
	int err = npuemu_k_ioctl(npuemu_kernel_of(ctx)->home, NPUEMU_IOC_PROCESSES, &a);

	return err ? npuemu_k_failed(ctx, err, "cannot list the processes") : (int)a.total;
}

int npuemu_k_queue_list(struct npuemu *ctx, u32 slot, struct npuemu_queue_stat *list, int n)
{
	struct npuemu_ioc_queue_query *q = NULL;
	struct npuemu_ioc_list a = { .slot = slot };
	u32 i;
	int err;

	if (n > (int)NPUEMU_CTX_QUEUES)
		n = NPUEMU_CTX_QUEUES;
	if (n) {
		q = calloc((size_t)n, sizeof(*q));
		if (!q)
			return npuemu_fail(-ENOMEM, "out of memory");
	}
	a.list = (u64)(uintptr_t)q;
	a.nr = (u32)n;
	err = npuemu_k_ioctl(npuemu_kernel_of(ctx)->home, NPUEMU_IOC_QUEUES, &a);
	if (err == -ESRCH)
		err = npuemu_fail(err, "no live process in slot %u", slot);
	else if (err)
		err = npuemu_k_failed(ctx, err, "cannot list the queues of slot %u", slot);
	for (i = 0; i < a.nr && i < a.total && !err; i++)
		npuemu_k_stat(&q[i], &list[i]);
	free(q);
	return err ? err : (int)a.total;
}

/* ---- Disturbing ------------------------------------------------------------------ */

/* One ioctl on npuemu-ctl, which an observer has open and others have not. */
static int ctl(struct npuemu *ctx, unsigned long nr, void *arg)
{
	struct npuemu_kernel *k = ctx ? npuemu_kernel_of(ctx) : NULL;
	int fd = ctx && ctx->observer ? k->home : npuemu_k_open_ctl(), err;

	if (fd < 0)
		return fd;
	err = npuemu_k_ioctl(fd, nr, arg);
	if (!ctx || !ctx->observer)
		close(fd);
	switch (err) {
	case 0:
		return 0;
	case -EPERM:
	case -EACCES:
		return npuemu_fail(-EPERM, "only root (CAP_SYS_ADMIN) may inject faults into the kernel's devices, or reset them");
	case -ENOSPC:
		return npuemu_fail(err, "%u faults are armed already: clear them first",
				   NPUEMU_MAX_FAULTS);
	default:
		return npuemu_fail(err, "npuemu-ctl: %s", strerror(-err));
	}
}

int npuemu_k_fault_inject(struct npuemu *ctx, const struct npuemu_fault_rec *fault)
{
	struct npuemu_ioc_fault a = {
		.kind = fault->kind,
		.slot = fault->slot,
		.queue = fault->queue,
		.device = fault->device,
		.peer_slot = fault->peer_slot,
		.status = fault->status,
		.delay_us = fault->delay_us,
		.rate_ppm = fault->rate_ppm,
		.count = fault->count,
		.seed = fault->seed,
	};

	return ctl(ctx, NPUEMU_IOC_FAULT_INJECT, &a);
}

int npuemu_k_fault_clear(struct npuemu *ctx)
{
	return ctl(ctx, NPUEMU_IOC_FAULT_CLEAR, NULL);
}

/* The driver needs nobody to notice that a process died. */
int npuemu_k_reap(struct npuemu *ctx)
{
	(void)ctx;
	return 0;
}

/* There is one board, whatever it is called. */
int npuemu_k_board_reset(const char *board)
{
	struct npuemu_ioc_device_ctl a = { .device = NPUEMU_ALL_DEVICES };

	(void)board;
	return ctl(NULL, NPUEMU_IOC_DEVICE_RESET, &a);
}
