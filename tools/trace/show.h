/* SPDX-License-Identifier: MIT */
/* What npuemu-trace prints. */
#ifndef NPUEMU_TRACE_SHOW_H
#define NPUEMU_TRACE_SHOW_H

#include "read.h"

/* A line for each record. */
void trace_show(const struct trace *t);
/* The JSON that chrome://tracing and Perfetto open.  Not 0: out of memory. */
int trace_show_json(const struct trace *t);

#endif
