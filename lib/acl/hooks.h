/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the runtime tell others about: failed tasks, and devices and
 * streams that come and go.  All of these call functions of the program's, so
 * that the caller may hold no lock.
 */
#ifndef NPUACL_HOOKS_H
#define NPUACL_HOOKS_H

#include "npuacl.h"

/* A task failed.  @task 0xffffffff: the device did.  The runner calls it, once a failure. */
void npuacl_exception(struct npuacl_stream *s, u32 task, aclError code);
/*
 * SET_PRE and SET_POST around an aclrtSetDevice() that makes the primary context,
 * RESET_PRE and RESET_POST around what takes it down.  After RESET_POST the device has
 * the limits it came with again.
 */
void npuacl_device_state(struct npuacl_device *d, aclrtDeviceState state);
/* CREATE_POST once it can be used, DESTROY_PRE while it still can; default streams, too. */
void npuacl_stream_state(struct npuacl_stream *s, aclrtStreamState state);

#endif
