/* SPDX-License-Identifier: MIT */
/*
 * What communicators (lib/hccl) have of channels and threads beside the public functions.
 */
#ifndef HCOMM_INSIDE_H
#define HCOMM_INSIDE_H

#include <hccl/hccl_types.h>
#include <hcomm_res_defs.h>
#include "npuacl.h"

/* Can it be had for channels and threads?  If not, why. */
HcclResult hcomm_engine(const char *what, CommEngine engine);

/* A configuration of channels, by either API: wishes that are noted, for each channel has a queue of its own. */
struct hcomm_config {
	u32 shared_queue;
	char tag[256];			/* of those that share one */
};

HcclResult hcomm_config_make(const char *what, void **config);
HcclResult hcomm_config_drop(const char *what, void *handle);
/* Is it one? */
HcclResult hcomm_config(const char *what, void *handle, struct hcomm_config **out);
HcclResult hcomm_config_share(const char *what, struct hcomm_config *c, u32 value);

/* A thread on a stream of the program's, which stays the program's. */
HcclResult hcomm_thread_wrap(const char *what, CommEngine engine, struct npuacl_stream *stream, u32 notifies,
			     ThreadHandle *out);
/* It is there, and its stream is. */
bool hcomm_thread_lasts(ThreadHandle handle);
/* The handle is good: is one of its operations not over, or in a model? */
bool hcomm_thread_busy(ThreadHandle handle);
/* As HcommThreadFree(), but what it still had to do is not waited for. */
void hcomm_thread_drop(ThreadHandle handle);

/* The handle is good: is an operation over it not over, or in a model? */
bool hcomm_channel_busy(ChannelHandle handle);

/* Memory that the peer told of. */
struct hcomm_told {
	CommMem mem;			/* in the peer's addresses */
	char tag[256];
};

/* The @nth that came with a channel that is ready; false: there are not so many. */
bool hcomm_channel_told(ChannelHandle handle, u32 nth, struct hcomm_told *t);

#endif
