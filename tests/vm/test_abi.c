// SPDX-License-Identifier: MIT
/*
 * The ioctl interface as such: numbers and directions that are none, structs that
 * are shorter or longer than the driver's, pointers to nowhere, the wrong kind of
 * node, the right to disturb, ids that are gone.
 */
#include <signal.h>
#include <sys/wait.h>

#include "calls.h"

static unsigned int fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static unsigned long with_size(unsigned long cmd, unsigned int size)
{
	return (cmd & ~((unsigned long)_IOC_SIZEMASK << _IOC_SIZESHIFT)) |
	       (unsigned long)size << _IOC_SIZESHIFT;
}

static bool known(unsigned int nr)
{
	/* the two without a fixture of their own, and those not for everyday use */
	return (nr < COUNT(calls) && calls[nr].name) || nr == _IOC_NR(NPUEMU_IOC_JOIN) ||
	       nr == _IOC_NR(NPUEMU_IOC_FAULT_CLEAR) ||
	       nr == _IOC_NR(NPUEMU_IOC_DEVICE_UNPLUG);
}

static void unknown(void **state)
{
	uint64_t arg[ARG_MAX / 8] = { 0 };

	(void)state;
	fixture_make();
	for (unsigned int nr = 0; nr < 256; nr++) {
		if (known(nr))
			continue;
		for (unsigned int dir = 0; dir < 4; dir++) {
			unsigned long cmd = _IOC(dir, NPUEMU_IOC_MAGIC, nr, 16);

			raw_is(raw_ioctl(f.r.fd, cmd, arg), -ENOTTY);
			raw_is(raw_ioctl(f.ctl, cmd, arg), -ENOTTY);
		}
	}
	for_calls(c) {
		for (unsigned int dir = 0; dir < 3; dir++)
			is(c, "other direction",
			   raw_ioctl(fd_for(c), _IOC(dir, NPUEMU_IOC_MAGIC, _IOC_NR(c->cmd),
						     _IOC_SIZE(c->cmd)), arg), -ENOTTY);
		is(c, "other magic",
		   raw_ioctl(fd_for(c), _IOC(3, NPUEMU_IOC_MAGIC + 1, _IOC_NR(c->cmd),
					     _IOC_SIZE(c->cmd)), arg), -ENOTTY);
	}
	/* what every tty, block device and socket knows */
	raw_is(raw_ioctl(f.r.fd, 0x5401, arg), -ENOTTY);
	raw_is(raw_ioctl(f.r.fd, 0x1260, arg), -ENOTTY);
	fixture_drop();
}

static void wrong_node(void **state)
{
	uint64_t arg[ARG_MAX / 8];
	void *p;

	(void)state;
	fixture_make();
	for_calls(c) {
		if (c->on & DAMAGES)
			memset(arg, 0, sizeof(arg));
		else
			prepare(c, arg);
		if (!(c->on & DEV))
			is(c, "on a device", raw_ioctl(f.r.fd, c->cmd, arg), -ENOTTY);
		else if (!(c->on & CTL))
			is(c, "on npuemu-ctl", raw_ioctl(f.ctl, c->cmd, arg), -ENOTTY);
		else
			is(c, "on npuemu-ctl", raw_ioctl(f.ctl, c->cmd, arg), 0);
	}
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_FAULT_CLEAR, NULL), -ENOTTY);
	raw_is(raw_ioctl(f.r.fd, NPUEMU_IOC_DEVICE_UNPLUG, arg), -ENOTTY);
	raw_is(raw_ioctl(f.ctl, NPUEMU_IOC_JOIN, arg), -ENOTTY);
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, f.ctl, 0);
	sys_true(p == MAP_FAILED && errno == ENODEV, "mmap of npuemu-ctl: %s", strerror(errno));
	fixture_drop();
}

/* ---- Sizes ------------------------------------------------------------------------- */

static int call_with(const struct call *c, unsigned int size, void *arg)
{
	return raw_ioctl(fd_for(c), with_size(c->cmd, size), arg);
}

/* Longer: only zeros may follow what the driver knows. */
static void longer_by(const struct call *c, unsigned int more)
{
	static unsigned char big[_IOC_SIZEMASK + 1] __attribute__((aligned(8)));
	unsigned int size = _IOC_SIZE(c->cmd) + more;

	if (size > _IOC_SIZEMASK)
		size = _IOC_SIZEMASK;
	memset(big, 0, sizeof(big));
	prepare(c, big);
	big[size - 1] = 1;
	is(c, "more, not zero", call_with(c, size, big), -E2BIG);
	big[size - 1] = 0;
	big[_IOC_SIZE(c->cmd)] = 0x80;
	is(c, "more, not zero", call_with(c, size, big), -E2BIG);
	big[_IOC_SIZE(c->cmd)] = 0;
	if (c->on & DAMAGES)
		return;
	is(c, "more, zeros", call_with(c, size, big), 0);
	undo(c, big);
}

static void longer(void **state)
{
	static const unsigned int more[] = { 1, 4, 8, 100, 4096, 16383 };

	(void)state;
	fixture_make();
	for_calls(c)
		for (unsigned int i = 0; i < COUNT(more); i++)
			longer_by(c, more[i]);
	fixture_drop();
}

/*
 * Shorter: what is missing is 0, and nothing beyond the end is written.  Every
 * length is tried; those that cut nothing but out fields must work.
 */
static void shorter(void **state)
{
	unsigned char arg[ARG_MAX], guard[ARG_MAX];
	unsigned int size, in;
	int rc;

	(void)state;
	for_calls(c) {
		if (c->on & DAMAGES)
			continue;
		for (size = 0; size < _IOC_SIZE(c->cmd); size += size < 8 ? 1 : 4) {
			fixture_make();
			prepare(c, arg);
			for (in = c->out[1] ? c->out[0] : _IOC_SIZE(c->cmd); in; in--)
				if (arg[in - 1])
					break;
			memset(arg + size, POISON, sizeof(arg) - size);
			memcpy(guard, arg, sizeof(arg));
			rc = call_with(c, size, arg);
			if (size >= in)
				is(c, "only out fields are missing", rc, 0);
			if (memcmp(arg + size, guard + size, sizeof(arg) - size))
				sys_fail(__FILE__, __LINE__, "%s: writes beyond %u bytes", c->name,
					 size);
			if (!rc && c->cmd == NPUEMU_IOC_BO_EXPORT)
				/* told or not, it is this process's */
				for (int fd = f.dmabuf + 1; fd < f.dmabuf + 20; fd++)
					close(fd);
			if (!rc && !(c->on & DEV))
				raw_is(raw_ioctl(f.ctl, NPUEMU_IOC_FAULT_CLEAR, NULL), 0);
			fixture_drop();
		}
	}
}

/* ---- 32 bit ------------------------------------------------------------------------- */

#ifdef __x86_64__
/* As a 32-bit program calls it: the structs are the same there. */
static long call32(long nr, long a, long b, void *c)
{
	long ret;

	asm volatile("int $0x80" : "=a"(ret) : "0"(nr), "b"(a), "c"(b), "d"(c)
		     : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

/* SIGSEGV where the kernel has no 32-bit system calls. */
static bool has_32bit(void)
{
	pid_t pid = fork();
	int status = 0;

	sys_true(pid >= 0, "fork");
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		_exit(call32(20, 0, 0, NULL) != getpid());
	}
	raw_is(raw_sys(waitpid(pid, &status, 0)), pid);
	return !status;
}

static void from_32bit(void **state)
{
	unsigned char *page;

	(void)state;
	if (!has_32bit())
		raw_skip("this kernel has no 32-bit system calls");
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT,
		    -1, 0);
	sys_true(page != MAP_FAILED, "mmap: %s", strerror(errno));
	fixture_make();
	for_calls(c) {
		if (c->on & DAMAGES)
			continue;
		prepare(c, page);
		is(c, "32 bit", call32(54, fd_for(c), (long)c->cmd, page), 0);
		undo(c, page);
		is(c, "32 bit, NULL", call32(54, fd_for(c), (long)c->cmd, NULL), -EFAULT);
	}
	fixture_drop();
	munmap(page, 4096);
}
#endif

/* ---- Pointers ------------------------------------------------------------------------- */

static void pointers(void **state)
{
	unsigned char *pages = mmap(NULL, 12288, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int size, left;

	(void)state;
	sys_true(pages != MAP_FAILED, "mmap");
	munmap(pages + 4096, 4096);
	fixture_make();
	for_calls(c) {
		size = _IOC_SIZE(c->cmd);
		is(c, "NULL", raw_ioctl(fd_for(c), c->cmd, NULL), -EFAULT);
		is(c, "1", raw_ioctl(fd_for(c), c->cmd, (void *)1), -EFAULT);
		is(c, "hole", raw_ioctl(fd_for(c), c->cmd, pages + 4096), -EFAULT);
		is(c, "kernel", raw_ioctl(fd_for(c), c->cmd, (void *)0xffff888000100000), -EFAULT);
		is(c, "kernel", raw_ioctl(fd_for(c), c->cmd, (void *)0xffffffff81000000), -EFAULT);
		is(c, "top", raw_ioctl(fd_for(c), c->cmd, (void *)-8l), -EFAULT);
		is(c, "non-canonical", raw_ioctl(fd_for(c), c->cmd, (void *)(1ul << 62)), -EFAULT);
		/* runs into the hole, at its start and at its end */
		for (left = 1; left < size; left += 7)
			is(c, "end missing", raw_ioctl(fd_for(c), c->cmd, pages + 4096 - left),
			   -EFAULT);
		is(c, "start missing", raw_ioctl(fd_for(c), c->cmd, pages + 8192 - 1), -EFAULT);
	}
	fixture_drop();
	munmap(pages, 4096);
	munmap(pages + 8192, 4096);
}

/* Readable, but the answer cannot be written: nothing is left that nobody knows of. */
static void read_only(void **state)
{
	unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int before;

	(void)state;
	sys_true(page != MAP_FAILED, "mmap");
	for_calls(c) {
		if (c->on & DAMAGES)
			continue;
		fixture_make();
		before = fds();
		prepare(c, page);
		mprotect(page, 4096, PROT_READ);
		is(c, "answer cannot be written", raw_ioctl(fd_for(c), c->cmd, page), -EFAULT);
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
		sys_true(fds() == before, "%s: a descriptor stayed", c->name);
		if (!(c->on & DEV))
			raw_is(raw_ioctl(f.ctl, NPUEMU_IOC_FAULT_CLEAR, NULL), 0);
		fixture_drop();
	}
	munmap(page, 4096);
}

/* ---- Rights ------------------------------------------------------------------------------ */

static void anybody(int fd, void *unused)
{
	struct npuemu_ioc_device_ctl d = { .device = 1 };
	struct npuemu_ioc_fault fault = { .device = NPUEMU_ANY };
	struct npuemu_ioc_device dev = { 0 };
	struct npuemu_ioc_query q = { 0 };
	int ctl;

	(void)fd;
	(void)unused;
	raw_become(1000);
	ctl = raw_ctl();
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_QUERY, &q), 0);
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_DEVICE, &dev), 0);
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_FAULT_INJECT, &fault), -EPERM);
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_FAULT_CLEAR, NULL), -EPERM);
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_DEVICE_RESET, &d), -EPERM);
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_DEVICE_UNPLUG, &d), -EPERM);
	/* before the argument is looked at */
	raw_is(raw_ioctl(ctl, NPUEMU_IOC_DEVICE_RESET, NULL), -EPERM);
}

static void not_admin(void **state)
{
	struct raw_child c;

	(void)state;
	raw_fork(&c, anybody, NULL);
	raw_join(&c);
}

/* ---- Ids ----------------------------------------------------------------------------------- */

/* Made and destroyed over and over: an id that is gone stays gone. */
static void stale_ids(void **state)
{
	enum { N = 40 };
	static const struct {
		unsigned long make, destroy;
	} kinds[] = {
		{ NPUEMU_IOC_BO_CREATE, NPUEMU_IOC_BO_CLOSE },
		{ NPUEMU_IOC_SEG_CREATE, NPUEMU_IOC_SEG_DESTROY },
		{ NPUEMU_IOC_CQ_CREATE, NPUEMU_IOC_CQ_DESTROY },
		{ NPUEMU_IOC_RQ_CREATE, NPUEMU_IOC_RQ_DESTROY },
		{ NPUEMU_IOC_QUEUE_CREATE, NPUEMU_IOC_QUEUE_DESTROY },
	};
	uint64_t arg[ARG_MAX / 8], d[2] = { 0 };
	uint32_t ids[N];

	(void)state;
	fixture_make();
	for (unsigned int k = 0; k < COUNT(kinds); k++) {
		const struct call *c = &calls[_IOC_NR(kinds[k].make)];

		for (int i = 0; i < N; i++) {
			prepare(c, arg);
			is(c, "again", raw_ioctl(f.r.fd, c->cmd, arg), 0);
			memcpy(&ids[i], (char *)arg + c->out[0], 4);
			for (int j = 0; j < i; j++)
				sys_true(ids[j] != ids[i], "%s: id %#x is used again after %d",
					 c->name, ids[i], i - j);
			memcpy(d, &ids[i], 4);
			is(c, "destroy", raw_ioctl(f.r.fd, kinds[k].destroy, d), 0);
			is(c, "destroy again", raw_ioctl(f.r.fd, kinds[k].destroy, d), -ENOENT);
		}
		/* the old ones are not the new one */
		prepare(c, arg);
		is(c, "again", raw_ioctl(f.r.fd, c->cmd, arg), 0);
		for (int i = 0; i < N; i++) {
			memcpy(d, &ids[i], 4);
			is(c, "old id", raw_ioctl(f.r.fd, kinds[k].destroy, d), -ENOENT);
		}
		undo(c, arg);
	}
	fixture_drop();
}

/* An id of one kind, or of one context, is none of another. */
static void foreign_ids(void **state)
{
	uint64_t d[2] = { 0 };
	uint32_t queue, rq;

	(void)state;
	fixture_make();
	queue = f.q.id;
	rq = f.rq;
	memcpy(d, &queue, 4);
	raw_is(raw_ioctl(f.other.fd, NPUEMU_IOC_QUEUE_DESTROY, d), -ENOENT);
	raw_is(raw_ioctl(f.other.fd, NPUEMU_IOC_QUEUE_QUERY,
			 &(struct npuemu_ioc_queue_query){ .id = queue }), -ENOENT);
	raw_is(raw_ioctl(f.other.fd, NPUEMU_IOC_QUEUE_MODIFY,
			 &(struct npuemu_ioc_queue_modify){ .id = queue, .state = 3 }), -ENOENT);
	memcpy(d, &rq, 4);
	raw_is(raw_ioctl(f.other.fd, NPUEMU_IOC_RQ_DESTROY, d), -ENOENT);
	memcpy(d, &f.cq.handle, 4);
	raw_is(raw_ioctl(f.other.fd, NPUEMU_IOC_CQ_DESTROY, d), -ENOENT);
	memcpy(d, &f.seg.token_id, 4);
	raw_is(raw_ioctl(f.other.fd, NPUEMU_IOC_SEG_ROTATE, d), -ENOENT);
	raw_is(raw_ioctl(f.other.fd, NPUEMU_IOC_SEG_DESTROY, d), -ENOENT);
	raw_is(raw_va_unmap(&f.other, (uintptr_t)f.bo.p), -ENOENT);
	memcpy(d, &f.spare.handle, 4);
	/* handles are small numbers: the other's, if it has this one, is another buffer */
	raw_ioctl(f.other.fd, NPUEMU_IOC_BO_CLOSE, d);
	raw_is(raw_bo_close(&f.r, f.spare.handle), 0);
	/* all of this process's are as they were */
	sys_eq(raw_query(&f.q).state, NPUEMU_QS_READY);
	fixture_drop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		raw_test(unknown),
		raw_test(wrong_node),
		raw_test(longer),
		raw_test(shorter),
#ifdef __x86_64__
		raw_test(from_32bit),
#endif
		raw_test(pointers),
		raw_test(read_only),
		raw_test(not_admin),
		raw_test(stale_ids),
		raw_test(foreign_ids),
	};

	raw_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
