// SPDX-License-Identifier: MIT
/*
 * The mapped path: the peer's memory is seen here, and SDMA moves the bytes.  A run of
 * operations is one batch: one doorbell, one completion, each after the one before.
 */
#include <stdio.h>
#include "transport.h"

#define BATCH_BYTES	(512u << 10)

static bool is_ours(const struct hcomm_item *it)
{
	return it->kind <= HCOMM_RECORD && (!it->ch || it->ch->path == HCOMM_MAPPED);
}

static void describe(const struct hcomm_item *it, struct npuemu_sdma *d)
{
	switch ((enum hcomm_kind)it->kind) {
	case HCOMM_RECORD:
		npuacl_desc(d, NPUEMU_SDMA_NOTIFY);
		d->dst = (u64)(uintptr_t)it->word;
		d->src = 1;
		d->len = sizeof(u64);
		return;
	case HCOMM_REDUCE:
	case HCOMM_WRITE_REDUCE:
	case HCOMM_READ_REDUCE:
		npuacl_desc(d, NPUEMU_SDMA_REDUCE);
		d->type = it->code;
		break;
	default:
		npuacl_desc(d, NPUEMU_SDMA_COPY);
		break;
	}
	d->dst = it->kind == HCOMM_WRITE || it->kind == HCOMM_WRITE_REDUCE ? it->spot.va : it->dst;
	d->src = it->kind == HCOMM_READ || it->kind == HCOMM_READ_REDUCE ? it->spot.va : it->src;
	d->len = it->len;
}

/* May it go now? */
static HcclResult check(const struct hcomm_item *it, char *why, size_t size)
{
	if (!it->ch)
		return HCCL_SUCCESS;
	if (!hcomm_channel_whole(it->ch)) {
		snprintf(why, size, "%s", it->ch->why);
		return (HcclResult)it->ch->broken;
	}
	if (it->spot.gen && smp_load_acquire(it->spot.gen) != it->spot.want) {
		snprintf(why, size, "process %u has unregistered the memory meanwhile", it->ch->pid);
		return HCCL_E_REMOTE;
	}
	return HCCL_SUCCESS;
}

u32 hcomm_mapped_run(struct npuacl_device *dev, struct hcomm_item *it, u32 n, HcclResult *bad, char *why, size_t size)
{
	u32 i, wrong = 0, status = 0, last;
	struct npuemu_sdma d[NPUACL_BATCH];
	struct npuacl_sdma *q;
	bool words = false;
	u64 bytes = 0;
	aclError err;
	int got;

	*bad = HCCL_SUCCESS;
	for (i = 0; i < n && i < NPUACL_BATCH && is_ours(&it[i]) && bytes < BATCH_BYTES && !*bad; i++) {
		*bad = check(&it[i], why, size);
		if (*bad)
			break;
		describe(&it[i], &d[i]);
		words |= it[i].kind == HCOMM_RECORD;
		bytes += it[i].len;
	}
	if (!i)
		return 0;
	q = npuacl_sdma_take(dev, &err);
	if (!q) {
		snprintf(why, size, "%.200s", npuacl_self.message);
		*bad = HCCL_E_RUNTIME;
		return 0;
	}
	n = i;
	for (i = 0; i < n; i++)
		npuacl_sdma_post(q, &d[i], i + 1 == n);
	last = npuacl_sdma_ring(q);
	got = npuacl_sdma_poll(q, last, n, NPUEMU_FOREVER, &wrong, &status);
	if (got) {
		snprintf(why, size, "%s; %s", npuemu_status_str(status), q->cause);
		*bad = HCCL_E_REMOTE;
		n = wrong;
	}
	npuacl_sdma_put(dev, q);
	/* streams of this process may wait for them */
	if (words)
		npuacl_look();
	return n;
}
