// SPDX-License-Identifier: MIT
/*
 * What tells a job from others with the same rank table.
 *
 * Launchers say it in the environment, but for MPICH's: that one has a process beside the
 * ranks which each of them has a socket to, and that process is the job.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "comm.h"

#define PMI_PROXY	"hydra_pmi_proxy"

static bool is_proxy(pid_t pid)
{
	char path[32], name[sizeof(PMI_PROXY)] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, name, sizeof(name));
	close(fd);
	return n == sizeof(name) && !memcmp(name, PMI_PROXY, sizeof(name) - 1);
}

/* 0: there is none.  The number may name another file by now, and the program's own is nobody's job. */
static pid_t pmi_proxy(void)
{
	const char *text = npuemu_getenv("PMI_FD");
	struct ucred peer;
	socklen_t size = sizeof(peer);
	char *end;
	long fd;

	if (!text)
		return 0;
	fd = strtol(text, &end, 10);
	if (*end || fd < 0 || fd > INT32_MAX || getsockopt((int)fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return 0;
	return peer.pid > 0 && is_proxy(peer.pid) ? peer.pid : 0;
}

const char *hccl_job(char *buf, size_t size)
{
	static const char *const names[] = {
		"NPUEMU_JOB", "PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID", "OMPI_MCA_ess_base_jobid",
	};
	const char *v;
	pid_t proxy;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		v = npuemu_getenv(names[i]);
		if (v)
			return v;
	}
	proxy = pmi_proxy();
	if (!proxy)
		return "";
	snprintf(buf, size, "hydra %d", (int)proxy);
	return buf;
}
