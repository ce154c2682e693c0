// SPDX-License-Identifier: MIT
/*
 * Versions of packages, and what this installation can do.  A package's version is
 * in share/info/PACKAGE/version.info below ASCEND_HOME_PATH, where there is one; else
 * the packages that npuemu stands for have that of the interface it follows.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "devinfo.h"

/* The release of the runtime package whose headers are version 1.17 of the ACL runtime. */
#define INTERFACE_RELEASE	"9.1.0"

static const char *const ours[] = { "cann", "runtime", "npu-runtime", "toolkit" };

/* Weights of a version's parts, as programs compare the sums. */
#define WEIGHT_MAJOR	10000000
#define WEIGHT_MINOR	100000
#define WEIGHT_PATCH	1000

static const struct {
	const char *word;
	s32 below;		/* the release that it comes before */
} stages[] = {
	{ "alpha", 300 }, { "beta", 200 }, { "rc", 100 },
};

/* The value of "version=" in a file, whatever its case; false: none there. */
static bool read_info(const char *path, char *out, size_t room)
{
	static const char key[] = "version=";
	FILE *f = fopen(path, "re");
	char line[512];
	bool found = false;
	size_t n;

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		if (strncasecmp(line, key, sizeof(key) - 1))
			continue;
		n = strcspn(line + sizeof(key) - 1, "\r\n");
		line[sizeof(key) - 1 + n] = 0;
		found = n && n < room;
		if (found)
			memcpy(out, line + sizeof(key) - 1, n + 1);
	}
	fclose(f);
	return found;
}

static bool from_home(const char *package, char *out, size_t room)
{
	const char *home = npuemu_getenv("ASCEND_HOME_PATH");
	char path[PATH_MAX], name[64], *c;
	int i;

	snprintf(name, sizeof(name), "%s", package);
	for (i = 0; home && i < 2; i++) {
		if (snprintf(path, sizeof(path), "%s/share/info/%s/version.info", home, name) <
		    (int)sizeof(path) && read_info(path, out, room))
			return true;
		for (c = name; *c; c++)	/* ops-x is also spelled ops_x */
			if (*c == '-')
				*c = '_';
	}
	return false;
}

static aclError find_version(const char *what, const char *package, char *out, size_t room)
{
	size_t i;

	if (!*package || strlen(package) > 63 || strchr(package, '/') || *package == '.')
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: \"%.64s\" is not the name of a package",
				   what, package);
	if (from_home(package, out, room))
		return ACL_SUCCESS;
	for (i = 0; i < ARRAY_SIZE(ours); i++)
		if (!strcmp(package, ours[i])) {
			snprintf(out, room, "%s", INTERFACE_RELEASE);
			return ACL_SUCCESS;
		}
	return npuacl_fail(ACL_ERROR_INVALID_FILE,
			   "%s: package \"%s\" is not installed: there is no share/info/%s/version.info below ASCEND_HOME_PATH (%s)",
			   what, package, package, npuemu_getenv("ASCEND_HOME_PATH") ? : "not set");
}

aclError aclsysGetVersionStr(char *pkgName, char *versionStr)
{
	if (!pkgName)
		return npuacl_null("aclsysGetVersionStr", "pkgName");
	if (!versionStr)
		return npuacl_null("aclsysGetVersionStr", "versionStr");
	return find_version("aclsysGetVersionStr", pkgName, versionStr, ACL_PKG_VERSION_MAX_SIZE);
}

/* A decimal number at *@p, which moves behind it. */
static bool number(const char **p, s32 most, s32 *out)
{
	char *end;
	long v;

	if (!isdigit((unsigned char)**p))
		return false;
	v = strtol(*p, &end, 10);
	*p = end;
	*out = (s32)v;
	return v <= most;
}

/* "9.1.0", "9.1.0-beta.2", "9.1.0.rc1" */
static bool weigh(const char *p, s32 *sum)
{
	s32 major, minor, patch, n = 0;
	size_t i, len;

	if (!number(&p, 200, &major) || *p++ != '.' || !number(&p, 99, &minor) || *p++ != '.' ||
	    !number(&p, 99, &patch))
		return false;
	*sum = major * WEIGHT_MAJOR + minor * WEIGHT_MINOR + patch * WEIGHT_PATCH;
	if (!*p)
		return true;
	p += *p == '-' || *p == '.';
	for (i = 0; i < ARRAY_SIZE(stages); i++) {
		len = strlen(stages[i].word);
		if (strncasecmp(p, stages[i].word, len))
			continue;
		p += len;
		p += *p == '-' || *p == '.';
		if (*p && (!number(&p, 99, &n) || *p))
			return false;
		*sum += n - stages[i].below;
		return true;
	}
	return false;
}

aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum)
{
	char text[ACL_PKG_VERSION_MAX_SIZE];
	aclError ret;
	s32 sum;

	if (!pkgName)
		return npuacl_null("aclsysGetVersionNum", "pkgName");
	if (!versionNum)
		return npuacl_null("aclsysGetVersionNum", "versionNum");
	ret = find_version("aclsysGetVersionNum", pkgName, text, sizeof(text));
	if (ret)
		return ret;
	if (!weigh(text, &sum))
		return npuacl_fail(ACL_ERROR_INTERNAL_ERROR,
				   "aclsysGetVersionNum: \"%s\", the version of %s, is not MAJOR.MINOR.PATCH[-alpha.N|-beta.N|-rc.N]",
				   text, pkgName);
	*versionNum = sum;
	return ACL_SUCCESS;
}

/* The next part, up to a dot; "0" if there is none. */
static const char *part(const char *p, char *out)
{
	size_t n = strcspn(p, ".");

	if (n >= ACL_PKG_VERSION_PARTS_MAX_SIZE)
		n = ACL_PKG_VERSION_PARTS_MAX_SIZE - 1;
	memcpy(out, n ? p : "0", n ? n : 1);
	out[n ? n : 1] = 0;
	p += strcspn(p, ".");
	return *p ? p + 1 : p;
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version)
{
	static const char *const packages[] = {
		[ACL_PKG_NAME_CANN] = "cann",
		[ACL_PKG_NAME_RUNTIME] = "runtime",
		[ACL_PKG_NAME_COMPILER] = "compiler",
		[ACL_PKG_NAME_HCCL] = "hccl",
		[ACL_PKG_NAME_TOOLKIT] = "toolkit",
		[ACL_PKG_NAME_OPP] = "opp",
		[ACL_PKG_NAME_OPP_KERNEL] = "opp_kernel",
		[ACL_PKG_NAME_DRIVER] = "driver",
	};
	aclCANNPackageVersion v = { 0 };
	const char *p;
	aclError ret;

	if (!version)
		return npuacl_null("aclsysGetCANNVersion", "version");
	if ((u32)name >= ARRAY_SIZE(packages))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclsysGetCANNVersion: there is no package %d; 0 to %zu",
				   (int)name, ARRAY_SIZE(packages) - 1);
	ret = find_version("aclsysGetCANNVersion", packages[name], v.version, sizeof(v.version));
	if (ret)
		return ret;
	p = part(v.version, v.majorVersion);
	p = part(p, v.minorVersion);
	p = part(p, v.releaseVersion);
	part(p, v.patchVersion);
	*version = v;
	return ACL_SUCCESS;
}

/* ---- What the installation can do ----------------------------------------------------- */

/* Reductions keep infinities and NaNs, and know bf16; operators there are none to compile. */
static const aclCannAttr can[] = { ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16 };

aclError aclGetCannAttributeList(const aclCannAttr **cannAttrList, size_t *num)
{
	if (!cannAttrList)
		return npuacl_null("aclGetCannAttributeList", "cannAttrList");
	if (!num)
		return npuacl_null("aclGetCannAttributeList", "num");
	*cannAttrList = can;
	*num = ARRAY_SIZE(can);
	return ACL_SUCCESS;
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t *value)
{
	size_t i;

	if (!value)
		return npuacl_null("aclGetCannAttribute", "value");
	if (cannAttr < ACL_CANN_ATTR_INF_NAN || cannAttr > ACL_CANN_ATTR_JIT_COMPILE)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclGetCannAttribute: there is no attribute %d; 0 to 2",
				   (int)cannAttr);
	*value = 0;
	for (i = 0; i < ARRAY_SIZE(can); i++)
		if (can[i] == cannAttr)
			*value = 1;
	return ACL_SUCCESS;
}
