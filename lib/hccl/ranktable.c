// SPDX-License-Identifier: MIT
/*
 * Rank tables: the file, its version, and what holds for every version: ranks
 * count from 0 without a gap, and no two of them are the same device.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tableread.h"

#define MAX_FILE	(32 << 20)	/* 4,096 ranks of eight layers fit well */
#define MAX_NESTING	16

/* ---- The file --------------------------------------------------------------- */

static int read_all(struct table *t, int fd, char *text, size_t size, size_t *len)
{
	ssize_t n;

	while (*len < size) {
		n = read(fd, text + *len, size - *len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return table_fail(t, HCCL_E_OPEN_FILE_FAILURE,
					  "EI0004: rank table %s cannot be read: %s", t->file, strerror(errno));
		if (!n)
			break;		/* it has become shorter */
		*len += (size_t)n;
	}
	return HCCL_SUCCESS;
}

static int open_file(struct table *t, int *fd, size_t *size)
{
	struct stat st;

	/* O_NONBLOCK: a FIFO is refused below, it must not hang here */
	*fd = open(t->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0 || fstat(*fd, &st))
		return table_fail(t, HCCL_E_OPEN_FILE_FAILURE,
				  "EI0004: rank table %s cannot be opened: %s; give the path of a JSON file",
				  t->file, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return table_fail(t, HCCL_E_OPEN_FILE_FAILURE,
				  "EI0004: rank table %s is not a file; give the path of a JSON file", t->file);
	if (st.st_size > MAX_FILE)
		return table_fail(t, HCCL_E_PARA, "EI0004: rank table %s has %lld bytes; at most %d are read",
				  t->file, (long long)st.st_size, MAX_FILE);
	*size = (size_t)st.st_size;
	return HCCL_SUCCESS;
}

int hccl_ranktable_load(const char *path, struct hccl_ranktable *t, char *why, size_t room)
{
	struct table at = { .file = path ? path : "", .why = why, .room = room };
	size_t size = 0, len = 0;
	char *text = NULL;
	int fd = -1, ret;

	memset(t, 0, sizeof(*t));
	if (!path)
		return table_fail(&at, HCCL_E_PTR, "EI0004: the path of the rank table is NULL");
	ret = open_file(&at, &fd, &size);
	if (!ret) {
		text = calloc(1, size + 1);
		ret = text ? read_all(&at, fd, text, size, &len) : table_oom(&at);
	}
	if (fd >= 0)
		close(fd);
	if (!ret)
		ret = hccl_ranktable_parse(path, text, len, t, why, room);
	free(text);
	return ret;
}

/* ---- JSON ------------------------------------------------------------------- */

static int no_json(struct table *t, const char *text, size_t at, const char *what)
{
	size_t i, line = 1, column = 1;

	for (i = 0; i < at; i++) {
		column++;
		if (text[i] == '\n') {
			line++;
			column = 1;
		}
	}
	return table_fail(t, HCCL_E_PARA, "EI0004: rank table %s is no JSON: line %zu, column %zu: %s",
			  t->file, line, column, what);
}

static int tokenize(struct table *t, const char *text, size_t len, struct json_object **root)
{
	struct json_tokener *tok;
	enum json_tokener_error err;
	const char *nul = memchr(text, 0, len);
	int ret = HCCL_SUCCESS;

	if (nul)
		return no_json(t, text, (size_t)(nul - text), "a NUL byte");
	tok = json_tokener_new_ex(MAX_NESTING);
	if (!tok)
		return table_oom(t);
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	*root = json_tokener_parse_ex(tok, text, (int)len);
	err = json_tokener_get_error(tok);
	if (err == json_tokener_continue)
		ret = no_json(t, text, len, "it ends too early");
	else if (err != json_tokener_success)
		ret = no_json(t, text, json_tokener_get_parse_end(tok), json_tokener_error_desc(err));
	else if (!json_object_is_type(*root, json_type_object))
		ret = table_fail(t, HCCL_E_PARA, "EI0004: rank table %s is JSON, but not an object {...}",
				 t->file);
	json_tokener_free(tok);
	return ret;
}

/* ---- Every version ---------------------------------------------------------- */

/* What names a server or a pod, to count them by. */
struct named {
	u64 hash;
	const char *name;
};

static u32 number_of(struct named *list, u32 *n, const char *name)
{
	u64 hash = table_hash_text(0, name);
	u32 i;

	for (i = 0; i < *n; i++)
		if (list[i].hash == hash && !strcmp(list[i].name, name))
			return i;
	list[i].hash = hash;
	list[i].name = name;
	(*n)++;
	return i;
}

static int twice(struct table *t, const struct table_rank *r, const struct table_rank *first,
		 const char *what)
{
	char path[TABLE_PATH], other[TABLE_PATH];

	table_rank_path(t, r, path, sizeof(path));
	table_rank_path(t, first, other, sizeof(other));
	return table_fail(t, HCCL_E_PARA, "EI0014: rank table %s: %s: %s is that of %s, too; expected one of its own",
			  t->file, path, what, other);
}

/* r[i] becomes the entry of rank i. */
static int by_rank(struct table *t, const struct table_rank **r)
{
	char path[TABLE_PATH], what[64];
	u32 i, rank;

	for (i = 0; i < t->n; i++) {
		rank = t->rank[i].ent.rank;
		if (rank >= t->n) {
			table_rank_path(t, &t->rank[i], path, sizeof(path));
			return table_fail(t, HCCL_E_PARA,
					  "EI0014: rank table %s: %s.rank_id is %u; expected 0 to %u: it has %u ranks, and they count from 0 without a gap",
					  t->file, path, rank, t->n - 1, t->n);
		}
		if (r[rank]) {
			snprintf(what, sizeof(what), "rank_id %u", rank);
			return twice(t, &t->rank[i], r[rank], what);
		}
		r[rank] = &t->rank[i];
	}
	return HCCL_SUCCESS;
}

static int order_device(const void *a, const void *b)
{
	const struct hccl_rankent *x = a, *y = b;

	if (x->server_index != y->server_index)
		return x->server_index < y->server_index ? -1 : 1;
	if (x->local != y->local)
		return x->local < y->local ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int one_device_each(struct table *t, const struct table_rank **r, const struct hccl_ranktable *out)
{
	struct hccl_rankent *sorted = malloc(out->nranks * sizeof(*sorted));
	int ret = HCCL_SUCCESS;
	char what[160];
	u32 i;

	if (!sorted)
		return table_oom(t);
	memcpy(sorted, out->rank, out->nranks * sizeof(*sorted));
	qsort(sorted, out->nranks, sizeof(*sorted), order_device);
	for (i = 1; i < out->nranks && !ret; i++)
		if (sorted[i].server_index == sorted[i - 1].server_index &&
		    sorted[i].local == sorted[i - 1].local) {
			snprintf(what, sizeof(what), "%s %u of server \"%s\"", t->v2 ? "local_id" : "device_id",
				 sorted[i].local, sorted[i].server);
			ret = twice(t, r[sorted[i].rank], r[sorted[i - 1].rank], what);
		}
	free(sorted);
	return ret;
}

static int number_all(struct table *t, const struct table_rank **r, struct hccl_ranktable *out)
{
	struct named *servers = malloc(t->n * sizeof(*servers)), *pods = malloc(t->n * sizeof(*pods));
	u32 i, nservers = 0, npods = 0;
	int ret = HCCL_SUCCESS;

	out->rank = malloc(t->n * sizeof(*out->rank));
	if (!servers || !pods || !out->rank) {
		ret = table_oom(t);
		goto out;
	}
	out->nranks = t->n;
	memcpy(out->version, t->version, sizeof(out->version));
	out->hash = table_hash_text(t->n, t->version);
	for (i = 0; i < t->n; i++) {
		struct hccl_rankent *e = &out->rank[i];

		*e = r[i]->ent;
		e->server_index = number_of(servers, &nservers, r[i]->server);
		e->superpod = number_of(pods, &npods, r[i]->superpod ? r[i]->superpod : "");
		snprintf(e->server, sizeof(e->server), "%.*s", HCCL_SERVER_NAME, r[i]->server);
		out->hash = table_hash(out->hash, &r[i]->hash, sizeof(r[i]->hash));
	}
	out->nservers = nservers;
	out->nsuperpods = npods;
out:
	free(servers);
	free(pods);
	return ret;
}

static int finish(struct table *t, struct hccl_ranktable *out)
{
	const struct table_rank **r = calloc(t->n, sizeof(struct table_rank *));
	int ret;

	if (!r)
		return table_oom(t);
	ret = by_rank(t, r);
	if (!ret)
		ret = number_all(t, r, out);
	if (!ret)
		ret = one_device_each(t, r, out);
	free(r);
	return ret;
}

static int read_root(const struct table_obj *root)
{
	struct table *t = root->t;
	const char *version = NULL, *status = NULL;
	u32 must;
	int ret;

	ret = table_string(root, "version", TABLE_MUST, 7, &version);
	if (ret)
		return ret;
	if (strcmp(version, "1.0") && strcmp(version, "1.2") && strcmp(version, "2.0"))
		return table_bad(root, "version", "\"1.0\", \"1.2\" or \"2.0\"");
	snprintf(t->version, sizeof(t->version), "%s", version);
	t->v2 = version[0] == '2';
	must = t->v2 ? 0 : TABLE_MUST;
	ret = table_string(root, "status", must, 64, &status);
	if (ret)
		return ret;
	if (status && strcmp(status, "completed"))
		return table_bad(root, "status", "\"completed\"");
	return t->v2 ? table_read_v2(root) : table_read_v1(root);
}

int hccl_ranktable_parse(const char *name, const char *text, size_t len, struct hccl_ranktable *out,
			 char *why, size_t room)
{
	struct table t = { .file = name, .why = why, .room = room };
	struct table_obj root = { .t = &t };
	int ret;

	memset(out, 0, sizeof(*out));
	if (room)
		why[0] = '\0';
	if (len > MAX_FILE)
		return table_fail(&t, HCCL_E_PARA, "EI0004: rank table %s has %zu bytes; at most %d are read",
				  name, len, MAX_FILE);
	ret = tokenize(&t, text, len, &root.json);
	if (!ret)
		ret = read_root(&root);
	if (!ret)
		ret = finish(&t, out);
	json_object_put(root.json);
	free(t.rank);
	if (ret)
		hccl_ranktable_free(out);
	return ret;
}

void hccl_ranktable_free(struct hccl_ranktable *t)
{
	free(t->rank);
	memset(t, 0, sizeof(*t));
}

/* ---- Against what a program and the other ranks say ------------------------- */

int hccl_ranktable_has(const struct hccl_ranktable *t, const char *name, u32 rank, char *why, size_t room)
{
	if (rank < t->nranks)
		return HCCL_SUCCESS;
	snprintf(why, room, "EI0014: rank table %s: rank %u is not in it; expected 0 to %u", name, rank,
		 t->nranks - 1);
	return HCCL_E_PARA;
}

int hccl_ranktable_same(const struct hccl_ranktable *t, const char *name, u64 peer_hash, u32 peer,
			char *why, size_t room)
{
	if (peer_hash == t->hash)
		return HCCL_SUCCESS;
	snprintf(why, room,
		 "EI0014: rank table %s: rank %u has read another one (hash %016" PRIx64 ", here %016" PRIx64 "); expected the same contents on all ranks",
		 name, peer, peer_hash, t->hash);
	return HCCL_E_PARA;
}
