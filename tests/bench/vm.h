/* SPDX-License-Identifier: MIT */
/*
 * What the benches of the kernel host share: the kernel's threads that are its
 * engines, found by name (npuemu0-udma ...).
 */
#ifndef NPUEMU_BENCH_VM_H
#define NPUEMU_BENCH_VM_H

#include "bench.h"

/* One line of /proc/PID/FILE that begins with @key: what follows; "" if there is none. */
static inline void vm_proc(int pid, const char *file, const char *key, char *out, size_t size)
{
	char path[64], line[256];
	FILE *f;

	*out = '\0';
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, strlen(key)))
			continue;
		line[strcspn(line, "\n")] = '\0';
		memccpy(out, line + strlen(key), '\0', size);
		out[size - 1] = '\0';
		break;
	}
	if (f)
		fclose(f);
}

/* Call @fn for each thread of the kernel whose name begins with @name; how many. */
static inline unsigned int vm_kthreads(const char *name, void (*fn)(int pid, void *arg), void *arg)
{
	DIR *dir = opendir("/proc");
	unsigned int found = 0;
	struct dirent *e;
	char text[64];

	while (dir && (e = readdir(dir))) {
		int pid = atoi(e->d_name);

		if (pid <= 0)
			continue;
		vm_proc(pid, "comm", name, text, sizeof(text));
		/* the rest of the name; PPid 2 is kthreadd */
		if (!*text)
			continue;
		vm_proc(pid, "status", "PPid:", text, sizeof(text));
		if (atoi(text) != 2)
			continue;
		fn(pid, arg);
		found++;
	}
	if (dir)
		closedir(dir);
	return found;
}

static inline void vm_pin_one(int pid, void *arg)
{
	(void)arg;
	bench_pin_tid(pid, 1);
}

/* This thread to the first cpu, the engines of device 0 to the last. */
static inline void vm_place(void)
{
	if (!vm_kthreads("npuemu0-", vm_pin_one, NULL))
		bench_die("there is no kernel thread npuemu0-...: is npuemu.ko loaded?");
	bench_pin_tid(0, 0);
}

#endif
