// SPDX-License-Identifier: MIT
/*
 * The kernel host as a whole: finding the devices, opening and closing, fork,
 * its table.  npuemu.c holds its lock while it opens and closes, so what is
 * static here needs none.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "kernel.h"

#define SPIN_NS		20000ll		/* a sleep costs about as much */
#define CONTEXTS	32u

static struct npuemu_kernel *opened[CONTEXTS];	/* observers too */

/* ---- The driver's answers ------------------------------------------------------- */

int npuemu_k_ioctl(int fd, unsigned long nr, void *arg)
{
	int rc;

	do {
		rc = ioctl(fd, nr, arg);
	} while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : 0;
}

int npuemu_k_check(struct npuemu *ctx)
{
	struct npuemu_kernel *k = npuemu_kernel_of(ctx);

	if (likely(!k->records || !READ_ONCE(*npuemu_k_record(k, 0, NPUEMU_REC_BROKEN))))
		return 0;
	WRITE_ONCE(ctx->broken, -EUCLEAN);
	return -EUCLEAN;
}

static const char *reason(int err)
{
	switch (err) {
	case -ENODEV:
		return "the device was unplugged, or reset under this process: close the board, and open it again";
	case -ENOMEM:
		return "the kernel has no memory for it";
	case -ENOTTY:
	case -E2BIG:
		return "the module is older than this library: load the one that belongs to it";
	default:
		return strerror(-err);
	}
}

int npuemu_k_failed(struct npuemu *ctx, int err, const char *fmt, ...)
{
	char what[256];
	va_list ap;

	if (err == -ENODEV && npuemu_k_check(ctx))
		return npuemu_fail(-EUCLEAN, "the board was reset, or its device unplugged: close it, and open it again");
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return npuemu_fail(err, "%s: %s", what, reason(err));
}

/* ---- The nodes ------------------------------------------------------------------- */

static const char *node_dir(void)
{
	const char *dir = npuemu_getenv("NPUEMU_DEV");

	return dir ? dir : "/dev";
}

static int node_open(const char *name, int flags)
{
	char path[512];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", node_dir(), name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int device_open(u32 device)
{
	char name[32];

	snprintf(name, sizeof(name), "npuemu%u", device);
	return node_open(name, O_RDWR);
}

static int node_failed(int err, const char *name)
{
	switch (err) {
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		return npuemu_fail(-ENODEV, "there is no %s/%s: load the module (npuemu-ctl load, or modprobe npuemu), or run in a VM that has it (npuemu-vm -- COMMAND)",
				   node_dir(), name);
	case -EACCES:
	case -EPERM:
		return npuemu_fail(-EACCES, "%s/%s: permission denied: be in the group the udev rule 70-npuemu.rules gives it (render), or root",
				   node_dir(), name);
	case -ENOSPC:
		return npuemu_fail(err, "%s/%s: all process slots of the board are taken: npuemu-smi shows by whom",
				   node_dir(), name);
	case -EUSERS:
		return npuemu_fail(err, "%s/%s: this user has half of the board's process slots, and only CAP_SYS_RESOURCE may have more: npuemu-smi shows whose they are",
				   node_dir(), name);
	default:
		return npuemu_fail(err, "cannot open %s/%s: %s", node_dir(), name, strerror(-err));
	}
}

int npuemu_k_open_ctl(void)
{
	int fd = node_open("npuemu-ctl", O_RDWR);

	if (fd == -EACCES)
		fd = node_open("npuemu-ctl", O_RDONLY);	/* enough to look */
	return fd < 0 ? node_failed(fd, "npuemu-ctl") : fd;
}

/* The first device that opens; which, and else why none did. */
static int first_device(u32 *device)
{
	int err = -ENOENT, fd;
	u32 i;

	for (i = 0; i < NPUEMU_MAX_DEVICES; i++) {
		fd = device_open(i);
		*device = i;
		if (fd >= 0)
			return fd;
		/* of several reasons the first that is not mere absence */
		if (err == -ENOENT || err == -ENODEV || err == -ENXIO)
			err = fd;
	}
	*device = 0;
	return err;
}

bool npuemu_kernel_present(void)
{
	char path[512];
	u32 i;

	for (i = 0; i < NPUEMU_MAX_DEVICES; i++) {
		if (snprintf(path, sizeof(path), "%s/npuemu%u", node_dir(), i) >= (int)sizeof(path))
			return false;
		if (!faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS))
			return true;
		if (errno == EACCES)
			npuemu_log(NPUEMU_LOG_INFO, "%s: permission denied", path);
		else if (!i)
			break;	/* no module: do not look for 64 nodes at every open */
	}
	return false;
}

static int join(struct npuemu_kernel *k, u32 device)
{
	struct npuemu_ioc_join a = { .fd = k->home };
	char name[32];
	int fd = device_open(device), err;

	snprintf(name, sizeof(name), "npuemu%u", device);
	if (fd == -ENOENT || fd == -ENODEV || fd == -ENXIO)
		return npuemu_k_failed(&k->base, -ENODEV, "device %u (%s/%s)", device, node_dir(),
				       name);
	if (fd < 0)
		return node_failed(fd, name);
	err = npuemu_k_ioctl(fd, NPUEMU_IOC_JOIN, &a);
	if (err) {
		close(fd);
		return npuemu_k_failed(&k->base, err, "cannot join device %u to the others",
				       device);
	}
	smp_store_release(&k->fd[device], fd);
	return fd;
}

int npuemu_k_device(struct npuemu_kernel *k, u32 device)
{
	int fd = smp_load_acquire(&k->fd[device]);

	if (likely(fd >= 0))
		return fd;
	pthread_mutex_lock(&k->lock);
	fd = k->fd[device];
	if (fd < 0)
		fd = join(k, device);
	pthread_mutex_unlock(&k->lock);
	return fd;
}

/* ---- fork ------------------------------------------------------------------------- */

/* The child has none of the mappings, and its copies of the files would keep the
 * parent's context alive after it.
 */
static void files_close(struct npuemu_kernel *k)
{
	u32 i;

	for (i = 0; i < NPUEMU_MAX_DEVICES; i++) {
		if (k->fd[i] >= 0 && k->fd[i] != k->home)
			close(k->fd[i]);
		k->fd[i] = -1;
	}
	if (k->home >= 0)
		close(k->home);
	k->home = -1;
	if (k->exports_fd >= 0)
		close(k->exports_fd);
	k->exports_fd = -1;
}

static void after_fork(void)
{
	u32 i, q;

	for (i = 0; i < CONTEXTS; i++) {
		struct npuemu_kernel *k = opened[i];

		if (!k)
			continue;
		k->base.broken = -EPERM;
		files_close(k);
		/* full: the rings are not there to be posted to */
		for (q = 0; q < NPUEMU_CTX_QUEUES; q++)
			if (k->queues[q])
				k->queues[q]->view.depth = k->queues[q]->view.pi - k->queues[q]->view.ci;
		opened[i] = NULL;
	}
	npuemu_core_fork();
}

static void once(void)
{
	static int done;

	npuemu_log_init();
	if (!__atomic_exchange_n(&done, 1, __ATOMIC_ACQ_REL))
		pthread_atfork(NULL, NULL, after_fork);
}

/* ---- Opening and closing ------------------------------------------------------------ */

/* Is the machine asked for the one the module was loaded with? */
static int machine_check(const struct npuemu_open_attr *attr, const char *is)
{
	const char *want = attr->machine ? attr->machine : npuemu_getenv("NPUEMU_MACHINE");
	struct npuemu_machine m;
	int err;

	if (!want || attr->flags & NPUEMU_OPEN_OBSERVE || !strcmp(want, is))
		return 0;
	err = npuemu_machine_load(want, &m);
	if (err)
		return err;
	if (!strcmp(m.name, is))
		return 0;
	return npuemu_fail(-EBUSY, "the module was loaded with machine \"%s\", not \"%s\": leave NPUEMU_MACHINE unset, or npuemu-ctl unload and npuemu-ctl load --machine %s",
			   is, m.name, m.name);
}

static int windows_map(struct npuemu_kernel *k)
{
	const struct npuemu_ioc_query *a = &k->about;
	const struct {
		u64 off, bytes;
		u8 **at;
	} window[] = {
		{ a->ring_offset, a->ring_bytes, &k->rings },
		{ a->db_offset, a->db_bytes, &k->doorbells },
		{ a->rec_offset, a->rec_bytes, &k->records },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(window); i++) {
		/* the driver keeps its mappings from the children of a fork */
		void *p = mmap(NULL, window[i].bytes, PROT_READ | PROT_WRITE, MAP_SHARED, k->home,
			       (off_t)window[i].off);

		if (p == MAP_FAILED)
			return npuemu_fail(-ENOMEM, "cannot map %llu MiB of rings, doorbells or records: %s (ulimit -v?)",
					   (unsigned long long)window[i].bytes >> 20, strerror(errno));
		*window[i].at = p;
	}
	return 0;
}

/* Open a node and hear what it is. */
static int attach(struct npuemu_kernel *k, const struct npuemu_open_attr *attr)
{
	u32 device = 0;
	char name[32];
	int err;

	k->home = k->base.observer ? npuemu_k_open_ctl() : first_device(&device);
	if (k->home < 0 && k->base.observer)
		return k->home;
	snprintf(name, sizeof(name), "npuemu%u", device);
	if (k->home < 0)
		return node_failed(k->home, name);
	err = npuemu_k_ioctl(k->home, NPUEMU_IOC_QUERY, &k->about);
	if (err)
		return npuemu_k_failed(&k->base, err, "%s/%s is no npuemu device, or of another version",
				       node_dir(), k->base.observer ? "npuemu-ctl" : name);
	if (k->about.version != NPUEMU_UAPI_VERSION || !k->about.devices ||
	    k->about.devices > NPUEMU_MAX_DEVICES)
		return npuemu_fail(-ENODEV, "the module speaks version %u of the interface, this library %u: load the module that belongs to it",
				   k->about.version, NPUEMU_UAPI_VERSION);
	if (!k->base.observer)
		k->fd[device] = k->home;
	k->about.machine[sizeof(k->about.machine) - 1] = '\0';
	k->about.soc[sizeof(k->about.soc) - 1] = '\0';
	err = machine_check(attr, k->about.machine);
	return err || k->base.observer ? err : windows_map(k);
}

static void settings(struct npuemu_kernel *k)
{
	k->async = npuemu_env_number("NPUEMU_ASYNC", 0);
	k->help_every = npuemu_k_help_every();
	k->hang_report_ns = npuemu_env_number("NPUEMU_HANG_REPORT", 10) * 1000000000;
	/* alone on one CPU, spinning only keeps the engine from it */
	k->spin_ns = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? SPIN_NS : 0;
	if (npuemu_env_number("NPUEMU_CHAOS", 0))
		npuemu_log(NPUEMU_LOG_WARN, "NPUEMU_CHAOS does nothing here: chaos is a parameter of the module (npuemu-ctl load --param chaos=SEED)");
}

static struct npuemu_kernel *context_new(bool observer)
{
	struct npuemu_kernel *k = calloc(1, sizeof(*k));
	u32 i;

	if (!k)
		return NULL;
	k->home = -1;
	k->exports_fd = -1;
	for (i = 0; i < NPUEMU_MAX_DEVICES; i++)
		k->fd[i] = -1;
	pthread_mutex_init(&k->lock, NULL);
	k->base.host = &npuemu_kernel_host;
	k->base.pid = getpid();
	k->base.refs = 1;
	k->base.observer = observer;
	return k;
}

static void context_free(struct npuemu_kernel *k)
{
	npuemu_k_places_unmap(k);
	npuemu_k_exports_close(k);
	if (k->rings)
		munmap(k->rings, k->about.ring_bytes);
	if (k->doorbells)
		munmap(k->doorbells, k->about.db_bytes);
	if (k->records)
		munmap(k->records, k->about.rec_bytes);
	files_close(k);
	pthread_mutex_destroy(&k->lock);
	free(k->places);
	free(k);
}

/* This process's context, if it has a sound one; and a free entry. */
static struct npuemu_kernel *context_there(u32 *entry)
{
	struct npuemu_kernel *there = NULL;
	u32 i;

	*entry = CONTEXTS;
	for (i = 0; i < CONTEXTS; i++) {
		if (!opened[i])
			*entry = i;
		else if (!opened[i]->base.observer && !npuemu_k_check(&opened[i]->base))
			there = opened[i];
	}
	return there;
}

static int kernel_open(const struct npuemu_open_attr *attr, struct npuemu **out)
{
	bool observer = attr->flags & NPUEMU_OPEN_OBSERVE;
	struct npuemu_kernel *k;
	u32 entry;
	int err;

	once();
	k = context_there(&entry);
	if (k && !observer) {
		err = machine_check(attr, k->base.machine);
		if (!err) {
			npuemu_fetch_add(&k->base.refs, 1);
			*out = &k->base;
		}
		return err;
	}
	if (entry == CONTEXTS)
		return npuemu_fail(-EMFILE, "this process has %u boards open, the most it can",
				   CONTEXTS);
	k = context_new(observer);
	if (!k)
		return npuemu_fail(-ENOMEM, "out of memory");
	settings(k);
	err = attach(k, attr);
	if (err) {
		context_free(k);
		return err;
	}
	snprintf(k->base.board, sizeof(k->base.board), "kernel");
	snprintf(k->base.machine, sizeof(k->base.machine), "%s", k->about.machine);
	k->base.devices = k->about.devices;
	opened[entry] = k;
	*out = &k->base;
	return 0;
}

static int kernel_close(struct npuemu *ctx)
{
	struct npuemu_kernel *k = npuemu_kernel_of(ctx);
	u32 i;

	if (npuemu_fetch_add(&ctx->refs, -1u) > 1)
		return 0;
	npuemu_k_queues_drop(k);
	for (i = 0; i < CONTEXTS; i++)
		if (opened[i] == k)
			opened[i] = NULL;
	/* the rest goes with the files */
	context_free(k);
	return 0;
}

int npuemu_k_query(struct npuemu *ctx, struct npuemu_info *info)
{
	struct npuemu_kernel *k = npuemu_kernel_of(ctx);
	struct npuemu_ioc_query a = { 0 };
	int err = npuemu_k_ioctl(k->home, NPUEMU_IOC_QUERY, &a);

	if (err)
		return npuemu_k_failed(ctx, err, "cannot look at the board");
	info->devices = a.devices;
	info->servers = a.servers;
	info->pid_slot = a.slot;
	snprintf(info->host, sizeof(info->host), "kernel");
	snprintf(info->board, sizeof(info->board), "%s", ctx->board);
	snprintf(info->machine, sizeof(info->machine), "%s", k->about.machine);
	snprintf(info->soc, sizeof(info->soc), "%s", k->about.soc);
	info->has_udma = a.has_udma;
	info->generation = a.generation;
	info->budget_bytes = a.budget_bytes;
	info->backed_bytes = a.backed_bytes;
	return 0;
}

const struct npuemu_host npuemu_kernel_host = {
	.name = "kernel",
	.open = kernel_open,
	.close = kernel_close,
	.check = npuemu_k_check,
	.query = npuemu_k_query,
	.device_query = npuemu_k_device_query,
	.buf_alloc = npuemu_k_buf_alloc,
	.buf_free = npuemu_k_buf_free,
	.buf_export = npuemu_k_buf_export,
	.buf_import = npuemu_k_buf_import,
	.buf_map = npuemu_k_buf_map,
	.buf_unmap = npuemu_k_buf_unmap,
	.exports_own = npuemu_k_exports_own,
	.exports_of = npuemu_k_exports_of,
	.buf_close = npuemu_k_buf_close,
	.alias = npuemu_k_alias,
	.mem_register = npuemu_k_mem_register,
	.mem_unregister = npuemu_k_mem_unregister,
	.mem_any = npuemu_k_mem_any,
	.seg_register = npuemu_k_seg_register,
	.seg_rotate = npuemu_k_seg_rotate,
	.seg_unregister = npuemu_k_seg_unregister,
	.cq_create = npuemu_k_cq_create,
	.cq_destroy = npuemu_k_cq_destroy,
	.rq_create = npuemu_k_rq_create,
	.rq_destroy = npuemu_k_rq_destroy,
	.rq_query = npuemu_k_rq_query,
	.queue_create = npuemu_k_queue_create,
	.queue_destroy = npuemu_k_queue_destroy,
	.queue_modify = npuemu_k_queue_modify,
	.queue_map = npuemu_k_queue_map,
	.queue_query = npuemu_k_queue_query,
	.doorbell = npuemu_k_doorbell,
	.help = npuemu_k_help,
	.unstarve = npuemu_k_unstarve,
	.wait_cq = npuemu_k_wait_cq,
	.wait_word = npuemu_k_wait_word,
	.queue_by_id = npuemu_k_queue_by_id,
	.link_query = npuemu_k_link_query,
	.process_list = npuemu_k_process_list,
	.queue_list = npuemu_k_queue_list,
	.fault_inject = npuemu_k_fault_inject,
	.fault_clear = npuemu_k_fault_clear,
	.reap = npuemu_k_reap,
	.board_reset = npuemu_k_board_reset,
};
