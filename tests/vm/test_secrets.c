// SPDX-License-Identifier: MIT
/*
 * What one user can learn of another: nothing from how a wrong token is refused, and no
 * address from looking around.
 */
#include <ctype.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "busy.h"

#define ALICE	1000
#define MALLORY	1001
#define SLOTS	256

/* ---- No such segment, or a wrong token --------------------------------------------- */

static void alice_offers(int fd, void *unused)
{
	struct npuemu_ioc_seg_destroy d = { 0 };
	struct raw_seg s[2];
	struct raw_bo bo;
	struct raw r;

	(void)unused;
	raw_become(ALICE);
	raw_open(&r, 0);
	raw_bo_make(&r, &bo, 64 * KIB);
	/* that one stays: having none at all is another thing */
	raw_seg_make(&bo, &s[0], SYS_RWA);
	raw_seg_make(&bo, &s[1], NPUEMU_ACCESS_READ);
	sys_put(fd, s, sizeof(s));
	sys_wait_go(fd);
	d.token_id = s[0].token_id;
	raw_is(raw_ioctl(r.fd, NPUEMU_IOC_SEG_DESTROY, &d), 0);
	sys_go(fd);
	sys_wait_go(fd);
}

struct answer {
	uint32_t status;
	char cause[NPUEMU_CAUSE_LEN];
};

/* What she is told of one WQE; her queue goes again afterwards. */
static struct answer ask(struct busy *m, const struct raw_seg *t, bool write)
{
	struct npuemu_cqe cqe;
	struct answer a;

	if (write)
		raw_post_write(&m->q, m->bo.p, 64, t, 0);
	else
		raw_post_read(&m->q, m->bo.p, 64, t, 0);
	a.status = raw_finish(&m->q);
	memcpy(a.cause, raw_query(&m->q).cause, sizeof(a.cause));
	raw_is(raw_modify(&m->q, NPUEMU_QS_RESET), 0);
	raw_is(raw_modify(&m->q, NPUEMU_QS_READY), 0);
	sys_nap(2);
	while (raw_poll(&m->cq, &cqe))
		;
	return a;
}

/* The id, which she has named herself, is not a difference. */
static void without_id(char *cause)
{
	char *at = strstr(cause, "token id "), *end;

	sys_true(at, "\"%s\" names no token id", cause);
	at += strlen("token id ");
	for (end = at; isdigit((unsigned char)*end); end++)
		;
	memmove(at, end, strlen(end) + 1);
}

static void alike(const struct answer *a, const struct answer *b, const char *what)
{
	raw_status_is(__FILE__, __LINE__, a->status, NPUEMU_ST_REM_ACCESS_ABORT);
	raw_status_is(__FILE__, __LINE__, b->status, NPUEMU_ST_REM_ACCESS_ABORT);
	sys_true(a->cause[0] && !strcmp(a->cause, b->cause), "%s: \"%s\" and \"%s\"", what,
		 a->cause, b->cause);
}

static void mallory_guesses(int fd, void *arg)
{
	struct answer wrong[2], other;
	struct raw_seg *right = arg, t;
	struct busy m;

	raw_become(MALLORY);
	raw_open(&m.r, 0);
	raw_bo_make(&m.r, &m.bo, 64 * KIB);
	raw_cq_make(&m.r, &m.cq, 64);
	raw_q_make(&m.r, &m.q, &m.cq, 0, RAW_UDMA, 64);
	for (int write = 0; write < 2; write++) {
		t = right[0];
		t.token_value ^= 1;
		wrong[write] = ask(&m, &t, write);
		/* close is as far off as anything */
		for (uint32_t bit = 1; bit < 32; bit++) {
			t.token_value = right[0].token_value ^ 1u << bit;
			other = ask(&m, &t, write);
			alike(&wrong[write], &other, "another wrong token");
		}
		/* nor is it told what the segment would grant, or how large it is */
		t = right[1];
		t.token_value ^= 1;
		other = ask(&m, &t, write);
		without_id(other.cause);
		t = right[0];
		t.token_value ^= 1;
		wrong[write] = ask(&m, &t, write);
		without_id(wrong[write].cause);
		alike(&wrong[write], &other, "one that may only be read");
		for (int i = 0; i < 2; i++) {
			/* an index that nobody has; an older or later life of this one */
			t.token_id = right[0].token_id ^ (i ? 1u << 12 : 2048);
			other = ask(&m, &t, write);
			without_id(other.cause);
			alike(&wrong[write], &other, i ? "another life" : "no such index");
		}
		t.token_id = right[0].token_id;
		wrong[write] = ask(&m, &t, write);
	}
	/* the very same id, before and after it is taken away, right token or not */
	sys_go(fd);
	sys_wait_go(fd);
	for (int write = 0; write < 2; write++) {
		other = ask(&m, &right[0], write);
		alike(&wrong[write], &other, "one that is gone");
		t = right[0];
		t.token_value ^= 1;
		other = ask(&m, &t, write);
		alike(&wrong[write], &other, "a wrong token of one that is gone");
	}
	/* with the right token it is said what is wrong */
	other = ask(&m, &right[1], true);
	sys_true(strstr(other.cause, "does not grant"), "\"%s\"", other.cause);
}

static void same_words(void **state)
{
	struct raw_child a, m;
	struct raw_seg s[2];

	(void)state;
	raw_fork(&a, alice_offers, NULL);
	sys_get(a.fd, s, sizeof(s));
	raw_fork(&m, mallory_guesses, s);
	sys_wait_go(m.fd);
	sys_go(a.fd);
	sys_wait_go(a.fd);
	sys_go(m.fd);
	raw_join(&m);
	sys_go(a.fd);
	raw_join(&a);
}

/* ---- Causes, and what threads wait for ------------------------------------------------ */

struct target {
	uint32_t slot;
	char cause[NPUEMU_CAUSE_LEN];
};

/* A queue that stopped with an address in its cause, and a thread asleep in WAIT. */
static void alice_waits(int fd, void *unused)
{
	struct target t = { 0 };
	struct raw_cq idle;
	struct sleeper s;
	struct busy b;

	(void)unused;
	raw_become(ALICE);
	/* whether her thread sleeps is read in /proc, which a change of user has closed */
	raw_is(raw_sys(prctl(PR_SET_DUMPABLE, 1)), 0);
	busy_open(&b, 0);
	raw_cq_make(&b.r, &idle, 64);
	raw_post_copy(&b.q, b.bo.p, (void *)0x7654321000, 64);
	raw_completes(&b.q, NPUEMU_ST_LOC_ACCESS);
	t.slot = b.r.q.slot;
	memcpy(t.cause, raw_query(&b.q).cause, sizeof(t.cause));
	sys_true(strstr(t.cause, "0x7654321000"), "\"%s\" names no address", t.cause);
	sleeper_start(&s, &b.r, &idle, 10 * SYS_PATIENCE_MS);
	sys_put(fd, &t, sizeof(t));
	sys_wait_go(fd);
	_exit(0);
}

static bool all_zero(const char *p, size_t n)
{
	while (n && !p[n - 1])
		n--;
	return !n;
}

/* Both lists, from one node; there is nothing or all of it. */
static void look_from(int fd, const struct target *t, bool sees, const char *who)
{
	struct npuemu_ioc_queue_query q[4];
	struct npuemu_ioc_list l = {
		.list = (uintptr_t)q, .nr = 4, .slot = t->slot,
	};
	static struct npuemu_ioc_process p[SLOTS];
	struct npuemu_ioc_list pl = { .list = (uintptr_t)p, .nr = SLOTS };
	uint32_t i;

	memset(q, 0x55, sizeof(q));
	raw_is(raw_ioctl(fd, NPUEMU_IOC_QUEUES, &l), 0);
	sys_eq(l.total, 1);
	sys_eq(q[0].state, NPUEMU_QS_ERROR);
	memset(p, 0x55, sizeof(p));
	raw_is(raw_ioctl(fd, NPUEMU_IOC_PROCESSES, &pl), 0);
	for (i = 0; i < pl.total && p[i].slot != t->slot; i++)
		;
	sys_true(i < pl.total, "%s: slot %u is not in the list", who, t->slot);
	sys_eq(p[i].queues, 1);
	if (sees) {
		sys_true(!strcmp(q[0].cause, t->cause), "%s: \"%.96s\", not \"%s\"", who,
			 q[0].cause, t->cause);
		sys_true(strstr(p[i].waits, "CQ "), "%s: waits \"%.96s\"", who, p[i].waits);
	} else {
		sys_true(all_zero(q[0].cause, sizeof(q[0].cause)), "%s sees \"%.96s\"", who,
			 q[0].cause);
		sys_true(all_zero(p[i].waits, sizeof(p[i].waits)), "%s sees \"%.96s\"", who,
			 p[i].waits);
	}
}

static void look(const struct target *t, bool sees, const char *who)
{
	int ctl = raw_ctl(), node = raw_node(0);

	look_from(ctl, t, sees, who);
	look_from(node, t, sees, who);
	close(ctl);
	close(node);
}

/* CAP_SYS_ADMIN, of all that the thread may have, or all but that. */
static void only_admin(bool admin)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];

	raw_is(raw_sys(syscall(SYS_capget, &h, d)), 0);
	if (admin) {
		memset(d, 0, sizeof(d));
		d[0].permitted = d[0].effective = 1u << CAP_SYS_ADMIN;
	} else {
		d[0].permitted &= ~(1u << CAP_SYS_ADMIN);
		d[0].effective &= ~(1u << CAP_SYS_ADMIN);
	}
	raw_is(raw_sys(syscall(SYS_capset, &h, d)), 0);
}

static void as_alice(int fd, void *arg)
{
	(void)fd;
	raw_become(ALICE);
	look(arg, true, "Alice herself");
}

static void as_mallory(int fd, void *arg)
{
	(void)fd;
	raw_become(MALLORY);
	look(arg, false, "Mallory");
}

/* All capabilities, in a user namespace of her own. */
static void as_mallory_in_a_namespace(int fd, void *arg)
{
	(void)fd;
	raw_become(MALLORY);
	if (unshare(CLONE_NEWUSER)) {
		print_message("no user namespaces here: %s\n", strerror(errno));
		return;
	}
	only_admin(true);
	look(arg, false, "Mallory in her namespace");
}

static void as_mallory_admin(int fd, void *arg)
{
	(void)fd;
	raw_is(raw_sys(prctl(PR_SET_KEEPCAPS, 1)), 0);
	raw_become(MALLORY);
	only_admin(true);
	look(arg, true, "Mallory as administrator");
}

static void as_root(int fd, void *arg)
{
	(void)fd;
	look(arg, true, "root");
}

static void as_root_without(int fd, void *arg)
{
	(void)fd;
	only_admin(false);
	look(arg, false, "root without CAP_SYS_ADMIN");
}

static void addresses(void **state)
{
	static const raw_child_fn who[] = {
		as_alice, as_mallory, as_mallory_in_a_namespace, as_mallory_admin, as_root,
		as_root_without,
	};
	struct raw_child a, c;
	struct target t;

	(void)state;
	raw_fork(&a, alice_waits, NULL);
	sys_get(a.fd, &t, sizeof(t));
	for (unsigned int i = 0; i < sizeof(who) / sizeof(who[0]); i++) {
		raw_fork(&c, who[i], &t);
		raw_join(&c);
	}
	sys_go(a.fd);
	raw_join(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(same_words),
		raw_test(addresses),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
