// SPDX-License-Identifier: MIT
/* Showing a look at a board: tables for people, JSON for programs. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../common/json.h"
#include "../common/text.h"
#include "smi.h"

const char *npuemu_smi_state(uint32_t state)
{
	switch (state) {
	case NPUEMU_QS_RESET:
		return "RESET";
	case NPUEMU_QS_READY:
		return "READY";
	case NPUEMU_QS_SUSPENDED:
		return "SUSPENDED";
	case NPUEMU_QS_ERROR:
		return "ERROR";
	}
	return "?";
}

const char *npuemu_smi_type(uint32_t type)
{
	switch (type) {
	case NPUEMU_QUEUE_UDMA:
		return "UDMA";
	case NPUEMU_QUEUE_SDMA:
		return "SDMA";
	}
	return "?";
}

const char *npuemu_smi_status(char *buf, size_t len, uint32_t status)
{
	if (status == NPUEMU_ST_SUCCESS)
		return "-";
	snprintf(buf, len, "%s", npuemu_status_str(status));
	buf[strcspn(buf, ":")] = '\0';
	return buf;
}

static void print_head(const struct npuemu_smi_view *v)
{
	char used[NPUEMU_TEXT_SIZE], all[NPUEMU_TEXT_SIZE], when[32];
	time_t now = time(NULL);
	struct tm tm;

	when[0] = '\0';
	if (localtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	printf("npuemu-smi %s   %s\n", npuemu_version(), when);
	printf("board %s, machine %s (%s, generation %u), host %s, backed %s of %s\n",
	       v->info.board, v->info.machine, v->info.soc, v->info.generation,
	       v->info.host, npuemu_size_text(used, v->info.backed_bytes),
	       npuemu_size_text(all, v->info.budget_bytes));
}

static void print_devices(const struct npuemu_smi_view *v)
{
	char heads[] = "NPU|Name|Server|HBM used|backed|total|Queues|Processes";
	char a[NPUEMU_TEXT_SIZE], b[NPUEMU_TEXT_SIZE], c[NPUEMU_TEXT_SIZE];
	const struct npuemu_device_info *d;
	struct npuemu_table t;
	uint32_t i;

	npuemu_table_init(&t, heads, "rlrrrrrr", 1);
	for (i = 0; i < v->info.devices; i++) {
		d = &v->device[i];
		npuemu_table_add(&t, "%u", d->device);
		npuemu_table_add(&t, "%s", v->info.soc);
		npuemu_table_add(&t, "%u", d->server);
		npuemu_table_add(&t, "%s", npuemu_size_text(a, d->hbm_used));
		npuemu_table_add(&t, "%s", npuemu_size_text(b, d->hbm_backed));
		npuemu_table_add(&t, "%s", npuemu_size_text(c, d->hbm_bytes));
		npuemu_table_add(&t, "%u", d->queues);
		npuemu_table_add(&t, "%u", d->processes);
	}
	npuemu_table_print(&t, stdout);
	npuemu_table_free(&t);
}

static void print_processes(const struct npuemu_smi_view *v)
{
	char heads[] = "PID|Process|HBM used|backed|Queues|Segments|WQEs|Errors|Waits for";
	char a[NPUEMU_TEXT_SIZE], b[NPUEMU_TEXT_SIZE];
	const struct npuemu_process_info *p;
	struct npuemu_table t;
	int i;

	if (!v->processes) {
		puts("No process uses this board.");
		return;
	}
	npuemu_table_init(&t, heads, "rlrrrrrrl", 1);
	for (i = 0; i < v->processes; i++) {
		p = &v->process[i].info;
		npuemu_table_add(&t, "%u", p->pid);
		npuemu_table_add(&t, "%.16s", p->comm);
		npuemu_table_add(&t, "%s", npuemu_size_text(a, p->hbm_used));
		npuemu_table_add(&t, "%s", npuemu_size_text(b, p->hbm_backed));
		npuemu_table_add(&t, "%u", p->queues);
		npuemu_table_add(&t, "%u", p->segments);
		npuemu_table_add(&t, "%llu", (unsigned long long)p->cnt.wqes);
		npuemu_table_add(&t, "%llu", (unsigned long long)p->cnt.errors);
		npuemu_table_add(&t, "%.96s", p->waits[0] ? p->waits : "-");
	}
	npuemu_table_print(&t, stdout);
	npuemu_table_free(&t);
}

static void add_queue(struct npuemu_table *t, uint32_t pid,
		      const struct npuemu_queue_stat *q)
{
	char text[64], bytes[NPUEMU_TEXT_SIZE];

	npuemu_table_add(t, "%u", pid);
	npuemu_table_add(t, "%u", q->id);
	npuemu_table_add(t, "%u", q->device);
	npuemu_table_add(t, "%s", npuemu_smi_type(q->type));
	npuemu_table_add(t, "%s", npuemu_smi_state(q->state));
	npuemu_table_add(t, "%u", q->pi);
	npuemu_table_add(t, "%u", q->ci);
	npuemu_table_add(t, "%u", q->depth);
	npuemu_table_add(t, "%llu", (unsigned long long)q->cnt.wqes);
	npuemu_table_add(t, "%llu", (unsigned long long)q->cnt.cqes);
	npuemu_table_add(t, "%llu", (unsigned long long)q->cnt.doorbells);
	npuemu_table_add(t, "%llu", (unsigned long long)q->cnt.helped);
	npuemu_table_add(t, "%s", npuemu_size_text(bytes, q->cnt.bytes));
	npuemu_table_add(t, "%llu", (unsigned long long)q->cnt.errors);
	npuemu_table_add(t, "%s",
			 npuemu_smi_status(text, sizeof(text), q->last_status));
	npuemu_table_add(t, "%.96s", q->cause[0] ? q->cause : "-");
}

static void print_queues(const struct npuemu_smi_view *v)
{
	char heads[] = "PID|Queue|NPU|Type|State|PI|CI|Depth|WQEs|CQEs|Bells|Helped|Moved|Errors|Status|Cause";
	const struct npuemu_smi_process *p;
	struct npuemu_table t;
	int i, j;

	npuemu_table_init(&t, heads, "rrrllrrrrrrrrrll", 1);
	for (i = 0; i < v->processes; i++) {
		p = &v->process[i];
		for (j = 0; j < p->queues; j++)
			add_queue(&t, p->info.pid, &p->queue[j]);
	}
	if (t.cells)
		npuemu_table_print(&t, stdout);
	else
		puts("No queues.");
	npuemu_table_free(&t);
}

static void print_links(const struct npuemu_smi_view *v)
{
	char heads[] = "From|To|Link|Latency ns|MB/s|WQEs|Moved";
	struct npuemu_table t;
	char text[32];
	int i;

	npuemu_table_init(&t, heads, "rrlrrrr", 1);
	for (i = 0; i < v->links; i++) {
		const struct npuemu_link_info *l = &v->link[i];

		npuemu_table_add(&t, "%u", l->from);
		npuemu_table_add(&t, "%u", l->to);
		npuemu_table_add(&t, "%s", l->name);
		npuemu_table_add(&t, "%u", l->latency_ns);
		npuemu_table_add(&t, "%u", l->mbytes_per_s);
		npuemu_table_add(&t, "%llu", (unsigned long long)l->wqes);
		npuemu_table_add(&t, "%s", npuemu_size_text(text, l->bytes));
	}
	if (t.cells)
		npuemu_table_print(&t, stdout);
	else
		puts("No link carried anything.");
	npuemu_table_free(&t);
}

void npuemu_smi_print(const struct npuemu_smi_view *v, int queues, int links)
{
	print_head(v);
	print_devices(v);
	print_processes(v);
	if (queues)
		print_queues(v);
	if (links)
		print_links(v);
	fflush(stdout);
}

static struct json_object *queue_json(const struct npuemu_queue_stat *q)
{
	struct json_object *o = json_object_new_object();

	npuemu_json_u64(o, "id", q->id);
	npuemu_json_u64(o, "device", q->device);
	npuemu_json_str(o, "type", npuemu_smi_type(q->type));
	npuemu_json_str(o, "state", npuemu_smi_state(q->state));
	npuemu_json_u64(o, "pi", q->pi);
	npuemu_json_u64(o, "ci", q->ci);
	npuemu_json_u64(o, "depth", q->depth);
	npuemu_json_u64(o, "last_status", q->last_status);
	npuemu_json_str(o, "last_status_text", npuemu_status_str(q->last_status));
	npuemu_json_str(o, "cause", q->cause);
	npuemu_json_counters(o, &q->cnt);
	return o;
}

static struct json_object *process_json(const struct npuemu_smi_process *p)
{
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array();
	int i;

	npuemu_json_u64(o, "pid", p->info.pid);
	npuemu_json_str(o, "comm", p->info.comm);
	npuemu_json_u64(o, "slot", p->info.slot);
	npuemu_json_u64(o, "hbm_used", p->info.hbm_used);
	npuemu_json_u64(o, "hbm_backed", p->info.hbm_backed);
	npuemu_json_u64(o, "buffers", p->info.buffers);
	npuemu_json_u64(o, "imports", p->info.imports);
	npuemu_json_u64(o, "segments", p->info.segments);
	npuemu_json_u64(o, "queue_count", p->info.queues);
	npuemu_json_str(o, "waits", p->info.waits);
	npuemu_json_counters(o, &p->info.cnt);
	npuemu_json_u64(o, "engine_turns", p->info.engine_turns);
	npuemu_json_u64(o, "engine_parks", p->info.engine_parks);
	npuemu_json_u64(o, "engine_sleeps", p->info.engine_sleeps);
	npuemu_json_u64(o, "doorbell_faults", p->info.doorbell_faults);
	for (i = 0; i < p->queues; i++)
		json_object_array_add(list, queue_json(&p->queue[i]));
	json_object_object_add(o, "queues", list);
	return o;
}

static struct json_object *device_json(const struct npuemu_smi_view *v,
				       const struct npuemu_device_info *d)
{
	struct json_object *o = json_object_new_object();

	npuemu_json_u64(o, "device", d->device);
	npuemu_json_str(o, "name", v->info.soc);
	npuemu_json_u64(o, "server", d->server);
	npuemu_json_u64(o, "hbm_used", d->hbm_used);
	npuemu_json_u64(o, "hbm_backed", d->hbm_backed);
	npuemu_json_u64(o, "hbm_total", d->hbm_bytes);
	npuemu_json_u64(o, "queues", d->queues);
	npuemu_json_u64(o, "processes", d->processes);
	return o;
}

static struct json_object *link_json(const struct npuemu_link_info *l)
{
	struct json_object *o = json_object_new_object();

	npuemu_json_u64(o, "from", l->from);
	npuemu_json_u64(o, "to", l->to);
	npuemu_json_str(o, "name", l->name);
	npuemu_json_u64(o, "latency_ns", l->latency_ns);
	npuemu_json_u64(o, "mbytes_per_s", l->mbytes_per_s);
	npuemu_json_u64(o, "wqes", l->wqes);
	npuemu_json_u64(o, "bytes", l->bytes);
	return o;
}

static struct json_object *board_json(const struct npuemu_info *info)
{
	struct json_object *o = json_object_new_object();

	npuemu_json_str(o, "name", info->board);
	npuemu_json_str(o, "host", info->host);
	npuemu_json_str(o, "machine", info->machine);
	npuemu_json_str(o, "soc", info->soc);
	npuemu_json_u64(o, "generation", info->generation);
	npuemu_json_u64(o, "servers", info->servers);
	npuemu_json_u64(o, "devices", info->devices);
	npuemu_json_bool(o, "has_udma", info->has_udma != 0);
	npuemu_json_u64(o, "budget_bytes", info->budget_bytes);
	npuemu_json_u64(o, "backed_bytes", info->backed_bytes);
	return o;
}

int npuemu_smi_print_json(const struct npuemu_smi_view *v, int one_line)
{
	struct json_object *o = json_object_new_object();
	struct json_object *devices = json_object_new_array();
	struct json_object *processes = json_object_new_array();
	struct json_object *links = json_object_new_array();
	uint32_t d;
	int i;

	npuemu_json_str(o, "version", npuemu_version());
	npuemu_json_u64(o, "time", (uint64_t)time(NULL));
	json_object_object_add(o, "board", board_json(&v->info));
	for (d = 0; d < v->info.devices; d++)
		json_object_array_add(devices, device_json(v, &v->device[d]));
	json_object_object_add(o, "devices", devices);
	for (i = 0; i < v->processes; i++)
		json_object_array_add(processes, process_json(&v->process[i]));
	json_object_object_add(o, "processes", processes);
	for (i = 0; i < v->links; i++)
		json_object_array_add(links, link_json(&v->link[i]));
	json_object_object_add(o, "links", links);
	return npuemu_json_print(o, one_line);
}
