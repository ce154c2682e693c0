// SPDX-License-Identifier: MIT
/*
 * What devices are: attributes, cores, capabilities, how two of them are
 * connected.  The numbers come from the machine's description and the board.
 */
#include <stdlib.h>
#include "devinfo.h"

/* ---- The machine's description ------------------------------------------------------ */

/* Is it the one that the board was made from, as far as the board tells? */
static bool fits(const struct npuemu_machine *m)
{
	return !strcmp(m->name, npuacl.info.machine) && !strcmp(m->soc, npuacl.info.soc) &&
	       m->generation == npuacl.info.generation && m->devices == npuacl.info.devices &&
	       m->servers == npuacl.info.servers;
}

aclError npuacl_machine(const char *what, const struct npuemu_machine **out)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct npuemu_machine m;
	const char *given = npuemu_getenv("NPUEMU_MACHINE");
	aclError ret = npuacl_open();
	bool found;

	if (ret)
		return ret;
	pthread_mutex_lock(&lock);
	found = fits(&m) || (given && !npuemu_machine_load(given, &m) && fits(&m)) ||
		(!npuemu_machine_load(npuacl.info.machine, &m) && fits(&m));
	pthread_mutex_unlock(&lock);
	if (!found)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "%s: this process cannot find the description of machine \"%s\" that the board was made from: set NPUEMU_MACHINE to its path",
				   what, npuacl.info.machine);
	*out = &m;
	return ACL_SUCCESS;
}

aclError npuacl_device_in_use(const char *what, s32 id, struct npuacl_device **out)
{
	aclError ret = npuacl_device(id, out);

	if (!ret && !READ_ONCE((*out)->contexts))
		return npuacl_fail(ACL_ERROR_RT_CONTEXT_NULL,
				   "%s: nobody in this process uses device %d: aclrtSetDevice comes first",
				   what, id);
	return ret;
}

aclError npuacl_cores(const char *what, aclrtDevResLimitType type, u32 *n)
{
	const struct npuemu_machine *m;
	aclError ret;

	if (type != ACL_RT_DEV_RES_CUBE_CORE && type != ACL_RT_DEV_RES_VECTOR_CORE)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: resource type %d; 0 (cube cores) or 1 (vector cores)",
				   what, (int)type);
	ret = npuacl_machine(what, &m);
	if (!ret)
		*n = type == ACL_RT_DEV_RES_CUBE_CORE ? m->cube_cores : m->vector_cores;
	return ret;
}

/* ---- Attributes --------------------------------------------------------------------- */

/* Where an attribute comes from. */
enum source {
	CONSTANT = 1,	/* @value, on each machine */
	SIMT,		/* @value where there is SIMT, else 0 */
	UB,		/* bytes of unified buffer where there is SIMT, else 0 */
	CUBE, VECTOR, HBM, L2, SERVER, CHIP, POD_DEVICE, HOST_LINK, FORM, PRIVILEGE, ARCH,
};

/*
 * Constants.  AI CPUs: ai_cpu_cnt of the platform_config files of all three generations.
 * SIMT: 64 warps of 32 threads in a vector core, a block as large as that, grids up to
 * 65535, as the open runtime reports of a 950.
 */
static const struct {
	aclrtDevAttr attr;
	enum source source;
	s64 value;
} attributes[] = {
	{ ACL_DEV_ATTR_AICPU_CORE_NUM, CONSTANT, 6 },
	{ ACL_DEV_ATTR_AICORE_CORE_NUM, CUBE, 0 },
	{ ACL_DEV_ATTR_CUBE_CORE_NUM, CUBE, 0 },
	{ ACL_DEV_ATTR_VECTOR_CORE_NUM, VECTOR, 0 },
	{ ACL_DEV_ATTR_WARP_SIZE, SIMT, 32 },
	{ ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE, SIMT, 2048 },
	{ ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE, UB, 0 },
	{ ACL_DEV_ATTR_MAX_GRID_DIM_X, SIMT, 65535 },
	{ ACL_DEV_ATTR_MAX_GRID_DIM_Y, SIMT, 65535 },
	{ ACL_DEV_ATTR_MAX_GRID_DIM_Z, SIMT, 65535 },
	{ ACL_DEV_ATTR_MAX_BLOCK_PER_GRID, SIMT, 65535 },
	{ ACL_DEV_ATTR_MAX_THREADS_PER_BLOCK, SIMT, 2048 },
	{ ACL_DEV_ATTR_MAX_BLOCK_DIM_X, SIMT, 2048 },
	{ ACL_DEV_ATTR_MAX_BLOCK_DIM_Y, SIMT, 2048 },
	{ ACL_DEV_ATTR_MAX_BLOCK_DIM_Z, SIMT, 2048 },
	{ ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, HBM, 0 },
	{ ACL_DEV_ATTR_L2_CACHE_SIZE, L2, 0 },
	{ ACL_DEV_ATTR_SMP_ID, SERVER, 0 },
	{ ACL_DEV_ATTR_PHY_CHIP_ID, CHIP, 0 },
	{ ACL_DEV_ATTR_SUPER_POD_DEVICE_ID, POD_DEVICE, 0 },
	{ ACL_DEV_ATTR_SUPER_POD_SERVER_ID, SERVER, 0 },
	{ ACL_DEV_ATTR_SUPER_POD_ID, CONSTANT, 0 },	/* a board is one pod */
	{ ACL_DEV_ATTR_CUST_OP_PRIVILEGE, PRIVILEGE, 0 },
	{ ACL_DEV_ATTR_MAINBOARD_ID, CONSTANT, 0 },	/* there is no mainboard */
	{ ACL_DEV_ATTR_HD_CONNECT_TYPE, HOST_LINK, 0 },
	{ ACL_DEV_ATTR_DEVICE_FORM_FACTOR, FORM, 0 },
	{ ACL_DEV_ATTR_IS_VIRTUAL, CONSTANT, 0 },	/* a whole device, no slice of one */
	{ ACL_DEV_ATTR_NPU_ARCH, ARCH, 0 },
};

/* The fields of such a number: server, chip in the server, die in the chip, device. */
static s64 pod_device(const struct npuemu_machine *m, u32 phys)
{
	u32 in_server = phys % m->devices_per_server;

	return (s64)(phys / m->devices_per_server) << 22 |
	       (in_server / m->devices_per_module & 0xf) << 18 |
	       (in_server % m->devices_per_module & 0x3) << 16 | phys;
}

static s64 host_link(const struct npuemu_machine *m)
{
	const char *name = m->link[m->link_host].name;

	if (!strncmp(name, "hccs", 4))
		return ACL_HOST_DEVICE_CONNECT_TYPE_HCCS;
	return strncmp(name, "ub", 2) ? ACL_HOST_DEVICE_CONNECT_TYPE_PCIE :
		ACL_HOST_DEVICE_CONNECT_TYPE_UB;
}

static s64 form_factor(const struct npuemu_machine *m)
{
	if (m->servers > 1)
		return ACL_DEVICE_FORM_FACTOR_POD;
#ifdef __aarch64__
	return ACL_DEVICE_FORM_FACTOR_A_K;
#else
	return ACL_DEVICE_FORM_FACTOR_A_X;
#endif
}

static s64 arch(const struct npuemu_machine *m)
{
	return m->generation >= NPUACL_GENERATION_SIMT ? 3510 : 2201;
}

/* Some attributes exist on one generation only. */
static bool has(const struct npuemu_machine *m, enum source source)
{
	bool newer = m->generation >= NPUACL_GENERATION_SIMT;

	if (source == HOST_LINK || source == FORM)
		return newer;
	return source != PRIVILEGE || !newer;
}

static s64 attribute(const struct npuemu_machine *m, u32 phys, u32 i)
{
	bool simt = m->generation >= NPUACL_GENERATION_SIMT;

	switch (attributes[i].source) {
	case SIMT:
		return simt ? attributes[i].value : 0;
	case UB:
		return simt ? m->ub_bytes : 0;
	case CUBE:
		return m->cube_cores;
	case VECTOR:
		return m->vector_cores;
	case HBM:
		return (s64)m->hbm_bytes;
	case L2:
		return m->l2_bytes;
	case SERVER:
		return phys / m->devices_per_server;
	case CHIP:
		return phys % m->devices_per_server / m->devices_per_module;
	case POD_DEVICE:
		return pod_device(m, phys);
	case HOST_LINK:
		return host_link(m);
	case FORM:
		return form_factor(m);
	case ARCH:
		return arch(m);
	default:
		return attributes[i].value;
	}
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value)
{
	const struct npuemu_machine *m;
	struct npuacl_device *d;
	aclError ret;
	u32 i;

	if (!value)
		return npuacl_null("aclrtGetDeviceInfo", "value");
	ret = npuacl_device((s32)deviceId, &d);
	if (ret)
		return ret;
	for (i = 0; i < ARRAY_SIZE(attributes) && attributes[i].attr != attr; i++)
		;
	if (i == ARRAY_SIZE(attributes))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtGetDeviceInfo: there is no attribute %d",
				   (int)attr);
	ret = npuacl_machine("aclrtGetDeviceInfo", &m);
	if (ret)
		return ret;
	if (!has(m, attributes[i].source))
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclrtGetDeviceInfo: a %s has no attribute %d",
				   m->soc, (int)attr);
	*value = attribute(m, d->phys, i);
	return ACL_SUCCESS;
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t *value)
{
	const struct npuemu_machine *m;
	struct npuacl_device *d;
	aclError ret;

	if (!value)
		return npuacl_null("aclGetDeviceCapability", "value");
	ret = npuacl_device((s32)deviceId, &d);
	if (!ret)
		ret = npuacl_machine("aclGetDeviceCapability", &m);
	if (ret)
		return ret;
	switch (deviceInfo) {
	case ACL_DEVICE_INFO_AI_CORE_NUM:
		*value = m->cube_cores;
		return ACL_SUCCESS;
	case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
		*value = m->vector_cores;
		return ACL_SUCCESS;
	case ACL_DEVICE_INFO_L2_SIZE:
		*value = m->l2_bytes;
		return ACL_SUCCESS;
	default:
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclGetDeviceCapability: there is no device info %d; 0 to 2",
				   (int)deviceInfo);
	}
}

/* ---- Features ------------------------------------------------------------------------ */

/* Neither kernels to change in a queue, nor queues of messages between devices. */
aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType,
				  int32_t *value)
{
	struct npuacl_device *d;
	aclError ret;

	if (!value)
		return npuacl_null("aclrtGetDeviceCapability", "value");
	ret = npuacl_device(deviceId, &d);
	if (ret)
		return ret;
	if (devFeatureType != ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV &&
	    devFeatureType != ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtGetDeviceCapability: there is no feature %d",
				   (int)devFeatureType);
	*value = ACL_DEV_FEATURE_NOT_SUPPORT;
	return ACL_SUCCESS;
}

/* The longest prefix decides: Ascend910B and Ascend910_93 are not the old Ascend910. */
static s64 arch_of(const char *soc)
{
	static const struct {
		const char *prefix;
		s64 arch;
	} known[] = {
		{ "Ascend950", 3510 }, { "Ascend910_93", 2201 }, { "Ascend910B", 2201 },
		{ "Ascend910", 1001 }, { "Ascend310B", 3002 }, { "Ascend310P", 2002 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (!strncmp(soc, known[i].prefix, strlen(known[i].prefix)))
			return known[i].arch;
	return 0;
}

aclError aclrtCheckArchCompatibility(const char *socVersion, int32_t *canCompatible)
{
	const char *here;

	if (!socVersion)
		return npuacl_null("aclrtCheckArchCompatibility", "socVersion");
	if (!canCompatible)
		return npuacl_null("aclrtCheckArchCompatibility", "canCompatible");
	if (!arch_of(socVersion))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "aclrtCheckArchCompatibility: \"%.64s\" is not the name of a known SoC (Ascend950..., Ascend910B..., ...)",
				   socVersion);
	here = aclrtGetSocName();
	if (!here)
		return npuacl_self.last;
	*canCompatible = arch_of(here) == arch_of(socVersion);
	return ACL_SUCCESS;
}

/* ---- Between two devices --------------------------------------------------------------- */

aclError npuacl_topology(const char *what, struct npuacl_device *a, struct npuacl_device *b,
			 u64 *bit)
{
	const struct npuemu_link_class *link;
	const struct npuemu_machine *m;
	aclError ret = npuacl_machine(what, &m);

	if (ret)
		return ret;
	link = npuemu_machine_link(m, a->phys, b->phys);
	if (a == b || !strncmp(link->name, "sio", 3))
		*bit = ACL_RT_DEVS_TOPOLOGY_SIO;
	else if (!strncmp(link->name, "hccs", 4))	/* wires of each pair's own, or a switch */
		*bit = link->pair_mbytes_per_s < link->mbytes_per_s ? ACL_RT_DEVS_TOPOLOGY_HCCS :
			ACL_RT_DEVS_TOPOLOGY_HCCS_SW;
	else if (!strncmp(link->name, "ub", 2))
		*bit = NPUACL_TOPOLOGY_UB;
	else if (!strncmp(link->name, "pcie", 4))
		*bit = ACL_RT_DEVS_TOPOLOGY_PIX;
	else						/* a network: as far as it can be */
		*bit = ACL_RT_DEVS_TOPOLOGY_SYS;
	return ACL_SUCCESS;
}

bool npuacl_topology_is_memory(u64 bit)
{
	return bit != ACL_RT_DEVS_TOPOLOGY_SYS;
}

aclError aclrtGetDevicesTopo(uint32_t deviceId, uint32_t otherDeviceId, uint64_t *value)
{
	struct npuacl_device *a, *b;
	aclError ret;

	if (!value)
		return npuacl_null("aclrtGetDevicesTopo", "value");
	ret = npuacl_device((s32)deviceId, &a);
	if (!ret)
		ret = npuacl_device((s32)otherDeviceId, &b);
	if (ret)
		return ret;
	return npuacl_topology("aclrtGetDevicesTopo", a, b, value);
}

/* What the movers of a device can do without being disturbed: see lib/acl/reduce.c. */
#define DMA_CAN	(ACL_RT_ATOMIC_CAPABILITY_SIGNED | ACL_RT_ATOMIC_CAPABILITY_SCALAR8 | \
		 ACL_RT_ATOMIC_CAPABILITY_SCALAR16 | ACL_RT_ATOMIC_CAPABILITY_SCALAR32)

static bool is_atomic(int op)
{
	static const int ranges[][2] = {
		{ ACL_RT_ATOMIC_OPERATION_INTEGER_ADD, ACL_RT_ATOMIC_OPERATION_FLOAT_MAX },
		{ ACL_RT_ATOMIC_OPERATION_DMA_ADD, ACL_RT_ATOMIC_OPERATION_DMA_MAX },
		{ ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_ADD, ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_EXCH },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ranges); i++)
		if (op >= ranges[i][0] && op <= ranges[i][1])
			return true;
	return false;
}

static aclError check_atomics(const char *what, const u32 *can, const aclrtAtomicOperation *ops,
			      u32 n)
{
	u32 i;

	if (!can)
		return npuacl_null(what, "capabilities");
	if (!ops)
		return npuacl_null(what, "operations");
	if (!n)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: count is 0", what);
	for (i = 0; i < n; i++)
		if (!is_atomic((int)ops[i]))
			return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: operations[%u] is %d, which is none",
					   what, i, (int)ops[i]);
	return ACL_SUCCESS;
}

/* Those of kernels come with kernels. */
static void fill_atomics(u32 *can, const aclrtAtomicOperation *ops, u32 n, bool reach)
{
	u32 i;

	for (i = 0; i < n; i++)
		can[i] = reach && ops[i] >= ACL_RT_ATOMIC_OPERATION_DMA_ADD &&
			 ops[i] <= ACL_RT_ATOMIC_OPERATION_DMA_MAX ? DMA_CAN : 0;
}

aclError aclrtDeviceGetHostAtomicCapabilities(uint32_t *capabilities,
					      const aclrtAtomicOperation *operations,
					      const uint32_t count, int32_t deviceId)
{
	static const char what[] = "aclrtDeviceGetHostAtomicCapabilities";
	const struct npuemu_machine *m;
	struct npuacl_device *d;
	aclError ret = check_atomics(what, capabilities, operations, count);

	if (!ret)
		ret = npuacl_device(deviceId, &d);
	if (!ret)
		ret = npuacl_machine(what, &m);
	if (!ret)	/* over PCIe nothing is atomic */
		fill_atomics(capabilities, operations, count,
			     host_link(m) == ACL_HOST_DEVICE_CONNECT_TYPE_UB);
	return ret;
}

aclError aclrtDeviceGetP2PAtomicCapabilities(uint32_t *capabilities,
					     const aclrtAtomicOperation *operations,
					     const uint32_t count, int32_t srcDeviceId,
					     int32_t dstDeviceId)
{
	static const char what[] = "aclrtDeviceGetP2PAtomicCapabilities";
	struct npuacl_device *a = NULL, *b = NULL;
	aclError ret = check_atomics(what, capabilities, operations, count);
	u64 bit;

	if (!ret)
		ret = npuacl_device(srcDeviceId, &a);
	if (!ret)
		ret = npuacl_device(dstDeviceId, &b);
	if (!ret && a == b)
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: both devices are %d",
				  what, srcDeviceId);
	if (!ret)
		ret = npuacl_topology(what, a, b, &bit);
	if (!ret)
		fill_atomics(capabilities, operations, count,
			     bit != ACL_RT_DEVS_TOPOLOGY_PIX && bit != ACL_RT_DEVS_TOPOLOGY_SYS);
	return ret;
}
