// SPDX-License-Identifier: MIT
/*
 * What the ACL runtime says of devices: attributes, numbers, names, how they are
 * connected; on each of the shipped machines, each in a process of its own.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "acltest.h"

/* ---- A machine: a child process on a board of its own -------------------- */

static void on_machine(const char *name, const char *visible)
{
	char board[96];

	snprintf(board, sizeof(board), "%.64s-%s", sys_board(), name);
	setenv("NPUEMU_BOARD", board, 1);
	setenv("NPUEMU_MACHINE", name, 1);
	if (visible)
		setenv("ASCEND_RT_VISIBLE_DEVICES", visible, 1);
	else
		unsetenv("ASCEND_RT_VISIBLE_DEVICES");
	acl_ok(aclInit(NULL));
}

static void off_machine(void)
{
	acl_ok(aclFinalize());
	npuemu_board_reset(NULL);
}

static void run_child(sys_child_fn fn)
{
	struct sys_child c;

	sys_spawn(&c, fn, "", 1);
	sys_join(&c);
}

static int64_t info(uint32_t device, aclrtDevAttr attr)
{
	int64_t v = -99;

	acl_ok(aclrtGetDeviceInfo(device, attr, &v));
	return v;
}

static uint64_t topo(uint32_t a, uint32_t b)
{
	uint64_t v = 0, back = 0;

	acl_ok(aclrtGetDevicesTopo(a, b, &v));
	acl_ok(aclrtGetDevicesTopo(b, a, &back));
	sys_eq(v, back);
	return v;
}

static int can_reach(int a, int b)
{
	int32_t can = -1;

	acl_ok(aclrtDeviceCanAccessPeer(&can, a, b));
	return can;
}

/* ---- Attributes ---------------------------------------------------------- */

/* The machine that the parent runs on: "small", as the kernel host has it, too. */
static void attributes_here(void **state)
{
	int64_t v;

	(void)state;
	sys_eq(info(0, ACL_DEV_ATTR_CUBE_CORE_NUM), 2);
	sys_eq(info(1, ACL_DEV_ATTR_AICORE_CORE_NUM), 2);
	sys_eq(info(1, ACL_DEV_ATTR_VECTOR_CORE_NUM), 4);
	sys_eq(info(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE), 1ull << 30);
	sys_eq(info(0, ACL_DEV_ATTR_L2_CACHE_SIZE), 16 << 20);
	sys_eq(info(0, ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE), 248 << 10);
	sys_eq(info(0, ACL_DEV_ATTR_WARP_SIZE), 32);
	sys_eq(info(0, ACL_DEV_ATTR_NPU_ARCH), 3510);
	sys_eq(info(0, ACL_DEV_ATTR_HD_CONNECT_TYPE), ACL_HOST_DEVICE_CONNECT_TYPE_PCIE);
	sys_eq(info(0, ACL_DEV_ATTR_IS_VIRTUAL), 0);
	sys_eq(info(0, ACL_DEV_ATTR_PHY_CHIP_ID), 0);
	sys_eq(info(1, ACL_DEV_ATTR_PHY_CHIP_ID), 1);
	sys_true(info(0, ACL_DEV_ATTR_SUPER_POD_DEVICE_ID) != info(1, ACL_DEV_ATTR_SUPER_POD_DEVICE_ID),
		 "one pod number for two devices");
	acl_fails(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_CUST_OP_PRIVILEGE, &v),
		  ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_ok(aclGetDeviceCapability(1, ACL_DEVICE_INFO_AI_CORE_NUM, &v));
	sys_eq(v, 2);
	acl_ok(aclGetDeviceCapability(1, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &v));
	sys_eq(v, 4);
	acl_ok(aclGetDeviceCapability(1, ACL_DEVICE_INFO_L2_SIZE, &v));
	sys_eq(v, 16 << 20);
}

/* Every attribute that the header has gives a number, or says that it is not of this generation. */
static unsigned int missing(uint32_t device)
{
	static const aclrtDevAttr all[] = {
		ACL_DEV_ATTR_AICPU_CORE_NUM, ACL_DEV_ATTR_AICORE_CORE_NUM, ACL_DEV_ATTR_CUBE_CORE_NUM,
		ACL_DEV_ATTR_VECTOR_CORE_NUM, ACL_DEV_ATTR_WARP_SIZE,
		ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE, ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE,
		ACL_DEV_ATTR_MAX_GRID_DIM_X, ACL_DEV_ATTR_MAX_GRID_DIM_Y, ACL_DEV_ATTR_MAX_GRID_DIM_Z,
		ACL_DEV_ATTR_MAX_BLOCK_PER_GRID, ACL_DEV_ATTR_MAX_THREADS_PER_BLOCK,
		ACL_DEV_ATTR_MAX_BLOCK_DIM_X, ACL_DEV_ATTR_MAX_BLOCK_DIM_Y, ACL_DEV_ATTR_MAX_BLOCK_DIM_Z,
		ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, ACL_DEV_ATTR_L2_CACHE_SIZE, ACL_DEV_ATTR_SMP_ID,
		ACL_DEV_ATTR_PHY_CHIP_ID, ACL_DEV_ATTR_SUPER_POD_DEVICE_ID,
		ACL_DEV_ATTR_SUPER_POD_SERVER_ID, ACL_DEV_ATTR_SUPER_POD_ID,
		ACL_DEV_ATTR_CUST_OP_PRIVILEGE, ACL_DEV_ATTR_MAINBOARD_ID, ACL_DEV_ATTR_HD_CONNECT_TYPE,
		ACL_DEV_ATTR_DEVICE_FORM_FACTOR, ACL_DEV_ATTR_IS_VIRTUAL, ACL_DEV_ATTR_NPU_ARCH,
	};
	unsigned int n = 0;
	int64_t v;
	size_t i;
	aclError ret;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		v = -99;
		ret = aclrtGetDeviceInfo(device, all[i], &v);
		sys_true(ret ? ret == ACL_ERROR_RT_FEATURE_NOT_SUPPORT && v == -99 : v >= 0,
			 "attribute %d: %d, %lld", (int)all[i], ret, (long long)v);
		n += ret != 0;
	}
	return n;
}

static void bad_attributes(void **state)
{
	int64_t v;
	int32_t can;

	(void)state;
	acl_fails(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_NPU_ARCH, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetDeviceInfo(2, ACL_DEV_ATTR_NPU_ARCH, &v), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtGetDeviceInfo(UINT32_MAX, ACL_DEV_ATTR_NPU_ARCH, &v),
		  ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtGetDeviceInfo(0, (aclrtDevAttr)0, &v), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtGetDeviceInfo(0, (aclrtDevAttr)410, &v), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtGetDeviceInfo(0, (aclrtDevAttr)-1, &v), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclGetDeviceCapability(0, ACL_DEVICE_INFO_L2_SIZE, NULL),
		  ACL_ERROR_INVALID_PARAM);
	acl_fails(aclGetDeviceCapability(2, ACL_DEVICE_INFO_L2_SIZE, &v),
		  ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclGetDeviceCapability(0, (aclDeviceInfo)3, &v), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclGetDeviceCapability(0, ACL_DEVICE_INFO_UNDEFINED, &v),
		  ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, &can));
	sys_eq(can, ACL_DEV_FEATURE_NOT_SUPPORT);
	acl_fails(aclrtGetDeviceCapability(0, (aclrtDevFeatureType)2, &can),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, NULL),
		  ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetDeviceCapability(-1, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, &can),
		  ACL_ERROR_RT_INVALID_DEVICEID);
}

/* ---- The shipped machines ------------------------------------------------ */

static void a2(int fd, const void *arg)
{
	const aclrtAtomicOperation ops[] = {
		ACL_RT_ATOMIC_OPERATION_DMA_ADD, ACL_RT_ATOMIC_OPERATION_INTEGER_ADD,
		ACL_RT_ATOMIC_OPERATION_DMA_MAX,
	};
	aclrtFloatOverflowMode mode;
	uint32_t caps[3];
	size_t limit;

	(void)fd;
	(void)arg;
	on_machine("910b", NULL);
	sys_eq(info(7, ACL_DEV_ATTR_CUBE_CORE_NUM), 24);
	sys_eq(info(7, ACL_DEV_ATTR_VECTOR_CORE_NUM), 48);
	sys_eq(info(7, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE), 64ull << 30);
	sys_eq(info(0, ACL_DEV_ATTR_WARP_SIZE), 0);
	sys_eq(info(0, ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE), 0);
	sys_eq(info(0, ACL_DEV_ATTR_NPU_ARCH), 2201);
	sys_eq(info(0, ACL_DEV_ATTR_CUST_OP_PRIVILEGE), 0);
	sys_eq(missing(0), 2);
	sys_eq(topo(0, 7), ACL_RT_DEVS_TOPOLOGY_HCCS);
	sys_eq(can_reach(0, 7), 1);
	acl_ok(aclrtDeviceGetP2PAtomicCapabilities(caps, ops, 3, 0, 1));
	sys_eq(caps[0], ACL_RT_ATOMIC_CAPABILITY_SIGNED | ACL_RT_ATOMIC_CAPABILITY_SCALAR8 |
	       ACL_RT_ATOMIC_CAPABILITY_SCALAR16 | ACL_RT_ATOMIC_CAPABILITY_SCALAR32);
	sys_eq(caps[1], 0);
	sys_eq(caps[2], caps[0]);
	acl_ok(aclrtDeviceGetHostAtomicCapabilities(caps, ops, 3, 0));
	sys_eq(caps[0] | caps[1] | caps[2], 0);
	/* no SIMT, and a stack of another size */
	acl_fails(aclrtDeviceSetLimit(ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE, 256),
		  ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_fails(aclrtDeviceGetLimit(ACL_RT_DEV_LIMIT_SIMT_PRINTF_FIFO_SIZE, &limit),
		  ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_ok(aclrtDeviceSetLimit(ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, 192 << 10));
	acl_ok(aclrtDeviceGetLimit(ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, &limit));
	sys_eq(limit, 192 << 10);
	/* it saturates if it is told to: the device, not its neighbour */
	acl_ok(aclrtSetDevice(1));
	acl_ok(aclrtSetDevice(0));
	acl_ok(aclrtGetDeviceSatMode(&mode));
	sys_eq(mode, ACL_RT_OVERFLOW_MODE_INFNAN);
	acl_ok(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION));
	acl_ok(aclrtGetDeviceSatMode(&mode));
	sys_eq(mode, ACL_RT_OVERFLOW_MODE_SATURATION);
	acl_ok(aclrtSetDevice(1));
	acl_ok(aclrtGetDeviceSatMode(&mode));
	sys_eq(mode, ACL_RT_OVERFLOW_MODE_INFNAN);
	off_machine();
}

static void a3(int fd, const void *arg)
{
	(void)fd;
	(void)arg;
	on_machine("910c", NULL);
	sys_eq(topo(0, 1), ACL_RT_DEVS_TOPOLOGY_SIO);
	sys_eq(topo(1, 2), ACL_RT_DEVS_TOPOLOGY_HCCS_SW);
	sys_eq(info(15, ACL_DEV_ATTR_PHY_CHIP_ID), 7);
	sys_eq(info(3, ACL_DEV_ATTR_SUPER_POD_DEVICE_ID), 1 << 18 | 1 << 16 | 3);
	sys_eq(missing(15), 2);
	off_machine();
}

static void two_servers(int fd, const void *arg)
{
	int64_t seen[16];
	uint32_t i, j;

	(void)fd;
	(void)arg;
	on_machine("950-2x8", NULL);
	sys_eq(info(7, ACL_DEV_ATTR_SUPER_POD_SERVER_ID), 0);
	sys_eq(info(8, ACL_DEV_ATTR_SUPER_POD_SERVER_ID), 1);
	sys_eq(info(8, ACL_DEV_ATTR_SMP_ID), 1);
	sys_eq(info(8, ACL_DEV_ATTR_PHY_CHIP_ID), 0);
	sys_eq(info(8, ACL_DEV_ATTR_DEVICE_FORM_FACTOR), ACL_DEVICE_FORM_FACTOR_POD);
	sys_eq(missing(15), 1);
	for (i = 0; i < 16; i++) {
		seen[i] = info(i, ACL_DEV_ATTR_SUPER_POD_DEVICE_ID);
		for (j = 0; j < i; j++)
			sys_true(seen[i] != seen[j], "pod number %lld twice", (long long)seen[i]);
	}
	sys_true(topo(0, 7) == topo(0, 8), "Unified Bus is one bit");
	off_machine();
}

static void machines(void **state)
{
	(void)state;
	sys_user_only("there is one machine");
	run_child(a2);
	run_child(a3);
	run_child(two_servers);
}

/* Two servers with a network between them, Unified Bus to the host, PCIe between modules. */
static const char own[] =
	"name own\nsoc Ascend950DT_1\ngeneration 950\n"
	"servers 2\ndevices_per_server 2\ndevices_per_module 1\n"
	"hbm 1 GiB\nhbm_mbytes_per_s 1000\ncube_cores 1\nvector_cores 2\nub 192 KiB\nl2 16 MiB\n"
	"engine sdma count 1 submit_ns 1 mbytes_per_s 0\n"
	"link local latency_ns 1 mbytes_per_s 1000\nlink pcie latency_ns 1 mbytes_per_s 1000\n"
	"link ub latency_ns 1 mbytes_per_s 1000\nlink roce latency_ns 1 mbytes_per_s 1000\n"
	"path self local\npath server pcie\npath net roce\npath host ub\n";

static void own_machine(int fd, const void *arg)
{
	aclrtAtomicOperation op = ACL_RT_ATOMIC_OPERATION_DMA_ADD;
	char path[256], board[96], bus[16];
	int32_t status, id;
	uint32_t caps;
	FILE *f;

	(void)fd;
	(void)arg;
	snprintf(path, sizeof(path), "%s/acl-device-%d.txt", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
		 (int)getpid());
	f = fopen(path, "w");
	sys_true(f && fputs(own, f) >= 0 && !fclose(f), "%s cannot be written", path);
	snprintf(board, sizeof(board), "%.64s-own", sys_board());
	setenv("NPUEMU_BOARD", board, 1);
	setenv("NPUEMU_MACHINE", path, 1);
	acl_ok(aclrtSetDevice(0));
	sys_eq(topo(0, 1), ACL_RT_DEVS_TOPOLOGY_PIX);
	sys_eq(topo(0, 2), ACL_RT_DEVS_TOPOLOGY_SYS);
	sys_eq(can_reach(0, 1), 1);
	sys_eq(can_reach(0, 2), 0);
	acl_ok(aclrtDeviceEnablePeerAccess(1, 0));
	acl_fails(aclrtDeviceEnablePeerAccess(2, 0), ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED);
	acl_ok(aclrtDevicePeerAccessStatus(0, 2, &status));
	sys_eq(status, 0);
	/* the other way round than on the shipped ones */
	acl_ok(aclrtDeviceGetP2PAtomicCapabilities(&caps, &op, 1, 0, 1));
	sys_eq(caps, 0);
	acl_ok(aclrtDeviceGetHostAtomicCapabilities(&caps, &op, 1, 0));
	sys_true(caps, "none over Unified Bus");
	sys_eq(info(0, ACL_DEV_ATTR_HD_CONNECT_TYPE), ACL_HOST_DEVICE_CONNECT_TYPE_UB);
	acl_fails(aclrtDeviceGetPCIBusId(0, bus, sizeof(bus)), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	acl_fails(aclrtDeviceGetByPCIBusId("0000:40:00.0", &id), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	unlink(path);
	acl_ok(aclrtResetDevice(0));
	npuemu_board_reset(NULL);
}

static void networked(void **state)
{
	(void)state;
	sys_user_only("there is one machine");
	run_child(own_machine);
}

/* ---- Numbers and names --------------------------------------------------- */

static void visible(int fd, const void *arg)
{
	int32_t id = -1;
	aclrtUuid a, b;
	uint32_t n;
	char bus[16], bus3[16];

	(void)fd;
	(void)arg;
	on_machine("950", "1,3,6");
	acl_ok(aclrtGetDeviceCount(&n));
	sys_eq(n, 3);
	acl_ok(aclrtGetLogicDevIdByUserDevId(1, &id));
	sys_eq(id, 3);
	acl_ok(aclrtGetPhyDevIdByUserDevId(2, &id));
	sys_eq(id, 6);
	acl_ok(aclrtGetUserDevIdByLogicDevId(6, &id));
	sys_eq(id, 2);
	acl_ok(aclrtGetUserDevIdByPhyDevId(1, &id));
	sys_eq(id, 0);
	/* the two with the wrong name */
	acl_ok(aclrtGetPhyDevIdByLogicDevId(1, &id));
	sys_eq(id, 3);
	acl_ok(aclrtGetLogicDevIdByPhyDevId(6, &id));
	sys_eq(id, 2);
	acl_fails(aclrtGetUserDevIdByPhyDevId(2, &id), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtGetLogicDevIdByUserDevId(3, &id), ACL_ERROR_RT_INVALID_DEVICEID);
	/* names are the device's, whatever its number is here */
	sys_eq(info(1, ACL_DEV_ATTR_PHY_CHIP_ID), 3);
	acl_ok(aclrtDeviceGetUuid(1, &a));
	acl_ok(aclrtDeviceGetPCIBusId(1, bus, sizeof(bus)));
	acl_ok(aclFinalize());
	acl_ok(aclrtDeviceGetUuid(1, &b));
	sys_same("uuid", &a, &b, sizeof(a));
	acl_ok(aclrtDeviceGetPCIBusId(0, bus3, sizeof(bus3)));
	sys_true(strcmp(bus, bus3), "%s twice", bus);
	acl_ok(aclrtDeviceGetByPCIBusId(bus, &id));
	sys_eq(id, 1);
	npuemu_board_reset(NULL);
}

static void numbers_visible(void **state)
{
	(void)state;
	sys_user_only("its machine has two devices");
	run_child(visible);
}

typedef aclError (*convert)(const int32_t, int32_t *const);

static void numbers(void **state)
{
	static const convert all[] = {
		aclrtGetLogicDevIdByUserDevId, aclrtGetUserDevIdByLogicDevId,
		aclrtGetLogicDevIdByPhyDevId, aclrtGetPhyDevIdByLogicDevId,
		aclrtGetUserDevIdByPhyDevId, aclrtGetPhyDevIdByUserDevId,
	};
	int32_t id, pid = 0;
	size_t i;

	(void)state;
	for (i = 0; i < 6; i++) {
		id = -1;
		acl_ok(all[i](1, &id));
		sys_eq(id, 1);
		acl_fails(all[i](2, &id), ACL_ERROR_RT_INVALID_DEVICEID);
		acl_fails(all[i](-1, &id), ACL_ERROR_RT_INVALID_DEVICEID);
		acl_fails(all[i](0, NULL), ACL_ERROR_INVALID_PARAM);
	}
	acl_ok(aclrtDeviceGetBareTgid(&pid));
	sys_eq(pid, getpid());
	acl_fails(aclrtDeviceGetBareTgid(NULL), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclrtSetTsDevice(ACL_TS_ID_AIVECTOR));
	acl_ok(aclrtSetTsDevice(ACL_TS_ID_AICORE));
	acl_fails(aclrtSetTsDevice(ACL_TS_ID_RESERVED), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtSetTsDevice((aclrtTsId)-1), ACL_ERROR_INVALID_PARAM);
}

static void say_uuid(int fd, const void *arg)
{
	aclrtUuid u;

	(void)arg;
	acl_ok(aclrtDeviceGetUuid(1, &u));
	sys_put(fd, &u, sizeof(u));
}

static void names(void **state)
{
	static const char *const wrong[] = {
		"", "0000:40:00", "0000:40:00.00", "0000:40:00.0x", "zz", "40:00.0", "0000-40-00.0",
	};
	static const char *const nowhere[] = { "0000:39:00.0", "0001:40:00.0", "0000:40:00.1", "0000:ff:00.0" };
	char bus[2][16], small[12];
	struct sys_child c;
	aclrtUuid u[2], v;
	int32_t id = -1;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		acl_ok(aclrtDeviceGetUuid((int32_t)i, &u[i]));
		memset(bus[i], 'x', sizeof(bus[i]));
		acl_ok(aclrtDeviceGetPCIBusId((int32_t)i, bus[i], 13));
		sys_eq(strlen(bus[i]), 12);
		acl_ok(aclrtDeviceGetByPCIBusId(bus[i], &id));
		sys_eq(id, i);
	}
	sys_true(memcmp(&u[0], &u[1], sizeof(*u)) && strcmp(bus[0], bus[1]),
		 "two devices of one name");
	sys_spawn(&c, say_uuid, "", 1);
	sys_get(c.fd, &v, sizeof(v));
	sys_join(&c);
	sys_same("uuid in another process", &v, &u[1], sizeof(v));
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		acl_fails(aclrtDeviceGetByPCIBusId(wrong[i], &id), ACL_ERROR_RT_PARAM_INVALID);
	for (i = 0; i < sizeof(nowhere) / sizeof(*nowhere); i++)
		acl_fails(aclrtDeviceGetByPCIBusId(nowhere[i], &id), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtDeviceGetByPCIBusId(NULL, &id), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDeviceGetByPCIBusId(bus[0], NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDeviceGetPCIBusId(0, NULL, 13), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDeviceGetPCIBusId(0, small, 12), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtDeviceGetPCIBusId(0, small, -1), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtDeviceGetPCIBusId(2, bus[0], 13), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtDeviceGetUuid(0, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDeviceGetUuid(2, &v), ACL_ERROR_RT_INVALID_DEVICEID);
}

static void status_and_use(void **state)
{
	aclrtUtilizationInfo use;
	aclrtDeviceStatus s;

	(void)state;
	memset(&use, 0x55, sizeof(use));
	acl_ok(aclrtGetDeviceUtilizationRate(1, &use));
	sys_eq(use.cubeUtilization, 0);
	sys_eq(use.vectorUtilization, 0);
	sys_eq(use.aicpuUtilization, 0);
	sys_true(use.memoryUtilization == -1 && !use.utilizationExtend, "memory");
	acl_ok(aclrtQueryDeviceStatus(1, &s));
	sys_eq(s, ACL_RT_DEVICE_STATUS_NORMAL);
	acl_fails(aclrtQueryDeviceStatus(2, &s), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtQueryDeviceStatus(0, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtGetDeviceUtilizationRate(-1, &use), ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtGetDeviceUtilizationRate(0, NULL), ACL_ERROR_INVALID_PARAM);
}

static void lost(int fd, const void *arg)
{
	aclrtDeviceStatus s;

	(void)fd;
	(void)arg;
	on_machine("small", NULL);
	acl_ok(aclrtQueryDeviceStatus(0, &s));
	sys_eq(s, ACL_RT_DEVICE_STATUS_NORMAL);
	sys_rc(npuemu_board_reset(NULL));
	acl_ok(aclrtQueryDeviceStatus(0, &s));
	sys_eq(s, ACL_RT_DEVICE_STATUS_ABNORMAL);
}

static void status_lost(void **state)
{
	(void)state;
	sys_user_only("its board is for all tests");
	run_child(lost);
}

static void architectures(void **state)
{
	static const struct {
		const char *soc;
		int32_t can;
	} t[] = {
		{ "Ascend950PR_9589", 1 }, { "Ascend950DT_957b", 1 }, { "Ascend910B1", 0 },
		{ "Ascend910_9391", 0 }, { "Ascend910A", 0 }, { "Ascend310P3", 0 },
	};
	int32_t can;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		can = -1;
		acl_ok(aclrtCheckArchCompatibility(t[i].soc, &can));
		sys_true(can == t[i].can, "%s: %d", t[i].soc, can);
	}
	acl_fails(aclrtCheckArchCompatibility("H100", &can), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtCheckArchCompatibility("", &can), ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtCheckArchCompatibility(NULL, &can), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtCheckArchCompatibility("Ascend910B1", NULL), ACL_ERROR_INVALID_PARAM);
}

static void atomics(void **state)
{
	aclrtAtomicOperation op = ACL_RT_ATOMIC_OPERATION_DMA_ADD, none = (aclrtAtomicOperation)13;
	uint32_t caps = 77;

	(void)state;
	acl_ok(aclrtDeviceGetP2PAtomicCapabilities(&caps, &op, 1, 0, 1));
	sys_true(caps & ACL_RT_ATOMIC_CAPABILITY_SCALAR32, "%#x", caps);
	acl_ok(aclrtDeviceGetHostAtomicCapabilities(&caps, &op, 1, 1));
	sys_eq(caps, 0);
	acl_fails(aclrtDeviceGetP2PAtomicCapabilities(&caps, &op, 1, 0, 0),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtDeviceGetP2PAtomicCapabilities(&caps, &op, 1, 0, 2),
		  ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtDeviceGetP2PAtomicCapabilities(&caps, &op, 1, 2, 0),
		  ACL_ERROR_RT_INVALID_DEVICEID);
	acl_fails(aclrtDeviceGetP2PAtomicCapabilities(NULL, &op, 1, 0, 1), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDeviceGetP2PAtomicCapabilities(&caps, NULL, 1, 0, 1),
		  ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDeviceGetP2PAtomicCapabilities(&caps, &op, 0, 0, 1),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtDeviceGetP2PAtomicCapabilities(&caps, &none, 1, 0, 1),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtDeviceGetHostAtomicCapabilities(NULL, &op, 1, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDeviceGetHostAtomicCapabilities(&caps, NULL, 1, 0), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclrtDeviceGetHostAtomicCapabilities(&caps, &none, 1, 0),
		  ACL_ERROR_RT_PARAM_INVALID);
	acl_fails(aclrtDeviceGetHostAtomicCapabilities(&caps, &op, 1, 2),
		  ACL_ERROR_RT_INVALID_DEVICEID);
}

/* ---- All of them --------------------------------------------------------- */

static int begin(void **state)
{
	(void)state;
	acl_ok(aclInit(NULL));
	acl_ok(aclrtSetDevice(0));
	return 0;
}

static int end(void **state)
{
	(void)state;
	acl_ok(aclFinalize());
	return 0;
}

#define acl_board_test(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		acl_board_test(attributes_here),
		acl_board_test(bad_attributes),
		cmocka_unit_test(machines),
		cmocka_unit_test(networked),
		acl_board_test(numbers),
		cmocka_unit_test(numbers_visible),
		acl_board_test(names),
		acl_board_test(status_and_use),
		cmocka_unit_test(status_lost),
		acl_board_test(architectures),
		acl_board_test(atomics),
	};

	sys_start();
	return cmocka_run_group_tests(tests, sys_setup, sys_teardown_reset);
}
