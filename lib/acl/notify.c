// SPDX-License-Identifier: MIT
/*
 * Notifies, counting ones too, and values in device memory that a stream writes
 * or waits for.  A notify is a word of device memory: recording it is a store by
 * an engine, in order with the stream's copies; the wait takes it back to 0.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "check.h"
#include "share.h"

#define OF_DEVICE	8192u	/* of one process; the hardware's limit for all is above it */
#define ALL_FLAGS	ACL_NOTIFY_DEVICE_USE_ONLY

static struct npuemu_slab notifies = {
	.what = "notify", .size = NPUEMU_SLAB_SIZE(struct npuacl_notify), .max = 1u << 19,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* The words of a device, and which are taken. */
struct npuacl_words {
	struct npuemu_buf *buf;
	volatile u64 *word;
	u32 next;
	u64 taken[OF_DEVICE / 64];
};

static struct npuacl_words *words_of[NPUACL_DEVICES];	/* npuacl.lock */

/* npuacl.lock held */
static aclError words_make(struct npuacl_device *d)
{
	struct npuacl_words *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "out of host memory");
	err = npuemu_buf_alloc(npuacl.board, d->phys, OF_DEVICE * sizeof(u64), 0, &w->buf);
	if (err) {
		free(w);
		return npuacl_fail_core(err, ACL_ERROR_RT_INTERNAL_ERROR, "words for notifies");
	}
	w->word = npuemu_buf_ptr(w->buf);
	words_of[d->id] = w;
	return ACL_SUCCESS;
}

static aclError word_take(struct npuacl_device *d, u32 *index)
{
	struct npuacl_words *w;
	aclError ret = ACL_SUCCESS;
	u32 n, i;

	pthread_mutex_lock(&npuacl.lock);
	if (!words_of[d->id])
		ret = words_make(d);
	w = words_of[d->id];
	for (n = 0; !ret && n < OF_DEVICE; n++) {
		i = (w->next + n) % OF_DEVICE;
		if (w->taken[i / 64] & 1ull << i % 64)
			continue;
		w->taken[i / 64] |= 1ull << i % 64;
		w->next = (i + 1) % OF_DEVICE;
		w->word[i] = 0;
		*index = i;
		break;
	}
	if (!ret && n == OF_DEVICE)
		ret = npuacl_fail(ACL_ERROR_RT_NO_NOTIFY_RESOURCE,
				  "device %u has %u notifies of this process, the most it can: destroy some", d->id,
				  OF_DEVICE);
	pthread_mutex_unlock(&npuacl.lock);
	return ret;
}

void npuacl_notifies_fork(void)
{
	memset(words_of, 0, sizeof(words_of));
	npuacl_notify_kept_fork();
	npuemu_slab_fork(&notifies);
}

/* npuacl.lock held */
static bool others_run(const struct npuacl_device *d)
{
	u32 i;

	for (i = 0; i < npuacl.devices; i++)
		if (&npuacl.dev[i] != d && npuacl.dev[i].contexts)
			return true;
	return false;
}

/* npuacl.lock held; nothing runs on the device any more. */
void npuacl_notifies_release(struct npuacl_device *d)
{
	struct npuacl_words *w = words_of[d->id];
	struct npuacl_notify *n;
	u32 i;

	for (i = 0; i < notifies.used; i++) {
		n = (void *)(notifies.base + (size_t)i * notifies.size);
		if (!npuemu_slab_alive(&notifies, n) || n->dev != d || !npuemu_slab_retire(&notifies, n))
			continue;
		NPUACL_CHECK(npuacl_check_object_gone(NPUACL_OBJ_NOTIFY, n));
		npuacl_export_drop(n->key.id);
		npuacl_notify_keep(n->import);
		npuemu_slab_free(&notifies, n);
	}
	/* of all devices: streams of others may wait for them yet */
	if (!others_run(d))
		npuacl_notify_kept_release(false);
	words_of[d->id] = NULL;
	if (w)
		npuemu_buf_free(w->buf);
	free(w);
}

/* ---- Handles ------------------------------------------------------------------------ */

static aclError notify(void *handle, bool counting, struct npuacl_notify **out, const char *what)
{
	struct npuacl_notify *n = handle;

	if (!n)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the notify is NULL", what);
	if (!npuemu_slab_alive(&notifies, n))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not a notify, or no longer", what, handle);
	if (n->counting != counting)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: notify %u is %s", what, n->index,
				   counting ? "not a counting one" : "a counting one");
	*out = n;
	return ACL_SUCCESS;
}

aclError npuacl_notify_find(void *handle, struct npuacl_notify **out, const char *what)
{
	return notify(handle, false, out, what);
}

struct npuemu_buf *npuacl_notify_buf(struct npuacl_device *d)
{
	struct npuemu_buf *buf;

	pthread_mutex_lock(&npuacl.lock);
	buf = words_of[d->id] ? words_of[d->id]->buf : NULL;
	pthread_mutex_unlock(&npuacl.lock);
	return buf;
}

static aclError no_handle(void)
{
	return npuacl_fail(ACL_ERROR_RT_NO_NOTIFY_RESOURCE, "this process has %u notifies, the most it can", notifies.max);
}

aclError npuacl_notify_opened(struct npuacl_device *d, volatile u64 *word, u32 index, struct npuacl_import *import,
			      aclrtNotify *out)
{
	struct npuacl_notify *n = npuemu_slab_alloc(&notifies);

	if (!n)
		return no_handle();
	n->dev = d;
	n->index = index;
	n->opened = true;
	n->word = word;
	n->import = import;
	npuemu_slab_publish(&notifies, n);
	NPUACL_CHECK(npuacl_check_object(NPUACL_OBJ_NOTIFY, n, n->dev->id, n->index));
	*out = n;
	return ACL_SUCCESS;
}

static aclError create(void **out, u64 flag, bool counting, const char *what)
{
	struct npuacl_notify *n;
	struct npuacl_ctx *ctx;
	aclError ret;
	u32 index = 0;

	if (!out)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the place for the handle is NULL", what);
	if (flag & ~(u64)ALL_FLAGS)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: unknown flags %#" PRIx64, what, flag);
	ret = npuacl_current(&ctx);
	if (!ret)
		ret = word_take(ctx->dev, &index);
	if (ret)
		return ret;
	n = npuemu_slab_alloc(&notifies);
	if (!n) {
		words_of[ctx->dev->id]->taken[index / 64] &= ~(1ull << index % 64);
		return no_handle();
	}
	n->dev = ctx->dev;
	n->index = index;
	n->counting = counting;
	n->word = words_of[ctx->dev->id]->word + index;
	npuemu_slab_publish(&notifies, n);
	NPUACL_CHECK(npuacl_check_object(NPUACL_OBJ_NOTIFY, n, n->dev->id, n->index));
	*out = n;
	return ACL_SUCCESS;
}

static aclError destroy(void *handle, bool counting, const char *what)
{
	struct npuacl_notify *n;
	aclError ret = notify(handle, counting, &n, what);

	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl.lock);
	if (npuemu_slab_retire(&notifies, n)) {
		NPUACL_CHECK(npuacl_check_object_gone(NPUACL_OBJ_NOTIFY, n));
		if (!n->opened)
			words_of[n->dev->id]->taken[n->index / 64] &= ~(1ull << n->index % 64);
		npuacl_export_drop(n->key.id);
		npuacl_notify_keep(n->import);
		npuemu_slab_free(&notifies, n);
	} else {
		ret = npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p was destroyed already", what, handle);
	}
	pthread_mutex_unlock(&npuacl.lock);
	return ret;
}

static aclError id(void *handle, bool counting, u32 *out, const char *what)
{
	struct npuacl_notify *n;
	aclError ret = notify(handle, counting, &n, what);

	if (!ret && !out)
		ret = npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the place for the id is NULL", what);
	if (!ret)
		*out = n->index;
	return ret;
}

/* ---- Notifies ------------------------------------------------------------------------- */

aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag)
{
	return create(notify, flag, false, "aclrtCreateNotify");
}

aclError aclrtDestroyNotify(aclrtNotify notify)
{
	return destroy(notify, false, "aclrtDestroyNotify");
}

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId)
{
	return id(notify, false, notifyId, "aclrtGetNotifyId");
}

static aclError store(struct npuacl_stream *s, volatile u64 *word, u64 value, u16 flags)
{
	struct npuacl_task t = { .kind = NPUACL_SDMA, .flags = flags };

	npuacl_desc(&t.sdma, NPUEMU_SDMA_NOTIFY);
	t.sdma.dst = (u64)(uintptr_t)word;
	t.sdma.src = value;
	t.sdma.len = sizeof(u64);
	return npuacl_submit(s, &t, NULL);
}

aclError aclrtRecordNotify(aclrtNotify handle, aclrtStream stream)
{
	struct npuacl_notify *n;
	struct npuacl_stream *s;
	aclError ret = notify(handle, false, &n, "aclrtRecordNotify");

	if (!ret)
		ret = npuacl_stream(stream, &s);
	return ret ? ret : store(s, n->word, 1, 0);
}

static aclError wait_for(struct npuacl_stream *s, struct npuacl_task *t, u32 timeout_s)
{
	t->timeout_ns = (s64)timeout_s * 1000000000;
	return npuacl_submit(s, t, NULL);
}

aclError aclrtWaitAndResetNotify(aclrtNotify handle, aclrtStream stream, uint32_t timeout)
{
	struct npuacl_task t = { .kind = NPUACL_NOTIFY_WAIT };
	struct npuacl_notify *n;
	struct npuacl_stream *s;
	aclError ret = notify(handle, false, &n, "aclrtWaitAndResetNotify");

	if (!ret)
		ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	t.word.word = n->word;
	t.word.value = 0;
	t.word.cmp = NPUEMU_CMP_NE;
	return wait_for(s, &t, timeout);
}

aclError aclrtNotifyBatchReset(aclrtNotify *list, size_t num)
{
	struct npuacl_notify *n;
	aclError ret = ACL_SUCCESS;
	size_t i;

	if (!list || !num)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtNotifyBatchReset: no notifies are given");
	/* all of them, or none */
	for (i = 0; i < num && !ret; i++)
		ret = notify(list[i], false, &n, "aclrtNotifyBatchReset");
	for (i = 0; i < num && !ret; i++) {
		n = list[i];
		__atomic_store_n(n->word, 0, __ATOMIC_RELEASE);
	}
	return ret;
}

/* ---- Counting ones ----------------------------------------------------------------------- */

aclError aclrtCntNotifyCreate(aclrtCntNotify *cntNotify, uint64_t flag)
{
	return create(cntNotify, flag, true, "aclrtCntNotifyCreate");
}

aclError aclrtCntNotifyDestroy(aclrtCntNotify cntNotify)
{
	return destroy(cntNotify, true, "aclrtCntNotifyDestroy");
}

aclError aclrtCntNotifyGetId(aclrtCntNotify cntNotify, uint32_t *notifyId)
{
	return id(cntNotify, true, notifyId, "aclrtCntNotifyGetId");
}

struct change {
	volatile u64 *word;
	aclrtCntNotifyRecordMode mode;
	u32 value;
};

/* 32 bits count. */
static void apply(struct npuacl_stream *s, u32 task, void *arg)
{
	struct change *c = arg;
	u64 old = __atomic_load_n(c->word, __ATOMIC_RELAXED), new;

	(void)s;
	(void)task;
	do {
		switch (c->mode) {
		case ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE:
			new = (u32)(old + c->value);
			break;
		case ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE:
			new = (u32)old | c->value;
			break;
		case ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE:
			new = (u32)old & c->value;
			break;
		default:
			new = c->value;
			break;
		}
	} while (!__atomic_compare_exchange_n(c->word, &old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	npuacl_look();
}

static aclError change(void *handle, aclrtStream stream, aclrtCntNotifyRecordMode mode, u32 value,
		       const char *what)
{
	struct npuacl_task t = { .kind = NPUACL_CALL };
	struct npuacl_notify *n;
	struct npuacl_stream *s;
	aclError ret = notify(handle, true, &n, what);
	struct change *c;

	if (!ret)
		ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	c = malloc(sizeof(*c));
	if (!c)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "out of host memory");
	*c = (struct change){ n->word, mode, value };
	t.own.fn = apply;
	t.own.release = free;
	t.own.arg = c;
	ret = npuacl_submit(s, &t, NULL);
	if (ret)
		free(c);
	return ret;
}

aclError aclrtCntNotifyRecord(aclrtCntNotify cntNotify, aclrtStream stream, aclrtCntNotifyRecordInfo *info)
{
	if (!info)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtCntNotifyRecord: info is NULL");
	switch (info->mode) {
	case ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE:
	case ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE:
	case ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE:
	case ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE:
		return change(cntNotify, stream, info->mode, info->value, "aclrtCntNotifyRecord");
	default:
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtCntNotifyRecord: there is no mode %d",
				   (int)info->mode);
	}
}

aclError aclrtCntNotifyReset(aclrtCntNotify cntNotify, aclrtStream stream)
{
	return change(cntNotify, stream, ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE, 0, "aclrtCntNotifyReset");
}

aclError aclrtCntNotifyWaitWithTimeout(aclrtCntNotify handle, aclrtStream stream, aclrtCntNotifyWaitInfo *info)
{
	static const u32 cmp[] = {
		[ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE] = NPUEMU_CMP_LT,
		[ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE] = NPUEMU_CMP_EQ,
		[ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE] = NPUEMU_CMP_GT,
		[ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE] = NPUEMU_CMP_GE,
		[ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE] = NPUACL_CMP_MASK,
	};
	struct npuacl_task t = { .kind = NPUACL_VALUE_WAIT };
	struct npuacl_notify *n;
	struct npuacl_stream *s;
	aclError ret = notify(handle, true, &n, "aclrtCntNotifyWaitWithTimeout");

	if (ret)
		return ret;
	if (!info)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtCntNotifyWaitWithTimeout: info is NULL");
	if ((u32)info->mode >= ARRAY_SIZE(cmp))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtCntNotifyWaitWithTimeout: there is no mode %d",
				   (int)info->mode);
	ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	t.word.word = n->word;
	t.word.value = info->value;
	t.word.cmp = cmp[info->mode];
	t.word.clear = info->isClear;
	return wait_for(s, &t, info->timeout);
}

/* ---- Values --------------------------------------------------------------------------------- */

/* An aligned word, all in one device buffer. */
static aclError value_word(const char *what, void *addr)
{
	struct npuacl_side side;
	aclError ret;

	if (!addr)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: devAddr is NULL", what);
	if ((uintptr_t)addr & 7)
		return npuacl_fail(ACL_ERROR_RT_ADDR_UNALIGNED, "%s: %p is not at a multiple of 8", what, addr);
	ret = npuacl_side(what, "word", (u64)(uintptr_t)addr, 8, &side);
	if (ret)
		return ret;
	if (!npuacl_on_device(&side.at))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not device memory", what, addr);
	return ACL_SUCCESS;
}

aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(stream, &s);

	if (ret)
		return ret;
	if (flag)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtValueWrite: flag %#x; it has to be 0", flag);
	ret = value_word("aclrtValueWrite", devAddr);
	return ret ? ret : store(s, devAddr, value, NPUACL_VALUE);
}

aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
	static const u32 cmp[] = {
		[ACL_STREAM_WAIT_VALUE_GEQ] = NPUACL_CMP_CYCLIC_GE,
		[ACL_STREAM_WAIT_VALUE_EQ] = NPUEMU_CMP_EQ,
		[ACL_STREAM_WAIT_VALUE_AND] = NPUEMU_CMP_AND,
		[ACL_STREAM_WAIT_VALUE_NOR] = NPUACL_CMP_NOR,
	};
	struct npuacl_task t = { .kind = NPUACL_VALUE_WAIT, .flags = NPUACL_VALUE };
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(stream, &s);

	if (ret)
		return ret;
	if (flag >= ARRAY_SIZE(cmp))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtValueWait: flag %u; 0 (>=), 1 (==), 2 (and) or 3 (nor)",
				   flag);
	ret = value_word("aclrtValueWait", devAddr);
	if (ret)
		return ret;
	t.word.word = devAddr;
	t.word.value = value;
	t.word.cmp = cmp[flag];
	return npuacl_submit(s, &t, NULL);
}
