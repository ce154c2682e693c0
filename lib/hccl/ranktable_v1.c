// SPDX-License-Identifier: MIT
/*
 * Rank tables of version 1.0, a list of servers with their devices, and of 1.2,
 * where super pods are lists of servers on top.  Every scalar is in quotes.
 */
#include <stdio.h>
#include <stdlib.h>
#include "tableread.h"

#define MAX_DEVICE	63	/* physical id */
#define SERVERS		"server_list"
#define PODS		"super_pod_list"

struct server {
	const char *id;
	const char *pod;
	u32 pod_at[2];		/* where super_pod_list names it */
	u64 hash;		/* of what is said of it and of its pod */
};

struct v1 {
	const struct table_obj *root;
	bool pods;		/* version 1.2 */
	struct json_object *list;
	struct server *server;
	u32 n;
};

/* ---- Servers ---------------------------------------------------------------- */

static int read_server(struct v1 *v, u32 i)
{
	struct server *s = &v->server[i];
	struct json_object *ip;
	struct table_obj o;
	int ret;
	u32 k;

	ret = table_entry(v->root, SERVERS, v->list, i, &o);
	if (!ret)
		ret = table_string(&o, "server_id", TABLE_MUST, HCCL_SERVER_NAME, &s->id);
	if (!ret)
		ret = table_address(&o, "host_ip");
	if (ret)
		return ret;
	for (k = 0; k < i; k++)
		if (!strcmp(v->server[k].id, s->id))
			return table_bad(&o, "server_id", "another name than that of " SERVERS "[%u]", k);
	s->hash = table_hash_text(0, s->id);
	if (json_object_object_get_ex(o.json, "host_ip", &ip))
		s->hash = table_hash_text(s->hash, json_object_get_string(ip));
	return HCCL_SUCCESS;
}

static int read_servers(struct v1 *v)
{
	const struct table_obj *root = v->root;
	u32 count, i;
	int ret;

	ret = table_list(root, SERVERS, TABLE_MUST, 1, HCCL_RANKS_MAX, &v->list);
	if (ret)
		return ret;
	v->n = (u32)json_object_array_length(v->list);
	count = v->n;
	ret = table_number(root, "server_count", TABLE_TEXT, 1, HCCL_RANKS_MAX, &count);
	if (ret)
		return ret;
	if (count != v->n)
		return table_bad(root, "server_count", "%u, as many as " SERVERS " has", v->n);
	v->server = calloc(v->n, sizeof(*v->server));
	if (!v->server)
		return table_oom(root->t);
	for (i = 0; i < v->n && !ret; i++)
		ret = read_server(v, i);
	return ret;
}

/* ---- Super pods, of 1.2 ----------------------------------------------------- */

static struct server *server_of(struct v1 *v, const char *id)
{
	u32 i;

	for (i = 0; i < v->n; i++)
		if (!strcmp(v->server[i].id, id))
			return &v->server[i];
	return NULL;
}

static int read_pod(struct v1 *v, const struct table_obj *pod, const char *name, u32 at)
{
	struct json_object *list = NULL;
	struct table_obj o;
	struct server *s;
	const char *id;
	u32 i, n;
	int ret;

	ret = table_list(pod, SERVERS, TABLE_MUST, 1, HCCL_RANKS_MAX, &list);
	n = ret ? 0 : (u32)json_object_array_length(list);
	for (i = 0; i < n && !ret; i++) {
		ret = table_entry(pod, SERVERS, list, i, &o);
		if (!ret)
			ret = table_string(&o, "server_id", TABLE_MUST, HCCL_SERVER_NAME, &id);
		if (ret)
			return ret;
		s = server_of(v, id);
		if (!s)
			return table_bad(&o, "server_id", "the server_id of an entry of " SERVERS);
		if (s->pod)
			return table_bad(&o, "server_id", "a server that is not in " PODS "[%u]." SERVERS "[%u] already",
					 s->pod_at[0], s->pod_at[1]);
		s->pod = name;
		s->pod_at[0] = at;
		s->pod_at[1] = i;
		s->hash = table_hash_text(s->hash, name);
	}
	return ret;
}

static int check_pods(struct v1 *v, struct json_object *list)
{
	struct table *t = v->root->t;
	u32 i;

	for (i = 0; i < v->n; i++)
		if (!v->server[i].pod)
			return table_fail(t, HCCL_E_PARA,
					  "EI0017: rank table %s: " SERVERS "[%u].server_id \"%s\" is in none of the %zu entries of " PODS "; expected in one",
					  t->file, i, v->server[i].id, json_object_array_length(list));
	return HCCL_SUCCESS;
}

static int read_pods(struct v1 *v)
{
	struct json_object *list = NULL;
	struct table_obj o;
	const char **name;
	u32 i, k, n;
	int ret;

	ret = table_list(v->root, PODS, TABLE_MUST, 1, HCCL_RANKS_MAX, &list);
	if (ret)
		return ret;
	n = (u32)json_object_array_length(list);
	name = calloc(n, sizeof(*name));
	if (!name)
		return table_oom(v->root->t);
	for (i = 0; i < n && !ret; i++) {
		ret = table_entry(v->root, PODS, list, i, &o);
		if (!ret)
			ret = table_string(&o, "super_pod_id", TABLE_MUST, 128, &name[i]);
		for (k = 0; k < i && !ret; k++)
			if (!strcmp(name[k], name[i]))
				ret = table_bad(&o, "super_pod_id", "another name than that of " PODS "[%u]", k);
		if (!ret)
			ret = read_pod(v, &o, name[i], i);
	}
	free(name);
	return ret ? ret : check_pods(v, list);
}

/* ---- Devices ---------------------------------------------------------------- */

static int read_device(struct v1 *v, const struct table_obj *o, u32 server, u32 at)
{
	static const char *const ports[] = { "device_port", "host_port", "backup_device_port" };
	struct table_rank *r = table_add(o->t);
	u64 hash;
	int ret;
	u32 i;

	if (!r)
		return o->t->n == HCCL_RANKS_MAX ? HCCL_E_PARA : HCCL_E_MEMORY;
	ret = table_number(o, "device_id", TABLE_MUST | TABLE_TEXT, 0, MAX_DEVICE, &r->ent.device);
	if (!ret)
		ret = table_number(o, "rank_id", TABLE_MUST | TABLE_TEXT, 0, HCCL_RANKS_MAX - 1, &r->ent.rank);
	r->ent.local = r->ent.device;
	r->ent.super_device = r->ent.device;
	if (!ret && v->pods)
		ret = table_number(o, "super_device_id", TABLE_MUST | TABLE_TEXT, 0, UINT32_MAX - 1,
				   &r->ent.super_device);
	if (!ret)
		ret = table_address(o, "device_ip");
	if (!ret)
		ret = table_address(o, "backup_device_ip");
	for (i = 0; i < ARRAY_SIZE(ports) && !ret; i++)
		ret = table_port(o, ports[i], TABLE_TEXT);
	r->at[0] = server;
	r->at[1] = at;
	r->server = v->server[server].id;
	r->superpod = v->server[server].pod;
	hash = table_hash_json(o->json);
	r->hash = table_hash(v->server[server].hash, &hash, sizeof(hash));
	return ret;
}

static int read_devices(struct v1 *v, u32 server)
{
	struct json_object *list = NULL;
	struct table_obj s, o;
	u32 i, n;
	int ret;

	ret = table_entry(v->root, SERVERS, v->list, server, &s);
	if (!ret)
		ret = table_list(&s, "device", TABLE_MUST, 1, MAX_DEVICE + 1, &list);
	n = ret ? 0 : (u32)json_object_array_length(list);
	for (i = 0; i < n && !ret; i++) {
		ret = table_entry(&s, "device", list, i, &o);
		if (!ret)
			ret = read_device(v, &o, server, i);
	}
	return ret;
}

int table_read_v1(const struct table_obj *root)
{
	struct v1 v = { .root = root, .pods = !strcmp(root->t->version, "1.2") };
	int ret;
	u32 i;

	ret = read_servers(&v);
	if (!ret && v.pods)
		ret = read_pods(&v);
	for (i = 0; i < v.n && !ret; i++)
		ret = read_devices(&v, i);
	free(v.server);
	return ret;
}
