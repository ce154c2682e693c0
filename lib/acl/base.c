// SPDX-License-Identifier: MIT
/*
 * What needs no device: data types and their sizes, half-precision numbers, data
 * buffers, and the program's own lines in the log.
 */
#include <stdio.h>
#include "devinfo.h"

/* ---- Data types ------------------------------------------------------------------ */

size_t aclDataTypeSize(aclDataType dataType)
{
	switch (dataType) {
	case ACL_BOOL:
	case ACL_INT8:
	case ACL_UINT8:
	case ACL_HIFLOAT8:
	case ACL_FLOAT8_E5M2:
	case ACL_FLOAT8_E4M3FN:
	case ACL_FLOAT8_E8M0:
		return 1;
	/* less than a byte: one needs a byte */
	case ACL_UINT1:
	case ACL_INT4:
	case ACL_FLOAT6_E3M2:
	case ACL_FLOAT6_E2M3:
	case ACL_FLOAT4_E2M1:
	case ACL_FLOAT4_E1M2:
		return 1;
	case ACL_FLOAT16:
	case ACL_BF16:
	case ACL_INT16:
	case ACL_UINT16:
		return 2;
	case ACL_FLOAT:
	case ACL_INT32:
	case ACL_UINT32:
	case ACL_COMPLEX32:
		return 4;
	case ACL_INT64:
	case ACL_UINT64:
	case ACL_DOUBLE:
	case ACL_COMPLEX64:
		return 8;
	case ACL_COMPLEX128:
		return 16;
	default:	/* a string, or no type */
		return 0;
	}
}

/* ---- Half precision --------------------------------------------------------------- */

#define HALF_MAX	0x7bffu		/* 65504 */
#define HALF_SIGN	0x8000u
#define FLOAT_OVERFLOW	0x477ff000u	/* 65520: half way from 65504 to what is no half */
#define FLOAT_NORMAL	0x38800000u	/* 2^-14: the smallest normal half */

/* @v / 2^@shift to the nearest, and to the even one of two. */
static u32 round_shift(u32 v, u32 shift)
{
	u32 half = 1u << (shift - 1), rest = v & ((1u << shift) - 1), q = v >> shift;

	return q + (rest > half || (rest == half && (q & 1)));
}

aclFloat16 aclFloatToFloat16(float value)
{
	u32 bits, sign, e;

	memcpy(&bits, &value, sizeof(bits));
	sign = bits >> 16 & HALF_SIGN;
	bits &= 0x7fffffffu;
	if (bits >= FLOAT_OVERFLOW)	/* infinities and NaNs among them: this API saturates */
		return (aclFloat16)(sign | HALF_MAX);
	if (bits >= FLOAT_NORMAL)	/* a carry out of the mantissa is the next exponent */
		return (aclFloat16)(sign | round_shift(bits - (112u << 23), 13));
	e = bits >> 23;
	if (e < 102)			/* below half of the smallest, 2^-25 */
		return (aclFloat16)sign;
	return (aclFloat16)(sign | round_shift((bits & 0x7fffff) | 0x800000, 126 - e));
}

/* The largest exponent is one like the others here: 0x7c00 is 65536. */
float aclFloat16ToFloat(aclFloat16 value)
{
	u32 e = value >> 10 & 0x1f, m = value & 0x3ff, bits;
	float f;

	if (!e) {
		f = (float)m * 0x1p-24f;
		return value & HALF_SIGN ? -f : f;
	}
	bits = (u32)(value & HALF_SIGN) << 16 | (e + 112) << 23 | m << 13;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* ---- Data buffers ------------------------------------------------------------------ */

struct aclDataBuffer {
	void *data;
	size_t size;
};

static struct npuemu_slab buffers = {
	.what = "data buffer", .size = NPUEMU_SLAB_SIZE(struct aclDataBuffer), .max = 1u << 20,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static aclError check_buffer(const aclDataBuffer *b, const char *what)
{
	if (!b)
		return npuacl_null(what, "dataBuffer");
	if (!npuemu_slab_alive(&buffers, b))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %p is not a data buffer, or no longer",
				   what, (const void *)b);
	return ACL_SUCCESS;
}

static aclError check_data(const void *data, size_t size, const char *what)
{
	if (!data && size)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM,
				   "%s: data is NULL, but size is %zu: a buffer of nothing has size 0",
				   what, size);
	return ACL_SUCCESS;
}

aclDataBuffer *aclCreateDataBuffer(void *data, size_t size)
{
	aclDataBuffer *b;

	if (check_data(data, size, "aclCreateDataBuffer"))
		return NULL;
	b = npuemu_slab_alloc(&buffers);
	if (!b) {
		npuacl_fail(ACL_ERROR_BAD_ALLOC,
			    "aclCreateDataBuffer: there are %u already, or no memory is left: aclDestroyDataBuffer some",
			    buffers.max);
		return NULL;
	}
	b->data = data;
	b->size = size;
	npuemu_slab_publish(&buffers, b);
	return b;
}

aclError aclDestroyDataBuffer(const aclDataBuffer *dataBuffer)
{
	aclDataBuffer *b = (aclDataBuffer *)(uintptr_t)dataBuffer;
	aclError ret = check_buffer(b, "aclDestroyDataBuffer");

	if (ret)
		return ret;
	if (!npuemu_slab_retire(&buffers, b))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclDestroyDataBuffer: another thread was faster");
	npuemu_slab_free(&buffers, b);
	return ACL_SUCCESS;
}

aclError aclUpdateDataBuffer(aclDataBuffer *dataBuffer, void *data, size_t size)
{
	aclError ret = check_buffer(dataBuffer, "aclUpdateDataBuffer");

	if (!ret)
		ret = check_data(data, size, "aclUpdateDataBuffer");
	if (ret)
		return ret;
	dataBuffer->data = data;
	dataBuffer->size = size;
	return ACL_SUCCESS;
}

void *aclGetDataBufferAddr(const aclDataBuffer *dataBuffer)
{
	return check_buffer(dataBuffer, "aclGetDataBufferAddr") ? NULL : dataBuffer->data;
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer *dataBuffer)
{
	return check_buffer(dataBuffer, "aclGetDataBufferSizeV2") ? 0 : dataBuffer->size;
}

uint32_t aclGetDataBufferSize(const aclDataBuffer *dataBuffer)
{
	return (u32)aclGetDataBufferSizeV2(dataBuffer);
}

/* ---- The program's lines in the log --------------------------------------------------- */

/* The public declaration has no such attribute: programs' warnings are to be what they were. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsuggest-attribute=format"
void aclAppLog(aclLogLevel logLevel, const char *func, const char *file, uint32_t line,
	       const char *fmt, ...)
{
	static const int levels[] = {
		[ACL_DEBUG] = NPUEMU_LOG_DEBUG,
		[ACL_INFO] = NPUEMU_LOG_INFO,
		[ACL_WARNING] = NPUEMU_LOG_WARN,
		[ACL_ERROR] = NPUEMU_LOG_ERROR,
	};
	char text[640];
	const char *slash;
	va_list ap;
	size_t n;

	if ((u32)logLevel >= ARRAY_SIZE(levels) || !fmt) {
		npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclAppLog: %s at level %d; 0 (debug) to 3 (error)",
			    fmt ? fmt : "NULL as the format", (int)logLevel);
		return;
	}
	npuemu_log_init();
	if (levels[logLevel] > npuemu_log_at)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (n = strlen(text); n && text[n - 1] == '\n'; n--)
		text[n - 1] = 0;
	slash = file ? strrchr(file, '/') : NULL;
	npuemu_log(levels[logLevel], "app: %s:%u %s: %s", slash ? slash + 1 : file ? file : "?",
		   line, func ? func : "?", text);
}
#pragma GCC diagnostic pop
