// SPDX-License-Identifier: MIT
/*
 * Boards: side by side, names and machines, what is refused; and on the
 * user-space host, where a board is a file: who may open it, what happens when it
 * is damaged or removed under a live process, and that a reset recovers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys.h"

static struct npuemu_open_attr attr_of(const char *board)
{
	struct npuemu_open_attr attr = { .size = sizeof(attr), .board = board };

	return attr;
}

/* A write to own memory gets there. */
static void works(struct npuemu *ctx)
{
	struct npuemu_queue *q = sys_queue(ctx, 0, 64);
	struct sys_mem m;

	sys_mem_make(ctx, &m, 0, 4096, SYS_RWA);
	m.p[0] = 0x5a;
	sys_rc(npuemu_post_write(q, m.p, 1, &m.t, m.va + 77, NPUEMU_SQE_CQE));
	sys_run(q);
	sys_eq(m.p[77], 0x5a);
	sys_rc(npuemu_queue_destroy(q));
	sys_mem_drop(&m);
}

/* ---- Names, machines, boards side by side ------------------------------------------------ */

static void side_by_side(void **state)
{
	char name[2][120];
	struct npuemu *ctx[2];
	struct npuemu_open_attr attr;
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu_queue *q;
	struct npuemu_buf *buf;
	struct npuemu_handle h;
	struct sys_mem m[2];
	int i;

	(void)state;
	sys_user_only("it has one board");
	for (i = 0; i < 2; i++) {
		snprintf(name[i], sizeof(name[i]), "%s-%c", sys_board(), 'a' + i);
		attr = attr_of(name[i]);
		attr.machine = i ? "small" : "950";
		/* much address space: not under TSan */
		if (sys_tsan())
			attr.machine = "small";
		sys_rc(npuemu_open(&attr, &ctx[i]));
		sys_rc(npuemu_query(ctx[i], &info));
		sys_true(!strcmp(info.board, name[i]), "board '%s'", info.board);
		sys_true(!strcmp(info.machine, attr.machine), "machine '%s'", info.machine);
		sys_eq(info.generation, 950);
		sys_eq(info.has_udma, 1);
		sys_eq(info.devices, i || sys_tsan() ? 2 : 8);
		sys_mem_make(ctx[i], &m[i], 0, 4096, SYS_RWA);
		works(ctx[i]);
	}
	sys_true(ctx[0] != ctx[1], "one handle for two boards");
	sys_eq(sys_hbm_used(ctx[0]), 4096);
	sys_eq(sys_hbm_used(ctx[1]), 4096);
	/* nothing of one is valid on the other */
	q = sys_queue(ctx[0], 0, 64);
	sys_rc(npuemu_post_write(q, m[0].p, 8, &m[1].t, m[1].va, NPUEMU_SQE_CQE));
	sys_true(sys_finish(q), "wrote to another board");
	sys_revive(q);
	sys_rc(npuemu_post_write(q, m[1].p, 8, &m[0].t, m[0].va, NPUEMU_SQE_CQE));
	sys_eq(sys_finish(q), NPUEMU_ST_LOC_ACCESS);
	sys_rc(npuemu_buf_export(m[1].buf, &h));
	sys_err(npuemu_buf_import(ctx[0], &h, &buf), -EINVAL);
	sys_rc(npuemu_queue_destroy(q));
	for (i = 0; i < 2; i++) {
		sys_mem_drop(&m[i]);
		sys_rc(npuemu_close(ctx[i]));
		sys_rc(npuemu_board_reset(name[i]));
		sys_err(npuemu_board_reset(name[i]), -ENOENT);
	}
}

static void machines(void **state)
{
	struct npuemu_open_attr attr = attr_of(NULL);
	struct npuemu *ctx, *other;

	(void)state;
	attr.flags = NPUEMU_OPEN_EXISTING;
	if (!sys_kernel())
		sys_err(npuemu_open(&attr, &ctx), -ENOENT);
	attr.flags = 0;
	attr.machine = "no-such-machine";
	sys_err(npuemu_open(&attr, &ctx), -EINVAL);
	attr.machine = "/no/such/file.txt";
	sys_err(npuemu_open(&attr, &ctx), -EINVAL);
	attr.machine = "/dev/null";
	sys_err(npuemu_open(&attr, &ctx), -EINVAL);
	attr.machine = NULL;
	attr.host = "no-such-host";
	sys_true(npuemu_open(&attr, &ctx) < 0 && npuemu_errmsg()[0], "a host of that name");
	attr.host = NULL;
	attr.flags = 0x80000000u;
	sys_err(npuemu_open(&attr, &ctx), -EINVAL);
	attr.flags = 0;
	sys_rc(npuemu_open(&attr, &ctx));
	attr.machine = "950-2x8";
	sys_err(npuemu_open(&attr, &other), -EBUSY);
	attr.machine = "small";
	sys_rc(npuemu_open(&attr, &other));
	sys_rc(npuemu_close(other));
	sys_rc(npuemu_close(ctx));
}

/* A machine without UDMA, but with SDMA. */
static void without_udma(void **state)
{
	struct npuemu_open_attr attr = attr_of(NULL);
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct npuemu_queue *q;
	struct npuemu *ctx;

	(void)state;
	sys_user_only("the module was loaded with another machine");
	/* much address space */
	if (sys_tsan())
		skip();
	attr.machine = "910b";
	sys_rc(npuemu_open(&attr, &ctx));
	sys_rc(npuemu_query(ctx, &info));
	sys_eq(info.has_udma, 0);
	sys_err(npuemu_queue_create(ctx, &qa, &q), -EOPNOTSUPP);
	qa.type = NPUEMU_QUEUE_SDMA;
	sys_rc(npuemu_queue_create(ctx, &qa, &q));
	sys_rc(npuemu_queue_destroy(q));
	sys_rc(npuemu_close(ctx));
	sys_rc(npuemu_board_reset(NULL));
}

/* A description that is wrong: file, line and column are said. */
static void bad_description(void **state)
{
	const char *dir = getenv("TMPDIR");
	struct npuemu_open_attr attr = attr_of(NULL);
	char path[200], where[220];
	struct npuemu *ctx;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/systest-%d.txt", dir ? dir : "/tmp", (int)getpid());
	f = fopen(path, "w");
	sys_true(f, "cannot write %s", path);
	fputs("name x\nsoc y\nhbm 64 GB\n", f);
	fclose(f);
	attr.machine = path;
	sys_err(npuemu_open(&attr, &ctx), -EINVAL);
	snprintf(where, sizeof(where), "%s:3:8", path);
	sys_true(strstr(npuemu_errmsg(), where), "not at %s: %s", where, npuemu_errmsg());
	unlink(path);
}

static void names(void **state)
{
	static const char *const bad[] = {
		"a/b", "../x", "/", ".", "..", "a b", "a\nb", "\xff", "a;b", "-\x01",
	};
	char long_name[300];
	struct npuemu_open_attr attr;
	struct npuemu *ctx;
	size_t i;

	(void)state;
	sys_user_only("the name of its board is not asked for");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		attr = attr_of(bad[i]);
		sys_err(npuemu_open(&attr, &ctx), -EINVAL);
		sys_err(npuemu_board_reset(bad[i]), -EINVAL);
	}
	memset(long_name, 'x', sizeof(long_name));
	long_name[299] = 0;
	attr = attr_of(long_name);
	sys_err(npuemu_open(&attr, &ctx), -EINVAL);
	sys_err(npuemu_board_reset(long_name), -EINVAL);
}

/* Only looking: no memory, no queue, not a process that counts. */
static void observer(void **state)
{
	struct npuemu_open_attr attr = attr_of(NULL);
	struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
	struct npuemu_cq_attr ca = { .size = sizeof(ca), .depth = 64 };
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu_process_info list[4];
	struct npuemu_queue *q;
	struct npuemu_buf *buf;
	struct npuemu_cq *cq;
	struct npuemu *ctx;

	(void)state;
	sys_rc(npuemu_close(sys_open()));
	attr.flags = NPUEMU_OPEN_OBSERVE;
	sys_rc(npuemu_open(&attr, &ctx));
	sys_rc(npuemu_query(ctx, &info));
	sys_eq(info.devices, 2);
	sys_rc(npuemu_process_list(ctx, list, 4));
	sys_true(npuemu_buf_alloc(ctx, 0, 4096, 0, &buf) < 0 && npuemu_errmsg()[0], "memory");
	sys_true(npuemu_cq_create(ctx, &ca, &cq) < 0 && npuemu_errmsg()[0], "a CQ");
	sys_true(npuemu_queue_create(ctx, &qa, &q) < 0 && npuemu_errmsg()[0], "a queue");
	sys_rc(npuemu_close(ctx));
}

/* ---- The file of a board ------------------------------------------------------------------- */

static void permissions(void **state)
{
	const char *path;
	struct npuemu *ctx;
	struct stat st;
	mode_t old;

	(void)state;
	sys_user_only("its board is no file");
	old = umask(0);
	path = sys_board_file(sys_board());
	ctx = sys_open();
	umask(old);
	sys_true(!stat(path, &st), "no file %s", path);
	sys_eq(st.st_mode & 07777, 0600);
	sys_eq(st.st_uid, geteuid());
	sys_rc(npuemu_close(ctx));
}

static void symlinks(void **state)
{
	const char *dir = getenv("TMPDIR");
	char path[200], victim[220], other[120], text[16] = "";
	struct npuemu_open_attr attr = attr_of(other);
	struct npuemu *ctx;
	int fd;

	(void)state;
	sys_user_only("its board is no file");
	snprintf(path, sizeof(path), "%s", sys_board_file(sys_board()));
	sys_rc(npuemu_board_reset(NULL));
	snprintf(victim, sizeof(victim), "%s/systest-victim-%d", dir ? dir : "/tmp",
		 (int)getpid());
	fd = open(victim, O_RDWR | O_CREAT | O_TRUNC, 0600);
	sys_true(fd >= 0 && write(fd, "precious", 8) == 8, "cannot write %s", victim);
	sys_true(!symlink(victim, path), "cannot link %s", path);
	sys_true(npuemu_open(NULL, &ctx) < 0 && npuemu_errmsg()[0], "followed a symbolic link");
	npuemu_board_reset(NULL);
	sys_eq(pread(fd, text, sizeof(text), 0), 8);
	sys_true(!strcmp(text, "precious"), "the file behind the link is now '%s'", text);
	close(fd);
	unlink(path);
	unlink(victim);
	/* not even to another board */
	snprintf(other, sizeof(other), "%s-other", sys_board());
	snprintf(victim, sizeof(victim), "%s-other", path);
	sys_rc(npuemu_open(&attr, &ctx));
	sys_rc(npuemu_close(ctx));
	sys_true(!symlink(victim, path), "cannot link %s", path);
	sys_true(npuemu_open(NULL, &ctx) < 0 && npuemu_errmsg()[0], "followed a symbolic link");
	unlink(path);
	sys_rc(npuemu_board_reset(other));
	ctx = sys_open();
	works(ctx);
	sys_rc(npuemu_close(ctx));
}

/* Has the board open until it is told to go, or killed. */
static void holder(int fd, const void *arg)
{
	struct npuemu *ctx = sys_open();

	(void)arg;
	works(ctx);
	sys_go(fd);
	sys_wait_go(fd);
	npuemu_close(ctx);
}

static void overwrite(const char *path, int how)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	unsigned char block[4096];
	uint64_t rnd = (uint64_t)how;
	struct stat st;
	off_t at;

	sys_true(fd >= 0 && !fstat(fd, &st), "no file %s", path);
	switch (how) {
	case 0:
	case 1:
		memset(block, how ? 0 : 0xff, sizeof(block));
		sys_true(pwrite(fd, block, sizeof(block), 0) == sizeof(block), "pwrite");
		break;
	case 2:
		sys_true(!ftruncate(fd, 0), "ftruncate");
		break;
	case 3:
		sys_true(!ftruncate(fd, st.st_size / 2), "ftruncate");
		break;
	case 4:
		sys_true(!ftruncate(fd, 100), "ftruncate");
		break;
	default:
		/* all of the header, each time otherwise */
		for (at = 0; at < 4096; at += 8)
			*(uint64_t *)(block + at) = sys_rand(&rnd);
		sys_true(pwrite(fd, block, sizeof(block), 0) == sizeof(block), "pwrite");
	}
	close(fd);
}

/* Whatever is written over the header: -EUCLEAN, and a reset recovers. */
static void damaged_header(void **state)
{
	struct npuemu *ctx;
	struct sys_child c;
	char path[200];
	int how;

	(void)state;
	sys_user_only("its board is no file");
	snprintf(path, sizeof(path), "%s", sys_board_file(sys_board()));
	for (how = 0; how < 8; how++) {
		sys_spawn(&c, holder, NULL, 0);
		sys_wait_go(c.fd);
		/* a file that became shorter kills whoever has it mapped: nobody has */
		if (how >= 2 && how <= 4)
			sys_kill(&c);
		overwrite(path, how);
		sys_err(npuemu_open(NULL, &ctx), -EUCLEAN);
		sys_true(strstr(npuemu_errmsg(), "reset"), "says no way out: %s", npuemu_errmsg());
		sys_rc(npuemu_board_reset(NULL));
		ctx = sys_open();
		works(ctx);
		sys_rc(npuemu_close(ctx));
		if (how < 2 || how > 4) {
			sys_go(c.fd);
			sys_join(&c);
		}
		sys_rc(npuemu_board_reset(NULL));
	}
}

struct scribble {
	uint64_t seed;
	char path[200];
};

/*
 * Nothing may crash or hang; what a call returns is a result or an errno.  Not
 * true: it gave up after a long wait, and so would all that follow.
 */
static bool defined(long rc)
{
	sys_true(rc >= -4095, "returned %ld", rc);
	if (rc < 0)
		sys_true(npuemu_errmsg()[0], "%ld without a message", rc);
	return rc != -ETIMEDOUT;
}

/* A new value for some word of the file that is not zero; the file has holes. */
static void scribble(int fd, uint64_t *rnd, bool small)
{
	off_t start[256], len[256], at, end, sum = 0, pick;
	uint64_t word;
	int n = 0, tries;

	for (at = 0; n < 256 && (at = lseek(fd, at, SEEK_DATA)) >= 0; at = end) {
		end = lseek(fd, at, SEEK_HOLE);
		if (end <= at)
			break;
		start[n] = at;
		len[n] = end - at;
		sum += len[n++];
	}
	sys_true(sum, "an empty board");
	for (tries = 0; tries < 5000; tries++) {
		pick = (off_t)(sys_rand(rnd) % (uint64_t)sum / 8 * 8);
		for (n = 0; pick >= len[n]; n++)
			pick -= len[n];
		pick += start[n];
		if (pread(fd, &word, 8, pick) == 8 && word)
			break;
	}
	word = small ? sys_rand(rnd) % 1000 : sys_rand(rnd);
	sys_true(pwrite(fd, &word, 8, pick) == 8, "pwrite");
}

static bool all_calls(struct npuemu *ctx, struct npuemu_queue *q, const struct sys_mem *m)
{
	struct npuemu_device_info di = { .size = sizeof(di) };
	struct npuemu_queue_stat st = { .size = sizeof(st) };
	struct npuemu_process_info list[4];
	struct npuemu_buf *buf;
	struct npuemu_wc wc;
	bool ok;
	int rc;

	npuemu_post_write(q, m->p, 8, &m->t, m->va + 64, NPUEMU_SQE_CQE);
	ok = defined(npuemu_doorbell(q));
	npuemu_wait(npuemu_queue_cq(q), npuemu_deadline_ms(5));
	ok = defined(npuemu_poll(npuemu_queue_cq(q), &wc, 1)) && ok;
	ok = defined(npuemu_device_query(ctx, 0, &di)) && ok;
	ok = defined(npuemu_queue_query(q, &st)) && ok;
	ok = defined(npuemu_process_list(ctx, list, 4)) && ok;
	ok = defined(npuemu_reap(ctx)) && ok;
	rc = npuemu_buf_alloc(ctx, 0, 8192, 0, &buf);
	ok = defined(rc) && ok;
	return ok && (rc || defined(npuemu_buf_free(buf)));
}

/* A process whose board is scribbled over, in places that are in use. */
static void scribbled(int fd, const void *arg)
{
	const struct scribble *s = arg;
	struct npuemu *ctx = sys_open();
	struct npuemu_queue *q = sys_queue(ctx, 0, 64);
	uint64_t rnd = s->seed;
	struct npuemu_handle h;
	bool ok = true;
	struct sys_mem m;
	int bfd, i;

	sys_mem_make(ctx, &m, 0, 65536, SYS_RWA);
	sys_rc(npuemu_buf_export(m.buf, &h));
	sys_put(fd, &m.info, sizeof(m.info));
	sys_wait_go(fd);
	bfd = open(s->path, O_RDWR | O_CLOEXEC);
	sys_true(bfd >= 0, "no file %s", s->path);
	for (i = 0; i < 12 && ok; i++) {
		scribble(bfd, &rnd, i & 1);
		ok = all_calls(ctx, q, &m);
	}
	close(bfd);
	sys_go(fd);
	sys_wait_go(fd);
	if (ok && defined(npuemu_queue_destroy(q)) && defined(npuemu_seg_unregister(m.seg)) &&
	    defined(npuemu_buf_free(m.buf)))
		npuemu_close(ctx);
}

static void scribbled_slots(void **state)
{
	struct npuemu_seg_info info;
	struct npuemu_target t;
	struct scribble s;
	struct sys_child c;
	struct npuemu *ctx;
	int round, rc;

	(void)state;
	sys_user_only("its board is no file");
	/* TSan minds a mutex that is written over. */
	if (sys_tsan())
		skip();
	memset(&s, 0, sizeof(s));
	snprintf(s.path, sizeof(s.path), "%s", sys_board_file(sys_board()));
	for (round = 0; round < (sys_slow() ? 6 : 20); round++) {
		s.seed = (uint64_t)round;
		sys_spawn(&c, scribbled, &s, sizeof(s));
		sys_get(c.fd, &info, sizeof(info));
		t = npuemu_target_of(&info);
		sys_go(c.fd);
		sys_wait_go(c.fd);
		/* another one comes to such a board */
		rc = npuemu_open(NULL, &ctx);
		defined(rc);
		if (!rc) {
			struct npuemu_queue_attr qa = sys_queue_attr(0, 64);
			struct npuemu_queue *q;
			struct npuemu_buf *buf;

			qa.ack_timeout_ms = 50;
			if (!npuemu_queue_create(ctx, &qa, &q)) {
				if (!npuemu_buf_alloc(ctx, 0, 4096, 0, &buf)) {
					npuemu_post_write(q, npuemu_buf_ptr(buf), 8, &t, info.va,
							  NPUEMU_SQE_CQE);
					defined(npuemu_doorbell(q));
					npuemu_wait(npuemu_queue_cq(q), npuemu_deadline_ms(100));
				}
				defined(npuemu_queue_destroy(q));
			}
			defined(npuemu_reap(ctx));
			defined(npuemu_close(ctx));
		}
		sys_go(c.fd);
		sys_join(&c);
		rc = npuemu_board_reset(NULL);
		sys_true(!rc || rc == -ENOENT, "reset: %d: %s", rc, npuemu_errmsg());
		ctx = sys_open();
		works(ctx);
		sys_rc(npuemu_close(ctx));
		sys_rc(npuemu_board_reset(NULL));
	}
}

/* ---- Reset under a live process ---------------------------------------------------------------- */

static void resetter(int fd, const void *arg)
{
	(void)fd;
	(void)arg;
	sys_rc(npuemu_board_reset(NULL));
}

static void reset_while_open(void **state)
{
	struct npuemu_info info = { .size = sizeof(info) };
	struct npuemu *ctx = sys_open(), *fresh;
	struct npuemu_queue *q = sys_queue(ctx, 0, 64);
	struct npuemu_queue_stat st = { .size = sizeof(st) };
	struct npuemu_buf *buf;
	struct sys_child c;
	struct sys_mem m;
	struct npuemu_wc wc;
	int rc;

	(void)state;
	sys_mem_make(ctx, &m, 0, 4096, SYS_RWA);
	sys_rc(npuemu_post_write(q, m.p, 8, &m.t, m.va + 64, NPUEMU_SQE_CQE));
	sys_run(q);
	sys_spawn(&c, resetter, NULL, 0);
	sys_join(&c);
	sys_err(npuemu_query(ctx, &info), -EUCLEAN);
	sys_err(npuemu_buf_alloc(ctx, 0, 4096, 0, &buf), -EUCLEAN);
	/* what is still posted does not hang, and does not succeed */
	rc = npuemu_post_write(q, m.p, 8, &m.t, m.va + 64, NPUEMU_SQE_CQE);
	sys_true(!rc || rc == -EAGAIN, "post: %d", rc);
	rc = npuemu_doorbell(q);
	sys_true(!rc || rc == -EUCLEAN, "doorbell: %d: %s", rc, npuemu_errmsg());
	rc = npuemu_wait(npuemu_queue_cq(q), sys_deadline());
	sys_true(!rc || rc == -EUCLEAN, "wait: %d: %s", rc, npuemu_errmsg());
	rc = npuemu_poll(npuemu_queue_cq(q), &wc, 1);
	sys_true(rc == -EUCLEAN || (rc == 1 && wc.status), "poll: %d: %s", rc, npuemu_errmsg());
	rc = npuemu_queue_query(q, &st);
	sys_true(rc == -EUCLEAN || (!rc && st.state == NPUEMU_QS_ERROR), "query: %d: %s", rc,
		 npuemu_errmsg());
	/* the last reference ends it */
	rc = npuemu_close(ctx);
	sys_true(!rc || rc == -EUCLEAN, "close: %d: %s", rc, npuemu_errmsg());
	fresh = sys_open();
	works(fresh);
	sys_rc(npuemu_close(fresh));
}

/* Waiting for a word or a completion when the board goes away. */
static void sleeper(int fd, const void *arg)
{
	struct npuemu *ctx = sys_open();
	struct sys_mem m;
	int rc;

	(void)arg;
	sys_mem_make(ctx, &m, 0, 4096, SYS_RWA);
	sys_go(fd);
	rc = npuemu_wait_word(ctx, (uint64_t *)m.p, NPUEMU_CMP_EQ, 1, sys_deadline());
	sys_eq(-rc, EUCLEAN);
	npuemu_close(ctx);
}

static void reset_while_waiting(void **state)
{
	struct sys_child c;

	(void)state;
	sys_spawn(&c, sleeper, NULL, 0);
	sys_wait_go(c.fd);
	sys_nap(20);
	sys_rc(npuemu_board_reset(NULL));
	sys_join(&c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sys_test(side_by_side),
		sys_test(machines),
		sys_test(without_udma),
		sys_test(bad_description),
		sys_test(names),
		sys_test(observer),
		sys_test(permissions),
		sys_test(symlinks),
		sys_test_damage(damaged_header),
		sys_test_damage(scribbled_slots),
		sys_test(reset_while_open),
		sys_test(reset_while_waiting),
	};

	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
