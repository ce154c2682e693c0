/* SPDX-License-Identifier: MIT */
/*
 * The settings of a communicator: HCCL's defaults, then the environment, then the
 * program's HcclCommConfig, each over what was before.
 *
 * Results are HcclResult's; a failure leaves one line in the caller's buffer: EI0001
 * (environment) or EI0003 (HcclCommConfig), what is set, to what, what is expected.
 */
#ifndef NPUEMU_HCCL_CONFIG_H
#define NPUEMU_HCCL_CONFIG_H

#include "core.h"
#include <hccl/hccl_types.h>

/* Who expands an operation into tasks.  The numbers are those of HcclCommConfig, but HOST_TS. */
enum hccl_mode {
	HCCL_MODE_DEFAULT,	/* only in a HcclCommConfig: hccl_config never says so */
	HCCL_MODE_HOST,
	HCCL_MODE_AICPU,
	HCCL_MODE_AIV,
	HCCL_MODE_AIV_ONLY,
	HCCL_MODE_CCU_MS,
	HCCL_MODE_CCU_SCHED,
	HCCL_MODE_HOST_TS,
	HCCL_MODES
};

/* HCCL_ALGO's choice for a level. */
enum hccl_alg {
	HCCL_ALG_DEFAULT,	/* not set */
	HCCL_ALG_NA,		/* set to: choose yourself */
	HCCL_ALG_RING,
	HCCL_ALG_HDR,		/* recursive halving and doubling */
	HCCL_ALG_NHR,
	HCCL_ALG_NHR_V1,
	HCCL_ALG_NB,
	HCCL_ALG_AHC,
	HCCL_ALG_AHC_BROKE,
	HCCL_ALG_PIPELINE,
	HCCL_ALG_PAIRWISE,
	HCCL_ALG_MESH,
	HCCL_ALG_MESH_ONESHOT,	/* our own names: mesh_oneshot, mesh_twoshot */
	HCCL_ALG_MESH_TWOSHOT,
	HCCL_ALGS
};

#define HCCL_ALG_LEVELS	4
#define HCCL_ALG_CMDS	21	/* HcclCMDType, up to HCCL_CMD_HALF_ALLTOALLV */

enum hccl_deterministic {
	HCCL_DET_FALSE,
	HCCL_DET_TRUE,
	HCCL_DET_STRICT,
};

enum hccl_check {		/* of operations against those of other ranks */
	HCCL_CHECK_OFF,
	HCCL_CHECK_ON,
	HCCL_CHECK_FIRST,
};

#define HCCL_DEBUG_ALG		1
#define HCCL_DEBUG_TASK		2
#define HCCL_DEBUG_RESOURCE	4

#define HCCL_NOT_SET	0xffffffffu
#define HCCL_NAME_BYTES	129
#define HCCL_PORT_RANGES 16

struct hccl_ports {
	bool automatic;		/* "auto" */
	u32 n;			/* 0: not set */
	struct {
		u16 low;
		u16 high;
	} range[HCCL_PORT_RANGES];
};

struct hccl_config {
	char soc[32];		/* of the machine description */
	u8 strict;		/* NPUEMU_HCCL_STRICT: only what this chip has; see support.h */

	s64 connect_ns;		/* 0: never */
	s64 exec_ns;		/* 0: never */
	u64 buffer_bytes;	/* of each of the two CCL buffers */
	u8 mode;		/* enum hccl_mode */
	u8 mode_set;		/* by the user */
	u8 aicpu_cache;
	u8 deterministic;	/* enum hccl_deterministic */
	u8 alg[HCCL_ALG_CMDS][HCCL_ALG_LEVELS];	/* enum hccl_alg */
	char algo[HCCL_COMM_ALGO_MAX_LENGTH + 1];	/* the same, as given */
	u8 intra_roce;		/* the link inside a server: PCIe, or RoCE */
	u8 intra_pcie;
	u8 inter_hccs_off;

	/* network: for whom asks for it */
	char if_ip[64];		/* "": not set; may have %interface behind it */
	char if_names[256];	/* as given */
	u8 ipv6;		/* HCCL_SOCKET_FAMILY */
	u8 family_set;
	u32 if_base_port;	/* 0: not set */
	struct hccl_ports host_ports, npu_ports;
	u8 whitelist;		/* in force */
	char whitelist_file[512];
	char logic_superpod[HCCL_NAME_BYTES];

	/* diagnosis */
	u8 diagnose, entry_log;
	u8 debug;		/* HCCL_DEBUG_* */
	u8 heartbeat, stuck_detection, task_exception;
	u8 check;		/* enum hccl_check */
	u32 fault_detection_s;
	u32 task_monitor_ms;	/* 0: off */
	u8 retry[3];		/* on the levels */
	u32 retry_max, retry_hold_ms, retry_interval_ms;

	/* RDMA: taken, and without effect */
	u32 rdma_tc, rdma_sl, rdma_timeout, rdma_retries, rdma_qps, multi_qp_kib;
	u8 rdma_nostrict;

	/* only in HcclCommConfig; "", 0 and HCCL_NOT_SET (qos, sq_depth): not set */
	char name[HCCL_NAME_BYTES], udi[HCCL_NAME_BYTES], buffer_name[HCCL_NAME_BYTES];
	u32 world_rank;		/* as the program counts */
	u64 job;
	u8 zero_copy;
	u32 qos;
	u64 symwin_bytes;	/* address room for symmetric windows, each rank's */
	u32 sq_depth;
};

/* Defaults and environment; @soc decides the default mode. */
int hccl_config_load(struct hccl_config *c, const char *soc, char *why, size_t room);
/*
 * What @comm, of any version, has set.  Of one newer than we know the
 * part that we know.  On a failure @c is as it was.
 */
int hccl_config_apply(struct hccl_config *c, const HcclCommConfig *comm, char *why, size_t room);
/* HCCL_ALGO and hcclAlgo; @bad says what is wrong with it. */
bool hccl_config_parse_algo(struct hccl_config *c, const char *s, char *bad, size_t room);

#define HCCL_CONFIG_TEXT	1024

/* What is in force, in one line of key=value. */
void hccl_config_text(const struct hccl_config *c, char *text, size_t room);
/*
 * Two such lines: do their ranks fit together?  Each may have its own timeouts.  If not, what
 * is the first difference: "deterministic is true, but false on the other side".
 */
bool hccl_config_agree(const char *ours, const char *theirs, char *why, size_t room);

const char *hccl_mode_name(u32 mode);
const char *hccl_alg_name(u32 alg);
u32 hccl_mode_public(u32 mode);		/* the number of HcclOpExpansionMode */
/* NULL, or the chip whose limits are to be kept: for support.h */
const char *hccl_config_strict_soc(const struct hccl_config *c);

#endif
