/* SPDX-License-Identifier: MIT */
/*
 * Dumps: where the runtime puts data of operators and of exceptions, and how a
 * program takes it itself instead.
 */
#ifndef ACL_ACL_DUMP_H
#define ACL_ACL_DUMP_H

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ACL_DUMP_MAX_FILE_PATH_LENGTH	4096
#define ACL_DUMP_MAX_SHAPE_NUM		25

/* What aclopStartDumpArgs is to dump. */
#define ACL_OP_DUMP_OP_AICORE_ARGS	0x00000001U

/* Kinds of dumps. */
typedef enum acldumpType {
	AIC_ERR_BRIEF_DUMP = 1,
	AIC_ERR_NORM_DUMP = 2,
	AIC_ERR_DETAIL_DUMP = 3,
	DATA_DUMP = 4,
	OVERFLOW_DUMP = 5
} acldumpType;

/* A tensor's part in its operator. */
typedef enum acldumpTensorType {
	ACL_DUMP_TENSOR_INPUT = 0,
	ACL_DUMP_TENSOR_OUTPUT = 1,
	ACL_DUMP_TENSOR_WORKSPACE = 2
} acldumpTensorType;

/* How tensorAddr leads to the data. */
typedef enum acldumpTensorAddressType {
	ACL_DUMP_ADDR_PTR = 0,
	ACL_DUMP_ADDR_PTR_PTR = 1,
	ACL_DUMP_ADDR_RAW = 2
} acldumpTensorAddressType;

/* Where the data is. */
typedef enum acldumpTensorPlacement {
	ACL_DUMP_PLACEMENT_DEVICE = 0,
	ACL_DUMP_PLACEMENT_HOST = 1,
	ACL_DUMP_PLACEMENT_END = 2
} acldumpTensorPlacement;

/* A piece of a dump's file, of bufLen bytes, as a callback gets it. */
typedef struct acldumpChunk {
	char fileName[ACL_DUMP_MAX_FILE_PATH_LENGTH];
	uint32_t bufLen;
	uint32_t isLastChunk;
	int64_t offset;		/* in the file; -1: behind what came before */
	int32_t flag;
	/* C++ has no flexible array: this one is of the size that all compilers agree on. */
	__extension__ uint8_t dataBuf[0];
} acldumpChunk;

/* A tensor for acldumpSaveExceptionInfo. */
typedef struct acldumpTensorInfo {
	acldumpTensorType type;
	size_t tensorSize;
	int32_t format;
	int32_t dataType;
	int64_t *tensorAddr;
	acldumpTensorAddressType addrType;
	acldumpTensorPlacement placement;
	uint32_t argsOffset;
	uint32_t shapeNum;
	uint32_t originShapeNum;
	uint64_t shape[ACL_DUMP_MAX_SHAPE_NUM];
	uint64_t originShape[ACL_DUMP_MAX_SHAPE_NUM];
} acldumpTensorInfo;

/* Dump the arguments of operators into files below @path. */
ACL_FUNC_VISIBILITY aclError aclopStartDumpArgs(uint32_t dumpType, const char *path);

/* No longer. */
ACL_FUNC_VISIBILITY aclError aclopStopDumpArgs(uint32_t dumpType);

/* Where dumps of a kind go; NULL if they go nowhere. */
ACL_FUNC_VISIBILITY const char *acldumpGetPath(acldumpType dumpType);

/* Where data of exceptions goes, copied out. */
ACL_FUNC_VISIBILITY aclError acldumpGetExceptionInfoPath(char *path, size_t pathLen);

/* Write tensors of an operator that failed to a file. */
ACL_FUNC_VISIBILITY aclError acldumpSaveExceptionInfo(const char *opName, const char *fileName,
						      const acldumpTensorInfo *tensors,
						      size_t tensorNum);

/* Have dumps handed to a function instead of written to files. */
ACL_FUNC_VISIBILITY aclError
acldumpRegCallback(int32_t (*const messageCallback)(const acldumpChunk *, int32_t), int32_t flag);

/* Files again. */
ACL_FUNC_VISIBILITY void acldumpUnregCallback(void);

#ifdef __cplusplus
}
#endif

#endif
