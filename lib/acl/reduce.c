// SPDX-License-Identifier: MIT
/* Reductions in a stream: target = target op source, element by element. */
#include <inttypes.h>
#include "memory.h"

/* The engine's code of a data type, and bytes; its numbering is not acl's. */
static bool type_of(aclDataType type, u32 *code, u32 *size)
{
	switch (type) {
	case ACL_INT8:
		*code = NPUEMU_INT8;
		*size = 1;
		return true;
	case ACL_INT16:
		*code = NPUEMU_INT16;
		*size = 2;
		return true;
	case ACL_INT32:
		*code = NPUEMU_INT32;
		*size = 4;
		return true;
	case ACL_UINT32:	/* from the 950 on */
		*code = NPUEMU_UINT32;
		*size = 4;
		return npuacl.info.generation >= 950;
	case ACL_FLOAT16:
		*code = NPUEMU_FP16;
		*size = 2;
		return true;
	case ACL_FLOAT:
		*code = NPUEMU_FP32;
		*size = 4;
		return true;
	case ACL_BF16:
		*code = NPUEMU_BF16;
		*size = 2;
		return true;
	default:
		return false;
	}
}

static bool op_of(aclrtReduceKind kind, u32 *op)
{
	switch (kind) {
	case ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM:
		*op = NPUEMU_REDUCE_SUM;
		return true;
	case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX:
		*op = NPUEMU_REDUCE_MAX;
		return true;
	case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN:
		*op = NPUEMU_REDUCE_MIN;
		return true;
	case ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL:
		*op = 0;	/* the source as it is: a copy */
		return true;
	default:
		return false;
	}
}

static aclError check(const char *what, const struct npuacl_stream *s, u64 to, u64 from, u64 count, u32 size,
		      struct npuacl_side *dst, struct npuacl_side *src)
{
	aclError ret;

	if (count % size || (to | from) & (size - 1))
		return npuacl_fail(count % size ? ACL_ERROR_RT_PARAM_INVALID : ACL_ERROR_RT_ADDR_UNALIGNED,
				   "%s: %" PRIu64 " bytes from %#" PRIx64 " into %#" PRIx64 ": elements of %u bytes are whole and aligned (count is in bytes)",
				   what, count, from, to, size);
	ret = npuacl_side(what, "target", to, count, dst);
	if (!ret)
		ret = npuacl_side(what, "source", from, count, src);
	if (ret)
		return ret;
	if (!npuacl_on_device(&dst->at) || dst->at.device != s->dev->id || !npuacl_on_device(&src->at) ||
	    src->at.device != s->dev->id) {
		bool is_dst = npuacl_on_device(&src->at) && src->at.device == s->dev->id;
		char text[192];

		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: source and target have to be on the stream's device (%u): %#" PRIx64 " is %s", what,
				   s->dev->id, is_dst ? to : from, npuacl_explain(is_dst ? to : from, text, sizeof(text)));
	}
	if (to != from && (to - from < count || from - to < count))
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "%s: source and target, %" PRIu64 " bytes from %#" PRIx64 " and %#" PRIx64 " on, overlap",
				   what, count, from, to);
	return ACL_SUCCESS;
}

aclError aclrtReduceAsync(void *dst, const void *src, uint64_t count, aclrtReduceKind kind, aclDataType type,
			  aclrtStream stream, void *reserve)
{
	static const char what[] = "aclrtReduceAsync";
	u64 to = (u64)(uintptr_t)dst, from = (u64)(uintptr_t)src, done, n;
	struct npuacl_task t = { .kind = NPUACL_SDMA };
	struct npuacl_side d, f;
	struct npuacl_stream *s;
	u32 op, code, size;
	aclError ret;

	if (!dst || !src || reserve)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what,
				   reserve ? "reserve has to be NULL" : dst ? "src is NULL" : "dst is NULL");
	if (!op_of(kind, &op))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: there is no operation %d", what, (int)kind);
	ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	if (!type_of(type, &code, &size))
		return npuacl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				   "%s: data type %d is not supported; int8, int16, int32, %sfp16, fp32 and bf16 are", what,
				   (int)type, npuacl.info.generation >= 950 ? "uint32, " : "");
	if (!count)
		return ACL_SUCCESS;
	ret = check(what, s, to, from, count, size, &d, &f);
	for (done = 0; !ret && done < count; done += n) {
		n = npuacl_piece(&d, &f, done, count);
		npuacl_desc(&t.sdma, op ? NPUEMU_SDMA_REDUCE : NPUEMU_SDMA_COPY);
		t.sdma.dst = to + done;
		t.sdma.src = from + done;
		t.sdma.len = n;
		t.sdma.type = op ? op << 4 | code : 0;
		ret = npuacl_submit(s, &t, NULL);
	}
	return ret;
}
