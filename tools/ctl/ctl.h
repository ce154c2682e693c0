/* SPDX-License-Identifier: MIT */
/* npuemu-ctl: one function a command, each returning the exit code. */
#ifndef NPUEMU_TOOLS_CTL_H
#define NPUEMU_TOOLS_CTL_H

struct npuemu_ctl_common {
	const char *board;
	int json;
};

int npuemu_ctl_inject(int argc, char **argv, const struct npuemu_ctl_common *c);
int npuemu_ctl_clear(const struct npuemu_ctl_common *c);
int npuemu_ctl_reap(const struct npuemu_ctl_common *c);
int npuemu_ctl_reset(const struct npuemu_ctl_common *c);
int npuemu_ctl_list(const struct npuemu_ctl_common *c);

#endif
