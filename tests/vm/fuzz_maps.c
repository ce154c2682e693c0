// SPDX-License-Identifier: MIT
/*
 * fuzz_ioctl: mappings of buffers, rings, doorbells and records; descriptors and
 * processes that come and go.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fuzz.h"

#define PAGE	4096ull

/* Somewhere in what can be mapped, or near it. */
static u64 any_offset(struct fz *z, u32 *file)
{
	struct fz_thing *t = fz_any(z, &z->bo);
	const struct npuemu_ioc_query *a = &z->about;
	u64 off;

	*file = 0;
	switch (fz_below(z, 8)) {
	case 0:
		off = a->ring_offset + fz_next(&z->rng) % (64 << 20);
		break;
	case 1:
		off = a->db_offset + fz_below(z, 64) * PAGE;
		break;
	case 2:
		off = a->rec_offset + fz_below(z, 8) * PAGE;
		break;
	case 3:
		off = fz_number(z) & 0x7fffffffffffffffull;
		*file = fz_below(z, z->nfd);
		break;
	default:
		if (!t)
			return a->ring_offset;
		off = t->at + (fz_one_in(z, 2) ? 0 : fz_next(&z->rng) % (t->len + PAGE));
		*file = fz_one_in(z, 8) ? fz_below(z, z->nfd) : t->file % z->nfd;
		break;
	}
	return fz_one_in(z, 32) ? off : off & ~(PAGE - 1);
}

static u64 any_length(struct fz *z)
{
	switch (fz_below(z, 8)) {
	case 0:
		return 1 + fz_next(&z->rng) % (64 << 20);
	case 1:
		return 2 << 20;
	default:
		return (1 + fz_below(z, 16)) * PAGE;
	}
}

static int op_munmap(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->map);
	u64 off = 0, len;

	if (!t)
		return -ENOENT;
	fz_begin(z, 0, NULL, 0);
	len = t->len;
	if (fz_one_in(z, 3)) {		/* a part of it: the rest stays, and counts as gone too */
		off = fz_next(&z->rng) % len & ~(PAGE - 1);
		if (munmap((void *)(t->at + off), PAGE))
			return -errno;
	}
	if (munmap((void *)t->at, len))
		return -errno;
	fz_drop(&z->map, t);
	return 0;
}

static int op_mmap(struct fz *z)
{
	u32 file, flags = fz_one_in(z, 8) ? MAP_PRIVATE : MAP_SHARED;
	u64 off = any_offset(z, &file), len = any_length(z);
	int prot = fz_one_in(z, 4) ? (int)fz_below(z, 8) : PROT_READ | PROT_WRITE;
	void *p;

	if (z->map.n == FZ_SET)
		return op_munmap(z);
	if (fz_one_in(z, 16))
		flags |= MAP_POPULATE;
	if (fz_one_in(z, 32))
		flags |= MAP_LOCKED;
	fz_begin(z, 0, &off, sizeof(off));
	p = mmap(NULL, len, prot, (int)flags, fz_one_in(z, 64) ? z->ctl : z->fd[file], (off_t)off);
	if (p == MAP_FAILED)
		return -errno;
	fz_add(&z->map, 0, file, (u64)p, (len + PAGE - 1) & ~(PAGE - 1));
	return 0;
}

static int op_mremap(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->map);
	u64 len;
	void *p;

	if (!t)
		return -ENOENT;
	fz_begin(z, 0, NULL, 0);
	len = fz_one_in(z, 2) ? t->len : any_length(z);
	p = mremap((void *)t->at, t->len, len,
		   fz_one_in(z, 8) ? 0 :
		   MREMAP_MAYMOVE | (fz_one_in(z, 8) ? (int)MREMAP_DONTUNMAP : 0));
	if (p == MAP_FAILED)
		return -errno;
	t->at = (u64)p;
	t->len = (len + PAGE - 1) & ~(PAGE - 1);
	return 0;
}

static int op_madvise(struct fz *z)
{
	static const int advice[] = {
		MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED, MADV_FREE,
		MADV_REMOVE, MADV_DONTFORK, MADV_DOFORK, MADV_MERGEABLE, MADV_UNMERGEABLE,
		MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP, MADV_DODUMP, MADV_WIPEONFORK,
		MADV_COLD, MADV_PAGEOUT, MADV_POPULATE_READ, MADV_POPULATE_WRITE,
	};
	struct fz_thing *t = fz_any(z, &z->map);
	u64 off;

	if (!t)
		return -ENOENT;
	fz_begin(z, 0, NULL, 0);
	off = fz_next(&z->rng) % t->len & ~(PAGE - 1);
	if (madvise((void *)(t->at + off), fz_one_in(z, 2) ? PAGE : t->len - off,
		    advice[fz_below(z, sizeof(advice) / sizeof(advice[0]))]))
		return -errno;
	return 0;
}

static int op_protect(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->map);
	unsigned char vec[64];
	void *p;
	int rc;

	if (!t)
		return -ENOENT;
	fz_begin(z, 0, NULL, 0);
	p = (void *)(t->at + (fz_next(&z->rng) % t->len & ~(PAGE - 1)));
	switch (fz_below(z, 8)) {
	case 0:
		rc = msync(p, PAGE, fz_one_in(z, 2) ? MS_SYNC : MS_INVALIDATE);
		break;
	case 1:
		rc = mlock(p, PAGE);
		break;
	case 2:
		rc = munlock(p, PAGE);
		break;
	case 3:
		rc = mincore(p, PAGE, vec);
		break;
	default:
		rc = mprotect(p, PAGE, (int)fz_below(z, 4));
		break;
	}
	return rc ? -errno : 0;
}

/* By the CPU: what faults, faults. */
static int op_touch(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->map);
	volatile int rc = 0;
	u64 *p;

	if (!t)
		return -ENOENT;
	fz_begin(z, 0, NULL, 0);
	p = (u64 *)(t->at + (fz_next(&z->rng) % t->len & ~7ull));
	if (fz_guard()) {
		if (fz_one_in(z, 2))
			WRITE_ONCE(*p, fz_next(&z->rng));
		else
			(void)READ_ONCE(*p);
	} else {
		rc = -EFAULT;
	}
	fz_unguard();
	return rc;
}

/* By the kernel, for a system call. */
static int op_kernel_touch(struct fz *z)
{
	struct fz_thing *t = fz_any(z, &z->map);
	struct iovec mine, theirs;
	u64 word[8] = { 0 };
	ssize_t n;

	if (!t)
		return -ENOENT;
	fz_begin(z, 0, NULL, 0);
	theirs.iov_base = (void *)(t->at + (fz_next(&z->rng) % t->len & ~63ull));
	theirs.iov_len = sizeof(word);
	mine.iov_base = word;
	mine.iov_len = sizeof(word);
	/* get_user_pages(), then plain copies */
	switch (fz_below(z, 4)) {
	case 0:
		n = process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0);
		break;
	case 1:
		n = process_vm_writev(getpid(), &mine, 1, &theirs, 1, 0);
		break;
	case 2:
		n = preadv(z->file, &theirs, 1, 0);
		break;
	default:
		n = pwritev(z->file, &theirs, 1, 0);
		break;
	}
	return n < 0 ? -errno : 0;
}

/* A child has the descriptors and the mappings, and must not use either. */
static void child(struct fz *z)
{
	struct npuemu_ioc_query query = { 0 };
	struct npuemu_ioc_bo_create bo = { .bytes = 4096 };
	u32 i;

	/* the second thread is not here, maybe its lock is: nothing that takes it */
	for (i = 0; i < 8; i++) {
		if (z->nfd)
			ioctl(z->fd[0], i & 1 ? NPUEMU_IOC_QUERY : NPUEMU_IOC_BO_CREATE,
			      i & 1 ? (void *)&query : (void *)&bo);
		op_touch(z);
		op_munmap(z);
	}
	if (z->nfd)
		close(z->fd[0]);
	_exit(0);
}

static int op_fork(struct fz *z)
{
	int pid, status;

	fz_begin(z, 0, NULL, 0);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		child(z);
	if (fz_one_in(z, 4))
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* Another open that comes and goes, and maybe joins on the way. */
static int op_join(struct fz *z)
{
	struct npuemu_ioc_bo_create bo = { .bytes = 4096 };
	struct npuemu_ioc_join a = { .fd = z->nfd ? z->fd[fz_below(z, z->nfd)] : -1 };
	u32 dev = fz_below(z, z->about.devices);
	char path[32];
	int fd, rc;

	snprintf(path, sizeof(path), "/dev/npuemu%u", dev);
	fz_begin(z, NPUEMU_IOC_JOIN, NULL, 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fz_one_in(z, 4))	/* then it cannot join any more */
		ioctl(fd, NPUEMU_IOC_BO_CREATE, &bo);
	if (fz_one_in(z, 8))
		a.fd = fz_one_in(z, 2) ? fd : z->ctl;
	rc = fz_ioctl(z, fd, NPUEMU_IOC_JOIN, &a);
	if (!rc && z->nfd && fz_one_in(z, 2)) {
		u32 i = fz_below(z, z->nfd);

		/* the rig's windows go through the first one */
		if (i) {
			close(z->fd[i]);
			z->fd[i] = fd;
			z->dev[i] = dev;
			return 0;
		}
	}
	close(fd);
	return rc;
}

/* All descriptors go, with queues at work; mappings stay a while, or go first. */
static int op_reopen(struct fz *z)
{
	fz_begin(z, 0, NULL, 0);
	if (fz_one_in(z, 2))
		fz_rig_down(z);
	fz_close_all(z);
	return fz_open_all(z) ? 0 : -ENODEV;
}

const struct fz_op fz_map_ops[] = {
	{ "mmap", op_mmap, 30, 1, false },
	{ "munmap", op_munmap, 15, 1, false },
	{ "mremap", op_mremap, 10, 1, false },
	{ "madvise", op_madvise, 20, 4, false },
	{ "mprotect, mlock, msync", op_protect, 20, 4, false },
	{ "touch", op_touch, 60, 12, false },
	{ "touch by the kernel", op_kernel_touch, 30, 8, false },
	{ "fork", op_fork, 1, 1, false },
	{ "JOIN", op_join, 4, 1, false },
	{ "close and open", op_reopen, 1, 1, false },
	{ NULL, NULL, 0, 0, false }
};
