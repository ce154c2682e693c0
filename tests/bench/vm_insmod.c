// SPDX-License-Identifier: MIT
/*
 * vm_insmod MODULE PARAMETERS TIMES: loads a module again and again, and leaves it
 * loaded.  Prints how long finit_module() took (insmod_ns) and what memory went the
 * first time, before anything of it is in the kernel's caches: kib is the larger of
 *
 *  - free_kib, by how much MemFree shrank, after caches were dropped and the
 *    free pages that each cpu keeps for itself were given back; nothing is missing
 *    in it, but it also has what is not the module's
 *  - counted_kib, by how much Slab, VmallocUsed, KernelStack, PageTables and
 *    Percpu grew: what the kernel keeps books on
 */
#include "vm.h"

struct memory {
	double free, counted;
};

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		bench_die("%s: %s", path, strerror(errno));
	close(fd);
}

static struct memory look_once(void)
{
	static const char *const counted[] = {
		"Slab", "VmallocUsed", "KernelStack", "PageTables", "Percpu",
	};
	struct memory m = { 0 };
	char line[128], name[64];
	double kib;
	FILE *f;
	size_t i;

	put("/proc/sys/vm/drop_caches", "3\n");
	put("/proc/sys/vm/compact_memory", "1\n");
	usleep(200 * 1000);
	f = fopen("/proc/meminfo", "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63[^:]: %lf kB", name, &kib) != 2)
			continue;
		if (!strcmp(name, "MemFree"))
			m.free = kib;
		for (i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
			if (!strcmp(name, counted[i]))
				m.counted += kib;
	}
	if (!f || m.free == 0 || m.counted == 0)
		bench_die("/proc/meminfo is not to be read");
	fclose(f);
	return m;
}

/* Until what starting the system left behind has settled, or for 4 s. */
static struct memory look(void)
{
	struct memory last = look_once(), m;
	int i;

	for (i = 0; i < 20; i++) {
		m = look_once();
		if (m.free - last.free < 64 && last.free - m.free < 64)
			break;
		last = m;
	}
	return m;
}

static void once(const char *path, const char *params, unsigned int rep)
{
	struct memory before, after;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	double t, free_kib, counted_kib;

	if (fd < 0)
		bench_die("%s: %s", path, strerror(errno));
	memset(&before, 0, sizeof(before));
	if (!rep)
		before = look();
	t = bench_now();
	if (syscall(SYS_finit_module, fd, params, 0))
		bench_die("%s %s: %s (see the kernel log)", path, params, strerror(errno));
	t = bench_now() - t;
	close(fd);
	bench_emit("insmod_ns", rep, t);
	if (rep)
		return;
	after = look();
	free_kib = before.free - after.free;
	counted_kib = after.counted - before.counted;
	bench_emit("free_kib", rep, free_kib);
	bench_emit("counted_kib", rep, counted_kib);
	bench_emit("kib", rep, free_kib > counted_kib ? free_kib : counted_kib);
}

int main(int argc, char **argv)
{
	unsigned int times, i;

	if (argc != 4)
		bench_die("usage: vm_insmod MODULE PARAMETERS TIMES");
	times = (unsigned int)strtoul(argv[3], NULL, 0);
	for (i = 0; i < times; i++) {
		if (i && syscall(SYS_delete_module, "npuemu", O_NONBLOCK))
			bench_die("rmmod npuemu: %s", strerror(errno));
		once(argv[1], argv[2], i);
	}
	return 0;
}
