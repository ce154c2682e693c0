/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The ring formats: what software writes into a send queue and what the chip
 * writes into a completion queue.  Everything is little endian.  The layouts
 * are the public ones of the UB DMA engine (URMA jetty queues), so device code
 * that builds its own WQEs works on these rings unchanged.
 *
 * A WQE is one to four 64-byte basic blocks: a 48-byte control part (SQE),
 * longer for some opcodes, then 16-byte SGEs or inline data.  It may straddle
 * the end of the ring.  The owner bit is 1 on the first lap of the ring and
 * toggles with each lap.  The doorbell is the free-running count of basic
 * blocks posted so far.
 */
#ifndef _UAPI_NPUEMU_UDMA_H
#define _UAPI_NPUEMU_UDMA_H

#include <linux/types.h>

#define NPUEMU_BB_SIZE			64	/* basic block */
#define NPUEMU_WQE_MAX_BB		4
#define NPUEMU_CQE_SIZE			64
#define NPUEMU_SQ_MIN_BB		64
#define NPUEMU_SQ_MAX_BB		32768
#define NPUEMU_CQ_MIN			64
#define NPUEMU_CQ_MAX			65536
#define NPUEMU_RQ_MIN			64
#define NPUEMU_RQ_MAX			32768

/* SQE: the 48-byte control part every WQE starts with. */
struct npuemu_sqe {
	__u32 dw0;		/* NPUEMU_SQE_* flags, order, owner */
	__u32 dw1;		/* target hint, opcode, inline length */
	__u32 dw2;		/* tp id, SGE count */
	__u32 dw3;		/* remote token id or jetty id, write_len */
	__u32 rmt_eid[4];	/* remote endpoint id */
	__u32 rmt_token_value;
	__u32 dw9;		/* reduce: udf type, data type, operation */
	__u64 rmt_addr;		/* the owner's VA; SEND_IMM: the immediate */
};

/* DW0 */
#define NPUEMU_SQE_IDX_MASK		0x0000ffffu	/* producer index of a direct WQE */
#define NPUEMU_SQE_ORDER_SHIFT		16
#define NPUEMU_SQE_ORDER_MASK		0x00030000u
#define NPUEMU_SQE_COMP_ORDER		0x00040000u
#define NPUEMU_SQE_FENCE		0x00080000u	/* after earlier READs and atomics */
#define NPUEMU_SQE_SE			0x00100000u
#define NPUEMU_SQE_CQE			0x00200000u	/* completion wanted */
#define NPUEMU_SQE_INLINE		0x00400000u
#define NPUEMU_SQE_UDF			0x00800000u	/* reduce fields valid */
#define NPUEMU_SQE_NF			0x08000000u	/* need fence, device side */
#define NPUEMU_SQE_TOKEN_EN		0x10000000u
#define NPUEMU_SQE_RMT_TYPE_SHIFT	29		/* 0 JFR, 1 jetty, 2 group */
#define NPUEMU_SQE_RMT_TYPE_MASK	0x60000000u
#define NPUEMU_SQE_OWNER		0x80000000u
#define NPUEMU_SQE_DW0_RESERVED		0x07000000u

/* place_order */
#define NPUEMU_ORDER_NONE		0u
#define NPUEMU_ORDER_RELAXED		1u
#define NPUEMU_ORDER_STRONG		2u

/* DW1 */
#define NPUEMU_SQE_OPCODE_SHIFT		8
#define NPUEMU_SQE_INLINE_LEN_SHIFT	22
#define NPUEMU_SQE_INLINE_LEN_MAX	0x3ffu

/* DW2, DW3 */
#define NPUEMU_SQE_TP_MASK		0x00ffffffu
#define NPUEMU_SQE_SGE_NUM_SHIFT	24
#define NPUEMU_SQE_RMT_ID_MASK		0x000fffffu
#define NPUEMU_SQE_WRITE_LEN_SHIFT	20		/* WRITE_ATOMIC_ADD: low 10 bits */
#define NPUEMU_SQE_WRITE_LEN_MASK	0x3ffu

/* DW9 */
#define NPUEMU_SQE_UDF_TYPE_MASK	0xffu		/* 0 = reduce */
#define NPUEMU_SQE_RED_TYPE_SHIFT	8
#define NPUEMU_SQE_RED_OP_SHIFT		12

/* Local scatter/gather element. */
struct npuemu_sge {
	__u32 len;
	__u32 token_id;
	__u64 va;
};

/* WRITE_NOTIFY: at byte 48, SGEs follow at byte 80. */
struct npuemu_sqe_notify {
	__u32 token_id;		/* 20 bits */
	__u32 token_value;
	__u64 addr;		/* an 8-byte word, aligned */
	__u64 data;
	__u64 reserved;
};

/* CAS and FAA: at byte 48.  FAA: operand[0] is the addend.  CAS: the swap
 * value, then the compare value, each of the operation's length.
 */
struct npuemu_sqe_atomic {
	struct npuemu_sge sge;	/* local result buffer; len is the operation's */
	__u64 operand[4];
};

/*
 * WRITE_ATOMIC_ADD: one basic block with a layout of its own from byte 16 on.
 * The remote endpoint is the last dword of its EID.  The length has 18 bits:
 * low 10 in DW3 write_len, high 8 in DW2 sge_num.
 */
struct npuemu_sqe_write_add {
	__u32 dw0;
	__u32 dw1;
	__u32 dw2;
	__u32 dw3;		/* token id of the payload's segment */
	__u32 rmt_eid3;
	__u32 rmt_token_value;
	__u64 rmt_addr;
	__u32 add_token_value;
	__u32 add_token_id;	/* 20 bits */
	__u64 add_addr;		/* an 8-byte word, aligned */
	__u64 add_data;
	__u64 va;		/* local source */
};

enum npuemu_opcode {
	NPUEMU_OP_SEND			= 0,
	NPUEMU_OP_SEND_IMM		= 1,
	NPUEMU_OP_SEND_INVALIDATE	= 2,
	NPUEMU_OP_WRITE			= 3,
	NPUEMU_OP_WRITE_IMM		= 4,
	NPUEMU_OP_WRITE_NOTIFY		= 5,
	NPUEMU_OP_READ			= 6,
	NPUEMU_OP_CAS			= 7,
	NPUEMU_OP_SWAP			= 8,
	NPUEMU_OP_STORE			= 9,
	NPUEMU_OP_LOAD			= 10,
	NPUEMU_OP_FAA			= 11,
	NPUEMU_OP_NOP			= 17,
	NPUEMU_OP_WRITE_ATOMIC_ADD	= 25,
};

enum npuemu_reduce_op {
	NPUEMU_REDUCE_MAX	= 8,
	NPUEMU_REDUCE_MIN	= 9,
	NPUEMU_REDUCE_SUM	= 10,
};

enum npuemu_dtype {
	NPUEMU_INT8	= 0,
	NPUEMU_INT16	= 1,
	NPUEMU_INT32	= 2,
	NPUEMU_UINT8	= 3,
	NPUEMU_UINT16	= 4,
	NPUEMU_UINT32	= 5,
	NPUEMU_FP16	= 6,
	NPUEMU_FP32	= 7,
	NPUEMU_BF16	= 8,
};

/* CQE, 64 bytes.  Kept in dwords: some 64-bit fields are not aligned. */
struct npuemu_cqe {
	__u32 dw0;		/* NPUEMU_CQE_* */
	__u32 dw1;		/* entry_idx, local_num low */
	__u32 dw2;		/* local_num high, rmt_idx */
	__u32 tpn;
	__u32 byte_cnt;
	__u32 user_data[2];	/* the queue's, as given when it was made */
	__u32 rmt_eid[4];
	__u32 imm[2];
	__u32 inline_data[3];
};

/* CQE DW0 */
#define NPUEMU_CQE_RECV			0x00000001u
#define NPUEMU_CQE_JETTY		0x00000002u
#define NPUEMU_CQE_OWNER		0x00000004u	/* 1 on the first lap */
#define NPUEMU_CQE_INLINE		0x00000008u
#define NPUEMU_CQE_OPCODE_SHIFT		4		/* receive side, 3 bits */
#define NPUEMU_CQE_FD			0x00000080u	/* flush done */
#define NPUEMU_CQE_SUBSTATUS_SHIFT	16
#define NPUEMU_CQE_STATUS_SHIFT		24
/* DW1, DW2 */
#define NPUEMU_CQE_ENTRY_IDX_MASK	0xffffu
#define NPUEMU_CQE_LOCAL_LO_SHIFT	16
#define NPUEMU_CQE_LOCAL_HI_MASK	0xfu
#define NPUEMU_CQE_RMT_IDX_SHIFT	4

/* Status and substatus as one number: status << 8 | substatus. */
#define NPUEMU_STATUS(status, sub)	((status) << 8 | (sub))
enum npuemu_status {
	NPUEMU_ST_SUCCESS		= NPUEMU_STATUS(0, 0),
	NPUEMU_ST_UNSUPPORTED_OPCODE	= NPUEMU_STATUS(1, 0),
	NPUEMU_ST_LOC_LEN		= NPUEMU_STATUS(2, 1),
	NPUEMU_ST_LOC_ACCESS		= NPUEMU_STATUS(2, 2),
	NPUEMU_ST_REM_RESP_LEN		= NPUEMU_STATUS(2, 3),
	NPUEMU_ST_LOC_DATA_POISON	= NPUEMU_STATUS(2, 4),
	NPUEMU_ST_REM_UNSUPPORTED_REQ	= NPUEMU_STATUS(3, 1),
	NPUEMU_ST_REM_ACCESS_ABORT	= NPUEMU_STATUS(3, 2),
	NPUEMU_ST_REM_DATA_POISON	= NPUEMU_STATUS(3, 4),
	NPUEMU_ST_RNR_RETRY_CNT_EXC	= NPUEMU_STATUS(4, 0),
	NPUEMU_ST_ACK_TIMEOUT		= NPUEMU_STATUS(5, 0),
	NPUEMU_ST_WR_FLUSH_ERR		= NPUEMU_STATUS(6, 0),
};

/* The doorbell page of a queue. */
#define NPUEMU_DB_PAGE_SIZE		4096
#define NPUEMU_DB_DWQE			0x00	/* a WQE stored whole: sqe_bb_idx is the new PI */
#define NPUEMU_DB_PI			0x80	/* u32, free-running count of basic blocks */

/* Queue states, as the API numbers them. */
enum npuemu_queue_state {
	NPUEMU_QS_RESET		= 0,
	NPUEMU_QS_READY		= 1,
	NPUEMU_QS_SUSPENDED	= 2,
	NPUEMU_QS_ERROR		= 3,
};

/* Rights of a segment.  Legal: LOCAL alone, R, R+W, R+W+A. */
#define NPUEMU_ACCESS_LOCAL		0x1u
#define NPUEMU_ACCESS_READ		0x2u
#define NPUEMU_ACCESS_WRITE		0x4u
#define NPUEMU_ACCESS_ATOMIC		0x8u

/*
 * SDMA descriptor: one basic block on a queue of type SDMA.  Same ring, owner
 * bit, doorbell and CQE as UDMA; addresses are the poster's own VAs.  (The
 * public SDMA SQE belongs to the task scheduler; this form is npuemu's own.)
 */
struct npuemu_sdma {
	__u32 dw0;		/* order, fence, cqe, owner: as in an SQE */
	__u32 dw1;		/* opcode in bits 15:8 */
	__u32 type;		/* REDUCE: operation << 4 | data type; else 0 */
	__u32 height;		/* COPY_2D: rows; else 0 */
	__u64 dst;
	__u64 src;		/* FILL: the pattern, repeated; NOTIFY: the value */
	__u64 len;		/* bytes; COPY_2D: bytes of a row; FILL: bytes */
	__u64 dst_pitch;	/* COPY_2D; FILL: bytes of the pattern, 1, 2, 4 or 8 */
	__u64 src_pitch;	/* COPY_2D */
	__u64 reserved;		/* 0 */
};

enum npuemu_sdma_opcode {
	NPUEMU_SDMA_NOP		= 0,
	NPUEMU_SDMA_COPY	= 1,
	NPUEMU_SDMA_COPY_2D	= 2,
	NPUEMU_SDMA_FILL	= 3,
	NPUEMU_SDMA_REDUCE	= 4,	/* dst = dst op src */
	NPUEMU_SDMA_NOTIFY	= 5,	/* 8-byte store, ordered after what came before */
};

#endif
