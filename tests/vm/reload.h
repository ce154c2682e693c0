/* SPDX-License-Identifier: MIT */
/*
 * For tests that load the module another way than the VM did: unload it, load it, and in
 * the end as it was.  Nothing of it may be open.
 */
#ifndef TESTS_VM_RELOAD_H
#define TESTS_VM_RELOAD_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "raw.h"

/* Where npuemu-vm has its modules; "main" has a line "npuemu.ko PARAMETER...". */
#define RELOAD_DIR	"/.npuemu-vm/modules"

struct reload {
	char file[300];
	char params[512];	/* as the VM has loaded it */
};

static inline struct reload reload_find(void)
{
	struct reload m = { 0 };
	char line[800] = "", name[200] = "";
	FILE *f = fopen(RELOAD_DIR "/main", "re");
	int at = 0;

	sys_true(f, "%s/main: %s: it has to run in npuemu-vm", RELOAD_DIR, strerror(errno));
	sys_true(fgets(line, sizeof(line), f), "%s/main is empty", RELOAD_DIR);
	fclose(f);
	line[strcspn(line, "\n")] = 0;
	sys_true(sscanf(line, "%199s %n", name, &at) == 1, "%s/main: \"%s\"", RELOAD_DIR, line);
	snprintf(m.file, sizeof(m.file), "%s/%s", RELOAD_DIR, name);
	snprintf(m.params, sizeof(m.params), "%s", line + at);
	return m;
}

/* 0 or a negative errno. */
static inline int reload_load(const struct reload *m, const char *params)
{
	int fd = open(m->file, O_RDONLY | O_CLOEXEC), rc;

	sys_true(fd >= 0, "%s: %s", m->file, strerror(errno));
	rc = (int)raw_sys(syscall(SYS_finit_module, fd, params, 0));
	close(fd);
	return rc;
}

static inline bool reload_loaded(void)
{
	return !access("/sys/module/npuemu", F_OK);
}

/* Whoever has it open, has so for a moment only. */
static inline void reload_unload(void)
{
	int64_t deadline = sys_deadline();

	while (syscall(SYS_delete_module, "npuemu", O_NONBLOCK))
		sys_true((errno == EAGAIN || errno == EBUSY) && sys_retry(deadline),
			 "it cannot be unloaded: %s", strerror(errno));
}

/* Other users of the VM may open nodes, as its init has it. */
static inline void reload_modes(void)
{
	char path[32];

	for (int i = 0; i < 64; i++) {
		snprintf(path, sizeof(path), "/dev/npuemu%d", i);
		chmod(path, 0666);
	}
	raw_is(raw_sys(chmod("/dev/npuemu-ctl", 0666)), 0);
}

/* Loaded anew, and ready for everybody. */
static inline void reload_as(const struct reload *m, const char *params)
{
	if (reload_loaded())
		reload_unload();
	raw_is(reload_load(m, params), 0);
	reload_modes();
}

/* For a test's teardown: whatever has become of the test. */
static inline int reload_teardown(void **state)
{
	struct reload m = reload_find();

	raw_kill_all();
	reload_as(&m, m.params);
	return raw_teardown(state);
}

#define reload_test(fn) \
	cmocka_unit_test_setup_teardown(fn, raw_setup, reload_teardown)

#endif
