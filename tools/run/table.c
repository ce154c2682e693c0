// SPDX-License-Identifier: MIT
/*
 * The rank table: a JSON file that says which rank has which device of which
 * server.  Devices go by the board's numbers.  Addresses are made up, from a range
 * that is nobody's (RFC 2544): they tell devices apart, nothing connects to them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "json.h"
#include "run.h"

static void str_u32(struct json_object *o, const char *key, uint32_t v)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", v);
	npuemu_json_str(o, key, text);
}

static void server_name(char *buf, size_t len, uint32_t server)
{
	snprintf(buf, len, "server%u", server);
}

static int server_used(const struct npuemu_run_job *j, uint32_t server)
{
	uint32_t i;

	for (i = 0; i < j->size; i++)
		if (j->rank[i].server == server)
			return 1;
	return 0;
}

static void put(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value);
}

/* ---- 1.0, and 1.2 which knows of super pods: every value is a string -------------- */

static struct json_object *device_v1(const struct npuemu_run_job *j,
				     const struct npuemu_run_rank *r)
{
	struct json_object *d = json_object_new_object();
	char text[32];

	str_u32(d, "device_id", r->device);
	snprintf(text, sizeof(text), "198.18.%u.%u", r->server, r->device + 1);
	npuemu_json_str(d, "device_ip", text);
	if (j->o->table == NPUEMU_TABLE_1_2)
		str_u32(d, "super_device_id", r->device);
	str_u32(d, "rank_id", r->rank);
	return d;
}

static struct json_object *server_v1(const struct npuemu_run_job *j, uint32_t server, int brief)
{
	struct json_object *s = json_object_new_object(), *list;
	char name[32];
	uint32_t i;

	server_name(name, sizeof(name), server);
	npuemu_json_str(s, "server_id", name);
	if (brief)
		return s;
	npuemu_json_str(s, "host_ip", "127.0.0.1");
	list = json_object_new_array();
	for (i = 0; i < j->size; i++)
		if (j->rank[i].server == server)
			json_object_array_add(list, device_v1(j, &j->rank[i]));
	put(s, "device", list);
	return s;
}

static struct json_object *servers_v1(const struct npuemu_run_job *j, int brief)
{
	struct json_object *list = json_object_new_array();
	uint32_t i;

	for (i = 0; i < j->servers; i++)
		if (server_used(j, i))
			json_object_array_add(list, server_v1(j, i, brief));
	return list;
}

static struct json_object *table_v1(const struct npuemu_run_job *j)
{
	struct json_object *t = json_object_new_object(), *pod, *pods;
	uint32_t i, n = 0;

	for (i = 0; i < j->servers; i++)
		n += (uint32_t)server_used(j, i);
	npuemu_json_str(t, "status", "completed");
	npuemu_json_str(t, "version", j->o->table == NPUEMU_TABLE_1_2 ? "1.2" : "1.0");
	str_u32(t, "server_count", n);
	put(t, "server_list", servers_v1(j, 0));
	if (j->o->table != NPUEMU_TABLE_1_2)
		return t;
	pod = json_object_new_object();
	npuemu_json_str(pod, "super_pod_id", "0");
	put(pod, "server_list", servers_v1(j, 1));
	pods = json_object_new_array();
	json_object_array_add(pods, pod);
	put(t, "super_pod_list", pods);
	return t;
}

/* ---- 2.0: a list of ranks, each with an address in every layer of the net --------- */

static struct json_object *level(uint32_t layer, const char *instance, const char *type,
				 uint32_t device)
{
	struct json_object *l = json_object_new_object(), *a = json_object_new_object(), *list;
	char eid[40];

	npuemu_json_u64(l, "net_layer", layer);
	npuemu_json_str(l, "net_instance_id", instance);
	npuemu_json_str(l, "net_type", type);
	npuemu_json_str(l, "net_attr", "");
	npuemu_json_str(a, "addr_type", "EID");
	snprintf(eid, sizeof(eid), "%08x%08x%08x%08x", 0xc6120000u, 0, layer, device + 1);
	npuemu_json_str(a, "addr", eid);
	list = json_object_new_array();
	json_object_array_add(list, json_object_new_string(layer ? "1/0" : "0/0"));
	put(a, "ports", list);
	npuemu_json_str(a, "plane_id", "0");
	list = json_object_new_array();
	json_object_array_add(list, a);
	put(l, "rank_addr_list", list);
	return l;
}

static struct json_object *rank_v2(const struct npuemu_run_job *j, const struct npuemu_run_rank *r)
{
	struct json_object *o = json_object_new_object(), *levels = json_object_new_array();
	char name[32];

	server_name(name, sizeof(name), r->server);
	npuemu_json_u64(o, "rank_id", r->rank);
	npuemu_json_u64(o, "local_id", r->device % j->per_server);
	npuemu_json_u64(o, "device_id", r->device);
	json_object_array_add(levels, level(0, name, "TOPO_FILE_DESC", r->device));
	if (j->servers > 1)
		json_object_array_add(levels, level(1, "superpod0", "CLOS", r->device));
	put(o, "level_list", levels);
	return o;
}

static struct json_object *table_v2(const struct npuemu_run_job *j)
{
	struct json_object *t = json_object_new_object(), *list = json_object_new_array();
	uint32_t i;

	npuemu_json_str(t, "version", "2.0");
	npuemu_json_u64(t, "rank_count", j->size);
	for (i = 0; i < j->size; i++)
		json_object_array_add(list, rank_v2(j, &j->rank[i]));
	put(t, "rank_list", list);
	return t;
}

/* ---- The file --------------------------------------------------------------------- */

static int write_file(const char *path, const char *text)
{
	size_t n = strlen(text);
	ssize_t done = 0;
	int err = 0, fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	while (n && done >= 0) {
		done = write(fd, text, n);
		if (done < 0) {
			err = errno;
			break;
		}
		text += done;
		n -= (size_t)done;
	}
	if (close(fd) && !err)
		err = errno;
	return err;
}

int npuemu_run_table_write(struct npuemu_run_job *j)
{
	const int flags = JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
			  JSON_C_TO_STRING_NOSLASHESCAPE;
	const char *tmp = getenv("TMPDIR");
	struct json_object *t;
	int n, err;

	if (j->o->table == NPUEMU_TABLE_NONE)
		return 0;
	n = snprintf(j->folder, sizeof(j->folder), "%s/npuemu-run.XXXXXX",
		     tmp && *tmp == '/' && strlen(tmp) < 100 ? tmp : "/tmp");
	if (n >= (int)sizeof(j->folder) || !mkdtemp(j->folder)) {
		npuemu_cli_say("cannot make the folder %s for the rank table: %s: set TMPDIR to one that can be written, or give --no-rank-table",
			       j->folder, strerror(errno));
		*j->folder = '\0';
		return NPUEMU_EXIT_RUNTIME;
	}
	snprintf(j->table, sizeof(j->table), "%s/rank_table.json", j->folder);
	t = j->o->table == NPUEMU_TABLE_2_0 ? table_v2(j) : table_v1(j);
	err = write_file(j->table, json_object_to_json_string_ext(t, flags));
	json_object_put(t);
	if (!err)
		return 0;
	npuemu_cli_say("cannot write the rank table %s: %s: set TMPDIR to a folder with room, or give --no-rank-table",
		       j->table, strerror(err));
	npuemu_run_table_remove(j);
	return NPUEMU_EXIT_RUNTIME;
}

void npuemu_run_table_remove(const struct npuemu_run_job *j)
{
	if (!*j->folder)
		return;
	if (*j->table)
		unlink(j->table);
	rmdir(j->folder);
}
