// SPDX-License-Identifier: MIT
/*
 * How ranks find each other.
 *
 * A root info holds the key of a group, so that whoever has those bytes finds it: no
 * port is taken, and any number of jobs go beside each other.  Ranks with a rank table
 * have no such bytes: rank 0 leaves them in a file whose name follows from the table and
 * the job.  Sub-communicators leave them in the group of their parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "comm.h"
#include "ranktable.h"

/* The first of a root info's bytes; programs take its beginning for a text. */
struct root {
	char ip[64];
	u32 port;
	u32 nic_deploy;
	char identifier[128];
	u64 rank;
	u8 key[NPUACL_KEY_BYTES];
};

_Static_assert(sizeof(struct root) <= sizeof(HcclRootInfo), "it has room");

/* Groups that this process made for ranks to come, here or elsewhere. */
static struct {
	pthread_mutex_t lock;
	struct given {
		struct given *next;
		struct hccl_local *local;
	} *first;
} roots = { .lock = PTHREAD_MUTEX_INITIALIZER };

static HcclResult device(const char *what, struct npuacl_device **dev)
{
	struct npuacl_ctx *ctx;
	aclError err = npuacl_current(&ctx);

	if (err)
		return hccl_fail(HCCL_E_RUNTIME, "EI0003", "%s: this thread has no device: aclrtSetDevice comes first (%d)", what, err);
	*dev = ctx->dev;
	return HCCL_SUCCESS;
}

static void new_name(char *name, size_t size)
{
	static u32 count;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(name, size, "127.0.0.1_%d_%u_%" PRIu64, (int)getpid(), npuemu_fetch_add(&count, 1),
		 (u64)now.tv_sec * 1000000 + (u64)now.tv_nsec / 1000);
}

static void root_write(HcclRootInfo *info, const struct hccl_local *l)
{
	struct root r = { .ip = "127.0.0.1", .port = 60000 };

	snprintf(r.identifier, sizeof(r.identifier), "%s", l->group->name);
	npuacl_key_pack(r.key, NPUACL_EXPORT_MEMORY, &l->key);
	memset(info, 0, sizeof(*info));
	memcpy(info, &r, sizeof(r));
}

static HcclResult root_read(const char *what, const void *info, struct npuacl_key *key)
{
	struct root r;

	memcpy(&r, info, sizeof(r));
	if (npuacl_key_unpack(what, r.key, NPUACL_EXPORT_MEMORY, key))
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: these %zu bytes are no root info as HcclGetRootInfo gave it: all of them have to be passed on",
				 what, sizeof(HcclRootInfo));
	return HCCL_SUCCESS;
}

static HcclResult give(const char *what, struct npuacl_device *dev, const char *name, struct hccl_local **out)
{
	struct given *g = calloc(1, sizeof(*g));
	HcclResult ret;

	if (!g)
		return hccl_fail(HCCL_E_MEMORY, "EI0011", "%s: out of host memory", what);
	ret = hccl_group_make(what, dev, name, out);
	if (ret) {
		free(g);
		return ret;
	}
	g->local = *out;
	pthread_mutex_lock(&roots.lock);
	g->next = roots.first;
	roots.first = g;
	pthread_mutex_unlock(&roots.lock);
	return HCCL_SUCCESS;
}

void hccl_roots_release(const struct hccl_local *l)
{
	struct given **at = &roots.first, *g;

	pthread_mutex_lock(&roots.lock);
	while ((g = *at)) {
		if (l && g->local != l) {
			at = &g->next;
			continue;
		}
		*at = g->next;
		hccl_local_put(g->local);
		free(g);
	}
	pthread_mutex_unlock(&roots.lock);
}

void hccl_roots_fork(void)
{
	memset(&roots, 0, sizeof(roots));
	pthread_mutex_init(&roots.lock, NULL);
}

HcclResult HcclGetRootInfo(HcclRootInfo *rootInfo)
{
	static const char what[] = "HcclGetRootInfo";
	struct npuacl_device *dev;
	struct hccl_local *l;
	char name[HCCL_NAME];
	HcclResult ret;

	if (!rootInfo)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: rootInfo is NULL", what);
	ret = device(what, &dev);
	if (ret)
		return ret;
	new_name(name, sizeof(name));
	ret = give(what, dev, name, &l);
	if (!ret)
		root_write(rootInfo, l);
	return ret;
}

/* ---- By root info ---------------------------------------------------------------------------- */

static HcclResult finish(const char *what, struct hccl_comm *c, HcclComm *comm)
{
	struct hccl_local *l = c->local;
	HcclResult ret = hccl_comm_ready(what, c);

	if (ret) {
		hccl_comm_unmake(c);
		return ret;
	}
	hccl_roots_release(l);
	*comm = c;
	return HCCL_SUCCESS;
}

static HcclResult by_key(const char *what, struct npuacl_device *dev, const struct npuacl_key *key, u32 ranks, u32 rank,
			 const HcclCommConfig *config, struct hccl_comm **out)
{
	struct hccl_local *l;
	HcclResult ret = hccl_group_open(what, key, &l);

	if (ret)
		return ret;
	ret = hccl_comm_make(what, dev, ranks, rank, config, l, out);
	if (ret)
		hccl_local_put(l);
	return ret;
}

static HcclResult by_root(const char *what, u32 ranks, const HcclRootInfo *info, u32 rank, const HcclCommConfig *config,
			  HcclComm *comm)
{
	struct npuacl_device *dev;
	struct npuacl_key key;
	struct hccl_comm *c;
	HcclResult ret;

	if (!info || !comm)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, info ? "comm" : "rootInfo");
	ret = device(what, &dev);
	if (!ret)
		ret = root_read(what, info, &key);
	if (!ret)
		ret = by_key(what, dev, &key, ranks, rank, config, &c);
	return ret ? ret : finish(what, c, comm);
}

HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank, HcclComm *comm)
{
	if (hccl_together_depth)
		return hccl_later("HcclCommInitRootInfo", NULL, rootInfo, nRanks, rank, NULL, comm);
	return by_root("HcclCommInitRootInfo", nRanks, rootInfo, rank, NULL, comm);
}

HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank,
				      const HcclCommConfig *config, HcclComm *comm)
{
	if (!config)
		return hccl_fail(HCCL_E_PTR, "EI0003", "HcclCommInitRootInfoConfig: config is NULL");
	if (hccl_together_depth)
		return hccl_later("HcclCommInitRootInfoConfig", NULL, rootInfo, nRanks, rank, config, comm);
	return by_root("HcclCommInitRootInfoConfig", nRanks, rootInfo, rank, config, comm);
}

/* ---- All at once -------------------------------------------------------------------------------- */

static HcclResult check_devices(const char *what, u32 n, const s32 *devices)
{
	u32 i, k;

	if (!n || n > HCCL_MAX_RANKS)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: %u devices", what, n);
	for (i = 0; i < n; i++)
		for (k = 0; k < i; k++)
			if (devices[i] == devices[k])
				return hccl_fail(HCCL_E_PARA, "EI0003", "%s: devices[%u] and devices[%u] are both %d", what, k, i,
						 devices[i]);
	return HCCL_SUCCESS;
}

HcclResult HcclCommInitAll(uint32_t ndev, int32_t *devices, HcclComm *comms)
{
	static const char what[] = "HcclCommInitAll";
	struct hccl_comm *c[HCCL_MAX_RANKS];
	struct npuacl_device *dev;
	struct hccl_local *l = NULL;
	char name[HCCL_NAME];
	u32 i, made = 0;
	HcclResult ret;
	aclError err;

	if (!devices || !comms)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, devices ? "comms" : "devices");
	ret = hccl_together_not(what);
	if (!ret)
		ret = check_devices(what, ndev, devices);
	for (i = 0; i < ndev && !ret; i++) {
		err = npuacl_device(devices[i], &dev);
		if (err) {
			ret = hccl_fail_acl(err, what);
			break;
		}
		if (!i) {
			new_name(name, sizeof(name));
			ret = give(what, dev, name, &l);
		}
		if (!ret)
			ret = by_key(what, dev, &l->key, ndev, i, NULL, &c[i]);
		made += !ret;
	}
	/* all have joined: no wait here, and no failure unless their settings could differ */
	for (i = 0; i < made && !ret; i++)
		ret = hccl_comm_ready(what, c[i]);
	if (ret) {
		while (made--)
			hccl_comm_unmake(c[made]);
	}
	if (l)
		hccl_roots_release(l);
	for (i = 0; i < ndev && !ret; i++)
		comms[i] = c[i];
	return ret;
}

/* ---- By rank table --------------------------------------------------------------------------------- */

static u64 mix(u64 sum, const char *text)
{
	for (; *text; text++) {
		sum ^= (u8)*text;
		sum = npuemu_random(&sum);
	}
	return sum;
}

static HcclResult note_path(const char *what, u64 hash, char *path, size_t size)
{
	const char *board = npuemu_getenv("NPUEMU_BOARD");
	char dir[64], job[32];
	u64 sum = mix(hash, hccl_job(job, sizeof(job)));
	struct stat st;

	sum = mix(sum, board ? board : "");
	snprintf(dir, sizeof(dir), "/tmp/npuemu-%u", (unsigned int)geteuid());
	if (mkdir(dir, 0700) && errno != EEXIST)
		return hccl_fail(HCCL_E_SYSCALL, "EI0006", "%s: %s cannot be made: %s", what, dir, strerror(errno));
	if (lstat(dir, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return hccl_fail(HCCL_E_SYSCALL, "EI0006", "%s: %s has to be a directory of this user alone", what, dir);
	snprintf(path, size, "%s/hccl-%016" PRIx64, dir, sum);
	return HCCL_SUCCESS;
}

static HcclResult note_write(const char *what, const char *path, const struct hccl_local *l)
{
	char temp[160];
	HcclRootInfo info;
	bool good;
	int fd;

	root_write(&info, l);
	snprintf(temp, sizeof(temp), "%s.%d", path, (int)getpid());
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	good = fd >= 0 && write(fd, &info, sizeof(struct root)) == (ssize_t)sizeof(struct root);
	if (fd >= 0)
		close(fd);
	if (good && !rename(temp, path))
		return HCCL_SUCCESS;
	unlink(temp);
	return hccl_fail(HCCL_E_SYSCALL, "EI0006", "%s: %s cannot be written: %s", what, path, strerror(errno));
}

static bool note_read(const char *path, struct root *r)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool good = fd >= 0 && read(fd, r, sizeof(*r)) == (ssize_t)sizeof(*r);

	if (fd >= 0)
		close(fd);
	return good;
}

/* A note may be of a job that is over, or whose ranks have all come: then another will follow. */
static HcclResult note_follow(const char *what, struct npuacl_device *dev, const char *path, u32 ranks, u32 rank,
			      const HcclCommConfig *config, struct hccl_comm **out)
{
	struct timespec nap = { .tv_nsec = 2000000 };
	struct hccl_config cfg;
	struct npuacl_key key;
	struct hccl_local *l;
	struct root r;
	s64 begin = npuemu_now_ns(), report = begin + npuacl_report_ns(), now, limit;
	char why[200];
	HcclResult ret;

	ret = (HcclResult)hccl_config_load(&cfg, "", why, sizeof(why));
	limit = ret ? 120000000000ll : cfg.connect_ns;
	for (;;) {
		if (note_read(path, &r) && !npuacl_key_unpack(what, r.key, NPUACL_EXPORT_MEMORY, &key) &&
		    !hccl_group_open(what, &key, &l)) {
			if (READ_ONCE(l->group->member[rank].state) == HCCL_ABSENT &&
			    READ_ONCE(l->group->member[0].state) == HCCL_MEMBER) {
				ret = hccl_comm_make(what, dev, ranks, rank, config, l, out);
				if (ret)
					hccl_local_put(l);
				return ret;
			}
			hccl_local_put(l);
		}
		now = npuemu_now_ns();
		if (hccl_report_due(now, &report))
			npuemu_log(NPUEMU_LOG_WARN, "%s: rank %u has waited %.0f s for rank 0 of this rank table", what, rank,
				   (double)(now - begin) / 1e9);
		if (limit && now - begin > limit)
			return hccl_fail(HCCL_E_TIMEOUT, "EI0006", "%s: rank 0 of this rank table did not come within %.0f s (HCCL_CONNECT_TIMEOUT)",
					 what, (double)limit / 1e9);
		nanosleep(&nap, NULL);
	}
}

static HcclResult by_table(const char *what, const char *path, u32 rank, const HcclCommConfig *config, HcclComm *comm)
{
	struct hccl_ranktable t;
	struct npuacl_device *dev;
	struct hccl_local *l = NULL;
	char why[400], note[128], name[HCCL_NAME];
	struct hccl_comm *c;
	HcclResult ret;

	if (!path || !comm)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, path ? "comm" : "clusterInfo");
	ret = device(what, &dev);
	if (ret)
		return ret;
	ret = (HcclResult)hccl_ranktable_load(path, &t, why, sizeof(why));
	if (ret)
		return hccl_fail_why(ret, what, why);
	ret = hccl_first_by_table(what, dev);
	if (ret) {
		hccl_ranktable_free(&t);
		return ret;
	}
	ret = (HcclResult)hccl_ranktable_has(&t, path, rank, why, sizeof(why));
	if (ret)
		ret = hccl_fail_why(ret, what, why);
	else if (t.nranks > HCCL_MAX_RANKS)
		ret = hccl_fail(HCCL_E_PARA, "EI0014", "%s: %s has %u ranks; %u can be in a communicator", what, path, t.nranks,
				HCCL_MAX_RANKS);
	else if (t.rank[rank].device != dev->phys && t.nservers == 1)
		ret = hccl_fail(HCCL_E_UNAVAIL, "EI0014", "%s: rank %u is on device %u (physical), but %s says device_id %u", what, rank,
				dev->phys, path, t.rank[rank].device);
	else if (t.rank[rank].device != dev->phys)	/* servers of a table may all be on one here */
		npuemu_log(NPUEMU_LOG_WARN, "%s: rank %u is on device %u, %s says %u", what, rank, dev->phys, path,
			   t.rank[rank].device);
	if (!ret)
		ret = note_path(what, t.hash, note, sizeof(note));
	if (!ret && rank) {
		ret = note_follow(what, dev, note, t.nranks, rank, config, &c);
	} else if (!ret) {
		new_name(name, sizeof(name));
		ret = give(what, dev, name, &l);
		if (!ret)
			ret = by_key(what, dev, &l->key, t.nranks, 0, config, &c);
		if (!ret)
			ret = note_write(what, note, l);
	}
	hccl_ranktable_free(&t);
	if (!ret) {
		c->by_table = true;
		ret = finish(what, c, comm);
	}
	if (!rank && l)
		unlink(note);
	if (ret && l)
		hccl_roots_release(l);
	return ret;
}

HcclResult HcclCommInitClusterInfo(const char *clusterInfo, uint32_t rank, HcclComm *comm)
{
	if (hccl_together_depth)
		return hccl_later("HcclCommInitClusterInfo", clusterInfo, NULL, 0, rank, NULL, comm);
	return by_table("HcclCommInitClusterInfo", clusterInfo, rank, NULL, comm);
}

HcclResult HcclCommInitClusterInfoConfig(const char *clusterInfo, uint32_t rank, HcclCommConfig *config, HcclComm *comm)
{
	if (!config)
		return hccl_fail(HCCL_E_PTR, "EI0003", "HcclCommInitClusterInfoConfig: config is NULL");
	if (hccl_together_depth)
		return hccl_later("HcclCommInitClusterInfoConfig", clusterInfo, NULL, 0, rank, config, comm);
	return by_table("HcclCommInitClusterInfoConfig", clusterInfo, rank, config, comm);
}

/* ---- Sub-communicators ---------------------------------------------------------------------------------- */

/* As the real library has it, unless that is too long. */
static void sub_name(const struct hccl_comm *parent, u64 id, char *name, size_t size)
{
	if ((size_t)snprintf(name, size, "%s_sub_%" PRIu64, parent->name, id) >= size)
		snprintf(name, size, "%.80s~%016" PRIx64 "_sub_%" PRIu64, parent->name, mix(1, parent->name), id);
}

/* Leave the key where the other ranks of @parent look for it. */
static HcclResult sub_leave(const char *what, struct hccl_comm *parent, u64 id, u32 ranks, const struct npuacl_key *key)
{
	struct hccl_sub *s;
	u32 i;

	for (i = 0; i < HCCL_SUBS; i++) {
		s = &parent->group->sub[i];
		if (!npuemu_cas(&s->state, 0, 1))
			continue;
		s->id = id;
		s->key = key->id;
		s->secret = key->secret;
		s->left = ranks - 1;
		smp_store_release(&s->state, ranks > 1 ? 2 : 0);
		return HCCL_SUCCESS;
	}
	return hccl_fail(HCCL_E_UNAVAIL, "EI0003", "%s: %u sub-communicators of %.64s are being made, the most there can be at a time", what,
			 HCCL_SUBS, parent->group->name);
}

static HcclResult sub_find(const char *what, struct hccl_comm *parent, u64 id, struct npuacl_key *key)
{
	s64 begin = npuemu_now_ns(), look = begin + 100000000, report = begin + npuacl_report_ns(), now;
	struct timespec nap = { .tv_nsec = 200000 };
	char why[512], family[8];
	struct hccl_sub *s;
	HcclResult ret;
	u32 i;

	for (;;) {
		for (i = 0; i < HCCL_SUBS; i++) {
			s = &parent->group->sub[i];
			/* ours while we read: else the last might leave it, and another one come */
			if (READ_ONCE(s->state) != 2 || !npuemu_cas(&s->state, 2, 3))
				continue;
			if (s->id != id) {
				smp_store_release(&s->state, 2);
				continue;
			}
			key->id = s->key;
			key->secret = s->secret;
			smp_store_release(&s->state, --s->left ? 2 : 0);
			return HCCL_SUCCESS;
		}
		ret = hccl_group_failed(parent, why, sizeof(why), family);
		if (ret)
			return hccl_fail(ret, family, "%s: %s", what, why);
		now = npuemu_now_ns();
		if (parent->cfg.connect_ns && now - begin > parent->cfg.connect_ns)
			return hccl_fail(HCCL_E_TIMEOUT, "EI0006", "%s: the first rank of sub-communicator %" PRIu64 " did not come within %.0f s (HCCL_CONNECT_TIMEOUT)",
					 what, id, (double)(now - begin) / 1e9);
		if (now >= look) {
			hccl_group_check(parent);
			look = now + 100000000;
		}
		if (hccl_report_due(now, &report))
			npuemu_log(NPUEMU_LOG_WARN, "%s: rank %u of %.64s has waited %.0f s for the first rank of sub-communicator %" PRIu64, what,
				   parent->rank, parent->name, (double)(now - begin) / 1e9, id);
		nanosleep(&nap, NULL);
	}
}

static HcclResult check_sub(const char *what, const struct hccl_comm *parent, u32 n, const u32 *ids, u32 rank)
{
	u32 i, k;

	if (parent->is_sub)
		return hccl_fail(HCCL_E_NOT_SUPPORT, "EI0003", "%s: the communicator is a sub-communicator itself", what);
	if (!n || n > parent->ranks || rank >= n)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: rank %u of %u of a communicator of %u ranks", what, rank, n,
				 parent->ranks);
	for (i = 0; i < n; i++) {
		if (ids[i] >= parent->ranks)
			return hccl_fail(HCCL_E_PARA, "EI0003", "%s: rankIds[%u] is %u; the communicator has ranks 0 to %u", what, i,
					 ids[i], parent->ranks - 1);
		for (k = 0; k < i; k++)
			if (ids[k] == ids[i])
				return hccl_fail(HCCL_E_PARA, "EI0003", "%s: rankIds[%u] and rankIds[%u] are both %u", what, k, i, ids[i]);
	}
	if (ids[rank] != parent->rank)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: subCommRankId %u is rank %u of the communicator, but the caller is rank %u",
				 what, rank, ids[rank], parent->rank);
	return HCCL_SUCCESS;
}

HcclResult HcclCreateSubCommConfig(HcclComm *comm, uint32_t rankNum, uint32_t *rankIds, uint64_t subCommId,
				   uint32_t subCommRankId, HcclCommConfig *config, HcclComm *subComm)
{
	static const char what[] = "HcclCreateSubCommConfig";
	struct hccl_comm *parent, *c;
	struct hccl_local *l = NULL;
	struct npuacl_key key;
	char name[HCCL_NAME];
	HcclResult ret;

	if (!comm || !subComm)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, comm ? "subComm" : "comm");
	ret = hccl_comm(*comm, what, &parent);
	if (!ret)
		ret = hccl_together_not(what);
	if (ret)
		return ret;
	if (!rankIds && subCommId == 0xffffffff) {	/* none of them */
		*subComm = NULL;
		return HCCL_SUCCESS;
	}
	if (!rankIds || subCommId == 0xffffffff)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: rankIds is %p and subCommId %#" PRIx64 ": who is not in it gives NULL and 0xffffffff, who is neither", what,
				 (void *)rankIds, subCommId);
	if (!config)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: config is NULL: it takes one of HcclCommConfigInit()", what);
	ret = check_sub(what, parent, rankNum, rankIds, subCommRankId);
	if (!ret && !subCommRankId) {
		sub_name(parent, subCommId, name, sizeof(name));
		ret = give(what, parent->dev, name, &l);
		if (!ret) {
			key = l->key;
			ret = sub_leave(what, parent, subCommId, rankNum, &key);
		}
	} else if (!ret) {
		ret = sub_find(what, parent, subCommId, &key);
	}
	if (!ret)
		ret = by_key(what, parent->dev, &key, rankNum, subCommRankId, config, &c);
	if (!ret) {
		c->is_sub = true;
		c->beside = parent->ranks;
		ret = finish(what, c, subComm);
	}
	if (ret && l)
		hccl_roots_release(l);
	return ret;
}
