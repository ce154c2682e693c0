/* SPDX-License-Identifier: MIT */
/*
 * acl_base_rt.h - what all parts of the runtime share: codes, handles, data
 * types, data buffers, logging.
 *
 * Follows the public ACL runtime interface, version 1.17.
 */
#ifndef ACL_ACL_BASE_RT_H
#define ACL_ACL_BASE_RT_H

#include <stddef.h>
#include <stdint.h>
#include "error_codes/rt_error_codes.h"
#include "error_codes/ge_error_codes.h"

/* The library is built with hidden symbols; what bears this mark is its interface. */
#ifndef ACL_FUNC_VISIBILITY
#define ACL_FUNC_VISIBILITY __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- Return codes -------------------------------------------------------- */

/* 0 or one of the codes below, or of error_codes/. */
typedef int aclError;

/* A code is a constant expression in C, too, where a const variable is none. */
#ifdef __cplusplus
#define ACL_CODE(name, value)	static const int name = value
#else
#define ACL_CODE(name, value)	enum { name = value }
#endif

ACL_CODE(ACL_SUCCESS, 0);
ACL_CODE(ACL_ERROR_NONE, 0);

/* What the caller did wrong. */
ACL_CODE(ACL_ERROR_INVALID_PARAM, 100000);
ACL_CODE(ACL_ERROR_UNINITIALIZE, 100001);
ACL_CODE(ACL_ERROR_REPEAT_INITIALIZE, 100002);		/* harmless */
ACL_CODE(ACL_ERROR_INVALID_FILE, 100003);
ACL_CODE(ACL_ERROR_WRITE_FILE, 100004);
ACL_CODE(ACL_ERROR_INVALID_FILE_SIZE, 100005);
ACL_CODE(ACL_ERROR_PARSE_FILE, 100006);
ACL_CODE(ACL_ERROR_FILE_MISSING_ATTR, 100007);
ACL_CODE(ACL_ERROR_FILE_ATTR_INVALID, 100008);
ACL_CODE(ACL_ERROR_INVALID_DUMP_CONFIG, 100009);
ACL_CODE(ACL_ERROR_INVALID_PROFILING_CONFIG, 100010);
ACL_CODE(ACL_ERROR_INVALID_MODEL_ID, 100011);
ACL_CODE(ACL_ERROR_DESERIALIZE_MODEL, 100012);
ACL_CODE(ACL_ERROR_PARSE_MODEL, 100013);
ACL_CODE(ACL_ERROR_READ_MODEL_FAILURE, 100014);
ACL_CODE(ACL_ERROR_MODEL_SIZE_INVALID, 100015);
ACL_CODE(ACL_ERROR_MODEL_MISSING_ATTR, 100016);
ACL_CODE(ACL_ERROR_MODEL_INPUT_NOT_MATCH, 100017);
ACL_CODE(ACL_ERROR_MODEL_OUTPUT_NOT_MATCH, 100018);
ACL_CODE(ACL_ERROR_MODEL_NOT_DYNAMIC, 100019);
ACL_CODE(ACL_ERROR_OP_TYPE_NOT_MATCH, 100020);
ACL_CODE(ACL_ERROR_OP_INPUT_NOT_MATCH, 100021);
ACL_CODE(ACL_ERROR_OP_OUTPUT_NOT_MATCH, 100022);
ACL_CODE(ACL_ERROR_OP_ATTR_NOT_MATCH, 100023);
ACL_CODE(ACL_ERROR_OP_NOT_FOUND, 100024);
ACL_CODE(ACL_ERROR_OP_LOAD_FAILED, 100025);
ACL_CODE(ACL_ERROR_UNSUPPORTED_DATA_TYPE, 100026);
ACL_CODE(ACL_ERROR_FORMAT_NOT_MATCH, 100027);
ACL_CODE(ACL_ERROR_BIN_SELECTOR_NOT_REGISTERED, 100028);
ACL_CODE(ACL_ERROR_KERNEL_NOT_FOUND, 100029);
ACL_CODE(ACL_ERROR_BIN_SELECTOR_ALREADY_REGISTERED, 100030);
ACL_CODE(ACL_ERROR_KERNEL_ALREADY_REGISTERED, 100031);
ACL_CODE(ACL_ERROR_INVALID_QUEUE_ID, 100032);
ACL_CODE(ACL_ERROR_REPEAT_SUBSCRIBE, 100033);
ACL_CODE(ACL_ERROR_STREAM_NOT_SUBSCRIBE, 100034);
ACL_CODE(ACL_ERROR_THREAD_NOT_SUBSCRIBE, 100035);
ACL_CODE(ACL_ERROR_WAIT_CALLBACK_TIMEOUT, 100036);
ACL_CODE(ACL_ERROR_REPEAT_FINALIZE, 100037);
ACL_CODE(ACL_ERROR_NOT_STATIC_AIPP, 100038);
ACL_CODE(ACL_ERROR_COMPILING_STUB_MODE, 100039);	/* linked with a library for linking only */
ACL_CODE(ACL_ERROR_GROUP_NOT_SET, 100040);
ACL_CODE(ACL_ERROR_GROUP_NOT_CREATE, 100041);
ACL_CODE(ACL_ERROR_PROF_ALREADY_RUN, 100042);
ACL_CODE(ACL_ERROR_PROF_NOT_RUN, 100043);
ACL_CODE(ACL_ERROR_DUMP_ALREADY_RUN, 100044);
ACL_CODE(ACL_ERROR_DUMP_NOT_RUN, 100045);
ACL_CODE(ACL_ERROR_PROF_REPEAT_SUBSCRIBE, 148046);
ACL_CODE(ACL_ERROR_PROF_API_CONFLICT, 148047);
ACL_CODE(ACL_ERROR_INVALID_MAX_OPQUEUE_NUM_CONFIG, 148048);
ACL_CODE(ACL_ERROR_INVALID_OPP_PATH, 148049);
ACL_CODE(ACL_ERROR_OP_UNSUPPORTED_DYNAMIC, 148050);
ACL_CODE(ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED, 148051);
ACL_CODE(ACL_ERROR_UNSUPPORTED_JPEG, 148052);
ACL_CODE(ACL_ERROR_INVALID_BUNDLE_MODEL_ID, 148053);

/* What the machine or this build cannot do. */
ACL_CODE(ACL_ERROR_BAD_ALLOC, 200000);
ACL_CODE(ACL_ERROR_API_NOT_SUPPORT, 200001);
ACL_CODE(ACL_ERROR_INVALID_DEVICE, 200002);
ACL_CODE(ACL_ERROR_MEMORY_ADDRESS_UNALIGNED, 200003);
ACL_CODE(ACL_ERROR_RESOURCE_NOT_MATCH, 200004);
ACL_CODE(ACL_ERROR_INVALID_RESOURCE_HANDLE, 200005);
ACL_CODE(ACL_ERROR_FEATURE_UNSUPPORTED, 200006);
ACL_CODE(ACL_ERROR_PROF_MODULES_UNSUPPORTED, 200007);
ACL_CODE(ACL_ERROR_STORAGE_OVER_LIMIT, 300000);

/* What went wrong inside, and in which layer. */
ACL_CODE(ACL_ERROR_INTERNAL_ERROR, 500000);
ACL_CODE(ACL_ERROR_FAILURE, 500001);
ACL_CODE(ACL_ERROR_GE_FAILURE, 500002);
ACL_CODE(ACL_ERROR_RT_FAILURE, 500003);
ACL_CODE(ACL_ERROR_DRV_FAILURE, 500004);
ACL_CODE(ACL_ERROR_PROFILING_FAILURE, 500005);

#undef ACL_CODE

/* --- Handles ------------------------------------------------------------- */

typedef void *aclrtContext;
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtNotify;
typedef void *aclrtCntNotify;
typedef void *aclrtLabel;
typedef void *aclrtLabelList;
typedef void *aclrtMbuf;
typedef void *aclmdlRITask;
typedef void *aclrtTaskGrp;

/* Of an allocator that the program brings along: acl_rt_allocator.h. */
typedef void *aclrtAllocatorDesc;
typedef void *aclrtAllocator;
typedef void *aclrtAllocatorBlock;
typedef void *aclrtAllocatorAddr;

/* --- Data types and formats ---------------------------------------------- */

/* An fp16 number, by its bits. */
typedef uint16_t aclFloat16;

/* Not the numbers of HcclDataType. */
typedef enum aclDataType {
	ACL_DT_UNDEFINED = -1,
	ACL_FLOAT = 0,
	ACL_FLOAT16 = 1,
	ACL_INT8 = 2,
	ACL_INT32 = 3,
	ACL_UINT8 = 4,
	ACL_INT16 = 6,
	ACL_UINT16 = 7,
	ACL_UINT32 = 8,
	ACL_INT64 = 9,
	ACL_UINT64 = 10,
	ACL_DOUBLE = 11,
	ACL_BOOL = 12,
	ACL_STRING = 13,
	ACL_COMPLEX64 = 16,
	ACL_COMPLEX128 = 17,
	ACL_BF16 = 27,
	ACL_INT4 = 29,
	ACL_UINT1 = 30,
	ACL_COMPLEX32 = 33,
	ACL_HIFLOAT8 = 34,
	ACL_FLOAT8_E5M2 = 35,
	ACL_FLOAT8_E4M3FN = 36,
	ACL_FLOAT8_E8M0 = 37,
	ACL_FLOAT6_E3M2 = 38,
	ACL_FLOAT6_E2M3 = 39,
	ACL_FLOAT4_E2M1 = 40,
	ACL_FLOAT4_E1M2 = 41,
} aclDataType;

typedef enum aclFormat {
	ACL_FORMAT_UNDEFINED = -1,
	ACL_FORMAT_NCHW = 0,
	ACL_FORMAT_NHWC = 1,
	ACL_FORMAT_ND = 2,
	ACL_FORMAT_NC1HWC0 = 3,
	ACL_FORMAT_FRACTAL_Z = 4,
	ACL_FORMAT_NC1HWC0_C04 = 12,
	ACL_FORMAT_HWCN = 16,
	ACL_FORMAT_NDHWC = 27,
	ACL_FORMAT_FRACTAL_NZ = 29,
	ACL_FORMAT_NCDHW = 30,
	ACL_FORMAT_NDC1HWC0 = 32,
	ACL_FRACTAL_Z_3D = 33,
	ACL_FORMAT_NC = 35,
	ACL_FORMAT_NCL = 47,
	ACL_FORMAT_FRACTAL_NZ_C0_16 = 50,
	ACL_FORMAT_FRACTAL_NZ_C0_32 = 51,
	ACL_FORMAT_FRACTAL_NZ_C0_2 = 52,
	ACL_FORMAT_FRACTAL_NZ_C0_4 = 53,
	ACL_FORMAT_FRACTAL_NZ_C0_8 = 54,
} aclFormat;

typedef enum aclMemType {
	ACL_MEMTYPE_DEVICE = 0,
	ACL_MEMTYPE_HOST = 1,
	ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT = 2,	/* no compiler may use it */
} aclMemType;

/* Bytes of one element of a type; 0 for ACL_DT_UNDEFINED and for unknown types. */
ACL_FUNC_VISIBILITY size_t aclDataTypeSize(aclDataType dataType);

/*
 * The number that an fp16 is.  Infinity and NaN are taken for numbers: 65536
 * and above.
 */
ACL_FUNC_VISIBILITY float aclFloat16ToFloat(aclFloat16 value);

/* The nearest fp16.  What is too large, infinity and NaN become the largest: 65504. */
ACL_FUNC_VISIBILITY aclFloat16 aclFloatToFloat16(float value);

/* --- Data buffers -------------------------------------------------------- */

/* An address and a size.  The memory stays the caller's. */
typedef struct aclDataBuffer aclDataBuffer;

/* Make one; NULL if there is no memory. */
ACL_FUNC_VISIBILITY aclDataBuffer *aclCreateDataBuffer(void *data, size_t size);

/* Free it, but not the memory it tells of. */
ACL_FUNC_VISIBILITY aclError aclDestroyDataBuffer(const aclDataBuffer *dataBuffer);

/* Change what it tells. */
ACL_FUNC_VISIBILITY aclError aclUpdateDataBuffer(aclDataBuffer *dataBuffer, void *data,
						 size_t size);

/* Its address. */
ACL_FUNC_VISIBILITY void *aclGetDataBufferAddr(const aclDataBuffer *dataBuffer);

/* The low 32 bits of its size.  Deprecated: prefer aclGetDataBufferSizeV2(). */
ACL_FUNC_VISIBILITY uint32_t aclGetDataBufferSize(const aclDataBuffer *dataBuffer);

/* Its size in bytes. */
ACL_FUNC_VISIBILITY size_t aclGetDataBufferSizeV2(const aclDataBuffer *dataBuffer);

/* --- What is there ------------------------------------------------------- */

/*
 * Options of a context or of the process: aclrtCtxSetSysParamOpt(),
 * aclrtSetSysParamOpt().
 */
typedef enum aclSysParamOpt {
	ACL_OPT_DETERMINISTIC = 0,
	ACL_OPT_ENABLE_DEBUG_KERNEL = 1,
	ACL_OPT_STRONG_CONSISTENCY = 2,
	ACL_OPT_ENABLE_KERNEL_EARLY_START = 3,
} aclSysParamOpt;

typedef enum aclCannAttr {
	ACL_CANN_ATTR_UNDEFINED = -1,
	ACL_CANN_ATTR_INF_NAN = 0,	/* overflow as IEEE says */
	ACL_CANN_ATTR_BF16 = 1,
	ACL_CANN_ATTR_JIT_COMPILE = 2,
} aclCannAttr;

typedef enum aclDeviceInfo {
	ACL_DEVICE_INFO_UNDEFINED = -1,
	ACL_DEVICE_INFO_AI_CORE_NUM = 0,
	ACL_DEVICE_INFO_VECTOR_CORE_NUM = 1,
	ACL_DEVICE_INFO_L2_SIZE = 2,	/* bytes */
} aclDeviceInfo;

/*
 * Name of the processor, such as Ascend910B1.  Works before aclInit(); the text
 * stays valid.
 */
ACL_FUNC_VISIBILITY const char *aclrtGetSocName(void);

/*
 * The attributes that aclGetCannAttribute() knows here: an array that stays
 * valid, and its length.
 */
ACL_FUNC_VISIBILITY aclError aclGetCannAttributeList(const aclCannAttr **cannAttrList, size_t *num);

/* Whether the software has an attribute: 1 or 0. */
ACL_FUNC_VISIBILITY aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t *value);

/* A number that describes a device.  Prefer aclrtGetDeviceInfo(). */
ACL_FUNC_VISIBILITY aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo,
						    int64_t *value);

/* --- Logging ------------------------------------------------------------- */

typedef enum aclLogLevel {
	ACL_DEBUG = 0,
	ACL_INFO = 1,
	ACL_WARNING = 2,
	ACL_ERROR = 3,
} aclLogLevel;

/* Write a line to the runtime's log.  @fmt and what follows are as for printf(). */
ACL_FUNC_VISIBILITY void aclAppLog(aclLogLevel logLevel, const char *func, const char *file,
				   uint32_t line, const char *fmt, ...);

/*
 * The same for the place where it stands: a level, a format, and what the
 * format takes.
 */
#define ACL_APP_LOG(level, ...) aclAppLog(level, __func__, __FILE__, __LINE__, __VA_ARGS__)

#ifdef __cplusplus
}
#endif

#endif
