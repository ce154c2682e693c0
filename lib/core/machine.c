// SPDX-License-Identifier: MIT
/*
 * Finding a machine description: a path if the name has a slash, else a file
 * shipped with npuemu, next to the library or where it was installed, or what the
 * library was built with.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core.h"

#ifndef NPUEMU_DATADIR
#define NPUEMU_DATADIR "/usr/local/share/npuemu"
#endif

#define MAX_TEXT (64 << 10)

static int parse(const char *text, size_t n, const char *path, struct npuemu_machine *m)
{
	struct npuemu_machine_error e;
	int err = npuemu_machine_parse(text, n, m, &e);

	if (err && e.line)
		return npuemu_fail(-EINVAL, "%s:%u:%u: %s", path, e.line, e.column, e.what);
	return err ? npuemu_fail(-EINVAL, "%s: %s", path, e.what) : 0;
}

static int parse_file(const char *path, struct npuemu_machine *m)
{
	char *text;
	ssize_t n;
	int fd, err;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	text = malloc(MAX_TEXT);
	n = text ? read(fd, text, MAX_TEXT) : -1;
	close(fd);
	if (n < 0 || n == MAX_TEXT) {
		free(text);
		return npuemu_fail(-EINVAL, "machine description %s: cannot be read, or longer than %d bytes",
				   path, MAX_TEXT);
	}
	err = parse(text, (size_t)n, path, m);
	free(text);
	return err;
}

static const char *library_dir(char *dir, size_t room)
{
	Dl_info info;
	char *slash;

	if (!dladdr((void *)&npuemu_user_host, &info) || !info.dli_fname)
		return NULL;
	/* linked statically, the name is argv[0], which may be no path */
	if (!strchr(info.dli_fname, '/') || !realpath(info.dli_fname, dir)) {
		ssize_t n = readlink("/proc/self/exe", dir, room - 1);

		if (n <= 0)
			return NULL;
		dir[n] = '\0';
	}
	slash = strrchr(dir, '/');
	if (!slash)
		return NULL;
	*slash = '\0';
	return dir;
}

int npuemu_machine_load(const char *name, struct npuemu_machine *m)
{
	static const char *const places[] = {
		"/..",			/* build tree, prefix */
		"/../..",		/* a test in build/tests/unit, a multiarch libdir */
	};
	char dir[PATH_MAX], path[PATH_MAX + 128];
	const char *data = npuemu_getenv("NPUEMU_DATA"), *text;
	size_t n;
	int err;
	u32 i;

	if (strchr(name, '/')) {
		err = parse_file(name, m);
		if (err == -ENOENT || err == -EACCES)
			return npuemu_fail(-EINVAL, "machine description %s: %s", name, strerror(-err));
		return err;
	}
	if (strlen(name) > 64)
		return npuemu_fail(-EINVAL, "machine name is longer than 64 characters");
	if (data) {
		snprintf(path, sizeof(path), "%s/machines/%s.txt", data, name);
		err = parse_file(path, m);
		if (err != -ENOENT)
			return err;
	}
	if (library_dir(dir, sizeof(dir))) {
		for (i = 0; i < ARRAY_SIZE(places); i++) {
			snprintf(path, sizeof(path), "%s%s/share/npuemu/machines/%s.txt", dir,
				 places[i], name);
			err = parse_file(path, m);
			if (err != -ENOENT)
				return err;
		}
	}
	snprintf(path, sizeof(path), "%s/machines/%s.txt", NPUEMU_DATADIR, name);
	err = parse_file(path, m);
	text = err == -ENOENT ? npuemu_machine_builtin(name, &n) : NULL;
	if (text)
		return parse(text, n, name, m);
	if (err == -ENOENT)
		return npuemu_fail(-EINVAL, "no machine description \"%s\": give the name of a shipped one (950, 910b, ...; see share/npuemu/machines) or a path with a slash",
				   name);
	return err;
}
