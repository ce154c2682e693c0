// SPDX-License-Identifier: MIT
/*
 * Arguments for the calls of badinput.c: a handle of each kind, alive or freed, and
 * memory of each kind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "badinput.h"

struct bad_world bad_world;

#define W	bad_world
#define BYTES	(2u << 20)

static void must(int ok, const char *what)
{
	const char *msg;

	if (ok)
		return;
	msg = aclGetRecentErrMsg();
	printf("badinput: cannot prepare: %s: %s\n", what, msg ? msg : "no message");
	fflush(stdout);
	_exit(2);
}

#define OK(expr) must(!(expr), #expr)

void bad_pages(void)
{
	unsigned int i;

	for (i = 0; i < BAD_ARGS; i++) {
		if (!W.page[i]) {
			W.page[i] = mmap(NULL, BAD_PAGE, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			must(W.page[i] != MAP_FAILED, "mmap");
		}
		memset(W.page[i], 0, BAD_PAGE);
	}
}

/* ---- Handles -------------------------------------------------------------------------- */

/* A model of one copy, which is a group that may change. */
static aclmdlRI capture(aclrtStream s, aclrtTaskGrp *group)
{
	aclmdlRI model;

	OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
	OK(aclmdlRICaptureTaskGrpBegin(s));
	OK(aclrtMemsetAsync(W.device, 64, 0, 64, s));
	OK(aclmdlRICaptureTaskGrpEnd(s, group));
	OK(aclmdlRICaptureEnd(s, &model));
	return model;
}

static aclmdlRI model_of(enum bad_kind kind, void **inside)
{
	aclrtTaskGrp group;
	aclmdlRITask tasks[8];
	aclmdlRI model;
	aclmdlRICaptureStatus status;
	aclrtStream s, streams[8];
	uint32_t n = 8;

	OK(aclrtCreateStream(&s));
	if (kind == BAD_COND) {
		OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
		OK(aclmdlRICaptureGetInfo(s, &status, &model));
		OK(aclmdlRICondHandleCreate(model, 0, 0, inside));
		OK(aclrtMemsetAsync(W.device, 64, 0, 64, s));
		OK(aclmdlRICaptureEnd(s, &model));
		return model;
	}
	model = capture(s, &group);
	*inside = group;
	if (kind == BAD_TASK) {
		OK(aclmdlRIGetStreams(model, streams, &n));
		must(n > 0, "a model without streams");
		n = 8;
		OK(aclmdlRIGetTasksByStream(streams[0], tasks, &n));
		must(n > 0, "a stream of a model without tasks");
		*inside = tasks[0];
	}
	return model;
}

static aclrtDrvMemHandle physical(void)
{
	aclrtDrvMemHandle h;

	OK(aclrtMallocPhysical(&h, BYTES, &W.prop, 0));
	return h;
}

static aclrtMemPool pool(void)
{
	aclrtMemPool p;

	OK(aclrtMemPoolCreate(&p, &W.pool_props));
	return p;
}

static aclrtLabelList label_list(void)
{
	aclrtLabelList list;
	aclrtLabel label;

	OK(aclrtCreateLabel(&label));
	OK(aclrtCreateLabelList(&label, 1, &list));
	return list;
}

static void *make(enum bad_kind kind, void **keep)
{
	uint32_t device = 0;
	int32_t devices[] = { 0 };
	void *h = NULL;

	*keep = NULL;
	switch (kind) {
	case BAD_STREAM:
		OK(aclrtCreateStream(&h));
		break;
	case BAD_EVENT:
		OK(aclrtCreateEvent(&h));
		break;
	case BAD_CONTEXT:
		OK(aclrtCreateContext(&h, 0));
		OK(aclrtSetCurrentContext(W.ctx));
		break;
	case BAD_NOTIFY:
		OK(aclrtCreateNotify(&h, 0));
		break;
	case BAD_CNT_NOTIFY:
		OK(aclrtCntNotifyCreate(&h, 0));
		break;
	case BAD_LABEL:
		OK(aclrtCreateLabel(&h));
		break;
	case BAD_LABEL_LIST:
		h = label_list();
		break;
	case BAD_MODEL:
		h = model_of(kind, keep);
		break;
	case BAD_TASK:
	case BAD_GROUP:
	case BAD_COND:
		*keep = model_of(kind, &h);
		break;
	case BAD_PHYSICAL:
		h = physical();
		break;
	case BAD_POOL:
		h = pool();
		break;
	case BAD_DESC:
		h = aclrtAllocatorCreateDesc();
		break;
	case BAD_BUFFER:
		h = aclCreateDataBuffer(W.device, 64);
		break;
	case BAD_STREAM_CONFIG:
		h = aclrtCreateStreamConfigHandle();
		break;
	case BAD_PROF_CONFIG:
		h = aclprofCreateConfig(&device, 1, ACL_AICORE_NONE, NULL, ACL_PROF_ACL_API);
		break;
	case BAD_STEP:
		h = aclprofCreateStepInfo();
		break;
	case BAD_STAMP:
		h = aclprofCreateStamp();
		break;
	case BAD_COMM:
		OK(HcclCommInitAll(1, devices, &h));
		break;
	default:
		return W.page[BAD_ARGS - 1];
	}
	must(!!h, "a handle");
	return h;
}

static void unmake(enum bad_kind kind, void *h, void *keep)
{
	switch (kind) {
	case BAD_STREAM:
		OK(aclrtDestroyStream(h));
		break;
	case BAD_EVENT:
		OK(aclrtDestroyEvent(h));
		break;
	case BAD_CONTEXT:
		OK(aclrtDestroyContext(h));
		break;
	case BAD_NOTIFY:
		OK(aclrtDestroyNotify(h));
		break;
	case BAD_CNT_NOTIFY:
		OK(aclrtCntNotifyDestroy(h));
		break;
	case BAD_LABEL:
		OK(aclrtDestroyLabel(h));
		break;
	case BAD_LABEL_LIST:
		OK(aclrtDestroyLabelList(h));
		break;
	case BAD_MODEL:
		OK(aclmdlRIDestroy(h));
		break;
	case BAD_TASK:
	case BAD_GROUP:
	case BAD_COND:	/* theirs goes, and they with it */
		OK(aclmdlRIDestroy(keep));
		break;
	case BAD_PHYSICAL:
		OK(aclrtFreePhysical(h));
		break;
	case BAD_POOL:
		OK(aclrtMemPoolDestroy(h));
		break;
	case BAD_DESC:
		OK(aclrtAllocatorDestroyDesc(h));
		break;
	case BAD_BUFFER:
		OK(aclDestroyDataBuffer(h));
		break;
	case BAD_STREAM_CONFIG:
		OK(aclrtDestroyStreamConfigHandle(h));
		break;
	case BAD_PROF_CONFIG:
		OK(aclprofDestroyConfig(h));
		break;
	case BAD_STEP:
		aclprofDestroyStepInfo(h);
		break;
	case BAD_STAMP:
		aclprofDestroyStamp(h);
		break;
	case BAD_COMM:
		OK(HcclCommDestroy(h));
		break;
	default:
		break;
	}
}

static const char *directory(void)
{
	const char *dir = getenv("TMPDIR");

	return dir ? dir : "/tmp";
}

void *bad_other(enum bad_kind kind)
{
	return W.live[kind == BAD_STREAM ? BAD_EVENT : BAD_STREAM];
}

/* ---- What goes into arguments ------------------------------------------------------------ */

static void contents(void)
{
	const aclrtMemLocation here = { .id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE };

	W.prop = (aclrtPhysicalMemProp){ .memAttr = ACL_HBM_MEM_HUGE, .location = here };
	W.pool_props = (aclrtMemPoolProps){ .location = here };
	W.access = (aclrtMemAccessDesc){ .flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE, .location = here };
	W.batch = (aclrtMemcpyBatchAttr){
		.dstLoc = here, .srcLoc = { .type = ACL_MEM_LOCATION_TYPE_HOST },
	};
	W.list[0][0] = W.device;
	W.list[1][0] = W.pinned;
	W.sizes[0] = 64;
	W.counts[0] = 16;
	W.package = "runtime";
	W.soc = "Ascend950";
}

/* ---- The whole of it ------------------------------------------------------------------- */

void bad_world_make(const struct bad_function *f)
{
	bool wanted[BAD_KINDS] = { [BAD_STREAM] = true, [BAD_EVENT] = true };
	uint32_t devices = 0, i;
	enum bad_kind k;
	void *keep;

	OK(aclInit(NULL));
	OK(aclrtSetDevice(0));
	OK(aclrtGetCurrentContext(&W.ctx));
	OK(aclrtGetDeviceCount(&devices));
	OK(aclrtCreateContext(&W.other_ctx, devices > 1));
	OK(aclrtSetCurrentContext(W.ctx));
	OK(aclrtMalloc((void **)&W.device, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMalloc((void **)&W.device2, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
	OK(aclrtMallocHost((void **)&W.pinned, BYTES));
	OK(aclrtReserveMemAddress((void **)&W.reserved, BYTES, 0, NULL, 1));
	contents();
	for (i = 0; i < f->args; i++)
		wanted[f->kind[i]] = true;
	/* profiling that is on changes the others: only where there has to be a stamp */
	if (wanted[BAD_STAMP])
		OK(aclprofInit(directory(), strlen(directory())));
	/* those that stay first: a new handle may get the address of one that has gone */
	for (k = BAD_HANDLES; k < BAD_KINDS; k++)
		if (wanted[k])
			W.live[k] = make(k, &keep);
	OK(aclrtMalloc((void **)&W.gone, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
	for (k = BAD_HANDLES; k < BAD_KINDS; k++) {
		if (!wanted[k])
			continue;
		W.freed[k] = make(k, &keep);
		unmake(k, W.freed[k], keep);
	}
	/* whatever is made with the first use of a queue */
	OK(aclrtMemsetAsync(W.device, 64, 0, 64, NULL));
	OK(aclrtSynchronizeStream(NULL));
	OK(aclrtFree(W.gone));
	W.made = true;
}

static void *nothing(void)
{
	return NULL;
}

union bad_arg bad_right(const struct bad_function *f, unsigned int i)
{
	union bad_arg a = { .p = W.page[i] };

	switch (f->kind[i]) {
	case BAD_NUMBER:
	case BAD_FLOAT:
		a.u = 0;
		break;
	case BAD_SIZE:
		a.u = 64;
		break;
	case BAD_TEXT:
		strcpy(W.page[i], "badinput");
		break;
	case BAD_MEMORY:
		if (W.made)
			a.p = i & 1 ? W.device2 : W.device;
		break;
	case BAD_FUNCTION:
		a.f = (void (*)(void))nothing;
		break;
	case BAD_ANY:
	case BAD_STRUCT:
	case BAD_DATA:
		break;
	default:
		if (W.made)
			a.p = W.live[f->kind[i]];
	}
	return a;
}
