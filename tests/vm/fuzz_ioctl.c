// SPDX-License-Identifier: MIT
/*
 * Fuzzes the driver: every ioctl, mappings, descriptors, forks, and rings that are
 * rewritten while they are executed.  Several processes, each with two threads, do
 * so against each other; now and then one of them is killed.
 *
 * It judges only what it can see itself: a call that does not return, a worker that
 * dies of something it should not, an operation that never works.  The kernel log and
 * the driver's leak counters are judged by who runs it (tests/vm/guest).
 *
 * Usage: fuzz_ioctl [--seed N] [--seconds S] [--calls N] [--procs N] [--no-reset]
 *		     [--unplug] [--verbose]
 *
 * It ends after S seconds (60) or N calls, whichever comes first.  --unplug takes the
 * devices away one after the other at the end.  NPUEMU_FUZZ holds more options.
 * Exit code 0 when all went well.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "fuzz.h"

#define HANG_MS		120000		/* a call that takes longer hangs */
#define KILL_MS		10000		/* so often one of them is killed */

__thread sigjmp_buf fz_escape;
__thread volatile bool fz_guarded;

static struct {
	u64 seed;
	u64 seconds;
	u64 calls;
	u32 procs;
	bool no_reset;
	bool unplug;
	bool verbose;
} opt = { .seed = 1, .seconds = 60, .calls = ~0ull, .procs = 4 };

static struct fz_shared *shared;
static const struct fz_op *all_ops[FZ_OPS];
static u32 nops, all_weight;

u64 fz_ms(void)
{
	struct timespec t;

	/* coarse: a call into the kernel on every look would be a third of all */
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (u64)t.tv_sec * 1000 + (u64)t.tv_nsec / 1000000;
}

u64 fz_number(struct fz *z)
{
	static const u64 edges[] = {
		0, 1, 2, 63, 64, 4095, 4096, 4097, 65535, 65536, 1 << 20, 0x7fffffff, 0x80000000,
		0xffffffff, 0x100000000ull, 1ull << 40, 1ull << 47, 0x7fffffffffffffffull,
		0x8000000000000000ull, 0xfffffffffffff000ull, ~0ull,
	};

	switch (fz_below(z, 4)) {
	case 0:
		return fz_next(&z->rng);
	case 1:
		return 1ull << fz_below(z, 64);
	case 2:
		return fz_below(z, 100);
	default:
		return edges[fz_below(z, sizeof(edges) / sizeof(edges[0]))] - fz_one_in(z, 4);
	}
}

void fz_begin(struct fz *z, u32 cmd, const void *arg, size_t bytes)
{
	struct fz_proc *me = z->me;

	WRITE_ONCE(me->cmd, cmd);
	if (bytes)
		memcpy(me->arg, arg, bytes < sizeof(me->arg) ? bytes : sizeof(me->arg));
	WRITE_ONCE(me->since, fz_ms());
	WRITE_ONCE(me->calls, me->calls + 1);
}

/* ---- A worker ------------------------------------------------------------ */

static int node_open(const char *name, u32 number)
{
	char path[64];

	if (number == ~0u)
		snprintf(path, sizeof(path), "/dev/npuemu-%s", name);
	else
		snprintf(path, sizeof(path), "/dev/npuemu%u", number);
	return open(path, O_RDWR | O_CLOEXEC);
}

void fz_close_all(struct fz *z)
{
	u32 i;

	pthread_mutex_lock(&z->lock);
	z->rig.up = false;
	pthread_mutex_unlock(&z->lock);
	while (z->nfd)
		close(z->fd[--z->nfd]);
	for (i = 0; i < z->buf.n; i++)
		close((int)z->buf.thing[i].id);
	for (i = 0; i < z->event.n; i++)
		close((int)z->event.thing[i].id);
	/* what was mapped through them, last */
	for (i = 0; i < z->map.n; i++)
		munmap((void *)z->map.thing[i].at, z->map.thing[i].len);
	fz_rig_down(z);
	z->bo.n = 0;
	z->cq.n = 0;
	z->rq.n = 0;
	z->queue.n = 0;
	z->seg.n = 0;
	z->place.n = 0;
	z->buf.n = 0;
	z->event.n = 0;
	z->map.n = 0;
}

/* One device, and some more that join it.  False: not one can be opened. */
bool fz_open_all(struct fz *z)
{
	u32 want = 1 + fz_below(z, FZ_FILES), first, i;
	struct npuemu_ioc_join join;

	z->lost = 0;
	first = fz_below(z, z->about.devices);
	for (i = 0; i < z->about.devices && z->nfd < want; i++) {
		u32 d = (first + i) % z->about.devices;
		int fd = node_open("", d);

		if (fd < 0)
			continue;
		join.fd = z->fd[0];
		join.pad = 0;
		if (z->nfd && fz_plain(z, fd, NPUEMU_IOC_JOIN, &join)) {
			close(fd);
			continue;
		}
		z->dev[z->nfd] = d;
		z->fd[z->nfd++] = fd;
	}
	if (!z->nfd || fz_plain(z, z->fd[0], NPUEMU_IOC_QUERY, &z->about))
		return false;
	fz_rig_up(z);
	return true;
}

static void on_fault(int sig)
{
	if (fz_guarded)
		siglongjmp(fz_escape, 1);
	signal(sig, SIG_DFL);	/* ours: die of it */
	raise(sig);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* Calls that sleep are interrupted all the time. */
static void signals(void)
{
	struct sigaction sa = { .sa_handler = on_fault };
	struct itimerval every = { { 0, 50000 }, { 0, 50000 } };

	sa.sa_flags = SA_NODEFER;
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	sa.sa_handler = on_alarm;
	sa.sa_flags = 0;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void second_thread(struct fz *z)
{
	sigset_t all, old;
	pthread_t t;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&t, NULL, fz_second_thread, z))
		_exit(4);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static const struct fz_op *pick(struct fz *z, u32 *index)
{
	u32 at = fz_below(z, all_weight), i;

	for (i = 0; at >= all_ops[i]->weight; i++)
		at -= all_ops[i]->weight;
	*index = i;
	return all_ops[i];
}

static void *pages(u32 bytes, int prot)
{
	void *p = mmap(NULL, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(4);
	return p;
}

static void worker(u32 index, u64 generation)
{
	static struct fz z = { .lock = PTHREAD_MUTEX_INITIALIZER };
	const struct fz_op *op;
	u64 begin;
	u32 i, n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	z.shared = shared;
	z.me = &shared->proc[index];
	z.index = index;
	z.generation = generation;
	z.rng = opt.seed * 1000003 + index * 7919 + generation * 104729;
	z.ctl = node_open("ctl", ~0u);
	z.file = memfd_create("fuzz", MFD_CLOEXEC);
	z.about.devices = 1;
	if (z.ctl < 0 || fz_plain(&z, z.ctl, NPUEMU_IOC_QUERY, &z.about))
		_exit(4);
	if (ftruncate(z.file, 4096))
		_exit(4);
	z.arg = pages(8192, PROT_READ | PROT_WRITE);
	mprotect(z.arg + 4096, 4096, PROT_NONE);
	z.readonly = pages(4096, PROT_READ);
	z.room = fz_alone(FZ_ROOM + 2 * FZ_BYTES);
	z.rig.host = z.room + FZ_ROOM;
	signals();
	fz_open_all(&z);
	second_thread(&z);
	while (!READ_ONCE(shared->stop)) {
		op = pick(&z, &i);
		WRITE_ONCE(z.me->op, i);
		if (!z.nfd)		/* everything was unplugged, or just now reset */
			fz_open_all(&z);
		begin = fz_ms();
		for (n = 1 + fz_below(&z, op->times); n; n--) {
			z.me->done[i]++;
			if (!op->fn(&z))
				z.me->good[i]++;
		}
		z.me->took[i] += fz_ms() - begin;
		/* lost its devices, or spoiled what its queues work on */
		if (z.lost > 64 || z.rig.broken > 24) {
			fz_close_all(&z);
			fz_open_all(&z);
		}
	}
	WRITE_ONCE(z.me->op, FZ_OPS);
	WRITE_ONCE(z.me->since, fz_ms());
	_exit(0);	/* with all it has: the kernel closes it */
}

/* ---- The parent ---------------------------------------------------------- */

static bool spawn(u32 i)
{
	struct fz_proc *p = &shared->proc[i];
	int pid;

	p->since = fz_ms();
	p->op = FZ_OPS;
	fflush(stdout);
	pid = fork();
	if (!pid)
		worker(i, p->generation);
	p->generation++;
	p->pid = pid;
	return pid > 0;
}

static u64 sum(size_t field)
{
	u64 n = 0;
	u32 i;

	for (i = 0; i < FZ_PROCS; i++)
		n += *(const volatile u64 *)((const char *)&shared->proc[i] + field);
	return n;
}

#define SUM(field)	sum(offsetof(struct fz_proc, field))

static const char *op_name(u32 op)
{
	return op < nops ? all_ops[op]->name : "start or end";
}

static void show_file(const char *what, const char *path)
{
	char buf[4096];
	ssize_t n;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return;
	n = read(fd, buf, sizeof(buf));
	if (n > 0)
		printf("fuzz: %s:\n%.*s\n", what, (int)n, buf);
	close(fd);
}

static void sysrq(char key)
{
	int fd = open("/proc/sysrq-trigger", O_WRONLY);

	if (fd < 0)
		return;
	if (write(fd, &key, 1) != 1)
		printf("fuzz: no sysrq %c\n", key);
	close(fd);
}

/* Everything that helps: which call it is, where it hangs. */
static void tell_hang(u32 i, u64 ms)
{
	const struct fz_proc *p = &shared->proc[i];
	char path[64];
	u32 k;

	printf("fuzz: hang: worker %u (pid %d) is in \"%s\" for %llu ms; ioctl %#x, argument:", i,
	       p->pid, op_name(p->op), (unsigned long long)ms, p->cmd);
	for (k = 0; k < sizeof(p->arg); k++)
		printf("%s%02x", k % 4 ? "" : " ", p->arg[k]);
	printf("\n");
	snprintf(path, sizeof(path), "/proc/%d/stack", p->pid);
	show_file("its stack", path);
	fflush(stdout);
	sysrq('w');
	sysrq('t');
}

static bool hung(void)
{
	u64 now = fz_ms(), since;
	u32 i;

	for (i = 0; i < opt.procs; i++) {
		since = READ_ONCE(shared->proc[i].since);
		if (shared->proc[i].pid && now > since && now - since > HANG_MS) {
			tell_hang(i, now - since);
			return true;
		}
	}
	return false;
}

/* Workers that were killed; on a slow machine one dies after the next was. */
static bool victims[FZ_PROCS];

/* Bury the dead, replace them; true: one died that should not have. */
static bool bury(void)
{
	bool bad = false;
	int pid, status;
	u32 i;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (i = 0; i < opt.procs && shared->proc[i].pid != pid; i++)
			;
		if (i == opt.procs)
			continue;
		shared->proc[i].pid = 0;
		if (WIFEXITED(status) && !WEXITSTATUS(status) && shared->stop)
			continue;
		if (!victims[i] || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
			printf("fuzz: worker %u (pid %d) died in \"%s\" (ioctl %#x): %s %d\n", i, pid,
			       op_name(shared->proc[i].op), shared->proc[i].cmd,
			       WIFSIGNALED(status) ? "signal" : "exit code",
			       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
			bad = true;
		}
		victims[i] = false;
		if (!shared->stop && !spawn(i))
			bad = true;
	}
	return bad;
}

static void progress(u64 begin, u32 kills)
{
	u64 ms = fz_ms() - begin + 1, calls = SUM(calls), wqes = SUM(wqes);

	printf("fuzz: %llu s: %llu calls, %llu WQEs (%llu a second), %llu stores, %u kills\n",
	       (unsigned long long)ms / 1000, (unsigned long long)calls, (unsigned long long)wqes,
	       (unsigned long long)((calls + wqes) * 1000 / ms), (unsigned long long)SUM(stores),
	       kills);
	fflush(stdout);
}

static bool summary(void)
{
	bool bad = false;
	u32 i;

	for (i = 0; i < nops; i++) {
		u64 done = SUM(done[i]), good = SUM(good[i]);

		if (opt.verbose)
			printf("fuzz: %-28s %9llu, %9llu good, %7llu ms\n", all_ops[i]->name,
			       (unsigned long long)done, (unsigned long long)good,
			       (unsigned long long)SUM(took[i]));
		if (done > 500 && !good && !all_ops[i]->hard) {
			printf("fuzz: \"%s\" never worked in %llu tries: this fuzzes nothing\n",
			       all_ops[i]->name, (unsigned long long)done);
			bad = true;
		}
	}
	return bad;
}

static bool unplug(void)
{
	struct npuemu_ioc_query about = { 0 };
	struct npuemu_ioc_device_ctl a = { 0 };
	int ctl = node_open("ctl", ~0u);
	bool bad = ctl < 0 || ioctl(ctl, NPUEMU_IOC_QUERY, &about) < 0;

	for (a.device = 0; !bad && a.device < about.devices; a.device++) {
		if (ioctl(ctl, NPUEMU_IOC_DEVICE_UNPLUG, &a) < 0) {
			printf("fuzz: cannot unplug device %u: %s\n", a.device, strerror(errno));
			bad = true;
		}
		usleep(300000);
	}
	close(ctl);
	return bad;
}

static bool drive(void)
{
	u64 begin = fz_ms(), told = begin, killed = begin, rng = opt.seed;
	bool bad = false;
	u32 i, kills = 0;

	while (fz_ms() - begin < opt.seconds * 1000 && SUM(calls) + SUM(wqes) < opt.calls) {
		usleep(100000);
		bad |= bury();
		if (hung())
			return true;
		if (fz_ms() - told >= 10000) {
			told = fz_ms();
			progress(begin, kills);
		}
		if (fz_ms() - killed >= KILL_MS) {
			killed = fz_ms();
			i = (u32)(fz_next(&rng) % opt.procs);
			if (shared->proc[i].pid > 0) {
				victims[i] = true;
				kill(shared->proc[i].pid, SIGKILL);
				kills++;
			}
		}
	}
	if (opt.unplug)
		bad |= unplug();
	shared->stop = true;
	for (i = 0; i < opt.procs;) {
		bad |= bury();
		if (hung())
			return true;
		for (i = 0; i < opt.procs && !shared->proc[i].pid; i++)
			;
		usleep(20000);
	}
	progress(begin, kills);
	/* tests/run looks for it */
	printf("note: fuzz: %llu calls and WQEs in %llu s\n",
	       (unsigned long long)(SUM(calls) + SUM(wqes)),
	       (unsigned long long)(fz_ms() - begin) / 1000);
	return summary() || bad;
}

static void add_ops(const struct fz_op *op)
{
	for (; op->name; op++) {
		all_ops[nops++] = op;
		all_weight += op->weight;
	}
}

static const struct option options[] = {
	{ "seed", required_argument, NULL, 's' },
	{ "seconds", required_argument, NULL, 't' },
	{ "calls", required_argument, NULL, 'n' },
	{ "procs", required_argument, NULL, 'p' },
	{ "no-reset", no_argument, NULL, 'r' },
	{ "unplug", no_argument, NULL, 'u' },
	{ "verbose", no_argument, NULL, 'v' },
	{ NULL, 0, NULL, 0 }
};

static bool parse(int argc, char **argv)
{
	char *end = NULL;
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		u64 v = optarg ? strtoull(optarg, &end, 0) : 0;

		if (optarg && (*end || !*optarg))
			return false;
		switch (c) {
		case 's':
			opt.seed = v;
			break;
		case 't':
			opt.seconds = v;
			break;
		case 'n':
			opt.calls = v;
			break;
		case 'p':
			opt.procs = v && v <= FZ_PROCS ? (u32)v : FZ_PROCS;
			break;
		case 'r':
			opt.no_reset = true;
			break;
		case 'u':
			opt.unplug = true;
			break;
		case 'v':
			opt.verbose = true;
			break;
		default:
			return false;
		}
		optarg = NULL;
	}
	return optind == argc;
}

/* Options from the environment, for who can pass no others. */
static bool parse_environment(char *name)
{
	char *env = getenv("NPUEMU_FUZZ"), *argv[32] = { name }, *copy;
	int argc = 1;

	if (!env)
		return true;
	copy = strdup(env);
	if (!copy)
		return false;
	for (copy = strtok(copy, " "); copy && argc < 31; copy = strtok(NULL, " "))
		argv[argc++] = copy;
	return parse(argc, argv);
}

int main(int argc, char **argv)
{
	struct rlimit core = { 0, 0 };
	bool bad;
	u32 i;

	if (!parse_environment(argv[0]) || !parse(argc, argv)) {
		fprintf(stderr, "usage: fuzz_ioctl [--seed N] [--seconds S] [--calls N] [--procs N] [--no-reset] [--unplug] [--verbose]\n");
		return 2;
	}
	setrlimit(RLIMIT_CORE, &core);
	add_ops(fz_call_ops);
	add_ops(fz_object_ops);
	add_ops(fz_map_ops);
	add_ops(fz_ring_ops);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		return 4;
	shared->no_reset = opt.no_reset;
	if (node_open("ctl", ~0u) < 0) {
		fprintf(stderr, "fuzz: cannot open /dev/npuemu-ctl: %s: is the module loaded, and are you root?\n",
			strerror(errno));
		return 4;
	}
	printf("fuzz: seed %llu, %u processes\n", (unsigned long long)opt.seed, opt.procs);
	for (i = 0; i < opt.procs; i++)
		if (!spawn(i))
			return 4;
	bad = drive();
	printf("fuzz: %s\n", bad ? "failed" : "done");
	return bad;
}
