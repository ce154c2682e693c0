// SPDX-License-Identifier: MIT
/*
 * Transfers by one side: what memory it is follows from the addresses; then they are
 * copies by the SDMA engine of this rank's device, in the order of the stream.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "graph.h"
#include "oneside.h"
#include "support.h"

#define PIECES		32u		/* handed over at a time */
#define LOOK_NS		100000000ll	/* is the peer alive? */

struct piece {
	u8 *dst;
	const u8 *src;
	u64 bytes;
	struct hccl_mem *near, *far;
};

struct batch {
	struct npuacl_work work;
	struct hccl_comm *comm;
	const char *what;
	u32 peer;
	u32 n;
	u64 bytes;
	struct piece piece[];
};

static void batch_text(const struct batch *b, char *buf, size_t size)
{
	snprintf(buf, size, "%s of %u pieces, %" PRIu64 " bytes, with rank %u of communicator %.64s", b->what, b->n, b->bytes, b->peer,
		 b->comm->group->name);
}

/* ---- As work of a stream ---------------------------------------------------------------- */

static aclError move(struct batch *b)
{
	struct npuemu_sdma d[PIECES];
	aclError err = ACL_SUCCESS;
	u32 i, k = 0, bad = 0;
	u64 n, done;

	for (i = 0; i < b->n && !err; i++) {
		struct piece *p = &b->piece[i];
		bool split = (p->near->ref.off | p->far->ref.off) & HCCL_PARTS;

		for (done = 0; done < p->bytes && !err; done += n) {
			n = split ? hccl_stretch(p->dst + done, p->src + done, p->bytes - done) : p->bytes;
			npuacl_desc(&d[k], NPUEMU_SDMA_COPY);
			d[k].dst = (u64)(uintptr_t)(p->dst + done);
			d[k].src = (u64)(uintptr_t)(p->src + done);
			d[k].len = n;
			if (++k < PIECES)
				continue;
			err = npuacl_sdma_now(b->comm->dev, d, k, &bad);
			k = 0;
		}
	}
	return err || !k ? err : npuacl_sdma_now(b->comm->dev, d, k, &bad);
}

static bool step(struct npuacl_work *w, struct npuacl_stream *s, u32 task)
{
	struct batch *b = container_of(w, struct batch, work);
	struct hccl_comm *c = b->comm;
	s64 now = npuemu_now_ns();
	aclError err;
	char text[200];

	/* nobody answers, so nobody would tell */
	if (now - READ_ONCE(c->res.looked) > LOOK_NS) {
		WRITE_ONCE(c->res.looked, now);
		hccl_group_check(c);
	}
	batch_text(b, text, sizeof(text));
	if (hccl_group_broken(c)) {
		hccl_op_failed(c, s, task, text);
		return true;
	}
	err = move(b);
	if (err) {
		WRITE_ONCE(c->error, (u32)HCCL_E_REMOTE);
		npuacl_stream_error(s, task, err, "task %u, %s: %s", task, text, npuacl_self.message);
	}
	return true;
}

static bool due(struct npuacl_work *w)
{
	(void)w;
	return true;
}

/* The other side waits for nothing. */
static void drop(struct npuacl_work *w, struct npuacl_stream *s)
{
	(void)w;
	(void)s;
}

static void batch_free(struct batch *b)
{
	u32 i;

	for (i = 0; i < b->n; i++) {
		npuemu_fetch_add(&b->piece[i].near->uses, -1u);
		npuemu_fetch_add(&b->piece[i].far->uses, -1u);
	}
	free(b);
}

static void release(struct npuacl_work *w)
{
	struct batch *b = container_of(w, struct batch, work);
	struct hccl_comm *c = b->comm;

	batch_free(b);
	npuemu_fetch_add(&c->in_flight, -1u);
}

static void text(struct npuacl_work *w, char *buf, size_t size)
{
	batch_text(container_of(w, struct batch, work), buf, size);
}

static const struct npuacl_work_ops ops = {
	.step = step, .due = due, .drop = drop, .release = release, .text = text,
};

/* ---- Issued ------------------------------------------------------------------------------------ */

static HcclResult piece_make(struct batch *b, bool put, u32 i, const HcclOneSideOpDesc *d)
{
	u32 size = hccl_type_bytes((u32)d->dataType);
	struct piece *p = &b->piece[b->n];
	u64 bytes = d->count * size;
	u64 near = (u64)(uintptr_t)d->localAddr, far = (u64)(uintptr_t)d->remoteAddr;
	u8 *here, *there;

	if (!size || d->count > UINT64_MAX / 16)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: entry %u has dataType %d and count %" PRIu64, b->what, i, (int)d->dataType,
				 d->count);
	if (!d->count)
		return HCCL_SUCCESS;
	if (!near || !far)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %sAddr of entry %u is NULL", b->what, near ? "remote" : "local", i);
	p->near = hccl_mem_use(b->comm, true, b->peer, near, bytes);
	if (!p->near)
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: entry %u: the %" PRIu64 " bytes at localAddr %p are not registered for rank %u (HcclRegisterMem), nor bound",
				 b->what, i, bytes, d->localAddr, b->peer);
	p->far = hccl_mem_use(b->comm, false, b->peer, far, bytes);
	if (!p->far) {
		npuemu_fetch_add(&p->near->uses, -1u);
		return hccl_fail(HCCL_E_NOT_FOUND, "EI0003", "%s: entry %u: the %" PRIu64 " bytes at remoteAddr %p are no memory of rank %u that is enabled here (HcclEnableMemAccess, HcclCommPrepare)",
				 b->what, i, bytes, d->remoteAddr, b->peer);
	}
	here = (u8 *)(uintptr_t)near;
	there = p->far->ptr + (far - p->far->va);
	p->dst = put ? there : here;
	p->src = put ? here : there;
	p->bytes = bytes;
	b->bytes += bytes;
	b->n++;
	return HCCL_SUCCESS;
}

static HcclResult issue(struct batch *b, struct npuacl_stream *s)
{
	struct npuacl_task t = { .kind = NPUACL_WORK };
	struct hccl_comm *c = b->comm;
	const char *what = b->what;
	aclError err;

	npuemu_fetch_add(&c->in_flight, 1);
	t.work = &b->work;	/* the stream's, unless that fails */
	err = npuacl_submit(s, &t, NULL);
	if (!err)
		return HCCL_SUCCESS;
	batch_free(b);
	npuemu_fetch_add(&c->in_flight, -1u);
	return hccl_fail_acl(err, what);
}

static HcclResult transfer(const char *what, bool put, HcclComm comm, u32 rank, const HcclOneSideOpDesc *desc, u32 n,
			   aclrtStream stream)
{
	struct npuacl_stream *s;
	struct hccl_comm *c;
	struct batch *b;
	HcclResult ret = hccl_comm(comm, what, &c);
	u32 i;

	if (ret)
		return ret;
	if (rank >= c->ranks)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: rank %u; the communicator has ranks 0 to %u", what, rank, c->ranks - 1);
	if (n > HCCL_ENTRIES)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %u entries; one call takes %u", what, n, HCCL_ENTRIES);
	if (n && !desc)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: desc is NULL", what);
	ret = hccl_stream(c, what, stream, &s);
	if (!ret)
		ret = hccl_broken(c, what);
	if (ret || !n)
		return ret;
	b = calloc(1, sizeof(*b) + n * sizeof(b->piece[0]));
	if (!b)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	b->work.ops = &ops;
	b->comm = c;
	b->what = what;
	b->peer = rank;
	for (i = 0; i < n && !ret; i++)
		ret = piece_make(b, put, i, &desc[i]);
	if (!ret && b->n)
		return issue(b, s);
	batch_free(b);
	return ret;
}

HcclResult HcclBatchPut(HcclComm comm, uint32_t remoteRank, HcclOneSideOpDesc *desc, uint32_t descNum, aclrtStream stream)
{
	return transfer("HcclBatchPut", true, comm, remoteRank, desc, descNum, stream);
}

HcclResult HcclBatchGet(HcclComm comm, uint32_t remoteRank, HcclOneSideOpDesc *desc, uint32_t descNum, aclrtStream stream)
{
	return transfer("HcclBatchGet", false, comm, remoteRank, desc, descNum, stream);
}
