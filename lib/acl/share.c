// SPDX-License-Identifier: MIT
/*
 * Physical memory of other processes: a number or 128 bytes stand for it, and who
 * imports it gets a handle like those of aclrtMallocPhysical().  The same memory in the
 * process that exported it is another handle of it.
 */
#include <inttypes.h>
#include "share.h"

/* ---- Forms ----------------------------------------------------------------------------- */

static aclError write_form(const char *what, aclrtMemSharedHandleType type, const struct npuacl_key *key, void *out)
{
	switch (type) {
	case ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT:
		memcpy(out, &key->id, sizeof(key->id));
		return ACL_SUCCESS;
	case ACL_MEM_SHARE_HANDLE_TYPE_FABRIC:
		memset(out, 0, sizeof(aclrtMemFabricHandle));
		npuacl_key_pack(out, NPUACL_EXPORT_PHYSICAL, key);
		return ACL_SUCCESS;
	default:
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no shareType %d; DEFAULT (1) or FABRIC (2)", what,
				   (int)type);
	}
}

static aclError read_form(const char *what, aclrtMemSharedHandleType type, const void *form, struct npuacl_key *key)
{
	if (!form)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: shareableHandle is NULL", what);
	switch (type) {
	case ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT:
		memcpy(&key->id, form, sizeof(key->id));
		key->secret = 0;
		if (!key->id)
			return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: 0 is no shareable handle", what);
		return ACL_SUCCESS;
	case ACL_MEM_SHARE_HANDLE_TYPE_FABRIC:
		return npuacl_key_unpack(what, form, NPUACL_EXPORT_PHYSICAL, key);
	default:
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no shareType %d; DEFAULT (1) or FABRIC (2)", what,
				   (int)type);
	}
}

/* ---- Giving out --------------------------------------------------------------------------- */

/* npuacl_vmm.lock held.  Again, it is the same key; once for all processes is for good. */
static aclError export(const char *what, struct npuacl_physical *p, bool any, struct npuacl_key *key)
{
	struct npuacl_record r = { .kind = NPUACL_EXPORT_PHYSICAL };
	aclError ret;

	while (p->of)
		p = p->of;
	if (p->key.id && npuacl_export_buf(p->key.id)) {
		if (any)
			npuacl_export_open(p->key.id);
		*key = p->key;
		return ACL_SUCCESS;
	}
	r.size = p->size;
	r.device = npuacl.dev[p->device].phys;
	r.any_process = any;
	r.attr = p->prop.memAttr;
	r.location = p->prop.location.type;
	ret = npuacl_export_add(what, p->buf, &r, key);
	if (!ret)
		p->key = *key;
	return ret;
}

static aclError export_to(const char *what, aclrtDrvMemHandle handle, u64 flags, aclrtMemSharedHandleType type,
			  void *out)
{
	struct npuacl_key key = { 0 };
	struct npuacl_physical *p;
	aclError ret;

	if (!out)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: shareableHandle is NULL", what);
	if (flags & ~(u64)ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: unknown flags %#" PRIx64, what, flags);
	if (type != ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT && type != ACL_MEM_SHARE_HANDLE_TYPE_FABRIC)
		return write_form(what, type, &key, out);
	pthread_mutex_lock(&npuacl_vmm.lock);
	ret = npuacl_physical(what, handle, &p);
	if (!ret)
		ret = export(what, p, flags & ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION, &key);
	pthread_mutex_unlock(&npuacl_vmm.lock);
	return ret ? ret : write_form(what, type, &key, out);
}

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType, uint64_t flags,
					 uint64_t *shareableHandle)
{
	static const char what[] = "aclrtMemExportToShareableHandle";

	if (handleType != ACL_MEM_HANDLE_TYPE_NONE)
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "%s: handleType %d is not supported: it gives a number, not a descriptor (ACL_MEM_HANDLE_TYPE_NONE)",
				   what, (int)handleType);
	return export_to(what, handle, flags, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, shareableHandle);
}

aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags,
					   aclrtMemSharedHandleType shareType, void *shareableHandle)
{
	return export_to("aclrtMemExportToShareableHandleV2", handle, flags, shareType, shareableHandle);
}

static aclError set_pid(const char *what, const void *form, aclrtMemSharedHandleType type, const s32 *pid, size_t n)
{
	struct npuacl_key key;
	aclError ret = read_form(what, type, form, &key);

	if (!ret)
		ret = npuacl_open();
	return ret ? ret : npuacl_export_allow(what, &key, NPUACL_EXPORT_PHYSICAL, pid, n);
}

aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid, size_t pidNum)
{
	return set_pid("aclrtMemSetPidToShareableHandle", &shareableHandle, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, pid, pidNum);
}

aclError aclrtMemSetPidToShareableHandleV2(void *shareableHandle, aclrtMemSharedHandleType shareType, int32_t *pid,
					   size_t pidNum)
{
	return set_pid("aclrtMemSetPidToShareableHandleV2", shareableHandle, shareType, pid, pidNum);
}

/* ---- Taking ------------------------------------------------------------------------------------ */

/* npuacl_vmm.lock held */
static aclError take_own(const char *what, u64 id, struct npuacl_physical *p)
{
	struct npuacl_physical *of = npuacl_physical_exported(id);

	if (!of)
		return npuacl_fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: the memory was freed just now", what);
	of->uses++;
	p->of = of;
	p->buf = of->buf;
	p->size = of->size;
	p->prop = of->prop;
	p->device = of->device;
	return ACL_SUCCESS;
}

static aclError take_foreign(const char *what, const struct npuacl_record *r, const struct npuacl_device *dev,
			     struct npuacl_physical *p)
{
	aclError ret = npuacl_import_get(what, r, &p->import);

	if (ret)
		return ret;
	if (r->offset || r->size != npuemu_buf_bytes(p->import->buf) || r->attr > ACL_MEM_P2P_HUGE1G) {
		npuacl_import_put(p->import);
		p->import = NULL;
		return npuacl_fail(ACL_ERROR_RT_IPC_ERROR, "%s: the record of process %u is damaged", what, r->exporter);
	}
	p->buf = p->import->buf;
	p->size = r->size;
	p->device = npuacl_logical(r->device, dev->id);
	p->prop.memAttr = (aclrtMemAttr)r->attr;
	p->prop.location.type = (aclrtMemLocationType)r->location;
	p->prop.location.id = r->location == ACL_MEM_LOCATION_TYPE_DEVICE ? p->device : 0;
	return ACL_SUCCESS;
}

static aclError import(const char *what, const struct npuacl_key *key, struct npuacl_device *dev,
		       aclrtDrvMemHandle *handle)
{
	struct npuacl_physical *p;
	struct npuacl_record r;
	aclError ret = npuacl_export_find(what, key, NPUACL_EXPORT_PHYSICAL, &r);

	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_vmm.lock);
	p = npuacl_physical_new(what);
	if (!p)
		ret = ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
	else if (npuacl_export_buf(key->id))
		ret = take_own(what, key->id, p);
	else
		ret = take_foreign(what, &r, dev, p);
	if (!ret) {
		p->user = dev->id;
		npuemu_slab_publish(&npuacl_physicals, p);
		*handle = (aclrtDrvMemHandle)p;
	} else if (p) {
		p->refs = 0;
		npuacl_physical_gone(p);
	}
	pthread_mutex_unlock(&npuacl_vmm.lock);
	return ret;
}

aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId, aclrtDrvMemHandle *handle)
{
	static const char what[] = "aclrtMemImportFromShareableHandle";
	struct npuacl_key key = { 0 };
	struct npuacl_device *dev;
	aclError ret;

	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: handle is NULL", what);
	ret = read_form(what, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &shareableHandle, &key);
	if (!ret)
		ret = npuacl_device(deviceId, &dev);
	return ret ? ret : import(what, &key, dev, handle);
}

aclError aclrtMemImportFromShareableHandleV2(void *shareableHandle, aclrtMemSharedHandleType shareType,
					     uint64_t flags, aclrtDrvMemHandle *handle)
{
	static const char what[] = "aclrtMemImportFromShareableHandleV2";
	struct npuacl_key key = { 0 };
	struct npuacl_ctx *ctx;
	aclError ret;

	if (!handle)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: handle is NULL", what);
	if (flags)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flags are %#" PRIx64 ", but there are none: use 0", what,
				   flags);
	ret = read_form(what, shareType, shareableHandle, &key);
	if (!ret)
		ret = npuacl_current(&ctx);
	return ret ? ret : import(what, &key, ctx->dev, handle);
}
