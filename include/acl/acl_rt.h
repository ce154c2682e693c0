/* SPDX-License-Identifier: MIT */
/*
 * acl_rt.h - the host runtime of an emulated NPU: devices, contexts, streams,
 * events, notifies, memory, kernels, captured models.
 *
 * Follows the public ACL runtime interface, version 1.17.
 *
 * Conventions
 * - A function returns ACL_SUCCESS or a code of acl_base_rt.h or of
 *   error_codes/rt_error_codes.h, unless its comment says otherwise;
 *   aclGetRecentErrMsg() then says in words what was wrong.
 * - What can be wrong with any call is not repeated at each one: NULL where a
 *   pointer is needed, an unknown enumerator or flag (ACL_ERROR_INVALID_PARAM or
 *   ACL_ERROR_RT_PARAM_INVALID), no device set in the thread
 *   (ACL_ERROR_RT_CONTEXT_NULL), a handle made in another context
 *   (ACL_ERROR_RT_STREAM_CONTEXT), a feature that is not there
 *   (ACL_ERROR_RT_FEATURE_NOT_SUPPORT).
 * - Handles are opaque.  A NULL stream is the default stream of the current
 *   context.  A function that takes a stream and does not say "waits" only queues
 *   a task; what goes wrong in the task is reported by a later synchronization.
 * - Device memory has ordinary 64-bit addresses, apart from all host memory; the
 *   host computes with them but does not dereference them.
 * - Mind the units of times: they are milliseconds, seconds or microseconds, as
 *   said at each function.
 */
#ifndef ACL_ACL_RT_H
#define ACL_ACL_RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Handles ------------------------------------------------------------- */

/* Further ones are in acl_base_rt.h. */
typedef void *aclrtDrvMemHandle;	/* physical memory */
typedef void *aclrtBinary;		/* kernels in memory */
typedef void *aclrtBinHandle;		/* kernels on a device */
typedef void *aclrtFuncHandle;		/* one of them */
typedef void *aclrtArgsHandle;		/* its arguments */
typedef void *aclrtParamHandle;		/* one of them */
typedef void *aclmdlRI;			/* a captured or built model */
typedef void *aclmdlRICondHandle;	/* one of its conditions */

/* --- Version ------------------------------------------------------------- */

/*
 * Of the interface that this header declares; aclrtGetVersion() tells the one
 * of the library.
 */
#define ACL_MAJOR_VERSION	1
#define ACL_MINOR_VERSION	17
#define ACL_PATCH_VERSION	0

#define ACL_PKG_VERSION_MAX_SIZE	128	/* bytes of a version string */
#define ACL_PKG_VERSION_PARTS_MAX_SIZE	64	/* bytes of one part of it */

/* Installed packages that have a version of their own. */
typedef enum aclCANNPackageName {
	ACL_PKG_NAME_CANN = 0,
	ACL_PKG_NAME_RUNTIME = 1,
	ACL_PKG_NAME_COMPILER = 2,
	ACL_PKG_NAME_HCCL = 3,
	ACL_PKG_NAME_TOOLKIT = 4,
	ACL_PKG_NAME_OPP = 5,
	ACL_PKG_NAME_OPP_KERNEL = 6,
	ACL_PKG_NAME_DRIVER = 7,
} aclCANNPackageName;

typedef struct aclCANNPackageVersion {
	char version[ACL_PKG_VERSION_MAX_SIZE];	/* the parts below, joined */
	char majorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char minorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char releaseVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char patchVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char reserved[ACL_PKG_VERSION_MAX_SIZE];
} aclCANNPackageVersion;

/*
 * Version of the runtime interface that the library offers, in three parts.
 * Deprecated: prefer aclsysGetVersionNum().
 */
ACL_FUNC_VISIBILITY aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion,
					     int32_t *patchVersion);

/*
 * Version of an installed package, whole and in parts.  Deprecated: prefer
 * aclsysGetVersionStr().
 */
ACL_FUNC_VISIBILITY aclError aclsysGetCANNVersion(aclCANNPackageName name,
						  aclCANNPackageVersion *version);

/*
 * Version of the package called @pkgName as a string; @versionStr has room for
 * ACL_PKG_VERSION_MAX_SIZE bytes.
 */
ACL_FUNC_VISIBILITY aclError aclsysGetVersionStr(char *pkgName, char *versionStr);

/* The same as one number that grows with the version, for comparisons. */
ACL_FUNC_VISIBILITY aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum);

/* --- Initialization ------------------------------------------------------ */

/* Modules that want to be called when the runtime starts or ends. */
typedef enum aclRegisterCallbackType {
	ACL_REG_TYPE_ACL_MODEL = 0,
	ACL_REG_TYPE_ACL_OP_EXECUTOR = 1,
	ACL_REG_TYPE_ACL_OP_CBLAS = 2,
	ACL_REG_TYPE_ACL_OP_COMPILER = 3,
	ACL_REG_TYPE_ACL_TDT_CHANNEL = 4,
	ACL_REG_TYPE_ACL_TDT_QUEUE = 5,
	ACL_REG_TYPE_ACL_DVPP = 6,
	ACL_REG_TYPE_ACL_RETR = 7,
	ACL_REG_TYPE_OTHER = 65535,
} aclRegisterCallbackType;

typedef aclError (*aclInitCallbackFunc)(const char *configStr, size_t len, void *userData);
typedef aclError (*aclFinalizeCallbackFunc)(void *userData);

/*
 * Start the runtime in this process.  @configPath names a JSON file, or is NULL
 * for the defaults; a file that is missing or no JSON gives
 * ACL_ERROR_INVALID_FILE or ACL_ERROR_PARSE_FILE.  Once more:
 * ACL_ERROR_REPEAT_INITIALIZE, which is harmless and counts as one more
 * reference (aclFinalizeReference()).
 */
ACL_FUNC_VISIBILITY aclError aclInit(const char *configPath);

/*
 * End the runtime however often it was started, and free what the process still
 * holds.  ACL_ERROR_REPEAT_FINALIZE if it is not running. aclInit() may follow.
 */
ACL_FUNC_VISIBILITY aclError aclFinalize(void);

/*
 * Give back one aclInit(); the last one ends the runtime as aclFinalize() does.
 * *@refCount gets the number of references left.
 */
ACL_FUNC_VISIBILITY aclError aclFinalizeReference(uint64_t *refCount);

/*
 * Have @cbFunc called by aclInit() with the text of the configuration, or at
 * once if the runtime is running.
 */
ACL_FUNC_VISIBILITY aclError aclInitCallbackRegister(aclRegisterCallbackType type,
						     aclInitCallbackFunc cbFunc, void *userData);

/* Take back aclInitCallbackRegister(). */
ACL_FUNC_VISIBILITY aclError aclInitCallbackUnRegister(aclRegisterCallbackType type,
						       aclInitCallbackFunc cbFunc);

/* Have @cbFunc called when the runtime ends. */
ACL_FUNC_VISIBILITY aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type,
							 aclFinalizeCallbackFunc cbFunc,
							 void *userData);

/* Take back aclFinalizeCallbackRegister(). */
ACL_FUNC_VISIBILITY aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type,
							   aclFinalizeCallbackFunc cbFunc);

/* --- Errors -------------------------------------------------------------- */

/* Whose last error is meant. */
typedef enum aclrtLastErrLevel {
	ACL_RT_THREAD_LEVEL = 0,	/* the calling thread's */
} aclrtLastErrLevel;

/*
 * The words for the calling thread's most recent error, starting with a code
 * such as EE1001; NULL if there is none.  Reading takes the message away; the
 * text stays valid until the thread's next call.
 */
ACL_FUNC_VISIBILITY const char *aclGetRecentErrMsg(void);

/* The last error of the thread, without clearing it. */
ACL_FUNC_VISIBILITY aclError aclrtPeekAtLastError(aclrtLastErrLevel level);

/* The last error of the thread; afterwards it is ACL_SUCCESS. */
ACL_FUNC_VISIBILITY aclError aclrtGetLastError(aclrtLastErrLevel level);

/*
 * A task that failed on the device, as exception callbacks get it; valid during
 * the callback.
 */
typedef struct rtExceptionInfo aclrtExceptionInfo;
typedef void (*aclrtExceptionInfoCallback)(aclrtExceptionInfo *exceptionInfo);
typedef void (*aclrtOpExceptionCallback)(aclrtExceptionInfo *exceptionInfo, void *userData);

/*
 * Have @callback called for every task of the process that fails; NULL ends
 * that.  Deprecated: there is only one such callback, see
 * aclrtExceptionInfoCallbackRegister().
 */
ACL_FUNC_VISIBILITY aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback);

/* Add a callback for failed tasks; several may be registered. */
ACL_FUNC_VISIBILITY aclError
aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback);

/* Take back aclrtExceptionInfoCallbackRegister(). */
ACL_FUNC_VISIBILITY aclError
aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback);

/* Have @callback called for failed tasks whose kernel is of this binary. */
ACL_FUNC_VISIBILITY aclError aclrtBinarySetExceptionCallback(aclrtBinHandle binHandle,
							     aclrtOpExceptionCallback callback,
							     void *userData);

/* Number of the failed task in its stream; UINT32_MAX if @info is NULL. */
ACL_FUNC_VISIBILITY uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo *info);

/* Number of the stream (aclrtStreamGetId()); UINT32_MAX if @info is NULL. */
ACL_FUNC_VISIBILITY uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo *info);

/* Kernel thread id of the thread that queued the task; UINT32_MAX if @info is NULL. */
ACL_FUNC_VISIBILITY uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo *info);

/* Device of the failed task; UINT32_MAX if @info is NULL. */
ACL_FUNC_VISIBILITY uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo *info);

/* Why the task failed, as a code; UINT32_MAX if @info is NULL. */
ACL_FUNC_VISIBILITY uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo *info);

/* Device address and length, in bytes, of the failed kernel's arguments. */
ACL_FUNC_VISIBILITY aclError aclrtGetArgsFromExceptionInfo(const aclrtExceptionInfo *info,
							   void **devArgsPtr, uint32_t *devArgsLen);

/* The kernel function that failed. */
ACL_FUNC_VISIBILITY aclError aclrtGetFuncHandleFromExceptionInfo(const aclrtExceptionInfo *info,
								 aclrtFuncHandle *func);

/* Number of the task that the calling thread queued last. */
ACL_FUNC_VISIBILITY aclError aclrtGetThreadLastTaskId(uint32_t *taskId);

#define UCE_INFO_RESERVED_SIZE			14
#define MAX_MEM_UCE_INFO_ARRAY_SIZE		128
#define ACL_RT_MEM_UCE_INFO_MAX_NUM		20	/* entries of an aclrtMemUceInfoArray */
#define ACL_RT_MAX_RECORD_PA_NUM_PER_DEV	20U	/* places that a device remembers */

/* A place in device memory with an uncorrectable error. */
typedef struct aclrtMemUceInfo {
	void *addr;
	size_t len;		/* bytes */
	size_t reserved[UCE_INFO_RESERVED_SIZE];
} aclrtMemUceInfo;

typedef struct aclrtMemUceInfoArray {
	size_t arraySize;	/* entries that are filled in */
	aclrtMemUceInfo memUceInfoArray[ACL_RT_MEM_UCE_INFO_MAX_NUM];
} aclrtMemUceInfoArray;

typedef enum aclrtErrorType {
	ACL_RT_NO_ERROR = 0,
	ACL_RT_ERROR_MEMORY = 1,
	ACL_RT_ERROR_L2 = 2,
	ACL_RT_ERROR_AICORE = 3,
	ACL_RT_ERROR_LINK = 4,
	ACL_RT_ERROR_L3_PORT = 5,
	ACL_RT_ERROR_OTHERS = 65535,
} aclrtErrorType;

typedef enum aclrtAicoreErrorType {
	ACL_RT_AICORE_ERROR_UNKNOWN = 0,
	ACL_RT_AICORE_ERROR_SW = 1,		/* the program's fault */
	ACL_RT_AICORE_ERROR_HW_LOCAL = 2,	/* this core's fault */
} aclrtAicoreErrorType;

/* Which member counts depends on the error's type. */
typedef union aclrtErrorInfoDetail {
	aclrtMemUceInfoArray uceInfo;		/* ACL_RT_ERROR_MEMORY */
	aclrtAicoreErrorType aicoreErrType;	/* ACL_RT_ERROR_AICORE */
} aclrtErrorInfoDetail;

typedef struct aclrtErrorInfo {
	uint8_t tryRepair;	/* 1: aclrtRepairError() may help */
	uint8_t hasDetail;	/* 1: @detail is filled in */
	uint8_t reserved[2];
	aclrtErrorType errorType;
	aclrtErrorInfoDetail detail;
} aclrtErrorInfo;

/* What is wrong with a device, in detail, after a call that failed. */
ACL_FUNC_VISIBILITY aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo *errorInfo);

/* Try to repair what aclrtGetErrorVerbose() told. */
ACL_FUNC_VISIBILITY aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo *errorInfo);

/*
 * List the places of a device's memory with uncorrectable errors: at most
 * @arraySize entries, @retSize gets how many there are.
 */
ACL_FUNC_VISIBILITY aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray,
						size_t arraySize, size_t *retSize);

/* Repair such places; their content is lost. */
ACL_FUNC_VISIBILITY aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray,
					       size_t arraySize);

/* --- Devices ------------------------------------------------------------- */

typedef enum aclrtRunMode {
	ACL_DEVICE = 0,	/* the program runs on the device */
	ACL_HOST = 1,	/* the program runs on a host */
} aclrtRunMode;

typedef enum aclrtTsId {
	ACL_TS_ID_AICORE = 0,	/* scheduler of the AI cores */
	ACL_TS_ID_AIVECTOR = 1,	/* scheduler of the vector cores */
	ACL_TS_ID_RESERVED = 2,
} aclrtTsId;

typedef enum aclrtDeviceStatus {
	ACL_RT_DEVICE_STATUS_NORMAL = 0,
	ACL_RT_DEVICE_STATUS_ABNORMAL = 1,
	ACL_RT_DEVICE_STATUS_END = 65535,
} aclrtDeviceStatus;

/* When a device-state callback is called. */
typedef enum aclrtDeviceState {
	ACL_RT_DEVICE_STATE_SET_PRE = 0,	/* before aclrtSetDevice() takes it */
	ACL_RT_DEVICE_STATE_SET_POST = 1,
	ACL_RT_DEVICE_STATE_RESET_PRE = 2,
	ACL_RT_DEVICE_STATE_RESET_POST = 3,	/* all of it is released */
} aclrtDeviceState;

/* When a task-abort callback is called. */
typedef enum aclrtDeviceTaskAbortStage {
	ACL_RT_DEVICE_TASK_ABORT_PRE = 0,
	ACL_RT_DEVICE_TASK_ABORT_POST = 1,
} aclrtDeviceTaskAbortStage;

typedef void (*aclrtDeviceStateCallback)(int32_t devId, aclrtDeviceState state, void *args);
typedef int32_t (*aclrtDeviceTaskAbortCallback)(int32_t devId, aclrtDeviceTaskAbortStage stage,
						uint32_t timeout, void *args);

/*
 * Number of devices this process may use (ASCEND_RT_VISIBLE_DEVICES selects).
 * Works before aclInit().
 */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceCount(uint32_t *count);

/*
 * Use a device in the calling thread: its default context becomes current.  The
 * first call in the process creates that context and its default stream; each
 * one counts, see aclrtResetDevice().  ACL_ERROR_RT_INVALID_DEVICEID if there
 * is no such device.
 */
ACL_FUNC_VISIBILITY aclError aclrtSetDevice(int32_t deviceId);

/*
 * Take back one aclrtSetDevice().  The last one in the process waits for the
 * work of the default context and frees it and the streams made in it; destroy
 * contexts of your own before.  An error if the device is not set.
 */
ACL_FUNC_VISIBILITY aclError aclrtResetDevice(int32_t deviceId);

/*
 * As the last aclrtResetDevice(), whatever the count.  An error if the device
 * is not set.
 */
ACL_FUNC_VISIBILITY aclError aclrtResetDeviceForce(int32_t deviceId);

/*
 * The device of the calling thread's current context.
 * ACL_ERROR_RT_CONTEXT_NULL if there is none.
 */
ACL_FUNC_VISIBILITY aclError aclrtGetDevice(int32_t *deviceId);

/* Whether this program runs on a host or on the device itself; here always ACL_HOST. */
ACL_FUNC_VISIBILITY aclError aclrtGetRunMode(aclrtRunMode *runMode);

/* Wait for all streams of the current context. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDevice(void);

/*
 * The same, for at most @timeout milliseconds; -1 waits without a limit.
 * ACL_ERROR_RT_STREAM_SYNC_TIMEOUT when the time is over.
 */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout);

/* Choose the task scheduler for what the calling thread queues. */
ACL_FUNC_VISIBILITY aclError aclrtSetTsDevice(aclrtTsId tsId);

/* Whether a device works. */
ACL_FUNC_VISIBILITY aclError aclrtQueryDeviceStatus(int32_t deviceId,
						    aclrtDeviceStatus *deviceStatus);

/*
 * Have @callback called when devices are set and reset.  @regName tells
 * registrations apart; NULL as @callback takes the one with that name back.
 */
ACL_FUNC_VISIBILITY aclError aclrtRegDeviceStateCallback(const char *regName,
							 aclrtDeviceStateCallback callback,
							 void *args);

/* Have @callback called before and after aclrtDeviceTaskAbort().  Names as above. */
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceTaskAbortCallback(const char *regName,
							     aclrtDeviceTaskAbortCallback callback,
							     void *args);

/*
 * Stop what runs on a device and drop what is queued.  @timeout in
 * milliseconds; 0 waits without a limit.
 */
ACL_FUNC_VISIBILITY aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout);

/* --- Device properties --------------------------------------------------- */

#define ACL_DEV_FEATURE_NOT_SUPPORT	0x00000000
#define ACL_DEV_FEATURE_SUPPORT		0x00000001

/* Features that aclrtGetDeviceCapability() tells about. */
typedef enum aclrtDevFeatureType {
	ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV = 1,
	ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV = 21,
} aclrtDevFeatureType;

/* Values of ACL_DEV_ATTR_HD_CONNECT_TYPE: how the host reaches the device. */
#define ACL_HOST_DEVICE_CONNECT_TYPE_PCIE	0
#define ACL_HOST_DEVICE_CONNECT_TYPE_HCCS	1
#define ACL_HOST_DEVICE_CONNECT_TYPE_UB		2

/* Values of ACL_DEV_ATTR_DEVICE_FORM_FACTOR. */
#define ACL_DEVICE_FORM_FACTOR_POD		0
#define ACL_DEVICE_FORM_FACTOR_A_K		1
#define ACL_DEVICE_FORM_FACTOR_A_X		2
#define ACL_DEVICE_FORM_FACTOR_PCIE_CARD	3

/* What aclrtGetDeviceInfo() can be asked. */
typedef enum aclrtDevAttr {
	ACL_DEV_ATTR_AICPU_CORE_NUM = 1,
	ACL_DEV_ATTR_AICORE_CORE_NUM = 101,
	ACL_DEV_ATTR_CUBE_CORE_NUM = 102,
	ACL_DEV_ATTR_VECTOR_CORE_NUM = 201,
	ACL_DEV_ATTR_WARP_SIZE = 202,
	ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE = 203,
	ACL_DEV_ATTR_LOCAL_MEM_PER_VECTOR_CORE = 204,	/* the former name */
	ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE = 204,	/* bytes */
	ACL_DEV_ATTR_MAX_GRID_DIM_X = 205,
	ACL_DEV_ATTR_MAX_GRID_DIM_Y = 206,
	ACL_DEV_ATTR_MAX_GRID_DIM_Z = 207,
	ACL_DEV_ATTR_MAX_BLOCK_PER_GRID = 208,
	ACL_DEV_ATTR_MAX_THREADS_PER_BLOCK = 209,
	ACL_DEV_ATTR_MAX_BLOCK_DIM_X = 210,
	ACL_DEV_ATTR_MAX_BLOCK_DIM_Y = 211,
	ACL_DEV_ATTR_MAX_BLOCK_DIM_Z = 212,
	ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE = 301,	/* bytes */
	ACL_DEV_ATTR_L2_CACHE_SIZE = 302,		/* bytes */
	ACL_DEV_ATTR_SMP_ID = 401,
	ACL_DEV_ATTR_PHY_CHIP_ID = 402,
	ACL_DEV_ATTR_SUPER_POD_DEVICE_ID = 403,
	ACL_DEV_ATTR_SUPER_POD_DEVIDE_ID = 403,		/* the former name's spelling */
	ACL_DEV_ATTR_SUPER_POD_SERVER_ID = 404,
	ACL_DEV_ATTR_SUPER_POD_ID = 405,
	ACL_DEV_ATTR_CUST_OP_PRIVILEGE = 406,
	ACL_DEV_ATTR_MAINBOARD_ID = 407,
	ACL_DEV_ATTR_HD_CONNECT_TYPE = 408,
	ACL_DEV_ATTR_DEVICE_FORM_FACTOR = 409,
	ACL_DEV_ATTR_IS_VIRTUAL = 501,			/* 1: a part of a device */
	ACL_DEV_ATTR_NPU_ARCH = 601,
} aclrtDevAttr;

typedef struct aclrtUtilizationExtendInfo aclrtUtilizationExtendInfo;

/* Loads in percent; -1: not known, or there is no such unit. */
typedef struct aclrtUtilizationInfo {
	int32_t cubeUtilization;
	int32_t vectorUtilization;
	int32_t aicpuUtilization;
	int32_t memoryUtilization;
	aclrtUtilizationExtendInfo *utilizationExtend;	/* reserved, NULL */
} aclrtUtilizationInfo;

typedef struct aclrtUuid {
	char bytes[16];
} aclrtUuid;

/* Links between two devices, as bits of aclrtGetDevicesTopo(). */
#define ACL_RT_DEVS_TOPOLOGY_HCCS	0x01ULL
#define ACL_RT_DEVS_TOPOLOGY_PIX	0x02ULL	/* below one PCIe switch */
#define ACL_RT_DEVS_TOPOLOGY_PIB	0x04ULL	/* across PCIe switches */
#define ACL_RT_DEVS_TOPOLOGY_PHB	0x08ULL	/* across a PCIe host bridge */
#define ACL_RT_DEVS_TOPOLOGY_SYS	0x10ULL	/* across NUMA nodes */
#define ACL_RT_DEVS_TOPOLOGY_SIO	0x20ULL	/* two dies of one package */
#define ACL_RT_DEVS_TOPOLOGY_HCCS_SW	0x40ULL	/* HCCS through a switch */

/* Resources of a device that can be limited. */
typedef enum aclrtDevResLimitType {
	ACL_RT_DEV_RES_CUBE_CORE = 0,
	ACL_RT_DEV_RES_VECTOR_CORE = 1,
} aclrtDevResLimitType;

/* Sizes that aclrtDeviceSetLimit() sets, in bytes. */
typedef enum aclrtDeviceLimit {
	ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE = 0,
	ACL_RT_DEV_LIMIT_SIMT_DVG_WARP_STACK_SIZE = 1,
	ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE = 2,
	ACL_RT_DEV_LIMIT_SIMD_PRINTF_FIFO_SIZE_PER_CORE = 3,
	ACL_RT_DEV_LIMIT_SIMT_PRINTF_FIFO_SIZE = 4,
} aclrtDeviceLimit;

typedef enum aclrtFloatOverflowMode {
	ACL_RT_OVERFLOW_MODE_SATURATION = 0,	/* results stop at the largest number */
	ACL_RT_OVERFLOW_MODE_INFNAN = 1,	/* IEEE infinities and NaNs */
	ACL_RT_OVERFLOW_MODE_UNDEF = 2,
} aclrtFloatOverflowMode;

/* Atomic operations that a device may be able to do on other memory. */
typedef enum aclrtAtomicOperation {
	ACL_RT_ATOMIC_OPERATION_INTEGER_ADD = 0,
	ACL_RT_ATOMIC_OPERATION_INTEGER_MIN = 1,
	ACL_RT_ATOMIC_OPERATION_INTEGER_MAX = 2,
	ACL_RT_ATOMIC_OPERATION_INTEGER_INCREMENT = 3,
	ACL_RT_ATOMIC_OPERATION_INTEGER_DECREMENT = 4,
	ACL_RT_ATOMIC_OPERATION_AND = 5,
	ACL_RT_ATOMIC_OPERATION_OR = 6,
	ACL_RT_ATOMIC_OPERATION_XOR = 7,
	ACL_RT_ATOMIC_OPERATION_EXCHANGE = 8,
	ACL_RT_ATOMIC_OPERATION_CAS = 9,
	ACL_RT_ATOMIC_OPERATION_FLOAT_ADD = 10,
	ACL_RT_ATOMIC_OPERATION_FLOAT_MIN = 11,
	ACL_RT_ATOMIC_OPERATION_FLOAT_MAX = 12,
	ACL_RT_ATOMIC_OPERATION_DMA_ADD = 30,
	ACL_RT_ATOMIC_OPERATION_DMA_MIN = 31,
	ACL_RT_ATOMIC_OPERATION_DMA_MAX = 32,
	ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_ADD = 40,
	ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_MIN = 41,
	ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_MAX = 42,
	ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_CAS = 43,
	ACL_RT_ATOMIC_OPERATION_SIMD_SCALAR_EXCH = 44,
} aclrtAtomicOperation;

/* For which operands it can: bits. */
typedef enum aclrtAtomicOperationCapability {
	ACL_RT_ATOMIC_CAPABILITY_SIGNED = 1,
	ACL_RT_ATOMIC_CAPABILITY_UNSIGNED = 2,
	ACL_RT_ATOMIC_CAPABILITY_REDUCATION = 4,	/* the former spelling */
	ACL_RT_ATOMIC_CAPABILITY_REDUCTION = 4,
	ACL_RT_ATOMIC_CAPABILITY_SCALAR8 = 8,
	ACL_RT_ATOMIC_CAPABILITY_SCALAR16 = 16,
	ACL_RT_ATOMIC_CAPABILITY_SCALAR32 = 32,
	ACL_RT_ATOMIC_CAPABILITY_SCALAR64 = 64,
	ACL_RT_ATOMIC_CAPABILITY_SCALAR128 = 128,
	ACL_RT_ATOMIC_CAPABILITY_VECTOR32X4 = 256,
} aclrtAtomicOperationCapability;

/*
 * A number that describes the device; see aclrtDevAttr.
 * ACL_ERROR_RT_INVALID_DEVICEID or ACL_ERROR_INVALID_PARAM.
 */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr,
						int64_t *value);

/*
 * Whether the device has a feature: ACL_DEV_FEATURE_SUPPORT or
 * ACL_DEV_FEATURE_NOT_SUPPORT.
 */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceCapability(int32_t deviceId,
						      aclrtDevFeatureType devFeatureType,
						      int32_t *value);

/* Present loads of a device's units. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceUtilizationRate(int32_t deviceId,
							   aclrtUtilizationInfo *utilizationInfo);

/* 16 bytes that identify the device among all. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid);

/*
 * PCI address of the device as text with the terminating zero; @len bytes of
 * room, 13 are enough.
 */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetPCIBusId(int32_t deviceId, char *pciBusId, int32_t len);

/* The device with that PCI address.  ACL_ERROR_RT_INVALID_DEVICEID if there is none. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetByPCIBusId(const char *pciBusId, int32_t *deviceId);

/* Links between two devices: ACL_RT_DEVS_TOPOLOGY_* bits. */
ACL_FUNC_VISIBILITY aclError aclrtGetDevicesTopo(uint32_t deviceId, uint32_t otherDeviceId,
						 uint64_t *value);

/*
 * Least and greatest priority of streams here.  A lower number is a higher
 * priority: *@leastPriority is the larger one.
 */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority,
							       int32_t *greatestPriority);

/*
 * Process id of this process as the device's driver sees it, outside of any
 * container: what the functions that set import pids take.
 */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetBareTgid(int32_t *pid);

/* Whether kernels built for @socVersion run here: 1 or 0. */
ACL_FUNC_VISIBILITY aclError aclrtCheckArchCompatibility(const char *socVersion,
							 int32_t *canCompatible);

/*
 * What atomic operations the device can do on host memory: for each of @count
 * @operations a set of ACL_RT_ATOMIC_CAPABILITY_* bits, 0 for none.
 */
ACL_FUNC_VISIBILITY aclError
aclrtDeviceGetHostAtomicCapabilities(uint32_t *capabilities, const aclrtAtomicOperation *operations,
				     const uint32_t count, int32_t deviceId);

/* The same on memory of another device. */
ACL_FUNC_VISIBILITY aclError
aclrtDeviceGetP2PAtomicCapabilities(uint32_t *capabilities, const aclrtAtomicOperation *operations,
				    const uint32_t count, int32_t srcDeviceId, int32_t dstDeviceId);

/* How results of the current device overflow. */
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode);

/* The mode that aclrtSetDeviceSatMode() set. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode);

/*
 * Set the size of a stack or of a print buffer of the current device, in bytes.
 * ACL_ERROR_INVALID_PARAM if it is out of range.
 */
ACL_FUNC_VISIBILITY aclError aclrtDeviceSetLimit(aclrtDeviceLimit limit, size_t value);

/* The size that is in force. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetLimit(aclrtDeviceLimit limit, size_t *value);

/* Write back and drop what the current device's L2 cache holds; @reserve is NULL. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceL2CacheFlush(void *reserve);

/* Address of the area by which cores of the device synchronize. */
ACL_FUNC_VISIBILITY aclError aclrtGetHardwareSyncAddr(void **addr);

/* --- Device numbers ------------------------------------------------------ */

/*
 * A user id is what aclrtSetDevice() takes; the visible devices
 * (ASCEND_RT_VISIBLE_DEVICES) map it to a logic id, and the driver maps that to
 * a physical id.  All of these give ACL_ERROR_RT_INVALID_DEVICEID for a number
 * that is not there.
 */

/* User id to logic id. */
ACL_FUNC_VISIBILITY aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevId,
							   int32_t *const logicDevId);

/* Logic id to user id. */
ACL_FUNC_VISIBILITY aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId,
							   int32_t *const userDevId);

/* Physical id to logic id. */
ACL_FUNC_VISIBILITY aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId,
							  int32_t *const logicDevId);

/* Logic id to physical id. */
ACL_FUNC_VISIBILITY aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId,
							  int32_t *const phyDevId);

/* Physical id to user id. */
ACL_FUNC_VISIBILITY aclError aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId,
							 int32_t *const userDevId);

/* User id to physical id. */
ACL_FUNC_VISIBILITY aclError aclrtGetPhyDevIdByUserDevId(const int32_t userDevId,
							 int32_t *const phyDevId);

/* --- Peer access --------------------------------------------------------- */

/*
 * Whether memory of @peerDeviceId can be made reachable from @deviceId: 1 or 0.
 * 0 for the device itself.
 */
ACL_FUNC_VISIBILITY aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId,
						      int32_t peerDeviceId);

/*
 * Let the current device reach memory of @peerDeviceId; not the other way
 * round.  @flags is 0.  Needed before copies between the two.
 */
ACL_FUNC_VISIBILITY aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags);

/* Take back aclrtDeviceEnablePeerAccess(). */
ACL_FUNC_VISIBILITY aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId);

/* Whether access is enabled now: 1 or 0. */
ACL_FUNC_VISIBILITY aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId,
							 int32_t *status);

/* --- Limits on cores ----------------------------------------------------- */

/* Limit the cores of one kind that kernels of a device get. */
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
						    uint32_t value);

/* The limit that is in force; without one, all the cores there are. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
						    uint32_t *value);

/* Lift the limits of a device. */
ACL_FUNC_VISIBILITY aclError aclrtResetDeviceResLimit(int32_t deviceId);

/* The same for kernels of one stream; goes before the device's limit. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
						    uint32_t value);

/* The stream's limit, or the device's if the stream has none. */
ACL_FUNC_VISIBILITY aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
						    uint32_t *value);

/* Lift the limits of a stream. */
ACL_FUNC_VISIBILITY aclError aclrtResetStreamResLimit(aclrtStream stream);

/*
 * Make the stream's limits those that aclrtGetResInCurrentThread() tells in the
 * calling thread.
 */
ACL_FUNC_VISIBILITY aclError aclrtUseStreamResInCurrentThread(aclrtStream stream);

/* Take back aclrtUseStreamResInCurrentThread(). */
ACL_FUNC_VISIBILITY aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream);

/* Number of cores that the calling thread may count on. */
ACL_FUNC_VISIBILITY aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value);

/* --- Contexts ------------------------------------------------------------ */

/*
 * Make a context with a default stream on a device, and make it current in the
 * calling thread.  Threads may share a context.
 */
ACL_FUNC_VISIBILITY aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId);

/*
 * Destroy a context that aclrtCreateContext() made, with what is left in it.
 * The default context of a device goes with aclrtResetDevice() only.
 */
ACL_FUNC_VISIBILITY aclError aclrtDestroyContext(aclrtContext context);

/* Make a context current in the calling thread; its device with it. */
ACL_FUNC_VISIBILITY aclError aclrtSetCurrentContext(aclrtContext context);

/* The calling thread's current context.  ACL_ERROR_RT_CONTEXT_NULL if there is none. */
ACL_FUNC_VISIBILITY aclError aclrtGetCurrentContext(aclrtContext *context);

/* The stream that NULL stands for in the current context. */
ACL_FUNC_VISIBILITY aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream);

/*
 * Whether the default context of a device exists: *@active is 1 or 0.  *@flags
 * is reserved.
 */
ACL_FUNC_VISIBILITY aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags,
						     int32_t *active);

/* Set an option of the current context. */
ACL_FUNC_VISIBILITY aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value);

/*
 * An option of the current context.  ACL_ERROR_RT_SYSPARAMOPT_NOT_SET if it was
 * never set.
 */
ACL_FUNC_VISIBILITY aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t *value);

/* Set an option for the whole process. */
ACL_FUNC_VISIBILITY aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value);

/* An option of the process.  ACL_ERROR_RT_SYSPARAMOPT_NOT_SET if it was never set. */
ACL_FUNC_VISIBILITY aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value);

/* --- Core groups --------------------------------------------------------- */

typedef struct tagRtGroupInfo aclrtGroupInfo;

/* What aclrtGetGroupInfoDetail() can be asked. */
typedef enum aclrtGroupAttr {
	ACL_GROUP_AICORE_INT = 0,
	ACL_GROUP_AIV_INT = 1,
	ACL_GROUP_AIC_INT = 2,
	ACL_GROUP_SDMANUM_INT = 3,
	ACL_GROUP_ASQNUM_INT = 4,
	ACL_GROUP_GROUPID_INT = 5,
} aclrtGroupAttr;

/*
 * Use a group of the device's cores for what the calling thread queues.
 * ACL_ERROR_RT_GROUP_NOT_CREATE if there is no such group.
 */
ACL_FUNC_VISIBILITY aclError aclrtSetGroup(int32_t groupId);

/* Number of groups; 0 if the device is not divided. */
ACL_FUNC_VISIBILITY aclError aclrtGetGroupCount(uint32_t *count);

/* Make room for the description of all groups; NULL if that fails. */
ACL_FUNC_VISIBILITY aclrtGroupInfo *aclrtCreateGroupInfo(void);

/* Free it. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyGroupInfo(aclrtGroupInfo *groupInfo);

/* Fill it in. */
ACL_FUNC_VISIBILITY aclError aclrtGetAllGroupInfo(aclrtGroupInfo *groupInfo);

/*
 * One property of one group, or of all if @groupIndex is -1: at most @valueLen
 * bytes to @attrValue, *@paramRetSize gets their number.
 */
ACL_FUNC_VISIBILITY aclError aclrtGetGroupInfoDetail(const aclrtGroupInfo *groupInfo,
						     int32_t groupIndex, aclrtGroupAttr attr,
						     void *attrValue, size_t valueLen,
						     size_t *paramRetSize);

/* --- Streams ------------------------------------------------------------- */

/* Flags of a stream. */
#define ACL_STREAM_FAST_LAUNCH		0x00000001U	/* resources taken at once */
#define ACL_STREAM_FAST_SYNC		0x00000002U	/* the host polls when it synchronizes */
#define ACL_STREAM_PERSISTENT		0x00000004U	/* tasks stay, for a model that is built */
#define ACL_STREAM_HUGE			0x00000008U	/* a longer queue */
#define ACL_STREAM_CPU_SCHEDULE		0x00000010U	/* scheduled by the device's CPU */
#define ACL_STREAM_DEVICE_USE_ONLY	0x00000020U	/* not for the host to queue on */

/* What a failed task does to those behind it: aclrtSetStreamFailureMode(). */
#define ACL_CONTINUE_ON_FAILURE	0x00000000U
#define ACL_STOP_ON_FAILURE	0x00000001U

/* Members of aclrtStreamConfigHandle, for aclrtSetStreamConfigOpt(). */
typedef enum aclrtStreamConfigAttr {
	ACL_RT_STREAM_WORK_ADDR_PTR = 0,
	ACL_RT_STREAM_WORK_SIZE = 1,
	ACL_RT_STREAM_FLAG = 2,
	ACL_RT_STREAM_PRIORITY = 3,
} aclrtStreamConfigAttr;

typedef struct aclrtStreamConfigHandle {
	void *workptr;		/* device memory for the stream; NULL: of the runtime */
	size_t workSize;	/* bytes at @workptr */
	size_t flag;		/* ACL_STREAM_* */
	uint32_t priority;	/* see aclrtDeviceGetStreamPriorityRange() */
} aclrtStreamConfigHandle;

typedef enum aclrtStreamStatus {
	ACL_STREAM_STATUS_COMPLETE = 0,	/* nothing is queued */
	ACL_STREAM_STATUS_NOT_READY = 1,
	ACL_STREAM_STATUS_RESERVED = 65535,
} aclrtStreamStatus;

typedef enum aclrtStreamAttr {
	ACL_STREAM_ATTR_FAILURE_MODE = 1,
	ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK = 2,
	ACL_STREAM_ATTR_USER_CUSTOM_TAG = 3,
	ACL_STREAM_ATTR_CACHE_OP_INFO = 4,
	ACL_STREAM_ATTR_PRIORITY = 5,
} aclrtStreamAttr;

typedef union aclrtStreamAttrValue {
	uint64_t failureMode;		/* ACL_CONTINUE_ON_FAILURE, ACL_STOP_ON_FAILURE */
	uint32_t overflowSwitch;	/* 1: check floating-point overflow */
	uint32_t userCustomTag;
	uint32_t cacheOpInfoSwitch;	/* 1: keep aclrtCacheLastTaskOpInfo()'s */
	uint32_t streamPriority;
	uint32_t reserve[4];
} aclrtStreamAttrValue;

typedef enum aclrtStreamState {
	ACL_RT_STREAM_STATE_CREATE_POST = 1,
	ACL_RT_STREAM_STATE_DESTROY_PRE = 2,
} aclrtStreamState;

typedef void (*aclrtStreamStateCallback)(aclrtStream stm, aclrtStreamState state, void *args);

/*
 * Make a stream in the current context.  Tasks of a stream run in the order
 * they were queued; streams know no order among each other.
 * ACL_ERROR_RT_NO_STREAM_RESOURCE if the device has no more (about two
 * thousand).
 */
ACL_FUNC_VISIBILITY aclError aclrtCreateStream(aclrtStream *stream);

/*
 * The same with ACL_STREAM_* flags.  @priority is reserved, give 0:
 * aclrtCreateStreamV2() sets one.
 */
ACL_FUNC_VISIBILITY aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority,
							 uint32_t flag);

/* Make a description for aclrtCreateStreamV2(); NULL if there is no memory. */
ACL_FUNC_VISIBILITY aclrtStreamConfigHandle *aclrtCreateStreamConfigHandle(void);

/* Free it; streams made with it stay. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle *handle);

/*
 * Set one member of it: @attrValue points to @valueSize bytes of its type.
 * ACL_ERROR_INVALID_PARAM if that is not its size.
 */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle *handle,
						     aclrtStreamConfigAttr attr,
						     const void *attrValue, size_t valueSize);

/* Make a stream as @handle describes. */
ACL_FUNC_VISIBILITY aclError aclrtCreateStreamV2(aclrtStream *stream,
						 const aclrtStreamConfigHandle *handle);

/* Wait for the stream's tasks, then free it. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyStream(aclrtStream stream);

/* Free it without waiting; what is queued is dropped. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyStreamForce(aclrtStream stream);

/*
 * Wait for all tasks of the stream.  Returns what the first failed one of them
 * failed with, or ACL_ERROR_RT_STREAM_ABORT if it was aborted meanwhile.
 */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeStream(aclrtStream stream);

/*
 * The same, for at most @timeout milliseconds; -1 waits without a limit.
 * ACL_ERROR_RT_STREAM_SYNC_TIMEOUT when the time is over; the tasks stay
 * queued.
 */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);

/* Whether the stream has work left, without waiting. */
ACL_FUNC_VISIBILITY aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);

/*
 * What happens to the tasks behind one that fails: ACL_CONTINUE_ON_FAILURE runs
 * them, ACL_STOP_ON_FAILURE drops them and makes the other streams of the
 * context fail, too.  To be set once.
 */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);

/* The stream's number on its device. */
ACL_FUNC_VISIBILITY aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId);

/* The stream's priority. */
ACL_FUNC_VISIBILITY aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority);

/* The flags the stream was made with. */
ACL_FUNC_VISIBILITY aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags);

/* Number of streams that can still be made on the current device. */
ACL_FUNC_VISIBILITY aclError aclrtGetStreamAvailableNum(uint32_t *streamCount);

/* Set an attribute of a stream. */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamAttribute(aclrtStream stream,
						     aclrtStreamAttr stmAttrType,
						     aclrtStreamAttrValue *value);

/* An attribute of a stream. */
ACL_FUNC_VISIBILITY aclError aclrtGetStreamAttribute(aclrtStream stream,
						     aclrtStreamAttr stmAttrType,
						     aclrtStreamAttrValue *value);

/*
 * Stop the task that runs and drop those queued; those who wait for the stream
 * get ACL_ERROR_RT_STREAM_ABORT.  The stream can be used again.
 */
ACL_FUNC_VISIBILITY aclError aclrtStreamAbort(aclrtStream stream);

/* Stop the task that runs, and only that: what is queued behind it stays. */
ACL_FUNC_VISIBILITY aclError aclrtStreamStop(aclrtStream stream);

/* Drop the tasks that an ACL_STREAM_PERSISTENT stream keeps. */
ACL_FUNC_VISIBILITY aclError aclrtPersistentTaskClean(aclrtStream stream);

/*
 * Have @callback called for streams that were made and before they are
 * destroyed.  @regName tells registrations apart; NULL as @callback takes that
 * one back.
 */
ACL_FUNC_VISIBILITY aclError aclrtRegStreamStateCallback(const char *regName,
							 aclrtStreamStateCallback callback,
							 void *args);

/*
 * Allow or forbid the report of floating-point overflow in the stream's kernels
 * (1 or 0).
 */
ACL_FUNC_VISIBILITY aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag);

/* What aclrtSetStreamOverflowSwitch() set. */
ACL_FUNC_VISIBILITY aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag);

/* --- Branches among streams ---------------------------------------------- */

/* How aclrtSwitchStream() compares. */
typedef enum aclrtCondition {
	ACL_RT_EQUAL = 0,
	ACL_RT_NOT_EQUAL = 1,
	ACL_RT_GREATER = 2,
	ACL_RT_GREATER_OR_EQUAL = 3,
	ACL_RT_LESS = 4,
	ACL_RT_LESS_OR_EQUAL = 5,
} aclrtCondition;

typedef enum aclrtCompareDataType {
	ACL_RT_SWITCH_INT32 = 0,
	ACL_RT_SWITCH_INT64 = 1,
} aclrtCompareDataType;

/* When this task of @stream runs, let @activeStream start. */
ACL_FUNC_VISIBILITY aclError aclrtActiveStream(aclrtStream activeStream, aclrtStream stream);

/*
 * When this task of @stream runs, compare two values in device memory and let
 * @trueStream or @falseStream start.
 */
ACL_FUNC_VISIBILITY aclError aclrtSwitchStream(void *leftValue, aclrtCondition cond,
					       void *rightValue, aclrtCompareDataType dataType,
					       aclrtStream trueStream, aclrtStream falseStream,
					       aclrtStream stream);

/* Make a label, a place in a stream to jump to. */
ACL_FUNC_VISIBILITY aclError aclrtCreateLabel(aclrtLabel *label);

/* Put the label into the stream, behind what is queued. */
ACL_FUNC_VISIBILITY aclError aclrtSetLabel(aclrtLabel label, aclrtStream stream);

/* Free a label. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyLabel(aclrtLabel label);

/* Join @num labels for aclrtSwitchLabelByIndex(). */
ACL_FUNC_VISIBILITY aclError aclrtCreateLabelList(aclrtLabel *labels, size_t num,
						  aclrtLabelList *labelList);

/* Free a list; its labels stay. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyLabelList(aclrtLabelList labelList);

/*
 * When this task runs, jump to the label whose index is the 32-bit value at
 * @ptr in device memory; to the last one if the value is not below @maxValue.
 */
ACL_FUNC_VISIBILITY aclError aclrtSwitchLabelByIndex(void *ptr, uint32_t maxValue,
						     aclrtLabelList labelList, aclrtStream stream);

/* --- Events -------------------------------------------------------------- */

/* Flags of aclrtCreateEventWithFlag() and aclrtCreateEventExWithFlag(). */
#define ACL_EVENT_SYNC				0x00000001U	/* streams may wait for it */
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS	0x00000002U	/* progress can be queried */
#define ACL_EVENT_TIME_LINE			0x00000008U	/* it has a time */
#define ACL_EVENT_DEVICE_USE_ONLY		0x00000010U	/* for tasks of the device only */
#define ACL_EVENT_EXTERNAL			0x00000020U	/* across a captured model's edge */
#define ACL_EVENT_IPC				0x00000040U	/* between processes; alone */

/*
 * Flags of aclrtRecordEventWithFlag() and aclrtStreamWaitEventWithFlag():
 * EXTERNAL keeps the event out of the model that is being captured.
 */
#define ACL_EVENT_RECORD_DEFAULT	0x0U
#define ACL_EVENT_RECORD_EXTERNAL	0x01U
#define ACL_EVENT_WAIT_DEFAULT		0x0U
#define ACL_EVENT_WAIT_EXTERNAL		0x01U

/* Beware: 0 means complete in two of these enumerations and not ready in one. */
typedef enum aclrtEventStatus {
	ACL_EVENT_STATUS_COMPLETE = 0,
	ACL_EVENT_STATUS_NOT_READY = 1,
	ACL_EVENT_STATUS_RESERVED = 2,
} aclrtEventStatus;

typedef enum aclrtEventRecordedStatus {
	ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
	ACL_EVENT_RECORDED_STATUS_COMPLETE = 1,
} aclrtEventRecordedStatus;

typedef enum aclrtEventWaitStatus {
	ACL_EVENT_WAIT_STATUS_COMPLETE = 0,
	ACL_EVENT_WAIT_STATUS_NOT_READY = 1,
	ACL_EVENT_WAIT_STATUS_RESERVED = 65535,
} aclrtEventWaitStatus;

#define ACL_IPC_EVENT_HANDLE_SIZE	64U

/* An event's name for other processes; send it as bytes. */
typedef struct aclrtIpcEventHandle {
	char reserved[ACL_IPC_EVENT_HANDLE_SIZE];
} aclrtIpcEventHandle;

/*
 * Make an event with a time that streams may wait for.  It takes one of the
 * device's event ids when it is recorded, and cannot be reset.
 */
ACL_FUNC_VISIBILITY aclError aclrtCreateEvent(aclrtEvent *event);

/*
 * Make an event of which streams reset what they waited for: record, wait, then
 * aclrtResetEvent().  With ACL_EVENT_SYNC it takes an event id at once
 * (ACL_ERROR_RT_NO_EVENT_RESOURCE); with ACL_EVENT_TIME_LINE alone it has a
 * time, and nobody can wait.
 */
ACL_FUNC_VISIBILITY aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);

/*
 * Make an event that may be recorded again and again: a wait is for the record
 * before it.  Never recorded, it counts as complete.  No aclrtResetEvent(),
 * aclrtQueryEvent(), aclrtQueryEventWaitStatus().
 */
ACL_FUNC_VISIBILITY aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);

/* Destroy an event.  Tasks that are queued and use it still run. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyEvent(aclrtEvent event);

/*
 * Record the event when the stream gets there.  May block while the device has
 * no event id left.
 */
ACL_FUNC_VISIBILITY aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);

/* The same with an ACL_EVENT_RECORD_* flag. */
ACL_FUNC_VISIBILITY aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream,
						      uint32_t flag);

/* Have the stream wait until the event is recorded. */
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);

/*
 * The same, for at most @timeout seconds; 0 waits without a limit.  Then the
 * task fails.
 */
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event,
							     int32_t timeout);

/*
 * The same with an ACL_EVENT_WAIT_* flag.  @timeout is in seconds; it is 0 with
 * ACL_EVENT_WAIT_EXTERNAL.
 */
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event,
							  uint32_t timeout, uint32_t flag);

/*
 * Make the event one that was not recorded, when the stream gets there: for
 * events of aclrtCreateEventWithFlag(), after the wait.
 */
ACL_FUNC_VISIBILITY aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);

/*
 * Whether the event is complete, without waiting.  Deprecated: prefer
 * aclrtQueryEventStatus().
 */
ACL_FUNC_VISIBILITY aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status);

/* Whether what was recorded is complete, without waiting. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEventStatus(aclrtEvent event,
						   aclrtEventRecordedStatus *status);

/* Whether all streams that wait for the event went on. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEventWaitStatus(aclrtEvent event,
						       aclrtEventWaitStatus *status);

/* Wait in the calling thread until the event is complete. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEvent(aclrtEvent event);

/*
 * The same, for at most @timeout milliseconds; -1 waits without a limit.
 * ACL_ERROR_RT_EVENT_SYNC_TIMEOUT when the time is over.
 */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);

/*
 * Time between two recorded events in milliseconds.
 * ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID if one has no time yet,
 * ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL if @endEvent was before @startEvent.
 */
ACL_FUNC_VISIBILITY aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent,
						   aclrtEvent endEvent);

/* When the event was recorded, in microseconds since the device started. */
ACL_FUNC_VISIBILITY aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp);

/* The event's number on its device. */
ACL_FUNC_VISIBILITY aclError aclrtGetEventId(aclrtEvent event, uint32_t *eventId);

/* Number of event ids that the current device has left. */
ACL_FUNC_VISIBILITY aclError aclrtGetEventAvailNum(uint32_t *eventCount);

/* Name an ACL_EVENT_IPC event for other processes. */
ACL_FUNC_VISIBILITY aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle *handle);

/* Open such an event of another process; end it with aclrtDestroyEvent(). */
ACL_FUNC_VISIBILITY aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent *event);

/* --- Notifies ------------------------------------------------------------ */

/* Flags of aclrtCreateNotify() and aclrtCntNotifyCreate(). */
#define ACL_NOTIFY_DEFAULT		0x00000000U
#define ACL_NOTIFY_DEVICE_USE_ONLY	0x00000001U	/* for tasks of the device only */

#define ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT			0x0UL
#define ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION	0x02UL	/* any process may import */
#define ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT			0x0UL
#define ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS		0x02UL	/* peer access, too */

/* Processes of another server, for the functions ...InterServer(). */
typedef struct aclrtServerPid {
	uint32_t sdid;		/* the device's number in its super pod */
	int32_t *pid;
	size_t num;		/* entries at @pid */
} aclrtServerPid;

/*
 * Make a notify: a flag in the device, for one stream to set and one to wait
 * for, also across devices and processes.  ACL_ERROR_RT_NO_NOTIFY_RESOURCE if
 * the device has no more.
 */
ACL_FUNC_VISIBILITY aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag);

/* Destroy a notify, own or imported; each side does that. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyNotify(aclrtNotify notify);

/* Set the notify when the stream gets there. */
ACL_FUNC_VISIBILITY aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);

/*
 * Have the stream wait until the notify is set, and clear it.  At most @timeout
 * seconds; 0 waits without a limit.
 */
ACL_FUNC_VISIBILITY aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream,
						     uint32_t timeout);

/* The notify's number on its device. */
ACL_FUNC_VISIBILITY aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId);

/* Clear @num notifies of the current device at once. */
ACL_FUNC_VISIBILITY aclError aclrtNotifyBatchReset(aclrtNotify *notifies, size_t num);

/* Name the notify for other processes.  @key has room for @len bytes, 65 or more. */
ACL_FUNC_VISIBILITY aclError aclrtNotifyGetExportKey(aclrtNotify notify, char *key, size_t len,
						     uint64_t flags);

/*
 * Allow processes to import it (aclrtDeviceGetBareTgid() of each), unless it
 * was exported for all.
 */
ACL_FUNC_VISIBILITY aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t *pid, size_t num);

/* The same for processes of other servers. */
ACL_FUNC_VISIBILITY aclError aclrtNotifySetImportPidInterServer(aclrtNotify notify,
								aclrtServerPid *serverPids,
								size_t num);

/* Open a notify of another process by its key. */
ACL_FUNC_VISIBILITY aclError aclrtNotifyImportByKey(aclrtNotify *notify, const char *key,
						    uint64_t flags);

/* --- Counting notifies --------------------------------------------------- */

/* What a record does with the count. */
typedef enum aclrtCntNotifyRecordMode {
	ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE = 0,
	ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE = 1,
	ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE = 2,
	ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE = 4,
} aclrtCntNotifyRecordMode;

/* How a wait compares the count with its value. */
typedef enum aclrtCntNotifyWaitMode {
	ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE = 0,
	ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE = 1,
	ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE = 2,
	ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE = 3,
	ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE = 4,	/* (count & value) == value */
} aclrtCntNotifyWaitMode;

typedef struct aclrtCntNotifyRecordInfo {
	aclrtCntNotifyRecordMode mode;
	uint32_t value;
} aclrtCntNotifyRecordInfo;

typedef struct aclrtCntNotifyWaitInfo {
	aclrtCntNotifyWaitMode mode;
	uint32_t value;
	uint32_t timeout;	/* seconds */
	uint8_t isClear;	/* 1: the count is 0 after the wait */
	uint8_t rsv[3];
} aclrtCntNotifyWaitInfo;

/*
 * Make a counting notify: a 32-bit count in the device that streams change and
 * wait for.
 */
ACL_FUNC_VISIBILITY aclError aclrtCntNotifyCreate(aclrtCntNotify *cntNotify, uint64_t flag);

/* Destroy it. */
ACL_FUNC_VISIBILITY aclError aclrtCntNotifyDestroy(aclrtCntNotify cntNotify);

/* Change the count when the stream gets there. */
ACL_FUNC_VISIBILITY aclError aclrtCntNotifyRecord(aclrtCntNotify cntNotify, aclrtStream stream,
						  aclrtCntNotifyRecordInfo *info);

/* Have the stream wait for a count, for at most @info->timeout seconds. */
ACL_FUNC_VISIBILITY aclError aclrtCntNotifyWaitWithTimeout(aclrtCntNotify cntNotify,
							   aclrtStream stream,
							   aclrtCntNotifyWaitInfo *info);

/* Set the count to 0 when the stream gets there. */
ACL_FUNC_VISIBILITY aclError aclrtCntNotifyReset(aclrtCntNotify cntNotify, aclrtStream stream);

/* The counting notify's number on its device. */
ACL_FUNC_VISIBILITY aclError aclrtCntNotifyGetId(aclrtCntNotify cntNotify, uint32_t *notifyId);

/* --- Values in memory ---------------------------------------------------- */

/* What aclrtValueWait() waits for. */
#define ACL_STREAM_WAIT_VALUE_GEQ	0x00000000U	/* (int64_t)(memory - value) is 0 or more */
#define ACL_STREAM_WAIT_VALUE_EQ	0x00000001U	/* memory is value */
#define ACL_STREAM_WAIT_VALUE_AND	0x00000002U	/* (memory & value) is not 0 */
#define ACL_STREAM_WAIT_VALUE_NOR	0x00000003U	/* ~(memory | value) is not 0 */

/*
 * Write a 64-bit value to device memory when the stream gets there.  @devAddr
 * is a multiple of 8 (ACL_ERROR_RT_ADDR_UNALIGNED); @flag is 0.
 */
ACL_FUNC_VISIBILITY aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag,
					     aclrtStream stream);

/*
 * Have the stream wait for a 64-bit value in device memory; @flag is one of
 * ACL_STREAM_WAIT_VALUE_*.
 */
ACL_FUNC_VISIBILITY aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag,
					    aclrtStream stream);

/* --- Host functions ------------------------------------------------------ */

typedef enum aclrtCallbackBlockType {
	ACL_CALLBACK_NO_BLOCK = 0,	/* the stream goes on at once */
	ACL_CALLBACK_BLOCK = 1,		/* the stream waits for the callback */
} aclrtCallbackBlockType;

/* Callbacks must not call the runtime. */
typedef void (*aclrtCallback)(void *userData);
typedef void (*aclrtHostFunc)(void *args);

/*
 * Let the thread @threadId (pthread_self() of it) run the stream's callbacks,
 * in aclrtProcessReport().  ACL_ERROR_RT_THREAD_SUBSCRIBE or
 * ACL_ERROR_RT_STREAM_SUBSCRIBE if it does so already.
 */
ACL_FUNC_VISIBILITY aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream);

/*
 * Have @fn called when the stream gets there, by the thread that subscribed.
 * ACL_ERROR_RT_STREAM_NO_CB_REG if there is none.
 */
ACL_FUNC_VISIBILITY aclError aclrtLaunchCallback(aclrtCallback fn, void *userData,
						 aclrtCallbackBlockType blockType,
						 aclrtStream stream);

/*
 * Wait for one callback and run it, for at most @timeout milliseconds; -1 waits
 * without a limit.  ACL_ERROR_RT_REPORT_TIMEOUT when the time is over,
 * ACL_ERROR_RT_THREAD_SUBSCRIBE if the calling thread did not subscribe.
 */
ACL_FUNC_VISIBILITY aclError aclrtProcessReport(int32_t timeout);

/* Take back aclrtSubscribeReport(). */
ACL_FUNC_VISIBILITY aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream);

/*
 * Have @fn called when the stream gets there, by a thread of the runtime; the
 * stream waits for it.  Not to be mixed with aclrtLaunchCallback() on one
 * stream.
 */
ACL_FUNC_VISIBILITY aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args);

/* As aclrtSubscribeReport(), for functions that the device itself asks for. */
ACL_FUNC_VISIBILITY aclError aclrtSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream stream);

/*
 * Wait for one of those and run it, for at most @timeout milliseconds; -1 waits
 * without a limit.
 */
ACL_FUNC_VISIBILITY aclError aclrtProcessHostFunc(int32_t timeout);

/* Take back aclrtSubscribeHostFunc(). */
ACL_FUNC_VISIBILITY aclError aclrtUnSubscribeHostFunc(uint64_t hostFuncThreadId,
						      aclrtStream stream);

/* --- Time limits of tasks ------------------------------------------------ */

/*
 * Limit waits for events that aclrtStreamWaitEvent() queues from now on, in
 * seconds; 0: no limit.
 */
ACL_FUNC_VISIBILITY aclError aclrtSetOpWaitTimeout(uint32_t timeout);

/*
 * Limit the run time of kernels of this process, in seconds; 0: the longest
 * that the device can.
 */
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOut(uint32_t timeout);

/* The same in milliseconds. */
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout);

/*
 * The same in microseconds.  *@actualTimeout gets what is in force: the next
 * multiple of aclrtGetOpTimeOutInterval().
 */
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t *actualTimeout);

/* The limit that is in force, in milliseconds. */
ACL_FUNC_VISIBILITY aclError aclrtGetOpExecuteTimeout(uint32_t *const timeoutMs);

/*
 * The unit in which the device counts the limit, in microseconds; it can count
 * to 254 of them.
 */
ACL_FUNC_VISIBILITY aclError aclrtGetOpTimeOutInterval(uint64_t *interval);

/* --- Kinds of memory ----------------------------------------------------- */

/*
 * Which pages aclrtMalloc() takes.  The last three may be added to one of the
 * others.
 */
typedef enum aclrtMemMallocPolicy {
	ACL_MEM_MALLOC_HUGE_FIRST = 0,		/* huge pages (2 MiB), or else normal ones */
	ACL_MEM_MALLOC_HUGE_ONLY = 1,		/* huge pages, or it fails */
	ACL_MEM_MALLOC_NORMAL_ONLY = 2,
	ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,	/* these three: peers reach it */
	ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
	ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,
	ACL_MEM_MALLOC_HUGE1G_ONLY = 6,		/* pages of 1 GiB */
	ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7,
	ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x100,
	ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000,
	ACL_MEM_ACCESS_USER_SPACE_READONLY = 0x100000,
} aclrtMemMallocPolicy;

/*
 * Memory of a device by its kind and pages, for aclrtGetMemInfo() and
 * aclrtMallocPhysical().
 */
typedef enum aclrtMemAttr {
	ACL_DDR_MEM = 0,
	ACL_HBM_MEM = 1,
	ACL_DDR_MEM_HUGE = 2,
	ACL_DDR_MEM_NORMAL = 3,
	ACL_HBM_MEM_HUGE = 4,
	ACL_HBM_MEM_NORMAL = 5,
	ACL_DDR_MEM_P2P_HUGE = 6,
	ACL_DDR_MEM_P2P_NORMAL = 7,
	ACL_HBM_MEM_P2P_HUGE = 8,
	ACL_HBM_MEM_P2P_NORMAL = 9,
	ACL_HBM_MEM_HUGE1G = 10,
	ACL_HBM_MEM_P2P_HUGE1G = 11,
	ACL_MEM_NORMAL = 12,
	ACL_MEM_HUGE = 13,
	ACL_MEM_HUGE1G = 14,
	ACL_MEM_P2P_NORMAL = 15,
	ACL_MEM_P2P_HUGE = 16,
	ACL_MEM_P2P_HUGE1G = 17,
} aclrtMemAttr;

/* Where pages and places are meant apart. */
enum aclrtMemPgType {
	NORMAL_PAGE_TYPE = 0,
	HUGE_PAGE_TYPE = 1,
	HUGE1G_PAGE_TYPE = 2,
};

enum aclrtMemType {
	HBM_TYPE = 0,
	DDR_TYPE = 1,
	P2P_HBM_TYPE = 2,
	P2P_DDR_TYPE = 3,
};

/* Which pages and place make up which aclrtMemAttr. */
struct MemAttrMapping {
	uint32_t pgType;	/* enum aclrtMemPgType */
	uint32_t memType;	/* enum aclrtMemType */
	bool isHostAlloc;
	aclrtMemAttr memAttr;
};

typedef enum aclrtMemLocationType {
	ACL_MEM_LOCATION_TYPE_HOST = 0,		/* pinned host memory */
	ACL_MEM_LOCATION_TYPE_DEVICE = 1,
	ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2,	/* host memory that the runtime does not know */
	ACL_MEM_LOCATION_TYPE_MANAGED = 3,	/* aclrtMemAllocManaged() */
	ACL_MEM_LOCATION_TYPE_HOST_NUMA = 4,	/* host memory of the NUMA node @id */
} aclrtMemLocationType;

typedef struct aclrtMemLocation {
	uint32_t id;		/* device or NUMA node */
	aclrtMemLocationType type;
} aclrtMemLocation;

/* Options of an allocation: aclrtMallocConfig is a list of them. */
typedef enum aclrtMallocAttrType {
	ACL_RT_MEM_ATTR_RSV = 0,
	ACL_RT_MEM_ATTR_MODULE_ID = 1,	/* whom to count it for */
	ACL_RT_MEM_ATTR_DEVICE_ID = 2,	/* the device host memory is pinned for */
	ACL_RT_MEM_ATTR_VA_FLAG = 3,	/* 1: host and device share the address */
} aclrtMallocAttrType;

typedef union aclrtMallocAttrValue {
	uint16_t moduleId;
	uint32_t deviceId;
	uint32_t vaFlag;
	uint8_t rsv[8];
} aclrtMallocAttrValue;

typedef struct aclrtMallocAttribute {
	aclrtMallocAttrType attr;
	aclrtMallocAttrValue value;
} aclrtMallocAttribute;

typedef struct aclrtMallocConfig {
	aclrtMallocAttribute *attrs;
	size_t numAttrs;
} aclrtMallocConfig;

/* --- Allocation ---------------------------------------------------------- */

/*
 * Allocate @size bytes of device memory, aligned to 64 or more; the content is
 * undefined.  ACL_ERROR_INVALID_PARAM if @size is 0,
 * ACL_ERROR_RT_MEMORY_ALLOCATION if there is not enough.
 */
ACL_FUNC_VISIBILITY aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);

/* The same, @size rounded up to 32 and not more. */
ACL_FUNC_VISIBILITY aclError aclrtMallocAlign32(void **devPtr, size_t size,
						aclrtMemMallocPolicy policy);

/* The same, cached by the host: see aclrtMemFlush(). */
ACL_FUNC_VISIBILITY aclError aclrtMallocCached(void **devPtr, size_t size,
					       aclrtMemMallocPolicy policy);

/* aclrtMalloc() with options; @cfg may be NULL. */
ACL_FUNC_VISIBILITY aclError aclrtMallocWithCfg(void **devPtr, size_t size,
						aclrtMemMallocPolicy policy,
						aclrtMallocConfig *cfg);

/* The same, for what the device's task scheduler reads. */
ACL_FUNC_VISIBILITY aclError aclrtMallocForTaskScheduler(void **devPtr, size_t size,
							 aclrtMemMallocPolicy policy,
							 aclrtMallocConfig *cfg);

/*
 * Free device memory.  Does not wait: no queued task may use it.  An error for
 * NULL and for what was not allocated.
 */
ACL_FUNC_VISIBILITY aclError aclrtFree(void *devPtr);

/* Wait for the device, then free. */
ACL_FUNC_VISIBILITY aclError aclrtFreeWithDevSync(void *devPtr);

/*
 * Allocate pinned host memory, aligned to 64 or more.  ACL_ERROR_INVALID_PARAM
 * if @size is 0.
 */
ACL_FUNC_VISIBILITY aclError aclrtMallocHost(void **hostPtr, size_t size);

/* The same with options; @cfg may be NULL. */
ACL_FUNC_VISIBILITY aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size,
						    aclrtMallocConfig *cfg);

/* Free pinned host memory.  Does not wait: no queued task may use it. */
ACL_FUNC_VISIBILITY aclError aclrtFreeHost(void *hostPtr);

/* Wait for the device, then free. */
ACL_FUNC_VISIBILITY aclError aclrtFreeHostWithDevSync(void *hostPtr);

/* Write what the host's caches hold of aclrtMallocCached() memory. */
ACL_FUNC_VISIBILITY aclError aclrtMemFlush(void *devPtr, size_t size);

/* Drop what the host's caches hold of it. */
ACL_FUNC_VISIBILITY aclError aclrtMemInvalidate(void *devPtr, size_t size);

/* --- Questions about memory ---------------------------------------------- */

/* For aclrtCheckMemType(); may be added up. */
#define ACL_RT_MEM_TYPE_DEV	0x2U
#define ACL_RT_MEM_TYPE_DVPP	0x8U
#define ACL_RT_MEM_TYPE_RSVD	0x10U

typedef struct aclrtPtrAttributes {
	aclrtMemLocation location;
	uint32_t pageSize;	/* bytes */
	uint32_t rsv[4];
} aclrtPtrAttributes;

/* What one part of the software uses of a device. */
typedef struct aclrtMemUsageInfo {
	char name[32];
	uint64_t curMemSize;	/* bytes now */
	uint64_t memPeakSize;	/* bytes at most, so far */
	size_t reserved[8];
} aclrtMemUsageInfo;

/* Free and total bytes of one kind of memory of the current device. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);

/*
 * Use of a device's memory by part: at most @inputNum entries, *@outputNum gets
 * how many were filled in.
 */
ACL_FUNC_VISIBILITY aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo *memUsageInfo,
						  size_t inputNum, size_t *outputNum);

/*
 * What kind of memory @ptr points to.  Not an error for host memory that the
 * runtime does not know: ACL_MEM_LOCATION_TYPE_UNREGISTERED.
 */
ACL_FUNC_VISIBILITY aclError aclrtPointerGetAttributes(const void *ptr,
						       aclrtPtrAttributes *attributes);

/* Start and size of the allocation that @ptr points into. */
ACL_FUNC_VISIBILITY aclError aclrtMemGetAddressRange(void *ptr, void **pbase, size_t *psize);

/*
 * Whether all @size addresses are of the types @memType: *@checkResult gets 1
 * or 0.  @reserve is 0.
 */
ACL_FUNC_VISIBILITY aclError aclrtCheckMemType(void **addrList, uint32_t size, uint32_t memType,
					       uint32_t *checkResult, uint32_t reserve);

/* --- Copies -------------------------------------------------------------- */

/* The direction of a copy. aclrtMemcpy() takes it from the addresses. */
typedef enum aclrtMemcpyKind {
	ACL_MEMCPY_HOST_TO_HOST = 0,
	ACL_MEMCPY_HOST_TO_DEVICE = 1,
	ACL_MEMCPY_DEVICE_TO_HOST = 2,
	ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
	ACL_MEMCPY_DEFAULT = 4,			/* from the addresses */
	ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5,	/* through a buffer of the runtime */
	ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6,	/* on one device */
	ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7,	/* between two devices */
} aclrtMemcpyKind;

/* Where the entries of a batch are. */
typedef struct aclrtMemcpyBatchAttr {
	aclrtMemLocation dstLoc;
	aclrtMemLocation srcLoc;
	uint8_t rsv[16];
} aclrtMemcpyBatchAttr;

/*
 * Copy @count bytes now and wait for the end of it, but not for streams.
 * @destMax is the room at @dst: ACL_ERROR_INVALID_PARAM if @count is more.
 * Copies between devices need aclrtDeviceEnablePeerAccess().
 */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
					 aclrtMemcpyKind kind);

/*
 * Copy when the stream gets there.  If pageable host memory is part of it, the
 * call returns after the copy; from host to host is
 * ACL_ERROR_RT_FEATURE_NOT_SUPPORT.
 */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src,
					      size_t count, aclrtMemcpyKind kind,
					      aclrtStream stream);

/* Deprecated: prefer aclrtMemcpyAsync(), which this is. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax,
							   const void *src, size_t count,
							   aclrtMemcpyKind kind,
							   aclrtStream stream);

/*
 * Copy @height rows of @width bytes now, between host and device; rows start
 * @dpitch and @spitch bytes apart.  @width is not more than either.
 */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch,
					   size_t width, size_t height, aclrtMemcpyKind kind);

/* The same when the stream gets there; also from device to device. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src,
						size_t spitch, size_t width, size_t height,
						aclrtMemcpyKind kind, aclrtStream stream);

/*
 * Copy from and to addresses that are in device memory when the stream gets
 * there: @dst and @src point to them, the offsets are added to them.
 */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsyncWithOffset(void **dst, size_t destMax,
							size_t dstDataOffset, const void **src,
							size_t count, size_t srcDataOffset,
							aclrtMemcpyKind kind, aclrtStream stream);

/* Bytes of device memory that a copy description takes. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemcpyDescSize(aclrtMemcpyKind kind, size_t *descSize);

/* Write the description of a copy to device memory; @config is NULL. */
ACL_FUNC_VISIBILITY aclError aclrtSetMemcpyDesc(void *desc, aclrtMemcpyKind kind, void *srcAddr,
						void *dstAddr, size_t count, void *config);

/* Copy as a description in device memory says when the stream gets there. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsyncWithDesc(void *desc, aclrtMemcpyKind kind,
						      aclrtStream stream);

/*
 * Make @numBatches copies now, in any order, all from host to device or all
 * from device to host. attrs[i] holds for the entries from attrsIndexes[i] up
 * to the next one's; attrsIndexes[0] is 0.  *@failIndex gets the entry that was
 * wrong, SIZE_MAX if none was.
 */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs,
					      size_t *sizes, size_t numBatches,
					      aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
					      size_t numAttrs, size_t *failIndex);

/* The same without @failIndex. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatchV2(void **dsts, size_t *destMaxs, void **srcs,
						size_t *sizes, size_t numBatches,
						aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
						size_t numAttrs);

/* aclrtMemcpyBatch() when the stream gets there. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs,
						   size_t *sizes, size_t numBatches,
						   aclrtMemcpyBatchAttr *attrs,
						   size_t *attrsIndexes, size_t numAttrs,
						   size_t *failIndex, aclrtStream stream);

/* The same without @failIndex. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatchAsyncV2(void **dsts, size_t *destMaxs, void **srcs,
						     size_t *sizes, size_t numBatches,
						     aclrtMemcpyBatchAttr *attrs,
						     size_t *attrsIndexes, size_t numAttrs,
						     aclrtStream stream);

/*
 * Set @count bytes at @devPtr, device memory or pinned host memory, to the low
 * byte of @value now.  @maxCount is the room: ACL_ERROR_INVALID_PARAM if @count
 * is more.
 */
ACL_FUNC_VISIBILITY aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value,
					 size_t count);

/* The same when the stream gets there. */
ACL_FUNC_VISIBILITY aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value,
					      size_t count, aclrtStream stream);

/* Set @count 32-bit words to @value now; @destMax is the room in bytes. */
ACL_FUNC_VISIBILITY aclError aclrtMemsetD32(void *ptr, size_t destMax, uint32_t value,
					    size_t count);

/* The same when the stream gets there. */
ACL_FUNC_VISIBILITY aclError aclrtMemsetD32Async(void *ptr, size_t destMax, uint32_t value,
						 size_t count, aclrtStream stream);

/* --- Built-in tasks on memory -------------------------------------------- */

/* How aclrtReduceAsync() combines. */
typedef enum aclrtReduceKind {
	ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM = 10,
	ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX = 11,
	ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN = 12,
	ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL = 13,
} aclrtReduceKind;

/*
 * dst = dst op src, element by element, when the stream gets there.  @count is
 * in bytes.  For int8, int16, int32, fp16, bf16 and fp32; @reserve is NULL.
 */
ACL_FUNC_VISIBILITY aclError aclrtReduceAsync(void *dst, const void *src, uint64_t count,
					      aclrtReduceKind kind, aclDataType type,
					      aclrtStream stream, void *reserve);

/* What to do with a piece of memory and the L2 cache. */
typedef enum aclrtCmoType {
	ACL_RT_CMO_TYPE_PREFETCH = 0,	/* read it into the cache */
	ACL_RT_CMO_TYPE_WRITEBACK = 1,	/* write it to memory, keep it */
	ACL_RT_CMO_TYPE_INVALID = 2,	/* drop it */
	ACL_RT_CMO_TYPE_FLUSH = 3,	/* write it to memory and drop it */
} aclrtCmoType;

#define ACL_RT_CMO_MAX_BARRIER_NUM	6U	/* cache operations that one wait can be for */

typedef struct aclrtBarrierCmoInfo {
	aclrtCmoType cmoType;
	uint32_t barrierId;
} aclrtBarrierCmoInfo;

typedef struct aclrtBarrierTaskInfo {
	size_t barrierNum;	/* entries in use */
	aclrtBarrierCmoInfo cmoInfo[ACL_RT_CMO_MAX_BARRIER_NUM];
} aclrtBarrierTaskInfo;

/* Have the cache treat @size bytes at @src when the stream gets there. */
ACL_FUNC_VISIBILITY aclError aclrtCmoAsync(void *src, size_t size, aclrtCmoType cmoType,
					   aclrtStream stream);

/* The same with a number that aclrtCmoWaitBarrier() can wait for; 0: none. */
ACL_FUNC_VISIBILITY aclError aclrtCmoAsyncWithBarrier(void *src, size_t size, aclrtCmoType cmoType,
						      uint32_t barrierId, aclrtStream stream);

/* Have the stream wait for such operations; @flag is 0. */
ACL_FUNC_VISIBILITY aclError aclrtCmoWaitBarrier(aclrtBarrierTaskInfo *taskInfo, aclrtStream stream,
						 uint32_t flag);

/* Bytes of device memory that the description of a cache operation takes. */
ACL_FUNC_VISIBILITY aclError aclrtCmoGetDescSize(size_t *size);

/* Write that description to device memory. */
ACL_FUNC_VISIBILITY aclError aclrtCmoSetDesc(void *cmoDesc, void *src, size_t size);

/* Have the cache do as a description in device memory says; @reserve is NULL. */
ACL_FUNC_VISIBILITY aclError aclrtCmoAsyncWithDesc(void *cmoDesc, aclrtCmoType cmoType,
						   aclrtStream stream, const void *reserve);

/* Random numbers: what is drawn. */
typedef enum aclrtRandomNumFuncType {
	ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK = 0,
	ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS = 1,
	ACL_RT_RANDOM_NUM_FUNC_TYPE_NORMAL_DIS = 2,
	ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS = 3,
} aclrtRandomNumFuncType;

/* A parameter: a value of @size bytes, or the device address of one. */
typedef struct aclrtRandomParaInfo {
	uint8_t isAddr;		/* 1: an address */
	uint8_t valueOrAddr[8];
	uint8_t size;
	uint8_t rsv[6];
} aclrtRandomParaInfo;

typedef struct aclrtDropoutBitmaskInfo {
	aclrtRandomParaInfo dropoutRation;
} aclrtDropoutBitmaskInfo;

typedef struct aclrtUniformDisInfo {
	aclrtRandomParaInfo min;
	aclrtRandomParaInfo max;
} aclrtUniformDisInfo;

typedef struct aclrtNormalDisInfo {
	aclrtRandomParaInfo mean;
	aclrtRandomParaInfo stddev;
} aclrtNormalDisInfo;

typedef struct aclrtRandomNumFuncParaInfo {
	aclrtRandomNumFuncType funcType;
	union {
		aclrtDropoutBitmaskInfo dropoutBitmaskInfo;
		aclrtUniformDisInfo uniformDisInfo;
		aclrtNormalDisInfo normalDisInfo;	/* truncated or not */
	} paramInfo;
} aclrtRandomNumFuncParaInfo;

typedef struct aclrtRandomNumTaskInfo {
	aclDataType dataType;	/* of the numbers */
	aclrtRandomNumFuncParaInfo randomNumFuncParaInfo;
	void *randomParaAddr;	/* device memory for the parameters */
	void *randomResultAddr;
	void *randomCounterAddr;
	aclrtRandomParaInfo randomSeed;
	aclrtRandomParaInfo randomNum;	/* how many */
	uint8_t rsv[8];
} aclrtRandomNumTaskInfo;

/*
 * Draw random numbers into device memory when the stream gets there; @reserve
 * is NULL.
 */
ACL_FUNC_VISIBILITY aclError aclrtRandomNumAsync(const aclrtRandomNumTaskInfo *taskInfo,
						 const aclrtStream stream, void *reserve);

/* Which kind of queued task aclrtTaskUpdateAsync() changes. */
typedef enum aclrtUpdateTaskAttrId {
	ACL_RT_UPDATE_RANDOM_TASK = 1,
	ACL_RT_UPDATE_AIC_AIV_TASK = 2,
} aclrtUpdateTaskAttrId;

typedef struct aclrtRandomTaskUpdateAttr {
	void *srcAddr;
	size_t size;
	uint32_t rsv[4];
} aclrtRandomTaskUpdateAttr;

typedef struct aclrtAicAivTaskUpdateAttr {
	void *binHandle;
	void *funcEntryAddr;
	void *blockDimAddr;
	uint32_t rsv[4];
} aclrtAicAivTaskUpdateAttr;

typedef union aclrtUpdateTaskAttrVal {
	aclrtRandomTaskUpdateAttr randomTaskAttr;
	aclrtAicAivTaskUpdateAttr aicAivTaskAttr;
} aclrtUpdateTaskAttrVal;

typedef struct aclrtTaskUpdateInfo {
	aclrtUpdateTaskAttrId id;
	aclrtUpdateTaskAttrVal val;
} aclrtTaskUpdateInfo;

/* Change the task @taskId of @taskStream when @execStream gets there. */
ACL_FUNC_VISIBILITY aclError aclrtTaskUpdateAsync(aclrtStream taskStream, uint32_t taskId,
						  aclrtTaskUpdateInfo *info,
						  aclrtStream execStream);

/* --- Host memory for the device ------------------------------------------ */

typedef enum aclrtHostRegisterType {
	ACL_HOST_REGISTER_MAPPED = 0,
	ACL_HOST_REGISTER_IOMEMORY = 4,
	ACL_HOST_REGISTER_READONLY = 8,
} aclrtHostRegisterType;

/* Flags of aclrtHostRegisterV2(). */
#define ACL_HOST_REG_MAPPED	0x2UL		/* the device gets an address for it */
#define ACL_HOST_REG_IOMEMORY	0x4UL		/* it is not RAM */
#define ACL_HOST_REG_READONLY	0x8UL		/* the device only reads */
#define ACL_HOST_REG_PINNED	0x10000000UL	/* keep it in RAM, without an address */

/* Engines that reach host memory, or do not. */
typedef enum aclrtHacType {
	ACL_RT_HAC_TYPE_STARS = 0,
	ACL_RT_HAC_TYPE_AICPU = 1,
	ACL_RT_HAC_TYPE_AIC = 2,
	ACL_RT_HAC_TYPE_AIV = 3,
	ACL_RT_HAC_TYPE_PCIEDMA = 4,
	ACL_RT_HAC_TYPE_RDMA = 5,
	ACL_RT_HAC_TYPE_SDMA = 6,
	ACL_RT_HAC_TYPE_DVPP = 7,
	ACL_RT_HAC_TYPE_UDMA = 8,
	ACL_RT_HAC_TYPE_CCU = 9,
} aclrtHacType;

typedef enum aclrtHostMemMapCapability {
	ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED = 0,
	ACL_RT_HOST_MEM_MAP_SUPPORTED = 1,
} aclrtHostMemMapCapability;

/*
 * Pin @size bytes of the process's memory and map them; *@devPtr gets the
 * device's address.  ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED if part of it is
 * registered.
 */
ACL_FUNC_VISIBILITY aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type,
					       void **devPtr);

/* Register with ACL_HOST_REG_* flags; aclrtHostGetDevicePointer() tells the address. */
ACL_FUNC_VISIBILITY aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag);

/*
 * The device's address for registered or pinned host memory.  @flag is 0.
 * ACL_ERROR_HOST_MEMORY_NOT_REGISTERED if it has none.
 */
ACL_FUNC_VISIBILITY aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag);

/* Take back a registration; @ptr is its start. */
ACL_FUNC_VISIBILITY aclError aclrtHostUnregister(void *ptr);

/* Whether an engine of a device can reach registered host memory. */
ACL_FUNC_VISIBILITY aclError aclrtHostMemMapCapabilities(uint32_t deviceId, aclrtHacType hacType,
							 aclrtHostMemMapCapability *capabilities);

/* --- Managed memory ------------------------------------------------------ */

#define ACL_RT_MEM_ATTACH_GLOBAL	0x01U	/* all devices reach it */

typedef enum aclrtMemManagedLocationType {
	ACL_MEM_LOCATIONTYPE_INVALID = 0,
	ACL_MEM_LOCATIONTYPE_DEVICE = 1,
	ACL_MEM_LOCATIONTYPE_HOST = 2,
	ACL_MEM_LOCATIONTYPE_HOST_NUMA = 3,
	ACL_MEM_LOCATIONTYPE_HOST_NUMA_CURRENT = 4,
} aclrtMemManagedLocationType;

typedef struct aclrtMemManagedLocation {
	aclrtMemManagedLocationType type;
	int32_t id;		/* device or NUMA node */
} aclrtMemManagedLocation;

typedef enum aclrtMemManagedAdviseType {
	ACL_MEM_ADVISE_SET_READ_MOSTLY = 0,
	ACL_MEM_ADVISE_UNSET_READ_MOSTLY = 1,
	ACL_MEM_ADVISE_SET_PREFERRED_LOCATION = 2,
	ACL_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 3,
	ACL_MEM_ADVISE_SET_ACCESSED_BY = 4,
	ACL_MEM_ADVISE_UNSET_ACCESSED_BY = 5,
} aclrtMemManagedAdviseType;

typedef enum aclrtMemManagedRangeAttribute {
	ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY = 1,
	ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION = 2,
	ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY = 3,
	ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE = 4,
	ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID = 5,
	ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION = 6,
	ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE = 7,
	ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID = 8,
} aclrtMemManagedRangeAttribute;

/*
 * Allocate memory that host and devices reach at one address; @flag is
 * ACL_RT_MEM_ATTACH_GLOBAL.
 */
ACL_FUNC_VISIBILITY aclError aclrtMemAllocManaged(void **ptr, uint64_t size, uint32_t flag);

/* Say how a piece of managed memory will be used, or where. */
ACL_FUNC_VISIBILITY aclError aclrtMemManagedAdvise(const void *const ptr, uint64_t size,
						   aclrtMemManagedAdviseType advise,
						   aclrtMemManagedLocation location);

/* An attribute of a piece of managed memory: @dataSize bytes to @data. */
ACL_FUNC_VISIBILITY aclError aclrtMemManagedGetAttr(aclrtMemManagedRangeAttribute attribute,
						    const void *ptr, size_t size, void *data,
						    size_t dataSize);

/* Several attributes at once. */
ACL_FUNC_VISIBILITY aclError aclrtMemManagedGetAttrs(aclrtMemManagedRangeAttribute *attributes,
						     size_t numAttributes, const void *ptr,
						     size_t size, void **data, size_t *dataSizes);

/* Move managed memory to a place when the stream gets there; @flags is 0. */
ACL_FUNC_VISIBILITY aclError aclrtMemManagedPrefetchAsync(const void *ptr, size_t size,
							  aclrtMemManagedLocation location,
							  uint32_t flags, aclrtStream stream);

/*
 * The same for @count pieces. prefetchLocs[i] holds for the pieces from
 * prefetchLocIdxs[i] up to the next one's.
 */
ACL_FUNC_VISIBILITY aclError
aclrtMemManagedPrefetchBatchAsync(const void **ptrs, size_t *sizes, size_t count,
				  aclrtMemManagedLocation *prefetchLocs, size_t *prefetchLocIdxs,
				  size_t numPrefetchLocs, uint64_t flags, aclrtStream stream);

/* --- Virtual memory ------------------------------------------------------ */

#define ACL_RT_VMM_EXPORT_FLAG_DEFAULT			0x0UL
#define ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION	0x1UL	/* any process may import */

typedef enum aclrtMemHandleType {
	ACL_MEM_HANDLE_TYPE_NONE = 0,
	ACL_MEM_HANDLE_TYPE_POSIX = 2,
} aclrtMemHandleType;

typedef enum aclrtMemAllocationType {
	ACL_MEM_ALLOCATION_TYPE_PINNED = 0,
} aclrtMemAllocationType;

/*
 * What kind of shareable handle: a 64-bit number for processes of one server,
 * or 128 bytes for other servers as well.
 */
typedef enum aclrtMemSharedHandleType {
	ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT = 1,	/* uint64_t */
	ACL_MEM_SHARE_HANDLE_TYPE_FABRIC = 2,	/* aclrtMemFabricHandle */
} aclrtMemSharedHandleType;

typedef struct aclrtMemFabricHandle {
	uint8_t data[128];
} aclrtMemFabricHandle;

typedef enum aclrtMemGranularityOptions {
	ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
	ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
	ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF = 65535,
} aclrtMemGranularityOptions;

typedef struct aclrtPhysicalMemProp {
	aclrtMemHandleType handleType;
	aclrtMemAllocationType allocationType;
	aclrtMemAttr memAttr;
	aclrtMemLocation location;
	uint64_t reserve;	/* 0 */
} aclrtPhysicalMemProp;

typedef enum aclrtMemAccessFlags {
	ACL_RT_MEM_ACCESS_FLAGS_NONE = 0,
	ACL_RT_MEM_ACCESS_FLAGS_READ = 1,
	ACL_RT_MEM_ACCESS_FLAGS_READWRITE = 3,
} aclrtMemAccessFlags;

typedef struct aclrtMemAccessDesc {
	aclrtMemAccessFlags flags;
	aclrtMemLocation location;	/* who gets the access */
	uint8_t rsv[12];
} aclrtMemAccessDesc;

/* Links between two devices, where there are several. */
#define ACL_RT_MEM_LINK_IDX_0	0U
#define ACL_RT_MEM_LINK_IDX_1	1U

typedef enum aclrtMemLinkType {
	ACL_RT_MEM_ACCESS_LINK_SIO = 0,
	ACL_RT_MEM_ACCESS_LINK_HCCS = 1,
	ACL_RT_MEM_ACCESS_UB_ONE_PORT_PATH = 2,
	ACL_RT_MEM_ACCESS_UB_MULTI_PORT_PATH = 3,
} aclrtMemLinkType;

/*
 * Reserve @size bytes of addresses without memory.  @alignment is 0, @expectPtr
 * NULL or where they should be; @flags is 0 for normal pages, 1 for huge ones.
 */
ACL_FUNC_VISIBILITY aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment,
						    void *expectPtr, uint64_t flags);

/*
 * The same at @expectPtr and nowhere else, in multiples of 1 GiB; not for
 * kernels that go past the L2 cache.
 */
ACL_FUNC_VISIBILITY aclError aclrtReserveMemAddressNoUCMemory(void **virPtr, size_t size,
							      size_t alignment, void *expectPtr,
							      uint64_t flags);

/* Give reserved addresses back; nothing may be mapped there. */
ACL_FUNC_VISIBILITY aclError aclrtReleaseMemAddress(void *virPtr);

/*
 * Allocate physical memory without an address.  @size is a multiple of
 * aclrtMemGetAllocationGranularity(); @flags is 0.
 * ACL_ERROR_RT_MEMORY_ALLOCATION if there is not enough.
 */
ACL_FUNC_VISIBILITY aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
						 const aclrtPhysicalMemProp *prop, uint64_t flags);

/* Give it back; while it is mapped it stays until the last aclrtUnmapMem(). */
ACL_FUNC_VISIBILITY aclError aclrtFreePhysical(aclrtDrvMemHandle handle);

/* Map physical memory, all of it, at reserved addresses.  @offset and @flags are 0. */
ACL_FUNC_VISIBILITY aclError aclrtMapMem(void *virPtr, size_t size, size_t offset,
					 aclrtDrvMemHandle handle, uint64_t flags);

/* The same, without access until aclrtMemSetAccess(). */
ACL_FUNC_VISIBILITY aclError aclrtMemMapNoAccess(void *virPtr, size_t size, size_t offset,
						 aclrtDrvMemHandle handle, uint64_t flags);

/* Take back a mapping; @virPtr is its start. */
ACL_FUNC_VISIBILITY aclError aclrtUnmapMem(void *virPtr);

/* Set who may do what with mapped memory: @count entries. */
ACL_FUNC_VISIBILITY aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc,
					       size_t count);

/* What @location may do there: *@flag gets an aclrtMemAccessFlags. */
ACL_FUNC_VISIBILITY aclError aclrtMemGetAccess(void *virPtr, aclrtMemLocation *location,
					       uint64_t *flag);

/* The unit in which such memory is allocated, in bytes. */
ACL_FUNC_VISIBILITY aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop,
							      aclrtMemGranularityOptions option,
							      size_t *granularity);

/*
 * The physical memory that is mapped at an address, with a reference of its
 * own: give it back with aclrtFreePhysical().
 */
ACL_FUNC_VISIBILITY aclError aclrtMemRetainAllocationHandle(void *virPtr,
							    aclrtDrvMemHandle *handle);

/* How physical memory was allocated. */
ACL_FUNC_VISIBILITY aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle,
								       aclrtPhysicalMemProp *prop);

/* Name physical memory for other processes of this server by a number. */
ACL_FUNC_VISIBILITY aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle,
							     aclrtMemHandleType handleType,
							     uint64_t flags,
							     uint64_t *shareableHandle);

/*
 * The same in either form: @shareableHandle points to an uint64_t or to an
 * aclrtMemFabricHandle.
 */
ACL_FUNC_VISIBILITY aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle,
							       uint64_t flags,
							       aclrtMemSharedHandleType shareType,
							       void *shareableHandle);

/*
 * Allow processes to import it (aclrtDeviceGetBareTgid() of each), unless it
 * was exported for all.
 */
ACL_FUNC_VISIBILITY aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid,
							     size_t pidNum);

/* The same for either form. */
ACL_FUNC_VISIBILITY aclError aclrtMemSetPidToShareableHandleV2(void *shareableHandle,
							       aclrtMemSharedHandleType shareType,
							       int32_t *pid, size_t pidNum);

/*
 * Get the physical memory of another process, for a device of this one.  It is
 * the same memory: the last one who gives it back frees it.
 * ACL_ERROR_RT_NO_PERMISSION if this process is not allowed to.
 */
ACL_FUNC_VISIBILITY aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle,
							       int32_t deviceId,
							       aclrtDrvMemHandle *handle);

/* The same for either form, on the current device; @flags is 0. */
ACL_FUNC_VISIBILITY aclError aclrtMemImportFromShareableHandleV2(void *shareableHandle,
								 aclrtMemSharedHandleType shareType,
								 uint64_t flags,
								 aclrtDrvMemHandle *handle);

/* Map device memory to another device as well; @flags is 0. */
ACL_FUNC_VISIBILITY aclError aclrtMemP2PMap(void *devPtr, size_t size, int32_t dstDevId,
					    uint64_t flags);

/*
 * Map the memory at @virPtr1 a second time, at the reserved addresses @virPtr2,
 * reached through the link @linkIdx2.
 */
ACL_FUNC_VISIBILITY aclError aclrtMemMapSelectedLink(void *virPtr2, size_t size, void *virPtr1,
						     uint32_t linkIdx2);

/* Choose the link by which imported physical memory is reached, before it is mapped. */
ACL_FUNC_VISIBILITY aclError aclrtMemMapSetLink(aclrtDrvMemHandle handle,
						aclrtMemLinkType linkType);

/* --- Memory between processes -------------------------------------------- */

#define ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT			0x0UL
#define ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION	0x1UL	/* any process may import */
#define ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT			0x0UL
#define ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS		0x1UL	/* peer access, too */

typedef enum aclrtIpcMemAttrType {
	ACL_RT_IPC_MEM_ATTR_ACCESS_LINK = 0,	/* by which link; its values are below */
} aclrtIpcMemAttrType;

#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_SIO			0
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS			1
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_ONE_PORT_PATH	2
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH	3

/*
 * Name @size bytes of aclrtMalloc() memory for other processes.  @key has room
 * for @len bytes, 65 or more.  The memory must stay until all have closed it.
 */
ACL_FUNC_VISIBILITY aclError aclrtIpcMemGetExportKey(void *devPtr, size_t size, char *key,
						     size_t len, uint64_t flags);

/*
 * Allow processes to import it (aclrtDeviceGetBareTgid() of each), unless it
 * was exported for all.
 */
ACL_FUNC_VISIBILITY aclError aclrtIpcMemSetImportPid(const char *key, int32_t *pid, size_t num);

/* The same for processes of other servers. */
ACL_FUNC_VISIBILITY aclError aclrtIpcMemImportPidInterServer(const char *key,
							     aclrtServerPid *serverPids,
							     size_t num);

/* Set how imported memory is reached. */
ACL_FUNC_VISIBILITY aclError aclrtIpcMemSetAttr(const char *key, aclrtIpcMemAttrType type,
						uint64_t attr);

/*
 * Map memory of another process by its key.  ACL_ERROR_RT_NO_PERMISSION if this
 * process is not allowed to.
 */
ACL_FUNC_VISIBILITY aclError aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flags);

/* End the use of a key: importers first, the exporter last. */
ACL_FUNC_VISIBILITY aclError aclrtIpcMemClose(const char *key);

/* --- Kernels ------------------------------------------------------------- */

typedef struct dim3 {
	uint32_t x;
	uint32_t y;
	uint32_t z;
} dim3;

/* Magic numbers of kernel binaries: ACL_RT_BINARY_LOAD_OPT_MAGIC. */
#define ACL_RT_BINARY_MAGIC_ELF_AICORE		0x43554245U
#define ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE	0x41415246U
#define ACL_RT_BINARY_MAGIC_ELF_CUBE_CORE	0x41494343U

typedef enum aclrtBinaryLoadOptionType {
	ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD = 1,
	ACL_RT_BINARY_LOAD_OPT_LAZY_MAGIC = 2,	/* the former name */
	ACL_RT_BINARY_LOAD_OPT_MAGIC = 2,
	ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE = 3,
} aclrtBinaryLoadOptionType;

typedef union aclrtBinaryLoadOptionValue {
	uint32_t isLazyLoad;	/* 1: to the device with the first launch */
	uint32_t magic;
	int32_t cpuKernelMode;
	uint32_t rsv[4];
} aclrtBinaryLoadOptionValue;

typedef struct aclrtBinaryLoadOption {
	aclrtBinaryLoadOptionType type;
	aclrtBinaryLoadOptionValue value;
} aclrtBinaryLoadOption;

typedef struct aclrtBinaryLoadOptions {
	aclrtBinaryLoadOption *options;
	size_t numOpt;
} aclrtBinaryLoadOptions;

/* On which cores a kernel runs. */
typedef enum aclrtKernelType {
	ACL_KERNEL_TYPE_AICORE = 0,
	ACL_KERNEL_TYPE_CUBE = 1,
	ACL_KERNEL_TYPE_VECTOR = 2,
	ACL_KERNEL_TYPE_MIX = 3,
	ACL_KERNEL_TYPE_AICPU = 100,
} aclrtKernelType;

/* What aclrtGetFunctionAttribute() can be asked. */
typedef enum aclrtFuncAttribute {
	ACL_FUNC_ATTR_KERNEL_TYPE = 1,
	ACL_FUNC_ATTR_KERNEL_RATIO = 2,
	ACL_FUNC_ATTR_KERNEL_SCHED_MODE = 3,
} aclrtFuncAttribute;

/* Take a kernel binary in memory, which must stay; NULL if it is none. */
ACL_FUNC_VISIBILITY aclrtBinary aclrtCreateBinary(const void *data, size_t dataLen);

/* Forget it. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyBinary(aclrtBinary binary);

/* Load it to the current device. */
ACL_FUNC_VISIBILITY aclError aclrtBinaryLoad(const aclrtBinary binary, aclrtBinHandle *binHandle);

/* Load a kernel binary from a file; @options may be NULL. */
ACL_FUNC_VISIBILITY aclError aclrtBinaryLoadFromFile(const char *binPath,
						     aclrtBinaryLoadOptions *options,
						     aclrtBinHandle *binHandle);

/* Load a kernel binary from memory; @options may be NULL. */
ACL_FUNC_VISIBILITY aclError aclrtBinaryLoadFromData(const void *data, size_t length,
						     const aclrtBinaryLoadOptions *options,
						     aclrtBinHandle *binHandle);

/* Unload a binary; its functions are gone. */
ACL_FUNC_VISIBILITY aclError aclrtBinaryUnLoad(aclrtBinHandle binHandle);

/* A kernel of a binary by its name. */
ACL_FUNC_VISIBILITY aclError aclrtBinaryGetFunction(const aclrtBinHandle binHandle,
						    const char *kernelName,
						    aclrtFuncHandle *funcHandle);

/* A kernel of a binary by its number. */
ACL_FUNC_VISIBILITY aclError aclrtBinaryGetFunctionByEntry(aclrtBinHandle binHandle,
							   uint64_t funcEntry,
							   aclrtFuncHandle *funcHandle);

/* Device address and bytes of a loaded binary. */
ACL_FUNC_VISIBILITY aclError aclrtBinaryGetDevAddress(const aclrtBinHandle binHandle,
						      void **binAddr, size_t *binSize);

/* Device address and bytes of a variable of a binary. */
ACL_FUNC_VISIBILITY aclError aclrtBinaryGetGlobal(aclrtBinHandle binHandle, const char *name,
						  void **devPtr, size_t *size);

/* Make a function of a CPU-kernel binary known. */
ACL_FUNC_VISIBILITY aclError aclrtRegisterCpuFunc(const aclrtBinHandle handle, const char *funcName,
						  const char *kernelName,
						  aclrtFuncHandle *funcHandle);

/* The kernel that the host symbol @symbol stands for. */
ACL_FUNC_VISIBILITY aclError aclrtGetFuncBySymbol(const void *symbol, aclrtFuncHandle *funcHandle);

/* A kernel's name: at most @maxLen bytes with the terminating zero. */
ACL_FUNC_VISIBILITY aclError aclrtGetFunctionName(aclrtFuncHandle funcHandle, uint32_t maxLen,
						  char *name);

/* Device addresses of a kernel's code for AI cores and for vector cores. */
ACL_FUNC_VISIBILITY aclError aclrtGetFunctionAddr(aclrtFuncHandle funcHandle, void **aicAddr,
						  void **aivAddr);

/* Bytes of that code. */
ACL_FUNC_VISIBILITY aclError aclrtGetFunctionSize(aclrtFuncHandle funcHandle, size_t *aicSize,
						  size_t *aivSize);

/* A number that describes a kernel. */
ACL_FUNC_VISIBILITY aclError aclrtGetFunctionAttribute(aclrtFuncHandle funcHandle,
						       aclrtFuncAttribute attrType,
						       int64_t *attrValue);

/* The binary that a kernel is of. */
ACL_FUNC_VISIBILITY aclError aclrtFunctionGetBinary(const aclrtFuncHandle funcHandle,
						    aclrtBinHandle *binHandle);

/* Number of a kernel's parameters. */
ACL_FUNC_VISIBILITY aclError aclrtFunctionGetParamCount(const void *func, size_t *paramCount);

/* Offset and bytes of one parameter in the argument block. */
ACL_FUNC_VISIBILITY aclError aclrtFunctionGetParamInfo(const void *func, size_t paramIndex,
						       size_t *paramOffset, size_t *paramSize);

/* Bytes of unified buffer that a block can still ask for; @flags is 0. */
ACL_FUNC_VISIBILITY aclError aclrtFunctionGetAvailDynUbufPerBlock(void *func, uint32_t flags,
								  size_t *dynamicUbufSize);

/*
 * Device address of the variable that the host symbol @symbol stands for.
 * ACL_ERROR_RT_INVALID_SYMBOL if there is none.
 */
ACL_FUNC_VISIBILITY aclError aclrtGetSymbolAddress(const void *symbol, void **devPtr);

/* Bytes of that variable. */
ACL_FUNC_VISIBILITY aclError aclrtGetSymbolSize(const void *symbol, size_t *size);

/* Copy @count bytes to such a variable, from its byte @offset on, now. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyToSymbol(const void *symbol, const void *src, size_t count,
						 size_t offset, aclrtMemcpyKind kind);

/* The same when the stream gets there. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyToSymbolAsync(const void *symbol, const void *src,
						      size_t count, size_t offset,
						      aclrtMemcpyKind kind, aclrtStream stream);

/* Copy @count bytes from such a variable, from its byte @offset on, now. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyFromSymbol(void *dst, size_t destMax, const void *symbol,
						   size_t count, size_t offset,
						   aclrtMemcpyKind kind);

/* The same when the stream gets there. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyFromSymbolAsync(void *dst, size_t destMax,
							const void *symbol, size_t count,
							size_t offset, aclrtMemcpyKind kind,
							aclrtStream stream);

/* --- Kernel arguments ---------------------------------------------------- */

/*
 * A pointer among arguments that the launch fills in: where it is, and where
 * its data is behind the arguments.
 */
typedef struct aclrtPlaceHolderInfo {
	uint32_t addrOffset;
	uint32_t dataOffset;
} aclrtPlaceHolderInfo;

/* Start a list of arguments for a kernel. */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsInit(aclrtFuncHandle funcHandle,
						 aclrtArgsHandle *argsHandle);

/*
 * The same in memory of the caller, of aclrtKernelArgsGetMemSize() bytes;
 * @argsHandle of aclrtKernelArgsGetHandleMemSize() bytes.
 */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsInitByUserMem(aclrtFuncHandle funcHandle,
							  aclrtArgsHandle argsHandle,
							  void *userHostMem, size_t actualArgsSize);

/* Bytes that a list's handle takes. */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsGetHandleMemSize(aclrtFuncHandle funcHandle,
							     size_t *memSize);

/* Bytes that a list takes for @userArgsSize bytes of arguments. */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsGetMemSize(aclrtFuncHandle funcHandle,
						       size_t userArgsSize, size_t *actualArgsSize);

/*
 * Add an argument of @paramSize bytes; *@paramHandle names it for
 * aclrtKernelArgsParaUpdate().
 */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsAppend(aclrtArgsHandle argsHandle, void *param,
						   size_t paramSize, aclrtParamHandle *paramHandle);

/* Add a pointer that aclrtKernelArgsGetPlaceHolderBuffer() gives data. */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle argsHandle,
							      aclrtParamHandle *paramHandle);

/* Host memory for the data of such a pointer, after the last argument was added. */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle argsHandle,
								 aclrtParamHandle paramHandle,
								 size_t dataSize,
								 void **bufferAddr);

/* Change an argument. */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsParaUpdate(aclrtArgsHandle argsHandle,
						       aclrtParamHandle paramHandle, void *param,
						       size_t paramSize);

/* The list is complete; it can be launched. */
ACL_FUNC_VISIBILITY aclError aclrtKernelArgsFinalize(aclrtArgsHandle argsHandle);

/* --- Launches ------------------------------------------------------------ */

typedef enum aclrtLaunchKernelAttrId {
	ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE = 1,
	ACL_RT_LAUNCH_KERNEL_ATTR_DYN_UBUF_SIZE = 2,
	ACL_RT_LAUNCH_KERNEL_ATTR_LOCAL_MEMORY_SIZE = 2,	/* the former name */
	ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE = 3,
	ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET = 4,
	ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH = 5,
	ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP = 6,
	ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT = 7,			/* seconds */
	ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US = 8,		/* microseconds */
	ACL_RT_LAUNCH_KERNEL_ATTR_ENABLE_PROFILING = 9,
} aclrtLaunchKernelAttrId;

typedef enum aclrtEngineType {
	ACL_RT_ENGINE_TYPE_AIC = 0,	/* AI cores */
	ACL_RT_ENGINE_TYPE_AIV = 1,	/* vector cores */
} aclrtEngineType;

typedef struct aclrtTimeoutUs {
	uint32_t timeoutLow;	/* low half of the microseconds */
	uint32_t timeoutHigh;
} aclrtTimeoutUs;

typedef union aclrtLaunchKernelAttrValue {
	uint8_t schemMode;
	uint32_t localMemorySize;
	uint32_t dynUBufSize;
	aclrtEngineType engineType;
	uint32_t blockDimOffset;
	uint8_t isBlockTaskPrefetch;
	uint8_t isDataDump;
	uint16_t timeout;		/* seconds */
	aclrtTimeoutUs timeoutUs;
	uint8_t enableProfiling;
	uint32_t rsv[4];
} aclrtLaunchKernelAttrValue;

typedef struct aclrtLaunchKernelAttr {
	aclrtLaunchKernelAttrId id;
	aclrtLaunchKernelAttrValue value;
} aclrtLaunchKernelAttr;

typedef struct aclrtLaunchKernelCfg {
	aclrtLaunchKernelAttr *attrs;
	size_t numAttrs;
} aclrtLaunchKernelCfg;

/*
 * Run a kernel as @numBlocks blocks when the stream gets there; its arguments
 * are @argsSize bytes of device memory.
 */
ACL_FUNC_VISIBILITY aclError aclrtLaunchKernel(aclrtFuncHandle funcHandle, uint32_t numBlocks,
					       const void *argsData, size_t argsSize,
					       aclrtStream stream);

/* The same with attributes; @cfg may be NULL. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchKernelV2(aclrtFuncHandle funcHandle, uint32_t numBlocks,
						 const void *argsData, size_t argsSize,
						 aclrtLaunchKernelCfg *cfg, aclrtStream stream);

/* The same with a list of arguments; @reserve is NULL. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle funcHandle,
							 uint32_t numBlocks, aclrtStream stream,
							 aclrtLaunchKernelCfg *cfg,
							 aclrtArgsHandle argsHandle, void *reserve);

/* The same with arguments in host memory, which are copied by the call. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle funcHandle,
							   uint32_t numBlocks, aclrtStream stream,
							   aclrtLaunchKernelCfg *cfg,
							   void *hostArgs, size_t argsSize,
							   aclrtPlaceHolderInfo *placeHolderArray,
							   size_t placeHolderNum);

/* The same with a pointer to each argument. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchKernelWithArgsArray(void *func, uint32_t numBlocks,
							    aclrtStream stream,
							    aclrtLaunchKernelCfg *cfg, void **args);

/* Run a SIMT kernel on a grid, with a pointer to each argument. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchSIMTKernelWithArgsArray(void *func, dim3 gridDim,
								dim3 blockDim, size_t dynUBufSize,
								aclrtStream stream,
								aclrtLaunchKernelCfg *cfg,
								void **args);

/* The same with arguments in host memory. */
ACL_FUNC_VISIBILITY aclError
aclrtLaunchSIMTKernelWithHostArgs(void *func, dim3 gridDim, dim3 blockDim, size_t dynUBufSize,
				  aclrtStream stream, aclrtLaunchKernelCfg *cfg, void *hostArgs,
				  size_t argsSize, aclrtPlaceHolderInfo *placeHolderArray,
				  size_t placeHolderNum);

/* --- Floating-point overflow --------------------------------------------- */

/* Device address where kernels of the current context note overflows. */
ACL_FUNC_VISIBILITY aclError aclrtCtxGetFloatOverflowAddr(void **overflowAddr);

/* Copy the overflow status to device memory when the stream gets there. */
ACL_FUNC_VISIBILITY aclError aclrtGetOverflowStatus(void *outputAddr, size_t outputSize,
						    aclrtStream stream);

/* Clear that status when the stream gets there. */
ACL_FUNC_VISIBILITY aclError aclrtResetOverflowStatus(aclrtStream stream);

/* aclrtGetOverflowStatus() for saturation mode. */
ACL_FUNC_VISIBILITY aclError aclrtGetFloatOverflowStatus(void *outputAddr, uint64_t outputSize,
							 aclrtStream stream);

/* aclrtResetOverflowStatus() for saturation mode. */
ACL_FUNC_VISIBILITY aclError aclrtResetFloatOverflowStatus(aclrtStream stream);

/* The same as aclrtGetFloatOverflowStatus() with a choice of what is checked. */
ACL_FUNC_VISIBILITY aclError aclrtNpuGetFloatOverFlowStatus(void *outputAddr, uint64_t outputSize,
							    uint32_t checkMode, aclrtStream stream);

/* Clear what it tells. */
ACL_FUNC_VISIBILITY aclError aclrtNpuClearFloatOverFlowStatus(uint32_t checkMode,
							      aclrtStream stream);

/* --- Capture: a model out of queued tasks -------------------------------- */

/* Which calls that cannot be captured are refused while a stream is capturing. */
typedef enum aclmdlRICaptureMode {
	ACL_MODEL_RI_CAPTURE_MODE_GLOBAL = 0,		/* those of all threads */
	ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL = 1,	/* those of the thread that began */
	ACL_MODEL_RI_CAPTURE_MODE_RELAXED = 2,		/* none */
} aclmdlRICaptureMode;

typedef enum aclmdlRICaptureStatus {
	ACL_MODEL_RI_CAPTURE_STATUS_NONE = 0,
	ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE = 1,
	ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED = 2,	/* something went wrong; end it */
} aclmdlRICaptureStatus;

/*
 * From now on tasks queued to the stream are recorded in a model, not run.
 * Other streams join by waiting for an event recorded in one that captures.
 */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode);

/* The same into a model that exists already. */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureToModelRIBegin(aclrtStream stream, aclmdlRI modelRI,
							   aclmdlRICaptureMode mode);

/* Whether the stream captures, and into which model. */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureGetInfo(aclrtStream stream,
						    aclmdlRICaptureStatus *status,
						    aclmdlRI *modelRI);

/*
 * End the capture and get the model, NULL if it was invalidated.  In the thread
 * that began, unless the mode is relaxed
 * (ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD).  Streams that joined must have
 * joined back (ACL_ERROR_RT_STREAM_UNJOINED).
 */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI *modelRI);

/* Exchange the calling thread's mode with *@mode. */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode *mode);

/*
 * Tasks queued from now on are a group that can be changed later.
 * ACL_ERROR_STREAM_TASK_GROUP_STATUS if there is one open.
 */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream);

/* End the group and get it. */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp *handle);

/* Tasks queued to the stream from now on take the places of those of the group. */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream,
							    aclrtTaskGrp handle);

/* End the change. */
ACL_FUNC_VISIBILITY aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream);

/* --- Models: run, build, look into --------------------------------------- */

/* Flags of aclmdlRIDebugJsonPrint(). */
#define ACL_MDLRI_DEBUG_JSON_PRINT_SUMMARY	0x0UL
#define ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE	0x1UL

typedef enum aclmdlRITaskType {
	ACL_MODEL_RI_TASK_DEFAULT = 0,
	ACL_MODEL_RI_TASK_KERNEL = 1,
	ACL_MODEL_RI_TASK_EVENT_RECORD = 2,
	ACL_MODEL_RI_TASK_EVENT_WAIT = 3,
	ACL_MODEL_RI_TASK_EVENT_RESET = 4,
	ACL_MODEL_RI_TASK_VALUE_WRITE = 5,
	ACL_MODEL_RI_TASK_VALUE_WAIT = 6,
} aclmdlRITaskType;

/* The parameters of a task, by its type. */
typedef struct aclmdlRIKernelTaskParams {
	aclrtFuncHandle funcHandle;
	aclrtLaunchKernelCfg *cfg;
	void *args;
	uint32_t isHostArgs;	/* 1: @args is host memory */
	size_t argsSize;
	uint32_t numBlocks;
	uint32_t rsv[10];
} aclmdlRIKernelTaskParams;

typedef struct aclmdlRIEventRecordTaskParams {
	aclrtEvent event;
	uint32_t eventFlag;
	uint32_t recordFlag;
} aclmdlRIEventRecordTaskParams;

typedef struct aclmdlRIEventWaitTaskParams {
	aclrtEvent event;
	uint32_t eventFlag;
	uint32_t waitFlag;
} aclmdlRIEventWaitTaskParams;

typedef struct aclmdlRIEventResetTaskParams {
	aclrtEvent event;
	uint32_t eventFlag;
	uint32_t resetFlag;
} aclmdlRIEventResetTaskParams;

typedef struct aclmdlRIValueWriteTaskParams {
	void *devAddr;
	uint64_t value;
} aclmdlRIValueWriteTaskParams;

typedef struct aclmdlRIValueWaitTaskParams {
	void *devAddr;
	uint64_t value;
	uint32_t flag;
} aclmdlRIValueWaitTaskParams;

typedef struct aclmdlRITaskParams {
	aclmdlRITaskType type;
	uint32_t rsv0[3];
	aclrtTaskGrp taskGrp;	/* NULL: none */
	void *opInfoPtr;	/* aclrtCacheLastTaskOpInfo() */
	size_t opInfoSize;
	uint8_t rsv1[32];
	union {
		uint8_t rsv2[128];
		struct aclmdlRIKernelTaskParams kernelTaskParams;
		struct aclmdlRIEventRecordTaskParams eventRecordTaskParams;
		struct aclmdlRIEventWaitTaskParams eventWaitTaskParams;
		struct aclmdlRIEventResetTaskParams eventResetTaskParams;
		struct aclmdlRIValueWriteTaskParams valueWriteTaskParams;
		struct aclmdlRIValueWaitTaskParams valueWaitTaskParams;
	};
} aclmdlRITaskParams;

/*
 * Run the model and wait, for at most @timeout milliseconds; -1 waits without a
 * limit.
 */
ACL_FUNC_VISIBILITY aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout);

/* Run the model when the stream gets there. */
ACL_FUNC_VISIBILITY aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream);

/* Stop a model that runs. */
ACL_FUNC_VISIBILITY aclError aclmdlRIAbort(aclmdlRI modelRI);

/* Free a model.  ACL_ERROR_RT_MODEL_RUNNING while it runs. */
ACL_FUNC_VISIBILITY aclError aclmdlRIDestroy(aclmdlRI modelRI);

/* Have @func called when the model is destroyed. */
ACL_FUNC_VISIBILITY aclError aclmdlRIDestroyRegisterCallback(aclmdlRI modelRI, aclrtCallback func,
							     void *userData);

/* Take back aclmdlRIDestroyRegisterCallback(). */
ACL_FUNC_VISIBILITY aclError aclmdlRIDestroyUnregisterCallback(aclmdlRI modelRI,
							       aclrtCallback func);

/* Start to build a model by hand; @flag is 0. */
ACL_FUNC_VISIBILITY aclError aclmdlRIBuildBegin(aclmdlRI *modelRI, uint32_t flag);

/* Flags of aclmdlRIBindStream: the stream begins with the model; it waits to be made active. */
#define ACL_MODEL_STREAM_FLAG_HEAD	0x00000000U
#define ACL_MODEL_STREAM_FLAG_DEFAULT	0x7FFFFFFFU

/* Make a stream, and what is queued to it from now on, part of the model. */
ACL_FUNC_VISIBILITY aclError aclmdlRIBindStream(aclmdlRI modelRI, aclrtStream stream,
						uint32_t flag);

/* The stream has its last task of the model. */
ACL_FUNC_VISIBILITY aclError aclmdlRIEndTask(aclmdlRI modelRI, aclrtStream stream);

/* The model is complete; @reserve is NULL. */
ACL_FUNC_VISIBILITY aclError aclmdlRIBuildEnd(aclmdlRI modelRI, void *reserve);

/* Take a stream out of the model. */
ACL_FUNC_VISIBILITY aclError aclmdlRIUnbindStream(aclmdlRI modelRI, aclrtStream stream);

/* Give the model a name; the last one counts. */
ACL_FUNC_VISIBILITY aclError aclmdlRISetName(aclmdlRI modelRI, const char *name);

/*
 * The model's name, at most @maxLen bytes with the terminating zero; empty if
 * it has none.
 */
ACL_FUNC_VISIBILITY aclError aclmdlRIGetName(aclmdlRI modelRI, uint32_t maxLen, char *name);

/* The model's number. */
ACL_FUNC_VISIBILITY aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t *modelRIId);

/*
 * The model's streams: @streams has room for *@numStreams, which gets how many
 * there are.  NULL as @streams only asks.
 * ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY if the room is too little.
 */
ACL_FUNC_VISIBILITY aclError aclmdlRIGetStreams(aclmdlRI modelRI, aclrtStream *streams,
						uint32_t *numStreams);

/* The tasks of one stream of a model, as above. */
ACL_FUNC_VISIBILITY aclError aclmdlRIGetTasksByStream(aclrtStream stream, aclmdlRITask *tasks,
						      uint32_t *numTasks);

/* What kind of task it is. */
ACL_FUNC_VISIBILITY aclError aclmdlRITaskGetType(aclmdlRITask task, aclmdlRITaskType *type);

/* The task's number in its model. */
ACL_FUNC_VISIBILITY aclError aclmdlRITaskGetSeqId(aclmdlRITask task, uint32_t *id);

/* The task's parameters. */
ACL_FUNC_VISIBILITY aclError aclmdlRITaskGetParams(aclmdlRITask task, aclmdlRITaskParams *params);

/* Change them, before aclmdlRIUpdate(). */
ACL_FUNC_VISIBILITY aclError aclmdlRITaskSetParams(aclmdlRITask task, aclmdlRITaskParams *params);

/* An attribute of a kernel task. */
ACL_FUNC_VISIBILITY aclError aclmdlRIKernelTaskGetAttribute(aclmdlRITask task,
							    aclrtLaunchKernelAttrId attrId,
							    aclrtLaunchKernelAttrValue *attrValue);

/* Leave the task out, from aclmdlRIUpdate() on. */
ACL_FUNC_VISIBILITY aclError aclmdlRITaskDisable(aclmdlRITask task);

/*
 * Put changes of tasks into force.  ACL_ERROR_RT_MODEL_UPDATE_FAILED if one
 * cannot be.
 */
ACL_FUNC_VISIBILITY aclError aclmdlRIUpdate(aclmdlRI modelRI);

/* Print a model for debugging.  Deprecated: prefer aclmdlRIDebugJsonPrint(). */
ACL_FUNC_VISIBILITY aclError aclmdlRIDebugPrint(aclmdlRI modelRI);

/* Write a model as JSON to a file, for debugging. */
ACL_FUNC_VISIBILITY aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char *path,
						    uint32_t flags);

/* --- Models: conditions -------------------------------------------------- */

typedef enum aclmdlRICondHandleFlag {
	ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT = 1,	/* the default before each run */
} aclmdlRICondHandleFlag;

typedef enum aclmdlRICondTaskType {
	ACL_MODEL_RI_COND_TYPE_IF = 0,
	ACL_MODEL_RI_COND_TYPE_WHILE = 1,
	ACL_MODEL_RI_COND_TYPE_SWITCH = 2,
} aclmdlRICondTaskType;

typedef struct tagAclmdlRICondTaskParams {
	aclmdlRICondHandle handle;
	aclmdlRICondTaskType type;
	uint32_t size;		/* entries of @modelRIArray */
	aclmdlRI *modelRIArray;	/* the branches */
} aclmdlRICondTaskParams;

/* Make a condition of a model, a 64-bit value in device memory. */
ACL_FUNC_VISIBILITY aclError aclmdlRICondHandleCreate(aclmdlRI modelRI, uint32_t defaultLaunchValue,
						      aclmdlRICondHandleFlag flag,
						      aclmdlRICondHandle *handle);

/* Its device address; the memory belongs to the model. */
ACL_FUNC_VISIBILITY aclError aclmdlRICondHandleGetCondPtr(aclmdlRICondHandle handle,
							  uint64_t **ptr);

/*
 * Have a stream that captures branch by a condition: to a model of @params,
 * zero or more times.  @flags is 0.
 */
ACL_FUNC_VISIBILITY aclError aclmdlRIAddCondTask(aclmdlRICondTaskParams params, aclrtStream stream,
						 uint32_t flags);

/* --- Dumps of model data ------------------------------------------------- */

/* Get ready for aclmdlSetDump(), after aclInit(). */
ACL_FUNC_VISIBILITY aclError aclmdlInitDump(void);

/* Dump as the JSON file @dumpCfgPath says.  ACL_ERROR_INVALID_DUMP_CONFIG. */
ACL_FUNC_VISIBILITY aclError aclmdlSetDump(const char *dumpCfgPath);

/* End it. */
ACL_FUNC_VISIBILITY aclError aclmdlFinalizeDump(void);

/* --- Profiling ----------------------------------------------------------- */

/*
 * Put @length bytes of the caller's (18 at most) into the trace when the stream
 * gets there.
 */
ACL_FUNC_VISIBILITY aclError aclrtProfTrace(void *userdata, int32_t length, aclrtStream stream);

/*
 * Keep @infoSize bytes about the operation with the task that the calling
 * thread queued last, for traces of a captured model.
 */
ACL_FUNC_VISIBILITY aclError aclrtCacheLastTaskOpInfo(const void *const infoPtr,
						      const size_t infoSize);

/* Keep more text with that task, which may be told when it fails. */
ACL_FUNC_VISIBILITY aclError aclrtCacheLastTaskExtendInfo(const char *const extendInfoPtr,
							  const size_t infoSize);

/* --- Message buffers ----------------------------------------------------- */

/* Allocate a message buffer of @size bytes. */
ACL_FUNC_VISIBILITY aclError aclrtAllocBuf(aclrtMbuf *buf, size_t size);

/* Free it. */
ACL_FUNC_VISIBILITY aclError aclrtFreeBuf(aclrtMbuf buf);

/* Set how many of its bytes are data. */
ACL_FUNC_VISIBILITY aclError aclrtSetBufDataLen(aclrtMbuf buf, size_t len);

/* How many of its bytes are data. */
ACL_FUNC_VISIBILITY aclError aclrtGetBufDataLen(aclrtMbuf buf, size_t *len);

/* Address and size of the buffer. */
ACL_FUNC_VISIBILITY aclError aclrtGetBufData(const aclrtMbuf buf, void **dataPtr, size_t *size);

/* Write @size bytes to the buffer's private area, from @offset on. */
ACL_FUNC_VISIBILITY aclError aclrtSetBufUserData(aclrtMbuf buf, const void *dataPtr, size_t size,
						 size_t offset);

/* Read @size bytes of the buffer's private area, from @offset on. */
ACL_FUNC_VISIBILITY aclError aclrtGetBufUserData(const aclrtMbuf buf, void *dataPtr, size_t size,
						 size_t offset);

/* A second handle for the same buffer. */
ACL_FUNC_VISIBILITY aclError aclrtCopyBufRef(const aclrtMbuf buf, aclrtMbuf *newBuf);

/* Hang a buffer onto the chain that starts with @headBuf. */
ACL_FUNC_VISIBILITY aclError aclrtAppendBufChain(aclrtMbuf headBuf, aclrtMbuf buf);

/* Number of buffers of a chain. */
ACL_FUNC_VISIBILITY aclError aclrtGetBufChainNum(aclrtMbuf headBuf, uint32_t *num);

/* A buffer of a chain, by its place from 0. */
ACL_FUNC_VISIBILITY aclError aclrtGetBufFromChain(aclrtMbuf headBuf, uint32_t index,
						  aclrtMbuf *buf);

/* --- Snapshots of a process ---------------------------------------------- */

typedef enum aclrtProcessState {
	ACL_RT_PROCESS_STATE_RUNNING = 0,
	ACL_RT_PROCESS_STATE_LOCKED = 1,
} aclrtProcessState;

typedef enum aclrtSnapShotStage {
	ACL_RT_SNAPSHOT_LOCK_PRE = 0,
	ACL_RT_SNAPSHOT_BACKUP_PRE = 1,
	ACL_RT_SNAPSHOT_BACKUP_POST = 2,
	ACL_RT_SNAPSHOT_RESTORE_PRE = 3,
	ACL_RT_SNAPSHOT_RESTORE_POST = 4,
	ACL_RT_SNAPSHOT_UNLOCK_POST = 5,
} aclrtSnapShotStage;

typedef struct aclrtSnapShotBackupArgs {
	uint32_t backupFlags;
	char reserved[60];
} aclrtSnapShotBackupArgs;

typedef struct aclrtSnapShotRestoreArgs {
	uint32_t restoreFlags;
	char reserved[60];
} aclrtSnapShotRestoreArgs;

typedef uint32_t (*aclrtSnapShotCallBack)(int32_t deviceId, void *args);

/*
 * Hold up all runtime calls of this process, @pid, which is about to be saved.
 * ACL_ERROR_SNAPSHOT_LOCK_FAILED, ACL_ERROR_SNAPSHOT_LOCK_TIMEOUT.
 */
ACL_FUNC_VISIBILITY aclError aclrtSnapShotProcessLock(int pid, void *reserve);

/* Save its device state to host memory; the last one counts. */
ACL_FUNC_VISIBILITY aclError aclrtSnapShotProcessBackup(int pid, aclrtSnapShotBackupArgs *args);

/* Make the device state what was saved. */
ACL_FUNC_VISIBILITY aclError aclrtSnapShotProcessRestore(int pid, aclrtSnapShotRestoreArgs *args);

/* Let runtime calls go on. */
ACL_FUNC_VISIBILITY aclError aclrtSnapShotProcessUnlock(int pid, void *reserve);

/* Have @callback called at a stage of that. */
ACL_FUNC_VISIBILITY aclError aclrtSnapShotCallbackRegister(aclrtSnapShotStage stage,
							   aclrtSnapShotCallBack callback,
							   void *args);

/* Take back aclrtSnapShotCallbackRegister(). */
ACL_FUNC_VISIBILITY aclError aclrtSnapShotCallbackUnregister(aclrtSnapShotStage stage,
							     aclrtSnapShotCallBack callback);

#ifdef __cplusplus
}
#endif

#endif
