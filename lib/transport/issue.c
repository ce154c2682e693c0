// SPDX-License-Identifier: MIT
/*
 * Operations: checked, made into items, put on a thread.  Between the two calls of the
 * batch mode they are held back, and then one piece of work for each run of them that is
 * on one thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "transport.h"

/* ---- Items: what moves data ---------------------------------------------------------------- */

/* Local memory that an engine may use, as far as can be known now. */
static HcclResult local(const char *what, const char *role, struct hcomm_channel *ch, u64 va, u64 len,
			struct npuacl_side *side)
{
	aclError err;

	if (!va)
		return hccl_null(what, role);
	err = npuacl_side(what, role, va, len, side);
	if (err)
		return hccl_fail_acl(err, what);
	if (side->split)
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: %s: %" PRIu64 " bytes from %#" PRIx64 " on are of several mappings",
				  what, role, len, va);
	if (ch && ch->path == HCOMM_QUEUE && !hcomm_registered(ch->ep, va, len))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %s: %" PRIu64 " bytes from %#" PRIx64 " on are not registered with the channel's endpoint (HcommMemReg), which queues need",
				  what, role, len, va);
	return HCCL_SUCCESS;
}

static HcclResult both_here(const char *what, struct npuacl_device *dev, struct hcomm_item *it)
{
	struct npuacl_side dst, src;
	HcclResult ret = local(what, "dst", NULL, it->dst, it->len, &dst);

	if (!ret)
		ret = local(what, "src", NULL, it->src, it->len, &src);
	if (ret)
		return ret;
	ret = hccl_from_acl(npuacl_sides(what, dev, &dst, &src), what);
	if (!ret && it->dst != it->src && (it->dst - it->src < it->len || it->src - it->dst < it->len))
		ret = hccl_fail(HCCL_E_PARA, "EI0003", "%s: %" PRIu64 " bytes from %#" PRIx64 " and %#" PRIx64 " on overlap", what,
				 it->len, it->src, it->dst);
	return ret;
}

static HcclResult over_channel(const char *what, struct hcomm_channel *ch, struct hcomm_item *it)
{
	bool write = it->kind == HCOMM_WRITE || it->kind == HCOMM_WRITE_REDUCE;
	u64 far = write ? it->dst : it->src;
	struct npuacl_side side;
	HcclResult ret;

	if (!hcomm_channel_whole(ch))
		return hccl_fail((HcclResult)ch->broken, "EI0006", "%s: %s", what, ch->why);
	if (!far)
		return hccl_null(what, write ? "dst" : "src");
	ret = local(what, write ? "src" : "dst", ch, write ? it->src : it->dst, it->len, &side);
	if (ret)
		return ret;
	pthread_mutex_lock(&ch->lock);
	ret = hcomm_reach(what, ch, far, it->len, &it->spot);
	if (!ret) {
		it->ch = ch;
		hcomm_channel_get(ch);
	}
	pthread_mutex_unlock(&ch->lock);
	return ret;
}

HcclResult hcomm_item_data(const char *what, struct hcomm_channel *ch, struct npuacl_device *dev, enum hcomm_kind kind,
			   void *dst, const void *src, u64 len, struct hcomm_item *it)
{
	memset(it, 0, sizeof(*it));
	it->kind = (u8)kind;
	it->dst = (u64)(uintptr_t)dst;
	it->src = (u64)(uintptr_t)src;
	it->len = len;
	return ch ? over_channel(what, ch, it) : both_here(what, dev, it);
}

/* The engines' code of a type, and its bytes. */
static bool type_of(u32 type, u32 *code, u32 *bytes)
{
	static const struct {
		s8 code;
		u8 bytes;
	} types[] = {
		[HCOMM_DATA_TYPE_INT8] = { NPUEMU_INT8, 1 }, [HCOMM_DATA_TYPE_INT16] = { NPUEMU_INT16, 2 },
		[HCOMM_DATA_TYPE_INT32] = { NPUEMU_INT32, 4 }, [HCOMM_DATA_TYPE_FP16] = { NPUEMU_FP16, 2 },
		[HCOMM_DATA_TYPE_FP32] = { NPUEMU_FP32, 4 }, [HCOMM_DATA_TYPE_INT64] = { -1, 8 },
		[HCOMM_DATA_TYPE_UINT64] = { -1, 8 }, [HCOMM_DATA_TYPE_UINT8] = { NPUEMU_UINT8, 1 },
		[HCOMM_DATA_TYPE_UINT16] = { NPUEMU_UINT16, 2 }, [HCOMM_DATA_TYPE_UINT32] = { NPUEMU_UINT32, 4 },
		[HCOMM_DATA_TYPE_FP64] = { -1, 8 }, [HCOMM_DATA_TYPE_BFP16] = { NPUEMU_BF16, 2 },
	};

	if (type >= ARRAY_SIZE(types) || !types[type].bytes || types[type].code < 0)
		return false;
	*code = (u32)types[type].code;
	*bytes = types[type].bytes;
	return true;
}

static HcclResult reduction(const char *what, u32 type, u32 op, u32 *code, u32 *bytes)
{
	static const u8 ops[] = {
		[HCOMM_REDUCE_SUM] = NPUEMU_REDUCE_SUM, [HCOMM_REDUCE_PROD] = 0, [HCOMM_REDUCE_MAX] = NPUEMU_REDUCE_MAX,
		[HCOMM_REDUCE_MIN] = NPUEMU_REDUCE_MIN,
	};
	u32 t;

	if (op >= ARRAY_SIZE(ops))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no reduction %u", what, op);
	if (type > HCOMM_DATA_TYPE_FP8E8M0 || type == HCOMM_DATA_TYPE_INT128 + 1)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no data type %u", what, type);
	if (!ops[op] || !type_of(type, &t, bytes))
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: %s: engines reduce (u)int8, 16 and 32, fp16, fp32 and bfp16, by sum, max and min",
				  what, ops[op] ? "data type" : "product");
	*code = (u32)ops[op] << 4 | t;
	return HCCL_SUCCESS;
}

HcclResult hcomm_item_reduce(const char *what, struct hcomm_channel *ch, struct npuacl_device *dev, enum hcomm_kind kind,
			     void *dst, const void *src, u64 count, u32 type, u32 op, struct hcomm_item *it)
{
	u32 code = 0, elem = 1;
	HcclResult ret = reduction(what, type, op, &code, &elem);

	if (ret)
		return ret;
	if (count > UINT64_MAX / elem)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %" PRIu64 " elements of %u bytes", what, count, elem);
	if (((u64)(uintptr_t)dst | (u64)(uintptr_t)src) & (elem - 1))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: from %p into %p: elements of %u bytes have to be aligned", what, src, dst,
				  elem);
	ret = hcomm_item_data(what, ch, dev, kind, dst, src, count * elem, it);
	it->code = code;
	it->elem = elem;
	return ret;
}

/* ---- Items: notifies ------------------------------------------------------------------------------ */

HcclResult hcomm_item_record(const char *what, struct hcomm_channel *ch, u32 index, struct hcomm_item *it)
{
	memset(it, 0, sizeof(*it));
	if (index >= ch->other_notifies)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: notify %u; the other end of the channel, process %u, has %u (notifyNum), counted from 0",
				  what, index, ch->pid, ch->other_notifies);
	if (!hcomm_channel_whole(ch))
		return hccl_fail((HcclResult)ch->broken, "EI0006", "%s: %s", what, ch->why);
	it->kind = HCOMM_RECORD;
	it->index = index;
	it->ch = ch;
	it->word = &ch->peer->pub->word[ch->other_notify_at + index];
	hcomm_channel_get(ch);
	return HCCL_SUCCESS;
}

HcclResult hcomm_item_wait(const char *what, struct hcomm_channel *ch, u32 index, s64 timeout_ns, struct hcomm_item *it)
{
	memset(it, 0, sizeof(*it));
	if (index >= ch->notifies)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: notify %u; the channel has %u here (notifyNum), counted from 0", what,
				  index, ch->notifies);
	it->kind = HCOMM_WAIT;
	it->index = index;
	it->ch = ch;
	it->word = &ch->own->pub->word[ch->offer->notify_at + index];
	it->timeout_ns = timeout_ns;
	hcomm_channel_get(ch);
	return HCCL_SUCCESS;
}

void hcomm_item_drain(struct hcomm_channel *ch, struct hcomm_item *it)
{
	memset(it, 0, sizeof(*it));
	it->kind = HCOMM_DRAIN;
	it->ch = ch;
	hcomm_channel_get(ch);
}

void hcomm_items_put(struct hcomm_item *it, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		if (it[i].ch)
			hcomm_channel_put(it[i].ch);
		if (it[i].to)
			hcomm_thread_put(it[i].to);
	}
}

/* ---- To a thread -------------------------------------------------------------------------------------- */

/* Of this thread of the program. */
static __thread struct {
	bool on;
	char tag[64];
	struct hcomm_op *first, *last;
} held;

static void note_under(struct hcomm_thread *th, struct hcomm_channel *ch)
{
	struct hcomm_under *more;
	u32 i;

	pthread_mutex_lock(&th->lock);
	for (i = 0; i < th->nunder && (th->under[i].ch != ch || th->under[i].gen != ch->gen); i++)
		;
	if (i == th->nunder && i == th->room) {
		more = realloc(th->under, (th->room + 16) * sizeof(*more));
		if (more) {
			th->under = more;
			th->room += 16;
		}
	}
	if (i < th->room) {
		th->under[i].ch = ch;
		th->under[i].gen = ch->gen;
		if (i == th->nunder)
			th->nunder++;
	}
	pthread_mutex_unlock(&th->lock);
}

/* Takes @op. */
static HcclResult submit(const char *what, struct hcomm_op *op)
{
	struct npuacl_task t = { .kind = NPUACL_WORK, .work = &op->work };
	struct hcomm_thread *th = op->th;
	bool wait = false;
	aclError err;
	u64 seq;
	u32 i;

	for (i = 0; i < op->n; i++)
		wait |= !op->item[i].nbi;
	/* once it is submitted it may be over, and gone */
	err = npuacl_submit(th->stream, &t, &seq);
	if (err) {
		hcomm_op_free(op);
		return hccl_fail_acl(err, what);
	}
	if (!th->direct || !wait)
		return HCCL_SUCCESS;
	return hccl_from_acl(npuacl_stream_wait(th->stream, seq, NPUEMU_FOREVER), what);
}

/* More items for an operation, whose references it takes. */
static bool append(struct hcomm_op *op, const struct hcomm_item *it, u32 n)
{
	struct hcomm_item *more;
	u32 room = op->room;

	if (op->n + n > room) {
		while (room < op->n + n)
			room = room ? 2 * room : n;
		more = realloc(op->item, room * sizeof(*more));
		if (!more)
			return false;
		op->item = more;
		op->room = room;
	}
	memcpy(&op->item[op->n], it, n * sizeof(*it));
	op->n += n;
	return true;
}

HcclResult hcomm_issue(const char *what, struct hcomm_thread *th, struct hcomm_item *it, u32 n)
{
	struct hcomm_op *op = held.on && held.last && held.last->th == th ? held.last : NULL;
	bool fresh = !op;
	u32 i;

	if (!n)
		return HCCL_SUCCESS;
	if (fresh)
		op = calloc(1, sizeof(*op));
	if (!op || !append(op, it, n)) {
		hcomm_items_put(it, n);
		if (fresh)
			free(op);
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	}
	for (i = 0; i < n; i++)
		if (it[i].nbi && it[i].ch->path == HCOMM_QUEUE)
			note_under(th, it[i].ch);
	if (!fresh)
		return HCCL_SUCCESS;
	op->work.ops = &hcomm_work;
	op->th = th;
	npuemu_fetch_add(&th->refs, 1);
	if (!held.on)
		return submit(what, op);
	if (held.last)
		held.last->next = op;
	else
		held.first = op;
	held.last = op;
	return HCCL_SUCCESS;
}

/* ---- Batch mode ------------------------------------------------------------------------------------------- */

static HcclResult check_tag(const char *what, const char *tag)
{
	if (!tag)
		return hccl_null(what, "batchTag");
	if (strnlen(tag, sizeof(held.tag)) == sizeof(held.tag))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: batchTag has more than %zu characters", what, sizeof(held.tag) - 1);
	return HCCL_SUCCESS;
}

int32_t HcommBatchModeStart(const char *batchTag)
{
	static const char what[] = "HcommBatchModeStart";
	HcclResult ret = check_tag(what, batchTag);

	if (ret)
		return ret;
	if (held.on)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: batch \"%s\" of this thread has not ended", what, held.tag);
	held.on = true;
	snprintf(held.tag, sizeof(held.tag), "%s", batchTag);
	return HCCL_SUCCESS;
}

int32_t HcommBatchModeEnd(const char *batchTag)
{
	static const char what[] = "HcommBatchModeEnd";
	HcclResult ret = check_tag(what, batchTag), one;
	struct hcomm_thread *th;
	struct hcomm_op *op;

	if (ret)
		return ret;
	if (!held.on || strcmp(held.tag, batchTag))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: \"%s\": %s%s%s", what, batchTag,
				  held.on ? "the batch that this thread began is \"" : "this thread has begun no batch",
				  held.on ? held.tag : "", held.on ? "\"" : "");
	held.on = false;
	held.last = NULL;
	while ((op = held.first)) {
		held.first = op->next;
		/* freed meanwhile? */
		one = hcomm_thread(what, (ThreadHandle)(uintptr_t)op->th, &th);
		if (one)
			hcomm_op_free(op);
		else
			one = submit(what, op);
		ret = ret ? ret : one;
	}
	return ret;
}
