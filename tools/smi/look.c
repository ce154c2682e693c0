// SPDX-License-Identifier: MIT
/* Taking one look at a board. */
#include <stdlib.h>
#include <string.h>

#include "../common/cli.h"
#include "smi.h"

static int out_of_memory(void)
{
	npuemu_cli_say("out of memory");
	return NPUEMU_EXIT_RUNTIME;
}

static int look_devices(struct npuemu *ctx, struct npuemu_smi_view *v)
{
	uint32_t i;
	int rc;

	v->device = calloc(v->info.devices ? v->info.devices : 1, sizeof(*v->device));
	if (!v->device)
		return out_of_memory();
	for (i = 0; i < v->info.devices; i++) {
		v->device[i].size = sizeof(v->device[i]);
		rc = npuemu_device_query(ctx, i, &v->device[i]);
		if (rc)
			return npuemu_cli_failed(rc, "cannot look at device %u", i);
	}
	return 0;
}

static void first_sizes(struct npuemu_queue_stat *q, int n)
{
	while (n--)
		q[n].size = sizeof(q[n]);
}

/* Room grows until a whole list fits, as it may get longer meanwhile. */
static int look_queues(struct npuemu *ctx, struct npuemu_smi_process *p)
{
	int room = (int)p->info.queues + 8, n;

	for (;;) {
		free(p->queue);
		p->queue = calloc((size_t)room, sizeof(*p->queue));
		if (!p->queue)
			return out_of_memory();
		first_sizes(p->queue, room);
		n = npuemu_queue_list(ctx, p->info.slot, p->queue, room);
		if (n < 0)
			n = 0;	/* it ended while we looked */
		if (n <= room)
			break;
		room = n + 8;
	}
	p->queues = n;
	return 0;
}

static int list_processes(struct npuemu *ctx, struct npuemu_process_info **out)
{
	struct npuemu_process_info *list = NULL;
	int room = 64, n;

	for (;;) {
		free(list);
		list = calloc((size_t)room, sizeof(*list));
		if (!list)
			return -1;
		n = npuemu_process_list(ctx, list, room);
		if (n <= room)
			break;
		room = n + 16;
	}
	*out = list;
	return n;
}

static int look_processes(struct npuemu *ctx, struct npuemu_smi_view *v)
{
	struct npuemu_process_info *list = NULL;
	int n, i, rc = 0;

	n = list_processes(ctx, &list);
	if (!list)
		return out_of_memory();
	if (n < 0) {
		free(list);
		return npuemu_cli_failed(n, "cannot list the processes");
	}
	v->process = calloc((size_t)n + 1, sizeof(*v->process));
	if (!v->process)
		rc = out_of_memory();
	for (i = 0; i < n && !rc; i++) {
		v->process[i].info = list[i];
		v->processes = i + 1;
		rc = look_queues(ctx, &v->process[i]);
	}
	free(list);
	return rc;
}

static int look_links(struct npuemu *ctx, struct npuemu_smi_view *v)
{
	uint32_t n = v->info.devices, i;
	struct npuemu_link_info l;
	int rc;

	v->link = calloc((size_t)n * n, sizeof(*v->link));
	if (!v->link)
		return out_of_memory();
	for (i = 0; i < n * n; i++) {
		l.size = sizeof(l);
		rc = npuemu_link_query(ctx, i / n, i % n, &l);
		if (rc)
			return npuemu_cli_failed(rc, "cannot look at the links");
		if (l.wqes)
			v->link[v->links++] = l;
	}
	return 0;
}

int npuemu_smi_look(struct npuemu *ctx, struct npuemu_smi_view *v)
{
	int rc;

	memset(v, 0, sizeof(*v));
	v->info.size = sizeof(v->info);
	rc = npuemu_query(ctx, &v->info);
	if (rc)
		return npuemu_cli_failed(rc, "cannot look at the board");
	rc = look_devices(ctx, v);
	if (!rc)
		rc = look_processes(ctx, v);
	if (!rc)
		rc = look_links(ctx, v);
	if (rc)
		npuemu_smi_free(v);
	return rc;
}

void npuemu_smi_free(struct npuemu_smi_view *v)
{
	int i;

	for (i = 0; i < v->processes; i++)
		free(v->process[i].queue);
	free(v->process);
	free(v->link);
	free(v->device);
	memset(v, 0, sizeof(*v));
}
