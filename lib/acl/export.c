// SPDX-License-Identifier: MIT
/*
 * Records of what this process offers, in its table, and looking into those of others.
 *
 * A reader takes a copy and sees by @seq whether it was whole; what it says is checked
 * again by lib/core, which knows whether the buffer is still there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>
#include "share.h"

#define RECORDS		(NPUEMU_EXPORT_BYTES / (u32)sizeof(struct npuacl_record))
#define NONCE_BITS	44
#define NONCE_MASK	((1ull << NONCE_BITS) - 1)
#define INDEX_MASK	0xfffu
#define STEP		8u	/* records that get memory at a time: a page */

_Static_assert(sizeof(struct npuacl_record) == 512, "records are alike in all processes");
_Static_assert(RECORDS - 1 <= INDEX_MASK, "an index fits its bits");
_Static_assert(NPUEMU_MAX_SLOTS <= 256, "a slot fits its bits");

static struct {
	pthread_mutex_t lock;
	struct npuacl_record *table;	/* NULL: nothing was offered yet */
	u32 room;			/* records that have memory */
	u32 next;
	u64 drops;			/* atomic */
	struct npuemu_buf *buf[RECORDS];
} ex = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *const kind_text[NPUACL_EXPORT_KINDS] = {
	[NPUACL_EXPORT_PHYSICAL] = "physical memory", [NPUACL_EXPORT_MEMORY] = "device memory",
	[NPUACL_EXPORT_NOTIFY] = "a notify", [NPUACL_EXPORT_EVENT] = "an event",
	[NPUACL_EXPORT_ENDPOINT] = "an endpoint",
};

static u32 slot_of(u64 id)
{
	return (u32)(id >> 56);
}

static u32 index_of(u64 id)
{
	return (u32)(id >> NONCE_BITS) & INDEX_MASK;
}

/* ---- This process's ------------------------------------------------------------------ */

/* ex.lock held: the number of a free record. */
static aclError take(const char *what, u32 *index)
{
	u32 i, n;
	int err;

	for (n = 0; n < ex.room; n++) {
		i = (ex.next + n) % ex.room;
		if (ex.table[i].kind != NPUACL_EXPORT_NONE)
			continue;
		*index = i;
		ex.next = i + 1;
		return ACL_SUCCESS;
	}
	if (ex.room == RECORDS)
		return npuacl_fail(ACL_ERROR_RT_OVER_LIMIT,
				   "%s: this process offers %u things to others, the most it can: close keys, or free what they stand for",
				   what, RECORDS);
	err = npuemu_exports_own(npuacl.board, (ex.room + STEP) * (u32)sizeof(*ex.table), (void **)&ex.table);
	if (err)
		return npuacl_fail_core(err, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, what);
	*index = ex.room;
	ex.next = ex.room + 1;
	ex.room += STEP;
	return ACL_SUCCESS;
}

static void begin(struct npuacl_record *r)
{
	WRITE_ONCE(r->seq, r->seq + 1);
	smp_mb(); /* odd, before the change */
}

static void end(struct npuacl_record *r)
{
	smp_store_release(&r->seq, r->seq + 1);
}

static void make_secrets(struct npuacl_record *r)
{
	u64 v[2];

	if (getrandom(v, sizeof(v), 0) != sizeof(v)) {
		u64 seed = (u64)npuemu_now_ns() ^ (u64)getpid() << 40;

		v[0] = npuemu_random(&seed);
		v[1] = npuemu_random(&seed);
	}
	r->nonce = (v[0] & NONCE_MASK) | 1;
	r->secret = v[1] | 1;
}

aclError npuacl_export_add(const char *what, struct npuemu_buf *buf, struct npuacl_record *r,
			   struct npuacl_key *key)
{
	int err = npuemu_buf_export(buf, &r->buf);
	aclError ret;
	u32 i = 0;

	if (err)
		return npuacl_fail_core(err, ACL_ERROR_RT_PARAM_INVALID, what);
	make_secrets(r);
	r->exporter = (u32)getpid();
	r->npids = 0;
	pthread_mutex_lock(&ex.lock);
	ret = take(what, &i);
	if (!ret) {
		ex.buf[i] = buf;
		r->seq = ex.table[i].seq + 1;
		begin(&ex.table[i]);
		ex.table[i] = *r;
		end(&ex.table[i]);
		key->id = (u64)npuacl.info.pid_slot << 56 | (u64)i << NONCE_BITS | r->nonce;
		key->secret = r->secret;
	}
	pthread_mutex_unlock(&ex.lock);
	return ret;
}

/* ex.lock held: this process's record, if it is still that of @id. */
static struct npuacl_record *own(u64 id)
{
	u32 i = index_of(id);

	if (!id || !ex.table || slot_of(id) != npuacl.info.pid_slot || i >= ex.room)
		return NULL;
	return ex.table[i].kind != NPUACL_EXPORT_NONE && ex.table[i].nonce == (id & NONCE_MASK) ? &ex.table[i] : NULL;
}

static void clear(struct npuacl_record *r)
{
	begin(r);
	WRITE_ONCE(r->kind, NPUACL_EXPORT_NONE);
	r->nonce = 0;
	r->secret = 0;
	memset(&r->buf, 0, sizeof(r->buf));
	end(r);
	ex.buf[r - ex.table] = NULL;
	npuemu_fetch_add(&ex.drops, 1);
}

u64 npuacl_export_drops(void)
{
	return READ_ONCE(ex.drops);
}

void npuacl_export_drop(u64 id)
{
	struct npuacl_record *r;

	pthread_mutex_lock(&ex.lock);
	r = own(id);
	if (r)
		clear(r);
	pthread_mutex_unlock(&ex.lock);
}

void npuacl_export_drop_buf(struct npuemu_buf *buf)
{
	u32 i;

	pthread_mutex_lock(&ex.lock);
	for (i = 0; i < ex.room; i++)
		if (ex.buf[i] == buf)
			clear(&ex.table[i]);
	pthread_mutex_unlock(&ex.lock);
}

void npuacl_export_open(u64 id)
{
	struct npuacl_record *r;

	pthread_mutex_lock(&ex.lock);
	r = own(id);
	if (r && !r->any_process) {
		begin(r);
		r->any_process = 1;
		end(r);
	}
	pthread_mutex_unlock(&ex.lock);
}

struct npuemu_buf *npuacl_export_buf(u64 id)
{
	struct npuemu_buf *buf;
	struct npuacl_record *r;

	pthread_mutex_lock(&ex.lock);
	r = own(id);
	buf = r ? ex.buf[r - ex.table] : NULL;
	pthread_mutex_unlock(&ex.lock);
	return buf;
}

void npuacl_export_release(void)
{
	u32 i;

	pthread_mutex_lock(&ex.lock);
	for (i = 0; i < ex.room; i++)
		if (ex.table[i].kind != NPUACL_EXPORT_NONE)
			clear(&ex.table[i]);
	ex.table = NULL;
	ex.room = 0;
	ex.next = 0;
	pthread_mutex_unlock(&ex.lock);
}

void npuacl_export_fork(void)
{
	memset(&ex, 0, sizeof(ex));
	pthread_mutex_init(&ex.lock, NULL);
}

/* ---- Who may ---------------------------------------------------------------------------- */

static aclError stale(const char *what, u32 kind)
{
	return npuacl_fail(ACL_ERROR_RT_INVALID_HANDLE,
			   "%s: the key stands for nothing (any more): the exporter has ended, or has closed it or freed %s, or the key is not as it was given out",
			   what, kind_text[kind]);
}

/* ex.lock held: add what is not in the list already; all of it, or nothing. */
static aclError add_pids(const char *what, struct npuacl_record *r, const s32 *pid, size_t n)
{
	s32 list[NPUACL_EXPORT_PIDS];
	u32 have = r->npids, k;
	size_t i;

	memcpy(list, r->pid, sizeof(list));
	for (i = 0; i < n; i++) {
		if (pid[i] <= 0)
			return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
					   "%s: entry %zu, %d, is no process id; aclrtDeviceGetBareTgid() tells a process its own", what,
					   i, pid[i]);
		for (k = 0; k < have && list[k] != pid[i]; k++)
			;
		if (k < have)
			continue;
		if (have == NPUACL_EXPORT_PIDS)
			return npuacl_fail(ACL_ERROR_RT_OVER_LIMIT,
					   "%s: at most %u processes can be named; the flag that disables the validation of process ids is for more",
					   what, NPUACL_EXPORT_PIDS);
		list[have++] = pid[i];
	}
	begin(r);
	memcpy(r->pid, list, sizeof(list));
	r->npids = have;
	end(r);
	return ACL_SUCCESS;
}

aclError npuacl_export_allow(const char *what, const struct npuacl_key *key, u32 kind, const s32 *pid, size_t n)
{
	struct npuacl_record *r;
	aclError ret;

	if (!pid || !n)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what, n ? "the list of process ids is NULL" :
				   "no process id is given");
	pthread_mutex_lock(&ex.lock);
	r = own(key->id);
	if (!r || r->kind != kind || (key->secret && r->secret != key->secret))
		ret = slot_of(key->id) != npuacl.info.pid_slot ?
			npuacl_fail(ACL_ERROR_RT_PARAM_INVALID,
				    "%s: the key is another process's: the one that exported it says who may import it", what) :
			stale(what, kind);
	else
		ret = add_pids(what, r, pid, n);
	pthread_mutex_unlock(&ex.lock);
	return ret;
}

/* Servers of one board have the processes of one machine: the ids are enough. */
aclError npuacl_export_allow_servers(const char *what, const struct npuacl_key *key, u32 kind,
				     const aclrtServerPid *list, size_t n)
{
	aclError ret = ACL_SUCCESS;
	size_t i;

	if (!list || !n)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: no processes are given", what);
	for (i = 0; i < n && !ret; i++)
		ret = npuacl_export_allow(what, key, kind, list[i].pid, list[i].num);
	return ret;
}

/* ---- Finding -------------------------------------------------------------------------------- */

/* A whole copy of a record that its process may be changing. */
static bool copy_record(const struct npuacl_record *r, struct npuacl_record *out)
{
	u32 seq, tries;

	for (tries = 0; tries < 1000; tries++) {
		seq = smp_load_acquire(&r->seq);
		memcpy(out, (const void *)r, sizeof(*out));
		smp_mb(); /* the copy, before the second look */
		if (!(seq & 1) && READ_ONCE(r->seq) == seq)
			return true;
		npuemu_relax();
	}
	return false;	/* it died in the middle of a change */
}

static aclError read_record(const char *what, u64 id, struct npuacl_record *out, bool *found)
{
	const struct npuacl_record *table;
	const void *p;
	u32 bytes;
	int err;

	*found = false;
	err = npuemu_exports_of(npuacl.board, slot_of(id), &p, &bytes);
	if (err)
		return npuacl_fail_core(err, ACL_ERROR_RT_IPC_ERROR, what);
	table = p;
	if (index_of(id) < bytes / sizeof(*out)) {
		/* of one's own, other threads change them */
		pthread_mutex_lock(&ex.lock);
		*found = copy_record(&table[index_of(id)], out);
		pthread_mutex_unlock(&ex.lock);
	}
	return ACL_SUCCESS;
}

static bool allowed(const struct npuacl_record *r, u64 id)
{
	u32 i;

	if (r->any_process || slot_of(id) == npuacl.info.pid_slot)
		return true;
	for (i = 0; i < r->npids && i < NPUACL_EXPORT_PIDS; i++)
		if (r->pid[i] == (s32)getpid())
			return true;
	return false;
}

/* Looks, rather than going by what was last known. */
void npuacl_slots_look(struct npuacl_slots *live)
{
	struct npuemu_process_info *list = calloc(NPUEMU_MAX_SLOTS, sizeof(*list));
	int n = -1, i;

	if (list) {
		npuemu_reap(npuacl.board);
		n = npuemu_process_list(npuacl.board, list, NPUEMU_MAX_SLOTS);
	}
	memset(live, n < 0 ? 1 : 0, sizeof(*live));	/* nobody knows: all may be */
	for (i = 0; i < n && i < (int)NPUEMU_MAX_SLOTS; i++)
		if (list[i].slot < NPUEMU_MAX_SLOTS)
			live->live[list[i].slot] = true;
	free(list);
}

static bool slot_live(u32 slot)
{
	struct npuacl_slots slots;

	npuacl_slots_look(&slots);
	return slot < NPUEMU_MAX_SLOTS && slots.live[slot];
}

aclError npuacl_export_find(const char *what, const struct npuacl_key *key, u32 kind, struct npuacl_record *out)
{
	aclError ret;
	bool found;

	ret = read_record(what, key->id, out, &found);
	if (ret)
		return ret;
	/* one that has been killed left its record, and may be imported here already */
	if (found && slot_of(key->id) != npuacl.info.pid_slot && !slot_live(slot_of(key->id)))
		return stale(what, kind);
	if (!found || out->nonce != (key->id & NONCE_MASK) || out->kind != kind ||
	    (key->secret && out->secret != key->secret))
		return stale(what, kind);
	if (!allowed(out, key->id))
		return npuacl_fail(ACL_ERROR_RT_NO_PERMISSION,
				   "%s: process %u offers it to %u processes, and this one (%d) is none of them: it has to name it, or to export without validation of process ids",
				   what, out->exporter, out->npids, (int)getpid());
	return ACL_SUCCESS;
}

/* Of one process: the @nth of what is left of it. */
static bool seek_in(u32 slot, u32 kind, const void *note, size_t bytes, u32 *nth, struct npuacl_key *key)
{
	const struct npuacl_record *table;
	struct npuacl_record r;
	bool found = false;
	const void *p;
	u32 room, i;

	if (npuemu_exports_of(npuacl.board, slot, &p, &room))
		return false;
	table = p;
	/* of one's own, other threads change them */
	pthread_mutex_lock(&ex.lock);
	for (i = 0; i < room / sizeof(r) && !found; i++) {
		if (READ_ONCE(table[i].kind) != kind || !copy_record(&table[i], &r) || r.kind != kind ||
		    memcmp(r.note, note, bytes) || (*nth)--)
			continue;
		key->id = (u64)slot << 56 | (u64)i << NONCE_BITS | r.nonce;
		key->secret = r.secret;
		found = true;
	}
	pthread_mutex_unlock(&ex.lock);
	return found;
}

bool npuacl_export_seek(u32 kind, const void *note, size_t bytes, u32 nth, struct npuacl_key *key)
{
	struct npuemu_process_info *list = calloc(NPUEMU_MAX_SLOTS, sizeof(*list));
	bool found = false;
	int n, i;

	if (!list)
		return false;
	npuemu_reap(npuacl.board);
	n = npuemu_process_list(npuacl.board, list, NPUEMU_MAX_SLOTS);
	for (i = 0; i < n && i < (int)NPUEMU_MAX_SLOTS && !found; i++)
		found = seek_in(list[i].slot, kind, note, bytes, &nth, key);
	free(list);
	return found;
}

bool npuacl_export_holds(u64 id)
{
	struct npuacl_record r;
	bool found;

	return !read_record("record", id, &r, &found) && found && r.nonce == (id & NONCE_MASK);
}

bool npuacl_export_alive_in(const struct npuacl_slots *slots, u64 id)
{
	/* or somebody else has its slot by now */
	return slot_of(id) < NPUEMU_MAX_SLOTS && slots->live[slot_of(id)] && npuacl_export_holds(id);
}

bool npuacl_export_alive(u64 id)
{
	struct npuacl_slots slots;

	npuacl_slots_look(&slots);
	return npuacl_export_alive_in(&slots, id);
}

/* ---- Forms of a key ---------------------------------------------------------------------------- */

static const char letter[NPUACL_EXPORT_KINDS] = {
	[NPUACL_EXPORT_PHYSICAL] = 'p', [NPUACL_EXPORT_MEMORY] = 'm', [NPUACL_EXPORT_NOTIFY] = 'n',
	[NPUACL_EXPORT_EVENT] = 'e', [NPUACL_EXPORT_ENDPOINT] = 't',
};

void npuacl_key_write(char *text, u32 kind, const struct npuacl_key *key)
{
	memset(text, 0, NPUACL_KEY_TEXT);
	snprintf(text, NPUACL_KEY_TEXT, "npuemu-%c-%016" PRIx64 "-%016" PRIx64, letter[kind], key->id, key->secret);
}

aclError npuacl_key_read(const char *what, const char *text, u32 kind, struct npuacl_key *key)
{
	char c = 0, again[NPUACL_KEY_TEXT];

	if (!text)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the key is NULL", what);
	/* written again it is the same: then every character of it was looked at */
	if (strnlen(text, NPUACL_KEY_TEXT) < NPUACL_KEY_TEXT &&
	    sscanf(text, "npuemu-%c-%16" SCNx64 "-%16" SCNx64, &c, &key->id, &key->secret) == 3 && c == letter[kind]) {
		npuacl_key_write(again, kind, key);
		if (!strcmp(again, text) && key->id & NONCE_MASK && key->secret)
			return ACL_SUCCESS;
	}
	return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: \"%.20s%s\" is not a key of %s", what, text,
			   strnlen(text, 21) > 20 ? "..." : "", kind_text[kind]);
}

#define PACK_MAGIC	0x59454b4c4341504eull	/* "NPACLKEY" */

struct packed {
	u64 magic;
	u64 kind;
	u64 id;
	u64 secret;
	u64 sum;
	u64 zero[3];
};

_Static_assert(sizeof(struct packed) == NPUACL_KEY_BYTES, "the packed form has its size");

static u64 sum_of(const struct packed *p)
{
	u64 sum = PACK_MAGIC ^ p->kind;

	sum = npuemu_random(&sum) ^ p->id;
	sum = npuemu_random(&sum) ^ p->secret;
	return npuemu_random(&sum);
}

void npuacl_key_pack(void *bytes, u32 kind, const struct npuacl_key *key)
{
	struct packed p = { .magic = PACK_MAGIC, .kind = kind, .id = key->id, .secret = key->secret };

	p.sum = sum_of(&p);
	memcpy(bytes, &p, sizeof(p));
}

aclError npuacl_key_unpack(const char *what, const void *bytes, u32 kind, struct npuacl_key *key)
{
	struct packed p;

	memcpy(&p, bytes, sizeof(p));
	if (p.magic != PACK_MAGIC || p.kind != kind || p.sum != sum_of(&p) || !(p.id & NONCE_MASK) || !p.secret)
		return npuacl_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: these bytes are not a handle of %s", what,
				   kind_text[kind]);
	key->id = p.id;
	key->secret = p.secret;
	return ACL_SUCCESS;
}
