/* SPDX-License-Identifier: MIT */
/*
 * What processes offer each other: physical memory, memory by IPC keys, notifies,
 * events.
 *
 *   vmm.c        reserved addresses, and what is mapped there
 *   physical.c   physical memory: handles
 *   share.c      physical memory of other processes
 *   ipc.c        device memory of other processes, by a key
 *   notifyipc.c  notifies of other processes
 *   eventipc.c   events of other processes
 *   window.c     memory for the ranks of a job, from wherever it came
 *   span.c       several pieces of another process's memory, shown side by side
 *   export.c     what all of these give out, and find again
 *   import.c     buffers of other processes, each of them once
 *
 * Whatever is offered is a part of a buffer of lib/core, and has a record in its process's
 * table (npuemu_exports_own()), which every process of the board can read.  A key, in all
 * its forms, is where that record is, and what it says, so that one that has been made
 * up, or outlived its record, is noticed.
 *
 * What protects what: on the user-space host one user is one trust domain, and none of
 * this protects.  On the kernel host the driver gives a buffer to processes of its user
 * alone, and then by its name alone, which is in the record; records lie in a file of that
 * user's.  So users are apart, and lists of process ids find mistakes among the processes
 * of one user: it is the importer's library that looks at them.
 *
 * Order of locks: npuacl.lock, npuacl_vmm.lock, that of address.c, the one of window.c, that of
 * export.c or import.c.
 */
#ifndef NPUACL_SHARE_H
#define NPUACL_SHARE_H

#include "memory.h"

/* ---- export.c ------------------------------------------------------------------------ */

#define NPUACL_EXPORT_PIDS	96u

enum npuacl_export_kind {
	NPUACL_EXPORT_NONE,
	NPUACL_EXPORT_PHYSICAL,
	NPUACL_EXPORT_MEMORY,
	NPUACL_EXPORT_NOTIFY,
	NPUACL_EXPORT_EVENT,
	NPUACL_EXPORT_ENDPOINT,	/* of lib/transport; found by its note */
	NPUACL_EXPORT_KINDS,
};

struct npuacl_record {		/* 512 bytes */
	u32 seq;		/* odd while it changes */
	u32 kind;		/* enum npuacl_export_kind */
	u64 nonce;
	u64 secret;
	struct npuemu_handle buf;
	u64 offset;		/* in the buffer */
	u64 size;
	u32 device;		/* on the board */
	u32 any_process;	/* no list of process ids */
	u32 attr;		/* PHYSICAL: aclrtMemAttr */
	u32 location;		/* PHYSICAL: aclrtMemLocationType */
	u32 exporter;		/* process id, for messages */
	u32 npids;
	__extension__ union {
		s32 pid[NPUACL_EXPORT_PIDS];
		u8 note[NPUACL_EXPORT_PIDS * sizeof(s32)];	/* ENDPOINT: what it is looked for by */
	};
};

/* Slot of the process, index of its record, nonce; 0: none.  @secret: 0 in a form without room. */
struct npuacl_key {
	u64 id;
	u64 secret;
};

#define NPUACL_KEY_TEXT		65u

/* Fill in what a record is to say, but for nonce, secret and name: those are made. */
aclError npuacl_export_add(const char *what, struct npuemu_buf *buf, struct npuacl_record *r,
			   struct npuacl_key *key);
void npuacl_export_drop(u64 id);		/* this process's; 0 and others': nothing */
void npuacl_export_drop_buf(struct npuemu_buf *buf);	/* all that name it */
/* Of this process, and still there: its buffer; NULL. */
struct npuemu_buf *npuacl_export_buf(u64 id);
/* Is the process that gave it out still on the board?  Takes its time. */
bool npuacl_export_alive(u64 id);
/* The same for several, with one look. */
struct npuacl_slots {
	bool live[NPUEMU_MAX_SLOTS];
};

void npuacl_slots_look(struct npuacl_slots *live);
bool npuacl_export_alive_in(const struct npuacl_slots *slots, u64 id);
void npuacl_export_open(u64 id);		/* any process may import it */
/* Let processes import it. */
aclError npuacl_export_allow(const char *what, const struct npuacl_key *key, u32 kind, const s32 *pid, size_t n);
aclError npuacl_export_allow_servers(const char *what, const struct npuacl_key *key, u32 kind,
				     const aclrtServerPid *list, size_t n);
/* What a key stands for, if this process may have it. */
aclError npuacl_export_find(const char *what, const struct npuacl_key *key, u32 kind, struct npuacl_record *out);
/* The @nth record of a kind, of processes that are alive, whose note begins so. */
bool npuacl_export_seek(u32 kind, const void *note, size_t bytes, u32 nth, struct npuacl_key *key);
void npuacl_export_release(void);		/* all: the board is about to be closed */
void npuacl_export_fork(void);

/* Text with its 0, in all 65 bytes; and the other way round. */
void npuacl_key_write(char *text, u32 kind, const struct npuacl_key *key);
aclError npuacl_key_read(const char *what, const char *text, u32 kind, struct npuacl_key *key);
/* Of 64 bytes, which stand at the beginning of larger forms. */
#define NPUACL_KEY_BYTES	64u
void npuacl_key_pack(void *bytes, u32 kind, const struct npuacl_key *key);
aclError npuacl_key_unpack(const char *what, const void *bytes, u32 kind, struct npuacl_key *key);

/* ---- import.c -------------------------------------------------------------------------- */

/* A buffer of another process.  lib/core takes each once, so everybody here shares it. */
struct npuacl_import {
	struct npuacl_import *next;
	struct npuemu_handle name;
	struct npuemu_buf *buf;
	u8 *ptr;
	u32 refs;
	u32 exporter;
	u32 shown;			/* keys by which it is open; ipc.c, its lock */
};

/* @r: not of this process. */
aclError npuacl_import_get(const char *what, const struct npuacl_record *r, struct npuacl_import **out);
void npuacl_import_put(struct npuacl_import *imp);
/* The number by which the program knows a device of the board; @otherwise if it does not see it. */
u32 npuacl_logical(u32 phys, u32 otherwise);
void npuacl_import_fork(void);

/* ---- window.c -------------------------------------------------------------------------- */

struct npuacl_window {
	u64 base, end;			/* in this process */
	struct npuacl_key key;		/* of all of it */
	struct npuemu_buf *buf;		/* of this process; NULL */
};

/* The one that @va lies in, offered to every process of the user. */
aclError npuacl_window_of(const char *what, u64 va, struct npuacl_window *w);
aclError npuacl_window_offer(const char *what, struct npuemu_buf *buf, u64 bytes, u32 phys,
			     struct npuacl_window *w);
/* The same as a segment that UDMA reaches; it is one until the memory is freed. */
aclError npuacl_window_segment(const char *what, const struct npuacl_window *w, struct npuemu_seg_info *info);
/* The buffer is about to be freed: all that it was offered as is gone. */
void npuacl_window_forget(struct npuemu_buf *buf);
/* Every device of this process may reach these bytes, peer access or not. */
void npuacl_window_for_all(u64 va, u64 bytes);
void npuacl_window_fork(void);
/* @imp: to be put; NULL if it is of this process. */
aclError npuacl_window_open(const char *what, const struct npuacl_key *key, struct npuacl_import **imp, u8 **ptr);
aclError npuacl_vmm_window(const char *what, u64 va, struct npuacl_window *w);
aclError npuacl_ipc_window(const char *what, u64 va, struct npuacl_window *w);
/* How many records this process has taken back: who holds imports looks again when it moves. */
u64 npuacl_export_drops(void);
/* A record still stands for what it did; of any process. */
bool npuacl_export_holds(u64 id);

/* ---- span.c ---------------------------------------------------------------------------- */

/* Pieces of another process's memory, side by side as they are there. */
struct npuacl_span {
	u8 *ptr;
	u64 bytes;
	void *reserved;			/* the addresses, more than are used */
	u64 room;
	u32 n;
	struct npuacl_span_piece {
		u64 key;
		u64 bytes;
		u8 *ptr;
		struct npuacl_import *import;
	} piece[];
};

/* One of them, as its process tells it: whole buffers of whole pages. */
struct npuacl_told {
	u64 key, secret;
	u64 bytes;
};

/* The address map knows them, as memory of @device that every device may use. */
aclError npuacl_span_open(const char *what, const struct npuacl_told *list, u32 n, u32 device,
			  struct npuacl_span **out);
void npuacl_span_close(struct npuacl_span *span);	/* NULL: nothing */
/* Are all of them still there, in their process? */
bool npuacl_span_holds(const struct npuacl_span *span);

/* ---- physical.c --------------------------------------------------------------------------- */

struct npuacl_physical {
	struct npuemu_buf *buf;
	struct npuacl_import *import;	/* of another process */
	struct npuacl_physical *of;	/* of this one, imported all the same */
	u64 size;
	u32 device;		/* logical */
	u32 user;		/* imported: the device it is for */
	u32 refs;		/* handles given out; npuacl_vmm.lock, as all below */
	u32 uses;		/* mappings, and imports here */
	aclrtPhysicalMemProp prop;
	struct npuacl_key key;	/* exported; id 0: not */
	bool offered;		/* by windows, too */
	struct npuacl_physical *next;	/* of all */
};

#define NPUACL_PAGE_HUGE	(2ull << 20)

extern struct npuemu_slab npuacl_physicals;

/* npuacl_vmm.lock held, as for all of these. */
aclError npuacl_physical(const char *what, aclrtDrvMemHandle handle, struct npuacl_physical **out);
/* Zeroes, with a reference; NULL with a message. */
struct npuacl_physical *npuacl_physical_new(const char *what);
/* Free it if nobody has it any more. */
int npuacl_physical_gone(struct npuacl_physical *p);
bool npuacl_physical_is_host(const struct npuacl_physical *p);
u64 npuacl_physical_page(aclrtMemAttr attr);
u32 npuacl_physical_flags(const struct npuacl_physical *p);	/* NPUACL_PLACE_ */
void npuacl_physicals_fork(void);
/* The one that an export stands for; NULL. */
struct npuacl_physical *npuacl_physical_exported(u64 id);
void npuacl_physicals_release(s32 device);	/* what is not mapped; -1: of all */

/* ---- vmm.c ----------------------------------------------------------------------------------- */

struct npuacl_vmm {
	pthread_mutex_t lock;
};

extern struct npuacl_vmm npuacl_vmm;

/* All mappings of a device's memory; -1: all, and the reserved addresses. */
void npuacl_vmm_release(s32 device);
void npuacl_vmm_fork(void);
/* Is @handle what is mapped at @va, all of it? */
aclError npuacl_vmm_is(const char *what, u64 va, u64 size, aclrtDrvMemHandle handle);

/* ---- ipc.c ------------------------------------------------------------------------------------ */

void npuacl_ipc_release(s32 device);
void npuacl_ipc_fork(void);
/* An import is known to the address map, as memory of @device that every device may use. */
aclError npuacl_ipc_show(const char *what, struct npuacl_import *imp, u32 device);
void npuacl_ipc_unshow(struct npuacl_import *imp);

/* ---- notify.c, notifyipc.c ------------------------------------------------------------------------ */

struct npuacl_notify {
	struct npuacl_device *dev;
	u32 index;		/* of its word */
	bool counting;
	bool opened;		/* by a key: the word is not this handle's own */
	volatile u64 *word;
	struct npuacl_import *import;	/* opened, and another process's */
	struct npuacl_key key;	/* given out; id 0: not */
};

/* A plain one. */
aclError npuacl_notify_find(void *handle, struct npuacl_notify **out, const char *what);
struct npuemu_buf *npuacl_notify_buf(struct npuacl_device *d);
aclError npuacl_notify_opened(struct npuacl_device *d, volatile u64 *word, u32 index, struct npuacl_import *import,
			      aclrtNotify *out);
void npuacl_notify_keep(struct npuacl_import *import);
/* Nothing runs any more; @closing: and nothing will. */
void npuacl_notify_kept_release(bool closing);
void npuacl_notify_kept_fork(void);

/* ---- event.c, eventipc.c ---------------------------------------------------------------------------- */

struct npuacl_event_ipc;

aclError npuacl_event_find(aclrtEvent handle, struct npuacl_event **out, const char *what);
aclError npuacl_event_opened(struct npuacl_device *d, struct npuacl_event_ipc *ipc, aclrtEvent *out, const char *what);
aclError npuacl_event_ipc_make(struct npuacl_event *e);
void npuacl_event_ipc_free(struct npuacl_event *e);	/* nothing, if it is none */
/* Of one that is: the number of the latest record; @record: of one more. */
u64 npuacl_event_ipc_asked(struct npuacl_event *e, bool record);
void npuacl_event_ipc_recorded(struct npuacl_event *e, u64 generation, aclError error);
bool npuacl_event_ipc_reached(struct npuacl_event *e, u64 generation);
bool npuacl_event_ipc_lost(const struct npuacl_event *e);	/* reached, because its maker has ended */
aclError npuacl_event_ipc_check(struct npuacl_event *e, const char *what);	/* is it still there? */
aclError npuacl_event_ipc_when(struct npuacl_event *e, u64 *ns);
aclError npuacl_event_ipc_error(struct npuacl_event *e);
void npuacl_event_cells_release(s32 device);
void npuacl_event_cells_fork(void);

#endif
