/* SPDX-License-Identifier: MIT */
/*
 * Profiling as programs start it: what to collect and on which devices, ranges and
 * marks of their own in the trace, and records of operators that a subscriber reads.
 */
#ifndef ACL_ACL_PROF_H
#define ACL_ACL_PROF_H

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What to collect: bits of dataTypeConfig. */
#define ACL_PROF_ACL_API		0x0001ULL
#define ACL_PROF_TASK_TIME		0x0002ULL
#define ACL_PROF_AICORE_METRICS		0x0004ULL
#define ACL_PROF_AICPU			0x0008ULL
#define ACL_PROF_L2CACHE		0x0010ULL
#define ACL_PROF_HCCL_TRACE		0x0020ULL
#define ACL_PROF_TRAINING_TRACE		0x0040ULL
#define ACL_PROF_MSPROFTX		0x0080ULL
#define ACL_PROF_RUNTIME_API		0x0100ULL
#define ACL_PROF_GE_API_L0		0x0200ULL
#define ACL_PROF_TASK_TIME_L0		0x0800ULL
#define ACL_PROF_TASK_MEMORY		0x1000ULL
#define ACL_PROF_TASK_TIME_L2		0x2000ULL
#define ACL_PROF_OP_ATTR		0x4000ULL
#define ACL_PROF_TASK_TIME_L3		0x8000ULL
#define ACL_PROF_GE_API_L1		0x01000000ULL
#define ACL_PROF_API_STATS		0x400000000ULL
#define ACL_PROF_AICORE_SHAPE		0x800000000ULL

/* Room that the name and the type of an operator need, with the NUL. */
#define ACL_PROF_MAX_OP_NAME_LEN	257
#define ACL_PROF_MAX_OP_TYPE_LEN	65

#define ACL_PROF_EVENT_ATTR_VERSION	1
#define ACL_PROF_TENSOR_DATA_SHAPE_LEN	8

/* Which counters of the cores. */
typedef enum aclprofAicoreMetrics {
	ACL_AICORE_ARITHMETIC_UTILIZATION = 0,
	ACL_AICORE_PIPE_UTILIZATION = 1,
	ACL_AICORE_MEMORY_BANDWIDTH = 2,
	ACL_AICORE_L0B_AND_WIDTH = 3,
	ACL_AICORE_RESOURCE_CONFLICT_RATIO = 4,
	ACL_AICORE_MEMORY_UB = 5,
	ACL_AICORE_L2_CACHE = 6,
	ACL_AICORE_PIPE_EXECUTE_UTILIZATION = 7,
	ACL_AICORE_MEMORY_ACCESS = 8,
	ACL_AICORE_NONE = 0xFF
} aclprofAicoreMetrics;

/* The two ends of a step of a training. */
typedef enum aclprofStepTag {
	ACL_STEP_START = 0,
	ACL_STEP_END = 1
} aclprofStepTag;

/* What a record of a subscription is about. */
typedef enum aclprofSubscribeOpFlag {
	ACL_SUBSCRIBE_OP = 0,
	ACL_SUBSCRIBE_SUBGRAPH = 1,
	ACL_SUBSCRIBE_OP_THREAD = 2,
	ACL_SUBSCRIBE_NONE = 0xFF
} aclprofSubscribeOpFlag;

/* A property of an operator in a record. */
typedef enum aclprofSubscribeOpAttri {
	ACL_SUBSCRIBE_ATTRI_THREADID = 0,
	ACL_SUBSCRIBE_ATTRI_NONE = 1
} aclprofSubscribeOpAttri;

/* Options of aclprofSetConfig, each with a text for a value. */
typedef enum aclprofConfigType {
	ACL_PROF_ARGS_MIN = 0,
	ACL_PROF_STORAGE_LIMIT = 1,
	ACL_PROF_SYS_HARDWARE_MEM_FREQ = 3,
	ACL_PROF_LLC_MODE = 4,
	ACL_PROF_SYS_IO_FREQ = 5,
	ACL_PROF_SYS_INTERCONNECTION_FREQ = 6,
	ACL_PROF_DVPP_FREQ = 7,
	ACL_PROF_HOST_SYS = 8,
	ACL_PROF_HOST_SYS_USAGE = 9,
	ACL_PROF_HOST_SYS_USAGE_FREQ = 10,
	ACL_PROF_LOW_POWER_FREQ = 11,
	ACL_PROF_SYS_MEM_SERVICEFLOW = 12,
	ACL_PROF_SYS_CPU_FREQ = 13,
	ACL_PROF_OPTYPE = 14,
	ACL_PROF_NTS_METRICS = 15,
	ACL_PROF_PATH = 16,
	ACL_PROF_ARGS_MAX = 17
} aclprofConfigType;

/* What the message of a range carries. */
typedef enum aclprofMessageType {
	ACL_PROF_MESSAGE_TYPE_TENSOR_INFO = 0
} aclprofMessageType;

typedef struct aclprofConfig aclprofConfig;
typedef struct aclprofStopConfig aclprofStopConfig;
typedef struct aclprofAicoreEvents aclprofAicoreEvents;
typedef struct aclprofSubscribeConfig aclprofSubscribeConfig;
typedef struct aclprofStepInfo aclprofStepInfo;

/* One tensor of an operator; @type: 0 for an input, 1 for an output. */
typedef struct aclprofTensor {
	uint32_t type;
	uint32_t format;
	uint32_t dataType;
	uint32_t shapeDim;
	uint32_t shape[ACL_PROF_TENSOR_DATA_SHAPE_LEN];
} aclprofTensor;

/* An operator and its tensors; the ids are of aclprofStr2Id. */
typedef struct aclprofTensorInfo {
	uint64_t opNameId;
	uint64_t opTypeId;
	uint32_t resv;
	uint32_t tensorNum;
	uint32_t kernelType;
	uint32_t blockNums;
	void *stream;
	aclprofTensor *tensors;
} aclprofTensorInfo;

/* A range with a message; @size is that of this structure. */
typedef struct aclprofEventAttributes {
	uint16_t version;
	uint16_t size;
	uint32_t messageType;
	union Message {
		aclprofTensorInfo *tensorInfo;
	} message;
} aclprofEventAttributes;

/* ---- Collecting ------------------------------------------------------------- */

/* Prepare for profiling; results go below the folder of that path. */
ACL_FUNC_VISIBILITY aclError aclprofInit(const char *profilerResultPath, size_t length);

/* The end of profiling; what was collected is written out. */
ACL_FUNC_VISIBILITY aclError aclprofFinalize(void);

/* Start to collect, as configured. */
ACL_FUNC_VISIBILITY aclError aclprofStart(const aclprofConfig *profilerConfig);

/* Stop; the configuration has to be that of the start. */
ACL_FUNC_VISIBILITY aclError aclprofStop(const aclprofConfig *profilerConfig);

/* Devices, counters and ACL_PROF_* bits of a start; NULL when that is not possible. */
ACL_FUNC_VISIBILITY aclprofConfig *aclprofCreateConfig(uint32_t *deviceIdList,
						       uint32_t deviceNums,
						       aclprofAicoreMetrics aicoreMetrics,
						       const aclprofAicoreEvents *aicoreEvents,
						       uint64_t dataTypeConfig);

/* Free a configuration that is not in use. */
ACL_FUNC_VISIBILITY aclError aclprofDestroyConfig(const aclprofConfig *profilerConfig);

/* Set an option; it holds for starts to come. */
ACL_FUNC_VISIBILITY aclError aclprofSetConfig(aclprofConfigType configType, const char *config,
					      size_t configLength);

/* ---- Subscriptions: records of a model's operators, as bytes through a pipe ------- */

/* Have records of a model written to the file descriptor of the configuration. */
ACL_FUNC_VISIBILITY aclError
aclprofModelSubscribe(uint32_t modelId, const aclprofSubscribeConfig *profSubscribeConfig);

/* No more of them. */
ACL_FUNC_VISIBILITY aclError aclprofModelUnSubscribe(uint32_t modelId);

/* @fd points to the file descriptor to write to. */
ACL_FUNC_VISIBILITY aclprofSubscribeConfig *
aclprofCreateSubscribeConfig(int8_t timeInfoSwitch, aclprofAicoreMetrics aicoreMetrics, void *fd);

/* Free a subscription's configuration. */
ACL_FUNC_VISIBILITY aclError
aclprofDestroySubscribeConfig(const aclprofSubscribeConfig *profSubscribeConfig);

/* Bytes of a record. */
ACL_FUNC_VISIBILITY aclError aclprofGetOpDescSize(size_t *opDescSize);

/* Records among these bytes. */
ACL_FUNC_VISIBILITY aclError aclprofGetOpNum(const void *opInfo, size_t opInfoLen,
					     uint32_t *opNumber);

/* Bytes that the type of a record's operator takes. */
ACL_FUNC_VISIBILITY aclError aclprofGetOpTypeLen(const void *opInfo, size_t opInfoLen,
						 uint32_t index, size_t *opTypeLen);

/* Copy out the operator's type. */
ACL_FUNC_VISIBILITY aclError aclprofGetOpType(const void *opInfo, size_t opInfoLen, uint32_t index,
					      char *opType, size_t opTypeLen);

/* Bytes that the operator's name takes. */
ACL_FUNC_VISIBILITY aclError aclprofGetOpNameLen(const void *opInfo, size_t opInfoLen,
						 uint32_t index, size_t *opNameLen);

/* Copy out the operator's name. */
ACL_FUNC_VISIBILITY aclError aclprofGetOpName(const void *opInfo, size_t opInfoLen, uint32_t index,
					      char *opName, size_t opNameLen);

/* When the operator began, in ns. */
ACL_FUNC_VISIBILITY uint64_t aclprofGetOpStart(const void *opInfo, size_t opInfoLen,
					       uint32_t index);

/* When it ended, in ns. */
ACL_FUNC_VISIBILITY uint64_t aclprofGetOpEnd(const void *opInfo, size_t opInfoLen, uint32_t index);

/* How long it took, in ns. */
ACL_FUNC_VISIBILITY uint64_t aclprofGetOpDuration(const void *opInfo, size_t opInfoLen,
						  uint32_t index);

/* Which model it belongs to. */
ACL_FUNC_VISIBILITY size_t aclprofGetModelId(const void *opInfo, size_t opInfoLen, uint32_t index);

/* What the record is about. */
ACL_FUNC_VISIBILITY aclprofSubscribeOpFlag aclprofGetOpFlag(const void *opInfo, size_t opInfoLen,
							    uint32_t index);

/* A property of the operator, as text. */
ACL_FUNC_VISIBILITY const char *aclprofGetOpAttriValue(const void *opInfo, size_t opInfoLen,
						       uint32_t index,
						       aclprofSubscribeOpAttri attri);

/* ---- Steps, stamps and ranges of the program --------------------------------------- */

/* Note the begin or the end of a step on a stream. */
ACL_FUNC_VISIBILITY aclError aclprofGetStepTimestamp(aclprofStepInfo *stepInfo, aclprofStepTag tag,
						     aclrtStream stream);

/* What names a step. */
ACL_FUNC_VISIBILITY aclprofStepInfo *aclprofCreateStepInfo(void);

/* Free it. */
ACL_FUNC_VISIBILITY void aclprofDestroyStepInfo(aclprofStepInfo *stepInfo);

/* What carries the text of a mark or a range. */
ACL_FUNC_VISIBILITY void *aclprofCreateStamp(void);

/* Free it. */
ACL_FUNC_VISIBILITY void aclprofDestroyStamp(void *stamp);

/* Give a stamp its text. */
ACL_FUNC_VISIBILITY aclError aclprofSetStampTraceMessage(void *stamp, const char *msg,
							 uint32_t msgLen);

/* A point in time. */
ACL_FUNC_VISIBILITY aclError aclprofMark(void *stamp);

/* The same, on the host and on a stream. */
ACL_FUNC_VISIBILITY aclError aclprofMarkEx(const char *msg, size_t msgLen, aclrtStream stream);

/* Open a range inside the thread's innermost one. */
ACL_FUNC_VISIBILITY aclError aclprofPush(void *stamp);

/* Close the thread's innermost one. */
ACL_FUNC_VISIBILITY aclError aclprofPop(void);

/* Open a range that any thread may close. */
ACL_FUNC_VISIBILITY aclError aclprofRangeStart(void *stamp, uint32_t *rangeId);

/* Close it. */
ACL_FUNC_VISIBILITY aclError aclprofRangeStop(uint32_t rangeId);

/* Open a range inside the thread's innermost one, with a structured message. */
ACL_FUNC_VISIBILITY aclError aclprofRangePushEx(aclprofEventAttributes *attr);

/* Close the innermost of those. */
ACL_FUNC_VISIBILITY aclError aclprofRangePop(void);

/* A number that stands for a text in structured messages. */
ACL_FUNC_VISIBILITY uint64_t aclprofStr2Id(const char *message);

#ifdef __cplusplus
}
#endif

#endif
