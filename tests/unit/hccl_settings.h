/* SPDX-License-Identifier: MIT */
/* What test_hccl_config.c expects of each variable: values that are good, and refusals' words. */
#ifndef NPUEMU_TESTS_HCCL_SETTINGS_H
#define NPUEMU_TESTS_HCCL_SETTINGS_H

struct good_value {
	const char *name, *value;
	size_t at;		/* member of struct hccl_config */
	u32 size;
	u64 want;
};

#define S		1000000000ull
#define IS(member)	offsetof(struct hccl_config, member), sizeof(((struct hccl_config *)0)->member)

static const struct good_value good_values[] = {
	{ "HCCL_CONNECT_TIMEOUT", "120", IS(connect_ns), 120 * S },
	{ "HCCL_CONNECT_TIMEOUT", "7200", IS(connect_ns), 7200 * S },
	{ "HCCL_CONNECT_TIMEOUT", "0", IS(connect_ns), 0 },
	{ "HCCL_CONNECT_TIMEOUT", "1.5", IS(connect_ns), 3 * S / 2 },
	{ "HCCL_EXEC_TIMEOUT", "0", IS(exec_ns), 0 },
	{ "HCCL_EXEC_TIMEOUT", "0.000", IS(exec_ns), 0 },
	{ "HCCL_EXEC_TIMEOUT", "1836", IS(exec_ns), 1836 * S },
	{ "HCCL_EXEC_TIMEOUT", "0.05", IS(exec_ns), S / 20 },
	{ "HCCL_EXEC_TIMEOUT", ".5", IS(exec_ns), S / 2 },
	{ "HCCL_EXEC_TIMEOUT", "5.", IS(exec_ns), 5 * S },
	{ "HCCL_EXEC_TIMEOUT", "0.000000001", IS(exec_ns), 1 },
	{ "HCCL_EXEC_TIMEOUT", "0.0000000001", IS(exec_ns), 1 },
	{ "HCCL_EXEC_TIMEOUT", "0.00000000000", IS(exec_ns), 0 },
	{ "HCCL_EXEC_TIMEOUT", "1.2345678901", IS(exec_ns), 1234567891 },
	{ "HCCL_EXEC_TIMEOUT", "2147483647", IS(exec_ns), 2147483647 * S },
	{ "HCCL_EXEC_TIMEOUT", "2147483646.9999999999", IS(exec_ns), 2147483647 * S },
	{ "HCCL_EXEC_TIMEOUT", "0002", IS(exec_ns), 2 * S },
	{ "HCCL_BUFFSIZE", "1", IS(buffer_bytes), 1 << 20 },
	{ "HCCL_BUFFSIZE", "1048576", IS(buffer_bytes), 1ull << 40 },
	{ "HCCL_OP_EXPANSION_MODE", "HOST", IS(mode), HCCL_MODE_HOST },
	{ "HCCL_OP_EXPANSION_MODE", "HOST_TS", IS(mode), HCCL_MODE_HOST_TS },
	{ "HCCL_OP_EXPANSION_MODE", "AI_CPU", IS(mode), HCCL_MODE_AICPU },
	{ "HCCL_OP_EXPANSION_MODE", "AICPU_TS", IS(mode), HCCL_MODE_AICPU },
	{ "HCCL_OP_EXPANSION_MODE", "AICPU_TS", IS(aicpu_cache), 1 },
	{ "HCCL_OP_EXPANSION_MODE", "AICPU_CacheDisable", IS(mode), HCCL_MODE_AICPU },
	{ "HCCL_OP_EXPANSION_MODE", "AICPU_CacheDisable", IS(aicpu_cache), 0 },
	{ "HCCL_OP_EXPANSION_MODE", "AIV", IS(mode), HCCL_MODE_AIV },
	{ "HCCL_OP_EXPANSION_MODE", "AIV_ONLY", IS(mode), HCCL_MODE_AIV_ONLY },
	{ "HCCL_OP_EXPANSION_MODE", "CCU_MS", IS(mode), HCCL_MODE_CCU_MS },
	{ "HCCL_OP_EXPANSION_MODE", "CCU_SCHED", IS(mode), HCCL_MODE_CCU_SCHED },
	{ "HCCL_OP_EXPANSION_MODE", "CCU_SCHED", IS(mode_set), 1 },
	{ "HCCL_DETERMINISTIC", "false", IS(deterministic), HCCL_DET_FALSE },
	{ "HCCL_DETERMINISTIC", "TRUE", IS(deterministic), HCCL_DET_TRUE },
	{ "HCCL_DETERMINISTIC", "strict", IS(deterministic), HCCL_DET_STRICT },
	{ "HCCL_INTER_HCCS_DISABLE", "True", IS(inter_hccs_off), 1 },
	{ "HCCL_INTER_HCCS_DISABLE", "false", IS(inter_hccs_off), 0 },
	{ "HCCL_IF_BASE_PORT", "1024", IS(if_base_port), 1024 },
	{ "HCCL_IF_BASE_PORT", "65520", IS(if_base_port), 65520 },
	{ "HCCL_IF_IP", "10.1.2.3", 0, 0, 0 },
	{ "HCCL_IF_IP", "fe80::1%eth0", 0, 0, 0 },
	{ "HCCL_SOCKET_IFNAME", "eth", 0, 0, 0 },
	{ "HCCL_SOCKET_IFNAME", "^=eth0,endvnic", 0, 0, 0 },
	{ "HCCL_SOCKET_IFNAME", "=eth0", 0, 0, 0 },
	{ "HCCL_SOCKET_FAMILY", "AF_INET", IS(ipv6), 0 },
	{ "HCCL_SOCKET_FAMILY", "AF_INET", IS(family_set), 1 },
	{ "HCCL_SOCKET_FAMILY", "AF_INET6", IS(ipv6), 1 },
	{ "HCCL_HOST_SOCKET_PORT_RANGE", "auto", IS(host_ports.automatic), 1 },
	{ "HCCL_HOST_SOCKET_PORT_RANGE", "1-2,65535", IS(host_ports.n), 2 },
	{ "HCCL_HOST_SOCKET_PORT_RANGE", "1-2,65535", IS(host_ports.range[0].high), 2 },
	{ "HCCL_HOST_SOCKET_PORT_RANGE", "1-2,65535", IS(host_ports.range[1].low), 65535 },
	{ "HCCL_NPU_SOCKET_PORT_RANGE", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", IS(npu_ports.n), 16 },
	{ "HCCL_WHITELIST_DISABLE", "1", IS(whitelist), 0 },
	{ "HCCL_WHITELIST_FILE", "/nowhere", 0, 0, 0 },
	{ "HCCL_LOGIC_SUPERPOD_ID", "pod", 0, 0, 0 },
	{ "HCCL_DIAGNOSE_ENABLE", "1", IS(diagnose), 1 },
	{ "HCCL_DIAGNOSE_ENABLE", "0", IS(diagnose), 0 },
	{ "HCCL_ENTRY_LOG_ENABLE", "1", IS(entry_log), 1 },
	{ "HCCL_DEBUG_CONFIG", "alg", IS(debug), HCCL_DEBUG_ALG },
	{ "HCCL_DEBUG_CONFIG", "ALG,task,RESOURCE", IS(debug), 7 },
	{ "HCCL_DEBUG_CONFIG", "^task", IS(debug), 5 },
	{ "HCCL_DFS_CONFIG", "cluster_heartbeat:off", IS(heartbeat), 0 },
	{ "HCCL_DFS_CONFIG", "cluster_heartbeat:off, stuck_detection : OFF", IS(stuck_detection), 0 },
	{ "HCCL_DFS_CONFIG", "task_exception:off", IS(task_exception), 0 },
	{ "HCCL_DFS_CONFIG", "inconsistent_check:off", IS(check), HCCL_CHECK_OFF },
	{ "HCCL_DFS_CONFIG", "inconsistent_check:on", IS(check), HCCL_CHECK_ON },
	{ "HCCL_DFS_CONFIG", "inconsistent_check:first", IS(check), HCCL_CHECK_FIRST },
	{ "HCCL_DFS_CONFIG", "connection_fault_detection_time:0", IS(fault_detection_s), 0 },
	{ "HCCL_DFS_CONFIG", "connection_fault_detection_time:20", IS(fault_detection_s), 20 },
	{ "HCCL_DFS_CONFIG", "connection_fault_detection_time:7200", IS(fault_detection_s), 7200 },
	{ "HCCL_DFS_CONFIG", "task_monitor_interval:7200000", IS(task_monitor_ms), 7200000 },
	{ "HCCL_OP_RETRY_ENABLE", "L0:0,L1:1,L2:1", IS(retry[1]), 1 },
	{ "HCCL_OP_RETRY_ENABLE", "L2:1", IS(retry[2]), 1 },
	{ "HCCL_OP_RETRY_PARAMS", "MaxCnt:10,HoldTime:60000,IntervalTime:0", IS(retry_max), 10 },
	{ "HCCL_OP_RETRY_PARAMS", "HoldTime:60000", IS(retry_hold_ms), 60000 },
	{ "HCCL_OP_RETRY_PARAMS", "IntervalTime:0", IS(retry_interval_ms), 0 },
	{ "HCCL_RDMA_TC", "0", IS(rdma_tc), 0 },
	{ "HCCL_RDMA_TC", "252", IS(rdma_tc), 252 },
	{ "HCCL_RDMA_SL", "7", IS(rdma_sl), 7 },
	{ "HCCL_RDMA_TIMEOUT", "5", IS(rdma_timeout), 5 },
	{ "HCCL_RDMA_TIMEOUT", "24", IS(rdma_timeout), 24 },
	{ "HCCL_RDMA_RETRY_CNT", "1", IS(rdma_retries), 1 },
	{ "HCCL_RDMA_QPS_PER_CONNECTION", "32", IS(rdma_qps), 32 },
	{ "HCCL_MULTI_QP_THRESHOLD", "8192", IS(multi_qp_kib), 8192 },
	{ "HCCL_RDMA_PCIE_DIRECT_POST_NOSTRICT", "TRUE", IS(rdma_nostrict), 1 },
	{ "NPUEMU_HCCL_STRICT", "1", IS(strict), 1 },
	{ "NPUEMU_HCCL_STRICT", "0", IS(strict), 0 },
	/* empty is not set */
	{ "HCCL_EXEC_TIMEOUT", "", IS(exec_ns), 1836 * S },
};

struct bad_value {
	const char *name, *value;
	const char *what;	/* behind "EI0001: NAME is "VALUE""; NULL: any words */
};

#define CONNECT		"; expected seconds, up to 7200, fractions too; 0: no limit"
#define EXEC		"; expected seconds, up to 2147483647, fractions too; 0: no limit"
#define BUFFER		"; expected a number of MB, 1 to 1048576"
#define MODE		"; expected HOST, HOST_TS, AI_CPU, AICPU_TS, AICPU_CacheDisable, AIV, AIV_ONLY, CCU_MS or CCU_SCHED"
#define ALGO		"; expected level0:NA;level1:ALGORITHM;..., or OPERATION=level0:NA;level1:ALGORITHM.../..."
#define ALGS		" is none of NA, ring, H-D_R, NHR, NHR_V1, NB, AHC, AHC_BROKE, pipeline, pairwise, fullmesh, mesh_oneshot, mesh_twoshot" ALGO
#define OPS		" does not begin with broadcast=, allreduce=, reduce=, allgather=, reducescatter=, alltoall=, scatter=, gather=, send=, receive=, sendrecv= or others=" ALGO
#define LEVEL		" is not level0: to level3: and an algorithm" ALGO
#define PORTS		"; expected auto, or ports and ranges of them from 1 to 65535: 60000-60031,61000"
#define NAMES		"; expected names of interfaces with commas between them, and ^, = or ^= before them"
#define IP		"; expected an IPv4 or IPv6 address, or ADDRESS%INTERFACE"
#define DEBUG		"; expected alg, task, resource, with commas between them; ^ before them: all but these"
#define RETRY		"; expected L0:0,L1:0,L2:0, each 0 or 1"
#define PARAMS		"; expected MaxCnt:1..10,HoldTime:0..60000,IntervalTime:0..60000"
#define ZERO_ONE	"; expected 0 or 1"
#define TRUE_FALSE	"; expected true or false"

static const struct bad_value bad_values[] = {
	{ "HCCL_CONNECT_TIMEOUT", "7200.000000001", CONNECT },
	{ "HCCL_CONNECT_TIMEOUT", "7201", CONNECT },
	{ "HCCL_CONNECT_TIMEOUT", "-1", CONNECT },
	{ "HCCL_CONNECT_TIMEOUT", "120s", CONNECT },
	{ "HCCL_EXEC_TIMEOUT", "2147483648", EXEC },
	{ "HCCL_EXEC_TIMEOUT", "2147483647.1", EXEC },
	{ "HCCL_EXEC_TIMEOUT", "18446744073709551617", EXEC },
	{ "HCCL_EXEC_TIMEOUT", "-0.5", EXEC },
	{ "HCCL_EXEC_TIMEOUT", ".", EXEC },
	{ "HCCL_EXEC_TIMEOUT", "1e3", EXEC },
	{ "HCCL_EXEC_TIMEOUT", "1.2.3", EXEC },
	{ "HCCL_EXEC_TIMEOUT", "0.00000000001x", EXEC },
	{ "HCCL_EXEC_TIMEOUT", " 1", EXEC },
	{ "HCCL_BUFFSIZE", "0", BUFFER },
	{ "HCCL_BUFFSIZE", "1048577", BUFFER },
	{ "HCCL_BUFFSIZE", "4294967296", BUFFER },
	{ "HCCL_BUFFSIZE", "200MB", BUFFER },
	{ "HCCL_OP_EXPANSION_MODE", "ccu_ms", MODE },
	{ "HCCL_OP_EXPANSION_MODE", "default", MODE },
	{ "HCCL_OP_EXPANSION_MODE", "GPU", MODE },
	{ "HCCL_ALGO", "ring", ": \"ring\"" LEVEL },
	{ "HCCL_ALGO", "level4:ring", ": \"level4:ring\"" LEVEL },
	{ "HCCL_ALGO", "level1:", ": \"level1:\"" LEVEL },
	{ "HCCL_ALGO", "level1:ring;", ": \"\"" LEVEL },
	{ "HCCL_ALGO", "level1:rings", ": \"rings\"" ALGS },
	{ "HCCL_ALGO", "level1:-", ": \"-\"" ALGS },
	{ "HCCL_ALGO", "level1:nhr", ": \"nhr\"" ALGS },
	{ "HCCL_ALGO", "level0:NA;level1:ring;level1:NHR", ": level1 is there twice" ALGO },
	{ "HCCL_ALGO", "allreduces=level1:ring", ": \"allreduces=level1:ring\"" OPS },
	{ "HCCL_ALGO", "allreduce=level1:ring/level1:NB", ": \"level1:NB\"" OPS },
	{ "HCCL_ALGO", "allreduce=level1:ring/", ": \"\"" OPS },
	{ "HCCL_ALGO", "allreduce=", ": \"\"" LEVEL },
	{ "HCCL_ALGO", "allreduce=level1:ring/allreduce=level1:NB", ": allreduce= is there twice" ALGO },
	{ "HCCL_DETERMINISTIC", "1", "; expected false, true or strict" },
	{ "HCCL_INTER_HCCS_DISABLE", "1", TRUE_FALSE },
	{ "HCCL_IF_IP", "10.1.2", IP },
	{ "HCCL_IF_IP", "10.1.2.3%", IP },
	{ "HCCL_IF_IP", "10.1.2.3%abcdefghijklmnop", IP },
	{ "HCCL_IF_IP", "%eth0", IP },
	{ "HCCL_SOCKET_IFNAME", "^", ": \"\" is no interface's name" NAMES },
	{ "HCCL_SOCKET_IFNAME", "eth0,,eth1", ": \"\" is no interface's name" NAMES },
	{ "HCCL_SOCKET_IFNAME", "eth0,^eth1", ": \"^eth1\" is no interface's name" NAMES },
	{ "HCCL_SOCKET_IFNAME", "abcdefghijklmnop", ": \"abcdefghijklmnop\" is no interface's name" NAMES },
	{ "HCCL_SOCKET_FAMILY", "AF_UNIX", "; expected AF_INET or AF_INET6" },
	{ "HCCL_IF_BASE_PORT", "1023", "; expected a number from 1024 to 65520" },
	{ "HCCL_IF_BASE_PORT", "65521", "; expected a number from 1024 to 65520" },
	{ "HCCL_HOST_SOCKET_PORT_RANGE", "0", ": \"0\" is no range of ports" PORTS },
	{ "HCCL_HOST_SOCKET_PORT_RANGE", "5-4", ": \"5-4\" is no range of ports" PORTS },
	{ "HCCL_HOST_SOCKET_PORT_RANGE", "1-65536", ": \"1-65536\" is no range of ports" PORTS },
	{ "HCCL_HOST_SOCKET_PORT_RANGE", "1-2-3", ": \"1-2-3\" is no range of ports" PORTS },
	{ "HCCL_NPU_SOCKET_PORT_RANGE", "7-9,1-7", ": \"1-7\" overlaps 7-9" PORTS },
	{ "HCCL_NPU_SOCKET_PORT_RANGE", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", ": it has more than 16 ranges" PORTS },
	{ "HCCL_WHITELIST_DISABLE", "2", ZERO_ONE },
	{ "HCCL_DIAGNOSE_ENABLE", "true", ZERO_ONE },
	{ "HCCL_ENTRY_LOG_ENABLE", "2", ZERO_ONE },
	{ "HCCL_DEBUG_CONFIG", "alg,", ": \"\" is not known" DEBUG },
	{ "HCCL_DEBUG_CONFIG", "link", ": \"link\" is not known" DEBUG },
	{ "HCCL_DFS_CONFIG", "cluster_heartbeat", NULL },
	{ "HCCL_DFS_CONFIG", "cluster_heartbeat:1", NULL },
	{ "HCCL_DFS_CONFIG", "heart:on", NULL },
	{ "HCCL_DFS_CONFIG", "inconsistent_check:last", NULL },
	{ "HCCL_DFS_CONFIG", "connection_fault_detection_time:19", NULL },
	{ "HCCL_DFS_CONFIG", "connection_fault_detection_time:7201", NULL },
	{ "HCCL_DFS_CONFIG", "task_monitor_interval:7200001", NULL },
	{ "HCCL_OP_RETRY_ENABLE", "1", ": \"1\" is no level's" RETRY },
	{ "HCCL_OP_RETRY_ENABLE", "L3:0", ": \"L3:0\" is no level's" RETRY },
	{ "HCCL_OP_RETRY_ENABLE", "L1:2", ": \"L1:2\" is no level's" RETRY },
	{ "HCCL_OP_RETRY_ENABLE", "L1:0,L1:1", ": L1 is there twice" RETRY },
	{ "HCCL_OP_RETRY_PARAMS", "MaxCnt:0", ": \"MaxCnt:0\" is not one of them" PARAMS },
	{ "HCCL_OP_RETRY_PARAMS", "MaxCnt:11", ": \"MaxCnt:11\" is not one of them" PARAMS },
	{ "HCCL_OP_RETRY_PARAMS", "HoldTime:60001", ": \"HoldTime:60001\" is not one of them" PARAMS },
	{ "HCCL_OP_RETRY_PARAMS", "Count:1", ": \"Count:1\" is not one of them" PARAMS },
	{ "HCCL_OP_RETRY_PARAMS", "MaxCnt:1,MaxCnt:1", ": MaxCnt is there twice" PARAMS },
	{ "HCCL_RDMA_TC", "256", "; expected a multiple of 4 from 0 to 255" },
	{ "HCCL_RDMA_TC", "130", "; expected a multiple of 4 from 0 to 255" },
	{ "HCCL_RDMA_SL", "8", "; expected a number from 0 to 7" },
	{ "HCCL_RDMA_TIMEOUT", "4", "; expected a number from 5 to 24" },
	{ "HCCL_RDMA_TIMEOUT", "25", "; expected a number from 5 to 24" },
	{ "HCCL_RDMA_RETRY_CNT", "0", "; expected a number from 1 to 7" },
	{ "HCCL_RDMA_RETRY_CNT", "8", "; expected a number from 1 to 7" },
	{ "HCCL_RDMA_QPS_PER_CONNECTION", "33", "; expected a number from 1 to 32" },
	{ "HCCL_MULTI_QP_THRESHOLD", "8193", "; expected a number from 1 to 8192" },
	{ "HCCL_RDMA_PCIE_DIRECT_POST_NOSTRICT", "yes", TRUE_FALSE },
	{ "NPUEMU_HCCL_STRICT", "yes", ZERO_ONE },
	{ "HCCL_INTRA_PCIE_ENABLE", "2", ZERO_ONE },
	{ "HCCL_INTRA_ROCE_ENABLE", "on", ZERO_ONE },
	{ "HCCL_INTRA_PCIE_ENABLE", "0", ": it leaves no link; expected HCCL_INTRA_ROCE_ENABLE=1 with it" },
	{ "HCCL_INTRA_ROCE_ENABLE", "0", ": it leaves no link; expected HCCL_INTRA_PCIE_ENABLE=1 with it" },
};

#endif
