// SPDX-License-Identifier: MIT
/*
 * The checker (NPUEMU_CHECK): for each thing it finds a program that does it, which is
 * reported with the right buffer, task and function; and right programs, among them
 * other tests, of which it says nothing.
 *
 * The programs are parts of this one, run as "test_acl_check --part NAME", with what
 * they write to stderr in a file.
 */
#include <acl/acl.h>
#include <acl/acl_rt_memory_soma.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "acltest.h"
#include "sys.h"

#define NOINLINE __attribute__((noinline, noclone))
/* The frame stays: no tail call. */
#define STAY() __asm__ volatile("" : : : "memory")

/* ---- The parts: programs -------------------------------------------------------------------- */

static void must(aclError got, aclError want, const char *what)
{
	const char *msg = aclGetRecentErrMsg();

	if (got == want)
		return;
	fprintf(stderr, "part: %s: %d, not %d: %s\n", what, got, want, msg ? msg : "");
	_exit(99);
}

#define ok(expr) must(expr, ACL_SUCCESS, #expr)
#define fails(expr, want) must(expr, want, #expr)

static void begin(void)
{
	ok(aclInit(NULL));
	ok(aclrtSetDevice(0));
}

static void end(void)
{
	ok(aclFinalize());
}

static NOINLINE void *make_device_buffer(size_t bytes)
{
	void *p = NULL;

	ok(aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	STAY();
	return p;
}

static NOINLINE void *make_pinned_buffer(size_t bytes)
{
	void *p = NULL;

	ok(aclrtMallocHost(&p, bytes));
	STAY();
	return p;
}

static NOINLINE void free_device_buffer(void *p)
{
	ok(aclrtFree(p));
	STAY();
}

static NOINLINE aclrtStream make_stream(void)
{
	aclrtStream s;

	ok(aclrtCreateStream(&s));
	STAY();
	return s;
}

static NOINLINE aclError submit_copy(void *dst, const void *src, size_t bytes, aclrtStream s)
{
	aclError ret = aclrtMemcpyAsync(dst, bytes, src, bytes, ACL_MEMCPY_DEFAULT, s);

	STAY();
	return ret;
}

/* A stream that waits until open_gate(). */
static aclrtStream gated_stream(void **gate)
{
	aclrtStream s = make_stream();

	*gate = make_device_buffer(8);
	ok(aclrtMemset(*gate, 8, 0, 8));
	ok(aclrtValueWait(*gate, 1, ACL_STREAM_WAIT_VALUE_EQ, s));
	return s;
}

static void open_gate(void *gate)
{
	uint64_t one = 1;

	ok(aclrtMemcpy(gate, 8, &one, 8, ACL_MEMCPY_HOST_TO_DEVICE));
}

static void read_in_order(void *arg)
{
	if (*(volatile unsigned char *)arg != 0x5a)
		_exit(98);
}

static int right(void)
{
	unsigned char *pinned, back[100], *device, *other;
	aclrtStream s;
	aclrtEvent e;
	aclrtNotify n;
	aclrtContext c;
	aclrtEventRecordedStatus status;
	void *gate;
	int i;

	begin();
	device = make_device_buffer(100);
	other = make_device_buffer(8192);
	pinned = make_pinned_buffer(100);
	s = make_stream();
	ok(aclrtCreateEventExWithFlag(&e, ACL_EVENT_SYNC));
	ok(aclrtCreateNotify(&n, 0));
	ok(aclrtMemset(device, 100, 0x5a, 100));
	ok(aclrtMemcpy(back, 100, device, 100, ACL_MEMCPY_DEVICE_TO_HOST));
	/* by stream, event, query, and a function in the stream's order */
	ok(submit_copy(pinned, device, 100, s));
	ok(aclrtSynchronizeStream(s));
	read_in_order(pinned);
	pinned[1] = 7;
	ok(submit_copy(pinned, device, 100, s));
	ok(aclrtRecordEvent(e, s));
	ok(aclrtSynchronizeEvent(e));
	read_in_order(pinned + 1);
	ok(submit_copy(pinned, device, 50, s));
	/* not written */
	pinned[60] = 3;
	ok(aclrtRecordEvent(e, s));
	do
		ok(aclrtQueryEventStatus(e, &status));
	while (status != ACL_EVENT_RECORDED_STATUS_COMPLETE);
	read_in_order(pinned);
	for (i = 0; i < 20; i++) {
		ok(submit_copy(pinned, device, 100, s));
		ok(aclrtLaunchHostFunc(s, read_in_order, pinned));
	}
	ok(aclrtRecordNotify(n, s));
	ok(aclrtWaitAndResetNotify(n, s, 0));
	/* freed when a wait says that it is done */
	ok(submit_copy(other, device, 100, s));
	ok(aclrtSynchronizeDevice());
	free_device_buffer(other);
	ok(aclrtDestroyStream(s));
	s = gated_stream(&gate);
	ok(submit_copy(device + 64, pinned, 36, s));
	open_gate(gate);
	ok(aclrtDestroyStream(s));
	free_device_buffer(gate);
	free_device_buffer(device);
	ok(aclrtFreeHost(pinned));
	ok(aclrtDestroyEvent(e));
	ok(aclrtDestroyNotify(n));
	ok(aclrtCreateContext(&c, 1));
	ok(aclrtDestroyContext(c));
	ok(aclrtResetDevice(0));
	end();
	return 0;
}

static void *worker(void *arg)
{
	unsigned char *pinned, *device;
	aclrtStream s;
	int i;

	ok(aclrtSetDevice((int)(intptr_t)arg % 2));
	s = make_stream();
	pinned = make_pinned_buffer(20000);
	for (i = 0; i < 40; i++) {
		device = make_device_buffer((size_t)(64 + 300 * i));
		ok(aclrtMemsetAsync(device, 64, i, 64, s));
		ok(submit_copy(pinned + i * 64, device, 64, s));
		ok(aclrtSynchronizeStream(s));
		if (pinned[i * 64] != i || pinned[i * 64 + 63] != i)
			_exit(97);
		free_device_buffer(device);
	}
	ok(aclrtFreeHost(pinned));
	ok(aclrtDestroyStream(s));
	return NULL;
}

static int right_threads(void)
{
	pthread_t t[4];
	intptr_t i;

	begin();
	for (i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, worker, (void *)i))
			_exit(96);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	end();
	return 0;
}

static int pool(void)
{
	aclrtMemPoolProps props = {
		.allocType = ACL_MEM_ALLOCATION_TYPE_PINNED, .handleType = ACL_MEM_HANDLE_TYPE_NONE,
		.location = { .type = ACL_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
	};
	aclrtStream s;
	aclrtMemPool p;
	void *block;

	begin();
	s = make_stream();
	ok(aclrtMemPoolCreate(&p, &props));
	ok(aclrtMemPoolMallocAsync(&block, 1000, p, s));
	ok(aclrtMemsetAsync(block, 1000, 1, 1000, s));
	ok(aclrtMemPoolFreeAsync(block, s));
	ok(aclrtSynchronizeStream(s));
	ok(aclrtMemPoolDestroy(p));
	ok(aclrtDestroyStream(s));
	end();
	return 0;
}

static NOINLINE void overrun(void *p, size_t bytes)
{
	char host[256] = { 0 };

	fails(aclrtMemcpy(p, sizeof(host), host, bytes, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
	STAY();
}

static int out_of_bounds(void)
{
	void *p;

	begin();
	p = make_device_buffer(64);
	overrun(p, 96);
	free_device_buffer(p);
	end();
	return 7;
}

static int outside(void)
{
	unsigned char *p;

	begin();
	p = make_device_buffer(64);
	if (aclrtMemset(p + 4096, 16, 0, 16) == ACL_SUCCESS)
		_exit(95);
	free_device_buffer(p);
	end();
	return 0;
}

static NOINLINE void use_again(unsigned char *p)
{
	if (aclrtMemset(p + 8, 16, 0, 16) == ACL_SUCCESS)
		_exit(95);
	STAY();
}

static int after_free(void)
{
	unsigned char *p;
	void *other;

	begin();
	p = make_device_buffer(64);
	free_device_buffer(p);
	/* of the same size, and elsewhere */
	other = make_device_buffer(64);
	use_again(p);
	free_device_buffer(other);
	end();
	return 0;
}

static int double_free(void)
{
	void *p;

	begin();
	p = make_device_buffer(64);
	free_device_buffer(p);
	fails(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
	end();
	return 0;
}

static int freed_while_queued(void)
{
	void *p, *q, *gate;
	aclrtStream s;

	begin();
	s = gated_stream(&gate);
	p = make_device_buffer(64);
	q = make_device_buffer(64);
	ok(submit_copy(p, q, 48, s));
	free_device_buffer(p);
	open_gate(gate);
	if (aclrtSynchronizeStream(s) == ACL_SUCCESS)
		_exit(95);
	ok(aclrtDestroyStream(s));
	free_device_buffer(q);
	free_device_buffer(gate);
	end();
	return 0;
}

static int pinned_freed_while_queued(void)
{
	void *p, *q, *gate;
	aclrtStream s;

	begin();
	s = gated_stream(&gate);
	p = make_pinned_buffer(64);
	q = make_device_buffer(64);
	ok(submit_copy(q, p, 64, s));
	ok(aclrtFreeHost(p));
	ok(aclrtStreamAbort(s));
	ok(aclrtDestroyStream(s));
	free_device_buffer(q);
	free_device_buffer(gate);
	end();
	return 0;
}

/* A recorded task names memory that has gone when it runs. */
static int task_after_free(void)
{
	aclmdlRI model;
	aclrtStream s;
	void *p;

	begin();
	s = make_stream();
	p = make_device_buffer(64);
	ok(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
	ok(aclrtMemsetAsync(p, 64, 1, 64, s));
	ok(aclmdlRICaptureEnd(s, &model));
	free_device_buffer(p);
	ok(aclmdlRIExecuteAsync(model, s));
	if (aclrtSynchronizeStream(s) == ACL_SUCCESS)
		_exit(95);
	ok(aclmdlRIDestroy(model));
	ok(aclrtDestroyStream(s));
	end();
	return 0;
}

static NOINLINE void leave_things(void)
{
	aclrtContext c;
	aclrtEvent e;
	aclrtNotify n;

	make_stream();
	make_device_buffer(123);
	make_pinned_buffer(321);
	ok(aclrtCreateEvent(&e));
	ok(aclrtCreateNotify(&n, 0));
	ok(aclrtCreateContext(&c, 0));
	STAY();
}

static int leaks(void)
{
	begin();
	leave_things();
	end();
	return 0;
}

static NOINLINE int peek(volatile unsigned char *p)
{
	return p[3];
}

static NOINLINE void poke(volatile unsigned char *p)
{
	p[3] = 1;
}

static int host_read(void)
{
	unsigned char *p;

	begin();
	p = make_device_buffer(64);
	ok(aclrtMemset(p, 64, 9, 64));
	ok(aclrtMemsetAsync(p, 64, 9, 64, NULL));
	ok(aclrtSynchronizeStream(NULL));
	if (peek(p) != 9)
		_exit(94);
	free_device_buffer(p);
	end();
	return 0;
}

static int host_write_freed(void)
{
	unsigned char *p;

	begin();
	p = make_device_buffer(64);
	free_device_buffer(p);
	poke(p);
	end();
	return 0;
}

static int too_early(void)
{
	unsigned char *p, *pinned;
	aclrtStream s;
	void *gate;

	begin();
	s = gated_stream(&gate);
	p = make_device_buffer(64);
	pinned = make_pinned_buffer(64);
	ok(submit_copy(pinned, p, 64, s));
	peek(pinned);
	open_gate(gate);
	ok(aclrtSynchronizeStream(s));
	peek(pinned);
	ok(aclrtDestroyStream(s));
	ok(aclrtFreeHost(pinned));
	free_device_buffer(p);
	free_device_buffer(gate);
	end();
	return 0;
}

/* The copy is long done, and nobody has asked. */
static int by_chance(void)
{
	static const struct timespec while_it_runs = { .tv_nsec = 300000000 };
	unsigned char *p, *pinned;
	aclrtStream s;

	begin();
	s = make_stream();
	p = make_device_buffer(9000);
	pinned = make_pinned_buffer(9000);
	ok(submit_copy(pinned, p, 9000, s));
	nanosleep(&while_it_runs, NULL);
	peek(pinned + 4096);
	ok(aclrtSynchronizeStream(s));
	ok(aclrtDestroyStream(s));
	ok(aclrtFreeHost(pinned));
	free_device_buffer(p);
	end();
	return 0;
}

static int other_fault(void)
{
	begin();
	poke((unsigned char *)16);
	return 0;
}

static const struct part {
	const char *name;
	int (*fn)(void);
} parts[] = {
	{ "right", right }, { "right_threads", right_threads }, { "pool", pool }, { "out_of_bounds", out_of_bounds },
	{ "outside", outside }, { "after_free", after_free }, { "double_free", double_free },
	{ "freed_while_queued", freed_while_queued }, { "pinned_freed_while_queued", pinned_freed_while_queued },
	{ "task_after_free", task_after_free }, { "leaks", leaks }, { "host_read", host_read },
	{ "host_write_freed", host_write_freed }, { "too_early", too_early }, { "by_chance", by_chance },
	{ "other_fault", other_fault },
};

static int run_part(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(parts[i].name, name))
			return parts[i].fn();
	fprintf(stderr, "there is no part %s\n", name);
	return 100;
}

/* ---- Running them ------------------------------------------------------------------------------ */

static char said[1 << 20];

/* Its status; what it wrote to stderr is in @said. */
static int run(const char *file, const char *part, const char *check)
{
	char path[] = "/tmp/npuemu-check-XXXXXX";
	int fd = mkstemp(path), status;
	ssize_t n;
	pid_t pid;

	sys_true(fd >= 0, "mkstemp");
	unlink(path);
	pid = fork();
	sys_true(pid >= 0, "fork");
	if (!pid) {
		dup2(fd, 2);
		if (!part)
			dup2(fd, 1);
		if (check)
			setenv("NPUEMU_CHECK", check, 1);
		else
			unsetenv("NPUEMU_CHECK");
		if (part)
			execl(file, file, "--part", part, NULL);
		else
			execl(file, file, NULL);
		_exit(101);
	}
	sys_true(waitpid(pid, &status, 0) == pid, "waitpid");
	n = pread(fd, said, sizeof(said) - 1, 0);
	close(fd);
	said[n > 0 ? n : 0] = 0;
	return status;
}

static void run_self(const char *part, const char *check, int want)
{
	int status = run("/proc/self/exe", part, check);

	sys_true(WIFEXITED(status) && WEXITSTATUS(status) == want, "%s with NPUEMU_CHECK=%s: status %#x:\n%s", part,
		 check ? check : "", (unsigned int)status, said);
}

static void run_to_death(const char *part, const char *check, int sig)
{
	int status = run("/proc/self/exe", part, check);
	bool died = WIFSIGNALED(status) && WTERMSIG(status) == sig;

	/* a sanitizer's handler makes an exit of it */
	if (sys_slow() && sig == SIGSEGV)
		died |= WIFEXITED(status) && WEXITSTATUS(status);
	sys_true(died, "%s: status %#x, not signal %d:\n%s", part, (unsigned int)status, sig, said);
}

static void says(const char *word)
{
	sys_true(strstr(said, word), "nothing about \"%s\" in:\n%s", word, said);
}

/* @word comes, and @then after it. */
static void says_then(const char *word, const char *then)
{
	const char *at = strstr(said, word);

	sys_true(at && strstr(at, then), "nothing about \"%s\", and \"%s\" then, in:\n%s", word, then, said);
}

static void findings(unsigned int n)
{
	char text[64];

	if (!n) {
		sys_true(!strstr(said, "check"), "something was reported:\n%s", said);
		return;
	}
	snprintf(text, sizeof(text), "check: %u finding%s;", n, n == 1 ? "" : "s");
	says(text);
}

/* ---- The tests --------------------------------------------------------------------------------- */

static void right_programs(void **state)
{
	static const char *const list[] = { "right", "right_threads", "pool" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		run_self(list[i], "1", 0);
		findings(0);
		run_self(list[i], "abort", 0);
		findings(0);
	}
}

/* Beside this program; those that are right from end to end. */
static void right_tests(void **state)
{
	static const char *const list[] = { "callbacks", "capture", "device", "limits", "streamcfg" };
	char self[512], file[600];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t i, ran = 0;

	(void)state;
	sys_true(n > 0, "readlink");
	self[n] = 0;
	sys_true(strrchr(self, '/'), "%s", self);
	*strrchr(self, '/') = 0;
	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		int status;

		snprintf(file, sizeof(file), "%s/test_acl_%s", self, list[i]);
		/* in a VM is what its list names */
		if (sys_kernel() && access(file, F_OK))
			continue;
		ran++;
		status = run(file, NULL, "1");
		sys_true(WIFEXITED(status) && !WEXITSTATUS(status), "%s: status %#x:\n%s", file, (unsigned int)status, said);
		sys_true(!strstr(said, "check "), "%s: something was reported:\n%s", file, said);
	}
	sys_true(ran, "none of them is beside %s", self);
}

static void bounds(void **state)
{
	(void)state;
	/* the exit code is the program's */
	run_self("out_of_bounds", "1", 7);
	findings(1);
	says("aclrtMemcpy: out of bounds: the target, 96 bytes from ");
	says("overruns the device buffer of 64 bytes at ");
	says(", device 0 by 32 bytes");
	says_then("allocated at", "make_device_buffer+");
	says_then("called at", "overrun+");
	says("out_of_bounds+");
	run_to_death("out_of_bounds", "abort", SIGABRT);
	says("overruns");
	run_self("out_of_bounds", NULL, 7);
	findings(0);
	run_self("out_of_bounds", "0", 7);
	findings(0);
	run_self("outside", "1", 0);
	findings(1);
	says("aclrtMemset: out of bounds: the target, 16 bytes from ");
	says("that is 4032 bytes behind the end of the device buffer of 64 bytes");
	says_then("allocated at", "make_device_buffer+");
	says_then("called at", "outside+");
}

static void freed(void **state)
{
	(void)state;
	run_self("after_free", "1", 0);
	findings(1);
	says("aclrtMemset: use after free: the target, 16 bytes from ");
	says("8 bytes into the device buffer of 64 bytes");
	says_then("allocated at", "make_device_buffer+");
	says_then("freed at", "free_device_buffer+");
	says_then("called at", "use_again+");
	run_self("double_free", "1", 0);
	findings(1);
	says("aclrtFree: double free");
	says_then("freed at", "free_device_buffer+");
	says_then("called at", "double_free+");
}

static void queued(void **state)
{
	(void)state;
	run_self("freed_while_queued", "1", 0);
	findings(1);
	says("aclrtFree: freed while in use: a task that is queued uses the device buffer of 64 bytes");
	says_then("called at", "free_device_buffer+");
	says_then("called at", "freed_while_queued+");
	says_then("allocated at", "make_device_buffer+");
	says("of device 0, task 2: copy of 48 bytes from ");
	says_then("submitted at", "submit_copy+");
	run_self("pinned_freed_while_queued", "1", 0);
	findings(1);
	says("aclrtFreeHost: freed while in use: a task that is queued uses the pinned host memory of 64 bytes");
	says_then("allocated at", "make_pinned_buffer+");
	says("task 2: copy of 64 bytes from ");
	run_self("task_after_free", "1", 0);
	findings(1);
	says("a task: use after free: the target, 64 bytes");
	says("fill of 64 bytes at ");
	says_then("freed at", "free_device_buffer+");
}

static void leaked(void **state)
{
	(void)state;
	run_self("leaks", "1", 0);
	findings(6);
	says_then("aclFinalize: stream ", "make_stream+");
	says_then("aclFinalize: the device buffer of 123 bytes", "make_device_buffer+");
	says_then("aclFinalize: the pinned host memory of 321 bytes", "make_pinned_buffer+");
	says_then("aclFinalize: event ", "leave_things+");
	says_then("aclFinalize: notify ", "leave_things+");
	says_then("aclFinalize: context ", "leave_things+");
	says("was never destroyed (aclrtDestroyStream)");
	says("was never freed (aclrtFreeHost)");
}

static void own_accesses(void **state)
{
	(void)state;
	run_to_death("host_read", "1", SIGSEGV);
	says("host read of device memory: ");
	says("3 bytes into the device buffer of 64 bytes");
	says_then("access at", "peek+");
	says_then("access at", "host_read+");
	says_then("allocated at", "make_device_buffer+");
	says("fill of 64 bytes at ");
	run_self("host_read", "warn", 0);
	findings(1);
	says("host read of device memory: ");
	run_self("host_read", NULL, 0);
	findings(0);
	run_to_death("host_write_freed", "1", SIGSEGV);
	says("host write of device memory: ");
	says("which was freed");
	says_then("freed at", "free_device_buffer+");
	run_to_death("host_read", "abort", SIGABRT);
	/* not ours */
	run_to_death("other_fault", "1", SIGSEGV);
	sys_true(!strstr(said, "check "), "something was reported:\n%s", said);
}

static void not_synchronised(void **state)
{
	(void)state;
	run_self("too_early", "1", 0);
	findings(1);
	says("host read of ");
	says("where a copy that was not synchronised writes");
	says_then("access at", "peek+");
	says_then("access at", "too_early+");
	says_then("allocated at", "make_pinned_buffer+");
	says("task 2: copy of 64 bytes from ");
	says_then("submitted at", "submit_copy+");
	run_self("by_chance", "1", 0);
	findings(1);
	says("has written by chance in time");
	says("copy of 9000 bytes");
	run_self("by_chance", NULL, 0);
	findings(0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		sys_test(right_programs), sys_test(right_tests), sys_test(bounds), sys_test(freed), sys_test(queued),
		sys_test(leaked), sys_test(own_accesses), sys_test(not_synchronised),
	};

	if (argc == 3 && !strcmp(argv[1], "--part"))
		return run_part(argv[2]);
	sys_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
