// SPDX-License-Identifier: MIT
/*
 * Doorbell pages and the thread that serves their faults.
 *
 * Each queue has a page, mapped twice: the library stores through one mapping;
 * device code is given the other.  When the engine stops looking at a queue it
 * write-protects that page with userfaultfd, so the first plain store faults
 * here, the queue is heated, the page opened, and the store goes on.  Without
 * userfaultfd (containers) the engine looks at such queues every 10 ms, and
 * after 250 ms without a store every 100 ms.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "user.h"

#define DB_BYTES ((size_t)SLOT_QUEUES * NPUEMU_DB_PAGE_SIZE)

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif

static int uffd_open(struct user *u)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};
	struct uffdio_register reg = {
		.range = { (u64)(uintptr_t)u->db_user, DB_BYTES },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	int fd;

	if (npuemu_env_flag("NPUEMU_NO_UFFD"))
		return -1;
	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (fd < 0)
		return -1;
	if (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg)) {
		close(fd);
		return -1;
	}
	return fd;
}

int doorbell_init(struct user *u)
{
	u->db_fd = memfd_create("npuemu-doorbells", MFD_CLOEXEC);
	if (u->db_fd < 0 || ftruncate(u->db_fd, (off_t)DB_BYTES))
		return npuemu_fail(-ENOMEM, "cannot make doorbell pages: %s", strerror(errno));
	u->db_alias = mmap(NULL, DB_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			   u->db_fd, 0);
	u->db_user = mmap(NULL, DB_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			  u->db_fd, 0);
	if (u->db_alias == MAP_FAILED || u->db_user == MAP_FAILED)
		return npuemu_fail(-ENOMEM, "cannot map doorbell pages: %s", strerror(errno));
	madvise(u->db_alias, DB_BYTES, MADV_DONTFORK);
	madvise(u->db_user, DB_BYTES, MADV_DONTFORK);
	u->uffd = uffd_open(u);
	if (u->uffd < 0)
		npuemu_log(NPUEMU_LOG_INFO, "no userfaultfd: raw doorbell stores are seen within 10 ms, after a rest within 100 ms");
	return 0;
}

void doorbell_exit(struct user *u)
{
	if (u->uffd >= 0)
		close(u->uffd);
	if (u->db_alias && u->db_alias != MAP_FAILED)
		munmap(u->db_alias, DB_BYTES);
	if (u->db_user && u->db_user != MAP_FAILED)
		munmap(u->db_user, DB_BYTES);
	if (u->db_fd >= 0)
		close(u->db_fd);
}

void doorbell_protect(struct user *u, u32 queue, bool on)
{
	struct uffdio_writeprotect wp = {
		.range = { (u64)(uintptr_t)u->db_user + (u64)queue * NPUEMU_DB_PAGE_SIZE,
			   NPUEMU_DB_PAGE_SIZE },
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	if (u->uffd >= 0)
		ioctl(u->uffd, UFFDIO_WRITEPROTECT, &wp);
}

/* See cool() in worker.c: one of the two comes first, as a whole. */
static void open_page(struct user *u, u32 i)
{
	u32 *owner = &slot_queues(u, u->slot_index)[i].owner;

	/* an owner is in a turn, which is short; if it is stuck, the store waits */
	while (!npuemu_owner_try(owner)) {
		if (READ_ONCE(u->stop)) {
			doorbell_protect(u, i, false);
			return;
		}
		usleep(20);
	}
	npuemu_fetch_or(&u->hot[i / 64], 1ull << (i % 64));
	doorbell_protect(u, i, false);
	npuemu_owner_put(owner);
	bell_ring_engine(u->slot);
}

static void fault(struct user *u)
{
	struct uffd_msg m;

	while (read(u->uffd, &m, sizeof(m)) == sizeof(m)) {
		u64 off = m.arg.pagefault.address - (u64)(uintptr_t)u->db_user;
		u32 i = (u32)(off / NPUEMU_DB_PAGE_SIZE);

		if (m.event != UFFD_EVENT_PAGEFAULT || off >= DB_BYTES)
			continue;
		WRITE_ONCE(u->slot->doorbell_faults, u->slot->doorbell_faults + 1);
		open_page(u, i);
	}
}

static void *service(void *arg)
{
	struct user *u = arg;
	struct pollfd p[3] = {
		{ .fd = u->wake_fd, .events = POLLIN },
		{ .fd = u->listen_fd, .events = POLLIN },
		{ .fd = u->uffd, .events = POLLIN },
	};

	while (!READ_ONCE(u->stop)) {
		if (poll(p, 3, -1) < 0)
			continue;
		if (p[1].revents & POLLIN)
			fdpass_serve(u);
		if (p[2].revents & POLLIN)
			fault(u);
	}
	return NULL;
}

int service_start(struct user *u)
{
	sigset_t all, old;
	int err;

	u->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (u->wake_fd < 0)
		return npuemu_fail(-errno, "cannot make an eventfd: %s", strerror(errno));
	if (fdpass_listen(u))
		npuemu_log(NPUEMU_LOG_INFO, "no listening socket: peers reach this process through /proc only");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&u->service, NULL, service, u);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return npuemu_fail(-err, "cannot start the service thread: %s", strerror(err));
	u->service_started = true;
	return 0;
}

void service_stop(struct user *u)
{
	u64 one = 1;

	if (u->service_started) {
		(void)!write(u->wake_fd, &one, sizeof(one));
		pthread_join(u->service, NULL);
		u->service_started = false;
	}
	if (u->listen_fd >= 0)
		close(u->listen_fd);
	if (u->wake_fd >= 0)
		close(u->wake_fd);
	u->listen_fd = -1;
	u->wake_fd = -1;
}
