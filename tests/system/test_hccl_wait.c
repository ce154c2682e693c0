// SPDX-License-Identifier: MIT
/*
 * Calls in which ranks come together, beside the collectives: who waits there for long is told
 * for whom, long before the limit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hccltest.h"

static const char *const reports[] = { "waited 1 s for rank 1", "for the first rank of sub-communicator 4", "for rank 0 of this rank table" };

/* Calls in which ranks come together, beside the collectives. */
static void come_together(struct ht_rank *r, uint32_t which, const char *table)
{
	static uint32_t both[] = { 0, 1 };
	HcclCommSymWindow w;
	HcclComm comm = NULL;
	HcclCommConfig c;
	void *mem = NULL;

	HcclCommConfigInit(&c);
	if (which == 2) {
		ht_ok(HcclCommInitClusterInfo(table, r->rank, &comm));
	} else if (which) {
		ht_ok(HcclCreateSubCommConfig(&r->comm, 2, both, 4, r->rank, &c, &comm));
	} else {
		mem = ht_device(1 << 20, NULL);
		ht_ok(HcclCommSymWinRegister(r->comm, mem, 1 << 20, &w, 1));
		ht_barrier(r);
		ht_ok(HcclCommSymWinDeregister(w));
		acl_ok(aclrtFree(mem));
	}
	if (comm)
		ht_ok(HcclCommDestroy(comm));
}

static void waits(struct ht_rank *r)
{
	const char *dir = r->arg;
	char path[2][200], text[4096];
	int64_t deadline;
	uint32_t k;
	FILE *f;
	int old;

	for (k = 0; k < 3; k++) {
		snprintf(path[0], sizeof(path[0]), "%s/table", dir);
		snprintf(path[1], sizeof(path[1]), "%s/said-%u", dir, k);
		if (r->rank == (k ? 1 : 0)) {
			old = dup(STDERR_FILENO);
			sys_true(freopen(path[1], "w", stderr), "%s", path[1]);
			come_together(r, k, path[0]);
			dup2(old, STDERR_FILENO);
			close(old);
		} else {
			deadline = sys_deadline();
			do {
				ht_progress();
				memset(text, 0, sizeof(text));
				f = fopen(path[1], "r");
				sys_true(!f || fread(text, 1, sizeof(text) - 1, f) < sizeof(text), "%s", path[1]);
				if (f)
					fclose(f);
			} while (!strstr(text, reports[k]) && sys_retry(deadline));
			sys_true(strstr(text, reports[k]), "\"%s\" is not said, but: %s", reports[k], text);
			come_together(r, k, path[0]);
		}
		ht_barrier(r);
	}
}

static void told(void **state)
{
	static const char table[] = "{\"status\":\"completed\",\"version\":\"1.0\",\"server_count\":\"1\",\"server_list\":[{\"server_id\":\"s\","
		"\"device\":[{\"device_id\":\"0\",\"rank_id\":\"0\"},{\"device_id\":\"1\",\"rank_id\":\"1\"}]}]}";
	char dir[160], path[200];
	struct ht_job job = { .ranks = 2, .processes = true, .fn = waits, .arg = dir, .bytes = sizeof(dir) };
	FILE *f;

	(void)state;
	snprintf(dir, sizeof(dir), "%s/told-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	sys_true(mkdtemp(dir), "%s", dir);
	snprintf(path, sizeof(path), "%s/table", dir);
	f = fopen(path, "w");
	sys_true(f && fwrite(table, sizeof(table) - 1, 1, f) == 1 && !fclose(f), "%s", path);
	ht_env("NPUEMU_HANG_REPORT", "1");
	ht_run(&job);
	ht_env_restore();
	for (int k = -1; k < 3; k++) {
		if (k >= 0)
			snprintf(path, sizeof(path), "%s/said-%d", dir, k);
		sys_eq(unlink(path), 0);
	}
	sys_eq(rmdir(dir), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ht_test(told),
	};

	ht_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
