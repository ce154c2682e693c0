/* SPDX-License-Identifier: MIT */
/*
 * Names of collectives and algorithms, in the order of plan.h's numbers: for messages,
 * and for tools that read traces.
 */
#ifndef HCCL_NAMES_H
#define HCCL_NAMES_H

static const char *const hccl_coll_names[] = {
	"allreduce", "reduce", "reducescatter", "reducescatterv", "allgather", "allgatherv", "broadcast",
	"scatter", "alltoall", "alltoallv", "barrier", "messages",
};

static const char *const hccl_algo_names[] = {
	"auto", "one-lane", "mesh-one-shot", "mesh-two-shot", "ring", "rhd", "nhr", "nb", "pairwise",
	"hierarchical",
};

#endif
