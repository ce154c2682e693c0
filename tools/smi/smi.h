/* SPDX-License-Identifier: MIT */
/* npuemu-smi: one look at a board, and two ways to show it. */
#ifndef NPUEMU_TOOLS_SMI_H
#define NPUEMU_TOOLS_SMI_H

#include <npuemu/npuemu.h>

struct npuemu_smi_process {
	struct npuemu_process_info info;
	struct npuemu_queue_stat *queue;
	int queues;
};

/* What a board looked like; processes come and go while it is taken. */
struct npuemu_smi_view {
	struct npuemu_info info;
	struct npuemu_device_info *device;
	struct npuemu_smi_process *process;
	int processes;
	struct npuemu_link_info *link;	/* those that carried something */
	int links;
};

/* 0, or an exit code with the message out. */
int npuemu_smi_look(struct npuemu *ctx, struct npuemu_smi_view *v);
void npuemu_smi_free(struct npuemu_smi_view *v);

void npuemu_smi_print(const struct npuemu_smi_view *v, int queues, int links);
int npuemu_smi_print_json(const struct npuemu_smi_view *v, int one_line);

const char *npuemu_smi_state(uint32_t state);
const char *npuemu_smi_type(uint32_t type);
/* The status without its explanation: "REM_ACCESS_ABORT (3.2)", "-" for none. */
const char *npuemu_smi_status(char *buf, size_t len, uint32_t status);

#endif
