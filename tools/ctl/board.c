// SPDX-License-Identifier: MIT
/* npuemu-ctl list, reap and reset: boards as a whole. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/cli.h"
#include "../common/json.h"
#include "../common/text.h"
#include "ctl.h"

#define SHM	"/dev/shm"

/* What one look at a board gives; a damaged one gives only why. */
struct sight {
	char name[64];
	char path[512];
	uint64_t bytes;		/* of its file, as allocated */
	int rc;			/* of opening it */
	char why[256];
	struct npuemu_info info;
	int processes;
};

/* @host: NULL for the one that programs would get. */
static void look(struct sight *s, const char *host)
{
	struct npuemu_open_attr attr;
	struct npuemu *ctx;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.flags = NPUEMU_OPEN_OBSERVE | NPUEMU_OPEN_EXISTING;
	attr.board = s->name;
	attr.host = host;
	s->rc = npuemu_open(&attr, &ctx);
	if (s->rc) {
		snprintf(s->why, sizeof(s->why), "%s", npuemu_errmsg());
		return;
	}
	s->info.size = sizeof(s->info);
	s->rc = npuemu_query(ctx, &s->info);
	if (!s->rc)
		s->processes = npuemu_process_list(ctx, NULL, 0);
	if (s->processes < 0)
		s->rc = s->processes;
	if (s->rc)
		snprintf(s->why, sizeof(s->why), "%s", npuemu_errmsg());
	npuemu_close(ctx);
}

static void prefix_of(char *buf, size_t len)
{
	snprintf(buf, len, "npuemu-%u-", (unsigned int)geteuid());
}

/* The kernel's board, whatever its name: would programs get that one? */
static int is_kernels(struct sight *s)
{
	memset(s, 0, sizeof(*s));
	snprintf(s->name, sizeof(s->name), "kernel");
	look(s, NULL);
	if (s->rc || strcmp(s->info.host, "kernel"))
		return 0;
	snprintf(s->path, sizeof(s->path), "/dev/npuemu*");
	return 1;
}

/* Fill in where the board of that name lies; 0 or -ENOENT. */
static int locate(struct sight *s, const char *name)
{
	char prefix[32];
	struct stat st;

	memset(s, 0, sizeof(*s));
	prefix_of(prefix, sizeof(prefix));
	snprintf(s->name, sizeof(s->name), "%s", name);
	snprintf(s->path, sizeof(s->path), SHM "/%s%s", prefix, s->name);
	if (lstat(s->path, &st) || !S_ISREG(st.st_mode))
		return -ENOENT;
	s->bytes = (uint64_t)st.st_blocks * 512;
	return 0;
}

static const char *state(const struct sight *s)
{
	if (!s->rc)
		return s->processes ? "in use" : "idle";
	return s->rc == -EUCLEAN ? "damaged" : "unusable";
}

static struct json_object *sight_json(const struct sight *s)
{
	struct json_object *j = json_object_new_object();

	npuemu_json_str(j, "board", s->name);
	npuemu_json_str(j, "path", s->path);
	npuemu_json_u64(j, "bytes", s->bytes);
	npuemu_json_str(j, "state", state(s));
	if (s->rc) {
		npuemu_json_str(j, "why", s->why);
		return j;
	}
	npuemu_json_str(j, "machine", s->info.machine);
	npuemu_json_u64(j, "devices", s->info.devices);
	npuemu_json_u64(j, "processes", (uint64_t)s->processes);
	npuemu_json_u64(j, "backed_bytes", s->info.backed_bytes);
	return j;
}

static void add_row(struct npuemu_table *t, const struct sight *s)
{
	char size[NPUEMU_TEXT_SIZE];

	npuemu_table_add(t, "%s", s->name);
	npuemu_table_add(t, "%s", state(s));
	if (s->rc) {
		npuemu_table_add(t, "-");
		npuemu_table_add(t, "-");
		npuemu_table_add(t, "-");
		npuemu_table_add(t, "-");
		npuemu_table_add(t, "%s", s->why);
		return;
	}
	npuemu_table_add(t, "%s", s->info.machine);
	npuemu_table_add(t, "%u", s->info.devices);
	npuemu_table_add(t, "%d", s->processes);
	npuemu_table_add(t, "%s", npuemu_size_text(size, s->info.backed_bytes));
	npuemu_table_add(t, "%s", s->path);
}

static int is_board(const struct dirent *d)
{
	char prefix[32];

	prefix_of(prefix, sizeof(prefix));
	return !strncmp(d->d_name, prefix, strlen(prefix));
}

int npuemu_ctl_list(const struct npuemu_ctl_common *c)
{
	char heads[] = "Board|State|Machine|NPUs|Processes|Backed|Where";
	struct json_object *list = json_object_new_array();
	struct dirent **entry;
	struct npuemu_table t;
	char prefix[32];
	struct sight s;
	int n, i;

	prefix_of(prefix, sizeof(prefix));
	npuemu_table_init(&t, heads, "lllrrrl", 0);
	if (is_kernels(&s) && (!c->board || !strcmp(c->board, s.name))) {
		add_row(&t, &s);
		json_object_array_add(list, sight_json(&s));
	}
	n = scandir(SHM, &entry, is_board, alphasort);
	for (i = 0; i < n; i++) {
		if (!locate(&s, entry[i]->d_name + strlen(prefix)) &&
		    (!c->board || !strcmp(c->board, s.name))) {
			look(&s, "user");
			add_row(&t, &s);
			json_object_array_add(list, sight_json(&s));
		}
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	if (c->json)
		npuemu_json_print(list, 0);
	else
		json_object_put(list);
	if (!c->json && t.cells)
		npuemu_table_print(&t, stdout);
	else if (!c->json)
		puts("no boards");
	npuemu_table_free(&t);
	return 0;
}

/* Which board it is: the kernel's has one name only. */
void npuemu_ctl_board(struct npuemu *ctx, char *buf, size_t len)
{
	struct npuemu_info info = { .size = sizeof(info) };

	snprintf(buf, len, "%s", npuemu_query(ctx, &info) ? "?" : info.board);
}

int npuemu_ctl_reap(const struct npuemu_ctl_common *c)
{
	char name[NPUEMU_CTL_BOARD];
	struct json_object *j;
	struct npuemu *ctx;
	int rc, n;

	rc = npuemu_cli_open(c->board, NPUEMU_OPEN_OBSERVE | NPUEMU_OPEN_EXISTING, &ctx);
	if (rc)
		return rc;
	npuemu_ctl_board(ctx, name, sizeof(name));
	n = npuemu_reap(ctx);
	npuemu_close(ctx);
	if (n < 0)
		return npuemu_cli_failed(n, "cannot reap on board '%s'", name);
	if (!c->json) {
		printf("board %s: %d dead process%s reaped\n", name, n, n == 1 ? "" : "es");
		return 0;
	}
	j = json_object_new_object();
	npuemu_json_str(j, "board", name);
	npuemu_json_u64(j, "reaped", (uint64_t)n);
	npuemu_json_print(j, 0);
	return 0;
}

static void say_removed(const struct sight *s)
{
	char size[NPUEMU_TEXT_SIZE];

	if (!s->bytes && !strcmp(s->info.host, "kernel"))
		printf("reset board %s (%u devices)", s->name, s->info.devices);
	else
		printf("removed board %s (%s, %s)", s->name, s->path,
		       npuemu_size_text(size, s->bytes));
	if (s->rc)
		printf("; it was %s: %s", state(s), s->why);
	else if (s->processes)
		printf("; %d process%s still on it now get%s an error", s->processes,
		       s->processes == 1 ? "" : "es", s->processes == 1 ? "s" : "");
	putchar('\n');
}

/* Look first, to be able to say what is gone. */
int npuemu_ctl_reset(const struct npuemu_ctl_common *c)
{
	const char *name = npuemu_cli_board(c->board);
	struct json_object *j;
	struct sight s;
	int rc;

	if (is_kernels(&s))
		name = s.name;
	else if (!locate(&s, name))
		look(&s, "user");
	rc = npuemu_board_reset(name);
	if (rc == -ENOENT) {
		npuemu_cli_say("there is no board '%s'; 'npuemu-ctl list' shows those there are",
			       name);
		return NPUEMU_EXIT_RUNTIME;
	}
	if (rc)
		return npuemu_cli_failed(rc, "cannot reset board '%s'", name);
	if (!c->json) {
		say_removed(&s);
		return 0;
	}
	j = sight_json(&s);
	npuemu_json_bool(j, strcmp(s.info.host, "kernel") ? "removed" : "reset", 1);
	npuemu_json_print(j, 0);
	return 0;
}
