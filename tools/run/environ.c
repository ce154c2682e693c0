// SPDX-License-Identifier: MIT
/* What a rank finds in its environment, and the parts of it that must be unique. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"

void npuemu_run_new_id(char *buf, size_t len)
{
	uint64_t r;

	if (getrandom(&r, sizeof(r), GRND_NONBLOCK) != sizeof(r))
		r = npuemu_run_now() * 0x9e3779b97f4a7c15u;
	snprintf(buf, len, "%016llx-%ld", (unsigned long long)r, (long)getpid());
}

/* Keeps other launchers of this network away from the port while the job runs. */
static int lock_port(uint32_t port)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int n, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	n = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "npuemu-run-port-%u", port);
	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&un,
		  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)))
		return fd;
	n = -errno;
	close(fd);
	return n;
}

static int port_is_free(uint32_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	int rc, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return 0;
	in.sin_addr.s_addr = htonl(INADDR_ANY);
	in.sin_port = htons((uint16_t)port);
	rc = bind(fd, (struct sockaddr *)&in, sizeof(in));
	close(fd);
	return !rc;
}

/*
 * Below the ports that the system gives to whoever asks for any, which are those
 * that would be taken before rank 0 gets to it.
 */
int npuemu_run_port(struct npuemu_run_job *j)
{
	uint32_t i, first = 15000, n = 15000, at;

	j->port_lock = -1;
	j->port = j->o->port;
	if (j->port)
		return 0;
	if (getrandom(&at, sizeof(at), GRND_NONBLOCK) != sizeof(at))
		at = (uint32_t)getpid() * 7919u;
	for (i = 0; i < n; i++) {
		j->port = first + (at % n + i) % n;
		j->port_lock = lock_port(j->port);
		if (j->port_lock < 0)
			continue;
		if (port_is_free(j->port))
			return 0;
		close(j->port_lock);
	}
	npuemu_cli_say("no free TCP port from %u to %u for MASTER_PORT: give one with --port",
		       first, first + n - 1);
	return NPUEMU_EXIT_RUNTIME;
}

static void set(const char *name, const char *value)
{
	if (setenv(name, value, 1)) {
		npuemu_cli_say("no memory for %s in the environment", name);
		_exit(NPUEMU_EXIT_RUNTIME);
	}
}

static void set_u32(const char *name, uint32_t v)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", v);
	set(name, text);
}

static void set_visible(const struct npuemu_run_job *j, const struct npuemu_run_rank *r)
{
	char text[NPUEMU_RUN_MAX_DEVICES * 4] = "";
	size_t n = 0;
	uint32_t d;

	for (d = 0; d < j->devices; d++)
		if (npuemu_run_sees(j, r, d))
			n += (size_t)snprintf(text + n, sizeof(text) - n, n ? ",%u" : "%u", d);
	set("ASCEND_RT_VISIBLE_DEVICES", text);
}

/* In the child.  A program linked with a real MPI would take these for its own launcher's. */
static void set_mpi(const struct npuemu_run_job *j, const struct npuemu_run_rank *r)
{
	set_u32("OMPI_COMM_WORLD_RANK", r->rank);
	set_u32("OMPI_COMM_WORLD_SIZE", j->size);
	set_u32("OMPI_COMM_WORLD_LOCAL_RANK", r->local_rank);
	set_u32("OMPI_COMM_WORLD_LOCAL_SIZE", r->local_size);
	set_u32("PMI_RANK", r->rank);
	set_u32("PMI_SIZE", j->size);
}

void npuemu_run_environ(const struct npuemu_run_job *j, const struct npuemu_run_rank *r)
{
	set_u32("NPUEMU_RANK", r->rank);
	set_u32("NPUEMU_RANK_SIZE", j->size);
	set_u32("NPUEMU_LOCAL_RANK", r->local_rank);
	set_u32("NPUEMU_DEVICE", r->device);
	set_u32("NPUEMU_SERVER", r->server);
	set("NPUEMU_JOB", j->id);
	if (j->o->board)
		set("NPUEMU_BOARD", j->o->board);
	set_u32("RANK_ID", r->rank);
	set_u32("RANK_SIZE", j->size);
	set_u32("DEVICE_ID", r->device_id);
	set_u32("RANK", r->rank);
	set_u32("WORLD_SIZE", j->size);
	set_u32("LOCAL_RANK", r->local_rank);
	set_u32("LOCAL_WORLD_SIZE", r->local_size);
	set("MASTER_ADDR", "127.0.0.1");
	set_u32("MASTER_PORT", j->port);
	if (*j->table)
		set("RANK_TABLE_FILE", j->table);
	if (j->restricted)
		set_visible(j, r);
	if (j->o->mpi_env)
		set_mpi(j, r);
}
