// SPDX-License-Identifier: MIT
/*
 * Which device is meant: the numbers, names and addresses of devices, whether they
 * live, and how busy they are.
 *
 * The user's number is what aclrtSetDevice takes: an index into the visible devices.
 * The logic number counts what the process may see at all, and so does the physical
 * one outside a container: both are the device's place on the board.
 */
#include <stdio.h>
#include <unistd.h>
#include "devinfo.h"

/* ---- Numbers ------------------------------------------------------------------------ */

/* The user's number into the board's. */
static aclError to_phys(const char *what, s32 user, s32 *phys)
{
	struct npuacl_device *d;
	aclError ret;

	if (!phys)
		return npuacl_null(what, "the device number to be filled in");
	ret = npuacl_device(user, &d);
	if (!ret)
		*phys = (s32)d->phys;
	return ret;
}

static aclError to_user(const char *what, s32 phys, s32 *user)
{
	aclError ret;
	u32 i;

	if (!user)
		return npuacl_null(what, "the device number to be filled in");
	ret = npuacl_open();
	if (ret)
		return ret;
	for (i = 0; i < npuacl.devices; i++)
		if ((s32)npuacl.dev[i].phys == phys) {
			*user = (s32)i;
			return ACL_SUCCESS;
		}
	return npuacl_fail(ACL_ERROR_RT_INVALID_DEVICEID,
			   "%s: device %d is not one of the board's %u, or not visible (ASCEND_RT_VISIBLE_DEVICES)",
			   what, phys, npuacl.info.devices);
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t *const logicDevId)
{
	return to_phys("aclrtGetLogicDevIdByUserDevId", userDevid, logicDevId);
}

aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t *const userDevid)
{
	return to_user("aclrtGetUserDevIdByLogicDevId", logicDevId, userDevid);
}

aclError aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId, int32_t *const userDevId)
{
	return to_user("aclrtGetUserDevIdByPhyDevId", phyDevId, userDevId);
}

aclError aclrtGetPhyDevIdByUserDevId(const int32_t userDevId, int32_t *const phyDevId)
{
	return to_phys("aclrtGetPhyDevIdByUserDevId", userDevId, phyDevId);
}

/* In these two "logic" is a mistake of old that stays: they take and give the user's. */
aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t *const logicDevId)
{
	return to_user("aclrtGetLogicDevIdByPhyDevId", phyDevId, logicDevId);
}

aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t *const phyDevId)
{
	return to_phys("aclrtGetPhyDevIdByLogicDevId", logicDevId, phyDevId);
}

aclError aclrtDeviceGetBareTgid(int32_t *pid)
{
	if (!pid)
		return npuacl_null("aclrtDeviceGetBareTgid", "pid");
	*pid = (s32)getpid();
	return ACL_SUCCESS;
}

aclError aclrtSetTsDevice(aclrtTsId tsId)
{
	if (tsId != ACL_TS_ID_AICORE && tsId != ACL_TS_ID_AIVECTOR)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM,
				   "aclrtSetTsDevice: task scheduler %d; 0 (AI core) or 1 (vector core)",
				   (int)tsId);
	/* one scheduler takes all tasks: then the choice has no effect, by definition */
	return ACL_SUCCESS;
}

/* ---- Names --------------------------------------------------------------------------- */

static u64 hash(u64 h, const void *data, size_t n)
{
	const u8 *p = data;

	while (n--)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h ^ h >> 29;
}

/* The same to all processes of a board, and another one on another board. */
aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid)
{
	struct npuacl_device *d;
	u8 b[sizeof(*uuid)];
	aclError ret;
	u64 h;
	u32 i;

	if (!uuid)
		return npuacl_null("aclrtDeviceGetUuid", "uuid");
	ret = npuacl_device(deviceId, &d);
	if (ret)
		return ret;
	for (i = 0; i < 2; i++) {
		h = hash(0xcbf29ce484222325ull + i, npuacl.info.host, strlen(npuacl.info.host));
		h = hash(h, npuacl.info.board, strlen(npuacl.info.board));
		h = hash(h, npuacl.info.machine, strlen(npuacl.info.machine));
		h = hash(h, &d->phys, sizeof(d->phys));
		memcpy(b + 8 * i, &h, 8);
	}
	b[6] = (b[6] & 0x0f) | 0x80;	/* version 8: made up by its own rules */
	b[8] = (b[8] & 0x3f) | 0x80;
	memcpy(uuid->bytes, b, sizeof(b));
	return ACL_SUCCESS;
}

#define BUS_ID_BYTES	13	/* "0000:3d:00.0" */
#define FIRST_BUS	0x40	/* and one more a device */

/* Devices have a bus where the machine's link to the host is PCIe. */
static aclError check_pcie(const char *what)
{
	const struct npuemu_machine *m;
	aclError ret = npuacl_machine(what, &m);

	if (!ret && strncmp(m->link[m->link_host].name, "pcie", 4))
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "%s: devices of a %s are not on PCIe, their link to the host is %s",
				   what, m->name, m->link[m->link_host].name);
	return ret;
}

aclError aclrtDeviceGetPCIBusId(int32_t deviceId, char *pciBusId, int32_t len)
{
	struct npuacl_device *d;
	aclError ret;

	if (!pciBusId)
		return npuacl_null("aclrtDeviceGetPCIBusId", "pciBusId");
	if (len < BUS_ID_BYTES)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtDeviceGetPCIBusId: len is %d, but %d bytes are needed",
				   len, BUS_ID_BYTES);
	ret = npuacl_device(deviceId, &d);
	if (!ret)
		ret = check_pcie("aclrtDeviceGetPCIBusId");
	if (!ret)
		snprintf(pciBusId, (size_t)len, "0000:%02x:00.0", FIRST_BUS + d->phys);
	return ret;
}

aclError aclrtDeviceGetByPCIBusId(const char *pciBusId, int32_t *deviceId)
{
	static const char what[] = "aclrtDeviceGetByPCIBusId";
	u32 domain, bus, device, function;
	aclError ret;
	int end = 0;

	if (!pciBusId)
		return npuacl_null(what, "pciBusId");
	if (!deviceId)
		return npuacl_null(what, "deviceId");
	if (sscanf(pciBusId, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) != 4 ||
	    end != BUS_ID_BYTES - 1 || pciBusId[end])
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: \"%.32s\" does not look like domain:bus:device.function, 0000:3d:00.0 say",
				   what, pciBusId);
	ret = check_pcie(what);
	if (ret)
		return ret;
	if (domain || device || function || bus < FIRST_BUS)
		return npuacl_fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: there is no device at %s",
				   what, pciBusId);
	return to_user(what, (s32)(bus - FIRST_BUS), deviceId);
}

/* ---- Alive, and busy ------------------------------------------------------------------- */

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus)
{
	struct npuemu_device_info info = { .size = sizeof(info) };
	struct npuacl_device *d;
	aclError ret;

	if (!deviceStatus)
		return npuacl_null("aclrtQueryDeviceStatus", "deviceStatus");
	ret = npuacl_device(deviceId, &d);
	if (ret)
		return ret;
	/* it fails where the board was reset or the device unplugged: that is the answer */
	*deviceStatus = npuemu_device_query(npuacl.board, d->phys, &info) ?
		ACL_RT_DEVICE_STATUS_ABNORMAL : ACL_RT_DEVICE_STATUS_NORMAL;
	return ACL_SUCCESS;
}

/* Cores are idle as long as there are no kernels; memory is -1 as in the real runtime. */
aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilizationInfo)
{
	const struct npuemu_machine *m;
	struct npuacl_device *d;
	aclError ret;

	if (!utilizationInfo)
		return npuacl_null("aclrtGetDeviceUtilizationRate", "utilizationInfo");
	ret = npuacl_device(deviceId, &d);
	if (!ret)
		ret = npuacl_machine("aclrtGetDeviceUtilizationRate", &m);
	if (ret)
		return ret;
	memset(utilizationInfo, 0, sizeof(*utilizationInfo));
	if (!m->vector_cores)
		utilizationInfo->vectorUtilization = -1;
	utilizationInfo->memoryUtilization = -1;
	return ACL_SUCCESS;
}
