/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The machine: what a description file says of devices, servers, links and
 * engines.  Plain data without pointers, so that it can lie in shared memory.
 */
#ifndef NPUEMU_ENGINE_MACHINE_H
#define NPUEMU_ENGINE_MACHINE_H

#include "engine_port.h"

#define NPUEMU_MAX_DEVICES	64
#define NPUEMU_MAX_SERVERS	16
#define NPUEMU_MAX_LINKS	16

enum npuemu_engine_kind {
	NPUEMU_ENGINE_UDMA = 0,
	NPUEMU_ENGINE_SDMA = 1,
	NPUEMU_ENGINE_MTE = 2,
	NPUEMU_ENGINE_RDMA = 3,
	NPUEMU_ENGINE_KINDS
};

/* A class of links: how far apart two devices are, and what that costs. */
struct npuemu_link_class {
	char name[16];
	u32 latency_ns;		/* one way */
	u32 mbytes_per_s;	/* of one device over this class, one way */
	/* Between two devices, one way.  Below mbytes_per_s in a full mesh,
	 * where each peer has its own wires; equal to it otherwise, never 0.
	 */
	u32 pair_mbytes_per_s;
};

struct npuemu_engine_desc {
	u32 present;
	u32 count;		/* engines of the kind in a device */
	u32 submit_ns;		/* modelled cost of one descriptor */
	u32 mbytes_per_s;	/* of one engine; 0: the link decides */
};

struct npuemu_machine {
	char name[32];
	char soc[32];		/* SoC name, as the ACL runtime reports it */
	u32 generation;		/* 910, 950, ... */
	u32 servers;
	u32 devices_per_server;
	u32 devices;		/* servers * devices_per_server */
	u64 hbm_bytes;		/* of one device */
	u32 hbm_mbytes_per_s;
	u32 cube_cores;
	u32 vector_cores;
	u32 ub_bytes;		/* unified buffer of a vector core */
	u32 l2_bytes;
	u32 devices_per_module;	/* dies of one package; 1: no such grouping */
	struct npuemu_engine_desc engine[NPUEMU_ENGINE_KINDS];
	u32 links;		/* classes in use */
	struct npuemu_link_class link[NPUEMU_MAX_LINKS];
	/* class index of each pair by place: same device, same module, same
	 * server, other server; and of a device with host memory
	 */
	u8 link_self;
	u8 link_module;
	u8 link_server;
	u8 link_net;
	u8 link_host;
	u8 reserved[7];
};

/* Where and why a description was refused. */
struct npuemu_machine_error {
	u32 line;		/* from 1; 0: the whole */
	u32 column;		/* in bytes, from 1; 0 with line 0 */
	char what[120];
};

/*
 * Parse a description of @len bytes.  0, or -EINVAL with @err filled: unknown
 * key, key twice, number out of range, something missing.  No allocation.
 * After a failure @m is all zeroes.  @err may be NULL.  The format is in
 * Documentation/machines.md.
 */
int npuemu_machine_parse(const char *text, size_t len, struct npuemu_machine *m,
			 struct npuemu_machine_error *err);

/* The link class between two devices of the machine; both < m->devices. */
static inline const struct npuemu_link_class *
npuemu_machine_link(const struct npuemu_machine *m, u32 a, u32 b)
{
	if (a == b)
		return &m->link[m->link_self];
	if (a / m->devices_per_module == b / m->devices_per_module)
		return &m->link[m->link_module];
	if (a / m->devices_per_server == b / m->devices_per_server)
		return &m->link[m->link_server];
	return &m->link[m->link_net];
}

#endif
