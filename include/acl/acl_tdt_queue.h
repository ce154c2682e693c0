/* SPDX-License-Identifier: MIT */
/*
 * Queues of shared buffers between processes and devices, routes from one queue to
 * another, and the buffers.
 */
#ifndef ACL_ACL_TDT_QUEUE_H
#define ACL_ACL_TDT_QUEUE_H

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a process may do with a queue: bits. */
#define ACL_TDT_QUEUE_PERMISSION_MANAGE		1
#define ACL_TDT_QUEUE_PERMISSION_DEQUEUE	2
#define ACL_TDT_QUEUE_PERMISSION_ENQUEUE	4

/* State of a route. */
#define ACL_TDT_QUEUE_ROUTE_UNBIND		0
#define ACL_TDT_QUEUE_ROUTE_BIND		1
#define ACL_TDT_QUEUE_ROUTE_BIND_ABNORMAL	2

typedef struct tagMemQueueAttr acltdtQueueAttr;
typedef struct acltdtQueueRouteList acltdtQueueRouteList;
typedef struct acltdtQueueRouteQueryInfo acltdtQueueRouteQueryInfo;
typedef struct acltdtQueueRoute acltdtQueueRoute;
typedef void *acltdtBuf;

/* Attributes of a queue, with the types of their values. */
typedef enum acltdtQueueAttrType {
	ACL_TDT_QUEUE_NAME_PTR = 0,
	ACL_TDT_QUEUE_DEPTH_UINT32 = 1
} acltdtQueueAttrType;

/* What a route consists of. */
typedef enum acltdtQueueRouteParamType {
	ACL_TDT_QUEUE_ROUTE_SRC_UINT32 = 0,
	ACL_TDT_QUEUE_ROUTE_DST_UINT32 = 1,
	ACL_TDT_QUEUE_ROUTE_STATUS_INT32 = 2
} acltdtQueueRouteParamType;

/* Which routes a query is for. */
typedef enum acltdtQueueRouteQueryMode {
	ACL_TDT_QUEUE_ROUTE_QUERY_SRC = 0,
	ACL_TDT_QUEUE_ROUTE_QUERY_DST = 1,
	ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST = 2,
	ACL_TDT_QUEUE_ROUTE_QUERY_ABNORMAL = 100
} acltdtQueueRouteQueryMode;

/* What a query consists of. */
typedef enum acltdtQueueRouteQueryInfoParamType {
	ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM = 0,
	ACL_TDT_QUEUE_ROUTE_QUERY_SRC_ID_UINT32 = 1,
	ACL_TDT_QUEUE_ROUTE_QUERY_DST_ID_UINT32 = 2
} acltdtQueueRouteQueryInfoParamType;

/* Memory of a buffer. */
typedef enum acltdtAllocBufType {
	ACL_TDT_NORMAL_MEM = 0,
	ACL_TDT_DVPP_MEM = 1
} acltdtAllocBufType;

/* ---- Queues ----------------------------------------------------------------- */

/* Make a queue; its number goes to @qid. */
ACL_FUNC_VISIBILITY aclError acltdtCreateQueue(const acltdtQueueAttr *attr, uint32_t *qid);

/* Unmake a queue. */
ACL_FUNC_VISIBILITY aclError acltdtDestroyQueue(uint32_t qid);

/* Put a buffer into it; timeout in ms, -1: for ever. */
ACL_FUNC_VISIBILITY aclError acltdtEnqueue(uint32_t qid, acltdtBuf buf, int32_t timeout);

/* Take a buffer out of it. */
ACL_FUNC_VISIBILITY aclError acltdtDequeue(uint32_t qid, acltdtBuf *buf, int32_t timeout);

/* Put data into it, with a few bytes of the user's beside it. */
ACL_FUNC_VISIBILITY aclError acltdtEnqueueData(uint32_t qid, const void *data, size_t dataSize,
					       const void *userData, size_t userDataSize,
					       int32_t timeout, uint32_t rsv);

/* Take data out of it; @retDataSize: how much there was. */
ACL_FUNC_VISIBILITY aclError acltdtDequeueData(uint32_t qid, void *data, size_t dataSize,
					       size_t *retDataSize, void *userData,
					       size_t userDataSize, int32_t timeout);

/* Let another process use the queue. */
ACL_FUNC_VISIBILITY aclError acltdtGrantQueue(uint32_t qid, int32_t pid, uint32_t permission,
					      int32_t timeout);

/* Wait until this process may, and learn for what. */
ACL_FUNC_VISIBILITY aclError acltdtAttachQueue(uint32_t qid, int32_t timeout, uint32_t *permission);

/* ---- Routes ----------------------------------------------------------------- */

/* Make the routes of a list. */
ACL_FUNC_VISIBILITY aclError acltdtBindQueueRoutes(acltdtQueueRouteList *qRouteList);

/* Unmake them. */
ACL_FUNC_VISIBILITY aclError acltdtUnbindQueueRoutes(acltdtQueueRouteList *qRouteList);

/* Which routes there are. */
ACL_FUNC_VISIBILITY aclError acltdtQueryQueueRoutes(const acltdtQueueRouteQueryInfo *queryInfo,
						    acltdtQueueRouteList *qRouteList);

/* ---- Buffers ---------------------------------------------------------------- */

/* Allocate a buffer; @type: enum acltdtAllocBufType. */
ACL_FUNC_VISIBILITY aclError acltdtAllocBuf(size_t size, uint32_t type, acltdtBuf *buf);

/* Free it. */
ACL_FUNC_VISIBILITY aclError acltdtFreeBuf(acltdtBuf buf);

/* Where its data is, and its room. */
ACL_FUNC_VISIBILITY aclError acltdtGetBufData(const acltdtBuf buf, void **dataPtr, size_t *size);

/* Bytes of valid data. */
ACL_FUNC_VISIBILITY aclError acltdtSetBufDataLen(acltdtBuf buf, size_t len);

/* Read that back. */
ACL_FUNC_VISIBILITY aclError acltdtGetBufDataLen(acltdtBuf buf, size_t *len);

/* One more handle for the same data. */
ACL_FUNC_VISIBILITY aclError acltdtCopyBufRef(const acltdtBuf buf, acltdtBuf *newBuf);

/* Put a buffer, or a chain of them, at the end of a chain. */
ACL_FUNC_VISIBILITY aclError acltdtAppendBufChain(acltdtBuf headBuf, acltdtBuf buf);

/* Buffers in a chain. */
ACL_FUNC_VISIBILITY aclError acltdtGetBufChainNum(acltdtBuf headBuf, uint32_t *num);

/* One of them. */
ACL_FUNC_VISIBILITY aclError acltdtGetBufFromChain(acltdtBuf headBuf, uint32_t index,
						   acltdtBuf *buf);

/* Set bytes of the user's that go with a buffer. */
ACL_FUNC_VISIBILITY aclError acltdtSetBufUserData(acltdtBuf buf, const void *dataPtr, size_t size,
						  size_t offset);

/* Read them. */
ACL_FUNC_VISIBILITY aclError acltdtGetBufUserData(const acltdtBuf buf, void *dataPtr, size_t size,
						  size_t offset);

/* ---- Descriptions ----------------------------------------------------------- */

/* Attributes for a queue to be. */
ACL_FUNC_VISIBILITY acltdtQueueAttr *acltdtCreateQueueAttr(void);

/* Free them. */
ACL_FUNC_VISIBILITY aclError acltdtDestroyQueueAttr(const acltdtQueueAttr *attr);

/* Set one. */
ACL_FUNC_VISIBILITY aclError acltdtSetQueueAttr(acltdtQueueAttr *attr, acltdtQueueAttrType type,
						size_t len, const void *param);

/* Read one. */
ACL_FUNC_VISIBILITY aclError acltdtGetQueueAttr(const acltdtQueueAttr *attr,
						acltdtQueueAttrType type, size_t len,
						size_t *paramRetSize, void *param);

/* A route from one queue to another. */
ACL_FUNC_VISIBILITY acltdtQueueRoute *acltdtCreateQueueRoute(uint32_t srcId, uint32_t dstId);

/* Free it. */
ACL_FUNC_VISIBILITY aclError acltdtDestroyQueueRoute(const acltdtQueueRoute *route);

/* A part of it. */
ACL_FUNC_VISIBILITY aclError acltdtGetQueueRouteParam(const acltdtQueueRoute *route,
						      acltdtQueueRouteParamType type, size_t len,
						      size_t *paramRetSize, void *param);

/* An empty list of routes. */
ACL_FUNC_VISIBILITY acltdtQueueRouteList *acltdtCreateQueueRouteList(void);

/* Free it. */
ACL_FUNC_VISIBILITY aclError acltdtDestroyQueueRouteList(const acltdtQueueRouteList *routeList);

/* Add a route to it. */
ACL_FUNC_VISIBILITY aclError acltdtAddQueueRoute(acltdtQueueRouteList *routeList,
						 const acltdtQueueRoute *route);

/* A route of it. */
ACL_FUNC_VISIBILITY aclError acltdtGetQueueRoute(const acltdtQueueRouteList *routeList,
						 size_t index, acltdtQueueRoute *route);

/* How many there are. */
ACL_FUNC_VISIBILITY size_t acltdtGetQueueRouteNum(const acltdtQueueRouteList *routeList);

/* An empty query. */
ACL_FUNC_VISIBILITY acltdtQueueRouteQueryInfo *acltdtCreateQueueRouteQueryInfo(void);

/* Free it. */
ACL_FUNC_VISIBILITY aclError
acltdtDestroyQueueRouteQueryInfo(const acltdtQueueRouteQueryInfo *param);

/* Set a part of it. */
ACL_FUNC_VISIBILITY aclError
acltdtSetQueueRouteQueryInfo(acltdtQueueRouteQueryInfo *param,
			     acltdtQueueRouteQueryInfoParamType type, size_t len,
			     const void *value);

#ifdef __cplusplus
}
#endif

#endif
