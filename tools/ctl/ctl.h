/* SPDX-License-Identifier: MIT */
/* npuemu-ctl: one function a command, each returning the exit code. */
#ifndef NPUEMU_TOOLS_CTL_H
#define NPUEMU_TOOLS_CTL_H

#include <stddef.h>
#include <npuemu/npuemu.h>

#define NPUEMU_CTL_BOARD	64

struct npuemu_ctl_common {
	const char *board;
	int json;
};

/* The name of an open board, for messages. */
void npuemu_ctl_board(struct npuemu *ctx, char *buf, size_t len);

int npuemu_ctl_inject(int argc, char **argv, const struct npuemu_ctl_common *c);
int npuemu_ctl_clear(const struct npuemu_ctl_common *c);
int npuemu_ctl_reap(const struct npuemu_ctl_common *c);
int npuemu_ctl_reset(const struct npuemu_ctl_common *c);
int npuemu_ctl_list(const struct npuemu_ctl_common *c);
int npuemu_ctl_load(int argc, char **argv, const struct npuemu_ctl_common *c);
int npuemu_ctl_unload(const struct npuemu_ctl_common *c);
int npuemu_ctl_unplug(const struct npuemu_ctl_common *c, const char *which);

#endif
