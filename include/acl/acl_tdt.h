/* SPDX-License-Identifier: MIT */
/*
 * Channels that carry tensors between host and device: data items make up a
 * dataset, and a dataset is sent or received as one.
 */
#ifndef ACL_ACL_TDT_H
#define ACL_ACL_TDT_H

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a data item is. */
enum acltdtTensorType {
	ACL_TENSOR_DATA_UNDEFINED = -1,
	ACL_TENSOR_DATA_TENSOR = 0,
	ACL_TENSOR_DATA_END_OF_SEQUENCE = 1,
	ACL_TENSOR_DATA_ABNORMAL = 2,
	ACL_TENSOR_DATA_SLICE_TENSOR = 3,
	ACL_TENSOR_DATA_END_TENSOR = 4
};

typedef struct acltdtDataItem acltdtDataItem;
typedef struct acltdtDataset acltdtDataset;
typedef struct acltdtChannelHandle acltdtChannelHandle;

/* ---- Data items ------------------------------------------------------------- */

/* What an item is. */
ACL_FUNC_VISIBILITY enum acltdtTensorType
acltdtGetTensorTypeFromItem(const acltdtDataItem *dataItem);

/* Type of its elements. */
ACL_FUNC_VISIBILITY aclDataType acltdtGetDataTypeFromItem(const acltdtDataItem *dataItem);

/* Where its data is. */
ACL_FUNC_VISIBILITY void *acltdtGetDataAddrFromItem(const acltdtDataItem *dataItem);

/* Bytes of its data. */
ACL_FUNC_VISIBILITY size_t acltdtGetDataSizeFromItem(const acltdtDataItem *dataItem);

/* Number of its dimensions. */
ACL_FUNC_VISIBILITY size_t acltdtGetDimNumFromItem(const acltdtDataItem *dataItem);

/* Which slice of a tensor it is, and of how many. */
ACL_FUNC_VISIBILITY aclError acltdtGetSliceInfoFromItem(const acltdtDataItem *dataItem,
							size_t *sliceNum, size_t *sliceId);

/* Copy out its dimensions; dimNum is the room for them. */
ACL_FUNC_VISIBILITY aclError acltdtGetDimsFromItem(const acltdtDataItem *dataItem, int64_t *dims,
						   size_t dimNum);

/* Make an item of data that stays the caller's. */
ACL_FUNC_VISIBILITY acltdtDataItem *acltdtCreateDataItem(enum acltdtTensorType tdtType,
							 const int64_t *dims, size_t dimNum,
							 aclDataType dataType, void *data,
							 size_t size);

/* Free an item. */
ACL_FUNC_VISIBILITY aclError acltdtDestroyDataItem(acltdtDataItem *dataItem);

/* ---- Datasets --------------------------------------------------------------- */

/* An empty dataset. */
ACL_FUNC_VISIBILITY acltdtDataset *acltdtCreateDataset(void);

/* Free it; items that were added stay. */
ACL_FUNC_VISIBILITY aclError acltdtDestroyDataset(acltdtDataset *dataset);

/* An item by its number, NULL if there is none. */
ACL_FUNC_VISIBILITY acltdtDataItem *acltdtGetDataItem(const acltdtDataset *dataset, size_t index);

/* Add an item at the end. */
ACL_FUNC_VISIBILITY aclError acltdtAddDataItem(acltdtDataset *dataset, acltdtDataItem *dataItem);

/* Number of items. */
ACL_FUNC_VISIBILITY size_t acltdtGetDatasetSize(const acltdtDataset *dataset);

/* The name that came with it. */
ACL_FUNC_VISIBILITY const char *acltdtGetDatasetName(const acltdtDataset *dataset);

/* ---- Channels --------------------------------------------------------------- */

/* Make a channel to a device. */
ACL_FUNC_VISIBILITY acltdtChannelHandle *acltdtCreateChannel(uint32_t deviceId, const char *name);

/* The same, with room for so many datasets. */
ACL_FUNC_VISIBILITY acltdtChannelHandle *
acltdtCreateChannelWithCapacity(uint32_t deviceId, const char *name, size_t capacity);

/* Unmake a channel. */
ACL_FUNC_VISIBILITY aclError acltdtDestroyChannel(acltdtChannelHandle *handle);

/* Wake up who waits on it. */
ACL_FUNC_VISIBILITY aclError acltdtStopChannel(acltdtChannelHandle *handle);

/* Throw away what is in it. */
ACL_FUNC_VISIBILITY aclError acltdtCleanChannel(acltdtChannelHandle *handle);

/* Send a dataset; timeout in ms, -1: for ever. */
ACL_FUNC_VISIBILITY aclError acltdtSendTensor(const acltdtChannelHandle *handle,
					      const acltdtDataset *dataset, int32_t timeout);

/* Receive into a dataset; timeout in ms, -1: for ever. */
ACL_FUNC_VISIBILITY aclError acltdtReceiveTensor(const acltdtChannelHandle *handle,
						 acltdtDataset *dataset, int32_t timeout);

/* Datasets in it at the moment. */
ACL_FUNC_VISIBILITY aclError acltdtQueryChannelSize(const acltdtChannelHandle *handle,
						    size_t *size);

#ifdef __cplusplus
}
#endif

#endif
