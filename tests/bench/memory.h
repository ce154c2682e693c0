/* SPDX-License-Identifier: MIT */
/*
 * What memory a process has touched.
 *
 * Counted: private pages (Pss_Anon) and file pages (Pss_File) of this process,
 * and for shared memory the larger of its Pss and the blocks of every memfd or
 * file it holds open or mapped, each inode once.  So a page mapped twice, or
 * not mapped at all, counts once.
 */
#ifndef NPUEMU_BENCH_MEMORY_H
#define NPUEMU_BENCH_MEMORY_H

#include "bench.h"
#include <sys/stat.h>
#include <sys/vfs.h>
#include <linux/magic.h>

static struct stat seen[4096];
static unsigned int nseen;

/* KiB of @path's blocks, if it is shared memory not counted yet. */
static inline uint64_t blocks_of(const char *path)
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

static inline uint64_t blocks_in(const char *folder)
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

static inline uint64_t pss(const char *what)
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

static inline double touched_kib(void)
{
	uint64_t shared = pss("Pss_Shmem"), blocks;

	nseen = 0;
	blocks = blocks_in("/proc/self/fd") + blocks_in("/proc/self/map_files");
	return (double)(pss("Pss_Anon") + pss("Pss_File") +
			(blocks > shared ? blocks : shared));
}

#endif
