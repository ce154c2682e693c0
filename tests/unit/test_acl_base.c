// SPDX-License-Identifier: MIT
/*
 * What of the ACL runtime needs no device: sizes of types, half-precision numbers
 * (all of them, and what lies between), data buffers, the log, versions.
 */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acltest.h"

/* ---- Types --------------------------------------------------------------- */

static void type_sizes(void **state)
{
	static const struct {
		aclDataType type;
		size_t size;
	} t[] = {
		{ ACL_DT_UNDEFINED, 0 }, { ACL_FLOAT, 4 }, { ACL_FLOAT16, 2 }, { ACL_INT8, 1 },
		{ ACL_INT32, 4 }, { ACL_UINT8, 1 }, { ACL_INT16, 2 }, { ACL_UINT16, 2 },
		{ ACL_UINT32, 4 }, { ACL_INT64, 8 }, { ACL_UINT64, 8 }, { ACL_DOUBLE, 8 },
		{ ACL_BOOL, 1 }, { ACL_STRING, 0 }, { ACL_COMPLEX64, 8 }, { ACL_COMPLEX128, 16 },
		{ ACL_BF16, 2 }, { ACL_INT4, 1 }, { ACL_UINT1, 1 }, { ACL_COMPLEX32, 4 },
		{ ACL_HIFLOAT8, 1 }, { ACL_FLOAT8_E5M2, 1 }, { ACL_FLOAT8_E4M3FN, 1 },
		{ ACL_FLOAT8_E8M0, 1 }, { ACL_FLOAT6_E3M2, 1 }, { ACL_FLOAT6_E2M3, 1 },
		{ ACL_FLOAT4_E2M1, 1 }, { ACL_FLOAT4_E1M2, 1 }, { (aclDataType)5, 0 },
		{ (aclDataType)1000, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(*t); i++)
		sys_true(aclDataTypeSize(t[i].type) == t[i].size, "type %d: %zu", (int)t[i].type,
			 aclDataTypeSize(t[i].type));
}

/* ---- Half precision ------------------------------------------------------ */

/* What a half is worth by its definition, the largest exponent being one like any other. */
static double worth(unsigned int h)
{
	int e = h >> 10 & 31, m = h & 1023;
	double v = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);

	return h & 0x8000 ? -v : v;
}

static void all_halves(void **state)
{
	unsigned int h, want;
	float f;

	(void)state;
	for (h = 0; h < 65536; h++) {
		f = aclFloat16ToFloat((aclFloat16)h);
		sys_true((double)f == worth(h) && !signbit(f) == !(h & 0x8000), "%#x: %a, not %a", h,
			 (double)f, worth(h));
		/* and back, but for what saturates */
		want = (h & 0x7fff) > 0x7bff ? (h & 0x8000) | 0x7bff : h;
		sys_eq(aclFloatToFloat16(f), want);
	}
	sys_true(aclFloat16ToFloat(0x7c00) == 65536.0f, "infinity");
	sys_true(aclFloat16ToFloat(0xfc00) == -65536.0f, "negative infinity");
	sys_true(aclFloat16ToFloat(0x7e00) == 98304.0f, "NaN");
}

/* The nearest half that is not negative, by looking at all; the even one of two. */
static unsigned int nearest(double v)
{
	unsigned int lo = 0, hi = 0x7bff, mid;
	double below, above;

	if (v >= worth(hi))
		return hi;
	while (hi - lo > 1) {
		mid = (lo + hi) / 2;
		if (worth(mid) <= v)
			lo = mid;
		else
			hi = mid;
	}
	below = v - worth(lo);
	above = worth(hi) - v;
	if (below == above)
		return lo & 1 ? hi : lo;
	return below < above ? lo : hi;
}

static void rounds_to(float f)
{
	unsigned int want = nearest((double)fabsf(f)) | (signbit(f) ? 0x8000 : 0);

	sys_true(aclFloatToFloat16(f) == want,
		 "%a: %#x, not %#x", (double)f, aclFloatToFloat16(f), want);
}

static void between_halves(void **state)
{
	unsigned int h, i;
	uint64_t seed = 1;
	uint32_t bits;
	float f;

	(void)state;
	for (h = 0; h < 0x7bff; h++) {
		f = (float)((worth(h) + worth(h + 1)) / 2);
		rounds_to(f);
		rounds_to(nextafterf(f, 0));
		rounds_to(nextafterf(f, 1e9f));
		rounds_to(-f);
	}
	for (i = 0; i < 300000; i++) {
		bits = (uint32_t)sys_rand(&seed);
		memcpy(&f, &bits, sizeof(f));
		if (isfinite(f))
			rounds_to(f);
		/* more of those that halves can be near to */
		bits = (bits & 0x8fffffff) | 0x30000000;
		memcpy(&f, &bits, sizeof(f));
		rounds_to(f);
	}
}

static void beyond_halves(void **state)
{
	static const struct {
		float f;
		unsigned int h;
	} t[] = {
		{ 65504, 0x7bff }, { 65519.996f, 0x7bff }, { 65520, 0x7bff }, { 65536, 0x7bff },
		{ 3e38f, 0x7bff }, { -65520, 0xfbff }, { INFINITY, 0x7bff }, { -INFINITY, 0xfbff },
		{ 0x1p-24f, 1 }, { 0x1p-25f, 0 }, { 0x1.000002p-25f, 1 }, { -0x1p-25f, 0x8000 },
		{ 0x1.8p-24f, 2 }, { 1e-40f, 0 }, { 0, 0 }, { -0.0f, 0x8000 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(*t); i++)
		sys_true(aclFloatToFloat16(t[i].f) == t[i].h, "%a: %#x, not %#x", (double)t[i].f,
			 aclFloatToFloat16(t[i].f), t[i].h);
	sys_eq(aclFloatToFloat16(copysignf(NAN, 1)), 0x7bff);
	sys_eq(aclFloatToFloat16(copysignf(NAN, -1)), 0xfbff);
}

/* ---- Data buffers -------------------------------------------------------- */

static void data_buffers(void **state)
{
	aclDataBuffer *b, *c, *empty;
	char x[64];

	(void)state;
	b = aclCreateDataBuffer(x, sizeof(x));
	c = aclCreateDataBuffer(x + 1, 5000000000u);
	empty = aclCreateDataBuffer(NULL, 0);
	sys_true(b && c && empty && b != c, "buffers");
	sys_true(aclGetDataBufferAddr(b) == x, "address");
	sys_eq(aclGetDataBufferSizeV2(b), 64);
	sys_eq(aclGetDataBufferSize(b), 64);
	sys_eq(aclGetDataBufferSizeV2(c), 5000000000u);
	sys_eq(aclGetDataBufferSize(c), (uint32_t)5000000000u);
	sys_true(!aclGetDataBufferAddr(empty), "empty");
	acl_ok(aclUpdateDataBuffer(b, x + 3, 7));
	sys_true(aclGetDataBufferAddr(b) == x + 3, "updated");
	sys_eq(aclGetDataBufferSizeV2(b), 7);
	sys_eq(aclGetDataBufferSizeV2(c), 5000000000u);
	acl_ok(aclDestroyDataBuffer(b));
	acl_ok(aclDestroyDataBuffer(c));
	acl_ok(aclDestroyDataBuffer(empty));
}

static void data_buffers_bad(void **state)
{
	aclDataBuffer *b = aclCreateDataBuffer(NULL, 0), *inside, *old;
	char x[128];
	void *bad[4];
	size_t i;

	(void)state;
	old = aclCreateDataBuffer(x, 1);
	acl_ok(aclDestroyDataBuffer(old));
	inside = (aclDataBuffer *)((char *)b + 1);
	bad[0] = NULL;
	bad[1] = x;
	bad[2] = inside;
	bad[3] = old;
	for (i = 0; i < 4; i++) {
		acl_fails(aclDestroyDataBuffer(bad[i]), ACL_ERROR_INVALID_PARAM);
		acl_fails(aclUpdateDataBuffer(bad[i], x, 1), ACL_ERROR_INVALID_PARAM);
		sys_true(!aclGetDataBufferAddr(bad[i]) && aclGetRecentErrMsg(), "address %zu", i);
		sys_true(!aclGetDataBufferSizeV2(bad[i]) && aclGetRecentErrMsg(), "size %zu", i);
		sys_true(!aclGetDataBufferSize(bad[i]) && aclGetRecentErrMsg(), "old size %zu", i);
	}
	sys_true(!aclCreateDataBuffer(NULL, 1) && aclGetRecentErrMsg(), "something at NULL");
	acl_fails(aclUpdateDataBuffer(b, NULL, 1), ACL_ERROR_INVALID_PARAM);
	acl_ok(aclDestroyDataBuffer(b));
}

#define BUFFERS	2000

static void *make_and_destroy(void *arg)
{
	aclDataBuffer *b[BUFFERS];
	char *base = arg;
	int i, round;

	for (round = 0; round < 5; round++) {
		for (i = 0; i < BUFFERS; i++)
			b[i] = aclCreateDataBuffer(base + i, (size_t)i);
		for (i = 0; i < BUFFERS; i++) {
			sys_true(aclGetDataBufferAddr(b[i]) == base + i, "buffer %d", i);
			acl_ok(aclDestroyDataBuffer(b[i]));
		}
	}
	return NULL;
}

static void data_buffers_threads(void **state)
{
	static char base[4][BUFFERS];
	pthread_t t[4];
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, make_and_destroy, base[i]), 0);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

/* ---- The log: a process of its own, which reads its level once ----------- */

static void log_child(const char *level)
{
	setenv("ASCEND_GLOBAL_LOG_LEVEL", level, 1);
	unsetenv("NPUEMU_LOG");
	aclAppLog(ACL_DEBUG, "f", "/a/b/one.c", 1, "at debug");
	aclAppLog(ACL_INFO, "f", "/a/b/one.c", 2, "at info %d", 22);
	aclAppLog(ACL_WARNING, "f", "one.c", 3, "at warning\n");
	aclAppLog(ACL_ERROR, NULL, NULL, 4, "at error");
	aclAppLog((aclLogLevel)4, "f", "one.c", 5, "at none");
	aclAppLog((aclLogLevel)-1, "f", "one.c", 6, "at none");
	aclAppLog(ACL_ERROR, "f", "one.c", 7, NULL);
}

static void log_of(const char *level, char *out, size_t room)
{
	size_t n = 0;
	int fd[2], status;
	ssize_t r;
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	if (!pid) {
		dup2(fd[1], STDERR_FILENO);
		log_child(level);
		_exit(0);
	}
	close(fd[1]);
	while ((r = read(fd[0], out + n, room - 1 - n)) > 0)
		n += (size_t)r;
	out[n] = 0;
	close(fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	sys_eq(status, 0);
}

static void app_log(void **state)
{
	char out[4096];
	int level;

	(void)state;
	for (level = 0; level <= 4; level++) {
		char text[2] = { (char)('0' + level), 0 };

		log_of(text, out, sizeof(out));
		sys_true(!strstr(out, "at debug") == (level > 0), "level %d: %s", level, out);
		sys_true(!strstr(out, "info: app: one.c:2 f: at info 22\n") == (level > 1), "level %d: %s",
			 level, out);
		sys_true(!strstr(out, "warn: app: one.c:3 f: at warning\n") == (level > 2), "level %d: %s",
			 level, out);
		sys_true(!strstr(out, "error: app: ?:4 ?: at error\n") == (level > 3), "level %d: %s", level,
			 out);
		sys_true(!strstr(out, "app: one.c:5") && !strstr(out, "app: one.c:6") &&
			 !strstr(out, "app: one.c:7") && !strstr(out, "\n\n"), "level %d: %s", level, out);
	}
}

/* ---- Versions ------------------------------------------------------------ */

static char home[256];

static void write_info(const char *package, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/share", home);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/share/info", home);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/share/info/%s", home, package);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/share/info/%s/version.info", home, package);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int32_t num(const char *version)
{
	char text[256], package[] = "some-pkg";
	int32_t n = -1;

	snprintf(text, sizeof(text), "# first\nname=some\nVersion=%s\r\nbuild=3\n", version);
	write_info("some_pkg", text);
	acl_ok(aclsysGetVersionNum(package, &n));
	return n;
}

static void versions(void **state)
{
	static const char *const rising[] = {
		"8.5.2", "9.0.0-alpha.1", "9.0.0-alpha.2", "9.0.0-beta.1", "9.0.0.beta2", "9.0.0-rc.1",
		"9.0.0.RC2", "9.0.0", "9.0.1", "9.1.0", "10.0.0",
	};
	static const char *const wrong[] = {
		"9", "9.1", "9.1.x", "9.1.0-gamma.1", "9.1.0-rc.x", "9.1.0 ", ".1.0", "9..0", "300.0.0",
	};
	char out[ACL_PKG_VERSION_MAX_SIZE], runtime[] = "runtime", package[] = "some-pkg";
	aclCANNPackageVersion v;
	int32_t last = 0, n;
	size_t i;

	(void)state;
	unsetenv("ASCEND_HOME_PATH");
	acl_ok(aclsysGetVersionStr(runtime, out));
	assert_string_equal(out, "9.1.0");
	acl_ok(aclsysGetVersionNum(runtime, &n));
	sys_eq(n, 90100000);
	acl_fails(aclsysGetVersionStr(package, out), ACL_ERROR_INVALID_FILE);

	snprintf(home, sizeof(home), "%s/acl-base-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(home));
	setenv("ASCEND_HOME_PATH", home, 1);
	for (i = 0; i < sizeof(rising) / sizeof(*rising); i++) {
		n = num(rising[i]);
		sys_true(n > last, "%s: %d is not above %d", rising[i], n, last);
		last = n;
	}
	sys_eq(num("9.0.0-beta.2"), 90000000 - 200 + 2);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char text[64];

		snprintf(text, sizeof(text), "version=%s\n", wrong[i]);
		write_info("some_pkg", text);
		acl_fails(aclsysGetVersionNum(package, &n), ACL_ERROR_INTERNAL_ERROR);
		acl_ok(aclsysGetVersionStr(package, out));
		assert_string_equal(out, wrong[i]);
	}
	/* what is installed goes before what npuemu would say */
	write_info("runtime", "Version=8.0.RC1.alpha001\n");
	acl_ok(aclsysGetCANNVersion(ACL_PKG_NAME_RUNTIME, &v));
	assert_string_equal(v.version, "8.0.RC1.alpha001");
	assert_string_equal(v.majorVersion, "8");
	assert_string_equal(v.minorVersion, "0");
	assert_string_equal(v.releaseVersion, "RC1");
	assert_string_equal(v.patchVersion, "alpha001");
	acl_ok(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &v));
	assert_string_equal(v.releaseVersion, "0");
	assert_string_equal(v.patchVersion, "0");
	acl_fails(aclsysGetCANNVersion(ACL_PKG_NAME_OPP, &v), ACL_ERROR_INVALID_FILE);
	snprintf(out, sizeof(out), "rm -rf '%.100s'", home);
	sys_eq(system(out), 0);
}

static void versions_bad(void **state)
{
	char out[ACL_PKG_VERSION_MAX_SIZE], name[100], empty[] = "", up[] = "../runtime", path[] = "a/b";
	char *bad[] = { empty, up, path, name };
	aclCANNPackageVersion v;
	int32_t n;
	size_t i;

	(void)state;
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = 0;
	for (i = 0; i < 4; i++) {
		acl_fails(aclsysGetVersionStr(bad[i], out), ACL_ERROR_INVALID_PARAM);
		acl_fails(aclsysGetVersionNum(bad[i], &n), ACL_ERROR_INVALID_PARAM);
	}
	acl_fails(aclsysGetVersionStr(NULL, out), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclsysGetVersionStr(up, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclsysGetVersionNum(NULL, &n), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclsysGetVersionNum(up, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclsysGetCANNVersion((aclCANNPackageName)8, &v), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclsysGetCANNVersion((aclCANNPackageName)-1, &v), ACL_ERROR_INVALID_PARAM);
}

static void cann_attributes(void **state)
{
	const aclCannAttr *list = NULL;
	int32_t value, listed;
	size_t n = 0, i;
	int a;

	(void)state;
	acl_ok(aclGetCannAttributeList(&list, &n));
	sys_true(list && n == 2, "%zu attributes", n);
	for (a = ACL_CANN_ATTR_INF_NAN; a <= ACL_CANN_ATTR_JIT_COMPILE; a++) {
		acl_ok(aclGetCannAttribute((aclCannAttr)a, &value));
		for (i = 0, listed = 0; i < n; i++)
			listed |= (int)list[i] == a;
		sys_eq(value, listed);
		sys_eq(value, a != ACL_CANN_ATTR_JIT_COMPILE);
	}
	acl_fails(aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &value), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclGetCannAttribute((aclCannAttr)3, &value), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclGetCannAttribute(ACL_CANN_ATTR_BF16, NULL), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclGetCannAttributeList(NULL, &n), ACL_ERROR_INVALID_PARAM);
	acl_fails(aclGetCannAttributeList(&list, NULL), ACL_ERROR_INVALID_PARAM);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(app_log),	/* first: this process has no level yet */
		cmocka_unit_test(type_sizes),
		cmocka_unit_test(all_halves),
		cmocka_unit_test(between_halves),
		cmocka_unit_test(beyond_halves),
		cmocka_unit_test(data_buffers),
		cmocka_unit_test(data_buffers_bad),
		cmocka_unit_test(data_buffers_threads),
		cmocka_unit_test(versions),
		cmocka_unit_test(versions_bad),
		cmocka_unit_test(cann_attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
