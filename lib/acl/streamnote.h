/* SPDX-License-Identifier: MIT */
/* What few streams have, and is therefore kept beside them: 0 until it is written. */
#ifndef NPUACL_STREAMNOTE_H
#define NPUACL_STREAMNOTE_H

#include "devinfo.h"

#define NPUACL_RES_TYPES	2u	/* ACL_RT_DEV_RES_* */

enum npuacl_note_field {
	/* 0 and 1: limits of cores, by type */
	NPUACL_NOTE_OP_INFO = NPUACL_RES_TYPES,	/* ACL_STREAM_ATTR_CACHE_OP_INFO */
	NPUACL_NOTE_FIELDS,
};

struct npuacl_stream_note {
	u32 pid;
	u32 device;
	u32 stream;
	u32 field[NPUACL_NOTE_FIELDS];
};

aclError npuacl_note_write(struct npuacl_stream *s, u32 field, u32 value);
u32 npuacl_note_read(struct npuacl_stream *s, u32 field);

#endif
