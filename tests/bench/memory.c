// SPDX-License-Identifier: MIT
/*
 * Memory: KiB an idle device costs (device_kib), and KiB a queue of 1,024 basic
 * blocks and its CQ cost after two full laps of both (queue_kib).
 *
 * Counted: private pages (Pss_Anon) and file pages (Pss_File) of this process,
 * and for shared memory the larger of its Pss and the blocks of every memfd or
 * file it holds open or mapped, each inode once.  So a page mapped twice, or
 * not mapped at all, counts once.  Device memory that is backed is taken off.
 */
#include "bench.h"
#include <sys/stat.h>
#include <sys/vfs.h>
#include <linux/magic.h>

#define DEVICES	8
#define QUEUES	32
#define LAPS	4	/* the CQ has twice the entries: two laps of it */

static struct stat seen[512];
static unsigned int nseen;

/* KiB of @path's blocks, if it is shared memory not counted yet. */
static uint64_t blocks_of(const char *path)
{
	struct statfs fs;
	struct stat st;
	unsigned int i;

	if (stat(path, &st) || !S_ISREG(st.st_mode) || statfs(path, &fs) ||
	    fs.f_type != TMPFS_MAGIC)
		return 0;
	for (i = 0; i < nseen; i++)
		if (seen[i].st_dev == st.st_dev && seen[i].st_ino == st.st_ino)
			return 0;
	if (nseen == sizeof(seen) / sizeof(seen[0]))
		bench_die("too many shared files");
	seen[nseen++] = st;
	return (uint64_t)st.st_blocks / 2;
}

static uint64_t blocks_in(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *e;
	char path[600];
	uint64_t kib = 0;

	while (dir && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		kib += blocks_of(path);
	}
	if (dir)
		closedir(dir);
	return kib;
}

static uint64_t pss(const char *what)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	unsigned long long kib;
	char line[200], name[64];
	uint64_t have = 0;

	if (!f)
		bench_die("/proc/self/smaps_rollup: %s", strerror(errno));
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%63[^:]: %llu kB", name, &kib) == 2 && !strcmp(name, what))
			have = kib;
	fclose(f);
	return have;
}

static double touched_kib(void)
{
	uint64_t shared = pss("Pss_Shmem"), blocks;

	nseen = 0;
	blocks = blocks_in("/proc/self/fd") + blocks_in("/proc/self/map_files");
	return (double)(pss("Pss_Anon") + pss("Pss_File") +
			(blocks > shared ? blocks : shared));
}

static double hbm_kib(struct npuemu *ctx, uint32_t devices)
{
	struct npuemu_device_info info = { .size = sizeof(info) };
	double sum = 0;
	uint32_t i;

	for (i = 0; i < devices; i++) {
		bench_try(npuemu_device_query(ctx, i, &info));
		sum += (double)info.hbm_backed / 1024;
	}
	return sum;
}

static void laps(struct npuemu_queue *q, const struct npuemu_seg_info *seg, void *src)
{
	struct npuemu_target t = npuemu_target_of(seg);
	uint32_t i, j, bad = 0;

	for (i = 0; i < LAPS * BENCH_RING; i += BENCH_BATCH) {
		for (j = 0; j < BENCH_BATCH; j++)
			bench_try(npuemu_post_write(q, src, 8, &t, seg->va + 8,
						    NPUEMU_SQE_CQE));
		bench_try(npuemu_doorbell(q));
		bench_drain(npuemu_queue_cq(q), BENCH_BATCH, &bad);
	}
	bench_good("WRITE", bad);
}

int main(void)
{
	struct npuemu_seg_attr attr = {
		.size = sizeof(attr), .access = NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE,
	};
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu_queue *q[QUEUES];
	struct npuemu_buf *buf[DEVICES];
	struct npuemu_seg_info seg_info;
	struct npuemu_seg *seg;
	struct npuemu *ctx;
	uint32_t devices, i;
	double before, after;

	touched_kib();		/* its own pages are no device's */
	before = touched_kib();
	bench_try(npuemu_open(NULL, &ctx));
	bench_try(npuemu_query(ctx, &info));
	devices = info.devices < DEVICES ? info.devices : DEVICES;
	for (i = 0; i < devices; i++)
		bench_try(npuemu_buf_alloc(ctx, i, 4096, 0, &buf[i]));
	after = touched_kib() - hbm_kib(ctx, devices);
	bench_emit("devices", 0, devices);
	bench_emit("device_kib", 0, (after - before) / devices);

	/* one queue first: what all share is not the next one's */
	bench_try(npuemu_seg_register(buf[0], &attr, &seg));
	bench_try(npuemu_seg_query(seg, &seg_info));
	laps(bench_queue_new(ctx, NPUEMU_QUEUE_UDMA, BENCH_RING), &seg_info,
	     npuemu_buf_ptr(buf[0]));
	before = touched_kib() - hbm_kib(ctx, devices);
	for (i = 0; i < QUEUES; i++)
		q[i] = bench_queue_new(ctx, NPUEMU_QUEUE_UDMA, BENCH_RING);
	for (i = 0; i < QUEUES; i++)
		laps(q[i], &seg_info, npuemu_buf_ptr(buf[0]));
	after = touched_kib() - hbm_kib(ctx, devices);
	bench_emit("queue_kib", 0, (after - before) / QUEUES);
	bench_try(npuemu_close(ctx));
	return bench_end();
}
