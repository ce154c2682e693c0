// SPDX-License-Identifier: MIT
/*
 * How operators run: what becomes of floats that overflow, and how long one may
 * take.  Kernels are what would obey.
 */
#include "devinfo.h"

/* ---- Floats that overflow --------------------------------------------------------------- */

/* dev->sat_mode is 1 for saturation, so that a new device has what it should. */
aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode)
{
	struct npuacl_ctx *ctx;
	aclError ret;

	if (mode != ACL_RT_OVERFLOW_MODE_SATURATION && mode != ACL_RT_OVERFLOW_MODE_INFNAN)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "aclrtSetDeviceSatMode: mode %d; 0 (saturation) or 1 (Inf and NaN)",
				   (int)mode);
	ret = npuacl_current(&ctx);
	if (ret)
		return ret;
	if (mode == ACL_RT_OVERFLOW_MODE_SATURATION &&
	    npuacl.info.generation >= NPUACL_GENERATION_SIMT)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "aclrtSetDeviceSatMode: a %s does not saturate, it has Inf and NaN",
				   npuacl.info.soc);
	WRITE_ONCE(ctx->dev->sat_mode, mode == ACL_RT_OVERFLOW_MODE_SATURATION);
	return ACL_SUCCESS;
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode)
{
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!mode)
		return npuacl_null("aclrtGetDeviceSatMode", "mode");
	ret = npuacl_current(&ctx);
	if (!ret)
		*mode = READ_ONCE(ctx->dev->sat_mode) ? ACL_RT_OVERFLOW_MODE_SATURATION :
			ACL_RT_OVERFLOW_MODE_INFNAN;
	return ret;
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag)
{
	struct npuacl_stream *s;
	aclError ret;

	if (flag > 1)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtSetStreamOverflowSwitch: flag %u; 0 (off) or 1 (on)",
				   flag);
	ret = npuacl_stream(stream, &s);
	if (!ret)
		WRITE_ONCE(s->overflow_check, flag);
	return ret;
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag)
{
	struct npuacl_stream *s;
	aclError ret;

	if (!flag)
		return npuacl_null("aclrtGetStreamOverflowSwitch", "flag");
	ret = npuacl_stream(stream, &s);
	if (!ret)
		*flag = READ_ONCE(s->overflow_check);
	return ret;
}

/* ---- How long an operator may take --------------------------------------------------------- */

/*
 * A timeout is a number of ticks of the hardware, 1 to 254.  The default is the most,
 * which is documented as 1091 s: the tick is 2^32 ns, then.
 */
#define TICK_NS		(1ull << 32)
#define MOST_TICKS	254u

static u32 ticks = MOST_TICKS;

static u64 ticks_us(u32 n)
{
	return n * TICK_NS / 1000;
}

/* Rounded up to ticks; 0 asks for the most. */
static u64 set_timeout(u64 us)
{
	u32 n = MOST_TICKS;

	if (us && us < ticks_us(MOST_TICKS))
		n = (u32)((us * 1000 + TICK_NS - 1) / TICK_NS);
	WRITE_ONCE(ticks, n);
	return ticks_us(n);
}

aclError aclrtSetOpExecuteTimeOut(uint32_t timeout)
{
	set_timeout(timeout * 1000000ull);
	return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout)
{
	set_timeout(timeout * 1000ull);
	return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t *actualTimeout)
{
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!actualTimeout)
		return npuacl_null("aclrtSetOpExecuteTimeOutV2", "actualTimeout");
	ret = npuacl_current(&ctx);
	if (!ret)
		*actualTimeout = set_timeout(timeout);
	return ret;
}

aclError aclrtGetOpTimeOutInterval(uint64_t *interval)
{
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!interval)
		return npuacl_null("aclrtGetOpTimeOutInterval", "interval");
	ret = npuacl_current(&ctx);
	if (!ret)
		*interval = ticks_us(1);
	return ret;
}

aclError aclrtGetOpExecuteTimeout(uint32_t *const timeoutMs)
{
	if (!timeoutMs)
		return npuacl_null("aclrtGetOpExecuteTimeout", "timeoutMs");
	*timeoutMs = (u32)(ticks_us(READ_ONCE(ticks)) / 1000);
	return ACL_SUCCESS;
}
