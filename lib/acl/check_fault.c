// SPDX-License-Identifier: MIT
/*
 * The checker: accesses by the program's own code.
 *
 * What the program sees of device memory has no access rights; engines, and this library,
 * have a view of their own (lib/core/user/guard.c).  So nothing has to be opened for
 * them, and a protection key for each thread is not needed.  Pinned memory is closed
 * while a copy into it was not synchronised.  An access gives SIGSEGV, which is
 * reported here; other ones go to whoever handled them before.
 *
 * A system call that is given such an address fails with EFAULT instead.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include "check.h"

#define PAGE	4096ull

static struct sigaction before;
static __thread bool passing_on;	/* to the one before, which may pass it on to us */

static u64 pc_of(const ucontext_t *uc)
{
#if defined(__x86_64__)
	return (u64)uc->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return uc->uc_mcontext.pc;
#else
	(void)uc;
	return 0;
#endif
}

static bool is_write(const ucontext_t *uc)
{
#if defined(__x86_64__)
	return uc->uc_mcontext.gregs[REG_ERR] & 2;
#else
	(void)uc;
	return false;
#endif
}

/* What led to the access: without the frames of the handler. */
static void site_of(const ucontext_t *uc, struct npuacl_site *site)
{
	u64 pc = pc_of(uc);
	u32 i;

	npuacl_site_take(site);
	for (i = 0; i < site->n && (u64)(uintptr_t)site->pc[i] != pc; i++)
		;
	if (i < site->n) {
		site->n -= i;
		memmove(site->pc, site->pc + i, site->n * sizeof(site->pc[0]));
	} else {
		site->n = 1;
	}
	/* it is not an address to return to */
	site->pc[0] = (void *)(uintptr_t)(pc + 1);
}

/* The pages of a buffer, or the one of @va: the report was made, once will do. */
static void let_in(u64 va, struct npuacl_known *r)
{
	u64 from = r ? r->base & ~(PAGE - 1) : va & ~(PAGE - 1);
	u64 to = r ? (r->base + r->room + PAGE - 1) & ~(PAGE - 1) : from + PAGE;

	if (r)
		r->closed = false;
	mprotect((void *)(uintptr_t)from, to - from, PROT_READ | PROT_WRITE);
}

enum answer {
	NOT_OURS,
	RESUME,
	DIE,
};

static enum answer device_fault(u64 va, bool write, const struct npuacl_site *site)
{
	struct npuacl_known *r = npuacl_known_at(va), *was = NULL, *after;
	bool device;
	char text[192];

	npuemu_alias(npuacl.board, va, &device);
	if (!device || (r && r->kind != NPUACL_DEVICE && r->kind != NPUACL_MAPPED))
		return NOT_OURS;
	if (r && !r->closed)
		return RESUME;	/* another thread was first */
	if (!r)
		was = npuacl_known_freed(va);
	npuacl_report_begin("host %s of device memory: %#" PRIx64 " is %s%s", write ? "write" : "read", va,
			    r ? npuacl_known_text(r, va, text, sizeof(text)) :
			    was ? npuacl_known_text(was, va, text, sizeof(text)) : "in no live buffer",
			    was ? ", which was freed" : "");
	npuacl_report_site("access at", site);
	if (!r && !was)
		npuacl_known_around(va, &r, &after);
	if (r || was)
		npuacl_report_buffer(r ? r : was);
	if (r)
		npuacl_report_last_use(r->base, r->room);
	npuacl_report_line("the host reaches device memory by aclrtMemcpy only");
	npuacl_report_end();
	if (!npuacl_check_resume)
		return DIE;
	let_in(va, r && va - r->base < r->room ? r : NULL);
	return RESUME;
}

/* This thread holds no lock of ours when it runs the program's code; others may. */
static bool lock_soon(void)
{
	static const struct timespec ms = { .tv_nsec = 1000000 };
	u32 i;

	for (i = 0; i < 2000; i++) {
		if (!pthread_mutex_trylock(&npuacl_check_lock))
			return true;
		nanosleep(&ms, NULL);
	}
	return false;
}

static enum answer look(u64 va, const ucontext_t *uc)
{
	enum answer a = NOT_OURS;
	struct npuacl_site site;

	site_of(uc, &site);
	if (!lock_soon())
		return NOT_OURS;
	if (npuacl_pinned_fault(va, is_write(uc), &site))
		a = RESUME;
	else
		a = device_fault(va, is_write(uc), &site);
	pthread_mutex_unlock(&npuacl_check_lock);
	return a;
}

static bool pass_on(int sig, siginfo_t *info, void *context)
{
	bool own = before.sa_flags & SA_SIGINFO;

	if (passing_on || (!own && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)))
		return false;
	passing_on = true;
	if (own)
		before.sa_sigaction(sig, info, context);
	else
		before.sa_handler(sig);
	passing_on = false;
	return true;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	int err = errno;
	enum answer a = NOT_OURS;

	if (info->si_code == SEGV_ACCERR && npuacl_is_open())
		a = look((u64)(uintptr_t)info->si_addr, context);
	errno = err;
	if (a == RESUME)
		return;
	if (a == NOT_OURS && pass_on(sig, info, context))
		return;
	/* the access is tried again, and nobody is there */
	signal(SIGSEGV, SIG_DFL);
}

/* Again with each allocation: the program may have set a handler of its own meanwhile. */
void npuacl_fault_init(void)
{
	struct sigaction now = { .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct sigaction old;

	now.sa_sigaction = on_fault;
	sigemptyset(&now.sa_mask);
	if (sigaction(SIGSEGV, NULL, &old) ||
	    (old.sa_flags & SA_SIGINFO && old.sa_sigaction == on_fault))
		return;
	before = old;
	sigaction(SIGSEGV, &now, NULL);
}
