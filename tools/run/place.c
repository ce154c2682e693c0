// SPDX-License-Identifier: MIT
/*
 * Which rank gets which device.  The board is opened for a look first: a machine
 * that does not exist is said once, not by each rank, and all ranks find the same
 * board.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "run.h"

static int look(struct npuemu_run_job *j)
{
	struct npuemu_info info;
	struct npuemu *ctx;
	int rc;

	rc = npuemu_cli_open(j->o->board, NPUEMU_OPEN_OBSERVE, &ctx);
	if (rc)
		return rc;
	memset(&info, 0, sizeof(info));
	info.size = sizeof(info);
	rc = npuemu_query(ctx, &info);
	if (rc)
		rc = npuemu_cli_failed(rc, "cannot look at board '%s'",
				       npuemu_cli_board(j->o->board));
	npuemu_close(ctx);
	if (rc)
		return rc;
	if (!info.devices || info.devices > NPUEMU_RUN_MAX_DEVICES || !info.servers) {
		npuemu_cli_say("board '%s' has %u devices in %u servers: 1 to %d were expected",
			       info.board, info.devices, info.servers, NPUEMU_RUN_MAX_DEVICES);
		return NPUEMU_EXIT_RUNTIME;
	}
	j->devices = info.devices;
	j->servers = info.servers;
	j->per_server = info.devices / info.servers;
	memcpy(j->machine, info.machine, sizeof(j->machine));
	j->machine[sizeof(j->machine) - 1] = '\0';
	return 0;
}

/* As the ACL runtime reads the variable: rising, up to the first that is no device. */
static int user_restricts(struct npuemu_run_job *j)
{
	const char *list = getenv("ASCEND_RT_VISIBLE_DEVICES");
	long v, last = -1;
	char *end;

	if (!list) {
		memset(j->visible, 1, j->devices);
		return 0;
	}
	j->restricted = 1;
	for (;;) {
		v = strtol(list, &end, 10);
		if (end == list || v <= last || v >= (long)j->devices)
			break;
		j->visible[v] = 1;
		last = v;
		if (*end != ',')
			break;
		list = end + 1;
	}
	if (last >= 0)
		return 0;
	npuemu_cli_say("ASCEND_RT_VISIBLE_DEVICES='%s' leaves no device of the %u on this board: unset it, or give a list like 0,1",
		       getenv("ASCEND_RT_VISIBLE_DEVICES"), j->devices);
	return NPUEMU_EXIT_RUNTIME;
}

static int pick_servers(const struct npuemu_run_job *j, uint8_t *server)
{
	const struct npuemu_run_list *l = &j->o->servers;
	uint32_t i;

	memset(server, !l->n, j->servers);
	for (i = 0; i < l->n; i++) {
		if (l->v[i] >= j->servers)
			return npuemu_cli_usage("--servers: there is no server %u: machine %s has server 0 to %u",
						l->v[i], j->machine, j->servers - 1);
		server[l->v[i]] = 1;
	}
	return 0;
}

static int check_device(const struct npuemu_run_job *j, const uint8_t *server, uint32_t d)
{
	if (d >= j->devices)
		return npuemu_cli_usage("--devices: there is no device %u: machine %s has device 0 to %u",
					d, j->machine, j->devices - 1);
	if (!server[d / j->per_server])
		return npuemu_cli_usage("--devices: device %u is in server %u, which --servers leaves out",
					d, d / j->per_server);
	if (!j->visible[d])
		return npuemu_cli_usage("--devices: device %u is not in ASCEND_RT_VISIBLE_DEVICES",
					d);
	return 0;
}

/* The devices ranks get, in turn. */
static int pick_devices(const struct npuemu_run_job *j, struct npuemu_run_list *pool)
{
	const struct npuemu_run_list *l = &j->o->devices;
	uint8_t server[NPUEMU_RUN_MAX_DEVICES];
	uint32_t i;
	int rc = pick_servers(j, server);

	pool->n = 0;
	for (i = 0; i < l->n && !rc; i++) {
		rc = check_device(j, server, l->v[i]);
		pool->v[pool->n++] = l->v[i];
	}
	for (i = 0; i < j->devices && !l->n && !rc; i++)
		if (server[i / j->per_server] && j->visible[i])
			pool->v[pool->n++] = i;
	if (rc || pool->n)
		return rc;
	return npuemu_cli_usage("--servers: ASCEND_RT_VISIBLE_DEVICES leaves no device in these servers");
}

int npuemu_run_sees(const struct npuemu_run_job *j, const struct npuemu_run_rank *r,
		    uint32_t device)
{
	if (j->o->visible == NPUEMU_VISIBLE_SERVER && device / j->per_server != r->server)
		return 0;
	return j->visible[device];
}

static void number_local(const struct npuemu_run_job *j, struct npuemu_run_rank *r)
{
	uint32_t i;

	r->local_rank = r->rank;
	r->local_size = j->size;
	if (j->o->visible != NPUEMU_VISIBLE_SERVER)
		return;
	r->local_rank = 0;
	r->local_size = 0;
	for (i = 0; i < j->size; i++) {
		if (j->rank[i].server != r->server)
			continue;
		r->local_rank += i < r->rank;
		r->local_size++;
	}
}

static void hand_out(struct npuemu_run_job *j, const struct npuemu_run_list *pool)
{
	struct npuemu_run_rank *r;
	uint32_t i, d;

	for (i = 0; i < j->size; i++) {
		r = &j->rank[i];
		r->rank = i;
		r->device = pool->v[i % pool->n];
		r->server = r->device / j->per_server;
		r->stream[0].fd = -1;
		r->stream[1].fd = -1;
	}
	if (j->o->visible == NPUEMU_VISIBLE_JOB) {
		memset(j->visible, 0, sizeof(j->visible));
		for (i = 0; i < j->size; i++)
			j->visible[j->rank[i].device] = 1;
	}
	j->restricted |= j->o->visible != NPUEMU_VISIBLE_BOARD;
	for (i = 0; i < j->size; i++) {
		r = &j->rank[i];
		for (d = 0; d < r->device; d++)
			r->device_id += npuemu_run_sees(j, r, d);
		number_local(j, r);
	}
}

int npuemu_run_place(struct npuemu_run_job *j)
{
	struct npuemu_run_list pool;
	int rc = look(j);

	if (!rc)
		rc = user_restricts(j);
	if (!rc)
		rc = pick_devices(j, &pool);
	if (rc)
		return rc;
	j->size = j->o->ranks ? j->o->ranks : pool.n;
	j->rank = calloc(j->size, sizeof(*j->rank));
	if (!j->rank)
		return npuemu_cli_failed(-ENOMEM, "no memory for %u ranks", j->size);
	hand_out(j, &pool);
	return 0;
}
