// SPDX-License-Identifier: MIT
/*
 * Rank tables of version 2.0: a list of ranks, each with the net layers it is
 * part of.  Ranks with the same instance of layer 0 are a server, with the same of
 * layer 1 a super pod.  Numbers may be in quotes or not.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include "tableread.h"

#define RANKS		"rank_list"
#define MAX_ID		64	/* device_id; local_id, where it is a spare */
#define SPARE		64
#define MAX_LAYERS	8
#define MAX_INSTANCE	1024
#define MAX_ADDRESSES	24
#define MAX_PORTS	16

/* ---- Addresses -------------------------------------------------------------- */

/* 32 hexadecimal digits, or as an IPv6 address is written */
static bool is_eid(const char *s)
{
	struct in6_addr a;

	return (strlen(s) == 32 && strspn(s, "0123456789abcdefABCDEF") == 32) ||
	       inet_pton(AF_INET6, s, &a) == 1;
}

static int read_address_text(const struct table_obj *o)
{
	const char *type = NULL, *addr = NULL;
	struct in6_addr a;
	int ret;

	ret = table_string(o, "addr_type", TABLE_MUST, 16, &type);
	if (!ret && strcmp(type, "EID") && strcmp(type, "IPV4") && strcmp(type, "IPV6"))
		ret = table_bad(o, "addr_type", "\"EID\", \"IPV4\" or \"IPV6\"");
	if (!ret)
		ret = table_string(o, "addr", TABLE_MUST, 64, &addr);
	if (ret)
		return ret;
	if (!strcmp(type, "EID"))
		return is_eid(addr) ? HCCL_SUCCESS :
		       table_bad(o, "addr", "an EID, as its addr_type says: 32 hexadecimal digits");
	if (inet_pton(type[3] == '4' ? AF_INET : AF_INET6, addr, &a) != 1)
		return table_bad(o, "addr", "an IPv%c address, as its addr_type says", type[3]);
	return HCCL_SUCCESS;
}

/* "die/port" */
static bool is_port(struct json_object *json)
{
	const char *s;
	size_t die, port;

	if (!json_object_is_type(json, json_type_string))
		return false;
	s = json_object_get_string(json);
	die = strspn(s, "0123456789");
	if (s[die] != '/')
		return false;
	port = strspn(s + die + 1, "0123456789");
	return die && die <= 4 && port && port <= 4 && !s[die + 1 + port] &&
	       strlen(s) == (size_t)json_object_get_string_len(json);
}

static int read_address(const struct table_obj *layer, struct json_object *addrs, u32 i)
{
	struct json_object *ports = NULL;
	const char *plane = NULL;
	struct table_obj o;
	u32 k, n;
	int ret;

	ret = table_entry(layer, "rank_addr_list", addrs, i, &o);
	if (!ret)
		ret = read_address_text(&o);
	if (!ret)
		ret = table_string(&o, "plane_id", 0, MAX_INSTANCE, &plane);
	if (!ret)
		ret = table_list(&o, "ports", TABLE_MUST, 1, MAX_PORTS, &ports);
	n = ret ? 0 : (u32)json_object_array_length(ports);
	for (k = 0; k < n; k++)
		if (!is_port(json_object_array_get_idx(ports, k)))
			return table_fail(o.t, HCCL_E_PARA,
					  "EI0014: rank table %s: %s.ports[%u] is %.40s; expected \"DIE/PORT\", two numbers",
					  o.t->file, o.path, k,
					  json_object_to_json_string_ext(json_object_array_get_idx(ports, k),
									 JSON_C_TO_STRING_NOSLASHESCAPE));
	return ret;
}

/* ---- Layers ----------------------------------------------------------------- */

static int read_net_type(const struct table_obj *o)
{
	static const char *const types[] = {
		"TOPO_FILE_DESC", "CLOS", "1DMESH", "2DMESH", "A3_SERVER", "A2_AX_SERVER",
	};
	const char *type = NULL;
	size_t i;
	int ret;

	ret = table_string(o, "net_type", 0, 32, &type);
	if (ret || !type)
		return ret;
	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(type, types[i]))
			return HCCL_SUCCESS;
	return table_bad(o, "net_type", "\"TOPO_FILE_DESC\" or \"CLOS\"");
}

/* @least: the first layer that may come now */
static int read_layer(const struct table_obj *o, u32 *least, struct table_rank *r)
{
	struct json_object *addrs = NULL;
	const char *instance = NULL;
	u32 layer = 0, i, n;
	int ret;

	ret = table_number(o, "net_layer", TABLE_MUST, *least, MAX_LAYERS - 1, &layer);
	if (!ret)
		ret = table_string(o, "net_instance_id", TABLE_MUST, MAX_INSTANCE, &instance);
	if (!ret)
		ret = read_net_type(o);
	if (!ret)
		ret = table_list(o, "rank_addr_list", TABLE_MUST, 0, MAX_ADDRESSES, &addrs);
	n = ret ? 0 : (u32)json_object_array_length(addrs);
	for (i = 0; i < n && !ret; i++)
		ret = read_address(o, addrs, i);
	*least = layer + 1;
	if (layer == 0)
		r->server = instance;
	else if (layer == 1)
		r->superpod = instance;
	return ret;
}

static int read_layers(const struct table_obj *rank, struct table_rank *r)
{
	struct json_object *list = NULL;
	struct table_obj o;
	u32 i, n, least = 0;
	int ret;

	ret = table_list(rank, "level_list", TABLE_MUST, 1, MAX_LAYERS, &list);
	n = ret ? 0 : (u32)json_object_array_length(list);
	for (i = 0; i < n && !ret; i++) {
		ret = table_entry(rank, "level_list", list, i, &o);
		if (!ret)
			ret = read_layer(&o, &least, r);
	}
	if (!ret && !r->server)
		return table_fail(rank->t, HCCL_E_PARA,
				  "EI0017: rank table %s: %s.level_list has no net_layer 0; expected one: it names the rank's server",
				  rank->t->file, rank->path);
	return ret;
}

/* ---- Ranks ------------------------------------------------------------------ */

static int read_rank(const struct table_obj *o, u32 at)
{
	struct table_rank *r = table_add(o->t);
	u32 *local;
	int ret;

	if (!r)
		return o->t->n == HCCL_RANKS_MAX ? HCCL_E_PARA : HCCL_E_MEMORY;
	local = &r->ent.local;
	r->at[0] = at;
	ret = table_number(o, "rank_id", TABLE_MUST, 0, HCCL_RANKS_MAX - 1, &r->ent.rank);
	if (!ret)
		ret = table_number(o, "local_id", TABLE_MUST, 0, MAX_ID, local);
	/* a spare says whose place it takes */
	if (!ret && *local == SPARE)
		ret = table_number(o, "replaced_local_id", TABLE_MUST, 0, MAX_ID - 1, local);
	if (!ret)
		ret = table_number(o, "device_id", TABLE_MUST, 0, MAX_ID, &r->ent.device);
	r->ent.super_device = *local;
	if (!ret)
		ret = table_port(o, "device_port", 0);
	if (!ret)
		ret = table_port(o, "host_port", 0);
	if (!ret)
		ret = read_layers(o, r);
	r->hash = table_hash_json(o->json);
	return ret;
}

int table_read_v2(const struct table_obj *root)
{
	struct json_object *list = NULL;
	struct table_obj o;
	u32 count = 0, i, n;
	int ret;

	ret = table_number(root, "rank_count", TABLE_MUST, 1, HCCL_RANKS_MAX, &count);
	if (!ret)
		ret = table_list(root, RANKS, TABLE_MUST, 1, HCCL_RANKS_MAX, &list);
	if (ret)
		return ret;
	n = (u32)json_object_array_length(list);
	if (count != n)
		return table_bad(root, "rank_count", "%u, as many as " RANKS " has", n);
	for (i = 0; i < n && !ret; i++) {
		ret = table_entry(root, RANKS, list, i, &o);
		if (!ret)
			ret = read_rank(&o, i);
	}
	return ret;
}
