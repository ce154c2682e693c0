// SPDX-License-Identifier: MIT
/*
 * Desks: what an endpoint shows to others, in device memory that all of them can open.
 * Whoever uses one, in this process, shares it; it stays until the last of them has put
 * it, so that a look at a peer that has gone is harmless.
 */
#include <stdlib.h>
#include <unistd.h>
#include "transport.h"

static struct {
	pthread_mutex_t lock;
	struct hcomm_desk *first;
	u64 number;
} desks = { .lock = PTHREAD_MUTEX_INITIALIZER };

u64 hcomm_number(void)
{
	return npuemu_fetch_add(&desks.number, 1) + 1;
}

/* The words of its notifies, for peers that use UDMA. */
static int show_words(struct hcomm_desk *d)
{
	struct npuemu_seg_attr attr = {
		.size = sizeof(attr), .access = NPUEMU_ACCESS_READ | NPUEMU_ACCESS_WRITE | NPUEMU_ACCESS_ATOMIC,
		.offset = offsetof(struct hcomm_public, word), .bytes = sizeof(d->pub->word),
	};
	int err = npuemu_seg_register(d->buf, &attr, &d->seg);

	if (!err)
		err = npuemu_seg_query(d->seg, &d->pub->seg);
	d->pub->has_seg = !err;
	return err;
}

HcclResult hcomm_desk_make(const char *what, struct npuacl_device *dev, const struct hcomm_ident *self,
			   struct hcomm_desk **out)
{
	struct npuacl_record r = {
		.kind = NPUACL_EXPORT_ENDPOINT, .size = sizeof(struct hcomm_public), .device = dev->phys,
		.any_process = 1,
	};
	struct hcomm_desk *d = calloc(1, sizeof(*d));
	HcclResult ret = HCCL_SUCCESS;
	int err;

	if (!d)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	err = npuemu_buf_alloc(npuacl.board, dev->phys, sizeof(*d->pub), 0, &d->buf);
	if (err) {
		free(d);
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: %zu bytes for an endpoint on device %u: %s", what,
				  sizeof(*d->pub), dev->id, npuemu_errmsg());
	}
	d->refs = 1;
	d->pub = npuemu_buf_ptr(d->buf);
	d->pub->version = HCOMM_VERSION;
	d->pub->pid = (u32)getpid();
	d->pub->device = dev->phys;
	d->pub->self = *self;
	if (npuacl.info.has_udma && show_words(d))
		ret = hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: no segment for the notifies of an endpoint: %s", what,
				 npuemu_errmsg());
	smp_store_release(&d->pub->magic, HCOMM_MAGIC);
	pthread_mutex_lock(&desks.lock);
	d->next = desks.first;
	desks.first = d;
	/* from here on others find it */
	memcpy(r.note, self, sizeof(*self));
	if (!ret)
		ret = hccl_from_acl(npuacl_export_add(what, d->buf, &r, &d->key), what);
	pthread_mutex_unlock(&desks.lock);
	if (ret) {
		hcomm_desk_put(d);
		return ret;
	}
	*out = d;
	return HCCL_SUCCESS;
}

/* desks.lock held */
static HcclResult import(const char *what, const struct npuacl_key *key, struct hcomm_desk **out)
{
	struct hcomm_desk *d;
	struct npuacl_record r;
	aclError err;

	err = npuacl_export_find(what, key, NPUACL_EXPORT_ENDPOINT, &r);
	if (err)
		return hccl_fail_acl(err, what);
	d = calloc(1, sizeof(*d));
	if (!d)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	err = npuacl_import_get(what, &r, &d->import);
	if (err) {
		free(d);
		return hccl_fail_acl(err, what);
	}
	d->key = *key;
	d->pub = (struct hcomm_public *)(void *)(d->import->ptr + r.offset);
	if (r.size != sizeof(*d->pub) || smp_load_acquire(&d->pub->magic) != HCOMM_MAGIC || d->pub->version != HCOMM_VERSION) {
		npuacl_import_put(d->import);
		free(d);
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: the endpoint of process %u is another version's, or damaged", what,
				  r.exporter);
	}
	d->refs = 1;
	d->next = desks.first;
	desks.first = d;
	*out = d;
	return HCCL_SUCCESS;
}

HcclResult hcomm_desk_open(const char *what, const struct npuacl_key *key, struct hcomm_desk **out)
{
	HcclResult ret = HCCL_SUCCESS;
	struct hcomm_desk *d;

	pthread_mutex_lock(&desks.lock);
	for (d = desks.first; d && (d->key.id != key->id || d->key.secret != key->secret); d = d->next)
		;
	if (d)
		d->refs++;
	else
		ret = import(what, key, &d);
	pthread_mutex_unlock(&desks.lock);
	if (!ret)
		*out = d;
	return ret;
}

struct hcomm_desk *hcomm_desk_get(struct hcomm_desk *d)
{
	pthread_mutex_lock(&desks.lock);
	d->refs++;
	pthread_mutex_unlock(&desks.lock);
	return d;
}

void hcomm_desk_put(struct hcomm_desk *d)
{
	struct hcomm_desk **at = &desks.first;

	pthread_mutex_lock(&desks.lock);
	if (--d->refs) {
		pthread_mutex_unlock(&desks.lock);
		return;
	}
	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	pthread_mutex_unlock(&desks.lock);
	if (d->import) {
		npuacl_import_put(d->import);
	} else {
		npuacl_export_drop(d->key.id);
		if ((d->seg && npuemu_seg_unregister(d->seg)) || npuemu_buf_free(d->buf))
			npuemu_log(NPUEMU_LOG_WARN, "hcomm: memory of an endpoint was not given back: %s", npuemu_errmsg());
	}
	free(d);
}

void hcomm_desks_fork(void)
{
	memset(&desks, 0, sizeof(desks));
	pthread_mutex_init(&desks.lock, NULL);
}
