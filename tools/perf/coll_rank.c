// SPDX-License-Identifier: MIT
/* One rank of npuemu-perf collectives, from its beginning to its end. */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <npuemu/npuemu.h>

#include "../common/cli.h"
#include "coll.h"

#define YIELDS	4096u		/* before a rank that waits for the others naps */

__attribute__((format(printf, 2, 3)))
int npuemu_coll_fail(struct npuemu_coll_rank *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->said->msg, sizeof(r->said->msg), fmt, ap);
	va_end(ap);
	__atomic_store_n(&r->sh->failed, 1, __ATOMIC_RELEASE);
	r->said->rc = NPUEMU_EXIT_RUNTIME;
	return r->said->rc;
}

/* @what may be said->msg itself. */
int npuemu_coll_fail_acl(struct npuemu_coll_rank *r, const char *what, int code)
{
	const char *why = aclGetRecentErrMsg();
	char text[NPUEMU_COLL_MSG];

	snprintf(text, sizeof(text), "%s", what);
	return npuemu_coll_fail(r, "rank %u: %s: %d%s%s", r->rank, text, code, why ? ": " : "",
				why ? why : "");
}

/* All ranks, not by way of HCCL; not 0: somebody failed, and has said so. */
static int meet(struct npuemu_coll_rank *r)
{
	struct npuemu_coll_shared *sh = r->sh;
	uint32_t turn = __atomic_load_n(&sh->turn, __ATOMIC_ACQUIRE), i;
	struct timespec nap = { .tv_nsec = 100000 };

	if (__atomic_add_fetch(&sh->arrived, 1, __ATOMIC_ACQ_REL) == r->o->ranks) {
		__atomic_store_n(&sh->arrived, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&sh->turn, turn + 1, __ATOMIC_RELEASE);
	}
	for (i = 0; __atomic_load_n(&sh->turn, __ATOMIC_ACQUIRE) == turn; i++) {
		if (__atomic_load_n(&sh->failed, __ATOMIC_ACQUIRE))
			break;
		if (i < YIELDS)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
	return __atomic_load_n(&sh->failed, __ATOMIC_ACQUIRE) ? NPUEMU_EXIT_RUNTIME : 0;
}

static int set_up(struct npuemu_coll_rank *r)
{
	const char *soc;
	aclError err = ACL_SUCCESS;
	uint32_t devices = 0;
	HcclResult ret;

	if (!r->o->threads)
		err = aclInit(NULL);
	if (!err)
		err = aclrtGetDeviceCount(&devices);
	if (err || !devices)
		return npuemu_coll_fail_acl(r, "aclInit", err);
	r->device = r->rank % devices;
	err = aclrtSetDevice((int32_t)r->device);
	if (err)
		return npuemu_coll_fail_acl(r, "aclrtSetDevice", err);
	err = aclrtCreateStream(&r->stream);
	if (err)
		return npuemu_coll_fail_acl(r, "aclrtCreateStream", err);
	if (!r->rank) {
		soc = aclrtGetSocName();
		snprintf(r->sh->soc, sizeof(r->sh->soc), "%s", soc ? soc : "?");
		r->sh->devices = devices;
		ret = HcclGetRootInfo(&r->sh->root);
		if (ret)
			return npuemu_coll_fail_acl(r, "HcclGetRootInfo", ret);
	}
	if (meet(r))
		return NPUEMU_EXIT_RUNTIME;
	ret = HcclCommInitRootInfo(r->o->ranks, &r->sh->root, r->rank, &r->comm);
	return ret ? npuemu_coll_fail_acl(r, "HcclCommInitRootInfo", ret) : 0;
}

static int call(struct npuemu_coll_rank *r)
{
	int ret = r->k->coll->call(r);

	return ret ? npuemu_coll_fail_acl(r, r->k->coll->name, ret) : 0;
}

static int wait_for_it(struct npuemu_coll_rank *r)
{
	aclError err = aclrtSynchronizeStream(r->stream);

	return err ? npuemu_coll_fail_acl(r, r->k->coll->name, err) : 0;
}

static int calls(struct npuemu_coll_rank *r, uint32_t n, int deep)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++) {
		rc = call(r);
		if (!rc && !deep)
			rc = wait_for_it(r);
	}
	return rc || !deep ? rc : wait_for_it(r);
}

/* Nanoseconds of one operation, the slowest rank's; only rank 0 needs it. */
static int timed(struct npuemu_coll_rank *r, int deep, double *ns)
{
	int64_t most = 0;
	uint32_t i;
	int rc = meet(r);

	if (rc)
		return rc;
	r->said->ns = npuemu_now_ns();
	rc = calls(r, r->o->iterations, deep);
	if (rc)
		return rc;
	r->said->ns = npuemu_now_ns() - r->said->ns;
	rc = meet(r);
	if (rc || r->rank)
		return rc;
	/* theirs stay as they are until rank 0 comes to the next one, too */
	for (i = 0; i < r->o->ranks; i++)
		most = r->sh->said[i].ns > most ? r->sh->said[i].ns : most;
	*ns = (double)most / r->o->iterations;
	return 0;
}

/* Fill, some collectives, look: @n of them, deep or not. */
static int checked(struct npuemu_coll_rank *r, uint32_t n, int deep)
{
	int rc = npuemu_coll_arm(r);

	if (!rc)
		rc = meet(r);
	if (!rc)
		rc = calls(r, n, deep);
	/* an output is done when its rank is, not when all are: nobody waits here */
	return rc ? rc : npuemu_coll_verify(r);
}

static int row(struct npuemu_coll_rank *r)
{
	struct npuemu_coll_result *res = &r->sh->result[r->k->index];
	uint32_t i;
	int rc = npuemu_coll_begin(r);

	if (!rc)
		rc = checked(r, 1, 0);
	if (!rc)
		rc = meet(r);
	if (!rc)
		rc = calls(r, r->o->warmup, 0);
	/* what the timed runs leave is looked at as well: the output starts over */
	if (!rc)
		rc = npuemu_coll_arm(r);
	for (i = 0; i < r->o->repeats && !rc; i++) {
		rc = timed(r, 0, &res->ns[i]);
		if (!rc && r->o->deep)
			rc = timed(r, 1, &res->deep_ns[i]);
	}
	if (!rc)
		rc = npuemu_coll_verify(r);
	/* the next row's input is written when all have looked at this one's */
	if (!rc)
		rc = meet(r);
	if (!rc && !r->rank)
		res->done = 1;
	return rc;
}

int npuemu_coll_work(struct npuemu_coll_rank *r)
{
	uint32_t i;
	int rc = set_up(r);

	if (!rc)
		rc = npuemu_coll_check_setup(r);
	for (i = 0; i < r->o->rows && !rc; i++) {
		r->k = &r->o->row[i];
		rc = row(r);
	}
	if (rc)
		__atomic_store_n(&r->sh->failed, 1, __ATOMIC_RELEASE);
	if (r->comm)
		HcclCommDestroy(r->comm);
	npuemu_coll_check_free(r);
	if (r->stream)
		aclrtDestroyStream(r->stream);
	if (!r->o->threads)
		aclFinalize();
	return rc;
}
